"""Arithmetics of sums to float32 or float64, or to a part of float64, of numbers of a range in which none is tiny: the CPU rounds them to nearest,
and what that lost says what other roundings make of it."""

import numpy as np

from ..accumulate import PRODUCT, RUNNING
from ..steps import (
    EXPONENT,
    EXPONENT64,
    LEFT_OPEN,
    MARGIN,
    TIE,
    UNDECIDED,
    in_direction,
    product_and_error,
    product_to_draw,
    rest_of_fused,
    signs,
    sum_and_error,
    to_odd,
)
from .careful import Arithmetic
from .observers import Addition

SHORTER = "float64_shorter"
"""The family of formats of fewer bits than float64, of numbers of a range in which nothing but precision is theirs."""
BY_UNITS = {32: (EXPONENT, 23 << 23, (2 * 127 + 23) << 23), 64: (EXPONENT64, 52 << 52, (2 * 1023 + 52) << 52)}
"""Exponent fields: all; what is smaller is exact; less another one, the reciprocal of a unit in the last place."""
OPEN_FROM, OPEN_TO = 2.0 - UNDECIDED - MARGIN, 2.0 + MARGIN
"""Where 1 + U and a fraction of a unit, U having 16 bits so far, do not tell yet whether they reach 2."""
OPEN_BITS = {
    8 * kind().itemsize: int(kind(OPEN_TO - OPEN_FROM).view(f"i{kind().itemsize}")) for kind in (np.float32, np.float64)
}
"""Of how far a sum lies in what is left open, as float32 and float64 have it."""


def below_of(tile, family):
    """The bits of the carrier that a family's formats have not."""
    return tile.integer("below") if family == SHORTER else 0


def tied(bits, error, outward, inward, sign, rounding):
    """How many units the other ways to break ties take a nearest number from its bits."""
    field, half = {32: (EXPONENT, 24 << 23), 64: (EXPONENT64, 53 << 52)}[bits.element.width]
    unit = ((bits & field) - half).floats()
    of_power = (bits & (field & -field) - 1).is_zero()
    inner = of_power.choose(unit * 0.5, unit)  # below a power of two units are half as long
    unit, inner = (x.double() if error.element != x.element else x for x in (unit, inner))
    distance, stays = error.magnitude(), bits.all_of(0)
    tied_out, tied_in = outward & distance.equals(unit), inward & distance.equals(inner)
    return {
        "nearest_away": tied_out.choose(1, stays),
        "nearest_zero": tied_in.choose(-1, stays),
        "nearest_up": tied_out.choose(~sign & 1, tied_in.choose(sign, stays)),
    }[rounding]


class CarefulSingle(Arithmetic):
    """Deterministic."""

    def _rounded(self, y, error, x):
        """(y + error rounded, y being the CPU's nearest number, lanes where that is inexact). Of an exact zero rounded down the sign is that of x."""
        tile, stage = self.turn, self.stage
        shorter, beyond = stage.family == SHORTER, error.nonzero()
        if stage.nearest and not shorter:
            return y, beyond
        bits, below = y.bits(), below_of(tile, stage.family)
        unit, sign, nothing = below + 1, bits >> (bits.element.width - 1), bits.all_of(0)
        negative, above, beneath = sign.nonzero(), error > 0.0, error < 0.0
        outward, inward = negative.choose(beneath, above), negative.choose(above, beneath)
        toward = bits + inward.choose(nothing.all_of(-1), nothing)
        lost = beyond | (toward & below).nonzero()
        if not stage.rounding.startswith("nearest"):
            up = {"toward_zero": nothing, "toward_positive": ~sign, "toward_negative": sign, "to_odd": ~toward}
            found = (toward & ~below) + lost.choose(up[stage.rounding] & unit, nothing)
        elif shorter:
            up = {"nearest_even": toward, "nearest_away": ~nothing, "nearest_zero": nothing, "nearest_up": ~sign}
            more = (beyond | (up[stage.rounding] & unit).nonzero()).choose(tile.integer("tie"), tile.integer("tie") - 1)
            found = (toward + more) & ~below
        else:
            found = bits + tied(bits, error, outward, inward, sign, stage.rounding)
        y = found.floats()
        return (y.is_zero().choose(x, y) if stage.rounding == "toward_negative" else y), lost

    def _by_direction(self, toward, nearest):
        """(what the CPU's instructions round, lanes where that is inexact), of what toward(direction) and nearest() give; None where they do not."""
        stage = self.stage
        ties_otherwise = stage.rounding.startswith("nearest") and not stage.nearest
        if ties_otherwise or not self.turn.directed or stage.family == SHORTER:
            return None
        found = nearest() if stage.nearest else in_direction(toward, stage.rounding)
        return found, toward("down").apart_from(toward("up"))

    def _product(self, a, b):
        if self.stage.family == "float32_of_narrow":
            return a * b, None
        done = self._by_direction(lambda direction: a.times_toward(direction, b), lambda: a * b)
        if done:
            return done
        product = a * b
        if self.stage.double:
            _, error = product_and_error(a, b)
        else:
            error = a.double() * b.double() - product.double()
        return self._rounded(product, error, product)

    def _sum(self, x, y):
        done = self._by_direction(lambda direction: x.plus_toward(direction, y), lambda: x + y)
        if done:
            return done
        s, error = sum_and_error(x, y)
        if self.stage.nearest and self.stage.family != SHORTER:
            return s, error.differs(0.0) & (y.magnitude() < np.inf)  # of a sum that overflows it is NaN
        return self._rounded(s, error, signs(x, y))

    def _fma(self, a, b, c):
        """Where the CPU has no directed roundings, to float32 by way of float64 unless the product is exact."""
        done = self._by_direction(lambda direction: a.fused_toward(direction, b, c), lambda: a.fused(b, c))
        if done:
            return done
        if self.stage.family == "float32_of_narrow":
            return self._sum(a * b, c)
        if self.stage.double:
            s = a.fused(b, c)
            return self._rounded(s, rest_of_fused(s, a, b, c), signs(a * b, c))
        product = a.double() * b.double()
        s, error = sum_and_error(product, c.double())
        if self.stage.nearest:
            after = a.fused(b, c)
            return after, error.nonzero() | after.double().apart_from(s)
        x = to_odd(s, error)
        after = x.single()
        found, _ = self._rounded(after, x - after.double(), signs(a * b, c))
        return found, x.apart_from(after.double())

    def _plus(self, s, lost):
        return s, lost

    product_in_parts = staticmethod(product_and_error)
    in_parts = staticmethod(sum_and_error)

    def joined(self, high, middle, low, beyond):
        """The sum of three parts, rounded once; infinite where bits beyond them were lost."""
        s, error = sum_and_error(high, middle)
        error, rest = sum_and_error(error, low)
        s, error = sum_and_error(s, error)
        error, rest = sum_and_error(error, rest)
        s, error = sum_and_error(s, error)
        s, error = sum_and_error(s, to_odd(*sum_and_error(error, rest)))
        found, lost = self._rounded(s, error, s)
        zero = found.all_of(-0.0 if self.stage.rounding == "toward_negative" else 0.0)
        self.observer.addition(self.state, Addition(high, found, lost))
        return beyond.bits().is_zero().choose(found.is_zero().choose(zero, found), np.inf)

    def _added(self, x, s, lost):
        """s, which is what was added to x, and where that lost something."""
        if not self.turn.directed:  # where the CPU does not say so itself that a sum with an infinity is exact
            lost = lost & (x.magnitude() < np.inf)
        self.observer.addition(self.state, Addition(x, s, lost, lost & (s.magnitude() >= np.inf)))
        return s


class CarefulSingleDraws(Arithmetic):
    """Rounded stochastically, as far as 16 random bits go; what these leave open is noted in LEFT_OPEN."""

    def _lower(self, s, error):
        """Of the two numbers around an exact value, an `error` from s, the bits of the one nearer to zero; and bits that the format has not."""
        bits, below = s.bits(), below_of(self.turn, self.stage.family)
        inward = (((error.bits() ^ bits) >> (bits.element.width - 1)) & error.bits()).nonzero()
        return inward.choose(bits - 1, bits) & ~below, below

    def _drawn(self, s, error, noise, sure):
        """(s + error rounded, what decided), s being the nearest number.

        Of the two numbers around the exact value, the one nearer to zero becomes the other where 1 + U and the fraction of a unit between
        reach 2; noise is 1 + U. If the error is `sure`, and the CPU rounds toward zero, what decided seems to reach 2 only where it does.
        Sums are multiples of the smallest normal number, so that none is tiny and inexact.
        """
        low, below = self._lower(s, error)
        field, least, unit = BY_UNITS[low.element.width]
        more, directed = s - low.floats(), sure and self.turn.directed
        rest = more.plus_toward("zero", error) if directed else more + error
        unit = self.turn.integer("per_quantum") if self.stage.family == SHORTER else unit
        per_unit = (-(low & field).at_least(least) + unit).floats()
        rest = rest.magnitude()
        reached = rest.fused_toward("zero", per_unit, noise) if directed else rest.fused(per_unit, noise)
        return (reached >= 2.0).choose(low + (below + 1), low).floats(), reached

    def _note_open(self, reached, sure):
        if sure and self.turn.directed:
            short = reached - 2.0
            near = short.bits() & ~(short + self.turn.parameter("undecided")).bits()
        else:
            near = (reached - OPEN_TO).bits() & ~(reached - OPEN_FROM).bits()
        self.state[LEFT_OPEN] = self.state[LEFT_OPEN].bits() | near

    def _settled(self, s, error, noise, sure=True):
        """s + error, rounded; of one random bit the greater in magnitude of the numbers around it, or the other."""
        if self.stage.either:
            low, below = self._lower(s, error)
            lost = error.nonzero() | low.apart_from(s.bits())
            return (lost & noise.nonzero()).choose(low + (below + 1), low).floats()
        found, reached = self._drawn(s, error, noise, sure)
        self._note_open(reached, sure)
        return found

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


class QuickSingleDraws(CarefulSingleDraws):
    """The same, where the nearest to what is left open is all that is noted. Nothing that is no zero reads as one."""

    def _note_open(self, reached, sure):
        open_from = 2.0 - UNDECIDED if sure and self.turn.directed else OPEN_FROM
        self.state[TIE] = self.state[TIE].bits().at_most((reached - open_from).bits())

    @staticmethod
    def watches(stage, counts, lifted):
        """The slots that it watches with, and the bits they begin with."""
        return {TIE: -1}

    @staticmethod
    def went_wrong(turn, stage, state, fuses, counts):
        """Whether something was left open, as a bit. Where it `fuses` wide products, float32's errors are rounded."""
        bits = state[TIE].bits()
        sure = turn.directed and not (fuses and stage.wide)
        window = turn.parameter("undecided").bits() if sure else OPEN_BITS[bits.element.width]
        return bits.below(window).anywhere()
