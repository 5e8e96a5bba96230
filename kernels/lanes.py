"""Vectors of carrier values as operands of ordinary expressions, and the loop over k that keeps a tile of them in registers.

LLVM makes vector code of plain loops, but keeps a tile of running sums in memory: k is the outer loop. Here the vectors
are written out. A step is a function of `Vector`s; `tile` calls it once while code is generated, for each row of a tile,
and makes the loop:

    state of 8 rows x 1 vector   in registers
    for k:  load 16 (or 8) numbers of b, broadcast a number of each row of a, step

Vectors wider than the CPU's are split by LLVM: the code is portable, the width is a matter of speed.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import SOURCE_DIGEST

ROWS = 8
LANES = {np.float32: 16, np.float64: 8}
"""Numbers in a vector of 512 bits."""

_FLOATS = {np.float32: ir.FloatType(), np.float64: ir.DoubleType()}
_INTEGERS = {np.float32: ir.IntType(32), np.float64: ir.IntType(64)}
_SUFFIXES = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i16": "i16"}
_INDEX = ir.IntType(64)


class Vector:
    """A vector in code being generated. Numbers beside it are the same in every lane."""

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    @property
    def element(self):
        """LLVM's type of a lane."""
        return self.value.type.element

    @property
    def is_float(self):
        """Whether lanes are floating-point numbers."""
        return isinstance(self.element, (ir.FloatType, ir.DoubleType, ir.HalfType))

    def _like(self, other):
        if isinstance(other, Vector):
            return other.value
        return ir.Constant(self.value.type, [other] * self.value.type.count)

    def _new(self, value):
        return Vector(self.builder, value)

    def _typed(self, element):
        return ir.VectorType(element, self.value.type.count)

    def _binary(self, other, float_name, integer_name):
        name = float_name if self.is_float else integer_name
        return self._new(getattr(self.builder, name)(self.value, self._like(other)))

    def __add__(self, other):
        return self._binary(other, "fadd", "add")

    def __sub__(self, other):
        return self._binary(other, "fsub", "sub")

    def __mul__(self, other):
        return self._binary(other, "fmul", "mul")

    def __and__(self, other):
        return self._binary(other, "", "and_")

    def __or__(self, other):
        return self._binary(other, "", "or_")

    def __xor__(self, other):
        return self._binary(other, "", "xor")

    def __neg__(self):
        return self._new(self.builder.fneg(self.value) if self.is_float else self.builder.neg(self.value))

    def __invert__(self):
        return self ^ -1

    def __lshift__(self, other):
        return self._binary(other, "", "shl")

    def __rshift__(self, other):
        """Arithmetic."""
        return self._binary(other, "", "ashr")

    def logical_right(self, other):
        """Shifted right, zeros moving in."""
        return self._binary(other, "", "lshr")

    def _compare(self, sign, other):
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return self._new(compare(sign, self.value, self._like(other)))

    def __lt__(self, other):
        return self._compare("<", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __ge__(self, other):
        return self._compare(">=", other)

    def __le__(self, other):
        return self._compare("<=", other)

    def nonzero(self):
        """Lanes that are neither zero nor NaN."""
        if self.is_float:
            return self._new(self.builder.fcmp_ordered("!=", self.value, self._like(0.0)))
        return self._compare("!=", 0)

    def choose(self, chosen, otherwise):
        """Lane by lane: `chosen` where this holds."""
        kind = chosen if isinstance(chosen, Vector) else otherwise
        return self._new(self.builder.select(self.value, kind._like(chosen), kind._like(otherwise)))

    def bits(self):
        """Floats as integers of the same width; integers as they are."""
        if not self.is_float:
            return self
        integer = {"float": ir.IntType(32), "double": ir.IntType(64)}[str(self.element)]
        return self._new(self.builder.bitcast(self.value, self._typed(integer)))

    def floats(self):
        """Integers as floats of the same width; floats as they are."""
        if self.is_float:
            return self
        kind = {32: ir.FloatType(), 64: ir.DoubleType()}[self.element.width]
        return self._new(self.builder.bitcast(self.value, self._typed(kind)))

    def _call(self, name, *others):
        kind = self.value.type
        suffix = f"v{kind.count}{_SUFFIXES[str(kind.element)]}"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(kind, [kind] * (1 + len(others))), f"llvm.{name}.{suffix}"
        )
        return self._new(self.builder.call(function, [self.value, *map(self._like, others)]))

    def fused(self, b, c):
        """self * b + c, rounded once."""
        return self._call("fma", b, c)

    def truncated(self):
        """Rounded toward zero to an integer."""
        return self._call("trunc")

    def floored(self):
        """Rounded down to an integer."""
        return self._call("floor")

    def magnitude(self):
        """Without the sign."""
        return self._call("fabs")

    def at_least(self, other):
        """The greater, lane by lane, of integers that are not negative or of numbers; never of NaN."""
        if self.is_float:
            return (self > other).choose(self, other)
        return self._call("umax", other)

    def at_most(self, other):
        """The lesser, lane by lane, of integers without sign."""
        return self._call("umin", other)

    def with_sign(self, other):
        """The magnitude with another's sign."""
        return self._call("copysign", other)

    def single(self):
        """float64 to float32, nearest even."""
        return self._new(self.builder.fptrunc(self.value, self._typed(ir.FloatType())))

    def double(self):
        """float32 to float64."""
        return self._new(self.builder.fpext(self.value, self._typed(ir.DoubleType())))

    def through_half(self):
        """float32 to half and back by the CPU, nearest even; needs F16C."""
        half = self.builder.fptrunc(self.value, self._typed(ir.HalfType()))
        return self._new(self.builder.fpext(half, self.value.type))


class Tile:
    """What a step sees of the code being generated: operands of this turn of the loop, and the call's parameters.

    `row` is the one being written, of `rows`.
    """

    def __init__(self, builder, carrier, a, b, noise, parameters, k, block, rows=ROWS, lanes=0):
        self.builder, self.carrier, self.block = builder, carrier, block
        self.rows, self.lanes, self.row = rows, lanes or LANES[carrier], 0
        self._a, self._b, self._noise, self._parameters, self._k = a, b, noise, parameters, k
        self._loaded = {}

    def _splat(self, scalar):
        vector = ir.VectorType(scalar.type, self.lanes)
        undefined = ir.Constant(vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return Vector(self.builder, self.builder.shuffle_vector(first, undefined, zeros))

    def _at(self, stride, inner):
        position = self.builder.mul(self._k, ir.Constant(_INDEX, stride))
        return self.builder.add(position, ir.Constant(_INDEX, inner))

    def a(self, row, product=0, plane=0):
        """The number of a row for a product of the block; `plane` counts further arrays beside the values."""
        where = self._at(ROWS * self.block, product * ROWS + row)
        return self._splat(self.builder.load(self.builder.gep(self._a[plane], [where])))

    def b(self, product=0, plane=0):
        """The numbers of the columns for a product of the block."""
        if (product, plane) not in self._loaded:
            where = self._at(self.lanes * self.block, product * self.lanes)
            self._loaded[product, plane] = load(self.builder, self._b[plane], where, _FLOATS[self.carrier], self.lanes)
        return self._loaded[product, plane]

    def noise(self, row):
        """A vector for this turn and row."""
        where = self._at(self.lanes * self.rows, row * self.lanes)
        return load(self.builder, self._noise, where, _FLOATS[self.carrier], self.lanes)

    def parameter(self, number):
        """A number of the call, in every lane."""
        return self._parameters[number]

    def integer(self, number):
        """A number of the call that is an integer in disguise."""
        return self._parameters[number].bits()


def load(builder, pointer, where, element, lanes):
    """A vector from memory of any alignment."""
    vector = ir.VectorType(element, lanes)
    loaded = builder.load(builder.bitcast(builder.gep(pointer, [where]), vector.as_pointer()))
    loaded.align = 4
    return Vector(builder, loaded)


def named(made, name):
    """An intrinsic that counts as this name in the cache's keys.

    Numba gives every intrinsic a number of its own in each process, and hashes it where a loop closes over one: such loops
    would never be found again. The name has to say what code is generated, as far as the sources do not.
    """
    identity = f"softfloat {SOURCE_DIGEST} {name}"
    made._reduce_states = lambda: {"uuid": identity, "name": made._name, "defn": None}
    return made


def tile(name, step, carrier, slots, parameters, block=1, planes=1, shared=(), kind=Tile, rows=ROWS, lanes=0):
    """The loop of one tile, for compiled code. `name` tells the step from all others.

    step(tile, row, state) -> state: one turn for one row; a state is a dict from the numbers in `slots` to Vectors. Slots
    in `shared` have one vector for all rows, that of the first. The intrinsic is called as
    function(a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns): flat arrays of the carrier. a has
    ROWS numbers for each product, b one vector, from these places on, and in the further planes at these distances;
    noise has ROWS vectors for each turn; `state` has ROWS vectors for each slot there may be, those in `slots` are
    read and written; `numbers` are the parameters. Another `kind` of tile may lay its operands out otherwise, and have
    fewer rows and lanes.
    """
    lanes, element = lanes or LANES[carrier], _FLOATS[carrier]
    item = types.float32 if carrier is np.float32 else types.float64

    @intrinsic
    def run(context, a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns):
        signature = types.void(a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns)
        assert a.dtype == b.dtype == noise.dtype == state.dtype == numbers.dtype == item

        def codegen(context, builder, signature, arguments):
            def data(number):
                array = context.make_array(signature.args[number])(context, builder, arguments[number])
                return array.data

            def index(number):
                return context.cast(builder, arguments[number], signature.args[number], types.int64)

            def plane_pointers(array, start, distance):
                pointers = []
                where = index(start)
                for _ in range(planes):
                    pointers.append(builder.gep(data(array), [where]))
                    where = builder.add(where, index(distance))
                return pointers

            a_planes, b_planes = plane_pointers(0, 1, 2), plane_pointers(3, 4, 5)
            random, kept, given, count = data(6), data(7), data(8), index(9)
            outer = kind(builder, carrier, a_planes, b_planes, random, [], None, block, rows, lanes)
            known = [
                outer._splat(builder.load(builder.gep(given, [ir.Constant(_INDEX, number)])))
                for number in range(parameters)
            ]

            def place(slot, row):
                return ir.Constant(_INDEX, (slot * rows + row) * lanes)

            cells = [(slot, row) for slot in slots for row in range(rows if slot not in shared else 1)]
            before = {cell: load(builder, kept, place(*cell), element, lanes).value for cell in cells}
            entry = builder.block
            loop = builder.function.append_basic_block("turn")
            done = builder.function.append_basic_block("turned")
            builder.cbranch(builder.icmp_signed(">", count, ir.Constant(_INDEX, 0)), loop, done)
            builder.position_at_end(loop)
            k = builder.phi(_INDEX)
            k.add_incoming(ir.Constant(_INDEX, 0), entry)
            during = {cell: builder.phi(ir.VectorType(element, lanes)) for cell in cells}
            turn = kind(builder, carrier, a_planes, b_planes, random, known, k, block, rows, lanes)
            after = {}
            for row in range(rows):
                turn.row = row
                known_now = during | {cell: after[cell] for cell in after if cell[0] in shared}
                places = {slot: (slot, 0 if slot in shared else row) for slot in slots}
                given_state = {slot: Vector(builder, known_now[cell]) for slot, cell in places.items()}
                for slot, vector in step(turn, row, given_state).items():
                    after[places[slot]] = vector.floats().value
            following = builder.add(k, ir.Constant(_INDEX, 1))
            k.add_incoming(following, loop)
            for cell in cells:
                during[cell].add_incoming(before[cell], entry)
                during[cell].add_incoming(after[cell], loop)
            builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
            builder.position_at_end(done)
            for cell in cells:
                final = builder.phi(ir.VectorType(element, lanes))
                final.add_incoming(before[cell], entry)
                final.add_incoming(after[cell], loop)
                during[cell] = final
            for cell in cells:
                where = builder.gep(kept, [place(*cell)])
                stored = builder.store(during[cell], builder.bitcast(where, ir.VectorType(element, lanes).as_pointer()))
                stored.align = 4
            return context.get_dummy_value()

        return signature, codegen

    return named(run, (name, carrier.__name__, slots, block, planes, shared, kind.__name__, rows, lanes))


PHILOX_MULTIPLIERS, PHILOX_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
LOW_WORD, LOW_HALVES, ONES = 0xFFFFFFFF, 0x0000FFFF0000FFFF, 0x3F8000003F800000


def _philox(c0, where, stream, keys):
    """`prng.philox` of a vector of outputs, two 32-bit numbers and the key of each round; the words' upper halves are of no account."""
    words = [c0, where, *stream]
    for k0, k1 in keys:
        p0 = (words[0] & LOW_WORD) * PHILOX_MULTIPLIERS[0]
        p1 = (words[2] & LOW_WORD) * PHILOX_MULTIPLIERS[1]
        words = [p1.logical_right(32) ^ words[1] ^ k0, p1, p0.logical_right(32) ^ words[3] ^ k1, p0]
    return words


@intrinsic
def fill_noise(context, noise, index, row_stride, column_stride, where, mask, key, stream):
    """1 + the top 16 bits of the next eight roundings of a tile's outputs, as float32, two columns in a word.

        word of Philox     hhhhhhhhhhhhhhhh llllllllllllllll
        float32 in [1, 2)  0 01111111 hhhhhhhhhhhhhhhh 0000000     and the same with l

    noise is a flat array of uint64, of eight turns times ROWS vectors; `where` is word 1 of the counter, `mask` has the
    bits to keep of both float32. `prng.dot_high` says the same of one rounding.
    """
    signature = types.void(noise, index, row_stride, column_stride, where, mask, key, stream)
    assert noise.dtype == types.uint64

    def codegen(context, builder, signature, arguments):
        pairs = LANES[np.float64]

        def scalar(number):
            return context.cast(builder, arguments[number], signature.args[number], types.uint64)

        def constant(x):
            return ir.Constant(_INDEX, x & 0xFFFFFFFFFFFFFFFF)

        tile = Tile(builder, np.float64, [], [], None, [], None, 1)

        def splat(x):
            return tile._splat(x)

        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        first, row_step, column_step, place, kept, key_, stream_ = (scalar(number) for number in range(1, 8))
        low = constant(LOW_WORD)
        halves = [(builder.and_(x, low), builder.lshr(x, constant(32))) for x in (key_, stream_)]
        keys = []
        for turn in range(10):
            pair = []
            for half, step in zip(halves[0], PHILOX_STEPS, strict=True):
                pair.append(splat(builder.and_(builder.add(half, constant(turn * step)), low)))
            keys.append(pair)
        stream_words = [splat(x) for x in halves[1]]
        place_word, kept_bits = splat(place), splat(kept)
        count = ir.Constant(ir.VectorType(_INDEX, pairs), list(range(0, 2 * pairs, 2)))
        columns = Vector(builder, count) * splat(column_step)
        for row_ in range(ROWS):
            corner = builder.add(first, builder.mul(row_step, constant(row_)))
            even = columns + splat(corner)
            both = [_philox(x, place_word, stream_words, keys) for x in (even, even + splat(column_step))]
            for word in range(4):
                together = (both[0][word] & LOW_WORD) | (both[1][word] << 32)
                parts = ((together & LOW_HALVES) << 7, together.logical_right(9))
                for half, bits in enumerate(parts):
                    value = (bits & kept_bits) | ONES
                    target = builder.gep(data, [constant(((word + 4 * half) * ROWS + row_) * pairs)])
                    stored = builder.store(value.value, builder.bitcast(target, value.value.type.as_pointer()))
                    stored.align = 4
        return context.get_dummy_value()

    return signature, codegen
