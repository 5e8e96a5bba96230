"""Which operation and format rows look like, when they are not of the one that was asked for.

The oracle computes some rows of every operation whose numbers have as many digits; nothing is compiled.

>>> rows = [["3F80", "3F80", "4000", "00"], ["4040", "3F80", "4080", "00"], ["4100", "C000", "40C0", "00"]]
>>> [likeness.case.title for likeness in looks_like(rows)]
['add bfloat16, nearest_even']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from softfloat import reference
from softfloat.environments import Environment, as_rounding
from softfloat.formats import ROSTER, Format
from softfloat.testing.vectors.columns import INTEGERS
from softfloat.testing.vectors.operations import Case, resolve

__all__ = ["LOOKED_AT", "Likeness", "looks_like"]

LOOKED_AT = 96  # rows
SCREENED = 12  # rows that every candidate computes
ENOUGH = 0.9  # of the rows that must be right
LEAST = 3  # rows that say anything
MODES = ("nearest_even", "toward_zero", "toward_positive", "toward_negative", "nearest_away", "to_odd")
ARITHMETIC = ("add", "sub", "mul", "div", "fma", "sqrt", "remainder", "minimum", "maximum")
COMPARISONS = ("lt", "le", "eq")


@dataclass(frozen=True)
class Likeness:
    """What rows look like.

    Attributes
    ----------
    case : Case
    share : float
        Of the rows that were looked at, those whose result is right as that.
    flags : float
        Those whose flags are right besides; NaN where rows have none.
    """

    case: Case
    share: float
    flags: float

    @property
    def options(self) -> str:
        """Those of `softfloat check`."""
        case = self.case
        words = [f"--op {case.operation.name}", f"--format {case.source.name}"]
        if case.operation.name == "convert":
            words.append(f"--to {case.target.name}")
        mode = as_rounding(case.environment.rounding).name.lower()
        return " ".join(words + ([f"--rounding {mode}"] if mode != "nearest_even" else []))

    def __str__(self) -> str:
        flags = f", {self.flags:.0%} with their flags" if self.flags == self.flags else ""
        return f"{self.case.title}: {self.share:.0%} of the rows are right as that{flags}"


Computed = tuple[int, int]


def looks_like(rows: Sequence[Sequence[str]], other_than: Case | None = None, enough: float = ENOUGH) -> list[Likeness]:
    """The operations that give these results, the best first; nothing where none gives nearly all.

    Parameters
    ----------
    rows : sequence of sequences of str
        Hexadecimal digits, as many as codes have: operands, the result, and flags or not.
    other_than : Case, optional
        What they are not.
    enough : float
        Share of the rows that must be right.
    """
    widths = {tuple(map(len, row)) for row in rows}
    if len(widths) != 1 or len(rows) < LEAST:
        return []
    rows = rows[:: max(1, len(rows) // LOOKED_AT)][:LOOKED_AT]
    (width,) = widths
    numbers = [[int(x, 16) for x in row] for row in rows]
    found = []
    for case, flagged, compute in _candidates(width):
        if other_than is not None and case.title == other_than.title:
            continue
        few = _score(numbers[:: max(1, len(numbers) // SCREENED)], case, flagged, compute)
        if few[0] >= enough - 0.2:
            share, flags = _score(numbers, case, flagged, compute)
            if share >= enough:
                found.append(Likeness(case, share, flags))
    merits = [(x.share, x.flags if x.flags == x.flags else 0.0) for x in found]
    best = [x for x, merit in zip(found, merits, strict=True) if merit == max(merits)]
    first = {(x.case.operation.name, x.case.source.name, x.case.target.name): x for x in reversed(best)}
    return [x for x in best if x in first.values()]


def _score(
    rows: Sequence[Sequence[int]], case: Case, flagged: bool, compute: Callable[..., Computed]
) -> tuple[float, float]:
    """Shares of rows whose result is right, and whose flags are too."""
    right = both = 0
    for row in rows:
        *operands, result = row[:-1] if flagged else row
        try:
            wanted, flags = compute(*operands)
        except ValueError:  # a code that the format does not have
            continue
        fmt = case.target.format
        same = wanted == result or (fmt is not None and _is_nan(wanted, fmt) and _is_nan(result, fmt))
        right += same
        both += same and flagged and flags == row[-1]
    return right / len(rows), both / len(rows) if flagged else float("nan")


def _is_nan(code: int, fmt: Format) -> bool:
    return code >> fmt.bits == 0 and reference.decode(code, fmt).kind is reference.Kind.NAN


def _candidates(width: tuple[int, ...]) -> Iterator[tuple[Case, bool, Callable[..., Computed]]]:
    """Cases whose rows have numbers of so many digits, whether rows have flags then, and the oracle."""
    for flagged in (True, False):
        numbers = width[:-1] if flagged else width
        if (flagged and (width[-1] != 2 or len(width) < 3)) or len(numbers) < 2:
            continue
        *operands, result = numbers
        if len(set(operands)) != 1:
            continue
        for fmt in ROSTER.values():
            if -(-fmt.bits // 4) == operands[0] and fmt.signed:
                yield from _operations(fmt, len(operands), result, flagged)


def _operations(
    fmt: Format, count: int, result: int, flagged: bool
) -> Iterator[tuple[Case, bool, Callable[..., Computed]]]:
    digits = -(-fmt.bits // 4)
    for mode in MODES:
        environment = Environment(rounding=mode)
        for name in ARITHMETIC:
            case = resolve(name, fmt, environment=environment)
            if len(case.operands) == count and result == digits and (case.operation.rounds or mode == MODES[0]):
                options: dict[str, Any] = {"rounding": mode} if case.operation.rounds else {}
                yield case, flagged, partial(_computed, name, options, fmt)
        for target in ROSTER.values() if count == 1 else ():
            if target != fmt and target.signed and -(-target.bits // 4) == result:
                case = resolve("convert", fmt, target, environment=environment)
                yield case, flagged, partial(_converted, fmt, target, mode)
        for number in INTEGERS.values() if count == 1 else ():
            if number.bits // 4 == result:
                case = resolve("convert", fmt, number, environment=environment)
                yield case, flagged, partial(_integer, fmt, number.bits, number.kind == "signed", mode)
    for name in COMPARISONS if result == 1 and count == 2 else ():
        yield resolve(name, fmt), flagged, partial(_compared, name, fmt)


def _computed(name: str, options: dict[str, Any], fmt: Format, *operands: int) -> Computed:
    code, flags = getattr(reference, name)(*operands, fmt, **options)
    return int(code), int(flags)


def _converted(fmt: Format, target: Format, mode: str, code: int) -> Computed:
    found, flags = reference.convert(code, fmt, target, rounding=mode)
    return int(found), int(flags)


def _integer(fmt: Format, width: int, signed: bool, mode: str, code: int) -> Computed:
    found, flags = reference.to_integer(code, fmt, bits=width, signed=signed, rounding=mode)
    return int(found) & ((1 << width) - 1), int(flags)


def _compared(name: str, fmt: Format, a: int, b: int) -> Computed:
    found, flags = getattr(reference, name)(a, b, fmt)
    return int(found), int(flags)
