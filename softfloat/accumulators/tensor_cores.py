"""NVIDIA's tensor cores: a table of their block multiply-adds, and the accumulators of its rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from softfloat.accumulators.accumulator import Accumulator, Alignment, Reduction, Stage, preset
from softfloat.checks import check_choice, check_integer, check_kind
from softfloat.formats import ROSTER, Format, bfloat16, check_format, float16, float32, tfloat32
from softfloat.kernels.spec import Overflow, Rounding

__all__ = ["TENSOR_CORES", "TensorCore", "tensor_core"]


E8M13 = Format("e8m13", exponent_bits=8, mantissa_bits=13)
"""What fp8 products are summed to on Ada and Hopper; float32 holds it."""
E5M2, E4M3 = ROSTER["float8_e5m2"], ROSTER["float8_e4m3fn"]


class TensorCore(NamedTuple):
    """One row of `TENSOR_CORES`: what one block fused multiply-add of a tensor core does."""

    architecture: str
    input: str  # float16 stands for bfloat16 too, float8 for both fp8 formats
    instruction: str
    block: int
    fraction_bits: int
    sum_bits: int  # fraction bits of a float32 result
    floors: tuple[int, int]  # least exponent that terms are aligned to: of float32 results, of float16 results
    outputs: tuple[str, ...]
    note: str = ""


BOTH, SINGLE = ("float32", "float16"), ("float32",)
V100, A100, H100 = (-131, -19), (-132, -20), (-133, -21)
"""Floors: those of the H100 are measured, of A100 and Ada published, of the V100 by analogy: one more a fraction bit less."""
BY_ANALOGY = "exponent floor and +0 for sums cut to zero as measured on the H100, not on this chip"
UNVERIFIED = "fraction bits from the published model, not from measured rows"
MODEL = "from the published model MMA-Sim, not from measured rows"
TENSOR_CORES = (
    TensorCore("V100", "float16", "mma.sync", 4, 23, 23, V100, BOTH, BY_ANALOGY),
    TensorCore("T4", "float16", "mma.sync", 8, 24, 23, A100, BOTH, MODEL),
    TensorCore("A100", "float16", "mma.sync", 8, 24, 23, A100, BOTH, BY_ANALOGY),
    TensorCore("A100", "tfloat32", "mma.sync", 4, 24, 23, A100, SINGLE, BY_ANALOGY),
    TensorCore("Ada", "float16", "mma.sync", 8, 24, 23, A100, BOTH, BY_ANALOGY),
    TensorCore("Ada", "tfloat32", "mma.sync", 4, 24, 23, A100, SINGLE, BY_ANALOGY),
    TensorCore("Ada", "float8", "mma.sync", 16, 13, 13, A100, BOTH, BY_ANALOGY),
    TensorCore("H100", "float16", "wgmma", 16, 25, 23, H100, BOTH),
    TensorCore("H100", "tfloat32", "wgmma", 8, 25, 23, H100, SINGLE),
    TensorCore("H100", "float8", "wgmma", 32, 13, 13, H100, BOTH),
    TensorCore("B200", "float16", "tcgen05", 16, 25, 23, H100, BOTH, BY_ANALOGY),
    TensorCore("B200", "tfloat32", "tcgen05", 8, 25, 23, H100, SINGLE, BY_ANALOGY),
    TensorCore("B200", "float8", "tcgen05", 32, 25, 23, H100, BOTH, UNVERIFIED),
    TensorCore("RTX Blackwell", "float16", "mma.sync", 16, 25, 23, H100, BOTH, MODEL),
    TensorCore("RTX Blackwell", "tfloat32", "mma.sync", 8, 25, 23, H100, SINGLE, MODEL),
    TensorCore("RTX Blackwell", "float8", "mma.sync", 32, 25, 23, H100, BOTH, MODEL),
)
SAME_AS = {"A2": "A100", "A30": "A100", "L40S": "Ada", "H200": "H100"}
"""Architectures that the same rows describe."""
UNPACKING = ("H100", "H200", "B200")
"""Where `mma.sync` exists too: the same for 16- and 19-bit inputs; fp8 is unpacked to half."""
SHORT = {"float16": ("mma.sync.m16n8k8", 8), "tfloat32": ("mma.sync.m16n8k4", 4), "float8": ("mma.sync.m16n8k16", 16)}
"""Of H100 and H200: the shape of `mma.sync` with half as many products, which make a block of their own."""
LEAST_FLOOR = -300
"""Below the exponents of all terms."""


HALF_ALONE = ("V100", "T4")
"""Where bfloat16 is not an input."""
BLOCK_SCALING = ("B200", "RTX Blackwell")
"""Where operands may have scales."""
BLOCK_SCALED = {
    "mxf8f6f4": ((E4M3, E5M2), 32, Alignment(25, zeros=-126)),
    "mxf4nvf4": ((ROSTER["float4_e2m1fn"],), 64, Alignment(35, group=16, zeros=-126)),
}
"""Inputs, products of an instruction, and how they are aligned, as MMA-Sim models it."""


@preset
def tensor_core(
    arch: str,
    input: Format | str = "float16",
    output: Format | str = "float32",
    instruction: str | None = None,
    *,
    zero_exponent: int | None = None,
    exponent_floor: int | None = None,
    positive_zeros: bool = True,
) -> Accumulator:
    """NVIDIA tensor cores: blocks of products and the running sum, aligned, cut, added, and cut again.

    Parameters
    ----------
    arch : str
        "V100", "T4", "A100", "A2", "A30", "Ada", "L40S", "H100", "H200", "B200" or "RTX Blackwell".
    input : Format or str
        "float16", "bfloat16" and "tfloat32" (neither on V100 and T4), "float8_e4m3fn" or "float8_e5m2" (from Ada on;
        either accepts operands in both).
    output : Format or str
        "float32" or "float16": the accumulator. With float16 each block is rounded to nearest even.
    instruction : str, optional
        "mma.sync", or what the architecture has beside it: "wgmma" (H100, H200), "tcgen05" (B200), their default. On
        these, fp8 through "mma.sync" is unpacked to half: two halves of each 32 products, a chain from +0, then one
        ordinary addition to c, in the output's format. H100 and H200 have shorter shapes: "mma.sync.m16n8k8" (16-bit
        inputs), "mma.sync.m16n8k4" (tfloat32), "mma.sync.m16n8k16" (fp8). On B200 and RTX Blackwell, "mxf8f6f4" (fp8,
        32 products to a scale) and "mxf4nvf4" ("float4_e2m1fn", 16 or 32 to a scale; groups of 16 are summed exactly)
        take operands with scales.
    zero_exponent : int, optional
        The exponent that each factor that is zero, and a running sum that is zero, has in the alignment: -126 in MMA-Sim
        before version 2.1. None: a zero has no part in it. Not for operands with scales.
    exponent_floor : int, optional
        The least exponent that terms are aligned to, -300 (below all terms) to 0. None: that of the architecture. Not for
        operands with scales.
    positive_zeros : bool
        Sums that are cut or rounded to zero are +0; they keep their sign otherwise.

    Raises
    ------
    ValueError
        For what the architecture does not have.

    Notes
    -----
    Measured on H100 and H200: zeros have no part in the alignment; the floor of the exponents is -133 for float32 results
    and -21 for half results; sums cut or rounded to zero are +0. Of other architectures the floors (-132 and -20 on A100
    and Ada, -131 and -19 on V100) and the sign of zeros are a model: no measured row of theirs decides them. NaN is
    0x7FFFFFFF (0x7FFF in half). Hardware raises no flags; those returned say what a block did: INEXACT if any bit was
    cut, OVERFLOW, UNDERFLOW, INVALID.

    Source: rows read off H100 and H200; Khattak and Mikaitis, arXiv 2512.07004, and their measured rows; Microsoft's
    MMA-Sim.
    """
    check_kind("positive_zeros", positive_zeros, bool)
    if instruction in BLOCK_SCALED and arch in BLOCK_SCALING:
        for name, value in (("zero_exponent", zero_exponent), ("exponent_floor", exponent_floor)):
            if value is not None:
                raise ValueError(f"{name} must be None for {instruction}, whose zeros the model counts, got {value!r}")
        return _block_scaled(arch, input, output, instruction, positive_zeros)
    row, fmt, out, unpacked = _asked_for(arch, input, output, instruction)
    shown = f", instruction={instruction!r}" if instruction else ""
    switches = {"zero_exponent": zero_exponent, "exponent_floor": exponent_floor}
    shown += "".join(f", {name}={value!r}" for name, value in switches.items() if value is not None)
    shown += "" if positive_zeros else ", positive_zeros=False"
    for name, exponent in switches.items():
        if exponent is not None and not LEAST_FLOOR <= check_integer(name, exponent) <= 0:
            raise ValueError(f"{name} must be {LEAST_FLOOR} to 0 or None, got {exponent}")
    block = SHORT[row.input][1] if instruction == SHORT[row.input][0] else row.block
    unit = (
        next(x for x in TENSOR_CORES if (x.architecture, x.input) == (row.architecture, "float16")) if unpacked else row
    )
    floor = unit.floors[out == float16] if exponent_floor is None else exponent_floor

    common: dict[str, Any] = {
        "name": f"tensor_core({arch!r}, input={fmt.name!r}, output={out.name!r}{shown})",
        "inputs": (E4M3, E5M2) if row.input == "float8" else (fmt,),
        "daz": False,
        "nan": "nvidia",
        "alignment": Alignment(unit.fraction_bits, zeros=zero_exponent, least=floor),
        "positive_zeros": positive_zeros,
        "note": unit.note,
    }
    cut: dict[str, Any] = {
        "rounding": Rounding.TOWARD_ZERO,
        "overflow": Overflow.INFINITY,
        "daz": False,
        "ftz": False,
        "always_infinite": True,
    }
    nearest = Stage(out, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=False, ftz=False)
    truncated = Stage(float32, **cut)
    if unpacked:
        return Accumulator(
            running=nearest if out == float16 else truncated,
            block=block // 2,
            order=tuple(k for low in (0, 2) for k in range(block) if k % 4 in (low, low + 1)),
            segment=block,
            reduction=(Reduction(nearest),),
            unpacked=float16,
            **common,
        )
    store = None
    if out == float16:
        running = nearest
    elif row.sum_bits < float32.mantissa_bits:
        running, store = Stage(E8M13, **cut), nearest
    else:
        running = truncated
    return Accumulator(
        running=running,
        block=block,
        store=store,
        store_every=block if store else 1,
        **common,
    )


def _block_scaled(
    arch: str, input: Format | str, output: Format | str, instruction: str, positive_zeros: bool
) -> Accumulator:
    """Products of operands with scales, whose exponents count in the alignment; zeros count as -126."""
    inputs, block, alignment = BLOCK_SCALED[instruction]
    fmt, out = (check_format(x, name, what="tensor_core") for x, name in ((input, "input"), (output, "output")))
    if fmt not in inputs:
        raise ValueError(f"input must be {', '.join(repr(x.name) for x in inputs)} for {instruction}, got {fmt.name!r}")
    if out != float32:
        raise ValueError(f"output must be 'float32' for {instruction}, got {out.name!r}")
    return Accumulator(
        name=f"tensor_core({arch!r}, input={fmt.name!r}, output='float32', instruction={instruction!r}"
        + (")" if positive_zeros else ", positive_zeros=False)"),
        inputs=inputs,
        running=Stage(float32, Rounding.TOWARD_ZERO, Overflow.INFINITY, daz=False, ftz=False, always_infinite=True),
        block=block,
        alignment=alignment,
        positive_zeros=positive_zeros,
        daz=False,
        nan="nvidia",
        note="from a published model, not from measured rows",
    )


def _asked_for(
    arch: str, input: Format | str, output: Format | str, instruction: str | None
) -> tuple[TensorCore, Format, Format, bool]:
    """The row that answers, both formats, and whether fp8 goes through `mma.sync` as halves."""
    known = sorted({row.architecture for row in TENSOR_CORES} | set(SAME_AS))
    check_choice("arch", arch, known)
    if input in ("float64", "double", float):
        raise ValueError(
            "input 'float64' is a chain of fused multiply-adds in order of k (mma.sync .f64, measured on H100); "
            "accepted: fma('float64'), which is that chain"
        )
    fmt, out = (check_format(x, name, what="tensor_core") for x, name in ((input, "input"), (output, "output")))
    family = "float16" if fmt in (float16, bfloat16) else "float8" if fmt in (E5M2, E4M3) else fmt.name
    rows = [row for row in TENSOR_CORES if row.architecture == SAME_AS.get(arch, arch)]
    offered = [x for row in rows for x in _inputs(row, arch)]
    row = next((row for row in rows if row.input == family), None)
    if row is None or fmt not in offered:
        raise ValueError(f"input must be one of {', '.join(repr(x.name) for x in offered)} on {arch}, got {fmt.name!r}")
    instructions = dict.fromkeys((row.instruction, "mma.sync"))
    if arch in BLOCK_SCALING:
        instructions |= dict.fromkeys(BLOCK_SCALED)
    if SAME_AS.get(arch, arch) == "H100":
        instructions[SHORT[row.input][0]] = None
    if instruction is not None and instruction not in instructions:
        raise ValueError(
            f"instruction must be {' or '.join(map(repr, instructions))} on {arch}, or None, got {instruction!r}"
        )
    chosen = instruction or row.instruction
    outputs = tuple(x for x in row.outputs if x != "float16" or fmt not in (bfloat16,))
    if out.name not in outputs:
        raise ValueError(
            f"output must be {' or '.join(map(repr, outputs))} for {fmt.name} on {arch} by {chosen}, got {out.name!r}"
        )
    return row, fmt, out, chosen.startswith("mma.sync") and arch in UNPACKING and family == "float8"


def _inputs(row: TensorCore, arch: str) -> tuple[Format, ...]:
    if row.input == "float8":
        return E4M3, E5M2
    if row.input == "float16":
        return (float16,) if arch in HALF_ALONE else (float16, bfloat16)
    return (tfloat32,)
