"""Small products by the loops that are generated, everything but the operands settled beforehand.

What a call's formats, accumulator, settings and shapes decide is found once. Each function gives what the long way gives, or
None where that is to be gone: for operands that are not finite, sums that overflow, and all that needs looking into.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import calls, elementwise, folds, products, small_draws, stacks, tiling, ways
from softfloat.engine.arguments import Codes, magnitudes
from softfloat.engine.elementwise import NO_CODES, Ready
from softfloat.engine.options import ENVIRONMENT_OPTIONS, Call, Options, Uses
from softfloat.engine.parameters import FLOAT32, NEAREST, Numbers, dots, loops, numbers, tiles
from softfloat.engine.problems import Problem, Results
from softfloat.engine.programs import STAGE_SETTINGS, Program, check_inputs, program
from softfloat.environments import Settings
from softfloat.formats import Format, check_format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, Overflow, Rule

FUSED = "fma", "single_fma", "single_fma_of_narrow"
"""Operations that round a sum alone; its terms are numbers as they are."""
MOST = 1 << 18  # multiply-adds, those of tiles filled up included, that one thread does
WHOLE = 1 << 28  # multiply-adds of a batch up to which all of it is done at once

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
    def panels(self) -> tuple[int, int]:
        """Panels of rows and of columns."""
        return -(-self.rows // tiles().ROWS), -(-self.columns // tiles().LANES[np.float32])


class Plan(NamedTuple):
    """What serves a grid, settled."""

    grid: Grid
    shape: tuple[int, int, int]  # of outputs, tiles filled up
    tiles: int  # of each product
    sizes: tuple[int, int]  # of panels
    way: ways.OneByOne
    loop: Any
    decode: Any
    extent: Any
    nothing: Codes  # zeros in that shape, to which nobody writes
    numbers: Codes
    nan_flags: int
    beyond: int  # flags after which an output may be no number
    inputs: tuple[Format, Format, Format]  # those of c come last
    read: tuple[Numbers, Numbers, Numbers]
    in_range: bool  # whether all operands are that are finite
    coded: Any  # the type of codes that loops make, or of values as float32 has them
    to_output: Ready | None  # None: these are the output's
    output: Format
    rounds: bool  # whether the output's format differs from that of partials


@lru_cache(maxsize=512)
def _plan(
    accumulator: Accumulator, first: Format, second: Format, output: Format, whole: Settings, grid: Grid, fast: bool
) -> Plan | None:
    """The plan for a grid; None if the long way is to be gone, maybe to be refused there. `fast` is `elementwise.FAST`."""
    try:
        planned = program(accumulator, first, second, output, whole, grid.length)
    except (TypeError, ValueError):
        return None
    way = ways.choose(planned) if fast else None
    if not isinstance(way, ways.OneByOne):
        return None
    down, across = grid.panels
    if planned.index is not None or planned.length != grid.length:
        return None
    if grid.products * down * across * grid.length * tiles().ROWS * tiles().LANES[np.float32] > MOST:
        return None
    to_output, served = _to_output(way, planned, whole, output)
    if not served:
        return None
    shape = grid.products, down * tiles().ROWS, across * tiles().LANES[np.float32]
    saturates = way.site.rule.overflow is Overflow.SATURATE
    inputs = first, second, planned.partials
    rules = *planned.reading, planned.entry
    return Plan(
        grid=grid,
        shape=shape,
        tiles=down * across,
        sizes=(tiles().ROWS, tiles().LANES[np.float32]),
        way=way,
        loop=way.looped(planned, ways.Place(0, 0, 0), ways.Random(0, 0), grid.length, 1).grids,
        decode=loops().decoding(),
        extent=dots().extent(),
        nothing=np.zeros(shape, np.float32),
        numbers=tiling.numbers_of(way, planned),
        nan_flags=tiling.nan_flags_of(way),
        beyond=0 if saturates else int(spec.OVERFLOW),
        inputs=inputs,
        read=tuple(numbers(x.spec, x.spec, rule, CARRIER64) for x, rule in zip(inputs, rules, strict=True)),  # type: ignore[arg-type]
        in_range=not grid.addend and tiling.always_fits(way, grid.length, first, second),
        coded=way.site.format.dtype if way.results else np.uint32,
        to_output=to_output,
        output=output,
        rounds=planned.converts,
    )


def _to_output(way: ways.OneByOne, planned: Program, whole: Settings, output: Format) -> tuple[Ready | None, bool]:
    """(what makes codes of the output of those of float32, or None if loops write the output's, whether it can be done here)."""
    if not planned.converts:
        if output.spec == FLOAT32 or way.results:
            return None, True
        ready = elementwise.prepared("convert", output, NEAREST, elementwise.FAST, False, 0.0, FLOAT32)
        return ready, ready is not None
    if planned.partials.spec != FLOAT32 or planned.sites[dots().RESULT].width:
        return None, False
    nan = None if planned.accumulator.nan is None else planned.policy.name
    settings = products.result_settings(whole, output, nan, 0, planned.entry.daz)
    ready = elementwise.prepared("convert", output, settings, elementwise.FAST, True, 0.0, FLOAT32)
    return ready, ready is not None


@lru_cache(maxsize=64)
def _ones(count: int, length: int, size: int) -> Codes:
    """Rows of ones as tiles take them; nobody writes to them."""
    found = np.zeros((count, 1, 1, length, size), np.float32)
    found[..., 0] = 1.0
    return found


def laid_out(numbers: Codes, size: int) -> Codes:
    """(products, 1, panels, k, size) of numbers (products, k, n), filled up with zeros."""
    products, length, count = numbers.shape
    panels = -(-count // size)
    shape = products, 1, panels, length, size
    if panels == 1:  # mostly so, and then anything else would take longer than the sums
        found: Codes = np.zeros(shape, np.float32)
        if products == count == 1:
            found[..., 0] = numbers.reshape(-1)
        else:
            found[:, 0, 0, :, :count] = numbers
        return found
    found = tiling.on_lines(shape, np.float32)
    whole, rest = divmod(count, size)
    found[:, 0, :whole] = numbers[:, :, : whole * size].reshape(products, length, whole, size).transpose(0, 2, 1, 3)
    if rest:
        found[:, 0, whole, :, :rest] = numbers[:, :, whole * size :]
    return found


@lru_cache(maxsize=64)
def _span_of_ones(fmt: Format) -> tiling.Extent:
    return tiling.extent_of(1.0, 1.0, True, fmt)


def _run(plan: Plan, a: Codes | None, b: Codes, c: Codes | None, each: bool) -> tuple[Codes, Any] | None:
    """(codes, flags) of products, whose operands are flat; without `a` a row of ones."""
    (count, rows, length, columns, _), shape, decode = plan.grid, plan.shape, plan.decode
    height, width = plan.sizes
    left: Codes
    if a is None:
        values = np.empty(b.size)
        decode(b, values, *plan.read[1])
        left, right = values, values.reshape(count, length, columns)
    else:
        before = a.size
        values = np.empty(before + b.size)
        decode(a, values[:before], *plan.read[0])
        decode(b, values[before:], *plan.read[1])
        left, right = values[:before].reshape(-1, rows, length), values[before:].reshape(count, length, columns)
    start: Codes | None = None
    if c is not None:
        start = np.empty((count, rows, columns))
        decode(c, start.reshape(-1), *plan.read[2])
    if plan.in_range:  # what is not finite makes outputs that are not, unless these saturate
        if not plan.beyond and not plan.extent(values)[2]:
            return None
    else:
        first, second = plan.inputs[:2]
        spans = [_span_of_ones(first) if a is None else tiling.extent(left, first), tiling.extent(right, second)]
        span_of_c = None if start is None else tiling.extent(start, plan.inputs[2])
        if not tiling.fits_tiles(plan.way, length, spans, span_of_c):
            return None
    addends = plan.nothing
    if start is not None:
        addends = np.zeros(shape, np.float32)
        addends[:, :rows, :columns] = start
    sums: Codes = np.empty(shape, plan.way.results or np.float32)
    flags = np.empty(shape, np.uint8)
    row_panels = _ones(count, length, height) if a is None else laid_out(left.transpose(0, 2, 1), height)
    column_panels = laid_out(right, width)
    plan.loop(
        0, count * plan.tiles, row_panels, column_panels, addends, sums, flags, plan.numbers, plan.nan_flags, rows, columns,
    )  # fmt: skip
    raised = flags[:, :rows, :columns]
    if raised.size == 1:
        seen, rounded = int(flags[0, 0, 0]), sums[0, 0, :1]
    else:
        seen, rounded = int(np.bitwise_or.reduce(raised, axis=None)), sums[:, :rows, :columns].flatten()
    if seen & plan.beyond:
        return None
    single = rounded.view(plan.coded)
    if plan.to_output is None:
        return single, raised if each else seen
    single.setflags(write=False)
    codes, more = np.empty(single.size, plan.output.dtype), np.empty(single.size, np.uint8) if plan.rounds else NO_CODES
    plan.to_output(single, single, single, codes, more, 0, False)
    if plan.rounds and each:
        raised = raised | more.reshape(raised.shape)
    elif plan.rounds:
        seen |= int(np.bitwise_or.reduce(more))
    return codes, raised if each else seen


def _returned(found: tuple[Codes, Any], shape: Shape, each: bool) -> tuple[Any, Any]:
    """(codes, flags) as the caller sees them."""
    codes, flags = found
    if not shape:
        return codes[0], flags[0, 0, 0] if each else flags
    return codes.reshape(shape), flags.reshape(shape) if each else flags


def _is_whole(x: Any, fmt: Format) -> bool:
    """Whether something is an array of a format's codes in which every code is one of the format."""
    return type(x) is np.ndarray and x.dtype == fmt.dtype and fmt.bits == 8 * fmt.dtype.itemsize


@lru_cache(maxsize=512)
def _batched(
    accumulator: Accumulator, first: Format, second: Format, output: Format, whole: Settings, grid: Grid, fast: bool
) -> tuple[Program, ways.Way] | None:
    """What does so many products at once, if there is nothing else to do for them."""
    work = grid.products * grid.rows * grid.length * grid.columns
    if not fast or grid.addend or work > WHOLE or (grid.products == 1 and 1 in (grid.rows, grid.columns)):
        return None
    try:
        planned = program(accumulator, first, second, output, whole, grid.length)
    except (TypeError, ValueError):
        return None
    if planned.draws or (grid.products == 1 and not products.goes_directly(planned, work)):
        return None
    way = products.way_of(planned)
    return (planned, way) if way is not None and products.is_straight(planned) else None


def _batch(a: Codes, b: Codes, asked: Any, each: bool, options: Options) -> tuple[Any, Any] | None:
    """Products too many or too large for `_run`, some at a time: what comes before their loops takes no more time than needed.

    One alone that its loops leave goes the long way.
    """
    *_, output, _, grid = asked
    found = _batched(*asked, elementwise.FAST)
    if found is None:
        return None
    planned, way = found
    shape, columns = (grid.products, grid.rows, grid.columns), grid.columns
    codes, flags = np.empty(shape, output.dtype), np.empty(shape, np.uint8)
    a, b = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
    done = stacks.run(way, planned, a, b, None, ways.Place(0, columns, 1), ways.Random(0, 0), (codes, flags))
    if done is None:
        return None
    if done.left:
        problem, call = Problem(a, b, None, False, 0, columns, 1), Call(options, output)
        nothing = np.empty((3, 0, 0), np.int64), np.empty((2, 0, 0))
        results = Results(codes.reshape(-1, columns), flags.reshape(-1, columns), *nothing)
        products.one_by_one(problem, planned, call, results, done[2], False)
    if each:
        return codes, flags
    known = done.seen is not None and not done.left
    return codes, done.seen if known else int(np.bitwise_or.reduce(flags, axis=None))


def _drawn(
    asked: tuple[Accumulator, Format, Format, Format, Settings],
    sizes: small_draws.Sizes,
    a: Codes | None,
    b: Codes,
    stream: int,
    each: bool,
) -> tuple[Codes, Any] | None:
    """Few outputs that draw; without `a` sums."""
    if sizes.products > small_draws.MOST:
        return None
    plan = small_draws.plan(*asked, sizes, elementwise.FAST)
    if plan is None:
        return None
    return small_draws.run(plan, None if a is None else calls.flat(a), calls.flat(b), stream, each)


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
    if accumulator.wide or first.wide or second.wide or output.wide:
        return None
    plan = _plan(accumulator, first, second, output, whole, grid, elementwise.FAST)
    if plan is None:
        asked_for, sizes = (accumulator, first, second, output, whole), small_draws.Sizes(rows, length, columns)
        found = _drawn(asked_for, sizes, a, b, stream, each) if count == 1 and c is None else None
        if found is None:
            found = _batch(a, b, (*asked_for, grid), each, options)
        return None if found is None else _returned(found, shape, each)
    found = _run(plan, calls.flat(a), calls.flat(b), None if c is None else calls.flat(c), each)
    return None if found is None else _returned(found, shape, each)


@lru_cache(maxsize=512)
def _has_sums(accumulator: Accumulator, fmt: Format) -> bool:
    """Whether numbers of a format, which are products with its 1, can be summed."""
    try:
        check_inputs(accumulator, fmt)
    except ValueError:
        return False
    return fmt.emin <= 0 and fmt.max >= 1


def _drawn_sums(
    codes: Codes, fmt: Format, accumulator: Accumulator, output: Format | None, columns: int, asked: calls.Brief
) -> tuple[Codes, Any] | None:
    """Few sums that draw, of (length, columns) codes."""
    if not _has_sums(accumulator, fmt):
        return None
    whole, each, stream = asked
    output = accumulator.output(fmt, fmt) if output is None else output
    sizes = small_draws.Sizes(1, codes.size // columns, columns)
    return _drawn((accumulator, fmt, fmt, output, whole), sizes, None, codes, stream, each)


@lru_cache(maxsize=512)
def _plan_of_sums(
    accumulator: Accumulator, fmt: Format, output: Format | None, whole: Settings, length: int, columns: int, fast: bool
) -> Plan | None:
    """The plan for sums of so many numbers each, as `_plan` has it."""
    if not _has_sums(accumulator, fmt):
        return None
    output = accumulator.output(fmt, fmt) if output is None else output
    return _plan(accumulator, fmt, fmt, output, whole, Grid(1, 1, length, columns, False), fast)


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
    if not isinstance(way, ways.OneByOne) or way.operation not in FUSED:
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
    whole, each, _ = asked
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
    if accumulator.wide or fmt.wide or (output is not None and output.wide):
        return None
    plan = _plan_of_sums(accumulator, fmt, output, whole, length, columns, elementwise.FAST)
    if plan is None:
        drawn = _drawn_sums(laid_out, fmt, accumulator, output, columns, asked)
        return None if drawn is None else _returned(drawn, shape, each)
    found = _run(plan, None, calls.flat(laid_out), None, each)
    return None if found is None else _returned(found, shape, each)
