"""Few random bits: a stochastic rounding that draws r bits sees r bits of what it drops, and forgets the rest.

With f the dropped fraction of the spacing, the magnitude grows with probability floor(f * 2^r) / 2^r, not f: each
rounding is biased towards zero, by less than 2^-r of the spacing, and a long sum collects that.

>>> [str(chance.probability) for chance in rounding_chances(2, [0.2, 0.25, 0.9])]
['0', '1/4', '3/4']
>>> few, many = few_random_bits([3, 12], count=4000, runs=64)
>>> few.relative_bias < -0.01, abs(many.relative_bias) < 1e-4, few.agrees, many.agrees
(True, True, True, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from softfloat import bits
from softfloat.accumulators import fma
from softfloat.environments import Environment
from softfloat.experiments.choices import check_environment, is_drawn
from softfloat.experiments.swamping import walk_moments
from softfloat.formats import Format

__all__ = ["FewBitsSum", "RoundingChance", "few_random_bits", "rounding_chances"]

MOST_LISTED = 16  # random bits of which every number is tried: 2^16 roundings for each fraction


@dataclass(frozen=True)
class RoundingChance:
    """One number between two neighbours, stochastically rounded with every possible random number.

    Attributes
    ----------
    format : str
    sr_bits : int
        Random bits.
    fraction : Fraction
        How far from the lower neighbour the number is, in units of their distance.
    probability : Fraction
        The share of random numbers that round it up.
    """

    format: str
    sr_bits: int
    fraction: Fraction
    probability: Fraction

    @property
    def bias(self) -> Fraction:
        """Expectation of the rounding error, in units of the neighbours' distance."""
        return self.probability - self.fraction

    @property
    def variance(self) -> Fraction:
        """Variance of the rounding error, in units of the squared distance."""
        return self.probability * (1 - self.probability)


def rounding_chances(
    sr_bits: int,
    fractions: Iterable[float] | None = None,
    fmt: Format | str = "float16",
    *,
    environment: Environment | None = None,
) -> tuple[RoundingChance, ...]:
    """Round numbers just above 1 with each of the 2^sr_bits random numbers. One rounding is no sum: there is no accumulator.

    Parameters
    ----------
    sr_bits : int
        1 to 16.
    fractions : iterable of float, optional
        Where the numbers are between 1 and the next number of the format, 0 to 1 exclusive; default: multiples of 1/64.
    fmt : Format
        At least 1 fraction bit; 1 is in it.
    environment : Environment, optional
        Of a rounding mode that draws; every setting but random numbers and how many bits of them are looked at. Default: "stochastic".
    """
    fmt = Format.from_name(fmt)
    if not 1 <= sr_bits <= MOST_LISTED:
        raise ValueError(f"sr_bits must be 1 to {MOST_LISTED}, for every random number is tried, got {sr_bits}")
    asked = [k / 64 for k in range(64)] if fractions is None else list(fractions)
    if not asked or not all(0 <= f < 1 for f in asked):
        raise ValueError(f"fractions must be one or more numbers from 0 to 1, 1 excluded, got {asked!r}")
    numbers = 1 + np.array(asked) * fmt.eps
    exact = [(Fraction(x) - 1) / Fraction(fmt.eps) for x in numbers.tolist()]  # what float64 has room for
    chosen = Environment(rounding="stochastic") if environment is None else check_environment(environment)
    if not is_drawn(chosen, fmt):
        raise ValueError(
            f"environment must have a rounding mode that draws, such as 'stochastic', got {chosen.rounding!r}"
        )
    draws = np.arange(1 << sr_bits, dtype=np.uint32)
    codes, _ = bits.encode(
        np.repeat(numbers[:, None], len(draws), axis=1),
        fmt,
        random_bits=draws,
        environment=chosen.replace(sr_bits=sr_bits),
    )
    ups = (codes == fmt.one_code + 1).sum(axis=1).tolist()
    return tuple(
        RoundingChance(fmt.name, sr_bits, fraction, Fraction(up, len(draws)))
        for fraction, up in zip(exact, ups, strict=True)
    )


@dataclass(frozen=True)
class FewBitsSum:
    """Stochastic sums of equal increments with a number of random bits, beside what theory says of them.

    Attributes
    ----------
    format : str
    sr_bits : int
        Random bits of each addition.
    increment : float
    count, runs : int
        Additions in a sum, and sums.
    exact : Fraction
        count * increment.
    mean, std : float
        Of the sums; `std` with runs - 1 in the denominator.
    expected_mean, expected_std : float
        Of a single sum, by `softfloat.experiments.walk_moments`.
    """

    format: str
    sr_bits: int
    increment: float
    count: int
    runs: int
    exact: Fraction
    mean: float
    std: float
    expected_mean: float
    expected_std: float

    @property
    def relative_bias(self) -> float:
        """Expectation less exact sum, as a share of the exact sum."""
        return float(Fraction(self.expected_mean) / self.exact - 1)

    @property
    def agrees(self) -> bool:
        """Whether the mean is within 4 standard errors of its expectation: it is not for one seed in 16 000."""
        return abs(self.mean - self.expected_mean) <= 4 * self.expected_std / math.sqrt(self.runs) + 1e-12


def few_random_bits(
    sr_bits: Iterable[int] = tuple(range(1, 15)),
    *,
    fmt: Format | str = "float16",
    increment: float = 0.0001,
    count: int = 10_000,
    runs: int = 100,
    seed: int = 0,
) -> tuple[FewBitsSum, ...]:
    """Add an increment to 0, `count` times, with each number of random bits.

    With r of them n roundings lose less than 2*n*u*2^-r of the sum, and its noise is about sqrt(n)*u. From about
    log2(n)/2 bits on the noise is the larger (El Arar, Fasi, Filip and Mikaitis, "Probabilistic error analysis of
    limited-precision stochastic rounding", arXiv 2408.03069).

    Sums are compared with a theory of stochastic additions in the format, one after the other, under IEEE 754's settings. It
    therefore takes neither an environment nor an accumulator; `running_sum` takes both, with few random bits too.

    Parameters
    ----------
    sr_bits : iterable of int
        1 to 52 each.
    fmt : Format
        Of at most 20 bits, with a zero.
    increment : float
        Positive; encoded to nearest even before the first addition.
    count, runs : int
        Additions in a sum, and sums.
    seed : int
    """
    fmt = Format.from_name(fmt)
    if count < 1 or runs < 2:
        raise ValueError(f"count must be at least 1 and runs at least 2, got count={count}, runs={runs}")
    step = bits.encode(increment, fmt)[0]
    value = float(bits.decode(step, fmt))
    if not value > 0:
        raise ValueError(f"increment must be greater than 0 in {fmt}, got {increment!r}")
    increments = np.full((count, runs), step, fmt.dtype)
    rows = []
    for width in sr_bits:
        codes, _ = bits.sum(increments, fmt, fma(fmt), axis=0, rounding="stochastic", seed=seed, sr_bits=width)
        sums = bits.decode(codes, fmt)
        theory = walk_moments(fmt, value, count, width)
        rows.append(
            FewBitsSum(
                format=fmt.name,
                sr_bits=width,
                increment=value,
                count=count,
                runs=runs,
                exact=count * Fraction(value),
                mean=float(sums.mean()),
                std=float(sums.std(ddof=1)),
                expected_mean=theory.mean,
                expected_std=theory.std,
            )
        )
    return tuple(rows)
