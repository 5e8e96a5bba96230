"""Numeric instructions, and which call of `softfloat.bits` says the same.

>>> [row.name for row in instructions() if row.extensions == ("F16C",)]
['VCVTPS2PH', 'VCVTPH2PS']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import vdpbf16ps
from softfloat.formats import Format, bfloat16, float16, float32
from softfloat.testing.hardware.ptx import NAMES, ScalarInstruction, scalar_instruction

if TYPE_CHECKING:
    from softfloat.testing.hardware.instructions import Code

__all__ = ["Codes", "Instruction", "Operands", "instructions"]

Codes = np.ndarray[Any, Any]
Operands = tuple[Codes, ...]
Model = Callable[[Operands, dict[str, Any]], tuple[Codes, Codes]]


@dataclass(frozen=True)
class Instruction:
    """One instruction, and what the model says it does.

    Attributes
    ----------
    name : str
        As the manual spells it.
    extensions : tuple of str
        What the machine must have.
    model : str
        The call of `softfloat.bits` that says the same, or why there is none.
    modes : tuple of str
        Rounding modes, each a row of results; chosen by an immediate or by MXCSR.RC.
    formats : tuple of Format
        Of the operands.
    families : tuple of str
        Kinds of operands it is tried with; `FAMILIES` says what they are.
    flags : bool
        Whether it reports in MXCSR; if not, its flags must stay clear.
    daz, ftz : bool
        Whether these bits of MXCSR concern it.
    source : str
        Where the rules come from.
    """

    name: str
    extensions: tuple[str, ...]
    model: str
    source: str
    modes: tuple[str, ...] = ("nearest_even",)
    formats: tuple[Format, ...] = ()
    result: Format = float32
    families: tuple[str, ...] = ("any bits", "edges", "near")
    flags: bool = True
    daz: bool = False
    ftz: bool = False
    code: Callable[[str], Code] | None = field(default=None, repr=False, compare=False)
    run_model: Model | None = field(default=None, repr=False, compare=False)
    by_register: bool = False  # MXCSR.RC chooses the mode
    tiles: bool = False  # operands are tiles of AMX
    scalar: ScalarInstruction | None = field(default=None, repr=False, compare=False)  # of a GPU

    @property
    def is_checked(self) -> bool:
        """Whether there is a model to check it against."""
        return self.code is not None or self.tiles or self.scalar is not None

    @property
    def device(self) -> str:
        """Where it runs."""
        return "cuda" if "CUDA" in self.extensions else "cpu"

    @property
    def packed(self) -> bool:
        """Whether operands are pairs of codes, the first in the low bits."""
        return self.name == "VDPBF16PS"


SDM = "Intel SDM, volume 2"
NEVER_FLUSHED = "FP16 instructions ignore DAZ and FTZ"
MODES = ("nearest_even", "toward_negative", "toward_positive", "toward_zero")


def _code(template: str, operands: tuple[int, ...], result: int, lanes: int, **more: Any) -> Callable[[str], Code]:
    """{mode} in a template is the immediate that chooses a rounding mode."""

    def make(mode: str) -> Code:
        from softfloat.testing.hardware.instructions import ROUNDING_FIELD, Code

        return Code(template.replace("{mode}", str(ROUNDING_FIELD[mode])), operands, result, lanes, **more)

    return make


def _conversion(source: Format, target: Format) -> Model:
    def run(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
        codes, flags = bits.convert(operands[0], source, target, nan="x86", **options)
        return codes, flags

    return run


def _arithmetic(function: Callable[..., Any], fmt: Format, nan: str) -> Model:
    def run(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
        codes, flags = function(*operands, fmt, nan=nan, **options)
        return codes, flags

    return run


def _dot(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
    c, a, b = operands
    first, second = (x.astype("<u4").view("<u2").reshape(-1, 2) for x in (a, b))
    codes, _ = bits.vecdot(first, second, bfloat16, vdpbf16ps(), c)
    return codes, np.zeros(codes.shape, np.uint8)


def _to_bfloat16(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
    codes, _ = bits.convert(operands[0], float32, bfloat16, daz=True, nan="x86")
    return codes, np.zeros(codes.shape, np.uint8)


def _arithmetic_rows(fmt: Format, suffix: str, extensions: tuple[str, ...], lanes: int, **more: Any) -> Iterator[Any]:
    """Six instructions on vectors in a format."""
    wide = lanes * fmt.bits == 512
    shared: dict[str, Any] = {"modes": MODES, "by_register": True, "result": fmt, **more}
    for name, arity in (("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("sqrt", 1)):
        template = f"v{name}{suffix} $2, $1, $0" if arity == 2 else f"v{name}{suffix} $1, $0"
        yield Instruction(
            f"V{name.upper()}{suffix.upper()}",
            extensions,
            f'{name}({", ".join("ab"[:arity])}, "{fmt.name}", rounding=mode, nan="x86")',
            formats=(fmt,) * arity,
            code=_code(template, (fmt.bits,) * arity, fmt.bits, lanes, wide=wide),
            run_model=_arithmetic(getattr(bits, name), fmt, "x86"),
            **shared,
        )
    yield Instruction(
        f"VFMADD213{suffix.upper()}",
        extensions if "FP16" in extensions[0] else ("FMA",),
        f'fma(a, b, c, "{fmt.name}", rounding=mode, nan="x86_fma3")',
        formats=(fmt,) * 3,
        code=_code(f"vfmadd213{suffix} $3, $1, $0", (fmt.bits,) * 3, fmt.bits, lanes, tied=1, wide=wide),
        run_model=_arithmetic(bits.fma, fmt, "x86_fma3"),
        **shared,
    )


def _of_a_gpu(name: str) -> Instruction:
    """One of NVIDIA's."""
    one = scalar_instruction(name)
    halves = len(one.formats) == 1 and one.formats[0].bits == 16
    converts = name.startswith("cvt")

    def run(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
        codes = one.run(operands)
        return codes, np.zeros(codes.shape, np.uint8)

    return Instruction(
        name,
        ("CUDA",),
        one.call,
        "rows read off H100 and H200; NVIDIA PTX ISA",
        modes=(one.mode,),
        formats=one.formats,
        result=one.result,
        families=("all",) if halves else ("any bits", "edges", "next to the target" if converts else "near"),
        flags=False,
        run_model=run,
        scalar=one,
    )


@cache
def instructions() -> tuple[Instruction, ...]:
    """The table of instructions, those without a model at the end."""
    conversions = ("any bits", "edges", "next to the target")
    return (
        Instruction(
            "VCVTPS2PH",
            ("F16C",),
            'convert(x, "float32", "float16", rounding=mode, nan="x86")',
            f"{SDM}, VCVTPS2PH: rounding by the immediate, FTZ ignored",
            modes=MODES,
            formats=(float32,),
            result=float16,
            families=conversions,
            daz=True,
            code=_code("vcvtps2ph $${mode}, $1, $0", (32,), 16, 8, wide=False),
            run_model=_conversion(float32, float16),
        ),
        Instruction(
            "VCVTPH2PS",
            ("F16C",),
            'convert(x, "float16", "float32", nan="x86")',
            f"{SDM}, VCVTPH2PS: exact, subnormal halves whatever DAZ says",
            formats=(float16,),
            families=("all",),
            code=_code("vcvtph2ps $1, $0", (16,), 32, 8, wide=False),
            run_model=_conversion(float16, float32),
        ),
        Instruction(
            "VCVTNEPS2BF16",
            ("AVX512_BF16",),
            'convert(x, "float32", "bfloat16", daz=True, nan="x86")',
            f"{SDM}, VCVTNEPS2BF16: nearest even, DAZ and FTZ always, MXCSR neither read nor written",
            formats=(float32,),
            result=bfloat16,
            families=conversions,
            flags=False,
            code=_code("vcvtneps2bf16 $1, $0", (32,), 16, 16),
            run_model=_to_bfloat16,
        ),
        Instruction(
            "VDPBF16PS",
            ("AVX512_BF16",),
            'vecdot(a, b, "bfloat16", vdpbf16ps(), c)',
            f"{SDM}, VDPBF16PS: nearest even, DAZ and FTZ always, MXCSR neither read nor written",
            formats=(float32, bfloat16, bfloat16),
            families=("any bits", "edges", "near", "tiny", "huge"),
            flags=False,
            code=_code("vdpbf16ps $3, $2, $0", (32, 32, 32), 32, 16, tied=0),
            run_model=_dot,
        ),
        *_arithmetic_rows(
            float32,
            "ps",
            ("AVX",),
            8,
            daz=True,
            ftz=True,
            families=("any bits", "edges", "near", "tiny", "huge"),
            source="Intel SDM, volume 1, 4.8 and table 4-7 (NaNs), 10.2.3 (MXCSR)",
        ),
        *_arithmetic_rows(
            float16,
            "ph",
            ("AVX512_FP16",),
            32,
            families=("any bits", "edges", "near", "tiny", "huge"),
            source=f"Intel AVX512-FP16 Architecture Specification: as single precision, and {NEVER_FLUSHED}",
        ),
        Instruction(
            "VCVTNEPS2BF16 (VEX)",
            ("AVX_NE_CONVERT",),
            "not checked: the EVEX form stands for it",
            f"{SDM}, VCVTNEPS2BF16",
        ),
        *(
            Instruction(
                name,
                (extension,),
                f'matmul(a, b, "{fmt.name}", amx("{fmt.name}"), c)',
                f"{SDM}, {name}: nearest even, DAZ and FTZ, MXCSR neither read nor written",
                formats=(float32, fmt, fmt),
                families=("any bits", "edges", "near"),
                flags=False,
                tiles=True,
            )
            for name, extension, fmt in (("TDPBF16PS", "AMX_BF16", bfloat16), ("TDPFP16PS", "AMX_FP16", float16))
        ),
        Instruction("TDPBSSD", ("AMX_INT8",), "not checked: integers", f"{SDM}, TDPBSSD"),
        *map(_of_a_gpu, NAMES),
        Instruction(
            "mma.sync", ("CUDA",), "not checked: vecdot(a, b, fmt, tensor_core(...), c)", "NVIDIA PTX ISA, mma.sync"
        ),
    )
