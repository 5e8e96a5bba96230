"""The steps of a dot product: a product or a block of them met by the running sum, rounded, and counted if wanted."""

import numpy as np

from .accumulate import (
    FLOOR,
    PRODUCT,
    RUNNING,
    TERMS,
    collected_sum,
    exact_zero,
    kept,
    leading,
    met,
    power_of,
    raised_by,
    random_of,
    shared,
)
from .arith import add, fma
from .carrier import decode, source_of
from .dot_state import (
    ALIGNED,
    CODE,
    COLUMN,
    CUT,
    ERRORS,
    EXACT,
    FLAGS,
    GREATEST,
    INEXACT,
    KAHAN,
    LEAST,
    NEUMAIER,
    NO_EXPONENT,
    OUTPUT,
    OVERFLOWED,
    RAISED,
    ROUNDINGS,
    ROW_OF_A,
    SWAMPED,
    part,
    quiet_part,
)
from .jit import float_bits, kernel, row, stand_alone
from .prng import dot_high
from .rounding import round_drawn_unusual, round_selected_unusual, target_of, undecided
from .sticky import settled_parts


@kernel
def source_at(site, call):
    """What a stage's codes mean."""
    return source_of(call.ints[site], call.floats[site])


@kernel
def target_at(site, call):
    """What a stage rounds to."""
    return target_of(call.ints[site], call.floats[site])


@kernel
def factors(k, call):
    """Those of a product."""
    return call.a[call.words[ROW_OF_A], k], call.b[call.words[COLUMN], k]


# -- roundings -------------------------------------------------------------------------------------------------------


@kernel
def kept_code(site, code, raised, call):
    """What a rounding gave: the value as the stage reads it."""
    words = call.words
    words[CODE], words[RAISED] = code, raised
    words[FLAGS] |= raised
    words[ROUNDINGS + site] += 1
    return decode(code, source_at(site, call))


@part
def rounded(site, value, call):
    """A rounding that draws nothing."""
    target = target_at(site, call)
    code, raised = round_selected_unusual(value, target.zero, target)
    return kept_code(site, code, raised, call)


@part
def settled_random(site, value, term, parts, call):
    """The random number `term` where it takes a value as it takes the sum of so many parts, which a sticky bit hides."""
    return settled_parts(call.parts[:parts], 0.0, 0.0, value, 0.0, term, target_at(site, call))


@part
def drawn(site, value, parts, call):
    """A rounding by a random number, of a value that stands for the sum of so many parts; 0: that is exact."""
    target, step, output = target_at(site, call), call.words[ROUNDINGS + site], np.uint64(call.words[OUTPUT])
    noise = dot_high(output, site, step, call.key, call.stream)
    random = random_of(noise, site, output, step, call.draws[site], call.key, call.stream)
    if parts and undecided(value, random, target):
        random = settled_random(site, value, random, parts, call)
    code, raised = round_drawn_unusual(value, random, target)
    return kept_code(site, code, raised, call)


@row
def stage(site, value, parts, call):
    """One rounding, with its flags."""
    return drawn(site, value, parts, call) if call.draws[site] else rounded(site, value, call)


@row
def convert(site, value, call):
    """A rounding that also takes note of a NaN operand."""
    if value != value:
        call.words[FLAGS] |= target_at(site, call).any_nan_signals
    return stage(site, value, 0, call)


@quiet_part
def counted(before, exact, after, lost, call):
    """One more addition: overflowed, inexact, swamped; least and greatest sum. `lost`: bits were cut off."""
    words, numbers, raised = call.words, call.numbers, call.words[RAISED]
    words[OVERFLOWED] += (raised >> 2) & 1
    words[INEXACT] += 1 if (raised & 1 != 0) | lost else 0
    words[SWAMPED] += 1 if ((exact != before) | lost) & (after == before) else 0
    numbers[LEAST] = after if after < numbers[LEAST] else numbers[LEAST]
    numbers[GREATEST] = after if after > numbers[GREATEST] else numbers[GREATEST]


# -- one product -----------------------------------------------------------------------------------------------------


@row
def told(site, before, exact, parts, call):
    """The rounding of a sum, counted if wanted."""
    after = stage(site, exact, parts, call)
    if call.how.counting:
        counted(before, exact, after, False, call)
    return after


@row
def parted(site, s, x, y, call):
    """x + y, which s stands for, is to be rounded: flags of the addition, and what decides if random numbers do not."""
    call.words[FLAGS] |= raised_by(s, (x == x) & (y == y), target_at(site, call))
    if call.draws[site]:
        call.parts[0], call.parts[1] = x, y


@row
def total_of(site, x, y, call):
    """x + y, to be rounded."""
    s, _ = add(x, y, y, target_at(site, call))
    parted(site, s, x, y, call)
    return s


@part
def added(site, total, addend, call):
    """One addition: rounded, and counted if wanted."""
    return told(site, total, total_of(site, total, addend, call), 2, call)


@part
def plus(site, x, y, call):
    """As `added`, but a step of a compensated sum, which no count knows."""
    return stage(site, total_of(site, x, y, call), 2, call)


@row
def multiplied(site, x, y, call):
    """x * y, exact."""
    product = x * y
    call.words[FLAGS] |= raised_by(product, (x == x) & (y == y), target_at(site, call))
    return product


@part
def fused(site, total, x, y, call):
    """A product that is added with one rounding: rounded, and counted if wanted."""
    target = target_at(site, call)
    s, raised = fma(x, y, total, target)
    number = (x == x) & (y == y) & (total == total)
    call.words[FLAGS] |= raised | raised_by(s, number, target)
    if call.draws[site]:
        call.parts[0], call.parts[1] = x * y, total
    return told(site, total, s, 2, call)


@part
def rounded_product(n, call):
    """A product of its own, rounded."""
    x, y = factors(n, call)
    product = multiplied(PRODUCT, x, y, call)
    return stage(PRODUCT, product + 0.0 if call.how.unsigned_products else product, 0, call)


@part
def compensated(z, term, call):
    """The rounded product and the running sum, whose errors so far are kept: the operations that the method names, in its order."""
    method, numbers, words = call.how.compensation, call.numbers, call.words
    errors = numbers[ERRORS]
    if method == NEUMAIER:
        s = added(RUNNING, z, term, call)
        first = abs(z) >= abs(term)
        larger, smaller = z if first else term, term if first else z
        lost = plus(RUNNING, plus(RUNNING, larger, -s, call), smaller, call)
        numbers[ERRORS] = plus(RUNNING, errors, lost, call)
        return s
    if method == KAHAN:
        first, part = z, plus(RUNNING, term, -errors, call)
    else:
        first = plus(RUNNING, z, term, call)
        part = plus(RUNNING, first, -z, call)
        other = plus(RUNNING, first, -part, call)
        rest = plus(RUNNING, term, -part, call)
        lost = plus(RUNNING, plus(RUNNING, z, -other, call), rest, call)
        part = plus(RUNNING, lost, errors, call)
    s = added(RUNNING, first, part, call)
    code = words[CODE]  # of the sum, which is there in the end
    change = plus(RUNNING, s, -first, call)
    numbers[ERRORS] = plus(RUNNING, change, -part, call) if method == KAHAN else plus(RUNNING, part, -change, call)
    words[CODE] = code
    return s


@row
def registered(z, term, number, call):
    """A term, cut to the grid of a fixed-point register and added to it; `number`: no operand was NaN."""
    how = call.how
    span = power_of(how.fixed_bits)
    half = span * 0.5
    y, before = term * power_of(-how.fixed_last), z * power_of(-how.fixed_last)
    n = np.floor(y) if how.direction == FLOOR else np.trunc(y)
    sound = abs(y) < np.inf
    lost = sound & (n != y)
    call.numbers[CUT] = 1.0 if lost else 0.0
    raised = 1 if lost else 0
    total = np.nan
    if sound & (before == before):
        total = before + n
        beyond = (total >= half) | (total < -half)
        raised |= 5 if beyond else 0
        if beyond & (how.fixed_saturates != 0):
            total = half - 1.0 if total > 0.0 else -half
        elif beyond:
            total = before + (n - span * np.floor(n / span))
            total -= span * np.floor((total + half) / span)
        total = (total + 0.0) * power_of(how.fixed_last)
    else:
        raised |= 16 if number & (not sound) else 0
    call.words[RAISED] = raised
    call.words[FLAGS] |= raised
    return total


@part
def fixed_step(z, begins, n, call):
    """A product to the fixed-point register; the one that `begins` finds an addend in it that is cut before."""
    if begins:
        z = registered(0.0, z, z == z, call)
    x, y = factors(n, call)
    after = registered(z, x * y, (x == x) & (y == y), call)
    if call.how.counting:
        counted(z, z + x * y, after, call.numbers[CUT] != 0.0, call)
    return after


@part
def settled(z, call):
    """What a segment does with its sum in the end: errors summed apart are added, a register is rounded to the running sum's format."""
    if call.how.compensation == NEUMAIER:
        z = plus(RUNNING, z, call.numbers[ERRORS], call)
    return convert(RUNNING, z, call) if call.how.fixed_bits else z


# -- exact blocks ----------------------------------------------------------------------------------------------------


@row
def binned(x, call):
    """A term added to the bins."""
    bins, magics = call.parts, call.magics
    for b in range(magics.size - 1, 0, -1):
        bins[b], x = shared(bins[b], x, magics[b])
    bins[0] += x


@row
def carry(call):
    """Bins brought below the grid of the next."""
    bins, magics = call.parts, call.magics
    for b in range(magics.size - 1):
        bins[b + 1], bins[b] = shared(bins[b + 1], bins[b], magics[b + 1])


@part
def exact_block(z, first, last, call):
    """Products first ... last - 1 and the running sum, exactly, to be rounded. A block summed on its own has zero for it."""
    alone, words, bins, top = call.how.sums_blocks != 0, call.words, call.parts, call.magics.size - 1
    target = target_at(PRODUCT if alone else RUNNING, call)
    product_invalid = target_at(RUNNING, call).product_invalid
    number = z == z
    every, some = (np.int64(-1), np.int64(0)) if alone else (float_bits(z), float_bits(z))
    for b in range(top + 1):
        bins[b] = 0.0
    binned(z, call)
    for k in range(first, last):
        x, y = factors(k, call)
        product, numbers = x * y, (x == x) & (y == y)
        if (product != product) & numbers:
            words[FLAGS] |= product_invalid
        number &= numbers
        every &= float_bits(product)
        some |= float_bits(product)
        binned(product, call)
        if (k - first) % TERMS == TERMS - 1:
            carry(call)
    carry(call)
    s, error = bins[top], 0.0
    for b in range(top - 1, -1, -1):
        s, error = met(s, error, bins[b])
    s = collected_sum(s, error, target)
    words[FLAGS] |= raised_by(s, number, target)
    if call.how.signed_zeros and s == 0.0 and (every < 0 or some >= 0):
        return -0.0 if every < 0 else 0.0
    return s


# -- aligned blocks --------------------------------------------------------------------------------------------------


@row
def recut(total, scale, fraction_bits, direction, call):
    """A number, cut to the grid that a scale sets, and whether bits were lost."""
    found = kept(total, scale, fraction_bits, direction)
    if found != total:
        call.numbers[CUT] = 1.0
    return found


@row
def half_block(term, scale, first, last, step, call):
    """(the sum of every step-th term of a block, cut to the grid that the largest exponent sets; `scale` or that, if it is larger; terms so large
    that they count as infinite; the last one of the others; whether no factor is NaN). A `term` that is a rounded product is the only one."""
    stand_alone()
    how, words, single = call.how, call.words, call.how.products_rounded != 0
    total, over, number, product_invalid = 0.0, 0.0, True, target_at(RUNNING, call).product_invalid
    limit = power_of(how.limit)
    for k in range(first, last, step):
        if single:
            lead = leading(term, call.tiny[0])
        else:
            lead = call.leads_a[words[ROW_OF_A], k] * call.leads_b[words[COLUMN], k]
        scale = max(scale, lead)
    for k in range(first, last, step):
        for n in range(k, k + how.group):
            x, y = (term, 1.0) if single else factors(n, call)
            product, numbers = x * y, (x == x) & (y == y)
            if (product != product) & numbers:
                words[FLAGS] |= product_invalid
            number &= numbers
            term = product if n == k else term + product
        if (abs(term) >= limit) & (abs(term) < np.inf):
            over += np.inf if term > 0.0 else -np.inf
            term = 0.0
        total += recut(term, scale, how.fraction_bits, how.direction, call)
    return total, scale, over, term, number


@part
def aligned_block(z, term, first, last, call):
    """Products first ... last - 1 and the running sum, cut to the grid that the largest exponent sets. A block summed on its own has zero for it."""
    how, words, numbers = call.how, call.words, call.numbers
    target = target_at(PRODUCT if how.sums_blocks else RUNNING, call)
    numbers[CUT], lead = 0.0, 0.0
    if not how.sums_blocks:
        lead = leading(z, call.tiny[2])
        lead = power_of(how.zero) if z == 0.0 and how.zero != NO_EXPONENT else lead
    least = 0.0 if how.least == NO_EXPONENT else power_of(how.least)
    scale = max(least, lead) if how.addend_inside else least
    step = 2 * how.group if how.halves else how.group
    total, scale, over, term, number = half_block(term, scale, first, last, step, call)
    if how.halves:
        other, second, more, term, others = half_block(term, least, first + how.group, last, step, call)
        scale, over, number = max(scale, second), over + more, number & others
        total = 0.0 + recut(total, scale, how.fraction_bits, how.sum_direction, call)
        total += 0.0 + recut(other, scale, how.fraction_bits, how.sum_direction, call)
    if how.addend_inside:
        total += recut(z, scale, how.fraction_bits, how.direction, call)
    elif not how.sums_blocks:
        scale, addend = max(scale, lead), z
        total = 0.0 + recut(total, scale, how.sum_bits, how.sum_direction, call)
        if how.drop >= 0 and lead * power_of(how.drop) < scale and abs(z) < np.inf:
            numbers[CUT] = 1.0 if z != 0.0 else numbers[CUT]
            addend = 0.0
        total += recut(addend, scale, how.addend_bits, how.sum_direction, call)
    if total == 0.0:  # one term and the running sum are operands of IEEE 754-2019 6.3
        keeps = (last - first == 1) & ((float_bits(z) ^ float_bits(term)) >= 0)
        total = z * target.zero if keeps else exact_zero(target)
    total = total + over if over != 0.0 and abs(total) < np.inf else total
    if not abs(total) < np.inf:
        numbers[CUT] = 0.0
    raised = target.inexact if numbers[CUT] != 0.0 else target.none
    words[FLAGS] |= raised | raised_by(total, number & (z == z), target)
    return total


# -- blocks ----------------------------------------------------------------------------------------------------------


@part
def blocked(z, term, first, last, call):
    """A block and the running sum, rounded, and counted if wanted."""
    how, words = call.how, call.words
    if how.kind == EXACT:
        exact = exact_block(z, first, last, call)
        after = stage(RUNNING, exact, call.magics.size, call)
    else:
        exact = aligned_block(z, term, first, last, call)
        after = stage(RUNNING, exact, 0, call)
    if how.positive_zeros and after == 0.0:
        words[CODE], after = 0, 0.0
    if how.counting:
        counted(z, exact, after, how.kind == ALIGNED and call.numbers[CUT] != 0.0, call)
    return after


@part
def summed(z, first, last, call):
    """A block summed on its own, rounded, and then added."""
    if call.how.kind == EXACT:
        s = stage(PRODUCT, exact_block(0.0, first, last, call), call.magics.size, call)
    else:
        s = stage(PRODUCT, aligned_block(0.0, 0.0, first, last, call), 0, call)
    return added(RUNNING, z, s, call)
