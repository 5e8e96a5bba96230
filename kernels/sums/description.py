"""What is summed, and how: the value that a loop is made from. Nothing here knows of loops."""

from typing import NamedTuple

from ..steps import Draws, Manner

STOCHASTIC, EITHER = "stochastic", "up_or_down"


class Stage(NamedTuple):
    """How products and sums round."""

    family: str
    """Of formats: "half", "bfloat16", "narrow", "float32", "float64", "float64_shorter", which have fewer bits than that; of float32
    "float32_of_narrow", where products are exact."""
    rounding: str = "nearest_even"
    noted: bool = False
    """An overflow becomes a finite number."""
    daz: bool = False
    ftz: bool = False
    of_nan: bool = False
    """Infinities stand for NaN, which is no least and no greatest sum."""
    wide: bool = False
    """Products have more bits than float32."""

    @property
    def draws(self):
        """Whether random numbers decide."""
        return self.rounding in (STOCHASTIC, EITHER)

    @property
    def either(self):
        """Whether one bit does, of all that is not exact."""
        return self.rounding == EITHER

    @property
    def native(self):
        """Whether sums are numbers of float32 or float64 in a range where nothing is tiny, and overflows are the CPU's, or none."""
        return self.family.startswith("float")

    @property
    def double(self):
        """Whether they are float64, or a part of it."""
        return self.family.startswith("float64")

    @property
    def keeps_errors(self):
        """Whether what an addition loses is a number of the format: to nearest, where nothing is flushed (Knuth's and Dekker's sums)."""
        return self.rounding == "nearest_even" and not (self.daz or self.ftz)

    @property
    def rounds_products(self):
        """Whether products are rounded: float32 has those that are not wide."""
        return self.wide or not self.native

    @property
    def manner(self):
        """As `steps` know it."""
        return Manner(*self)

    @property
    def options(self):
        """As `steps` know one that draws."""
        return Draws(self.noted, self.daz, self.ftz, self.wide, self.either)


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
