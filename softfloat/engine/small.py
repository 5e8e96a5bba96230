"""Small products by the loops that are generated, everything but the operands settled beforehand.

What a call's formats, accumulator, settings and shapes decide is found once. Each function gives what the long way gives, or
None where that is to be gone: for operands that are not finite, sums that overflow, and all that needs looking into.
"""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import calls, elementwise, folds, generated, products, stacks, threads, tiling, unit_ways, ways
from softfloat.engine.arguments import Codes, magnitudes
from softfloat.engine.decoding import decoded
from softfloat.engine.draws import replica_key
from softfloat.engine.elementwise import Ready
from softfloat.engine.options import ENVIRONMENT_OPTIONS, Options, Uses
from softfloat.engine.parameters import FLOAT32, dots
from softfloat.engine.programs import STAGE_SETTINGS, Program, check_inputs, program
from softfloat.environments import Settings
from softfloat.formats import Format, check_format
from softfloat.kernels import spec
from softfloat.kernels.spec import FLOAT64, Overflow, Rule

MOST = 1 << 22  # multiply-adds, those of tiles filled up included, of operands that are laid out at once
FEW = 1 << 18  # of those, if most are in vain: outputs side by side have loops that waste none
WATCHED = 1 << 16  # from which on it pays to look at operands for sums that may be split

Shape = tuple[int, ...]


@lru_cache(maxsize=512)
def _left_open(accumulator: Accumulator) -> Uses:
    """Options that go straight: whether what the running stage fixes has an effect elsewhere, the long way says."""
    fixed = {name for name in STAGE_SETTINGS if getattr(accumulator.running, name) is not None}
    return Uses("sums", frozenset(ENVIRONMENT_OPTIONS - fixed - ({"nan"} if accumulator.nan else set())))


class Grid(NamedTuple):
    """So many products of (rows, length) and (length, columns), with addends or without."""

    products: int
    rows: int
    length: int
    columns: int
    addend: bool

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return self.products * self.rows * self.length * self.columns


class Plan(NamedTuple):
    """What serves a grid, settled."""

    grid: Grid
    planned: Program
    shape: Shape  # of outputs, tiles filled up
    ends: tuple[
        int, ...
    ]  # bytes before which panels of a and b, values and flags end that follow each other, all on lines of the cache
    way: ways.Way
    panels: ways.Panels  # whose operands are nowhere yet, but for ones
    job: generated.Job
    readers: tuple[generated.Reader | None, generated.Reader]  # no first one reads ones
    beyond: int  # flags after which an output may be no number
    in_range: bool  # whether all operands are that are finite
    watched: bool  # whether loops are told more of operands
    cost: int  # multiply-adds of a tile
    coded: Any  # the type of codes that loops make
    to_output: Ready | None  # None: these are the output's
    output: Format


@lru_cache(maxsize=512)
def _plan(
    accumulator: Accumulator, first: Format, second: Format, output: Format, whole: Settings, grid: Grid, sums: bool, fast: bool
) -> Plan | None:  # fmt: skip
    """The plan for a grid, or for `sums` of its second operand; None if the long way is to be gone, maybe to be refused there. `fast` is
    `elementwise.FAST`."""
    try:
        planned = program(accumulator, first, second, output, whole, grid.length)
    except (TypeError, ValueError):
        return None
    way = products.way_of(planned, whole, grid.addend) if fast else None
    if way is not None and way.joined is not None:
        planned = way.joined.planned
    if way is None or (planned.draws and not _addressed(whole)):
        return None
    if not _is_settled(way, planned, grid):
        return None
    carrier, length = np.dtype(way.carrier), way.turns(planned)
    of_a, of_b, outputs = stacks.shapes_of(way, grid.rows, length, grid.columns)
    padded = grid.products * math.prod(outputs) * length
    if padded > (MOST if 4 * grid.work >= padded else FEW):
        return None
    to_output, served = _to_output(planned, whole, output)
    if not served:
        return None
    coded = way.results.dtype
    a, b, values, flags = nowhere = [
        np.broadcast_to(np.zeros((), kind), (grid.products, *x))
        for x, kind in (
            (of_a, carrier),
            (of_b, carrier),
            (outputs, coded),
            (outputs, np.dtype(np.uint8)),
        )
    ]
    shape = grid.products, *outputs
    begins = np.zeros(shape, carrier)
    first_reader, second_reader = (_reader(way, planned, which, grid, x) for which, x in enumerate((a, b)))
    if first_reader is None or second_reader is None:
        return None
    if sums:
        a, first_reader = np.ones(a.shape, carrier), None
    panels = ways.Panels(a, b, begins, values, flags, grid.rows, grid.columns, grid.addend)
    key = replica_key(whole.seed or 0, 0 if whole.replica_identical else whole.replica)
    saturates = way.last.rule.overflow is Overflow.SATURATE and not way.compensates
    return Plan(
        grid=grid,
        planned=planned,
        shape=shape,
        ends=tuple(accumulate(-(-x.size * x.itemsize // CACHE_LINE) * CACHE_LINE for x in nowhere)),
        way=way,
        panels=panels,
        job=way.grids(planned, panels, ways.Place(0, grid.columns, 1), ways.Random(key, 0), quickly=False),
        readers=(first_reader, second_reader),
        beyond=0 if saturates else int(spec.OVERFLOW),
        in_range=not grid.addend and tiling.always_fits(way, planned),
        watched=isinstance(way, ways.Generated) and way.plainly_in_order and grid.work >= WATCHED,
        cost=length * of_a[-1] * of_b[-1],
        coded=coded,
        to_output=to_output,
        output=output,
    )


def _is_settled(way: ways.Way, planned: Program, grid: Grid) -> bool:
    """Whether nothing is to be known of operands beyond what their reading tells; whether a loop is worth its making, of orders and units of
    which there are many."""
    if isinstance(way, ways.Generated):
        if way.operation != "pairwise" and way.joined is None:
            return True
    elif not isinstance(way, unit_ways.UnitWay) or way.unit.kind != "aligned" or way.alike:
        return False
    if planned.accumulator.scale_exponent:
        return False
    return grid.products > 1 or (1 not in (grid.rows, grid.columns) and grid.work >= unit_ways.WORTH_LOOPS)


def _addressed(whole: Settings) -> bool:
    """Whether random numbers have addresses that are known."""
    return whole.generator == "philox4x32" and whole.seed is not None


def _reader(way: ways.Way, planned: Program, which: int, grid: Grid, panels: Codes) -> generated.Reader | None:
    """What reads an operand; None if its codes have to be looked at before."""
    fmt = planned.formats[which]
    source = way.source(planned, which, np.empty(0, fmt.dtype))
    looks = planned.reading[which].daz or fmt.spec not in (FLOAT32, FLOAT64)
    if source is None or (source.reading == "number" and looks):
        return None
    outputs, steps = (grid.columns, (grid.columns, 1)) if which else (grid.rows, (1, grid.length))
    lying = generated.Lying(
        0, *steps, 0, planned.order.size or grid.length, outputs, grid.products, grid.length * outputs
    )
    return source.reader(panels, lying, planned.order)


def _to_output(planned: Program, whole: Settings, output: Format) -> tuple[Ready | None, bool]:
    """(what makes codes of the output of those of partials, or None if these are the output's, whether it can be done here)."""
    if not planned.converts:
        return None, True
    if planned.partials.spec != FLOAT32 or planned.sites[dots().RESULT].width:
        return None, False
    nan = None if planned.accumulator.nan is None else planned.policy.name
    settings = products.result_settings(whole, output, nan, 0, planned.entry.daz)
    ready = elementwise.prepared("convert", output, settings, elementwise.FAST, True, 0.0, FLOAT32)
    return ready, ready is not None


ONE = tiling.Extent(0, 1, True, False)
_BYTE = array("B", [0])
CACHE_LINE = 64


def _run(plan: Plan, a: Codes | None, b: Codes, c: Codes | None, stream: int, each: bool) -> tuple[Codes, Any] | None:
    """(codes, flags) of products, whose operands are flat; without `a` the sums of columns."""
    (count, rows, _, columns, addend), spans, panels = plan.grid, list[tiling.Extent](), plan.panels
    room = _BYTE * (plan.ends[-1] + CACHE_LINE)  # of which Python knows sooner where it lies
    skipped = -room.buffer_info()[0] % CACHE_LINE
    at, (of_b, of_sums, of_flags, _) = room.buffer_info()[0] + skipped, plan.ends
    given = {"a": at, "b": at + of_b, "values": at + of_sums, "flags": at + of_flags, "stream": stream}
    greatest = [1.0, 1.0, 0.0]
    for which, (name, reader, codes) in enumerate(zip("ab", plan.readers, (a, b), strict=True)):
        if reader is None or codes is None:  # there are ones
            del given[name]
            spans.append(ONE)
            continue
        low, high, finite = reader.read(codes=generated.address(codes), panels=given[name])
        if not finite:
            return None
        greatest[which] = high
        if not plan.in_range:
            spans.append(tiling.extent_of(low, high, True, plan.planned.formats[which]))
    span_of_c = None
    if addend and c is not None:
        start = decoded(c, plan.planned.partials, plan.planned.entry).reshape(count, rows, columns)
        span_of_c = tiling.extent(start, plan.planned.partials)
        addends: Codes = np.zeros(plan.shape, plan.way.carrier)
        addends[:, :rows, :columns] = start
        given["c"], greatest[2] = generated.address(addends), 2.0 ** min(span_of_c.high, 1023)
    if not plan.in_range and not tiling.fits_tiles(plan.way, plan.planned, spans, span_of_c):
        return None
    told: dict[str, Codes] = {}
    if plan.watched and isinstance(plan.way, ways.Generated):
        x, y = (
            panel
            if reader is None
            else np.frombuffer(room, panel.dtype, panel.size, skipped + begin).reshape(panel.shape)
            for panel, reader, begin in zip(panels[:2], plan.readers, (0, of_b), strict=True)
        )
        told, numbers = plan.way.watched(
            plan.planned, panels._replace(a=x, b=y, greatest=(greatest[0], greatest[1], greatest[2]))
        )
        given |= numbers | generated.addresses(told)

    told_back = list[int]()

    def work(first: int, last: int) -> int:
        told_back.append(plan.job(first, last, given))
        return 0

    threads.share_units(panels.tiles, work, plan.cost)
    if any(map(generated.is_unusual, told_back)):
        return None
    if count == rows == columns == 1:
        rounded, seen = np.frombuffer(room, plan.coded, 1, skipped + of_sums), room[skipped + of_flags]
        raised = np.array([[[seen]]], np.uint8)
    else:
        rounded, raised = (
            np.frombuffer(room, kind, math.prod(plan.shape), skipped + begin)
            .reshape(plan.shape)[:, :rows, :columns]
            .copy()
            for kind, begin in ((plan.coded, of_sums), (np.dtype(np.uint8), of_flags))
        )
        rounded, seen = rounded.reshape(-1), int(np.bitwise_or.reduce(raised, axis=None))
    if seen & plan.beyond:
        return None
    if plan.to_output is None:
        return rounded, raised if each else seen
    rounded.setflags(write=False)
    codes = np.empty(rounded.size, plan.output.dtype)
    more = np.empty(rounded.size, np.uint8)
    plan.to_output(rounded, rounded, rounded, codes, more, 0, False)
    return codes, raised | more.reshape(raised.shape) if each else seen | int(np.bitwise_or.reduce(more))


def _returned(found: tuple[Codes, Any], shape: Shape, each: bool) -> tuple[Any, Any]:
    """(codes, flags) as the caller sees them."""
    codes, flags = found
    if not shape:
        return codes[0], flags[0, 0, 0] if each else flags
    return codes.reshape(shape), flags.reshape(shape) if each else flags


def _is_whole(x: Any, fmt: Format) -> bool:
    """Whether something is an array of a format's codes in which every code is one of the format."""
    return type(x) is np.ndarray and x.dtype == fmt.dtype and fmt.bits == 8 * fmt.dtype.itemsize


def product(
    a: Any,
    b: Any,
    formats: tuple[Format, Format],
    accumulator: Any,
    c: Any,
    output: Format | str | None,
    options: Options,
) -> tuple[Any, Any] | None:
    """A product of a matrix or a vector, and a matrix or a vector; or of stacks of matrices, one by one."""
    first, second = formats
    if not (_is_whole(a, first) and _is_whole(b, second)) or not isinstance(accumulator, Accumulator):
        return None
    if not (0 < a.ndim < 4 and 0 < b.ndim < 4) or (3 in (a.ndim, b.ndim) and (a.ndim != b.ndim or len(a) != len(b))):
        return None
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        return None
    asked = calls.brief(options, _left_open(accumulator))
    if asked is None:
        return None
    whole, each, stream = asked
    count, length = len(a) if a.ndim == 3 else 1, a.shape[-1]
    rows, columns = a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1
    if not count * rows * columns:
        return None
    shape = a.shape[:-1] + (b.shape[-1:] if b.ndim > 1 else ())
    if c is not None and not (_is_whole(c, accumulator.partials) and c.shape == shape):
        return None
    grid = Grid(count, rows, length, columns, c is not None)
    output = accumulator.output(first, second) if output is None else check_format(output, "out_format", wide=True)
    plan = _plan(accumulator, first, second, output, whole, grid, False, elementwise.FAST)
    if plan is None:
        return None
    found = _run(plan, calls.flat(a), calls.flat(b), None if c is None else calls.flat(c), stream, each)
    return None if found is None else _returned(found, shape, each)


@lru_cache(maxsize=512)
def _has_sums(accumulator: Accumulator, fmt: Format) -> bool:
    """Whether numbers of a format, which are products with its 1, can be summed."""
    try:
        check_inputs(accumulator, fmt)
    except ValueError:
        return False
    return fmt.emin <= 0 and fmt.max >= 1


@lru_cache(maxsize=512)
def _plan_of_sums(
    accumulator: Accumulator, fmt: Format, output: Format | None, whole: Settings, length: int, columns: int, fast: bool
) -> Plan | None:
    """The plan for sums of so many numbers each, as `_plan` has it."""
    if not _has_sums(accumulator, fmt):
        return None
    output = accumulator.output(fmt, fmt) if output is None else output
    return _plan(accumulator, fmt, fmt, output, whole, Grid(1, 1, length, columns, False), True, fast)


FOLDED = 1 << 12
"""Numbers whose cumulative sums are a fold; more go faster in loops of their own."""


@lru_cache(maxsize=512)
def _rule_of_sums(
    accumulator: Accumulator, fmt: Format, output: Format | None, whole: Settings, length: int, fast: bool
) -> Rule | None:
    """How each of so many numbers is added to the sum before it, where that is an addition in their format, and draws nothing."""
    in_order = Accumulator(name="", running=accumulator.running, inputs=accumulator.inputs)
    in_its_format = fmt == accumulator.partials == (output or fmt)
    if not (fast and accumulator == in_order and in_its_format) or fmt.spec.lone_nan >= 0:
        return None
    try:
        check_inputs(accumulator, fmt)
        planned = program(accumulator, fmt, fmt, fmt, whole, length)
    except (TypeError, ValueError):
        return None
    way = ways.choose(planned)
    if way is None or way.operation != "fma" or way.stage.draws:
        return None
    return way.site.rule


def cumulative(
    codes: Any, fmt: Format, accumulator: Any, axis: int | None, output: Format | str | None, options: Options
) -> tuple[Any, Any] | None:
    """Cumulative sums of few numbers, with flags for all of them together."""
    if not _is_whole(codes, fmt) or not isinstance(accumulator, Accumulator) or not 0 < codes.size <= FOLDED:
        return None
    asked = calls.brief(options, _left_open(accumulator))
    if asked is None or asked[1] or not codes.ndim:
        return None
    if axis is None:
        rows: Codes = codes.reshape(-1, 1)
    elif type(axis) is int and -codes.ndim <= axis < codes.ndim:
        rows = np.moveaxis(codes, axis, 0)
    else:
        return None
    output = output if output is None else check_format(output, "out_format", wide=True)
    if accumulator.wide or fmt.wide or (output is not None and output.wide):
        return None
    rule = _rule_of_sums(accumulator, fmt, output, asked[0], len(rows), elementwise.FAST)
    if rule is None:
        return None
    steps, flags = folds.summed(np.concatenate([np.zeros_like(rows[:1]), rows]), fmt, rule, True)
    if int(magnitudes(steps, fmt).max()) > fmt.max_code:  # infinities and NaNs, which the long way looks into
        return None
    found = steps[1:].reshape(-1) if axis is None else np.moveaxis(steps[1:], 0, axis)
    return found, int(np.bitwise_or.reduce(flags, axis=None))


def total(
    codes: Any, fmt: Format, accumulator: Any, axis: int | None, output: Format | str | None, options: Options
) -> tuple[Any, Any] | None:
    """Sums along an axis, or of everything: a row of ones times a matrix."""
    if not _is_whole(codes, fmt) or not isinstance(accumulator, Accumulator):
        return None
    asked = calls.brief(options, _left_open(accumulator))
    if asked is None or codes.ndim == 0:
        return None
    whole, each, stream = asked
    if axis is None or (codes.ndim == 1 and type(axis) is int and axis in (0, -1)):
        length, shape = codes.size, ()
        laid_out = codes
    elif type(axis) is int and -codes.ndim <= axis < codes.ndim:
        axis %= codes.ndim
        length, shape = codes.shape[axis], codes.shape[:axis] + codes.shape[axis + 1 :]
        laid_out = np.moveaxis(codes, axis, 0) if axis else codes
    else:
        return None
    columns = math.prod(shape)
    if not columns or not length:
        return None
    output = output if output is None else check_format(output, "out_format", wide=True)
    plan = _plan_of_sums(accumulator, fmt, output, whole, length, columns, elementwise.FAST)
    found = None if plan is None else _run(plan, None, calls.flat(laid_out), None, stream, each)
    return None if found is None else _returned(found, shape, each)
