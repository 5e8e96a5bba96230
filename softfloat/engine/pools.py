"""Working memory that calls hand on to each other: fresh pages from the system cost more than what is done in them."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes

KEPT = 1 << 24
"""Bytes that are kept, at most, while no call uses them."""
LINE = 64
"""Bytes of the cache's lines: vectors that cross them are read at half the speed."""
Wanted = tuple[tuple[tuple[int, ...], Any], ...]
"""Shapes of arrays, and their types."""
_free: dict[int, list[Codes]] = {}
_lock = threading.Lock()


@lru_cache(maxsize=512)
def _places(wanted: Wanted) -> list[int]:
    """Where arrays that follow each other begin, each on a line, and where all end."""
    found = [0]
    for shape, kind in wanted:
        found.append(found[-1] + -(-math.prod(shape) * np.dtype(kind).itemsize // LINE) * LINE)
    return found


def laid_out(memory: Codes, wanted: Wanted) -> list[Codes]:
    """Those arrays there, with whatever they hold."""
    places = zip(wanted, _places(wanted), strict=False)
    return [np.ndarray(shape, kind, memory, start) for (shape, kind), start in places]


def borrow(wanted: Wanted) -> Codes:
    """Memory for these arrays, from a line's start on."""
    size = _places(wanted)[-1]
    with _lock:
        if free := _free.get(size):
            return free.pop()
    made = np.empty(size + LINE, np.uint8)
    skipped = -made.ctypes.data % LINE
    return made[skipped : skipped + size]


def give_back(memory: Codes) -> None:
    """What nobody uses any more."""
    with _lock:
        if sum(size * len(some) for size, some in _free.items()) + memory.size > KEPT:
            _free.clear()
        if memory.size <= KEPT:
            _free.setdefault(memory.size, []).append(memory)
