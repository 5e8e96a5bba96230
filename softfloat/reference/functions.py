"""The oracle's mathematical functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath

from softfloat.formats import Format
from softfloat.reference.arithmetic import evaluate, settled
from softfloat.reference.rounding import round_once, rules_for, signalled
from softfloat.reference.values import (
    DIVBYZERO,
    ROOT_BITS,
    UNDEFINED,
    Exact,
    FormatOrName,
    Kind,
    Options,
    Result,
    Value,
    exactly,
    exponent_of,
    operand_of,
    two_to,
)

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
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "pow",
    "radians",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


# -- mathematical functions ------------------------------------------------------------------------------------------

SETTLED_BITS = (
    128  # numbers between the same neighbours of so many bits are on one side of every candidate, tie and threshold
)
BEYOND = 2000  # 2^2000 overflows every format, 2^-2000 is on the same side of everything as any smaller number
LOST_BITS = (
    60  # of mpmath's working precision, by cancellation and by its own errors: more than any function here loses
)
ROOM = 40
Reals = tuple[Fraction, ...]


def _mpf(x: Fraction) -> Any:
    """An operand, exactly: its denominator is a power of two."""
    return mpmath.ldexp(x.numerator, 1 - x.denominator.bit_length())


@lru_cache(maxsize=1 << 18)
def _settled(compute: Callable[..., Any], *operands: Fraction) -> Fraction:
    """A number between the same neighbours of 128 bits as a value that has no 128 bits itself; mpmath computes it ever more precisely."""
    precision = 256
    while True:
        with mpmath.workprec(precision):
            value = compute(*map(_mpf, operands))
            significand, exponent = mpmath.mpf(value).man_exp
        size, exponent, sign = abs(int(significand)), int(exponent), -1 if value < 0 else 1
        length = size.bit_length()
        top, beyond = exponent + length, length - SETTLED_BITS
        if abs(top) > BEYOND:
            return sign * two_to(BEYOND if top > 0 else -BEYOND)
        slack = 1 << max(beyond + SETTLED_BITS + LOST_BITS - precision, 0)
        if beyond > 0 and slack < size & ((1 << beyond) - 1) < (1 << beyond) - slack:
            middle, place = sign * ((size >> beyond) * 2 + 1), top - SETTLED_BITS - 1
            return Fraction(middle << place) if place >= 0 else Fraction(middle, 1 << -place)
        precision *= 2


def _near(limit: int, side: int) -> Fraction:
    """A number next to an integer, on one side."""
    return limit + side * two_to(-BEYOND)


def _is_power_of_two(x: Fraction) -> bool:
    return x > 0 and x.numerator.bit_count() == 1 and x.denominator.bit_count() == 1


def _power_of_two(x: Any) -> Any:
    return mpmath.power(2, x)


def _power_of_ten(x: Any) -> Any:
    return mpmath.power(10, x)


def _binary_logarithm(x: Any) -> Any:
    return mpmath.log(x, 2)


def _exp(x: Fraction) -> Fraction:
    if abs(x) > BEYOND:
        return two_to(BEYOND if x > 0 else -BEYOND)
    return Fraction(1) if x == 0 else _settled(mpmath.exp, x)


def _exp2(x: Fraction) -> Fraction:
    x = max(min(x, Fraction(BEYOND)), Fraction(-BEYOND))
    return two_to(int(x)) if x.denominator == 1 else _settled(_power_of_two, x)


def _exp10(x: Fraction) -> Fraction:
    x = max(min(x, Fraction(BEYOND)), Fraction(-BEYOND))
    return Fraction(10) ** int(x) if x.denominator == 1 else _settled(_power_of_ten, x)


def _expm1(x: Fraction) -> Fraction:
    if abs(x) > BEYOND:
        return two_to(BEYOND) if x > 0 else _near(-1, 1)
    return _settled(mpmath.expm1, x) if x else x


def _log2(x: Fraction) -> Fraction:
    return Fraction(exponent_of(x)) if _is_power_of_two(x) else _settled(_binary_logarithm, x)


def _log10(x: Fraction) -> Fraction:
    decimal = str(x.numerator)
    if x.denominator == 1 and decimal.rstrip("0") == "1":
        return Fraction(len(decimal) - 1)
    return _settled(mpmath.log10, x)


def _irrational(function: Callable[..., Any], exact: Fraction | None = Fraction(0)) -> Callable[[Fraction], Fraction]:
    """A function whose value at `exact` is 0 and which is irrational elsewhere."""
    return lambda x: Fraction(0) if x == exact else _settled(function, x)


def _hyperbolic(function: Callable[..., Any]) -> Callable[[Fraction], Fraction]:
    """sinh, cosh and tanh, far from 0 by their limits."""
    limits = {"tanh": _near(1, -1)}

    def value(x: Fraction) -> Fraction:
        if x == 0:
            return Fraction(function is mpmath.cosh)
        if abs(x) > BEYOND:
            limit = limits["tanh"] if function is mpmath.tanh else two_to(BEYOND)
            return -limit if x < 0 and function is not mpmath.cosh else limit
        return _settled(function, x)

    return value


CUBES = frozenset(x**3 % 819 for x in range(819))
"""What cubes leave over from 7 * 9 * 13: 45 of 819 numbers."""


def _cube_root(x: int) -> int | None:
    """The integer whose cube is x, by Newton's method from above; None if there is none."""
    if x % 819 not in CUBES:
        return None
    root, after = x, 1 << -(-x.bit_length() // 3)
    while after < root:
        root = after
        after = (2 * root + x // (root * root)) // 3
    return root if root**3 == x else None


def _cbrt(x: Fraction) -> Fraction:
    above, below = (_cube_root(part) for part in abs(x).as_integer_ratio())
    exact = _settled(mpmath.cbrt, abs(x)) if above is None or below is None else Fraction(above, below)
    return -exact if x < 0 else exact


Special = Callable[[Value], Exact]


def _at_infinity(negative: Exact, positive: Exact) -> Special:
    """The values at -inf and +inf."""
    return lambda x: negative if x.negative else positive


ZERO, ONE = exactly(0), exactly(1)
UP: Exact = (Value(Kind.INFINITE, False), 0)
DOWN: Exact = (Value(Kind.INFINITE, True), 0)
POLE_UP: Exact = (Value(Kind.INFINITE, False), DIVBYZERO)
POLE_DOWN: Exact = (Value(Kind.INFINITE, True), DIVBYZERO)
HALF_TURN = _settled(lambda: +mpmath.pi)


NO_POLES: dict[int, Exact] = {}
ODD_POLES = {-1: POLE_DOWN, 1: POLE_UP}
WHOLE = _at_infinity(DOWN, UP)
NOWHERE = _at_infinity(UNDEFINED, UNDEFINED)
EXPONENTIAL = _at_infinity(ZERO, UP)
LOGARITHM = _at_infinity(UNDEFINED, UP)


def _analytic(
    name: str,
    summary: str,
    value: Callable[[Fraction], Fraction],
    infinite: Special,
    low: float = -math.inf,
    high: float = math.inf,
    poles: dict[int, Exact] = NO_POLES,
    odd_zero: bool = False,
) -> Callable[..., Result]:
    """A function of one operand: its value, its values at infinities, its domain and poles, whether it keeps a zero's sign."""

    def exact(x: Value, rules: Options) -> Exact:
        if x.is_infinite:
            return infinite(x)
        real = Fraction(x.real)
        if not low <= real <= high:
            return UNDEFINED
        if real in poles:
            return poles[int(real)]
        if x.is_zero and odd_zero:
            return x, 0
        return exactly(value(real))

    def function(a: int, fmt: Format, **options: Any) -> Result:
        return evaluate(exact, (a,), fmt, options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{summary} (IEEE 754-2019 9.2).\n\n    Flags: INVALID outside the domain and for signalling NaNs; DIVBYZERO at "
        "poles; those of `round_exact`.\n    Errors as `round_exact`.\n    "
    )
    return function


exp = _analytic("exp", "e^a", _exp, EXPONENTIAL)
exp2 = _analytic("exp2", "2^a", _exp2, EXPONENTIAL)
exp10 = _analytic("exp10", "10^a", _exp10, EXPONENTIAL)
expm1 = _analytic("expm1", "e^a - 1", _expm1, _at_infinity(exactly(-1), UP), odd_zero=True)
log = _analytic(
    "log", "The natural logarithm", _irrational(mpmath.log, Fraction(1)), LOGARITHM, 0, poles={0: POLE_DOWN}
)
log2 = _analytic("log2", "The binary logarithm", _log2, LOGARITHM, 0, poles={0: POLE_DOWN})
log10 = _analytic("log10", "The decimal logarithm", _log10, LOGARITHM, 0, poles={0: POLE_DOWN})
log1p = _analytic("log1p", "log(1 + a)", _irrational(mpmath.log1p), LOGARITHM, -1, poles={-1: POLE_DOWN}, odd_zero=True)
sin = _analytic("sin", "The sine", _irrational(mpmath.sin), NOWHERE, odd_zero=True)
cos = _analytic("cos", "The cosine", lambda x: _settled(mpmath.cos, x) if x else Fraction(1), NOWHERE)
tan = _analytic("tan", "The tangent", _irrational(mpmath.tan), NOWHERE, odd_zero=True)
asin = _analytic("asin", "The arcsine", _irrational(mpmath.asin), NOWHERE, -1, 1, odd_zero=True)
acos = _analytic("acos", "The arccosine", _irrational(mpmath.acos, Fraction(1)), NOWHERE, -1, 1)
atan = _analytic(
    "atan",
    "The arctangent",
    _irrational(mpmath.atan),
    _at_infinity(exactly(-HALF_TURN / 2), exactly(HALF_TURN / 2)),
    odd_zero=True,
)
sinh = _analytic("sinh", "The hyperbolic sine", _hyperbolic(mpmath.sinh), WHOLE, odd_zero=True)
cosh = _analytic("cosh", "The hyperbolic cosine", _hyperbolic(mpmath.cosh), _at_infinity(UP, UP))
tanh = _analytic(
    "tanh", "The hyperbolic tangent", _hyperbolic(mpmath.tanh), _at_infinity(exactly(-1), ONE), odd_zero=True
)
asinh = _analytic("asinh", "The inverse hyperbolic sine", _irrational(mpmath.asinh), WHOLE, odd_zero=True)
acosh = _analytic("acosh", "The inverse hyperbolic cosine", _irrational(mpmath.acosh, Fraction(1)), LOGARITHM, 1)
atanh = _analytic(
    "atanh", "The inverse hyperbolic tangent", _irrational(mpmath.atanh), NOWHERE, -1, 1, ODD_POLES, odd_zero=True
)
cbrt = _analytic("cbrt", "The cube root", _cbrt, WHOLE, odd_zero=True)
degrees = _analytic("degrees", "a * 180 / pi", _irrational(mpmath.degrees), WHOLE, odd_zero=True)
radians = _analytic("radians", "a * pi / 180", _irrational(mpmath.radians), WHOLE, odd_zero=True)


def _exact_power(x: Fraction, y: Fraction) -> Fraction:
    """x^y, x > 0 and not 1, y not 0."""
    power = y
    base = x
    while power.denominator > 1:  # x^(k / 2^j) is rational only if x is a 2^j-th power of a rational number
        roots = [math.isqrt(part) for part in base.as_integer_ratio()]
        if Fraction(roots[0] ** 2, roots[1] ** 2) != base:
            break
        base, power = Fraction(*roots), power * 2
    if power.denominator == 1 and abs(power) <= BEYOND:
        return base ** int(power)
    if power.denominator == 1 and _is_power_of_two(base):
        return two_to(BEYOND if (base > 1) == (power > 0) else -BEYOND)
    return _settled(mpmath.power, x, y)


def _power_of(x: Value, y: Value, rules: Options) -> Exact:
    """IEEE 754-2019 9.2.1, pow, line by line."""
    integer = y.is_infinite or y.magnitude.denominator == 1
    odd = not y.is_infinite and integer and y.magnitude % 2 == 1
    negative = x.negative and odd
    if x.is_zero:
        if not y.negative:
            return Value(Kind.FINITE, negative), 0
        return Value(Kind.INFINITE, negative), 0 if y.is_infinite else DIVBYZERO
    if not x.is_infinite and x.magnitude == 1 and y.is_infinite:
        return ONE
    if x.is_infinite or y.is_infinite:
        large = x.is_infinite or x.magnitude > 1
        return Value(Kind.INFINITE if large != y.negative else Kind.FINITE, negative), 0
    if x.negative and not integer:
        return UNDEFINED
    size = Fraction(1) if x.magnitude == 1 else _exact_power(x.magnitude, Fraction(y.real))
    return Value(Kind.FINITE, negative, size), 0


def pow(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a^b (IEEE 754-2019 9.2.1); 1 for b = 0 and for a = 1, beside quiet NaNs too.

    Flags: INVALID for negative finite a and b that is no integer, and signalling NaNs; DIVBYZERO for zero to a negative
    finite power; those of `round_exact`. Errors as `round_exact`.
    """
    rules = rules_for(fmt, options)
    x, y = operand_of(a, fmt, rules), operand_of(b, fmt, rules)
    signals = (x.is_nan and x.signalling) or (y.is_nan and y.signalling)
    unit = not x.is_nan and not x.negative and x.magnitude == 1 and not x.is_infinite
    if (y.is_zero or unit) and not signals:
        code, raised = round_once(Value(Kind.FINITE, False, Fraction(1)), fmt, rules)
        return code, raised | signalled((x, y), rules)
    return evaluate(_power_of, (a, b), fmt, options)


def _root_of_squares(x: Value, y: Value, rules: Options) -> Exact:
    square = x.magnitude**2 + y.magnitude**2
    numerator, denominator = square.as_integer_ratio()
    scale = 4**ROOT_BITS * denominator  # numerator * scale / denominator^2: the denominator comes out of the root whole
    root = math.isqrt(numerator * scale)
    exact = Fraction(root, 2**ROOT_BITS * denominator)
    return exactly(exact if exact**2 == square else Fraction(2 * root + 1, 2 ** (ROOT_BITS + 1) * denominator))


def hypot(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The square root of a * a + b * b (IEEE 754-2019 9.2.1); infinite beside an infinity, for a quiet NaN too.

    Flags: INVALID for signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    rules = rules_for(fmt, options)
    values = operand_of(a, fmt, rules), operand_of(b, fmt, rules)
    if any(x.is_infinite for x in values) and not any(x.is_nan and x.signalling for x in values):
        code, raised = round_once(Value(Kind.INFINITE, False), fmt, rules)
        return code, raised | signalled(values, rules)
    return settled(_root_of_squares, values, fmt, rules)


def _angle(y: Value, x: Value, rules: Options) -> Exact:
    """C23 F.10.1.4, by quadrants."""
    turn = HALF_TURN
    if y.is_zero or (x.is_infinite and not y.is_infinite):
        size = turn if x.negative else Fraction(0)
    elif y.is_infinite:
        size = turn / 2 if not x.is_infinite else turn * 3 / 4 if x.negative else turn / 4
    elif x.is_zero:
        size = turn / 2
    else:
        size = _settled(mpmath.atan2, y.magnitude, Fraction(x.real))
    return Value(Kind.FINITE, y.negative, size), 0


def atan2(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The angle of the point (b, a) (IEEE 754-2019 9.2.1).

    Flags: INVALID for signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(_angle, (a, b), fmt, options)


def _log_of_one_and(x: Any) -> Any:
    """log(1 + x): with bits to spare where these hold 1 and x, which mpmath's log1p takes ten times as long for."""
    if x < 2.0**-ROOM:
        return mpmath.log1p(x)
    with mpmath.extraprec(2 * ROOM):
        return mpmath.log(1 + x)


def _natural_sum(a: Any, b: Any) -> Any:
    return a + _log_of_one_and(mpmath.exp(b - a))


def _binary_sum(a: Any, b: Any) -> Any:
    return a + _log_of_one_and(mpmath.power(2, b - a)) / mpmath.ln2


def _log_of_sum(x: Value, y: Value, compute: Callable[..., Any]) -> Exact:
    high, low = max(x.real, y.real), min(x.real, y.real)
    if math.isinf(high):
        return UP if high > 0 else DOWN
    if math.isinf(low):
        return exactly(Fraction(high))
    if high == low and compute is _binary_sum:
        return exactly(Fraction(high) + 1)
    if high - low > 2 * BEYOND:
        return exactly(Fraction(high) + two_to(-BEYOND))
    return exactly(_settled(compute, Fraction(high), Fraction(low)))


def logaddexp(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """log(e^a + e^b) (numpy.logaddexp). Flags and errors as `atan2`."""
    return evaluate(lambda x, y, _: _log_of_sum(x, y, _natural_sum), (a, b), fmt, options)


def logaddexp2(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """log2(2^a + 2^b) (numpy.logaddexp2). Flags and errors as `atan2`."""
    return evaluate(lambda x, y, _: _log_of_sum(x, y, _binary_sum), (a, b), fmt, options)
