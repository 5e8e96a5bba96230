"""Sums of the first 1, 2, 3 ... products where they are not the steps of one sum: those in pairs, in chains, in segments.

What many of them share is summed once; what each has of its own is added elementwise, for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from softfloat.engine import arguments, elementwise, folds, segments, trees
from softfloat.engine.arguments import Codes
from softfloat.engine.options import Call
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program
from softfloat.engine.segments import Done, part_of
from softfloat.engine.ways import Tally
from softfloat.formats import Format

Parts = Callable[[Program, segments.Cuts, Tally | None, slice], Done | None]
"""All sums so far of stretches of k that are equally long, of some outputs, by a program of their own: (products, stretches, outputs)."""

Bits = Callable[[int, Codes, slice], Codes]
"""Random bits of a stage's roundings of these numbers, in a row each, of some outputs."""

PIECE = 1 << 20
"""Sums that are found together, as far as outputs are that short."""


def pieces(length: int, count: int) -> Iterator[slice]:
    """Outputs, some at a time."""
    step = max(1, PIECE // length)
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


class _Adding:
    """A stage's additions for some outputs; `draw` finds random bits by the roundings' numbers."""

    def __init__(self, planned: Program, number: int, draw: Callable[[int, Codes], Codes]) -> None:
        self.site, self._number, self._draw = planned.sites[number], number, draw

    def settled(self, operation: str, x: Codes, y: Codes, source: Format, steps: Callable[[], Codes]) -> Done:
        """x and y, a row for each of `steps` and a column for each output, x maybe of fewer rows that stand for several."""
        site, pair = self.site, [np.broadcast_to(x, y.shape), y]
        if not site.width:
            return elementwise.settled(operation, pair, source.spec, site.format, site.rule)
        bits = self._draw(self._number, steps().reshape(-1))
        return elementwise.settled_by(bits, site.width, operation, pair, source.spec, site.format, site.rule)

    def added(self, x: Codes, y: Codes, steps: Callable[[], Codes]) -> Done:
        """Sums."""
        return self.settled("add", x, y, self.site.format, steps)


# -- pairs -----------------------------------------------------------------------------------------------------------


def in_pairs(planned: Program, a: Codes, b: Codes, bits: Bits) -> tuple[Codes, Codes, Codes] | None:
    """(codes in the partials format, flags, numbers of outputs not served), (k, outputs) like a and b; None if none is served."""
    if not trees.serves(planned, drawing=True) or planned.goes_on:
        return None
    first, second = planned.formats
    wrong: Codes = arguments.is_nan(a, first).any(axis=0) | arguments.is_nan(b, second).any(axis=0)
    codes, flags = np.zeros(a.shape, planned.partials.dtype), np.zeros(a.shape, np.uint8)
    for part in pieces(*a.shape):
        served = np.flatnonzero(~wrong[part])
        if not served.size:
            continue
        some = part if served.size == part.stop - part.start else part.start + served

        def draw(number: int, steps: Codes, part: slice = part, served: Codes = served) -> Codes:
            return bits(number, steps, part)[:, served]

        made = _leaves(planned, a[:, some], b[:, some], draw)
        if made is None:
            return None
        codes[:, some], flags[:, some] = _pairs(_Adding(planned, dots().RUNNING, draw), *made)
    return None if wrong.all() else (codes, flags, np.flatnonzero(wrong))


def _leaves(planned: Program, a: Codes, b: Codes, draw: Callable[[int, Codes], Codes]) -> Done | None:
    """`trees.leaves`, those that draw among them, with flags."""
    number = dots().PRODUCT
    if planned.sites[number].width and not trees.are_leaves(planned, b):
        source, other = planned.formats
        if source != other:
            return None
        return _Adding(planned, number, draw).settled("mul", a, b, source, lambda: np.arange(len(a)))
    return trees.leaves(planned, a, b)


def _ones(numbers: Codes) -> Codes:
    """How many bits of each number are 1."""
    found: Codes = sum((numbers >> bit & 1 for bit in range(int(numbers.max(initial=0)).bit_length())), 0 * numbers)
    return found


def _numbers_of_level(count: int, level: int) -> Codes:
    """Those of the additions that make subtrees of so many levels larger. They come leaf by leaf: n leaves' take n, less its bits that are 1."""
    before = (np.arange(1, count + 1) << (level + 1)) - 1
    return before - _ones(before) + level


def _numbers_of_rest(first: int, blocks: int, length: int, size: int) -> Codes:
    """Those of the additions to subtrees of this size, of what is left beside them: after all that make subtrees."""
    numbers = np.arange(first, first + blocks * length).reshape(blocks, length)[:, size + 1 :]
    return numbers - _ones(numbers) + _ones(numbers % size) - 1


def _pairs(adding: _Adding, sums: Codes, raised: Codes) -> Done:
    """Of leaves, (k, outputs), with flags.

    The bits of a sum's number are the sizes of the whole subtrees that it is made of, and these are added from the smallest on. So a
    level's sums are added to what the lower bits gave, for all numbers that have its bit.
    """
    count, outputs = sums.shape
    codes, flags = np.zeros((count + 1, outputs), sums.dtype), np.zeros((count + 1, outputs), np.uint8)  # by number
    level, size = 0, 1  # and leaves of a subtree
    while size <= count:
        whole = (count + 1) // (2 * size)
        end = 2 * size * whole
        for first, blocks, length in ((0, whole, 2 * size), (end, 1, count + 1 - end)):
            shape, stop = (blocks, length, outputs), first + blocks * length
            having, seen = (x[first:stop].reshape(shape)[:, size:] for x in (codes, flags))
            if not having.size:
                continue
            subtrees = slice(first // size, first // size + 2 * blocks, 2)
            larger, told = (x[subtrees, np.newaxis] for x in (sums, raised))
            having[:, :1], seen[:, :1] = larger, told
            if having.shape[1] > 1:
                numbers = partial(_numbers_of_rest, first, blocks, length, size)
                having[:, 1:], more = adding.added(larger, having[:, 1:], numbers)
                seen[:, 1:] |= told | more
        pairs = len(sums) // 2 * 2
        if pairs:
            numbers = partial(_numbers_of_level, pairs // 2, level)
            sums, more = adding.added(sums[0:pairs:2], sums[1:pairs:2], numbers)
            raised = raised[0:pairs:2] | raised[1:pairs:2] | more
        level, size = level + 1, 2 * size
    return codes[1:], flags[1:]


# -- chains and segments ---------------------------------------------------------------------------------------------


def of_parts(planned: Program, count: int, call: Call, run_parts: Parts, bits: Bits) -> Done | None:
    """(codes in the partials format, flags), (k, outputs), of chains or segments; None where this does not serve."""
    how, chains = planned.accumulator, planned.accumulator.chains > 1
    if (how.reduction and chains) or not planned.length or planned.index is not None or planned.goes_on:
        return None
    drawing = segments.draws_inside(planned)
    if any(level.scaling for level in how.reduction) or (drawing and not chains):
        return None
    shape = planned.length, count
    codes, flags = np.zeros(shape, planned.partials.dtype), np.zeros(shape, np.uint8)
    for part in pieces(*shape):
        if chains:
            done = _of_chains(planned, part, call, run_parts, partial(_of_outputs, bits, part))
        else:
            done = _of_segments(planned, part, call, run_parts)
        if done is None:
            return None
        codes[:, part], flags[:, part] = done
    return codes, flags


def _of_outputs(bits: Bits, part: slice, number: int, steps: Codes) -> Codes:
    return bits(number, steps, part)


def _of_chains(
    planned: Program, part: slice, call: Call, run_parts: Parts, draw: Callable[[int, Codes], Codes]
) -> Done | None:
    """A chain's sum stands until its next product; all are added at each, which for random numbers comes after as many products."""
    adding, chains = _Adding(planned, dots().RUNNING, draw), planned.accumulator.chains
    site, shape = adding.site, (planned.length, part.stop - part.start)
    if planned.partials != site.format or not planned.is_plain:
        return None
    total: Done | None = None
    for chain, (inner, cut) in enumerate(segments.chain_parts(planned, call)):
        codes, flags = np.zeros(shape, site.format.dtype), np.zeros(shape, np.uint8)
        if inner.length:
            done = run_parts(inner, cut, None, part)
            if done is None:
                return None
            for place, found in zip((codes, flags), done, strict=True):
                place[chain:] = np.repeat(found[:, 0], chains, axis=0)[: planned.length - chain]
        if total is None:
            total = codes, flags
        else:
            sums, raised = adding.added(total[0], codes, partial(np.arange, chain, chain + planned.length))
            total = sums, total[1] | flags | raised
    return total


def _of_segments(planned: Program, part: slice, call: Call, run_parts: Parts) -> Done | None:
    """A segment's sums so far are added to the total of those before."""
    site, store = planned.sites[dots().LEVEL], planned.sites.get(dots().LEVEL + 1)
    outputs, below = part.stop - part.start, segments.last_of_part(planned)
    if not segments.takes(site, below):
        return None
    total, before = np.zeros((1, outputs), site.format.dtype), np.zeros((1, outputs), np.uint8)
    found: list[Done] = []
    for cuts in segments.cuts_of(planned.accumulator, planned.length):
        done = run_parts(part_of(planned, cuts.size, call.whole), cuts, None, part)
        if done is None:
            return None
        codes = segments.read(done[0], below.format, site.format, below.rule)
        totals, _ = folds.summed(np.concatenate([total, codes[-1]]), site.format, site.rule, True)
        pair = [np.broadcast_to(totals[:-1], codes.shape), codes]
        sums, raised = elementwise.settled("add", pair, site.format.spec, site.format, site.rule)
        raised |= done[1]
        seen = np.bitwise_or.accumulate(np.concatenate([before, raised[-1]]), axis=0)
        raised |= seen[:-1]
        found.append((sums.swapaxes(0, 1).reshape(-1, outputs), raised.swapaxes(0, 1).reshape(-1, outputs)))
        total, before = totals[-1:], seen[-1:]
    sums, flags = (np.concatenate(x) for x in zip(*found, strict=True))
    if store is not None:
        rule = store.rule._replace(daz=site.rule.daz)
        sums, raised = elementwise.settled("convert", [sums], site.format.spec, store.format, rule)
        flags |= raised
    return sums, flags
