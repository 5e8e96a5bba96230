"""Loops of tiles for calls with few outputs: a row after the other, by the most careful step alone.

They take a fraction of the time to compile that those of `tiles` take, whose results they have, and run at a fraction of the speed.
"""

import numpy as np

from . import jit
from .jit import flat, scratch
from .lanes import tile
from .steps import INEXACT, OVERFLOW, SLOTS, UNDERFLOW, VALUE, Numbers, exact_step
from .tiles import DRAWN_TURNS, draw_stores, frame, tile_of
from .vectors import LANES, ROWS


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
