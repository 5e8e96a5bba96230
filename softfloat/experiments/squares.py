"""Variance in half precision: the mean of squares overflows where the mean of squared differences does not.

>>> variance([296, 298, 302, 304])  # doctest: +ELLIPSIS
Variance(format='float16', exact=Fraction(10, 1), one_pass=nan, two_pass=10.0, one_pass_flags=..., two_pass_flags=...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.environments import Environment
from softfloat.experiments.choices import accumulator_of, environment_of
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["Variance", "variance"]


@dataclass(frozen=True)
class Variance:
    """A population variance computed in two ways, every operation rounded to the format.

    Attributes
    ----------
    format : str
    exact : Fraction
        The variance of the numbers themselves.
    one_pass : float
        Mean of squares less the square of the mean.
    two_pass : float
        Mean of the squared differences from the mean.
    one_pass_flags, two_pass_flags : Flags
        What each raised.
    """

    format: str
    exact: Fraction
    one_pass: float
    two_pass: float
    one_pass_flags: Flags
    two_pass_flags: Flags


def variance(
    numbers: Sequence[float],
    fmt: Format | str = "float16",
    *,
    environment: Environment | None = None,
    accumulator: Accumulator | Callable[[Format], Accumulator] | None = None,
) -> Variance:
    """Variance of values of the format.

    Parameters
    ----------
    numbers : sequence of float
    fmt : Format
    environment : Environment, optional
        Every setting, and an accumulator, if it has one; default: IEEE 754's. Its seed is 0 if it has none.
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        What sums numbers and squares, into the format. Default: one addition in the format after the other.

    Raises
    ------
    ValueError
        If there are no numbers, or one is no value of the format.
    """
    fmt = Format.from_name(fmt)
    codes, rounded = bits.encode(list(numbers), fmt, flags="any")
    if not len(numbers) or rounded:
        raise ValueError(f"numbers must be one or more values of {fmt}, got {numbers!r}")
    exact = [Fraction(x) for x in numbers]
    mean = sum(exact, Fraction(0)) / len(exact)
    size = bits.encode(len(numbers), fmt)[0]

    chosen = environment_of(environment, None, 0)
    how = accumulator_of(accumulator, chosen, fmt)

    def average(items: Any, env: Environment) -> Any:
        if how is None:
            total = reduce(partial(env.evaluate, bits.add, fmt=fmt), items)
        else:
            total = env.evaluate(bits.sum, items, fmt, how, out_format=fmt)
        return env.evaluate(bits.div, total, size, fmt)

    one, two = chosen.replace(), chosen.replace()
    middle = average(codes, one)
    squares = average(one.evaluate(bits.mul, codes, codes, fmt), one)
    one_pass = one.evaluate(bits.sub, squares, one.evaluate(bits.mul, middle, middle, fmt), fmt)
    differences = two.evaluate(bits.sub, codes, average(codes, two), fmt)
    two_pass = average(two.evaluate(bits.mul, differences, differences, fmt), two)
    return Variance(
        format=fmt.name,
        exact=sum(((x - mean) ** 2 for x in exact), Fraction(0)) / len(exact),
        one_pass=float(bits.decode(one_pass, fmt)),
        two_pass=float(bits.decode(two_pass, fmt)),
        one_pass_flags=one.status.flags,
        two_pass_flags=two.status.flags,
    )
