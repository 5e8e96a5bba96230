"""Which values are exact: a theorem for each function. All others are irrational, or have more bits than are kept."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from softfloat.bits.functions.bounds import Exact, Floats

FARTHEST = 1 << 14  # binades from 1: beyond, every format rounds alike
HIGHEST_POWER_OF_TEN = 128  # more have an odd factor of more bits than are kept
HIGHEST_POWER = 512  # of an odd number, it has more than 800 bits


def never(*operands: Floats) -> Exact:
    """No result but 0, 1 and infinity is rational, for a rational operand (Lindemann); those come without error."""
    return operands[0], operands[0], np.zeros(operands[0].shape, bool)


def exp2(x: Floats) -> Exact:
    """Integer powers of 2; others are irrational."""
    whole = np.trunc(x) == x
    return np.ldexp(1.0, np.where(whole, x, 0.0).astype(np.int32)), np.zeros_like(x), whole


POWERS_OF_TEN = np.array([float(10**n) for n in range(23)])  # those that are float64


def exp10(x: Floats) -> Exact:
    """10^n: up to n = 22 a float64; beyond, of more bits than are kept. With n < 0 it has no end in binary."""
    known = (np.trunc(x) == x) & (x >= 0.0) & (x <= 22.0)
    return POWERS_OF_TEN[np.where(known, x, 0.0).astype(np.int64)], np.zeros_like(x), known


def log2(x: Floats) -> Exact:
    """Logarithms of powers of 2; others are irrational."""
    fraction, exponent = np.frexp(x)
    return exponent - 1.0, np.zeros_like(x), fraction == 0.5


def log10(x: Floats) -> Exact:
    """Logarithms of 10^n; others are irrational. No operand is 10^n with n < 0, or beyond 10^10, which has 24 bits."""
    place = np.minimum(np.searchsorted(POWERS_OF_TEN, x), 22)
    return place.astype(np.float64), np.zeros_like(x), x == POWERS_OF_TEN[place]


def cbrt(x: Floats) -> Exact:
    """Perfect cubes, of at most 24 bits, have roots of at most 8."""
    fraction, exponent = np.frexp(np.cbrt(x))
    root = np.ldexp(np.rint(fraction * 2.0**10), exponent - 10)
    return root, np.zeros_like(x), root * root * root == x


def log2_of_sum(a: Floats, b: Floats) -> Exact:
    """log2(2^a + 2^a) = a + 1. No other sum of two powers is a power (1 and the roots of 2 are independent)."""
    return a, np.ones_like(a), a == b


def pow(x: Floats, y: Floats) -> Exact:
    """x = m * 2^e, m odd, to the y is dyadic where y is an integer and, if m > 1, not negative; or where roots make it so.

    The 2^j-th root of x is rational only if m and e are a 2^j-th power and a multiple of 2^j: with m < 2^24 and |e| < 512, j < 10.
    Of the integer powers of m those below 2^53 are exact in float64; the others are odd and have more bits than are kept.
    """
    fraction, exponent = np.frexp(np.abs(x))
    m, e = fraction * 2.0**24, exponent - 24.0
    trailing = (m.astype(np.int64) & -m.astype(np.int64)).astype(np.float64)
    m, e = m / trailing, e + np.log2(trailing)
    power = y.copy()
    for _ in range(9):
        root = np.rint(np.sqrt(m))
        halves = (np.trunc(power) != power) & (root * root == m) & (np.fmod(e, 2.0) == 0.0)
        if not halves.any():
            break
        m, e, power = np.where(halves, root, m), np.where(halves, e / 2, e), np.where(halves, power * 2, power)
    whole = np.trunc(power) == power
    known = whole & ((m == 1.0) | ((power > 0.0) & (power < 64.0)))
    count = np.where(known & (m > 1.0), power, 0.0).astype(np.int64)
    product, square = np.ones_like(m), m
    for bit in range(6):
        product = np.where(count >> bit & 1 == 1, product * square, product)
        square = np.minimum(square * square, 2.0**54)
    known &= product < 2.0**53
    scale = np.where(known, e * power, 0.0)
    known &= np.abs(scale) < 900.0
    value = np.ldexp(product, np.where(known, scale, 0.0).astype(np.int32))
    negative = np.signbit(x) & (np.fmod(np.abs(y), 2.0) == 1.0)
    return np.where(negative, -value, value), np.zeros_like(x), known


def rational_power(x: float, y: float) -> Fraction | None:
    """x^y if it is rational, and no power so high that an odd number has more bits than `values.decided` ever looks at."""
    base, power = Fraction(abs(x)), Fraction(y)
    while power.denominator > 1:
        roots = [math.isqrt(part) for part in base.as_integer_ratio()]
        if Fraction(roots[0] ** 2, roots[1] ** 2) != base:
            return None
        base, power = Fraction(*roots), power * 2
    sign = -1 if x < 0 and y % 2 == 1 else 1
    above, below = base.as_integer_ratio()
    if above & (above - 1) == below & (below - 1) == 0:
        binades = (above.bit_length() - below.bit_length()) * int(power)
        return sign * Fraction(2) ** min(max(binades, -FARTHEST), FARTHEST)
    return sign * base ** int(power) if abs(power) <= HIGHEST_POWER else None


def rational_power_of_ten(x: float) -> Fraction | None:
    """10^x, if that is an integer of few enough bits."""
    return Fraction(10) ** int(x) if x.is_integer() and 0.0 <= x <= HIGHEST_POWER_OF_TEN else None


def rational_root(x: float) -> Fraction | None:
    """The cube root of a perfect cube."""
    fraction, exponent = math.frexp(x)
    shift = (exponent - 53) % 3
    cube = int(fraction * 2.0 ** (53 + shift))
    root = round(math.cbrt(cube))
    return root * Fraction(2) ** ((exponent - 53 - shift) // 3) if root**3 == cube else None
