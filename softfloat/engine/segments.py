"""Sums cut where the accumulator cuts k: one segment alone, and the segments' sums put together."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import elementwise, threads
from softfloat.engine.arguments import Codes, is_nan, is_signalling
from softfloat.engine.decoding import decoded, in_single
from softfloat.engine.lines import holds
from softfloat.engine.parameters import FLOAT32, counted_parts, dots
from softfloat.engine.programs import Program, Site, segment_bounds, segment_ends
from softfloat.formats import ROSTER, Format
from softfloat.kernels import spec
from softfloat.kernels.spec import Rule


def alone(accumulator: Accumulator) -> Accumulator:
    """What sums one segment.

    Raises
    ------
    ValueError
        If the accumulator has no segments.
    """
    if not accumulator.reduction:
        raise ValueError(
            f"accumulator must have segments, for sums of parts of k, and {accumulator!r} has none; "
            "accepted: accumulators.chunked(...) and others with a segment"
        )
    return accumulator.replace(segment=None, segments=None, reduction=(), result="partials")


def check_segment(accumulator: Accumulator, segment: int, k: int) -> tuple[int, int]:
    """The products of a segment: the first, and the one after the last."""
    alone(accumulator)
    bounds = segment_bounds(accumulator, k)
    if not 0 <= segment < len(bounds) - 1:
        raise ValueError(f"segment must be 0 to {len(bounds) - 2} for k={k} and {accumulator!r}, got {segment}")
    return bounds[segment], bounds[segment + 1]


def begun(planned: Program, accumulator: Accumulator, segment: int, k: int) -> Program:
    """The program of one segment, that goes on with the random numbers of those before it."""
    numbers = dots()
    bounds = segment_bounds(accumulator, k)
    unit = math.lcm(len(accumulator.order), accumulator.block)
    filled = [-(-(bounds[i + 1] - bounds[i]) // unit) * unit for i in range(segment)]
    done = {
        site: sum(_roundings(accumulator, length)[site] for length in filled)
        for site in (numbers.RUNNING, numbers.PRODUCT)
    }
    if accumulator.store:
        done[numbers.STORE] = sum(-(-length // accumulator.store_every) for length in filled)
    return dataclasses.replace(planned, begun={site: count for site, count in done.items() if count})


OPERATIONS = {"kahan": (4, 0), "neumaier": (4, 1), "two_term": (10, 0)}
"""Roundings of a compensated sum: for each product, and in the end."""


def _roundings(accumulator: Accumulator, length: int) -> dict[int, int]:
    """How often a segment of so many products rounds to the running sum's format, and to that of products or of sums of blocks."""
    numbers, block = dots(), accumulator.block
    running, products = length // block, length
    if accumulator.fixed is not None:
        running = 1
    elif accumulator.compensation is not None:
        each, last = OPERATIONS[accumulator.compensation]
        running = each * length + last
    elif accumulator.tree and block > 1:
        products = length // accumulator.leaf
        running = products
    elif accumulator.tree:
        first = accumulator.product
        alone = first is not None and first.format != accumulator.running.format  # a lone product changes its format
        running = max(length - 1, int(alone))
    if accumulator.block_sum is not None:
        products = length // block
    return {numbers.RUNNING: running + accumulator.chains - 1, numbers.PRODUCT: products}


class Drawing(NamedTuple):
    """The random numbers of so many outputs: bits(site, step, width) has those of a rounding."""

    size: int
    bits: Callable[[int, int, int], Codes]


MANY = 1 << 13
"""Outputs whose counts are put together by a compiled loop."""


@dataclasses.dataclass
class Tally:
    """What additions did: overflowed, inexact, swamped, (3, outputs); the least and the greatest sum, (2, outputs)."""

    counts: Codes
    extremes: Codes
    waiting: Tally | None = None  # further counts, of the part whose sum is added next

    def note(self, before: Codes, addend: Codes, after: Codes, raised: Codes) -> None:
        """Take note of one addition of all outputs, and of what waits."""
        if before.size < MANY:
            self.settle()
            self._note(before, addend, after, raised)
            return
        nothing = np.empty((3, 0), self.counts.dtype), np.empty((2, 0), self.extremes.dtype)
        more = nothing if self.waiting is None else (self.waiting.counts, self.waiting.extremes)
        self.waiting, loop = None, counted_parts().joined()

        def work(start: int, stop: int) -> int:
            loop(start, stop, before, addend, after, raised, *more, self.counts, self.extremes)
            return 0

        threads.share(before.size, work)

    def _note(self, before: Codes, addend: Codes, after: Codes, raised: Codes) -> None:
        changed = (addend != 0.0) & np.isfinite(before)
        self.counts[0] += raised & spec.OVERFLOW != 0
        self.counts[1] += raised & spec.INEXACT != 0
        self.counts[2] += changed & (after == before)
        self._span(after, after)

    def _span(self, least: Codes, greatest: Codes) -> None:
        np.fmin(self.extremes[0], least, out=self.extremes[0])
        np.fmax(self.extremes[1], greatest, out=self.extremes[1])

    def settle(self) -> None:
        """Take in what waits, without an addition."""
        if self.waiting is not None:
            self.counts[...] += self.waiting.counts
            self._span(*self.waiting.extremes)
            self.waiting = None


def signals(c: Codes, fmt: Format) -> Codes:
    """What signalling NaNs among c raise, whichever stage reads it, and quiets them so that additions see nothing of it."""
    return np.where(is_signalling(c, fmt), np.uint8(spec.INVALID), np.uint8(0))


def read(codes: Codes, fmt: Format, wider: Format, rule: Rule) -> Codes:
    """The same numbers in a format that holds them, as a stage of this rule reads them."""
    if fmt == wider and not rule.daz:
        return codes
    single = in_single(codes, fmt, rule.daz) if wider.spec == FLOAT32 else None
    if single is not None:
        return single
    reading = Rule(daz=rule.daz, nan=rule.nan, conversion=True)
    return elementwise.settled("convert", [codes], fmt.spec, wider, reading)[0]


@dataclasses.dataclass
class _Sum:
    """Codes on their way up: the stage that rounded them last says what they are."""

    codes: Codes
    site: Site

    def read(self, fmt: Format) -> Codes:
        """The codes in a format that holds them, as the stage reads them."""
        return read(self.codes, self.site.format, fmt, self.site.rule)

    @cached_property
    def values(self) -> Codes:
        """The numbers."""
        return decoded(self.codes, self.site.format, Rule(daz=self.site.rule.daz))


class _Joining:
    """The stages above segments, a rounding of all outputs at a time."""

    def __init__(
        self, planned: Program, drawing: Drawing, tally: Tally | None, steps: dict[int, int] | None = None
    ) -> None:
        self.planned, self.drawing, self.tally = planned, drawing, tally
        self.flags: Codes = np.zeros(drawing.size, np.uint8)
        self._steps = dict(steps or {})

    def _rounded(
        self, operation: str, operands: list[Codes], source: Format, number: int, daz: bool = False
    ) -> tuple[_Sum, Codes]:
        """One rounding by a stage, and the flags of each output; operands are read already, or under `daz`."""
        site, drawing = self.planned.sites[number], self.drawing
        step = self._steps.get(number, 0)
        self._steps[number] = step + 1
        rule = site.rule._replace(daz=daz)
        if site.width:
            bits = drawing.bits(number, step, site.width)
            codes, raised = elementwise.settled_by(
                bits, site.width, operation, operands, source.spec, site.format, rule
            )
        else:
            codes, raised = elementwise.settled(operation, operands, source.spec, site.format, rule)
        self.flags |= raised
        return _Sum(codes, site), raised

    def added(self, total: _Sum, addend: _Sum, number: int) -> _Sum:
        """A sum of two, by the stage of this number."""
        source = _wide_enough(total.site.format, addend.site.format)
        operands = [total.read(source), addend.read(source)]
        found, raised = self._rounded("add", operands, source, number)
        if self.tally is not None:
            self.tally.note(total.values, addend.values, found.values, raised)
        return found

    def converted(self, total: _Sum, number: int) -> _Sum:
        """A sum on its way to another format. What counts as zero has a sign there that its own format may lack."""
        return self._rounded("convert", [total.codes], total.site.format, number, total.site.rule.daz)[0]


def _source_of_both(first: Format, second: Format) -> Format | None:
    for fmt in (first, second, ROSTER["float32"]):
        if holds(fmt, first) and holds(fmt, second):
            return fmt
    return first if first == second else None


def has_source(first: Format, second: Format) -> bool:
    """Whether numbers of both formats are added here."""
    return _source_of_both(first, second) is not None


def _wide_enough(first: Format, second: Format) -> Format:
    """A format that holds the numbers of both."""
    found = _source_of_both(first, second)
    if found is None:
        raise ValueError(
            f"sums of segments in {second} and {first} are put together only where one format of both, or float32, holds all their numbers"
        )
    return found


def last_of_part(planned: Program) -> Site:
    """The stage that a segment's or a chain's sum comes from."""
    return planned.sites[dots().STORE if planned.accumulator.store else dots().RUNNING]


def join(
    planned: Program, sums: Iterable[Codes], c: Codes | None, drawing: Drawing, tally: Tally | None = None
) -> tuple[Codes, Codes]:
    """(codes of the output, flags) of sums of segments, (outputs,) each; c is (outputs,).

    `planned` is the program of the whole sum. A `tally` is added to.
    """
    numbers, levels = dots(), planned.accumulator.reduction
    inner = last_of_part(planned)
    tops = [planned.sites[numbers.LEVEL + 2 * level] for level in range(len(levels))]
    joining = _Joining(planned, drawing, tally)
    size = drawing.size
    totals = [_Sum(np.zeros(size, site.format.dtype), site) for site in tops]
    if c is not None:
        totals[-1] = _Sum(c, planned.sites[planned.entered])
        joining.flags |= signals(c, planned.partials)
    count = len(segment_bounds(planned.accumulator, planned.products)) - 1
    for below, ends in zip(sums, segment_ends(planned.accumulator, count), strict=True):
        addend = _Sum(below, inner)
        for level in range(ends):
            if level:
                addend = totals[level - 1]
                totals[level - 1] = _Sum(np.zeros(size, tops[level - 1].format.dtype), tops[level - 1])
                if levels[level - 1].store is not None:
                    addend = joining.converted(addend, numbers.LEVEL + 2 * level - 1)
            totals[level] = joining.added(totals[level], addend, numbers.LEVEL + 2 * level)
    total = totals[-1]
    if levels[-1].store is not None:
        total = joining.converted(total, numbers.LEVEL + 2 * len(levels) - 1)
    if planned.converts:
        total = joining.converted(total, numbers.RESULT)
    codes, flags = total.codes, joining.flags
    if not planned.carries:  # no payload passes
        codes = np.where(is_nan(codes, planned.output), codes.dtype.type(planned.nan_code), codes)
    return codes, flags


def join_chains(
    planned: Program, sums: Iterable[Codes], c: Codes | None, drawing: Drawing, tally: Tally | None = None
) -> tuple[Codes, Codes]:
    """(codes of the running format, flags) of sums of chains, (outputs,) each, and c: after the last product, by the same stage."""
    running = dots().RUNNING
    site = planned.sites[running]
    begun = planned.begun.get(running, 0) + planned.length
    joining = _Joining(planned, drawing, tally, {running: begun})
    parts = iter(sums)
    total = _Sum(next(parts), site)
    for codes in itertools.chain(parts, [] if c is None else [c]):  # the counts of a part wait for its addition
        total = joining.added(total, _Sum(codes, site), running)
    return total.codes, joining.flags
