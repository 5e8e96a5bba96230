"""Between ONNX's tensors and codes: which element types are formats of ours, and views of the same memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx

from softfloat.formats import ROSTER, Format, float32

__all__ = ["NARROW", "Array", "Codes", "array_of", "codes_of", "dtype_of", "element_format", "format_of", "is_narrow"]

Array = np.ndarray[Any, np.dtype[Any]]
Codes = np.ndarray[Any, np.dtype[Any]]

NARROW: dict[int, Format] = {
    getattr(onnx.TensorProto, element): ROSTER[name]
    for element, name in {
        "FLOAT16": "float16",
        "BFLOAT16": "bfloat16",
        "FLOAT8E4M3FN": "float8_e4m3fn",
        "FLOAT8E4M3FNUZ": "float8_e4m3fnuz",
        "FLOAT8E5M2": "float8_e5m2",
        "FLOAT8E5M2FNUZ": "float8_e5m2fnuz",
        "FLOAT8E8M0": "float8_e8m0fnu",
        "FLOAT4E2M1": "float4_e2m1fn",
    }.items()
    if hasattr(onnx.TensorProto, element)
}
"""Element types of `onnx.TensorProto` that are narrower than float32 -> their formats."""


def element_format(element: int) -> Format | None:
    """The format of an element type of `onnx.TensorProto`, float32 included; None: it is none of ours."""
    return float32 if element == onnx.TensorProto.FLOAT else NARROW.get(element)


@lru_cache(maxsize=64)
def format_of(dtype: np.dtype[Any]) -> Format | None:
    """The format of a NumPy dtype, ml_dtypes' included; None: it is none of ours."""
    return Format.from_dtype(dtype) if dtype.name in NAMES or dtype == np.float32 else None


NAMES = frozenset(fmt.name for fmt in NARROW.values())


def is_narrow(value: Any) -> bool:
    """Whether a value holds numbers narrower than float32: a tensor, or a sequence of them."""
    if isinstance(value, (list, tuple)):
        return any(map(is_narrow, value))
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.name in NAMES


@lru_cache(maxsize=64)
def dtype_of(fmt: Format) -> np.dtype[Any]:
    """The NumPy dtype in which ONNX's evaluator has tensors of a format."""
    elements = {**NARROW, onnx.TensorProto.FLOAT: float32}
    element = next(element for element, known in elements.items() if known == fmt)
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element))


def codes_of(array: Array, fmt: Format) -> Codes:
    """A view of an array's memory as codes."""
    return array.view(fmt.dtype)


def array_of(codes: Any, fmt: Format) -> Array:
    """An array on the memory of codes, in ONNX's dtype."""
    return np.asarray(codes).view(dtype_of(fmt))
