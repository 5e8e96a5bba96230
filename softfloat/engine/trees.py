"""Sums in pairs level by level, each of which is one elementwise addition: in whatever format, range and deterministic rounding.

What `described` knows goes by its loops; these are for sums of few outputs, and for numbers that float32 does not hold.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from softfloat.engine import arguments, elementwise
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program, Site

PIECE = 1 << 20  # products done at a time, as far as outputs are that short


def serves(planned: Program, drawing: bool = False) -> bool:
    """Whether nothing is converted on the way, nor drawn, unless that is `drawing`'s affair."""
    if not planned.accumulator.tree or not elementwise.quick() or not planned.length or planned.index is not None:
        return False
    if planned.block > 1 or planned.accumulator.reduction or not planned.is_plain:
        return False
    running, product = planned.sites[dots().RUNNING], planned.sites[dots().PRODUCT]
    restated = running.rule.restated and product.rule.restated
    drawn = (running.width or product.width) and not drawing
    if drawn or not restated or product.format != running.format:
        return False
    # products and sums are read by the rule of what takes them
    return planned.daz == product.rule.daz == running.rule.daz


def flushes(planned: Program) -> bool:
    """Whether a product with 1, or a sum with 0, is not what it was."""
    rules = [planned.sites[site].rule for site in (dots().RUNNING, dots().PRODUCT)]
    gap = not planned.sites[dots().PRODUCT].format.subnormals  # codes where they would be are read as zero
    return planned.daz or gap or any(x.daz or x.ftz for x in rules)


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


def run(planned: Program, a: Codes, b: Codes, c: Codes | None) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None where operands are NaN; a and b broadcast to (k, ...), c to the rest."""
    running, (first, second) = planned.sites[dots().RUNNING], planned.formats
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
        made = leaves(planned, a[where], b[where])
        if made is None:
            return None
        total[part], seen[part] = _summed(*made, running, -1 if last else 0)
        if c is not None:
            addend = np.ascontiguousarray(np.broadcast_to(c, shape[1:])[part])
            sums, raised = elementwise.add(total[part], addend, running.format, running.rule)
            total[part] = sums
            seen[part] |= raised
    return total, seen


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
