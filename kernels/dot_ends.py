"""What a dot product does above single products: trees, chains, levels of a reduction, stores, codes of NaNs."""

from . import accumulate, dot_steps
from .accumulate import LEVEL, PRODUCT, RESULT, RUNNING, STORE
from .dot_state import (
    ADDEND,
    APART,
    BEFORE_ROUNDING,
    ERRORS,
    FIRST_FUSED,
    LEAD,
    MEMORY,
    NOTHING,
    OPERAND,
    ROUNDED,
    SCALES_ADDED,
    SECOND_FUSED,
    SUMMED,
    TERM,
    TOP,
    A,
    B,
    part,
    rows_of,
    state_of,
)
from .dot_steps import source_at, target_at
from .jit import copy_row, fill_row, row, stand_alone
from .parts import reference


@row
def grown(place, state, call):
    """One more leaf of a tree, product number `place`: the highest sum on the stack."""
    stand_alone()
    stack, top = state.stack, state.at[TOP] + 1
    copy_row(stack[top], state.work[TERM])
    while place & 1:
        dot_steps.added(RUNNING, stack[top - 1], stack[top], state, call)
        top -= 1
        place >>= 1
    state.at[TOP] = top


@part
def leaf(place, state, call):
    """A product of a tree over all of them."""
    grown(place, state, call)


@part
def tree_block(z, first, last, state, call):
    """Leaves of products first ... last - 1, each rounded, dot_steps.added in pairs, and their sum to the running sum."""
    stack, size = state.stack, call.how.leaf
    state.at[TOP] = -1
    for k in range(first, last, size):
        if size == 1:
            dot_steps.rounded_product(k, state, call)
        else:
            sums = state.work[SUMMED]
            fill_row(sums, 0.0)
            dot_steps.exact_block(sums, k, k + size, state, call)
            dot_steps.stage(PRODUCT, sums, call.magics.size, state, call)
            copy_row(state.work[TERM], sums)
        grown((k - first) // size, state, call)
    for level in range(state.at[TOP], 0, -1):
        dot_steps.added(RUNNING, stack[level - 1], stack[level], state, call)
    dot_steps.added(RUNNING, z, stack[0], state, call)


@part
def joined(joins, held, state, call):
    """Subtrees or chains dot_steps.added up; the sum is the first chain's. `joins`: what comes next is dot_steps.added to it."""
    running, stack = state.running, state.stack
    z = running[0]
    if call.how.tree and call.how.block == 1:
        for level in range(state.at[TOP], 0, -1):
            dot_steps.added(RUNNING, stack[level - 1], stack[level], state, call)
        copy_row(z, stack[0])
        if call.how.lone_converted and held == PRODUCT and not joins:
            dot_steps.stage(RUNNING, z, 0, state, call)
    for chain in range(1, call.how.chains):
        dot_steps.added(RUNNING, z, running[chain], state, call)


@row
def finish(held, state, call):
    """What is left to do after the last product: join subtrees or chains, add c, store, convert.

    `state.at[TOP]` is -1 if there was no product; `held` is the dot_steps.stage that rounded last.
    """
    z = state.running[0]
    levels, top = call.how.levels, state.at[TOP]
    if not levels and ((call.how.tree and call.how.block == 1) or call.how.chains > 1):
        if top < 0:
            copy_row(z, state.ends[ADDEND])
        else:
            joined(call.how.has_addend, held, state, call)
            if call.how.has_addend:
                dot_steps.added(RUNNING, z, state.ends[ADDEND], state, call)
    if levels and top >= 0 and call.stored[levels - 1]:
        site = LEVEL + 2 * levels - 1
        dot_steps.moved(site, z, state.payloads[levels], held, state, call)
        held = site
    if call.how.has_result:
        dot_steps.moved(RESULT, z, state.payloads[levels], held, state, call)


@part
def scaled_addition(site, total, addend, x, y, state, call):
    """A segment's sum, times the scales of both operands, dot_steps.added to the total: in the order that `Choices.scaling` says."""
    work, scaling = state.work, call.how.scaling
    ints, floats = call.ints[site], call.floats[site]
    first, last = work[A], work[B]
    if scaling == FIRST_FUSED:
        accumulate.multiply_row(first, addend, x, state.flags, ints, floats)
        copy_row(last, y)
    elif scaling == SECOND_FUSED:
        accumulate.multiply_row(first, addend, y, state.flags, ints, floats)
        copy_row(last, x)
    else:
        accumulate.multiply_row(first, x, y, state.flags, ints, floats)
        copy_row(last, addend)
    dot_steps.stage(site, first, 0, state, call)
    if scaling == SCALES_ADDED:
        accumulate.multiply_row(work[TERM], first, last, state.flags, ints, floats)
        dot_steps.stage(site, work[TERM], 0, state, call)
        dot_steps.added(site, total, work[TERM], state, call)
        return
    dot_steps.fuse(site, total, first, last, state, call)


@part
def paid(z, held, site, place, addend, state, call):
    """The codes of NaNs of a level's sum."""
    above, below = state.payloads[place + 1], state.payloads[place]
    accumulate.paired_payload_row(
        above, z, state.work[OPERAND], addend, above, below, source_at(site, call), source_at(held, call), target_at(site, call),
    )  # fmt: skip
    dot_steps.put_payloads(above, z, state.codes)


@part
def close(count, held, segment, state, call):
    """The end of a segment: its sum goes up `count` levels. `held` is the dot_steps.stage that rounded it last."""
    totals = state.totals
    joined(False, held, state, call)
    for level in range(count):
        addend = state.running[0] if level == 0 else totals[level - 1]
        site = LEVEL + 2 * level
        if level > 0:
            held = site - 2
        if level > 0 and call.stored[level - 1]:
            dot_steps.moved(site - 1, addend, state.payloads[level], held, state, call)
            held = site - 1
        copy_row(state.work[OPERAND], totals[level])
        if level == 0 and call.how.scaling:
            dot_steps.load_row(state.work[LEAD], call.scales_a, state.i, segment, state.column, call.how.paired)
            dot_steps.load_row(state.work[APART], call.scales_b, state.i, segment, state.column, True)
            scaled_addition(site, totals[level], addend, state.work[LEAD], state.work[APART], state, call)
        else:
            dot_steps.added(site, totals[level], addend, state, call)
        if call.how.payloads:
            paid(totals[level], held, site, level, addend, state, call)
        fill_row(addend, 0.0)
    for chain in range(call.how.chains):
        fill_row(state.running[chain], 0.0)
    fill_row(state.ends[ERRORS], 0.0)
    fill_row(state.work[MEMORY], 0.0)
    state.at[TOP] = -1


@part
def show(closed, held, segment, k, room, words, state, call):
    """The results of the products so far, from a copy of their sums, which lie in `room` and `words`."""
    how, i, column, codes_out, flags_out = call.how, state.i, state.column, call.codes_out, call.flags_out
    width = state.codes.size
    rows, integers = rows_of(how, call.magics.size)
    copy_row(room[rows * width : 2 * rows * width], room)
    copy_row(words[integers * width : 2 * integers * width], words)
    shown = reference(state_of(room, words, 1, i, column, width, call))
    copy_row(shown.steps, state.steps)
    copy_row(shown.at, state.at)
    z, levels = shown.running[0], how.levels
    if (how.compensation or how.fixed_bits) and not closed:
        dot_steps.settled(z, shown, call)
    if levels:
        if not closed:
            close(1, held, segment, shown, call)
        copy_row(z, shown.totals[levels - 1])
        shown.at[TOP] = 0
    finish(LEVEL if levels else held, shown, call)
    for j in range(width):
        codes_out[k, column + j] = shown.codes[j]
        flags_out[k, column + j] |= shown.flags[j]


@part
def kept(z, state, call):
    """A store of the running sum."""
    work = state.work
    copy_row(work[BEFORE_ROUNDING], z)
    dot_steps.moved(STORE, z, state.payloads[0], RUNNING, state, call)
    if call.how.counting:
        dot_steps.counted(z, work[MEMORY], work[NOTHING], state, call)
        copy_row(work[MEMORY], z)


@part
def noted(z, k, state, call):
    """The codes of a product's factors, and the running sum, before it meets that."""
    codes = state.operand_codes
    dot_steps.load_codes(codes[0], call.codes_a, state.i, k, state.column, call.how.paired)
    dot_steps.load_codes(codes[1], call.codes_b, state.i, k, state.column, True)
    copy_row(state.work[OPERAND], z)


@part
def product_payloads(state, call):
    """The codes of NaNs of a rounded product."""
    work, codes, sites = state.work, state.operand_codes, call.draws.size
    accumulate.paired_payload_row(
        codes[2], work[TERM], work[A], work[B], codes[0], codes[1], source_at(sites, call), source_at(sites + 1, call),
        target_at(PRODUCT, call),
    )  # fmt: skip


@part
def sum_payloads(z, held, state, call):
    """The codes of NaNs of the running sum."""
    work, codes, sites, payload = state.work, state.operand_codes, call.draws.size, state.payloads[0]
    came, goes = source_at(held, call), target_at(RUNNING, call)
    if call.how.kind == ROUNDED:
        accumulate.paired_payload_row(
            payload, z, work[OPERAND], work[TERM], payload, codes[2], came, source_at(PRODUCT, call), goes,
        )  # fmt: skip
    else:
        accumulate.fused_payload_row(
            payload, z, work[OPERAND], work[A], work[B], codes[0], codes[1], source_at(sites, call), source_at(sites + 1, call), came,
            goes,
        )  # fmt: skip
    dot_steps.put_payloads(payload, z, state.codes)
