// States, events and views of the explorer, as softfloat.display.exploration has them. `data` is what Python wrote into the page:
// the roster, other names of its formats, accumulators and their rules for NaN.

import { ZERO, INEXACT, OVERFLOW, OPERATIONS, Refused, abs, add, bitFields, checkChoice, classOf, codeText, compare, converted, decimalText, decode, div,
  exactProduct, exactSum, exactText, exponentOf, finite, flagText, floor, format, formatFacts, formatNamed, infinityCode, infinite,
  inspectionRows, invalid, mul, nearestEven, negated, nextTo, operate, parse, propagated, quoted, real, refuse, round, shortText, general, sub, twoTo, typedText } from "./numbers.js";
import { HERE, blockView, checkBlock, fitting, setBlock } from "./blocks.js";

const ROUNDINGS = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic", "nearest_zero", "nearest_up", "up_or_down"];
const DRAWN = ["stochastic", "up_or_down"];
const SYMBOLS = { add: "+", sub: "−", mul: "×", div: "÷", remainder: "rem" };
const SETTINGS = ["rounding", "overflow", "tininess", "sr_bits", "random_bits", "operation"];
const MOST_PRODUCTS = 16, MOST_RANDOM_BITS = 52, LONGEST_TYPED = 200, WHOLE_TABLE = 8, SIDE = 2, LINE_UNITS = 10000n;
const NOTHING = { text: "", exact: "" };

export const copy = (x) => JSON.parse(JSON.stringify(x));

// -- accumulators -----------------------------------------------------------------------------------------------------

function offered(fmt, data) {
  const names = fmt.zero ? Object.keys(data.own) : [];
  return [...names, ...Object.keys(data.hardware).filter((name) => !data.hardware[name].inputs.length || data.hardware[name].inputs.some((x) => isRoster(fmt, x, data)))];
}

const sameFormat = (x, y) => JSON.stringify(x.parameters) === JSON.stringify(y.parameters);
const isRoster = (fmt, name, data) => fmt.name === name && sameFormat(fmt, format(data.roster[name]));

function accumulator(name, fmt, data) {
  const how = copy(data.own[name] || data.hardware[name]);
  const formatOf = (x) => (x === HERE ? fmt : format(typeof x === "string" ? data.roster[x] : x));
  const stage = (x) => x && { ...x, format: formatOf(x.format) };
  how.describe = how.describe.replaceAll(HERE, fmt.name);
  for (const key of ["running", "product", "store"]) how[key] = stage(how[key]);
  how.reduction = how.reduction.map((level) => ({ running: stage(level.running), store: stage(level.store) }));
  if (how.unpacked) how.unpacked = formatOf(how.unpacked);
  if (!["partials", "inputs"].includes(how.result)) how.result = formatOf(how.result);
  return how;
}

// -- sums, one rounding after another ---------------------------------------------------------------------------------

const FILL = { place: 0, x: finite(false, ZERO), y: finite(false, ZERO), exponent: 0 };
const finiteOf = (value) => (value && value.kind === "finite" ? real(value) : null);
const truncated = (x) => (x.n < 0n ? -(-x.n / x.d) : x.n / x.d);

function named(terms) {
  const places = terms.map((term) => term.place).filter(Boolean).sort((x, y) => x - y);
  if (!places.length) return "+0";
  if (places.length === 1) return `product ${places[0]}`;
  const run = places.every((place, i) => place === places[0] + i);
  return run ? `products ${places[0]} to ${places.at(-1)}` : `products ${places.join(", ")}`;
}

function readAs(code, fmt, daz) {
  const value = decode(code, fmt);
  return daz && value.kind === "finite" && compare(value.magnitude, twoTo(fmt.emin)) < 0n ? { ...value, magnitude: ZERO } : value;
}

class Sum {
  constructor(how, settings) {
    Object.assign(this, { how, settings, steps: [], flags: 0 });
  }

  rules(stage) {
    const rules = { rounding: this.settings.rounding, overflow: this.settings.overflow, tininess: this.settings.tininess, daz: false, ftz: false, policy: this.how.policy };
    for (const name of ["rounding", "overflow", "daz", "ftz", "tininess"]) if (stage[name] !== null) rules[name] = stage[name];
    if (rules.overflow === "nan" && !stage.format.hasNan) refuse(`overflow='nan' needs a NaN, ${stage.format.name} has none; accepted: 'infinity', 'saturate'`);
    return rules;
  }

  start(stage) {
    return { code: 0n, fmt: stage.format, daz: this.rules(stage).daz };
  }

  record(what, stage, exact, [code, raised], before = null) {
    const rules = this.rules(stage), fmt = stage.format;
    if (stage.always_infinite && raised & OVERFLOW) code = infinityCode((code & fmt.signBit) !== 0n, fmt, rules);
    this.flags |= raised;
    const value = finiteOf(decode(code, fmt)), lost = exact === null || value === null ? null : sub(exact, value);
    if (before === null || code !== before || raised) this.steps.push({ what, exact, code, fmt, lost, flags: raised });
    return { code, fmt, daz: rules.daz };
  }

  operate(what, stage, exact, values, before = null) {
    const [code, flags, value] = operate(exact, values, stage.format, this.rules(stage));
    return this.record(what, stage, finiteOf(value), [code, flags], before);
  }

  value(number) {
    return readAs(number.code, number.fmt, number.daz);
  }

  convert(what, stage, number) {
    const value = this.value(number);
    return this.record(what, stage, finiteOf(value), converted(value, stage.format, this.rules(stage)));
  }

  multiply(stage, term) {
    return this.operate(named([term]), stage, exactProduct, [term.x, term.y], term.place ? null : 0n);
  }

  add(what, stage, x, y, fill = false) {
    return this.operate(what, stage, exactSum, [this.value(x), this.value(y)], fill ? x.code : null);
  }

  meet(terms, running) {
    const how = this.how, stage = how.running, what = `+ ${named(terms)}`, fill = !terms.some((term) => term.place), before = fill ? running.code : null;
    if (how.product) return this.add(what, stage, running, this.multiply(how.product, terms[0]), fill);
    const z = this.value(running), rules = this.rules(stage), fmt = stage.format;
    if (terms.length === 1 && how.aligned === null) {
      const fused = (x, y, addend, options) => {
        const [product] = exactProduct(x, y);
        return product === null ? [null, 0] : exactSum(product, addend, options);
      };
      return this.operate(what, stage, fused, [terms[0].x, terms[0].y, z], before);
    }
    if (z.kind !== "finite") return this.record(what, stage, null, z.kind === "nan" ? propagated([z], fmt, rules) : round(infinite(z.negative), fmt, rules), before);
    const products = terms.map((term) => exactProduct(term.x, term.y)[0]), numbers = [...products, z].map(real);
    const total = numbers.reduce(add, ZERO);
    let kept = total, cut = false;
    if (how.aligned !== null && numbers.some((x) => x.n)) {
      const exponents = [...terms.map((term) => term.exponent), exponentIn(fmt, z)].filter((_, i) => numbers[i].n);
      const unit = twoTo(Math.max(...exponents, how.aligned.least ?? -Infinity) - how.aligned.terms);
      const parts = numbers.map((x) => mul({ n: truncated(div(x, unit)), d: 1n }, unit));
      kept = parts.reduce(add, ZERO);
      cut = parts.some((x, i) => compare(x, numbers[i]) !== 0n);
    }
    let negative = kept.n < 0n || (kept.n === 0n && rules.rounding === "toward_negative");
    if (kept.n === 0n && products.length === 1 && products[0].negative === z.negative) negative = z.negative;
    const [rounded, raised] = round(finite(negative, { n: abs(kept.n), d: kept.d }), fmt, rules);
    const code = how.positive_zeros && fmt.signed_zero && rounded === fmt.signBit ? 0n : rounded;
    return this.record(what, stage, total, [code, raised | (cut ? INEXACT : 0)], before);
  }

  section(terms) {
    const how = this.how, block = how.block || Math.max(terms.length, 1), order = how.order, placed = [];
    const greatest = (a, b) => (b ? greatest(b, a % b) : a), unit = (order.length * block) / greatest(order.length, block);
    const filled = [...terms, ...Array((unit - (terms.length % unit)) % unit).fill(FILL)];
    for (let first = 0; first < filled.length; first += order.length) for (const i of order) placed.push(filled[first + i]);
    let total = this.start(how.store || how.running);
    for (let done = block; done <= placed.length; done += block) {
      total = this.meet(placed.slice(done - block, done), total);
      if (how.store && (done % how.store_every === 0 || done === placed.length)) total = this.convert("stored", how.store, total);
    }
    return total;
  }

  tree(terms) {
    const how = this.how, sums = [];
    const merge = () => {
      const [left, right] = sums.splice(-2);
      const sum = this.add(`sum of ${left.first} to ${right.last}`, how.running, left.sum, right.sum);
      sums.push({ size: left.size + right.size, first: left.first, last: right.last, sum });
    };
    for (const term of terms) {
      sums.push({ size: 1, first: term.place, last: term.place, sum: this.multiply(how.product, term) });
      while (sums.length > 1 && sums.at(-2).size === sums.at(-1).size) merge();
    }
    while (sums.length > 1) merge();
    const total = sums[0].sum;
    return sameFormat(total.fmt, how.running.format) ? total : this.convert("converted", how.running, total);
  }
}

const exponentIn = (fmt, x) => (x.magnitude.n ? Math.max(exponentOf(x.magnitude), fmt.emin) : fmt.emin);

function sumInSteps(a, b, fmt, how, settings) {
  const total = new Sum(how, settings), wide = how.unpacked || fmt;
  const daz = how.daz !== null ? how.daz : total.rules(how.product || how.running).daz;
  const terms = a.map((code, i) => {
    const x = readAs(code, fmt, daz), y = readAs(b[i], fmt, daz);
    return { place: i + 1, x, y, exponent: exponentIn(wide, x) + exponentIn(wide, y) };
  });
  const exact = a.map((code, i) => mul(real(decode(code, fmt)), real(decode(b[i], fmt)))).reduce(add, ZERO);
  let found;
  if (how.tree) found = total.tree(terms);
  else if (how.reduction.length) {
    const [level] = how.reduction;
    found = total.start(level.store || level.running);
    for (let first = 0, place = 1; first < terms.length; first += how.segment, place += 1)
      found = total.add(`+ segment ${place}`, level.running, found, total.section(terms.slice(first, first + how.segment)));
    if (level.store) found = total.convert("stored", level.store, found);
  } else found = total.section(terms);
  const output = how.result === "partials" ? found.fmt : how.result === "inputs" ? fmt : how.result;
  if (!sameFormat(output, found.fmt)) {
    const open = { rounding: null, overflow: null, daz: null, ftz: null, tininess: null, always_infinite: false };
    found = total.convert("converted", { ...open, format: output }, found);
  }
  const value = finiteOf(decode(found.code, found.fmt));
  return { ...found, flags: total.flags, exact, lost: value === null ? null : sub(exact, value), steps: total.steps };
}

// -- states -----------------------------------------------------------------------------------------------------------

const choices = (fmt) => ({
  rounding: ROUNDINGS,
  overflow: ["infinity", "saturate", "nan"].filter((x) => x !== "nan" || fmt.hasNan),
  tininess: ["after", "before"],
  operation: Object.keys(SYMBOLS),
});

function checkTyped(typed) {
  if (typeof typed !== "string" || typed.length > LONGEST_TYPED || /[^\x00-\x7f]/.test(typed)) refuse(`a number must be text of at most ${LONGEST_TYPED} plain characters`);
  return typed;
}

function checkCode(code, fmt) {
  const whole = typeof code === "bigint" || Number.isInteger(code);
  if (!whole || code < 0 || BigInt(code) >> BigInt(fmt.width)) {
    const shown = whole ? (code < 0 ? "-" : "") + "0x" + abs(BigInt(code)).toString(16) : quoted(code);
    refuse(`${fmt.name} has no code ${shown}; accepted: 0x0 to 0x${((1n << BigInt(fmt.width)) - 1n).toString(16)}`);
  }
  return BigInt(code);
}

function checkSetting(name, value, state) {
  const accepted = choices(format(state.format))[name];
  if (accepted) return checkChoice(name, value, accepted);
  const [low, high] = name === "sr_bits" ? [1, MOST_RANDOM_BITS] : [0, 2 ** state.sr_bits - 1];
  return Number.isInteger(value) && value >= low && value <= high ? undefined : refuse(`${name} must be an integer from ${low} to ${high}, got ${quoted(value)}`);
}

const rulesOf = (state, rounding = state.rounding) => ({ rounding, overflow: state.overflow, tininess: state.tininess, sr_bits: state.sr_bits, random_bits: state.random_bits });

function encoded(typed, state, fmt = format(state.format)) {
  const number = parse(checkTyped(typed));
  return number.code === undefined ? converted(number.value, fmt, rulesOf(state))[0] : checkCode(number.code, fmt);
}

const typedOperand = (typed, state) => ({ typed: typed.trim(), code: Number(encoded(typed, state)) });

export function checkState(given, data) {
  const expected = ["format", ...SETTINGS, "operands", "dot", "block"], has = (x, keys) => x && typeof x === "object" && !Array.isArray(x) && Object.keys(x).sort().join() === [...keys].sort().join();
  if (!has(given, expected)) refuse(`a state must be a dictionary of ${expected.join(", ")}`);
  const state = copy(given), fields = Object.keys(format({ name: "x", exponent_bits: 4, mantissa_bits: 3 }).parameters);
  if (!has(state.format, fields)) refuse(`format must be a dictionary of ${fields.join(", ")}`);
  const fmt = format(state.format);
  for (const name of SETTINGS) checkSetting(name, state[name], state);
  if (!Array.isArray(state.operands) || state.operands.length !== 2) refuse("operands must be a list of two");
  for (const operand of state.operands) {
    if (!has(operand, ["typed", "code"])) refuse("each operand must be a dictionary of typed and code");
    checkCode(operand.code, fmt);
    encoded(operand.typed, state);
  }
  if (!has(state.dot, ["a", "b", "accumulators"])) refuse("dot must be a dictionary of a, b and accumulators");
  const { a, b } = state.dot;
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length || a.length < 1 || a.length > MOST_PRODUCTS) refuse(`a and b of dot must be lists of the same length, 1 to ${MOST_PRODUCTS}`);
  [...a, ...b].forEach((typed) => parse(checkTyped(typed)));
  if (!Array.isArray(state.dot.accumulators) || state.dot.accumulators.length !== 2) refuse("accumulators must be a list of two names");
  for (const name of state.dot.accumulators) checkChoice("accumulator", name, offered(fmt, data));
  state.block = checkBlock(state.block, fmt, data, checkTyped);
  return state;
}

// -- events -----------------------------------------------------------------------------------------------------------

const range = (n) => [...Array(n).keys()];

function operandOf(state, event) {
  const place = event.operand ?? 0;
  checkChoice("operand", place, [0, 1]);
  return state.operands[place];
}

const EVENTS = {
  flip(state, event) {
    const operand = operandOf(state, event), fmt = format(state.format);
    checkChoice("bit", event.bit, range(fmt.width));
    operand.code = Number(BigInt(operand.code) ^ (1n << BigInt(event.bit)));
  },
  step(state, event) {
    const operand = operandOf(state, event);
    checkChoice("by", event.by, [-1, 1]);
    operand.code = Number(nextTo(BigInt(operand.code), format(state.format), event.by));
  },
  code(state, event) {
    operandOf(state, event).code = Number(checkCode(event.value, format(state.format)));
  },
  type(state, event) {
    Object.assign(operandOf(state, event), typedOperand(event.value, state));
  },
  set(state, event) {
    checkChoice("name", event.name, SETTINGS);
    const follows = state.operands.map((x) => BigInt(x.code) === encoded(x.typed, state));
    checkSetting(event.name, event.value, state);
    state[event.name] = event.value;
    state.random_bits = Math.min(state.random_bits, 2 ** state.sr_bits - 1);
    state.operands.forEach((operand, i) => follows[i] && (operand.code = Number(encoded(operand.typed, state))));
  },
  format(state, event, data) {
    const old = format(state.format), fmt = typeof event.value === "string" ? formatNamed(event.value, data) : format(event.value);
    const texts = state.operands.map(({ typed, code }) => {
      const follows = parse(typed).code === undefined && BigInt(code) === encoded(typed, state);
      return follows ? typed : typedText(decode(BigInt(code), old));
    });
    state.format = fmt.parameters;
    if (!choices(fmt).overflow.includes(state.overflow)) state.overflow = "infinity";
    state.operands = texts.map((text) => typedOperand(text, state));
    const names = offered(fmt, data);
    state.dot.accumulators = state.dot.accumulators.map((x) => (names.includes(x) ? x : names[0]));
    state.block = fitting(state.block, fmt, data);
  },
  products(state, event) {
    const count = event.value;
    if (!Number.isInteger(count) || count < 1 || count > MOST_PRODUCTS) refuse(`products must be an integer from 1 to ${MOST_PRODUCTS}, got ${quoted(count)}`);
    for (const column of ["a", "b"]) state.dot[column] = [...state.dot[column], ...Array(MOST_PRODUCTS).fill("1")].slice(0, count);
  },
  product(state, event) {
    checkChoice("column", event.column, ["a", "b"]);
    checkChoice("place", event.place, range(state.dot[event.column].length));
    parse(checkTyped(event.value));
    state.dot[event.column][event.place] = event.value.trim();
  },
  accumulator(state, event, data) {
    checkChoice("place", event.place, [0, 1]);
    checkChoice("accumulator", event.value, offered(format(state.format), data));
    state.dot.accumulators[event.place] = event.value;
  },
  block(state, event, data) {
    state.block = copy(setBlock(state.block, format(state.format), event, data, checkTyped));
  },
  restore: (state, event, data) => checkState(event.value, data),
};

export function act(state, event, data) {
  checkChoice("do", event.do, Object.keys(EVENTS));
  const changed = copy(state);
  return EVENTS[event.do](changed, event, data) || changed;
}

// -- views ------------------------------------------------------------------------------------------------------------

const valueText = (code, fmt) => shortText(decode(code, fmt));
const element = (code, fmt) => ({ code: codeText(code, fmt), value: valueText(code, fmt) });
const shown = (code, fmt) => ({ ...element(code, fmt), bits: bitFields(code, fmt), exact: decimalText(decode(code, fmt)), class: classOf(code, fmt) });

function modes(state, rounded, fmt) {
  return ROUNDINGS.map((rounding) => {
    const [code, flags] = rounded(rulesOf(state, rounding));
    return { rounding, ...element(code, fmt), flags: flagText(flags), chosen: rounding === state.rounding };
  });
}

function numberView(state, fmt) {
  const { typed, code: asNumber } = state.operands[0], code = BigInt(asNumber), number = parse(typed), rules = rulesOf(state);
  const same = encoded(typed, state) === code, isCode = number.code !== undefined;
  const given = same && !isCode ? { typed, value: number.value, rounding: state.rounding, flags: converted(number.value, fmt, rules)[1] } : null;
  return { ...shown(code, fmt), rows: inspectionRows(code, fmt, given), typed, same, modes: isCode ? [] : modes(state, (x) => converted(number.value, fmt, x), fmt) };
}

function lineView(operand, fmt) {
  const code = BigInt(operand.code), around = [code];
  if (decode(code, fmt).kind === "nan") return null;
  for (const step of [-1, 1]) {
    let here = code;
    for (let i = 0; i < SIDE; i += 1) {
      const there = nextTo(here, fmt, step);
      if (there === here) break;
      here = there;
      if (step < 0) around.unshift(here);
      else around.push(here);
    }
  }
  const codes = [...new Set(around)].filter((x) => decode(x, fmt).kind === "finite"), values = codes.map((x) => real(decode(x, fmt)));
  const [low, high] = [values[0], values.at(-1)];
  if (compare(low, high) === 0n) return null;
  const at = (x) => Number(floor(div(mul({ n: LINE_UNITS, d: 1n }, sub(x, low)), sub(high, low))));
  const marks = codes.map((x, i) => ({ ...element(x, fmt), number: Number(x), at: at(values[i]) }));
  const ties = values.slice(1).map((y, i) => {
    const tie = div(add(values[i], y), { n: 2n, d: 1n });
    return { ...exactText(tie), at: at(tie) };
  });
  const number = parse(operand.typed).value, inside = number && number.kind === "finite" && compare(low, real(number)) <= 0n && compare(real(number), high) <= 0n;
  return { marks, ties, typed: inside ? at(real(number)) : null, current: codeText(code, fmt) };
}

const tables = new Map();

function tableView(fmt) {
  const key = JSON.stringify(fmt.parameters);
  if (!tables.has(key)) {
    const rows = range(2 ** fmt.width).map((x) => {
      const code = BigInt(x), value = decode(code, fmt), exact = decimalText(value);
      return { code: codeText(code, fmt), text: exact.length <= 7 ? exact : general(real(value), 3), exact, class: classOf(code, fmt) };
    });
    tables.set(key, rows);
  }
  return tables.get(key);
}

function exactResult(operation, x, y) {
  if (x.kind !== "finite" || y.kind !== "finite") return null;
  [x, y] = [real(x), real(y)];
  if ((operation === "div" || operation === "remainder") && !y.n) return null;
  if (operation === "remainder") return sub(x, mul({ n: nearestEven(div(x, y)), d: 1n }, y));
  return { add, sub, mul, div }[operation](x, y);
}

function arithmeticView(state, fmt) {
  const operation = state.operation, codes = state.operands.map((x) => BigInt(x.code)), values = codes.map((x) => decode(x, fmt));
  const exact = exactResult(operation, ...values), [first, second] = codes.map((x) => shown(x, fmt)), none = "no finite number";
  return {
    operation,
    symbol: SYMBOLS[operation],
    operands: [first, { ...second, typed: state.operands[1].typed }],
    exact: exact ? exactText(exact) : { text: none, exact: none },
    modes: modes(state, (rules) => operate(OPERATIONS[operation], values, fmt, rules), fmt),
  };
}

function sumView(name, columns, state, fmt, data) {
  const how = accumulator(name, fmt, data), result = { accumulator: name, describe: how.describe, note: how.note, message: "" };
  const texts = (x) => (x === null ? NOTHING : exactText(x)), row = (x) => ({ ...element(x.code, x.fmt), format: x.fmt.name, flags: flagText(x.flags) });
  try {
    const found = sumInSteps(columns.a, columns.b, fmt, how, state);
    const steps = found.steps.map((step) => ({ what: step.what, exact: texts(step.exact), lost: texts(step.lost), ...row(step) }));
    return { ...result, ...row(found), exact: exactText(found.exact), lost: texts(found.lost), steps };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { ...result, message: error.message };
  }
}

function dotView(state, fmt, data) {
  const columns = { a: [], b: [] }, nearest = { ...state, rounding: "nearest_even", overflow: "infinity" };
  let message = "";
  for (const column of ["a", "b"]) {
    state.dot[column].forEach((typed, i) => {
      let code = 0n;
      try {
        code = encoded(typed, nearest, fmt);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        message ||= `${column} of product ${i + 1}: ${error.message}`;
      }
      if (decode(code, fmt).kind !== "finite") message ||= `${column} of product ${i + 1} must be a finite number in ${fmt.name}, got ${typed}`;
      columns[column].push(code);
    });
  }
  if (DRAWN.includes(state.rounding)) message = `${state.rounding} rounding draws a number for every step of a sum, from a seed: choose another mode`;
  const elements = (column) => columns[column].map((code, i) => ({ typed: state.dot[column][i], ...element(code, fmt) }));
  const sums = message ? [] : state.dot.accumulators.map((name) => sumView(name, columns, state, fmt, data));
  return { a: elements("a"), b: elements("b"), message, chosen: state.dot.accumulators, sums };
}

export function view(state, data) {
  const fmt = format(state.format);
  return {
    state,
    format: { name: fmt.name, layout: fmt.layout, facts: formatFacts(fmt), fields: bitFields(0n, fmt).map(([name, digits]) => [name, digits.length]) },
    choices: { formats: Object.keys(data.roster), ...choices(fmt), accumulators: offered(fmt, data) },
    number: numberView(state, fmt),
    line: lineView(state.operands[0], fmt),
    table: fmt.width <= WHOLE_TABLE ? tableView(fmt) : [],
    arithmetic: arithmeticView(state, fmt),
    dot: dotView(state, fmt, data),
    block: blockView(state.block, fmt, data, rulesOf(state)),
  };
}
