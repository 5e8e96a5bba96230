"""Operands of tiles, laid out and looked at beforehand: their least numbers, what they span, powers of two beside them."""

import numpy as np

from . import jit
from .fast import INFINITE_BITS, MAGNITUDE, ZERO
from .jit import bits_float, cut, float_bits
from .steps import EXPONENT64
from .vectors import LANES, ROWS

__all__ = ["LANES", "LONE_LANES", "ROWS", "jit", "least", "spans"]
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
