"""Sums of segments times their scales, elementwise: where loops do not add them up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softfloat.engine import elementwise
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FLOAT32, dots, fast
from softfloat.engine.problems import Blocks, Scales
from softfloat.engine.programs import Program, Site, segment_bounds


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

    def added(self, total: Codes, sums: Codes, segment: int, site: Site) -> tuple[Codes, Codes]:
        """A segment's sums times their scales, added to the sums so far, and flags: elementwise what `kernels.dot_steps.scaled_addition` does."""
        x, y = self.a[:, segment, np.newaxis], self.b[segment, np.newaxis]
        first, last = {"first_fused": ((sums, x), y), "second_fused": ((sums, y), x)}.get(self.order, ((x, y), sums))

        def done(operation: str, *operands: Codes) -> tuple[Codes, Codes]:
            spread = [np.broadcast_to(x, sums.shape) for x in operands]
            return elementwise.settled(operation, spread, site.format.spec, site.format, site.rule)

        product, flags = done("mul", *first)
        if self.order == "scales_added":
            product, raised = done("mul", product, last)
            total, more = done("add", total, product)
            return total, flags | raised | more
        total, raised = done("fma", product, last, total)
        return total, flags | raised


def _codes_of(blocks: Blocks, products: Codes) -> Codes:
    """The scales in float32 of some products' elements, without signs, which say nothing: (products, outputs)."""
    found = blocks.scales[products // blocks.block[0]]
    if blocks.block[1] > 1:
        found = np.repeat(found, blocks.block[1], axis=1)
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
