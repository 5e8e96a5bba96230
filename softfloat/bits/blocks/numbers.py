"""float32 numbers on their way into blocks: what they are, and how blocks lie among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from softfloat import engine
from softfloat.bits.blocks.codes import spread
from softfloat.bits.blocks.scales import FLOAT32, Masks, Maxima, Reals
from softfloat.bits.codes import issnan
from softfloat.bits.numbers import encode, source_codes
from softfloat.formats import Format
from softfloat.kernels.spec import FLOAT64

SMALLEST_NORMAL, INFINITE = np.int32(0x00800000), np.int32(0x7F800000)  # bits of float32


Signals = Callable[[], Masks]
"""Tells where numbers are signalling NaNs, once somebody asks."""


def float32_numbers(x: Any) -> tuple[np.ndarray[Any, np.dtype[np.float32]], Signals]:
    """(numbers as float32, where they are signalling NaNs)."""
    codes, _, source, more = source_codes(x)
    if source == FLOAT32.spec:
        return codes.view(np.float32), lambda: np.asarray(issnan(codes, FLOAT32))
    if source == FLOAT64:
        values = codes.view(np.float64)

        def signals() -> Masks:
            return np.asarray((codes & np.uint64(0x7FF8 << 48)) == np.uint64(0x7FF0 << 48)) & np.isnan(values)
    else:
        fmt = x.format if isinstance(getattr(x, "format", None), Format) else Format.from_dtype(np.asarray(x).dtype)

        def signals() -> Masks:
            return np.asarray(issnan(codes, fmt)) if fmt.nan == "ieee" else np.zeros(codes.shape, bool)

        values = np.asarray(engine.decoded(codes, fmt))
    nearest = np.asarray(encode(values, FLOAT32, flags="any")[0])
    lost = (engine.decoded(nearest, FLOAT32) != values) & ~np.isnan(values)
    if more is not None:
        lost = lost | (more != 0)
    if lost.any():
        raise ValueError(
            f"x must hold float32 numbers, got {np.asarray(values[lost]).flat[0]!r}; bits.encode(x, 'float32') rounds them, "
            "and numpy.asarray(x, numpy.float32) to nearest"
        )
    return nearest.view(np.float32), signals


MANY = 1 << 14
"""Numbers for which a loop of their own for short last blocks is worth it, rather than zeros in them."""


class Layout:
    """How blocks lie in an array: `rows` has the blocks of the grid first and their elements last."""

    def __init__(self, shape: tuple[int, ...], block: tuple[int, ...]) -> None:
        self.shape, self.block = shape, block
        self.grid = tuple(-(-n // b) for n, b in zip(shape, block, strict=True))
        self.padded = tuple(n * b for n, b in zip(self.grid, block, strict=True))
        self.elements = math.prod(block)
        self.plain = self.padded == shape and all(b == 1 for b in block[:-1])
        self.tail = shape[-1] % block[-1] if shape and self.elements == block[-1] and math.prod(shape) >= MANY else 0
        self.in_place = bool(self.tail) or (self.padded == shape and all(b == 1 for b in block[:-2]))

    @cached_property
    def places(self) -> tuple[engine.Places, ...]:
        """Where blocks lie in the array, whole ones and then the short ones; in `rows` of it, where they do not lie in whole rows."""
        if not self.in_place:
            row = self.block[-1] if self.block[-1] > 1 else self.elements
            return (engine.Places(row, self.elements // row),)
        if self.tail:
            (whole, length), pitch = (self.shape[-1] // self.block[-1], self.block[-1]), self.shape[-1]
            last = engine.Places(self.tail, 1, 1, pitch, whole * length)
            return (engine.Places(length, 1, whole, pitch), last) if whole else (last,)
        height = self.block[-2] if len(self.block) > 1 else 1
        return (engine.Places(self.block[-1], height, self.grid[-1]),)

    def rows(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The elements of each block, in the order that they have in the array, zeros where there are none; (*grid, elements)."""
        if self.padded != self.shape:
            longer = np.zeros(self.padded, array.dtype)
            longer[tuple(slice(n) for n in self.shape)] = array
            array = longer
        if not self.plain:
            pairs = tuple(x for pair in zip(self.grid, self.block, strict=True) for x in pair)
            even, odd = range(0, len(pairs), 2), range(1, len(pairs), 2)
            array = array.reshape(pairs).transpose(*even, *odd)
        return np.ascontiguousarray(array).reshape(*self.grid, self.elements)

    def array(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """`rows` back in the array's shape."""
        if self.plain:
            return rows.reshape(self.shape)
        order = [x for i in range(len(self.grid)) for x in (i, len(self.grid) + i)]
        array = rows.reshape(*self.grid, *self.block).transpose(order).reshape(self.padded)
        return np.ascontiguousarray(array[tuple(slice(n) for n in self.shape)])

    @cached_property
    def side_by_side(self) -> Layout:
        """The same, made to be laid out block by block."""
        other = Layout(self.shape, self.block)
        other.in_place, other.tail = False, 0
        return other

    def in_array(self, made: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What a loop made of each number, in the shape of the numbers."""
        return made.reshape(self.shape) if self.in_place else self.array(made.reshape(*self.grid, self.elements))

    def spread(self, of_blocks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """One entry for each block as one for each element of the array."""
        return spread(of_blocks, self.block, self.shape)


laid_out = lru_cache(maxsize=1024)(Layout)
"""The layout of an array's shape and a block's, kept."""


def magnitude_bits(numbers: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Bits of float32 numbers without their signs: integers that are ordered as the magnitudes are."""
    return numbers.view(np.int32) & np.int32(0x7FFFFFFF)


def exactly(bits: np.ndarray[Any, Any]) -> Reals:
    """float32 bits as float64; the host's treatment of subnormals has no say."""
    return np.asarray(engine.decoded(np.ascontiguousarray(bits).view(np.uint32), FLOAT32))


def maxima_of(rows: np.ndarray[Any, np.dtype[np.float32]]) -> Maxima:
    """What scales are made of."""
    magnitudes = magnitude_bits(rows)
    finite = np.where(magnitudes < INFINITE, magnitudes, np.int32(0))
    amax = exactly(finite.max(axis=-1))
    nan, infinite = (np.asarray(found.any(axis=-1)) for found in (magnitudes > INFINITE, magnitudes == INFINITE))
    return Maxima(amax, nan, infinite)


def signed_zeros(numbers: np.ndarray[Any, np.dtype[np.float32]], where: Masks) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Zeros of the same signs in some places."""
    bits = numbers.view(np.int32)
    return np.where(where, bits & np.int32(-(2**31)), bits).view(np.float32)
