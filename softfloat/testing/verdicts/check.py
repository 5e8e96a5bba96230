"""Verdicts: results that another device computed, held against the right ones.

>>> import io
>>> from softfloat.testing.vectors.operations import resolve
>>> rows = io.BytesIO(b"3C00 1000 3C00 01\\n3C01 1000 3C01 01\\n")  # 1 + 2^-11; 1 + 2^-10 + 2^-11, truncated
>>> report = check_vectors(rows, resolve("f16_add"))
>>> report.rows, report.mismatches, report.classes, report.first[0].ulps
(2, 1, {'one ulp': 1}, 1)
>>> report.findings[0].name
'rounding toward_zero'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softfloat.checks import check_choice, check_count
from softfloat.status import Flags
from softfloat.testing.vectors.columns import Column
from softfloat.testing.vectors.files import UNSAID, File, Progress, described, read_vectors
from softfloat.testing.vectors.operations import Case
from softfloat.testing.vectors.text import Chunk, Layout, VectorError, format_rows
from softfloat.testing.verdicts.comparisons import (
    CLASSES,
    NAN_MODES,
    Codes,
    Comparison,
    Pair,
    classify,
    distances,
    is_nan,
    kappa_of,
)
from softfloat.testing.verdicts.diagnosis import NEARLY_ALL, Finding, Rows, diagnose
from softfloat.testing.verdicts.likeness import LOOKED_AT, Likeness, looks_like
from softfloat.testing.verdicts.regions import Region, regions
from softfloat.testing.verdicts.reports import Decoded, Mismatch, Report, decoded

__all__ = ["FLAG_MODES", "Checker", "check_vectors"]


FLAG_MODES = ("exact", "subset", "ignore")
WRONG_ROWS = 20_000  # at most so many, of rows that are wrong and of rows that are right, go to the diagnosis
RIGHT_ROWS = 16_384
SAMPLED_CODES = 1 << 21  # of operands, for dot products
FIRST = 10
INTEGER_RULES = ("x86", "arm")
"""Policies whose integers of NaN, and of numbers that do not fit, are not those of "canonical"."""

MOSTLY_WRONG = 0.5  # of the rows: then they may be of another operation
MOST_LIKENESSES = 3

REPORT_NOTE = "TestFloat's report of errors: it has no right rows, and the expected results in it are not looked at"
OTHER_NOTE = "the first line of the file says that it holds {}"
INTEGER_NOTE = "integers that NaN, infinities and numbers out of range become are those of the NaN policy {}"

ULP_STEPS = (1, 2, 4, 16, 256)
ULP_NAMES = ("1", "2-3", "4-15", "16-255", "256 and more")


class Sample:
    """Rows from all over a file, each as likely as the others, and no more than a given number."""

    def __init__(self, limit: int, seed: int) -> None:
        self.limit, self.random = limit, np.random.default_rng(seed)
        self.keys = np.empty(0)
        self.rows: list[tuple[Codes, Rows]] = []  # keys and rows of pieces
        self.bound, self.held = 1.0, 0

    def add(self, rows: Rows, count: int, chosen: Callable[[Codes], Codes]) -> None:
        """Offer rows; `chosen` turns places among the `count` offered into places in `rows`."""
        keys = self.random.random(count)
        places = np.flatnonzero(keys < self.bound)
        if not places.size:
            return
        self.rows.append((keys[places], rows.part(chosen(places))))
        self.held += places.size
        if self.held > 2 * self.limit:
            self._shrink()

    def _shrink(self) -> None:
        keys = np.concatenate([keys for keys, _ in self.rows])
        self.bound = float(np.partition(keys, self.limit)[self.limit])
        kept = [(keys[keys < self.bound], rows.part(keys < self.bound)) for keys, rows in self.rows]
        self.rows = [joined_pieces(kept)]
        self.held = len(self.rows[0][0])

    def taken(self) -> Rows | None:
        """The sample; None if nothing was offered."""
        if not self.rows:
            return None
        if self.held > self.limit:
            self._shrink()
        return joined_pieces(self.rows)[1]


def joined_pieces(pieces: Sequence[tuple[Codes, Rows]]) -> tuple[Codes, Rows]:
    """Pieces end to end."""
    rows = [x for _, x in pieces]

    def flags(found: Iterable[Codes | None]) -> Codes | None:
        some = [x for x in found if x is not None]
        return np.concatenate(some) if some else None

    joined = Rows(
        [np.concatenate(column) for column in zip(*(x.operands for x in rows), strict=True)],
        (np.concatenate([x.right[0] for x in rows]), np.concatenate([x.right[1] for x in rows])),
        (np.concatenate([x.found[0] for x in rows]), flags(x.found[1] for x in rows)),
    )
    return np.concatenate([keys for keys, _ in pieces]), joined


class Checker:
    """Chunks in, a report out; `report` can be asked at any time.

    Parameters are those of `check_vectors`.
    """

    def __init__(self, case: Case, flags: str = "exact", nan: str | None = None, first: int = FIRST) -> None:
        check_choice("flags", flags, FLAG_MODES)
        if nan is None:
            nan = "any" if case.environment.nan == "canonical" else "payload"
        check_choice("nan", nan, NAN_MODES)
        self.case, self.differ, self.shown = case, Comparison(case, flags, nan), check_count("first", first, 0)
        wide = sum(column.length or 1 for column in case.operands)
        limit = max(64, SAMPLED_CODES // wide)
        self.wrong, self.right = Sample(min(WRONG_ROWS, limit), 1), Sample(min(RIGHT_ROWS, limit), 2)
        self.rows = self.mismatches = self.wrong_results = self.wrong_flags = 0
        self.classes = np.zeros(len(CLASSES), np.int64)
        self.missing, self.extra = np.zeros(5, np.int64), np.zeros(5, np.int64)
        self.ulps = np.zeros(len(ULP_STEPS), np.int64)
        self.largest_ulps = 0
        self.first: list[Mismatch] = []
        self.kappa = 0.0
        self.sequences = [Late(self.differ), Sticky(self.differ)]
        integers = case.target.kind in ("signed", "unsigned") and case.operation.name == "convert"
        loose = integers and self.differ.nan == "any" and case.environment.nan == "canonical"
        self.others = [Checker(case.under(nan=name), flags, nan, first) for name in INTEGER_RULES] if loose else []
        """The same rows, held against other rules for what integers NaN and infinities become."""

    def feed(self, chunk: Chunk) -> None:
        """Check some rows."""
        for other in self.others:
            other.feed(chunk)
        right, right_flags = self.case.run(chunk.operands)
        wrong, flags_wrong = self.differ((right, right_flags), (chunk.results, chunk.flags))
        self.rows += len(chunk)
        for sequence in self.sequences:
            sequence.feed((right, right_flags), (chunk.results, chunk.flags))
        rows = Rows(chunk.operands, (right, right_flags), (chunk.results, chunk.flags))
        bad = wrong | flags_wrong
        if not bad.any():
            self.right.add(rows, len(chunk), lambda places: places)
            return
        good = np.flatnonzero(~bad)
        self.right.add(rows, good.size, lambda places: good[places])
        places = np.flatnonzero(bad)
        self.wrong.add(rows, places.size, lambda chosen: places[chosen])
        self._count(rows.part(places), chunk.lines[places], wrong[places], flags_wrong[places])

    def _count(self, rows: Rows, lines: Codes, wrong: Codes, flags_wrong: Codes) -> None:
        (right, right_flags), (results, flags) = rows.right, rows.found
        self.mismatches += len(rows)
        self.wrong_results += int(wrong.sum())
        self.wrong_flags += int(flags_wrong.sum())
        kinds = classify(self.case, right, right_flags, results, wrong)
        self.classes += np.bincount(kinds, minlength=len(CLASSES))
        if flags is not None:
            for bit in range(5):
                self.missing[bit] += int((flags_wrong & (right_flags & ~flags) >> bit & 1 != 0).sum())
                self.extra[bit] += int((flags_wrong & (flags & ~right_flags) >> bit & 1 != 0).sum())
        number = self.case.target
        measured = np.zeros(len(rows), bool)
        far = distances(right, results, number)
        if number.kind not in ("bool", "flags") and self.case.operation.result != "class":
            measured = wrong & ~is_nan(right, number) & ~is_nan(results, number) & (far > 0)
            if measured.any():
                steps = np.searchsorted(np.array(ULP_STEPS, np.uint64), far[measured], "right") - 1
                self.ulps += np.bincount(steps, minlength=len(ULP_STEPS))
                self.largest_ulps = max(self.largest_ulps, int(far[measured].max()))
            if wrong.any():
                self.kappa = float(np.maximum(self.kappa, kappa_of(right[wrong], results[wrong], number).max()))
        for i in range(min(self.shown - len(self.first), len(rows))):
            ulps = int(far[i]) if measured[i] else None
            self.first.append(self._mismatch(rows, i, int(lines[i]), CLASSES[kinds[i]], ulps))

    def _mismatch(self, rows: Rows, i: int, line: int, kind: str, ulps: int | None) -> Mismatch:
        (right, right_flags), (results, flags) = rows.right, rows.found
        looked_at = flags is not None and self.differ.flags != "ignore"
        return Mismatch(
            line,
            kind,
            tuple(
                x
                for column, codes in zip(self.case.operands, rows.operands, strict=True)
                for x in _spelled(column, codes[i])
            ),
            decoded("expected", int(right[i]), self.case.target),
            decoded("actual", int(results[i]), self.case.target),
            Flags(int(right_flags[i])) if looked_at else None,
            Flags(int(flags[i])) if looked_at and flags is not None else None,
            ulps,
        )

    def report(
        self,
        malformed: Sequence[tuple[int, str]] = (),
        failure: str = "",
        interrupted: bool = False,
        causes: bool = True,
    ) -> Report:
        """What is known by now; with `causes`, also why rows are wrong."""
        for other in self.others:
            if (
                self.mismatches
                and other.mismatches < self.mismatches
                and not other.classes[CLASSES.index("invalid integer")]
            ):
                found = other.report(malformed, failure, interrupted, causes)
                return replace(found, title=self.case.title, note=INTEGER_NOTE.format(other.case.environment.nan))
        findings: list[Finding] = []
        shared: list[Region] = []
        explained, wrong = 0.0, self.wrong.taken()
        if causes and wrong is not None:
            right = self.right.taken()
            findings, explained = diagnose(
                self.case, wrong, wrong.part(slice(0)) if right is None else right, self.differ
            )
            sequences = [x for x in (s.finding(self.mismatches) for s in self.sequences) if x is not None]
            if sequences and not any(x.named and x.share >= NEARLY_ALL for x in findings):
                findings, explained = sequences, sequences[0].share
            if right is not None and not any(x.named for x in findings):
                shared = regions(self.case, wrong, right)
        if not self.rows and not failure and not malformed and not interrupted:
            failure = "there are no rows"
        names = [str(flag.name) for flag in Flags]
        counted = lambda names, counts: {n: int(c) for n, c in zip(names, counts, strict=True) if c}  # noqa: E731
        return Report(
            title=self.case.title,
            flags=self.differ.flags,
            nan=self.differ.nan,
            rows=self.rows,
            mismatches=self.mismatches,
            wrong_results=self.wrong_results,
            wrong_flags=self.wrong_flags,
            classes=counted(CLASSES, self.classes),
            missing_flags=counted(names, self.missing),
            extra_flags=counted(names, self.extra),
            ulps=counted(ULP_NAMES, self.ulps),
            largest_ulps=self.largest_ulps,
            first=tuple(self.first),
            findings=tuple(findings),
            explained=explained,
            diagnosed=0 if wrong is None else len(wrong),
            kappa=self.kappa,
            regions=tuple(shared),
            likenesses=tuple(self._likenesses(findings)) if causes else (),
            malformed=tuple(malformed),
            failure=failure,
            interrupted=interrupted,
        )

    def _likenesses(self, findings: Sequence[Finding]) -> list[Likeness]:
        """What the rows look like, if most of them are wrong and nobody knows why."""
        case, wrong, right = self.case, self.wrong.taken(), self.right.taken()
        if wrong is None or self.mismatches < MOSTLY_WRONG * self.rows or any(x.named for x in findings):
            return []
        if case.blocks is not None or case.operation.result == "sum":
            return []
        share = LOOKED_AT * self.mismatches // self.rows
        lines: list[list[str]] = []
        for rows, most in ((wrong, share), (right, LOOKED_AT - share)):
            if rows is not None and most:
                part = rows.part(slice(None, None, max(1, len(rows) // most)))
                arrays = [*part.operands, part.found[0], *([] if part.found[1] is None else [part.found[1]])]
                text = format_rows(Layout(case.columns[: len(arrays)]), arrays).decode()
                lines += [line.split() for line in text.splitlines()]
        return looks_like(lines, case)[:MOST_LIKENESSES]


def _spelled(column: Column, codes: Any) -> list[Decoded]:
    if column.length is None:
        return [decoded(column.name, int(codes), column.number)]
    return [decoded(f"{column.name}{i}", int(code), column.number) for i, code in enumerate(codes)]


class Late:
    """A mistake that only the order of rows tells: results, and flags, of the row before."""

    name, meaning = "late by one row", "results and flags are those of the row before"

    def __init__(self, differ: Comparison) -> None:
        self.differ = differ
        self.last: tuple[Codes, Codes] | None = None
        self.broken = False
        self.rows = 0

    def feed(self, right: tuple[Codes, Codes], found: Pair) -> None:
        """Look at some rows."""
        if self.broken:
            return
        before = self.last or (found[0][:1], right[1][:1] if found[1] is None else found[1][:1])
        late = tuple(np.concatenate([first, rest[:-1]]) for first, rest in zip(before, right, strict=True))
        wrong, flags_wrong = self.differ((late[0], late[1]), found)
        self.broken = bool((wrong | flags_wrong).any())
        self.rows += len(wrong)
        self.last = right[0][-1:], right[1][-1:]

    def finding(self, mismatches: int) -> Finding | None:
        """What it explains: everything or nothing."""
        if self.broken or self.rows < 3 or not mismatches:
            return None
        return Finding(self.name, self.meaning, 1.0, 1.0, 0, True)


class Sticky(Late):
    """The other one: flags that nobody lowers."""

    name, meaning = "sticky flags", "flags are never lowered: those of all rows before are added"

    def feed(self, right: tuple[Codes, Codes], found: Pair) -> None:
        """Look at some rows."""
        if self.broken or found[1] is None:
            self.broken = True
            return
        flags = right[1].copy()
        if self.last is not None:
            flags[:1] |= self.last[1]
        sticky = np.bitwise_or.accumulate(flags)
        wrong, flags_wrong = self.differ((right[0], sticky), found)
        self.broken = bool((wrong | flags_wrong).any())
        self.rows += len(wrong)
        self.last = right[0][-1:], sticky[-1:]


def check_vectors(
    file: File | Iterable[Chunk],
    case: Case | None = None,
    *,
    flags: str = "exact",
    nan: str | None = None,
    first: int = FIRST,
    causes: bool = True,
    progress: Progress | None = None,
    interruptible: bool = False,
) -> Report:
    """Hold the rows of a file against the right results.

    Parameters
    ----------
    file : path, "-", binary stream, or iterable of Chunk
        As `read_vectors` takes it, or what it yields.
    case : Case, optional
        What the columns are, and how results are rounded; by default what the file says by its first line, or as an error report
        of TestFloat.
    flags : {"exact", "subset", "ignore"}
        How flags are compared: all; those that are raised must be right; not at all, and the file need not have them.
    nan : {"any", "canonical", "payload"}, optional
        How NaN results are compared: quiet ones are all the same; they must be the format's canonical one; to the bit
        as the environment's NaN policy says. Default "any", and "payload" where the policy is not "canonical".
    first : int
        How many mismatches are described.
    causes : bool
        Look for known mistakes that explain what is wrong.
    progress : callable, optional
        As of `read_vectors`.
    interruptible : bool
        Report after Ctrl-C what was checked so far; otherwise KeyboardInterrupt goes on.

    Returns
    -------
    Report
        Malformed lines and damage are in it, not raised.

    Raises
    ------
    ValueError, TypeError
        For the arguments, naming what is accepted.
    OSError
        If the file cannot be read.
    """
    is_file = isinstance(file, (str, bytes)) or hasattr(file, "read") or hasattr(file, "__fspath__")
    malformed: list[tuple[int, str]] = []
    failure, note, interrupted = "", "", False
    rows: Sequence[list[str]] = ()
    if is_file:
        file, said, how, rows, trouble = described(file)  # type: ignore[arg-type]
        if case is None and trouble:
            raise VectorError(trouble)
        if how == "report":
            note = REPORT_NOTE
        elif case is not None and said is not None and said.title != case.title:
            note = OTHER_NOTE.format(said.title)
        else:
            note = trouble
        case = said if case is None else case
    if case is None:
        likely = looks_like(rows, enough=MOSTLY_WRONG)[:MOST_LIKENESSES]
        raise VectorError(UNSAID + "".join(f"; it looks like {x.case.title}: {x.options}" for x in likely))
    checker = Checker(case, flags, nan, first)
    try:
        chunks: Any = file
        if is_file:
            chunks = read_vectors(file, case, flags=flags != "ignore", malformed=malformed, progress=progress)  # type: ignore[arg-type]
        for chunk in chunks:
            checker.feed(chunk)
    except VectorError as error:
        failure = str(error)
    except KeyboardInterrupt:
        if not interruptible:
            raise
        interrupted = True
    report = checker.report(malformed, failure, interrupted, causes)
    if malformed and not report.rows and causes:
        report = replace(report, likenesses=tuple(looks_like(rows, case)[:MOST_LIKENESSES]))
    return replace(report, note="; ".join(x for x in (note, report.note) if x))
