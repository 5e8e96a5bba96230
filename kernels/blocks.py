"""Faster ways to the same bits for blocks of ordinary operands: numbers, none near the ends of what float32 carries.

Data are ordinary almost everywhere, and whether a block is takes a fraction of the time that its results take. So a
loop looks at a block first, and leaves out what ordinary operands cannot need: special values, payloads, flushing,
and for sums also overflow and underflow. It stops at the first block that is not ordinary; the loop that serves
everything does that one. `ordinary` makes the numbers of a format, a rule and an operation, or says that there are none.

Everything is float32 and its bits, whatever the host does with subnormals:

    exact result = fl(x op y), cut toward zero, and whether anything is lost below its last bit
    below the target's normal range the smallest normal number is added: last bits then have one place for all
    rounded = bits + bias; the dropped bits carry where they reach the threshold of their sign and parity

Products of numbers of at most 12 bits are exact; of a sum, TwoSum gives the error. Stochastic rounding adds at most 16
random bits; where those after them could carry, the loop stops too.
"""

from fractions import Fraction
from functools import cache
from math import ceil, frexp
from typing import NamedTuple

import numpy as np

from . import jit
from .fast import (
    INEXACT,
    INFINITE_BITS,
    MAGNITUDE,
    NONE,
    OPERATIONS,
    SMALLEST_BITS,
    TINY_INEXACT,
    ZERO,
    half_code,
    half_value,
    limits_of,
)
from .jit import bits_float, cut, fixed_tuple, float_bits, kernel, shift_left, shift_right
from .prng import top_bits
from .spec import CARRIER32, Rounding, count_fields, emin, target, thresholds

BLOCK = 1024
"""Operands looked at together; a whole number of random tiles."""

ONE_EXPONENT = np.int32(1 << 23)
FLAG_BITS = 5
"""A loop returns the number of elements it did, shifted left by so many bits, and their flags OR-ed together."""


class Ordinary(NamedTuple):
    """What the loops know of a format, a rule and an operation."""

    magnitude_mask: int
    least: int  # ordinary operands are zero, or have a magnitude from this one
    most: int  # to this one
    lone_nan: int
    shift: int
    rebias: int
    hidden: int
    sign_shift: int
    dropped_bits: int
    dropped_mask: int
    up_positive_even: int  # added to the dropped bits, carries where they reach the threshold
    up_positive_odd: int
    up_negative_even: int
    up_negative_odd: int
    code_rebias: int
    lowest_bits: int  # of the smallest normal number
    largest: int
    sign: int
    flip: int  # the sign bit for differences, which are sums of a and -b
    zero_sign: int
    downward_sign: int  # of an exact zero sum
    tiny_positive: int  # bits below them are tiny
    tiny_negative: int
    overflow_positive: int
    overflow_negative: int
    overflow_flags: int
    away_positive: int  # 1 where a mode goes to the larger magnitude, whatever is dropped
    away_negative: int
    toward_positive: int  # 1 where it goes to the lesser one first
    toward_negative: int
    to_odd: int
    ties_positive: int  # 1 where ties go to the larger magnitude, -1 to the lesser one, 0 to the even one
    ties_negative: int
    above_largest: int  # bits of the power of two that follows the largest number's
    random_right: int  # how far 16 random bits move to end right below the last kept bit
    random_left: int
    hanging: int  # dropped bits above it could still carry, were there more random bits
    taken: int  # of a random number that takes up whatever is not exact, all dropped bits; else 0
    smallest: float


INTEGERS, FLOATS = count_fields(Ordinary)

SHARED = {"sub": "add"}
"""Operation -> the one whose loops serve it, too."""


@kernel
def ordinary_of(integers, floats):
    """The numbers in two arrays."""
    return Ordinary(*(fixed_tuple(integers, INTEGERS) + fixed_tuple(floats, FLOATS)))


# -- which operands are ordinary ---------------------------------------------------------------------------------------

WIDEST = {"add": 14, "sub": 14, "mul": 11, "convert": 21}
"""Operation -> the most fraction bits that a format may have: fl(x op y) and its error are exact, with two bits to spare."""

USUAL = -12
"""Where only larger powers of two would be ordinary, hardly any block is."""

LIFTED_FROM = -79
"""From this smallest normal exponent on, what `lifted` cuts off a float32 is not subnormal."""


def lowest_exponent(fmt, operation, no_tiny):
    """Powers of two from that of this exponent on are ordinary, and what lies between them."""
    bottom = emin(fmt) - fmt.mantissa_bits
    product = operation == "mul"
    if product:  # its last bit is a normal number of float32
        wanted = (1 - CARRIER32.bias) // 2 + fmt.mantissa_bits + 1
    else:  # the last bits of both are
        wanted = 1 - CARRIER32.bias + fmt.mantissa_bits
    unflushed = -(-emin(fmt) // 2) if product else emin(fmt) + fmt.mantissa_bits
    return max(bottom, wanted, unflushed) if no_tiny else max(bottom, wanted)


def code_of_power(fmt, exponent):
    """The code of a power of two."""
    normal = exponent - emin(fmt)
    return (normal + 1) << fmt.mantissa_bits if normal >= 0 else 1 << (normal + fmt.mantissa_bits)


def half_of_largest(fmt):
    """The code of a number not above half the largest."""
    return fmt.largest - (1 << fmt.mantissa_bits) if fmt.largest >> fmt.mantissa_bits > 1 else fmt.largest >> 1


def carrying(threshold, dropped):
    """What carries where dropped bits reach a threshold."""
    return (1 << dropped) - ceil(threshold * 2**dropped) if threshold <= 1 else 0


def tying(even, odd):
    """Where thresholds send ties: of one half, and just above it."""
    return (even <= 0.5) - (odd > 0.5) if 0.5 <= odd < 1 else 0


def bits_from(limit):
    """The bits of the least float32 that is not below a positive number; on integers, as a host may flush subnormals."""
    exponent = max(frexp(limit)[1] - 1, 1 - CARRIER32.bias)
    units = ceil(Fraction(limit) / Fraction(2) ** (exponent - CARRIER32.fraction_bits))
    return units + ((exponent + CARRIER32.bias - 1) << CARRIER32.fraction_bits)


def lifts(fmt):
    """Whether results below the format's normal range are normal numbers of float32."""
    return emin(fmt) > 1 - CARRIER32.bias


def ordinary(fmt, rule, operation):
    """The numbers; None where no loop here serves. `convert` is from float32, other operations are from `fmt`."""
    lowest, m = emin(fmt), fmt.mantissa_bits
    top = (fmt.largest >> m) - fmt.bias
    carried = 1 <= m <= WIDEST[operation] and 1 - CARRIER32.bias <= lowest and top <= CARRIER32.bias
    if not (carried and fmt.signed and fmt.zero and rule.restated):
        return None
    no_tiny = rule.ftz or not fmt.subnormals
    if operation == "convert":
        far = lowest >= LIFTED_FROM or not lifts(fmt)
        if no_tiny or rule.daz or not far:
            return None
        least, most, mask = 1, int(INFINITE_BITS) - 1, int(MAGNITUDE)
    else:
        exponent = lowest_exponent(fmt, operation, no_tiny)
        if exponent > max(USUAL, lowest - m):
            return None
        least = max(code_of_power(fmt, exponent), 1 << m if rule.daz else 1)
        most = fmt.largest if operation == "mul" else half_of_largest(fmt)
        mask = (1 << (fmt.width - 1)) - 1
        if least > most:
            return None
    into = target(fmt, rule, CARRIER32)
    dropped = CARRIER32.fraction_bits - m
    positive, negative = (thresholds(rule.rounding, side, CARRIER32) for side in (False, True))
    most_dropped, either = (1 << dropped) - 1, rule.rounding is Rounding.UP_OR_DOWN
    biases = [carrying(x, dropped) for x in (*positive, *negative)]
    return Ordinary(
        magnitude_mask=mask,
        least=least,
        most=most,
        lone_nan=fmt.lone_nan,
        shift=dropped,
        rebias=(CARRIER32.bias - 1 + lowest) << CARRIER32.fraction_bits,
        hidden=1 << m,
        sign_shift=32 - fmt.width,
        dropped_bits=dropped,
        dropped_mask=most_dropped,
        up_positive_even=biases[0],
        up_positive_odd=biases[1],
        up_negative_even=biases[2],
        up_negative_odd=biases[3],
        code_rebias=(CARRIER32.bias - 1 + lowest) << m,
        lowest_bits=(CARRIER32.bias + lowest) << CARRIER32.fraction_bits,
        largest=fmt.largest,
        sign=into.sign,
        flip=into.sign if operation == "sub" else 0,
        zero_sign=into.zero_sign,
        downward_sign=into.zero_sign if rule.rounding is Rounding.TOWARD_NEGATIVE else 0,
        tiny_positive=bits_from(into.tiny_positive),
        tiny_negative=bits_from(into.tiny_negative),
        overflow_positive=into.overflow_positive,
        overflow_negative=into.overflow_negative,
        overflow_flags=into.overflow_flags,
        away_positive=int(min(biases[:2]) == most_dropped),
        away_negative=int(min(biases[2:]) == most_dropped),
        toward_positive=int(biases[1] == 0),
        toward_negative=int(biases[3] == 0),
        to_odd=int(rule.rounding is Rounding.TO_ODD),
        ties_positive=tying(*positive),
        ties_negative=tying(*negative),
        above_largest=(top + 1 + CARRIER32.bias) << CARRIER32.fraction_bits,
        random_right=max(16 - dropped, 0),
        random_left=max(dropped - 16, 0),
        hanging=(1 << dropped) - (0 if either else 1 << max(dropped - 16, 0)),
        taken=most_dropped if either else 0,
        smallest=2.0**lowest,
    )


@kernel
def all_ordinary(codes, numbers):
    """Whether all operands are. Zero, less one, is the largest of codes."""
    like = codes[0]
    mask, unit, lone = cut(numbers.magnitude_mask, like), cut(1, like), cut(numbers.lone_nan, like)
    most, least, nearest = cut(0, like), cut(-1, like), cut(-1, like)
    for i in range(codes.size):
        magnitude = cut(codes[i] & mask, like)
        most = max(most, magnitude)
        least = min(least, cut(magnitude - unit, like))
    if numbers.lone_nan > NONE:
        for i in range(codes.size):
            nearest = min(nearest, cut(codes[i] ^ lone, like))
    return (most <= cut(numbers.most, like)) & (least >= cut(numbers.least - 1, like)) & (nearest != cut(0, like))


@kernel
def all_finite(codes, numbers):
    """Whether all bits are those of finite float32 numbers."""
    most = NONE
    for i in range(codes.size):
        most = max(most, cut(codes[i] & MAGNITUDE, NONE))
    return most <= numbers.most


# -- operands ----------------------------------------------------------------------------------------------------------


@kernel
def half_number(code, numbers):
    """A half, by the CPU."""
    return half_value(code)


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
"""Family -> function of a code."""


# -- exact results: (bits cut toward zero, whether anything is lost) ---------------------------------------------------


@kernel
def exact_sum(x, y):
    """x + y, on either carrier."""
    s = x + y
    shadow = s - x
    error = (x - (s - shadow)) + (y - shadow)
    bits = float_bits(s)
    opposite = cut(bits ^ float_bits(error), bits) < NONE
    lost = abs(error) > ZERO
    return cut(bits - (INEXACT if opposite & lost else NONE), bits), lost


@kernel
def exact_product(x, y):
    """x * y, of no more bits than the carrier has."""
    return float_bits(x * y), False


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


CARRIED = {"nearest": carried_nearest, "selected": carried_selected}


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


# -- loops -------------------------------------------------------------------------------------------------------------


@cache
def _exact_result(family, operation):
    """result(code_a, code_b, numbers) -> (bits cut toward zero, whether anything is lost, a sign bit if an operand of a sum has one)."""
    read, exact = READERS[family], exact_sum if operation == "add" else exact_product

    @kernel
    def converted(code_a, code_b, numbers):
        return cut(code_a, NONE), False, NONE

    @kernel
    def result(code_a, code_b, numbers):
        x, y = read(code_a, numbers), read(cut(code_b ^ cut(numbers.flip, code_b), code_b), numbers)
        bits, lost = exact(x, y)
        return bits, lost, cut(float_bits(x) | float_bits(y), NONE)

    return jit.referable(converted if operation == "convert" else result, family, operation)


def _lifting(operation, lifts):
    """Operation, whether results below the normal range are normal in float32 -> function."""
    if not lifts:
        return not_lifted
    return lifted_sum if operation == "add" else lifted


@kernel
def pairs_ordinary(a, b, numbers):
    """Whether all operands of a block are."""
    return all_ordinary(a, numbers) and all_ordinary(b, numbers)


@kernel
def singles_finite(a, b, numbers):
    """The same of conversions."""
    return all_finite(a, numbers)


@cache
def elementwise(family, operation, way, lifts, each):
    """loop(a, b, codes, flags, integers, floats) -> elements done and flags (0 where `each`), under a deterministic mode.

    Conversions take int32 bits; their `b` is not read.
    """
    sums, selected = operation == "add", way == "selected"
    exact, lift, carry = _exact_result(family, operation), _lifting(operation, lifts), CARRIED[way]
    block_is_ordinary = singles_finite if operation == "convert" else pairs_ordinary

    def blocks_loop(a, b, codes, flags, integers, floats):
        numbers = ordinary_of(integers, floats)
        seen = NONE
        for first in range(0, codes.size, BLOCK):
            xs, ys = a[first : first + BLOCK], b[first : first + BLOCK]
            results = codes[first : first + BLOCK]
            raises = flags[first : first + BLOCK] if each else flags
            if not block_is_ordinary(xs, ys, numbers):
                return (first << FLAG_BITS) | seen
            for i in range(results.size):
                bits, lost, signs = exact(xs[i], ys[i], numbers)
                negative = bits < NONE
                whole = cut(bits & MAGNITUDE, NONE)
                magnitude, lost_there = lift(whole, lost, numbers)
                magnitude = cut(magnitude | (INEXACT if lost_there else NONE), NONE)
                kept, code = signed_code(carry(magnitude, negative, numbers), negative, numbers)
                inexact = cut(magnitude & numbers.dropped_mask, NONE) != NONE
                raised = INEXACT if inexact else NONE
                if not sums:
                    tiny = cut(whole | (INEXACT if lost else NONE), NONE) < (
                        numbers.tiny_negative if negative else numbers.tiny_positive
                    )
                    code, raised = bounded(kept, code, negative, inexact, tiny, numbers)
                elif selected:
                    code = numbers.downward_sign if (bits == NONE) & (signs < NONE) else code
                results[i] = code
                if each:
                    raises[i] = raised
                else:
                    seen = cut(seen | raised, NONE)
        return (codes.size << FLAG_BITS) | seen

    return jit.compiled(blocks_loop)


@cache
def elementwise_drawn(family, operation, lifts, each):
    """loop(a, b, codes, flags, integers, floats, key, stream, start, handed, width) -> elements done and flags (0 where `each`), stochastic.

    `start` is a multiple of TILE. `handed` has `width` random bits of each element, or is empty.
    """
    sums = operation == "add"
    exact, lift = _exact_result(family, operation), _lifting(operation, lifts)
    block_is_ordinary = singles_finite if operation == "convert" else pairs_ordinary

    def blocks_drawn_loop(a, b, codes, flags, integers, floats, key, stream, start, handed, width):
        numbers = ordinary_of(integers, floats)
        half_words = np.empty(BLOCK, np.uint16)
        seen = NONE
        for first in range(0, codes.size, BLOCK):
            xs, ys = a[first : first + BLOCK], b[first : first + BLOCK]
            results = codes[first : first + BLOCK]
            raises = flags[first : first + BLOCK] if each else flags
            if not block_is_ordinary(xs, ys, numbers):
                return (first << FLAG_BITS) | seen
            top_bits(start + first, half_words, handed[first : first + BLOCK], width, key, stream)
            seen_here, open_here = NONE, NONE
            for i in range(results.size):
                bits, lost, _ = exact(xs[i], ys[i], numbers)
                negative = bits < NONE
                whole = cut(bits & MAGNITUDE, NONE)
                magnitude, lost = lift(whole, lost, numbers)
                random = shift_left(shift_right(np.int32(half_words[i]), numbers.random_right), numbers.random_left)
                random = cut(random | numbers.taken, NONE) if random != NONE else random
                magnitude = cut(magnitude | cut((INEXACT if lost else NONE) & numbers.taken, NONE), NONE)
                carried = cut(magnitude + random, NONE)
                hanging = cut(numbers.hanging - (INEXACT if lost else NONE), NONE)
                is_open = cut(carried & numbers.dropped_mask, NONE) > hanging
                kept, code = signed_code(carried, negative, numbers)
                inexact = lost | (cut(magnitude & numbers.dropped_mask, NONE) != NONE)
                raised = INEXACT if inexact else NONE
                if not sums:
                    tiny = whole < numbers.lowest_bits
                    hangs = inexact & tiny & (whole >= numbers.tiny_positive)
                    if lifts:  # random bits as part of half as large a last bit, that of what is just not normal
                        unbounded = cut(whole + random, NONE)
                        tiny = tiny & ((whole < numbers.tiny_positive) | (unbounded < numbers.lowest_bits))
                        hangs = hangs & (cut(unbounded & numbers.dropped_mask, NONE) > hanging)
                    code, raised = bounded(kept, code, negative, inexact, tiny, numbers)
                    is_open = is_open | hangs
                results[i] = code
                open_here = cut(open_here | (INEXACT if is_open else NONE), NONE)
                if each:
                    raises[i] = raised
                else:
                    seen_here = cut(seen_here | raised, NONE)
            if open_here != NONE:
                return (first << FLAG_BITS) | seen
            seen = cut(seen | seen_here, NONE)
        return (codes.size << FLAG_BITS) | seen

    return jit.compiled(blocks_drawn_loop)


# -- half, where the CPU rounds ------------------------------------------------------------------------------------------


@kernel
def half_converted(code_a, code_b):
    """(float32 nearest the exact result, bits that are not zero where they differ)."""
    return bits_float(code_a, ZERO), NONE


@kernel
def half_sum(code_a, code_b):
    """The same of a + b."""
    x, y = half_value(code_a), half_value(code_b)
    s = x + y
    shadow = s - x
    error = (x - (s - shadow)) + (y - shadow)
    return s, cut(float_bits(error) & MAGNITUDE, NONE)


@kernel
def half_difference(code_a, code_b):
    """The same of a - b."""
    return half_sum(code_a, np.uint16(code_b ^ np.uint16(0x8000)))


@kernel
def half_product(code_a, code_b):
    """The same of a * b."""
    return half_value(code_a) * half_value(code_b), NONE


HALF = {"convert": half_converted, "add": half_sum, "sub": half_difference, "mul": half_product}


@kernel
def half_sum_rounded(s, error, numbers):
    """(code, flags) of a sum that does not overflow. float32 has 24 >= 2*11 + 2 bits, so rounding there first is innocuous."""
    code = half_code(s)
    changed = cut(cut(float_bits(half_value(code)) ^ float_bits(s), NONE) | error, NONE)
    return code, INEXACT if changed != NONE else NONE


@kernel
def half_rounded(s, error, numbers):
    """(code, flags) of an exact result."""
    code = half_code(s)
    back = float_bits(half_value(code))
    tiny = cut(float_bits(s) & MAGNITUDE, NONE) < numbers.tiny_positive
    over = cut(back & MAGNITUDE, NONE) == INFINITE_BITS
    flags = (TINY_INEXACT if tiny else INEXACT) if back != float_bits(s) else NONE
    flags = numbers.overflow_flags if over else flags
    beyond = numbers.overflow_negative if s < ZERO else numbers.overflow_positive
    return beyond if over else cut(code, NONE), flags


WILD_BLOCKS = 8
"""Blocks that follow one with an overflow or a NaN, and are not looked at: few of them are ordinary."""


@cache
def half_nearest(operation, each):
    """loop(a, b, codes, flags, integers, floats, limit_integers, limit_floats) -> flags OR-ed together, 0 where `each`, nearest even.

    Blocks that are not ordinary go element by element here: `fast.OPERATIONS`, under `fast.Limits`.
    """
    exact, element = HALF[operation], OPERATIONS["half", operation]
    rounded = half_sum_rounded if operation in ("add", "sub") else half_rounded
    block_is_ordinary = singles_finite if operation == "convert" else pairs_ordinary

    def half_blocks_loop(a, b, codes, flags, integers, floats, limit_integers, limit_floats):
        numbers, limits = ordinary_of(integers, floats), limits_of(limit_integers, limit_floats)
        seen = NONE
        wild = False
        first = last = 0
        while last < codes.size:
            first, last = last, last + (WILD_BLOCKS * BLOCK if wild else BLOCK)
            xs, ys, results = a[first:last], b[first:last], codes[first:last]
            raises = flags[first:last] if each else flags
            seen_here = NONE
            if not wild and block_is_ordinary(xs, ys, numbers):
                for i in range(results.size):
                    s, error = exact(xs[i], ys[i])
                    code, raised = rounded(s, error, numbers)
                    results[i] = code
                    if each:
                        raises[i] = raised
                    else:
                        seen_here = cut(seen_here | raised, NONE)
            else:
                for i in range(results.size):
                    code, raised = element(xs[i], ys[i], ys[i], limits)
                    results[i] = code
                    seen_here = cut(seen_here | raised, NONE)
                    if each:
                        raises[i] = raised
                wild = seen_here > TINY_INEXACT
            seen = cut(seen | seen_here, NONE)
        return NONE if each else seen

    return jit.compiled(half_blocks_loop)


@kernel
def half_stepped(s, numbers):
    """(code, flags) of an exact result under another deterministic mode: the nearest half, or the one before or after it."""
    bits = float_bits(s)
    negative = bits < NONE
    magnitude = cut(bits & MAGNITUDE, NONE)
    tie = numbers.ties_negative if negative else numbers.ties_positive
    beside = cut(max(cut(magnitude + min(tie, NONE), NONE), NONE) | cut(tie & INEXACT, NONE), NONE)
    near = cut(half_code(bits_float(beside, ZERO)), NONE)
    back = float_bits(half_value(np.uint16(near)))
    up = numbers.away_negative if negative else numbers.away_positive
    down = numbers.toward_negative if negative else numbers.toward_positive
    kept = cut(near + up, NONE) if back < magnitude else near
    kept = cut(kept - down, NONE) if back > magnitude else kept
    inexact = back != magnitude
    kept = cut(kept | numbers.to_odd, NONE) if inexact else kept
    tiny = magnitude < (numbers.tiny_negative if negative else numbers.tiny_positive)
    flags = (TINY_INEXACT if tiny else INEXACT) if inexact else NONE
    code = cut(kept | numbers.sign, NONE) if negative else kept
    over = (kept > numbers.largest) | (magnitude >= numbers.above_largest)
    beyond = numbers.overflow_negative if negative else numbers.overflow_positive
    return beyond if over else code, numbers.overflow_flags if over else flags


@kernel
def half_toward_zero(s):
    """(bits, the half at or before it, whether they differ); bits and codes of one sign are compared and counted as they are."""
    bits = float_bits(s)
    near = half_code(s)
    back = float_bits(half_value(near))
    return bits, cut(cut(near, NONE) - INEXACT, NONE) if back > bits else cut(near, NONE), back != bits


@kernel
def half_cut(s, numbers):
    """The same toward zero."""
    bits, kept, inexact = half_toward_zero(s)
    return half_cut_bounded(bits, kept, inexact, numbers)


@kernel
def half_odd(s, numbers):
    """The same to odd."""
    bits, kept, inexact = half_toward_zero(s)
    return half_cut_bounded(bits, cut(kept | INEXACT, NONE) if inexact else kept, inexact, numbers)


@kernel
def half_cut_bounded(bits, kept, inexact, numbers):
    """(code, flags) under a mode that treats both signs alike, and takes nothing to infinity by itself."""
    magnitude = cut(bits & MAGNITUDE, NONE)
    flags = (TINY_INEXACT if magnitude < numbers.tiny_positive else INEXACT) if inexact else NONE
    over = magnitude >= numbers.above_largest
    beyond = numbers.overflow_negative if bits < NONE else numbers.overflow_positive
    return beyond if over else kept, numbers.overflow_flags if over else flags


HALF_MODES = {"toward_zero": half_cut, "to_odd": half_odd, "selected": half_stepped}
"""Mode -> function of an exact result; `selected` serves all but nearest even."""


@cache
def half_selected(operation, mode, each):
    """`elementwise` for products of halves and conversions to them, under a mode of HALF_MODES."""
    exact, stepped = HALF[operation], HALF_MODES[mode]
    block_is_ordinary = singles_finite if operation == "convert" else pairs_ordinary

    def half_selected_loop(a, b, codes, flags, integers, floats):
        numbers = ordinary_of(integers, floats)
        seen = NONE
        for first in range(0, codes.size, BLOCK):
            xs, ys = a[first : first + BLOCK], b[first : first + BLOCK]
            results = codes[first : first + BLOCK]
            raises = flags[first : first + BLOCK] if each else flags
            if not block_is_ordinary(xs, ys, numbers):
                return (first << FLAG_BITS) | seen
            for i in range(results.size):
                s, _ = exact(xs[i], ys[i])
                code, raised = stepped(s, numbers)
                results[i] = code
                if each:
                    raises[i] = raised
                else:
                    seen = cut(seen | raised, NONE)
        return (codes.size << FLAG_BITS) | seen

    return jit.compiled(half_selected_loop)
