"""Exact sums of products in wide formats: Kulisch's long accumulator, rounded once.

Digits of 32 bits stand in words of 64, so that two thousand million products may be added before anything is carried. The last of them
is worth 2^-LOWEST: less than any bit of a product of two float64 numbers.
"""

import numpy as np

from . import jit
from .carrier import is_signalling, source_of
from .jit import kernel, leading_zeros
from .rounding import target_of
from .wide import FINITE, LOW_HALF, NOT_A_NUMBER, ONE, ZERO, finite, product, raised_bits, rounded, summed, unpacked

DIGIT, DIGIT_MASK = 32, np.int64(0xFFFFFFFF)
LOWEST = 2304
DIGITS = (LOWEST + 2048) // DIGIT + 4
UNSIGNED_DIGIT = np.uint64(DIGIT)


@kernel
def meet(digits, x):
    """Add a finite number."""
    offset = x[2] - 127 + LOWEST
    place, shift = offset // DIGIT, np.uint64(offset % DIGIT)
    sign, carried = np.int64(-1 if x[1] else 1), ZERO
    for n in range(4):
        word = x[4] if n < 2 else x[3]
        part = (word >> (UNSIGNED_DIGIT if n & 1 else ZERO)) & LOW_HALF
        part = (part << shift) | carried
        digits[place + n] += sign * np.int64(part & LOW_HALF)
        carried = part >> UNSIGNED_DIGIT
    digits[place + 4] += sign * np.int64(carried)


@kernel
def carry(digits):
    """Digits from 0 to 2^32 - 1, but the last, which has the sum's sign; the place of the first that is not 0, or -1."""
    left, top = np.int64(0), -1
    for n in range(digits.size):
        word = digits[n] + left
        digits[n] = word if n == digits.size - 1 else word & DIGIT_MASK
        left = word >> DIGIT
        top = n if digits[n] != 0 else top
    return top


@kernel
def taken(digits, downward):
    """The sum as a number of 128 bits, the last sticky."""
    top = carry(digits)
    negative = digits[digits.size - 1] < 0
    if negative:
        for n in range(digits.size):
            digits[n] = -digits[n]
        top = carry(digits)
    if top < 0:
        return finite(downward, 0, ZERO, ZERO)
    zeros = leading_zeros(np.uint64(digits[top])) - DIGIT
    high, low, sticky, room = ZERO, ZERO, np.int64(0), 128 + zeros
    for n in range(top, -1, -1):
        count = min(room, DIGIT)
        high, low = raised_bits(high, low, count)
        low |= np.uint64(digits[n] >> (DIGIT - count))
        sticky |= digits[n] & ((np.int64(1) << (DIGIT - count)) - 1)
        room -= count
    high, low = raised_bits(high, low, room)
    return finite(negative, (top + 1) * DIGIT - 1 - LOWEST - zeros, high, low | (ONE if sticky != 0 else ZERO))


@jit.once
def sums():
    """loop(a, b, c, paired, codes, flags, changed, integers, floats, random, width, first, last), outputs first ... last - 1 of a grid.

    a is (rows, k), or (columns, k) if `paired`; b (columns, k); c, codes, flags and `changed` (rows, columns), flat: whether products add
    anything. Operands are codes of float64 as int64; random bits as many as outputs, or none.
    """
    return jit.compiled(_sums)


def _sums(a, b, c, paired, codes, flags, changed, integers, floats, random, width, first, last):
    source, target = source_of(integers, floats), target_of(integers, floats)
    digits, columns = np.zeros(DIGITS, np.int64), b.shape[0]
    for at in range(first, last):
        column = at % columns
        row = column if paired else at // columns
        number, signals, invalid, total = True, False, False, finite(False, 0, ZERO, ZERO)
        digits[:] = 0
        for k in range(a.shape[1] + 1):
            if k == a.shape[1]:
                code = other = c[at]
                x = y = z = unpacked(code, source)
                changed[at] = total[0] != FINITE or carry(digits) >= 0
            else:
                code, other = a[row, k], b[column, k]
                y, z = unpacked(code, source), unpacked(other, source)
                x = product(y, z, target)
            known = y[0] != NOT_A_NUMBER and z[0] != NOT_A_NUMBER
            number, invalid = number and known, invalid or (known and x[0] == NOT_A_NUMBER)
            signals = signals or is_signalling(code, source) or is_signalling(other, source)
            if x[0] != FINITE:
                total = summed(total, x, target)
            elif x[3] != ZERO:
                meet(digits, x)
        if total[0] == FINITE:
            total = taken(digits, target.downward != 0)
        codes[at], raised = rounded(total, random[at] if width > 0 else ZERO, np.int64(width), target)
        if total[0] == NOT_A_NUMBER:
            raised |= target.invalid if number or signals else (target.product_invalid if invalid else target.none)
            raised |= target.none if number else target.any_nan_signals
        flags[at] = raised
