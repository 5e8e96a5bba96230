"""Products of operands in block formats whose terms are aligned: laid out for the loops of units from their codes, in one pass."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softfloat.engine import threads, tiling, unit_ways, units
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.decoding import decoded
from softfloat.engine.parameters import tiles
from softfloat.engine.problems import Blocks, Scales
from softfloat.engine.programs import Program
from softfloat.engine.ways import Place, Random
from softfloat.formats import Format
from softfloat.kernels.spec import Rule

LONGEST_CODE = 8
"""Bits of a code whose values have a table."""
INFINITE = 0x7FF0000000000000


def leading_power(values: Codes, fmt: Format) -> Codes:
    """2^exponent of finite numbers of a format, a subnormal's that of its format; 0 for everything else."""
    powers = np.ldexp(1.0, np.frexp(values)[1] - 1)
    return np.where((values > 0.0) & np.isfinite(values), np.maximum(powers, fmt.tiny), 0.0)


@lru_cache(maxsize=256)
def _of_scales(scale: Format, of_zeros: float) -> Codes:
    """For each code of a scale its value and its power of two."""
    values = np.abs(decoded(np.arange(1 << scale.bits, dtype=scale.dtype), scale))  # a sign says nothing
    powers = leading_power(values, scale)
    return np.array([values, np.where(powers == 0.0, of_zeros, powers)])


@lru_cache(maxsize=256)
def _of_elements(element: Format, unpacked: Format, daz: bool, of_zeros: float, grouped: bool) -> Codes:
    """For each code of an element its value and its power of two; in groups that of the scale counts alone."""
    values = decoded(np.arange(1 << element.bits, dtype=element.dtype), element, Rule(daz=daz))
    powers = np.where(values == 0.0, of_zeros, leading_power(np.abs(values), unpacked))
    return np.array([values, np.ones_like(powers) if grouped else powers])


def _flat(array: Codes) -> tuple[Codes, tuple[int, int]]:
    """(a flat array, how far it is in it from one entry to the next along both axes)."""
    if array.T.flags.c_contiguous:
        return flattened(array.T), (1, array.shape[0])
    return flattened(array), (array.shape[1], 1)


def _follows(planned: Program, products: int) -> bool:
    """Whether products are summed as they come, with nothing but more at the end."""
    index = planned.index
    return index is None or np.array_equal(index[:products], np.arange(products))


def _laid_out(
    planned: Program, blocks: Blocks, fmt: Format, daz: bool, group: int, size: int, bits: int
) -> tuple[Codes, tiling.Extent]:
    """(panels, span) of an operand, whose scales have so many bits of precision."""
    how, aligned = planned.accumulator, planned.accumulator.aligned
    assert aligned is not None
    of_zeros, grouped = unit_ways.power_of_zeros(how), aligned.group > 1
    products, wide = blocks.codes.shape
    (codes, steps), (scales, scale_steps) = _flat(blocks.codes), _flat(blocks.scales)
    length, panels = -(-planned.length // group) * group, -(-wide // size)
    places = np.array([products, wide, *steps, *scale_steps, *blocks.block, planned.length], np.int64)
    target = tiling.on_lines((2, panels, length, size), np.float64, np.empty)
    spans = np.empty((2, panels, size), np.int64)
    of_elements = _of_elements(fmt, how.unpacked or fmt, daz, of_zeros, grouped)
    of_scales = _of_scales(blocks.scale, of_zeros)
    of_nothing = of_zeros if grouped else of_zeros * of_zeros
    loop = tiles().scaled_laid_out()

    def work(first: int, last: int) -> int:
        loop(first, last, codes, scales, places, of_elements, of_scales, of_nothing, target, spans)
        return 0

    threads.share_units(panels, work, 2 * length * size)
    least, greatest = int(spans[0].min(initial=INFINITE)), int(spans[1].max(initial=0))
    finite = greatest < INFINITE
    low, high = np.array([least, greatest if finite else 0], np.int64).view(np.float64).tolist()
    return target, units.extent_with_scales(low, high, finite, fmt, bits)


def run(planned: Program, scales: Scales, c: Codes | None, place: Place, random: Random) -> tuple[Codes, Codes] | None:
    """As `units.run`, of operands in block formats; None if they have to be spread out. `c` are codes."""
    if scales.blocks is None:
        return None
    (a, b), bits = scales.blocks, scales.bits
    rows, columns = a.codes.shape[1], b.codes.shape[1]
    longest = max(x.bits for y in (a, b) for x in (y.element, y.scale))
    if longest > LONGEST_CODE or not _follows(planned, a.codes.shape[0]):
        return None
    way = unit_ways.choose(planned)
    if way is None or way.unit.kind != "aligned" or not units.terms_fit(planned, bits):
        return None
    if not unit_ways.worth_grid(planned, rows * b.codes.size):
        return None
    sizes = tiles().ROWS, tiles().LANES[way.carrier]
    made = [
        _laid_out(planned, blocks, fmt, rule.daz, way.unit.group, size, own)
        for blocks, fmt, rule, size, own in zip((a, b), planned.formats, planned.reading, sizes, bits, strict=True)
    ]
    values_of_c = None if c is None else decoded(np.ascontiguousarray(c), planned.partials, planned.entry)
    start = None if values_of_c is None else tiling.extent(values_of_c, planned.partials)
    if not tiling.fits(way, planned.length, [span for _, span in made], start):
        return None
    panels = [target[np.newaxis] for target, _ in made]
    values, flags, _ = tiling.summed(way, planned, panels, values_of_c, (rows, columns), place, random)
    return tiling.coded(way, planned, values, flags)
