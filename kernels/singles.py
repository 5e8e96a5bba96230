"""Sums, differences, products and quotients of float32 in float32, rounded by the CPU to nearest, and from there in any mode but ties away.

As in `blocks`, a loop stops at the first block that is not ordinary: in which an operand is subnormal, infinite or NaN, or a result other
than an exact zero is not above the smallest normal number and finite. What the CPU's rounding lost has a sign: whether anything was, and on
which side of the result the exact one lies, is all that flags and other modes ask. No result hangs on what a host does with subnormals.
"""

from functools import cache

import numpy as np

from . import jit
from .blocks import BLOCK, FLAG_BITS
from .drawn_singles import LEAST_NORMAL, SIGN32, out_of_range
from .fast import INEXACT, INFINITE_BITS, MAGNITUDE, NONE, ZERO
from .jit import bits_float, cut, float_bits, kernel


@kernel
def sum_of(x, y):
    """(x + y, a number with the sign of what is lost); of one that is next to nothing but not zero, if a host flushes it, something is."""
    s = x + y
    shadow = s - x
    error = (x - (s - shadow)) + (y - shadow)
    return s, x if (s == ZERO) & (x != -y) else error


@kernel
def difference_of(x, y):
    """The same of x - y."""
    return sum_of(x, -y)


@kernel
def product_of(x, y):
    """The same of x * y."""
    exact = np.float64(x) * np.float64(y)
    product = np.float32(exact)
    return product, exact - np.float64(product)


@kernel
def quotient_of(x, y):
    """The same of x / y: q lies on the side of the exact quotient that q * y lies of x, and y may turn that round. Both products are exact."""
    quotient = x / y
    rest = np.float64(x) - np.float64(quotient) * np.float64(y)
    return quotient, -rest if float_bits(y) < NONE else rest


SINGLES = {"add": sum_of, "sub": difference_of, "mul": product_of, "div": quotient_of}


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


@cache
def elementwise(operation, rounding, each):
    """loop(a, b, codes, flags) -> elements done and flags (0 where `each`), as `blocks.elementwise`."""
    made, moved, down = (
        SINGLES[operation],
        TO_SINGLE[rounding],
        rounding == "toward_negative" and operation in ("add", "sub"),
    )
    flip = SIGN32 if operation == "sub" else NONE

    def singles_loop(a, b, codes, flags):
        seen = NONE
        for first in range(0, codes.size, BLOCK):
            xs, ys = a[first : first + BLOCK], b[first : first + BLOCK]
            results = codes[first : first + BLOCK]
            raises = flags[first : first + BLOCK] if each else flags
            if out_of_range(xs) or out_of_range(ys):
                return (first << FLAG_BITS) | seen
            inexact_here, stops = NONE, NONE
            for i in range(results.size):
                s, error = made(bits_float(xs[i], ZERO), bits_float(ys[i], ZERO))
                bits = float_bits(s)
                magnitude, lost = cut(bits & MAGNITUDE, NONE), error != 0.0
                rounded = moved(bits, error)
                if down:  # an exact zero of operands that are not both +0
                    signs = cut(cut(xs[i] | cut(ys[i] ^ flip, NONE), NONE) & SIGN32, NONE)
                    rounded = signs if magnitude == NONE else rounded
                beyond = cut(rounded & MAGNITUDE, NONE) >= INFINITE_BITS
                unusual = (magnitude <= LEAST_NORMAL) & ((magnitude != NONE) | lost)
                stops = cut(stops | (INEXACT if unusual | beyond | (magnitude >= INFINITE_BITS) else NONE), NONE)
                results[i] = rounded
                raised = INEXACT if lost else NONE
                if each:
                    raises[i] = raised
                else:
                    inexact_here = cut(inexact_here | raised, NONE)
            if stops != NONE:
                return (first << FLAG_BITS) | seen
            seen = cut(seen | inexact_here, NONE)
        return (codes.size << FLAG_BITS) | seen

    return jit.compiled(singles_loop)
