"""Numbers that tutorials have published about half precision, computed again.

The exact value of every claim comes from fractions and integers; the emulated one from `softfloat.bits`. A claim is
reproduced if the two are equal and print as published. If they are equal and the published text says something else,
the text is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from softfloat.display.numbers import exact_decimal
from softfloat.environments import Rounding
from softfloat.experiments import accumulation, exact
from softfloat.experiments.accumulation import Accumulation
from softfloat.experiments.overflow import ExceptionCase, exception_cases, overflow_cases
from softfloat.experiments.published import (
    DOCUMENTS,
    GRAPHCORE,
    Claim,
    Numeric,
    Row,
    Textual,
    Verdict,
    judge,
    number,
)
from softfloat.experiments.swamping import FORMATS, RunningSum, Spread, running_sum, spread, sums_across, walk_moments
from softfloat.experiments.underflow import UnderflowCase, underflow_cases
from softfloat.formats import Format, float16

__all__ = [
    "PUBLISHED_TOTALS",
    "Claim",
    "Claims",
    "Report",
    "SwampingCell",
    "Verdict",
    "range_claims",
    "reproduce",
    "stochastic_claims",
    "swamping_table",
]

# fmt: off
PUBLISHED_TOTALS = (
    "1.005", "0.993", "0.991", "0.9966", "0.986", "0.997", "1.019", "0.9985", "1.004", "1.03",
    "0.991", "0.9873", "0.9946", "1.013", "1.006", "0.9995", "1.02", "0.9653", "0.9854", "0.9985",
)
# fmt: on
"""The twenty stochastic sums the Graphcore tutorial prints."""


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
class Claims:
    """Claims and what came of them.

    Attributes
    ----------
    seed : int
        Of every stochastic rounding and random vector in it.
    claims : tuple of Claim
    """

    seed: int
    claims: tuple[Claim, ...]

    @property
    def passed(self) -> bool:
        """Whether no claim failed."""
        return all(claim.verdict is not Verdict.FAILED for claim in self.claims)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each verdict."""
        return {str(verdict): sum(claim.verdict is verdict for claim in self.claims) for verdict in Verdict}


@dataclass(frozen=True, eq=False)
class Report(Claims):
    """Everything `reproduce` computes.

    Attributes
    ----------
    seed, claims
        As of `Claims`.
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
        failed = any(cell.verdict is Verdict.FAILED for cell in self.swamping)
        return super().passed and not failed and not self.accumulation.broken


def range_claims() -> Iterator[Claim]:
    """Claims about limits, errors of single operations, exceptions and scaling; none of them random."""
    for source, rows in DOCUMENTS.items():
        for row in rows:
            yield row.claim(source)


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
    last = final  # a number, for what is evaluated later, too
    emulated = float(nearest.final[0])
    note = "Rounding the increment first gives 0.00010001659; from 0.25 on, half the spacing is more."
    claims = [
        Numeric(
            "10a", "sum of 10 000 x 0.0001 to nearest even", "0.25", lambda: last, lambda: emulated, ".2f", note
        ).claim(GRAPHCORE),
        Textual(
            "10b",
            "additions before it stays at 0.25",
            "never beyond 0.25",
            lambda: f"{stalled}",
            lambda: f"{nearest.stalled_after}",
        ).claim(GRAPHCORE),
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
            judge(sample.expectation == expectation and sample.mean_agrees, low < totals.mean() < high),
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
            judge(sample.std_agrees, low < totals.std(ddof=1) < high),
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
            judge(many.expectation == expectation and many.mean_agrees and many.std_agrees, True),
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
            text = "overflow" if last is None else number(last)
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


TENTHS = {
    "limits and single operations": 31,
    "the sum to nearest": 3,
    "20 stochastic sums": 24,
    "1000 stochastic sums": 3,
    "exceptions, scaling and variances": 57,
    **{f"sums in {fmt}": tenths for fmt, tenths in zip(FORMATS, (5, 7, 14, 1, 27), strict=True)},
    **dict(zip(accumulation.STAGES, (68, 16, 13, 53), strict=True)),
}
"""What takes time in `reproduce`, in order: tenths of a second on one core, loops compiled on the way; with compiled ones all takes 3 seconds."""
QUICK = 5  # of them, without which there are no claims

Progress = Callable[[str, float], None]


def reproduce(
    seed: int = 0,
    progress: Progress | None = None,
    told: Callable[[Claim], None] | None = None,
    *,
    quick: bool = False,
) -> Report:
    """Compute every claim, and long sums beside their error bounds.

    Settings and sums are those of the publications: it takes neither an environment nor an accumulator.

    Parameters
    ----------
    seed : int
        Of stochastic rounding and random vectors; every seed must do.
    progress : callable, optional
        Called with the name of what comes next, and the share of the work that is done, from 0 to less than 1.
    told : callable, optional
        Called with each claim as soon as it is computed, in the order of the report.
    quick : bool
        The claims alone: the report's `swamping` and `accumulation` are empty.
    """
    left = list(TENTHS.items())[: QUICK if quick else None]
    whole = sum(tenths for _, tenths in left)

    def begin(name: str) -> None:
        if progress is not None:
            progress(name, 1 - sum(tenths for _, tenths in left) / whole)
        assert left.pop(0)[0] == name

    claims: list[Claim] = []
    spreads: list[Spread] = []
    sums: list[RunningSum] = []

    def random() -> Iterator[Claim]:
        begin("the sum to nearest")
        sums.append(running_sum(float16))
        begin("20 stochastic sums")
        sums.append(running_sum(float16, rounding="stochastic", runs=len(PUBLISHED_TOTALS), seed=seed))
        begin("1000 stochastic sums")
        wide = running_sum(float16, rounding="stochastic", runs=1000, seed=seed, keep=False)
        found, *spreads[:] = stochastic_claims(sums[0], sums[1], wide)
        yield from found
        begin("exceptions, scaling and variances")

    begin("limits and single operations")
    rows: list[tuple[int, Callable[[], Iterator[Claim]]]]
    rows = [(_number_of(row.id), partial(_claimed, row, source)) for source, rows in DOCUMENTS.items() for row in rows]
    for _, computed in sorted([*rows, (RANDOM_CLAIMS, random)], key=lambda one: one[0]):
        for claim in computed():
            claims.append(claim)
            if told is not None:
                told(claim)
    across: list[RunningSum] = []
    for fmt in () if quick else FORMATS:
        begin(f"sums in {fmt}")
        across += sums_across([fmt], runs=len(PUBLISHED_TOTALS), seed=seed)
    return Report(
        seed=seed,
        claims=tuple(claims),
        swamping=swamping_table(tuple(across)),
        overflow=overflow_cases(),
        exceptions=exception_cases(),
        underflow=underflow_cases(float16),
        nearest=sums[0],
        stochastic=sums[1],
        spread=spreads[0],
        wide_spread=spreads[1],
        accumulation=Accumulation((), (), (), ()) if quick else accumulation.measure(seed, begin),
    )


RANDOM_CLAIMS = 10  # the number of the first of them


def _number_of(claim: str) -> int:
    """12 of "12a"."""
    return int("".join(x for x in claim if x.isdigit()))


def _claimed(row: Row, source: str) -> Iterator[Claim]:
    yield row.claim(source)
