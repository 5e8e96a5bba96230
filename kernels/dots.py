"""The dot product of every kind: the steps of `accumulate`, in the order a program of blocks, stores and segments says.

One loop serves all accumulators, formats and roundings, some tens of outputs at a time. It is the plain way: whatever
is faster is held against it.
"""

import numpy as np

from . import jit
from .accumulate import (
    LEVEL,
    PRODUCT,
    RESULT,
    RUNNING,
    STORE,
    WIDTH,
    count_row,
    draw_row,
    fused_payload_row,
    fused_row,
    paired_payload_row,
)
from .dot_state import (
    ALIGNED,
    BEFORE,
    BEFORE_ROUNDING,
    CHOICES,
    CUT,
    EXACT,
    FIXED,
    FUSED,
    MEMORY,
    NO_EXPONENT,
    NOTHING,
    OPERAND,
    PARTS,
    ROUNDED,
    SUMMED,
    TERM,
    A,
    B,
    Call,
    Choices,
    State,
    copied,
)
from .dot_steps import (
    added,
    aligned_block,
    close,
    compensated,
    exact_block,
    finish,
    fixed_step,
    grown,
    is_settled,
    joined,
    load_codes,
    load_row,
    moved,
    put_payloads,
    rounded_product,
    settled,
    source_at,
    stage,
    target_at,
    tree_block,
    without_signs,
)
from .jit import bits_float, copy_row, fill_row, fixed_tuple, float_bits

__all__ = [
    "ALIGNED",
    "EXACT",
    "FIXED",
    "FUSED",
    "LANES",
    "LEVEL",
    "NO_EXPONENT",
    "PRODUCT",
    "RESULT",
    "ROUNDED",
    "RUNNING",
    "STORE",
    "Choices",
    "contraction",
    "extent",
    "grids",
    "needed",
    "rounding_bits",
]

LANES = 64
LOOK = 32  # products between two looks whether more of them can change anything
DEEPEST = 64  # levels of a tree over all that memory holds


@jit.once
def rounding_bits():
    """loop(first, last, bits, index, row_stride, column_stride, site, steps, width, key, stream): random bits of one rounding of each output.

    Of rows first to last of a grid of outputs: those that `contraction` draws for rounding number steps[row] of a stage.
    """

    def rounding_bits_loop(first, last, bits, index, row_stride, column_stride, site, steps, width, key, stream):
        random = np.empty(bits.shape[1])
        scale = np.float64(np.int64(1) << width)
        for i in range(first, last):
            draw_row(random, index + i * row_stride, column_stride, site, steps[i], key, stream, width)
            for j in range(random.size):
                bits[i, j] = np.uint64(random[j] * scale)

    return jit.compiled(rounding_bits_loop)


def needed(how, draws):
    """(every, drawing): which of the loops of `contraction` serves these `Choices`, and takes least to compile."""
    apart = how.tree, how.levels, how.chains > 1, how.compensation, how.sums_blocks, how.positive_zeros
    in_order = how.kind in (FUSED, ROUNDED, EXACT) and not any((*apart, how.payloads, how.counting, how.cumulative))
    return (False, True if draws else None) if in_order else (True, True)


@jit.once
def contraction(every, drawing):
    """loop(first, last, a, b, c, entry, leads_a, leads_b, scales_a, scales_b, codes_a, codes_b, codes, flags, counts,
    extremes, stores, closes, stored, choices, draws, begun, ints, floats, tiny, magics, key, stream).

    Outputs are a grid of rows and columns; unit u is LANES columns of a row. a holds rows of k (`how.paired`: like b, k by
    columns), b is k by columns, both padded to whole blocks and in the order of the sum; c holds values, `entry`
    their codes. An aligned block's terms go by the powers of two in leads_a and leads_b, which lie as a and b do, or by
    those of products where these are rounded; `how.scaling` asks for scales_a and scales_b, which have segments for k.
    After block n the running sum is stored if stores[n], and closes[n] levels of the reduction end.
    Each stage has done so many roundings before, begun: its random numbers go on from there.
    `how.payloads` asks for the codes of propagated NaNs: codes_a and codes_b then hold the operands' codes. The last two
    rows of numbers are those of a and b.
    Flags come with those of signalling operands. Codes go to uint32; `how.cumulative` gives codes and flags a row for each k,
    and flags come with those of signalling operands up to it.

    What is not `every` one is the same loop without what only few accumulators ask for, which takes most of the time to compile: it
    serves running sums in order, of products, rounded ones, or blocks of exact ones. Where `drawing` is None, no stage draws.
    """

    def contraction_loop(
        first_unit, last_unit, a, b, c, entry, leads_a, leads_b, scales_a, scales_b, codes_a, codes_b,
        codes_out, flags_out, counts_out, extremes_out, stores, closes, stored, choices, draws, begun, ints, floats, tiny, magics, key, stream,
    ):  # fmt: skip
        how = Choices(*fixed_tuple(choices, CHOICES))
        call = Call(how, draws, ints, floats, stored, tiny, magics, key, stream, drawing)
        columns = b.shape[1]
        per_row = (columns + LANES - 1) // LANES
        block, chains, levels, kind = how.block, how.chains, how.levels, how.kind
        whole_tree = how.tree and block == 1
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
            errors = np.zeros(width)
            ends = how.compensation or how.fixed_bits
            totals = np.zeros((max(levels, 1), width))
            stack = np.zeros((DEEPEST if how.tree else 1, width))
            bins = work[PARTS : PARTS + magics.size]
            fill_row(state.extremes[0], np.inf)
            fill_row(state.extremes[1], -np.inf)
            addend = np.zeros(width)
            for j in range(width):
                state.flags[j] = flags_out[0 if how.cumulative else i, start + j]
                if how.has_addend:
                    addend[j] = c[i, start + j]
                    state.codes[j] = entry[i, start + j]
                    state.payloads[levels, j] = entry[i, start + j]
            if how.has_addend and levels:
                copy_row(totals[levels - 1], addend)
            elif how.has_addend and not whole_tree and chains == 1:
                copy_row(running[0], addend)
                copy_row(work[MEMORY], addend)
            operand_codes = np.zeros((3, width), np.int64)
            held = how.entered
            top, place, segment = -1, 0, 0
            may_end = kind == FUSED and not (how.payloads or how.counting or how.cumulative or levels or draws[RUNNING])
            may_end = may_end and chains == 1 and not stores.any()
            for n in range(stores.size):
                # a NaN raises what an operand does in the product after
                last = may_end and n % LOOK == LOOK - 1 and is_settled(running[0], a, b, i, n, start, how.paired)
                z = running[place % chains]
                top = top if whole_tree else 0
                if every and how.payloads:
                    load_codes(operand_codes[0], codes_a, i, n, start, how.paired)
                    load_codes(operand_codes[1], codes_b, i, n, start, True)
                    copy_row(work[OPERAND], z)
                if kind == FUSED:
                    load_row(work[A], a, i, n, start, how.paired)
                    load_row(work[B], b, i, n, start, True)
                if how.products_rounded and block == 1:
                    rounded_product(a, b, i, n, start, state, call)
                    if every and how.payloads:
                        paired_payload_row(
                            operand_codes[2], work[TERM], work[A], work[B], operand_codes[0], operand_codes[1],
                            source_at(draws.size, call), source_at(draws.size + 1, call), target_at(PRODUCT, call),
                        )  # fmt: skip
                if every and whole_tree:
                    held = RUNNING if place else PRODUCT
                    top = grown(top, place, stack, state, call)
                elif every and how.tree:
                    tree_block(z, stack, bins, a, b, i, start, n * block, (n + 1) * block, state, call)
                elif every and how.sums_blocks:
                    sums, parts = work[SUMMED], 0
                    fill_row(sums, 0.0)
                    if kind == EXACT:
                        exact_block(sums, a, b, i, start, n * block, (n + 1) * block, bins, state, call)
                        parts = magics.size
                    else:
                        aligned_block(sums, a, b, leads_a, leads_b, i, start, n * block, (n + 1) * block, state, call)
                    stage(PRODUCT, sums, parts, state, call)
                    added(RUNNING, z, sums, state, call)
                elif every and kind == ROUNDED and how.compensation:
                    compensated(z, errors, state, call)
                elif kind == ROUNDED:
                    added(RUNNING, z, work[TERM], state, call)
                elif every and kind == FIXED:
                    fixed_step(z, place == 0, a, b, i, n, start, state, call)
                else:
                    if every and how.counting:
                        copy_row(work[BEFORE], z)
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
                    elif every:
                        if how.products_rounded:
                            copy_row(work[A], work[TERM])
                            fill_row(work[B], 1.0)
                        aligned_block(z, a, b, leads_a, leads_b, i, start, n * block, (n + 1) * block, state, call)
                    if every and how.counting:
                        copy_row(work[BEFORE_ROUNDING], z)
                    stage(RUNNING, z, parts, state, call)
                    if every and how.positive_zeros:
                        without_signs(z, state.codes)
                    if every and how.counting:
                        cut = work[CUT] if kind == ALIGNED else work[NOTHING]
                        before, exact = work[BEFORE], work[BEFORE_ROUNDING]
                        count_row(state.counts, state.extremes, before, exact, z, state.raised, cut)
                if every and how.payloads:
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
                    copy_row(work[BEFORE_ROUNDING], z)
                    moved(STORE, z, state.payloads[0], RUNNING, state, call)
                    if every and how.counting:
                        before, exact = work[MEMORY], work[BEFORE_ROUNDING]
                        count_row(state.counts, state.extremes, before, exact, z, state.raised, work[NOTHING])
                        copy_row(work[MEMORY], z)
                    held = STORE
                place += 1
                if every and ends and (closes[n] or (n == stores.size - 1 and not how.cumulative)):
                    settled(z, errors, state, call)
                if every and closes[n]:
                    joined(top, running, stack, False, held, state, call)
                    close(closes[n], running, totals, held, scales_a, scales_b, i, segment, start, state, call)
                    for number in range(running.shape[0]):
                        fill_row(running[number], 0.0)
                    fill_row(errors, 0.0)
                    fill_row(work[MEMORY], 0.0)
                    held = RUNNING
                    top, place = -1, 0
                    segment += 1
                if last:
                    break
                if every and how.cumulative:
                    so_far, branches, sums_shown, shown = running.copy(), stack.copy(), totals.copy(), copied(state)
                    if ends and not closes[n]:
                        settled(so_far[0], errors, shown, call)
                    if levels and not closes[n]:
                        joined(top, so_far, branches, False, held, shown, call)
                        close(1, so_far, sums_shown, held, scales_a, scales_b, i, segment, start, shown, call)
                    if levels:
                        copy_row(so_far[0], sums_shown[levels - 1])
                    finish(0 if levels else top, so_far, branches, addend, LEVEL if levels else held, shown, call)
                    for j in range(width):
                        codes_out[n, start + j] = shown.codes[j]
                        flags_out[n, start + j] |= shown.flags[j]
            if how.cumulative:
                continue
            if every and levels:
                copy_row(running[0], totals[levels - 1])
                held = LEVEL + 2 * (levels - 1) if stores.size else how.entered
                top = 0 if stores.size else -1
            if every:
                finish(top, running, stack, addend, held, state, call)
            elif how.has_result:
                moved(RESULT, running[0], state.payloads[0], held, state, call)
            for j in range(width):
                codes_out[i, start + j] = state.codes[j]
                flags_out[i, start + j] = state.flags[j]
                if every and how.counting:
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
            magnitude = float_bits(np.float64(values[i])) & np.int64(0x7FFFFFFFFFFFFFFF)
            least = min(least, magnitude if magnitude > 0 else infinite)
            greatest = max(greatest, magnitude if magnitude < infinite else np.int64(0))
            top = max(top, magnitude)
        return bits_float(least, 1.0), bits_float(greatest, 1.0), top < infinite

    return jit.compiled(extent_loop)
