"""Layouts: where the operands of a tile's outputs lie in panels, product after product."""

from typing import NamedTuple


class Strides(NamedTuple):
    """How far it is in a panel to the next product, row and column."""

    product: int
    row: int
    column: int


class Grid:
    """A row of outputs has a number of a, a column one of b."""

    @staticmethod
    def strides(rows, lanes):
        """Those of a and of b."""
        return Strides(rows, 1, 0), Strides(lanes, 0, 1)

    @staticmethod
    def tile(unit, panels, tiles):
        """(product, row, column) of a tile among those of each product, by its number; the tiles of a product follow those of another."""
        within = unit % tiles
        return unit // tiles, within % panels, within // panels

    @staticmethod
    def panels(i, j):
        """The panels of a and of b that a tile takes."""
        return i, j


class Own:
    """Every output has operands of its own, and tiles follow one another."""

    @staticmethod
    def strides(rows, lanes):
        """Those of a and of b."""
        own = Strides(rows * lanes, lanes, 1)
        return own, own

    @staticmethod
    def tile(unit, panels, tiles):
        """(product, row, column) of a tile, by its number."""
        return unit * 0, unit, unit * 0

    @staticmethod
    def panels(i, j):
        """The panels of a and of b that a tile takes."""
        return i, i


class Shared(Own):
    """The same, but that all have the second operand in common."""

    @staticmethod
    def strides(rows, lanes):
        """Those of a and of b."""
        return Own.strides(rows, lanes)[0], Strides(1, 0, 0)

    @staticmethod
    def panels(i, j):
        """The panels of a and of b that a tile takes."""
        return i, j


class Lone(Own):
    """There is one output, in every lane."""

    @staticmethod
    def strides(rows, lanes):
        """Those of a and of b."""
        one = Strides(1, 0, 0)
        return one, one


LAYOUTS = {"grid": Grid, "own": Own, "few": Own, "shared": Shared, "lone": Lone}
