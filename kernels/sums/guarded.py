"""The words of an order where operands, or what sums begin with, may be infinite or NaN: an arithmetic rounds finite results of numbers, and says
what comes of that. All others are what the CPU makes of them, exact, and raise nothing but INVALID."""

from functools import cache, partial, reduce
from operator import and_

import numpy as np

from ..steps import INVALID, OVERFLOW, UNDERFLOW


def note(state, slot, lanes):
    """That something happened in some lanes."""
    bits = state[slot].bits()
    state[slot] = lanes.choose(bits | 1, bits)


def guard(state, before, rounds, found, native, kept=()):
    """What was `found` in lanes that round, and where not what is `native`; the state has what happened in these, since it was as `before`, but
    for slots that are `kept`."""
    for slot, bits in before.items():
        after = state[slot]
        if after is not bits and slot not in kept:
            floats = after.is_float and bits.is_float
            state[slot] = rounds.choose(*(x if floats else x.bits() for x in (after, bits)))
    return rounds.choose(found, native)


class Guard:
    """What stands before an arithmetic."""

    def _guarded(self, word, native, *operands, invalid=None):
        """What a word gives of operands that the CPU makes `native` of. Its flags are those of lanes that it rounds; `invalid` says more of these."""
        before, state = dict(self.state), self.state
        found = word()
        rounds = native.magnitude() < np.inf
        if self.stage.native:  # which may overflow by the CPU's own rounding
            rounds = reduce(and_, (x.magnitude() < np.inf for x in operands))
        kept = () if self.stage.draws else (UNDERFLOW,)  # nothing that is infinite or NaN is tiny
        found = guard(state, before, rounds, found, native, kept)
        if self.stage.native:
            note(state, OVERFLOW, rounds & (found.magnitude() >= np.inf))
        *_, x, y = operands
        of_sum = native.differs(native) & x.equals(x) & y.equals(y)
        note(state, INVALID, of_sum if invalid is None else of_sum | invalid)
        return found

    def _shown(self, found):
        """A sum, which observers see whatever it is."""
        self.observer.sum(self.state, self.read(found))
        return found

    def product(self, a, b):
        """a * b, rounded."""
        return self._guarded(partial(super().product, a, b), a * b, a, b)

    def total(self, x, y):
        """x + y, rounded, which is the sum."""
        return self._shown(self._guarded(partial(super().total, x, y), x + y, x, y))

    def fused(self, a, b, c):
        """a * b + c, rounded once, which is the sum. An invalid product is one whatever it is added to."""
        product = a * b
        invalid = product.differs(product) & a.equals(a) & b.equals(b)
        word = partial(super().fused, a, b, c)
        return self._shown(self._guarded(word, product + c, a, b, product, c, invalid=invalid))

    def plus(self, x, y):
        """x + y, rounded."""
        return self._guarded(partial(super().plus, x, y), x + y, x, y)

    def exactly(self, x, y):
        """x + y, a number of the format."""
        return self._guarded(partial(super().exactly, x, y), x + y, x, y)


@cache
def guarded(arithmetic):
    """An arithmetic behind a guard."""
    return type("Guarded" + arithmetic.__name__, (Guard, arithmetic), {})
