"""Operands of tiles, laid out and looked at beforehand: their least numbers, what they span, powers of two beside them."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import jit
from .jit import bits_float, float_bits
from .steps import EXPONENT64
from .vectors import FLOATS, LANES, ROWS, load, named

__all__ = ["LANES", "LONE_LANES", "ROWS", "jit", "least", "scaled_laid_out", "spans"]
LONE_LANES = 4
"""Of the smallest vector that CPUs have."""
EVERY_MAGNITUDE = (1 << 63) - 1
"""What no sign is among, in the bits of float64."""


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


@jit.once
def least(size):
    """loop(panels, low): of each turn of panels so wide, flat, the least magnitude that is not zero, or infinity."""
    least_number = least_of(size)

    def least_loop(panels, low):
        for turn in range(low.size):
            least_number(panels, turn * size, low, turn)

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
def scaled_laid_out():
    """loop(first, last, codes, scales, places, elements, of_scales, of_nothing, target, spans): panels first ... last - 1 of codes with scales.

    `codes` and `scales` are flat; `places`: products that have codes, codes side by side, how far it is from one code to the next
    down k and across, the same of scales, products of a block and how many of its rows stand side by side, and products with what
    fills a block up. `elements` and `of_scales` have for each code what it stands for, and its power of two. target is
    (2, panels, k, size): numbers times scales, and powers times powers; beyond the last code zeros, whose powers are `of_nothing`
    where they fill a block up, and else 0.
    `spans`: of each panel's lanes the least magnitude but zero and the largest, as bits.
    """

    def scaled_laid_out_loop(first, last, codes, scales, places, elements, of_scales, of_nothing, target, spans):
        size, products, wide, filled = target.shape[3], places[0], places[1], places[8]
        down, across = np.uint64(places[2]), np.uint64(places[3])  # unsigned: no index is looked at for its sign
        values, powers = elements[0], elements[1]
        shared, lead = np.empty(size), np.empty(size)
        for panel in range(first, last):
            numbers, exponents = target[0, panel], target[1, panel]
            least, greatest = spans[0, panel], spans[1, panel]
            start = panel * size
            count = min(size, wide - start)
            least[:], greatest[:] = EVERY_MAGNITUDE, 0
            for top in range(0, products, places[6]):
                for n in range(count):
                    scale = scales[top // places[6] * places[4] + (start + n) // places[7] * places[5]]
                    shared[n], lead[n] = of_scales[0, scale], of_scales[1, scale]
                for k in range(top, min(top + places[6], products)):
                    at = np.uint64(k) * down + np.uint64(start) * across
                    for n in range(count):
                        code = codes[at]
                        at += across
                        number = values[code] * shared[n]
                        numbers[k, n], exponents[k, n] = number, powers[code] * lead[n]
                        magnitude = float_bits(number) & np.int64(EVERY_MAGNITUDE)
                        greatest[n] = max(greatest[n], magnitude)
                        least[n] = min(least[n], magnitude if magnitude != 0 else np.int64(EVERY_MAGNITUDE))
            numbers[products:], numbers[:products, count:], exponents[:products, count:] = 0.0, 0.0, 0.0
            for k in range(products, target.shape[2]):
                for n in range(size):
                    exponents[k, n] = of_nothing if (k < filled) & (n < count) else 0.0

    return jit.compiled(scaled_laid_out_loop)
