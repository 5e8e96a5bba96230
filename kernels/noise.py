"""Random numbers of a tile's roundings, written out in `lanes.Vector`s: Philox for many outputs at a time."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .lanes import LANES, ROWS, Tile, Vector

_INDEX = ir.IntType(64)
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

        tile = Tile(builder, np.float64, [], [], None, {}, None, 1)

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
