"""Speed on an NVIDIA GPU, beside PyTorch's own arithmetic there, all in one process.

    python benchmarks/gpu.py [--size 4096] [--quick]

Needs the extra `cuda` and a PyTorch that finds the GPU. It prints the chip, and rates: elements, and multiply-adds of square matrices,
in thousand millions a second; of products the share of what the chip's float32 units do at most. A rate is that of the fastest of a
few calls, timed on the GPU. (Were the file called cuda.py, Python would take it for NVIDIA's package of that name.)
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import amp, fma, mul_add, tensor_core
from softfloat.cuda import is_available
from softfloat.formats import check_format

ELEMENTS = 1 << 28
STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 1}
TOGETHER: dict[str, Any] = {"flags": "any"}
LONG = 0.5  # seconds of a call from which two are enough
LANES = {(8, 6): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128, (12, 0): 128}
"""Float32 units of a multiprocessor, by compute capability; 64 otherwise."""


class Chip(NamedTuple):
    """A GPU, and the multiply-adds of float32 that it does in a second at most."""

    name: str
    peak: float


def chip() -> Chip:
    found = torch.cuda.get_device_properties(0)
    mhz = torch.cuda.clock_rate() if hasattr(torch.cuda, "clock_rate") else 0
    try:
        import subprocess

        asked = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
        mhz = int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0])
    except (OSError, subprocess.CalledProcessError, ValueError):
        pass
    lanes = LANES.get((found.major, found.minor), 64)
    name = f"{found.name}, {found.multi_processor_count} multiprocessors at {mhz} MHz"
    return Chip(name, found.multi_processor_count * lanes * mhz * 1e6)


def seconds(call: Callable[[], Any], tries: int) -> float:
    """Of the fastest call."""
    call()
    best = float("inf")
    for _ in range(tries):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(stop) / 1000)
        if best > LONG:
            break
    return best


def codes(fmt: str, shape: Any, seed: int) -> Any:
    """Codes of normally distributed numbers, as a tensor on the GPU."""
    generator = torch.Generator("cuda").manual_seed(seed)
    numbers = torch.randn(shape, generator=generator, device="cuda")
    return bits.encode(numbers, fmt, flags="any")[0]


def elementwise() -> Iterator[tuple[str, Callable[[], Any], float]]:
    half = [codes("float16", ELEMENTS, seed) for seed in range(3)]
    brief = [codes("bfloat16", ELEMENTS, seed) for seed in range(2)]
    numbers = torch.randn(ELEMENTS, device="cuda")
    yield "half mul", partial(bits.mul, *half[:2], "float16", **TOGETHER), ELEMENTS
    yield "half mul, flags of each", partial(bits.mul, *half[:2], "float16"), ELEMENTS
    yield "half fma", partial(bits.fma, *half, "float16", **TOGETHER), ELEMENTS
    yield "half div", partial(bits.div, *half[:2], "float16", **TOGETHER), ELEMENTS
    yield "half mul, stochastic", partial(bits.mul, *half[:2], "float16", **TOGETHER, **STOCHASTIC), ELEMENTS
    yield "bfloat16 add", partial(bits.add, *brief, "bfloat16", **TOGETHER), ELEMENTS
    yield "float32 to e4m3", partial(bits.encode, numbers, "float8_e4m3fn", **TOGETHER), ELEMENTS
    yield "float32 to bfloat16", partial(bits.encode, numbers, "bfloat16", **TOGETHER), ELEMENTS
    yield (
        "float32 to bfloat16, stochastic",
        partial(bits.encode, numbers, "bfloat16", **TOGETHER, **STOCHASTIC),
        ELEMENTS,
    )
    yield "PyTorch: half mul", lambda: torch.mul(half[0].view(torch.half), half[1].view(torch.half)), ELEMENTS


def products(size: int) -> Iterator[tuple[str, Callable[[], Any], float]]:
    cases: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("half fma", "float16", fma("float16"), TOGETHER),
        ("half fma, flags of each", "float16", fma("float16"), {}),
        ("half mul_add", "float16", mul_add("float16"), TOGETHER),
        ("e4m3 fma, to half", "float8_e4m3fn", fma("float16"), TOGETHER),
        ("bfloat16 fma", "bfloat16", fma("bfloat16"), TOGETHER),
        ("half fma, to float32", "float16", fma("float32"), TOGETHER),
        ("half fma, toward zero", "float16", fma("float16"), {**TOGETHER, "rounding": "toward_zero"}),
        ("half fma, stochastic", "float16", fma("float16"), {**TOGETHER, **STOCHASTIC}),
        ("half mul_add, stochastic", "float16", mul_add("float16"), {**TOGETHER, **STOCHASTIC}),
        ("half fma, counted", "float16", fma("float16"), {"count": True}),
        ("e5m2 fma", "float8_e5m2", fma("float8_e5m2"), TOGETHER),
        ("half amp", "float16", amp("float16"), TOGETHER),
        ("half amp, stochastic", "float16", amp("float16"), {**TOGETHER, **STOCHASTIC}),
        ("half, H100's tensor cores", "float16", tensor_core("H100", "float16"), TOGETHER),
        ("half, V100's tensor cores", "float16", tensor_core("V100", "float16"), TOGETHER),
        ("e4m3, H100's tensor cores", "float8_e4m3fn", tensor_core("H100", "float8_e4m3fn"), TOGETHER),
    ]
    for name, fmt, how, options in cases:
        a, b = (codes(fmt, (size, size), seed) for seed in range(2))
        yield name, partial(bits.matmul, a, b, fmt, how, **options), float(size) ** 3
    single = [torch.randn(size, size, device="cuda") for _ in range(2)]
    half = [x.half() for x in single]
    torch.backends.cuda.matmul.allow_tf32 = False
    yield "PyTorch: mm in float32", lambda: torch.mm(*single), float(size) ** 3
    yield "PyTorch: mm in half (tensor cores)", lambda: torch.mm(*half), float(size) ** 3
    steps = min(size, 256)
    yield "PyTorch: a loop over k in half, c + a*b", partial(loop, *half, steps, False), float(size) ** 2 * steps
    yield "PyTorch: the same by addcmul_", partial(loop, *half, steps, True), float(size) ** 2 * steps


def loop(a: Any, b: Any, steps: int, in_place: bool) -> Any:
    """Each step rounded by PyTorch's own half: what users write who want that."""
    c = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype, device="cuda")
    for k in range(steps):
        c = c.addcmul_(a[:, k : k + 1], b[k : k + 1]) if in_place else c + a[:, k : k + 1] * b[k : k + 1]
    return c


def overhead() -> None:
    """What a call takes on the CPU until the GPU has its work."""
    x = torch.zeros(1, dtype=torch.uint16, device="cuda")
    calls = 200
    for _ in range(2):
        start = time.perf_counter()
        for _ in range(calls):
            bits.mul(x, x, "float16")
    print(f"a call: {(time.perf_counter() - start) / calls * 1e6:.0f} µs on the CPU")


def checked() -> None:
    """A few codes against the CPU's, so that no figure is one of wrong bits."""
    fmt = check_format("float16")
    x, y = (np.random.default_rng(seed).integers(0, 1 << 16, (64, 64), dtype=fmt.dtype) for seed in range(2))
    a, b = (torch.from_numpy(v).cuda() for v in (x, y))
    for options in ({}, STOCHASTIC):
        for found, wanted in (
            (bits.mul(a, b, fmt, **options), bits.mul(x, y, fmt, **options)),
            (bits.matmul(a, b, fmt, fma(fmt), **options), bits.matmul(x, y, fmt, fma(fmt), **options)),
        ):
            for got, want in zip(found, wanted, strict=True):
                assert np.array_equal(got.cpu().numpy(), want), "bits differ"
    print("64 x 64 halves: mul and matmul agree with the CPU, codes and flags, nearest and stochastic")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=4096, help="rows, columns and length of the products")
    parser.add_argument("--quick", action="store_true", help="products of a quarter of that, each called twice")
    options = parser.parse_args()
    if not is_available() or not torch.cuda.is_available():
        sys.exit("no GPU: needs an NVIDIA GPU, pip install 'numba-softfloat[cuda]' and a PyTorch built for CUDA")
    begun, (name, peak) = time.perf_counter(), chip()
    size, tries = (options.size // 4, 2) if options.quick else (options.size, 3)
    print(f"{name}: {peak / 1e9:.0f} G float32 multiply-adds/s at most; PyTorch {torch.__version__}")
    checked()
    overhead()
    for title, rows, whole in (("elementwise", elementwise(), None), (f"products, {size}^3", products(size), peak)):
        print(f"\n{title:42}   G/s" + ("   of float32" if whole else ""))
        for what, call, amount in rows:
            rate = amount / seconds(call, tries)
            print(f"{what:42} {rate / 1e9:6.0f}" + (f" {rate / whole:10.1%}" if whole else ""), flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s, compiling included")


if __name__ == "__main__":
    main()
