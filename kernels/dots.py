"""The dot product of every kind: the steps of `accumulate`, in the order a program of blocks, stores and segments says.

One loop serves all accumulators, formats and roundings, some tens of outputs at a time. It is the plain way: whatever
is faster is held against it.
"""

import numpy as np

from . import jit
from .accumulate import LEVEL, PRODUCT, RESULT, RUNNING, STORE, WIDTH, draw_row
from .dot_ends import close, finish, kept, leaf, noted, product_payloads, show, sum_payloads, tree_block
from .dot_state import (
    ADDEND,
    ALIGNED,
    ATS,
    ENDED,
    ERRORS,
    EXACT,
    FIXED,
    FUSED,
    KINDS,
    MEMORY,
    NO_EXPONENT,
    ROUNDED,
    TERM,
    TOP,
    Call,
    Choices,
    call_at,
    rows_of,
    state_of,
)
from .dot_steps import added, blocked, compensated, fixed_step, fused, looked, rounded_product, settled, summed
from .jit import bits_float, copy_row, fill_row, float_bits
from .parts import linked, links, reference, referred

__all__ = ["ALIGNED", "EXACT", "NO_EXPONENT", "RESULT", "Call", "Choices", "links"]
"""Names that callers find here beside those that are defined below."""

LANES = 64
LOOK = 32  # products between two looks whether more of them can change anything


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


def passed(call):
    """A call as `contraction` takes it."""
    return referred(call, KINDS["call"])


def rooms(how, bins, sites):
    """Where a thread that runs `contraction` keeps a row of outputs, and where one that is shown of it."""
    rows, integers = rows_of(how, bins)
    count = 2 if how.cumulative else 1
    return np.empty(count * rows * LANES), np.empty(count * (integers * LANES + sites + ATS), np.int64)


@jit.once
def contraction():
    """loop(first, last, call, room, words).

    Outputs are a grid of rows and columns; unit u is LANES columns of a row. a holds rows of k (`how.paired`: like b, k by
    columns), b is k by columns, both padded to whole blocks and in the order of the sum; c holds values, `entry`
    their codes. An aligned block's terms go by the powers of two in leads_a and leads_b, which lie as a and b do, or by
    those of products where these are rounded; `how.scaling` asks for scales_a and scales_b, which have segments for k.
    After block n the running sum is stored if stores[n], and closes[n] levels of the reduction end.
    Each stage has done so many roundings before, begun: its random numbers go on from there.
    `how.payloads` asks for the codes of propagated NaNs: codes_a and codes_b then hold the operands' codes. The last two
    rows of numbers are those of a and b.
    Flags come with those of signalling operands. Codes go to uint32; `how.cumulative` gives codes and flags a row for each k,
    and flags come with those of signalling operands up to it. `call` is what `referred` makes
    of a Call, `room` and `words` are what `rooms` makes.
    """

    def contraction_loop(first_unit, last_unit, known, room, words):
        call = call_at(known)
        how, begun, stores, closes = call.how, call.begun, call.stores, call.closes
        codes_out, flags_out = call.codes_out, call.flags_out
        columns = call.b.shape[1]
        per_row = (columns + LANES - 1) // LANES
        block, chains, levels, kind = how.block, how.chains, how.levels, how.kind
        whole_tree = how.tree and block == 1
        ends = how.compensation or how.fixed_bits
        may_end = kind == FUSED and not (
            how.payloads or how.counting or how.cumulative or levels or call.draws[RUNNING]
        )
        may_end = may_end and chains == 1
        for n in range(stores.size):
            may_end = may_end and not stores[n]
        for unit in range(first_unit, last_unit):
            i, start = unit // per_row, (unit % per_row) * LANES
            width = min(LANES, columns - start)
            fill_row(room, 0.0)
            fill_row(words, 0)
            state = reference(state_of(room, words, 0, i, start, width, call))
            work, running, at = state.work, state.running, state.at
            copy_row(state.steps, begun)
            fill_row(state.extremes[0], np.inf)
            fill_row(state.extremes[1], -np.inf)
            for j in range(width):
                state.flags[j] = flags_out[0 if how.cumulative else i, start + j]
            if how.has_addend:
                addend = state.ends[ADDEND]
                for j in range(width):
                    addend[j] = call.c[i, start + j]
                    state.codes[j] = state.payloads[levels, j] = call.entry[i, start + j]
                if levels:
                    copy_row(state.totals[levels - 1], addend)
                elif not whole_tree and chains == 1:
                    copy_row(running[0], addend)
                    copy_row(work[MEMORY], addend)
            held = how.entered
            at[TOP], place, segment = -1, 0, 0
            for n in range(stores.size):
                if may_end and n % LOOK == LOOK - 1:
                    looked(running[0], n, state, call)
                z = running[place % chains]
                first, last = n * block, (n + 1) * block
                if not whole_tree:
                    at[TOP] = 0
                if how.payloads:
                    noted(z, n, state, call)
                if how.products_rounded and block == 1:
                    rounded_product(n, state, call)
                    if how.payloads:
                        product_payloads(state, call)
                if whole_tree:
                    held = RUNNING if place else PRODUCT
                    leaf(place, state, call)
                elif how.tree:
                    tree_block(z, first, last, state, call)
                    at[TOP] = 0
                elif how.sums_blocks:
                    summed(z, first, last, state, call)
                elif kind == ROUNDED and how.compensation:
                    compensated(z, state.ends[ERRORS], state, call)
                elif kind == ROUNDED:
                    added(RUNNING, z, work[TERM], state, call)
                elif kind == FIXED:
                    fixed_step(z, place == 0, n, state, call)
                elif kind == FUSED:
                    fused(z, n, state, call)
                else:
                    blocked(z, first, last, state, call)
                if how.payloads:
                    sum_payloads(z, held, state, call)
                    held = RUNNING
                if stores[n]:
                    kept(z, state, call)
                    held = STORE
                place += 1
                if ends and (closes[n] or (n == stores.size - 1 and not how.cumulative)):
                    settled(z, state, call)
                if closes[n]:
                    close(closes[n], held, segment, state, call)
                    held, place = RUNNING, 0
                    segment += 1
                if at[ENDED]:
                    break
                if how.cumulative:
                    show(closes[n], held, segment, n, room, words, state, call)
            if how.cumulative:
                continue
            if levels:
                copy_row(running[0], state.totals[levels - 1])
                held = LEVEL + 2 * (levels - 1) if stores.size else how.entered
                at[TOP] = 0 if stores.size else -1
            finish(held, state, call)
            for j in range(width):
                codes_out[i, start + j] = state.codes[j]
                flags_out[i, start + j] = state.flags[j]
                if how.counting:
                    for which in range(3):
                        call.counts_out[which, i, start + j] = state.counts[which, j]
                    for which in range(2):
                        call.extremes_out[which, i, start + j] = state.extremes[which, j]

    return linked(jit.compiled(contraction_loop, _nrt=False))


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
