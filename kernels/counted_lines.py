"""Outputs in a line whose additions are counted: the loops of `paired`, with the steps of `counting_steps`."""

import numpy as np

from . import jit
from .counted_units import counting_tile, turns_at_once
from .counting_steps import counting_exact_step
from .jit import flat, viewed
from .lanes import tile
from .paired import LAYOUTS, LONE_LANES
from .steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    LEAST,
    OVERFLOW,
    OVERFLOWED,
    UNDERFLOW,
    VALUE,
    Numbers,
)
from .tiles import COUNTED_ROWS, take_counts
from .unit_loops import Kind
from .vectors import LANES


@jit.once
def chain(kind, carrier, block, planes, layout, *options):
    """loop(state, a, b, kept, numbers): as `paired.chain`, of panels of COUNTED_ROWS vectors; additions are counted in a state of COUNTED_SLOTS.

    The options of "exact" and "unit" have one more: whether overflows stand for NaN.
    """
    rows, lanes = (1, LONE_LANES) if layout == "lone" else (COUNTED_ROWS, LANES[carrier])
    cells = rows * lanes
    a_cells, b_cells = 1 if layout == "lone" else cells, cells if layout == "paired" else 1
    shape = {"kind": LAYOUTS[layout], "rows": rows, "lanes": lanes}
    slots = VALUE, COUNTS, LEAST, GREATEST
    if kind == "unit":
        unit, of_nan = options
        every, at_once = counting_tile(Kind(unit, **shape), of_nan), turns_at_once(unit)
        draws = getattr(unit, "stored", "") == "drawn"
    else:
        size, blocks, stored, saturate, _ = options
        step = counting_exact_step(size, blocks, stored, saturate, options[4])
        slots += (UNDERFLOW, *(OVERFLOW,) * saturate, OVERFLOWED) * bool(stored)
        draws, at_once = stored == "drawn", (1 << COUNT_BITS[64]) // (2 * blocks)
        every = tile(
            ("paired counted", kind, options), step, carrier, slots, Numbers._fields, block, planes, **shape
        )  # fmt: skip
    integer, single = (np.int32, True) if carrier is np.float32 else (np.int64, False)
    kept_cells = cells if draws else 0

    def counted_blocks_chain_loop(state, a, b, kept, numbers):
        turns = a.shape[2] // block
        a_plane, b_plane = a.size // planes, b.size // planes
        flat_a, flat_b, flat_kept = flat(a), flat(b), flat(kept)
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, integer)
            a_at = panel * turns * block * a_cells
            b_at = panel * turns * block * b_cells if b_cells > 1 else 0
            for done in range(0, turns, at_once):
                count = min(at_once, turns - done)
                noise = flat_kept[(panel * turns + done) * kept_cells :]
                every(flat_a, a_at, a_plane, flat_b, b_at, b_plane, noise, mine, numbers, count)
                take_counts(happened, cells, not single)
                a_at += count * block * a_cells
                b_at += count * block * b_cells

    return jit.compiled(counted_blocks_chain_loop)


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
