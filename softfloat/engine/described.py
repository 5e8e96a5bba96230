"""Programs as descriptions of sums, from which `kernels.sums` generates loops; and the calls of these.

Whoever interprets a field of a program, its accumulator or a stage's rule names it here. A field that nobody names must be as it is by
default: then a sum that a new field describes goes the plain way, and no condition has to be added for that.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from softfloat.engine import elementwise, generated, lines, threads, tiling, trees
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded
from softfloat.engine.parameters import available, dots
from softfloat.engine.programs import Program
from softfloat.engine.ways import Generated, Place, Random, Tally, Way, nan_flags_of, numbers_of, one_by_one

PIECE = 1 << 18
"""Products of outputs with operands of their own that are laid out at a time."""
TILES = 4
"""So many at least are made of few long sums."""
SHORTEST = 32
"""Products of a subtree that is summed alone."""
ONE = tiling.Extent(0, 1, True, False)
IN_ORDER: Codes = np.empty(0, np.int64)
LEAST_WORK = 1 << 16
"""Multiply-adds of deterministic sums in a line below which no loop is made for them."""

OF_PROGRAMS = frozenset(
    {
        "accumulator", "formats", "partials", "output", "sites", "reading", "entry", "length", "products", "fixed", "block",
        "stores", "closes", "entered", "draws", "policy",
    }
)  # fmt: skip
OF_ACCUMULATORS = frozenset(
    {
        "name", "running", "inputs", "product", "tree", "order", "segment", "segments", "channel_group", "daz",
        "result", "nan", "note", "source", "block",
    }
)  # fmt: skip
OF_RULES = frozenset(
    {
        "rounding", "overflow", "tininess", "infinite_input", "daz", "ftz", "nan", "always_infinite", "random_width",
    }
)  # fmt: skip
"""Fields that the pieces know: what they mean is in the order, the stage, the extents of operands, or done before or after the sum."""


@cache
def defaults(kind: Any) -> dict[str, Any]:
    """Field -> what it is by default, of a named tuple or a dataclass; None of a field without one."""
    if issubclass(kind, tuple):
        return dict.fromkeys(kind._fields) | kind._field_defaults
    found = {}
    for field in dataclasses.fields(kind):
        made = field.default_factory
        found[field.name] = None if field.default is dataclasses.MISSING else field.default
        if made is not dataclasses.MISSING:
            found[field.name] = made()
    return found


def is_known(of: Any, known: frozenset[str]) -> bool:
    """Whether all fields of a description that are not among these are as they are by default."""
    kind: Any = type(of)
    for name, usual in defaults(kind).items():
        found = getattr(of, name)
        if name not in known and (isinstance(found, np.ndarray) or found != usual):
            return False
    return True


@lru_cache(maxsize=512)
def _described(planned: Program, features: tuple[bool, ...]) -> Generated | None:
    floor, how = dots(), planned.accumulator
    if not (how.tree and planned.block == 1 and planned.kind == floor.ROUNDED):
        return None
    running = planned.sites[floor.RUNNING]
    known = is_known(planned, OF_PROGRAMS) and is_known(how, OF_ACCUMULATORS) and is_known(running.rule, OF_RULES)
    if not known or planned.sites[floor.PRODUCT] != running:
        return None
    way = one_by_one(planned)
    return replace(way, operation="pairwise") if isinstance(way, Generated) else None


def in_pairs(planned: Program) -> Generated | None:
    """The way of a program that adds all of its products in pairs, if the generator knows it."""
    if not elementwise.quick() or not planned.length:
        return None
    return _described(planned, available())


def run_line(
    planned: Program, a: Codes, b: Codes, c: Codes | None, place: Place, random: Random, tally: Tally | None = None
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags) of codes a and b, (k, outputs), whose outputs lie in a row, or None if no loop serves the program or
    the operands; c is of the outputs. A `tally` is filled."""
    way = in_pairs(planned)
    if way is None or (not planned.draws and a.size < LEAST_WORK):
        return None
    return _line(planned, way, (a,) if trees.are_leaves(planned, b) else (a, b), c, place, random, tally)


def _line(
    planned: Program,
    way: Generated,
    codes: tuple[Codes, ...],
    c: Codes | None,
    place: Place,
    random: Random,
    tally: Tally | None,
) -> tuple[Codes, Codes] | None:
    """Sums of products of two operands, or of the numbers of one."""
    (length, count), parts = codes[0].shape, []
    what = way.sum("own", tally is not None, order="" if len(codes) > 1 else "pairwise_of_numbers")
    size = 1 << max((length * count // (TILES * what.cells)).bit_length() - 1, 0)
    if not planned.draws and size >= SHORTEST and count < what.cells:
        return _blocks(planned, way, codes, c, place, random, tally, size)
    operands = [lines.operand_of(x, planned, which) for which, x in enumerate(codes)]
    given = [x for x in operands if x is not None]
    if len(given) < len(codes):
        return None
    step = max(1, PIECE // (length * what.cells)) * what.cells
    for begin in range(0, count, step):
        part = lines.Span(begin, min(begin + step, count))
        width = part.stop - part.start
        both, spans = zip(*(_own(x, length, part, what.cells) for x in given), strict=True)
        start = (
            None if c is None else decoded(np.ascontiguousarray(c[begin : part.stop]), planned.partials, planned.entry)
        )
        of_c = None if start is None else tiling.extent(start, planned.partials)
        if not tiling.fits(way, length, [*spans, ONE][:2], of_c):
            return None
        shape = len(both[0]) * what.rows, what.lanes
        begins: Codes | None = None
        if start is not None:
            begins = np.zeros(math.prod(shape), np.float32)
            begins[: start.size] = start
        where = Place(place.first + begin * place.column_stride, what.lanes * place.column_stride, place.column_stride)
        padded = None if tally is None else Tally.room(shape, np.float32)
        panels = both[0], both[-1]
        values, flags = _looped(what, way, planned, panels, begins, shape, shape, where, random, padded)
        if tally is not None and padded is not None:
            for target, source in zip(tally, padded, strict=True):
                target[:, begin : part.stop] = source.reshape(len(source), -1)[:, :width]
        parts.append((values.reshape(-1)[:width], flags.reshape(-1)[:width]))
    sums, raised = (np.concatenate(x) for x in zip(*parts, strict=True))
    return tiling.coded(way, planned, sums, raised)


def _blocks(
    planned: Program,
    way: Generated,
    codes: tuple[Codes, ...],
    c: Codes | None,
    place: Place,
    random: Random,
    tally: Tally | None,
    size: int,
) -> tuple[Codes, Codes] | None:
    """Few long sums, deterministic: whole subtrees of so many products, what is left, and the sum in pairs of these, which is the same tree."""
    length, count = codes[0].shape
    done, told, flags = length // size * size, [], np.zeros(count, np.uint8)

    def part(program: Program, of: tuple[Codes, ...], c: Codes | None = None) -> Codes | None:
        nonlocal flags
        own = None if tally is None else Tally.room((of[0].shape[1],), np.float32)
        program = replace(program, length=len(of[0]))
        made = _line(program, way, of, c, place, random, own)
        if made is None:
            return None
        flags = flags | np.bitwise_or.reduce(made[1].reshape(-1, count), axis=0)
        if own is not None:
            told.append([x.reshape(len(x), -1, count) for x in own])
        return made[0].reshape(-1, count)

    def apart(x: Codes) -> Codes:
        found: Codes = x[:done].reshape(-1, size, count).transpose(1, 0, 2).reshape(size, -1)
        return found

    of_parts = [part(planned, tuple(apart(x) for x in codes))]
    if done < length:
        of_parts.append(part(planned, tuple(x[done:] for x in codes)))
    sums = [x for x in of_parts if x is not None]
    if len(sums) < len(of_parts):
        return None
    inner = replace(planned, formats=(planned.partials,) * 2, reading=(planned.entry,) * 2)
    total = part(inner, (np.concatenate(sums),), c)
    if total is None:
        return None
    if tally is not None:
        counts, extremes = (np.concatenate(x, axis=1) for x in zip(*told, strict=True))
        tally.counts[...] = counts.sum(axis=1)
        tally.extremes[0], tally.extremes[1] = extremes[0].min(axis=0), extremes[1].max(axis=0)
    return total[0], flags


def _own(operand: lines.Operand, length: int, outputs: lines.Span, cells: int) -> tuple[Codes, tiling.Extent]:
    """Panels of some outputs' own numbers, and what these span."""
    shape = 1, -(-(outputs.stop - outputs.start) // cells), length, cells
    panels = tiling.on_lines(shape, np.float32, np.empty)
    extent = operand.gather(IN_ORDER, 0, length, outputs, panels)
    return panels[0], extent


def _looped(
    what: Any,
    way: Way,
    planned: Program,
    panels: tuple[Codes, Codes],
    start: Codes | None,
    shape: tuple[int, int],
    size: tuple[int, int],
    place: Place,
    random: Random,
    tally: Tally | None,
) -> tuple[Codes, Codes]:
    """(values, flags) of whole tiles, `size` of whose rows and columns are outputs."""
    values, flags = np.empty(shape, np.float32), np.empty(shape, np.uint8)
    counts, extremes = tally or (values, values)
    units = shape[0] * shape[1] // what.cells
    arrays = {
        "a": panels[0], "b": panels[1], "c": values if start is None else start, "values": values, "flags": flags, "counts": counts,
        "extremes": extremes, "numbers": numbers_of(way, planned),
    }  # fmt: skip
    run = generated.Job(
        what,
        arrays | way.rounding,
        {
            "tiles": units, "panels": len(panels[0]), "turns": planned.length, "wide": shape[1], "rows": size[0], "columns": size[1],
            "has_c": int(start is not None), "nan_flags": nan_flags_of(way),
        }
        | way.address(place, random),
    )  # fmt: skip

    def work(first: int, last: int) -> int:
        run(first, last)
        return 0

    threads.share_units(units, work, planned.length * what.cells)
    return values, flags
