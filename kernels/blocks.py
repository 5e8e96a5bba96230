"""Faster ways to the same bits for ordinary operands, as `ordinary` says which are: one loop, around the elements of other files.

Data are ordinary almost everywhere, and whether a block is takes a fraction of the time that its results take. So the loop looks at a block
first. Operands that are not ordinary are replaced by harmless ones, and told to the caller, who has another loop do these elements. An
element's function may leave it to that loop, too: where its result is not ordinary, or hangs on more random bits than 16.
"""

from typing import NamedTuple

from llvmlite import ir

from . import elements, halves, singles, wide_elements
from .fast import has_feature
from .ordinary import Ordinary
from .prng import TILE
from .sums.language import BYTE, LONG, SHORT, SINGLE, SIZES, WORD, Code, Int
from .sums.loop import Maker
from .targets import Source, Target, names_of

BLOCK = 2048
"""Operands looked at together; a whole number of random tiles."""

GROUP = 64
"""Operands that go together at least: the last ones of a call are copied to where there is room for so many."""

FLAG_BITS = 5
"""A loop returns the number of elements it did, shifted left by so many bits, and their flags OR-ed together."""

OPERANDS = {"convert": 1, "sqrt": 1, "fma": 3}
"""Operation -> number of operands, of those that have not two."""

STOCHASTIC = ("stochastic", "up_or_down")
DOUBLES = ("float64", "cpu64")
"""Kinds whose operand is float64, of which float32's normal numbers are ordinary."""
WIDE = ("wide", "double")
"""Kinds whose elements look at operands themselves."""
CODES = {1: BYTE, 2: SHORT, 4: WORD, 8: LONG}

BLOCK_POINTERS = "a", "b", "c", "codes", "flags", "left", "integers", "floats", "handed", "half_words"
BLOCK_FIELDS = (*BLOCK_POINTERS, "size", "each", "most", "start", "given", "width", "key", "stream")
"""What a call hands over: addresses, then numbers. `left` takes the numbers of elements that are left to another loop, and after `most` and
those of a block how many these are; the loop stops where there is no room for those of one more block. `flags` have room for those of `each`,
or are for nothing. Where it draws, `start` is a multiple of TILE, and `handed` has `width` random bits of each element, if any is `given`."""


class Elementwise(NamedTuple):
    """An operation on ordinary operands, as a value: `kernels.sums.target` makes the loop.

    `kind` is one of `elements.READERS`, "cpu" of halves that the CPU rounds, "single" of float32 in float32, "float64" of conversions from
    there, "cpu64" of such that the CPU rounds; "wide" of wide formats, "double" of those with 53 bits. `way`: "nearest", "selected", or, of
    halves, singles and wide formats, the name of a mode; "stochastic" of those that draw. Results below the normal range may need to be
    lifted, or are flushed. `read` and `made` are sizes of codes.
    """

    kind: str
    operation: str
    way: str
    lifts: bool
    flushes: bool
    read: int
    made: int

    @property
    def draws(self):
        """As `target` asks."""
        return self.way in STOCHASTIC

    @property
    def operands(self):
        """How many there are."""
        return OPERANDS.get(self.operation, 2)

    def element(self, calm=False):
        """What becomes of operands: see `elements`."""
        kind, operation, way = self.kind, self.operation, self.way
        if kind in WIDE:
            return wide_elements.element_of(operation, way, kind == "double")
        if kind == "single":
            return (singles.drawn if self.draws else singles.rounded)(operation, way)
        if kind in ("cpu", "cpu64"):
            return halves.cpu(operation, way, calm, kind == "cpu64")
        make = elements.stochastic if self.draws else elements.deterministic
        return make(kind, operation, way, self.lifts, self.flushes, calm)


class Known:
    """What elements know, in every lane: numbers of a call, each read before the first loop that needs it."""

    def __init__(self, code, integers, floats, own, kind):
        self._code, self._places, self._kind = code, (integers, floats), kind
        self._integers, self._floats = (names_of(kind, own, Source, Target) for kind in (int, float))

    def __getattr__(self, name):
        code, (integers, floats) = self._code, self._places
        with code.builder.goto_entry_block():
            if name in self._integers:
                found = code.get(integers, self._integers.index(name))
                found = code.splat(found.cut(self._kind) if SIZES[self._kind] < SIZES[found.value.type] else found)
            else:
                found = code.splat(code.get(floats, self._floats.index(name)))
        setattr(self, name, found)
        return found


class Blocks(Maker):
    """The loop of an operation: `loop` takes BLOCK_FIELDS."""

    def __init__(self, what):
        self.sum, self.wide = what, what.kind in WIDE
        self.read, self.made = CODES[what.read], CODES[what.made]
        self.word = LONG if self.wide else WORD
        self.numbers = wide_elements.Known if self.wide else Ordinary
        single = what.kind == "single" and what.operation != "add"
        many = has_feature("avx512f") or single or what.kind in ("cpu", *DOUBLES)
        self.lanes = (16 if many else 8) // (2 if self.wide else 1)
        self.module = ir.Module("elements")
        self.some = self._some("some", what.element())
        calms = what.operation == "convert" and not self.wide
        self.calm = self._some("calm", what.element(True)) if calms else None
        self.ends = self.tame = None
        if not self.wide:
            self.ends, self.tame = self._ends(), self._tame()
        self.note = self._note()
        self._loop()

    def _opened(self, name, lanes, *kinds):
        """(code of a function, what it takes: pointers to these, or numbers)."""
        types = [LONG if kind is None else kind.as_pointer() for kind in kinds]
        function = self.function(name, LONG, *types)
        code = Code(function, lanes)
        return code, *(Int(code.builder, x) if x.type == LONG else x for x in function.args)

    def _known(self, code, integers, floats, kind=None):
        return Known(code, integers, floats, self.numbers, kind or self.word)

    # -- ordinary blocks -------------------------------------------------------------------------------------------

    def _some(self, name, element):
        """Code of so many vectors: codes, flags, and marks where another loop is to do it; whether it is to anywhere."""
        what = self.sum
        kinds = *[self.read] * 3, self.made, BYTE, SHORT, BYTE, self.word, SINGLE, None
        code, *operands, codes, flags, half_words, marks, integers, floats, vectors = self._opened(
            name, self.lanes, *kinds
        )
        known, builder = self._known(code, integers, floats), code.builder
        leaves = code.variable(code.everywhere(0, BYTE))

        def unsigned(x, kind):
            return x.long(kind) if SIZES[x.element] < SIZES[kind] else x

        with code.loop(vectors) as vector:
            at = vector * self.lanes
            taken = [unsigned(code.load(x, at), self.word) for x in operands[: what.operands]]
            if what.operation == "add":
                taken[1] = taken[1] ^ known.flip
            random = unsigned(code.load(half_words, at), self.word) if what.draws else None
            made, raised, left = element(known, *taken, *taken[-1:] * (3 - what.operands), random)
            code.store(made.cut(self.made) if SIZES[self.made] < SIZES[made.element] else made, codes, at)
            code.store(raised.cut(BYTE), flags, at)
            if left is not None:
                mark = left.long(BYTE)
                code.store(mark, marks, at)
                leaves.set(leaves.get() | mark)
        builder.ret(Int(builder, leaves.get().anywhere()).long().value)
        return code.builder.function

    # -- looks -----------------------------------------------------------------------------------------------------

    def _ends(self):
        """The greatest magnitude of some operands, and the least, less `unit`, to `seen`, of which nothing is the largest of all; whether one is
        `lone`, or if that is negative 0."""
        kinds = self.read, LONG, *[None] * 4
        code, codes, seen, count, mask, unit, lone = self._opened("ends", GROUP // SIZES[self.read], *kinds)
        long, zero = self.read == LONG, code.everywhere(0, self.read)
        masks, units, lones = (code.splat(x if long else x.cut(self.read)) for x in (mask, unit, lone))
        largest = code.everywhere((1 << (8 * SIZES[self.read] - long)) - 1, self.read)
        most, least, nearest = code.variable(zero), code.variable(largest), code.variable(zero ^ -1)

        with code.loop(count // code.lanes) as vector:
            magnitude = code.load(codes, vector * code.lanes) & masks
            most.set(magnitude.at_least_signed(most.get()) if long else magnitude.at_least(most.get()))
            less = magnitude - units
            least.set((less & masks).at_most_signed(least.get()) if long else less.at_most(least.get()))
        with code.when(lone > 0), code.loop(count // code.lanes) as vector:
            nearest.set((code.load(codes, vector * code.lanes) ^ lones).at_most(nearest.get()))
        for place, found in enumerate((most.get().greatest(), least.get().least())):
            found = Int(code.builder, found)
            code.put(found if long else found.long(), seen, place)
        found = Int(code.builder, nearest.get().least())
        code.builder.ret(found.same(0).long().value)
        return code.builder.function

    def _fits(self, code, known, x, number):
        """Which operands are ordinary."""
        if self.sum.kind in DOUBLES:
            magnitude = x & singles.MAGNITUDE64
            return (magnitude >= singles.LEAST) & (magnitude < singles.ABOVE) | magnitude.is_zero()
        zero = known.divisor if number == 1 else known.unit
        magnitude = x & known.look_mask
        outside = (magnitude - zero).below(known.least - zero) | known.most.below(magnitude)
        return ~(outside | known.has_lone & x.equals(known.lone_nan))

    def _tame(self):
        """Code of so many operands: they themselves, or harmless ones, and marks of what these are for."""
        count = self.sum.operands
        kinds = *[self.read] * 6, BYTE, self.word, SINGLE, None
        code, *places, marks, integers, floats, size = self._opened("tame", GROUP // SIZES[self.read], *kinds)
        given, taken = places[:3], places[3:]
        known = self._known(code, integers, floats, self.read)
        known.unit = code.everywhere(1, self.read)
        known.has_lone = code.splat(self._number(code, integers, "lone_nan") > 0)
        with code.loop(size // code.lanes) as vector:
            at = vector * code.lanes
            operands = [code.load(x, at) for x in given[:count]]
            fine = self._fits(code, known, operands[0], 0)
            for number, x in enumerate(operands[1:], 1):
                fine = fine & self._fits(code, known, x, number)
            for number, (x, place) in enumerate(zip(operands, taken, strict=False)):
                code.store(fine.choose(x, known.harmless if number == 1 else 0), place, at)
            code.store((~fine).long(BYTE), marks, at)
        code.builder.ret(code.int(0).value)
        return code.builder.function

    def _note(self):
        """Code that adds the numbers of marked elements to those that are left, whose count it returns; so far, they raise nothing."""
        code, marks, flags, left, first, size, count = self._opened("note", 1, BYTE, BYTE, LONG, None, None, None)
        eights, found = code.builder.bitcast(marks, LONG.as_pointer()), code.variable(count)
        with code.loop(size // 8) as eight, code.when(code.get(eights, eight).differs(0)), code.loop(8) as within:
            place = eight * 8 + within
            with code.when(code.get(marks, place).differs(0)):
                code.put(first + place, left, found.get())
                code.put(Int(code.builder, ir.Constant(BYTE, 0)), flags, place)
                found.set(found.get() + 1)
        code.builder.ret(found.get().value)
        return code.builder.function

    # -- the loop --------------------------------------------------------------------------------------------------

    def _loop(self):
        what, count = self.sum, self.sum.operands
        function = ir.Function(self.module, ir.FunctionType(LONG, [LONG.as_pointer()]), "loop")
        code = Code(function, GROUP)
        builder = code.builder
        call = {name: code.get(function.args[0], number) for number, name in enumerate(BLOCK_FIELDS)}
        kinds = *[self.read] * 3, self.made, BYTE, LONG, self.word, SINGLE, LONG, BYTE
        for name, kind in zip(BLOCK_POINTERS, kinds, strict=True):
            call[name] = builder.inttoptr(call[name].value, kind.as_pointer())
        room = [code.room(BLOCK, self.read) for _ in range(count)]
        made, flags, marks = code.room(GROUP, self.made), code.room(BLOCK, BYTE), code.room(BLOCK, BYTE)
        words, seen = code.room(BLOCK + TILE, SHORT), code.room(2 * count, LONG)
        first, left, raised = (
            code.variable(code.int(0)),
            code.variable(code.int(0)),
            code.variable(code.everywhere(0, BYTE)),
        )
        with code.while_(lambda: (first.get() < call["size"]) & (left.get() < call["most"] + 1)):
            begin, rest = first.get(), call["size"] - first.get()
            tail, each = rest < GROUP, call["each"].differs(0)
            size = tail.choose(code.int(GROUP), rest.least(BLOCK) & ~(GROUP - 1))
            limit = rest.least(size)
            here = [code.variable(Int(builder, code.at(call[name], begin))) for name in "abc"[:count]]
            with code.when(tail):
                for variable, to in zip(here, room, strict=True):
                    source = variable.get().value
                    with code.loop(GROUP) as place:
                        code.put(code.get(source, (place < limit).choose(place, code.int(0))), to, place)
                    variable.set(Int(builder, to))
            own = builder.select(each.value, code.at(call["flags"], begin), flags)
            own = builder.select(tail.value, flags, own)
            codes = builder.select(tail.value, made, code.at(call["codes"], begin))
            random = words
            if what.draws:
                random = self._drawn(code, call, words, begin, limit)

            def run(function, marked, here=here, codes=codes, own=own, random=random, size=size):
                operands = [x.get().value for x in here]
                given = codes, own, random, marks, call["integers"], call["floats"], size // self.lanes
                some = code.call(function, *operands, *operands[-1:] * (3 - count), *given)
                if marked:
                    self._noted(code, call, marks, own, left, begin, limit, some)

            def careful(here=here, own=own, size=size):
                if not self.wide:
                    with code.when(self._is_ordinary(code, call, here, seen, size).same(0), rarely=True):
                        operands = [x.get().value for x in here]
                        fill = [room[-1]] * (3 - count)
                        code.call(
                            self.tame, *operands, *operands[-1:] * (3 - count), *room, *fill, marks, call["integers"],
                            call["floats"], size,
                        )  # fmt: skip
                        self._noted(code, call, marks, own, left, begin, limit, code.int(1))
                        for variable, to in zip(here, room, strict=True):
                            variable.set(Int(builder, to))
                run(self.some, self.leaves)

            if self.calm is None:
                careful()
            else:
                with builder.if_else(self._is_calm(code, call, here, seen, size).value) as (calm, otherwise):
                    with calm:
                        run(self.calm, what.draws)
                    with otherwise:
                        careful()
            with code.when(tail):
                with code.loop(limit) as place:
                    code.put(code.get(made, place), call["codes"], begin + place)
                    with code.when(each):
                        code.put(code.get(flags, place), call["flags"], begin + place)
                with code.loop(GROUP, limit) as place:
                    code.put(Int(builder, ir.Constant(BYTE, 0)), flags, place)
            with code.when(each.same(0)), code.loop(size // GROUP) as group:
                raised.set(raised.get() | code.load(flags, group * GROUP))
            first.set(begin + limit)
        code.put(left.get(), call["left"], call["most"] + BLOCK)
        builder.ret((first.get() << FLAG_BITS | Int(builder, raised.get().anywhere()).long()).value)

    @property
    def leaves(self):
        """Whether elements may be left after they were looked at."""
        what = self.sum
        return what.draws or what.flushes or what.kind == "single" or self.wide

    def _drawn(self, code, call, words, first, count):
        """Where the random half-words of so many elements are."""
        builder, flags = code.builder, code.room(1, LONG)
        given = [call[name].value for name in ("given", "width", "key", "stream")]
        arguments = words, first.value, count.value, call["start"].value, call["handed"], *given
        kind = ir.FunctionType(WORD, [flags.type, BYTE.as_pointer(), *(x.type for x in arguments)])
        function = builder.bitcast(call["half_words"], kind.as_pointer())
        builder.call(function, [flags, ir.Constant(BYTE.as_pointer(), None), *arguments])
        return code.at(words, call["given"].differs(0).choose(code.int(0), first & (TILE - 1)))

    def _noted(self, code, call, marks, flags, left, first, limit, some):
        with code.when(some.differs(0), rarely=True):
            with code.loop((limit + 7) & -8, limit) as place:
                code.put(Int(code.builder, ir.Constant(BYTE, 0)), marks, place)
            noted = marks, flags, call["left"], first, (limit + 7) & -8, left.get()
            left.set(code.call(self.note, *noted))

    def _looked(self, code, codes, seen, size, mask, unit, lone):
        """(The greatest magnitude, the least less `unit`, whether one is `lone`) of some operands."""
        found = code.call(self.ends, codes, seen, size, mask, unit, lone)
        return code.get(seen), code.get(seen, 1), found

    def _number(self, code, integers, name):
        """A number of the call, with its sign."""
        found = code.get(integers, names_of(int, self.numbers, Source, Target).index(name))
        return Int(code.builder, code.builder.sext(found.value, LONG))

    def _bits(self, code, call, name):
        """The bits of a float32 as those of an operand."""
        found = self._number(code, call["integers"], name)
        return (found << 29) + ((1023 - 127) << 52) if self.sum.kind in DOUBLES else found

    def _is_calm(self, code, call, here, seen, size):
        """Whether no number is tiny in the format that it becomes, or beyond it."""
        mask = code.int((1 << (8 * self.sum.read - 1)) - 1)
        most, least, _ = self._looked(code, here[0].get().value, seen, size, mask, code.int(1), code.int(-1))
        lowest, largest = (self._bits(code, call, name) for name in ("lowest_bits", "largest_bits"))
        return (least >= lowest - 1) & (most < largest + 1)

    def _is_ordinary(self, code, call, here, seen, size):
        """Whether all operands are ordinary."""
        if self.sum.kind in DOUBLES:
            given = code.int(singles.MAGNITUDE64), code.int(1), code.int(-1)
            most, least, _ = self._looked(code, here[0].get().value, seen, size, *given)
            return (most < singles.ABOVE) & (least >= singles.LEAST - 1)
        names = "least", "most", "look_mask", "lone_nan", "divisor"
        known = {name: self._number(code, call["integers"], name) for name in names}
        fine = code.truth(True)
        for number, x in enumerate(here):
            unit = known["divisor"] if number == 1 else code.int(1)
            given = known["look_mask"], unit, known["lone_nan"]
            most, least, lone = self._looked(code, x.get().value, seen, size, *given)
            fine = fine & (most < known["most"] + 1) & (least >= known["least"] - unit) & lone.same(0)
        return fine
