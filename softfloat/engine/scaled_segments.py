"""Sums of segments times their scales: in one pass where all of them are ordinary numbers, else elementwise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softfloat.engine import elementwise, folds, threads
from softfloat.engine.arguments import Codes, has_nan
from softfloat.engine.parameters import FLOAT32, dots, fast, scaled_segments
from softfloat.engine.problems import Blocks, Scales
from softfloat.engine.programs import Program, Site, segment_bounds
from softfloat.kernels.spec import Rounding

FUSED = "scales_fused", "first_fused", "second_fused"
"""Orders of which the loop has one."""
PLAIN = ""
"""That of sums without scales."""
NO_SCALES: Codes = np.zeros((0, 0), np.uint32)
WORTH_A_LOOP = 1 << 14
"""Products of sums and scales from which on a call is worth the loop, which takes a second to compile."""


def added(order: str, total: Codes, sums: Codes, a: Codes, b: Codes, site: Site) -> tuple[Codes, Codes] | None:
    """(codes, flags) of sums of segments, (segments, rows, columns), times scales a, (segments, rows), and b, (segments, columns), added one
    after the other to the total, all float32; None where the loop does not serve, or something is not ordinary."""
    rule, shape = site.rule, total.shape
    if not elementwise.quick() or order not in (PLAIN, *FUSED) or sums.ndim != 3 or sums.size < WORTH_A_LOOP:
        return None
    if site.format.spec != FLOAT32 or rule.rounding is not Rounding.NEAREST_EVEN or not rule.restated:
        return None
    codes, flags, loop = (
        np.array(total, np.uint32, order="C"),
        np.zeros(shape, np.uint8),
        scaled_segments().added(order),
    )
    known = [np.ascontiguousarray(x, np.uint32).view(np.int32) for x in (sums, a, b)]
    wild: list[bool] = []

    def work(first: int, last: int) -> int:
        wild.append(not loop(first, last, *known, codes.view(np.int32), flags))
        return 0

    threads.share_units(shape[0], work, max(sums.size // shape[0], 1))
    return None if any(wild) else (codes, flags)


class Scaling(NamedTuple):
    """How segments' sums are multiplied by their scales: the order, and float32 codes of those of a, (rows, segments), and b, (segments, columns)."""

    order: str
    a: Codes
    b: Codes

    @property
    def shape(self) -> tuple[int, int]:
        """Of the grid."""
        return len(self.a), self.b.shape[1]

    @property
    def finite(self) -> bool:
        """Whether all are."""
        return all(x.max(initial=0) < fast().INFINITE_BITS for x in (self.a, self.b))

    def panels(self, height: int, width: int) -> tuple[Codes, Codes]:
        """Of whole tiles: those of rows and those of columns, (segments, rows) and (segments, columns)."""
        found = []
        for x, size in ((self.a.T, height), (self.b, width)):
            some = x.shape[1]
            found.append(np.zeros((len(x), -(-some // size) * size), np.uint32))
            found[-1][:, :some] = x
        return found[0], found[1]

    def added(self, total: Codes, rows: Codes, segment: int, site: Site) -> tuple[Codes, Codes] | None:
        """Sums of segments from this one on times their scales, added to the sums so far one after the other: elementwise what
        `kernels.dot_steps.scaled_addition` does. None of NaNs, whose payloads go another way."""
        some = slice(segment, segment + len(rows))
        quick = added(self.order, total, rows, self.a.T[some], self.b[some], site)
        if quick is not None or has_nan(rows, site.format):
            return quick
        x, y = (np.broadcast_to(v, rows.shape) for v in (self.a.T[some, :, np.newaxis], self.b[some, np.newaxis]))
        first, last = {"first_fused": ((rows, x), y), "second_fused": ((rows, y), x)}.get(self.order, ((x, y), rows))

        def done(operation: str, *operands: Codes) -> tuple[Codes, Codes]:
            return elementwise.settled(operation, operands, site.format.spec, site.format, site.rule)

        products, flags = done("mul", *first)
        if self.order == "scales_added":
            products, raised = done("mul", products, last)
            total, more = folds.summed(np.concatenate([total[np.newaxis], products]), site.format, site.rule)
            return total, np.bitwise_or.reduce(flags | raised, axis=0) | more
        flags = np.bitwise_or.reduce(flags, axis=0)
        for product, by in zip(products, last, strict=True):
            total, raised = done("fma", product, by, total)
            flags |= raised
        return total, flags


def _codes_of(blocks: Blocks, products: Codes) -> Codes:
    """The scales in float32 of some products' elements, without signs, which say nothing: (products, outputs)."""
    found = np.repeat(blocks.scales[products // blocks.block[0]], blocks.block[1], axis=1)
    return found[:, : blocks.codes.shape[1]] & np.uint32(0x7FFFFFFF)


def scaling_of(planned: Program, scales: Scales) -> Scaling | None:
    """The scales of a grid's segments; None where they are added by other steps, or are no numbers of the stage's."""
    how, site = planned.accumulator, planned.sites[dots().LEVEL]
    if site.format.spec != FLOAT32 or site.rule.daz:
        return None
    begins = np.array(segment_bounds(how, planned.products)[:-1], np.int64)
    if scales.blocks is not None and all(x.scale.spec == FLOAT32 for x in scales.blocks):
        first, second = (_codes_of(x, begins) for x in scales.blocks)
        return Scaling(str(how.reduction[0].scaling), first.T, second)
    values = scales.at(begins)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = (np.ascontiguousarray(x, np.float32) for x in values)
    for x, exact in zip((a, b), values, strict=True):
        if x.size and not (x.max() < np.inf and (x == exact).all()):
            return None
    return Scaling(str(how.reduction[0].scaling), a.view(np.uint32), b.view(np.uint32))
