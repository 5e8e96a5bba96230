"""Sums in pairs, in whatever format and deterministic rounding.

Grids go by the tiles of `kernels.subtrees`; what these do not serve, and outputs in a line, level by level: every level is one
elementwise addition.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from softfloat.engine import arguments, elementwise, threads, tiling, ways
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded
from softfloat.engine.parameters import FLOAT32, counted_levels, dots, subtrees, tiles
from softfloat.engine.programs import Program, Site
from softfloat.engine.ways import Tally
from softfloat.kernels.spec import Overflow

PIECE = 1 << 20  # products done at a time, as far as outputs are that short
FEW = 32  # outputs, of fewer of which a level is counted one after the other
LEAST_WORK = 1 << 16
"""Multiply-adds below which no tile is compiled for pairs."""


def serves(planned: Program, counting: bool = False, drawing: bool = False) -> bool:
    """Whether nothing is converted on the way, nor drawn, unless that is `drawing`'s affair; `counting`: and codes tell what happened."""
    if not planned.accumulator.tree or not elementwise.quick() or not planned.length or planned.index is not None:
        return False
    if planned.block > 1 or planned.accumulator.reduction or not planned.is_plain:
        return False
    running, product = planned.sites[dots().RUNNING], planned.sites[dots().PRODUCT]
    restated = running.rule.restated and product.rule.restated
    drawn = (running.width or product.width) and not drawing
    if drawn or not restated or product.format != running.format:
        return False
    fmt = running.format.spec
    comparable = fmt == FLOAT32 or (fmt.width < 32 and fmt.signed and fmt.zero)
    # products and sums are read by the rule of what takes them
    return planned.daz == product.rule.daz == running.rule.daz and (comparable or not counting)


def flushes(planned: Program) -> bool:
    """Whether a product with 1, or a sum with 0, is not what it was."""
    rules = [planned.sites[site].rule for site in (dots().RUNNING, dots().PRODUCT)]
    gap = not planned.sites[dots().PRODUCT].format.subnormals  # codes where they would be are read as zero
    return planned.daz or gap or any(x.daz or x.ftz for x in rules)


class Count:
    """What additions of some outputs have done so far: of these in a row each, or `across`, in a column."""

    def __init__(self, site: Site, outputs: int, across: bool) -> None:
        floor = counted_levels()
        self._format, self._across = site.format, across
        self._flushes = site.rule.daz or not site.format.subnormals
        known = floor.limits(site.format.spec, self._flushes)
        self._numbers: Codes = np.array(known, np.int64).astype(np.int32)  # a code's sign bit may be that of the word
        self._noted: Codes = np.zeros((floor.SLOTS, outputs), np.int32)
        self._noted[floor.LEAST], self._noted[floor.GREATEST] = floor.NOTHING, -floor.NOTHING

    def add(self, pairs: tuple[Codes, Codes], sums: Codes, flags: Codes) -> None:
        """A level, with the flags of each addition alone."""
        outputs = self._noted.shape[1]
        flat = [np.ascontiguousarray(x).reshape(-1) for x in (*pairs, sums, flags)]
        loop = counted_levels().counted_level(self._across, self._flushes, self._format.spec.lone_nan >= 0)

        def work(first: int, last: int) -> int:
            loop(first, last, *flat, self._noted, outputs, self._numbers)
            return 0

        if self._across and outputs <= counted_levels().SPAN:
            work(0, outputs)
        else:
            threads.share_units(outputs, work, sums.size // outputs)

    def see(self, flags: Codes) -> None:
        """Flags of numbers of each output."""
        every = np.bitwise_or.reduce(flags, axis=0 if self._across else -1)
        self._noted[counted_levels().SEEN] |= every.reshape(-1)

    def tell(self, counts: Codes, extremes: Codes) -> Codes:
        """To where the call's counts go; and the flags of all of it."""
        floor = counted_levels()
        counts[...] = self._noted[: len(counts)].reshape(counts.shape)
        for target, slot, none in zip(extremes, (floor.LEAST, floor.GREATEST), (1, -1), strict=True):
            keys = self._noted[slot]
            nothing = keys == none * floor.NOTHING
            codes = np.where(nothing, 0, np.abs(keys)).astype(np.uint32)
            codes = np.where(keys < 0, codes | np.uint32(self._format.sign_bit), codes).astype(self._format.dtype)
            values = decoded(codes, self._format)
            target[...] = np.where(nothing, none * math.inf, values).reshape(target.shape)
        seen: Codes = self._noted[floor.SEEN].astype(np.uint8)
        return seen


def are_leaves(planned: Program, b: Codes) -> bool:
    """Whether products are what the first operand is: the second, 1, changes nothing."""
    product, (first, second) = planned.sites[dots().PRODUCT], planned.formats
    one = not any(b.strides) and b.flat[0] == getattr(second, "one_code", None)
    return bool(one) and first == product.format and not flushes(planned)


def leaves(planned: Program, a: Codes, b: Codes) -> tuple[Codes, Codes | None] | None:
    """Rounded products of operands of one shape, and their flags; no flags of those that are the first operand. None of two formats."""
    product, (first, second) = planned.sites[dots().PRODUCT], planned.formats
    if are_leaves(planned, b):
        return a, None
    if first != second:
        return None
    return elementwise.settled("mul", [a, b], first.spec, product.format, product.rule)


def run(
    planned: Program, a: Codes, b: Codes, c: Codes | None, tally: Tally | None = None
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None where operands are NaN; a and b broadcast to (k, ...), c to the rest.

    A `tally`, of the outputs' shape, is filled.
    """
    running, (first, second) = planned.sites[dots().RUNNING], planned.formats
    if arguments.has_nan(a, first) or arguments.has_nan(b, second):
        return None
    if c is not None and arguments.has_nan(c, planned.partials):
        return None
    shape = np.broadcast_shapes(a.shape, b.shape)
    total, seen = np.empty(shape[1:], planned.partials.dtype), np.empty(shape[1:], np.uint8)
    last = a.strides[0] == a.itemsize and a.shape[1:] == shape[1:]  # numbers of an output side by side stay so
    last = last and (tally is None or math.prod(shape[1:]) < FEW)
    a, b = (np.moveaxis(np.broadcast_to(x, shape), 0, -1 if last else 0) for x in (a, b))
    step = max(1, PIECE // max(math.prod(shape) // max(shape[1], 1), 1))
    for start in range(0, shape[1], step):
        part = slice(start, start + step)
        where = part if last else (slice(None), part)
        made = leaves(planned, a[where], b[where])
        if made is None:
            return None
        products, raised = made
        count = None if tally is None else Count(running, total[part].size, not last)
        axis = -1 if last else 0
        if count is None:
            total[part], seen[part] = _summed(products, raised, running, axis)
        else:
            total[part] = _counted(products, raised, running, axis, count)
        if c is not None:
            addend = np.ascontiguousarray(np.broadcast_to(c, shape[1:])[part])
            sums, raised = elementwise.add(total[part], addend, running.format, running.rule)
            if count is not None:
                count.add((total[part], addend), sums, raised)
            total[part] = sums
            seen[part] |= raised
        if tally is not None and count is not None:
            seen[part] = count.tell(tally.counts[:, part], tally.extremes[:, part]).reshape(seen[part].shape)
    return total, seen


def by_tiles(planned: Program, operands: tiling.Operands, tally: Tally | None = None) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags) of a grid, or None where no tile serves these operands. A `tally` is filled."""
    a, b, c = operands.a, operands.b, operands.c
    way = ways.in_pairs(planned)
    if way is None or a.shape[0] * b.size < LEAST_WORK:
        return None
    start = None if c is None else tiling.extent(c, planned.partials)
    spans = [tiling.extent(x, fmt) for x, fmt in zip((a, b), planned.formats, strict=True)]
    if not tiling.fits(way, planned.length, spans, start):
        return None
    rows, columns = a.shape[0], b.shape[1]
    size, lanes = tiles().ROWS, tiles().LANES[way.carrier]
    down, across = tiling.panels([a.T], size, way.carrier)[0], tiling.panels([b], lanes, way.carrier)[0]
    shape = down.shape[0] * size, across.shape[0] * lanes
    begins = tiling.filled(c, *shape, way.carrier)
    values, flags = np.empty(shape, way.carrier), np.empty(shape, np.uint8)
    padded = Tally.room((0, 0) if tally is None else shape, way.carrier)
    numbers, of_nan = tiling.numbers_of(way, planned), tiling.nan_flags_of(way)
    loop = subtrees().pairwise(way.manner if tally is None else way.counted_manner, tally is not None)

    def work(first: int, last: int) -> int:
        loop(first, last, down, across, begins, c is not None, values, flags, numbers, of_nan, rows, columns, *padded)
        return 0

    threads.share_units(down.shape[0] * across.shape[0], work, planned.length * size * lanes)
    if tally is not None:
        tally.cut(padded)
    values, flags = values[:rows, :columns], flags[:rows, :columns]
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= of_nan
    return tiling.codes_of(values, planned.partials, way.site), flags


def _halves(x: Codes) -> tuple[Codes, Codes]:
    """Numbers in even places of the last axis, and in odd ones: of pairs that lie side by side, the halves of words."""
    if not (x.flags.c_contiguous and x.itemsize < 8 and sys.byteorder == "little"):
        return x[..., 0::2], x[..., 1::2]
    words = x.view(np.dtype(f"u{2 * x.itemsize}"))
    return words.astype(x.dtype), (words >> np.array(8 * x.itemsize, words.dtype)).astype(x.dtype)


def _paired(x: Codes, axis: int, count: int) -> tuple[Codes, Codes]:
    """The first `count` numbers of an axis, the first or the last, in even places and in odd ones."""
    even = x[:count] if axis == 0 else x[..., :count]
    return (even[0::2], even[1::2]) if axis == 0 and x.ndim > 1 else _halves(even)


def _odd(x: Codes, axis: int) -> Codes:
    """The last number of the axis."""
    return x[-1:] if axis == 0 else x[..., -1:]


def _summed(leaves: Codes, flags: Codes | None, site: Site, axis: int) -> tuple[Codes, Codes]:
    """Sums in pairs over an axis, and all their flags; an odd one goes up as it is."""
    while (count := leaves.shape[axis]) > 1:
        even = count // 2 * 2
        pairs = _paired(leaves, axis, even)
        sums, raised = elementwise.settled("add", pairs, site.format.spec, site.format, site.rule)
        if flags is not None:
            for seen in _paired(flags, axis, even):
                raised |= seen
        if count > even:
            odd = np.zeros_like(_odd(raised, axis)) if flags is None else _odd(flags, axis)
            sums = np.concatenate([sums, _odd(leaves, axis)], axis=axis)
            raised = np.concatenate([raised, odd], axis=axis)
        leaves, flags = sums, raised
    total = leaves[0] if axis == 0 else leaves[..., 0]
    if flags is None:
        return total, np.zeros(total.shape, np.uint8)
    return total, flags[0] if axis == 0 else flags[..., 0]


def _counted(leaves: Codes, flags: Codes | None, site: Site, axis: int, so_far: Count) -> Codes:
    """The same sums; what their additions do goes to the count, and all flags."""
    if flags is not None:
        so_far.see(flags)
    while (count := leaves.shape[axis]) > 1:
        even = count // 2 * 2
        left, right = (np.ascontiguousarray(x) for x in _paired(leaves, axis, even))
        sums, raised = elementwise.settled("add", (left, right), site.format.spec, site.format, site.rule)
        so_far.add((left, right), sums, raised)
        leaves = sums if count == even else np.concatenate([sums, _odd(leaves, axis)], axis=axis)
    return leaves[0] if axis == 0 else leaves[..., 0]
