"""Sums of products on a GPU by kernels that `kernels.sums.threads` generates: operands as numbers in panels, sums, and what becomes of them.

They serve finite operands of ranges in which nothing leaves float32's normal numbers. Outputs of other operands, and such as random bits leave
open, are listed for the plain kernel.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.cuda.arrays import Arrays
from softfloat.cuda.compiling import Kernel, Written, numba_cuda
from softfloat.cuda.elementwise import launch
from softfloat.cuda.plain import ROW_A, ROW_B, ROW_C, ROW_S, ROW_W, Layout, Sum, ending
from softfloat.engine import tiling, ways
from softfloat.engine.programs import Program
from softfloat.engine.ways import SUBNORMAL, WIDE_HIGHEST, Generated
from softfloat.formats import Format
from softfloat.kernels import loops
from softfloat.kernels.carrier import decode, source_of
from softfloat.kernels.jit import cut
from softfloat.kernels.rounding import target_of
from softfloat.kernels.spec import CARRIER64, Overflow, target
from softfloat.kernels.sums import threads

cuda = numba_cuda()
SINGLE = np.dtype(np.float32)
WHOLE = 64
"""Numbers that rows of panels are filled up to, and products: as many as a block of any kernel takes."""


class Range(NamedTuple):
    """Magnitudes of numbers that a kernel serves beside zero: from `least` on, below `most`."""

    least: float
    most: float


def way_of(planned: Program) -> Generated | None:
    """The way of the CPU whose orders and roundings serve a program, if there is one."""
    way = ways.choose(planned)
    if not isinstance(way, Generated) or way.compensates or planned.goes_on:
        return None
    return way


@lru_cache(maxsize=512)
def ranges(way: Generated, length: int, first: Format, second: Format, addend: Format) -> tuple[Range, Range, Range]:
    """What operands may be, and c, so that `tiling.fits` holds of all of them: where a format has more, both give up as much."""
    spans = [tiling.widest(fmt) for fmt in (first, second, addend)]
    highest = min(way.highest, 126 - length.bit_length() - 1) if way.bounded else way.highest
    lack, excess = way.lowest - spans[0].low - spans[1].low, spans[0].high + spans[1].high - highest
    lows = [x.low + max(-(-lack // 2), 0) for x in spans[:2]] + [max(spans[2].low, way.lowest)]
    highs = [x.high - max(-(-excess // 2), 0) for x in spans[:2]]
    highs.append(min(spans[2].high, WIDE_HIGHEST if way.highest == WIDE_HIGHEST else highest))

    def served(fmt: Format, whole: tiling.Extent, low: int, high: int) -> Range:
        low, high = max(low, SUBNORMAL), min(high, 128)
        return Range(0.0 if low <= whole.low else 2.0 ** (low + fmt.mantissa_bits), 2.0**high)

    found = [served(*x) for x in zip((first, second, addend), spans, lows, highs, strict=True)]
    return found[0], found[1], found[2]


# -- operands --------------------------------------------------------------------------------------------------------


@cache
def entering() -> Kernel:
    """kernel(codes, values, marks, shape, steps, across, row, least, most, integers, floats): operands as numbers, along the sum row by row.

    `shape`: matrices, products, and numbers that meet different ones; `steps`: how far it is from each to the next. 1 among the marks: of such
    operands one is of no served range. `row` of integers and floats decodes them.
    """

    def entering_kernel(codes, values, marks, shape, steps, across, row, least, most, integers, floats):  # type: ignore[no-untyped-def]
        source = source_of(integers[row], floats[row])
        matrices, length, count = shape
        for i in range(cuda.grid(1), matrices * length * count, cuda.gridsize(1)):
            line, rest = i % count, i // count
            k, matrix = rest % length, rest // length
            code = codes[matrix * steps[0] + k * steps[1] + line * steps[2]]
            value = decode(cut(code, source.hidden), source)
            size = abs(value)
            if not ((size == 0.0) | ((size >= least) & (size < most))):
                marks[matrix * count + line] = 1
            values[(matrix * across[0] + k) * across[1] + line] = value

    return Kernel(entering_kernel)


class Panels(NamedTuple):
    """Operands as kernels take them: numbers, marks, numbers in a row, and from one matrix to the next, 0 where all have the same."""

    values: Any
    marks: Any
    across: int
    next: int
    keep: tuple[Any, Any]


def _panels(
    arrays: Arrays, codes: Any, shape: tuple[int, int, int], steps: tuple[int, int, int], row: int, served: Range, numbers: Any
) -> Panels:  # fmt: skip
    matrices, length, count = shape
    deep, across = (-(-x // WHOLE) * WHOLE for x in (length, count))
    values, marks = arrays.empty((matrices * deep * across,), SINGLE), arrays.filled((matrices * count,), np.uint8, 0)
    flat = arrays.flat(values, SINGLE), arrays.flat(marks, np.dtype(np.uint8))
    launch(entering(), math.prod(shape), arrays, codes, *flat, shape, steps, (deep, across), row, *served, *numbers)
    return Panels(*flat, across, deep * across if matrices > 1 else 0, (values, marks))


# -- results ---------------------------------------------------------------------------------------------------------


@cache
def leaving(how: Sum, of_infinity: bool) -> Kernel:
    """kernel(values, told, marks, codes, flags, listing, layout, numbers, integers, floats, key, stream): sums as codes.

    Those whose operands are marked, or that are left open, are listed instead, after their number. `numbers`: the code of NaN, its
    flags, and how many random bits the result takes.
    """
    finish = ending(how.running, how.result)
    write = loops.ROUNDERS["nearest", how.running.unusual]
    real, converts, each, addend = np.float64 if how.wide else np.float32, how.result is not None, how.each, how.addend
    together, still_open = not each, threads.OPEN

    def leaving_kernel(values, told, marks, codes, flags, listing, layout, numbers, integers, floats, key, stream):  # type: ignore[no-untyped-def]
        marks_a, marks_b, marks_c = marks
        outputs, rows, _, columns, next_a, _, _, next_b, _, _ = layout
        writing = target_of(integers[ROW_W], floats[ROW_W])
        found = writing.none
        for at in range(cuda.grid(1), outputs, cuda.gridsize(1)):
            within, matrix = at % (rows * columns), at // (rows * columns)
            left = told[at] == still_open
            left |= marks_a[(matrix if next_a else 0) * rows + within // columns] != 0
            left |= marks_b[(matrix if next_b else 0) * columns + within % columns] != 0
            if addend:
                left |= marks_c[at] != 0
            if left:
                listing[1 + cuda.atomic.add(listing, 0, 1)] = at
                continue
            total, seen = real(values[at]), cut(told[at], writing.none)
            if of_infinity and abs(total) == np.inf:
                total, seen = real(np.nan), cut(seen | numbers[1], writing.none)
            code, _ = write(total, writing.zero, writing)
            if converts:
                total = decode(code, source_of(integers[ROW_S], floats[ROW_S]))
                code, seen = finish(total, writing.none, seen, np.uint64(at), numbers[2], integers, floats, key, stream)
            elif total != total:
                code = cut(numbers[0], writing.none)
            codes[at] = code
            if each:
                flags[at] = seen
            found = cut(found | seen, writing.none)
        if together:  # noqa: SIM102 -- a condition that is a constant alone, Numba leaves out with what it guards
            if found & ~flags[0] != 0:
                cuda.atomic.or_(flags, 0, np.int32(found))

    return Kernel(leaving_kernel)


# -- calls -----------------------------------------------------------------------------------------------------------


@cache
def summing(what: threads.ThreadSum) -> Written:
    """The kernel of a description."""
    return Written("sums", lambda capability: threads.text(what, capability))


def run(
    way: Generated, planned: Program, how: Sum, arrays: Arrays, operands: tuple[Any, Any, Any], results: tuple[Any, Any, Any, Any],
    layout: Layout, known: tuple[Any, ...],
) -> Any:  # fmt: skip
    """Codes and flags of all outputs but those that it lists, after their number."""
    described = way.sum("grid", how.counting)
    what = threads.ThreadSum(described.order, described.stage, how.counting, how.addend)
    widths, *numbers, key, stream = known
    codes, flags, counts, extremes = results
    outputs, rows, length, columns = layout[:4]
    matrices = outputs // (rows * columns)
    of = ranges(way, length, *planned.formats, planned.partials)
    shapes = [
        (matrices if further else 1, length, count)
        for further, count in ((layout.next_a, rows), (layout.next_b, columns))
    ]
    steps = (layout.next_a, layout.along_a, layout.row_a), (layout.next_b, layout.along_b, layout.column_b)
    a = _panels(arrays, operands[0], shapes[0], steps[0], ROW_A, of[0], numbers)
    b = _panels(arrays, operands[1], shapes[1], steps[1], ROW_B, of[1], numbers)
    c = a if not how.addend else _panels(arrays, operands[2], (1, 1, outputs), (0, 0, 1), ROW_C, of[2], numbers)
    values, told = arrays.empty((outputs,), SINGLE), arrays.empty((outputs,), np.uint8)
    listing = arrays.filled((1 + outputs,), np.int64, 0)
    flat = arrays.flat(values, SINGLE), arrays.flat(told, np.dtype(np.uint8)), arrays.flat(listing, np.dtype(np.int64))
    down = -(-rows // what.block)
    tiles = down * -(-columns // what.block)
    places = (a.values, b.values, c.values, *flat[:2], counts, extremes)
    sizes = rows, length, columns, a.across, b.across, a.next, b.next, down, tiles, outputs
    random = way.site.width, int(key), int(stream)
    nan, words = tiling.nan_flags_of(way), tiling.numbers_of(way, planned).view(np.int32)
    given: list[Any] = [ctypes.c_uint64(x.__cuda_array_interface__["data"][0]) for x in places]
    given += [ctypes.c_uint64(x) for x in (*sizes, *random)] + [ctypes.c_int32(int(x)) for x in (nan, *words)]
    summing(what).launch(matrices * tiles, threads.THREADS, arrays.stream, given)
    rule, fmt = way.site.rule, way.site.format
    of_nan = int(target(fmt.spec, rule, CARRIER64).nan), nan, widths[2]
    marks = a.marks, b.marks, c.marks
    more = of_nan, *numbers, key, stream
    kernel = leaving(how, rule.overflow is Overflow.NAN)
    launch(kernel, outputs, arrays, *flat[:2], marks, codes, flags, flat[2], tuple(layout), *more)
    return flat[2], (a.keep, b.keep, c.keep, values, told, listing)
