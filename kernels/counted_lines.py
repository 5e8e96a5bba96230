"""Outputs in a line whose additions are counted: the loops of `paired`, with the steps of `counting_steps`."""

import numpy as np

from . import jit
from .counted_draws import COUNTED_TURNS, counting_again
from .counted_units import counting_tile, turns_at_once
from .counting_steps import counting_exact_step, counting_tiles, drawn_counting
from .jit import copy_first, flat, in_rows, scratch, viewed
from .lanes import tile
from .noise import drawing
from .paired import LAYOUTS, LONE_LANES
from .redrawn import SITES
from .steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    LEAST,
    LEFT_OPEN,
    OVERFLOW,
    OVERFLOWED,
    UNDERFLOW,
    VALUE,
    Numbers,
)
from .tiles import COUNTED_ROWS, QUICK, REST, VAIN, take_counts
from .unit_loops import Kind
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK


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
def drawn(operation, options, layout):
    """loop(state, a, b, kept, numbers, ints, floats, first, stride, step, apart, count, width, key, stream).

    As `paired.drawn`, of panels of ROWS vectors; additions are counted in a state of COUNTED_SLOTS. Every turn is taken with care.
    """
    lanes = LANES[np.float32]
    slots = VALUE, COUNTS, LEAST, GREATEST, *options.slots, OVERFLOWED
    every = tile(
        ("paired counted drawn", operation, options), drawn_counting(operation, options), np.float32, slots,
        Numbers._fields, kind=LAYOUTS[layout],
    )  # fmt: skip
    planes, draw_turns, counted_again = (
        len(SITES[operation]),
        drawing(*SITES[operation]),
        counting_again(operation, options.daz, options.of_nan),
    )
    cells = ROWS * lanes
    b_cells, b_lane = (cells, 1) if layout == "paired" else (1, 0)
    state_size, noise_size = COUNTED_SLOTS * cells, (planes + 1) * STEPS_OF_A_BLOCK * cells

    def counted_drawn_loop(
        state, a, b, kept, numbers, ints, floats, first, stride, step, apart, count, width, key, stream
    ):
        turns = a.shape[2]
        flat_a, flat_b = flat(a), flat(b)
        saved = scratch(state_size, np.float32)
        noise = scratch(noise_size, np.float32)
        noises = in_rows(viewed(noise, np.uint32), planes + 1)
        pairs = viewed(noise, np.uint64)
        passed = step % STEPS_OF_A_BLOCK if apart == 1 else 0  # numbers of the first block that others took
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, np.int32)
            open_ones = happened[LEFT_OPEN * cells : (LEFT_OPEN + 1) * cells]
            corner, waiting = first + panel * cells * stride, 0
            for reached in range(-passed, turns, STEPS_OF_A_BLOCK):
                done = max(reached, 0)
                some, skipped = min(reached + STEPS_OF_A_BLOCK, turns) - done, done - reached
                number = step + done * apart
                draw_turns(pairs, number, apart, some, corner, lanes * stride, stride, width, key, stream)
                if waiting + some > COUNTED_TURNS:
                    take_counts(happened, cells, False)
                    waiting = 0
                waiting += some
                copy_first(saved, mine, state_size)
                a_at, b_at = (panel * turns + done) * cells, ((panel if b_lane else 0) * turns + done) * b_cells
                every(flat_a, a_at, 0, flat_b, b_at, 0, noise[skipped * cells :], mine, numbers, some)
                left = 0
                for cell in range(cells):
                    left |= open_ones[cell]
                if left >= 0:
                    continue
                for cell in range(cells):
                    if open_ones[cell] >= 0:
                        continue
                    open_ones[cell] = 0
                    if panel * cells + cell >= count:
                        continue
                    a_on, b_on = a_at + cell, b_at + cell * b_lane
                    counted_again(
                        mine, happened, saved, cell, flat_a[a_on : a_on + some * cells : cells],
                        flat_b[b_on : b_on + some * b_cells : b_cells], noises[:, skipped * cells + cell :: cells],
                        np.uint64(corner + cell * stride), number, apart, ints, floats, width, key, stream,
                    )  # fmt: skip
            take_counts(happened, cells, False)

    return jit.compiled(counted_drawn_loop)


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
