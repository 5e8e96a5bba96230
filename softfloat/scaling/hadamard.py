"""Random Hadamard transforms of codes, run by run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.checks import check_kind
from softfloat.engine import Codes
from softfloat.environments import Environment
from softfloat.formats import float32
from softfloat.kernels.spec import Overflow
from softfloat.scaling.recipes import Hadamard
from softfloat.scaling.tensors import widened
from softfloat.status import Flags

__all__ = ["hadamard_matrix", "transformed"]

Numbers = np.ndarray[Any, np.dtype[np.float32]]
NEAREST: dict[str, Any] = {"flags": "any", "environment": Environment(overflow=Overflow.SATURATE)}


def hadamard_matrix(how: Hadamard) -> np.ndarray[Any, np.dtype[np.float64]]:
    """diag(signs) * H / sqrt(n), of shape (n, n): entry (i, j) of H is -1 to the number of ones that i and j share in binary.

    >>> hadamard_matrix(Hadamard(signs=(1, 1, -1, 1)))
    array([[ 0.5,  0.5,  0.5,  0.5],
           [ 0.5, -0.5,  0.5, -0.5],
           [-0.5, -0.5,  0.5,  0.5],
           [ 0.5, -0.5, -0.5,  0.5]])
    """
    check_kind("how", how, Hadamard)
    n = len(how.signs)
    shared = np.arange(n)[:, None] & np.arange(n)
    ones = np.array([int(x).bit_count() for x in shared.flat]).reshape(n, n)
    return np.array(how.signs)[:, None] * np.where(ones % 2, -1.0, 1.0) / np.sqrt(n)


@lru_cache(maxsize=16)
def _matrix_codes(how: Hadamard) -> Codes:
    return np.asarray(bits.encode(hadamard_matrix(how), how.format, flags="any")[0])


def transformed(numbers: np.ndarray[Any, np.dtype[np.float32]], how: Hadamard, axis: int) -> tuple[Any, int]:
    """Numbers with every run along an axis transformed.

    Parameters
    ----------
    numbers : array of float32
    how : Hadamard
    axis : int
        The result is as long there as whole runs are.

    Returns
    -------
    numbers : array of float32
    flags : int
        What roundings to the transform's format before and after raised, and its sums.
    """
    check_kind("how", how, Hadamard)
    n = len(how.signs)
    moved = numbers.swapaxes(axis, -1)
    short = -moved.shape[-1] % n
    if short:
        moved = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, short)])
    runs = np.ascontiguousarray(moved).reshape(-1, n)
    result, flags = transformed_whole(runs, how)
    return result.reshape(moved.shape).swapaxes(axis, -1), flags


def transformed_whole(runs: Numbers, how: Hadamard) -> tuple[Numbers, int]:
    """(transformed runs, flags), by butterflies where they have the accumulator's bits."""
    if not engine.serves_transform(how.accumulator, how.format, runs.shape[1]):
        return by_product(runs, how)
    result, left, lost = engine.transformed_runs(runs, how.signs, how.accumulator, how.format)
    seen = int(Flags.INEXACT) if lost else 0
    if left.any():
        these = np.flatnonzero(left)
        result[these], flags = by_product(runs[these], how)
        seen |= flags
    return result, seen


def by_product(runs: Numbers, how: Hadamard) -> tuple[Numbers, int]:
    """The same by the accumulator itself."""
    codes, before = bits.convert(runs.view(np.uint32), float32, how.format, **NEAREST)
    sums, flags = bits.matmul(codes, _matrix_codes(how), how.format, how.accumulator, out_format=how.format, **NEAREST)
    return widened(np.asarray(sums), how.format), int(before) | int(flags)
