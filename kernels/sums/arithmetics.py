"""Arithmetics: the words of an order, each one rounding: `product`, `total` and `fused`, which make the sum, and `plus`, which does not.
What each arithmetic says of them is how it rounds `_product`, what of `_sum` and `_fma` is to be rounded, and how that is `_added` and `_plus`.
Nor do `exactly` and `close`, whose sums are numbers of the format if they are rounded to nearest, those of `close` unless they overflow.

`Careful` has every bit that decides, but for random bits after the first 16, where it leaves outputs open. `Quick` rounds by the CPU, and notes
whether that may be wrong. `Whole`, of one output, has all random bits, by the plain functions.
"""

import numpy as np

from ..accumulate import PRODUCT, RUNNING
from ..counting_steps import counting_watches
from ..fast import has_feature
from ..one_by_one import (
    HARMLESS,
    either,
    in_direction,
    product_to_draw,
    rounded_single,
    settling,
    single_fused,
    single_product,
    single_sum,
)
from ..quick_steps import (
    AROUND,
    EXACT,
    HALF_TIE,
    HALF_WATCHES,
    LAST_BIT,
    SPLIT,
    directed,
    draw_went_wrong,
    drawn_from,
    drawn_product,
    drawn_watches,
    from_below,
    is_settled,
    lift_of,
    quick_settling,
    quickly,
    quickly_drawn,
    read_as_zero,
    round_half_bits,
    watch_half,
)
from ..quick_steps import splits as splits_sums
from ..quick_steps import watches as deterministic_watches
from ..quick_steps import went_wrong as deterministic_went_wrong
from ..steps import (
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
    product_and_error,
    rest_of_fused,
    rounded,
    split,
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


class CarefulSingle(Arithmetic):
    """Deterministic, to float32 or float64."""

    def _product(self, a, b):
        if self.stage.family == "float32_of_narrow":
            return a * b, None
        return single_product(self.turn, a, b, self.stage)

    def _sum(self, x, y):
        return single_sum(self.turn, x, y, self.stage)

    def _fma(self, a, b, c):
        return single_fused(self.turn, a, b, c, self.stage)

    def _plus(self, s, lost):
        return s, lost

    def product_in_parts(self, a, b):
        """(a * b rounded to nearest, what it lost)."""
        return product_and_error(a, b)

    def in_parts(self, x, y):
        """(x + y rounded to nearest, what it lost)."""
        return sum_and_error(x, y)

    def joined(self, high, middle, low, beyond):
        """The sum of three parts, rounded once; infinite where bits beyond them were lost."""
        s, error = sum_and_error(high, middle)
        error, rest = sum_and_error(error, low)
        s, error = sum_and_error(s, error)
        error, rest = sum_and_error(error, rest)
        s, error = sum_and_error(s, error)
        s, error = sum_and_error(s, to_odd(*sum_and_error(error, rest)))
        stage = self.stage
        found, lost = rounded_single(self.turn, s, error, s, stage)
        zero = found.all_of(-0.0 if stage.rounding == "toward_negative" else 0.0)
        self.observer.addition(self.state, Addition(high, found, lost))
        return beyond.bits().is_zero().choose(found.is_zero().choose(zero, found), np.inf)

    def _added(self, x, s, lost):
        """s, which is what was added to x, and where that lost something."""
        if not self.turn.directed:  # where the CPU does not say so itself that a sum with an infinity is exact
            lost = lost & (x.magnitude() < np.inf)
        self.observer.addition(self.state, Addition(x, s, lost, lost & (s.magnitude() >= np.inf)))
        return s


class CarefulDraws(Arithmetic):
    """Rounded stochastically, as far as 16 random bits go."""

    def _drawn(self, s, error, site):
        """(rounded, bits where something was lost, where it became the largest number)."""
        nothing, stage = s.all_of(0.0), self.stage
        if stage.either and error is not None:
            s, error = to_odd(s, error), None
        own = self.state | {INEXACT: nothing, OVERFLOW: nothing}
        found = drawn(self.turn, s, error, self.one_and_random(site), own, stage, True)
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


class CarefulSingleDraws(Arithmetic):
    """The same to float32 or float64."""

    settling = staticmethod(settling)

    def _settled(self, nearest, error, noise, sure=True):
        if self.stage.either:
            return either(self.turn, nearest, error, noise, self.stage.family)
        return self.settling(self.turn, self.state, sure, self.stage.family)(nearest, error, noise)

    def one_and_random(self, site):
        """1 + the first 16 bits of a site's next random number, or the only one as it is."""
        return self.random(site) if self.stage.either else super().one_and_random(site)

    def _product(self, a, b):
        found, error = product_to_draw(a, b, self.stage)
        if error is None:
            return found, None
        drawn = self._settled(found, error, self.one_and_random(PRODUCT))
        return drawn, error.nonzero() | drawn.apart_from(found)

    _sum = staticmethod(sum_and_error)

    def _fma(self, a, b, c):
        """To float32 by way of float64, to odd, unless the product is exact."""
        if not self.stage.wide:
            return sum_and_error(a * b, c)
        if self.stage.double:
            s = a.fused(b, c)
            return s, rest_of_fused(s, a, b, c), False
        exact = to_odd(*sum_and_error(a.double() * b.double(), c.double()))
        s = exact.single()
        return s, (exact - s.double()).single(), False

    def _plus(self, s, error, sure=True):
        """s + error, rounded; a `sure` error is all that s lacks."""
        found = self._settled(s, error, self.one_and_random(RUNNING), sure)
        return found, error.nonzero() | found.apart_from(s)

    def _added(self, x, *exact):
        found, lost = self._plus(*exact)
        self.observer.addition(self.state, Addition(x, found, lost))
        return found


class Quick(Arithmetic):
    """Deterministic, rounded by the CPU to float32 first, and then by its bits; what may be wrong is noted in slots of the state."""

    def read(self, x):
        """A number as it is: what reads as zero, and is none, is noted."""
        return x

    def operands(self, place):
        """The factors of a product, the second of which is lifted."""
        a, b = super().operands(place)
        return a, b if self.turn.lift == 1.0 else b * self.turn.lift

    def _rounded(self, s, operation, below=False, settled=None, alone=True):
        """s rounded again; `settled`: the first rounding does no harm, as it does not to sums of some operations."""
        stage, lifted = self.stage, self.turn.lift > 1
        if self.observer.looks:  # to odd
            if stage.family == "half" and stage.nearest:
                watch_half(s.bits() | 1, self.state)
                return round_half_bits(s)
            return quickly(self.turn, s, self.state, stage._replace(noted=True), True)
        settled = is_settled(self.turn, operation, stage) if settled is None else settled
        return quickly(self.turn, s, self.state, stage, settled, below, lifted, alone)

    def _product(self, a, b):
        stage = self.stage
        exact = exact_product(self.turn, a, b, stage)
        alone = is_settled(self.turn, "mul_add", stage)
        found = self._rounded(exact, "mul_add", settled=True, alone=alone)
        return found, found.apart_from(exact)

    def _sum(self, x, y):
        turn, stage = self.turn, self.stage
        if self.observer.looks:
            return exact_sum(turn, y, x, stage), "mul_add"
        return directed(turn, stage, lambda direction: y.plus_toward(direction, x)) or x + y, "mul_add"

    def _fma(self, a, b, c):
        turn, stage = self.turn, self.stage
        below = from_below(turn, "fma", stage) and turn.lift > 1
        if self.observer.looks:
            s = exact_fma(turn, a, b, c, stage)
        elif below:
            s = a.fused_toward("zero", b, c)
        else:
            s = directed(turn, stage, lambda direction: a.fused_toward(direction, b, c)) or a.fused(b, c)
        return s, "fma", below

    def mended(self, c, y):
        """A fused sum in halves, to nearest, of which ties went up: those of exact sums go to even.

        A sum is exact, and tied, where both directions give what is half a unit below y.
        """
        a, b = self.operands(0)
        low, high = (a.fused_toward(direction, b, c).bits() for direction in ("down", "up"))
        tie = y.bits() - HALF_TIE
        return (low.equals(tie) & high.equals(tie)).choose(y.bits() & ~LAST_BIT, y.bits()).floats()

    def _added(self, x, s, *how):
        found = self._rounded(s, *how)
        self.observer.addition(self.state, Addition(x, found, found.apart_from(s)))
        return found


class Lifted(Quick):
    """Products and sums of halves, times a power of two by which overflows are float32's and bits alone round, where no product is tiny."""

    def _rounded(self, s, *_, **__):
        return round_half_bits(s)

    def _sum(self, x, y):
        return (x + y,)


class Split(Quick):
    """Sums that no overflow threatens, rounded by what they lose as parts of larger ones; of halves where no product is tiny."""

    def _product(self, a, b):
        """The larger part of a product is one itself."""
        wide = a * (b * (2.0 ** SPLIT[self.stage.family] + 1.0))
        found = wide - (a.fused(b * -1.0, wide) if self.turn.fuses else wide - a * b)
        return found, found.apart_from(a * b)

    def _rounded(self, s, *_, **__):
        return split(s, SPLIT[self.stage.family])


class QuickDraws(Quick):
    """Rounded stochastically by adding random bits and cutting; what may be wrong is noted in slots of the state."""

    def _sure(self):
        """Where exact values of sums lie."""
        if self.stage.either:
            return EXACT
        return AROUND if self.observer.looks else drawn_from(self.turn)

    @property
    def _to_odd(self):
        """Whether sums are, by which it is seen that they are not exact."""
        return self.observer.looks or self.stage.either

    def _drawn(self, s, site, where):
        noise, taken = self.random(site), None
        if self.stage.either:
            taken = noise.nonzero().choose(noise.all_of(-1), noise)
        return quickly_drawn(self.turn, s, noise, self.state, self.stage.family, where, self.turn.lift > 1, taken)

    def _product(self, a, b):
        if self.stage.wide and self._to_odd:
            exact, where = exact_product(self.turn, a, b, self.stage), EXACT if self.stage.either else AROUND
        else:
            exact, where = drawn_product(self.turn, a, b, self.stage.wide)
        found = self._drawn(exact, PRODUCT, where)
        return found, found.apart_from(exact)

    def _sum(self, x, y):
        if self._to_odd:
            return (exact_sum(self.turn, y, x, self.stage),)
        return (x.plus_toward("zero", y) if self.turn.directed else x + y,)

    def _fma(self, a, b, c):
        if self._to_odd:
            return (exact_fma(self.turn, a, b, c, self.stage),)
        return (a.fused_toward("zero", b, c) if self.turn.directed else a.fused(b, c),)

    def _plus(self, s):
        found = self._rounded(s)
        return found, found.apart_from(s)

    def _rounded(self, s, *_, **__):
        return self._drawn(s, RUNNING, self._sure())


class QuickSingleDraws(CarefulSingleDraws):
    """The same to float32 or float64. Nothing that is no zero reads as one."""

    settling = staticmethod(quick_settling)


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


def careful(stage):
    """The arithmetic of a stage that has every bit that decides."""
    if stage.draws:
        return CarefulSingleDraws if stage.native else CarefulDraws
    return CarefulSingle if stage.native else Careful


def quick(stage, order, counts, grid=False):
    """The quick one, if there is one: of sums rounded to nearest, those of products that are rounded, and of bfloat16, are quick with care."""
    if stage.draws:
        return QuickSingleDraws if stage.native else QuickDraws
    if grid and not counts and is_lifted(order, stage):
        return Lifted
    plain = stage.nearest and not (stage.daz or stage.ftz)
    if stage.native or order.compensates or (plain and not counts and not (order.fuses and stage.family != "bfloat16")):
        return None
    return Quick


def is_lifted(order, stage):
    """Whether `Lifted` and `Split` ask about the least numbers of turns: for halves."""
    return stage.family == "half" and splits(order, stage)


def splits(order, stage):
    """Whether `Split` does for sums that no overflow threatens."""
    rounds = order.in_order and order.multiplies and not (order.fuses or order.compensates or stage.draws)
    return rounds and splits_sums("mul_add", stage)


def lift(stage, order, observer):
    """What sums may be multiplied by: halves by as much as tells small ones from zero for one instruction less. With care, where nothing is
    flushed to nearest, their overflow is float32's then."""
    if order.compensates and not stage.draws:
        return lift_of(stage.family) if stage.keeps_errors and not stage.wide else 1.0
    return 1.0 if observer.looks else lift_of(stage.family)


def unfit(stage):
    """unfit(turn, sums): which sums a quick one cannot begin with, as a bit: those that read as zero, and are none; None: it can with all.

    What it makes itself is watched.
    """
    return read_as_zero if stage.daz else None


def watches(stage, counts, lifted=False):
    """The slots that a quick one watches with, and the bits they begin with."""
    if stage.draws:
        return drawn_watches(stage.family, lifted)
    if counts:
        return counting_watches(stage)
    return HALF_WATCHES if stage.family == "half" and not lifted else deterministic_watches(stage)


def went_wrong(stage, counts, fuses=False, lifted=False):
    """wrong(turn, state): whether what a quick one has noted says so, as a bit. Where it `fuses` wide products, float32's errors are rounded."""
    if not stage.draws:
        return deterministic_went_wrong(stage, ("fma" if fuses else "mul_add") if lifted else None)
    return draw_went_wrong(
        stage.family, (lambda _: AROUND) if counts else drawn_from, not (fuses and stage.wide), lifted
    )


def mends(stage, order, counts, lifted):
    """Whether ties that went wrong are all that goes wrong, mostly, and are put right by themselves: of halves where the CPU has directions."""
    return lifted and not (stage.draws or counts) and order.fuses and stage.nearest and has_feature("avx512f")
