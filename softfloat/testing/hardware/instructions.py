"""Instructions of the CPU as functions over arrays: each is assembled as it stands, by LLVM, and runs under a chosen MXCSR.

An instruction is written in AT&T syntax inside a small loop, so that what runs is that instruction and not what a compiler
takes for its equal. Nothing is compiled on a machine that lacks the extension: the caller looks at
`softfloat.testing.hardware.features.features` first.

Two loops are made of each. `whole` takes full vectors and tells what the MXCSR's flags were in the end. `each` takes one
element at a time, in every lane, and tells its flags.

    MXCSR    15   14 13  12 ... 7   6    5  4  3  2  1  0
             FTZ    RC    masks    DAZ  PE UE OE ZE DE IE
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir

__all__ = [
    "ALL_MASKED",
    "DENORMALS_ZERO",
    "ROUNDING_FIELD",
    "Assembled",
    "assemble",
    "initialize",
    "machine_code",
    "target_machine",
]

ALL_MASKED = 0x1F80
"""No traps, nearest even, nothing flushed: what a process starts with."""
DENORMALS_ZERO = 0x8040
"""Both FTZ and DAZ."""
ROUNDING_FIELD = {"nearest_even": 0, "toward_negative": 1, "toward_positive": 2, "toward_zero": 3}
"""Rounding modes as MXCSR.RC and the immediate of VCVTPS2PH number them (Intel SDM, volume 1, table 4-8)."""
RC_SHIFT = 13

FLAG_OF_MXCSR = np.zeros(64, np.uint8)
"""MXCSR's six flags to the bits of `softfloat.Flags`; DE, a denormal operand, has none."""
for _mxcsr_bit, _flag in ((0, 16), (2, 8), (3, 4), (4, 2), (5, 1)):
    FLAG_OF_MXCSR[(np.arange(64) >> _mxcsr_bit & 1).astype(bool)] |= _flag

BYTE, WORD, INDEX = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = BYTE.as_pointer()


class Code(NamedTuple):
    """What to assemble: the template's $0 is the result, $1 ... the operands, of so many bits in so many lanes."""

    template: str
    operands: tuple[int, ...]
    result: int
    lanes: int
    tied: int | None = None  # the operand whose register is the result's, from 0
    wide: bool = True  # registers 16 to 31 may be used (AVX-512)

    @property
    def constraints(self) -> str:
        """Which registers, as LLVM spells it."""
        register = "v" if self.wide else "x"
        places = ["0" if number == self.tied else register for number in range(len(self.operands))]
        return ",".join([f"={register}", *places])


def _module(code: Code) -> str:
    """LLVM's text of both loops."""
    module = ir.Module()
    module.triple = binding.get_process_triple()
    for name in ("whole", "each"):
        _loop(module, name, code)
    return str(module)


def _loop(module: ir.Module, name: str, code: Code) -> None:
    """uint32 name(result, flags, count, mxcsr, operands...): pointers to arrays; the MXCSR in the end."""
    single = name == "each"
    kind = ir.FunctionType(WORD, [POINTER, POINTER, INDEX, WORD] + [POINTER] * len(code.operands))
    function = ir.Function(module, kind, name)
    result, flags, count, mxcsr, *operands = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    access = ir.FunctionType(ir.VoidType(), [POINTER])
    read, write = (module.declare_intrinsic(f"llvm.x86.sse.{verb}mxcsr", (), access) for verb in ("st", "ld"))
    before, during, after = (builder.alloca(WORD) for _ in range(3))
    places = [builder.bitcast(place, POINTER) for place in (before, during, after)]
    builder.call(read, [places[0]])
    builder.store(mxcsr, during)
    builder.call(write, [places[1]])
    entry = builder.block
    loop, done = (function.append_basic_block(label) for label in ("loop", "done"))
    builder.cbranch(builder.icmp_signed(">", count, INDEX(0)), loop, done)

    builder.position_at_end(loop)
    at = builder.phi(INDEX)
    at.add_incoming(INDEX(0), entry)
    vectors = []
    for pointer, width in zip(operands, code.operands, strict=True):
        element = ir.IntType(width)
        vector = ir.VectorType(element, code.lanes)
        place = builder.gep(builder.bitcast(pointer, element.as_pointer()), [at])
        if single:
            nothing = ir.Constant(vector, ir.Undefined)
            first = builder.insert_element(nothing, builder.load(place), WORD(0))
            same = ir.Constant(ir.VectorType(WORD, code.lanes), [0] * code.lanes)
            vectors.append(builder.shuffle_vector(first, nothing, same))
        else:
            loaded = builder.load(builder.bitcast(place, vector.as_pointer()))
            loaded.align = 1
            vectors.append(loaded)
    if single:
        builder.call(write, [places[1]])
    element = ir.IntType(code.result)
    vector = ir.VectorType(element, code.lanes)
    signature = ir.FunctionType(vector, [x.type for x in vectors])
    found = builder.asm(signature, code.template, code.constraints, vectors, side_effect=True)
    place = builder.gep(builder.bitcast(result, element.as_pointer()), [at])
    if single:
        builder.call(read, [places[2]])
        builder.store(builder.extract_element(found, WORD(0)), place)
        builder.store(builder.trunc(builder.load(after), BYTE), builder.gep(flags, [at]))
    else:
        stored = builder.store(found, builder.bitcast(place, vector.as_pointer()))
        stored.align = 1
    following = builder.add(at, INDEX(1 if single else code.lanes))
    at.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, done)

    builder.position_at_end(done)
    builder.call(read, [places[2]])
    builder.call(write, [places[0]])
    builder.ret(builder.load(after))


def initialize() -> None:
    """Make LLVM ready to assemble."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()


def target_machine(cpu: str, features: str, **options: Any) -> Any:
    """A machine for LLVM to assemble for."""
    return binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2, **options)


def machine_code(code: Code, cpu: str, features: str) -> bytes:
    """The object file of an instruction for some other CPU: nothing is run. An error if LLVM does not know the instruction.

    `cpu` and `features` are LLVM's names, such as "sapphirerapids" and "+avx512fp16".
    """
    initialize()
    module = binding.parse_assembly(_module(code))
    return bytes(target_machine(cpu, features).emit_object(module))


class Assembled:
    """An instruction of this machine, over arrays of codes."""

    def __init__(self, code: Code) -> None:
        self.code = code
        initialize()
        module = binding.parse_assembly(_module(code))
        module.verify()
        features = binding.get_host_cpu_features().flatten()
        self._engine = binding.create_mcjit_compiler(
            module, target_machine(binding.get_host_cpu_name(), features, jit=True)
        )
        self._engine.finalize_object()
        pointer = ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(
            ctypes.c_uint32, pointer, pointer, ctypes.c_int64, ctypes.c_uint32, *[pointer] * len(code.operands)
        )
        self._whole, self._each = (kind(self._engine.get_function_address(name)) for name in ("whole", "each"))

    def _arrays(self, operands: tuple[Any, ...], size: int) -> list[Any]:
        arrays = []
        for operand, width in zip(operands, self.code.operands, strict=True):
            array = np.ascontiguousarray(operand, np.dtype(f"u{width // 8}"))
            if array.size < size:
                one = {16: 0x3C00, 32: 0x3F800000}[width]  # whatever is computed from ones alone is exact
                array = np.concatenate([array, np.full(size - array.size, one, array.dtype)])
            arrays.append(array)
        return arrays

    def whole(self, operands: tuple[Any, ...], mxcsr: int = ALL_MASKED) -> tuple[Any, int]:
        """(codes, flags): one result for each element of the operands, arrays of one length; flags OR-ed together."""
        count = operands[0].size
        size = -(-count // self.code.lanes) * self.code.lanes
        arrays = self._arrays(operands, size)
        codes = np.empty(size, np.dtype(f"u{self.code.result // 8}"))
        after = self._whole(codes.ctypes.data, 0, size, mxcsr, *(x.ctypes.data for x in arrays))
        return codes[:count], int(FLAG_OF_MXCSR[after & 63])

    def each(self, operands: tuple[Any, ...], mxcsr: int = ALL_MASKED) -> tuple[Any, Any]:
        """(codes, flags), with a byte of flags for each element."""
        count = operands[0].size
        arrays = self._arrays(operands, count)
        codes, flags = np.empty(count, np.dtype(f"u{self.code.result // 8}")), np.empty(count, np.uint8)
        self._each(codes.ctypes.data, flags.ctypes.data, count, mxcsr, *(x.ctypes.data for x in arrays))
        return codes, FLAG_OF_MXCSR[flags & 63]


@cache
def assemble(code: Code) -> Assembled:
    """The instruction, assembled once."""
    return Assembled(code)
