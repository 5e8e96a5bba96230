"""Scalar instructions of an NVIDIA GPU as functions over arrays: the driver compiles each as it stands, and nothing else is needed.

A module of PTX loads operands, runs the one instruction and stores its result, an element in each thread. Instructions that take or make pairs
have both alike, and the first is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from softfloat.testing.hardware.features import CUDA_DRIVER
from softfloat.testing.hardware.ptx import Codes, ScalarInstruction

__all__ = ["module_text", "results"]

THREADS = 256


def module_text(one: ScalarInstruction) -> str:
    """PTX of `one(operands ..., results, count)`."""
    widths = [fmt.bits for fmt in one.formats]
    out = 16 if one.paired else 8 * one.result.dtype.itemsize
    taken = [f"%x{i}" for i in range(len(widths))] * (2 if one.paired else 1)
    places = [f"k_{i}" for i in range(len(widths) + 2)]
    loads = "\n".join(
        f"ld.param.u64 %p, [{place}]; mad.lo.u64 %p, %i, {bits // 8}, %p; ld.global.b{bits} %x{i}, [%p];"
        for i, (place, bits) in enumerate(zip(places, widths, strict=False))
    )
    return f""".version 8.1
.target sm_90
.address_size 64
.visible .entry one({", ".join(f".param .u64 {place}" for place in places)})
{{
.reg .u64 %p, %i, %n; .reg .u32 %block, %size, %thread; .reg .pred %beyond; .reg .b{out} %r;
{" ".join(f".reg .b{bits} %x{i};" for i, bits in enumerate(widths))}
mov.u32 %block, %ctaid.x; mov.u32 %size, %ntid.x; mov.u32 %thread, %tid.x;
mul.wide.u32 %i, %block, %size; cvt.u64.u32 %p, %thread; add.u64 %i, %i, %p;
ld.param.u64 %n, [{places[-1]}];
setp.ge.u64 %beyond, %i, %n;
@%beyond ret;
{loads}
{one.name} %r, {", ".join(taken)};
ld.param.u64 %p, [{places[-2]}]; mad.lo.u64 %p, %i, {out // 8}, %p; st.global.b{out} [%p], %r;
ret;
}}
"""


class _Device:
    """The first CUDA device, by the driver's own library."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL(CUDA_DRIVER)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the driver; RuntimeError if it fails."""
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} of the CUDA driver failed with {status}")

    def run(self, one: ScalarInstruction, operands: Sequence[Codes]) -> Codes:
        self.call("cuCtxSetCurrent", self.context)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), module_text(one).encode() + b"\0")
        places: list[ctypes.c_uint64] = []
        try:
            self.call("cuModuleGetFunction", ctypes.byref(function), module, b"one")
            given = [np.ascontiguousarray(x, fmt.dtype) for x, fmt in zip(operands, one.formats, strict=True)]
            found = np.empty(given[0].size, np.uint16 if one.paired else one.result.dtype)
            for array in (*given, found):
                place = ctypes.c_uint64()
                self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(array.nbytes))
                places.append(place)
            for place, array in zip(places, given, strict=False):
                self.call("cuMemcpyHtoD_v2", place, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
            arguments = [*places, ctypes.c_uint64(found.size)]
            pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(x) for x in arguments))
            blocks = -(-found.size // THREADS)
            self.call("cuLaunchKernel", function, blocks, 1, 1, THREADS, 1, 1, 0, None, pointers, None)
            self.call("cuCtxSynchronize")
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), places[-1], ctypes.c_size_t(found.nbytes))
        finally:
            for place in places:
                self.driver.cuMemFree_v2(place)
            self.driver.cuModuleUnload(module)
        return found.astype(one.result.dtype)  # of a pair, the first


@cache
def _device() -> _Device:
    return _Device()


def results(one: ScalarInstruction, operands: Sequence[Codes]) -> Codes:
    """What the GPU gives for arrays of codes, at least one in each.

    Raises
    ------
    RuntimeError, OSError
        Where the driver is missing, the device is older than sm_90, or anything fails.
    """
    return _device().run(one, operands)
