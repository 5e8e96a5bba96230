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

from .arith import add, fma, to_odd, two_sum
from .carrier import decode, source_of
from .jit import bits_float, float_bits, row
from .prng import dot_high, dot_low, unit_fraction
from .rounding import round_any, target_of

WIDTH = 40
TERMS = 1 << 12  # a bin of 53 bits takes 2^(54-WIDTH) terms of WIDTH bits before carries must be settled
PRODUCT, RUNNING, STORE, RESULT, LEVEL = 0, 1, 2, 3, 4
"""Numbers of the stages. Level l of a reduction adds at LEVEL + 2l and stores at LEVEL + 2l + 1."""


@row
def draw_row(random, index, stride, site, step, key, stream, width):
    """Random numbers of one rounding at outputs index, index + stride, ..."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    for j in range(random.size):
        output = np.uint64(index + j * stride)
        fraction = unit_fraction(dot_high(output, site, step, key, stream), 16)
        if width > 16:
            fraction += unit_fraction(dot_low(output, site, step, key, stream), 52)
        random[j] = np.floor(fraction * scale) / scale


@row
def round_row(values, random, codes, raised, integers, floats):
    """values rounded in place, and read again as the stage reads; their codes; the flags of this rounding alone."""
    source, target = source_of(integers, floats), target_of(integers, floats)
    for j in range(values.size):
        code, flags = round_any(values[j], random[j], target)
        codes[j] = code
        raised[j] = flags
        values[j] = decode(code, source)


@row
def multiply_row(products, a, b, flags, integers, floats):
    """products = a * b, exact."""
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
def watch_row(numbers, a, b):
    """numbers: 0 once an operand of the block was NaN."""
    for j in range(numbers.size):
        numbers[j] = numbers[j] if (a[j] == a[j]) & (b[j] == b[j]) else 0.0


@row
def bin_row(bins, terms, magics):
    """Terms added to the bins; `terms` is used up. What is not finite stays in the highest bin."""
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
    target = target_of(integers, floats)
    top = bins.shape[0] - 1
    for j in range(running.size):
        running[j] = bins[top, j]
        errors[j] = 0.0
    for b in range(top - 1, -1, -1):
        level = bins[b]
        for j in range(running.size):
            x, y = running[j], level[j]
            s = x + y
            shadow = s - x
            error = (x - (s - shadow)) + (y - shadow)
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
    for j in range(scales.size):
        scale = leading(a[j], tiny_a) * leading(b[j], tiny_b)
        scales[j] = max(scales[j], scale)


@row
def leading(x, tiny):
    """2^exponent of a finite number, at least `tiny`; 0 for zero, infinities and NaN."""
    power = bits_float(float_bits(x) & np.int64(0x7FF0000000000000), 1.0)
    power = power if power > tiny else tiny
    return power if (abs(x) < np.inf) & (x != 0.0) else 0.0


@row
def cut_row(total, cut, terms, scales, fraction_bits):
    """Terms, cut to the grid that the scales set, added to `total`, which counts in grids; cut: 1 where bits were lost."""
    for j in range(total.size):
        scale = scales[j] if scales[j] > 0.0 else 1.0
        exponent = float_bits(scale) >> 52
        per_grid = bits_float((2046 - exponent + fraction_bits) << 52, 1.0)
        grid = bits_float((exponent - fraction_bits) << 52, 1.0)
        kept = np.trunc(terms[j] * per_grid)
        cut[j] = 1.0 if kept * grid != terms[j] else cut[j]
        total[j] += kept


@row
def align_row(running, total, cut, scales, numbers, flags, fraction_bits, integers, floats):
    """The block's sum, to be rounded."""
    target = target_of(integers, floats)
    for j in range(running.size):
        scale = scales[j] if scales[j] > 0.0 else 1.0
        grid = bits_float(((float_bits(scale) >> 52) - fraction_bits) << 52, 1.0)
        s = total[j] * grid
        s = (-target.zero if target.downward != target.none else target.zero) if s == target.zero else s
        cut[j] = cut[j] if abs(s) < np.inf else 0.0
        number = numbers[j] != 0.0
        raised = target.invalid if (s != s) & number else target.none
        raised |= target.inexact if cut[j] != 0.0 else target.none
        flags[j] |= raised | (target.none if number else target.any_nan_signals)
        running[j] = s


# -- counts ----------------------------------------------------------------------------------------------------------


@row
def count_row(counts, extremes, before, exact, after, raised, cut):
    """One more addition: overflowed, inexact, swamped; least and greatest partial."""
    for j in range(after.size):
        counts[0, j] += (raised[j] >> 2) & 1
        counts[1, j] += 1 if (raised[j] & 1 != 0) | (cut[j] != 0.0) else 0
        changed = (exact[j] != before[j]) | (cut[j] != 0.0)
        counts[2, j] += 1 if changed & (after[j] == before[j]) else 0
        extremes[0, j] = after[j] if after[j] < extremes[0, j] else extremes[0, j]
        extremes[1, j] = after[j] if after[j] > extremes[1, j] else extremes[1, j]
