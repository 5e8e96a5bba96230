"""Outputs of a product with infinities or NaNs among their operands: they go the plain way alone, from where they have to, or are NaN at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program

MOST = 1 / 8  # of the outputs, where these are done whole


class Entered(NamedTuple):
    """Values of operands, in the order they came; those of c, and c's codes, both empty without one."""

    a: Codes
    b: Codes
    c: Codes
    codes_of_c: Codes


class Void(NamedTuple):
    """From which product on rows of a, and columns of b, have NaNs, or what else is done apart; k where they do not.

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
    from there on, and so are its flags, unless products raise their own."""
    if not _is_quiet(planned) or planned.kind == dots().ROUNDED or planned.converts:
        return None
    if not (may_begin_anywhere(planned) or _has_exact_blocks(planned)):
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
    how, kinds = planned.accumulator, (dots().FUSED, dots().ROUNDED)
    apart = how.tree or how.store or how.reduction or how.chains > 1
    return planned.kind in kinds and planned.is_plain and planned.index is None and not apart


def of(planned: Program, a: Codes, b: Codes, c: Codes) -> tuple[Codes, Void] | None:
    """(from which product on each output's sum has numbers that the faster loops do not take, or past its last block; where rows and columns have
    them); from the first one on, if sums may begin anywhere. None if there are none, or if too many outputs are to be done whole."""
    k, anywhere = len(b), may_begin_anywhere(planned)
    if not k:
        return None

    def begins(x: Codes) -> Codes:
        finite = np.isfinite(x)
        return np.where(finite.all(axis=0), k, finite.argmin(axis=0) if anywhere else 0)

    void = Void(begins(a.T), begins(b), k)
    found = np.minimum.outer(void.row_begins, void.column_begins)
    if c.size:
        found[~np.isfinite(c)] = 0
    share = (found < k).mean()
    return (np.where(found == k, planned.stores.size, found), void) if 0 < share <= (1 if anywhere else MOST) else None
