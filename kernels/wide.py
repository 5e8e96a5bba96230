"""Formats of up to 11 exponent bits and 53 bits of precision, by integers: no carrier holds what their operations lead to.

A number is unpacked into five parts:

    (kind, negative, exponent, high, low)      (high * 2^64 + low) / 2^127 * 2^exponent

`kind` is FINITE, INFINITE or NOT_A_NUMBER. The top bit of `high` is set but in zero, which is all zeros. Operands have 53 bits. The
last bit of a result is sticky: it is set where anything below it is lost. A result has at least 107 bits before it: a precision, the
52 random bits of a stochastic rounding, a half and one more. So `rounded` decides every mode by the integers alone.

`Source` and `Target` are those of `carrier` and `rounding`, made for float64. Of their floats, thresholds count, which say what a
mode takes up by sign and parity. Codes are signed.
"""

from functools import cache

import numpy as np

from . import jit
from .carrier import is_nan, is_signalling, propagated
from .jit import kernel, leading_zeros

FINITE, INFINITE, NOT_A_NUMBER = 0, 1, 2
ZERO, ONE, HALF_WORD, LOW_HALF, TOP = (np.uint64(x) for x in (0, 1, 32, 0xFFFFFFFF, 1 << 63))
SPARE = np.uint64(11)  # bits of a word that a significand of 53 leaves
FARTHEST = 4000  # binades from the smallest normal number: further than any code, and a code of 64 bits still


# -- integers of 128 bits ------------------------------------------------------------------------------------------------


@kernel
def multiplied(a, b):
    """a * b, by halves."""
    low_a, high_a, low_b, high_b = a & LOW_HALF, a >> HALF_WORD, b & LOW_HALF, b >> HALF_WORD
    least = low_a * low_b
    middle = high_a * low_b + (least >> HALF_WORD)
    other = low_a * high_b + (middle & LOW_HALF)
    return high_a * high_b + (middle >> HALF_WORD) + (other >> HALF_WORD), (other << HALF_WORD) | (least & LOW_HALF)


@kernel
def lowered(high, low, count):
    """Shifted right by a count from 0 on; what is lost is sticky."""
    if count >= 128:
        return ZERO, ONE if (high | low) != ZERO else ZERO
    lost = ZERO
    if count >= 64:
        low, high, lost = high, ZERO, low
        count -= 64
    if count > 0:
        right, left = np.uint64(count), np.uint64(64 - count)
        lost = lost | (low << left)
        low = (low >> right) | (high << left)
        high = high >> right
    return high, low | (ONE if lost != ZERO else ZERO)


@kernel
def raised_bits(high, low, count):
    """Shifted left by a count from 0 to 127."""
    if count >= 64:
        high, low = low, ZERO
        count -= 64
    if count > 0:
        left, right = np.uint64(count), np.uint64(64 - count)
        high = (high << left) | (low >> right)
        low = low << left
    return high, low


@kernel
def finite(negative, exponent, high, low):
    """A number whose bit of weight 2^exponent is the topmost of 128, set or not."""
    if (high | low) == ZERO:
        return FINITE, negative, np.int64(0), ZERO, ZERO
    count = leading_zeros(high) if high != ZERO else leading_zeros(low) + 64
    high, low = raised_bits(high, low, count)
    return FINITE, negative, np.int64(exponent) - count, high, low


@kernel
def special(kind, negative):
    """An infinity or NaN."""
    return kind, negative, np.int64(0), ZERO, ZERO


# -- codes ---------------------------------------------------------------------------------------------------------------


@kernel
def unpacked(code, source):
    """The five parts of a code."""
    magnitude = code & source.magnitude_mask
    negative = magnitude != code
    if is_nan(code, source):
        return special(NOT_A_NUMBER, negative)
    if magnitude == source.infinity:
        return special(INFINITE, negative)
    fraction_bits = 52 - source.shift
    field = magnitude >> fraction_bits
    significand = magnitude & ((np.int64(1) << fraction_bits) - 1)
    if source.hidden == 0 or field > 0:
        significand |= np.int64(1) << fraction_bits
    else:
        field = field + 1
        if source.flush_below > 0.0:
            significand = np.int64(0)
    exponent = field - (1023 - (source.rebias >> 52))  # of the significand's hidden bit
    return finite(negative, exponent + 63 - fraction_bits, np.uint64(significand), ZERO)


@kernel
def takes_up(odd, high, low, negative, random, width, target):
    """Whether the fraction (high * 2^64 + low) / 2^128 above an odd or even integer goes to the integer above."""
    if target.draw_least > 0.0:
        return ((high | low) != ZERO) & (random != ZERO)
    if target.stochastic != 0:
        kept = high >> np.uint64(64 - width)
        below, rest = high << np.uint64(width), low
        if target.draw_half > 0.0 or target.draw_grid > 0.0:
            tie = below == TOP and rest == ZERO and target.draw_grid > 0.0
            if below >= TOP and (not tie or kept & ONE != ZERO):
                kept = kept + ONE
        return kept + random >= ONE << np.uint64(width)
    if negative:
        threshold = target.up_negative_odd if odd else target.up_negative_even
    else:
        threshold = target.up_positive_odd if odd else target.up_positive_even
    if threshold > 1.0:
        return False
    if threshold < 0.5:
        return (high | low) != ZERO
    return high > TOP or (high == TOP and (low != ZERO or threshold == 0.5))


@kernel
def split(high, low, count):
    """A number of 128 bits of which `count`, from 64 on, are a fraction: the integer, and the fraction at the top of 128 bits."""
    if count >= 128:
        return ZERO, *lowered(high, low, count - 128)
    return high >> np.uint64(count - 64), *raised_bits(high, low, 128 - count)


@kernel
def rounded(x, random, width, target):
    """(code, flags) of a number: the one rounding, as `rounding.assemble` and `assemble_unusual` have it for carrier values."""
    kind, negative, exponent, high, low = x
    zero = (kind == FINITE) & (high == ZERO)
    if kind == NOT_A_NUMBER:
        return target.nan, target.nan_flags
    if (negative & (target.unsigned != 0) & ~zero) | (zero & (target.zeroless != 0)):
        return target.nan, target.invalid
    if kind == INFINITE:
        return target.infinity_negative if negative else target.infinity_positive, target.infinity_flags
    if zero:
        return target.zero_sign if negative else target.none, target.none
    bits = target.mantissa_bits
    least = target.lowest_exponent - 1023
    low_range = exponent < least
    cut = (127 - exponent + target.lowest_quantum - 1023) if low_range else 127 - bits
    whole, fraction, rest = split(high, low, cut)
    up = takes_up(whole & ONE != ZERO, fraction, rest, negative, random, width, target)
    count = whole + ONE if up else whole
    tiny = low_range
    if low_range and exponent == least - 1 and target.late != 0:
        nearby, part, other = split(high, low, 127 - bits)
        up = takes_up(nearby & ONE != ZERO, part, other, negative, random, width, target)
        tiny = nearby + (ONE if up else ZERO) < ONE << np.uint64(bits + 1)
    flushed = tiny & (target.ftz != 0)
    inexact = ((fraction | rest) != ZERO) | flushed
    if low_range:
        magnitude = count << np.uint64(bits) if target.lowest_quantum == target.lowest_exponent else count
    else:
        magnitude = (np.uint64(min(exponent - least, FARTHEST)) << np.uint64(bits)) + count
    magnitude = ZERO if flushed else magnitude
    flags = (target.tiny_inexact if tiny else target.inexact) if inexact else target.none
    if magnitude > np.uint64(target.largest):
        return target.overflow_negative if negative else target.overflow_positive, target.overflow_flags
    base = np.uint64(target.code_base)
    code = np.int64(magnitude - base if magnitude > base else ZERO)
    if negative:
        code |= target.sign if code != 0 else target.zero_sign
    return code, flags


# -- operations: a number, or (number, flags of the operation itself) --------------------------------------------------------


@kernel
def identity(x, y, target):
    """x itself: a conversion."""
    return x


@kernel
def summed(x, y, target):
    """x + y, of operands whose last bits are not sticky."""
    if x[0] != FINITE or y[0] != FINITE:
        if x[0] == NOT_A_NUMBER or y[0] == NOT_A_NUMBER or (x[0] == y[0] and x[1] != y[1]):
            return special(NOT_A_NUMBER, False)
        return x if x[0] == INFINITE else y
    if x[3] == ZERO or y[3] == ZERO:
        if x[3] != ZERO:
            return x
        if y[3] != ZERO:
            return y
        return finite((x[1] or y[1]) if target.downward != 0 else (x[1] and y[1]), 0, ZERO, ZERO)
    if y[2] > x[2] or (y[2] == x[2] and (y[3] > x[3] or (y[3] == x[3] and y[4] > x[4]))):
        x, y = y, x
    high, low = lowered(x[3], x[4], 1)  # room for a carry
    other, rest = lowered(y[3], y[4], x[2] - y[2] + 1)
    if x[1] == y[1]:
        total = low + rest
        upper = high + other + (ONE if total < low else ZERO)
    else:
        total = low - rest
        upper = high - other - (ONE if rest > low else ZERO)
        if (upper | total) == ZERO:
            return finite(target.downward != 0, 0, ZERO, ZERO)
    return finite(x[1], x[2] + 1, upper, total)


@kernel
def difference(x, y, target):
    """x - y."""
    return summed(x, (y[0], not y[1], y[2], y[3], y[4]), target)


@kernel
def product(x, y, target):
    """x * y: exact."""
    negative = x[1] != y[1]
    if x[0] != FINITE or y[0] != FINITE:
        none = (x[0] == FINITE and x[3] == ZERO) or (y[0] == FINITE and y[3] == ZERO)
        if none or x[0] == NOT_A_NUMBER or y[0] == NOT_A_NUMBER:
            return special(NOT_A_NUMBER, False)
        return special(INFINITE, negative)
    high, low = multiplied(x[3], y[3])
    return finite(negative, x[2] + y[2] + 1, high, low)


@kernel
def fma(x, y, z, extra, random, width, target):
    """x * y + z."""
    xy = product(x, y, target)
    invalid = (xy[0] == NOT_A_NUMBER) & (x[0] != NOT_A_NUMBER) & (y[0] != NOT_A_NUMBER)
    return summed(xy, z, target), target.product_invalid if invalid else target.none


@kernel
def divided(a, b, count):
    """(The last 128 bits of the integer a * 2^count / b, what is left), a < 2^54 and b < 2^53, or count is 0."""
    low = a // b
    high, rest = ZERO, a - low * b
    while count > 0:
        step = min(count, 11)
        rest = rest << np.uint64(step)
        found = rest // b
        rest = rest - found * b
        high, low = raised_bits(high, low, step)
        low = low | found
        count -= step
    return high, low, rest


@kernel
def unbounded_quotient(x, y, target):
    """(whether x / y is settled by operands that are infinite, zero or NaN, the quotient, flags)."""
    negative = x[1] != y[1]
    settled = special(NOT_A_NUMBER, False)
    if x[0] == NOT_A_NUMBER or y[0] == NOT_A_NUMBER or (x[0] == INFINITE and y[0] == INFINITE):
        return True, settled, target.none
    if x[0] == INFINITE:
        return True, special(INFINITE, negative), target.none
    if y[0] == INFINITE:
        return True, finite(negative, 0, ZERO, ZERO), target.none
    if y[3] == ZERO:
        if x[3] == ZERO:
            return True, settled, target.none
        return True, special(INFINITE, negative), target.divbyzero
    return x[3] == ZERO, finite(negative, 0, ZERO, ZERO), target.none


@kernel
def div(x, y, z, extra, random, width, target):
    """x / y."""
    settled, value, flags = unbounded_quotient(x, y, target)
    if settled:
        return value, flags
    high, low, rest = divided(x[3] >> SPARE, y[3] >> SPARE, 127)
    return finite(x[1] != y[1], x[2] - y[2], high, low | (ONE if rest != ZERO else ZERO)), target.none


@kernel
def sqrt(x, y, z, extra, random, width, target):
    """The square root, bit by bit: 57 of them, where nothing is drawn, else 110."""
    if x[0] == NOT_A_NUMBER or (x[0] == FINITE and x[3] == ZERO):
        return x, target.none
    if x[1]:
        return special(NOT_A_NUMBER, False), target.none
    if x[0] == INFINITE:
        return x, target.none
    odd = x[2] & 1
    radicand = x[3] if odd else x[3] >> ONE
    high, low, above, rest = ZERO, ZERO, ZERO, ZERO
    bits = 57 if target.stochastic == 0 else 110
    for _ in range(bits):
        above, rest = raised_bits(above, rest, 2)
        rest = rest | (radicand >> np.uint64(62))
        radicand = radicand << np.uint64(2)
        trial_high, trial = raised_bits(high, low, 2)
        trial = trial | ONE
        high, low = raised_bits(high, low, 1)
        if above > trial_high or (above == trial_high and rest >= trial):
            above = above - trial_high - (ONE if trial > rest else ZERO)
            rest = rest - trial
            low = low | ONE
    high, low = raised_bits(high, low, 128 - bits)
    sticky = ONE if (above | rest) != ZERO else ZERO
    return finite(False, (x[2] - odd) // 2, high, low | sticky), target.none


@kernel
def rest_of(x, y, nearest):
    """x - n*y, n the quotient cut to an integer, or the integer nearest it, ties to even. A zero result has the sign of x."""
    if x[0] != FINITE or y[0] == NOT_A_NUMBER or (y[0] == FINITE and y[3] == ZERO):
        return special(NOT_A_NUMBER, False)
    distance, negative = x[2] - y[2], x[1]
    if y[0] == INFINITE or x[3] == ZERO or distance < -1 or (distance < 0 and not nearest):
        return x
    divisor = y[3] >> (SPARE - ONE if distance < 0 else SPARE)  # in units of x, if those are less
    _, last, rest = divided(x[3] >> SPARE, divisor, distance)
    if nearest and (rest + rest > divisor or (rest + rest == divisor and last & ONE != ZERO)):
        rest, negative = divisor - rest, not negative
    return finite(negative, min(x[2], y[2]), rest << SPARE, ZERO)


@kernel
def cut_rest(x, y, target):
    """The rest of a quotient cut to an integer."""
    return rest_of(x, y, False)


@kernel
def remainder(x, y, target):
    """IEEE remainder."""
    return rest_of(x, y, True)


@kernel
def modulo(x, y, target):
    """x - floor(x/y)*y: `cut_rest`, plus y where the signs differ. A zero result has the sign of y."""
    rest = cut_rest(x, y, target)
    if rest[0] == NOT_A_NUMBER:
        return rest
    if rest[3] == ZERO:
        return finite(y[1], 0, ZERO, ZERO)
    if x[1] == y[1]:
        return rest
    return y if y[0] == INFINITE else summed(rest, y, target)


@kernel
def floor_divide(x, y, z, extra, random, width, target):
    """floor(x/y): a negative quotient that is no integer is a magnitude rounded up."""
    settled, value, flags = unbounded_quotient(x, y, target)
    if settled:
        if x[0] == INFINITE and not (y[0] == FINITE and y[3] == ZERO):
            value = special(NOT_A_NUMBER, False)
        if y[0] == INFINITE and x[0] == FINITE and x[3] != ZERO and value[1]:
            value = finite(True, 0, TOP, ZERO)
        return value, flags
    negative, distance, divisor = value[1], x[2] - y[2], y[3] >> SPARE
    if distance < 0:
        return finite(negative, 127, ZERO, ONE if negative else ZERO), target.none
    count = min(distance, 127)
    high, low, rest = divided(x[3] >> SPARE, divisor, count)
    unseen = (divisor - ONE) >> np.uint64(
        min(distance - count, 63)
    )  # the longest rest that is no whole unit of the quotient
    if negative and rest != ZERO and divisor - rest <= unseen:
        low, rest = low + ONE, ZERO
        high = high + (ONE if low == ZERO else ZERO)  # never full: so many ones no quotient of 53 bits has
    sticky = rest > (ZERO if negative else unseen)
    return finite(negative, 127 + distance - count, high, low | (ONE if sticky else ZERO)), target.none


@kernel
def round_to_integral(x, y, z, extra, random, width, target):
    """x rounded to an integer; `extra` is 1 to raise INEXACT where that changes x."""
    if x[0] != FINITE or x[3] == ZERO or x[2] >= 52:
        return x, target.none
    whole, fraction, rest = split(x[3], x[4], 127 - x[2])
    up = takes_up(whole & ONE != ZERO, fraction, rest, x[1], random, width, target)
    changed = ((fraction | rest) != ZERO) & (extra != 0.0)
    value = finite(x[1], 63, whole + ONE if up else whole, ZERO)
    return value, target.inexact if changed else target.none


def unflagged(value):
    """The operation that raises nothing of its own."""

    @kernel
    def operate(x, y, z, extra, random, width, target):
        return value(x, y, target), target.none

    return operate


OPERATIONS = {
    "convert": (unflagged(identity), 1),
    "convert_exact": (unflagged(identity), 3),
    "add": (unflagged(summed), 2),
    "sub": (unflagged(difference), 2),
    "mul": (unflagged(product), 2),
    "div": (div, 2),
    "remainder": (unflagged(remainder), 2),
    "fmod": (unflagged(cut_rest), 2),
    "modulo": (unflagged(modulo), 2),
    "floor_divide": (floor_divide, 2),
    "sqrt": (sqrt, 1),
    "round_to_integral": (round_to_integral, 1),
    "fma": (fma, 3),
}
"""Name -> (function of numbers, number of operands).

`convert_exact` reads a number of any size from three words: high and low bits, and 4 * exponent + 2 * sign; or, 1 more, a code alone.
"""


# -- loops ---------------------------------------------------------------------------------------------------------------


@cache
def element_of(operation):
    """One element: codes in, (code, flags) out."""
    operate, arity = OPERATIONS[operation]
    to_integral, exact = operation == "round_to_integral", operation == "convert_exact"

    @kernel
    def element(code_a, code_b, code_c, extra, random, width, source, target):
        if exact and code_c & 1 == 0:
            x = finite(code_c & 2 != 0, code_c >> 2, np.uint64(code_a), np.uint64(code_b))
            code_a = code_b = code_c = target.none
        else:
            x = unpacked(code_a, source)
        y = unpacked(code_b, source) if arity > 1 and not exact else x
        z = unpacked(code_c, source) if arity > 2 and not exact else x
        value, raised = operate(x, y, z, extra, random, width, target)
        number = (x[0] != NOT_A_NUMBER) & (y[0] != NOT_A_NUMBER) & (z[0] != NOT_A_NUMBER)
        signals = is_signalling(code_a, source) | is_signalling(code_b, source) | is_signalling(code_c, source)
        code, flags = rounded(value, random, width, target)
        if target.propagate != 0 and not number:
            first = arity > 2 and target.addend_first != target.none
            if raised == target.none or (first and is_signalling(code_c, source)):
                one, two, three = (code_c, code_a, code_b) if first else (code_a, code_b, code_c)
                code = propagated(one, two, three, source, target)
        if to_integral and flags == target.invalid and value[0] == FINITE:
            raised = target.none
        invalid = target.invalid if (value[0] == NOT_A_NUMBER) & (number | signals) else target.none
        unordered = target.none if number else target.any_nan_signals
        return code, raised | flags | invalid | unordered

    return jit.referable(element, "wide", operation)
