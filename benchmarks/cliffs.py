"""One step beside the main roads: what it costs, beside what it is meant to cost, all on one core and in one process.

    python benchmarks/cliffs.py [--only REGEX] [--quick] [--first-calls] [--json FILE] [--markdown docs/performance.md]

Each row of `ROWS` is a call, the unit of its figure, what it is a share of, and its goal. The share is the row's rate over
that of its yardstick, which is timed in turn with it; a row without a yardstick has its goal in its own unit. The last
column says whether the goal is reached. All flags are computed: a byte for each output. `--first-calls` times first calls
with an empty cache of compiled code, each in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import (
    ELEMENTS,
    SIZE,
    STOCHASTIC,
    Benchmark,
    Missing,
    Row,
    Work,
    codes,
    converted,
    elementwise_work,
    memcpy,
    optional,
    product,
    sgemm,
)

import softfloat
from softfloat import bits, reference
from softfloat.accumulators import (
    Accumulator,
    Reduction,
    Stage,
    amd_mfma,
    amp,
    chunked,
    compensated,
    exact,
    fixed_point,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.analysis import trace
from softfloat.environments import WATCHES

HALF, SINGLE = fma("float16"), fma("float32")
CHAINS, CHAINS_NAME = HALF.replace(chains=4), "four chains of fma half"
KAHAN, REGISTER, PAIRS = compensated("float16"), fixed_point(32, -16), amd_mfma("CDNA2", "float16")
CHUNKED, CHUNKED_NAME = chunked(64, "float16", "float32"), "chunked 64, half in float"
SOME = np.random.default_rng(0).random((SIZE, SIZE)) < 0.01
"""1 % of a square operand."""


def vecdot(
    accumulator: Accumulator, rows: int = 4096, length: int = SIZE, special: float | None = None, **options: Any
) -> Work:
    """Dot products of rows; `special`: a number put into one of them."""
    x, y = codes("float16", rows, length), codes("float16", rows, length, seed=1)
    if special is not None:
        x[5, 7] = bits.encode(special, "float16")[0]
    return Work(lambda: bits.vecdot(x, y, "float16", accumulator, **options), rows * length)


def total(function: Callable[..., Any], *shape: int, accumulator: Accumulator = HALF, **options: Any) -> Work:
    """A sum of the last axis."""
    x = codes("float16", *shape)
    return Work(lambda: function(x, "float16", accumulator, len(shape) - 1, **options), x.size)


def folded(function: Callable[..., Any], elements: int = 1 << 14, **options: Any) -> Work:
    x = softfloat.from_codes(codes("float16", elements), "float16")
    return Work(lambda: function(x, **options), elements)


def depthwise(channels: int = 288, height: int = 14, window: int = 5) -> Work:
    x, w = codes("float16", 1, height, height, channels), codes("float16", window, window, 1, channels, seed=1)
    out = height - window + 1
    return Work(lambda: bits.conv2d(x, w, "float16", HALF, groups=channels), out * out * window * window * channels)


def binary(function: Callable[..., Any], fmt: Any, **options: Any) -> Work:
    return elementwise_work(function, [codes(fmt, ELEMENTS, seed=seed) for seed in range(2)], fmt, **options)


def doubles(**options: Any) -> Work:
    """float64 -> half."""
    return elementwise_work(bits.encode, [np.random.default_rng(0).standard_normal(ELEMENTS)], "float16", **options)


def handed() -> Work:
    """Sums of halves rounded by random bits that are handed in, 16 each."""
    random_bits = np.random.default_rng(2).integers(0, 1 << 16, ELEMENTS, np.uint16)
    return binary(bits.add, "float16", rounding="stochastic", random_bits=random_bits)


def few(call: Callable[[Any, Any], object], **settings: Any) -> Work:
    """A call on two arrays of 20; in an environment of its own, if there are settings."""
    x, y = (softfloat.from_codes(codes("float16", 20, seed=seed), "float16") for seed in range(2))
    positive, environment = abs(x), softfloat.Environment(**settings)

    def run() -> None:
        with environment:
            call(positive, y)

    return Work(run if settings else lambda: call(positive, y))


def added(traced: bool = False) -> Work:
    """x + y of 256 halves."""
    x, y = (softfloat.from_codes(codes("float16", 256, seed=seed), "float16") for seed in range(2))

    def run() -> None:
        with trace():
            x + y

    return Work(run if traced else lambda: x + y)


def asked(times: int = 1000) -> Work:
    """What operations do for traces while none is on, and the loop around it."""

    def run() -> None:
        for _ in range(times):
            if WATCHES:
                raise AssertionError

    return Work(run, times)


def scalar(function: Callable[..., object]) -> Work:
    return Work(lambda: function(0x3C00, 0x3555, softfloat.float16))


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """All threads of a library that starts its own in here, and this one, on the same core."""
    if not hasattr(os, "sched_setaffinity"):
        raise Missing("this platform pins no thread to a core")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def jax_scan() -> Work:
    """A half multiplication and a half addition for each k; Missing unless it has the bits of `mul_add`."""
    jax = optional("jax")
    if jax is None:
        raise Missing("jax is not installed")

    def scan(a: Any, b: Any) -> Any:
        start = jax.numpy.zeros((SIZE, SIZE), "float16")
        return jax.lax.scan(lambda c, row: (c + row[0][:, None] * row[1][None], None), start, (a.T, b))[0]

    operands = [codes("float16", SIZE, SIZE, seed=seed) for seed in range(2)]
    with one_core():
        x, y = (jax.numpy.asarray(operand.view(np.float16)) for operand in operands)
        compiled = jax.jit(scan)
        found = np.asarray(compiled(x, y)).view(np.uint16)
    if not np.array_equal(found, bits.matmul(*operands, "float16", mul_add("float16"))[0]):
        raise Missing("this jax rounds otherwise; XLA_FLAGS=--xla_cpu_max_isa=AVX2 may help")

    def run() -> None:
        with one_core():
            compiled(x, y).block_until_ready()

    return Work(run, SIZE**3)


def copied(threads: int, elements: int = 1 << 24) -> Work:
    """NumPy's copy of float32, each thread a part: what memory itself gains."""
    if threads > (os.cpu_count() or 1):
        raise Missing(f"fewer than {threads} cores")
    pool = ThreadPoolExecutor(threads)
    parts = np.array_split(np.arange(elements, dtype=np.float32), threads)
    copies = np.array_split(np.empty(elements, np.float32), threads)
    return Work(lambda: list(pool.map(np.copyto, copies, parts)), elements, threads)


def in_bytes(work: Work, each: int) -> Work:
    """A work counted by the bytes that it reads and writes, so many for each element."""
    return work._replace(amount=work.amount * each)


YARDSTICKS: dict[str, Callable[[], Work]] = {
    "sgemm": sgemm,
    "memcpy": memcpy,
    "a jax scan": jax_scan,
    "one thread": partial(converted, "float16", 1 << 24),
    "one thread's copy": partial(copied, 1),
    "two threads' copy": lambda: in_bytes(copied(2), 8),
}
"""What shares are of, beside other rows."""


def segmented(how: Accumulator) -> Accumulator:
    """Four segments of it, whose sums are added in half."""
    return how.replace(segments=4, reduction=(Reduction(Stage("float16")),))


SEGMENTS = Accumulator(name="segments", running=Stage("float16"), segments=4, reduction=(Reduction(Stage("float16")),))
REDUCTIONS = Accumulator(
    name="reductions",
    running=Stage("float16"),
    segments=16,
    reduction=(Reduction(Stage("float16"), sections=4), Reduction(Stage("float16"))),
)
ODD_HALF = softfloat.Format("e6m9", exponent_bits=6, mantissa_bits=9)

ROWS: dict[str, tuple[Row, ...]] = {
    "Matrix products, 512³ unless another size is named": (
        Row("fma half", partial(product, HALF), "G/s", "sgemm", 0.14),
        # 0.14 of sgemm is what the scan of the row after this one reaches where both can be measured
        Row("mul_add half", partial(product, mul_add("float16")), "G/s", "sgemm", 0.14),
        Row("mul_add half beside jax", partial(product, mul_add("float16")), "G/s", "a jax scan", 1.0),
        Row("fma bfloat16", partial(product, fma("bfloat16"), "bfloat16"), "G/s", "sgemm", 0.14),
        Row("mul_add bfloat16", partial(product, mul_add("bfloat16"), "bfloat16"), "G/s", "sgemm", 0.18),
        Row("amp half", partial(product, amp("half")), "G/s", "sgemm", 0.11),
        Row("amp float", partial(product, amp("float")), "G/s", "sgemm", 0.13),
        Row("amp half, toward zero", partial(product, amp("half"), rounding="toward_zero"), "G/s", "amp half", 0.15),
        Row("amp half, DAZ, FTZ", partial(product, amp("half"), daz=True, ftz=True), "G/s", "amp half", 0.15),
        Row("amp half, stochastic", partial(product, amp("half"), **STOCHASTIC), "G/s", "sgemm", 0.05),
        Row("fma half, stochastic", partial(product, HALF, **STOCHASTIC), "G/s", "sgemm", 0.05),
        Row("mul_add half, stochastic", partial(product, mul_add("float16"), **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row(
            "mul_add half, 4 random bits",
            partial(product, mul_add("float16"), **STOCHASTIC, sr_bits=4),
            "G/s",
            "mul_add half, stochastic",
            0.8,
        ),
        Row("fma half, toward zero", partial(product, HALF, rounding="toward_zero"), "G/s", "fma half", 0.5),
        Row("fma half, ties away", partial(product, HALF, rounding="nearest_away"), "G/s", "fma half", 0.5),
        Row("fma half, up", partial(product, HALF, rounding="toward_positive"), "G/s", "fma half", 0.5),
        Row("fma half, down", partial(product, HALF, rounding="toward_negative"), "G/s", "fma half", 0.5),
        Row("fma half, to odd", partial(product, HALF, rounding="to_odd"), "G/s", "fma half", 0.5),
        Row("fma half, DAZ", partial(product, HALF, daz=True), "G/s", "fma half", 0.5),
        Row("fma half, FTZ", partial(product, HALF, ftz=True), "G/s", "fma half", 0.5),
        Row("fma half, tininess before", partial(product, HALF, tininess="before"), "G/s", "fma half", 0.5),
        Row("fma half, stochastic, DAZ", partial(product, HALF, daz=True, **STOCHASTIC), "G/s", "sgemm", 0.05),
        Row("fma half, stochastic, FTZ", partial(product, HALF, ftz=True, **STOCHASTIC), "G/s", "sgemm", 0.05),
        Row("fma float32 of half, toward zero", partial(product, SINGLE, rounding="toward_zero"), "G/s", "sgemm", 0.14),
        Row("fma float32 of half, to odd", partial(product, SINGLE, rounding="to_odd"), "G/s", "sgemm", 0.14),
        Row("fma float32 of half, ties away", partial(product, SINGLE, rounding="nearest_away"), "G/s", "sgemm", 0.05),
        Row(
            "fma float32, toward zero",
            partial(product, SINGLE, "float32", rounding="toward_zero"),
            "G/s",
            "sgemm",
            0.14,
        ),
        Row("fma float32 of half, stochastic", partial(product, SINGLE, **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row("fma float32, stochastic", partial(product, SINGLE, "float32", **STOCHASTIC), "G/s", "sgemm", 0.01),
        Row("fma half of float32", partial(product, HALF, "float32"), "G/s", "sgemm", 0.05),
        Row("mul_add half of float32", partial(product, mul_add("float16"), "float32"), "G/s", "sgemm", 0.05),
        Row("fma half of float32, stochastic", partial(product, HALF, "float32", **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row(
            "mul_add half of float32, stochastic",
            partial(product, mul_add("float16"), "float32", **STOCHASTIC),
            "G/s",
            "sgemm",
            0.02,
        ),
        Row(
            "fma half of float32, counted",
            partial(product, HALF, "float32", count=True),
            "G/s",
            "sgemm",
            0.02,
        ),
        Row("fma tfloat32", partial(product, fma("tfloat32"), "tfloat32"), "G/s", "sgemm", 0.05),
        Row(
            "fma tfloat32, stochastic",
            partial(product, fma("tfloat32"), "tfloat32", **STOCHASTIC),
            "G/s",
            "sgemm",
            0.02,
        ),
        Row("fma e4m3fnuz", partial(product, fma("float8_e4m3fnuz"), "float8_e4m3fnuz"), "G/s", "sgemm", 0.05),
        Row(
            "fma e4m3fnuz, stochastic",
            partial(product, fma("float8_e4m3fnuz"), "float8_e4m3fnuz", **STOCHASTIC),
            "G/s",
            "sgemm",
            0.02,
        ),
        Row("fma half, one infinity", partial(product, HALF, special=np.inf), "G/s", "fma half", 0.8),
        Row("fma half, one NaN", partial(product, HALF, special=np.nan), "G/s", "fma half", 0.8),
        Row(
            "fma half, a NaN in each row",
            partial(product, HALF, special=np.nan, specials=(slice(None), SIZE // 2)),
            "G/s",
            "fma half",
            0.25,
        ),
        Row(
            "mul_add half, every other row NaN",
            partial(product, mul_add("float16"), special=np.nan, specials=slice(None, None, 2)),
            "G/s",
            "mul_add half",
            0.25,
        ),
        *(
            Row(f"{name}, 1 % infinite", partial(product, how, special=np.inf, specials=SOME), "G/s", name, 0.33)
            for name, how in {
                "fma half": HALF,
                "mul_add half": mul_add("float16"),
                "pairwise half": pairwise("float16"),
                "Kahan half": KAHAN,
                "amp half": amp("half"),
                CHUNKED_NAME: CHUNKED,
                "tensor core H100, half": tensor_core("H100"),
            }.items()
        ),
        Row("fma half, counted", partial(product, HALF, count=True), "G/s", "fma half", 0.25),
        Row("mul_add half, counted", partial(product, mul_add("float16"), count=True), "G/s", "mul_add half", 0.25),
        Row(
            "fma half, stochastic, counted",
            partial(product, HALF, count=True, **STOCHASTIC),
            "G/s",
            "fma half, stochastic",
            0.25,
        ),
        Row(
            "fma half, overflows to NaN, counted",
            partial(product, HALF, overflow="nan", count=True),
            "G/s",
            "fma half",
            0.25,
        ),
        Row(
            "fma float32, stochastic, counted",
            partial(product, SINGLE, "float32", count=True, **STOCHASTIC),
            "G/s",
            "fma float32, stochastic",
            0.25,
        ),
        Row("fma float32 of half, counted", partial(product, SINGLE, count=True), "G/s", "sgemm", 0.02),
        Row("amp half, counted", partial(product, amp("half"), count=True), "G/s", "amp half", 0.25),
        Row("pairwise half", partial(product, pairwise("float16")), "G/s", "sgemm", 0.02),
        Row("pairwise half, counted", partial(product, pairwise("float16"), count=True), "G/s", "pairwise half", 0.25),
        Row(
            "pairwise half, toward zero",
            partial(product, pairwise("float16"), rounding="toward_zero"),
            "G/s",
            "pairwise half",
            0.25,
        ),
        Row(
            "pairwise half, DAZ, FTZ",
            partial(product, pairwise("float16"), daz=True, ftz=True),
            "G/s",
            "pairwise half",
            0.25,
        ),
        Row("pairwise float32", partial(product, pairwise("float32"), "float32"), "G/s", "sgemm", 0.02),
        Row("exact, to float32", partial(product, exact("float32")), "G/s", "sgemm", 0.02),
        Row("exact, to half", partial(product, exact("float16")), "G/s", "sgemm", 0.02),
        Row("pairwise half, stochastic", partial(product, pairwise("float16"), **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row(
            "pairwise half, stochastic, counted",
            partial(product, pairwise("float16"), count=True, **STOCHASTIC),
            "G/s",
            "pairwise half, stochastic",
            0.25,
        ),
        Row(
            "pairwise half of float32, stochastic",
            partial(product, pairwise("float16"), "float32", **STOCHASTIC),
            "G/s",
            "sgemm",
            0.01,
        ),
        Row("pairwise float32, stochastic", partial(product, pairwise("float32"), **STOCHASTIC), "G/s", "sgemm", 0.01),
        Row("exact, to half, stochastic", partial(product, exact("float16"), **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row("exact, to float32, stochastic", partial(product, exact("float32"), **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row(CHUNKED_NAME, partial(product, CHUNKED), "G/s", "sgemm", 0.02),
        Row(
            "chunked 64, mul_add in half",
            partial(product, chunked(64, mul_add("float16"), "float16")),
            "G/s",
            "sgemm",
            0.02,
        ),
        Row("chunked 64, amp in half", partial(product, chunked(64, amp("half"), "float16")), "G/s", "sgemm", 0.02),
        Row("chunked 64, half in float, stochastic", partial(product, CHUNKED, **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row("chunked 64, half in float, counted", partial(product, CHUNKED, count=True), "G/s", CHUNKED_NAME, 0.25),
        Row("chunked 64, half in float, DAZ", partial(product, CHUNKED, daz=True), "G/s", CHUNKED_NAME, 0.25),
        Row(CHAINS_NAME, partial(product, CHAINS), "G/s", "sgemm", 0.02),
        Row("four chains of fma half, DAZ", partial(product, CHAINS, daz=True), "G/s", CHAINS_NAME, 0.25),
        Row("four chains of fma half, stochastic", partial(product, CHAINS, **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row("four chains of fma half, counted", partial(product, CHAINS, count=True), "G/s", CHAINS_NAME, 0.25),
        Row("four segments of fma half", partial(product, SEGMENTS), "G/s", "sgemm", 0.02),
        Row("reductions in two levels", partial(product, REDUCTIONS), "G/s", "sgemm", 0.02),
        Row("vecdot, fma half", partial(vecdot, HALF), "G/s", "sgemm", 0.02),
        Row("vecdot, mul_add half", partial(vecdot, mul_add("float16")), "G/s", "sgemm", 0.02),
        Row("vecdot, fma half, one infinity", partial(vecdot, HALF, special=np.inf), "G/s", "vecdot, fma half", 0.5),
        Row("vecdot, fma half, counted", partial(vecdot, HALF, count=True), "G/s", "vecdot, fma half", 0.25),
        Row(
            "vecdot, mul_add half, counted",
            partial(vecdot, mul_add("float16"), count=True),
            "G/s",
            "vecdot, mul_add half",
            0.25,
        ),
        Row("vecdot, fma half, stochastic", partial(vecdot, HALF, **STOCHASTIC), "G/s", "vecdot, fma half", 0.25),
        Row(
            "vecdot, fma half, stochastic, counted",
            partial(vecdot, HALF, count=True, **STOCHASTIC),
            "G/s",
            "vecdot, fma half, stochastic",
            0.25,
        ),
        Row("vecdot, four chains of fma half", partial(vecdot, CHAINS), "G/s", "vecdot, fma half", 0.25),
        Row(
            "vecdot, four chains, counted",
            partial(vecdot, CHAINS, count=True),
            "G/s",
            "vecdot, four chains of fma half",
            0.25,
        ),
        Row("tensor core H100, half", partial(product, tensor_core("H100")), "G/s", "sgemm"),
        Row(
            "tensor core H100, half, counted",
            partial(product, tensor_core("H100"), count=True),
            "G/s",
            "tensor core H100, half",
            0.25,
        ),
        Row("96 × 64³, fma half", partial(product, HALF, "float16", 64, 64, 64, 96), "G/s", "fma half", 0.8),
        Row(
            "96 × 64³, mul_add half",
            partial(product, mul_add("float16"), "float16", 64, 64, 64, 96),
            "G/s",
            "mul_add half",
            0.8,
        ),
        Row(
            "96 × 64³, tensor core",
            partial(product, tensor_core("H100"), "float16", 64, 64, 64, 96),
            "G/s",
            "tensor core H100, half",
            0.8,
        ),
        Row("Kahan half", partial(product, KAHAN), "G/s", "sgemm", 0.02),
        Row("Kahan half, toward zero", partial(product, KAHAN, rounding="toward_zero"), "G/s", "Kahan half", 0.25),
        Row("Kahan half, DAZ, FTZ", partial(product, KAHAN, daz=True, ftz=True), "G/s", "Kahan half", 0.25),
        Row("Kahan half, stochastic", partial(product, KAHAN, **STOCHASTIC), "G/s", "Kahan half", 0.05),
        Row("Kahan half, counted", partial(product, KAHAN, count=True), "G/s", "Kahan half", 0.25),
        Row("32-bit register", partial(product, REGISTER), "G/s", "sgemm", 0.02),
        Row("32-bit register, counted", partial(product, REGISTER, count=True), "G/s", "32-bit register", 0.25),
        Row("32-bit register, stochastic", partial(product, REGISTER, **STOCHASTIC), "G/s", "32-bit register", 0.5),
        Row("CDNA2 half", partial(product, PAIRS), "G/s", "sgemm", 0.02),
        Row("CDNA2 half, counted", partial(product, PAIRS, count=True), "G/s", "sgemm", 0.02),
        Row("four segments of pairwise half", partial(product, segmented(pairwise("float16"))), "G/s", "sgemm", 0.02),
        Row("four segments of CDNA2 half", partial(product, segmented(PAIRS)), "G/s", "sgemm", 0.02),
        *(
            Row(f"vecdot, {name}", partial(vecdot, how), "G/s", "vecdot, fma half", 0.2)
            for name, how in (
                ("Kahan half", KAHAN),
                ("32-bit register", REGISTER),
                ("CDNA2 half", PAIRS),
                ("tensor core H100", tensor_core("H100")),
            )
        ),
        Row("vecdot, Kahan half, counted", partial(vecdot, KAHAN, count=True), "G/s", "vecdot, Kahan half", 0.25),
        Row("256 × 16³, amp half", partial(product, amp("half"), "float16", 16, 16, 16, 256), "G/s", "", 0.25),
        Row("256 × 16³, Kahan half", partial(product, KAHAN, "float16", 16, 16, 16, 256), "G/s", "", 0.25),
        Row(
            "256 × 16³, fma half, counted",
            partial(product, HALF, "float16", 16, 16, 16, 256, count=True),
            "G/s",
            "",
            0.25,
        ),
        Row("matrix × vector, Kahan half", partial(product, KAHAN, n=1), "G/s", "", 0.5),
        Row("matrix × vector, Kahan half, stochastic", partial(product, KAHAN, n=1, **STOCHASTIC), "G/s", "", 0.1),
        Row("matrix × vector, tensor core H100", partial(product, tensor_core("H100"), n=1), "G/s", "", 0.5),
        Row("matrix × vector, fma half", partial(product, HALF, n=1), "G/s", "", 1.0),
        Row("vector × matrix, fma half", partial(product, HALF, m=1, k=SIZE, n=SIZE), "G/s", "", 1.0),
        Row("matrix × vector, mul_add half", partial(product, mul_add("float16"), n=1), "G/s", "", 1.0),
    ),
    "Sums and folds of halves": (
        Row("sum of 10⁶ rows of 16", partial(total, bits.sum, 10**6, 16), "M/s", "", 500),
        Row("sum of 2²⁰ in order", partial(total, bits.sum, ELEMENTS), "M/s", "", 150),
        Row("pairwise sum of 2²⁰", partial(total, bits.sum, ELEMENTS, accumulator=pairwise("float16")), "M/s", "", 500),
        Row("Kahan's sum of 2²⁰", partial(total, bits.sum, ELEMENTS, accumulator=KAHAN), "M/s", "", 30),
        Row("CDNA2's sum of 2²⁰", partial(total, bits.sum, ELEMENTS, accumulator=PAIRS), "M/s", "", 50),
        Row("cumsum of 2²⁰", partial(total, bits.cumsum, ELEMENTS), "M/s", "", 100),
        Row("Kahan's cumsum of 2²⁰", partial(total, bits.cumsum, ELEMENTS, accumulator=KAHAN), "M/s", "", 30),
        Row(
            "Kahan's sum of 2²⁰, stochastic",
            partial(total, bits.sum, ELEMENTS, accumulator=KAHAN, **STOCHASTIC),
            "M/s",
            "",
            10,
        ),
        Row("sum of 2²⁰ in chunks of 64", partial(total, bits.sum, ELEMENTS, accumulator=CHUNKED), "M/s", "", 100),
        Row(
            "sum of 2²⁰ in chunks of 64, DAZ",
            partial(total, bits.sum, ELEMENTS, accumulator=CHUNKED, daz=True),
            "M/s",
            "",
            100,
        ),
        Row(
            "pairwise cumsum of 2²⁰",
            partial(total, bits.cumsum, ELEMENTS, accumulator=pairwise("float16")),
            "M/s",
            "",
            10,
        ),
        Row("cumsum of 2²⁰ in chunks of 64", partial(total, bits.cumsum, ELEMENTS, accumulator=CHUNKED), "M/s", "", 10),
        Row(
            "cumsum of 2²⁰ in chunks of 64, DAZ",
            partial(total, bits.cumsum, ELEMENTS, accumulator=CHUNKED, daz=True),
            "M/s",
            "",
            10,
        ),
        Row("sum of 2²⁰ in order, stochastic", partial(total, bits.sum, ELEMENTS, **STOCHASTIC), "M/s", "", 30),
        Row("cumsum of 2²⁰, stochastic", partial(total, bits.cumsum, ELEMENTS, **STOCHASTIC), "M/s", "", 30),
        Row(
            "cumsum of 2¹⁰ rows of 2¹⁰, stochastic",
            partial(total, bits.cumsum, 1024, 1024, **STOCHASTIC),
            "M/s",
            "",
            50,
        ),
        Row("prod of 2¹⁴", partial(folded, np.prod), "M/s", "", 100),
        Row("cumprod of 2¹⁴", partial(folded, np.cumprod), "M/s", "", 100),
        Row("subtract.reduce of 2¹⁴", partial(folded, np.subtract.reduce), "M/s", "", 100),
        Row("hypot.reduce of 2¹⁴", partial(folded, np.hypot.reduce), "M/s"),
    ),
    "Convolutions": (Row("depthwise, 288 channels, 5 × 5, fma half", depthwise, "G/s", "", 0.5),),
    "Elementwise, 2²⁰ elements, a flag byte for each": (
        Row("bfloat16 add", partial(binary, bits.add, "bfloat16"), "G/s", "memcpy", 0.10),
        Row("add of another format of 16 bits", partial(binary, bits.add, ODD_HALF), "G/s", "memcpy", 0.10),
        Row("half add", partial(binary, bits.add, "float16"), "G/s", "memcpy", 0.22),
        Row(
            "half add, toward zero", partial(binary, bits.add, "float16", rounding="toward_zero"), "G/s", "memcpy", 0.12
        ),
        Row("half add, to odd", partial(binary, bits.add, "float16", rounding="to_odd"), "G/s", "memcpy", 0.12),
        Row("half add, stochastic", partial(binary, bits.add, "float16", **STOCHASTIC), "G/s", "memcpy", 0.05),
        Row(
            "half add, stochastic, 8 random bits",
            partial(binary, bits.add, "float16", sr_bits=8, **STOCHASTIC),
            "G/s",
            "memcpy",
            0.05,
        ),
        Row("half add, stochastic, bits handed in", handed, "G/s", "memcpy", 0.05),
        Row("float32 add", partial(binary, bits.add, "float32"), "G/s", "memcpy", 0.10),
        Row("float32 add, to odd", partial(binary, bits.add, "float32", rounding="to_odd"), "G/s", "memcpy", 0.08),
        Row("float32 mul", partial(binary, bits.mul, "float32"), "G/s", "memcpy", 0.10),
        Row("float32 div", partial(binary, bits.div, "float32"), "G/s", "memcpy", 0.10),
        Row("float32 add, stochastic", partial(binary, bits.add, "float32", **STOCHASTIC), "G/s", "memcpy", 0.05),
        Row("float32 mul, stochastic", partial(binary, bits.mul, "float32", **STOCHASTIC), "G/s", "memcpy", 0.05),
        Row("float32 → half", partial(converted, "float16"), "G/s", "memcpy", 0.32),
        Row("float32 → half, toward zero", partial(converted, "float16", rounding="toward_zero"), "G/s", "memcpy", 0.2),
        Row("float32 → half, to odd", partial(converted, "float16", rounding="to_odd"), "G/s", "memcpy", 0.2),
        Row("float64 → half", doubles, "G/s", "memcpy", 0.08),
        Row("float64 → half, stochastic", partial(doubles, **STOCHASTIC), "G/s", "memcpy", 0.04),
        Row("e4m3 add", partial(binary, bits.add, "float8_e4m3fn"), "G/s", "memcpy", 0.15),
        Row("e4m3 mul", partial(binary, bits.mul, "float8_e4m3fn"), "G/s", "memcpy", 0.15),
        Row("e4m3 mul, stochastic", partial(binary, bits.mul, "float8_e4m3fn", **STOCHASTIC), "G/s", "memcpy", 0.05),
        Row("e4m3 div", partial(binary, bits.div, "float8_e4m3fn"), "G/s", "memcpy", 0.15),
    ),
    "Two threads": (
        Row("float32 → half, 2²⁴", partial(converted, "float16", 1 << 24, 2), "G/s", "one thread", 1.8),
        Row("float32 copied, 2²⁴", partial(copied, 2), "G/s", "one thread's copy"),
        Row(
            "float32 → half, 2²⁴, bytes",
            lambda: in_bytes(converted("float16", 1 << 24, 2), 7),
            "GB/s",
            "two threads' copy",
            0.8,
            unless="float32 → half, 2²⁴",
        ),
    ),
    "Small calls": (
        Row("x.sum(), 20 halves", partial(few, lambda x, y: x.sum()), "µs", "", 15),
        Row("x @ y, 20 halves", partial(few, lambda x, y: x @ y), "µs", "", 20),
        Row("x < y, 20 halves", partial(few, lambda x, y: x < y), "µs", "", 5),
        Row("np.sqrt(x), 20 halves", partial(few, lambda x, y: np.sqrt(x)), "µs", "", 8),
        Row("x.sum(), 20 halves, stochastic", partial(few, lambda x, y: x.sum(), **STOCHASTIC), "µs", "", 40),
        Row("x @ y, 20 halves, stochastic", partial(few, lambda x, y: x @ y, **STOCHASTIC), "µs", "", 40),
        Row("x.cumsum(), 20 halves", partial(few, lambda x, y: x.cumsum()), "µs", "", 30),
        Row("x ** 2, 20 halves", partial(few, lambda x, y: x**2), "µs", "", 25),
        Row("x + y, 20 halves", partial(few, lambda x, y: x + y), "µs"),
        Row("x + y, 256 halves", added, "µs"),
        Row("x + y, 256 halves, traced", partial(added, traced=True), "µs"),
        Row("asking whether a trace is on", asked, "M/s", "x + y, 256 halves", 100),
        Row("bits.add of two numbers", partial(scalar, bits.add), "µs", "", 6),
        Row("reference.add of two numbers", partial(scalar, reference.add), "µs", "", 10),
    ),
}
"""Tables by their headings."""


def first_call(before: str, statement: str) -> Work:
    """A statement in a new process with an empty cache; what stands `before` it is not timed."""
    text = (
        f"import sys, time\n{before}\nstart = time.perf_counter()\n{statement}\n"
        "print(time.perf_counter() - start, file=sys.__stdout__)"
    )

    def run() -> float:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            done = subprocess.run(
                [sys.executable, "-c", text],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=True,
            )
        return float(done.stdout.split()[-1])

    return Work(run, measured=True)


def first_row(name: str, before: str, statement: str, goal: float) -> Row:
    return Row(name, partial(first_call, before, statement), "s", "", goal, "--first-calls")


ONES = "import numpy, softfloat; x = softfloat.asarray(numpy.ones((4, 4), numpy.float16))"
CODES = "import numpy; from softfloat import accumulators, bits; x = numpy.full((4, 4), 0x3C00, numpy.uint16)"

FIRST_CALLS = (
    first_row("first x.sum()", ONES, "x.sum()", 3),
    first_row("first x @ y", ONES, "x @ x", 3),
    first_row("first matmul, amp", CODES, "bits.matmul(x, x, 'float16', accumulators.amp('half'))", 3),
    first_row(
        "first matmul, stochastic",
        CODES,
        "bits.matmul(x, x, 'float16', accumulators.fma('float16'), rounding='stochastic', seed=1)",
        3,
    ),
    first_row("first sum, Kahan", CODES, "bits.sum(x, 'float16', accumulators.compensated('float16'))", 3),
    first_row("first x @ y, one of them infinite", ONES, "x[0, 0] = numpy.inf; x @ x", 10),
    first_row("first x + 1", ONES, "x + 1", 3),
    first_row("softfloat reproduce", "", "from softfloat.commands import main; main(['reproduce'])", 40),
)

BENCHMARK = Benchmark("cliffs", {**ROWS, "First calls, empty cache": FIRST_CALLS}, YARDSTICKS)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
