"""Sums in pairs, level by level: every level is one elementwise addition, in whatever format and deterministic rounding."""

from __future__ import annotations

import math
import sys

import numpy as np

from softfloat.engine import arguments, elementwise
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program, Site

PIECE = 1 << 20  # products done at a time, as far as outputs are that short


def serves(planned: Program) -> bool:
    """Whether nothing is drawn, flushed or converted on the way."""
    if not planned.accumulator.tree or not elementwise.quick() or not planned.length or planned.index is not None:
        return False
    if planned.block > 1 or planned.accumulator.reduction or not planned.is_plain:
        return False
    running, product = planned.sites[dots().RUNNING], planned.sites[dots().PRODUCT]
    flushes = planned.daz or any(x.rule.daz or x.rule.ftz for x in (running, product))
    restated = running.rule.restated and product.rule.restated
    return not (flushes or running.width or product.width) and restated and product.format == running.format


def run(planned: Program, a: Codes, b: Codes, c: Codes | None) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None where operands are NaN; a and b broadcast to (k, ...), c to the rest."""
    product, running = planned.sites[dots().PRODUCT], planned.sites[dots().RUNNING]
    first, second = planned.formats
    plain = all(x == 0 for x in b.strides) and b.flat[0] == second.one_code and first == product.format
    if not plain and first != second:
        return None
    if arguments.has_nan(a, first) or arguments.has_nan(b, second):
        return None
    if c is not None and arguments.has_nan(c, planned.partials):
        return None
    shape = np.broadcast_shapes(a.shape, b.shape)
    total, seen = np.empty(shape[1:], planned.partials.dtype), np.empty(shape[1:], np.uint8)
    last = a.strides[0] == a.itemsize and a.shape[1:] == shape[1:]  # numbers of an output side by side stay so
    a, b = (np.moveaxis(np.broadcast_to(x, shape), 0, -1 if last else 0) for x in (a, b))
    step = max(1, PIECE // max(math.prod(shape) // max(shape[1], 1), 1))
    for start in range(0, shape[1], step):
        part = slice(start, start + step)
        where = part if last else (slice(None), part)
        leaves, raised = a[where], None
        if not plain:
            operands = [a[where], b[where]]
            leaves, raised = elementwise.settled("mul", operands, first.spec, product.format, product.rule)
        total[part], seen[part] = _summed(leaves, raised, running, -1 if last else 0)
    if c is not None:
        total, raised = elementwise.add(
            total, np.ascontiguousarray(c).reshape(total.shape), running.format, running.rule
        )
        seen |= raised
    return total, seen


def joined(planned: Program, codes: Codes, flags: Codes, c: Codes | None) -> tuple[Codes, Codes] | None:
    """(codes, flags) of sums in pairs of these, of shape (sums, ...), and c, like the rest; None where c is NaN."""
    running = planned.sites[dots().RUNNING]
    if c is not None and arguments.has_nan(c, planned.partials):
        return None
    total, seen = _summed(codes, flags, running, 0)
    if c is not None:
        total, raised = elementwise.add(total, np.ascontiguousarray(c), running.format, running.rule)
        seen = seen | raised
    return total, seen


def _halves(x: Codes) -> tuple[Codes, Codes]:
    """Numbers in even places of the last axis, and in odd ones: of pairs that lie side by side, the halves of words."""
    if not (x.flags.c_contiguous and x.itemsize < 8 and sys.byteorder == "little"):
        return x[..., 0::2], x[..., 1::2]
    words = x.view(np.dtype(f"u{2 * x.itemsize}"))
    return words.astype(x.dtype), (words >> np.array(8 * x.itemsize, words.dtype)).astype(x.dtype)


def _summed(leaves: Codes, flags: Codes | None, site: Site, axis: int) -> tuple[Codes, Codes]:
    """Sums in pairs over an axis, the first or the last, and all their flags; an odd one goes up as it is."""

    def some(x: Codes, start: int, stop: int) -> Codes:
        return x[start:stop] if axis == 0 else x[..., start:stop]

    def paired(x: Codes) -> tuple[Codes, Codes]:
        even = some(x, 0, count // 2 * 2)
        return (even[0::2], even[1::2]) if axis == 0 and x.ndim > 1 else _halves(even)

    while (count := leaves.shape[axis]) > 1:
        even = count // 2 * 2
        sums, raised = elementwise.settled("add", paired(leaves), site.format.spec, site.format, site.rule)
        if flags is not None:
            for seen in paired(flags):
                raised |= seen
        if count > even:
            odd = np.zeros_like(some(raised, 0, 1)) if flags is None else some(flags, even, count)
            sums = np.concatenate([sums, some(leaves, even, count)], axis=axis)
            raised = np.concatenate([raised, odd], axis=axis)
        leaves, flags = sums, raised
    total = leaves[0] if axis == 0 else leaves[..., 0]
    if flags is None:
        return total, np.zeros(total.shape, np.uint8)
    return total, flags[0] if axis == 0 else flags[..., 0]
