"""Sums on a GPU: each thread has some outputs, one number for each; orders, arithmetics and observers are those of the CPU's vectors.

A block of threads has a rectangle of outputs, and some products of all of their operands at a time in memory that it shares. LLVM makes PTX of
it, in which every operation has its rounding, so that nothing contracts two into one.
"""

from functools import cache, cached_property
from typing import NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils

from ..prng import DOT_LOW_PLANE, DOT_PLANE
from ..steps import (
    COUNT_BITS,
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    LEFT_OPEN,
    LOWEST_BIT,
    OVERFLOWED,
    ROUNDED,
    SWAMPED,
    VALUE,
    Numbers,
)
from ..vectors import Vector
from . import arithmetics
from .language import BIT, BYTE, DOUBLE, LONG, SINGLE, WORD, Code, Int
from .loop import BEGINS, flags_of
from .noise import PHILOX_MULTIPLIERS, PHILOX_STEPS, ROUNDINGS
from .observers import Counts, Flags
from .orders import ERRORS, ORDERS

TRIPLE = "nvptx64-nvidia-cuda"
CAPABILITIES = {(7, 0): "ptx64", (7, 5): "ptx64", (8, 0): "ptx70", (8, 6): "ptx71", (8, 9): "ptx78", (9, 0): "ptx78"}
"""GPUs that code is made for, and the least version of PTX that knows them; later ones take the code of the last."""
SIDE = 16
"""Threads of a block, in a row and in a column."""
THREADS = SIDE * SIDE
RESIDENT = {1: 4, 2: 2, 4: 2}
"""Blocks that a multiprocessor has at work at least, by outputs of a thread in a row: how many registers there are for each."""
FOUR = 4
"""Numbers that a thread moves at a time."""
SHARED = 3  # of the spaces of addresses, the one of memory that a block shares (PTX ISA, state spaces)
OPEN = 0x80
"""Among flags: this output is left open, to a way that has all random bits."""
POINTERS = {
    "a": SINGLE, "b": SINGLE, "c": SINGLE, "values": SINGLE, "flags": BYTE, "counts": LONG, "extremes": DOUBLE,
}  # fmt: skip
SIZES = "rows", "length", "columns", "across_a", "across_b", "next_a", "next_b", "down", "tiles", "outputs"
"""Rows, products and columns of an output's matrix; numbers in a row of operands; from one product of a batch to the next; blocks in a column and of
all the matrix; outputs in all."""
NUMBERS = VALUE, ERRORS, LEAST, GREATEST
"""Slots that hold numbers; others hold bits."""
RANDOM = "width", "key", "stream"
_DIRECTIONS = {"down": "rm", "up": "rp", "zero": "rz"}
_NAMES = {"vfmadd": "fma", "add": "add", "mul": "mul"}
_SUFFIXES = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}


class ThreadSum(NamedTuple):
    """An order, how it rounds, whether additions are counted, whether sums begin with c."""

    order: str
    stage: NamedTuple
    counts: bool
    begins: bool

    @property
    def side(self):
        """Outputs of a thread, in a row and in a column: more where a turn takes fewer registers."""
        return 1 if self.stage.draws else 2 if self.counts else 4

    @property
    def block(self):
        """Outputs of a block of threads, in a row and in a column."""
        return self.side * SIDE

    @property
    def depth(self):
        """Products of a panel: those that a thread fills by moving FOUR numbers of each operand."""
        return THREADS * FOUR // self.block


class Scalar(Vector):
    """A number in code being generated, as a vector of one lane that has no vector's type."""

    @property
    def element(self):
        """LLVM's type of it."""
        return self.value.type

    def _like(self, other):
        return other.value if isinstance(other, Vector) else ir.Constant(self.value.type, other)

    def _new(self, value):
        return Scalar(self.builder, value)

    def _typed(self, element):
        return element

    def _call(self, name, *others):
        return self._called(f"llvm.{name}.{_SUFFIXES[str(self.element)]}", *others)

    def _toward(self, name, direction, *others):
        last = {"float": "f", "double": "d"}[str(self.element)]
        return self._called(f"llvm.nvvm.{_NAMES[name]}.{_DIRECTIONS[direction]}.{last}", *others)

    def _called(self, name, *others):
        kind = self.element
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(kind, [kind] * (1 + len(others))), name
        )
        return self._new(self.builder.call(function, [self.value, *map(self._like, others)]))


class ThreadCode(Code):
    """Where a thread's code is written."""

    def __init__(self, function):
        super().__init__(function, 1)

    def everywhere(self, x, kind=SINGLE):
        """A number known by now."""
        return Scalar(self.builder, ir.Constant(kind, x))

    def splat(self, scalar):
        """A number."""
        return Scalar(self.builder, getattr(scalar, "value", scalar))

    def only(self, vector):
        """A number's value."""
        return vector.value

    def load(self, pointer, where=0):
        """A number."""
        return Scalar(self.builder, self.builder.load(self.at(pointer, where)))

    def store(self, vector, pointer, where=0):
        """A number."""
        self.builder.store(vector.value, self.at(pointer, where))

    def register(self, name):
        """A number that the GPU tells each thread (PTX ISA, special registers)."""
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(WORD, []), f"llvm.nvvm.read.ptx.sreg.{name}"
        )
        return Int(self.builder, self.builder.zext(self.builder.call(function, []), LONG))

    def together(self):
        """Wait for all threads of the block."""
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.nvvm.barrier0"
        )
        self.builder.call(function, [])

    def some(self, pointer, where, count):
        """So many numbers side by side, which lie where so many do."""
        kind = ir.VectorType(SINGLE, count)
        place = self.builder.bitcast(self.at(pointer, where), kind.as_pointer())
        found = self.builder.load(place, align=4 * count)
        lanes = [self.builder.extract_element(found, ir.Constant(WORD, n)) for n in range(count)]
        return [Scalar(self.builder, lane) for lane in lanes]

    def move(self, source, at, target, to, count):
        """So many numbers from one memory to another."""
        kind = ir.VectorType(SINGLE, count).as_pointer()
        here, there = (self.builder.bitcast(self.at(*x), kind) for x in ((source, at), (target, to)))
        self.builder.store(self.builder.load(here, align=4 * count), there, align=4 * count)


class Turn:
    """What an arithmetic sees of a turn of one output: operands, random bits, numbers of the call."""

    lift = 1.0
    directed = fuses = True

    def __init__(self, driver, a, b, output, place, words):
        self.code, self.builder, self.lanes = driver.code, driver.code.builder, 1
        self._driver, self._operands, self.output, self._place, self._words = driver, (a, b), output, place, words

    def a(self, place):
        """The first factor of a product, or a number."""
        return self._operands[0]

    def b(self, place):
        """The second."""
        return self._operands[1]

    def parameter(self, name):
        """A number of the call."""
        return self._driver.numbers[name]

    def integer(self, name):
        """One that is an integer in disguise."""
        return self.parameter(name).bits()

    def noise(self, site, number):
        """The first 16 random bits of a rounding, or as many as there are."""
        first, later = self._place
        count = self._driver.piece.numbers[site]
        number += later * count
        block = site, number // ROUNDINGS
        if block not in self._words:
            self._words[block] = self._driver.drawn(self.output, site, first * count // ROUNDINGS + number // ROUNDINGS)
        words, of, self.last = self._words[block], number % ROUNDINGS, (site, first * count + number)
        self.top = (words[of % 4].logical_right(16) if of >= 4 else words[of]) & 0xFFFF
        return self.top & self._driver.kept

    def decided(self, up, near, fraction, error):
        """What `steps.drawn` asks for: of the rounding whose random bits were taken last."""
        stage = self._driver.stage
        return (up, near) if stage.wide or stage.either else self._driver.decided(self, up, near, fraction, error)


class Single(Turn):
    """A turn whose place among others is not known when code is written."""

    def noise(self, site, number):
        """The first 16 random bits of a rounding, or as many as there are."""
        builder, count = self.builder, self._driver.piece.numbers[site]
        at = self._place[0] * count + number
        words = self._driver.drawn(self.output, site, at // ROUNDINGS)
        bits = [Int(builder, builder.trunc((at >> n).value, BIT)) for n in range(3)]
        of = [Int(builder, word.value) for word in words]
        word = bits[1].choose(bits[0].choose(of[3], of[2]), bits[0].choose(of[1], of[0]))
        found, self.last = bits[2].choose(word >> 16, word) & 0xFFFF, (site, at)
        self.top = Scalar(builder, found.value)
        return self.top & self._driver.kept


class Threads:
    """The kernel `sums` of a description, in an LLVM module."""

    def __init__(self, what):
        self.sum, self.stage = what, what.stage
        self.order = ORDERS[what.order](what.stage.draws)
        self.piece = self.order.subtree
        self.observer = Counts(what.stage.of_nan) if what.counts else Flags()
        told = (OVERFLOWED, ROUNDED, SWAMPED) * what.counts
        noted = (INEXACT, *(self.stage.options if self.stage.draws else self.stage.manner).slots)
        self.slots = tuple(dict.fromkeys((*self.order.slots, *self.observer.slots, *noted, *told)))
        self.module = ir.Module("sums")
        self.module.triple = TRIPLE
        kinds = (
            *(kind.as_pointer() for kind in POINTERS.values()),
            *[LONG] * len(SIZES + RANDOM),
            WORD,
            *[SINGLE] * len(Numbers._fields),
        )
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), kinds), "sums")
        function.calling_convention = "ptx_kernel"
        self.module.add_named_metadata("nvvm.annotations", [function, "maxntidx", ir.Constant(WORD, THREADS)])
        self.module.add_named_metadata(
            "nvvm.annotations", [function, "minctasm", ir.Constant(WORD, RESIDENT[what.side])]
        )
        self.code = ThreadCode(function)
        given, builder = iter(function.args), self.code.builder
        self.places = {name: next(given) for name in POINTERS}
        self.call = {name: Int(builder, next(given)) for name in SIZES + RANDOM}
        self.of_nan = Scalar(builder, next(given))
        self.numbers = {name: Scalar(builder, next(given)).floats() for name in Numbers._fields}
        self.random = [self.call[name] for name in RANDOM]
        self._write()

    def _write(self):
        code, call, side = self.code, self.call, self.sum.side
        kept = (code.int(0xFFFF) << (code.int(16) - call["width"].least(16))) & 0xFFFF
        self.kept = code.splat(kept.cut(WORD))
        me, unit = code.register("tid.x"), code.register("ctaid.x")
        x, y = me % SIDE, me // SIDE
        product, within = unit // call["tiles"], unit % call["tiles"]
        corner = within % call["down"] * self.sum.block, within // call["down"] * self.sum.block
        self.places["a"] = code.at(self.places["a"], product * call["next_a"])
        self.places["b"] = code.at(self.places["b"], product * call["next_b"])

        def place(i, j):
            row, column = corner[0] + y * side + i, corner[1] + x * side + j
            output = (product * call["rows"] + row) * call["columns"] + column
            return output, (row < call["rows"]) & (column < call["columns"])

        cells = [(i, j) for i in range(side) for j in range(side)]
        held = {cell: self._begun(*place(*cell)) for cell in cells}
        outputs = {cell: place(*cell)[0] if self.stage.draws else None for cell in cells}
        panels = {which: self._room(which) for which in "ab"}
        depth = self.sum.depth
        with code.loop((call["length"] + (depth - 1)) // depth) as number:
            first = number * depth
            code.together()
            for which, at in zip("ab", corner, strict=True):
                k, n = me // (self.sum.block // FOUR), me % (self.sum.block // FOUR) * FOUR
                source = (first + k) * call[f"across_{which}"] + at + n
                code.move(self.places[which], source, panels[which], k * self.sum.block + n, FOUR)
            code.together()
            self._turns(panels, (y * side, x * side), first, (call["length"] - first).least(depth), outputs, held)
            for state in held.values():
                self._take_counts(state)
        for cell, state in held.items():
            output, inside = place(*cell)
            with code.when(inside):
                self._tell(state, output)
        code.builder.ret_void()

    def _room(self, which):
        """Memory that the block shares, for a panel."""
        kind = ir.ArrayType(SINGLE, self.sum.block * self.sum.depth)
        made = ir.GlobalVariable(self.module, kind, f"panel_{which}", SHARED)
        made.linkage, made.align = "internal", 16
        made.initializer = ir.Constant(kind, ir.Undefined)
        return self.code.builder.addrspacecast(made, SINGLE.as_pointer())

    def _begun(self, output, inside):
        """The state of an output before its first product."""
        code, held = self.code, {}
        for slot in self.slots:
            kind = SINGLE if slot in NUMBERS else WORD
            held[slot] = code.variable(code.everywhere(BEGINS.get(slot, 0 if kind == WORD else 0.0), kind))
        if self.sum.begins:
            with code.when(inside):
                held[VALUE].set(code.load(self.places["c"], output))
        return held

    def _turns(self, panels, corner, first, count, outputs, held):
        """So many turns of a thread's outputs, of panels that begin with product `first`: some written out at a time, the rest one by one."""
        code, at_once = self.code, ROUNDINGS if self.stage.draws else FOUR
        with code.loop(count // at_once) as group:
            self._some(panels, corner, first, group * at_once, at_once, outputs, held)
        with code.loop(count, count // at_once * at_once) as k:
            self._some(panels, corner, first, k, 1, outputs, held)

    def _some(self, panels, corner, first, k, count, outputs, held):
        """So many turns, written out. Those that draw go output by output, as random numbers of one are in registers."""
        code, side, kind = self.code, self.sum.side, Turn if count > 1 else Single

        def operands(later):
            rows = zip("ab", corner, strict=True)
            return (code.some(panels[which], (k + later) * self.sum.block + at, side) for which, at in rows)

        def step(cell, later, a, b, words):
            turn = kind(self, a, b, outputs[cell], (first + k, later), words)
            own = {slot: x.get() for slot, x in held[cell].items()}
            self.piece.step(arithmetics.careful(self.stage)(turn, self.stage, self.observer, own), own)
            for slot, x in held[cell].items():
                x.set(own[slot].floats() if slot in NUMBERS else own[slot].bits())

        if not self.stage.draws:
            for later in range(count):
                a, b = operands(later)
                for i, j in held:
                    step((i, j), later, a[i], b[j], {})
            return
        for i, j in held:
            words = {}
            for later in range(count):
                where = (k + later) * self.sum.block
                a, b = code.load(panels["a"], where + corner[0] + i), code.load(panels["b"], where + corner[1] + j)
                step((i, j), later, a, b, words)

    def _function(self, name, returned, *kinds):
        """A function that the kernel calls: what it needs is in registers only as long."""
        made = ir.Function(self.module, ir.FunctionType(returned, kinds), name)
        made.linkage = "internal"
        made.attributes.add("noinline")
        return made

    @cached_property
    def _words(self):
        """words(output, where, key, stream) -> four random words (`prng.philox`)."""
        made = self._function("words", ir.LiteralStructType([WORD] * 4), WORD, WORD, LONG, LONG)
        code = ThreadCode(made)
        c0, c1, key, stream = (Scalar(code.builder, x) for x in made.args)
        c2, c3, *keys = (half for x in (stream, key) for half in (x.cut(WORD), x.logical_right(32).cut(WORD)))
        for turn in range(10):
            k0, k1 = (half + (turn * step & 0xFFFFFFFF) for half, step in zip(keys, PHILOX_STEPS, strict=True))
            p0, p1 = (x.long() * factor for x, factor in zip((c0, c2), PHILOX_MULTIPLIERS, strict=True))
            high = [p.logical_right(32).cut(WORD) for p in (p0, p1)]
            c0, c1, c2, c3 = high[1] ^ c1 ^ k0, p1.cut(WORD), high[0] ^ c3 ^ k1, p0.cut(WORD)
        found = ir.Constant(made.return_value.type, ir.Undefined)
        for place, word in enumerate((c0, c1, c2, c3)):
            found = code.builder.insert_value(found, word.value, place)
        code.builder.ret(found)
        return made

    def drawn(self, output, site, block):
        """The first bits of eight roundings of an output, two in each of four words."""
        return self.words(self.code, output, DOT_PLANE, site, block, *self.random[1:])

    def words(self, code, output, plane, site, block, key, stream):
        """Four random words of an output (`prng.dot_words`)."""
        where = block | plane | site << 26
        given = output.cut(WORD).value, where.cut(WORD).value, key.value, stream.value
        found = code.builder.call(self._words, given)
        return [Scalar(code.builder, code.builder.extract_value(found, place)) for place in range(4)]

    @cached_property
    def _fraction(self):
        """fraction(output, site, number, top, width, key, stream) -> all random bits of a rounding, whose first 16 are `top`, of 1."""
        made = self._function("fraction", DOUBLE, *[LONG] * 7)
        code = ThreadCode(made)
        output, site, number, top, width, key, stream = (Int(code.builder, x) for x in made.args)
        words = [
            Int(code.builder, x.value) for x in self.words(code, output, DOT_LOW_PLANE, site, number >> 1, key, stream)
        ]
        high, low = ((number & 1).differs(0).choose(words[n + 2], words[n]).long() for n in (0, 1))
        bits = (top << 36 | high << 4 | low >> 28) & (code.int(-1) << (code.int(52) - width))
        code.builder.ret(code.builder.fmul(code.builder.uitofp(bits.value, DOUBLE), ir.Constant(DOUBLE, 2.0**-52)))
        return made

    def decided(self, turn, up, near, fraction, error):
        """(up, near) of a rounding: where its 16 bits leave it open, by all of them. One up where 1 + U + error reaches 2 - fraction, in quanta."""
        code, builder, (site, number) = self.code, self.code.builder, turn.last
        settled, left = code.variable(up), code.variable(near)
        with code.when(Int(builder, (near < 0).value), rarely=True):
            given = turn.output, code.int(site), number, Int(builder, turn.top.value).long(), *self.random
            random = Scalar(builder, builder.call(self._fraction, [x.value for x in given]))
            short = (random * -1.0 + 1.0) - fraction.double()  # exact: multiples of 2^-52 up to 1
            settled.set(short <= (random.all_of(0.0) if error is None else error.double()))
            left.set(near & 0)
        return settled.get(), left.get()

    def _take_counts(self, state):
        """Out of words that hold three counts."""
        if not self.sum.counts:
            return
        bits = COUNT_BITS[WORD.width]
        full = (1 << bits) - 1
        taken = state[COUNTS].get().logical_right(LOWEST_BIT)
        for number, slot in enumerate((ROUNDED, SWAMPED)):
            state[slot].set(state[slot].get() + (taken.logical_right(number * bits) & full))
        state[INEXACT].set(state[INEXACT].get() | taken & ~(full << bits))
        state[COUNTS].set(taken & 0)

    def _tell(self, state, output):
        """An output's sum, flags and counts, to where they belong."""
        code, places = self.code, self.places
        own = {slot: x.get() for slot, x in state.items()}
        flags = flags_of(own, self.of_nan)
        if LEFT_OPEN in own:
            flags = (own[LEFT_OPEN] < 0).choose(OPEN, flags)
        code.store(own[VALUE], places["values"], output)
        code.store(flags.cut(BYTE), places["flags"], output)
        if not self.sum.counts:
            return
        for number, slot in enumerate((OVERFLOWED, ROUNDED, SWAMPED)):
            code.store(own[slot].long(), places["counts"], output + self.call["outputs"] * number)
        none = own[LEAST] > own[GREATEST]
        for number, slot in enumerate((LEAST, GREATEST)):
            found = none.choose(float("nan"), own[slot] + 0.0)
            code.store(found.double(), places["extremes"], output + self.call["outputs"] * number)


@cache
def text(what, capability):
    """PTX of a description, for GPUs of a compute capability."""
    known = max((x for x in CAPABILITIES if x <= capability), default=min(CAPABILITIES))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(cpu="sm_{}{}".format(*known), features=f"+{CAPABILITIES[known]}", opt=3)
    module = Threads(what).module
    module.data_layout = str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)
