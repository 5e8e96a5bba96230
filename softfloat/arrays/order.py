"""NumPy's functions on SoftArrays that order numbers or tell of them: extremes, sorting, sets, places, truths."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays.handlers import (
    ABSENT,
    Handler,
    Step,
    as_soft,
    begun,
    by_lanes,
    each_within,
    folded,
    implements,
    keeping,
    laid_out,
    named,
    paired,
    placed,
    refuse,
    restored,
)
from softfloat.arrays.held import FUNCTIONS, evaluated, wrapped
from softfloat.arrays.operands import coerced, common_format
from softfloat.arrays.softarray import SoftArray
from softfloat.bits.comparisons import quieted
from softfloat.engine import Codes, folds
from softfloat.environments import current_environment
from softfloat.formats import Format

NAN_RANK = np.int64((1 << 63) - (1 << 51))
"""Beyond every number's: +inf of float64 has 2^63 - 2^52, and no format has a longer magnitude."""


def ranks(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """Integers that are ordered as the numbers are: -0 before +0, NaNs last."""
    return np.where(engine.is_nan(codes, fmt), NAN_RANK, engine.keys(codes, fmt).astype(np.int64))


def equal_ranks(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """The same with both zeros equal."""
    return np.where(bits.iszero(codes, fmt), 0, ranks(codes, fmt))


def _extreme(name: str, operation: str) -> Handler:
    """The greatest or the least element along axes: the operation on one after another."""
    largest = folds.EXTREMA[operation][0]

    def extreme(
        a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
    ) -> Any:
        if where is not True:
            return placed(by_lanes(extreme, name, a, axis, where, keepdims, initial=initial), out, name)
        codes, kept = laid_out(a.codes, axis)
        codes = begun(codes, initial, a.format, name)
        if not codes.shape[-1]:
            raise ValueError(f"numpy.{name} of no elements; accepted: initial=")
        fmt = a.format
        with keeping(codes, kept, keepdims):
            if codes.shape[-1] == 1:
                found = np.asarray(evaluated(name, quieted, codes[..., 0], fmt))
            elif folds.ordered(operation, codes, fmt, current_environment().settings.for_format(fmt.name)):
                keys = engine.keys(codes, fmt)
                found = engine.from_keys(keys.max(axis=-1) if largest else keys.min(axis=-1), fmt)
            else:
                step = Step(fmt, partial(evaluated, name, getattr(bits, operation), fmt=fmt), operation)
                found = folded(codes, step, False)
        return placed(restored(found, kept, keepdims, fmt), out, name)

    extreme.__name__ = name
    return extreme


max_, min_ = _extreme("max", "maximum"), _extreme("min", "minimum")
for _handler, _of in (
    (max_, (np.max, np.amax)),
    (min_, (np.min, np.amin)),
    (_extreme("nanmax", "maximum_number"), (np.nanmax,)),
    (_extreme("nanmin", "minimum_number"), (np.nanmin,)),
):
    implements(*_of)(_handler)


@implements(np.ptp)
def ptp(a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The greatest element less the least, rounded."""
    return placed(max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims), out, "ptp")


ANSWERING = """
argmax argmin argsort argpartition nanargmax nanargmin count_nonzero nonzero flatnonzero argwhere all any isposinf
isneginf isreal iscomplex isrealobj iscomplexobj lexsort
"""
"""Functions of one array whose answers are no numbers of the format, but places, counts and truths, told from exact values."""

COMPARING = "isclose allclose array_equal array_equiv digitize isin"
"""The same of two arrays; numbers among them are rounded into the format."""


def _by_value(function: Any, count: int) -> Handler:
    name = function.__name__
    numbers = set(list(inspect.signature(function).parameters)[:count]) if count > 1 else set()

    def told(*arguments: Any, out: Any = None, **keywords: Any) -> Any:
        fmt = common_format(list(each_within([*arguments, *keywords.values()])), name)

        def exact(x: Any) -> Any:
            if name == "lexsort" and isinstance(x, (list, tuple)):
                return [exact(item) for item in x]
            return np.asarray(bits.decode(coerced(x, fmt, name, quiet=True), fmt))

        operands = [exact(x) for x in arguments[:count]]
        named_ = {key: exact(x) if isinstance(x, SoftArray) or key in numbers else x for key, x in keywords.items()}
        return placed(function(*operands, *arguments[count:], **named_), out, name)

    return told


for _names, _count in ((ANSWERING, 1), (COMPARING, 2)):
    for _function in named(*_names.split()):
        FUNCTIONS[_function] = _by_value(_function, _count)


@implements(np.searchsorted, mixed=True)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Places in a sorted array where numbers of the same format belong."""
    fmt = common_format([a, v], "searchsorted")
    places, wanted = (np.asarray(as_soft(x, fmt, "searchsorted").values) for x in (a, v))
    return np.searchsorted(places, wanted, side, sorter)


@implements(np.histogram)
def histogram(a: SoftArray, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """How many numbers lie between edges, and the edges: of a number of bins NumPy's, each rounded into the format."""
    refuse("histogram", density=density or None, weights=weights)
    fmt, values = a.format, np.asarray(a.values)
    numbers = bins if np.ndim(bins) else np.histogram_bin_edges(values, bins, range).tolist()
    edges = as_soft(numbers, fmt, "histogram")
    return np.histogram(values, np.asarray(edges.values))[0], edges


@implements(np.sort)
def sort(a: SoftArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> SoftArray:
    """A sorted copy, NaNs last; -0 before +0, unless a stable order is asked for, in which both zeros are equal."""
    refuse("sort", order=order)
    codes, axis = (a.codes.reshape(-1), -1) if axis is None else (a.codes, axis)
    how: dict[str, Any] = {"kind": kind, "stable": stable}
    if stable or kind in ("stable", "mergesort") or engine.has_nan(codes, a.format):
        order = np.argsort(equal_ranks(codes, a.format), axis, **(how if stable or kind else {"kind": "stable"}))
        return wrapped(np.take_along_axis(codes, order, axis), a.format)
    return wrapped(engine.from_keys(np.sort(engine.keys(codes, a.format), axis, **how), a.format), a.format)


@implements(np.partition)
def partition(a: SoftArray, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> SoftArray:
    """A copy with the k-th element in its place: sorted, which is more."""
    np.partition(
        np.empty(a.size if axis is None else a.shape[axis], bool), kth, kind=kind
    )  # refuses what it does not take
    return sort(a, axis, order=order)


@implements(np.unique)
def unique(
    ar: SoftArray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The numbers there are, sorted in any case; both zeros count as one, and all NaNs unless each is to count for itself."""
    refuse("unique", axis=axis)
    fmt = ar.format
    flat = ar.codes.reshape(-1)
    keys = equal_ranks(flat, fmt)
    if not equal_nan:
        nan = np.flatnonzero(keys == NAN_RANK)
        keys[nan] += np.arange(nan.size)
    found_at: Any = np.unique
    _, first, *rest = found_at(keys, True, return_inverse, return_counts)
    if return_inverse:
        rest[0] = rest[0].reshape(ar.shape)
    found = wrapped(flat[first], fmt)
    more = ([first] if return_index else []) + rest
    return (found, *more) if more else found


def _of_the_standard(name: str, *fields: str) -> None:
    function = getattr(np, name)
    result: Any = type(function(np.zeros(0)))

    def found(x: SoftArray, /) -> Any:
        """The numbers there are, and what else the name says; each NaN counts for itself."""
        parts = unique(x, True, True, True, equal_nan=False)
        chosen = [parts[("values", "indices", "inverse_indices", "counts").index(field)] for field in fields]
        return result(*chosen) if len(chosen) > 1 else chosen[0]

    implements(function)(found)


_of_the_standard("unique_all", "values", "indices", "inverse_indices", "counts")
_of_the_standard("unique_counts", "values", "counts")
_of_the_standard("unique_inverse", "values", "inverse_indices")
_of_the_standard("unique_values", "values")


def _sets(function: str, a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    x, y, _ = paired(function, a, b)
    return unique(x), unique(y)


@implements(np.union1d, mixed=True)
def union1d(ar1: Any, ar2: Any) -> SoftArray:
    """The numbers in either array, sorted."""
    return unique(np.concatenate(_sets("union1d", ar1, ar2)))


@implements(np.intersect1d, mixed=True)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The numbers in both arrays, sorted; with the places where they come first in each."""
    one, two, _ = paired("intersect1d", ar1, ar2)
    (x, first), (y, second) = unique(one, True), unique(two, True)
    both = np.isin(x, y)
    return (x[both], first[both], second[np.isin(y, x)]) if return_indices else x[both]


@implements(np.setdiff1d, mixed=True)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> SoftArray:
    """The numbers in the first array alone, sorted; in their order if they are said to be different."""
    one, two, _ = paired("setdiff1d", ar1, ar2)
    x = one.reshape(-1) if assume_unique else unique(one)
    return x[~np.isin(x, two)]


@implements(np.setxor1d, mixed=True)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> SoftArray:
    """The numbers in one array alone, sorted."""
    x, y = _sets("setxor1d", ar1, ar2)
    return sort(np.concatenate([x[~np.isin(x, y)], y[~np.isin(y, x)]]))


@implements(np.clip, mixed=True)
def clip(
    a: Any,
    a_min: Any = ABSENT,
    a_max: Any = ABSENT,
    out: Any = None,
    *,
    min: Any = ABSENT,
    max: Any = ABSENT,
    **keywords: Any,
) -> Any:
    """Elements brought between two bounds."""
    refuse("clip", **keywords)
    low = a_min if a_min is not ABSENT else min
    high = a_max if a_max is not ABSENT else max
    fmt = common_format([a, low, high], "clip")
    result = as_soft(a, fmt, "clip")
    np.broadcast_shapes(result.shape, *(np.shape(x) for x in (low, high) if x is not ABSENT and x is not None))
    if low is not ABSENT and low is not None:
        result = np.maximum(result, low)
    if high is not ABSENT and high is not None:
        result = np.minimum(result, high)
    return placed(result if result is not a else result.copy(), out, "clip")
