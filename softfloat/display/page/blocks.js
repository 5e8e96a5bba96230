// Blocks of numbers that share a scale, as softfloat.bits.quantize and softfloat.display.block_exploration have them. A step that a rule takes in
// float32 is one division or product of doubles, rounded to a double and then to float32, as there.

import { INEXACT, INVALID, OVERFLOW, UNDERFLOW, ZERO, abs, add, asDouble, checkChoice, codeText, compare, converted, decode, div, exponentOf, finite, flagText,
  floor, format, general, mul, nearestEven, parse, real, refuse, rounded, shortText, sub, twoTo } from "./numbers.js";

export const HERE = "{format}"; // stands for the explorer's format
const MOST = 32, CHART_UNITS = 10000n, BELOW = 2, NONE = "none", TENSOR_SCALES = [NONE, "float32"], FATES = ["saturated", "vanished", "rounded", "exact"];
const BLOCK_FIELDS = ["element", "scale", "tensor_scale", "rule", "size", "numbers"];
const FLOAT32 = format({ name: "float32", exponent_bits: 8, mantissa_bits: 23 }), LARGEST = FLOAT32.max, ONE = { n: 1n, d: 1n };
const NEAREST = { rounding: "nearest_even", overflow: "infinity", tininess: "after" }, SATURATING = { ...NEAREST, overflow: "saturate" };

// Magnitudes here are fractions, or null where they are infinite.

const ratio = (x, y) => (x === null ? null : y === null ? ZERO : y.n === 0n ? null : asDouble(div(x, y)));
const smaller = (x, y) => (x === null || (y !== null && compare(y, x) < 0n) ? y : x);
const larger = (x, y) => (x === null || y === null ? null : compare(x, y) < 0n ? y : x);

function single(x) {
  if (x === null) return null;
  const value = decode(converted(finite(false, x), FLOAT32, NEAREST)[0], FLOAT32);
  return value.kind === "finite" ? value.magnitude : null;
}

const inverse = (x) => single(ratio(ONE, x));
const product = (x, y) => (x === null || y === null ? null : mul(x, y));

// -- elements ---------------------------------------------------------------------------------------------------------

const scaled = (x, e) => mul(x, twoTo(e));

// What a block has to know of its elements, in floating or fixed point.
function elementOf(name, fmt, data) {
  const fixed = data.blocks.fixed[name];
  if (fixed) {
    const largest = (1n << BigInt(fixed.bits - 1)) - 1n, signBit = largest + 1n, two = fixed.coding === "twos_complement";
    return { ...fixed, fixed: true, width: fixed.bits, p: fixed.bits - 1, m: fixed.bits - 2, emax: fixed.bits - 2 - fixed.fraction_bits, emin: 0, largest, signBit, two,
      least: -largest - (two && !fixed.symmetric ? 1n : 0n), max: scaled({ n: largest, d: 1n }, -fixed.fraction_bits), smallest: twoTo(-fixed.fraction_bits), low: -fixed.fraction_bits };
  }
  const found = name === HERE ? fmt : format(data.roster[name]);
  return { ...found, p: found.m + 1, smallest: decode(found.smallest, found).magnitude, low: found.emin - found.m };
}

function encodeFixed(value, element, rules) {
  const negative = value.negative, code = (k) => (element.two ? k & ((1n << BigInt(element.width)) - 1n) : abs(k) | (negative ? element.signBit : 0n));
  const bound = negative ? element.least : element.largest;
  if (value.kind === "nan") return [code(element.largest), INVALID];
  if (value.kind === "infinite") return [code(bound), 0];
  const [count, exact] = rounded(scaled(value.magnitude, element.fraction_bits), 0, negative, rules), k = negative ? -count : count;
  if (k > element.largest || k < element.least) return [code(bound), INEXACT | OVERFLOW];
  return [code(k), exact ? 0 : INEXACT];
}

function decodeFixed(code, element) {
  const negative = (code & element.signBit) !== 0n, whole = element.two && negative ? (1n << BigInt(element.width)) - code : code & (element.signBit - 1n);
  return finite(negative, scaled({ n: whole, d: 1n }, -element.fraction_bits));
}

// -- scales -----------------------------------------------------------------------------------------------------------

// Whether a significand, 1 to 2, counts for the next power of two.
function carries(significand, element, carry) {
  const above = (x) => compare(significand, x) > 0n;
  return {
    none: () => false,
    any: () => above(ONE),
    above: () => above(scaled(element.max, -exponentOf(element.max))),
    middle: () => above(mul(add(scaled(element.max, -exponentOf(element.max)), twoTo(1)), twoTo(-1))),
    element: () => compare(significand, sub(twoTo(1), twoTo(-element.m - 1))) >= 0n,
    sqrt: () => compare(mul(significand, significand), twoTo(1)) > 0n,
  }[carry]();
}

function tensorScale(amax, infinite, shared) {
  const none = { decode: ONE, encode: ONE, one: true }, { element, scale, rule, name } = shared, most = mul(scale.max, element.max);
  if (!shared.tensor || rule.kind !== "two levels") return none;
  const largest = rule.infinities === "saturate" && infinite ? null : amax;
  if (name === "torchao") {
    const factor = largest === null ? null : single(asDouble(div(largest, most))), usual = factor !== null && factor.n ? factor : ONE;
    return { decode: usual, encode: inverse(usual) };
  }
  const factor = largest !== null && largest.n ? smaller(single(ratio(most, largest)), LARGEST) : ZERO, usual = factor.n ? factor : ONE;
  return { decode: inverse(usual), encode: usual };
}

function powerScale(amax, { infinite, nan }, { element, scale, rule }) {
  const taken = rule.divides ? single(mul(amax, inverse(element.max))) : amax, bias = BigInt(scale.bias), top = scale.largest;
  let exponent = -(2 ** 20), beyond = infinite;
  if (taken.n) {
    exponent = exponentOf(taken);
    if (carries(scaled(taken, -exponent), element, rule.carry)) exponent += 1;
  }
  if (rule.carry === "element") beyond ||= exponent > 127;
  exponent -= rule.divides ? 0 : element.emax;
  let code = BigInt(exponent) + bias;
  beyond ||= code > top;
  const lowest = BigInt(rule.lowest) > scale.smallestNormal ? BigInt(rule.lowest) : scale.smallestNormal, highest = BigInt(rule.highest) < top ? BigInt(rule.highest) : top;
  code = beyond || code > highest ? highest : code < lowest ? lowest : code;
  const empty = amax.n === 0n && !beyond, void_ = (beyond && rule.infinities !== "saturate") || nan;
  if (empty && rule.zero_block === "smallest" && !void_ && code < scale.smallest) code = scale.smallest;
  return { code: void_ ? scale.nanCode : code, multiplier: twoTo(Number(bias - code)), void: void_ };
}

function otherScale(amax, { infinite, nan }, { element, scale, rule, name }, tensor) {
  const divided = single(ratio(amax, element.max));
  let wanted = divided;
  if (name === "torchao") wanted = smaller(larger(single(ratio(divided, tensor.decode)), twoTo(scale.emin)), scale.max);
  if (name === "te") wanted = smaller(single(product(amax, single(product(tensor.encode, inverse(element.max))))), scale.max);
  let code = wanted === null ? scale.largest : converted(finite(false, wanted), scale, SATURATING)[0];
  if (infinite) code = scale.largest;
  const empty = amax.n === 0n && !infinite, void_ = (infinite && rule.infinities !== "saturate") || nan;
  if (empty && rule.zero_block === "smallest" && !void_ && code < scale.smallest) code = scale.smallest;
  if (void_ && !scale.hasNan)
    refuse(`x holds blocks whose scale is NaN, which ${scale.name} has none of; accepted with nans='element' and infinities='saturate' or 'element'`);
  const value = void_ ? ONE : decode(code, scale).magnitude, over = (x, y) => single(ratio(x, y));
  let multiplier = over(ONE, value);
  if (name === "torchao") multiplier = over(inverse(tensor.decode), value);
  if (name === "te") multiplier = smaller(over(ONE, single(mul(value, tensor.decode))), LARGEST);
  return { code: void_ ? scale.nanCode : code, multiplier, void: void_ };
}

// -- one block --------------------------------------------------------------------------------------------------------

function quantised(given, shared, rules) {
  const { element, scale, rule } = shared, sizes = given.filter((x) => x.kind === "finite").map((x) => x.magnitude);
  const largest = sizes.reduce(larger, ZERO), special = { infinite: given.some((x) => x.kind === "infinite"), nan: given.some((x) => x.kind === "nan") };
  const tensor = tensorScale(largest, special.infinite, shared), amax = larger(largest, rule.minimum);
  const found = shared.power ? powerScale(amax, special, shared) : otherScale(amax, special, shared, tensor);
  const unit = found.void ? null : mul(decode(found.code, scale).magnitude, tensor.one ? ONE : tensor.decode);
  const rows = given.map((number) => {
    const zero = finite(number.negative, ZERO);
    let value = number, more = 0;
    if (found.void) [value, more] = [finite(false, ZERO), number.kind === "nan" ? 0 : INVALID];
    else if (number.kind === "infinite" && found.multiplier !== null && !found.multiplier.n) value = { ...zero, kind: "nan" };
    else if (number.kind === "finite" && number.magnitude.n) {
      const result = found.multiplier === null ? null : mul(number.magnitude, found.multiplier), size = shared.power ? result : single(result);
      value = size === null ? { ...zero, kind: "infinite" } : finite(number.negative, size);
      if (size !== null && !size.n) more = INEXACT | UNDERFLOW;
    }
    const [code, flags] = element.fixed ? encodeFixed(value, element, rules) : converted(value, element, rules);
    const read = element.fixed ? decodeFixed(code, element) : decode(code, element);
    const whole = found.void || read.kind !== "finite" ? { ...zero, kind: "nan" } : finite(read.negative, mul(read.magnitude, unit));
    return { number, code, element: read, value: whole, flags: flags | more };
  });
  return { ...found, tensor, unit, rows };
}

// -- states -----------------------------------------------------------------------------------------------------------

const rulesFor = (scale, data) => Object.keys(data.blocks.rules).filter((name) => (data.blocks.rules[name].kind === "power of two") === data.blocks.kinds[scale]);
const elements = (data) => [HERE, ...Object.keys(data.roster).filter((name) => data.roster[name].signed && data.roster[name].zero), ...Object.keys(data.blocks.fixed)];

function allowed(block, fmt, data) {
  const element = elementOf(block.element, fmt, data), scale = format(data.roster[block.scale]), levels = [element, { ...scale, p: scale.m + 1, low: scale.emin - scale.m }];
  if (!element.fixed && !(element.signed && element.zero)) return false;
  if (block.tensor_scale !== NONE) levels.push({ p: 24, low: FLOAT32.emin - 23, emax: FLOAT32.emax });
  const sum = (part) => levels.reduce((total, x) => total + part(x), 0);
  return sum((x) => x.p) <= 53 && sum((x) => x.low) >= -1074 && sum((x) => x.emax + 1) <= 1023;
}

function choicesOf(block, fmt, data) {
  const fit = (name, values) => values.filter((x) => allowed({ ...block, [name]: x }, fmt, data));
  return { element: fit("element", elements(data)), scale: fit("scale", Object.keys(data.roster)), tensor_scale: fit("tensor_scale", TENSOR_SCALES), rule: rulesFor(block.scale, data) };
}

export const fitting = (block, fmt, data) => (allowed(block, fmt, data) ? block : { ...block, element: "float4_e2m1fn" });

function checkSize(size) {
  return Number.isInteger(size) && size >= 1 && size <= MOST ? size : refuse(`size must be an integer from 1 to ${MOST}, got ${size}`);
}

function checkNumber(typed, checkTyped) {
  const text = checkTyped(typed).trim();
  return parse(text).code === undefined ? text : refuse(`${text} is a code, and elements have no value without a scale; accepted: numbers`);
}

export function checkBlock(block, fmt, data, checkTyped) {
  if (!block || typeof block !== "object" || Object.keys(block).sort().join() !== [...BLOCK_FIELDS].sort().join()) refuse(`block must be a dictionary of ${BLOCK_FIELDS.join(", ")}`);
  checkChoice("element", block.element, elements(data));
  checkChoice("scale", block.scale, Object.keys(data.roster));
  checkChoice("tensor_scale", block.tensor_scale, TENSOR_SCALES);
  checkSize(block.size);
  if (!allowed(block, fmt, data)) refuse("element, scale and tensor_scale do not go together");
  checkChoice("rule", block.rule, rulesFor(block.scale, data));
  if (!Array.isArray(block.numbers) || block.numbers.length !== MOST) refuse(`numbers must be a list of ${MOST}`);
  return { ...block, numbers: block.numbers.map((x) => checkNumber(x, checkTyped)) };
}

export function setBlock(block, fmt, { name, value, place }, data, checkTyped) {
  checkChoice("name", name, ["format", "fill", "number", ...BLOCK_FIELDS.slice(0, -1)]);
  if (name === "format") {
    checkChoice("format", value, Object.keys(data.blocks.roster));
    return { ...block, ...data.blocks.roster[value] };
  }
  if (name === "fill") {
    checkChoice("fill", value, Object.keys(data.blocks.fills));
    return { ...block, numbers: data.blocks.fills[value] };
  }
  if (name === "number") {
    checkChoice("place", place, [...Array(MOST).keys()]);
    return { ...block, numbers: block.numbers.with(place, checkNumber(value, checkTyped)) };
  }
  if (name === "size") return { ...block, size: checkSize(value) };
  checkChoice(name, value, choicesOf(block, fmt, data)[name]);
  const changed = { ...block, [name]: value };
  if (!rulesFor(changed.scale, data).includes(changed.rule)) changed.rule = data.blocks.defaults[changed.scale][changed.tensor_scale === NONE ? 0 : 1];
  return changed;
}

// -- views ------------------------------------------------------------------------------------------------------------

const signed = (value) => (value.magnitude.n ? real(value) : ZERO);

function fateOf({ number, value, flags }) {
  if (value.kind === "nan") return "NaN";
  if (flags & OVERFLOW || number.kind === "infinite") return "saturated";
  if (!value.magnitude.n && number.magnitude.n) return "vanished";
  return compare(signed(number), signed(value)) === 0n ? "exact" : "rounded";
}

function errorOf({ number, value }) {
  if (value.kind !== "finite" || number.kind !== "finite" || !number.magnitude.n) return "";
  const error = sub(div(real(value), real(number)), ONE);
  return error.n ? general(error, 3) : "0";
}

const height = (x) => add({ n: BigInt(exponentOf(x) - 1), d: 1n }, scaled(x, -exponentOf(x)));

function chartOf({ element }, { rows, unit }) {
  if (!unit.n) return null;
  const low = mul(element.smallest, unit), high = mul(element.max, unit), sizes = rows.filter((x) => x.number.kind === "finite").map((x) => x.number.magnitude);
  const bottom = floor(height(low)) - BigInt(BELOW), top = floor(height(sizes.reduce(larger, high))) + 1n;
  const at = (value) => {
    if (value.kind === "infinite") return Number(CHART_UNITS);
    if (!value.magnitude.n) return null;
    const place = floor(mul({ n: CHART_UNITS, d: 1n }, div(sub(height(value.magnitude), { n: bottom, d: 1n }), { n: top - bottom, d: 1n })));
    return Number(place < 0n ? 0n : place > CHART_UNITS ? CHART_UNITS : place);
  };
  const named = (x) => [shortText(finite(false, x)), at(finite(false, x))];
  return { low: named(low), high: named(high), marks: rows.map((x) => [at(x.number), at(x.value)]) };
}

export function blockView(block, fmt, data, rules) {
  const element = elementOf(block.element, fmt, data), scale = format(data.roster[block.scale]), given = data.blocks.rules[block.rule];
  const rule = { ...given, minimum: parse(given.minimum).value.magnitude }, { element: e, scale: s, tensor_scale: t, size } = block;
  const named = Object.keys(data.blocks.roster).find((x) => ["element", "scale", "tensor_scale", "size"].every((key) => data.blocks.roster[x][key] === block[key]));
  const shared = { element, scale, rule, name: block.rule, tensor: t !== NONE, power: data.blocks.kinds[s] };
  const share = add({ n: BigInt(element.width), d: 1n }, { n: BigInt(scale.width), d: BigInt(size) });
  const shown = {
    format: named || NONE,
    choices: { format: Object.keys(data.blocks.roster), ...choicesOf(block, fmt, data), fill: Object.keys(data.blocks.fills) },
    facts: [
      ["elements", `${element.name}: ${element.layout}, up to ${general(element.max, 9)}`],
      ["scales", `${scale.name}: ${scale.layout}, up to ${general(scale.max, 9)}`],
      ["bits an element", `${general(share, 6)}, its share of the scale included`],
      ["rule", rule.meaning],
      ["source", rule.source],
    ],
    rows: [],
    counts: [],
    chart: null,
    message: "",
  };
  const numbers = block.numbers.slice(0, size), values = numbers.map((x) => decode(converted(parse(x).value, FLOAT32, NEAREST)[0], FLOAT32));
  let found;
  try {
    found = quantised(values, shared, { ...rules, overflow: "saturate" });
  } catch (error) {
    if (error.constructor.name !== "Refused") throw error;
    return { ...shown, message: error.message };
  }
  const value = decode(found.code, scale), power = value.kind === "finite" && value.magnitude.n && compare(value.magnitude, twoTo(exponentOf(value.magnitude))) === 0n;
  const facts = [["this block's scale", `${codeText(found.code, scale)} = ${power ? `2^${exponentOf(value.magnitude)}` : shortText(value)}`]];
  if (!found.tensor.one) facts.push(["the tensor's scale", shortText(finite(false, found.tensor.decode))]);
  const fates = found.rows.map(fateOf);
  return {
    ...shown,
    facts: [...facts, ...shown.facts],
    counts: found.void ? [] : FATES.map((fate) => [fate, fates.filter((x) => x === fate).length]),
    rows: found.rows.map((x, i) => ({
      typed: numbers[i], given: shortText(x.number), code: codeText(x.code, element), element: shortText(x.element), value: shortText(x.value), error: errorOf(x),
      fate: fates[i], flags: flagText(x.flags),
    })),
    chart: found.void ? null : chartOf(shared, found),
    message: found.void ? "The scale is NaN, and so is the whole block." : "",
  };
}
