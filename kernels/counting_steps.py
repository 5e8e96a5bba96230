"""Steps of a tile that count additions: those that overflowed, were inexact, or were swamped; and the least and greatest sum."""

import numpy as np

from .steps import (
    GREATEST,
    HALF_LARGEST,
    INEXACT,
    LEAST,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    SWAMPED,
    UNDERFLOW,
    VALUE,
    bounded,
    drawn_half,
    exact_fma,
    exact_sum,
    rounded,
    stored_half,
    whole_block,
    without_subnormals,
)


def counting_step(operation, manner):
    """The same additions, each looked at as `accumulate.count_row` does."""

    def step(tile, row, state):
        before = without_subnormals(tile, state[VALUE], manner)
        if operation == "fma":
            x = exact_fma(tile, tile.a(row), tile.b(), before, manner)
        else:
            product = rounded(tile, tile.a(row) * tile.b(), state, manner, True)
            x = exact_sum(tile, without_subnormals(tile, product, manner), before, manner)
        unbounded = rounded(tile, x, state, manner, True, may_underflow=operation == "fma" or manner.ftz, bound=False)
        state[VALUE] = bounded(tile, unbounded, state, manner)
        after = without_subnormals(tile, state[VALUE], manner)
        over = (unbounded.magnitude() > tile.parameter("largest")) & (x.magnitude() < np.inf)
        happened = {
            OVERFLOWED: over,
            ROUNDED: over | (state[VALUE] - x).nonzero(),  # never of NaN, nor of equal infinities
            SWAMPED: x.differs(before) & after.equals(before),
        }
        for slot, lanes in happened.items():
            count = state[slot].bits()
            state[slot] = lanes.choose(count + 1, count)
        state[LEAST] = (after < state[LEAST]).choose(after, state[LEAST])
        state[GREATEST] = (after > state[GREATEST]).choose(after, state[GREATEST])
        return state

    return step


def counted_addition(state, alive, before, exact, after, over=None, of_nan=False):
    """Note an addition, as `accumulate.count_row` does, in lanes whose sum was finite. `of_nan`: infinities stand for NaN."""
    rounded_ = exact.differs(after)
    happened = {OVERFLOWED: over, ROUNDED: rounded_, SWAMPED: exact.differs(before) & after.equals(before)}
    for slot, lanes in happened.items():
        if lanes is not None:
            count = state[slot].bits()
            state[slot] = (lanes & alive).choose(count + 1, count)
    shown = alive & (after.magnitude() < np.inf) if of_nan else alive
    state[LEAST] = (shown & (after < state[LEAST])).choose(after, state[LEAST])
    state[GREATEST] = (shown & (after > state[GREATEST])).choose(after, state[GREATEST])


def counting_exact_step(block, blocks, stored, saturate, of_nan):
    """The same sums with care, each rounding and each store looked at. `of_nan`: overflows become NaN in the end."""

    def step(tile, row, state):
        memory = state[VALUE]
        alive = memory.magnitude() < np.inf
        running = memory + 0.0
        for number in range(blocks):
            before = running
            s = whole_block(tile, row, running, range(number * block, (number + 1) * block))
            single = s.single()
            running = single.double()
            state[INEXACT] = alive.choose(state[INEXACT].bits() | (running.bits() ^ s.bits()), state[INEXACT].bits())
            counted_addition(state, alive, before, s, running)
        if stored:
            own = state | {OVERFLOW: state[OVERFLOW].all_of(0.0)}
            store = (tile, row, running) if stored == "drawn" else (single,)
            after = (drawn_half if stored == "drawn" else stored_half)(*store, own, saturate, True)
            over = own[OVERFLOW].bits().nonzero() if saturate else after.magnitude() > HALF_LARGEST
            for slot in (INEXACT, UNDERFLOW):
                state[slot] = alive.choose(own[slot].bits(), state[slot].bits())
            if saturate:
                state[OVERFLOW] = state[OVERFLOW].bits() | own[OVERFLOW].bits()
            counted_addition(state, alive, memory, running, after, over, of_nan)
            running = after
        state[VALUE] = alive.choose(running, memory)
        return state

    return step
