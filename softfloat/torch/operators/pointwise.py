"""Elementwise operators as steps of `softfloat.bits`, each rounded once into the operands' format.

`STEPS` is the definition: what PyTorch computes in one go, in float32 and rounded once, is a sequence of rounded steps
here where it has several operations. Numbers are rounded into the format first, as those beside a SoftArray are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.bits.operations import ELEMENTWISE
from softfloat.formats import Format
from softfloat.torch.operators.bridge import Codes
from softfloat.torch.operators.unit import Unit

__all__ = ["STEPS", "Run"]

ARRAYS = (np.ndarray, np.generic)


class Run:
    """run(function, *operands) is one step in a format; operands are codes or Python numbers.

    Parameters
    ----------
    unit : Unit
    carried, fmt : Format
        Of the steps, and of the operator's tensors.
    """

    def __init__(self, unit: Unit, carried: Format, fmt: Format) -> None:
        self._unit, self._carried, self._fmt = unit, carried, fmt

    def __call__(self, function: Callable[..., Any], *values: Any) -> Codes:
        """One step."""
        carried = self._carried
        codes = [x for x in values if isinstance(x, ARRAYS)]
        if len(codes) < len(values):  # numbers spread out: half the time of broadcasting them
            shape = np.shape(codes[0]) if codes else ()
            codes = [
                x if isinstance(x, ARRAYS) else np.full(shape, self._unit.number(x, carried), carried.dtype)
                for x in values
            ]
        return self._unit.run(function, *codes, carried)

    def rounded(self, codes: Codes) -> Codes:
        """Codes of the steps' format, rounded to that of the tensors."""
        return self._unit.run(bits.convert, self.narrowed(codes), self._fmt, self._carried)

    def narrowed(self, codes: Codes) -> Codes:
        """The same, as codes of the tensors' format."""
        return codes if self._carried == self._fmt else self._unit.run(bits.convert, codes, self._carried, self._fmt)


STEPS: dict[str, tuple[int, Callable[..., Codes]]] = {}
"""By the operator's name: how many of its arguments are operands, and definition(run, *operands, **others)."""


def steps(name: str, operands: int) -> Callable[[Callable[..., Codes]], Callable[..., Codes]]:
    """Enter a definition into the table."""

    def enter(definition: Callable[..., Codes]) -> Callable[..., Codes]:
        STEPS[name] = operands, definition
        return definition

    return enter


def _one_step(function: Callable[..., Any]) -> Callable[..., Codes]:
    return lambda run, *x: run(function, *x)


STEPS |= {
    row.torch: (len(row.operands), _one_step(getattr(bits, row.name))) for row in ELEMENTWISE.values() if row.torch
}


# -- operators of several steps, or of more arguments than operands --------------------------------------------------


@steps("add", 2)
def _add(run: Run, a: Any, b: Any, alpha: Any = 1) -> Codes:
    """a + (alpha*b)."""
    return run(bits.add, a, b if alpha == 1 else run(bits.mul, b, alpha))


@steps("sub", 2)
def _sub(run: Run, a: Any, b: Any, alpha: Any = 1) -> Codes:
    """a - (alpha*b)."""
    return run(bits.sub, a, b if alpha == 1 else run(bits.mul, b, alpha))


@steps("rsub", 2)
def _rsub(run: Run, a: Any, b: Any, alpha: Any = 1) -> Codes:
    """b - (alpha*a)."""
    return _sub(run, b, a, alpha)


@steps("div", 2)
def _div(run: Run, a: Any, b: Any, rounding_mode: str | None = None) -> Codes:
    """a / b; with "floor" as `bits.floor_divide`; "trunc" is computed inside float64."""
    return run(bits.div if rounding_mode is None else bits.floor_divide, a, b)


@steps("remainder", 2)
def _remainder(run: Run, a: Any, b: Any) -> Codes:
    """As `bits.modulo`, of b's sign; but a zero has the sign of a, where Python's and NumPy's has that of b."""
    found = run(bits.modulo, a, b)
    bit = found.dtype.type(1 << (8 * found.dtype.itemsize - 1))
    sign = a & bit if isinstance(a, np.ndarray) else bit if math.copysign(1.0, a) < 0 else bit ^ bit
    return np.where(found & ~bit, found, sign)


@steps("reciprocal", 1)
def _reciprocal(run: Run, a: Any) -> Codes:
    """1 / a."""
    return run(bits.div, 1.0, a)


@steps("square", 1)
def _square(run: Run, a: Any) -> Codes:
    """a * a."""
    return run(bits.mul, a, a)


@steps("addcmul", 3)
def _addcmul(run: Run, a: Any, b: Any, c: Any, value: Any = 1) -> Codes:
    """a + ((value*b) * c)."""
    return run(bits.add, a, run(bits.mul, b if value == 1 else run(bits.mul, b, value), c))


@steps("addcdiv", 3)
def _addcdiv(run: Run, a: Any, b: Any, c: Any, value: Any = 1) -> Codes:
    """a + ((value*b) / c)."""
    return run(bits.add, a, run(bits.div, b if value == 1 else run(bits.mul, b, value), c))


@steps("lerp", 3)
def _lerp(run: Run, start: Any, end: Any, weight: Any) -> Codes:
    """start + (weight * (end - start))."""
    return run(bits.add, start, run(bits.mul, weight, run(bits.sub, end, start)))
