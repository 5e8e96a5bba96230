"""Rows and columns of a product that have infinities or NaNs: they go the plain way alone, as far as they have to."""

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
