"""Rows and columns of a product that have infinities or NaNs: they go the plain way alone, as far as they have to, or are NaN at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.problems import Problem
from softfloat.engine.programs import Program

MOST = 1 / 8  # of the outputs


class Entered(NamedTuple):
    """Values of operands, in the order they came; those of c, and c's codes, both empty without one."""

    a: Codes
    b: Codes
    c: Codes
    codes_of_c: Codes


class Apart(NamedTuple):
    """Rows of a or c, and columns of b, that have numbers the faster loops do not take, and from which product on."""

    rows: Codes
    columns: Codes
    row_begins: Codes
    column_begins: Codes
    outputs: int  # of a column

    def without(self, a: Codes, b: Codes, c: Codes) -> tuple[Codes, Codes, Codes]:
        """The operands with zeros there."""
        if self.rows.size:
            a, c = a.copy(), c.copy()
            for row, begin in zip(self.rows, self.row_begins, strict=True):
                a[row, begin:] = 0.0
        if self.columns.size:
            b = b.copy()
            for column, begin in zip(self.columns, self.column_begins, strict=True):
                b[begin:, column] = 0.0
        if self.rows.size and c.size:
            c[self.rows[self.row_begins == 0]] = 0.0
        return a, b, c

    def parts(self, problem: Problem, entered: Entered) -> Iterator[tuple[tuple[Any, Any], int, Problem, Entered]]:
        """Each as a problem of its own: where its outputs go, its first product, and from there on its operands.

        A column's operands are paired, for its outputs stand side by side.
        """
        index, row_stride, column_stride = problem.index, problem.row_stride, problem.column_stride
        for i, begin in zip(self.rows.tolist(), self.row_begins.tolist(), strict=True):
            row = slice(i, i + 1)
            start = None if problem.c is None else problem.c[row]
            a, b = problem.a[row, begin:], problem.b[begin:]
            part = Problem(a, b, start, False, index + i * row_stride, row_stride, column_stride)
            rest = entered.c[row], entered.codes_of_c[row]
            yield (i, slice(None)), begin, part, Entered(entered.a[row, begin:], entered.b[begin:], *rest)
        for j, begin in zip(self.columns.tolist(), self.column_begins.tolist(), strict=True):
            column = slice(j, j + 1)
            start = None if problem.c is None else problem.c[:, column].T
            a, b = problem.a.T[begin:], problem.b[begin:, column].repeat(self.outputs, axis=1)
            part = Problem(a, b, start, True, index + j * column_stride, 0, row_stride)
            values = entered.b[begin:, column].repeat(self.outputs, axis=1)
            beside = (np.ascontiguousarray(x[:, column].T) for x in (entered.c, entered.codes_of_c))
            yield (slice(None), j), begin, part, Entered(entered.a.T[begin:], values, *beside)


def of(a: Codes, b: Codes, c: Codes, anywhere: bool) -> Apart | None:
    """What to do apart, if it is a small part; from its first special number on, if sums may begin `anywhere`."""
    with np.errstate(invalid="ignore", over="ignore"):  # a sum tells of all its terms, at a quarter of the time
        rows = ~np.isfinite(a.sum(axis=1))
        special_c = ~np.isfinite(c.sum(axis=1)) if c.size else np.zeros(rows.size, bool)
        columns = ~np.isfinite(b.sum(axis=0))
    if not 0 < (rows | special_c).mean() + columns.mean() <= MOST:
        return None
    of_rows, of_columns = np.flatnonzero(rows | special_c), np.flatnonzero(columns)
    row_begins, column_begins = np.zeros(of_rows.size, np.int64), np.zeros(of_columns.size, np.int64)
    if anywhere:
        row_begins = np.where(special_c[of_rows], 0, np.argmin(np.isfinite(a[of_rows]), axis=1))
        # what row and column share must not have lost a product to the row's zeros
        column_begins = np.minimum(
            np.argmin(np.isfinite(b[:, of_columns]), axis=0), min(row_begins, default=b.shape[0])
        )
    return Apart(of_rows, of_columns, row_begins, column_begins, rows.size)


class Void(NamedTuple):
    """From which product on rows of a, and columns of b, make NaNs of their outputs' sums, whatever comes; k where they do not.

    Of paired operands there are no rows, and columns are those of both.
    """

    row_begins: Codes
    column_begins: Codes
    k: int

    def _where(self, rows: Codes, columns: Codes) -> Codes:
        return rows[:, np.newaxis] | columns if rows.size else columns[np.newaxis]

    @property
    def outputs(self) -> Codes:
        """Whether each is a NaN."""
        return self._where(self.row_begins < self.k, self.column_begins < self.k)

    @property
    def untouched(self) -> Codes:
        """Whether nothing is added to an output's addend before."""
        return self._where(self.row_begins == 0, self.column_begins == 0)

    def without(self, a: Codes, b: Codes) -> tuple[Codes, Codes]:
        """Codes with zeros there."""
        if self.row_begins.size:
            return _cut(a.T, self.row_begins).T, _cut(b, self.column_begins)
        return _cut(a, self.column_begins), _cut(b, self.column_begins)


def _cut(codes: Codes, begins: Codes) -> Codes:
    """Columns of codes with zeros from somewhere on."""
    columns = np.flatnonzero(begins < len(codes))
    if columns.size:
        codes = codes.copy(order="K")
        kept = np.arange(len(codes))[:, np.newaxis] < begins[columns]
        codes[:, columns] = np.where(kept, codes[:, columns], 0)
    return codes


def _beginning(begins: tuple[Codes, Codes], k: int, paired: bool) -> Void | None:
    """Where rows and columns begin to be NaN, as a `Void` if any do."""
    first, second = begins
    if not ((first < k).any() or (second < k).any()):
        return None
    return Void(first[:0], np.minimum(first, second), k) if paired else Void(first, second, k)


def nothing_but_nan(planned: Program, a: Codes, b: Codes, paired: bool) -> Void | None:
    """Rows and columns that hold nothing but NaNs. No accumulator rounds anything on their way, but c by zeros that stand before all products."""
    filled = planned.index is not None and bool((planned.index[: planned.block or None] < 0).all())
    if filled or not (a.size and b.size and _is_quiet(planned)):
        return None
    k = len(b)

    def begins(x: Codes) -> Codes:
        found = np.isnan(x[0])
        found[found] = np.isnan(x[:, found]).all(axis=0)
        return np.where(found, 0, k)

    return _beginning((begins(a if paired else a.T), begins(b)), k, paired)


def nan_from_somewhere(planned: Program, a: Codes, b: Codes, c: Codes, paired: bool) -> Void | None:
    """Rows and columns with NaNs, where nothing is infinite: up to the first NaN, or the block that it is in, a sum is what it is with zeros
    from there on, and so are its flags."""
    if not _is_quiet(planned) or not (may_begin_anywhere(planned) or _has_exact_blocks(planned)) or planned.converts:
        return None
    if np.isinf(a).any() or np.isinf(b).any() or not np.isfinite(c).all():
        return None
    k, block = len(b), planned.block or len(b)

    def begins(x: Codes) -> Codes:
        nan = np.isnan(x)
        return np.where(nan.any(axis=0), nan.argmax(axis=0) // block * block, k)

    return _beginning((begins(a if paired else a.T), begins(b)), k, paired)


def _is_quiet(planned: Program) -> bool:
    """Whether a quiet NaN among the terms makes the one NaN there is of the result, and raises nothing."""
    how, policies = planned.accumulator, [site.rule.policy for site in planned.sites.values()]
    if how.fixed is not None or how.compensation is not None:
        return False
    if any(policy.propagate or policy.any_nan_signals for policy in policies):  # a stage has its own format's
        return False
    scales = any(level.scaling for level in how.reduction)
    formats = (*planned.formats, planned.partials, planned.output, *(site.format for site in planned.sites.values()))
    return not scales and all(fmt.has_nan and fmt.zero for fmt in formats)


def _has_exact_blocks(planned: Program) -> bool:
    """Whether exact sums of blocks are added one after another."""
    how = planned.accumulator
    apart = how.tree or how.reduction or how.chains > 1
    return planned.kind == dots().EXACT and planned.is_plain and planned.index is None and not apart


def may_begin_anywhere(planned: Program) -> bool:
    """Whether products of zero leave a running sum and its flags as they are, so that one may stop at any and go on from there."""
    how = planned.accumulator
    apart = how.tree or how.store or how.reduction or how.chains > 1
    return planned.kind == dots().FUSED and planned.is_plain and planned.index is None and not apart


def after(planned: Program, begin: int) -> Program:
    """The rest of a sum that may begin anywhere."""
    return replace(
        planned,
        length=planned.length - begin,
        products=planned.products - begin,
        stores=planned.stores[begin:],
        closes=planned.closes[begin:],
        begun={dots().RUNNING: begin},
    )
