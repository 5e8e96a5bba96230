"""A level of additions in pairs, each looked at as `accumulate.count_row` does: by the codes of what was added and of what became of it.

An output's additions may come in any order: their numbers add up, and of its sums the least and the greatest are kept. Numbers are
compared as `keys`, integers in their order.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from . import jit
from .jit import cut, fixed_tuple, referable, row, scratch


class Limits(NamedTuple):
    """What codes of a format say, as far as counting asks."""

    magnitude_mask: int
    flush_below: int  # a lesser magnitude is read as zero
    above_finite: int  # the least magnitude that is infinite or NaN
    nan_first: int  # the least that is NaN
    lone_nan: int  # the one code that is NaN by its sign and nothing else
    none: int = 0


COUNT_LIMITS = len(Limits._fields)
NOTHING = 0x7FFFFFFF
"""A key beyond that of any number: of no sum so far, the least, and with a minus the greatest."""
SPAN = 1 << 10  # columns whose counts stay in the CPU's first cache
OVERFLOWED, INEXACT, SWAMPED, LEAST, GREATEST, SEEN, SLOTS = range(7)
"""What there is of each output: numbers of additions, keys of sums, and flags."""
WORD, LOWEST, HIGHEST, RAISED = range(0, 4 * SPAN, SPAN)
"""The same of columns on their way; the numbers, of BITS each, are one word."""
BITS = 10
FULL = (1 << BITS) - 1


def limits(fmt, flushes):
    """Those of a format with signs, of at most 32 bits, whose subnormals are read as zero or not."""
    wide = 1 << (fmt.width - 1)
    flush_below = 1 << fmt.mantissa_bits if flushes else 0
    return Limits(wide - 1, flush_below, fmt.largest + 1, min(fmt.nan_first, NOTHING), fmt.lone_nan)


@cache
def noting(flushes, lone):
    """function(left, right, total, raised, word, lowest, highest, seen, known): an addition in each of some columns.

    `flushes`: subnormals are read as zero; `lone`: there is a lone NaN.
    """

    @row
    def note(left, right, total, raised, word, lowest, highest, seen, known):
        jit.stand_alone()
        for n in range(total.size):
            before, addend, after = cut(left[n], known.none), cut(right[n], known.none), cut(total[n], known.none)
            flags = cut(raised[n], known.none)
            least, most = cut(before & known.magnitude_mask, known.none), cut(addend & known.magnitude_mask, known.none)
            size = cut(after & known.magnitude_mask, known.none)
            finite, number, positive = least < known.above_finite, size < known.nan_first, after == size
            if lone:
                finite, number = finite & (before != known.lone_nan), number & (after != known.lone_nan)
            if flushes:
                least = least if least >= known.flush_below else known.none
                most = most if most >= known.flush_below else known.none
                size = size if size >= known.flush_below else known.none
            alike = (positive == (before == cut(before & known.magnitude_mask, known.none))) & (least == size)
            same = finite & (most != known.none) & (alike | (cut(least | size, known.none) == known.none))
            key = size if positive else cut(-size, known.none)
            counted = (flags & 1) << BITS | (flags & 4) >> 2
            word[n] += cut(counted + (1 << 2 * BITS if same else 0), known.none)
            lowest[n] = key if number & (key < lowest[n]) else lowest[n]
            highest[n] = key if number & (key > highest[n]) else highest[n]
            seen[n] |= flags

    return referable(note, flushes, lone)


@row
def begin(so_far, count):
    """Columns before their first addition."""
    for n in range(count):
        so_far[WORD + n], so_far[RAISED + n], so_far[LOWEST + n], so_far[HIGHEST + n] = 0, 0, NOTHING, -NOTHING


@row
def take(so_far, column, count, noted, output):
    """What so many columns from one on have counted, to as many outputs."""
    mine = so_far[column:]
    for slot in range(3):
        target, shift = noted[slot, output : output + count], slot * BITS
        for n in range(count):
            target[n] += cut((mine[WORD + n] >> shift) & FULL, mine[0])
    least, greatest = noted[LEAST, output : output + count], noted[GREATEST, output : output + count]
    seen = noted[SEEN, output : output + count]
    for n in range(count):
        least[n] = min(least[n], mine[LOWEST + n])
        greatest[n] = max(greatest[n], mine[HIGHEST + n])
        seen[n] |= mine[RAISED + n]


@row
def gather(so_far, count, noted, output):
    """What so many columns have counted, to one output."""
    overflowed, inexact, swamped, seen = 0, 0, 0, 0
    lowest, highest = noted[LEAST, output], noted[GREATEST, output]
    for n in range(count):
        word = so_far[WORD + n]
        overflowed += word & FULL
        inexact += (word >> BITS) & FULL
        swamped += word >> 2 * BITS
        seen |= so_far[RAISED + n]
        lowest, highest = min(lowest, so_far[LOWEST + n]), max(highest, so_far[HIGHEST + n])
    noted[OVERFLOWED, output] += overflowed
    noted[INEXACT, output] += inexact
    noted[SWAMPED, output] += swamped
    noted[LEAST, output], noted[GREATEST, output] = lowest, highest
    noted[SEEN, output] |= seen


@jit.once
def counted_level(across, flushes, lone):
    """loop(first, last, left, right, sums, flags, noted, outputs, numbers): a level's additions of outputs first ... last - 1.

    left and right were added; `flags` are those of each addition alone. All are flat: `across`, outputs run fastest, and up to SPAN of
    them go together; else an output's numbers do. noted is (SLOTS, outputs), int32; numbers are Limits, which `flushes` and `lone` go by
    as `noting` says.
    """
    note = noting(flushes, lone)
    room = 4 * SPAN

    def counted_level_loop(first, last, left, right, sums, flags, noted, outputs, numbers):
        known = Limits(*fixed_tuple(numbers, COUNT_LIMITS))
        total, pairs = sums.size, sums.size // outputs
        so_far = scratch(room, np.int32)
        narrow = across and outputs <= SPAN
        width = outputs * (SPAN // outputs) if narrow else SPAN  # in columns that an output may have several of
        apart, columns = (outputs, last - first) if across else (pairs, pairs)
        rows = pairs if across else last - first
        if narrow:
            apart, columns, rows = width, min(width, total), -(-total // width)
        for start in range(0, columns, width):
            count = min(width, columns - start)
            for number in range(rows):
                if not across or number % FULL == 0:
                    begin(so_far, count)
                at = number * apart + start + (0 if narrow else first if across else first * pairs)
                some = min(count, total - at)
                note(
                    left[at : at + some], right[at : at + some], sums[at : at + some], flags[at : at + some],
                    so_far[WORD : WORD + some], so_far[LOWEST : LOWEST + some], so_far[HIGHEST : HIGHEST + some],
                    so_far[RAISED : RAISED + some], known,
                )  # fmt: skip
                if not across:
                    gather(so_far, count, noted, first + number)
                elif number % FULL == FULL - 1 or number == rows - 1:
                    for column in range(0, count, outputs if narrow else count):
                        take(so_far, column, outputs if narrow else count, noted, 0 if narrow else first + start)

    return jit.compiled(counted_level_loop)
