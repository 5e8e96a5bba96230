"""Observers: what is told beside the sum. Roundings tell them what was there, what became of it, and where something was lost."""

from typing import Any, NamedTuple

from ..counting_steps import count, note_extremes
from ..one_by_one import note_inexact
from ..steps import COUNTS, GREATEST, INEXACT, LEAST, OVERFLOWED, ROUNDED, SWAMPED


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


class Flags(Nobody):
    """Whether anything was inexact; the other flags come with roundings."""

    looks = True

    def rounding(self, state, lost):
        """One that is no addition."""
        note_inexact(state, lost)

    def addition(self, state, added):
        """An addition."""
        note_inexact(state, added.lost)


class Counts(Nobody):
    """How many additions lost something, were swamped, overflowed; the least and the greatest sum. `of_nan`: infinities are no sums."""

    slots = COUNTS, LEAST, GREATEST, OVERFLOWED
    looks = in_lanes = True

    def __init__(self, of_nan):
        self._of_nan = of_nan

    def rounding(self, state, lost):
        """One that is no addition."""
        count(state, {INEXACT: lost})

    def addition(self, state, added):
        """An addition."""
        changed = added.lost if added.changed is None else added.changed
        happened = {ROUNDED: added.lost, SWAMPED: changed & added.after.equals(added.before)}
        if added.over is not None:
            happened[OVERFLOWED] = added.over
        count(state, happened)
        note_extremes(state, added.after, self._of_nan)
