"""Faster ways for products of operands with scales: codes of the scaled values, where that is the same; sums of exact groups in float64.

Both are proved equal to the loop that takes scales by the same tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softfloat import engine
from softfloat.accumulators import Accumulator, Alignment
from softfloat.bits.numbers import encode
from softfloat.engine import Codes
from softfloat.environments import Overflow, Rounding, Settings
from softfloat.formats import Format, bfloat16, float32
from softfloat.status import Flags

__all__ = ["GroupedOperand", "flattened", "grouped_sums", "serves_groups", "serves_values"]

Reals = np.ndarray[Any, np.dtype[np.float64]]
CARRIERS = (bfloat16, float32)
"""Formats that hold many values of scaled elements, those first whose products have the faster loops."""
EXACT_BITS = 53
INEXACT, OVERFLOW, UNDERFLOW = (int(x) for x in (Flags.INEXACT, Flags.OVERFLOW, Flags.UNDERFLOW))


# -- scaled values as operands without scales ------------------------------------------------------------------------


def serves_values(how: Accumulator, settings: Settings) -> bool:
    """Whether only the values of operands count: no exponents are compared, no scale enters a sum, no operand is flushed."""
    scaled = bool(how.reduction and how.reduction[0].scaling)
    stages = [x for x in (how.product, how.running, how.block_sum, how.store) if x is not None]
    flushes = how.daz or any(x.daz for x in stages) or settings.daz or any(x.daz for x in settings.overrides.values())
    return how.aligned is None and not scaled and not flushes


def flattened(values: Reals) -> tuple[Codes, Format] | None:
    """Codes of values in the first format that holds them all; None if none does, or there are NaNs or infinities among them."""
    if not np.isfinite(values).all():
        return None
    for fmt in CARRIERS:
        codes, flags = encode(values, fmt, flags="any")
        if not flags:
            return np.asarray(codes), fmt
    return None


# -- exact groups on a common grid -----------------------------------------------------------------------------------


class GroupedOperand(NamedTuple):
    """A matrix whose groups along k share a scale.

    Attributes
    ----------
    values : array of float64
        (rows, k), scales included.
    leads : array of int
        (rows, groups): the exponents of their scales.
    quantum : int
        Values are multiples of 2 to their group's lead and that power.
    """

    values: Reals
    leads: np.ndarray[Any, np.dtype[np.int64]]
    quantum: int

    def rows(self, piece: slice) -> GroupedOperand:
        """Some of them."""
        return self._replace(values=self.values[piece], leads=self.leads[piece])

    def low(self, group: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """For each group along k, the least lead of those that are not all zeros."""
        starts = np.arange(0, self.values.shape[1], group)
        there = np.logical_or.reduceat(self.values != 0, starts, axis=1)
        return np.where(there, self.leads, FAR).min(axis=0, initial=FAR)


def serves_groups(how: Accumulator, fmts: tuple[Format, Format], scale_bits: tuple[int, int]) -> bool:
    """Whether an accumulator sums groups exactly, cuts them and the running sum to one grid and truncates to float32, all in 53 bits."""
    align, stage = how.aligned, how.running
    if align is None or align.group == 1 or align.zeros is None:
        return False
    known = Alignment(align.terms, group=align.group, zeros=align.zeros)
    told = {
        name: getattr(how, name)
        for name in ("name", "inputs", "block", "channel_group", "result", "nan", "note", "source")
    }
    whole = align == known and how == Accumulator(running=stage, alignment=known, daz=False, **told)
    fixed = (stage.format, stage.rounding) == (float32, Rounding.TOWARD_ZERO)
    decided = stage.daz is False and stage.ftz is False and stage.overflow is Overflow.INFINITY
    growth = (how.block - 1).bit_length() + 1
    product = sum(x.emax - x.emin + x.p for x in fmts) + sum(scale_bits)
    fits = product + growth <= EXACT_BITS and align.terms + sum(x.emax + 2 for x in fmts) + growth <= EXACT_BITS
    return fixed and whole and decided and fits


def lead_exponents(leads: Reals, group: int, zeros: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Exponents of the scales of each group along the last axis; that of a scale of zero is `zeros`."""
    first = leads[:, ::group]
    return np.where(first > 0, np.frexp(first)[1] - 1, zeros).astype(np.int64)


FAR = 1 << 20
"""Beyond every exponent."""
PIECE = 1 << 15  # outputs at a time, so that what is between two steps stays in a cache
ALONE = 1 << 17  # multiply-adds that BLAS leaves to one thread; others would wait for threads that are busy elsewhere


def grouped_sums(
    how: Accumulator, a: GroupedOperand, b: GroupedOperand, start: Codes | None
) -> tuple[Codes, Codes] | None:
    """(codes, flags) of every row of `a` with every row of `b`; None where a sum leaves float32's normal numbers.

    The sums of groups are exact in float64 in whatever order, and so is everything up to the one truncation of each block.
    """
    rows, columns = len(a.values), len(b.values)
    align = how.aligned
    assert align is not None
    codes, flags = np.empty((rows, columns), np.uint32), np.empty((rows, columns), np.uint8)
    low = b.low(align.group)
    step = max(PIECE // max(columns, 1), 1)
    for first in range(0, rows, step):
        piece = slice(first, first + step)
        found = _piece(how, align, a.rows(piece), b, low, None if start is None else start[piece])
        if found is None:
            return None
        codes[piece], flags[piece] = found
    return codes, flags


def _piece(
    how: Accumulator,
    align: Alignment,
    a: GroupedOperand,
    b: GroupedOperand,
    b_low: np.ndarray[Any, np.dtype[np.int64]],
    start: Codes | None,
) -> tuple[Codes, Codes] | None:
    shape = len(a.values), len(b.values)
    total: Any = np.zeros(shape) if start is None else np.asarray(engine.decoded(start, float32))
    if not np.isfinite(total).all():
        return None
    assert align.zeros is not None
    low, quantum = a.low(align.group) + b_low, a.quantum + b.quantum
    lost = np.zeros(shape, bool)
    for first in range(0, a.values.shape[1], how.block):
        stop = min(first + how.block, a.values.shape[1])
        groups = slice(first // align.group, -(-stop // align.group))
        own = exponents(total, align.zeros)
        most = a.leads[:, groups].max(axis=1)[:, None] + b.leads[:, groups].max(axis=1)
        # beneath any term's grid, were its exponent the least and the largest one as large as any
        if max(int(most.max()), int(own.max())) - align.terms <= int(low[groups].min()) + quantum:
            kept = _uncut(align, a, b, total, own, most, slice(first, stop), groups, lost)
        else:
            kept = _cut(align, a, b, total, own, range(first, stop, align.group), stop, lost)
        total = (kept.view(np.int64) & ~np.int64((1 << 29) - 1)).view(np.float64)
        lost |= total != kept
        size = np.abs(total)
        if np.any((size < float32.tiny) & (kept != 0)) or np.any(size > float32.max):
            return None
        total = total + 0.0  # no negative zeros
    result = np.asarray(encode(total, float32, flags="any")[0])
    return result.reshape(shape), np.where(lost, INEXACT, 0).astype(np.uint8)


def _cut(
    align: Alignment, a: GroupedOperand, b: GroupedOperand, total: Reals, own: Any, starts: range, stop: int, lost: Any
) -> Reals:
    """The running sum and the sum of each group, cut to each output's grid and added; `lost` where bits were."""
    most = own.copy()
    for k in starts:
        np.maximum(most, a.leads[:, k // align.group, None] + b.leads[:, k // align.group], out=most)
    inverse, grid = power_of(align.terms - most), power_of(most - align.terms)
    whole = total * inverse
    kept = np.trunc(whole)
    lost |= kept != whole
    for k in starts:
        part = slice(k, min(k + align.group, stop))
        term = product_of(a.values[:, part], b.values[:, part])
        term *= inverse
        cut = np.trunc(term)
        lost |= cut != term
        kept += cut
    kept *= grid
    return np.asarray(kept)


def _uncut(
    align: Alignment,
    a: GroupedOperand,
    b: GroupedOperand,
    total: Reals,
    own: Any,
    most: Any,
    part: slice,
    groups: slice,
    lost: Any,
) -> Reals:
    """The same where no group loses anything: their sums are one, and the running sum is cut where it lies far beneath."""
    kept = product_of(a.values[:, part], b.values[:, part])
    far = (most - align.terms > own - float32.mantissa_bits) & (total != 0)
    if far.any():
        i, j = np.nonzero(far)
        exact = np.maximum((a.leads[i, groups] + b.leads[j, groups]).max(axis=1), own[i, j])
        whole = total[i, j] * power_of(align.terms - exact)
        cut = np.trunc(whole)
        lost[i, j] |= cut != whole
        total = total.copy()
        total[i, j] = cut * power_of(exact - align.terms)
    kept += total
    return kept


def product_of(a: Reals, b: Reals) -> Reals:
    """a @ b.T, a few rows at a time."""
    result = np.empty((len(a), len(b)))
    step = max(ALONE // max(b.size, 1), 1)
    for first in range(0, len(a), step):
        np.matmul(a[first : first + step], b.T, out=result[first : first + step])
    return result


def exponents(values: Reals, zeros: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Exponents of float32 numbers, that of subnormal ones as low as any."""
    found = ((values.view(np.int64) >> 52) & 0x7FF) - 1023
    return np.where(values == 0, zeros, np.maximum(found, float32.emin))


def power_of(exponent: np.ndarray[Any, np.dtype[np.int64]]) -> Reals:
    """2^exponent."""
    return ((exponent + 1023) << 52).view(np.float64)
