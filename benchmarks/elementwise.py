"""Elementwise speed beside memcpy and beside other libraries, all in one process.

    python benchmarks/elementwise.py [--size 20] [--rounds 30] [--operands normal|bits] [--json FILE]

A rate is elements per second of the fastest of many rounds, taken in turn, so that a noisy neighbour disturbs all
alike. The share is that rate over the rate at which NumPy copies float32. `each` makes a flag byte per element, `any`
ORs all flags together; other libraries make no flags, but for SoftFloat. `floor` is what the share is meant to reach.
Libraries that are not installed are left out. With --threads, plain copies by two threads say what memory allows.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

import softfloat
from softfloat import bits
from softfloat.engine.threads import share


@dataclass
class Case:
    name: str
    library: str
    run: Callable[[], Any]
    floor: float | None = None
    elements: int = 0
    best: float = float("inf")

    def take(self) -> None:
        """A few calls in a row, so that each case finds its own operands in the cache, whatever ran before."""
        for _ in range(4):
            start = time.perf_counter()
            self.run()
            self.best = min(self.best, time.perf_counter() - start)

    @property
    def rate(self) -> float:
        return self.elements / self.best / 1e9


def both_flags(
    flags: np.ndarray,
    name: str,
    floor: float | None,
    call: Callable[..., Any],
    *args: Any,
    out: np.ndarray,
    any_floor: float | None = None,
    **options: Any,
) -> list[Case]:
    """A call with a flag byte for each element, and with all flags OR-ed together."""
    return [
        Case(
            name,
            f"softfloat, flags {which}",
            lambda w=which, p=place: call(*args, out=p, flags=w, **options),
            share,
        )
        for which, place, share in (("each", (out, flags), floor), ("any", out, any_floor or floor))
    ]


def report(found: list[Case], rounds: int, title: str) -> list[dict[str, Any]]:
    """Take all cases in turn, print a line for each, and return the figures; the first case is memcpy."""
    for _ in range(rounds):
        for case in found:
            case.take()
    memcpy = found[0].rate
    rows = []
    print(title)
    print(f"{'operation':<38}{'library':<30}{'G/s':>8}{'share':>8}{'floor':>8}")
    for case in sorted(found, key=lambda case: case is not found[0]):
        share = case.rate / memcpy
        floor = "" if case.floor is None else f"{case.floor:.2f}" + (" " if share >= case.floor else "!")
        print(f"{case.name:<38}{case.library:<30}{case.rate:>8.3f}{share:>8.3f}{floor:>8}")
        rows.append({**{k: v for k, v in vars(case).items() if k != "run"}, "rate": case.rate, "share": share})
    return rows


def optional(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        return None


def operands(size: int, kind: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """float32 numbers, and three arrays of half codes."""
    random = np.random.default_rng(0)
    if kind == "bits":
        x = random.integers(0, 2**32, size, dtype=np.uint32).view(np.float32)
        return x, [random.integers(0, 2**16, size, dtype=np.uint16) for _ in range(3)]
    x = random.standard_normal(size).astype(np.float32)
    return x, [random.standard_normal(size).astype(np.float16).view(np.uint16) for _ in range(3)]


def cases(size: int, kind: str) -> list[Case]:
    x, (a, b, c) = operands(size, kind)
    half, flags, brain, byte = (
        np.empty(size, np.uint16),
        np.empty(size, np.uint8),
        np.empty(size, np.uint16),
        np.empty(size, np.uint8),
    )
    brain_a, brain_b, brain_c = (bits.encode(bits.decode(codes, "float16"), "bfloat16")[0] for codes in (a, b, c))
    other = softfloat.Format("e6m9", exponent_bits=6, mantissa_bits=9)
    other_a, other_b = (bits.encode(bits.decode(codes, "float16"), other)[0] for codes in (a, b))
    byte_a, byte_b = (bits.encode(bits.decode(codes, "float16"), "float8_e4m3fn")[0] for codes in (a, b))
    copy = np.empty_like(x)
    found = [Case("memcpy float32", "numpy", lambda: np.copyto(copy, x))]

    def ours(*arguments: Any, **options: Any) -> None:
        found.extend(both_flags(flags, *arguments, **options))

    def theirs(name: str, library: str, run: Callable[[], Any]) -> None:
        found.append(Case(name, library, run))

    stochastic = {"rounding": "stochastic", "seed": 1}
    ours("float32 -> float16", 0.32, bits.encode, x, "float16", out=half, any_floor=0.5)
    ours("float32 -> bfloat16", 0.3, bits.encode, x, "bfloat16", out=brain, any_floor=0.5)
    ours("float32 -> float8_e4m3fn", 0.15, bits.encode, x, "float8_e4m3fn", out=byte)
    ours("float32 -> float16, stochastic", 0.15, bits.encode, x, "float16", out=half, **stochastic)
    ours("float32 -> bfloat16, stochastic", 0.15, bits.encode, x, "bfloat16", out=brain, **stochastic)
    ours("float32 -> float8_e4m3fn, stochastic", None, bits.encode, x, "float8_e4m3fn", out=byte, **stochastic)
    ours("float32 -> float16, toward zero", 0.2, bits.encode, x, "float16", out=half, rounding="toward_zero")
    ours("half add", 0.22, bits.add, a, b, "float16", out=half)
    ours("half mul", None, bits.mul, a, b, "float16", out=half)
    ours("half div", 0.08, bits.div, a, b, "float16", out=half)
    ours("half fma", 0.08, bits.fma, a, b, c, "float16", out=half)
    ours("half sqrt", None, bits.sqrt, a, "float16", out=half)
    ours("half add, toward zero", 0.12, bits.add, a, b, "float16", out=half, rounding="toward_zero")
    ours("half add, down", 0.12, bits.add, a, b, "float16", out=half, rounding="toward_negative")
    ours("half add, to odd", 0.12, bits.add, a, b, "float16", out=half, rounding="to_odd")
    ours("half add, stochastic", 0.05, bits.add, a, b, "float16", out=half, **stochastic)
    ours("bfloat16 add", 0.1, bits.add, brain_a, brain_b, "bfloat16", out=brain)
    ours("bfloat16 mul", 0.1, bits.mul, brain_a, brain_b, "bfloat16", out=brain)
    ours("bfloat16 fma", None, bits.fma, brain_a, brain_b, brain_c, "bfloat16", out=brain)
    ours("e6m9 add", 0.1, bits.add, other_a, other_b, other, out=half)
    ours("e6m9 mul", 0.1, bits.mul, other_a, other_b, other, out=half)
    ours("float8_e4m3fn add", 0.15, bits.add, byte_a, byte_b, "float8_e4m3fn", out=byte)
    ours("float8_e4m3fn div", 0.15, bits.div, byte_a, byte_b, "float8_e4m3fn", out=byte)

    half_a, half_b, half_out = a.view(np.float16), b.view(np.float16), half.view(np.float16)
    theirs("float32 -> float16", "numpy", lambda: np.copyto(half_out, x, casting="unsafe"))
    theirs("half add", "numpy", lambda: np.add(half_a, half_b, out=half_out))
    ml_dtypes = optional("ml_dtypes")
    if ml_dtypes:
        for name, dtype in (("bfloat16", ml_dtypes.bfloat16), ("float8_e4m3fn", ml_dtypes.float8_e4m3fn)):
            theirs(f"float32 -> {name}", "ml_dtypes", lambda d=dtype: x.astype(d))
    torch = optional("torch")
    if torch:
        torch.set_num_threads(1)
        tensor, half_t, half_u = torch.from_numpy(x), torch.from_numpy(half_a), torch.from_numpy(half_b)
        for name, dtype in (
            ("float16", torch.float16),
            ("bfloat16", torch.bfloat16),
            ("float8_e4m3fn", torch.float8_e4m3fn),
        ):
            place = torch.empty(size, dtype=dtype)
            theirs(f"float32 -> {name}", "torch", lambda p=place: p.copy_(tensor))
        half_sum = torch.empty_like(half_t)
        theirs("half add", "torch", lambda: torch.add(half_t, half_u, out=half_sum))
    jax = optional("jax")
    if jax:
        array = jax.numpy.asarray(x)
        for name in ("float16", "bfloat16", "float8_e4m3fn"):
            cast = jax.jit(lambda v, n=name: v.astype(n))
            theirs(f"float32 -> {name}", "jax", lambda f=cast: f(array).block_until_ready())
    softfloatpy = optional("softfloatpy")
    if softfloatpy:
        pairs = [
            (
                softfloatpy.Float16.from_bytes(int(p).to_bytes(2, "big")),
                softfloatpy.Float16.from_bytes(int(q).to_bytes(2, "big")),
            )
            for p, q in zip(a[:2000], b[:2000], strict=True)
        ]
        few = Case("half add", "softfloatpy (one at a time)", lambda: [softfloatpy.f16_add(p, q) for p, q in pairs])
        few.elements = len(pairs)
        found.append(few)
    for case in found:
        case.elements = case.elements or size
    return found


def threads(log2_size: int, rounds: int) -> list[tuple[str, float]]:
    """Speed of two threads over one."""
    x, (a, b, _) = operands(1 << log2_size, "normal")
    half, flags, copy = np.empty(x.size, np.uint16), np.empty(x.size, np.uint8), np.empty_like(x)

    def copied(start: int, stop: int) -> int:
        copy[start:stop] = x[start:stop]
        return 0

    jobs = {
        "copy of float32": lambda: share(x.size, copied),
        "float32 -> float16": lambda: bits.encode(x, "float16", out=(half, flags)),
        "float32 -> float16, stochastic": lambda: bits.encode(
            x, "float16", out=(half, flags), rounding="stochastic", seed=1
        ),
        "half add": lambda: bits.add(a, b, "float16", out=(half, flags)),
        "half div": lambda: bits.div(a, b, "float16", out=(half, flags)),
        "bfloat16 add": lambda: bits.add(a, b, "bfloat16", out=(half, flags)),
    }
    result = []
    for name, job in jobs.items():
        pair = [Case(name, str(count), job, elements=1) for count in (1, 2)]
        for _ in range(rounds):
            for count, case in enumerate(pair, 1):
                softfloat.set_num_threads(count)
                case.take()
        result.append((name, pair[0].best / pair[1].best))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20, help="log2 of the number of elements (default 20)")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--operands",
        choices=("normal", "bits"),
        default="normal",
        help="normally distributed numbers, or random bit patterns",
    )
    parser.add_argument("--threads", action="store_true", help="also compare two threads with one, at 2^24 elements")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    softfloat.set_num_threads(1)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{binding.get_host_cpu_name()}{load}")
    title = f"2^{arguments.size} elements, operands: {arguments.operands}, one thread"
    rows = report(cases(1 << arguments.size, arguments.operands), arguments.rounds, title)
    scaling = threads(24, max(3, arguments.rounds // 4)) if arguments.threads else []
    for name, ratio in scaling:
        print(f"two threads over one, 2^24, {name}: {ratio:.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "threads": dict(scaling)}, indent=1))


if __name__ == "__main__":
    main()
