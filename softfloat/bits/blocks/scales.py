"""Scales of blocks, by every rule: from the largest magnitudes to codes, and to what elements are multiplied by.

Numbers are float64 here and hold float32 values or exact products; where a rule computes in float32, `single` rounds each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import engine
from softfloat.bits.arithmetic import mul
from softfloat.bits.numbers import encode
from softfloat.blocks import BlockFormat, ScaleRule
from softfloat.blocks.rules import POWER_OF_TWO
from softfloat.engine import Codes
from softfloat.environments import Rounding, Settings
from softfloat.formats import ROSTER, Format
from softfloat.frozen import hash_kept
from softfloat.status import Flags

FLOAT32 = ROSTER["float32"]
LARGEST = FLOAT32.max
SURELY_NORMAL, SURELY_FINITE = 2.0**-120, 2.0**120
MODERATE = 2.0**-60
"""A number so large, its inverse, and what lies between: products of two and their inverses are normal in float32."""
OVER_SIX_BOUND = 256.0
"""The largest scale that the tensor's scale aims at when blocks may map their largest element to 4."""

NO_MULTIPLIERS = np.zeros(0, np.float32)

Reals = np.ndarray[Any, np.dtype[np.float64]]
Masks = np.ndarray[Any, np.dtype[np.bool_]]


def surely_normal(values: np.ndarray[Any, Any]) -> bool:
    """Whether the host's treatment of subnormals has no say in what float32 makes of numbers, nor their inverses."""
    sizes = np.abs(values)
    return bool(((sizes >= SURELY_NORMAL) & (sizes <= SURELY_FINITE) | (sizes == 0)).all())


def single(values: Any) -> Reals:
    """Numbers rounded to float32, as float64; the host's treatment of subnormals has no say."""
    values = np.asarray(values, np.float64)
    if surely_normal(values):
        return np.asarray(values.astype(np.float32), np.float64)
    codes, _ = encode(values, FLOAT32, flags="any")
    return np.asarray(engine.decoded(np.asarray(codes), FLOAT32))


def product_of_scales(x: Any, y: Any, whole: Settings) -> tuple[Any, int]:
    """(codes, flags together) of products of float32 codes; of two numbers, as scales of tensors mostly are, without a loop."""
    if x.size == y.size == 1 and whole.for_format(FLOAT32.name).rounding is Rounding.NEAREST_EVEN:
        a, b = float(x.view(np.float32).flat[0]), float(y.view(np.float32).flat[0])
        if all(SURELY_NORMAL <= abs(number) <= SURELY_FINITE for number in (a, b, a * b)):
            found = np.float32(a * b)
            return found.view(np.uint32), int(Flags.INEXACT) if float(found) != a * b else 0
    return mul(x, y, FLOAT32, environment=whole, flags="any")


def single_number(value: float) -> float:
    """One number rounded to float32, as `single`."""
    if value == 0 or not math.isfinite(value):
        return value
    quantum = max(math.frexp(value)[1] - 24, -149)
    rounded = math.ldexp(round(math.ldexp(value, -quantum)), quantum)
    return rounded if abs(rounded) <= LARGEST else math.copysign(math.inf, rounded)


def values_of(codes: Codes, fmt: Format) -> Reals:
    """What scales' codes stand for: magnitudes, as a sign says nothing."""
    return np.abs(engine.decoded(codes, fmt))


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


@hash_kept
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
    return single_number(1.0 / value)


def carried(rule: ScaleRule, largest: float, mantissa_bits: int) -> int:
    """What, added to the bits of a float64, carries into its exponent for the significands that the rule counts up."""
    one = 1 << 52

    def fraction(value: float) -> int:
        return int(math.ldexp(math.frexp(value)[0] * 2 - 1, 52))

    return {
        "none": 0,
        "any": one - 1,
        "above": one - 1 - fraction(largest),
        "middle": one - 1 - fraction(largest / 2 + math.ldexp(0.5, math.frexp(largest)[1])),
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
    """Scales rounded into their format, to nearest even, the largest at most, and the smallest at least where there is no zero."""
    if not scale.zero:
        values = np.maximum(values, scale.smallest_subnormal)
    return np.asarray(encode(values, scale, overflow="saturate", flags="any")[0])


def multipliers_of(scales: Reals, rule: ScaleRule, tensor: TensorScale) -> Reals:
    """What elements are multiplied by under scales that are no powers of two, each step in float32."""
    if rule.name == "torchao":
        return over(reciprocal(tensor.decode), scales)
    if rule.name == "te":
        return np.minimum(over(1.0, single(scales * tensor.decode)), LARGEST)
    return over(1.0, scales)


def wanted_scales(amax: Reals, fmt: BlockFormat, rule: ScaleRule, tensor: TensorScale, stretch: float | None) -> Reals:
    """Scales before they are rounded, each step in float32; `stretch` is a candidate's of the choice between 4 and 6."""
    if rule.name == "torchao":
        quotient = single(single(amax / fmt.element.max) / tensor.decode)
        return np.clip(quotient, fmt.scale.tiny, fmt.scale.max)
    if rule.name == "te":
        if stretch is None:
            factor = te_factor(fmt, tensor)
            return np.minimum(single(np.multiply(amax, factor, where=amax > 0, out=np.zeros_like(amax))), fmt.scale.max)
        base = single(single(amax / fmt.element.max) * tensor.encode)
        return np.minimum(single(base * stretch), fmt.scale.max)
    return single(amax / fmt.element.max)


def te_factor(fmt: BlockFormat, tensor: TensorScale) -> float:
    """What TransformerEngine multiplies amax by."""
    return single_number(tensor.encode * reciprocal(fmt.element.max))


def other_scales(
    maxima: Maxima, fmt: BlockFormat, rule: ScaleRule, tensor: TensorScale, how: Treatment, stretch: float | None = None
) -> Scales:
    """Scales that are no powers of two."""
    scale = fmt.scale
    amax = np.maximum(maxima.amax, how.minimum)
    codes = rounded(wanted_scales(amax, fmt, rule, tensor, stretch), scale)
    beyond = maxima.infinite & (how.infinities != "element")
    codes = np.where(beyond, scale.max_code, codes)
    void = (beyond & (how.infinities != "saturate")) | (maxima.nan & (how.nans == "block"))
    codes, void = without_zero(codes, void, (amax == 0) & ~beyond, scale, how)
    codes = with_nan(codes, void, scale)
    return Scales(codes, multipliers_of(np.where(void, 1.0, values_of(codes, scale)), rule, tensor), void)


def over(numerator: float, denominators: Reals) -> Reals:
    """A quotient in float32; infinite where the denominator is zero."""
    with np.errstate(divide="ignore"):
        return single(numerator / denominators)


@hash_kept
@dataclass(frozen=True)
class TensorScale:
    """The scale of a tensor: what elements are multiplied by to read them, and its inverse as the recipe has it."""

    decode: float
    encode: float
    amax: float | None


NO_TENSOR_SCALE = TensorScale(1.0, 1.0, None)


def te_tensor_scale(amax: float, fmt: BlockFormat, bound: float) -> TensorScale:
    """TransformerEngine's: S = bound * m / amax, at most the largest float32; 1 where there is nothing to scale or it is infinite."""
    factor = single_number(bound * fmt.element.max / amax) if amax else 0.0
    factor = min(factor, LARGEST) or 1.0
    inverse = reciprocal(factor)
    if math.isinf(inverse):
        raise ValueError(
            f"x has magnitudes up to {amax:.9g}, for which the tensor's scale of rule 'te' for {fmt} is beyond float32; accepted: tensor_scale=..."
        )
    return TensorScale(inverse, factor, amax)


def torchao_tensor_scale(amax: float, fmt: BlockFormat) -> TensorScale:
    """torchao's: g = amax / (largest scale * m); 1 where that is zero or infinite."""
    factor = single_number(amax / (fmt.scale.max * fmt.element.max))
    factor = factor if 0 < factor <= LARGEST else 1.0
    return TensorScale(factor, reciprocal(factor), amax)


def given_tensor_scale(value: float) -> TensorScale:
    """A scale that came from elsewhere."""
    return TensorScale(value, min(reciprocal(value), LARGEST), None)


def block_scales(maxima: Maxima, fmt: BlockFormat, rule: ScaleRule, tensor: TensorScale, how: Treatment) -> Scales:
    """Scales by any rule."""
    if rule.kind == POWER_OF_TWO:
        return power_of_two_scales(maxima, fmt, rule, how)
    return other_scales(maxima, fmt, rule, tensor, how)


def given_scales(codes: Codes, fmt: BlockFormat, rule: ScaleRule, tensor: TensorScale) -> Scales:
    """Scales that come from elsewhere."""
    void = np.asarray(engine.is_nan(codes, fmt.scale))
    values = np.where(void, 1.0, values_of(codes, fmt.scale))
    multiplier = 1.0 / values if rule.kind == POWER_OF_TWO else multipliers_of(values, rule, tensor)
    return Scales(codes, multiplier, void)


@lru_cache(maxsize=256)
def scale_of_zeros(fmt: BlockFormat, rule: ScaleRule, how: Treatment) -> int:
    """The code of the scale of a block of zeros; -1 for NaN. The tensor's scale has no say."""
    nothing = Maxima(np.zeros(1), np.zeros(1, bool), np.zeros(1, bool))
    found = block_scales(nothing, fmt, rule, NO_TENSOR_SCALE, how)
    return -1 if found.void[0] else int(found.codes[0])


@lru_cache(maxsize=64)
def every_scale(scale: Format) -> Reals:
    """What every code of a scale stands for, with 1 in place of NaN."""
    values = values_of(np.arange(1 << scale.bits, dtype=scale.dtype), scale)
    return np.where(np.isnan(values), 1.0, values)


@lru_cache(maxsize=64)
def every_single(scale: Format) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """The same as float32; None if there are numbers so large or small among them that a product by a moderate one could be subnormal."""
    values = every_scale(scale)
    some = values[values > 0]
    return values.astype(np.float32) if some.min() >= MODERATE and some.max() <= 1 / MODERATE else None


def every_multiplier(scale: Format, rule: ScaleRule, tensor: TensorScale) -> np.ndarray[Any, np.dtype[np.float32]]:
    """`multipliers_of` every code of a scale: in float32 throughout where the host's subnormals have no say."""
    values = every_single(scale)
    if values is None or not MODERATE <= tensor.decode <= 1 / MODERATE:
        return multipliers_of(every_scale(scale), rule, tensor).astype(np.float32)
    one = np.float32(1)
    with np.errstate(divide="ignore"):
        if rule.name == "torchao":
            return np.float32(reciprocal(tensor.decode)) / values
        if rule.name == "te":
            return np.minimum(one / (values * np.float32(tensor.decode)), np.float32(LARGEST))
        return one / values


@lru_cache(maxsize=256)
def compiled_scales(
    fmt: BlockFormat, rule: ScaleRule, tensor: TensorScale, how: Treatment
) -> engine.PowerScales | engine.TableScales | None:
    """The rule as compiled loops take it; None where they do not serve it, or the host's subnormals could have a say."""
    if not engine.serves_scale(fmt.scale) or (fmt.scale == FLOAT32 and rule.name != "amax"):
        return None
    zero_code = scale_of_zeros(fmt, rule, how)
    if rule.kind == POWER_OF_TWO:
        carry = carried(rule, fmt.element.max, fmt.element.mantissa_bits) >> 29  # from float64's 52 fraction bits to 23
        factor = reciprocal(fmt.element.max) if rule.divides else 0.0
        if rule.divides and not factor >= FLOAT32.tiny:
            return None
        offset = 0 if rule.divides else fmt.element.emax
        return engine.PowerScales(carry, factor, offset, rule.carry == "element", how.minimum, zero_code)
    factor = te_factor(fmt, tensor) if rule.name == "te" else -1.0
    if min(abs(factor), tensor.decode, tensor.encode) < FLOAT32.tiny or math.isinf(factor) or not fmt.scale.zero:
        return None
    multipliers = every_multiplier(fmt.scale, rule, tensor) if fmt.scale != FLOAT32 else NO_MULTIPLIERS
    low = fmt.scale.tiny if rule.name == "torchao" else 0.0
    divisors = fmt.element.max, tensor.decode if rule.name == "torchao" else 1.0
    return engine.TableScales(fmt.scale, factor, divisors, low, fmt.scale.max, how.minimum, zero_code, multipliers)
