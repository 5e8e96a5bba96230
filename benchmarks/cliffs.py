"""One step beside the main roads: what it costs, beside what it is meant to cost, all on one core and in one process.

    python benchmarks/cliffs.py [--only REGEX] [--quick] [--first-calls] [--json FILE] [--markdown docs/performance.md]

Each row of `ROWS` is a call, the unit of its figure, what it is a share of, and its goal. The share is the row's rate over
that of its yardstick, which is timed in turn with it; a row without a yardstick has its goal in its own unit. `ok` and
`below` say whether the goal is reached. All flags are computed: a byte for each output. `--first-calls` times first calls
with an empty cache of compiled code, each in a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import (
    Missing,
    Work,
    arguments_of,
    columns,
    described,
    digits,
    fastest,
    machine,
    optional,
    table,
    write_block,
    write_json,
)

import softfloat
from softfloat import bits, reference
from softfloat.accumulators import (
    Accumulator,
    Reduction,
    Stage,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)

SIZE = 512  # of square matrices
ELEMENTS = 1 << 20
STOCHASTIC = {"rounding": "stochastic", "seed": 1}
HALF = fma("float16")


class Unit(NamedTuple):
    """How a figure is written: its factor, and whether it is work per second (more is better) or seconds of a call."""

    factor: float
    rate: bool


UNITS = {"G/s": Unit(1e-9, True), "M/s": Unit(1e-6, True), "µs": Unit(1e6, False), "s": Unit(1, False)}


@dataclass(frozen=True)
class Row:
    """One line of a table.

    `prepare` makes the operands and returns the work. `against` names a yardstick or another row; with one, `goal` is a
    ratio to it, else a figure in `unit`. Rates and ratios shall reach their goal, times stay within it.
    """

    name: str
    prepare: Callable[[], Work]
    unit: str
    against: str = ""
    goal: float | None = None

    @property
    def upwards(self) -> bool:
        return bool(self.against) or UNITS[self.unit].rate

    @property
    def goal_text(self) -> str:
        if self.goal is None:
            return ""
        return f"{'≥' if self.upwards else '≤'} {self.goal:g}" + (
            f" of {self.against}" if self.against else f" {self.unit}"
        )


class Figure(NamedTuple):
    """What came of a row; `missing` says why nothing did."""

    value: float | None = None
    share: float | None = None
    missing: str = ""

    def verdict(self, row: Row) -> str:
        found = self.share if row.against else self.value
        if row.goal is None or found is None:
            return ""
        return "ok" if (found >= row.goal if row.upwards else found <= row.goal) else "below"


# Operands


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


# Works


def product(
    accumulator: Accumulator,
    fmt: Any = "float16",
    m: int = SIZE,
    k: int = SIZE,
    n: int = SIZE,
    batch: int = 0,
    special: float | None = None,
    **options: Any,
) -> Work:
    """x @ y; `special` is one entry of x."""
    front = (batch,) if batch else ()
    x, y = codes(fmt, *front, m, k), codes(fmt, *front, k, n, seed=1)
    if special is not None:
        x = x.copy()
        x[m // 2, k // 2] = bits.encode(special, fmt)[0]
    return Work(lambda: bits.matmul(x, y, fmt, accumulator, **options), m * k * n * max(batch, 1))


def vecdot(accumulator: Accumulator, rows: int = 4096, length: int = SIZE) -> Work:
    x, y = codes("float16", rows, length), codes("float16", rows, length, seed=1)
    return Work(lambda: bits.vecdot(x, y, "float16", accumulator), rows * length)


def total(function: Callable[..., Any], *shape: int, accumulator: Accumulator = HALF) -> Work:
    """A sum of the last axis."""
    x = codes("float16", *shape)
    return Work(lambda: function(x, "float16", accumulator, len(shape) - 1), x.size)


def folded(function: Callable[..., Any], elements: int = 1 << 14, **options: Any) -> Work:
    x = softfloat.from_codes(codes("float16", elements), "float16")
    return Work(lambda: function(x, **options), elements)


def depthwise(channels: int = 288, height: int = 14, window: int = 5) -> Work:
    x, w = codes("float16", 1, height, height, channels), codes("float16", window, window, 1, channels, seed=1)
    out = height - window + 1
    return Work(lambda: bits.conv2d(x, w, "float16", HALF, groups=channels), out * out * window * window * channels)


def binary(function: Callable[..., Any], fmt: Any, **options: Any) -> Work:
    x, y = codes(fmt, ELEMENTS), codes(fmt, ELEMENTS, seed=1)
    out = places(x)
    return Work(lambda: function(x, y, fmt, out=out, **options), ELEMENTS)


def converted(fmt: Any, elements: int = ELEMENTS, threads: int = 1, **options: Any) -> Work:
    """float32 -> fmt."""
    if threads > (os.cpu_count() or 1):
        raise Missing(f"fewer than {threads} cores")
    x = normal(elements)
    out = places(bits.encode(x, fmt)[0])
    return Work(lambda: bits.encode(x, fmt, out=out, **options), elements, threads)


def few(call: Callable[[Any, Any], object]) -> Work:
    """A call on two arrays of 20."""
    x, y = (softfloat.from_codes(codes("float16", 20, seed=seed), "float16") for seed in range(2))
    positive = abs(x)
    return Work(lambda: call(positive, y))


def scalar(function: Callable[..., object]) -> Work:
    return Work(lambda: function(0x3C00, 0x3555, softfloat.float16))


def sgemm() -> Work:
    a, b = normal(SIZE, SIZE), normal(SIZE, SIZE, seed=1)
    return Work(lambda: a @ b, SIZE**3)


def memcpy() -> Work:
    x = normal(ELEMENTS)
    copy = np.empty_like(x)
    return Work(lambda: np.copyto(copy, x), ELEMENTS)


def jax_scan() -> Work:
    """A half multiplication and a half addition for each k; Missing unless it has the bits of `mul_add`."""
    jax = optional("jax")
    if jax is None:
        raise Missing("jax is not installed")
    x, y = (jax.numpy.asarray(codes("float16", SIZE, SIZE, seed=seed).view(np.float16)) for seed in range(2))

    def scan(a: Any, b: Any) -> Any:
        start = jax.numpy.zeros((SIZE, SIZE), "float16")
        return jax.lax.scan(lambda c, row: (c + row[0][:, None] * row[1][None], None), start, (a.T, b))[0]

    compiled = jax.jit(scan)
    expected = bits.matmul(*(np.asarray(v).view(np.uint16) for v in (x, y)), "float16", mul_add("float16"))[0]
    if not np.array_equal(np.asarray(compiled(x, y)).view(np.uint16), expected):
        raise Missing("this jax rounds otherwise: set XLA_FLAGS=--xla_allow_excess_precision=false")
    return Work(lambda: compiled(x, y).block_until_ready(), SIZE**3)


YARDSTICKS: dict[str, Callable[[], Work]] = {
    "sgemm": sgemm,
    "memcpy": memcpy,
    "a jax scan": jax_scan,
    "one thread": partial(converted, "float16", 1 << 24),
}
"""What shares are of, beside other rows."""

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
        Row("amp half, stochastic", partial(product, amp("half"), **STOCHASTIC), "G/s", "sgemm", 0.05),
        Row("fma half, stochastic", partial(product, HALF, **STOCHASTIC), "G/s", "sgemm", 0.05),
        Row("mul_add half, stochastic", partial(product, mul_add("float16"), **STOCHASTIC), "G/s", "sgemm", 0.02),
        Row("fma half, toward zero", partial(product, HALF, rounding="toward_zero"), "G/s", "fma half", 0.5),
        Row("fma half, ties away", partial(product, HALF, rounding="nearest_away"), "G/s", "fma half", 0.5),
        Row("fma half, up", partial(product, HALF, rounding="toward_positive"), "G/s", "fma half", 0.5),
        Row("fma half, down", partial(product, HALF, rounding="toward_negative"), "G/s", "fma half", 0.5),
        Row("fma half, to odd", partial(product, HALF, rounding="to_odd"), "G/s", "fma half", 0.5),
        Row("fma half, DAZ", partial(product, HALF, daz=True), "G/s", "fma half", 0.5),
        Row("fma half, FTZ", partial(product, HALF, ftz=True), "G/s", "fma half", 0.5),
        Row("fma half, tininess before", partial(product, HALF, tininess="before"), "G/s", "fma half", 0.5),
        Row("fma half, one infinity", partial(product, HALF, special=np.inf), "G/s", "fma half", 0.8),
        Row("fma half, one NaN", partial(product, HALF, special=np.nan), "G/s", "fma half", 0.8),
        Row("fma half, counted", partial(product, HALF, count=True), "G/s", "fma half", 0.25),
        Row("mul_add half, counted", partial(product, mul_add("float16"), count=True), "G/s", "mul_add half", 0.25),
        Row("amp half, counted", partial(product, amp("half"), count=True), "G/s", "amp half", 0.25),
        Row("pairwise half", partial(product, pairwise("float16")), "G/s", "sgemm", 0.02),
        Row("exact, to float32", partial(product, exact("float32")), "G/s", "sgemm", 0.02),
        Row("exact, to half", partial(product, exact("float16")), "G/s", "sgemm", 0.02),
        Row("chunked 64, half in float", partial(product, chunked(64, "float16", "float32")), "G/s", "sgemm", 0.02),
        Row(
            "chunked 64, mul_add in half",
            partial(product, chunked(64, mul_add("float16"), "float16")),
            "G/s",
            "sgemm",
            0.02,
        ),
        Row("chunked 64, amp in half", partial(product, chunked(64, amp("half"), "float16")), "G/s", "sgemm", 0.02),
        Row("four chains of fma half", partial(product, HALF.replace(chains=4)), "G/s", "sgemm", 0.02),
        Row("four segments of fma half", partial(product, SEGMENTS), "G/s", "sgemm", 0.02),
        Row("reductions in two levels", partial(product, REDUCTIONS), "G/s", "sgemm", 0.02),
        Row("vecdot, fma half", partial(vecdot, HALF), "G/s", "sgemm", 0.02),
        Row("vecdot, mul_add half", partial(vecdot, mul_add("float16")), "G/s", "sgemm", 0.02),
        Row("tensor core H100, half", partial(product, tensor_core("H100")), "G/s", "sgemm"),
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
        Row("matrix × vector, fma half", partial(product, HALF, n=1), "G/s", "", 1.0),
        Row("vector × matrix, fma half", partial(product, HALF, m=1), "G/s", "", 1.0),
        Row("matrix × vector, mul_add half", partial(product, mul_add("float16"), n=1), "G/s", "", 1.0),
    ),
    "Sums and folds of halves": (
        Row("sum of 10⁶ rows of 16", partial(total, bits.sum, 10**6, 16), "M/s", "", 500),
        Row("sum of 2²⁰ in order", partial(total, bits.sum, ELEMENTS), "M/s", "", 150),
        Row("pairwise sum of 2²⁰", partial(total, bits.sum, ELEMENTS, accumulator=pairwise("float16")), "M/s", "", 500),
        Row("cumsum of 2²⁰", partial(total, bits.cumsum, ELEMENTS), "M/s", "", 100),
        Row("prod of 2¹⁴", partial(folded, np.prod), "M/s"),
        Row("cumprod of 2¹⁴", partial(folded, np.cumprod), "M/s"),
        Row("subtract.reduce of 2¹⁴", partial(folded, np.subtract.reduce), "M/s"),
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
        Row("float32 → half", partial(converted, "float16"), "G/s", "memcpy", 0.32),
        Row("float32 → half, toward zero", partial(converted, "float16", rounding="toward_zero"), "G/s", "memcpy", 0.2),
        Row("float32 → half, to odd", partial(converted, "float16", rounding="to_odd"), "G/s", "memcpy", 0.2),
        Row("e4m3 add", partial(binary, bits.add, "float8_e4m3fn"), "G/s", "memcpy", 0.15),
        Row("e4m3 mul", partial(binary, bits.mul, "float8_e4m3fn"), "G/s", "memcpy", 0.15),
        Row("e4m3 div", partial(binary, bits.div, "float8_e4m3fn"), "G/s", "memcpy", 0.15),
    ),
    "Two threads": (Row("float32 → half, 2²⁴", partial(converted, "float16", 1 << 24, 2), "G/s", "one thread", 1.8),),
    "Small calls": (
        Row("x.sum(), 20 halves", partial(few, lambda x, y: x.sum()), "µs", "", 15),
        Row("x @ y, 20 halves", partial(few, lambda x, y: x @ y), "µs", "", 20),
        Row("x < y, 20 halves", partial(few, lambda x, y: x < y), "µs", "", 5),
        Row("np.sqrt(x), 20 halves", partial(few, lambda x, y: np.sqrt(x)), "µs", "", 8),
        Row("x + y, 20 halves", partial(few, lambda x, y: x + y), "µs"),
        Row("bits.add of two numbers", partial(scalar, bits.add), "µs", "", 6),
        Row("reference.add of two numbers", partial(scalar, reference.add), "µs", "", 10),
    ),
}
"""Tables by their headings."""


class FirstCall(NamedTuple):
    """Statements that are run and timed in a new process with an empty cache; what stands in `before` is not timed."""

    name: str
    before: str
    timed: str
    goal: float

    @property
    def row(self) -> Row:
        return Row(self.name, self.work, "s", "", self.goal)

    def work(self) -> Work:
        raise Missing("--first-calls")

    def measure(self) -> float:
        text = (
            f"import time\n{self.before}\nstart = time.perf_counter()\n{self.timed}\n"
            "import sys\nprint(time.perf_counter() - start, file=sys.__stdout__)"
        )
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


ONES = "import numpy, softfloat; x = softfloat.asarray(numpy.ones((4, 4), numpy.float16))"
CODES = "import numpy; from softfloat import accumulators, bits; x = numpy.full((4, 4), 0x3C00, numpy.uint16)"

FIRST_CALLS = (
    FirstCall("x.sum()", ONES, "x.sum()", 3),
    FirstCall("x @ y", ONES, "x @ x", 3),
    FirstCall("matmul, amp", CODES, "bits.matmul(x, x, 'float16', accumulators.amp('half'))", 3),
    FirstCall(
        "matmul, stochastic",
        CODES,
        "bits.matmul(x, x, 'float16', accumulators.fma('float16'), rounding='stochastic', seed=1)",
        3,
    ),
    FirstCall("x + 1", ONES, "x + 1", 3),
    FirstCall("softfloat reproduce", "", "from softfloat.commands import main; main(['reproduce'])", 40),
)

TABLES: dict[str, tuple[Row, ...]] = {
    **ROWS,
    "First calls, empty cache": tuple(call.row for call in FIRST_CALLS),
}
"""All rows that are printed and stand in the page."""

BY_NAME = {row.name: row.prepare for rows in ROWS.values() for row in rows} | YARDSTICKS


def measure(row: Row, seconds: float) -> Figure:
    """A row and its yardstick, in turn."""
    try:
        works = [row.prepare(), *([BY_NAME[row.against]()] if row.against else [])]
    except Missing as reason:
        return Figure(missing=str(reason))
    found = fastest(works, seconds)
    rates = [work.amount / best for work, best in zip(works, found, strict=True)]
    unit = UNITS[row.unit]
    return Figure((rates[0] if unit.rate else found[0]) * unit.factor, rates[0] / rates[1] if row.against else None)


def page(figures: dict[str, Figure]) -> list[str]:
    """The tables in Markdown: every row, measured or not."""
    lines = ["Measured on " + described(machine()) + ".", ""]
    for heading, rows in TABLES.items():
        lines += [f"### {heading}", "", *table(("", "measured", "share", "goal", ""), map(cells_of(figures), rows)), ""]
    return lines[:-1]


def cells_of(figures: dict[str, Figure]) -> Callable[[Row], tuple[str, ...]]:
    """A row's name, figure, share, goal and verdict."""

    def cells(row: Row) -> tuple[str, ...]:
        found = figures.get(row.name, Figure(missing="not measured"))
        value = f"{digits(found.value)} {row.unit}" if found.value is not None else found.missing
        return row.name, value, digits(found.share), row.goal_text, found.verdict(row)

    return cells


def selected(pattern: str) -> Iterable[tuple[str, list[Row]]]:
    """Tables with the rows whose name, or the table's, the pattern is found in."""
    for heading, rows in TABLES.items():
        found = [row for row in rows if re.search(pattern, f"{heading}: {row.name}")]
        if found:
            yield heading, found


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help='rows whose "table: name" this is found in')
    parser.add_argument("--quick", action="store_true", help="0.1 s a row instead of 1 s")
    parser.add_argument("--first-calls", action="store_true", help="also first calls, which take a minute or two")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="replace the tables in this page")
    arguments = parser.parse_args()
    softfloat.set_num_threads(1)
    print(described(machine()))
    first = {call.name: call for call in FIRST_CALLS}
    figures: dict[str, Figure] = {}
    widths = (40, 22, 10, 40, 8)
    with np.errstate(all="ignore"):
        for heading, rows in selected(arguments.only):
            print(columns(widths, (heading[:40], "measured", "share", "goal", "")))
            for row in rows:
                if row.name in first and arguments.first_calls:
                    figures[row.name] = Figure(first[row.name].measure())
                else:
                    figures[row.name] = measure(row, 0.1 if arguments.quick else 1.0)
                print(columns(widths, cells_of(figures)(row)), flush=True)
    if arguments.json:
        rows = [
            {"table": heading, "name": row.name, "unit": row.unit, "against": row.against, "goal": row.goal}
            | figures[row.name]._asdict()
            | {"verdict": figures[row.name].verdict(row)}
            for heading, found in selected(arguments.only)
            for row in found
        ]
        write_json(arguments.json, rows=rows)
    if arguments.markdown:
        write_block(arguments.markdown, "cliffs", page(figures))


if __name__ == "__main__":
    main()
