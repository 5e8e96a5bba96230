"""A faster way for products of operands with scales: codes of the scaled values, where that is the same as the loop that takes scales."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.bits.numbers import encode
from softfloat.engine import Codes
from softfloat.environments import Settings
from softfloat.formats import Format, bfloat16, float32

__all__ = ["flattened", "serves_values"]

Reals = np.ndarray[Any, np.dtype[np.float64]]
CARRIERS = (bfloat16, float32)
"""Formats that hold many values of scaled elements, those first whose products have the faster loops."""


@lru_cache(maxsize=256)
def serves_values(how: Accumulator, settings: Settings) -> bool:
    """Whether only the values of operands count: no exponents are compared, no scale enters a sum, no operand is flushed."""
    scaled = bool(how.reduction and how.reduction[0].scaling)
    stages = [x for x in (how.product, how.running, how.block_sum, how.store) if x is not None]
    flushes = how.daz or any(x.daz for x in stages) or settings.daz or any(x.daz for x in settings.overrides.values())
    return how.aligned is None and not scaled and not flushes


def flattened(values: Reals) -> tuple[Codes, Format] | None:
    """Codes of values in the first format that holds them all; None if none does, or there are NaNs or infinities among them."""
    if not np.isfinite(values).all():
        return None
    for fmt in CARRIERS:
        codes, flags = encode(values, fmt, flags="any")
        if not flags:
            return np.asarray(codes), fmt
    return None
