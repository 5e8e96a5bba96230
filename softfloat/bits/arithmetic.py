"""Arithmetic on codes, each result rounded once."""

from __future__ import annotations

from typing import Any, TypeAlias, Unpack

from softfloat.engine import Call, Options, calls, check_boolean, check_codes, uses_of, widened
from softfloat.engine.arguments import has_one, on_device
from softfloat.formats import Format, check_format, float32
from softfloat.kernels.spec import FLOAT64

__all__ = ["add", "div", "fma", "mul", "remainder", "round_to_integral", "sqrt", "sub"]


Result: TypeAlias = tuple[Any, Any]


LEAST_QUANTA = -1000
"""Exponents of the least product in the result's quanta: below, it would be lost in float64."""

Named = Format | str | None


def _arithmetic(
    operation: str,
    fmt: Format | str,
    operands: dict[str, Any],
    options: Options,
    extra: float = 0.0,
    others: tuple[Named, ...] = (),
    out_format: Named = None,
) -> Result:
    fmt = check_format(fmt, wide=True)
    if out_format is not None or any(x is not None for x in others):
        return _mixed(operation, fmt, operands, options, others, out_format)
    found = calls.arithmetic(operation, tuple(operands.values()), fmt, options, extra)
    if found is not None:
        return found
    call = Call(options, fmt, uses=uses_of(operation))
    return run(call, operation, operands, fmt, fmt, extra)


def run(call: Call, operation: str, operands: dict[str, Any], read: Format, fmt: Format, extra: float = 0.0) -> Result:
    """An operation on codes of one format, where they are: here or on a GPU."""
    if any(map(on_device, operands.values())):
        from softfloat.cuda import elementwise

        return elementwise.run(operation, operands, read, fmt, call, extra)
    codes = [check_codes(x, read, name) for name, x in operands.items()]
    return call.run(operation, codes, list(operands), read.spec, fmt, extra)


def _mixed(
    operation: str,
    fmt: Format,
    operands: dict[str, Any],
    options: Options,
    others: tuple[Named, ...],
    out_format: Named,
) -> Result:
    """Operands of formats of their own, and a result of another: the exact value, rounded once."""
    formats = [fmt]
    for name, other in zip(list(operands)[1:], others, strict=False):
        formats.append(fmt if other is None else check_format(other, f"{name}_format", wide=True))
    output = fmt if out_format is None else check_format(out_format, "out_format", wide=True)
    wide = output.wide or any(x.wide for x in formats)
    lowest = 2 * min(x.emin - x.mantissa_bits for x in formats) - (output.emin - output.mantissa_bits)
    if lowest < LEAST_QUANTA and not wide:
        raise ValueError(
            f"out_format={output.name!r} is too far above {', '.join(repr(x.name) for x in formats)}: their products go down to "
            f"2^{lowest} of its smallest steps; accepted: down to 2^{LEAST_QUANTA}"
        )
    alike = all(x == fmt for x in formats)
    found = calls.arithmetic(operation, tuple(operands.values()), fmt, options, output=output) if alike else None
    if found is not None:
        return found
    call = Call(options, output, uses=uses_of(operation))
    flushes = [call.whole.for_format(own.name).daz for own in formats]
    if alike:
        call.settings = call.settings.replace(daz=flushes[0])
        return run(call, operation, operands, fmt, output)
    codes = [check_codes(x, own, name) for (name, x), own in zip(operands.items(), formats, strict=True)]
    codes = [widened(x, own, daz) for x, own, daz in zip(codes, formats, flushes, strict=True)]
    call.settings = call.settings.replace(daz=False)
    return call.run(operation, codes, list(operands), FLOAT64, output, narrowed=not wide)


# -- arithmetic ------------------------------------------------------------------------------------------------------


def add(
    a: Any, b: Any, fmt: Format | str, *, b_format: Named = None, out_format: Named = None, **options: Unpack[Options]
) -> Result:
    """a + b. INEXACT, OVERFLOW; INVALID for infinities of opposite sign and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. `fmt` is the format of a, `b_format` that of b and
    `out_format` that of the result, if others: the exact value is rounded once (formatOf operations, IEEE 754-2019 5.4.1; P3109
    draft 4.0, 4.10). `sub`, `mul`, `div`, `sqrt` and `fma` likewise. Settings are those for results in the output's format, but
    `daz`: each operand is read by its own format's.

    >>> add([0x3C00, 0x7BFF], 0x7BFF, "float16", flags="any")
    (array([31743, 31744], dtype=uint16), 5)
    """
    return _arithmetic("add", fmt, {"a": a, "b": b}, options, others=(b_format,), out_format=out_format)


def sub(
    a: Any, b: Any, fmt: Format | str, *, b_format: Named = None, out_format: Named = None, **options: Unpack[Options]
) -> Result:
    """a - b. INEXACT, OVERFLOW; INVALID for infinities of the same sign and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.
    """
    return _arithmetic("sub", fmt, {"a": a, "b": b}, options, others=(b_format,), out_format=out_format)


def mul(
    a: Any, b: Any, fmt: Format | str, *, b_format: Named = None, out_format: Named = None, **options: Unpack[Options]
) -> Result:
    """a * b. INEXACT, UNDERFLOW, OVERFLOW; INVALID for 0 * inf and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.
    """
    return _arithmetic("mul", fmt, {"a": a, "b": b}, options, others=(b_format,), out_format=out_format)


def div(
    a: Any, b: Any, fmt: Format | str, *, b_format: Named = None, out_format: Named = None, **options: Unpack[Options]
) -> Result:
    """a / b. INEXACT, UNDERFLOW, OVERFLOW; DIVBYZERO for a finite a over 0; INVALID for 0/0, inf/inf, signalling NaNs.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.4.1, 7.3.

    >>> div(0x3C00, 0x8000, "float16")
    (np.uint16(64512), np.uint8(8))
    """
    return _arithmetic("div", fmt, {"a": a, "b": b}, options, others=(b_format,), out_format=out_format)


def reciprocal(a: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """1 / a, as `div`, in formats that have no 1 too.

    Codes in, (codes, flags) out, of the shape of `a`.
    """
    fmt = check_format(fmt, wide=True)
    if has_one(fmt):
        return div(fmt.one_code, a, fmt, **options)
    return div(float32.one_code, a, float32, b_format=fmt, out_format=fmt, **options)


def remainder(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a - n*b, n the integer nearest a/b, ties to even: exact. INVALID for infinite a, zero b, signalling NaNs.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.3.1.
    """
    return _arithmetic("remainder", fmt, {"a": a, "b": b}, options)


def sqrt(a: Any, fmt: Format | str, *, out_format: Named = None, **options: Unpack[Options]) -> Result:
    """The square root. INEXACT; INVALID for negative numbers and signalling NaNs; -0 stays. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape of `a`.
    """
    return _arithmetic("sqrt", fmt, {"a": a}, options, out_format=out_format)


def fma(
    a: Any,
    b: Any,
    c: Any,
    fmt: Format | str,
    *,
    b_format: Named = None,
    c_format: Named = None,
    out_format: Named = None,
    **options: Unpack[Options],
) -> Result:
    """a * b + c, rounded once. INEXACT, UNDERFLOW, OVERFLOW; INVALID for 0 * inf (by the NaN policy also if c is NaN), inf - inf.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.4.1, 7.2.

    >>> fma(0x3C01, 0x3C01, 0xBC02, "float16")  # the residual that mul, then add, loses
    (np.uint16(16), np.uint8(0))
    """
    operands = {"a": a, "b": b, "c": c}
    return _arithmetic("fma", fmt, operands, options, others=(b_format, c_format), out_format=out_format)


def round_to_integral(a: Any, fmt: Format | str, *, exact: bool = True, **options: Unpack[Options]) -> Result:
    """a rounded to an integer in the same format, by `rounding`; the sign stays. INEXACT if that changes it and `exact`; INVALID for sNaN.

    Codes in, (codes, flags) out, of the shape of `a`. Source: IEEE 754-2019 5.3.1 and 5.9 (roundToIntegralExact).
    """
    return _arithmetic("round_to_integral", fmt, {"a": a}, options, extra=float(check_boolean("exact", exact)))
