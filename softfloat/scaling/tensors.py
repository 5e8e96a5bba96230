"""Scales of tensors, rows and tiles, found from magnitudes in float32 as TransformerEngine does, and what is remembered of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from softfloat import bits, engine
from softfloat.bits import BlockCodes
from softfloat.bits.blocks.codes import exact_float, spread
from softfloat.bits.blocks.numbers import exactly, laid_out, magnitude_bits
from softfloat.bits.blocks.scales import FLOAT32, LARGEST, single, single_number, surely_normal
from softfloat.blocks import BlockFormat
from softfloat.checks import check_choice, check_kind, check_switch
from softfloat.engine import Codes, Options
from softfloat.environments import Settings
from softfloat.formats import Format, bfloat16, check_format, float16
from softfloat.kernels.spec import Overflow, Rounding
from softfloat.scaling.recipes import STANDINGS, CurrentScaling, DelayedScaling, check_finite
from softfloat.status import Flags

__all__ = ["AmaxHistory", "ScaledCodes", "encode_scales"]

Reals = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[np.float32]]
LONGEST, FEW = 256, 1 << 10
"""Numbers that the compiled loop takes at a time, where all have one scale; and those for which laying out blocks is not worth it."""
LEADING = np.uint64(0xFFF << 52)
"""What leaves a float64 its power of two; no float32 number is subnormal there."""
VANISHED = int(Flags.INEXACT | Flags.UNDERFLOW)
PLAIN: dict[str, Any] = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY, "flags": "any"}


@dataclass(frozen=True, eq=False)
class ScaledCodes:
    """Codes that share a float32 scale, all of them, or row by row or column by column: the value is scale * element.

    Attributes
    ----------
    elements : array of int
        Codes of `format`.
    scale : array of float32
        Of a shape that broadcasts to the elements'.
    format : Format
    """

    elements: Codes
    scale: Numbers
    format: Format

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the elements."""
        return self.elements.shape

    @property
    def values(self) -> Reals:
        """What the codes stand for, exactly."""
        return np.asarray(engine.decoded(self.elements, self.format) * exactly(self.scale))


def encode_scales(
    amax: Any,
    format: Format | str,
    *,
    power_of_two: bool = False,
    epsilon: float = 0.0,
    standing: str = "kernel",
    input_format: Format | str = "float32",
) -> Reals:
    """What numbers are multiplied by before they are rounded: largest element / amax, in float32.

    Parameters
    ----------
    amax : array_like of float
        float32 numbers, NaN and infinity among them.
    format : Format or str
        Of the elements.
    power_of_two : bool
        Rounded down to a power of two.
    epsilon : float
        What amax is at least.
    standing : {"kernel", "reference"}
        As of `CurrentScaling`.
    input_format : Format or str
        What the numbers came in: where the quotient is beyond float32, the scale is that format's largest number.

    Returns
    -------
    array of float64
        float32 numbers.

    Source
    ------
    TransformerEngine, common/recipe/recipe_common.cuh, and tests/pytorch/references/quantize_scale_calc.py.

    >>> encode_scales([3.0, 0.0, np.inf], "float8_e4m3fn")
    array([149.33332825,   1.        ,   1.        ])
    >>> encode_scales([3.0, 0.0, np.inf], "float8_e4m3fn", standing="reference", power_of_two=True)
    array([128.,   1.,   0.])
    """
    check_choice("standing", standing, STANDINGS)
    check_switch("power_of_two", power_of_two)
    check_finite("epsilon", epsilon)
    fmt, source = check_format(format, "format"), check_format(input_format, "input_format")
    return scales_of(amax_numbers(amax), fmt, source, power_of_two, epsilon, standing)


def scales_of(amax: Reals, fmt: Format, source: Format, power_of_two: bool, epsilon: float, standing: str) -> Reals:
    """`encode_scales` of what is checked."""
    found = np.maximum(amax, epsilon)  # NaN stays
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = single(fmt.max / found)
    scale = np.where(np.isinf(scale), source.max, scale)
    if power_of_two:
        scale = np.where(scale > 0, (scale.view(np.uint64) & LEADING).view(np.float64), scale)
    one = found == 0
    if standing == "kernel":
        one = one | ~np.isfinite(found)
    return np.where(one, 1.0, scale)


def amax_numbers(amax: Any) -> Reals:
    """Largest magnitudes as float64: anything but negative numbers."""
    engine.refuse_mask(amax, "amax")
    array = np.asarray(amax)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"amax must be float32 numbers, got {type(amax).__name__} of dtype {array.dtype}")
    if (array < 0).any():
        raise ValueError(f"amax must be magnitudes, at least 0, got {array[array < 0].flat[0]}")
    return array.astype(np.float64)


def float32_of(values: Reals) -> Numbers:
    """float32 numbers, held as float64, as such; the host's treatment of subnormals has no say."""
    if surely_normal(values):
        return values.astype(np.float32)
    return np.asarray(bits.encode(np.asarray(values, np.float64), FLOAT32, flags="any")[0]).view(np.float32)


def widened(codes: Codes, fmt: Format) -> Numbers:
    """Codes of a format whose numbers float32 has, as float32; NaNs are made quiet."""
    if fmt in WIDENED and not engine.is_nan(codes, fmt).any():
        return np.asarray(WIDENED[fmt](codes))
    return np.asarray(bits.convert(codes, fmt, FLOAT32, flags="any")[0]).view(np.float32)


WIDENED: dict[Format, Callable[[Codes], Numbers]] = {
    bfloat16: lambda codes: (codes.astype(np.uint32) << np.uint32(16)).view(np.float32),
    float16: lambda codes: codes.view(np.float16).astype(np.float32),
}
"""How formats become float32 without a look at single numbers, of which none is subnormal there in half."""


def of_bits(magnitude: int) -> Reals:
    """A magnitude of these bits of float32."""
    return np.asarray(exact_float(np.int32(magnitude).view(np.float32)))


def magnitudes(numbers: Numbers, axis: int | None) -> Reals:
    """The largest magnitude, of all or along an axis that is kept; NaN counts as the largest, then infinity."""
    if axis is None:
        return of_bits(engine.largest_magnitude(numbers))
    return exactly(magnitude_bits(numbers).max(axis=axis, keepdims=True, initial=0))


def scaled_elements(
    numbers: Numbers, scale: Numbers, fmt: Format, options: Options, block: tuple[int, ...] = ()
) -> tuple[Codes, Any]:
    """Codes of numbers times scales, one or one for each block, that product in float32 to nearest; flags are those of the last rounding."""
    alone = engine.InverseScales(all=float(scale.flat[0])) if scale.size == 1 and scale.all() else None
    found = None if alone is None else quickly_scaled(numbers, alone, fmt, options)
    if found is not None:
        return found[:2]
    factors = spread(scale, block, numbers.shape) if block else scale
    product, raised = bits.mul(numbers.view(np.uint32), factors.view(np.uint32), FLOAT32, **PLAIN)
    product = np.asarray(product)
    codes, flags = bits.convert(product, FLOAT32, fmt, **options)
    if raised & VANISHED or not scale.all():
        vanished = (product & np.uint32(0x7FFFFFFF) == 0) & (magnitude_bits(numbers) != 0)
        if vanished.any():
            each = options.get("flags", "each") == "each"
            flags = flags | np.where(vanished, VANISHED, 0).astype(np.uint8) if each else int(flags) | VANISHED
    return np.asarray(codes), flags


@lru_cache(maxsize=256)
def _reading(settings: Settings, fmt: Format) -> Settings:
    """Those of conversions from float32."""
    return settings.between(FLOAT32.name, fmt.name)


def quickly_scaled(
    numbers: Numbers,
    scales: engine.InverseScales,
    fmt: Format,
    options: Options,
    block: tuple[int, ...] = (),
) -> tuple[Codes, Any, Codes, int] | None:
    """(codes, flags, scales, bits of the largest magnitude) of numbers, blocks or all with one scale, by the compiled loop; None where it does not
    serve, or numbers are not ordinary."""
    settings = _reading(cast(Settings, options["environment"]), fmt)
    if numbers.size < (FEW if block else 1) or not engine.serves_elements(fmt, settings):
        return None
    layout = laid_out(
        *((numbers.shape, block) if block else ((numbers.size,), (math.gcd(numbers.size, LONGEST) or 1,)))
    )
    layout = layout if engine.serves_places(*layout.places) else layout.side_by_side
    if not engine.serves_places(*layout.places):
        return None
    array, each = numbers if layout.in_place else layout.rows(numbers), options.get("flags", "each") == "each"
    made = engine.quantized(array, layout.places, fmt, settings, scales, "each" if each else "any")
    if made.left.any():
        return None
    codes, flags = (
        layout.in_array(x).reshape(numbers.shape) if x.size else made.seen for x in (made.codes, made.flags)
    )
    return np.asarray(codes), flags, made.scales.reshape(layout.grid), made.largest


def tile_amax(numbers: Numbers, shape: tuple[int, ...]) -> Reals:
    """The largest magnitude of each tile, short ones at the ends."""
    found = magnitude_bits(numbers)
    if not found.size:
        return np.zeros([-(-n // length) for n, length in zip(found.shape, shape, strict=True)])
    for axis, length in enumerate(shape):
        if length > 1:
            found = np.maximum.reduceat(found, np.arange(0, found.shape[axis], length), axis=axis)
    return exactly(np.ascontiguousarray(found, np.int32))


@lru_cache(maxsize=64)
def tile_format(fmt: Format, tile: int | tuple[int, ...]) -> BlockFormat:
    """Elements with float32 scales."""
    return BlockFormat(f"{fmt}_scaled", element=fmt, scale=FLOAT32, block=tile)


@lru_cache(maxsize=256)
def _tiles(
    how: CurrentScaling, ndim: int, axis: int
) -> tuple[BlockFormat, tuple[int, ...], engine.InverseScales | None]:
    """Elements with float32 scales, the shape of their tiles, and how a loop finds these scales, if it does."""
    assert not isinstance(how.per, str)
    fmt = tile_format(how.format, how.per)
    served = single_number(how.epsilon) == how.epsilon
    known = engine.InverseScales(how.format.max, how.epsilon, how.power_of_two) if served else None
    return fmt, fmt.block_shape(ndim, axis), known


def currently_scaled(
    numbers: Numbers, how: CurrentScaling, axis: int, input_format: Format, options: Options
) -> tuple[ScaledCodes | BlockCodes, Any, Reals]:
    """(quantised, flags, amax) of numbers that are summed over an axis."""
    if isinstance(how.per, str):
        amax = magnitudes(numbers, None if how.per == "tensor" else axis)
        encode, decode = (
            _of_one(float(amax), how, input_format) if amax.ndim == 0 else _of_many(amax, how, input_format)
        )
        codes, flags = scaled_elements(numbers, encode, how.format, options)
        return ScaledCodes(codes, decode, how.format), flags, amax
    fmt, shape, known = _tiles(how, numbers.ndim, axis)
    quick = None
    if known is not None:
        quick = quickly_scaled(numbers, known, how.format, options, tuple(map(min, shape, numbers.shape)))
    if quick is not None:
        codes, flags, decode, largest = quick
        amax = of_bits(largest)
    else:
        amax = tile_amax(numbers, shape)
        encode, decode = _of_many(amax, how, input_format)
        codes, flags = scaled_elements(numbers, encode, how.format, options, shape)
    return BlockCodes.made(codes, decode.view(np.uint32), fmt, axis % numbers.ndim, shape, None), flags, amax


def _of_many(amax: Reals, how: CurrentScaling, input_format: Format) -> tuple[Numbers, Numbers]:
    """What numbers are multiplied by to be coded, and codes to be read."""
    found = float32_of(scales_of(amax, how.format, input_format, how.power_of_two, how.epsilon, how.standing))
    return found, reciprocals(found)


@lru_cache(maxsize=1024)
def _of_one(amax: float, how: CurrentScaling, input_format: Format) -> tuple[Numbers, Numbers]:
    """The same of a tensor; a layer's tensors take part in two products each."""
    return _of_many(np.asarray(amax), how, input_format)


def reciprocals(scale: Numbers) -> Numbers:
    """1/scale in float32."""
    if scale.all() and surely_normal(scale):
        return np.float32(1) / scale
    found, _ = bits.div(FLOAT32.one_code, scale.view(np.uint32), FLOAT32, **PLAIN)
    return np.asarray(found).view(np.float32).reshape(scale.shape)


class AmaxHistory:
    """What delayed scaling remembers of one tensor: largest magnitudes of its last steps, and the scale made of them.

    Parameters
    ----------
    scaling : DelayedScaling

    Attributes
    ----------
    scale : float
        What numbers are multiplied by in this step, a float32 number; 1 in the first.
    history : list of float
        Entry 0 is this step's amax so far. Later entries are older ones, in no particular order: `update` moves each one
        place forward and puts the step's at the end.

    Source
    ------
    TransformerEngine, common/recipe/delayed_scaling.cu. A quotient beyond float32 is the largest number.

    >>> past = AmaxHistory(DelayedScaling(format="float8_e4m3fn", history=3))
    >>> for amax in (7.0, 3.5, 0.5, 0.5):
    ...     past.record(amax)
    ...     past.update()
    ...     print(past.scale, past.history)
    64.0 [0.0, 0.0, 7.0]
    64.0 [0.0, 7.0, 3.5]
    64.0 [0.0, 3.5, 0.5]
    128.0 [0.0, 0.5, 0.5]
    """

    def __init__(self, scaling: DelayedScaling) -> None:
        check_kind("scaling", scaling, DelayedScaling)
        self.scaling, self.scale = scaling, 1.0
        self.history = [0.0] * scaling.history

    def record(self, amax: float) -> None:
        """The largest magnitude of a tensor of this step; of several the largest counts, NaN before all."""
        if np.ndim(amax):
            raise TypeError(f"amax must be one number, got an array of shape {np.shape(amax)}")
        number = float(amax_numbers(amax))
        self.history[0] = number if number != number or number > self.history[0] else self.history[0]

    def update(self) -> None:
        """The end of a step."""
        last, how = self.history[0], self.scaling
        if last == 0 and how.zero_amax == "keep":
            return
        rolled = [*self.history[1:], last]
        amax = last if how.amax == "most_recent" else float(np.fmax.reduce([0.0, *rolled]))
        self.history = [0.0, *rolled[1:]]
        if 0 < amax < np.inf:
            found = float(single(single(how.format.max * 2.0**-how.margin) / amax))
            self.scale = min(found, LARGEST)

    def __repr__(self) -> str:
        return f"AmaxHistory({self.scaling!r}, scale={self.scale:.9g})"


def delayed(numbers: Numbers, past: AmaxHistory, options: Options) -> tuple[ScaledCodes, Any, Reals]:
    """(quantised, flags, amax) by the scale of earlier steps; this step's amax is recorded."""
    fmt = past.scaling.format
    encode = float32_of(np.asarray(past.scale))
    codes, flags = scaled_elements(numbers, encode, fmt, options)
    amax = magnitudes(numbers, None)
    past.record(float(amax))
    return ScaledCodes(codes, reciprocals(encode), fmt), flags, amax
