"""Quick arithmetics: a sum is rounded by the CPU to float32 first, and then by adding and cutting bits. What that may have done wrong is noted in
slots of the state, and told by these; then it is done again with care."""

from functools import reduce
from operator import or_

from ..accumulate import PRODUCT, RUNNING
from ..steps import (
    BY_BITS,
    HARMLESS,
    NEAR_ZERO,
    OVERFLOW,
    ROUNDERS,
    TIE,
    bounded,
    carried,
    exact_fma,
    exact_product,
    exact_sum,
    in_direction,
    round_half_bits,
    split,
)
from .careful import Arithmetic
from .observers import Addition

HALF_BITS = 0x1FFF  # that rounding takes away
HALF_TIE, LAST_BIT = 0x1000, 0x2000
OF_WORDS, ABOVE_ZERO = 0x7FFF1FFF, 0x00010000
FEWEST, MOST = 0x38800001, 0x477D7FFF
"""Of halves in float32, two things in one word each: the bits that rounding takes away, and exponent and leading bits, less
one, so that zero is no small number. What has a lesser word than FEWEST met a boundary of the rounding, or may be tiny; what
has a greater one than MOST may overflow."""
LIFT = 2.0**112  # from half's largest numbers to float32's
ANY, EVEN = 3, 2  # bits of a low word beside those that rounding takes away, or beside these and the last that stays
LEAST_WORD, LIFTED_FEWEST, LIFTED_MOST = -0x8000, 0xE102 - 0x10000, 0xFEFC
"""The same of halves times LIFT, in integers with sign (`watch_lifted`): the least low word, and two high ones, as above."""
SPLIT = {"half": 13, "bfloat16": 16}
"""Bits of float32 that rounding to a family takes away."""
SPLIT_MOST = 2.0**110
"""Magnitudes below which nothing becomes infinite on the way."""
EXACT, ABOVE, AROUND = "exact", "above", "around"
"""Where the exact value of a number of float32 may lie: there, at it or above it in magnitude, or less than a last bit away."""


# -- what is watched for, of halves ----------------------------------------------------------------------------------


def watch_half(probe, state):
    """A sum is watched by its words: it met a boundary of the rounding where the bits that are taken away are zero."""
    words = ((probe & OF_WORDS) - ABOVE_ZERO).words()
    state[TIE] = state[TIE].bits().words().at_most(words)
    state[OVERFLOW] = state[OVERFLOW].bits().words().at_least_signed(words)


def watch_lifted(probe, state, past):
    """The same of a sum times LIFT. What is left of its words by a shift is compared as integers with sign.

    The low word loses ANY or EVEN bits: the least is then one bit and zeros, a tie, or where ties were rounded up, one that
    became odd. The high word loses its sign: the smaller a number the less it is, but zero, which has another sign.
    """
    words = probe.words()
    words = words << words.alternately(past, 1)
    state[TIE] = state[TIE].bits().words().at_most_signed(words)
    if OVERFLOW in state:
        state[OVERFLOW] = state[OVERFLOW].bits().words().at_least(words)


def out_of_words(state, fewest):
    """Whether `watch_half` has seen a lesser word, or a greater one than MOST."""
    least, most = state[TIE].bits(), state[OVERFLOW].bits()
    wrong = least.words().below(least.all_of(fewest).words()) | (most.words() > most.all_of(MOST).words())
    return wrong.anywhere()


def out_of_lifted(state, ties):
    """Whether `watch_lifted` has seen one of so many least low words, or a high one beyond LIFTED_FEWEST or LIFTED_MOST."""
    least = state[TIE].bits().words()
    wrong = least < least.alternately(LEAST_WORD + ties, LIFTED_FEWEST)
    if OVERFLOW in state:
        most = state[OVERFLOW].bits().words()
        wrong = wrong | most.alternately(-1, LIFTED_MOST).below(most)
    return wrong.anywhere()


def read_as_zero(tile, sums):
    """Whether one of some sums reads as zero, and is none. Those of quick steps never do: they are watched for when they come out tiny."""
    normal = tile.integer("normal")
    small = [(x.bits() + x.bits() - 1).below(normal + normal - 1) for x in sums]
    return reduce(or_, small).anywhere()


# -- deterministic ---------------------------------------------------------------------------------------------------


class Quick(Arithmetic):
    """Deterministic. What the first rounding did matters only where it met a boundary of the second: a tie, or in directed modes a number of the
    format. Which these are holds for numbers that are not tiny, so that tiny ones are watched for, too, and what has to be noted."""

    def read(self, x):
        """A number as it is: what reads as zero, and is none, is noted."""
        return x

    def operands(self, place):
        """The factors of a product, the second of which is lifted."""
        a, b = super().operands(place)
        return a, b if self.turn.lift == 1.0 else b * self.turn.lift

    @staticmethod
    def is_settled(tile, stage, fuses):
        """Whether the CPU's rounding to float32 does a sum no harm: it is directed alike, or so few bits have no false ties."""
        if fuses:
            return tile.directed and stage.rounding in HARMLESS
        return tile.directed or stage.rounding.startswith("nearest")

    def _rounded(self, s, fuses, below=False, settled=None, alone=True):
        """s, rounded again. `settled`: the first rounding does no harm, as it does not to sums of some operations, to odd, or exact; `below`: it was
        toward zero, so that only ties to an even number of lesser magnitude are watched for; `alone`: no other number of the step is."""
        tile, stage, state, lifted, looks = self.turn, self.stage, self.state, self.turn.lift > 1, self.observer.looks
        probe, nearest = s.bits(), stage.rounding.startswith("nearest")
        settled = looks or (self.is_settled(tile, stage, fuses) if settled is None else settled)
        if stage.nearest and settled:
            y = round_half_bits(s) if lifted or (looks and stage.family == "half") else ROUNDERS[stage.family](tile, s)
        elif nearest:  # ties go up here; those that must not are done again
            probe = carried(tile, s, stage.rounding if settled else "nearest_away")
            y = (probe & ~tile.integer("below")).floats()
        else:
            y = BY_BITS[stage.rounding](tile, s)
        if lifted:
            if not (settled or below):
                probe = s.bits() if nearest else probe ^ HALF_TIE
            watch_lifted(probe if alone or not settled else probe | 1, state, EVEN if settled or below else ANY)
            return y
        if stage.family == "half":
            watch_half(probe | 1 if settled else probe, state)
            return y
        if stage.family == "bfloat16" and not settled:
            state[TIE] = state[TIE].bits().words().at_most(probe.words())
        elif not settled:
            state[TIE] = state[TIE].bits().at_most(probe & tile.integer("below"))
        if stage.family != "bfloat16":
            state[NEAR_ZERO] = state[NEAR_ZERO].bits().at_most(s.bits() + s.bits() - 1)
        if not (stage.noted or looks):
            return bounded(tile, y, state, stage)
        over = y.magnitude() > tile.parameter("largest")
        state[OVERFLOW] = over.choose(0, state[OVERFLOW].bits())
        return y

    @staticmethod
    def watches(stage, counts, lifted):
        """The slots that this one watches with, and the bits they begin with; halves may be `lifted`."""
        noted = stage.noted or counts
        if lifted:  # to nearest they become infinite by themselves
            return {TIE: -1, OVERFLOW: 0} if noted or not stage.rounding.startswith("nearest") else {TIE: -1}
        if stage.family == "half":
            return {TIE: -1, OVERFLOW: -1}
        return dict.fromkeys((TIE,) + (NEAR_ZERO,) * (stage.family == "narrow") + (OVERFLOW,) * noted, -1)

    @classmethod
    def went_wrong(cls, turn, stage, state, fuses, counts):
        """Whether this one has met a tie, an overflow to be noted, or something but zero below the smallest normal number, as a bit."""
        if stage.family == "half" and turn.lift == 1.0:
            return out_of_words(state, FEWEST)
        if stage.family == "half":
            return out_of_lifted(state, 0 if cls.is_settled(turn, stage, fuses) else 1)
        taken = 0xFFFF if stage.family == "bfloat16" else -1
        found = (state[TIE].bits() & taken).is_zero()
        if NEAR_ZERO in state:
            normal = turn.integer("normal")
            found = found | state[NEAR_ZERO].bits().below(normal + normal - 1)
        if OVERFLOW in state:
            found = found | state[OVERFLOW].bits().is_zero()
        return found.anywhere()

    def _product(self, a, b):
        exact = exact_product(self.turn, a, b, self.stage)
        alone = self.is_settled(self.turn, self.stage, False)
        found = self._rounded(exact, False, settled=True, alone=alone)
        return found, found.apart_from(exact)

    def _toward(self, toward, nearest):
        """A sum rounded to float32 as it will be again, if the CPU can, by toward(direction), else by nearest()."""
        stage = self.stage
        if self.turn.directed and stage.rounding in HARMLESS:
            return in_direction(toward, HARMLESS[stage.rounding])
        return nearest()

    def _sum(self, x, y):
        if self.observer.looks:
            return exact_sum(self.turn, y, x, self.stage), False
        return self._toward(lambda direction: y.plus_toward(direction, x), lambda: x + y), False

    def _fma(self, a, b, c):
        turn, stage = self.turn, self.stage
        below = turn.directed and stage.family == "half" and stage.nearest and turn.lift > 1
        if self.observer.looks:
            s = exact_fma(turn, a, b, c, stage)
        elif below:
            s = a.fused_toward("zero", b, c)
        else:
            s = self._toward(lambda direction: a.fused_toward(direction, b, c), lambda: a.fused(b, c))
        return s, True, below

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


class Split(Quick):
    """Sums that no overflow threatens, rounded by what they lose as parts of larger ones; of halves where no product is tiny."""

    def _product(self, a, b):
        """The larger part of a product is one itself."""
        wide = a * (b * (2.0 ** SPLIT[self.stage.family] + 1.0))
        found = wide - (a.fused(b * -1.0, wide) if self.turn.fuses else wide - a * b)
        return found, found.apart_from(a * b)

    def _rounded(self, s, *_, **__):
        return split(s, SPLIT[self.stage.family])


# -- stochastic ------------------------------------------------------------------------------------------------------


class QuickDraws(Quick):
    """Rounded stochastically: random bits are added to those that rounding takes away, and these are cut.

    There are 16 random bits so far, fewer of a half. They settle the result where the bits do not add up to all but one unit of the random numbers,
    or two; so these are watched for, unless a number is EXACT and has no bits below the random ones; and tiny and large numbers are.
    """

    @staticmethod
    def drawn_from(tile):
        """Where sums may lie that the CPU rounds: toward zero if it can, to nearest otherwise."""
        return ABOVE if tile.directed else AROUND

    @property
    def _to_odd(self):
        """Whether sums are, by which it is seen that they are not exact."""
        return self.observer.looks or self.stage.either

    def _drawn(self, s, site, exact):
        """A number rounded, whose exact value lies where `exact` says; of either way, all bits or none of one random number are added."""
        tile, state, noise, taken = self.turn, self.state, self.random(site), None
        if self.stage.either:
            taken = noise.nonzero().choose(noise.all_of(-1), noise)
        if self.stage.family == "half":
            moved = s.bits() + (noise.logical_right(3) if taken is None else taken & HALF_BITS)
            if tile.lift > 1:
                watch_lifted(moved | 2 if exact == EXACT else moved + (1 + HALF_TIE), state, ANY)
                return (moved & ~HALF_BITS).floats()
            watch_half(moved | 2 if exact == EXACT else moved ^ HALF_BITS if exact == ABOVE else moved + 1, state)
            return (moved & ~HALF_BITS).floats()
        below, unit = tile.integer("below"), tile.integer("noise_unit")
        added = (noise << tile.integer("noise_up")).logical_right(tile.integer("noise_down"))
        moved = s.bits() + (added if taken is None else taken & below)
        y = (moved & ~below).floats()
        if taken is None:
            state[TIE] = state[TIE].bits().at_most((moved + unit) & below)
        twice = s.bits() + s.bits()
        state[NEAR_ZERO] = state[NEAR_ZERO].bits().at_most(twice - 1)
        state[OVERFLOW] = state[OVERFLOW].bits().at_least(twice)
        return y

    @staticmethod
    def watches(stage, counts, lifted):
        """The slots that this one watches with, and the bits they begin with; halves may be `lifted`."""
        if stage.family == "half":
            return {TIE: -1, OVERFLOW: 0 if lifted else -1}
        return {TIE: -1, NEAR_ZERO: -1, OVERFLOW: 0}

    @classmethod
    def went_wrong(cls, turn, stage, state, fuses, counts):
        """Whether this one was at a boundary of the rounding, met an overflow, or a number about as small as the smallest normal one, as a bit."""
        above = not counts and cls.drawn_from(turn) == ABOVE
        if stage.family == "half" and turn.lift > 1:
            return out_of_lifted(state, 1 if above else 1 + (1 << ANY))
        if stage.family == "half":
            return out_of_words(state, FEWEST if above else FEWEST + 1)
        normal, unit = turn.integer("normal"), turn.integer("noise_unit")
        found = state[TIE].bits().below(unit) if above else ~unit.below(state[TIE].bits())
        found = found | state[NEAR_ZERO].bits().below(normal + normal)
        largest = turn.integer("largest")
        return (found | (largest + largest).below(state[OVERFLOW].bits())).anywhere()

    def _product(self, a, b):
        wide, to_odd = self.stage.wide, self._to_odd
        if wide and not to_odd and self.turn.directed:
            exact = a.times_toward("zero", b)
        else:
            exact = exact_product(self.turn, a, b, self.stage) if wide and to_odd else a * b
        where = EXACT if not wide or self.stage.either else AROUND if to_odd else self.drawn_from(self.turn)
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
        looks = self.observer.looks
        return self._drawn(s, RUNNING, EXACT if self.stage.either else AROUND if looks else self.drawn_from(self.turn))
