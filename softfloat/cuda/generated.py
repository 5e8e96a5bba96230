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
from softfloat.cuda.elementwise import launch, telling
from softfloat.cuda.plain import ROW_A, ROW_B, ROW_C, ROW_W, Layout, Sum, ending
from softfloat.engine import tiling, unit_ways, units, ways
from softfloat.engine.parameters import is_unusual
from softfloat.engine.programs import Program
from softfloat.engine.unit_ways import UnitWay
from softfloat.engine.ways import SUBNORMAL, WIDE_HIGHEST, Generated, Way
from softfloat.formats import Format
from softfloat.kernels.carrier import decode, source_of
from softfloat.kernels.jit import bits_float, cut, float_bits
from softfloat.kernels.rounding import ROUNDERS, target_of
from softfloat.kernels.spec import CARRIER64, Overflow
from softfloat.kernels.steps import EXPONENT64
from softfloat.kernels.sums import threads
from softfloat.kernels.targets import target

cuda = numba_cuda()
WHOLE = 64
"""Numbers that rows of panels are filled up to, and products: as many as a block of any kernel takes."""


class Range(NamedTuple):
    """Magnitudes of numbers that a kernel serves beside zero: from `least` on, below `most`; and what they span."""

    least: float
    most: float
    extent: tiling.Extent


def way_of(planned: Program, begins: bool, counting: bool) -> Way | None:
    """The way of the CPU whose orders, roundings or unit serve a program, if there is one; whether sums begin with c, and are counted."""
    way = ways.choose(planned)
    if isinstance(way, Generated):
        return None if way.compensates or planned.goes_on or planned.wide or not way.in_order else way
    return None if counting or planned.goes_on else _unit_of(planned, begins)


def _unit_of(planned: Program, begins: bool) -> UnitWay | None:
    how, way = planned.accumulator, units.choose(planned)
    if way is None or how.scale_exponent or how.reduction or how.chains > 1 or not _in_place(planned):
        return None
    unit = way.unit
    whole = unit.kind in ("exact", "pairs") or (unit.kind == "aligned" and unit.term == 1)
    if not whole or threads.ThreadUnit(unit, False, False, begins).depth % way.group:
        return None
    quicker = None if begins else unit_ways.in_single(way, planned)
    if quicker is not None and quicker.unit.result == "cut" and tiling.always_fits(quicker, planned):
        return quicker
    way = units.careful(way, planned, begins)
    spans = [x.extent for x in ranges(way, planned.length, *planned.formats, planned.partials)]
    return way if tiling.fits(way, planned, spans[:2], spans[2] if begins else None) else None


def _in_place(planned: Program) -> bool:
    """Whether products come as they are, zeros after the last."""
    index, given = planned.index, planned.products
    return index is None or (np.array_equal(index[:given], np.arange(given)) and bool(np.all(index[given:] < 0)))


@lru_cache(maxsize=512)
def ranges(way: Way, length: int, first: Format, second: Format, addend: Format) -> tuple[Range, Range, Range]:
    """What operands may be, and c, so that `tiling.fits` holds of all of them: where a format has more, both give up as much."""
    spans = [tiling.widest(fmt) for fmt in (first, second, addend)]
    sums_too = way.bounded or way.carrier is np.float64
    highest = min(way.highest, 126 - length.bit_length() - 1) if sums_too else way.highest
    lack, excess = way.lowest - spans[0].low - spans[1].low, spans[0].high + spans[1].high - highest
    lows = [x.low + max(-(-lack // 2), 0) for x in spans[:2]]
    highs = [x.high - max(-(-excess // 2), 0) for x in spans[:2]]
    exact = way.widest < math.inf  # whose sums are as wide as products, c or not
    lows.append(max(spans[2].low, sum(lows) if exact else way.lowest))
    highs.append(min(spans[2].high, sum(highs) if exact else WIDE_HIGHEST if way.highest == WIDE_HIGHEST else highest))

    def served(fmt: Format, whole: tiling.Extent, low: int, high: int) -> Range:
        low, high = max(low, SUBNORMAL, whole.low), min(high, 128)
        least = 0.0 if low == whole.low else 2.0 ** (low + fmt.mantissa_bits)
        return Range(least, 2.0**high, tiling.Extent(low, high, True, False))

    found = [served(*x) for x in zip((first, second, addend), spans, lows, highs, strict=True)]
    return found[0], found[1], found[2]


# -- operands --------------------------------------------------------------------------------------------------------


@cache
def entering(planes: int) -> Kernel:
    """kernel(codes, values, marks, shape, steps, across, row, served, powers, integers, floats): operands as numbers, along the sum row by row.

    `shape`: matrices, products, and numbers that meet different ones; `steps`: how far it is from each to the next; `across`: products with
    those that are filled up with zeros, and numbers, of a panel. 1 among the marks: of such operands one is of no `served` range, and there at the
    end of all. `row` of integers and floats decodes them. A second plane has their powers of two, `powers`: the least, and that of zero.
    """

    def entering_kernel(codes, values, marks, shape, steps, across, row, served, powers, integers, floats):  # type: ignore[no-untyped-def]
        source = source_of(integers[row], floats[row])
        matrices, length, count = shape
        for i in range(cuda.grid(1), matrices * across[0] * count, cuda.gridsize(1)):
            line, rest = i % count, i // count
            k, matrix = rest % across[0], rest // across[0]
            value = 0.0
            if k < length:
                code = codes[matrix * steps[0] + k * steps[1] + line * steps[2]]
                value = np.float64(decode(cut(code, source.hidden), source))
            size = abs(value)
            if not ((size == 0.0) | ((size >= served[0]) & (size < served[1]))):
                marks[matrix * count + line] = 1
                marks[matrices * count] = 1
            at = (matrix * across[0] + k) * across[1] + line
            values[at] = value
            if planes > 1:
                power = bits_float(float_bits(size) & np.int64(EXPONENT64), 1.0)
                values[matrices * across[0] * across[1] + at] = max(power, powers[0]) if size != 0.0 else powers[1]

    return Kernel(entering_kernel)


class Panels(NamedTuple):
    """Operands as kernels take them: numbers, marks, numbers in a row, from one matrix to the next, 0 where all have the same, and to the next
    plane. Their arrays are to be kept."""

    values: Any
    marks: Any
    across: int
    next: int
    plane: int
    kept: tuple[Any, Any]


class Operand(NamedTuple):
    """Codes, how many matrices of how many products and numbers they are, how far it is from each to the next, and their row of numbers."""

    codes: Any
    shape: tuple[int, int, int]
    steps: tuple[int, int, int]
    row: int
    fmt: Format


def _panels(arrays: Arrays, way: Way, planned: Program, operand: Operand, served: Range, numbers: Any) -> Panels:
    (matrices, length, count), carrier = operand.shape, np.dtype(way.carrier)
    alone = operand.row == ROW_C
    across = 1 if alone else -(-length // WHOLE) * WHOLE, -(-count // WHOLE) * WHOLE
    planes, plane = 1 if alone else way.planes, matrices * math.prod(across)
    values, marks = arrays.empty((planes * plane,), carrier), arrays.filled((matrices * count + 1,), np.uint8, 0)
    flat = arrays.flat(values, carrier), arrays.flat(marks, np.dtype(np.uint8))
    powers = float((planned.accumulator.unpacked or operand.fmt).tiny), way.of_zeros(planned)
    launch(
        entering(planes), matrices * across[0] * count, arrays, operand.codes, *flat, operand.shape, operand.steps, across, operand.row,
        served[:2], powers, *numbers,
    )  # fmt: skip
    return Panels(*flat, across[1], math.prod(across) if matrices > 1 else 0, plane, (values, marks))


# -- results ---------------------------------------------------------------------------------------------------------


@cache
def leaving(how: Sum, unusual: bool, of_infinity: bool) -> Kernel:
    """kernel(values, told, marks, codes, flags, listing, layout, numbers, integers, floats, key, stream): sums as codes.

    Those whose operands are marked, or that are left open, are listed instead, after their number. `numbers`: the code of NaN, its
    flags, and how many random bits the result takes.
    """
    finish = ending(how.running, how.result)
    write = ROUNDERS["selected unusual" if unusual else "nearest"]
    real, converts, each, addend = np.float64 if how.wide else np.float32, how.result is not None, how.each, how.addend
    tell, still_open = telling(each), threads.OPEN

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
                total = decode(code, source_of(integers[ROW_C], floats[ROW_C]))
                code, seen = finish(total, writing.none, seen, np.uint64(at), numbers[2], integers, floats, key, stream)
            elif total != total:
                code = cut(numbers[0], writing.none)
            codes[at] = code
            if each:
                flags[at] = seen
            found = cut(found | seen, writing.none)
        tell(flags, found)

    return Kernel(leaving_kernel)


# -- calls -----------------------------------------------------------------------------------------------------------


@cache
def summing(what: threads.ThreadSum | threads.ThreadUnit) -> Written:
    """The kernel of a description."""
    return Written("sums", lambda capability: threads.text(what, capability))


def described(way: Way, counting: bool, begins: bool) -> threads.ThreadSum | threads.ThreadUnit:
    """What the kernel of a way is made from."""
    if isinstance(way, Generated):
        what = way.sum("grid", counting)
        return threads.ThreadSum(what.order, what.stage, counting, begins)
    assert isinstance(way, UnitWay)
    return threads.ThreadUnit(way.unit, unit_ways.phased(way.unit), way.carrier is np.float32, begins)


def run(
    way: Way, planned: Program, how: Sum, arrays: Arrays, operands: tuple[Any, Any, Any], results: tuple[Any, Any, Any, Any],
    layout: Layout, known: tuple[Any, ...],
) -> Any:  # fmt: skip
    """(the list of outputs that are left, after their number, and what must live until kernels have run); codes and flags of all others.

    Raises
    ------
    ValueError
        If an operand of a unit's sum is infinite, NaN, or of no range that its steps serve: no plain kernel has them.
    """
    what, (widths, *numbers, key, stream) = described(way, how.counting, how.addend), known
    codes, flags, counts, extremes = results
    outputs, rows, length, columns = layout[:4]
    matrices, carrier = outputs // (rows * columns), np.dtype(way.carrier)
    of_a, of_b = (matrices if further else 1 for further in (layout.next_a, layout.next_b))
    shapes = (of_a, length, rows), (of_b, length, columns), (1, 1, outputs)
    steps = (layout.next_a, layout.along_a, layout.row_a), (layout.next_b, layout.along_b, layout.column_b), (0, 0, 1)
    formats = *planned.formats, planned.partials
    given = [Operand(*x) for x in zip(operands, shapes, steps, (ROW_A, ROW_B, ROW_C), formats, strict=True)]
    of = ranges(way, length, *planned.formats, planned.partials)
    both = zip(given[: 2 + how.addend], of, strict=False)
    panels = [_panels(arrays, way, planned, operand, served, numbers) for operand, served in both]
    if isinstance(way, UnitWay) and any(arrays.number(x.kept[1][-1:]) for x in panels):
        raise ValueError(
            f"operands of {planned.accumulator} must be finite on a GPU, with magnitudes of {of[0].least:.4g} to {of[0].most:.4g} or 0; "
            "accepted: others on the CPU, x.cpu()"
        )
    a, b, c = panels[0], panels[1], panels[-1]
    values, told = arrays.empty((outputs,), carrier), arrays.empty((outputs,), np.uint8)
    listing = arrays.filled((1 + outputs,), np.int64, 0)
    flat = arrays.flat(values, carrier), arrays.flat(told, np.dtype(np.uint8)), arrays.flat(listing, np.dtype(np.int64))
    down, whole = -(-rows // what.block), -(-length // way.group) * way.group
    tiles = down * -(-columns // what.block)
    places = (a.values, b.values, c.values, *flat[:2], counts, extremes)
    sizes = rows, whole, columns, a.across, b.across, a.next, b.next, a.plane, b.plane, down, tiles, outputs
    random = way.site.width, int(key), int(stream)
    nan, words = ways.nan_flags_of(way), ways.numbers_of(way, planned).view(f"i{carrier.itemsize}")
    word = ctypes.c_int32 if carrier.itemsize == 4 else ctypes.c_int64
    arguments: list[Any] = [ctypes.c_uint64(x.__cuda_array_interface__["data"][0]) for x in places]
    arguments += [ctypes.c_uint64(x) for x in (*sizes, *random)] + [ctypes.c_int32(nan)] + [word(int(x)) for x in words]
    summing(what).launch(matrices * tiles, threads.THREADS, arrays.stream, arguments)
    rule = way.site.rule
    of_nan = int(target(way.site.format.spec, rule, CARRIER64).nan), nan, widths[2]
    marks = a.marks, b.marks, c.marks
    kernel = leaving(how, is_unusual(planned.partials.spec), rule.overflow is Overflow.NAN)
    launch(
        kernel, outputs, arrays, *flat[:2], marks, codes, flags, flat[2], tuple(layout), of_nan, *numbers, key, stream
    )
    return flat[2], (panels, values, told, listing)
