"""What a dot product's call chooses, what holds for all its outputs, and what one of them is on its way."""

from typing import NamedTuple

import numpy as np
from numba import types

from .jit import kernel
from .parts import Reference, apart, referring

FUSED, ROUNDED, EXACT, ALIGNED, FIXED = 0, 1, 2, 3, 4
"""How products meet the running sum; the first two, and the last, one at a time."""


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
    limit: int  # exponent from which on finite terms count as infinite, UNLIMITED: none
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
NO_EXPONENT, UNLIMITED = -2000, 1000
UNSCALED, SCALES_FUSED, FIRST_FUSED, SECOND_FUSED, SCALES_ADDED = range(5)
"""How a segment's sum s meets the running sum t: s + t; (x*y)*s + t, (s*x)*y + t, (s*y)*x + t, each with a fused last step; (x*y)*s, then + t."""

UNCOMPENSATED, KAHAN, NEUMAIER, TWO_TERM = range(4)
"""What becomes of the error of an addition: nothing; added to the next product; summed apart, added in the end; a second term of the sum."""

ADDEND, ERRORS, MEMORY, CUT, LEAST, GREATEST, SUMS = range(7)
"""Numbers of an output on its way: c, what compensation keeps, what was stored last, 1 where a block lost bits, extremes; from SUMS on are sums."""
OUTPUT, ROW, COLUMN, ROW_OF_A, CODE, RAISED, FLAGS, TOP, PRODUCT_CODE, OVERFLOWED, INEXACT, SWAMPED, ROUNDINGS = range(
    13
)
"""Words of it: its number among all outputs; where it lies, and where its factors do; code and flags of what was rounded last; all flags; the
highest sum on the stack, -1 of none; the code of a rounded product that is NaN; counts. From ROUNDINGS on are how many each stage has done."""
DEEPEST = 64  # levels of a tree over all that memory holds


class Call(NamedTuple):
    """What holds for all outputs of a call, where the parts of its loop are, and one output on its way.

    Operands lie as the sum goes: a row of k for each row of outputs, or for each column.
    """

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
    numbers: np.ndarray  # of an output, with what follows; and as many more
    running: np.ndarray  # a sum for each chain
    totals: np.ndarray  # and for each level
    stack: np.ndarray
    parts: np.ndarray  # whose sum is to be rounded: two, or all bins
    words: np.ndarray  # of an output, and as many more
    payloads: np.ndarray  # codes of NaNs: of the running sum, then of the sums of each level


ON_THE_WAY = Call._fields[Call._fields.index("numbers") :]


@kernel
def on_the_way(how, bins, sites):
    """The last fields of a Call, which each thread has to itself."""
    running = SUMS
    totals = running + how.chains
    stack = totals + how.levels
    parts = stack + (DEEPEST if how.tree else 1)
    size, payloads = parts + max(2, bins), ROUNDINGS + sites
    count = payloads + how.levels + 1
    numbers, words = np.zeros(2 * size), np.zeros(2 * count, np.int64)
    return (
        numbers, numbers[running:totals], numbers[totals:stack], numbers[stack:parts], numbers[parts:size], words, words[payloads:count],
    )  # fmt: skip


NUMBERS, MATRIX = types.float64[::1], types.float64[:, ::1]
INTEGERS, INTEGER_MATRIX, CODES = types.int64[::1], types.int64[:, ::1], types.uint32[:, ::1]
_CALL = {
    "how": types.NamedUniTuple(types.int64, CHOICES, Choices),
    **dict.fromkeys(("entry", "ints"), INTEGER_MATRIX),
    **dict.fromkeys(("codes_a", "codes_b", "codes_out"), CODES),
    "flags_out": types.uint8[:, ::1],
    "counts_out": types.int64[:, :, ::1],
    "extremes_out": types.float64[:, :, ::1],
    **dict.fromkeys(("stores", "closes", "draws", "begun", "words", "payloads"), INTEGERS),
    "stored": types.uint8[::1],
    **dict.fromkeys(("tiny", "magics", "numbers", "running", "totals", "stack", "parts"), NUMBERS),
    **dict.fromkeys(("key", "stream", "links"), types.uint64),
}
KINDS = {
    **dict.fromkeys(("site", "parts", "held", "n", "k", "first", "last", "place", "segment", "closed"), types.int64),
    **dict.fromkeys(("value", "total", "addend", "term", "z", "x", "y", "before", "after", "exact"), types.float64),
    **dict.fromkeys(("begins", "lost", "joins"), types.boolean),
    "call": Reference(types.NamedTuple([_CALL.get(field, MATRIX) for field in Call._fields], Call)),
}
"""Types of what the parts of the loop take, by name."""

call_at = referring(KINDS["call"])
part, quiet_part = (apart(KINDS, kind) for kind in (types.float64, types.none))
"""Decorators of parts of the loop: of those that give a number, and of those that give none."""
