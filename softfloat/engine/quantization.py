"""Blocks that share a scale, by compiled loops: which calls they serve, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from softfloat.blocks import Fixed
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.elementwise import quick
from softfloat.engine.parameters import (
    FEW_PRODUCTS,
    SPARED_PRODUCTS,
    fast_numbers,
    fits_narrow_carrier,
    is_unusual,
    packed,
    quantization,
    rule_for,
    spared,
)
from softfloat.engine.threads import share
from softfloat.environments import Overflow, Rounding, Settings
from softfloat.formats import ROSTER, Format
from softfloat.kernels.spec import CARRIER32
from softfloat.kernels.targets import source, target

SATURATING = Settings(overflow=Overflow.SATURATE)
FLOAT8_E4M3 = ROSTER["float8_e4m3fn"]
LONGEST_SCALE = 8  # bits of a scale whose codes have a table
SMALLEST_NORMAL = 2.0**-126


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
        What elements are multiplied by, for each code of a scale; none for scales in float32, whose inverses these are.
    """

    scale: Format
    factor: float
    divisors: tuple[float, float]
    low: float
    high: float
    minimum: float
    zero_code: int
    multipliers: Codes


@dataclass(frozen=True)
class InverseScales:
    """Scales in float32 whose inverses, which elements are multiplied by, are largest / amax; 1 where that is zero.

    Attributes
    ----------
    largest, least : float
        The largest element, and the least amax.
    power_of_two : bool
        Whether inverses are rounded down to powers of two.
    all : float
        What all elements are multiplied by instead, a float32 number; 0: as they are found.
    """

    largest: float = 1.0
    least: float = 0.0
    power_of_two: bool = False
    all: float = 0.0


@dataclass(frozen=True, eq=False)
class Quantized:
    """What a loop made of the blocks that it did not leave: codes and flags block by block, and the marks of those it left; the bits of the
    largest magnitude of all."""

    codes: Codes
    scales: Codes
    flags: Codes
    seen: int
    left: Codes
    largest: int = 0


@dataclass(frozen=True)
class Places:
    """Where blocks of one shape lie in a row-major array.

    Attributes
    ----------
    length, height : int
        Numbers of a row of a block, and rows of a block.
    across : int
        Blocks side by side.
    pitch : int
        Numbers of a row of the array; 0: those of the blocks side by side.
    start : int
        The first block's place in a row.
    """

    length: int
    height: int = 1
    across: int = 1
    pitch: int = 0
    start: int = 0

    @property
    def elements(self) -> int:
        """Of a block."""
        return self.length * self.height

    def blocks(self, size: int) -> int:
        """Of an array of so many numbers."""
        return size // self.pitch * self.across if self.pitch else size // self.elements

    def span(self, start: int, stop: int) -> Codes:
        """The blocks among some elements, as loops take them."""
        blocks, pitch = (start // self.elements, stop // self.elements), self.pitch or self.across * self.length
        return np.array([*blocks, self.across, self.height, pitch, self.start], np.int64)


def serves_places(*places: Places) -> bool:
    """Whether there are loops for blocks of these shapes."""
    return quick() and _have_loops(places)


@lru_cache(maxsize=1024)
def _have_loops(places: tuple[Places, ...]) -> bool:
    return all(x.length in quantization().LENGTHS for x in places)


@lru_cache(maxsize=1024)
def serves_elements(element: Format | Fixed, settings: Settings, over_six: bool = False) -> bool:
    """Whether there is a loop for elements under these settings; `over_six`: the one of 4 over 6, whose elements are all numbers."""
    if over_six and (isinstance(element, Fixed) or element.has_nan or element.infinities):
        return False
    if settings.rounding is not Rounding.NEAREST_EVEN or settings.ftz or settings.daz or element.bits > 8:
        return False
    if isinstance(element, Fixed):
        return element.least == -element.largest
    if settings.overflow is Overflow.NAN:
        return False
    restated = rule_for(settings, element, True).restated
    return restated and fits_narrow_carrier(element.spec) and not is_unusual(element.spec)


def serves_scale(scale: Format) -> bool:
    """Whether there is a loop for scales in this format."""
    if scale in (ROSTER["float8_e8m0fnu"], ROSTER["float32"]):
        return True
    return scale.bits <= LONGEST_SCALE and fits_narrow_carrier(scale.spec) and not is_unusual(scale.spec)


def largest_magnitude(numbers: np.ndarray[Any, np.dtype[np.float32]]) -> int:
    """The bits of the largest float32 magnitude; those of NaNs are larger than infinity's."""
    return int(quantization().largest()(flattened(numbers).view(np.int32)))


def element_numbers(element: Format | Fixed, settings: Settings) -> tuple[Codes, Codes]:
    """What loops know of elements. Those of fixed point are subnormal numbers of a format that has no others."""
    if isinstance(element, Format):
        return fast_numbers(element.spec, rule_for(settings, element, True))
    known = target(FLOAT8_E4M3.spec, rule_for(SATURATING, FLOAT8_E4M3, True), CARRIER32)
    largest, sign = element.sign_bit - 1, element.sign_bit
    known = known._replace(
        tiny_positive=0.0, overflow_positive=largest, overflow_negative=largest | sign, sign=sign, largest=largest,
        lowest_exponent=ALL_SUBNORMAL, lowest_quantum=127 - element.fraction_bits,
    )  # fmt: skip
    return packed(CARRIER32, source(FLOAT8_E4M3.spec, CARRIER32, False), known)


@lru_cache(maxsize=1024)
def _settled(
    element: Format | Fixed, settings: Settings, scales: PowerScales | TableScales | InverseScales, kind: str
) -> tuple[Callable[[int, str], Any], np.dtype[Any], tuple[Any, ...]]:
    """(what makes a loop, the type of scales, all that it takes but arrays)."""
    of_elements = element_numbers(FLOAT8_E4M3, SATURATING) if kind == "scaled" else element_numbers(element, settings)
    known: tuple[Any, ...]
    if isinstance(scales, PowerScales):
        infinite = 0x7F800000 if scales.bounded else 0x7FFFFFFF
        least = int(np.float32(scales.minimum).view(np.int32))
        integers = [scales.carry, int(scales.reciprocal > 0), scales.offset, infinite, least, scales.zero_code]
        known = np.array(integers, np.int32), np.float32(scales.reciprocal), *of_elements
        return quantization().powers, np.dtype(np.uint8), known
    if isinstance(scales, InverseScales):
        reals, kept = [scales.largest, scales.least, scales.all], -(1 << 23) if scales.power_of_two else -1
        return (
            quantization().inverses,
            np.dtype(np.float32),
            (np.array(reals, np.float32), np.int32(kept), *of_elements),
        )
    reals = [scales.factor, *scales.divisors, scales.low, scales.high, scales.minimum]
    known = np.array(reals, np.float32), np.int32(scales.zero_code), scales.multipliers
    return quantization().tables, scales.scale.dtype, (*known, *scale_numbers(scales.scale), *of_elements)


@lru_cache(maxsize=1024)
def _loops(
    make: Callable[[int, str], Any], kind: str, places: tuple[Places, ...], size: int
) -> tuple[tuple[Places, Any, int, Codes], ...]:
    """(where blocks lie, their loop, how many they are, all of them as the loop takes them), of an array of so many numbers."""
    counts = [(place, place.blocks(size)) for place in places]
    return tuple((x, few_of(make(x.length, kind)), n, x.span(0, n * x.elements)) for x, n in counts)


few_of = partial(spared, few=FEW_PRODUCTS, spared=SPARED_PRODUCTS)
"""Loops of blocks take as long to compile as those of sums."""
ALL_SUBNORMAL = 127 + 90
"""The exponent field below which a float32 has one quantum; scaled numbers stay below 2^60."""


def quantized(
    numbers: np.ndarray[Any, np.dtype[np.float32]],
    places: tuple[Places, ...],
    element: Format | Fixed,
    settings: Settings,
    scales: PowerScales | TableScales | InverseScales,
    kind: str,
) -> Quantized:
    """float32 numbers as codes of elements, where each number is; `kind` is one of `kernels.quantization.KINDS`.

    Of several places, those of the blocks of a row after each other.
    Of kind "scaled", `codes` are the bits of scaled numbers. Codes of elements of fixed point are signs and magnitudes.
    """
    flat = flattened(numbers).view(np.int32)
    codes = np.empty(flat.size, np.int32 if kind == "scaled" else np.uint8)
    flags, seen = np.empty(flat.size if kind == "each" else 0, np.uint8), 0
    make, kind_of_scales, known = _settled(element, settings, scales, kind)
    parts, told, bits = list[tuple[Codes, Codes]](), [0], quantization().FLAG_BITS
    for place, loop, blocks, every in _loops(make, kind, places, flat.size):
        own, left = np.empty(blocks, kind_of_scales), np.zeros(blocks, np.uint8)
        size = blocks * place.elements

        def work(start: int, stop: int, given: Any = (place, loop.run, own, left, every, size)) -> int:
            place, run, own, left, every, size = given
            span = every if stop - start == size else place.span(start, stop)
            told.append(int(run(stop - start, flat, codes, own, left, flags, span, *known)))
            return told[-1] & ((1 << bits) - 1)

        seen |= share(size, work, place.elements)
        parts.append((own, left))
    largest = max(told) >> bits
    if len(places) == 1:
        return Quantized(codes, parts[0][0], flags, seen, parts[0][1], largest)
    of_scales, marks = zip(*parts, strict=True)
    own = _side_by_side(of_scales, places)
    left = _side_by_side(marks, places) if any(x.any() for x in marks) else NOTHING_LEFT
    return Quantized(codes, own, flags, seen, left, largest)


NOTHING_LEFT = np.zeros(0, np.uint8)


def _side_by_side(parts: Sequence[Codes], places: tuple[Places, ...]) -> Codes:
    """What belongs to blocks of several places, row after row."""
    rows = [x.reshape(-1, place.across) for x, place in zip(parts, places, strict=True)]
    return np.concatenate(rows, -1).reshape(-1)


def scale_numbers(scale: Format) -> tuple[Codes, Codes]:
    """What loops know of scales, the largest at most; nothing of those in float32, which are rounded already."""
    scale = scale if scale.bits <= LONGEST_SCALE else FLOAT8_E4M3
    return fast_numbers(scale.spec, rule_for(SATURATING, scale, True))


def four_over_six(
    numbers: np.ndarray[Any, np.dtype[np.float32]],
    places: Places,
    element: Format,
    settings: Settings,
    scales: TableScales,
    tensor: tuple[float, float, float],
    values: Codes,
    squares: bool,
    each: bool,
) -> Quantized:
    """The same of the better of two scales for each block, of elements that all stand for numbers.

    `values` are those of scales' codes, `tensor` (encode, amax, what reading divides by).
    """
    from softfloat.kernels import four_over_six as kernels

    flat = flattened(numbers).view(np.int32)
    blocks = flat.size // places.elements
    made = Quantized(
        np.empty(flat.size, np.uint8),
        np.empty(blocks, np.uint8),
        np.empty(flat.size if each else 0, np.uint8),
        0,
        np.zeros(blocks, np.uint8),
    )
    run = few_of(kernels.four_over_six(places.length, squares, each)).run
    encode, amax, divisor = tensor
    reals = np.array([element.max, encode, scales.high, amax, divisor, SMALLEST_NORMAL, 0.5], np.float32)
    known = reals, np.int32(scales.zero_code), scales.multipliers, values, *scale_numbers(scales.scale)
    limits = element_numbers(element, settings)

    def work(start: int, stop: int) -> int:
        span = places.span(start, stop)
        return run(stop - start, flat, made.codes, made.scales, made.left, made.flags, span, *known, *limits)

    return replace(made, seen=share(flat.size, work, places.elements))
