"""Numbers that tutorials have published about half precision, computed again.

The exact value of every claim comes from fractions and integers; the emulated one from `softfloat.bits`. A claim is
reproduced if the two are equal and print as published. If they are equal and the published text says something else,
the text is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from softfloat import bits
from softfloat.display import exact_decimal, power_of_two
from softfloat.environments import Rounding
from softfloat.experiments import accumulation, exact
from softfloat.experiments.accumulation import Accumulation
from softfloat.experiments.overflow import ExceptionCase, exception_cases, overflow_cases, traps_that_stop
from softfloat.experiments.scaling import loss_scaling
from softfloat.experiments.squares import variance
from softfloat.experiments.swamping import FORMATS, RunningSum, Spread, running_sum, spread, sums_across, walk_moments
from softfloat.experiments.underflow import UnderflowCase, underflow_cases, underflow_threshold
from softfloat.formats import Format, float16, float32
from softfloat.status import Flags

__all__ = [
    "PUBLISHED_TOTALS",
    "Claim",
    "Report",
    "SwampingCell",
    "Verdict",
    "range_claims",
    "reproduce",
    "stochastic_claims",
    "swamping_table",
]

GRAPHCORE = "Graphcore tutorials, TensorFlow 1 half-precision"
MINDSPORE = "MindSpore mixed-precision tutorial"
PADDLE = "Paddle float16 design document"

# fmt: off
PUBLISHED_TOTALS = (
    "1.005", "0.993", "0.991", "0.9966", "0.986", "0.997", "1.019", "0.9985", "1.004", "1.03",
    "0.991", "0.9873", "0.9946", "1.013", "1.006", "0.9995", "1.02", "0.9653", "0.9854", "0.9985",
)
# fmt: on
"""The twenty stochastic sums the Graphcore tutorial prints."""

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


@dataclass(frozen=True)
class SwampingCell:
    """A running sum in one format and rounding mode, beside the same walk in Python integers.

    Attributes
    ----------
    format, rounding : str
    runs : int
        More than one for stochastic rounding.
    final : float
        The last sum; the mean of the last sums, if there are several.
    stalled_after : int or None
        Additions after which the sum no longer changed.
    exact : str
        The last sum from integers; for stochastic rounding the expectation.
    verdict : Verdict
        REPRODUCED or FAILED.
    """

    format: str
    rounding: str
    runs: int
    final: float
    stalled_after: int | None
    exact: str
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Report:
    """Everything `reproduce` computes.

    Attributes
    ----------
    seed : int
        Of every stochastic rounding and random vector in it.
    claims : tuple of Claim
    swamping : tuple of SwampingCell
        Formats outermost.
    overflow : tuple of ExceptionCase
    exceptions : tuple of ExceptionCase
    underflow : tuple of UnderflowCase
    nearest, stochastic : RunningSum
        The tutorial's sums, trajectories kept.
    spread, wide_spread : Spread
        Of the tutorial's 20 runs, and of 1000.
    accumulation : Accumulation
        Long sums beside their error bounds.
    """

    seed: int
    claims: tuple[Claim, ...]
    swamping: tuple[SwampingCell, ...]
    overflow: tuple[ExceptionCase, ...]
    exceptions: tuple[ExceptionCase, ...]
    underflow: tuple[UnderflowCase, ...]
    nearest: RunningSum
    stochastic: RunningSum
    spread: Spread
    wide_spread: Spread
    accumulation: Accumulation

    @property
    def passed(self) -> bool:
        """Whether nothing failed and every error bound holds."""
        verdicts = [claim.verdict for claim in self.claims] + [cell.verdict for cell in self.swamping]
        return Verdict.FAILED not in verdicts and not self.accumulation.broken

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each verdict."""
        return {str(verdict): sum(claim.verdict is verdict for claim in self.claims) for verdict in Verdict}


def _judge(agrees_with_exact: bool, published_agrees: bool) -> Verdict:
    if not agrees_with_exact:
        return Verdict.FAILED
    return Verdict.REPRODUCED if published_agrees else Verdict.TYPO


def _number(x: Fraction | float) -> str:
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


def _numeric(
    source: str, id: str, statement: str, published: str, value: Fraction, emulated: float, pattern: str, note: str = ""
) -> Claim:
    """A claim about one number, published with the digits that `pattern` asks for."""
    agrees = math.isfinite(emulated) and Fraction(emulated) == value
    verdict = _judge(agrees, published == format(float(value), pattern))
    return Claim(id, source, statement, published, _number(value), _number(emulated), verdict, note)


def _textual(
    source: str,
    id: str,
    statement: str,
    published: str,
    value: str,
    emulated: str,
    note: str = "",
    *,
    typo: bool = False,
) -> Claim:
    """A claim about something else: texts that are equal or not."""
    return Claim(id, source, statement, published, value, emulated, _judge(value == emulated, not typo), note)


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


def range_claims() -> Iterator[Claim]:
    """Claims about limits, errors of single operations, exceptions and scaling; none of them random."""
    yield _numeric(GRAPHCORE, "1", "largest FP16", "65504", TOP, _decoded(bits.next_down(0x7C00, float16)[0]), ".0f")
    least = Fraction(1, 2**24)
    yield _numeric(
        GRAPHCORE, "2", "smallest positive FP16", "6.0e-08", least, _decoded(bits.next_up(0, float16)[0]), ".1e"
    )

    yield _numeric(
        GRAPHCORE,
        "3a",
        "smaller numbers underflow in FP16",
        "3.0e-08",
        least / 2,
        underflow_threshold(float16),
        ".1e",
        "The largest float32 that becomes 0, by bisection: the tie goes to the even zero.",
    )
    _, above, three, *_ = underflow_cases(float16)
    texts = [f"0x{case.code:04x} {case.flags}" for case in (above, three)]
    yield _textual(GRAPHCORE, "3b", "the next float32 above 2^-25", "not 0", "0x0001 UNDERFLOW|INEXACT", texts[0])
    yield _textual(GRAPHCORE, "3c", "3e-8, just above the threshold", "not 0", "0x0001 UNDERFLOW|INEXACT", texts[1])
    adam = Fraction("1e-8")
    yield _numeric(
        GRAPHCORE,
        "4",
        "Adam's epsilon, 1e-8, in FP16",
        "0",
        exact.rounded(adam, float16),
        _decoded(_encoded("1e-8")),
        ".0f",
    )

    top = _decoded(bits.next_down(0x7F800000, float32)[0], float32)
    yield _numeric(
        GRAPHCORE,
        "5a",
        "largest FP32",
        "1.7e+38",
        SINGLE_TOP,
        top,
        ".1e",
        "The largest float32 is 3.4e+38; 1.7e+38 is half of it.",
    )
    tiny = _decoded(bits.next_up(0, float32)[0], float32)
    note = "The smallest float32 is 1.4e-45, the smallest normal one 1.2e-38."
    yield _numeric(GRAPHCORE, "5b", "smallest positive FP32", "1.7e-38", Fraction(1, 2**149), tiny, ".1e", note)

    note = "The digits of 0.0004883 are transposed."
    one = _exactly_there_and_back("0.0004")
    yield _numeric(GRAPHCORE, "6", "0.0004 + 0.25 - 0.25", "0.0004833", one, _there_and_back("0.0004"), ".7f", note)
    note = "The same transposition: 0.2504883."
    nearest = _decoded(_encoded("0.2504"))
    yield _numeric(
        GRAPHCORE,
        "7",
        "nearest FP16 to 0.2504",
        "0.2504833",
        exact.rounded(Fraction("0.2504"), float16),
        nearest,
        ".7f",
        note,
    )

    table = {
        "0.2": ("0.1999512", "-0.0%"),
        "0.02": ("0.0200205", "+0.1%"),
        "0.002": ("0.0019531", "-2.3%"),
        "0.0002": ("0.0002441", "+22.1%"),
    }
    for row, (small, (published, percent)) in zip("abcd", table.items(), strict=True):
        value, emulated = _exactly_there_and_back(small), _there_and_back(small)
        note = "A digit is lost: 0.0200195." if small == "0.02" else ""
        yield _numeric(GRAPHCORE, f"8{row}", f"{small} + 0.25 - 0.25", published, value, emulated, ".7f", note)
        errors = [format(float((x - Fraction(small)) / Fraction(small)), "+.1%") for x in (value, Fraction(emulated))]
        yield _textual(GRAPHCORE, f"8{row}'", "its relative error", percent, *errors, typo=errors[0] != percent)
    note = "Swamping: the nearest number to 0.2501 is 0.25."
    yield _numeric(
        GRAPHCORE,
        "9",
        "0.0001 + 0.25 - 0.25",
        "0.0",
        _exactly_there_and_back("0.0001"),
        _there_and_back("0.0001"),
        ".1f",
        note,
    )

    note = "Mk2: 64 against 16 multiply-adds a cycle. A rate has no bits to emulate."
    yield Claim("12", GRAPHCORE, "AMP and SLIC peak, FP16 against FP32", "4x", "-", "-", Verdict.NOT_NUMERIC, note)

    saturated, nanoo, _ = overflow_cases()
    limited = min(exact.rounded(Fraction(120000), float16), TOP)
    yield _numeric(
        GRAPHCORE,
        "13a",
        "60000 + 60000, nanoo=False",
        "65504",
        limited,
        saturated.value,
        ".0f",
        "The highest representable number.",
    )
    yield _textual(
        GRAPHCORE,
        "13b",
        "60000 + 60000, nanoo=True",
        "NaN",
        "nan" if _overflows(120000) else "120000",
        str(nanoo.value),
    )
    published = "0x1 or 0x0"
    cases_by_text = {case.expression: case for case in exception_cases() if case.environment.startswith("IPU")}
    for row, statement, case, oflo, div0, inv in (
        ("a", "$FP_STS after it, nanoo=False", saturated, 1, 0, 0),
        ("b", "$FP_STS after it, nanoo=True", nanoo, 1, 0, 1),
        ("c", "$FP_STS after 1 / 0 in FP32", cases_by_text["1 / 0"], 0, 1, 0),
        ("d", "$FP_STS after 0 / 0 in FP32", cases_by_text["0 / 0"], 0, 0, 1),
        ("e", "$FP_STS after sqrt(-1) in FP32", cases_by_text["sqrt(-1)"], 0, 0, 1),
        ("f", "$FP_STS after NaN + 1 in FP32", cases_by_text["nan + 1"], 0, 0, 1),
    ):
        expected = f"OFLO 0x{oflo} DIV0 0x{div0} INV 0x{inv}"
        note = "Poplar documents INV for any NaN operand; IEEE 754 only for signalling ones." if row == "f" else ""
        yield _textual(GRAPHCORE, f"14{row}", statement, published, expected, case.status, note)
    yield _textual(
        GRAPHCORE,
        "14g",
        "traps that stop execution",
        "oflo, div0, inv",
        "oflo, div0, inv",
        ", ".join(traps_that_stop()),
    )

    scaling = loss_scaling(256.0, float16)
    kept = 2 * (0x7BFF - (8 << 10) + 1)  # 65504 / 2^8 has an exponent field less by 8; all codes up to it, both signs
    yield _textual(
        GRAPHCORE,
        "15",
        "loss scaling by 2^8 and back",
        "256",
        f"{kept} of {2 * 0x7C00} exact, {2 * 0x7C00 - kept} overflow",
        f"{scaling.restored} of {scaling.finite} exact, {scaling.overflowed} overflow",
        "All finite FP16 numbers. A power of two changes no bit of a product that stays in range.",
    )
    result = variance([296, 298, 302, 304])
    expected = "overflow, nan" if _overflows(296**2) else f"no overflow, {result.exact}"
    overflowed = Flags.OVERFLOW in result.one_pass_flags
    yield _textual(
        GRAPHCORE,
        "16a",
        "squares of 296, 298, 302, 304 in FP16",
        "prone to overflow",
        expected,
        f"{'overflow' if overflowed else 'no overflow'}, {result.one_pass:g}",
        "296^2 = 87616; the variance in one pass is inf - inf.",
    )
    note = "Subtract the mean before squaring: norms.use_stable_statistics."
    yield _textual(
        GRAPHCORE, "16b", "their variance in two passes", "stable", f"{result.exact}", f"{result.two_pass:g}", note
    )

    yield _numeric(MINDSPORE, "17a", "largest FP16", "65504", TOP, _decoded(bits.next_down(0x7C00, float16)[0]), ".0f")
    note = "Two digits of 65504 were mixed up; the same page has it right above."
    yield _numeric(
        MINDSPORE,
        "17b",
        "upper end of the FP16 range",
        "66504",
        TOP,
        _decoded(bits.next_down(0x7C00, float16)[0]),
        ".0f",
        note,
    )
    note = "The smallest normal number; subnormal ones go down to 2^-24."
    normal = _decoded(bits.next_up(0x03FF, float16)[0])
    yield _numeric(MINDSPORE, "17c", "smallest FP16", "6.104e-05", Fraction(1, 2**14), normal, ".3e", note)
    outside = [_decoded(_encoded(x)) for x in (66504.0, 2.0**-15)]
    yield _textual(
        MINDSPORE,
        "17d",
        "66504 and 2^-15, outside that range",
        "set to 0",
        "inf, 2^-15",
        ", ".join(_number(x) for x in outside),
        "What is too large becomes infinity; what is small becomes subnormal.",
        typo=True,
    )
    note = "6.664e-05 in full: the published digits are a rounded print."
    value = exact.rounded(Fraction("0.00006666666"), float16)
    yield _numeric(
        MINDSPORE, "17e", "0.00006666666 in FP16", "0.000067", value, _decoded(_encoded("0.00006666666")), ".6f", note
    )
    yield _numeric(MINDSPORE, "17f", "largest FP32", "1.7e+38", SINGLE_TOP, top, ".1e", "As above: 3.4e+38.")
    yield _numeric(MINDSPORE, "17g", "smallest positive FP32", "1.4e-45", Fraction(1, 2**149), tiny, ".1e")
    flagged = [Flags(int(bits.encode(2.0**24, fmt)[1])) for fmt in (float32, float16)]
    words = ", ".join(f"{_exactness(raised)} in {name}" for raised, name in zip(flagged, ("FP32", "FP16"), strict=True))
    expected = f"exact in FP32, {'overflow' if _overflows(2**24) else 'exact'} in FP16"
    yield _textual(MINDSPORE, "18a", "initial loss scale 2^24", "16777216", expected, words)
    note = "Doubles after 2000 clean steps, halves on overflow: a state machine; nothing is rounded."
    yield Claim("18b", MINDSPORE, "dynamic loss scale, window 2000", "factor 2", "-", "-", Verdict.NOT_NUMERIC, note)

    ties = [int(bits.convert(_encoded(1 + Fraction(k, 2**11), float32), float32, float16)[0]) for k in (1, 3)]
    yield _textual(
        PADDLE,
        "19a",
        "float_to_half_rn(1 + 2^-11), (1 + 3 * 2^-11)",
        "nearest even",
        "0x3c00, 0x3c02",
        ", ".join(f"0x{c:04x}" for c in ties),
    )
    codes = np.arange(1 << 16, dtype=np.uint16)
    numbers = ~np.asarray(bits.isnan(codes, float16))
    returned = bits.convert(bits.convert(codes, float16, float32)[0], float32, float16)[0]
    count = int(((returned == codes) & numbers).sum())
    note = "Every code of a number; NaNs aside."
    yield _textual(
        PADDLE, "19b", "uint16 to float and back", "lossless", f"{(1 << 16) - 2 * 1023} codes", f"{count} codes", note
    )


def _exactness(flags: Flags) -> str:
    return "overflow" if Flags.OVERFLOW in flags else "rounded" if flags else "exact"


def stochastic_claims(
    nearest: RunningSum, stochastic: RunningSum, wide: RunningSum
) -> tuple[tuple[Claim, ...], Spread, Spread]:
    """Claims about 10 000 additions of 0.0001.

    Parameters
    ----------
    nearest, stochastic : RunningSum
        The tutorial's two experiments.
    wide : RunningSum
        The second one with many runs, for a narrower bound.

    Returns
    -------
    claims, and the spreads of `stochastic` and of `wide`
    """
    step = exact.rounded(Fraction("0.0001"), float16)
    final, stalled = exact.walk(float16, step, nearest.count, Rounding.NEAREST_EVEN)
    assert final is not None
    emulated = float(nearest.final[0])
    note = "Rounding the increment first gives 0.00010001659; from 0.25 on, half the spacing is more."
    claims = [
        _numeric(GRAPHCORE, "10a", "sum of 10 000 x 0.0001 to nearest even", "0.25", final, emulated, ".2f", note),
        _textual(
            GRAPHCORE,
            "10b",
            "additions before it stays at 0.25",
            "never beyond 0.25",
            f"{stalled}",
            f"{nearest.stalled_after}",
        ),
    ]
    totals = np.array([float(x) for x in PUBLISHED_TOTALS])
    sample, many = spread(stochastic), spread(wide)
    expectation = stochastic.count * step
    theory = walk_moments(float16, float(step), stochastic.count)
    low, high = sample.mean_bounds
    claims.append(
        Claim(
            "11a",
            GRAPHCORE,
            "mean of 20 stochastic sums",
            "0.999",
            f"{float(expectation):.6f}",
            f"{sample.mean:.6f}",
            _judge(sample.expectation == expectation and sample.mean_agrees, low < totals.mean() < high),
            f"The expectation is 10 000 times the rounded increment, {exact_decimal(expectation, 30)}; "
            f"four standard errors of {sample.standard_error:.4f} are allowed.",
        )
    )
    low, high = sample.std_bounds
    claims.append(
        Claim(
            "11b",
            GRAPHCORE,
            "their standard deviation",
            f"{totals.std(ddof=1):.4f} in the list",
            f"{theory.std:.4f}",
            f"{sample.std:.4f}",
            _judge(sample.std_agrees, low < totals.std(ddof=1) < high),
            f"From the distribution of the walk; {low:.4f} to {high:.4f} is allowed for 20 runs.",
        )
    )
    low, high = many.std_bounds
    claims.append(
        Claim(
            "11c",
            GRAPHCORE,
            f"mean and deviation of {wide.runs} sums",
            "true on average",
            f"{float(expectation):.6f}, {theory.std:.4f}",
            f"{many.mean:.6f}, {many.std:.4f}",
            _judge(many.expectation == expectation and many.mean_agrees and many.std_agrees, True),
            f"{many.standard_error:.4f} is the standard error; four are allowed, and {low:.4f} to {high:.4f} for the "
            "deviation. The sum is right on average, for the increment as rounded.",
        )
    )
    return tuple(claims), sample, many


def swamping_table(sums: tuple[RunningSum, ...]) -> tuple[SwampingCell, ...]:
    """Running sums beside the same walks in Python integers.

    Deterministic sums must agree in the last sum and in the addition that stalls. Stochastic ones must have a mean
    within eight standard errors of the expectation, for the sums of coarse formats are far from normal. In float32,
    where no table of the walk fits, the variance is bounded by a quarter of the squared spacing for each addition.
    """
    cells = []
    for result in sums:
        fmt, mode = Format.from_name(result.format), Rounding[result.rounding.upper()]
        step = exact.rounded(Fraction(str(result.requested)), fmt)
        final = float(result.final.mean())
        if mode is Rounding.STOCHASTIC:
            expectation = float(result.count * step)
            if fmt.bits <= 20:
                deviation = walk_moments(fmt, float(step), result.count).std
            else:
                deviation = math.sqrt(result.count) * fmt.eps * 2 ** math.floor(math.log2(expectation) + 1) / 2
            agrees = abs(final - expectation) < 8 * deviation / math.sqrt(result.runs)
            text = f"{expectation:.6g}"
        else:
            last, stalled = exact.walk(fmt, step, result.count, mode)
            text = "overflow" if last is None else _number(last)
            agrees = math.isinf(final) if last is None else (Fraction(final), result.stalled_after) == (last, stalled)
        verdict = Verdict.REPRODUCED if agrees else Verdict.FAILED
        cells.append(
            SwampingCell(
                result.format,
                result.rounding,
                result.runs,
                final,
                None if math.isinf(final) else result.stalled_after,
                text,
                verdict,
            )
        )
    return tuple(cells)


STAGES = len(FORMATS) * len(Rounding) + 3 + accumulation.STAGES
"""How often `reproduce` calls `progress`."""


def reproduce(seed: int = 0, progress: Callable[[], None] | None = None) -> Report:
    """Compute every claim, and long sums beside their error bounds.

    Parameters
    ----------
    seed : int
        Of stochastic rounding and random vectors; every seed must do.
    progress : callable, optional
        Called `STAGES` times on the way.
    """
    advance = progress or (lambda: None)
    nearest = running_sum(float16)
    advance()
    stochastic = running_sum(float16, rounding="stochastic", runs=len(PUBLISHED_TOTALS), seed=seed)
    advance()
    wide = running_sum(float16, rounding="stochastic", runs=1000, seed=seed, keep=False)
    advance()
    sums = sums_across(runs=len(PUBLISHED_TOTALS), seed=seed, progress=advance)
    random, sample, many = stochastic_claims(nearest, stochastic, wide)
    claims = [*range_claims(), *random]
    return Report(
        seed=seed,
        claims=tuple(sorted(claims, key=lambda claim: int("".join(c for c in claim.id if c.isdigit())))),
        swamping=swamping_table(sums),
        overflow=overflow_cases(),
        exceptions=exception_cases(),
        underflow=underflow_cases(float16),
        nearest=nearest,
        stochastic=stochastic,
        spread=sample,
        wide_spread=many,
        accumulation=accumulation.measure(seed, advance),
    )
