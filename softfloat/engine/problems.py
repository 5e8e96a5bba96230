"""Grids of outputs as the engine does them, and where their results go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from numpy.lib.stride_tricks import as_strided

from softfloat.engine.arguments import Codes
from softfloat.formats import Format


@dataclass(frozen=True, eq=False)
class Blocks:
    """An operand in a block format.

    Attributes
    ----------
    codes : array
        Of elements, (k, n).
    scales : array
        Of scales, (blocks along k, blocks along n).
    element, scale : Format
    block : pair of int
        Products and outputs that a block reaches over.
    """

    codes: Codes
    scales: Codes
    element: Format
    scale: Format
    block: tuple[int, int]


class Spread(NamedTuple):
    """Scales of a problem's operands, one for each element: values, and powers of two for alignment, a subnormal's the least."""

    a: Codes
    b: Codes
    leads_a: Codes
    leads_b: Codes


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of a problem's operands.

    Attributes
    ----------
    spread : callable
        Makes those of each element, if they are needed.
    at : callable
        at(products): the values alone, of the elements of some products.
    bits : pair of int
        Of precision.
    blocks : pair of Blocks, or None
        Both operands as they are, k first; None if they are no matrices in block formats.
    """

    spread: Callable[[], Spread]
    at: Callable[[Codes], tuple[Codes, Codes]]
    bits: tuple[int, int]
    blocks: tuple[Blocks, Blocks] | None = None

    @cached_property
    def each(self) -> Spread:
        """Those of each element."""
        return self.spread()

    def part(self, rows: slice, columns: slice, paired: bool) -> Scales:
        """Those of some rows and columns; of `paired` operands, of some columns of both."""

        left = (slice(None), columns) if paired else (rows,)

        def spread() -> Spread:
            a, b, leads_a, leads_b = self.each
            return Spread(a[left], b[:, columns], leads_a[left], leads_b[:, columns])

        def at(products: Codes) -> tuple[Codes, Codes]:
            a, b = self.at(products)
            return a[left], b[:, columns]

        return Scales(spread, at, self.bits)


@dataclass(frozen=True, eq=False)
class Problem:
    """A grid of dot products of codes: a is (rows, k), or (k, columns) if `paired`; b is (k, columns); c is (rows, columns) or None.

    Output (i, j) is number index + i*row_stride + j*column_stride of the call. Many such grids under each other, in the order of
    their numbers, are one of an axis more in front; codes and flags are then those of all rows.
    """

    a: Codes
    b: Codes
    c: Codes | None
    paired: bool
    index: int
    row_stride: int
    column_stride: int
    scales: Scales | None = None
    cumulative: bool = False
    """Sums of the first 1, 2, 3 ... products are asked for, of paired operands: codes and flags are (k, columns)."""


class Results(NamedTuple):
    """Where a call's results go: arrays of the outputs' codes, flags, and counts if wanted."""

    codes: Codes
    flags: Codes
    counts: Codes
    extremes: Codes

    @property
    def counting(self) -> bool:
        """Whether counts are wanted."""
        return bool(self.counts.size)

    def rows(self, some: slice) -> Results:
        """Those of some rows."""
        return Results(*(x[..., some, :] if x.size else x for x in self))


def grid_view(whole: Codes, index: int, grid: tuple[int, int], distances: tuple[int, int]) -> Codes:
    """The places of a grid in the last axis of an array: from `index` on, so far from one row and column to the next."""
    if distances == (grid[1], 1) and grid[0] * grid[1] == whole.shape[-1]:
        return whole.reshape(*whole.shape[:-1], *grid)
    step = whole.itemsize
    rest = whole[..., index:]
    return as_strided(rest, (*whole.shape[:-1], *grid), (*whole.strides[:-1], distances[0] * step, distances[1] * step))
