"""Many sums of dot-product units at once whose terms are aligned: small products, and dot products of operands of their own."""

from __future__ import annotations

import numpy as np

from softfloat.engine import stacks, tiling, unit_ways, units
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import tiles
from softfloat.engine.programs import Program
from softfloat.engine.ways import Place, Random


def takes_stacks(planned: Program) -> bool:
    """Whether many products of this program go together, if there is something to do."""
    way = unit_ways.choose(planned)
    return way is not None and way.unit.kind == "aligned" and way.unit.term == 1


def run_stack(
    planned: Program,
    a: Codes,
    b: Codes,
    c: Codes | None,
    place: Place,
    random: Random,
    into: tuple[Codes, Codes] | None = None,
) -> stacks.Done | None:
    """As `stacks.run`, of products whose terms are aligned."""
    return _run(planned, a, b, c, place, a.shape[1] * b.shape[2], random, into)


def _run(
    planned: Program,
    a: Codes,
    b: Codes,
    c: Codes | None,
    place: Place,
    apart: int,
    random: Random,
    into: tuple[Codes, Codes] | None = None,
) -> stacks.Done | None:
    """The same, of products that lie like the one at `place`, each `apart` from the one before it."""
    way = unit_ways.choose(planned)
    if way is None or a.shape[1] * b.size < unit_ways.LEAST_WORK:
        return None
    aligned, columns = planned.accumulator.aligned, b.shape[2]
    of_zeros = 0.0 if aligned is None or aligned.zeros is None else 2.0**aligned.zeros
    operands = stacks.operands_of(planned, a, b, way.carrier, 2, of_zeros)
    if operands is None:
        return None
    if c is None and apart == a.shape[1] * columns:
        done = stacks.one_after_the_other(way, planned, operands, into)
        if done is not None:
            return done if len(done.left) < len(a) else None

    def sums(arrays: list[Codes], first: int, low_c: float, alone: bool, run_tiles: stacks.Tiles) -> int:
        begin = place._replace(first=place.first + first // (a.shape[1] * columns) * apart)
        loop = units.loop_of(way, way.unit, begin, random, apart)
        return run_tiles(loop, arrays, len(arrays[0]) * arrays[0].shape[2] * arrays[1].shape[2])

    numbers = stacks.Numbers(tiling.numbers_of(way, planned), tiling.nan_flags_of(way))
    return stacks.in_pieces(way, planned, operands, c, 0, numbers, sums, into)


def run_paired(
    planned: Program, a: Codes, b: Codes, c: Codes | None, place: Place, random: Random
) -> tuple[Codes, Codes] | None:
    """As `units.run`, of dot products whose operands are all their own, (k, outputs) each, and c one of each: the diagonals of tiles.

    Operands are codes, c values. A row of a tile has the random numbers of its output on the diagonal, in every column.
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
    first = Place(place.first, stride, 0)
    done = _run(planned, x.transpose(1, 2, 0), y.transpose(1, 0, 2), start, first, size * stride, random)
    if done is None or done[2]:
        return None
    codes, flags = (np.ascontiguousarray(v[:, places, places]).reshape(-1)[:outputs] for v in done[:2])
    return codes, flags
