"""Sums whose errors are made up for: the turns of `units` that Kahan's, Neumaier's and two-term sums take."""

from typing import NamedTuple

from .counting_steps import counted_addition, counted_sum
from .one_by_one import note_inexact, rounded_sum, single_product, single_sum
from .quick_steps import lift_of, round_half_bits
from .steps import INEXACT, LEFT_OPEN, ROUNDERS, VALUE, bounded, exact_product, rounded, sum_and_error

ERRORS = LEFT_OPEN
"""The slot in which a compensated sum keeps what it has lost."""


class Compensated(NamedTuple):
    """A product to a sum whose errors are made up for; `last`: what remains to be added in the end. `counted`: its additions are."""

    kind: str
    method: str
    manner: object
    exact: bool
    last: bool
    counted: bool = False

    @property
    def single(self):
        """Whether sums are float32."""
        return self.manner.family.startswith("float32")

    @property
    def short(self):
        """Whether what is exact is not rounded: to nearest, where nothing is flushed."""
        manner = self.manner
        return manner.nearest and not (manner.daz or manner.ftz or manner.wide)

    @property
    def group(self):
        """Products of a turn."""
        return 1

    @property
    def lift(self):
        """What sums are multiplied by on their way: of halves, so that an overflow is float32's, and whole words round them."""
        return lift_of(self.manner.family) if self.short else 1.0


class _Sums:
    """The additions and the product of a compensated sum.

    What an addition loses is to nearest a number of the format, and so is what is left of a difference whose terms are close
    (Knuth's and Dekker's sums): short steps do not round it. Near the largest number one of them may overflow, unless sums are
    lifted.
    """

    def __init__(self, unit, tile, state, watchful):
        self.unit, self.tile, self.state, self.watchful = unit, tile, state, watchful
        self.lifted = unit.lift != 1.0

    def _note(self, bits):
        if self.watchful:
            self.state[INEXACT] = self.state[INEXACT].bits() | bits

    def plus(self, x, y):
        """x + y, rounded."""
        unit = self.unit
        if not unit.short and not unit.single:
            return rounded_sum(self.tile, x, y, self.state, unit.manner, self.watchful)
        if not unit.short:
            s, lost = single_sum(self.tile, x, y, unit.manner)
            self._note_lanes(lost)
            return s
        if not self.watchful:
            s = x + y
        else:
            s, error = sum_and_error(x, y)
            self._note(error.bits())
        after = self._shortly(s)
        if not unit.single:
            self._note(after.bits() ^ s.bits())
        return after

    def _shortly(self, s):
        """A sum of two numbers to nearest, none of which is tiny and inexact."""
        manner = self.unit.manner
        if self.unit.single:
            return s
        if self.lifted:
            return round_half_bits(s)
        return bounded(self.tile, ROUNDERS[manner.family](self.tile, s), self.state, manner)

    def _note_lanes(self, lost):
        if self.watchful:
            note_inexact(self.state, lost)

    def total(self, x, y):
        """The addition that makes the running sum, x + y."""
        unit = self.unit
        if not unit.counted:
            return self.plus(x, y)
        if not unit.short and not unit.single:
            return counted_sum(self.tile, x, y, self.state, unit.manner)
        if unit.short:
            s, error = sum_and_error(x, y)
            after = self._shortly(s)
            lost = error.nonzero() | after.apart_from(s)
        else:
            after, lost = single_sum(self.tile, x, y, unit.manner)
        counted_addition(self.state, None, x, lost, after)
        return after

    def close(self, x, y):
        """x + y, of which short steps know that it is exact, unless it overflows."""
        return x + y if self.unit.short and (self.unit.single or self.lifted) else self.plus(x, y)

    def exactly(self, x, y):
        """x + y, of which short steps know that it is exact."""
        return x + y if self.unit.short else self.plus(x, y)

    def product(self, a, b):
        """a * b, rounded."""
        unit = self.unit
        if unit.single and not unit.short:
            term, lost = single_product(self.tile, a, b, unit.manner)
            self._note_lanes(lost)
            return term
        if not unit.single:
            exact = exact_product(self.tile, a, b, unit.manner)
            term = rounded(self.tile, exact, self.state, unit.manner, self.watchful)
            return term * unit.lift if self.lifted else term
        term = a * b
        if self.watchful and not unit.exact:
            note_inexact(self.state, ((a.double() * b.double()).bits() ^ term.double().bits()).nonzero())
        return term


def operations(method, s, errors, term, sums):
    """(the sum, what it has lost) after a term: what the method names, in its order. `sums` adds, and knows what additions are for."""
    if method == "kahan":
        part = sums.plus(term, -errors)
        total = sums.total(s, part)
        return total, sums.plus(sums.plus(total, -s), -part)
    if method == "neumaier":
        total = sums.total(s, term)
        first = s.magnitude() >= term.magnitude()
        larger, smaller = first.choose(s, term), first.choose(term, s)
        part = sums.exactly(sums.exactly(larger, -total), smaller)
        return total, sums.plus(errors, part)
    first = sums.plus(s, term)
    part = sums.plus(first, -s)
    other = sums.close(first, -part)
    rest = sums.exactly(term, -part)
    lost = sums.exactly(sums.exactly(s, -other), rest)
    part = sums.plus(lost, errors)
    total = sums.total(first, part)
    return total, sums.plus(part, -sums.plus(total, -first))


def compensated_step(unit, watchful):
    """A turn of `Compensated`."""

    def step(tile, row, state):
        s, errors, sums = state[VALUE], state[ERRORS], _Sums(unit, tile, state, watchful)
        if unit.last:
            state[VALUE] = sums.plus(s, errors)
            return state
        term = sums.product(tile.a(row), tile.b())
        state[VALUE], state[ERRORS] = operations(unit.method, s, errors, term, sums)
        return state

    return step
