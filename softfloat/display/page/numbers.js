// Formats, codes, the one rounding, and numbers as text, on BigInt: a number is a fraction {n, d}, whatever its size.
// It restates softfloat.formats, softfloat.reference and softfloat.display.inspection, and is held against them.

export const INEXACT = 1, UNDERFLOW = 2, OVERFLOW = 4, DIVBYZERO = 8, INVALID = 16;
const FLAG_NAMES = [[INVALID, "INVALID"], [DIVBYZERO, "DIVBYZERO"], [OVERFLOW, "OVERFLOW"], [UNDERFLOW, "UNDERFLOW"], [INEXACT, "INEXACT"]];
const LONGEST_NEIGHBOUR = 26, LARGEST_EXPONENT = 5000;

export class Refused extends Error {}

export function refuse(text) {
  throw new Refused(text);
}

export const quoted = (x) => (typeof x === "string" ? (x.includes("'") && !x.includes('"') ? `"${x}"` : `'${x.replaceAll("'", "\\'")}'`) : x === undefined || x === null ? "None" : x === true ? "True" : x === false ? "False" : String(x));

export function checkChoice(name, value, accepted) {
  if (!accepted.includes(value)) refuse(`${name} must be one of ${accepted.map(quoted).join(", ")}, got ${quoted(value)}`);
}

// -- fractions --------------------------------------------------------------------------------------------------------

export const abs = (x) => (x < 0n ? -x : x);
const bitLength = (x) => (x === 0n ? 0 : x.toString(2).length);
const floorDivide = (a, b) => (a >= 0n ? a / b : -((-a + b - 1n) / b));

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

export function fraction(n, d = 1n) {
  if (d < 0n) [n, d] = [-n, -d];
  const g = gcd(abs(n), d) || 1n;
  return { n: n / g, d: d / g };
}

export const ZERO = { n: 0n, d: 1n };
export const twoTo = (e) => (e >= 0 ? { n: 1n << BigInt(e), d: 1n } : { n: 1n, d: 1n << BigInt(-e) });
export const add = (x, y) => fraction(x.n * y.d + y.n * x.d, x.d * y.d);
export const negated = (x) => ({ n: -x.n, d: x.d });
export const sub = (x, y) => add(x, negated(y));
export const mul = (x, y) => fraction(x.n * y.n, x.d * y.d);
export const div = (x, y) => fraction(x.n * y.d, x.d * y.n);
export const compare = (x, y) => x.n * y.d - y.n * x.d;
export const floor = (x) => floorDivide(x.n, x.d);

export function nearestEven(x) {
  const low = floor(x), rest = 2n * (x.n - low * x.d);
  return rest > x.d || (rest === x.d && low % 2n !== 0n) ? low + 1n : low;
}

export function exponentOf(x) {
  const e = bitLength(abs(x.n)) - bitLength(x.d);
  return compare({ n: abs(x.n), d: x.d }, twoTo(e)) >= 0n ? e : e - 1;
}

// The nearest double, ties to even, as a fraction.
export function asDouble(x) {
  if (x.n === 0n) return ZERO;
  const unit = Math.max(exponentOf(x), -1022) - 52;
  return mul({ n: nearestEven(div(x, twoTo(unit))), d: 1n }, twoTo(unit));
}

// -- numbers as text --------------------------------------------------------------------------------------------------

// Python's format(float(x), ".{digits}g").
export function general(fractionGiven, digits) {
  const x = asDouble(fractionGiven), sign = x.n < 0n ? "-" : "";
  if (x.n === 0n) return "0";
  const magnitude = { n: abs(x.n), d: x.d };
  let e = magnitude.n.toString().length - magnitude.d.toString().length;
  const power = (k) => (k >= 0 ? { n: 10n ** BigInt(k), d: 1n } : { n: 1n, d: 10n ** BigInt(-k) });
  if (compare(magnitude, power(e)) < 0n) e -= 1;
  let whole = nearestEven(mul(magnitude, power(digits - 1 - e)));
  if (whole === 10n ** BigInt(digits)) [whole, e] = [whole / 10n, e + 1];
  const text = whole.toString();
  if (e < -4 || e >= digits) {
    const rest = text.slice(1).replace(/0+$/, "");
    return `${sign}${text[0]}${rest ? "." + rest : ""}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
  }
  if (e < 0) return `${sign}0.${"0".repeat(-e - 1)}${text.replace(/0+$/, "")}`;
  const rest = text.slice(e + 1).replace(/0+$/, "");
  return `${sign}${text.slice(0, e + 1)}${rest ? "." + rest : ""}`;
}

const isPowerOfTwo = (x) => x > 0n && (x & (x - 1n)) === 0n;

// All digits of a fraction whose denominator is a power of two.
function exactDecimal(x) {
  const places = bitLength(x.d) - 1, sign = x.n < 0n ? "-" : "";
  let digits = (abs(x.n) * 5n ** BigInt(places)).toString();
  if (places === 0) return sign + digits;
  if (places <= 20) {
    digits = digits.padStart(places + 1, "0");
    return `${sign}${digits.slice(0, -places)}.${digits.slice(-places)}`;
  }
  const exponent = digits.length - 1 - places;
  digits = digits.replace(/0+$/, "");
  return `${sign}${digits[0]}${digits.length > 1 ? "." + digits.slice(1) : ""}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

export function exactText(x) {
  const whole = isPowerOfTwo(x.d) ? exactDecimal(x) : `${x.n}/${x.d}`;
  return { text: whole.length <= LONGEST_NEIGHBOUR ? whole : `about ${general(x, 9)}`, exact: whole };
}

// Values: {kind: "finite" | "infinite" | "nan", negative, magnitude, signalling}.

export const finite = (negative, magnitude) => ({ kind: "finite", negative, magnitude, signalling: false });
export const infinite = (negative) => ({ kind: "infinite", negative, magnitude: ZERO, signalling: false });
export const valueOf = (x) => finite(x.n < 0n, { n: abs(x.n), d: x.d });
export const real = (value) => (value.negative ? negated(value.magnitude) : value.magnitude);

function special(value) {
  if (value.kind === "nan") return "nan";
  if (value.kind === "infinite") return value.negative ? "-inf" : "inf";
  return value.magnitude.n === 0n ? (value.negative ? "-0" : "0") : null;
}

export const decimalText = (value) => special(value) ?? exactDecimal(real(value));

export function hexadecimalText(value) {
  if (value.kind !== "finite") return special(value);
  const sign = value.negative ? "-" : "";
  if (value.magnitude.n === 0n) return `${sign}0x0p+0`;
  const e = exponentOf(value.magnitude), significand = div(value.magnitude, twoTo(e - 52));
  const digits = (significand.n / significand.d - (1n << 52n)).toString(16).padStart(13, "0").replace(/0+$/, "");
  return `${sign}0x1${digits ? "." + digits : ""}p${e < 0 ? "-" : "+"}${Math.abs(e)}`;
}

export function typedText(value) {
  const text = decimalText(value);
  return text.length <= LONGEST_NEIGHBOUR ? text : hexadecimalText(value);
}

export function shortText(value) {
  const text = typedText(value);
  return text.includes("x") ? `${text}, about ${general(real(value), 6)}` : text;
}

export const flagText = (flags) => FLAG_NAMES.filter(([bit]) => flags & bit).map(([, name]) => name).join("|") || "none";

// -- text as numbers --------------------------------------------------------------------------------------------------

const SUFFIXED = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x[\da-f]*\.?[\da-f]*p[+-]?\d+)[fl]$/;
const HEXADECIMAL = /^([+-]?)0x([\da-f]*)\.?([\da-f]*)(?:p([+-]?\d+))?$/;
const DECIMAL = /^([+-]?)(?=\d|\.\d)(\d*|\d+(?:_\d+)*)(?:(?:\/(\d+(?:_\d+)*))?|(?:\.(\d*|\d+(?:_\d+)*))?(?:e([+-]?\d+(?:_\d+)*))?)$/;

// {code: BigInt}, or {value}.
export function parse(text) {
  const accepted = "accepted: a code (0x3c00, 0b0011) or a number (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3)";
  let typed = text.trim().toLowerCase();
  if (SUFFIXED.test(typed)) typed = typed.slice(0, -1);
  const bounded = (exponent) => {
    if (exponent.length > 10 || Math.abs(Number(exponent)) > LARGEST_EXPONENT)
      refuse(`the exponent of '${text}' is out of range; accepted: -${LARGEST_EXPONENT} to ${LARGEST_EXPONENT}`);
    return Number(exponent);
  };
  if (/^0[xbo][\da-f_]+$/.test(typed)) {
    if (!/^0(x(_?[\da-f])+|b(_?[01])+|o(_?[0-7])+)$/.test(typed)) refuse(`'${text}' is no code; ${accepted}`);
    return { code: BigInt(typed.replaceAll("_", "")) };
  }
  const named = /^([+-]?)(inf|infinity|nan)$/.exec(typed);
  if (named) return { value: { kind: named[2] === "nan" ? "nan" : "infinite", negative: named[1] === "-", magnitude: ZERO, signalling: false } };
  const hexadecimal = HEXADECIMAL.exec(typed);
  let number, negative = typed.startsWith("-");
  if (hexadecimal && /[.p]/.test(typed) && (hexadecimal[2] || hexadecimal[3])) {
    const power = bounded(hexadecimal[4] || "0") - 4 * hexadecimal[3].length;
    number = mul({ n: BigInt("0x" + hexadecimal[2] + hexadecimal[3]), d: 1n }, twoTo(power));
  } else {
    const exponent = /e([+-]?\d+)$/.exec(typed);
    if (exponent) bounded(exponent[1]);
    const found = DECIMAL.exec(typed), plain = (x) => (x || "").replaceAll("_", "");
    if (!found || (found[3] && BigInt(plain(found[3])) === 0n)) refuse(`'${text}' is neither a code nor a number; ${accepted}`);
    const places = plain(found[4]), power = BigInt(plain(found[5]) || "0") - BigInt(places.length);
    const digits = BigInt(plain(found[2]) + places || "0");
    if (found[3]) number = fraction(digits, BigInt(plain(found[3])));
    else number = power >= 0n ? { n: digits * 10n ** power, d: 1n } : fraction(digits, 10n ** -power);
  }
  return { value: finite(negative, number) };
}

// -- formats ----------------------------------------------------------------------------------------------------------

function integer(name, value, low, high) {
  if (!Number.isInteger(value)) refuse(`${name} must be an integer, got ${quoted(value)}`);
  if (value < low || value > high) refuse(`${name} must be ${low} to ${high}, got ${value}`);
}

// A format of its parameters, those left out by default, with everything that follows from them.
export function format(given) {
  const known = ["name", "exponent_bits", "mantissa_bits", "bias", "infinities", "nan", "subnormals", "signed_zero", "signed", "zero"];
  for (const key of Object.keys(given)) if (!known.includes(key)) refuse(`a format has no parameter ${quoted(key)}`);
  const p = { nan: "ieee", subnormals: true, signed: true, zero: true, ...given };
  if (typeof p.name !== "string" || !p.name) refuse(`name must be a non-empty string, got ${quoted(p.name)}`);
  integer("exponent_bits", p.exponent_bits, 1, 8);
  if (Number.isInteger(p.mantissa_bits) && p.mantissa_bits >= 24)
    refuse(`mantissa_bits=${p.mantissa_bits} means ${p.mantissa_bits + 1} bits of precision; accepted: 0 to 23 (at most 24 bits of precision)`);
  integer("mantissa_bits", p.mantissa_bits, 0, 23);
  if (!["ieee", "fn", "fnuz", "none"].includes(p.nan)) refuse(`nan must be 'ieee', 'fn', 'fnuz' or 'none', got ${quoted(p.nan)}`);
  const ieee = p.nan === "ieee", fnuz = p.nan === "fnuz";
  const switches = (names) => names.forEach((name) => typeof p[name] === "boolean" || refuse(`${name} must be True or False, got ${quoted(p[name])}`));
  switches(["signed", "zero", "subnormals"]);
  p.infinities ??= ieee;
  p.signed_zero ??= p.signed && !fnuz;
  p.bias ??= 2 ** (p.exponent_bits - 1) - (fnuz ? 0 : 1);
  switches(["infinities", "signed_zero"]);
  if (ieee && !(p.infinities && p.mantissa_bits))
    refuse("nan='ieee' needs infinities=True and mantissa_bits >= 1; accepted otherwise: nan='fn', 'fnuz' or 'none'");
  if (fnuz && (p.signed_zero || !p.signed)) refuse("nan='fnuz' puts NaN in the place of negative zero: signed must be True and signed_zero False");
  if (p.signed_zero && !p.signed) refuse("signed_zero must be False in an unsigned format");
  if (p.signed && !fnuz && !p.signed_zero) refuse("signed_zero=False needs nan='fnuz', which gives the code of -0 a meaning, or signed=False");
  if (!p.zero && (p.signed || p.subnormals)) refuse("zero=False needs signed=False and subnormals=False");
  if (!Number.isInteger(p.bias)) refuse(`bias must be an integer, got ${quoted(p.bias)}`);
  if (Math.abs(p.bias) > 800) refuse(`bias=${p.bias} is out of range; accepted: biases that keep values in 2^-400 ... 2^400`);

  const m = p.mantissa_bits, width = p.exponent_bits + m + (p.signed ? 1 : 0), top = (1n << BigInt(p.exponent_bits + m)) - 1n;
  const signBit = p.signed ? 1n << BigInt(width - 1) : 0n;
  let largest, infinity = null, nan = null;
  if (ieee) {
    infinity = top - ((1n << BigInt(m)) - 1n);
    [largest, nan] = [infinity - 1n, infinity + (1n << BigInt(m - 1))];
  } else {
    nan = { fn: top, fnuz: signBit, none: null }[p.nan];
    largest = p.nan === "fn" ? top - 1n : top;
    if (p.infinities) [infinity, largest] = [largest, largest - 1n];
  }
  const smallestNormal = p.zero ? 1n << BigInt(m) : 0n;
  if (largest < smallestNormal) refuse(`exponent_bits=${p.exponent_bits} leaves no normal number beside the special codes of nan='${p.nan}'`);
  const emin = p.zero ? 1 - p.bias : -p.bias, emax = Number(largest >> BigInt(m)) - p.bias;
  const low = emin - m, high = emax + 1;
  if (low < -400 || high > 400) refuse(`bias=${p.bias} gives values from 2^${low} to 2^${high}; accepted: biases that keep them in 2^-400 ... 2^400`);
  const parameters = Object.fromEntries(known.map((name) => [name, p[name]]));
  const fmt = { ...parameters, parameters, m, width, signBit, largest, infinity, nanCode: nan, emin, emax, smallestNormal, hasNan: p.nan !== "none" };
  fmt.smallest = p.subnormals && m ? 1n : smallestNormal;
  fmt.max = decode(largest, fmt).magnitude;
  fmt.layout = [["s", p.signed ? 1 : 0], ["e", p.exponent_bits], ["f", m]].filter(([, n]) => n).map(([x, n]) => x.repeat(n)).join(".");
  return fmt;
}

// The roster's format of a name, or of another name for it; or IEEE 754's kind of more than 8 bits.
export function formatNamed(name, data) {
  const key = String(name).toLowerCase().replaceAll("-", "_");
  const found = data.aliases[key];
  if (found) return format(data.roster[found]);
  const drafted = /^binary([1-9]\d*)p([1-9]\d*)([su])([ef])$/.exec(key);
  if (drafted) return draftFormat(Number(drafted[1]), Number(drafted[2]), drafted[3] === "s", drafted[4] === "e");
  const fields = /^e([1-9]\d?)m(0|[1-9]\d?)$/.exec(key);
  if (fields && 1 + Number(fields[1]) + Number(fields[2]) > 8) {
    const [exponent_bits, mantissa_bits] = [Number(fields[1]), Number(fields[2])];
    return format({ name: `e${exponent_bits}m${mantissa_bits}`, exponent_bits, mantissa_bits });
  }
  const others = Object.keys(data.aliases).filter((x) => !(x in data.roster)).sort().join(", ");
  return refuse(`unknown format ${quoted(name)}; accepted: ${Object.keys(data.roster).join(", ")}, and ${others}, eXmY of more than 8 bits, binaryKpP with se, sf, ue or uf (P3109, draft 4.0); `
    + `softfloat.Format(${quoted(name)}, exponent_bits=..., mantissa_bits=...) makes any other`);
}

// A format of IEEE P3109, draft 4.0, 3.1 and 3.2.
function draftFormat(width, precision, signed, extended) {
  const name = `binary${width}p${precision}${signed ? "s" : "u"}${extended ? "e" : "f"}`, most = width - (signed ? 1 : 0), exponent_bits = width - precision + (signed ? 0 : 1);
  if (width < 3) refuse(`k must be at least 3, got ${width}`);
  if (precision > most) refuse(`p must be 1 to ${most} in ${signed ? "a signed" : "an unsigned"} format of ${width} bits, got ${precision}`);
  if (exponent_bits > 8 || precision > 24)
    refuse(`${name} has ${exponent_bits} exponent bits and ${precision} bits of precision; accepted: at most 8 and 24, so that float64 holds every value and every exact product`);
  return format({ name, exponent_bits, mantissa_bits: precision - 1, bias: 2 ** (most - precision), infinities: extended, nan: signed ? "fnuz" : "fn", signed });
}

export const codeText = (code, fmt) => "0x" + code.toString(16).padStart(Math.ceil(fmt.width / 4), "0");

export function bitFields(code, fmt) {
  const digits = code.toString(2).padStart(fmt.width, "0"), found = [];
  let at = 0;
  for (const [name, width] of [["sign", fmt.signed ? 1 : 0], ["exponent", fmt.exponent_bits], ["fraction", fmt.m]]) {
    if (width) found.push([name, digits.slice(at, at + width)]);
    at += width;
  }
  return found;
}

function specialValues(fmt) {
  const words = fmt.infinities ? ["inf"] : [];
  if (fmt.nan === "ieee") words.push("NaN");
  else if (fmt.hasNan) {
    const both = fmt.nan !== "fnuz" && fmt.signed;
    words.push(`NaN (${both ? "±" : ""}${codeText(both ? fmt.nanCode & ~fmt.signBit : fmt.nanCode, fmt)})`);
  }
  if (!words.length) words.push("no inf, no NaN");
  if (!fmt.signed) words.push("unsigned");
  else if (!fmt.signed_zero) words.push("no -0");
  if (!fmt.zero) words.push("no zero");
  else if (!fmt.subnormals) words.push("no subnormals");
  return words.join(", ");
}

export function formatFacts(fmt) {
  const m = fmt.m, facts = [
    ["bits", `${fmt.width}: ${fmt.signed ? 1 : 0} sign, ${fmt.exponent_bits} exponent, ${m} fraction`],
    ["precision", `p = ${m + 1}`],
    ["exponents", `${fmt.emin} to ${fmt.emax}, bias ${fmt.bias}`],
    ["max", general(fmt.max, 9)],
    ["smallest normal", `${general(twoTo(fmt.emin), 6)} = 2^${fmt.emin}`],
    ["smallest subnormal", fmt.subnormals && m ? `${general(twoTo(fmt.emin - m), 6)} = 2^${fmt.emin - m}` : "none"],
    ["eps", `${general(twoTo(-m), 6)} = 2^${m ? -m : 0}`],
    ["special values", specialValues(fmt)],
  ];
  if (fmt.infinities) facts.push(["code of inf", codeText(fmt.infinity, fmt)]);
  if (fmt.hasNan) facts.push(["code of NaN", codeText(fmt.nanCode, fmt)]);
  const p = m + 1, kind = `${fmt.signed ? "s" : "u"}${fmt.infinities ? "e" : "f"}`;
  const drafted = fmt.width >= 3 && fmt.zero && fmt.subnormals && fmt.nan === (fmt.signed ? "fnuz" : "fn");
  if (drafted && Number(fmt.bias) === 2 ** (fmt.width - p - (fmt.signed ? 1 : 0)))
    facts.push(["P3109, draft 4.0", `binary${fmt.width}p${p}${kind}, ${fmt.infinities ? "extended" : "finite"}`]);
  return facts;
}

// -- codes ------------------------------------------------------------------------------------------------------------

export function decode(code, fmt) {
  const negative = (code & fmt.signBit) !== 0n, magnitude = code & ~fmt.signBit, m = BigInt(fmt.m);
  if (fmt.nan === "fnuz" && code === fmt.nanCode) return { kind: "nan", negative: true, magnitude: ZERO, signalling: false };
  if (magnitude === fmt.infinity) return infinite(negative);
  if (magnitude > fmt.largest) {
    const signalling = fmt.nan === "ieee" && (magnitude & (1n << (m - 1n))) === 0n;
    return { kind: "nan", negative, magnitude: ZERO, signalling };
  }
  const field = Number(magnitude >> m), part = magnitude & ((1n << m) - 1n);
  const spacing = twoTo(Math.max(field, fmt.zero ? 1 : 0) - fmt.bias - fmt.m);
  if (fmt.zero && field === 0) return finite(negative, fmt.subnormals ? mul({ n: part, d: 1n }, spacing) : ZERO);
  return finite(negative, mul({ n: (1n << m) + part, d: 1n }, spacing));
}

export function classOf(code, fmt) {
  const value = decode(code, fmt);
  if (value.kind === "nan") return value.signalling ? "signalingNaN" : "quietNaN";
  const sign = (code & fmt.signBit) !== 0n ? "negative" : "positive";
  if (value.kind === "infinite") return `${sign}Infinity`;
  if (value.magnitude.n === 0n) return `${sign}Zero`;
  return sign + ((code & ~fmt.signBit) < fmt.smallestNormal ? "Subnormal" : "Normal");
}

// The next number above (1) or below (-1); a NaN becomes the quiet one.
export function nextTo(code, fmt, step) {
  if (decode(code, fmt).kind === "nan") return fmt.nanCode;
  const magnitude = code & ~fmt.signBit, first = fmt.smallest, last = (fmt.infinities ? fmt.infinity : fmt.largest) - first + 1n;
  let rank = magnitude - (first - 1n);
  if (rank < 0n) rank = 0n;
  if (code !== magnitude) rank = -rank;
  rank += BigInt(step);
  const lowest = fmt.signed ? -last : fmt.zero ? 0n : 1n;
  if (rank > last) rank = last;
  if (rank < lowest) rank = lowest;
  const moved = rank === 0n ? 0n : abs(rank) + first - 1n;
  return rank < 0n || (rank === 0n && step > 0 && fmt.signed_zero) ? moved | fmt.signBit : moved;
}

// -- the one rounding -------------------------------------------------------------------------------------------------
// rules: {rounding, overflow, tininess, sr_bits, random_bits, daz, ftz, policy}

const largestCode = (negative, fmt) => fmt.largest + (negative ? fmt.signBit : 0n);

export function defaultNan(fmt, rules) {
  const policy = rules.policy || {};
  if (fmt.nanCode === null) return largestCode(false, fmt);
  if (policy.all_ones && fmt.nan === "ieee") return ((1n << BigInt(fmt.width)) - 1n) & ~fmt.signBit;
  return policy.negative_default && (fmt.nan === "ieee" || fmt.nan === "fn") ? fmt.nanCode | fmt.signBit : fmt.nanCode;
}

export function infinityCode(negative, fmt, rules) {
  if (fmt.infinity !== null) return fmt.infinity + (negative ? fmt.signBit : 0n);
  return fmt.hasNan ? defaultNan(fmt, rules) : largestCode(negative, fmt);
}

export const invalid = (fmt, rules) => [defaultNan(fmt, rules), INVALID];

export function propagated(values, fmt, rules) {
  const any = (rules.policy || {}).any_nan_signals, signals = values.some((x) => x.kind === "nan" && (x.signalling || any));
  return [defaultNan(fmt, rules), (signals ? INVALID : 0) | (fmt.hasNan ? 0 : INVALID)];
}

// A magnitude counted in spacings 2^unit, rounded to an integer.
export function rounded(magnitude, unit, negative, rules) {
  const scaled = div(magnitude, twoTo(unit)), i = scaled.n / scaled.d, rest = scaled.n % scaled.d;
  if (rest === 0n) return [i, true];
  const up = {
    nearest_even: () => 2n * rest > scaled.d || (2n * rest === scaled.d && i % 2n === 1n),
    nearest_away: () => 2n * rest >= scaled.d,
    toward_zero: () => false,
    toward_positive: () => !negative,
    toward_negative: () => negative,
    to_odd: () => i % 2n === 0n,
    stochastic: () => (rest << BigInt(rules.sr_bits)) / scaled.d + BigInt(rules.random_bits) >= 1n << BigInt(rules.sr_bits),
    nearest_zero: () => 2n * rest > scaled.d,
    nearest_up: () => 2n * rest > scaled.d || (2n * rest === scaled.d && !negative),
    up_or_down: () => BigInt(rules.random_bits) >> BigInt(rules.sr_bits - 1) === 1n,
  }[rules.rounding]();
  return [up ? i + 1n : i, false];
}

function codeOf(negative, count, unit, fmt) {
  if (count === 0n) return negative && fmt.signed_zero ? fmt.signBit : 0n;
  const exponent = Math.max(bitLength(count) - 1 + unit, fmt.emin), up = unit - (exponent - fmt.m);
  const significand = up >= 0 ? count << BigInt(up) : count >> BigInt(-up), hidden = 1n << BigInt(fmt.m);
  const field = significand < hidden ? 0n : BigInt(exponent + fmt.bias);
  return field * hidden + (significand % hidden) + (negative ? fmt.signBit : 0n);
}

// [code, flags] of a finite value, or of an infinite one as the result of arithmetic.
export function round(value, fmt, rules) {
  const zero = value.kind === "finite" && value.magnitude.n === 0n, negative = value.negative;
  if (negative && !zero && !fmt.signed) return invalid(fmt, rules);
  if (zero) return fmt.zero ? [codeOf(negative, 0n, 0, fmt), 0] : invalid(fmt, rules);
  if (value.kind === "infinite") {
    if (fmt.infinities || rules.overflow === "infinity") return [infinityCode(negative, fmt, rules), 0];
    return [rules.overflow === "saturate" ? largestCode(negative, fmt) : defaultNan(fmt, rules), 0];
  }
  const magnitude = value.magnitude, e = exponentOf(magnitude), m = fmt.m, unit = e - m;
  let spacing = e >= fmt.emin ? unit : fmt.subnormals ? fmt.emin - m : fmt.emin;
  let [count, exact] = rounded(magnitude, spacing, negative, rules);
  if (compare(mul({ n: count, d: 1n }, twoTo(spacing)), fmt.max) > 0n) return overflowed(negative, fmt, rules);
  let tiny = e < fmt.emin;
  if (tiny && rules.tininess === "after") tiny = rounded(magnitude, unit, negative, rules)[0] < 1n << BigInt(fmt.emin - unit);
  let flags = exact ? 0 : INEXACT;
  if (tiny && flags) flags |= UNDERFLOW;
  if (tiny && rules.ftz) [count, flags] = [0n, UNDERFLOW | INEXACT];
  if (count === 0n && !fmt.zero) [count, spacing] = [1n, fmt.emin];
  return [codeOf(negative, count, spacing, fmt), flags];
}

function overflowed(negative, fmt, rules) {
  const flags = OVERFLOW | INEXACT;
  if (rules.overflow === "saturate") return [largestCode(negative, fmt), flags];
  if (rules.overflow === "nan") return [defaultNan(fmt, rules), flags | INVALID];
  const stays = { toward_zero: true, to_odd: true, toward_positive: negative, toward_negative: !negative }[rules.rounding];
  return [stays ? largestCode(negative, fmt) : infinityCode(negative, fmt, rules), flags];
}

// A conversion: infinities are kept, or saturate where overflow does.
export function converted(value, fmt, rules) {
  if (value.kind === "nan") return propagated([value], fmt, rules);
  if (value.kind === "finite" || (value.negative && !fmt.signed)) return round(value, fmt, rules);
  return [rules.overflow === "saturate" ? largestCode(value.negative, fmt) : infinityCode(value.negative, fmt, rules), 0];
}

// -- arithmetic: [exact value or null where it is invalid, flags] -----------------------------------------------------

export function exactSum(x, y, rules) {
  if (x.kind === "infinite" && y.kind === "infinite" && x.negative !== y.negative) return [null, 0];
  if (x.kind === "infinite" || y.kind === "infinite") return [x.kind === "infinite" ? x : y, 0];
  const total = add(real(x), real(y));
  if (total.n === 0n) return [finite(x.negative === y.negative ? x.negative : rules.rounding === "toward_negative", ZERO), 0];
  return [valueOf(total), 0];
}

const isZero = (x) => x.kind === "finite" && x.magnitude.n === 0n;

export function exactProduct(x, y) {
  const negative = x.negative !== y.negative;
  if (x.kind === "infinite" || y.kind === "infinite") return [isZero(x) || isZero(y) ? null : infinite(negative), 0];
  return [finite(negative, mul(x.magnitude, y.magnitude)), 0];
}

function exactQuotient(x, y) {
  const negative = x.negative !== y.negative;
  if ((x.kind === "infinite" && y.kind === "infinite") || (isZero(x) && isZero(y))) return [null, 0];
  if (x.kind === "infinite") return [infinite(negative), 0];
  if (isZero(y)) return [infinite(negative), DIVBYZERO];
  return [finite(negative, y.kind === "infinite" ? ZERO : div(x.magnitude, y.magnitude)), 0];
}

function exactRemainder(x, y) {
  if (x.kind === "infinite" || isZero(y)) return [null, 0];
  if (y.kind === "infinite" || isZero(x)) return [x, 0];
  const n = nearestEven(div(x.magnitude, y.magnitude)), rest = sub(x.magnitude, mul({ n, d: 1n }, y.magnitude));
  return [finite(x.negative !== rest.n < 0n, { n: abs(rest.n), d: rest.d }), 0];
}

export const OPERATIONS = {
  add: exactSum,
  sub: (x, y, rules) => exactSum(x, { ...y, negative: !y.negative }, rules),
  mul: exactProduct,
  div: exactQuotient,
  remainder: exactRemainder,
};

// [code, flags, exact value or null]
export function operate(exact, values, fmt, rules) {
  if (values.some((x) => x.kind === "nan")) return [...propagated(values, fmt, rules), null];
  const [value, flags] = exact(...values, rules);
  if (value === null) return [...invalid(fmt, rules), null];
  const [code, raised] = round(value, fmt, rules);
  return [code, flags | raised, value];
}

// -- inspection: the rows that `softfloat inspect` prints -------------------------------------------------------------

export function inspectionRows(code, fmt, given = null) {
  const rows = [], value = decode(code, fmt), kind = classOf(code, fmt), m = BigInt(fmt.m);
  const numeric = /(Normal|Subnormal)$/.test(kind), field = Number((code & ~fmt.signBit) >> m), part = code & ((1n << m) - 1n);
  const exponent = kind.endsWith("Subnormal") ? fmt.emin : field - fmt.bias;
  if (given) rows.push(["number", `${given.typed}, rounded ${given.rounding.replaceAll("_", " ")}`]);
  rows.push(["code", codeText(code, fmt)]);
  const sign = (code & fmt.signBit) !== 0n;
  if (fmt.signed) rows.push(["sign", sign ? "1 (negative)" : "0 (positive)"]);
  rows.push(["exponent", `field ${field}${numeric ? `, 2^${exponent}` : ""} (bias ${fmt.bias})`]);
  if (fmt.m) rows.push(["fraction", `${part} of ${1n << m}`]);
  rows.push(["value", decimalText(value)], ["hexadecimal", hexadecimalText(value)]);
  if (numeric) rows.push(["formula", `${sign ? "-" : ""}2^${exponent}${fmt.m ? ` × (${kind.endsWith("Normal") ? 1 : 0} + ${part}/${1n << m})` : ""}`]);
  rows.push(["class", kind]);
  if (value.kind !== "nan") {
    for (const [name, step] of [["below", -1], ["above", 1]]) {
      const there = nextTo(code, fmt, step), next = decode(there, fmt);
      let text = "none";
      if (there !== code) {
        text = `${codeText(there, fmt)} = ${shortText(next)}`;
        if (value.kind === "finite" && next.kind === "finite") {
          const away = sub(real(next), real(value)), size = { n: abs(away.n), d: away.d };
          const power = isPowerOfTwo(size.n) && isPowerOfTwo(size.d);
          text += `, ${power ? "2^" + (bitLength(size.n) - bitLength(size.d)) : exactText(size).exact} away`;
        }
      }
      rows.push([name, text]);
    }
  }
  if (given) {
    rows.push(["flags", flagText(given.flags)]);
    if (given.value.kind === "finite" && value.kind === "finite" && !(given.flags & OVERFLOW)) {
      const error = sub(real(value), real(given.value));
      const e = given.value.magnitude.n === 0n ? fmt.emin : exponentOf(given.value.magnitude);
      const ulps = div(error, twoTo(Math.min(Math.max(e, fmt.emin), fmt.emax) - fmt.m)), text = general(ulps, 6);
      rows.push(["error", error.n === 0n ? "0, exact" : `${text.startsWith("-") ? "" : "+"}${text} ulp`]);
    }
  }
  return rows;
}
