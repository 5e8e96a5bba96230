"""Bounds against errors that occur, measures against their definitions, errors of operations against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import analysis, bits
from softfloat.accumulators import amp, compensated, exact, fma, mul_add, pairwise
from softfloat.formats import bfloat16, float8_e4m3fn, float16

RANDOM = np.random.default_rng(0)


def test_units() -> None:
    assert analysis.unit_roundoff(float16) == 2.0**-11
    with softfloat.environment(rounding="toward_zero"):
        assert analysis.unit_roundoff("bfloat16") == 2.0**-7
    assert analysis.gamma(0, float16) == 0
    assert analysis.gamma(100, float16) == (100 / 2048) / (1 - 100 / 2048)
    assert analysis.gamma(2048, float16) == math.inf
    assert analysis.gamma_tilde(10000, float16) < 10000 / 2048 < analysis.gamma(10000, float16)
    assert analysis.gamma_tilde(100, float16, 0.5) < analysis.gamma_tilde(100, float16, 0.999)


@pytest.mark.parametrize("how", [mul_add, fma, pairwise, exact], ids=lambda x: x.__name__)
@pytest.mark.parametrize("n", [1, 7, 64])
def test_sums_and_dot_products_are_within_bounds(how: Any, n: int) -> None:
    """All of one sign, so that the bound is of the sum itself; and of any."""
    x, y = (bits.encode(z, float16)[0] for z in RANDOM.uniform(0.5, 1, (2, 50, n)))
    for signs in (0, RANDOM.integers(0, 2, (50, n)).astype(np.uint16) << np.uint16(15)):
        found = np.asarray(
            bits.decode(bits.vecdot(x ^ signs, y, float16, how(float16), out_format=float16)[0], float16)
        )
        a, b = bits.decode(x ^ signs, float16), bits.decode(y, float16)
        error, size = np.abs(found - (a * b).sum(1)), np.abs(a * b).sum(1)
        assert np.all(error <= analysis.bound("dot", n, float16, how(float16)) * size + 1e-12)
        summed = np.asarray(
            bits.decode(bits.sum(x ^ signs, float16, how(float16), axis=1, out_format=float16)[0], float16)
        )
        assert np.all(
            np.abs(summed - a.sum(1)) <= analysis.bound("sum", n, float16, how(float16)) * np.abs(a).sum(1) + 1e-12
        )


def test_stochastic_sums_are_within_the_probable_bound() -> None:
    x = np.full((200, 400), 0x3555, np.uint16)  # a third
    with softfloat.environment(rounding="stochastic", seed=1) as env:
        found = bits.decode(
            bits.sum(x, float16, mul_add(float16), axis=1, environment=env, out_format=float16)[0], float16
        )
        limit = analysis.gamma_tilde(399, float16, 0.99)
        assert limit < analysis.bound("sum", 400, float16) / 2
    share = np.abs(found / (400 * bits.decode(0x3555, float16)) - 1)
    assert np.mean(share <= limit) >= 0.99


def test_kinds_and_accumulators_without_a_bound() -> None:
    assert analysis.bound("lu", 10, float16) == analysis.bound("matmul", 10, float16) == analysis.gamma(10, float16)
    assert analysis.bound("sum", 1, float16) == 0
    for call, message in (
        (lambda: analysis.bound("qr", 3, float16), "kind must be"),
        (lambda: analysis.bound("dot", 3, float16, amp("half")), "accumulator of bound must be mul_add, fma, pairwise"),
        (lambda: analysis.bound("dot", 3, float16, compensated(float16)), "accumulator of bound must be"),
        (lambda: analysis.bound("lu", 3, float16, pairwise(float16)), "bound of 'lu' takes"),
        (lambda: analysis.bound("dot", 0, float16), "n must be a positive integer"),
        (lambda: analysis.gamma_tilde(3, float16, 1.0), "probability must be less than 1"),
        (lambda: analysis.condition(np.eye(2), np.ones(2)), "x is for kind='componentwise'"),
        (lambda: analysis.backward_error(np.eye(2), np.eye(2), np.ones(2)), "x must have 1 axes"),
        (
            lambda: analysis.backward_error(np.eye(2), np.ones(2), np.ones(1)),
            r"must have shapes \(m, n\), \(n,\) and \(m,\)",
        ),
        (lambda: analysis.backward_error(np.eye(2), np.ones(2), np.ones(2), "some"), "kind must be"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_backward_errors_are_the_least_changes() -> None:
    """A change of that size, put where the definition says, makes x a solution."""
    a, x = RANDOM.standard_normal((5, 5)), RANDOM.standard_normal(5)
    b = a @ x + 1e-3 * RANDOM.standard_normal(5)
    share = analysis.backward_error(a, x, b, "componentwise")
    rest, scale = b - a @ x, np.abs(a) @ np.abs(x) + np.abs(b)
    changed_a = a + (rest / scale)[:, None] * np.abs(a) * np.sign(x)
    changed_b = b - rest / scale * np.abs(b)
    np.testing.assert_allclose(changed_a @ x, changed_b, atol=1e-14)
    assert np.max(np.abs(changed_a - a) / np.abs(a)) <= share * (1 + 1e-12)
    assert analysis.backward_error(a, x, b) <= share
    assert analysis.backward_error(a, x, a @ x) < 1e-15
    assert analysis.backward_error(np.zeros((2, 2)), np.zeros(2), np.zeros(2)) == 0
    half = softfloat.array(a, float16)
    solved = np.linalg.solve(half, half @ half[0])
    assert analysis.backward_error(half, solved, half @ half[0]) < 50 * 2.0**-11


def test_conditions() -> None:
    a = RANDOM.standard_normal((5, 5))
    x = RANDOM.standard_normal(5)
    assert analysis.condition(a) == pytest.approx(np.linalg.cond(a, np.inf))
    skeel = analysis.condition(a, kind="componentwise")
    scaled = 10.0 ** np.arange(5)[:, None] * a
    assert analysis.condition(scaled, kind="componentwise") == pytest.approx(skeel)
    assert analysis.condition(scaled) > 10 * analysis.condition(a)
    assert analysis.condition(a, x, "componentwise") <= skeel * (1 + 1e-12)
    assert analysis.condition(np.ones((2, 2))) == math.inf


@pytest.mark.parametrize("fmt", [float16, bfloat16, float8_e4m3fn], ids=str)
def test_errors_of_operations_are_exact(fmt: Any) -> None:
    """Numbers whose products neither overflow nor underflow."""
    x = softfloat.array(RANDOM.uniform(1, 4, 300) * RANDOM.choice([-1, 1], 300), fmt)
    y = softfloat.array(RANDOM.uniform(1, 4, 300), fmt)
    large, small = np.maximum(np.abs(x), y), np.minimum(np.abs(x), y)
    for found, one, other, exactly in (
        (analysis.two_sum(x, y), x, y, Fraction.__add__),
        (analysis.fast_two_sum(large, small), large, small, Fraction.__add__),
        (analysis.two_prod(x, y), x, y, Fraction.__mul__),
    ):
        main, rest = ([*map(Fraction, z.values.tolist())] for z in found)
        wanted = [
            exactly(Fraction(p), Fraction(q)) for p, q in zip(one.values.tolist(), other.values.tolist(), strict=True)
        ]
        assert [p + q for p, q in zip(main, rest, strict=True)] == wanted
    assert any(analysis.two_sum(x, y)[1].values)
    s, e = analysis.two_sum(x[:, None], 1)
    assert s.shape == e.shape == (300, 1)
    assert analysis.two_prod(x, 2)[1].tolist() == [0.0] * 300
