"""Tiles of multiply-adds that are rounded stochastically, eight turns at a time."""

import numpy as np

from . import jit
from .carrier import source_of
from .jit import copy_first, flat, in_rows, row, scratch, viewed
from .lanes import guarded_tile
from .noise import drawing
from .one_by_one import DRAWN_STEPS, is_sure
from .quick_steps import QUICK_DRAWN_STEPS, QUICK_ROWS, draw_went_wrong, drawn_watches, lift_of, unfit
from .redrawn import SITES, again
from .rounding import target_of
from .steps import LEFT_OPEN, OVERFLOW, SLOTS, UNDERFLOW, Numbers
from .tiles import REST, VAIN, compiled_tile, frame, pass_over, tile_of
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK


def room_of_chains(operation, length):
    """Words of a tile's random numbers, two of 16 bits in each, for so many products of all chains together."""
    return len(SITES[operation]) * -(-length // STEPS_OF_A_BLOCK) * STEPS_OF_A_BLOCK // 2 * ROWS * LANES[np.float32]


@row
def _keep(page, noise):
    """Random numbers of eight turns, of each four turns later in the same words."""
    for n in range(page.size):
        page[n] = noise[n] | noise[n + page.size] << np.uint32(16)


@row
def _find(noise, page, turn, cells):
    """Those of one of these turns."""
    start, up = turn % 4 * cells, np.uint32(turn // 4 * 16)
    for n in range(cells):
        noise[n] = page[start + n] >> up & np.uint32(0xFFFF)


@jit.once
def stochastic(operation, family, options):
    """loop(first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, ints, floats,
    index, row_stride, column_stride, width, key, stream, begun, apart, length, book).

    As `tiles.deterministic`, for multiply-adds rounded stochastically; eight turns at a time. The quick step, or the one by which
    its turns are done again, tells that some output was left open, the watchful one which. What 16 random bits leave open is
    done again with all of them, an output at a time, by the plain functions on the wide carrier. `options` are Draws. So many roundings were `begun`
    before, and took the random numbers before these, which lie `apart`.
    a and b may be those of several chains, each as long as the first, that take `length` products in turn, and roundings their random
    numbers, so that these are as far apart as there are chains. A tile's are drawn once for all of them, and kept in `book`, of
    `room_of_chains` words. Then values and flags have the rows of one chain after those of another, c is where each begins, and
    nothing was begun.
    """
    lanes = LANES[np.float32]
    make, turn_again = DRAWN_STEPS[operation], again(operation, options.daz)
    planes, draw_turns = len(SITES[operation]), drawing(*SITES[operation])
    name, roomy = ("stochastic", operation, family, options), options.roomy
    watchful = compiled_tile(name, make(options, True), np.float32, 1, 1, True, *options.slots)
    quick = guarded_tile(
        name, QUICK_DRAWN_STEPS[operation](family, options), draw_went_wrong(family, roomy, lifted=True, sure=is_sure(operation)),
        make(options, False), np.float32, options.slots, drawn_watches(family, roomy, True), Numbers._fields, QUICK_ROWS, lift_of(family),
        unfit=unfit(options),
    )  # fmt: skip
    begin, end, all_inexact = frame(np.float32)
    cells = ROWS * lanes
    block = STEPS_OF_A_BLOCK * cells
    state_size, saved_size, noise_size, page_size = SLOTS * cells, LEFT_OPEN * cells, (planes + 1) * block, block // 2

    def stochastic_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, ints, floats,
        index, row_stride, column_stride, width, key, stream, begun, apart, length, book,
    ):  # fmt: skip
        source, target = source_of(ints, floats), target_of(ints, floats)
        chains, panels, turns = a.shape[0], a.shape[1], a.shape[2]
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        a_chain, b_chain, a_panel = a.size // chains, b.size // chains, turns * ROWS
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        state = scratch(state_size, np.float32)
        happened = viewed(state, np.int32)
        open_ones = happened[LEFT_OPEN * cells : (LEFT_OPEN + 1) * cells]
        saved = scratch(saved_size, np.float32)
        before = viewed(saved, np.int32)
        noise = scratch(noise_size, np.float32)
        bits = viewed(noise, np.uint32)
        noises = in_rows(bits, planes + 1)
        pairs = viewed(noise, np.uint64)
        passed = begun % STEPS_OF_A_BLOCK if apart == 1 else 0  # numbers of the first block that others took
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[1], a_panel * a.itemsize)
            corner = index + i * ROWS * row_stride + j * lanes * column_stride
            place = i * ROWS * wide + j * lanes
            for chain in range(chains):
                begin(state, flat_c, place, wide)
                if ((i + 1) * ROWS > rows) | ((j + 1) * lanes > columns):
                    pass_over(happened, i, j, lanes, rows, columns)
                a_at, b_at = chain * a_chain + i * turns * ROWS, chain * b_chain + j * turns * lanes
                known, rest, noted, last_turn = False, 0, True, (length - chain + chains - 1) // chains
                for reached in range(-passed, last_turn, STEPS_OF_A_BLOCK):
                    done = max(reached, 0)
                    count = min(reached + STEPS_OF_A_BLOCK, last_turn) - done
                    copy_first(saved, state, LEFT_OPEN * cells if noted else cells)
                    number = begun + chain + done * apart
                    for part in range(chains if chain == 0 else 0):
                        step, some = (apart, count) if chains == 1 else (1, STEPS_OF_A_BLOCK)
                        ahead = number + part * STEPS_OF_A_BLOCK
                        draw_turns(pairs, ahead, step, some, corner, row_stride, column_stride, width, key, stream)
                        for plane in range(planes if (chains > 1) & (ahead < length) else 0):
                            page = (ahead // STEPS_OF_A_BLOCK * planes + plane) * page_size
                            _keep(book[page : page + page_size], bits[plane * block :])
                    for turn in range(count if chains > 1 else 0):
                        taken = number + turn * chains
                        for plane in range(planes):
                            page = (taken // STEPS_OF_A_BLOCK * planes + plane) * page_size
                            _find(bits[plane * block + turn * cells :], book[page:], taken % STEPS_OF_A_BLOCK, cells)
                    beside = noise[(done - reached) * cells :]
                    known = known or all_inexact(state)
                    left = -1
                    if known and done >= rest:
                        again_ones = quick(flat_a, a_at, 0, flat_b, b_at, 0, beside, state, numbers, count)
                        rest = done + REST if again_ones * VAIN > count else 0
                        left, noted = 0, again_ones > 0
                        if noted:
                            for cell in range(cells):
                                left |= open_ones[cell]
                                open_ones[cell] = 0
                        if left < 0:
                            copy_first(state, saved, LEFT_OPEN * cells)
                    if left < 0:
                        noted = True
                        watchful(flat_a, a_at, 0, flat_b, b_at, 0, beside, state, numbers, count)
                        for cell in range(cells):
                            if open_ones[cell] >= 0:
                                continue
                            open_ones[cell] = 0
                            row_, lane = cell // lanes, cell % lanes
                            if i * ROWS + row_ >= rows or j * lanes + lane >= columns:
                                continue
                            output = np.uint64(corner + row_ * row_stride + lane * column_stride)
                            z = np.float64(saved[cell])
                            seen = 0
                            for turn in range(count):
                                x, y = (
                                    np.float64(flat_a[a_at + turn * ROWS + row_]),
                                    np.float64(flat_b[b_at + turn * lanes + lane]),
                                )
                                z, raised = turn_again(
                                    x,
                                    y,
                                    z,
                                    noises[:, (done - reached + turn) * cells + cell],
                                    output,
                                    number + turn * apart,
                                    source,
                                    target,
                                    width,
                                    key,
                                    stream,
                                )
                                seen |= raised
                            state[cell] = z
                            happened[UNDERFLOW * cells + cell] = before[UNDERFLOW * cells + cell] | (seen & 2)
                            happened[OVERFLOW * cells + cell] = before[OVERFLOW * cells + cell] | (seen & 4)
                    a_at += count * ROWS
                    b_at += count * lanes
                end(state, flat_values, flat_flags, chain * c.size + place, wide, nan_flags)

    return jit.compiled(stochastic_loop)
