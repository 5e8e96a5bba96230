"""Operands of dot products laid out for the loops that are generated, if their values allow.

They must be finite and of a range in which nothing leaves the carrier's normal numbers. What is not served goes the
plain way; of a product in which few rows or columns are not finite, only these do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softfloat.engine import generated
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots, spared
from softfloat.engine.programs import Program
from softfloat.engine.ways import SUBNORMAL, WIDE_HIGHEST, Way
from softfloat.formats import Format

REGISTER_ROOM = 51
"""Bits of a product in units of a register."""


class Extent(NamedTuple):
    """What the values of an operand span: exponents of the smallest bit and just above the largest number."""

    low: int
    high: int
    finite: bool
    empty: bool  # nothing but zeros
    greatest: float = math.inf
    """The largest magnitude, if it was asked for."""


def extent(values: Codes, fmt: Format) -> Extent:
    """The span of values of a format."""
    return extent_of(*magnitudes(values), fmt)


def magnitudes(values: Codes) -> tuple[float, float, bool]:
    """The least magnitude of values but 0, and the greatest; whether all are finite."""
    found: tuple[float, float, bool] = spared(dots().extent()).taken(values.size)(values.reshape(-1))
    return found


def extent_of(least: float, greatest: float, finite: bool, fmt: Format, bits: int | None = None) -> Extent:
    """The span of values of a format between these magnitudes; of numbers of the format times scales of so many `bits` of precision."""
    if not greatest:
        return Extent(0, 0, bool(finite), True, 0.0)
    low = math.frexp(least)[1] - 1
    low = max(low, fmt.emin) if bits is None else low - bits
    return Extent(low - fmt.mantissa_bits, math.frexp(greatest)[1], bool(finite), False, greatest)


def united(spans: Sequence[Extent]) -> Extent:
    """What numbers span in all."""
    some = [x for x in spans if not x.empty]
    return Extent(
        min((x.low for x in some), default=0), max((x.high for x in some), default=0), all(x.finite for x in spans), not some
    )  # fmt: skip


class Operand(NamedTuple):
    """Codes of an operand, how they are read, and how those of all outputs lie; which product comes where, nowhere: as they are; how many products
    there are with those that fill up whole turns; of how many bits scales are, and powers of two for alignment, if numbers have such beside them;
    what reads all of them, if that is settled."""

    format: Format
    source: generated.Source
    lying: generated.Lying
    turns: int
    order: Codes = generated.NOWHERE
    bits: int | None = None
    powers: generated.Source | None = None
    reader: generated.Reader | None = None

    def read(self, panels: Codes, lying: generated.Lying) -> Extent:
        """Some numbers to panels, which end with zeros that fill up whole turns; what they span."""
        if self.powers is not None:
            self.powers.read(panels[:, 1:], lying)
            panels = panels[:, :1]
        return extent_of(*self.source.read(panels, lying, self.order, self.reader), self.format, self.bits)


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
