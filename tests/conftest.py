"""What every test shares: the `--exhaustive` switch, outside data, and what is counted for the table of conformance."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import tallies

from softfloat.engine import elementwise

os.environ.setdefault("OMP_NUM_THREADS", "1")  # PyTorch's threads that wait for each other keep other workers waiting
os.environ.pop("COLUMNS", None)  # commands would break lines, and what tests look for in them

FEW_COLLECTIONS = (20_000, 20, 20)
"""Thresholds of the garbage collector: oracles make numbers by the million, hardly any of which ends in a circle."""

FEW_EXAMPLES = 100
"""Of Hypothesis, where a test asks for no other number: without --exhaustive they are the same in each run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="also run the tests over whole operand spaces (minutes)")
    scheduler = "what runs whole operand spaces: threads, processes, or the address of a Dask cluster's scheduler"
    parser.addoption("--scheduler", metavar="NAME", help=scheduler)
    parser.addoption("--conformance-table", metavar="FILE", help="write what the conformance tests tried, as Markdown")
    parser.addoption(
        "--conformance-counts", metavar="FILE", help="what other runs tried, to which this one adds its own"
    )


def _diagonal(item: pytest.Item, case: int) -> int:
    """Where a test's case lies across its parametrizations: the sum of its places among the values of each."""
    found = 0
    for mark in reversed([*item.iter_markers("parametrize")]):  # the outermost varies fastest
        case, place = divmod(case, len(mark.args[1]))
        found += place
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    cases: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        left_out = item.get_closest_marker("exhaustive") is not None
        for sampled in item.iter_markers("sampled"):
            test = item.nodeid.partition("[")[0]
            left_out |= _diagonal(item, cases[test]) % sampled.args[0] > 0
            cases[test] += 1
        (others if left_out else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=others)
    config.stash[LEFT_OUT] = len(others)


@pytest.hookimpl(trylast=True)  # after Hypothesis's own
def pytest_sessionstart() -> None:
    """Hypothesis registers NumPy's generator, which it misses once that is frozen, by a search of all objects, of which there are few yet."""
    hypothesis.find(hypothesis.strategies.none(), lambda _: True)


def pytest_collection_finish() -> None:
    """What collecting made, PyTorch's modules and thousands of tests, stays; the garbage collector need not look at it each time."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(*FEW_COLLECTIONS)


def pytest_runtest_teardown() -> None:
    """Dask's threads can leave the garbage collector off, and all tests after theirs would keep their garbage."""
    gc.enable()


@pytest.fixture(scope="module")
def by_one_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """For tests of what is asked of many sums, not of how they are summed: the plain loop serves all of them, the faster ones are compiled for
    each, and others hold them against it. With --exhaustive all go as ever."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--exhaustive"):
            patch.setattr(elementwise, "FAST", False)
        yield


@pytest.fixture
def spread(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[int], Any], int], list[Any]]]:
    """spread(work, count): what work gives for 0 to count - 1, by the scheduler that --scheduler names, else one after the other."""
    name = request.config.getoption("--scheduler")
    if name is None:
        yield lambda work, count: [work(number) for number in range(count)]
        return
    pytest.importorskip("dask.array", reason="--scheduler needs the extra 'dask'")
    import cloudpickle
    import digests

    from softfloat import dask

    if ":" in name:  # machines that do not have the tests
        cloudpickle.register_pickle_by_value(digests)
    with dask.scheduled(name) as options:
        yield lambda work, count: dask.sweep_tasks(work, count, request.node.nodeid, **options)


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of outside data that SOFTFLOAT_VECTORS names."""
    folder = os.environ.get("SOFTFLOAT_VECTORS")
    if not folder:
        pytest.skip("SOFTFLOAT_VECTORS names no folder of test vectors")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"SOFTFLOAT_VECTORS={folder} is no folder")
    return path


# -- conformance -----------------------------------------------------------------------------------------------------

LEFT_OUT = pytest.StashKey[int]()
COUNTS = pytest.StashKey[tallies.Counts]()
FROM_WORKERS = pytest.StashKey[list[tallies.Counts]]()


class HalfImported:
    """A module that lacks a package stays imported by half where pytest looks for its examples; whoever imports it later must see what is missing.

    A plugin of its own, because hooks of this file are asked about tests/ alone.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, pytest.CollectReport]:
        report: pytest.CollectReport = yield
        if report.skipped:
            path = collector.path.relative_to(collector.config.rootpath)
            parts = [*path.parts[:-1], *([] if path.stem == "__init__" else [path.stem])]
            for count in range(len(parts), 1, -1):
                name, parent = ".".join(parts[:count]), sys.modules.get(".".join(parts[: count - 1]))
                if parent is not None and vars(parent).get(parts[count - 1]) is not sys.modules.get(name):
                    sys.modules.pop(name, None)
        return report


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(HalfImported())
    gc.disable()  # until everything is collected
    known = hypothesis.settings()  # those of the profile in force
    examples = 2000 if config.getoption("--exhaustive") else FEW_EXAMPLES
    hypothesis.settings.register_profile(
        "here",
        parent=known,
        deadline=None,  # how long an example takes says nothing on a busy machine
        max_examples=examples,
        derandomize=not config.getoption(
            "--exhaustive"
        ),  # others would need other loops, which take longest to compile
        database=None,
    )
    hypothesis.settings.load_profile("here")
    config.stash[COUNTS], config.stash[LEFT_OUT] = {}, 0
    config.stash[FROM_WORKERS] = []


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[tallies.Tally]:
    """tally(operation, format, rounding, cases, mismatches): counted under the test's marker `conformance(source)`."""
    (source,) = request.node.get_closest_marker("conformance").args
    counts, seen = request.config.stash[COUNTS], []

    def record(operation: str, fmt: object, rounding: object, cases: int, wrong: int = 0) -> None:
        seen.append(cases)
        tallies.add(counts, (source, operation, str(fmt), str(rounding)), int(cases), int(wrong))

    yield record
    assert sum(seen), "a conformance test compared nothing"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        counts = session.config.stash[COUNTS]
        session.config.workeroutput["conformance"] = [[*key, *value] for key, value in counts.items()]
        session.config.workeroutput["left out"] = session.config.stash[LEFT_OUT]


class Workers:
    """Where pytest-xdist runs the tests, their counts come from the workers.

    Each worker takes one half of them, so that hardly any file's loops are loaded twice; who is done takes from who is not.
    """

    @staticmethod
    def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
        from xdist.scheduler import WorkStealingScheduling

        return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None

    @staticmethod
    def pytest_testnodedown(node: Any) -> None:
        told = getattr(node, "workeroutput", {})
        rows = told.get("conformance", [])
        node.config.stash[FROM_WORKERS].append({tuple(row[:4]): tuple(row[4:]) for row in rows})
        node.config.stash[LEFT_OUT] = max(node.config.stash[LEFT_OUT], told.get("left out", 0))


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    if manager.hasplugin("dsession") and not manager.hasplugin("conformance-workers"):
        manager.register(Workers(), "conformance-workers")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[LEFT_OUT]:
        terminalreporter.write_line(f"{config.stash[LEFT_OUT]} cases are left out: they need --exhaustive")
    counts = tallies.merge([config.stash[COUNTS], *config.stash[FROM_WORKERS]])
    path, kept = config.getoption("--conformance-table"), config.getoption("--conformance-counts")
    if kept and not hasattr(config, "workerinput"):  # of a worker, whose counts the others' process has
        counts = tallies.kept_with(Path(kept), counts)
    if path:
        Path(path).write_text(tallies.page(counts), encoding="utf-8")
    if counts and (path or "conformance" in (config.getoption("-m") or "")):
        terminalreporter.section("conformance")
        for line in tallies.summary(counts):
            terminalreporter.write_line(line)
