"""An explorer of formats without its screen: a state, what an event makes of it, and everything there is to draw of it.

States, events and views are plain data, as JSON has them. `page/model.js` restates `act` and `view` for pages without Python.

>>> state = start("float8_e4m3fn", "0.1")
>>> dict(view(state)["number"]["rows"])["value"]
'0.1015625'
>>> again = act(act(state, {"do": "flip", "bit": 3}), {"do": "flip", "bit": 3})
>>> again == state
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from softfloat import accumulators, bits
from softfloat.accumulators import Accumulator
from softfloat.accumulators.tensor_cores import HALF_ALONE, TENSOR_CORES
from softfloat.checks import check_choice
from softfloat.display.block_exploration import block_view, check_block, fitting, set_block, start_block
from softfloat.display.inspection import inspect_code, inspect_number, inspection_rows, short_text, typed_text
from softfloat.display.numbers import check_typed, exact_decimal, parse_value
from softfloat.display.summation import sum_in_steps
from softfloat.environments import Overflow, Rounding, Tininess, as_rounding
from softfloat.formats import ROSTER, Format, bit_fields, check_format, code_text, format_facts
from softfloat.status import Flags

__all__ = ["EVENTS", "act", "check_state", "hardware", "offered", "own", "start", "view"]

State = dict[str, Any]
"""A format's parameters, the settings of a rounding, two operands, a dot product, and a block."""

ROUNDINGS = tuple(mode.name.lower() for mode in Rounding)
OVERFLOWS = tuple(rule.name.lower() for rule in Overflow)
TININESSES = tuple(rule.name.lower() for rule in Tininess)
SYMBOLS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "remainder": "rem"}
"""Operations of two operands, and their signs."""

MOST_PRODUCTS = 16
MOST_RANDOM_BITS = 52
LONGEST_EXACT = 26  # characters; longer numbers are shown rounded, beside the whole ones
WHOLE_TABLE = 8  # bits of formats whose codes are all shown
SIDE = 2  # neighbours on either side of a number line
LINE_UNITS = 10_000  # a number line's length
FORMAT_FIELDS = tuple(field.name for field in fields(Format))
SETTINGS = ("rounding", "overflow", "tininess", "sr_bits", "random_bits", "operation")
PRODUCTS = {
    "a": ["16", "1", "1", "1.5", "0.25", "-16", "0.3", "2"],
    "b": ["16", "1", "1", "1", "0.5", "16", "0.7", "1"],
}


# -- accumulators ----------------------------------------------------------------------------------------------------


def own(fmt: Format) -> dict[str, Accumulator]:
    """Accumulators in the operands' own format, by the names they have in a state."""
    if not fmt.zero:
        return {}
    return {
        "fma(format)": accumulators.fma(fmt),
        "mul_add(format)": accumulators.mul_add(fmt),
        "pairwise(format)": accumulators.pairwise(fmt),
        "exact(format)": accumulators.exact(fmt),
        "chunked(4, format, 'float32')": accumulators.chunked(4, fmt, "float32"),
    }


@lru_cache(maxsize=1)
def hardware() -> dict[str, Accumulator]:
    """Accumulators whose formats are given, by name: IEEE 754's, and those of hardware, which take certain operands only."""
    plain = [
        make(name)
        for name in ("float16", "bfloat16", "float32")
        for make in (accumulators.fma, accumulators.mul_add, accumulators.pairwise, accumulators.exact)
    ]
    ipu = [accumulators.amp("half", inputs=x) for x in ("float16", "float8_e4m3fnuz", "float8_e5m2fnuz")]
    ipu += [accumulators.amp("float32", inputs=x) for x in ("float16", "float32")]
    ipu.append(accumulators.slic("half", window=4))
    inputs = {"float16": ("float16", "bfloat16"), "float8": ("float8_e4m3fn",)}
    cores = [
        accumulators.tensor_core(row.architecture, name)
        for row in TENSOR_CORES
        for name in inputs.get(row.input, (row.input,))
        if not (row.architecture in HALF_ALONE and name == "bfloat16")
    ]
    return {x.name: x for x in [*plain, *ipu, accumulators.vdpbf16ps(), *cores]}


def offered(fmt: Format) -> dict[str, Accumulator]:
    """Accumulators for operands in this format, by the names they have in a state."""
    return own(fmt) | {name: x for name, x in hardware().items() if not x.inputs or fmt in x.inputs}


# -- states ----------------------------------------------------------------------------------------------------------


def start(fmt: Format | str = "float8_e4m3fn", value: object = 0.1) -> State:
    """The state of an explorer that has just been opened.

    Parameters
    ----------
    fmt : Format or str
    value : str, int, float or Fraction
        The first operand: a number, or as text whatever `parse_value` reads, codes too.

    Returns
    -------
    dict
        Plain data, as JSON has them.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the accepted values.
    """
    fmt = check_format(Format.from_name(fmt), "format", what="the explorer")
    names = list(offered(fmt))
    settings = {"rounding": "nearest_even", "overflow": "infinity", "tininess": "after", "sr_bits": 8, "random_bits": 0}
    state: State = {"format": _parameters(fmt), **settings, "operation": "add"}
    typed = value if isinstance(value, str) else str(value.item() if hasattr(value, "item") else value)
    state["operands"] = [_typed(typed, state), _typed("1.5", state)]
    second = "fma('float32')"
    state["dot"] = {**deepcopy(PRODUCTS), "accumulators": [names[0], second]}
    state["block"] = start_block()
    return state


def check_state(state: Any) -> State:
    """A state that was saved, or made elsewhere: the same if it is one.

    Raises
    ------
    ValueError, TypeError
        Naming what is wrong with it.
    """
    expected = ("format", *SETTINGS, "operands", "dot", "block")
    if not isinstance(state, Mapping) or set(state) != set(expected):
        raise ValueError(f"a state must be a dictionary of {', '.join(expected)}")
    state = deepcopy(dict(state))
    if not isinstance(state["format"], Mapping) or set(state["format"]) != set(FORMAT_FIELDS):
        raise ValueError(f"format must be a dictionary of {', '.join(FORMAT_FIELDS)}")
    fmt = Format(**state["format"])
    state["format"] = _parameters(fmt)
    for name in SETTINGS:
        _check_setting(name, state[name], state)
    operands, dot = state["operands"], state["dot"]
    if not isinstance(operands, list) or len(operands) != 2:
        raise ValueError("operands must be a list of two")
    for operand in operands:
        if not isinstance(operand, Mapping) or set(operand) != {"typed", "code"}:
            raise ValueError("each operand must be a dictionary of typed and code")
        _check_code(operand["code"], fmt)
        check_typed(operand["typed"])
        parse_value(operand["typed"])
    if not isinstance(dot, Mapping) or set(dot) != {"a", "b", "accumulators"}:
        raise ValueError("dot must be a dictionary of a, b and accumulators")
    a, b = dot["a"], dot["b"]
    if not isinstance(a, list) or not isinstance(b, list) or len(a) != len(b) or not 1 <= len(a) <= MOST_PRODUCTS:
        raise ValueError(f"a and b of dot must be lists of the same length, 1 to {MOST_PRODUCTS}")
    for typed in [*a, *b]:
        check_typed(typed)
    if not isinstance(dot["accumulators"], list) or len(dot["accumulators"]) != 2:
        raise ValueError("accumulators must be a list of two names")
    for name in dot["accumulators"]:
        check_choice("accumulator", name, list(offered(fmt)))
    state["block"] = check_block(state["block"], fmt)
    return state


def _parameters(fmt: Format) -> dict[str, Any]:
    return {name: getattr(fmt, name) for name in FORMAT_FIELDS}


def format_of(state: State) -> Format:
    """The format of a state; the roster's own where it is one of them."""
    fmt = Format(**state["format"])
    return ROSTER.get(fmt.name, fmt) if ROSTER.get(fmt.name) == fmt else fmt


def _check_code(code: Any, fmt: Format) -> int:
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code < 1 << fmt.bits:
        shown = hex(code) if isinstance(code, int) and not isinstance(code, bool) else repr(code)
        raise ValueError(f"{fmt} has no code {shown}; accepted: 0x0 to {hex((1 << fmt.bits) - 1)}")
    return code


def _check_setting(name: str, value: Any, state: State) -> None:
    """Refuse what a setting cannot be in a state whose other settings stand."""
    accepted = _choices(format_of(state)).get(name)
    if accepted is not None:
        check_choice(name, value, accepted)
        return
    low, high = (1, MOST_RANDOM_BITS) if name == "sr_bits" else (0, 2 ** state["sr_bits"] - 1)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")


def _choices(fmt: Format) -> dict[str, list[str]]:
    return {
        "rounding": list(ROUNDINGS),
        "overflow": [x for x in OVERFLOWS if x != "nan" or fmt.has_nan],
        "tininess": list(TININESSES),
        "operation": list(SYMBOLS),
    }


def _options(state: State, rounding: str | None = None) -> dict[str, Any]:
    """Options of `bits` that round as a state does, or by another mode."""
    mode = rounding or state["rounding"]
    options = {"rounding": mode, "overflow": state["overflow"], "tininess": state["tininess"]}
    if mode == "stochastic":
        options |= {"sr_bits": state["sr_bits"], "random_bits": state["random_bits"]}
    if mode == "up_or_down":  # the first of them
        options |= {"random_bits": state["random_bits"] >> (state["sr_bits"] - 1)}
    return options


def _encoded(typed: str, state: State) -> int:
    """The code of what was typed."""
    number, fmt = parse_value(check_typed(typed)), format_of(state)
    if isinstance(number, int):
        return _check_code(number, fmt)
    return int(bits.encode(number, fmt, **_options(state))[0])


def _typed(typed: str, state: State) -> dict[str, Any]:
    return {"typed": typed.strip(), "code": _encoded(typed, state)}


# -- events ----------------------------------------------------------------------------------------------------------


def act(state: State, event: Mapping[str, Any]) -> State:
    """What an event makes of a state; the state itself stays as it is.

    Parameters
    ----------
    state : dict
    event : mapping
        `do` is a name of `EVENTS`; other entries are what that takes. "flip" (bit, operand): a bit of a code. "step" (by,
        operand): to the next number. "code" (value, operand), "type" (value, operand): a code; text. "set" (name, value): a
        setting. "format" (value): a name, or parameters of `Format`. "products" (value), "product" (column, place, value),
        "accumulator" (place, value): of the dot product. "block" (name, value): of the block, by
        `block_exploration.BLOCK_FIELDS`, or its "format", a "fill" of numbers, or a "number" (place, value). "restore" (value):
        a state. `operand` and `place` count from 0.

    Raises
    ------
    ValueError, TypeError
        In words for whoever made the event.
    """
    check_choice("do", event.get("do"), list(EVENTS))
    changed = deepcopy(state)
    found = EVENTS[event["do"]](changed, event)
    return changed if found is None else found


def _operand(state: State, event: Mapping[str, Any]) -> dict[str, Any]:
    place = event.get("operand", 0)
    check_choice("operand", place, (0, 1))
    operand: dict[str, Any] = state["operands"][place]
    return operand


def _flip(state: State, event: Mapping[str, Any]) -> None:
    width, operand = format_of(state).bits, _operand(state, event)
    check_choice("bit", event["bit"], range(width))
    operand["code"] ^= 1 << event["bit"]


def _step(state: State, event: Mapping[str, Any]) -> None:
    operand = _operand(state, event)
    check_choice("by", event["by"], (-1, 1))
    move = bits.next_up if event["by"] > 0 else bits.next_down
    operand["code"] = int(move(operand["code"], format_of(state))[0])


def _code(state: State, event: Mapping[str, Any]) -> None:
    _operand(state, event)["code"] = _check_code(event["value"], format_of(state))


def _type(state: State, event: Mapping[str, Any]) -> None:
    _operand(state, event).update(_typed(event["value"], state))


def _set(state: State, event: Mapping[str, Any]) -> None:
    """A number that was typed, and not changed since, is rounded again."""
    name, value = event["name"], event["value"]
    check_choice("name", name, SETTINGS)
    follows = [x["code"] == _encoded(x["typed"], state) for x in state["operands"]]
    _check_setting(name, value, state)
    state[name] = value
    state["random_bits"] = min(state["random_bits"], 2 ** state["sr_bits"] - 1)
    for operand, follow in zip(state["operands"], follows, strict=True):
        if follow:
            operand["code"] = _encoded(operand["typed"], state)


def _format(state: State, event: Mapping[str, Any]) -> None:
    """What was typed is rounded to the new format; where the code was changed since, the code's value."""
    value, old = event["value"], format_of(state)
    fmt = Format(**value) if isinstance(value, Mapping) else Format.from_name(value)
    check_format(fmt, "format", what="the explorer")
    texts = []
    for operand in state["operands"]:
        number = isinstance(parse_value(operand["typed"]), int)
        follows = not number and operand["code"] == _encoded(operand["typed"], state)
        texts.append(operand["typed"] if follows else typed_text(inspect_code(operand["code"], old).value))
    state["format"] = _parameters(fmt)
    if state["overflow"] not in _choices(fmt)["overflow"]:
        state["overflow"] = "infinity"
    state["operands"] = [_typed(text, state) for text in texts]
    names = list(offered(fmt))
    state["dot"]["accumulators"] = [x if x in names else names[0] for x in state["dot"]["accumulators"]]
    state["block"] = fitting(state["block"], fmt)


def _products(state: State, event: Mapping[str, Any]) -> None:
    count, dot = event["value"], state["dot"]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_PRODUCTS:
        raise ValueError(f"products must be an integer from 1 to {MOST_PRODUCTS}, got {count!r}")
    for column in ("a", "b"):
        dot[column] = (dot[column] + ["1"] * MOST_PRODUCTS)[:count]


def _product(state: State, event: Mapping[str, Any]) -> None:
    check_choice("column", event["column"], ("a", "b"))
    column = state["dot"][event["column"]]
    check_choice("place", event["place"], range(len(column)))
    parse_value(check_typed(event["value"]))
    column[event["place"]] = event["value"].strip()


def _accumulator(state: State, event: Mapping[str, Any]) -> None:
    check_choice("place", event["place"], (0, 1))
    check_choice("accumulator", event["value"], list(offered(format_of(state))))
    state["dot"]["accumulators"][event["place"]] = event["value"]


def _block(state: State, event: Mapping[str, Any]) -> None:
    changed = set_block(state["block"], format_of(state), event["name"], event["value"], event.get("place"))
    state["block"] = deepcopy(changed)


def _restore(state: State, event: Mapping[str, Any]) -> State:
    return check_state(event["value"])


EVENTS: dict[str, Callable[[State, Mapping[str, Any]], State | None]] = {
    "flip": _flip,
    "step": _step,
    "code": _code,
    "type": _type,
    "set": _set,
    "format": _format,
    "products": _products,
    "product": _product,
    "accumulator": _accumulator,
    "block": _block,
    "restore": _restore,
}
"""What can be done, by name."""


# -- views -----------------------------------------------------------------------------------------------------------


def view(state: State) -> dict[str, Any]:
    """Everything there is to draw of a state, as texts in plain data.

    Returns
    -------
    dict
        `state`; `format`: name, layout and facts; `choices` of each setting; `number`: the first operand's rows as
        `softfloat inspect` prints them, and what each mode makes of the number; `line`: neighbours, the ties between them and
        the number, in units of 1/10000 of its length; `table`: all codes of at most 8 bits; `arithmetic`: both operands, the
        exact result, and what each mode makes of it; `dot`: the sums, step by step; `block`: scale, elements, and what became of
        each number.
    """
    fmt = format_of(state)
    first, second = state["operands"]
    return {
        "state": state,
        "format": {
            "name": fmt.name,
            "layout": fmt.layout,
            "facts": [list(row) for row in format_facts(fmt)],
            "fields": [[name, len(digits)] for name, digits in bit_fields(0, fmt)],
        },
        "choices": {"formats": list(ROSTER), **_choices(fmt), "accumulators": list(offered(fmt))},
        "number": _number(state, fmt),
        "line": _line(first, fmt),
        "table": _table(fmt) if fmt.bits <= WHOLE_TABLE else [],
        "arithmetic": _arithmetic(first["code"], second["code"], state, fmt),
        "dot": _dot(state, fmt),
        "block": block_view(state["block"], fmt, _options(state) | {"overflow": "saturate"}),
    }


def _flag_text(flags: int) -> str:
    return str(Flags(int(flags)))


def exact_text(x: Fraction) -> dict[str, str]:
    """A number with all its digits, or as a quotient; and the same, or about it, in few characters."""
    dyadic = not x.denominator & (x.denominator - 1)
    whole = exact_decimal(x) if dyadic else f"{x.numerator}/{x.denominator}"
    return {"text": whole if len(whole) <= LONGEST_EXACT else f"about {float(x):.9g}", "exact": whole}


def _shown(code: int, fmt: Format) -> dict[str, Any]:
    found = inspect_code(code, fmt)
    return {
        "code": code_text(code, fmt),
        "bits": [list(field) for field in bit_fields(code, fmt)],
        "value": short_text(found.value),
        "exact": found.decimal,
        "class": found.kind,
    }


def _modes(state: State, rounded: Callable[[dict[str, Any]], Any], fmt: Format) -> list[dict[str, Any]]:
    """What each rounding mode gives."""
    rows = []
    for mode in ROUNDINGS:
        code, flags = rounded(_options(state, mode))
        shown = short_text(inspect_code(int(code), fmt).value)
        row = {"rounding": mode, "code": code_text(int(code), fmt), "value": shown, "flags": _flag_text(flags)}
        rows.append(row | {"chosen": mode == state["rounding"]})
    return rows


def _number(state: State, fmt: Format) -> dict[str, Any]:
    operand = state["operands"][0]
    number, typed = parse_value(operand["typed"]), operand["typed"]
    same = _encoded(typed, state) == operand["code"]
    as_number = same and not isinstance(number, int)
    found = inspect_number(typed, fmt, **_options(state)) if as_number else inspect_code(operand["code"], fmt)
    modes = [] if isinstance(number, int) else _modes(state, lambda options: bits.encode(number, fmt, **options), fmt)
    rows = [[name, text] for name, text, _ in inspection_rows(found)]
    return {**_shown(operand["code"], fmt), "rows": rows, "typed": typed, "same": same, "modes": modes}


def _line(operand: Mapping[str, Any], fmt: Format) -> dict[str, Any] | None:
    """Some neighbours on either side, finite ones."""
    code = operand["code"]
    if bits.isnan(code, fmt):
        return None
    around = [code]
    for move, at in ((bits.next_down, 0), (bits.next_up, len(around))):
        here = code
        for _ in range(SIDE):
            there = int(move(here, fmt)[0])
            if there == here:
                break
            here = there
            around.insert(at if at == 0 else len(around), here)
    values = {x: Fraction(float(bits.decode(x, fmt))) for x in around if bits.isfinite(x, fmt)}
    codes = list(values)
    low, high = min(values.values()), max(values.values())
    if low == high:
        return None

    def at_unit(x: Fraction) -> int:
        return math.floor(LINE_UNITS * (x - low) / (high - low))

    marks = [
        {
            "code": code_text(x, fmt),
            "number": x,
            "value": short_text(inspect_code(x, fmt).value),
            "at": at_unit(values[x]),
        }
        for x in codes
    ]
    ties = [
        {**exact_text((values[x] + values[y]) / 2), "at": at_unit((values[x] + values[y]) / 2)}
        for x, y in pairwise(codes)
    ]
    number = parse_value(operand["typed"])
    typed = None
    if not isinstance(number, int) and math.isfinite(number) and low <= Fraction(number) <= high:
        typed = at_unit(Fraction(number))
    return {"marks": marks, "ties": ties, "typed": typed, "current": code_text(code, fmt)}


@lru_cache(maxsize=64)
def _table(fmt: Format) -> list[dict[str, Any]]:
    rows = []
    for code in range(1 << fmt.bits):
        found = inspect_code(code, fmt)
        text = found.decimal if len(found.decimal) <= 7 else f"{float(found.value):.3g}"
        rows.append({"code": code_text(code, fmt), "text": text, "exact": found.decimal, "class": found.kind})
    return rows


def exact_result(operation: str, x: Fraction | float, y: Fraction | float) -> Fraction | None:
    """The result before it is rounded; None where it is no finite number."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return None
    x, y = Fraction(x), Fraction(y)
    if operation in ("div", "remainder") and not y:
        return None
    if operation == "div":
        return x / y
    if operation == "remainder":
        return x - round(x / y) * y
    return {"add": x + y, "sub": x - y, "mul": x * y}[operation]


def _arithmetic(a: int, b: int, state: State, fmt: Format) -> dict[str, Any]:
    operation = state["operation"]
    exact = exact_result(operation, inspect_code(a, fmt).value, inspect_code(b, fmt).value)
    function = getattr(bits, operation)
    return {
        "operation": operation,
        "symbol": SYMBOLS[operation],
        "operands": [_shown(a, fmt), {**_shown(b, fmt), "typed": state["operands"][1]["typed"]}],
        "exact": exact_text(exact) if exact is not None else {"text": "no finite number", "exact": "no finite number"},
        "modes": _modes(state, lambda options: function(a, b, fmt, **options), fmt),
    }


def _dot(state: State, fmt: Format) -> dict[str, Any]:
    dot, columns = state["dot"], dict[str, list[int]]()
    message = ""
    for column in ("a", "b"):
        columns[column] = []
        for place, typed in enumerate(dot[column], 1):
            try:
                code = _encoded(typed, state | {"rounding": "nearest_even", "overflow": "infinity"})
            except ValueError as error:
                message = message or f"{column} of product {place}: {error}"
                code = 0
            if not bits.isfinite(code, fmt):
                message = message or f"{column} of product {place} must be a finite number in {fmt}, got {typed}"
            columns[column].append(code)
    if as_rounding(state["rounding"]).draws:
        message = (
            f"{state['rounding']} rounding draws a number for every step of a sum, from a seed: choose another mode"
        )
    elements = {
        name: [{"typed": typed, **_element(code, fmt)} for typed, code in zip(dot[name], codes, strict=True)]
        for name, codes in columns.items()
    }
    sums = [] if message else [_sum(name, columns, state, fmt) for name in dot["accumulators"]]
    return {**elements, "message": message, "chosen": dot["accumulators"], "sums": sums}


def _element(code: int, fmt: Format) -> dict[str, str]:
    return {"code": code_text(code, fmt), "value": short_text(inspect_code(code, fmt).value)}


def _sum(name: str, columns: Mapping[str, list[int]], state: State, fmt: Format) -> dict[str, Any]:
    how = offered(fmt)[name]
    options = {key: state[key] for key in ("rounding", "overflow", "tininess")}
    result: dict[str, Any] = {"accumulator": name, "describe": how.describe(), "note": how.note, "message": ""}
    try:
        found = sum_in_steps(columns["a"], columns["b"], fmt, how, **options)
    except ValueError as error:
        return result | {"message": str(error)}
    nothing = {"text": "", "exact": ""}

    def row(code: int, target: Format, flags: Flags) -> dict[str, Any]:
        return {**_element(code, target), "format": target.name, "flags": _flag_text(flags)}

    return result | {
        **row(found.code, found.format, found.flags),
        "exact": exact_text(found.exact),
        "lost": nothing if found.lost is None else exact_text(found.lost),
        "steps": [
            {
                "what": step.what,
                "exact": nothing if step.exact is None else exact_text(step.exact),
                "lost": nothing if step.lost is None else exact_text(step.lost),
                **row(step.code, step.format, step.flags),
            }
            for step in found.steps
        ],
    }
