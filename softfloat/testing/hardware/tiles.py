"""Tile products of Intel's AMX as functions over arrays: configured, loaded, multiplied and stored by the instructions themselves.

Linux gives a process the tile registers when it asks for them; elsewhere nothing is run. One call is one instruction on whole tiles:
16 x 16 sums of 32 products each.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir

from softfloat.testing.hardware.instructions import initialize, target_machine

__all__ = ["ROWS", "TILE", "machine_code", "permitted", "product"]

ROWS, TILE = 16, 32
"""Rows and columns of the sums; products of each, in 16-bit formats."""
STRIDE = 64  # bytes of a row of a tile
SYSCALL_ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18
"""Linux on x86-64: the number of arch_prctl, its ARCH_REQ_XCOMP_PERM, and the state component of tiles (XFEATURE_XTILEDATA)."""

BYTE, INDEX = ir.IntType(8), ir.IntType(64)
POINTER = BYTE.as_pointer()
STEPS = (
    "ldtilecfg ($0)",
    "tileloadd ($1,$4,1), %tmm0",
    "tileloadd ($2,$4,1), %tmm1",
    "tileloadd ($3,$4,1), %tmm2",
    "{name} %tmm2, %tmm1, %tmm0",
    "tilestored %tmm0, ($1,$4,1)",
    "tilerelease",
)
"""$0 the configuration, $1 sums, $2 a by rows, $3 b by pairs of rows, $4 the stride; AT&T's order has the result last."""


@cache
def permitted() -> str:
    """Why this process may not use tiles; empty if it may."""
    if platform.system() != "Linux":
        return f"tiles are asked for as Linux has it, and this is {platform.system()}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SYSCALL_ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA):
        return f"the system refuses tile registers (arch_prctl: error {ctypes.get_errno()})"
    return ""


def _module(name: str) -> str:
    """LLVM's text of void product(configuration, sums, a, b)."""
    module = ir.Module()
    module.triple = binding.get_process_triple()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER] * 4), "product")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    signature = ir.FunctionType(ir.VoidType(), [POINTER] * 4 + [INDEX])
    template = "\n".join(STEPS).replace("{name}", name.lower())
    builder.asm(signature, template, "r,r,r,r,r,~{memory}", [*function.args, INDEX(STRIDE)], side_effect=True)
    builder.ret_void()
    return str(module)


def machine_code(name: str, cpu: str, features: str) -> bytes:
    """The object file of a tile product for some other CPU: nothing is run."""
    initialize()
    return bytes(target_machine(cpu, features).emit_object(binding.parse_assembly(_module(name))))


def configuration() -> Any:
    """64 bytes for LDTILECFG: palette 1, three tiles of 16 rows of 64 bytes (Intel SDM, volume 1, 18.2)."""
    made = np.zeros(64, np.uint8)
    made[0] = 1
    made[16:22].view("<u2")[:] = STRIDE
    made[48:51] = ROWS
    return made


@cache
def _assembled(name: str) -> tuple[Any, Any]:
    """The engine, which must live as long as the function, and the function."""
    initialize()
    features = binding.get_host_cpu_features().flatten()
    module = binding.parse_assembly(_module(name))
    module.verify()
    engine = binding.create_mcjit_compiler(module, target_machine(binding.get_host_cpu_name(), features, jit=True))
    engine.finalize_object()
    return engine, ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(engine.get_function_address("product"))


def product(name: str, a: Any, b: Any, c: Any) -> Any:
    """c + a b by one instruction: codes a (16, 32) and b (32, 16) of 16 bits, c (16, 16) of 32; new codes of the sums."""
    _, run = _assembled(name)
    rows = np.ascontiguousarray(a, "<u2")
    pairs = np.ascontiguousarray(np.asarray(b, "<u2").reshape(ROWS, 2, ROWS).transpose(0, 2, 1))
    sums, settings = np.array(c, "<u4", order="C"), configuration()
    run(*(x.ctypes.data for x in (settings, sums, rows, pairs)))
    return sums
