// Draws a view, and sends what the reader does as events. No arithmetic here: views are made elsewhere, in Python or in model.js.

const TITLES = { nearest_even: "nearest, ties to even", nearest_away: "nearest, ties away", toward_zero: "toward zero", toward_positive: "toward +∞",
  toward_negative: "toward −∞", to_odd: "to odd", stochastic: "stochastic", nearest_zero: "nearest, ties to zero", nearest_up: "nearest, ties up",
  up_or_down: "up or down", infinity: "infinity", saturate: "saturate", nan: "NaN", after: "after rounding",
  before: "before rounding", add: "a + b", sub: "a − b", mul: "a × b", div: "a ÷ b", remainder: "a rem b", "{format}": "the format above", choose: "choose…" };
const SWITCHES = [["signed", "sign bit"], ["subnormals", "subnormals"], ["infinities", "infinities"], ["zero", "zero"]];

// -- elements ---------------------------------------------------------------------------------------------------------

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : typeof value === "object" ? JSON.stringify(value) : value);
  }
  node.append(...children.flat(Infinity).filter((x) => x !== null && x !== undefined && x !== false));
  return node;
}

// Makes `old` what `next` is, keeping the nodes that stand: focus and half-typed text stay where they are.
function morph(old, next) {
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName) {
    old.replaceWith(next);
    return;
  }
  if (old.nodeType !== 1) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  if (old.dataset.keep !== undefined) {
    if (old.dataset.keep !== next.dataset.keep) renew(old, next);
    return;
  }
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const kept = [...old.childNodes], wanted = [...next.childNodes];
  wanted.forEach((child, i) => (i < kept.length ? morph(kept[i], child) : old.append(child)));
  kept.slice(wanted.length).forEach((child) => child.remove());
  refresh(old);
}

// Has a control show what is so: what was typed there may have been refused.
function refresh(node) {
  if (node.nodeName === "SELECT") node.value = node.dataset.value;
  if (node.nodeName === "INPUT" && node.getRootNode().activeElement !== node && node.dataset.change) node.value = node.getAttribute("value");
  if (node.nodeName === "TEXTAREA" && node.getRootNode().activeElement !== node) node.value = node.textContent;
}

// Puts `next` in the place of `old`; what had the focus hands it to what is in its place.
function renew(old, next) {
  const inside = (x) => [...x.querySelectorAll("button, input, select")], place = inside(old).indexOf(old.getRootNode().activeElement);
  old.replaceWith(next);
  if (place >= 0) inside(next)[place]?.focus();
}

const section = (name, title, ...children) => h("section", { class: `sf-${name}`, "aria-labelledby": `sf-title-${name}` }, h("h2", { id: `sf-title-${name}` }, title), ...children);
const button = (text, event, attributes = {}) => h("button", { type: "button", "data-event": event, ...attributes }, text);
const word = (x) => TITLES[x] || x;

function choice(label, event, options, value) {
  const select = h("select", { "data-change": event, "data-value": value }, options.map((x) => h("option", { value: x, selected: x === value }, word(x))));
  select.value = value;
  return h("label", {}, h("span", {}, label), select);
}

function entry(label, event, value, attributes = {}) {
  return h("label", {}, h("span", {}, label), h("input", { type: "text", "data-change": event, value, autocomplete: "off", spellcheck: "false", ...attributes }));
}

const number = (x) => h("span", { title: x.exact === x.text ? null : x.exact }, x.text);

// A table that scrolls where it is too wide; `rows` of cells, the first a heading.
function table(caption, headings, rows, marked = () => false) {
  const head = headings.length ? h("thead", {}, h("tr", {}, headings.map((x) => h("th", { scope: "col" }, x)))) : null;
  const body = rows.map(([first, ...rest], i) =>
    h("tr", { class: marked(i) && "sf-chosen" }, h("th", { scope: "row" }, first, marked(i) ? h("span", { class: "sf-unseen" }, " (chosen)") : null), rest.map((x) => h("td", {}, x))));
  return h("div", { class: "sf-scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", {}, h("caption", {}, caption), head, h("tbody", {}, body)));
}

// -- parts ------------------------------------------------------------------------------------------------------------

function ownFormat(view) {
  const given = view.state.format, field = (name, label, attributes) => h("label", {}, h("span", {}, label), h("input", { name, type: "number", value: given[name], ...attributes }));
  const kinds = [["ieee", "IEEE 754: top exponent"], ["fn", "fn: all ones only"], ["fnuz", "fnuz: in place of −0"], ["none", "none"]];
  return h("details", {}, h("summary", {}, "A format of your own"),
    h("form", { class: "sf-fields", "data-keep": given, "data-format": true },
      h("label", {}, h("span", {}, "name"), h("input", { name: "name", value: given.name, autocomplete: "off" })),
      field("exponent_bits", "exponent bits", { min: 1, max: 8 }), field("mantissa_bits", "fraction bits", { min: 0, max: 23 }),
      field("bias", "bias (empty: usual)", {}),
      h("label", {}, h("span", {}, "NaN"), h("select", { name: "nan" }, kinds.map(([x, text]) => h("option", { value: x, selected: given.nan === x }, text)))),
      SWITCHES.map(([name, text]) => h("label", { class: "sf-switch" }, h("input", { type: "checkbox", name, checked: given[name] }), h("span", {}, text))),
      h("button", { type: "submit" }, "Use this format")));
}

function draftedFormat(view) {
  const width = widthOf(view), precision = view.state.format.mantissa_bits + 1, signed = view.state.format.signed;
  const field = (name, label, value, max) => h("label", {}, h("span", {}, label), h("input", { name, type: "number", value, min: 1, max }));
  const box = (name, label, checked) => h("label", { class: "sf-switch" }, h("input", { type: "checkbox", name, checked }), h("span", {}, label));
  return h("details", {}, h("summary", {}, "A format of IEEE P3109 (draft)"),
    h("form", { class: "sf-fields", "data-keep": [width, precision, signed, view.state.format.infinities], "data-drafted": true },
      field("k", "k, bits", width, 32), field("p", "p, precision", precision, 24), box("signed", "signed", signed), box("extended", "extended (with infinities)", view.state.format.infinities),
      h("button", { type: "submit" }, "Use P3109's format")));
}

function controls(view) {
  const { state, choices, format } = view, known = choices.formats.includes(format.name), drawn = ["stochastic", "up_or_down"].includes(state.rounding);
  const set = (name) => ({ do: "set", name });
  return section("controls", "Format and rounding",
    h("div", { class: "sf-fields" },
      choice("format", { do: "format" }, known ? choices.formats : [format.name, ...choices.formats], format.name),
      choice("rounding", set("rounding"), choices.rounding, state.rounding),
      choice("overflow", set("overflow"), choices.overflow, state.overflow),
      choice("tininess", set("tininess"), choices.tininess, state.tininess),
      entry("random bits", set("sr_bits"), state.sr_bits, { "data-number": true, disabled: !drawn, inputmode: "numeric", size: 4 }),
      entry("random number", set("random_bits"), state.random_bits, { "data-number": true, disabled: !drawn, inputmode: "numeric", size: 10 })),
    h("div", { class: "sf-fold" },
      h("details", {}, h("summary", {}, `About ${format.name}`), table(`Format ${format.name}`, [], format.facts)),
      ownFormat(view), draftedFormat(view)));
}

function bitButtons(shown, width, operand, called) {
  let place = width;
  const groups = shown.bits.map(([name, digits]) => {
    const buttons = [...digits].map((digit) => {
      place -= 1;
      const label = `${digit}, bit ${place} of ${called}, ${name}`;
      return button(digit, { do: "flip", bit: place, operand }, { "aria-pressed": digit === "1" ? "true" : "false", "aria-label": label, title: `bit ${place}, ${name}` });
    });
    return h("span", { class: `sf-field sf-${name}` }, h("span", { class: "sf-row" }, buttons), h("span", { class: "sf-name", "aria-hidden": "true" }, name));
  });
  return h("div", { class: "sf-bits", role: "group", "aria-label": `bits of ${called}`, "data-roving": `bits${operand}` }, groups);
}

function operandRow(shown, typed, operand, called, width) {
  return h("div", { class: "sf-operand" },
    h("div", { class: "sf-fields" },
      entry(`${called}: number or code`, { do: "type", operand }, typed, { class: "sf-typed", placeholder: "0.1  0x1.8p-3  0x1d" }),
      h("span", { class: "sf-steps", role: "group", "aria-label": `step ${called}` },
        button("−1 ulp", { do: "step", by: -1, operand }), button("+1 ulp", { do: "step", by: 1, operand }))),
    bitButtons(shown, width, operand, called));
}

const MODES = ["rounding", "code", "value", "flags"];
const whole = (text) => h("span", { class: "sf-word" }, text);
const modeRows = (modes) => modes.map((x) => [word(x.rounding), h("code", {}, x.code), x.value, whole(x.flags)]);

function line(view) {
  const found = view.line;
  if (!found) return h("p", { class: "sf-note" }, "No number line: this code has no finite neighbours.");
  const left = (at) => `left:${at / 100}%`;
  const marks = found.marks.map((mark, i) => h("span", { class: `sf-mark sf-level${i % 2}`, style: left(mark.at) },
    button(mark.code, { do: "code", value: mark.number, operand: 0 }, { "aria-current": mark.code === found.current && "true", title: mark.value, "aria-label": `${mark.code}, ${mark.value}` })));
  const ties = found.ties.map((tie) => h("span", { class: "sf-tie", style: left(tie.at), title: `tie ${tie.exact}` }, h("span", { "aria-hidden": "true" }, "tie")));
  const typed = found.typed === null ? null : h("span", { class: "sf-given", style: left(found.typed), title: view.number.typed }, h("span", {}, "▼"), h("span", { class: "sf-unseen" }, `the number ${view.number.typed}`));
  const between = found.marks.map((mark, i) => [h("code", {}, mark.code), mark.value, i < found.ties.length ? number(found.ties[i]) : ""]);
  return h("div", {}, h("div", { class: "sf-line", role: "group", "aria-label": "number line", "data-roving": "line" }, typed, ties, marks),
    h("details", {}, h("summary", {}, "The line's numbers"), table("Neighbours, and the ties above each", ["code", "value", "tie above"], between, (i) => found.marks[i].code === found.current)));
}

function numberSection(view) {
  const found = view.number;
  const changed = found.same ? null : h("p", { class: "sf-note" }, "The bits were changed since a number was typed.");
  return section("number", "Number", operandRow(found, found.typed, 0, "a", widthOf(view)), changed, line(view),
    h("div", { class: "sf-columns" },
      table(`${view.format.name} ${view.format.layout}`, [], found.rows),
      found.modes.length ? table(`${found.typed} in each rounding mode`, MODES, modeRows(found.modes), (i) => found.modes[i].chosen) : null));
}

const widthOf = (view) => view.format.fields.reduce((sum, [, width]) => sum + width, 0);

function arithmetic(view) {
  const found = view.arithmetic, [a, b] = found.operands;
  return section("arithmetic", "Two operands",
    operandRow(b, b.typed, 1, "b", widthOf(view)),
    h("div", { class: "sf-fields" }, choice("operation", { do: "set", name: "operation" }, view.choices.operation, found.operation)),
    h("p", { class: "sf-equation" }, h("span", { title: a.exact }, a.value), ` ${found.symbol} `, h("span", { title: b.exact }, b.value), " = ", h("strong", {}, number(found.exact)), " exactly"),
    table("The result in each rounding mode", MODES, modeRows(found.modes), (i) => found.modes[i].chosen));
}

function sum(found) {
  if (found.message) return h("div", { class: "sf-sum" }, h("h3", {}, found.accumulator), h("p", { class: "sf-note" }, found.message));
  const rows = found.steps.map((x) => [x.what, number(x.exact), h("span", {}, x.value, " ", h("code", {}, x.code)), number(x.lost), whole(x.flags)]);
  return h("div", { class: "sf-sum" }, h("h3", {}, found.accumulator), h("p", {}, found.describe, found.note ? ` (${found.note})` : ""),
    h("p", { class: "sf-equation" }, h("strong", {}, found.value), ` in ${found.format}, `, h("code", {}, found.code), "; exactly ", number(found.exact), ", lost ", number(found.lost), `; ${found.flags}`),
    table(`Steps of ${found.accumulator}`, ["step", "exact", "rounded", "lost", "flags"], rows));
}

function dot(view) {
  const found = view.dot, rows = found.a.map((x, i) => [`${i + 1}`, ...["a", "b"].map((column) => {
    const element = found[column][i];
    return h("span", { class: "sf-element" }, entry(`${column} of product ${i + 1}`, { do: "product", column, place: i }, element.typed, { size: 8 }),
      element.value === element.typed ? null : h("span", { class: "sf-becomes" }, `→ ${element.value}`));
  })]);
  return section("dot", "Dot product",
    h("div", { class: "sf-fields" },
      entry("products", { do: "products" }, found.a.length, { "data-number": true, inputmode: "numeric", size: 4 }),
      [0, 1].map((place) => choice(`accumulator ${place + 1}`, { do: "accumulator", place }, view.choices.accumulators, found.chosen[place]))),
    found.message ? h("p", { class: "sf-note", role: "status" }, found.message) : null,
    table("Products; elements are rounded to nearest even", ["product", "a", "b"], rows),
    h("div", { class: "sf-columns sf-sums" }, found.sums.map(sum)));
}

// Magnitudes on a logarithmic axis: a stick is a number, a bar what its element stands for; between the lines lie the elements.
function chart(found) {
  const { low, high, marks } = found.chart, at = (x) => `bottom:${x / 100}%`;
  const edge = ([text, place], name) => h("span", { class: "sf-edge", style: at(place) }, h("span", {}, `${name} ${text}`));
  const column = ([given, value], i) => {
    const { typed, value: text, fate } = found.rows[i], left = `left:${(100 * (i + 0.5)) / marks.length}%`;
    return h("span", { class: `sf-stick sf-${fate}`, style: left, title: `${typed} → ${text}, ${fate}` },
      given === null ? null : h("span", { class: "sf-size", style: `height:${given / 100}%` }),
      value === null ? null : h("span", { class: "sf-became", style: at(value) }),
      fate === "saturated" ? h("span", { class: "sf-sign-of", style: at(given) }, "▲") : fate === "vanished" ? h("span", { class: "sf-sign-of", style: "bottom:0" }, "○") : null);
  };
  const said = found.counts.map(([fate, n]) => `${n} ${fate}`).join(", ");
  return h("div", {}, h("div", { class: "sf-chart", role: "img", "aria-label": `Magnitudes of ${marks.length} numbers, logarithmic: ${said}` },
    edge(high, "largest"), edge(low, "smallest"), marks.map(column)),
  h("p", {}, "Sticks are numbers, bars what their elements stand for; elements lie between the dashed lines. ▲ saturated, ○ vanished."));
}

function block(view) {
  const found = view.block, state = view.state.block, set = (name) => ({ do: "block", name });
  const rows = found.rows.map((x, i) => [`${i + 1}`, h("span", { class: "sf-element" }, entry(`number ${i + 1}`, { do: "block", name: "number", place: i }, x.typed, { size: 9 })),
    h("code", {}, x.code), x.element, x.value, x.error, x.fate === "saturated" || x.fate === "vanished" ? h("strong", {}, whole(x.fate)) : whole(x.fate), whole(x.flags)]);
  const known = found.format === "none" ? ["none", ...found.choices.format] : found.choices.format;
  return section("block", "A block with one scale",
    h("div", { class: "sf-fields" },
      choice("block format", set("format"), known, found.format), choice("element", set("element"), found.choices.element, state.element),
      choice("scale", set("scale"), found.choices.scale, state.scale), choice("tensor scale", set("tensor_scale"), found.choices.tensor_scale, state.tensor_scale),
      choice("scale rule", set("rule"), found.choices.rule, state.rule),
      entry("elements", set("size"), state.size, { "data-number": true, inputmode: "numeric", size: 4 }),
      choice("fill with", set("fill"), ["choose", ...found.choices.fill], "choose")),
    found.message ? h("p", { class: "sf-note", role: "status" }, found.message) : null,
    found.counts.length ? h("p", { class: "sf-equation" }, found.counts.map(([fate, n], i) => [i ? ", " : "", h("strong", {}, `${n}`), ` ${fate}`])) : null,
    found.chart ? chart(found) : null,
    table("The block", [], found.facts),
    rows.length ? table("Numbers of the block, and their elements", ["place", "number", "code", "element", "value", "relative error", "fate", "flags"], rows) : null);
}

// The table stays as it is while the format does; `settle` marks the current code. `standing` is the table that is there.
function codes(view, standing) {
  if (!view.table.length) return section("codes", "All codes", h("p", { class: "sf-note" }, "Shown for formats of at most 8 bits."));
  const columns = Math.min(16, view.table.length), current = view.table.findIndex((x) => x.code === view.number.code);
  const attributes = { class: "sf-grid", "data-keep": view.state.format };
  const grid = standing && standing.dataset.keep === JSON.stringify(attributes["data-keep"]) ? h("table", attributes) : h("table", attributes, ...grown(view.table, columns));
  return section("codes", "All codes", h("p", {}, "Subnormal numbers are in italics, infinities and NaN are framed."),
    h("div", { class: "sf-scroll", "data-roving": "codes", "data-columns": columns, "data-current": current }, grid));
}

function grown(rows, columns) {
  const kind = (x) => x.class.replace(/^(positive|negative|quiet|signaling)/, "").toLowerCase(), lines = [];
  const cell = (x, code) => h("td", { class: `sf-kind-${kind(x)}` },
    button(x.text, { do: "code", value: code, operand: 0 }, { title: `${x.code} = ${x.exact}, ${x.class}`, "aria-label": `${x.code}, ${x.text}, ${x.class}` }));
  for (let first = 0; first < rows.length; first += columns)
    lines.push(h("tr", {}, h("th", { scope: "row" }, `${rows[first].code.slice(0, -1)}_`), rows.slice(first, first + columns).map((x, i) => cell(x, first + i))));
  const head = h("tr", {}, h("td", {}), [...Array(columns).keys()].map((x) => h("th", { scope: "col" }, `_${x.toString(16)}`)));
  return [h("caption", {}, "Values by code"), h("thead", {}, head), h("tbody", {}, lines)];
}

function saved(view) {
  return h("details", { class: "sf-saved" }, h("summary", {}, "State, to save and restore"),
    h("form", { "data-restore": true }, h("label", {}, h("span", {}, "state as JSON"), h("textarea", { rows: 4, spellcheck: "false" }, JSON.stringify(view.state))), h("button", { type: "submit" }, "Restore")));
}

const said = (view) => h("p", { class: "sf-unseen", role: "status" }, `${view.number.code}, ${view.number.value}, ${view.number.class}`);
const told = ({ message }) => h("p", { class: "sf-message", role: "alert" }, message);

// The parts from top to bottom, and all that each of them may look at: it is drawn again when that changed.
const PARTS = [
  [told, ({ message }) => ({ message })],
  [said, ({ number: { code, value, class: kind } }) => ({ number: { code, value, class: kind } })],
  [controls, ({ state: { operands, dot: sums, block: elements, ...state }, choices, format }) => ({ state, choices, format })],
  [numberSection, ({ number: found, line: around, format }) => ({ number: found, line: around, format })],
  [codes, ({ table: rows, number: { code }, state: { format } }) => ({ table: rows, number: { code }, state: { format } })],
  [arithmetic, ({ arithmetic: found, choices: { operation }, format }) => ({ arithmetic: found, choices: { operation }, format })],
  [dot, ({ dot: found, choices: { accumulators } }) => ({ dot: found, choices: { accumulators } })],
  [block, ({ block: found, state: { block: elements } }) => ({ block: found, state: { block: elements } })],
  [saved, ({ state }) => ({ state })],
];

// -- mounting ---------------------------------------------------------------------------------------------------------

// Draws into `root`; returns draw(view, message). `send` takes events.
export function mount(root, send) {
  const body = h("div", { class: "sf" }), places = {}, shown = [];
  let frame = 0;
  root.append(body);

  function update([part, seen], i, view) {
    const looked = seen(view), key = JSON.stringify(looked), old = body.children[i];
    if (key === shown[i]) {
      for (const node of old.querySelectorAll("input, select, textarea")) if (!node.closest("[data-keep]")) refresh(node);
      return;
    }
    shown[i] = key;
    const next = part(looked, body.querySelector(".sf-grid"));
    if (old) morph(old, next);
    else body.append(next);
  }

  // Of each group of buttons one is in the order of Tab; arrow keys go to the others.
  function settle() {
    for (const group of body.querySelectorAll("[data-roving]")) {
      const buttons = [...group.querySelectorAll("button")], name = group.dataset.roving, current = Number(group.dataset.current ?? -1);
      const at = Math.min(places[name] ?? Math.max(current, 0), buttons.length - 1);
      for (const x of group.querySelectorAll('[tabindex="0"]')) if (x !== buttons[at]) x.setAttribute("tabindex", "-1");
      for (const x of buttons) if (x !== buttons[at] && !x.hasAttribute("tabindex")) x.setAttribute("tabindex", "-1");
      buttons[at]?.setAttribute("tabindex", "0");
      if (group.dataset.current === undefined) continue;
      group.querySelector("[aria-current]")?.removeAttribute("aria-current");
      buttons[current]?.setAttribute("aria-current", "true");
    }
  }

  // What is wider than its place can be scrolled by keyboard.
  function scrolling() {
    for (const region of body.querySelectorAll(".sf-scroll[role=region]")) {
      if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
      else region.removeAttribute("tabindex");
    }
  }

  function changed(input) {
    const event = JSON.parse(input.dataset.change), text = input.value.trim();
    send({ ...event, value: input.dataset.number === undefined ? text : /^\d+$/.test(text) ? Number(text) : text });
  }

  body.addEventListener("click", (event) => {
    const found = event.target.closest("[data-event]");
    if (found) send(JSON.parse(found.dataset.event));
  });
  body.addEventListener("change", (event) => {
    if (event.target.dataset.change) changed(event.target);
  });
  body.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.dataset.restore !== undefined) {
      let value = null;
      try {
        value = JSON.parse(event.target.querySelector("textarea").value);
      } catch { /* no JSON is no state, which whoever gets the event says */ }
      send({ do: "restore", value });
      return;
    }
    const form = event.target.elements;
    if (event.target.dataset.drafted !== undefined) {
      send({ do: "format", value: `binary${form.k.value}p${form.p.value}${form.signed.checked ? "s" : "u"}${form.extended.checked ? "e" : "f"}` });
      return;
    }
    const value = { name: form.name.value, nan: form.nan.value };
    for (const name of ["exponent_bits", "mantissa_bits", "bias"]) if (form[name].value !== "") value[name] = Number(form[name].value);
    for (const [name] of SWITCHES) value[name] = form[name].checked;
    send({ do: "format", value });
  });
  body.addEventListener("focusin", (event) => {
    const group = event.target.closest("[data-roving]"), buttons = group ? [...group.querySelectorAll("button")] : [];
    if (buttons.includes(event.target)) places[group.dataset.roving] = buttons.indexOf(event.target);
  });
  body.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.dataset.change && event.target.nodeName === "INPUT") {
      event.preventDefault();
      changed(event.target);
      return;
    }
    const group = event.target.closest("[data-roving]");
    if (!group || event.ctrlKey || event.altKey || event.metaKey) return;
    const buttons = [...group.querySelectorAll("button")], at = buttons.indexOf(event.target), columns = Number(group.dataset.columns || buttons.length);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - columns, ArrowDown: at + columns, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    event.preventDefault();
    places[group.dataset.roving] = to;
    settle();
    buttons[to].focus();
  });

  return (view, message = "") => {
    PARTS.forEach((part, i) => update(part, i, { ...view, message }));
    settle();
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(scrolling);
  };
}
