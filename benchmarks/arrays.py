"""What SoftArrays cost over the functions they call, and over NumPy's own halves, all in one process.

    python benchmarks/arrays.py [--size 20] [--rounds 7] [--json FILE]

A time is that of the fastest of many calls, taken in turn with what it is compared with. The ratio is that time over
the other's: NumPy's float16 doing the same, or the function of `softfloat.bits` on the same codes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import softfloat
from softfloat import bits, float16
from softfloat.accumulators import fma, mul_add


@dataclass
class Case:
    name: str
    against: str
    run: Callable[[], Any]
    other: Callable[[], Any]
    repeats: int = 1
    best: float = float("inf")
    best_other: float = float("inf")

    def take(self) -> None:
        """Both, a few times, one after the other."""
        for _ in range(3):
            self.best = min(self.best, timed(self.run, self.repeats))
            self.best_other = min(self.best_other, timed(self.other, self.repeats))

    @property
    def ratio(self) -> float:
        return self.best / self.best_other


def timed(run: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def adding(x: Any, y: Any) -> Callable[[], Any]:
    """x += y."""

    def run() -> None:
        nonlocal x
        x += y

    return run


def loop(x: Any, y: Any) -> Callable[[], Any]:
    """The tutorial's 10 000 steps."""

    def run() -> None:
        nonlocal x
        for _ in range(10_000):
            x += y

    return run


def cases(size: int) -> list[Case]:
    random = np.random.default_rng(0)
    native = [random.standard_normal(20).astype(np.float16) for _ in range(2)]
    few = [softfloat.array(x) for x in native]
    small = np.full(20, 0.0001, np.float16)
    found = []

    def drawn(run: Callable[[], Any]) -> Callable[[], Any]:
        """The same under stochastic rounding."""
        settings = softfloat.Environment(rounding="stochastic", seed=1)

        def within() -> None:
            with settings:
                run()

        return within

    found += [
        Case(
            "x += y, 20 elements",
            "numpy.float16",
            adding(few[0].copy(), few[1]),
            adding(native[0].copy(), native[1]),
            2000,
        ),
        Case("x += 0.1, 20 elements", "numpy.float16", adding(few[0].copy(), 0.1), adding(native[0].copy(), 0.1), 2000),
        Case("x + y, 20 elements", "numpy.float16", lambda: few[0] + few[1], lambda: native[0] + native[1], 2000),
        Case(
            "numpy.add(x, y), 20 elements",
            "bits.add",
            lambda: np.add(few[0], few[1]),
            lambda: bits.add(few[0].codes, few[1].codes, float16),
            2000,
        ),
        Case(
            "numpy.sqrt(x), 20 elements",
            "bits.sqrt",
            lambda: np.sqrt(few[0]),
            lambda: bits.sqrt(few[0].codes, float16, flags="any"),
            500,
        ),
        Case(
            "10 000 steps of x += y, 20 elements",
            "numpy.float16",
            loop(softfloat.zeros(20, float16), softfloat.asarray(small)),
            loop(np.zeros(20, np.float16), small),
        ),
        Case(
            "the same, stochastic",
            "numpy.float16",
            drawn(loop(softfloat.zeros(20, float16), softfloat.asarray(small))),
            loop(np.zeros(20, np.float16), small),
        ),
    ]
    x, y = (softfloat.array(random.standard_normal(size).astype(np.float16)) for _ in range(2))
    p, q = x.codes, y.codes
    out = softfloat.empty(size, float16)
    ufuncs: list[tuple[np.ufunc, Any, int]] = [
        (np.add, bits.add, 2),
        (np.divide, bits.div, 2),
        (np.sqrt, bits.sqrt, 1),
        (np.exp, bits.exp, 1),
        (np.maximum, bits.maximum, 2),
    ]
    for ufunc, function, arity in ufuncs:
        arrays, codes = (x, y)[:arity], (p, q)[:arity]
        found.append(
            Case(
                f"numpy.{ufunc.__name__}, 2^{size.bit_length() - 1} elements",
                f"bits.{function.__name__}",
                lambda u=ufunc, a=arrays: u(*a, out=out),
                lambda f=function, c=codes: f(*c, float16, out=out.codes, flags="any"),
            )
        )
    rows = p[: size // 1024 * 1024].reshape(-1, 1024)
    table = softfloat.from_codes(rows, float16)
    a, b = (softfloat.array(random.standard_normal((256, 256)).astype(np.float16)) for _ in range(2))
    found += [
        Case(
            "numpy.sum over rows of 1024",
            "bits.sum",
            lambda: np.sum(table, axis=1),
            lambda: bits.sum(rows, float16, fma(float16), 1, out_format=float16, flags="any"),
        ),
        Case(
            "numpy.max over rows of 1024",
            "numpy.float16",
            lambda: np.max(table, axis=1),
            lambda: np.max(rows.view(np.float16), axis=1),
        ),
        Case(
            "numpy.sort of rows of 1024",
            "numpy.float16",
            lambda: np.sort(table, axis=1),
            lambda: np.sort(rows.view(np.float16), axis=1),
        ),
        Case(
            "a @ b, 256 x 256",
            "bits.matmul",
            lambda: a @ b,
            lambda: bits.matmul(a.codes, b.codes, float16, mul_add(float16), out_format=float16, flags="any"),
        ),
        Case(
            "einsum('ij,kj', a, b), 256 x 256",
            "bits.matmul",
            lambda: np.einsum("ij,kj", a, b),
            lambda: bits.matmul(a.codes, b.codes.T, float16, mul_add(float16), out_format=float16, flags="any"),
        ),
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20, help="log2 of the number of elements (default 20)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    softfloat.set_num_threads(1)
    found = cases(1 << arguments.size)
    with np.errstate(all="ignore"):
        for _ in range(arguments.rounds):
            for case in found:
                case.take()
    print(f"{'operation':<40}{'against':<16}{'us':>12}{'other us':>12}{'ratio':>8}")
    for case in found:
        print(
            f"{case.name:<40}{case.against:<16}{case.best * 1e6:>12.2f}{case.best_other * 1e6:>12.2f}{case.ratio:>8.2f}"
        )
    if arguments.json:
        rows = [
            {
                "name": case.name,
                "against": case.against,
                "seconds": case.best,
                "other": case.best_other,
                "ratio": case.ratio,
            }
            for case in found
        ]
        arguments.json.write_text(json.dumps({"rows": rows}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
