"""Mistakes in operations on blocks: other scale rules, scales misread, what is left open by the OCP's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.blocks import SCALE_RULES
from softfloat.blocks.rules import POWER_OF_TWO
from softfloat.formats import ROSTER, Format
from softfloat.testing.vectors.block_operations import DEQUANTIZE, PRODUCTS, QUANTIZE, SCALE, SPECIAL
from softfloat.testing.vectors.operations import Case
from softfloat.testing.verdicts.cause import Cause, Pair, changed, ran

__all__ = ["block_causes", "float32_logarithm"]

Codes = np.ndarray[Any, Any]


def block_causes(case: Case) -> Iterator[Cause]:
    """The mistakes that a device can make in an operation on blocks, beside those of any rounding."""
    yield from _FAMILIES[case.operation.name](case)


def _with(case: Case, **changes: Any) -> Case:
    """The same with other block options."""
    assert case.blocks is not None
    return case.replace(blocks=replace(case.blocks, **changes))


SPECIAL_MEANINGS = {
    ("nans", "element"): "a NaN does not make the scale NaN",
    ("nans", "block"): "a NaN makes the scale NaN",
    ("infinities", "block"): "an infinity makes the scale NaN",
    ("infinities", "saturate"): "an infinity makes the scale the largest",
    ("infinities", "element"): "an infinity does nothing to the scale",
    ("nan_to", "max"): "NaN becomes the largest element",
    ("nan_to", "zero"): "NaN becomes 0",
    ("nan_to", "negative_zero"): "NaN becomes -0",
    ("zero_block", "smallest"): "a block of zeros has the smallest scale",
    ("zero_block", "one"): "a block of zeros has the scale 1",
    ("zero_block", "nan"): "a block of zeros has the scale NaN",
    ("zero_block", "rule"): "a block of zeros has the scale that the rule gives",
    ("subnormal_blocks", "keep"): "subnormal numbers count",
    ("subnormal_blocks", "zero"): "blocks of subnormal numbers count as zeros",
}


def _treatments(case: Case, names: Sequence[str]) -> Iterator[Cause]:
    """Other choices where the OCP's text leaves one."""
    assert case.blocks is not None
    given = dict(case.blocks.special)
    for name in names:
        for value in SPECIAL[name]:
            if given.get(name) != value:
                other = _with(case, special=tuple(sorted({**given, name: value}.items())))
                yield Cause(f"{name} {value}", SPECIAL_MEANINGS[name, value], ran(other))


def _moved(step: int, results: Codes, flags: Codes) -> tuple[Codes, Codes]:
    return results + results.dtype.type(step % 256), flags


def _part(part: slice, x: Codes) -> Codes:
    return np.pad(x[:, part], ((0, 0), (0, 1)))


def _next(step: int, top: int, codes: Codes) -> Codes:
    return np.clip(codes.astype(np.int64) + step, 0, top)


# -- scales ----------------------------------------------------------------------------------------------------------


def float32_logarithm(amax: Codes, element: Any, scale: Format) -> Codes:
    """Codes of 2^(floor(log2(amax)) - e_m) with the logarithm rounded to float32: one too high just below powers of two."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.log2(amax.astype(np.float64)).astype(np.float32)
        exponent = np.floor(np.where(np.isfinite(logarithm), logarithm, 0)).astype(np.int64) - element.emax
    return np.clip(exponent + scale.bias, 0, scale.max_code).astype(scale.dtype)


def _scales(case: Case) -> Iterator[Cause]:
    assert case.blocks is not None
    fmt, rule = case.blocks.format, SCALE_RULES[case.blocks.rule]
    for other in SCALE_RULES.values():
        if other.name != rule.name and (other.kind == POWER_OF_TWO) == fmt.power_of_two_scale:
            yield Cause(f"rule {other.name}", other.meaning, ran(_with(case, rule=other.name)))
    if fmt.power_of_two_scale:

        def by_logarithm(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            amax = np.abs(operands[0].view(np.float32)).max(axis=1)
            found = float32_logarithm(amax, fmt.element, fmt.scale)
            return np.where(np.isfinite(amax) & (amax > 0), found, right[0]), None

        yield Cause(
            "float32 logarithm", "the scale is that of floor(log2(amax)), the logarithm in float32", by_logarithm
        )
    yield from _treatments(case, ("zero_block", "nans", "infinities", "subnormal_blocks"))
    for step, word in ((1, "next greater"), (-1, "next smaller")):
        yield Cause(f"scale {step:+d}", f"scales are the {word} ones", changed(partial(_moved, step)))

    def only(choose: Callable[[Codes], Codes]) -> Callable[[Sequence[Codes], tuple[Codes, Codes]], Pair]:
        return lambda operands, right: case.run([choose(operands[0])])

    signs = np.uint32(0x80000000)
    yield Cause(
        "negative numbers ignored",
        "the scale is that of the greatest number, not of the largest magnitude",
        only(lambda x: np.where(x & signs, np.uint32(0), x)),
    )
    for name, part in (("first", slice(1, None)), ("last", slice(None, -1))):
        shorter = only(partial(_part, part))
        yield Cause(f"{name} number ignored", f"the {name} number of a block has no part in its scale", shorter)
    half = only(lambda x: np.where(np.arange(x.shape[1]) < x.shape[1] // 2, x, np.uint32(0)))
    yield Cause("half of the block", "the scale is that of the first half of the block", half)
    yield Cause(
        "daz", "subnormal numbers count as zero", ran(case.under(daz=not case.environment.daz))
    )  # fmt: skip


# -- elements --------------------------------------------------------------------------------------------------------


def _misread(case: Case) -> Iterator[Cause]:
    """Scales that are read as others."""
    assert case.blocks is not None
    scale = case.blocks.format.scale

    def under(change: Callable[[Codes], Codes]) -> Callable[[Sequence[Codes], tuple[Codes, Codes]], Pair]:
        return lambda operands, right: case.run([operands[0], change(operands[1]).astype(scale.dtype), *operands[2:]])

    top = scale.max_code
    yield Cause("scale ignored", "the scale counts as 1", under(lambda x: np.full_like(x, scale.one_code)))
    for step, word in ((1, "next greater"), (-1, "next smaller")):
        moved = under(partial(_next, step, top))
        yield Cause(f"scale {step:+d}", f"scales are read as the {word} ones", moved)
    if case.blocks.format.power_of_two_scale:
        yield Cause(
            "scale inverted",
            "the scale multiplies where it divides, or divides where it multiplies",
            under(lambda x: np.clip(2 * scale.bias - x.astype(np.int64), 0, top)),
        )
        yield Cause("scale code 0 as 1", "scale code 0 is read as code 1", under(lambda x: np.maximum(x, 1)))
        yield Cause(
            "NaN scale ignored", "a scale that is NaN is read as the largest", under(lambda x: np.minimum(x, top))
        )
    elif scale.has_nan:
        largest = under(lambda x: np.where(np.asarray(bits.isnan(x, scale)), top, x))
        yield Cause("NaN scale ignored", "a scale that is NaN is read as the largest", largest)


def _positive_zeros(case: Case) -> Iterator[Cause]:
    fmt = case.target.format
    zero = 1 << 63 if case.target.kind == "float64" else fmt.sign_bit if fmt is not None and fmt.signed_zero else None
    if zero is not None:
        plus = changed(lambda results, flags: (np.where(results == zero, 0, results), None))
        yield Cause("-0 as +0", "zeros are positive", plus)


def _elements(case: Case) -> Iterator[Cause]:
    assert case.blocks is not None
    yield from _misread(case)
    yield from _treatments(case, ("nan_to",))
    yield from _positive_zeros(case)
    single = ROSTER["float32"]
    for name in ("bfloat16", "float16"):

        def rounded(operands: Sequence[Codes], right: tuple[Codes, Codes], narrow: Format = ROSTER[name]) -> Pair:
            x, _ = bits.convert(operands[0], single, narrow)
            back, _ = bits.convert(x, narrow, single)
            results, _ = case.run([back, *operands[1:]])
            return results, None

        yield Cause(f"x in {name}", f"numbers are rounded to {name} first", rounded)


def _numbers(case: Case) -> Iterator[Cause]:
    assert case.blocks is not None
    yield from _misread(case)
    yield from _positive_zeros(case)
    element = case.blocks.format.element
    if isinstance(element, Format) and element.subnormals:

        def flushed(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            codes = operands[0]
            zero = codes & element.dtype.type(element.sign_bit)
            return case.run([np.where(np.asarray(bits.issubnormal(codes, element)), zero, codes), operands[1]])

        yield Cause("subnormal elements as zero", "subnormal elements count as zero", flushed)

    def within(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        with np.errstate(over="ignore", under="ignore"):
            return right[0].view(np.float64).astype(np.float32).astype(np.float64).view(np.uint64), None

    yield Cause("float32 only", "numbers beyond float32 overflow or vanish", within)


# -- dot products ----------------------------------------------------------------------------------------------------


def _products(case: Case) -> Iterator[Cause]:
    def under(change: Callable[[Codes, Codes], tuple[Codes, Codes]]) -> Callable[..., Pair]:
        def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            a, b, first, second, *c = operands
            return case.run([a, b, *change(first, second), *c])

        return predict

    assert case.blocks is not None
    one, other = case.blocks.format.scale, case.blocks.second.scale
    ones, others = (lambda x: np.full_like(x, one.one_code)), (lambda x: np.full_like(x, other.one_code))
    yield Cause("scales ignored", "scales count as 1", under(lambda x, y: (ones(x), others(y))))
    yield Cause("scales of a ignored", "scales of a count as 1", under(lambda x, y: (ones(x), y)))
    yield Cause("scales of b ignored", "scales of b count as 1", under(lambda x, y: (x, others(y))))
    if one == other:
        columns = [column.length for column in case.operands[2:4]]
        if columns[0] == columns[1]:
            twice = under(lambda x, y: (x, x))
            yield Cause("scales of a twice", "scales of b are taken to be those of a", twice)
    first = under(lambda x, y: (np.repeat(x[:, :1], x.shape[1], 1), np.repeat(y[:, :1], y.shape[1], 1)))
    yield Cause("first scales", "the scales of the first block serve all blocks", first)
    yield Cause("scales reversed", "blocks have their scales in reverse", under(lambda x, y: (x[:, ::-1], y[:, ::-1])))


_FAMILIES: dict[str, Callable[[Case], Iterator[Cause]]] = {
    SCALE: _scales,
    QUANTIZE: _elements,
    DEQUANTIZE: _numbers,
    PRODUCTS: _products,
}
