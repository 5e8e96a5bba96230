"""Operands on their way into panels: codes, wherever they lie, as numbers in the order of a sum, and what these span.

Codes go some turns at a time to a stretch that stays in the CPU's first cache, outputs side by side, and are made numbers there; those
that lie so already are read where they are.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from ..vectors import LANES, Vector
from .language import BYTE, CACHE_LINE, DOUBLE, LONG, SHORT, SINGLE, SIZES, WORD, Code, Int
from .loop import Maker

TURNS = 16  # of k, and of outputs, that are transposed in registers
READ = 2 * TURNS  # turns that are read at a time: a cache line of 16-bit codes
TOUCHED = 16 * READ  # turns whose memory is asked for in order before: the CPU foresees no lines that lie apart
CODES = {"B": BYTE, "H": SHORT, "I": WORD, "f": SINGLE, "d": DOUBLE}
"""NumPy's characters of types."""
NORMAL, UNIT = 0x00800000, 2.0**-149
NARROW = "magnitude", "sign", "to_sign", "to_number", "rebias", "normal", "quantum", "special"
"""What reads codes of a format without a table of them: the bits of a magnitude, and of the sign; how far both are from where float32 has them;
what is to be added to the exponent there; the first normal magnitude, float32's bits of the distance between subnormal ones, and from which one
on there are no numbers. Formats that have float32's exponents may have subnormal numbers made like normal ones."""
EXPONENT = 0x7F800000
READ_POINTERS = "codes", "table", "panels", "index", "spans", "scales", "known"
READ_FIELDS = (
    *READ_POINTERS, "first", "k_step", "n_step", "start", "length", "count", "products", "apart", "tiny", "of_zeros", "of_nothing", "size",
    "turns", "block", "beside", "scale_k", "scale_n", "known_size",
)  # fmt: skip
"""What a call hands over: addresses, then numbers; `tiny`, `of_zeros` and `of_nothing` as bits; the `size` of a code is for who goes on."""


class Reading(NamedTuple):
    """Which codes are read, and what panels hold: numbers of float64 or float32, and beside them maybe a plane of their powers of two."""

    reading: str
    """"half", "bfloat16", "number", which needs no reading, "narrow", whose table has NARROW, or "table": of float32, what codes stand for."""
    code: str
    double: bool
    planes: int
    cells: int
    sharing: int = 0
    """Products of which the first alone has a power of two beside, that of their scale; 1: each has its own times that; 0: there are no scales."""

    @property
    def draws(self):
        """As `target` asks of sums."""
        return False


class Reader(Maker):
    """The loop of a reading: `loop` takes READ_FIELDS, returns whether all is finite, and tells the least magnitude but 0 and the greatest.

    Products start ... start + length - 1 of `count` outputs go to panels (products, planes, panels, turns, cells), cells beyond `count` as
    code 0. The code of output n and product k of the first of the products lies at first + k * k_step + n * n_step, and `apart` from it
    that of the next. `index`: which product comes where, -1 is +0; nowhere: as they are. A second plane takes the power of two of each
    number, at least `tiny`; that of 0 is `of_zeros`. After the last product come zeros, which have powers `of_nothing`.

    Scales are codes of a byte, one for `block` products and `beside` outputs, `scale_k` and `scale_n` apart; `known` has the values of all
    `known_size` codes, and then their powers of two. A number other than 0 that its scale makes 0 is told as the least.
    """

    def __init__(self, what):
        self.sum = what
        self.item, self.word = (DOUBLE, LONG) if what.double else (SINGLE, WORD)
        self.lanes = LANES[np.float64 if what.double else np.float32]
        self.source, self.positive = CODES[what.code], (1 << (8 * SIZES[self.word] - 1)) - 1
        self.each = max(what.cells, self.lanes)  # codes of a row that go at once
        self.together = READ if what.cells >= TURNS else TURNS * TURNS
        self.module = ir.Module("reading")
        self.fetch, self.convert = self._fetch(), self._convert()
        self._loop()

    def _opened(self, name, lanes, pointers, numbers):
        function = self.function(name, ir.VoidType(), *(kind.as_pointer() for kind in pointers), *[LONG] * numbers)
        code = Code(function, lanes)
        return code, *function.args[: len(pointers)], *(Int(code.builder, x) for x in function.args[len(pointers) :])

    # -- codes to where a panel wants them -------------------------------------------------------------------------

    def _fetch(self):
        """Code of some turns, outputs side by side."""
        cells = self.sum.cells
        code, codes, index, block, *given = self._opened(
            "fetch", min(TURNS, cells), (self.source, LONG, self.source), 5
        )
        k_step, n_step, start, turns, width = given
        indexed = code.there(index)
        whole, full = code.variable(code.int(0)), code.variable(code.int(0))
        if cells > 1:
            lies = indexed.same(0) & k_step.same(1) & n_step.differs(1)
            with code.when(lies):
                rows = code.lanes
                whole.set(width // rows * rows)
                full.set(turns // TURNS * TURNS)
                with code.loop(width // rows) as group:
                    lane = group * rows
                    corner = code.at(codes, lane * n_step + start)
                    lines = turns // READ
                    with code.loop(lines) as line:
                        self._transpose(
                            code,
                            code.at(corner, line * READ),
                            n_step,
                            code.at(block, line * (READ * cells) + lane),
                            READ,
                        )
                    with code.loop(turns // TURNS, lines * 2) as line:
                        self._transpose(
                            code,
                            code.at(corner, line * TURNS),
                            n_step,
                            code.at(block, line * (TURNS * cells) + lane),
                            TURNS,
                        )
        with code.loop(turns, whole.get().same(width).choose(full.get(), code.int(0))) as turn:
            k = code.variable(start + turn)
            with code.when(indexed):
                place = code.get(index, start + turn)
                k.set((place < 0).choose(code.int(0), place))
            corner, target = code.at(codes, k.get() * k_step), code.at(block, turn * cells)
            done = code.variable((turn < full.get()).choose(whole.get(), code.int(0)))
            with code.when(n_step.same(1)):
                with code.loop(width // code.lanes) as n:
                    code.store(code.load(corner, n * code.lanes), target, n * code.lanes)
                done.set(width // code.lanes * code.lanes)
            with code.loop(width, done.get()) as lane:
                code.put(code.get(corner, lane * n_step), target, lane)
        code.builder.ret_void()
        return code.builder.function

    def _transpose(self, code, source, apart, target, turns):
        """So many codes of each of some rows, which lie apart, to as many stretches of a block.

        Rows are riffled with each other in pieces of 16 bytes, which every CPU does at once; a piece then holds whole stretches, or
        their parts of as many rows as it has numbers.
        """
        rows, builder, wide = code.lanes, code.builder, code.of(turns)

        def chosen(first, second, lanes):
            places = ir.Constant(ir.VectorType(WORD, len(lanes)), lanes)
            return builder.shuffle_vector(first, second, places)

        vectors = [wide.load(source, apart * row).value for row in range(rows)]
        piece = 16 // SIZES[self.source]
        together = min(piece, rows)
        low = [first + n // 2 + n % 2 * turns for first in range(0, turns, piece) for n in range(piece)]
        high = [piece // 2 + n for n in low]
        for first in range(0, rows, together):
            some = vectors[first : first + together]
            # each riffle moves the highest bit of a number's place to the lowest: that of its row, bit by bit
            for _ in range(together.bit_length() - 1):
                some = [
                    chosen(some[n // 2], some[(n + together) // 2], high if n % 2 else low) for n in range(together)
                ]
            turns_of_each = piece // together
            for turn in range(turns):
                moved = some[turn % piece // turns_of_each]
                lane = turn // piece * piece + turn % turns_of_each * together
                part = chosen(moved, moved, list(range(lane, lane + together)))
                code.store(Vector(builder, part), target, turn * self.sum.cells + first)

    # -- codes to numbers ------------------------------------------------------------------------------------------

    def _number(self, code, x, table):
        """What codes stand for, as panels have it."""
        if self.sum.reading == "table":
            x = code.gather(table, x.long())
        elif self.sum.reading == "narrow":
            x = self._narrow(code, x if x.element == WORD else x.long(WORD), table)
        elif self.sum.reading != "number":
            x = x.singles(self.sum.reading)
        return self._widened(x) if self.sum.double and x.element == SINGLE else x

    def _narrow(self, code, x, table):
        """What codes of a narrow format stand for; of what is no number something that is none."""
        known = {name: code.splat(code.get(code.as_words(table), n)) for n, name in enumerate(NARROW)}
        magnitude = x & known["magnitude"]
        normal = (magnitude << known["to_number"]) + known["rebias"]
        small = Vector(x.builder, x.builder.uitofp(magnitude.value, x._typed(SINGLE))) * known["quantum"].floats()
        bits = magnitude.below(known["normal"]).choose(small.bits(), normal)
        bits = magnitude.below(known["special"]).choose(bits, bits | EXPONENT)
        return (bits | (x & known["sign"]) << known["to_sign"]).floats()

    def _widened(self, x):
        """float32 in float64. The host may be told to read subnormal numbers as zero: halves and formats of few bits have none of these."""
        if self.sum.reading == "half" or (self.sum.reading == "narrow" and self.source != WORD):
            return x.double()
        bits = x.bits()
        magnitude = bits & 0x7FFFFFFF
        tiny = Vector(x.builder, x.builder.uitofp(magnitude.value, x._typed(DOUBLE))) * UNIT
        return (magnitude < NORMAL).choose((bits < 0).choose(-tiny, tiny), x.double())

    def _convert(self):
        """Code of some rows of codes, which lie apart, and of a rest of one, to numbers one after the other; the least magnitude but 0, less 1, and
        the greatest."""
        what, exponent = self.sum, ((1 << 11) - 1) << 52 if self.sum.double else 0xFF << 23
        pointers = self.source, self.item, self.item, self.word, SINGLE, self.item
        wide, source, target, beside, seen, table, scales, *given = self._opened("convert", self.lanes, pointers, 5)
        apart, rows, rest, tiny, of_zeros = given
        least, greatest = (wide.variable(wide.load(seen, n * self.lanes)) for n in range(2))

        def powers(code, bits):
            smallest, nothing = (code.splat(n if what.double else n.cut(WORD)) for n in (tiny, of_zeros))
            return bits.is_zero().choose(nothing, (bits & exponent).at_least(smallest)).floats()

        def scaled(code, number, to, n):
            bits, scale = number.bits() & self.positive, code.load(scales, n)
            nothing = bits.is_zero() | scale.bits().is_zero()
            number = number * scale
            code.store(number, target, to)
            if what.sharing == 1:
                code.store(powers(code, bits) * code.load(scales, n + self.each), beside, to)
            magnitude = number.bits() & self.positive
            return magnitude, nothing.choose(magnitude.all_of(-1), magnitude)

        def plain(code, number, to):
            code.store(number, target, to)
            magnitude = number.bits() & self.positive
            if what.planes > 1:
                code.store(powers(code, magnitude), beside, to)
            return magnitude, magnitude - 1  # that of 0 becomes the largest of all

        def some(code, begin, to, n):
            number = self._number(code, code.load(source, begin), table)
            both = scaled(code, number, to, n) if what.sharing else plain(code, number, to)
            if code.lanes < self.lanes:
                both = (wide.splat(code.only(x)) for x in both)
            magnitude, counted = both
            least.set(counted.at_most(least.get()))
            greatest.set(magnitude.at_least(greatest.get()))

        with wide.loop(rows) as row:
            for n in range(0, self.each, self.lanes):
                some(wide, row * apart + n, row * self.each + n, n)
        with wide.loop(rest) as n:
            some(wide.of(1), rows * apart + n, rows * self.each + n, n)
        for n, x in enumerate((least, greatest)):
            wide.store(x.get(), seen, n * self.lanes)
        wide.builder.ret_void()
        return wide.builder.function

    # -- the loop --------------------------------------------------------------------------------------------------

    def _loop(self):
        what, cells = self.sum, self.sum.cells
        function = ir.Function(self.module, ir.FunctionType(LONG, [LONG.as_pointer()]), "loop")
        code = Code(function, self.lanes)
        call = {name: code.get(function.args[0], number) for number, name in enumerate(READ_FIELDS)}
        kinds = self.source, SINGLE, self.item, LONG, DOUBLE, BYTE, self.item
        for name, kind in zip(READ_POINTERS, kinds, strict=True):
            call[name] = code.builder.inttoptr(call[name].value, kind.as_pointer())
        length, count, k_step, n_step = (call[x] for x in ("length", "count", "k_step", "n_step"))
        seen, block = code.room(2 * self.lanes, self.word), code.room(self.together * cells, self.source)
        scales = code.room(2 * self.each, self.item) if what.sharing else ir.Constant(self.item.as_pointer(), None)
        for n, bits in enumerate((-1, 0)):
            code.store(code.everywhere(bits, self.word), seen, n * self.lanes)
        across, stretch = (count + cells - 1) // cells, call["turns"] * cells
        indexed = code.there(call["index"])
        orderly = indexed.same(0) & k_step.same(1)
        along = orderly & (n_step > 1) & (length >= READ)
        with code.loop(call["products"]) as product, code.loop(across) as panel:
            width = (count - panel * cells).least(cells)
            partial = width < cells
            corner = code.at(call["codes"], call["first"] + product * call["apart"] + panel * cells * n_step)
            base = (product * what.planes * across + panel) * stretch
            lies = orderly if cells == 1 else indexed.same(0) & n_step.same(1) & partial.same(0)
            direct = lies & int(cells in (1, self.each))
            with code.when(partial):
                self._fill(code, block, length.least(self.together) * cells)
            done_so_far = code.variable(code.int(0))
            with code.while_(lambda done_so_far=done_so_far: done_so_far.get() < length):
                done = done_so_far.get()
                turns, start = (length - done).least(self.together), call["start"] + done
                if what.sharing:
                    number = done // call["block"]
                    within = done - number * call["block"]
                    turns = turns.least(call["block"] - within)
                    with code.when(within.same(0)):
                        self._look_up(code, call, scales, call["scale_k"] * number, panel * cells, width)
                with code.when(along & (done & (TOUCHED - 1)).same(0)):
                    self._ask(code, code.at(corner, start), n_step, width, (length - done).least(TOUCHED))
                target, beside = (
                    code.at(call["panels"], base + across * stretch * n + done * cells) for n in (0, what.planes - 1)
                )
                order = call["index"], block, k_step, n_step, start, turns, width

                def convert(source, apart=None, numbers=turns * cells, target=target, beside=beside):
                    rows = (numbers // self.each, numbers % self.each) if apart is None else (numbers // cells, 0)
                    told = target, beside, seen, call["table"], scales, self.each if apart is None else apart, *rows
                    code.call(self.convert, source, *told, call["tiny"], call["of_zeros"])

                if what.sharing > 1:
                    self._share(code, code.at(scales, self.each), beside, done, turns)
                with code.builder.if_else(direct.value) as (straight, crooked):
                    with straight:
                        convert(code.at(corner, start * k_step), k_step if cells > 1 else None)
                    with crooked:
                        code.call(self.fetch, corner, *order)
                        convert(block)
                with (
                    code.when(indexed),
                    code.loop(turns) as turn,
                    code.when(code.get(call["index"], start + turn) < 0),
                ):
                    self._fill(code, code.at(target, turn * cells), cells)
                    if what.planes > 1:
                        self._fill(code, code.at(beside, turn * cells), cells, call["of_zeros"])
                done_so_far.set(done + turns)
            for n in range(what.planes):
                rest = code.at(call["panels"], base + across * stretch * n + length * cells)
                self._fill(code, rest, (call["turns"] - length) * cells, call["of_nothing"] if n else None)
        code.builder.ret(self._spans(code, seen, call["spans"], call["table"]).long().value)

    def _share(self, code, powers, beside, done, turns):
        """A scale's powers of two beside the first of the products that share it, of products from `done` on."""
        what, cells = self.sum, self.sum.cells
        first = (code.int(what.sharing) - done % what.sharing) % what.sharing
        with code.loop((turns - first + (what.sharing - 1)) // what.sharing) as number:
            place = code.at(beside, (first + number * what.sharing) * cells)
            code.of(min(cells, self.lanes)).copy(powers, place, cells)

    def _look_up(self, code, call, scales, row, first, width):
        """The scales of a panel's outputs, and after them their powers of two, as often as a row of codes has outputs; zeros beyond the last."""
        cells = self.sum.cells
        nothing = Int(code.builder, ir.Constant(self.item, 0.0))
        with code.loop(cells) as n:
            inside = n < width
            at = inside.choose(row + (first + n) // call["beside"] * call["scale_n"], code.int(0))
            which = code.get(call["scales"], at).long()
            for part in range(2):
                found = inside.choose(code.get(call["known"], which + call["known_size"] * part), nothing)
                for copy in range(0, self.each, cells):
                    code.put(found, scales, n + copy + part * self.each)

    def _fill(self, code, place, count, bits=None):
        """So many numbers, whole rows of cells, that are 0, or have these bits."""
        kind, some = place.type.pointee, code.of(min(self.sum.cells, self.lanes))
        x = some.everywhere(0.0 if kind in (SINGLE, DOUBLE) else 0, kind)
        if bits is not None:
            x = some.splat(bits if self.sum.double else bits.cut(WORD))
        with code.loop(count // some.lanes) as n:
            some.store(x, place, n * some.lanes)

    def _ask(self, code, corner, apart, width, turns):
        """For lines of the cache, one after the other, in which so many turns of outputs lie."""
        octets, kinds = BYTE.as_pointer(), [BYTE.as_pointer(), WORD, WORD, WORD]
        prefetch = cgutils.get_or_insert_function(
            self.module, ir.FunctionType(ir.VoidType(), kinds), "llvm.prefetch.p0i8"
        )
        each = CACHE_LINE // SIZES[self.source]
        with code.loop(width) as output, code.loop((turns + (each - 1)) // each) as line:
            place = code.builder.bitcast(code.at(corner, output * apart + line * each), octets)
            code.builder.call(prefetch, [place, *(ir.Constant(WORD, n) for n in (0, 3, 1))])

    def _spans(self, code, seen, spans, table):
        """The least magnitude but 0 and the greatest, in float64, to where they belong; whether all are finite."""
        one, builder = code.of(1), code.builder
        low = Int(builder, code.load(seen).least()) + int(not self.sum.sharing)
        high = Int(builder, code.load(seen, self.lanes).greatest())
        infinity = 0x7FF << 52 if self.sum.double else 0xFF << 23
        finite, none = high.below(infinity), (low + 1).same(0) if self.sum.sharing else high.same(0)
        if self.sum.sharing:
            finite = finite & low.differs(0)
        for n, bits in enumerate((low, finite.choose(high, infinity))):
            x = one.splat(bits).floats()
            found = one.only(x if self.sum.double else self._widened(x))
            if n == 0:
                found = builder.select(none.value, ir.Constant(DOUBLE, float("inf")), found)
            code.put(Int(builder, found), spans, n)
        return finite
