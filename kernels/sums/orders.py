"""Orders: which operation meets which. Each is written once, in the words of `arithmetics`, and knows nothing of roundings, random
numbers, counts, layouts or machines."""

from collections.abc import Callable
from typing import NamedTuple

from ..accumulate import PRODUCT, RUNNING
from ..steps import VALUE, in_pairs

SUBTREE = 8
"""Products of a subtree: as many as a block of random numbers has roundings."""
LONG_SUBTREE = 32
"""Where nothing is drawn."""


class Piece(NamedTuple):
    """Code of one kind of turn: step(m, state) takes so many products, and so many random numbers of each site."""

    step: Callable
    products: int
    numbers: dict[int, int]


class Order(NamedTuple):
    """What goes from turn to turn; and a subtree, a leaf and a join of what these add up to."""

    slots: tuple[int, ...]
    subtree: Piece
    leaf: Piece
    join: Piece
    multiplies: bool


def _tree(leaves, multiplies):
    """So many leaves added in pairs: products, or numbers of the format."""

    def step(m, state):
        def leaf(place):
            return m.product(*m.operands(place)) if multiplies else m.operand(place)

        state[VALUE] = in_pairs(leaves, leaf, lambda x, y, _: m.total(x, y))

    return Piece(step, leaves, {RUNNING: leaves - 1, PRODUCT: leaves * multiplies})


def _join(m, state):
    state[VALUE] = m.total(m.below(), state[VALUE])


def _pairwise(multiplies):
    def order(draws):
        whole, leaf = (_tree(leaves, multiplies) for leaves in (SUBTREE if draws else LONG_SUBTREE, 1))
        return Order((VALUE,), whole, leaf, Piece(_join, 0, {RUNNING: 1, PRODUCT: 0}), multiplies)

    return order


ORDERS = {"pairwise": _pairwise(multiplies=True), "pairwise_of_numbers": _pairwise(multiplies=False)}
"""Name -> order(whether anything is drawn)."""
