"""Sums of segments, or chains, each by the fastest way there is, and then added up elementwise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import arguments, elementwise, folds, lines, scaled_segments, segments, ways
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import fits_single
from softfloat.engine.options import Call
from softfloat.engine.parameters import FLOAT32, dots
from softfloat.engine.problems import Scales
from softfloat.engine.programs import Program, Site, bounds_of, program, segment_bounds, segment_ends
from softfloat.formats import Format

Done = tuple[Codes, Codes]
"""Codes in the partials format, and flags."""

Parts = Callable[[Program, "Cuts", ways.Tally | None], Done | None]
"""Sums of stretches of k that are equally long, in a row each, by a program of their own; they fill the tally, if there is one."""

Chains = Callable[[Program], Done | None]
"""The same of all chains at once, by the program of the first; None if these are no chains that share random numbers."""

SIDE_BY_SIDE = 1 << 18  # products of stretches that go together
UNDER_EACH_OTHER = 1 << 20  # and sums of a grid's
WORTH_CALLS, MOST_WORTH = 1 << 9, 1 << 11
"""Products of an output's segment from which on calls for each take no longer than the plain loop; times the root of outputs, as that takes
many side by side, but no more than so many of all: then they take twice as long at most, and that loop needs not be compiled."""


class Cuts(NamedTuple):
    """So many stretches of k, equally long: segments that follow each other, or chains that begin one after the other, products `apart`."""

    first: int
    size: int
    stretches: int = 1
    apart: int = 1

    @property
    def only(self) -> slice:
        """The one stretch, if there is no other."""
        assert self.stretches == 1
        return slice(self.first, self.first + self.apart * self.size, self.apart)

    def stacked(self, x: Codes, axis: int) -> Codes:
        """The stretches of a grid's operand, which has k along this axis, (stretches, rows, size) or (stretches, size, columns)."""
        along = x.T if axis else x
        stretch = along[self.first : self.first + self.size * self.stretches]
        if self.apart == 1:
            found = stretch.reshape(self.stretches, self.size, -1)
        elif self.apart > self.stretches:
            starts = self.first + self.apart * np.arange(self.size)
            found = along[starts + np.arange(self.stretches)[:, np.newaxis]]
        else:
            found = stretch.reshape(self.size, self.stretches, -1).swapaxes(0, 1)
        return found.swapaxes(1, 2) if axis else found

    def side_by_side(self, x: Codes) -> Codes:
        """The stretches of a line's operand, (k, outputs), next to each other."""
        if self.stretches == 1:
            return x[self.only]
        if not any(x.strides):
            return np.broadcast_to(x[:1, :1], (self.size, self.stretches * x.shape[1]))
        return self.stacked(x, 0).swapaxes(0, 1).reshape(self.size, -1)

    def in_pieces(self, products: int) -> Iterator[Cuts]:
        """Some of them at a time, of at most so many products if they are not longer by themselves."""
        step = max(1, products // max(self.size, 1))
        ahead = self.size if self.apart == 1 else 1
        for number in range(0, self.stretches, step):
            yield self._replace(first=self.first + number * ahead, stretches=min(step, self.stretches - number))


@lru_cache(maxsize=512)
def cuts_of(accumulator: Accumulator, length: int) -> tuple[Cuts, ...]:
    """Chains, or segments, in their order: those together that are equally long."""
    chains = accumulator.chains
    if chains > 1:
        size, longer = divmod(length, chains)
        found = Cuts(0, size + 1, longer, chains), Cuts(longer, size, chains - longer, chains)
        return tuple(cuts for cuts in found if cuts.stretches)
    bounds = bounds_of(accumulator, length)
    lengths = np.diff(bounds)
    changes = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), lengths.size]
    return tuple(Cuts(int(bounds[i]), int(lengths[i]), j - i) for i, j in itertools.pairwise(changes) if j > i)


@lru_cache(maxsize=512)
def _undivided(accumulator: Accumulator) -> Accumulator:
    """What sums one chain or segment."""
    return accumulator.replace(segment=None, segments=None, reduction=(), chains=1)


def part_of(planned: Program, length: int, call: Call) -> Program:
    """The program of a chain or a segment of so many products, to the format of its own sums; its random numbers begin anew."""
    how = _undivided(planned.accumulator)
    return program(how, *planned.formats, how.partials, call.whole, length)


def takes(site: Site, below: Format, daz: bool) -> bool:
    """Whether a stage's sums hold those of another format, which are read with DAZ or not; and take none of them for zero that is not."""
    if not lines.holds(site.format, below):
        return False
    return not site.rule.daz or (
        below.emin >= site.format.emin if daz else below.smallest_subnormal >= site.format.tiny
    )


@dataclass
class _Sum:
    """A level's sum so far, and what its additions and its store do."""

    site: Site
    store: Site | None
    codes: Codes | None

    @property
    def out(self) -> Site:
        """The stage that a finished sum comes from."""
        return self.store or self.site


class Scaling(NamedTuple):
    """How segments' sums are multiplied by their scales: the order, and float32 codes of those of a, (rows, segments), and b, (segments, columns)."""

    order: str
    a: Codes
    b: Codes

    def added(self, total: Codes, rows: Codes, segment: int, site: Site) -> Done:
        """Sums of segments from this one on times their scales, added to the sums so far one after the other: elementwise what
        `kernels.dot_steps.scaled_addition` does."""
        some = slice(segment, segment + len(rows))
        quick = scaled_segments.added(self.order, total, rows, self.a.T[some], self.b[some], site)
        if quick is not None:
            return quick
        x, y = (np.broadcast_to(v, rows.shape) for v in (self.a.T[some, :, np.newaxis], self.b[some, np.newaxis]))
        first, last = {"first_fused": ((rows, x), y), "second_fused": ((rows, y), x)}.get(self.order, ((x, y), rows))

        def done(operation: str, *operands: Codes) -> Done:
            return elementwise.settled(operation, operands, site.format.spec, site.format, site.rule)

        products, flags = done("mul", *first)
        if self.order == "scales_added":
            products, raised = done("mul", products, last)
            total, more = folds.summed(np.concatenate([total[np.newaxis], products]), site.format, site.rule)
            return total, np.bitwise_or.reduce(flags | raised, axis=0) | more
        flags = np.bitwise_or.reduce(flags, axis=0)
        for product, by in zip(products, last, strict=True):
            total, raised = done("fma", product, by, total)
            flags |= raised
        return total, flags


class _Levels:
    """The additions of segments' sums, level by level: elementwise what `kernels.dot_steps.close` does."""

    def __init__(
        self, sums: list[_Sum], ends: Sequence[int], shape: tuple[int, ...], scaling: Scaling | None = None
    ) -> None:
        self._sums, self._ends, self._shape, self._done = sums, np.array(ends), shape, 0
        self._scaling, self._entered = scaling, 0
        self.flags: Codes = np.zeros(shape, np.uint8)

    def _enter(self, level: int, rows: Codes, source: Site) -> None:
        """Sums that follow each other, of a stage below, added to a level's."""
        total = self._sums[level]
        site = total.site
        rows = segments.read(rows, source.format, site.format, source.rule)
        if level == 0 and self._scaling is not None:
            assert total.codes is not None
            total.codes, raised = self._scaling.added(total.codes, rows, self._entered, site)
            self._entered += len(rows)
        else:
            if total.codes is not None:
                rows = np.concatenate([total.codes[np.newaxis], rows])
            total.codes, raised = folds.summed(rows, site.format, site.rule)
        self.flags = self.flags | raised

    def _leave(self, level: int) -> Codes:
        """A level's finished sum, stored if it is; the next one begins at +0."""
        total = self._sums[level]
        codes = total.codes
        assert codes is not None
        if total.store is not None:
            rule = total.store.rule._replace(daz=total.site.rule.daz)
            codes, raised = elementwise.settled("convert", [codes], total.site.format.spec, total.store.format, rule)
            self.flags = self.flags | raised
        total.codes = np.zeros(self._shape, total.site.format.dtype)
        return codes

    def add(self, codes: Codes, source: Site) -> None:
        """Sums of the segments that come next, in a row each, which this stage has made."""
        ends, first = self._ends[self._done : self._done + len(codes)], 0
        self._done += len(codes)
        for number in sorted({*np.flatnonzero(ends > 1).tolist(), len(codes) - 1}):
            self._enter(0, codes[first : number + 1], source)
            first = number + 1
            for level in range(1, int(ends[number])):
                below = self._leave(level - 1)
                self._enter(level, below[np.newaxis], self._sums[level - 1].out)

    def total(self) -> Done:
        """The sum of the last level."""
        return self._leave(len(self._sums) - 1), self.flags


def _levels(
    planned: Program, c: Codes | None, shape: tuple[int, ...], segments_of_sum: int, scaling: Scaling | None
) -> _Levels | None:
    """What adds segments' sums; None where a level's format does not hold what comes from below."""
    numbers, sums, below = dots(), [], segments.last_of_part(planned)
    for level, _ in enumerate(planned.accumulator.reduction):
        site = planned.sites[numbers.LEVEL + 2 * level]
        store = planned.sites.get(numbers.LEVEL + 2 * level + 1)
        if not takes(site, below.format, below.rule.daz):
            return None
        sums.append(_Sum(site, store, np.zeros(shape, site.format.dtype)))
        below = sums[-1].out
    if c is not None:
        entered, last = planned.sites[planned.entered], sums[-1]
        if not takes(last.site, planned.partials, entered.rule.daz):
            return None
        last.codes = segments.read(c, planned.partials, last.site.format, entered.rule)
    found = _Levels(sums, segment_ends(planned.accumulator, segments_of_sum), shape, scaling)
    if c is not None:
        found.flags |= segments.signals(c, planned.partials)
    return found


def scaling_of(planned: Program, scales: Scales) -> Scaling | None:
    """The scales of a grid's segments; None where they are added by other steps, or are no numbers of the stage's that all is finite in."""
    how, site = planned.accumulator, planned.sites[dots().LEVEL]
    if site.format.spec != FLOAT32 or site.rule.daz:
        return None
    values = scales.at(np.array(segment_bounds(how, planned.products)[:-1], np.int64))
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = (np.ascontiguousarray(x, np.float32) for x in values)
    if not (
        np.isfinite(a).all() and np.isfinite(b).all() and np.array_equal(a, values[0]) and np.array_equal(b, values[1])
    ):
        return None
    return Scaling(str(how.reduction[0].scaling), a.view(np.uint32), b.view(np.uint32))


def _joinable(planned: Program) -> bool:
    """Whether there is a format for each addition of `segments.join` that holds what is added."""
    numbers, below = dots(), segments.alone(planned.accumulator).partials
    for level, _ in enumerate(planned.accumulator.reduction):
        site = planned.sites[numbers.LEVEL + 2 * level]
        if not segments.has_source(site.format, below):
            return False
        below = planned.sites.get(numbers.LEVEL + 2 * level + 1, site).format
    return segments.has_source(site.format, planned.partials)


def _chains(planned: Program, shape: tuple[int, ...]) -> _Levels | None:
    """What adds chains' sums: a level whose sum begins with the first of them."""
    site, below = planned.sites[dots().RUNNING], segments.last_of_part(planned)
    if not takes(site, below.format, below.rule.daz):
        return None
    return _Levels([_Sum(site, None, None)], [1] * planned.accumulator.chains, shape)


def _one_after_the_other(
    planned: Program,
    c: Codes | None,
    shape: tuple[int, ...],
    call: Call,
    run_parts: Parts,
    bits: Callable[[int, int, int], Codes],
    tally: ways.Tally | None,
    run_chains: Chains | None,
) -> Done | None:
    """Segments or chains whose roundings draw or are counted, or whose sums are wider than what they are added in: each as it would be
    alone, and their sums as `segments` adds them."""
    accumulator, size = planned.accumulator, math.prod(shape)
    flags: Codes = np.zeros(shape, np.uint8)
    total = None
    if tally is not None:
        tally.counts[...], tally.extremes[0], tally.extremes[1] = 0, np.inf, -np.inf
        total = segments.Tally(tally.counts.reshape(3, size), tally.extremes.reshape(2, size))
        if not (
            np.may_share_memory(total.counts, tally.counts) and np.may_share_memory(total.extremes, tally.extremes)
        ):
            return None

    class Unserved(Exception):
        """A part has no faster way."""

    parts = list((chain_parts if accumulator.chains > 1 else _segment_parts)(planned, call))
    together = None if run_chains is None else run_chains(parts[0][0])

    def sums() -> Iterator[Codes]:
        if together is not None:
            np.bitwise_or.reduce(together[1], axis=0, out=flags)
            yield from together[0].reshape(len(parts), size)
            return
        found = None if tally is None else _found(tally, planned)
        for part, cut in parts:
            if not part.length:
                yield np.zeros(size, part.partials.dtype)
                continue
            if total is not None:
                total.settle()
            done = run_parts(part, cut, found)
            if done is None:
                raise Unserved
            np.bitwise_or(flags, done[1][0], out=flags)
            if total is not None and found is not None:
                total.waiting = segments.Tally(found.counts.reshape(3, size), found.extremes.reshape(2, size))
            yield done[0].reshape(-1)

    start = None if c is None else np.ascontiguousarray(c).reshape(-1)
    join = segments.join_chains if accumulator.chains > 1 else segments.join
    try:
        drawing = segments.Drawing(size, bits)
        codes, raised = join(replace(planned, output=planned.partials), sums(), start, drawing, total)
    except Unserved:
        return None
    return codes.reshape(shape), flags | raised.reshape(shape)


def _found(tally: ways.Tally, planned: Program) -> ways.Tally:
    """Where a part counts: a grid's as its loops do, so that they need no other place; loops of lines know results' types alone."""
    if tally.counts.ndim == 2:
        return ways.Tally(np.empty_like(tally.counts), np.empty_like(tally.extremes))
    single = fits_single(planned.sites[dots().RUNNING].format) and planned.accumulator.fixed is None
    return ways.Tally.room(tally.counts.shape[1:], np.float32 if single else np.float64)


_Part = tuple[Program, Cuts]
"""A program, and the one stretch of k that it sums."""


def draws_inside(planned: Program) -> bool:
    """Whether a stage before the output's draws."""
    return any(site.width for number, site in planned.sites.items() if number != dots().RESULT)


def _segment_parts(planned: Program, call: Call) -> Iterator[_Part]:
    accumulator, (first, second) = planned.accumulator, planned.formats
    inner, bounds = segments.alone(accumulator), segment_bounds(accumulator, planned.products)
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        part = program(inner, first, second, inner.partials, call.whole, stop - start)
        yield segments.begun(part, accumulator, number, planned.products), Cuts(start, stop - start)


def chain_parts(planned: Program, call: Call) -> Iterator[_Part]:
    """Chains. Where they draw, a chain's roundings have the numbers of its products among all."""
    accumulator, (first, second) = planned.accumulator, planned.formats
    inner, numbers, chains = accumulator.replace(chains=1), dots(), accumulator.chains
    draws = draws_inside(planned)
    for chain in range(chains):
        cut = Cuts(chain, len(range(chain, planned.length, chains)), apart=chains)
        part = program(inner, first, second, inner.partials, call.whole, cut.size)
        if draws:
            done = {number: planned.begun.get(number, 0) + chain for number in (numbers.RUNNING, numbers.PRODUCT)}
            part = replace(part, begun=done, apart=chains)
        yield part, cut


def _chains_joinable(planned: Program) -> bool:
    """Whether chains may go one after the other."""
    site = planned.sites[dots().RUNNING]
    return planned.index is None and planned.partials == site.format


def run(
    planned: Program,
    c: Codes | None,
    shape: tuple[int, ...],
    call: Call,
    run_parts: Parts,
    bits: Callable[[int, int, int], Codes],
    products: int | None = None,
    tally: ways.Tally | None = None,
    run_chains: Chains | None = None,
    scaling: Scaling | None = None,
) -> Done | None:
    """Segments or chains, their sums added up elementwise. None where this does not serve.

    Stretches of at most so many `products` go side by side; a longer one goes alone. None: those of a grid go under each other.
    bits(site, step, width) are the random bits of one rounding of each output. A `tally` is filled. `run_chains` takes chains that
    draw, if it can.
    """
    accumulator = planned.accumulator
    chains = accumulator.chains > 1
    if (accumulator.reduction and chains) or (chains and accumulator.block > 1):
        return None
    if not planned.length:  # c itself, which may be -0 or a signalling NaN
        return None
    if chains and c is not None and arguments.has_nan(c, planned.partials):  # no payload passes there
        return None
    if chains and planned.index is not None:
        return None
    below = segments.last_of_part(planned)
    length = planned.length if chains else planned.products
    cuts = cuts_of(accumulator, length)
    parts = sum(some.stretches for some in cuts)
    levels: _Levels | None = None
    if tally is None and not draws_inside(planned):
        levels = _chains(planned, shape) if chains else _levels(planned, c, shape, parts, scaling)
    if levels is None:
        if scaling is not None or not (_chains_joinable(planned) if chains else _joinable(planned)):
            return None
        outputs = math.prod(shape)
        if outputs * planned.products < min(WORTH_CALLS * math.isqrt(outputs), MOST_WORTH) * parts:
            return None
        return _one_after_the_other(planned, c, shape, call, run_parts, bits, tally, run_chains)
    outputs = max(1, math.prod(shape))
    pieces = (x.in_pieces((UNDER_EACH_OTHER * x.size if products is None else products) // outputs) for x in cuts)
    for some in itertools.chain.from_iterable(pieces):
        if not some.size:
            codes, raised = np.zeros((some.stretches, *shape), below.format.dtype), levels.flags[np.newaxis]
        else:
            done = run_parts(part_of(planned, some.size, call), some, None)
            if done is None:
                return None
            codes, raised = done
            if scaling is not None and arguments.has_nan(codes, below.format):  # whose payloads go another way
                return None
        levels.flags = levels.flags | np.bitwise_or.reduce(raised, axis=0)
        levels.add(codes, below)
    total, flags = levels.total()
    if chains and c is not None:
        site = planned.sites[dots().RUNNING]
        total, raised = elementwise.add(total, c, site.format, site.rule)
        flags = flags | raised
    return total, flags
