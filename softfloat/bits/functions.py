"""Mathematical functions of codes, correctly rounded in every format and every mode. `softfloat.bits` hands them on.

A result is found in two steps, and rounded in a third, by the one function that rounds everything:

1. NumPy's float64 function gives `near + more`, two float64, and a generous bound of their error. Both ends of that
   interval are cut to a number of significant bits, the last one sticky. Where both give the same, that is the result,
   on every platform, whatever its libm.
2. Where they differ, knowledge decides first: which results are exact is a theorem for each function (`_exact_...`).
   All others are irrational, or have more bits than are kept; mpmath computes them with rising precision until the side is
   clear.

More than p + 2 bits never change what a deterministic mode delivers: 30 serve all formats. Stochastic rounding gets 30 to 42,
and where the random bits of an element leave a side open with those, the value to some 140 bits.

Results near 1, or near the operand, come as that number and a small one to be added: the side on which the exact result lies is then
known however small the difference.

Unary functions in formats of at most 16 bits are looked up in tables, made on first use. So are those of two operands where one is the
same for all elements, once half as many results have been asked for as a table has; and those of 8 bits, for as large arrays.

>>> exp(0x3C00, "float16")  # e, as 2.71875
(np.uint16(16752), np.uint8(1))
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias, Unpack

import numpy as np

from softfloat import engine
from softfloat.engine import Call, Job, Options, Work, calls, check_codes
from softfloat.environments import Settings
from softfloat.formats import Format, check_format
from softfloat.kernels.spec import CARRIER64, FormatSpec, Rule

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
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Bounds: TypeAlias = tuple[Floats, Floats, Floats]
"""(near, more, error): the exact result lies within `error` of near + more. An infinite or NaN `near` is the result."""
Exact: TypeAlias = tuple[Floats, Floats, Mask]
"""(near, more, known): the exact result is near + more, where known."""
Number: TypeAlias = tuple[Any, ...]
"""mpmath's: (sign, significand, exponent, bits of the significand)."""

LIBRARY_BITS = 48  # right in NumPy's float64 functions: 16 units in the last place are left; its own tests allow 4
LIBRARY_ERROR = 2.0**-LIBRARY_BITS  # relative
REDUCTION_ERROR = 2.0**-58  # absolute, of a periodic function's reduced argument: near zeros it outweighs the other
KEPT = 30  # significant bits of values for deterministic modes: 24 + 2 suffice, and 30 leave few results in doubt
KEPT_IN_TABLES = 42  # of those in tables, for stochastic rounding, too: the library's error leaves one in 32 in doubt
KEPT_LACKING = 128  # of those whose side is open: any threshold has at most 76
NEXT_TO_NOTHING = 2.0**-200  # beside 1: far below the last of those bits, and not so far that mpmath would not reach it
HIGHEST_POWER = 512  # of an odd number, it has more than 800 bits
CHUNK = 1 << 14  # elements at a time: a dozen arrays of that many float64 stay in the cache
TABLE_BITS = 16  # formats as wide get tables

CLOSE = 2.0**-8  # to 0: where a function is 1 and little more
SMALL = 2.0**-16  # below it, the next term of an odd series is less than 2^-32 of the one before
SMALLER = 2.0**-20  # below it, the third term of any series is less than 2^-38 of the first two
FAR = 400.0  # exp of it exceeds all formats, exp of -400 is next to nothing in all of them
TINIEST = 2.0**-250  # stands for smaller magnitudes whose cube would vanish


# -- near + more ± error ---------------------------------------------------------------------------------------------


def _relative(near: Floats) -> Bounds:
    return near, np.zeros_like(near), np.abs(near) * LIBRARY_ERROR


def _limited(x: Floats, limit: float) -> Floats:
    """x cut to where its function neither overflows nor vanishes in float64; infinities stay."""
    return np.where(np.isinf(x), x, np.clip(x, -limit, limit))


def _library(function: Callable[[Floats], Floats], limit: float = math.inf) -> Callable[[Floats], Bounds]:
    """A function of which NumPy's relative error is all there is to say."""
    return lambda x: _relative(function(x if limit == math.inf else _limited(x, limit)))


def _refined(
    bounds: Bounds, x: Floats, where: Mask, refinement: Callable[[Floats], tuple[Any, Floats, Floats]]
) -> Bounds:
    """Bounds with those of a refinement in some places."""
    places = np.flatnonzero(where)
    if places.size:
        for array, refined in zip(bounds, refinement(x[places]), strict=True):
            array[places] = refined
    return bounds


def _odd(function: Callable[[Floats], Bounds], cubic: float) -> Callable[[Floats], Bounds]:
    """A function with the series x + cubic * x^3 ..."""

    def series(x: Floats) -> tuple[Any, Floats, Floats]:
        room = np.copysign(np.maximum(np.abs(x), TINIEST), x)
        cube = cubic * room * room * room
        return x, cube, np.abs(cube) * 2.0**-20

    return lambda x: _refined(function(x), x, (np.abs(x) < SMALL) & (x != 0.0), series)


def _from_one(function: Callable[[Floats], Floats], limit: float, factor: float) -> Callable[[Floats], Bounds]:
    """exp(factor * x): near 1 it is 1 + expm1(factor * x)."""

    def step(x: Floats) -> tuple[Any, Floats, Floats]:
        more = np.expm1(x * factor)
        return 1.0, more, np.abs(more) * (4 * LIBRARY_ERROR)

    return lambda x: _refined(_relative(function(_limited(x, limit))), x, np.abs(x) < CLOSE, step)


def _even(
    function: Callable[[Floats], Bounds], half: Callable[[Floats], Floats], sign: int
) -> Callable[[Floats], Bounds]:
    """cos and cosh: near 1 they are 1 - 2 sin(x/2)^2 and 1 + 2 sinh(x/2)^2."""

    def step(x: Floats) -> tuple[Any, Floats, Floats]:
        sine = np.where(x != 0.0, np.maximum(np.abs(half(x * 0.5)), TINIEST), 0.0)
        square = 2.0 * sine * sine
        return 1.0, sign * square, square * (8 * LIBRARY_ERROR)

    return lambda x: _refined(function(x), x, np.abs(x) < CLOSE, step)


def _periodic(function: Callable[[Floats], Floats]) -> Callable[[Floats], Bounds]:
    """sin and cos of large operands are less precise near their zeros than elsewhere; so is tan, and near its poles."""

    def bounds(x: Floats) -> Bounds:
        near, more, error = _relative(function(x))
        slope = 1.0 + near * near if function is np.tan else 1.0
        return near, more, error + np.where(np.abs(x) > 1.0, REDUCTION_ERROR * slope, 0.0)

    return bounds


def _expm1(x: Floats) -> Bounds:
    """x + x^2/2 + x^3/6 near 0, -1 + e^x far below."""

    def series(x: Floats) -> tuple[Any, Floats, Floats]:
        square = 0.5 * x * x * (1.0 + x / 3.0)
        return x, square, square * 2.0**-36

    def tail(x: Floats) -> tuple[Any, Floats, Floats]:
        power = np.where(np.isinf(x), 0.0, np.exp(np.maximum(x, -FAR)))
        return -1.0, power, power * LIBRARY_ERROR

    bounds = _refined(_relative(np.expm1(_limited(x, FAR))), x, np.abs(x) < SMALLER, series)
    return _refined(bounds, x, x < -8.0, tail)


def _log1p(x: Floats) -> Bounds:
    """x - x^2/2 + x^3/3 near 0."""

    def series(x: Floats) -> tuple[Any, Floats, Floats]:
        square = 0.5 * x * x * (1.0 - x / 1.5)
        return x, -square, square * 2.0**-36

    return _refined(_relative(np.log1p(x)), x, np.abs(x) < SMALLER, series)


def _tanh(x: Floats) -> Bounds:
    """Far from 0: 1 - 2 / (exp(2x) + 1)."""

    def tail(x: Floats) -> tuple[Any, Floats, Floats]:
        rest = np.where(np.isinf(x), 0.0, 2.0 / (np.exp(np.minimum(2.0 * np.abs(x), FAR)) + 1.0))
        return np.copysign(1.0, x), -np.copysign(rest, x), rest * (8 * LIBRARY_ERROR)

    return _refined(_relative(np.tanh(x)), x, np.abs(x) > 8.0, tail)


def _split(x: Floats) -> Floats:
    """The high half of x: times a number of 24 bits it is exact, and so is the rest of x."""
    return (x.view(np.int64) & np.int64(-1 << 27)).view(np.float64)


def _atan2(y: Floats, x: Floats) -> Bounds:
    near, more, error = _relative(np.arctan2(y, x))
    quotient = y / x
    small = np.flatnonzero((np.abs(quotient) < SMALL) & (x > 0.0) & (x < math.inf) & (y != 0.0))
    if small.size:
        y, x, q = y[small], x[small], quotient[small]
        high = _split(q)
        rest = ((y - high * x) - (q - high) * x) / x
        room = np.copysign(np.maximum(np.abs(q), TINIEST), q)
        cube = room * room * room / 3.0
        near[small], more[small], error[small] = q, rest - cube, (np.abs(rest) + np.abs(cube)) * 2.0**-20
    return near, more, error


def _log_of_sum(power: Callable[[Floats], Floats], unit: float) -> Callable[[Floats, Floats], Bounds]:
    """log(base^a + base^b) is the greater operand and a term that shrinks with their distance."""

    def bounds(a: Floats, b: Floats) -> Bounds:
        greater, lesser = np.maximum(a, b) + 0.0, np.minimum(a, b)  # + 0.0: a greater -0 counts as 0, as in NumPy
        distance = np.clip(greater - lesser, 0.0, 600.0)
        more = np.log1p(power(-distance)) * unit
        more = np.where(np.isinf(greater) | np.isinf(lesser), 0.0, more)
        return greater, more, more * (2 * LIBRARY_ERROR + distance * 2.0**-53)

    return bounds


def _pow(x: Floats, y: Floats) -> Bounds:
    size = np.abs(x)
    near, more, error = _relative(np.power(size, y))
    ordinary = np.isfinite(x) & np.isfinite(y) & (size != 1.0) & (size != 0.0) & (y != 0.0)
    first, second = y == 1.0, y == 2.0
    if first.any() or second.any():  # exact, and frequent
        near = np.where(second, size * size, np.where(first, size, near))
        error[(first | second) & ordinary] = 0.0
    close = np.flatnonzero((np.abs(near - 1.0) < CLOSE) & ordinary & (error > 0.0))
    if close.size:
        step = np.expm1(y[close] * np.log(size[close]))
        near[close], more[close], error[close] = 1.0, step, np.abs(step) * (8 * LIBRARY_ERROR)
    outside = ordinary & ((near > 2.0**FAR) | (near < 2.0**-FAR))
    if outside.any():  # clear of every format: nothing more need be known
        near[outside] = np.where(near[outside] > 1.0, 2.0**FAR * 1.5, 2.0**-FAR / 1.5)
        error[outside] = 0.0
    if not ordinary.all():
        grows = (size > 1.0) == (y > 0.0)
        plain = np.where(grows, math.inf, 0.0)
        plain = np.where(np.isnan(x) | np.isnan(y), math.nan, plain)
        plain = np.where((y == 0.0) | (x == 1.0) | ((size == 1.0) & ~np.isnan(y)), 1.0, plain)
        near = np.where(ordinary, near, plain)
        error[~ordinary] = 0.0
    negative = np.signbit(x)
    if negative.any():
        odd = np.fmod(np.abs(y), 2.0) == 1.0
        sign = np.where(negative & odd, -1.0, 1.0)
        near, more = near * sign, more * sign
        fractional = negative & (x > -math.inf) & (x < 0.0) & (np.trunc(y) != y)
        near[fractional] = math.nan
    return near, more, error


# -- which results are exact -----------------------------------------------------------------------------------------


def _never(*operands: Floats) -> Exact:
    """No result but 0, 1 and infinity is rational, for a rational operand (Lindemann); those come without error."""
    return operands[0], operands[0], np.zeros(operands[0].shape, bool)


def _exact_exp2(x: Floats) -> Exact:
    """Integer powers of 2; others are irrational."""
    whole = np.trunc(x) == x
    return np.ldexp(1.0, np.where(whole, x, 0.0).astype(np.int32)), np.zeros_like(x), whole


POWERS_OF_TEN = np.array([float(10**n) for n in range(23)])  # those that are float64


def _exact_exp10(x: Floats) -> Exact:
    """10^n: up to n = 22 a float64; beyond, of more bits than are kept. With n < 0 it has no end in binary."""
    known = (np.trunc(x) == x) & (x >= 0.0) & (x <= 22.0)
    return POWERS_OF_TEN[np.where(known, x, 0.0).astype(np.int64)], np.zeros_like(x), known


def _exact_log2(x: Floats) -> Exact:
    """Logarithms of powers of 2; others are irrational."""
    fraction, exponent = np.frexp(x)
    return exponent - 1.0, np.zeros_like(x), fraction == 0.5


def _exact_log10(x: Floats) -> Exact:
    """Logarithms of 10^n; others are irrational. No operand is 10^n with n < 0, or beyond 10^10, which has 24 bits."""
    place = np.minimum(np.searchsorted(POWERS_OF_TEN, x), 22)
    return place.astype(np.float64), np.zeros_like(x), x == POWERS_OF_TEN[place]


def _exact_cbrt(x: Floats) -> Exact:
    """Perfect cubes, of at most 24 bits, have roots of at most 8."""
    fraction, exponent = np.frexp(np.cbrt(x))
    root = np.ldexp(np.rint(fraction * 2.0**10), exponent - 10)
    return root, np.zeros_like(x), root * root * root == x


def _exact_log2_of_sum(a: Floats, b: Floats) -> Exact:
    """log2(2^a + 2^a) = a + 1. No other sum of two powers is a power (1 and the roots of 2 are independent)."""
    return a, np.ones_like(a), a == b


def _exact_pow(x: Floats, y: Floats) -> Exact:
    """x = m * 2^e, m odd, to the y is dyadic where y is an integer and, if m > 1, not negative; or where roots make it so.

    The 2^j-th root of x is rational only if m and e are a 2^j-th power and a multiple of 2^j: with m < 2^24 and |e| < 512, j < 10.
    Of the integer powers of m those below 2^53 are exact in float64; the others are odd and have more bits than are kept.
    """
    fraction, exponent = np.frexp(np.abs(x))
    m, e = fraction * 2.0**24, exponent - 24.0
    trailing = (m.astype(np.int64) & -m.astype(np.int64)).astype(np.float64)
    m, e = m / trailing, e + np.log2(trailing)
    power = y.copy()
    for _ in range(9):
        root = np.rint(np.sqrt(m))
        halves = (np.trunc(power) != power) & (root * root == m) & (np.fmod(e, 2.0) == 0.0)
        if not halves.any():
            break
        m, e, power = np.where(halves, root, m), np.where(halves, e / 2, e), np.where(halves, power * 2, power)
    whole = np.trunc(power) == power
    known = whole & ((m == 1.0) | ((power > 0.0) & (power < 64.0)))
    count = np.where(known & (m > 1.0), power, 0.0).astype(np.int64)
    product, square = np.ones_like(m), m
    for bit in range(6):
        product = np.where(count >> bit & 1 == 1, product * square, product)
        square = np.minimum(square * square, 2.0**54)
    known &= product < 2.0**53
    scale = np.where(known, e * power, 0.0)
    known &= np.abs(scale) < 900.0
    value = np.ldexp(product, np.where(known, scale, 0.0).astype(np.int32))
    negative = np.signbit(x) & (np.fmod(np.abs(y), 2.0) == 1.0)
    return np.where(negative, -value, value), np.zeros_like(x), known


# -- what mpmath decides ---------------------------------------------------------------------------------------------


def _libmp() -> Any:
    import mpmath.libmp

    return mpmath.libmp


def _named(name: str) -> Callable[..., Number]:
    return lambda precision, x: getattr(_libmp(), name)(x, precision)


def _precise_exp(base: str) -> Callable[..., Number]:
    def value(precision: int, x: Number) -> Number:
        mp = _libmp()
        return mp.mpf_exp(mp.mpf_mul(x, getattr(mp, base)(precision + 20), precision + 20), precision)

    return value


def _precise_log(base: str) -> Callable[..., Number]:
    def value(precision: int, x: Number) -> Number:
        mp = _libmp()
        return mp.mpf_div(mp.mpf_log(x, precision + 10), getattr(mp, base)(precision + 10), precision)

    return value


def _precise_expm1(precision: int, x: Number) -> Number:
    mp = _libmp()
    return mp.mpf_sub(mp.mpf_exp(x, precision + 60), mp.fone, precision)


def _precise_log1p(precision: int, x: Number) -> Number:
    mp = _libmp()
    return mp.mpf_log(mp.mpf_add(mp.fone, x), precision)


def _precise_cbrt(precision: int, x: Number) -> Number:
    mp = _libmp()
    root = mp.mpf_cbrt(mp.mpf_abs(x), precision)
    return mp.mpf_neg(root) if x[0] else root


def _precise_degrees(precision: int, x: Number) -> Number:
    mp = _libmp()
    return mp.mpf_div(mp.mpf_mul_int(x, 180, precision + 10), mp.mpf_pi(precision + 10), precision)


def _precise_radians(precision: int, x: Number) -> Number:
    mp = _libmp()
    return mp.mpf_div(mp.mpf_mul(x, mp.mpf_pi(precision + 10)), mp.from_int(180), precision)


def _precise_pow(precision: int, x: Number, y: Number) -> Number:
    mp = _libmp()
    logarithm = mp.mpf_log(mp.mpf_abs(x), precision + 30)
    value = mp.mpf_exp(mp.mpf_mul(y, logarithm), precision)
    odd = y[2] == 0  # a normal number is an odd integer by its exponent
    return mp.mpf_neg(value) if x[0] and odd else value


def _precise_atan2(precision: int, y: Number, x: Number) -> Number:
    return _libmp().mpf_atan2(y, x, precision)


def _precise_log_of_sum(base: str) -> Callable[..., Number]:
    def value(precision: int, a: Number, b: Number) -> Number:
        """The sum may cancel all but the difference of a number of 24 bits and a logarithm: some fifty bits."""
        mp = _libmp()
        working = 2 * precision + 60
        unit = getattr(mp, base)(working) if base else mp.fone
        power = mp.mpf_exp(mp.mpf_mul(mp.mpf_sub(b, a), unit), working)
        term = mp.mpf_div(mp.mpf_log(mp.mpf_add(mp.fone, power, working), working), unit, working)
        return mp.mpf_add(a, term, precision)

    return value


GUARD = 30  # bits in which a value of mpmath may be wrong: far more than any of its functions loses
_mpmath_lock = threading.Lock()  # mpmath keeps constants in caches that two threads must not fill at once


def _number(x: float) -> Number:
    fraction, exponent = math.frexp(x)
    return _libmp().from_man_exp(int(fraction * 2.0**53), exponent - 53)


def _decided(precise: Callable[..., Number], operands: tuple[float, ...], kept: int) -> tuple[int, int, int]:
    """(sign, significand, exponent) of a value that has more than `kept` bits: cut to those bits, the last one set."""
    numbers = [_number(x) for x in operands]
    margin = 64
    while True:
        sign, significand, exponent, length = precise(kept + margin, *numbers)
        significand, exponent = int(significand), int(exponent)
        up = kept + margin - length  # zeros that mpmath cut off
        whole = significand << up if up >= 0 else significand >> -up
        exponent -= up
        rest = whole & ((1 << margin) - 1)
        if 1 << GUARD < rest < (1 << margin) - (1 << GUARD):
            return -1 if sign else 1, (whole >> margin) | 1, exponent + margin
        margin *= 2


def _decided_float(precise: Callable[..., Number], operands: tuple[float, ...], kept: int) -> float:
    """The value at operands where it is irrational or has more than `kept` bits, cut to those bits, the last one set."""
    sign, significand, exponent = _decided(precise, operands, kept)
    return math.ldexp(sign * significand, exponent)


def _lacking(function: Function, operands: tuple[float, ...], value: float) -> float:
    """What a cut value lacks, rounded to odd: the exact value is on the same side of any threshold as the sum of both."""
    exact = _exact_fraction(function, operands)
    if exact is None:
        exact = _next_to(function, operands)
    if exact is None:
        if function.symmetric:
            operands = max(operands), min(operands)
        sign, significand, exponent = _decided(function.precise, operands, KEPT_LACKING)
        exact = sign * significand * Fraction(2) ** exponent
    return engine.odd_float(exact - Fraction(value))


def _next_to(function: Function, operands: tuple[float, ...]) -> Fraction | None:
    """Of a value that is a number and next to nothing, one on the same side of that number: all digits between them are alike."""
    near, more, error = (float(x[0]) for x in function.bounds(*(np.array([x]) for x in operands)))
    if not error < abs(more) < abs(near) * NEXT_TO_NOTHING:
        return None
    return Fraction(near) + Fraction(math.copysign(near, more)) * Fraction(NEXT_TO_NOTHING)


def _exact_fraction(function: Function, operands: tuple[float, ...]) -> Fraction | None:
    """The exact value, if it is known: all that are rational."""
    near, more, known = function.exact(*(np.array([x]) for x in operands))
    if known[0]:
        return Fraction(float(near[0])) + Fraction(float(more[0]))
    if function is FUNCTIONS["pow"]:
        return _rational_power(*map(Fraction, operands))
    if function is FUNCTIONS["exp10"] and operands[0].is_integer():
        return Fraction(10) ** int(operands[0])
    return None


def _rational_power(x: Fraction, y: Fraction) -> Fraction | None:
    """x^y if it is rational, and no power so high that an odd number has more bits than `_decided` ever looks at."""
    base, power = abs(x), y
    while power.denominator > 1:
        roots = [math.isqrt(part) for part in base.as_integer_ratio()]
        if Fraction(roots[0] ** 2, roots[1] ** 2) != base:
            return None
        base, power = Fraction(*roots), power * 2
    if abs(power) > HIGHEST_POWER:
        return None
    return base ** int(power) * (-1 if x < 0 and y % 2 == 1 else 1)


# -- the table of functions ------------------------------------------------------------------------------------------


class Function(NamedTuple):
    """How to find a function's value: an interval, the theorem on exact results, mpmath."""

    bounds: Callable[..., Bounds]
    precise: Callable[..., Number]
    exact: Callable[..., Exact] = _never
    symmetric: bool = False  # of two operands, the greater comes first to `precise`


LN2, LN10 = math.log(2.0), math.log(10.0)

FUNCTIONS = {
    "exp": Function(_from_one(np.exp, FAR, 1.0), _named("mpf_exp")),
    "exp2": Function(_from_one(np.exp2, 520.0, LN2), _precise_exp("mpf_ln2"), _exact_exp2),
    "exp10": Function(_from_one(lambda x: np.power(10.0, x), 160.0, LN10), _precise_exp("mpf_ln10"), _exact_exp10),
    "expm1": Function(_expm1, _precise_expm1),
    "log": Function(_library(np.log), _named("mpf_log")),
    "log2": Function(_library(np.log2), _precise_log("mpf_ln2"), _exact_log2),
    "log10": Function(_library(np.log10), _precise_log("mpf_ln10"), _exact_log10),
    "log1p": Function(_log1p, _precise_log1p),
    "sin": Function(_odd(_periodic(np.sin), -1 / 6), _named("mpf_sin")),
    "cos": Function(_even(_periodic(np.cos), np.sin, -1), _named("mpf_cos")),
    "tan": Function(_odd(_periodic(np.tan), 1 / 3), _named("mpf_tan")),
    "asin": Function(_odd(_library(np.arcsin), 1 / 6), _named("mpf_asin")),
    "acos": Function(_library(np.arccos), _named("mpf_acos")),
    "atan": Function(_odd(_library(np.arctan), -1 / 3), _named("mpf_atan")),
    "sinh": Function(_odd(_library(np.sinh, FAR), 1 / 6), _named("mpf_sinh")),
    "cosh": Function(_even(_library(np.cosh, FAR), np.sinh, 1), _named("mpf_cosh")),
    "tanh": Function(_odd(_tanh, -1 / 3), _named("mpf_tanh")),
    "asinh": Function(_odd(_library(np.arcsinh), -1 / 6), _named("mpf_asinh")),
    "acosh": Function(_library(np.arccosh), _named("mpf_acosh")),
    "atanh": Function(_odd(_library(np.arctanh), 1 / 3), _named("mpf_atanh")),
    "cbrt": Function(_library(np.cbrt), _precise_cbrt, _exact_cbrt),
    "degrees": Function(_library(lambda x: x * (180.0 / math.pi)), _precise_degrees),
    "radians": Function(_library(lambda x: x * (math.pi / 180.0)), _precise_radians),
    "pow": Function(_pow, _precise_pow, _exact_pow),
    "atan2": Function(_atan2, _precise_atan2),
    "logaddexp": Function(_log_of_sum(np.exp, 1.0), _precise_log_of_sum(""), symmetric=True),
    "logaddexp2": Function(
        _log_of_sum(np.exp2, 1 / LN2), _precise_log_of_sum("mpf_ln2"), _exact_log2_of_sum, symmetric=True
    ),
}


@lru_cache(maxsize=64)
def _carrier_numbers(fmt: FormatSpec, daz: bool) -> engine.Numbers:
    """What decodes a format, and what `settling` needs."""
    return engine.numbers(fmt, fmt, Rule(daz=daz), CARRIER64)


def _values(function: Function, operands: tuple[Floats, ...], kept: int, numbers: engine.Numbers) -> Floats:
    """Results at operands, cut to `kept` significant bits, the last one sticky."""
    dropped = (1 << (53 - kept)) - 1
    values, doubtful = np.empty(operands[0].size), np.empty(operands[0].size, np.bool_)
    settle = engine.loops().settling()
    with np.errstate(all="ignore"):
        near, more, error = function.bounds(*operands)
        if not settle(near, more, error, values, doubtful, dropped, *numbers):
            return values
        places = np.flatnonzero(doubtful)
        operands = tuple(x[places] for x in operands)
        near, more, known = function.exact(*operands)
    if known.any():
        exact = np.empty(places.size)
        settle(near, more, np.zeros(places.size), exact, np.empty(places.size, np.bool_), dropped, *numbers)
        values[places[known]] = exact[known]
        places, operands = places[~known], tuple(x[~known] for x in operands)
    if places.size:
        if function.symmetric:
            operands = np.maximum(*operands), np.minimum(*operands)
        rows = zip(*(x.tolist() for x in operands), strict=True)
        with _mpmath_lock:
            values[places] = [_decided_float(function.precise, row, kept) for row in rows]
    return values


@lru_cache(maxsize=64)
def _table(name: str, fmt: FormatSpec, daz: bool) -> Floats:
    """A unary function's values at every code of a format, cut to KEPT_IN_TABLES bits."""
    numbers = _carrier_numbers(fmt, daz)
    codes = np.arange(1 << fmt.width, dtype=np.uint16)
    operands = np.empty(codes.size)
    engine.loops().decoding()(codes, operands, *numbers)
    table = _values(FUNCTIONS[name], (operands,), KEPT_IN_TABLES, numbers)
    table.flags.writeable = False
    return table


def tabulated(name: str, operands: int, fmt: Format) -> Floats:
    """A function's values at every code of a format, and after these at +0 and -0; of two operands a row of them for each a.

    They are cut to `KEPT_IN_TABLES` bits, the last one sticky: enough to round them in every deterministic mode.
    """
    spec = fmt.spec
    numbers = _carrier_numbers(spec, False)
    codes = np.arange(1 << spec.width, dtype=fmt.dtype)
    decoded = np.empty(codes.size)
    engine.loops().decoding()(codes, decoded, *numbers)
    every = np.concatenate([decoded, [0.0, -0.0]])
    if operands == 1:
        return _values(FUNCTIONS[name], (every,), KEPT_IN_TABLES, numbers)
    pairs = np.repeat(every, every.size), np.tile(every, every.size)
    return _values(FUNCTIONS[name], pairs, KEPT_IN_TABLES, numbers)


class Beside(NamedTuple):
    """Of two operands, that which is the same for all elements: the first or the second, and its code."""

    place: int
    code: int


@lru_cache(maxsize=128)
def _result_table(
    name: str, fmt: FormatSpec, rule: Rule, beside: Beside | None = None
) -> tuple[engine.Codes, engine.Codes]:
    """A function's codes and flags at every code of a format; of two operands, of that which is not `beside`."""
    every = engine.flattened(np.arange(1 << fmt.width, dtype=np.uint16 if fmt.width > 8 else np.uint8))
    operands = [every]
    if beside is not None:
        operands.insert(beside.place, engine.flattened(np.full_like(every, beside.code)))
    codes, flags = np.empty_like(every), np.empty(every.size, np.uint8)
    _computed(Job(name, fmt, fmt, rule, operands, codes, flags, True, 0.0, None))(0, every.size)
    return engine.flattened(codes), engine.flattened(flags)


def _rounding(job: Job) -> Callable[[int, int, Floats], int]:
    """What rounds values of the elements start ... stop."""
    if job.drawn is not None:
        return _drawn_rounding(job, job.drawn)
    unusual = engine.is_unusual(job.fmt)
    known = engine.numbers(job.source, job.fmt, job.rule, CARRIER64)
    a, b, c = job.operands_for(CARRIER64)
    codes, raises = job.codes, job.raises
    way = engine.way_of(job.rule, unusual)
    loop = engine.loops().elementwise("given", way, unusual, job.each, job.propagates)

    def work(start: int, stop: int, values: Floats) -> int:
        span = slice(start, stop)
        return int(loop(a[span], b[span], c[span], codes[span], raises[span], values, *known))

    return work


def _drawn_rounding(job: Job, drawn: engine.Draw) -> Callable[[int, int, Floats], int]:
    """`_rounding`, stochastically. What the values, cut as they are, leave open is found to more bits, an element at a time."""
    unusual, by_rule = engine.is_unusual(job.fmt), not job.rule.restated
    loop = engine.loops().elementwise_drawn("given", unusual, job.each, job.propagates, by_rule)
    rule = job.rule._replace(value_bits=_kept(job))
    known = engine.numbers(job.source, job.fmt, rule, CARRIER64)
    operands = job.operands_for(CARRIER64)
    codes, raises = job.codes, job.raises

    def work(start: int, stop: int, values: Floats) -> int:
        span = slice(start, stop)
        spans = *(x[span] for x in operands), codes[span], raises[span], values
        more, unknown = np.full(values.size, math.nan), np.zeros(values.size, np.bool_)
        address = drawn.key, drawn.stream, drawn.at(start), drawn.span(start, stop), drawn.width
        seen = int(loop(*spans, more, unknown, *known, *address))
        return seen | again(start + np.flatnonzero(unknown), values[unknown]) if unknown.any() else seen

    def again(places: engine.Codes, values: Floats) -> int:
        parts = [x[places] for x in operands]
        more = _what_is_lacking(job, places, values)
        redone, raised = np.empty(places.size, codes.dtype), np.empty(places.size if job.each else 0, np.uint8)
        handed = engine.bits_at(drawn, places)
        spans = *parts, redone, raised, values, more, np.zeros(places.size, np.bool_)
        seen = int(loop(*spans, *known, np.uint64(0), np.uint64(0), 0, handed, drawn.width))
        codes[places] = redone
        if job.each:
            raises[places] = raised
        return seen

    return work


def _what_is_lacking(job: Job, places: engine.Codes, values: Floats) -> Floats:
    """What the values of some elements lack, as `elementwise_drawn` takes it."""
    numbers = _carrier_numbers(job.source, job.rule.daz)
    operands = [np.empty(places.size) for _ in job.operands]
    for codes, place in zip(job.operands, operands, strict=True):
        engine.loops().decoding()(codes[places], place, *numbers)
    rows = zip(*(x.tolist() for x in operands), strict=True)
    with _mpmath_lock, np.errstate(all="ignore"):
        return np.array([_lacking(FUNCTIONS[job.operation], *row) for row in zip(rows, values.tolist(), strict=True)])


def _looked_up(job: Job, a: engine.Codes, table: engine.Codes, raised: engine.Codes) -> Work:
    """The work of a function whose results at each code of an operand are in a table."""
    gather = engine.loops().gathering(job.each)
    codes, raises = job.codes, job.raises

    def work(start: int, stop: int) -> int:
        return int(gather(a[start:stop], codes[start:stop], raises[start:stop], table, raised))

    return work


def _computed(job: Job) -> Work:
    """The work of a function chunk by chunk: operands decoded (or values looked up), then values, then codes."""
    function, daz = FUNCTIONS[job.operation], job.rule.daz
    numbers = _carrier_numbers(job.source, daz)
    table = _table(job.operation, job.source, daz) if _tabulated(job) else None
    kept = _kept(job)
    decode = engine.loops().decoding()
    rounding = _rounding(job)

    def work(start: int, stop: int) -> int:
        seen = 0
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            parts = [x[first:last] for x in job.operands]
            if table is not None:
                values = table[parts[0]]
            else:
                operands = tuple(np.empty(last - first) for _ in parts)
                for part, place in zip(parts, operands, strict=True):
                    decode(part, place, *numbers)
                values = _values(function, operands, kept, numbers)
            seen |= rounding(first, last, values)
        return seen

    return work


def _may_be_tabulated(job: Job) -> bool:
    """Whether the format is short enough for tables; in plain Python they would take longer to make than anybody waits."""
    return job.source.width <= TABLE_BITS and not engine.loops().jit.DISABLED


def _tabulated(job: Job) -> bool:
    """Whether there is a table of values at every code of the operand."""
    return len(job.operands) == 1 and _may_be_tabulated(job)


def _kept(job: Job) -> int:
    """Significant bits that values keep.

    Stochastic rounding meets what its random bits leave open less often the more there are, and what the library leaves in doubt the
    fewer there are: midway, both are rare. Other ways to cut a fraction than the usual one must see it (`spec.SR_REACH`).
    """
    if job.drawn is None:
        return KEPT
    if _tabulated(job) or job.rule.sr_method != "truncate":
        return KEPT_IN_TABLES
    return max(KEPT, (LIBRARY_BITS + job.fmt.mantissa_bits + 1) // 2)


def _work(job: Job) -> Work:
    name, width, size = job.operation, job.source.width, job.codes.size
    beside = _beside(job.operands)
    if name == "pow" and beside == (1, _code_of_two(job.source)):
        return engine.way(replace(job, operation="mul", operands=[job.operands[0]] * 2))
    if job.drawn is not None or not _may_be_tabulated(job):
        return _computed(job)
    if len(job.operands) == 1:
        return _looked_up(job, job.operands[0], *_result_table(name, job.fmt, job.rule))
    if beside is not None and _pays(name, job.fmt, job.rule, beside, size):
        return _looked_up(job, job.operands[1 - beside.place], *_result_table(name, job.fmt, job.rule, beside))
    if 2 * width <= TABLE_BITS and 2 * size >= 1 << 2 * width:
        return engine.pairs_work(job, _computed)
    return _computed(job)


LEAST_COUNTED = 1 << 12  # elements that take as long as a small call does without any


@lru_cache(maxsize=256)
def _asked_for(name: str, fmt: FormatSpec, rule: Rule, beside: Beside) -> list[int]:
    """How many results have been asked for, in a list of one number."""
    return [0]


def _pays(name: str, fmt: FormatSpec, rule: Rule, beside: Beside, size: int) -> bool:
    """Whether a table of results beside a code pays: so many have been asked for that half of the table would have been made."""
    asked = _asked_for(name, fmt, rule, beside)
    asked[0] += max(size, LEAST_COUNTED)
    return 2 * asked[0] >= 1 << fmt.width


def _beside(operands: list[engine.Codes]) -> Beside | None:
    """Which of two operands is the same for all elements, the second if both are."""
    if len(operands) == 2:
        for place in (1, 0):
            x = operands[place]
            if x.size and x[0] == x[-1] and (x == x[0]).all():
                return Beside(place, int(x[0]))
    return None


def _code_of_two(fmt: FormatSpec) -> int | None:
    """The code of 2 where it is a normal number: a square is a product, in every format and mode, with the same flags."""
    two = (fmt.bias + 1) << fmt.mantissa_bits
    return two if fmt.bias >= 0 and two <= fmt.largest else None


# -- the functions ---------------------------------------------------------------------------------------------------


class Unary(Protocol):
    """A function of codes."""

    def __call__(self, a: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
        """Codes in, (codes, flags) out."""


class Binary(Protocol):
    """A function of two arrays of codes, which broadcast."""

    def __call__(self, a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
        """Codes in, (codes, flags) out."""


@lru_cache(maxsize=512)
def _tables(name: str, fmt: Format, whole: Settings) -> tuple[engine.Codes, engine.Codes] | None:
    """The results at every code, if they are looked up there."""
    settings = whole.for_format(fmt.name)
    wide = fmt.spec.width > TABLE_BITS or settings.rounding.draws
    if wide or engine.loops().jit.DISABLED:
        return None
    return _result_table(name, fmt.spec, engine.rule_for(settings, fmt, False))


def _is_two(x: Any, fmt: Format) -> bool:
    """Whether something is the code of 2, and no array of several."""
    whole = type(x) is int or (isinstance(x, np.ndarray | np.generic) and x.dtype == fmt.dtype and x.ndim == 0)
    return whole and x == _code_of_two(fmt.spec)


def _straight(name: str, given: tuple[Any, ...], fmt: Format, options: Options) -> Result | None:
    """Small calls that need no looking into; None for others."""
    if name not in FUNCTIONS:
        return calls.arithmetic(name, given, fmt, options)
    if name == "pow" and _is_two(given[1], fmt):
        return calls.arithmetic("mul", (given[0], given[0]), fmt, options)
    asked = calls.brief(options, engine.uses_of(name)) if len(given) == 1 else None
    taken = None if asked is None else calls.operands(given, fmt)
    if asked is None or taken is None:
        return None
    whole, each, _ = asked
    tables = _tables(name, fmt, whole)
    if tables is None:
        return None
    (a,), shape = taken
    codes, flags = np.empty(a.size, fmt.dtype), np.empty(a.size if each else 0, np.uint8)
    seen = engine.loops().gathering(each)(a, codes, flags, *tables)
    return calls.results(codes, flags, int(seen), shape, each)


BY_INTEGERS = {"fmod", "modulo", "floor_divide"}
"""Those that serve wide formats."""


def _run(name: str, operands: dict[str, Any], fmt: Format | str, options: Options) -> Result:
    fmt = check_format(fmt, wide=name in BY_INTEGERS, what=name)
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
        work=_work if name in FUNCTIONS else None,
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
