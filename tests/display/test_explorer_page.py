"""The explorer's page: made of its parts, one small file, the same answers in JavaScript as in Python, and drawn in a real browser."""

import json
import math
import random
import re
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from exploring import Node, events, outcome, states
from hypothesis import HealthCheck, given, settings

from softfloat import BLOCK_ROSTER, ROSTER, BlockFormat, Flags, Format, Rounding, bits
from softfloat.blocks import SCALE_RULES
from softfloat.display import block_exploration, exploration, inspect_code, inspect_number, pages
from softfloat.display.inspection import inspection_rows, short_text
from softfloat.engine import as_environment

MODES = list(exploration.ROUNDINGS)


def test_the_page_is_one_small_file_that_asks_nothing_of_the_network() -> None:
    page = pages.page_html()
    assert "<!--" not in page
    assert len(page.encode()) < 300 * 1024
    assert not re.search(r"https?://|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|\bimport\b\s*[({*]", page)
    assert not re.search(r"<(?:script|img|iframe)[^>]+src=|<link[^>]+href=\"(?!data:,)", page)
    assert "default-src 'none'" in page


def test_the_widget_draws_with_the_page_s_drawing() -> None:
    module = pages.widget_module()
    assert pages.part("drawing.js") in module
    assert "import " not in module
    assert pages.part("drawing.js") in pages.page_html()


# -- JavaScript beside Python ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("node"))
    yield found
    found.close()


def first_difference(ours: Any, theirs: Any, path: str = "") -> str:
    """Where two documents differ; empty if nowhere."""
    if type(ours) is not type(theirs):
        return f"{path}: {ours!r}, JavaScript {theirs!r}"
    if isinstance(ours, dict):
        if set(ours) != set(theirs):
            return f"{path}: {sorted(ours)}, JavaScript {sorted(theirs)}"
        return next(filter(None, (first_difference(ours[key], theirs[key], f"{path}/{key}") for key in ours)), "")
    if isinstance(ours, list):
        if len(ours) != len(theirs):
            return f"{path}: {len(ours)} entries, JavaScript {len(theirs)}"
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next(filter(None, (first_difference(x, y, f"{path}/{i}") for i, (x, y) in pairs)), "")
    return "" if ours == theirs else f"{path}: {ours!r}, JavaScript {theirs!r}"


def assert_javascript_agrees(node: Node, state: dict, event: dict) -> dict:
    """Returns the answer."""
    after, refused = outcome(state, event)
    refused = refused.partition("; did you mean")[
        0
    ]  # advice for those who type names, which the page does not let them
    expected = {"refused": refused} if refused else {"state": after, "view": exploration.view(after)}
    found = node.ask({"state": state, "event": event})
    assert not first_difference(json.loads(json.dumps(expected)), found)
    return found


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=states(), event=events())
def test_javascript_gives_python_s_states_views_and_refusals(node: Node, state: dict, event: dict) -> None:
    assert_javascript_agrees(node, state, event)


@pytest.mark.exhaustive
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=states(), event=events())
def test_javascript_gives_python_s_views_at_length(node: Node, state: dict, event: dict) -> None:
    assert_javascript_agrees(node, state, event)


@pytest.mark.parametrize("name", ROSTER)
def test_javascript_rounds_as_bits_does_in_every_mode(node: Node, name: str) -> None:
    """Numbers near codes, beside them and between them, in the view of one state each."""
    source, fmt = random.Random(name), ROSTER[name]
    for _ in range(3):
        code = source.randrange(1, fmt.max_code)
        low, high = (float(bits.decode(x, fmt)) for x in (code, code + 1))
        number = low + (high - low) * source.choice([0, 0.25, 0.5, 0.75, 0.9])
        state = exploration.start(fmt, number.hex())
        for setting in (
            {"name": "random_bits", "value": source.randrange(256)},
            {"name": "tininess", "value": "before"},
        ):
            state = exploration.act(state, {"do": "set", **setting})
        found = node.ask({"state": state, "event": {"do": "step", "by": 1, "operand": 1}})["view"]["number"]["modes"]
        assert [row["rounding"] for row in found] == MODES
        for row in found:
            options: dict[str, Any] = {"rounding": row["rounding"], "tininess": "before"}
            if row["rounding"] == "stochastic":
                options |= {"sr_bits": 8, "random_bits": state["random_bits"]}
            if row["rounding"] == "up_or_down":
                options |= {"random_bits": state["random_bits"] >> 7}
            expected, flags = bits.encode(number, fmt, **options)
            assert (int(row["code"], 16), row["flags"]) == (int(expected), exploration._flag_text(flags))


@pytest.mark.parametrize("name", [*exploration.own(ROSTER["float16"]), *exploration.hardware()])
def test_javascript_sums_as_every_accumulator_does(node: Node, name: str) -> None:
    """Products of many sizes, so that alignments cut; zeros among them; a sum that may overflow."""
    source, how = random.Random(name), exploration.hardware().get(name)
    for _ in range(2):
        fmt = source.choice(how.inputs if how and how.inputs else (ROSTER["float16"], ROSTER["float8_e5m2"]))
        state = exploration.start(fmt, "1")
        for place in range(8):
            for column in ("a", "b"):
                exponent = source.randint(max(fmt.emin, -12), min(fmt.emax, 12)) if source.random() < 0.8 else fmt.emin
                value = source.choice([0.0, *[source.uniform(-2, 2) * 2.0**exponent] * 7])
                if abs(value) < fmt.max / 2:
                    event = {"do": "product", "column": column, "place": place, "value": repr(value)}
                    state = exploration.act(state, event)
        mode = {
            "do": "set",
            "name": "rounding",
            "value": source.choice([x for x in MODES if not Rounding[x.upper()].draws]),
        }
        assert_javascript_agrees(node, exploration.act(state, mode), {"do": "accumulator", "place": 0, "value": name})


def test_in_javascript_zeros_have_no_part_in_an_alignment(node: Node) -> None:
    """0 * 2^15 beside a product of 21 bits from 2^-20 down, of which nothing is cut."""
    name = "tensor_core('H100', input='float16', output='float32')"
    state = exploration.start("float16", "1")
    state["dot"] |= {"a": ["0", "0x1.004p-10"], "b": ["0x1p15", "0x1.004p-10"]}
    assert_javascript_agrees(node, state, {"do": "accumulator", "place": 0, "value": name})
    found = node.ask({"state": state, "event": {"do": "accumulator", "place": 0, "value": name}})["view"]["dot"][
        "sums"
    ][0]
    assert (found["flags"], found["lost"]["text"]) == ("none", "0")


BLOCKS = [
    (element, scale, tensor, rule)
    for element, scale, tensor in (
        *((x.element.name, x.scale.name, str(x.tensor_scale or "none")) for x in BLOCK_ROSTER.values()),
        ("float8_e4m3fn", "float32", "none"),
        ("float8_e5m2", "float16", "none"),
        ("float4_e2m1fn", "float8_e4m3fn", "none"),
        ("int8", "float8_e5m2", "float32"),
        ("{format}", "bfloat16", "float32"),
    )
    for rule in SCALE_RULES
    if (SCALE_RULES[rule].kind == "power of two") == (scale == "float8_e8m0fnu")
]
"""Settings of blocks that go together: every rule, on every block format and some more."""


def block_numbers(source: random.Random) -> list[str]:
    """Numbers of one size, of all sizes, beside powers of two, and special ones."""
    middle, spread = source.randint(-40, 40), source.choice([1, 3, 12])
    if source.random() < 0.2:
        middle, spread = source.choice([-146, -126, 0, 110]), 16
    numbers = []
    for _ in range(32):
        size = math.ldexp(source.choice([1, source.uniform(1, 2)]), middle + source.randint(-spread, spread))
        numbers.append(float(np.float32(min(size, 3.4e38)) * source.choice([-1, 1])).hex())
    if source.random() < 0.15:
        numbers[source.randrange(32)] = source.choice(["inf", "nan", "-inf"])
    return ["0"] * 32 if source.random() < 0.05 else numbers


def edge_numbers(source: random.Random, largest: float, fraction: int) -> list[str]:
    """The largest at or beside what decides a rule, others at or beside elements and ties of the scale that it asks for."""
    edges = [
        1.0,
        largest,
        2 - 2.0 ** -(fraction + 1),
        2 - 2.0**-fraction,
        math.sqrt(2),
        largest * math.sqrt(2),
        1.45 * largest,
    ]
    amax = np.float32(source.choice(edges) * 2.0 ** source.randint(-6, 6))
    for _ in range(2):
        amax = np.nextafter(amax, np.float32(source.choice([0, 1]) * 1e9)) if source.random() < 0.6 else amax
    parts = [source.randint(1, max(int(16 * largest), 2)) / (16 * largest) for _ in range(31)]
    return [float(x).hex() for x in [amax, *(np.float32(amax * np.float32(part)) for part in parts)]]


def assert_javascript_quantises_as_bits_does(
    node: Node, settings_of: tuple[str, ...], source: random.Random, edges: bool = False
) -> None:
    """The page's block, to the letter as Python shows it, and bit by bit as `bits.quantize` makes it."""
    element, scale, tensor, rule = settings_of
    state = exploration.start(source.choice(["float16", "float8_e3m4", "binary6p3se"]), "1")
    numbers = block_numbers(source)
    if edges:
        coded = block_exploration.FIXED.get(element) or ROSTER.get(element) or ROSTER["float16"]
        numbers = edge_numbers(source, min(coded.max, 2.0**16), coded.mantissa_bits)
    state["block"] = {
        "element": element, "scale": scale, "tensor_scale": tensor, "rule": rule, "size": source.choice([1, 16, 32]), "numbers": numbers,
    }  # fmt: skip
    state["rounding"], state["random_bits"] = source.choice(MODES), source.randrange(256)
    event = {"do": "set", "name": "tininess", "value": source.choice(["after", "before"])}
    shown = assert_javascript_agrees(node, state, event)["view"]["block"]
    after = exploration.act(state, event)
    fmt = exploration.format_of(after)
    element_format = fmt if element == "{format}" else block_exploration.FIXED.get(element, element)
    size, options = after["block"]["size"], as_environment(exploration._options(after) | {"overflow": "saturate"})
    made = BlockFormat(
        "b", element=element_format, scale=scale, block=size, tensor_scale=None if tensor == "none" else tensor
    )
    x = np.array([float.fromhex(text) if "x" in text else float(text) for text in numbers[:size]], np.float32)
    if not shown["rows"]:
        with pytest.raises(ValueError, match="holds blocks whose scale is NaN"):
            bits.quantize(x, made, rule, **options)
        return
    blocks, flags, counts = bits.quantize(x, made, rule, count=True, **options)
    assert [int(row["code"], 16) for row in shown["rows"]] == blocks.elements.tolist()
    assert [row["flags"] for row in shown["rows"]] == [str(Flags(x)) for x in flags.tolist()]
    assert int(shown["facts"][0][1].split()[0], 16) == int(blocks.scales[0])
    if shown["counts"]:
        told = dict(shown["counts"])
        infinite = int(np.isinf(x).sum())
        lost = int(counts.zeroed[0]) if bits.decode(blocks.scales, made.scale)[0] else np.count_nonzero(x)
        assert (told["saturated"], told["vanished"]) == (int(counts.saturated[0]) + infinite, lost)


@pytest.mark.parametrize(
    ("rule", "step", "numbers", "scale", "elements"),
    [
        ("te", "S = largest / amax", ["0x1.116be4p+34", "0x1.c7b3d2p+31"], 448, [6, 1.5]),
        ("te", "S * (1/m)", ["0x1.74p-126"], 0.9375, [6]),
        ("te", "amax * (S * (1/m))", ["0x1.f80002p-126"], 1.25, [6]),
        ("te", "1/S", ["0x1.5ddd72p+21", "0x1.5ddd72p+18"], 448, [6, 0.5]),
        ("te", "s * (1/S)", ["0x1.aa9454p-19", "0x1.637b9cp-20"], 448, [6, 3]),
        ("te", "1 / (s * (1/S))", ["0x1.5ddd72p+21", "0x1.238de2p+21"], 448, [6, 4]),
        ("te", "x * multiplier", ["0x1.862b2p+54", "0x1.4523fp+52"], 448, [6, 1]),
        ("torchao", "g = amax / largest", ["0x1.ea4378p-67", "0x1.46d7a6p-71"], 448, [6, 0.5]),
        ("torchao", "amax / m", ["0x1.c78p-139"], 320, [6]),
        ("torchao", "1/g", ["0x1.e52adap+48", "0x1.1b03a8p+47"], 448, [6, 2]),
        ("torchao", "(1/g) / s", ["0x1.c2e154p+27", "0x1.77bbc8p+27"], 448, [6, 4]),
        ("torchao", "x * multiplier", ["0x1.ea4378p-67", "0x1.ea4376p-70"], 448, [6, 1]),
    ],
)
def test_each_rounding_to_float32_of_two_levels_is_taken(
    node: Node, rule: str, step: str, numbers: list[str], scale: float, elements: list[float]
) -> None:
    """Worked out on fractions: were the step not rounded, the scale or the last element would be another."""
    state, size = exploration.start("float16", "1"), len(numbers)
    levels = {"element": "float4_e2m1fn", "scale": "float8_e4m3fn", "tensor_scale": "float32"}
    state["block"] = {**levels, "rule": rule, "size": size, "numbers": numbers + ["0"] * (32 - size)}
    event = {"do": "set", "name": "tininess", "value": "before"}
    shown = assert_javascript_agrees(node, state, event)["view"]["block"]
    assert bits.decode(int(shown["facts"][0][1].split()[0], 16), "float8_e4m3fn") == scale
    assert [float(row["element"]) for row in shown["rows"]] == elements


@pytest.mark.parametrize("rule", SCALE_RULES)
def test_javascript_quantises_blocks_as_bits_does(node: Node, rule: str) -> None:
    source = random.Random(rule)
    for settings_of in source.sample([x for x in BLOCKS if x[-1] == rule], 3):
        for edges in (False, True, True, True):
            assert_javascript_quantises_as_bits_does(node, settings_of, source, edges)


@pytest.mark.exhaustive
@pytest.mark.parametrize("settings_of", BLOCKS, ids="-".join)
def test_javascript_quantises_blocks_as_bits_does_at_length(node: Node, settings_of: tuple[str, ...]) -> None:
    source = random.Random("-".join([*settings_of, "at length"]))
    for i in range(40):
        assert_javascript_quantises_as_bits_does(node, settings_of, source, edges=i % 4 > 0)


# -- a real browser ----------------------------------------------------------------------------------------------------

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

DRAWN = """([events, part]) => events.map((event) => {
  softfloatExplorer.send(event);
  const rows = [...document.querySelectorAll(`.sf-number .sf-columns .sf-scroll:nth-child(${part}) tbody tr`)];
  return rows.map((row) => [...row.children].map((cell) => cell.textContent));
})"""
"""After each event, the rows of the number's first table, what `softfloat inspect` prints, or of its second, all modes."""

ROWS, EVERY_MODE = 1, 2


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as tools:
        found = tools.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The page, opened without a network; whatever it complains of fails the test."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or complaints.append(asked.url))
    opened.goto(pages.page().as_uri())
    opened.wait_for_selector(".sf-number")
    yield opened
    context.close()
    assert not complaints


def cells(found: Any) -> list[list[str]]:
    return [[name, text] for name, text, _ in inspection_rows(found)]


SWEEP = """([texts, flips]) => {
  const one = (x) => document.querySelector(x), all = (x) => [...document.querySelectorAll(x)];
  const rows = (part) => all(`.sf-number .sf-columns .sf-scroll:nth-child(${part}) tbody tr`);
  const table = (part) => rows(part).map((row) => [...row.children].map((cell) => cell.innerText));
  const buttons = () => all(".sf-number .sf-row button"), bits = () => buttons().map((x) => Number(x.ariaPressed === "true")).join("");
  return texts.map((text, i) => {
    const box = one(".sf-number .sf-typed");
    box.value = text;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    const found = { rows: table(1), modes: table(2), bits: bits() };
    if (flips.length) {
      buttons().at(-1 - flips[i]).click();
      found.flipped = [table(1), bits()];
      buttons().at(-1 - flips[i]).click();
      found.restored = JSON.stringify([table(1), table(2), bits()]) === JSON.stringify([found.rows, found.modes, found.bits]);
    }
    return found;
  });
}"""
"""Each text put into the box: the text of both tables as it is seen, and the bits pressed; then one bit clicked, and once more."""


def assert_the_page_shows_what_inspect_does(page: Any, name: str, count: int) -> None:
    """Random codes, a bit of each clicked twice, and random numbers, in each mode: the page's text and its bits."""
    source, fmt = random.Random(name), ROSTER[name]
    signs = [-1, 1] if fmt.signed else [1]
    page.evaluate(DRAWN, [[{"do": "format", "value": name}, {"do": "set", "name": "random_bits", "value": 77}], ROWS])
    drawn: dict[str, Any] = {"stochastic": {"sr_bits": 8, "random_bits": 77}, "up_or_down": {"random_bits": 0}}
    options = {mode: drawn.get(mode, {}) for mode in MODES}
    for mode in MODES:
        page.get_by_role("combobox", name="rounding", exact=True).select_option(mode)
        codes = [source.randrange(1 << fmt.bits) for _ in range(count)]
        flips = [source.randrange(fmt.bits) for _ in codes]
        found = page.evaluate(SWEEP, [[hex(code) for code in codes], flips])
        for code, flip, shown in zip(codes, flips, found, strict=True):
            assert (shown["rows"], int(shown["bits"], 2)) == (cells(inspect_code(code, fmt)), code)
            flipped = code ^ (1 << flip)
            assert shown["flipped"] == [cells(inspect_code(flipped, fmt)), f"{flipped:0{fmt.bits}b}"]
            assert shown["restored"]
        numbers = []
        for _ in range(-(-count // 7)):
            size = source.uniform(1, 2) * 2.0 ** source.randint(fmt.emin - fmt.p, fmt.emax + 1)
            numbers.append(f"{source.choice(signs) * size:.9g}")
        for number, shown in zip(numbers, page.evaluate(SWEEP, [numbers, []]), strict=True):
            inspections = {x: inspect_number(number, fmt, x, **options[x]) for x in MODES}
            assert shown["rows"] == cells(inspections[mode])
            assert int(shown["bits"], 2) == inspections[mode].code
            assert [row[1:] for row in shown["modes"]] == [
                [x.code_text(x.code), short_text(x.value), str(x.flags)] for x in inspections.values()
            ]
            assert inspections[mode].code == int(bits.encode(float(number), fmt, rounding=mode, **options[mode])[0])


@pytest.mark.browser
@pytest.mark.parametrize("name", ROSTER)
def test_the_page_shows_what_inspect_does(page: Any, name: str) -> None:
    assert_the_page_shows_what_inspect_does(page, name, 3)


@pytest.mark.browser
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ROSTER)
def test_the_page_shows_what_inspect_does_for_500_codes_in_every_mode(page: Any, name: str) -> None:
    assert_the_page_shows_what_inspect_does(page, name, 500)


@pytest.mark.browser
def test_bits_clicked_twice_restore_the_page(page: Any) -> None:
    def drawn() -> str:
        """What can be scrolled has a place in the order of Tab, from the frame on that finds it too wide."""
        return page.inner_html("#explorer .sf-columns").replace(' tabindex="0"', "")

    for name in ("float8_e4m3fn", "float16"):
        page.get_by_role("combobox", name="format", exact=True).select_option(name)
        before = drawn()
        width = page.locator(".sf-number .sf-row button").count()
        assert width == ROSTER[name].bits
        for i in range(width):
            bit = page.locator(".sf-number .sf-row button").nth(i)
            pressed = bit.get_attribute("aria-pressed")
            bit.click()
            assert bit.get_attribute("aria-pressed") != pressed
            assert drawn() != before
            bit.click()
            assert drawn() == before


CLICKS = """() => {
  const explorer = document.getElementById("explorer"), lost = [];
  const shown = () => [softfloatExplorer.state(), explorer.innerHTML.replaceAll(/ tabindex="-?[01]"/g, "")].map((x) => JSON.stringify(x)).join();
  for (const [place, name] of ["number", "arithmetic"].entries()) {
    const bit = (i) => document.querySelectorAll(`.sf-${name} .sf-row button`)[i];
    for (let i = 0; bit(i); i += 1) {
      const before = shown();
      bit(i).click();
      if (shown() === before) lost.push(`${place} ${i}: nothing happened`);
      bit(i).click();
      if (shown() !== before) lost.push(`${place} ${i}: not restored`);
    }
  }
  return lost;
}"""


@pytest.mark.browser
@pytest.mark.parametrize("name", [*ROSTER, "binary6p2se", "binary5p3uf"])
def test_any_bit_of_either_operand_clicked_twice_restores_everything(page: Any, name: str) -> None:
    """All that is drawn, and the state; the order of Tab remembers the last button, which it may."""
    page.evaluate(DRAWN, [[{"do": "format", "value": name}, {"do": "type", "value": "1.3", "operand": 1}], ROWS])
    assert page.evaluate(CLICKS) == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ROSTER)
def test_typed_decimals_give_the_code_of_bits_in_every_mode(page: Any, name: str) -> None:
    """By the keyboard, into the box; the mode by its list."""
    source, fmt, box = random.Random(name), ROSTER[name], page.get_by_label("a: number or code")
    page.get_by_role("combobox", name="format", exact=True).select_option(name)
    for mode in MODES:
        page.get_by_role("combobox", name="rounding", exact=True).select_option(mode)
        number = (
            source.uniform(1, 2)
            * 2.0 ** source.randint(fmt.emin, fmt.emax)
            * (source.choice([-1, 1]) if fmt.signed else 1)
        )
        box.fill(f"{number:.7g}")
        box.press("Enter")
        options: dict[str, Any] = {"sr_bits": 8, "random_bits": 0} if mode == "stochastic" else {}
        code, flags = bits.encode(float(f"{number:.7g}"), fmt, rounding=mode, **options)
        rows = page.locator(".sf-number .sf-columns .sf-scroll").first.locator("tr")
        shown = dict(row.split("\t") for row in rows.all_inner_texts())
        assert (int(shown["code"], 16), shown["flags"]) == (int(code), str(Flags(int(flags))))


@pytest.mark.browser
def test_what_is_typed_gives_the_code_of_bits(page: Any) -> None:
    box = page.get_by_label("a: number or code")
    for text in ("0.3", "-1e-3", "0x1.8p-3", "1000", "0.1f"):
        box.fill(text)
        box.press("Enter")
        number = float.fromhex(text) if "p" in text else float(text.rstrip("f"))
        expected = exploration._flag_text(bits.encode(number, "float8_e4m3fn")[1])
        rows = dict(page.evaluate(DRAWN, [[{"do": "set", "name": "overflow", "value": "infinity"}], ROWS])[0])
        assert (int(rows["code"], 16), rows["flags"]) == (int(bits.encode(number, "float8_e4m3fn")[0]), expected)
    box.fill("nonsense")
    box.press("Enter")
    assert "neither a code nor a number" in page.get_by_role("alert").inner_text()
    assert box.input_value() == "nonsense"


@pytest.mark.browser
def test_the_keyboard_reaches_everything(page: Any) -> None:
    """Tab goes round; inside groups of buttons the arrows do. Every control that is not switched off has had the focus."""
    page.evaluate("document.querySelectorAll('details').forEach((x) => { x.open = true; })")
    page.evaluate(
        """window.reached = new Set(); window.controls = () =>
        [...document.querySelectorAll("button, input, select, textarea, summary")].filter((x) => !x.disabled);
        document.addEventListener("focusin", (event) => reached.add(event.target));"""
    )
    for _ in range(200):
        page.keyboard.press("Tab")
        inside = page.evaluate(
            "document.activeElement.closest('[data-roving]')?.querySelectorAll('button').length || 0"
        )
        for key in ["Home"] * (inside > 0) + ["ArrowRight"] * (inside - 1):
            page.keyboard.press(key)
        if page.evaluate("controls().every((x) => reached.has(x))"):
            break
    assert page.evaluate("controls().filter((x) => !reached.has(x)).map((x) => x.outerHTML.slice(0, 99))") == []


@pytest.mark.browser
def test_the_focus_survives_a_change_of_format(page: Any) -> None:
    """By the list of formats, by either form, and while a bit has it that both formats have."""
    focused = "document.activeElement.outerHTML.replace(/<select.*/s, 'select').slice(0, 60)"
    page.evaluate("document.querySelectorAll('details').forEach((x) => { x.open = true; })")
    page.get_by_role("combobox", name="format", exact=True).focus()
    for _ in range(3):
        before = page.evaluate("softfloatExplorer.state().format.name")
        page.keyboard.press("ArrowUp")
        assert page.evaluate("softfloatExplorer.state().format.name") != before
        assert page.evaluate(focused) == "select"
    for form, field, value in (("format", "mantissa_bits", "5"), ("drafted", "p", "7")):
        page.locator(f"form[data-{form}] [name={field}]").fill(value)
        page.locator(f"form[data-{form}] button").focus()
        before = page.evaluate("softfloatExplorer.state().format")
        page.keyboard.press("Enter")
        assert page.evaluate("softfloatExplorer.state().format") != before
        assert page.evaluate("document.activeElement.type") == "submit"
        assert page.evaluate(f"document.activeElement.form.dataset.{form} !== undefined")
    page.locator(".sf-number .sf-row button").nth(2).focus()
    page.evaluate(DRAWN, [[{"do": "format", "value": "float16"}], ROWS])
    assert "bit 13 of a" in page.evaluate("document.activeElement.getAttribute('aria-label')")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, scheme: str) -> None:
    """Contrast, labels, roles: everything open, narrow and wide formats, beside what is refused."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1000, "height": 800})
    page = context.new_page()
    page.goto(pages.page().as_uri())
    page.wait_for_selector(".sf-number")
    for event in (
        {"do": "set", "name": "rounding", "value": "to_odd"},
        {"do": "format", "value": "float32"},
        {"do": "type", "value": "nonsense"},
        {"do": "block", "name": "fill", "value": "a NaN"},
        {"do": "format", "value": "binary4p2se"},
    ):
        page.evaluate("(event) => softfloatExplorer.send(event)", event)
        page.evaluate("document.querySelectorAll('details').forEach((x) => { x.open = true; })")
        page.wait_for_timeout(50)  # what scrolls is told after the next frame
        found = axe.Axe().run(page).response["violations"]
        assert [(x["id"], x["nodes"][0]["html"]) for x in found] == []
    context.close()


@pytest.mark.browser
def test_nothing_is_told_by_colour_alone(page: Any) -> None:
    """Fields by the kind of their lines, pressed bits by light and dark, fates by signs and words."""
    kinds = page.evaluate(
        """["sign", "exponent", "fraction"].map((x) => getComputedStyle(document.querySelector(`.sf-number .sf-${x}`)).borderBottomStyle)"""
    )
    assert len(set(kinds)) == 3
    light = """[...document.querySelectorAll('.sf-number .sf-row button')].map((x) => {
      const [r, g, b] = getComputedStyle(x).backgroundColor.match(/[0-9.]+/g).map(Number);
      return [x.ariaPressed, 0.2126 * r + 0.7152 * g + 0.0722 * b]; })"""
    levels = page.evaluate(light)
    on, off = ([level for pressed, level in levels if pressed == said] for said in ("true", "false"))
    assert min(off) - max(on) > 100
    signs = page.locator(".sf-chart .sf-sign-of").all_inner_texts()
    counts = dict(page.evaluate("softfloatExplorer.view().block.counts"))
    assert (signs.count("▲"), signs.count("○")) == (counts["saturated"], counts["vanished"])
    assert page.locator(".sf-block td", has_text="saturated").count() == counts["saturated"]


@pytest.mark.browser
def test_keys_change_bits_and_keep_the_focus(page: Any) -> None:
    page.locator(".sf-number .sf-row button").first.focus()
    for key in ("ArrowRight", "ArrowRight", "Space"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "1, bit 5 of a, exponent"
    assert page.evaluate("softfloatExplorer.state().operands[0].code") == 0x1D ^ 0x20


@pytest.mark.browser
def test_the_address_and_the_form_restore_a_state(page: Any) -> None:
    page.evaluate(DRAWN, [[{"do": "format", "value": "bfloat16"}, {"do": "type", "value": "3"}], ROWS])
    saved = page.evaluate("softfloatExplorer.state()")
    assert exploration.check_state(saved) == saved
    page.wait_for_url(lambda address: "bfloat16" in address)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(".sf-number")
    assert page.evaluate("softfloatExplorer.state()") == saved
    page.goto("about:blank")
    page.goto(f"{pages.page().as_uri()}#format=binary6p2se")
    page.wait_for_selector(".sf-number")
    assert page.evaluate("softfloatExplorer.state().format.name") == "binary6p2se"
    page.evaluate(DRAWN, [[{"do": "format", "value": "float16"}], ROWS])
    page.get_by_text("State, to save and restore").click()
    page.get_by_label("state as JSON").fill(json.dumps(saved))
    page.get_by_role("button", name="Restore").click()
    assert page.evaluate("softfloatExplorer.state()") == saved


@pytest.mark.browser
def test_a_format_of_one_s_own_is_made_by_the_form(page: Any) -> None:
    page.get_by_text("A format of your own").click()
    form = page.locator("form[data-format]")
    for name, value in (("name", "mine"), ("exponent_bits", "3"), ("mantissa_bits", "2"), ("bias", "")):
        form.locator(f"[name={name}]").fill(value)
    form.locator("[name=nan]").select_option("none")
    form.get_by_role("button").click()
    state = page.evaluate("softfloatExplorer.state()")
    assert exploration.format_of(state).bits == 6
    assert page.locator(".sf-grid button").count() == 64
    assert page.get_by_role("combobox", name="format", exact=True).input_value() == "mine"
    assert form.locator("[name=nan]").input_value() == "none"
    assert form.locator("[name=bias]").input_value() == "3"


@pytest.mark.browser
def test_a_format_of_p3109_is_made_by_its_form(page: Any) -> None:
    page.get_by_text("A format of IEEE P3109").click()
    form = page.locator("form[data-drafted]")
    for k, p, signed, extended, name in ((6, 2, True, True, "binary6p2se"), (8, 8, False, False, "binary8p8uf")):
        form.locator("[name=k]").fill(str(k))
        form.locator("[name=p]").fill(str(p))
        form.locator("[name=signed]").set_checked(signed)
        form.locator("[name=extended]").set_checked(extended)
        form.get_by_role("button").click()
        assert exploration.format_of(page.evaluate("softfloatExplorer.state()")) == Format.p3109(name)
        assert page.locator(".sf-grid button").count() == 2**k
        assert name in page.locator(".sf-controls").inner_text()
    form.locator("[name=p]").fill("9")
    form.get_by_role("button").click()
    assert "p must be 1 to 8" in page.get_by_role("alert").inner_text()


BLOCK_ROWS = """[...document.querySelectorAll(".sf-block table")].at(-1).querySelectorAll("tbody tr").values()
  .map((row) => [...row.children].map((cell) => cell.textContent)).toArray()"""


@pytest.mark.browser
@pytest.mark.parametrize("name", BLOCK_ROSTER)
def test_a_block_is_what_bits_quantises(page: Any, name: str) -> None:
    """By the rows that are drawn, under every rule of its kind, after a number was typed."""
    fmt, box = BLOCK_ROSTER[name], page.get_by_label("number 3", exact=True)
    page.get_by_role("combobox", name="block format", exact=True).select_option(name)
    rules = page.get_by_role("combobox", name="scale rule", exact=True)
    for rule in rules.locator("option").all_inner_texts():
        rules.select_option(rule)
        box.fill("-37.5")
        box.press("Enter")
        texts = page.evaluate("softfloatExplorer.state().block.numbers")[: fmt.elements]
        x = np.array([float(text) for text in texts], np.float32)
        assert x[2] == -37.5
        blocks, flags, counts = bits.quantize(x, fmt, rule, count=True)
        drawn = page.evaluate(BLOCK_ROWS)
        assert [int(row[2], 16) for row in drawn] == blocks.elements.tolist()
        assert [float(row[4]) for row in drawn if "about" not in row[4]] == [
            value for value, row in zip(bits.dequantize(blocks).tolist(), drawn, strict=True) if "about" not in row[4]
        ]
        assert [row[7] for row in drawn] == [str(Flags(flag)) for flag in flags.tolist()]
        said = page.locator(".sf-block .sf-equation").inner_text()
        assert said.startswith(f"{int(counts.saturated[0])} saturated, {int(counts.zeroed[0])} vanished")
        assert (page.locator(".sf-sign-of").count(), page.locator(".sf-stick").count()) == (
            int(counts.saturated[0] + counts.zeroed[0]),
            fmt.elements,
        )


WIDGET = """async (text) => {
  const { default: widget } = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const heard = {}, kept = {}, root = document.createElement("div");
  const model = {
    get: (name) => kept[name], on: (name, call) => { heard[name] = call; }, off: (name) => { delete heard[name]; }, send: (event) => fromPage(event),
  };
  window.show = (view, message) => { Object.assign(kept, { view, message }); heard["change:view"]?.(); };
  show(...(await fromPage({ do: "nothing" })));
  document.body.replaceChildren(root);
  window.forget = widget.render({ model, el: root });
}"""


@pytest.mark.browser
def test_the_widget_draws_what_python_sees_and_sends_clicks(browser: Any) -> None:
    """A stand-in for the notebook's model, with Python behind it."""
    context = browser.new_context()
    page, complaints, state = context.new_page(), [], exploration.start("float8_e5m2", "0.1")
    page.on("pageerror", lambda error: complaints.append(str(error)))
    sent: list[dict] = []

    def from_page(event: dict) -> list:
        sent.append(event)
        return [exploration.view(state), ""]

    page.expose_function("fromPage", from_page)
    page.evaluate(WIDGET, pages.widget_module())
    page.add_style_tag(content=pages.part("style.css"))
    assert page.locator(".sf-number .sf-row button").count() == 8
    page.locator(".sf-number .sf-row button").last.click()
    page.get_by_role("combobox", name="rounding", exact=True).select_option("to_odd")
    assert sent[1:] == [{"do": "flip", "bit": 0, "operand": 0}, {"do": "set", "name": "rounding", "value": "to_odd"}]
    changed = exploration.act(state, sent[1])
    page.evaluate("(view) => show(view, 'a message')", exploration.view(changed))
    rows = page.evaluate(DRAWN.replace("softfloatExplorer.send(event);", ""), [[{}], ROWS])[0]
    assert rows == cells(inspect_code(changed["operands"][0]["code"], ROSTER["float8_e5m2"]))
    assert page.get_by_role("alert").inner_text() == "a message"
    page.evaluate("forget()")
    context.close()
    assert not complaints
