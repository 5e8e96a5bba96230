"""Layouts: where the operands of a tile's outputs lie in panels, product after product."""

from typing import NamedTuple


class Grid:
    """A row of outputs has a number of a, a column one of b."""

    class Strides(NamedTuple):
        """How far it is in a panel to the next product, row and column."""

        product: int
        row: int
        column: int

    @classmethod
    def strides(cls, rows, lanes):
        """Those of a and of b."""
        return cls.Strides(rows, 1, 0), cls.Strides(lanes, 0, 1)

    @staticmethod
    def tile(unit, panels):
        """(row panel, column panel) of a tile's number."""
        return unit % panels, unit // panels

    @staticmethod
    def panels_of(i, j):
        """The panels of a and of b that a tile takes."""
        return i, j


class Own(Grid):
    """Every output has operands of its own."""

    @classmethod
    def strides(cls, rows, lanes):
        own = cls.Strides(rows * lanes, lanes, 1)
        return own, own

    @staticmethod
    def tile(unit, panels):
        return unit, unit * 0

    @staticmethod
    def panels_of(i, j):
        return i, i


LAYOUTS = {"grid": Grid, "own": Own}
