"""Few outputs that are rounded stochastically, one by one: a tile would draw random numbers for a hundred of which most are not wanted.

A sum in float64 is rounded by adding 16 random bits to those that rounding takes away, and cutting these: `rounding.drawn` for numbers
that are neither tiny nor overflow. Where the bits to come could reach the next number, a turn goes to the plain functions, with all of its
random bits.
"""

import numpy as np

from . import jit
from .accumulate import RUNNING
from .arith import two_sum
from .carrier import source_of
from .jit import bits_float, flat, float_bits, kernel, scratch, viewed
from .prng import DOT_PLANE, dot_words
from .redrawn import MULTIPLIED, SITES, again, whole
from .rounding import target_of
from .steps import INEXACT, OVERFLOW, UNDERFLOW, VALUE, Numbers

LARGEST = Numbers._fields.index("largest")


@kernel
def noise_of(words, number, kept):
    """The first 16 random bits of a rounding, of those that its block of eight has; `kept` of them."""
    pair = words[2:] if number & 2 else words[:2]
    word = pair[1] if number & 1 else pair[0]
    return np.int64((word >> np.uint64((number & 4) << 2)) & kept)


@kernel
def fill_words(words, output, site, block, key, stream):
    """Random numbers of a block of eight roundings."""
    words[0], words[1], words[2], words[3] = dot_words(output, DOT_PLANE, site, block, key, stream)


@kernel
def rounded(s, noise, target, largest):
    """(s rounded, whether that is settled, whether it changes s), the last bit of s being sticky."""
    bits, taken = float_bits(s), target.fraction_bits - target.mantissa_bits
    below = (np.int64(1) << taken) - np.int64(1)
    moved = bits + (noise << (taken - np.int64(16)))
    z = bits_float(moved & ~below, 1.0)
    settled = moved & below < below - (below >> np.int64(16))
    ordinary = settled & (abs(s) >= target.smallest_normal) & (abs(z) <= largest)
    return z, ordinary | (s == 0.0), (bits & below) != 0


@jit.once
def drawn(operation, options, layout, records):
    """As `paired.drawn`, of panels of one output; in the layout "shared", all have the second operand in common.

    loop(state, a, b, kept, numbers, ints, floats, first, stride, step, apart, count, width, key, stream).
    """
    turn_again, fused, daz = again(operation, options.daz), MULTIPLIED[operation] is whole, options.daz
    sites = SITES[operation]
    last_site, shared = sites[-1], layout == "shared"

    def alone_loop(state, a, b, kept, numbers, ints, floats, first, stride, step, apart, count, width, key, stream):
        source, target = source_of(ints, floats), target_of(ints, floats)
        turns, largest = a.shape[2], np.float64(numbers[LARGEST])
        flat_a, flat_b = flat(a), flat(b)
        of_sums, of_products = scratch(4, np.uint64), scratch(4, np.uint64)
        noises = scratch(2, np.uint32)
        kept_bits = np.uint64((0xFFFF << max(16 - width, 0)) & 0xFFFF)
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, np.int32)
            output, at = np.uint64(first + panel * stride), panel * turns
            xs, ys = flat_a[at : at + turns], flat_b[0 if shared else at :][:turns]
            z, seen, block = np.float64(mine[VALUE]), 0, -1
            inexact, underflow, overflow = happened[INEXACT] != 0, happened[UNDERFLOW] != 0, happened[OVERFLOW] != 0
            for turn in range(turns):
                number = step + turn * apart
                if number >> 3 != block:
                    block = number >> 3
                    fill_words(of_sums, output, RUNNING, block, key, stream)
                    if not fused:
                        fill_words(of_products, output, last_site, block, key, stream)
                x, y = np.float64(xs[turn]), np.float64(ys[turn])
                noise, product = noise_of(of_sums, number, kept_bits), x * y
                settled, lost, before = True, False, z
                own = np.int64(0)
                if not fused:
                    own = noise_of(of_products, number, kept_bits)
                    product, settled, lost = rounded(product, own, target, largest)
                if daz:
                    settled = settled & ((abs(z) >= target.smallest_normal) | (z == 0.0))
                z, ordinary, changed = rounded(two_sum(z, product, target), noise, target, largest)
                if settled & ordinary:
                    inexact = inexact | lost | changed
                else:
                    noises[0], noises[1] = np.uint32(noise), np.uint32(own)
                    z, seen = turn_again(x, y, before, noises, output, number, source, target, width, key, stream)
                    inexact, underflow = inexact | (seen & 1 != 0), underflow | (seen & 2 != 0)
                    overflow = overflow | (seen & 4 != 0)
                if records:
                    record = kept[turn]
                    noted = viewed(record, np.int32)
                    record[VALUE] = z
                    noted[INEXACT], noted[UNDERFLOW], noted[OVERFLOW] = inexact, underflow, overflow
            mine[VALUE] = z
            happened[INEXACT], happened[UNDERFLOW], happened[OVERFLOW] = inexact, underflow, overflow

    return jit.compiled(alone_loop)
