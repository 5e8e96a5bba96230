"""Loops of tiles for calls with few outputs: a row after the other, by the most careful step alone.

They take a fraction of the time to compile that those of `tiles` take, whose results they have, and run at a fraction of the speed.
"""

import numpy as np

from . import jit
from .jit import flat, scratch, viewed
from .lanes import tile
from .noise import drawing
from .one_by_one import DRAWN_STEPS
from .redrawn import SITES
from .steps import INEXACT, LEFT_OPEN, OVERFLOW, SLOTS, UNDERFLOW, VALUE, Numbers, exact_step
from .tiles import DRAWN_TURNS, draw_stores, frame, tile_of
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK


@jit.once
def few_blocks(block, blocks, stored, saturate):
    """`exact_blocks` for few outputs, with care alone and row by row: compiles in a fraction of the time.

    loop(..., columns, index, row_stride, column_stride, width, key, stream, begun).
    """
    carrier, lanes, group = np.float64, LANES[np.float64], block * blocks
    slots = (VALUE, INEXACT, *(UNDERFLOW,) * bool(stored), *(OVERFLOW,) * (bool(stored) and saturate))
    draws = stored == "drawn"
    name = "few", block, blocks, stored, saturate
    step = exact_step(block, blocks, stored, saturate, True, True)
    every = tile(name, step, carrier, slots, Numbers._fields, group, by_row=True)
    begin, end, _ = frame(carrier)
    cells = ROWS * lanes
    at_once = DRAWN_TURNS if draws else 1 << 62
    state_size, noise_size = SLOTS * cells, DRAWN_TURNS * cells * draws

    def few_blocks_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns,
        index, row_stride, column_stride, width, key, stream, begun,
    ):  # fmt: skip
        panels, turns = a.shape[1], a.shape[2] // group
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        state, noise = scratch(state_size, carrier), scratch(noise_size, carrier)
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[1], a.size // panels * a.itemsize)
            place = i * ROWS * wide + j * lanes
            begin(state, flat_c, place, wide)
            for done in range(0, turns, at_once):
                count = min(at_once, turns - done)
                if draws:
                    corner = index + i * ROWS * row_stride + j * lanes * column_stride
                    draw_stores(
                        noise, corner, row_stride, column_stride, begun + done, count, lanes, ROWS, key, stream, width
                    )  # fmt: skip
                a_at, b_at = (i * turns + done) * group * ROWS, (j * turns + done) * group * lanes
                every(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
            end(state, flat_values, flat_flags, place, wide, nan_flags)

    return jit.compiled(few_blocks_loop)


@jit.once
def few_drawn(operation, options):
    """`drawn_tiles.stochastic` for few outputs, of which it settles none.

    loop(..., columns, ints, floats, index, row_stride, column_stride, width, key, stream, begun, apart) -> tiles done: what
    16 random bits leave open ends the loop, and that tile and those after it are left.
    """
    lanes = LANES[np.float32]
    planes, draw_turns = len(SITES[operation]), drawing(*SITES[operation], briefly=True)
    slots, step = (VALUE, INEXACT, *options.slots), DRAWN_STEPS[operation](options, True)
    every = tile(("few", operation, options), step, np.float32, slots, Numbers._fields, by_row=True)
    begin, end, _ = frame(np.float32)
    cells = ROWS * lanes
    state_size, noise_size = SLOTS * cells, (planes + 1) * STEPS_OF_A_BLOCK * cells

    def few_drawn_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, ints, floats,
        index, row_stride, column_stride, width, key, stream, begun, apart,
    ):  # fmt: skip
        panels, turns = a.shape[1], a.shape[2]
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        state, noise = scratch(state_size, np.float32), scratch(noise_size, np.float32)
        open_ones = viewed(state, np.int32)[LEFT_OPEN * cells : (LEFT_OPEN + 1) * cells]
        passed = begun % STEPS_OF_A_BLOCK if apart == 1 else 0  # numbers of the first block that others took
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[1], a.size // panels * a.itemsize)
            corner = index + i * ROWS * row_stride + j * lanes * column_stride
            place = i * ROWS * wide + j * lanes
            begin(state, flat_c, place, wide)
            for reached in range(-passed, turns, STEPS_OF_A_BLOCK):
                done = max(reached, 0)
                count = min(reached + STEPS_OF_A_BLOCK, turns) - done
                draw_turns(
                    viewed(noise, np.uint64), begun + done * apart, apart, count,
                    corner, row_stride, column_stride, width, key, stream,
                )  # fmt: skip
                beside = noise[(done - reached) * cells :]
                a_at, b_at = (i * turns + done) * ROWS, (j * turns + done) * lanes
                every(flat_a, a_at, 0, flat_b, b_at, 0, beside, state, numbers, count)
                left = 0
                for cell in range(cells):
                    inside = (i * ROWS + cell // lanes < rows) & (j * lanes + cell % lanes < columns)
                    left |= open_ones[cell] if inside else 0
                    open_ones[cell] = 0
                if left < 0:
                    return unit - first
            end(state, flat_values, flat_flags, place, wide, nan_flags)
        return last - first

    return jit.compiled(few_drawn_loop)
