"""The words of an order, each one rounding: `product`, `total` and `fused`, which make the sum, and `plus`, which does not.
What each arithmetic says of them is how it rounds `_product`, what of `_sum` and `_fma` is to be rounded, and how that is `_added` and `_plus`.
Nor do `exactly` and `close`, whose sums are numbers of the format if they are rounded to nearest, those of `close` unless they overflow.

`Careful` has every bit that decides, but for random bits after the first 16, where it leaves outputs open. `Whole`, of one output, has all random
bits, by the plain functions.
"""

import numpy as np

from ..accumulate import PRODUCT, RUNNING
from ..steps import (
    HARMLESS,
    INEXACT,
    ONE,
    OVERFLOW,
    UNDERFLOW,
    bounded,
    drawn,
    exact_fma,
    exact_product,
    exact_sum,
    fused_and_error,
    in_direction,
    product_to_draw,
    round_half_bits,
    rounded,
    sum_and_error,
    to_odd,
    without_subnormals,
)
from .observers import Addition

ONES = {32: (7, ONE), 64: (36, 1023 << 52)}
"""How far 16 random bits are shifted to lie below the point of 1, and its code."""


class Arithmetic:
    """What all have in common: operands, and the numbers of roundings. `turn` is what code sees of the loop, `state` what goes on."""

    def __init__(self, turn, stage, observer, state):
        self.turn, self.stage, self.observer, self.state = turn, stage, observer, state
        self._taken = dict.fromkeys((RUNNING, PRODUCT), 0)

    def operands(self, place):
        """The factors of a product."""
        return self.turn.a(place), self.turn.b(place)

    def operand(self, place):
        """A number of the format."""
        return self.turn.a(place)

    def below(self):
        """What a subtree before this one added up to."""
        return self.turn.below()

    def random(self, site):
        """The first 16 bits of a site's next random number, as integers."""
        self._taken[site] += 1
        return self.turn.noise(site, self._taken[site] - 1).bits()

    def one_and_random(self, site):
        """1 + the same."""
        bits = self.random(site)
        shift, one = ONES[bits.element.width]
        return (bits << shift | one).floats()

    def read(self, x):
        """A number as a sum reads it."""
        return x if self.stage.native else without_subnormals(self.turn, x, self.stage)

    def product(self, a, b):
        """a * b, rounded."""
        return self._told(*self._product(a, b))

    def total(self, x, y):
        """x + y, rounded, which is the sum."""
        x = self.read(x)
        return self._added(x, *self._sum(x, self.read(y)))

    def fused(self, a, b, c):
        """a * b + c, rounded once, which is the sum."""
        c = self.read(c)
        return self._added(c, *self._fma(a, b, c))

    def plus(self, x, y):
        """x + y, rounded."""
        return self._told(*self._plus(*self._sum(self.read(x), self.read(y))))

    def _told(self, found, lost):
        """What was rounded, if not None where something was lost."""
        if lost is not None:
            self.observer.rounding(self.state, lost)
        return found

    def exactly(self, x, y):
        """x + y, which is a number of the format if it is rounded to nearest, and nothing is flushed."""
        return x + y if self.stage.keeps_errors else self.plus(x, y)

    def close(self, x, y):
        """The same, unless it overflows; of formats that are no part of float32 only `lifted` ones do so by themselves."""
        return self.exactly(x, y) if self.stage.native or self.turn.lift > 1 else self.plus(x, y)


class Careful(Arithmetic):
    """Deterministic, to formats that float32 has bits to spare for. Halves may be lifted, to nearest where nothing is flushed."""

    def _product(self, a, b):
        stage = self.stage
        exact = exact_product(self.turn, a, b, stage)
        found = rounded(self.turn, exact, self.state, stage, False)
        return found if self.turn.lift == 1.0 else found * self.turn.lift, self._lost(exact, None, found)

    def _sum(self, x, y):
        """(a sum that rounds as the exact one does, what it lost, None if that is in its last bit, or nobody looks; whether it may be tiny and
        inexact, as only flushing makes it)."""
        turn, stage, ftz = self.turn, self.stage, self.stage.ftz
        if stage.nearest and not (turn.directed and self.observer.looks and turn.lift == 1.0):
            return *sum_and_error(
                x, y
            ), ftz  # float32 has more than twice the precision: rounded to it first, a sum rounds alike
        if turn.directed and not self.observer.looks:
            return in_direction(lambda direction: y.plus_toward(direction, x), HARMLESS[stage.rounding]), None, ftz
        return exact_sum(turn, y, x, stage), None, ftz

    def _fma(self, a, b, c):
        return exact_fma(self.turn, a, b, c, self.stage), None, True

    def _plus(self, s, error, may_underflow):
        _, found = self._rounded(s, may_underflow)
        return found, self._lost(s, error, found)

    def _rounded(self, s, may_underflow):
        """(rounded as if exponents had no end, rounded)."""
        turn, stage = self.turn, self.stage
        if turn.lift > 1:
            return (round_half_bits(s),) * 2
        unbounded = rounded(turn, s, self.state, stage, False, may_underflow=may_underflow, bound=False)
        return unbounded, bounded(turn, unbounded, self.state, stage)

    def _lost(self, s, error, found):
        """Where something was lost, or where nobody asks for lanes the bits in which the rounded sum differs: no sum comes to be NaN exactly."""
        if error is None and not self.observer.in_lanes:
            return found.bits() ^ s.bits()
        return found.apart_from(s) if error is None else found.apart_from(s) | error.nonzero()

    def _added(self, x, s, error, may_underflow):
        """s, rounded, which is what was added to x. What overflows is lost, also where it becomes a NaN, which is apart from nothing."""
        unbounded, found = self._rounded(s, may_underflow)
        lost, most = self._lost(s, error, found), np.inf
        if not self.observer.in_lanes:
            self.observer.addition(self.state, Addition(x, found, lost))
            return found
        if found is unbounded and not self.stage.daz:  # overflows are infinities
            self.observer.addition(self.state, Addition(x, found, lost, lost & (found.magnitude() >= most)))
            return found
        over = (unbounded.magnitude() > self.turn.parameter("largest")) & (s.magnitude() < most)
        changed = s.differs(x) if error is None else s.differs(x) | error.nonzero()
        lost = over | lost & (s.magnitude() < most)
        self.observer.addition(self.state, Addition(x, self.read(found), lost, over, changed))
        return found


class CarefulDraws(Arithmetic):
    """Rounded stochastically, as far as 16 random bits go."""

    def _drawn(self, s, error, site):
        """(rounded, bits where something was lost, where it became the largest number)."""
        nothing, stage = s.all_of(0.0), self.stage
        if stage.either and error is not None:
            s, error = to_odd(s, error), None
        own = self.state | {INEXACT: nothing, OVERFLOW: nothing}
        found = drawn(self.turn, s, error, self.one_and_random(site), own, stage)
        lost, over = own.pop(INEXACT).bits(), own.pop(OVERFLOW).bits()
        self.state |= own
        if OVERFLOW in self.state:
            self.state[OVERFLOW] = self.state[OVERFLOW].bits() | over
        return found, lost.nonzero(), over.nonzero()

    def _product(self, a, b):
        return self._drawn(*product_to_draw(a, b, self.stage), PRODUCT)[:2]

    _sum = staticmethod(sum_and_error)

    def _fma(self, a, b, c):
        return fused_and_error(a, b, c, self.stage.wide)

    def _plus(self, s, error):
        return self._drawn(s, error, RUNNING)[:2]

    def _added(self, x, s, error):
        """s + error, rounded, which is what was added to x."""
        found, lost, over = self._drawn(s, error, RUNNING)
        after = self.read(found)
        if not self.stage.noted:
            over = after.magnitude() > self.turn.parameter("largest")
        alive = s.magnitude() < np.inf
        over = (over | after.differs(after)) & alive  # NaN where the format has no infinities
        changed = alive & (s.differs(x) | error.nonzero())
        self.observer.addition(self.state, Addition(x, after, alive & (over | lost), over, changed))
        return found


class Whole(Arithmetic):
    """One output, by the plain functions and all random bits."""

    def _rounded(self, site, x, y, z):
        """(x * y + z rounded, lanes where something was lost, where it overflowed)."""
        found, flags = self.turn.again(site, x, y, z, self._taken[site])
        self._taken[site] += 1
        raised = [(flags & bit).nonzero() for bit in (1, 2, 4)]
        for slot, lanes in zip((UNDERFLOW, OVERFLOW), raised[1:], strict=True):
            if slot in self.state:
                bits = self.state[slot].bits()
                self.state[slot] = lanes.choose(bits | 1, bits)
        return found, raised[0], raised[2]

    def _product(self, a, b):
        return self._plus(a, b, a.all_of(-0.0), PRODUCT) if self.stage.rounds_products else (a * b, None)

    def _sum(self, x, y):
        return y, y.all_of(1.0), x

    def _fma(self, a, b, c):
        return a, b, c

    def _plus(self, a, b, x, site=RUNNING):
        return self._rounded(site, a, b, x)[:2]

    def _added(self, x, a, b, _):
        """a * b + x, rounded, of which x was there."""
        found, lost, over = self._rounded(RUNNING, a, b, x)
        changed = a.nonzero() & b.nonzero() & (x.magnitude() < np.inf)
        self.observer.addition(self.state, Addition(x, self.read(found), lost, over, changed))
        return found
