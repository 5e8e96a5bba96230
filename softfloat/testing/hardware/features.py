"""What this machine has: extensions of x86 as LLVM reports them, CUDA devices as the driver does."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["CUDA_DRIVER", "EXTENSIONS", "Features", "features"]

CUDA_DRIVER = "nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1"

EXTENSIONS = {
    "AVX": ("avx",),
    "F16C": ("f16c",),
    "FMA": ("fma",),
    "AVX512F": ("avx512f",),
    "AVX512_BF16": ("avx512bf16", "avx512f"),
    "AVX512_FP16": ("avx512fp16", "avx512f", "avx512bw"),
    "AVX_NE_CONVERT": ("avxneconvert",),
    "AMX_TILE": ("amx-tile",),
    "AMX_BF16": ("amx-bf16", "amx-tile"),
    "AMX_FP16": ("amx-fp16", "amx-tile"),
    "AMX_INT8": ("amx-int8", "amx-tile"),
}
"""Extensions of x86 by Intel's names, and what LLVM calls what each needs. LLVM counts only what the operating system lets through."""


@dataclass(frozen=True)
class Features:
    """What this machine offers.

    Attributes
    ----------
    machine, cpu : str
        The architecture, and LLVM's name of the CPU.
    extensions : dict of str to bool
        Those of `EXTENSIONS`, and "CUDA".
    gpus : tuple of str
        Names of CUDA devices with their compute capability.
    """

    machine: str
    cpu: str
    extensions: dict[str, bool]
    gpus: tuple[str, ...]

    def lacks(self, extensions: Sequence[str]) -> list[str]:
        """Those of some extensions that the machine does not have."""
        return [name for name in extensions if not self.extensions.get(name, False)]


@cache
def features() -> Features:
    """What this machine has: extensions of x86 as LLVM reports them, CUDA devices as the driver does.

    Anything else than x86 has none of the former, and a machine without NVIDIA's driver none of the latter.
    """
    from llvmlite import binding

    known: dict[str, bool] = {}
    if platform.machine().lower() in ("x86_64", "amd64"):
        try:
            known = dict(binding.get_host_cpu_features())
        except RuntimeError:  # LLVM does not know how to ask
            known = {}
    found = {name: all(known.get(x, False) for x in needed) for name, needed in EXTENSIONS.items()}
    gpus = _gpus()
    return Features(platform.machine(), binding.get_host_cpu_name(), found | {"CUDA": bool(gpus)}, gpus)


def _gpus() -> tuple[str, ...]:
    """CUDA devices, by the driver's own library; none if there is no driver or it fails."""
    try:
        driver = ctypes.CDLL(CUDA_DRIVER)
    except OSError:
        return ()
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    found = []
    for number in range(count.value):
        device, text, major, minor = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int(), ctypes.c_int()
        if driver.cuDeviceGet(ctypes.byref(device), number) or driver.cuDeviceGetName(text, len(text), device):
            continue
        for place, attribute in ((major, 75), (minor, 76)):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
            driver.cuDeviceGetAttribute(ctypes.byref(place), attribute, device)
        found.append(f"{text.value.decode(errors='replace')} (sm_{major.value}{minor.value})")
    return tuple(found)
