"""Sums in pairs: subtrees, leaves that are left over, and joins of what they complete, on a stack; rows one after the other."""

from llvmlite import ir

from ..accumulate import PRODUCT, RUNNING
from ..steps import INEXACT, LEFT_OPEN, VALUE
from . import arithmetics, segments
from .language import LONG, Code, Int
from .loop import SAVED, SLOTS, Driver, Maker, Turn

DEEPEST = 40
"""Levels of a stack of subtrees: so many leaves as fill more do not fit into memory."""


class Trees(Maker):
    """All code of a sum in pairs."""

    def __init__(self, what):
        super().__init__(what)
        pieces = {"subtree": self.order.subtree, "leaf": self.order.leaf, "join": self.order.join}
        if self.stage.draws:
            self.turns = {name: self._quick_rows(name, piece) for name, piece in pieces.items()}
            self.whole_turns = {name: self.whole(name, piece) for name, piece in pieces.items()}
        else:
            self.turns = {name: self._careful_rows(name, piece, self.observer) for name, piece in pieces.items()}
            self.brief = (
                self.turns
                if what.counts
                else {name: self._careful_rows(f"brief_{name}", piece, self.silent) for name, piece in pieces.items()}
            )
        _Tiles(self)

    def _opened(self, name, returned):
        """(code, places of operands, turns of sites, state, numbers, watch) of a function of rows."""
        function = self.function(name, returned, *[self.item.as_pointer()] * 6, *[LONG] * 3)
        code = Code(function, self.sum.lanes)
        a, b, random, below, state, numbers = function.args[:6]
        watch, running, product = (Int(code.builder, x) for x in function.args[6:])
        places = {"a": a, "b": b, "noise": random, "below": below}
        return code, places, {RUNNING: running, PRODUCT: product}, state, numbers, watch

    def _careful_rows(self, name, piece, observer):
        """Code of rows that are right at once."""
        code, places, at, state, numbers, _ = self._opened(name, ir.VoidType())
        noted = self.noted if observer.looks else [slot for slot in self.noted if slot != INEXACT]
        with code.loop(self.sum.rows) as row:
            own = {slot: code.load(state, self.place(slot, row)) for slot in (*self.carried, *noted)}
            turn = Turn(code, self, places, row, at, numbers, self.masks())
            self.row(turn, piece, arithmetics.careful(self.stage), observer, own)
            for slot in (*self.carried, *noted):
                code.store(own[slot], state, self.place(slot, row))
        code.builder.ret_void()
        return code.builder.function

    def _quick_rows(self, name, piece):
        """Code of rows that are done quickly, and with care where that may be wrong; it returns rows of which an output was left open, as bits."""
        code, places, at, state, numbers, watch = self._opened(name, LONG)
        stage, nothing, opened = self.stage, code.everywhere(0.0, self.item), code.variable(code.int(0))
        unfit, quick = arithmetics.unfit(stage), arithmetics.quick(stage, self.order, self.sum.counts)
        begins = self.watched(code, quick.watches(stage, self.sum.counts, False))
        with code.loop(self.sum.rows) as row:
            before = {slot: code.load(state, self.place(slot, row)) for slot in self.carried}
            own = before | begins
            turn = Turn(code, self, places, row, at, numbers, self.masks())
            self.row(turn, piece, quick, self.silent, own)
            for slot in self.carried:
                code.store(own[slot], state, self.place(slot, row))
            seen = {slot: own[slot].floats() for slot in begins}
            given = [before[slot] for slot in piece.goes_on] + [turn.below() for _ in piece.goes_on]
            wrong = Int(code.builder, quick.went_wrong(turn, stage, seen, False, self.sum.counts))
            if unfit is not None and given:
                wrong = wrong | Int(code.builder, unfit(turn, given))
            with code.when(wrong | watch.differs(0), rarely=True):
                own = before | dict.fromkeys(self.noted, nothing)
                again = Turn(code, self, places, row, at, numbers, self.masks())
                self.row(again, piece, arithmetics.careful(stage), self.observer, own)
                is_open = own[LEFT_OPEN].bits() < 0
                code.store(before[VALUE], state, self.place(SAVED, row))
                code.store(own[VALUE], state, self.place(VALUE, row))
                code.store(own[LEFT_OPEN], state, self.place(LEFT_OPEN, row))
                for slot in self.carried:
                    if slot != VALUE:
                        code.store(is_open.choose(before[slot].bits(), own[slot].bits()), state, self.place(slot, row))
                for slot in self.noted:
                    if slot != LEFT_OPEN:
                        so_far = code.load(state, self.place(slot, row)).bits()
                        code.store(so_far | is_open.choose(0, own[slot].bits()), state, self.place(slot, row))
                opened.set(opened.get() | Int(code.builder, is_open.anywhere()).long() << row)
        code.builder.ret(opened.get().value)
        return code.builder.function


class _Tiles(Driver):
    """Code of a tile: its products in pairs."""

    def sum(self, i, j):
        """Code of a tile."""
        code, call, maker = self.code, self.call, self.maker
        self.state = code.room(SLOTS * maker.sum.cells, maker.item)
        self.stack = code.room(DEEPEST * maker.sum.cells, maker.item)
        self.operands = dict(zip("ab", self.places(), strict=True))
        self.begin_with(self.state, i, j)
        self.known = code.variable(code.int(maker.sum.counts))
        self.level, self.step, self.done = (code.variable(code.int(0)) for _ in range(3))
        if maker.sum.joins:
            segments.join(self, self.state, i, j, self.products)
        else:
            self.products(call["turns"])
            with code.when(call["has_c"].differs(0)):
                code.copy(code.at(self.state, maker.place(VALUE)), self.stack, maker.sum.cells)
                self.begin_with_c(self.state)
                self.level.set(code.int(1))
                self._joins(code.int(1))
        if maker.sum.counts:
            self.take_counts(self.state)
        self.tell(self.state, self.outputs)

    def products(self, stop):
        """Code of products before this one that are not done: their sum is in VALUE."""
        code, leaves, first = self.code, self.maker.order.subtree.products, self.done.get()
        whole, rest = (stop - first) // leaves, (stop - first) % leaves
        with code.loop(whole) as turn:
            product = first + turn * leaves
            self._random_products(product, leaves)
            self._leaves("subtree", product)
            self._joins((turn + 1).trailing_zeros())
            self._push()
        with code.loop(rest) as turn:
            product = first + whole * leaves + turn
            self._random_products(product, 1)
            self._leaves("leaf", product)
            self._joins((turn + 1).trailing_zeros())
            self._push()
        self.level.set(self.level.get() - 1)  # the last subtree stands in VALUE
        self._joins(self.level.get())
        self.done.set(stop)

    def _push(self):
        code, maker = self.code, self.maker
        code.copy(code.at(self.state, maker.place(VALUE)), self._below(self.level.get()), maker.sum.cells)
        self.level.set(self.level.get() + 1)

    def _below(self, level):
        return self.code.at(self.stack, level * self.maker.sum.cells)

    def _leaves(self, name, product):
        """A subtree, or a leaf, in VALUE."""
        code, maker = self.code, self.maker
        piece = getattr(maker.order, name)
        places = {
            which: code.at(self.operands[which], product * strides.product)
            for which, strides in zip("ab", maker.strides, strict=True)
        }
        self._run(name, places | {"below": self.state}, product, piece)
        if not maker.sum.counts:
            self.known.set(self.known.get() | self.all_inexact(self.state))

    def _joins(self, count):
        """What so many subtrees before this one add up to."""
        with self.code.loop(count):
            self.level.set(self.level.get() - 1)
            places = {"a": self.state, "b": self.state, "below": self._below(self.level.get())}
            self._run("join", places, self.code.int(0), self.maker.order.join)

    def _random_products(self, product, count):
        if self.maker.stage.draws and self.maker.order.multiplies:
            self.random(PRODUCT, product, product + count, self.maker.masks()[PRODUCT])

    def _run(self, name, places, product, piece):
        code, maker, builder = self.code, self.maker, self.code.builder
        if maker.sum.counts:
            self.count_roundings(self.state, piece.numbers[RUNNING] + piece.products)
        watch = self.known.get().same(0).long()
        pointers = places["a"], places["b"], self.noise, places["below"], self.state
        arguments = [*pointers, self.call["numbers"], watch, self.step.get(), product]
        if maker.stage.draws:
            if piece.numbers[RUNNING]:
                step = self.step.get()
                self.random(RUNNING, step, step + piece.numbers[RUNNING], maker.masks()[RUNNING])
            opened = code.call(maker.turns[name], *arguments)
            turns = code.int(1), code.int(1), code.int(0), self.step.get(), product
            with (
                code.when(opened.differs(0), rarely=True),
                code.loop(maker.sum.rows) as row,
                code.when((opened >> row & 1).differs(0)),
            ):
                self.settle(name, row, places, self.state, turns, self._restore)
        elif maker.sum.counts:
            code.call(maker.turns[name], *arguments)
        else:
            with builder.if_else(watch.differs(0).value) as (looking, briefly):
                with looking:
                    code.call(maker.turns[name], *arguments)
                with briefly:
                    code.call(maker.brief[name], *arguments)
        self.step.set(self.step.get() + piece.numbers[RUNNING])

    def _restore(self, cell):
        """What a join adds to."""
        before = self.code.get(self.state, cell + self.maker.place(SAVED))
        self.code.put(before, self.state, cell + self.maker.place(VALUE))
