"""One operation along an axis, one element after another: in one loop where few folds stand side by side."""

from __future__ import annotations

import numpy as np

from softfloat.engine import elementwise, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.draws import TILE, draw
from softfloat.engine.elementwise import WIDE_OPERATIONS
from softfloat.engine.parameters import FLOAT32, fits_narrow_carrier, is_unusual, loops, numbers, rule_for
from softfloat.environments import Rounding, Settings
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER32, CARRIER64, Rule

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
    operation: str, codes: Codes, fmt: Format, settings: Settings, streams: list[int], keep: bool
) -> tuple[Codes, int]:
    """(steps, flags OR-ed together) of folds down the columns of codes, as calls of the operation on rows would make them.

    Steps have a row for each of those of `codes`, or only the last if not `keep`. The call for row k draws in
    streams[k - 1], and lanes take the addresses of their columns.
    """
    values = np.ascontiguousarray(codes)
    steps = np.empty(values.shape if keep else (1, values.shape[1]), values.dtype)
    steps[0] = values[0]
    if operation in EXTREMA:
        rule = Rule(nan=settings.nan, daz=settings.daz)
        loop = loops().folding_extremum(*EXTREMA[operation])
        known = (0.0, *numbers(fmt.spec, fmt.spec, rule, CARRIER64))
        return steps, threads.share(
            values.shape[1], lambda start, stop: loop(start, stop, values, steps, steps, *known)
        )
    unusual = is_unusual(fmt.spec)
    if settings.rounding is Rounding.STOCHASTIC:
        drawn = draw(settings, None, 0, ())
        rule = rule_for(settings, fmt, False, drawn.width)
        propagates = bool(spec.NAN_POLICIES[rule.nan].propagate)
        drawn_loop = loops().folding_drawn(operation, unusual, propagates)
        given = np.array(streams, np.uint64)
        settled = 0.0, *numbers(fmt.spec, fmt.spec, rule, CARRIER64), drawn.key, drawn.width
        assert threads.ALIGNMENT % TILE == 0
        return steps, threads.share(
            values.shape[1], lambda start, stop: drawn_loop(start, stop, values, steps, given, *settled)
        )
    rule = rule_for(settings, fmt, False)
    narrow = fits_narrow_carrier(fmt.spec) and operation not in WIDE_OPERATIONS
    carrier = CARRIER32 if narrow else CARRIER64
    way = "nearest" if rule.rounding is Rounding.NEAREST_EVEN and not unusual else "selected"
    propagates = bool(spec.NAN_POLICIES[rule.nan].propagate)
    loop = loops().folding(operation, way, unusual, propagates)
    integers, floats = numbers(fmt.spec, fmt.spec, rule, carrier)
    read, before = values, steps
    if carrier is CARRIER32 and fmt.spec == FLOAT32:
        read, before = values.view(np.int32), steps.view(np.int32)
    known = (floats.dtype.type(0), integers, floats)
    return steps, threads.share(values.shape[1], lambda start, stop: loop(start, stop, read, before, steps, *known))
