"""Outputs in a line whose additions are counted: the loops of `paired`, with the steps of `counting_steps`."""

import numpy as np

from . import jit
from .counting_steps import counting_tiles
from .jit import flat, viewed
from .paired import LAYOUTS, LONE_LANES
from .steps import COUNTED_SLOTS, LEAST, OVERFLOWED
from .tiles import COUNTED_ROWS, QUICK, REST, VAIN, take_counts
from .vectors import LANES


@jit.once
def chain(operation, carrier, layout, manner):
    """loop(state, a, b, kept, numbers): as `paired.chain`, of panels of COUNTED_ROWS vectors; additions are counted in a state of COUNTED_SLOTS.

    Steps are quick ones, as `tiles.counted` takes them.
    """
    rows, lanes = (1, LONE_LANES) if layout == "lone" else (COUNTED_ROWS, LANES[carrier])
    a_cells, b_cells = 1 if layout == "lone" else rows * lanes, rows * lanes if layout == "paired" else 1
    name = "paired counted", operation, manner
    quick, every = counting_tiles(name, operation, manner, rows, kind=LAYOUTS[layout], lanes=lanes)
    cells = rows * lanes

    def counted_chain_loop(state, a, b, kept, numbers):
        turns = a.shape[2]
        flat_a, flat_b = flat(a), flat(b)
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, np.int32)
            a_at = panel * turns * a_cells
            b_at = panel * turns * b_cells if b_cells > 1 else 0
            done, rest = 0, 0
            while done < turns:
                if done >= rest:
                    count = min(turns - done, QUICK)
                    again = quick(flat_a, a_at, 0, flat_b, b_at, 0, mine, mine, numbers, count)
                    rest = done + REST if again * VAIN > count else 0
                    take_counts(happened, cells, False)
                else:
                    count = min(turns, rest) - done
                    every(flat_a, a_at, 0, flat_b, b_at, 0, mine, mine, numbers, count)
                done += count
                a_at += count * a_cells
                b_at += count * b_cells

    return jit.compiled(counted_chain_loop)


@jit.once
def told(carrier):
    """loop(state, counts, extremes, start, stop): what panels have counted, to outputs start ... stop - 1 of (3, outputs) and (2, outputs)."""
    integer = np.int32 if carrier is np.float32 else np.int64

    def told_loop(state, counts, extremes, start, stop):
        cells = state.shape[1] // COUNTED_SLOTS
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
