"""What is reported of a file of results: rows that are wrong, spelled out, and the whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softfloat import bits, formats
from softfloat.status import Flags
from softfloat.testing.vectors.columns import Number
from softfloat.testing.verdicts.diagnosis import Finding
from softfloat.testing.verdicts.likeness import Likeness
from softfloat.testing.verdicts.regions import Region

__all__ = ["Decoded", "Mismatch", "Report", "decoded"]


@dataclass(frozen=True)
class Decoded:
    """A number as it stands in a file, and what it means."""

    name: str
    code: str
    fields: tuple[tuple[str, str], ...]
    value: str

    @property
    def pattern(self) -> str:
        """Bits, with a space between fields."""
        return " ".join(digits for _, digits in self.fields)

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"name": self.name, "code": self.code, "bits": self.pattern, "value": self.value}


def decoded(name: str, code: int, number: Number) -> Decoded:
    """A code with its bit fields and value."""
    text = f"0x{code:0{-(-number.bits // 4)}x}"
    if number.kind == "float64":
        digits = f"{code:064b}"
        fields = (("sign", digits[0]), ("exponent", digits[1:12]), ("fraction", digits[12:]))
        return Decoded(name, text, fields, repr(float(np.uint64(code).view(np.float64))))
    if number.format is not None:
        value = float(bits.decode(code, number.format))
        shown = f"{value:.9g}"  # enough to tell any two numbers of 24 bits apart
        if value != value and bits.issnan(code, number.format):
            shown = "signalling nan"
        return Decoded(name, text, tuple(formats.bit_fields(code, number.format)), shown)
    if number.kind == "bool":
        return Decoded(name, text, (), str(bool(code)).lower())
    if number.kind == "signed" and code >> (number.bits - 1):
        return Decoded(name, text, (), str(code - (1 << number.bits)))
    if number.name == "class":
        return Decoded(name, text, (), bits.CLASSES[code] if code < len(bits.CLASSES) else "no class")
    return Decoded(name, text, (), str(code))


@dataclass(frozen=True)
class Mismatch:
    """A wrong row.

    Attributes
    ----------
    line : int
        Of the file, or row of an archive, from 1.
    kind : str
        One of `CLASSES`.
    operands : tuple of Decoded
        Of dot products, all of them.
    expected, actual : Decoded
    expected_flags, actual_flags : Flags or None
        None where flags are not looked at.
    ulps : int or None
        Steps between the two, among the numbers of the format (or integers); None where there are none to count: of
        NaNs, zeros, answers, and flags alone.
    """

    line: int
    kind: str
    operands: tuple[Decoded, ...]
    expected: Decoded
    actual: Decoded
    expected_flags: Flags | None
    actual_flags: Flags | None
    ulps: int | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: flags as lists of names."""

        def names(flags: Flags | None) -> list[str] | None:
            return None if flags is None else [str(flag.name) for flag in Flags if flag in flags]

        return {
            "line": self.line,
            "class": self.kind,
            "operands": [x.as_dict() for x in self.operands],
            "expected": self.expected.as_dict() | {"flags": names(self.expected_flags)},
            "actual": self.actual.as_dict() | {"flags": names(self.actual_flags)},
            "ulps": self.ulps,
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of checking a file.

    Attributes
    ----------
    title : str
        Operation, formats and environment.
    flags, nan : str
        What counted as different.
    rows : int
        Well-formed rows that were checked.
    mismatches, wrong_results, wrong_flags : int
        Rows with anything wrong; with a wrong result; with wrong flags.
    classes : dict of str to int
        Mismatches by kind.
    missing_flags, extra_flags : dict of str to int
        Rows that lack a flag, and rows that raise one without reason.
    ulps : dict of str to int
        Wrong results by their distance from the right ones; those that have one.
    largest_ulps : int
    kappa : float
        The largest distance of a result in IEEE P3109's terms: value steps; infinity where an infinity is missed or made
        up; NaN where a NaN is.
    first : tuple of Mismatch
    findings : tuple of Finding
        What explains the mismatches.
    explained : float
        Share of the mismatches that the findings explain.
    diagnosed : int
        Mismatches that the diagnosis looked at.
    regions : tuple of Region
        Where no known mistake explains the rows: what they share, the shortest description first.
    likenesses : tuple of Likeness
        Where most rows are wrong, or none has the columns: the operations and formats that the rows are right as.
    note : str
        A rule that was found in the file and is not the environment's: what integers NaN becomes; that the file says it holds
        something else; or "".
    malformed : tuple of (int, str)
        Lines that are no rows, and why.
    failure : str
        Why reading stopped, or ""; that a file has no rows is a failure too.
    interrupted : bool
        Whether it was stopped before the end.
    """

    title: str
    flags: str
    nan: str
    rows: int = 0
    mismatches: int = 0
    wrong_results: int = 0
    wrong_flags: int = 0
    classes: dict[str, int] = field(default_factory=dict)
    missing_flags: dict[str, int] = field(default_factory=dict)
    extra_flags: dict[str, int] = field(default_factory=dict)
    ulps: dict[str, int] = field(default_factory=dict)
    largest_ulps: int = 0
    kappa: float = 0.0
    first: tuple[Mismatch, ...] = ()
    findings: tuple[Finding, ...] = ()
    explained: float = 0.0
    diagnosed: int = 0
    regions: tuple[Region, ...] = ()
    likenesses: tuple[Likeness, ...] = ()
    note: str = ""
    malformed: tuple[tuple[int, str], ...] = ()
    failure: str = ""
    interrupted: bool = False

    @property
    def well_formed(self) -> bool:
        """Whether there are rows, and nothing but rows."""
        return bool(self.rows) and not self.malformed and not self.failure

    @property
    def passed(self) -> bool:
        """Whether the file was read to its end, and all its rows are right."""
        return self.well_formed and not self.mismatches and not self.interrupted

    @property
    def status(self) -> int:
        """The exit status: 0 passed, 1 mismatches, 2 malformed, 130 interrupted."""
        if self.interrupted:
            return 130
        if not self.well_formed:
            return 2
        return 1 if self.mismatches else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("title", "flags", "nan", "rows", "mismatches", "wrong_results", "wrong_flags", "classes")
        more = ("missing_flags", "extra_flags", "ulps", "largest_ulps")
        return {
            "passed": self.passed,
            **{name: getattr(self, name) for name in (*names, *more)},
            "first": [x.as_dict() for x in self.first],
            "causes": [x.as_dict() for x in self.findings],
            "explained": self.explained,
            "diagnosed": self.diagnosed,
            "kappa": _plain_kappa(self.kappa),
            "regions": [x.as_dict() for x in self.regions],
            "looks_like": [{"operation": x.case.title, "share": x.share} for x in self.likenesses],
            "note": self.note or None,
            "malformed": [{"line": line, "reason": reason} for line, reason in self.malformed],
            "failure": self.failure or None,
            "interrupted": self.interrupted,
        }


def _plain_kappa(kappa: float) -> int | str:
    return "NaN" if kappa != kappa else "infinity" if kappa == float("inf") else int(kappa)
