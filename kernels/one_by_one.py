"""Steps of products that meet the sum one after the other."""

import numpy as np

from .steps import (
    EXPONENT,
    EXPONENT64,
    INEXACT,
    LEFT_OPEN,
    MARGIN,
    UNDECIDED,
    between,
    product_and_error,
    rest_of_fused,
    signs,
    sum_and_error,
    to_odd,
)

DIRECTIONS = {"toward_zero": "zero", "toward_positive": "up", "toward_negative": "down"}
"""What the CPU rounds toward in these modes."""


def in_direction(toward, rounding):
    """What toward(direction) gives, rounded to float32 in one of DIRECTIONS or to odd."""
    if rounding == "to_odd":
        return between(toward("down"), toward("up"))
    return toward(DIRECTIONS[rounding])


HARMLESS = {rounding: rounding for rounding in (*DIRECTIONS, "to_odd")} | {
    "nearest_away": "toward_zero",
    "nearest_zero": "to_odd",
    "nearest_up": "to_odd",
}
"""How the CPU rounds a sum so that rounding it again does no harm: toward what ties go away from, too, for nothing seems to tie from below."""


SHORTER = "float64_shorter"
"""The family of formats of fewer bits than float64, of numbers of a range in which nothing but precision is theirs."""


def below_of(tile, family):
    """The bits of the carrier that a family's formats have not."""
    return tile.integer("below") if family == SHORTER else 0


def rounded_single(tile, y, error, x, stage):
    """(y + error as a stage rounds it, y being the CPU's nearest number, lanes where that is inexact).

    Of an exact zero rounded down the sign is that of x.
    """
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
        found = bits + _tied(bits, error, outward, inward, sign, stage.rounding)
    y = found.floats()
    return (y.is_zero().choose(x, y) if stage.rounding == "toward_negative" else y), lost


def _tied(bits, error, outward, inward, sign, rounding):
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


def by_direction(tile, toward, nearest, stage):
    """(what the CPU's instructions round as a stage says, lanes where that is inexact), of what toward(direction) and nearest() give; None
    where they do not."""
    tied = stage.rounding.startswith("nearest") and not stage.nearest
    if tied or not tile.directed or stage.family == SHORTER:
        return None
    found = nearest() if stage.nearest else in_direction(toward, stage.rounding)
    return found, toward("down").apart_from(toward("up"))


def single_sum(tile, x, y, stage):
    """(x + y, lanes where that is inexact)."""
    done = by_direction(tile, lambda direction: x.plus_toward(direction, y), lambda: x + y, stage)
    if done:
        return done
    s, error = sum_and_error(x, y)
    if stage.nearest and stage.family != SHORTER:
        return s, error.differs(0.0) & (y.magnitude() < np.inf)  # of a sum that overflows it is NaN
    return rounded_single(tile, s, error, signs(x, y), stage)


def single_product(tile, a, b, stage):
    """(a * b, lanes where that is inexact)."""
    done = by_direction(tile, lambda direction: a.times_toward(direction, b), lambda: a * b, stage)
    if done:
        return done
    product = a * b
    if stage.family.startswith("float64"):
        _, error = product_and_error(a, b)
    else:
        error = a.double() * b.double() - product.double()
    return rounded_single(tile, product, error, product, stage)


def single_fused(tile, a, b, c, stage):
    """(a * b + c, lanes where that is inexact). Where the CPU has no directed roundings, of float32 by way of float64 unless the product is exact."""
    done = by_direction(tile, lambda direction: a.fused_toward(direction, b, c), lambda: a.fused(b, c), stage)
    if done:
        return done
    if stage.family == "float32_of_narrow":
        return single_sum(tile, a * b, c, stage)
    if stage.family.startswith("float64"):
        s = a.fused(b, c)
        return rounded_single(tile, s, rest_of_fused(s, a, b, c), signs(a * b, c), stage)
    product = a.double() * b.double()
    s, error = sum_and_error(product, c.double())
    if stage.nearest:
        after = a.fused(b, c)
        return after, error.nonzero() | after.double().apart_from(s)
    x = to_odd(s, error)
    after = x.single()
    found, _ = rounded_single(tile, after, x - after.double(), signs(a * b, c), stage)
    return found, x.apart_from(after.double())


def note_inexact(state, lost):
    """Lanes where something was inexact, or bits that were lost."""
    bits = state[INEXACT].bits()
    state[INEXACT] = lost.choose(bits | 1, bits) if lost.element.width == 1 else bits | lost


# -- rounded stochastically ------------------------------------------------------------------------------------------


def product_to_draw(a, b, stage):
    """A product, and what the multiplication lost, None if that is nothing."""
    return product_and_error(a, b) if stage.wide else (a * b, None)


BY_UNITS = {32: (EXPONENT, 23 << 23, (2 * 127 + 23) << 23), 64: (EXPONENT64, 52 << 52, (2 * 1023 + 52) << 52)}
"""Exponent fields: all; what is smaller is exact; less another one, the reciprocal of a unit in the last place."""
OPEN_FROM, OPEN_TO = 2.0 - UNDECIDED - MARGIN, 2.0 + MARGIN
"""Where 1 + U and a fraction of a unit, U having 16 bits so far, do not tell yet whether they reach 2."""


def drawn_single(tile, s, error, noise, sure, family):
    """(s + error rounded stochastically, what decided), s being the nearest number of float32, or of float64.

    Of the two numbers around the exact value, the one nearer to zero becomes the other where 1 + U and the fraction of a unit between
    reach 2; noise is 1 + U. If the error is `sure`, and the CPU rounds toward zero, what decided seems to reach 2 only where it does.
    Sums are multiples of the smallest normal number, so that none is tiny and inexact.
    """
    low, below = lower(tile, s, error, family)
    field, least, unit = BY_UNITS[low.element.width]
    more, directed = s - low.floats(), sure and tile.directed
    rest = more.plus_toward("zero", error) if directed else more + error
    unit = tile.integer("per_quantum") if family == SHORTER else unit
    per_unit = (-(low & field).at_least(least) + unit).floats()
    rest = rest.magnitude()
    reached = rest.fused_toward("zero", per_unit, noise) if directed else rest.fused(per_unit, noise)
    return (reached >= 2.0).choose(low + (below + 1), low).floats(), reached


def lower(tile, s, error, family):
    """Of the two numbers around an exact value, an `error` from s, the bits of the one nearer to zero; and bits that the format has not."""
    bits, below = s.bits(), below_of(tile, family)
    inward = (((error.bits() ^ bits) >> (bits.element.width - 1)) & error.bits()).nonzero()
    return inward.choose(bits - 1, bits) & ~below, below


def either(tile, s, error, random, family):
    """s + error, of which one random bit takes the greater in magnitude of the numbers around it, or the other; s is the nearest one."""
    low, below = lower(tile, s, error, family)
    lost = error.nonzero() | low.apart_from(s.bits())
    return (lost & random.nonzero()).choose(low + (below + 1), low).floats()


def settling(tile, state, sure, family):
    """What rounds a sum in float32 or float64 by 16 random bits, and notes in LEFT_OPEN where these leave it open."""

    def settle(s, error, noise):
        z, reached = drawn_single(tile, s, error, noise, sure, family)
        if sure and tile.directed:
            short = reached - 2.0
            near = short.bits() & ~(short + tile.parameter("undecided")).bits()
        else:
            near = (reached - OPEN_TO).bits() & ~(reached - OPEN_FROM).bits()
        state[LEFT_OPEN] = state[LEFT_OPEN].bits() | near
        return z

    return settle
