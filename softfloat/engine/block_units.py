"""Products of operands in block formats whose terms are aligned: laid out for the loops of units from their codes, in one pass."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softfloat.engine import generated, stacks, tiling, unit_ways, units
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.decoding import decoded
from softfloat.engine.parameters import FLOAT32
from softfloat.engine.problems import Blocks, Scales
from softfloat.engine.programs import Program
from softfloat.engine.ways import Place, Random
from softfloat.formats import ROSTER, Format

LONGEST_CODE = 8
"""Bits of a code, of elements and of scales: scales have a table, and are read as bytes."""


def leading_power(values: Codes, fmt: Format) -> Codes:
    """2^exponent of finite numbers of a format, a subnormal's that of its format; 0 for everything else."""
    powers = np.ldexp(1.0, np.frexp(values)[1] - 1)
    return np.where((values > 0.0) & np.isfinite(values), np.maximum(powers, fmt.tiny), 0.0)


@lru_cache(maxsize=256)
def _of_scales(scale: Format, of_zeros: float, carrier: type = np.float64) -> Codes:
    """For each code of a scale its value and its power of two."""
    values = np.abs(decoded(np.arange(1 << scale.bits, dtype=scale.dtype), scale))  # a sign says nothing
    powers, tiny = leading_power(values, scale), values < ROSTER["float32"].tiny
    found: Codes = np.array([values, np.where(powers == 0.0, of_zeros, powers)], carrier)
    if carrier is np.float32:  # subnormal, which the host might flush
        found[0, tiny] = np.ldexp(values[tiny], 149).astype(np.int32).view(np.float32)
    return found


def _flat(array: Codes) -> tuple[Codes, tuple[int, int]]:
    """(a flat array, how far it is in it from one entry to the next along both axes)."""
    if array.T.flags.c_contiguous:
        return flattened(array.T), (1, array.shape[0])
    return flattened(array), (array.shape[1], 1)


@lru_cache(maxsize=512)
def _follows(planned: Program, products: int) -> bool:
    """Whether products are summed as they come, with nothing but more at the end."""
    index = planned.index
    return index is None or np.array_equal(index[:products], np.arange(products))


class _Operand(NamedTuple):
    """An operand in a block format, as `stacks.in_pieces` takes it: codes and scales, whose precision is of so many bits, of a first product;
    how many products there are with what fills a block up, and the power of two of that."""

    format: Format
    bits: int
    sizes: tuple[int, int, int]
    source: generated.Source
    lying: generated.Lying
    filled: int
    of_nothing: float

    def lay_out(self, part: slice, panels: Codes) -> stacks.Spans:
        """Numbers and powers of two."""
        target, products = panels[0], self.lying.length
        target[:, :, products:] = 0.0
        target[1, :, products : self.filled] = self.of_nothing
        return self.source.read(target, self.lying)

    def extent(self, found: stacks.Spans) -> tiling.Extent:
        """What the numbers span."""
        return units.extent_with_scales(*found, self.format, self.bits)


def _operand_of(planned: Program, which: int, blocks: Blocks, way: unit_ways.UnitWay, bits: int) -> _Operand | None:
    how, of_zeros = planned.accumulator, way.of_zeros(planned)
    own = how.aligned is not None and how.aligned.group == 1
    products, wide = blocks.codes.shape
    (codes, steps), (scales, scale_steps) = _flat(blocks.codes), _flat(blocks.scales)
    source = way.source(planned, which, codes)
    if source is None:
        return None
    known = _of_scales(blocks.scale, of_zeros, way.carrier)
    scaling = generated.BlockScales(scales, known, "each" if own else "share", blocks.block, scale_steps)
    sizes = 1, wide, -(-planned.length // way.group) * way.group
    lying, of_nothing = generated.Lying(0, *steps, 0, products, wide), of_zeros * of_zeros if own else of_zeros
    return _Operand(
        planned.formats[which], bits, sizes, source._replace(scaling=scaling), lying, planned.length, of_nothing
    )


def _way_of(planned: Program, bits: tuple[int, int], work: int) -> unit_ways.UnitWay | None:
    """The way of a unit whose terms are aligned, products of scaled numbers among them, if so many multiply-adds are worth it."""
    way = unit_ways.choose(planned)
    if way is None or way.unit.kind != "aligned" or not units.terms_fit(planned, bits):
        return None
    return way if unit_ways.worth_grid(planned, work) else None


@lru_cache(maxsize=512)
def _in_single(way: unit_ways.UnitWay, planned: Program, bits: tuple[int, int]) -> unit_ways.UnitWay | None:
    """The way in float32, if that has all elements, and terms of them times scales of so many bits but for their exponents, without c."""
    if sum(bits) + unit_ways.term_bits(planned) > FLOAT32.mantissa_bits + 1:
        return None
    single = ROSTER["float32"]
    if any(fmt.smallest_subnormal < single.tiny or fmt.max > single.max for fmt in planned.formats):
        return None
    return unit_ways.in_single(way, planned)


def _of_first(done: stacks.Done | None) -> tuple[Codes, Codes] | None:
    return None if done is None else (done.codes[0], done.flags[0])


def run(planned: Program, scales: Scales, c: Codes | None, place: Place, random: Random) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags) of operands in block formats; None if they have to be spread out. `c` are codes."""
    if scales.blocks is None:
        return None
    a, b = scales.blocks
    longest = max(x.bits for y in (a, b) for x in (y.element, y.scale))
    if longest > LONGEST_CODE or not _follows(planned, a.codes.shape[0]):
        return None
    way = _way_of(planned, scales.bits, a.codes.shape[1] * b.codes.size)
    if way is None:
        return None
    start = None if c is None else decoded(np.ascontiguousarray(c), planned.partials, planned.entry)[np.newaxis]
    for each in (_in_single(way, planned, scales.bits) if c is None else None, way):
        if each is None:
            continue
        first, second = (
            _operand_of(planned, which, blocks, each, scales.bits[which]) for which, blocks in enumerate((a, b))
        )
        if first is None or second is None:
            continue
        found = _of_first(stacks.in_pieces(each, planned, (first, second), start, place, random))
        if found is not None:
            return found
    return None


def spread(
    planned: Program, scales: Scales, a: Codes, b: Codes, c: Codes | None, place: Place, random: Random
) -> tuple[Codes, Codes] | None:
    """The same of values a, (rows, k), and b, (k, columns), each of which has a scale; c has values."""
    how = planned.accumulator
    way = None if how.aligned is None or how.reduction else _way_of(planned, scales.bits, a.shape[0] * b.size)
    if way is None:
        return None
    operands, each, group = [], scales.each, way.unit.group
    known = (a, each.a, each.leads_a), (b, each.b, each.leads_b)
    for axis, (x, own, leads), fmt, bits in zip((1, 0), known, planned.formats, scales.bits, strict=True):
        values = stacks.filled_up(x, axis, planned, group)
        powers = units.leads(values, how.unpacked or fmt, how, stacks.filled_up(leads, axis, planned, group))
        with np.errstate(invalid="ignore"):
            values = values * stacks.filled_up(own, axis, planned, group, 1.0)
        operands.append(stacks.Scaled(fmt, values, powers, bits, axis == 1))
    start = None if c is None else c[np.newaxis]
    return _of_first(stacks.in_pieces(way, planned, (operands[0], operands[1]), start, place, random))
