"""Steps of a tile that count additions: those that overflowed, were inexact, or were swamped; and the least and greatest sum."""

import numpy as np

from .steps import (
    BITS_OF_FLOAT32,
    COUNT_BITS,
    COUNTS,
    GREATEST,
    HALF_LARGEST,
    IN_COUNTS,
    LEAST,
    LOWEST_BIT,
    NEAR_ZERO,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    RUNNING,
    SWAMPED,
    TIE,
    UNDERFLOW,
    VALUE,
    block_sum,
    drawn_half,
    in_phases,
    split,
    stored_half,
    whole_block,
)


def count(state, happened):
    """Count where something happened, in slots of their own or, where there is a slot for that, in one word."""
    for slot, lanes in happened.items():
        shared = COUNTS in state and slot in IN_COUNTS
        place = COUNTS if shared else slot
        counted = state[place].bits()
        one = 1 << LOWEST_BIT + COUNT_BITS[counted.element.width] * IN_COUNTS.index(slot) if shared else 1
        state[place] = counted + lanes.choose(counted.all_of(one), 0)


def counting_watches(manner):
    """The slots that these steps watch with, and the bits they begin with."""
    return dict.fromkeys((TIE, OVERFLOW) + (NEAR_ZERO,) * (manner.family == "narrow" or manner.daz), -1)


def counted_addition(state, alive, before, lost, after, over=None, of_nan=False, changed=None):
    """Note an addition, as `accumulate.count_row` does, in lanes that are `alive`, whose sum was finite; None: in all.

    A sum that is rounded to what was there before has changed if bits were `lost`, unless `changed` says where. `of_nan`: infinities
    stand for NaN.
    """
    happened = {ROUNDED: lost, SWAMPED: (lost if changed is None else changed) & after.equals(before)}
    if over is not None:
        happened[OVERFLOWED] = over
    if alive is not None:
        happened = {slot: lanes & alive for slot, lanes in happened.items()}
    count(state, happened)
    note_extremes(state, after, of_nan, alive)


def note_extremes(state, after, of_nan, alive=None):
    """A sum, where it is the least or the greatest so far, in lanes that are `alive`; None: in all. `of_nan`: infinities stand for NaN."""
    less, more = after < state[LEAST], after > state[GREATEST]
    shown = after.magnitude() < np.inf if of_nan else alive
    if of_nan and alive is not None:
        shown = shown & alive
    if shown is not None:
        less, more = shown & less, shown & more
    state[LEAST] = less.choose(after, state[LEAST])
    state[GREATEST] = more.choose(after, state[GREATEST])


def counting_exact_step(block, blocks, stored, saturate, of_nan, careful=True):
    """The same sums, each rounding and each store looked at; what is inexact is counted. `of_nan`: overflows become NaN in the end.

    If not `careful`, no sum of a block loses a bit in float64, and none overflows.
    """

    def begun(tile, row, state):
        return state | {RUNNING: state[VALUE] + 0.0}

    def summed(number):
        def step(tile, row, state):
            before, products = state[RUNNING], range(number * block, (number + 1) * block)
            if careful:
                s = whole_block(tile, row, before, products)
                running, alive = s.single().double(), state[VALUE].magnitude() < np.inf
            else:
                s = before + block_sum(tile, row, products)
                running, alive = split(s, BITS_OF_FLOAT32), None
            counted_addition(state, alive, before, s.differs(running), running)
            return state | {RUNNING: running}

        return step

    def kept(tile, row, state):
        memory, running = state[VALUE], state[RUNNING]
        alive = memory.magnitude() < np.inf if careful else None
        if stored:
            own = state | {OVERFLOW: memory.all_of(0.0)}
            store = (tile, row, running) if stored == "drawn" else (running.single(),)
            after = (drawn_half if stored == "drawn" else stored_half)(*store, own, saturate and careful, False)
            if careful:
                over = own[OVERFLOW].bits().nonzero() if saturate else after.magnitude() > HALF_LARGEST
                state[UNDERFLOW] = alive.choose(own[UNDERFLOW].bits(), state[UNDERFLOW].bits())
                counted_addition(state, alive, memory, running.differs(after), after, over, of_nan)
                if saturate:
                    state[OVERFLOW] = state[OVERFLOW].bits() | own[OVERFLOW].bits()
            else:
                state[UNDERFLOW] = own[UNDERFLOW]
                counted_addition(state, None, memory, running.differs(after), after)
            running = after
        state[VALUE] = alive.choose(running, memory) if careful else running
        return state

    return in_phases(begun, *(summed(number) for number in range(blocks)), kept)
