"""Operands of dot products laid out for the loops that are generated, if their values allow.

They must be finite and of a range in which nothing leaves the carrier's normal numbers. What is not served goes the
plain way; of a product in which few rows or columns are not finite, only these do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softfloat.engine import elementwise, parameters
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded, fits_single
from softfloat.engine.parameters import FLOAT32, dots, spared, tiles
from softfloat.engine.programs import Program, Site
from softfloat.engine.ways import SUBNORMAL, WIDE_HIGHEST, Way, nan_flags_of
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, Overflow

FEW = 1 << 10  # numbers that are laid out wherever memory is
REGISTER_ROOM = 51
"""Bits of a product in units of a register."""


class Extent(NamedTuple):
    """What the values of an operand span: exponents of the smallest bit and just above the largest number."""

    low: int
    high: int
    finite: bool
    empty: bool  # nothing but zeros


def extent(values: Codes, fmt: Format) -> Extent:
    """The span of values of a format."""
    return extent_of(*magnitudes(values), fmt)


def magnitudes(values: Codes) -> tuple[float, float, bool]:
    """The least magnitude of values but 0, and the greatest; whether all are finite."""
    found: tuple[float, float, bool] = spared(dots().extent()).taken(values.size)(values.reshape(-1))
    return found


def extent_of(least: float, greatest: float, finite: bool, fmt: Format) -> Extent:
    """The span of values of a format between these magnitudes."""
    if not greatest:
        return Extent(0, 0, bool(finite), True)
    return Extent(
        max(math.frexp(least)[1] - 1, fmt.emin) - fmt.mantissa_bits, math.frexp(greatest)[1], bool(finite), False
    )


def on_lines(shape: tuple[int, ...], carrier: type, make: Callable[..., Codes] = np.zeros) -> Codes:
    """Zeros from a cache line's start on: vectors that cross lines are read at half the speed. A few are not worth the search."""
    size, item = math.prod(shape), np.dtype(carrier).itemsize
    if size < FEW:
        return make(shape, carrier)
    line = tiles().jit.CACHE_LINE
    whole = make(size * item + line, np.uint8)
    skipped = -whole.ctypes.data % line
    return whole[skipped : skipped + size * item].view(carrier).reshape(shape)


def _other_lows(way: Way, start: Extent | None) -> list[int]:
    """Exponents of the smallest bits beside those of products."""
    return way.lows + ([] if start is None or start.empty else [start.low])


def low_of(way: Way, start: Extent | None) -> float:
    """The smallest bit of what a sum may be before its first product."""
    lows = _other_lows(way, start)
    return 2.0 ** min(lows) if lows else math.inf


def scaled(spans: list[Extent], planned: Program) -> list[Extent]:
    """What operands span as loops take them, but for a register's unit."""
    scale, (first, second) = planned.accumulator.scale_exponent, spans
    if not scale:
        return spans
    return [first._replace(low=first.low + scale, high=first.high + scale), second]


def fits(way: Way, planned: Program, spans: list[Extent], start: Extent | None) -> bool:
    """Whether operands that span so much, and c, if there is one, are of a kind that this way serves."""
    spans, register, length = scaled(spans, planned), planned.accumulator.fixed, planned.length
    if register is not None and spans[0].high + spans[1].high - register.last > REGISTER_ROOM:
        return False
    wide, (first, second) = way.carrier is np.float64, spans
    for x in spans if start is None else [*spans, start]:
        if not x.finite or (way.carrier is np.float32 and (x.low < SUBNORMAL or x.high > 128)):
            return False
    high, lows = first.high + second.high, [first.low + second.low, *_other_lows(way, start)]
    highs = [high] if start is None or start.empty else [high, start.high]
    low, top = min(lows), max(highs) + length.bit_length() + 1
    if first.empty or second.empty:
        low, top = min(lows[1:], default=0), max(highs[1:], default=0) + 1
    if low < way.lowest or high > way.highest or ((way.bounded or wide) and top > way.most):
        return False
    if way.highest == WIDE_HIGHEST and max(highs) > WIDE_HIGHEST:  # quanta of what sums begin with overflow
        return False
    return not wide or top + 1 - low <= way.widest  # roundings add up as well


LIFTED = 16  # exponent of float32's largest power of two over `LIFT`


def lifts_beyond(way: Way, b: Extent) -> bool:
    """Whether a number of the second operand becomes infinite where quick steps multiply it, though no product does."""
    return way.lifts and not b.empty and b.high > LIFTED


def fits_tiles(way: Way, planned: Program, spans: list[Extent], start: Extent | None) -> bool:
    """As `fits`, for tiles of a grid, whose quick steps may lift the second operand; lines have none that do."""
    return fits(way, planned, spans, start) and not lifts_beyond(way, spans[1])


def balanced(way: Way, spans: list[Extent]) -> tuple[int, list[Extent]]:
    """The exponent by which the first operand grows and the second shrinks, so that this may be lifted, and what both span then."""
    a, b = spans
    if not lifts_beyond(way, b):
        return 0, spans
    up = b.high - LIFTED
    first, second = a._replace(low=a.low + up, high=a.high + up), b._replace(low=b.low - up, high=LIFTED)
    if first.high > 127 or second.low < SUBNORMAL:
        return 0, spans
    return up, [first, second]


def widest(fmt: Format) -> Extent:
    """What finite values of a format can span."""
    return Extent(fmt.emin - fmt.mantissa_bits, fmt.emax + 1, True, False)


@lru_cache(maxsize=512)
def always_fits(way: Way, planned: Program) -> bool:
    """Whether all finite operands are of a kind that this way serves, without c."""
    return fits_tiles(way, planned, [widest(fmt) for fmt in planned.formats], None)


def coded(way: Way, planned: Program, values: Codes, flags: Codes) -> tuple[Codes, Codes]:
    """(codes in the partials format, flags)."""
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= nan_flags_of(way)
    return codes_of(values, planned.partials, way.site), flags


def put_right(way: Way, planned: Program, codes: Codes, flags: Codes, seen: int) -> None:
    """NaN as the rule makes it, in codes that a loop has written, and its flags; `seen` are those raised so far."""
    of_infinity = way.site.rule.overflow is Overflow.NAN
    if not seen & (spec.OVERFLOW if of_infinity else spec.INVALID):
        return
    values = decoded(codes, planned.partials, carrier=np.float32)
    if of_infinity:
        flags[np.isinf(values)] |= nan_flags_of(way)
    codes[...] = codes_of(values, planned.partials, way.site)


def codes_of(values: Codes, partials: Format, site: Site) -> Codes:
    """Codes of values that the format has; NaN as the rule makes it, but in float64, whose loops make none."""
    if partials.spec == spec.FLOAT64:
        return np.ascontiguousarray(values).view(partials.dtype)
    source = FLOAT32 if fits_single(partials) else spec.FLOAT64
    numbers = np.ascontiguousarray(values, np.float32 if source == FLOAT32 else np.float64)
    codes: Codes = numbers.view(f"u{numbers.itemsize}")
    beyond = ~np.isfinite(numbers)
    if partials.spec != FLOAT32:
        codes, _ = elementwise.run(
            "convert", [codes], ["values"], source, partials, parameters.NEAREST, out=None, flags="any", random_bits=None, stream=0
        )  # fmt: skip
    if beyond.any():
        target = spec.target(partials.spec, site.rule, CARRIER64)
        nan = beyond if site.rule.overflow is Overflow.NAN else np.isnan(numbers)
        codes = np.where(nan, np.asarray(target.nan, codes.dtype), codes)
    return codes
