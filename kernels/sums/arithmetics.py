"""Arithmetics: the words of an order, `product` and `total`, each one rounding.

`Careful` has every bit that decides, but for random bits after the first 16, where it leaves outputs open. `Quick` rounds by the CPU, and notes
whether that may be wrong. `Whole`, of one output, has all random bits, by the plain functions.
"""

import numpy as np

from ..accumulate import PRODUCT, RUNNING
from ..one_by_one import HARMLESS, in_direction, product_to_draw, settling, single_product, single_sum
from ..quick_steps import (
    AROUND,
    draw_went_wrong,
    drawn_from,
    drawn_product,
    drawn_watches,
    quick_settling,
    quickly_drawn,
    watch_subnormal,
)
from ..steps import (
    INEXACT,
    ONE,
    OVERFLOW,
    UNDERFLOW,
    VALUE,
    bounded,
    drawn,
    exact_product,
    exact_sum,
    rounded,
    sum_and_error,
    without_subnormals,
)
from .observers import Addition


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
        return (self.random(site) << 7 | ONE).floats()

    def read(self, x):
        """A number as a sum reads it."""
        return x if self.stage.single else without_subnormals(self.turn, x, self.stage)


class Careful(Arithmetic):
    """Deterministic, to formats that float32 has bits to spare for."""

    def product(self, a, b):
        """a * b, rounded."""
        manner = self.stage.manner
        exact = exact_product(self.turn, a, b, manner)
        found = rounded(self.turn, exact, self.state, manner, False)
        self.observer.product(self.state, found.apart_from(exact))
        return found

    def total(self, x, y):
        """x + y, rounded. Only flushing makes a sum tiny and inexact."""
        turn, manner = self.turn, self.stage.manner
        x, y = self.read(x), self.read(y)
        error = None
        if turn.directed and self.observer.looks:
            s = exact_sum(turn, y, x, manner)
        elif manner.nearest:  # float32 has more than twice the precision: rounded to it first, a sum rounds alike
            s, error = sum_and_error(x, y)
        elif turn.directed:
            s = in_direction(lambda direction: y.plus_toward(direction, x), HARMLESS[manner.rounding])
        else:
            s = exact_sum(turn, y, x, manner)
        unbounded = rounded(turn, s, self.state, manner, False, may_underflow=manner.ftz, bound=False)
        found = bounded(turn, unbounded, self.state, manner)
        self.observer.addition(self.state, self._added(x, s, error, unbounded, found))
        return found

    def _added(self, x, s, error, unbounded, found):
        lost = found.apart_from(s) if error is None else found.apart_from(s) | error.nonzero()
        if found is unbounded and not self.stage.daz:  # overflows are infinities
            return Addition(x, found, lost, lost & (found.magnitude() >= np.inf))
        over = (unbounded.magnitude() > self.turn.parameter("largest")) & (s.magnitude() < np.inf)
        changed = s.differs(x) if error is None else s.differs(x) | error.nonzero()
        return Addition(x, self.read(found), over | lost & (s.magnitude() < np.inf), over, changed)


class CarefulSingle(Arithmetic):
    """Deterministic, to float32."""

    def product(self, a, b):
        """a * b, rounded, if it is not exact."""
        if self.stage.family == "float32_of_narrow":
            return a * b
        found, lost = single_product(self.turn, a, b, self.stage.manner)
        self.observer.product(self.state, lost)
        return found

    def total(self, x, y):
        """x + y, rounded."""
        s, lost = single_sum(self.turn, x, y, self.stage.manner)
        if not self.turn.directed:  # where the CPU does not say so itself that a sum with an infinity is exact
            lost = lost & (x.magnitude() < np.inf)
        self.observer.addition(self.state, Addition(x, s, lost, lost & (s.magnitude() >= np.inf)))
        return s


class CarefulDraws(Arithmetic):
    """Rounded stochastically, as far as 16 random bits go."""

    def _drawn(self, s, error, site):
        """(rounded, bits where something was lost, where it became the largest number)."""
        nothing = s.all_of(0.0)
        own = self.state | {INEXACT: nothing, OVERFLOW: nothing}
        found = drawn(self.turn, s, error, self.one_and_random(site), own, self.stage.options, True)
        lost, over = own.pop(INEXACT).bits(), own.pop(OVERFLOW).bits()
        self.state |= own
        if OVERFLOW in self.state:
            self.state[OVERFLOW] = self.state[OVERFLOW].bits() | over
        return found, lost.nonzero(), over.nonzero()

    def product(self, a, b):
        """a * b, rounded."""
        found, lost, _ = self._drawn(*product_to_draw(a, b, self.stage.options), PRODUCT)
        self.observer.product(self.state, lost)
        return found

    def total(self, x, y):
        """x + y, rounded."""
        x, y = self.read(x), self.read(y)
        s, error = sum_and_error(x, y)
        found, lost, over = self._drawn(s, error, RUNNING)
        after = self.read(found)
        if not self.stage.noted:
            over = after.magnitude() > self.turn.parameter("largest")
        alive = s.magnitude() < np.inf
        over = (over | after.differs(after)) & alive  # NaN where the format has no infinities
        changed = alive & (s.differs(x) | error.nonzero())
        self.observer.addition(self.state, Addition(x, after, alive & (over | lost), over, changed))
        return found


class CarefulSingleDraws(Arithmetic):
    """The same to float32."""

    settling = staticmethod(settling)

    def _settled(self, nearest, error, noise):
        return self.settling(self.turn, self.state, True)(nearest, error, noise)

    def product(self, a, b):
        """a * b, rounded, if it is not exact."""
        found, error = product_to_draw(a, b, self.stage.options)
        noise = self.one_and_random(PRODUCT)
        if error is None:
            return found
        self.observer.product(self.state, error.nonzero())
        return self._settled(found, error, noise)

    def total(self, x, y):
        """x + y, rounded."""
        s, error = sum_and_error(x, y)
        found = self._settled(s, error, self.one_and_random(RUNNING))
        self.observer.addition(self.state, Addition(x, found, error.nonzero()))
        return found


class QuickDraws(Arithmetic):
    """Rounded stochastically by adding random bits and cutting; what may be wrong is noted in slots of the state."""

    def _sure(self):
        """Where exact values of sums lie."""
        return AROUND if self.observer.looks else drawn_from(self.turn)

    def _drawn(self, s, site, where):
        return quickly_drawn(self.turn, s, self.random(site), self.state, self.stage.family, False, where)

    def product(self, a, b):
        """a * b, rounded."""
        if self.stage.wide and self.observer.looks:  # to odd, which says what is inexact
            exact, where = exact_product(self.turn, a, b, self.stage), AROUND
        else:
            exact, where = drawn_product(self.turn, a, b, self.stage.wide)
        found = self._drawn(exact, PRODUCT, where)
        self.observer.product(self.state, found.apart_from(exact))
        return found

    def below(self):
        """What a subtree before this one added up to. It was watched if it came quickly, and so was this one: but they may have come otherwise."""
        found = super().below()
        for x in (found, self.state[VALUE]):
            watch_subnormal(self.turn, x, self.state, self.stage.manner)
        return found

    def total(self, x, y):
        """x + y, rounded."""
        if self.observer.looks:
            s = exact_sum(self.turn, y, x, self.stage.manner)
        else:
            s = x.plus_toward("zero", y) if self.turn.directed else x + y
        found = self._drawn(s, RUNNING, self._sure())
        self.observer.addition(self.state, Addition(x, found, found.apart_from(s)))
        return found


class QuickSingleDraws(CarefulSingleDraws):
    """The same to float32. Nothing that is no zero reads as one."""

    settling = staticmethod(quick_settling)


class Whole(Arithmetic):
    """One output, by the plain functions and all random bits."""

    def _rounded(self, x, y, site):
        """(rounded, lanes where something was lost, where it overflowed)."""
        found, flags = self.turn.again(site, x, y, self._taken[site])
        self._taken[site] += 1
        raised = [(flags & bit).nonzero() for bit in (1, 2, 4)]
        for slot, lanes in zip((UNDERFLOW, OVERFLOW), raised[1:], strict=True):
            if slot in self.state:
                bits = self.state[slot].bits()
                self.state[slot] = lanes.choose(bits | 1, bits)
        return found, raised[0], raised[2]

    def product(self, a, b):
        """a * b, rounded."""
        if self.stage.single and not self.stage.wide:  # exact
            return a * b
        found, lost, _ = self._rounded(a, b, PRODUCT)
        self.observer.product(self.state, lost)
        return found

    def total(self, x, y):
        """x + y, rounded."""
        x, y = self.read(x), self.read(y)
        found, lost, over = self._rounded(x, y, RUNNING)
        changed = y.nonzero() & (x.magnitude() < np.inf)
        self.observer.addition(self.state, Addition(x, self.read(found), lost, over, changed))
        return found


def careful(stage):
    """The arithmetic of a stage that has every bit that decides."""
    if stage.draws:
        return CarefulSingleDraws if stage.single else CarefulDraws
    return CarefulSingle if stage.single else Careful


def quick(stage):
    """The quick one, if there is one."""
    if not stage.draws:
        return None
    return QuickSingleDraws if stage.single else QuickDraws


def watches(stage):
    """The slots that a quick one watches with, and the bits they begin with."""
    return drawn_watches(stage.family, False)


def went_wrong(stage, counts):
    """wrong(turn, state): whether what a quick one has noted says so, as a bit."""
    return draw_went_wrong(stage.family, False, (lambda _: AROUND) if counts else drawn_from)
