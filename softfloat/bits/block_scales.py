"""Scales of blocks, by every rule: from the largest magnitudes to codes, and to what elements are multiplied by.

Numbers are float64 here and hold float32 values or exact products; where a rule computes in float32, `single` rounds each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import engine
from softfloat.bits.numbers import encode
from softfloat.blocks import BlockFormat, ScaleRule
from softfloat.blocks.rules import FLOAT, POWER_OF_TWO
from softfloat.engine import Codes
from softfloat.formats import ROSTER, Format

FLOAT32 = ROSTER["float32"]
LARGEST = FLOAT32.max
OVER_SIX_BOUND = 256.0
"""The largest scale that the tensor's scale aims at when blocks may map their largest element to 4."""

Reals = np.ndarray[Any, np.dtype[np.float64]]
Masks = np.ndarray[Any, np.dtype[np.bool_]]


def single(values: Any) -> Reals:
    """Numbers rounded to float32, as float64; the host's treatment of subnormals has no say."""
    codes, _ = encode(np.asarray(values, np.float64), FLOAT32, flags="any")
    return np.asarray(engine.decoded(np.asarray(codes), FLOAT32))


def values_of(codes: Codes, fmt: Format) -> Reals:
    """What scales' codes stand for: magnitudes, as a sign says nothing."""
    return np.asarray(engine.decoded(engine.magnitudes(codes, fmt), fmt))


@dataclass(frozen=True)
class Maxima:
    """What is known of each block before it has a scale.

    Attributes
    ----------
    amax : array of float64
        The largest finite magnitude.
    nan, infinite : array of bool
        Whether the block holds a NaN, an infinity.
    """

    amax: Reals
    nan: Masks
    infinite: Masks


@dataclass(frozen=True)
class Treatment:
    """The named options of scales: `softfloat.bits.quantize` describes them."""

    nans: str
    infinities: str
    zero_block: str
    minimum: float


@dataclass(frozen=True)
class Scales:
    """Scales, and what makes scaled elements of numbers.

    Attributes
    ----------
    codes : array
        Of the scale's format.
    multiplier : array of float64
        What numbers are multiplied by.
    void : array of bool
        Blocks whose scale is NaN.
    """

    codes: Codes
    multiplier: Reals
    void: Masks


def power_of_two_scales(maxima: Maxima, fmt: BlockFormat, rule: ScaleRule, how: Treatment) -> Scales:
    """Scales that are powers of two; `rule.carry` says which significands count for the next one."""
    scale, element = fmt.scale, fmt.element
    amax = np.maximum(maxima.amax, how.minimum)
    taken = single(amax * reciprocal(element.max)) if rule.divides else amax
    exponent = ((taken.view(np.int64) + carried(rule, element.max, element.mantissa_bits)) >> 52) - 1023
    exponent = np.where(taken > 0, exponent, -(2**20))
    beyond = maxima.infinite & (how.infinities != "element")
    if rule.carry == "element":
        beyond = beyond | (exponent > 127)
    exponent = exponent - (0 if rule.divides else element.emax)
    beyond = beyond | (exponent + scale.bias > scale.max_code)
    lowest, highest = max(rule.lowest, scale.smallest_normal_code), min(rule.highest, scale.max_code)
    codes = np.clip(exponent + scale.bias, lowest, highest)
    codes = np.where(beyond, highest, codes)
    void = (beyond & (how.infinities != "saturate")) | (maxima.nan & (how.nans == "block"))
    codes, void = without_zero(codes, void, (amax == 0) & ~beyond, scale, how)
    multiplier = np.ldexp(1.0, (scale.bias - codes).astype(np.int32))
    return Scales(with_nan(codes, void, scale), multiplier, void)


def reciprocal(value: float) -> float:
    """1/value in float32."""
    return float(single(1.0 / value))


def carried(rule: ScaleRule, largest: float, mantissa_bits: int) -> int:
    """What, added to the bits of a float64, carries into its exponent for the significands that the rule counts up."""
    one = 1 << 52

    def fraction(value: float) -> int:
        return int(math.ldexp(math.frexp(value)[0] * 2 - 1, 52))

    return {
        "none": 0,
        "any": one - 1,
        "above": one - 1 - fraction(largest),
        "element": one >> (mantissa_bits + 1),
        "sqrt": one - fraction(math.sqrt(2)),  # float64's is above the root; no float32 number lies between
    }[rule.carry]


def without_zero(codes: Codes, void: Masks, zero: Masks, scale: Format, how: Treatment) -> tuple[Codes, Masks]:
    """Scales of blocks of zeros, by their option."""
    if how.zero_block == "one":
        codes = np.where(zero & ~void, scale.one_code, codes)
    elif how.zero_block == "smallest":
        codes = np.where(zero & ~void, np.maximum(codes, scale.smallest_subnormal_code), codes)
    elif how.zero_block == "nan":
        void = void | zero
    return codes, void


def with_nan(codes: Codes, void: Masks, scale: Format) -> Codes:
    """Codes of scales, NaN where a block is void."""
    if not void.any():
        return codes.astype(scale.dtype)
    if not scale.has_nan:
        raise ValueError(
            f"x holds blocks whose scale is NaN, which {scale} has none of; accepted with nans='element' and infinities='saturate' or 'element'"
        )
    return np.where(void, scale.nan_code, codes).astype(scale.dtype)


def rounded(values: Reals, scale: Format) -> Codes:
    """Scales rounded into their format, to nearest even, the largest at most."""
    return np.asarray(encode(values, scale, overflow="saturate", flags="any")[0])


def special_scales(
    codes: Codes, multiplier: Reals, maxima: Maxima, scale: Format, how: Treatment
) -> tuple[Codes, Reals, Masks]:
    """(codes, multipliers, void) with infinities, NaNs and zeros as their options say; multipliers of such blocks are settled by the caller."""
    beyond = maxima.infinite & (how.infinities != "element")
    codes = np.where(beyond, scale.max_code, codes)
    void = (beyond & (how.infinities != "saturate")) | (maxima.nan & (how.nans == "block"))
    zero = (np.maximum(maxima.amax, how.minimum) == 0) & ~beyond
    codes, void = without_zero(codes, void, zero, scale, how)
    return with_nan(codes, void, scale), multiplier, void


def amax_scales(maxima: Maxima, fmt: BlockFormat, how: Treatment) -> Scales:
    """amax over the largest element, and one reciprocal."""
    scale = fmt.scale
    codes = rounded(single(np.maximum(maxima.amax, how.minimum) / fmt.element.max), scale)
    codes, _, void = special_scales(codes, maxima.amax, maxima, scale, how)
    return Scales(codes, over(1.0, np.where(void, 1.0, values_of(codes, scale))), void)


def over(numerator: float, denominators: Reals) -> Reals:
    """A quotient in float32; infinite where the denominator is zero."""
    with np.errstate(divide="ignore"):
        return single(numerator / denominators)


@dataclass(frozen=True)
class TensorScale:
    """The scale of a tensor: what elements are multiplied by to read them, and its inverse as the recipe has it."""

    decode: float
    encode: float
    amax: float | None


NO_TENSOR_SCALE = TensorScale(1.0, 1.0, None)


def te_tensor_scale(amax: float, fmt: BlockFormat, bound: float) -> TensorScale:
    """TransformerEngine's: S = bound * m / amax, at most the largest float32; 1 where there is nothing to scale or it is infinite."""
    factor = float(single(bound * fmt.element.max / amax)) if amax else 0.0
    factor = min(factor, LARGEST) or 1.0
    return TensorScale(float(single(1.0 / factor)), factor, amax)


def torchao_tensor_scale(amax: float, fmt: BlockFormat) -> TensorScale:
    """torchao's: g = amax / (largest scale * m); 1 where that is zero or infinite."""
    factor = float(single(amax / (fmt.scale.max * fmt.element.max)))
    factor = factor if 0 < factor <= LARGEST else 1.0
    return TensorScale(factor, float(single(1.0 / factor)), amax)


def given_tensor_scale(value: float) -> TensorScale:
    """A scale that came from elsewhere."""
    return TensorScale(value, min(float(single(1.0 / value)), LARGEST), None)


def te_scales(maxima: Maxima, fmt: BlockFormat, tensor: TensorScale, how: Treatment) -> Scales:
    """TransformerEngine's scales: amax times one factor, clamped above only."""
    factor = float(single(tensor.encode * reciprocal(fmt.element.max)))
    codes = rounded(np.minimum(single(maxima.amax * factor), fmt.scale.max), fmt.scale)
    return te_finished(codes, maxima, fmt, tensor, how)


def te_finished(codes: Codes, maxima: Maxima, fmt: BlockFormat, tensor: TensorScale, how: Treatment) -> Scales:
    """Scales, and elements' multiplier 1 / (s * (1/S)), at most the largest float32."""
    codes, _, void = special_scales(codes, maxima.amax, maxima, fmt.scale, how)
    product = single(np.where(void, 1.0, values_of(codes, fmt.scale)) * tensor.decode)
    return Scales(codes, np.minimum(over(1.0, product), LARGEST), void)


def over_six_scales(maxima: Maxima, fmt: BlockFormat, tensor: TensorScale, how: Treatment, stretch: float) -> Scales:
    """TransformerEngine's scales for the choice between 4 and 6: amax / m * S, times 1.5 where the largest element becomes 4."""
    base = single(single(maxima.amax / fmt.element.max) * tensor.encode)
    codes = rounded(np.minimum(single(base * stretch), fmt.scale.max), fmt.scale)
    return te_finished(codes, maxima, fmt, tensor, how)


def torchao_scales(maxima: Maxima, fmt: BlockFormat, tensor: TensorScale, how: Treatment) -> Scales:
    """torchao's scales: two divisions, clamped to the scale's normal numbers."""
    quotient = single(single(maxima.amax / fmt.element.max) / tensor.decode)
    codes = rounded(np.clip(quotient, fmt.scale.tiny, fmt.scale.max), fmt.scale)
    codes, _, void = special_scales(codes, maxima.amax, maxima, fmt.scale, how)
    inverse = float(single(1.0 / tensor.decode))
    return Scales(codes, over(inverse, np.where(void, 1.0, values_of(codes, fmt.scale))), void)


def block_scales(maxima: Maxima, fmt: BlockFormat, rule: ScaleRule, tensor: TensorScale, how: Treatment) -> Scales:
    """Scales by any rule."""
    if rule.kind == POWER_OF_TWO:
        return power_of_two_scales(maxima, fmt, rule, how)
    if rule.kind == FLOAT:
        return amax_scales(maxima, fmt, how)
    return (te_scales if rule.name == "te" else torchao_scales)(maxima, fmt, tensor, how)
