"""Products of operands in block formats whose terms are aligned: laid out for the loops of units from their codes, in one pass."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine import generated, stacks, tiling, unit_ways, units
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.decoding import NO_TABLE, decoded
from softfloat.engine.parameters import FLOAT32
from softfloat.engine.problems import Blocks, Scales
from softfloat.engine.programs import Program, arranged
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


def _operand_of(
    planned: Program, which: int, blocks: Blocks, way: unit_ways.UnitWay, bits: int
) -> tiling.Operand | None:
    """An operand with scales, whose precision is of so many bits; None if the carrier does not hold its numbers."""
    (codes, steps), (scales, scale_steps) = _flat(blocks.codes), _flat(blocks.scales)
    lying = generated.Lying(0, *steps, 0, *blocks.codes.shape)
    found = _read(planned, which, way, codes.dtype, lying, blocks.scale, blocks.block, scale_steps, bits)
    if found is None:
        return None
    scaling = found.source.scaling._replace(codes=scales)
    return found._replace(source=found.source._replace(codes=codes, scaling=scaling))


@lru_cache(maxsize=512)
def _read(
    planned: Program, which: int, way: unit_ways.UnitWay, kind: Any, lying: generated.Lying, scale: Format, block: tuple[int, int],
    scale_steps: tuple[int, int], bits: int,
) -> tiling.Operand | None:  # fmt: skip
    """An operand that lies so, and what reads it, but for codes and scales."""
    source, turns = way.source(planned, which, np.empty(0, kind)), way.turns(planned)
    if source is None:
        return None
    known = _of_scales(scale, way.of_zeros(planned), way.carrier)
    scaling = generated.BlockScales(generated.NOWHERE, known, way.unit.term, block, scale_steps)
    source, shape = source._replace(scaling=scaling), stacks.shapes_of(way, lying.outputs, turns, lying.outputs)[which]
    reader = source.reader(np.broadcast_to(np.zeros((), way.carrier), (1, *shape)), lying)
    return tiling.Operand(planned.formats[which], source, lying, turns, bits=bits, reader=reader)


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
