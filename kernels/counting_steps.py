"""Steps of a tile that count additions: those that overflowed, were inexact, or were swamped; and the least and greatest sum."""

import numpy as np

from .quick_steps import quickly, round_half_bits, watch_half, watch_subnormal
from .steps import (
    COUNT_BITS,
    COUNTS,
    GREATEST,
    HALF_LARGEST,
    IN_COUNTS,
    INEXACT,
    LEAST,
    LEFT_OPEN,
    NEAR_ZERO,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    RUNNING,
    SWAMPED,
    TIE,
    UNDERFLOW,
    VALUE,
    bounded,
    drawn,
    drawn_half,
    exact_fma,
    exact_sum,
    in_phases,
    random_number,
    rounded,
    stored_half,
    sum_and_error,
    whole_block,
    without_subnormals,
)


def count(state, happened):
    """Count where something happened, in slots of their own or, where there is a slot for that, in one word."""
    for slot, lanes in happened.items():
        shared = COUNTS in state and slot in IN_COUNTS
        place = COUNTS if shared else slot
        counted = state[place].bits()
        one = 1 << COUNT_BITS[counted.element.width] * IN_COUNTS.index(slot) if shared else 1
        state[place] = counted + lanes.choose(counted.all_of(one), 0)


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
        inexact = over | (state[VALUE] - x).nonzero()  # never of NaN, nor of equal infinities
        count(state, {OVERFLOWED: over, ROUNDED: inexact, SWAMPED: x.differs(before) & after.equals(before)})
        state[LEAST] = (after < state[LEAST]).choose(after, state[LEAST])
        state[GREATEST] = (after > state[GREATEST]).choose(after, state[GREATEST])
        return state

    return step


def quick_counting_step(operation, manner):
    """The same, of numbers that are neither tiny nor overflow: these are watched for. Counts are in one word of COUNTS."""

    def quick(tile, x, state):
        if manner.family == "half" and manner.nearest:
            watch_half(x.bits() | 1, state)
            return round_half_bits(x)
        return quickly(tile, x, state, manner._replace(noted=True), True)

    def step(tile, row, state):
        before = state[VALUE]
        watch_subnormal(tile, before, state, manner)
        if operation == "fma":
            x = exact_fma(tile, tile.a(row), tile.b(), before, manner)
        else:
            product = tile.a(row) * tile.b()
            term = quick(tile, product, state)
            watch_subnormal(tile, term, state, manner)
            count(state, {INEXACT: term.apart_from(product)})
            x = exact_sum(tile, term, before, manner)
        after = quick(tile, x, state)
        state[VALUE] = after
        inexact = after.apart_from(x)
        count(state, {ROUNDED: inexact, SWAMPED: inexact & after.equals(before)})
        state[LEAST] = (after < state[LEAST]).choose(after, state[LEAST])
        state[GREATEST] = (after > state[GREATEST]).choose(after, state[GREATEST])
        return state

    return step


def drawn_counting_step(operation, saturate):
    """Multiply-adds rounded stochastically; what 16 random bits leave open is told, as `steps.drawn` does. Counts are in one word of COUNTS."""
    options = saturate, False

    def step(tile, row, state):
        before, product = state[VALUE], tile.a(row) * tile.b()
        nothing, happened = before.all_of(0.0), {}
        if operation == "mul_add":
            own = state | {INEXACT: nothing}
            product = drawn(tile, product, None, random_number(tile, row, 1), own, options, True)
            happened[INEXACT] = own.pop(INEXACT).bits().nonzero()
            state |= own
        s, error = sum_and_error(product, before)
        own = state | {INEXACT: nothing, OVERFLOW: nothing}
        after = drawn(tile, s, error, random_number(tile, row), own, options, True)
        alive = s.magnitude() < np.inf
        over = own[OVERFLOW].bits().nonzero() if saturate else after.magnitude() > tile.parameter("largest")
        over = over & alive
        lost, changed = own[INEXACT].bits(), s.differs(before) | error.nonzero()
        for slot in (UNDERFLOW, LEFT_OPEN):
            state[slot] = own[slot]
        if saturate:
            state[OVERFLOW] = state[OVERFLOW].bits() | own[OVERFLOW].bits()
        happened[ROUNDED], happened[OVERFLOWED] = alive & (over | lost.nonzero()), over
        happened[SWAMPED] = alive & changed & after.equals(before)
        count(state, happened)
        state[VALUE] = after
        state[LEAST] = (after < state[LEAST]).choose(after, state[LEAST])
        state[GREATEST] = (after > state[GREATEST]).choose(after, state[GREATEST])
        return state

    return step


def counting_watches(manner):
    """The slots that these steps watch with."""
    return (TIE, OVERFLOW) + (NEAR_ZERO,) * (manner.family == "narrow" or manner.daz)


def counted_addition(state, alive, before, exact, after, over=None, of_nan=False):
    """Note an addition, as `accumulate.count_row` does, in lanes whose sum was finite. `of_nan`: infinities stand for NaN."""
    happened = {ROUNDED: exact.differs(after), SWAMPED: exact.differs(before) & after.equals(before)}
    if over is not None:
        happened[OVERFLOWED] = over
    count(state, {slot: lanes & alive for slot, lanes in happened.items()})
    shown = alive & (after.magnitude() < np.inf) if of_nan else alive
    state[LEAST] = (shown & (after < state[LEAST])).choose(after, state[LEAST])
    state[GREATEST] = (shown & (after > state[GREATEST])).choose(after, state[GREATEST])


def counting_exact_step(block, blocks, stored, saturate, of_nan):
    """The same sums with care, each rounding and each store looked at; what is inexact is counted. `of_nan`: overflows become NaN in the end."""

    def begun(tile, row, state):
        return state | {RUNNING: state[VALUE] + 0.0}

    def summed(number):
        def step(tile, row, state):
            before = state[RUNNING]
            s = whole_block(tile, row, before, range(number * block, (number + 1) * block))
            running = s.single().double()
            counted_addition(state, state[VALUE].magnitude() < np.inf, before, s, running)
            return state | {RUNNING: running}

        return step

    def kept(tile, row, state):
        memory, running = state[VALUE], state[RUNNING]
        alive = memory.magnitude() < np.inf
        if stored:
            own = state | {OVERFLOW: memory.all_of(0.0)}
            store = (tile, row, running) if stored == "drawn" else (running.single(),)
            after = (drawn_half if stored == "drawn" else stored_half)(*store, own, saturate, False)
            over = own[OVERFLOW].bits().nonzero() if saturate else after.magnitude() > HALF_LARGEST
            state[UNDERFLOW] = alive.choose(own[UNDERFLOW].bits(), state[UNDERFLOW].bits())
            if saturate:
                state[OVERFLOW] = state[OVERFLOW].bits() | own[OVERFLOW].bits()
            counted_addition(state, alive, memory, running, after, over, of_nan)
            running = after
        state[VALUE] = alive.choose(running, memory)
        return state

    return in_phases(begun, *(summed(number) for number in range(blocks)), kept)
