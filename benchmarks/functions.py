"""Mathematical functions beside memcpy and NumPy, all in one process.

    python benchmarks/functions.py [--only REGEX] [--quick] [--plain] [--tables] [--json FILE] [--markdown PAGE]

A rate is elements per second of 2^20, with a flag byte for each; the share is that over the rate at which NumPy copies
float32. `--tables` also shows how long functions of half and bfloat16 take to make their tables, on first use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import ELEMENTS, STOCHASTIC, Benchmark, Row, Work, elementwise_work, memcpy, normal

from softfloat import bits

MODES: dict[str, dict[str, Any]] = {"": {}, ", stochastic": STOCHASTIC}
POWERS = {"2": 2.0, "0.5": 0.5, "-1": -1.0}


def operands(fmt: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, others of a wider spread, and the first without their signs."""
    x, y = bits.encode(normal(ELEMENTS), fmt)[0], bits.encode(3 * normal(ELEMENTS, seed=1), fmt)[0]
    return x, y, bits.abs(x, fmt)


def unary(name: str, fmt: str, **options: Any) -> Work:
    return elementwise_work(getattr(bits, name), operands(fmt)[2:], fmt, **options)


def binary(name: str, fmt: str) -> Work:
    return elementwise_work(getattr(bits, name), operands(fmt)[:2], fmt)


def power(fmt: str, exponent: float | None = None, **options: Any) -> Work:
    """pow of positive numbers; one exponent, or one for each."""
    _, second, positive = operands(fmt)
    if exponent is not None:
        second = bits.encode(exponent, fmt)[0]
    return elementwise_work(bits.pow, [positive, second], fmt, **options)


def numpy_function(function: Callable[..., Any], dtype: Any, wider: bool = False) -> Work:
    x = np.abs(normal(ELEMENTS)).astype(dtype)
    more = [(3 * normal(ELEMENTS, seed=1)).astype(dtype)] if wider else []
    out = np.empty_like(x)
    return Work(lambda: function(x, *more, out=out), ELEMENTS)


def making(name: str, fmt: str) -> Work:
    """A table's first use, after the loops are compiled and mpmath is imported."""

    def run() -> float:
        bits.exp2(0, "float8_e5m2")
        start = time.perf_counter()
        getattr(bits, name)(np.zeros(1, np.uint16), fmt)
        return time.perf_counter() - start

    return Work(run, measured=True)


def ours(fmt: str) -> Iterator[Row]:
    for name in ("exp", "log", "sin", "tanh"):
        for mode, options in MODES.items():
            goal = 0.05 if fmt != "float32" and not mode else None  # a table's
            yield Row(f"{fmt} {name}{mode}", partial(unary, name, fmt, **options), "M/s", "memcpy", goal)
    for mode, options in MODES.items():
        yield Row(f"{fmt} pow{mode}", partial(power, fmt, **options), "M/s", "memcpy")
    for text, exponent in POWERS.items():
        yield Row(f"{fmt} pow {text}", partial(power, fmt, exponent), "M/s", "memcpy")
    for name in ("hypot", "atan2", "logaddexp", "floor_divide", "modulo"):
        yield Row(f"{fmt} {name}", partial(binary, name, fmt), "M/s", "memcpy")


def theirs() -> Iterator[Row]:
    for dtype in (np.float16, np.float32):
        name = np.dtype(dtype).name
        for function in (np.exp, np.log, np.sin, np.tanh):
            yield Row(f"NumPy {name} {function.__name__}", partial(numpy_function, function, dtype), "M/s", "memcpy")
        yield Row(f"NumPy {name} pow", partial(numpy_function, np.power, dtype, True), "M/s", "memcpy")


BENCHMARK = Benchmark(
    "functions",
    {
        "Making of tables": tuple(  # first, before anything else has made them
            Row(f"table of {fmt} {name}", partial(making, name, fmt), "ms", needs="--tables")
            for fmt in ("float16", "bfloat16")
            for name in ("exp", "tanh", "cbrt")
        )
    }
    | {f"Functions of {fmt}": tuple(ours(fmt)) for fmt in ("float16", "bfloat16", "float32")}
    | {"NumPy's own functions, without flags": tuple(theirs())},
    {"memcpy": memcpy},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
