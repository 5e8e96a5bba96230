"""Many small matrix products under one program: read, summed and written some at a time, by generated loops."""

from __future__ import annotations

import math
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine import generated, pools, threads, tiling, units
from softfloat.engine.apart import Specials
from softfloat.engine.arguments import Codes
from softfloat.engine.lines import Span
from softfloat.engine.parameters import tiles
from softfloat.engine.programs import Program
from softfloat.engine.tiling import Operand
from softfloat.engine.ways import Panels, Place, Random, Tally, Way

ROOM = 1 << 22
"""Bytes that products done at a time take, panels and sums: so many stay in the CPU's caches."""
SHARES = 4
"""Pieces for each thread, if there are several."""
LONG = 1 << 26
"""Multiply-adds from which on a piece is shared among threads itself, and looked at whether it is still wanted."""


def operands_of(planned: Program, a: Codes, b: Codes, way: Way) -> tuple[Operand, Operand] | None:
    """Codes a, (products, rows, k), and b, (products, k, columns); None if the carrier does not hold their numbers."""
    found = []
    for which, codes in enumerate((a, b)):
        steps = codes.strides[1:] if len(codes) == 1 else codes.strides  # one product has no next
        in_lines = min(steps) > 0 and codes.itemsize in codes.strides[1:]
        source = way.source(planned, which, codes if in_lines else np.ascontiguousarray(codes))
        if source is None:
            return None
        lies = source.codes if which else source.codes.swapaxes(1, 2)
        apart, k_step, n_step = (step // lies.itemsize for step in lies.strides)
        products, length, outputs = lies.shape
        lying = generated.Lying(0, k_step, n_step, 0, planned.order.size or length, outputs, products, apart)
        found.append(Operand(planned.formats[which], source, lying, way.turns(planned), planned.order))
    return found[0], found[1]


def shapes_of(
    way: Way, rows: int, length: int, columns: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Of panels of a product's operands, and of its outputs in whole tiles."""
    height, width = tiles().ROWS, tiles().LANES[way.carrier]
    down, across = -(-rows // height), -(-columns // width)
    return (way.planes, down, length, height), (way.planes, across, length, width), (down * height, across * width)


class Done(NamedTuple):
    """Codes in the partials format, flags, products that go beyond what a way can do."""

    codes: Codes
    flags: Codes
    left: list[Span]


def in_pieces(
    way: Way,
    planned: Program,
    operands: tuple[Operand, Operand],
    c: Codes | None,
    place: Place,
    random: Random,
    into: tuple[Codes, Codes] | None = None,
    tally: Tally | None = None,
    scales: tuple[Codes, ...] = (),
    specials: tuple[Specials, Specials] | None = None,
) -> Done | None:
    """What is done of these products, or None if all go beyond what the way can do.

    c has values, (products, rows, columns). The first product's outputs lie at `place`, and those of the others follow. Codes and flags
    go `into` these arrays, of the last shape, if there are any. A `tally` is filled, of one product. `scales` are those of segments, as
    `Panels` has them. `specials` are infinities and NaNs of one product's operands, for whose places there are zeros; its c may have others.
    """
    first, second = operands
    (products, rows), columns, length = (first.lying.grids, first.lying.outputs), second.lying.outputs, first.turns
    shape = products, rows, columns
    codes, flags = into or (np.empty(shape, planned.partials.dtype), np.empty(shape, np.uint8))
    floor, how = tiles(), planned.accumulator
    whole_tiles = rows % floor.ROWS == 0 == columns % floor.LANES[way.carrier]
    straight = how.fixed is None and whole_tiles and codes.flags.c_contiguous and flags.flags.c_contiguous
    shapes, item = shapes_of(way, rows, length, columns), np.dtype(way.carrier).itemsize
    size = sum(bytes_of * math.prod(x) for bytes_of, x in zip((item, item, 2 * item + 1), shapes, strict=True))
    workers = threads.get_num_threads()
    together = min(max(1, ROOM // size), products if workers == 1 else max(1, products // (SHARES * workers)))
    pieces = -(-products // together)
    together = -(-products // max(pieces, 1))  # of one size, or nearly
    work = together * rows * length * columns
    apart = work <= LONG and (workers == 1 or pieces >= 2 * workers)
    cost = length * floor.ROWS * floor.LANES[way.carrier]
    settled = c is None and first.bits is None and tiling.always_fits(way, planned)
    left: list[Span] = []
    rooms: list[Codes] = []  # that no thread is busy with
    kinds: list[Any] = [way.carrier] * 3 + ([] if straight else [way.results.dtype, np.uint8])
    sizes = *shapes[:2], shapes[2] if c is not None else (0,), shapes[2], shapes[2]
    wanted = tuple(((together, *x), kind) for x, kind in zip(sizes, kinds, strict=False))

    def summed(panels: Panels, number: int) -> int:
        padded = None if tally is None else tally.padded(panels.values.shape[1:], way.carrier)
        job, raised = (
            way.grids(planned, panels, place._replace(first=place.first + number), random, padded),
            list[int](),
        )

        def run_unit(start: int, stop: int) -> int:
            raised.append(job(start, stop))
            return 0

        if apart:
            run_unit(0, panels.tiles)
        else:
            threads.share_units(panels.tiles, run_unit, cost)
        if tally is not None and padded is not None:
            tally.cut(padded)
        return reduce(or_, raised, 0)

    def done(part: slice, arrays: list[Codes]) -> bool:
        """Some products, in these arrays; whether the way does for them."""
        span, begins = None, None if c is None else c[part]
        if begins is not None:
            numbers = begins if specials is None else np.where(np.isfinite(begins), begins, 0.0)
            span = tiling.extent(numbers, planned.partials)
            if not span.finite:
                return False
        factor, begins, flags_of_c = units.entering(way, planned, begins)
        if begins is not None:
            if not whole_tiles:
                arrays[2][...] = 0
            arrays[2][:, :rows, :columns] = begins
        found, up = [], 0
        for operand, x in zip(operands, arrays, strict=False):
            lying = operand.lying
            found.append(operand.read(x, lying._replace(first=part.start * lying.apart, grids=len(x))))
        if not all(x.finite for x in found):
            return False
        if not settled:
            up, spans = tiling.balanced(way, found)
            if not tiling.fits_tiles(way, planned, spans, span):
                return False
            if up:
                arrays[0] *= 2.0**up
                arrays[1] *= 2.0**-up
        if factor != 1.0:
            arrays[0][:, 0] *= factor
        if way.alike and first.bits is None:
            arrays[0][:, 1] = arrays[1][:, 1] = 1.0
        for some, x in zip(specials or (), arrays, strict=False):
            some.put(x[0])
        if straight:
            arrays += [codes[part], flags[part]]
        greatest = found[0].greatest * 2.0**up, found[1].greatest * 2.0**-up, 0.0 if span is None else 2.0**span.high
        a, b, before, values, raised_by = arrays
        low_c = tiling.low_of(way, span)
        panels = Panels(a, b, before, values, raised_by, rows, columns, c is not None, greatest, low_c, scales)
        raised = summed(panels, part.start * rows * columns)
        if generated.is_unusual(raised) or way.leaves(raised_by[:, :rows, :columns]):
            return False
        if how.fixed is not None:
            values, raised_by = values[:, :rows, :columns], raised_by[:, :rows, :columns]
            first_of_part = place._replace(first=place.first + part.start * rows * columns)
            rounded = units.leaving(way, planned, values, raised_by, flags_of_c, first_of_part, random, tally)
            codes[part], flags[part] = rounded
        elif not straight:
            codes[part], flags[part] = values[:, :rows, :columns], raised_by[:, :rows, :columns]
        return True

    def some(start: int, stop: int) -> int:
        try:
            room = rooms.pop()
        except IndexError:
            room = pools.borrow(wanted)
        arrays = pools.laid_out(room, wanted)
        todo = [slice(n * together, min((n + 1) * together, products)) for n in range(start, stop)]
        while todo:
            part = todo.pop()
            count = part.stop - part.start
            if done(part, [x[:count] for x in arrays]):
                continue
            if count > 1:  # each is judged by its own operands
                todo += [slice(n, n + 1) for n in range(part.start, part.stop)]
                continue
            codes[part], flags[part] = 0, 0  # whatever is there
            left.append(Span(part.start, part.stop))
        rooms.append(room)
        return 0

    if apart:
        threads.share_units(pieces, some, work)
    else:
        some(0, pieces)
    for room in rooms:
        pools.give_back(room)
    if sum(span.stop - span.start for span in left) == products:
        return None
    return Done(codes, flags, sorted(left))


def run(
    way: Way,
    planned: Program,
    a: Codes,
    b: Codes,
    c: Codes | None,
    place: Place,
    random: Random,
    into: tuple[Codes, Codes] | None = None,
    tally: Tally | None = None,
    scales: tuple[Codes, ...] = (),
    specials: tuple[Specials, Specials] | None = None,
) -> Done | None:
    """As `in_pieces`, of codes: a is (products, rows, k), b (products, k, columns)."""
    if way.joined is not None:
        planned = way.joined.planned
    if tally is not None:
        if planned.length % way.group:  # zeros that fill a turn up would count
            return None
        way = way.counting
    operands = operands_of(planned, a, b, way)
    if operands is None:
        return None
    return in_pieces(way, planned, operands, c, place, random, into, tally, scales, specials)
