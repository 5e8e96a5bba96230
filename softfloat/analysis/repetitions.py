"""How many digits of a result mean something, by computing it again and again with random roundings."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from softfloat.arrays.softarray import SoftArray
from softfloat.checks import check_choice, check_count, check_real, check_seed
from softfloat.environments import environment

__all__ = ["Digits", "digits"]

RANDOM = ("stochastic", "up_or_down")


class Digits(NamedTuple):
    """What `digits` finds, for each element of the result.

    Attributes
    ----------
    digits : array of float64
        Significant decimal digits, from 0 to those of the format.
    mean, deviation : array of float64
        Of the results.
    """

    digits: np.ndarray[Any, Any]
    mean: np.ndarray[Any, Any]
    deviation: np.ndarray[Any, Any]


def digits(
    function: Callable[[], Any],
    runs: int = 20,
    rounding: str = "stochastic",
    confidence: float = 0.95,
    probability: float = 0.99,
    seed: int = 0,
) -> Digits:
    """Significant digits of what a function computes with SoftArrays, as Monte Carlo arithmetic and CADNA count them.

    The function runs in a block of random rounding, with another seed each time. Results are taken as normally distributed around
    their mean: with `confidence`, so many digits of a run agree with the mean, in a share `probability` of runs.

    Parameters
    ----------
    function : callable
        Without arguments; its result is an array or number. What it makes of numbers by `softfloat.array` is rounded at random too.
    runs : int
        At least 2.
    rounding : str
        A mode that rounds at random: "stochastic", or "up_or_down".
    confidence, probability : float
        Between 0 and 1.
    seed : int
        Of the first run; those that follow have the seeds that follow.

    Source
    ------
    Parker, Monte Carlo Arithmetic, 1997; the bound is Sohier et al., Confidence intervals for stochastic arithmetic, 2021, section 4,
    with Wilson and Hilferty's quantile of chi-squared.

    >>> import softfloat
    >>> found = digits(lambda: softfloat.array([1.0, 2.0], "float16") / 3 - 0.332)
    >>> found.digits.round(1).tolist()  # subtraction has cancelled digits of the first
    [0.5, 2.6]
    """
    check_choice("rounding", rounding, RANDOM)
    check_count("runs", runs, 2)
    for name, share in (("confidence", confidence), ("probability", probability)):
        if not 0 < check_real(name, share, 0, above=True) < 1:
            raise ValueError(f"{name} must be less than 1, got {share}")
    check_seed("seed", seed)
    results, most = [], 53.0
    for run in range(runs):
        with environment(rounding=rounding, seed=(seed + run) % 2**64):
            found = function()
        if isinstance(found, SoftArray):
            most, found = float(found.format.p), found.values
        results.append(np.asarray(found, np.float64))
    samples = np.stack(results)
    with np.errstate(all="ignore"):
        mean, deviation = samples.mean(0), samples.std(0, ddof=1)
        normal = NormalDist().inv_cdf
        free = runs - 1
        quantile = free * (1 - 2 / (9 * free) + normal((1 - confidence) / 2) * math.sqrt(2 / (9 * free))) ** 3
        spread = math.sqrt(free / quantile) * normal((probability + 1) / 2)
        known = -np.log2(deviation * spread / np.abs(mean))
        known = np.where(deviation == 0, most, np.where(np.isnan(known), 0.0, known))
    return Digits(np.clip(known, 0, most) * math.log10(2), mean, deviation)
