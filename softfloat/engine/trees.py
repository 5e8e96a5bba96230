"""Sums in pairs level by level, each of which is one elementwise addition: in whatever format, range and deterministic rounding.

What `described` knows goes by its loops; these are for sums of few outputs, and for numbers that float32 does not hold.
"""

from __future__ import annotations

import math

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


def leaves(planned: Program, a: Codes, b: Codes) -> tuple[Codes, Codes] | None:
    """Rounded products of operands of one shape, or the first operand, and their flags. None of two formats."""
    product, (first, second) = planned.sites[dots().PRODUCT], planned.formats
    if are_leaves(planned, b):
        return a, np.zeros(a.shape, np.uint8)
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
    a, b = (np.broadcast_to(x, shape) for x in (a, b))
    step = max(1, PIECE // max(math.prod(shape) // max(shape[1], 1), 1))
    for start in range(0, shape[1], step):
        part = slice(start, start + step)
        made = leaves(planned, a[:, part], b[:, part])
        if made is None:
            return None
        total[part], seen[part] = _summed(*made, running)
        if c is not None:
            addend = np.ascontiguousarray(np.broadcast_to(c, shape[1:])[part])
            sums, raised = elementwise.add(total[part], addend, running.format, running.rule)
            total[part] = sums
            seen[part] |= raised
    return total, seen


def _summed(sums: Codes, flags: Codes, site: Site) -> tuple[Codes, Codes]:
    """Sums in pairs, and all their flags; an odd one goes up as it is."""
    while (count := len(sums)) > 1:
        even = count // 2 * 2
        pairs, seen = ((x[0:even:2], x[1:even:2]) for x in (sums, flags))
        joined, raised = elementwise.settled("add", pairs, site.format.spec, site.format, site.rule)
        sums = np.concatenate([joined, sums[even:]])
        flags = np.concatenate([raised | seen[0] | seen[1], flags[even:]])
    return sums[0], flags[0]
