"""Observers: what is told beside the sum. Roundings tell them what was there, what became of it, and where something was lost."""

from typing import Any, NamedTuple

import numpy as np

from ..steps import COUNT_BITS, COUNTS, GREATEST, IN_COUNTS, INEXACT, LEAST, LOWEST_BIT, OVERFLOWED, ROUNDED, SWAMPED


class Addition(NamedTuple):
    """A sum: as numbers are read, what was there before and after, and lanes where bits were lost, where it overflowed, where it is another
    sum than what was there; the last two None where all that is lost says it. To observers that are not `in_lanes` lost bits may come as
    integers."""

    before: Any
    after: Any
    lost: Any
    over: Any = None
    changed: Any = None


class Nobody:
    """Looks at nothing."""

    slots: tuple[int, ...] = ()
    looks = in_lanes = False

    def rounding(self, state, lost):
        """A rounding that is no addition to the sum, which lost something in some lanes."""

    def addition(self, state, added):
        """An addition."""

    def sum(self, state, after, shown=None):
        """A sum, of lanes where it is `shown`; None: of all."""


class Flags(Nobody):
    """Whether anything was inexact; the other flags come with roundings."""

    looks = True

    def rounding(self, state, lost):
        """One that is no addition."""
        bits = state[INEXACT].bits()
        state[INEXACT] = lost.choose(bits | 1, bits) if lost.element.width == 1 else bits | lost

    def addition(self, state, added):
        """An addition."""
        self.rounding(state, added.lost)


class Counts(Nobody):
    """How many additions lost something, were swamped, overflowed; the least and the greatest sum. `of_nan`: infinities are no sums."""

    slots = COUNTS, LEAST, GREATEST, OVERFLOWED
    looks = in_lanes = True

    def __init__(self, of_nan=False):
        self._of_nan = of_nan

    def rounding(self, state, lost):
        """One that is no addition."""
        count(state, {INEXACT: lost})

    def addition(self, state, added, alive=None):
        """An addition, in lanes that are `alive`, whose sum was finite; None: in all. What is rounded to what was there before has changed if bits
        were lost, unless it says where."""
        changed = added.lost if added.changed is None else added.changed
        happened = {ROUNDED: added.lost, SWAMPED: changed & added.after.equals(added.before)}
        if added.over is not None:
            happened[OVERFLOWED] = added.over
        if alive is not None:
            happened = {slot: lanes & alive for slot, lanes in happened.items()}
        count(state, happened)
        shown = added.after.magnitude() < np.inf if self._of_nan else alive
        if self._of_nan and alive is not None:
            shown = shown & alive
        self.sum(state, added.after, shown)

    def sum(self, state, after, shown=None):
        """A sum, which may be the least or the greatest."""
        less, more = after < state[LEAST], after > state[GREATEST]
        if shown is not None:
            less, more = shown & less, shown & more
        state[LEAST] = less.choose(after, state[LEAST])
        state[GREATEST] = more.choose(after, state[GREATEST])


def count(state, happened):
    """Count where something happened, in slots of their own or, where there is a slot for that, in one word."""
    for slot, lanes in happened.items():
        shared = COUNTS in state and slot in IN_COUNTS
        place = COUNTS if shared else slot
        counted = state[place].bits()
        one = 1 << LOWEST_BIT + COUNT_BITS[counted.element.width] * IN_COUNTS.index(slot) if shared else 1
        state[place] = counted + lanes.choose(counted.all_of(one), 0)
