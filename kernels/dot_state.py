"""What a dot product's call chooses, what holds for all its outputs, and what a row of them is on its way."""

from typing import NamedTuple

import numpy as np

from .jit import row

FUSED, ROUNDED, EXACT, ALIGNED, FIXED = 0, 1, 2, 3, 4
"""How products meet the running sum; the first two, and the last, one at a time."""

A, B, TERM, RANDOM, CUT, SCALE, NUMBER, ERROR, BEFORE, BEFORE_ROUNDING, MEMORY, NOTHING, SPARE = range(13)
TOTAL, OVER, SECOND_SCALE, SECOND_TOTAL, APART, LEAD, SUMMED, NEGATIVE, POSITIVE, OPERAND = range(13, 23)
"""Rows of working space."""
PARTS = OPERAND + 2
"""From this row on, two or as many as there are bins, lie numbers whose sum is to be rounded; `round_drawn_row` has the one before."""


class Choices(NamedTuple):
    """What a call chooses, and where its outputs lie; all integers, which travel as an array: a tuple is typed at every call."""

    kind: int  # how products meet the running sum
    block: int  # products of a block
    chains: int  # running sums that take blocks in turn
    tree: int  # whether neighbours are added in pairs
    levels: int  # of the reduction above segments
    fraction_bits: int  # of an aligned block's grid
    has_addend: int
    has_result: int  # whether the output has another format than the partials
    paired: int  # whether a is laid out like b
    cumulative: int
    counting: int
    first: int  # number of the first output
    row_stride: int  # from it to the one below
    column_stride: int  # and beside
    payloads: int  # whether codes of NaNs are asked for
    entered: int  # the stage that c comes from
    products_rounded: int
    lone_converted: int  # a product that a tree adds to nothing changes its format
    sums_blocks: int  # whether a block's sum is rounded before it meets the running sum
    signed_zeros: int  # whether a zero sum keeps the sign that all terms have
    unsigned_products: int  # whether a zero product is +0
    direction: int  # in which terms of an aligned block are cut
    group: int  # products that are one of its terms
    halves: int  # whether its even and odd terms are aligned apart
    limit: int  # exponent from which on finite terms count as infinite
    zero: int  # exponent of a zero running sum, NO_EXPONENT: none
    addend_inside: int  # whether the running sum is one of its terms
    sum_bits: int  # fraction bits of the terms' sum where it is not; negative: it is not cut
    addend_bits: int  # of the running sum
    sum_direction: int
    drop: int  # the running sum is dropped further below; negative: never
    scaling: int  # how a segment's sum is multiplied by its scales
    least: int  # the least exponent that sets an aligned block's grid, NO_EXPONENT: none
    positive_zeros: int  # whether zero sums of aligned blocks are +0, however they came to be zero
    leaf: int  # products whose exact sum is a leaf of a tree
    compensation: int  # how the errors of a running sum are made up for
    fixed_bits: int  # of a fixed-point running sum
    fixed_last: int  # exponent of its last bit
    fixed_saturates: int


CHOICES = len(Choices._fields)
NO_EXPONENT = -2000
UNSCALED, SCALES_FUSED, FIRST_FUSED, SECOND_FUSED, SCALES_ADDED = range(5)
"""How a segment's sum s meets the running sum t: s + t; (x*y)*s + t, (s*x)*y + t, (s*y)*x + t, each with a fused last step; (x*y)*s, then + t."""

UNCOMPENSATED, KAHAN, NEUMAIER, TWO_TERM = range(4)
"""What becomes of the error of an addition: nothing; added to the next product; summed apart, added in the end; a second term of the sum."""


class Call(NamedTuple):
    """What holds for all outputs of a call."""

    how: Choices
    draws: np.ndarray  # random bits of a stage; 0 where it does not draw
    ints: np.ndarray  # a row of numbers for each stage
    floats: np.ndarray
    stored: np.ndarray  # whether a level of the reduction stores its sums
    tiny: np.ndarray  # smallest normal number of a, b and the running sum
    magics: np.ndarray
    key: np.uint64
    stream: np.uint64
    drawing: bool | None  # None: no stage draws, in no call of this loop


class State(NamedTuple):
    """A row of outputs on their way."""

    work: np.ndarray
    codes: np.ndarray  # of what was rounded last
    raised: np.ndarray  # by what was rounded last
    flags: np.ndarray
    counts: np.ndarray
    extremes: np.ndarray
    steps: np.ndarray  # roundings done at each stage
    payloads: np.ndarray  # codes of NaNs: of the running sum, then of the sums of each level
    start: int  # number of the first output, among all of the call
    stride: int


@row
def copied(state):
    """A state that goes its own way."""
    return State(
        state.work.copy(),
        state.codes.copy(),
        state.raised.copy(),
        state.flags.copy(),
        state.counts.copy(),
        state.extremes.copy(),
        state.steps.copy(),
        state.payloads.copy(),
        state.start,
        state.stride,
    )
