"""Arithmetic of wide formats in float64, in blocks of ordinary numbers: the CPU's result, and the exact error of that one operation.

With the error the result is cut toward zero: the exact value is in or above what is left, and by less than its last place. Bits that a
shorter format drops, what the cut lost, and in stochastic rounding the fraction's first 16 bits decide every mode. To nearest in 53 bits
the CPU's result is the one.

A block is left to `wide` if an operand or a result is not ordinary, or a rounding hangs on random bits after the first 16. Ordinary are
numbers whose errors cannot leave the range, and operands that are zero; no result that is zero, tiny or too large.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from . import jit, spec
from .fast import has_feature
from .jit import bits_float, fixed_tuple, float_bits, kernel, lowered
from .prng import TILE, top_bits
from .rounding import target_of

BLOCK = TILE
FLAG_BITS = 5
FARTHEST = 450  # binades from 1 of ordinary operands; of fma, whose error has two products' length, half as many
LOWEST = np.int64(1023 - 2 * FARTHEST)  # exponent field of the least result
SPLITTER = 134217729.0
MAGNITUDE, FRACTION, LARGEST = np.int64((1 << 63) - 1), np.int64((1 << 52) - 1), np.int64(0x7FEFFFFFFFFFFFFF)
DRAWN = 16  # random bits that are looked at


# -- operations: (rounded to nearest, its error or a number of that sign) ------------------------------------------------------


def fused(x, y, z):
    """x * y + z, rounded once."""
    raise NotImplementedError("compiled code alone has it")


@lowered(fused)
def _fused(context, x, y, z):
    return x(x, y, z), lambda context, builder, signature, arguments: builder.fma(*arguments)


@kernel
def halves(x):
    """x as a sum of two numbers of at most 26 bits (Veltkamp)."""
    c = SPLITTER * x
    high = c - (c - x)
    return high, x - high


@kernel
def split_product_error(x, y, p):
    """x * y - p, p the product rounded to nearest (Dekker)."""
    a, b = halves(x)
    c, d = halves(y)
    return ((a * c - p) + a * d + b * c) + b * d


@kernel
def fused_product_error(x, y, p):
    """The same in one instruction."""
    return fused(x, y, -p)


HAS_FUSED = has_feature("fma")
product_error = fused_product_error if HAS_FUSED else split_product_error


@kernel
def two_sum(x, y):
    """(x + y rounded to nearest, its error)."""
    s = x + y
    shadow = s - x
    return s, (x - (s - shadow)) + (y - shadow)


@kernel
def identity(x, y, z):
    """x itself."""
    return x, 0.0


@kernel
def add(x, y, z):
    """x + y."""
    return two_sum(x, y)


@kernel
def sub(x, y, z):
    """x - y."""
    return two_sum(x, -y)


@kernel
def mul(x, y, z):
    """x * y."""
    p = x * y
    return p, product_error(x, y, p)


@kernel
def div(x, y, z):
    """x / y; of the error the sign, times y (`by_divisor`)."""
    q = x / y
    p = q * y
    rest = (x - p) - product_error(q, y, p)
    return q, -rest if y < 0.0 else rest


@kernel
def sqrt(x, y, z):
    """The square root of x; of the error the sign, times the sum of two roots (`by_roots`)."""
    r = np.sqrt(x)
    p = r * r
    return r, (x - p) - product_error(r, r, p)


@kernel
def fma(x, y, z):
    """x * y + z; the error, two numbers long, to odd (Boldo and Muller, Exact and approximated error of the FMA, 2011)."""
    s = fused(x, y, z)
    product, least = mul(x, y, z)
    near, rest = two_sum(z, least)
    total, far = two_sum(product, near)
    error, lost = two_sum((total - s) + far, rest)
    bits = float_bits(error)
    inward = (lost > 0.0) == (error < 0.0)
    step = np.int64(1) - np.int64(2) * np.int64(inward)
    return s, bits_float(bits + step * np.int64((lost != 0.0) & ((bits & 1) == 0)), 1.0)


OPERATIONS = {"convert": identity, "add": add, "sub": sub, "mul": mul, "div": div, "sqrt": sqrt}
if HAS_FUSED:
    OPERATIONS["fma"] = fma


@kernel
def by_divisor(rest, value, y):
    """The error of a quotient but for its last bits."""
    return rest / abs(y)


@kernel
def by_roots(rest, value, y):
    """The error of a root but for its last bits."""
    return rest / (value + value)


RESTS = {"div": by_divisor, "sqrt": by_roots}
"""Operations whose error is the sign of a rest, and what else it says. No such result is half way between two numbers of 53 bits."""
NEARLY = 2.0**-50


# -- modes: the magnitude, cut toward zero, plus what carries into the bits that stay; sticky 1 where the cut lost something -----


@kernel
def nearest_even(cut, odd, sticky, negative, dropped):
    """Half a quantum, but a tie at an even number."""
    return cut + (dropped >> 1) + (odd | sticky)


@kernel
def nearest_away(cut, odd, sticky, negative, dropped):
    """Half a quantum."""
    return cut + (dropped >> 1) + 1


@kernel
def toward_zero(cut, odd, sticky, negative, dropped):
    """Nothing."""
    return cut


@kernel
def outward(cut, sticky, dropped, where):
    """Everything below a quantum, where a condition holds."""
    return cut + ((dropped + sticky) & -np.int64(where))


@kernel
def toward_positive(cut, odd, sticky, negative, dropped):
    """Outward where positive."""
    return outward(cut, sticky, dropped, not negative)


@kernel
def toward_negative(cut, odd, sticky, negative, dropped):
    """Outward where negative."""
    return outward(cut, sticky, dropped, negative)


@kernel
def to_odd(cut, odd, sticky, negative, dropped):
    """Outward from an even number."""
    return outward(cut, sticky, dropped, odd == 0)


ROUNDERS = {
    "nearest_even": nearest_even,
    "nearest_away": nearest_away,
    "toward_zero": toward_zero,
    "toward_positive": toward_positive,
    "toward_negative": toward_negative,
    "to_odd": to_odd,
}


@kernel
def tie_outward(value, error):
    """Whether the exact value is half a quantum of 53 bits outward of the one rounded to nearest."""
    other = value + 2.0 * error
    return (other - value == 2.0 * error) & (abs(other) > abs(value))


@kernel
def fraction(bits, error, inward, short, dropped):
    """What a stochastic rounding meets: (fraction bits below the quantum, negative below the number in `bits`; whether a whole number is near).

    There are `short` bits more than are dropped.
    """
    halved = ((bits & FRACTION) == 0) & inward  # below a power of two the last place is half as long
    exponent = 2 * 1023 + 52 + short - ((bits >> 52) & 0x7FF) + np.int64(halved)
    distance = abs(error) * bits_float(exponent << 52, 1.0) * (-1.0 if inward else 1.0)
    below = np.floor(distance)
    near = abs(distance - np.rint(distance)) <= abs(distance) * NEARLY
    return ((bits & dropped) << short) + (float_bits(below + 1.5 * 2.0**52) - float_bits(1.5 * 2.0**52)), near


# -- loops ---------------------------------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """Ordinary codes of a format, and what makes float64 of them."""

    shift: int
    rebias: int
    mask: int
    sign_shift: int
    least: int
    most: int


def operand(fmt, operation):
    """The numbers of the format that operands are of."""
    farthest = FARTHEST // 2 if operation == "fma" else FARTHEST
    known = spec.source(fmt, spec.CARRIER64, False)

    def code(exponent):
        return (exponent + fmt.bias) << fmt.mantissa_bits

    least, most = max(known.hidden, code(-farthest)), min(fmt.largest, code(farthest))
    return Operand(known.shift, known.rebias, known.magnitude_mask, known.sign_shift, least, most)


@kernel
def read(code, known):
    """(The number; negative, if it is not ordinary.)"""
    magnitude = code & known.mask
    some = -magnitude  # negative, but of zero
    bits = ((magnitude << known.shift) + known.rebias) | ((code ^ magnitude) << known.sign_shift)
    return bits_float(bits & (some >> 63), 1.0), ((magnitude - known.least) & some) | (known.most - magnitude)


@cache
def _block(operation, mode, double):
    """One block: (negative, if one of its numbers is not ordinary or settled; 1 if one result is not exact)."""
    operate, rounded, draws = OPERATIONS[operation], ROUNDERS.get(mode), mode == "stochastic"
    exact, divided = operation not in RESTS, RESTS.get(operation)
    away = double and mode == "nearest_away" and exact
    nearest = double and mode in ("nearest_even", "nearest_away") and not away
    arity = 3 if operation == "fma" else 1 if operation in ("sqrt", "convert") else 2

    @jit.row
    def block(a, b, c, codes, flags, random, open_from, known, target, lowest):
        unusual, seen = np.int64(0), np.int64(0)
        drop = np.int64(0) if double else np.int64(52 - target.mantissa_bits)
        dropped, short = (np.int64(1) << drop) - 1, max(DRAWN - drop, np.int64(0))
        whole, rebase = drop + short, np.int64(target.lowest_exponent - 1) << np.int64(target.mantissa_bits)
        fractions, open_from = (np.int64(1) << whole) - 1, open_from << (whole - DRAWN)
        for i in range(BLOCK):
            x, trouble = read(a[i], known)
            y, z = x, x
            if arity > 1:
                y, other = read(b[i], known)
                trouble |= other
            if arity > 2:
                z, other = read(c[i], known)
                trouble |= other
            value, error = operate(x, y, z)
            bits = float_bits(value)
            magnitude, negative = bits & MAGNITUDE, bits < 0
            lost = np.int64(error != 0.0)
            inward = (error > 0.0) if negative else (error < 0.0)
            if draws:
                if not exact:
                    error = divided(error, value, y)
                met, near = fraction(magnitude, error, inward, short, dropped)
                if not exact:
                    trouble |= -(np.int64(near) & lost)
                lost |= np.int64(met != 0)
                met += np.int64(random[i]) << (whole - DRAWN)
                kept = (magnitude >> drop) + (met >> whole)
                trouble |= open_from - ((met & fractions) + lost)
            elif nearest:
                kept = magnitude
            elif away:
                kept = magnitude + np.int64(tie_outward(value, error))
            else:
                toward = magnitude - np.int64(inward)
                kept = rounded(toward, (toward >> drop) & 1, lost, negative, dropped) >> drop
                lost |= np.int64((toward & dropped) != 0)
            kept -= rebase
            unusual |= trouble | (magnitude - lowest) | (LARGEST - magnitude) | (target.largest - kept)
            codes[i] = kept | (target.sign if negative else 0)
            seen |= lost
            flags[i] = lost
        return unusual, seen

    return jit.referable(block, "wide", operation, mode, double)


@cache
def elementwise(operation, mode, double):
    """A loop over whole blocks from the first on, until one is not ordinary.

    loop(a, b, c, codes, flags, each, operand, integers, floats, key, stream, start, handed, width) -> elements done << FLAG_BITS | flags,
    of codes as int64; `double`: results have 53 bits. `operand` has the numbers of an `Operand`; the rest is as in `wide.elementwise`.
    """
    block, draws = _block(operation, mode, double), mode == "stochastic"

    def wide_blocks_loop(a, b, c, codes, flags, each, operand, integers, floats, key, stream, start, handed, width):
        known, target = Operand(*fixed_tuple(operand, 6)), target_of(integers, floats)
        random, unread = np.zeros(BLOCK, np.uint16), np.empty(BLOCK, np.uint8)
        open_from = np.int64((1 << DRAWN) - 1 if width > DRAWN else 1 << DRAWN)
        lowest = (max(np.int64(target.lowest_exponent), LOWEST) << 52) + 1
        seen, done = np.int64(0), 0
        for first in range(0, codes.size // BLOCK * BLOCK, BLOCK):
            last = first + BLOCK
            if draws:
                top_bits(start + first, random, handed[first:last], width, key, stream)
            raises = flags[first:last] if each else unread
            operands = a[first:last], b[first:last], c[first:last]
            unusual, inexact = block(*operands, codes[first:last], raises, random, open_from, known, target, lowest)
            if unusual < 0:
                break
            seen |= inexact
            done = last
        return done << FLAG_BITS | (0 if each else seen)

    return jit.compiled(wide_blocks_loop)
