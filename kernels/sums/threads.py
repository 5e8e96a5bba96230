"""Sums on a GPU: each thread has some outputs, one number for each; orders, arithmetics and observers are those of the CPU's vectors.

A block of threads has a rectangle of outputs, and some products of all of their operands at a time in memory that it shares. LLVM makes PTX of
it, in which every operation has its rounding, so that nothing contracts two into one.
"""

from functools import cache, cached_property
from typing import NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from ..accumulate import STORE
from ..exact_units import exact_unit_step
from ..prng import DOT_LOW_PLANE, DOT_PLANE
from ..steps import (
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    LEFT_OPEN,
    OVERFLOWED,
    ROUNDED,
    SWAMPED,
    UNSETTLED,
    VALUE,
    Numbers,
)
from ..units import LEAD, MAKERS, PER_GRID, TOTAL, UnitNumbers, Watch, aligned_phases, slots_of
from . import arithmetics
from .language import BIT, BYTE, DOUBLE, LONG, SINGLE, WORD, Int
from .language import SIZES as SIZES_OF
from .loop import BEGINS, Seen, counted_apart, flags_of
from .noise import PHILOX_MULTIPLIERS, PHILOX_STEPS, ROUNDINGS
from .observers import Counts, Flags, Nobody
from .orders import ERRORS, ORDERS
from .scalars import Scalar, ThreadCode

TRIPLE = "nvptx64-nvidia-cuda"
CAPABILITIES = {(7, 0): "ptx64", (7, 5): "ptx64", (8, 0): "ptx70", (8, 6): "ptx71", (8, 9): "ptx78", (9, 0): "ptx78"}
"""GPUs that code is made for, and the least version of PTX that knows them; later ones take the code of the last."""
SIDE = 16
"""Threads of a block, in a row and in a column."""
THREADS = SIDE * SIDE
RESIDENT = {1: 3, 2: 2, 4: 2}
"""Blocks that a multiprocessor has at work at least, by outputs of a thread in a row: how many registers there are for each."""
FOUR = 4
"""Numbers that a thread moves at a time."""
SHARED = 3  # of the spaces of addresses, the one of memory that a block shares (PTX ISA, state spaces)
OPEN = 0x80
"""Among flags: this output is left open, to a way that has all random bits."""
OPERANDS = "a", "b", "c", "values"
POINTERS = {"flags": BYTE, "counts": LONG, "extremes": DOUBLE}
SIZES = (
    "rows", "length", "columns", "across_a", "across_b", "next_a", "next_b", "plane_a", "plane_b", "down", "tiles", "outputs",
)  # fmt: skip
"""Rows, products and columns of an output's matrix; numbers in a row of operands; from one product of a batch to the next, and from numbers to their
powers of two; blocks in a column and of all the matrix; outputs in all."""
NUMBERS = VALUE, ERRORS, LEAST, GREATEST, LEAD, TOTAL, PER_GRID
"""Slots that hold numbers; others hold bits."""
RANDOM = "width", "key", "stream"


class Block:
    """How a block of threads shares a matrix of outputs."""

    counts = False
    single = True
    planes = 1

    @property
    def block(self):
        """Outputs of a block of threads, in a row and in a column."""
        return self.side * SIDE

    @property
    def depth(self):
        """Products of a panel: those that a thread fills by moving FOUR numbers of each operand."""
        return THREADS * FOUR // self.block


class _Sum(NamedTuple):
    order: str
    stage: NamedTuple
    counts: bool
    begins: bool


class ThreadSum(_Sum, Block):
    """An order, how it rounds, whether additions are counted, whether sums begin with c."""

    __slots__ = ()

    @property
    def side(self):
        """Outputs of a thread, in a row and in a column: more where a turn takes fewer registers."""
        return 1 if self.stage.draws else 2 if self.counts else 4


class _Unit(NamedTuple):
    unit: NamedTuple
    phased: bool
    single: bool
    begins: bool


class ThreadUnit(_Unit, Block):
    """A unit's turn, in phases or not, whether sums are float32, whether they begin with c."""

    __slots__ = ()
    side = 2

    @property
    def planes(self):
        """Arrays of each operand: numbers, and where terms are aligned their powers of two."""
        return 1 + (self.unit.kind == "aligned")


class _Seen(Seen):
    """What all code of a thread sees of a call."""

    directed = fuses = True

    def parameter(self, name):
        """A number of the call."""
        return self._driver.numbers[name]


class Turn(_Seen):
    """What an arithmetic sees of a turn of one output: operands, random bits, numbers of the call."""

    def __init__(self, driver, a, b, output, place, words):
        self.code, self.builder, self.lanes = driver.code, driver.code.builder, 1
        self._driver, self._operands, self.output, self._place, self._words = driver, (a, b), output, place, words

    def a(self, place):
        """The first factor of a product, or a number."""
        return self._operands[0]

    def b(self, place):
        """The second."""
        return self._operands[1]

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
        return self._driver.decided(self, up, near, fraction, error) if self._words["settles"] else (up, near)


class Single(Turn):
    """A turn whose place among others is not known when code is written."""

    def noise(self, site, number):
        """The first 16 random bits of a rounding, or as many as there are."""
        at = self._place[0] * self._driver.piece.numbers[site] + number
        self.top, self.last = self._driver.first_bits(self.output, site, at), (site, at)
        return self.top & self._driver.kept


class UnitTurn(_Seen):
    """What a unit's steps see of a turn of the outputs that a thread has in a column. `row` is the one being written."""

    def __init__(self, driver, panels, corner, first, number, outputs):
        self.code, self.rows, self.row = driver.code, len(outputs), 0
        self._driver, self._panels, self._corner, self._first = driver, panels, corner, first
        self._number, self._outputs = number, outputs

    def _operand(self, which, product, plane, at):
        where = (self._first + product) * self._driver.sum.block + at
        return self.code.load(self._panels[which, plane], where)

    def a(self, row, product=0, plane=0):
        """The numbers of a row for a product of the turn; `plane` counts further arrays beside the values."""
        self.row = row
        return self._operand("a", product, plane, self._corner[0] + row)

    def b(self, product=0, plane=0):
        """Those of the other operand."""
        return self._operand("b", product, plane, self._corner[1])

    def noise(self, row):
        """All random bits of an output's store."""
        return self._driver.all_bits(self._outputs[row], STORE, self._number)


class Threads:
    """The kernel `sums` of a description, in an LLVM module."""

    numbered = Numbers

    def __init__(self, what):
        self.sum = what
        self.item, self.word = (SINGLE, WORD) if what.single else (DOUBLE, LONG)
        self.module = ir.Module("sums")
        self.module.triple = TRIPLE
        places = dict.fromkeys(OPERANDS, self.item) | POINTERS
        fields = self.numbered._fields
        kinds = (
            [x.as_pointer() for x in places.values()]
            + [LONG] * len(SIZES + RANDOM)
            + [WORD]
            + [self.word] * len(fields)
        )
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), kinds), "sums")
        function.calling_convention = "ptx_kernel"
        for name, number in (("maxntidx", THREADS), ("minctasm", RESIDENT[what.side])):
            self.module.add_named_metadata("nvvm.annotations", [function, name, ir.Constant(WORD, number)])
        self.code = ThreadCode(function)
        given, builder = iter(function.args), self.code.builder
        self.places = {name: next(given) for name in places}
        self.call = {name: Int(builder, next(given)) for name in SIZES + RANDOM}
        of_nan = Scalar(builder, next(given))
        self.of_nan = of_nan if what.single else of_nan.long()
        self.numbers = {name: Scalar(builder, next(given)).floats() for name in fields}
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
        outputs = {cell: place(*cell)[0] for cell in cells}
        panels = {(which, plane): self._room(which, plane) for which in "ab" for plane in range(self.sum.planes)}
        depth = self.sum.depth
        with code.loop((call["length"] + (depth - 1)) // depth) as number:
            first = number * depth
            code.together()
            k, n = me // (self.sum.block // FOUR), me % (self.sum.block // FOUR) * FOUR
            for (which, plane), panel in panels.items():
                source = (first + k) * call[f"across_{which}"] + corner["ab".index(which)] + n
                source = source + call[f"plane_{which}"] * plane
                code.move(self.places[which], source, panel, k * self.sum.block + n, FOUR)
            code.together()
            self._turns(panels, (y * side, x * side), first, (call["length"] - first).least(depth), outputs, held)
            for state in held.values():
                self._take_counts(state)
        for cell, state in held.items():
            output, inside = place(*cell)
            with code.when(inside):
                self._tell(state, output)
        code.builder.ret_void()

    def _room(self, which, plane):
        """Memory that the block shares, for a panel."""
        kind = ir.ArrayType(self.item, self.sum.block * self.sum.depth)
        made = ir.GlobalVariable(self.module, kind, f"panel_{which}_{plane}", SHARED)
        made.linkage, made.align = "internal", FOUR * SIZES_OF[self.item]
        made.initializer = ir.Constant(kind, ir.Undefined)
        return self.code.builder.addrspacecast(made, self.item.as_pointer())

    def _begun(self, output, inside):
        """The state of an output before its first product."""
        code, held = self.code, {}
        for slot in self.slots:
            number = BEGINS.get(slot, 0.0)
            held[slot] = code.variable(
                code.everywhere(number, self.item) if slot in NUMBERS else code.everywhere(0, self.word)
            )
        if self.sum.begins:
            with code.when(inside):
                held[VALUE].set(code.load(self.places["c"], output))
        return held

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
            random = self.all_bits(turn.output, site, number, turn.top)
            short = (random * -1.0 + 1.0) - fraction.double()  # exact: multiples of 2^-52 up to 1
            settled.set(short <= (random.all_of(0.0) if error is None else error.double()))
            left.set(near & 0)
        return settled.get(), left.get()

    def first_bits(self, output, site, at):
        """The first 16 bits of a rounding whose number is known when code runs."""
        builder, words = self.code.builder, self.drawn(output, site, at // ROUNDINGS)
        bits = [Int(builder, builder.trunc((at >> n).value, BIT)) for n in range(3)]
        of = [Int(builder, word.value) for word in words]
        word = bits[1].choose(bits[0].choose(of[3], of[2]), bits[0].choose(of[1], of[0]))
        return Scalar(builder, (bits[2].choose(word >> 16, word) & 0xFFFF).value)

    def all_bits(self, output, site, at, top=None):
        """All random bits of a rounding, as a fraction of 1."""
        top = self.first_bits(output, site, at) if top is None else top
        given = output, self.code.int(site), at, Int(top.builder, top.value).long(), *self.random
        return Scalar(top.builder, top.builder.call(self._fraction, [x.value for x in given]))

    def _keep(self, held, state):
        """An output's state, for the next turn."""
        for slot, x in held.items():
            x.set(state[slot].floats() if slot in NUMBERS else state[slot].bits())

    def _take_counts(self, state):
        """Out of words that hold three counts."""
        if not self.sum.counts:
            return
        counts = state[COUNTS].get()
        additions, inexact = counted_apart(counts)
        for slot, some in additions.items():
            state[slot].set(state[slot].get() + some)
        state[INEXACT].set(state[INEXACT].get() | inexact)
        state[COUNTS].set(counts & 0)

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


class InOrder(Threads):
    """Sums of products one after the other."""

    def __init__(self, what):
        self.order = order = ORDERS[what.order](what.stage.draws)
        self.stage, self.piece, self.quick = what.stage, order.subtree, None
        if what.stage.draws and not (what.counts or what.stage.native):
            self.quick = what.stage._replace(family="narrow")  # which notes no halves of words
        self.observer = Counts(what.stage.of_nan) if what.counts else Flags()
        told = (OVERFLOWED, ROUNDED, SWAMPED) * what.counts
        noted = (INEXACT, *what.stage.slots)
        stage = what.stage
        self.settles = stage.draws and not (stage.wide or stage.either or stage.native)  # errors are exact, and decide
        self.slots = tuple(dict.fromkeys((*order.slots, *self.observer.slots, *noted, *told)))
        super().__init__(what)

    def _turns(self, panels, corner, first, count, outputs, held):
        """So many turns of a thread's outputs, of panels that begin with product `first`: some written out at a time, the rest one by one."""
        code, at_once = self.code, ROUNDINGS if self.stage.draws else FOUR
        with code.loop(count // at_once) as group:
            self._some(panels, corner, first, group * at_once, at_once, outputs, held)
        with code.loop(count, count // at_once * at_once) as k:
            self._some(panels, corner, first, k, 1, outputs, held)

    def _some(self, panels, corner, first, k, count, outputs, held):
        """So many turns, written out. Those that draw go output by output, as random numbers of one are in registers; what their first 16 bits
        leave open is done again with all of them."""
        code, side, kind = self.code, self.sum.side, Turn if count > 1 else Single

        def operands(later):
            rows = zip("ab", corner, strict=True)
            return (code.some(panels[which, 0], (k + later) * self.sum.block + at, side) for which, at in rows)

        def turn(cell, later, a, b, words):
            return kind(self, a, b, outputs[cell], (first + k, later), words)

        def step(cell, *given):
            own = {slot: x.get() for slot, x in held[cell].items()}
            words = arithmetics.careful(self.stage)(turn(cell, *given), self.stage, self.observer, own)
            self.piece.step(words, own)
            self._keep(held[cell], own)

        if not self.stage.draws:
            for later in range(count):
                a, b = operands(later)
                for i, j in held:
                    step((i, j), later, a[i], b[j], {})
            return

        def steps(cell, step, settles=False):
            words = {"settles": settles}
            for later in range(count):
                where = (k + later) * self.sum.block
                at = (corner[0] + cell[0], corner[1] + cell[1])
                a, b = (code.load(panels[x, 0], where + y) for x, y in zip("ab", at, strict=True))
                step(cell, later, a, b, words)

        def carefully(cell, state):
            before = {slot: x.get() for slot, x in state.items()}
            state[LEFT_OPEN].set(before[LEFT_OPEN] & 0)
            steps(cell, step)
            if self.settles:
                with code.when(Int(code.builder, (state[LEFT_OPEN].get() < 0).value), rarely=True):
                    for slot, x in before.items():
                        state[slot].set(x if slot != LEFT_OPEN else x & 0)
                    steps(cell, step, True)
            state[LEFT_OPEN].set(state[LEFT_OPEN].get() | before[LEFT_OPEN])

        for cell, state in held.items():
            if self.quick is None or count == 1:
                carefully(cell, state)
                continue
            left = code.variable(code.truth(True))
            with code.when(Int(code.builder, state[INEXACT].get().nonzero().value)):
                self._quickly(state, left, turn, lambda step, cell=cell: steps(cell, step))
            with code.when(left.get(), rarely=True):
                carefully(cell, state)

    def _quickly(self, state, left, turn, steps):
        """Turns of an output that is inexact already, by bits; they are `left` to be done with care if one of them may be wrong."""
        code, builder, stage = self.code, self.code.builder, self.quick
        noted = {
            slot: code.everywhere(bits, WORD)
            for slot, bits in arithmetics.QuickDraws.watches(stage, False, False).items()
        }
        own, known = noted | {VALUE: state[VALUE].get()}, Turn(self, None, None, None, None, None)
        unfit = arithmetics.unfit(stage)
        fit = code.truth(True) if unfit is None else Int(builder, builder.not_(unfit(known, [own[VALUE]])))

        steps(lambda *given: self.piece.step(arithmetics.QuickDraws(turn(*given), stage, Nobody(), own), own))
        wrong = Int(builder, arithmetics.QuickDraws.went_wrong(known, stage, own, self.order.fuses, False))
        right = Int(builder, builder.not_(wrong.value)) & fit
        left.set(right.choose(code.truth(False), code.truth(True)))
        state[VALUE].set(
            Scalar(builder, builder.select(right.value, own[VALUE].floats().value, state[VALUE].get().value))
        )


class Units(Threads):
    """Sums of a dot-product unit."""

    def __init__(self, what):
        unit = what.unit
        self.numbered = Numbers if unit.kind == "pairs" else UnitNumbers
        self.slots = (VALUE, INEXACT, *(slot for slot in slots_of(unit) if slot != UNSETTLED))  # stores have all bits
        if what.phased:
            self._steps = aligned_phases(unit, Watch(True))
        else:
            make = exact_unit_step if unit.kind == "exact" else MAKERS[unit.kind]
            self._steps = [(None, make(unit, Watch(True)))]
        super().__init__(what)

    def _turns(self, panels, corner, first, count, outputs, held):
        """So many products of all outputs of a thread, whole turns, of panels that begin with product `first`."""
        code, unit, side, zero = self.code, self.sum.unit, self.sum.side, self.code.everywhere(0.0, self.item)
        aside = (LEAD, TOTAL, PER_GRID) * self.sum.phased
        with code.loop(count // unit.group) as turn:
            columns = [
                [held[i, j] | {slot: code.variable(zero) for slot in aside} for i in range(side)] for j in range(side)
            ]

            def run(step, product, turn=turn, columns=columns):
                for j, states in enumerate(columns):
                    of_column, at = [outputs[i, j] for i in range(side)], (corner[0], corner[1] + j)
                    tile = UnitTurn(
                        self, panels, at, turn * unit.group + product, first // unit.group + turn, of_column
                    )
                    self._run(step, tile, states)

            for products, step in self._steps:
                if products is not None:
                    with code.loop(products.stop, products.start) as k:
                        run(step, k)
                else:
                    run(step, 0)

    def _run(self, step, tile, held):
        """Code of a step, of each output of a column or of all together."""
        states = [{slot: x.get() for slot, x in of_row.items()} for of_row in held]
        if getattr(step, "together", False):
            step(tile, states)
        else:
            for row, state in enumerate(states):
                tile.row = row
                states[row] = step(tile, row, state)
        for of_row, state in zip(held, states, strict=True):
            self._keep(of_row, state)


@cache
def text(what, capability):
    """PTX of a description, for GPUs of a compute capability."""
    known = max((x for x in CAPABILITIES if x <= capability), default=min(CAPABILITIES))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(cpu="sm_{}{}".format(*known), features=f"+{CAPABILITIES[known]}", opt=3)
    module = (Units if isinstance(what, ThreadUnit) else InOrder)(what).module
    module.data_layout = str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)
