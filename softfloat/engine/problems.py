"""Grids of outputs as the engine does them, and where their results go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from numpy.lib.stride_tricks import as_strided

from softfloat.engine.arguments import Codes


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


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of a problem's operands, one for each element: values, and powers of two for alignment, a subnormal's the least."""

    a: Codes
    b: Codes
    leads_a: Codes
    leads_b: Codes
    bits: tuple[int, int]  # of precision


class Results(NamedTuple):
    """Where a call's results go: arrays of the outputs' codes, flags, and counts if wanted."""

    codes: Codes
    flags: Codes
    counts: Codes
    extremes: Codes


def grid_view(whole: Codes, index: int, grid: tuple[int, int], distances: tuple[int, int]) -> Codes:
    """The places of a grid in the last axis of an array: from `index` on, so far from one row and column to the next."""
    if distances == (grid[1], 1) and grid[0] * grid[1] == whole.shape[-1]:
        return whole.reshape(*whole.shape[:-1], *grid)
    step = whole.itemsize
    rest = whole[..., index:]
    return as_strided(rest, (*whole.shape[:-1], *grid), (*whole.strides[:-1], distances[0] * step, distances[1] * step))
