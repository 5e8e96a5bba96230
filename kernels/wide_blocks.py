"""Arithmetic in float64 itself, in blocks of ordinary numbers: the CPU's result, and the exact error of that one operation.

What the CPU rounds to nearest is one of the two candidates. The error says on which side the exact value is, and whether it is another:
a directed mode keeps the result or takes the neighbour there, and stochastic rounding compares the error with the distance between them.
Blocks with a number for which an error could leave the range, or with a result that is zero, go by `wide`.
"""

from functools import cache

import numpy as np

from . import jit
from .jit import bits_float, float_bits, kernel
from .prng import TILE, add_low, fill_high, keep_bits, unit_fraction

BLOCK = TILE
FLAG_BITS = 5
SMALL, LARGE, SPLITTER = 2.0**-450, 2.0**450, 134217729.0
FRACTION = np.int64((1 << 52) - 1)


@kernel
def halves(x):
    """x as a sum of two numbers of at most 26 bits (Veltkamp)."""
    c = SPLITTER * x
    high = c - (c - x)
    return high, x - high


@kernel
def product_error(x, y, p):
    """x * y - p, p the product rounded to nearest (Dekker)."""
    a, b = halves(x)
    c, d = halves(y)
    return ((a * c - p) + a * d + b * c) + b * d


@kernel
def within(x):
    """Whether a magnitude is in the middle of the range."""
    return (abs(x) > SMALL) & (abs(x) < LARGE)


@kernel
def add(x, y):
    """(x + y rounded to nearest, its error, whether all is ordinary)."""
    s = x + y
    shadow = s - x
    return s, (x - (s - shadow)) + (y - shadow), (abs(x) < LARGE) & (abs(y) < LARGE) & (abs(s) > SMALL)


@kernel
def sub(x, y):
    """x - y."""
    return add(x, -y)


@kernel
def mul(x, y):
    """x * y."""
    p = x * y
    return p, product_error(x, y, p), within(x) & within(y)


@kernel
def div(x, y):
    """x / y; of the error the sign."""
    q = x / y
    p = q * y
    rest = (x - p) - product_error(q, y, p)
    return q, -rest if y < 0.0 else rest, within(x) & within(y)


@kernel
def sqrt(x, y):
    """The square root of x; of the error the sign."""
    r = np.sqrt(abs(x))
    p = r * r
    return r, (x - p) - product_error(r, r, p), (x > SMALL) & (x < LARGE)


@kernel
def nearest_even(bits, error, outward, random, scale):
    """What the CPU gave."""
    return bits


@kernel
def moved(bits, outward, where):
    """The neighbour outward, or inward, where a condition holds: arithmetic, as branches would keep loops from becoming vectors."""
    return bits + (np.int64(outward) + np.int64(outward) - 1) * np.int64(where)


@kernel
def toward_zero(bits, error, outward, random, scale):
    """The neighbour inward where the exact value is there."""
    return moved(bits, outward, (error != 0.0) & (not outward))


@kernel
def toward_positive(bits, error, outward, random, scale):
    """The neighbour above where the exact value is above."""
    return moved(bits, outward, error > 0.0)


@kernel
def toward_negative(bits, error, outward, random, scale):
    """The neighbour below where the exact value is below."""
    return moved(bits, outward, error < 0.0)


@kernel
def to_odd(bits, error, outward, random, scale):
    """Of an even one the neighbour on the exact value's side."""
    return moved(bits, outward, (error != 0.0) & ((bits & 1) == 0))


@kernel
def distance(bits, error, outward, scale):
    """The error in quanta of the candidates, times `scale`: inward of a power of two quanta are half as long."""
    short = ((bits & FRACTION) == 0) & (not outward)
    exponent = 2 * 1023 + 52 - ((bits >> 52) & 0x7FF) + np.int64(short)
    return abs(error) * bits_float(exponent << 52, 1.0) * scale


@kernel
def stochastic(bits, error, outward, random, scale):
    """The candidate further out with the probability floor(f * scale) / scale, f the distance from the other."""
    far = distance(bits, error, outward, scale)
    reached = (np.floor(far) + random >= scale) if outward else (np.ceil(far) > random)
    return moved(bits, outward, reached & (error != 0.0))


@kernel
def undecided(bits, error, outward, random, scale, coming):
    """Whether a random number that is larger by less than `coming` would choose otherwise."""
    far = distance(bits, error, outward, scale)
    edge = (scale - np.floor(far)) if outward else np.ceil(far)
    return (random < edge) & (edge < random + coming) & (error != 0.0)


OPERATIONS = {"add": add, "sub": sub, "mul": mul, "div": div, "sqrt": sqrt}
ROUNDERS = {
    "nearest_even": nearest_even,
    "toward_zero": toward_zero,
    "toward_positive": toward_positive,
    "toward_negative": toward_negative,
    "to_odd": to_odd,
    "stochastic": stochastic,
}
EXACT = ("add", "sub", "mul")
"""Operations whose error is a number of float64, as stochastic rounding needs it."""


@cache
def _block(operation, mode, draws):
    """One block: 1 if all of its numbers are ordinary, 1 if one result is not exact, 1 if one hangs on random bits that are coming."""
    operate, rounded = OPERATIONS[operation], ROUNDERS[mode]

    @jit.row
    def block(a, b, codes, flags, uniforms, scale, coming, each):
        ordinary, seen, hangs = np.int64(1), np.int64(0), np.int64(0)
        for i in range(BLOCK):
            value, error, one = operate(bits_float(a[i], 1.0), bits_float(b[i], 1.0))
            outward = (error > 0.0) == (value > 0.0)
            random = uniforms[i] * scale if draws else 0.0
            codes[i] = rounded(float_bits(value), error, outward, random, scale)
            if draws:
                hangs |= np.int64(undecided(float_bits(value), error, outward, random, scale, coming))
            inexact = np.int64(error != 0.0)
            ordinary &= np.int64(one)
            seen |= inexact
            if each:
                flags[i] = inexact
        return ordinary, seen, hangs

    return jit.referable(block, "wide", operation, mode, draws)


@cache
def elementwise(operation, mode):
    """loop(a, b, codes, flags, each, key, stream, start, handed, width) -> elements done << FLAG_BITS | flags, whole blocks from the first on.

    Codes are those of float64 as int64. It ends before a block that is not ordinary.
    """
    draws = mode == "stochastic"
    block = _block(operation, mode, draws)

    def wide_blocks_loop(a, b, codes, flags, each, key, stream, start, handed, width):
        half_words, uniforms = np.empty(TILE, np.uint16), np.zeros(TILE, np.float64)
        scale, seen, done = 2.0**width, np.int64(0), 0
        coming = 2.0 ** (width - 16) if width > 16 and handed.size == 0 else 0.0
        nothing = np.empty(BLOCK, np.uint8)
        for first in range(0, codes.size // BLOCK * BLOCK, BLOCK):
            last = first + BLOCK
            if draws and handed.size:
                for i in range(BLOCK):
                    uniforms[i] = unit_fraction(handed[first + i], width)
            elif draws:
                fill_high((start + first) // TILE, half_words, uniforms, key, stream)
                keep_bits(uniforms, min(width, 16))
            raises = flags[first:last] if each else nothing
            x, y, made = a[first:last], b[first:last], codes[first:last]
            ordinary, inexact, hangs = block(x, y, made, raises, uniforms, scale, coming, each)
            if hangs != 0 and ordinary != 0:
                add_low((start + first) // TILE, uniforms, key, stream)
                keep_bits(uniforms, width)
                block(x, y, made, raises, uniforms, scale, 0.0, each)
            if ordinary == 0:
                break
            seen |= inexact
            done = last
        return done << FLAG_BITS | (0 if each else seen)

    return jit.compiled(wide_blocks_loop)
