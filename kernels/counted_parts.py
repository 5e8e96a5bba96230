"""Counts of a sum's parts put together: what each part has counted, and the addition by which its sum joins the others."""

import numpy as np

from . import jit
from .jit import row
from .spec import INEXACT, OVERFLOW

SPAN = 1 << 10  # outputs whose counts stay in the CPU's first cache


@row
def _add(counts, more):
    for n in range(counts.size):
        counts[n] += more[n]


@row
def _add_flagged(counts, raised, flag):
    for n in range(counts.size):
        counts[n] += 1 if raised[n] & flag else 0


@row
def _add_swamped(counts, before, addend, after):
    for n in range(counts.size):
        counts[n] += 1 if (addend[n] != 0.0) & (abs(before[n]) < np.inf) & (after[n] == before[n]) else 0


@row
def _keep_least(least, more):
    for n in range(least.size):
        x = more[n]
        least[n] = x if (x < least[n]) | (least[n] != least[n]) else least[n]


@row
def _keep_greatest(greatest, more):
    for n in range(greatest.size):
        x = more[n]
        greatest[n] = x if (x > greatest[n]) | (greatest[n] != greatest[n]) else greatest[n]


@jit.once
def joined():
    """loop(first, last, before, addend, after, raised, found, spanned, counts, extremes): of outputs first ... last - 1.

    `before` and `addend`, numbers, became `after` and raised flags. `found`, (3, outputs), and `spanned`, (2, outputs), are what
    the part has counted whose sum is the addend, or have no outputs; counts and extremes take in both.
    """

    def joined_loop(first, last, before, addend, after, raised, found, spanned, counts, extremes):
        for start in range(first, last, SPAN):
            stop = min(start + SPAN, last)
            overflowed, inexact, swamped = counts[0, start:stop], counts[1, start:stop], counts[2, start:stop]
            least, greatest = extremes[0, start:stop], extremes[1, start:stop]
            if found.shape[1] > 0:
                _add(overflowed, found[0, start:stop])
                _add(inexact, found[1, start:stop])
                _add(swamped, found[2, start:stop])
                _keep_least(least, spanned[0, start:stop])
                _keep_greatest(greatest, spanned[1, start:stop])
            flags, results = raised[start:stop], after[start:stop]
            _add_flagged(overflowed, flags, OVERFLOW)
            _add_flagged(inexact, flags, INEXACT)
            _add_swamped(swamped, before[start:stop], addend[start:stop], results)
            _keep_least(least, results)
            _keep_greatest(greatest, results)

    return jit.compiled(joined_loop)
