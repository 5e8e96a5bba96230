"""The oracle's first try at powers, angles and logarithms of sums: its bounds, and the same numbers as mpmath's and MPFR's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import gmpy2
import mpmath
import pytest

from softfloat import reference
from softfloat.formats import ROSTER
from softfloat.reference import fixed_point
from softfloat.reference.values import SETTLED_BITS

BITS, ONE = fixed_point.BITS, fixed_point.ONE
F32 = ROSTER["float32"]


def fractions_of_one(random: random.Random) -> Iterator[int]:
    """Numbers in 0 <= x < 1: next to where each table's entry changes, next to where the rest of it changes sign, and any."""
    for i in range(512):
        for offset in (0, 1, -1, (1 << BITS - 10) - 1, 1 << BITS - 10):
            yield ((i << BITS - 9) + offset) % ONE
        yield ((random.getrandbits(18) << BITS - 18) + random.choice((0, 1, -1, 1 << BITS - 19))) % ONE
        yield random.getrandbits(BITS)


@pytest.mark.parametrize("name", ["_exp2", "_log2"])
def test_errors_are_bounded(name: str) -> None:
    """Against mpmath at 300 bits."""
    function: Callable[[int], int] = getattr(fixed_point, name)
    worst = 0.0
    with mpmath.workprec(300):
        for x in fractions_of_one(random.Random(1)):
            exact = (
                mpmath.mpf(2) ** (mpmath.mpf(x) / ONE) if name == "_exp2" else mpmath.log(1 + mpmath.mpf(x) / ONE, 2)
            )
            worst = max(worst, float(abs(function(x if name == "_exp2" else ONE + x) - exact * ONE)))
    assert 0.5 < worst < fixed_point.ERROR


def operand(random: random.Random, low: int = -20, high: int = 20) -> Fraction:
    bits = random.choice((3, 8, 11, 24))
    return (random.getrandbits(bits) | 1) * Fraction(2) ** (random.randint(low, high) - bits)


def exact(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def power_case(random: random.Random) -> tuple[Fraction | None, mpmath.mpf]:
    x, y = operand(random), operand(random, -24, 8) * random.choice((1, -1))
    if random.random() < 0.4:  # a base next to 1 and a large exponent
        x, y = 1 + random.choice((1, -1)) * Fraction(random.getrandbits(6) | 1, 2**24), operand(random, 10, 30)
    return fixed_point.power(x, y), exact(x) ** exact(y)


def sum_case(random: random.Random, natural: bool) -> tuple[Fraction | None, mpmath.mpf]:
    high, less = operand(random, -24, 12) * random.choice((1, -1)), -operand(random, -24, 12)
    if random.random() < 0.4:  # most of the sum cancels
        high, less = -1 + Fraction(random.getrandbits(4), 2**24), -Fraction(random.getrandbits(4) + 1, 2**24)
    base = mpmath.e if natural else mpmath.mpf(2)
    return fixed_point.log_of_sum(high, less, natural), exact(high) + mpmath.log(1 + base ** exact(less), base)


def angle_case(random: random.Random) -> tuple[Fraction | None, mpmath.mpf]:
    y, x = operand(random, -30, 30), operand(random, -30, 30) * random.choice((1, -1))
    return fixed_point.angle(y, x), mpmath.atan2(exact(y), exact(x))


CASES: dict[str, Callable[[random.Random], tuple[Fraction | None, mpmath.mpf]]] = {
    "power": power_case,
    "log of sum": lambda random: sum_case(random, True),
    "log2 of sum": lambda random: sum_case(random, False),
    "angle": angle_case,
}


def assert_next_to(found: Fraction, value: mpmath.mpf) -> None:
    """No number of SETTLED_BITS bits lies between what was found and the value, which has bits to spare."""
    with mpmath.workprec(60):
        exponent = int(mpmath.floor(mpmath.log(abs(value), 2)))
    below = int(mpmath.floor(abs(value) * mpmath.mpf(2) ** (SETTLED_BITS + 8 - exponent)))
    exponent += below.bit_length() - SETTLED_BITS - 9
    cell = int(mpmath.floor(abs(value) * mpmath.mpf(2) ** (SETTLED_BITS - 1 - exponent)))
    assert cell.bit_length() == SETTLED_BITS
    assert abs(found) * Fraction(2) ** (SETTLED_BITS - exponent) == 2 * cell + 1
    assert (found < 0) == (value < 0)


@pytest.mark.parametrize("name", CASES)
def test_what_is_settled_is_next_to_the_value(name: str) -> None:
    """Of values at 6 000 bits; nearly all are settled."""
    rows = random.Random(name)
    unknown = 0
    with mpmath.workprec(6000):
        for _ in range(400):
            found, value = CASES[name](rows)
            if found is None:
                unknown += 1
            else:
                assert_next_to(found, value)
    assert unknown < 80


def test_a_large_exponent_widens_the_bound() -> None:
    """Which a logarithm's error is multiplied by: 2^33 here, so that one power in some hundreds would be settled wrongly without."""
    rows = random.Random(2)
    with mpmath.workprec(260):
        for _ in range(3000):
            x, y = 1 + Fraction(rows.getrandbits(20) | 1, 2**44), Fraction(2**33 - rows.getrandbits(24))
            found = fixed_point.power(x, y)
            if found is not None:
                assert_next_to(found, exact(x) ** exact(y))


def test_the_edges_of_what_is_settled() -> None:
    """Within the error of a number of SETTLED_BITS bits, or with no bits beyond them, nothing is known."""
    beyond, error = 20, 12
    for low, known in (
        (0, False),
        (error, False),
        (error + 1, True),
        (2**beyond - error - 1, True),
        (2**beyond - error, False),
    ):
        size = (1 << SETTLED_BITS - 1 << beyond) + low
        for found in (size, -size):
            settled = fixed_point._settled(found, error, 3)
            assert (settled is not None) == known
            if settled is not None:
                assert settled == Fraction(found - (low if found > 0 else -low), 2 ** (BITS - 3)) + Fraction(
                    1 if found > 0 else -1, 2 ** (BITS - 3 - beyond + 1)
                )
    assert fixed_point._settled((1 << SETTLED_BITS) - 1, 0, 0) is None


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_functions_are_mpfrs(name: str) -> None:
    """Nearest even in float32, of any bits and of numbers about one another."""
    rows = random.Random(name)
    single = gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True)
    for i in range(600):
        codes = [
            rows.getrandbits(32) & 0x7FFFFFFF if i % 2 else 0x3F800000 + rows.randint(-(2**18), 2**18) for _ in "ab"
        ]
        if any(code > 0x7F800000 for code in codes):
            continue
        values = [
            gmpy2.mpfr(float(exact(reference.decode(x, F32).number)) if x < 0x7F800000 else float("inf")) for x in codes
        ]
        with single:
            expected = (values[0] ** values[1]) if name == "pow" else gmpy2.atan2(*values)
        code, _ = getattr(reference, name)(*codes, F32)
        assert float(reference.decode(code, F32).real) == float(expected), [hex(x) for x in codes]
