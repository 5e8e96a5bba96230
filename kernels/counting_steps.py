"""Steps of a tile that count additions: those that overflowed, were inexact, or were swamped; and the least and greatest sum."""

import numpy as np

from .steps import (
    COUNT_BITS,
    COUNTS,
    GREATEST,
    IN_COUNTS,
    LEAST,
    LOWEST_BIT,
    NEAR_ZERO,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    SWAMPED,
    TIE,
)


def count(state, happened):
    """Count where something happened, in slots of their own or, where there is a slot for that, in one word."""
    for slot, lanes in happened.items():
        shared = COUNTS in state and slot in IN_COUNTS
        place = COUNTS if shared else slot
        counted = state[place].bits()
        one = 1 << LOWEST_BIT + COUNT_BITS[counted.element.width] * IN_COUNTS.index(slot) if shared else 1
        state[place] = counted + lanes.choose(counted.all_of(one), 0)


def counting_watches(stage):
    """The slots that these steps watch with, and the bits they begin with."""
    return dict.fromkeys((TIE, OVERFLOW) + (NEAR_ZERO,) * (stage.family == "narrow" or stage.daz), -1)


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
