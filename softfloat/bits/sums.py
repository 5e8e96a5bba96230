"""Dot products, matrix products and sums of codes over an `Accumulator`: arguments to programs, programs to compiled loops.

`softfloat.bits` offers these functions; `softfloat.conv` builds on `contract`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softfloat import _engine, _tiling
from softfloat._call import Call, Options, check_boolean
from softfloat._engine import Codes, Numbers, check_codes
from softfloat._tiling import dots
from softfloat.accumulators import ALL, Accumulator, Stage
from softfloat.environment import Environment
from softfloat.formats import Format, check_format, float32
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, NAN_POLICIES, Rounding, Rule

if TYPE_CHECKING:
    pass

__all__ = ["Counts", "cumsum", "matmul", "sum", "vecdot"]

PIECE = 1 << 24  # codes of operands made contiguous at a time
STOCHASTIC_OUTPUTS = 1 << 32  # an output's number has 32 bits of a random address
STOCHASTIC_STEPS = 1 << 27  # and a rounding's number within an output that many


@dataclass(frozen=True, eq=False)
class Counts:
    """What the additions of each output did; arrays of the output's shape.

    Attributes
    ----------
    additions : int
        Of each output: blocks that met the running sum, and stores. Sums of sums are not among them.
    overflowed, inexact : array of int64
        Additions whose rounding raised the flag. An addition is one meeting of a block and the running sum, or of two
        sums; a store counts as one more: what was added since the last, to the partial in memory.
    swamped : array of int64
        Additions of something other than zero that left the sum as it was.
    smallest, largest : array of float64
        The least and the greatest sum after an addition; NaN where there was none, or none but NaN.
    """

    additions: int
    overflowed: np.ndarray[Any, Any]
    inexact: np.ndarray[Any, Any]
    swamped: np.ndarray[Any, Any]
    smallest: np.ndarray[Any, Any]
    largest: np.ndarray[Any, Any]


# -- programs --------------------------------------------------------------------------------------------------------


class Site(NamedTuple):
    """A stage of one call: where it rounds to, under which rule, and how many random bits it draws (0: none)."""

    format: Format
    rule: Rule
    width: int

    @property
    def numbers(self) -> Numbers:
        """What the loops know of it."""
        return _engine.numbers(self.format.spec, self.format.spec, self.rule, CARRIER64)


@dataclass(frozen=True, eq=False)
class Program:
    """One accumulator under one call's options, for one length of k.

    Attributes
    ----------
    sites : dict of int to Site
        The stages by the numbers of `kernels.accumulate`.
    index : array of int, or None
        Which product comes where; -1 is +0. None: as they are.
    length : int
        Products, with those filled in.
    stores, closes : array of uint8
        After which blocks the running sum is stored, and how many levels of the reduction end.
    """

    accumulator: Accumulator
    formats: tuple[Format, Format]
    partials: Format
    output: Format
    sites: dict[int, Site]
    daz: bool
    entry: Rule
    index: np.ndarray[Any, Any] | None
    length: int
    block: int
    stores: np.ndarray[Any, Any]
    closes: np.ndarray[Any, Any]
    entered: int
    draws: bool
    policy: spec.NanPolicy

    @property
    def kind(self) -> int:
        """How products meet the running sum."""
        kinds = dots()
        if self.accumulator.fraction_bits is not None:
            return int(kinds.ALIGNED)
        if self.accumulator.product is not None:
            return int(kinds.ROUNDED)
        return int(kinds.FUSED if self.block == 1 else kinds.EXACT)

    @property
    def converts(self) -> bool:
        """Whether the output's format differs from that of partials."""
        return self.output != self.partials


def _site(stage: Stage, accumulator: Accumulator, environment: Environment, conversion: bool) -> Site:
    """What a stage does under a call's options."""
    settings = environment.for_format(stage.format.name)
    fixed: dict[str, Any] = {"nan": accumulator.nan, "rounding": stage.rounding, "overflow": stage.overflow}
    fixed |= {"daz": stage.daz, "ftz": stage.ftz, "tininess": stage.tininess}
    settings = settings.replace(**{name: value for name, value in fixed.items() if value is not None})
    draws = settings.rounding is Rounding.STOCHASTIC
    if draws and settings.seed is None and environment.seed is None:
        raise ValueError("rounding='stochastic' needs a seed (0 to 2^64 - 1)")
    width = settings.sr_bits or 52
    rule = _engine.rule_for(settings, stage.format, conversion, width if draws else 52)
    return Site(stage.format, rule._replace(always_infinite=stage.always_infinite), width if draws else 0)


LONGEST_KEPT = 1 << 16  # programs for longer k are made anew


def program(
    accumulator: Accumulator, first: Format, second: Format, output: Format, environment: Environment, length: int
) -> Program:
    """Everything about a call that depends neither on its operands' values nor on its seed."""
    make = _program if length <= LONGEST_KEPT else _program.__wrapped__
    return make(accumulator, first, second, output, _seedless(environment), length)


@lru_cache(maxsize=512)
def _seedless(environment: Environment) -> Environment:
    """The same, with 0 for any seed and replica."""
    if environment.seed in (None, 0) and environment.replica == 0:
        return environment
    return environment.replace(seed=None if environment.seed is None else 0, replica=0)


def _check_inputs(accumulator: Accumulator, fmt: Format) -> None:
    if accumulator.inputs and fmt not in accumulator.inputs:
        names = ", ".join(repr(x.name) for x in accumulator.inputs)
        raise ValueError(f"fmt must be {names} for {accumulator!r}, got {fmt.name!r}")


@lru_cache(maxsize=512)
def _program(
    accumulator: Accumulator, first: Format, second: Format, output: Format, environment: Environment, length: int
) -> Program:
    for fmt in (first, second):
        _check_inputs(accumulator, fmt)
    numbers = dots()
    stages: dict[int, tuple[Stage, bool]] = {numbers.RUNNING: (accumulator.running, False)}
    if accumulator.product:
        stages[numbers.PRODUCT] = accumulator.product, False
    if accumulator.store:
        stages[numbers.STORE] = accumulator.store, True
    for level, reduction in enumerate(accumulator.reduction):
        stages[numbers.LEVEL + 2 * level] = reduction.running, False
        if reduction.store:
            stages[numbers.LEVEL + 2 * level + 1] = reduction.store, True
    partials = accumulator.partials
    if output != partials:
        stages[numbers.RESULT] = _result_stage(output), True
    sites = {site: _site(stage, accumulator, environment, conversion) for site, (stage, conversion) in stages.items()}
    block = accumulator.block if accumulator.block != ALL else max(length, 1)
    index, stores, closes = _layout(accumulator, length, block)
    entered = numbers.STORE if accumulator.store else numbers.RUNNING
    if accumulator.reduction:
        entered = numbers.LEVEL + 2 * (len(accumulator.reduction) - 1) + (accumulator.reduction[-1].store is not None)
    arithmetic = sites.get(numbers.PRODUCT, sites[numbers.RUNNING])
    return Program(
        accumulator=accumulator,
        formats=(first, second),
        partials=partials,
        output=output,
        sites=sites,
        daz=arithmetic.rule.daz if accumulator.daz is None else accumulator.daz,
        entry=sites[entered].rule,
        index=None if index.size == length and bool((index == np.arange(length)).all()) else index,
        length=index.size,
        block=block,
        stores=stores,
        closes=closes,
        entered=entered,
        draws=any(site.width for site in sites.values()),
        policy=NAN_POLICIES[arithmetic.rule.nan],
    )


def _result_stage(output: Format) -> Stage:
    if not output.zero:
        raise ValueError(f"out_format must have a zero, and {output} has none")
    return Stage(output)


def _layout(
    accumulator: Accumulator, length: int, block: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(index, stores, closes): segments one after the other, each filled up to whole groups and blocks."""
    order = np.array(accumulator.order)
    unit = math.lcm(order.size, block)
    pieces, stores, closes = [], [], []
    bounds = _bounds(accumulator, length)
    ends = _ends(accumulator, len(bounds) - 1)
    every = accumulator.store_every // block if accumulator.store else 0
    for segment in range(len(bounds) - 1):
        start, stop = bounds[segment], bounds[segment + 1]
        filled = -(-(stop - start) // unit) * unit
        places = np.arange(filled).reshape(-1, order.size)[:, order].reshape(-1) + start
        pieces.append(np.where(places < stop, places, -1))
        count = filled // block
        stored = np.zeros(count, np.uint8)
        if every:
            stored[every - 1 :: every] = 1
            stored[-1:] = 1
        ended = np.zeros(count, np.uint8)
        ended[-1:] = ends[segment]
        stores.append(stored)
        closes.append(ended)
    nothing = np.empty(0, np.uint8)
    return (
        np.concatenate([np.empty(0, np.int64), *pieces]),
        np.concatenate([nothing, *stores]),
        np.concatenate([nothing, *closes]),
    )


def _bounds(accumulator: Accumulator, length: int) -> list[int]:
    """Where segments begin, and the end."""
    if not length:
        return [0]
    if accumulator.segment is not None:
        return [*range(0, length, accumulator.segment), length]
    parts = accumulator.segments
    if isinstance(parts, tuple):
        bounds = [0, *np.cumsum(parts).tolist()]
        if bounds[-1] != length:
            raise ValueError(f"segments of {accumulator!r} are {bounds[-1]} products long, and k is {length}")
        return bounds
    if parts is None:
        return [0, length]
    if parts > length:
        raise ValueError(f"segments of {accumulator!r} are {parts}, more than the {length} products")
    return [i * length // parts for i in range(parts + 1)]


def _ends(accumulator: Accumulator, count: int) -> list[int]:
    """How many levels of the reduction end after each segment."""
    levels = accumulator.reduction
    if not levels or not count:
        return [0] * count
    ends = [1] * count
    inputs, members = count, list(range(count))  # members: the last segment of each input of a level
    for level in levels[:-1]:
        sections = level.sections or 1
        if sections > inputs:
            raise ValueError(f"reduction of {accumulator!r} makes {sections} sections of {inputs} sums")
        members = [members[(i + 1) * inputs // sections - 1] for i in range(sections)]
        for segment in members:
            ends[segment] += 1
        inputs = sections
    return ends


# -- running ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """A grid of dot products of codes: a is (rows, k), or (k, columns) if `paired`; b is (k, columns); c is (rows, columns) or None.

    Output (i, j) is number index + i*row_stride + j*column_stride of the call.
    """

    a: Codes
    b: Codes
    c: Codes | None
    paired: bool
    index: int
    row_stride: int
    column_stride: int


class Results(NamedTuple):
    """Where a call's results go: arrays of the outputs' codes, flags, and counts if wanted."""

    codes: Codes
    flags: Codes
    counts: Codes
    extremes: Codes


def _view(whole: Codes, index: int, grid: tuple[int, int], distances: tuple[int, int]) -> Codes:
    """The places of a grid in the last axis of an array: from `index` on, so far from one row and column to the next."""
    if distances == (grid[1], 1) and grid[0] * grid[1] == whole.shape[-1]:
        return whole.reshape(*whole.shape[:-1], *grid)
    step = whole.itemsize
    rest = whole[..., index:]
    return as_strided(rest, (*whole.shape[:-1], *grid), (*whole.strides[:-1], distances[0] * step, distances[1] * step))


def _values(codes: Codes, fmt: Format, rule: Rule) -> Codes:
    """The values of codes as the stage under `rule` reads them."""
    values = np.empty(codes.size, np.float64)
    numbers = _engine.numbers(fmt.spec, fmt.spec, rule, CARRIER64)
    flat = _engine.flattened(codes)

    def work(start: int, stop: int) -> int:
        _engine.loops().decoding()(flat[start:stop], values[start:stop], *numbers)
        return 0

    _engine.share(codes.size, work)
    return values.reshape(codes.shape)


def _arranged(values: Codes, axis: int, planned: Program) -> Codes:
    """Operands along k in the order of the sum, filled up with zeros."""
    if planned.index is None:
        return np.ascontiguousarray(values)
    taken = np.take(values, planned.index, axis=axis)  # -1 takes the last one
    filled = planned.index < 0
    if filled.any():
        taken[(slice(None), filled) if axis else filled] = 0.0
    return np.ascontiguousarray(taken)


def _signals(codes: Codes, values: Codes, fmt: Format, axis: int, cumulative: bool = False) -> Any:
    """INVALID for each row or column that has a signalling NaN; `cumulative`: for each place from there on."""
    if not np.isnan(values).any():
        return 0
    signalling = _engine.is_signalling(codes, fmt)
    found = np.logical_or.accumulate(signalling, axis=axis) if cumulative else signalling.any(axis=axis)
    return found.astype(np.uint8) * np.uint8(spec.INVALID)


def run(problem: Problem, planned: Program, call: Call, results: Results, cumulative: bool, counting: bool) -> None:
    """Do one grid of outputs: by the faster loops where they serve it, else by the plain one."""
    first, second = planned.formats
    read = Rule(daz=planned.daz)
    a, b = _values(problem.a, first, read), _values(problem.b, second, read)
    signals = _signals(problem.b, b, second, 0, cumulative)
    if problem.paired:
        signals = signals | _signals(problem.a, a, first, 0, cumulative)
    else:
        signals = signals | np.expand_dims(_signals(problem.a, a, first, 1), -1)
    values = np.zeros((0, 0))
    entry: Codes = np.zeros((0, 0), np.uint32)
    if problem.c is not None:
        entry = np.array(problem.c, np.uint32, order="C")
        values = _values(np.ascontiguousarray(problem.c), planned.partials, planned.entry)
        signalling = _engine.is_signalling(entry, planned.partials)
        signals = signals | np.where(signalling, np.uint8(spec.INVALID), np.uint8(0))
        if not planned.length and np.any(signalling):  # an empty sum is c itself, but for this
            entry[signalling] = _quieted(entry[signalling], planned)
    results.flags[...] = signals
    settings = call.environment
    key = _engine.replica_key(settings.seed or 0, 0 if settings.replica_identical else settings.replica)
    if not (problem.paired or cumulative or counting):
        done = _quick(problem, planned, a, b, values, call, key)
        if done is not None:
            _finish(done, problem, planned, call, key, results)
            return
    entered = _Entered(_arranged(a, 0 if problem.paired else 1, planned), _arranged(b, 0, planned), values, entry)
    _plain(problem, planned, entered, key, call.stream, results, cumulative, counting)


def _quieted(codes: Codes, planned: Program) -> Codes:
    """What an operation makes of NaNs in the partials format."""
    fmt = planned.partials
    quiet, _ = _engine.run(
        "convert", [codes.astype(fmt.dtype)], ["c"], fmt.spec, fmt, Environment(nan=planned.entry.nan),
        out=None, flags="any", random_bits=None, stream=0,
    )  # fmt: skip
    return quiet


class _Entered(NamedTuple):
    """Operands as the plain loop takes them: values in the order of the sum, those of c, and c's codes."""

    a: Codes
    b: Codes
    c: Codes
    codes_of_c: Codes


def _plain(
    problem: Problem,
    planned: Program,
    entered: _Entered,
    key: int,
    stream: int,
    results: Results,
    cumulative: bool,
    counting: bool,
) -> None:
    """One grid of outputs by the loop that serves every program."""
    floor = dots()
    first, second = planned.formats
    a, b, values, entry = entered
    rows, columns = 1 if problem.paired else problem.a.shape[0], problem.b.shape[1]
    count = floor.LEVEL + 2 * max(len(planned.accumulator.reduction), 1)
    any_site = planned.sites[floor.RUNNING]
    stages = [planned.sites.get(site, any_site) for site in range(count)]
    operand_numbers = [_engine.numbers(fmt.spec, fmt.spec, Rule(), CARRIER64) for fmt in (first, second)]
    ints = np.array([*(stage.numbers[0] for stage in stages), *(numbers[0] for numbers in operand_numbers)])
    floats = np.array([*(stage.numbers[1] for stage in stages), *(numbers[1] for numbers in operand_numbers)])
    draws = np.array([planned.sites[site].width if site in planned.sites else 0 for site in range(count)], np.int64)
    levels = planned.accumulator.reduction
    stored = np.array([floor.LEVEL + 2 * level + 1 in planned.sites for level in range(len(levels))], np.uint8)
    running, product = planned.sites[floor.RUNNING].format, planned.accumulator.product
    unpacked = planned.accumulator.unpacked
    factors = [(unpacked or first).tiny, (unpacked or second).tiny] if product is None else [product.format.tiny, 1.0]
    tiny = np.array([*factors, running.tiny])
    how = np.zeros(floor.CHOICES, np.int64)
    how[floor.KIND] = planned.kind
    how[floor.BLOCK] = planned.block
    how[floor.CHAINS] = planned.accumulator.chains
    how[floor.TREE] = planned.accumulator.tree
    how[floor.LEVELS] = len(levels)
    how[floor.FRACTION_BITS] = planned.accumulator.fraction_bits or 0
    how[floor.HAS_ADDEND] = problem.c is not None
    how[floor.HAS_RESULT] = planned.converts
    how[floor.PAIRED] = problem.paired
    how[floor.CUMULATIVE] = cumulative
    how[floor.COUNTING] = counting
    how[floor.INDEX] = problem.index
    how[floor.ROW_STRIDE] = problem.row_stride
    how[floor.COLUMN_STRIDE] = problem.column_stride
    how[floor.ENTERED] = planned.entered
    how[floor.PRODUCTS_ROUNDED] = product is not None
    how[floor.LONE_CONVERTED] = product is not None and product.format != running
    codes_a = codes_b = np.zeros((0, 0), np.uint32)
    one_by_one = planned.kind in (floor.FUSED, floor.ROUNDED) and not planned.accumulator.tree
    carries = bool(planned.policy.propagate) and one_by_one and planned.accumulator.chains == 1
    unsigned_nans = any(not site.format.signed or site.format.nan == "fnuz" for site in planned.sites.values())
    if carries and (unsigned_nans or any(np.isnan(x).any() for x in (a, b, values))):
        how[floor.PAYLOADS] = True
        codes_a = _arranged(problem.a.astype(np.uint32), 0 if problem.paired else 1, planned)
        codes_b = _arranged(problem.b.astype(np.uint32), 0, planned)
    magics = _magics(planned, a, b, values)
    loop = floor.contraction()

    def work(start: int, stop: int) -> int:
        loop(
            start, stop, a, b, values, entry, codes_a, codes_b, results.codes, results.flags, results.counts, results.extremes,
            planned.stores, planned.closes, stored, how, draws, ints, floats, tiny, magics,
            np.uint64(key), np.uint64(stream),
        )  # fmt: skip
        return 0

    units = rows * -(-columns // floor.LANES)
    _engine.share_units(units, work, max(planned.length, 1) * floor.LANES)


Done = tuple[Codes, Codes]
"""Codes in the partials format, and flags."""


def _quick(problem: Problem, planned: Program, a: Codes, b: Codes, c: Codes, call: Call, key: int) -> Done | None:
    """By the faster loops, if they serve this program and these values."""
    if planned.accumulator.reduction:
        return _segments(problem, planned, a, b, call)
    way = _tiling.choose(planned)
    if way is None:
        return None
    place = problem.index, problem.row_stride, problem.column_stride
    start = c if problem.c is not None else None
    operands = _tiling.Operands(_arranged(a, 1, planned), _arranged(b, 0, planned), start)
    return _tiling.run(way, planned, operands, place, key, call.stream)


def _segments(problem: Problem, planned: Program, a: Codes, b: Codes, call: Call) -> Done | None:
    """Segments one by one, their sums added up elementwise: for a single level of reduction that draws nothing."""
    accumulator = planned.accumulator
    site = planned.sites[dots().LEVEL]
    drawn = any(x.width for number, x in planned.sites.items() if number != dots().RESULT)
    if len(accumulator.reduction) > 1 or accumulator.reduction[0].store or drawn or site.rule.daz:
        return None
    inner = accumulator.replace(segment=None, segments=None, reduction=())
    if not _holds(site.format, inner.partials) or problem.a.shape[0] * problem.b.shape[1] < dots().LANES:
        return None
    first, second = planned.formats
    exact = Environment(nan=planned.policy.name)
    shape = problem.a.shape[0], problem.b.shape[1]
    total: Codes = np.zeros(shape, site.format.dtype) if problem.c is None else problem.c
    flags: Codes = np.zeros(shape, np.uint8)
    bounds = _bounds(accumulator, problem.b.shape[0])
    for start, stop in itertools.pairwise(bounds):
        part = program(inner, first, second, inner.partials, call.environment, stop - start)
        way = _tiling.choose(part)
        if way is None:
            return None
        operands = _tiling.Operands(_arranged(a[:, start:stop], 1, part), _arranged(b[start:stop], 0, part), None)
        done = _tiling.run(way, part, operands, (0, 0, 0), 0, 0)
        if done is None:
            return None
        codes, raised = done
        if inner.partials != site.format:
            codes, _ = _engine.run(
                "convert", [codes], ["sums"], inner.partials.spec, site.format, exact,
                out=None, flags="any", random_bits=None, stream=0,
            )  # fmt: skip
        total, more = _engine.add(total, codes, site.format, site.rule)
        flags |= raised | more
    return total, flags


def _holds(fmt: Format, other: Format) -> bool:
    """Whether every value of the other format is one of this, subnormals, infinities and NaN included."""
    fine = fmt.p >= other.p and fmt.emin - fmt.mantissa_bits <= other.emin - other.mantissa_bits
    plain = fmt.subnormals and fmt.signed and bool(fmt.signed_zero and fmt.infinities) and fmt.has_nan
    return fine and plain and fmt.max >= other.max


def _finish(done: Done, problem: Problem, planned: Program, call: Call, key: int, results: Results) -> None:
    """Codes and flags of partials to the output's format."""
    codes, flags = done
    if planned.converts:
        width, random_bits = planned.sites[dots().RESULT].width, None
        nan = None if planned.accumulator.nan is None else planned.policy.name
        settings = _result_settings(call.settings, nan, width, planned.entry.daz)
        if width:
            random_bits = _result_bits(problem, codes.shape, width, key, call.stream)
        codes, raised = _engine.run(
            "convert", [codes], ["partials"], planned.partials.spec, planned.output, settings,
            out=None, flags="each", random_bits=random_bits, stream=0,
        )  # fmt: skip
        flags = flags | raised
    results.codes[...] = codes
    results.flags[...] = flags


@lru_cache(maxsize=512)
def _result_settings(settings: Environment, nan: str | None, width: int, daz: bool) -> Environment:
    """Those of the conversion to the output's format, which takes so many random bits, 0: none; `daz` is that of partials."""
    if nan is None and not width and daz == settings.daz:
        return settings
    return settings.replace(nan=nan or settings.nan, sr_bits=width or settings.sr_bits, daz=daz)


def _result_bits(problem: Problem, shape: tuple[int, ...], width: int, key: int, stream: int) -> Codes:
    """The random bits that the conversion of a grid's outputs takes."""
    bits = np.empty(shape, np.uint64)
    place = problem.index, problem.row_stride, problem.column_stride

    def work(start: int, stop: int) -> int:
        dots().result_bits()(start, stop, bits, *place, width, np.uint64(key), np.uint64(stream))
        return 0

    _engine.share_units(shape[0], work, 4 * shape[1])
    return bits


def _magics(planned: Program, a: Codes, b: Codes, c: Codes) -> Codes:
    """The grids of the bins that hold every term and sum of these operands."""
    floor = dots()
    if planned.kind != floor.EXACT:
        return np.zeros(1)
    first, second = planned.formats
    x, y, start = _tiling.extent(a, first), _tiling.extent(b, second), _tiling.extent(c, planned.partials)
    lows, highs = [], []
    if not (x.empty or y.empty):
        lows.append(x.low + y.low)
        highs.append(x.high + y.high)
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
    low = min(*lows, *(x.emax - x.mantissa_bits for x in formats))  # a sum may become the largest number
    grids: Codes = floor.grids(low, high)
    return grids


# -- arguments -------------------------------------------------------------------------------------------------------


def check_formats(fmt: Any) -> tuple[Format, Format]:
    """The formats of both operands, from one or a pair."""
    if isinstance(fmt, (tuple, list)):
        if len(fmt) != 2:
            raise ValueError(f"fmt must be a format or a pair of them, got {len(fmt)}")
        return check_format(fmt[0], "fmt[0]"), check_format(fmt[1], "fmt[1]")
    one = check_format(fmt)
    return one, one


def check_accumulator(accumulator: Any) -> Accumulator:
    """Refuse anything but an accumulator."""
    if not isinstance(accumulator, Accumulator):
        raise TypeError(
            f"accumulator must be a softfloat.Accumulator (softfloat.accumulators makes them), got {accumulator!r}"
        )
    return accumulator


class Contraction:
    """One call of the functions below: its options, formats and program."""

    def __init__(
        self,
        formats: tuple[Format, Format],
        accumulator: Any,
        out_format: Format | str | None,
        count: bool,
        options: Options,
    ) -> None:
        self.formats, self.accumulator = formats, check_accumulator(accumulator)
        self.output = (
            self.accumulator.output(*formats) if out_format is None else check_format(out_format, "out_format")
        )
        self.call = Call(options, self.output)
        self.count = check_boolean("count", count)
        if self.call.random_bits is not None:
            raise ValueError("random_bits are for one rounding each; a dot product takes a seed")

    def check_addend(self, c: Any, shape: tuple[int, ...]) -> Codes | None:
        """Codes of c in the shape of the output."""
        if c is None:
            return None
        codes = check_codes(c, self.accumulator.partials, "c")
        try:
            return np.broadcast_to(codes, shape)
        except ValueError:
            raise ValueError(f"c of shape {codes.shape} does not broadcast to the output's shape {shape}") from None

    def program(self, length: int) -> Program:
        """The program for this length of k."""
        return program(self.accumulator, *self.formats, self.output, self.call.environment, length)

    def run(
        self,
        problems: Iterable[Problem],
        length: int,
        shape: tuple[int, ...],
        operands: Sequence[Codes],
        cumulative: bool = False,
        axes: Sequence[int] | None = None,
    ) -> Any:
        """All grids of a call, and what the caller sees of it. A grid's outputs go where its numbers say.

        `shape` is that of outputs in the order of their numbers; they are returned with its axes in the order `axes`.
        """
        planned = self.program(length)
        order = range(len(shape)) if axes is None else axes
        returned = tuple(shape[axis] for axis in order)
        result, raised = _engine.outputs(self.call.out, self.call.flags, returned, self.output.dtype, operands)
        size = math.prod(shape)
        if planned.draws:
            self._check_addresses(size, planned.length)
        codes, flags = np.empty(size, np.uint32), np.zeros(size, np.uint8)
        counts = np.zeros((3, size if self.count else 0), np.int64)
        extremes = np.full((2, size if self.count else 0), np.nan)
        wholes = (codes, flags, counts, extremes) if self.count else (codes, flags)
        for problem in problems if size else ():
            columns = problem.b.shape[1]
            rows = length if cumulative else 1 if problem.paired else problem.a.shape[0]
            distances = (columns, 1) if cumulative else (problem.row_stride, problem.column_stride)
            views = [_view(whole, problem.index, (rows, columns), distances) for whole in wholes]
            places = [view if view.flags.c_contiguous else np.empty(view.shape, view.dtype) for view in views]
            nothing = () if self.count else (counts.reshape(3, 0, 0), extremes.reshape(2, 0, 0))
            run(problem, planned, self.call, Results(*places, *nothing), cumulative, self.count)
            for view, place in zip(views, places, strict=True):
                if view is not place:
                    view[...] = place
        result.flat.reshape(returned)[...] = codes.reshape(shape).transpose(*order)
        if raised is not None:
            raised.flat.reshape(returned)[...] = flags.reshape(shape).transpose(*order)
        finished = _engine.finished(result, raised, int(np.bitwise_or.reduce(flags)) if size else 0)
        if not self.count:
            return finished
        nothing = extremes[0] > extremes[1]
        extremes[:, nothing] = np.nan
        arrays = (x.reshape(shape).transpose(*order)[()] for x in (*counts, *extremes))
        return *finished, Counts(planned.stores.size + int(planned.stores.sum()), *arrays)

    def _check_addresses(self, size: int, length: int) -> None:
        if self.call.settings.generator != "philox4x32" or self.call.environment.generator != "philox4x32":
            raise ValueError(
                "generator must be 'philox4x32' for dot products, whose random numbers have addresses; "
                "'xoroshiro128aox' has only an order"
            )
        if size > STOCHASTIC_OUTPUTS or length > STOCHASTIC_STEPS:
            raise ValueError(
                f"rounding='stochastic' addresses {STOCHASTIC_OUTPUTS} outputs of {STOCHASTIC_STEPS} products, got {size} of {length}"
            )


def vecdot(
    a: Any,
    b: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    *,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Dot products over the last axis, summed by an accumulator.

    Parameters
    ----------
    a, b : array_like of int
        Codes, of shapes (..., k) that broadcast.
    fmt : Format, str, or a pair of them
        What both are codes of, or each.
    accumulator : Accumulator
        How to sum; see `softfloat.accumulators`.
    c : array_like of int, optional
        Codes in the partials format, of a shape that broadcasts to the output's: where the sum starts.
    out_format : Format or str, optional
        Of the output; default as the accumulator says, mostly the partials format.
    count : bool
        Return `Counts` as well.

    Returns
    -------
    codes : array of the output format's dtype
    flags : array of uint8, or int
        Everything the roundings of an output raised; INVALID also for signalling operands, 0 * inf and inf - inf.
    counts : Counts
        If `count`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: shapes that do not fit, formats the accumulator does not take.

    >>> from softfloat.accumulators import exact, fma
    >>> import numpy as np
    >>> big, one = 0x6800, 0x3C00  # 2048 and 1
    >>> [hex(vecdot([big, one, one], [one] * 3, "float16", how)[0]) for how in (fma("float16"), exact("float16"))]
    ['0x6800', '0x6801']
    """
    contraction = Contraction(check_formats(fmt), accumulator, out_format, count, options)
    x = check_codes(a, contraction.formats[0], "a")
    y = check_codes(b, contraction.formats[1], "b")
    if not x.ndim or not y.ndim:
        raise ValueError(f"a and b must have an axis to sum over, got shapes {x.shape} and {y.shape}")
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        shape = (-1,)
    if not shape or x.shape[-1] != y.shape[-1] or shape == (-1,):
        raise ValueError(f"shapes do not fit: a {x.shape}, b {y.shape}; accepted: (..., k) and (..., k) that broadcast")
    outer, length = shape[:-1], shape[-1]
    addend = contraction.check_addend(c, outer)
    problems = _paired(np.broadcast_to(x, shape), np.broadcast_to(y, shape), addend)
    return contraction.run(problems, length, outer, [x, y])


def _paired(x: Codes, y: Codes, c: Codes | None) -> Iterator[Problem]:
    """Dot products over the last axis, some along the first at a time: broadcast operands are never copied as a whole."""
    if x.ndim < 2:
        x, y, c = x[None], y[None], None if c is None else c[None]
    each, length = math.prod(x.shape[1:-1]), x.shape[-1]
    step = max(1, PIECE // max(each * length, 1))
    for first in range(0, x.shape[0], step):
        part = slice(first, first + step)
        count = x[part].shape[0] * each
        a, b = (np.ascontiguousarray(v[part].reshape(count, length).T) for v in (x, y))
        start = None if c is None else c[part].reshape(1, count)
        yield Problem(a, b, start, True, first * each, 0, 1)


def matmul(
    a: Any,
    b: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    *,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Matrix products with the shapes and broadcasting of `numpy.matmul`, each output summed by an accumulator.

    Parameters and results are those of `vecdot`, but for the shapes: a is (..., m, k) or (k,), b is (..., k, n) or
    (k,), c broadcasts to the output.

    >>> from softfloat.accumulators import mul_add
    >>> codes, flags = matmul([[0x3C00, 0x4000]], [[0x3C00], [0x4200]], "float16", mul_add("float16"))
    >>> hex(codes[0, 0]), int(flags[0, 0])  # 1*1 + 2*3
    ('0x4700', 0)
    """
    contraction = Contraction(check_formats(fmt), accumulator, out_format, count, options)
    x = check_codes(a, contraction.formats[0], "a")
    y = check_codes(b, contraction.formats[1], "b")
    if not x.ndim or not y.ndim:
        raise ValueError(f"a and b must not be scalars, got shapes {x.shape} and {y.shape}")
    left = x.reshape(1, -1) if x.ndim == 1 else x
    right = y.reshape(-1, 1) if y.ndim == 1 else y
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        batch = (-1,)
    if left.shape[-1] != right.shape[-2] or batch == (-1,):
        raise ValueError(
            f"shapes do not fit: a {x.shape}, b {y.shape}; accepted: (..., m, k) and (..., k, n) that broadcast"
        )
    rows, length, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    shape = (*batch, *((rows,) if x.ndim > 1 else ()), *((columns,) if y.ndim > 1 else ()))
    addend = contraction.check_addend(c, shape)
    grids = math.prod(batch)
    if math.prod(right.shape[:-2]) == 1 and left.ndim > 2:  # one b for all: its rows are rows of one product
        rows, grids = rows * grids, 1
        left, right = left.reshape(1, rows, length), right.reshape(1, length, columns)
        batch = (1,)
    left = np.broadcast_to(left, (*batch, rows, length)).reshape(grids, rows, length)
    right = np.broadcast_to(right, (*batch, length, columns)).reshape(grids, length, columns)
    start = None if addend is None else addend.reshape(grids, rows, columns)
    problems = [
        Problem(left[n], right[n], None if start is None else start[n], False, n * rows * columns, columns, 1)
        for n in range(grids)
    ]
    return contraction.run(problems, length, shape, [x, y])


def _moved(x: Any, fmt: Format, axis: int | None, argument: str) -> tuple[Codes, tuple[int, ...], int]:
    """(codes as (k, sums), shape of the sums, the axis): the summed axis first."""
    codes = check_codes(x, fmt, argument)
    if axis is None:
        return codes.reshape(-1, 1), (), 0
    if not codes.ndim:
        raise ValueError(f"axis must be None for a scalar, got {axis!r}")
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or not -codes.ndim <= axis < codes.ndim:
        raise ValueError(f"axis must be None or an integer from {-codes.ndim} to {codes.ndim - 1}, got {axis!r}")
    moved = np.moveaxis(codes, axis, 0)
    return moved.reshape(codes.shape[axis], math.prod(moved.shape[1:])), moved.shape[1:], int(axis) % codes.ndim


MANY = 2048  # numbers from which sums are faster as a row of ones times a matrix


def has_one(fmt: Format) -> bool:
    """Whether 1 is among a format's normal numbers."""
    return fmt.emin <= 0 and fmt.max >= 1


def _summed(
    codes: Any, fmt: Format | str, accumulator: Accumulator, axis: int | None, cumulative: bool,
    out_format: Format | str | None, count: bool, options: Options,
) -> Any:  # fmt: skip
    one = check_format(fmt)
    if out_format is None:
        out_format = check_accumulator(accumulator).output(one, one)
    contraction = Contraction((one, float32), accumulator, out_format, count, options)
    if contraction.accumulator.inputs:
        _check_inputs(contraction.accumulator, one)
        contraction.accumulator = contraction.accumulator.replace(inputs=(*contraction.accumulator.inputs, float32))
    flat, shape, moved = _moved(codes, one, axis, "codes")
    operands = [check_codes(codes, one, "codes")]
    if not cumulative and flat.size >= MANY and has_one(one):
        single, contraction.formats = contraction.formats, (one, one)
        if _tiling.choose(contraction.program(flat.shape[0])) is not None:
            row = np.broadcast_to(one.dtype.type(one.one_code), (1, flat.shape[0]))
            problem = Problem(row, flat, None, False, 0, flat.shape[1], 1)
            return contraction.run([problem], flat.shape[0], shape, operands)
        contraction.formats = single
    ones = np.broadcast_to(np.uint32(float32.one_code), flat.shape)
    if not cumulative:
        return contraction.run([Problem(flat, ones, None, True, 0, 0, 1)], flat.shape[0], shape, operands)
    how = contraction.accumulator
    if how.block != 1 or how.store or how.segments is not None or len(how.reduction) > 1 or len(how.order) > 1:
        raise ValueError(
            f"accumulator must add one number at a time, in order and in one level, for cumulative sums, got {how!r}"
        )
    if contraction.call.out is not None:
        raise ValueError("out must be None for cumulative sums")
    results = contraction.run([Problem(flat, ones, None, True, 0, 0, 1)], flat.shape[0], flat.shape, operands, True)
    return tuple(
        np.moveaxis(np.reshape(x, (flat.shape[0], *shape)), 0, moved) if isinstance(x, np.ndarray) else x
        for x in results
    )


def sum(
    codes: Any,
    fmt: Format | str,
    accumulator: Accumulator,
    axis: int | None = None,
    *,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Sums along an axis, or of everything: dot products with ones.

    Codes in, (codes, flags) out, of the shape without that axis; parameters as in `vecdot`. `fma(fmt)` adds one after
    the other, `pairwise(fmt)` in pairs, `chunked(...)` in chunks. An empty sum is +0.

    >>> from softfloat.accumulators import fma, pairwise
    >>> import numpy as np
    >>> ones = np.full(4096, 0x3C00, np.uint16)
    >>> [hex(sum(ones, "float16", how)[0]) for how in (fma("float16"), pairwise("float16"))]  # 2048, 4096
    ['0x6800', '0x6c00']
    """
    return _summed(codes, fmt, accumulator, axis, False, out_format, count, options)


def cumsum(
    codes: Any,
    fmt: Format | str,
    accumulator: Accumulator,
    axis: int | None = None,
    *,
    out_format: Format | str | None = None,
    **options: Unpack[Options],
) -> Any:
    """Sums of the first 1, 2, 3 ... numbers along an axis, or of the flattened codes: each is `sum` of that many.

    Codes in, (codes, flags) out, of the shape of `codes`; parameters as in `sum`. Stochastic sums share their random
    numbers as they share their additions.
    """
    return _summed(codes, fmt, accumulator, axis, True, out_format, False, options)
