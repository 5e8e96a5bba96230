"""Conversions of AVX10.2 and Arm to and from fp8, against their rules restated on integers and on fractions; NVIDIA's functions as read."""

from __future__ import annotations

import zlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from softfloat import ROSTER, bits, reference
from softfloat.reference import Kind, Value

E4M3, E5M2 = ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"]
HALVES = np.arange(1 << 16, dtype=np.uint32)


def biased(half: np.ndarray, bias: np.ndarray, fmt: str, saturate: bool) -> np.ndarray:
    """Integer arithmetic alone: the bias lies below the last bit that is kept, and what is below is dropped."""
    sign, magnitude = half >> 15 << 7, (half & 0x7FFF).astype(np.int64)
    exponent, fraction = magnitude >> 10, magnitude & 0x3FF
    infinite, nan = magnitude == 0x7C00, magnitude > 0x7C00
    if fmt == "float8_e5m2":
        top, most = 0x7C, 0x7B
        made = (magnitude + bias) >> 8
        quieted = magnitude >> 8 | 2
    else:
        top, most = 0x7F, 0x7E
        quieted = np.full_like(magnitude, 0x7F)
        normal = ((magnitude + (bias >> 1)) >> 7) - (8 << 3)  # exponents are biased by 15, and by 7
        significand = np.where(exponent > 0, fraction | 0x400, fraction)
        cut = 16 - np.maximum(exponent, 1)  # bits below 2^-9, of which the bias takes the highest eight
        small = (significand + (bias << np.maximum(cut - 8, 0))) >> cut
        made = np.where(exponent >= 9, normal, small)
    made = np.where((made >= top) | infinite, most if saturate else top, made)
    return np.where(nan, quieted, made) | sign


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("fmt", ["float8_e5m2", "float8_e4m3fn"])
def test_avx10_bias(fmt: str, saturate: bool) -> None:
    for bias in (0, 1, 2, 127, 128, 200, 255):
        given = np.full(HALVES.size, bias, np.uint8)
        codes, _ = bits.avx10_convert(HALVES, fmt, given, saturate)
        np.testing.assert_array_equal(codes, biased(HALVES, given.astype(np.int64), fmt, saturate), str(bias))


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", ["float8_e5m2", "float8_e4m3fn"])
def test_avx10_every_bias(fmt: str) -> None:
    for bias in range(256):
        given = np.full(HALVES.size, bias, np.uint8)
        codes, _ = bits.avx10_convert(HALVES, fmt, given)
        np.testing.assert_array_equal(codes, biased(HALVES, given.astype(np.int64), fmt, False), str(bias))


@pytest.mark.parametrize("saturate", [False, True])
def test_avx10_nearest(saturate: bool) -> None:
    """A bias of half, and one more where the last bit is odd: nearest even, as the specification words it for e5m2."""
    codes, _ = bits.avx10_convert(HALVES, E5M2, None, saturate)
    odd = 0x7F + (HALVES >> 8 & 1)
    np.testing.assert_array_equal(codes, biased(HALVES, odd.astype(np.int64), "float8_e5m2", saturate))
    codes, _ = bits.avx10_convert(HALVES, E4M3, None, saturate)
    overflow = {"overflow": "saturate", "infinite_input": "saturate"} if saturate else {}
    expected, _ = bits.convert(HALVES, "float16", E4M3, **overflow)
    nan = (expected & 0x7F) == 0x7F
    np.testing.assert_array_equal(codes[~nan], expected[~nan])
    np.testing.assert_array_equal(codes[nan], (HALVES >> 8 & 0x80 | 0x7F)[nan])


def restated(code: int, src: str, dst: str, scale: int, saturate: bool) -> tuple[int, int]:
    """FPConvertFP8 and FP8ConvertFP on fractions."""
    x, fmt = reference.decode(code, ROSTER[src]), ROSTER[dst]
    to_fp8 = dst.startswith("float8")
    infinity, largest = (0x7F, 0x7E) if dst == E4M3.name else (0x7C, 0x7B)
    if x.is_nan:
        signals = x.signalling or src == E4M3.name
        return {E4M3.name: 0x7F, E5M2.name: 0x7E, "float16": 0x7E00, "bfloat16": 0x7FC0}[dst], 16 if signals else 0
    if x.is_infinite and to_fp8:
        return (largest if saturate else infinity) | x.negative << 7, 0
    if x.is_infinite:
        return {"float16": 0x7C00, "bfloat16": 0x7F80}[dst] | x.negative << (fmt.bits - 1), 0
    value = Fraction(x.real) * Fraction(2) ** scale
    exact = Value(Kind.FINITE, x.negative, abs(value))
    made, flags = reference.round_exact(exact, fmt, tininess="before")
    if flags & 4:
        made = (largest if saturate else infinity) | x.negative << 7
    return made, flags


SOURCES = {"float16": (-16, -3, 0, 7, 15), "bfloat16": (-128, -7, 0, 9, 127), "float32": (-128, -9, 0, 5, 127)}


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("dst", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("src", SOURCES)
def test_arm_to_fp8(src: str, dst: str, saturate: bool) -> None:
    random, width = np.random.default_rng(5), ROSTER[src].bits
    for scale in SOURCES[src]:
        near = bits.convert(random.integers(0, 256, 60), dst, src)[0].astype(np.int64) + random.integers(-2, 3, 60)
        near = bits.mul(
            near & ((1 << width) - 1), bits.encode(2.0 ** min(-scale, 127), "float32")[0], src, b_format="float32"
        )[0]
        ends = [0, 1 << (width - 1), *(int(bits.encode(x, src)[0]) for x in (np.inf, -np.inf, np.nan))]
        signalling = ends[2] + 1
        codes = [*near.tolist(), *random.integers(0, 1 << width, 40).tolist(), *ends, signalling]
        found = bits.arm_convert(codes, src, dst, scale, saturate)
        expected = [restated(int(x), src, dst, scale, saturate) for x in codes]
        assert list(zip(*(x.tolist() for x in found), strict=True)) == expected, scale


@pytest.mark.parametrize("dst", ["float16", "bfloat16"])
@pytest.mark.parametrize("src", ["float8_e4m3fn", "float8_e5m2"])
def test_arm_from_fp8(src: str, dst: str) -> None:
    for scale in (0, -3, -15) if dst == "float16" else (0, -30, -63):
        found = bits.arm_convert(np.arange(256), src, dst, scale)
        expected = [restated(x, src, dst, scale, False) for x in range(256)]
        assert list(zip(*(x.tolist() for x in found), strict=True)) == expected, scale


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: bits.avx10_convert(0, "float16"), ValueError, "fmt"),
        (lambda: bits.avx10_convert(0, "float8_e5m2", 3), TypeError, "bias"),
        (lambda: bits.avx10_convert(0, "float8_e5m2", None, 1), TypeError, "saturate"),
        (lambda: bits.avx10_convert(1 << 16, "float8_e5m2"), ValueError, "codes"),
        (lambda: bits.arm_convert(0, "float16", "float16"), ValueError, "src"),
        (lambda: bits.arm_convert(0, "float8_e5m2", "float32"), ValueError, "dst"),
        (lambda: bits.arm_convert(0, "float16", "float8_e5m2", 16), ValueError, "scale must be -16 to 15"),
        (lambda: bits.arm_convert(0, "float8_e5m2", "float16", 1), ValueError, "scale must be -15 to 0"),
        (lambda: bits.arm_convert(0, "float8_e5m2", "float16", 0, True), ValueError, "saturate"),
        (lambda: bits.arm_convert(0, "float16", "float8_e5m2", 0.5), TypeError, "scale"),
    ],
)
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# -- NVIDIA's approximate functions ----------------------------------------------------------------------------------

READ = {
    ("ex2", "float16"): 0xD5350E3B,
    ("ex2", "bfloat16"): 0xEAB02565,
    ("tanh", "float16"): 0x4FDBEBF7,
    ("tanh", "bfloat16"): 0xA1373044,
}
"""CRC-32 of the results of ex2.approx.f16, ex2.approx.ftz.bf16, tanh.approx.f16 and tanh.approx.bf16 for all codes, read off an H100."""
UNROUNDED = {
    ("ex2", "float16"): 19417,
    ("ex2", "bfloat16"): 3505,
    ("tanh", "float16"): 14736,
    ("tanh", "bfloat16"): 2086,
}
"""How many of them are not correctly rounded, counted on the device's results."""


@pytest.mark.parametrize(("name", "fmt"), READ)
def test_nvidia_functions(name: str, fmt: str) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    found = getattr(bits, f"nvidia_{name}")(codes, fmt)
    assert found.dtype == np.uint16
    assert zlib.crc32(found.astype("<u2").tobytes()) == READ[name, fmt]
    exact = getattr(bits, {"ex2": "exp2"}.get(name, name))
    assert (found != exact(codes, fmt, nan="nvidia")[0]).sum() == UNROUNDED[name, fmt]
    oracle = getattr(reference, {"ex2": "exp2"}.get(name, name))
    random = np.random.default_rng(2)
    for code in random.integers(0, ROSTER[fmt].spec.infinity, 60):  # at most a step from the exact value, cut
        cut, _ = oracle(int(code), fmt, rounding="toward_zero")
        assert abs(int(found[code]) - cut) <= 1


@pytest.mark.parametrize(
    ("name", "fmt", "code", "result"),
    [
        ("ex2", "float16", 0x8001, 0x3C00),
        ("ex2", "float16", 0x8002, 0x3BFF),
        ("ex2", "float16", 0x4BFF, 0x7BF4),
        ("ex2", "float16", 0x4C00, 0x7C00),
        ("ex2", "float16", 0xFC00, 0x0000),
        ("ex2", "bfloat16", 0xB3FF, 0x3F80),
        ("ex2", "bfloat16", 0xB400, 0x3F7F),
        ("ex2", "bfloat16", 0xC2FD, 0x0000),
        ("ex2", "bfloat16", 0xFFFF, 0x7FFF),
        ("tanh", "float16", 0x1C07, 0x1C07),
        ("tanh", "float16", 0x2C95, 0x2C93),
        ("tanh", "float16", 0xFC00, 0xBC00),
        ("tanh", "float16", 0xFC01, 0x7FFF),
        ("tanh", "bfloat16", 0x8001, 0x8001),
        ("tanh", "bfloat16", 0xC100, 0xBF80),
    ],
)
def test_nvidia_codes(name: str, fmt: str, code: int, result: int) -> None:
    assert int(getattr(bits, f"nvidia_{name}")(code, fmt)) == result


def test_nvidia_functions_refuse() -> None:
    for call in (bits.nvidia_ex2, bits.nvidia_tanh):
        with pytest.raises(ValueError, match="fmt must be one of 'float16', 'bfloat16', got 'float32'"):
            call(0, "float32")
        with pytest.raises(ValueError, match="codes"):
            call(1 << 16, "float16")
