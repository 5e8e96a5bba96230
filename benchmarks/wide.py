"""Wide formats, of up to 11 exponent bits and 53 bits of precision: their speed beside NumPy's float64, on one core and in one process.

    python benchmarks/wide.py [--only REGEX] [--quick] [--json FILE] [--markdown docs/performance.md]

A share is the rate of a row over the rate of NumPy's own addition of float64, or of its matrix product. All flags are found, OR-ed together.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import ELEMENTS, SIZE, STOCHASTIC, Benchmark, Row, Work

from softfloat import Format, bits, float64
from softfloat.accumulators import Accumulator, chunked, compensated, exact, fma, mul_add, pairwise

ADD, DGEMM = "float64 add of NumPy", "dgemm"
SHORTER = Format("e11m40", 11, 40)


def normal(shape: int | tuple[int, int] = ELEMENTS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def added() -> Work:
    x, y = normal(), normal(seed=1)
    out = np.empty_like(x)
    return Work(lambda: np.add(x, y, out=out), ELEMENTS)


def dgemm() -> Work:
    a, b = normal((SIZE, SIZE)), normal((SIZE, SIZE), 1)
    out = np.empty_like(a)
    return Work(lambda: np.matmul(a, b, out=out), SIZE**3)


def computed(name: str, arity: int, fmt: Format, infinite: bool = False, **options: Any) -> Work:
    """An operation of so many operands; 1 % of the numbers of the first are `infinite`."""
    numbers = [np.abs(normal(seed=seed)) if arity == 1 else normal(seed=seed) for seed in range(arity)]
    if infinite:
        numbers[0][np.random.default_rng(3).integers(0, ELEMENTS, ELEMENTS // 100)] = np.inf
    operands = [bits.encode(x, fmt)[0] for x in numbers]
    out = np.empty_like(operands[0])
    return Work(lambda: getattr(bits, name)(*operands, fmt, out=out, flags="any", **options), ELEMENTS)


def product(how: Accumulator, size: int, **options: Any) -> Work:
    a, b = (normal((size, size), seed).view(np.uint64) for seed in range(2))
    return Work(lambda: bits.matmul(a, b, float64, how, flags="any", **options), size**3)


def dots(how: Accumulator, **options: Any) -> Work:
    a, b = (normal((OUTPUTS, SMALLER), seed).view(np.uint64) for seed in range(2))
    return Work(lambda: bits.vecdot(a, b, float64, how, flags="any", **options), a.size)


WAYS: dict[str, tuple[dict[str, Any], float]] = {
    "nearest even": ({}, 0.2),
    "toward positive": ({"rounding": "toward_positive"}, 0.13),
    "stochastic": (STOCHASTIC, 0.06),
}
ARITY = {"add": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3}
FUSED = 0.06
"""Of fma, whose error takes some twenty operations."""
SMALLER, OUTPUTS = 128, 1024
BENCHMARK = Benchmark(
    "wide",
    {
        "2²⁰ normally distributed numbers of wide formats": tuple(
            Row(
                f"{name} of {fmt.name}, {way}",
                partial(computed, name, arity, fmt, **options),
                "M/s",
                ADD,
                FUSED if name == "fma" else goal,
            )
            for fmt in (float64, SHORTER)
            for name, arity in ARITY.items()
            for way, (options, goal) in WAYS.items()
        ),
        "The same, 1 % of them infinite": tuple(
            Row(
                f"{name} of float64, nearest even, 1 % infinite",
                partial(computed, name, arity, float64, True),
                "M/s",
                f"{name} of float64, nearest even",
                0.33,
            )
            for name, arity in ARITY.items()
        ),
        f"Matrix products of float64, {SIZE}³": (
            Row("fma, nearest even", partial(product, fma(float64), SIZE), "G/s", DGEMM, 0.5),
            Row("mul_add, nearest even", partial(product, mul_add(float64), SIZE), "G/s", DGEMM, 0.2),
        ),
        f"Matrix products of float64, {SMALLER}³": (
            Row("pairwise, nearest even", partial(product, pairwise(float64), SMALLER), "M/s", DGEMM),
            Row("Kahan, nearest even", partial(product, compensated(float64), SMALLER), "M/s", DGEMM),
            Row("exact, nearest even", partial(product, exact(float64), SMALLER), "M/s", DGEMM),
            Row(
                "fma, toward zero",
                partial(product, fma(float64), SMALLER, rounding="toward_zero"),
                "M/s",
                DGEMM,
            ),
            Row("fma, stochastic", partial(product, fma(float64), SMALLER, **STOCHASTIC), "M/s", DGEMM, 0.005),
            Row("pairwise, stochastic", partial(product, pairwise(float64), SMALLER, **STOCHASTIC), "M/s", DGEMM),
            *(
                Row(f"fma in {SHORTER.name}, {way}", partial(product, fma(SHORTER), SMALLER, **options), "M/s", DGEMM)
                for way, (options, _) in WAYS.items()
            ),
        ),
        f"{OUTPUTS} dot products of {SMALLER} numbers of float64": tuple(
            Row(f"{name} of lines, {way}", partial(dots, how, **options), "M/s", DGEMM)
            for name, how in {"fma": fma(float64), "chunked by 16": chunked(16, float64, float64)}.items()
            for way, (options, _) in WAYS.items()
        ),
    },
    {ADD: added, DGEMM: dgemm},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
