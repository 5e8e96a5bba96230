"""Arrays of other libraries, and DLPack: codes under the types that other libraries call them by, on the same memory.

NumPy makes and takes the capsules, of unsigned integers; what is here writes the true type into a capsule that leaves, and integers into
one that comes. Memory is released by whoever made it.

Source: DLPack 1.1, dlpack.h: the layout of DLManagedTensor and DLManagedTensorVersioned, and the codes of types.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine import Codes, check_codes
from softfloat.formats import ROSTER, Format

__all__ = ["capsule_of", "of_others"]


class Kind(NamedTuple):
    """A type as DLPack has it: its code, and the bits of an element."""

    code: int
    bits: int


UNSIGNED, FIRST_OF_1_1 = 1, 7
KINDS: dict[str, Kind] = {
    "float16": Kind(2, 16),
    "float32": Kind(2, 32),
    "bfloat16": Kind(4, 16),
    "float8_e3m4": Kind(7, 8),
    "float8_e4m3": Kind(8, 8),
    "float8_e4m3b11fnuz": Kind(9, 8),
    "float8_e4m3fn": Kind(10, 8),
    "float8_e4m3fnuz": Kind(11, 8),
    "float8_e5m2": Kind(12, 8),
    "float8_e5m2fnuz": Kind(13, 8),
    "float8_e8m0fnu": Kind(14, 8),
    "float6_e2m3fn": Kind(15, 6),
    "float6_e3m2fn": Kind(16, 6),
    "float4_e2m1fn": Kind(17, 4),
}
"""Formats that DLPack has."""

FORMATS = {kind: ROSTER[name] for name, kind in KINDS.items()}
PADDED = 1 << 2  # each element of less than a byte has a byte of its own
HOST = {1, 3, 11, 13}  # the CPU's memory, pinned for CUDA or ROCm, managed by CUDA
DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
NEWEST = (1, 1)
ON_THE_HOST = "x.cpu() of PyTorch, jax.device_get(x), cupy.asnumpy(x)"


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_address_of = ctypes.pythonapi.PyCapsule_GetPointer
_address_of.restype, _address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _opened(capsule: Any) -> tuple[Tensor, Versioned | None]:
    """The tensor in a capsule that nobody has taken yet, and what surrounds it; None before DLPack 1.0."""
    name = _name_of(capsule)
    address = _address_of(capsule, name)
    if name == b"dltensor":
        return Tensor.from_address(address), None
    managed = Versioned.from_address(address)
    if name != b"dltensor_versioned" or managed.major != NEWEST[0]:
        raise TypeError(f"x hands over DLPack {name!r} of version {managed.major}; accepted: 0 and 1")
    return managed.tensor, managed


def capsule_of(codes: Codes, fmt: Format, options: dict[str, Any]) -> Any:
    """A capsule of DLPack on the memory of codes, with the format's type.

    Parameters
    ----------
    codes : array of `fmt.dtype`
    fmt : Format
    options : dict
        What `__dlpack__` was called with; NumPy reads it.

    Raises
    ------
    BufferError
        If DLPack has no such type, if the consumer's DLPack cannot say that elements of less than a byte are padded, and for
        memory that runs backwards.
    """
    kind = KINDS.get(fmt.name) if ROSTER.get(fmt.name) == fmt else None
    if kind is None:
        raise BufferError(f"DLPack has no {fmt}; accepted: its .codes, or .values (float64)")
    if (
        codes.size
        and not options.get("copy")
        and any(n > 1 and step < 0 for n, step in zip(codes.shape, codes.strides, strict=True))
    ):
        raise BufferError("x runs backwards along an axis, which ends PyTorch's process; accepted: x.copy()")
    capsule = codes.__dlpack__(**options)
    tensor, managed = _opened(capsule)
    if kind.bits % 8 and managed is None:
        raise BufferError(
            f"{fmt} has a byte for each element, and capsules say so from DLPack 1.1 on, which max_version=(1, 1) asks for; "
            "accepted: its .codes, or .values (float64)"
        )
    if managed is not None and kind.code >= FIRST_OF_1_1:
        managed.minor = max(managed.minor, NEWEST[1])
        managed.flags |= PADDED if kind.bits % 8 else 0
    tensor.code, tensor.bits = kind
    return capsule


class Held:
    """A capsule, for NumPy to ask for."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def of_others(x: Any) -> tuple[Any, Format | None]:
    """(codes, format) of another library's array, on its memory; (x, None) of what has no format of its own.

    Raises
    ------
    TypeError
        For memory that is not the host's, elements that share bytes, and tensors whose numbers are not as their memory says.
    """
    torch = sys.modules.get("torch")  # imported by whoever made a tensor
    if torch is not None and isinstance(x, torch.Tensor):
        return _of_torch(x, torch)
    if not hasattr(x, "__dlpack__"):
        return x, None
    device = _device(x)
    if isinstance(getattr(x, "dtype", None), np.dtype):
        return np.asarray(x), None
    return (x, None) if device is None else _of_capsule(x, device)


def _device(x: Any) -> tuple[int, int] | None:
    """Where an array is; None if it does not say, or is in several places."""
    try:
        kind, number = x.__dlpack_device__()
    except (AttributeError, BufferError):
        return None
    if int(kind) not in HOST:
        where = DEVICES.get(int(kind), f"of DLPack's type {int(kind)}")
        raise TypeError(f"x is on a device ({where}); accepted: arrays in the host's memory: {ON_THE_HOST}")
    return int(kind), int(number)


def _of_capsule(x: Any, device: tuple[int, int]) -> tuple[Any, Format | None]:
    try:
        capsule = x.__dlpack__(max_version=NEWEST)
    except TypeError as error:
        if "keyword" not in str(error):
            raise
        capsule = x.__dlpack__()  # of before DLPack 1.0
    tensor, managed = _opened(capsule)
    fmt = FORMATS.get(Kind(tensor.code, tensor.bits))
    packed = tensor.bits % 8 and not (managed is not None and managed.flags & PADDED)
    if fmt is not None and (packed or tensor.lanes != 1):
        raise TypeError(f"x has elements of {tensor.bits} bits that share bytes; {UNPACKED}")
    if fmt is not None:
        tensor.code, tensor.bits = UNSIGNED, 8 * fmt.dtype.itemsize
    found = np.from_dlpack(Held(capsule, device))
    return (found, None) if fmt is None else (check_codes(found, fmt, "x"), fmt)


UNPACKED = "accepted: softfloat.interchange.unpacked() of their bytes, such as x.view(torch.uint8).numpy()"


def _of_torch(x: Any, torch: Any) -> tuple[Any, Format | None]:
    if type(x).__name__ == "MaskedTensor":
        raise TypeError("x must have no mask: codes cannot be masked; accepted: x.to_tensor(...), or x.get_data()")
    name = str(x.dtype).removeprefix("torch.")
    if name == "float4_e2m1fn_x2":
        raise TypeError(f"x is a tensor of {name}, whose elements share bytes; {UNPACKED}")
    fmt = ROSTER.get(name)
    if fmt is None:
        return x, None
    if x.device.type != "cpu":
        raise TypeError(f"x is a tensor on {x.device}; accepted: tensors in the host's memory: x.cpu()")
    if x.layout != torch.strided:
        raise TypeError(f"x is a tensor of layout {x.layout}; accepted: dense ones: x.to_dense()")
    if x.is_neg():
        raise TypeError("x is a tensor that is negated when it is read; accepted: x.resolve_neg()")
    return x.detach().view(getattr(torch, fmt.dtype.name)).numpy(), fmt
