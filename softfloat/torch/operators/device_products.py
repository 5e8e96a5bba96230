"""Matrix products as PyTorch computes them on a device: sums by `torch_mm`, and what its kernels do with them.

Rules, read off an H100 under PyTorch 2.11 and CUDA 13.0. A product is rounded once, to nearest even. A bias, which is one number for
each column, is added to the float32 sum before that. Any other addend meets alpha times the sum after its rounding, and what comes of
it is rounded again; with a beta other than 1 it is fma(alpha, sum, beta*addend) in float32, rounded once. Where k is split it is
fma(beta, addend, alpha*sum) in float32, rounded once, whatever alpha and beta are. Operands of float32 are rounded to tfloat32
first, to nearest even. Kernels of halves need rows of whole 16 bytes; those for others were not read.
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


class How(NamedTuple):
    """A product's sum, and whether its k is split."""

    sum: Accumulator
    split: bool


def device_accumulator(unit: Unit, operation: str, fmt: Format, batch: int, m: int, n: int, k: int) -> How:
    """That of one product."""
    assert unit.device is not None
    product = DeviceProduct(operation, fmt, batch, m, n, k)
    parts = unit.device.parts(product)
    if parts is None:
        raise UnsupportedArguments(
            f"{unit.device.name}: a kernel may cut k = {k} of {m} x {n} {fmt.name} products into parts, and into how many was not read; "
            f"accepted: emulate(device={unit.device.name!r}, split=...), a number, or a function of a DeviceProduct to one"
        )
    how = torch_mm(operation, fmt, k=k, split=parts) if parts > 1 else torch_mm(operation, fmt)
    return How(how, parts > 1)


# -- what kernels take -----------------------------------------------------------------------------------------------

ALIGNED = 16
"""Bytes, of which rows, and the places where tensors begin, are multiples in the kernels that were read."""
VECTOR_TF32 = "a product of float32 with one row or one column"
SHORT_TF32 = 64


def leading(x: torch.Tensor) -> int:
    """Elements from a row, or a column, to the next, as PyTorch hands them to the library; that of a copy where it makes one."""
    rows, columns = x.shape[-2:]
    down, along = x.stride()[-2:]
    if rows == 1 or columns == 1:
        return max(rows, columns)
    if along == 1 and down >= columns:
        return down
    return along if down == 1 and along >= rows else columns


def check_aligned(unit: Unit, name: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuse a product of halves whose kernel was not read: `tensors` are operands of matrices, and what comes out."""
    for x in tensors:
        size = x.element_size()
        if leading(x) * size % ALIGNED or x.storage_offset() * size % ALIGNED:
            shapes = " by ".join(str(tuple(y.shape)) for y in tensors[:2])
            raise unread(
                unit,
                f"{name} of {shapes} {x.dtype}, some of whose rows do not begin at multiples of {ALIGNED} bytes,",
                f"fill sizes up to multiples of {ALIGNED // size}",
            )


# -- operands and sums -----------------------------------------------------------------------------------------------


class Operands(NamedTuple):
    """What is multiplied: codes, their format, and how they are summed."""

    a: Codes
    b: Codes
    format: Format
    how: How

    def sums(self, unit: Unit, out: Format) -> Codes:
        """Rounded to `out`."""
        return unit.run(bits.matmul, self.a, self.b, self.format, self.how.sum, out_format=out)


def operands_of(unit: Unit, name: str, a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> Operands:
    """Those of tensors of one dtype, whose product has another."""
    settings = torch.backends.cuda.matmul
    matrix = b if b.ndim > 1 else b[:, None]
    m, k = a.shape[-2:]
    batch, n = len(a) if a.ndim > 2 else 1, matrix.shape[-1]
    sizes = batch, m, n, k
    if a.dtype in LOW:
        half = a.dtype == torch.float16 and settings.allow_fp16_accumulation
        if half and name not in ("mm", "bmm", "mv"):
            raise unread(unit, f"{name} under torch.backends.cuda.matmul.allow_fp16_accumulation", "set it to False")
        if dtype != a.dtype and 1 in (m, n):
            raise unread(unit, f"{name} with an out_dtype, of one row or one column,", "cast the result")
        if k > 1 and m and n:
            check_aligned(unit, name, (a, matrix, torch.empty((m, n), dtype=dtype, device="meta")))
        fmt = FORMATS[a.dtype].format
        how = device_accumulator(unit, "fp16_accumulation" if half else "mm", fmt, *sizes)
        return Operands(codes_of(a), codes_of(b), fmt, how)
    if not private.allows_tf32():
        raise unread(
            unit, f"{name} of float32", "set torch.backends.cuda.matmul.allow_tf32, or cast to float16 or bfloat16"
        )
    if 1 in (m, n):
        raise unread(unit, VECTOR_TF32, "cast to float16 or bfloat16")
    if batch > 1 and k < SHORT_TF32:
        raise unread(unit, f"{name} of float32 with k = {k}, below {SHORT_TF32},", "cast to float16 or bfloat16")
    how = device_accumulator(unit, "mm", tfloat32, *sizes)
    x, y = (unit.run(bits.convert, codes_of(x), float32, tfloat32) for x in (a, b))
    return Operands(x, y, tfloat32, how)


def is_bias(c: torch.Tensor, b: torch.Tensor, target: torch.Tensor | None, in_place: bool) -> bool:
    """Whether an addend is handed to the kernel as a bias."""
    plain = c.ndim == 1 and c.is_contiguous() and not in_place and (target is None or target.is_contiguous())
    return plain and len(c) == b.shape[1] and min(b.shape) > 1


def added(unit: Unit, operands: Operands, addend: Codes, alpha: Any, beta: Any, fmt: Format, bias: bool) -> Codes:
    """alpha*(a @ b) + beta*c in a format; c, codes of it, is not read where beta is zero."""
    sums = operands.sums(
        unit, float32 if alpha != 1 or (beta != 0 and (bias or beta != 1 or operands.how.split)) else fmt
    )
    scaled = sums if alpha == 1 else unit.run(bits.mul, sums, spread(unit, alpha, sums), float32)
    if beta == 0:
        return scaled if alpha == 1 else rounded(unit, scaled, fmt)
    addend = np.broadcast_to(addend, sums.shape)
    if beta == 1 and not (bias or operands.how.split):
        return unit.run(bits.add, scaled if alpha == 1 else rounded(unit, scaled, fmt), addend, fmt)
    if fmt != float32:
        addend = unit.run(bits.convert, addend, fmt, float32)
    if bias:
        found = unit.run(bits.add, scaled, addend, float32)
    elif operands.how.split:
        found = unit.run(bits.fma, addend, spread(unit, beta, addend), scaled, float32)
    else:
        addend = unit.run(bits.mul, addend, spread(unit, beta, addend), float32)
        found = unit.run(bits.fma, sums, spread(unit, alpha, sums), addend, float32)
    return rounded(unit, found, fmt)


def rounded(unit: Unit, codes: Codes, fmt: Format) -> Codes:
    """Float32 codes in a format."""
    return codes if fmt == float32 else unit.run(bits.convert, codes, float32, fmt)


def spread(unit: Unit, number: Any, like: Codes) -> Codes:
    """A Python number in float32, for each element."""
    return np.broadcast_to(unit.number(number, float32), like.shape)


FIRST = {"mm": 0, "bmm": 0, "mv": 0, "addmm": 1, "baddbmm": 1, "addmv": 1, "addbmm": 1}
"""Operators that were read, and which argument is the first of the two that are multiplied."""


def device_product(unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """One of `FIRST`."""
    name = private.schema_name(operator)
    base = name.removesuffix("_")
    first = FIRST[base]
    given = {**dict(zip(private.argument_names(operator), args, strict=False)), **kwargs}
    a, b = args[first], args[first + 1]
    wide = given.get("out_dtype")
    dtype = wide or a.dtype
    if b.dtype != a.dtype or args[0].dtype not in ((dtype, a.dtype) if wide else (a.dtype,)):
        return operator(*args, **kwargs)  # which PyTorch refuses, in its own words
    if wide not in (None, a.dtype, torch.float32):
        raise UnsupportedArguments(f"out_dtype must be {a.dtype} or torch.float32, got {wide}")
    if a.dtype not in LOW and a.dtype != torch.float32:
        raise unread(unit, f"{base} of {a.dtype}", "cast to float16 or bfloat16")
    in_place = name != base
    target = args[0] if in_place else given.get("out")
    if target is not None and target.ndim > 1 and a.dtype in LOW:
        check_aligned(unit, base, (a, b, target))
    fmt = FORMATS[dtype].format
    if not first:
        return unit.deliver(operands_of(unit, base, a, b, dtype).sums(unit, fmt), dtype, target)
    alpha, beta = given.get("alpha", 1), given.get("beta", 1)
    if base == "addmv":  # whose numbers PyTorch hands on in the vectors' dtype
        alpha, beta = (unit.rounded_number(x, fmt) for x in (alpha, beta))
    c = args[0]
    bias = base == "addmm" and beta == 1 and is_bias(c, b, target, in_place)
    if bias and alpha != 1:
        raise unread(unit, f"{base} of a bias and an alpha of {alpha}", "multiply an operand by it")
    addend = codes_of(c) if c.dtype == dtype else unit.run(bits.convert, codes_of(c), FORMATS[c.dtype].format, fmt)
    if base == "addbmm":  # one product after the other
        for x, y in zip(a, b, strict=True):
            addend = added(unit, operands_of(unit, base, x, y, dtype), addend, alpha, beta, fmt, False)
            beta = 1
        return unit.deliver(addend, dtype, target)
    found = added(unit, operands_of(unit, base, a, b, dtype), addend, alpha, beta, fmt, bias)
    return unit.deliver(found, dtype, target)


DEVICE_PRODUCTS: dict[str, Callable[..., Any]] = dict.fromkeys(FIRST, device_product)
"""What computes products of any floating-point dtype, by the operator's name."""
