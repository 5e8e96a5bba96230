"""What the benchmarks share: rows and yardsticks timed in turn, the machine they ran on, tables on a terminal and in pages.

A figure is that of the fastest of many calls. A call and what it is compared with are taken in turn, so that a noisy
neighbour disturbs both alike. The share of a row is its rate over that of its yardstick.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding

import softfloat
from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.engine import elementwise
from softfloat.files import plain, replacing

SIZE = 512  # of square matrices
ELEMENTS = 1 << 20
STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 1}

BATCH = 2e-4  # seconds that a timing takes at least, of calls in a row
IN_A_ROW = 3  # timings, so that each work finds its own operands in the cache, whatever ran before
LONG = 0.1  # seconds of a call from which one timing is enough


class Missing(Exception):
    """What a row needs and this machine does not have."""


class Work(NamedTuple):
    """A call, how much it does (multiply-adds, additions, elements, or one call), and on how many threads.

    What is `measured` by the call itself, once, is what it returns: seconds, or bytes.
    """

    run: Callable[[], Any]
    amount: float = 1.0
    threads: int = 1
    measured: bool = False


class Unit(NamedTuple):
    """How a figure is written: its factor, and whether it is work per second (more is better) or of a call (less is)."""

    factor: float
    rate: bool


UNITS = {
    "G/s": Unit(1e-9, True),
    "M/s": Unit(1e-6, True),
    "M/min": Unit(60e-6, True),
    "µs": Unit(1e6, False),
    "ms": Unit(1e3, False),
    "s": Unit(1.0, False),
    "GB/s": Unit(1e-9, True),
    "GiB": Unit(2.0**-30, False),
}


@dataclass(frozen=True)
class Row:
    """One line of a table.

    `prepare` makes the operands and returns the work. `against` names a yardstick or another row; with one, `goal` is a
    ratio of rates, else a figure in `unit`. Rates and ratios shall reach their goal, times stay within it. `needs` is
    the switch of the command line without which the row is not measured. With `unless`, the goal stands in for that of
    another row, and is none where that one reaches its own.
    """

    name: str
    prepare: Callable[[], Work]
    unit: str
    against: str = ""
    goal: float | None = None
    needs: str = ""
    unless: str = ""

    @property
    def upwards(self) -> bool:
        return bool(self.against) or UNITS[self.unit].rate

    @property
    def goal_text(self) -> str:
        if self.goal is None:
            return ""
        return f"{'≥' if self.upwards else '≤'} {self.goal:g}{'' if self.against else ' ' + self.unit}"

    def cells(self, found: Figure) -> tuple[str, ...]:
        """Name, figure, share, what it is of (up to a colon), goal, and whether that is reached."""
        value = f"{digits(found.value)} {self.unit}" if found.value is not None else found.missing
        return (
            self.name,
            value,
            digits(found.share),
            self.against.partition(":")[0],
            self.goal_text,
            found.verdict(self),
        )


HEAD = ("row", "measured", "share", "of", "goal", "reached")


class Figure(NamedTuple):
    """What came of a row; `missing` says why nothing did, `spared` that another row reached the goal that this one's stands in for."""

    value: float | None = None
    share: float | None = None
    missing: str = ""
    spared: bool = False

    def verdict(self, row: Row) -> str:
        found = self.share if row.against else self.value
        if row.goal is None or found is None or self.spared:
            return ""
        return (
            "ok" if (found >= row.goal if row.upwards else found <= row.goal) else "below" if row.upwards else "above"
        )


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


@dataclass(frozen=True)
class Benchmark:
    """Tables of rows by their headings, and what shares are of, beside other rows."""

    name: str
    tables: Mapping[str, tuple[Row, ...]]
    yardsticks: Mapping[str, Callable[[], Work]]

    def work(self, name: str) -> Work:
        """That of a yardstick or a row."""
        rows = {row.name: row.prepare for rows in self.tables.values() for row in rows}
        return (rows | dict(self.yardsticks))[name]()

    def measure(self, row: Row, seconds: float) -> Figure:
        """A row and its yardstick, in turn."""
        unit = UNITS[row.unit]
        try:
            work = row.prepare()
            if work.measured:
                return Figure(work.run() * unit.factor)
            works = [work, self.work(row.against)] if row.against else [work]
        except Missing as reason:
            return Figure(missing=str(reason))
        found = fastest(works, seconds)
        rates = [work.amount / best for work, best in zip(works, found, strict=True)]
        return Figure((rates[0] if unit.rate else found[0]) * unit.factor, rates[0] / rates[1] if row.against else None)

    def selected(self, pattern: str) -> Iterator[tuple[str, list[Row]]]:
        """Tables with the rows in whose "table: name" the pattern is found."""
        for heading, rows in self.tables.items():
            found = [row for row in rows if re.search(pattern, f"{heading}: {row.name}")]
            if found:
                yield heading, found

    def page(self, figures: Mapping[str, Figure], where: str) -> list[str]:
        """The tables in Markdown: every row, measured or not; and on what machine."""
        lines = [f"{where}.", ""]
        for heading, rows in self.tables.items():
            cells = (row.cells(figures.get(row.name, Figure(missing="not measured"))) for row in rows)
            lines += [f"### {heading}", "", *table(HEAD, cells), ""]
        return lines[:-1]

    def main(self, description: str | None) -> None:
        """Measure what the command line asks for; print it, and write it where it says."""
        parser = arguments_of(description)
        parser.add_argument("--only", default="", metavar="REGEX", help='rows in whose "table: name" this is found')
        parser.add_argument("--quick", action="store_true", help="0.1 s a row instead of 1 s")
        parser.add_argument("--plain", action="store_true", help="leave the faster loops out")
        parser.add_argument("--markdown", type=Path, metavar="PAGE", help="replace this benchmark's tables in a page")
        for switch in sorted({row.needs for rows in self.tables.values() for row in rows if row.needs}):
            parser.add_argument(switch, action="store_true", help="also the rows that say so, which take longer")
        arguments = parser.parse_args()
        if arguments.markdown and arguments.only:
            parser.error("--markdown replaces all tables: it goes without --only")
        if arguments.markdown:
            block(arguments.markdown.read_text(encoding="utf-8"), self.name)
        elementwise.FAST = not arguments.plain
        about_machine = machine()  # before anything here adds to its load
        print(described(about_machine))
        figures: dict[str, Figure] = {}
        reached: set[str] = set()
        records = []
        widths = (50, 22, 10, 26, 10, 8)
        with np.errstate(all="ignore"):
            for heading, rows in self.selected(arguments.only):
                print(columns(widths, HEAD), heading, sep="\n")
                for row in rows:
                    if row.needs and not getattr(arguments, row.needs.strip("-").replace("-", "_")):
                        figures[row.name] = Figure(missing=row.needs)
                    else:
                        figures[row.name] = self.measure(row, 0.1 if arguments.quick else 1.0)
                    found = figures[row.name]
                    if row.unless in reached:
                        found = figures[row.name] = found._replace(spared=True)
                    if found.verdict(row) == "ok":
                        reached.add(row.name)
                    print(columns(widths, row.cells(found)), flush=True)
                    about = {
                        "table": heading,
                        "name": row.name,
                        "unit": row.unit,
                        "against": row.against,
                        "goal": row.goal,
                    }
                    records.append(about | found._asdict() | {"verdict": found.verdict(row)})
        if arguments.json:
            write_json(arguments.json, machine=about_machine, rows=records)
        if arguments.markdown:
            write_block(arguments.markdown, self.name, self.page(figures, described(about_machine)))


def write_json(path: Path, **figures: Any) -> None:
    """All figures; with the machine as it is, unless they say of which they are."""
    with replacing(path) as file:
        file.write((json.dumps(plain({"machine": machine()} | figures), indent=1) + "\n").encode())


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark takes: `--json`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    return parser


# -- operands and works that several benchmarks measure ----------------------------------------------------------------


@cache
def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@cache
def codes(fmt: Any, *shape: int, seed: int = 0) -> np.ndarray:
    """Normally distributed numbers."""
    return bits.encode(normal(*shape, seed=seed), fmt, overflow="saturate")[0]


def places(like: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where results and their flags go, so that no row times the system's making of memory."""
    return np.empty_like(like), np.empty(like.shape, np.uint8)


def product(
    accumulator: Accumulator,
    fmt: Any = "float16",
    m: int = SIZE,
    k: int = 0,
    n: int = 0,
    batch: int = 0,
    threads: int = 1,
    special: float | None = None,
    specials: Any = None,
    **options: Any,
) -> Work:
    """x @ y, square unless k and n are given; `special` is one entry of x, or those at `specials`."""
    k, n = k or m, n or m
    front = (batch,) if batch else ()
    x, y = codes(fmt, *front, m, k), codes(fmt, *front, k, n, seed=1)
    if special is not None:
        x = x.copy()
        x[(m // 2, k // 2) if specials is None else specials] = bits.encode(special, fmt)[0]
    return Work(lambda: bits.matmul(x, y, fmt, accumulator, **options), m * k * n * max(batch, 1), threads)


def sgemm(size: int = SIZE) -> Work:
    a, b = normal(size, size), normal(size, size, seed=1)
    return Work(lambda: a @ b, size**3)


def memcpy() -> Work:
    x = normal(ELEMENTS)
    copy = np.empty_like(x)
    return Work(lambda: np.copyto(copy, x), ELEMENTS)


def elementwise_work(
    function: Callable[..., Any],
    operands: Sequence[np.ndarray],
    fmt: Any,
    threads: int = 1,
    flags: str = "each",
    **options: Any,
) -> Work:
    """A function of `softfloat.bits` that writes where it is told, with a flag byte for each element or all flags OR-ed."""
    if threads > (os.cpu_count() or 1):
        raise Missing(f"fewer than {threads} cores")
    out = places(
        np.empty(operands[0].shape, softfloat.Format.from_name(fmt).dtype if isinstance(fmt, str) else fmt.dtype)
    )
    place = out if flags == "each" else out[0]
    run = partial(function, *operands, fmt, out=place, flags=flags, **options)
    return Work(run, operands[0].size, threads)


def converted(fmt: Any, elements: int = ELEMENTS, threads: int = 1, **options: Any) -> Work:
    """float32 -> fmt."""
    return elementwise_work(bits.encode, [normal(elements)], fmt, threads, **options)


def both_flags(
    name: str, prepare: Callable[..., Work], against: str, each: float | None = None, any_: float | None = None
) -> tuple[Row, ...]:
    """A call with a flag byte for each element, and with all flags OR-ed together, with the goals of both."""
    return tuple(
        Row(f"{name}, flags {flags}", partial(prepare, flags=flags), "G/s", against, goal)
        for flags, goal in (("each", each), ("any", any_))
    )
