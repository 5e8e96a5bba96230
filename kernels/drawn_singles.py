"""Sums and products of float32, rounded stochastically to float32: by float64, whose lower bits meet random ones.

As `blocks.elementwise_drawn` does for narrower formats, a loop stops at the first block that is not ordinary: in which an operand
is subnormal, infinite or NaN, a result other than zero is not normal, or a rounding hangs on more than 16 random bits.

    exact result = fl64(x op y), cut toward zero, and whether anything is lost
    rounded = its bits + random bits below the last one kept, which carry
"""

from functools import cache

import numpy as np

from . import jit
from .blocks import BLOCK, FLAG_BITS, exact_product, exact_sum
from .fast import INEXACT, INFINITE_BITS, MAGNITUDE, NONE, ZERO
from .jit import bits_float, cut, kernel
from .prng import top_bits

DROPPED = 29  # bits of float64 that float32 has not
DROPPED_MASK = np.int64((1 << DROPPED) - 1)
RANDOM_SHIFT = DROPPED - 16  # where 16 random bits meet them
HANGING = np.int64(
    (1 << DROPPED) - (1 << RANDOM_SHIFT)
)  # what is above it could still carry, were there more random bits
MAGNITUDE64 = np.int64(0x7FFFFFFFFFFFFFFF)
SMALLEST_NORMAL64, ABOVE_LARGEST64 = np.int64((1023 - 126) << 52), np.int64((1023 + 128) << 52)
REBIAS = np.int64((1023 - 127) << 23)
LEAST_NORMAL = np.int32(1 << 23)
NOTHING64, ONE64 = np.int64(0), np.int64(1)
SIGN32 = np.int32(-0x80000000)


@kernel
def exact_difference(x, y):
    """x - y."""
    return exact_sum(x, -y)


EXACT = {"add": exact_sum, "sub": exact_difference, "mul": exact_product}
"""Operation -> (bits cut toward zero, whether anything is lost)."""


@kernel
def out_of_range(codes):
    """Whether a float32 is subnormal, infinite or NaN."""
    found = NONE
    for i in range(codes.size):
        magnitude = cut(codes[i] & MAGNITUDE, NONE)
        wild = ((magnitude < LEAST_NORMAL) & (magnitude != NONE)) | (magnitude >= INFINITE_BITS)
        found = cut(found | (INEXACT if wild else NONE), NONE)
    return found != NONE


@cache
def elementwise_drawn(operation, each, either=False):
    """loop(a, b, codes, flags, key, stream, start, handed, width) -> elements done and flags (0 where `each`), as `blocks.elementwise_drawn`.

    `either`: up or down, by one bit.
    """
    exact = EXACT[operation]

    def singles_drawn_loop(a, b, codes, flags, key, stream, start, handed, width):
        half_words = np.empty(BLOCK, np.uint16)
        seen = NONE
        for first in range(0, codes.size, BLOCK):
            xs, ys = a[first : first + BLOCK], b[first : first + BLOCK]
            results = codes[first : first + BLOCK]
            raises = flags[first : first + BLOCK] if each else flags
            if out_of_range(xs) or out_of_range(ys):
                return (first << FLAG_BITS) | seen
            top_bits(start + first, half_words, handed[first : first + BLOCK], width, key, stream)
            inexact_here, stops = NOTHING64, NOTHING64
            for i in range(results.size):
                x, y = np.float64(bits_float(xs[i], ZERO)), np.float64(bits_float(ys[i], ZERO))
                bits, lost = exact(x, y)
                magnitude = bits & MAGNITUDE64
                sticky = ONE64 if lost else NOTHING64
                random = np.int64(half_words[i]) << np.int64(RANDOM_SHIFT)
                if either:
                    random = DROPPED_MASK if random != NOTHING64 else NOTHING64
                    magnitude |= sticky
                carried = magnitude + random
                is_open = (carried & DROPPED_MASK) + sticky > HANGING and not either
                is_zero = magnitude == NOTHING64
                unusual = (magnitude < SMALLEST_NORMAL64) | (carried >= ABOVE_LARGEST64)
                stops |= ONE64 if (unusual & ~is_zero) | is_open else NOTHING64
                kept = NOTHING64 if is_zero else (carried >> np.int64(DROPPED)) - REBIAS
                results[i] = cut(cut(kept, NONE) | (SIGN32 if bits < NOTHING64 else NONE), NONE)
                inexact = (magnitude & DROPPED_MASK) | sticky
                if each:
                    raises[i] = INEXACT if inexact != NOTHING64 else NONE
                else:
                    inexact_here |= inexact
            if stops != NOTHING64:
                return (first << FLAG_BITS) | seen
            seen = cut(seen | (INEXACT if inexact_here != NOTHING64 else NONE), NONE)
        return (codes.size << FLAG_BITS) | seen

    return jit.compiled(singles_drawn_loop)
