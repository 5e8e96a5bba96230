"""The explorer's block: numbers that share a scale, by a rule, and what becomes of them.

`page/blocks.js` restates it, and is held against it.

>>> found = block_view(start_block(), Format.from_name("float16"), {})
>>> found["counts"]
[['saturated', 1], ['vanished', 11], ['rounded', 20], ['exact', 0]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from softfloat import bits
from softfloat.blocks import SCALE_RULES, BlockFormat, Fixed, check_rule
from softfloat.blocks.formats import BLOCK_ROSTER, check_block_format
from softfloat.checks import check_choice
from softfloat.display.blocks import BlockInspection, hexadecimal, inspect_block
from softfloat.display.inspection import short_text
from softfloat.display.numbers import check_typed, parse_value, power_of_two
from softfloat.formats import ROSTER, Format, code_text
from softfloat.status import Flags

__all__ = [
    "BLOCK_FIELDS",
    "FILLS",
    "FIXED",
    "HERE",
    "block_view",
    "check_block",
    "fitting",
    "set_block",
    "settings_of",
    "start_block",
]

HERE = "{format}"
"""In a block, the explorer's own format as the elements'."""

MOST = 32  # elements
CHART_UNITS = 10_000
BELOW = 2  # binades that a chart goes on below the smallest element
NONE = "none"
TENSOR_SCALES = (NONE, "float32")
BLOCK_FIELDS = ("element", "scale", "tensor_scale", "rule", "size", "numbers")
FIXED = {fmt.element.name: fmt.element for fmt in BLOCK_ROSTER.values() if isinstance(fmt.element, Fixed)}
ELEMENTS = [HERE, *(fmt.name for fmt in ROSTER.values() if fmt.signed and fmt.zero), *FIXED]
"""What elements may be coded in, by name."""

FATES = ("saturated", "vanished", "rounded", "exact")

BELL = [f"{NormalDist().inv_cdf((13 * i % MOST + 0.5) / MOST):.3g}" for i in range(MOST)]
FILLS: dict[str, list[str]] = {
    "a bell curve": BELL,
    "one outlier": [*BELL[:11], "15", *BELL[12:]],
    "powers of two": [f"{2.0 ** (i - 16):.9g}" for i in range(MOST)],
    "steps of 1/8": [f"{i / 8:.9g}" for i in range(MOST)],
    "an infinity": [*BELL[:11], "inf", *BELL[12:]],
    "a NaN": [*BELL[:11], "nan", *BELL[12:]],
    "zeros": ["0"] * MOST,
}
"""Numbers to begin with, by what they are."""

Block = dict[str, Any]


def start_block() -> Block:
    """A block to begin with: most of a bell curve beside one outlier, in MXFP4."""
    return {**settings_of(check_block_format("mxfp4")), "numbers": FILLS["one outlier"]}


def settings_of(fmt: BlockFormat) -> Block:
    """A block format as settings of a block, its default rule among them."""
    tensor = NONE if fmt.tensor_scale is None else str(fmt.tensor_scale)
    rule = check_rule(None, fmt).name
    return {
        "element": str(fmt.element),
        "scale": str(fmt.scale),
        "tensor_scale": tensor,
        "rule": rule,
        "size": fmt.elements,
    }


def _block_format(block: Mapping[str, Any], fmt: Format) -> BlockFormat:
    """The block format of these settings; `fmt` is the explorer's."""
    return _made(block["element"], block["scale"], block["tensor_scale"], block["size"], fmt)


@lru_cache(maxsize=4096)
def _made(element: str, scale: str, tensor_scale: str, size: int, fmt: Format) -> BlockFormat:
    wanted = {"element": element, "scale": scale, "tensor_scale": tensor_scale, "size": size}
    for known in BLOCK_ROSTER.values():
        if wanted.items() <= settings_of(known).items():
            return known
    coded = fmt if element == HERE else FIXED.get(element) or ROSTER[element]
    tensor = None if tensor_scale == NONE else tensor_scale
    return BlockFormat("block", element=coded, scale=scale, block=size, tensor_scale=tensor)


@lru_cache(maxsize=4096)
def _go_together(element: str, scale: str, tensor_scale: str, fmt: Format) -> bool:
    try:
        _made(element, scale, tensor_scale, 1, fmt)
    except ValueError:
        return False
    return True


def _allowed(block: Mapping[str, Any], fmt: Format) -> bool:
    return _go_together(block["element"], block["scale"], block["tensor_scale"], fmt)


@lru_cache(maxsize=64)
def _rules(scale: str) -> list[str]:
    powers = BlockFormat("block", element="float4_e2m1fn", scale=scale, block=1).power_of_two_scale
    return [x.name for x in SCALE_RULES.values() if (x.kind == "power of two") == powers]


def _choices(block: Mapping[str, Any], fmt: Format) -> dict[str, list[str]]:
    """What each setting may become while the others stay."""

    def fit(name: str, values: list[str]) -> list[str]:
        return [x for x in values if _allowed({**block, name: x}, fmt)]

    return {
        "element": fit("element", ELEMENTS),
        "scale": fit("scale", list(ROSTER)),
        "tensor_scale": fit("tensor_scale", list(TENSOR_SCALES)),
        "rule": _rules(block["scale"]),
    }


def fitting(block: Block, fmt: Format) -> Block:
    """The block beside another format of the explorer's: its elements are of one of the roster where they cannot be of that."""
    return block if _allowed(block, fmt) else block | {"element": "float4_e2m1fn"}


def _check_size(size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
        raise ValueError(f"size must be an integer from 1 to {MOST}, got {size!r}")
    return size


def _check_number(typed: Any) -> str:
    text = check_typed(typed).strip()
    if isinstance(parse_value(text), int):
        raise ValueError(f"{text} is a code, and elements have no value without a scale; accepted: numbers")
    return text


def check_block(block: Any, fmt: Format) -> Block:
    """A block that was saved, or made elsewhere: the same if it is one."""
    if not isinstance(block, Mapping) or set(block) != set(BLOCK_FIELDS):
        raise ValueError(f"block must be a dictionary of {', '.join(BLOCK_FIELDS)}")
    check_choice("element", block["element"], ELEMENTS)
    check_choice("scale", block["scale"], list(ROSTER))
    check_choice("tensor_scale", block["tensor_scale"], TENSOR_SCALES)
    _check_size(block["size"])
    if not _allowed(block, fmt):
        raise ValueError("element, scale and tensor_scale do not go together")
    check_choice("rule", block["rule"], _rules(block["scale"]))
    if not isinstance(block["numbers"], list) or len(block["numbers"]) != MOST:
        raise ValueError(f"numbers must be a list of {MOST}")
    return {**block, "numbers": [_check_number(x) for x in block["numbers"]]}


def set_block(block: Block, fmt: Format, name: Any, value: Any, place: Any = None) -> Block:
    """The block with another setting: a name of `BLOCK_FIELDS`, or "format" or "fill" for several at once; one number by its place."""
    check_choice("name", name, ("format", "fill", "number", *BLOCK_FIELDS[:-1]))
    if name == "format":
        check_choice("format", value, list(BLOCK_ROSTER))
        return block | settings_of(BLOCK_ROSTER[value])
    if name == "fill":
        check_choice("fill", value, list(FILLS))
        return block | {"numbers": FILLS[value]}
    if name == "number":
        check_choice("place", place, range(MOST))
        numbers = list(block["numbers"])
        numbers[place] = _check_number(value)
        return block | {"numbers": numbers}
    if name == "size":
        return block | {"size": _check_size(value)}
    check_choice(name, value, _choices(block, fmt)[name])
    changed = block | {name: value}
    rules = _rules(changed["scale"])
    return (
        changed if changed["rule"] in rules else changed | {"rule": check_rule(None, _block_format(changed, fmt)).name}
    )


# -- views -----------------------------------------------------------------------------------------------------------


def block_view(block: Block, fmt: Format, options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything there is to draw of a block; `options` are those of the rounding of elements, which saturate."""
    shared = _block_format(block, fmt)
    named = shared.name if shared.name in BLOCK_ROSTER else NONE
    rule = SCALE_RULES[block["rule"]]
    shown: dict[str, Any] = {
        "format": named,
        "choices": {"format": list(BLOCK_ROSTER), **_choices(block, fmt), "fill": list(FILLS)},
        "facts": [
            ["elements", f"{shared.element}: {shared.element.layout}, up to {shared.element.max:.9g}"],
            ["scales", f"{shared.scale}: {shared.scale.layout}, up to {shared.scale.max:.9g}"],
            ["bits an element", f"{shared.bits_per_element:.6g}, its share of the scale included"],
            ["rule", rule.meaning],
            ["source", rule.source],
        ],
        "rows": [],
        "counts": [],
        "chart": None,
        "message": "",
    }
    numbers = block["numbers"][: block["size"]]
    try:
        found = inspect_block(numbers, shared, rule.name, **options)
    except ValueError as error:
        return shown | {"message": str(error)}
    codes, _ = bits.encode([parse_value(text) for text in numbers], "float32")
    given = [_signed(value) for value in bits.decode(codes, "float32").tolist()]
    fates = [_fate(*each) for each in zip(given, found.values, found.flags, strict=True)]
    scale = f"{code_text(found.scale, shared.scale)} = {_scale_text(found.scale_value)}"
    first = [["this block's scale", scale]]
    if found.tensor_scale is not None:
        first.append(["the tensor's scale", short_text(found.tensor_scale)])
    void = isinstance(found.scale_value, float)
    return shown | {
        "facts": [*first, *shown["facts"]],
        "counts": [] if void else [[fate, fates.count(fate)] for fate in FATES],
        "rows": [
            {
                "typed": text,
                "given": short_text(number),
                "code": hexadecimal(code, shared.element.bits),
                "element": short_text(_signed(element)),
                "value": short_text(_signed(value)),
                "error": _error(number, value),
                "fate": fate,
                "flags": str(flags),
            }
            for text, number, code, element, value, fate, flags in zip(
                numbers, given, found.codes, found.elements, found.values, fates, found.flags, strict=True
            )
        ],
        "chart": None if void else _chart(shared, found, given),
        "message": "The scale is NaN, and so is the whole block." if void else "",
    }


def _signed(value: float) -> Fraction | float:
    """Zeros with a sign, infinities and NaN as they are, other numbers as fractions."""
    plain = math.isfinite(value) and (value or math.copysign(1, value) > 0)
    return Fraction(value) if plain else value


def _scale_text(value: Fraction | float) -> str:
    exponent = power_of_two(value) if isinstance(value, Fraction) else None
    return short_text(value) if exponent is None else f"2^{exponent}"


def _fate(given: Fraction | float, value: float, flags: Flags) -> str:
    if math.isnan(value):
        return "NaN"
    if flags & Flags.OVERFLOW or math.isinf(given):
        return "saturated"
    if value == 0 and given != 0:
        return "vanished"
    return "exact" if given == value else "rounded"


def _error(given: Fraction | float, value: float) -> str:
    """The relative error, where there is one."""
    if not math.isfinite(value) or not math.isfinite(given) or given == 0:
        return ""
    error = Fraction(value) / Fraction(given) - 1
    return f"{float(error):.3g}" if error else "0"


def _height(x: Fraction) -> Fraction:
    """The exponent, and linearly between powers of two."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** exponent:
        exponent -= 1
    return exponent + x / Fraction(2) ** exponent - 1


def _chart(shared: BlockFormat, found: BlockInspection, given: list[Fraction | float]) -> dict[str, Any] | None:
    """Magnitudes on a logarithmic axis, in units of its length, and the elements' range under their scale."""
    unit = Fraction(found.scale_value) * (1 if found.tensor_scale is None else found.tensor_scale)
    if not unit:
        return None
    element = shared.element
    smallest = element.quantum if isinstance(element, Fixed) else element.smallest_subnormal
    low, high = Fraction(smallest) * unit, Fraction(element.max) * unit
    finite = [abs(Fraction(x)) for x in given if math.isfinite(x)]
    bottom, top = math.floor(_height(low)) - BELOW, math.floor(_height(max(high, *finite))) + 1

    def at(x: float | Fraction) -> int | None:
        if math.isinf(x):
            return CHART_UNITS
        if not x:
            return None
        height = (_height(abs(Fraction(x))) - bottom) / (top - bottom)
        return min(max(math.floor(CHART_UNITS * height), 0), CHART_UNITS)

    return {
        "low": [short_text(low), at(low)],
        "high": [short_text(high), at(high)],
        "marks": [[at(x), at(y)] for x, y in zip(given, found.values, strict=True)],
    }
