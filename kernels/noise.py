"""Random numbers of a tile's roundings, written out in `lanes.Vector`s: Philox for many outputs at a time."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .lanes import LANES, ROWS, Tile, Vector

_INDEX = ir.IntType(64)
ONE64 = 0x3FF0000000000000
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


class _Generator:
    """Philox for the outputs of a tile, from the arguments (index, row_stride, column_stride, where, ..., key, stream) of an intrinsic."""

    def __init__(self, context, builder, signature, arguments):
        def scalar(number):
            return context.cast(builder, arguments[number], signature.args[number], types.uint64)

        self.builder = builder
        self.data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        self._tile = Tile(builder, np.float64, [], [], None, {}, None, 1)
        self._first, self._row_step, self._column_step, place, kept, key, stream = (scalar(n) for n in range(1, 8))
        low = self.constant(LOW_WORD)
        halves = [(builder.and_(x, low), builder.lshr(x, self.constant(32))) for x in (key, stream)]
        self._keys = []
        for turn in range(10):
            pair = []
            for half, step in zip(halves[0], PHILOX_STEPS, strict=True):
                pair.append(self._splat(builder.and_(builder.add(half, self.constant(turn * step)), low)))
            self._keys.append(pair)
        self._stream = [self._splat(x) for x in halves[1]]
        self._place, self.kept = self._splat(place), self._splat(kept)

    def constant(self, x):
        """A number of 64 bits."""
        return ir.Constant(_INDEX, x & 0xFFFFFFFFFFFFFFFF)

    def _splat(self, x):
        return self._tile._splat(x)

    def words(self, row, first, step):
        """The four words of eight outputs of a row: of every `step`-th column from the `first` on."""
        corner = self.builder.add(self._first, self.builder.mul(self._row_step, self.constant(row)))
        corner = self.builder.add(corner, self.builder.mul(self._column_step, self.constant(first)))
        count = ir.Constant(ir.VectorType(_INDEX, LANES[np.float64]), list(range(0, step * LANES[np.float64], step)))
        columns = Vector(self.builder, count) * self._splat(self._column_step)
        return _philox(columns + self._splat(corner), self._place, self._stream, self._keys)

    def store(self, value, turn, row):
        """A vector of eight words to its place."""
        where = self.constant((turn * ROWS + row) * LANES[np.float64])
        target = self.builder.gep(self.data, [where])
        self.builder.store(value.value, self.builder.bitcast(target, value.value.type.as_pointer())).align = 4


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
        made = _Generator(context, builder, signature, arguments)
        for row_ in range(ROWS):
            both = [made.words(row_, first, 2) for first in (0, 1)]
            for word in range(4):
                together = (both[0][word] & LOW_WORD) | (both[1][word] << 32)
                parts = ((together & LOW_HALVES) << 7, together.logical_right(9))
                for half, bits in enumerate(parts):
                    made.store((bits & made.kept) | ONES, word + 4 * half, row_)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def fill_fractions(context, noise, index, row_stride, column_stride, where, mask, key, stream):
    """As `fill_noise`, but the fractions themselves, as float64; `mask` has the bits to keep of 1 + a fraction."""
    signature = types.void(noise, index, row_stride, column_stride, where, mask, key, stream)
    assert noise.dtype == types.uint64

    def codegen(context, builder, signature, arguments):
        made = _Generator(context, builder, signature, arguments)
        for row_ in range(ROWS):
            for number, word in enumerate(made.words(row_, 0, 1)):
                for half, bits in enumerate((word << 36, (word << 20))):
                    fraction = ((bits & made.kept) | ONE64).floats() - 1.0
                    made.store(fraction, number + 4 * half, row_)
        return context.get_dummy_value()

    return signature, codegen
