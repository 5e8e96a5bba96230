"""Sums of the first 1, 2, 3 ... products where they are not the steps of one sum: those in pairs, in chains, in segments.

What many of them share is summed once; what each has of its own is added elementwise, for all of them together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from softfloat.engine import arguments, elementwise, folds, joining, lines, trees
from softfloat.engine.arguments import Codes
from softfloat.engine.joining import Done, part_of, widened
from softfloat.engine.options import Call
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program, Site, segment_bounds

Parts = Callable[[Program, Sequence[slice], slice], Done | None]
"""All sums so far of stretches of k that are equally long, of some outputs, by a program of their own: (products, stretches, outputs)."""

PIECE = 1 << 20
"""Sums that are found together, as far as outputs are that short."""


def pieces(length: int, count: int) -> Iterator[slice]:
    """Outputs, some at a time."""
    step = max(1, PIECE // length)
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


# -- pairs -----------------------------------------------------------------------------------------------------------


def in_pairs(planned: Program, a: Codes, b: Codes) -> tuple[Codes, Codes, Codes] | None:
    """(codes in the partials format, flags, numbers of outputs not served), (k, outputs) like a and b; None if none is served."""
    if not trees.serves(planned):
        return None
    first, second = planned.formats
    wrong: Codes = arguments.is_nan(a, first).any(axis=0) | arguments.is_nan(b, second).any(axis=0)
    codes, flags = np.zeros(a.shape, planned.partials.dtype), np.zeros(a.shape, np.uint8)
    for part in pieces(*a.shape):
        served = np.arange(part.start, part.stop)[~wrong[part]]
        if not served.size:
            continue
        some = part if served.size == part.stop - part.start else served
        made = trees.leaves(planned, a[:, some], b[:, some])
        if made is None:
            return None
        codes[:, some], flags[:, some] = _pairs(planned.sites[dots().RUNNING], *made)
    return None if wrong.all() else (codes, flags, np.flatnonzero(wrong))


def _pairs(site: Site, sums: Codes, raised: Codes | None) -> Done:
    """Of leaves, (k, outputs), with flags.

    The bits of a sum's number are the sizes of the whole subtrees that it is made of, and these are added from the smallest on. So a
    level's sums are added to what the lower bits gave, for all numbers that have its bit.
    """
    count, outputs = sums.shape
    raised = np.zeros(sums.shape, np.uint8) if raised is None else raised
    codes, flags = np.zeros((count + 1, outputs), sums.dtype), np.zeros((count + 1, outputs), np.uint8)  # by number
    size = 1  # leaves of a subtree
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
            if size > 1:
                having[:, 1:], more = _added(larger, having[:, 1:], site)
                seen[:, 1:] |= told | more
        pairs, size = len(sums) // 2 * 2, 2 * size
        if pairs:
            sums, more = _added(sums[0:pairs:2], sums[1:pairs:2], site)
            raised = raised[0:pairs:2] | raised[1:pairs:2] | more
    return codes[1:], flags[1:]


def _added(x: Codes, y: Codes, site: Site) -> Done:
    """Sums of two by a stage."""
    pair = [np.broadcast_to(x, y.shape), y]
    return elementwise.settled("add", pair, site.format.spec, site.format, site.rule)


# -- chains and segments ---------------------------------------------------------------------------------------------


def of_parts(planned: Program, count: int, call: Call, run_parts: Parts) -> Done | None:
    """(codes in the partials format, flags), (k, outputs), of chains or segments; None where this does not serve."""
    how, find = planned.accumulator, _of_chains if planned.accumulator.chains > 1 else _of_segments
    if (how.reduction and how.chains > 1) or not planned.length or planned.index is not None:
        return None
    if (
        any(level.scaling for level in how.reduction)
        or joining.draws_inside(planned)
        or joining.flushes_inside(planned)
    ):
        return None
    shape = planned.length, count
    codes, flags = np.zeros(shape, planned.partials.dtype), np.zeros(shape, np.uint8)
    for part in pieces(*shape):
        done = find(planned, part, call, run_parts)
        if done is None:
            return None
        codes[:, part], flags[:, part] = done
    return codes, flags


def _of_chains(planned: Program, part: slice, call: Call, run_parts: Parts) -> Done | None:
    """A chain's sum stands until its next product; all are added at each."""
    site, chains, length = planned.sites[dots().RUNNING], planned.accumulator.chains, planned.length
    if planned.partials != site.format:
        return None
    total: Done | None = None
    for chain in range(chains):
        cut = slice(chain, length, chains)
        shape = length, part.stop - part.start
        codes, flags = np.zeros(shape, site.format.dtype), np.zeros(shape, np.uint8)
        if chain < length:
            done = run_parts(part_of(planned, len(range(*cut.indices(length))), call), [cut], part)
            if done is None:
                return None
            for place, found in zip((codes, flags), done, strict=True):
                place[chain:] = np.repeat(found[:, 0], chains, axis=0)[: length - chain]
        if total is None:
            total = codes, flags
        else:
            sums, raised = _added(total[0], codes, site)
            total = sums, total[1] | flags | raised
    return total


def _of_segments(planned: Program, part: slice, call: Call, run_parts: Parts) -> Done | None:
    """A segment's sums so far are added to the total of those before."""
    site, store = planned.sites[dots().LEVEL], planned.sites.get(dots().LEVEL + 1)
    bounds, outputs = segment_bounds(planned.accumulator, planned.length), part.stop - part.start
    size, below = bounds[1], part_of(planned, 0, call).partials
    if not lines.holds(site.format, below):
        return None
    total, before = np.zeros((1, outputs), site.format.dtype), np.zeros((1, outputs), np.uint8)
    cuts = [slice(*cut) for cut in itertools.pairwise(bounds)]
    whole = planned.length // size
    found: list[Done] = []
    for group in (cuts[:whole], cuts[whole:]):  # all but the last are equally long
        if not group:
            continue
        done = run_parts(part_of(planned, group[0].stop - group[0].start, call), group, part)
        if done is None:
            return None
        codes = widened(done[0], below, site.format, planned.policy.name)
        totals = folds.steps(np.concatenate([total, codes[-1]]), site.format, site.rule)
        sums, raised = _added(totals[:-1], codes, site)
        raised |= done[1]
        seen = np.bitwise_or.accumulate(np.concatenate([before, raised[-1]]), axis=0)
        raised |= seen[:-1]
        found.append((sums.swapaxes(0, 1).reshape(-1, outputs), raised.swapaxes(0, 1).reshape(-1, outputs)))
        total, before = totals[-1:], seen[-1:]
    sums, flags = (np.concatenate(x) for x in zip(*found, strict=True))
    if store is not None:
        sums, raised = elementwise.settled("convert", [sums], site.format.spec, store.format, store.rule)
        flags |= raised
    return sums, flags
