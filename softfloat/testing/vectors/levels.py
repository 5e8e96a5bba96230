"""The rows of each level: random ones, corner products, all there are; in pieces, with right results and flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softfloat.testing.vectors.block_rows import block_corners
from softfloat.testing.vectors.corners import Rows, corners
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.dots import dot_corners
from softfloat.testing.vectors.operations import Case
from softfloat.testing.vectors.streams import corner_streams, count_corner_streams, random_streams

__all__ = ["CHUNK", "LEVELS", "corners_of", "count_rows", "level_chunks", "random_chunks"]

Codes = np.ndarray[Any, Any]

CHUNK = 1 << 15  # rows at a time, or codes of operands in dot products: what a dozen arrays of fit a cache
EXHAUSTIBLE = 32  # bits of operands: 4.3e9 rows, some 70 GB of text
LEVELS = ("random", "1", "2", "exhaustive")


def level_chunks(case: Case, level: str, total: int) -> Iterator[list[Codes]]:
    """All rows of a level that has `total` of them."""
    if level == "exhaustive":
        return exhaustive_chunks(case, total)
    return corner_streams(case, int(level)) if case.stream else corner_chunks(case, int(level))


def count_exhaustive(case: Case) -> int:
    """How many combinations of operands there are.

    Raises
    ------
    ValueError
        If they are more than anybody writes down.
    """
    width = case.operand_bits
    if width > EXHAUSTIBLE:
        number = f"{2**width:,}".replace(",", " ") if width <= 64 else f"2^{width}"
        raise ValueError(
            f"level='exhaustive' would write {number} rows for {case.title}; accepted: up to 2^{EXHAUSTIBLE} rows"
        )
    return 1 << width


def count_rows(case: Case, level: str) -> int:
    """How many rows a level has: "1", "2" or "exhaustive".

    Raises
    ------
    ValueError
        If they are more than anybody writes down.
    """
    if level == "exhaustive":
        if case.stream:
            raise ValueError("level='exhaustive' is not for mac, whose rows follow each other; accepted: random, 1, 2")
        return count_exhaustive(case)
    return count_corner_streams(case, int(level)) if case.stream else corners_of(case, int(level)).count


def corners_of(case: Case, level: int) -> Rows:
    """The corner rows of a case, of level 1 or 2: `count` of them, and `operands(index)` of those at given places."""
    if case.blocks is not None:
        return block_corners(case, level)
    return dot_corners(case, level) if case.operation.result == "sum" else corners(case, level)


def corner_chunks(case: Case, level: int) -> Iterator[list[Codes]]:
    rows, step = corners_of(case, level), _step(case)
    for first in range(0, rows.count, step):
        operands = rows.operands(np.arange(first, min(first + step, rows.count)))
        yield [*operands, *case.run(operands)]


def _step(case: Case) -> int:
    return max(1, CHUNK // max(column.length or 1 for column in case.operands))


def random_chunks(case: Case, total: int, seed: int, distribution: str) -> Iterator[list[Codes]]:
    """Rows from a distribution."""
    if case.stream:
        yield from random_streams(case, total, seed, distribution)
        return
    step = _step(case)
    for number, first in enumerate(range(0, total, step)):
        rows = min(step, total - first)
        operands = [x[:rows] for x in draw_operands(case, distribution, step if total > step else rows, [seed, number])]
        yield [*operands, *case.run(operands)]


def exhaustive_chunks(case: Case, total: int) -> Iterator[list[Codes]]:
    step = _step(case)
    for first in range(0, total, step):
        index = np.arange(first, min(first + step, total), dtype=np.uint64)
        operands: list[Codes] = []
        for column in reversed(case.operands):
            bits, length = np.uint64(column.number.bits), column.length or 1
            mask = np.uint64((1 << column.number.bits) - 1)
            parts = []
            for _ in range(length):
                parts.append((index & mask).astype(column.dtype))
                index = index >> bits
            operands.insert(0, np.stack(parts[::-1], axis=1).reshape(column.shape(len(index))))
        yield [*operands, *case.run(operands)]
