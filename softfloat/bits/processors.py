"""What processors have of their own: conversions to and from fp8, AVX10.2's with a bias, Arm's with a scale; NVIDIA's approximate functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softfloat.bits.arithmetic import mul
from softfloat.bits.codes import isinf, isnan
from softfloat.bits.functions.named import exp2, tanh
from softfloat.bits.numbers import convert, encode
from softfloat.checks import check_choice, check_integer, check_switch
from softfloat.engine import check_codes, refuse_mask
from softfloat.formats import ROSTER, Format, bfloat16, check_format, float16, float32
from softfloat.kernels.spec import INVALID, OVERFLOW

__all__ = ["arm_convert", "avx10_convert", "nvidia_ex2", "nvidia_tanh"]

E4M3, E5M2 = ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"]
FP8 = (E4M3, E5M2)
NSCALE = {float16.name: 16, bfloat16.name: 128, float32.name: 128}
"""FPMR.NSCALE by the operand's format: from minus that to one less than that."""
LSCALE = {float16.name: 15, bfloat16.name: 63}
"""FPMR.LSCALE by the result's format: the most by which a conversion from fp8 scales down."""


def avx10_convert(codes: Any, fmt: Format | str, bias: Any = None, saturate: bool = False) -> tuple[Any, Any]:
    """AVX10.2's conversions from half: VCVTPH2BF8 and VCVTPH2HF8, VCVTBIASPH2BF8 and VCVTBIASPH2HF8, each also with S.

    Parameters
    ----------
    codes : array of integers
        Codes in float16.
    fmt : Format or str
        "float8_e5m2" (BF8) or "float8_e4m3fn" (HF8).
    bias : array of uint8, optional
        Added below the last bit that is kept, before the rest is cut: stochastic rounding, with these random bits. None: nearest even.
    saturate : bool
        The instructions with S: overflow and infinities become the largest number.

    Returns
    -------
    codes, flags
        NaNs keep their sign, and in e5m2 what fits of their payload; an overflow in e4m3 is the NaN of its sign. The instructions raise no flags:
        those returned say what the conversions did.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Pseudo-code of Intel's AVX10.2 specification, not silicon. DAZ and FTZ do not matter. Of numbers that are normal in e4m3, the bias' last
    bit decides nothing: seven bits are cut.

    >>> [hex(avx10_convert(0x3C40, "float8_e5m2", np.uint8(x))[0]) for x in (191, 192)]  # 1.0625, a quarter of the way to 1.25
    ['0x3c', '0x3d']
    """
    target = check_format(fmt, "fmt")
    check_choice("fmt", target.name, [x.name for x in FP8])
    check_switch("saturate", saturate)
    halves = check_codes(codes, float16, "codes")
    beyond = "saturate" if saturate else "infinity"
    settings: dict[str, Any] = {"overflow": beyond, "infinite_input": "saturate" if saturate else "keep", "nan": "x86"}
    if bias is not None:
        refuse_mask(bias, "bias")
        bias = np.asarray(bias)
        if bias.dtype != np.uint8:
            raise TypeError(f"bias must be an array of uint8, got {bias.dtype}")
        halves, bias = np.broadcast_arrays(halves, bias)
        settings |= {"rounding": "stochastic", "random_bits": np.array(bias)}
    found, flags = convert(halves, float16, target, **settings)
    if target == E4M3:
        signs = (halves >> 8 & 0x80).astype(np.uint8)
        found = np.where(np.asarray(isnan(found, target)), signs | np.uint8(0x7F), found)[()]
    return found, flags


def arm_convert(
    codes: Any, src: Format | str, dst: Format | str, scale: int = 0, saturate: bool = False
) -> tuple[Any, Any]:
    """Arm's conversions to and from fp8 (FEAT_FP8): scaled by a power of two, rounded once to nearest even.

    Parameters
    ----------
    codes : array of integers
        Codes in `src`.
    src, dst : Format or str
        One of them "float8_e4m3fn" or "float8_e5m2". To fp8 from "float16", "bfloat16" or "float32" (FCVTN, BFCVTN); from fp8 to "float16"
        or "bfloat16" (F1CVT, BF1CVT and others).
    scale : int
        The exponent of the factor: FPMR.NSCALE to fp8 (-128 to 127, from half -16 to 15), minus FPMR.LSCALE from fp8 (-63 to 0, to half
        -15 to 0).
    saturate : bool
        FPMR.OSC, to fp8: overflow and infinities become the largest number, not an infinity, nor in e4m3 the NaN of the sign.

    Returns
    -------
    codes, flags
        An overflow raises OVERFLOW and INEXACT either way, an infinite operand nothing; a signalling NaN raises INVALID, and e4m3's NaN is
        one. NaNs become the default one. Tininess is before rounding, and subnormals are kept.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Arm Architecture Reference Manual for A-profile, FPConvertFP8 and FP8ConvertFP: pseudo-code with FPCR.AH = 0, not measured.

    >>> [hex(arm_convert(0x42F00000, "float32", "float8_e4m3fn", n)[0]) for n in (0, 1, 2, 3)]  # 120, 240, 480: too large
    ['0x6f', '0x77', '0x7f', '0x7f']
    """
    source, target = check_format(src, "src"), check_format(dst, "dst")
    narrows = target in FP8
    if narrows:
        check_choice("src", source.name, list(NSCALE))
    else:
        check_choice("src", source.name, [x.name for x in FP8])
        check_choice("dst", target.name, list(LSCALE))
    check_switch("saturate", saturate)
    least, most = (-NSCALE[source.name], NSCALE[source.name] - 1) if narrows else (-LSCALE[target.name], 0)
    if not least <= check_integer("scale", scale) <= most:
        raise ValueError(f"scale must be {least} to {most} from {source.name} to {target.name}, got {scale}")
    if saturate and not narrows:
        raise ValueError("saturate must be False from fp8, whose numbers do not overflow")
    operand = check_codes(codes, source, "codes")
    factor, _ = encode(2.0**scale, float32)
    overflow = "saturate" if saturate else "infinity"
    found, flags = mul(
        operand, factor, source, b_format=float32, out_format=target, overflow=overflow, tininess="before", nan="canonical"
    )  # fmt: skip
    infinite = np.asarray(isinf(operand, source))
    if narrows:
        signs = np.asarray(operand >> (source.bits - 8) & 0x80).astype(np.uint8)
        top = 0x7E if target == E4M3 else 0x7B
        beyond = signs | np.uint8(top if saturate else top + 1)
        flags = np.where(infinite, np.uint8(0), flags)[()]
        found = np.where(infinite | ((np.asarray(flags) & OVERFLOW) != 0), beyond, found)[()]
    elif source == E4M3:
        flags = np.where(np.asarray(isnan(operand, source)), np.uint8(INVALID), flags)[()]
    return found, flags


class _Tanh(NamedTuple):
    """Where an H100's tanh is not that of real numbers, cut: below `linear` it is its operand, elsewhere off by a step at these."""

    linear: int
    above: tuple[int, ...]
    below: tuple[int, ...]


TANH = {
    float16.name: _Tanh(
        0x1C08,
        (
            *(0x29C6, 0x2C95, 0x2C96, 0x2E39, 0x2E9D, 0x3064, 0x323F, 0x32FF),
            *(0x355B, 0x372D, 0x3824, 0x399A, 0x3CC9, 0x3DE3, 0x3ED6, 0x4080),
        ),
        (0x2D3F, 0x39F8, 0x3C8E, 0x3C9D, 0x3DB8, 0x3E23, 0x3EAB, 0x4429),
    ),
    bfloat16.name: _Tanh(0x3B81, (), (0x3F3F,)),
}
"""By format; codes of positive operands."""
TANH_IS_ONE = 8.0
EX2_IS_ONE = 2.0**-23  # operands are cut to so many bits below the point


def _half_operand(codes: Any, fmt: Format | str) -> tuple[Any, Format]:
    kind = check_format(fmt)
    check_choice("fmt", kind.name, list(TANH))
    return np.asarray(check_codes(codes, kind, "codes")), kind


def nvidia_ex2(codes: Any, fmt: Format | str) -> Any:
    """NVIDIA's ex2.approx.f16 and ex2.approx.ftz.bf16: 2^x as an H100 computes it.

    Parameters
    ----------
    codes : array of integers
        Codes in `fmt`.
    fmt : Format or str
        "float16" or "bfloat16".

    Returns
    -------
    array of codes
        The exact power cut toward zero, not rounded; 1 where \\|x\\| < 2^-23; infinity where it is too large. In bfloat16 subnormal operands
        and tiny results are zeros. NaN is 0x7FFF. The instruction raises no flags.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Measured: all 65 536 operands of both formats on an H100. 19 417 halves and 3 505 bfloat16 numbers are not what `exp2` rounds to.

    >>> [hex(x) for x in nvidia_ex2([0x3800, 0x8001, 0x4C00], "float16")]  # 1/2, the least subnormal below 0, 16
    ['0x3da8', '0x3c00', '0x7c00']
    """
    operand, kind = _half_operand(codes, fmt)
    flushed = kind == bfloat16
    found, _ = exp2(operand, kind, rounding="toward_zero", nan="nvidia", daz=flushed, ftz=flushed)
    (one, no_more, too_large), _ = encode([1.0, EX2_IS_ONE, kind.emax + 1.0], kind)
    infinity = kind.spec.infinity
    found = np.where((operand >= too_large) & (operand < infinity), np.asarray(infinity, kind.dtype), found)
    return np.where(operand & (kind.sign_bit - 1) < no_more, one, found)[()]


def nvidia_tanh(codes: Any, fmt: Format | str) -> Any:
    """NVIDIA's tanh.approx.f16 and tanh.approx.bf16, as an H100 computes them.

    Parameters
    ----------
    codes : array of integers
        Codes in `fmt`.
    fmt : Format or str
        "float16" or "bfloat16".

    Returns
    -------
    array of codes
        The exact value cut toward zero, but for 24 magnitudes of half and one of bfloat16, which are off by one more step; x itself where
        \\|x\\| < 2^-8 and a little, 1 from 8 on. Subnormal numbers are kept. NaN is 0x7FFF. The instruction raises no flags.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Measured: all 65 536 operands of both formats on an H100. 14 736 halves and 2 086 bfloat16 numbers are not what `tanh` rounds to.

    >>> [hex(x) for x in nvidia_tanh([0x1C07, 0x3C00, 0xC800], "float16")]  # 0.00393, 1, -8
    ['0x1c07', '0x3a17', '0xbc00']
    """
    operand, kind = _half_operand(codes, fmt)
    known = TANH[kind.name]
    magnitude = operand & np.asarray(kind.sign_bit - 1, kind.dtype)
    found, _ = tanh(magnitude, kind, rounding="toward_zero", nan="nvidia")
    found = found + np.isin(magnitude, known.above) - np.isin(magnitude, known.below)
    found = np.where(magnitude < known.linear, magnitude, found)
    (one, large), _ = encode([1.0, TANH_IS_ONE], kind)
    number = magnitude <= kind.spec.infinity
    found = np.where(number & (magnitude >= large), one, found)
    return np.where(number, found | (operand & kind.sign_bit), found).astype(kind.dtype)[()]
