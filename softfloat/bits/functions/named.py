"""Mathematical functions of codes, correctly rounded in every format and every mode. `softfloat.bits` hands them on.

A result is found in two steps, and rounded in a third, by the one function that rounds everything:

1. NumPy's float64 function gives `near + more`, two float64, and a generous bound of their error. Both ends of that
   interval are cut to a number of significant bits, the last one sticky. Where both give the same, that is the result,
   on every platform, whatever its libm.
2. Where they differ, knowledge decides first: which results are exact is a theorem for each function (`exactness`).
   All others are irrational, or have more bits than are kept; mpmath computes them with rising precision until the side is
   clear.

More than p + 2 bits never change what a deterministic mode delivers: 30 serve all formats. Stochastic rounding gets 30 to 42,
and where the random bits of an element leave a side open with those, the value to some 140 bits.

Results near 1, or near the operand, come as that number and a small one to be added: the side on which the exact result lies is then
known however small the difference.

Values in wide formats all come from mpmath (`wide`).

Unary functions in other formats of at most 16 bits are looked up in tables, made on first use. So are those of two operands where
one is the same for all elements, once half as many results have been asked for as a table has; and those of 8 bits, for as large
arrays.

>>> exp(0x3C00, "float16")  # e, as 2.71875
(np.uint16(16752), np.uint8(1))
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias, Unpack

import numpy as np

from softfloat import engine
from softfloat.bits.functions import ways, wide
from softfloat.bits.functions.table import FUNCTIONS
from softfloat.engine import Call, Options, calls, check_codes
from softfloat.environments import Settings
from softfloat.formats import Format, check_format

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "floor_divide",
    "fmod",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "modulo",
    "pow",
    "radians",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

Result: TypeAlias = tuple[Any, Any]


class Unary(Protocol):
    """A function of codes."""

    def __call__(self, a: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
        """Codes in, (codes, flags) out."""


class Binary(Protocol):
    """A function of two arrays of codes, which broadcast."""

    def __call__(self, a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
        """Codes in, (codes, flags) out."""


@lru_cache(maxsize=512)
def _lookup(name: str, fmt: Format, whole: Settings) -> ways.Lookup | None:
    """The results at every code, if there may be such."""
    settings = whole.for_format(fmt.name)
    if fmt.wide or fmt.spec.width > ways.TABLE_BITS or settings.rounding.draws or engine.loops().jit.DISABLED:
        return None
    return ways.lookup(name, fmt.spec, engine.rule_for(settings, fmt, False))


def _is_two(x: Any, fmt: Format) -> bool:
    """Whether something is the code of 2, and no array of several."""
    whole = type(x) is int or (isinstance(x, np.ndarray | np.generic) and x.dtype == fmt.dtype and x.ndim == 0)
    return whole and x == ways.code_of_two(fmt.spec)


def _has_values(name: str, fmt: Format) -> bool:
    """Whether values are found here, and not by a loop of their own."""
    return name in (wide.WIDE_FUNCTIONS if fmt.wide else FUNCTIONS)


def _straight(name: str, given: tuple[Any, ...], fmt: Format, options: Options) -> Result | None:
    """Small calls that need no looking into; None for others."""
    if not _has_values(name, fmt):
        return calls.arithmetic(name, given, fmt, options)
    if name == "pow" and _is_two(given[1], fmt):
        return calls.arithmetic("mul", (given[0], given[0]), fmt, options)
    asked = calls.brief(options, engine.uses_of(name)) if len(given) == 1 else None
    taken = None if asked is None else calls.operands(given, fmt)
    if asked is None or taken is None:
        return None
    whole, each, _ = asked
    (a,), shape = taken
    lookup = _lookup(name, fmt, whole)
    tables = None if lookup is None else lookup.ready(a.size)
    if tables is None:
        return None
    codes, flags = np.empty(a.size, fmt.dtype), np.empty(a.size if each else 0, np.uint8)
    seen = engine.loops().gathering(each)(a, codes, flags, *tables)
    return calls.results(codes, flags, int(seen), shape, each)


def _run(name: str, operands: dict[str, Any], fmt: Format | str, options: Options) -> Result:
    fmt = check_format(fmt, wide=True)
    found = _straight(name, tuple(operands.values()), fmt, options)
    if found is not None:
        return found
    call = Call(options, fmt, uses=engine.uses_of(name))
    codes = [check_codes(x, fmt, argument) for argument, x in operands.items()]
    return engine.run(
        name,
        codes,
        list(operands),
        fmt.spec,
        fmt,
        call.settings,
        out=call.out,
        flags=call.flags,
        random_bits=call.random_bits,
        stream=call.stream,
        position=call.position,
        work=(partial(wide.work, fmt) if fmt.wide else ways.work) if _has_values(name, fmt) else None,
    )


def _documented(function: Any, name: str, summary: str, source: str, shape: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{summary}\n\n    Codes in, (codes, flags) out, of the shape {shape}. INVALID for signalling NaNs; INEXACT, UNDERFLOW\n"
        f"    and OVERFLOW as rounding makes them. Source: {source}.\n    "
    )
    return function


IEEE = "IEEE 754-2019 9.2"


def _unary(name: str, summary: str, source: str = IEEE) -> Unary:
    def function(a: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
        return _run(name, {"a": a}, fmt, options)

    made: Unary = _documented(function, name, summary, source, "of `a`")
    return made


def _binary(name: str, summary: str, source: str = IEEE) -> Binary:
    def function(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
        return _run(name, {"a": a, "b": b}, fmt, options)

    made: Binary = _documented(function, name, summary, source, "the operands broadcast to")
    return made


exp = _unary("exp", "e^a. Exact for 0 and infinities.")
exp2 = _unary("exp2", "2^a. Exact for integers and infinities.")
exp10 = _unary("exp10", "10^a. Exact for integers from 0 on, as far as the format has them.")
expm1 = _unary("expm1", "e^a - 1. Exact for zeros, which keep their sign, and infinities.")
log = _unary("log", "The natural logarithm. DIVBYZERO for zeros: -inf; INVALID below zero. log(1) is +0.")
log2 = _unary("log2", "The binary logarithm. DIVBYZERO for zeros: -inf; INVALID below zero. Exact for powers of 2.")
log10 = _unary("log10", "The decimal logarithm. DIVBYZERO for zeros: -inf; INVALID below zero. Exact for powers of 10.")
log1p = _unary("log1p", "log(1 + a). DIVBYZERO for -1: -inf; INVALID below -1. Zeros keep their sign.")
sin = _unary("sin", "The sine of radians, of any size. INVALID for infinities. Zeros keep their sign.")
cos = _unary("cos", "The cosine of radians, of any size. INVALID for infinities.")
tan = _unary("tan", "The tangent of radians, of any size. INVALID for infinities. Zeros keep their sign.")
asin = _unary("asin", "The arcsine, -pi/2 to pi/2. INVALID beyond -1 and 1. Zeros keep their sign.")
acos = _unary("acos", "The arccosine, 0 to pi. INVALID beyond -1 and 1. acos(1) is +0.")
atan = _unary("atan", "The arctangent, -pi/2 to pi/2. Zeros keep their sign.")
sinh = _unary("sinh", "The hyperbolic sine. Zeros keep their sign.")
cosh = _unary("cosh", "The hyperbolic cosine.")
tanh = _unary("tanh", "The hyperbolic tangent; that of infinities is exact. Zeros keep their sign.")
asinh = _unary("asinh", "The inverse hyperbolic sine. Zeros keep their sign.")
acosh = _unary("acosh", "The inverse hyperbolic cosine, from 0 on. INVALID below 1. acosh(1) is +0.")
atanh = _unary(
    "atanh", "The inverse hyperbolic tangent. DIVBYZERO for -1 and 1; INVALID beyond. Zeros keep their sign."
)
cbrt = _unary("cbrt", "The cube root, of negative numbers too. Zeros keep their sign.", f"{IEEE} (rootn with n = 3)")
degrees = _unary("degrees", "a * 180 / pi, rounded once.", "numpy.degrees")
radians = _unary("radians", "a * pi / 180, rounded once.", "numpy.radians")
pow = _binary(
    "pow",
    "a^b. INVALID for a negative finite a and a b that is no integer; DIVBYZERO for a zero to a negative finite b.\n\n"
    "    pow(x, 0) and pow(1, y) are 1 for quiet NaNs too, pow(-1, inf) is 1. Exact wherever the result is a number of the format.",
)
hypot = _binary("hypot", "The square root of a*a + b*b, infinite beside an infinity even for a quiet NaN.")
atan2 = _binary(
    "atan2", "The angle of the point (b, a), -pi to pi; of zeros and infinities by C's table.", f"{IEEE}, C23 F.10.1.4"
)
logaddexp = _binary("logaddexp", "log(e^a + e^b).", "numpy.logaddexp")
logaddexp2 = _binary("logaddexp2", "log2(2^a + 2^b).", "numpy.logaddexp2")
floor_divide = _binary(
    "floor_divide",
    "The floor of the exact quotient, rounded once. By zero as `div`; INVALID for an infinite a by anything but zero.",
    "numpy.floor_divide",
)
fmod = _binary(
    "fmod",
    "a - n*b, n the quotient cut to an integer: exact, with the sign of a. INVALID for infinite a and zero b.",
    "C23 7.12.11.1",
)
modulo = _binary(
    "modulo",
    "a - floor(a/b)*b, rounded once, with the sign of b, a zero too. INVALID for infinite a and zero b.",
    "numpy.remainder, Python's %",
)
