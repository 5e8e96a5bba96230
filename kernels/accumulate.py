"""Scalar functions of sums of products: random numbers, exact sums in bins, terms cut to a grid, which NaN survives.

An exact sum of many terms goes to bins. Bin b holds a multiple of 2^q[b], q[b+1] = q[b] + WIDTH:

    term    sssssssssssssssssssssss              each bin takes the part of the term that is a multiple of its grid,
    bins   |  bin 2   |  bin 1   |  bin 0  |     by adding and subtracting 1.5 * 2^(52+q): exact, no branches

so that every addition to a bin is exact, and the bins together are the sum.
"""

import numpy as np

from .arith import sum_and_error, to_odd
from .carrier import is_signalling, quieted
from .jit import bits_float, cut, float_bits, kernel, row, stand_alone
from .prng import dot_high, dot_low, unit_fraction
from .spec import PROPAGATE_SIGNALLING_FIRST

WIDTH = 40
TERMS = 1 << 12  # a bin of 53 bits takes 2^(54-WIDTH) terms of WIDTH bits before carries must be settled
TRUNCATE, FLOOR, ODD = 0, 1, 2
"""Directions in which bits are cut off: toward zero, toward negative, to odd."""
PRODUCT, RUNNING, STORE, RESULT, LEVEL = 0, 1, 2, 3, 4
"""Numbers of the stages. Level l of a reduction adds at LEVEL + 2l and stores at LEVEL + 2l + 1."""


@kernel
def random_of(noise, site, output, step, width, key, stream):
    """All random bits of a rounding, whose first 16 are in `noise`."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    random = unit_fraction(noise, 16)
    if width > 16:
        random += unit_fraction(dot_low(output, site, step, key, stream), 52)
    return np.floor(random * scale) / scale


@row
def draw_row(random, index, stride, site, step, key, stream, width):
    """Random numbers of one rounding at outputs index, index + stride, ..."""
    stand_alone()
    for j in range(random.size):
        output = np.uint64(index + j * stride)
        random[j] = random_of(dot_high(output, site, step, key, stream), site, output, step, width, key, stream)


@kernel
def raised_by(value, number, target):
    """Flags of an operation itself, whose operands are numbers, or not all of them."""
    invalid = target.invalid if (value != value) & number else target.none
    return cut(invalid | (target.none if number else target.any_nan_signals), target.none)


# -- exact sums ------------------------------------------------------------------------------------------------------


@kernel
def shared(total, x, magic):
    """(total and the part of x that is a multiple of its grid, the rest of x). What is not finite stays there whole."""
    part = (x + magic) - magic
    return total + part, x - part if abs(part) < np.inf else 0.0


@kernel
def met(total, error, low):
    """(the sum of bins from the top down to this one, its error), which is the first one that is met: later bins cannot outweigh it."""
    s, lost = sum_and_error(total, low)
    settled = error != 0.0
    return total if settled else s, error if settled else lost


@kernel
def collected_sum(total, error, target):
    """The sum of all bins, to be rounded."""
    s = to_odd(total, error, target)
    return exact_zero(target) if s == target.zero else s


@kernel
def exact_zero(target):
    """A sum of terms that cancel."""
    return -target.zero if target.downward != target.none else target.zero


# -- aligned sums ----------------------------------------------------------------------------------------------------


@kernel
def leading(x, tiny):
    """2^exponent of a finite number, at least `tiny`; 0 for zero, infinities and NaN."""
    power = bits_float(float_bits(x) & np.int64(0x7FF0000000000000), 1.0)
    power = power if power > tiny else tiny
    return power if (abs(x) < np.inf) & (x != 0.0) else 0.0


@kernel
def power_of(exponent):
    """2^exponent."""
    return bits_float(np.int64(1023 + exponent) << 52, 1.0)


@row
def kept(x, scale, fraction_bits, direction):
    """x, cut to so many fraction bits below `scale`, a power of two, or below 1 where that is 0."""
    exponent = float_bits(scale if scale > 0.0 else 1.0) >> 52
    y = x * bits_float((2046 - exponent + fraction_bits) << 52, 1.0)
    n = np.floor(y) if direction == FLOOR else np.trunc(y)
    even = np.floor(n * 0.5) * 2.0 == n
    n = n + (1.0 if y > 0.0 else -1.0) if (direction == ODD) & (n != y) & even else n
    return n * bits_float((exponent - fraction_bits) << 52, 1.0)


# -- NaN payloads ----------------------------------------------------------------------------------------------------


@kernel
def survivor(nan_1, signals_1, nan_2, signals_2, nan_3, signals_3, target):
    """Which of three operands, the NaNs among them in this order, passes its payload on."""
    if target.propagate == PROPAGATE_SIGNALLING_FIRST:
        if nan_1 & signals_1:
            return 1
        if nan_2 & signals_2:
            return 2
        if nan_3 & signals_3:
            return 3
    return 1 if nan_1 else 2 if nan_2 else 3


@row
def fused_payload(a, b, z, code_a, code_b, code_z, source_a, source_b, source_z, target):
    """The code of the NaN that a * b + z is."""
    nan_a, nan_b, nan_z = a != a, b != b, z != z
    signals_z = nan_z & is_signalling(code_z, source_z)
    addend_first = (target.addend_first != target.none) & nan_z
    product = a * b
    invalid = (product != product) & (not nan_a) & (not nan_b) & (target.product_invalid != target.none)
    if not (nan_a | nan_b | nan_z) or (invalid and not (addend_first and signals_z)):
        return target.nan
    signals_a, signals_b = is_signalling(code_a, source_a), is_signalling(code_b, source_b)
    if addend_first:
        which = survivor(nan_z, signals_z, nan_a, signals_a, nan_b, signals_b, target)
        which = 3 if which == 1 else which - 1
    else:
        which = survivor(nan_a, signals_a, nan_b, signals_b, nan_z, signals_z, target)
    if which == 1:
        return quieted(code_a, source_a, target)
    return quieted(code_b, source_b, target) if which == 2 else quieted(code_z, source_z, target)


@row
def paired_payload(x, y, code_x, code_y, source_x, source_y, target):
    """The code of the NaN that an operation makes of two operands."""
    nan_x, nan_y = x != x, y != y
    if not (nan_x | nan_y):
        return target.nan
    signals_x, signals_y = is_signalling(code_x, source_x), is_signalling(code_y, source_y)
    which = survivor(nan_x, signals_x, nan_y, signals_y, False, False, target)
    return quieted(code_x, source_x, target) if which == 1 else quieted(code_y, source_y, target)
