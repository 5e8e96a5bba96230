"""Between tensors and codes: views of the same memory wherever it can be shared."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat.checks import nearest
from softfloat.formats import (
    ALIASES,
    Format,
    bfloat16,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
)

__all__ = [
    "FORMATS",
    "LOW",
    "NARROW",
    "Codes",
    "UnsupportedArguments",
    "as_dtype",
    "codes_of",
    "memory",
    "numbers_of",
    "tensor_of",
    "write",
]

Codes = np.ndarray[Any, np.dtype[Any]]


class Kind(NamedTuple):
    """What is known of a dtype."""

    format: Format


FORMATS = {
    torch.float16: Kind(float16),
    torch.bfloat16: Kind(bfloat16),
    torch.float8_e4m3fn: Kind(float8_e4m3fn),
    torch.float8_e5m2: Kind(float8_e5m2),
    torch.float8_e4m3fnuz: Kind(float8_e4m3fnuz),
    torch.float8_e5m2fnuz: Kind(float8_e5m2fnuz),
    torch.float32: Kind(float32),
}
if hasattr(torch, "float8_e8m0fnu"):  # from PyTorch 2.7 on
    FORMATS[torch.float8_e8m0fnu] = Kind(float8_e8m0fnu)
"""dtypes that codes can be had of. Only casts know those of 8 bits."""

LOW = frozenset({torch.float16, torch.bfloat16})
"""dtypes whose arithmetic is emulated."""

NARROW = frozenset({dtype for dtype in FORMATS if dtype != torch.float32} | {torch.complex32})
"""dtypes that no operator may compute in unless it is known to do so here."""


class _Memory:
    """What NumPy takes for an array, which keeps its tensor. `Tensor.numpy` would keep everybody from resizing the tensor's storage for good."""

    __slots__ = ("__array_interface__", "tensor")
    __array_interface__: dict[str, Any]
    tensor: torch.Tensor


TYPES = {dtype: np.dtype(kind.format.dtype).str for dtype, kind in FORMATS.items() if dtype != torch.float32}
"""NumPy's names of what dtypes are seen as: codes of narrow formats, numbers of others, which are entered when they come."""


def memory(tensor: torch.Tensor) -> Codes:
    """A view of a tensor's memory on the CPU: codes of narrow formats, numbers of others."""
    dtype = tensor.dtype
    if dtype not in TYPES:
        TYPES[dtype] = torch.empty(0, dtype=dtype).numpy().dtype.str
    interface = {"shape": tensor.shape, "typestr": TYPES[dtype], "data": (tensor.data_ptr(), False), "version": 3}
    if not tensor.is_contiguous():
        size = tensor.element_size()
        interface["strides"] = tuple(size * x for x in tensor.stride())
    made = _Memory()
    made.tensor, made.__array_interface__ = tensor, interface
    array: Codes = np.asarray(made)
    return array


class UnsupportedArguments(Exception):
    """A known operator with arguments that have no emulation; the message says which, and what to do."""


def as_dtype(argument: str, value: Any, accepted: Collection[torch.dtype]) -> torch.dtype:
    """A dtype as functions take it: one, a name of PyTorch's or of a format's, or a format that has one.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and the accepted dtypes.
    """
    found = getattr(torch, value, None) if isinstance(value, str) else value
    if isinstance(value, (str, Format)) and not isinstance(found, torch.dtype):
        fmt = value if isinstance(value, Format) else ALIASES.get(value)
        found = next((dtype for dtype, kind in FORMATS.items() if fmt in (kind.format, kind.format.name)), value)
    if isinstance(found, torch.dtype) and found in accepted:
        return found
    names = [str(x).removeprefix("torch.") for x in accepted]
    advice = nearest(value, names) if isinstance(value, str) else ""
    kind_of_error = ValueError if isinstance(value, (str, Format, torch.dtype)) else TypeError
    shown = value if isinstance(value, torch.dtype) else repr(value)
    raise kind_of_error(f"{argument} must be one of {', '.join(map(str, accepted))}, got {shown}{advice}")


def codes_of(tensor: torch.Tensor) -> Codes:
    """A view of a tensor's memory as codes."""
    if not tensor.is_cpu:
        raise UnsupportedArguments(f"tensors must be on the CPU, got {tensor.device}")
    array = memory(tensor)
    return array.view(np.uint32) if tensor.dtype == torch.float32 else array


def numbers_of(tensor: torch.Tensor) -> tuple[Codes, Format | None]:
    """(codes, format) of tensors in a narrow format, (numbers, None) of others."""
    if tensor.dtype in NARROW:
        return codes_of(tensor), FORMATS[tensor.dtype].format
    if not tensor.is_cpu:
        raise UnsupportedArguments(f"tensors must be on the CPU, got {tensor.device}")
    return memory(tensor), None


def tensor_of(codes: Any, dtype: torch.dtype, like: torch.Tensor | None = None) -> torch.Tensor:
    """A tensor on the memory of codes; in new memory where `like`, of the same shape, is laid out in another way."""
    array = np.asarray(codes)
    if like is not None and not like.is_contiguous() and like.shape == array.shape:
        laid_out = torch.empty_like(like, dtype=dtype, memory_format=torch.preserve_format, requires_grad=False)
        if not laid_out.is_contiguous():
            codes_of(laid_out)[...] = array
            return laid_out
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return torch.from_numpy(array).view(dtype)


def write(target: torch.Tensor, codes: Any) -> None:
    """Codes of the target's format into its memory, whatever its strides."""
    codes_of(target)[...] = codes
