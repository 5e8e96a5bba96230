"""What the benchmarks share: works and yardsticks timed in turn, the machine they ran on, and tables on a terminal and in pages.

A figure is that of the fastest of many calls. A call and what it is compared with are taken in turn, so that a noisy
neighbour disturbs both alike.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding

import softfloat
from softfloat.files import plain, replacing

BATCH = 2e-4  # seconds that a timing takes at least, of calls in a row
IN_A_ROW = 3  # timings, so that each work finds its own operands in the cache, whatever ran before
LONG = 0.1  # seconds of a call from which one timing is enough


class Missing(Exception):
    """What a row needs and this machine does not have."""


class Work(NamedTuple):
    """A call, how much it does (multiply-adds, additions, elements, or one call), and on how many threads."""

    run: Callable[[], object]
    amount: float = 1.0
    threads: int = 1


def optional(name: str) -> Any:
    """A module, or None."""
    try:
        return __import__(name)
    except ImportError:
        return None


def timed(run: Callable[[], object], repeats: int = 1) -> float:
    """Seconds of one of several calls in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


class Clock:
    """The least that a call took."""

    def __init__(self, work: Work) -> None:
        self.run, self.threads = work.run, work.threads
        self.best = math.inf
        self.repeats = 1

    def take(self) -> None:
        """A few timings in a row. The first call of all compiles and is not counted."""
        if softfloat.get_num_threads() != self.threads:
            softfloat.set_num_threads(self.threads)
        if self.best == math.inf:
            self.run()
            self.best = timed(self.run)
            self.repeats = max(1, math.ceil(BATCH / self.best))
            if self.best >= LONG:
                return
        for _ in range(IN_A_ROW if self.best < LONG else 1):
            self.best = min(self.best, timed(self.run, self.repeats))


def fastest(works: Sequence[Work], seconds: float) -> list[float]:
    """Seconds of a call of each, taken in turn until `seconds` have passed, at least once."""
    clocks = [Clock(work) for work in works]
    for clock in clocks:
        clock.take()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for clock in clocks:
            clock.take()
    return [clock.best for clock in clocks]


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _openblas() -> str:
    """The kernel that NumPy's OpenBLAS chose; "unknown" without OpenBLAS."""
    threadpoolctl = optional("threadpoolctl")
    if threadpoolctl:
        for library in threadpoolctl.threadpool_info():
            if library["internal_api"] == "openblas":
                return str(library["architecture"])
    folders = [Path(np.__file__).parents[1] / "numpy.libs", Path(np.__file__).parent / ".dylibs"]
    for path in (path for folder in folders for path in folder.glob("*openblas*")):
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
            with contextlib.suppress(OSError, AttributeError):
                function = getattr(ctypes.CDLL(str(path)), name)
                function.restype = ctypes.c_char_p
                return str(function().decode())
    return "unknown"


def machine() -> dict[str, Any]:
    """What figures depend on: CPU, as it calls itself and as LLVM does, cores, load, OpenBLAS's kernel, versions."""
    return {
        "cpu": _cpu(),
        "llvm": os.environ.get("NUMBA_CPU_NAME") or str(binding.get_host_cpu_name()),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "openblas": _openblas(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def described(found: dict[str, Any]) -> str:
    """A line on the machine."""
    return (
        f"{found['cpu']} (LLVM: {found['llvm']}), {found['cores']} cores, load {found['load']}, OpenBLAS kernel "
        f"{found['openblas']}, NumPy {found['numpy']}, Numba {found['numba']}"
    )


def digits(x: float | None) -> str:
    """Two significant digits, and all those before the point."""
    if x is None or not math.isfinite(x):
        return ""
    places = max(0, 1 - math.floor(math.log10(abs(x)))) if x else 0
    return f"{x:,.{places}f}".replace(",", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def columns(widths: Sequence[int], cells: Sequence[str]) -> str:
    """A line on a terminal: the first cell to the left, the others to the right."""
    return "".join(
        f"{x:>{w}}" if i else f"{x:<{w}}" for i, (w, x) in enumerate(zip(widths, cells, strict=True))
    ).rstrip()


def markers(name: str) -> tuple[str, str]:
    """The lines between which a benchmark's tables stand in a page."""
    return f"<!-- {name}: made by benchmarks/{name}.py --markdown -->", f"<!-- end of {name} -->"


def block(page: str, name: str) -> str:
    """What stands between a benchmark's markers."""
    start, end = markers(name)
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise ValueError(f"a page must have one line {start!r} and below it one line {end!r}")
    return page[page.index(start) + len(start) : page.index(end)].strip("\n")


def write_block(path: Path, name: str, lines: Iterable[str]) -> None:
    """Replace what stands between a benchmark's markers; the rest of the page stays."""
    page = path.read_text(encoding="utf-8")
    block(page, name)
    start, end = markers(name)
    before, after = page[: page.index(start) + len(start)], page[page.index(end) :]
    with replacing(path) as file:
        file.write("\n".join([before, "", *lines, "", after]).encode())


def write_json(path: Path, **figures: Any) -> None:
    """All figures, with the machine they are of."""
    with replacing(path) as file:
        file.write((json.dumps(plain({"machine": machine(), **figures}), indent=1) + "\n").encode())


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark takes: `--json`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    return parser
