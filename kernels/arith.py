"""Operations on carrier values: (result, flags of the operation itself). The result holds at least p + 2 bits, its last one sticky.

Each computes in the carrier, finds the error of that one operation exactly, and folds it in by rounding to odd: where
the result is not exact and its last bit is even, it moves one unit in the last place towards the exact value. An odd
number between two candidates is on the same side of every tie and every candidate as the exact value, so the rounding
that follows is the only one that counts.

Operands are values of a format: at most 24 significant bits, magnitudes in 2^-400 ... 2^400. So a product is exact,
and no error term underflows. (The narrow carrier has operands of at most 11 bits and magnitudes in 2^-30 ... 2^30.)
"""

import numpy as np

from .jit import bits_float, cut, float_bits, kernel
from .rounding import drawn, selected


@kernel
def to_odd(s, error, target):
    """s moved to its odd neighbour on the side of the error. An infinite or NaN s has a NaN error and stays."""
    bits = float_bits(s)
    towards = cut(bits ^ float_bits(error), target.none) >= target.none
    moved = cut(bits + target.unit, target.none) if towards else cut(bits - target.unit, target.none)
    even = cut(bits & target.unit, target.none) == target.none
    return bits_float(moved, target.one) if (abs(error) > target.zero) & even else s


@kernel
def sum_and_error(x, y):
    """(x + y rounded, what that lost), on either carrier (Knuth's TwoSum: six operations, no assumption on magnitudes)."""
    s = x + y
    shadow = s - x
    return s, (x - (s - shadow)) + (y - shadow)


@kernel
def two_sum(x, y, target):
    """x + y and its sticky bit."""
    s, error = sum_and_error(x, y)
    return to_odd(s, error, target)


@kernel
def downward_zero(s, x, y, target):
    """An exact zero sum of operands not both +0 is -0 when rounding toward negative (IEEE 754-2019 6.3)."""
    return (
        -target.zero
        if (s == target.zero)
        & (target.downward != target.none)
        & (cut(float_bits(x) | float_bits(y), target.none) < target.none)
        else s
    )


@kernel
def identity(x, y, z, target):
    """x itself: a conversion."""
    return x, target.none


@kernel
def bounded(x, y, z, target):
    """x, moved to where the rounding's scaling cannot leave the carrier's range. What lies beyond overflows, or is next to nothing, all the same."""
    magnitude = abs(x)
    magnitude = target.most if (magnitude > target.most) & (magnitude < target.infinite) else magnitude
    magnitude = target.least if (magnitude < target.least) & (magnitude > target.zero) else magnitude
    return -magnitude if float_bits(x) < 0 else magnitude, target.none


@kernel
def add(x, y, z, target):
    """x + y."""
    return downward_zero(two_sum(x, y, target), x, y, target), target.none


@kernel
def sub(x, y, z, target):
    """x - y."""
    return add(x, -y, z, target)


@kernel
def mul(x, y, z, target):
    """x * y: exact."""
    return x * y, target.none


@kernel
def quotient(x, y, target):
    """(x / y rounded, what x is more than that times y, flags). The quotient is cut in two, so that both products, and what is left of x after each,
    are exact.
    """
    q = x / y
    high = bits_float(float_bits(q) & target.split_mask, target.one)
    by_zero = (y == target.zero) & (x != target.zero) & (abs(x) < target.infinite)
    return q, (x - high * y) - (q - high) * y, target.divbyzero if by_zero else target.none


@kernel
def root(x, target):
    """(The square root of x rounded, what x is more than its square). Its high part is rounded, not cut: the low part then squares exactly."""
    r = np.sqrt(x)
    high = bits_float((float_bits(r) + target.split_half) & target.split_mask, target.one)
    low = r - high
    return r, ((x - high * high) - (high + high) * low) - low * low


@kernel
def div(x, y, z, target):
    """x / y. The target's `by_zero` makes a NaN of every quotient by zero where there is to be one."""
    q, rest, flags = quotient(x, y, target)
    result = to_odd(q, rest if float_bits(y) >= 0 else -rest, target)
    return result * target.by_zero if y == target.zero else result, flags


@kernel
def sqrt(x, y, z, target):
    """The square root."""
    r, rest = root(x, target)
    return to_odd(r, rest, target), target.none


@kernel
def fma(x, y, z, target):
    """x * y + z, rounded once."""
    product = x * y
    s = downward_zero(two_sum(product, z, target), product, z, target)
    invalid = (product != product) & (x == x) & (y == y)
    return s, target.product_invalid if invalid else target.none


@kernel
def remainder(x, y, z, target):
    """IEEE remainder x - n*y, n the integer nearest x/y, ties to even: always exact. A zero result has the sign of x."""
    divisor = abs(y)
    rest = np.fmod(abs(x), divisor + divisor)
    above = rest + rest > divisor
    rest = rest - divisor if above else rest
    rest = rest - divisor if above & (rest + rest >= divisor) else rest
    rest = abs(x) if abs(y) == target.infinite else rest
    rest = x / y - x / y if (abs(x) == target.infinite) | (y == target.zero) | (x != x) | (y != y) else rest
    magnitude = abs(rest)
    opposite = (float_bits(rest) ^ float_bits(x)) < 0
    return -magnitude if opposite else magnitude, target.none


@kernel
def hypot(x, y, z, target):
    """sqrt(x*x + y*y). Squares are exact, their sum is two numbers; the root's error is that of the greater plus the lesser."""
    s, lost = sum_and_error(x * x, y * y)
    r, rest = root(s, target)
    infinite = (abs(x) == target.infinite) | (abs(y) == target.infinite)
    return target.infinite if infinite else to_odd(r, rest + lost, target), target.none


@kernel
def fmod(x, y, z, target):
    """x - n*y, n the quotient cut to an integer: always exact. A zero result has the sign of x."""
    rest = abs(x) if abs(y) == target.infinite else np.fmod(abs(x), abs(y))
    rest = x / y - x / y if (abs(x) == target.infinite) | (y == target.zero) | (x != x) | (y != y) else rest
    return -rest if float_bits(x) < 0 else rest, target.none


@kernel
def modulo(x, y, z, target):
    """x - floor(x/y)*y: `fmod`, plus y where the signs differ. A zero result has the sign of y."""
    rest, _ = fmod(x, y, z, target)
    opposite = (float_bits(rest) ^ float_bits(y)) < 0
    moved = two_sum(rest, y, target) if abs(y) < target.infinite else y
    zero = -target.zero if float_bits(y) < 0 else target.zero
    return zero if rest == target.zero else moved if opposite & (rest == rest) else rest, target.none


@kernel
def floor_divide(x, y, z, target):
    """floor(x/y).

    Where fl(x/y) is no integer, no integer lies between it and x/y. Where it is one, x/y is away by the remainder over y,
    and the floor by the floor of that.
    """
    q, rest, flags = quotient(x, y, target)
    away = np.floor(rest / y)
    whole = np.floor(q)
    moved = two_sum(q, away, target) if away != target.zero else q
    endless = abs(y) == target.infinite
    result = q * target.by_zero if y == target.zero else q if endless else moved if whole == q else whole
    below = ((float_bits(x) ^ float_bits(y)) < 0) & (abs(x) > target.zero)
    result = -target.one if endless & below else result
    return target.infinite - target.infinite if (abs(x) == target.infinite) & (y != target.zero) else result, flags


@kernel
def given(x, y, value, target):
    """A value found elsewhere, of x and y: infinite where neither is, it is a pole."""
    pole = (abs(value) == target.infinite) & (abs(x) < target.infinite) & (abs(y) < target.infinite)
    return value, target.divbyzero if pole else target.none


@kernel
def shortened(near, more, dropped, target):
    """near + more with the fraction bits in the mask `dropped` folded into the last one kept, within the rounding's range."""
    s = near if (more == target.zero) | (abs(near) == target.infinite) | (near != near) else two_sum(near, more, target)
    s, _ = bounded(s, s, s, target)
    bits = float_bits(s)
    rest = bits & dropped
    return bits_float((bits - rest) | (dropped + target.unit if rest != target.none else target.none), target.one)


@kernel
def as_integral(x, n, signals, target):
    """(n with the sign of x, INEXACT if `signals` is not 0 and n is not |x|). Beyond `magic` every number is an integer."""
    magnitude = abs(x)
    n = magnitude if magnitude >= target.magic else n
    changed = (n != magnitude) & (x == x) & (signals != target.zero)
    return -n if float_bits(x) < 0 else n, target.inexact if changed else target.none


@kernel
def integral(x, y, z, target):
    """x rounded to an integer by a deterministic mode; `y` is 1 to raise INEXACT where that changes x."""
    return as_integral(x, selected(abs(x), target.code_base, float_bits(x) < 0, target), y, target)


@kernel
def integral_drawn(x, y, random, target):
    """x rounded to an integer stochastically."""
    return as_integral(x, drawn(abs(x), random, target), y, target)
