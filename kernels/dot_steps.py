"""The steps of a dot product that go over blocks, trees, chains and segments: many roundings of a row of outputs."""

import numpy as np
from numba import types
from numba.extending import overload

from .accumulate import (
    FLOOR,
    LEVEL,
    PRODUCT,
    RESULT,
    RUNNING,
    TERMS,
    add_row,
    align_row,
    bin_row,
    carry_row,
    collect_row,
    converted_payload_row,
    count_row,
    cut_row,
    draw_row,
    dropped_row,
    fused_row,
    higher_row,
    leading_row,
    led_row,
    multiply_row,
    paired_payload_row,
    parted_row,
    round_drawn_projected_row,
    round_drawn_row,
    round_projected_row,
    round_row,
    sign_row,
    watch_row,
    zero_row,
)
from .carrier import source_of
from .dot_state import (
    APART,
    BEFORE,
    BEFORE_ROUNDING,
    CUT,
    ERROR,
    FIRST_FUSED,
    KAHAN,
    LEAD,
    NEGATIVE,
    NEUMAIER,
    NO_EXPONENT,
    NOTHING,
    NUMBER,
    OPERAND,
    OVER,
    PARTS,
    POSITIVE,
    RANDOM,
    SCALE,
    SCALES_ADDED,
    SECOND_FUSED,
    SECOND_SCALE,
    SECOND_TOTAL,
    SPARE,
    SUMMED,
    TERM,
    TOTAL,
    A,
    B,
)
from .jit import bits_float, copy_row, fill_row, row, stand_alone
from .rounding import target_of


@row
def _draw(site, values, parts, state, call):
    stand_alone()
    integers, floats, random = call.ints[site], call.floats[site], state.work[RANDOM]
    draw_row(random, state.start, state.stride, site, state.steps[site], call.key, call.stream, call.draws[site])
    last, work, codes = PARTS + parts, state.work, state.codes
    if target_of(integers, floats).projected:
        round_drawn_projected_row(values, work, PARTS, last, random, codes, state.raised, integers, floats)
    else:
        round_drawn_row(values, work, PARTS, last, random, codes, state.raised, integers, floats)


def drawn(site, values, parts, state, call):
    """A rounding of a row by random numbers. Loops of calls that never draw have no code for it."""
    _draw(site, values, parts, state, call)


@overload(drawn)
def _drawn_where_asked(site, values, parts, state, call):
    if isinstance(call.types[call.fields.index("drawing")], types.NoneType):
        return lambda site, values, parts, state, call: None
    return lambda site, values, parts, state, call: _draw(site, values, parts, state, call)


@row
def stage(site, values, parts, state, call):
    """One rounding of a row, with its flags. The exact values are the sums of so many parts; 0: `values` are exact."""
    stand_alone()
    integers, floats = call.ints[site], call.floats[site]
    if call.draws[site]:
        drawn(site, values, parts, state, call)
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
    copy_row(before, values)
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
        copy_row(work[BEFORE], total)
    if call.draws[site]:
        for j in range(total.size):
            work[PARTS, j] = total[j]
            work[PARTS + 1, j] = addend[j]
    add_row(total, addend, state.flags, call.ints[site], call.floats[site])
    if call.how.counting:
        copy_row(work[BEFORE_ROUNDING], total)
    stage(site, total, 2, state, call)
    if call.how.counting:
        count_row(state.counts, state.extremes, work[BEFORE], work[BEFORE_ROUNDING], total, state.raised, work[NOTHING])


@row
def plus(site, total, addend, state, call):
    """As `added`, but a step of a compensated sum, which no count knows."""
    stand_alone()
    work = state.work
    if call.draws[site]:
        for j in range(total.size):
            work[PARTS, j] = total[j]
            work[PARTS + 1, j] = addend[j]
    add_row(total, addend, state.flags, call.ints[site], call.floats[site])
    stage(site, total, 2, state, call)


@row
def difference(site, total, x, y, state, call):
    """total: x - y, rounded."""
    stand_alone()
    minus = state.work[OPERAND]
    for j in range(total.size):
        minus[j] = -y[j]
    copy_row(total, x)
    plus(site, total, minus, state, call)


@row
def compensated(z, errors, state, call):
    """The rounded product and the running sum, whose errors so far are in `errors`: the operations that the method names, in its order."""
    stand_alone()
    work, how = state.work, call.how
    term, before, part, other, codes = work[TERM], work[LEAD], work[SPARE], work[APART], work[NEGATIVE]
    copy_row(before, z)
    if how.compensation == KAHAN:
        difference(RUNNING, part, term, errors, state, call)
        added(RUNNING, z, part, state, call)
        copy_row(codes, state.codes)
        difference(RUNNING, errors, z, before, state, call)
        copy_row(other, errors)
        difference(RUNNING, errors, other, part, state, call)
    elif how.compensation == NEUMAIER:
        added(RUNNING, z, term, state, call)
        for j in range(z.size):
            first = abs(before[j]) >= abs(term[j])
            part[j] = before[j] if first else term[j]
            other[j] = term[j] if first else before[j]
        copy_row(before, part)
        difference(RUNNING, part, before, z, state, call)
        plus(RUNNING, part, other, state, call)
        plus(RUNNING, errors, part, state, call)
    else:
        sums, rest = work[SUMMED], work[TOTAL]
        copy_row(sums, z)
        plus(RUNNING, sums, term, state, call)
        difference(RUNNING, part, sums, before, state, call)
        difference(RUNNING, other, sums, part, state, call)
        difference(RUNNING, rest, term, part, state, call)
        difference(RUNNING, part, before, other, state, call)
        plus(RUNNING, part, rest, state, call)
        plus(RUNNING, part, errors, state, call)
        copy_row(z, sums)
        added(RUNNING, z, part, state, call)
        copy_row(codes, state.codes)
        difference(RUNNING, other, z, sums, state, call)
        copy_row(errors, part)
        difference(RUNNING, errors, part, other, state, call)
    if how.compensation != NEUMAIER:  # whose last step, in the end, is the sum's own
        for j in range(z.size):
            state.codes[j] = np.int64(codes[j])


@row
def registered(z, terms, numbers, state, call):
    """Terms, cut to the grid of a fixed-point register and added to it; `numbers`: 0 where an operand was NaN."""
    stand_alone()
    how = call.how
    up, down = bits_float((1023 - how.fixed_last) << 52, 1.0), bits_float((1023 + how.fixed_last) << 52, 1.0)
    span = bits_float((1023 + how.fixed_bits) << 52, 1.0)
    half = span * 0.5
    inverse = 1.0 / span
    for j in range(z.size):
        y, before = terms[j] * up, z[j] * up
        n = np.floor(y) if how.direction == FLOOR else np.trunc(y)
        sound = abs(y) < np.inf
        lost = sound & (n != y)
        state.work[CUT, j] = 1.0 if lost else 0.0
        raised = 1 if lost else 0
        if sound & (before == before):
            total = before + n
            beyond = (total >= half) | (total < -half)
            raised |= 5 if beyond else 0
            if beyond & (how.fixed_saturates != 0):
                total = half - 1.0 if total > 0.0 else -half
            elif beyond:
                total = before + (n - span * np.floor(n * inverse))
                total -= span * np.floor((total + half) * inverse)
            z[j] = (total + 0.0) * down
        else:
            raised |= 16 if (numbers[j] != 0.0) & (not sound) else 0
            z[j] = np.nan
        state.raised[j] = raised
        state.flags[j] |= raised


@row
def fixed_step(z, first, a, b, i, k, start, state, call):
    """A product to the fixed-point register; the `first` one finds an addend in it that is cut before."""
    stand_alone()
    work = state.work
    numbers = work[NUMBER]
    if first:
        copy_row(work[TERM], z)
        for j in range(z.size):
            numbers[j] = 1.0 if z[j] == z[j] else 0.0
            z[j] = 0.0
        registered(z, work[TERM], numbers, state, call)
    load_row(work[A], a, i, k, start, call.how.paired)
    load_row(work[B], b, i, k, start, True)
    for j in range(z.size):
        x, y = work[A, j], work[B, j]
        numbers[j] = 1.0 if (x == x) & (y == y) else 0.0
        work[TERM, j] = x * y
    if call.how.counting:
        copy_row(work[BEFORE], z)
        for j in range(z.size):
            work[BEFORE_ROUNDING, j] = z[j] + work[TERM, j]
    registered(z, work[TERM], numbers, state, call)
    if call.how.counting:
        count_row(
            state.counts, state.extremes, work[BEFORE], work[BEFORE_ROUNDING], z, state.raised, work[CUT]
        )  # fmt: skip


@row
def settled(z, errors, state, call):
    """What a segment does with its sum in the end: errors summed apart are added, a register is rounded to the running sum's format."""
    stand_alone()
    if call.how.compensation == NEUMAIER:
        plus(RUNNING, z, errors, state, call)
    if call.how.fixed_bits:
        convert(RUNNING, z, state, call)


@row
def without_signs(z, codes):
    """Zeros are +0."""
    stand_alone()
    for j in range(z.size):
        codes[j] = 0 if z[j] == 0.0 else codes[j]
        z[j] = 0.0 if z[j] == 0.0 else z[j]


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
def is_settled(z, a, b, i, n, start, paired):
    """Whether running sums are infinite or NaN, and operands from product n on are finite: then further products change nothing."""
    stand_alone()
    finite = False
    for j in range(z.size):
        finite |= abs(z[j]) < np.inf
    if finite:
        return False
    special = False
    for k in range(n, b.shape[0]):
        for j in range(z.size):
            special |= not (abs(b[k, start + j]) < np.inf)
            special |= paired and not (abs(a[k, start + j]) < np.inf)
        special |= not (paired or abs(a[i, k]) < np.inf)
    return not special


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
    """Products first ... last - 1 and the running sum, exactly. A block summed on its own has zeros for it."""
    stand_alone()
    work, magics, product_invalid = state.work, call.magics, target_at(RUNNING, call).product_invalid
    site = PRODUCT if call.how.sums_blocks else RUNNING
    fill_row(work[NUMBER], 1.0)
    fill_row(work[NEGATIVE], 1.0)
    fill_row(work[POSITIVE], 1.0)
    if not call.how.sums_blocks:
        sign_row(work[NEGATIVE], work[POSITIVE], z)
    watch_row(work[NUMBER], z, z, state.flags, 0)
    for number in range(bins.shape[0]):
        fill_row(bins[number], 0.0)
    bin_row(bins, z, magics)
    for k in range(first, last):
        load_row(work[A], a, i, k, start, call.how.paired)
        load_row(work[B], b, i, k, start, True)
        watch_row(work[NUMBER], work[A], work[B], state.flags, product_invalid)
        for j in range(z.size):
            work[TERM, j] = work[A, j] * work[B, j]
        sign_row(work[NEGATIVE], work[POSITIVE], work[TERM])
        bin_row(bins, work[TERM], magics)
        if (k - first) % TERMS == TERMS - 1:
            carry_row(bins, magics)
    carry_row(bins, magics)
    collect_row(z, bins, work[ERROR], work[NUMBER], state.flags, call.ints[site], call.floats[site])
    if call.how.signed_zeros:
        zero_row(z, work[NEGATIVE], work[POSITIVE])


@row
def load_term(a, b, i, k, start, state, call):
    """The exact sum of the products of one term, and what NaN and invalid products are among them."""
    stand_alone()
    work, product_invalid = state.work, target_at(RUNNING, call).product_invalid
    for n in range(call.how.group):
        load_factors(a, b, i, k + n, start, state, call)
        watch_row(work[NUMBER], work[A], work[B], state.flags, product_invalid)
        for j in range(work.shape[1]):
            product = work[A, j] * work[B, j]
            work[SPARE, j] = product if n == 0 else work[SPARE, j] + product
    copy_row(work[TERM], work[SPARE])


@row
def lead_term(scales, a, b, leads_a, leads_b, i, k, start, state, call):
    """The exponent of one term among the largest."""
    work = state.work
    if call.how.products_rounded:
        leading_row(scales, work[A], work[B], call.tiny[0], call.tiny[1])
    else:
        load_row(work[LEAD], leads_a, i, k, start, call.how.paired)
        load_row(work[SPARE], leads_b, i, k, start, True)
        led_row(scales, work[LEAD], work[SPARE])


@row
def half_block(total, scales, a, b, leads_a, leads_b, i, start, first, last, step, state, call):
    """Every step-th product from `first` on, a term each or the first of one, cut to the grid that the largest exponent sets."""
    stand_alone()
    work, how = state.work, call.how
    fill_row(total, 0.0)
    for k in range(first, last, step):
        lead_term(scales, a, b, leads_a, leads_b, i, k, start, state, call)
    for k in range(first, last, step):
        load_term(a, b, i, k, start, state, call)
        parted_row(work[TERM], work[OVER], bits_float((1023 + how.limit) << 52, 1.0))
        cut_row(total, work[CUT], work[TERM], scales, how.fraction_bits, how.direction)


@row
def recut(total, scales, fraction_bits, state, call):
    """A sum, cut once more to a grid that these scales set."""
    stand_alone()
    copy_row(state.work[SPARE], total)
    fill_row(total, 0.0)
    cut_row(total, state.work[CUT], state.work[SPARE], scales, fraction_bits, call.how.sum_direction)


@row
def aligned_block(z, a, b, leads_a, leads_b, i, start, first, last, state, call):
    """Products first ... last - 1 and the running sum, cut to the grid that the largest exponent sets. A block summed on its own has zeros for it."""
    stand_alone()
    work, how = state.work, call.how
    site = PRODUCT if how.sums_blocks else RUNNING
    total, scales, lead, group = work[TOTAL], work[SCALE], work[APART], how.group
    fill_row(work[NUMBER], 1.0)
    fill_row(work[CUT], 0.0)
    fill_row(work[OVER], 0.0)
    watch_row(work[NUMBER], z, z, state.flags, 0)
    fill_row(lead, 0.0)
    if not how.sums_blocks:
        fill_row(work[SPARE], 1.0)
        leading_row(lead, z, work[SPARE], call.tiny[2], 1.0)
        if how.zero != NO_EXPONENT:
            for j in range(z.size):
                lead[j] = bits_float((1023 + how.zero) << 52, 1.0) if z[j] == 0.0 else lead[j]
    least = 0.0 if how.least == NO_EXPONENT else bits_float((1023 + how.least) << 52, 1.0)
    fill_row(scales, least)
    if how.addend_inside:
        higher_row(scales, lead)
    steps = 2 * group if how.halves else group
    half_block(total, scales, a, b, leads_a, leads_b, i, start, first, last, steps, state, call)
    if how.halves:
        second = work[SECOND_SCALE]
        fill_row(second, least)
        half_block(
            work[SECOND_TOTAL], second, a, b, leads_a, leads_b, i, start, first + group, last, steps, state, call
        )
        higher_row(scales, second)
        recut(total, scales, how.fraction_bits, state, call)
        recut(work[SECOND_TOTAL], scales, how.fraction_bits, state, call)
        for j in range(z.size):
            total[j] += work[SECOND_TOTAL, j]
    if how.addend_inside:
        cut_row(total, work[CUT], z, scales, how.fraction_bits, how.direction)
    elif not how.sums_blocks:
        higher_row(scales, lead)
        recut(total, scales, how.sum_bits, state, call)
        copy_row(work[SECOND_TOTAL], z)
        if how.drop >= 0:
            dropped_row(work[SECOND_TOTAL], work[CUT], lead, scales, how.drop)
        cut_row(total, work[CUT], work[SECOND_TOTAL], scales, how.addend_bits, how.sum_direction)
    align_row(
        z, work[TERM], last - first == 1, total, work[OVER], work[CUT], work[NUMBER], state.flags,
        call.ints[site], call.floats[site],
    )  # fmt: skip


@row
def rounded_product(a, b, i, k, start, state, call):
    """A product of its own, rounded, and its factors."""
    stand_alone()
    work = state.work
    load_row(work[A], a, i, k, start, call.how.paired)
    load_row(work[B], b, i, k, start, True)
    multiply_row(work[TERM], work[A], work[B], state.flags, call.ints[PRODUCT], call.floats[PRODUCT])
    if call.how.unsigned_products:
        for j in range(work.shape[1]):
            work[TERM, j] += 0.0
    stage(PRODUCT, work[TERM], 0, state, call)


@row
def grown(top, place, stack, state, call):
    """One more leaf of a tree, product number `place`: the highest sum on the stack."""
    stand_alone()
    top += 1
    copy_row(stack[top], state.work[TERM])
    while place & 1:
        added(RUNNING, stack[top - 1], stack[top], state, call)
        top -= 1
        place >>= 1
    return top


@row
def tree_block(z, stack, bins, a, b, i, start, first, last, state, call):
    """Leaves of products first ... last - 1, each rounded, added in pairs, and their sum to the running sum."""
    stand_alone()
    top, leaf = -1, call.how.leaf
    for k in range(first, last, leaf):
        if leaf == 1:
            rounded_product(a, b, i, k, start, state, call)
        else:
            sums = state.work[SUMMED]
            fill_row(sums, 0.0)
            exact_block(sums, a, b, i, start, k, k + leaf, bins, state, call)
            stage(PRODUCT, sums, call.magics.size, state, call)
            copy_row(state.work[TERM], sums)
        top = grown(top, (k - first) // leaf, stack, state, call)
    for level in range(top, 0, -1):
        added(RUNNING, stack[level - 1], stack[level], state, call)
    added(RUNNING, z, stack[0], state, call)


@row
def joined(top, running, stack, has_addend, held, state, call):
    """Subtrees or chains added up; the sum is the first chain's."""
    stand_alone()
    z = running[0]
    if call.how.tree and call.how.block == 1:
        for level in range(top, 0, -1):
            added(RUNNING, stack[level - 1], stack[level], state, call)
        copy_row(z, stack[0])
        if call.how.lone_converted and held == PRODUCT and not has_addend:
            stage(RUNNING, z, 0, state, call)
    for chain in range(1, call.how.chains):
        added(RUNNING, z, running[chain], state, call)


@row
def finish(top, running, stack, addend, held, state, call):
    """What is left to do after the last product: join subtrees or chains, add c, store, convert.

    `top` is -1 if there was no product; `held` is the stage that rounded last.
    """
    stand_alone()
    z = running[0]
    levels = call.how.levels
    if not levels and ((call.how.tree and call.how.block == 1) or call.how.chains > 1):
        if top < 0:
            copy_row(z, addend)
        else:
            joined(top, running, stack, call.how.has_addend, held, state, call)
            if call.how.has_addend:
                added(RUNNING, z, addend, state, call)
    if levels and top >= 0 and call.stored[levels - 1]:
        site = LEVEL + 2 * levels - 1
        moved(site, z, state.payloads[levels], held, state, call)
        held = site
    if call.how.has_result:
        moved(RESULT, z, state.payloads[levels], held, state, call)


@row
def scaled_addition(site, total, addend, x, y, state, call):
    """A segment's sum, times the scales of both operands, added to the total: in the order that `Choices.scaling` says."""
    stand_alone()
    work, scaling = state.work, call.how.scaling
    ints, floats = call.ints[site], call.floats[site]
    first, last = work[A], work[B]
    if scaling == FIRST_FUSED:
        multiply_row(first, addend, x, state.flags, ints, floats)
        copy_row(last, y)
    elif scaling == SECOND_FUSED:
        multiply_row(first, addend, y, state.flags, ints, floats)
        copy_row(last, x)
    else:
        multiply_row(first, x, y, state.flags, ints, floats)
        copy_row(last, addend)
    stage(site, first, 0, state, call)
    if scaling == SCALES_ADDED:
        multiply_row(work[TERM], first, last, state.flags, ints, floats)
        stage(site, work[TERM], 0, state, call)
        added(site, total, work[TERM], state, call)
        return
    if call.how.counting:
        copy_row(work[BEFORE], total)
    parts = 0
    if call.draws[site]:
        parts = 2
        for j in range(total.size):
            work[PARTS, j] = first[j] * last[j]
            work[PARTS + 1, j] = total[j]
    fused_row(total, first, last, state.flags, ints, floats)
    if call.how.counting:
        copy_row(work[BEFORE_ROUNDING], total)
    stage(site, total, parts, state, call)
    if call.how.counting:
        count_row(state.counts, state.extremes, work[BEFORE], work[BEFORE_ROUNDING], total, state.raised, work[NOTHING])


@row
def close(count, running, totals, held, scales_a, scales_b, i, segment, start, state, call):
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
        copy_row(state.work[OPERAND], totals[level])
        if level == 0 and call.how.scaling:
            load_row(state.work[LEAD], scales_a, i, segment, start, call.how.paired)
            load_row(state.work[APART], scales_b, i, segment, start, True)
            scaled_addition(site, totals[level], addend, state.work[LEAD], state.work[APART], state, call)
        else:
            added(site, totals[level], addend, state, call)
        if call.how.payloads:
            above, below = state.payloads[level + 1], state.payloads[level]
            paired_payload_row(
                above, totals[level], state.work[OPERAND], addend, above, below,
                source_at(site, call), source_at(held, call), target_at(site, call),
            )  # fmt: skip
            put_payloads(above, totals[level], state.codes)
        fill_row(addend, 0.0)
