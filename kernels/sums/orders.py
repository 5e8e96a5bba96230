"""Orders: which operation meets which. Each is written once, in the words of `arithmetics`, and knows nothing of roundings, random
numbers, counts, layouts or machines."""

from collections.abc import Callable
from typing import NamedTuple

from ..accumulate import PRODUCT, RUNNING
from ..steps import COUNTED_SLOTS, ROUNDED, SWAMPED, VALUE, in_pairs

ERRORS = COUNTED_SLOTS
"""The slot in which a compensated sum keeps what it has lost."""
LATER, BEYOND = ROUNDED, SWAMPED
"""Those of exact sums, which are not counted: a third part, and bits of what even that loses."""
SUBTREE = 8
"""Products of a subtree: as many as a block of random numbers has roundings."""
LONG_SUBTREE = 32
"""Where nothing is drawn."""


class Piece(NamedTuple):
    """Code of one kind of turn: step(m, state) takes so many products, and so many random numbers of each site; a join `goes_on` with slots."""

    step: Callable
    products: int
    numbers: dict[int, int]
    goes_on: tuple[int, ...] = ()


class Order(NamedTuple):
    """What goes from turn to turn; a subtree, a leaf and a join of what these add up to; of sums `in_order` one turn stands for all three."""

    slots: tuple[int, ...]
    subtree: Piece
    leaf: Piece
    join: Piece
    multiplies: bool = True
    in_order: bool = False
    together: int = 1
    """Rows of a tile that are written side by side where roundings draw, so that the CPU need not wait for one; else all are."""
    fuses: bool = False
    """Products go into the sum as they are."""
    last: Piece | None = None
    """What is done once, after all turns."""

    @property
    def compensates(self):
        """Whether what is lost is kept, to make up for it."""
        return ERRORS in self.slots

    @property
    def exact(self):
        """Whether nothing is rounded before the end."""
        return BEYOND in self.slots


def _tree(leaves, multiplies):
    """So many leaves added in pairs: products, or numbers of the format."""

    def step(m, state):
        def leaf(place):
            return m.product(*m.operands(place)) if multiplies else m.operand(place)

        state[VALUE] = in_pairs(leaves, leaf, lambda x, y, _: m.total(x, y))

    return Piece(step, leaves, {RUNNING: leaves - 1, PRODUCT: leaves * multiplies})


def _join(m, state):
    state[VALUE] = m.total(m.below(), state[VALUE])


JOIN = Piece(_join, 0, {RUNNING: 1, PRODUCT: 0}, (VALUE,))


def _pairwise(multiplies):
    def order(draws):
        whole, leaf = (_tree(leaves, multiplies) for leaves in (SUBTREE if draws else LONG_SUBTREE, 1))
        return Order((VALUE,), whole, leaf, JOIN, multiplies)

    return order


def _fma(m, state):
    state[VALUE] = m.fused(*m.operands(0), state[VALUE])


def _mul_add(m, state):
    state[VALUE] = m.total(state[VALUE], m.product(*m.operands(0)))


def _kahan(m, state):
    s, part = state[VALUE], m.plus(m.product(*m.operands(0)), -state[ERRORS])
    state[VALUE] = m.total(s, part)
    state[ERRORS] = m.plus(m.plus(state[VALUE], -s), -part)


def _neumaier(m, state):
    s, term = state[VALUE], m.product(*m.operands(0))
    state[VALUE] = m.total(s, term)
    first = s.magnitude() >= term.magnitude()
    larger, smaller = first.choose(s, term), first.choose(term, s)
    state[ERRORS] = m.plus(state[ERRORS], m.exactly(m.exactly(larger, -state[VALUE]), smaller))


def _two_term(m, state):
    s, term = state[VALUE], m.product(*m.operands(0))
    first = m.plus(s, term)
    part = m.plus(first, -s)
    other, rest = m.close(first, -part), m.exactly(term, -part)
    part = m.plus(m.exactly(m.exactly(s, -other), rest), state[ERRORS])
    state[VALUE] = m.total(first, part)
    state[ERRORS] = m.plus(part, -m.plus(state[VALUE], -first))


def _exact(m, state):
    product, least = m.product_in_parts(*m.operands(0))
    state[VALUE], lost = m.in_parts(state[VALUE], product)
    s, less = m.in_parts(state[ERRORS], least)
    state[ERRORS], least = m.in_parts(s, lost)
    s, lost = m.in_parts(state[LATER], less)
    state[LATER], less = m.in_parts(s, least)
    state[BEYOND] = state[BEYOND].bits() | lost.bits() << 1 | less.bits() << 1


def _round_exact(m, state):
    state[VALUE] = m.joined(*(state[slot] for slot in (VALUE, ERRORS, LATER, BEYOND)))


ADDITIONS = {"kahan": 4, "neumaier": 4, "two_term": 10}
"""Of a turn of a compensated sum."""


def _add(m, state):
    state[VALUE] = m.total(state[VALUE], m.operand(0))


def _add_errors(m, state):
    state[VALUE] = m.plus(state[VALUE], state[ERRORS])


LAST, LAST_OF_EXACT = (Piece(step, 0, {RUNNING: 1, PRODUCT: 0}) for step in (_add_errors, _round_exact))
PARTS = VALUE, ERRORS


def _in_order(step, additions=1, together=8, fuses=False, multiplies=True, last=None, slots=(VALUE,)):
    def order(draws):
        turn = Piece(step, 1, {RUNNING: additions, PRODUCT: int(multiplies and not fuses)})
        return Order(slots, turn, turn, turn, multiplies, in_order=True, together=together, fuses=fuses, last=last)

    return order


ORDERS = {
    "pairwise": _pairwise(multiplies=True),
    "pairwise_of_numbers": _pairwise(multiplies=False),
    "fma": _in_order(_fma, fuses=True),
    "mul_add": _in_order(_mul_add),
    "add": _in_order(_add, multiplies=False),
    "kahan": _in_order(_kahan, ADDITIONS["kahan"], 4, slots=PARTS),
    "neumaier": _in_order(_neumaier, ADDITIONS["neumaier"], 4, last=LAST, slots=PARTS),
    "two_term": _in_order(_two_term, ADDITIONS["two_term"], 2, slots=PARTS),
    "exact": _in_order(_exact, fuses=True, last=LAST_OF_EXACT, slots=(*PARTS, LATER, BEYOND)),
}
"""Name -> order(whether anything is drawn)."""
