"""The steps of a dot product: a product or a block of them met by the running sum, rounded, and counted if wanted."""

import numpy as np

from . import accumulate
from .accumulate import FLOOR, PRODUCT, RUNNING, TERMS
from .carrier import source_of
from .dot_state import (
    ALIGNED,
    APART,
    BEFORE,
    BEFORE_ROUNDING,
    CUT,
    ENDED,
    ERROR,
    ERRORS,
    EXACT,
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
    SECOND_SCALE,
    SECOND_TOTAL,
    SPARE,
    SUMMED,
    TERM,
    TOTAL,
    A,
    B,
    part,
)
from .jit import bits_float, copy_row, fill_row, row, stand_alone
from .rounding import target_of


@part
def settled_anew(site, values, parts, state, call):
    """A rounding of a row by random numbers, of which a bit that is not there decides."""
    work, random, ints, floats = state.work, state.work[RANDOM], call.ints[site], call.floats[site]
    before, terms = work[PARTS - 1], work[PARTS : PARTS + parts]
    accumulate.settled_row(values, before, terms, random, state.codes, state.raised, ints, floats)


@part
def drawn(site, values, parts, state, call):
    """The rounding of a row by random numbers."""
    how, random, step, width = call.how, state.work[RANDOM], state.steps[site], call.draws[site]
    accumulate.draw_row(random, state.start, how.column_stride, site, step, call.key, call.stream, width)
    before, ints, floats = state.work[PARTS - 1], call.ints[site], call.floats[site]
    if accumulate.drawn_row(values, before, random, state.codes, state.raised, ints, floats) and parts:
        settled_anew(site, values, parts, state, call)


@part
def rounded(site, values, state, call):
    """The rounding of a row that draws nothing."""
    accumulate.round_row(values, state.codes, state.raised, call.ints[site], call.floats[site])


@part
def stage(site, values, parts, state, call):
    """One rounding of a row, with its flags. The exact values are the sums of so many parts; 0: `values` are exact."""
    if call.draws[site]:
        drawn(site, values, parts, state, call)
    else:
        rounded(site, values, state, call)
    state.steps[site] += 1
    flags, raised = state.flags, state.raised
    for j in range(values.size):
        flags[j] |= raised[j]


@part
def convert(site, values, state, call):
    """One conversion of a row: a rounding that also takes note of NaN operands."""
    signals = target_of(call.ints[site], call.floats[site]).any_nan_signals
    flags = state.flags
    for j in range(values.size):
        flags[j] |= signals if values[j] != values[j] else 0
    stage(site, values, 0, state, call)


@part
def carried(values, payload, held, site, state, call):
    """The codes of NaNs of a row that was converted."""
    accumulate.converted_payload_row(payload, values, state.work[OPERAND], source_at(held, call), target_at(site, call))
    put_payloads(payload, values, state.codes)


@row
def moved(site, values, payload, held, state, call):
    """A conversion of a row that the stage `held` rounded; the codes of its NaNs go with it."""
    stand_alone()
    copy_row(state.work[OPERAND], values)
    convert(site, values, state, call)
    if call.how.payloads:
        carried(values, payload, held, site, state, call)


@part
def counted(z, x, y, state, call):
    """One more addition to x, of which y says where bits were cut off."""
    accumulate.count_row(state.counts, state.extremes, x, state.work[BEFORE_ROUNDING], z, state.raised, y)


@row
def told(site, total, parts, state, call):
    """The rounding of a sum, counted if wanted; what it was before is in place."""
    stand_alone()
    work = state.work
    if call.how.counting:
        copy_row(work[BEFORE_ROUNDING], total)
    stage(site, total, parts, state, call)
    if call.how.counting:
        counted(total, work[BEFORE], work[NOTHING], state, call)


@part
def added(site, total, addend, state, call):
    """One addition of a row: rounded, and counted if wanted."""
    if call.how.counting:
        copy_row(state.work[BEFORE], total)
    parted(total, addend, site, state, call)
    accumulate.add_row(total, addend, state.flags, call.ints[site], call.floats[site])
    told(site, total, 2, state, call)


@row
def parted(x, y, site, state, call):
    """The parts of a sum that is rounded by random numbers."""
    if call.draws[site]:
        copy_row(state.work[PARTS], x)
        copy_row(state.work[PARTS + 1], y)


@row
def fuse(site, total, x, y, state, call):
    """One fused multiply-add of a row: rounded, and counted if wanted."""
    stand_alone()
    work, parts = state.work, 0
    if call.how.counting:
        copy_row(work[BEFORE], total)
    if call.draws[site]:
        parts = 2
        for j in range(total.size):
            work[PARTS, j] = x[j] * y[j]
            work[PARTS + 1, j] = total[j]
    accumulate.fused_row(total, x, y, state.flags, call.ints[site], call.floats[site])
    told(site, total, parts, state, call)


@part
def fused(z, k, state, call):
    """A product that is added with one rounding."""
    load_factors(k, state, call)
    fuse(RUNNING, z, state.work[A], state.work[B], state, call)


@part
def plus(site, total, addend, state, call):
    """As `added`, but a step of a compensated sum, which no count knows."""
    parted(total, addend, site, state, call)
    accumulate.add_row(total, addend, state.flags, call.ints[site], call.floats[site])
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


@part
def compensated(z, errors, state, call):
    """The rounded product and the running sum, whose errors so far are in `errors`: the operations that the method names, in its order."""
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


@part
def fixed_step(z, first, k, state, call):
    """A product to the fixed-point register; the `first` one finds an addend in it that is cut before."""
    work = state.work
    numbers = work[NUMBER]
    if first:
        copy_row(work[TERM], z)
        for j in range(z.size):
            numbers[j] = 1.0 if z[j] == z[j] else 0.0
            z[j] = 0.0
        registered(z, work[TERM], numbers, state, call)
    load_factors(k, state, call)
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
        counted(z, work[BEFORE], work[CUT], state, call)


@part
def settled(z, state, call):
    """What a segment does with its sum in the end: errors summed apart are added, a register is rounded to the running sum's format."""
    if call.how.compensation == NEUMAIER:
        plus(RUNNING, z, state.ends[ERRORS], state, call)
    if call.how.fixed_bits:
        convert(RUNNING, z, state, call)


@row
def without_signs(z, codes):
    """Zeros are +0."""
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


@part
def looked(z, first, state, call):
    """Whether running sums are infinite or NaN, and operands from product `first` on are finite: then further products change nothing."""
    finite = False
    for j in range(z.size):
        finite |= abs(z[j]) < np.inf
    if finite:
        return
    special, a, b, paired = False, call.a, call.b, call.how.paired
    for k in range(first, b.shape[0]):
        for j in range(state.column, state.column + z.size):
            special |= not (abs(b[k, j]) < np.inf)
            special |= (paired != 0) and not (abs(a[k, j]) < np.inf)
        special |= not ((paired != 0) or abs(a[state.i, k]) < np.inf)
    state.at[ENDED] = 0 if special else 1


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
def load_factors(k, state, call):
    """The factors of a product."""
    stand_alone()
    load_row(state.work[A], call.a, state.i, k, state.column, call.how.paired)
    load_row(state.work[B], call.b, state.i, k, state.column, True)


@part
def exact_block(z, first, last, state, call):
    """Products first ... last - 1 and the running sum, exactly. A block summed on its own has zeros for it."""
    bins = state.work[PARTS : PARTS + call.magics.size]
    work, magics, product_invalid = state.work, call.magics, target_at(RUNNING, call).product_invalid
    site = PRODUCT if call.how.sums_blocks else RUNNING
    fill_row(work[NUMBER], 1.0)
    fill_row(work[NEGATIVE], 1.0)
    fill_row(work[POSITIVE], 1.0)
    if not call.how.sums_blocks:
        accumulate.sign_row(work[NEGATIVE], work[POSITIVE], z)
    accumulate.watch_row(work[NUMBER], z, z, state.flags, 0)
    for number in range(bins.shape[0]):
        fill_row(bins[number], 0.0)
    accumulate.bin_row(bins, z, magics)
    for k in range(first, last):
        load_factors(k, state, call)
        accumulate.watch_row(work[NUMBER], work[A], work[B], state.flags, product_invalid)
        for j in range(z.size):
            work[TERM, j] = work[A, j] * work[B, j]
        accumulate.sign_row(work[NEGATIVE], work[POSITIVE], work[TERM])
        accumulate.bin_row(bins, work[TERM], magics)
        if (k - first) % TERMS == TERMS - 1:
            accumulate.carry_row(bins, magics)
    accumulate.carry_row(bins, magics)
    accumulate.collect_row(z, bins, work[ERROR], work[NUMBER], state.flags, call.ints[site], call.floats[site])
    if call.how.signed_zeros:
        accumulate.zero_row(z, work[NEGATIVE], work[POSITIVE])


@row
def load_term(k, state, call):
    """The exact sum of the products of one term, and what NaN and invalid products are among them."""
    stand_alone()
    work, product_invalid = state.work, target_at(RUNNING, call).product_invalid
    for n in range(call.how.group):
        if not call.how.products_rounded:  # of rounded ones they are in place: the product and 1
            load_factors(k + n, state, call)
        accumulate.watch_row(work[NUMBER], work[A], work[B], state.flags, product_invalid)
        for j in range(work.shape[1]):
            product = work[A, j] * work[B, j]
            work[SPARE, j] = product if n == 0 else work[SPARE, j] + product
    copy_row(work[TERM], work[SPARE])


@row
def lead_term(scales, k, state, call):
    """The exponent of one term among the largest."""
    work = state.work
    if call.how.products_rounded:
        accumulate.leading_row(scales, work[A], work[B], call.tiny[0], call.tiny[1])
    else:
        load_row(work[LEAD], call.leads_a, state.i, k, state.column, call.how.paired)
        load_row(work[SPARE], call.leads_b, state.i, k, state.column, True)
        accumulate.led_row(scales, work[LEAD], work[SPARE])


@row
def half_block(total, scales, first, last, step, state, call):
    """Every step-th product from `first` on, a term each or the first of one, cut to the grid that the largest exponent sets."""
    stand_alone()
    work, how = state.work, call.how
    fill_row(total, 0.0)
    for k in range(first, last, step):
        lead_term(scales, k, state, call)
    for k in range(first, last, step):
        load_term(k, state, call)
        accumulate.parted_row(work[TERM], work[OVER], bits_float((1023 + how.limit) << 52, 1.0))
        accumulate.cut_row(total, work[CUT], work[TERM], scales, how.fraction_bits, how.direction)


@row
def recut(total, scales, fraction_bits, state, call):
    """A sum, cut once more to a grid that these scales set."""
    stand_alone()
    copy_row(state.work[SPARE], total)
    fill_row(total, 0.0)
    accumulate.cut_row(total, state.work[CUT], state.work[SPARE], scales, fraction_bits, call.how.sum_direction)


@part
def aligned_block(z, first, last, state, call):
    """Products first ... last - 1 and the running sum, cut to the grid that the largest exponent sets. A block summed on its own has zeros for it."""
    work, how = state.work, call.how
    site = PRODUCT if how.sums_blocks else RUNNING
    total, scales, lead, group = work[TOTAL], work[SCALE], work[APART], how.group
    fill_row(work[NUMBER], 1.0)
    fill_row(work[CUT], 0.0)
    fill_row(work[OVER], 0.0)
    accumulate.watch_row(work[NUMBER], z, z, state.flags, 0)
    fill_row(lead, 0.0)
    if not how.sums_blocks:
        fill_row(work[SPARE], 1.0)
        accumulate.leading_row(lead, z, work[SPARE], call.tiny[2], 1.0)
        if how.zero != NO_EXPONENT:
            for j in range(z.size):
                lead[j] = bits_float((1023 + how.zero) << 52, 1.0) if z[j] == 0.0 else lead[j]
    least = 0.0 if how.least == NO_EXPONENT else bits_float((1023 + how.least) << 52, 1.0)
    fill_row(scales, least)
    if how.addend_inside:
        accumulate.higher_row(scales, lead)
    steps = 2 * group if how.halves else group
    half_block(total, scales, first, last, steps, state, call)
    if how.halves:
        second = work[SECOND_SCALE]
        fill_row(second, least)
        half_block(work[SECOND_TOTAL], second, first + group, last, steps, state, call)
        accumulate.higher_row(scales, second)
        recut(total, scales, how.fraction_bits, state, call)
        recut(work[SECOND_TOTAL], scales, how.fraction_bits, state, call)
        for j in range(z.size):
            total[j] += work[SECOND_TOTAL, j]
    if how.addend_inside:
        accumulate.cut_row(total, work[CUT], z, scales, how.fraction_bits, how.direction)
    elif not how.sums_blocks:
        accumulate.higher_row(scales, lead)
        recut(total, scales, how.sum_bits, state, call)
        copy_row(work[SECOND_TOTAL], z)
        if how.drop >= 0:
            accumulate.dropped_row(work[SECOND_TOTAL], work[CUT], lead, scales, how.drop)
        accumulate.cut_row(total, work[CUT], work[SECOND_TOTAL], scales, how.addend_bits, how.sum_direction)
    accumulate.align_row(
        z, work[TERM], last - first == 1, total, work[OVER], work[CUT], work[NUMBER], state.flags,
        call.ints[site], call.floats[site],
    )  # fmt: skip


@part
def blocked(z, first, last, state, call):
    """A block and the running sum, rounded, and counted if wanted."""
    work, how, parts = state.work, call.how, 0
    if how.counting:
        copy_row(work[BEFORE], z)
    if how.kind == EXACT:
        exact_block(z, first, last, state, call)
        parts = call.magics.size
    else:
        if how.products_rounded:
            copy_row(work[A], work[TERM])
            fill_row(work[B], 1.0)
        aligned_block(z, first, last, state, call)
    if how.counting:
        copy_row(work[BEFORE_ROUNDING], z)
    stage(RUNNING, z, parts, state, call)
    if how.positive_zeros:
        without_signs(z, state.codes)
    if how.counting:
        counted(z, work[BEFORE], work[CUT] if how.kind == ALIGNED else work[NOTHING], state, call)


@part
def summed(z, first, last, state, call):
    """A block summed on its own, rounded, and then added."""
    sums, parts = state.work[SUMMED], 0
    fill_row(sums, 0.0)
    if call.how.kind == EXACT:
        exact_block(sums, first, last, state, call)
        parts = call.magics.size
    else:
        aligned_block(sums, first, last, state, call)
    stage(PRODUCT, sums, parts, state, call)
    added(RUNNING, z, sums, state, call)


@part
def rounded_product(k, state, call):
    """A product of its own, rounded, and its factors."""
    work = state.work
    load_factors(k, state, call)
    accumulate.multiply_row(work[TERM], work[A], work[B], state.flags, call.ints[PRODUCT], call.floats[PRODUCT])
    if call.how.unsigned_products:
        for j in range(work.shape[1]):
            work[TERM, j] += 0.0
    stage(PRODUCT, work[TERM], 0, state, call)
