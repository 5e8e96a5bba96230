"""The oracle's conversions."""

from __future__ import annotations

import math
import operator
import struct
from fractions import Fraction
from typing import Any

from softfloat.formats import Format
from softfloat.kernels.spec import (
    INTEGER_INDEFINITE,
    INTEGER_SHORT_ZERO,
    INTEGER_ZERO,
    InfiniteInput,
    Overflow,
    Rounding,
)
from softfloat.reference.rounding import (
    check_random_bits,
    infinity_code,
    invalid_result,
    largest_code,
    nearby_integer,
    options_of,
    propagated,
    round_once,
    rules_for,
)
from softfloat.reference.values import (
    INEXACT,
    INVALID,
    FormatOrName,
    Kind,
    Options,
    Result,
    Value,
    operand_of,
    signed,
    two_to,
)

__all__ = ["convert", "encode", "round_to_integral", "to_integer"]


# -- conversions -----------------------------------------------------------------------------------------------------


def _nvidia_nan(value: Value, origin: str, fmt: Format, rules: Options) -> int | None:
    """The code that PTX's cvt makes of a NaN where it is not NVIDIA's one NaN, as read off H100 and H200; None where it is.

    .f32.bf16 moves the bits, .rna.tf32.f32 cuts the last 13 off, unseen: no bit of a payload left, infinity. From .f64 the first bits of the
    payload come along, to .f64 all of them, and the NaN is quiet.
    """
    cut = (origin, fmt.name) == ("bfloat16", "float32")
    cut = cut or ((origin, fmt.name) == ("float32", "tfloat32") and rules.rounding is Rounding.NEAREST_AWAY)
    narrow = ("float16", "bfloat16", "float32")
    kept = (origin == "float64" and fmt.name in narrow) or (origin in narrow and fmt.name == "float64")
    if not (cut or kept):
        return None
    quiet_bit = Fraction(0 if value.signalling and cut else 1, 2)
    fraction = math.floor((quiet_bit + value.payload / 2) * 2**fmt.mantissa_bits)
    return infinity_code(value.negative, fmt, rules) + fraction


def converted(value: Value, fmt: Format, rules: Options, origin: str = "") -> Result:
    """A value, read from the format of that name, in another."""
    if value.is_nan:
        code, flags = propagated([value], fmt, rules)
        of_chip = _nvidia_nan(value, origin, fmt, rules) if rules.nan == "nvidia" else None
        return code if of_chip is None else of_chip, flags
    if not value.is_infinite or (value.negative and not fmt.signed) or rules.projection == "p3109":
        return round_once(value, fmt, rules)
    choice = rules.infinite_input
    if choice is InfiniteInput.DEFAULT:
        choice = InfiniteInput.SATURATE if rules.overflow is Overflow.SATURATE else InfiniteInput.KEEP
    if choice is InfiniteInput.SATURATE:
        return largest_code(value.negative, fmt), 0
    return invalid_result(fmt, rules) if choice is InfiniteInput.NAN else (infinity_code(value.negative, fmt, rules), 0)


def _decode_float64(x: float) -> Value:
    (code,) = struct.unpack("<Q", struct.pack("<d", x))
    negative, quiet = bool(code >> 63), 2**51
    if math.isnan(x):
        return Value(Kind.NAN, negative, signalling=not code & quiet, payload=Fraction(code % quiet, quiet))
    return Value(Kind.INFINITE, negative) if math.isinf(x) else Value(Kind.FINITE, negative, abs(Fraction(x)))


def encode(x: int | float | Fraction, fmt: FormatOrName, **options: Any) -> Result:
    """The code of a number: an integer or fraction of any size, or a float64 (IEEE 754-2019 5.4.1, 5.4.2).

    Flags as in `round_exact`; INVALID for a signalling NaN. `infinite_input` rules infinities; `daz` counts a subnormal
    float64 as zero.

    Raises
    ------
    TypeError
        If `x` is of another type.
    ValueError
        As `round_exact`.
    """
    rules = rules_for(fmt, options)
    if isinstance(x, float):
        value = _decode_float64(x)
        if rules.daz and value.kind is Kind.FINITE and value.magnitude < two_to(-1022):
            value = value._replace(magnitude=Fraction(0))
        return converted(value, fmt, rules, "float64")
    if not isinstance(x, Fraction):
        try:
            x = Fraction(operator.index(x))
        except TypeError:
            raise TypeError(f"x must be an int, float or Fraction, got {type(x).__name__}") from None
    return converted(signed(x), fmt, rules)


def convert(code: int, src: FormatOrName, dst: FormatOrName, **options: Any) -> Result:
    """A code of `src` as a code of `dst` (IEEE 754-2019 5.4.2 convertFormat).

    Flags as in `round_exact`; INVALID for a signalling NaN. `infinite_input` rules infinities. Where the policy
    propagates NaNs, the payload's top bits are kept if both formats have payloads, and the sign if both have signed
    NaNs.

    Raises
    ------
    ValueError
        As `decode` and `round_exact`.
    """
    rules = rules_for(dst, options)
    return converted(operand_of(code, src, rules), dst, rules, src.name)


# -- integers --------------------------------------------------------------------------------------------------------


def round_to_integral(code: int, fmt: FormatOrName, exact: bool = True, **options: Any) -> Result:
    """The value of `code` rounded to an integer, as a code; a zero keeps the sign (IEEE 754-2019 5.9).

    Flags: INEXACT if the value changed and `exact`; INVALID for signalling NaNs, and for a zero in a format without
    zero; those of `round_exact` in a format too small for the integer. Errors as `round_exact`.
    """
    rules = rules_for(fmt, options)
    value = operand_of(code, fmt, rules)
    if value.is_nan:
        return propagated([value], fmt, rules)
    if value.is_infinite:
        return round_once(value, fmt, rules)
    integer = Fraction(nearby_integer(value.magnitude, value.negative, rules))
    result, flags = round_once(value._replace(magnitude=integer), fmt, rules)
    changed = exact and integer != value.magnitude and not flags & INVALID
    return result, flags | (INEXACT if changed else 0)


def to_integer(code: int, fmt: FormatOrName, bits: int, signed: bool, exact: bool = True, **options: Any) -> Result:
    """The value of `code` rounded to an integer of `bits` bits (IEEE 754-2019 5.8). Returns (integer, flags).

    Flags: INVALID alone for NaN and for what is out of range after rounding; INEXACT if the value changed and `exact`.
    Out of range the nearest integer of the type is delivered, NaN gives what the policy says; a policy with an "integer
    indefinite" delivers it for both.

    Raises
    ------
    ValueError
        As `decode`; `random_bits` missing.
    """
    rules = options_of(options)
    check_random_bits(rules)
    value = operand_of(code, fmt, rules)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if rules.policy.integer_nan == INTEGER_INDEFINITE:
        beyond_low = beyond_high = of_nan = low if signed else high
    else:
        beyond_low, beyond_high = low, high
        of_nan = 0 if rules.policy.integer_nan == INTEGER_ZERO else high
        if rules.policy.integer_nan == INTEGER_SHORT_ZERO:  # a word whose first bit alone is set, read as signed or not
            of_nan = 0 if bits < 64 else low if signed else 2**63
    if value.is_nan:
        return of_nan, INVALID
    if value.is_infinite:
        return (beyond_low if value.negative else beyond_high), INVALID
    magnitude = nearby_integer(value.magnitude, value.negative, rules)
    integer = -magnitude if value.negative else magnitude
    if integer < low:
        return beyond_low, INVALID
    if integer > high:
        return beyond_high, INVALID
    return integer, INEXACT if exact and magnitude != value.magnitude else 0
