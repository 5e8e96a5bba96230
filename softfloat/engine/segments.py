"""Sums cut where the accumulator cuts k: segments, or chains, each by the fastest way there is, and their sums put together elementwise; one segment
alone."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import elementwise, folds
from softfloat.engine.arguments import Codes, has_nan, is_nan, is_signalling
from softfloat.engine.decoding import decoded, in_single
from softfloat.engine.lines import holds
from softfloat.engine.options import Call
from softfloat.engine.parameters import FLOAT32, dots, orders
from softfloat.engine.programs import Program, Site, bounds_of, plain_loop, program, segment_bounds, segment_ends
from softfloat.engine.scaled_segments import Scaling
from softfloat.engine.ways import Tally
from softfloat.environments import Settings
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


@lru_cache(maxsize=64)
def _before(accumulator: Accumulator, k: int) -> tuple[dict[int, int], ...]:
    """How many roundings of each site segments before each have done."""
    numbers, unit = dots(), math.lcm(len(accumulator.order), accumulator.block)
    total: dict[int, int] = {}
    found = [total]
    for first, stop in itertools.pairwise(segment_bounds(accumulator, k)):
        length = -(-(stop - first) // unit) * unit
        more = _roundings(accumulator, length)
        if accumulator.store:
            more[numbers.STORE] = -(-length // accumulator.store_every)
        total = {site: total.get(site, 0) + count for site, count in more.items()}
        found.append(total)
    return tuple(found)


def begun(planned: Program, accumulator: Accumulator, segment: int, k: int) -> Program:
    """The program of one segment, that goes on with the random numbers of those before it."""
    done = _before(accumulator, k)[segment]
    return dataclasses.replace(planned, begun={site: count for site, count in done.items() if count})


def _roundings(accumulator: Accumulator, length: int) -> dict[int, int]:
    """How often a segment of so many products rounds to the running sum's format, and to that of products or of sums of blocks."""
    numbers, block = dots(), accumulator.block
    running, products = length // block, length
    if accumulator.fixed is not None:
        running = 1
    elif accumulator.compensation is not None:
        running = orders().ADDITIONS[accumulator.compensation] * length + (accumulator.compensation == "neumaier")
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


def _note(tally: Tally, before: Codes, addend: Codes, after: Codes, raised: Codes) -> None:
    """Count what an addition did."""
    changed = (addend != 0.0) & np.isfinite(before)
    for count, seen in zip(
        tally.counts, (raised & spec.OVERFLOW, raised & spec.INEXACT, changed & (after == before)), strict=True
    ):
        count += seen != 0
    _span(tally, after, after)


def _unite(tally: Tally, more: Tally) -> None:
    """Add further counts."""
    tally.counts[...] += more.counts
    _span(tally, *more.extremes)


def _span(tally: Tally, least: Codes, greatest: Codes) -> None:
    np.fmin(tally.extremes[0], least, out=tally.extremes[0])
    np.fmax(tally.extremes[1], greatest, out=tally.extremes[1])


class Joining:
    """The stages above segments, or the one that adds chains: sums of parts enter, of all outputs at a time.

    Those that follow each other are added in one loop where their stage's format holds them, and nothing is drawn or counted; else a
    rounding at a time. A `tally` is added to.
    """

    def __init__(
        self, planned: Program, drawing: Drawing, tally: Tally | None = None, c: Codes | None = None, scaling: Scaling | None = None
    ) -> None:  # fmt: skip
        floor, how = dots(), planned.accumulator
        self._planned, self._drawing, self._tally, self._scaling = planned, drawing, tally, scaling
        self.flags: Codes = np.zeros(drawing.size, np.uint8)
        self._entered, self._steps = 0, dict[int, int]()
        if how.chains > 1 and not how.reduction:  # whose sum begins with the first of them
            self._numbers, self._totals = [floor.RUNNING], list[_Sum | None]([None])
            self._ends: Codes = np.ones(how.chains + 1, np.int64)
            self._steps[floor.RUNNING] = planned.begun.get(floor.RUNNING, 0) + planned.length
            return
        self._numbers = [floor.LEVEL + 2 * level for level in range(len(how.reduction))]
        self._totals = [self._nothing(level) for level in range(len(how.reduction))]
        self._ends = np.array(segment_ends(how, len(segment_bounds(how, planned.products)) - 1), np.int64)
        if c is not None:
            self._totals[-1] = _Sum(c, planned.sites[planned.entered])
            self.flags |= signals(c, planned.partials)

    def _nothing(self, level: int) -> _Sum:
        site = self._planned.sites[self._numbers[level]]
        return _Sum(np.zeros(self._drawing.size, site.format.dtype), site)

    def _rounded(
        self, operation: str, operands: list[Codes], source: Format, number: int, daz: bool = False
    ) -> tuple[_Sum, Codes]:
        """One rounding by a stage, and the flags of each output; operands are read already, or under `daz`."""
        site, drawing = self._planned.sites[number], self._drawing
        step = self._steps.get(number, 0)
        self._steps[number] = step + 1
        known = operation, operands, source.spec, site.format, site.rule._replace(daz=daz)
        if site.width:
            codes, raised = elementwise.settled_by(drawing.bits(number, step, site.width), site.width, *known)
        else:
            codes, raised = elementwise.settled(*known)
        self.flags |= raised
        return _Sum(codes, site), raised

    def _added(self, total: _Sum, addend: _Sum, number: int) -> _Sum:
        """A sum of two, by the stage of this number."""
        source = _wide_enough(total.site.format, addend.site.format)
        found, raised = self._rounded("add", [total.read(source), addend.read(source)], source, number)
        if self._tally is not None:
            _note(self._tally, total.values, addend.values, found.values, raised)
        return found

    def _add(self, level: int, rows: Codes, source: Site) -> None:
        """Sums that follow each other, of a stage below, added to a level's."""
        number, total = self._numbers[level], self._totals[level]
        site = self._planned.sites[number]
        begins = total is None or total.site is site or takes(site, total.site)
        if level == 0 and self._scaling is not None and total is not None:
            shape = self._scaling.shape
            for segment, row in enumerate(rows, self._entered - len(rows)):
                each = read(row, source.format, site.format, source.rule).reshape(shape)
                sums, raised = self._scaling.added(total.read(site.format).reshape(shape), each, segment, site)
                self.flags |= raised.reshape(-1)
                total = _Sum(sums.reshape(-1), site)
        elif len(rows) > 1 and self._tally is None and not site.width and takes(site, source) and begins:
            before = [] if total is None else [total.codes if total.site is site else total.read(site.format)]
            rows = read(rows, source.format, site.format, source.rule)
            codes, raised = folds.summed([*before, *rows], site.format, site.rule)
            self.flags |= raised
            total = _Sum(codes, site)
        else:
            for row in rows:
                addend = _Sum(row, source)
                total = addend if total is None else self._added(total, addend, number)
        self._totals[level] = total

    def enter(self, sums: Codes, source: Site, raised: Codes | None = None) -> None:
        """Sums of the parts that come next, of all outputs each, which this stage has made, and what it raised, in the same shape."""
        rows = sums.reshape(len(sums), self._drawing.size)
        if raised is not None:
            self.flags |= np.bitwise_or.reduce(raised, axis=0).reshape(-1)
        ends, first = self._ends[self._entered : self._entered + len(rows)], 0
        levels_end = np.flatnonzero(ends > 1).tolist() if len(self._numbers) > 1 else []
        for last in sorted({*levels_end, len(rows) - 1}):
            self._entered += last + 1 - first
            self._add(0, rows[first : last + 1], source)
            first = last + 1
            for level in range(1, int(ends[last])):
                below = self.finished(level - 1)
                self._add(level, below.codes[np.newaxis], below.site)

    def finished(self, level: int = -1) -> _Sum:
        """A level's sum, stored if it is; the next one begins at +0."""
        total, levels = self._totals[level], self._planned.accumulator.reduction
        assert total is not None
        self._totals[level] = self._nothing(level)
        return self.converted(total, self._numbers[level] + 1) if levels and levels[level].store is not None else total

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


def takes(site: Site, below: Site) -> bool:
    """Whether a stage's sums hold those of another, as that reads them; and take none of them for zero that is not."""
    if not holds(site.format, below.format):
        return False
    least = below.format.emin if below.rule.daz else below.format.smallest_subnormal
    return not site.rule.daz or least >= (site.format.emin if below.rule.daz else site.format.tiny)


def last_of_part(planned: Program) -> Site:
    """The stage that a segment's or a chain's sum comes from."""
    return planned.sites[dots().STORE if planned.accumulator.store else dots().RUNNING]


def with_nans(codes: Codes, planned: Program) -> Codes:
    """Sums in a program's output format, whose NaNs are the default one if no payload passes."""
    if planned.carries or not has_nan(codes, planned.output):
        return codes
    found: Codes = np.where(is_nan(codes, planned.output), codes.dtype.type(planned.nan_code), codes)
    return found


def join(
    planned: Program, sums: Codes, c: Codes | None, drawing: Drawing, tally: Tally | None = None
) -> tuple[Codes, Codes]:
    """(codes of the output, flags) of sums of segments, (segments, outputs); c is (outputs,).

    `planned` is the program of the whole sum. A `tally` is added to.
    """
    joining = Joining(planned, drawing, tally, c)
    joining.enter(sums, last_of_part(planned))
    total = joining.finished()
    if planned.converts:
        total = joining.converted(total, dots().RESULT)
    return with_nans(total.codes, planned), joining.flags


# -- by parts ----------------------------------------------------------------------------------------------------------

Done = tuple[Codes, Codes]
"""Codes in the partials format, and flags."""

Parts = Callable[[Program, "Cuts", Tally | None], Done | None]
"""Sums of stretches of k that are equally long, in a row each, by a program of their own; they fill the tally, if there is one."""

SIDE_BY_SIDE = 1 << 18  # products of stretches that go together
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

    def side_by_side(self, x: Codes) -> Codes:
        """The stretches of a line's operand, (k, outputs), next to each other."""
        if self.stretches == 1:
            return x[self.only]
        if not any(x.strides):
            return np.broadcast_to(x[:1, :1], (self.size, self.stretches * x.shape[1]))
        stretch = x[self.first : self.first + self.size * self.stretches]
        if self.apart == 1:
            stretch = stretch.reshape(self.stretches, self.size, -1).swapaxes(0, 1)
        elif self.apart > self.stretches:
            stretch = x[self.first + self.apart * np.arange(self.size)[:, np.newaxis] + np.arange(self.stretches)]
        return stretch.reshape(self.size, -1)

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


def part_of(planned: Program, length: int, whole: Settings) -> Program:
    """The program of a chain or a segment of so many products, to the format of its own sums; its random numbers begin anew."""
    how = _undivided(planned.accumulator)
    return program(how, *planned.formats, how.partials, whole, length)


def _joinable(planned: Program, c: Codes | None) -> bool:
    """Whether there is a format for each addition of segments that holds what is added."""
    numbers, below = dots(), last_of_part(planned).format
    for level, _ in enumerate(planned.accumulator.reduction):
        site = planned.sites[numbers.LEVEL + 2 * level]
        if not has_source(site.format, below):
            return False
        below = planned.sites.get(numbers.LEVEL + 2 * level + 1, site).format
    return c is None or has_source(site.format, planned.partials)


_Part = tuple[Program, Cuts]
"""A program, and the stretches of k that it sums, each for itself."""


def draws_inside(planned: Program) -> bool:
    """Whether a stage before the output's draws."""
    return any(site.width for number, site in planned.sites.items() if number != dots().RESULT)


def chain_parts(planned: Program, call: Call) -> Iterator[_Part]:
    """Chains. Where they draw, a chain's roundings have the numbers of its products among all."""
    numbers, chains = dots(), planned.accumulator.chains
    draws = draws_inside(planned)
    for chain in range(chains):
        cut = Cuts(chain, len(range(chain, planned.length, chains)), apart=chains)
        part = part_of(planned, cut.size, call.whole)
        if draws:
            done = {number: planned.begun.get(number, 0) + chain for number in (numbers.RUNNING, numbers.PRODUCT)}
            part = dataclasses.replace(part, begun=done, apart=chains)
        yield part, cut


def _one_by_one(planned: Program, call: Call) -> Iterator[_Part]:
    """Chains or segments, whose random numbers follow those of what comes before them."""
    how, length, draws = planned.accumulator, planned.products, draws_inside(planned)
    if how.chains > 1:
        yield from chain_parts(planned, call)
        return
    for number, (start, stop) in enumerate(itertools.pairwise(segment_bounds(how, length))):
        part = part_of(planned, stop - start, call.whole)
        yield begun(part, how, number, length) if draws else part, Cuts(start, stop - start)


def _together(planned: Program, call: Call, products: int) -> Iterator[_Part]:
    """The same, those that are equally long together, of at most so many products of an output if they are not longer by themselves."""
    for cuts in cuts_of(planned.accumulator, planned.length if planned.accumulator.chains > 1 else planned.products):
        for some in cuts.in_pieces(products):
            yield part_of(planned, some.size, call.whole), some


def are_chains(planned: Program) -> bool:
    """Whether whole chains are all there is."""
    how, running = planned.accumulator, planned.sites[dots().RUNNING].format
    return not (how.reduction or how.block > 1 or planned.index is not None or planned.partials != running)


def _serves(planned: Program, c: Codes | None, scaling: Scaling | None) -> bool:
    """Whether parts' sums may be added up here; what is c itself, which may be -0 or a signalling NaN, may not."""
    if not planned.length:
        return False
    if planned.accumulator.chains > 1:
        return are_chains(planned) and (c is None or not has_nan(c, planned.partials))  # no payload passes there
    if scaling is not None and (draws_inside(planned) or not takes(planned.sites[dots().LEVEL], last_of_part(planned))):
        return False
    return _joinable(planned, c)


def _little(planned: Program, outputs: int) -> bool:
    """Whether calls for each part take longer than the plain loop, which is there."""
    how = planned.accumulator
    count = how.chains if how.chains > 1 else len(segment_bounds(how, planned.products)) - 1
    little = outputs * planned.products < min(WORTH_CALLS * math.isqrt(outputs), MOST_WORTH) * count
    return little and plain_loop().is_there(outputs * planned.products)


def run(
    planned: Program,
    c: Codes | None,
    shape: tuple[int, ...],
    call: Call,
    run_parts: Parts,
    bits: Callable[[int, int, int], Codes],
    products: int | None = None,
    tally: Tally | None = None,
    scaling: Scaling | None = None,
) -> Done | None:
    """Segments or chains, their sums added up elementwise. None where this does not serve.

    Stretches of at most so many `products` go side by side; a longer one goes alone. None: they go one by one.
    bits(site, step, width) are the random bits of one rounding of each output. A `tally` is filled.
    """
    how, below, size = planned.accumulator, last_of_part(planned), math.prod(shape)
    chains, apart = how.chains > 1, products is None or tally is not None or draws_inside(planned)
    if not _serves(planned, c, scaling) or (apart and _little(planned, size)):
        return None
    start = None if c is None else np.ascontiguousarray(c).reshape(-1)
    total = found = None
    if tally is not None:
        total = Tally(np.zeros((3, size), np.int32), np.empty((2, size), tally.extremes.dtype))
        total.extremes[0], total.extremes[1] = np.inf, -np.inf
        found = Tally.room(tally.counts.shape[1:], np.float64)
    joining = Joining(planned, Drawing(size, bits), total, None if chains else start, scaling)
    parts = _together(planned, call, products // max(1, size)) if products and not apart else _one_by_one(planned, call)
    for part, some in parts:
        if not part.length:
            joining.enter(np.zeros((some.stretches, size), part.partials.dtype), below)
            continue
        done = run_parts(part, some, found)
        if done is None:
            return None
        if total is not None and found is not None:
            _unite(total, Tally(found.counts.reshape(3, size), found.extremes.reshape(2, size)))
        joining.enter(done[0], below, done[1])
    if chains and start is not None:
        joining.enter(start[np.newaxis], planned.sites[dots().RUNNING])
    if tally is not None and total is not None:
        for target, source in zip(tally, total, strict=True):
            target[...] = source.reshape(target.shape)
    codes = with_nans(joining.finished().codes, planned.to_partials)
    return codes.reshape(shape), joining.flags.reshape(shape)
