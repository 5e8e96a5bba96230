"""NVIDIA's scalar instructions against what an H100 gave for all codes of half and bfloat16."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat.testing.hardware import cuda
from softfloat.testing.hardware.ptx import NAMES, ScalarInstruction, scalar_instruction

READ = {
    "abs.bf16": 0xEF673AD5,
    "abs.f16": 0x139142F3,
    "abs.f32": 0xEB9351EB,
    "cvt.f32.bf16": 0x093B1249,
    "cvt.f32.f16": 0x3FCCF55E,
    "cvt.ftz.f32.f16": 0x3FCCF55E,
    "cvt.rn.bf16.f16": 0x79CBF07B,
    "cvt.rn.f16.bf16": 0x8ED20FD4,
    "cvt.rn.ftz.f16.f32": 0xC68EA15D,
    "cvt.rn.relu.bf16.f32": 0xA65C2F9D,
    "cvt.rn.relu.f16.f32": 0x9E7C43CB,
    "cvt.rn.relu.tf32.f32": 0x8CDE0889,
    "cvt.rn.sat.f16.f32": 0xC5E2E361,
    "cvt.rn.satfinite.bf16.f32": 0x11EF4861,
    "cvt.rn.satfinite.e4m3x2.f32": 0x62C1F61E,
    "cvt.rn.satfinite.e5m2x2.f32": 0x6E104A70,
    "cvt.rn.satfinite.f16.f32": 0xC3CE978B,
    "cvt.rn.satfinite.relu.e4m3x2.f32": 0x106FA3F2,
    "cvt.rn.satfinite.relu.e5m2x2.f32": 0x05B3DC1A,
    "cvt.rn.tf32.f32": 0xAA911AB1,
    "cvt.rna.tf32.f32": 0x42965E51,
    "cvt.rni.f16.f16": 0xCD11E87D,
    "cvt.rni.f32.f32": 0x40D4ED2A,
    "cvt.rz.relu.bf16.f32": 0x5A85A475,
    "cvt.rz.relu.f16.f32": 0x512F6C4F,
    "cvt.rz.relu.tf32.f32": 0x8CDE0889,
    "cvt.rz.tf32.f32": 0xAA911AB1,
    "cvt.sat.f32.f16": 0x2A344716,
    "neg.bf16": 0xFE6D699D,
    "neg.f16": 0x792F93FF,
    "neg.f32": 0xC3BB6CF3,
    "sqrt.rn.ftz.f32": 0x935A9632,
}
"""CRC-32 of the results of instructions of one operand, read off an H100: for all 65 536 codes, or as `operand` has them."""


def operand(width: int) -> np.ndarray:
    """All codes of 16 bits; of 32 these in the upper half, and the halves that they are, NaNs with their payloads."""
    codes = np.arange(1 << 16, dtype=np.uint32)
    if width == 16:
        return codes.astype(np.uint16)
    halves = codes.astype(np.uint16).view(np.float16)
    nan = np.isnan(halves)
    singles = np.where(nan, np.float16(0), halves).astype(np.float32).view(np.uint32)
    moved = (codes & 0x8000) << 16 | 0x7F800000 | (codes & 0x3FF) << 13
    return np.concatenate([codes << 16, np.where(nan, moved, singles)])


@pytest.mark.parametrize("name", READ)
def test_what_an_h100_gave(name: str) -> None:
    one = scalar_instruction(name)
    found = one.run([operand(one.formats[0].bits)])
    assert found.dtype == one.result.dtype
    assert zlib.crc32(found.astype(found.dtype.newbyteorder("<")).tobytes()) == READ[name]


def test_names() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(READ) <= set(NAMES)
    for name in NAMES:
        one = scalar_instruction(name)
        assert one.name == name
        assert "Environment.nvidia(" in one.call
        assert ("ftz=True" in one.call) == (".ftz" in name)


class Driver:
    """The CUDA driver's functions that a run calls, on memory of this process; a launch is the model itself."""

    def __init__(self, one: ScalarInstruction, fails: str = "") -> None:
        self.one, self.fails, self.memory, self.unloaded = one, fails, {}, 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *arguments: 209 if name == self.fails else 0

    def cuModuleLoadData(self, module: Any, text: bytes) -> int:
        assert self.one.name in text.decode()
        assert text.endswith(b"\0")
        return 209 if self.fails == "cuModuleLoadData" else 0

    def cuMemAlloc_v2(self, place: Any, size: ctypes.c_size_t) -> int:
        memory = ctypes.create_string_buffer(size.value)
        place._obj.value = ctypes.addressof(memory)
        self.memory[place._obj.value] = memory
        return 0

    def cuMemcpyHtoD_v2(self, place: ctypes.c_uint64, source: ctypes.c_void_p, size: ctypes.c_size_t) -> int:
        ctypes.memmove(place.value, source, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, target: ctypes.c_void_p, place: ctypes.c_uint64, size: ctypes.c_size_t) -> int:
        ctypes.memmove(target, place.value, size.value)
        return 0

    def cuLaunchKernel(self, function: Any, *more: Any) -> int:
        blocks, _, _, threads, _, _, shared, stream, pointers, extra = more
        assert (shared, stream, extra) == (0, None, None)
        *places, count = (ctypes.c_uint64.from_address(x).value for x in pointers)
        assert blocks * threads >= count > (blocks - 1) * threads
        given = [
            np.frombuffer(self.memory[place], fmt.dtype)[:count]
            for place, fmt in zip(places, self.one.formats, strict=False)
        ]
        found = self.one.run(given)
        if self.one.paired:
            found = found.astype(np.uint16) * np.uint16(257)
        np.frombuffer(self.memory[places[-1]], found.dtype)[:] = found
        return 0

    def cuMemFree_v2(self, place: ctypes.c_uint64) -> int:
        del self.memory[place.value]
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        self.unloaded += 1
        return 0


@pytest.mark.parametrize("name", ["fma.rn.f16", "ex2.approx.ftz.bf16", "cvt.rn.satfinite.e4m3x2.f32", "cvt.f32.bf16"])
def test_a_run_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = scalar_instruction(name)
    driver = Driver(one)
    monkeypatch.setattr(cuda, "_device", lambda: made)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    made = cuda._Device()
    random = np.random.default_rng(0)
    operands = [random.integers(0, 1 << fmt.bits, 1000, np.uint64).astype(fmt.dtype) for fmt in one.formats]
    found = cuda.results(one, operands)
    assert found.dtype == one.result.dtype
    assert np.array_equal(found, one.run(operands))
    assert (driver.memory, driver.unloaded) == ({}, 1)
    driver.fails = "cuModuleLoadData"
    with pytest.raises(RuntimeError, match="cuModuleLoadData of the CUDA driver failed with 209"):
        cuda.results(one, operands)
