"""Elements of any operands, each for a common case, in fewer instructions: nearest even, canonical NaN, no flushing.

Every one is optional and is held, code and flags, against what it replaces. `softfloat.engine.elementwise.fast_family` says when which may be
used: by folds, scales of blocks, and loops on a GPU. Other loops leave what is not ordinary to another one (`blocks`).

Half precision goes through the CPU's own conversions (x86: F16C; Armv8-A: FCVT) where the compiler may use them. For add, mul and div of
halves, float32 has 24 >= 2*11 + 2 bits, so rounding there first is innocuous; fma folds its error in by rounding to
odd.
"""

from functools import cache

import numba
import numpy as np
from llvmlite import binding, ir
from numba import types

from . import jit
from .arith import sum_and_error
from .jit import bits_float, cut, float_bits, kernel, lowered, shift_left, shift_right
from .rounding import target_of

EVERYWHERE = {"aarch64": ("f16c", "fma"), "arm64": ("f16c", "fma")}
"""Architecture -> what each of its CPUs has, under the names of x86: Armv8-A's floating point has FCVT and FMADD (Arm ARM, C7.2)."""


def has_feature(name):
    """Whether compiled code may use an extension of the CPU, by its name on x86."""
    if jit.DISABLED:
        return False
    if name in EVERYWHERE.get(_architecture(), ()):
        return True
    if numba.config.CPU_FEATURES is not None:
        return f"+{name}" in numba.config.CPU_FEATURES.split(",")
    if numba.config.CPU_NAME is not None:
        return False
    return _host_features().get(name, False)


@cache
def _architecture():
    """What code is compiled for, by the first part of LLVM's triple."""
    return binding.get_process_triple().partition("-")[0]


@cache
def _host_features():
    """The extensions that the CPU has, for LLVM; asking takes a tenth of a millisecond."""
    return binding.get_host_cpu_features()


def has_f16c():
    """Whether compiled code may convert halves by the CPU. Without such instructions, LLVM calls a routine that nobody links."""
    return has_feature("f16c")


def half_code(x):
    """float32 to the code of a half, nearest even. NaNs keep their payload."""
    return np.float32(x).astype(np.float16).view(np.uint16)


@lowered(half_code)
def _half_code(context, x):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


def half_value(code):
    """The code of a half to float32."""
    return np.uint16(code).view(np.float16).astype(np.float32)


@lowered(half_value)
def _half_value(context, code):
    def codegen(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


INFINITE = np.float32(np.inf)
ZERO = np.float32(0)
NONE, INEXACT, TINY_INEXACT, OVERFLOWED, DIVIDED_BY_ZERO, INVALID = (np.int32(x) for x in (0, 1, 3, 5, 8, 16))
MAGNITUDE, INFINITE_BITS, QUIET_BITS = np.int32(0x7FFFFFFF), np.int32(0x7F800000), np.int32(0x7FC00000)
SMALLEST_BITS = np.int32(0x00800000)
LOW_BITS = np.int32(-4096)
"""Cuts a float32 to its 12 high bits: those times a number of 12, and the others, are exact products."""


# -- half through F16C -----------------------------------------------------------------------------------------------


@kernel
def half_signals(code):
    """Whether the code of a half is a signalling NaN: 0x7C01 ... 0x7DFF without its sign."""
    return np.uint16((code & np.uint16(0x7FFF)) - np.uint16(0x7C01)) < np.uint16(0x1FF)


@kernel
def float_signals(magnitude):
    """Whether the float32 with these bits, sign aside, is a signalling NaN."""
    return (magnitude > INFINITE_BITS) & (magnitude < QUIET_BITS)


@kernel
def half_result(s, exact, unordered, signals, target):
    """(code, flags) of s: the result rounded to float32 (or, where `exact`, the result).

    Bits, not values, are compared: a host may flush subnormals.
    """
    code = half_code(s)
    back = half_value(code)
    inexact = (float_bits(back) != float_bits(s)) | (not exact)
    over = inexact & (abs(back) == INFINITE)
    flags = INEXACT if inexact else NONE
    flags = TINY_INEXACT if inexact & (abs(s) < target.tiny_positive) else flags
    flags = OVERFLOWED if over else flags
    code = (target.overflow_negative if s < ZERO else target.overflow_positive) if over else code
    code = target.nan if s != s else code
    flags = (INVALID if signals | (not unordered) else NONE) if s != s else flags
    return code, flags


@kernel
def half_convert(code_a, code_b, code_c, target):
    """float32 to half."""
    s = bits_float(code_a, ZERO)
    return half_result(s, True, s != s, float_signals(cut(code_a & MAGNITUDE, NONE)), target)


@kernel
def half_sum(x, y, z):
    """(x + y in float32, whether this is exact)."""
    s, error = sum_and_error(x, y)
    return s, not (abs(error) > ZERO)


@kernel
def half_difference(x, y, z):
    """The same of x - y."""
    return half_sum(x, -y, z)


@kernel
def half_product(x, y, z):
    """The same of x * y: 22 bits."""
    return x * y, True


@kernel
def half_quotient(x, y, z):
    """The same of x / y: what x is more than the quotient times y is exact, as y has 12 bits at most."""
    q = x / y
    high = bits_float(cut(float_bits(q) & LOW_BITS, NONE), ZERO)
    return q, not (abs((x - high * y) - (q - high) * y) > ZERO)


@kernel
def half_fused(x, y, z):
    """The same of x * y + z, rounded to odd: rounding to the nearest float32 first would not be innocuous here."""
    product = x * y
    s, error = sum_and_error(product, z)
    bits = float_bits(s)
    moved = cut(bits + INEXACT, NONE) if cut(bits ^ float_bits(error), NONE) >= NONE else cut(bits - INEXACT, NONE)
    inexact = abs(error) > ZERO
    return bits_float(moved, ZERO) if inexact & (cut(bits & INEXACT, NONE) == NONE) else s, not inexact


HALVES = {"add": half_sum, "sub": half_difference, "mul": half_product, "div": half_quotient, "fma": half_fused}


@cache
def half_operation(operation):
    """An operation of halves: codes in, (code, flags) out."""
    step, fused = HALVES[operation], operation == "fma"

    @kernel
    def half_element(code_a, code_b, code_c, target):
        x, y, z = half_value(code_a), half_value(code_b), half_value(code_c)
        s, exact = step(x, y, z)
        unordered, signals = (x != x) | (y != y), half_signals(code_a) | half_signals(code_b)
        if fused:
            product = x * y
            signals = signals | half_signals(code_c) | ((product != product) & (not unordered))
            unordered = unordered | (z != z)
        return half_result(s, exact, unordered, signals, target)

    @kernel
    def half_division(code_a, code_b, code_c, target):
        x, y = half_value(code_a), half_value(code_b)
        code, flags = half_element(code_a, code_b, code_c, target)
        return code, DIVIDED_BY_ZERO if (y == ZERO) & (abs(x) < INFINITE) & (x != ZERO) else flags

    return jit.referable(half_division if operation == "div" else half_element, operation)


# -- float32 to bfloat16, on integers --------------------------------------------------------------------------------


@kernel
def with_specials(code, flags, code_a, magnitude, target):
    """(code, flags), unless the float32 is infinite or NaN."""
    special = magnitude >= INFINITE_BITS
    code = (target.infinity_negative if code_a < NONE else target.infinity_positive) if special else code
    flags = NONE if special else flags
    code = target.nan if magnitude > INFINITE_BITS else code
    return code, INVALID if float_signals(magnitude) else flags


@kernel
def bfloat16_convert(code_a, code_b, code_c, target):
    """float32 to bfloat16: one more where the low half is more than a half, or ties with an odd high half."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    odd = cut(shift_right(magnitude, 16) & INEXACT, NONE)
    rounded = cut(magnitude + cut(odd + np.int32(0x7FFF), NONE), NONE)
    code = cut(shift_right(rounded, 16) | cut(shift_right(code_a, 16) & np.int32(0x8000), NONE), NONE)
    changed = cut(magnitude & np.int32(0xFFFF), NONE) != NONE
    flags = (TINY_INEXACT if magnitude < float_bits(target.tiny_positive) else INEXACT) if changed else NONE
    over = rounded >= INFINITE_BITS
    code = (target.overflow_negative if code_a < NONE else target.overflow_positive) if over else code
    return with_specials(code, OVERFLOWED if over else flags, code_a, magnitude, target)


# -- float32 to any narrow format ------------------------------------------------------------------------------------


@kernel
def lowest_bits(target):
    """Those of the smallest normal number."""
    return shift_left(target.lowest_exponent, 23)


@kernel
def scale_exponent(target):
    """The exponent field of a binade's start and of the power of two that takes its numbers to quanta, together."""
    return cut(target.twice_bias + target.lowest_exponent - target.lowest_quantum, target.none)


@kernel
def narrow_scaled(magnitude, target):
    """(y, base): `rounding.scaled`, on the bits of a positive float32, for formats with subnormals. A float32 subnormal is as good as 2^-126."""
    raised = max(magnitude, lowest_bits(target))
    exponent = shift_right(raised, 23)
    scale = shift_left(cut(scale_exponent(target) - exponent, NONE), 23)
    base = shift_left(cut(exponent - target.lowest_exponent, NONE), target.mantissa_bits)
    value = max(magnitude, SMALLEST_BITS) if magnitude != NONE else magnitude
    return bits_float(value, ZERO) * bits_float(scale, ZERO), base


@kernel
def narrow_finite(code_a, y, n, base, tiny, target):
    """(code, flags) of a finite operand once n is chosen."""
    count = cut(float_bits(n + np.float32(2.0**23)) - np.int32(0x4B000000), NONE)
    magnitude = cut(base + count, NONE)
    over = magnitude > target.largest
    flags = (TINY_INEXACT if tiny else INEXACT) if n != y else NONE
    flags = OVERFLOWED if over else flags
    code = cut(magnitude | target.sign, NONE) if code_a < NONE else magnitude
    code = (target.overflow_negative if code_a < NONE else target.overflow_positive) if over else code
    return code, flags


@kernel
def narrow_convert(code_a, code_b, code_c, target):
    """float32 to a narrow format with subnormals and signed zero."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    y, base = narrow_scaled(magnitude, target)
    code, flags = narrow_finite(code_a, y, np.rint(y), base, magnitude < float_bits(target.tiny_positive), target)
    return with_specials(code, flags, code_a, magnitude, target)


OPERATIONS = {
    ("half", "convert"): half_convert,
    ("bfloat16", "convert"): bfloat16_convert,
    ("narrow", "convert"): narrow_convert,
} | {("half", operation): half_operation(operation) for operation in HALVES}


ABREAST = 8
"""Folds side by side from which on a step of all of them is quicker than one fold after the other."""


@cache
def half_folding(operation):
    """loop(start, stop, values, codes, flags, integers, floats) -> 0: `loops.folding` of halves, nearest even.

    One fold's number stays a float32, which the CPU rounds to half and back. What is not finite, or divided by zero, goes by codes.
    """
    element, step = half_operation(operation), HALVES[operation]
    divides = operation == "div"

    def half_folding_loop(start, stop, values, codes, flags, integers, floats):
        target = target_of(integers, floats)
        keeps = 1 if codes.shape[0] > 1 else 0
        if stop - start >= ABREAST:
            for k in range(1, values.shape[0]):
                before, row, after = codes[(k - 1) * keeps], values[k], codes[k * keeps]
                for i in range(start, stop):
                    code, raised = element(before[i], row[i], row[i], target)
                    after[i] = code
                    flags[i] |= np.uint8(raised)
            return 0
        for i in range(start, stop):
            code = codes[0, i]
            x, seen = half_value(code), NONE
            for k in range(1, values.shape[0]):
                y = half_value(values[k, i])
                s, exact = step(x, y, y)
                rounded = half_code(s)
                back = half_value(rounded)
                if abs(back) < INFINITE and not (divides and y == ZERO):
                    inexact = (float_bits(back) != float_bits(s)) | (not exact)
                    seen = cut(seen | (INEXACT if inexact else NONE), NONE)
                    seen = cut(seen | (TINY_INEXACT if inexact & (abs(s) < target.tiny_positive) else NONE), NONE)
                    code, x = rounded, back
                else:
                    other, raised = element(code, values[k, i], values[k, i], target)
                    code, seen = np.uint16(other), cut(seen | raised, NONE)
                    x = half_value(code)
                if keeps:
                    codes[k, i] = code
            codes[(values.shape[0] - 1) * keeps, i] = code
            flags[i] |= np.uint8(seen)
        return 0

    return jit.compiled(half_folding_loop)
