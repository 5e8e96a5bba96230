"""Sums of dot-product units whose additions are counted: the turns of `units`, each addition looked at."""

import numpy as np

from . import units
from .exact_units import EXTREMES, cuts, exact_unit_step, quick_exact_step
from .steps import (
    COUNT_BITS,
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    OVERFLOW,
    OVERFLOWED,
    SMALLEST,
    UNDERFLOW,
    VALUE,
    sum_and_error,
    to_odd,
    without_subnormals,
)
from .sums.observers import Addition, Counts, count
from .units import LOST, Turn, aligned_phases, aligned_unit_step, narrowed, stored


def _narrow(unit):
    """Whether sums may overflow, or be tiny."""
    return unit.result == "half" or bool(unit.stored)


def slots_of(unit):
    """What these steps note beside the running sum."""
    if unit.kind in ONE_BY_ONE:
        return COUNTS, LEAST, GREATEST, *units.slots_of(unit), *(OVERFLOWED,) * (unit.kind == "fixed")
    narrow = _narrow(unit)
    return COUNTS, LEAST, GREATEST, *(UNDERFLOW, *(OVERFLOW,) * unit.saturate, OVERFLOWED) * narrow


def _begin(state):
    """What the next addition notes stands alone."""
    zero = state[VALUE].all_of(0.0)
    state[INEXACT] = zero
    if OVERFLOW in state:
        state[OVERFLOWS] = state[OVERFLOW]
        state[OVERFLOW] = zero


OVERFLOWS = "overflows"  # beside the slots: those before this addition


def _end(unit, state, alive, before, after, of_nan=False, changed=None):
    """Count the addition that `_begin` began. What overflows is inexact, though steps may not say so."""
    lost, over = state[INEXACT].bits().nonzero(), None
    if OVERFLOW in state:
        over = state[OVERFLOW].bits().nonzero()
        state[OVERFLOW] = state[OVERFLOW].bits() | state.pop(OVERFLOWS).bits()
    elif _narrow(unit):
        over = after.magnitude() >= np.inf
    lost = lost if over is None else lost | over
    Counts(of_nan).addition(state, Addition(before, after, lost, over, changed), alive)


def _storing(of_nan):
    """What makes `stored` of a store that is counted."""

    def store(tile, row, running, memory, state, watchful, unit):
        alive, tiny = memory.magnitude() < np.inf, state[UNDERFLOW]
        _begin(state)
        own = {slot: x for slot, x in state.items() if slot != COUNTS}  # whose place says else what a store left open
        after = stored(tile, row, running, memory, own, True, unit)
        state |= own
        state[UNDERFLOW] = alive.choose(state[UNDERFLOW].bits(), tiny.bits())
        changed = running.apart_from(memory) if unit.daz else None  # a subnormal that is read as zero is not rounded
        _end(unit, state, alive, memory, without_subnormals(tile, after, unit), of_nan, changed)
        return after

    return store


class _Counted(Turn):
    """Turns of `Aligned` whose additions are counted."""

    def __init__(self, unit):
        super().__init__(unit, True)

    def block(self, tile, sums_so_far, first, states):
        """The running sums after one more block."""
        for state in states:
            _begin(state)
        return super().block(tile, sums_so_far, first, states)

    def finished(self, tile, s, lead, own, running, state):
        """A row's sum of terms and the running sum, rounded. A block that is rounded on its own is no addition, but may be inexact."""
        unit = self.unit
        alive = running.magnitude() < np.inf if _narrow(unit) else None
        if unit.apart:
            dot = narrowed(tile, s + 0.0, unit.result, running, state, True)
            count(state, {INEXACT: state[INEXACT].bits().nonzero()})
            state[INEXACT] = running.all_of(0.0)
            s, error = sum_and_error(running, dot)
            after = narrowed(tile, to_odd(s, error), unit.result, running, state, True)
        else:
            after = super().finished(tile, s, lead, own, running, state)
        _end(unit, state, alive, running, after)
        return after


def counted_aligned_step(unit, of_nan):
    """A turn of `Aligned`, of all rows together."""
    return aligned_unit_step(unit, True, _Counted(unit), _storing(of_nan))


def counted_exact_step(unit, of_nan):
    """A turn of `Exact`."""

    def noted(state, memory, before, after):
        alive = (before if unit.result == "half" else memory).magnitude() < np.inf if _narrow(unit) else None
        _end(unit, state, alive, before, after)

    return exact_unit_step(unit, True, _begin, noted, _storing(of_nan))


def extremes(unit):
    """What the same, tried quickly, tells of running sums: of finite ones the largest is known, by the least and the greatest sum."""
    return EXTREMES if unit.stored and not cuts(unit) else (SMALLEST,) * cuts(unit)


def quick_step(unit, of_nan):
    """The same, tried quickly."""

    def added(state, before, exact, after):
        Counts().addition(state, Addition(before, after, exact.differs(after)))

    def kept(tile, row, running, memory, state):
        return _storing(of_nan)(tile, row, running, memory, state, True, unit)

    return quick_exact_step(unit, added, kept, extremes(unit))


def _with_inexact(step):
    """A step of which other roundings than additions may be inexact, which is counted once a turn."""

    def counted(tile, row, state):
        state = step(tile, row, state | {INEXACT: state[VALUE].all_of(0.0)})
        count(state, {INEXACT: state.pop(INEXACT).bits().nonzero()})
        return state

    return counted


def counted_pairs_step(unit, of_nan):
    """A turn of `Pairs`, no sum of which overflows."""

    def noted(state, before, lost, after):
        Counts().addition(state, Addition(before, after, lost))

    return _with_inexact(units.pairs_step(unit, True, noted))


def counted_fixed_step(unit, of_nan):
    """A turn of `Fixed`. An addition that goes beyond the register is inexact as well."""

    def noted(state, before, lost, over, changed, after):
        Counts().addition(state, Addition(before, after, lost | over, over, changed))

    return units.fixed_unit_step(unit, False, noted)


STEPS = {
    "aligned": counted_aligned_step,
    "exact": counted_exact_step,
    "pairs": counted_pairs_step,
    "fixed": counted_fixed_step,
}
ONE_BY_ONE = "pairs", "fixed"
"""Kinds whose turns have no stores."""


def turns_at_once(unit):
    """Turns whose counts have room in one word."""
    bits = COUNT_BITS[32 if unit.kind == "pairs" else 64]
    additions = 2 * (unit.group + 1) if unit.kind in ONE_BY_ONE else 2 * unit.blocks
    return max((1 << bits) // additions, 1)


def phases(unit):
    """Steps of a long block; whether bits were lost is in a slot of its own."""
    (_, begin), led, scaled, *terms, (_, after) = aligned_phases(unit, True, _Counted(unit))

    def before(tile, row, state):
        state[LOST] = state[VALUE].all_of(0.0)
        return begin(tile, row, state)

    def noting(step):
        def noted(tile, row, state):
            state[INEXACT] = state[LOST]
            state = step(tile, row, state)
            state[LOST] = state.pop(INEXACT)
            return state

        return noted

    return (None, before), led, scaled, *((k, noting(step)) for k, step in terms), (None, noting(after))
