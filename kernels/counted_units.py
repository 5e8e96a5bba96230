"""Additions of dot-product units that are counted: what turns of `units` tell, each addition looked at."""

import numpy as np

from .steps import COUNT_BITS, COUNTS, INEXACT, OVERFLOW, UNDERFLOW, VALUE, without_subnormals
from .sums.observers import Addition, Counts, count
from .units import Watch, is_narrow

ONE_BY_ONE = "pairs", "fixed"
"""Kinds whose sums are additions each, and whose turns have no stores."""
OVERFLOWS = "overflows"  # beside the slots: those before this addition


class Counted(Watch):
    """What roundings lose is noted in INEXACT until the addition ends that they are part of. `of_nan`: a store's overflows are NaN."""

    in_lanes = True

    def __init__(self, unit, of_nan):
        super().__init__(True)
        self._narrow, self._of_nan = unit.kind not in ONE_BY_ONE and is_narrow(unit), of_nan

    def begin(self, state):
        """What the next addition notes stands alone."""
        zero = state[VALUE].all_of(0.0)
        state[INEXACT] = zero
        if OVERFLOW in state and self._narrow:
            state[OVERFLOWS] = state[OVERFLOW]
            state[OVERFLOW] = zero

    def part(self, state):
        """What is noted was no addition, but may be inexact."""
        count(state, {INEXACT: state[INEXACT].bits().nonzero()})
        state[INEXACT] = state[VALUE].all_of(0.0)

    def addition(self, state, added):
        """An addition that says itself what it lost."""
        Counts().addition(state, added)

    def added(self, state, before, exact, after):
        """The same of one to finite numbers."""
        self.addition(state, Addition(before, after, exact.differs(after)))

    def block(self, state, memory, before, after):
        """The end of a block."""
        self._end(state, memory.magnitude() < np.inf if self._narrow else None, before, after)

    def _end(self, state, alive, before, after, of_nan=False, changed=None):
        """Count the addition that has begun. What overflows is inexact, though steps may not say so."""
        lost, over = state[INEXACT].bits().nonzero(), None
        if OVERFLOW in state:
            over = state[OVERFLOW].bits().nonzero()
            state[OVERFLOW] = state[OVERFLOW].bits() | state.pop(OVERFLOWS).bits()
        elif self._narrow:
            over = after.magnitude() >= np.inf
        lost = lost if over is None else lost | over
        Counts(of_nan).addition(state, Addition(before, after, lost, over, changed), alive)

    def stored(self, tile, row, running, memory, state, unit):
        """A store that is counted."""
        alive, tiny = memory.magnitude() < np.inf, state[UNDERFLOW]
        self.begin(state)
        own = {slot: x for slot, x in state.items() if slot != COUNTS}  # whose place says else what a store left open
        after = super().stored(tile, row, running, memory, own, unit)
        state |= own
        state[UNDERFLOW] = alive.choose(state[UNDERFLOW].bits(), tiny.bits())
        changed = running.apart_from(memory) if unit.daz else None  # a subnormal that is read as zero is not rounded
        self._end(state, alive, memory, without_subnormals(tile, after, unit), self._of_nan, changed)
        return after


def turns_at_once(unit):
    """Turns whose counts have room in one word."""
    bits = COUNT_BITS[32 if unit.kind == "pairs" else 64]
    additions = 2 * (unit.group + 1) if unit.kind in ONE_BY_ONE else 2 * unit.blocks
    return max((1 << bits) // additions, 1)
