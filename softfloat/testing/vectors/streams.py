"""Streams of multiply-accumulate rows: a, b, clear, result, flags, as a pipelined unit has them.

A row adds its products to the running sum, or, where clear is 1, starts anew from +0; its result is the sum so far, its
flags its own. A stream is written by sums, product after product. It is read as rows of dot products with an addend c:
the result of the row before, as the file has it, or +0. So every row is judged by itself: one that is wrong does not make
those after it wrong, and where all are right, so is the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.dots import dot_corners
from softfloat.testing.vectors.operations import Case

__all__ = ["addends", "corner_streams", "count_corner_streams", "random_streams"]

Codes = np.ndarray[Any, Any]

ROWS = 1 << 14  # of a piece
STEPS = (16, 5, 1, 16)
"""Rows between clears, piece after piece, of random streams; corner rows have those of the first."""


def addends(case: Case, clear: Codes, results: Codes, before: int) -> Codes:
    """What each row adds to: the result of the row before it, `before` being that of the first one; or 0."""
    column = case.operands[-1]
    previous = np.concatenate([np.array([before], results.dtype), results[:-1]]).astype(column.dtype)
    return np.where(clear != 0, column.dtype.type(0), previous)


def _sums(case: Case, steps: int) -> Case:
    """The dot product that `steps` rows make."""
    assert case.length is not None
    return case.replace(stream=False, addend=False, length=case.length * steps)


def _unrolled(case: Case, operands: Sequence[Codes], steps: int) -> list[Codes]:
    """Rows of a stream from rows of sums: a, b, clear, result, flags."""
    rows, length = len(operands[0]), case.length or 1
    a, b = (x.reshape(rows, steps, length) for x in operands)
    running = np.zeros(rows, case.operands[-1].dtype)
    results = np.zeros((rows, steps), case.target.dtype)
    flags = np.zeros((rows, steps), np.uint8)
    for step in range(steps):
        running, raised = case.run([a[:, step], b[:, step], running])
        results[:, step], flags[:, step] = running, raised
    clear = np.zeros((rows, steps), np.uint8)
    clear[:, 0] = 1
    return [*(x.reshape(rows * steps, length) for x in (a, b)), clear.ravel(), results.ravel(), flags.ravel()]


def random_streams(case: Case, total: int, seed: int, distribution: str) -> Iterator[list[Codes]]:
    """Pieces of `total` rows."""
    number = 0
    while total > 0:
        steps = STEPS[number % len(STEPS)]
        operands = draw_operands(_sums(case, steps), distribution, ROWS // steps, [seed, number])
        piece = [x[:total] for x in _unrolled(case, operands, steps)]
        yield piece
        total -= len(piece[-1])
        number += 1


def count_corner_streams(case: Case, level: int) -> int:
    """Rows of `corner_streams`."""
    return dot_corners(_sums(case, STEPS[0]), level).count * STEPS[0]


def corner_streams(case: Case, level: int) -> Iterator[list[Codes]]:
    """Pieces of the corner rows of sums."""
    rows, step = dot_corners(_sums(case, STEPS[0]), level), ROWS // STEPS[0]
    for first in range(0, rows.count, step):
        operands = rows.operands(np.arange(first, min(first + step, rows.count)))
        yield _unrolled(case, operands, STEPS[0])
