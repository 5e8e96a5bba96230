"""Sums that the faster loops over tiles serve, and how their tests hold them against the plain loop."""

from __future__ import annotations

from typing import Any

import faster
import numpy as np
import pytest
from covering import Case
from unit_cases import E5M6

from softfloat import Environment, Format, bits, engine
from softfloat.accumulators import (
    amp,
    chunked,
    exact,
    fma,
    from_poplar_options,
    mul_add,
    pairwise,
    slic,
    tensor_core,
    vdpbf16ps,
)
from softfloat.engine import elementwise, small

SERVED = pytest.mark.skipif(not all(engine.available()), reason="needs FMA and F16C, and the JIT")
E8M5 = Format("e8m5", exponent_bits=8, mantissa_bits=5)
E6M9 = Format("e6m9_low", exponent_bits=6, mantissa_bits=9, bias=40)
STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 7}
NANOO = Environment.ipu(nanoo=True)
SATURATING = Environment.ipu()

CASES: list[Case] = [
    (mul_add("float16"), "float16", {}),
    (mul_add("float16"), "float16", {"overflow": "saturate"}),
    (mul_add("float16"), "float16", {"overflow": "nan"}),
    (mul_add("float16"), "float16", {"nan": "x86"}),
    (mul_add("bfloat16"), "bfloat16", {}),
    (mul_add("bfloat16"), "bfloat16", {"overflow": "saturate"}),
    (mul_add(E5M6), E5M6, {}),
    (mul_add("float8_e4m3fn"), "float8_e4m3fn", {}),
    (mul_add("float32"), "float32", {}),
    (mul_add("float32"), "float16", {}),
    (fma("float16"), "float16", {}),
    (fma("float16"), "float16", {"overflow": "saturate"}),
    (fma("float16"), "float16", {"tininess": "before"}),
    (fma("float16"), "float8_e4m3fn", {}),
    (fma("bfloat16"), "bfloat16", {}),
    (fma(E5M6), E5M6, {}),
    (fma("float8_e5m2"), "float8_e5m2", {}),
    (fma("float8_e4m3fn"), "float8_e4m3fn", {"overflow": "saturate"}),
    (fma("float32"), "float16", {}),
    (fma("float32"), "float32", {}),
    (fma("float32"), "float16", {"overflow": "saturate"}),
    (fma("float32"), "float16", {"overflow": "nan", "out_format": "float16"}),
    (mul_add("float32"), "bfloat16", {"overflow": "saturate", "out_format": "bfloat16"}),
    (fma("float32"), "bfloat16", {"out_format": "bfloat16"}),
    (fma("float16"), "float16", STOCHASTIC),
    (fma("float16"), "float16", STOCHASTIC | {"sr_bits": 5}),
    (fma("float16"), "float16", STOCHASTIC | {"sr_bits": 20, "overflow": "saturate"}),
    (fma("float16"), "float16", STOCHASTIC | {"sr_bits": 16, "tininess": "before"}),
    (fma("bfloat16"), "bfloat16", STOCHASTIC),
    (fma("bfloat16"), "bfloat16", STOCHASTIC | {"overflow": "nan"}),
    (fma("float8_e5m2"), "float16", STOCHASTIC),
    (fma(E5M6), E5M6, STOCHASTIC | {"overflow": "saturate"}),
    (amp("half"), "float16", {}),
    (amp("half"), "float16", {"environment": SATURATING}),
    (amp("half"), "float16", {"environment": NANOO}),
    (amp("half"), "float16", STOCHASTIC),
    (amp("half"), "float16", STOCHASTIC | {"sr_bits": 7, "overflow": "saturate"}),
    (amp("half"), "float16", {"environment": Environment.ipu(esr=True, nanoo=True, seed=3)}),
    (amp("half", stochastic=False), "float16", {"environment": Environment.ipu(esr=True, seed=3)}),
    (amp("float"), "float16", {}),
    (amp("float", mode="chained"), "float16", {}),
    (amp("float"), "float16", STOCHASTIC | {"out_format": "float16"}),
    (amp("float"), "float16", STOCHASTIC | {"out_format": "float16", "sr_bits": 9, "overflow": "saturate"}),
    (amp("float"), "float16", {"out_format": "float16", "environment": Environment.ipu(esr=True, nanoo=True, seed=3)}),
    (fma("float16"), "float16", STOCHASTIC | {"out_format": "float8_e5m2", "tininess": "before"}),
    (amp("float", inputs="float32"), "float32", {}),
    (amp("half", inputs="float8_e4m3fnuz"), "float8_e4m3fnuz", {}),
    (slic("half", window=3), "float16", {}),
    (vdpbf16ps(), "bfloat16", {}),
    (chunked(16, "float16", "float32"), "float16", {}),
    (chunked(7, mul_add("float16"), "float16"), "float16", {}),
    (chunked(50, "bfloat16", "bfloat16"), "bfloat16", {"nan": "x86", "overflow": "saturate"}),
    (chunked(64, "float8_e5m2", "float16"), "float8_e5m2", {"rounding": "nearest_even", "tininess": "before"}),
    (tensor_core("H100", "float8_e4m3fn", instruction="mma.sync"), "float8_e4m3fn", {}),
    (from_poplar_options({"partialsType": "half"}, splits=3), "float16", {}),
    (
        from_poplar_options({"partialsType": "float"}, splits=3),
        "float16",
        {"out_format": "float16", "environment": Environment.ipu(esr=True, seed=5)},
    ),
    (tensor_core("V100"), "float16", {}),
    (tensor_core("A100", "bfloat16"), "bfloat16", {}),
    (tensor_core("H100"), "float16", {}),
    (tensor_core("H100", output="float16"), "float16", {}),
    (tensor_core("H100", "tfloat32"), "tfloat32", {}),
    (tensor_core("H100", "float8_e4m3fn"), "float8_e4m3fn", {}),
    (tensor_core("Ada", "float8_e5m2", "float16"), "float8_e5m2", {}),
    (mul_add("float16"), "float16", STOCHASTIC),
    (mul_add("float16"), "float16", STOCHASTIC | {"sr_bits": 7, "overflow": "saturate"}),
    (mul_add("float16"), "float16", STOCHASTIC | {"sr_bits": 16, "tininess": "before", "overflow": "nan"}),
    (mul_add("bfloat16"), "bfloat16", STOCHASTIC),
    (mul_add(E5M6), E5M6, STOCHASTIC | {"sr_bits": 24}),
    (mul_add("float16"), "float8_e5m2", STOCHASTIC | {"overflow": "saturate"}),
    *(
        (how(fmt), fmt, {"rounding": rounding} | options)
        for how in (fma, mul_add)
        for rounding, fmt, options in (
            ("toward_zero", "float16", {}),
            ("toward_positive", "float16", {"tininess": "before"}),
            ("toward_negative", "float16", {"overflow": "saturate"}),
            ("nearest_away", "float16", {"overflow": "nan"}),
            ("to_odd", "float16", {"ftz": True}),
            ("toward_zero", "bfloat16", {"daz": True}),
            ("toward_positive", "bfloat16", {}),
            ("toward_negative", "bfloat16", {"ftz": True, "daz": True}),
            ("nearest_away", "bfloat16", {"overflow": "saturate"}),
            ("to_odd", "bfloat16", {}),
            ("toward_zero", "float8_e5m2", {"overflow": "nan"}),
            ("toward_positive", E5M6, {"daz": True}),
            ("toward_negative", E5M6, {}),
            ("nearest_away", "float8_e4m3fn", {"ftz": True}),
            ("to_odd", E5M6, {"overflow": "saturate"}),
            ("nearest_even", "float16", {"daz": True}),
            ("nearest_even", "float16", {"ftz": True}),
            ("nearest_even", "float16", {"ftz": True, "daz": True, "tininess": "before", "overflow": "saturate"}),
            ("nearest_even", E5M6, {"ftz": True, "daz": True}),
        )
    ),
    (fma("float32"), "float16", {"rounding": "toward_zero"}),
    (fma("float32"), "float32", {"rounding": "toward_negative"}),
    (fma("float32"), "float32", {"rounding": "nearest_away", "daz": True}),
    (mul_add("float32"), "bfloat16", {"rounding": "nearest_away"}),
    (mul_add("float32"), "float32", {"rounding": "to_odd", "ftz": True}),
    (mul_add("float32"), "float32", {"rounding": "toward_positive", "overflow": "saturate"}),
    (fma("float32"), "float16", STOCHASTIC),
    (fma("float32"), "float32", STOCHASTIC | {"sr_bits": 20, "overflow": "saturate"}),
    (mul_add("float32"), "bfloat16", STOCHASTIC | {"sr_bits": 5, "overflow": "nan"}),
    (mul_add("float32"), "float32", STOCHASTIC | {"sr_bits": 16, "daz": True, "ftz": True}),
    (fma("tfloat32"), "tfloat32", {}),
    (fma("float16"), "float32", {}),
    (mul_add("float16"), "float32", {"rounding": "toward_negative", "daz": True}),
    (mul_add("bfloat16"), "float32", {"overflow": "saturate"}),
    (fma("float8_e5m2"), "float32", {"rounding": "to_odd", "ftz": True}),
    (fma("float16"), "float32", STOCHASTIC),
    (mul_add("tfloat32"), "float32", STOCHASTIC | {"daz": True, "overflow": "nan"}),
    (mul_add("tfloat32"), "float16", {"rounding": "toward_zero", "overflow": "saturate"}),
    (mul_add(E8M5), E8M5, {"tininess": "before", "daz": True}),
    (fma(E8M5), E8M5, STOCHASTIC | {"sr_bits": 20}),
    (fma(E6M9), E6M9, {"rounding": "to_odd", "ftz": True}),
    (mul_add(E6M9), "float16", {}),
    (fma("float8_e4m3fnuz"), "float8_e4m3fnuz", {}),
    (mul_add("float8_e5m2fnuz"), "float8_e5m2fnuz", {"rounding": "toward_negative", "overflow": "saturate"}),
    (fma("binary8p4sf"), "binary8p4sf", {"rounding": "nearest_away"}),
    (fma("float16"), "float16", STOCHASTIC | {"daz": True}),
    (mul_add("float16"), "float16", STOCHASTIC | {"daz": True, "ftz": True, "overflow": "saturate", "sr_bits": 20}),
    (mul_add(E5M6), E5M6, STOCHASTIC | {"daz": True}),
    (fma("float8_e4m3fn"), "float8_e4m3fn", STOCHASTIC | {"ftz": True, "sr_bits": 5}),
    (fma("float8_e4m3fnuz"), "float8_e4m3fnuz", STOCHASTIC),
]

OF_PRODUCTS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative"},
    {"rounding": "to_odd", "overflow": "saturate"},
    {"overflow": "nan", "nan": "x86"},
    {"ftz": True, "tininess": "before", "rounding": "nearest_away"},
    {"daz": True},
    {"daz": True, "ftz": True, "rounding": "toward_positive"},
    {"out_format": "float8_e5m2", "rounding": "toward_zero"},
    STOCHASTIC,
    STOCHASTIC | {"sr_bits": 5, "overflow": "saturate"},
    STOCHASTIC | {"sr_bits": 16, "tininess": "before"},
    {"environment": Environment(**STOCHASTIC, sr_bits=20, overflow="nan", nan="x86", replica=3)},
    STOCHASTIC | {"sr_bits": 9, "sr_method": "half"},
    STOCHASTIC | {"seed": 2**63 + 1, "stream": 2**40 + 5, "out_format": "float8_e5m2"},
    STOCHASTIC | {"daz": True},
]
WHOLE: list[Case] = [
    (how, source, options)
    for place, (fmt, source) in enumerate((
        ("float16", "float16"), ("bfloat16", "bfloat16"), ("float8_e5m2", "float16"), ("float32", "float16"), ("float32", "float32"),
        ("float8_e4m3fn", "float8_e4m3fn"), (E5M6, "float16"), ("bfloat16", "float16"), ("float8_e4m3fn", "float8_e5m2"),
        ("tfloat32", "bfloat16"), ("float8_e4m3fnuz", "float8_e4m3fnuz"),
    ))
    for turn, how in enumerate((pairwise(fmt), exact(fmt), fma(fmt).replace(chains=3), mul_add(fmt).replace(chains=9)))
    for options in OF_PRODUCTS[(place + turn) % 3 :: 3]
]  # fmt: skip
"""Sums in pairs, of all products at once, and in several chains."""


def both_ways(monkeypatch: pytest.MonkeyPatch, *arguments: Any, function: Any = bits.matmul, **options: Any) -> None:
    """Small calls, tiles, and the plain loop."""
    found = [function(*arguments, **options)]
    with monkeypatch.context() as patch:
        for name in ("product", "total"):
            patch.setattr(small, name, lambda *_: None)
        found.append(function(*arguments, **options))
        patch.setattr(elementwise, "FAST", False)
        plain = function(*arguments, **options)
    for quick in found:
        for one, other in zip(quick, plain, strict=True):
            np.testing.assert_array_equal(one, other)


DIRECTED = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


def encoded(values: Any, fmt: Any = "float16") -> np.ndarray[Any, Any]:
    codes: np.ndarray[Any, Any] = bits.encode(np.array(values, np.float64), fmt)[0]
    return codes


def counted_both_ways(
    monkeypatch: pytest.MonkeyPatch, *arguments: Any, function: Any = bits.matmul, **options: Any
) -> bits.Counts:
    """By tiles and by the plain loop."""
    counts: bits.Counts = faster.both_ways(monkeypatch, function, *arguments, count=True, **options)[2]
    return counts
