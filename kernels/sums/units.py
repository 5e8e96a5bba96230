"""Sums of dot-product units: the turns that `units` and `counted_units` write, of all rows of a tile in registers.

Turns are watched until every output is inexact, unless additions are counted: these look always. What 16 random bits of a store leave open is
done once more with all of them. Some turns of exact sums are tried quickly, and done again with care if a bit may have been lost: none is
where all terms are multiples of some bit, and no sum reaches 53 bits above it. Products are multiples of the least of their operands' lowest
bits; a running sum is one of the lowest bit so far, for rounding only takes bits away, and, being a float32, of 2^-23 of its power of two.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from .. import units
from ..accumulate import STORE
from ..counted_units import Counted, turns_at_once
from ..exact_units import EXTREMES, cuts, exact_unit_step, extremes_of, is_quick, quick_exact_step
from ..fast import has_feature
from ..steps import (
    COUNTED_SLOTS,
    COUNTS,
    EXPONENT64,
    GREATEST,
    HALF_LARGEST,
    HALF_NORMAL,
    INEXACT,
    INVALID,
    LARGEST_SO_FAR,
    LEAST,
    OVERFLOW,
    SMALLEST,
    UNSETTLED,
    VALUE,
    Numbers,
)
from ..units import LEAD, PART, PER_GRID, TOTAL, UnitNumbers, Watch, aligned_phases, slots_of
from ..vectors import LANES, Vector
from . import noise, segments
from .description import Join
from .language import BYTE, DOUBLE, LONG, SINGLE, WORD, Code, Int
from .layouts import LAYOUTS
from .loop import ADDRESS, SLOTS, Driver, Maker, Seen

WATCH = 32
"""Products, at most, between two looks whether all outputs are inexact; these are twice as many each time."""
TOGETHER = 4
"""Rows of a tile that are looked at side by side, and without vectors of 512 bits any: what is noted of more is not kept in registers."""
FRACTION = 2.0**-16  # what the last of 16 random bits is worth
TRIED = 256
"""Products, at most, that are tried quickly at a time."""
SPANNED = 16
"""Products, at least, whose operands are looked at together: of few the least of both rarely meet."""
BITS = 2.0**52  # of float64, above the lowest
BITS_BELOW = 2.0**-23  # a power of two, of float32


MAKERS = units.MAKERS | {"exact": exact_unit_step}


def spanned(unit):
    """Products whose operands' spans are told apart, whole turns; 0 where no turn is tried quickly."""
    return -(-SPANNED // unit.group) * unit.group if is_quick(unit) else 0


class UnitSum(NamedTuple):
    """A unit's turn, in phases or not, whether additions are counted, and how operands and outputs lie. `of_nan`: overflows are NaN."""

    unit: NamedTuple
    phased: bool
    counts: bool
    of_nan: bool
    layout: str
    rows: int
    lanes: int
    joins: Join | None = None
    """As `Sum` has it."""

    @property
    def cells(self):
        """Outputs of a tile."""
        return self.rows * self.lanes

    @property
    def draws(self):
        """Whether sums are stored stochastically."""
        return getattr(self.unit, "stored", "") == "drawn"

    @property
    def single(self):
        """Whether sums are float32."""
        return self.unit.kind == "pairs" or getattr(self.unit, "single", False)

    @property
    def shortens(self):
        """Whether the last block has only the terms that there are: zeros in place of the others would change nothing."""
        return self.unit.kind == "aligned" and self.single and (self.phased or self.unit.term > 1)


class Turn(Seen):
    """What steps see of a turn: operands, random numbers, numbers of the call. `row` is the one being written, of `rows`."""

    def __init__(self, code, maker, places, known, rows, first, bits):
        self.code, self.rows, self.row, self._bits = code, len(rows), 0, bits
        self._maker, self._places, self._known, self._rows, self._first = maker, places, known, rows, first
        self.fuses = has_feature("fma")
        self.directed = has_feature("avx512f") and code.lanes == LANES[maker.carrier]

    def _operand(self, which, product, plane):
        code, strides = self.code, self._maker.strides["ab".index(which)]
        where = (self._first + product) * strides.product + self._rows[self.row] * strides.row
        place = code.at(self._places[which, plane], where)
        return code.load(place) if strides.column and code.lanes > 1 else code.splat(code.get(place))

    def a(self, row, product=0, plane=0):
        """The numbers of a row for a product of the turn; `plane` counts further arrays beside the values."""
        self.row = row
        return self._operand("a", product, plane)

    def b(self, product=0, plane=0):
        """Those of the other operand."""
        return self._operand("b", product, plane)

    def noise(self, row):
        """A random number for every output of a row, or its first 16 bits, as the code that is being written takes them."""
        turn, code = self._first // self._maker.sum.unit.group, self.code
        where = turn * self._maker.sum.cells + self._rows[row] * code.lanes
        if self._bits:
            return code.load(code.as_words(self._places["noise"]), where).long()
        return code.load(self._places["noise"], where)

    def parameter(self, name):
        """A number of the call, in every lane."""
        if name not in self._known:
            code = self.code
            with code.builder.goto_entry_block():
                self._known[name] = code.splat(code.get(self._places["numbers"], self._maker.numbers.index(name)))
        return self._known[name]


class Units(Maker):
    """All code of a unit's sums."""

    def __init__(self, what):
        self.sum, unit = what, what.unit
        self.item, self.word = (SINGLE, WORD) if what.single else (DOUBLE, LONG)
        self.carrier = np.float32 if what.single else np.float64
        self.planes_of_operands = 1 + (unit.kind == "aligned")
        self.numbers = (Numbers if unit.kind == "pairs" else UnitNumbers)._fields
        self.strides = LAYOUTS[what.layout].strides(what.rows, what.lanes)
        self.specials = getattr(unit, "specials", False)
        slots = slots_of(unit, what.counts)
        slots += tuple(slot for slot in (OVERFLOW, INVALID) if self.specials and slot not in slots)
        self.carried, self.noted = (VALUE,), (INEXACT, *slots)
        self.written = LONG if unit.kind == "fixed" else WORD  # registers' sums are float64, and rounded later
        self.rings, self.planes = {STORE: (0, noise.ROUNDINGS)}, noise.ROUNDINGS * what.draws
        self.module = ir.Module("sums")
        self.quickly, self.extremes = {}, EXTREMES
        inexact, all_noted = (INEXACT,) * (not what.counts), (*self.carried, *slots)
        self.looking = self.brief = self._turns("looking", (*all_noted, *inexact), self._step(True))
        if what.layout == "grid" and is_quick(unit):
            self.extremes = extremes_of(unit, what.counts)
            told = (*self.carried, *(COUNTS, LEAST, GREATEST) * what.counts) if cuts(unit) else all_noted
            for looks in (False,) if what.counts else (True, False):
                step = quick_exact_step(unit, self._observer(looks))
                self.quickly[looks] = self._turns(f"quick {looks}", told + inexact * looks, step, quick=True)
        elif not what.counts:
            self.brief = self._turns("brief", all_noted, self._step(False))
        self.last = None
        """A last block that has fewer terms."""
        if what.shortens:
            steps = aligned_phases(unit, self._observer(True))
            self.last = self._turns("last", (*all_noted, *inexact), steps, shortens=True)
        records = unit.kind == "fixed" and what.layout != "grid" and not what.counts
        self.recording = None
        if records:
            self.recording = self._turns("recording", (*all_noted, INEXACT), self._step(True), keeps=True)
        (_Grid if what.layout == "grid" else _Panels)(self)

    def _observer(self, looks):
        return Counted(self.sum.unit, self.sum.of_nan) if self.sum.counts else Watch(looks)

    def _step(self, looks):
        """The steps of a turn: several of a long block, in phases."""
        unit, observer = self.sum.unit, self._observer(looks)
        return aligned_phases(unit, observer) if self.sum.phased else MAKERS[unit.kind](unit, observer)

    def _turns(self, name, slots, step, keeps=False, quick=False, shortens=False):
        """Code of some turns, of operands, random numbers and a state at these places; one that `keeps` states leaves them in place of
        random numbers, after every turn. What is `quick` tells EXTREMES, of some rows in one, and takes of random numbers the first bits. A turn
        that `shortens` has no more products than there are."""
        what = self.sum
        function = self.function(name, ir.VoidType(), *[self.item.as_pointer()] * 5, *[LONG] * 4)
        code = Code(function, what.lanes)
        a, b, drawn, state, numbers = function.args[:5]
        *apart, products, count = (Int(code.builder, x) for x in function.args[5:])
        places = {"noise": drawn, "numbers": numbers}
        for which, pointer, distance in zip("ab", (a, b), apart, strict=True):
            for plane in range(self.planes_of_operands):
                places[which, plane] = code.at(pointer, distance * plane)
        all_rows = has_feature("avx512f") and INEXACT not in slots and not what.counts
        together, known = what.rows if all_rows else min(TOGETHER, what.rows), {}
        with code.loop(what.rows // together) as group:
            rows = [group * together + n for n in range(together)]
            cells = {(slot, n): self.place(slot, row) for slot in slots for n, row in enumerate(rows)}
            cells |= {(slot, 0): self.place(slot, rows[0]) for slot in self.extremes if quick}
            held = {cell: code.variable(code.load(state, where)) for cell, where in cells.items()}
            with code.loop(count) as k:

                def turn(product=0, first=k * what.unit.group, rows=rows):
                    return Turn(code, self, places, known, rows, first + product, quick)

                if isinstance(step, tuple):
                    self._phases(code, turn, held, step, products if shortens else None)
                else:
                    self._run(step, turn(), held)
                for cell, where in cells.items() if keeps else ():
                    code.store(held[cell].get(), drawn, k * (SLOTS * what.cells) + where)
            for cell, where in cells.items():
                code.store(held[cell].get(), state, where)
        code.builder.ret_void()
        return function

    def _run(self, step, turn, held):
        """Code of a step, of each row or of all together."""
        rows = range(turn.rows)
        states = [{slot: x.get() for (slot, of), x in held.items() if of == row} for row in rows]
        if getattr(step, "together", False):
            step(turn, states)
        else:
            for row in rows:
                turn.row = row
                states[row] = step(turn, row, states[row])
        for (slot, row), x in held.items():
            x.set(states[row][slot].floats())

    def _phases(self, code, turn, held, steps, products):
        """A long block, or of so many products: what comes before its terms, their powers of two, what comes once these are known, terms, and what
        comes after all."""
        unit, rows = self.sum.unit, range(turn().rows)
        aside = (LEAD, TOTAL, *(PART,) * (unit.parts - 1), PER_GRID, *(INEXACT,) * self.sum.counts)
        zero = code.everywhere(0.0, self.item)
        wide = (TOTAL,) * (unit.term > 1)  # sums of several products each
        held = held | {
            (slot, row): code.variable(zero.double() if slot in wide else zero) for slot in aside for row in rows
        }
        for some, step in steps:
            if some is not None:
                stop = some.stop if products is None else products.least(some.stop)
                with code.loop(stop // some.step, some.start // some.step) as k:
                    self._run(step, turn(k * some.step), held)
            else:
                self._run(step, turn(), held)


class _Turns(Driver):
    """Code of a tile: some turns at a time."""

    def begin(self):
        """No turn is done."""
        code, maker, nothing = self.code, self.maker, ir.Constant(self.maker.item.as_pointer(), None)
        self.done, self.known = (code.variable(code.int(0)) for _ in range(2))
        self.drawn = nothing
        if maker.sum.draws:
            self.drawn, self.told = code.room(noise.ROUNDINGS * maker.sum.cells, maker.item), code.room(1, LONG)
        if maker.sum.draws or maker.quickly:
            self.before = code.room(COUNTED_SLOTS * maker.sum.cells, maker.item)
        if maker.quickly:
            self.lowest = code.of(1).variable(code.of(1).load(self.call["low_c"]))

    def turns(self, a, b, state, begun=False, stop=None):
        """All turns, or those to be done before one, of operands and a state at these places. Of one that has `begun`, outputs may be inexact."""
        code, call, maker = self.code, self.call, self.maker
        unit = maker.sum.unit
        turns = (call["turns"] + (unit.group - 1)) // unit.group if stop is None else stop
        sizes = [strides.product * unit.group for strides in maker.strides]
        fixed = state, call["numbers"], call["a_size"], call["b_size"]
        if begun and not maker.sum.counts:
            self.known.set(self.all_inexact(state))
        with code.while_(lambda: self.done.get() < turns):
            done = self.done.get()
            count = turns - done
            if maker.sum.counts:
                count = count.least(turns_at_once(unit))
            else:
                some = count.least(done.same(0).choose(code.int(1), done).least(max(WATCH // unit.group, 1)))
                count = self.known.get().differs(0).choose(count, some)
            if maker.quickly:
                count = count.least(max(TRIED // unit.group, 1))
            if maker.last:
                whole = call["turns"] // unit.group - done
                count = (whole > 0).choose(count.least(whole), code.int(1))
            if maker.sum.draws:
                count = count.least(code.int(noise.ROUNDINGS) - (call["step"] + done) % noise.ROUNDINGS)
                if maker.quickly or not maker.sum.counts:
                    number = call["step"] + done
                    self.random(STORE, number, number + count, noise.ROUNDINGS - 1)
            a_at, b_at = (code.at(x, done * size) for x, size in zip((a, b), sizes, strict=True))

            def given(drawn, a=a_at, b=b_at, left=call["turns"] - done * unit.group):
                return a, b, drawn, *fixed, left

            if maker.quickly:
                fine = self._quickly(given, count, state)
                with code.when(fine.same(0), rarely=True):
                    self._carefully(given, count, state)
            else:
                self._carefully(given, count, state)
            if maker.sum.counts:
                self.take_counts(state)
            else:
                with code.when(self.known.get().same(0)):
                    self.known.set(self.all_inexact(state))
            self.done.set(done + count)

    def _bits(self):
        """Where the first bits of the random numbers of the next turns are."""
        number = self.call["step"] + self.done.get()
        return self.code.at(self.code.as_words(self.noise), number % noise.ROUNDINGS * self.maker.sum.cells)

    def _quickly(self, given, count, state):
        """1 where so many turns are done, quickly; else the state is as it was."""
        code, call, maker = self.code, self.call, self.maker
        one, unit, fine = code.of(1), maker.sum.unit, code.variable(code.int(0))
        some = spanned(unit) // unit.group
        first, stop = self.done.get() // some, (self.done.get() + count + some - 1) // some
        lowest, greatest = (one.variable(one.everywhere(x, DOUBLE)) for x in (float("inf"), 0.0))
        with code.loop(stop, first) as stretch:
            of_a, of_b = ((code.at(call[f"spans_{x}"], (self.spans[x] + stretch) * 2)) for x in "ab")
            low, high = (one.load(of_a, n) * one.load(of_b, n) for n in range(2))
            lowest.set(lowest.get().at_most(low))
            greatest.set(greatest.get().at_least(high))
        self.lowest.set(self.lowest.get().at_most(lowest.get()))
        reach = greatest.get() * float(unit.block)
        limit, limit_so_far = (x.get() * BITS - reach for x in (lowest, self.lowest))
        with code.when(Int(code.builder, (limit > 0.0).anywhere())):
            self._keep(state, self.before)
            for slot, begins in ((LARGEST_SO_FAR, 0), (SMALLEST, EXPONENT64 - 1)):
                with code.loop(maker.sum.rows) as row:
                    code.store(code.everywhere(begins, LONG), state, maker.place(slot, row))
            drawn = self._bits() if maker.sum.draws else self.drawn
            quickly = maker.quickly[False], maker.quickly.get(True, maker.quickly[False])
            self._run(*quickly, given(code.builder.bitcast(drawn, maker.item.as_pointer())), count)
            limits = (code.splat(code.only(x)) for x in (limit, limit_so_far, lowest.get()))
            fine.set(Int(code.builder, self._wrong(state, *limits).nowhere()).long())
            with code.when(fine.get().same(0), rarely=True):
                self._keep(self.before, state)
        return fine.get()

    def _wrong(self, state, limit, limit_so_far, lowest):
        """Lanes in which a bit may have been lost, or a store been no normal number of half."""
        code, maker = self.code, self.maker
        wrong, halves = code.variable(code.everywhere(0, LONG)), cuts(maker.sum.unit)
        with code.loop(maker.sum.rows) as row:
            large, small, value = (code.load(state, maker.place(slot, row)) for slot in (*EXTREMES, VALUE))
            small = (small.bits() + 1).floats()
            if LARGEST_SO_FAR not in maker.extremes:
                # what was there before the first block is at most what came of it, and the block: BITS leave room for that
                least, greatest = (code.load(state, maker.place(slot, row)) for slot in (LEAST, GREATEST))
                large = greatest.at_least(-least)
                found = large < limit_so_far
            else:
                found = (large < limit_so_far) | ((large < limit) & (small * BITS_BELOW >= lowest))
            if halves:
                magnitude = value.magnitude()
                normal = (magnitude >= HALF_NORMAL) | magnitude.is_zero()
                found = found & (large <= HALF_LARGEST) & (small >= HALF_NORMAL) & normal & (magnitude <= HALF_LARGEST)
            wrong.set(wrong.get() | found.choose(code.everywhere(0, LONG), 1))
        return wrong.get().nonzero()

    def _carefully(self, given, count, state):
        code, maker, number = self.code, self.maker, self.call["step"] + self.done.get()
        careful = maker.brief, maker.looking
        if not maker.sum.draws or maker.sum.counts:
            if maker.sum.draws:
                self._draw_all(number, count)
            self._run(*careful, given(self.drawn), count)
            return
        drawn, kind = self._bits(), ir.VectorType(maker.item, code.lanes)
        with code.loop(count * maker.sum.rows) as n:
            bits = code.load(drawn, n * code.lanes).value
            code.store(Vector(code.builder, code.builder.uitofp(bits, kind)) * FRACTION, self.drawn, n * code.lanes)
        zero = code.everywhere(0.0, maker.item)
        with code.loop(maker.sum.rows) as row:
            code.store(zero, state, maker.place(UNSETTLED, row))
        self._keep(state, self.before)
        self._run(*careful, given(self.drawn), count)
        opened = code.variable(zero.bits())
        with code.loop(maker.sum.rows) as row:
            opened.set(opened.get() | code.load(state, maker.place(UNSETTLED, row)).bits())
        with code.when(Int(code.builder, opened.get().nonzero().anywhere()), rarely=True):
            self._keep(self.before, state)
            self._draw_all(number, count)
            self._run(*careful, given(self.drawn), count)

    def _keep(self, source, target):
        """What is in one place, in another, too."""
        self.keep(source, target, (*self.maker.carried, *self.maker.noted))

    def _draw_all(self, number, count):
        """Random numbers of stores, with all their bits."""
        code, call, what = self.code, self.call, self.maker.sum
        numbers = [
            self.corner, call["row_stride"], call["column_stride"], number, count, code.int(what.lanes), code.int(what.rows),
            *(call[x] for x in ADDRESS),
        ]  # fmt: skip
        nothing = ir.Constant(BYTE.as_pointer(), None)
        given = [self.told, nothing, self.drawn, *(x.value for x in numbers)]
        kind = ir.FunctionType(WORD, [x.type for x in given])
        code.builder.call(code.builder.bitcast(call["again"], kind.as_pointer()), given)

    def _run(self, brief, looking, given, count):
        """Code of turns, by what does not look once all outputs are inexact; of a last one that has fewer terms."""
        code, given = self.code, [*given]
        if self.maker.last:
            with code.builder.if_else((given[-1] < self.maker.sum.unit.group).value) as (shorter, whole):
                with shorter:
                    code.call(self.maker.last, *given, count)
                with whole:
                    self._run_whole(brief, looking, given, count)
            return
        self._run_whole(brief, looking, given, count)

    def _run_whole(self, brief, looking, given, count):
        """Of turns that are whole."""
        code = self.code
        if brief is looking:
            code.call(looking, *given, count)
            return
        with code.builder.if_else(self.known.get().differs(0).value) as (briefly, watching):
            with briefly:
                code.call(brief, *given, count)
            with watching:
                code.call(looking, *given, count)


class _Grid(_Turns):
    """Grids of outputs under each other, whose row panels take turns as long as they stay in the cache."""

    def placed(self, unit):
        """(product, row, column) of a tile by its number."""
        call = self.call
        panels, tiles, near = (call[name] for name in ("panels", "tiles", "near"))
        product, across = unit // tiles, tiles // panels
        rest = unit - product * tiles
        block = rest // (near * across)
        rest = rest - block * near * across
        count = near.least(panels - block * near)
        column = rest // count
        return product, block * near + rest - column * count, column

    def sum(self, i, j):
        """Code of a tile."""
        code, call, maker = self.code, self.call, self.maker
        product, across = self.product, call["tiles"] // call["panels"]
        state = code.room(COUNTED_SLOTS * maker.sum.cells, maker.item)
        self.begin()
        self.spans = {
            "a": (product * call["panels"] + i) * call["stretches"],
            "b": (product * across + j) * call["stretches"],
        }
        self.begin_with(state, i, j)
        if maker.sum.joins:
            places, group = self.places(), maker.sum.unit.group
            segments.join(self, state, i, j, lambda stop: self.turns(*places, state, stop=(stop + group - 1) // group))
        else:
            self.begin_with_c(state)
            self.turns(*self.places(), state)
        self.tell(state, self.outputs)


class _Panels(_Turns):
    """Outputs that have operands of their own, on their way: their state is with the caller, who goes on with it."""

    def sum(self, i, j):
        """Code of some turns of a panel."""
        code, call, maker = self.code, self.call, self.maker
        state = code.at(call["state"], i * (SLOTS * maker.sum.cells))
        a, b = self.places()
        self.begin()
        with code.when(call["begun"].same(0)):
            self.begin_with(state, i, j)
            self.begin_with_c(state)
        if maker.recording is None:
            self.turns(a, b, state, begun=True)
            self.tell_own(state)
            return
        fixed = state, call["numbers"], call["a_size"], call["b_size"]
        with code.builder.if_else(call["records"].differs(0).value) as (keeping, otherwise):
            with keeping:
                code.call(maker.recording, a, b, call["kept"], *fixed, *[call["turns"]] * 2)
            with otherwise:
                self.turns(a, b, state, begun=True)
        self.tell_own(state)
