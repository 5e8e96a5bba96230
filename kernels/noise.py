"""Random numbers of a tile's roundings, written out in `lanes.Vector`s: Philox for many outputs at a time."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import Tile
from .prng import DOT_PLANE
from .vectors import LANES, ROWS, Vector, named

_INDEX = ir.IntType(64)
PHILOX_MULTIPLIERS, PHILOX_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
LOW_WORD = 0xFFFFFFFF
ROWS_AT_ONCE = 2  # in registers
GROUPS = 2  # of these are written out, in a loop: all of them take twice as long to compile, one runs slower


def _philox(outputs, where, stream, keys):
    """`prng.philox` of vectors of outputs, two 32-bit numbers and the key of each round; the words' upper halves are of no account.

    The vectors take each round together, as one chain of rounds leaves the CPU waiting.
    """
    words = [[c0, where, *stream] for c0 in outputs]
    for k0, k1 in keys:
        for chain, (c0, c1, c2, c3) in enumerate(words):
            p0 = (c0 & LOW_WORD) * PHILOX_MULTIPLIERS[0]
            p1 = (c2 & LOW_WORD) * PHILOX_MULTIPLIERS[1]
            words[chain] = [p1.logical_right(32) ^ c1 ^ k0, p1, p0.logical_right(32) ^ c3 ^ k1, p0]
    return words


def filling():
    """function(noise, at, site, block, index, row_stride, column_stride, width, key, stream): a tile's next eight roundings' random bits.

    The top 16, or `width` if these are fewer, as integers as wide as float64. noise is a flat array of uint64, from `at`
    on eight turns times ROWS vectors. `prng.dot_high` says the same of one rounding.
    """
    lanes = LANES[np.float64]

    @intrinsic
    def fill_noise(context, noise, at, site, block, index, row_stride, column_stride, width, key, stream):
        signature = types.void(noise, at, site, block, index, row_stride, column_stride, width, key, stream)
        assert noise.dtype == types.uint64

        def codegen(context, builder, signature, arguments):
            def scalar(number):
                return context.cast(builder, arguments[number], signature.args[number], types.uint64)

            def constant(x):
                return ir.Constant(_INDEX, x & 0xFFFFFFFFFFFFFFFF)

            tile = Tile(builder, np.float64, [], [], None, {}, None, 1)

            def splat(x):
                return tile._splat(x)

            start_of, site_, block_, first, row_step, column_step, width_, key_, stream_ = map(scalar, range(1, 10))
            place = builder.or_(builder.or_(builder.shl(site_, constant(26)), block_), constant(DOT_PLANE))
            few = builder.icmp_unsigned("<", width_, constant(16))
            cut = builder.sub(constant(16), builder.select(few, width_, constant(16)))
            kept = builder.and_(builder.shl(constant(0xFFFF), cut), constant(0xFFFF))
            data = builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [start_of])
            low = constant(LOW_WORD)
            halves = [(builder.and_(x, low), builder.lshr(x, constant(32))) for x in (key_, stream_)]
            keys = []
            for turn in range(10):
                pair = []
                for half, step in zip(halves[0], PHILOX_STEPS, strict=True):
                    pair.append(splat(builder.and_(builder.add(half, constant(turn * step)), low)))
                keys.append(pair)
            stream_words = [splat(x) for x in halves[1]]
            place_word = splat(place)
            kept_bits = splat(kept)
            count = ir.Constant(ir.VectorType(_INDEX, lanes), list(range(lanes)))
            columns = Vector(builder, count) * splat(column_step)
            with cgutils.for_range(builder, constant(ROWS // (ROWS_AT_ONCE * GROUPS))) as loop:
                for group in range(GROUPS):
                    start = builder.add(
                        builder.mul(loop.index, constant(ROWS_AT_ONCE * GROUPS)), constant(group * ROWS_AT_ONCE)
                    )
                    rows = [builder.add(start, constant(row_)) for row_ in range(ROWS_AT_ONCE)]
                    outputs = [columns + splat(builder.add(first, builder.mul(row_step, row_))) for row_ in rows]
                    found = _philox(outputs, place_word, stream_words, keys)
                    for row_, words in zip(rows, found, strict=True):
                        for number, word in enumerate(words):
                            for half, bits in enumerate((word, word.logical_right(16))):
                                value = (bits & kept_bits).value
                                cells = builder.add(constant((number + 4 * half) * ROWS), row_)
                                target = builder.gep(data, [builder.mul(cells, constant(lanes))])
                                builder.store(value, builder.bitcast(target, value.type.as_pointer())).align = 4
            return context.get_dummy_value()

        return signature, codegen

    return named(fill_noise, "noise")
