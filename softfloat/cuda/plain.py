"""Sums of products on a GPU, an output for each thread, step by step by the scalar functions that the CPU's plain loop calls.

These serve every format and mode, and whatever `generated` leaves to them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.cuda.compiling import Kernel, numba_cuda, simulated
from softfloat.kernels import arith
from softfloat.kernels.accumulate import PRODUCT, RESULT, RUNNING, raised_by, random_of
from softfloat.kernels.carrier import decode, is_signalling, source_of
from softfloat.kernels.jit import bits_float, cut, float_bits, kernel, shift_left, shift_right
from softfloat.kernels.prng import DOT_PLANE, dot_words, unit_fraction
from softfloat.kernels.rounding import ROUNDERS, target_of, undecided
from softfloat.kernels.sticky import settling

cuda = numba_cuda()
ROW_P, ROW_S, ROW_R, ROW_A, ROW_B, ROW_C, ROW_W = range(7)
"""Rows of numbers: of the stages product, sum and result; of what operands are decoded by, and c; of what writes a sum's code."""


class Layout(NamedTuple):
    """Outputs: of matrices of so many rows and columns, one after the other; and where an output's operands are: how far it is from a
    matrix to the next, from a row, or column, to the next, and along the sum."""

    outputs: int
    rows: int
    length: int
    columns: int
    next_a: int
    row_a: int
    along_a: int
    next_b: int
    column_b: int
    along_b: int


class Turn(NamedTuple):
    """What a stage does with a value: the way it rounds; whether `quickly`, where numbers are ordinary."""

    way: str
    quick: bool = False

    @property
    def draws(self) -> bool:
        """Whether by random numbers."""
        return self.way.startswith("drawn")


class Sum(NamedTuple):
    """What kernels are made for: the stages that there are, the carrier, what comes in and what goes out."""

    product: Turn | None
    running: Turn
    result: Turn | None
    wide: bool
    addend: bool
    counting: bool
    each: bool


# -- steps -----------------------------------------------------------------------------------------------------------


@kernel
def noise_of(words, step):  # type: ignore[no-untyped-def]
    """The top 16 random bits of a rounding, of the eight whose words these are: `prng.dot_high`."""
    lane = step & 3
    low, high = (words[1] if lane == 1 else words[0]), (words[3] if lane == 3 else words[2])
    return ((low if lane < 2 else high) >> np.uint64((step & 4) << 2)) & np.uint64(0xFFFF)


@kernel
def nearest_in_place(value, target):  # type: ignore[no-untyped-def]
    """A number rounded to nearest even, not yet to the format's range: by adding, and taking away again, one whose last bit is the format's."""
    exponent = shift_right(float_bits(abs(value)), target.fraction_bits)
    taken = cut(max(exponent, target.lowest_exponent) + (target.fraction_bits - target.mantissa_bits), target.none)
    half = shift_left(target.unit, cut(target.fraction_bits - target.unit, target.none))
    grid = bits_float(shift_left(taken, target.fraction_bits) | half, target.one)
    total = (value + grid) - grid
    return -abs(total) if float_bits(value) < 0 else abs(total)


@cache
def fused_sum(turn: Turn, wide: bool) -> Callable[..., Any]:
    """kernel(x, y, z, target) -> x * y + z, its last bit sticky: `arith.fma`; to nearest by two instructions of the GPU, the odd of their results.

    A sum that is exact is both; else they are the numbers next to it, one of which is odd.
    """
    if not turn.quick or simulated():

        @kernel
        def by_parts(x, y, z, target):  # type: ignore[no-untyped-def]
            value, _ = arith.fma(x, y, z, target)
            return value

        return by_parts
    from numba.cuda import libdevice

    below, above = (libdevice.fma_rd, libdevice.fma_ru) if wide else (libdevice.fmaf_rd, libdevice.fmaf_ru)

    @kernel
    def between(x, y, z, target):  # type: ignore[no-untyped-def]
        down, up = below(x, y, z), above(x, y, z)
        return down if cut(float_bits(down) & target.unit, target.none) != target.none else up

    return between


@cache
def rounded(turn: Turn, site: int, exact: bool) -> Callable[..., Any]:
    """kernel(value, x, y, output, step, words, width, source, target, key, stream) -> (value as the stage reads it, code, flags).

    The value stands for x + y, or is `exact`.
    """
    round_value = ROUNDERS[turn.way]
    if turn.quick:

        @kernel
        def round_in_place(value, x, y, output, step, words, width, source, target, key, stream):  # type: ignore[no-untyped-def]
            total = nearest_in_place(value, target)
            if abs(total) <= decode(cut(target.largest, target.none), source):
                flags = target.tiny_inexact if abs(value) < target.tiny_positive else target.inexact
                return total, target.none, flags if total != value else target.none
            code, raised = round_value(value, target.zero, target)
            return decode(code, source), target.none, raised

        return round_in_place
    if not turn.draws:

        @kernel
        def round_near(value, x, y, output, step, words, width, source, target, key, stream):  # type: ignore[no-untyped-def]
            code, raised = round_value(value, target.zero, target)
            return decode(code, source), code, raised

        return round_near
    settled = settling("add")

    @kernel
    def round_by_numbers(value, x, y, output, step, words, width, source, target, key, stream):  # type: ignore[no-untyped-def]
        noise = noise_of(words, step)
        left = np.uint64(max(16 - width, 0))
        random = unit_fraction(noise >> left << left, 16)
        if undecided(value, random, target):
            random = random_of(noise, site, output, step, width, key, stream)
            if not exact:
                random = settled(x, y, y, value, 0.0, random, target)
        code, raised = round_value(value, random, target)
        return decode(code, source), code, raised

    return round_by_numbers


@cache
def stepping(product: Turn | None, running: Turn, wide: bool) -> Callable[..., Any]:
    """kernel(x, y, z, output, step, words, others, widths, stages, key, stream) -> (sum, code, flags, flags of its rounding, value before it).

    One product to the running sum: fused, or rounded before.
    """
    round_sum = rounded(running, RUNNING, False)
    if product is None:
        add_product = fused_sum(running, wide)

        @kernel
        def fused(x, y, z, output, step, words, others, widths, stages, key, stream):  # type: ignore[no-untyped-def]
            source, target = stages[2], stages[3]
            value, seen = add_product(x, y, z, target), target.none
            if value != value:  # else nothing was NaN
                numbers = (x == x) & (y == y)
                if numbers & (x * y != x * y):
                    seen = target.product_invalid
                seen = seen | raised_by(value, numbers & (z == z), target)
            total, code, last = round_sum(value, x * y, z, output, step, words, widths[1], source, target, key, stream)
            return total, code, cut(seen | last, target.none), last, value

        return fused
    round_product = rounded(product, PRODUCT, True)

    @kernel
    def apart(x, y, z, output, step, words, others, widths, stages, key, stream):  # type: ignore[no-untyped-def]
        source, target = stages[0], stages[1]
        exact = x * y
        seen = raised_by(exact, (x == x) & (y == y), target)
        term, _, first = round_product(
            exact, exact, exact, output, step, others, widths[0], source, target, key, stream
        )
        source, target = stages[2], stages[3]
        value, _ = arith.add(z, term, term, target)
        seen = seen | first | raised_by(value, (z == z) & (term == term), target)
        total, code, last = round_sum(value, z, term, output, step, words, widths[1], source, target, key, stream)
        return total, code, cut(seen | last, target.none), last, value

    return apart


@cache
def ending(running: Turn, result: Turn | None) -> Callable[..., Any]:
    """kernel(total, code, seen, output, width, integers, floats, key, stream) -> (code, flags): what becomes of a sum in the end.

    One that was rounded in place has no code yet.
    """
    round_value, quick = ROUNDERS[running.way], running.quick
    if result is None:

        @kernel
        def kept(total, code, seen, output, width, integers, floats, key, stream):  # type: ignore[no-untyped-def]
            if quick:
                target = target_of(integers[ROW_S], floats[ROW_S])
                code, _ = round_value(total, target.zero, target)
            return code, seen

        return kept
    round_result, draws = rounded(result, RESULT, True), result.draws

    @kernel
    def converted(total, code, seen, output, width, integers, floats, key, stream):  # type: ignore[no-untyped-def]
        source, target = source_of(integers[ROW_R], floats[ROW_R]), target_of(integers[ROW_R], floats[ROW_R])
        seen |= target.any_nan_signals if total != total else target.none
        words = dot_words(output, DOT_PLANE, RESULT, 0, key, stream) if draws else (key, key, key, key)
        _, code, last = round_result(total, total, total, output, 0, words, width, source, target, key, stream)
        return code, cut(seen | last, target.none)

    return converted


@cache
def counting_step(counts: bool) -> Callable[..., Any]:
    """kernel(tally, before, value, total, last) -> tally, with one addition more: `accumulate.count_row`."""
    if not counts:

        @kernel
        def uncounted(tally, before, value, total, last):  # type: ignore[no-untyped-def]
            return tally

        return uncounted

    @kernel
    def counted(tally, before, value, total, last):  # type: ignore[no-untyped-def]
        overflowed, inexact, swamped, least, most = tally
        overflowed += 1 if last & 4 != 0 else 0
        inexact += 1 if last & 1 != 0 else 0
        swamped += 1 if (value != before) & (total == before) else 0
        least = np.float64(total) if total < least else least
        most = np.float64(total) if total > most else most
        return overflowed, inexact, swamped, least, most

    return counted


# -- kernels ---------------------------------------------------------------------------------------------------------


@cache
def output_of(how: Sum) -> Callable[..., Any]:
    """kernel(total, code, seen, tally, at, codes, flags, counts, extremes, widths, integers, floats, key, stream): an output's results, written."""
    finish, counting, each = ending(how.running, how.result), how.counting, how.each

    @kernel
    def write(total, code, seen, tally, at, codes, flags, counts, extremes, widths, integers, floats, key, stream):  # type: ignore[no-untyped-def]
        code, seen = finish(total, code, seen, np.uint64(at), widths[2], integers, floats, key, stream)
        codes[at] = code
        if each:
            flags[at] = seen
        if counting:
            size = codes.size
            overflowed, inexact, swamped, least, most = tally
            counts[at], counts[size + at], counts[2 * size + at] = overflowed, inexact, swamped
            extremes[at], extremes[size + at] = (np.nan, np.nan) if least > most else (least + 0.0, most + 0.0)
        return seen

    return write


@cache
def beginning(how: Sum) -> Callable[..., Any]:
    """kernel(c, at, target, integers, floats) -> (sum before the first product, its code, flags)."""
    addend = how.addend

    @kernel
    def begin(c, at, target, integers, floats):  # type: ignore[no-untyped-def]
        if addend:
            source, code = source_of(integers[ROW_C], floats[ROW_C]), cut(c[at], target.none)
            return decode(code, source), code, target.invalid if is_signalling(code, source) else target.none
        return target.zero, target.none, target.none

    return begin


@cache
def plain(how: Sum, listed: bool) -> Kernel:
    """The kernel of sums, an output for each thread: of all outputs, or those that are `listed`, after their number.

    kernel(a, b, c, codes, flags, counts, extremes, listing, layout, widths, integers, floats, key, stream).
    """
    step, write, begin, count = (
        stepping(how.product, how.running, how.wide),
        output_of(how),
        beginning(how),
        counting_step(how.counting),
    )
    together, draws, both = not how.each, how.running.draws, how.product is not None and how.product.draws

    def plain_kernel(a, b, c, codes, flags, counts, extremes, listing, layout, widths, integers, floats, key, stream):  # type: ignore[no-untyped-def]
        outputs, rows, length, columns, next_a, row_a, along_a, next_b, column_b, along_b = layout
        source_a, source_b = source_of(integers[ROW_A], floats[ROW_A]), source_of(integers[ROW_B], floats[ROW_B])
        sources = source_of(integers[ROW_P], floats[ROW_P]), source_of(integers[ROW_S], floats[ROW_S])
        targets = target_of(integers[ROW_P], floats[ROW_P]), target_of(integers[ROW_S], floats[ROW_S])
        stages, target = (sources[0], targets[0], sources[1], targets[1]), targets[1]
        found = target.none
        if listed:
            outputs = listing[0]
        for number in range(cuda.grid(1), outputs, cuda.gridsize(1)):
            at = np.int64(listing[1 + number]) if listed else number
            within = at % (rows * columns)
            begin_a = at // (rows * columns) * next_a + within // columns * row_a
            begin_b = at // (rows * columns) * next_b + within % columns * column_b
            output = np.uint64(at)
            total, code, seen = begin(c, at, target, integers, floats)
            tally = (0, 0, 0, np.inf, -np.inf)
            words = others = (key, key, key, key)
            for place in range(length):
                if place & 7 == 0:
                    if draws:
                        words = dot_words(output, DOT_PLANE, RUNNING, place >> 3, key, stream)
                    if both:
                        others = dot_words(output, DOT_PLANE, PRODUCT, place >> 3, key, stream)
                first = cut(a[begin_a + place * along_a], target.none)
                second = cut(b[begin_b + place * along_b], target.none)
                signals = is_signalling(first, source_a) | is_signalling(second, source_b)
                before = total
                total, code, raised, last, value = step(
                    decode(first, source_a),
                    decode(second, source_b),
                    before,
                    output,
                    place,
                    words,
                    others,
                    widths,
                    stages,
                    key,
                    stream,
                )
                seen = cut(seen | raised | (target.invalid if signals else target.none), target.none)
                tally = count(tally, before, value, total, last)
            seen = write(
                total, code, seen, tally, at, codes, flags, counts, extremes, widths, integers, floats, key, stream
            )
            found = cut(found | seen, target.none)
        if together:  # noqa: SIM102 -- as in `elementwise.telling`, which the simulator cannot call from another file
            if found & ~flags[0] != 0:
                cuda.atomic.or_(flags, 0, np.int32(found))

    return Kernel(plain_kernel)
