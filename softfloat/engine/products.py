"""A grid of dot products: by the faster loops where they serve it, else by the plain one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from softfloat.engine import (
    apart,
    arguments,
    block_units,
    described,
    elementwise,
    entire,
    joined,
    lines,
    plain,
    prefixes,
    scaled_segments,
    segments,
    stacks,
    trees,
    unit_ways,
    units,
    ways,
    wide_sums,
)
from softfloat.engine.apart import Entered
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded
from softfloat.engine.draws import grid_bits, replica_key
from softfloat.engine.options import Call
from softfloat.engine.parameters import dots
from softfloat.engine.problems import Problem, Results, Scales
from softfloat.engine.programs import SIDE_BY_SIDE, Program
from softfloat.engine.segments import Done
from softfloat.environments import Settings
from softfloat.formats import Format
from softfloat.kernels import spec

SPREAD = 1 << 20
"""Products of small grids whose outputs go in a line together."""
MOST_PARTS = 4
"""Parts of a grid that a loop which takes infinities does each for itself: more of them take longer than the whole."""
NARROW = 16
"""Columns of a grid, of fewer of which the plain loop has not enough outputs side by side."""


def _has_nan(values: Codes) -> bool:
    return values.size > 0 and bool(np.isnan(values.min()))


def _signals(codes: Codes, values: Codes, fmt: Format, axis: int, cumulative: bool = False) -> Any:
    """INVALID for each row or column that has a signalling NaN; `cumulative`: for each place from there on."""
    if not _has_nan(values):
        return 0
    signalling = arguments.is_signalling(codes, fmt)
    found = np.logical_or.accumulate(signalling, axis=axis) if cumulative else signalling.any(axis=axis)
    return found.astype(np.uint8) * np.uint8(spec.INVALID)


def run(problem: Problem, planned: Program, call: Call, results: Results) -> None:
    """Do one grid of outputs, or many: by the faster loops where they serve it, else by the plain one."""
    if planned.wide:
        problem, planned = wide_sums.entered(problem, planned)
        if results.counting and planned.kind == dots().EXACT:  # which no loop counts
            wide_sums.run(problem, planned, random_of(call), results)
            return
    if problem.scales is not None:
        _grid(problem, planned, call, results)
        return
    if problem.a.ndim == 3:
        _stack(problem, planned, call, results)
        return
    line = _line(problem)
    left = None if line is None else _by_line(line, problem, planned, call, results)
    if line is None or left is None:
        _grid(problem, planned, call, results)
        return
    whole = [x.reshape(*x.shape[:-2], -1, line.a.shape[1]) for x in results[: 4 if results.counting else 2]]
    # random numbers are those of outputs that follow one another
    for some in np.split(left, np.flatnonzero(np.diff(left) > 1) + 1) if planned.draws else [left]:
        if not some.size:
            continue
        c = None if line.c is None else line.c[:, some]
        part = replace(
            line, a=line.a[:, some], b=line.b[:, some], c=c, index=line.index + int(some[0]) * line.column_stride
        )
        room = [np.empty((*x.shape[:-1], some.size), x.dtype) for x in whole]
        found = results._replace(**dict(zip(Results._fields, room, strict=False)))
        _grid(part, planned, call, found)
        for target, source in zip(whole, room, strict=True):
            target[..., some] = source


def _line(problem: Problem) -> Problem | None:
    """A grid whose outputs are in a line, with operands of their own."""
    a, b, start = problem.a, problem.b, None if problem.c is None else problem.c.reshape(1, -1)
    if problem.paired:
        return problem if start is None else replace(problem, c=start)
    if b.shape[1] == 1:
        return Problem(a.T, np.broadcast_to(b, a.T.shape), start, True, problem.index, 0, problem.row_stride)
    if a.shape[0] == 1:
        return replace(problem, a=np.broadcast_to(a.T, b.shape), c=start, paired=True)
    return None


def _by_line(line: Problem, problem: Problem, planned: Program, call: Call, results: Results) -> Codes | None:
    """Outputs in a line by the faster loops: the numbers of those left for the plain one, None for all."""
    random, shape, count = random_of(call), results.codes.shape, line.a.shape[1]
    left = np.zeros(count, np.bool_)
    tally = ways.Tally(results.counts.reshape(3, -1), results.extremes.reshape(2, -1)) if results.counting else None
    cumulative, counting = problem.cumulative, results.counting

    def bits_of(of: Problem, number: int, steps: Codes, outputs: slice) -> Codes:
        place, width = (of.index + outputs.start * of.column_stride, 0, of.column_stride), planned.sites[number].width
        shape = len(steps), outputs.stop - outputs.start
        return grid_bits(shape, place, number, steps, width, *random)

    def run_part(
        part: Program,
        of: Problem,
        start: Codes | None = None,
        counted: ways.Tally | None = tally,
        outputs: Codes = left,
    ) -> Done | None:
        if _pairs_all(part):
            if cumulative:
                found = prefixes.in_pairs(part, of.a, of.b, partial(bits_of, of))
                if found is not None:
                    outputs[found[2] % outputs.size] = True
                return found and found[:2]
            paired = described.run_line(part, of, start, random, counted)
            if paired is None:
                if counted is not None or not trees.serves(part):
                    return None
                return trees.run(part, of.a, of.b, None if of.c is None else of.c[0])
            outputs[paired.left % outputs.size] = True
            return paired[:2]
        way: ways.Way | None = ways.choose(part)
        if way is None and not part.wide and unit_ways.worth_line(part, of.a.shape[1]):
            way = units.in_line(part, start is not None)
        if not lines.serves(way, part, cumulative, counting):
            return None
        done = lines.run(of, part, way, start, random, counted)
        if done is None:
            return None
        outputs[done[2] % outputs.size] = True  # of several parts side by side, or of one
        return done[:2]

    def run_parts(
        part: Program, cuts: segments.Cuts, of_parts: ways.Tally | None = None, outputs: slice = slice(0, count)
    ) -> Done | None:
        a, b = (cuts.side_by_side(x[:, outputs]) for x in (line.a, line.b))
        first = line.index + outputs.start * line.column_stride
        done = run_part(part, replace(line, a=a, b=b, c=None, index=first), None, of_parts, left[outputs])
        shape = (part.length, cuts.stretches, -1) if cumulative else (cuts.stretches, -1)
        return None if done is None else (done[0].reshape(shape), done[1].reshape(shape))

    def by_itself() -> Done | None:
        start = None
        if line.c is not None:
            start = decoded(np.ascontiguousarray(line.c).reshape(-1), planned.partials, planned.entry)
        return run_part(planned, line, start)

    if cumulative and (planned.accumulator.reduction or planned.accumulator.chains > 1):
        done = prefixes.of_parts(planned, count, call, run_parts, partial(bits_of, line))
    elif unit_ways.joins(planned) and (done := by_itself()) is not None:
        pass
    elif planned.accumulator.reduction or planned.accumulator.chains > 1:

        def bits(site: int, step: int, _: int) -> Codes:
            return bits_of(line, site, np.array([step]), slice(0, count)).reshape(-1)

        done = segments.run(planned, line.c, (count,), call, run_parts, bits, segments.SIDE_BY_SIDE, tally)
    elif entire.serves(planned) and not (cumulative or counting):
        place = ways.Place(line.index, 0, line.column_stride)
        done = entire.in_line(planned, line.a, line.b, None if line.c is None else line.c[0], place, random)
    else:
        done = by_itself()
    if done is None:
        return None
    _finish((done[0].reshape(shape), done[1].reshape(shape)), problem, planned, call, results)
    return np.flatnonzero(left)


def _stack(problem: Problem, planned: Program, call: Call, results: Results) -> None:
    """Grids one by one, if they do not go together."""
    left = None
    if not (results.counting or planned.goes_on):
        left = _together(problem, planned, call, results, ways.Place(problem.index, problem.b.shape[2], 1))
    if planned.wide:
        if left != []:
            wide_sums.run(problem, planned, random_of(call), results)
        return
    spans = [lines.Span(0, len(problem.a))] if left is None else left
    outputs = sum(span.stop - span.start for span in spans) * problem.a.shape[1] * problem.b.shape[2]
    if problem.a.shape[1] * problem.b[0].size < unit_ways.LEAST_WORK and _may_spread(planned, outputs):
        for span in spans:
            _spread(problem, planned, call, results, span)
        return
    one_by_one(problem, planned, call, results, spans)


def _may_spread(planned: Program, outputs: int) -> bool:
    """Whether so many outputs may go in a line, each with operands of its own."""
    return elementwise.quick() and planned.length > 0 and unit_ways.worth_line(planned, outputs)


def _spread(problem: Problem, planned: Program, call: Call, results: Results, span: lines.Span) -> None:
    """Some of many small grids: their outputs in a line, each with operands of its own."""
    a, b, c = problem.a, np.ascontiguousarray(problem.b.transpose(0, 2, 1)), problem.c
    (_, rows, length), columns = a.shape, b.shape[1]
    outputs = rows * columns
    step = max(1, SPREAD // (outputs * length))
    for first in range(span.start, span.stop, step):
        part = slice(first, min(first + step, span.stop))
        shape = part.stop - part.start, rows, columns, length
        x = np.broadcast_to(a[part, :, np.newaxis], shape).reshape(-1, length).T
        y = np.broadcast_to(b[part, np.newaxis], shape).reshape(-1, length).T
        start = None if c is None else c[part].reshape(1, -1)
        index = problem.index + first * outputs * problem.column_stride
        places = results.rows(slice(part.start * rows, part.stop * rows))
        room = [np.empty((*p.shape[:-2], 1, x.shape[1]), p.dtype) if p.size else p for p in places]
        run(Problem(x, y, start, True, index, 0, problem.column_stride), planned, call, Results(*room))
        for place, found in zip(places, room, strict=True):
            if place.size:
                place[...] = found.reshape(place.shape)


def _spread_rows(problem: Problem, planned: Program, call: Call, results: Results) -> None:
    """The same of one grid, some rows at a time."""
    step = max(1, SPREAD // max(problem.b.size, 1))
    for start in range(0, problem.a.shape[0], step):
        rows = slice(start, min(start + step, problem.a.shape[0]))
        one = replace(
            problem,
            a=problem.a[np.newaxis, rows],
            b=problem.b[np.newaxis],
            c=None if problem.c is None else problem.c[np.newaxis, rows],
            index=problem.index + start * problem.row_stride,
        )
        _spread(one, planned, call, results.rows(rows), lines.Span(0, 1))


def one_by_one(problem: Problem, planned: Program, call: Call, results: Results, spans: Sequence[lines.Span]) -> None:
    """Some of many grids."""
    a, b, c = problem.a, problem.b, problem.c
    rows, columns = a.shape[1], b.shape[2]
    for n in (n for span in spans for n in range(*span)):
        start = None if c is None else c[n]
        one = Problem(a[n], b[n], start, False, problem.index + n * rows * columns, columns, 1)
        run(one, planned, call, results.rows(slice(n * rows, (n + 1) * rows)))


def random_of(call: Call) -> ways.Random:
    """The key and stream of a call's random numbers."""
    settings = call.whole
    key = replica_key(settings.seed or 0, 0 if settings.replica_identical else settings.replica)
    return ways.Random(key, call.stream)


def _in_blocks(problem: Problem, scales: Scales, planned: Program, call: Call, results: Results) -> bool:
    """Whether operands in block formats went to the loops of units from their codes, or their segments did."""
    levels = planned.accumulator.reduction
    if not (levels and levels[0].scaling):
        done = block_units.run(planned, scales, problem.c, _place_of(problem), random_of(call))
    else:
        done = None if problem.paired else _by_parts(problem, planned, call)
    if done is not None:
        _finish(done, problem, planned, call, results)
    return done is not None


def _grid(problem: Problem, planned: Program, call: Call, results: Results) -> None:
    """Any grid of outputs."""
    cumulative, counting = problem.cumulative, results.counting
    if problem.scales is not None and not counting and _in_blocks(problem, problem.scales, planned, call, results):
        return
    first, second = planned.formats
    (read_a, read_b), random = planned.reading, random_of(call)
    values = np.zeros((0, 0))
    if problem.c is not None:
        values = decoded(np.ascontiguousarray(problem.c), planned.partials, planned.entry)
    a_grid = not (problem.paired or cumulative or problem.scales)
    done = _quick(problem, planned, values, call, results) if a_grid else None
    if done is not None:  # then all is finite, and nothing signals
        _finish(done, problem, planned, call, results)
        return
    in_order = not planned.draws or problem.row_stride == problem.b.shape[1] * problem.column_stride
    if planned.wide:
        drawn = planned.draws and planned.accumulator.compensation is not None
        if a_grid and drawn and in_order and ways.choose(planned) is not None:  # lines draw them
            _spread_rows(problem, planned, call, results)
        else:
            wide_sums.run(problem, planned, random, results)
        return
    a, b = decoded(problem.a, first, read_a), decoded(problem.b, second, read_b)
    signals = _signals(problem.b, b, second, 0, cumulative)
    if problem.paired:
        signals = signals | _signals(problem.a, a, first, 0, cumulative)
    else:
        signals = signals | np.expand_dims(_signals(problem.a, a, first, 1), -1)
    entry: Codes = np.zeros((0, 0), np.uint32)
    if problem.c is not None:
        entry = np.array(problem.c, np.uint32, order="C")
        signalling = arguments.is_signalling(entry, planned.partials)
        signals = signals | np.where(signalling, np.uint8(spec.INVALID), np.uint8(0))
        if not planned.length and np.any(signalling):  # an empty sum is c itself, but for this
            entry[signalling] = _quieted(entry[signalling], planned)
    entered = Entered(a, b, values, entry)
    if not problem.scales and _specially(problem, planned, call, results, entered):
        results.flags[...] |= np.asarray(signals, np.uint8)
        return
    results.flags[...] = signals
    if problem.scales is not None and not (counting or problem.paired or cumulative or planned.accumulator.reduction):
        begins = values if problem.c is not None else None
        done = block_units.spread(planned, problem.scales, a, b, begins, _place_of(problem), random)
        if done is not None:
            _finish(done, problem, planned, call, results)
            return
    work = problem.a.size * problem.b.shape[1]
    narrow = problem.b.shape[1] < NARROW < results.codes.size
    # of sums with errors, lines do again what overflows alone, and draw
    errors = planned.accumulator.compensation is not None
    for_lines = work < unit_ways.LEAST_WORK or narrow or errors
    if a_grid and in_order and for_lines and not entire.serves(planned) and _may_spread(planned, results.codes.size):
        _spread_rows(problem, planned, call, results)
        return
    plain.run(problem, planned, Entered(a, b, values, entry), random, results)


def _specially(
    problem: Problem, planned: Program, call: Call, results: Results, entered: Entered, whole: bool = True
) -> bool:
    """Whether outputs were done by faster loops, some with infinities or NaNs among their operands. That NaNs signal is yet to be told. Of a `whole`
    grid few rows and columns are done by themselves."""
    ways_out = (_apart, _ended, _opened) if whole else (_opened, _ended)
    return any(way_out(problem, planned, call, results, entered) for way_out in ways_out)


def _opened(problem: Problem, planned: Program, call: Call, results: Results, entered: Entered) -> bool:
    """Whether a loop did them that takes infinities and NaNs."""
    done = None
    if not (problem.paired or problem.cumulative):
        done = _quick(problem, planned, entered.c, call, results, entered)
    if done is not None:
        _finish(done, problem, planned, call, results)
    return done is not None


def _apart(problem: Problem, planned: Program, call: Call, results: Results, entered: Entered) -> bool:
    """Whether the few rows and columns with infinities or NaNs were done by themselves, and all others as if these were not there."""
    if problem.paired or problem.cumulative or problem.a.size * problem.b.shape[1] < unit_ways.LEAST_WORK:
        return False
    parts = apart.few(planned, entered)
    if parts is None or (planned.draws and problem.row_stride != problem.b.shape[1] * problem.column_stride):
        return False
    way = way_of(planned, call.whole, problem.c is not None)
    if len(parts) > MOST_PARTS and way is not None and way.open is not None:
        return False
    a, b, c = problem.a.copy(), problem.b.copy(), None if problem.c is None else problem.c.copy()
    for rows, columns in parts:
        if c is not None:
            c[np.ix_(rows, columns)] = 0
        if columns.size == b.shape[1]:
            a[rows] = 0
        else:
            b[:, columns] = 0
    _grid(replace(problem, a=a, b=b, c=c), planned, call, results)
    for rows, columns in parts:
        at = np.ix_(rows, columns)
        index = problem.index + int(rows[0]) * problem.row_stride + int(columns[0]) * problem.column_stride
        start = None if problem.c is None else problem.c[at]
        part = replace(problem, a=problem.a[rows], b=problem.b[:, columns], c=start, index=index)
        room = Results(*(np.empty((*x.shape[:-2], rows.size, columns.size), x.dtype) if x.size else x for x in results))
        c_of_part, codes_of_c = (x[at] if x.size else x for x in entered[2:])
        some = Entered(entered.a[rows], entered.b[:, columns], c_of_part, codes_of_c)
        if not _specially(part, planned, call, room, some, whole=False):
            _grid(part, planned, call, room)
        for place, found in zip(results, room, strict=True):
            if place.size:
                place[..., rows[:, np.newaxis], columns] = found
    return True


def _ended(problem: Problem, planned: Program, call: Call, results: Results, entered: Entered) -> bool:
    """Whether some outputs were infinite or NaN because of operands, and all of them are done: as with zeros in place of these, but for those."""
    a, b, c, _ = entered
    if problem.cumulative or results.counting or all(np.isfinite(x).all() for x in (a, b)):
        return False
    whole = apart.nothing_but_nan(planned, a, b, problem.paired)
    ends = apart.ends_of(planned, a, b, c, problem.paired) if whole is None else None
    void = ends.void if ends else whole
    if void is None:
        return False
    x, y = void.without(problem.a if problem.paired else problem.a.T, problem.b)
    start = None if problem.c is None else np.where(void.untouched, 0, problem.c).astype(problem.c.dtype)
    inner, fmt, outputs = planned.to_partials, planned.partials, void.outputs
    room = results._replace(codes=np.empty(results.codes.shape, fmt.dtype)) if planned.converts else results
    run(replace(problem, a=x if problem.paired else x.T, b=y, c=start), inner, call, room)
    if ends is None:
        room.flags[outputs] = 0
        room.codes[outputs] = inner.nan_code
    else:
        nan, negative, invalid = ends.of(decoded(room.codes, fmt, planned.entry))
        infinity = fmt.inf_code if fmt.infinities else 0
        special = np.where(nan, inner.nan_code, np.where(negative, infinity | fmt.sign_bit, infinity))
        room.flags[invalid] |= spec.INVALID
        room.codes[outputs] = special[outputs]
    if planned.converts:
        _finish((room.codes, room.flags), problem, planned, call, results)
    return True


def _together(
    problem: Problem, planned: Program, call: Call, results: Results, place: ways.Place
) -> list[lines.Span] | None:
    """Grids under each other, the first one at this place: which are left to be done one by one, None for all."""
    way = worthwhile(planned, call, problem.c is not None, problem.a.size * problem.b.shape[2])
    if way is None:
        return None
    shape, start = (*problem.a.shape[:2], problem.b.shape[2]), None
    if problem.c is not None:
        start = decoded(np.ascontiguousarray(problem.c), planned.partials, planned.entry)
    into = _into(results, planned, shape)
    done = stacks.run(way, planned, problem.a, problem.b, start, place, random_of(call), into)
    if done is None:
        return None
    if into is None:
        codes, flags = (part.reshape(results.codes.shape) for part in done[:2])
        _finish((codes, flags), problem, planned, call, results)
    return done[2]


def _quieted(codes: Codes, planned: Program) -> Codes:
    """What an operation makes of NaNs in the partials format."""
    fmt = planned.partials
    quiet, _ = elementwise.run(
        "convert", [codes.astype(fmt.dtype)], ["c"], fmt.spec, fmt, Settings(nan=planned.entry.nan),
        out=None, flags="any", random_bits=None, stream=0,
    )  # fmt: skip
    return quiet


def _place_of(problem: Problem) -> ways.Place:
    """Where a grid's outputs lie among random addresses."""
    return ways.Place(problem.index, problem.row_stride, problem.column_stride)


def _quick(
    problem: Problem, planned: Program, c: Codes, call: Call, results: Results | None = None, entered: Entered | None = None
) -> Done | None:  # fmt: skip
    """By the faster loops, if they serve this program and these operands; c has values. They fill the counts of `results`, if there are some.
    Operands whose values are `entered` may be infinite or NaN."""
    accumulator, start = planned.accumulator, c if problem.c is not None else None
    tally = ways.Tally(results.counts, results.extremes) if results is not None and results.counting else None
    if accumulator.reduction or accumulator.chains > 1:
        return _by_parts(problem, planned, call, tally, entered)
    if entered is None and entire.serves(planned) and tally is None:
        operands = zip((problem.a, problem.b), planned.formats, planned.reading, strict=True)
        a, b = (decoded(*operand) for operand in operands)
        return entire.run(planned, a, b, start, np.matmul, _place_of(problem), random_of(call))
    return _by_codes(planned, problem, start, call, tally, results, entered=entered)


def _by_parts(
    problem: Problem, planned: Program, call: Call, tally: ways.Tally | None = None, entered: Entered | None = None
) -> Done | None:
    """Segments or chains of one grid, and their sums: by a loop for both, if there is one and all is ordinary, else by loops for each."""
    shape = problem.a.shape[0], problem.b.shape[1]
    place, random = _place_of(problem), random_of(call)

    def run_part(part: Program, cut: segments.Cuts, of_part: ways.Tally | None) -> Done | None:
        codes = replace(problem, a=problem.a[:, cut.only], b=problem.b[cut.only], c=None)
        values = entered and Entered(entered.a[:, cut.only], entered.b[cut.only], entered.c[:0], entered.codes_of_c[:0])
        done = _by_codes(part, codes, None, call, of_part, entered=values)
        if done is None or (scaling is not None and arguments.has_nan(done[0], part.partials)):
            return None  # payloads of NaNs go another way there
        return done[0][np.newaxis], done[1][np.newaxis]

    def bits(site: int, step: int, width: int) -> Codes:
        return grid_bits(shape, place, site, step, width, *random)

    scaling = None if problem.scales is None else scaled_segments.scaling_of(planned, problem.scales)
    if math.prod(shape) < SIDE_BY_SIDE or (problem.scales is not None and scaling is None):
        return None
    start = None if problem.c is None else decoded(problem.c, planned.partials, planned.entry)
    if (done := _by_codes(planned, problem, start, call, tally, scaling=scaling, entered=entered)) is not None:
        return done
    operands = zip((problem.a, problem.b), planned.formats, strict=True)
    if scaling is not None and not (scaling.finite and all(arguments.all_finite(*x) for x in operands)):
        return None
    return segments.run(planned, problem.c, shape, call, run_part, bits, None, tally, scaling)


def _pairs_all(planned: Program) -> bool:
    """Whether all products are added in pairs."""
    return planned.accumulator.tree and planned.block == 1 and not planned.accumulator.reduction


def _by_codes(
    planned: Program, problem: Problem, start: Codes | None, call: Call, tally: ways.Tally | None = None, results: Results | None = None,
    scaling: scaled_segments.Scaling | None = None, entered: Entered | None = None,
) -> Done | None:  # fmt: skip
    """One grid, from codes to codes, by the faster loops, which fill the `tally`, if there is one. Codes and flags go to `results`, if there are such
    for what loops make. Of what is `entered` by loops that take infinities and NaNs; in pairs level by level, if no loop does that."""
    a, b = problem.a, problem.b
    work, done = a.size * b.shape[1], None
    way = worthwhile(planned, call, start is not None, work, tally is not None, scaling is not None)
    if entered is not None and way is not None:
        way = way.open if work >= unit_ways.LEAST_WORK else None
        way = None if tally is not None and isinstance(way, unit_ways.UnitWay) else way
    specials = None
    if entered is not None and way is not None:
        laid = planned if way.joined is None else way.joined.planned
        a, of_a = apart.without_specials(laid, a, entered.a, 1)
        b, of_b = apart.without_specials(laid, b, entered.b, 0)
        specials, others = (of_a, of_b), (of_a.values, of_b.values, entered.c[~np.isfinite(entered.c)])
        if not (any(x.size for x in others) and apart.stay(planned, any(np.isinf(x).any() for x in others))):
            way = None
    if way is not None:
        c = None if start is None else start[np.newaxis]
        into, place, random = _into(results, planned, (1, len(a), b.shape[1])), _place_of(problem), random_of(call)
        scales = () if scaling is None else scaling.panels(*ways.tile_of("grid", way.carrier))
        done = stacks.run(way, planned, a[np.newaxis], b[np.newaxis], c, place, random, into, tally, scales, specials)
    if done is not None:
        return done.codes[0], done.flags[0]
    if entered is not None and tally is None and _pairs_all(planned) and trees.serves(planned):
        return trees.run(planned, problem.a.T[:, :, None], problem.b[:, None], problem.c)
    return None


def way_of(planned: Program, whole: Settings, begins: bool = False, scaled: bool = False) -> ways.Way | None:
    """The faster loop of grids from codes to codes, if there is one; `begins`: sums begin with c; `scaled`: segments have scales."""
    way = ways.choose(planned)
    if way is not None and way.compensates and planned.draws:
        return None
    if way is not None or planned.wide:
        return way
    return joined.in_one(planned, whole, scaled) or units.of_grids(planned, begins)


def worthwhile(
    planned: Program, call: Call, begins: bool, work: int, counting: bool = False, scaled: bool = False
) -> ways.Way | None:
    """The same, if so many multiply-adds are worth it."""
    way = way_of(planned, call.whole, begins, scaled)
    if way is None or (counting and way.joined and (planned.draws or isinstance(way, unit_ways.UnitWay))):
        return None
    return way if not isinstance(way, unit_ways.UnitWay) or unit_ways.worth_grid(way, work, counting) else None


def _into(results: Results | None, planned: Program, shape: tuple[int, ...]) -> tuple[Codes, Codes] | None:
    """A call's codes and flags, in this shape, if these are what loops make."""
    if results is None or planned.converts or planned.loses_signs or results.codes.dtype != planned.partials.dtype:
        return None
    return results.codes.reshape(shape), results.flags.reshape(shape)


def _finish(done: Done, problem: Problem, planned: Program, call: Call, results: Results) -> None:
    """Codes and flags of partials to the output's format."""
    codes, flags = done
    if planned.converts:
        width, random_bits = planned.sites[dots().RESULT].width, None
        nan = None if planned.accumulator.nan is None else planned.policy.name
        settings = result_settings(call.whole, planned.output, nan, width, planned.entry.daz)
        if width:
            random_bits = grid_bits(codes.shape, _place_of(problem), dots().RESULT, 0, width, *random_of(call))
        codes, raised = elementwise.run(
            "convert", [codes], ["partials"], planned.partials.spec, planned.output, settings,
            out=None, flags="each", random_bits=random_bits, stream=0,
        )  # fmt: skip
        flags = flags | raised
    if planned.loses_signs and not planned.carries and (planned.converts or planned.length):
        # conversions and sums hand on the sign that a NaN came with
        codes = np.where(arguments.is_nan(codes, planned.output), codes.dtype.type(planned.nan_code), codes)
    results.codes[...] = codes
    results.flags[...] = flags


@lru_cache(maxsize=512)
def result_settings(whole: Settings, output: Format, nan: str | None, width: int, daz: bool) -> Settings:
    """Those of the conversion to the output's format, which takes so many random bits, 0: none; `daz` is that of partials."""
    settings = whole.between(output.name, output.name)
    if nan is None and not width and daz == settings.daz:
        return settings
    return settings.replace(nan=nan or settings.nan, sr_bits=width or settings.sr_bits, daz=daz)
