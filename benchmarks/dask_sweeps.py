"""Sweeps and blocks on Dask: two worker processes beside one, what a task costs, what memory a statistic takes.

    python benchmarks/dask_sweeps.py [--only REGEX] [--quick] [--plain] [--json FILE] [--markdown PAGE]

The sweep multiplies 2^30 pairs of half, a quarter of all there are, in tasks of 2^24, and digests codes and flags; workers have one thread each,
and both clusters live in one process and are taken in turn. Beside the time stands the processor time of one and of two workers, which a
busy machine changes less, and what a task costs is processor time of all processes: of one of 1000 that do nothing, and of one of 400 blocks of
16 numbers of `x * x`, the making of the graph included. Memory is the most that a process of its own ever had, which counts stochastic roundings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import Benchmark, Missing, Row, Work, optional

PAIRS = 1 << 30
TASKS = 1000
BLOCKS = 400


def products(a: Any, b: Any) -> Any:
    """Codes and flags: the second operands' codes stand for every fourth half."""
    from softfloat import bits

    return bits.mul(a, b << 2, "float16")


def nothing(number: int) -> None:
    """A task."""


@cache
def client(workers: int) -> Any:
    """A cluster of so many processes, with one thread each."""
    distributed = optional("distributed")
    if distributed is None or optional("dask.array") is None:
        raise Missing("dask is not installed")
    if workers > (os.cpu_count() or 1):
        raise Missing(f"fewer than {workers} cores")
    warnings.simplefilter("ignore")
    os.environ["NUMBA_NUM_THREADS"] = "1"  # of what workers run
    cluster = distributed.LocalCluster(
        n_workers=workers, processes=True, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR"
    )
    found = distributed.Client(cluster, set_as_default=False)
    found.run(products, *np.zeros((2, 1 << 16), np.uint16))  # compiles, or loads what is compiled
    return found


def swept(workers: int) -> Work:
    found = client(workers)

    def run() -> None:
        from softfloat import dask

        swept = dask.sweep(products, ["float16", "e5m8"], client=found)
        assert swept.elements == PAIRS

    return Work(run, PAIRS)


def processor(workers: int) -> Work:
    """Processor seconds of all workers."""
    found, work = client(workers), swept(workers)

    def run() -> float:
        before = spent(found) - time.process_time()
        work.run()
        return spent(found) - time.process_time() - before

    return Work(run, measured=True)


def spent(found: Any) -> float:
    """Processor seconds of this process, in which the scheduler is, and of a cluster's workers."""
    return time.process_time() + (sum(found.run(time.process_time).values()) if found is not None else 0.0)


def overhead(where: str, each: int, call: Callable[[Any], object]) -> Work:
    """Processor seconds of a task, the least of three times."""

    def run() -> float:
        found, best = client(2) if where == "cluster" else None, float("inf")
        for _ in range(3):
            before = spent(found)
            call(found)
            best = min(best, spent(found) - before)
        return best / each

    optional("dask.array") or swept(1)
    return Work(run, measured=True)


def a_task(where: str) -> Work:
    """One that does nothing."""

    def call(found: Any) -> None:
        from softfloat import dask

        given: dict[str, Any] = {"scheduler": where} if found is None else {"client": found}
        dask.sweep_tasks(nothing, TASKS, "nothing", **given)

    return overhead(where, TASKS, call)


def a_block(where: str) -> Work:
    """A block of an elementwise operation."""

    def call(found: Any) -> None:
        from softfloat import dask

        x = dask.from_codes(np.full(16 * BLOCKS, 0x3C00, np.uint16), "float16", 16)
        (x * x).compute(scheduler=found or where)

    return overhead(where, BLOCKS, call)


def memory(count: int, chunk: int) -> Work:
    """Bytes of a process that counts so many stochastic roundings."""

    def run() -> float:
        arguments = "softfloat.examples.rounding_statistic", "--count", str(count), "--chunk", str(chunk), "--json"
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout)["peak_bytes"])

    optional("dask.array") or swept(1)
    return Work(run, measured=True)


def row(name: str, prepare: Callable[[], Work], unit: str, goal: float | None = None) -> Row:
    return Row(name, prepare, unit, goal=goal)


ONE, TWO = "2³⁰ half products, one worker", "2³⁰ half products, two workers"

BENCHMARK = Benchmark(
    "dask_sweeps",
    {
        "Two worker processes": (
            Row(ONE, partial(swept, 1), "G/s"),
            Row(TWO, partial(swept, 2), "G/s", ONE, 1.7),
            row("processor time, one worker", partial(processor, 1), "s"),
            row("processor time, two workers", partial(processor, 2), "s"),
        ),
        "A task, processor time": (
            *(row(f"that does nothing, {where}", partial(a_task, where), "ms", 5) for where in ("threads", "cluster")),
            *(
                row(f"a block of x * x, four tasks, {where}", partial(a_block, where), "ms")
                for where in ("threads", "cluster")
            ),
        ),
        "Memory of a statistic": (
            row("2²⁴ numbers, blocks of 2²¹", partial(memory, 1 << 24, 1 << 21), "GiB"),
            row("2²⁸ numbers, blocks of 2²¹", partial(memory, 1 << 28, 1 << 21), "GiB", 2),
            row("2²⁸ numbers, blocks of 2²³", partial(memory, 1 << 28, 1 << 23), "GiB", 2),
        ),
    },
    {},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
