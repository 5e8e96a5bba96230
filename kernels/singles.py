"""Elements of `blocks`: float32 in float32.

The CPU's result is the nearest one. What that lost has a sign: whether anything was, and on which side of the result the exact one lies, is
all that flags and other modes ask, but for ties that do not go to even. Rounded stochastically, the lower bits of float64 meet random ones.
"""

from .elements import INFINITE, MAGNITUDE, NEAR, SIGN, SMALLEST, exact, one_where
from .steps import sum_and_error, to_odd
from .sums.language import WORD


def not_ordinary(bits, lost):
    """Where a result is beyond the normal numbers, or may have been rounded there."""
    magnitude = bits & MAGNITUDE
    return (magnitude <= SMALLEST) & (magnitude.nonzero() | lost) | (magnitude >= INFINITE)


def _sum(x, y, z):
    """(x + y, a number with the sign of what is lost); of one that is next to nothing but not zero, if a host flushes it, something is."""
    s, error = sum_and_error(x, y)
    return s, (s.is_zero() & x.apart_from(-y)).choose(x, error)


def _product(x, y, z):
    """The same of x * y."""
    exact = x.double() * y.double()
    product = exact.single()
    return product, exact - product.double()


def _quotient(x, y, z):
    """The same of x / y: q lies on the side of the exact quotient that q * y lies of x, and y may turn that round. Both products are exact."""
    quotient = x / y
    rest = x.double() - quotient.double() * y.double()
    return quotient, (y.bits() < 0).choose(-rest, rest)


def _root(x, y, z):
    """The same of a square root, whose square is exact."""
    root = x.root()
    return root, x.double() - root.double() * root.double()


def _fused(x, y, z):
    """The same of x * y + z, which in float64, to odd, has all bits that decide."""
    odd = to_odd(*sum_and_error(x.double() * y.double(), z.double()))
    near = odd.single()
    return near, odd - near.double()


SINGLES = {"add": _sum, "mul": _product, "div": _quotient, "sqrt": _root, "fma": _fused}


def _outward(bits, error):
    """Where what was lost counts the magnitude up."""
    return (error > 0.0).equals(bits >= 0)


def _as_rounded(bits, error):
    """The nearest number."""
    return bits


def _toward_zero(bits, error):
    """The number at or below it in magnitude."""
    return (error.is_zero() | _outward(bits, error)).choose(bits, bits - 1)


def _upward(bits, error):
    """The number at or above it."""
    return (error > 0.0).choose(bits + (bits >> 31 | 1), bits)


def _downward(bits, error):
    """The number at or below it."""
    return (error < 0.0).choose(bits - (bits >> 31 | 1), bits)


def _to_odd(bits, error):
    """Of the two around it the odd one."""
    moved = bits + _outward(bits, error).choose(bits.all_of(1), -1)
    return (error.nonzero() & (bits & 1).is_zero()).choose(moved, bits)


TO_SINGLE = {
    "nearest_even": _as_rounded,
    "toward_zero": _toward_zero,
    "toward_positive": _upward,
    "toward_negative": _downward,
    "to_odd": _to_odd,
}
"""Rounding -> function of the bits of the nearest number and a number with the sign of what is lost."""


def rounded(operation, rounding):
    """float32, from the nearest number. A result that is no exact zero, nor above the smallest normal number and finite, is left."""
    made, moved = SINGLES[operation], TO_SINGLE[rounding]
    zeros = rounding == "toward_negative" and operation in ("add", "fma")

    def element(known, a, b, c, random):
        x, y, z = (code.floats() for code in (a, b, c))
        s, error = made(x, y, z)
        bits, lost = s.bits(), error.apart_from(0.0)
        code = moved(bits, error)
        if zeros:  # an exact zero of addends that are not both +0
            first, second = (x * y, z) if operation == "fma" else (x, y)
            signs = (first.bits() | second.bits()) & SIGN
            code = (bits & MAGNITUDE).is_zero().choose(signs, code)
        return code, one_where(lost, bits), ((code & MAGNITUDE) >= INFINITE) | not_ordinary(bits, lost)

    return element


DRAWN = ("add", "mul", "fma")
"""Operations that float64 has of float32."""

DROPPED = 29  # bits of float64 that float32 has not
DROPPED_MASK, MAGNITUDE64 = (1 << DROPPED) - 1, (1 << 63) - 1
RANDOM_SHIFT = DROPPED - 16  # where 16 random bits meet them
HANGING = DROPPED_MASK + 1 - (1 << RANDOM_SHIFT)  # what is above it could still carry, were there more random bits
REBIAS, LEAST, ABOVE = (1023 - 127) << 23, (1023 - 126) << 52, (1023 + 128) << 52


def drawn(operation, way):
    """float32 with the random bits of half-words, which meet the lower bits of float64."""
    near, either = NEAR[operation], way == "up_or_down"

    def element(known, a, b, c, random):
        bits, lost, _ = exact(*near(*(code.floats().double() for code in (a, b, c))))
        magnitude, random = bits & MAGNITUDE64, random.long() << RANDOM_SHIFT
        sticky = magnitude.all_of(0) if lost is None else one_where(lost, bits)
        if either:
            random = random.is_zero().choose(random, DROPPED_MASK)
            magnitude = magnitude | sticky
        carried = magnitude + random
        left = ((magnitude < LEAST) | (carried >= ABOVE)) & magnitude.nonzero()
        if not either:
            left = left | (((carried & DROPPED_MASK) + sticky) > HANGING)
        kept = magnitude.is_zero().choose(magnitude, (carried >> DROPPED) - REBIAS)
        inexact = (magnitude & DROPPED_MASK | sticky).nonzero()
        return kept.cut(WORD) | (bits < 0).choose(a.all_of(SIGN), 0), one_where(inexact, a), left

    return element
