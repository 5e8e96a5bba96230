"""Random numbers of a tile's roundings, written out in `lanes.Vector`s: Philox for many outputs at a time."""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import copy_first, kernel, referable
from .lanes import Tile
from .prng import DOT_PLANE
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK, Vector, named

_INDEX = ir.IntType(64)
PHILOX_MULTIPLIERS, PHILOX_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
LOW_WORD = 0xFFFFFFFF
ROWS_AT_ONCE = 2  # in registers
GROUPS = 2  # of these are written out, in a loop: all of them take twice as long to compile, one runs slower
BRIEFLY = 1, 1  # the same where compiling counts


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


def filling(carrier, at_once=ROWS_AT_ONCE, groups=GROUPS):
    """function(noise, at, site, block, index, row_stride, column_stride, width, key, stream): a tile's next eight roundings' random bits.

    The top 16, or `width` if these are fewer, as integers as wide as the carrier. noise is a flat array of uint64, from `at`
    on eight turns times ROWS vectors. `prng.dot_high` says the same of one rounding. A vector of Philox has the outputs of
    float64's columns; of float32's, those of every second column.
    """
    pairs = LANES[np.float64]
    apart = LANES[carrier] // pairs

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
            kept_bits = splat(kept if apart == 1 else builder.mul(kept, constant(0x0000000100000001)))
            count = ir.Constant(ir.VectorType(_INDEX, pairs), list(range(0, apart * pairs, apart)))
            columns = Vector(builder, count) * splat(column_step)
            with cgutils.for_range(builder, constant(ROWS // (at_once * groups))) as loop:
                for group in range(groups):
                    start = builder.add(builder.mul(loop.index, constant(at_once * groups)), constant(group * at_once))
                    rows = [builder.add(start, constant(row_)) for row_ in range(at_once)]
                    outputs = []
                    for row_ in rows:
                        even = columns + splat(builder.add(first, builder.mul(row_step, row_)))
                        outputs += [even, even + splat(column_step)][:apart]
                    found = _philox(outputs, place_word, stream_words, keys)
                    for number, row_ in enumerate(rows):
                        chains = found[number * apart : (number + 1) * apart]
                        for word in range(4):
                            words = chains[0][word]
                            if apart > 1:
                                words = words.low_halves(chains[1][word])
                            for half, bits in enumerate((words, words.logical_right(16))):
                                value = (bits & kept_bits.words(bits.element.width)).value
                                cells = builder.add(constant((word + 4 * half) * ROWS), row_)
                                target = builder.gep(data, [builder.mul(cells, constant(pairs))])
                                builder.store(value, builder.bitcast(target, value.type.as_pointer())).align = 4
            return context.get_dummy_value()

        return signature, codegen

    return named(fill_noise, ("noise", carrier.__name__, at_once, groups))


@cache
def drawing(*sites, briefly=False):
    """kernel(noise, number, apart, count, first, row_stride, column_stride, width, key, stream): random bits of a tile's next turns.

    noise is flat, of uint64: as many blocks of STEPS_OF_A_BLOCK turns as there are sites, whose roundings they are for, and
    room for one more. The turns have the numbers number + n * apart. Where apart is 1 they are of one block of numbers and
    lie where they lie in it; else one after the other. `briefly`: it compiles in half the time, and runs slower.
    """
    fill_noise = filling(np.float32, *(BRIEFLY if briefly else ()))
    planes, first_site, last_site = len(sites), sites[0], sites[-1]

    @kernel
    def draw_turns(noise, number, apart, count, first, row_stride, column_stride, width, key, stream):
        plane_size = noise.size // (planes + 1)
        cells = plane_size // STEPS_OF_A_BLOCK
        for plane in range(planes):
            site, turn = last_site if plane else first_site, 0
            while turn < count:
                block = (number + turn * apart) // STEPS_OF_A_BLOCK
                start = (plane if apart == 1 else planes) * plane_size
                fill_noise(noise, start, site, block, first, row_stride, column_stride, width, key, stream)
                if apart == 1:
                    break
                while turn < count and (number + turn * apart) // STEPS_OF_A_BLOCK == block:
                    source = noise[start + (number + turn * apart) % STEPS_OF_A_BLOCK * cells :]
                    copy_first(noise[plane * plane_size + turn * cells :], source, cells)
                    turn += 1

    return referable(draw_turns, *sites, briefly)


@cache
def drawing_many(site, rounds, last_site):
    """As `drawing`, of turns that begin blocks of eight and take so many random numbers of a site each, and then one of the last site.

    noise has as many blocks of turns, for the first, second ... number of each, and room for one more.
    """
    fill_noise = filling(np.float32)

    @kernel
    def draw_turns(noise, number, apart, count, first, row_stride, column_stride, width, key, stream):
        plane_size = noise.size // (rounds + 2)
        cells, spare = plane_size // STEPS_OF_A_BLOCK, (rounds + 1) * plane_size
        begin = number // STEPS_OF_A_BLOCK
        for part in range(rounds + 1):
            of_last = part == rounds
            block = begin if of_last else begin * rounds + part
            fill_noise(
                noise,
                spare,
                last_site if of_last else site,
                block,
                first,
                row_stride,
                column_stride,
                width,
                key,
                stream,
            )
            for place in range(STEPS_OF_A_BLOCK):
                which = part * STEPS_OF_A_BLOCK + place
                plane, turn = (rounds, place) if of_last else (which % rounds, which // rounds)
                copy_first(noise[plane * plane_size + turn * cells :], noise[spare + place * cells :], cells)

    return referable(draw_turns, site, rounds, last_site)
