"""What the additions of sums in blocks did."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from softfloat import bits
from softfloat.dask.blocks import Block, Chunks, Tasks, laid_out, task
from softfloat.dask.following import Progress, compute

__all__ = ["Counts"]


@dataclass(frozen=True, eq=False)
class Counts:
    """`softfloat.bits.Counts` in blocks, those of the result; whatever is reduced of them is gathered as a tree.

    Attributes
    ----------
    additions : Delayed
        Of each output, an integer.
    overflowed, inexact, swamped : dask.array.Array of int64
        Additions of each output that did so.
    smallest, largest : dask.array.Array of float64
        The least and the greatest sum after an addition; NaN where there was none.
    """

    additions: Delayed
    overflowed: da.Array
    inexact: da.Array
    swamped: da.Array
    smallest: da.Array
    largest: da.Array

    def compute(self, progress: Progress = False, **options: Any) -> bits.Counts:
        """All of them, computed; arguments are those of `DaskArray.compute`."""
        return bits.Counts(*compute([getattr(self, name) for name in FIELDS], progress, **options))


FIELDS = tuple(field.name for field in fields(Counts))
"""The integer first, then the arrays."""


def _additions(block: Block) -> int:
    assert block.counts is not None
    return block.counts.additions


def counts_of(found: Tasks, chunks: Chunks) -> Counts:
    """The counts that come with the blocks of a result."""
    arrays = (
        laid_out(found, chunks, np.float64 if name in ("smallest", "largest") else np.int64, name)
        for name in FIELDS[1:]
    )
    return Counts(task(_additions, next(iter(found.values()))), *arrays)
