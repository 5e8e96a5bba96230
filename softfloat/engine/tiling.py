"""Operands of dot products laid out for the faster loops of `kernels.tiles`, if their values allow.

They must be finite and of a range in which nothing leaves the carrier's normal numbers. What is not served goes the
plain way; of a product in which few rows or columns are not finite, only these do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softfloat.engine import elementwise, parameters, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FLOAT32, dots, steps, tiles
from softfloat.engine.programs import Program, Site
from softfloat.engine.ways import ExactBlocks, Panels, Place, Random, Tally, Way
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, Overflow

SUBTLEST = 100  # bits between the largest sum and the smallest bit, for errors of additions to add up exactly


class Extent(NamedTuple):
    """What the values of an operand span: exponents of the smallest bit and just above the largest number."""

    low: int
    high: int
    finite: bool
    empty: bool  # nothing but zeros


def extent(values: Codes, fmt: Format) -> Extent:
    """The span of values of a format."""
    least, greatest, finite = dots().extent()(values.reshape(-1))
    if not greatest:
        return Extent(0, 0, bool(finite), True)
    return Extent(
        max(math.frexp(least)[1] - 1, fmt.emin) - fmt.mantissa_bits, math.frexp(greatest)[1], bool(finite), False
    )


def _leading(values: Codes, fmt: Format) -> Codes:
    """2^exponent of each value, a subnormal's that of its format; 0 for 0."""
    powers = (values.view(np.int64) & 0x7FF0000000000000).view(np.float64)
    return np.where(values == 0.0, 0.0, np.maximum(powers, fmt.tiny))


def _on_lines(shape: tuple[int, ...], carrier: type) -> Codes:
    """Zeros from a cache line's start on: vectors that cross lines are read at half the speed."""
    size, item = math.prod(shape), np.dtype(carrier).itemsize
    whole = np.zeros(size * item + tiles().LINE, np.uint8)
    skipped = -whole.ctypes.data % tiles().LINE
    return whole[skipped : skipped + size * item].view(carrier).reshape(shape)


def _panels(planes: list[Codes], size: int, carrier: type) -> Codes:
    """(planes, panels, k, size) of arrays (k, n), filled up with zeros."""
    length, count = planes[0].shape
    panels = -(-count // size)
    result = _on_lines((len(planes), panels, length, size), carrier)
    whole = count // size
    for plane, values in zip(result, planes, strict=True):
        whole_panels = values[:, : whole * size].reshape(length, whole, size).transpose(1, 0, 2)

        def work(start: int, stop: int, plane: Codes = plane, source: Codes = whole_panels) -> int:
            plane[start:stop] = source[start:stop]
            return 0

        threads.share_units(whole, work, length * size)
        if whole < panels:
            plane[whole, :, : count - whole * size] = values[:, whole * size :]
    return result


def _filled(c: Codes | None, rows: int, columns: int, carrier: type) -> Codes:
    result: Codes = np.zeros((rows, columns), carrier)
    if c is not None:
        result[: c.shape[0], : c.shape[1]] = c
    return result


@dataclass(frozen=True, eq=False)
class Operands:
    """Values in the order of the sum, as float64: a is (rows, k), b is (k, columns), c is (rows, columns) or None."""

    a: Codes
    b: Codes
    c: Codes | None


def lowest_bits(
    way: Way, operands: Operands, formats: tuple[Format, Format], partials: Format, length: int
) -> list[int] | None:
    """Exponents of the smallest bits of products, then of what else enters a sum; None if operands go beyond what a way can do."""
    spans = [extent(operands.a, formats[0]), extent(operands.b, formats[1])]
    low = sum(x.low for x in spans)
    high = sum(x.high for x in spans)
    lows, highs = [low], [high]
    if operands.c is not None:
        start = extent(operands.c, partials)
        spans.append(start)
        if not start.empty:
            lows.append(start.low)
            highs.append(start.high)
    exact = isinstance(way, ExactBlocks)
    if isinstance(way, ExactBlocks) and way.stored:  # an overflow may store the largest number: its last bit
        lows.append(way.site.format.emax - way.site.format.mantissa_bits)
    if not all(x.finite for x in spans):
        return None
    low, top = min(lows), max(highs) + length.bit_length() + 1
    if any(x.empty for x in spans[:2]):
        low, top = min(lows[1:], default=0), max(highs[1:], default=0) + 1
    if low < way.lowest or high > way.highest or (way.bounded and top > 127):
        return None
    if way.carrier is np.float64 and (top > 127 or (exact and top - low > SUBTLEST)):
        return None
    return lows


def nan_flags(way: Way) -> int:
    """The flags of an output that is NaN."""
    invalid = way.site.rule.overflow is Overflow.NAN or bool(way.site.format.infinities)
    return int(spec.OVERFLOW | spec.INEXACT | (spec.INVALID if invalid else 0))


def run(
    way: Way, planned: Program, operands: Operands, place: Place, random: Random, tally: Tally | None = None
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None if the operands go beyond what this way can do.

    A `tally` is filled, if the way counts.
    """
    first, second = planned.formats
    lows = lowest_bits(way, operands, planned.formats, planned.partials, planned.length)
    if lows is None:
        return None
    floor = tiles()
    lanes = floor.LANES[way.carrier]
    planes_a, planes_b = [operands.a.T], [operands.b]
    if way.planes == 2:
        unpacked = planned.accumulator.unpacked
        planes_a.append(_leading(operands.a, unpacked or first).T)
        planes_b.append(_leading(operands.b, unpacked or second))
    a, b = _panels(planes_a, floor.ROWS, way.carrier), _panels(planes_b, lanes, way.carrier)
    rows, columns = operands.a.shape[0], operands.b.shape[1]
    shape = a.shape[1] * floor.ROWS, b.shape[1] * lanes
    panels = Panels(a, b, _filled(operands.c, *shape, way.carrier), min(lows[1:], default=None))
    values, flags = np.empty(shape, way.carrier), np.empty(shape, np.uint8)
    numbers, of_nan = steps().packed(way.numbers(planned), way.carrier), nan_flags(way)
    padded = None if tally is None else Tally(np.empty((3, *shape), np.int32), np.empty((2, *shape), np.float32))
    found = way.loop(planned, panels, place, random) if padded is None else way.counting_loop(padded)
    if found is None:
        return None
    loop, more = found

    def work(start: int, stop: int) -> int:
        loop(start, stop, *panels[:3], values, flags, numbers, of_nan, rows, columns, *more)
        return 0

    threads.share_units(a.shape[1] * b.shape[1], work, planned.length * floor.ROWS * lanes)
    values, flags = values[:rows, :columns], flags[:rows, :columns]
    if tally is not None and padded is not None:
        for target, source in zip(tally, padded, strict=True):
            target[...] = source[:, :rows, :columns]
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= of_nan
    return _codes(values, planned.partials, way.site), flags


def _codes(values: Codes, partials: Format, site: Site) -> Codes:
    """Codes of values that the format has; NaN as the rule makes it."""
    single = np.ascontiguousarray(values, np.float32)
    codes = single.view(np.uint32)
    beyond = ~np.isfinite(single)
    if partials.spec != FLOAT32:
        codes, _ = elementwise.run(
            "convert", [codes], ["values"], FLOAT32, partials, parameters.NEAREST, out=None, flags="any", random_bits=None, stream=0
        )  # fmt: skip
    if beyond.any():
        target = spec.target(partials.spec, site.rule, CARRIER64)
        nan = beyond if site.rule.overflow is Overflow.NAN else np.isnan(single)
        codes = np.where(nan, np.asarray(target.nan, codes.dtype), codes)
    return codes
