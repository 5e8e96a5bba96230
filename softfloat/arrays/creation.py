"""Arrays made anew: of one number, of numbers evenly apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from softfloat import engine
from softfloat.arrays.held import wrapped
from softfloat.arrays.operands import coerced, format_of, one_of
from softfloat.arrays.softarray import SoftArray, array
from softfloat.formats import Format, check_format

__all__ = ["arange", "empty", "empty_like", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like"]

Shape: TypeAlias = int | Sequence[int]


def full(shape: Shape, value: Any, fmt: Format | str | None = None) -> SoftArray:
    """An array of one number; the format defaults to the number's own, if it is a SoftArray."""
    fmt = _format_like(value, fmt)
    value = value.astype(fmt) if isinstance(value, SoftArray) else value
    filled = np.empty(shape, fmt.dtype)
    filled[...] = coerced(value, fmt, "full")
    return wrapped(filled, fmt)


def zeros(shape: Shape, fmt: Format | str) -> SoftArray:
    """An array of +0."""
    fmt = check_format(fmt, wide=True)
    if not fmt.zero:
        raise ValueError(f"fmt must have a zero, and {fmt} has none")
    return wrapped(np.zeros(shape, fmt.dtype), fmt)


def ones(shape: Shape, fmt: Format | str) -> SoftArray:
    """An array of 1."""
    fmt = check_format(fmt, wide=True)
    return wrapped(np.full(shape, one_of(fmt, "ones"), fmt.dtype), fmt)


def empty(shape: Shape, fmt: Format | str) -> SoftArray:
    """An array of whatever: of +0 (or of the least number, in a format without zero), so that every code is one."""
    fmt = check_format(fmt, wide=True)
    return wrapped(np.zeros(shape, fmt.dtype), fmt)


def _format_like(x: Any, fmt: Format | str | None) -> Format:
    engine.refuse_mask(x, "x")
    return _needed(fmt or format_of(x))


def zeros_like(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """+0 in the shape of x, and in its format unless another is given."""
    return zeros(np.shape(x), _format_like(x, fmt))


def ones_like(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """1 in the shape of x, and in its format unless another is given."""
    return ones(np.shape(x), _format_like(x, fmt))


def empty_like(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """`empty` in the shape of x, and in its format unless another is given."""
    return empty(np.shape(x), _format_like(x, fmt))


def full_like(x: Any, value: Any, fmt: Format | str | None = None) -> SoftArray:
    """One number in the shape of x, and in its format unless another is given."""
    return full(np.shape(x), value, _format_like(x, fmt))


def arange(start: Any, stop: Any = None, step: Any = None, fmt: Format | str | None = None) -> SoftArray:
    """start, start + step, start + 2*step ... below stop: the numbers of `numpy.arange`, rounded. The format comes last.

    >>> arange(0, 0.5, 0.1, "float16")
    SoftArray([0. , 0.1, 0.2, 0.3, 0.4], float16)
    """
    given: list[Any] = [x for x in (start, stop, step) if x is not None]
    if isinstance(given[-1], (Format, str)):
        fmt = given.pop()
    return array(np.arange(*(number(x) for x in given)), _needed(fmt))


def linspace(
    start: Any, stop: Any, num: int | Format | str = 50, fmt: Format | str | None = None, *, endpoint: bool = True
) -> SoftArray:
    """`num` numbers evenly from start to stop: those of `numpy.linspace`, rounded."""
    if isinstance(num, (Format, str)):
        return linspace(start, stop, 50, num, endpoint=endpoint)
    return array(np.linspace(number(start), number(stop), num, endpoint=endpoint), _needed(fmt))


def number(x: Any) -> Any:
    """A number for NumPy."""
    return float(x) if isinstance(x, SoftArray) else x


def _needed(fmt: Format | str | None) -> Format:
    if fmt is None:
        raise TypeError("fmt is needed: a softfloat.Format or its name")
    return check_format(fmt, wide=True)
