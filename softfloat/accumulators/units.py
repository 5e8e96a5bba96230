"""Dot-product units of processors with a public definition: RISC-V, Intel AMX and AVX10.2, Arm, AMD's MFMA.

What each rests on stands in its source: pseudo-code of an architecture, or a published model. None is measured here.
"""

from __future__ import annotations

from typing import NamedTuple

from softfloat.accumulators.accumulator import Accumulator, Alignment, Reduction, Stage, preset
from softfloat.accumulators.roster import MODES
from softfloat.checks import check_choice, check_kind, check_whole
from softfloat.formats import ROSTER, Format, bfloat16, check_format, float16, float32, tfloat32
from softfloat.kernels.spec import Overflow, Rounding, Tininess

__all__ = [
    "amd_mfma",
    "amx",
    "arm_bfdot",
    "arm_bfmlal",
    "arm_bfmmla",
    "arm_fdot",
    "arm_fmmla",
    "arm_fp8dot",
    "rvbna",
    "vdpphps",
    "zvfbfwma",
]

E5M2, E4M3 = ROSTER["float8_e5m2"], ROSTER["float8_e4m3fn"]
E5M2FNUZ, E4M3FNUZ = ROSTER["float8_e5m2fnuz"], ROSTER["float8_e4m3fnuz"]
FP8 = (E4M3, E5M2)
LANE = Stage(float32, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=True, ftz=True, tininess=Tininess.AFTER)
"""x86's: nearest even, subnormals read and written as zero, whatever MXCSR says."""
NEAREST = Stage(float32, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=False, ftz=False)


def _one_of(name: str, fmt: Format | str, accepted: tuple[Format, ...]) -> Format:
    found = check_format(fmt, name)
    if found not in accepted:
        raise ValueError(f"{name} must be {', '.join(repr(x.name) for x in accepted)}, got {found.name!r}")
    return found


# -- RISC-V ----------------------------------------------------------------------------------------------------------


@preset
def rvbna(n: int, input: Format | str = "bfloat16") -> Accumulator:
    """RISC-V's bulk-normalisation dot product of `n` products, and its sum to odd with c.

    Parameters
    ----------
    n : int
        Products of a block, 2 to 256.
    input : Format or str
        "bfloat16", or "float8_e4m3fn" or "float8_e5m2" (either accepts operands in both).

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Terms keep 23 + ceil(log2 n) fraction bits below the largest exponent, the rest is gathered in the last one; zero
    products have no part in that exponent. The sum is rounded to odd to float32, where what is too large is infinite,
    and so is its sum with c. The unit raises INVALID and OVERFLOW alone; here INEXACT and UNDERFLOW say what was lost.
    It knows no signalling NaN of fp8: those of `float8_e5m2` raise INVALID here. Opposite infinities beside a NaN raise
    INVALID in the unit, and nothing here.
    """
    if check_whole("n", n, 2) > 256:
        raise ValueError(f"n must be 2 to 256, got {n}")
    fmt = _one_of("input", input, (bfloat16, *FP8))
    odd = Stage(float32, Rounding.TO_ODD, Overflow.INFINITY, daz=False, ftz=False, always_infinite=True)
    bits = 23 + (n - 1).bit_length()
    return Accumulator(
        name=f"rvbna({n}, {fmt.name!r})",
        inputs=FP8 if fmt in FP8 else (fmt,),
        running=odd,
        block=n,
        block_sum=odd,
        alignment=Alignment(bits, Rounding.TO_ODD, includes_addend=False),
        daz=False,
        nan="riscv",
    )


@preset
def zvfbfwma(input: Format | str = "bfloat16") -> Accumulator:
    """RISC-V's widening multiply-add: one fused multiply-add to float32 after another, rounded as the call says.

    Parameters
    ----------
    input : Format or str
        "bfloat16" (Zvfbfwma) or "float16" (Zvfh).
    """
    fmt = _one_of("input", input, (bfloat16, float16))
    return Accumulator(
        name=f"zvfbfwma({fmt.name!r})" if fmt != bfloat16 else "zvfbfwma()",
        inputs=(fmt,),
        running=Stage(float32, daz=False, ftz=False, tininess=Tininess.AFTER),
        daz=False,
        nan="riscv",
    )


# -- x86 -------------------------------------------------------------------------------------------------------------


@preset
def amx(input: Format | str, tile: int | None = None) -> Accumulator:
    """Intel AMX: TDPBF16PS, TDPFP16PS, and TDPBF8PS, TDPBHF8PS, TDPHBF8PS, TDPHF8PS.

    Two running sums from +0 take even and odd products by fused multiply-adds, of fp8 the sums of the first and the
    second pair of each four; they are added, and their sum to c. Everything to nearest even in float32, subnormals of
    float32 and bfloat16 read and written as zero. Longer k is a chain of such instructions.

    Parameters
    ----------
    input : Format or str
        "bfloat16", "float16", or "float8_e5m2" or "float8_e4m3fn" (either accepts operands in both).
    tile : int, optional
        Products of one instruction: a multiple of 2 up to 32, the default; for fp8 of 4 up to 64.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Assumed, as published pseudo-code does not settle it: results are tiny after rounding, as measured for VDPBF16PS,
    and subnormals of half and `float8_e5m2` are kept. NaN results are the default one. MXCSR is neither read nor written:
    flags are those the same operations raise.
    """
    fmt = _one_of("input", input, (bfloat16, float16, *FP8))
    pairs = fmt in FP8
    step, most = (4, 64) if pairs else (2, 32)
    length = most if tile is None else check_whole("tile", tile, 1)
    if length % step or length > most:
        raise ValueError(f"tile must be a multiple of {step} up to {most} for {fmt.name}, got {tile}")
    shown = "" if tile is None else f", tile={tile}"
    return Accumulator(
        name=f"amx({fmt.name!r}{shown})",
        inputs=FP8 if pairs else (fmt,),
        running=LANE,
        product=LANE if pairs else None,
        block=2 if pairs else 1,
        tree=pairs,
        chains=2,
        segment=length,
        reduction=(Reduction(LANE),),
        daz=fmt == bfloat16,
        nan="canonical",
        note="tininess after rounding, as measured for VDPBF16PS; subnormals of half and e5m2 kept",
    )


@preset
def vdpphps() -> Accumulator:
    """x86 AVX10.2 VDPPHPS, one 32-bit lane: VDPBF16PS with halves, whose subnormals are kept."""
    return Accumulator(
        name="vdpphps()",
        inputs=(float16,),
        running=LANE,
        order=(1, 0),
        daz=False,
        nan="x86_fma3",
        note="tininess after rounding, as measured for VDPBF16PS",
    )


# -- Arm -------------------------------------------------------------------------------------------------------------


@preset
def arm_bfdot(ebf: bool = False, rounding: Rounding | str = "nearest_even") -> Accumulator:
    """Arm BFDOT, one 32-bit lane.

    Parameters
    ----------
    ebf : bool
        FPCR.EBF. Without it products, their sum and its sum with c are rounded to odd, subnormals read and written as
        zero, whatever FPCR says. With it a pair is summed exactly and rounded, then added to c, subnormals kept.
    rounding : Rounding or str
        FPCR.RMode, with `ebf`.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    NaN results are the default one. The instruction raises no flags; those returned say what the sums did.
    """
    return _bfdot("arm_bfdot", ebf, rounding)


@preset
def arm_bfmmla(ebf: bool = False, rounding: Rounding | str = "nearest_even") -> Accumulator:
    """Arm BFMMLA: each output takes its pairs in order, as `arm_bfdot` does."""
    return _bfdot("arm_bfmmla", ebf, rounding)


def _bfdot(name: str, ebf: bool, rounding: Rounding | str) -> Accumulator:
    check_kind("ebf", ebf, bool)
    word = rounding.name.lower() if isinstance(rounding, Rounding) else rounding
    check_choice("rounding", word, MODES)
    mode = Rounding[word.upper()]
    shown = [f"ebf={ebf}"] * ebf + [f"rounding={word!r}"] * (mode is not Rounding.NEAREST_EVEN)
    if not ebf:
        if mode is not Rounding.NEAREST_EVEN:
            raise ValueError("rounding is that of ebf=True; without, everything is rounded to odd")
        odd = Stage(
            float32, Rounding.TO_ODD, Overflow.INFINITY, daz=True, ftz=True, tininess=Tininess.BEFORE,
            always_infinite=True,
        )  # fmt: skip
        return Accumulator(
            name=f"{name}()", inputs=(bfloat16,), running=odd, product=odd, block=2, tree=True, daz=True,
            nan="canonical",
        )  # fmt: skip
    stage = Stage(float32, mode, Overflow.INFINITY, daz=False, ftz=False, tininess=Tininess.BEFORE)
    return Accumulator(
        name=f"{name}({', '.join(shown)})",
        inputs=(bfloat16,),
        running=stage,
        block=2,
        block_sum=stage,
        keeps_zero_sign=True,
        daz=False,
        nan="canonical",
    )


@preset
def arm_bfmlal() -> Accumulator:
    """Arm BFMLALB and BFMLALT: the even products of a vector, or the odd ones, by fused multiply-adds, as the call's options say."""
    return Accumulator(
        name="arm_bfmlal()",
        inputs=(bfloat16,),
        running=Stage(float32, tininess=Tininess.BEFORE),
    )


@preset
def arm_fdot(fz16: bool = False) -> Accumulator:
    """Arm FDOT of two halves, one 32-bit lane (FEAT_SME2, FEAT_SVE2p1): the exact sum of a pair rounded to float32, then added to c.

    Parameters
    ----------
    fz16 : bool
        FPCR.FZ16: subnormal halves count as zero.

    Notes
    -----
    Rounding mode and float32's subnormals are the call's: `Environment.arm`. NaN results are the policy's default one, as
    with FPCR.DN = 1.
    """
    stage = Stage(float32, tininess=Tininess.BEFORE)
    check_kind("fz16", fz16, bool)
    return Accumulator(
        name=f"arm_fdot({'fz16=True' if fz16 else ''})",
        inputs=(float16,),
        running=stage,
        block=2,
        block_sum=stage,
        keeps_zero_sign=True,
        daz=fz16,
    )


@preset
def arm_fmmla(input: Format | str = "float16", fz16: bool = False) -> Accumulator:
    """Arm FMMLA to float32, one output.

    Parameters
    ----------
    input : Format or str
        "float16" (FEAT_F16F32MM): two exact pairs, each rounded, are added, and their sum to c. "float32" (FEAT_F32MM): the
        same with two products.
    fz16 : bool
        FPCR.FZ16: subnormal halves count as zero.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    As in `arm_fdot`.
    """
    fmt = _one_of("input", input, (float16, float32))
    check_kind("fz16", fz16, bool)
    if fz16 and fmt == float32:
        raise ValueError("fz16 is that of input='float16': subnormals of float32 are the call's")
    stage, half = Stage(float32, tininess=Tininess.BEFORE), fmt == float16
    return Accumulator(
        name=f"arm_fmmla({'' if half else repr(fmt.name)}{'fz16=True' if fz16 else ''})",
        inputs=(fmt,),
        running=stage,
        product=stage,
        block=4 if half else 2,
        tree=True,
        leaf=2 if half else 1,
        keeps_zero_sign=half,
        daz=fz16 if half else None,
    )


WAYS = {"float16": (1, 2, 4), "float32": (1, 4, 8)}
"""Products that one fp8 instruction of Arm adds to an output, by its format: FMLAL, FDOT, FMMLA."""


@preset
def arm_fp8dot(ways: int, output: Format | str = "float32", lscale: int = 0, saturate: bool = False) -> Accumulator:
    """Arm's fp8 products: c + 2^-lscale * (the sum of `ways` products), exactly, rounded once to nearest even.

    Parameters
    ----------
    ways : int
        1 (FMLAL, FMLALL), 2 (FDOT to half), 4 (FDOT to single, FMMLA to half) or 8 (FMMLA to single).
    output : Format or str
        "float32" or "float16".
    lscale : int
        FPMR.LSCALE: 0 to 127, to half 0 to 15.
    saturate : bool
        FPMR.OSM: overflow is the largest number, not an infinity.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Subnormals are kept; NaN results are the default one. The instructions raise no flags; those returned say what the
    sums did. Operands in `float8_e4m3fn` and `float8_e5m2`, also of one product.
    """
    fmt = _one_of("output", output, (float32, float16))
    check_choice("ways", ways, WAYS[fmt.name])
    check_whole("lscale", lscale, 0)
    if lscale > (most := 127 if fmt == float32 else 15):
        raise ValueError(f"lscale must be 0 to {most} for {fmt.name}, got {lscale}")
    check_kind("saturate", saturate, bool)
    overflow = Overflow.SATURATE if saturate else Overflow.INFINITY
    shown = [f"{fmt.name!r}"] * (fmt != float32) + [f"lscale={lscale}"] * (lscale > 0) + ["saturate=True"] * saturate
    return Accumulator(
        name=f"arm_fp8dot({', '.join([str(ways), *shown])})",
        inputs=FP8,
        running=Stage(fmt, Rounding.NEAREST_EVEN, overflow, daz=False, ftz=False, tininess=Tininess.BEFORE),
        block=ways,
        scale_exponent=-lscale,
        keeps_zero_sign=ways > 1,
        daz=False,
        nan="canonical",
    )


# -- AMD -------------------------------------------------------------------------------------------------------------


class Mfma(NamedTuple):
    """One row of `MFMA`: what a matrix core does with `group` products and c."""

    architecture: str
    input: str
    group: int
    how: str  # "fused": one fused multiply-add after another; "pairs"; "aligned"; "halves"


MFMA = (
    Mfma("CDNA1", "float32", 1, "fused"),
    Mfma("CDNA1", "float16", 4, "pairs"),
    Mfma("CDNA1", "bfloat16", 2, "pairs"),
    Mfma("CDNA2", "float32", 1, "fused"),
    Mfma("CDNA2", "float16", 4, "pairs"),
    Mfma("CDNA2", "bfloat16", 2, "pairs"),
    Mfma("CDNA2", "bfloat16_1k", 4, "pairs"),
    Mfma("CDNA3", "float32", 1, "fused"),
    Mfma("CDNA3", "tfloat32", 4, "aligned"),
    Mfma("CDNA3", "float16", 8, "aligned"),
    Mfma("CDNA3", "bfloat16", 8, "aligned"),
    Mfma("CDNA3", "float8_e4m3fnuz", 16, "halves"),
    Mfma("CDNA3", "float8_e5m2fnuz", 16, "halves"),
)
"""AMD's matrix cores, as MMA-Sim models them."""
INPUTS = {"bfloat16_1k": bfloat16, "tfloat32": tfloat32}


@preset
def amd_mfma(arch: str, input: Format | str) -> Accumulator:
    """AMD's V_MFMA instructions with float32 sums.

    Parameters
    ----------
    arch : str
        "CDNA1", "CDNA2" or "CDNA3".
    input : Format or str
        "float32", "float16", "bfloat16"; on CDNA2 "bfloat16_1k", the instructions of that name; on CDNA3 "tfloat32" (xf32,
        whose operands the unit cuts to it: convert toward zero), and "float8_e4m3fnuz" or "float8_e5m2fnuz" (either
        accepts operands in both).

    Raises
    ------
    ValueError
        For what the architecture does not have.

    Notes
    -----
    CDNA1 and CDNA2 round products, add them in pairs and the group's sum to c, each to nearest even; CDNA2 reads
    subnormals as +0 and writes tiny results as zero of their sign. CDNA3 cuts products to 24 bits below their largest
    exponent, floors their sum to 31 and c to 24 bits below the larger exponent, and rounds once; zeros count with the
    exponent -126, products from 2^128 on as infinite. fp8 sums even and odd products apart first. NaN results are
    0x7FC00000: the model gives no payload. Flags say what the sums did.
    """
    check_choice("arch", arch, sorted({row.architecture for row in MFMA}))
    rows = {row.input: row for row in MFMA if row.architecture == arch}
    named = {row.input for row in MFMA}
    name = input if isinstance(input, str) and input in named else check_format(input, "input", what="amd_mfma").name
    if name not in rows:
        raise ValueError(f"input must be one of {', '.join(map(repr, rows))} on {arch}, got {name!r}")
    row, fmt = rows[name], INPUTS[name] if name in INPUTS else check_format(name, "input")
    made = Accumulator(
        name=f"amd_mfma({arch!r}, {name!r})",
        inputs=(E4M3FNUZ, E5M2FNUZ) if row.how == "halves" else (fmt,),
        running=NEAREST,
        daz=False,
        nan="canonical",
        note="from a published model, not from measured rows",
    )
    if row.how == "pairs":
        stage = NEAREST
        if arch == "CDNA2":
            stage = Stage(
                float32, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=True, ftz=True, tininess=Tininess.AFTER
            )
        return made.replace(
            running=stage, product=stage, block=row.group, tree=True, unsigned_zeros=True, daz=arch == "CDNA2"
        )
    if row.how == "fused":
        return made
    floor = Rounding.TOWARD_NEGATIVE
    halves = row.how == "halves"
    alignment = Alignment(
        24, zeros=-126, limit=128, halves=halves, includes_addend=False, sum=31, addend=24, sum_cut=floor,
        drop_addend_below=25 if halves else None,
    )  # fmt: skip
    return made.replace(block=row.group, alignment=alignment)
