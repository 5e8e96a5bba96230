"""What the control registers of processors mean, as settings of an `Environment`, and where that is written.

`Environment.arm`, `x86`, `riscv`, `nvidia` and `avx10_bf16` take them; `ENVIRONMENT_ROWS` lists these and the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from softfloat.checks import check_choice, check_integer, check_switch
from softfloat.kernels.spec import Overflow, Rounding, Tininess

__all__ = ["ENVIRONMENT_ROWS", "EnvironmentRow"]


class EnvironmentRow(NamedTuple):
    """One preset of `Environment`: the class method, a call, what it means, where that is written, and how sure it is."""

    name: str
    example: str
    meaning: str
    source: str
    standing: str  # one of softfloat.accumulators.STANDINGS


ENVIRONMENT_ROWS = (
    EnvironmentRow(
        "arm",
        "Environment.arm(fz=True)",
        "AArch64: FPCR's rounding mode, FZ, FIZ, FZ16, AH and DN",
        "Arm Architecture Reference Manual for A-profile, FPCR and FPUnpackBase",
        "pseudo-code",
    ),
    EnvironmentRow(
        "x86",
        "Environment.x86(mxcsr=0x9FC0)",
        "x86: MXCSR's rounding mode, DAZ, FTZ and masks",
        "Intel SDM, volume 1, 10.2.3 and 4.8; conversions are checked against instructions",
        "measured",
    ),
    EnvironmentRow(
        "riscv",
        "Environment.riscv('RMM')",
        "RISC-V: frm, the canonical NaN, tininess after rounding",
        "RISC-V unprivileged ISA, F extension",
        "pseudo-code",
    ),
    EnvironmentRow(
        "nvidia",
        "Environment.nvidia(ftz=True)",
        "NVIDIA's scalar instructions: nearest even, .ftz, NaN 0x7FFFFFFF, conversions that move NaNs",
        "rows read off H100 and H200; NVIDIA PTX ISA",
        "measured",
    ),
    EnvironmentRow(
        "avx10_bf16",
        "Environment.avx10_bf16()",
        "AVX10.2's bfloat16 arithmetic: nearest even, DAZ, FTZ, whatever MXCSR says",
        "Intel AVX10.2 specification, in Bochs' words; no silicon",
        "pseudo-code",
    ),
    EnvironmentRow(
        "ipu",
        "Environment.ipu(nanoo=True)",
        "Graphcore's IPU: its control register",
        "Graphcore's documentation of FloatingPointBehaviour",
        "documented",
    ),
    EnvironmentRow(
        "p3109",
        "Environment.p3109('NearestTiesToAway')",
        "projections of IEEE P3109, draft 4.0",
        "IEEE P3109, draft 4.0",
        "definition",
    ),
)
"""Presets of `Environment`."""

FRM = {
    "RNE": "nearest_even",
    "RTZ": "toward_zero",
    "RDN": "toward_negative",
    "RUP": "toward_positive",
    "RMM": "nearest_away",
}
"""RISC-V's rounding modes (F extension, table of frm)."""
RMODE = {"RN": "nearest_even", "RP": "toward_positive", "RM": "toward_negative", "RZ": "toward_zero"}
"""FPCR.RMode."""
MXCSR_MODES = (Rounding.NEAREST_EVEN, Rounding.TOWARD_NEGATIVE, Rounding.TOWARD_POSITIVE, Rounding.TOWARD_ZERO)
"""MXCSR.RC."""
MASKS = {7: "INVALID", 9: "DIVBYZERO", 10: "OVERFLOW", 11: "UNDERFLOW", 12: "INEXACT"}
"""Bits of MXCSR that mask the traps of flags; that of the denormal flag has no counterpart."""
DEFAULT_MXCSR = 0x1F80


def named_mode(rounding: Any, names: dict[str, str]) -> Rounding:
    """A rounding mode by the architecture's name, or ours, of those that it has."""
    word = rounding.name.lower() if isinstance(rounding, Rounding) else rounding
    accepted = [*names, *names.values()]
    check_choice("rounding", word, accepted)
    return Rounding[names.get(word, word).upper()]


def arm(rounding: Any, fz: bool, fiz: bool, fz16: bool, ah: bool, dn: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """(settings, those that differ for float16)."""
    for name, value in (("fz", fz), ("fiz", fiz), ("fz16", fz16), ("ah", ah), ("dn", dn)):
        check_switch(name, value)
    settings = {
        "rounding": named_mode(rounding, RMODE),
        "overflow": Overflow.INFINITY,
        "tininess": Tininess.AFTER if ah else Tininess.BEFORE,
        "daz": fiz or (fz and not ah),
        "ftz": fz,
        "nan": "arm" + "_ah" * ah + "_dn" * dn,
    }
    return settings, {"daz": fz16, "ftz": fz16, "converts_subnormals": fz16}


def nvidia(ftz: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """(settings, those for bfloat16, whose arithmetic has no .ftz)."""
    check_switch("ftz", ftz)
    settings = {"tininess": Tininess.AFTER, "nan": "nvidia"}
    return {**settings, "daz": ftz, "ftz": ftz, "converts_subnormals": ftz}, settings


def x86(mxcsr: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(settings, flags that trap)."""
    if not 0 <= check_integer("mxcsr", mxcsr) < 1 << 16:
        raise ValueError(f"mxcsr must be 0 to 0xffff, got {mxcsr:#x}")
    unmasked = tuple(name for bit, name in MASKS.items() if not mxcsr >> bit & 1)
    settings = {
        "rounding": MXCSR_MODES[mxcsr >> 13 & 3],
        "overflow": Overflow.INFINITY,
        "tininess": Tininess.AFTER,
        "daz": bool(mxcsr >> 6 & 1),
        "ftz": bool(mxcsr >> 15 & 1) and "UNDERFLOW" not in unmasked,
        "nan": "x86_fma3",
    }
    return settings, unmasked
