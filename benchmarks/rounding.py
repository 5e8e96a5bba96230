"""Floats to floats, `softfloat.round`: its speed beside a copy of float64, on one core and in one process.

    python benchmarks/rounding.py [--only REGEX] [--quick] [--json FILE] [--markdown docs/performance.md]

A share is the rate of a row, in numbers of 2^20, over the rate at which NumPy copies as many of their kind. All flags are found, OR-ed together. The
few numbers of the last table are one call.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import ELEMENTS, STOCHASTIC, Benchmark, Row, Work

import softfloat

COPY, SINGLE_COPY = "copy of float64", "copy of float32"
FEW = 256


def doubles(count: int = ELEMENTS) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(count)


def copied(dtype: Any) -> Work:
    x = doubles().astype(dtype)
    copy = np.empty_like(x)
    return Work(lambda: np.copyto(copy, x), ELEMENTS)


def rounded(fmt: Any, dtype: Any = np.float64, **options: Any) -> Work:
    x = doubles().astype(dtype)
    out = np.empty_like(x)
    return Work(lambda: softfloat.round(x, fmt, out=out, **options), ELEMENTS)


def few(**options: Any) -> Work:
    x = doubles(FEW)
    return Work(lambda: softfloat.round(x, "float16", **options))


FORMATS: dict[str, Any] = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "p = 40, emax = 200": (40, 200),
}
WAYS: dict[str, tuple[dict[str, Any], float]] = {
    "nearest even": ({}, 0.4),
    "toward positive": ({"rounding": "toward_positive"}, 0.4),
    "to odd": ({"rounding": "to_odd"}, 0.4),
    "stochastic": (STOCHASTIC, 0.1),
}
BENCHMARK = Benchmark(
    "rounding",
    {
        "2²⁰ normally distributed float64": (
            *(
                Row(f"float64 → {name}, {way}", partial(rounded, fmt, **options), "G/s", COPY, goal)
                for name, fmt in FORMATS.items()
                for way, (options, goal) in WAYS.items()
            ),
            Row("float64 → bfloat16, no subnormals", partial(rounded, "bfloat16", subnormals=False), "G/s", COPY, 0.4),
        ),
        "2²⁰ normally distributed float32": tuple(
            Row(f"float32 → {fmt}, {way}", partial(rounded, fmt, np.float32, **WAYS[way][0]), "G/s", SINGLE_COPY, goal)
            for fmt in ("bfloat16", "float8_e4m3fn")
            for way, goal in (("nearest even", 0.25), ("toward positive", 0.25), ("stochastic", 0.04))
        ),
        f"One call on {FEW} float64": (
            Row("nearest even, few", few, "µs", goal=6),
            Row("stochastic, few", partial(few, **STOCHASTIC), "µs", goal=9),
        ),
    },
    {COPY: partial(copied, np.float64), SINGLE_COPY: partial(copied, np.float32)},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
