"""NumPy's sums, statistics and linear algebra on SoftArrays, by the environment's accumulator; and arithmetic in several steps.

Each step is rounded into the array's format. A quotient by a count, which the format need not have, is rounded once.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, fma, mul_add
from softfloat.arrays.creation import full_like, ones_like, zeros_like
from softfloat.arrays.functions import (
    ABSENT,
    Handler,
    arranged,
    as_soft,
    begun,
    by_lanes,
    check_dtype,
    implements,
    keeping,
    laid_out,
    named,
    nan_to_num,
    paired,
    placed,
    refuse,
    relocated,
    restored,
    searchsorted,
    sort,
    truth,
)
from softfloat.arrays.held import evaluated, wrapped
from softfloat.arrays.operands import coerced, common_format
from softfloat.arrays.softarray import SoftArray
from softfloat.engine import Codes, folds
from softfloat.environments import WATCHES, current_environment
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
    if count >= MOST or not isinstance(count, int):
        exact = [Fraction(value) / count for value in values.reshape(-1).tolist()]
        codes = np.reshape(evaluated(name, bits.encode, exact, fmt), x.shape)
    else:
        near = np.asarray(values / count)
        high = (near.view(np.int64) & ~np.int64(MOST - 1)).view(np.float64)
        rest = (values - high * count) - (near - high) * count
        even = near.view(np.int64) & 1 == 0
        odd = np.where(even & (rest != 0), np.nextafter(near, np.copysign(np.inf, rest)), near)
        codes = np.asarray(evaluated(name, bits.encode, odd, fmt))
    return np.where(finite, codes, x).astype(fmt.dtype)


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
        codes = begun(codes, start if initial is ABSENT or initial is None else initial, a.format, name)
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
        if axis is None and x.ndim != 1:
            raise ValueError(f"axis is needed for {x.ndim} axes")
        if not include_initial:
            return function(x, axis, dtype, out)
        axis = 0 if axis is None else axis
        first = full_like(np.take(x, [0], axis), start)
        with arranged(x.shape, lambda found: np.insert(found, 0, -1, axis)):
            rest = function(x, axis, dtype)
        return placed(np.concatenate([first, rest], axis), out, function.__name__)

    return cumulative


class Step(NamedTuple):
    """What a fold does again and again: compute(x, y) makes codes of codes; `operation` is its name in `softfloat.bits`, if it has one."""

    fmt: Format
    compute: Callable[[Codes, Codes], Codes]
    operation: str = ""


def folded(codes: Codes, step: Step, keep: bool) -> Codes:
    """An operation along the last axis, one element after the other; with all steps if `keep`."""
    found = _folded_at_once(codes, step, keep)
    if found is not None:
        return found
    state = codes[..., 0]
    steps = [state]
    for k in range(1, codes.shape[-1]):
        with relocated(lambda index, step: (*index, step) if keep else index, k):
            state = np.asarray(step.compute(state, codes[..., k]))
        if keep:
            steps.append(state)
    return np.stack(steps, axis=-1) if keep else state


def _folded_at_once(codes: Codes, step: Step, keep: bool) -> Codes | None:
    """The same in one loop; None where that does not serve, or a trap or random numbers need places."""
    env = current_environment()
    settings = env.settings.for_format(step.fmt.name)
    shape, rows = codes.shape[:-1], codes.reshape(-1, codes.shape[-1]).T
    if env.placed or WATCHES or not folds.serves(step.operation, rows, step.fmt, settings):
        return None
    streams = env.streams.take_many(rows.shape[0] - 1)
    try:
        steps, flags = folds.fold(step.operation, rows, step.fmt, settings, streams, keep)
    except BaseException:
        for number in reversed(streams):
            env.streams.give_back(number)
        raise
    env.status.add(int(np.bitwise_or.reduce(flags)))
    return steps.T.reshape(codes.shape) if keep else steps.reshape(shape)


def _times(name: str, fmt: Format) -> Step:
    return Step(fmt, lambda x, y: evaluated(name, bits.mul, x, y, fmt), "mul")


def _multiplied(codes: Codes, fmt: Format) -> Codes:
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


@implements(np.mean)
def mean(
    a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """The sum, as `sum` finds it, divided by the count; the quotient is rounded once, whether or not the format has the count."""
    check_dtype("mean", dtype, a.format)
    if where is not True:
        return placed(by_lanes(mean, "mean", a, axis, where, keepdims), out, "mean")
    codes, kept = laid_out(a.codes, axis)
    with keeping(codes, kept, keepdims):
        found = quotient(total(codes, a.format, "mean"), codes.shape[-1], a.format, "mean")
    return placed(restored(found, kept, keepdims, a.format), out, "mean")


@implements(np.average, mixed=True)
def average(
    a: SoftArray, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """The mean; with weights, the dot product with them divided by their sum."""
    if weights is None:
        found = mean(a, axis, keepdims=keepdims)
        return (found, full_like(found, laid_out(a.codes, axis)[0].shape[-1])) if returned else found
    fmt = common_format([a, weights], "average")
    given = as_soft(weights, fmt, "average")
    if given.shape != a.shape:
        if axis is None or isinstance(axis, tuple) or given.ndim != 1:
            raise TypeError("weights of numpy.average must have the shape of a SoftArray, or that of one axis")
        given = wrapped(np.moveaxis(np.broadcast_to(given.codes, np.moveaxis(a.codes, axis, -1).shape), -1, axis), fmt)
    (codes, kept), (factors, _) = laid_out(a.codes, axis), laid_out(given.codes, axis)
    with keeping(codes, kept, keepdims):
        scale = wrapped(total(factors, fmt, "average"), fmt)
        found = wrapped(dots_of(codes, factors, fmt, "average"), fmt) / scale
    result = restored(found.codes, kept, keepdims, fmt)
    return (result, restored(scale.codes, kept, keepdims, fmt)) if returned else result


def _exact(number: Any) -> int | Fraction:
    """A count, or a share of one."""
    found = Fraction(float(number))
    return int(found) if found.denominator == 1 else found


@implements(np.var)
def var(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    """The dot product with itself of what is left after the mean, divided by count - ddof; mean and differences are rounded."""
    check_dtype("var", dtype, a.format)
    fmt = a.format
    if where is not True:
        refuse("var", mean=mean)
        some = by_lanes(var, "var", a, axis, where, keepdims, ddof=ddof, correction=correction)
        return placed(some, out, "var")
    codes, kept = laid_out(a.codes, axis)
    count = codes.shape[-1]
    freedom = max(count - _exact(ddof if correction is ABSENT else correction), 0)
    with keeping(codes, kept, keepdims):
        if mean is ABSENT or mean is None:
            centre = quotient(total(codes, fmt, "var"), count, fmt, "var")[..., None]
        else:
            centre = laid_out(np.broadcast_to(coerced(mean, fmt, "var"), a.shape), axis)[0]
        with relocated(lambda index: index[:-1]):
            left = np.asarray(evaluated("var", bits.sub, codes, centre, fmt))
        squares = dots_of(left, left, fmt, "var")
        found = quotient(squares, freedom, fmt, "var")
    return placed(restored(found, kept, keepdims, fmt), out, "var")


@implements(np.std)
def std(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    """The square root of `var`, rounded."""
    squared = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return placed(_root(squared, "std"), out, "std")


def _root(x: SoftArray, name: str) -> SoftArray:
    return wrapped(evaluated(name, bits.sqrt, x.codes, x.format), x.format)


@implements(np.cov)
def cov(
    m: SoftArray,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> SoftArray:
    """Dot products of what is left of rows after their means, divided by count - ddof; means and differences are rounded."""
    refuse("cov", fweights=fweights, aweights=aweights)
    check_dtype("cov", dtype, m.format)
    fmt = m.format
    if m.ndim > 2:
        raise ValueError(f"m of numpy.cov must be of at most two axes, got {m.ndim}")
    given = [m] if y is None else [m, as_soft(y, fmt, "cov")]
    rows = [generic.atleast_2d(x) if rowvar or x.ndim == 1 else x.T for x in given]
    codes = np.concatenate([x.codes for x in rows])
    count = codes.shape[1]
    freedom = max(count - _exact(int(not bias) if ddof is None else ddof), 0)
    centre = quotient(total(codes, fmt, "cov"), count, fmt, "cov")
    with relocated(lambda index: index[:-1]):
        left = np.asarray(evaluated("cov", bits.sub, codes, centre[:, None], fmt))
    found = quotient(product_of(left, left.T, fmt, "cov"), freedom, fmt, "cov")
    return generic.squeeze(wrapped(found, fmt))


# -- quantiles ---------------------------------------------------------------------------------------------------------


@implements(np.median)
def median(
    a: SoftArray, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The middle element; between two, half of their rounded sum, rounded."""
    codes, kept = laid_out(a.codes, axis)
    count = codes.shape[-1]
    if not count:
        return mean(a, axis, out=out, keepdims=keepdims)
    ordered = sort(wrapped(codes, a.format))
    low, high = ordered[..., (count - 1) // 2], ordered[..., count // 2]
    with keeping(codes, kept, keepdims):
        middle = low if count % 2 else (low + high) / 2
    return placed(restored(_or_nan(middle, ordered), kept, keepdims, a.format), out, "median")


def _or_nan(found: SoftArray, ordered: SoftArray) -> Codes:
    """What was found, unless the last of the sorted numbers is no number."""
    last = ordered.codes[..., -1]
    return np.where(bits.isnan(last, found.format), last, found.codes)


@implements(np.quantile)
def quantile(
    a: SoftArray,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The element at a share q of the way from the least to the greatest; between two, each step from one to the other is rounded."""
    return _quantiles(a, q, Fraction(1), axis, out, method, keepdims, weights, "quantile")


@implements(np.percentile)
def percentile(
    a: SoftArray,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """As `quantile`, of hundredths."""
    return _quantiles(a, q, Fraction(1, 100), axis, out, method, keepdims, weights, "percentile")


PLACES: dict[str, Callable[[Fraction], Fraction]] = {
    "linear": lambda place: place,
    "lower": lambda place: Fraction(math.floor(place)),
    "higher": lambda place: Fraction(math.ceil(place)),
    "nearest": lambda place: Fraction(round(place)),
    "midpoint": lambda place: Fraction(math.floor(place) + math.ceil(place), 2),
}
"""Where each method of quantiles looks instead of between two elements."""


def _quantiles(
    a: SoftArray, q: Any, unit: Fraction, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, name: str
) -> Any:
    refuse(name, weights=weights)
    if method not in PLACES:
        raise TypeError(f"numpy.{name} of a SoftArray has no method={method!r}; accepted: {', '.join(PLACES)}")
    shares = np.asarray(q.values if isinstance(q, SoftArray) else q, object)
    codes, kept = laid_out(a.codes, axis)
    last = codes.shape[-1] - 1
    if last < 0:
        raise ValueError(f"numpy.{name} of no elements")
    ordered = sort(wrapped(codes, a.format))
    places = []
    for share in shares.reshape(-1):
        place = Fraction(share) * unit * last
        if not 0 <= place <= last:
            raise ValueError(f"q of numpy.{name} must be 0 to {1 / unit}, got {share}")
        places.append(PLACES[method](place))
    found = []
    for place in places:
        below = math.floor(place)
        weight = place - below
        low, high = ordered[..., below], ordered[..., min(below + 1, last)]
        if not weight:
            between = low
        elif weight < Fraction(1, 2):
            between = low + (high - low) * weight
        else:
            between = high - (high - low) * (1 - weight)
        found.append(_or_nan(between, ordered))
    results = np.array(found, a.format.dtype).reshape(shares.shape + codes.shape[:-1])
    return placed(restored(results, kept, keepdims, a.format, shares.ndim), out, name)


# -- what is no NaN ----------------------------------------------------------------------------------------------------


def _numbers_only(function: Handler, name: str) -> Handler:
    """A reduction of what is no NaN."""

    def reduced(*arguments: Any, **keywords: Any) -> Any:
        given = inspect.signature(function).bind(*arguments, **keywords).arguments
        a = given.pop("a")
        refuse(name, mean=given.pop("mean", None))
        numbers = ~bits.isnan(a.codes, a.format) & truth(given.pop("where", True))
        axis, out, keepdims = (
            given.pop(key, default) for key, default in (("axis", None), ("out", None), ("keepdims", False))
        )
        return placed(by_lanes(function, name, a, axis, numbers, keepdims, **given), out, name)

    return reduced


def _nan_of_few(function: Handler) -> Handler:
    """A function of the last axis; NaN, as of 0/0, where it has no more numbers than its degrees of freedom take away."""

    @wraps(function)
    def found(a: SoftArray, **given: Any) -> SoftArray:
        if a.shape[-1] > _exact(given.get("correction", given.get("ddof", 0))):
            return function(a, **given)
        shape = np.shape(given.get("q", 0)) + a.shape[:-1]
        return wrapped(quotient(np.zeros(shape, a.codes.dtype), 0, a.format, function.__name__), a.format)

    return found


for _base in (sum_, prod, mean, median, *map(_nan_of_few, (var, std, quantile, percentile))):
    _name = f"nan{_base.__name__.rstrip('_')}"
    implements(getattr(np, _name))(_numbers_only(_base, _name))


@implements(np.nancumsum)
def nancumsum(a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums with zeros for NaNs."""
    return cumsum(nan_to_num(a, nan=0, posinf=math.inf, neginf=-math.inf), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products with ones for NaNs."""
    return cumprod(nan_to_num(a, nan=1, posinf=math.inf, neginf=-math.inf), axis, dtype, out)


# -- products of arrays ------------------------------------------------------------------------------------------------


@implements(np.dot, mixed=True)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Sums over the last axis of a and the last but one of b."""
    x, y, fmt = paired("dot", a, b)
    if not x.ndim or not y.ndim:
        return placed(np.multiply(x, y), out, "dot")
    return placed(_contracted(x.codes, y.codes, x.ndim - 1, max(y.ndim - 2, 0), fmt, "dot"), out, "dot")


def _contracted(a: Codes, b: Codes, axis_a: int, axis_b: int, fmt: Format, name: str) -> SoftArray:
    """Sums over one axis of each; the others of a, then those of b, are left."""
    if a.shape[axis_a] != b.shape[axis_b]:
        raise ValueError(
            f"shapes do not fit in numpy.{name}: {a.shape} along axis {axis_a}, {b.shape} along axis {axis_b}"
        )
    x, y = np.moveaxis(a, axis_a, -1), np.moveaxis(b, axis_b, 0)
    return wrapped(_flat_product(x, y, 1, fmt, name), fmt)


def _flat_product(x: Codes, y: Codes, count: int, fmt: Format, name: str) -> Codes:
    """Sums over the last `count` axes of x and the first of y; the others of x, then those of y, are left."""
    rows, columns = x.shape[: x.ndim - count], y.shape[count:]
    length = math.prod(y.shape[:count])
    with arranged((math.prod(rows), math.prod(columns)), lambda found: found.reshape(rows + columns)):
        found = product_of(x.reshape(math.prod(rows), length), y.reshape(length, math.prod(columns)), fmt, name)
    return found.reshape(rows + columns)


@implements(np.vdot, mixed=True)
def vdot(a: Any, b: Any) -> SoftArray:
    """The dot product of two flattened arrays."""
    x, y, fmt = paired("vdot", a, b)
    return _contracted(x.codes.reshape(-1), y.codes.reshape(-1), 0, 0, fmt, "vdot")


@implements(np.inner, mixed=True)
def inner(a: Any, b: Any) -> Any:
    """Sums over both last axes."""
    x, y, fmt = paired("inner", a, b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    return _contracted(x.codes, y.codes, x.ndim - 1, y.ndim - 1, fmt, "inner")


@implements(*named("outer", "linalg.outer"), mixed=True)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every product of two flattened arrays."""
    x, y, _ = paired("outer", a, b)
    return placed(np.multiply(x.reshape(-1, 1), y.reshape(1, -1)), out, "outer")


@implements(*named("tensordot", "linalg.tensordot"), mixed=True)
def tensordot(a: Any, b: Any, axes: Any = 2) -> SoftArray:
    """Sums over pairs of axes."""
    x, y, fmt = paired("tensordot", a, b)
    if isinstance(axes, (int, np.integer)):
        first: Any = range(x.ndim - int(axes), x.ndim)
        second: Any = range(int(axes))
    else:
        first, second = ([one] if isinstance(one, (int, np.integer)) else list(one) for one in axes)
    first, second = [int(i) % x.ndim for i in first], [int(i) % y.ndim for i in second]
    if [x.shape[i] for i in first] != [y.shape[i] for i in second]:
        raise ValueError(f"shapes do not fit in numpy.tensordot: {x.shape} along {first}, {y.shape} along {second}")
    rest_x = [i for i in range(x.ndim) if i not in first]
    rest_y = [i for i in range(y.ndim) if i not in second]
    left, right = x.codes.transpose(*rest_x, *first), y.codes.transpose(*second, *rest_y)
    return wrapped(_flat_product(left, right, len(first), fmt, "tensordot"), fmt)


@implements(np.kron, mixed=True)
def kron(a: Any, b: Any) -> SoftArray:
    """The Kronecker product."""
    x, y, _ = paired("kron", a, b)
    dims = max(x.ndim, y.ndim)
    one, two = (z.reshape((1,) * (dims - z.ndim) + z.shape) for z in (x, y))
    left = one.reshape([n for pair in zip(one.shape, (1,) * dims, strict=True) for n in pair])
    right = two.reshape([n for pair in zip((1,) * dims, two.shape, strict=True) for n in pair])
    shape = [m * n for m, n in zip(one.shape, two.shape, strict=True)]
    with arranged([n for pair in zip(one.shape, two.shape, strict=True) for n in pair], lambda z: z.reshape(shape)):
        return (left * right).reshape(shape)


@implements(np.trace)
def trace(a: SoftArray, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of the diagonal."""
    return sum_(wrapped(np.diagonal(a.codes, offset, axis1, axis2), a.format), -1, dtype, out)


@implements(*named("linalg.trace"))
def linalg_trace(x: SoftArray, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the last two axes."""
    return trace(x, offset, -2, -1, dtype)


@implements(*named("linalg.matmul"), mixed=True)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product."""
    return generic.matmul(x1, x2)


@implements(*named("linalg.vecdot"), mixed=True)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Dot products along an axis."""
    return generic.vecdot(x1, x2, axis=axis)


@implements(np.einsum, mixed=True)
def einsum(subscripts: Any, *operands: Any, out: Any = None, optimize: Any = False, **keywords: Any) -> Any:
    """Sums of products over the indices that the result lacks, in the order in which they first appear; one or two operands."""
    refuse("einsum", **keywords)
    if not isinstance(subscripts, str):
        raise TypeError("numpy.einsum of SoftArrays needs its subscripts as a string")
    if not 1 <= len(operands) <= 2:
        raise TypeError(
            f"numpy.einsum of SoftArrays takes one or two operands, got {len(operands)}: nest calls to say in which order to round"
        )
    fmt = common_format(operands, "einsum")
    codes = [coerced(x, fmt, "einsum", i) for i, x in enumerate(operands)]
    terms, wanted = _subscripts(subscripts, [x.ndim for x in codes])
    sizes: dict[str, int] = {}
    parts = []
    for term, x in zip(terms, codes, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) in (1, n):
                sizes[letter] = n
            elif n != 1:
                raise ValueError(f"numpy.einsum: index {letter!r} has lengths {sizes[letter]} and {n}")
        letters = list(dict.fromkeys(term))
        repeated = len(letters) < len(term)
        places = [letters.index(c) for c in term]
        parts.append(
            (letters, np.einsum(x, places, list(range(len(letters)))) if repeated else x)
        )  # a diagonal: a view
    summed = [letter for letter in dict.fromkeys("".join(terms)) if letter not in wanted]
    expanded = [
        np.broadcast_to(_spread_out(x, letters, [*wanted, *summed]), [sizes[c] for c in (*wanted, *summed)])
        for letters, x in parts
    ]
    shape, length = [sizes[c] for c in wanted], math.prod(sizes[c] for c in summed)
    if len(expanded) == 1:
        result = total(expanded[0].reshape(*shape, length), fmt, "einsum") if summed else expanded[0].copy()
    elif summed:
        result = _einsum_pair(parts, list(wanted), summed, sizes, fmt)
    else:
        result = np.asarray(evaluated("einsum", bits.mul, *expanded, fmt))
    return placed(wrapped(result.reshape(shape), fmt), out, "einsum")


def _subscripts(subscripts: str, dims: Sequence[int]) -> tuple[list[str], str]:
    """Letters of the operands and of the result, ellipses written out in digits."""
    text = subscripts.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(dims):
        raise ValueError(f"numpy.einsum: {subscripts!r} names {len(terms)} operands, and there are {len(dims)}")
    extra = [n - len(term.replace("...", "")) if "..." in term else 0 for term, n in zip(terms, dims, strict=True)]
    digits = "0123456789"[: max(extra, default=0)]
    terms = [term.replace("...", digits[len(digits) - n :]) for term, n in zip(terms, extra, strict=True)]
    for term, n in zip(terms, dims, strict=True):
        if len(term) != n or (not term.replace("...", "").isalnum() and term):
            raise ValueError(f"numpy.einsum: {term!r} does not fit an operand of {n} axes")
    if arrow:
        wanted = wanted.replace("...", digits)
    else:
        letters = "".join(terms)
        wanted = digits + "".join(sorted(c for c in set(letters) - set(digits) if letters.count(c) == 1))
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set("".join(terms)):
        raise ValueError(f"numpy.einsum: {subscripts!r} asks for indices that no operand has, or for one twice")
    return terms, wanted


def _spread_out(x: Codes, letters: Sequence[str], order: Sequence[str]) -> Codes:
    """Axes in a given order, of length 1 where there are none."""
    present = [c for c in order if c in letters]
    moved = x.transpose([letters.index(c) for c in present])
    return moved.reshape([moved.shape[present.index(c)] if c in present else 1 for c in order])


def _einsum_pair(
    parts: list[tuple[list[str], Codes]], wanted: list[str], summed: list[str], sizes: dict[str, int], fmt: Format
) -> Codes:
    """Two operands as stacks of matrices: indices of both, of the first alone, of the second alone."""
    (first, a), (second, b) = parts
    both = [c for c in wanted if c in first and c in second]
    rows = [c for c in wanted if c in first and c not in second]
    columns = [c for c in wanted if c in second and c not in first]

    def laid(x: Codes, letters: list[str], order: list[str], shape: list[int]) -> Codes:
        return np.broadcast_to(_spread_out(x, letters, order), [sizes[c] for c in order]).reshape(shape)

    batch = [sizes[c] for c in both]
    count, length, width = (math.prod(sizes[c] for c in group) for group in (rows, summed, columns))
    left = laid(a, first, both + rows + summed, [*batch, count, length])
    right = laid(b, second, both + summed + columns, [*batch, length, width])
    order = both + rows + columns

    def arrange(found: Codes) -> Codes:
        return found.reshape([sizes[c] for c in order]).transpose([order.index(c) for c in wanted])

    if not rows and not columns:  # dot products, which are quicker than matrices of one element
        with arranged(batch, arrange):
            return arrange(dots_of(left[..., 0, :], right[..., 0], fmt, "einsum"))
    with arranged([*batch, count, width], arrange):
        return arrange(product_of(left, right, fmt, "einsum"))


def _sliding(function: str, a: Any, v: Any, mode: str, reverse: bool) -> SoftArray:
    """Dot products of a with v at every shift, over growing indices of a."""
    x, y, fmt = paired(function, a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(
            f"numpy.{function} needs arrays of one axis and at least one element, got shapes {x.shape} and {y.shape}"
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode of numpy.{function} must be 'full', 'same' or 'valid', got {mode!r}")
    swapped = y.size > x.size
    one, two = (y.codes, x.codes) if swapped else (x.codes, y.codes)
    two = two[::-1] if reverse else two
    n, k = one.size, two.size
    middle_first = (k - 1) // 2
    places = {"valid": range(k - 1, n), "full": range(n + k - 1), "same": range(middle_first, middle_first + n)}[mode]
    inside = np.lib.stride_tricks.sliding_window_view(one, k)
    result = np.empty(len(places), fmt.dtype)
    backwards = swapped and not reverse
    with arranged(result.shape, lambda found: found[::-1] if backwards else found):
        first, last = k - 1 - places.start, n - places.start
        with relocated(lambda index: (index[0] + first,)):
            result[first:last] = product_of(inside, two, fmt, function)
        for i in (*range(first), *range(last, len(places))):
            place = places[i]
            low, high = max(place - k + 1, 0), min(place, n - 1)
            with relocated(lambda index, at: (at,), i):
                result[i] = dots_of(one[low : high + 1], two[low - place + k - 1 : high - place + k], fmt, function)
    return wrapped(result[::-1].copy() if backwards else result, fmt)


@implements(np.convolve, mixed=True)
def convolve(a: Any, v: Any, mode: Any = "full") -> SoftArray:
    """The discrete convolution; each element is a dot product, by the environment's accumulator."""
    return _sliding("convolve", a, v, mode, reverse=True)


@implements(np.correlate, mixed=True)
def correlate(a: Any, v: Any, mode: Any = "valid") -> SoftArray:
    """The cross-correlation; each element is a dot product, by the environment's accumulator."""
    return _sliding("correlate", a, v, mode, reverse=False)


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
    parts = [x[..., (i + 1) % 3] * y[..., (i + 2) % 3] - x[..., (i + 2) % 3] * y[..., (i + 1) % 3] for i in range(3)]
    return generic.stack(parts, axisc if axis is None else axis)


@implements(np.interp, mixed=True)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> SoftArray:
    """Piecewise linear: from the point to the left, the slope times the distance, each step rounded."""
    refuse("interp", period=period)
    fmt = common_format([x, xp, fp], "interp")
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
    columns = [ones_like(x), x]
    for _ in range(2, x.size if N is None else N):
        columns.append(columns[-1] * x)
    columns = columns[: x.size if N is None else max(N, 1)]
    return generic.stack(columns if increasing else columns[::-1], axis=-1)


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
