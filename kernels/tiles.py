"""Operands of tiles, laid out and looked at beforehand: their least numbers, what they span, powers of two beside them."""

import numpy as np

from . import jit
from .fast import INFINITE_BITS, MAGNITUDE, ZERO
from .jit import bits_float, cut, float_bits
from .steps import EXPONENT64
from .vectors import LANES, ROWS

__all__ = ["LANES", "LONE_LANES", "ROWS", "jit", "least", "scaled_laid_out", "spans"]
LONE_LANES = 4
"""Of the smallest vector that CPUs have."""
ONE = np.int32(1)
EVERY_MAGNITUDE = (1 << 63) - 1
"""What no sign is among, in the bits of float64."""


@jit.once
def least():
    """loop(turns, low): of each turn of (turns, numbers) of float32 the least magnitude that is not zero, or infinity."""

    def least_loop(turns, low):
        for turn in range(low.size):
            found = INFINITE_BITS
            for n in range(turns.shape[1]):  # one less than magnitudes, by which zero is no small one
                below = cut(cut(float_bits(turns[turn, n]) & MAGNITUDE, ONE) - ONE, ONE)
                found = min(found, cut(below & MAGNITUDE, ONE))
            low[turn] = bits_float(cut(min(found, INFINITE_BITS - ONE) + ONE, ONE), ZERO)

    return jit.compiled(least_loop)


@jit.once
def spans():
    """loop(first, last, panels, stretch, found): of panels first ... last - 1 of (panels, k, size), and of each stretch of their k, the smallest
    lowest bit and the largest magnitude, to (panels, stretches, 2)."""

    def spans_loop(first, last, panels, stretch, found):
        for panel in range(first, last):
            for part in range(found.shape[1]):
                least, greatest = np.int64(EXPONENT64), np.int64(0)
                for k in range(part * stretch, min((part + 1) * stretch, panels.shape[1])):
                    for n in range(panels.shape[2]):  # integers, whose least and greatest are found many at a time
                        bits = float_bits(panels[panel, k, n]) & np.int64(EVERY_MAGNITUDE)
                        significand = (bits & np.int64(0xFFFFFFFFFFFFF)) | np.int64(0x10000000000000)
                        unit = bits_float((bits & np.int64(EXPONENT64)) - np.int64(52 << 52), 1.0)
                        bit = float_bits(np.float64(significand & -significand) * unit)
                        least = min(least, bit if bits > 0 else np.int64(EXPONENT64))
                        greatest = max(greatest, bits)
                found[panel, part, 0] = bits_float(least, 1.0)
                found[panel, part, 1] = bits_float(greatest, 1.0)

    return jit.compiled(spans_loop)


@jit.once
def scaled_laid_out(size, carrier):
    """loop(first, last, codes, scales, places, values, of_scales, powers, target, spans): panels first ... last - 1 of codes with scales.

    `codes` and `scales` are flat; `places`: products that have codes, codes side by side, how far it is from one code to the next
    down k and across, the same of scales, products of a block and how many of its rows stand side by side, products with what
    fills a block up, and 1 where each number has a power of two of its own, 0 where all have that of their scale. `values` has what a code
    stands for, `of_scales` the same and its power of two; `powers`: the least of a number, that of a zero, and that of what fills a block up.
    target is (2, panels, k, size): numbers times scales, and powers times powers; beyond the last code zeros, whose powers are 0 where they
    fill no block up. `spans`: of each panel the least magnitude of products of what is not zero, or infinity, and the
    largest, as bits of float64.
    """

    integer = {np.float32: np.int32, np.float64: np.int64}[carrier]
    zero, nothing, infinite = carrier(0), integer(0), carrier(np.inf).view(integer)
    every = integer(np.iinfo(integer).max)

    def scaled_laid_out_loop(first, last, codes, scales, places, values, of_scales, powers, target, spans):
        products, wide, block, filled = places[0], places[1], places[6], places[8]
        down, across = np.uint64(places[2]), np.uint64(places[3])  # unsigned: no index is looked at for its sign
        field, tiny, of_zero, of_nothing = cut(infinite * places[9], nothing), powers[0], powers[1], powers[2]
        room, length, flat = block * size, target.shape[2], target.reshape(target.size)
        read, shared, lead = np.zeros(room, carrier), np.zeros(room, carrier), np.zeros(room, carrier)
        beside = np.zeros(size, np.int64)
        for panel in range(first, last):
            start = panel * size
            count = min(size, wide - start)
            least, greatest = every, nothing
            for i in range(room if count < size else 0):
                read[i] = shared[i] = lead[i] = zero
            for n in range(count):
                beside[n] = (start + n) // places[7] * places[5]
            for top in range(0, products, block):
                here = min(block, products - top)
                of_block = top // block * places[4]
                for n in range(count):
                    scale = scales[np.uint64(of_block + beside[n])]
                    shared[n], lead[n] = of_scales[0, scale], of_scales[1, scale]
                if across == 1:
                    at = np.uint64(top) * down + np.uint64(start)
                    for k in range(here):
                        for n in range(count):
                            read[k * size + n] = values[codes[at + np.uint64(n)]]
                        at += down
                else:
                    for n in range(count):
                        at = np.uint64(top) * down + np.uint64(start + n) * across
                        for k in range(here):
                            read[k * size + n] = values[codes[at]]
                            at += down
                for i in range(size, here * size):
                    shared[i], lead[i] = shared[i - size], lead[i - size]
                results = flat[(panel * length + top) * size :][: here * size]
                exponents = flat[((target.shape[1] + panel) * length + top) * size :][: here * size]
                for i in range(here * size):
                    bits = float_bits(read[i])
                    number = read[i] * shared[i]
                    own = bits_float(cut(bits & field, nothing), zero)
                    power = own if own > tiny else tiny
                    here_zero, of_scale = cut(bits & every, nothing) == nothing, float_bits(shared[i])
                    power = of_zero if here_zero else power
                    results[i], exponents[i] = number, power * lead[i]
                    magnitude = cut(float_bits(number) & every, nothing)
                    greatest = max(greatest, magnitude)
                    least = min(least, every if here_zero or of_scale == nothing else magnitude)
            spans[0, panel] = float_bits(np.float64(bits_float(min(least, infinite), zero)))
            spans[1, panel] = float_bits(np.float64(bits_float(greatest, zero)))
            for k in range(products, target.shape[2]):
                for n in range(size):
                    target[0, panel, k, n] = zero
                    target[1, panel, k, n] = of_nothing if (k < filled) & (n < count) else zero

    return jit.compiled(scaled_laid_out_loop)
