"""The oracle's arithmetic: exact values on fractions.

>>> from softfloat.formats import float16
>>> add(0x6800, 0x3C00, float16)  # 2048 + 1 is a tie; the even neighbour is 2048
(26624, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath

from softfloat.formats import Format, check_format
from softfloat.kernels.spec import Rounding
from softfloat.reference.rounding import BY_DEFAULT, invalid_result, propagated, round_once, rules_for
from softfloat.reference.values import (
    DIVBYZERO,
    NAN,
    ROOT_BITS,
    UNDEFINED,
    Exact,
    FormatOrName,
    Kind,
    Options,
    Result,
    Value,
    decode,
    exactly,
    exponent_of,
    operand_of,
    signed,
    two_to,
)

__all__ = ["add", "div", "floor_divide", "fma", "fmod", "modulo", "mul", "remainder", "sqrt", "sub"]


# -- arithmetic ------------------------------------------------------------------------------------------------------


def evaluate(exact: Callable[..., Exact], codes: Sequence[int], fmt: Format, options: dict[str, Any]) -> Result:
    """Decode, settle NaNs, work exactly, round."""
    if not options:
        return settled(exact, [decode(code, fmt) for code in codes], fmt, BY_DEFAULT)
    formats, output = _formats(len(codes), fmt, options)
    rules = rules_for(output, options)
    values = [operand_of(code, own, rules) for code, own in zip(codes, formats, strict=True)]
    return settled(exact, values, output, rules)


def _formats(count: int, fmt: Format, options: dict[str, Any]) -> tuple[list[Format], Format]:
    """(formats of operands, format of the result): `b_format`, `c_format` and `out_format` are taken out of the options."""
    if not options:
        return [fmt] * count, fmt
    names = [f"{name}_format" for name in ("b", "c")[: count - 1]] + ["out_format"]
    *others, output = (check_format(options.pop(name, None) or fmt, name, wide=True) for name in names)
    return [fmt, *others], output


def settled(exact: Callable[..., Exact], values: Sequence[Value], fmt: Format, rules: Options) -> Result:
    """Settle NaNs, work exactly, round."""
    for x in values:
        if x[0] is NAN:
            return propagated(values, fmt, rules)
    result, flags = exact(*values, rules)
    code, raised = invalid_result(fmt, rules) if result is None else round_once(result, fmt, rules)
    return code, flags | raised


def _negated(x: Value) -> Value:
    return x._replace(negative=not x.negative)


def exact_sum(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite:
        return (None if y.is_infinite and x.negative != y.negative else x), 0
    if y.is_infinite:
        return y, 0
    total = x.number + y.number
    if not total:  # IEEE 754-2019 6.3: operands of one sign keep it; else +0, or -0 when rounding toward negative
        negative = x.negative if x.negative == y.negative else rules.rounding is Rounding.TOWARD_NEGATIVE
        return Value(Kind.FINITE, negative), 0
    return signed(total), 0


def _difference(x: Value, y: Value, rules: Options) -> Exact:
    return exact_sum(x, _negated(y), rules)


def exact_product(x: Value, y: Value, rules: Options) -> Exact:
    negative = x.negative != y.negative
    if x.is_infinite or y.is_infinite:
        return (None if x.is_zero or y.is_zero else Value(Kind.INFINITE, negative)), 0
    return Value(Kind.FINITE, negative, x.magnitude * y.magnitude), 0


def _no_poles(y: Value, rules: Options) -> bool:
    """Whether y is a zero that nothing is divided by (P3109 draft 4.0, 4.10)."""
    return y.is_zero and rules.projection == "p3109"


def _quotient(x: Value, y: Value, rules: Options) -> Exact:
    negative = x.negative != y.negative
    if (x.is_infinite and y.is_infinite) or (x.is_zero and y.is_zero):
        return None, 0
    if x.is_infinite:
        return (None if _no_poles(y, rules) else Value(Kind.INFINITE, negative)), 0
    if _no_poles(y, rules):
        return None, DIVBYZERO
    if y.is_zero:  # a finite number by zero: an exact infinity (IEEE 754-2019 7.3)
        return Value(Kind.INFINITE, negative), DIVBYZERO
    return Value(Kind.FINITE, negative, Fraction(0) if y.is_infinite else x.magnitude / y.magnitude), 0


def _remainder(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite or y.is_zero:
        return None, 0
    if y.is_infinite or x.is_zero:
        return x, 0
    n = round(x.magnitude / y.magnitude)  # Fraction rounds ties to even
    rest = x.magnitude - n * y.magnitude  # of |x|; remainder(-x, y) = -remainder(x, y)
    return Value(Kind.FINITE, x.negative != (rest < 0), abs(rest)), 0


def _square_root(x: Value, rules: Options) -> Exact:
    if x.is_zero:
        return x, 0
    if x.negative:
        return None, 0
    if x.is_infinite:
        return x, 0
    numerator, denominator = x.magnitude.as_integer_ratio()
    with mpmath.workprec(ROOT_BITS):
        radicand = mpmath.ldexp(numerator, 1 - denominator.bit_length())  # exact: the denominator is a power of two
        significand, exponent = mpmath.sqrt(radicand, rounding="d").man_exp
    below = significand * two_to(exponent)
    if below * below == x.magnitude:
        return Value(Kind.FINITE, False, below), 0
    # Irrational: anything strictly between the two neighbours of 128 bits rounds as the root does.
    return Value(Kind.FINITE, False, below + two_to(exponent_of(below) - ROOT_BITS)), 0


def exact_fused(x: Value, y: Value, z: Value, rules: Options) -> Exact:
    product, _ = exact_product(x, y, rules)
    return (None, 0) if product is None else exact_sum(product, z, rules)


def add(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a + b (IEEE 754-2019 5.4.1).

    `b_format` and `out_format` are those of b and of the result, if not `fmt`; so in `sub`, `mul`, `div`, `sqrt`, and, with
    `c_format`, in `fma`.

    Flags: INVALID for inf - inf and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(exact_sum, (a, b), fmt, options)


def sub(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - b (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf - inf and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(_difference, (a, b), fmt, options)


def mul(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a * b (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf * 0 and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(exact_product, (a, b), fmt, options)


def div(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a / b (IEEE 754-2019 5.4.1, 7.3).

    Flags: INVALID for 0/0, inf/inf and signalling NaNs; DIVBYZERO for a finite non-zero number by zero, which is an
    exact infinity: in a format without infinities what an overflow would deliver, without the flags of an overflow;
    else those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(_quotient, (a, b), fmt, options)


def remainder(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - n * b with n the integer nearest to a / b, ties to even; a zero has the sign of a (IEEE 754-2019 5.3.1).

    Flags: INVALID for infinite a, zero b and signalling NaNs; those of `round_exact` where the format cannot hold the
    result: it has no subnormals, no zero or no sign, or `ftz` flushes. Errors as `round_exact`.
    """
    return evaluate(_remainder, (a, b), fmt, options)


def sqrt(a: int, fmt: FormatOrName, **options: Any) -> Result:
    """The square root of a (IEEE 754-2019 5.4.1); that of -0 is -0.

    Flags: INVALID for negative numbers and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(_square_root, (a,), fmt, options)


def fma(a: int, b: int, c: int, fmt: FormatOrName, **options: Any) -> Result:
    """a * b + c, rounded once (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf * 0, inf - inf and signalling NaNs; for inf * 0 + NaN the policy says whether that is an
    invalid operation, with the default NaN as its result, or a NaN propagated (IEEE 754-2019 7.2 c leaves it open);
    those of `round_exact`. Where the policy looks at the addend first (Arm's FPMulAdd), that decides among NaN
    operands, and a signalling addend goes before inf * 0. Errors as `round_exact`.
    """
    formats, fmt = _formats(3, fmt, options)
    rules = rules_for(fmt, options)
    x, y, z = (operand_of(code, own, rules) for code, own in zip((a, b, c), formats, strict=True))
    product_invalid = (x.is_infinite and y.is_zero) or (x.is_zero and y.is_infinite)
    policy = rules.policy_for(fmt)
    addend_signals = policy.addend_first and z.is_nan and z.signalling
    if policy.product_invalid and product_invalid and not addend_signals:
        return invalid_result(fmt, rules)
    if policy.addend_first and z.is_nan:
        return propagated([z, x, y], fmt, rules)
    return settled(exact_fused, (x, y, z), fmt, rules)


def _floor_of_quotient(x: Value, y: Value, rules: Options) -> Exact:
    negative = x.negative != y.negative
    if y.is_zero:
        return _quotient(x, y, rules)
    if x.is_infinite:
        return UNDEFINED
    if y.is_infinite:
        return exactly(-1) if negative and not x.is_zero else (Value(Kind.FINITE, negative), 0)
    whole = math.floor(x.number / y.number)
    return (Value(Kind.FINITE, negative), 0) if whole == 0 else exactly(whole)


def floor_divide(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The floor of a / b (numpy.floor_divide), rounded once. A zero has the sign of the quotient.

    Flags: by zero as `div`; INVALID for infinite a by anything else, and for signalling NaNs; those of `round_exact`.
    Errors as `round_exact`.
    """
    return evaluate(_floor_of_quotient, (a, b), fmt, options)


def _rest(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite or y.is_zero:
        return UNDEFINED
    return Value(Kind.FINITE, x.negative, x.magnitude if y.is_infinite else x.magnitude % y.magnitude), 0


def fmod(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - n * b with n the quotient cut to an integer (C23 7.12.11.1); the sign is that of a. Flags and errors as `remainder`."""
    return evaluate(_rest, (a, b), fmt, options)


def _modulus(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite or y.is_zero:
        return UNDEFINED
    if y.is_infinite:
        if x.is_zero or x.negative == y.negative:
            return x._replace(negative=y.negative), 0
        return y, 0
    rest = x.number % y.number  # Python's own, with the sign of the divisor
    return Value(Kind.FINITE, y.negative, abs(rest)), 0


def modulo(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - floor(a / b) * b (numpy.remainder), rounded once; the sign is that of b, of a zero too.

    Flags: INVALID for infinite a, zero b and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(_modulus, (a, b), fmt, options)
