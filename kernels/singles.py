"""Elements of `blocks`: float32 in float32.

The CPU's result is the nearest one. What that lost has a sign: whether anything was, and on which side of the result the exact one lies, is
all that flags and other modes ask, but for ties that do not go to even. Rounded stochastically, the lower bits of float64 meet random ones.
"""

import numpy as np

from .arith import sum_and_error
from .elements import EXACT
from .fast import INEXACT, INFINITE_BITS, MAGNITUDE, NONE, ONE64, SMALLEST_BITS, ZERO, odd_sum
from .jit import bits_float, cut, float_bits, kernel
from .ordinary import ABOVE_SINGLES, LEAST_SINGLE, MAGNITUDE64


@kernel
def single_number(code, numbers):
    """A float32."""
    return bits_float(cut(code, NONE), ZERO)


@kernel
def double_number(code, numbers):
    """A float32 that is not subnormal, in float64."""
    return np.float64(bits_float(cut(code, NONE), ZERO))


SIGN32 = np.int32(-0x80000000)


@kernel
def not_ordinary(bits, lost):
    """Whether a result is beyond the normal numbers, or may have been rounded there."""
    magnitude = cut(bits & MAGNITUDE, NONE)
    return ((magnitude <= SMALLEST_BITS) & ((magnitude != NONE) | lost)) | (magnitude >= INFINITE_BITS)


@kernel
def sum_of(x, y, z):
    """(x + y, a number with the sign of what is lost); of one that is next to nothing but not zero, if a host flushes it, something is."""
    s, error = sum_and_error(x, y)
    return s, x if (s == ZERO) & (x != -y) else error


@kernel
def difference_of(x, y, z):
    """The same of x - y."""
    return sum_of(x, -y, z)


@kernel
def product_of(x, y, z):
    """The same of x * y."""
    exact = np.float64(x) * np.float64(y)
    product = np.float32(exact)
    return product, exact - np.float64(product)


@kernel
def quotient_of(x, y, z):
    """The same of x / y: q lies on the side of the exact quotient that q * y lies of x, and y may turn that round. Both products are exact."""
    quotient = x / y
    rest = np.float64(x) - np.float64(quotient) * np.float64(y)
    return quotient, -rest if float_bits(y) < NONE else rest


@kernel
def root_of(x, y, z):
    """The same of a square root, whose square is exact."""
    root = np.sqrt(x)
    return root, np.float64(x) - np.float64(root) * np.float64(root)


@kernel
def fused_of(x, y, z):
    """The same of x * y + z, which in float64, to odd, has all bits that decide."""
    odd = odd_sum(np.float64(x) * np.float64(y), np.float64(z))
    near = np.float32(odd)
    return near, odd - np.float64(near)


SINGLES = {
    "add": sum_of,
    "sub": difference_of,
    "mul": product_of,
    "div": quotient_of,
    "sqrt": root_of,
    "fma": fused_of,
}


@kernel
def outward(bits, error):
    """Whether what was lost counts the magnitude up."""
    return (error > 0.0) == (bits >= NONE)


@kernel
def as_rounded(bits, error):
    """The nearest number."""
    return bits


@kernel
def toward_zero(bits, error):
    """The number at or below it in magnitude."""
    return bits if (error == 0.0) | outward(bits, error) else cut(bits - INEXACT, NONE)


@kernel
def upward(bits, error):
    """The number at or above it."""
    step = INEXACT if bits >= NONE else cut(-INEXACT, NONE)
    return cut(bits + step, NONE) if error > 0.0 else bits


@kernel
def downward(bits, error):
    """The number at or below it."""
    step = INEXACT if bits < NONE else cut(-INEXACT, NONE)
    return cut(bits + step, NONE) if error < 0.0 else bits


@kernel
def to_odd(bits, error):
    """Of the two around it the odd one."""
    step = INEXACT if outward(bits, error) else cut(-INEXACT, NONE)
    return cut(bits + step, NONE) if (error != 0.0) & (cut(bits & INEXACT, NONE) == NONE) else bits


TO_SINGLE = {
    "nearest_even": as_rounded,
    "toward_zero": toward_zero,
    "toward_positive": upward,
    "toward_negative": downward,
    "to_odd": to_odd,
}
"""Rounding -> function of the bits of the nearest number and a number with the sign of what is lost."""


def rounded(operation, rounding):
    """float32, from the nearest number. A result that is no exact zero, nor above the smallest normal number and finite, is left."""
    made, moved = SINGLES[operation], TO_SINGLE[rounding]
    down, subtracts, fuses = rounding == "toward_negative", operation == "sub", operation == "fma"
    zeros = down and operation in ("add", "sub", "fma")

    @kernel
    def element(code_a, code_b, code_c, half_word, numbers):
        x, y, z = single_number(code_a, numbers), single_number(code_b, numbers), single_number(code_c, numbers)
        s, error = made(x, y, z)
        bits = float_bits(s)
        lost = error != 0.0
        rounded = moved(bits, error)
        if zeros:  # an exact zero of addends that are not both +0
            first, second = (x * y, z) if fuses else (x, -y if subtracts else y)
            signs = cut(cut(float_bits(first) | float_bits(second), NONE) & SIGN32, NONE)
            rounded = signs if cut(bits & MAGNITUDE, NONE) == NONE else rounded
        beyond = cut(rounded & MAGNITUDE, NONE) >= INFINITE_BITS
        return rounded, INEXACT if lost else NONE, INEXACT if beyond | not_ordinary(bits, lost) else NONE

    return element


DRAWN = ("add", "sub", "mul", "fma")
"""Operations that float64 has of float32."""

DROPPED = 29  # bits of float64 that float32 has not
DROPPED_MASK = np.int64((1 << DROPPED) - 1)
RANDOM_SHIFT = DROPPED - 16  # where 16 random bits meet them
HANGING = np.int64(
    (1 << DROPPED) - (1 << RANDOM_SHIFT)
)  # what is above it could still carry, were there more random bits
REBIAS = np.int64((1023 - 127) << 23)
NOTHING64 = np.int64(0)


def drawn(operation, way):
    """float32 with the random bits of a half-word, which meet the lower bits of float64."""
    exact, either = EXACT[operation], way == "up_or_down"

    @kernel
    def element(code_a, code_b, code_c, half_word, numbers):
        bits, lost, _ = exact(
            double_number(code_a, numbers), double_number(code_b, numbers), double_number(code_c, numbers)
        )
        magnitude = bits & MAGNITUDE64
        sticky = ONE64 if lost else NOTHING64
        random = np.int64(half_word) << np.int64(RANDOM_SHIFT)
        if either:
            random = DROPPED_MASK if random != NOTHING64 else NOTHING64
            magnitude |= sticky
        carried = magnitude + random
        is_open = (carried & DROPPED_MASK) + sticky > HANGING and not either
        is_zero = magnitude == NOTHING64
        unusual = (magnitude < LEAST_SINGLE) | (carried >= ABOVE_SINGLES)
        kept = NOTHING64 if is_zero else (carried >> np.int64(DROPPED)) - REBIAS
        code = cut(cut(kept, NONE) | (SIGN32 if bits < NOTHING64 else NONE), NONE)
        inexact = (magnitude & DROPPED_MASK) | sticky != NOTHING64
        return code, INEXACT if inexact else NONE, INEXACT if (unusual & ~is_zero) | is_open else NONE

    return element
