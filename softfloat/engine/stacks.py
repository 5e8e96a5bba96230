"""Many small matrix products under one program: read, laid out and checked together, by the loops of `kernels.tiles`."""

from __future__ import annotations

import numpy as np

from softfloat.engine import threads, tiling
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import tiles
from softfloat.engine.programs import Program
from softfloat.engine.ways import Panels, Place, Random, Way
from softfloat.kernels.spec import Overflow


def laid_out(planes: list[Codes], size: int, carrier: type) -> Codes:
    """(products, planes, panels, k, size) of arrays (products, k, n), filled up with zeros."""
    products, length, count = planes[0].shape
    panels = -(-count // size)
    result = tiling.on_lines((products, len(planes), panels, length, size), carrier)
    whole, rest = divmod(count, size)
    for number, numbers in enumerate(planes):
        split = numbers[:, :, : whole * size].reshape(products, length, whole, size)
        result[:, number, :whole] = split.transpose(0, 2, 1, 3)
        if rest:
            result[:, number, whole, :, :rest] = numbers[:, :, whole * size :]
    return result


def run(
    way: Way, planned: Program, a: Codes, b: Codes, c: Codes | None, index: int, random: Random
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None if the operands go beyond what this way can do.

    Values in the order of the sum: a is (products, rows, k), b (products, k, columns), c (products, rows, columns). The
    outputs, results of the last shape, are numbers `index` and following of their call.
    """
    first, second = planned.formats
    start = None if c is None else tiling.extent(c, planned.partials)
    if not tiling.fits(way, planned.length, [tiling.extent(a, first), tiling.extent(b, second)], start):
        return None
    floor = tiles()
    lanes = floor.LANES[way.carrier]
    products, rows, columns = a.shape[0], a.shape[1], b.shape[2]
    planes = tiling.planes_of(way, planned, a, b)
    panels_a = laid_out([x.transpose(0, 2, 1) for x in planes[0]], floor.ROWS, way.carrier)
    panels_b = laid_out(planes[1], lanes, way.carrier)
    m, n = panels_a.shape[2], panels_b.shape[2]
    sums = np.zeros((products, m * floor.ROWS, n * lanes), way.carrier)
    if c is not None:
        sums[:, :rows, :columns] = c
    values: Codes = np.empty(sums.shape, way.carrier)
    flags: Codes = np.empty(sums.shape, np.uint8)
    numbers, nan_flags = tiling.numbers_of(way, planned), tiling.nan_flags_of(way)
    low_c = tiling.low_of(way, start)

    def one_by_one(unit: int, stop: int) -> int:
        while unit < stop:
            product, tile = divmod(unit, m * n)
            last = min(m * n, tile + stop - unit)
            place = Place(index + product * rows * columns, columns, 1)
            panels = Panels(panels_a[product], panels_b[product], sums[product], low_c)
            loop, more = way.loop(planned, panels, place, random, alone=False)
            found = values[product], flags[product]
            loop(tile, last, *panels[:3], *found, numbers, nan_flags, rows, columns, *more)
            unit += last - tile
        return 0

    work = one_by_one
    if way.stacked:
        whole = Panels(panels_a, panels_b, sums, low_c)
        loop, more = way.loop(planned, whole, Place(index, columns, 1), random)
        settled = *whole[:3], values, flags, numbers, nan_flags, rows, columns, *more

        def work(unit: int, stop: int) -> int:
            loop(unit, stop, *settled)
            return 0

    threads.share_units(products * m * n, work, planned.length * floor.ROWS * lanes)
    values, flags = values[:, :rows, :columns], flags[:, :rows, :columns]
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= nan_flags
    return tiling.codes_of(values, planned.partials, way.site), flags
