"""Many small matrix products under one program: read, summed and written some at a time, by generated loops."""

from __future__ import annotations

import math
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine import generated, threads, tiling, units
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import NO_TABLE
from softfloat.engine.lines import Span
from softfloat.engine.parameters import tiles
from softfloat.engine.pools import Pool
from softfloat.engine.programs import Program, arranged
from softfloat.engine.tiling import Extent
from softfloat.engine.ways import Generated, Panels, Place, Random, Tally, Way
from softfloat.formats import Format
from softfloat.kernels import spec

ROOM = 1 << 22
"""Bytes that products done at a time take, panels and sums: so many stay in the CPU's caches."""
SHARES = 4
"""Pieces for each thread, if there are several."""
MOST_CHAINS = 16
"""That are summed together, for whose random numbers there is room: more are each drawn for themselves."""
LONG = 1 << 26
"""Multiply-adds from which on a piece is shared among threads itself, and looked at whether it is still wanted."""


Spans = tuple[float, float, bool]
"""The least magnitude of numbers, but 0, and the greatest; whether all are finite."""


class Operand(NamedTuple):
    """All products' first or second operands: codes (products, rows, k) if it `stands`, or (products, k, columns)."""

    format: Format
    source: generated.Source
    stands: bool

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Products, outputs and k."""
        products, down, across = self.source.codes.shape
        return (products, down, across) if self.stands else (products, across, down)

    def lay_out(self, part: slice, panels: Codes) -> Spans:
        """Some products' numbers, to (products, planes, panels, k, size); the least, but 0, and the greatest, and whether all are finite."""
        codes = self.source.codes[part]
        products, down, across = codes.shape
        apart, of_down, of_across = (step // codes.itemsize for step in codes.strides)
        (k_step, n_step), (length, outputs) = (
            ((of_across, of_down), (across, down)) if self.stands else ((of_down, of_across), (down, across))
        )
        lying = generated.Lying(0, k_step, n_step, 0, length, outputs, products, apart)
        return self.source._replace(codes=codes).read(panels, lying)

    def extent(self, found: Spans) -> Extent:
        """What numbers span of which laying out told this."""
        return tiling.extent_of(*found, self.format)


class Scaled(NamedTuple):
    """Values of one product's operand, scales of so many bits of precision in them, and powers of two for alignment."""

    format: Format
    values: Codes
    powers: Codes
    bits: int
    stands: bool

    @property
    def sizes(self) -> tuple[int, int, int]:
        """As an `Operand` has them."""
        return 1, *(self.values.shape if self.stands else self.values.shape[::-1])

    def lay_out(self, part: slice, panels: Codes) -> Spans:
        """As an `Operand` does."""
        powers, values = (
            Operand(
                self.format,
                generated.Source("number", np.ascontiguousarray(x[np.newaxis]), NO_TABLE, 0.0, 0.0),
                self.stands,
            )
            for x in (self.powers, self.values)
        )
        powers.lay_out(part, panels[:, 1:])
        return values.lay_out(part, panels[:, :1])

    def extent(self, found: Spans) -> Extent:
        """As an `Operand` does."""
        return units.extent_with_scales(*found, self.format, self.bits)


def filled_up(x: Codes, axis: int, planned: Program, group: int, fill: float = 0.0) -> Codes:
    """Operands along k in the order of the sum, filled up to whole turns."""
    x, missing = x if planned.index is None else arranged(x, axis, planned, fill), -planned.length % group
    if not missing:
        return x
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, missing)
    return np.pad(x, widths)


def operands_of(planned: Program, a: Codes, b: Codes, way: Way) -> tuple[Operand, Operand] | None:
    """Codes a, (products, rows, k), and b, (products, k, columns); None if the carrier does not hold their numbers."""
    found = []
    for which, codes in enumerate((a, b)):
        steps = codes.strides[1:] if len(codes) == 1 else codes.strides  # one product has no next
        in_lines = min(steps) > 0 and codes.itemsize in codes.strides[1:]
        source = way.source(planned, which, codes if in_lines else np.ascontiguousarray(codes))
        if source is None:
            return None
        found.append(Operand(planned.formats[which], source, which == 0))
    return found[0], found[1]


def shapes_of(
    way: Way, rows: int, length: int, columns: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Of panels of a product's operands, and of its outputs in whole tiles."""
    height, width = tiles().ROWS, tiles().LANES[way.carrier]
    down, across = -(-rows // height), -(-columns // width)
    return (way.planes, down, length, height), (way.planes, across, length, width), (down * height, across * width)


class Arena:
    """Where products are done, some at a time: panels of both operands, sums before and after, of type `results`, flags.

    What is after has no place here if `results` is None. Sums before are zeros if none `begins`.
    """

    def __init__(
        self, carrier: type, shapes: tuple[tuple[int, ...], ...], count: int, begins: bool, results: type | None
    ) -> None:  # fmt: skip
        self.asked = carrier, shapes, count, begins, results
        (a, b, outputs), line = shapes, tiles().jit.CACHE_LINE
        wanted: list[tuple[tuple[int, ...], type]] = [
            ((count, *a), carrier),
            ((count, *b), carrier),
            ((count if begins else 1, *outputs), carrier),
        ]
        wanted += [] if results is None else [((count, *outputs), results), ((count, *outputs), np.uint8)]
        spaces = [-(-math.prod(x) * np.dtype(kind).itemsize // line) * line for x, kind in wanted]
        made: list[Codes] = []
        self.size, start = sum(spaces), 0
        buffer = tiling.on_lines((max(self.size, tiling.FEW),), np.uint8, np.empty)
        for (x, kind), space in zip(wanted, spaces, strict=True):
            made.append(buffer[start : start + math.prod(x) * np.dtype(kind).itemsize].view(kind).reshape(x))
            start += space
        made[2][...] = 0
        self.arrays = tuple(made)


_arenas = Pool(Arena)
"""Those that no call uses. Of sums before, the next user writes what the last one did: all, or none."""


class Done(NamedTuple):
    """Codes in the partials format, flags, products that go beyond what a way can do."""

    codes: Codes
    flags: Codes
    left: list[Span]


def in_pieces(
    way: Way,
    planned: Program,
    operands: tuple[Any, Any],
    c: Codes | None,
    place: Place,
    random: Random,
    into: tuple[Codes, Codes] | None = None,
    tally: Tally | None = None,
    segments: tuple[Any, ...] | None = None,
) -> Done | None:
    """What is done of these products, or None if all go beyond what the way can do.

    Operands are such as `Operand`; c has values, (products, rows, columns). The first product's outputs lie at `place`, and those of the others
    follow. Codes and flags go `into` these arrays, of the last shape, if there are any. A `tally` is filled, of one product. `segments` as
    `Panels` has them, of a way that joins these.
    """
    first, second = operands
    (products, rows, length), columns = first.sizes, second.sizes[1]
    shape, coded = (products, rows, columns), way.results
    codes, flags = into or (np.empty(shape, planned.partials.dtype), np.empty(shape, np.uint8))
    floor, how = tiles(), planned.accumulator
    whole_tiles = rows % floor.ROWS == 0 == columns % floor.LANES[way.carrier]
    straight = coded is not None and whole_tiles and codes.flags.c_contiguous and flags.flags.c_contiguous
    shapes, item = shapes_of(way, rows, length, columns), np.dtype(way.carrier).itemsize
    size = sum(bytes_of * math.prod(x) for bytes_of, x in zip((item, item, 2 * item + 1), shapes, strict=True))
    workers = threads.get_num_threads()
    together = min(max(1, ROOM // size), products if workers == 1 else max(1, products // (SHARES * workers)))
    pieces = -(-products // together)
    together = -(-products // max(pieces, 1))  # of one size, or nearly
    work = together * rows * length * columns
    apart = work <= LONG and (workers == 1 or pieces >= 2 * workers)
    cost = length * floor.ROWS * floor.LANES[way.carrier]
    settled = c is None and isinstance(first, Operand) and tiling.always_fits(way, planned)
    left: list[Span] = []
    arenas: list[Arena] = []  # that no thread is busy with

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
            span = tiling.extent(begins, planned.partials)
            if not span.finite:
                return False
        factor, begins, flags_of_c = units.entering(way, planned, begins)
        if begins is not None:
            arrays[2][:, :rows, :columns] = begins
        found = [first.lay_out(part, arrays[0]), second.lay_out(part, arrays[1])]
        if not (found[0][2] and found[1][2]):
            return False
        up = 0
        if not settled:
            up, spans = tiling.balanced(way, [first.extent(found[0]), second.extent(found[1])])
            if not tiling.fits_tiles(way, planned, spans, span):
                return False
            if up:
                arrays[0] *= 2.0**up
                arrays[1] *= 2.0**-up
        if factor != 1.0:
            arrays[0][:, 0] *= factor
        if way.alike and isinstance(first, Operand):
            arrays[0][:, 1] = arrays[1][:, 1] = 1.0
        if coded is not None and straight:
            arrays += [codes[part].view(coded), flags[part]]
        greatest = found[0][1] * 2.0**up, found[1][1] * 2.0**-up, 0.0 if span is None else 2.0**span.high
        a, b, before, values, raised_by = arrays
        low_c = tiling.low_of(way, span)
        panels = Panels(a, b, before, values, raised_by, rows, columns, c is not None, greatest, low_c, segments)
        raised = summed(panels, part.start * rows * columns)
        if generated.is_unusual(raised) or way.leaves(raised_by[:, :rows, :columns]):
            return False
        if how.fixed is not None:
            values, raised_by = values[:, :rows, :columns], raised_by[:, :rows, :columns]
            rounded = units.leaving(way, planned, values, raised_by, flags_of_c, place, random, tally)
            codes[part], flags[part] = rounded
        elif not straight:
            _write(way, planned, values, raised_by, codes[part], flags[part], raised)
        elif raised != spec.INEXACT:
            tiling.put_right(way, planned, codes[part], flags[part], raised)
        return True

    def some(start: int, stop: int) -> int:
        try:
            arena = arenas.pop()
        except IndexError:
            kept = None if straight else coded or way.carrier
            arena = _arenas.borrow(way.carrier, shapes, together, c is not None, kept)
        todo = [slice(n * together, min((n + 1) * together, products)) for n in range(start, stop)]
        while todo:
            part = todo.pop()
            count = part.stop - part.start
            if done(part, [x[:count] for x in arena.arrays] if count < together else list(arena.arrays)):
                continue
            if count > 1:  # each is judged by its own operands
                todo += [slice(n, n + 1) for n in range(part.start, part.stop)]
                continue
            codes[part], flags[part] = 0, 0  # whatever is there
            left.append(Span(part.start, part.stop))
        arenas.append(arena)
        return 0

    if apart:
        threads.share_units(pieces, some, work)
    else:
        some(0, pieces)
    for arena in arenas:
        _arenas.give_back(arena)
    if sum(span.stop - span.start for span in left) == products:
        return None
    return Done(codes, flags, sorted(left))


def _write(way: Way, planned: Program, values: Codes, raised: Codes, codes: Codes, flags: Codes, seen: int) -> None:
    """Outputs out of tiles to their places; `seen` are the flags of all."""
    rows, columns = codes.shape[1:]
    flags[...] = raised[:, :rows, :columns]
    if not way.results:
        codes[...], _ = tiling.coded(way, planned, values[:, :rows, :columns], flags)
        return
    codes[...] = values.view(codes.dtype)[:, :rows, :columns]
    if seen != spec.INEXACT:
        tiling.put_right(way, planned, codes, flags, seen)


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
) -> Done | None:
    """As `in_pieces`, of codes: a is (products, rows, k), b (products, k, columns)."""
    if tally is not None:
        if planned.length % way.group:  # zeros that fill a turn up would count
            return None
        way = way.counting
    operands = operands_of(planned, filled_up(a, 2, planned, way.group), filled_up(b, 1, planned, way.group), way)
    if operands is None:
        return None
    return in_pieces(way, planned, operands, c, place, random, into, tally)


def run_chains(
    way: Generated, planned: Program, a: Codes, b: Codes, chains: int, place: Place, random: Random
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags) of chains that draw, (chains, rows, columns), of codes a, (rows, k), and b, (k, columns).

    `planned` is the program of the first, the longest. Random numbers are drawn once for all of them. None if this does not serve.
    """
    (rows, length), columns, floor = a.shape, b.shape[1], tiles()
    if not 1 < chains <= min(MOST_CHAINS, length):
        return None
    missing = planned.length * chains - length
    first = np.pad(a, ((0, 0), (0, missing))).reshape(rows, planned.length, chains).transpose(2, 0, 1)
    second = np.pad(b, ((0, missing), (0, 0))).reshape(planned.length, chains, columns).transpose(1, 0, 2)
    operands = operands_of(planned, first, second, way)
    if operands is None:
        return None
    shapes = shapes_of(way, rows, planned.length, columns)
    of_a, of_b, begins, values, raised = Arena(way.carrier, shapes, chains, False, way.results or way.carrier).arrays
    both = zip(operands, (of_a, of_b), strict=True)
    spans = [operand.extent(operand.lay_out(slice(None), x)) for operand, x in both]
    if not tiling.fits_tiles(way, planned, spans, None):
        return None
    panels = Panels(of_a, of_b, begins, values, raised, rows, columns, False)
    job, seen = way.grids(planned, panels, place, random, None, chains, length), list[int]()

    def work(start: int, stop: int) -> int:
        state = generated.room(job.what, chains)
        seen.append(job(start, stop, {"state": generated.address(state)}))
        return 0

    threads.share_units(panels.tiles // chains, work, length * floor.ROWS * floor.LANES[way.carrier])
    shape = chains, rows, columns
    codes, flags = np.empty(shape, planned.partials.dtype), np.empty(shape, np.uint8)
    _write(way, planned, values, raised, codes, flags, reduce(or_, seen, 0))
    return codes, flags
