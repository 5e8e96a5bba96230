"""What a sticky bit hides from stochastic rounding.

Stochastic rounding goes up in magnitude where the exact value reaches a threshold, n + t quanta, t a multiple of 2^-52.
A carrier value is the exact one, or odd; then it stands for every value between its even neighbours, and the threshold
may lie there too. In these rare cases the exact value is compared with the threshold. Their difference is a sum of a
few carrier numbers, whose sign is found without error (Shewchuk, "Adaptive precision floating-point arithmetic", 1997:
grow-expansion). The random number is then replaced by one that takes the carrier value where the exact one goes.

Operands are those of `arith`: at most 24 significant bits, magnitudes in 2^-400 ... 2^400. So a threshold times an
operand, or squared, is exact in a few parts, and none of them leaves the carrier's range.
"""

from functools import cache

import numpy as np

from . import jit
from .arith import fmod, sum_and_error
from .jit import bits_float, float_bits, kernel, scratch
from .rounding import scaled

EXPONENT = 0x7FF0000000000000


@kernel
def sign_of_sum(terms):
    """A number with the sign of the exact sum; `terms` is used up."""
    for last in range(1, terms.size):
        x = terms[last]
        for i in range(last):
            x, terms[i] = sum_and_error(x, terms[i])
        terms[last] = x
    for i in range(terms.size - 1, -1, -1):
        if terms[i] != 0.0:
            return terms[i]
    return 0.0


@kernel
def hides(y, random, target):
    """Whether the threshold lies between the even neighbours of y, which is odd."""
    short = (1.0 - random) - (y - np.floor(y))
    odd = (float_bits(y) & target.sticky_mask) == target.sticky
    return odd & (abs(short) < bits_float(float_bits(y) & np.int64(EXPONENT), 1.0) * target.sticky_unit)


@kernel
def in_sliver(value, target):
    """Whether tininess hangs on the random number: just below the smallest normal number."""
    return (abs(value) >= target.tiny_positive) & (abs(value) < target.smallest_normal)


@kernel
def hidden(value, random, target):
    """Whether a sticky bit hides which way a value goes, or whether it is tiny."""
    y, _ = scaled(value, target)
    there = in_sliver(value, target) & hides(abs(value) * target.sliver_scale, random, target)
    return hides(y, random, target) | there


@kernel
def threshold(value, y, random):
    """(n, t) quanta: the magnitude from which on a value near y quanta goes up, in two numbers, both exact."""
    quantum = abs(value) / y
    return np.floor(y) * quantum, (1.0 - random) * quantum


# -- exact values against thresholds ---------------------------------------------------------------------------------


@kernel
def halves(x):
    """x as a sum of two numbers of at most 26 bits."""
    high = bits_float((float_bits(x) + np.int64(1 << 26)) & np.int64(-1 << 27), 1.0)
    return high, x - high


@kernel
def outward(x, value):
    """x with the sign that counts a value's magnitude up."""
    return x if value > 0.0 else -x


@kernel
def sign_of_four(a, b, c, d):
    """`sign_of_sum` of four numbers."""
    terms = scratch(4, np.float64)
    terms[0], terms[1], terms[2], terms[3] = a, b, c, d
    return sign_of_sum(terms)


@kernel
def quotient_above(x, y, high, low, more):
    """A number with the sign of x + more - (high + low) * y."""
    first, second = halves(low)
    terms = scratch(5, np.float64)
    terms[0], terms[1] = x, more
    terms[2], terms[3], terms[4] = -high * y, -first * y, -second * y
    return sign_of_sum(terms)


@kernel
def root_reaches(x, y, high, low):
    """sqrt(x + y) >= high + low."""
    first, second = halves(low)
    terms = scratch(8, np.float64)
    terms[0], terms[1] = x, y
    terms[2], terms[3], terms[4] = -high * high, -first * first, -second * second
    terms[5], terms[6], terms[7] = -2.0 * high * first, -2.0 * high * second, -2.0 * first * second
    return sign_of_sum(terms) >= 0.0


@kernel
def parts_reach(parts, y, z, value, more, high, low, target):
    """A sum of several numbers."""
    terms = scratch(128, np.float64)[
        : parts.size + 2
    ]  # bins of 40 bits: fewer than 64 hold any product of two numbers, each with a scale
    for i in range(parts.size):
        terms[i] = outward(parts[i], value)
    terms[parts.size] = -high
    terms[parts.size + 1] = -low
    return sign_of_sum(terms) >= 0.0


@kernel
def value_reaches(x, y, z, value, more, high, low, target):
    """The value and `more`."""
    return sign_of_four(abs(value), outward(more, value), -high, -low) >= 0.0


@kernel
def add_reaches(x, y, z, value, more, high, low, target):
    """x + y."""
    return sign_of_four(outward(x, value), outward(y, value), -high, -low) >= 0.0


@kernel
def sub_reaches(x, y, z, value, more, high, low, target):
    """x - y."""
    return add_reaches(x, -y, z, value, more, high, low, target)


@kernel
def fma_reaches(x, y, z, value, more, high, low, target):
    """x * y + z."""
    return add_reaches(x * y, z, z, value, more, high, low, target)


@kernel
def div_reaches(x, y, z, value, more, high, low, target):
    """x / y."""
    return quotient_above(abs(x), abs(y), high, low, 0.0) >= 0.0


@kernel
def sqrt_reaches(x, y, z, value, more, high, low, target):
    """The square root of x."""
    return root_reaches(x, 0.0, high, low)


@kernel
def hypot_reaches(x, y, z, value, more, high, low, target):
    """sqrt(x*x + y*y)."""
    return root_reaches(x * x, y * y, high, low)


@kernel
def modulo_reaches(x, y, z, value, more, high, low, target):
    """x - floor(x/y)*y: what `fmod` leaves, and y where their signs differ."""
    rest, _ = fmod(x, y, z, target)
    opposite = (float_bits(rest) ^ float_bits(y)) < 0
    return add_reaches(rest, y if opposite else 0.0, z, value, more, high, low, target)


@kernel
def floor_divide_reaches(x, y, z, value, more, high, low, target):
    """floor(x/y): an integer reaches a number where it reaches the integer at or above; high is one, as quanta are here.

    The floor of a negative quotient is a magnitude rounded up. It reaches an integer where the quotient is above the one before.
    """
    low = np.ceil(low)
    if value > 0.0:
        return quotient_above(abs(x), abs(y), high, low, 0.0) >= 0.0
    return quotient_above(abs(x), abs(y), high, low, abs(y)) > 0.0


REACHES = {
    "parts": parts_reach,
    "add": add_reaches,
    "sub": sub_reaches,
    "div": div_reaches,
    "sqrt": sqrt_reaches,
    "fma": fma_reaches,
    "hypot": hypot_reaches,
    "modulo": modulo_reaches,
    "floor_divide": floor_divide_reaches,
}
"""reaches(x, y, z, value, more, high, low, target): whether the magnitude of the exact result of x, y, z is at least high + low.

`value` is the carrier's. Operations not listed have it exact, but for what `more` says. Of "parts", x is an array.
"""


@cache
def settling(operation):
    """settled(x, y, z, value, more, random, target): the random number that rounds `value` as `random` rounds the exact result.

    It is 0, which takes no value up, or so much that the value's fraction just reaches the threshold. In half quanta, for tininess,
    the fraction is the lesser one: what reaches the threshold there does so in quanta too.
    """
    reaches = REACHES.get(operation, value_reaches)

    @kernel
    def settled(x, y, z, value, more, random, target):
        if not hidden(value, random, target):
            return random
        quanta, _ = scaled(value, target)
        result = 0.0
        for _ in range(2 if in_sliver(value, target) else 1):
            high, low = threshold(value, quanta, random)
            if reaches(x, y, z, value, more, high, low, target):
                result = 1.0 - (quanta - np.floor(quanta))
            quanta = abs(value) * target.sliver_scale
        return result

    return jit.referable(settled, operation)


settled_parts = settling("parts")
"""Of an array of numbers whose sum is the exact value."""
