"""Elements of `blocks`: what becomes of ordinary operands of short formats, in float32 and its bits.

    exact result = fl(x op y), cut toward zero, and whether anything is lost below its last bit
    below the target's normal range the smallest normal number is added: last bits then have one place for all
    rounded = bits + bias; the dropped bits carry where they reach the threshold of their sign and parity

Products of numbers of at most 12 bits are exact; of a sum, TwoSum gives the error; quotients and roots have a rest, of their error's sign.
Stochastic rounding adds at most 16 random bits. Nothing hangs on what the host does with subnormals.
"""

from functools import cache

import numpy as np

from . import jit
from .arith import sum_and_error
from .fast import (
    INEXACT,
    MAGNITUDE,
    NONE,
    SMALLEST_BITS,
    TINY_INEXACT,
    ZERO,
    half_value,
    high_bits,
    quotient_and_rest,
)
from .jit import bits_float, cut, float_bits, kernel, shift_left, shift_right

ONE_EXPONENT = np.int32(1 << 23)


# -- operands ----------------------------------------------------------------------------------------------------------


@kernel
def half_number(code, numbers):
    """A half, by the CPU."""
    return half_value(np.uint16(code))


@kernel
def bfloat16_number(code, numbers):
    """A bfloat16 that is not subnormal."""
    return bits_float(shift_left(cut(code, NONE), 16), ZERO)


@kernel
def number(code, numbers):
    """A number of any format: `carrier.decode` without its special cases."""
    magnitude = cut(code & numbers.magnitude_mask, NONE)
    fields = cut(shift_left(magnitude, numbers.shift) + numbers.rebias, NONE)
    below = magnitude < numbers.hidden
    value = bits_float(cut(fields + ONE_EXPONENT, NONE) if below else fields, ZERO)
    value = value - numbers.smallest if below else value
    sign = shift_left(cut(code ^ magnitude, NONE), numbers.sign_shift)
    return bits_float(cut(float_bits(value) | sign, NONE), ZERO)


READERS = {"half": half_number, "bfloat16": bfloat16_number, "any": number}
"""Kind of codes -> function of one."""


# -- exact results: (bits cut toward zero, whether anything is lost, a sign bit if an addend has one) ------------------------


@kernel
def inward(bits, lost):
    """Bits, less one where a result was rounded away from zero."""
    return cut(bits - (INEXACT if lost else NONE), bits)


@kernel
def exact_sum(x, y, z):
    """x + y, on either carrier."""
    s, error = sum_and_error(x, y)
    bits = float_bits(s)
    lost = abs(error) > ZERO
    return inward(bits, (cut(bits ^ float_bits(error), bits) < NONE) & lost), lost, float_bits(x) | float_bits(y)


@kernel
def exact_difference(x, y, z):
    """x - y."""
    return exact_sum(x, -y, z)


@kernel
def exact_product(x, y, z):
    """x * y, of no more bits than the carrier has."""
    return float_bits(x * y), False, NONE


@kernel
def exact_fused(x, y, z):
    """x * y + z, of such a product."""
    return exact_sum(x * y, z, z)


@kernel
def exact_quotient(x, y, z):
    """x / y; on the side of the rounded one on which x is of the latter times y."""
    q, rest = quotient_and_rest(x, y)
    lost = abs(rest) > ZERO
    return inward(float_bits(q), (cut(float_bits(rest) ^ float_bits(x), NONE) < NONE) & lost), lost, NONE


@kernel
def root_and_rest(x):
    """(The square root of x rounded, what x is more than its square), exact."""
    s = np.sqrt(x)
    high = high_bits(s)
    low = s - high
    return s, ((x - high * high) - (high + high) * low) - low * low


@kernel
def exact_root(x, y, z):
    """The square root of x."""
    s, rest = root_and_rest(x)
    return inward(float_bits(s), rest < ZERO), rest != ZERO, NONE


EXACT = {
    "add": exact_sum,
    "mul": exact_product,
    "fma": exact_fused,
    "div": exact_quotient,
    "sqrt": exact_root,
    "sub": exact_difference,
}
"""Operation -> function of three numbers. Differences of short formats are sums of a code whose sign is flipped."""


@kernel
def converted(code_a, code_b, code_c, numbers):
    """A float32 as it is."""
    return cut(code_a, NONE), False, NONE


@kernel
def converted_double(code_a, code_b, code_c, numbers):
    """A float64 that is no smaller than float32's normal numbers."""
    x = bits_float(np.int64(code_a), 1.0)
    near = np.float32(x)
    back = np.float64(near)
    return inward(float_bits(near), abs(back) > abs(x)), back != x, NONE


@cache
def _result(kind, operation):
    """result(code_a, code_b, code_c, numbers): the exact result of codes."""
    if operation == "convert":
        return converted_double if kind == "float64" else converted
    read, exact = READERS[kind], EXACT[operation]

    @kernel
    def result(code_a, code_b, code_c, numbers):
        second = cut(code_b ^ cut(numbers.flip, code_b), code_b)
        return exact(read(code_a, numbers), read(second, numbers), read(code_c, numbers))

    return jit.referable(result, kind, operation)


# -- below the normal range ----------------------------------------------------------------------------------------------


@kernel
def lifted(magnitude, lost, numbers):
    """(bits, whether anything is lost), with what is below the normal range moved to where its last bit is dropped as others are."""
    value = bits_float(max(magnitude, SMALLEST_BITS) if magnitude != NONE else magnitude, ZERO)
    s = value + numbers.smallest
    error = value - (s - numbers.smallest)
    bits = cut(float_bits(s) - ONE_EXPONENT, NONE)
    bits = cut(bits - INEXACT, NONE) if error < ZERO else bits
    below = magnitude < numbers.lowest_bits
    return bits if below else magnitude, lost | (below & (error != ZERO))


@kernel
def lifted_sum(magnitude, lost, numbers):
    """The same for sums, which lose nothing there."""
    s = bits_float(magnitude, ZERO) + numbers.smallest
    return cut(float_bits(s) - ONE_EXPONENT, NONE) if magnitude < numbers.lowest_bits else magnitude, lost


@kernel
def not_lifted(magnitude, lost, numbers):
    """The same where there is nothing below the normal range, or float32 ends where the format does."""
    return magnitude, lost


@kernel
def lifted_zero(magnitude, lost, numbers):
    """The same where nothing but zero is below it."""
    return max(magnitude, numbers.rebias), lost


def _lifting(operation, lifts, calm):
    """Operation, whether results below the normal range are normal in float32, and whether there are none -> function."""
    if not lifts:
        return not_lifted
    if calm:
        return lifted_zero
    return lifted_sum if operation == "add" else lifted


# -- rounding: bits with the dropped ones carried ------------------------------------------------------------------------


@kernel
def carried_nearest(magnitude, negative, numbers):
    """Nearest even."""
    odd = cut(shift_right(magnitude, numbers.dropped_bits) & INEXACT, NONE)
    return cut(magnitude + cut(odd + numbers.up_positive_even, NONE), NONE)


@kernel
def carried_selected(magnitude, negative, numbers):
    """Any deterministic mode."""
    odd = cut(shift_right(magnitude, numbers.dropped_bits) & INEXACT, NONE) != NONE
    positive = numbers.up_positive_odd if odd else numbers.up_positive_even
    other = numbers.up_negative_odd if odd else numbers.up_negative_even
    return cut(magnitude + (other if negative else positive), NONE)


@kernel
def signed_code(carried, negative, numbers):
    """(magnitude, code) of carried bits."""
    magnitude = cut(shift_right(carried, numbers.dropped_bits) - numbers.code_rebias, NONE)
    sign = numbers.sign if magnitude != NONE else numbers.zero_sign
    return magnitude, cut(magnitude | sign, NONE) if negative else magnitude


@kernel
def bounded(magnitude, code, negative, inexact, tiny, numbers):
    """(code, flags) of a result that may be tiny or overflow."""
    over = magnitude > numbers.largest
    flags = (TINY_INEXACT if tiny else INEXACT) if inexact else NONE
    flags = numbers.overflow_flags if over else flags
    beyond = numbers.overflow_negative if negative else numbers.overflow_positive
    return beyond if over else code, flags


@kernel
def unserved(whole, numbers):
    """1 where a result is flushed."""
    return INEXACT if (whole < numbers.unserved) & (whole != NONE) else NONE


# -- elements: (code, flags, 1 where another loop is to do it) ------------------------------------------------------------


def deterministic(kind, operation, way, lifts, flushes, calm):
    """In the mode that the numbers say; `way` is "nearest" to nearest even. `flushes`: tiny results are left; `calm`: none is, nor too large."""
    exact, lift = _result(kind, operation), _lifting(operation, lifts, calm)
    carry = carried_nearest if way == "nearest" else carried_selected
    plain, zeros = calm or (operation == "add" and not flushes), operation in ("add", "fma") and way != "nearest"

    @kernel
    def element(code_a, code_b, code_c, half_word, numbers):
        bits, lost, signs = exact(code_a, code_b, code_c, numbers)
        negative = bits < NONE
        whole = cut(bits & MAGNITUDE, NONE)
        magnitude, lost_there = lift(whole, lost, numbers)
        magnitude = cut(magnitude | (INEXACT if lost_there else NONE), NONE)
        kept, code = signed_code(carry(magnitude, negative, numbers), negative, numbers)
        inexact = cut(magnitude & numbers.dropped_mask, NONE) != NONE
        raised, left = INEXACT if inexact else NONE, NONE
        if not plain:
            limit = numbers.tiny_negative if negative else numbers.tiny_positive
            tiny = cut(whole | (INEXACT if lost else NONE), NONE) < limit
            code, raised = bounded(kept, code, negative, inexact, tiny, numbers)
            if flushes:
                left = unserved(whole, numbers)
        if zeros:
            code = numbers.downward_sign if (bits == NONE) & (signs < NONE) else code
        return code, raised, left

    return element


def stochastic(kind, operation, way, lifts, flushes, calm):
    """With the random bits of a half-word."""
    exact, lift = _result(kind, operation), _lifting(operation, lifts, calm)
    plain = calm or (operation == "add" and not flushes)

    @kernel
    def element(code_a, code_b, code_c, half_word, numbers):
        bits, lost, _ = exact(code_a, code_b, code_c, numbers)
        negative = bits < NONE
        whole = cut(bits & MAGNITUDE, NONE)
        magnitude, lost = lift(whole, lost, numbers)
        random = shift_left(shift_right(np.int32(half_word), numbers.random_right), numbers.random_left)
        random = cut(random | numbers.taken, NONE) if random != NONE else random
        magnitude = cut(magnitude | cut((INEXACT if lost else NONE) & numbers.taken, NONE), NONE)
        carried = cut(magnitude + random, NONE)
        hanging = cut(numbers.hanging - (INEXACT if lost else NONE), NONE)
        is_open = cut(carried & numbers.dropped_mask, NONE) > hanging
        kept, code = signed_code(carried, negative, numbers)
        inexact = lost | (cut(magnitude & numbers.dropped_mask, NONE) != NONE)
        raised, left = INEXACT if inexact else NONE, NONE
        if not plain:
            tiny = whole < numbers.lowest_bits
            hangs = inexact & tiny & (whole >= numbers.tiny_positive)
            if lifts:  # random bits as part of half as large a last bit, that of what is just not normal
                unbounded = cut(whole + random, NONE)
                tiny = tiny & ((whole < numbers.tiny_positive) | (unbounded < numbers.lowest_bits))
                hangs = hangs & (cut(unbounded & numbers.dropped_mask, NONE) > hanging)
            code, raised = bounded(kept, code, negative, inexact, tiny, numbers)
            is_open = is_open | hangs
            left = unserved(whole, numbers)
        return code, raised, INEXACT if is_open else left

    return element
