"""The one loop: tiles of outputs, summed in the order, with the arithmetic, told by the observer and laid out as a description says.

What differs between sums is in the pieces. Here is what all have: state in memory, rows one after the other, what goes wrong done again.
"""

from llvmlite import ir

from ..accumulate import PRODUCT, RUNNING
from ..fast import has_feature
from ..steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    LEFT_OPEN,
    LOWEST_BIT,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    SWAMPED,
    UNDERFLOW,
    VALUE,
    Numbers,
)
from ..tiles import flags_of
from ..vectors import LANES, Vector
from . import arithmetics, noise
from .language import BYTE, DOUBLE, LONG, SINGLE, WORD, Code, Int
from .layouts import LAYOUTS
from .observers import Counts, Flags, Nobody
from .orders import ORDERS

POINTERS = {
    "a": SINGLE, "b": SINGLE, "c": SINGLE, "values": SINGLE, "flags": BYTE, "counts": WORD, "extremes": SINGLE, "numbers": SINGLE,
    "integers": LONG, "floats": DOUBLE, "again": BYTE,
}  # fmt: skip
FIELDS = (
    *POINTERS, "first", "last", "tiles", "panels", "length", "wide", "rows", "columns", "has_c", "nan_flags",
    "index", "row_stride", "column_stride", "width", "key", "stream",
)  # fmt: skip
"""What a call hands over, as an array of words of 64 bits: addresses, then numbers."""
ADDRESS = "width", "key", "stream"
DEEPEST = 40
"""Levels of a stack of subtrees: so many leaves as fill more do not fit into memory."""
FULL = (1 << COUNT_BITS[32]) - 1
"""Additions that a word of counts holds."""
BEGINS = {LEAST: float("inf"), GREATEST: float("-inf")}
SAVED = COUNTED_SLOTS
"""Beside the slots that a sum has: what stood in VALUE before a row was done again."""


class Turn:
    """What an arithmetic sees of a turn of one row: operands, random bits, numbers of the call."""

    def __init__(self, code, maker, places, row, at, numbers):
        self.code, self.builder, self.lanes, self.row = code, code.builder, code.lanes, row
        self._maker, self._places, self._at, self._numbers = maker, places, at, numbers
        self._known = {}
        self.directed = has_feature("avx512f") and code.lanes == LANES_OF_DIRECTED
        self.fuses = has_feature("fma")

    def _operand(self, which, strides, place):
        code, pointer = self.code, self._places[which]
        where = self.row * strides.row + place * strides.product
        if strides.column and code.lanes > 1:
            return code.load(pointer, where)
        return code.splat(code.get(pointer, where))

    def a(self, place):
        """The first factors of a product, or numbers."""
        return self._operand("a", self._maker.strides[0], place)

    def b(self, place):
        """The second."""
        return self._operand("b", self._maker.strides[1], place)

    def below(self):
        """What a subtree before this one added up to."""
        return self.code.load(self._places["below"], self.row * self._maker.sum.lanes)

    def noise(self, site, number):
        """Random bits of a rounding, from its site's ring."""
        first, size = self._maker.rings[site]
        plane = ((self._at[site] + number) & (size - 1)) + first
        return self.code.load(self._places["noise"], (plane * self._maker.sum.rows + self.row) * self._maker.sum.lanes)

    def parameter(self, name):
        """A number of the call, in every lane."""
        if name not in self._known:
            self._known[name] = self.code.splat(self.code.get(self._numbers, Numbers._fields.index(name)))
        return self._known[name]

    def integer(self, name):
        """One that is an integer in disguise."""
        return self.parameter(name).bits()


LANES_OF_DIRECTED = max(LANES.values())


class Lone(Turn):
    """A turn of one output, whose roundings have all random bits."""

    def __init__(self, code, maker, places, at, call):
        super().__init__(code, maker, places, code.int(0), at, call["numbers"])
        self._call = call

    def again(self, site, x, y, number):
        """(x + y or x * y rounded, flags), by the plain functions."""
        code, call, builder = self.code, self._call, self.builder
        numbers = [builder.fpext(code.only(z), DOUBLE) for z in (x, y)]
        bits = code.only(self.noise(site, number).bits())
        arguments = [
            code.int(site).value, *numbers, bits, call["output"].value, (self._at[site] + number).value, call["integers"], call["floats"],
            *(call[name].value for name in ADDRESS), call["total"],
        ]  # fmt: skip
        kind = ir.FunctionType(WORD, [call["flags"].type, BYTE.as_pointer(), *(z.type for z in arguments)])
        builder.call(
            builder.bitcast(call["again"], kind.as_pointer()),
            [call["flags"], ir.Constant(BYTE.as_pointer(), None), *arguments],
        )
        found = code.splat(builder.fptrunc(builder.load(call["total"]), SINGLE))
        return found, code.splat(builder.trunc(builder.load(call["flags"]), WORD))


class Maker:
    """All code of a sum, in an LLVM module: the function `loop` takes FIELDS."""

    def __init__(self, what):
        self.sum, self.stage = what, what.stage
        self.order = ORDERS[what.order](what.stage.draws)
        self.observer = Counts(what.stage.of_nan) if what.counts else Flags()
        self.silent = self.observer if what.counts else Nobody()
        self.strides = LAYOUTS[what.layout].strides(what.rows, what.lanes)
        self.carried = (*self.order.slots, *self.observer.slots)
        self.noted = (INEXACT, *(self.stage.options if self.stage.draws else self.stage.manner).slots)
        told = (ROUNDED, SWAMPED) * what.counts
        self.slots = {slot: number for number, slot in enumerate((*self.carried, *self.noted, *told, SAVED))}
        self.rings = {PRODUCT: (0, noise.ROUNDINGS), RUNNING: (noise.ROUNDINGS, 2 * noise.ROUNDINGS)}
        self.module = ir.Module("sums")
        pieces = {"subtree": self.order.subtree, "leaf": self.order.leaf, "join": self.order.join}
        if self.stage.draws:
            self.fill = self._function("fill", ir.VoidType(), WORD.as_pointer(), *[LONG] * 8)
            noise.fill(self.fill, what.rows, what.lanes)
            self.turns = {name: self._quick_rows(name, piece) for name, piece in pieces.items()}
            self.whole = {name: self._whole(name, piece) for name, piece in pieces.items()}
        else:
            self.turns = {name: self._careful_rows(name, piece, self.observer) for name, piece in pieces.items()}
            self.brief = (
                self.turns
                if what.counts
                else {name: self._careful_rows(f"brief_{name}", piece, self.silent) for name, piece in pieces.items()}
            )
        _Tiles(self)

    def _function(self, name, returned, *kinds):
        made = ir.Function(self.module, ir.FunctionType(returned, kinds), name)
        made.linkage = "internal"
        made.attributes.add("noinline")
        return made

    def place(self, slot, row=0):
        """Where a row's vector of a slot lies in a tile's state."""
        return row * self.sum.lanes + self.slots[slot] * self.sum.cells

    # -- rows of a tile --------------------------------------------------------------------------------------------

    def _row(self, turn, piece, arithmetic, observer, state):
        """A turn of a row: `state` after the piece's step."""
        piece.step(arithmetic(turn, self.stage, observer, state), state)

    def _opened(self, name, returned):
        """(code, places of operands, turns of sites, state, numbers, watch) of a function of rows."""
        pointer = SINGLE.as_pointer()
        function = self._function(name, returned, *[pointer] * 6, *[LONG] * 3)
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
            turn = Turn(code, self, places, row, at, numbers)
            self._row(turn, piece, arithmetics.careful(self.stage), observer, own)
            for slot in (*self.carried, *noted):
                code.store(own[slot], state, self.place(slot, row))
        code.builder.ret_void()
        return code.builder.function

    def _quick_rows(self, name, piece):
        """Code of rows that are done quickly, and with care where that may be wrong; it returns rows of which an output was left open, as bits."""
        code, places, at, state, numbers, watch = self._opened(name, LONG)
        stage, nothing, opened = self.stage, code.everywhere(0.0), code.variable(code.int(0))
        begins = {
            slot: code.everywhere(bits & 0xFFFFFFFF, WORD).floats() for slot, bits in arithmetics.watches(stage).items()
        }
        with code.loop(self.sum.rows) as row:
            before = {slot: code.load(state, self.place(slot, row)) for slot in self.carried}
            own = before | begins
            turn = Turn(code, self, places, row, at, numbers)
            self._row(turn, piece, arithmetics.quick(stage), self.silent, own)
            for slot in self.carried:
                code.store(own[slot], state, self.place(slot, row))
            seen = {slot: own[slot].floats() for slot in begins}
            wrong = Int(code.builder, arithmetics.went_wrong(stage, self.sum.counts)(turn, seen))
            with code.when(wrong | watch.differs(0), rarely=True):
                own = before | dict.fromkeys(self.noted, nothing)
                again = Turn(code, self, places, row, at, numbers)
                self._row(again, piece, arithmetics.careful(stage), self.observer, own)
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

    def _whole(self, name, piece):
        """Code of one output again, from its own places in operands, noise and state on."""
        pointer = SINGLE.as_pointer()
        kinds = [LONG.as_pointer(), DOUBLE.as_pointer(), BYTE.as_pointer(), *[LONG] * 6]
        function = self._function("whole_" + name, ir.VoidType(), *[pointer] * 6, *kinds)
        code = Code(function, 1)
        a, b, random, below, state, numbers, integers, floats, again = function.args[:9]
        running, product, output, *address = (Int(code.builder, x) for x in function.args[9:])
        call = {"numbers": numbers, "integers": integers, "floats": floats, "again": again, "output": output}
        call |= dict(zip(ADDRESS, address, strict=True)) | {"total": code.room(1, DOUBLE), "flags": code.room(1, LONG)}
        places = {"a": a, "b": b, "noise": random, "below": below}
        turn = Lone(code, self, places, {RUNNING: running, PRODUCT: product}, call)
        slots = *self.carried, *(slot for slot in self.noted if slot != LEFT_OPEN)
        own = {slot: code.load(state, self.place(SAVED if slot == VALUE else slot)) for slot in slots}
        self._row(turn, piece, arithmetics.Whole, self.observer, own)
        for slot in slots:
            code.store(own[slot], state, self.place(slot))
        code.builder.ret_void()
        return function


class _Tiles:
    """Code of the loop over tiles: subtrees, leaves that are left over, and joins of what they complete, on a stack."""

    def __init__(self, maker):
        self.maker, what = maker, maker.sum
        function = ir.Function(maker.module, ir.FunctionType(ir.VoidType(), [LONG.as_pointer()]), "loop")
        self.code = code = Code(function, what.lanes)
        self.call = {name: code.get(function.args[0], number) for number, name in enumerate(FIELDS)}
        for name, kind in POINTERS.items():
            self.call[name] = code.builder.inttoptr(self.call[name].value, kind.as_pointer())
        self.state, self.stack = (code.room(count * what.cells) for count in (len(maker.slots), DEEPEST))
        self.noise = code.room(sum(size for _, size in maker.rings.values()) * what.cells if maker.stage.draws else 1)
        layout, length = LAYOUTS[what.layout], self.call["length"]
        with code.loop(self.call["last"], self.call["first"]) as unit:
            i, j = layout.tile(unit, self.call["panels"])
            panels = dict(zip("ab", layout.panels(i, j), strict=True))
            self.operands = {
                name: (code.at(self.call[name], panels[name] * length * strides.product), strides)
                for name, strides in zip("ab", maker.strides, strict=True)
            }
            self.corner = (
                self.call["index"]
                + i * what.rows * self.call["row_stride"]
                + j * what.lanes * self.call["column_stride"]
            )
            self.outputs = i * what.rows * self.call["wide"] + j * what.lanes
            self._begin(i, j)
            self._sum()
            self._end()
        code.builder.ret_void()

    def _begin(self, i, j):
        """Nothing has happened; outputs beyond the last are no reason to look, and count as inexact."""
        code, call, maker = self.code, self.call, self.maker
        rows, lanes = maker.sum.rows, maker.sum.lanes
        with code.loop(rows) as row:
            for slot in maker.slots:
                code.store(code.everywhere(BEGINS.get(slot, 0.0)), self.state, maker.place(slot, row))
        beyond = ((i + 1) * rows > call["rows"]) | ((j + 1) * lanes > call["columns"])
        with code.when(beyond, rarely=True), code.loop(rows) as row, code.loop(lanes) as lane:
            outside = (i * rows + row >= call["rows"]) | (j * lanes + lane >= call["columns"])
            with code.when(outside):
                code.put(Int(code.builder, ir.Constant(SINGLE, 1.0)), self.state, maker.place(INEXACT, row) + lane)

    def _all_inexact(self):
        """1 where nothing is left to look for, of outputs whose additions are not counted."""
        code, maker = self.code, self.maker
        least = code.variable(code.everywhere(0xFFFFFFFF, WORD))
        with code.loop(maker.sum.rows) as row:
            least.set(least.get().at_most(code.load(self.state, maker.place(INEXACT, row)).bits()))
        return Int(code.builder, least.get().is_zero().nowhere()).long()

    def _sum(self):
        code, call, maker, order = self.code, self.call, self.maker, self.maker.order
        self.known = code.variable(code.int(maker.sum.counts))
        self.level, self.step, self.filled, self.counted = (code.variable(code.int(0)) for _ in range(4))
        leaves = order.subtree.products
        whole, rest = call["length"] // leaves, call["length"] % leaves
        with code.loop(whole) as turn:
            self._random_products(turn * leaves)
            self._leaves("subtree", turn * leaves)
            self._joins((turn + 1).trailing_zeros())
            self._push()
        with code.loop(rest) as turn:
            product = whole * leaves + turn
            if maker.stage.draws:
                with code.when((product % noise.ROUNDINGS).same(0)):
                    self._random_products(product)
            self._leaves("leaf", product)
            self._joins((turn + 1).trailing_zeros())
            self._push()
        self.level.set(self.level.get() - 1)  # the last subtree stands in VALUE
        self._joins(self.level.get())
        with code.when(call["has_c"].differs(0)):
            self.code.copy(code.at(self.state, maker.place(VALUE)), self.stack, maker.sum.cells)
            with code.loop(maker.sum.rows) as row:
                code.store(code.load(call["c"], self.outputs + row * call["wide"]), self.state, maker.place(VALUE, row))
            self.level.set(code.int(1))
            self._joins(code.int(1))
        if maker.sum.counts:
            self._take_counts()

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
        operands = [code.at(pointer, product * strides.product) for pointer, strides in self.operands.values()]
        if piece.numbers[RUNNING]:
            self._random_sums(piece.numbers[RUNNING])
        self._run(name, operands, self.state, product, piece)
        if not maker.sum.counts:
            self.known.set(self.known.get() | self._all_inexact())

    def _joins(self, count):
        """What so many subtrees before this one add up to."""
        with self.code.loop(count):
            self.level.set(self.level.get() - 1)
            self._random_sums(1)
            piece = self.maker.order.join
            self._run("join", [self.state, self.state], self._below(self.level.get()), self.code.int(0), piece)

    def _run(self, name, operands, below, product, piece):
        code, maker, builder = self.code, self.maker, self.code.builder
        if maker.sum.counts:
            self._count(piece.numbers[RUNNING] + piece.products)
        watch = self.known.get().same(0).long()
        arguments = [*operands, self.noise, below, self.state, self.call["numbers"], watch, self.step.get(), product]
        if maker.stage.draws:
            self._settle(name, code.call(maker.turns[name], *arguments), operands, below, product)
        elif maker.sum.counts:
            code.call(maker.turns[name], *arguments)
        else:
            with builder.if_else(watch.differs(0).value) as (looking, briefly):
                with looking:
                    code.call(maker.turns[name], *arguments)
                with briefly:
                    code.call(maker.brief[name], *arguments)
        self.step.set(self.step.get() + piece.numbers[RUNNING])

    def _settle(self, name, opened, operands, below, product):
        """Outputs that random bits after the first 16 decide."""
        code, maker, call = self.code, self.maker, self.call
        lanes = maker.sum.lanes
        fixed = [call[name] for name in ("numbers", "integers", "floats", "again")]
        address = [call[name] for name in ADDRESS]
        with (
            code.when(opened.differs(0), rarely=True),
            code.loop(maker.sum.rows) as row,
            code.when((opened >> row & 1).differs(0)),
            code.loop(lanes) as lane,
        ):
            cell = row * lanes + lane
            mark = cell + maker.place(LEFT_OPEN)
            with code.when(code.get(code.as_words(self.state), mark) < 0):
                own = [
                    code.at(pointer, row * strides.row + lane * strides.column)
                    for pointer, strides in zip(operands, maker.strides, strict=True)
                ]
                own += [code.at(pointer, cell) for pointer in (self.noise, below, self.state)]
                output = self.corner + row * call["row_stride"] + lane * call["column_stride"]
                code.call(maker.whole[name], *own, *fixed, self.step.get(), product, output, *address)
                code.put(Int(code.builder, ir.Constant(SINGLE, 0.0)), self.state, mark)

    # -- random numbers, counts ------------------------------------------------------------------------------------

    def _draw(self, site, block, plane):
        code, call = self.code, self.call
        where = code.as_words(code.at(self.noise, plane * self.maker.sum.cells))
        strides = call["row_stride"], call["column_stride"]
        code.call(self.maker.fill, where, site, block, self.corner, *strides, *(call[x] for x in ADDRESS))

    def _random_products(self, product):
        """Those of the next eight products."""
        if self.maker.stage.draws and self.maker.order.multiplies:
            self._draw(PRODUCT, product // noise.ROUNDINGS, self.code.int(0))

    def _random_sums(self, count):
        """Those of so many additions."""
        if not self.maker.stage.draws:
            return
        code, (first, size) = self.code, self.maker.rings[RUNNING]
        with code.when(self.step.get() + count > self.filled.get()):
            filled = self.filled.get()
            self._draw(RUNNING, filled // noise.ROUNDINGS, (filled & (size - 1)) + first)
            self.filled.set(filled + noise.ROUNDINGS)

    def _count(self, count):
        """So many roundings are about to be counted."""
        code = self.code
        with code.when(self.counted.get() > FULL - count):
            self._take_counts()
            self.counted.set(code.int(0))
        self.counted.set(self.counted.get() + count)

    def _take_counts(self):
        """Out of words that hold three counts. What was swamped need not be inexact: it may have become a subnormal that reads as zero."""
        code, maker = self.code, self.maker
        with code.loop(maker.sum.rows) as row:

            def words(slot, row=row):
                return code.load(self.state, maker.place(slot, row)).bits()

            taken = words(COUNTS).logical_right(LOWEST_BIT)
            for number, slot in enumerate((ROUNDED, SWAMPED)):
                some = taken.logical_right(number * COUNT_BITS[32]) & FULL
                code.store(words(slot) + some, self.state, maker.place(slot, row))
            code.store(words(INEXACT) | taken & ~(FULL << COUNT_BITS[32]), self.state, maker.place(INEXACT, row))
            code.store(code.everywhere(0.0), self.state, maker.place(COUNTS, row))

    def _end(self):
        """Sums, flags and counts, to where they belong."""
        code, call, maker = self.code, self.call, self.maker
        octets = ir.VectorType(BYTE, maker.sum.lanes)
        of_nan = code.splat(call["nan_flags"].cut(WORD))
        flagged = [slot for slot in (VALUE, INEXACT, UNDERFLOW, OVERFLOW) if slot in maker.slots]
        with code.loop(maker.sum.rows) as row:
            where = self.outputs + row * call["wide"]
            state = {slot: code.load(self.state, maker.place(slot, row)) for slot in maker.slots}
            code.store(state[VALUE], call["values"], where)
            flags = flags_of({slot: state[slot] for slot in flagged}, of_nan)
            code.store(Vector(code.builder, code.builder.trunc(flags.value, octets)), call["flags"], where)
            if maker.sum.counts:
                size = call["tiles"] * maker.sum.cells
                for number, slot in enumerate((OVERFLOWED, ROUNDED, SWAMPED)):
                    code.store(state[slot].bits(), call["counts"], where + size * number)
                for number, slot in enumerate((LEAST, GREATEST)):
                    code.store(state[slot], call["extremes"], where + size * number)
