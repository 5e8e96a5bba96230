"""Outputs of a product with infinities or NaNs among their operands: few rows and columns by themselves, sums in order by what these meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program
from softfloat.kernels.spec import InfiniteInput, Overflow

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
    """From which product on rows of a, and columns of b, have infinities or NaNs, or the block that it is in; k where they have none.

    Of paired operands there are no rows, and columns are those of both.
    """

    row_begins: Codes
    column_begins: Codes
    k: int

    def _where(self, rows: Codes, columns: Codes) -> Codes:
        return rows[:, np.newaxis] | columns if rows.size else columns[np.newaxis]

    @property
    def outputs(self) -> Codes:
        """Whether each is infinite or a NaN."""
        return self._where(self.row_begins < self.k, self.column_begins < self.k)

    @property
    def untouched(self) -> Codes:
        """Whether nothing is added to an output's addend before."""
        return self._where(self.row_begins == 0, self.column_begins == 0)

    def without(self, a: Codes, b: Codes) -> tuple[Codes, Codes]:
        """Operands with zeros there; those of a grid in columns, both of them."""
        return _cut(a, self.row_begins if self.row_begins.size else self.column_begins), _cut(b, self.column_begins)


def _cut(codes: Codes, begins: Codes) -> Codes:
    """Columns with zeros from somewhere on."""
    found: Codes = codes * (np.arange(len(codes))[:, np.newaxis] < begins)
    return found


def _beginning(begins: Callable[[Codes], Codes], x: Codes, y: Codes, paired: bool) -> Void:
    """Where rows and columns begin, of operands that lie in columns."""
    first, second = begins(x), begins(y)
    return Void(first[:0], np.minimum(first, second), len(y)) if paired else Void(first, second, len(y))


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

    void = _beginning(begins, a if paired else a.T, b, paired)
    return void if void.outputs.any() else None


class Ends(NamedTuple):
    """What infinities and NaNs make of sums that are, up to the first one or the block that it is in, what they are with zeros from there on."""

    void: Void
    nan: Codes
    """Whether an output has a NaN operand."""
    met: Codes
    """What its infinities meet, as bits of `POSITIVE` and the like: in products before its first NaN, and zeros in all."""

    def of(self, sums: Codes) -> tuple[Codes, Codes, Codes]:
        """(outputs that are NaN, less than zero, invalid) of sums so far, which may be infinite themselves."""
        met = self.met | (sums == np.inf) * POSITIVE | (sums == -np.inf) * NEGATIVE
        invalid = self.void.outputs & ((met & ZERO != 0) | (met & BOTH == BOTH))
        return self.nan | invalid, met & NEGATIVE != 0, invalid


POSITIVE, NEGATIVE, ZERO = (np.uint8(1 << n) for n in range(3))
BOTH = POSITIVE | NEGATIVE


def _meeting(x: Codes, y: Codes, kept: tuple[Codes, Codes], paired: bool) -> Codes:
    """What infinities of x meet in y, as bits of each output, whose signs are those of products; operands lie in columns. Signs count where both
    are `kept`."""
    k, columns = y.shape
    # of positive infinities, of negative ones, and of those whose signs do not count
    tables = np.zeros((3, k, -(-columns // 8) * 8), np.uint8)
    above, beneath, zero = (found.view(np.uint8) for found in ((y > 0.0) & kept[1], (y < 0.0) & kept[1], y == 0.0))
    for number, table in enumerate((above | beneath << 1, beneath | above << 1, 0)):
        tables[number, :, :columns] = table | zero << 2
    outputs, products = np.nonzero(np.isinf(x.T))
    which = np.where(kept[0][products, outputs], x[products, outputs] < 0.0, 2)
    if paired:
        met = tables[which, products, outputs][:, np.newaxis]
    else:
        met = tables.view(np.uint64)[which, products]
    found = np.zeros((x.shape[1], met.shape[1]), met.dtype)
    firsts = np.flatnonzero(np.diff(outputs, prepend=-1))
    if firsts.size:
        found[outputs[firsts]] = np.bitwise_or.reduceat(met, firsts, axis=0)
    return found.T if paired else found.view(np.uint8)[:, :columns]


def ends_of(planned: Program, a: Codes, b: Codes, c: Codes, paired: bool) -> Ends | None:
    """Those of a grid, or of paired operands, if infinities and NaNs stay what they are, and nothing is rounded any more once there are any."""
    if not (b.size and _is_quiet(planned) and _ends_at_once(planned) and np.isfinite(c).all()):
        return None
    x, y = operands = a if paired else a.T, b
    k, block = len(b), planned.block or len(b)

    def first_of(special: Codes) -> Codes:
        return np.where(special.any(axis=0), special.argmax(axis=0) // block * block, k)

    void, nan = (
        _beginning(begins, x, y, paired)
        for begins in (lambda x: first_of(~np.isfinite(x)), lambda x: first_of(np.isnan(x)))
    )
    if np.isinf(x).any() or np.isinf(y).any():
        if not stay(planned):
            return None
        first, second = [x != 0 for x in nan.without(*(np.ones_like(x, np.uint8) for x in operands))]
        met, other = _meeting(x, y, (first, second), paired), _meeting(y, x, (second, first), paired)
        return Ends(void, nan.outputs, met | (other if paired else other.T))
    return Ends(nan, nan.outputs, np.zeros(nan.outputs.shape, np.uint8)) if nan.outputs.any() else None


def stay(planned: Program, infinite: bool = True) -> bool:
    """Whether NaNs, and infinities if there are any, stay what they are in all stages before the output's, and raise nothing there."""
    for number, site in planned.sites.items():
        if number == dots().RESULT:
            continue
        rule, fmt, policy = site.rule, site.format, site.rule.policy
        saturates = rule.infinite_input is InfiniteInput.SATURATE or (
            rule.infinite_input is InfiniteInput.DEFAULT and rule.overflow is Overflow.SATURATE
        )
        kept = rule.overflow is not Overflow.NAN and rule.infinite_input is not InfiniteInput.NAN and rule.restated
        quiet = policy.product_invalid and not (policy.any_nan_signals or policy.propagate)
        infinities = fmt.infinities and not (rule.conversion and saturates)
        if not (kept and quiet and fmt.has_nan and (infinities or not infinite)):
            return False
    return True


def _is_quiet(planned: Program) -> bool:
    """Whether an infinity, and a NaN, among the terms makes the one that there is of the result, and raises nothing by itself."""
    how = planned.accumulator
    if how.fixed is not None or how.compensation is not None or any(level.scaling for level in how.reduction):
        return False
    formats = (*planned.formats, planned.partials, planned.output, *(site.format for site in planned.sites.values()))
    return stay(planned, infinite=False) and all(fmt.has_nan and fmt.zero for fmt in formats)


def _ends_at_once(planned: Program) -> bool:
    """Whether products of zero leave a running sum, and its flags, as they are, and so do all products one that is infinite or NaN."""
    how, aligned, kinds = planned.accumulator, planned.accumulator.aligned, dots()
    apart = how.tree or how.store or how.reduction or how.chains > 1 or how.block_sum is not None or how.leaf > 1
    if apart or planned.order.size or planned.kind not in (kinds.FUSED, kinds.EXACT, kinds.ALIGNED):
        return False
    if aligned is None:
        return planned.is_plain
    kept = min(x for x in (aligned.terms, aligned.sum, aligned.addend) if x is not None)
    zeros = how.scale_exponent or how.keeps_zero_sign or how.unsigned_zeros
    return kept >= planned.partials.p - 1 and aligned.zeros is None is aligned.limit and not zeros


def few(planned: Program, entered: Entered) -> list[tuple[Codes, Codes]] | None:
    """Parts of a grid, rows and columns of each, that hold all infinities and NaNs, if these are few; where roundings draw, of neighbours."""
    of_a, of_b, of_c = (~np.isfinite(x) for x in entered[:3])
    rows, columns = np.any(of_a, axis=1), np.any(of_b, axis=0)
    if of_c.size:
        rows = rows | np.any(of_c, axis=1)
    shares = rows.mean(), columns.mean()
    if not 0 < max(shares) <= MOST:
        return None

    def numbers(some: Codes) -> list[Codes]:
        found = np.flatnonzero(some)
        return np.split(found, np.flatnonzero(np.diff(found) > 1) + 1) if planned.draws else [found]

    others = np.arange(rows.size) if planned.draws else np.flatnonzero(~rows)
    parts = [(some, np.arange(columns.size)) for some in numbers(rows)]
    return [x for x in (*parts, *((others, some) for some in numbers(columns))) if x[0].size and x[1].size]
