"""The dot product of every kind: the steps of `dot_steps`, in the order a program of blocks, stores and segments says.

One loop serves all accumulators, formats and roundings, one output after the other. It is the plain way: whatever is
faster is held against it.
"""

import numpy as np

from . import jit
from .accumulate import LEVEL, PRODUCT, RESULT, RUNNING, STORE, WIDTH, draw_row, fused_payload, paired_payload
from .carrier import quieted
from .dot_state import (
    ADDEND,
    ALIGNED,
    CODE,
    COLUMN,
    ERRORS,
    EXACT,
    FIRST_FUSED,
    FIXED,
    FLAGS,
    FUSED,
    GREATEST,
    KINDS,
    LEAST,
    MEMORY,
    NO_EXPONENT,
    ON_THE_WAY,
    OUTPUT,
    OVERFLOWED,
    PRODUCT_CODE,
    ROUNDED,
    ROUNDINGS,
    ROW,
    ROW_OF_A,
    SCALES_ADDED,
    SECOND_FUSED,
    TOP,
    UNLIMITED,
    Call,
    Choices,
    call_at,
    on_the_way,
    part,
    quiet_part,
)
from .dot_steps import (
    added,
    blocked,
    compensated,
    convert,
    counted,
    exact_block,
    factors,
    fixed_step,
    fused,
    multiplied,
    rounded_product,
    settled,
    source_at,
    stage,
    summed,
    target_at,
)
from .jit import bits_float, copy_row, fill_row, float_bits, row, stand_alone
from .parts import linked, links, referred

__all__ = [
    "ALIGNED",
    "EXACT",
    "NO_EXPONENT",
    "ON_THE_WAY",
    "PRODUCT",
    "RESULT",
    "UNLIMITED",
    "Call",
    "Choices",
    "links",
    "on_the_way",
]
"""Names that callers find here beside those that are defined below."""


# -- trees, chains ---------------------------------------------------------------------------------------------------


@row
def grown(place, term, call):
    """One more leaf of a tree, product number `place`: the highest sum on the stack."""
    stand_alone()
    stack, top = call.stack, call.words[TOP] + 1
    while place & 1:
        top -= 1
        term = added(RUNNING, stack[top], term, call)
        place >>= 1
    stack[top] = term
    call.words[TOP] = top


@row
def merged(call):
    """The sum of all on the stack, the highest first."""
    stack, top = call.stack, call.words[TOP]
    s = stack[top]
    for level in range(top - 1, -1, -1):
        s = added(RUNNING, stack[level], s, call)
    return s


@quiet_part
def leaf(place, term, call):
    """A product of a tree over all of them."""
    grown(place, term, call)


@part
def tree_block(z, first, last, call):
    """Leaves of products first ... last - 1, each rounded, added in pairs, and their sum to the running sum."""
    size = call.how.leaf
    call.words[TOP] = -1
    for k in range(first, last, size):
        if size == 1:
            term = rounded_product(k, call)
        else:
            term = stage(PRODUCT, exact_block(0.0, k, k + size, call), call.magics.size, call)
        grown((k - first) // size, term, call)
    return added(RUNNING, z, merged(call), call)


@part
def joined(held, joins, call):
    """Subtrees or chains added up. `joins`: what comes next is added to it."""
    how, z = call.how, call.running[0]
    if how.tree and how.block == 1:
        z = merged(call)
        if how.lone_converted and held == PRODUCT and not joins:
            z = stage(RUNNING, z, 0, call)
    for chain in range(1, how.chains):
        z = added(RUNNING, z, call.running[chain], call)
    return z


# -- codes of NaNs ---------------------------------------------------------------------------------------------------


@row
def passed_on(code, value, place, call):
    """What was rounded last gets the code of its NaN."""
    if value != value:
        call.payloads[place] = call.words[CODE] = code


@quiet_part
def product_payload(term, n, call):
    """The code of the NaN that a rounded product is."""
    if term != term:
        x, y = factors(n, call)
        code_x, code_y, sites = (
            call.codes_a[call.words[ROW_OF_A], n],
            call.codes_b[call.words[COLUMN], n],
            call.draws.size,
        )
        target = target_at(PRODUCT, call)
        call.words[PRODUCT_CODE] = paired_payload(
            x, y, code_x, code_y, source_at(sites, call), source_at(sites + 1, call), target
        )


@quiet_part
def sum_payload(before, term, after, held, n, call):
    """The code of the NaN that the running sum is, after product n."""
    if after == after:
        return
    words, sites, code_z = call.words, call.draws.size, call.payloads[0]
    came, target = source_at(held, call), target_at(RUNNING, call)
    if call.how.kind == ROUNDED:
        code = paired_payload(before, term, code_z, words[PRODUCT_CODE], came, source_at(PRODUCT, call), target)
    else:
        x, y = factors(n, call)
        code_x, code_y = call.codes_a[words[ROW_OF_A], n], call.codes_b[words[COLUMN], n]
        source_x, source_y = source_at(sites, call), source_at(sites + 1, call)
        code = fused_payload(x, y, before, code_x, code_y, code_z, source_x, source_y, came, target)
    passed_on(code, after, 0, call)


@quiet_part
def level_payload(before, addend, after, held, site, place, call):
    """The code of the NaN that the sum of a level is."""
    if after != after:
        above, below, target = call.payloads[place + 1], call.payloads[place], target_at(site, call)
        code = paired_payload(before, addend, above, below, source_at(site, call), source_at(held, call), target)
        passed_on(code, after, place + 1, call)


@quiet_part
def moved_payload(before, after, held, site, place, call):
    """The code of the NaN that a converted number is."""
    if after != after:
        target = target_at(site, call)
        code = quieted(call.payloads[place], source_at(held, call), target) if before != before else target.nan
        passed_on(code, after, place, call)


@row
def moved(site, value, place, held, call):
    """A conversion of what the stage `held` rounded; the code of its NaN goes with it."""
    stand_alone()
    after = convert(site, value, call)
    if call.how.payloads:
        moved_payload(value, after, held, site, place, call)
    return after


# -- ends ------------------------------------------------------------------------------------------------------------


@part
def stored(z, call):
    """A store of the running sum."""
    after = moved(STORE, z, 0, RUNNING, call)
    if call.how.counting:
        counted(call.numbers[MEMORY], z, after, False, call)
        call.numbers[MEMORY] = after
    return after


@row
def finish(held, call):
    """What is left to do after the last product: join subtrees or chains, add c, store, convert. `held` is the stage that rounded last."""
    how, words, z = call.how, call.words, call.running[0]
    levels, some = how.levels, words[TOP] >= 0
    if not levels and ((how.tree and how.block == 1) or how.chains > 1):
        z = call.numbers[ADDEND]
        if some:
            z = joined(held, how.has_addend != 0, call)
            z = added(RUNNING, z, call.numbers[ADDEND], call) if how.has_addend else z
    if levels and some and call.stored[levels - 1]:
        site = LEVEL + 2 * levels - 1
        z = moved(site, z, levels, held, call)
        held = site
    if how.has_result:
        moved(RESULT, z, levels, held, call)


@part
def scaled_addition(site, total, addend, x, y, call):
    """A segment's sum, times the scales of both operands, added to the total: in the order that `Choices.scaling` says."""
    scaling = call.how.scaling
    if scaling == FIRST_FUSED:
        product, factor = multiplied(site, addend, x, call), y
    elif scaling == SECOND_FUSED:
        product, factor = multiplied(site, addend, y, call), x
    else:
        product, factor = multiplied(site, x, y, call), addend
    product = stage(site, product, 0, call)
    if scaling == SCALES_ADDED:
        return added(site, total, stage(site, multiplied(site, product, factor, call), 0, call), call)
    return fused(site, total, product, factor, call)


@quiet_part
def close(closed, held, segment, call):
    """The end of a segment: its sum goes up `closed` levels. `held` is the stage that rounded it last."""
    how, words, totals, running = call.how, call.words, call.totals, call.running
    addend = joined(held, False, call)
    for level in range(closed):
        site, before = LEVEL + 2 * level, totals[level]
        if level > 0:
            addend, held = totals[level - 1], site - 2
            totals[level - 1] = 0.0
            if call.stored[level - 1]:
                addend = moved(site - 1, addend, level, held, call)
                held = site - 1
        if level == 0 and how.scaling:
            x, y = call.scales_a[words[ROW_OF_A], segment], call.scales_b[words[COLUMN], segment]
            totals[level] = scaled_addition(site, before, addend, x, y, call)
        else:
            totals[level] = added(site, before, addend, call)
        if how.payloads:
            level_payload(before, addend, totals[level], held, site, level, call)
    for chain in range(how.chains):
        running[chain] = 0.0
    call.numbers[ERRORS] = call.numbers[MEMORY] = 0.0
    words[TOP] = -1


@quiet_part
def show(n, closed, held, segment, call):
    """The results of the products so far: then all goes on as if nothing had been asked."""
    how, numbers, words, levels = call.how, call.numbers, call.words, call.how.levels
    size, count = numbers.size // 2, words.size // 2
    copy_row(numbers[size:], numbers[:size])
    copy_row(words[count:], words[:count])
    if (how.compensation or how.fixed_bits) and not closed:
        call.running[0] = settled(call.running[0], call)
    if levels:
        if not closed:
            close(1, held, segment, call)
        call.running[0] = call.totals[levels - 1]
        words[TOP] = 0
    finish(LEVEL if levels else held, call)
    call.codes_out[n, words[COLUMN]] = words[CODE]
    call.flags_out[n, words[COLUMN]] |= words[FLAGS]
    copy_row(numbers[:size], numbers[size:])
    copy_row(words[:count], words[count:])


@row
def begin(output, call):
    """An output before its first product."""
    how, numbers, words, running, columns = call.how, call.numbers, call.words, call.running, call.b.shape[0]
    levels, i, column = how.levels, output // columns, output % columns
    fill_row(numbers, 0.0)
    fill_row(words, 0)
    words[ROW], words[COLUMN], words[ROW_OF_A] = i, column, column if how.paired else i
    words[OUTPUT] = how.first + i * how.row_stride + column * how.column_stride
    words[FLAGS], words[TOP] = call.flags_out[i, column], -1
    numbers[LEAST], numbers[GREATEST] = np.inf, -np.inf
    for site in range(call.begun.size):
        words[ROUNDINGS + site] = call.begun[site]
    if how.has_addend:
        numbers[ADDEND] = call.c[i, column]
        words[CODE] = call.payloads[levels] = call.entry[i, column]
        if levels:
            call.totals[levels - 1] = numbers[ADDEND]
        elif how.chains == 1 and not (how.tree and how.block == 1):
            running[0] = numbers[MEMORY] = numbers[ADDEND]


@row
def end(held, call):
    """An output after its last product: what it is in the end, and what is told of it."""
    how, numbers, words = call.how, call.numbers, call.words
    if how.levels:
        some = call.stores.size > 0
        call.running[0] = call.totals[how.levels - 1]
        held = LEVEL + 2 * (how.levels - 1) if some else how.entered
        words[TOP] = 0 if some else -1
    finish(held, call)
    i, column = words[ROW], words[COLUMN]
    call.codes_out[i, column], call.flags_out[i, column] = words[CODE], words[FLAGS]
    if how.counting:
        for which in range(3):
            call.counts_out[which, i, column] = words[OVERFLOWED + which]
        for which in range(2):
            call.extremes_out[which, i, column] = numbers[LEAST + which]


# -- the loop -------------------------------------------------------------------------------------------------------


def passed(call):
    """A call as `contraction` takes it."""
    return referred(call, KINDS["call"])


@jit.once
def contraction():
    """loop(first, last, call).

    Outputs are a grid of rows and columns, numbered row by row. Operands are padded to whole blocks and in the order of the sum; c holds values,
    `entry` their codes. An aligned block's terms go by the powers of two in leads_a and leads_b, which lie as a and b do, or by
    those of products where these are rounded; `how.scaling` asks for scales_a and scales_b, which have segments for k.
    After block n the running sum is stored if stores[n], and closes[n] levels of the reduction end.
    Each stage has done so many roundings before, begun: its random numbers go on from there.
    `how.payloads` asks for the codes of propagated NaNs: codes_a and codes_b then hold the operands' codes. The last two
    rows of numbers are those of a and b.
    Flags come with those of signalling operands. Codes go to uint32; `how.cumulative` gives codes and flags a row for each k,
    and flags come with those of signalling operands up to it. `call` is what `referred` makes of a Call.
    """

    def contraction_loop(start, stop, known):
        call = call_at(known)
        how, stores, closes, running, words = call.how, call.stores, call.closes, call.running, call.words
        block, chains, kind = how.block, how.chains, how.kind
        whole_tree, single = how.tree and block == 1, how.products_rounded and block == 1
        ends = how.compensation or how.fixed_bits
        for output in range(start, stop):
            begin(output, call)
            held, place, segment = how.entered, 0, 0
            for n in range(stores.size):
                chain, first, last, term = place % chains, n * block, (n + 1) * block, 0.0
                before = z = running[chain]
                if single:
                    term = rounded_product(n, call)
                    if how.payloads:
                        product_payload(term, n, call)
                if whole_tree:
                    held = RUNNING if place else PRODUCT
                    leaf(place, term, call)
                elif how.tree:
                    z = tree_block(z, first, last, call)
                elif how.sums_blocks:
                    z = summed(z, first, last, call)
                elif kind == FIXED:
                    z = fixed_step(z, place == 0, n, call)
                elif kind == FUSED:
                    x, y = factors(n, call)
                    z = fused(RUNNING, z, x, y, call)
                elif kind != ROUNDED:
                    z = blocked(z, term, first, last, call)
                elif how.compensation:
                    z = compensated(z, term, call)
                else:
                    z = added(RUNNING, z, term, call)
                if not whole_tree:
                    words[TOP] = 0
                if how.payloads:
                    sum_payload(before, term, z, held, n, call)
                    held = RUNNING
                if stores[n]:
                    z = stored(z, call)
                    held = STORE
                place += 1
                if ends and (closes[n] or (n == stores.size - 1 and not how.cumulative)):
                    z = settled(z, call)
                running[chain] = z
                if closes[n]:
                    close(closes[n], held, segment, call)
                    held, place, segment = RUNNING, 0, segment + 1
                if how.cumulative:
                    show(n, closes[n], held, segment, call)
            if not how.cumulative:
                end(held, call)

    return linked(jit.compiled(contraction_loop, _nrt=False))


# -- beside it ------------------------------------------------------------------------------------------------------


def grids(low, high):
    """Bins for multiples of 2^low whose sums stay below 2^high: what is added to cut a term, lowest first."""
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
