"""What Berkeley TestFloat's testfloat and testfloat_ver print of the errors they find, read as rows of the device.

A report has a line for the function and its settings, then the operands, what the device gave, and what was expected; wide operands
and results stand on lines of their own:

    Errors found in f32_mul, rounding near_even, tininess after rounding:
    +01.000000  +7E.7FFFFF  => +01.000000 ....x  expected +01.000000 ...ux

Floats are sign, exponent and fraction in hexadecimal digits, flags the letters v, i, o, u and x. Only wrong rows are in a report.
(Berkeley TestFloat 3e: verCases_writeFunctionName.c, writeCase_*.c, writeHex.c.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from softfloat.environments import Environment
from softfloat.testing.vectors.columns import FLAGS, Column
from softfloat.testing.vectors.operations import TESTFLOAT_MODES, Case, resolve

__all__ = ["Error", "case_of_report", "errors", "functions_of", "is_report", "numbers_of"]

BEGINS = re.compile(
    rb"\s*(Testing \w|Errors found in \w|In \d+ tests, |\d+ tests (performed|total)|[^=]*=> |[+-][0-9A-F]+\.[0-9A-F])"
)
FUNCTION = re.compile(r"Errors found in (\w+)(.*?):?$")
FLOAT = re.compile(r"([+-])([0-9A-F]+)\.([0-9A-F]+)")
LETTERS = "vioux"
LONGEST_ROW = 4  # lines


@dataclass(frozen=True)
class Error:
    """A row of a report: the number of its first line, the function with its settings or "", and its words."""

    line: int
    function: str
    operands: tuple[str, ...]
    result: str
    flags: str


def is_report(first_line: bytes) -> bool:
    """Whether a file that begins like this is a report of errors."""
    return BEGINS.match(first_line.lstrip(b"\r")) is not None


def case_of_report(function: str) -> Case:
    """The case of what stands behind "Errors found in".

    Raises
    ------
    ValueError
        If it is none of this package's, as double precision is not.
    """
    name, *settings = (x.strip() for x in function.split(","))
    environment, exact = Environment(), None
    for setting in settings:
        kind, _, value = setting.partition(" ")
        if kind == "rounding" and value in TESTFLOAT_MODES:
            environment = environment.replace(rounding=TESTFLOAT_MODES[value])
        elif kind == "tininess":
            environment = environment.replace(tininess=value.removesuffix(" rounding"))
        elif setting in ("exact", "not exact"):
            exact = setting == "exact"
        else:
            raise ValueError(f"{setting!r} of {name} is beyond this package")
    return resolve(name, environment=environment, exact=exact)


def functions_of(text: bytes) -> list[str]:
    """What a report is of: all that stands behind "Errors found in", once each."""
    lines = (line.replace("\r", "").strip() for line in text.decode("latin-1").split("\n"))
    return list(dict.fromkeys(_function(found) for line in lines if (found := FUNCTION.match(line))))


def _function(found: re.Match[str]) -> str:
    return found[1] + found[2].rstrip(":")


def errors(lines: Iterable[tuple[int, bytes]]) -> Iterator[Error | tuple[int, str]]:
    """Rows of a report, and (line, reason) of lines that are none; lines that say how far tests have come are passed over."""
    function, words, first = "", [""], 0
    for number, line in lines:
        text = line.decode("latin-1").replace("\r", "").strip()
        found = FUNCTION.match(text)
        if found:
            function, words = _function(found), [""]
            continue
        if not text or re.match(r"Testing \w|In \d+ tests|\d+ tests? |\d+0000$", text):
            continue
        first = number if words == [""] else first
        words.append(text)
        row = _row(first, function, " ".join(words).strip())
        if row is not None:
            yield row
            words = [""]
        elif len(words) > LONGEST_ROW or "expected" in text:
            yield first, f"{text[:60]!a} is no line of TestFloat's reports"
            words = [""]
    if words != [""]:
        yield first, "the report ends within a row"


def _row(line: int, function: str, text: str) -> Error | None:
    operands, arrow, rest = text.partition("=>")
    found, expected, right = rest.partition("expected")
    words = found.split()
    if not arrow or not expected or len(words) != 2 or len(right.split()) != 2:
        return None
    return Error(line, function, tuple(operands.split()), *words)


def numbers_of(error: Error, columns: tuple[Column, ...]) -> list[int]:
    """Operands, result and flags as codes.

    Raises
    ------
    ValueError
        Saying what is wrong.
    """
    words = [*error.operands, error.result, error.flags]
    if len(words) != len(columns):
        accepted = " ".join(column.name for column in columns)
        raise ValueError(f"the row has {len(words)} numbers; accepted: {len(columns)} ({accepted})")
    return [_number(word, column) for word, column in zip(words, columns, strict=True)]


def _number(word: str, column: Column) -> int:
    number = column.number
    if number is FLAGS:
        if len(word) != len(LETTERS) or any(x not in (letter, ".") for x, letter in zip(word, LETTERS, strict=True)):
            raise ValueError(f"{word[:40]!a} is no flags; accepted: {LETTERS}, with points for those not raised")
        return sum(1 << (len(LETTERS) - 1 - i) for i, x in enumerate(word) if x != ".")
    found = FLOAT.fullmatch(word.upper())
    if number.kind in ("float", "float64"):
        fraction = 52 if number.format is None else number.format.mantissa_bits
        width = number.bits - 1 - fraction
        if found is not None:
            sign, high, low = found[1] == "-", int(found[2], 16), int(found[3], 16)
            shape = len(found[2]) == -(-width // 4) and len(found[3]) == -(-fraction // 4)
            if shape and high >> width == 0 and low >> fraction == 0:
                return int(sign) << (number.bits - 1) | high << fraction | low
        raise ValueError(f"{word[:40]!a} is no {number.name} as TestFloat writes it")
    if re.fullmatch(r"[0-9A-Fa-f]+", word) and len(word) == column.digits and int(word, 16) >> number.bits == 0:
        return int(word, 16)
    raise ValueError(f"{word[:40]!a} is no {number.name} as TestFloat writes it")
