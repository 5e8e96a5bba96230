"""Outputs in a line whose additions are counted: what their panels have counted."""

import numpy as np

from . import jit
from .jit import viewed
from .steps import COUNTED_SLOTS, LEAST, OVERFLOWED


@jit.once
def told(carrier, slots=COUNTED_SLOTS):
    """loop(state, counts, extremes, start, stop): what panels have counted, to outputs start ... stop - 1 of (3, outputs) and (2, outputs).

    A state has so many slots.
    """
    integer = np.int32 if carrier is np.float32 else np.int64

    def told_loop(state, counts, extremes, start, stop):
        cells = state.shape[1] // slots
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, integer)
            first = start + panel * cells
            width = min(cells, stop - first)
            for which in range(3):
                target, source = counts[which], happened[(OVERFLOWED + which) * cells :]
                for cell in range(width):
                    target[first + cell] = source[cell]
            for which in range(2):
                limits, sums = extremes[which], mine[(LEAST + which) * cells :]
                for cell in range(width):
                    limits[first + cell] = sums[cell]

    return jit.compiled(told_loop)
