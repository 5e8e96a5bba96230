"""The dot product of every kind: the steps of `accumulate`, in the order a program of blocks, stores and segments says.

One loop serves all accumulators, formats and roundings, some tens of outputs at a time. It is the plain way: whatever
is faster is held against it.
"""

from typing import NamedTuple

import numpy as np

from . import jit
from .accumulate import (
    LEVEL,
    PRODUCT,
    RESULT,
    RUNNING,
    STORE,
    TERMS,
    WIDTH,
    add_row,
    align_row,
    bin_row,
    carry_row,
    collect_row,
    converted_payload_row,
    count_row,
    cut_row,
    draw_row,
    fused_payload_row,
    fused_row,
    leading_row,
    multiply_row,
    paired_payload_row,
    round_drawn_projected_row,
    round_drawn_row,
    round_projected_row,
    round_row,
    watch_row,
)
from .carrier import source_of
from .jit import bits_float, fixed_tuple, float_bits, row, stand_alone
from .rounding import target_of

FUSED, ROUNDED, EXACT, ALIGNED = 0, 1, 2, 3
"""How products meet the running sum; the first two one at a time."""
LANES = 64
DEEPEST = 64  # levels of a tree over all that memory holds

A, B, TERM, RANDOM, CUT, SCALE, NUMBER, ERROR, BEFORE, BEFORE_ROUNDING, MEMORY, NOTHING, SPARE, OPERAND = range(14)
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


CHOICES = len(Choices._fields)


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


@row
def stage(site, values, parts, state, call):
    """One rounding of a row, with its flags. The exact values are the sums of so many parts; 0: `values` are exact."""
    stand_alone()
    steps, width = state.steps[site], call.draws[site]
    integers, floats = call.ints[site], call.floats[site]
    if width:
        random = state.work[RANDOM]
        draw_row(random, state.start, state.stride, site, steps, call.key, call.stream, width)
        last, work, codes = PARTS + parts, state.work, state.codes
        if target_of(integers, floats).projected:
            round_drawn_projected_row(values, work, PARTS, last, random, codes, state.raised, integers, floats)
        else:
            round_drawn_row(values, work, PARTS, last, random, codes, state.raised, integers, floats)
    elif target_of(integers, floats).projected:
        round_projected_row(values, state.codes, state.raised, integers, floats)
    else:
        round_row(values, state.codes, state.raised, integers, floats)
    state.steps[site] += 1
    flags, raised = state.flags, state.raised
    for j in range(values.size):
        flags[j] |= raised[j]


@row
def convert(site, values, state, call):
    """One conversion of a row: a rounding that also takes note of NaN operands."""
    stand_alone()
    signals = target_of(call.ints[site], call.floats[site]).any_nan_signals
    flags = state.flags
    for j in range(values.size):
        flags[j] |= signals if values[j] != values[j] else 0
    stage(site, values, 0, state, call)


@row
def moved(site, values, payload, held, state, call):
    """A conversion of a row that the stage `held` rounded; the codes of its NaNs go with it."""
    stand_alone()
    before = state.work[OPERAND]
    before[:] = values
    convert(site, values, state, call)
    if call.how.payloads:
        converted_payload_row(payload, values, before, source_at(held, call), target_at(site, call))
        put_payloads(payload, values, state.codes)


@row
def added(site, total, addend, state, call):
    """One addition of a row: rounded, and counted if wanted."""
    stand_alone()
    work = state.work
    if call.how.counting:
        work[BEFORE, :] = total
    if call.draws[site]:
        for j in range(total.size):
            work[PARTS, j] = total[j]
            work[PARTS + 1, j] = addend[j]
    add_row(total, addend, state.flags, call.ints[site], call.floats[site])
    if call.how.counting:
        work[BEFORE_ROUNDING, :] = total
    stage(site, total, 2, state, call)
    if call.how.counting:
        count_row(state.counts, state.extremes, work[BEFORE], work[BEFORE_ROUNDING], total, state.raised, work[NOTHING])


@row
def source_at(site, call):
    """What a stage's codes mean."""
    return source_of(call.ints[site], call.floats[site])


@row
def target_at(site, call):
    """What a stage rounds to."""
    return target_of(call.ints[site], call.floats[site])


@row
def load_codes(target, source, i, k, start, paired):
    """As `load_row`, for codes."""
    for j in range(target.size):
        target[j] = source[k, start + j] if paired else source[i, k]


@row
def put_payloads(payload, values, codes):
    """What was rounded last gets the codes of its NaNs."""
    for j in range(values.size):
        codes[j] = payload[j] if values[j] != values[j] else codes[j]


@row
def load_row(target, source, i, k, start, paired):
    """Operands of a product: one for all outputs of a row, or one each."""
    if paired:
        for j in range(target.size):
            target[j] = source[k, start + j]
    else:
        x = source[i, k]
        for j in range(target.size):
            target[j] = x


@row
def load_factors(a, b, i, k, start, state, call):
    """The factors of a product; of a rounded one they are in place: itself and 1."""
    if not call.how.products_rounded:
        load_row(state.work[A], a, i, k, start, call.how.paired)
        load_row(state.work[B], b, i, k, start, True)


@row
def exact_block(z, a, b, i, start, first, last, bins, state, call):
    """Products first ... last - 1 and the running sum, exactly."""
    stand_alone()
    work, magics, product_invalid = state.work, call.magics, target_at(RUNNING, call).product_invalid
    work[NUMBER, :] = 1.0
    watch_row(work[NUMBER], z, z, state.flags, 0)
    bins[:, :] = 0.0
    bin_row(bins, z, magics)
    for k in range(first, last):
        load_row(work[A], a, i, k, start, call.how.paired)
        load_row(work[B], b, i, k, start, True)
        watch_row(work[NUMBER], work[A], work[B], state.flags, product_invalid)
        for j in range(z.size):
            work[TERM, j] = work[A, j] * work[B, j]
        bin_row(bins, work[TERM], magics)
        if (k - first) % TERMS == TERMS - 1:
            carry_row(bins, magics)
    carry_row(bins, magics)
    collect_row(z, bins, work[ERROR], work[NUMBER], state.flags, call.ints[RUNNING], call.floats[RUNNING])


@row
def aligned_block(z, a, b, i, start, first, last, state, call):
    """Products first ... last - 1 and the running sum, cut to the grid that the largest exponent sets."""
    stand_alone()
    work, tiny, fraction_bits = state.work, call.tiny, call.how.fraction_bits
    product_invalid = target_at(RUNNING, call).product_invalid
    work[NUMBER, :] = 1.0
    work[SCALE, :] = 0.0
    work[CUT, :] = 0.0
    work[ERROR, :] = 0.0
    work[SPARE, :] = 1.0
    watch_row(work[NUMBER], z, z, state.flags, 0)
    leading_row(work[SCALE], z, work[SPARE], tiny[2], 1.0)
    for k in range(first, last):
        load_factors(a, b, i, k, start, state, call)
        watch_row(work[NUMBER], work[A], work[B], state.flags, product_invalid)
        leading_row(work[SCALE], work[A], work[B], tiny[0], tiny[1])
    total = work[ERROR]
    cut_row(total, work[CUT], z, work[SCALE], fraction_bits)
    for k in range(first, last):
        load_factors(a, b, i, k, start, state, call)
        for j in range(z.size):
            work[TERM, j] = work[A, j] * work[B, j]
        cut_row(total, work[CUT], work[TERM], work[SCALE], fraction_bits)
    align_row(
        z, work[TERM], last - first == 1, total, work[CUT], work[SCALE], work[NUMBER], state.flags, fraction_bits,
        call.ints[RUNNING], call.floats[RUNNING],
    )  # fmt: skip


@row
def finish(top, running, stack, addend, held, state, call):
    """What is left to do after the last product: join subtrees or chains, add c, store, convert.

    `top` is -1 if there was no product; `held` is the stage that rounded last.
    """
    stand_alone()
    z = running[0]
    joins = call.how.tree or call.how.chains > 1
    if joins and top < 0:
        z[:] = addend
        joins = False
    if call.how.tree:
        for level in range(top, 0, -1):
            added(RUNNING, stack[level - 1], stack[level], state, call)
        if top >= 0:
            z[:] = stack[0]
        if call.how.lone_converted and held == PRODUCT and not call.how.has_addend:
            stage(RUNNING, z, 0, state, call)
    for chain in range(1, call.how.chains if joins else 1):
        added(RUNNING, z, running[chain], state, call)
    if joins and call.how.has_addend:
        added(RUNNING, z, addend, state, call)
    levels = call.how.levels
    if levels and top >= 0 and call.stored[levels - 1]:
        site = LEVEL + 2 * levels - 1
        moved(site, z, state.payloads[levels], held, state, call)
        held = site
    if call.how.has_result:
        moved(RESULT, z, state.payloads[levels], held, state, call)


@row
def close(count, running, totals, held, state, call):
    """The end of a segment: its sum goes up `count` levels. `held` is the stage that rounded it last."""
    stand_alone()
    for level in range(count):
        addend = running[0] if level == 0 else totals[level - 1]
        site = LEVEL + 2 * level
        if level > 0:
            held = site - 2
        if level > 0 and call.stored[level - 1]:
            moved(site - 1, addend, state.payloads[level], held, state, call)
            held = site - 1
        state.work[OPERAND, :] = totals[level]
        added(site, totals[level], addend, state, call)
        if call.how.payloads:
            above, below = state.payloads[level + 1], state.payloads[level]
            paired_payload_row(
                above, totals[level], state.work[OPERAND], addend, above, below,
                source_at(site, call), source_at(held, call), target_at(site, call),
            )  # fmt: skip
            put_payloads(above, totals[level], state.codes)
        addend[:] = 0.0


@jit.once
def result_bits():
    """loop(first, last, bits, index, row_stride, column_stride, width, key, stream): random bits for the conversion to the output's format.

    Of rows first to last of a grid of outputs: those that `contraction` draws.
    """

    def result_bits_loop(first, last, bits, index, row_stride, column_stride, width, key, stream):
        random = np.empty(bits.shape[1])
        scale = np.float64(np.int64(1) << width)
        for i in range(first, last):
            draw_row(random, index + i * row_stride, column_stride, RESULT, 0, key, stream, width)
            for j in range(random.size):
                bits[i, j] = np.uint64(random[j] * scale)

    return jit.compiled(result_bits_loop)


@jit.once
def contraction():
    """loop(first, last, a, b, c, entry, codes_a, codes_b, codes, flags, counts, extremes,
    stores, closes, stored, choices, draws, begun, ints, floats, tiny, magics, key, stream).

    Outputs are a grid of rows and columns; unit u is LANES columns of a row. a holds rows of k (`how.paired`: like b, k by
    columns), b is k by columns, both padded to whole blocks and in the order of the sum; c holds values, `entry`
    their codes. After block n the running sum is stored if stores[n], and closes[n] levels of the reduction end.
    Each stage has done so many roundings before, begun: its random numbers go on from there.
    `how.payloads` asks for the codes of propagated NaNs: codes_a and codes_b then hold the operands' codes. The last two
    rows of numbers are those of a and b.
    Flags come with those of signalling operands. Codes go to uint32; `how.cumulative` gives codes and flags a row for each k,
    and flags come with those of signalling operands up to it.
    """

    def contraction_loop(
        first_unit, last_unit, a, b, c, entry, codes_a, codes_b, codes_out, flags_out, counts_out, extremes_out,
        stores, closes, stored, choices, draws, begun, ints, floats, tiny, magics, key, stream,
    ):  # fmt: skip
        how = Choices(*fixed_tuple(choices, CHOICES))
        call = Call(how, draws, ints, floats, stored, tiny, magics, key, stream)
        columns = b.shape[1]
        per_row = (columns + LANES - 1) // LANES
        block, chains, levels, kind = how.block, how.chains, how.levels, how.kind
        stride = how.column_stride
        for unit in range(first_unit, last_unit):
            i = unit // per_row
            start = (unit % per_row) * LANES
            width = min(LANES, columns - start)
            index = how.first + i * how.row_stride + start * stride
            state = State(
                np.zeros((PARTS + max(2, magics.size), width)),
                np.zeros(width, np.int64),
                np.zeros(width, np.int64),
                np.zeros(width, np.int64),
                np.zeros((3, width), np.int64),
                np.empty((2, width)),
                begun.copy(),
                np.zeros((levels + 1, width), np.int64),
                index,
                stride,
            )
            work = state.work
            running = np.zeros((chains, width))
            totals = np.zeros((max(levels, 1), width))
            stack = np.zeros((DEEPEST if how.tree else 1, width))
            bins = work[PARTS : PARTS + magics.size]
            state.extremes[0, :] = np.inf
            state.extremes[1, :] = -np.inf
            addend = np.zeros(width)
            for j in range(width):
                state.flags[j] = flags_out[0 if how.cumulative else i, start + j]
                if how.has_addend:
                    addend[j] = c[i, start + j]
                    state.codes[j] = entry[i, start + j]
                    state.payloads[levels, j] = entry[i, start + j]
            if how.has_addend and not how.tree and chains == 1:
                if levels:
                    totals[levels - 1, :] = addend
                else:
                    running[0, :] = addend
                    work[MEMORY, :] = addend
            operand_codes = np.zeros((3, width), np.int64)
            held = how.entered
            top = -1
            for n in range(stores.size):
                z = running[n % chains]
                top = top if how.tree else 0
                if how.payloads:
                    load_codes(operand_codes[0], codes_a, i, n, start, how.paired)
                    load_codes(operand_codes[1], codes_b, i, n, start, True)
                    work[OPERAND, :] = z
                if kind <= ROUNDED or how.products_rounded:
                    load_row(work[A], a, i, n, start, how.paired)
                    load_row(work[B], b, i, n, start, True)
                if how.products_rounded:
                    multiply_row(work[TERM], work[A], work[B], state.flags, ints[PRODUCT], floats[PRODUCT])
                    stage(PRODUCT, work[TERM], 0, state, call)
                    if how.payloads:
                        paired_payload_row(
                            operand_codes[2], work[TERM], work[A], work[B], operand_codes[0], operand_codes[1],
                            source_at(draws.size, call), source_at(draws.size + 1, call), target_at(PRODUCT, call),
                        )  # fmt: skip
                if how.tree:
                    held = RUNNING if n else PRODUCT
                    top += 1
                    stack[top, :] = work[TERM]
                    pairs = n
                    while pairs & 1:
                        added(RUNNING, stack[top - 1], stack[top], state, call)
                        top -= 1
                        pairs >>= 1
                elif kind == ROUNDED:
                    added(RUNNING, z, work[TERM], state, call)
                else:
                    if how.counting:
                        work[BEFORE, :] = z
                    parts = 0
                    if kind == FUSED:
                        if draws[RUNNING]:
                            parts = 2
                            for j in range(width):
                                work[PARTS, j] = work[A, j] * work[B, j]
                                work[PARTS + 1, j] = z[j]
                        fused_row(z, work[A], work[B], state.flags, ints[RUNNING], floats[RUNNING])
                    elif kind == EXACT:
                        exact_block(z, a, b, i, start, n * block, (n + 1) * block, bins, state, call)
                        parts = magics.size
                    else:
                        if how.products_rounded:
                            work[A, :] = work[TERM]
                            work[B, :] = 1.0
                        aligned_block(z, a, b, i, start, n * block, (n + 1) * block, state, call)
                    if how.counting:
                        work[BEFORE_ROUNDING, :] = z
                    stage(RUNNING, z, parts, state, call)
                    if how.counting:
                        cut = work[CUT] if kind == ALIGNED else work[NOTHING]
                        before, exact = work[BEFORE], work[BEFORE_ROUNDING]
                        count_row(state.counts, state.extremes, before, exact, z, state.raised, cut)
                if how.payloads:
                    payload, came, goes = state.payloads[0], source_at(held, call), target_at(RUNNING, call)
                    if kind == ROUNDED:
                        paired_payload_row(
                            payload, z, work[OPERAND], work[TERM], payload, operand_codes[2],
                            came, source_at(PRODUCT, call), goes,
                        )  # fmt: skip
                    else:
                        fused_payload_row(
                            payload, z, work[OPERAND], work[A], work[B], operand_codes[0], operand_codes[1],
                            source_at(draws.size, call), source_at(draws.size + 1, call), came, goes,
                        )  # fmt: skip
                    put_payloads(payload, z, state.codes)
                    held = RUNNING
                if stores[n]:
                    work[BEFORE_ROUNDING, :] = z
                    moved(STORE, z, state.payloads[0], RUNNING, state, call)
                    if how.counting:
                        before, exact = work[MEMORY], work[BEFORE_ROUNDING]
                        count_row(state.counts, state.extremes, before, exact, z, state.raised, work[NOTHING])
                        work[MEMORY, :] = z
                    held = STORE
                if closes[n]:
                    close(closes[n], running, totals, held, state, call)
                    work[MEMORY, :] = 0.0
                    held = RUNNING
                if how.cumulative:
                    so_far, branches, sums, shown = running.copy(), stack.copy(), totals.copy(), copied(state)
                    if levels and not closes[n]:
                        close(1, so_far, sums, held, shown, call)
                    if levels:
                        so_far[0, :] = sums[levels - 1]
                    finish(top, so_far, branches, addend, LEVEL if levels else held, shown, call)
                    for j in range(width):
                        codes_out[n, start + j] = shown.codes[j]
                        flags_out[n, start + j] |= shown.flags[j]
            if how.cumulative:
                continue
            if levels:
                running[0, :] = totals[levels - 1]
                held = LEVEL + 2 * (levels - 1) if stores.size else how.entered
            finish(top, running, stack, addend, held, state, call)
            for j in range(width):
                codes_out[i, start + j] = state.codes[j]
                flags_out[i, start + j] = state.flags[j]
                if how.counting:
                    for which in range(3):
                        counts_out[which, i, start + j] = state.counts[which, j]
                    for which in range(2):
                        extremes_out[which, i, start + j] = state.extremes[which, j]

    return jit.compiled(contraction_loop)


def grids(low, high):
    """Bins for multiples of 2^low whose sums stay below 2^high: what `bin_row` adds to cut a term, lowest first."""
    count = 1 + max(0, -(-(high - low - 51) // WIDTH))
    return np.array([1.5 * 2.0 ** (52 + low + WIDTH * number) for number in range(count)])


@jit.once
def extent():
    """loop(values) -> (least, greatest) magnitude of the finite values that are not zero, (inf, 0) if there are none; whether all are finite."""

    def extent_loop(values):
        infinite = np.int64(0x7FF0000000000000)
        least, greatest, top = infinite, np.int64(0), np.int64(0)
        for i in range(values.size):
            magnitude = float_bits(values[i]) & np.int64(0x7FFFFFFFFFFFFFFF)
            least = min(least, magnitude if magnitude > 0 else infinite)
            greatest = max(greatest, magnitude if magnitude < infinite else np.int64(0))
            top = max(top, magnitude)
        return bits_float(least, 1.0), bits_float(greatest, 1.0), top < infinite

    return jit.compiled(extent_loop)
