"""Elementwise operators as PyTorch computes them on a device: steps in float32, products and sums in one, rounded at the end.

Read off an H100 under PyTorch 2.11 and CUDA 13.0: operators of one operand for all codes of half and bfloat16, others for 2 x 2048
drawn operands of each. CUDA's own functions are rounded correctly but for the codes in `EXCEPTIONS`.
Source of the steps: PyTorch, aten/src/ATen/native/cuda.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from softfloat import bits
from softfloat.torch.operators.bridge import LOW, Codes, codes_of
from softfloat.torch.operators.pointwise import STEPS, Run
from softfloat.torch.operators.tables import names
from softfloat.torch.operators.unit import Unit

__all__ = ["DEVICE_CHOICES", "DEVICE_STEPS", "EXCEPTIONS", "READ_INSIDE", "WAYS_OUT", "corrected", "device_choice"]

ARRAYS = (np.ndarray, np.generic)
SIGN = np.uint32(1 << 31)
Number = int | float


def negated(x: Any) -> Any:
    """A code of float32, or a number, of the other sign."""
    return np.bitwise_xor(x, SIGN) if isinstance(x, ARRAYS) else -x


def _add(run: Run, a: Any, b: Any, alpha: Number = 1) -> Codes:
    """fma(alpha, b, a)."""
    return run(bits.add, a, b) if alpha == 1 else run(bits.fma, alpha, b, a)


def _sub(run: Run, a: Any, b: Any, alpha: Number = 1) -> Codes:
    """fma(-alpha, b, a)."""
    return run(bits.sub, a, b) if alpha == 1 else run(bits.fma, -alpha, b, a)


def _div(run: Run, a: Any, b: Any) -> Codes:
    """a / b; a number is a factor, its reciprocal."""
    if isinstance(b, ARRAYS):
        return run(bits.div, a, b)
    return run(bits.mul, a, run(bits.div, 1.0, b))


def _addcmul(run: Run, a: Any, b: Any, c: Any, value: Number = 1) -> Codes:
    """fma(value, b * c, a)."""
    return run(bits.fma, value, run(bits.mul, b, c), a)


def _addcdiv(run: Run, a: Any, b: Any, c: Any, value: Number = 1) -> Codes:
    """fma(value, b / c, a)."""
    return run(bits.fma, value, run(bits.div, b, c), a)


def _lerp(run: Run, start: Any, end: Any, weight: Any) -> Codes:
    """From the nearer end: fma(weight, end - start, start), and fma(start - end, 1 - weight, end)."""
    way = run(bits.sub, end, start)
    near = run(bits.fma, weight, way, start)
    far = run(bits.fma, negated(way), run(bits.sub, 1.0, weight), end)
    size = np.abs(weight.view(np.float32)) if isinstance(weight, np.ndarray) else abs(weight)
    return np.where(size < 0.5, near, far)


def _pow(run: Run, a: Any, exponent: Number) -> Codes:
    """Powers that are products, roots and quotients; those of three and minus two round the square on the way."""
    if exponent == 0.5:
        return run(bits.sqrt, a)
    square = run(bits.mul, a, a)
    if exponent == 2:
        return square
    if exponent == 3:
        return run(bits.mul, run.rounded(square), a)
    return run(bits.div, 1.0, a if exponent == -1 else run.rounded(square))


def _sigmoid(run: Run, a: Any) -> Codes:
    """1 / (1 + exp(-a))."""
    return run(bits.div, 1.0, run(bits.add, 1.0, run(bits.exp, negated(a))))


def _silu(run: Run, a: Any) -> Codes:
    """a / (1 + exp(-a))."""
    return run(bits.div, a, run(bits.add, 1.0, run(bits.exp, negated(a))))


def _hardswish(run: Run, a: Any) -> Codes:
    """a * min(max(a + 3, 0), 6) / 6."""
    limited = run(bits.minimum, run(bits.maximum, run(bits.add, a, 3.0), 0.0), 6.0)
    return run(bits.mul, run(bits.mul, a, limited), run(bits.div, 1.0, 6.0))


def _leaky_relu(run: Run, a: Any, slope: Number = 0.01) -> Codes:
    """a where it is positive, else a * slope."""
    return np.where(a.view(np.float32) > 0, a, run(bits.mul, a, slope))


def _gelu(run: Run, a: Any, approximate: str = "none") -> Codes:
    """0.5 * a * (1 + tanh(beta * fma(0.044715, a**3, a)))."""
    cube = run(bits.mul, run(bits.mul, a, a), a)
    inner = run(bits.mul, math.sqrt(2) * 2 / math.sqrt(math.pi) * 0.5, run(bits.fma, 0.044715, cube, a))
    return run(bits.mul, run(bits.mul, 0.5, a), run(bits.add, 1.0, run(bits.tanh, inner)))


def _tanh_backward(run: Run, gradient: Any, a: Any) -> Codes:
    """gradient * (1 - a*a), each rounded to the tensors' format."""
    rest = run.rounded(run(bits.sub, 1.0, run.rounded(run(bits.mul, a, a))))
    return run(bits.mul, gradient, rest)


def _sigmoid_backward(run: Run, gradient: Any, a: Any) -> Codes:
    """gradient * (1 - a) * a, each rounded to the tensors' format."""
    rest = run.rounded(run(bits.sub, 1.0, a))
    return run(bits.mul, run.rounded(run(bits.mul, gradient, rest)), a)


def _negative(run: Run, a: Any) -> Codes:
    return negated(a)


def _absolute(run: Run, a: Any) -> Codes:
    return a & ~SIGN


def any_arguments(*rest: Any, **others: Any) -> bool:
    """All of them."""
    return True


def none_but(*names: str) -> Callable[..., bool]:
    """No arguments but operands, and keywords of these names."""
    return lambda *rest, **others: not rest and set(others) <= set(names)


POWERS = (0.5, 2, 3, -1, -2)
Definition = Callable[..., Codes]
DEVICE_STEPS: dict[str, tuple[int, Definition, Callable[..., bool]]] = {
    "add": (2, _add, none_but("alpha")),
    "sub": (2, _sub, none_but("alpha")),
    "rsub": (2, STEPS["rsub"][1], lambda *rest, **others: set(rest) | set(others.values()) <= {1}),
    "div": (2, _div, lambda *rest, **others: not rest and others.get("rounding_mode") is None),
    "addcmul": (3, _addcmul, none_but("value")),
    "addcdiv": (3, _addcdiv, none_but("value")),
    "lerp": (3, _lerp, none_but()),
    "pow": (1, _pow, lambda *rest, **others: isinstance(rest[0], (int, float)) and rest[0] in POWERS),
    "square": (1, STEPS["square"][1], none_but()),
    "sigmoid": (1, _sigmoid, none_but()),
    "silu": (1, _silu, none_but()),
    "hardswish": (1, _hardswish, none_but()),
    "leaky_relu": (1, _leaky_relu, any_arguments),
    "gelu": (1, _gelu, lambda *rest, **others: others.get("approximate") == "tanh"),
    "tanh_backward": (2, _tanh_backward, none_but()),
    "sigmoid_backward": (2, _sigmoid_backward, none_but()),
    "neg": (1, _negative, none_but()),
    "abs": (1, _absolute, none_but()),
    **{
        name: (*STEPS[name], none_but())
        for name in names("mul sqrt tanh exp exp2 expm1 log log2 log10 log1p sin cos reciprocal")
    },
}
"""Operators -> how many arguments are operands, definition(run, *operands, **others), and whether the other arguments were read."""

READ_INSIDE: dict[str, tuple[Any, ...]] = {"rsqrt": (), "erf": (), "mish": (), "elu": (1, 1, 1), "softplus": (1, 20)}
"""Operators that are computed wide, as without a device -> the other arguments that were read."""

EXCEPTIONS: dict[tuple[str, torch.dtype], dict[int, int]] = {
    ("exp2", torch.float16): {0x11C5: 0x3C01, 0x9BF2: 0x3BFA, 0xA86D: 0x3BCF},
    ("log", torch.float16): {0x1935: 0xC5FA},
    ("log10", torch.float16): {0x69D0: 0x42F3},
    ("sigmoid", torch.float16): {0x9D80: 0x37FA, 0xA0C0: 0x37F6, 0xA140: 0x37F6},
    ("erf", torch.float16): {0x1612: 0x16D9, 0x9612: 0x96D9},
    ("softplus", torch.float16): {0x17BC: 0x398E, 0x8431: 0x398C},
    ("gelu", torch.float16): {0xC007: 0xA9AA},
}
"""Operator and dtype -> operand -> result, in codes: where the device's function is not what the steps give."""

WAYS_OUT = dict.fromkeys(("gelu", "gelu_backward"), "choose approximate='tanh' of a forward pass, which was")
"""Of operators that were not read, where there is a better one than float32."""


def corrected(
    unit: Unit,
    operator: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    plan: Callable[..., Any],
    exceptions: Mapping[int, int],
) -> Any:
    """An operator of one operand, and what the device has for some of its codes."""
    before = codes_of(args[0]).copy()
    found = plan(unit, operator, args, kwargs)
    for code, result in exceptions.items():
        codes_of(found)[before == code] = result
    return found


# -- choices among operands, whose NaNs keep their bits ----------------------------------------------------------------


def _relu(x: torch.Tensor) -> Codes:
    return np.where((x <= 0).numpy(), 0, codes_of(x))


def _threshold_backward(gradient: torch.Tensor, x: torch.Tensor, threshold: Number) -> Codes:
    return np.where((x.float() <= np.float32(threshold)).numpy(), 0, codes_of(gradient))


def _larger(a: torch.Tensor, b: torch.Tensor) -> Codes:
    return np.where((a.isnan() | (a >= b) & ~b.isnan()).numpy(), codes_of(a), codes_of(b))


def _smaller(a: torch.Tensor, b: torch.Tensor) -> Codes:
    return np.where((a.isnan() | (a <= b) & ~b.isnan()).numpy(), codes_of(a), codes_of(b))


DEVICE_CHOICES: dict[str, Callable[..., Codes]] = {
    "relu": _relu,
    "threshold_backward": _threshold_backward,
    "maximum": _larger,
    "minimum": _smaller,
}
"""Operators -> codes of the result."""


def device_choice(
    unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any], name: str, in_place: bool
) -> Any:
    """One of `DEVICE_CHOICES`, of tensors of one dtype."""
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    dtype = tensors[0].dtype
    if dtype not in LOW or any(x.dtype != dtype for x in tensors):
        return operator(*args, **kwargs)
    target = args[0] if in_place else kwargs.get("out") or kwargs.get("grad_input")
    codes = DEVICE_CHOICES[name](*args).astype(codes_of(tensors[0]).dtype)
    return unit.deliver(codes, dtype, target, tensors[0] if target is None else None)
