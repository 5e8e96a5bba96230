"""What the loops of all orders have in common: what an arithmetic sees of a turn, code of one output again, random numbers, counts."""

import numpy as np
from llvmlite import ir

from ..accumulate import PRODUCT, RUNNING
from ..fast import has_feature
from ..jit import opaque
from ..steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    INEXACT,
    INVALID,
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
from ..vectors import LANES, Vector
from . import arithmetics, noise
from .language import BYTE, CACHE_LINE, DOUBLE, LONG, SINGLE, WORD, Code, Int
from .layouts import LAYOUTS
from .observers import Counts, Flags, Nobody
from .orders import ERRORS, ORDERS
from .writing import Writer

POINTERS = {
    "a": SINGLE, "b": SINGLE, "c": SINGLE, "values": BYTE, "flags": BYTE, "counts": WORD, "extremes": SINGLE, "numbers": SINGLE,
    "integers": LONG, "floats": DOUBLE, "again": BYTE, "fill": BYTE, "state": SINGLE, "kept": SINGLE, "lows": SINGLE, "spans_a": DOUBLE,
    "spans_b": DOUBLE, "low_c": DOUBLE, "scales_a": WORD, "scales_b": WORD, "joining": WORD, "ends": LONG, "written": LONG,
}  # fmt: skip
"""What is at places that a call hands over; results are codes, of as many bytes as `written` says."""
FIELDS = (
    *POINTERS, "first", "last", "tiles", "panels", "length", "wide", "rows", "columns", "has_c", "nan_flags",
    "infinity_flags", "index", "row_stride", "column_stride", "width", "key", "stream", "step", "apart", "chains", "turns", "at_once",
    "mask", "begun", "records", "roomy", "low_b", "a_size", "b_size", "c_size", "size", "product_stride", "near", "stretches",
    "parts", "tall",
)  # fmt: skip
"""What a call hands over, as an array of words of 64 bits: addresses, then numbers."""
ADDRESS = "width", "key", "stream"
FULL = (1 << COUNT_BITS[32]) - 1
"""Additions that a word of counts holds."""
BEGINS = {LEAST: float("inf"), GREATEST: float("-inf")}
SAVED = COUNTED_SLOTS
"""Beside the slots that a sum has: what stood in VALUE before a row was done again."""
SLOTS = COUNTED_SLOTS + 1
FEW_NUMBERS, MANY_NUMBERS = 16, 64
"""Places for random numbers of a site: of turns that take one each, and of those of several chains."""


def flags_of(state, nan_flags):
    """Outputs' flags from a tile's state at the end, of which not every tile notes UNDERFLOW and OVERFLOW."""
    value, none = state[VALUE], nan_flags & 0
    flags = state[INEXACT].bits().nonzero().choose(1, none)
    if UNDERFLOW in state:
        flags = flags | state[UNDERFLOW].bits().nonzero().choose(3, none)
    if INVALID in state:
        invalid, over = (state[slot].bits().nonzero() for slot in (INVALID, OVERFLOW))
        return flags | over.choose(5, none) | invalid.choose(16, none)
    over = value.magnitude() >= np.inf
    if OVERFLOW in state:
        over = over | state[OVERFLOW].bits().nonzero()
    flags = flags | over.choose(5, none)
    return value.differs(value).choose(flags | nan_flags, flags)


def counted_apart(words):
    """Of words that hold three counts: (slot -> additions, bits where products were inexact)."""
    bits, taken = COUNT_BITS[words.element.width], words.logical_right(LOWEST_BIT)
    full = (1 << bits) - 1
    some = {slot: taken.logical_right(number * bits) & full for number, slot in enumerate((ROUNDED, SWAMPED))}
    return some, taken & ~(full << bits)


class Seen:
    """What code that is being written sees of a call."""

    lift = 1.0

    def parameter(self, name):
        """A number of the call."""
        raise NotImplementedError

    def integer(self, name):
        """One that is an integer in disguise."""
        return self.parameter(name).bits()


class Turn(Seen):
    """What an arithmetic sees of a turn of one row: operands, random bits, numbers of the call. Sums may be times a power of two, the `lift`."""

    def __init__(self, code, maker, places, row, at, numbers, masks):
        self.code, self.builder, self.lanes, self.row = code, code.builder, code.lanes, row
        self._maker, self._places, self._at, self._numbers, self._masks = maker, places, at, numbers, masks
        self._known = {}
        self.directed = is_directed(code.lanes)
        self.fuses = has_feature("fma")

    def _operand(self, which, strides, place):
        code, pointer = self.code, self._places[which]
        where = code.int(self.row) * strides.row + place * strides.product
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
        return self.code.load(self._places["below"], self.code.int(self.row) * self._maker.sum.lanes)

    def noise(self, site, number):
        """Random bits of a rounding, from its site's ring."""
        plane = ((self._at[site] + number) & self._masks[site]) + self._maker.rings[site][0]
        where = (plane * self._maker.sum.rows + self.row) * self._maker.sum.lanes
        words = self.code.load(self.code.as_words(self._places["noise"]), where)
        return words.long() if self._maker.stage.double else words

    def decided(self, up, near, fraction, error):
        """(up, near) of a rounding, for whoever has the random bits after the first 16 at hand: nobody here."""
        return up, near

    def parameter(self, name):
        """A number of the call, in every lane."""
        if name not in self._known:
            self._known[name] = self.code.splat(self.code.get(self._numbers, Numbers._fields.index(name)))
        return self._known[name]


def is_directed(lanes):
    """Whether the CPU rounds vectors of so many numbers in directions: those of 512 bits."""
    return has_feature("avx512f") and lanes == max(LANES.values())


class Lone(Turn):
    """A turn of one output, whose roundings have all random bits."""

    def __init__(self, code, maker, places, at, call, masks):
        super().__init__(code, maker, places, 0, at, call["numbers"], masks)
        self._call = call

    def _number(self, x):
        x = self.code.only(x)
        return x if x.type == DOUBLE else self.builder.fpext(x, DOUBLE)

    def again(self, site, x, y, z, number):
        """(x * y + z rounded, flags), by the plain functions."""
        code, call, builder = self.code, self._call, self.builder
        bits = Int(builder, code.only(self.noise(site, number)))
        bits = bits if self._maker.stage.double else bits.long()
        arguments = [
            code.int(site).value, *map(self._number, (x, y, z)), bits.value, call["output"].value, (self._at[site] + number).value,
            call["integers"], call["floats"], *(call[name].value for name in ADDRESS), call["total"],
        ]  # fmt: skip
        kind = ir.FunctionType(WORD, [call["flags"].type, BYTE.as_pointer(), *(z.type for z in arguments)])
        builder.call(
            builder.bitcast(call["again"], kind.as_pointer()),
            [call["flags"], ir.Constant(BYTE.as_pointer(), None), *arguments],
        )
        found, flags = builder.load(call["total"]), builder.load(call["flags"])
        if self._maker.stage.double:
            return code.splat(found), code.splat(flags)
        return code.splat(builder.fptrunc(found, SINGLE)), code.splat(builder.trunc(flags, WORD))


class Maker:
    """All code of a sum, in an LLVM module: the function `loop` takes FIELDS."""

    planes_of_operands = 1
    specials = False
    """Whether operands may be infinite or NaN."""

    def __init__(self, what):
        self.sum, self.stage, self.specials = what, what.stage, what.stage.specials
        self.item, self.word = (DOUBLE, LONG) if what.stage.double else (SINGLE, WORD)
        self.order = ORDERS[what.order](what.stage.draws)
        self.observer = Counts(what.stage.of_nan) if what.counts else Flags()
        self.silent = self.observer if what.counts else Nobody()
        self.strides = LAYOUTS[what.layout].strides(what.rows, what.lanes)
        self.written = self.word
        self.carried = (*self.order.slots, *self.observer.slots)
        self.noted = (INEXACT, *self.stage.slots)
        most = self.order.subtree.numbers[RUNNING] * noise.ROUNDINGS
        sizes = {PRODUCT: MANY_NUMBERS, RUNNING: max(MANY_NUMBERS, 1 << (most + noise.ROUNDINGS - 1).bit_length())}
        if not self.order.in_order:
            sizes = {PRODUCT: noise.ROUNDINGS, RUNNING: FEW_NUMBERS}
        self.rings = {PRODUCT: (0, sizes[PRODUCT]), RUNNING: (sizes[PRODUCT], sizes[RUNNING])}
        self.planes = sum(sizes.values()) if self.stage.draws else 0
        self.module = ir.Module("sums")

    def function(self, name, returned, *kinds):
        """A function of this module, never a part of another."""
        made = ir.Function(self.module, ir.FunctionType(returned, kinds), name)
        made.linkage = "internal"
        made.attributes.add("noinline")
        made.attributes.alignstack = CACHE_LINE  # else vectors that leave registers lie across lines
        return made

    def place(self, slot, row=0):
        """Where a row's vector of a slot lies in a tile's state."""
        return row * self.sum.lanes + slot * self.sum.cells

    def masks(self, mask=None):
        """What numbers of a site's ring are cut to: `mask` where a turn takes one."""
        return {
            site: mask if mask is not None and self.order.subtree.numbers[site] < 2 else size - 1
            for site, (_, size) in self.rings.items()
        }

    def watched(self, code, begins):
        """What slots begin with that a quick arithmetic watches with."""
        ones = (1 << self.word.width) - 1
        return {slot: code.everywhere(bits & ones, self.word).floats() for slot, bits in begins.items()}

    def row(self, turn, piece, arithmetic, observer, state):
        """A turn of a row: `state` after the piece's step; the words that it was written in."""
        words = arithmetic(turn, self.stage, observer, state)
        piece.step(words, state)
        return words

    def ahead(self, code, places, at, piece, k, apart):
        """(places of operands, numbers of roundings) so many turns later."""
        later = {
            which: code.at(places[which], k * (strides.product * piece.products))
            for which, strides in zip("ab", self.strides, strict=True)
        }
        return places | later, {site: at[site] + k * apart * piece.numbers[site] for site in at}

    def whole(self, name, piece):
        """Code of some turns of one output again, by the plain functions, from its own places in operands, noise and state on."""
        pointer = self.item.as_pointer()
        kinds = [LONG.as_pointer(), DOUBLE.as_pointer(), BYTE.as_pointer(), *[LONG] * 9]
        places = pointer, pointer, WORD.as_pointer(), *[pointer] * 3
        function = self.function("whole_" + name, ir.VoidType(), *places, *kinds)
        code = Code(function, 1)
        a, b, random, below, state, numbers, integers, floats, again = function.args[:9]
        count, apart, mask, running, product, output, *address = (Int(code.builder, x) for x in function.args[9:])
        call = {"numbers": numbers, "integers": integers, "floats": floats, "again": again, "output": output}
        call |= dict(zip(ADDRESS, address, strict=True)) | {"total": code.room(1, DOUBLE), "flags": code.room(1, LONG)}
        places, at = {"a": a, "b": b, "noise": random, "below": below}, {RUNNING: running, PRODUCT: product}
        slots = *self.carried, *(slot for slot in self.noted if slot != LEFT_OPEN)
        with code.loop(count) as k:
            own = {slot: code.load(state, self.place(slot)) for slot in slots}
            turn = Lone(code, self, *self.ahead(code, places, at, piece, k, apart), call, self.masks(mask))
            self.row(turn, piece, arithmetics.whole(self.stage), self.observer, own)
            for slot in slots:
                code.store(own[slot], state, self.place(slot))
        code.builder.ret_void()
        return function


class Driver:
    """Code of the loop over tiles: what goes on between turns, whatever their order."""

    def __init__(self, maker):
        self.maker, what = maker, maker.sum
        if what.joins:
            maker.noted += tuple(slot for slot in what.joins.stage.slots if slot not in maker.noted)
        function = ir.Function(maker.module, ir.FunctionType(LONG, [LONG.as_pointer()]), "loop")
        self.code = code = Code(function, what.lanes)
        self.call = {name: code.get(function.args[0], number) for number, name in enumerate(FIELDS)}
        numbers = {name: maker.item if kind == SINGLE else kind for name, kind in POINTERS.items()}
        for name, kind in numbers.items():
            self.call[name] = code.builder.inttoptr(self.call[name].value, kind.as_pointer())
        self.noise = code.room(max(maker.planes, 1) * what.cells, maker.item)
        self.filled = {site: code.variable(code.int(0)) for site in maker.rings}
        self.counted = code.variable(code.int(0))
        self.writer = Writer(code, self.call["written"], maker.written)
        layout, call, self.seen = LAYOUTS[what.layout], self.call, code.variable(code.everywhere(0, maker.word))
        with code.loop(call["last"], call["first"]) as unit:
            self.product, i, j = self.placed(unit)
            self.panels = dict(zip("ab", layout.panels(i, j), strict=True))
            self.results = self.writer.place(call["values"], self.product * call["size"])
            self.corner = call["index"] + i * what.rows * call["row_stride"] + j * what.lanes * call["column_stride"]
            if what.layout == "grid":
                sizes = {"a": "a_size", "b": "b_size", "c": "c_size", "flags": "size"}
                planes = {"a": maker.planes_of_operands, "b": maker.planes_of_operands}
                self.call = call | {
                    x: code.at(call[x], self.product * planes.get(x, 1) * call[size]) for x, size in sizes.items()
                }
                self.corner = self.corner + self.product * call["product_stride"]
            self.outputs = i * what.rows * call["wide"] + j * what.lanes
            for variable in (self.counted, *self.filled.values()):
                variable.set(code.int(0))
            self.sum(i, j)
        code.builder.ret(code.united(self.seen.get()).long().value)

    def placed(self, unit):
        """(product, row, column) of a tile among tiles, by its number."""
        return LAYOUTS[self.maker.sum.layout].tile(unit, self.call["panels"], self.call["tiles"])

    def sum(self, i, j):
        """Code of a tile."""
        raise NotImplementedError

    def places(self):
        """Where the operands of a tile begin in panels of all products."""
        return [
            self.code.at(self.call[which], self.panels[which] * self.call["turns"] * strides.product)
            for which, strides in zip("ab", self.maker.strides, strict=True)
        ]

    def keep(self, source, target, slots):
        """What a state has in some slots, in another, too."""
        for slot in slots:
            self.code.copy(*(self.code.at(x, self.maker.place(slot)) for x in (source, target)), self.maker.sum.cells)

    def begin_with(self, state, i, j):
        """Sums as they begin, where nothing has happened; outputs beyond the last are no reason to look, and count as inexact."""
        code, call, maker = self.code, self.call, self.maker
        rows, lanes, grid = maker.sum.rows, maker.sum.lanes, maker.sum.layout == "grid"
        told = (OVERFLOWED, ROUNDED, SWAMPED) * maker.sum.counts
        zero = code.splat(
            opaque(code.builder, ir.Constant(maker.word, 0))
        ).floats()  # not cleared in other widths than it is read
        with code.loop(rows) as row:
            for slot in (*maker.carried, *maker.noted, *told):
                begins = code.everywhere(BEGINS[slot], maker.item) if slot in BEGINS else zero
                code.store(begins, state, maker.place(slot, row))
        if grid:
            last = ((i + 1) * rows > call["rows"]) | ((j + 1) * lanes > call["columns"])
        else:
            last = self.outputs + maker.sum.cells > call["columns"]
        with code.when(last, rarely=True), code.loop(rows) as row, code.loop(lanes) as lane:
            if grid:
                outside = (i * rows + row >= call["rows"]) | (j * lanes + lane >= call["columns"])
            else:
                outside = self.outputs + row * lanes + lane >= call["columns"]
            with code.when(outside):
                code.put(Int(code.builder, ir.Constant(maker.item, 1.0)), state, maker.place(INEXACT, row) + lane)

    def begin_with_c(self, state):
        """Sums are what they begin with, if there is any."""
        code, call, maker = self.code, self.call, self.maker
        with code.when(call["has_c"].differs(0)), code.loop(maker.sum.rows) as row:
            begins = code.load(call["c"], self.outputs + row * call["wide"])
            code.store(begins, state, maker.place(VALUE, row))

    def all_inexact(self, state):
        """1 where nothing is left to look for, of outputs whose additions are not counted."""
        code, maker = self.code, self.maker
        least = code.variable(~code.everywhere(0, maker.word))
        with code.loop(maker.sum.rows) as row:
            least.set(least.get().at_most(code.load(state, maker.place(INEXACT, row)).bits()))
        return Int(code.builder, least.get().is_zero().nowhere()).long()

    # -- outputs that 16 random bits leave open --------------------------------------------------------------------

    def settle(self, name, row, places, state, turns, restore):
        """Those of a row, by all random bits; restore(cell) has the state of one be as it was before these turns.

        `turns` are how many, how far apart their numbers are, what these are cut to, and where those of sums and of products begin.
        """
        code, maker, call = self.code, self.maker, self.call
        with code.loop(maker.sum.lanes) as lane:
            cell = row * maker.sum.lanes + lane
            mark = cell + maker.place(LEFT_OPEN)
            with code.when(code.get(code.builder.bitcast(state, maker.word.as_pointer()), mark) < 0):
                restore(cell)
                own = [
                    code.at(places[which], row * strides.row + lane * strides.column)
                    for which, strides in zip("ab", maker.strides, strict=True)
                ]
                own += [code.at(pointer, cell) for pointer in (code.as_words(self.noise), places["below"], state)]
                output = self.corner + row * call["row_stride"] + lane * call["column_stride"]
                fixed = [call[known] for known in ("numbers", "integers", "floats", "again")]
                code.call(maker.whole_turns[name], *own, *fixed, *turns, output, *(call[known] for known in ADDRESS))
                code.put(Int(code.builder, ir.Constant(maker.item, 0.0)), state, mark)

    # -- random numbers --------------------------------------------------------------------------------------------

    def random(self, site, first, stop, mask):
        """Numbers first ... stop - 1 of a site are there, of which as many before may be as its ring holds more."""
        code, filled = self.code, self.filled[site]
        fill = code.builder.bitcast(self.call["fill"], noise.FILL.as_pointer())
        block = first & ~(noise.ROUNDINGS - 1)
        with code.when(filled.get() < block):
            filled.set(block)
        with code.while_(lambda: filled.get() < stop):
            plane = (filled.get() & mask) + self.maker.rings[site][0]
            strides = self.call["row_stride"], self.call["column_stride"]
            code.call(
                fill, code.at(code.as_words(self.noise), plane * self.maker.sum.cells), site,
                filled.get() // noise.ROUNDINGS, self.corner, *strides, *(self.call[x] for x in ADDRESS),
            )  # fmt: skip
            filled.set(filled.get() + noise.ROUNDINGS)

    # -- counts ----------------------------------------------------------------------------------------------------

    def count_roundings(self, state, count):
        """So many roundings are about to be counted."""
        code = self.code
        with code.when(self.counted.get() + count > FULL):
            self.take_counts(state)
            self.counted.set(code.int(0))
        self.counted.set(self.counted.get() + count)

    def take_counts(self, state):
        """Out of words that hold three counts. What was swamped need not be inexact: it may have become a subnormal that reads as zero."""
        code, maker = self.code, self.maker
        with code.loop(maker.sum.rows) as row:

            def words(slot, row=row):
                return code.load(state, maker.place(slot, row)).bits()

            additions, inexact = counted_apart(words(COUNTS))
            for slot, some in additions.items():
                code.store(words(slot) + some, state, maker.place(slot, row))
            code.store(words(INEXACT) | inexact, state, maker.place(INEXACT, row))
            code.store(code.everywhere(0.0, maker.item), state, maker.place(COUNTS, row))

    # -- results ---------------------------------------------------------------------------------------------------

    def tell_own(self, state):
        """Of outputs that have operands of their own, if they are asked for: of a state, or of those that were kept turn by turn."""
        code, call, cells = self.code, self.call, self.maker.sum.cells
        with code.when(code.there(call["values"])):
            kept = call["records"].differs(0)
            place = code.builder.select(kept.value, call["kept"], state)
            with code.loop(kept.choose(call["records"], code.int(1))) as turn:
                self.tell(code.at(place, turn * (SLOTS * cells)), self.outputs + turn * cells)

    def tell(self, state, outputs):
        """Sums, flags and counts, to where they belong."""
        code, call, maker = self.code, self.call, self.maker
        octets = ir.VectorType(BYTE, maker.sum.lanes)
        of_nan, of_infinity = (
            code.splat(call[name] if maker.word == LONG else call[name].cut(WORD))
            for name in ("nan_flags", "infinity_flags")
        )
        told = (VALUE, INEXACT, UNDERFLOW, OVERFLOW) + (INVALID,) * maker.specials
        flagged = [slot for slot in told if slot in maker.carried + maker.noted]
        with code.loop(maker.sum.rows) as row:
            where = outputs + row * call["wide"]
            own = {slot: code.load(state, maker.place(slot, row)) for slot in flagged}
            value, flags = own[VALUE], flags_of(own, of_nan)
            flags = value.magnitude().equals(np.inf).choose(flags | of_infinity, flags)
            self.writer.put(value if value.bits().element == maker.written else value.single(), self.results, where)
            for slot in maker.carried[1:]:  # beside the sum, what may overflow alone
                if slot == ERRORS and not maker.specials:
                    fine = code.load(state, maker.place(slot, row)).magnitude() < np.inf
                    flags = fine.choose(flags, flags | 5)
            self.seen.set(self.seen.get() | flags)
            code.store(Vector(code.builder, code.builder.trunc(flags.value, octets)), call["flags"], where)
            if maker.sum.counts:
                size = call["tiles"] * maker.sum.cells
                for number, slot in enumerate((OVERFLOWED, ROUNDED, SWAMPED)):
                    found = code.load(state, maker.place(slot, row)).bits()
                    code.store(found if maker.word == WORD else found.cut(WORD), call["counts"], where + size * number)
                for number, slot in enumerate((LEAST, GREATEST)):
                    code.store(code.load(state, maker.place(slot, row)), call["extremes"], where + size * number)
