"""Steps of products that meet the sum one after the other, rounded deterministically."""

import numpy as np

from .steps import (
    EXPONENT,
    INEXACT,
    SIGN,
    VALUE,
    between,
    exact_fma,
    exact_sum,
    rounded,
    sum_and_error,
    to_odd,
    without_subnormals,
)
from .vectors import through_bfloat16


def fma_step(manner, watchful):
    """One fused multiply-add."""

    def step(tile, row, state):
        c = without_subnormals(tile, state[VALUE], manner)
        x = exact_fma(tile, tile.a(row), tile.b(), c, manner)
        state[VALUE] = rounded(tile, x, state, manner, watchful)
        return state

    return step


def mul_add_step(manner, watchful):
    """A product rounded, a sum rounded. Only flushing makes a sum tiny and inexact.

    float32 has more than twice the precision: to nearest, a sum rounded to it first rounds alike.
    """

    def step(tile, row, state):
        product = rounded(tile, tile.a(row) * tile.b(), state, manner, watchful)
        product = without_subnormals(tile, product, manner)
        c = without_subnormals(tile, state[VALUE], manner)
        if not manner.nearest:
            s = exact_sum(tile, product, c, manner)
        elif watchful:
            s, error = sum_and_error(c, product)
            state[INEXACT] = state[INEXACT].bits() | error.bits()
        else:
            s = c + product
        state[VALUE] = rounded(tile, s, state, manner, watchful, may_underflow=manner.ftz)
        return state

    return step


def paired_mul_add_step():
    """The brief step of bfloat16, where the CPU rounds two vectors at a time. What it does to subnormals never matters."""

    def step(tile, states):
        for row in range(0, tile.rows, 2):
            rows = row, row + 1
            products = through_bfloat16(*(tile.a(row) * tile.b() for row in rows))
            sums = through_bfloat16(*(states[row][VALUE] + term for row, term in zip(rows, products, strict=True)))
            for row, value in zip(rows, sums, strict=True):
                states[row][VALUE] = value

    step.together = True
    return step


def rounded_single(y, error, x, manner):
    """y + error, y being the nearest number of float32, as another rounding has it; of an exact zero rounded down the sign is that of x."""
    bits = y.bits()
    sign = bits >> 31
    negative, above, below = sign.nonzero(), error > 0.0, error < 0.0
    outward, inward = negative.choose(below, above), negative.choose(above, below)
    half_unit = ((bits & EXPONENT) - (24 << 23)).floats()
    if error.element != y.element:
        half_unit = half_unit.double()
    tie, stays = outward & error.magnitude().equals(half_unit), bits.all_of(0)
    step = {
        "toward_zero": inward.choose(-1, stays),
        "toward_positive": outward.choose(~sign & 1, inward.choose(sign, stays)),
        "toward_negative": outward.choose(sign & 1, inward.choose(~sign, stays)),
        "to_odd": outward.choose(~bits & 1, inward.choose((bits & 1) - 1, stays)),
        "nearest_away": tie.choose(1, stays),
    }[manner.rounding]
    y = (bits + step).floats()
    return y.is_zero().choose(x, y) if manner.rounding == "toward_negative" else y


def by_direction(toward, manner):
    """(rounded by the CPU as `manner` says, lanes where that is inexact): of what toward(direction) gives."""
    low, high = toward("down"), toward("up")
    made = {"toward_zero": lambda: toward("zero"), "to_odd": lambda: between(low, high)}
    made |= {"toward_positive": lambda: high, "toward_negative": lambda: low}
    return made[manner.rounding](), low.apart_from(high)


def rounds_by_direction(tile, manner):
    """Whether the CPU's instructions round in this direction."""
    return tile.directed and not manner.rounding.startswith("nearest")


def single_sum(tile, x, y, manner):
    """(x + y in float32, lanes where that is inexact)."""
    if rounds_by_direction(tile, manner):
        return by_direction(lambda direction: x.plus_toward(direction, y), manner)
    s, error = sum_and_error(x, y)
    if not manner.nearest:
        return rounded_single(s, error, ((x.bits() | y.bits()) & SIGN).floats(), manner), error.nonzero()
    if tile.directed:
        return s, x.plus_toward("down", y).apart_from(x.plus_toward("up", y))
    return s, error.differs(0.0) & (y.magnitude() < np.inf)  # of a sum that overflows it is NaN


def single_product(tile, a, b, manner):
    """(a * b in float32, lanes where that is inexact)."""
    if rounds_by_direction(tile, manner):
        return by_direction(lambda direction: a.times_toward(direction, b), manner)
    product = a * b
    error = a.double() * b.double() - product.double()
    return product if manner.nearest else rounded_single(product, error, product, manner), error.nonzero()


def single_fused(tile, a, b, c, manner):
    """(a * b + c in float32, lanes where that is inexact). Where the CPU has no directed roundings, by way of float64 unless the product is exact."""
    if rounds_by_direction(tile, manner):
        return by_direction(lambda direction: a.fused_toward(direction, b, c), manner)
    if tile.directed and manner.nearest:
        return a.fused(b, c), a.fused_toward("down", b, c).apart_from(a.fused_toward("up", b, c))
    if manner.family == "float32_of_narrow":
        return single_sum(tile, a * b, c, manner)
    product = a.double() * b.double()
    s, error = sum_and_error(product, c.double())
    if manner.nearest:
        after = a.fused(b, c)
        return after, error.nonzero() | after.double().apart_from(s)
    x = to_odd(s, error)
    after = x.single()
    signs = ((a * b).bits() | c.bits()) & SIGN
    return rounded_single(after, x - after.double(), signs.floats(), manner), x.apart_from(after.double())


def note_inexact(state, lost):
    """Lanes where something was inexact."""
    state[INEXACT] = lost.choose(state[INEXACT].bits() | 1, state[INEXACT].bits())


def single_fma_step(manner, watchful):
    """A float32 fused multiply-add."""

    def step(tile, row, state):
        state[VALUE], lost = single_fused(tile, tile.a(row), tile.b(), state[VALUE], manner)
        if watchful:
            note_inexact(state, lost)
        return state

    return step


def single_mul_add_step(manner, watchful):
    """A float32 product, a float32 sum."""

    def step(tile, row, state):
        product, rounded_off = single_product(tile, tile.a(row), tile.b(), manner)
        state[VALUE], lost = single_sum(tile, product, state[VALUE], manner)
        if watchful:
            note_inexact(state, rounded_off | lost)
        return state

    return step


STEPS = {
    ("fma", "half"): fma_step,
    ("fma", "bfloat16"): fma_step,
    ("fma", "narrow"): fma_step,
    ("fma", "float32"): single_fma_step,
    ("fma", "float32_of_narrow"): single_fma_step,
    ("mul_add", "half"): mul_add_step,
    ("mul_add", "bfloat16"): mul_add_step,
    ("mul_add", "narrow"): mul_add_step,
    ("mul_add", "float32"): single_mul_add_step,
    ("mul_add", "float32_of_narrow"): single_fma_step,
}
"""By operation and family of the format. "float32_of_narrow": products are exact in float32, so that rounding them changes nothing."""
