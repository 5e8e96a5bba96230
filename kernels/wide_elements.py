"""Elements of `blocks`: wide formats in float64, by the CPU's result, and the exact error of that one operation.

With the error the result is cut toward zero: the exact value is in or above what is left, and by less than its last place. Bits that a
shorter format drops, what the cut lost, and in stochastic rounding the fraction's first 16 bits decide every mode. To nearest in 53 bits
the CPU's result is the one.

An element is left to `wide` if an operand or a result is not ordinary, or a rounding hangs on random bits after the first 16. Ordinary are
numbers whose errors cannot leave the range, and operands that are zero; no result that is zero, tiny or too large. Errors of products
and quotients take a fused multiply-add: CPUs without one leave these operations to `wide`.
"""

from typing import NamedTuple

import numpy as np

from . import spec
from .arith import sum_and_error
from .carrier import source_of
from .fast import has_feature, odd_sum
from .jit import bits_float, float_bits, kernel, lowered
from .rounding import target_of
from .spec import Source, Target

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
    return *sum_and_error(x, y), 1.0


@kernel
def sub(x, y, z):
    """x - y."""
    return *sum_and_error(x, -y), 1.0


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
    near, rest = sum_and_error(z, least)
    total, far = sum_and_error(whole, near)
    return s, odd_sum((total - s) + far, rest), 1.0


HAS_FUSED = has_feature("fma")
OPERATIONS = {"convert": identity, "add": add, "sub": sub}
if HAS_FUSED:
    OPERATIONS |= {"mul": mul, "div": div, "sqrt": sqrt, "fma": fma}
DIVIDED = ("div", "sqrt")
"""Operations of whose error the sign is exact. No such result is half way between two numbers of 53 bits."""
NEARLY = 2.0**-50


# -- modes: the magnitude, cut toward zero, plus what carries into the bits that stay; sticky 1 where the cut lost something -----

MODES = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


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


# -- elements ------------------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """What elements know of formats and a rule."""

    source: Source
    target: Target
    most: int  # the greatest code of a number
    drop: int  # bits of float64 that the format has not
    short: int  # bits that the first 16 random ones have more
    dropped: int  # masks of these bits, and of both
    fractions: int
    rebase: int
    open_from: int


@kernel
def known_of(integers, floats):
    """What two arrays say."""
    source, target = source_of(integers, floats), target_of(integers, floats)
    m = np.int64(target.mantissa_bits)
    drop = np.int64(52) - m
    short = max(DRAWN - drop, np.int64(0))
    whole, one = drop + short, np.int64(1)
    most = min(min(source.infinity, source.nan_first) - 1, source.magnitude_mask)
    open_from = ((one << DRAWN) - 1) << (whole - DRAWN)
    rebase = np.int64(target.lowest_exponent - 1) << m
    return Known(source, target, most, drop, short, (one << drop) - 1, (one << whole) - 1, rebase, open_from)


@kernel
def read(code, known, farthest):
    """(The number; negative, if it is neither zero nor of a magnitude within that many binades from 1.)"""
    code, source = np.int64(code), known.source
    magnitude = code & source.magnitude_mask
    least = max(source.hidden, (((1023 - farthest) << 52) - source.rebias) >> source.shift)
    most = min(known.most, (((1023 + farthest) << 52) - source.rebias) >> source.shift)
    some = -magnitude  # negative, but of zero
    bits = ((magnitude << source.shift) + source.rebias) | ((code ^ magnitude) << source.sign_shift)
    return bits_float(bits & (some >> 63), 1.0), ((magnitude - least) & some) | (most - magnitude)


def element_of(operation, mode, double):
    """element(code_a, code_b, code_c, half_word, known) -> (code, flags, 1 where it is left); `double`: results have 53 bits."""
    draws, exact = mode == "stochastic", operation not in DIVIDED
    operate, carry = OPERATIONS[operation], None if draws else carrying(mode)
    away = double and mode == "nearest_away" and exact
    nearest = double and mode in ("nearest_even", "nearest_away") and not away
    arity = 3 if operation == "fma" else 1 if operation in ("sqrt", "convert") else 2
    farthest = np.int64(FARTHEST // 2 if operation == "fma" else FARTHEST)

    @kernel
    def element(code_a, code_b, code_c, half_word, known):
        target, drop, dropped = known.target, np.int64(0) if double else known.drop, known.dropped
        x, trouble = read(code_a, known, farthest)
        y, z = x, x
        if arity > 1:
            y, other = read(code_b, known, farthest)
            trouble |= other
        if arity > 2:
            z, other = read(code_c, known, farthest)
            trouble |= other
        value, error, unit = operate(x, y, z)
        bits = float_bits(value)
        magnitude, negative = bits & MAGNITUDE, bits < 0
        lost = np.int64(error != 0.0)
        inward = (error > 0.0) if negative else (error < 0.0)
        if draws:
            whole = drop + known.short
            met, near = fraction(magnitude, error / unit, inward, known.short, dropped)
            if not exact:
                trouble |= -(np.int64(near) & lost)
            lost |= np.int64(met != 0)
            met += np.int64(half_word) << (whole - DRAWN)
            kept = (magnitude >> drop) + (met >> whole)
            trouble |= known.open_from - ((met & known.fractions) + lost)
        elif nearest:
            kept = magnitude
        elif away:
            kept = magnitude + np.int64(tie_outward(value, error))
        else:
            toward = magnitude - np.int64(inward)
            kept = (toward + carry((toward >> drop) & 1 != 0, lost, negative, dropped)) >> drop
            lost |= np.int64((toward & dropped) != 0)
        kept -= known.rebase
        lowest = (max(np.int64(target.lowest_exponent), LOWEST) << 52) + 1
        trouble |= (magnitude - lowest) | (LARGEST - magnitude) | (target.largest - kept)
        return kept | (target.sign if negative else 0), lost, np.int32(1 if trouble < 0 else 0)

    return element
