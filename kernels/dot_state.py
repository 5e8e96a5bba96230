"""What a dot product's call chooses, what holds for all its outputs, and what a row of them is on its way."""

from typing import NamedTuple

import numpy as np
from numba import types

from .jit import kernel
from .parts import Reference, apart, block_of, referring

FUSED, ROUNDED, EXACT, ALIGNED, FIXED = 0, 1, 2, 3, 4
"""How products meet the running sum; the first two, and the last, one at a time."""

A, B, TERM, RANDOM, CUT, SCALE, NUMBER, ERROR, BEFORE, BEFORE_ROUNDING, MEMORY, NOTHING, SPARE = range(13)
TOTAL, OVER, SECOND_SCALE, SECOND_TOTAL, APART, LEAD, SUMMED, NEGATIVE, POSITIVE, OPERAND = range(13, 23)
"""Rows of working space."""
PARTS = OPERAND + 2
"""From this row on, two or as many as there are bins, lie numbers whose sum is to be rounded; before them what was."""


class Choices(NamedTuple):
    """What a call chooses, and where its outputs lie; all integers, which travel as an array: a tuple is typed at every call.

    By default it is a sum of one output without addend or scales.
    """

    kind: int  # how products meet the running sum
    block: int  # products of a block
    chains: int  # running sums that take blocks in turn
    tree: int  # whether neighbours are added in pairs
    levels: int  # of the reduction above segments
    fraction_bits: int  # of an aligned block's grid
    has_result: int  # whether the output has another format than the partials
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
    least: int  # the least exponent that sets an aligned block's grid, NO_EXPONENT: none
    positive_zeros: int  # whether zero sums of aligned blocks are +0, however they came to be zero
    leaf: int  # products whose exact sum is a leaf of a tree
    compensation: int  # how the errors of a running sum are made up for
    fixed_bits: int  # of a fixed-point running sum
    fixed_last: int  # exponent of its last bit
    fixed_saturates: int
    has_addend: int = 0
    paired: int = 0  # whether a is laid out like b
    cumulative: int = 0
    counting: int = 0
    first: int = 0  # number of the first output
    row_stride: int = 1  # from it to the one below
    column_stride: int = 1  # and beside
    payloads: int = 0  # whether codes of NaNs are asked for
    scaling: int = 0  # how a segment's sum is multiplied by its scales


CHOICES = len(Choices._fields)
NO_EXPONENT = -2000
UNSCALED, SCALES_FUSED, FIRST_FUSED, SECOND_FUSED, SCALES_ADDED = range(5)
"""How a segment's sum s meets the running sum t: s + t; (x*y)*s + t, (s*x)*y + t, (s*y)*x + t, each with a fused last step; (x*y)*s, then + t."""

UNCOMPENSATED, KAHAN, NEUMAIER, TWO_TERM = range(4)
"""What becomes of the error of an addition: nothing; added to the next product; summed apart, added in the end; a second term of the sum."""


ADDEND, ERRORS = range(2)
"""Rows of `State.ends`."""
TOP, ENDED, ATS = range(3)
"""Numbers in `State.at`: the highest sum on the stack, -1 of none; whether no further product changes anything; and how many there are."""
DEEPEST = 64  # levels of a tree over all that memory holds


class Call(NamedTuple):
    """What holds for all outputs of a call: as `contraction` takes it, and where the parts of its loop are."""

    how: Choices
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    entry: np.ndarray
    leads_a: np.ndarray
    leads_b: np.ndarray
    scales_a: np.ndarray
    scales_b: np.ndarray
    codes_a: np.ndarray
    codes_b: np.ndarray
    codes_out: np.ndarray
    flags_out: np.ndarray
    counts_out: np.ndarray
    extremes_out: np.ndarray
    stores: np.ndarray
    closes: np.ndarray
    stored: np.ndarray  # whether a level of the reduction stores its sums
    draws: np.ndarray  # random bits of a stage; 0 where it does not draw
    begun: np.ndarray
    ints: np.ndarray  # a row of numbers for each stage
    floats: np.ndarray
    tiny: np.ndarray  # smallest normal number of a, b and the running sum
    magics: np.ndarray
    key: np.uint64
    stream: np.uint64
    links: int


class State(NamedTuple):
    """A row of outputs on their way."""

    i: int  # where it lies among the outputs
    column: int
    start: int  # number of the first output, among all of the call
    work: np.ndarray
    running: np.ndarray  # a row for each chain
    totals: np.ndarray  # and for each level
    stack: np.ndarray
    ends: np.ndarray
    extremes: np.ndarray
    codes: np.ndarray  # of what was rounded last
    raised: np.ndarray  # by what was rounded last
    flags: np.ndarray
    counts: np.ndarray
    payloads: np.ndarray  # codes of NaNs: of the running sum, then of the sums of each level
    operand_codes: np.ndarray  # and of a product's factors, and of the product
    steps: np.ndarray  # roundings done at each stage
    at: np.ndarray


@kernel
def rows_of(how, bins):
    """Rows of numbers that a State has, and of integers."""
    return PARTS + max(2, bins) + how.chains + how.levels + 5 + (DEEPEST if how.tree else 1), how.levels + 10


@kernel
def state_of(room, words, place, i, column, width, call):
    """The `place`-th State whose numbers lie in `room` and `words`: so many outputs of row i, from `column` on."""
    how, sites = call.how, call.begun.size
    rows, integers = rows_of(how, call.magics.size)
    own, long = block_of(room, place * rows, rows, width), block_of(words, place * integers, integers, width)
    run = PARTS + max(2, call.magics.size)
    end = run + how.chains
    total = end + 4
    stack = total + how.levels + 1
    apart = words[words.size - (place + 1) * (sites + ATS) :]
    start = how.first + i * how.row_stride + column * how.column_stride
    return State(
        i, column, start, own[:run], own[run:end], own[total:stack], own[stack:rows], own[end : end + 2], own[end + 2 : total],
        long[0], long[1], long[2], long[3:6], long[9:integers], long[6:9], apart[:sites], apart[sites : sites + ATS],
    )  # fmt: skip


ROW, MATRIX = types.float64[::1], types.float64[:, ::1]
INTEGERS, INTEGER_MATRIX, CODES = types.int64[::1], types.int64[:, ::1], types.uint32[:, ::1]
_CALL = {
    "how": types.NamedUniTuple(types.int64, CHOICES, Choices),
    **dict.fromkeys(("entry", "ints"), INTEGER_MATRIX),
    **dict.fromkeys(("codes_a", "codes_b", "codes_out"), CODES),
    "flags_out": types.uint8[:, ::1],
    "counts_out": types.int64[:, :, ::1],
    "extremes_out": types.float64[:, :, ::1],
    **dict.fromkeys(("stores", "closes", "draws", "begun"), INTEGERS),
    "stored": types.uint8[::1],
    **dict.fromkeys(("tiny", "magics"), ROW),
    **dict.fromkeys(("key", "stream", "links"), types.uint64),
}
_STATE = {
    **dict.fromkeys(("i", "column", "start"), types.int64),
    **dict.fromkeys(("codes", "raised", "flags", "steps", "at"), INTEGERS),
    **dict.fromkeys(("counts", "payloads", "operand_codes"), INTEGER_MATRIX),
}
KINDS = {
    **dict.fromkeys(
        ("site", "parts", "held", "k", "first", "last", "count", "place", "segment", "joins", "closed"), types.int64
    ),
    **dict.fromkeys(("values", "total", "addend", "z", "x", "y", "terms", "numbers", "errors", "room"), ROW),
    **dict.fromkeys(("payload", "words"), INTEGERS),
    **{
        name: Reference(types.NamedTuple([known.get(field, MATRIX) for field in kind._fields], kind))
        for name, kind, known in (("state", State, _STATE), ("call", Call, _CALL))
    },
}
"""Types of what the parts of the loop take, by name."""

call_at = referring(KINDS["call"])
part = apart(KINDS)
"""Decorator of a part of the loop."""
