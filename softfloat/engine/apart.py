"""Outputs of a product with infinities or NaNs among their operands: they go the plain way alone, from where they have to, or are NaN at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program

MOST = 1 / 8
"""Of rows, and of columns, that are done by themselves."""


class Entered(NamedTuple):
    """Values of operands, in the order they came; those of c, and c's codes, both empty without one."""

    a: Codes
    b: Codes
    c: Codes
    codes_of_c: Codes


class Specials(NamedTuple):
    """Infinities and NaNs of an operand: of which product and which output each is, and what."""

    products: Codes
    outputs: Codes
    values: Codes

    def put(self, panels: Codes) -> None:
        """To panels (planes, panels, k, size) of numbers, which have zeros in their places."""
        size = panels.shape[-1]
        panels[0, self.outputs // size, self.products, self.outputs % size] = self.values


def without_specials(planned: Program, codes: Codes, values: Codes, axis: int) -> tuple[Codes, Specials]:
    """(codes of an operand, whose products lie along an axis, with zeros for infinities and NaNs; these, as loops take products)."""
    special = ~np.isfinite(values)
    places = np.nonzero(special)
    products, order = places[axis], planned.order
    if order.size:
        turns = np.zeros(planned.products, np.int64)
        turns[order[order >= 0]] = np.flatnonzero(order >= 0)
        products = turns[products]
    cut = np.where(special, codes.dtype.type(0), codes) if products.size else codes
    return cut, Specials(products, places[1 - axis], values[places])


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
    apart = how.tree or how.store or how.reduction or how.chains > 1
    return planned.kind == dots().EXACT and planned.is_plain and planned.index is None and not apart


def may_begin_anywhere(planned: Program) -> bool:
    """Whether products of zero leave a running sum and its flags as they are, so that one may stop at any and go on from there."""
    how, kinds = planned.accumulator, (dots().FUSED, dots().ROUNDED)
    apart = how.tree or how.store or how.reduction or how.chains > 1
    return planned.kind in kinds and planned.is_plain and planned.index is None and not apart


def few(planned: Program, entered: Entered) -> list[tuple[Codes, Codes]] | None:
    """Parts of a grid, rows and columns of each, that hold all infinities and NaNs, if these are few; where roundings draw, of neighbours."""
    special = [~np.isfinite(x) for x in entered[:3]]
    rows, columns = special[0].any(axis=1), special[1].any(axis=0)
    if special[2].size:
        rows = rows | special[2].any(axis=1)
    shares = rows.mean(), columns.mean()
    if not 0 < max(shares) <= MOST:
        return None

    def numbers(some: Codes) -> list[Codes]:
        found = np.flatnonzero(some)
        return np.split(found, np.flatnonzero(np.diff(found) > 1) + 1) if planned.draws else [found]

    others = np.arange(rows.size) if planned.draws else np.flatnonzero(~rows)
    parts = [(some, np.arange(columns.size)) for some in numbers(rows)]
    return [x for x in (*parts, *((others, some) for some in numbers(columns))) if x[0].size and x[1].size]
