"""NumPy's means, variances, quantiles, and functions that leave out NaNs, on SoftArrays; each step rounded into the array's format."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.creation import full_like
from softfloat.arrays.functions import nan_to_num
from softfloat.arrays.handlers import (
    ABSENT,
    Handler,
    as_soft,
    by_lanes,
    check_dtype,
    implements,
    keeping,
    laid_out,
    placed,
    refuse,
    relocated,
    restored,
    truth,
)
from softfloat.arrays.held import evaluated, wrapped
from softfloat.arrays.operands import check_has, coerced, common_format
from softfloat.arrays.order import sort
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import cumprod, cumsum, dots_of, prod, product_of, quotient, sum_, total
from softfloat.engine import Codes

generic: Any = np  # NumPy's functions, called on SoftArrays: their signatures know arrays alone


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
        middle = low if count % 2 else wrapped(quotient((low + high).codes, 2, a.format, "median"), a.format)
    return placed(restored(_or_nan(middle, ordered), kept, keepdims, a.format), out, "median")


def _or_nan(found: SoftArray, ordered: SoftArray) -> Codes:
    """What was found, unless the last of the sorted numbers is no number."""
    last = ordered.codes[..., -1]
    return np.where(bits.isnan(last, found.format), last, found.codes)


PLACES: dict[str, Callable[[Fraction], Fraction]] = {
    "linear": lambda place: place,
    "lower": lambda place: Fraction(math.floor(place)),
    "higher": lambda place: Fraction(math.ceil(place)),
    "nearest": lambda place: Fraction(round(place)),
    "midpoint": lambda place: Fraction(math.floor(place) + math.ceil(place), 2),
}
"""Where each method of quantiles looks instead of between two elements."""


UNITS = {"quantile": Fraction(1), "percentile": Fraction(1, 100)}


def _shares(q: Any, name: str) -> np.ndarray[Any, Any]:
    """Shares of the way from the least to the greatest, exactly."""
    shares = np.asarray(q.values if isinstance(q, SoftArray) else q, object)
    for share in shares.reshape(-1):
        if not 0 <= share <= 1 / UNITS[name]:
            raise ValueError(f"q of numpy.{name} must be 0 to {1 / UNITS[name]}, got {share}")
    return shares


def _quantiles(name: str, documentation: str) -> Handler:
    """A function of sorted elements at shares of a unit."""

    def quantiles(
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
        refuse(name, weights=weights)
        if method not in PLACES:
            raise TypeError(f"numpy.{name} of a SoftArray has no method={method!r}; accepted: {', '.join(PLACES)}")
        shares = _shares(q, name)
        codes, kept = laid_out(a.codes, axis)
        last = codes.shape[-1] - 1
        if last < 0:
            raise ValueError(f"numpy.{name} of no elements")
        check_has(a.format, name, 1)  # and with it numbers near the weights
        ordered = sort(wrapped(codes, a.format))
        places = [PLACES[method](Fraction(share) * UNITS[name] * last) for share in shares.reshape(-1)]
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

    quantiles.__name__ = quantiles.__qualname__ = name
    quantiles.__doc__ = documentation
    return implements(getattr(np, name))(quantiles)


quantile = _quantiles(
    "quantile",
    "The element at a share q of the way from the least to the greatest; between two, each step from one to the other is rounded.",
)
percentile = _quantiles("percentile", "As `quantile`, of hundredths.")


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
        shape = (_shares(given["q"], function.__name__).shape if "q" in given else ()) + a.shape[:-1]
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
    check_has(a.format, "nancumprod", 1)
    return cumprod(nan_to_num(a, nan=1, posinf=math.inf, neginf=-math.inf), axis, dtype, out)
