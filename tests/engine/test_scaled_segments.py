"""Sums of segments times their scales in one pass, against the plain loop of each operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from softfloat.kernels.spec import Rounding, Rule

from softfloat.engine import elementwise, folds, scaled_segments
from softfloat.engine.programs import Site
from softfloat.formats import float32

SEGMENTS, ROWS, COLUMNS = 3, 23, 37
SPECIALS = (0.0, -0.0, 2.0**-149, -(2.0**-127), 2.0**-126, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan)


def codes(values: Any) -> Any:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def numbers(rng: np.random.Generator, *shape: int, spread: int) -> Any:
    """Of few bits, so that sums tie and cancel, and of all."""
    few = np.round(rng.standard_normal(shape), 1).astype(np.float32)
    many = rng.standard_normal(shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.5, few, many) * np.exp2(rng.integers(-spread, spread + 1, shape))


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which calls were served, however little work there is."""
    served: list[bool] = []
    added = scaled_segments.added

    def watched(*arguments: Any) -> Any:
        done = added(*arguments)
        served.append(done is not None)
        return done

    monkeypatch.setattr(scaled_segments, "WORTH_A_LOOP", 0)
    monkeypatch.setattr(scaled_segments, "added", watched)
    return served


def both(monkeypatch: pytest.MonkeyPatch, scaling: scaled_segments.Scaling, total: Any, sums: Any, rule: Rule) -> None:
    site = Site(float32, rule, 0)
    found = scaling.added(total, sums, 0, site)
    with monkeypatch.context() as patch:
        patch.setattr(elementwise, "FAST", False)
        plain = scaling.added(total, sums, 0, site)
    if np.isnan(sums.view(np.float32)).any():  # whose payloads the plain loop of sums knows
        assert found is plain is None
        return
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("order", scaled_segments.FUSED)
def test_ordinary_numbers(order: str, one_pass: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for spread in (0, 3, 30):
        a, b = (numbers(rng, *shape, spread=spread) for shape in ((ROWS, SEGMENTS), (SEGMENTS, COLUMNS)))
        sums = numbers(rng, SEGMENTS, ROWS, COLUMNS, spread=spread)
        total = numbers(rng, ROWS, COLUMNS, spread=spread)
        sums[0, 5] = 0.0
        total[7] = -(sums[0, 7] * a[7, 0] * b[0])  # which cancels, or nearly
        before = codes(total).copy()
        both(monkeypatch, scaled_segments.Scaling(order, codes(a), codes(b)), before, codes(sums), Rule())
        np.testing.assert_array_equal(before, codes(total))  # the caller's
    assert any(one_pass) or elementwise.loops().jit.DISABLED


@pytest.mark.parametrize("order", scaled_segments.FUSED)
@pytest.mark.parametrize("special", SPECIALS, ids=str)
def test_numbers_that_are_not(
    order: str, special: float, one_pass: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any place, beside numbers whose products and sums with it overflow, underflow and round to the smallest normal one."""
    rng = np.random.default_rng(2)
    for scale in (1.0, 2.0**-126, 2.0**-63, 2.0**63):
        made = [
            np.asarray(numbers(rng, *shape, spread=1) * scale, np.float32)
            for shape in ((ROWS, SEGMENTS), (SEGMENTS, COLUMNS), (SEGMENTS, ROWS, COLUMNS), (ROWS, COLUMNS))
        ]
        for place in made:
            place[tuple(rng.integers(0, size) for size in place.shape)] = special
            a, b, sums, total = map(codes, made)
            both(monkeypatch, scaled_segments.Scaling(order, a, b), total, sums, Rule())
    assert one_pass


@pytest.mark.parametrize("special", [1.0, *SPECIALS], ids=str)
def test_sums_without_scales(special: float, one_pass: list[bool]) -> None:
    """Added as one after the other, where all is ordinary."""
    rng = np.random.default_rng(5)
    for spread in (0, 3, 30):
        sums, total = (numbers(rng, *shape, spread=spread) for shape in ((SEGMENTS, 1, ROWS), (1, ROWS)))
        sums[0, 0, :9], sums[1, 0, 9:12], total[0, 12:15] = -total[0, :9], -0.0, special
        a, b = codes(sums), codes(total)
        nothing = scaled_segments.NO_SCALES
        found = scaled_segments.added(scaled_segments.PLAIN, b, a, nothing, nothing, Site(float32, Rule(), 0))
        if found is not None:
            expected = folds.summed([b[0], *a[:, 0]], float32, Rule())
            np.testing.assert_array_equal([x[0] for x in found], expected)
    ordinary = special == 0.0 or 2.0**-126 <= abs(special) < np.inf
    assert any(one_pass) == ordinary or elementwise.loops().jit.DISABLED


def test_other_rules_go_other_ways(one_pass: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = (codes(numbers(rng, *shape, spread=3)) for shape in ((ROWS, SEGMENTS), (SEGMENTS, COLUMNS)))
    sums, total = codes(numbers(rng, SEGMENTS, ROWS, COLUMNS, spread=3)), codes(numbers(rng, ROWS, COLUMNS, spread=3))
    for order, rule in (("scales_added", Rule()), ("scales_fused", Rule(rounding=Rounding.TOWARD_ZERO))):
        both(monkeypatch, scaled_segments.Scaling(order, a, b), total, sums, rule)
    assert not any(one_pass)


@pytest.mark.parametrize("order", scaled_segments.FUSED)
def test_products_on_the_way_that_are_not(order: str, one_pass: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Subnormal, beside sums so large that nobody sees it but the flags."""
    rng = np.random.default_rng(4)
    for small in (2.0**-63, 2.0**-64, 2.0**-75):
        a, b, sums = (
            codes(rng.uniform(1, 2, shape) * small) for shape in ((ROWS, 1), (1, COLUMNS), (1, ROWS, COLUMNS))
        )
        total = codes(rng.uniform(1, 2, (ROWS, COLUMNS)))
        both(monkeypatch, scaled_segments.Scaling(order, a, b), total, sums, Rule())
    assert not any(one_pass[2:])
