"""Grids of outputs as the engine does them, where their results go, and how they are cut into such as lie evenly in the whole that a call's result
is a block of: what loops can address."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softfloat.engine.arguments import Codes
from softfloat.formats import Format
from softfloat.positions import Place


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


# -- outputs in a whole ----------------------------------------------------------------------------------------------


class Outputs(NamedTuple):
    """The outputs of a call, and the place of each in the whole: axes in the order of their numbers."""

    shape: tuple[int, ...]
    place: Place

    @property
    def follow_each_other(self) -> bool:
        """Whether they do in the whole."""
        step = 1
        for count, stride in zip(reversed(self.shape), reversed(self.place.strides), strict=True):
            if count != 1 and stride != step:
                return False
            step *= count
        return True

    @property
    def reach(self) -> int:
        """How many outputs the whole has at least."""
        if not math.prod(self.shape):
            return 0
        last = sum((count - 1) * stride for count, stride in zip(self.shape, self.place.strides, strict=True))
        return self.place.first + last + 1

    def numbers(self, outputs: Codes) -> Codes:
        """The numbers in the whole of some of the call's."""
        found = np.full(outputs.shape, self.place.first, np.int64)
        rest = outputs
        for count, stride in zip(reversed(self.shape), reversed(self.place.strides), strict=True):
            rest, index = np.divmod(rest, count)
            found += index * stride
        return found


class Even(NamedTuple):
    """Some rows or columns, and how far one is from the next in the whole."""

    part: slice
    first: int
    stride: int


def evenly(numbers: Codes) -> Iterator[Even]:
    """Numbers that grow in even steps, as few slices of them as there are, if they repeat a pattern; else one after the other."""
    size = numbers.size
    if size == 1:
        yield Even(slice(0, 1), int(numbers[0]), 0)
        return
    steps = np.diff(numbers)
    uneven = np.flatnonzero(steps != steps[0])
    if not uneven.size:
        yield Even(slice(0, size), int(numbers[0]), int(steps[0]))
        return
    run = int(uneven[0]) + 1
    if size % run == 0 and size // run > run:
        table = numbers.reshape(-1, run)
        down = np.diff(table[:, 0])
        if (down == down[0]).all() and (np.diff(table, axis=1) == steps[: run - 1]).all():
            for column in range(run):
                yield Even(slice(column, size, run), int(numbers[column]), int(down[0]))
            return
    start = 0
    while start < size:
        rest = steps[start:]
        uneven = np.flatnonzero(rest != rest[0]) if rest.size else rest
        stop = start + (int(uneven[0]) + 1 if uneven.size else rest.size + 1)
        yield Even(slice(start, stop), int(numbers[start]), int(rest[0]) if stop - start > 1 else 0)
        start = stop


def pieces(problem: Problem, outputs: Outputs | None, by_line: bool) -> Iterator[tuple[Problem, Any]]:
    """Parts of a problem whose numbers are those of the whole, and which rows and columns of its results they are; None for all.

    `by_line`: outputs are to be in a line.
    """
    if outputs is None:
        yield problem, None
        return
    if outputs.follow_each_other and not (by_line and not problem.paired):
        yield replace(problem, index=problem.index + outputs.place.first), None
        return
    if problem.a.ndim == 3:
        rows, columns = problem.a.shape[1], problem.b.shape[2]
        for n in range(problem.a.shape[0]):
            index = problem.index + n * rows * columns
            start = None if problem.c is None else problem.c[n]
            one = Problem(problem.a[n], problem.b[n], start, False, index, columns, 1)
            for part, (down, across) in _even_pieces(one, outputs, by_line):
                yield part, (_moved(down, n * rows), across)
        return
    yield from _even_pieces(problem, outputs, by_line)


def _moved(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by, part.step)


def _even_pieces(problem: Problem, outputs: Outputs, by_line: bool) -> Iterator[tuple[Problem, tuple[slice, slice]]]:
    """The parts of a grid that lie evenly."""
    a, b, c = problem.a, problem.b, problem.c
    rows, columns = 1 if problem.paired else a.shape[0], b.shape[1]
    if not rows * columns:
        return
    down = list(evenly(outputs.numbers(problem.index + np.arange(rows) * problem.row_stride)))
    across = list(evenly(outputs.numbers(problem.index + np.arange(columns) * problem.column_stride)))
    origin = down[0].first
    if by_line and min(rows, columns) > 1:
        lines = down if rows <= columns else across
        lines[:] = [
            Even(slice(i, i + 1), x.first + n * x.stride, 0)
            for x in lines
            for n, i in enumerate(range(x.part.start, x.part.stop, x.part.step or 1))
        ]
    for i in down:
        for j in across:
            start = None if c is None else c[i.part, j.part]
            left = a[:, j.part] if problem.paired else a[i.part]
            index = i.first + j.first - origin
            scales = None if problem.scales is None else problem.scales.part(i.part, j.part, problem.paired)
            part = Problem(
                left, b[:, j.part], start, problem.paired, index, i.stride, j.stride, scales, problem.cumulative
            )
            yield part, (slice(0, None) if problem.paired else i.part, j.part)
