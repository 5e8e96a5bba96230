"""Exact values to hold the emulator against: Python integers and fractions, nothing compiled.

Every finite value of a format is an integer number of its smallest quantum, 2^(emin - p + 1). In that unit a sum of two
values is a sum of two integers, and rounding drops bits of an integer, as `softfloat.reference` rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from softfloat.environments import Rounding
from softfloat.formats import Format

__all__ = ["quantum", "round_units", "rounded", "walk"]


def quantum(fmt: Format) -> Fraction:
    """The unit of a format: the spacing of its smallest numbers, 2^(emin - p + 1)."""
    return Fraction(2) ** (fmt.emin - fmt.p + 1)


def round_units(numerator: int, denominator: int, precision: int, rounding: Rounding) -> int:
    """The non-negative numerator/denominator rounded to an integer of at most `precision` significant bits.

    Any rounding mode but stochastic. The range has no upper end.
    """
    dropped = max((numerator // denominator).bit_length() - precision, 0)
    return _to_integer(rounding)(Fraction(numerator, denominator << dropped)) << dropped


@lru_cache
def _to_integer(rounding: Rounding) -> Callable[[Fraction], int]:
    from softfloat.reference.rounding import nearby_integer  # late: the oracle brings mpmath
    from softfloat.reference.values import Options

    if rounding.draws:
        raise ValueError(f"rounding must be deterministic, got {rounding.name.lower()!r}")
    rules = Options(rounding=rounding)
    return lambda x: nearby_integer(x, False, rules)


def rounded(x: Fraction, fmt: Format, rounding: Rounding = Rounding.NEAREST_EVEN) -> Fraction:
    """The non-negative x rounded to a value of the format, as if its range had no upper end."""
    unit = quantum(fmt)
    scaled = x / unit
    return round_units(scaled.numerator, scaled.denominator, fmt.p, rounding) * unit


def walk(fmt: Format, increment: Fraction, count: int, rounding: Rounding) -> tuple[Fraction | None, int | None]:
    """Start at 0 and add a value of the format `count` times, rounding each sum.

    Returns
    -------
    final : Fraction or None
        The last sum; None if a sum lies beyond the largest finite value.
    stalled_after : int or None
        How many additions changed the sum, if a later one no longer did; None if all of them did.
    """
    unit = quantum(fmt)
    step, top = increment / unit, Fraction(fmt.max) / unit
    if step.denominator != 1:
        raise ValueError(f"increment must be a value of {fmt}, got {increment}")
    total = 0
    for done in range(count):
        following = round_units(total + step.numerator, 1, fmt.p, rounding)
        if following > top:
            return None, None
        if following == total:
            return total * unit, done
        total = following
    return total * unit, None
