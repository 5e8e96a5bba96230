"""Steps of factorizations: sums of products that start from a number, and how many of them are taken at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, fma, mul_add
from softfloat.arrays.softarray import SoftArray, evaluated, wrapped
from softfloat.arrays.sums import accumulator_for
from softfloat.bits.sums import check_accumulator
from softfloat.checks import check_whole
from softfloat.engine import Codes
from softfloat.environments import current_environment

PIECE = 64  # products in one sum, where an accumulator's bits depend on how many there are
OUTER, INNER = 64, 8  # rows and columns of blocks, where they do not: to be quick


class Steps:
    """c + a @ b in one format, as the environment in force rounds and sums.

    Parameters
    ----------
    x : SoftArray
        Of the format.
    name : str
        Of the function, for messages and traps.
    block : int, optional
        Products in one sum.
    accumulator : Accumulator, optional
        The environment's unless given.

    Attributes
    ----------
    single : bool
        Whether products are added one at a time and every sum is rounded to the format: then no bit depends on `block`.
    """

    def __init__(
        self, x: SoftArray, name: str, block: int | None = None, accumulator: Accumulator | None = None
    ) -> None:
        fmt = x.format
        if not fmt.zero or not fmt.signed:
            raise TypeError(f"{name} needs a format with zero and negative numbers, got {fmt}; astype() converts")
        if current_environment().position is not None:
            raise ValueError(f"{name} takes no block of a larger array; accepted: an environment without position")
        self.fmt, self.name = fmt, name
        self.how = accumulator_for(fmt) if accumulator is None else check_accumulator(accumulator)
        self.fused = self.how == fma(fmt)
        self.single = self.fused or self.how == mul_add(fmt)
        self.block = None if block is None else check_whole("block", block, 1)

    def width(self, size: int) -> int:
        """Rows or columns of the blocks that `size` of them are cut into; `size` where they are not."""
        if not self.single:
            return self.block or PIECE
        limit = OUTER if self.block is None else self.block
        return min(limit, size) if size > limit else min(INNER, size)

    def whole(self, size: int) -> bool:
        """Whether `size` rows or columns are done one after the other."""
        return size <= (min(INNER, self.block or INNER) if self.single else self.block or PIECE)

    def added(self, c: Codes, a: Codes, b: Codes) -> Codes:
        """c + a @ b of matrices: each element one sum, which starts from c."""
        if self.how.partials != self.fmt:
            c = evaluated(self.name, bits.convert, c, self.fmt, self.how.partials)
        return np.asarray(evaluated(self.name, bits.matmul, a, b, self.fmt, self.how, c, out_format=self.fmt))

    def outer_added(self, c: Codes, column: Codes, row: Codes) -> Codes:
        """c + column * row, of the shape of c; for `single` arithmetic, and the bits of `added`."""
        x, y = spread(column[:, None], c.shape), spread(row, c.shape)
        c = np.ascontiguousarray(c)
        if self.fused:
            return np.asarray(evaluated(self.name, bits.fma, x, y, c, self.fmt))
        return (wrapped(c, self.fmt) + wrapped(x, self.fmt) * wrapped(y, self.fmt)).codes

    def product(self, a: Codes, b: Codes) -> Codes:
        """The product of two matrices."""
        return np.asarray(evaluated(self.name, bits.matmul, a, b, self.fmt, self.how, out_format=self.fmt))

    def divided(self, x: Codes, y: Any) -> Codes:
        """x / y of codes; y of one element, or of the shape of x."""
        return (wrapped(np.ascontiguousarray(x), self.fmt) / wrapped(spread(y, x.shape), self.fmt)).codes

    def negated(self, x: Codes) -> Codes:
        """Numbers of the other sign."""
        return np.asarray(bits.negative(x, self.fmt))

    def magnitudes(self, x: Codes) -> np.ndarray[Any, Any]:
        """Absolute values, exact in float64; -1 for NaN, which no pivot is unless there is nothing else."""
        found = np.abs(np.asarray(bits.decode(x, self.fmt)))
        found[np.isnan(found)] = -1.0
        return found


def spread(x: Any, shape: tuple[int, ...]) -> Codes:
    """Codes over and over in a shape: loops take operands of one shape at once."""
    x = np.asarray(x)
    found = np.empty(shape, x.dtype)
    found[...] = x
    return found


def check_matrix(a: Any, name: str, argument: str = "a", square: bool = False) -> SoftArray:
    """A SoftArray of two axes."""
    if not isinstance(a, SoftArray):
        raise TypeError(f"{argument} of {name} must be a SoftArray, got {type(a).__name__}; softfloat.array() converts")
    if a.ndim != 2 or (square and a.shape[0] != a.shape[1]):
        raise ValueError(f"{argument} of {name} must be a {'square ' * square}matrix, got shape {a.shape}")
    return a
