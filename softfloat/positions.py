"""Where a block lies in the array that it was cut from: what random numbers are addressed by.

Stochastic rounding draws for element i of an array the random numbers of position i. A block computed alone draws those of the
whole if it says where it lies:

>>> import numpy as np
>>> from softfloat import Position, bits
>>> a, b = np.full((4, 6), 0x3C00, np.uint16), np.full((4, 6), 0x1001, np.uint16)
>>> draws = {"rounding": "stochastic", "seed": 1}
>>> whole, _ = bits.add(a, b, "float16", **draws)
>>> block, _ = bits.add(a[2:, 3:], b[2:, 3:], "float16", position=Position((2, 3), (4, 6)), **draws)
>>> bool((block == whole[2:, 3:]).all())
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from softfloat.checks import check_whole, is_integer
from softfloat.frozen import settle

__all__ = ["Place", "Position", "as_position"]

MOST_ELEMENTS = 1 << 62  # addresses have so many bits


class Place(NamedTuple):
    """A block's elements among those of the whole: element (i, j ...) is number first + i*strides[0] + j*strides[1] ..."""

    first: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Position:
    """Where a result lies in the whole result of which it is a block.

    Parameters
    ----------
    index : int or tuple of int
        Of the block's first element, in each axis of the whole. An integer is a number in the whole's C order: the block's
        elements are that one and those that follow.
    shape : tuple of int, optional
        Of the whole; with an `index` of as many integers, and not without.
    segment : int, optional
        For sums of products: the result is the sum of this segment alone, counted from 0, of those that the accumulator cuts k
        into; see `softfloat.bits.segments`.
    k : int, optional
        With `segment`: products of the whole sum.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    >>> Position((2, 3), (4, 6)).place((2, 3))
    Place(first=15, strides=(6, 1))
    >>> Position(15).place((2, 3))
    Place(first=15, strides=(3, 1))
    """

    index: int | tuple[int, ...] = 0
    shape: tuple[int, ...] | None = None
    segment: int | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        if self.shape is None:
            if isinstance(self.index, (tuple, list)):
                raise ValueError(
                    f"shape must be that of the whole array where index has axes, got None with {self.index!r}"
                )
            settle(self, index=_element("index", self.index))
        else:
            settle(self, shape=_elements("shape", self.shape), index=_elements("index", self.index))
            index, shape = self._axes()
            if len(index) != len(shape):
                raise ValueError(f"index and shape must have the same axes, got {index} and {shape}")
            if math.prod(shape) > MOST_ELEMENTS:
                raise ValueError(f"shape must have at most 2^62 elements, got {shape}")
        if (self.segment is None) != (self.k is None):
            raise ValueError(f"segment and k come together, got segment={self.segment!r} and k={self.k!r}")
        if self.segment is not None:
            settle(self, segment=check_whole("segment", self.segment, 0), k=check_whole("k", self.k, 1))

    def _axes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        assert isinstance(self.index, tuple)
        assert self.shape is not None
        return self.index, self.shape

    def place(self, block: Sequence[int], order: Sequence[int] | None = None) -> Place:
        """The place of a block of this shape.

        `order`: elements are numbered with the axes in this order, the last one fastest; the strides are those of the block's own axes.

        Raises
        ------
        ValueError
            If the block does not lie in the whole.
        """
        shape = tuple(block)
        order = range(len(shape)) if order is None else order
        if self.shape is None:
            assert isinstance(self.index, int)
            if self.index + math.prod(shape) > MOST_ELEMENTS:
                raise ValueError(
                    f"position={self.index} leaves no room for a result of shape {shape}; accepted: up to 2^62"
                )
            return Place(self.index, _strides(shape, order))
        index, whole = self._axes()
        if len(shape) != len(whole) or any(
            start + count > size for start, count, size in zip(index, shape, whole, strict=True)
        ):
            raise ValueError(f"position says {index} of {whole}, where a result of shape {shape} does not lie")
        strides = _strides(whole, order)
        return Place(sum(start * stride for start, stride in zip(index, strides, strict=True)), strides)

    def size(self, block: Sequence[int]) -> int:
        """How many elements the whole has at least, of which a block of this shape is one."""
        if self.shape is not None:
            return math.prod(self.shape)
        assert isinstance(self.index, int)
        return self.index + math.prod(block)


def _element(name: str, value: Any) -> int:
    number = check_whole(name, value, 0)
    if number > MOST_ELEMENTS:
        raise ValueError(f"{name} must be at most 2^62, got {number}")
    return number


def _elements(name: str, values: Any) -> tuple[int, ...]:
    given = (values,) if is_integer(values) else values
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{name} must be a tuple of integers, got {values!r}")
    return tuple(_element(name, value) for value in given)


def _strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """How far it is from an element to the next along each axis, numbered with the axes in this order."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def as_position(value: Any) -> Position | None:
    """A position, an integer that stands for one, or None.

    Raises
    ------
    TypeError, ValueError
        If it is neither.
    """
    if value is None or isinstance(value, Position):
        return value
    if not is_integer(value):
        raise TypeError(f"position must be a softfloat.Position, an integer or None, got {value!r}")
    return Position(int(check_whole("position", value, 0)))
