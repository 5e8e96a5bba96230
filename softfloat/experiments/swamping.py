"""Swamping: a running sum stops growing once each increment is less than half the spacing of the sum's neighbours.

Stochastic rounding keeps the sum growing: each addition is right on average, so the sum is a random walk without drift
from the exact one.

>>> result = running_sum("float16")
>>> float(result.final[0]), result.stalled_after
(0.25, 2181)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.bits.sums.products import adds_one_at_a_time
from softfloat.engine import Codes, folds
from softfloat.environments import Environment, Rounding, as_rounding
from softfloat.experiments import exact
from softfloat.experiments.choices import accumulator_of, check_environment, environment_of, is_drawn, label_of
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["FORMATS", "Moments", "RunningSum", "Spread", "running_sum", "spread", "sums_across", "walk_moments"]

FORMATS = ("float16", "bfloat16", "tfloat32", "float32", "float8_e5m2")
"""Formats `sums_across` compares: half and single, float32's range in fewer bits, half's range in 8 bits."""

PLACES = 200  # at which sums are taken that have no partial sums of their own
WIDEST_WALK = 20  # bits of a code: the walk holds a table of all positive codes


@dataclass(frozen=True, eq=False)
class RunningSum:
    """Sums of `count` equal increments from 0, in independent runs: one addition and one rounding after another, or by an accumulator.

    Attributes
    ----------
    format, rounding : str
        What the sums are in, and how additions round.
    requested : float
        The increment asked for.
    increment_code : int
        The increment in its format, rounded to nearest even.
    increment : float
        Its value.
    count, runs : int
        Additions in a run, and runs.
    seed : int or None
        Of stochastic rounding: addition i draws from stream i. None for the deterministic modes.
    lengths : array of int
        How many additions each of `codes` has: 0 to `count`, or of accumulators that do not add one number at a time, some 200 of them.
    codes : array of shape (len(lengths), runs), or None
        Codes of the sums, the initial 0 first; None if they were not kept.
    final_codes : array of shape (runs,)
        Codes of the last sums.
    stalled_after : int or None
        How many additions changed the sum before one no longer did; from there on none will. None if all of them
        changed it, and for stochastic rounding, under which a sum never stalls for good.
    flags : Flags
        Everything the additions raised.
    numbers : str
        The format of the increments.
    accumulator : str
        What sums them up, as Python has it; empty where one addition after the other is rounded to the format.
    label : str
        What tells this sum from others, in words, its format aside.
    sr_bits : int or None
        Random bits of an addition, if fewer than it takes.
    """

    format: str
    rounding: str
    requested: float
    increment_code: int
    increment: float
    count: int
    runs: int
    seed: int | None
    lengths: np.ndarray[Any, Any]
    codes: np.ndarray[Any, Any] | None
    final_codes: np.ndarray[Any, Any]
    stalled_after: int | None
    flags: Flags
    numbers: str
    accumulator: str
    label: str
    sr_bits: int | None

    @property
    def trajectory(self) -> np.ndarray[Any, Any]:
        """Values of all sums: float64, of shape (len(lengths), runs)."""
        if self.codes is None:
            raise ValueError("the trajectory was not kept; accepted: running_sum(..., keep=True)")
        return np.asarray(bits.decode(self.codes, self.format))

    @property
    def final(self) -> np.ndarray[Any, Any]:
        """Values of the last sums: float64, of shape (runs,)."""
        return np.asarray(bits.decode(self.final_codes, self.format))

    @property
    def exact(self) -> Fraction:
        """The sum without any rounding of sums: count * increment. Also the expectation under stochastic rounding."""
        return self.count * Fraction(self.increment)


def running_sum(
    fmt: Format | str = "float16",
    *,
    increment: float = 0.0001,
    count: int = 10_000,
    rounding: Rounding | str | None = None,
    runs: int = 1,
    seed: int = 0,
    keep: bool = True,
    environment: Environment | None = None,
    accumulator: Accumulator | Callable[[Format], Accumulator] | None = None,
) -> RunningSum:
    """Add an increment to 0, `count` times, in the format: in any environment, by any accumulator.

    Parameters
    ----------
    fmt : Format
        Of the increment; with a zero.
    increment : float
        Not negative; encoded to nearest even before the first addition.
    count, runs : int
        Additions in a run, and runs. Deterministic runs are all alike.
    rounding : Rounding, optional
        Of the additions; default "nearest_even". Not with `environment`.
    seed : int
        Of stochastic rounding; an environment's own goes first.
    keep : bool
        Keep every sum, not only the last ones.
    environment : Environment, optional
        Every setting, and an accumulator, if it has one.
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        What sums the increments up. Default: one addition after the other, each rounded to the format.

    >>> from softfloat import Environment
    >>> from softfloat.accumulators import chunked
    >>> mine = Environment(rounding="stochastic", sr_bits=4)
    >>> few = running_sum("float8_e5m2", environment=mine, accumulator=chunked(64, "float8_e5m2", "float16"), increment=0.25, count=512)
    >>> few.label
    "stochastic, 4 random bits, chunked(64, fma('float8_e5m2'), 'float16')"
    """
    fmt = Format.from_name(fmt)
    chosen = environment_of(environment, rounding, seed)
    how = accumulator_of(accumulator, chosen, fmt)
    if not fmt.zero:
        raise ValueError(f"fmt must have a zero to start from, and {fmt} has none")
    if count < 0 or runs < 1:
        raise ValueError(f"count must be at least 0 and runs at least 1, got count={count}, runs={runs}")
    output = fmt if how is None else how.output(fmt, fmt)
    stochastic = is_drawn(chosen, output)
    step, raised = bits.encode(increment, fmt, flags="any")
    columns = runs if stochastic or how is not None else 1
    lengths = np.arange(count + 1)
    if how is None:
        terms = np.full((count + 1, columns), step, fmt.dtype)
        terms[0] = 0
        steps, flags = _steps(terms, fmt, chosen)
    elif adds_one_at_a_time(how):
        found, flags = bits.cumsum(
            np.full((count, columns), step, fmt.dtype), fmt, how, 0, environment=chosen, flags="any"
        )
        steps = np.concatenate([np.zeros((1, columns), output.dtype), found])
    else:
        lengths = np.unique(np.linspace(0, count, PLACES + 1, dtype=int) if keep else [0, count])
        steps, flags = _sums(step, lengths, columns, fmt, how, chosen)
    moves = np.flatnonzero(steps[1:, 0] != steps[:-1, 0])
    last = int(moves[-1]) + 1 if moves.size else 0
    one_sum = how is None or (
        adds_one_at_a_time(how) and how.segment is None
    )  # which an increment that is lost leaves as it was
    stalled = None if stochastic or not one_sum or last == count else last
    steps = np.broadcast_to(steps, (lengths.size, runs))
    settings = chosen.settings.for_format(output.name)
    return RunningSum(
        format=output.name,
        rounding=settings.rounding.name.lower(),
        requested=float(increment),
        increment_code=int(step),
        increment=float(bits.decode(step, fmt)),
        count=count,
        runs=runs,
        seed=settings.seed if stochastic else None,
        lengths=lengths,
        codes=steps.copy() if keep else None,
        final_codes=steps[-1].copy(),
        stalled_after=stalled,
        flags=Flags(int(raised) | int(flags)),
        numbers=fmt.name,
        accumulator="" if how is None else repr(how),
        label=label_of(chosen, output, how),
        sr_bits=settings.sr_bits,
    )


def _sums(
    step: Any, lengths: Codes, columns: int, fmt: Format, how: Accumulator, environment: Environment
) -> tuple[Codes, int]:
    """(sums of so many increments each, flags)."""
    terms = np.full((columns, int(lengths[-1])), step, fmt.dtype)
    rows, raised = [], 0
    for length in lengths.tolist():
        codes, flags = bits.sum(terms[:, :length], fmt, how, 1, environment=environment, flags="any")
        rows.append(codes)
        raised |= int(flags)
    return np.stack(rows), raised


def _steps(terms: Codes, fmt: Format, environment: Environment) -> tuple[Codes, int]:
    """(sums of the first 1, 2, 3 ... rows, flags). Row k is added in stream k - 1."""
    settings, streams = environment.settings.for_format(fmt.name), list(range(len(terms) - 1))
    if folds.serves("add", terms, fmt, settings):
        steps, each = folds.fold("add", terms, fmt, settings, streams, True)
        return steps, int(np.bitwise_or.reduce(each))
    steps, raised = terms.copy(), 0
    for stream in streams:
        steps[stream + 1], flags = bits.add(
            steps[stream], terms[stream + 1], fmt, environment=environment, stream=stream, flags="any"
        )
        raised |= int(flags)
    return steps, raised


MODES = tuple(mode for mode in Rounding if mode <= Rounding.STOCHASTIC)
"""Those of hardware and of the published sums; others by name."""


def sums_across(
    formats: Iterable[Format | str] = FORMATS,
    roundings: Iterable[Rounding | str] = MODES,
    *,
    runs: int = 20,
    seed: int = 0,
    increment: float = 0.0001,
    count: int = 10_000,
    progress: Callable[[], None] | None = None,
    environment: Environment | None = None,
    accumulator: Accumulator | Callable[[Format], Accumulator] | None = None,
) -> tuple[RunningSum, ...]:
    """`running_sum` for each format and rounding mode, formats outermost; by an accumulator, and in an environment, its rounding aside.

    Only stochastic rounding takes more than one run. `progress`, if given, is called after each sum.
    """
    results = []
    modes = [as_rounding(mode) for mode in roundings]
    for fmt in formats:
        for mode in modes:
            several = runs if mode.draws else 1
            result = running_sum(
                fmt, increment=increment, count=count, runs=several, seed=seed, keep=False, accumulator=accumulator,
                environment=check_environment(environment).replace(rounding=mode),
            )  # fmt: skip
            results.append(result)
            if progress is not None:
                progress()
    return tuple(results)


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of a random variable."""

    mean: float
    std: float


@lru_cache(maxsize=16)
def walk_moments(fmt: Format | str, increment: float, count: int, sr_bits: int | None = None) -> Moments:
    """Mean and standard deviation of a stochastically rounded running sum, from theory.

    The sum is a Markov chain on the format's values: from s it goes to one of the two values around s + increment, to
    the upper one with the probability that keeps the mean, or what a number of random bits leaves of it. The
    distribution is carried through `count` steps in float64; nothing is drawn and no kernel is used. The theory holds for
    stochastic rounding and for one addition after the other: it takes neither an environment nor an accumulator.

    Parameters
    ----------
    fmt : Format
        Of at most 20 bits.
    increment : float
        A positive value of the format.
    count : int
        Additions.
    sr_bits : int, optional
        Random bits of an addition; None: as many as it takes.
    """
    fmt = Format.from_name(fmt)
    if fmt.bits > WIDEST_WALK or not fmt.zero:
        raise ValueError(f"fmt must have a zero and at most {WIDEST_WALK} bits, got {fmt}")
    codes = np.arange(fmt.max_code + 1)
    field, fraction = codes >> fmt.mantissa_bits, codes & ((1 << fmt.mantissa_bits) - 1)
    significand = np.where(field > 0, fraction + (1 << fmt.mantissa_bits), fraction)
    values = np.ldexp(significand.astype(float), np.maximum(field, 1) - 1) * float(exact.quantum(fmt))
    sums = values + increment
    lower = np.minimum(np.searchsorted(values, sums, side="right") - 1, len(codes) - 2)
    up = np.clip((sums - values[lower]) / (values[lower + 1] - values[lower]), 0.0, 1.0)
    if sr_bits is not None:
        up = np.floor(np.ldexp(up, sr_bits)) / 2.0**sr_bits
    first, weights = 0, np.ones(1)
    for _ in range(count):
        here = slice(first, first + len(weights))
        target, rise = lower[here] - lower[first], weights * up[here]
        moved = np.zeros(int(target[-1]) + 2)
        np.add.at(moved, target, weights - rise)
        np.add.at(moved, target + 1, rise)
        first = int(lower[first])
        alive = np.flatnonzero(moved > 1e-30)  # what is cut off in all steps together is far below float64's own error
        first, weights = first + int(alive[0]), moved[alive[0] : alive[-1] + 1]
    support = values[first : first + len(weights)]
    mean = float(weights @ support)
    return Moments(mean, math.sqrt(float(weights @ (support - mean) ** 2)))


@dataclass(frozen=True)
class Spread:
    """Final sums of several stochastic runs beside what theory says of them.

    Attributes
    ----------
    runs : int
        Sample size.
    mean, std : float
        Of the sample; `std` with runs - 1 in the denominator.
    expectation : Fraction
        Of every sum: stochastic rounding has no bias, so it is count * increment.
    theoretical_std : float
        Standard deviation of a single sum, of the walk on the format's values.
    standard_error : float
        Standard deviation of the sample mean, theoretical_std / sqrt(runs).
    mean_bounds, std_bounds : pair of float
        Where the sample's mean and standard deviation lie: `sigmas` normal deviations to each side. At 4, a sound
        emulator leaves either for about one seed in 16 000.
    """

    runs: int
    mean: float
    std: float
    expectation: Fraction
    theoretical_std: float
    standard_error: float
    mean_bounds: tuple[float, float]
    std_bounds: tuple[float, float]

    @property
    def mean_agrees(self) -> bool:
        """Whether the sample mean lies within its bounds."""
        return self.mean_bounds[0] < self.mean < self.mean_bounds[1]

    @property
    def std_agrees(self) -> bool:
        """Whether the sample standard deviation lies within its bounds."""
        return self.std_bounds[0] < self.std < self.std_bounds[1]


def spread(result: RunningSum, sigmas: float = 4.0) -> Spread:
    """Mean and spread of a stochastic running sum, with the bounds of theory.

    It looks at a sum that is there: it takes neither an environment nor an accumulator.

    Parameters
    ----------
    result : RunningSum
        At least two stochastic runs in a format of at most 20 bits, of nothing but the rounding mode.
    sigmas : float
        Width of the bounds. The variance of n normal numbers follows a chi-square distribution of n - 1 degrees of
        freedom; its quantile is Wilson and Hilferty's. At 20 runs and 2.2 sigmas the bounds of the standard deviation
        are 0.65 and 1.36 of the theoretical one.
    """
    if result.rounding != "stochastic" or result.runs < 2:
        raise ValueError(f"result must hold at least two stochastic runs, got {result.runs} of {result.rounding!r}")
    if result.label != "stochastic":
        raise ValueError(
            f"theory is for stochastic rounding by all that is dropped, one addition after the other, got {result.label!r}; "
            "few_random_bits has some for few random bits"
        )
    theory = walk_moments(result.format, result.increment, result.count).std
    final = result.final
    error = theory / math.sqrt(result.runs)
    expectation = float(result.exact)
    freedom = result.runs - 1
    skew = 2 / (9 * freedom)
    quantiles = [max(1 - skew + z * math.sqrt(skew), 0.0) ** 1.5 for z in (-sigmas, sigmas)]
    return Spread(
        runs=result.runs,
        mean=float(final.mean()),
        std=float(final.std(ddof=1)),
        expectation=result.exact,
        theoretical_std=theory,
        standard_error=error,
        mean_bounds=(expectation - sigmas * error, expectation + sigmas * error),
        std_bounds=(theory * quantiles[0], theory * quantiles[1]),
    )
