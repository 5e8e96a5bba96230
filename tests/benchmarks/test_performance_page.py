"""docs/performance.md has the rows of the benchmarks; and what benchmarks say of a figure is right. Nothing is timed here."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / "benchmarks"
PAGE = CHECKOUT / "docs" / "performance.md"
NAMES = (
    "cliffs",
    "dots",
    "elementwise",
    "blocks",
    "functions",
    "arrays",
    "check",
    "dask_sweeps",
    "linear",
    "presets",
    "rounding",
    "wide",
)


@pytest.fixture(scope="module")
def load() -> Iterator[Any]:
    """Imports files of benchmarks/, which stand beside one another as scripts do, and forgets them again."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name in {path.stem for path in FOLDER.glob("*.py")} - before:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def measuring(load: Any) -> Any:
    return load("measuring")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def shown(text: str) -> list[tuple[str, ...]]:
    """Headings and rows of a block of the page: name, yardstick and goal."""
    found: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if line.startswith("### "):
            found.append((line[4:],))
        elif line.startswith("| ") and not line.startswith(("| row |", "| --- |")):
            name, _, _, against, goal, _ = cells(line)
            found.append((name, against, goal))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_exactly_the_rows_of_the_benchmark(name: str, load: Any, measuring: Any) -> None:
    benchmark = load(name).BENCHMARK
    expected: list[tuple[str, ...]] = []
    for heading, rows in benchmark.tables.items():
        expected.append((heading,))
        expected += [(row.name, row.against.partition(":")[0], row.goal_text) for row in rows]
    assert shown(measuring.block(PAGE.read_text(encoding="utf-8"), name)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_yardsticks_are_found_by_their_names(name: str, load: Any, measuring: Any) -> None:
    benchmark = load(name).BENCHMARK
    rows = [row for rows in benchmark.tables.values() for row in rows]
    known = [*(row.name for row in rows), *benchmark.yardsticks]
    assert len(known) == len(set(known))
    assert {row.against for row in rows} - {""} <= set(known)
    assert {row.unit for row in rows} <= set(measuring.UNITS)
    assert set(benchmark.yardsticks) <= {row.against for row in rows}


def test_the_page_begins_with_ten_rows(load: Any, measuring: Any) -> None:
    brief = load("brief")
    page = PAGE.read_text(encoding="utf-8")
    lines = [cells(line) for line in measuring.block(page, "brief").splitlines() if line.startswith("| ")]
    head, _, *rows = lines
    assert head == ["what is computed", "AVX-512", "share", "AVX2", "share", "share of"]
    assert [row[0] for row in rows] == list(brief.ROWS)
    assert len(rows) == 10
    assert all(cell for row in rows for cell in row)
    assert page.index("brief:") < page.index("\n## ")
    for row, name in zip(rows, brief.ROWS.values(), strict=True):
        assert row[-1] == (brief.row_of(name).against or "-")
        assert row[1].endswith(f" {brief.row_of(name).unit}")


def test_every_benchmark_of_rows_is_in_the_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.py") if "BENCHMARK = " in path.read_text(encoding="utf-8")} == set(
        NAMES
    )


def test_works_of_cliffs_run_and_count_what_they_do(load: Any, measuring: Any) -> None:
    cliffs = load("cliffs")
    assert measuring.product(cliffs.HALF, m=3, k=5, n=7, batch=2).run()[0].shape == (2, 3, 7)
    assert measuring.product(cliffs.HALF, m=3, k=5, n=7, batch=2).amount == 2 * 3 * 5 * 7
    assert cliffs.vecdot(cliffs.HALF, 3, 5).amount == 15
    codes, raised = measuring.product(cliffs.HALF, m=4, special=math.inf).run()
    assert (codes == 0x7C00).any() or (codes == 0xFC00).any()
    assert raised.shape == (4, 4)
    assert measuring.converted("float16", 100).run()[1].shape == (100,)


ROWS = [  # unit, yardstick, goal, figure, share, verdict
    ("G/s", "", 1.0, 1.0, None, "ok"),
    ("G/s", "", 1.0, 0.99, None, "below"),
    ("G/s", "sgemm", 0.5, 9.0, 0.5, "ok"),
    ("G/s", "sgemm", 0.5, 9.0, 0.49, "below"),
    ("µs", "", 15.0, 15.0, None, "ok"),
    ("µs", "", 15.0, 15.1, None, "above"),
    ("µs", "numpy", 0.5, 99.0, 0.6, "ok"),
    ("µs", "", None, 15.1, None, ""),
    ("µs", "", 15.0, None, None, ""),
]


@pytest.mark.parametrize(("unit", "against", "goal", "value", "share", "verdict"), ROWS)
def test_verdicts(measuring: Any, unit: str, against: str, goal: Any, value: Any, share: Any, verdict: str) -> None:
    row = measuring.Row("name", lambda: None, unit, against, goal)
    assert measuring.Figure(value, share).verdict(row) == verdict


def test_a_share_is_the_rate_over_that_of_the_yardstick(measuring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "fastest", lambda works, seconds: [work.run() for work in works])
    rows = (
        measuring.Row("fast", lambda: measuring.Work(lambda: 2.0, 4e9), "G/s", "slow"),
        measuring.Row("slow", lambda: measuring.Work(lambda: 10.0, 5e9), "G/s"),
        measuring.Row("call", lambda: measuring.Work(lambda: 3e-6), "µs", "yardstick"),
        measuring.Row("once", lambda: measuring.Work(lambda: 2.0**31, measured=True), "GiB"),
    )
    benchmark = measuring.Benchmark("made", {"table": rows}, {"yardstick": lambda: measuring.Work(lambda: 6e-6)})
    figures = [benchmark.measure(row, 0.0) for row in rows]
    assert [(x.value, x.share) for x in figures] == [
        (pytest.approx(2.0), pytest.approx(4.0)),
        (pytest.approx(0.5), None),
        (pytest.approx(3.0), pytest.approx(2.0)),
        (2.0, None),
    ]


def test_what_is_missing_is_said(measuring: Any) -> None:
    def prepare() -> Any:
        raise measuring.Missing("no such library")

    row = measuring.Row("name", prepare, "G/s", "yardstick", 0.5)
    found = measuring.Benchmark("made", {"table": (row,)}, {}).measure(row, 0.0)
    assert row.cells(found) == ("name", "no such library", "", "yardstick", "≥ 0.5", "")


def test_works_are_taken_in_turn_on_their_own_threads(measuring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    softfloat = measuring.softfloat
    order: list[tuple[str, int]] = []
    works = [
        measuring.Work(lambda n=name: order.append((n, softfloat.get_num_threads())), 1, threads)
        for name, threads in (("a", 1), ("b", 2))
    ]
    monkeypatch.setattr(measuring, "BATCH", 0.0)
    before = softfloat.get_num_threads()
    try:
        measuring.fastest(works, 1e-3)
    finally:
        softfloat.set_num_threads(before)
    assert {("a", 1), ("b", 2)} == set(order)
    turns = [name for i, (name, _) in enumerate(order) if not i or order[i - 1][0] != name]
    assert turns == ["a", "b"] * (len(turns) // 2)


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0123, "0.012"), (0.99, "0.99"), (1.26, "1.3"), (12.6, "13"), (42968.0, "42 968"), (0, "0"), (None, "")],
)
def test_two_digits_and_all_before_the_point(measuring: Any, x: Any, text: str) -> None:
    assert measuring.digits(x) == text


def test_only_the_block_is_replaced(measuring: Any, tmp_path: Path) -> None:
    start, end = measuring.markers("made")
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{start}\nold\n{end}\n\nafter\n", encoding="utf-8")
    for _ in range(2):
        measuring.write_block(page, "made", ["| new |"])
        assert page.read_text(encoding="utf-8") == f"before\n\n{start}\n\n| new |\n\n{end}\n\nafter\n"
    assert measuring.block(page.read_text(encoding="utf-8"), "made") == "| new |"


@pytest.mark.parametrize("text", ["", "{start}\n", "{end}\n{start}\n", "{start}\n{start}\n{end}\n"])
def test_a_page_without_the_block_is_refused(measuring: Any, text: str) -> None:
    start, end = measuring.markers("made")
    with pytest.raises(ValueError, match="a page must have one line"):
        measuring.block(text.format(start=start, end=end), "made")
