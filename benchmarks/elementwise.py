"""Elementwise speed beside memcpy and beside other libraries, all in one process.

    python benchmarks/elementwise.py [--only REGEX] [--quick] [--plain] [--threads] [--json FILE] [--markdown PAGE]

A rate is elements per second of 2^20. The share is that rate over the rate at which NumPy copies float32. `each` makes a
flag byte per element, `any` ORs all flags together; other libraries make no flags, but for SoftFloat. Libraries that are
not installed are named, and left out. `--threads` compares two threads with one, at 2^24 elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import (
    ELEMENTS,
    STOCHASTIC,
    Benchmark,
    Missing,
    Row,
    Work,
    both_flags,
    codes,
    converted,
    elementwise_work,
    memcpy,
    normal,
    optional,
)

from softfloat import bits

ZERO = {"rounding": "toward_zero"}


def random_bits(dtype: type, seed: int) -> np.ndarray:
    """Every code as often as any other."""
    return np.random.default_rng(seed).integers(0, 2 ** (8 * np.dtype(dtype).itemsize), ELEMENTS, dtype=dtype)


def any_bits(function: Callable[..., Any], count: int, fmt: str, flags: str, **options: Any) -> Work:
    """An operation on random bit patterns."""
    return elementwise_work(
        function, [random_bits(np.uint16, seed) for seed in range(count)], fmt, flags=flags, **options
    )


def any_float32(fmt: str, flags: str, **options: Any) -> Work:
    return elementwise_work(bits.encode, [random_bits(np.uint32, 0).view(np.float32)], fmt, flags=flags, **options)


def operation(function: Callable[..., Any], count: int, fmt: str, **options: Any) -> Work:
    """An operation on normally distributed numbers."""
    return elementwise_work(function, [codes(fmt, ELEMENTS, seed=seed) for seed in range(count)], fmt, **options)


def module(name: str) -> Any:
    """A library that may not be installed."""
    found = optional(name)
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def numpy_cast() -> Work:
    x, out = normal(ELEMENTS), np.empty(ELEMENTS, np.float16)
    return Work(lambda: np.copyto(out, x, casting="unsafe"), ELEMENTS)


def halves() -> tuple[np.ndarray, np.ndarray]:
    return codes("float16", ELEMENTS).view(np.float16), codes("float16", ELEMENTS, seed=1).view(np.float16)


def numpy_add() -> Work:
    x, y = halves()
    out = np.empty_like(x)
    return Work(lambda: np.add(x, y, out=out), ELEMENTS)


def ml_dtypes_cast(name: str) -> Work:
    x, dtype = normal(ELEMENTS), getattr(module("ml_dtypes"), name)
    return Work(lambda: x.astype(dtype), ELEMENTS)


def torch_cast(name: str) -> Work:
    torch = module("torch")
    torch.set_num_threads(1)
    x, out = torch.from_numpy(normal(ELEMENTS)), torch.empty(ELEMENTS, dtype=getattr(torch, name))
    return Work(lambda: out.copy_(x), ELEMENTS)


def torch_add() -> Work:
    torch = module("torch")
    torch.set_num_threads(1)
    x, y = map(torch.from_numpy, halves())
    out = torch.empty_like(x)
    return Work(lambda: torch.add(x, y, out=out), ELEMENTS)


def jax_cast(name: str) -> Work:
    jax = module("jax")
    x, cast = jax.numpy.asarray(normal(ELEMENTS)), jax.jit(lambda v: v.astype(name))
    return Work(lambda: cast(x).block_until_ready(), ELEMENTS)


def softfloatpy_add(count: int = 2000) -> Work:
    """Berkeley SoftFloat, one at a time."""
    library = module("softfloatpy")
    x, y = (
        [library.Float16.from_bytes(int(c).to_bytes(2, "big")) for c in codes("float16", ELEMENTS, seed=seed)[:count]]
        for seed in range(2)
    )
    return Work(lambda: [library.f16_add(p, q) for p, q in zip(x, y, strict=True)], count)


def ours(
    name: str, prepare: Callable[..., Work], each: float | None = None, any_: float | None = None
) -> tuple[Row, ...]:
    return both_flags(name, prepare, "memcpy", each, any_)


NAMES = ("float16", "bfloat16", "float8_e4m3fn")
SCALING: dict[str, tuple[str, dict[str, Any]]] = {
    "float32 → float16": ("float16", {}),
    "float32 → float16, stochastic": ("float16", STOCHASTIC),
}
BENCHMARK = Benchmark(
    "elementwise",
    {
        "Conversions of 2²⁰ normally distributed numbers": (
            *ours("float32 → float16", partial(converted, "float16"), 0.3, 0.5),
            *ours("float32 → bfloat16", partial(converted, "bfloat16"), 0.3, 0.5),
            *ours("float32 → float8_e4m3fn", partial(converted, "float8_e4m3fn"), 0.15, 0.15),
            *ours("float32 → float16, stochastic", partial(converted, "float16", **STOCHASTIC), 0.15, 0.15),
            *ours("float32 → bfloat16, stochastic", partial(converted, "bfloat16", **STOCHASTIC), 0.15, 0.15),
            *ours("float32 → float8_e4m3fn, stochastic", partial(converted, "float8_e4m3fn", **STOCHASTIC)),
            *ours("float32 → float16, toward zero", partial(converted, "float16", **ZERO)),
            Row("float32 → float16, NumPy", numpy_cast, "G/s", "memcpy"),
            *(
                Row(f"float32 → {name}, ml_dtypes", partial(ml_dtypes_cast, name), "G/s", "memcpy")
                for name in NAMES[1:]
            ),
            *(Row(f"float32 → {name}, torch", partial(torch_cast, name), "G/s", "memcpy") for name in NAMES),
            *(Row(f"float32 → {name}, jax", partial(jax_cast, name), "G/s", "memcpy") for name in NAMES),
        ),
        "Operations on 2²⁰ normally distributed numbers": (
            *ours("half add", partial(operation, bits.add, 2, "float16"), 0.2, 0.2),
            *ours("half mul", partial(operation, bits.mul, 2, "float16")),
            *ours("half div", partial(operation, bits.div, 2, "float16"), 0.08, 0.08),
            *ours("half fma", partial(operation, bits.fma, 3, "float16"), 0.08, 0.08),
            *ours("half sqrt", partial(operation, bits.sqrt, 1, "float16")),
            *ours("half add, toward zero", partial(operation, bits.add, 2, "float16", **ZERO)),
            *ours("half add, stochastic", partial(operation, bits.add, 2, "float16", **STOCHASTIC)),
            *ours("bfloat16 add", partial(operation, bits.add, 2, "bfloat16")),
            *ours("bfloat16 fma", partial(operation, bits.fma, 3, "bfloat16")),
            Row("half add, NumPy", numpy_add, "G/s", "memcpy"),
            Row("half add, torch", torch_add, "G/s", "memcpy"),
            Row("half add, softfloatpy", softfloatpy_add, "G/s", "memcpy"),
        ),
        "2²⁰ random bit patterns": (
            *ours("any float32 → float16", partial(any_float32, "float16")),
            *ours("any float32 → bfloat16", partial(any_float32, "bfloat16")),
            *ours("any halves, add", partial(any_bits, bits.add, 2, "float16")),
            *ours("any halves, div", partial(any_bits, bits.div, 2, "float16")),
            *ours("any halves, fma", partial(any_bits, bits.fma, 3, "float16")),
        ),
        "Two threads, 2²⁴ elements": tuple(
            Row(
                f"{name}, two threads",
                partial(converted, fmt, 1 << 24, 2, **options),
                "G/s",
                f"{name}, one thread",
                None,
                "--threads",
            )
            for name, (fmt, options) in SCALING.items()
        ),
    },
    {"memcpy": memcpy}
    | {f"{name}, one thread": partial(converted, fmt, 1 << 24, **options) for name, (fmt, options) in SCALING.items()},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
