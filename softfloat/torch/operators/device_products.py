"""Matrix products as PyTorch computes them on a device: sums by `torch_mm`, and what its kernels do with them.

Rules, read off an H100 under PyTorch 2.11 and CUDA 13.0. A product is rounded once, to nearest even. A bias, which is one number for
each column, is added to the float32 sum before that. Any other addend meets the product after its rounding, and the sum is rounded
again; with an alpha or beta other than 1 it is alpha*sum + beta*addend in float32, rounded once. Operands of float32 are rounded to
tfloat32 first, to nearest even.
Source of which addend is a bias: PyTorch, aten/src/ATen/native/cuda/Blas.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator, torch_mm
from softfloat.formats import Format, float32, tfloat32
from softfloat.torch import private
from softfloat.torch.operators.bridge import FORMATS, LOW, Codes, UnsupportedArguments, codes_of
from softfloat.torch.operators.devices import ASSUME, DeviceProduct
from softfloat.torch.operators.unit import Unit

__all__ = ["DEVICE_PRODUCTS", "Unread", "device_accumulator", "device_product", "unread"]


class Unread(UnsupportedArguments):
    """Something that was not read off the device."""


def unread(unit: Unit, what: str, advice: str = "") -> Unread:
    """The refusal of it."""
    assert unit.device is not None
    way = f"{advice}; or " if advice else ""
    return Unread(
        f"{what} was not read off an {unit.device.name}; {way}accepted: emulate(device={unit.device.name!r}, unread={ASSUME!r})"
    )


def device_accumulator(unit: Unit, operation: str, fmt: Format, batch: int, m: int, n: int, k: int) -> Accumulator:
    """The sum of one product."""
    assert unit.device is not None
    product = DeviceProduct(operation, fmt, batch, m, n, k)
    parts = unit.device.parts(product)
    if parts is None:
        raise UnsupportedArguments(
            f"{unit.device.name}: a kernel may cut k = {k} of {m} x {n} {fmt.name} products into parts, and into how many was not read; "
            f"accepted: emulate(device={unit.device.name!r}, split=...), a number, or a function of a DeviceProduct to one"
        )
    return torch_mm(operation, fmt, k=k, split=parts) if parts > 1 else torch_mm(operation, fmt)


class Operands(NamedTuple):
    """What is multiplied: codes, their format, and what `torch_mm` calls the sum."""

    a: Codes
    b: Codes
    format: Format
    operation: str

    def sums(self, unit: Unit, out: Format) -> Codes:
        """Rounded to `out`."""
        a, b = self.a, self.b
        n = b.shape[-1] if b.ndim > 1 else 1
        batch = len(a) if a.ndim > 2 else 1
        how = device_accumulator(unit, self.operation, self.format, batch, a.shape[-2], n, a.shape[-1])
        return unit.run(bits.matmul, a, b, self.format, how, out_format=out)


def operands_of(unit: Unit, name: str, a: torch.Tensor, b: torch.Tensor) -> Operands:
    """Those of tensors of one dtype."""
    settings = torch.backends.cuda.matmul
    if a.dtype in LOW:
        half = a.dtype == torch.float16 and settings.allow_fp16_accumulation
        if half and name not in ("mm", "bmm", "mv"):
            raise unread(unit, f"{name} under torch.backends.cuda.matmul.allow_fp16_accumulation", "set it to False")
        return Operands(codes_of(a), codes_of(b), FORMATS[a.dtype].format, "fp16_accumulation" if half else "mm")
    if a.dtype != torch.float32:
        raise unread(unit, f"{name} of {a.dtype}", "cast to float16 or bfloat16")
    if not private.allows_tf32():
        raise unread(
            unit, f"{name} of float32", "set torch.backends.cuda.matmul.allow_tf32, or cast to float16 or bfloat16"
        )
    x, y = (unit.run(bits.convert, codes_of(x), float32, tfloat32) for x in (a, b))
    return Operands(x, y, tfloat32, "mm")


def is_bias(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, target: torch.Tensor | None, in_place: bool) -> bool:
    """Whether an addend is handed to the kernel as a bias."""
    plain = c.ndim == 1 and c.is_contiguous() and not in_place and (target is None or target.is_contiguous())
    return plain and a.ndim == 2 and len(c) == b.shape[1] and min(*a.shape, *b.shape) > 1


def added(unit: Unit, operands: Operands, c: torch.Tensor, alpha: Any, beta: Any, fmt: Format, bias: bool) -> Codes:
    """alpha*(a @ b) + beta*c in a format; c is not read where beta is zero."""
    if beta == 0:
        if alpha == 1:
            return operands.sums(unit, fmt)
        sums = operands.sums(unit, float32)
        return rounded(unit, unit.run(bits.mul, sums, spread(unit, alpha, sums), float32), fmt)
    plain = alpha == 1 and beta == 1
    sums = operands.sums(unit, fmt if plain and not bias else float32)
    addend = np.broadcast_to(codes_of(c), sums.shape)
    if plain and not bias:
        return unit.run(bits.add, sums, addend, fmt)
    if fmt != float32:
        addend = unit.run(bits.convert, addend, fmt, float32)
    if beta != 1:
        addend = unit.run(bits.mul, addend, spread(unit, beta, addend), float32)
    if alpha == 1:
        found = unit.run(bits.add, sums, addend, float32)
    else:
        found = unit.run(bits.fma, sums, spread(unit, alpha, sums), addend, float32)
    return rounded(unit, found, fmt)


def rounded(unit: Unit, codes: Codes, fmt: Format) -> Codes:
    """Float32 codes in a format."""
    return codes if fmt == float32 else unit.run(bits.convert, codes, float32, fmt)


def spread(unit: Unit, number: Any, like: Codes) -> Codes:
    """A Python number in float32, for each element."""
    return np.broadcast_to(unit.number(number, float32), like.shape)


FIRST = {"mm": 0, "bmm": 0, "mv": 0, "addmm": 1, "baddbmm": 1}
"""Operators that were read, and which argument is the first of the two that are multiplied."""


def device_product(unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """One of `FIRST`."""
    name = private.schema_name(operator)
    base = name.removesuffix("_")
    first = FIRST[base]
    given = {**dict(zip(private.argument_names(operator), args, strict=False)), **kwargs}
    a, b = args[first], args[first + 1]
    tensors = args[: first + 2]
    wide = given.get("out_dtype")
    if not all(x.dtype == a.dtype for x in (a, b)) or (wide is None and tensors[0].dtype != a.dtype):
        return operator(*args, **kwargs)  # which PyTorch refuses, in its own words
    if wide not in (None, a.dtype, torch.float32):
        raise UnsupportedArguments(f"out_dtype must be {a.dtype} or torch.float32, got {wide}")
    if wide not in (None, a.dtype) and first:
        raise unread(unit, f"{base} with an out_dtype", "add in float32 what mm gives")
    dtype = wide or a.dtype
    in_place = name != base
    target = args[0] if in_place else given.get("out")
    operands = operands_of(unit, base, a, b)
    fmt = FORMATS[dtype].format
    if not first:
        return unit.deliver(operands.sums(unit, fmt), dtype, target)
    bias = base == "addmm" and is_bias(args[0], a, b, target, in_place)
    found = added(unit, operands, args[0], given.get("alpha", 1), given.get("beta", 1), fmt, bias)
    return unit.deliver(found, dtype, target)


DEVICE_PRODUCTS: dict[str, Callable[..., Any]] = dict.fromkeys(FIRST, device_product)
"""What computes products of any floating-point dtype, by the operator's name."""
