"""Products of operands in block formats whose terms are aligned: laid out for the loops of units from their codes, in one pass."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine import generated, pools, stacks, threads, tiling, unit_ways, units
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import NO_TABLE, decoded
from softfloat.engine.parameters import FLOAT32, tiles
from softfloat.engine.problems import Blocks, Scales
from softfloat.engine.programs import Program, arranged
from softfloat.engine.ways import Panels, Place, Random
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


Arrays = tuple[Codes, Codes]
"""Codes of elements and of scales."""
Lies = tuple[generated.Lying, Any, Format, tuple[int, int], tuple[int, int]]
"""How an operand lies, and the type of its codes; the format of scales, a block, and how far it is from one's scale to the next's."""


def _flat(array: Codes) -> tuple[Codes, tuple[int, int]]:
    """(an array whose entries follow each other, how far it is in it from one to the next along both axes)."""
    if array.flags.f_contiguous:
        return array.T, (1, array.shape[0])
    return np.ascontiguousarray(array), (array.shape[1], 1)


def _laid(blocks: Blocks) -> tuple[Arrays, Lies]:
    """(an operand's arrays, how they lie)."""
    (codes, steps), (scales, scale_steps) = _flat(blocks.codes), _flat(blocks.scales)
    lying = generated.Lying(0, *steps, 0, *blocks.codes.shape)
    return (codes, scales), (lying, codes.dtype, blocks.scale, blocks.block, scale_steps)


class _Product(NamedTuple):
    """A product of operands that lie so, but for where: operands, their loop and its tiles, multiply-adds of one, the memory that panels take and,
    if tiles are not whole, what loops write, and the outputs' shape."""

    operands: list[tiling.Operand]
    job: generated.Job
    tiles: int
    cost: int
    wanted: pools.Wanted
    shape: tuple[int, int]


@lru_cache(maxsize=512)
def _settled(
    planned: Program, way: unit_ways.UnitWay, bits: tuple[int, int], lies: tuple[Lies, Lies]
) -> _Product | None:
    """A product of operands whose scales have so many bits; None if the carrier does not hold their numbers."""
    (rows, columns), turns, floor = (x[0].outputs for x in lies), way.turns(planned), tiles()
    of_a, of_b, whole = stacks.shapes_of(way, rows, turns, columns)
    wanted = (
        ((1, *of_a), way.carrier),
        ((1, *of_b), way.carrier),
        (whole, way.results.dtype),
        (whole, np.dtype(np.uint8)),
    )
    nowhere, operands = [np.broadcast_to(np.zeros((), kind), shape) for shape, kind in wanted], []
    for which, (lying, kind, scale, block, steps) in enumerate(lies):
        source = way.source(planned, which, np.empty(0, kind))
        if source is None:
            return None
        known = _of_scales(scale, way.of_zeros(planned), way.carrier)
        source = source._replace(scaling=generated.BlockScales(generated.NOWHERE, known, way.unit.term, block, steps))
        reader = source.reader(nowhere[which], lying)
        operands.append(tiling.Operand(planned.formats[which], source, lying, turns, bits=bits[which], reader=reader))
    a, b, values, flags = nowhere
    panels = Panels(a, b, a, values, flags, rows, columns, False)
    job, cost = way.grids(planned, panels, Place(0, 0, 0), Random(0, 0)), turns * floor.ROWS * floor.LANES[way.carrier]
    return _Product(operands, job, panels.tiles, cost, wanted[: 2 if whole == (rows, columns) else 4], (rows, columns))


def summed(
    way: unit_ways.UnitWay, product: _Product, planned: Program, arrays: tuple[Arrays, Arrays], place: Place, random: Random
) -> tuple[Codes, Codes] | None:  # fmt: skip
    """(codes, flags) of a product of these codes and scales; None if the way does not serve them."""
    made = np.empty(product.shape, planned.partials.dtype), np.empty(product.shape, np.uint8)
    room, spans, raised = pools.borrow(product.wanted), list[tiling.Extent](), list[int]()
    try:
        memory = pools.laid_out(room, product.wanted)
        at = list(map(generated.address, memory))
        for operand, (codes, scales), panels in zip(product.operands, arrays, at, strict=False):
            assert operand.reader is not None
            given = {"codes": generated.address(codes), "scales": generated.address(scales), "panels": panels}
            spans.append(tiling.extent_of(*operand.reader.read(**given), operand.format, operand.bits))
        if not all(x.finite for x in spans) or not tiling.fits_tiles(way, planned, spans, None):
            return None
        values, flags = at[2:] or map(generated.address, made)
        more = way.address(place, random) | {"a": at[0], "b": at[1], "values": values, "flags": flags}

        def run(first: int, last: int) -> int:
            raised.append(product.job(first, last, more))
            return 0

        threads.share_units(product.tiles, run, product.cost)
        if any(map(generated.is_unusual, raised)):
            return None
        for x, found in zip(made, memory[2:], strict=False):
            x[...] = found[: len(x), : x.shape[1]]
    finally:
        pools.give_back(room)
    return made


def _way_of(planned: Program, bits: tuple[int, int], work: int) -> unit_ways.UnitWay | None:
    """The way of a unit whose terms are aligned, products of scaled numbers among them, if so many multiply-adds are worth it."""
    way = unit_ways.choose(planned)
    if way is None or way.unit.kind != "aligned" or not units.terms_fit(planned, bits):
        return None
    return way if unit_ways.worth_grid(way, work) else None


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
    if longest > LONGEST_CODE or planned.order.size:
        return None
    way = _way_of(planned, scales.bits, a.codes.shape[1] * b.codes.size)
    if way is None:
        return None
    (first, lies_a), (second, lies_b) = _laid(a), _laid(b)
    for each in (_in_single(way, planned, scales.bits) if c is None else None, way):
        product = None if each is None else _settled(planned, each, scales.bits, (lies_a, lies_b))
        if each is None or product is None:
            continue
        if c is None:
            found = summed(each, product, planned, (first, second), place, random)
        else:
            start, operands = decoded(np.ascontiguousarray(c), planned.partials, planned.entry)[np.newaxis], []
            for x, (codes, known) in zip(product.operands, (first, second), strict=True):
                source = x.source._replace(codes=codes, scaling=x.source.scaling._replace(codes=known))
                operands.append(x._replace(source=source))
            found = _of_first(stacks.in_pieces(each, planned, (operands[0], operands[1]), start, place, random))
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
    operands, each = [], scales.each
    known = (a, each.a, each.leads_a), (b, each.b, each.leads_b)
    for axis, (x, own, leads), fmt, bits in zip((1, 0), known, planned.formats, scales.bits, strict=True):
        values = arranged(x, axis, planned)
        powers = units.leads(values, how.unpacked or fmt, how, arranged(leads, axis, planned))
        with np.errstate(invalid="ignore"):
            values = values * arranged(own, axis, planned, 1.0)
        lies = values if axis == 0 else values.T
        k_step, n_step = (step // lies.itemsize for step in lies.strides)
        lying = generated.Lying(0, k_step, n_step, 0, *lies.shape)
        first, second = (generated.Source("number", x, NO_TABLE, 0.0, 0.0) for x in (values, powers))
        operands.append(tiling.Operand(fmt, first, lying, way.turns(planned), bits=bits, powers=second))
    start = None if c is None else c[np.newaxis]
    return _of_first(stacks.in_pieces(way, planned, (operands[0], operands[1]), start, place, random))
