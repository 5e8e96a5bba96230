"""The oracle of block formats: one block at a time, on exact fractions.

Rules of scales are restated in words of their own: powers of two are found by comparing fractions, and what a recipe
computes in float32 is an exact value rounded once, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from softfloat.blocks import BlockFormat, Fixed, check_rule
from softfloat.blocks.formats import check_block_format
from softfloat.formats import ROSTER, Format
from softfloat.kernels.spec import Overflow
from softfloat.reference.conversions import converted, encode
from softfloat.reference.rounding import check_random_bits, nearby_integer, rules_for
from softfloat.reference.values import (
    INEXACT,
    INVALID,
    OVERFLOW,
    UNDERFLOW,
    Kind,
    Options,
    Value,
    decode,
    exponent_of,
    two_to,
)

__all__ = ["QuantizedBlock", "dequantize_block", "quantize_block", "tensor_scale_of"]

FLOAT32 = ROSTER["float32"]
LARGEST = decode(FLOAT32.max_code, FLOAT32).magnitude
Real = Fraction | float  # a fraction, or an infinite float


class QuantizedBlock(NamedTuple):
    """A block: codes of its elements, the code of its scale, and each element's flags."""

    codes: list[int]
    scale: int
    flags: list[int]


def single(x: Real) -> Real:
    """An exact value rounded to float32, to nearest even."""
    if isinstance(x, float):
        return x
    return decode(encode(x, FLOAT32)[0], FLOAT32).real


def times(x: Real, y: Real) -> Real:
    """A product in float32, zero if a factor is, even by infinity."""
    if x == 0 or y == 0:
        return Fraction(0)
    if isinstance(x, float) or isinstance(y, float):
        return math.inf if (x > 0) == (y > 0) else -math.inf
    return single(x * y)


def plus(x: Real, y: Real) -> Real:
    """A sum in float32, of numbers that are not infinite with different signs."""
    if isinstance(x, float) or isinstance(y, float):
        return x if isinstance(x, float) else y
    return single(x + y)


def over(x: Real, y: Real) -> Real:
    """A positive number over one, in float32."""
    if y == 0:
        return math.inf
    if isinstance(y, float):
        return Fraction(0)
    return x if isinstance(x, float) else single(x / y)


def largest_element(element: Format | Fixed) -> Fraction:
    """The largest number of an element."""
    return Fraction(element.largest, 2**element.fraction_bits) if isinstance(element, Fixed) else Fraction(element.max)


# -- scales ----------------------------------------------------------------------------------------------------------


class Special(NamedTuple):
    """What is settled of a scale by the options for NaNs, infinities and zeros."""

    nan: bool
    largest: bool


class Choices(NamedTuple):
    """The named options, with the rule's defaults in place."""

    nans: str
    infinities: str
    zero_block: str
    minimum: Fraction


def power_of_two_exponent(rule: str, amax: Fraction, element: Format | Fixed) -> tuple[int, bool]:
    """(exponent of the scale, whether amax counts as infinite) of a positive amax, before limits."""
    largest = largest_element(element)
    top = exponent_of(largest)
    if rule == "floor":
        return exponent_of(amax) - top, False
    if rule == "ceil":
        e = exponent_of(amax)
        return e - top + (amax > two_to(e)), False
    if rule == "even":
        kept = element.bits - 2 if isinstance(element, Fixed) else element.mantissa_bits
        unit = two_to(exponent_of(amax) - kept)
        e = exponent_of(math.floor(amax / unit + Fraction(1, 2)) * unit)
        return e - top, e > 127
    if rule == "midmax":
        e = exponent_of(amax) - top
        middle = (largest + two_to(top + 1)) / 2
        return e + (amax > middle * two_to(e)), False
    if rule == "smallest":
        e = exponent_of(amax) - top - 1
        while largest * two_to(e) < amax:
            e += 1
        return e, False
    d = times(amax, single(1 / largest))
    if d == 0:
        return -(10**6), False
    if isinstance(d, float):
        return 10**6, True
    e = exponent_of(d)
    if rule == "nearest_log2":
        return e + (d * d > two_to(2 * e + 1)), False
    assert rule in ("rceil", "rceil_saturate", "deepgemm_ue8m0"), rule
    return e + (d > two_to(e)), False


def power_of_two_scale(
    rule: str, amax: Fraction, special: Special, fmt: BlockFormat, how: Choices
) -> tuple[int | None, Fraction]:
    """(code or None for NaN, the number that elements are multiplied by)."""
    scale = fmt.scale
    lowest = max(1 if rule == "deepgemm_ue8m0" else 0, scale.smallest_normal_code)
    highest = min(254, scale.max_code) if scale.bits >= 8 else scale.max_code
    amax = max(amax, how.minimum)
    code, beyond = lowest, special.largest
    if amax:
        exponent, infinite = power_of_two_exponent(rule, amax, fmt.element)
        code = exponent + scale.bias
        beyond = beyond or infinite or code > scale.max_code
    elif not beyond:
        return zero_scale(lowest, special, scale, how)
    if special.nan or (beyond and how.infinities != "saturate"):
        return None, Fraction(0)
    code = highest if beyond else min(max(code, lowest), highest)
    return code, two_to(scale.bias - code)


def zero_scale(code: int, special: Special, scale: Format, how: Choices) -> tuple[int | None, Fraction]:
    """The scale of a block of zeros."""
    if special.nan or how.zero_block == "nan":
        return None, Fraction(0)
    if how.zero_block == "one":
        code = scale.one_code
    elif how.zero_block == "smallest":
        code = max(code, scale.smallest_subnormal_code)
    return code, Fraction(1)


class Tensor(NamedTuple):
    """A tensor's scale as it is read, its inverse as the recipe has it, and the amax that it came from."""

    decode: Fraction
    encode: Real
    amax: Real | None


def tensor_scale_of(
    amax: Fraction | float, block_format: BlockFormat | str, rule: str = "te", bound: Fraction | int = 448
) -> Fraction:
    """The scale of a tensor, by the recipe "te" or "torchao": a float32 number.

    Parameters
    ----------
    amax : Fraction or float
        The largest magnitude.
    block_format : BlockFormat or its name
    rule : {"te", "torchao"}
    bound : int
        The largest block scale that "te" aims at.
    """
    fmt = check_block_format(block_format)
    return tensor_of(Fraction(amax) if math.isfinite(amax) else float(amax), fmt, rule, bound).decode


def tensor_of(amax: Real, fmt: BlockFormat, rule: str, bound: Fraction | int) -> Tensor:
    largest = largest_element(fmt.element)
    if rule == "torchao":
        g = amax if isinstance(amax, float) else single(amax / (Fraction(fmt.scale.max) * largest))
        g = Fraction(1) if isinstance(g, float) or not g else g
        return Tensor(g, over(Fraction(1), g), amax)
    factor = over(bound * largest, amax) if amax else Fraction(1)
    factor = min(factor, LARGEST) or Fraction(1)
    assert isinstance(factor, Fraction)
    inverse = over(Fraction(1), factor)
    if isinstance(inverse, float):
        raise ValueError(f"amax {amax} gives {fmt} a tensor scale beyond float32")
    return Tensor(inverse, factor, amax)


def float_scale(
    rule: str,
    amax: Fraction,
    special: Special,
    fmt: BlockFormat,
    tensor: Tensor,
    how: Choices,
    stretch: Fraction | None,
) -> tuple[int | None, Real]:
    """The same for scales with fractions; `stretch` is a candidate's of the choice between 4 and 6."""
    scale, largest = fmt.scale, largest_element(fmt.element)
    top = Fraction(scale.max)
    amax = max(amax, how.minimum)
    wanted: Real
    if rule == "amax":
        wanted = single(amax / largest)
    elif rule == "torchao":
        wanted = over(single(amax / largest), tensor.decode)
        wanted = min(max(wanted, Fraction(scale.tiny)), top)
    elif stretch is not None:
        wanted = min(times(times(single(amax / largest), tensor.encode), stretch), top)
    else:
        wanted = min(times(amax, times(tensor.encode, single(1 / largest))), top)
    least = Fraction(0) if scale.zero else Fraction(scale.smallest_subnormal)
    wanted = max(min(wanted, top), least)
    assert isinstance(wanted, Fraction)
    code: int | None = encode(wanted, scale, overflow="saturate")[0]
    if special.largest:
        code = scale.max_code
    elif not amax:
        code, _ = zero_scale(code or 0, special, scale, how)
    if special.nan or (special.largest and how.infinities != "saturate") or code is None:
        return None, Fraction(0)
    read = decode(code, scale).magnitude
    if rule == "amax":
        return code, over(Fraction(1), read)
    if rule == "torchao":
        return code, over(over(Fraction(1), tensor.decode), read)
    return code, min(over(Fraction(1), times(read, tensor.decode)), LARGEST)


# -- elements --------------------------------------------------------------------------------------------------------


def element_of(x: float, scaled: Real, fmt: BlockFormat, nan_to: str, options: dict[str, Any]) -> tuple[int, int]:
    """(code, flags) of a scaled number; `x` is the number itself, for its sign and for NaN."""
    element = fmt.element
    negative = math.copysign(1, x) < 0
    if math.isnan(x):
        value = Value(Kind.NAN, negative)
    elif isinstance(scaled, float):
        value = Value(Kind.INFINITE, negative)
    else:
        value = Value(Kind.FINITE, negative, abs(scaled))
    if value.is_nan and not element.has_nan and nan_to != "max":
        signed = not isinstance(element, Fixed) or element.coding == "sign_magnitude"
        return element.sign_bit if nan_to == "negative_zero" and signed else 0, INVALID
    if isinstance(element, Fixed):
        rules = Options(**options)
        check_random_bits(rules)
        return fixed_element(value, element, rules)
    return converted(value, element, rules_for(element, options))


def fixed_element(value: Value, element: Fixed, rules: Options) -> tuple[int, int]:
    """(code, flags) in fixed point: an integer, clamped."""
    flags = INVALID if value.is_nan else 0
    if value.is_nan or value.is_infinite:
        integer = element.least if value.negative and not value.is_nan else element.largest
    else:
        counted = value.magnitude * 2**element.fraction_bits
        rounded = nearby_integer(counted, value.negative, rules)
        limit = -element.least if value.negative else element.largest
        flags = INEXACT | OVERFLOW if rounded > limit else INEXACT if rounded != counted else 0
        integer = min(rounded, limit) * (-1 if value.negative else 1)
    if element.coding == "twos_complement":
        return integer % 2**element.bits, flags
    return abs(integer) + (element.sign_bit if value.negative and not value.is_nan else 0), flags


def quantize_block(
    x: Sequence[float],
    block_format: BlockFormat | str,
    rule: str | None = None,
    *,
    nans: str = "block",
    infinities: str | None = None,
    nan_to: str = "max",
    zero_block: str | None = None,
    subnormal_blocks: str = "keep",
    minimum: float | None = None,
    tensor_amax: Fraction | float | None = None,
    tensor_scale: Fraction | float | None = None,
    four_over_six: str | None = None,
    random_bits: Sequence[int] | None = None,
    **options: Any,
) -> QuantizedBlock:
    """One block of float32 numbers, quantised as `softfloat.bits.quantize` does, whose options these are.

    Parameters
    ----------
    x : sequence of float
        The block's numbers. Those of a block of several rows follow each other row by row.
    tensor_amax, tensor_scale : Fraction or float, optional
        What the scale of the tensor is computed from, or that scale; with neither there is none.
    random_bits : sequence of int, optional
        One for each number, for stochastic rounding.
    **options
        As in `round_exact`; elements saturate unless `overflow` says otherwise.

    Raises
    ------
    ValueError
        As `round_exact`; for a scale that would be NaN in a format without.
    """
    fmt = check_block_format(block_format)
    row = check_rule(rule, fmt)
    how = Choices(
        nans,
        infinities or row.infinities,
        zero_block or row.zero_block,
        Fraction(row.minimum if minimum is None else minimum),
    )
    options = {"overflow": Overflow.SATURATE} | options
    if options.pop("daz", False):
        x = [math.copysign(0.0, v) if abs(v) < 2.0**-126 else v for v in x]
    finite = [abs(Fraction(v)) for v in x if math.isfinite(v)]
    amax = max(finite, default=Fraction(0))
    infinite, flushed = any(math.isinf(v) for v in x), False
    special = Special(any(math.isnan(v) for v in x) and nans == "block", infinite and how.infinities != "element")
    if subnormal_blocks == "zero" and not infinite and amax < two_to(-126):
        flushed, amax = True, Fraction(0)
    tensor = Tensor(Fraction(1), Fraction(1), None)
    if tensor_amax is not None:
        exact = Fraction(tensor_amax) if math.isfinite(tensor_amax) else float(tensor_amax)
        tensor = tensor_of(exact, fmt, row.name, Fraction(256) if four_over_six else Fraction(fmt.scale.max))
    elif tensor_scale is not None:
        g = Fraction(tensor_scale)
        tensor = Tensor(g, min(over(Fraction(1), g), LARGEST), None)

    def with_scale(stretch: Fraction | None) -> QuantizedBlock:
        multiplier: Real
        if fmt.power_of_two_scale:
            scale, multiplier = power_of_two_scale(row.name, amax, special, fmt, how)
        else:
            scale, multiplier = float_scale(row.name, amax, special, fmt, tensor, how, stretch)
        if scale is None and not fmt.scale.has_nan:
            raise ValueError(f"the block's scale is NaN, which {fmt.scale} has none of")
        codes, flags = [], []
        for i, v in enumerate(x):
            given = options if random_bits is None else {**options, "random_bits": random_bits[i]}
            if scale is None:
                code, raised = element_of(0.0, Fraction(0), fmt, nan_to, given)
                raised |= 0 if math.isnan(v) else INVALID
            else:
                gone = flushed and math.isfinite(v)
                scaled = scaled_number(math.copysign(0.0, v) if gone else v, multiplier, fmt)
                code, raised = element_of(v, scaled, fmt, nan_to, given)
                vanished = not fmt.power_of_two_scale and math.isfinite(v) and not scaled
                raised |= INEXACT | UNDERFLOW if v and (gone or vanished) else 0
            codes.append(code)
            flags.append(raised)
        return QuantizedBlock(codes, fmt.scale.nan_code if scale is None else scale, flags)

    if four_over_six is None:
        return with_scale(None)
    six, four = with_scale(Fraction(1)), with_scale(Fraction(3, 2))
    errors = [over_six_error(x, found, fmt, tensor, four_over_six) for found in (six, four)]
    return four if errors[1] < errors[0] else six


def scaled_number(v: float, multiplier: Real, fmt: BlockFormat) -> Real:
    """A number times its block's multiplier: exact where scales are powers of two, else in float32."""
    if math.isnan(v):
        return Fraction(0)
    if math.isinf(v):
        return v
    if fmt.power_of_two_scale:
        assert isinstance(multiplier, Fraction)
        return Fraction(v) * multiplier
    return times(Fraction(v), multiplier)


def over_six_error(x: Sequence[float], found: QuantizedBlock, fmt: BlockFormat, tensor: Tensor, kind: str) -> Real:
    """The sum of errors in float32: rows of 16 in order, then rows in halves."""
    assert tensor.amax is not None
    if any(not math.isfinite(v) for v in x) or found.scale == fmt.scale.nan_code:
        return math.nan
    width = 16 if len(x) == 256 else len(x)
    sums: list[Real] = []
    for start in range(0, len(x), width):
        total: Real = Fraction(0)
        for v, code in list(zip(x, found.codes, strict=True))[start : start + width]:
            element, scale = decode(code, fmt.element).real, decode(found.scale, fmt.scale).real
            product = times(times(element, scale), tensor.amax)
            read = product if isinstance(product, float) else single(product / (largest_element(fmt.element) * 256))
            error = plus(read, -Fraction(v))
            part = times(error, error) if kind == "mse" else times(error, Fraction(1 if error > 0 else -1))
            total = plus(total, part)
        sums.append(total)
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [plus(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
    return sums[0]


def dequantize_block(
    codes: Sequence[int], scale: int, block_format: BlockFormat | str, tensor_scale: Fraction | float | None = None
) -> list[Fraction | float]:
    """The exact values of a block; floats for -0, infinities and NaN."""
    fmt = check_block_format(block_format)
    read = decode(scale, fmt.scale)
    factor = Fraction(1) if tensor_scale is None else Fraction(tensor_scale)
    found: list[Fraction | float] = []
    for code in codes:
        if isinstance(fmt.element, Fixed):
            negative, magnitude = fixed_value(code, fmt.element)
            value = Value(Kind.FINITE, negative, magnitude)
        else:
            value = decode(code, fmt.element)
        unbounded = value.is_infinite or read.is_infinite
        product = value.magnitude * read.magnitude * factor
        if read.is_nan or value.is_nan or (unbounded and (value.is_zero or read.is_zero)):
            found.append(math.nan)
        elif unbounded:
            found.append(-math.inf if value.negative else math.inf)
        elif not product and value.negative:
            found.append(-0.0)
        else:
            found.append(-product if value.negative else product)
    return found


def fixed_value(code: int, element: Fixed) -> tuple[bool, Fraction]:
    """(whether it is negative, magnitude) of a code in fixed point."""
    unit = Fraction(1, 2**element.fraction_bits)
    if element.coding == "sign_magnitude":
        return code >= element.sign_bit, code % element.sign_bit * unit
    signed = code - 2**element.bits if code >= element.sign_bit else code
    return signed < 0, abs(signed) * unit
