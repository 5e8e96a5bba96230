"""Many sums of dot-product units at once whose terms are aligned: small products, and dot products of operands of their own."""

from __future__ import annotations

import numpy as np

from softfloat.engine import tiling, units
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import tiles
from softfloat.engine.programs import Program
from softfloat.engine.ways import Place, Random

STACKED = 1 << 18
"""Numbers of small products that are laid out at a time: so few stay in the cache, and in the same place."""


def takes_stacks(planned: Program) -> bool:
    """Whether many products of this program go together, if there is something to do."""
    way = units.choose(planned)
    return way is not None and way.unit.kind == "aligned" and way.unit.term == 1


def run_stack(
    planned: Program, a: Codes, b: Codes, c: Codes | None, index: int, random: Random
) -> tuple[Codes, Codes] | None:
    """As `units.run`, of many products whose terms are aligned: (products, rows, k), (products, k, columns), (products, rows, columns).

    The outputs are numbers `index` and following of their call.
    """
    columns = b.shape[2]
    return _run(planned, a, b, c, Place(index, columns, 1), a.shape[1] * columns, random)


def _run(
    planned: Program, a: Codes, b: Codes, c: Codes | None, place: Place, apart: int, random: Random
) -> tuple[Codes, Codes] | None:
    """The same, of products that lie like the one at `place`, each `apart` from the one before it."""
    way = units.choose(planned)
    if way is None or a.shape[1] * b.size < units.LEAST_WORK:
        return None
    spans = [tiling.extent(x.ravel(order="K"), fmt) for x, fmt in zip((a, b), planned.formats, strict=True)]
    if not tiling.fits(way, planned.length, spans, None if c is None else tiling.extent(c, planned.partials)):
        return None
    products, rows, columns = a.shape[0], a.shape[1], b.shape[2]
    codes = np.empty((products, rows, columns), planned.partials.dtype)
    flags = np.empty(codes.shape, np.uint8)
    count = max(1, STACKED // (2 * planned.length * (rows + columns) + rows * columns))
    for first in range(0, products, count):
        part = slice(first, first + count)
        loop = units.loop_of(way, way.unit, place._replace(first=place.first + first * apart), random, apart)
        panels = units.aligned_panels(planned, a[part], b[part])
        found = units.looped(way, loop, panels, None if c is None else c[part], rows, columns)
        codes[part], flags[part] = units.coded(way, planned, *found)
    return codes, flags


def run_paired(
    planned: Program, a: Codes, b: Codes, c: Codes | None, place: Place, random: Random
) -> tuple[Codes, Codes] | None:
    """As `units.run`, of dot products whose operands are all their own, (k, outputs) each, and c one of each: the diagonals of tiles.

    A row of a tile has the random numbers of its output on the diagonal, in every column.
    """
    size = tiles().ROWS
    if size != tiles().LANES[np.float64] or not takes_stacks(planned):
        return None
    (length, outputs), missing = a.shape, -a.shape[1] % size
    if missing:
        a, b = (np.pad(v, ((0, 0), (0, missing))) for v in (a, b))
    x, y = (v.reshape(length, -1, size) for v in (a, b))
    start, places = None, np.arange(size)
    if c is not None:
        start = np.zeros((x.shape[1], size, size))
        start[:, places, places] = np.pad(c, (0, missing)).reshape(-1, size)
    stride = place.column_stride
    done = _run(
        planned, x.transpose(1, 2, 0), y.transpose(1, 0, 2), start, Place(place.first, stride, 0), size * stride, random
    )
    if done is None:
        return None
    codes, flags = (np.ascontiguousarray(v[:, places, places]).reshape(-1)[:outputs] for v in done)
    return codes, flags
