"""Multiply-adds rounded stochastically, and counted: tiles of `drawn_tiles.stochastic`, each rounding looked at as `accumulate.count_row` does."""

from functools import cache

import numpy as np
from llvmlite import ir

from . import jit
from .carrier import source_of
from .counting_steps import drawn_counting, quick_drawn_counting_step
from .jit import copy_first, flat, in_rows, referable, row, scratch, stand_alone, viewed
from .lanes import Tile, guarded_tile, tile
from .noise import drawing
from .quick_steps import AROUND, draw_went_wrong, drawn_watches
from .redrawn import MULTIPLIED, SITES, reading, sum_again, whole
from .rounding import target_of
from .steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    LEFT_OPEN,
    OVERFLOW,
    OVERFLOWED,
    UNDERFLOW,
    VALUE,
    Numbers,
)
from .tiles import (
    COUNTED_ROWS,
    REST,
    VAIN,
    begin_counting,
    count_again,
    frame,
    take_counts,
    tell,
    tile_of,
)
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK, load

PARTS = ROWS // COUNTED_ROWS
COUNTED_TURNS = (1 << COUNT_BITS[32]) - 1


class Part(Tile):
    """Some rows of a tile, whose random numbers lie among those of all."""

    def noise(self, row, plane=0):
        """A vector for this turn and row; `plane` counts further blocks of turns."""
        where = self._at(self.lanes * ROWS, plane * STEPS_OF_A_BLOCK * ROWS * self.lanes, row, self.lanes)
        return load(self.builder, self._noise, where, ir.FloatType(), self.lanes)


@cache
def counting_again(operation, daz, of_nan):
    """function(state, happened, saved, cell, a, b, noises, output, number, apart, ints, floats, width, key, stream): a cell's turns again.

    a, b and noises (planes, ...) are the cell's, from turn `number` of the call on; `saved` is the state before them, whose infinities may
    be NaN (`of_nan`).
    """
    multiplied, read = MULTIPLIED[operation], reading(daz)
    read_product = reading(daz and multiplied is not whole)

    @row
    def counted_again(
        state, happened, saved, cell, a, b, noises, output, number, apart, ints, floats, width, key, stream
    ):
        stand_alone()
        source, target = source_of(ints, floats), target_of(ints, floats)
        cells = state.size // COUNTED_SLOTS
        for slot in range(COUNTED_SLOTS):
            state[slot * cells + cell] = saved[slot * cells + cell]
        z, seen = np.float64(state[cell]), 0
        for turn in range(a.size):
            own, step = noises[:, turn], number + turn * apart
            x, y = np.float64(a[turn]), np.float64(b[turn])
            product, raised = multiplied(x, y, own, output, step, source, target, width, key, stream)
            seen |= raised
            so_far, product = read(z, target), read_product(product, target)
            z, raised = sum_again(so_far, product, own[0], output, step, source, target, width, key, stream)
            seen |= raised
            count_again(state, happened, cells, cell, so_far, product, read(z, target), raised, of_nan)
        state[cell] = z
        happened[INEXACT * cells + cell] |= seen & 1
        happened[UNDERFLOW * cells + cell] |= seen & 2
        happened[OVERFLOW * cells + cell] |= seen & 4

    return referable(counted_again, operation, daz, of_nan)


@jit.once
def counted(operation, family, options):
    """loop(first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, counts, extremes, ints, floats,
    index, row_stride, column_stride, width, key, stream, begun, apart).

    As `tiles.counted`, of multiply-adds rounded as `drawn_tiles.stochastic` does; `options` are Draws.
    """
    carrier, lanes = np.float32, LANES[np.float32]
    counted_again = counting_again(operation, options.daz, options.of_nan)
    planes, draw_turns = len(SITES[operation]), drawing(*SITES[operation])
    carried, noted = (VALUE, COUNTS, LEAST, GREATEST), (*options.slots, OVERFLOWED)
    name = "counted drawn", operation, family, options
    careful, has_quick = drawn_counting(operation, options), family != "float32"
    every = tile(name, careful, carrier, carried + noted, Numbers._fields, kind=Part, rows=COUNTED_ROWS)
    quick = every
    if has_quick:
        quick = guarded_tile(
            name, quick_drawn_counting_step(operation, family, options), draw_went_wrong(family, False, lambda _: AROUND),
            careful, carrier, noted, drawn_watches(family, False), Numbers._fields, COUNTED_ROWS,
            carried=carried, rows=COUNTED_ROWS, kind=Part,
        )  # fmt: skip
    begin, end, _ = frame(carrier, COUNTED_SLOTS, COUNTED_ROWS)
    cells, all_cells = COUNTED_ROWS * lanes, ROWS * lanes
    held_size, noise_size = PARTS * COUNTED_SLOTS * cells, (planes + 1) * STEPS_OF_A_BLOCK * all_cells

    def counted_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, counts, extremes, ints, floats,
        index, row_stride, column_stride, width, key, stream, begun, apart,
    ):  # fmt: skip
        panels, turns = a.shape[1], a.shape[2]
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        a_panel = a.size // a.shape[1]
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        held = scratch(held_size, carrier)
        state, happened = in_rows(held, PARTS), in_rows(viewed(held, np.int32), PARTS)
        kept = scratch(held_size, carrier)
        before = in_rows(kept, PARTS)
        noise = scratch(noise_size, carrier)
        noises = in_rows(viewed(noise, np.uint32), planes + 1)
        pairs = viewed(noise, np.uint64)
        passed = begun % STEPS_OF_A_BLOCK if apart == 1 else 0  # numbers of the first block that others took
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[1], a_panel * a.itemsize)
            corner = index + i * ROWS * row_stride + j * lanes * column_stride
            for part in range(PARTS):
                begin(state[part], flat_c, (i * ROWS + part * COUNTED_ROWS) * wide + j * lanes, wide)
                begin_counting(state[part], cells)
            everything = True  # may have changed since it was saved, not only what each turn changes
            waiting = 0  # turns whose counts are in their words alone
            rest = 0  # the turn before which none is tried quickly
            for reached in range(-passed, turns, STEPS_OF_A_BLOCK):
                done = max(reached, 0)
                count, skipped = min(reached + STEPS_OF_A_BLOCK, turns) - done, done - reached
                number = begun + done * apart
                draw_turns(pairs, number, apart, count, corner, row_stride, column_stride, width, key, stream)
                if waiting + count > COUNTED_TURNS:
                    for part in range(PARTS):
                        take_counts(happened[part], cells, False)
                    waiting, everything = 0, True
                waiting += count
                b_at = (j * turns + done) * lanes
                tried, again, left = has_quick and done >= rest, 0, 0
                for part in range(PARTS):
                    mine, what, saved = state[part], happened[part], before[part]
                    a_at = (i * turns + done) * ROWS + part * COUNTED_ROWS
                    copy_first(saved, mine, COUNTED_SLOTS * cells if everything else cells)
                    if not everything:
                        copy_first(saved[LEAST * cells :], mine[LEAST * cells :], (COUNTED_SLOTS - LEAST) * cells)
                    beside = noise[skipped * all_cells + part * cells :]
                    if has_quick and tried:
                        again += quick(flat_a, a_at, 0, flat_b, b_at, 0, beside, mine, numbers, count)
                    if not tried:
                        every(flat_a, a_at, 0, flat_b, b_at, 0, beside, mine, numbers, count)
                    open_ones = what[LEFT_OPEN * cells : (LEFT_OPEN + 1) * cells]
                    for cell in range(cells):
                        left |= open_ones[cell]
                    if left >= 0:
                        continue
                    for cell in range(cells):
                        if open_ones[cell] >= 0:
                            continue
                        open_ones[cell] = 0
                        row_, lane = part * COUNTED_ROWS + cell // lanes, cell % lanes
                        if i * ROWS + row_ >= rows or j * lanes + lane >= columns:
                            continue
                        a_on, b_on, own = a_at + cell // lanes, b_at + lane, skipped * all_cells + part * cells + cell
                        counted_again(
                            mine, what, saved, cell, flat_a[a_on : a_on + count * ROWS : ROWS],
                            flat_b[b_on : b_on + count * lanes : lanes], noises[:, own :: all_cells],
                            np.uint64(corner + row_ * row_stride + lane * column_stride), number, apart,
                            ints, floats, width, key, stream,
                        )  # fmt: skip
                everything = not tried or again > 0 or left < 0
                rest = done + REST if again * VAIN > count * PARTS else rest
            for part in range(PARTS):
                take_counts(happened[part], cells, False)
                first_row = i * ROWS + part * COUNTED_ROWS
                end(state[part], flat_values, flat_flags, first_row * wide + j * lanes, wide, nan_flags)
                tell(state[part], happened[part], COUNTED_ROWS, first_row, j, lanes, counts, extremes)

    return jit.compiled(counted_loop)
