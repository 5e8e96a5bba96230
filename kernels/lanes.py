"""The loop over k that keeps a tile of running sums in registers, vectors written out.

A step is a function of `Vector`s; `tile` calls it once while code is generated, for each row of a tile, and makes the loop:

    state of 8 rows x 1 vector   in registers
    for k:  load 16 (or 8) numbers of b, broadcast a number of each row of a, step
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .fast import has_feature
from .vectors import FLOATS, INDEX, INTEGERS, LANES, ROWS, Vector, load, named


class Tile:
    """What a step sees of the code being generated: operands of this turn of the loop, and the call's parameters.

    `row` is the one being written, of `rows`.
    """

    def __init__(self, builder, carrier, a, b, noise, parameters, k, block, rows=ROWS, lanes=0):
        self.builder, self.carrier, self.block = builder, carrier, block
        self.rows, self.lanes, self.row = rows, lanes or LANES[carrier], 0
        self._a, self._b, self._noise, self._parameters, self._k = a, b, noise, parameters, k
        self._loaded = {}
        self.apart = None

    def _splat(self, scalar):
        vector = ir.VectorType(scalar.type, self.lanes)
        undefined = ir.Constant(vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return Vector(self.builder, self.builder.shuffle_vector(first, undefined, zeros))

    def _at(self, stride, inner, row=0, apart=1):
        """The place of turn k, and within it of a row `apart` from the one before; rows may be known to the loop alone."""
        position = self.builder.mul(self._k, ir.Constant(INDEX, stride))
        if isinstance(row, int):
            return self.builder.add(position, ir.Constant(INDEX, inner + row * apart))
        within = self.builder.mul(row, ir.Constant(INDEX, apart))
        return self.builder.add(self.builder.add(position, ir.Constant(INDEX, inner)), within)

    def a(self, row, product=0, plane=0):
        """The number of a row for a product of the block; `plane` counts further arrays beside the values."""
        where = self._at(ROWS * self.block, product * ROWS, row)
        return self._splat(self.builder.load(self.builder.gep(self._a[plane], [where])))

    def b(self, product=0, plane=0):
        """The numbers of the columns for a product of the block."""
        if (product, plane) not in self._loaded:
            where = self._at(self.lanes * self.block, product * self.lanes)
            self._loaded[product, plane] = load(self.builder, self._b[plane], where, FLOATS[self.carrier], self.lanes)
        return self._loaded[product, plane]

    def noise(self, row):
        """A vector for this turn and row."""
        where = self._at(self.lanes * self.rows, 0, row, self.lanes)
        return load(self.builder, self._noise, where, FLOATS[self.carrier], self.lanes)

    def parameter(self, name):
        """A number of the call, in every lane."""
        return self._parameters[name]

    def integer(self, name):
        """A number of the call that is an integer in disguise."""
        return self._parameters[name].bits()

    @property
    def fuses(self):
        """Whether the CPU has fused multiply-adds; without them LLVM calls a function for each lane."""
        return has_feature("fma")

    @property
    def directed(self):
        """Whether the CPU's instructions can round in a direction of their own: those for vectors of 512 bits."""
        return has_feature("avx512f") and self.lanes == LANES[self.carrier]


class _Cells:
    """The vectors of a tile's state, by slot and row, in memory and on their way through a loop.

    Slots in `shared` have one vector for all rows, that of the first. `only` is the one row of so many that is taken, if not all are.
    """

    def __init__(self, builder, carrier, kept, slots, shared, rows=ROWS, lanes=0, only=None):
        self.builder, self.kept, self.slots, self.shared = builder, kept, slots, shared
        self.element, self.rows, self.lanes = FLOATS[carrier], rows, lanes or LANES[carrier]
        self.kind = ir.VectorType(self.element, self.lanes)
        self.taken = range(rows) if only is None else [only]
        self.all = [(slot, row) for slot in slots for row in ([0] if slot in shared else self.taken)]

    def _place(self, cell):
        slot, row = cell
        lanes, first = ir.Constant(INDEX, self.lanes), ir.Constant(INDEX, slot * self.rows)
        if isinstance(row, int):
            return ir.Constant(INDEX, (slot * self.rows + row) * self.lanes)
        return self.builder.mul(self.builder.add(first, row), lanes)

    def load(self, some=None):
        """What memory holds."""
        places = self.all if some is None else some
        return {
            cell: load(self.builder, self.kept, self._place(cell), self.element, self.lanes).value for cell in places
        }

    def store(self, values):
        """To memory."""
        for cell, value in values.items():
            where = self.builder.gep(self.kept, [self._place(cell)])
            self.builder.store(value, self.builder.bitcast(where, self.kind.as_pointer())).align = 4

    def join(self):
        """What comes from other blocks of code."""
        return {cell: self.builder.phi(self.kind) for cell in self.all}

    @staticmethod
    def meet(joined, values, block):
        """`values` come from this block."""
        for cell, value in values.items():
            joined[cell].add_incoming(value, block)

    def turn(self, step, turn, during):
        """The state after a step for each row; or after one that takes the states of all rows together, and changes them."""
        if getattr(step, "together", False):
            states = [{} for _ in range(self.rows)]
            for slot, row in self.all:
                states[row][slot] = Vector(self.builder, during[slot, row])
            step(turn, states)
            return {(slot, row): states[row][slot].floats().value for slot, row in self.all}
        after = {}
        for row in self.taken:
            turn.row = row
            now = during | {cell: after[cell] for cell in after if cell[0] in self.shared}
            places = {slot: (slot, 0 if slot in self.shared else row) for slot in self.slots}
            given = {slot: Vector(self.builder, now[cell]) for slot, cell in places.items()}
            for slot, vector in step(turn, row, given).items():
                after[places[slot]] = vector.floats().value
        return after


class Operands:
    """Arguments of a compiled tile: pointers, numbers in every lane, and what makes the Tile of a turn."""

    def __init__(
        self, context, builder, signature, arguments, carrier, parameters, block, planes, kind=Tile, rows=ROWS, lanes=0
    ):
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments
        self.carrier, self.block, self.planes = carrier, block, planes
        self.kind, self.rows, self.lanes = kind, rows, lanes
        self.a, self.b, self.noise = self._planes(0, 1, 2), self._planes(3, 4, 5), self.data(6)
        outer = Tile(builder, carrier, self.a, self.b, self.noise, {}, None, block, rows, lanes)
        given = self.data(8)
        self.known = {
            name: outer._splat(builder.load(builder.gep(given, [ir.Constant(INDEX, number)])))
            for number, name in enumerate(parameters)
        }

    def data(self, number):
        """The pointer of an array."""
        array = self.context.make_array(self.signature.args[number])
        return array(self.context, self.builder, self.arguments[number]).data

    def index(self, number):
        """An integer."""
        return self.context.cast(self.builder, self.arguments[number], self.signature.args[number], types.int64)

    def _planes(self, array, start, distance):
        pointers = []
        where = self.index(start)
        for _ in range(self.planes):
            pointers.append(self.builder.gep(self.data(array), [where]))
            where = self.builder.add(where, self.index(distance))
        return pointers

    def turn(self, k):
        """What a step sees of turn k."""
        operands = self.a, self.b, self.noise, self.known
        made = self.kind(self.builder, self.carrier, *operands, k, self.block, self.rows, self.lanes)
        made.apart = self.index(2)
        return made


def _loop(builder, cells, operands, step, before, first, stop, name):
    """Code of turns first ... stop - 1, at least one. Returns the state after them."""
    entry = builder.block
    loop, done = (builder.function.append_basic_block(name + end) for end in ("", "_done"))
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(INDEX)
    k.add_incoming(first, entry)
    during = cells.join()
    cells.meet(during, before, entry)
    after = cells.turn(step, operands.turn(k), during)
    following = builder.add(k, ir.Constant(INDEX, 1))
    k.add_incoming(following, builder.block)
    cells.meet(during, after, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, stop), loop, done)
    builder.position_at_end(done)
    return after


def tile(
    name, step, carrier, slots, parameters, block=1, planes=1, shared=(), kind=Tile, rows=ROWS, lanes=0, by_row=False
):  # fmt: skip
    """The loop of one tile, for compiled code. `name` tells the step from all others.

    step(tile, row, state) -> state: one turn for one row; a state is a dict from the numbers in `slots` to Vectors. Slots
    in `shared` have one vector for all rows, that of the first. The intrinsic is called as
    function(a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns): flat arrays of the carrier, or operands as codes. a has
    ROWS numbers for each product, b one vector, from these places on, and in the further planes at these distances;
    noise has ROWS vectors for each turn; `state` has ROWS vectors for each slot there may be, those in `slots` are
    read and written; `numbers` are the parameters, of these names. Another `kind` of tile may lay its operands out
    otherwise, and have fewer rows and lanes. `by_row`: all turns of a row before the next one's, in a fraction of the code.
    """
    item = types.float32 if carrier is np.float32 else types.float64

    @intrinsic
    def run(context, a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns):
        signature = types.void(a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns)
        assert noise.dtype == state.dtype == numbers.dtype == item
        assert {a.dtype, b.dtype} <= {item, types.uint16}

        def codegen(context, builder, signature, arguments):
            operands = Operands(
                context, builder, signature, arguments, carrier, parameters, block, planes, kind, rows, lanes
            )
            count, none = operands.index(9), ir.Constant(INDEX, 0)

            def turns_of(only):
                cells = _Cells(builder, carrier, operands.data(7), slots, shared, rows, lanes, only)
                cells.store(_loop(builder, cells, operands, step, cells.load(), none, count, "turn"))

            with builder.if_then(builder.icmp_signed(">", count, none)):
                if by_row:
                    limits = none, ir.Constant(INDEX, rows), ir.Constant(INDEX, 1)
                    with cgutils.for_range_slice(builder, *limits) as (row, _):
                        turns_of(row)
                else:
                    turns_of(None)
            return context.get_dummy_value()

        return signature, codegen

    return named(run, (name, carrier.__name__, slots, block, planes, shared, kind.__name__, rows, lanes, by_row))


def opening(carrier, slots, rows=ROWS):
    """function(state, c, at, width): a tile's running sums from a flat array of rows so wide; in any other of so many slots nothing has happened."""

    @intrinsic
    def run(context, state, c, at, width):
        signature = types.void(state, c, at, width)

        def codegen(context, builder, signature, arguments):
            kept, source = (
                context.make_array(signature.args[n])(context, builder, arguments[n]).data for n in range(2)
            )
            where, step = (context.cast(builder, arguments[n], signature.args[n], types.int64) for n in (2, 3))
            cells = _Cells(builder, carrier, kept, range(slots), (), rows)
            zeros = ir.Constant(cells.kind, None)
            for row in range(rows):
                sums = load(builder, source, where, cells.element, cells.lanes).value
                cells.store({(slot, row): sums if slot == 0 else zeros for slot in range(slots)})
                where = builder.add(where, step)
            return context.get_dummy_value()

        return signature, codegen

    return named(run, ("opening", carrier.__name__, slots, rows))


def closing(carrier, flags_of, slots, rows, only):
    """function(state, values, flags, at, width, nan_flags): a tile's sums, and flags_of(their slots, nan_flags), to flat arrays.

    only(states of rows) tells that all are inexact and nothing else, which is quicker.
    """

    @intrinsic
    def run(context, state, values, flags, at, width, nan_flags):
        signature = types.void(state, values, flags, at, width, nan_flags)

        def codegen(context, builder, signature, arguments):
            kept, results, raised = (
                context.make_array(signature.args[n])(context, builder, arguments[n]).data for n in range(3)
            )
            where, step = (context.cast(builder, arguments[n], signature.args[n], types.int64) for n in (3, 4))
            cells = _Cells(builder, carrier, kept, slots, (), rows)
            word, octet = INTEGERS[carrier], ir.IntType(8)
            outer = Tile(builder, carrier, [], [], None, {}, None, 1)
            number = context.cast(builder, arguments[5], signature.args[5], types.int64)
            number = outer._splat(builder.trunc(number, word) if word.width < 64 else number)
            kept_cells = cells.load()
            states = [{slot: Vector(builder, kept_cells[slot, row]) for slot in slots} for row in range(rows)]
            octets = ir.VectorType(octet, cells.lanes)

            def put(pointer, vector, row):
                place = builder.add(where, builder.mul(step, ir.Constant(INDEX, row)))
                target = builder.bitcast(builder.gep(pointer, [place]), vector.type.as_pointer())
                builder.store(vector, target).align = 1

            for row, state in enumerate(states):
                put(results, state[0].value, row)
            with builder.if_else(only(states), likely=True) as (then, otherwise):
                with then:
                    for row in range(rows):
                        put(raised, ir.Constant(octets, [1] * cells.lanes), row)
                with otherwise:
                    for row, state in enumerate(states):
                        put(raised, builder.trunc(flags_of(state, number).value, octets), row)
            return context.get_dummy_value()

        return signature, codegen

    return named(run, ("closing", carrier.__name__, slots, rows))


def _nowhere_zero(builder, values):
    """Code that tells whether no lane of vectors is zero."""
    least = None
    for value in values:
        bits = Vector(builder, value).bits()
        least = bits if least is None else least.at_most(bits)
    return builder.not_(least.is_zero().anywhere())


def everywhere(carrier, slot):
    """function(state) -> whether a slot of a tile is zero nowhere."""

    @intrinsic
    def run(context, state):
        signature = types.boolean(state)

        def codegen(context, builder, signature, arguments):
            kept = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            cells = _Cells(builder, carrier, kept, (slot,), ())
            return _nowhere_zero(builder, cells.load().values())

        return signature, codegen

    return named(run, ("everywhere", carrier.__name__, slot))


def least_of(size):
    """function(numbers, at, low, where): the least magnitude but zero of so many numbers of float32 from a place on, or infinity, to a place."""

    @intrinsic
    def run(context, numbers, at, low, where):
        signature = types.void(numbers, at, low, where)

        def codegen(context, builder, signature, arguments):
            source, target = (
                context.make_array(signature.args[n])(context, builder, arguments[n]).data for n in (0, 2)
            )
            first, place = (context.cast(builder, arguments[n], signature.args[n], types.int64) for n in (1, 3))
            bits = load(builder, source, first, FLOATS[np.float32], size).bits()
            below = ((bits & 0x7FFFFFFF) - 1) & 0x7FFFFFFF  # one less than magnitudes: zero is no small one
            found = below.at_most(bits.all_of(0x7F7FFFFF)).least()
            found = builder.add(found, ir.Constant(found.type, 1))
            builder.store(builder.bitcast(found, ir.FloatType()), builder.gep(target, [place]))
            return context.get_dummy_value()

        return signature, codegen

    return named(run, ("least", size))
