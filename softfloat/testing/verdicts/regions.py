"""Where wrong rows lie, when no known mistake explains them: what they share, and right rows do not.

Statements are of one kind each: the class, exponent, sign or a bit of an operand, exponent difference, cancellation,
rounding, result, flags; of sums those of steps and products too. `regions` joins the fewest that all wrong rows share and
that keep right rows out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softfloat.testing.vectors.measures import dimensions, measure
from softfloat.testing.vectors.operations import Case
from softfloat.testing.verdicts.diagnosis import NEARLY_ALL, Rows

__all__ = ["Region", "regions"]

Codes = np.ndarray[Any, Any]

LOOKED_AT = 2048  # rows of each kind
FEWEST = 4  # wrong rows that share anything
CHANCE = 1e-4  # of a statement that right rows are as likely to satisfy
MOST_STATEMENTS = 5
MOST_BINS = 3  # that a statement names, unless they are neighbours
WORTH_ADDING = 0.7  # a further statement must leave at most so many of the right rows


@dataclass(frozen=True)
class Region:
    """What wrong rows share.

    Attributes
    ----------
    statements : tuple of str
        All hold for nearly all wrong rows.
    share : float
        Of the wrong rows, those in the region.
    right : float
        Of the right rows that were looked at, those in the region too.
    """

    statements: tuple[str, ...]
    share: float
    right: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"statements": list(self.statements), "share": self.share, "right_share": self.right}


class Statement(NamedTuple):
    """Something that holds for nearly all wrong rows; where it does, and for which right rows."""

    text: str
    wrong: Codes
    right: Codes


def regions(case: Case, wrong: Rows, right: Rows) -> list[Region]:
    """The regions that wrong rows share: described by one statement, by two, and so on, as far as each says more.

    Parameters
    ----------
    case : Case
    wrong, right : Rows
        Samples; `right` may be empty, and then nothing can be said.
    """
    if len(wrong) < FEWEST or not len(right):
        return []
    wrong, right = (x.part(slice(None, None, max(1, len(x) // LOOKED_AT))) for x in (wrong, right))
    found = [x for x in _statements(case, wrong, right) if _telling(x)]
    chosen: list[str] = []
    inside, among = np.ones(len(wrong), bool), np.ones(len(right), bool)
    described: list[Region] = []
    while found and among.any() and len(chosen) < MOST_STATEMENTS:
        left = [int((among & x.right).sum()) for x in found]
        best = min(range(len(found)), key=lambda i: (left[i], i))
        if left[best] > WORTH_ADDING * among.sum():
            break
        statement = found.pop(best)
        if (inside & statement.wrong).mean() < NEARLY_ALL:
            continue
        chosen.append(statement.text)
        inside, among = inside & statement.wrong, among & statement.right
        described.append(Region(tuple(chosen), float(inside.mean()), float(among.mean())))
    return described


def _telling(x: Statement) -> bool:
    """Whether wrong rows share it, and not by chance."""
    usual = x.right.mean()
    return bool(x.wrong.mean() >= NEARLY_ALL and usual ** len(x.wrong) < CHANCE)


def _statements(case: Case, wrong: Rows, right: Rows) -> Iterator[Statement]:
    if case.blocks is None:
        yield from _binned(case, wrong, right)
    yield from _bits(case, wrong, right)


def _binned(case: Case, wrong: Rows, right: Rows) -> Iterator[Statement]:
    """Of the dimensions of coverage."""
    bad, good = (measure(case, x.operands, *x.right) for x in (wrong, right))
    for dimension in dimensions(case):
        mine, others = (x[dimension.name].reshape(len(x[dimension.name]), -1) for x in (bad, good))
        if mine.shape[1] == 1:
            yield from _one_bin(dimension.name, dimension.bins, mine[:, 0], others[:, 0])
            continue
        for place in range(mine.shape[1]) if not dimension.name.endswith("at step") else ():
            at = f"{dimension.name}, {_unit(dimension.name)} {place}"
            if mine.shape[1] == (case.length or 0):
                yield from _one_bin(at, dimension.bins, mine[:, place], others[:, place])
        for place in np.unique(mine[mine >= 0]):
            holds = [(x == place).any(axis=1) for x in (mine, others)]
            where = "" if dimension.name.endswith("at step") else f" at some {_unit(dimension.name)}"
            yield Statement(f"{dimension.name} {dimension.bins[place]}{where}", *holds)
        if dimension.name.endswith("at step"):
            event = dimension.name.removesuffix(" at step")
            holds = [np.asarray((x >= 0).any(axis=1)) for x in (mine, others)]
            yield Statement(f"{event} at some step", *holds)


def _unit(name: str) -> str:
    """What a dimension of sums counts."""
    return "product" if name.startswith(("class", "exponent field", "alignment of products")) else "step"


def _one_bin(name: str, bins: Sequence[str], mine: Codes, others: Codes) -> Iterator[Statement]:
    places, counts = np.unique(mine, return_counts=True)
    kept = places[np.argsort(-counts)]
    enough = int(np.searchsorted(np.cumsum(np.sort(counts)[::-1]), NEARLY_ALL * len(mine))) + 1
    kept = np.sort(kept[:enough])
    if (kept < 0).any():
        return
    low, high = int(kept[0]), int(kept[-1])
    if len(kept) <= MOST_BINS:
        text = f"{name} " + " or ".join(bins[x] for x in kept)
        yield Statement(text, np.isin(mine, kept), np.isin(others, kept))
    elif name.startswith("exponent") and high - low < len(bins) // 2:
        text = f"{name} {bins[low]} to {bins[high]}"
        yield Statement(text, *((x >= low) & (x <= high) for x in (mine, others)))


def _bits(case: Case, wrong: Rows, right: Rows) -> Iterator[Statement]:
    """Of single bits of operands and of the right result; runs of neighbours count as one."""
    columns = [
        (column.name, column.number, x, y)
        for column, x, y in zip(case.operands, wrong.operands, right.operands, strict=False)
    ]
    columns.append(("the right result", case.target, wrong.right[0], right.right[0]))
    for name, number, mine, others in columns:
        width = mine.shape[1] if mine.ndim == 2 else 1
        pairs = zip(mine.reshape(len(mine), width).T, others.reshape(len(others), width).T, strict=True)
        for place, (codes, usual) in enumerate(pairs):
            of = name if mine.ndim == 1 else f"{name}{place}"
            fraction = number.format.mantissa_bits if number.format is not None else number.bits
            yield from _runs(of, codes.astype(np.uint64), usual.astype(np.uint64), fraction)
            if number.format is not None and number.format.signed:
                top = np.uint64(number.bits - 1)
                for sign, text in ((0, "positive"), (1, "negative")):
                    yield Statement(f"{of} {text}", *((x.astype(np.uint64) >> top) == sign for x in (codes, usual)))


def _runs(of: str, codes: Codes, usual: Codes, width: int) -> Iterator[Statement]:
    """Runs of fraction bits that nearly all wrong rows have alike."""
    ones = [float((codes >> np.uint64(i) & np.uint64(1)).mean()) for i in range(width)]
    settled = [max(x, 1 - x) >= NEARLY_ALL for x in ones]
    first = 0
    while first < width:
        last = first
        while last < width and settled[last]:
            last += 1
        if last > first:
            mask = np.uint64((1 << last) - (1 << first))
            value = sum(1 << i for i in range(first, last) if ones[i] > 0.5)
            digits = f"{value >> first:0{last - first}b}"
            where = f"bit {first}" if last - first == 1 else f"bits {last - 1}-{first}"
            holds = [(x & mask) == np.uint64(value) for x in (codes, usual)]
            yield Statement(f"{where} of {of} {digits}", *holds)
        first = max(last, first + 1)
