"""Outputs in a line whose additions are counted: the loops of `paired`, with the steps of `counting_steps`."""

import numpy as np

from . import jit
from .counted_units import counting_tile, turns_at_once
from .counting_steps import counting_exact_step, counting_tiles
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
from .tiles import COUNTED_ROWS, QUICK, REST, VAIN, take_counts
from .unit_loops import Kind
from .vectors import LANES


@jit.once
def chain(kind, carrier, block, planes, layout, *options):
    """loop(state, a, b, kept, numbers): as `paired.chain`, of panels of COUNTED_ROWS vectors; additions are counted in a state of COUNTED_SLOTS.

    The options of "exact" and "unit" have one more: whether overflows stand for NaN.
    """
    if kind in ("fma", "mul_add"):
        return _one_by_one(kind, carrier, layout, *options)
    return _blocks(kind, carrier, block, planes, layout, options)


def _shape(carrier, layout):
    """(rows, lanes, cells of a, cells of b) of a panel."""
    rows, lanes = (1, LONE_LANES) if layout == "lone" else (COUNTED_ROWS, LANES[carrier])
    cells = rows * lanes
    return rows, lanes, 1 if layout == "lone" else cells, cells if layout == "paired" else 1


def _one_by_one(operation, carrier, layout, manner):
    """Products one after the other: by quick steps, as `tiles.counted` takes them."""
    rows, lanes, a_cells, b_cells = _shape(carrier, layout)
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


def _blocks(kind, carrier, block, planes, layout, options):
    """Sums of blocks."""
    rows, lanes, a_cells, b_cells = _shape(carrier, layout)
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
    cells = rows * lanes
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
