"""NumPy's sums on SoftArrays, by the environment's accumulator; and arithmetic in several steps.

Each step is rounded into the array's format. A quotient by a count, which the format need not have, is rounded once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, fma, mul_add
from softfloat.arrays.creation import full, ones_like, zeros_like
from softfloat.arrays.handlers import (
    ABSENT,
    Handler,
    Step,
    arranged,
    as_soft,
    begun,
    by_lanes,
    check_dtype,
    folded,
    implements,
    keeping,
    laid_out,
    named,
    paired,
    placed,
    refuse,
    relocated,
    restored,
)
from softfloat.arrays.held import evaluated, wrapped
from softfloat.arrays.operands import check_has, common_format, one_of
from softfloat.arrays.order import searchsorted
from softfloat.arrays.softarray import SoftArray
from softfloat.bits.comparisons import quieted
from softfloat.engine import Codes
from softfloat.engine.arguments import has_one
from softfloat.environments import current_environment
from softfloat.formats import Format

generic: Any = np  # NumPy's functions, called on SoftArrays: their signatures know arrays alone

# -- sums and products -----------------------------------------------------------------------------------------------


def accumulator_for(fmt: Format, products: bool = True) -> Accumulator:
    """How the environment in force sums numbers of a format."""
    chosen = current_environment().accumulator
    if chosen is None:
        return _default(fmt, products)
    if not isinstance(chosen, Accumulator) and callable(chosen):
        chosen = chosen(fmt)
    if not isinstance(chosen, Accumulator):
        raise TypeError(f"accumulator of the environment must give a softfloat.Accumulator, got {chosen!r}")
    return chosen


@lru_cache(maxsize=256)
def _default(fmt: Format, products: bool) -> Accumulator:
    """Each product and each sum rounded to the format."""
    return mul_add(fmt) if products else fma(fmt)


def total(codes: Codes, fmt: Format, name: str) -> Codes:
    """Sums over the last axis."""
    how = accumulator_for(fmt, products=False)
    return np.asarray(evaluated(name, bits.sum, codes, fmt, how, axis=-1, out_format=fmt))


def product_of(a: Codes, b: Codes, fmt: Format, name: str) -> Codes:
    """Matrix product of codes."""
    return np.asarray(evaluated(name, bits.matmul, a, b, fmt, accumulator_for(fmt), out_format=fmt))


def dots_of(a: Codes, b: Codes, fmt: Format, name: str) -> Codes:
    """Dot products over the last axis."""
    return np.asarray(evaluated(name, bits.vecdot, a, b, fmt, accumulator_for(fmt), out_format=fmt))


MOST = 1 << 26  # the halves of a float64's significand, times a lesser count, are float64


def quotient(x: Codes, count: int | Fraction, fmt: Format, name: str) -> Codes:
    """Numbers divided by a count that the format need not have, rounded once."""
    if not count:
        if not fmt.zero:
            return np.asarray(evaluated(name, bits.encode, np.full(x.shape, np.nan), fmt))
        return np.asarray(evaluated(name, bits.div, x, fmt.dtype.type(0), fmt))
    values = np.asarray(bits.decode(x, fmt))
    finite = np.isfinite(values)
    values = np.where(finite, values, 1.0)
    if fmt.wide or count >= MOST or not isinstance(count, int):  # float64 has no bits to spare beside wide formats
        found = np.empty(x.shape, object)
        found.flat[:] = [Fraction(value) / count if value else value for value in values.reshape(-1).tolist()]
    else:
        near = np.asarray(values / count)
        high = (near.view(np.int64) & ~np.int64(MOST - 1)).view(np.float64)
        rest = (values - high * count) - (near - high) * count
        even = near.view(np.int64) & 1 == 0
        found = np.where(even & (rest != 0), np.nextafter(near, np.copysign(np.inf, rest)), near)
    codes = evaluated(
        name, bits.encode, np.where(finite, found, fmt.max), fmt
    )  # which raises nothing in the other places
    return np.where(finite, codes, x)


def _reduction(name: str, fold: Callable[[Codes, Format], Codes], start: Any, documentation: str) -> Handler:
    """A function that makes one element of all along some axes; `start` stands before them unless the caller names another."""

    def reduced(
        a: SoftArray,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = ABSENT,
        where: Any = True,
    ) -> Any:
        if (
            start is ABSENT
            and axis is dtype is out is None
            and keepdims is False
            and initial is ABSENT
            and where is True
        ):
            return wrapped(fold(a.codes.reshape(-1), a.format), a.format)
        check_dtype(name, dtype, a.format)
        if where is not True:
            return placed(by_lanes(reduced, name, a, axis, where, keepdims, initial=initial), out, name)
        codes, kept = laid_out(a.codes, axis)
        first = start if initial is ABSENT or initial is None else initial
        if first is start and start is not ABSENT and not has_one(a.format):  # products begin with the first element
            unit = None if codes.shape[-1] else one_of(a.format, f"{name} of no elements")
            first = ABSENT if unit is None else wrapped(np.array(unit, codes.dtype), a.format)
        codes = begun(codes, first, a.format, name)
        with keeping(codes, kept, keepdims):
            found = fold(codes, a.format)
        return placed(restored(found, kept, keepdims, a.format), out, name)

    reduced.__name__, reduced.__doc__ = name, documentation
    return reduced


def _summed(codes: Codes, fmt: Format) -> Codes:
    return total(codes, fmt, "sum")


sum_ = _reduction("sum", _summed, ABSENT, "Sums along axes, in C order, by the environment's accumulator.")
implements(np.sum)(sum_)


def running(a: SoftArray, axis: Any, dtype: Any, out: Any, name: str) -> Any:
    """Sums of the first 1, 2, 3 ... elements along an axis."""
    check_dtype(name, dtype, a.format)
    how = accumulator_for(a.format, products=False)
    codes = evaluated(name, bits.cumsum, a.codes, a.format, how, axis=axis, out_format=a.format)
    return placed(wrapped(np.asarray(codes), a.format), out, name)


@implements(np.cumsum)
def cumsum(a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums."""
    return running(a, axis, dtype, out, "cumsum")


def _cumulative(function: Handler, start: int) -> Handler:
    def cumulative(
        x: SoftArray, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        x = generic.atleast_1d(x)
        if axis is None and x.ndim != 1:
            raise ValueError(f"axis is needed for {x.ndim} axes")
        if not include_initial:
            return function(x, axis, dtype, out)
        axis = np.lib.array_utils.normalize_axis_index(0 if axis is None else axis, x.ndim)
        if start:
            check_has(x.format, f"{function.__name__} with include_initial", 1)
        first = full(tuple(1 if i == axis else n for i, n in enumerate(x.shape)), start, x.format)
        with arranged(x.shape, lambda found: np.insert(found, 0, -1, axis)):
            rest = function(x, axis, dtype)
        return placed(np.concatenate([first, rest], axis), out, function.__name__)

    return cumulative


def _times(name: str, fmt: Format) -> Step:
    return Step(fmt, lambda x, y: evaluated(name, bits.mul, x, y, fmt), "mul")


def _multiplied(codes: Codes, fmt: Format) -> Codes:
    if codes.shape[-1] == 1:
        return np.asarray(evaluated("prod", quieted, codes[..., 0], fmt))
    return folded(codes, _times("prod", fmt), False)


prod = _reduction("prod", _multiplied, 1, "Products along axes, in C order, each step rounded.")
implements(np.prod)(prod)


@implements(np.cumprod)
def cumprod(a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products, each step rounded."""
    return accumulated(a, axis, dtype, out, _times("cumprod", a.format), "cumprod")


for _function in named("cumulative_sum"):
    implements(_function)(_cumulative(cumsum, 0))
for _function in named("cumulative_prod"):
    implements(_function)(_cumulative(cumprod, 1))


def accumulated(a: SoftArray, axis: Any, dtype: Any, out: Any, step: Step, name: str) -> Any:
    """All steps of an operation along an axis."""
    check_dtype(name, dtype, a.format)
    codes, axis = (a.codes.reshape(-1), 0) if axis is None else (a.codes, axis)
    moved = np.moveaxis(codes, axis, -1)
    with arranged(moved.shape, lambda found: np.moveaxis(found, -1, axis)):
        steps = folded(moved, step, True) if moved.shape[-1] else moved.copy()
    return placed(wrapped(np.moveaxis(steps, -1, axis), a.format), out, name)


# -- other arithmetic ------------------------------------------------------------------------------------------------


@implements(np.round, np.around)
def round_(a: SoftArray, decimals: int = 0, out: Any = None) -> Any:
    """Elements to the nearest integer; with decimals, multiplied by a power of ten, rounded and divided again."""
    if not decimals:
        return placed(np.rint(a), out, "round")
    power = 10 ** abs(operator.index(decimals))
    scaled = np.rint(a * power if decimals > 0 else a / power)
    return placed(scaled / power if decimals > 0 else scaled * power, out, "round")


@implements(np.fix)
def fix(x: SoftArray, out: Any = None) -> Any:
    """Elements without their fractions."""
    return placed(np.trunc(x), out, "fix")


@implements(np.diff)
def diff(a: SoftArray, n: int = 1, axis: int = -1, prepend: Any = ABSENT, append: Any = ABSENT) -> SoftArray:
    """Differences of neighbours, n times over, each rounded."""
    if n < 0:
        raise ValueError(f"n of numpy.diff must be at least 0, got {n}")
    if not n:
        return a
    if not a.ndim:
        raise ValueError("numpy.diff needs an array of at least one axis")
    result = a
    for more, before in ((prepend, True), (append, False)):
        if more is not ABSENT:
            part = as_soft(more, a.format, "diff")
            if not part.ndim:
                part = generic.broadcast_to(part, tuple(1 if i == axis % a.ndim else k for i, k in enumerate(a.shape)))
            result = generic.concatenate([part, result] if before else [result, part], axis)
    for _ in range(n):
        codes = np.moveaxis(result.codes, axis, -1)
        with arranged(codes[..., 1:].shape, lambda found: np.moveaxis(found, -1, axis)):
            found = wrapped(codes[..., 1:], a.format) - wrapped(codes[..., :-1], a.format)
        result = wrapped(np.moveaxis(found.codes, -1, axis), a.format)
    return result


@implements(np.ediff1d)
def ediff1d(ary: SoftArray, to_end: Any = None, to_begin: Any = None) -> SoftArray:
    """Differences of neighbours of the flattened array, and what is put before and behind them."""
    parts = [x for x in (to_begin, diff(ary.reshape(-1)), to_end) if x is not None]
    return generic.concatenate([as_soft(x, ary.format, "ediff1d").reshape(-1) for x in parts])


@implements(np.gradient)
def gradient(f: SoftArray, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences of the neighbours on both sides over twice their distance; at the ends, of neighbours."""
    axes = range(f.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, f.ndim)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1,) * len(axes)
    if edge_order != 1 or len(steps) != len(axes) or any(np.ndim(step) for step in steps):
        raise TypeError("numpy.gradient of a SoftArray takes one distance, or one for each axis, and edge_order=1")
    for i in axes:
        if f.shape[i] < 2:
            raise ValueError(f"numpy.gradient needs two elements along axis {i}, got {f.shape[i]}")
    check_has(f.format, "gradient", 1, 2)
    found = []
    for i, step in zip(axes, steps, strict=True):
        x = generic.moveaxis(f, i, -1)
        parts = [x[..., 1:2] - x[..., :1], x[..., 2:] - x[..., :-2], x[..., -1:] - x[..., -2:-1]]
        parts = [part / (step * 2 if k == 1 else step) for k, part in enumerate(parts)]
        found.append(generic.moveaxis(generic.concatenate(parts, -1), -1, i))
    return found[0] if len(found) == 1 else tuple(found)


@implements(*named("trapezoid"), mixed=True)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> SoftArray:
    """The sum of the means of neighbours times their distances, each step rounded."""
    fmt = common_format([y, x, dx], "trapezoid")
    check_has(fmt, "trapezoid", 1, 2)
    heights = generic.moveaxis(as_soft(y, fmt, "trapezoid"), axis, -1)
    if x is not None:
        places = as_soft(x, fmt, "trapezoid")
        places = places if places.ndim == 1 else generic.moveaxis(places, axis, -1)
        np.broadcast_shapes(heights[..., 1:].shape, places[..., 1:].shape)
        dx = diff(places)
    return sum_((heights[..., 1:] + heights[..., :-1]) * dx / 2, -1)


@implements(*named("cross", "linalg.cross"), mixed=True)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> SoftArray:
    """The vector product in three dimensions: products, and their differences, rounded."""
    x, y, _ = paired("cross", a, b)
    one, two = (-1 if axis is None else axis,) * 2 if axis is not None else (axisa, axisb)
    x, y = generic.moveaxis(x, one, -1), generic.moveaxis(y, two, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError(
            f"numpy.cross of SoftArrays is of vectors of three elements, got {x.shape[-1]} and {y.shape[-1]}"
        )
    parts, target = [], axisc if axis is None else axis
    at = np.lib.array_utils.normalize_axis_index(target, max(x.ndim, y.ndim))
    for i in range(3):
        with relocated(lambda index, i: (*index[:at], i, *index[at:]), i):
            parts.append(x[..., (i + 1) % 3] * y[..., (i + 2) % 3] - x[..., (i + 2) % 3] * y[..., (i + 1) % 3])
    return generic.stack(parts, target)


@implements(np.interp, mixed=True)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> SoftArray:
    """Piecewise linear: from the point to the left, the slope times the distance, each step rounded."""
    refuse("interp", period=period)
    fmt = common_format([x, xp, fp], "interp")
    check_has(fmt, "interp", 1)
    x, xp, fp = (as_soft(z, fmt, "interp") for z in (x, xp, fp))
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ValueError(
            f"xp and fp of numpy.interp must be of one axis and one length, got shapes {xp.shape}, {fp.shape}"
        )
    place = searchsorted(xp, x, "right")
    below, above = np.maximum(place - 1, 0), np.minimum(place, xp.size - 1)
    low, base = xp[below], fp[below]
    inside = (above != below) & (x != low)
    run = generic.where(inside, xp[above] - low, 1)
    found = generic.where(inside, (fp[above] - base) / run * (x - low) + base, base)
    found = generic.where(x < xp[0], fp[0] if left is None else left, found)
    found = generic.where(x > xp[-1], fp[-1] if right is None else right, found)
    return generic.where(generic.isnan(x), x, found)


@implements(np.vander)
def vander(x: SoftArray, N: int | None = None, increasing: bool = False) -> SoftArray:
    """Powers of the elements, each the one before times the element, rounded."""
    count = x.size if N is None else operator.index(N)
    if x.ndim != 1 or count < 0:
        raise ValueError(f"numpy.vander needs x of one axis and N of at least 0, got shape {x.shape} and N={N}")
    columns = [ones_like(x), x]
    for _ in range(2, count):
        columns.append(columns[-1] * x)
    found = generic.stack(columns, axis=-1)[:, :count]
    return found if increasing else found[:, ::-1]


@implements(np.polyval, mixed=True)
def polyval(p: Any, x: Any) -> SoftArray:
    """A polynomial by Horner's rule, each product and each sum rounded."""
    fmt = common_format([p, x], "polyval")
    coefficients, at = as_soft(p, fmt, "polyval"), as_soft(x, fmt, "polyval")
    result = zeros_like(at)
    for c in coefficients:
        result = result * at + c
    return result


@implements(np.sinc)
def sinc(x: SoftArray) -> SoftArray:
    """sin(pi x) / (pi x), each step rounded."""
    y = x * math.pi
    return as_soft(
        np.where(bits.iszero(x.codes, x.format), 1, np.sin(y) / np.where(bits.iszero(y.codes, y.format), 1, y)),
        x.format,
        "sinc",
    )


@implements(np.real)
def real(val: SoftArray) -> SoftArray:
    """The array itself."""
    return val


@implements(np.imag)
def imag(val: SoftArray) -> SoftArray:
    """+0 in the array's shape."""
    return zeros_like(val)
