"""One operation along an axis, one element after another: in one loop where few folds stand side by side, else a row at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softfloat.engine import elementwise, threads
from softfloat.engine.arguments import Codes, flattened, from_keys, has_nan, keys
from softfloat.engine.draws import Work, draw
from softfloat.engine.elementwise import Job, carrier_for
from softfloat.engine.parameters import (
    choosing,
    comparisons,
    fast,
    fast_numbers,
    loops,
    numbers,
    rule_for,
    spared,
    way_of,
)
from softfloat.environments import Settings
from softfloat.formats import Format
from softfloat.kernels.spec import CARRIER64, Rule

EXTREMA = {
    "minimum": (False, False),
    "maximum": (True, False),
    "minimum_number": (False, True),
    "maximum_number": (True, True),
}
"""Operation -> (whether the greater one is chosen, whether a number goes before a NaN)."""

NARROW, NARROW_PAIRS, NARROW_HALVES = 1 << 8, 1 << 6, 1 << 10
"""Folds side by side up to which one loop over all of them is quicker than one for each row; of formats whose pairs have tables; of halves that
have a loop of their own."""
SOME_ROWS = 1 << 18
"""Steps that are kept at a time where only the last one is wanted."""


def serves(operation: str, codes: Codes, fmt: Format, settings: Settings) -> bool:
    """Whether `fold` is for this: codes as `fold` takes them."""
    if not elementwise.quick() or codes.shape[0] < 3 or not codes.shape[1]:
        return False
    if operation in EXTREMA:
        return True
    if fmt.wide:
        return False
    if loops().OPERATIONS.get(operation, (None, 0))[1] != 2 or operation == "given":
        return False
    return not settings.rounding.draws or settings.generator == "philox4x32"


def ordered(operation: str, codes: Codes, fmt: Format, settings: Settings) -> bool:
    """Whether a choice among these codes is the order of their numbers, and raises nothing."""
    return _ordered(operation, codes, fmt, choosing(fmt, settings.daz, settings.ftz, settings.nan))


def _ordered(operation: str, codes: Codes, fmt: Format, rule: Rule) -> bool:
    number, policy = EXTREMA[operation][1], rule.policy
    own = (policy.number_signalling and rule.ftz) if number else policy.second_operand
    # elsewhere codes below the normal numbers are zeros as well
    one_zero = fmt.smallest_subnormal_code <= 1
    return one_zero and not (rule.daz or own or has_nan(codes, fmt))


def fold(
    operation: str, codes: Codes, fmt: Format, settings: Settings, streams: Sequence[int], keep: bool
) -> tuple[Codes, Codes]:
    """(steps, flags of each column) of folds down the columns of codes, as calls of the operation on rows would make them.

    Steps have a row for each of those of `codes`, or only the last if not `keep`. The call for row k draws in
    streams[k - 1], and columns have the addresses of their numbers.
    """
    if operation in EXTREMA:  # which round nothing
        return _settled(operation, codes, fmt, choosing(fmt, settings.daz, settings.ftz, settings.nan), keep)
    if not settings.rounding.draws:
        return _settled(operation, codes, fmt, rule_for(settings, fmt, False), keep)
    values, steps, flags = _begun(codes, keep)
    drawn = draw(settings, None, 0, ())
    rule = rule_for(settings, fmt, False, drawn.width)
    run = spared(loops().folding_drawn(operation, way_of(fmt.spec, rule))).run
    taken = np.arange(streams.start, streams.stop, dtype=np.uint64) if isinstance(streams, range) else streams
    known = (
        np.array(taken, np.uint64),
        np.zeros(1),
        *numbers(fmt.spec, fmt.spec, rule, CARRIER64),
        drawn.key,
        drawn.width,
    )
    (length, columns), rows = values.shape, (flattened(values).view(np.uint8), steps.reshape(-1).view(np.uint8))

    def work(start: int, stop: int) -> int:
        return run(length * (stop - start), start, stop, columns, *rows, flags, values.itemsize, *known)

    threads.share(columns, work)
    return steps, flags


def summed(rows: Codes | Sequence[Codes], fmt: Format, rule: Rule, keep: bool = False) -> tuple[Codes, Codes]:
    """(sums, flags) of arrays of codes, added one after another under a rule that draws nothing.

    With all sums on the way, the first row itself among them, if `keep`.
    """
    if len(rows) == 2 and not keep:
        return elementwise.add(rows[0], rows[1], fmt, rule)
    rows = np.asarray(rows)
    shape = rows.shape[1:]
    if elementwise.quick() and len(rows) > 2 and rows[0].size:
        found, flags = _settled("add", rows.reshape(len(rows), -1), fmt, rule, keep)
        return found.reshape(rows.shape if keep else shape), flags.reshape(shape)
    found, flags = rows.copy(), np.zeros(shape, np.uint8)
    for n in range(1, len(rows)):
        found[n], raised = elementwise.add(found[n - 1], rows[n], fmt, rule)
        flags |= raised
    return (found if keep else found[-1]), flags


def _begun(codes: Codes, keep: bool) -> tuple[Codes, Codes, Codes]:
    """Rows as loops read them, places for steps, the first one there, and for flags."""
    values = np.ascontiguousarray(codes)
    steps = np.empty(values.shape if keep else (1, values.shape[1]), values.dtype)
    steps[0] = values[0]
    return values, steps, np.zeros(values.shape[1], np.uint8)


def _settled(operation: str, codes: Codes, fmt: Format, rule: Rule, keep: bool) -> tuple[Codes, Codes]:
    if operation in EXTREMA and _ordered(operation, codes, fmt, rule):
        return _extremes(operation, codes, fmt, keep)
    half = elementwise.fast_family(operation, fmt.spec, fmt.spec, rule) == "half" and operation in fast().HALVES
    narrow = NARROW_HALVES if half else NARROW_PAIRS if fmt.bits <= elementwise.PAIR_BITS else NARROW
    if operation not in EXTREMA and (fmt.wide or codes.shape[1] > narrow):
        return _by_rows(operation, codes, fmt, rule, keep)
    values, steps, flags = _begun(codes, keep)
    if half:
        _share(fast().half_folding(operation), values, steps, flags, *fast_numbers(fmt.spec, rule))
        return steps, flags
    carrier = CARRIER64 if operation in EXTREMA else carrier_for(operation, fmt.spec, fmt.spec)
    if operation in EXTREMA:
        loop = loops().folded(comparisons().extreme(*EXTREMA[operation]))
    else:
        loop = loops().folding(operation, way_of(fmt.spec, rule))
    integers, floats = numbers(fmt.spec, fmt.spec, rule, carrier, wide=operation in EXTREMA)
    _share(loop, values, steps, steps, flags, floats.dtype.type(0), integers, floats)
    return steps, flags


def _share(loop: Callable[..., int], values: Codes, *more: Any) -> None:
    """Folds by a loop, shared among threads."""
    run, length = spared(loop).run, len(values)
    threads.share(values.shape[1], lambda start, stop: run(length * (stop - start), start, stop, values, *more))


def _extremes(operation: str, codes: Codes, fmt: Format, keep: bool) -> tuple[Codes, Codes]:
    """Choices among numbers none of which is a NaN: those of their keys, which raise nothing."""
    chosen = np.maximum if EXTREMA[operation][0] else np.minimum
    found = keys(codes, fmt)
    steps = chosen.accumulate(found, axis=0) if keep else chosen.reduce(found, axis=0, keepdims=True)
    return from_keys(steps, fmt), np.zeros(codes.shape[1], np.uint8)


def _by_rows(operation: str, codes: Codes, fmt: Format, rule: Rule, keep: bool) -> tuple[Codes, Codes]:
    """Each step of all folds as elementwise operations take it: one of many elements, that are gone through row by row."""
    values, size = np.ascontiguousarray(codes), codes.shape[1]
    left = len(values) - 1
    some = left if keep else min(left, max(1, SOME_ROWS // size))
    steps, raised = np.empty((some + 1, size), values.dtype), np.empty((some, size), np.uint8)
    flags = np.zeros(size, np.uint8)
    steps[0] = values[0]
    for first in range(1, len(values), some):
        rows = values[first : first + some]
        count = len(rows)
        before, after = flattened(steps[:count]), steps[1 : count + 1].reshape(-1)
        operands, flat = [before, flattened(rows)], raised[:count].reshape(-1)
        work = elementwise.way(Job(operation, fmt.spec, fmt.spec, rule, operands, after, flat, True, 0.0, None))

        def down(start: int, stop: int, count: int = count, work: Work = work) -> int:
            for row in range(count):
                work(row * size + start, row * size + stop)
            return 0

        threads.share(size, down)
        flags |= np.bitwise_or.reduce(raised[:count], axis=0)
        if not keep:
            steps[0] = steps[count]
    return (steps if keep else steps[:1]), flags
