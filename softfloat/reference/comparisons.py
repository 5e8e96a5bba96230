"""The oracle's comparisons and selections."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from softfloat.formats import Format
from softfloat.reference.rounding import infinity_code, options_of, propagated, signalled
from softfloat.reference.values import (
    INEXACT,
    INVALID,
    UNDERFLOW,
    FormatOrName,
    Result,
    code_of,
    emin_of,
    operand_of,
    two_to,
)

__all__ = [
    "classify",
    "eq",
    "eq_signalling",
    "le",
    "le_signalling",
    "lt",
    "lt_signalling",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
]


# -- comparisons -----------------------------------------------------------------------------------------------------


def _compare(
    relation: Callable[[Any, Any], bool], signalling: bool, a: int, b: int, fmt: Format, options: dict[str, Any]
) -> tuple[bool, int]:
    rules = options_of(options)
    x, y = operand_of(a, fmt, rules), operand_of(b, fmt, rules)
    if x.is_nan or y.is_nan:
        return False, INVALID if signalling else signalled((x, y), rules)
    return relation(x.real, y.real), 0


def eq(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a = b (IEEE 754-2019 5.11, compareQuietEqual). Flags: INVALID for signalling NaNs."""
    return _compare(operator.eq, False, a, b, fmt, options)


def lt(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a < b (IEEE 754-2019 5.11, compareQuietLess). Flags: INVALID for signalling NaNs."""
    return _compare(operator.lt, False, a, b, fmt, options)


def le(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a <= b (IEEE 754-2019 5.11, compareQuietLessEqual). Flags: INVALID for signalling NaNs."""
    return _compare(operator.le, False, a, b, fmt, options)


def eq_signalling(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a = b (IEEE 754-2019 5.11, compareSignalingEqual). Flags: INVALID for NaNs."""
    return _compare(operator.eq, True, a, b, fmt, options)


def lt_signalling(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a < b (IEEE 754-2019 5.11, compareSignalingLess). Flags: INVALID for NaNs."""
    return _compare(operator.lt, True, a, b, fmt, options)


def le_signalling(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a <= b (IEEE 754-2019 5.11, compareSignalingLessEqual). Flags: INVALID for NaNs."""
    return _compare(operator.le, True, a, b, fmt, options)


NOTHING = Fraction(0)


def _extreme(largest: bool, number: bool, a: int, b: int, fmt: Format, options: dict[str, Any]) -> Result:
    rules = options_of(options)
    values = [operand_of(a, fmt, rules), operand_of(b, fmt, rules)]
    numbers = [x for x in values if not x.is_nan]
    if rules.policy.second_operand and not number and (len(numbers) < 2 or (values[0].is_zero and values[1].is_zero)):
        zero = values[1].is_zero  # Arm ARM, FPMax and FPMin, altfp: NaNs as they are
        return code_of(values[1].negative, NOTHING, fmt) if zero else b, 0 if len(numbers) == 2 else INVALID
    if rules.policy.number_signalling and number and any(x.signalling for x in values):
        return propagated(values, fmt, rules)  # Arm ARM, FPMaxNum and FPMinNum: only a quiet NaN gives way
    if not numbers or (len(numbers) < 2 and not number):
        return propagated(values, fmt, rules)
    ordered = sorted(numbers, key=lambda x: (x.real, not x.negative))  # -0 < +0
    chosen = ordered[-1] if largest else ordered[0]
    flags = signalled(values, rules)
    if chosen.is_infinite:
        return infinity_code(chosen.negative, fmt, rules), flags
    if rules.policy.number_signalling and number and rules.ftz and 0 < chosen.magnitude < two_to(emin_of(fmt)):
        return code_of(chosen.negative, NOTHING, fmt), flags | UNDERFLOW | INEXACT
    return code_of(chosen.negative, chosen.magnitude, fmt), flags


def minimum(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The smaller operand, -0 < +0; NaN if one is NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(False, False, a, b, fmt, options)


def maximum(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The larger operand, -0 < +0; NaN if one is NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(True, False, a, b, fmt, options)


def minimum_number(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The smaller operand, -0 < +0; the number beside a NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(False, True, a, b, fmt, options)


def maximum_number(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The larger operand, -0 < +0; the number beside a NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(True, True, a, b, fmt, options)


def classify(code: int, fmt: FormatOrName, **options: Any) -> str:
    """One of the ten classes of IEEE 754-2019 5.7.2, by name. No flags. Under `daz` a subnormal is a zero.

    The names: "signalling_nan", "quiet_nan", and ``negative_`` or ``positive_`` before "infinity", "normal", "subnormal",
    "zero".
    """
    value = operand_of(code, fmt, options_of(options))
    if value.is_nan:
        return "signalling_nan" if value.signalling else "quiet_nan"
    if value.is_infinite:
        size = "infinity"
    elif value.is_zero:
        size = "zero"
    else:
        size = "normal" if value.magnitude >= two_to(emin_of(fmt)) else "subnormal"
    return ("negative_" if value.negative else "positive_") + size
