"""What happens inside a row of an operation on blocks: classes of scales, ties of elements, what saturates, vanishes or is NaN.

>>> from softfloat.testing.vectors.operations import resolve
>>> case = resolve("block_quantize", "mxfp4")
>>> operands = [np.float32([2.5]).view(np.uint32), np.array([0x7F], np.uint8)]
>>> found = measure_blocks(case, operands, *case.run(operands))
>>> {x.name: x.bins[found[x.name][0]] for x in block_dimensions(case) if x.name in ("rounding", "element")}
{'rounding': 'tie, even', 'element': 'normal'}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.blocks import BlockFormat, Fixed
from softfloat.blocks.rules import SCALE_RULES
from softfloat.environments import Overflow
from softfloat.formats import ROSTER, Format
from softfloat.status import Flags
from softfloat.testing.vectors.block_operations import DEQUANTIZE, PRODUCTS, QUANTIZE, SCALE
from softfloat.testing.vectors.columns import FLOAT64, Number
from softfloat.testing.vectors.exact_numbers import NONE, ROUNDINGS, exact_values, rounded
from softfloat.testing.vectors.measures import (
    SETS,
    Bins,
    Dimension,
    class_of,
    classes,
    flag_names,
    joined,
    result_bins,
    result_of,
)
from softfloat.testing.vectors.operations import Case

__all__ = ["block_dimensions", "ladder", "measure_blocks", "no_such_row"]

Codes = np.ndarray[Any, Any]

SINGLE = ROSTER["float32"]
LARGEST = ("zero", "subnormal", "normal", "infinity", "NaN")
SIGNIFICANDS = ("power of two", "next below a power", "next above a power", "largest element", "next above it", "other")
"""Of the largest magnitude of a block: rules of scales part there."""
PLACES = ("first", "inside", "last")
ELEMENTS = ("zero", "became zero", "subnormal", "normal", "largest", "saturated", "NaN", "infinity", "scale NaN")
NUMBERS = ("zero", "normal", "infinity", "NaN")
SPREADS = ("0", "1", "2 to 7", "8 to 23", "24 and more")
ROWS = ("all ordinary", "a zero", "a NaN", "a zero and a NaN")
ONE_PLACE = "blocks have one element"


class Grid(NamedTuple):
    """What `rounded` asks of a format, for elements of fixed point: a last place that is everywhere the same."""

    emin: int
    p: int


def grid_of(element: Fixed) -> Grid:
    """A range that begins above all numbers."""
    above = 1 << 12
    return Grid(above, above + element.fraction_bits + 1)


# -- dimensions ------------------------------------------------------------------------------------------------------


def block_dimensions(case: Case) -> list[Dimension]:
    """The dimensions of a case with blocks, and all their bins, reachable or not."""
    return list(_dimensions(case))


def _dimensions(case: Case) -> Iterator[Dimension]:
    name = case.operation.name
    if name == SCALE:
        yield Dimension("largest", LARGEST)
        yield Dimension("significand of the largest", SIGNIFICANDS)
        yield Dimension("place of the largest", PLACES)
        yield from _fields(case.target, "the scale")
    elif name == PRODUCTS:
        for column in case.operands:
            if column.name in ("scale_a", "scale_b"):
                yield Dimension(f"scales of {column.name[-1]}", ROWS)
        yield Dimension("exponents between blocks", SPREADS)
    else:
        first, scale = case.operands[:2]
        sorts = [joined(classes(column.number)) for column in (first, scale)]
        yield Dimension("operands", tuple(" ".join(x) for x in product(*sorts)))
        yield from _fields(scale.number, "the scale")
        if name == QUANTIZE:
            yield Dimension("rounding", ROUNDINGS)
            yield Dimension("element", ELEMENTS)
        else:
            yield Dimension("number", NUMBERS)
    if name != SCALE and result_bins(case.target):
        yield Dimension("result", result_bins(case.target))
    if name in (QUANTIZE, PRODUCTS):
        yield Dimension("flags", tuple(map(flag_names, SETS)))


def _fields(scale: Number, what: str) -> Iterator[Dimension]:
    assert scale.format is not None
    yield Dimension(f"exponent field of {what}", tuple(map(str, range(1 << scale.format.exponent_bits))))


def _field(codes: Codes, fmt: Format) -> Codes:
    found: Codes = codes.astype(np.int64) >> fmt.mantissa_bits & (1 << fmt.exponent_bits) - 1
    return found


# -- rows ------------------------------------------------------------------------------------------------------------


def measure_blocks(case: Case, operands: Sequence[Codes], results: Codes, flags: Codes | None) -> Bins:
    """The bins that rows lie in, as `measures.measure` gives them."""
    assert case.blocks is not None
    name, found = case.operation.name, Bins()
    if name == SCALE:
        _measure_maxima(case, operands[0], results, found)
    elif name == PRODUCTS:
        _measure_products(case, operands, found)
    else:
        _measure_elements(case, operands, results, flags, found)
    if name != SCALE and result_bins(case.target):
        found["result"] = result_of(results, case.target)
    if name in (QUANTIZE, PRODUCTS):
        found["flags"] = np.full(len(results), NONE) if flags is None else flags.astype(np.int64)
    return found


def _measure_maxima(case: Case, x: Codes, scales: Codes, found: Bins) -> None:
    assert case.blocks is not None
    magnitudes = x & np.uint32(0x7FFFFFFF)
    largest = magnitudes.max(axis=1)
    kinds = [largest == 0, largest < SINGLE.smallest_normal_code, largest > SINGLE.inf_code, largest == SINGLE.inf_code]
    found["largest"] = np.select(kinds, [0, 1, 4, 3], 2)
    ordinary = (largest >= SINGLE.smallest_normal_code) & (largest < SINGLE.inf_code)
    fraction = largest & np.uint32((1 << SINGLE.mantissa_bits) - 1)
    top = np.float32(case.blocks.format.element.max).view(np.uint32) & np.uint32((1 << SINGLE.mantissa_bits) - 1)
    above = np.uint32((1 << SINGLE.mantissa_bits) - 1)
    which = [fraction == 0, fraction == above, fraction == 1, fraction == top, fraction == top + np.uint32(1)]
    found["significand of the largest"] = np.where(ordinary, np.select(which, range(5), 5), NONE)
    place = magnitudes.argmax(axis=1)
    found["place of the largest"] = np.select([place == 0, place == x.shape[1] - 1], [0, 2], 1)
    assert case.target.format is not None
    found["exponent field of the scale"] = _field(scales, case.target.format)


def _scaled(case: Case, x: Codes, scales: Codes) -> Codes:
    """The exact or float32 numbers that elements are rounded from; NaN under a scale that is none."""
    from softfloat.bits.blocks.scales import given_scales, given_tensor_scale, single

    assert case.blocks is not None
    fmt, tensor = case.blocks.format, case.blocks.tensor_scale
    made = given_scales(
        scales, fmt, SCALE_RULES[case.blocks.rule], given_tensor_scale(1.0 if tensor is None else tensor)
    )
    values = np.asarray(bits.decode(x, SINGLE))
    with np.errstate(invalid="ignore", over="ignore"):
        found = values * made.multiplier
    found = np.where(values == 0, values, found)
    return np.where(made.void, np.nan, found if fmt.power_of_two_scale else single(found))


def _measure_elements(case: Case, operands: Sequence[Codes], results: Codes, flags: Codes | None, found: Bins) -> None:
    first, scale = case.operands[:2]
    codes, scales = operands[:2]
    assert case.blocks is not None
    assert scale.number.format is not None
    whole = class_of(codes, first.number) * len(classes(scale.number)) + class_of(scales, scale.number)
    found["operands"] = whole
    found["exponent field of the scale"] = _field(scales, scale.number.format)
    if case.operation.name == DEQUANTIZE:
        values = results.view(np.float64)
        found["number"] = np.select([values == 0, np.isnan(values), np.isinf(values)], [0, 3, 2], 1)
        return
    element = case.blocks.format.element
    scaled = _scaled(case, codes, scales)
    exactly = exact_values(scaled.view(np.uint64), FLOAT64)
    found["rounding"] = rounded(exactly, grid_of(element) if isinstance(element, Fixed) else element, 2)[0]  # type: ignore[arg-type]
    numbers = np.asarray(bits.decode(codes, SINGLE))
    raised = np.zeros(len(codes), np.uint8) if flags is None else flags
    values = _values(results, case.blocks.format)
    smallest = 0.0 if isinstance(element, Fixed) else element.tiny
    tests = [
        np.asarray(bits.isnan(scales, scale.number.format)),
        np.isnan(numbers),
        np.isinf(values),
        raised & int(Flags.OVERFLOW) != 0,
        (values == 0) & (numbers == 0),
        values == 0,
        np.abs(values) == element.max,
        np.abs(values) < smallest,
    ]
    names = ("scale NaN", "NaN", "infinity", "saturated", "zero", "became zero", "largest", "subnormal")
    found["element"] = np.select(tests, [ELEMENTS.index(x) for x in names], ELEMENTS.index("normal"))


def _values(codes: Codes, fmt: BlockFormat) -> Codes:
    element = fmt.element
    return np.asarray(element.values[codes] if isinstance(element, Fixed) else bits.decode(codes, element))


def _measure_products(case: Case, operands: Sequence[Codes], found: Bins) -> None:
    columns = {column.name: (codes, column) for codes, column in zip(operands, case.operands, strict=False)}
    shared: list[Codes] = []
    assert case.blocks is not None
    assert case.length is not None
    for name, fmt in (("scale_a", case.blocks.format), ("scale_b", case.blocks.second)):
        codes, column = columns[name]
        assert column.number.format is not None
        values = np.abs(np.asarray(bits.decode(codes, column.number.format)))
        zero, nan = (values == 0).any(axis=1), np.isnan(values).any(axis=1)
        found[f"scales of {name[-1]}"] = zero + 2 * nan
        usable = np.isfinite(values) & (values > 0)
        exponent = np.where(usable, np.frexp(np.where(usable, values, 1.0))[1].astype(float), np.nan)
        shared.append(np.repeat(exponent, fmt.elements, axis=1)[:, : case.length])
    total = shared[0] + shared[1]
    known = ~np.isnan(total)
    low, high = np.where(known, total, np.inf).min(axis=1), np.where(known, total, -np.inf).max(axis=1)
    apart = np.where(known.any(axis=1), high - low, NONE)
    found["exponents between blocks"] = np.where(apart < 0, NONE, np.searchsorted([1, 2, 8, 24], apart, side="right"))


# -- what no row reaches ---------------------------------------------------------------------------------------------


def no_such_row(case: Case, name: str, label: str) -> str:
    """A proof that no row is in a bin, in a few words; or ""."""
    assert case.blocks is not None
    fmt, operation = case.blocks.format, case.operation.name
    if operation == SCALE:
        return _no_maximum(case, name, label)
    if operation == PRODUCTS:
        return _no_product(case, name, label)
    if operation == DEQUANTIZE:
        bare = not fmt.element.infinities and not fmt.scale.infinities
        return "neither elements nor scales are infinite" if label == "infinity" and bare else ""
    element = fmt.element
    saturates = isinstance(element, Fixed) or case.environment.overflow is Overflow.SATURATE
    if name == "flags" and label == "DIVBYZERO":
        return "scales are multiplied by"
    if isinstance(element, Fixed) and label in ("subnormal", "UNDERFLOW INEXACT", "INEXACT UNDERFLOW"):
        return "fixed point has one last place"
    if label.endswith("infinity") and name in ("element", "result") and (saturates or not element.infinities):
        return "elements saturate"
    return ""


def _no_maximum(case: Case, name: str, label: str) -> str:
    assert case.blocks is not None
    fmt = case.blocks.format
    if name == "place of the largest" and PLACES.index(label) >= fmt.elements:
        return ONE_PLACE
    if name == "place of the largest" and label == "inside" and fmt.elements < len(PLACES):
        return "blocks have two elements at most"
    top = np.float32(fmt.element.max).view(np.uint32) & np.uint32((1 << SINGLE.mantissa_bits) - 1)
    if name == "significand of the largest" and top == 0 and label in ("largest element", "next above it"):
        return "the largest element is a power of two"
    if name.startswith("exponent field") and int(label) not in _reached(case):
        return "no float32 magnitude has such a scale"
    return ""


def ladder(case: Case) -> list[Codes]:
    """Operands of blocks with one number that is not zero: all powers of two, numbers between and next to them, infinity and NaN."""
    assert case.blocks is not None
    powers = np.arange(256, dtype=np.int64) << SINGLE.mantissa_bits
    steps = np.linspace(0, 1 << SINGLE.mantissa_bits, 65, dtype=np.int64)[:-1]
    codes = np.unique(np.concatenate([powers[:-1, None] + steps, powers[:-1, None] + 1, powers[1:, None] - 1], axis=1))
    codes = np.concatenate([codes, 1 << np.arange(23), [SINGLE.inf_code, SINGLE.nan_code]])
    x = np.zeros((codes.size, case.blocks.format.elements), np.uint32)
    x[:, 0] = codes
    return [x]


@lru_cache(maxsize=16)
def _reached(case: Case) -> set[int]:
    """Exponent fields of the scales of a `ladder`: rules are monotone, so there are no others."""
    assert case.target.format is not None
    made, _ = case.run(ladder(case))
    return set(_field(made, case.target.format).tolist())


def _no_product(case: Case, name: str, label: str) -> str:
    assert case.blocks is not None
    assert case.length is not None
    pair = case.blocks.format, case.blocks.second
    if name == "exponents between blocks" and label != "0" and case.length <= min(x.elements for x in pair):
        return "each operand has one block"
    if name.startswith("scales of"):
        fmt = pair[name.endswith("b")].scale
        if "zero" in label and not fmt.zero:
            return "scales have no zero"
        if "NaN" in label and not fmt.has_nan:
            return "scales have no NaN"
        if label == "a zero and a NaN" and case.length <= pair[name.endswith("b")].elements:
            return "the operand has one block"
    if name == "flags" and label == "DIVBYZERO":
        return "sums do not divide"
    target = case.target.format
    assert target is not None
    if case.addend or len(_formats(case)) > 1:
        return ""
    infinite = any(x.element.infinities or x.scale.infinities for x in pair)
    most = case.length * np.prod([x.element.max * x.scale.max for x in pair])
    overflows = infinite or 2 * most >= target.max
    if not overflows and (label[2:] in ("infinity", "largest") or "OVERFLOW" in label):
        return "the sum of the largest products under the largest scales is below the largest number"
    if (
        label == "INVALID"
        and not overflows
        and all(x.element.nan != "ieee" for x in pair if isinstance(x.element, Format))
    ):
        return "neither infinities nor signalling NaNs are multiplied or added"
    least = sum(_last_place(level) for x in pair for level in (x.element, x.scale))
    tiny = {
        "least subnormal": target.emin - target.mantissa_bits,
        "largest subnormal": target.emin - target.mantissa_bits,
        "subnormal": target.emin - 1,
        "least normal": target.emin,
    }
    if tiny.get(label[2:], 1 << 20) < least:
        return "terms are multiples of a larger number"
    return (
        "terms are multiples of the least subnormal"
        if "UNDERFLOW" in label and least >= tiny["least subnormal"]
        else ""
    )


def _last_place(level: Format | Fixed) -> int:
    return -level.fraction_bits if isinstance(level, Fixed) else level.emin - level.mantissa_bits


def _formats(case: Case) -> set[Format]:
    """Of all roundings of a sum; tensor scales multiply in float32."""
    how, target = case.accumulator, case.target.format
    assert how is not None
    assert target is not None
    stages = [how.running, how.product, how.block_sum, how.store]
    stages += [y for x in how.reduction for y in (x.running, x.store)]
    return {x.format for x in stages if x is not None} | {target}
