"""Compensated sums rounded stochastically: every operation that the method names draws a random number of its own."""

from functools import cache
from typing import NamedTuple

from .accumulate import PRODUCT, RUNNING
from .arith import two_sum
from .compensated import operations
from .jit import kernel, referable, row, stand_alone
from .noise import drawing_many
from .one_by_one import note_inexact, product_to_draw, settling
from .redrawn import OPEN, has_subnormal, never, product_again, quickly, reading, sum_again
from .steps import SMALLEST, VALUE, drawn, random_number, sum_and_error, without_subnormals

ERRORS = SMALLEST
"""The slot in which such a sum keeps what it has lost."""
ADDITIONS = {"kahan": 4, "neumaier": 4, "two_term": 10}
"""Of a turn."""


class CompensatedDraws(NamedTuple):
    """A method, and its sums' family: "narrow", "float32", or "float32_of_narrow", where products are exact."""

    method: str
    family: str

    @property
    def additions(self):
        """Of a turn."""
        return ADDITIONS[self.method]


class _Sums:
    """The additions and the product of a turn, in the order of their random numbers; that of the product comes after the others."""

    def __init__(self, unit, tile, row, state, options, watchful):
        self.unit, self.tile, self.row, self.state = unit, tile, row, state
        self.options, self.watchful, self.done = options, watchful, 0

    def _rounded(self, s, error, number):
        noise = random_number(self.tile, self.row, number)
        if self.unit.family == "narrow":
            return drawn(self.tile, s, error, noise, self.state, self.options, self.watchful)
        if self.watchful:
            note_inexact(self.state, error.nonzero())
        return settling(self.tile, self.state, True)(s, error, noise)

    def product(self, a, b):
        """a * b, rounded."""
        number = self.unit.additions
        if self.unit.family == "narrow":
            return self._rounded(*product_to_draw(a, b, self.options), number)
        product = a * b
        if self.unit.family == "float32_of_narrow":
            return product
        return self._rounded(product, a.fused(b, product * -1.0), number)

    def plus(self, x, y):
        """x + y, rounded."""
        x, y = (without_subnormals(self.tile, number, self.options) for number in (x, y))
        self.done += 1
        return self._rounded(*sum_and_error(x, y), self.done - 1)

    total = close = exactly = plus


def drawn_step(unit):
    """A maker of steps; `options` are Draws."""

    def make(options, watchful):
        def step(tile, row, state):
            sums = _Sums(unit, tile, row, state, options, watchful)
            term = sums.product(tile.a(row), tile.b())
            state[VALUE], state[ERRORS] = operations(unit.method, state[VALUE], state[ERRORS], term, sums)
            return state

        return step

    return make


def drawing(unit):
    """What draws the random numbers of some turns, as `noise.drawing` does."""
    return drawing_many(RUNNING, unit.additions, PRODUCT)


def _turn(method, plus, term_of):
    """kernel(x, y, z, e, noises, output, step, known, target, width, key, stream) -> (sum, errors, flags): a turn of scalars.

    plus(x, y, number, noises, output, step, known, target, width, key, stream) adds, of a turn's additions the one of this number,
    and term_of(x, y, noises, ...) is the product; both tell what they have raised. `known` is what they know beside the target.
    """

    @kernel
    def kahan(x, y, z, e, noises, output, step, known, target, width, key, stream):
        term, raised = term_of(x, y, noises, output, step, known, target, width, key, stream)
        part, r0 = plus(term, -e, 0, noises, output, step, known, target, width, key, stream)
        total, r1 = plus(z, part, 1, noises, output, step, known, target, width, key, stream)
        e, r2 = plus(total, -z, 2, noises, output, step, known, target, width, key, stream)
        e, r3 = plus(e, -part, 3, noises, output, step, known, target, width, key, stream)
        return total, e, raised | r0 | r1 | r2 | r3

    @kernel
    def neumaier(x, y, z, e, noises, output, step, known, target, width, key, stream):
        term, raised = term_of(x, y, noises, output, step, known, target, width, key, stream)
        total, r0 = plus(z, term, 0, noises, output, step, known, target, width, key, stream)
        larger, smaller = (z, term) if abs(z) >= abs(term) else (term, z)
        part, r1 = plus(larger, -total, 1, noises, output, step, known, target, width, key, stream)
        part, r2 = plus(part, smaller, 2, noises, output, step, known, target, width, key, stream)
        e, r3 = plus(e, part, 3, noises, output, step, known, target, width, key, stream)
        return total, e, raised | r0 | r1 | r2 | r3

    @kernel
    def two_term(x, y, z, e, noises, output, step, known, target, width, key, stream):
        term, raised = term_of(x, y, noises, output, step, known, target, width, key, stream)
        first, r0 = plus(z, term, 0, noises, output, step, known, target, width, key, stream)
        part, r1 = plus(first, -z, 1, noises, output, step, known, target, width, key, stream)
        other, r2 = plus(first, -part, 2, noises, output, step, known, target, width, key, stream)
        rest, r3 = plus(term, -part, 3, noises, output, step, known, target, width, key, stream)
        part, r4 = plus(z, -other, 4, noises, output, step, known, target, width, key, stream)
        part, r5 = plus(part, rest, 5, noises, output, step, known, target, width, key, stream)
        part, r6 = plus(part, e, 6, noises, output, step, known, target, width, key, stream)
        total, r7 = plus(first, part, 7, noises, output, step, known, target, width, key, stream)
        other, r8 = plus(total, -first, 8, noises, output, step, known, target, width, key, stream)
        e, r9 = plus(part, -other, 9, noises, output, step, known, target, width, key, stream)
        return total, e, raised | r0 | r1 | r2 | r3 | r4 | r5 | r6 | r7 | r8 | r9

    return {"kahan": kahan, "neumaier": neumaier, "two_term": two_term}[method]


@cache
def again(unit, daz):
    """The turn of all random bits, whose `known` is the source that reads codes: as `redrawn.again`, of sums that keep errors."""
    read, additions, exact = reading(daz), unit.additions, unit.family == "float32_of_narrow"

    @row
    def plus(x, y, number, noises, output, step, source, target, width, key, stream):
        stand_alone()
        x, y = read(x, target), read(y, target)
        return sum_again(x, y, noises[number], output, step * additions + number, source, target, width, key, stream)

    @row
    def term_of(x, y, noises, output, step, source, target, width, key, stream):
        stand_alone()
        if exact:
            return x * y, 0
        return product_again(x * y, noises[additions], output, step, source, target, width, key, stream)

    plus, term_of = (referable(part, unit, daz) for part in (plus, term_of))
    return referable(_turn(unit.method, plus, term_of), unit, daz)


@cache
def quick_turn(unit, daz):
    """The turn of 16 random bits, whose `known` is the largest number; OPEN among the flags tells that these do not settle it."""
    additions, exact = unit.additions, unit.family == "float32_of_narrow"
    refuses = has_subnormal if daz else never

    @kernel
    def quick_plus(x, y, number, noises, output, step, largest, target, width, key, stream):
        total, raised = quickly(two_sum(x, y, target), noises[number], target, largest)
        return total, raised | (OPEN if refuses(x, y, target) else 0)

    @kernel
    def quick_term(x, y, noises, output, step, largest, target, width, key, stream):
        return (x * y, 0) if exact else quickly(x * y, noises[additions], target, largest)

    quick_plus, quick_term = (referable(part, unit, daz) for part in (quick_plus, quick_term))
    return referable(_turn(unit.method, quick_plus, quick_term), "quick", unit, daz)
