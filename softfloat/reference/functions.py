"""The oracle's mathematical functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from mpmath import libmp

from softfloat.formats import Format
from softfloat.reference import fixed_point
from softfloat.reference.arithmetic import evaluate, settled
from softfloat.reference.rounding import round_once, rules_for, signalled
from softfloat.reference.values import (
    DIVBYZERO,
    FINITE,
    ROOT_BITS,
    SETTLED_BITS,
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
    times_two_to,
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

BEYOND = 2000  # 2^2000 overflows every format, 2^-2000 is on the same side of everything as any smaller number
LOST_BITS = (
    60  # of mpmath's working precision, by cancellation and by its own errors: more than any function here loses
)
STARTING_BITS = SETTLED_BITS + LOST_BITS + 20  # one value in a million takes more

NOTHING = Fraction(0)

Raw: TypeAlias = Any
"""A number as mpmath's inner functions take it: sign, significand, exponent, bits of the significand."""
Computed = Callable[..., Raw]
"""compute(*operands, precision, rounding): as mpmath's inner functions are called."""


def _raw(x: Fraction) -> Raw:
    """An operand, exactly: its denominator is a power of two."""
    numerator, denominator = x.as_integer_ratio()
    return libmp.from_man_exp(numerator, 1 - denominator.bit_length())


def _settled(compute: Computed, *operands: Fraction) -> Fraction:
    """A number between the same neighbours of 96 bits as a value that has no 96 bits itself; mpmath computes it ever more precisely."""
    return _settled_raw(compute, *map(_raw, operands))


def _settled_alone(compute: Computed, *operands: Raw) -> Fraction:
    """`_settled`, not kept: pairs of operands hardly come again."""
    precision = STARTING_BITS
    while True:
        negative, significand, exponent, length = compute(*operands, precision, "n")
        top, beyond = int(exponent + length), int(length) - SETTLED_BITS
        if not -BEYOND <= top <= BEYOND:
            size = two_to(BEYOND if top > 0 else -BEYOND)
            return -size if negative else size
        slack = 1 << max(beyond + SETTLED_BITS + LOST_BITS - precision, 0)
        if beyond > 0 and slack < (significand & ((1 << beyond) - 1)) < (1 << beyond) - slack:
            middle = 2 * int(significand >> beyond) + 1
            return times_two_to(-middle if negative else middle, top - SETTLED_BITS - 1)
        precision *= 2


_settled_raw = lru_cache(maxsize=1 << 18)(_settled_alone)


def _near(limit: int, side: int) -> Fraction:
    """A number next to an integer, on one side."""
    return limit + side * two_to(-BEYOND)


def _is_beyond(x: Fraction) -> bool:
    """Whether a function that grows as 2^x is at its end."""
    return abs(x.numerator) > BEYOND * x.denominator


def _is_power_of_two(x: Fraction) -> bool:
    return x > 0 and x.numerator.bit_count() == 1 and x.denominator.bit_count() == 1


def _scaled_exponential(scale: Callable[[int], Raw]) -> Computed:
    """e^(scale * x)."""

    def compute(x: Raw, precision: int, rounding: str) -> Raw:
        return libmp.mpf_exp(libmp.mpf_mul(x, scale(precision)), precision, rounding)

    return compute


def _scaled_logarithm(scale: Callable[[int], Raw]) -> Computed:
    """log(x) / scale."""

    def compute(x: Raw, precision: int, rounding: str) -> Raw:
        return libmp.mpf_div(libmp.mpf_log(x, precision, rounding), scale(precision), precision, rounding)

    return compute


_ln2, _ln10 = lru_cache(maxsize=64)(libmp.mpf_ln2), lru_cache(maxsize=64)(libmp.mpf_ln10)


_power_of_two, _binary_logarithm = _scaled_exponential(_ln2), _scaled_logarithm(_ln2)
_power_of_ten, _decimal_logarithm = _scaled_exponential(_ln10), _scaled_logarithm(_ln10)


def _exponential_less_one(x: Raw, precision: int, rounding: str) -> Raw:
    _, _, exponent, length = x
    lost = max(-(exponent + length), 0) + 2  # as many bits as e^x has zeros or ones behind its first
    return libmp.mpf_sub(libmp.mpf_exp(x, precision + lost, rounding), libmp.fone, precision, rounding)


def _logarithm_of_one_and(x: Raw, precision: int, rounding: str) -> Raw:
    return libmp.mpf_log(libmp.mpf_add(libmp.fone, x), precision, rounding)  # the sum is exact


def _in_degrees(x: Raw, precision: int, rounding: str) -> Raw:
    return libmp.mpf_div(x, libmp.mpf_degree(precision), precision, rounding)


def _in_radians(x: Raw, precision: int, rounding: str) -> Raw:
    return libmp.mpf_mul(x, libmp.mpf_degree(precision), precision, rounding)


def _exp(x: Fraction) -> Fraction:
    if _is_beyond(x):
        return two_to(BEYOND if x > 0 else -BEYOND)
    return _settled(libmp.mpf_exp, x) if x else Fraction(1)


def _exp2(x: Fraction) -> Fraction:
    if _is_beyond(x):
        return two_to(BEYOND if x > 0 else -BEYOND)
    return two_to(int(x)) if x.denominator == 1 else _settled(_power_of_two, x)


def _exp10(x: Fraction) -> Fraction:
    if _is_beyond(x):
        return two_to(BEYOND if x > 0 else -BEYOND)
    return Fraction(10) ** int(x) if x.denominator == 1 else _settled(_power_of_ten, x)


def _expm1(x: Fraction) -> Fraction:
    if _is_beyond(x):
        return two_to(BEYOND) if x > 0 else _near(-1, 1)
    return _settled(_exponential_less_one, x) if x else x


def _log2(x: Fraction) -> Fraction:
    return Fraction(exponent_of(x)) if _is_power_of_two(x) else _settled(_binary_logarithm, x)


def _log10(x: Fraction) -> Fraction:
    if x.denominator == 1:
        decimal = str(x.numerator)
        if decimal.rstrip("0") == "1":
            return Fraction(len(decimal) - 1)
    return _settled(_decimal_logarithm, x)


def _irrational(function: Computed, exact: int = 0) -> Callable[[Fraction], Fraction]:
    """A function whose value at `exact` is 0 and which is irrational elsewhere."""
    return lambda x: NOTHING if x.numerator == exact and x.denominator == 1 else _settled_raw(function, _raw(x))


def _hyperbolic(function: Computed) -> Callable[[Fraction], Fraction]:
    """sinh, cosh and tanh, far from 0 by their limits."""
    limits = {"tanh": _near(1, -1)}

    def value(x: Fraction) -> Fraction:
        if not x:
            return Fraction(function is libmp.mpf_cosh)
        if _is_beyond(x):
            limit = limits["tanh"] if function is libmp.mpf_tanh else two_to(BEYOND)
            return -limit if x < 0 and function is not libmp.mpf_cosh else limit
        return _settled(function, x)

    return value


def _cube_root(x: int) -> int:
    """The integer part of the cube root, by Newton's method from above."""
    root, after = x, 1 << -(-x.bit_length() // 3)
    while after < root:
        root = after
        after = (2 * root + x // (root * root)) // 3
    return root


def _cbrt(x: Fraction) -> Fraction:
    if x.numerator < 0:
        return -_cbrt(-x)
    numerator, denominator = x.as_integer_ratio()
    size = numerator.bit_length() - denominator.bit_length()
    last = ROOT_BITS + max(-size, 0)  # the root is cut at 2^-last, and has as many bits as any needs
    cube = (numerator << 3 * last) // denominator  # exact: the denominator is a smaller power of two
    root = _cube_root(cube)
    return times_two_to(2 * root + (root**3 != cube), -last - 1)


Special = Callable[[Value], Exact]


def _at_infinity(negative: Exact, positive: Exact) -> Special:
    """The values at -inf and +inf."""
    return lambda x: negative if x.negative else positive


ZERO, ONE = exactly(0), exactly(1)
UP: Exact = (Value(Kind.INFINITE, False), 0)
DOWN: Exact = (Value(Kind.INFINITE, True), 0)
POLE_UP: Exact = (Value(Kind.INFINITE, False), DIVBYZERO)
POLE_DOWN: Exact = (Value(Kind.INFINITE, True), DIVBYZERO)
HALF_TURN = _settled(libmp.mpf_pi)


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
    low: int | None = None,
    high: int | None = None,
    poles: dict[int, Exact] = NO_POLES,
    odd_zero: bool = False,
) -> Callable[..., Result]:
    """A function of one operand: its value, its values at infinities, its domain and poles, whether it keeps a zero's sign."""

    def exact(x: Value, rules: Options) -> Exact:
        if x.is_infinite:
            return infinite(x)
        if odd_zero and x.is_zero:
            return x, 0
        real = x.number
        numerator, denominator = real.as_integer_ratio()
        if (low is not None and numerator < low * denominator) or (high is not None and numerator > high * denominator):
            return UNDEFINED
        if denominator == 1 and numerator in poles:
            return poles[numerator]
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
log = _analytic("log", "The natural logarithm", _irrational(libmp.mpf_log, 1), LOGARITHM, 0, poles={0: POLE_DOWN})
log2 = _analytic("log2", "The binary logarithm", _log2, LOGARITHM, 0, poles={0: POLE_DOWN})
log10 = _analytic("log10", "The decimal logarithm", _log10, LOGARITHM, 0, poles={0: POLE_DOWN})
log1p = _analytic(
    "log1p", "log(1 + a)", _irrational(_logarithm_of_one_and), LOGARITHM, -1, poles={-1: POLE_DOWN}, odd_zero=True
)
sin = _analytic("sin", "The sine", _irrational(libmp.mpf_sin), NOWHERE, odd_zero=True)
cos = _analytic("cos", "The cosine", lambda x: _settled(libmp.mpf_cos, x) if x else Fraction(1), NOWHERE)
tan = _analytic("tan", "The tangent", _irrational(libmp.mpf_tan), NOWHERE, odd_zero=True)
asin = _analytic("asin", "The arcsine", _irrational(libmp.mpf_asin), NOWHERE, -1, 1, odd_zero=True)
acos = _analytic("acos", "The arccosine", _irrational(libmp.mpf_acos, 1), NOWHERE, -1, 1)
atan = _analytic(
    "atan",
    "The arctangent",
    _irrational(libmp.mpf_atan),
    _at_infinity(exactly(-HALF_TURN / 2), exactly(HALF_TURN / 2)),
    odd_zero=True,
)
sinh = _analytic("sinh", "The hyperbolic sine", _hyperbolic(libmp.mpf_sinh), WHOLE, odd_zero=True)
cosh = _analytic("cosh", "The hyperbolic cosine", _hyperbolic(libmp.mpf_cosh), _at_infinity(UP, UP))
tanh = _analytic(
    "tanh", "The hyperbolic tangent", _hyperbolic(libmp.mpf_tanh), _at_infinity(exactly(-1), ONE), odd_zero=True
)
asinh = _analytic("asinh", "The inverse hyperbolic sine", _irrational(libmp.mpf_asinh), WHOLE, odd_zero=True)
acosh = _analytic("acosh", "The inverse hyperbolic cosine", _irrational(libmp.mpf_acosh, 1), LOGARITHM, 1)
atanh = _analytic(
    "atanh", "The inverse hyperbolic tangent", _irrational(libmp.mpf_atanh), NOWHERE, -1, 1, ODD_POLES, odd_zero=True
)
cbrt = _analytic("cbrt", "The cube root", _cbrt, WHOLE, odd_zero=True)
degrees = _analytic("degrees", "a * 180 / pi", _irrational(_in_degrees), WHOLE, odd_zero=True)
radians = _analytic("radians", "a * pi / 180", _irrational(_in_radians), WHOLE, odd_zero=True)


def _exact_power(x: Fraction, y: Fraction) -> Fraction:
    """x^y, x > 0 and not 1, y not 0."""
    power = y
    base = x
    while power.denominator > 1:  # x^(k / 2^j) is rational only if x is a 2^j-th power of a rational number
        above, below = (math.isqrt(part) for part in base.as_integer_ratio())
        if above**2 != base.numerator or below**2 != base.denominator:
            break
        base, power = Fraction(above, below), power * 2
    if power.denominator == 1 and abs(power) <= BEYOND:
        return base ** int(power)
    if power.denominator == 1 and _is_power_of_two(base):
        return two_to(BEYOND if (base > 1) == (power > 0) else -BEYOND)
    return fixed_point.power(x, y) or _settled_alone(libmp.mpf_pow, _raw(x), _raw(y))


def _power_of(x: Value, y: Value, rules: Options) -> Exact:
    """IEEE 754-2019 9.2.1, pow, line by line."""
    integer = y.is_infinite or y.magnitude.denominator == 1
    odd = not y.is_infinite and integer and y.magnitude.numerator % 2 == 1
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
    size = Fraction(1) if x.magnitude == 1 else _exact_power(x.magnitude, y.number)
    return Value(Kind.FINITE, negative, size), 0


def pow(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a^b (IEEE 754-2019 9.2.1); 1 for b = 0 and for a = 1, beside quiet NaNs too.

    Flags: INVALID for negative finite a and b that is no integer, and signalling NaNs; DIVBYZERO for zero to a negative
    finite power; those of `round_exact`. Errors as `round_exact`.
    """
    rules = rules_for(fmt, options)
    x, y = operand_of(a, fmt, rules), operand_of(b, fmt, rules)
    if x[0] is FINITE and y[0] is FINITE and not x[1] and x[2] and y[2] and x[2] != 1:
        return round_once(Value(FINITE, False, _exact_power(x[2], y.number)), fmt, rules)
    signals = (x.is_nan and x.signalling) or (y.is_nan and y.signalling)
    unit = not x.is_nan and not x.negative and x.magnitude == 1 and not x.is_infinite
    if (y.is_zero or unit) and not signals:
        code, raised = round_once(Value(Kind.FINITE, False, Fraction(1)), fmt, rules)
        return code, raised | signalled((x, y), rules)
    return settled(_power_of, (x, y), fmt, rules)


def _root_of_squares(x: Value, y: Value, rules: Options) -> Exact:
    (a, below_a), (b, below_b) = x.magnitude.as_integer_ratio(), y.magnitude.as_integer_ratio()
    below = max(below_a, below_b)  # powers of two: x = a / below, y = b / below
    square = (a * (below // below_a)) ** 2 + (b * (below // below_b)) ** 2 << 2 * ROOT_BITS
    root = math.isqrt(square)
    exact = root * root == square
    return exactly(Fraction(2 * root + (not exact), below << ROOT_BITS + 1))


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
        size = fixed_point.angle(y.magnitude, x.number) or _settled_alone(
            libmp.mpf_atan2, _raw(y.magnitude), _raw(x.number)
        )
    return Value(Kind.FINITE, y.negative, size), 0


def atan2(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The angle of the point (b, a) (IEEE 754-2019 9.2.1).

    Flags: INVALID for signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return evaluate(_angle, (a, b), fmt, options)


def _natural_sum(high: Raw, less: Raw, precision: int, rounding: str) -> Raw:
    """log(e^high + e^(high + less))."""
    rest = _logarithm_of_one_and(libmp.mpf_exp(less, precision, rounding), precision, rounding)
    return libmp.mpf_add(high, rest, precision, rounding)


def _binary_sum(high: Raw, less: Raw, precision: int, rounding: str) -> Raw:
    """log2(2^high + 2^(high + less))."""
    rest = _logarithm_of_one_and(_power_of_two(less, precision, rounding), precision, rounding)
    rest = libmp.mpf_div(rest, _ln2(precision), precision, rounding)
    return libmp.mpf_add(high, rest, precision, rounding)


def _log_of_sum(x: Value, y: Value, compute: Computed) -> Exact:
    if x[0] is not FINITE or y[0] is not FINITE:
        if not all(value.negative for value in (x, y) if value.is_infinite):
            return UP
        return DOWN if x.is_infinite and y.is_infinite else exactly(y.number if x.is_infinite else x.number)
    high, low = x.number, y.number
    less = low - high
    if less.numerator > 0:
        high, less = low, -less
    if not less and compute is _binary_sum:
        return exactly(high + 1)
    if less.numerator < -2 * BEYOND * less.denominator:
        return exactly(high + two_to(-BEYOND))
    found = fixed_point.log_of_sum(high, less, compute is _natural_sum)
    return exactly(found or _settled_alone(compute, _raw(high), _raw(less)))


def _natural_log_of_sum(x: Value, y: Value, rules: Options) -> Exact:
    return _log_of_sum(x, y, _natural_sum)


def _binary_log_of_sum(x: Value, y: Value, rules: Options) -> Exact:
    return _log_of_sum(x, y, _binary_sum)


def logaddexp(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """log(e^a + e^b) (numpy.logaddexp). Flags and errors as `atan2`."""
    return evaluate(_natural_log_of_sum, (a, b), fmt, options)


def logaddexp2(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """log2(2^a + 2^b) (numpy.logaddexp2). Flags and errors as `atan2`."""
    return evaluate(_binary_log_of_sum, (a, b), fmt, options)
