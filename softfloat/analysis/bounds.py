"""Bounds of rounding errors, a priori. They hold where nothing overflows or underflows."""

from __future__ import annotations

import math

from softfloat.accumulators import Accumulator, exact, fma, mul_add, pairwise
from softfloat.checks import check_choice, check_count, check_real
from softfloat.environments import current_environment
from softfloat.formats import Format, check_format

__all__ = ["bound", "gamma", "gamma_tilde", "unit_roundoff"]

KINDS = ("sum", "dot", "matmul", "lu")


def unit_roundoff(fmt: Format | str) -> float:
    """u, the greatest relative error of one rounding: 2^-p to nearest, 2^(1-p) in the other modes, as the environment in force rounds.

    >>> unit_roundoff("float16") == 2.0**-11
    True
    """
    fmt = check_format(fmt, wide=True)
    nearest = current_environment().settings.for_format(fmt.name).rounding.nearest
    return 2.0 ** (-fmt.p if nearest else 1 - fmt.p)


def gamma(n: int, fmt: Format | str) -> float:
    """n u / (1 - n u), which bounds θ in 1 + θ, a product of n factors 1 + δ whose δ is at most u, in magnitude; infinite where n u is 1 or more.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1.

    >>> gamma(10, "float16")
    0.004906771344455349
    """
    share = check_count("n", n, 0) * unit_roundoff(fmt)
    return share / (1 - share) if share < 1 else math.inf


def gamma_tilde(n: int, fmt: Format | str, probability: float = 0.99) -> float:
    """What θ is at most in magnitude with a probability, where errors δ are independent and of mean 0, as under stochastic rounding they are.

    exp(λ sqrt(n) u + n u² / (1 - u)) - 1 with probability 1 - 2 exp(-λ² (1 - u)² / 2); infinite where u is 1 or more.

    Source: Higham and Mary 2019, theorem 2.4; for stochastic rounding, Connolly, Higham and Mary 2021.
    """
    if not 0 < check_real("probability", probability, 0, above=True) < 1:
        raise ValueError(f"probability must be less than 1, got {probability}")
    u = unit_roundoff(fmt)
    if u >= 1:
        return math.inf
    width = math.sqrt(2 * math.log(2 / (1 - probability))) / (1 - u)
    return math.expm1(width * math.sqrt(check_count("n", n, 0)) * u + n * u * u / (1 - u))


def bound(kind: str, n: int, fmt: Format | str, accumulator: Accumulator | None = None) -> float:
    """The factor of a bound: of ``|x|_1`` for "sum", ``|x| · |y|`` for "dot", ``|A| |B|`` for "matmul", ``|L| |U|`` for the error L U - A of "lu".

    Parameters
    ----------
    kind : {"sum", "dot", "matmul", "lu"}
    n : int
        Elements of a sum; products of a dot product; rows of a square matrix.
    fmt : Format or str
        Of operands and result.
    accumulator : Accumulator, optional
        `mul_add` (the default), `fma`, `pairwise` or `exact` of the same format. Others are refused: blocks of hardware, and
        compensated sums, have bounds of other kinds.

    Source
    ------
    Higham, Accuracy and Stability, 3.1, 4.2, 9.3.
    """
    fmt = check_format(fmt, wide=True)
    check_choice("kind", kind, KINDS)
    u, products = unit_roundoff(fmt), kind != "sum"
    steps = check_count("n", n) - (not products)
    if accumulator is None or accumulator in (mul_add(fmt), fma(fmt)):
        return gamma(steps, fmt)
    if kind == "lu" and accumulator != exact(fmt):
        raise ValueError(f"bound of 'lu' takes mul_add, fma or exact of {fmt}, got {accumulator!r}")
    if accumulator == pairwise(fmt):
        return gamma((n - 1).bit_length() + products, fmt)
    if accumulator == exact(fmt):
        return u if kind != "lu" else gamma(2, fmt)
    raise ValueError(f"accumulator of bound must be mul_add, fma, pairwise or exact of {fmt}, got {accumulator!r}")
