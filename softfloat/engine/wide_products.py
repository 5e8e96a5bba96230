"""Sums of wide formats by loops of their own: exact ones, and matrix products of float64 to nearest by the CPU's operations, laid out in panels."""

from __future__ import annotations

import numpy as np

from softfloat.engine import elementwise
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.parameters import dots, numbers, wide_elements, wide_exact, wide_products
from softfloat.engine.programs import Program, Site
from softfloat.engine.threads import share_units
from softfloat.environments import Rounding
from softfloat.kernels.spec import CARRIER64, FLOAT64


def serves(planned: Program) -> bool:
    """Whether the CPU rounds as this sum does, where nothing is tiny and nothing overflows."""
    how, stages = planned.accumulator, dots()
    in_order = not (how.tree or how.reduction or how.compensation) and how.chains == how.block == 1
    sites = [planned.sites[n] for n in (stages.RUNNING, stages.PRODUCT) if n in planned.sites]
    nearest = all(x.format.spec == FLOAT64 and x.rule.rounding is Rounding.NEAREST_EVEN for x in sites)
    return elementwise.quick() and in_order and nearest and wide_elements().HAS_FUSED


def _within(codes: Codes, least: float, most: float) -> bool:
    """Whether all numbers are zero or of a magnitude from `least` to `most`."""
    return bool(
        wide_products().ordinary()(flattened(codes).view(np.int64), *np.array([least, most]).view(np.int64)) >= 0
    )


def run(planned: Program, a: Codes, b: Codes, c: Codes | None, codes: Codes, flags: Codes) -> bool:
    """Sums of codes of float64, onto c, of a grid or many, as (rows, columns) of all of them; False where an operand is not ordinary."""
    known = wide_products()
    within = _within(a, known.LEAST, known.MOST) and _within(b, known.LEAST, known.MOST)
    if not (within and (c is None or _within(c, 1 / known.MOST_BEFORE, known.MOST_BEFORE))):
        return False
    codes[...] = 0 if c is None else c.reshape(codes.shape)
    flags[...] = 0
    rows, length, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    loop = known.products(planned.accumulator.product is None)
    tiles, cost = -(-rows // known.ROWS) * -(-columns // known.COLUMNS), known.ROWS * known.COLUMNS * length
    shapes = (rows, length), (length, columns), (rows, columns), (rows, columns)
    grids = [x.reshape(len(codes) // rows, *shape) for x, shape in zip((a, b, codes, flags), shapes, strict=True)]
    for left, right, sums, inexact in zip(*grids, strict=True):
        operands = [np.ascontiguousarray(x).view(np.float64) for x in (left, right, sums)]

        def work(first: int, last: int, operands: list[Codes] = operands, inexact: Codes = inexact) -> int:
            loop(*operands, inexact, first, last)
            return 0

        share_units(tiles, work, cost)
    return True


def exact(site: Site, a: Codes, b: Codes, c: Codes, paired: bool, bits: Codes) -> tuple[Codes, Codes, Codes]:
    """(codes, flags, whether products add anything) of exact sums of codes of float64, each rounded once; `bits` are random ones."""
    if a.ndim > 2:
        parts = bits.reshape(len(a), -1) if bits.size else [bits] * len(a)
        many = [exact(site, x, y, z, paired, some) for x, y, z, some in zip(a, b, c, parts, strict=True)]
        codes, flags, adds = (np.stack(x) for x in zip(*many, strict=True))
        return codes, flags, adds
    rows, columns = (np.ascontiguousarray(x).view(np.int64) for x in (a.T if paired else a, b.T))
    size, start = c.size, flattened(c).view(np.int64)
    codes, flags, adds = np.empty(size, np.int64), np.empty(size, np.uint8), np.empty(size, np.bool_)
    known = numbers(FLOAT64, site.format.spec, site.rule._replace(daz=False), CARRIER64, wide=True)
    loop = wide_exact().sums()

    def work(first: int, last: int) -> int:
        loop(rows, columns, start, paired, codes, flags, adds, *known, bits, site.width, first, last)
        return 0

    share_units(size, work, rows.shape[1])
    made = codes.view(np.uint64).astype(site.format.dtype)
    return made.reshape(c.shape), flags.reshape(c.shape), adds.reshape(c.shape)
