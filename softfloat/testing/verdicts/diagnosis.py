"""Which known mistakes explain what a device answered.

`diagnose` compares the predictions of causes with wrong rows and with a sample of right ones: a cause is named where it explains nearly
all wrong rows and contradicts no right one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from softfloat.testing.vectors.operations import Case
from softfloat.testing.verdicts.cause import Cause, Pair
from softfloat.testing.verdicts.causes import causes_of
from softfloat.testing.verdicts.plain_units import likeliest

__all__ = ["NEARLY_ALL", "Finding", "Rows", "diagnose"]

Codes = np.ndarray[Any, Any]

NEARLY_ALL = 0.99  # of the wrong rows: the rest may be of other causes
WORTH_SHOWING = 0.02  # of the wrong rows
MOST_TOGETHER = 4  # causes at once
HINTED = 32  # wrong rows that one of many causes is tried on before those
HALF = 0.5  # of the wrong results, that several mistakes in one unit must explain to be shown
FEW_CONTRADICTIONS = 0.02  # of the right rows: several mistakes are not known as exactly as one
SCREENED = 512  # wrong rows that a cause is tried on first


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, with the right answers.

    Attributes
    ----------
    operands : list of arrays
    right : pair of arrays
        Results and flags.
    found : pair of arrays
        What the file has; flags may be None.
    """

    operands: list[Codes]
    right: tuple[Codes, Codes]
    found: Pair

    def __len__(self) -> int:
        return len(self.right[0])

    def part(self, chosen: Any) -> Rows:
        """Some of the rows."""
        results, flags = self.found
        return Rows(
            [x[chosen] for x in self.operands],
            (self.right[0][chosen], self.right[1][chosen]),
            (results[chosen], None if flags is None else flags[chosen]),
        )


@dataclass(frozen=True)
class Finding:
    """How well a cause explains wrong rows.

    Attributes
    ----------
    name, meaning : str
        Of the cause.
    share : float
        Of the wrong rows that it explains, flags included (where it says something of flags).
    result_share : float
        Of the rows with wrong results, those whose result it explains; NaN if there are none.
    contradictions : int
        Right rows, of those looked at, that a device with this mistake would have got wrong.
    named : bool
        Whether this is what the device does, as far as these rows can tell: alone, or with the other findings.
    """

    name: str
    meaning: str
    share: float
    result_share: float
    contradictions: int
    named: bool

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        document = dataclasses.asdict(self)
        if self.result_share != self.result_share:
            document["result_share"] = None
        return document


Differ: TypeAlias = Callable[[Pair, Pair], tuple[Codes, Codes]]
"""(expected, found) -> where results differ, where flags differ."""


def diagnose(case: Case, wrong: Rows, right: Rows, differ: Differ) -> tuple[list[Finding], float]:
    """The causes that explain wrong rows and contradict no right ones, the best first.

    Parameters
    ----------
    case : Case
    wrong, right : Rows
        All of the file's, or samples.
    differ : callable
        What counts as different.

    Returns
    -------
    findings : list of Finding
        Those that explain nearly all wrong rows, if there are any: they cannot be told apart by these rows. Else
        several that explain most together.
    share : float
        Of the wrong rows that these findings explain together.
    """
    if not len(wrong):
        return [], 0.0
    bad_results, _ = differ(wrong.right, wrong.found)
    some = np.zeros(len(wrong), bool)
    some[:: max(1, len(wrong) // SCREENED)] = True
    few = wrong.part(some)
    found: list[tuple[Finding, Codes]] = []
    causes = causes_of(case)
    for cause in causes:
        if not cause.alone:
            found += _tried(cause, wrong, right, few, some, differ, bad_results)
    if not any(_whole(x) for x, _ in found):
        hint = np.zeros(len(wrong), bool)
        hint[:: max(1, len(wrong) // HINTED)] = True
        for cause in causes:
            if cause.alone and _explained(cause, wrong.part(hint), differ, bad_results[hint])[0].mean() >= NEARLY_ALL:
                found += _tried(cause, wrong, right, few, some, differ, bad_results)
    doubtful: list[Finding] = []
    if bad_results.any() and not any(_whole(x) for x, _ in found):
        joined = _joined(case, wrong, right, few, some, differ, bad_results)
        doubtful = [x for x, _ in joined if x.contradictions]
        found += joined
    whole_causes = [x for x, _ in found if _whole(x)]
    if whole_causes:
        whole_causes.sort(key=lambda x: -x.share)
        return whole_causes, whole_causes[0].share
    covered = np.zeros(len(wrong), bool)
    chosen: list[Finding] = []
    while found and len(chosen) < MOST_TOGETHER:
        gains = [float((explains & ~covered).mean()) for _, explains in found]
        best = max(range(len(found)), key=lambda i: (round(gains[i], 9), found[i][0].named, -i))
        if gains[best] < WORTH_SHOWING:
            break
        finding, explains = found.pop(best)
        chosen.append(finding)
        covered |= explains
    together = float(covered.mean())
    if together >= NEARLY_ALL:
        chosen = [dataclasses.replace(x, named=x.named or x not in doubtful) for x in chosen]
    return chosen, together


def _joined(
    case: Case, wrong: Rows, right: Rows, few: Rows, some: Codes, differ: Differ, bad_results: Codes
) -> list[tuple[Finding, Codes]]:
    """The unit with several mistakes whose results are most like the device's; it may contradict a few right rows."""
    some_right = right.part(slice(None, None, max(1, len(right) // SCREENED)))
    operands = [np.concatenate(x) for x in zip(few.operands, some_right.operands, strict=True)]
    results = np.concatenate([few.found[0], some_right.found[0]])
    unit = likeliest(case, operands, lambda found: ~differ((found[0], None), (results, None))[0])
    if len(unit.chosen) < 2:
        return []
    cause = Cause(unit.name, unit.meaning, unit.predict(case))
    found = _tried(cause, wrong, right, few, some, differ, bad_results, allowed=FEW_CONTRADICTIONS)
    return [(x, explains) for x, explains in found if x.result_share >= HALF]


def _whole(x: Finding) -> bool:
    """Whether a cause explains nearly everything, and contradicts nothing."""
    return x.named and x.share >= NEARLY_ALL and not x.contradictions


def _tried(
    cause: Cause,
    wrong: Rows,
    right: Rows,
    few: Rows,
    some: Codes,
    differ: Differ,
    bad_results: Codes,
    allowed: float = 0,
) -> list[tuple[Finding, Codes]]:
    """What a cause explains, and which wrong rows; nothing where it explains none. `few` are `some` of the wrong rows.

    A share of the right rows that is `allowed` may contradict it.
    """
    try:
        if len(wrong) > len(few) and not any(x.any() for x in _explained(cause, few, differ, bad_results[some])):
            return []
        whole, results = _explained(cause, wrong, differ, bad_results)
        if not whole.any() and not results.any():
            return []
        worse, other = differ(cause.predict(right.operands, right.right), right.found)
    except (ValueError, TypeError):  # settings that the operation refuses
        return []
    share, result_share = float(whole.mean()), float("nan")
    if bad_results.any():
        result_share = float(results.sum() / bad_results.sum())
    contradictions, explains = int((worse | other).sum()), whole
    named = share >= NEARLY_ALL and not contradictions
    if not worse.any():  # right about results, whatever becomes of flags
        explains = (whole if not contradictions else whole & bad_results) | results
        named = named or result_share >= NEARLY_ALL
    elif worse.mean() > allowed:
        return []
    return [(Finding(cause.name, cause.meaning, share, result_share, contradictions, named), explains)]


def _explained(cause: Cause, rows: Rows, differ: Differ, bad_results: Codes) -> tuple[Codes, Codes]:
    """Which wrong rows a cause explains; and of those with wrong results, which results."""
    predicted = cause.predict(rows.operands, rows.right)
    results, flags = differ(predicted, rows.found)
    whole = ~(results | flags)
    if predicted[1] is None:
        whole &= bad_results
    return whole, ~results & bad_results
