"""Matrix products beside OpenBLAS's sgemm, and beside what one would write without an emulator, all in one process.

    python benchmarks/dots.py [--only REGEX] [--quick] [--threads] [--large] [--plain] [--json FILE] [--markdown PAGE]

A rate is multiply-adds per second. The share is that rate over the rate of NumPy's float32 matrix product on one thread.
All flags are computed, a byte for each output. `--threads` compares two threads with one, at 1024 x 1024 x 1024; `--large`
multiplies 4096 x 4096 x 4096 and reports by how much that raised the most memory that the process had.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import STOCHASTIC, Benchmark, Missing, Row, Work, codes, product, sgemm

from softfloat import bits
from softfloat.accumulators import Accumulator, amp, chunked, exact, fma, mul_add, pairwise, tensor_core, vdpbf16ps

CASES: tuple[tuple[str, Accumulator, str, dict[str, Any], float | None], ...] = (
    ("mul_add half", mul_add("float16"), "float16", {}, 0.15),
    ("fma half", fma("float16"), "float16", {}, 0.10),
    ("fma half, saturating", fma("float16"), "float16", {"overflow": "saturate"}, None),
    ("fma half, stochastic", fma("float16"), "float16", STOCHASTIC, 0.05),
    ("mul_add bfloat16", mul_add("bfloat16"), "bfloat16", {}, 0.15),
    ("fma bfloat16", fma("bfloat16"), "bfloat16", {}, 0.10),
    ("fma bfloat16, stochastic", fma("bfloat16"), "bfloat16", STOCHASTIC, 0.05),
    ("amp, half partials", amp("half"), "float16", {}, 0.10),
    ("amp, half partials, stochastic", amp("half"), "float16", STOCHASTIC, None),
    ("amp, float partials", amp("float"), "float16", {}, 0.10),
    ("vdpbf16ps", vdpbf16ps(), "bfloat16", {}, 0.10),
    ("tensor_core H100, half", tensor_core("H100"), "float16", {}, 0.02),
    ("tensor_core H100, fp8", tensor_core("H100", "float8_e4m3fn"), "float8_e4m3fn", {}, 0.02),
    ("fma float32 of half", fma("float32"), "float16", {}, None),
    ("fma float32", fma("float32"), "float32", {}, None),
    ("fma fp8 to half", fma("float16"), "float8_e4m3fn", {}, None),
    ("fma fp8", fma("float8_e5m2"), "float8_e5m2", {}, None),
    ("exact, to float32", exact("float32"), "float16", {}, None),
    ("chunked 64, half in float", chunked(64, "float16", "float32"), "float16", {}, None),
    ("pairwise half", pairwise("float16"), "float16", {}, None),
    ("fma half, toward zero", fma("float16"), "float16", {"rounding": "toward_zero"}, None),
)
"""Name, accumulator, format of operands, options, and the share of sgemm that is meant to be reached."""


def cube(size: int) -> str:
    return f"{size}³"


def rows(size: int) -> tuple[Row, ...]:
    return tuple(
        Row(f"{name}, {cube(size)}", partial(product, how, fmt, size, **options), "G/s", f"sgemm, {cube(size)}", share)
        for name, how, fmt, options, share in CASES
    )


def loop_over_k(size: int) -> Work:
    """`mul_add` of halves, without flags, as one writes it in NumPy."""
    a, b = (codes("float16", size, size, seed=seed).view(np.float16) for seed in range(2))

    def run() -> None:
        c = np.zeros((size, size), np.float16)
        for k in range(size):
            c = c + a[:, k : k + 1] * b[k]

    return Work(run, size**3)


def peak() -> float:
    """Most memory that the process had, in bytes."""
    try:
        import resource
    except ImportError:
        raise Missing("this platform does not tell how much memory a process had") from None
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def large(memory: bool, size: int = 4096) -> Work:
    """One large product: seconds, or by how much the process's memory peaked."""
    x, y = (codes("float16", size, size, seed=seed) for seed in range(2))

    def run() -> float:
        before, start = peak() if memory else 0.0, time.perf_counter()
        bits.matmul(x, y, "float16", mul_add("float16"))
        return peak() - before if memory else time.perf_counter() - start

    return Work(run, measured=True)


SCALING = {name: (how, fmt, 1024) for name, how, fmt, options, share in CASES if share is not None and not options}
BENCHMARK = Benchmark(
    "dots",
    {
        "Matrix products, 256³": (
            *rows(256),
            Row("mul_add half by a NumPy loop over k, no flags", partial(loop_over_k, 256), "G/s", "sgemm, 256³"),
        ),
        "Matrix products, 512³": rows(512),
        "Matrix products, 1024³, two threads": tuple(
            Row(
                f"{name}, two threads",
                partial(product, *case, threads=2),
                "G/s",
                f"{name}, one thread",
                None,
                "--threads",
            )
            for name, case in SCALING.items()
        ),
        "Matrix products, 4096³": (
            # memory first: what a process had at the most never falls
            Row("memory, mul_add half, 4096³", partial(large, True), "GiB", needs="--large"),
            Row("time, mul_add half, 4096³", partial(large, False), "s", needs="--large"),
        ),
    },
    {f"sgemm, {cube(size)}": partial(sgemm, size) for size in (256, 512)}
    | {f"{name}, one thread": partial(product, *case) for name, case in SCALING.items()},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
