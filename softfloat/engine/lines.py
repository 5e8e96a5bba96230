"""Outputs in a line, each with operands of its own: which of them generated loops serve, and how these are fed.

The way is that of `tiling`. Codes are read some outputs and some of k at a time, so that numbers stay in the CPU's caches;
whether a piece's operands are finite and in range is known when it is done. What is not served is told, for the plain way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from softfloat.engine import elementwise, generated, threads, tiling, unit_ways, units
from softfloat.engine.arguments import Codes
from softfloat.engine.draws import grid_bits
from softfloat.engine.parameters import (
    dots,
    orders,
    steps,
    sums,
    tiles,
)
from softfloat.engine.pools import Pool
from softfloat.engine.problems import Problem
from softfloat.engine.programs import Program
from softfloat.engine.tiling import Extent
from softfloat.engine.unit_ways import UnitWay
from softfloat.engine.ways import (
    Generated,
    Place,
    Random,
    Tally,
    Way,
    nan_flags_of,
    numbers_of,
)
from softfloat.formats import Format

PIECE = 1 << 18  # products done at a time, of numbers; of codes twice as many
RECORDED = 1 << 15  # of which the sums so far are kept
FEW_DRAWN = 24  # outputs that draw, of which the smallest vectors take less than a panel
_IN_ORDER: Codes = np.empty(0, np.int64)


class Done(NamedTuple):
    """Codes in the partials format, flags, and numbers of outputs that are not served."""

    codes: Codes
    flags: Codes
    left: Codes


class Span(NamedTuple):
    """Outputs start ... stop - 1."""

    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Operand:
    """Codes (k, outputs), of outputs from `origin` on, and how they are read."""

    format: Format
    source: generated.Source
    origin: int = 0

    @cached_property
    def steps(self) -> tuple[int, int]:
        """How far it is to the next k and the next output."""
        codes = self.source.codes
        down, across = (
            x // codes.itemsize if size > 1 else 0 for x, size in zip(codes.strides, codes.shape, strict=True)
        )
        return down, across

    def gather(self, index: Codes, start: int, stop: int, outputs: Span, panels: Codes) -> Extent:
        """Numbers for some outputs and some of k, or codes as they are, to panels; what they span."""
        first = (outputs.start - self.origin) * self.steps[1]
        lying = generated.Lying(first, *self.steps, start, stop - start, outputs.stop - outputs.start)
        return tiling.extent_of(*self.source.read(panels, lying, index), self.format)

    def cleared(self, outputs: Span) -> tuple[Codes, Operand]:
        """Which of some outputs have an operand that is not finite; and the operands of all of them, these replaced by 0."""
        reading, table = self.source.reading, self.source.table
        codes = self.source.codes[:, outputs.start - self.origin : outputs.stop - self.origin].T.copy()
        finite: Any
        if reading in ("number", "table"):
            finite = np.isfinite(codes if reading == "number" else table[codes])
        else:
            finite = np.less_equal(codes & codes.dtype.type(self.format.sign_bit - 1), self.format.max_code)
        special: Codes = ~finite.all(axis=1)
        codes[special] = 0
        return special, Operand(self.format, self.source._replace(codes=codes.T), outputs.start)


def operand_of(codes: Codes, planned: Program, which: int, way: Way) -> Operand | None:
    """Codes (k, outputs) of an operand, read without a copy where they lie in order; None if the carrier does not hold their numbers."""
    source = way.source(planned, which, codes)
    if source is None:
        return None
    codes = source.codes
    if any(step % codes.itemsize or step < 0 for step in codes.strides):
        codes = np.ascontiguousarray(codes)
    found = Operand(planned.formats[which], source._replace(codes=codes))
    k_step, step = found.steps
    reach = (codes.shape[0] - 1) * k_step + (codes.shape[1] - 1) * step + 1
    if k_step > 1 and step > 1 and codes.size <= reach:  # a chain's, which lie apart: their loop reads them one by one
        return Operand(found.format, source._replace(codes=np.ascontiguousarray(codes.T).T))
    return found


def holds(fmt: Format, other: Format) -> bool:
    """Whether every value of the other format is one of this, subnormals, infinities and NaN included."""
    fine = fmt.p >= other.p and fmt.emin - fmt.mantissa_bits <= other.emin - other.mantissa_bits
    plain = fmt.subnormals and fmt.signed and bool(fmt.signed_zero and fmt.infinities) and fmt.has_nan
    return fine and plain and fmt.max >= other.max


class _Work:
    """What all pieces of a call share: where counts of all outputs go, if they are wanted; what numbers of the first operand are multiplied by."""

    def __init__(
        self, problem: Problem, planned: Program, way: Way, operands: list[Operand], begins: bool, random: Random, tally: Tally | None, ones: bool
    ) -> None:  # fmt: skip
        self.problem, self.planned, self.way, self.random, self.tally = problem, planned, way, random, tally
        first, second = operands
        if first.steps[1] == 0 and second.steps[1] != 0:
            first, second = second, first
        self.first, self.second, self.index = first, second, _index(planned, way.group)
        self.shared: Codes | None = None
        self.shared_extent: Extent | None = None
        if second.steps == (0, 0) and isinstance(way, Generated) and way.plainly_in_order:
            self._share(_IN_ORDER, 1)
            stays = not (way.stage.daz or way.stage.ftz) and holds(planned.sites[dots().RUNNING].format, first.format)
            assert self.shared is not None
            ones = ones or (tally is None and stays and bool(self.shared[0] == 1.0))
        if second.steps[1] == 0 and not ones:
            self._share(self.index, self.length)
        self.ones = ones
        self.factor = units.entering(way, planned, None)[0]
        self.in_range = not begins and tiling.always_fits(way, planned)
        """Whether all finite operands are of a kind that this way serves."""
        shape = (self.length, self.count) if problem.cumulative else (self.count,)
        self.errors: Codes | None = np.zeros(shape, way.carrier) if way.compensates else None
        """Where compensated sums leave what they have lost."""

    def _share(self, index: Codes, length: int) -> None:
        """The second operand, which all outputs have in common."""
        self.shared = np.empty((self.way.planes, 1, length, 1), self.way.carrier)
        self.shared_extent = self.second.gather(index, 0, length, Span(0, 1), self.shared)

    @property
    def length(self) -> int:
        """Products of an output, of whole turns."""
        return self.index.size or self.planned.length

    @property
    def in_pairs(self) -> bool:
        """Whether a sum is all done at once."""
        return isinstance(self.way, Generated) and not self.way.in_order

    @property
    def count(self) -> int:
        """Outputs of the call."""
        return int(self.problem.a.shape[1])

    @property
    def lone(self) -> bool:
        """Whether it is of one output, in every lane."""
        return self.count == 1 and not self.in_pairs

    @property
    def few(self) -> bool:
        """Whether outputs are too few for the panels of others."""
        drawn = self.draws and self.tally is None and not self.in_pairs
        return drawn and self.count <= FEW_DRAWN and (self.shared is None or self.ones)

    @property
    def draws(self) -> bool:
        """Whether sums are rounded stochastically."""
        return isinstance(self.way, Generated) and bool(self.way.stage.draws)

    @property
    def cells(self) -> int:
        """Outputs of a panel."""
        floor = tiles()
        return int(floor.LONE_LANES if self.lone or self.few else floor.ROWS * floor.LANES[self.way.carrier])

    @property
    def slots(self) -> int:
        """What the state of a panel holds for each output."""
        floor = steps()
        if isinstance(self.way, Generated):
            return int(sums().SLOTS)
        draws = isinstance(self.way, UnitWay) and unit_ways.draws(self.way.unit)
        return int(floor.SLOTS if self.tally is None and not draws else floor.COUNTED_SLOTS)

    @property
    def piece(self) -> int:
        """Products done at a time, while there are enough for all threads."""
        return PIECE << bool(self.reading)

    @property
    def what(self) -> Any:
        """The description of the loop."""
        way, counts = self.way, self.tally is not None
        assert isinstance(way, Generated | UnitWay)
        own = "few" if self.few else "own"
        layout = "lone" if self.lone else own if self.shared is None or self.ones else "shared"
        if isinstance(way, UnitWay):
            return way.sum(layout, counts)
        return way.sum(layout, counts, self.reading, ("pairwise_of_numbers" if self.in_pairs else "add") * self.ones)

    @property
    def reading(self) -> str:
        """How loops read panels that hold codes, or "" if these hold numbers."""
        serves = (
            isinstance(self.way, Generated) and not (self.in_pairs or self.lone or self.draws) and self.tally is None
        )
        same = self.shared is not None or self.first.source.reading == self.second.source.reading
        return self.first.source.reading if serves and same and self.first.source.reading in sums().INFINITIES else ""


def serves(way: Way | None, planned: Program, cumulative: bool, counting: bool = False) -> TypeGuard[Way]:
    """Whether there is such a loop for this program's way."""
    if way is None or (counting and cumulative):
        return False
    if counting and planned.length % way.group:  # zeros that fill a turn up would count
        return False
    one_by_one = (isinstance(way, Generated) and way.in_order) or (
        isinstance(way, UnitWay) and way.unit.kind == "fixed"
    )
    return not cumulative or one_by_one


def run(
    problem: Problem, planned: Program, way: Way, start: Codes | None, random: Random, tally: Tally | None = None, ones: bool = False
) -> Done | None:  # fmt: skip
    """What is done of a problem of paired operands, or None if no output is; `start` has the values of c.

    Of cumulative sums codes and flags are (k, outputs). A `tally`, of arrays (3, outputs) and (2, outputs), is filled. Of `ones` numbers of the
    first operand are summed as they are.
    """
    if tally is not None:
        way = way.counting
    operands = [operand_of(x, planned, which, way) for which, x in enumerate((problem.a, problem.b))]
    served = [x for x in operands if x is not None]
    count = problem.a.shape[1]
    if len(served) < 2 or not count:
        return None
    work = _Work(problem, planned, way, served, start is not None, random, tally, ones)
    _, _, flags_of_c = units.entering(way, planned, start)
    errors = work.errors
    shape = (work.length, count) if problem.cumulative else (count,)
    coded = way.results is not None and not way.compensates
    values, flags = np.empty(shape, way.results if coded else way.carrier), np.empty(shape, np.uint8)
    left = _pieces(work, start, values, flags)
    if errors is not None:  # sums that are not finite are not made up for as the method says
        wrong = ~(np.isfinite(values) & np.isfinite(errors)).reshape(-1, count).all(axis=0)
        left = np.union1d(left, np.flatnonzero(wrong))
        errors[..., left] = 0.0
    values[..., left], flags[..., left] = 0, 0  # whatever is there
    if coded:
        made: Codes = values.view(planned.partials.dtype)
        tiling.put_right(way, planned, made, flags, int(np.bitwise_or.reduce(flags, axis=None)))
        return Done(made, flags, left)
    place = Place(problem.index, 0, problem.column_stride)
    codes, flags = units.leaving(way, planned, values, flags, flags_of_c, place, random, tally)
    if errors is not None and planned.accumulator.compensation == "neumaier":
        codes, more = _with_errors(way, planned, codes, errors, place, random)
        flags |= more
    return Done(codes, flags, left)


def _with_errors(
    way: Way, planned: Program, codes: Codes, errors: Codes, place: Place, random: Random
) -> tuple[Codes, Codes]:
    """Sums, or all sums so far, and the errors that are to be added to them; stochastically by the random numbers that come next."""
    if not way.site.width:
        return elementwise.add(
            codes, tiling.codes_of(errors, planned.partials, way.site), planned.partials, way.site.rule
        )
    site, fmt, shape = way.site, planned.partials, (errors.size // errors.shape[-1], errors.shape[-1])
    lengths = np.arange(1, planned.length + 1) if errors.ndim > 1 else np.array([planned.length])
    steps = lengths * orders().ADDITIONS["neumaier"]
    bits = grid_bits(shape, place, dots().RUNNING, steps, site.width, random.key, random.stream).reshape(-1)
    pair = [codes.reshape(-1), tiling.codes_of(errors, fmt, site).reshape(-1)]
    sums, raised = elementwise.settled_by(bits, site.width, "add", pair, fmt.spec, fmt, site.rule)
    return sums.reshape(codes.shape), raised.reshape(codes.shape)


def _index(planned: Program, group: int) -> Codes:
    """Which product comes where, of whole turns; -1: none. Empty: as they are."""
    index = _IN_ORDER if planned.index is None else planned.index
    missing = -planned.length % group
    if not missing:
        return index
    places = index if index.size else np.arange(planned.length)
    return np.concatenate([places, np.full(missing, -1)])


def _pieces(work: _Work, start: Codes | None, values: Codes, flags: Codes) -> Codes:
    """All outputs, piece by piece; the numbers of those not served."""
    cells, length, count = work.cells, work.length, values.shape[-1]
    piece = _summed if values.ndim == 1 else _recorded
    products = max(PIECE, min(work.piece, count * length // threads.get_num_threads()))
    size = cells * (max(1, products // (cells * length)) if values.ndim == 1 else 1)
    left: list[Codes] = []
    rooms: list[_Room] = []  # that no thread is busy with

    def some(first: int, stop: int) -> int:
        try:
            room = rooms.pop()
        except IndexError:
            room = _rooms.borrow(work.way.carrier, bool(work.reading))
        for number in range(first, stop):
            outputs = Span(number * size, min((number + 1) * size, count))
            c = None if start is None else start[outputs.start : outputs.stop]
            if not piece(_State(work, outputs, c, room, values.ndim > 1), values, flags):
                special, finite, c = _without(work, outputs, c)
                mixed = special.any() and not special.all()
                if not (mixed and piece(_State(finite, outputs, c, room, values.ndim > 1), values, flags)):
                    special[:] = True
                left.append(outputs.start + np.flatnonzero(special))
        rooms.append(room)
        return 0

    threads.share_units(-(-count // size), some, size * length)
    for room in rooms:
        room.forget("kept")
        _rooms.give_back(room)
    return np.sort(np.concatenate([_IN_ORDER, *left]))


def _without(work: _Work, outputs: Span, c: Codes | None) -> tuple[Codes, _Work, Codes | None]:
    """Some outputs without those that something not finite goes into: which these are, and operands and sums with 0 in its place."""
    work = copy(work)
    special, work.first = work.first.cleared(outputs)
    if work.shared is None:
        other, work.second = work.second.cleared(outputs)
        special |= other
    elif not (work.shared_extent is None or work.shared_extent.finite):
        special[:] = True
    if c is not None:
        special |= ~np.isfinite(c)
        c = np.where(special, 0.0, c)
    return special, work, c


class _Room:
    """Arrays that one piece after the other uses: new ones would cost as much as the arithmetic. Numbers, or codes if these are `read` in loops."""

    def __init__(self, carrier: type, read: bool) -> None:
        self.asked = carrier, read
        self._arrays: dict[str, Codes] = {}

    def array(
        self, name: str, shape: tuple[int, ...], make: Callable[..., Codes] = np.zeros, kind: type | None = None
    ) -> Codes:
        """The array of this name, with whatever it holds; zeros at first, or what else it is made of."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = make(size, kind or self.asked[0])
        return self._arrays[name][:size].reshape(shape)

    def forget(self, name: str) -> None:
        """An array that the next one to use it wants to be zeros."""
        self._arrays.pop(name, None)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(x.nbytes for x in self._arrays.values())


_rooms = Pool(_Room)
"""Those that no call uses."""


class _State:
    """Panels of some outputs on their way, and what their operands span so far."""

    def __init__(self, work: _Work, outputs: Span, c: Codes | None, room: _Room, records: bool) -> None:
        floor, self.work, self.outputs, self.c, self.room = steps(), work, outputs, c, room
        cells, carrier = work.cells, work.way.carrier
        count = outputs.stop - outputs.start
        self.panels = -(-count // cells)
        state: Codes = np.zeros((self.panels, work.slots, cells), carrier)
        if work.tally is not None:
            state[:, floor.LEAST], state[:, floor.GREATEST] = np.inf, -np.inf
        if c is not None:
            sums: Codes = np.zeros(self.panels * cells, carrier)
            sums[:count] = units.entering(work.way, work.planned, c)[1]
            state[:, floor.VALUE] = sums.reshape(self.panels, cells)
        state[-1, floor.INEXACT, count - (self.panels - 1) * cells :] = 1.0  # cells of no output: nothing to watch for
        self.flat = state.reshape(self.panels, -1)
        self.records = records
        self.spans: list[tuple[Extent, Extent]] = []

    def advance(self, start: int, stop: int, kept: Codes, told: dict[str, Codes]) -> bool:
        """Products start ... stop - 1, or False if an operand is not finite; what these arrays are for is told of the state, or of all kept ones."""
        work, way = self.work, self.work.way
        read = 1 if work.lone else work.cells
        shape = way.planes, self.panels, stop - start, read
        kind = np.uint16 if work.reading else None
        a = self.room.array("a", shape, np.empty, kind)
        spans = [work.first.gather(work.index, start, stop, self.outputs, a)]
        if work.shared is None:
            b = self.room.array("b", shape, np.empty, kind)
            spans.append(work.second.gather(work.index, start, stop, self.outputs, b))
        else:
            b = work.shared if work.ones else np.ascontiguousarray(work.shared[:, :, start:stop])
            spans.append(work.shared_extent or spans[0])
        self.spans.append((spans[0], spans[1]))
        if not all(x.finite for x in spans):
            return False
        if work.factor != 1.0:
            a *= work.factor
        if way.alike:
            a[1], b = 1.0, np.stack([b[0], np.ones_like(b[0])])
        self._loop(start, a, b, kept, told)
        return True

    def _loop(self, start: int, a: Codes, b: Codes, kept: Codes, told: dict[str, Codes]) -> None:
        """Products from `start` on."""
        work, way = self.work, self.work.way
        what, planned, stride = work.what, work.planned, work.problem.column_stride
        arrays = {"a": a, "b": b, "state": self.flat, "kept": kept, "numbers": numbers_of(way, planned)} | told
        if work.in_pairs:  # which add c in the end
            arrays["c"] = np.ascontiguousarray(self.flat.reshape(self.panels, work.slots, work.cells)[:, steps().VALUE])
        given = {
            "turns": a.shape[2], "slots": work.slots, "records": a.shape[2] * self.records, "tiles": self.panels, "wide": what.lanes,
            "nan_flags": nan_flags_of(way), "has_c": int(self.c is not None), "rows": self.panels * what.rows, "columns": what.lanes,
            "a_size": a.size // way.planes, "b_size": b.size // way.planes,
        }  # fmt: skip
        if what.draws:
            begun = planned.begun.get(dots().RUNNING if isinstance(way, Generated) else dots().STORE, 0)
            first = work.problem.index + self.outputs.start * stride
            given |= generated.turns(begun + start // way.group * planned.apart, planned.apart, each=self.records)
            given |= way.address(Place(first, what.lanes * stride, stride), work.random)
        if work.draws:
            arrays |= way.rounding
        generated.Job(what, arrays, given)(0, self.panels)

    def fits(self) -> bool:
        """Whether all operands so far, which are finite, are of a kind that this way serves."""
        if self.work.in_range:
            return True
        way, planned = self.work.way, self.work.planned
        start, spans = None if self.c is None else tiling.extent(self.c, planned.partials), _joined(self.spans)
        return tiling.fits(way, planned, spans, start)


def _summed(state: _State, values: Codes, flags: Codes) -> bool:
    """Some outputs; whether their operands are of a kind that this way serves."""
    work, outputs = state.work, state.outputs
    way, length = work.way, work.length
    group = generated.TURNS if work.draws else way.group
    step = length if work.in_pairs else max(work.piece // (state.panels * work.cells) // group, 1) * group
    cells, count, mine = work.cells, outputs.stop - outputs.start, slice(outputs.start, outputs.stop)
    padded = state.panels * cells
    places = [x[mine] if count == padded else np.empty(padded, x.dtype) for x in (values, flags)]
    tally = None if work.tally is None else Tally.room((padded,), way.carrier)
    told = dict(zip(("values", "flags"), places, strict=True)) | ({} if tally is None else tally._asdict())
    for k in range(0, length, step):
        stop = min(k + step, length)
        if not state.advance(k, stop, state.flat, told if stop == length else {}):
            return False
    if count < padded:
        values[mine], flags[mine] = (x[:count] for x in places)
    if work.tally is not None and tally is not None:
        for target, source in zip(work.tally, tally, strict=True):
            target[:, mine] = source[:, :count]
    if work.errors is not None:
        lost = state.flat.reshape(state.panels, work.slots, cells)[:, orders().ERRORS]
        work.errors[outputs.start : outputs.stop] = lost.reshape(-1)[:count]
    return state.fits()


def _recorded(state: _State, values: Codes, flags: Codes) -> bool:
    """`_summed` of the first 1, 2, 3 ... products, for one panel of outputs."""
    work, outputs = state.work, state.outputs
    length, count = work.length, outputs.stop - outputs.start
    step = max(RECORDED // (1 if work.lone else work.cells), 1)
    for k in range(0, length, step):
        stop = min(k + step, length)
        kept, shape = state.room.array("kept", (stop - k, work.slots * work.cells)), (stop - k, work.cells)
        told = {"values": np.empty(shape, values.dtype), "flags": np.empty(shape, np.uint8)}
        if not state.advance(k, stop, kept, told):
            return False
        values[k:stop, outputs.start : outputs.stop] = told["values"][:, :count]
        flags[k:stop, outputs.start : outputs.stop] = told["flags"][:, :count]
        if work.errors is not None:
            lost = kept.reshape(stop - k, work.slots, -1)[:, orders().ERRORS]
            work.errors[k:stop, outputs.start : outputs.stop] = lost[:, :count]
    return state.fits()


def _joined(spans: list[tuple[Extent, Extent]]) -> list[Extent]:
    """What both operands span in all."""
    return [
        Extent(
            min((x.low for x in each if not x.empty), default=0),
            max((x.high for x in each if not x.empty), default=0),
            all(x.finite for x in each),
            all(x.empty for x in each),
        )
        for each in zip(*spans, strict=True)
    ]
