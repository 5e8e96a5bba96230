"""One block of all products, exact: partial sums that float64 holds, put together and rounded once.

Operands are cut into slices of so few bits that products of two slices add up in float64 without a rounding, in whatever order:
NumPy's own products serve. This is the scheme of Ozaki, Ogita, Oishi and Rump, "Error-free transformations of matrix
multiplication by using fast routines of matrix multiplication and its applications" (2012), with slices cut at the same places in all numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softfloat.engine import elementwise, threads, tiling
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded
from softfloat.engine.parameters import dots, paired, spared
from softfloat.engine.programs import Program
from softfloat.engine.tiling import Extent
from softfloat.engine.ways import Place, Random
from softfloat.kernels.spec import FLOAT64

PIECE = 1 << 18  # products of outputs in a line that are done at a time
MOST = 9  # products of slices that are still faster than the plain way
DRAWN = 64  # multiply-adds that take as long as one rounding by random bits
LOWEST, HIGHEST = -1000, 1000  # exponents that leave float64's normal numbers to everything


def serves(planned: Program) -> bool:
    """Whether everything is one block."""
    if (
        not elementwise.quick()
        or planned.kind != dots().EXACT
        or planned.wide
        or planned.stores.size != 1
        or planned.accumulator.reduction
        or planned.accumulator.chains > 1
        or not planned.is_plain
    ):
        return False
    running = planned.sites[dots().RUNNING]
    return not (planned.accumulator.store or running.rule.daz)


def _slices(values: Codes, span: Extent, count: int, bits: int) -> list[Codes]:
    """Numbers as sums of `count` multiples of powers of two, each of so many bits."""
    slices = []
    rest = values
    for number in range(count - 1, 0, -1):
        unit = 2.0 ** (span.low + number * bits)
        part = np.rint(rest * (1 / unit)) * unit
        slices.append(part)
        rest = rest - part
    return [*slices, rest]


def _cuts(spans: list[Extent], length: int) -> tuple[int, int, int, int] | None:
    """How many slices of each operand, and of how many bits; None if of too many.

    A slice of so many bits is a whole number of units, at most 2^bits.
    """
    widths = [x.high - x.low for x in spans]
    room = 53 - (length - 1).bit_length()
    best = None
    for first in range(1, MOST + 1):
        for second in range(1, MOST // first + 1):
            bits = -(-widths[0] // first), -(-widths[1] // second)
            if sum(bits) <= room and (best is None or first * second < best[0] * best[1]):
                best = first, second, *bits
    return best


def run(
    planned: Program,
    a: Codes,
    b: Codes,
    c: Codes | None,
    multiply: Callable[[Codes, Codes], Codes],
    place: Place,
    random: Random,
) -> tuple[Codes, Codes] | None:
    """(codes of the sums, flags), or None if the operands are not for this way.

    a and b are values, c as well, of the shape of `multiply(a, b)`, which sums products along k: rows and columns, or columns
    alone, which lie so among random addresses.
    """
    first, second = planned.formats
    spans = [tiling.extent(a, first), tiling.extent(b, second)]
    start = None if c is None else tiling.extent(c, planned.partials)
    if not all(x.finite for x in (*spans, *([start] if start is not None else []))):
        return None
    cuts = _cuts(spans, planned.length)
    low, high = sum(x.low for x in spans), sum(x.high for x in spans) + planned.length.bit_length() + 1
    if start is not None and not start.empty:
        low, high = min(low, start.low), max(high, start.high + 1)
    if cuts is None or low < LOWEST or high > HIGHEST:
        return None
    ours, theirs = _slices(a, spans[0], cuts[0], cuts[2]), _slices(b, spans[1], cuts[1], cuts[3])
    terms = [multiply(x, y) for x in ours for y in theirs]
    shape = terms[0].shape
    terms = terms if c is None else [*terms, c]
    site = planned.sites[dots().RUNNING]
    stacked = np.array([np.reshape(x, -1) for x in terms])
    magics = dots().grids(low, high + len(terms).bit_length())
    if site.width:
        return drawn(planned, stacked.reshape(len(terms), -1, shape[-1]), magics, shape, place, random)
    values, collected = np.empty(stacked.shape[1]), spared(paired().collected())

    def work(unit: int, stop: int) -> int:
        bins = np.empty((magics.size, paired().OUTPUTS))
        outputs = slice(unit, stop)
        collected.run((stop - unit) * len(stacked), stacked[:, outputs], magics, bins, values[outputs], *site.numbers)
        return 0

    threads.share(values.size, work)
    codes, flags = elementwise.settled("convert", [values.view(np.uint64)], FLOAT64, site.format, site.rule)
    return codes.reshape(shape), flags.reshape(shape)


def _row_by_row(x: Codes, y: Codes) -> Codes:
    """Dot products of rows; one number for all of y may stand for the whole."""
    summed: Codes = x.sum(axis=1) * y[0, 0] if y.size == 1 else np.einsum("nk,nk->n", x, y)
    return summed


def in_line(
    planned: Program, a: Codes, b: Codes, c: Codes | None, place: Place, random: Random
) -> tuple[Codes, Codes] | None:
    """The same of codes (k, outputs), c (outputs,), whose outputs lie in a row; some at a time."""
    start, found = None, []
    step = max(1, PIECE // planned.length)
    for first in range(0, a.shape[1], step):
        part = slice(first, first + step)
        views = [a[:, part].T, b[:, part].T if any(b.strides) else b[:1, :1]]
        x, y = (decoded(*operand) for operand in zip(views, planned.formats, planned.reading, strict=True))
        if c is not None:
            start = decoded(np.ascontiguousarray(c[part]), planned.partials, planned.entry)
        where = place._replace(first=place.first + first * place.column_stride)
        done = run(planned, x, y, start, _row_by_row, where, random)
        if done is None:
            return None
        found.append(done)
    codes, flags = zip(*found, strict=True)
    return np.concatenate(codes), np.concatenate(flags)


def drawn(
    planned: Program, terms: Codes, magics: Codes, shape: tuple[int, ...], place: Place, random: Random
) -> tuple[Codes, Codes]:
    """The same of sums of terms, (terms, rows, columns), rounded stochastically."""
    site = planned.sites[dots().RUNNING]
    codes, flags = np.empty(terms.shape[1:], site.format.dtype), np.empty(terms.shape[1:], np.uint8)
    begun, width = planned.begun.get(dots().RUNNING, 0), paired().OUTPUTS
    loop = spared(paired().collected_drawn())

    def work(start: int, stop: int) -> int:
        size = min((stop - start) * width, codes.size) * len(terms)
        room, numbers = np.empty((magics.size, width)), (*site.numbers, *place, begun, site.width, *random.words)
        loop.run(size, start, stop, terms, magics, room, codes, flags, *numbers)
        return 0

    threads.share_units(terms.shape[1] * -(-terms.shape[2] // width), work, DRAWN * width)
    return codes.reshape(shape), flags.reshape(shape)
