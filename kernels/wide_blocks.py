"""Arithmetic of wide formats in float64, in blocks of ordinary numbers: the CPU's result, and the exact error of that one operation.

With the error the result is cut toward zero: the exact value is in or above what is left, and by less than its last place. Bits that a
shorter format drops, what the cut lost, and in stochastic rounding the fraction's first 16 bits decide every mode. To nearest in 53 bits
the CPU's result is the one.

A block is left to `wide` if an operand or a result is not ordinary, or a rounding hangs on random bits after the first 16. Ordinary are
numbers whose errors cannot leave the range, and operands that are zero; no result that is zero, tiny or too large. Errors of products
and quotients take a fused multiply-add: CPUs without one leave these operations to `wide`.
"""

from functools import cache

import numpy as np

from . import jit, spec
from .carrier import source_of
from .fast import has_feature
from .jit import bits_float, float_bits, kernel, lowered
from .prng import TILE, top_bits
from .rounding import target_of

BLOCK = TILE
FLAG_BITS = 5
FARTHEST = 450  # binades from 1 of ordinary operands; of fma, whose error has two products' length, half as many
LOWEST = np.int64(1023 - 2 * FARTHEST)  # exponent field of the least result
MAGNITUDE, FRACTION, LARGEST = np.int64((1 << 63) - 1), np.int64((1 << 52) - 1), np.int64(0x7FEFFFFFFFFFFFFF)
DRAWN = 16  # random bits that are looked at


# -- operations: (rounded to nearest, its error, in units of the third; of those that divide, but for its last bits) -------------


def fused(x, y, z):
    """x * y + z, rounded once."""
    raise NotImplementedError("compiled code alone has it")


@lowered(fused)
def _fused(context, x, y, z):
    return x(x, y, z), lambda context, builder, signature, arguments: builder.fma(*arguments)


@kernel
def two_sum(x, y):
    """(x + y rounded to nearest, its error)."""
    s = x + y
    shadow = s - x
    return s, (x - (s - shadow)) + (y - shadow)


@kernel
def product(x, y):
    """(x * y rounded to nearest, its error)."""
    p = x * y
    return p, fused(x, y, -p)


@kernel
def identity(x, y, z):
    """x itself."""
    return x, 0.0, 1.0


@kernel
def add(x, y, z):
    """x + y."""
    return *two_sum(x, y), 1.0


@kernel
def sub(x, y, z):
    """x - y."""
    return *two_sum(x, -y), 1.0


@kernel
def mul(x, y, z):
    """x * y."""
    return *product(x, y), 1.0


@kernel
def div(x, y, z):
    """x / y."""
    q = x / y
    rest = fused(-q, y, x)
    return q, -rest if y < 0.0 else rest, abs(y)


@kernel
def sqrt(x, y, z):
    """The square root of x."""
    r = np.sqrt(x)
    return r, fused(-r, r, x), r + r


@kernel
def fma(x, y, z):
    """x * y + z; the error, two numbers long, to odd (Boldo and Muller, Exact and approximated error of the FMA, 2011)."""
    s = fused(x, y, z)
    whole, least = product(x, y)
    near, rest = two_sum(z, least)
    total, far = two_sum(whole, near)
    error, lost = two_sum((total - s) + far, rest)
    bits = float_bits(error)
    inward = (lost > 0.0) == (error < 0.0)
    step = np.int64(1) - np.int64(2) * np.int64(inward)
    return s, bits_float(bits + step * np.int64((lost != 0.0) & ((bits & 1) == 0)), 1.0), 1.0


HAS_FUSED = has_feature("fma")
OPERATIONS = {"convert": identity, "add": add, "sub": sub}
if HAS_FUSED:
    OPERATIONS |= {"mul": mul, "div": div, "sqrt": sqrt, "fma": fma}
DIVIDED = ("div", "sqrt")
"""Operations of whose error the sign is exact. No such result is half way between two numbers of 53 bits."""
NEARLY = 2.0**-50


# -- modes: the magnitude, cut toward zero, plus what carries into the bits that stay; sticky 1 where the cut lost something -----

MODES = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


@cache
def carrying(mode):
    """carry(odd, sticky, negative, dropped) of a mode, by what its thresholds are (`spec.thresholds`)."""

    def amount(threshold):
        below_half, up_at_half, never = threshold < 0.5, threshold <= 0.5, threshold > 1.0
        shift, sure, mask = int(not below_half), int(up_at_half and not below_half), 0 if never else -1

        @kernel
        def carried(sticky, dropped):
            return ((dropped >> shift) + (sticky | sure)) & mask

        return carried

    amounts = [
        amount(x)
        for negative in (False, True)
        for x in spec.thresholds(spec.Rounding[mode.upper()], negative, spec.CARRIER64)
    ]
    positive_even, positive_odd, negative_even, negative_odd = amounts

    @kernel
    def carry(odd, sticky, negative, dropped):
        positive = positive_odd(sticky, dropped) if odd else positive_even(sticky, dropped)
        other = negative_odd(sticky, dropped) if odd else negative_even(sticky, dropped)
        return other if negative else positive

    return carry


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


@kernel
def read(code, known, least, most):
    """(The number; negative, if it is neither zero nor of a magnitude from `least` to `most`.)"""
    magnitude = code & known.magnitude_mask
    some = -magnitude  # negative, but of zero
    bits = ((magnitude << known.shift) + known.rebias) | ((code ^ magnitude) << known.sign_shift)
    return bits_float(bits & (some >> 63), 1.0), ((magnitude - least) & some) | (most - magnitude)


@cache
def _block(operation, mode, double):
    """One block: (negative, if one of its numbers is not ordinary or settled; 1 if one result is not exact)."""
    draws, exact = mode == "stochastic", operation not in DIVIDED
    operate, carry = OPERATIONS[operation], None if draws else carrying(mode)
    away = double and mode == "nearest_away" and exact
    nearest = double and mode in ("nearest_even", "nearest_away") and not away
    arity = 3 if operation == "fma" else 1 if operation in ("sqrt", "convert") else 2

    @jit.row
    def block(a, b, c, codes, flags, random, open_from, known, least, most, target, lowest):
        unusual, seen = np.int64(0), np.int64(0)
        drop = np.int64(0) if double else np.int64(52 - target.mantissa_bits)
        dropped, short = (np.int64(1) << drop) - 1, max(DRAWN - drop, np.int64(0))
        whole, rebase = drop + short, np.int64(target.lowest_exponent - 1) << np.int64(target.mantissa_bits)
        fractions, open_from = (np.int64(1) << whole) - 1, open_from << (whole - DRAWN)
        for i in range(BLOCK):
            x, trouble = read(a[i], known, least, most)
            y, z = x, x
            if arity > 1:
                y, other = read(b[i], known, least, most)
                trouble |= other
            if arity > 2:
                z, other = read(c[i], known, least, most)
                trouble |= other
            value, error, unit = operate(x, y, z)
            bits = float_bits(value)
            magnitude, negative = bits & MAGNITUDE, bits < 0
            lost = np.int64(error != 0.0)
            inward = (error > 0.0) if negative else (error < 0.0)
            if draws:
                met, near = fraction(magnitude, error / unit, inward, short, dropped)
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
                kept = (toward + carry((toward >> drop) & 1 != 0, lost, negative, dropped)) >> drop
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

    loop(a, b, c, codes, flags, each, largest, integers, floats, key, stream, start, handed, width) -> elements done << FLAG_BITS | flags,
    of codes as int64, operands' finite ones up to `largest`; `double`: results have 53 bits. The rest is as in `wide.elementwise`.
    """
    block, draws = _block(operation, mode, double), mode == "stochastic"
    farthest = np.int64(FARTHEST // 2 if operation == "fma" else FARTHEST)

    def wide_blocks_loop(a, b, c, codes, flags, each, largest, integers, floats, key, stream, start, handed, width):
        known, target = source_of(integers, floats), target_of(integers, floats)
        least = max(known.hidden, (((1023 - farthest) << 52) - known.rebias) >> known.shift)
        most = min(largest, (((1023 + farthest) << 52) - known.rebias) >> known.shift)
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
            unusual, inexact = block(
                *operands, codes[first:last], raises, random, open_from, known, least, most, target, lowest
            )
            if unusual < 0:
                break
            seen |= inexact
            done = last
        return done << FLAG_BITS | (0 if each else seen)

    return jit.compiled(wide_blocks_loop)
