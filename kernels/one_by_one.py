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


def rounded_single(y, error, x, manner):
    """y + error, y being the CPU's nearest number, as another rounding has it; of an exact zero rounded down the sign is that of x."""
    bits = y.bits()
    width = bits.element.width
    sign = bits >> (width - 1)
    negative, above, below = sign.nonzero(), error > 0.0, error < 0.0
    outward, inward = negative.choose(below, above), negative.choose(above, below)
    field, half = {32: (EXPONENT, 24 << 23), 64: (EXPONENT64, 53 << 52)}[width]
    unit = ((bits & field) - half).floats()
    of_power = (bits & (field & -field) - 1).is_zero()
    inner = of_power.choose(unit * 0.5, unit)  # below a power of two units are half as long
    unit, inner = (x.double() if error.element != y.element else x for x in (unit, inner))
    distance, stays = error.magnitude(), bits.all_of(0)
    tied_out, tied_in = outward & distance.equals(unit), inward & distance.equals(inner)
    step = {
        "toward_zero": inward.choose(-1, stays),
        "toward_positive": outward.choose(~sign & 1, inward.choose(sign, stays)),
        "toward_negative": outward.choose(sign & 1, inward.choose(~sign, stays)),
        "to_odd": outward.choose(~bits & 1, inward.choose((bits & 1) - 1, stays)),
        "nearest_away": tied_out.choose(1, stays),
        "nearest_zero": tied_in.choose(-1, stays),
        "nearest_up": tied_out.choose(~sign & 1, tied_in.choose(sign, stays)),
    }[manner.rounding]
    y = (bits + step).floats()
    return y.is_zero().choose(x, y) if manner.rounding == "toward_negative" else y


def by_direction(toward, manner):
    """(rounded by the CPU as `manner` says, lanes where that is inexact): of what toward(direction) gives."""
    return in_direction(toward, manner.rounding), toward("down").apart_from(toward("up"))


def rounds_by_direction(tile, manner):
    """Whether the CPU's instructions round in this direction."""
    return tile.directed and not manner.rounding.startswith("nearest")


def single_sum(tile, x, y, manner):
    """(x + y, lanes where that is inexact)."""
    if rounds_by_direction(tile, manner):
        return by_direction(lambda direction: x.plus_toward(direction, y), manner)
    s, error = sum_and_error(x, y)
    if not manner.nearest:
        return rounded_single(s, error, signs(x, y), manner), error.nonzero()
    if tile.directed:
        return s, x.plus_toward("down", y).apart_from(x.plus_toward("up", y))
    return s, error.differs(0.0) & (y.magnitude() < np.inf)  # of a sum that overflows it is NaN


def single_product(tile, a, b, manner):
    """(a * b, lanes where that is inexact)."""
    if rounds_by_direction(tile, manner):
        return by_direction(lambda direction: a.times_toward(direction, b), manner)
    product = a * b
    if tile.directed and manner.nearest:
        return product, a.times_toward("down", b).apart_from(a.times_toward("up", b))
    if manner.family == "float64":
        _, error = product_and_error(a, b)
    else:
        error = a.double() * b.double() - product.double()
    return product if manner.nearest else rounded_single(product, error, product, manner), error.nonzero()


def single_fused(tile, a, b, c, manner):
    """(a * b + c, lanes where that is inexact). Where the CPU has no directed roundings, of float32 by way of float64 unless the product is exact."""
    if rounds_by_direction(tile, manner):
        return by_direction(lambda direction: a.fused_toward(direction, b, c), manner)
    if tile.directed and manner.nearest:
        return a.fused(b, c), a.fused_toward("down", b, c).apart_from(a.fused_toward("up", b, c))
    if manner.family == "float32_of_narrow":
        return single_sum(tile, a * b, c, manner)
    if manner.family == "float64":
        s = a.fused(b, c)
        error = rest_of_fused(s, a, b, c)
        return s if manner.nearest else rounded_single(s, error, signs(a * b, c), manner), error.nonzero()
    product = a.double() * b.double()
    s, error = sum_and_error(product, c.double())
    if manner.nearest:
        after = a.fused(b, c)
        return after, error.nonzero() | after.double().apart_from(s)
    x = to_odd(s, error)
    after = x.single()
    return rounded_single(after, x - after.double(), signs(a * b, c), manner), x.apart_from(after.double())


def note_inexact(state, lost):
    """Lanes where something was inexact, or bits that were lost."""
    bits = state[INEXACT].bits()
    state[INEXACT] = lost.choose(bits | 1, bits) if lost.element.width == 1 else bits | lost


# -- rounded stochastically ------------------------------------------------------------------------------------------


def product_to_draw(a, b, options):
    """A product, and what the multiplication lost, None if that is nothing."""
    return product_and_error(a, b) if options.wide else (a * b, None)


BY_UNITS = {32: (EXPONENT, 23 << 23, (2 * 127 + 23) << 23), 64: (EXPONENT64, 52 << 52, (2 * 1023 + 52) << 52)}
"""Exponent fields: all; what is smaller is exact; less another one, the reciprocal of a unit in the last place."""
OPEN_FROM, OPEN_TO = 2.0 - UNDECIDED - MARGIN, 2.0 + MARGIN
"""Where 1 + U and a fraction of a unit, U having 16 bits so far, do not tell yet whether they reach 2."""


def drawn_single(tile, s, error, noise, sure):
    """(s + error rounded stochastically, what decided), s being the nearest number of float32, or of float64.

    Of the two numbers around the exact value, the one nearer to zero becomes the other where 1 + U and the fraction of a unit between
    reach 2; noise is 1 + U. If the error is `sure`, and the CPU rounds toward zero, what decided seems to reach 2 only where it does.
    Sums are multiples of the smallest normal number, so that none is tiny and inexact.
    """
    bits = s.bits()
    field, least, unit = BY_UNITS[bits.element.width]
    inward = (((error.bits() ^ bits) >> (bits.element.width - 1)) & error.bits()).nonzero()
    low = inward.choose(bits - 1, bits)
    more, directed = s - low.floats(), sure and tile.directed
    rest = more.plus_toward("zero", error) if directed else more + error
    per_unit = (-(low & field).at_least(least) + unit).floats()
    rest = rest.magnitude()
    reached = rest.fused_toward("zero", per_unit, noise) if directed else rest.fused(per_unit, noise)
    return (reached >= 2.0).choose(low + 1, low).floats(), reached


def either(s, error, random):
    """s + error, of which one random bit takes the greater in magnitude of the numbers around it, or the other; s is the nearest one."""
    bits = s.bits()
    inward = (((error.bits() ^ bits) >> (bits.element.width - 1)) & error.bits()).nonzero()
    stays, lost = bits.all_of(0), error.nonzero()
    outward = inward.choose(stays, lost.choose(1, stays))
    return (bits + random.nonzero().choose(outward, inward.choose(-1, stays))).floats()


def settling(tile, state, sure):
    """What rounds a sum in float32 or float64 by 16 random bits, and notes in LEFT_OPEN where these leave it open."""

    def settle(s, error, noise):
        z, reached = drawn_single(tile, s, error, noise, sure)
        if sure and tile.directed:
            short = reached - 2.0
            near = short.bits() & ~(short + tile.parameter("undecided")).bits()
        else:
            near = (reached - OPEN_TO).bits() & ~(reached - OPEN_FROM).bits()
        state[LEFT_OPEN] = state[LEFT_OPEN].bits() | near
        return z

    return settle
