"""Products added in pairs, in tiles: in the formats and deterministic roundings of `one_by_one`, additions counted or not.

A subtree of a row is one piece of code, whose sums do not wait for one another; what subtrees add up to meets those before it on a
stack, as in `drawn_trees`. What a tile notes and counts of an output goes on from one piece to the next.
"""

import numpy as np

from . import jit
from .counting_steps import counted_addition, counted_sum
from .drawn_trees import DEEPEST
from .jit import copy_row, flat, row, scratch, viewed
from .lanes import Tile, closing, everywhere, opening, tile
from .one_by_one import note_inexact, rounded_sum, single_product, single_sum
from .paired import Paired
from .steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    OVERFLOWED,
    SLOTS,
    VALUE,
    Numbers,
    in_pairs,
    rounded,
)
from .tiles import begin_counting, flags_of, pass_over, take_counts, tell, tile_of
from .vectors import LANES, ROWS

LEAVES = 32
"""Products of a subtree, a power of two."""
JOIN = 0
"""In place of a number of leaves: what stands in VALUE is added to a subtree before it."""
COUNTABLE = (1 << COUNT_BITS[32]) - LEAVES
"""Additions that a word of counts holds, and those of another subtree beside them."""


def narrow_operations(manner, watchful, counts):
    """(leaf, joined): leaf(tile, a, b, state) and joined(tile, x, y, state) make numbers of the format. What `counts` is watchful as well."""

    def leaf(tile, a, b, state):
        return rounded(tile, a * b, state, manner, watchful)

    def joined(tile, x, y, state):
        if counts:
            return counted_sum(tile, x, y, state, manner)
        return rounded_sum(tile, x, y, state, manner, watchful)

    return leaf, joined


def single_operations(manner, watchful, counts):
    """The same of sums in float32."""

    def leaf(tile, a, b, state):
        if manner.family == "float32_of_narrow":
            return a * b
        product, lost = single_product(tile, a, b, manner)
        if watchful:
            note_inexact(state, lost)
        return product

    def joined(tile, x, y, state):
        s, lost = single_sum(tile, x, y, manner)
        if not tile.directed:  # where the CPU does not say so itself that a sum with an infinity is exact
            lost = lost & (x.magnitude() < np.inf)
        if counts:
            counted_addition(state, None, x, lost, s, lost & (s.magnitude() >= np.inf))
        elif watchful:
            note_inexact(state, lost)
        return s

    return leaf, joined


def sum_step(leaves, leaf, joined):
    """A subtree of so many leaves, in VALUE; or JOIN."""

    def step(tile, row, state):
        if leaves == JOIN:
            state[VALUE] = joined(tile, tile.a(row), state[VALUE], state)
            return state

        def leaf_of(place):
            return leaf(tile, tile.a(row, place), tile.b(place), state)

        state[VALUE] = in_pairs(leaves, leaf_of, lambda x, y, _: joined(tile, x, y, state))
        return state

    return step


def _tile(manner, leaves, watchful, counts):
    """The loop of one subtree, or of JOIN, a row after the other."""
    operations = single_operations if manner.family.startswith("float32") else narrow_operations
    step = sum_step(leaves, *operations(manner, watchful, counts))
    noted = (INEXACT,) * watchful + manner.slots + (OVERFLOWED, LEAST, GREATEST, COUNTS) * counts
    name, kind = ("subtree", manner, leaves, watchful, counts), Tile if leaves else Paired
    return tile(name, step, np.float32, (VALUE, *noted), Numbers._fields, leaves or 1, kind=kind, by_row=True)


@row
def joins_after(turn, whole):
    """How many subtrees before it a turn's sum meets: turns have a subtree each, `whole` of them, and then a leaf each."""
    number, joins = turn if turn < whole else turn - whole, 0
    while number & 1:
        joins += 1
        number >>= 1
    return joins


@jit.once
def pairwise(manner, counts):
    """loop(first, last, a, b, c, has_c, values, flags, numbers, nan_flags, rows, columns, counts, extremes) over tiles first ... last - 1.

    a is (row panels, k, ROWS), b (column panels, k, lanes), c and values (ROWS * row panels, lanes * column panels), all float32; each
    output's number of c is added to its sum, if there is one. Where the loop `counts`, counts (3, ...) and extremes (2, ...) are filled: as
    `tiles.counted`; else they may be empty.
    """
    lanes = LANES[np.float32]
    (subtree, leaf, join), (brief_subtree, brief_leaf, brief_join) = (
        [_tile(manner, leaves, watches, counts) for leaves in (LEAVES, 1, JOIN)] for watches in (True, counts)
    )
    slots = COUNTED_SLOTS if counts else SLOTS
    begin, all_inexact = opening(np.float32, slots), everywhere(np.float32, INEXACT)
    end = closing(np.float32, flags_of, (VALUE, INEXACT, *manner.slots))
    cells = ROWS * lanes
    state_size, stack_size = slots * cells, DEEPEST * cells

    def pairwise_loop(
        first, last, a, b, c, has_c, values, flags, numbers, nan_flags, rows, columns, counted, extremes
    ):  # fmt: skip
        panels, length, wide = a.shape[0], a.shape[1], values.shape[1]
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags = flat(values), flat(flags)
        state, stack = scratch(state_size, np.float32), scratch(stack_size, np.float32)
        happened = viewed(state, np.int32)
        whole = length // LEAVES
        turns = whole + length % LEAVES
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[0], length * ROWS * a.itemsize)
            place, a_at, b_at = i * ROWS * wide + j * lanes, i * length * ROWS, j * length * lanes
            begin(state, flat_c, place, wide)
            if counts:
                begin_counting(state, cells)
            elif ((i + 1) * ROWS > rows) | ((j + 1) * lanes > columns):
                pass_over(happened, i, j, lanes, rows, columns)
            known, level, additions = False, 0, 0
            # after the last turn what is left on the stack, and after that c
            for turn in range(turns + (2 if has_c else 1)):
                if turn < whole:
                    if known:
                        brief_subtree(flat_a, a_at, 0, flat_b, b_at, 0, state, state, numbers, 1)
                    else:
                        subtree(flat_a, a_at, 0, flat_b, b_at, 0, state, state, numbers, 1)
                    a_at += LEAVES * ROWS
                    b_at += LEAVES * lanes
                    additions += LEAVES
                elif turn < turns:
                    if known:
                        brief_leaf(flat_a, a_at, 0, flat_b, b_at, 0, state, state, numbers, 1)
                    else:
                        leaf(flat_a, a_at, 0, flat_b, b_at, 0, state, state, numbers, 1)
                    a_at += ROWS
                    b_at += lanes
                joins = joins_after(turn, whole)
                if turn == turns:
                    level -= 1  # the last subtree stands in VALUE
                    joins = level
                elif turn > turns:
                    for row_ in range(ROWS):
                        for lane in range(lanes):
                            cell = row_ * lanes + lane
                            stack[cell] = state[cell]
                            state[cell] = flat_c[place + row_ * wide + lane]
                    level, joins = 1, 1
                for _ in range(joins):
                    level -= 1
                    if known:
                        brief_join(stack, level * cells, 0, stack, 0, 0, state, state, numbers, 1)
                    else:
                        join(stack, level * cells, 0, stack, 0, 0, state, state, numbers, 1)
                if turn < turns:
                    copy_row(stack[level * cells : (level + 1) * cells], state)
                    level += 1
                    known = known or (not counts and all_inexact(state))
                if counts:
                    additions += joins
                    if (additions > COUNTABLE - LEAVES) | (turn >= turns - 1):
                        take_counts(happened, cells, False)
                        additions = 0
            end(state, flat_values, flat_flags, place, wide, nan_flags)
            if counts:
                tell(state, happened, ROWS, i * ROWS, j, lanes, counted, extremes)

    return jit.compiled(pairwise_loop)
