"""Layouts: where the operands of a tile's outputs lie in panels, product after product."""

from collections.abc import Callable
from typing import NamedTuple


class Strides(NamedTuple):
    """How far it is in a panel to the next product, row and column."""

    product: int
    row: int
    column: int


class Layout(NamedTuple):
    """The strides of a and of b, by rows and lanes of a tile; whether tiles are those of a grid, and whether tiles in a column have b in common.

    Of a grid a row of outputs has a number of a, a column one of b. Else outputs follow one another.
    """

    strides: Callable[[int, int], tuple[Strides, Strides]]
    grid: bool = False
    shared: bool = False

    def tile(self, unit, panels, tiles):
        """(product, row, column) of a tile among those of each product, by its number; the tiles of a product follow those of another."""
        if not self.grid:
            return unit * 0, unit, unit * 0
        within = unit % tiles
        return unit // tiles, within % panels, within // panels

    def panels(self, i, j):
        """The panels of a and of b that a tile takes."""
        return i, j if self.shared else i


def _own(rows, lanes):
    return Strides(rows * lanes, lanes, 1)


ONE = Strides(1, 0, 0)
"""Of what all outputs have in common."""
OWN = Layout(lambda rows, lanes: (_own(rows, lanes),) * 2)
LAYOUTS = {
    "grid": Layout(lambda rows, lanes: (Strides(rows, 1, 0), Strides(lanes, 0, 1)), grid=True, shared=True),
    "own": OWN,
    "few": OWN,
    "shared": Layout(lambda rows, lanes: (_own(rows, lanes), ONE), shared=True),
    "lone": Layout(lambda rows, lanes: (ONE, ONE)),
}
"""Every output has operands of its own, but for a "grid", those that have b in common, and a "lone" one, in every lane."""
