"""What is summed, and how: the value that a loop is made from. Nothing here knows of loops."""

from typing import NamedTuple

from ..steps import Stage


class Join(NamedTuple):
    """How sums of segments or chains are added up in the loop."""

    stage: Stage
    scaling: str = ""
    """As `Reduction.scaling` has it; empty: they are no more than added."""
    late: bool = False
    """The total begins with the first of them, and what sums begin with comes last: of chains."""


class Sum(NamedTuple):
    """An order, how it rounds, whether additions are counted, and how operands and outputs lie."""

    order: str
    stage: Stage
    counts: bool
    layout: str
    rows: int
    lanes: int
    joins: Join | None = None
    """None: there is one segment."""

    @property
    def draws(self):
        """Whether anything rounds stochastically."""
        return self.stage.draws

    @property
    def cells(self):
        """Outputs of a tile."""
        return self.rows * self.lanes
