"""Sums of dot-product units: the turns that `units` and `counted_units` write, of all rows of a tile in registers.

Turns are watched until every output is inexact, unless additions are counted: these look always. What 16 random bits of a store leave open is
done once more with all of them.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from .. import counted_units, units
from ..accumulate import STORE
from ..fast import has_feature
from ..steps import COUNTED_SLOTS, INEXACT, SLOTS, UNSETTLED, VALUE, Numbers
from ..units import LEAD, LOST, PER_GRID, TOTAL, UnitNumbers
from ..vectors import LANES, Vector
from . import noise
from .language import BYTE, DOUBLE, LONG, SINGLE, WORD, Code, Int
from .layouts import LAYOUTS
from .loop import ADDRESS, Driver, Maker

WATCH = 32
"""Products, at most, between two looks whether all outputs are inexact; these are twice as many each time."""
TOGETHER = 4
"""Rows of a tile that are looked at side by side, and without vectors of 512 bits any: what is noted of more is not kept in registers."""
FRACTION = 2.0**-16  # what the last of 16 random bits is worth


class UnitSum(NamedTuple):
    """A unit's turn, in phases or not, whether additions are counted, and how operands and outputs lie. `of_nan`: overflows are NaN."""

    unit: NamedTuple
    phased: bool
    counts: bool
    of_nan: bool
    layout: str
    rows: int
    lanes: int

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


class Turn:
    """What steps see of a turn: operands, random numbers, numbers of the call. `row` is the one being written, of `rows`."""

    def __init__(self, code, maker, places, known, rows, first):
        self.code, self.rows, self.row = code, len(rows), 0
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
        """A random number for every output of a row."""
        turn = self._first // self._maker.sum.unit.group
        return self.code.load(self._places["noise"], turn * self._maker.sum.cells + self._rows[row] * self.code.lanes)

    def parameter(self, name):
        """A number of the call, in every lane."""
        if name not in self._known:
            code = self.code
            with code.builder.goto_entry_block():
                self._known[name] = code.splat(code.get(self._places["numbers"], self._maker.numbers.index(name)))
        return self._known[name]

    def integer(self, name):
        """One that is an integer in disguise."""
        return self.parameter(name).bits()


class Units(Maker):
    """All code of a unit's sums."""

    def __init__(self, what):
        self.sum, unit = what, what.unit
        self.item, self.word = (SINGLE, WORD) if what.single else (DOUBLE, LONG)
        self.carrier = np.float32 if what.single else np.float64
        self.planes_of_operands = 1 + (unit.kind == "aligned")
        self.numbers = (Numbers if unit.kind == "pairs" else UnitNumbers)._fields
        self.strides = LAYOUTS[what.layout].strides(what.rows, what.lanes)
        slots = (counted_units if what.counts else units).slots_of(unit)
        self.carried, self.noted, self.codes = (VALUE,), (INEXACT, *slots), {}
        self.rings, self.planes = {STORE: (0, noise.ROUNDINGS)}, noise.ROUNDINGS * what.draws
        self.module = ir.Module("sums")
        if what.draws:
            self.fill = self.function("fill", ir.VoidType(), WORD.as_pointer(), *[LONG] * 8)
            noise.fill(self.fill, what.rows, what.lanes)
        self.looking = self._turns("looking", True)
        self.brief = None if what.counts else self._turns("brief", False)
        records = unit.kind == "fixed" and what.layout != "grid" and not what.counts
        self.recording = self._turns("recording", True, keeps=True) if records else None
        (_Grid if what.layout == "grid" else _Panels)(self)

    def _step(self, looks):
        unit = self.sum.unit
        if self.sum.counts:
            return counted_units.STEPS[unit.kind](unit, self.sum.of_nan)
        return units.MAKERS[unit.kind](unit, looks)

    def _turns(self, name, looks, step=None, keeps=False):
        """Code of some turns, of operands, random numbers and a state at these places; one that `keeps` states leaves them in place of
        random numbers, after every turn."""
        what = self.sum
        function = self.function(name, ir.VoidType(), *[self.item.as_pointer()] * 5, *[LONG] * 3)
        code = Code(function, what.lanes)
        a, b, drawn, state, numbers = function.args[:5]
        *apart, count = (Int(code.builder, x) for x in function.args[5:])
        places = {"noise": drawn, "numbers": numbers}
        for which, pointer, distance in zip("ab", (a, b), apart, strict=True):
            for plane in range(self.planes_of_operands):
                places[which, plane] = code.at(pointer, distance * plane)
        notes = looks and (step is not None or not what.counts)
        slots = (*self.carried, *(slot for slot in self.noted if slot != INEXACT or notes))
        all_rows = has_feature("avx512f") and not looks
        together, known = what.rows if all_rows else min(TOGETHER, what.rows), {}
        with code.loop(what.rows // together) as group:
            rows = [group * together + n for n in range(together)]
            cells = {(slot, n): self.place(slot, row) for slot in slots for n, row in enumerate(rows)}
            held = {cell: code.variable(code.load(state, where)) for cell, where in cells.items()}
            with code.loop(count) as k:

                def turn(product=0, first=k * what.unit.group, rows=rows):
                    return Turn(code, self, places, known, rows, first + product)

                if what.phased and step is None:
                    self._phases(code, turn, held, looks)
                else:
                    self._run(step or self._step(looks), turn(), held)
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

    def _phases(self, code, turn, held, looks):
        """A long block: what comes before its terms, their powers of two, what comes once these are known, terms, and what comes after all."""
        unit, rows = self.sum.unit, range(turn().rows)
        steps = counted_units.phases(unit) if self.sum.counts else units.aligned_phases(unit, looks)
        aside = (LEAD, TOTAL, PER_GRID, *(LOST,) * self.sum.counts)
        zero = code.everywhere(0.0, self.item)
        held = held | {(slot, row): code.variable(zero) for slot in aside for row in rows}
        for number, step in enumerate(steps):
            if number in (1, 3):
                with code.loop(unit.block) as k:
                    self._run(step, turn(k), held)
            else:
                self._run(step, turn(), held)


class _Turns(Driver):
    """Code of a tile: some turns at a time."""

    def begin(self):
        """No turn is done."""
        code, maker = self.code, self.maker
        self.done, self.known = (code.variable(code.int(0)) for _ in range(2))
        if maker.sum.draws:
            self.drawn = code.room(noise.ROUNDINGS * maker.sum.cells, maker.item)
            self.before = code.room(COUNTED_SLOTS * maker.sum.cells, maker.item)
            self.told = code.room(1, LONG)
        else:
            self.drawn = ir.Constant(maker.item.as_pointer(), None)

    def turns(self, a, b, state, begun=False):
        """All turns, of operands and a state at these places. Of one that has `begun`, outputs may be inexact."""
        code, call, maker = self.code, self.call, self.maker
        turns, unit = call["turns"], maker.sum.unit
        sizes = [strides.product * unit.group for strides in maker.strides]
        fixed = self.drawn, state, call["numbers"], call["a_plane"], call["b_plane"]
        if begun and not maker.sum.counts:
            self.known.set(self.all_inexact(state))
        with code.while_(lambda: self.done.get() < turns):
            done = self.done.get()
            count = turns - done
            if maker.sum.counts:
                count = count.least(counted_units.turns_at_once(unit))
            else:
                some = count.least(done.same(0).choose(code.int(1), done).least(max(WATCH // unit.group, 1)))
                count = self.known.get().differs(0).choose(count, some)
            if maker.sum.draws:
                count = count.least(code.int(noise.ROUNDINGS) - (call["step"] + done) % noise.ROUNDINGS)
            places = (code.at(x, done * size) for x, size in zip((a, b), sizes, strict=True))
            self._some((*places, *fixed), count, state)
            if not maker.sum.counts:
                with code.when(self.known.get().same(0)):
                    self.known.set(self.all_inexact(state))
            self.done.set(done + count)

    def _some(self, given, count, state):
        code, call, maker = self.code, self.call, self.maker
        if not maker.sum.draws:
            self._run(given, count, state)
            return
        number = call["step"] + self.done.get()
        if maker.sum.counts:
            self._draw_all(number, count)
            self._run(given, count, state)
            return
        self.random(STORE, number, number + count, noise.ROUNDINGS - 1)
        cells, words = maker.sum.cells, code.as_words(self.noise)
        first = number % noise.ROUNDINGS * cells
        with code.loop(count * maker.sum.rows) as n:
            drawn = code.load(words, first + n * code.lanes).value
            kind = ir.VectorType(maker.item, code.lanes)
            code.store(Vector(code.builder, code.builder.uitofp(drawn, kind)) * FRACTION, self.drawn, n * code.lanes)
        zero = code.everywhere(0.0, maker.item)
        with code.loop(maker.sum.rows) as row:
            code.store(zero, state, maker.place(UNSETTLED, row))
        slots = (*maker.carried, *maker.noted)
        for slot in slots:
            self._copy(state, self.before, slot)
        self._run(given, count, state)
        opened = code.variable(zero.bits())
        with code.loop(maker.sum.rows) as row:
            opened.set(opened.get() | code.load(state, maker.place(UNSETTLED, row)).bits())
        with code.when(Int(code.builder, opened.get().nonzero().anywhere()), rarely=True):
            for slot in slots:
                self._copy(self.before, state, slot)
            self._draw_all(number, count)
            self._run(given, count, state)

    def _copy(self, source, target, slot):
        self.code.copy(*(self.code.at(x, self.maker.place(slot)) for x in (source, target)), self.maker.sum.cells)

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

    def _run(self, given, count, state):
        code, maker = self.code, self.maker
        if maker.sum.counts:
            code.call(maker.looking, *given, count)
            self.take_counts(state)
            return
        with code.builder.if_else(self.known.get().differs(0).value) as (briefly, looking):
            with briefly:
                code.call(maker.brief, *given, count)
            with looking:
                code.call(maker.looking, *given, count)


class _Grid(_Turns):
    """Grids of outputs under each other, whose row panels take turns as long as they stay in the cache."""

    def placed(self, unit):
        """(product, row, column) of a tile by its number."""
        call = self.call
        panels, across, near = (call[name] for name in ("panels", "across", "near"))
        product = unit // (panels * across)
        rest = unit - product * (panels * across)
        block = rest // (near * across)
        rest = rest - block * near * across
        count = near.least(panels - block * near)
        column = rest // count
        return product, block * near + rest - column * count, column

    def sum(self, i, j):
        """Code of a tile."""
        code, call, maker = self.code, self.call, self.maker
        product, planes = self.product, maker.planes_of_operands
        state = code.room(COUNTED_SLOTS * maker.sum.cells, maker.item)
        self.begin()
        self.nothing_yet(state, i, j)
        with code.loop(maker.sum.rows) as row:
            begins = code.load(call["c"], product * call["c_apart"] + self.outputs + row * call["wide"])
            code.store(begins, state, maker.place(VALUE, row))
        self.corner = self.corner + product * call["apart"]
        a, b = (
            code.at(call[which], product * planes * call[which + "_plane"] + panel * call["length"] * strides.product)
            for which, panel, strides in zip("ab", (i, j), maker.strides, strict=True)
        )
        self.turns(a, b, state)
        self.tell(state, product * call["panels"] * maker.sum.rows * call["wide"] + self.outputs)


class _Panels(_Turns):
    """Outputs that have operands of their own, on their way: their state comes from the caller, who goes on with it."""

    def sum(self, i, j):
        """Code of some turns of a panel."""
        code, call, maker = self.code, self.call, self.maker
        state = code.at(call["state"], i * (call["slots"] * maker.sum.cells))
        a, b = (
            code.at(call[which], self.panels[which] * call["length"] * strides.product)
            for which, strides in zip("ab", maker.strides, strict=True)
        )
        self.begin()
        if maker.recording is None:
            self.turns(a, b, state, begun=True)
            return
        fixed = state, call["numbers"], call["a_plane"], call["b_plane"]
        with code.builder.if_else(call["records"].differs(0).value) as (keeping, otherwise):
            with keeping:
                code.call(maker.recording, a, b, call["kept"], *fixed, call["turns"])
            with otherwise:
                self.turns(a, b, state, begun=True)
