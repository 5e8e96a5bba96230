"""Matrix products of float64, summed in order to nearest, by the CPU's own operations: laid out in panels for `kernels.wide_products`."""

from __future__ import annotations

import numpy as np

from softfloat.engine import elementwise, tiling
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.parameters import dots, wide_products
from softfloat.engine.programs import Program
from softfloat.engine.threads import share_units
from softfloat.environments import Rounding
from softfloat.kernels.spec import FLOAT64


def serves(planned: Program) -> bool:
    """Whether the CPU rounds as this sum does, where nothing is tiny and nothing overflows."""
    how, stages = planned.accumulator, dots()
    in_order = not (how.tree or how.reduction) and how.chains == 1
    sites = [planned.sites[n] for n in (stages.RUNNING, stages.PRODUCT) if n in planned.sites]
    nearest = all(x.format.spec == FLOAT64 and x.rule.rounding is Rounding.NEAREST_EVEN for x in sites)
    return elementwise.quick() and in_order and nearest and (how.product is not None or wide_products().SERVES_FUSED)


def _within(codes: Codes, least: float, most: float) -> bool:
    """Whether all numbers are zero or of a magnitude from `least` to `most`."""
    return bool(
        wide_products().ordinary()(flattened(codes).view(np.int64), *np.array([least, most]).view(np.int64)) >= 0
    )


def run(planned: Program, a: Codes, b: Codes, c: Codes | None) -> tuple[Codes, Codes] | None:
    """(sums, whether they are inexact) of codes of float64, onto c, a grid or many; None where an operand is not ordinary."""
    if a.ndim > 2:
        starts = [None] * len(a) if c is None else c
        found = [run(planned, *one) for one in zip(a, b, starts, strict=True)]
        if not found or any(one is None for one in found):
            return None
        sums, inexact = (np.stack(x) for x in zip(*filter(None, found), strict=True))
        return sums, inexact
    known = wide_products()
    if not (_within(a, known.LEAST, known.MOST) and _within(b, known.LEAST, known.MOST)):
        return None
    if not (c is None or _within(c, 1 / known.MOST_BEFORE, known.MOST_BEFORE)):
        return None
    (rows, length), columns = a.shape, b.shape[1]
    left, right = (
        tiling.panels([x.view(np.float64)], size, np.float64)[0] for x, size in ((a.T, known.ROWS), (b, known.COLUMNS))
    )
    shape = len(left) * known.ROWS, len(right) * known.COLUMNS
    sums, inexact = np.zeros(shape), np.ones(shape, np.uint8)
    inexact[:rows, :columns] = 0
    if c is not None:
        sums[:rows, :columns] = c.view(np.float64)
    loop = known.products(planned.accumulator.product is None)

    def work(first: int, last: int) -> int:
        loop(left, right, sums, inexact, first, last)
        return 0

    share_units(len(left) * len(right), work, known.ROWS * known.COLUMNS * length)
    return sums[:rows, :columns].view(np.uint64), inexact[:rows, :columns]
