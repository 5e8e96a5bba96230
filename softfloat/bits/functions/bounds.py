"""Where a function's value lies: `near + more`, two float64 from NumPy's functions and from series, and a generous bound of their error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

__all__ = ["FAR", "LIBRARY_BITS", "Bounds", "Exact", "Floats", "Mask"]

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Bounds: TypeAlias = tuple[Floats, Floats, Floats]
"""(near, more, error): the exact result lies within `error` of near + more. An infinite or NaN `near` is the result."""
Exact: TypeAlias = tuple[Floats, Floats, Mask]
"""(near, more, known): the exact result is near + more, where known."""

LIBRARY_BITS = 48  # right in NumPy's float64 functions: 16 units in the last place are left; its own tests allow 4
LIBRARY_ERROR = 2.0**-LIBRARY_BITS  # relative
REDUCTION_ERROR = 2.0**-58  # absolute, of a periodic function's reduced argument: near zeros it outweighs the other
CLOSE = 2.0**-8  # to 0: where a function is 1 and little more
SMALL = 2.0**-16  # below it, the next term of an odd series is less than 2^-32 of the one before
SMALLER = 2.0**-20  # below it, the third term of any series is less than 2^-38 of the first two
FAR = 400.0  # exp of it exceeds all formats, exp of -400 is next to nothing in all of them
TINIEST = 2.0**-250  # stands for smaller magnitudes whose cube would vanish


def relative(near: Floats) -> Bounds:
    return near, np.zeros_like(near), np.abs(near) * LIBRARY_ERROR


def limited(x: Floats, limit: float) -> Floats:
    """x cut to where its function neither overflows nor vanishes in float64; infinities stay."""
    return np.where(np.isinf(x), x, np.clip(x, -limit, limit))


def library(function: Callable[[Floats], Floats], limit: float = math.inf) -> Callable[[Floats], Bounds]:
    """A function of which NumPy's relative error is all there is to say."""
    return lambda x: relative(function(x if limit == math.inf else limited(x, limit)))


def refined(
    bounds: Bounds, x: Floats, where: Mask, refinement: Callable[[Floats], tuple[Any, Floats, Floats]]
) -> Bounds:
    """Bounds with those of a refinement in some places."""
    places = np.flatnonzero(where)
    if places.size:
        for array, refined in zip(bounds, refinement(x[places]), strict=True):
            array[places] = refined
    return bounds


def odd(function: Callable[[Floats], Bounds], cubic: float) -> Callable[[Floats], Bounds]:
    """A function with the series x + cubic * x^3 ..."""

    def series(x: Floats) -> tuple[Any, Floats, Floats]:
        room = np.copysign(np.maximum(np.abs(x), TINIEST), x)
        cube = cubic * room * room * room
        return x, cube, np.abs(cube) * 2.0**-20

    return lambda x: refined(function(x), x, (np.abs(x) < SMALL) & (x != 0.0), series)


def from_one(function: Callable[[Floats], Floats], limit: float, factor: float) -> Callable[[Floats], Bounds]:
    """exp(factor * x): near 1 it is 1 + expm1(factor * x)."""

    def step(x: Floats) -> tuple[Any, Floats, Floats]:
        more = np.expm1(x * factor)
        return 1.0, more, np.abs(more) * (4 * LIBRARY_ERROR)

    return lambda x: refined(relative(function(limited(x, limit))), x, np.abs(x) < CLOSE, step)


def even(
    function: Callable[[Floats], Bounds], half: Callable[[Floats], Floats], sign: int
) -> Callable[[Floats], Bounds]:
    """cos and cosh: near 1 they are 1 - 2 sin(x/2)^2 and 1 + 2 sinh(x/2)^2."""

    def step(x: Floats) -> tuple[Any, Floats, Floats]:
        sine = np.where(x != 0.0, np.maximum(np.abs(half(x * 0.5)), TINIEST), 0.0)
        square = 2.0 * sine * sine
        return 1.0, sign * square, square * (8 * LIBRARY_ERROR)

    return lambda x: refined(function(x), x, np.abs(x) < CLOSE, step)


def periodic(function: Callable[[Floats], Floats]) -> Callable[[Floats], Bounds]:
    """sin and cos of large operands are less precise near their zeros than elsewhere; so is tan, and near its poles."""

    def bounds(x: Floats) -> Bounds:
        near, more, error = relative(function(x))
        slope = 1.0 + near * near if function is np.tan else 1.0
        return near, more, error + np.where(np.abs(x) > 1.0, REDUCTION_ERROR * slope, 0.0)

    return bounds


def expm1(x: Floats) -> Bounds:
    """x + x^2/2 + x^3/6 near 0, -1 + e^x far below."""

    def series(x: Floats) -> tuple[Any, Floats, Floats]:
        square = 0.5 * x * x * (1.0 + x / 3.0)
        return x, square, square * 2.0**-36

    def tail(x: Floats) -> tuple[Any, Floats, Floats]:
        power = np.where(np.isinf(x), 0.0, np.exp(np.maximum(x, -FAR)))
        return -1.0, power, power * LIBRARY_ERROR

    bounds = refined(relative(np.expm1(limited(x, FAR))), x, np.abs(x) < SMALLER, series)
    return refined(bounds, x, x < -8.0, tail)


def log1p(x: Floats) -> Bounds:
    """x - x^2/2 + x^3/3 near 0."""

    def series(x: Floats) -> tuple[Any, Floats, Floats]:
        square = 0.5 * x * x * (1.0 - x / 1.5)
        return x, -square, square * 2.0**-36

    return refined(relative(np.log1p(x)), x, np.abs(x) < SMALLER, series)


def tanh(x: Floats) -> Bounds:
    """Far from 0: 1 - 2 / (exp(2x) + 1)."""

    def tail(x: Floats) -> tuple[Any, Floats, Floats]:
        rest = np.where(np.isinf(x), 0.0, 2.0 / (np.exp(np.minimum(2.0 * np.abs(x), FAR)) + 1.0))
        return np.copysign(1.0, x), -np.copysign(rest, x), rest * (8 * LIBRARY_ERROR)

    return refined(relative(np.tanh(x)), x, np.abs(x) > 8.0, tail)


def split(x: Floats) -> Floats:
    """The high half of x: times a number of 24 bits it is exact, and so is the rest of x."""
    return (x.view(np.int64) & np.int64(-1 << 27)).view(np.float64)


def atan2(y: Floats, x: Floats) -> Bounds:
    near, more, error = relative(np.arctan2(y, x))
    quotient = y / x
    small = np.flatnonzero((np.abs(quotient) < SMALL) & (x > 0.0) & (x < math.inf) & (y != 0.0))
    if small.size:
        y, x, q = y[small], x[small], quotient[small]
        high = split(q)
        rest = ((y - high * x) - (q - high) * x) / x
        room = np.copysign(np.maximum(np.abs(q), TINIEST), q)
        cube = room * room * room / 3.0
        near[small], more[small], error[small] = q, rest - cube, (np.abs(rest) + np.abs(cube)) * 2.0**-20
    return near, more, error


def log_of_sum(power: Callable[[Floats], Floats], unit: float) -> Callable[[Floats, Floats], Bounds]:
    """log(base^a + base^b) is the greater operand and a term that shrinks with their distance."""

    def bounds(a: Floats, b: Floats) -> Bounds:
        greater, lesser = np.maximum(a, b) + 0.0, np.minimum(a, b)  # + 0.0: a greater -0 counts as 0, as in NumPy
        distance = np.clip(greater - lesser, 0.0, 600.0)
        more = np.log1p(power(-distance)) * unit
        more = np.where(np.isinf(greater) | np.isinf(lesser), 0.0, more)
        return greater, more, more * (2 * LIBRARY_ERROR + distance * 2.0**-53)

    return bounds


def pow(x: Floats, y: Floats) -> Bounds:
    size = np.abs(x)
    near, more, error = relative(np.power(size, y))
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
