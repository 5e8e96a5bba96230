"""Elements of `blocks`: halves, rounded by the CPU's own conversions (x86: F16C; Armv8-A: FCVT)."""

import numpy as np

from .arith import sum_and_error
from .elements import converted_double, exact_fused, root_and_rest
from .fast import (
    INEXACT,
    INFINITE_BITS,
    MAGNITUDE,
    NONE,
    TINY_INEXACT,
    ZERO,
    half_code,
    half_value,
    quotient_and_rest,
)
from .jit import bits_float, cut, float_bits, kernel


@kernel
def odd_half(bits, lost, signs):
    """The float32 of an exact result that rounds as it does: its last bit says whether anything is lost."""
    return bits_float(cut(bits | (INEXACT if lost else NONE), NONE), ZERO)


@kernel
def half_converted(code_a, code_b, code_c):
    """(float32 nearest the exact result, bits that are not zero where they differ)."""
    return bits_float(cut(code_a, NONE), ZERO), NONE


@kernel
def half_narrowed(code_a, code_b, code_c):
    """The same of a float64."""
    return odd_half(*converted_double(code_a, code_b, code_c, ZERO)), NONE


@kernel
def half_sum(code_a, code_b, code_c):
    """The same of a + b. float32 has 24 >= 2*11 + 2 bits, so rounding there first is innocuous, as for all but fma."""
    s, error = sum_and_error(half_value(code_a), half_value(code_b))
    return s, cut(float_bits(error) & MAGNITUDE, NONE)


@kernel
def half_difference(code_a, code_b, code_c):
    """The same of a - b."""
    return half_sum(code_a, np.uint16(code_b ^ np.uint16(0x8000)), code_c)


@kernel
def half_product(code_a, code_b, code_c):
    """The same of a * b."""
    return half_value(code_a) * half_value(code_b), NONE


@kernel
def half_quotient(code_a, code_b, code_c):
    """The same of a / b."""
    q, rest = quotient_and_rest(half_value(code_a), half_value(code_b))
    return q, cut(float_bits(rest) & MAGNITUDE, NONE)


@kernel
def half_root(code_a, code_b, code_c):
    """The same of a square root."""
    s, rest = root_and_rest(half_value(code_a))
    return s, cut(float_bits(rest) & MAGNITUDE, NONE)


@kernel
def half_fused(code_a, code_b, code_c):
    """A float32 whose last bit says whether a * b + c is between it and another."""
    return odd_half(*exact_fused(half_value(code_a), half_value(code_b), half_value(code_c))), NONE


NEAR = {
    "convert": half_converted,
    "add": half_sum,
    "sub": half_difference,
    "mul": half_product,
    "div": half_quotient,
    "sqrt": half_root,
    "fma": half_fused,
}


@kernel
def half_sum_rounded(s, error, numbers):
    """(code, flags) of a result that is not tiny and inexact, and does not overflow."""
    code = half_code(s)
    changed = cut(cut(float_bits(half_value(code)) ^ float_bits(s), NONE) | error, NONE)
    return cut(code, NONE), INEXACT if changed != NONE else NONE


@kernel
def half_rounded(s, error, numbers):
    """(code, flags) of any result."""
    code = half_code(s)
    back = float_bits(half_value(code))
    tiny = cut(float_bits(s) & MAGNITUDE, NONE) < numbers.tiny_positive
    over = cut(back & MAGNITUDE, NONE) == INFINITE_BITS
    inexact = cut(cut(back ^ float_bits(s), NONE) | error, NONE) != NONE
    flags = (TINY_INEXACT if tiny else INEXACT) if inexact else NONE
    flags = numbers.overflow_flags if over else flags
    beyond = numbers.overflow_negative if s < ZERO else numbers.overflow_positive
    return beyond if over else cut(code, NONE), flags


@kernel
def half_stepped(s, error, numbers):
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
def half_cut(s, error, numbers):
    """The same toward zero."""
    bits, kept, inexact = half_toward_zero(s)
    return half_cut_bounded(bits, kept, inexact, numbers)


@kernel
def half_odd(s, error, numbers):
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


MODES = {"nearest": half_rounded, "toward_zero": half_cut, "to_odd": half_odd, "selected": half_stepped}
"""Way -> function of a float32 near the result; `selected` serves all but nearest even, and like others exact ones."""


def cpu(operation, way, calm, from_double):
    """Halves that the CPU rounds; of conversions `from_double` they come from float64, not float32."""
    near, plain = half_narrowed if from_double else NEAR[operation], calm or operation in ("add", "sub")
    rounded = half_sum_rounded if way == "nearest" and plain else MODES[way]

    @kernel
    def element(code_a, code_b, code_c, half_word, numbers):
        code, raised = rounded(*near(code_a, code_b, code_c), numbers)
        return code, raised, NONE

    return element
