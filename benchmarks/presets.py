"""Every preset of `softfloat accumulators` beside OpenBLAS's sgemm, in one process, and whether a faster loop serves it.

    python benchmarks/presets.py [--only REGEX] [--quick] [--plain] [--json FILE] [--markdown PAGE]

Products of 256 x 256 x 256 normally distributed numbers in the formats that a unit takes, all flags computed, on one
thread. The share is of NumPy's float32 matrix product on one thread. In the end it names what no faster loop served.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

from measuring import STOCHASTIC, Benchmark, Row, Work, normal, product, sgemm

from softfloat import bits
from softfloat.accumulators import PRESETS, Accumulator
from softfloat.engine import plain

SIZE = 256
SHARE = 0.02
BLOCK_SHARE = 0.05

E4M3, E5M2, E2M1 = "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"
E4M3Z, E5M2Z = "float8_e4m3fnuz", "float8_e5m2fnuz"
HALF, BF16, TF32, SINGLE = "float16", "bfloat16", "tfloat32", "float32"

Case = tuple[str, str, dict[str, Any]]
"""A call of a preset, the format of operands, and options."""

TABLES: dict[str, tuple[Case, ...]] = {
    "Formats and orders": (
        ("fma('float16')", HALF, {}),
        ("fma('bfloat16')", BF16, {}),
        ("fma('float32')", HALF, {}),
        ("fma('float8_e4m3fn')", E4M3, {}),
        ("mul_add('float16')", HALF, {}),
        ("compensated('float16', 'kahan')", HALF, {}),
        ("compensated('float16', 'neumaier')", HALF, {}),
        ("compensated('float16', 'two_term')", HALF, {}),
        ("compensated('float32', 'kahan')", HALF, {}),
        ("fixed_point(32, -16)", HALF, {}),
        ("fixed_point(32, -16, overflow='saturate')", HALF, {}),
        ("fixed_point(40, -24, cut='toward_zero')", BF16, {}),
        ("exact('float32')", HALF, {}),
        ("pairwise('float16')", HALF, {}),
        ("pairwise('float32')", BF16, {}),
        ("chunked(64, 'float16', 'float32')", HALF, {}),
        ("chunked(128, tensor_core('H100', input='float8_e4m3fn'), 'float32')", E4M3, {}),
        ("systolic('bfloat16')", BF16, {}),
        ("systolic('bfloat16', depth=128)", BF16, {}),
        ("systolic('bfloat16', depth=128, flush=True)", BF16, {}),
        ("tpu_mxu()", BF16, {}),
        ("gaudi_mme()", BF16, {}),
        ("gaudi_mme('float8_e4m3fn')", E4M3, {}),
        ("ascend_cube()", HALF, {}),
        ("trainium_pe()", BF16, {}),
        ("trainium_pe('tfloat32')", TF32, {}),
    ),
    "NVIDIA": (
        ("tensor_core('V100')", HALF, {}),
        ("tensor_core('V100', output='float16')", HALF, {}),
        ("tensor_core('T4')", HALF, {}),
        ("tensor_core('A100')", HALF, {}),
        ("tensor_core('A100', output='float16')", HALF, {}),
        ("tensor_core('A100', input='bfloat16')", BF16, {}),
        ("tensor_core('A100', input='tfloat32')", TF32, {}),
        ("tensor_core('Ada', input='float8_e4m3fn')", E4M3, {}),
        ("tensor_core('Ada', input='float8_e4m3fn', output='float16')", E4M3, {}),
        ("tensor_core('H100')", HALF, {}),
        ("tensor_core('H100', output='float16')", HALF, {}),
        ("tensor_core('H100', input='bfloat16')", BF16, {}),
        ("tensor_core('H100', input='tfloat32')", TF32, {}),
        ("tensor_core('H100', input='float8_e4m3fn')", E4M3, {}),
        ("tensor_core('H100', input='float8_e4m3fn', output='float16')", E4M3, {}),
        ("tensor_core('H100', input='float8_e4m3fn', instruction='mma.sync')", E4M3, {}),
        ("tensor_core('H100', input='float8_e4m3fn', output='float16', instruction='mma.sync')", E4M3, {}),
        ("tensor_core('H100', zero_exponent=-126)", HALF, {}),
        ("tensor_core('H100', input='bfloat16', zero_exponent=-126)", BF16, {}),
        ("torch_mm('mm', 'bfloat16')", BF16, {}),
        ("torch_mm('linear')", HALF, {}),
        ("torch_mm('addmm')", HALF, {}),
        ("torch_mm('scaled_mm', 'float8_e4m3fn')", E4M3, {}),
        ("tensor_core('B200', input='float8_e4m3fn')", E4M3, {}),
        ("tensor_core('B200', input='float8_e4m3fn', zero_exponent=-126)", E4M3, {}),
        ("tensor_core('RTX Blackwell', input='float8_e5m2')", E5M2, {}),
    ),
    "IPU": (
        ("amp('float32')", HALF, {}),
        ("amp('half')", HALF, {}),
        ("amp('half')", HALF, STOCHASTIC),
        ("amp('float32', mode='aligned')", HALF, {}),
        ("amp('half', mode='aligned')", HALF, {}),
        ("amp('half', mode='aligned')", HALF, STOCHASTIC),
        ("amp('float32', mode='chained')", HALF, {}),
        ("amp('half', mode='chained')", HALF, {}),
        ("amp('half', mode='chained')", HALF, STOCHASTIC),
        ("amp('float32', rounding='toward_zero')", HALF, {}),
        ("amp('half', rounding='toward_zero')", HALF, {}),
        ("amp('float32', inputs='float32')", SINGLE, {}),
        ("amp('half', inputs='float8_e4m3fnuz')", E4M3Z, {}),
        ("amp('half', inputs='float8_e4m3fnuz', mode='aligned')", E4M3Z, {}),
        ("amp('half', inputs='float8_e4m3fnuz', mode='chained')", E4M3Z, {}),
        ("slic('half', window=4)", HALF, {}),
        ("slic('half', window=3)", HALF, {}),
        ("slic('float32', window=3)", HALF, {}),
    ),
    "RISC-V, x86": (
        ("rvbna(2)", BF16, {}),
        ("rvbna(4)", BF16, {}),
        ("rvbna(8)", BF16, {}),
        ("rvbna(16)", BF16, {}),
        ("rvbna(64)", BF16, {}),
        ("rvbna(256)", BF16, {}),
        ("rvbna(4, 'float8_e4m3fn')", E4M3, {}),
        ("rvbna(16, 'float8_e5m2')", E5M2, {}),
        ("zvfbfwma()", BF16, {}),
        ("zvfbfwma('float16')", HALF, {}),
        ("amx('bfloat16')", BF16, {}),
        ("amx('float16')", HALF, {}),
        ("amx('float8_e4m3fn')", E4M3, {}),
        ("amx('float8_e5m2')", E5M2, {}),
        ("vdpbf16ps()", BF16, {}),
        ("vdpphps()", HALF, {}),
    ),
    "Arm": (
        ("arm_bfdot()", BF16, {}),
        ("arm_bfdot(True)", BF16, {}),
        ("arm_bfdot(True, 'toward_zero')", BF16, {}),
        ("arm_bfmmla()", BF16, {}),
        ("arm_bfmmla(True)", BF16, {}),
        ("arm_bfmlal()", BF16, {}),
        ("arm_fdot()", HALF, {}),
        ("arm_fdot(fz16=True)", HALF, {}),
        ("arm_fmmla()", HALF, {}),
        ("arm_fmmla('float32')", SINGLE, {}),
        ("arm_fp8dot(1)", E4M3, {}),
        ("arm_fp8dot(4)", E4M3, {}),
        ("arm_fp8dot(8)", E4M3, {}),
        ("arm_fp8dot(8, lscale=4)", E4M3, {}),
        ("arm_fp8dot(1, 'float16')", E4M3, {}),
        ("arm_fp8dot(2, 'float16')", E4M3, {}),
        ("arm_fp8dot(4, 'float16')", E4M3, {}),
        ("arm_fp8dot(4, 'float16', saturate=True)", E4M3, {}),
    ),
    "AMD": (
        ("amd_mfma('CDNA1', 'float32')", SINGLE, {}),
        ("amd_mfma('CDNA1', 'float16')", HALF, {}),
        ("amd_mfma('CDNA1', 'bfloat16')", BF16, {}),
        ("amd_mfma('CDNA2', 'float16')", HALF, {}),
        ("amd_mfma('CDNA2', 'bfloat16')", BF16, {}),
        ("amd_mfma('CDNA2', 'bfloat16_1k')", BF16, {}),
        ("amd_mfma('CDNA3', 'tfloat32')", TF32, {}),
        ("amd_mfma('CDNA3', 'float16')", HALF, {}),
        ("amd_mfma('CDNA3', 'bfloat16')", BF16, {}),
        ("amd_mfma('CDNA3', 'float8_e4m3fnuz')", E4M3Z, {}),
        ("amd_mfma('CDNA3', 'float8_e5m2fnuz')", E5M2Z, {}),
    ),
}
"""Calls by whose units they describe."""

BLOCK_CASES = (
    ("mxfp8_e4m3", "tensor_core('B200', input='float8_e4m3fn', instruction='mxf8f6f4')"),
    ("mxfp8_e5m2", "tensor_core('B200', input='float8_e5m2', instruction='mxf8f6f4')"),
    ("mxfp4", "tensor_core('B200', input='float4_e2m1fn', instruction='mxf4nvf4')"),
    ("nvfp4", "tensor_core('B200', input='float4_e2m1fn', instruction='mxf4nvf4')"),
    ("mxfp8_e4m3", "exact('float32').replace(block=32)"),
    ("mxfp6_e2m3", "exact('float32').replace(block=32)"),
    ("mxfp4", "exact('float32').replace(block=32)"),
    ("nvfp4", "exact('float32').replace(block=16)"),
    ("mxfp8_e4m3", "exact('float32')"),
)
"""Block formats and accumulators."""


def made(call: str) -> Accumulator:
    """The accumulator that a call of a preset makes."""
    how: Accumulator = eval(call, {name: preset.make for name, preset in PRESETS.items()})
    return how


def blocks(name: str, call: str, size: int) -> Work:
    """A product of operands in a block format, all flags computed."""
    how = made(call)
    x = bits.quantize(normal(size, size), name)[0]
    y = bits.quantize(normal(size, size, seed=1), name, axis=0)[0]
    return Work(lambda: bits.matmul_blocks(x, y, how), size**3)


def row(call: str, fmt: str, options: dict[str, Any]) -> Row:
    """A row of a preset's call."""
    shown = f"{call} of {fmt}" + ", stochastic" * bool(options)
    return Row(shown, lambda: product(made(call), fmt, SIZE, **options), "G/s", "sgemm, 256³", SHARE)


BENCHMARK = Benchmark(
    "presets",
    {
        **{heading: tuple(row(*case) for case in cases) for heading, cases in TABLES.items()},
        "Block formats, 512³": tuple(
            Row(f"{name}, {call}", partial(blocks, name, call, 512), "G/s", "sgemm, 512³", BLOCK_SHARE)
            for name, call in BLOCK_CASES
        ),
    },
    {f"sgemm, {size}³": partial(sgemm, size) for size in (256, 512)},
)

assert {x.split("(")[0] for cases in TABLES.values() for x, _, _ in cases} == set(PRESETS), "a preset is missing"


def main() -> None:
    """Measure, and say which accumulators the plain loop served."""
    run, served = plain.run, dict.fromkeys(())

    def watched(problem: Any, planned: Any, *rest: Any) -> None:
        served[planned.accumulator.name] = None
        run(problem, planned, *rest)

    plain.run = watched
    BENCHMARK.main(__doc__)
    print(f"by the plain loop: {', '.join(served) or 'none'}")


if __name__ == "__main__":
    main()
