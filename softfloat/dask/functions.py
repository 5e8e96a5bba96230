"""NumPy's functions on arrays in blocks: those of each element that are made of others, and those that only move codes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np

from softfloat import bits
from softfloat.dask.collections import COMPOSED, SUMS, DaskArray, Truths, applied, elementwise, operand
from softfloat.engine.arguments import has_one
from softfloat.environments import Rounding
from softfloat.formats import float32

__all__ = ["where"]

MOVES = (
    "reshape", "transpose", "ravel", "squeeze", "expand_dims", "swapaxes", "moveaxis", "rollaxis", "broadcast_to", "flip", "flipud",
    "fliplr", "rot90", "roll", "tile", "repeat", "take",
)  # fmt: skip
JOINS = ("concatenate", "stack", "vstack", "hstack", "dstack")
INTEGRAL: dict[Any, tuple[Rounding, bool]] = {
    np.rint: (Rounding.NEAREST_EVEN, True), np.floor: (Rounding.TOWARD_NEGATIVE, False), np.ceil: (Rounding.TOWARD_POSITIVE, False),
    np.trunc: (Rounding.TOWARD_ZERO, False),
}  # fmt: skip
"""Ufunc -> its direction, and whether it raises INEXACT."""

Handler = Callable[..., Any]


def _named(x: Any, name: str) -> DaskArray:
    if not isinstance(x, DaskArray):
        raise TypeError(f"numpy.{name} takes a DaskArray here, got {type(x).__name__}")
    return x


def _moving(name: str) -> Handler:
    def run(a: Any, *arguments: Any, **options: Any) -> DaskArray:
        return _named(a, name)._moved(getattr(da, name)(a.codes, *arguments, **options))

    return run


def _joining(name: str) -> Handler:
    def run(arrays: Sequence[Any], *arguments: Any, **options: Any) -> DaskArray:
        formats = {x.format for x in arrays if isinstance(x, DaskArray)}
        if len(formats) != 1 or not all(isinstance(x, DaskArray) for x in arrays):
            raise TypeError(f"numpy.{name} takes DaskArrays of one format")
        flags = [one for x in arrays for one in x._flags.values()]
        joined = getattr(da, name)([x.codes for x in arrays], *arguments, **options)
        return DaskArray(joined, arrays[0].format, flags)

    return run


def _integral(ufunc: np.ufunc) -> Handler:
    mode, exact = INTEGRAL[ufunc]

    def run(x: DaskArray) -> Any:
        return applied(ufunc.__name__, "round_to_integral", [x.codes], x.format, x.format, [x], mode, exact=exact)

    return run


def _logical(function: np.ufunc) -> Handler:
    def run(*inputs: Any) -> Truths:
        fmt = next(x.format for x in inputs if isinstance(x, DaskArray))
        codes = [operand(x, fmt, function.__name__, place) for place, x in enumerate(inputs)]
        truths = [~da.map_blocks(bits.iszero, x, fmt, dtype=bool) for x in codes]
        return Truths(function(*truths), [one for x in inputs if isinstance(x, DaskArray) for one in x._flags.values()])

    return run


def where(condition: Any, x: Any, y: Any) -> DaskArray:
    """Elements of x where a condition holds, of y elsewhere: `numpy.where`, whose condition may be `Truths`.

    Parameters
    ----------
    condition : Truths, dask.array or array_like of bool
    x, y : DaskArray, SoftArray or number
        One of them a DaskArray.
    """
    sources = [value for value in (x, y) if isinstance(value, DaskArray)]
    if not sources:
        raise TypeError(f"where takes a DaskArray as x or y, got {type(x).__name__} and {type(y).__name__}")
    truths = condition if isinstance(condition, Truths) else Truths(da.asarray(condition))
    if truths.values.dtype != bool:
        raise TypeError(f"condition of where must be of bool, got {truths.values.dtype}; accepted: a comparison")
    fmt = sources[0].format
    codes = da.where(truths.values, *(operand(value, fmt, "where", at) for at, value in enumerate((x, y), 1)))
    return DaskArray(codes, fmt, [*truths._flags, *(one for value in sources for one in value._flags.values())])


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    result = a if low is None else np.maximum(a, low)
    return result if high is None else np.minimum(result, high)


def _round(a: Any, decimals: int = 0) -> Any:
    if not decimals:
        return np.rint(a)
    power = 10 ** abs(operator.index(decimals))
    scaled = np.rint(a * power if decimals > 0 else a / power)
    return scaled / power if decimals > 0 else scaled * power


def _reciprocal(x: DaskArray) -> Any:
    """1 / x as `bits.arithmetic.reciprocal` has it, in formats that have no 1 too."""
    if has_one(x.format):
        return elementwise("divide", (1, x), "reciprocal")
    one = da.from_array(np.asarray(np.uint32(float32.one_code)))
    return applied("reciprocal", "div", [one, x.codes], float32, x.format, [x], b_format=x.format, out_format=x.format)


def _dot(a: Any, b: Any) -> Any:
    dimensions = np.ndim(a), np.ndim(b)
    if dimensions not in ((1, 1), (2, 2)):
        raise TypeError(
            f"numpy.dot takes DaskArrays of one axis or of two, both the same, got {dimensions}; accepted: @"
        )
    return SUMS["vecdot" if dimensions == (1, 1) else "matmul"](a, b)


COMPOSED |= {ufunc: _integral(ufunc) for ufunc in INTEGRAL}
COMPOSED |= {f: _logical(f) for f in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)}
COMPOSED |= {getattr(np, name): _moving(name) for name in MOVES}
COMPOSED |= {getattr(np, name): _joining(name) for name in JOINS}
COMPOSED |= {
    np.positive: lambda x: x,
    np.square: lambda x: elementwise("multiply", (x, x), "square"),
    np.reciprocal: _reciprocal,
    np.divmod: lambda x, y: tuple(elementwise(name, (x, y), "divmod") for name in ("floor_divide", "remainder")),
    np.where: where,
    np.clip: _clip,
    np.round: _round,
    np.around: _round,
    np.fix: np.trunc,
    np.dot: _dot,
    np.sum: lambda a, axis=None: _named(a, "sum").sum(axis),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}
