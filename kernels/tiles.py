"""Faster ways through a dot product to the same bits: tiles of 8 rows by a vector of columns, in registers.

Each way is a step of `steps` and what holds around it: turns are taken some at a time, by the shortest step that may
serve. INEXACT is watched until every output of a tile has it; what is left of k takes a brief step, which does not look,
or a quick one, whose turns are taken again where they may have gone wrong.
"""

import numpy as np

from . import jit
from .accumulate import STORE, draw_row
from .counting_steps import counting_exact_step
from .jit import bits_float, copy_row, fill_row, flat, float_bits, row, scratch, viewed
from .lanes import closing, everywhere, least_of, opening, tile
from .noise import filling
from .steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    EXPONENT,
    EXPONENT64,
    GREATEST,
    HALF_LARGEST,
    HALF_NORMAL,
    INEXACT,
    LARGEST_SO_FAR,
    LEAST,
    LOWEST_BIT,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    SLOTS,
    SMALLEST,
    SWAMPED,
    UNDERFLOW,
    VALUE,
    Numbers,
    exact_step,
)
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK

DRAWN_TURNS = 16  # turns for which random numbers of stores are made at a time
EXACT_WATCH = 256  # products between two looks at how large running sums have become
COUNTED_WATCH = 64  # the same where additions are counted
SPANNED = 16  # products, at least, whose operands are looked at together: of few the least of both rarely meet
COUNTED_ROWS = 4  # of a tile whose additions are counted: what is noted of more is not kept in registers
NEAR = 1 << 18  # bytes of row panels that are read again and again before the next ones
SOON_EXACT = 32  # products before the first look whether all outputs are inexact
COUNT_BITS_NARROW, COUNT_BITS_WIDE = COUNT_BITS[32], COUNT_BITS[64]


# -- around a step ---------------------------------------------------------------------------------------------------


def flags_of(state, nan_flags):
    """Outputs' flags from a tile's state at the end, of which not every tile notes UNDERFLOW and OVERFLOW."""
    value, none = state[VALUE], nan_flags & 0
    flags = state[INEXACT].bits().nonzero().choose(1, none)
    if UNDERFLOW in state:
        flags = flags | state[UNDERFLOW].bits().nonzero().choose(3, none)
    over = value.magnitude() >= np.inf
    if OVERFLOW in state:
        over = over | state[OVERFLOW].bits().nonzero()
    flags = flags | over.choose(5, none)
    return value.differs(value).choose(flags | nan_flags, flags)


def only_inexact(states):
    """Whether every output of a tile is inexact, finite, and nothing else."""
    least = largest = noted = None
    for state in states:
        inexact, size = state[INEXACT].bits(), state[VALUE].magnitude().bits()
        other = [state[slot].bits() for slot in (UNDERFLOW, OVERFLOW) if slot in state]
        least = inexact if least is None else least.at_most(inexact)
        largest = size if largest is None else largest.at_least(size)
        for bits in other:
            noted = bits if noted is None else noted | bits
    infinity = EXPONENT if largest.element.width == 32 else EXPONENT64
    wrong = least.is_zero() | (largest >= infinity)
    return (wrong if noted is None else wrong | noted.nonzero()).nowhere()


def frame(carrier, slots=SLOTS, rows=ROWS):
    """(open, close, all_inexact) of tiles of so many slots."""
    end = closing(carrier, flags_of, (VALUE, INEXACT, UNDERFLOW, OVERFLOW), rows, only_inexact)
    return opening(carrier, slots, rows), end, everywhere(carrier, INEXACT)


@row
def pass_over(happened, i, j, lanes, rows, columns):
    """Outputs beyond the last are no reason to watch: they count as inexact."""
    for row_ in range(ROWS):
        for lane in range(lanes):
            if (i * ROWS + row_ >= rows) | (j * lanes + lane >= columns):
                happened[(INEXACT * ROWS + row_) * lanes + lane] = 1


@row
def together_of(size):
    """How many row panels of this size stay in the cache."""
    return max(NEAR // size, 1)


@row
def tile_of(unit, panels, across, size):
    """(row panel, column panel) of a tile's number: the row panel runs fastest, within as many panels of this size as stay in the cache."""
    together = together_of(size)
    block = unit // (together * across)
    rest = unit - block * together * across
    count = min(together, panels - block * together)
    return block * together + rest % count, rest // count


def compiled_tile(name, step, carrier, block, planes, watchful, *more, shared=()):
    """The loop of a step of this name; `more` and `shared` are the slots it uses beside the running sum and, if watchful, INEXACT."""
    slots = (VALUE, *((INEXACT,) if watchful else ()), *more, *shared)
    return tile((name, watchful), step, carrier, slots, Numbers._fields, block, planes, shared)


@jit.once
def finding_least(size):
    """loop(panels, low): of each turn of panels so wide, flat, the least magnitude that is not zero, or infinity; a part of other loops."""
    least_number = least_of(size)

    def least_loop(panels, low):
        for turn in range(low.size):
            least_number(panels, turn * size, low, turn)

    return jit.referable(row(least_loop), size)


least = jit.outermost(finding_least)


@row
def largest_of(happened, cells):
    """The greatest magnitude of a tile's running sums, of float64's bits; infinity if one is none."""
    top = np.int64(0)
    for cell in range(cells):
        top = max(top, happened[VALUE * cells + cell] & np.int64(0x7FFFFFFFFFFFFFFF))
    return bits_float(min(top, np.int64(EXPONENT64)), 1.0)


@row
def take_counts(happened, cells, wide):
    """Counts of one word into slots of their own. What was swamped need not be inexact: it may have become a subnormal that reads as zero."""
    bits = COUNT_BITS_WIDE if wide else COUNT_BITS_NARROW
    swamped = ((1 << bits) - 1) << bits
    for cell in range(cells):
        word = happened[COUNTS * cells + cell] >> LOWEST_BIT
        happened[COUNTS * cells + cell] = 0
        happened[ROUNDED * cells + cell] += word & ((1 << bits) - 1)
        happened[SWAMPED * cells + cell] += (word >> bits) & ((1 << bits) - 1)
        happened[INEXACT * cells + cell] |= word & ~swamped


@row
def tell(state, happened, together, first_row, j, lanes, counts, extremes):
    """What some rows of a tile have counted."""
    cells = together * lanes
    for cell in range(cells):
        row_, lane = first_row + cell // lanes, j * lanes + cell % lanes
        for which in range(3):
            counts[which, row_, lane] = happened[(OVERFLOWED + which) * cells + cell]
        for which in range(2):
            extremes[which, row_, lane] = state[(LEAST + which) * cells + cell]


@row
def begin_counting(state, cells):
    """No sum so far."""
    fill_row(state[LEAST * cells : (LEAST + 1) * cells], np.inf)
    fill_row(state[GREATEST * cells : (GREATEST + 1) * cells], -np.inf)


def spanned_of(group):
    """Products whose operands' spans are told apart, whole groups."""
    return -(-SPANNED // group) * group


def chunk_of(group, watch):
    """Products between two looks at the running sums, several such, at most `watch` if there are several."""
    spanned = spanned_of(group)
    return max(watch // spanned, 1) * spanned


@jit.once
def spans():
    """loop(panels, stretch, lowest, largest): of each panel's stretches of k, the smallest lowest bit and the largest magnitude."""

    def spans_loop(panels, stretch, lowest, largest):
        for panel in range(panels.shape[0]):
            for part in range(lowest.shape[1]):
                values = flat(panels[panel, part * stretch : (part + 1) * stretch])
                least, greatest = np.int64(EXPONENT64), np.int64(0)
                for n in range(values.size):  # integers, whose least and greatest are found many at a time
                    bits = float_bits(values[n]) & np.int64(0x7FFFFFFFFFFFFFFF)
                    significand = (bits & np.int64(0xFFFFFFFFFFFFF)) | np.int64(0x10000000000000)
                    unit = bits_float((bits & np.int64(EXPONENT64)) - np.int64(52 << 52), 1.0)
                    bit = float_bits(np.float64(significand & -significand) * unit)
                    least = min(least, bit if bits > 0 else np.int64(EXPONENT64))
                    greatest = max(greatest, bits)
                low, high = bits_float(least, 1.0), bits_float(greatest, 1.0)
                lowest[panel, part] = low
                largest[panel, part] = high

    return jit.compiled(spans_loop)


@jit.once
def exact_blocks(block, blocks, stored, saturate):
    """As `deterministic`, for blocks whose sums are exact.

    loop(first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns,
    index, row_stride, column_stride, width, key, stream, begun, low_c, low_a, high_a, low_b, high_b): where outputs lie among
    random addresses, and how many stores were before, if `stored` is "drawn"; the lowest bit of c, and spans of both operands'
    panels, as `spans` tells them of stretches of `spanned_of` products. A chunk of k is summed quickly, and if a bit may have
    been lost, or a stored sum is no normal number of half, again with care. No bit is lost where all terms are multiples of
    some bit, and no sum reaches 53 bits above it. Products of a stretch are multiples of its lowest bit, those of a chunk of
    the least of these; a running sum is one of the lowest bit so far, for rounding only takes bits away, and, being a float32,
    of 2^-23 of its power of two.
    """
    carrier, lanes, group = np.float64, LANES[np.float64], block * blocks
    slots = (UNDERFLOW,) * bool(stored) + (OVERFLOW,) * (bool(stored) and saturate)
    draws = stored == "drawn"
    quick, brief, careful = (
        compiled_tile(
            ("exact", block, blocks, stored, saturate, careful),
            exact_step(block, blocks, stored, saturate, careful, watchful),
            carrier, group, 1, watchful, *slots, shared=() if careful else (LARGEST_SO_FAR, SMALLEST),
        )
        for careful, watchful in ((False, True), (False, False), (True, True))
    )  # fmt: skip
    begin, end, all_inexact = frame(carrier)
    fill_noise = filling()
    cells = ROWS * lanes
    chunk = chunk_of(group, EXACT_WATCH)
    watched, near = chunk // group, chunk // spanned_of(group)
    stores, soon, state_size = bool(stored), max(SOON_EXACT // group, 1), SLOTS * cells
    room = (-(-watched // STEPS_OF_A_BLOCK) + 1) * STEPS_OF_A_BLOCK * cells if draws else 0

    def exact_blocks_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns,
        index, row_stride, column_stride, width, key, stream, begun, low_c, low_a, high_a, low_b, high_b,
    ):  # fmt: skip
        panels, turns = a.shape[1], a.shape[2] // group
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        a_panel = a.size // a.shape[1]
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        state = scratch(state_size, carrier)
        happened = viewed(state, np.int64)
        largest = happened[LARGEST_SO_FAR * cells : LARGEST_SO_FAR * cells + lanes]
        smallest = happened[SMALLEST * cells : SMALLEST * cells + lanes]
        saved = scratch(state_size, carrier)
        noise = scratch(room, carrier)
        random_bits = viewed(noise, np.uint64)
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[1], a_panel * a.itemsize)
            a_at, b_at = i * turns * group * ROWS, j * turns * group * lanes
            place = i * ROWS * wide + j * lanes
            begin(state, flat_c, place, wide)
            if ((i + 1) * ROWS > rows) | ((j + 1) * lanes > columns):
                pass_over(happened, i, j, lanes, rows, columns)
            known, so_far = False, low_c
            for part in range(-(-turns // watched)):
                count = min(watched, turns - part * watched)
                known = known or all_inexact(state)
                corner, step = index + i * ROWS * row_stride + j * lanes * column_stride, begun + part * watched
                lowest, greatest = np.inf, 0.0
                for stretch in range(part * near, min((part + 1) * near, low_a.shape[1])):
                    lowest = min(lowest, low_a[i, stretch] * low_b[j, stretch])
                    greatest = max(greatest, high_a[i, stretch] * high_b[j, stretch])
                so_far = min(so_far, lowest)
                reach = block * greatest
                limit, limit_so_far = lowest * 4503599627370496.0 - reach, so_far * 4503599627370496.0 - reach
                done = False
                if limit > 0.0:
                    copy_row(saved, state)
                    fill_row(largest, 0)
                    fill_row(smallest, EXPONENT64)
                    beside = noise
                    if draws:
                        block_ = step // STEPS_OF_A_BLOCK
                        for n in range(-(-(step + count) // STEPS_OF_A_BLOCK) - block_):
                            at = n * STEPS_OF_A_BLOCK * cells
                            fill_noise(
                                random_bits, at, STORE, block_ + n, corner, row_stride, column_stride, width, key, stream
                            )  # fmt: skip
                        beside = noise[step % STEPS_OF_A_BLOCK * cells :]
                    watching, settled = 0, known
                    if not known:
                        watching = min(count, soon)
                        quick(flat_a, a_at, 0, flat_b, b_at, 0, beside, state, numbers, watching)
                        beside = beside[watching * cells :] if draws else beside
                        settled = all_inexact(state)
                    a_on, b_on = a_at + watching * group * ROWS, b_at + watching * group * lanes
                    if settled:
                        brief(flat_a, a_on, 0, flat_b, b_on, 0, beside, state, numbers, count - watching)
                    else:
                        quick(flat_a, a_on, 0, flat_b, b_on, 0, beside, state, numbers, count - watching)
                    top, bottom = np.int64(0), np.int64(EXPONENT64)
                    for lane in range(lanes):
                        top = max(top, largest[lane])
                        bottom = min(bottom, smallest[lane])
                    if stores:
                        for cell in range(cells):
                            magnitude_bits = happened[cell] & np.int64(0x7FFFFFFFFFFFFFFF)
                            top = max(top, magnitude_bits)
                            bottom = min(bottom, magnitude_bits - 1 if magnitude_bits else bottom)
                    bits_are_high = bits_float(bottom + 1, 1.0) * 1.1920928955078125e-07 >= lowest
                    magnitude = bits_float(top, 1.0)
                    done = (magnitude < limit_so_far) | ((magnitude < limit) & bits_are_high)
                    if stores:
                        done = done & (magnitude <= HALF_LARGEST) & (bits_float(bottom + 1, 1.0) >= HALF_NORMAL)
                    if not done:
                        copy_row(state, saved)
                if not done:
                    if draws:
                        draw_stores(
                            noise, corner, row_stride, column_stride, step, count, lanes, ROWS, key, stream, width
                        )  # fmt: skip
                    careful(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                a_at += count * group * ROWS
                b_at += count * group * lanes
            end(state, flat_values, flat_flags, place, wide, nan_flags)

    return jit.compiled(exact_blocks_loop)


@jit.once
def counted_blocks(block, blocks, stored, saturate, of_nan):
    """As `counted`, for blocks whose sums are exact.

    loop(..., columns, counts, extremes, index, row_stride, column_stride, width, key, stream, begun, low_c, low_a, high_a, low_b, high_b):
    with spans of operands as `exact_blocks` has them, that tell before a chunk of k whether all of its sums stay so small that
    none loses a bit in float64, or overflows; care is taken if not.
    """
    carrier, lanes, group = np.float64, LANES[np.float64], block * blocks
    slots = (VALUE, COUNTS, LEAST, GREATEST, *(UNDERFLOW, *(OVERFLOW,) * saturate, OVERFLOWED) * bool(stored))
    draws = stored == "drawn"
    together = COUNTED_ROWS if stored else ROWS
    options = block, blocks, stored, saturate, of_nan
    every, roomy = (
        tile(
            ("counted", *options, careful), counting_exact_step(*options, careful), carrier, slots, Numbers._fields, group,
            rows=together,
        )
        for careful in (True, False)
    )  # fmt: skip
    begin, end, _ = frame(carrier, COUNTED_SLOTS, together)
    cells = together * lanes
    at_once = DRAWN_TURNS if draws else (1 << COUNT_BITS[64]) // (2 * blocks)
    spanned, most = spanned_of(group), HALF_LARGEST if stored else 2.0**100
    watched = min(chunk_of(group, COUNTED_WATCH) // group, at_once)
    state_size, noise_size = COUNTED_SLOTS * cells, DRAWN_TURNS * cells * draws

    def counted_blocks_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns,
        counts, extremes, index, row_stride, column_stride, width, key, stream, begun, low_c, low_a, high_a, low_b, high_b,
    ):  # fmt: skip
        panels, turns = a.shape[1], a.shape[2] // group
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        a_panel = a.size // a.shape[1]
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        state = scratch(state_size, carrier)
        happened = viewed(state, np.int64)
        noise = scratch(noise_size, carrier)
        for unit in range(first, last):
            i, j = tile_of(unit, panels, b.shape[1], a_panel * a.itemsize)
            for first_row in range(i * ROWS, (i + 1) * ROWS, together):
                place = first_row * wide + j * lanes
                begin(state, flat_c, place, wide)
                begin_counting(state, cells)
                lowest = low_c
                for done in range(0, turns, at_once):
                    count = min(at_once, turns - done)
                    if draws:
                        corner = index + first_row * row_stride + j * lanes * column_stride
                        draw_stores(
                            noise, corner, row_stride, column_stride, begun + done, count, lanes, together, key, stream, width
                        )  # fmt: skip
                    for turn in range(done, done + count, watched):
                        some = min(watched, done + count - turn)
                        reach = largest_of(happened, cells)
                        for stretch in range(turn * group // spanned, -(-(turn + some) * group // spanned)):
                            lowest = min(lowest, low_a[i, stretch] * low_b[j, stretch])
                            reach += spanned * (high_a[i, stretch] * high_b[j, stretch])
                        a_at = (i * turns + turn) * group * ROWS + first_row - i * ROWS
                        b_at = (j * turns + turn) * group * lanes
                        beside = noise[(turn - done) * cells :] if draws else noise
                        reach *= 2.0  # sums are rounded up, too
                        if (reach < lowest * 4503599627370496.0) & (reach < most):
                            roomy(flat_a, a_at, 0, flat_b, b_at, 0, beside, state, numbers, some)
                        else:
                            every(flat_a, a_at, 0, flat_b, b_at, 0, beside, state, numbers, some)
                    take_counts(happened, cells, True)
                end(state, flat_values, flat_flags, place, wide, nan_flags)
                tell(state, happened, together, first_row, j, lanes, counts, extremes)

    return jit.compiled(counted_blocks_loop)


@row
def draw_stores(noise, corner, row_stride, column_stride, done, count, lanes, rows, key, stream, width):
    """Random numbers of the stores of a tile of so many rows, from turn `done` on."""
    for turn in range(count):
        for row_ in range(rows):
            at = (turn * rows + row_) * lanes
            start = corner + row_ * row_stride
            draw_row(noise[at : at + lanes], start, column_stride, STORE, done + turn, key, stream, width)
