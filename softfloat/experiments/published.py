"""What tutorials have published about half precision: a row for each statement, in tables by document.

A row says what is published, and how the exact value and the emulated one are found. The exact value comes from fractions
and integers, the emulated one from `softfloat.bits`. None of these is random.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from softfloat import bits
from softfloat.display.numbers import exact_decimal, power_of_two
from softfloat.experiments import exact
from softfloat.experiments.overflow import ExceptionCase, exception_cases, overflow_cases, traps_that_stop
from softfloat.experiments.scaling import loss_scaling
from softfloat.experiments.squares import variance
from softfloat.experiments.underflow import underflow_cases, underflow_threshold
from softfloat.formats import Format, float16, float32
from softfloat.status import Flags

__all__ = ["DOCUMENTS", "GRAPHCORE", "MINDSPORE", "PADDLE", "Claim", "Verdict", "judge", "number"]


GRAPHCORE = "Graphcore tutorials, TensorFlow 1 half-precision"
MINDSPORE = "MindSpore mixed-precision tutorial"
PADDLE = "Paddle float16 design document"

TOP = (2 - Fraction(1, 2**10)) * 2**15
SINGLE_TOP = (2 - Fraction(1, 2**23)) * 2**127


class Verdict(StrEnum):
    """What came of a claim."""

    REPRODUCED = "reproduced"
    TYPO = "typo"
    NOT_NUMERIC = "not numeric"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Claim:
    """One published statement.

    Attributes
    ----------
    id : str
        Short name, for reference.
    source : str
        The public document.
    statement : str
        What it is about.
    published : str
        The value as printed there.
    exact : str
        The value from fractions and integers.
    emulated : str
        The value from `softfloat.bits`.
    verdict : Verdict
        REPRODUCED; TYPO where the emulator agrees with the exact value and the published text does not; NOT_NUMERIC
        where there is no arithmetic to emulate; FAILED where the emulator disagrees with the exact value.
    note : str
        What else there is to say.
    """

    id: str
    source: str
    statement: str
    published: str
    exact: str
    emulated: str
    verdict: Verdict
    note: str = ""


def judge(agrees_with_exact: bool, published_agrees: bool) -> Verdict:
    """What comes of a claim whose emulated value is the exact one or not, and whose published one is right or not."""
    if not agrees_with_exact:
        return Verdict.FAILED
    return Verdict.REPRODUCED if published_agrees else Verdict.TYPO


def number(x: Fraction | float) -> str:
    """Exact text: a small power of two as such, a large integer with its power of two, else all digits."""
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    power = power_of_two(Fraction(x))
    if power is not None and power < -13:
        return f"2^{power}"
    whole = int(x)
    if x == whole and abs(whole) >= 10**12:
        zeros = (whole & -whole).bit_length() - 1
        return f"{whole >> zeros} × 2^{zeros}"
    return exact_decimal(Fraction(x), 30)


class Row(Protocol):
    """A published statement, and how to compute it again."""

    @property
    def id(self) -> str:
        """Its number and, where a statement has several, a letter."""

    def claim(self, source: str) -> Claim:
        """What comes of it."""


class Numeric(NamedTuple):
    """A statement about one number, published with the digits that `pattern` asks for."""

    id: str
    statement: str
    published: str
    exact: Callable[[], Fraction]
    emulated: Callable[[], float]
    pattern: str
    note: str = ""

    def claim(self, source: str) -> Claim:
        """Reproduced if both values are equal and print as published."""
        value, emulated = self.exact(), self.emulated()
        agrees = math.isfinite(emulated) and Fraction(emulated) == value
        verdict = judge(agrees, self.published == format(float(value), self.pattern))
        return Claim(
            self.id, source, self.statement, self.published, number(value), number(emulated), verdict, self.note
        )


class Textual(NamedTuple):
    """A statement about something else: texts that are equal or not. `right` says whether the published one is."""

    id: str
    statement: str
    published: str
    exact: Callable[[], str]
    emulated: Callable[[], str]
    note: str = ""
    right: bool | Callable[[str], bool] = True

    def claim(self, source: str) -> Claim:
        """Reproduced if both texts are equal and the published one is right."""
        value, emulated = self.exact(), self.emulated()
        right = self.right(value) if callable(self.right) else self.right
        verdict = judge(value == emulated, right)
        return Claim(self.id, source, self.statement, self.published, value, emulated, verdict, self.note)


class Unrounded(NamedTuple):
    """A statement in which nothing is rounded."""

    id: str
    statement: str
    published: str
    note: str

    def claim(self, source: str) -> Claim:
        """Not numeric."""
        return Claim(self.id, source, self.statement, self.published, "-", "-", Verdict.NOT_NUMERIC, self.note)


# -- values ----------------------------------------------------------------------------------------------------------


def _encoded(x: str | float | Fraction, fmt: Format = float16) -> int:
    return int(bits.encode(Fraction(x) if isinstance(x, str) else x, fmt)[0])


def _decoded(code: int, fmt: Format = float16) -> float:
    return float(bits.decode(code, fmt))


def _overflows(x: int) -> bool:
    """Whether x is too large for half precision, rounding to nearest even."""
    return exact.rounded(Fraction(x), float16) > TOP


def _there_and_back(small: str, big: str = "0.25") -> float:
    """small + big - big in half precision."""
    large = _encoded(big)
    total = bits.add(_encoded(small), large, float16)[0]
    return _decoded(bits.sub(total, large, float16)[0])


def _exactly_there_and_back(small: str, big: str = "0.25") -> Fraction:
    return exact.rounded(exact.rounded(Fraction(small), float16) + Fraction(big), float16) - Fraction(big)


def _rounded(x: str) -> Fraction:
    return exact.rounded(Fraction(x), float16)


def _nearest(x: str) -> float:
    return _decoded(_encoded(x))


def _below(code: int, fmt: Format = float16) -> float:
    return _decoded(bits.next_down(code, fmt)[0], fmt)


def _above(code: int, fmt: Format = float16) -> float:
    return _decoded(bits.next_up(code, fmt)[0], fmt)


def _underflow(case: int) -> str:
    found = underflow_cases(float16)[case]
    return f"0x{found.code:04x} {found.flags}"


def _percent(small: str, result: float | Fraction) -> str:
    """The relative error of what should be `small`."""
    return format(float((Fraction(result) - Fraction(small)) / Fraction(small)), "+.1%")


def _ipu(expression: str) -> ExceptionCase:
    cases = {case.expression: case for case in exception_cases() if case.environment.startswith("IPU")}
    return cases[expression]


UNSCALED = 2 * (0x7BFF - (8 << 10) + 1)
"""65504 / 2^8 has an exponent field less by 8: all codes up to it, both signs."""


def _rescaled() -> str:
    found = loss_scaling(256.0, float16)
    return f"{found.restored} of {found.finite} exact, {found.overflowed} overflow"


SQUARED = (296, 298, 302, 304)


def _in_one_pass() -> str:
    found = variance(SQUARED)
    return f"{'overflow' if Flags.OVERFLOW in found.one_pass_flags else 'no overflow'}, {found.one_pass:g}"


def _exactly_in_one_pass() -> str:
    return "overflow, nan" if _overflows(SQUARED[0] ** 2) else f"no overflow, {variance(SQUARED).exact}"


def _exactness(flags: Flags) -> str:
    return "overflow" if Flags.OVERFLOW in flags else "rounded" if flags else "exact"


def _first_scale() -> str:
    raised = [(name, Flags(int(bits.encode(2.0**24, fmt)[1]))) for name, fmt in (("FP32", float32), ("FP16", float16))]
    return ", ".join(f"{_exactness(flags)} in {name}" for name, flags in raised)


def _converted_ties() -> str:
    ties = [int(bits.convert(_encoded(1 + Fraction(k, 2**11), float32), float32, float16)[0]) for k in (1, 3)]
    return ", ".join(f"0x{code:04x}" for code in ties)


def _kept_codes() -> str:
    codes = np.arange(1 << 16, dtype=np.uint16)
    numbers = ~np.asarray(bits.isnan(codes, float16))
    returned = bits.convert(bits.convert(codes, float16, float32)[0], float32, float16)[0]
    return f"{int(((returned == codes) & numbers).sum())} codes"


# -- rows ------------------------------------------------------------------------------------------------------------


def _swamped(row: str, small: str, published: str, percent: str, note: str = "") -> tuple[Row, Row]:
    """A line of the tutorial's table of small + 0.25 - 0.25, and of its relative errors."""
    return (
        Numeric(
            f"8{row}",
            f"{small} + 0.25 - 0.25",
            published,
            lambda: _exactly_there_and_back(small),
            lambda: _there_and_back(small),
            ".7f",
            note,
        ),
        Textual(
            f"8{row}'",
            "its relative error",
            percent,
            lambda: _percent(small, _exactly_there_and_back(small)),
            lambda: _percent(small, _there_and_back(small)),
            right=lambda value: value == percent,
        ),
    )


def _status(row: str, after: str, case: Callable[[], ExceptionCase], raised: str, note: str = "") -> Row:
    """What the register $FP_STS holds after something."""
    expected = " ".join(f"{name} 0x{int(name in raised.split())}" for name in ("OFLO", "DIV0", "INV"))
    return Textual(f"14{row}", f"$FP_STS after {after}", "0x1 or 0x0", lambda: expected, lambda: case().status, note)


LEAST = Fraction(1, 2**24)
SINGLE_LEAST = Fraction(1, 2**149)

GRAPHCORE_ROWS: tuple[Row, ...] = (
    Numeric("1", "largest FP16", "65504", lambda: TOP, lambda: _below(0x7C00), ".0f"),
    Numeric("2", "smallest positive FP16", "6.0e-08", lambda: LEAST, lambda: _above(0), ".1e"),
    Numeric(
        "3a",
        "smaller numbers underflow in FP16",
        "3.0e-08",
        lambda: LEAST / 2,
        lambda: underflow_threshold(float16),
        ".1e",
        "The largest float32 that becomes 0, by bisection: the tie goes to the even zero.",
    ),
    Textual("3b", "the next float32 above 2^-25", "not 0", lambda: "0x0001 UNDERFLOW|INEXACT", lambda: _underflow(1)),
    Textual("3c", "3e-8, just above the threshold", "not 0", lambda: "0x0001 UNDERFLOW|INEXACT", lambda: _underflow(2)),
    Numeric("4", "Adam's epsilon, 1e-8, in FP16", "0", lambda: _rounded("1e-8"), lambda: _nearest("1e-8"), ".0f"),
    Numeric(
        "5a",
        "largest FP32",
        "1.7e+38",
        lambda: SINGLE_TOP,
        lambda: _below(0x7F800000, float32),
        ".1e",
        "The largest float32 is 3.4e+38; 1.7e+38 is half of it.",
    ),
    Numeric(
        "5b",
        "smallest positive FP32",
        "1.7e-38",
        lambda: SINGLE_LEAST,
        lambda: _above(0, float32),
        ".1e",
        "The smallest float32 is 1.4e-45, the smallest normal one 1.2e-38.",
    ),
    Numeric(
        "6",
        "0.0004 + 0.25 - 0.25",
        "0.0004833",
        lambda: _exactly_there_and_back("0.0004"),
        lambda: _there_and_back("0.0004"),
        ".7f",
        "The digits of 0.0004883 are transposed.",
    ),
    Numeric(
        "7",
        "nearest FP16 to 0.2504",
        "0.2504833",
        lambda: _rounded("0.2504"),
        lambda: _nearest("0.2504"),
        ".7f",
        "The same transposition: 0.2504883.",
    ),
    *_swamped("a", "0.2", "0.1999512", "-0.0%"),
    *_swamped("b", "0.02", "0.0200205", "+0.1%", "A digit is lost: 0.0200195."),
    *_swamped("c", "0.002", "0.0019531", "-2.3%"),
    *_swamped("d", "0.0002", "0.0002441", "+22.1%"),
    Numeric(
        "9",
        "0.0001 + 0.25 - 0.25",
        "0.0",
        lambda: _exactly_there_and_back("0.0001"),
        lambda: _there_and_back("0.0001"),
        ".1f",
        "Swamping: the nearest number to 0.2501 is 0.25.",
    ),
    Unrounded(
        "12",
        "AMP and SLIC peak, FP16 against FP32",
        "4x",
        "Mk2: 64 against 16 multiply-adds a cycle. A rate has no bits to emulate.",
    ),
    Numeric(
        "13a",
        "60000 + 60000, nanoo=False",
        "65504",
        lambda: min(_rounded("120000"), TOP),
        lambda: overflow_cases()[0].value,
        ".0f",
        "The highest representable number.",
    ),
    Textual(
        "13b",
        "60000 + 60000, nanoo=True",
        "NaN",
        lambda: "nan" if _overflows(120000) else "120000",
        lambda: str(overflow_cases()[1].value),
    ),
    _status("a", "it, nanoo=False", lambda: overflow_cases()[0], "OFLO"),
    _status("b", "it, nanoo=True", lambda: overflow_cases()[1], "OFLO INV"),
    _status("c", "1 / 0 in FP32", lambda: _ipu("1 / 0"), "DIV0"),
    _status("d", "0 / 0 in FP32", lambda: _ipu("0 / 0"), "INV"),
    _status("e", "sqrt(-1) in FP32", lambda: _ipu("sqrt(-1)"), "INV"),
    _status(
        "f",
        "NaN + 1 in FP32",
        lambda: _ipu("nan + 1"),
        "INV",
        "Poplar documents INV for any NaN operand; IEEE 754 only for signalling ones.",
    ),
    Textual(
        "14g",
        "traps that stop execution",
        "oflo, div0, inv",
        lambda: "oflo, div0, inv",
        lambda: ", ".join(traps_that_stop()),
    ),
    Textual(
        "15",
        "loss scaling by 2^8 and back",
        "256",
        lambda: f"{UNSCALED} of {2 * 0x7C00} exact, {2 * 0x7C00 - UNSCALED} overflow",
        _rescaled,
        "All finite FP16 numbers. A power of two changes no bit of a product that stays in range.",
    ),
    Textual(
        "16a",
        "squares of 296, 298, 302, 304 in FP16",
        "prone to overflow",
        _exactly_in_one_pass,
        _in_one_pass,
        "296^2 = 87616; the variance in one pass is inf - inf.",
    ),
    Textual(
        "16b",
        "their variance in two passes",
        "stable",
        lambda: f"{variance(SQUARED).exact}",
        lambda: f"{variance(SQUARED).two_pass:g}",
        "Subtract the mean before squaring: norms.use_stable_statistics.",
    ),
)

MINDSPORE_ROWS: tuple[Row, ...] = (
    Numeric("17a", "largest FP16", "65504", lambda: TOP, lambda: _below(0x7C00), ".0f"),
    Numeric(
        "17b",
        "upper end of the FP16 range",
        "66504",
        lambda: TOP,
        lambda: _below(0x7C00),
        ".0f",
        "Two digits of 65504 were mixed up; the same page has it right above.",
    ),
    Numeric(
        "17c",
        "smallest FP16",
        "6.104e-05",
        lambda: Fraction(1, 2**14),
        lambda: _above(0x03FF),
        ".3e",
        "The smallest normal number; subnormal ones go down to 2^-24.",
    ),
    Textual(
        "17d",
        "66504 and 2^-15, outside that range",
        "set to 0",
        lambda: "inf, 2^-15",
        lambda: ", ".join(number(_decoded(_encoded(x))) for x in (66504.0, 2.0**-15)),
        "What is too large becomes infinity; what is small becomes subnormal.",
        right=False,
    ),
    Numeric(
        "17e",
        "0.00006666666 in FP16",
        "0.000067",
        lambda: _rounded("0.00006666666"),
        lambda: _nearest("0.00006666666"),
        ".6f",
        "6.664e-05 in full: the published digits are a rounded print.",
    ),
    Numeric(
        "17f",
        "largest FP32",
        "1.7e+38",
        lambda: SINGLE_TOP,
        lambda: _below(0x7F800000, float32),
        ".1e",
        "As above: 3.4e+38.",
    ),
    Numeric("17g", "smallest positive FP32", "1.4e-45", lambda: SINGLE_LEAST, lambda: _above(0, float32), ".1e"),
    Textual(
        "18a",
        "initial loss scale 2^24",
        "16777216",
        lambda: f"exact in FP32, {'overflow' if _overflows(2**24) else 'exact'} in FP16",
        _first_scale,
    ),
    Unrounded(
        "18b",
        "dynamic loss scale, window 2000",
        "factor 2",
        "Doubles after 2000 clean steps, halves on overflow: a state machine; nothing is rounded.",
    ),
)

PADDLE_ROWS: tuple[Row, ...] = (
    Textual(
        "19a",
        "float_to_half_rn(1 + 2^-11), (1 + 3 * 2^-11)",
        "nearest even",
        lambda: "0x3c00, 0x3c02",
        _converted_ties,
    ),
    Textual(
        "19b",
        "uint16 to float and back",
        "lossless",
        lambda: f"{(1 << 16) - 2 * 1023} codes",
        _kept_codes,
        "Every code of a number; NaNs aside.",
    ),
)

DOCUMENTS: dict[str, tuple[Row, ...]] = {GRAPHCORE: GRAPHCORE_ROWS, MINDSPORE: MINDSPORE_ROWS, PADDLE: PADDLE_ROWS}
"""Rows by the document that they are from."""
