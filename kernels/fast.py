"""Faster ways to the same bits, each for one common case: nearest-even, canonical NaN, no flushing, no payloads.

Every one is optional and is held, code and flags, against the loop it replaces. `_engine.run` says when which may be used.

Half precision goes through the CPU's own conversions (F16C) where the compiler may use them. For add, mul and div of halves, float32
has 24 >= 2*11 + 2 bits, so rounding there first is innocuous; fma folds its error in by rounding to odd.
"""

from functools import lru_cache
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from . import jit
from .jit import bits_float, cut, float_bits, kernel, shift_left, shift_right
from .spec import CARRIER32, CARRIER64


def has_f16c():
    """Whether compiled code may convert halves by the CPU. Without F16C, LLVM calls a routine that nobody links."""
    if jit.DISABLED:
        return False
    if numba.config.CPU_FEATURES is not None:
        return "+f16c" in numba.config.CPU_FEATURES
    if numba.config.CPU_NAME is not None:
        return False
    return binding.get_host_cpu_features().get("f16c", False)


@intrinsic
def half_code(context, x):
    """float32 to the code of a half, nearest even. NaNs keep their payload."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


@intrinsic
def half_value(context, code):
    """The code of a half to float32."""

    def codegen(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


INFINITE = np.float32(np.inf)
ZERO = np.float32(0)
NONE, INEXACT, TINY_INEXACT, OVERFLOWED, INVALID = (np.int32(x) for x in (0, 1, 3, 5, 16))
MAGNITUDE, INFINITE_BITS, QUIET_BITS = np.int32(0x7FFFFFFF), np.int32(0x7F800000), np.int32(0x7FC00000)
SMALLEST_BITS = np.int32(0x00800000)


# -- half through F16C ------------------------------------------------------------------------------------------------------------


@kernel
def half_signals(code):
    """Whether the code of a half is a signalling NaN: 0x7C01 ... 0x7DFF without its sign."""
    return np.uint16((code & np.uint16(0x7FFF)) - np.uint16(0x7C01)) < np.uint16(0x1FF)


@kernel
def float_signals(magnitude):
    """Whether the float32 with these bits, sign aside, is a signalling NaN."""
    return (magnitude > INFINITE_BITS) & (magnitude < QUIET_BITS)


@kernel
def half_result(s, exact, unordered, signals, limits):
    """(code, flags) of s: the result rounded to float32 (or, where `exact`, the result). Bits, not values, are compared: a host may flush subnormals."""
    code = half_code(s)
    back = half_value(code)
    inexact = (float_bits(back) != float_bits(s)) | (not exact)
    over = inexact & (abs(back) == INFINITE)
    flags = INEXACT if inexact else NONE
    flags = TINY_INEXACT if inexact & (abs(s) < limits.tiny) else flags
    flags = OVERFLOWED if over else flags
    code = (limits.overflow_negative if s < ZERO else limits.overflow_positive) if over else code
    code = limits.nan if s != s else code
    flags = (INVALID if signals | (not unordered) else NONE) if s != s else flags
    return code, flags


@kernel
def half_convert(code_a, code_b, code_c, limits):
    """float32 to half."""
    s = bits_float(code_a, ZERO)
    return half_result(s, True, s != s, float_signals(cut(code_a & MAGNITUDE, NONE)), limits)


@kernel
def half_add(code_a, code_b, code_c, limits):
    """a + b; exact if TwoSum's error is zero."""
    x, y = half_value(code_a), half_value(code_b)
    s = x + y
    shadow = s - x
    error = (x - (s - shadow)) + (y - shadow)
    return half_result(s, not (abs(error) > ZERO), (x != x) | (y != y), half_signals(code_a) | half_signals(code_b), limits)


@kernel
def half_sub(code_a, code_b, code_c, limits):
    """a - b. Flipping a NaN's sign changes nothing that shows."""
    return half_add(code_a, np.uint16(code_b ^ np.uint16(0x8000)), code_c, limits)


@kernel
def half_mul(code_a, code_b, code_c, limits):
    """a * b: 22 bits."""
    x, y = half_value(code_a), half_value(code_b)
    return half_result(x * y, True, (x != x) | (y != y), half_signals(code_a) | half_signals(code_b), limits)


@kernel
def half_div(code_a, code_b, code_c, limits):
    """a / b; exact if the remainder is zero. The quotient's 12 high bits times b, and its 12 low ones, are exact in float32."""
    x, y = half_value(code_a), half_value(code_b)
    q = x / y
    high = bits_float(cut(float_bits(q) & np.int32(-4096), NONE), ZERO)
    rest = (x - high * y) - (q - high) * y
    code, flags = half_result(q, not (abs(rest) > ZERO), (x != x) | (y != y), half_signals(code_a) | half_signals(code_b), limits)
    by_zero = (y == ZERO) & (abs(x) < INFINITE) & (x != ZERO)
    return code, np.int32(8) if by_zero else flags


@kernel
def half_fma(code_a, code_b, code_c, limits):
    """a * b + c. Here rounding to float32 first would not be innocuous; rounding to odd is."""
    x, y, z = half_value(code_a), half_value(code_b), half_value(code_c)
    product = x * y
    s = product + z
    shadow = s - product
    error = (product - (s - shadow)) + (z - shadow)
    bits = float_bits(s)
    moved = cut(bits + INEXACT, NONE) if cut(bits ^ float_bits(error), NONE) >= NONE else cut(bits - INEXACT, NONE)
    inexact = abs(error) > ZERO
    s = bits_float(moved, ZERO) if inexact & (cut(bits & INEXACT, NONE) == NONE) else s
    operand_nan = (x != x) | (y != y)
    signals = half_signals(code_a) | half_signals(code_b) | half_signals(code_c) | ((product != product) & (not operand_nan))
    return half_result(s, not inexact, operand_nan | (z != z), signals, limits)


# -- float32 to bfloat16, on integers ---------------------------------------------------------------------------------------------


@kernel
def bfloat16_convert(code_a, code_b, code_c, limits):
    """float32 to bfloat16: the high half of the bits, plus one where the low half is more than a half or ties with an odd."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    odd = cut(shift_right(magnitude, 16) & INEXACT, NONE)
    rounded = cut(magnitude + cut(odd + np.int32(0x7FFF), NONE), NONE)
    sign = cut(shift_right(code_a, 16) & np.int32(0x8000), NONE)
    code = cut(shift_right(rounded, 16) | sign, NONE)
    flags = (TINY_INEXACT if magnitude < limits.tiny_bits else INEXACT) if cut(magnitude & np.int32(0xFFFF), NONE) != NONE else NONE
    over = (rounded >= INFINITE_BITS) | (rounded < NONE)
    code = (limits.overflow_negative if code_a < NONE else limits.overflow_positive) if over else code
    flags = OVERFLOWED if over else flags
    special = magnitude >= INFINITE_BITS
    code = (limits.infinity_negative if code_a < NONE else limits.infinity_positive) if special else code
    flags = NONE if special else flags
    code = limits.nan if magnitude > INFINITE_BITS else code
    flags = INVALID if float_signals(magnitude) else flags
    return code, flags


# -- float32 to any narrow format ---------------------------------------------------------------------------------------------------


@kernel
def narrow_scaled(magnitude, limits):
    """(y, base): `rounding.scaled`, on the bits of a positive float32, for formats with subnormals. A float32 subnormal is as good as 2^-126."""
    raised = max(magnitude, limits.lowest_bits)
    exponent = shift_right(raised, 23)
    scale = shift_left(cut(limits.scale_exponent - exponent, NONE), 23)
    base = shift_left(cut(exponent - limits.lowest_exponent, NONE), limits.mantissa_bits)
    value = max(magnitude, SMALLEST_BITS) if magnitude != NONE else magnitude
    return bits_float(value, ZERO) * bits_float(scale, ZERO), base


@kernel
def narrow_result(code_a, magnitude, y, n, base, tiny, limits):
    """(code, flags) once n is chosen."""
    count = cut(float_bits(n + np.float32(2.0**23)) - np.int32(0x4B000000), NONE)
    code = cut(base + count, NONE)
    over = code > limits.largest
    flags = (TINY_INEXACT if tiny else INEXACT) if n != y else NONE
    flags = OVERFLOWED if over else flags
    code = limits.overflow_positive if over else code
    code = cut(code | limits.sign, NONE) if code_a < NONE else code
    code = (limits.overflow_negative if code_a < NONE else code) if over else code
    special = magnitude >= INFINITE_BITS
    code = (limits.infinity_negative if code_a < NONE else limits.infinity_positive) if special else code
    flags = NONE if special else flags
    code = limits.nan if magnitude > INFINITE_BITS else code
    flags = INVALID if float_signals(magnitude) else flags
    return code, flags


@kernel
def narrow_convert(code_a, code_b, code_c, limits):
    """float32 to a narrow format with subnormals and signed zero."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    y, base = narrow_scaled(magnitude, limits)
    return narrow_result(code_a, magnitude, y, np.rint(y), base, magnitude < limits.tiny_bits, limits)


OPERATIONS = {
    ("half", "convert"): half_convert,
    ("half", "add"): half_add,
    ("half", "sub"): half_sub,
    ("half", "mul"): half_mul,
    ("half", "div"): half_div,
    ("half", "fma"): half_fma,
    ("bfloat16", "convert"): bfloat16_convert,
    ("narrow", "convert"): narrow_convert,
}


class Limits(NamedTuple):
    """What these loops know of a target."""

    tiny: float
    tiny_bits: int
    overflow_positive: int
    overflow_negative: int
    infinity_positive: int
    infinity_negative: int
    nan: int
    sign: int
    largest: int
    mantissa_bits: int
    lowest_exponent: int
    lowest_bits: int
    scale_exponent: int


def limits(target):
    """From a `spec.Target` of the wide carrier."""
    tiny = np.float32(target.tiny_positive)
    lowest_exponent = target.lowest_exponent - CARRIER64.bias + CARRIER32.bias
    return Limits(
        tiny,
        *map(
            np.int32,
            (
                tiny.view(np.int32),
                target.overflow_positive,
                target.overflow_negative,
                target.infinity_positive,
                target.infinity_negative,
                target.nan,
                target.sign,
                target.largest,
                target.mantissa_bits,
                lowest_exponent,
                lowest_exponent << CARRIER32.fraction_bits,
                2 * CARRIER32.bias + target.mantissa_bits,
            ),
        ),
    )


@lru_cache(maxsize=None)
def elementwise(family, operation, each):
    """loop(a, b, c, codes, flags, limits) -> flags OR-ed together, 0 where `each`."""
    digest = jit.SOURCE_DIGEST
    element = OPERATIONS[family, operation]

    def fast_loop(a, b, c, codes, flags, limits):
        digest  # noqa: B018
        seen = NONE
        for i in range(codes.size):
            code, raised = element(a[i], b[i], c[i], limits)
            codes[i] = code
            if each:
                flags[i] = raised
            else:
                seen = cut(seen | raised, NONE)
        return seen

    return jit.compiled(fast_loop)
