"""Sums of dot-product units by the loops of `kernels.units`: how operands are laid out, and what becomes of the sums."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import elementwise, entire, tiling, unit_ways
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program
from softfloat.engine.unit_ways import EXACT_BITS, UnitWay, choose
from softfloat.engine.ways import Place, Random, Tally, Way
from softfloat.formats import Format
from softfloat.kernels.spec import FLOAT64


def leads(values: Codes, fmt: Format, accumulator: Accumulator, scales: Codes | None) -> Codes:
    """2^exponent of each factor, its scale's included, a subnormal's that of its format; 0 for what has no part in the largest exponent."""
    aligned = accumulator.aligned
    assert aligned is not None
    of_zeros = unit_ways.power_of_zeros(accumulator)
    if scales is not None and not scales.all():
        scales = np.where(scales == 0.0, of_zeros, scales)
    if aligned.group > 1:
        return np.ones(values.shape) if scales is None else scales
    found = (values.view(np.int64) & 0x7FF0000000000000).view(np.float64)
    finite = bool(np.isfinite(found.max(initial=0.0)))
    np.maximum(found, fmt.tiny, out=found)
    np.copyto(found, of_zeros, where=values == 0.0)
    if scales is not None:
        with np.errstate(invalid="ignore"):  # an infinite element of scale zero
            found *= scales
    if not finite:
        found[~np.isfinite(values)] = 0.0
    return found


def in_line(planned: Program, begins: bool) -> Way | None:
    """The way of a unit's outputs in a line, if there is one; where a sum `begins` with c, that may have any bits."""
    way = choose(planned)
    return way and careful(way, planned, begins)


def of_grids(planned: Program, begins: bool) -> UnitWay | None:
    """The way of a unit's grids from codes to codes, likewise."""
    way = choose(planned)
    if way is None:
        return None
    quicker = None if begins or planned.length % way.group else unit_ways.in_single(way, planned)
    if quicker is not None and tiling.always_fits(quicker, planned):
        return quicker
    return careful(way, planned, begins)


@lru_cache(maxsize=512)
def careful(way: UnitWay, planned: Program, begins: bool) -> UnitWay:
    """The way of sums whose steps need not know what operands span: exact ones are careful, unless formats are narrow."""
    if way.unit.kind != "exact" or begins:
        return way
    spans = tiling.scaled([tiling.widest(fmt) for fmt in planned.formats], planned)
    highest = sum(x.high for x in spans) + planned.length.bit_length() + 1
    width = highest + 1 - min([sum(x.low for x in spans), *way.lows])  # roundings add up as well
    return way if width > EXACT_BITS else _quick(way)


@lru_cache(maxsize=512)
def _quick(way: UnitWay) -> UnitWay:
    """The way of exact sums that float64 has."""
    return replace(way, unit=way.unit._replace(careful=False))


def entering(way: Way, planned: Program, c: Codes | None) -> tuple[float, Codes | None, Codes | None]:
    """(what the first operand is multiplied by, c as loops take it, the flags that it raised on its way)."""
    factor, register, flags_of_c = 2.0**planned.accumulator.scale_exponent, planned.accumulator.fixed, None
    if register is not None:
        factor *= 2.0**-register.last
        c, flags_of_c = _registered(c, way, register.last)
    return factor, c, flags_of_c


def leaving(
    way: Way,
    planned: Program,
    values: Codes,
    flags: Codes,
    flags_of_c: Codes | None,
    place: Place,
    random: Random,
    tally: Tally | None = None,
) -> tuple[Codes, Codes]:
    """(codes in the partials format, flags) of a register's sums, which loops have made and counted, rounded; stochastically by the random numbers
    of the outputs at `place`."""
    register, site = planned.accumulator.fixed, way.site
    assert register is not None
    factor = 2.0**register.last
    if tally is not None:
        np.multiply(tally.extremes, tally.extremes.dtype.type(factor), out=tally.extremes)
    if flags_of_c is not None:
        flags |= flags_of_c
    values = np.ascontiguousarray(values.view(np.float64) * factor)
    if site.width:
        magics, shape = dots().grids(register.last, register.last + register.bits), values.shape
        codes, raised = entire.drawn(planned, values.reshape(1, -1, shape[-1]), magics, shape, place, random)
    else:
        codes, raised = elementwise.settled("convert", [values.view(np.uint64)], FLOAT64, site.format, site.rule)
    return codes, flags | raised


@lru_cache(maxsize=512)
def terms_fit(planned: Program, bits: tuple[int, int]) -> bool:
    """Whether a term, whose products share scales of so many bits, is exact in float64."""
    aligned = planned.accumulator.aligned
    if aligned is None or sum(fmt.p for fmt in planned.formats) + sum(bits) > EXACT_BITS:
        return False
    if aligned.group == 1:
        return True
    width = sum(fmt.emax - fmt.emin + fmt.p for fmt in planned.formats) + sum(bits)
    return width + (planned.block - 1).bit_length() + 1 <= EXACT_BITS


def _registered(c: Codes | None, way: Way, last: int) -> tuple[Codes | None, Codes | None]:
    """c in units of a register's last bit, and the flags that it raised there."""
    if c is None or not isinstance(way, UnitWay):
        return None, None
    exact = c * 2.0**-last
    n = np.floor(exact) if way.unit.cut == "floor" else np.trunc(exact)
    known = way.known
    beyond = (n >= known.half_span) | (n < -known.half_span)
    if way.unit.saturate:
        kept = np.where(n > 0.0, known.half_span - 1.0, -known.half_span)
    else:
        with np.errstate(invalid="ignore"):  # of an infinite c, which these loops leave
            kept = n - known.span * np.floor(n * known.per_span)
            kept = kept - known.span * np.floor((kept + known.half_span) * known.per_span)
    flags = np.where(n != exact, 1, 0) | np.where(beyond, 5, 0)
    return np.where(beyond, kept, n) + 0.0, flags.astype(np.uint8)
