"""Sums of segments, or chains, each by the fastest way there is, and then added up elementwise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import arguments, segments, ways
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import fits_single
from softfloat.engine.options import Call
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program, bounds_of, plain_loop, program, segment_bounds
from softfloat.engine.scaled_segments import Scaling

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


def _joinable(planned: Program, c: Codes | None) -> bool:
    """Whether there is a format for each addition of segments that holds what is added."""
    numbers, below = dots(), segments.last_of_part(planned).format
    for level, _ in enumerate(planned.accumulator.reduction):
        site = planned.sites[numbers.LEVEL + 2 * level]
        if not segments.has_source(site.format, below):
            return False
        below = planned.sites.get(numbers.LEVEL + 2 * level + 1, site).format
    return c is None or segments.has_source(site.format, planned.partials)


def _found(tally: ways.Tally, planned: Program) -> ways.Tally:
    """Where a part counts: a grid's as its loops do, so that they need no other place; loops of lines know results' types alone."""
    if tally.counts.ndim == 2:
        return ways.Tally(np.empty_like(tally.counts), np.empty_like(tally.extremes))
    single = fits_single(planned.sites[dots().RUNNING].format) and planned.accumulator.fixed is None
    return ways.Tally.room(tally.counts.shape[1:], np.float32 if single else np.float64)


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
        part = part_of(planned, cut.size, call)
        if draws:
            done = {number: planned.begun.get(number, 0) + chain for number in (numbers.RUNNING, numbers.PRODUCT)}
            part = replace(part, begun=done, apart=chains)
        yield part, cut


def _one_by_one(planned: Program, call: Call) -> Iterator[_Part]:
    """Chains or segments, whose random numbers follow those of what comes before them."""
    how, length = planned.accumulator, planned.products
    if how.chains > 1:
        yield from chain_parts(planned, call)
        return
    for number, (start, stop) in enumerate(itertools.pairwise(segment_bounds(how, length))):
        yield segments.begun(part_of(planned, stop - start, call), how, number, length), Cuts(start, stop - start)


def _together(planned: Program, call: Call, products: int | None, outputs: int) -> Iterator[_Part]:
    """The same, those that are equally long together, of at most so many products of an output if they are not longer by themselves."""
    for cuts in cuts_of(planned.accumulator, planned.length if planned.accumulator.chains > 1 else planned.products):
        for some in cuts.in_pieces((UNDER_EACH_OTHER * cuts.size if products is None else products) // outputs):
            yield part_of(planned, some.size, call), some


def _serves(planned: Program, c: Codes | None, scaling: Scaling | None, alone: bool) -> bool:
    """Whether parts' sums may be added up here, `alone` or many together; what is c itself, which may be -0 or a signalling NaN, may not."""
    how, running = planned.accumulator, planned.sites[dots().RUNNING].format
    if not planned.length:
        return False
    if how.chains > 1:
        whole = how.reduction or how.block > 1 or planned.index is not None or planned.partials != running
        return not whole and (c is None or not arguments.has_nan(c, planned.partials))  # no payload passes there
    if scaling is not None and (
        alone or not segments.takes(planned.sites[dots().LEVEL], segments.last_of_part(planned))
    ):
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
    tally: ways.Tally | None = None,
    run_chains: Chains | None = None,
    scaling: Scaling | None = None,
) -> Done | None:
    """Segments or chains, their sums added up elementwise. None where this does not serve.

    Stretches of at most so many `products` go side by side; a longer one goes alone. None: those of a grid go under each other.
    bits(site, step, width) are the random bits of one rounding of each output. A `tally` is filled. `run_chains` takes chains that
    draw, if it can.
    """
    how, below, size = planned.accumulator, segments.last_of_part(planned), math.prod(shape)
    chains, alone = how.chains > 1, tally is not None or draws_inside(planned)
    if not _serves(planned, c, scaling, alone) or (alone and _little(planned, size)):
        return None
    start = None if c is None else np.ascontiguousarray(c).reshape(-1)
    total = found = None
    if tally is not None:
        total = ways.Tally(np.zeros((3, size), np.int32), np.empty((2, size), tally.extremes.dtype))
        total.extremes[0], total.extremes[1] = np.inf, -np.inf
        found = _found(tally, planned)
    joining = segments.Joining(planned, segments.Drawing(size, bits), total, None if chains else start, scaling)
    parts = _one_by_one(planned, call) if alone else _together(planned, call, products, max(1, size))
    if alone and chains and run_chains is not None and (done := run_chains(next(chain_parts(planned, call))[0])):
        joining.enter(done[0], below, done[1])
        parts = iter(())
    for part, some in parts:
        if not part.length:
            joining.enter(np.zeros((some.stretches, size), part.partials.dtype), below)
            continue
        joining.settle()
        done = run_parts(part, some, found)
        if done is None:
            return None
        if found is not None:
            joining.wait(ways.Tally(found.counts.reshape(3, size), found.extremes.reshape(2, size)))
        joining.enter(done[0], below, done[1])
        if not joining.serves:
            return None
    if chains and start is not None:
        joining.enter(start[np.newaxis], planned.sites[dots().RUNNING])
    joining.settle()
    if tally is not None and total is not None:
        for target, source in zip(tally, total, strict=True):
            target[...] = source.reshape(target.shape)
    of_partials = replace(planned, output=planned.partials) if planned.converts else planned
    codes = segments.with_nans(joining.finished().codes, of_partials)
    return codes.reshape(shape), joining.flags.reshape(shape)
