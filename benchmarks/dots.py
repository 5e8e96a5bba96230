"""Matrix products beside OpenBLAS's sgemm, and beside what one would write without an emulator, all in one process.

    python benchmarks/dots.py [--size 256 512] [--rounds 7] [--threads] [--large] [--json FILE]

A rate is multiply-adds per second of the fastest of many rounds, taken in turn. The share is that rate over the rate of
NumPy's float32 matrix product on one thread. All flags are computed, a byte for each output. `floor` is what the share
is meant to reach. `--large` multiplies 4096 x 4096 x 4096 and reports the memory it took.
"""


from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import softfloat
from softfloat import bits
from softfloat.accumulators import Accumulator, amp, chunked, exact, fma, mul_add, pairwise, tensor_core, vdpbf16ps
from softfloat.engine import elementwise

STOCHASTIC = {"rounding": "stochastic", "seed": 1}
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


@dataclass
class Case:
    name: str
    run: Callable[[], Any]
    work: int
    floor: float | None = None
    best: float = float("inf")

    def take(self) -> None:
        """A few calls in a row, so that each case finds its own operands in the cache, whatever ran before."""
        for _ in range(3 if self.best < 0.1 else 1):
            start = time.perf_counter()
            self.run()
            self.best = min(self.best, time.perf_counter() - start)

    @property
    def rate(self) -> float:
        return self.work / self.best / 1e9


def cases(size: int, plain: bool) -> list[Case]:
    """All cases for square matrices; the plain ones only where they do not take too long."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    found = [Case("sgemm", lambda: a @ b, size**3)]
    for name, accumulator, fmt, options, floor in CASES:
        x, y = (bits.encode(v, fmt, overflow="saturate")[0] for v in (a, b))
        found.append(
            Case(
                name,
                lambda x=x, y=y, f=fmt, how=accumulator, o=options: bits.matmul(x, y, f, how, **o),
                size**3,
                floor,
            )
        )
    half = a.astype(np.float16), b.astype(np.float16)

    def loop_over_k() -> np.ndarray[Any, Any]:
        c = np.zeros((size, size), np.float16)
        for k in range(size):
            c = c + half[0][:, k : k + 1] * half[1][k]
        return c

    if plain:
        found.append(Case("mul_add half by a NumPy loop over k, no flags", loop_over_k, size**3))
    return found


def threads(rounds: int, size: int = 1024) -> list[tuple[str, float]]:
    """Speed of two threads over one."""
    random = np.random.default_rng(0)
    result = []
    for name, accumulator, fmt, options, floor in CASES:
        if floor is None:
            continue
        x, y = (bits.encode(random.standard_normal((size, size)), fmt, overflow="saturate")[0] for _ in range(2))
        pair = [
            Case(name, lambda x=x, y=y, f=fmt, how=accumulator, o=options: bits.matmul(x, y, f, how, **o), size**3)
            for _ in range(2)
        ]
        for _ in range(rounds):
            for count, case in enumerate(pair, 1):
                softfloat.set_num_threads(count)
                case.take()
        softfloat.set_num_threads(1)
        result.append((name, pair[0].best / pair[1].best))
    return result


def peak_gib() -> float:
    """Most memory that the process had, in GiB; NaN where the platform does not say."""
    try:
        import resource
    except ImportError:
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2 ** (30 if sys.platform == "darwin" else 20)


def large(size: int = 4096) -> dict[str, float]:
    """One large product: seconds, and by how much the process's memory peaked."""
    random = np.random.default_rng(0)
    x, y = (bits.encode(random.standard_normal((size, size)).astype(np.float32), "float16")[0] for _ in range(2))
    before = peak_gib()
    start = time.perf_counter()
    bits.matmul(x, y, "float16", mul_add("float16"))
    seconds = time.perf_counter() - start
    peak = peak_gib()
    return {"size": size, "seconds": seconds, "peak_GiB": peak, "more_than_before_GiB": peak - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", action="store_true", help="also compare two threads with one, at 1024^3")
    parser.add_argument("--large", action="store_true", help="also multiply 4096 x 4096 x 4096")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--plain", action="store_true", help="leave the faster loops out")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    softfloat.set_num_threads(1)
    elementwise.FAST = not arguments.plain
    rows = []
    for size in arguments.size:
        found = [x for x in cases(size, size <= 256) if arguments.only in x.name or x.name == "sgemm"]
        for _ in range(arguments.rounds):
            for case in found:
                case.take()
        print(f"{size} x {size} x {size}, one thread, all flags")
        print(f"{'accumulator':<48}{'G/s':>8}{'share':>8}{'floor':>8}")
        for case in found:
            share = case.rate / found[0].rate
            floor = "" if case.floor is None else f"{case.floor:.2f}" + (" " if share >= case.floor else "!")
            print(f"{case.name:<48}{case.rate:>8.3f}{share:>8.3f}{floor:>8}")
            rows.append({"size": size, "name": case.name, "rate": case.rate, "share": share, "floor": case.floor})
    scaling = threads(max(2, arguments.rounds // 2)) if arguments.threads else []
    for name, ratio in scaling:
        print(f"two threads over one, 1024^3, {name}: {ratio:.2f}")
    measured = large() if arguments.large else {}
    if measured:
        print("{size}^3 mul_add half: {seconds:.1f} s, peak {peak_GiB:.2f} GiB".format(**measured))
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "threads": dict(scaling), "large": measured}, indent=1))


if __name__ == "__main__":
    main()
