"""Steps of factorizations: sums of products that start from a number, and how many of them are taken at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.accumulators import Accumulator, fma, mul_add
from softfloat.arrays.held import evaluated
from softfloat.arrays.operands import one_of
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import accumulator_for
from softfloat.bits.sums.products import check_accumulator
from softfloat.checks import check_whole
from softfloat.engine import Codes, calls, elementwise
from softfloat.engine.calls import SMALL
from softfloat.engine.panels import panels
from softfloat.environments import WATCHES, current_environment
from softfloat.formats import Format
from softfloat.status import Flags

Summing = Accumulator | Callable[[Format], Accumulator]
PIECE = 64  # products in one sum, where an accumulator's bits depend on how many there are
OUTER, INNER = 64, 16  # rows and columns of blocks, where they do not: to be quick


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
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        The environment's unless given.

    Attributes
    ----------
    single : bool
        Whether products are added one at a time and every sum is rounded to the format: then no bit depends on `block`.
    """

    def __init__(self, x: SoftArray, name: str, block: int | None = None, accumulator: Summing | None = None) -> None:
        fmt = x.format
        if not fmt.zero or not fmt.signed:
            raise TypeError(f"{name} needs a format with zero and negative numbers, got {fmt}; astype() converts")
        self.env = current_environment()
        if self.env.position is not None:
            raise ValueError(f"{name} takes no block of a larger array; accepted: an environment without position")
        self.fmt, self.name = fmt, name
        how = accumulator(fmt) if callable(accumulator) else accumulator
        self.how = accumulator_for(fmt) if how is None else check_accumulator(how)
        self.fused = self.how == fma(fmt)
        self.single = self.fused or self.how == mul_add(fmt)
        seen = self.env.traps or WATCHES or not self.single  # step by step, then
        self.panels = None if seen else panels(fmt, self.env.settings.for_format(fmt.name), self.fused)
        self.sign, self.loops = fmt.dtype.type(fmt.sign_bit), dict[str, Any]()
        self.unsigned = engine.magnitudes(~fmt.dtype.type(0), fmt)
        self.block = None if block is None else check_whole("block", block, 1)

    def width(self, size: int) -> int:
        """Rows or columns of the blocks that `size` of them are cut into; `size` where they are not."""
        if not self.single:
            return self.block or PIECE
        limit = OUTER if self.block is None else self.block
        return min(limit, size) if size > limit else min(INNER, size)

    def whole(self, size: int, beside: int = OUTER) -> bool:
        """Whether `size` rows or columns, each of so many elements, are done one after the other: of few elements, more."""
        if not self.single:
            return size <= (self.block or PIECE)
        limit = INNER if beside > 1 else INNER**2
        if self.panels:
            limit = max(limit, math.isqrt(OUTER**3 // max(beside, 1)))
        return size <= min(limit, self.block or limit)

    def added(self, c: Codes, a: Codes, b: Codes) -> Codes:
        """c + a @ b of matrices: each element one sum, which starts from c."""
        if self.how.partials != self.fmt:
            c = evaluated(self.name, bits.convert, c, self.fmt, self.how.partials)
        return np.asarray(evaluated(self.name, bits.matmul, a, b, self.fmt, self.how, c, out_format=self.fmt))

    def computed(self, operation: str, *operands: Codes) -> Codes:
        """An operation of `softfloat.bits` on arrays of one shape in C order."""
        if operation not in self.loops:
            settings = self.env.settings.for_format(self.fmt.name)
            ready = elementwise.prepared(operation, self.fmt, settings, elementwise.FAST)
            self.loops[operation] = None if self.env.traps or WATCHES else ready
        x = operands[0]
        loop = self.loops[operation] if x.size <= SMALL else None
        if loop is None:
            return np.asarray(evaluated(self.name, getattr(bits, operation), *operands, self.fmt))
        found, (a, *more) = np.empty(x.shape, x.dtype), map(calls.flat, operands)
        b, c = (more[0], more[-1]) if more else (a, a)
        stream = self.env.streams.take()
        self.env.status.add(loop(a, b, c, found.reshape(-1), elementwise.NO_CODES, stream, False))
        return found

    def outer_added(self, c: Codes, x: Codes, y: Codes) -> Codes:
        """c + x * y, of a column and a row that are spread over the shape of c, either first: the bits of `added`."""
        if not self.single:
            return self.added(c, x, y) if x.shape == (len(c), 1) else self.added(c, y, x)
        x, y = spread(x, c.shape), spread(y, c.shape)
        return self.computed("fma", x, y, c) if self.fused else self.computed("add", c, self.computed("mul", x, y))

    def dots(self, x: Codes, y: Codes) -> Codes:
        """Dot products of the rows of two matrices."""
        return np.asarray(evaluated(self.name, bits.vecdot, x, y, self.fmt, self.how, out_format=self.fmt))

    def product(self, a: Codes, b: Codes) -> Codes:
        """The product of two matrices."""
        return np.asarray(evaluated(self.name, bits.matmul, a, b, self.fmt, self.how, out_format=self.fmt))

    def divided(self, x: Codes, y: Any) -> Codes:
        """x / y of codes; y of one element, or of the shape of x."""
        return self.computed("div", x, spread(y, x.shape))

    def negated(self, x: Codes) -> Codes:
        """Numbers of the other sign."""
        return np.asarray(x ^ self.sign if self.fmt.signed_zero else bits.negative(x, self.fmt))

    def magnitudes(self, x: Codes) -> np.ndarray[Any, Any]:
        """Codes of absolute values, which are in order; -1 for NaN, which no pivot is unless there is nothing else."""
        found, spec = (x & self.unsigned).astype(np.int64), self.fmt.spec
        if self.fmt.has_nan:
            found[x == spec.lone_nan if spec.lone_nan >= 0 else found >= spec.nan_first] = -1
        return found

    def greatest(self, x: Codes) -> float:
        """The greatest magnitude; 0 of nothing, NaN beside a NaN."""
        sizes = self.magnitudes(x)
        if sizes.min(initial=0) < 0:
            return math.nan
        return float(bits.decode(self.fmt.dtype.type(sizes.max(initial=0)), self.fmt))

    def zero(self, x: Any) -> bool:
        """Whether a number is zero."""
        return bool(self.magnitudes(np.atleast_1d(x))[0] == 0)


class Raised:
    """What is raised inside a `with`: `flags`, which the environment's status has afterwards besides those that it had."""

    flags = Flags(0)

    def __enter__(self) -> Raised:
        self._status = current_environment().status
        self._before = self._status.flags
        self._status.clear()
        return self

    def __exit__(self, *error: object) -> None:
        self.flags |= self._status.flags
        self._status.add(int(self._before))


def read(x: SoftArray) -> Codes:
    """Codes in which each zero is that of +0 or -0, as pivots are chosen by codes: in formats without subnormal numbers others read as zero, too."""
    fmt = x.format
    if fmt.subnormals:
        return x.codes
    sign = fmt.sign_bit if fmt.signed_zero else 0
    return np.where(bits.iszero(x.codes, fmt), x.codes & fmt.dtype.type(sign), x.codes)


def spread(x: Any, shape: tuple[int, ...]) -> Codes:
    """Codes over and over in a shape: loops take operands of one shape at once."""
    x = np.asarray(x)
    return x if x.shape == shape else np.full(shape, x, x.dtype)


def identity(n: int, steps: Steps, columns: int | None = None) -> Codes:
    """Ones on the diagonal; so many columns, or n."""
    found = np.zeros((n, n if columns is None else columns), steps.fmt.dtype)
    np.fill_diagonal(found, one_of(steps.fmt, steps.name))
    return found


def mirrored(x: Codes) -> Codes:
    """A symmetric matrix, of what lies on the diagonal and below it."""
    return np.where(np.tri(len(x), dtype=bool), x, x.T)


def check_soft(a: Any, name: str, argument: str) -> SoftArray:
    """A SoftArray."""
    if not isinstance(a, SoftArray):
        raise TypeError(f"{argument} of {name} must be a SoftArray, got {type(a).__name__}; softfloat.array() converts")
    return a


def check_matrix(a: Any, name: str, argument: str = "a", square: bool = False) -> SoftArray:
    """A SoftArray of two axes."""
    a = check_soft(a, name, argument)
    if a.ndim != 2 or (square and a.shape[0] != a.shape[1]):
        raise ValueError(f"{argument} of {name} must be a {'square ' * square}matrix, got shape {a.shape}")
    return a
