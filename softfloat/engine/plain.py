"""One grid of outputs by the loop that serves every program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softfloat.accumulators.accumulator import SCALINGS
from softfloat.engine import parameters, threads, tiling, units
from softfloat.engine.apart import Entered
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.problems import Problem, Results
from softfloat.engine.programs import Program, arranged, choices, plain_loop, segment_bounds
from softfloat.engine.ways import Random
from softfloat.kernels.spec import CARRIER64, Rule


def run(problem: Problem, planned: Program, entered: Entered, random: Random, results: Results) -> None:
    """One grid of outputs by the loop that serves every program."""
    floor = dots()
    first, second = planned.formats

    def rows_of(x: Codes, y: Codes, fill: float = 0.0) -> tuple[Codes, Codes]:
        return arranged(x.T if problem.paired else x, 1, planned, fill), arranged(y.T, 1, planned, fill)

    a, b = rows_of(entered.a, entered.b)
    values, entry, accumulator = entered.c, entered.codes_of_c, planned.accumulator
    if accumulator.unsigned_zeros and planned.entry.daz and planned.partials.subnormals and planned.length:
        flushed = (values == 0.0) & (entry != 0) & (entry != planned.partials.sign_bit)
        values = np.where(flushed, 0.0, values)
    unscaled = a, b
    scales, extra, scaling = problem.scales, (0, 0), 0
    scales_a = scales_b = nothing = np.zeros((0, 0))
    if scales is not None:
        if accumulator.reduction and accumulator.reduction[0].scaling:
            scaling = 1 + SCALINGS.index(accumulator.reduction[0].scaling)
            firsts = np.array(segment_bounds(accumulator, planned.products)[:-1], np.int64)
            scales_a, scales_b = scales.at(firsts)
            scales_a, scales_b = scales_a.T if problem.paired else scales_a, scales_b.T
        else:
            with np.errstate(invalid="ignore"):  # an infinite element of scale zero is NaN
                a, b = (x * y for x, y in zip((a, b), rows_of(scales.each.a, scales.each.b, 1.0), strict=True))
            extra = scales.bits
    magics = _magics(planned, a, b, values, extra)
    rows, columns = 1 if problem.paired else problem.a.shape[0], problem.b.shape[1]
    count = floor.LEVEL + 2 * max(len(planned.accumulator.reduction), 1)
    any_site = planned.sites[floor.RUNNING]
    stages = [planned.sites.get(site, any_site) for site in range(count)]
    operand_numbers = [parameters.numbers(fmt.spec, fmt.spec, Rule(), CARRIER64) for fmt in (first, second)]
    ints = np.array([*(stage.numbers[0] for stage in stages), *(numbers[0] for numbers in operand_numbers)])
    floats = np.array([*(stage.numbers[1] for stage in stages), *(numbers[1] for numbers in operand_numbers)])
    draws = np.array([planned.sites[site].width if site in planned.sites else 0 for site in range(count)], np.int64)
    begun = np.array([planned.begun.get(site, 0) for site in range(count)], np.int64)
    levels = planned.accumulator.reduction
    stored = np.array([floor.LEVEL + 2 * level + 1 in planned.sites for level in range(len(levels))], np.uint8)
    running, product = planned.sites[floor.RUNNING].format, planned.accumulator.product
    unpacked = planned.accumulator.unpacked
    factors = [(unpacked or first).tiny, (unpacked or second).tiny] if product is None else [product.format.tiny, 1.0]
    tiny = np.array([*factors, running.tiny])
    leads = nothing, nothing
    if planned.kind == floor.ALIGNED and product is None:
        shared: tuple[Any, Any] = (None, None)
        if scales is not None and not scaling:
            shared = rows_of(scales.each.leads_a, scales.each.leads_b)
        leads = (
            units.leads(unscaled[0], unpacked or first, accumulator, shared[0]),
            units.leads(unscaled[1], unpacked or second, accumulator, shared[1]),
        )
    if accumulator.scale_exponent:
        scale = 2.0**accumulator.scale_exponent
        a, leads = a * scale, (leads[0] * scale, leads[1])
    how = choices(planned)._replace(
        has_addend=int(problem.c is not None),
        paired=int(problem.paired),
        cumulative=int(problem.cumulative),
        counting=int(results.counting),
        first=problem.index,
        row_stride=problem.row_stride,
        column_stride=problem.column_stride,
        scaling=scaling,
    )
    codes_a = codes_b = np.zeros((0, 0), np.uint32)
    if planned.carries and (planned.loses_signs or any(np.isnan(x).any() for x in (a, b, values))):
        how = how._replace(payloads=1)
        codes_a, codes_b = rows_of(problem.a.astype(np.uint32), problem.b.astype(np.uint32))
    arrays = {
        np.float64: {
            "a": a, "b": b, "c": values, "leads_a": leads[0], "leads_b": leads[1], "scales_a": scales_a, "scales_b": scales_b,
            "extremes_out": results.extremes,
        },
        np.int64: {"entry": entry, "counts_out": results.counts, "stores": planned.stores, "closes": planned.closes},
        np.uint32: {"codes_a": codes_a, "codes_b": codes_b, "codes_out": results.codes},
        np.uint8: {"flags_out": results.flags},
    }  # fmt: skip
    flat = {name: np.require(x, kind, ["C", "W"]) for kind, some in arrays.items() for name, x in some.items()}
    loop = plain_loop().taken(rows * columns * max(planned.length, 1))

    def work(start: int, stop: int) -> int:
        call = floor.Call(
            how, stored=stored, draws=draws, begun=begun, ints=ints, floats=floats, tiny=tiny, magics=magics, key=random.key, stream=random.stream,
            links=floor.links, **flat, **dict(zip(floor.ON_THE_WAY, floor.on_the_way(how, magics.size, begun.size), strict=True)),
        )  # fmt: skip
        loop(start, stop, floor.passed(call) if loop is floor.contraction() else call)
        return 0

    threads.share_units(rows * columns, work, max(planned.length, 1))
    for name, result in zip(("codes_out", "flags_out", "counts_out", "extremes_out"), results, strict=True):
        if flat[name] is not result:
            result[...] = flat[name]


def _magics(planned: Program, a: Codes, b: Codes, c: Codes, extra: tuple[int, int] = (0, 0)) -> Codes:
    """The grids of the bins that hold every term and sum of these operands, whose scales have so many bits of precision."""
    floor = dots()
    if planned.kind != floor.EXACT and planned.accumulator.leaf == 1:
        return np.zeros(1)
    first, second = planned.formats
    x, y, start = tiling.extent(a, first), tiling.extent(b, second), tiling.extent(c, planned.partials)
    if any(extra):
        x, y = (
            tiling.extent_of(*tiling.magnitudes(np.ascontiguousarray(v)), fmt, bits)
            for v, fmt, bits in ((a, first, extra[0]), (b, second, extra[1]))
        )
    lows, highs = [], []
    if not (x.empty or y.empty):
        lows.append(x.low + y.low + planned.accumulator.scale_exponent)
        highs.append(x.high + y.high + planned.accumulator.scale_exponent)
    if not start.empty:
        lows.append(start.low)
        highs.append(start.high)
    if not lows:
        return np.zeros(1)
    formats = [site.format for site in planned.sites.values()]
    # a directed rounding can lift the least sum to the smallest number
    high = max(*highs, *(math.frexp(x.smallest_subnormal)[1] for x in formats)) + planned.length.bit_length() + 1
    add_up = planned.stores.size * 2.0 ** (1 - min(x.p for x in formats)) > 0.5
    saturate = not (x.finite and y.finite and start.finite)  # an infinity may be stored as the largest number
    if add_up or saturate:
        high = max(high, *(x.emax + 1 + planned.block.bit_length() for x in formats))
    low = min(
        *lows, *(x.emax - x.mantissa_bits for x in formats)
    )  # an overflow may give the largest number: its last bit
    grids: Codes = floor.grids(low, high)
    return grids
