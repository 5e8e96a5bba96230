"""Steps of a dot product, a row of outputs at a time: products, sums, blocks, one rounding at every stage.

A row holds some tens of outputs that do the same at the same time. Everything a step works on is a row of carrier
values; the inner loops are plain enough to become vector instructions. What is fixed for a stage (its format, how it
rounds) are two arrays of numbers, a `Source` and after it a `Target`.

An exact sum of many terms goes to bins. Bin b holds a multiple of 2^q[b], q[b+1] = q[b] + WIDTH:

    term    sssssssssssssssssssssss              each bin takes the part of the term that is a multiple of its grid,
    bins   |  bin 2   |  bin 1   |  bin 0  |     by adding and subtracting 1.5 * 2^(52+q): exact, no branches

so that every addition to a bin is exact, and the bins together are the sum.
"""

import numpy as np

from .arith import add, fma, sum_and_error, to_odd
from .carrier import decode, is_signalling, quieted, source_of
from .jit import bits_float, float_bits, kernel, row, stand_alone
from .prng import dot_high, dot_low, unit_fraction
from .projected import round_drawn_projected, round_projected, undecided_by_method
from .rounding import target_of
from .spec import PROPAGATE_SIGNALLING_FIRST
from .sticky import settled_parts

WIDTH = 40
TERMS = 1 << 12  # a bin of 53 bits takes 2^(54-WIDTH) terms of WIDTH bits before carries must be settled
TRUNCATE, FLOOR, ODD = 0, 1, 2
"""Directions in which bits are cut off: toward zero, toward negative, to odd."""
PRODUCT, RUNNING, STORE, RESULT, LEVEL = 0, 1, 2, 3, 4
"""Numbers of the stages. Level l of a reduction adds at LEVEL + 2l and stores at LEVEL + 2l + 1."""


@row
def draw_row(random, index, stride, site, step, key, stream, width):
    """Random numbers of one rounding at outputs index, index + stride, ..."""
    stand_alone()
    scale, unit = bits_float(np.int64(1023 + width) << 52, 1.0), bits_float(np.int64(1023 - width) << 52, 1.0)
    for j in range(random.size):
        random[j] = unit_fraction(dot_high(np.uint64(index + j * stride), site, step, key, stream), 16)
    if width > 16:
        for j in range(random.size):
            random[j] += unit_fraction(dot_low(np.uint64(index + j * stride), site, step, key, stream), 52)
    for j in range(random.size):
        random[j] = np.floor(random[j] * scale) * unit


@row
def round_row(values, codes, raised, integers, floats):
    """values rounded in place by a deterministic mode, and read again as the stage reads; their codes; the flags of this rounding alone."""
    stand_alone()
    source, target = source_of(integers, floats), target_of(integers, floats)
    for j in range(values.size):
        code, flags = round_projected(values[j], target.zero, target)
        codes[j] = code
        raised[j] = flags
        values[j] = decode(code, source)


@row
def drawn_row(values, before, random, codes, raised, integers, floats):
    """`round_row`, stochastically; whether the result hangs on more than `values`, which `before` gets."""
    stand_alone()
    source, target = source_of(integers, floats), target_of(integers, floats)
    hangs = False
    for j in range(values.size):
        value = values[j]
        code, flags = round_drawn_projected(value, random[j], target)
        hangs |= undecided_by_method(value, random[j], target)
        before[j] = value
        codes[j] = code
        raised[j] = flags
        values[j] = decode(code, source)
    return hangs


@row
def settled_row(values, before, parts, random, codes, raised, integers, floats):
    """The same once more of exact values that are the sums of these parts."""
    stand_alone()
    source, target = source_of(integers, floats), target_of(integers, floats)
    for j in range(values.size):
        settled = settled_parts(parts[:, j], 0.0, 0.0, before[j], 0.0, random[j], target)
        code, flags = round_drawn_projected(before[j], settled, target)
        codes[j] = code
        raised[j] = flags
        values[j] = decode(code, source)


@row
def multiply_row(products, a, b, flags, integers, floats):
    """products = a * b, exact."""
    stand_alone()
    target = target_of(integers, floats)
    for j in range(products.size):
        x, y = a[j], b[j]
        product = x * y
        number = (x == x) & (y == y)
        flags[j] |= (target.invalid if (product != product) & number else target.none) | (
            target.none if number else target.any_nan_signals
        )
        products[j] = product


@row
def fused_row(running, a, b, flags, integers, floats):
    """running + a * b, to be rounded."""
    stand_alone()
    target = target_of(integers, floats)
    for j in range(running.size):
        x, y, z = a[j], b[j], running[j]
        s, raised = fma(x, y, z, target)
        number = (x == x) & (y == y) & (z == z)
        raised |= target.invalid if (s != s) & number else target.none
        flags[j] |= raised | (target.none if number else target.any_nan_signals)
        running[j] = s


@row
def add_row(total, addend, flags, integers, floats):
    """total + addend, to be rounded."""
    stand_alone()
    target = target_of(integers, floats)
    for j in range(total.size):
        x, y = total[j], addend[j]
        s, _ = add(x, y, y, target)
        number = (x == x) & (y == y)
        raised = target.invalid if (s != s) & number else target.none
        flags[j] |= raised | (target.none if number else target.any_nan_signals)
        total[j] = s


# -- blocks ----------------------------------------------------------------------------------------------------------


@row
def watch_row(numbers, a, b, flags, product_invalid):
    """numbers: 0 once an operand of the block was NaN. inf * 0 is invalid whatever else is in the block."""
    stand_alone()
    for j in range(numbers.size):
        number = (a[j] == a[j]) & (b[j] == b[j])
        product = a[j] * b[j]
        flags[j] |= product_invalid if (product != product) & number else 0
        numbers[j] = numbers[j] if number else 0.0


@row
def bin_row(bins, terms, magics):
    """Terms added to the bins; `terms` is used up. What is not finite stays in the highest bin."""
    stand_alone()
    top = magics.size - 1
    for b in range(top, 0, -1):
        magic = magics[b]
        level = bins[b]
        for j in range(terms.size):
            x = terms[j]
            part = (x + magic) - magic
            level[j] += part
            terms[j] = x - part if abs(part) < np.inf else 0.0
    lowest = bins[0]
    for j in range(terms.size):
        lowest[j] += terms[j]


@row
def carry_row(bins, magics):
    """Bins brought below the grid of the next."""
    stand_alone()
    for b in range(magics.size - 1):
        magic = magics[b + 1]
        low, high = bins[b], bins[b + 1]
        for j in range(low.size):
            part = (low[j] + magic) - magic
            low[j] -= part
            high[j] += part


@row
def collect_row(running, bins, errors, numbers, flags, integers, floats):
    """The sum of the bins, to be rounded: its error is the first one met from the top, and later bins cannot outweigh it."""
    stand_alone()
    target = target_of(integers, floats)
    top = bins.shape[0] - 1
    for j in range(running.size):
        running[j] = bins[top, j]
        errors[j] = 0.0
    for b in range(top - 1, -1, -1):
        level = bins[b]
        for j in range(running.size):
            x, y = running[j], level[j]
            s, error = sum_and_error(x, y)
            settled = errors[j] != 0.0
            running[j] = x if settled else s
            errors[j] = errors[j] if settled else error
    for j in range(running.size):
        s = to_odd(running[j], errors[j], target)
        s = (-target.zero if target.downward != target.none else target.zero) if s == target.zero else s
        number = numbers[j] != 0.0
        raised = target.invalid if (s != s) & number else target.none
        flags[j] |= raised | (target.none if number else target.any_nan_signals)
        running[j] = s


@row
def leading_row(scales, a, b, tiny_a, tiny_b):
    """scales: at least the power of two of each product, that is of its factors. A subnormal counts with its format's least exponent."""
    stand_alone()
    for j in range(scales.size):
        scale = leading(a[j], tiny_a) * leading(b[j], tiny_b)
        scales[j] = max(scales[j], scale)


@row
def led_row(scales, a, b):
    """scales: at least the products of these powers of two."""
    stand_alone()
    for j in range(scales.size):
        scales[j] = max(scales[j], a[j] * b[j])


@row
def higher_row(scales, others):
    """scales: at least the others."""
    stand_alone()
    for j in range(scales.size):
        scales[j] = max(scales[j], others[j])


@row
def leading(x, tiny):
    """2^exponent of a finite number, at least `tiny`; 0 for zero, infinities and NaN."""
    power = bits_float(float_bits(x) & np.int64(0x7FF0000000000000), 1.0)
    power = power if power > tiny else tiny
    return power if (abs(x) < np.inf) & (x != 0.0) else 0.0


@row
def kept(x, scale, fraction_bits, direction):
    """x, cut to so many fraction bits below `scale`, a power of two, or below 1 where that is 0."""
    exponent = float_bits(scale if scale > 0.0 else 1.0) >> 52
    y = x * bits_float((2046 - exponent + fraction_bits) << 52, 1.0)
    n = np.floor(y) if direction == FLOOR else np.trunc(y)
    even = np.floor(n * 0.5) * 2.0 == n
    n = n + (1.0 if y > 0.0 else -1.0) if (direction == ODD) & (n != y) & even else n
    return n * bits_float((exponent - fraction_bits) << 52, 1.0)


@row
def cut_row(total, cut, terms, scales, fraction_bits, direction):
    """Terms, cut to the grid that the scales set, added to `total`; cut: 1 where bits were lost."""
    stand_alone()
    for j in range(total.size):
        part = kept(terms[j], scales[j], fraction_bits, direction)
        cut[j] = 1.0 if part != terms[j] else cut[j]
        total[j] += part


@row
def parted_row(terms, over, limit):
    """Finite terms of `limit` and beyond go to `over` as infinities, and are zero among the terms."""
    stand_alone()
    for j in range(terms.size):
        beyond = (abs(terms[j]) >= limit) & (abs(terms[j]) < np.inf)
        over[j] += (np.inf if terms[j] > 0.0 else -np.inf) if beyond else 0.0
        terms[j] = 0.0 if beyond else terms[j]


@row
def dropped_row(addends, cut, leads, scales, distance):
    """Addends whose power of two is more than 2^distance below the scale are zero."""
    stand_alone()
    for j in range(addends.size):
        far = leads[j] * bits_float((1023 + distance) << 52, 1.0) < scales[j]
        cut[j] = 1.0 if far & (addends[j] != 0.0) else cut[j]
        addends[j] = 0.0 if far & (abs(addends[j]) < np.inf) else addends[j]


@row
def align_row(running, terms, alone, total, over, cut, numbers, flags, integers, floats):
    """The block's sum, to be rounded. Where `alone`, its one term and the running sum are operands of IEEE 754-2019 6.3."""
    stand_alone()
    target = target_of(integers, floats)
    for j in range(running.size):
        s = total[j]
        keeps = alone & ((float_bits(running[j]) ^ float_bits(terms[j])) >= 0)
        zero = -target.zero if target.downward != target.none else target.zero
        zero = running[j] * target.zero if keeps else zero
        s = zero if s == target.zero else s
        s = s + over[j] if (over[j] != 0.0) & (abs(s) < np.inf) else s
        cut[j] = cut[j] if abs(s) < np.inf else 0.0
        number = numbers[j] != 0.0
        raised = target.invalid if (s != s) & number else target.none
        raised |= target.inexact if cut[j] != 0.0 else target.none
        flags[j] |= raised | (target.none if number else target.any_nan_signals)
        running[j] = s


@row
def sign_row(negative, positive, terms):
    """0 in `negative` once a term has no sign bit, in `positive` once one has."""
    stand_alone()
    for j in range(terms.size):
        below = float_bits(terms[j]) < 0
        negative[j] = negative[j] if below else 0.0
        positive[j] = 0.0 if below else positive[j]


@row
def zero_row(sums, negative, positive):
    """Zero sums whose terms have all the same sign keep it."""
    stand_alone()
    for j in range(sums.size):
        signed = -0.0 if negative[j] != 0.0 else 0.0
        sums[j] = signed if (sums[j] == 0.0) & ((negative[j] != 0.0) | (positive[j] != 0.0)) else sums[j]


# -- NaN payloads ----------------------------------------------------------------------------------------------------


@kernel
def survivor(nan_1, signals_1, nan_2, signals_2, nan_3, signals_3, target):
    """Which of three operands, the NaNs among them in this order, passes its payload on."""
    if target.propagate == PROPAGATE_SIGNALLING_FIRST:
        if nan_1 & signals_1:
            return 1
        if nan_2 & signals_2:
            return 2
        if nan_3 & signals_3:
            return 3
    return 1 if nan_1 else 2 if nan_2 else 3


@row
def fused_payload_row(payload, after, before, a, b, codes_a, codes_b, source_a, source_b, source_z, target):
    """Codes of the NaNs among running sums, after a fused multiply-add."""
    stand_alone()
    for j in range(after.size):
        if after[j] == after[j]:
            continue
        x, y, code_z = codes_a[j], codes_b[j], payload[j]
        nan_x, nan_y, nan_z = a[j] != a[j], b[j] != b[j], before[j] != before[j]
        signals_z = nan_z & is_signalling(code_z, source_z)
        addend_first = (target.addend_first != target.none) & nan_z
        product = a[j] * b[j]
        invalid = (product != product) & (not nan_x) & (not nan_y) & (target.product_invalid != target.none)
        if not (nan_x | nan_y | nan_z) or (invalid and not (addend_first and signals_z)):
            payload[j] = target.nan
            continue
        signals_x, signals_y = is_signalling(x, source_a), is_signalling(y, source_b)
        if addend_first:
            which = survivor(nan_z, signals_z, nan_x, signals_x, nan_y, signals_y, target)
            which = 3 if which == 1 else which - 1
        else:
            which = survivor(nan_x, signals_x, nan_y, signals_y, nan_z, signals_z, target)
        if which == 1:
            payload[j] = quieted(x, source_a, target)
        elif which == 2:
            payload[j] = quieted(y, source_b, target)
        else:
            payload[j] = quieted(code_z, source_z, target)


@row
def paired_payload_row(payload, after, first, second, codes_1, codes_2, source_1, source_2, target):
    """Codes of the NaNs among results of an operation on two operands."""
    stand_alone()
    for j in range(after.size):
        if after[j] == after[j]:
            continue
        nan_1, nan_2 = first[j] != first[j], second[j] != second[j]
        if not (nan_1 | nan_2):
            payload[j] = target.nan
            continue
        signals_1, signals_2 = is_signalling(codes_1[j], source_1), is_signalling(codes_2[j], source_2)
        which = survivor(nan_1, signals_1, nan_2, signals_2, False, False, target)
        payload[j] = quieted(codes_1[j], source_1, target) if which == 1 else quieted(codes_2[j], source_2, target)


@row
def converted_payload_row(payload, after, before, source, target):
    """Codes of the NaNs among converted values."""
    stand_alone()
    for j in range(after.size):
        if after[j] != after[j]:
            payload[j] = quieted(payload[j], source, target) if before[j] != before[j] else target.nan


# -- counts ----------------------------------------------------------------------------------------------------------


@row
def count_row(counts, extremes, before, exact, after, raised, cut):
    """One more addition: overflowed, inexact, swamped; least and greatest partial."""
    stand_alone()
    for j in range(after.size):
        counts[0, j] += (raised[j] >> 2) & 1
        counts[1, j] += 1 if (raised[j] & 1 != 0) | (cut[j] != 0.0) else 0
        changed = (exact[j] != before[j]) | (cut[j] != 0.0)
        counts[2, j] += 1 if changed & (after[j] == before[j]) else 0
        extremes[0, j] = after[j] if after[j] < extremes[0, j] else extremes[0, j]
        extremes[1, j] = after[j] if after[j] > extremes[1, j] else extremes[1, j]
