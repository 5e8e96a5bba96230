"""What the conformance tests tried: counted in every worker, put together at the end, written as a table.

A test marked `conformance("source")` tells the fixture `tally` how many cases of which operation, format and rounding it
compared, and how many differed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from softfloat.markup import grouped

Key: TypeAlias = tuple[str, str, str, str]
"""(source, operation, format, rounding)."""
Counts: TypeAlias = dict[Key, tuple[int, int]]
"""Cases and mismatches."""
Tally: TypeAlias = Callable[..., None]

LIVE = "this machine's instructions"
"""A source whose cases depend on the machine, and so are not in the page."""


def add(counts: Counts, key: Key, cases: int, wrong: int) -> None:
    """Count some cases."""
    before, failed = counts.get(key, (0, 0))
    counts[key] = before + cases, failed + wrong


def merge(parts: Iterable[Counts]) -> Counts:
    """The counts of several workers."""
    whole: Counts = {}
    for part in parts:
        for key, (cases, wrong) in part.items():
            add(whole, key, cases, wrong)
    return whole


def kept_with(path: Path, counts: Counts) -> Counts:
    """Counts with those that a file has of other runs, where they are kept."""
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    whole = merge([{tuple(row[:4]): tuple(row[4:]) for row in rows}, counts])
    path.write_text(json.dumps([[*key, *found] for key, found in whole.items()]), encoding="utf-8")
    return whole


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def summary(counts: Counts) -> list[str]:
    """A line for each source, and one for all: Markdown."""
    sources: dict[str, list[Key]] = defaultdict(list)
    for key in sorted(counts):
        if key[0] != LIVE:
            sources[key[0]].append(key)
    rows = []
    for source, keys in sources.items():
        operations, formats, modes = (len({key[i] for key in keys}) for i in (1, 2, 3))
        cases, wrong = (sum(counts[key][i] for key in keys) for i in (0, 1))
        rows.append((source, str(operations), str(formats), str(modes), grouped(cases), grouped(wrong)))
    kept = [key for keys in sources.values() for key in keys]
    cases, wrong = (sum(counts[key][i] for key in kept) for i in (0, 1))
    rows.append(("all", "", "", "", grouped(cases), grouped(wrong)))
    return _table(("held against", "operations", "formats", "roundings", "cases", "mismatches"), rows)


MOST_NAMED = 32


def listed(names: list[str]) -> str:
    """Names, or how many there are."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{len(names)} from {names[0]} to {names[-1]}"


def details(counts: Counts) -> list[str]:
    """A line for each source and operation: Markdown."""
    rows: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for key in sorted(counts):
        if key[0] != LIVE:
            rows[key[0], key[1]].append(key)
    table = []
    for (source, operation), keys in rows.items():
        formats, modes = (listed(sorted({key[i] for key in keys})) for i in (2, 3))
        cases, wrong = (grouped(sum(counts[key][i] for key in keys)) for i in (0, 1))
        table.append((source, operation, formats, modes, cases, wrong))
    return _table(("held against", "operation", "formats", "roundings", "cases", "mismatches"), table)


INTRODUCTION = """# Conformance

What the tests hold against sources outside this project, and how many cases differ. `python -m pytest -m conformance --conformance-table
docs/conformance.md` makes this page; `SOFTFLOAT_VECTORS` names the folder of outside data. `--exhaustive` and `softfloat hardware` add whole operand
spaces and this machine's own instructions."""


def page(counts: Counts) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, "", *summary(counts), "", *details(counts)]) + "\n"
