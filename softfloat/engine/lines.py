"""Outputs in a line, each with operands of its own: which of them generated loops serve, and how these are fed.

The way is that of `tiling`. Codes are read some outputs and some of k at a time, so that numbers stay in the CPU's caches;
whether a piece's operands are finite and in range is known when it is done. What is not served is told, for the plain way.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from softfloat.engine import generated, pools, threads, tiling, units
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import (
    dots,
    sums,
)
from softfloat.engine.problems import Problem
from softfloat.engine.programs import Program
from softfloat.engine.tiling import Extent, Operand
from softfloat.engine.unit_ways import UnitWay
from softfloat.engine.ways import (
    Generated,
    Place,
    Random,
    Tally,
    Way,
    numbers_of,
)
from softfloat.formats import Format
from softfloat.kernels import spec

PIECE = 1 << 21  # bytes of an operand's numbers that are laid out at a time
RECORDED = 1 << 15  # of which the sums so far are kept
FEW_DRAWN = 24  # outputs that draw, of which the smallest vectors take less than a panel
_NOBODY: Codes = np.empty(0, np.int64)


class Done(NamedTuple):
    """Codes in the partials format, flags, and numbers of outputs that are not served."""

    codes: Codes
    flags: Codes
    left: Codes


class Span(NamedTuple):
    """Outputs start ... stop - 1."""

    start: int
    stop: int


def operand_of(codes: Codes, planned: Program, which: int, way: Way) -> Operand | None:
    """Codes (k, outputs) of an operand, read without a copy where they lie in order; None if the carrier does not hold their numbers."""
    source = way.source(planned, which, codes)
    if source is None:
        return None
    codes = source.codes
    if any(step % codes.itemsize or step < 0 for step in codes.strides):
        codes = np.ascontiguousarray(codes)
    (length, outputs), (k_step, n_step) = codes.shape, _steps(codes)
    reach = (length - 1) * k_step + (outputs - 1) * n_step + 1
    if (
        k_step > 1 and n_step > 1 and codes.size <= reach
    ):  # a chain's, which lie apart: their loop reads them one by one
        codes = np.ascontiguousarray(codes.T).T
        k_step, n_step = _steps(codes)
    lying = generated.Lying(0, k_step, n_step, 0, planned.order.size or length, outputs)
    return Operand(planned.formats[which], source._replace(codes=codes), lying, way.turns(planned), planned.order)


def _steps(codes: Codes) -> tuple[int, int]:
    """How far it is to the next k and the next output."""
    k_step, n_step = (x // codes.itemsize if n > 1 else 0 for x, n in zip(codes.strides, codes.shape, strict=True))
    return k_step, n_step


def _read(operand: Operand, start: int, stop: int, outputs: Span, panels: Codes) -> Extent:
    """Numbers for some outputs and some of k to panels; what they span."""
    lying, count = operand.lying, outputs.stop - outputs.start
    first, there = lying.first + outputs.start * lying.n_step, max(min(stop, lying.length) - start, 0)
    return operand.read(panels, lying._replace(first=first, start=start, length=there, outputs=count))


def _cleared(operand: Operand, outputs: Span) -> tuple[Codes, Operand]:
    """Which of some outputs have an operand that is not finite; and the operands of all of them, these replaced by 0."""
    (fmt, source, lying, *_), first = operand, operand.lying.first
    begin = outputs.start + (first // lying.n_step if lying.n_step else 0)
    codes = source.codes[:, begin : begin + outputs.stop - outputs.start].T.copy()
    finite: Any
    if source.reading in ("number", "table"):
        finite = np.isfinite(codes if source.reading == "number" else source.table[codes])
    else:
        finite = np.less_equal(codes & codes.dtype.type(fmt.sign_bit - 1), fmt.max_code)
    special: Codes = ~finite.all(axis=1)
    codes[special] = 0
    steps = 1, codes.shape[1]
    lying = lying._replace(first=-outputs.start * steps[1], k_step=steps[0], n_step=steps[1])
    return special, operand._replace(source=source._replace(codes=codes), lying=lying)


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
        if first.lying.n_step == 0 != second.lying.n_step:
            first, second = second, first
        self.first, self.second, self.length, self.count = first, second, first.turns, problem.a.shape[1]
        self.shared: Codes | None = None
        self.shared_extent: Extent | None = None
        self.draws = isinstance(way, Generated) and bool(way.stage.draws)
        """Whether sums are rounded stochastically."""
        self.in_pairs = isinstance(way, Generated) and not way.in_order
        """Whether a sum is all done at once."""
        if second.lying.k_step == 0 == second.lying.n_step and isinstance(way, Generated) and way.plainly_in_order:
            self._share(1)
            stays = not (way.stage.daz or way.stage.ftz) and holds(planned.sites[dots().RUNNING].format, first.format)
            assert self.shared is not None
            ones = ones or (tally is None and stays and bool(self.shared[0] == 1.0))
        if second.lying.n_step == 0 and not ones:
            self._share(self.length)
        self.ones = ones
        self.factor = units.entering(way, planned, None)[0]
        self.in_range = not begins and tiling.always_fits(way, planned)
        """Whether all finite operands are of a kind that this way serves."""
        self.lone = self.count == 1 and not self.in_pairs
        """Whether it is of one output, in every lane."""
        drawn = self.draws and tally is None and not self.in_pairs
        self.few = drawn and self.count <= FEW_DRAWN and (self.shared is None or ones)
        """Whether outputs are too few for the panels of others."""
        own = "few" if self.few else "own"
        layout = "lone" if self.lone else own if self.shared is None or ones else "shared"
        assert isinstance(way, Generated | UnitWay)
        order = {"order": "pairwise_of_numbers" if self.in_pairs else "add"} if ones else {}
        self.what = way.sum(layout, tally is not None, **order)
        """The description of the loop."""
        self.cells = int(self.what.cells)
        """Outputs of a panel."""
        # pieces: panels of outputs, and products
        most = PIECE // (way.planes * np.dtype(way.carrier).itemsize)
        products = min(most, max(most // 2, self.count * self.length // threads.get_num_threads()))
        self.panels = 1 if problem.cumulative else max(1, products // (self.cells * self.length))
        group, width = generated.TURNS if self.draws else way.group, 1 if self.lone else self.cells
        within = most // (min(self.panels, -(-self.count // self.cells)) * self.cells)
        step = RECORDED // width if problem.cumulative else self.length if self.in_pairs else within // group * group
        self.step = min(max(step, group), self.length)
        slots, of_operand = sums().SLOTS * self.cells, (way.planes, self.panels, self.step, width)
        self.wanted = [(self.panels, slots), (self.step * problem.cumulative, slots), of_operand, of_operand]
        """Shapes of states, of those that are kept, and of panels of both operands."""

    def _share(self, length: int) -> None:
        """The second operand, which all outputs have in common."""
        self.shared = np.empty((self.way.planes, 1, length, 1), self.way.carrier)
        self.shared_extent = _read(self.second, 0, length, Span(0, 1), self.shared)


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
    shape = (work.length, count) if problem.cumulative else (-(-count // work.cells) * work.cells,)
    whole = np.empty(shape, way.results.dtype), np.empty(shape, np.uint8)
    left = _pieces(work, start, *whole)
    values, flags = (x[..., :count] for x in whole)
    if way.compensates:  # sums that are not finite are not made up for as the method says
        left = np.union1d(left, np.flatnonzero((flags & spec.OVERFLOW).reshape(-1, count).any(axis=0)))
    values[..., left], flags[..., left] = 0, 0  # whatever is there
    if planned.accumulator.fixed is not None:
        place = Place(problem.index, 0, problem.column_stride)
        values, flags = units.leaving(way, planned, values, flags, flags_of_c, place, random, tally)
    return Done(values, flags, left)


def _pieces(work: _Work, start: Codes | None, values: Codes, flags: Codes) -> Codes:
    """All outputs, piece by piece; the numbers of those not served."""
    size, count = work.panels * work.cells, work.count
    left: list[Codes] = []
    rooms: list[Codes] = []  # that no thread is busy with
    wanted = tuple((shape, work.way.carrier) for shape in work.wanted)

    def some(first: int, stop: int) -> int:
        try:
            room = rooms.pop()
        except IndexError:
            room = pools.borrow(wanted)
        for number in range(first, stop):
            outputs = Span(number * size, min((number + 1) * size, count))
            c = None if start is None else start[outputs.start : outputs.stop]
            if not _piece(work, outputs, c, room, values, flags):
                special, finite, c = _without(work, outputs, c)
                mixed = special.any() and not special.all()
                if not (mixed and _piece(finite, outputs, c, room, values, flags)):
                    special[:] = True
                left.append(outputs.start + np.flatnonzero(special))
        rooms.append(room)
        return 0

    threads.share_units(-(-count // size), some, size * work.length)
    for room in rooms:
        pools.give_back(room)
    return np.sort(np.concatenate([_NOBODY, *left]))


def _without(work: _Work, outputs: Span, c: Codes | None) -> tuple[Codes, _Work, Codes | None]:
    """Some outputs without those that something not finite goes into: which these are, and operands and sums with 0 in its place."""
    work = copy(work)
    special, work.first = _cleared(work.first, outputs)
    if work.shared is None:
        other, work.second = _cleared(work.second, outputs)
        special |= other
    elif not (work.shared_extent is None or work.shared_extent.finite):
        special[:] = True
    if c is not None:
        special |= ~np.isfinite(c)
        c = np.where(special, 0.0, c)
    return special, work, c


def _piece(work: _Work, outputs: Span, c: Codes | None, room: Codes, values: Codes, flags: Codes) -> bool:
    """Some outputs, some of k at a time; whether their operands are of a kind that this way serves."""
    way, planned, what, records = work.way, work.planned, work.what, work.problem.cumulative
    count, stride, cells = outputs.stop - outputs.start, work.problem.column_stride, work.cells
    panels = -(-count // cells)
    padded, mine = panels * cells, slice(outputs.start, outputs.stop)
    tally = None if work.tally is None else Tally.room((padded,), way.carrier)
    told = {} if tally is None else tally._asdict()
    begins: Codes = np.zeros(padded, way.carrier)
    if c is not None:
        begins[:count] = units.entering(way, planned, c)[1]
    spans: list[list[Extent]] = []
    for start in range(0, work.length, work.step):
        stop = min(start + work.step, work.length)
        of_operand = way.planes, panels, stop - start, work.wanted[-1][-1]
        shapes = [(panels, work.wanted[0][1]), work.wanted[1], of_operand, of_operand]
        state, kept, a, b = pools.laid_out(room, tuple((shape, way.carrier) for shape in shapes))
        found = [_read(work.first, start, stop, outputs, a)]
        if work.shared is None:
            found.append(_read(work.second, start, stop, outputs, b))
        else:
            b = work.shared if work.ones else np.ascontiguousarray(work.shared[:, :, start:stop])
            found.append(work.shared_extent or found[0])
        spans.append(found)
        if not all(x.finite for x in found):
            return False
        if work.factor != 1.0:
            a *= work.factor
        if way.alike:
            a[1], b = 1.0, np.stack([b[0], np.ones_like(b[0])])
        if records:
            places = np.empty((stop - start, cells), values.dtype), np.empty((stop - start, cells), np.uint8)
        else:
            places = values[outputs.start :][:padded], flags[outputs.start :][:padded]
        arrays = {
            "a": a, "b": b, "c": begins, "state": state, "kept": kept, "numbers": numbers_of(way, planned), "written": way.written,
        } | told  # fmt: skip
        if records or stop == work.length:
            arrays |= dict(zip(("values", "flags"), places, strict=True))
        given = {
            "turns": stop - start, "begun": int(start > 0), "records": (stop - start) * records, "tiles": panels, "wide": what.lanes,
            "has_c": int(c is not None), "columns": count, "a_size": a.size // way.planes, "b_size": b.size // way.planes,
        } | way.flags  # fmt: skip
        if what.draws:
            begun = planned.begun.get(dots().RUNNING if isinstance(way, Generated) else dots().STORE, 0)
            first = work.problem.index + outputs.start * stride
            given |= generated.turns(begun + start // way.group * planned.apart, planned.apart, each=records)
            given |= way.address(Place(first, what.lanes * stride, stride), work.random)
        if work.draws:
            arrays |= way.rounding
        generated.Job(what, arrays, given)(0, panels)
        if records:
            values[start:stop, mine], flags[start:stop, mine] = (x[:, :count] for x in places)
    if work.tally is not None and tally is not None:
        for target, source in zip(work.tally, tally, strict=True):
            target[:, mine] = source[:, :count]
    begin = None if c is None else tiling.extent(c, planned.partials)
    return work.in_range or tiling.fits(way, planned, [tiling.united(x) for x in zip(*spans, strict=True)], begin)
