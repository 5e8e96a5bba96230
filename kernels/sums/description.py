"""What is summed, and how: the value that a loop is made from. Nothing here knows of loops."""

from typing import NamedTuple

from ..steps import Stage


class Sum(NamedTuple):
    """An order, how it rounds, whether additions are counted, and how operands and outputs lie."""

    order: str
    stage: Stage
    counts: bool
    layout: str
    rows: int
    lanes: int
    reading: str = ""
    """Of codes "half" or "bfloat16", which operands of outputs' own lie there as; else they are numbers."""

    coded: str = ""
    """Results are codes, of "half", "bfloat16", or "number", which is float32; else they are numbers."""

    @property
    def draws(self):
        """Whether anything rounds stochastically."""
        return self.stage.draws

    @property
    def cells(self):
        """Outputs of a tile."""
        return self.rows * self.lanes
