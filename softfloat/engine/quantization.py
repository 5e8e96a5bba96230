"""Blocks that share a scale, by compiled loops: which calls they serve, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.elementwise import quick
from softfloat.engine.parameters import fast_numbers, fits_narrow_carrier, is_unusual, rule_for
from softfloat.engine.threads import share
from softfloat.environments import Overflow, Rounding, Settings
from softfloat.formats import ROSTER, Format

if TYPE_CHECKING:
    from types import ModuleType

SATURATING = Settings(overflow=Overflow.SATURATE)
LONGEST_SCALE = 8  # bits of a scale whose codes have a table
SMALLEST_NORMAL = 2.0**-126


@cache
def quantization() -> ModuleType:
    """The compiled floor, imported when first needed."""
    from softfloat.kernels import quantization as module

    return module


@dataclass(frozen=True)
class PowerScales:
    """Scales of E8M0, as the loop takes them.

    Attributes
    ----------
    carry : int
        What is added to the bits of a float32 so that its exponent is that of the power.
    reciprocal : float
        What amax is multiplied by first; 0: it is not.
    offset : int
        What is taken off the exponent.
    bounded : bool
        Whether a power of 2^128 is infinite, whatever is taken off.
    minimum : float
        The least amax.
    zero_code : int
        Of blocks of zeros; -1: they are left.
    """

    carry: int
    reciprocal: float
    offset: int
    bounded: bool
    minimum: float
    zero_code: int


@dataclass(frozen=True, eq=False)
class TableScales:
    """Other scales of at most 8 bits: amax * factor or, if that is negative, amax / divisors, rounded into `scale`.

    Attributes
    ----------
    scale : Format
    factor : float
    divisors : pair of float
    low, high : float
        The least and the largest scale.
    minimum : float
        The least amax.
    zero_code : int
        Of blocks of zeros; -1: they are left.
    multipliers : array of float32
        What elements are multiplied by, for each code of a scale.
    """

    scale: Format
    factor: float
    divisors: tuple[float, float]
    low: float
    high: float
    minimum: float
    zero_code: int
    multipliers: Codes


@dataclass(frozen=True, eq=False)
class Quantized:
    """What a loop made of the blocks that it did not leave: codes and flags block by block, and the marks of those it left."""

    codes: Codes
    scales: Codes
    flags: Codes
    seen: int
    left: Codes


def serves_elements(element: Format, settings: Settings, length: int) -> bool:
    """Whether there is a loop for elements and blocks of this length under these settings."""
    if not quick() or settings.rounding is not Rounding.NEAREST_EVEN or length not in quantization().LENGTHS:
        return False
    if settings.overflow is Overflow.NAN or settings.ftz or settings.daz or element.bits > 8:
        return False
    restated = rule_for(settings, element, True).restated
    return restated and fits_narrow_carrier(element.spec) and not is_unusual(element.spec)


def serves_scale(scale: Format) -> bool:
    """Whether there is a loop for scales in this format."""
    if scale == ROSTER["float8_e8m0fnu"]:
        return True
    return scale.bits <= LONGEST_SCALE and fits_narrow_carrier(scale.spec) and not is_unusual(scale.spec)


def largest_magnitude(numbers: np.ndarray[Any, np.dtype[np.float32]]) -> int:
    """The bits of the largest float32 magnitude; those of NaNs are larger than infinity's."""
    return int(quantization().largest()(flattened(numbers).view(np.int32)))


def quantized(
    numbers: np.ndarray[Any, np.dtype[np.float32]],
    length: int,
    element: Format,
    settings: Settings,
    scales: PowerScales | TableScales,
    each: bool,
) -> Quantized:
    """float32 numbers, block after block, as codes."""
    flat = flattened(numbers).view(np.int32)
    blocks = flat.size // length
    made = Quantized(
        np.empty(flat.size, np.uint8),
        np.empty(blocks, np.uint8),
        np.empty(flat.size if each else 0, np.uint8),
        0,
        np.zeros(blocks, np.uint8),
    )
    known: tuple[Any, ...] = fast_numbers(element.spec, rule_for(settings, element, True))
    if isinstance(scales, PowerScales):
        loop = quantization().powers(length, each)
        infinite = 0x7F800000 if scales.bounded else 0x7FFFFFFF
        least = int(np.float32(scales.minimum).view(np.int32))
        integers = [scales.carry, int(scales.reciprocal > 0), scales.offset, infinite, least, scales.zero_code]
        known = np.array(integers, np.int32), np.float32(scales.reciprocal), *known
    else:
        loop = quantization().tables(length, each)
        rule = rule_for(SATURATING, scales.scale, True)
        reals = np.array([scales.factor, *scales.divisors, scales.low, scales.high, scales.minimum], np.float32)
        of_scales = fast_numbers(scales.scale.spec, rule)
        known = reals, np.int32(scales.zero_code), scales.multipliers, *of_scales, *known

    def work(start: int, stop: int) -> int:
        span, some = slice(start, stop), slice(start // length, stop // length)
        flags = made.flags[span]
        return int(loop(flat[span], made.codes[span], made.scales[some], made.left[some], flags, *known))

    seen = share(flat.size, work)
    return Quantized(made.codes, made.scales, made.flags, seen, made.left)
