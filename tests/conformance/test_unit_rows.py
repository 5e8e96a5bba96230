"""Dot-product units of processors against rows by their models: Spike (RVBNA), MMA-Sim (MFMA), restated pseudo-code (AMX, Arm)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tallies import Tally

from softfloat import BlockFormat, bits
from softfloat.accumulators import amd_mfma, amx, arm_bfdot, arm_bfmmla, arm_fp8dot, rvbna, tensor_core

SPIKE = "RISC-V bulk normalisation, rows by Spike"
MODEL = "matrix units, rows by the published model MMA-Sim"
PSEUDO = "AMX and Arm dot products, rows restated from pseudo-code"
FP8 = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
INVALID, OVERFLOW = 16, 4
SIGNALLING = 0x7D  # of float8_e5m2; OFP8 knows none


@lru_cache
def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


def held(codes: np.ndarray, expected: np.ndarray, tally: Tally, *names: str) -> None:
    tally(*names, codes.size, int((codes != expected).sum()))
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.conformance(SPIKE)
@pytest.mark.parametrize("pair", ["bf16", *(f"{x}_{y}" for x in FP8 for y in FP8)])
def test_rvbna(vectors: Path, tally: Tally, pair: str) -> None:
    rows = load(vectors / "units_rvbna.npz")
    names = ["bfloat16"] * 2 if pair == "bf16" else [FP8[x] for x in pair.split("_")]
    for key in [x[3:] for x in rows if x.startswith(f"a__{pair}__n")]:
        a, b, c = (rows[f"{x}__{key}"] for x in "abc")
        how = rvbna(a.shape[1], names[0])
        told = np.zeros(len(a), bool)
        for x, name in zip((a, b), names, strict=True):
            told |= name == FP8["e5m2"] and ((x & 0x7F) == SIGNALLING).any(axis=1)
        with np.errstate(invalid="ignore"):
            products = bits.decode(a, names[0]) * bits.decode(b, names[1])
        opposite = (products == np.inf).any(axis=1) & (products == -np.inf).any(axis=1)
        told |= opposite & np.isnan(products).any(axis=1)  # where a NaN is, opposite infinities raise nothing here
        for found, kind in (
            (bits.vecdot(a, b, tuple(names), how, c), "acc"),
            (bits.vecdot(a, b, tuple(names), how), "dot"),
        ):
            held(found[0], rows[f"{kind}__{key}"], tally, "RVBNA", f"{' x '.join(names)} to float32", "as built")
            flags = np.asarray(found[1]) & (INVALID | OVERFLOW)
            np.testing.assert_array_equal(flags[~told], rows[f"{kind}_flags__{key}"][~told])


AMX = {
    "TDPBF16PS": ("bfloat16", "bfloat16"),
    "TDPFP16PS": ("float16", "float16"),
    "TDPBF8PS": (FP8["e5m2"], FP8["e5m2"]),
    "TDPBHF8PS": (FP8["e5m2"], FP8["e4m3"]),
    "TDPHBF8PS": (FP8["e4m3"], FP8["e5m2"]),
    "TDPHF8PS": (FP8["e4m3"], FP8["e4m3"]),
}


@pytest.mark.conformance(PSEUDO)
@pytest.mark.parametrize("name", AMX)
def test_amx(vectors: Path, tally: Tally, name: str) -> None:
    rows, pair = load(vectors / "units_amx.npz"), AMX[name]
    for key in [x for x in rows["names"].tolist() if x.split("_")[0] == name]:
        a, b, c, d = (rows[f"{x}__{key}"] for x in "abcd")
        codes, _ = bits.matmul(a, b, pair, amx(pair[0]), c)
        held(codes, d, tally, name, f"{' x '.join(pair)} to float32", "nearest_even")


@pytest.mark.conformance(PSEUDO)
@pytest.mark.parametrize(("name", "preset"), [("BFDOT", arm_bfdot), ("BFMMLA", arm_bfmmla)])
def test_arm_bfloat16(vectors: Path, tally: Tally, name: str, preset) -> None:  # type: ignore[no-untyped-def]
    rows = load(vectors / "units_arm.npz")
    a, b, c = (rows[f"{x}__{name}"] for x in "abc")
    modes = {"rne": "nearest_even", "rz": "toward_zero", "rp": "toward_positive", "rm": "toward_negative"}
    cases = {"ebf0": preset()} | {f"ebf1_{short}": preset(True, mode) for short, mode in modes.items()}
    for kind, how in cases.items():
        codes, _ = bits.vecdot(a, b, "bfloat16", how, c)
        rounding = modes.get(kind.removeprefix("ebf1_"), "to_odd")
        held(codes, rows[f"d_{kind}__{name}"], tally, name, "bfloat16 to float32", rounding)


@pytest.mark.conformance(PSEUDO)
@pytest.mark.parametrize(
    ("name", "ways", "output"),
    [("FDOT2h", 2, "float16"), ("FDOT4s", 4, "float32"), ("FMMLA4h", 4, "float16"), ("FMMLA8s", 8, "float32")],
)
def test_arm_fp8(vectors: Path, tally: Tally, name: str, ways: int, output: str) -> None:
    rows = load(vectors / "units_arm.npz")
    for first, second in ((x, y) for x in FP8 for y in FP8):
        key = f"{name}__{first}_{second}"
        a, b, c, d, scales, saturated = (rows[f"{x}__{key}"] for x in ("a", "b", "c", "d", "lscale", "osm"))
        codes = np.empty_like(d)
        for scale, saturate in {(int(x), bool(y)) for x, y in zip(scales, saturated, strict=True)}:
            chosen = (scales == scale) & (saturated == saturate)
            how = arm_fp8dot(ways, output, scale, saturate)
            codes[chosen] = bits.vecdot(a[chosen], b[chosen], (FP8[first], FP8[second]), how, c[chosen])[0]
        held(codes, d, tally, name, f"{FP8[first]} x {FP8[second]} to {output}", "nearest_even")


@pytest.mark.conformance(MODEL)
@pytest.mark.parametrize("arch", ["CDNA1", "CDNA2", "CDNA3"])
def test_amd_mfma(vectors: Path, tally: Tally, arch: str) -> None:
    rows = load(vectors / "units_cdna.npz")
    for key in [x[3:] for x in rows if x.startswith(f"a__{arch}__")]:
        a, b, c, d = (rows[f"{x}__{key}"] for x in "abcd")
        pair = str(rows[f"format_a__{key}"]), str(rows[f"format_b__{key}"])
        name = pair[0] + "_1k" * key.endswith("_1k")
        if key.endswith("xf32"):
            a, b, pair, name = a >> 13, b >> 13, ("tfloat32", "tfloat32"), "tfloat32"
        codes, _ = bits.matmul(a, b, pair, amd_mfma(arch, name), c)
        held(codes, d, tally, f"MFMA, {arch}", f"{' x '.join(dict.fromkeys(pair))} to float32", "as built")


BLOCK_SCALED = (
    *(f"mxf8f6f4_{x}_{y}" for x in FP8 for y in FP8),
    "mxf4nvf4_block16_ue4m3",
    "mxf4nvf4_block16_ue8m0",
    "mxf4nvf4_block32_ue8m0",
)


@pytest.mark.conformance(MODEL)
@pytest.mark.parametrize("key", BLOCK_SCALED)
def test_block_scaled(vectors: Path, tally: Tally, key: str) -> None:
    rows = load(vectors / "units_nv_block_scaled.npz")
    a, b, of_a, of_b, c, d = (rows[f"{x}__{key}"] for x in ("a", "b", "scale_a", "scale_b", "c", "d"))
    instruction, first, second = key.split("_")
    pair, scale, size = ("float4_e2m1fn",) * 2, "float8_e8m0fnu", 32
    if instruction == "mxf8f6f4":
        pair = FP8[first], FP8[second]
    else:
        scale = FP8["e4m3"] if second == "ue4m3" else scale
        size = int(first.removeprefix("block"))
    operands = [
        bits.BlockCodes(codes, scales, BlockFormat("rows", element=fmt, scale=scale, block=size), axis=axis)
        for codes, scales, fmt, axis in ((a, of_a, pair[0], -1), (b, of_b, pair[1], -2))
    ]
    codes, _ = bits.matmul_blocks(*operands, tensor_core("B200", pair[0], instruction=instruction), c)
    held(
        codes, d, tally, f"tcgen05 {instruction}", f"{' x '.join(dict.fromkeys(pair))}, {scale} to float32", "as built"
    )
