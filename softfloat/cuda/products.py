"""Sums of products on a GPU: an output for each thread, step by step by the scalar functions that the CPU's plain loop calls.

A block of threads has a square of outputs of a matrix product. It decodes a panel of each operand into the memory that its threads
share, and each thread adds the products of its output in their order. Outputs that are no grid read their operands themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.checks import is_integer
from softfloat.cuda.arrays import Arrays, Shape, library_of, refuse_host, shape_of, uploaded
from softfloat.cuda.compiling import Kernel, numba_cuda, simulated
from softfloat.cuda.elementwise import address, kind_of, laid_out, launch, places, refuse
from softfloat.engine import parameters
from softfloat.engine.options import Call
from softfloat.engine.parameters import Numbers, fits_narrow_carrier, is_unusual, way_of
from softfloat.engine.programs import Program, Site
from softfloat.formats import Format, refuse_wide
from softfloat.kernels import arith, loops
from softfloat.kernels.accumulate import PRODUCT, RESULT, RUNNING
from softfloat.kernels.carrier import decode, is_signalling, source_of
from softfloat.kernels.dot_state import FUSED, ROUNDED
from softfloat.kernels.jit import bits_float, cut, float_bits, kernel, shift_left, shift_right
from softfloat.kernels.prng import DOT_PLANE, dot_words, unit_fraction
from softfloat.kernels.projected import undecided_by_method
from softfloat.kernels.rounding import target_of, undecided
from softfloat.kernels.spec import CARRIER32, CARRIER64
from softfloat.kernels.sticky import settling
from softfloat.kernels.sums.whole import random_of

cuda = numba_cuda()
SIDE = 4 if simulated() else 16
"""Outputs of a block of threads, in a row and in a column; and products in a panel."""
BLOCKS = 1 if simulated() else 1 << 16
ROW_P, ROW_S, ROW_R, ROW_A, ROW_B, ROW_C = range(6)
"""Rows of numbers: of the stages product, sum and result; of what operands are decoded by, and c."""


class Contraction(Protocol):
    """A call of `bits.matmul` or its kind, its options and its accumulator checked."""

    formats: tuple[Format, Format]
    accumulator: Accumulator
    output: Format
    call: Call
    count: bool

    def program(self, length: int) -> Program:
        """The program for this length of k."""

    def check_idle(self, planned: Program) -> None:
        """Refuse options that do nothing."""

    def check_addresses(self, size: int, length: int) -> None:
        """Refuse what has no address for each of its random numbers."""

    def counted(self, planned: Program, counts: Any, extremes: Any) -> Any:
        """What additions did, from arrays whose first axis tells counts, and extremes, apart."""


class Turn(NamedTuple):
    """What a stage does with a value: the way it rounds, into an unusual format or not; whether `quickly`, where numbers are ordinary."""

    way: str
    unusual: bool
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
    round_value = loops.ROUNDERS[turn.way, turn.unusual]
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
    hangs, settled = undecided_by_method if "projected" in turn.way else undecided, settling("add")

    @kernel
    def round_by_numbers(value, x, y, output, step, words, width, source, target, key, stream):  # type: ignore[no-untyped-def]
        noise = noise_of(words, step)
        left = np.uint64(max(16 - width, 0))
        random = unit_fraction(noise >> left << left, 16)
        if hangs(value, random, target):
            random = random_of(noise, site, output, step, width, key, stream)
            if not exact:
                random = settled(x, y, y, value, 0.0, random, target)
        code, raised = round_value(value, random, target)
        return decode(code, source), code, raised

    return round_by_numbers


@kernel
def raised_by(value, number, target):  # type: ignore[no-untyped-def]
    """Flags of an operation itself, whose operands are numbers, or not all of them."""
    invalid = target.invalid if (value != value) & number else target.none
    return cut(invalid | (target.none if number else target.any_nan_signals), target.none)


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
    round_value, quick = loops.ROUNDERS[running.way, running.unusual], running.quick
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
def grid(how: Sum) -> Kernel:
    """The kernel of matrix products.

    kernel(a, b, c, codes, flags, counts, extremes, sizes, widths, integers, floats, key, stream). `sizes`: products of a batch, rows,
    length, columns, and how far it is from one to the next in a, and in b.
    """
    step, write, begin, count = (
        stepping(how.product, how.running, how.wide),
        output_of(how),
        beginning(how),
        counting_step(how.counting),
    )
    real, side, together = np.float64 if how.wide else np.float32, SIDE, not how.each
    draws, both = how.running.draws, how.product is not None and how.product.draws
    shortly, four = how.running.quick and not how.counting, np.uint64(4)

    @kernel
    def at_once(panel_a, panel_b, row, k, column, total, words, widths, stages, key, stream):  # type: ignore[no-untyped-def]
        """Four products, of a sum that neither draws nor is counted."""
        known, one = (words, words, widths, stages, key, stream), np.uint64(1)
        total, _, first, _, _ = step(panel_a[row, k], panel_b[k, column], total, key, 0, *known)
        total, _, second, _, _ = step(panel_a[row, k + one], panel_b[k + one, column], total, key, 0, *known)
        k = k + one + one
        total, _, third, _, _ = step(panel_a[row, k], panel_b[k, column], total, key, 0, *known)
        total, _, last, _, _ = step(panel_a[row, k + one], panel_b[k + one, column], total, key, 0, *known)
        return total, first | second | third | last

    def grid_kernel(a, b, c, codes, flags, counts, extremes, sizes, widths, integers, floats, key, stream):  # type: ignore[no-untyped-def]
        panel_a = cuda.shared.array((SIDE, SIDE), real)
        panel_b = cuda.shared.array((SIDE, SIDE), real)
        signals_a = cuda.shared.array(SIDE, np.int32)
        signals_b = cuda.shared.array(SIDE, np.int32)
        grids, rows, length, columns, next_a, next_b = sizes
        source_a, source_b = source_of(integers[ROW_A], floats[ROW_A]), source_of(integers[ROW_B], floats[ROW_B])
        sources = source_of(integers[ROW_P], floats[ROW_P]), source_of(integers[ROW_S], floats[ROW_S])
        targets = target_of(integers[ROW_P], floats[ROW_P]), target_of(integers[ROW_S], floats[ROW_S])
        stages, target = (sources[0], targets[0], sources[1], targets[1]), targets[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        of_row, of_column = np.uint64(y), np.uint64(x)  # numbers that may be negative would be looked at
        down, across = (rows + side - 1) // side, (columns + side - 1) // side
        found = target.none
        for tile in range(cuda.blockIdx.x, grids * down * across, cuda.gridDim.x):
            number, within = tile // (down * across), tile % (down * across)
            row, column = within // across * side + y, within % across * side + x
            inside = (row < rows) & (column < columns)
            at = (number * rows + row) * columns + column
            output = np.uint64(at)
            if y == 0:
                signals_a[x] = 0
                signals_b[x] = 0
            total, code, seen = begin(c, at if inside else 0, target, integers, floats)
            tally = (0, 0, 0, np.inf, -np.inf)
            words = others = (key, key, key, key)
            cuda.syncthreads()
            for first in range(0, length, side):
                value = target.zero
                if (row < rows) & (first + x < length):
                    entry = cut(a[number * next_a + row * length + first + x], target.none)
                    value = decode(entry, source_a)
                    if is_signalling(entry, source_a):
                        signals_a[y] = target.invalid
                panel_a[y, x] = value
                value = target.zero
                if (column < columns) & (first + y < length):
                    entry = cut(b[number * next_b + (first + y) * columns + column], target.none)
                    value = decode(entry, source_b)
                    if is_signalling(entry, source_b):
                        signals_b[x] = target.invalid
                panel_b[y, x] = value
                cuda.syncthreads()
                if inside:
                    k, end, place = np.uint64(0), np.uint64(min(side, length - first)), first
                    if shortly:
                        while k + four <= end:
                            total, raised = at_once(
                                panel_a, panel_b, of_row, k, of_column, total, words, widths, stages, key, stream
                            )
                            seen = cut(seen | raised, target.none)
                            k, place = k + four, place + 4
                    while k < end:  # numba-cuda makes more of a range than of this
                        if place & 7 == 0:
                            if draws:
                                words = dot_words(output, DOT_PLANE, RUNNING, place >> 3, key, stream)
                            if both:
                                others = dot_words(output, DOT_PLANE, PRODUCT, place >> 3, key, stream)
                        before = total
                        total, code, raised, last, value = step(
                            panel_a[of_row, k],
                            panel_b[k, of_column],
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
                        seen = cut(seen | raised, target.none)
                        tally = count(tally, before, value, total, last)
                        k, place = k + np.uint64(1), place + 1
                cuda.syncthreads()
            if inside:
                seen = cut(seen | signals_a[y] | signals_b[x], target.none)
                seen = write(
                    total, code, seen, tally, at, codes, flags, counts, extremes, widths, integers, floats, key, stream
                )
                found = cut(found | seen, target.none)
            cuda.syncthreads()
        if together:  # noqa: SIM102 -- a condition that is a constant alone, Numba leaves out with what it guards
            if found & ~flags[0] != 0:
                cuda.atomic.or_(flags, 0, np.int32(found))

    return Kernel(grid_kernel)


@cache
def line(how: Sum) -> Kernel:
    """The kernel of outputs that have operands each: as `grid`, but `sizes`: outputs, length, and how far it is to the next output's operand
    and to an output's next one, in a and in b.
    """
    step, write, begin, count = (
        stepping(how.product, how.running, how.wide),
        output_of(how),
        beginning(how),
        counting_step(how.counting),
    )
    together, draws, both = not how.each, how.running.draws, how.product is not None and how.product.draws

    def line_kernel(a, b, c, codes, flags, counts, extremes, sizes, widths, integers, floats, key, stream):  # type: ignore[no-untyped-def]
        outputs, length, next_a, along_a, next_b, along_b = sizes
        source_a, source_b = source_of(integers[ROW_A], floats[ROW_A]), source_of(integers[ROW_B], floats[ROW_B])
        sources = source_of(integers[ROW_P], floats[ROW_P]), source_of(integers[ROW_S], floats[ROW_S])
        targets = target_of(integers[ROW_P], floats[ROW_P]), target_of(integers[ROW_S], floats[ROW_S])
        stages, target = (sources[0], targets[0], sources[1], targets[1]), targets[1]
        found = target.none
        for at in range(cuda.grid(1), outputs, cuda.gridsize(1)):
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
                first, second = (
                    cut(a[at * next_a + place * along_a], target.none),
                    cut(b[at * next_b + place * along_b], target.none),
                )
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
        if together:  # noqa: SIM102 -- a condition that is a constant alone, Numba leaves out with what it guards
            if found & ~flags[0] != 0:
                cuda.atomic.or_(flags, 0, np.int32(found))

    return Kernel(line_kernel)


# -- calls -----------------------------------------------------------------------------------------------------------


def check_served(planned: Program) -> None:
    """Refuse sums that are not added one product at a time.

    Raises
    ------
    ValueError
        Naming what is not done on a GPU.
    """
    how = planned.accumulator
    for fmt in (*planned.formats, *(site.format for site in planned.sites.values())):
        refuse_wide(fmt, "fmt", "a sum on a GPU")
    one_by_one = planned.kind in (FUSED, ROUNDED) and planned.block == 1 and planned.index is None and planned.is_plain
    apart = how.tree or how.chains > 1 or how.reduction or planned.stores.any() or planned.closes.any()
    if not one_by_one or apart:
        raise ValueError(
            f"accumulator must add one product at a time on a GPU, without trees, chains, segments, stores and errors made up for, got {how!r}; "
            "accepted: fma and mul_add of any format, and others on the CPU: x.cpu()"
        )
    if planned.policy.propagate:
        raise ValueError(
            "nan must be a policy that passes no payloads on for sums on a GPU; accepted: 'canonical' and its kind, or on the CPU: x.cpu()"
        )
    if not planned.length:
        raise ValueError("k must be at least 1 for sums on a GPU; accepted: empty sums on the CPU, x.cpu()")


def _turn(site: Site) -> Turn:
    """How a stage rounds."""
    unusual = is_unusual(site.format.spec)
    if site.width:
        return Turn("drawn" if site.rule.restated else "drawn projected", unusual)
    way = way_of(site.rule, unusual)
    return Turn(way, unusual, way == "nearest" and not (site.rule.daz or site.rule.ftz))


def _numbers(planned: Program, narrow: bool) -> Numbers:
    """What kernels know of the stages and of what operands are decoded by; a stage that there is not has another's."""
    carrier, running = CARRIER32 if narrow else CARRIER64, planned.sites[RUNNING]
    stages = [planned.sites.get(site, running) for site in (PRODUCT, RUNNING, RESULT)]
    read = [(x.format, x.rule) for x in stages]
    read += [*zip(planned.formats, planned.reading, strict=True), (planned.partials, planned.entry)]
    rows = [parameters.numbers(fmt.spec, fmt.spec, rule, carrier) for fmt, rule in read]
    return np.array([x for x, _ in rows]), np.array([x for _, x in rows])


def _sum(
    contraction: Contraction,
    planned: Program,
    arrays: Arrays,
    shape: Shape,
    operands: tuple[Any, Any, Any],
    sizes: tuple[int, ...],
    gridded: bool,
) -> Any:
    """The sums of a call, whose operands are laid out; what the caller sees of them."""
    call, size = contraction.call, math.prod(shape)
    if planned.draws:
        contraction.check_addresses(size, planned.length)
    key, stream, _ = address(call.whole, call.stream) if planned.draws else (np.uint64(0), np.uint64(0), 0)
    formats = {*planned.formats, planned.output, *(site.format for site in planned.sites.values())}
    narrow = not planned.draws and all(fits_narrow_carrier(fmt.spec) for fmt in formats)
    sites = planned.sites
    how = Sum(
        product=_turn(sites[PRODUCT]) if PRODUCT in sites else None,
        running=_turn(sites[RUNNING]),
        result=_turn(sites[RESULT])._replace(quick=False) if RESULT in sites else None,
        wide=not narrow,
        addend=operands[2] is not None,
        counting=contraction.count,
        each=call.flags == "each",
    )
    carrier = CARRIER32 if narrow else CARRIER64
    codes, (flags, where) = arrays.empty(shape, planned.output.dtype), places(arrays, call, shape)
    counts = arrays.filled((3, *shape) if how.counting else (1,), np.int64, 0)
    extremes = arrays.empty((2, *shape) if how.counting else (1,), np.float64)
    a, b = (arrays.flat(x, kind_of(fmt.spec, carrier)) for x, fmt in zip(operands[:2], planned.formats, strict=True))
    c = a if operands[2] is None else arrays.flat(operands[2], kind_of(planned.partials.spec, carrier))
    widths = tuple(sites[site].width if site in sites else 0 for site in (PRODUCT, RUNNING, RESULT))
    results = (
        arrays.flat(codes, planned.output.dtype), where,
        arrays.flat(counts, np.dtype(np.int64)), arrays.flat(extremes, np.dtype(np.float64)),
    )  # fmt: skip
    known = (sizes, widths, *uploaded(_numbers(planned, narrow), arrays.device), key, stream)
    if gridded and size:
        tiles = sizes[0] * -(-sizes[1] // SIDE) * -(-sizes[3] // SIDE)
        grid(how).launch(min(tiles, BLOCKS), (SIDE, SIDE), arrays.stream, a, b, c, *results, *known)
    else:
        launch(line(how), size, arrays, a, b, c, *results, *known)
    seen = flags if how.each else arrays.number(flags) if size else 0
    if not how.counting:
        return codes, seen
    return codes, seen, contraction.counted(planned, counts, extremes)


def _addend(contraction: Contraction, arrays: Arrays, c: Any, shape: Shape) -> Any:
    """Codes of c, laid out as the outputs are."""
    if c is None:
        return None
    return laid_out(arrays, {"c": c}, contraction.accumulator.partials, shape)[0]


def _begun(contraction: Contraction, length: int) -> Program:
    """The program of a call, with what it does not do on a GPU refused."""
    refuse(contraction.call)
    planned = contraction.program(length)
    contraction.check_idle(planned)
    check_served(planned)
    return planned


def vecdot(contraction: Contraction, a: Any, b: Any, c: Any) -> Any:
    """`bits.vecdot` of codes on a GPU."""
    for name, x in (("a", a), ("b", b)):
        refuse_host(x, name)
    arrays, shape = library_of([a, b, c]), shape_of({"a": a, "b": b})
    shapes = tuple(a.shape), tuple(b.shape)
    if not all(shapes) or shapes[0][-1] != shapes[1][-1]:
        raise ValueError(
            f"shapes do not fit: a {shapes[0]}, b {shapes[1]}; accepted: (..., k) and (..., k) that broadcast"
        )
    outer, length = shape[:-1], shape[-1]
    planned = _begun(contraction, length)
    with arrays.current():
        first, second = contraction.formats
        [x], [y] = laid_out(arrays, {"a": a}, first, shape), laid_out(arrays, {"b": b}, second, shape)
        sizes = math.prod(outer), length, length, 1, length, 1
        return _sum(contraction, planned, arrays, outer, (x, y, _addend(contraction, arrays, c, outer)), sizes, False)


def total(contraction: Contraction, codes: Any, fmt: Format, axis: int | None) -> Any:
    """`bits.sum` of codes on a GPU."""
    arrays, shape = library_of([codes]), tuple(codes.shape)
    if axis is not None and (not is_integer(axis) or not -len(shape) <= axis < len(shape)):
        raise ValueError(f"axis must be None or an integer from {-len(shape)} to {len(shape) - 1}, got {axis!r}")
    with arrays.current():
        moved = arrays.reshaped(codes, (math.prod(shape),)) if axis is None else arrays.moved(codes, axis)
        length, outer = moved.shape[0], tuple(moved.shape[1:])
        planned = _begun(contraction, length)
        [x] = laid_out(arrays, {"codes": moved}, fmt, tuple(moved.shape))
        one = contraction.formats[1]
        ones = arrays.filled((1,), one.dtype, one.one_code)
        count = math.prod(outer)
        return _sum(contraction, planned, arrays, outer, (x, ones, None), (count, length, 1, count, 0, 0), False)


def matmul(contraction: Contraction, a: Any, b: Any, c: Any) -> Any:
    """`bits.matmul` of codes on a GPU."""
    for name, x in (("a", a), ("b", b)):
        refuse_host(x, name)
    arrays, (left, right) = library_of([a, b, c]), (tuple(a.shape), tuple(b.shape))
    if not left or not right:
        raise ValueError(f"a and b must not be scalars, got shapes {left} and {right}")
    rows, columns = (1, *left)[-2], right[-1] if len(right) > 1 else 1
    length = left[-1]
    try:
        batch = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        batch = (-1,)
    if length != right[-2 if len(right) > 1 else 0] or batch == (-1,):
        raise ValueError(
            f"shapes do not fit: a {left}, b {right}; accepted: (..., m, k) and (..., k, n) that broadcast"
        )
    shape = (*batch, *((rows,) if len(left) > 1 else ()), *((columns,) if len(right) > 1 else ()))
    planned = _begun(contraction, length)
    with arrays.current():
        first, second = contraction.formats
        # operands that all products share are there once
        wholes = [x if math.prod(x[:-2]) == 1 else (*batch, *x[-2:]) for x in (left, right)]
        [x], [y] = laid_out(arrays, {"a": a}, first, wholes[0]), laid_out(arrays, {"b": b}, second, wholes[1])
        steps = [0 if math.prod(x[:-2]) == 1 else math.prod(x[-2:]) for x in wholes]
        sizes = math.prod(batch), rows, length, columns, *steps
        return _sum(contraction, planned, arrays, shape, (x, y, _addend(contraction, arrays, c, shape)), sizes, True)
