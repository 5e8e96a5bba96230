"""Sums in order, one product after the other: some turns of a tile at a time, rows side by side.

Turns are done quickly where that is less work, and what may be wrong again with care. What 16 random bits leave open, even so, is done once
more with all of them: then the turns of that output, from the state before them. Whether anything is inexact is looked at until everything is.
"""

from ..accumulate import PRODUCT, RUNNING
from ..fast import has_feature
from ..steps import GREATEST, INEXACT, LEAST, LEFT_OPEN, OVERFLOWED, VALUE
from . import arithmetics, segments
from .language import LONG, Code, Int
from .loop import FULL, SLOTS, Driver, Maker, Turn
from .orders import JOIN
from .quick import out_of_lifted

REST, VAIN = 512, 4
"""Turns that are not tried quickly after some of which more than one in so many had to be done again."""
QUICK = 128
"""Turns of quick steps between two looks whether they pay."""
CAREFULLY = 2
"""Rows of a tile that are written side by side where turns that draw are done with care: more take longer to compile, and hardly less to run."""
TINY_BITS = (127 - 14 + 127) << 23
"""Of bits of float32: of 2^-14, half's least normal number, and 1. Bits, read as integers, are logarithms that are never too large: the sum
of those of two numbers is that of no larger product."""
WATCH = 8
"""Turns, at most, between two looks whether everything is inexact; before the first look one, between the next ever more."""


class InOrder(Maker):
    """All code of a sum in order."""

    def __init__(self, what):
        super().__init__(what)
        self.piece, self.slots, stage = self.order.subtree, (*self.carried, *self.noted), self.stage
        together = self.order.together if stage.draws else what.rows >> (stage.double and not has_feature("avx512f"))
        self.together = min(together >> max(what.counts, stage.specials), what.rows) or 1  # registers
        exact = self.order.compensates and not stage.draws
        self.lift = arithmetics.lift(stage, self.order, self.silent) if exact or what.layout == "grid" else 1.0
        self.careful_lift = self.lift if exact else 1.0
        self.looking = self.brief = self._careful("looking", self.observer, self.piece)
        if not (stage.draws or what.counts):
            self.brief = self._careful("brief", self.silent, self.piece)
        grid = what.layout == "grid"
        quick = arithmetics.quick(stage, self.order, what.counts, grid)
        self.quick = self._quick("quick", quick, self.lift) if quick else self.brief
        self.asks = quick is arithmetics.Lifted
        self.roomy = None
        if grid and arithmetics.splits(self.order, stage):
            self.roomy = self._quick("roomy", arithmetics.Split, 1.0)
        pieces = {"turn": self.piece} | ({"last": self.order.last} if self.order.last else {})
        self.last = self._careful("last", self.observer, self.order.last) if self.order.last else None
        if stage.draws:
            pieces |= {"join": JOIN} if what.joins else {}
            self.whole_turns = {name: self.whole(name, piece) for name, piece in pieces.items()}
        (_Grid if what.layout == "grid" else _Panels)(self)

    def _opened(self, name, returned):
        """Code of a function, and what it is called with: places of operands and random numbers, state, numbers of the call; the first row and
        the one after the last; turns, how far apart their random numbers are, what cuts them, and where those of sums and products begin.

        Where nothing is drawn, the place of random numbers is one for states after each turn, and these are so far apart, if they are kept.
        """
        function = self.function(name, returned, *[self.item.as_pointer()] * 5, *[LONG] * 7)
        code = Code(function, self.sum.lanes)
        places = dict(zip(("a", "b", "noise", "state", "numbers"), function.args, strict=False))
        return code, places, *(Int(code.builder, x) for x in function.args[5:])

    def _turn(self, code, places, at, piece, k, apart, mask):
        """What makes the Turn of a row, so many turns later."""
        later, now = self.ahead(code, places, at, piece, k, apart)
        return lambda row: Turn(code, self, later, row, now, places["numbers"], self.masks(mask))

    def _scaled(self, slot, x, factor):
        """What a slot holds, times a power of two if it is a sum."""
        return x * factor if slot in (*self.order.slots, LEAST, GREATEST) and factor != 1.0 else x

    def _careful(self, name, observer, piece):
        """Code of some turns with every bit that decides, but for random ones after the first 16. It returns 0: none was done again."""
        code, places, first, last, count, apart, mask, running, product = self._opened(name, LONG)
        stage, at = self.stage, {RUNNING: running, PRODUCT: product}
        lift = self.careful_lift
        together = min(CAREFULLY, self.together) if stage.draws else self.together
        slots = [slot for slot in self.slots if slot != INEXACT or observer.looks]
        with code.loop((last - first) // together) as group:
            rows = [first + group * together + n for n in range(together)]
            cells = {(slot, n): self.place(slot, row) for slot in slots for n, row in enumerate(rows)}
            held = {
                cell: code.variable(self._scaled(cell[0], code.load(places["state"], where), lift))
                for cell, where in cells.items()
            }

            def put(pointer, cells=cells, held=held):
                for cell, where in cells.items():
                    code.store(self._scaled(cell[0], held[cell].get(), 1 / lift), pointer, where)

            with code.loop(count) as k:
                make = self._turn(code, places, at, piece, k, apart, mask)
                for n, row in enumerate(rows):
                    own, turn = {slot: held[slot, n].get() for slot in slots}, make(row)
                    turn.lift = lift
                    self.row(turn, piece, arithmetics.careful(stage), observer, own)
                    for slot in slots:
                        held[slot, n].set(own[slot].floats())
                if not stage.draws:  # which have their state kept once it is settled
                    with code.when(apart.differs(0), rarely=True):
                        kept = code.at(places["noise"], k * apart)
                        put(kept)
                        for row in () if observer.looks else rows:
                            code.store(code.everywhere(1.0, self.item), kept, self.place(INEXACT, row))
            put(places["state"])
        code.builder.ret(code.int(0).value)
        return code.builder.function

    def _quick(self, name, arithmetic, lift):
        """Code of some turns of rows side by side, whose sums are times `lift`; it returns how often such had to be done with care.

        If it asks for the least numbers of turns, the place of random numbers is one for those of a, and those of b are so far from it as
        says what is the number of a sum elsewhere.
        """
        code, places, first, last, count, apart, mask, running, product = self._opened(name, LONG)
        at, again, stage = {RUNNING: running, PRODUCT: product}, code.variable(code.int(0)), self.stage
        together, state = self.together, places["state"]
        carried = [slot for slot in self.carried if slot != OVERFLOWED]  # nothing overflows here
        unfit, numbers = arithmetics.unfit(stage), places["numbers"]
        watched, begins = arithmetic not in (arithmetics.Lifted, arithmetics.Split), {}
        mends = arithmetics.mends(stage, self.order, self.sum.counts, lift > 1)
        if watched:
            begins = self.watched(code, arithmetic.watches(stage, self.sum.counts, lift > 1))

        def failed(turn, seen, k):
            if watched:
                return Int(code.builder, arithmetic.went_wrong(turn, stage, seen, self.order.fuses, self.sum.counts))
            if not arithmetics.is_lifted(self.order, stage):
                return code.truth(False)
            least = code.as_words(places["noise"])
            return (code.get(least, k) + code.get(least, running + k)).below(TINY_BITS)

        with code.loop((last - first) // together) as group:
            top = first + group * together
            cells = {(slot, n): self.place(slot, top + n) for slot in carried for n in range(together)}
            held = {cell: code.variable(code.everywhere(0.0, self.item)) for cell in cells}
            refused = code.variable(code.truth(False))

            def take(cells=cells, held=held, refused=refused):
                found = {cell: code.load(state, where) for cell, where in cells.items()}
                for (slot, n), x in found.items():
                    held[slot, n].set(self._scaled(slot, x, lift))
                if unfit is not None:
                    turn = Turn(code, self, places, 0, at, numbers, self.masks(mask))
                    sums = [x for (slot, _), x in found.items() if slot in self.order.slots]
                    refused.set(Int(code.builder, unfit(turn, sums)))

            def put(values, cells=cells):
                for (slot, n), where in cells.items():
                    code.store(self._scaled(slot, values[slot, n], 1 / lift), state, where)

            take()
            with code.loop(count) as k:
                before, seen = {cell: x.get() for cell, x in held.items()}, begins
                make, words = self._turn(code, places, at, self.piece, k, apart, mask), []
                for n in range(together):
                    own, turn = {slot: before[slot, n] for slot in carried} | seen, make(top + n)
                    turn.lift = lift
                    words.append(self.row(turn, self.piece, arithmetic, self.silent, own))
                    for slot in carried:
                        held[slot, n].set(own[slot].floats())
                    seen = {slot: own[slot].floats() for slot in begins}

                def redo(before=before, k=k, top=top, put=put, take=take):
                    put(before)
                    later, now = self.ahead(code, places, at, self.piece, k, apart)
                    given = later["a"], later["b"], places["noise"], state, numbers, top, top + together, 1, apart, mask
                    code.call(self.brief, *given, now[RUNNING], now[PRODUCT])
                    take()
                    again.set(again.get() + 1)

                def mend(before=before, words=words, held=held):
                    for n, word in enumerate(words):
                        held[VALUE, n].set(word.mended(before[VALUE, n], held[VALUE, n].get()))

                with code.when(failed(turn, seen, k) | refused.get(), rarely=True):
                    if mends:
                        beyond = Int(code.builder, out_of_lifted(seen, 0)) | refused.get()  # more than ties
                        with code.builder.if_else(beyond.value) as (whole, ties):
                            with whole:
                                redo()
                            with ties:
                                mend()
                    else:
                        redo()
            put({cell: x.get() for cell, x in held.items()})
        code.builder.ret(again.get().value)
        return code.builder.function


class _Turns(Driver):
    """Code of a tile: some turns at a time."""

    def begin(self):
        """No turn is done."""
        code, zero, draws = self.code, self.code.int(0), self.maker.stage.draws
        self.before = code.room(SLOTS * self.maker.sum.cells, self.maker.item) if draws else None
        self.known, self.rest, self.done = (code.variable(zero) for _ in range(3))
        self.known.set(code.int(self.maker.sum.counts or self.maker.order.exact))
        self.noted = code.variable(code.int(int(draws)))  # what is noted may differ from what was copied
        self.beside = self.noise, self.call["apart"] if draws else zero

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

    def count(self, state, left):
        """How many turns are next, of so many that are left; what there is to know before them."""
        code, maker, count = self.code, self.maker, left
        roundings = maker.piece.numbers[RUNNING] + maker.piece.numbers[PRODUCT]
        if maker.stage.draws:
            count = self.call["at_once"].least(left)
        elif maker.quick is not maker.brief or maker.sum.counts:
            count = left.least(min(QUICK, FULL // roundings) if maker.sum.counts else QUICK)
        if maker.sum.counts:
            self.count_roundings(state, count * roundings)
            return count
        with code.when(self.known.get().same(0)):
            self.known.set(self.all_inexact(state))
        if maker.stage.draws:
            return count
        few = (self.done.get() | 1).least(WATCH).least(count)
        return self.known.get().differs(0).choose(count, few)

    def some(self, a, b, state, chain, count):
        """So many turns, of operands and a state at these places."""
        code, call, maker = self.code, self.call, self.maker
        if maker.stage.draws:
            self.keep(state, self.before, maker.carried)
            with code.when(self.noted.get().differs(0)):
                self.keep(state, self.before, maker.noted)
        at, again = self.numbers(chain), code.variable(count)
        beside, apart = self.beside
        given = (
            a,
            b,
            beside,
            state,
            call["numbers"],
            0,
            maker.sum.rows,
            count,
            apart,
            call["mask"],
            at[RUNNING],
            at[PRODUCT],
        )
        known = self.known.get().differs(0)
        quickly = known & (self.done.get() >= self.rest.get())
        if maker.quick is maker.brief:
            quickly = code.truth(False)
        elif not maker.stage.draws:
            quickly = quickly & apart.same(0)
        if maker.asks:
            quickly = quickly & call["low_b"].differs(0)
        with code.builder.if_else(quickly.value) as (quick, careful):
            with quick:
                again.set(self._quickly(given, beside))
                with code.when(again.get() * VAIN > count * (maker.sum.rows // maker.together)):
                    self.rest.set(self.done.get() + REST)
            with careful:
                if maker.brief is maker.looking:
                    code.call(maker.looking, *given)
                else:
                    with code.builder.if_else(known.value) as (brief, looking):
                        with brief:
                            code.call(maker.brief, *given)
                        with looking:
                            code.call(maker.looking, *given)
        if not maker.stage.draws:
            return
        self.noted.set((call["chains"] > 1).long() | again.get())
        with code.when(again.get().differs(0), rarely=True):
            self._settle("turn", a, b, state, (count, call["apart"], call["mask"], at[RUNNING], at[PRODUCT]))

    def _settle(self, name, a, b, state, turns):
        """Outputs of all rows that are left open."""
        code, maker = self.code, self.maker
        with code.loop(maker.sum.rows) as row:
            opened = code.load(state, maker.place(LEFT_OPEN, row)).bits() < 0
            with code.when(Int(code.builder, opened.anywhere()), rarely=True):
                places = {"a": a, "b": b, "below": state}
                self.settle(name, row, places, state, turns, lambda cell: self._restore(state, cell))

    def _quickly(self, given, beside):
        """Turns that are done quickly; how often they had to be done with care."""
        code, call, maker = self.code, self.call, self.maker
        if not maker.roomy:
            return code.call(maker.quick, *given)
        again, (a, b, _, *rest, _, _) = code.variable(code.int(0)), given
        low_a, low_b = (self.least[which] + self.done.get() for which in "ab")
        given = a, b, code.at(call["lows"], low_a), *rest, low_b - low_a, 0
        with code.builder.if_else(call["roomy"].differs(0).value) as (roomy, tight):
            with roomy:
                again.set(code.call(maker.roomy, *given))
            with tight:
                again.set(code.call(maker.quick, *given))
        return again.get()

    def end(self, state, turns):
        """What is done once, after so many turns."""
        code, call, maker, draws = self.code, self.call, self.maker, self.maker.stage.draws
        number = (call["step"] + turns * call["apart"]) * maker.piece.numbers[RUNNING]
        if draws:
            self.random(RUNNING, number, number + 1, maker.masks()[RUNNING])
            self.keep(state, self.before, maker.slots)
            self.noted.set(code.int(1))
        operands, apart = (call["a"], call["b"]), (code.int(0), call["mask"], number, code.int(0))
        code.call(maker.last, *operands, self.noise, state, call["numbers"], 0, maker.sum.rows, 1, *apart)
        if draws:
            self._settle("last", *operands, state, (code.int(1), *apart))

    def _restore(self, state, cell):
        for slot in self.maker.slots:
            where = cell + self.maker.place(slot)
            self.code.put(self.code.get(self.before, where), state, where)


class _Grid(_Turns):
    """A grid of outputs, which begin and end here; chains that draw take products in turn, one after the other."""

    def sum(self, i, j):
        """Code of a tile."""
        code, call, maker = self.code, self.call, self.maker
        turns, joins, size = call["turns"], maker.sum.joins, SLOTS * maker.sum.cells
        together = joins is not None and maker.stage.draws
        own = code.room(size * (segments.MOST_CHAINS if together else 1), maker.item)
        self.begin()
        panels, product = call["panels"], self.product
        self.least = {
            "a": (product * panels + i) * turns,
            "b": call["low_b"] + (product * (call["tiles"] // panels) + j) * turns,
        }
        with code.loop(call["chains"]) as chain:
            self.begin_with(code.at(own, chain * size), i, j)
        if together:
            self.turns(own, i, j, call["length"])
            segments.join_drawn(self, own, size)
        elif joins:
            segments.join(self, own, i, j, lambda stop: self.turns(own, i, j, stop))
        else:
            self.begin_with_c(own)
            self.turns(own, i, j, call["length"])
            if maker.last:
                self.end(own, turns)
        if maker.sum.counts:
            self.take_counts(own)
        self.tell(own, self.outputs)

    def turns(self, states, i, j, stop):
        """Code of products before this one that are not done, of chains whose states follow each other."""
        code, call, maker = self.code, self.call, self.maker
        rows, chains, turns = maker.sum.rows, call["chains"], call["turns"]
        with code.while_(lambda: self.done.get() * chains < stop):
            if maker.stage.draws:
                self.draw()
            count = code.variable(code.int(0))
            with code.loop(chains) as chain:
                done = self.done.get()
                left = (stop - chain + chains - 1) // chains - done
                with code.when(left > 0):
                    state = code.at(states, chain * (SLOTS * maker.sum.cells))
                    count.set(self.count(state, left))
                    at = code.get(call["ends"], chain) + done if maker.sum.joins and maker.stage.draws else done
                    a = code.at(call["a"], (i * turns + at) * rows)
                    b = code.at(call["b"], (j * turns + at) * maker.sum.lanes)
                    self.some(a, b, state, chain, count.get())
            self.done.set(self.done.get() + (call["at_once"] if maker.stage.draws else count.get()))


class _Panels(_Turns):
    """Outputs that have operands of their own, on their way: their state is with the caller, who goes on with it."""

    def sum(self, i, j):
        """Code of some turns of a panel."""
        code, call, maker = self.code, self.call, self.maker
        turns, size = call["turns"], SLOTS * maker.sum.cells
        recorded = call["records"].differs(0).long()
        state = code.at(call["state"], i * size)
        a, b = self.places()
        self.begin()
        with code.when(call["begun"].same(0)):
            self.begin_with(state, i, j)
            self.begin_with_c(state)
        with code.while_(lambda: self.done.get() < turns):
            if maker.stage.draws:
                self.draw()
            done = self.done.get()
            count = self.count(state, turns - done)
            now = (code.at(x, done * strides.product) for x, strides in zip((a, b), maker.strides, strict=True))
            if not maker.stage.draws:
                self.beside = code.at(call["kept"], done * size), recorded * size
            self.some(*now, state, code.int(0), count)
            if maker.stage.draws:
                with code.when(call["records"].differs(0)):
                    self.keep(state, code.at(call["kept"], done * size), maker.slots)
            if maker.last:
                with code.when(call["records"].differs(0)), code.loop(count) as turn:
                    self.end(code.at(call["kept"], (done + turn) * size), done + turn + 1)
            self.done.set(self.done.get() + count)
        if maker.last:
            with code.when(code.there(call["values"]) & call["records"].same(0)):
                self.end(state, turns)
        if maker.sum.counts:
            self.take_counts(state)
        self.tell_own(state)
