"""Units whose loops are held against the plain one, with operands and options."""

from __future__ import annotations

from typing import Any

import numpy as np
from covering import Case

from softfloat import Environment, Format, bits
from softfloat.accumulators import (
    Alignment,
    amd_mfma,
    amp,
    amx,
    arm_bfdot,
    arm_fdot,
    arm_fmmla,
    arm_fp8dot,
    chunked,
    compensated,
    exact,
    fixed_point,
    rvbna,
    systolic,
    tensor_core,
)
from softfloat.accumulators.accumulator import COMPENSATIONS

E5M6 = Format("e5m6", exponent_bits=5, mantissa_bits=6)
E4M3, E5M2, E2M1, E4M3Z = "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e4m3fnuz"
HALF, BF16, SINGLE = "float16", "bfloat16", "float32"
IPU = {"environment": Environment.ipu(nanoo=True)}
DIRECTIONS = ("toward_zero", "toward_positive", "toward_negative")

CASES: list[Case] = [
    (arm_bfdot(), BF16, {}),
    (arm_bfdot(True), BF16, {}),
    *((arm_bfdot(True, mode), BF16, {}) for mode in DIRECTIONS),
    (arm_fdot(), HALF, {}),
    (arm_fdot(), HALF, {"rounding": "to_odd"}),
    (arm_fdot(True), HALF, {"rounding": "toward_negative"}),
    (arm_fmmla(), HALF, {}),
    (arm_fmmla(), HALF, {"rounding": "toward_positive", "ftz": True}),
    (arm_fmmla(SINGLE), SINGLE, {"nan": "x86"}),
    (amd_mfma("CDNA1", HALF), HALF, {}),
    (amd_mfma("CDNA2", BF16), BF16, {}),
    (amd_mfma("CDNA2", HALF).replace(block=6), HALF, {"out_format": HALF}),
    (amx(BF16), BF16, {}),
    (amx(HALF, 6), HALF, {}),
    (amx(E4M3), E4M3, {}),
    (amx(E5M2, 8), E5M2, {}),
    (systolic(BF16, 12, flush=True), BF16, {}),
    (tensor_core("H100", zero_exponent=-126), HALF, {}),
    (tensor_core("A100", output=HALF, zero_exponent=-126), HALF, {}),
    (tensor_core("H100", BF16, exponent_floor=-300), BF16, {}),
    (tensor_core("H100", BF16, exponent_floor=-3), BF16, {}),
    (tensor_core("H100", positive_zeros=False), HALF, {}),
    (tensor_core("H100", output=HALF, positive_zeros=False), HALF, {}),
    (tensor_core("H100", E4M3, instruction="mma.sync", exponent_floor=-9), E4M3, {}),
    (tensor_core("Ada", E5M2, HALF, zero_exponent=-20), E5M2, {}),
    (tensor_core("B200", E2M1, instruction="mxf4nvf4"), E2M1, {}),
    (chunked(32, tensor_core("A100", BF16, zero_exponent=-2), SINGLE), BF16, {}),
    (amp("float", mode="aligned"), HALF, {}),
    (amp("half", mode="aligned"), HALF, IPU),
    (amp("half", mode="aligned", inputs=E4M3Z), E4M3Z, {"overflow": "saturate"}),
    *((amp("half", mode=mode, **more), fmt, {"rounding": "stochastic", "seed": 5, **options}) for mode, fmt, more, options in (
        ("aligned", HALF, {}, {}), ("aligned", E4M3Z, {"inputs": E4M3Z}, {"overflow": "saturate"}),
        ("aligned", HALF, {"rounding": "toward_zero"}, {"sr_bits": 9}), ("chained", HALF, {}, {"overflow": "saturate"}),
        ("chained", HALF, {}, {"overflow": "nan", "sr_bits": 16}), ("exact", HALF, {"rounding": "toward_zero"}, {}),
    )),
    (amp("half", mode="aligned", rounding="toward_zero"), HALF, {}),
    (amp("half", mode="chained"), HALF, {"overflow": "saturate"}),
    (amp("half", mode="chained", rounding="toward_zero"), HALF, {"out_format": HALF}),
    (amp("float", rounding="toward_zero"), HALF, {}),
    (amp("half", rounding="toward_zero"), HALF, IPU),
    *((amp("half", mode=mode), HALF, options) for mode, options in (
        ("exact", {"rounding": "toward_zero"}), ("exact", {"rounding": "to_odd", "ftz": True}),
        ("aligned", {"rounding": "nearest_away", "daz": True}), ("exact", {"rounding": "toward_positive", "overflow": "nan"}),
        ("aligned", {"rounding": "toward_negative", "overflow": "infinity", "tininess": "before"}),
        ("chained", {"tininess": "before", "daz": True, "overflow": "saturate"}), ("exact", {"ftz": True, "overflow": "infinity"}),
        ("exact", {"rounding": "stochastic", "seed": 5, "daz": True, "ftz": True}),
    )),
    (rvbna(2), BF16, {}),
    (rvbna(7), BF16, {}),
    (rvbna(8, E5M2), E5M2, {}),
    (rvbna(23), BF16, {}),
    (rvbna(256, E4M3), E4M3, {}),
    *((amd_mfma("CDNA3", name), name, {}) for name in ("tfloat32", HALF, BF16, E4M3Z)),
    (amd_mfma("CDNA3", HALF).replace(alignment=Alignment(20, "to_odd", sum=25, addend=22, includes_addend=False)), HALF, {}),
    (arm_fp8dot(2, HALF), E4M3, {}),
    (arm_fp8dot(4, HALF, 3, True), E5M2, {}),
    (arm_fp8dot(4), E5M2, {}),
    (arm_fp8dot(8, lscale=20), E4M3, {}),
    (exact(SINGLE).replace(block=16), HALF, {"rounding": "toward_zero", "overflow": "infinity"}),
    (exact(SINGLE).replace(block=7, keeps_zero_sign=True), BF16, {}),
    (fixed_point(32, -16), HALF, {}),
    (fixed_point(12, -4), HALF, {"rounding": "toward_positive"}),
    (fixed_point(9, -3, HALF, "saturate", "toward_zero"), HALF, {}),
    (fixed_point(30, -14, E5M2), HALF, {"daz": True, "ftz": True, "rounding": "to_odd"}),
    (fixed_point(30, -14, SINGLE, "saturate"), HALF, {"rounding": "stochastic", "seed": 6, "sr_bits": 12}),
    *((compensated(fmt, method), name, {}) for fmt, name, method in (
        (HALF, HALF, "kahan"), (HALF, E5M2, "neumaier"), (E5M6, E5M6, "two_term"), (BF16, BF16, "neumaier"),
        (SINGLE, HALF, "two_term"), (SINGLE, SINGLE, "kahan"), (E4M3, E4M3, "kahan"),
        (HALF, HALF, "two_term"), (HALF, HALF, "neumaier"), (BF16, BF16, "two_term"), (E5M2, E5M2, "two_term"),
    )),
    *((compensated(fmt, method), name, options) for fmt, name, method, options in (
        (HALF, HALF, "kahan", {"rounding": "toward_positive", "overflow": "saturate"}),
        (HALF, SINGLE, "neumaier", {}), (E4M3Z, HALF, "two_term", {"rounding": "to_odd", "daz": True}),
        ("tfloat32", "tfloat32", "kahan", {}), (HALF, HALF, "two_term", {"daz": True, "ftz": True, "tininess": "before"}),
        (BF16, BF16, "neumaier", {"rounding": "nearest_away"}), (SINGLE, HALF, "kahan", {"rounding": "toward_zero"}),
        (SINGLE, SINGLE, "neumaier", {"rounding": "toward_negative"}), (SINGLE, SINGLE, "two_term", {"rounding": "nearest_away"}),
        (E5M6, HALF, "neumaier", {"rounding": "toward_negative", "ftz": True}),
    )),
    *((compensated(fmt, method), name, {"rounding": "stochastic", "seed": 11, "stream": 1 << 33, **options})
      for method in COMPENSATIONS for fmt, name, options in (
        (HALF, HALF, {}), (HALF, HALF, {"sr_bits": 8, "ftz": True}), (HALF, SINGLE, {"daz": True, "out_format": E5M2}),
        (BF16, BF16, {"sr_bits": 17}), (SINGLE, SINGLE, {}), (SINGLE, HALF, {"tininess": "before"}), (SINGLE, BF16, {"sr_bits": 1}),
        (E5M2, HALF, {"overflow": "saturate"}), (E4M3, E4M3, {"overflow": "nan"}), ("float6_e3m2fn", "float6_e3m2fn", {}),
        ("tfloat32", HALF, {"nan": "x86"}), (E4M3Z, E5M2, {}), (E5M6, E5M6, {"daz": True, "ftz": True, "sr_bits": 13}),
    )),
]  # fmt: skip

COUNTED: list[Case] = [
    (tensor_core("V100"), HALF, {}),
    (tensor_core("H100"), HALF, {}),
    (tensor_core("H100", output=HALF), HALF, {}),
    (tensor_core("Ada", E5M2, HALF), E5M2, {}),
    (tensor_core("H100", E4M3, instruction="mma.sync"), E4M3, {}),
    (amp("half", mode="aligned"), HALF, {"overflow": "nan", "rounding": "stochastic", "seed": 2}),
    (exact(HALF).replace(block=5), HALF, {"overflow": "saturate"}),
    (exact(HALF).replace(block=5), E5M2, {"tininess": "before"}),
]
"""More of them, whose additions are counted."""


def drawn(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], scale: float) -> np.ndarray[Any, Any]:
    """Codes of zeros of both signs, ordinary numbers, and numbers a few binades around them; often of few bits."""
    x = rng.standard_normal(shape) * scale
    if rng.random() < 0.3:
        x = np.round(4 * x) / 4
    x = x * np.exp2(rng.integers(-3, 4, shape) * rng.integers(0, 3))
    x = np.where(rng.random(shape) < 0.1, rng.choice([0.0, -0.0], shape), x)
    codes: np.ndarray[Any, Any] = bits.encode(x, fmt, overflow="saturate")[0]
    return codes
