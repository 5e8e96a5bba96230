"""Sums in order, one product after the other: some turns of a tile at a time, rows side by side.

Turns are done quickly, and what may be wrong again with care. What 16 random bits leave open, even so, is done once more with all of them:
then the turns of that output, from the state before them.
"""

from llvmlite import ir

from ..accumulate import PRODUCT, RUNNING
from ..steps import LEFT_OPEN, OVERFLOWED, VALUE
from . import arithmetics
from .language import LONG, SINGLE, WORD, Code, Int
from .loop import SLOTS, Driver, Maker, Turn

REST, VAIN = 512, 4
"""Turns that are not tried quickly after some of which more than one in so many had to be done again."""
CAREFULLY = 2
"""Rows of a tile that are written side by side where turns are done with care: more take longer to compile, and hardly less to run."""


class InOrder(Maker):
    """All code of a sum in order, whose roundings draw."""

    def __init__(self, what):
        super().__init__(what)
        self.piece, self.slots = self.order.subtree, (*self.carried, *self.noted)
        self.together = min(self.order.together >> what.counts, what.rows) or 1  # registers
        self.careful = self._careful()
        self.quick = self._quick()
        self.whole_turns = {"turn": self.whole("turn", self.piece)}
        (_Grid if what.layout == "grid" else _Panels)(self)

    def _opened(self, name, returned):
        """Code of a function, and what it is called with: places of operands and random numbers, state, numbers of the call; the first row and
        the one after the last; turns, how far apart their random numbers are, what cuts them, and where those of sums and products begin."""
        function = self.function(name, returned, *[SINGLE.as_pointer()] * 5, *[LONG] * 7)
        code = Code(function, self.sum.lanes)
        places = dict(zip(("a", "b", "noise", "state", "numbers"), function.args, strict=False))
        return code, places, *(Int(code.builder, x) for x in function.args[5:])

    def _turn(self, code, places, at, k, apart, mask):
        """What makes the Turn of a row, so many turns later."""
        later, now = self.ahead(code, places, at, self.piece, k, apart)
        return lambda row: Turn(code, self, later, row, now, places["numbers"], self.masks(mask))

    def _careful(self):
        """Code of some turns with every bit that decides, but for random ones after the first 16."""
        code, places, first, last, count, apart, mask, running, product = self._opened("careful", ir.VoidType())
        at = {RUNNING: running, PRODUCT: product}
        together = min(CAREFULLY, self.sum.rows)
        with code.loop((last - first) // together) as group:
            rows = [first + group * together + n for n in range(together)]
            cells = {(slot, n): self.place(slot, row) for slot in self.slots for n, row in enumerate(rows)}
            held = {cell: code.variable(code.load(places["state"], where)) for cell, where in cells.items()}
            with code.loop(count) as k:
                make = self._turn(code, places, at, k, apart, mask)
                for n, row in enumerate(rows):
                    own = {slot: held[slot, n].get() for slot in self.slots}
                    self.row(make(row), self.piece, arithmetics.careful(self.stage), self.observer, own)
                    for slot in self.slots:
                        held[slot, n].set(own[slot].floats())
            for cell, where in cells.items():
                code.store(held[cell].get(), places["state"], where)
        code.builder.ret_void()
        return code.builder.function

    def _quick(self):
        """Code of some turns of rows side by side; it returns how often such had to be done with care."""
        code, places, first, last, count, apart, mask, running, product = self._opened("quick", LONG)
        at, again, stage = {RUNNING: running, PRODUCT: product}, code.variable(code.int(0)), self.stage
        together, state = self.together, places["state"]
        carried = [slot for slot in self.carried if slot != OVERFLOWED]  # nothing overflows here
        lift = arithmetics.lift(stage, self.silent) if self.sum.layout == "grid" else 1.0
        unfit, numbers = arithmetics.unfit(stage), places["numbers"]
        wrong = arithmetics.went_wrong(stage, self.sum.counts, self.order.fuses, lift > 1)
        begins = {
            slot: code.everywhere(bits & 0xFFFFFFFF, WORD).floats()
            for slot, bits in arithmetics.watches(stage, lift > 1).items()
        }

        def scaled(slot, x, factor):
            return x * factor if slot in self.order.slots and factor != 1.0 else x

        with code.loop((last - first) // together) as group:
            top = first + group * together
            cells = {(slot, n): self.place(slot, top + n) for slot in carried for n in range(together)}
            held = {cell: code.variable(code.everywhere(0.0)) for cell in cells}
            refused = code.variable(code.truth(False))

            def take(cells=cells, held=held, refused=refused):
                found = {cell: code.load(state, where) for cell, where in cells.items()}
                for (slot, n), x in found.items():
                    held[slot, n].set(scaled(slot, x, lift))
                if unfit is not None:
                    turn = Turn(code, self, places, 0, at, numbers, self.masks(mask))
                    sums = [x for (slot, _), x in found.items() if slot in self.order.slots]
                    refused.set(Int(code.builder, unfit(turn, sums)))

            def put(values, cells=cells):
                for (slot, n), where in cells.items():
                    code.store(scaled(slot, values[slot, n], 1 / lift), state, where)

            take()
            with code.loop(count) as k:
                before, seen = {cell: x.get() for cell, x in held.items()}, begins
                make = self._turn(code, places, at, k, apart, mask)
                for n in range(together):
                    own, turn = {slot: before[slot, n] for slot in carried} | seen, make(top + n)
                    turn.lift = lift
                    self.row(turn, self.piece, arithmetics.quick(stage), self.silent, own)
                    for slot in carried:
                        held[slot, n].set(own[slot].floats())
                    seen = {slot: own[slot].floats() for slot in begins}
                with code.when(Int(code.builder, wrong(turn, seen)) | refused.get(), rarely=True):
                    put(before)
                    later, now = self.ahead(code, places, at, self.piece, k, apart)
                    given = later["a"], later["b"], places["noise"], state, numbers
                    code.call(self.careful, *given, top, top + together, 1, apart, mask, now[RUNNING], now[PRODUCT])
                    take()
                    again.set(again.get() + 1)
            put({cell: x.get() for cell, x in held.items()})
        code.builder.ret(again.get().value)
        return code.builder.function


class _Turns(Driver):
    """Code of a tile: some turns at a time."""

    def begin(self):
        """No turn is done."""
        code, zero = self.code, self.code.int(0)
        self.before = code.room(SLOTS * self.maker.sum.cells)
        self.known, self.rest, self.done = (code.variable(zero) for _ in range(3))
        self.known.set(code.int(self.maker.sum.counts))
        self.noted = code.variable(code.int(1))  # what is noted may differ from what was copied

    def numbers(self, chain):
        """Where random numbers of both sites begin for the next turns of a chain."""
        call, numbers = self.call, self.maker.piece.numbers
        product = call["step"] + self.done.get() * call["apart"] + chain
        return {site: product * numbers[site] for site in numbers}

    def draw(self):
        """What the next turns of all chains take."""
        call, numbers = self.call, self.maker.piece.numbers
        for site, first in self.numbers(self.code.int(0)).items():
            if numbers[site] and (site == RUNNING or self.maker.stage.rounds_products):
                products = (call["at_once"] - 1) * call["apart"] + call["chains"]
                mask = self.maker.masks(call["mask"])[site]
                self.random(site, first, first + products * numbers[site], mask)

    def some(self, a, b, state, chain, count):
        """So many turns, of operands and a state at these places."""
        code, call, maker = self.code, self.call, self.maker
        if maker.sum.counts:
            self.count(state, count * (maker.piece.numbers[RUNNING] + maker.piece.products))
        else:
            with code.when(self.known.get().same(0)):
                self.known.set(self.all_inexact(state))
        self._copy(state, self.before, maker.carried)
        with code.when(self.noted.get().differs(0)):
            self._copy(state, self.before, maker.noted)
        at, again = self.numbers(chain), code.variable(count)
        given = a, b, self.noise, state, call["numbers"], 0, maker.sum.rows, count, call["apart"], call["mask"]
        quickly = self.known.get().differs(0) & (self.done.get() >= self.rest.get())
        with code.builder.if_else(quickly.value) as (quick, careful):
            with quick:
                again.set(code.call(maker.quick, *given, at[RUNNING], at[PRODUCT]))
                with code.when(again.get() * VAIN > count * (maker.sum.rows // maker.together)):
                    self.rest.set(self.done.get() + REST)
            with careful:
                code.call(maker.careful, *given, at[RUNNING], at[PRODUCT])
        self.noted.set((call["chains"] > 1).long() | again.get())
        places = {"a": a, "b": b, "below": state}
        turns = count, call["apart"], call["mask"], at[RUNNING], at[PRODUCT]
        with code.when(again.get().differs(0), rarely=True), code.loop(maker.sum.rows) as row:
            opened = code.load(state, maker.place(LEFT_OPEN, row)).bits() < 0
            with code.when(Int(code.builder, opened.anywhere()), rarely=True):
                self.settle("turn", row, places, state, turns, lambda cell: self._restore(state, cell))

    def _copy(self, source, target, slots):
        for slot in slots:
            self.code.copy(*(self.code.at(x, self.maker.place(slot)) for x in (source, target)), self.maker.sum.cells)

    def _restore(self, state, cell):
        for slot in self.maker.slots:
            where = cell + self.maker.place(slot)
            self.code.put(self.code.get(self.before, where), state, where)


class _Grid(_Turns):
    """A grid of outputs, which begin and end here; chains of them, which take products in turn, one after the other."""

    def sum(self, i, j):
        """Code of a tile."""
        code, call, maker = self.code, self.call, self.maker
        rows, chains, turns = maker.sum.rows, call["chains"], call["turns"]

        def state(chain):
            return code.at(call["state"], chain * (SLOTS * maker.sum.cells))

        self.begin()
        with code.loop(chains) as chain:
            self.nothing_yet(state(chain), i, j)
            with code.loop(rows) as row:
                begins = code.load(call["c"], self.outputs + row * call["wide"])
                code.store(begins, state(chain), maker.place(VALUE, row))
        with code.while_(lambda: self.done.get() < turns):
            self.draw()
            with code.loop(chains) as chain:
                done = self.done.get()
                count = call["at_once"].least((call["length"] - chain + chains - 1) // chains - done)
                with code.when(count > 0):
                    a = code.at(call["a"], ((chain * call["panels"] + i) * turns + done) * rows)
                    b = code.at(
                        call["b"], (chain * call["wide"] + j * maker.sum.lanes) * turns + done * maker.sum.lanes
                    )
                    self.some(a, b, state(chain), chain, count)
            self.done.set(self.done.get() + call["at_once"])
        with code.loop(chains) as chain:
            if maker.sum.counts:
                self.take_counts(state(chain))
            self.tell(state(chain), self.outputs + chain * call["panels"] * rows * call["wide"])


class _Panels(_Turns):
    """Outputs that have operands of their own, on their way: their state comes from the caller, who goes on with it."""

    def sum(self, i, j):
        """Code of some turns of a panel."""
        code, call, maker = self.code, self.call, self.maker
        turns, size = call["turns"], call["slots"] * maker.sum.cells
        state = code.at(call["state"], i * size)
        a, b = (
            code.at(call[which], self.panels[which] * turns * strides.product)
            for which, strides in zip("ab", maker.strides, strict=True)
        )
        self.begin()
        with code.while_(lambda: self.done.get() < turns):
            self.draw()
            done = self.done.get()
            now = (code.at(x, done * strides.product) for x, strides in zip((a, b), maker.strides, strict=True))
            self.some(*now, state, code.int(0), call["at_once"].least(turns - done))
            with code.when(call["records"].differs(0)):
                for slot in maker.slots:
                    where = maker.place(slot)
                    code.copy(code.at(state, where), code.at(call["kept"], done * size + where), maker.sum.cells)
            self.done.set(self.done.get() + call["at_once"])
        if maker.sum.counts:
            self.take_counts(state)
