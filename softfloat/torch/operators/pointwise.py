"""Elementwise operators by `softfloat.bits`, each rounded once into the operands' format.

`STEPS` is the definition. What has a result in between (addcmul with a value, addcdiv, lerp) computes it in float32, as PyTorch
does, whatever its operands' format is: there it cannot leave the range of half. The last operation takes float32 and is
exact until it is rounded into the format, so a sum of a number and a product is one multiply-add. Each step is rounded as
the environment says of its format, and raises its flags. Numbers are rounded into the operands' format first, as those
beside a SoftArray are.

Source: PyTorch, `opmath_type` of half and bfloat16 (float32), and `lerp`'s two forms (aten/src/ATen/native/Lerp.h).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.bits.operations import ELEMENTWISE
from softfloat.formats import Format, float32
from softfloat.torch.operators.bridge import Codes
from softfloat.torch.operators.unit import Unit

__all__ = ["STEPS", "Run"]

SIGN = np.uint16(0x8000)  # of the formats whose arithmetic is emulated


class Run:
    """The steps of one operator. Operands are codes of the steps' format, or Python numbers.

    Attributes
    ----------
    unit : Unit
    format, tensors : Format
        Of the steps, and of the operator's tensors.
    """

    __slots__ = ("format", "tensors", "unit")

    def __init__(self, unit: Unit, fmt: Format, tensors: Format) -> None:
        self.unit, self.format, self.tensors = unit, fmt, tensors

    def __call__(self, function: Callable[..., Any], *operands: Any, wide: bool = False) -> Codes:
        """One step: of operands of the format, or of float32 all of them. Its result is of the format, `wide`: of float32."""
        codes = self._spread(operands)
        source, output = float32 if codes[0].dtype == np.uint32 else self.format, float32 if wide else self.format
        options: dict[str, Any] = {} if source == output else {"out_format": output}
        return self.unit.run(function, *codes, source, **options)

    def widened(self, x: Any) -> Codes:
        """An operand as codes of float32."""
        return self.unit.run(bits.convert, *self._spread((x,)), self.format, float32)

    def number(self, x: Any) -> Codes:
        """A Python number as a code of the format."""
        return self.unit.number(x, self.format)

    def rounded(self, codes: Codes) -> Codes:
        """Codes of the steps' format, rounded to that of the tensors."""
        return self.unit.run(bits.convert, self.narrowed(codes), self.tensors, self.format)

    def narrowed(self, codes: Codes) -> Codes:
        """The same, as codes of the tensors' format."""
        return codes if self.format == self.tensors else self.unit.run(bits.convert, codes, self.format, self.tensors)

    def _spread(self, operands: tuple[Any, ...]) -> list[Codes]:
        """Codes; numbers spread out over the first of them: half the time of broadcasting them."""
        shape = next((x.shape for x in operands if isinstance(x, np.ndarray) and x.ndim), ())
        codes: list[Any] = [x if isinstance(x, (np.ndarray, np.generic)) else self.number(x) for x in operands]
        return [x if x.ndim else np.full(shape, x, x.dtype) for x in codes]


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
    """a + alpha*b."""
    return run(bits.add, a, b) if alpha == 1 else run(bits.fma, b, alpha, a)


@steps("sub", 2)
def _sub(run: Run, a: Any, b: Any, alpha: Any = 1) -> Codes:
    """a - alpha*b."""
    return run(bits.sub, a, b) if alpha == 1 else run(bits.fma, b, run.number(alpha) ^ SIGN, a)


@steps("rsub", 2)
def _rsub(run: Run, a: Any, b: Any, alpha: Any = 1) -> Codes:
    """b - alpha*a."""
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
    """a + (value*b)*c."""
    if value == 1:
        return run(bits.fma, b, c, a)
    product = run(bits.mul, value, b, wide=True)
    return run(bits.fma, product, run.widened(c), run.widened(a))


@steps("addcdiv", 3)
def _addcdiv(run: Run, a: Any, b: Any, c: Any, value: Any = 1) -> Codes:
    """a + (value*b)/c."""
    if value == 1:
        quotient = run(bits.div, b, c, wide=True)
    else:
        quotient = run(bits.div, run(bits.mul, value, b, wide=True), run.widened(c), wide=True)
    return run(bits.add, run.widened(a), quotient)


@steps("lerp", 3)
def _lerp(run: Run, start: Any, end: Any, weight: Any) -> Codes:
    """start + weight*(end - start); from a weight of 1/2 on end + (weight - 1)*(end - start), which is the end for 1."""
    distance, wide = run(bits.sub, end, start, wide=True), run.widened(weight)
    near = np.abs(wide.view(np.float32)) < 0.5
    factor = run(bits.sub, wide, np.where(near, np.uint32(0), np.uint32(float32.one_code)), wide=True)
    return run(bits.fma, factor, distance, run.widened(np.where(near, start, end)))
