"""Linear algebra in half: `softfloat.linalg` and `numpy.linalg` on SoftArrays, on one core and in one process.

    python benchmarks/linear.py [--only REGEX] [--quick] [--json FILE] [--markdown docs/performance.md]

The yardstick is LU written as a loop of NumPy's operators on its own float16, 256 by 256, whose operations convert to float32 and back: some 90 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import STOCHASTIC, Benchmark, Row, Work

import softfloat
from softfloat import linalg

LOOP = "LU as a loop, float16"


def normal(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, n))


def of_numpy() -> Work:
    a = normal(256).astype(np.float16)

    def run() -> None:
        x = a.copy()
        for k in range(len(x) - 1):
            best = k + int(np.argmax(np.abs(x[k:, k])))
            x[[k, best]] = x[[best, k]]
            x[k + 1 :, k] /= x[k, k]
            x[k + 1 :, k + 1 :] -= np.multiply.outer(x[k + 1 :, k], x[k, k + 1 :])

    return Work(run)


def timed(function: Callable[[Any], Any], n: int, definite: bool = False, **options: Any) -> Work:
    a = normal(n)
    x = softfloat.array(a @ a.T / n + np.eye(n) if definite else a, "float16")

    def run() -> None:
        with softfloat.environment(**options):
            function(x)

    return Work(run)


CASES = (
    ("LU, n = 256", partial(timed, linalg.lu, 256), 2),
    ("LU, n = 1024", partial(timed, linalg.lu, 1024), 0.06),
    ("Cholesky, n = 256", partial(timed, np.linalg.cholesky, 256, True), 4),
    ("triangular system, n = 256", partial(timed, lambda x: linalg.solve_triangular(x, x[0]), 256), 20),
    ("QR, n = 128", partial(timed, np.linalg.qr, 128), 1.5),
    ("eigenvalues and vectors, n = 64", partial(timed, np.linalg.eigh, 64, True), 0.3),
)
DRAWN = Row("LU, n = 256, stochastic", partial(timed, linalg.lu, 256, **STOCHASTIC), "ms", CASES[0][0], 0.25)
BENCHMARK = Benchmark(
    "linear",
    {"Linear algebra in half": (*(Row(name, work, "ms", LOOP, goal) for name, work, goal in CASES), DRAWN)},
    {LOOP: of_numpy},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
