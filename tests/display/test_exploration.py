"""The explorer's states, events and views, without a screen: held against the oracle and `softfloat inspect`."""

import json
from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
from commands import Run
from exploring import events, outcome, states, typed
from hypothesis import given, settings
from hypothesis import strategies as st

from softfloat import ROSTER, Flags, Format, bits, reference
from softfloat.display import exploration, parse_value
from softfloat.display.exploration import act, check_state, format_of, start, view


def options_of(state: dict, rounding: str) -> dict:
    options = {"rounding": rounding, "overflow": state["overflow"], "tininess": state["tininess"]}
    drawn = {"sr_bits": state["sr_bits"], "random_bits": state["random_bits"]}
    if rounding == "up_or_down":  # the first of them
        drawn = {"random_bits": state["random_bits"] >> (state["sr_bits"] - 1)}
    return options | drawn if rounding in ("stochastic", "up_or_down") else options


def shown(code: int, flags: int, fmt: Format) -> tuple[str, str]:
    return f"0x{code:0{-(-fmt.bits // 4)}x}", str(Flags(flags))


@settings(max_examples=50, deadline=None)
@given(states(), st.integers(0, 31), st.integers(0, 1))
def test_a_bit_clicked_twice_restores_everything(state: dict, bit: int, operand: int) -> None:
    event = {"do": "flip", "bit": bit % format_of(state).bits, "operand": operand}
    once = act(state, event)
    assert once["operands"][operand]["code"] ^ state["operands"][operand]["code"] == 1 << event["bit"]
    assert act(once, event) == state


@settings(max_examples=50, deadline=None)
@given(states(), events())
def test_events_leave_the_state_before_alone_and_states_survive_json(state: dict, event: dict) -> None:
    before = deepcopy(state)
    after, _ = outcome(state, event)
    assert state == before
    assert check_state(json.loads(json.dumps(after))) == after
    assert act(state, {"do": "restore", "value": after}) == after


@settings(max_examples=25, deadline=None)
@given(states(), typed())
def test_what_is_typed_is_rounded_as_the_oracle_rounds(state: dict, text: str) -> None:
    fmt, number = format_of(state), parse_value(text)
    after, refused = outcome(state, {"do": "type", "value": text})
    if isinstance(number, int):
        assert bool(refused) == (number >= 1 << fmt.bits)
        assert refused or after["operands"][0]["code"] == number
        return
    assert not refused
    found = view(after)["number"]
    code, flags = reference.encode(number, fmt, **options_of(state, state["rounding"]))
    assert found["same"]
    assert (found["code"], dict(found["rows"])["flags"]) == shown(code, flags, fmt)
    for row in found["modes"]:
        code, flags = reference.encode(number, fmt, **options_of(state, row["rounding"]))
        assert (row["code"], row["flags"]) == shown(code, flags, fmt)
        assert row["chosen"] == (row["rounding"] == state["rounding"])


@settings(max_examples=25, deadline=None)
@given(states())
def test_each_mode_rounds_a_result_as_the_oracle_does(state: dict) -> None:
    fmt, found = format_of(state), view(state)["arithmetic"]
    a, b = (x["code"] for x in state["operands"])
    operation = getattr(reference, state["operation"])
    assert [row["rounding"] for row in found["modes"]] == list(exploration.ROUNDINGS)
    for row in found["modes"]:
        code, flags = operation(a, b, fmt, **options_of(state, row["rounding"]))
        assert (row["code"], row["flags"]) == shown(code, flags, fmt)


def test_the_exact_result_is_shown_whole() -> None:
    state = act(start("float16", "1"), {"do": "type", "value": "3", "operand": 1})
    texts = {
        name: view(act(state, {"do": "set", "name": "operation", "value": name}))["arithmetic"]["exact"]["exact"]
        for name in exploration.SYMBOLS
    }
    assert texts == {"add": "4", "sub": "-2", "mul": "3", "div": "1/3", "remainder": "1"}
    zero = act(
        act(state, {"do": "type", "value": "0", "operand": 1}), {"do": "set", "name": "operation", "value": "div"}
    )
    assert view(zero)["arithmetic"]["exact"]["text"] == "no finite number"
    assert view(zero)["arithmetic"]["modes"][0]["flags"] == "DIVBYZERO"


@settings(max_examples=40, deadline=None)
@given(states())
def test_a_number_line_is_in_order_and_ties_lie_in_the_middle(state: dict) -> None:
    fmt, found = format_of(state), view(state)["line"]
    code = state["operands"][0]["code"]
    if found is None:
        assert bits.isnan(code, fmt) or fmt.max_code < 3
        return
    places, values = (
        [mark["at"] for mark in found["marks"]],
        [float(bits.decode(mark["number"], fmt)) for mark in found["marks"]],
    )
    assert (places[0], places[-1]) == (0, exploration.LINE_UNITS)
    assert values == sorted(values)
    assert len(set(values)) == len(values)
    assert found["current"] in [mark["code"] for mark in found["marks"]] or bits.isinf(code, fmt)
    for i, tie in enumerate(found["ties"]):
        assert Fraction(tie["exact"]) == (Fraction(values[i]) + Fraction(values[i + 1])) / 2
        assert places[i] <= tie["at"] <= places[i + 1]


@pytest.mark.parametrize("name", ROSTER)
def test_rows_are_those_of_softfloat_inspect(name: str) -> None:
    """Cells are apart by two spaces at least; a row that ran on is joined."""
    fmt = ROSTER[name]
    codes = np.random.default_rng(0).integers(0, 1 << fmt.bits, 3, dtype=np.uint64).tolist()
    for text in [hex(code) for code in codes] + ["0.1", "3e38"]:
        rounding = "toward_negative" if fmt.signed else "nearest_even"
        state = act(start(fmt, "1"), {"do": "set", "name": "rounding", "value": rounding})
        rows = view(act(state, {"do": "type", "value": text}))["number"]["rows"]
        run = Run("inspect", text, "--format", name, "--rounding", rounding)
        printed = "".join(run.out.split())
        for heading, cell in rows:
            assert "".join(f"{heading}{cell}".split()) in printed


def test_the_table_has_every_code_of_narrow_formats_alone() -> None:
    for fmt in ROSTER.values():
        rows = view(start(fmt, "1"))["table"]
        assert len(rows) == (1 << fmt.bits if fmt.bits <= 8 else 0)
        for code, row in enumerate(rows):
            value = float(bits.decode(code, fmt))
            assert float(row["exact"]) == value or np.isnan(value)
            assert row["class"] == bits.CLASSES[bits.classify(code, fmt)]


def test_a_setting_rounds_what_was_typed_again_and_leaves_a_changed_code() -> None:
    state = start("float16", "0.1")
    up = {"do": "set", "name": "rounding", "value": "toward_positive"}
    assert act(state, up)["operands"][0]["code"] == state["operands"][0]["code"] + 1
    moved = act(state, {"do": "step", "by": -1})
    assert act(moved, up)["operands"][0]["code"] == moved["operands"][0]["code"]
    assert not view(moved)["number"]["same"]


def test_a_format_takes_the_number_along() -> None:
    state = act(start("float8_e4m3fn", "0.1"), {"do": "format", "value": "half"})
    assert state["operands"][0] == {"typed": "0.1", "code": 0x2E66}
    changed = act(act(start("float16", "1"), {"do": "code", "value": 0x3E00}), {"do": "format", "value": "bfloat16"})
    assert changed["operands"][0] == {"typed": "1.5", "code": 0x3FC0}
    own = {"name": "mine", "exponent_bits": 3, "mantissa_bits": 4, "nan": "none"}
    assert format_of(act(state, {"do": "format", "value": own})) == Format(**own)
    nan = act(start("float8_e4m3fn"), {"do": "set", "name": "overflow", "value": "nan"})
    assert act(nan, {"do": "format", "value": "float4_e2m1fn"})["overflow"] == "infinity"


@pytest.mark.parametrize("name", ROSTER)
def test_every_accumulator_is_shown(name: str) -> None:
    """Those in the operands' format with each, the others with the first that is offered them."""
    before = list(ROSTER.values())[: list(ROSTER).index(name)]
    known = {how for fmt in before for how in exploration.offered(fmt)} - set(exploration.own(ROSTER[name]))
    assert_shown(name, [how for how in exploration.offered(ROSTER[name]) if how not in known])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ROSTER)
def test_every_accumulator_that_is_offered_is_shown(name: str) -> None:
    assert_shown(name, list(exploration.offered(ROSTER[name])))


def assert_shown(name: str, accumulators: list[str]) -> None:
    state = start(name, "1")
    for column in ("a", "b"):
        for place in range(8):
            state = act(state, {"do": "product", "column": column, "place": place, "value": "1"})
    for how in accumulators:
        found = view(act(state, {"do": "accumulator", "place": 0, "value": how}))["dot"]
        assert not found["message"]
        assert found["sums"][0]["exact"]["text"] == "8"
        assert found["sums"][0]["steps"]


def test_a_block_shows_what_saturates_and_what_vanishes() -> None:
    """Each number's fate by its value, in exact arithmetic; the scale by its rule."""
    state = start("float8_e4m3fn", "1")
    for rule in exploration.view(state)["block"]["choices"]["rule"]:
        found = view(act(state, {"do": "block", "name": "rule", "value": rule}))["block"]
        unit = Fraction(2) ** int(found["facts"][0][1].partition("2^")[2])
        fates = dict.fromkeys(("saturated", "vanished", "rounded", "exact"), 0)
        for row in found["rows"]:
            number, value = Fraction(float(np.float32(float(row["typed"])))), Fraction(float(row["value"]))
            assert value == unit * Fraction(float(row["element"]))
            expected = "saturated" if abs(number) > 7 * unit else "vanished" if not value else "rounded"
            assert row["fate"] == ("exact" if value == number else expected)
            fates[row["fate"]] += 1
        assert dict(found["counts"]) == fates


def test_a_block_of_the_explorer_s_format_follows_it() -> None:
    state = act(start("float8_e3m4", "1"), {"do": "block", "name": "element", "value": "{format}"})
    found = view(act(state, {"do": "format", "value": "float6_e2m3fn"}))["block"]
    assert found["facts"][1][1].startswith("float6_e2m3fn")
    assert view(act(state, {"do": "format", "value": "float8_e8m0fnu"}))["state"]["block"]["element"] == "float4_e2m1fn"


def test_a_block_with_a_nan_and_scales_without_one() -> None:
    state = act(start("float16", "1"), {"do": "block", "name": "fill", "value": "a NaN"})
    found = view(state)["block"]
    assert (found["message"], found["chart"]) == ("The scale is NaN, and so is the whole block.", None)
    assert {row["value"] for row in found["rows"]} == {"nan"}
    found = view(act(state, {"do": "block", "name": "scale", "value": "float6_e2m3fn"}))["block"]
    assert "scale is NaN, which float6_e2m3fn has none of" in found["message"]
    assert found["rows"] == []


def test_what_a_dot_product_cannot_take_is_said_in_the_view() -> None:
    state = start("float16", "1")
    infinite = act(state, {"do": "product", "column": "b", "place": 2, "value": "1e9"})
    assert view(infinite)["dot"]["message"] == "b of product 3 must be a finite number in float16, got 1e9"
    code = act(state, {"do": "product", "column": "a", "place": 0, "value": "0x12345"})
    assert "has no code 0x12345" in view(code)["dot"]["message"]
    drawn = act(state, {"do": "set", "name": "rounding", "value": "stochastic"})
    assert view(drawn)["dot"]["sums"] == []
    assert "choose another" in view(drawn)["dot"]["message"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"do": "jump"}, "do must be one of"),
        ({"do": "flip", "bit": 16}, "bit must be one of"),
        ({"do": "step", "by": 2}, "by must be one of"),
        ({"do": "code", "value": 1 << 16}, "has no code 0x10000"),
        ({"do": "type", "value": "0x10000"}, "has no code 0x10000"),
        ({"do": "type", "value": "one"}, "neither a code nor a number"),
        ({"do": "type", "value": "1" * 201}, "at most 200"),
        ({"do": "type", "value": "1", "operand": 2}, "operand must be one of"),
        ({"do": "set", "name": "sr_bits", "value": 53}, "sr_bits must be an integer from 1 to 52"),
        ({"do": "set", "name": "random_bits", "value": 256}, "random_bits must be an integer from 0 to 255"),
        ({"do": "set", "name": "rounding", "value": "up"}, "rounding must be one of"),
        ({"do": "format", "value": "float9"}, "unknown format"),
        ({"do": "products", "value": 17}, "from 1 to 16"),
        ({"do": "accumulator", "place": 0, "value": "vdpbf16ps()"}, "accumulator must be one of"),
        ({"do": "block", "name": "size", "value": 33}, "size must be an integer from 1 to 32"),
        ({"do": "block", "name": "rule", "value": "te"}, "rule must be one of 'floor'"),
        ({"do": "block", "name": "element", "value": "float8_e8m0fnu"}, "element must be one of"),
        ({"do": "block", "name": "number", "place": 0, "value": "0x3"}, "0x3 is a code"),
        ({"do": "block", "name": "number", "place": 32, "value": "1"}, "place must be one of"),
        ({"do": "block", "name": "numbers", "value": []}, "name must be one of"),
        ({"do": "restore", "value": {}}, "a state must be a dictionary"),
    ],
)
def test_refusals_name_what_is_accepted(event: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        act(start("float16", "1"), event)


@pytest.mark.parametrize(
    "broken",
    [
        {"operands": [{"typed": "1", "code": 1 << 16}, {"typed": "1", "code": 0}]},
        {"operands": [{"typed": "1", "code": 0}]},
        {"rounding": "up"},
        {"random_bits": 256},
        {"dot": {"a": ["1"], "b": [], "accumulators": ["fma(format)", "fma(format)"]}},
        {"dot": {"a": ["1"], "b": ["1"], "accumulators": ["fma(format)", "none"]}},
        {"format": {"name": "x"}},
        {"more": 1},
        {"block": {}},
        {"block": exploration.start_block() | {"numbers": ["1"]}},
        {"block": exploration.start_block() | {"rule": "te"}},
        {"block": exploration.start_block() | {"numbers": ["0x1"] * 32}},
        {"block": exploration.start_block() | {"element": "float32", "scale": "float32", "tensor_scale": "float32"}},
    ],
)
def test_states_from_elsewhere_are_checked(broken: dict) -> None:
    with pytest.raises(ValueError, match=r"must be|has no code|is a code|do not go together"):
        check_state(start("float16", "1") | broken)
