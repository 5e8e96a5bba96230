"""Sums in pairs of outputs in a line: as such, or of few long ones whole subtrees, and the sums of these."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from softfloat.engine import lines
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import widened
from softfloat.engine.problems import Problem
from softfloat.engine.programs import Program, spares
from softfloat.engine.ways import Generated, Random, Tally, choose, tile_of

TILES = 4
"""So many at least are made of few long sums."""
SHORTEST = 32
"""Products of a subtree that is summed alone."""
IN_ORDER: Codes = np.empty(0, np.int64)
LEAST_WORK = 1 << 16
"""Multiply-adds of deterministic sums in a line below which no loop is made for them."""


def run_line(
    planned: Program, line: Problem, start: Codes | None, random: Random, tally: Tally | None = None
) -> lines.Done | None:
    """As `lines.run` has it, of sums in pairs; None if no loop serves the program or the operands."""
    way, (length, count) = choose(planned), line.a.shape
    if way is None:
        return None
    worth = planned.wide or planned.draws or line.a.size >= LEAST_WORK
    if not (worth or spares((way.operation, way.stage, tally is not None), line.a.size)):
        return None
    cells = math.prod(tile_of("own", way.carrier))
    size = 1 << max((length * count // (TILES * cells)).bit_length() - 1, 0)
    if not planned.draws and size >= SHORTEST and count < cells:
        return _blocks(planned, way, line, start, random, tally, size)
    return lines.run(line, planned, way, start, random, tally)


def _blocks(
    planned: Program, way: Generated, line: Problem, start: Codes | None, random: Random, tally: Tally | None, size: int
) -> lines.Done | None:  # fmt: skip
    """Few long sums, deterministic: whole subtrees of so many products, what is left, and the sum in pairs of these, which is the same tree."""
    length, count = line.a.shape
    done, told, flags = length // size * size, list[list[Codes]](), np.zeros(count, np.uint8)

    def part(program: Program, a: Codes, b: Codes, start: Codes | None = None, ones: bool = False) -> Codes | None:
        nonlocal flags
        own = None if tally is None else Tally.room((a.shape[1],), way.carrier)
        program = replace(program, length=len(a))
        made = lines.run(Problem(a, b, None, True, 0, 0, 0), program, way, start, random, own, ones)
        if made is None or made.left.size:
            return None
        flags = flags | np.bitwise_or.reduce(made.flags.reshape(-1, count), axis=0)
        if own is not None:
            told.append([x.reshape(len(x), -1, count) for x in own])
        return made.codes.reshape(-1, count)

    def apart(x: Codes) -> Codes:
        if not any(x.strides):
            return np.broadcast_to(x[:1, :1], (size, done // size * count))
        found: Codes = x[:done].reshape(-1, size, count).transpose(1, 0, 2).reshape(size, -1)
        return found

    of_parts = [part(planned, apart(line.a), apart(line.b))]
    if done < length:
        of_parts.append(part(planned, line.a[done:], line.b[done:]))
    sums = [x for x in of_parts if x is not None]
    if len(sums) < len(of_parts):
        return None
    inner, whole = replace(planned, formats=(planned.partials,) * 2, reading=(planned.entry,) * 2), np.concatenate(sums)
    if planned.wide:
        inner, whole = planned, widened(whole, planned.partials, planned.entry.daz)
    total = part(inner, whole, np.broadcast_to(whole[:1, :1], whole.shape), start, True)
    if total is None:
        return None
    if tally is not None:
        counts, extremes = (np.concatenate(x, axis=1) for x in zip(*told, strict=True))
        tally.counts[...] = counts.sum(axis=1)
        tally.extremes[0], tally.extremes[1] = extremes[0].min(axis=0), extremes[1].max(axis=0)
    return lines.Done(total[0], flags, IN_ORDER)
