"""Arithmetic on codes, each result rounded once."""

from __future__ import annotations

from typing import Any, TypeAlias, Unpack

from softfloat.engine import Call, Options, calls, check_boolean, check_codes
from softfloat.formats import Format, check_format

__all__ = ["add", "div", "fma", "mul", "remainder", "round_to_integral", "sqrt", "sub"]


Result: TypeAlias = tuple[Any, Any]


def _arithmetic(
    operation: str, fmt: Format | str, operands: dict[str, Any], options: Options, extra: float = 0.0
) -> Result:
    fmt = check_format(fmt)
    found = calls.arithmetic(operation, tuple(operands.values()), fmt, options, extra)
    if found is not None:
        return found
    call = Call(options, fmt)
    codes = [check_codes(x, fmt, name) for name, x in operands.items()]
    return call.run(operation, codes, list(operands), fmt.spec, fmt, extra)


# -- arithmetic ------------------------------------------------------------------------------------------------------


def add(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a + b. INEXACT, OVERFLOW; INVALID for infinities of opposite sign and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.

    >>> add([0x3C00, 0x7BFF], 0x7BFF, "float16", flags="any")
    (array([31743, 31744], dtype=uint16), 5)
    """
    return _arithmetic("add", fmt, {"a": a, "b": b}, options)


def sub(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a - b. INEXACT, OVERFLOW; INVALID for infinities of the same sign and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.
    """
    return _arithmetic("sub", fmt, {"a": a, "b": b}, options)


def mul(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a * b. INEXACT, UNDERFLOW, OVERFLOW; INVALID for 0 * inf and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.
    """
    return _arithmetic("mul", fmt, {"a": a, "b": b}, options)


def div(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a / b. INEXACT, UNDERFLOW, OVERFLOW; DIVBYZERO for a finite a over 0; INVALID for 0/0, inf/inf, signalling NaNs.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.4.1, 7.3.

    >>> div(0x3C00, 0x8000, "float16")
    (np.uint16(64512), np.uint8(8))
    """
    return _arithmetic("div", fmt, {"a": a, "b": b}, options)


def remainder(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a - n*b, n the integer nearest a/b, ties to even: exact. INVALID for infinite a, zero b, signalling NaNs.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.3.1.
    """
    return _arithmetic("remainder", fmt, {"a": a, "b": b}, options)


def sqrt(a: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The square root. INEXACT; INVALID for negative numbers and signalling NaNs; -0 stays. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape of `a`.
    """
    return _arithmetic("sqrt", fmt, {"a": a}, options)


def fma(a: Any, b: Any, c: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a * b + c, rounded once. INEXACT, UNDERFLOW, OVERFLOW; INVALID for 0 * inf (by the NaN policy also if c is NaN), inf - inf.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.4.1, 7.2.

    >>> fma(0x3C01, 0x3C01, 0xBC02, "float16")  # the residual that mul, then add, loses
    (np.uint16(16), np.uint8(0))
    """
    return _arithmetic("fma", fmt, {"a": a, "b": b, "c": c}, options)


def round_to_integral(a: Any, fmt: Format | str, *, exact: bool = True, **options: Unpack[Options]) -> Result:
    """a rounded to an integer in the same format, by `rounding`; the sign stays. INEXACT if that changes it and `exact`; INVALID for sNaN.

    Codes in, (codes, flags) out, of the shape of `a`. Source: IEEE 754-2019 5.3.1 and 5.9 (roundToIntegralExact).
    """
    return _arithmetic("round_to_integral", fmt, {"a": a}, options, extra=float(check_boolean("exact", exact)))
