"""One operation along an axis, one element after another: in one loop where few folds stand side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softfloat.engine import elementwise, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.draws import draw
from softfloat.engine.elementwise import carrier_for
from softfloat.engine.parameters import fast, fast_numbers, is_unusual, loops, numbers, rule_for, way_of
from softfloat.environments import Rounding, Settings
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, Rule

EXTREMA = {
    "minimum": (False, False),
    "maximum": (True, False),
    "minimum_number": (False, True),
    "maximum_number": (True, True),
}
"""Operation -> (whether the greater one is chosen, whether a number goes before a NaN)."""

FEW = 1 << 8
"""Folds side by side from which on each step is quicker as an operation on arrays."""


def serves(operation: str, codes: Codes, settings: Settings) -> bool:
    """Whether `fold` is for this: codes as `fold` takes them."""
    if not elementwise.quick() or codes.shape[0] < 3 or not 0 < codes.shape[1] < FEW:
        return False
    if operation in EXTREMA:
        return True
    if loops().OPERATIONS.get(operation, (None, 0))[1] != 2 or operation == "given":
        return False
    return settings.rounding is not Rounding.STOCHASTIC or settings.generator == "philox4x32"


def fold(
    operation: str, codes: Codes, fmt: Format, settings: Settings, streams: Sequence[int], keep: bool
) -> tuple[Codes, Codes]:
    """(steps, flags of each column) of folds down the columns of codes, as calls of the operation on rows would make them.

    Steps have a row for each of those of `codes`, or only the last if not `keep`. The call for row k draws in
    streams[k - 1], and columns have the addresses of their numbers.
    """
    if settings.rounding is not Rounding.STOCHASTIC or operation in EXTREMA:
        chooses = operation in EXTREMA  # and rounds nothing
        rule = Rule(nan=settings.nan, daz=settings.daz, ftz=settings.ftz) if chooses else rule_for(settings, fmt, False)
        return _settled(operation, codes, fmt, rule, keep)
    values, steps, flags = _begun(codes, keep)
    drawn = draw(settings, None, 0, ())
    rule = rule_for(settings, fmt, False, drawn.width)
    loop = loops().folding_drawn(operation, is_unusual(fmt.spec), _propagates(rule), not rule.restated)
    taken = np.arange(streams.start, streams.stop, dtype=np.uint64) if isinstance(streams, range) else streams
    known = np.array(taken, np.uint64), 0.0, *numbers(fmt.spec, fmt.spec, rule, CARRIER64), drawn.key, drawn.width
    threads.share(values.shape[1], lambda start, stop: loop(start, stop, values, steps, flags, *known))
    return steps, flags


def summed(rows: Codes, fmt: Format, rule: Rule) -> tuple[Codes, Codes]:
    """(sums, flags) of arrays of codes, added one after another under a rule that draws nothing."""
    total, flags = rows[0], np.zeros(rows.shape[1:], np.uint8)
    if elementwise.quick() and len(rows) > 2 and 0 < total.size < FEW:
        steps, flags = _settled("add", rows.reshape(len(rows), -1), fmt, rule, False)
        return steps.reshape(total.shape), flags.reshape(total.shape)
    for row in rows[1:]:
        total, raised = elementwise.add(total, row, fmt, rule)
        flags |= raised
    return total, flags


def steps(rows: Codes, fmt: Format, rule: Rule) -> Codes:
    """All sums on the way, the first row itself among them, of what `summed` adds."""
    if elementwise.quick() and len(rows) > 2 and 0 < rows[0].size < FEW:
        return _settled("add", rows.reshape(len(rows), -1), fmt, rule, True)[0].reshape(rows.shape)
    found = rows.copy()
    for n in range(1, len(rows)):
        found[n], _ = elementwise.add(found[n - 1], rows[n], fmt, rule)
    return found


def _begun(codes: Codes, keep: bool) -> tuple[Codes, Codes, Codes]:
    """Rows as loops read them, places for steps, the first one there, and for flags."""
    values = np.ascontiguousarray(codes)
    steps = np.empty(values.shape if keep else (1, values.shape[1]), values.dtype)
    steps[0] = values[0]
    return values, steps, np.zeros(values.shape[1], np.uint8)


def _propagates(rule: Rule) -> bool:
    return bool(spec.NAN_POLICIES[rule.nan].propagate)


def _settled(operation: str, codes: Codes, fmt: Format, rule: Rule, keep: bool) -> tuple[Codes, Codes]:
    values, steps, flags = _begun(codes, keep)
    if elementwise.fast_family(operation, fmt.spec, fmt.spec, rule) == "half" and operation in fast().FOLDS:
        quick, limits = fast().half_folding(operation), fast_numbers(fmt.spec, rule)
        threads.share(values.shape[1], lambda start, stop: quick(start, stop, values, steps, flags, *limits))
        return steps, flags
    unusual = is_unusual(fmt.spec)
    carrier = CARRIER64 if operation in EXTREMA else carrier_for(operation, fmt.spec, fmt.spec)
    if operation in EXTREMA:
        loop = loops().folding_extremum(*EXTREMA[operation])
    else:
        loop = loops().folding(operation, way_of(rule, unusual), unusual, _propagates(rule))
    integers, floats = numbers(fmt.spec, fmt.spec, rule, carrier)
    known = floats.dtype.type(0), integers, floats
    threads.share(values.shape[1], lambda start, stop: loop(start, stop, values, steps, steps, flags, *known))
    return steps, flags
