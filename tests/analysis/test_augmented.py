"""Augmented operations against exact fractions: all pairs of small formats."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import analysis
from softfloat.formats import Format, float8_e5m2
from softfloat.status import Flags, FloatingPointTrap

SMALL = Format("e3m2", exponent_bits=3, mantissa_bits=2)
UNSIGNED_ZERO = Format("e3m2fnuz", exponent_bits=3, mantissa_bits=2, nan="fnuz")
FLUSHED = Format("e3m2 flushed", exponent_bits=3, mantissa_bits=2, subnormals=False)
NARROW = Format("e1m3 flushed", exponent_bits=1, mantissa_bits=3, nan="fnuz", subnormals=False)
"""In which the steps of Knuth's sum underflow and overflow: errors were wrong, and nothing was raised."""
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "addition": (analysis.augmented_addition, Fraction.__add__),
    "subtraction": (analysis.augmented_subtraction, Fraction.__sub__),
    "multiplication": (analysis.augmented_multiplication, Fraction.__mul__),
}


def ties_to_zero(x: Fraction, numbers: Sequence[Fraction]) -> Fraction | None:
    """IEEE 754-2019, 9.5, of a magnitude among all of a format in order; None beyond half a step above the largest."""
    size = abs(x)
    if size > numbers[-1] + (numbers[-1] - numbers[-2]) / 2:
        return None
    above = bisect.bisect_left(numbers, size)
    if above == len(numbers) or (numbers[above] != size and size - numbers[above - 1] <= numbers[above] - size):
        above -= 1
    return numbers[above] if x >= 0 else -numbers[above]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(
    "fmt", [SMALL, UNSIGNED_ZERO, FLUSHED, NARROW, pytest.param(float8_e5m2, marks=pytest.mark.exhaustive)], ids=str
)
def test_results_and_errors_of_all_pairs(name: str, fmt: Format) -> None:
    function, exactly = OPERATIONS[name]
    x = softfloat.from_codes(np.arange(1 << fmt.bits, dtype=np.uint8), fmt)
    values = np.asarray(x.values)
    with softfloat.environment(rounding="toward_positive", overflow="saturate") as env:
        main, rest = (z.values for z in function(x[:, None], x))
    numbers = sorted({Fraction(abs(v)) for v in values[np.isfinite(values)].tolist()})
    inexact = False
    for i, a in enumerate(values.tolist()):
        for j, b in enumerate(values.tolist()):
            s, e = main[i, j], rest[i, j]
            if not (math.isfinite(a) and math.isfinite(b)):
                assert np.array_equal(s, e, equal_nan=True)
                assert not math.isfinite(s)
                continue
            whole = exactly(Fraction(a), Fraction(b))
            wanted = ties_to_zero(whole, numbers)
            if wanted is None:
                beyond = math.copysign(math.inf, whole) if fmt.infinities else math.nan
                assert np.array_equal((s, e), (beyond, beyond), equal_nan=True), (a, b)
                continue
            left = ties_to_zero(whole - wanted, numbers)
            assert (s, e) == (wanted, left), (a, b)
            inexact |= left != whole - wanted
            if whole == wanted and fmt.signed_zero:
                assert math.copysign(1, e) == math.copysign(1, s), (a, b)
    assert inexact == (name == "multiplication" or not fmt.subnormals)
    assert bool(env.status.flags & Flags.UNDERFLOW) == inexact
    assert env.status.flags & Flags.OVERFLOW
    assert bool(env.status.flags & Flags.INVALID) == fmt.infinities


@pytest.mark.parametrize("name", OPERATIONS)
def test_errors_in_float64(name: str) -> None:
    function, exactly = OPERATIONS[name]
    x, y = (
        random.normal(size=200) * 2.0 ** random.integers(-60, 60, 200) for random in map(np.random.default_rng, (1, 2))
    )
    main, rest = function(softfloat.array(x, "float64"), softfloat.array(y, "float64"))
    for a, b, s, e in zip(x, y, main.tolist(), rest.tolist(), strict=True):
        assert Fraction(s) + Fraction(e) == exactly(Fraction(a), Fraction(b))


def test_what_is_exact_raises_nothing() -> None:
    x = softfloat.array([2048.0, 65504.0, 2.0**-24], "float16")
    with softfloat.environment() as env:
        s, e = analysis.augmented_addition(x, softfloat.array([1.0, 16.0, -1.0], "float16"))
    assert env.status.flags == Flags(0)
    assert (s.tolist(), e.tolist()) == ([2048.0, 65504.0, -1.0], [1.0, 16.0, 2.0**-24])
    single = softfloat.array([1.0, 2.0**24], "float32")  # 2^24 + 1 + 2^-126: what float64 loses of the sum counts
    found = analysis.augmented_addition(single, softfloat.array([2.0**-126, 1.0], "float32"))
    assert [z.tolist() for z in found] == [[1.0, 2.0**24], [2.0**-126, 1.0]]


def test_traps_name_the_operation() -> None:
    with softfloat.environment(traps="OFLO"), pytest.raises(FloatingPointTrap, match="augmented_multiplication"):
        analysis.augmented_multiplication(softfloat.array([1.0, 300.0], "float16"), 300)


def test_what_overflows_to_the_largest_number_raises_it() -> None:
    fmt = Format("e3m2 finite", exponent_bits=3, mantissa_bits=2, nan="none")
    with softfloat.environment() as env:
        s, e = analysis.augmented_addition(softfloat.array(fmt.max, fmt), fmt.max)
    assert (float(s), float(e)) == (fmt.max, fmt.max)
    assert env.status.flags == Flags.OVERFLOW | Flags.INEXACT


@pytest.mark.parametrize("name", OPERATIONS)
def test_errors_are_negative_numbers(name: str) -> None:
    """The sum of unsigned numbers had a NaN, and no flag, for its error."""
    fmt = Format("e4m3 unsigned", exponent_bits=4, mantissa_bits=3, signed=False)
    x = softfloat.ones(2, fmt)
    with pytest.raises(TypeError, match=f"augmented_{name} needs a format with negative numbers, got e4m3 unsigned"):
        OPERATIONS[name][0](x, x)
