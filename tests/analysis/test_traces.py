"""Traces against fractions, shadows against float64, digits against what is known of a result; and that none changes a bit."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import analysis, bits
from softfloat.accumulators import fma
from softfloat.analysis import Line, Shadow, digits, trace
from softfloat.analysis.traces import carrier_of
from softfloat.environments import WATCHES

RANDOM = np.random.default_rng(0)
HERE = str(Path(__file__))


def half(x: Any) -> Any:
    return softfloat.array(x, "float16")


def only(found: trace) -> Line:
    (line,) = found.lines
    return line


# -- trace -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_errors_are_those_of_fractions(name: str) -> None:
    x, y = half(RANDOM.uniform(1, 8, 200)), half(RANDOM.uniform(1, 8, 200))
    with trace() as found:
        z = getattr(np, name)(x, y)
    exactly = {
        "add": Fraction.__add__,
        "subtract": Fraction.__sub__,
        "multiply": Fraction.__mul__,
        "divide": Fraction.__truediv__,
    }
    errors = []
    for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True):
        whole = exactly[name](Fraction(a), Fraction(b))
        errors.append(float(abs((Fraction(c) - whole) / whole)) * 2**11 if whole else 0.0)
    line = only(found)
    assert line.operation == {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}[name]
    assert (line.count, line.format, line.file) == (200, "float16", HERE)
    assert line.source == "z = getattr(np, name)(x, y)"
    assert line.worst == pytest.approx(max(errors), rel=1e-9)
    assert line.mean == pytest.approx(np.mean(errors), rel=1e-9)


def test_what_overflows_underflows_and_is_absorbed_is_counted() -> None:
    x, small = half([60000.0, 2048.0, 1.0, 0.0]), half([1e-4, 1e-4, 1.0, 1.0])
    with trace() as found:
        sums = x + half([60000.0, 1.0, 1.0, 1.0])
        products = small * small
        sums -= sums
        fused = bits.fma(x.codes, x.codes, x.codes, "float16")  # of codes: not seen
        total = half(np.ones(4096) * 1.1).sum()
        last = np.sqrt(-x)
    by = {(line.operation, line.line): line for line in found.lines}
    by_operation = {line.operation: line for line in found.lines}
    assert len(fused)
    assert total == 4096
    assert not np.isfinite(products[0] / 0)
    start = by_operation["add"].line
    assert by["add", start].overflows == 1
    assert by["add", start].absorbed == 1
    assert by["add", start].worst == pytest.approx(2**11 / 2049)  # 2048 + 1; inf is not among them
    assert by["mul", start + 1].underflows == 2
    assert by["mul", start + 1].worst == 0  # of 1 * 1 and 1 * 0: what underflows is left out
    assert by["sub", start + 2].invalid == 1
    assert by["sub", start + 2].worst == 0
    native = np.cumsum(np.full(4096, 1.1, np.float16), dtype=np.float16)  # in order, each sum rounded
    assert by["sum", start + 4].absorbed == np.count_nonzero(np.diff(native) == 0)
    whole = 4096 * float(np.float16(1.1))
    assert by["sum", start + 4].worst == pytest.approx((whole - float(native[-1])) / whole * 2**11)
    assert by["sqrt", start + 5].invalid == 3
    assert np.isnan(last[0].values)
    assert str(found) == found.table()
    text = found.table().splitlines()
    assert text[0].split() == [
        "operation",
        "count",
        "mean",
        "worst",
        "overflow",
        "underflow",
        "invalid",
        "absorbed",
        "line",
    ]
    assert len(text) == 1 + len(found.lines)
    assert any(line.endswith("products = small * small") for line in text)


@pytest.mark.skipif(
    carrier_of(softfloat.float64) is None, reason="NumPy's longdouble has too few bits, and trace refuses"
)
def test_errors_in_wide_formats() -> None:
    """In units of 2^-53, of numbers that float64 has no more bits for; and of formats that have its exponents alone."""
    wide = softfloat.array(RANDOM.uniform(1, 8, 50), "float64")
    with trace() as found:
        z = wide / 3
        softfloat.array([1.0, 1.0], "float64").sum()
        absorbed = wide + 2.0**-60
    exact = [Fraction(x) / 3 for x in wide.values.tolist()]
    errors = [float(abs(Fraction(y) - x) / x * 2**53) for x, y in zip(exact, z.values.tolist(), strict=True)]
    by = {line.operation: line for line in found.lines}
    assert by["div"].worst == pytest.approx(max(errors), abs=2.0**-10)
    assert by["div"].mean == pytest.approx(np.mean(errors), abs=2.0**-10)
    assert by["sum"].worst == 0
    assert by["add"].absorbed == 50
    assert (absorbed.values == wide.values).all()
    with trace() as found:
        softfloat.array([3.0], softfloat.Format("e11m20", 11, 20)) * 2.0**-900 * (1 + 2.0**-20)
    assert found.lines[-1].worst == pytest.approx(2 / 3 / (1 + 2.0**-20))


def test_formats_that_float64_tells_nothing_about() -> None:
    with pytest.raises(ValueError, match=r"more precise than, got .*float64.*analysis\.trace"):
        Shadow(softfloat.array([1.0], "float64"))
    assert Shadow(softfloat.array([3.0], softfloat.Format("e11m40", 11, 40)) / 7).soft


def test_a_machine_whose_longdouble_is_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "longdouble", np.float64)
    x = softfloat.array([1.0], "float64")
    with trace(), pytest.raises(ValueError, match="too few bits on this machine"):
        x / 3


def test_no_bit_changes_and_nothing_is_left_on() -> None:
    a = half(RANDOM.standard_normal((6, 6)))

    def work() -> list[Any]:
        with softfloat.environment(rounding="stochastic", seed=3) as env:
            b = a + 1
            b *= 3
            solved = np.linalg.solve(a, b)
            return [b.codes, solved.codes, np.prod(b).codes, np.cumsum(b).codes, b[0].mean().codes, env.status.flags]

    plain = work()
    with trace() as outer, trace() as inner:
        watched = work()
    assert not WATCHES
    for x, y in zip(plain, watched, strict=True):
        assert np.array_equal(x, y)
    assert [vars(x) for x in outer.lines] == [vars(x) for x in inner.lines]
    assert (
        {"add", "mul", "div", "matmul", "cumsum", "sum", "encode"}
        >= {x.operation for x in outer.lines}
        > {"add", "mul", "cumsum"}
    )
    seen = len(outer.lines)
    a + a
    assert len(outer.lines) == seen
    with outer:
        a + a
        with pytest.raises(RuntimeError, match="in a block already"):
            outer.__enter__()
    assert len(outer.lines) == seen + 1
    with pytest.raises(ZeroDivisionError), trace():
        raise ZeroDivisionError
    assert not WATCHES


def test_other_threads_are_not_seen() -> None:
    with trace() as found:
        other = threading.Thread(target=lambda: half([1.0]) + half([2.0]))
        other.start()
        other.join()
    assert found.lines == []


def test_sums_that_start_somewhere_and_exact_zeros() -> None:
    x = half([2048.0, 1.0, -2048.0, -1.0])
    with trace() as found:
        x.sum()
    assert only(found).worst == math.inf
    assert only(found).mean == 0
    env = softfloat.Environment()
    with trace() as found:
        env.evaluate(bits.vecdot, x.codes, x.codes, x.format, fma("float32"), np.uint32(0x3F800000))
    assert only(found).worst < 1
    assert only(found).format == "float32"


# -- Shadow ----------------------------------------------------------------------------------------------------------


def test_a_principal_component_that_overflows_is_found() -> None:
    """Columns of large mean: its sum is beyond 65504, and all that follows is NaN."""
    data = RANDOM.normal(0, 1, (300, 4)) + np.array([1000, 0, 0, 0])
    x = Shadow(half(data))
    mean = x.mean(axis=0)
    centred = x - mean
    covariance = centred.T @ centred / 300
    assert np.isnan(covariance.soft.values).any()
    assert np.isfinite(covariance.twin).all()
    assert covariance.where is not None
    assert covariance.where.endswith("mean = x.mean(axis=0)")
    assert covariance.where.startswith(HERE)
    np.testing.assert_allclose(covariance.twin, np.cov(x.twin.T, bias=True), atol=1e-9)
    assert x.where is None
    assert x.error().max() == 0


def test_shadows_take_the_steps_of_arrays() -> None:
    x = Shadow(half([1.0, 2.0, 3.0, 4.0]))
    y = (2 - x) / 3
    assert y.soft.tolist() == ((2 - x.soft) / 3).tolist()
    np.testing.assert_array_equal(y.twin, (2 - x.twin) / 3)
    assert y.where is None
    assert y.lost_bits().max() < 1
    assert (x > 2).tolist() == [False, False, True, True]
    assert x[x > 2].soft.tolist() == [3.0, 4.0]
    assert x[1:].twin.tolist() == [2.0, 3.0, 4.0]
    joined = np.concatenate([x, y])
    assert isinstance(joined, Shadow)
    assert joined.shape == (8,)
    assert len(joined) == 8
    assert float(x.sum()) == 10
    assert bool(x[0])
    assert x.reshape(2, 2).T.twin.tolist() == [[1, 3], [2, 4]]
    w, _ = np.linalg.eigh(x.reshape(2, 2) + x.reshape(2, 2).T)
    np.testing.assert_allclose(w.soft.values, w.twin, rtol=1e-2)
    narrow = x.astype("float8_e4m3fn") * 1.1
    assert narrow.soft.format.name == "float8_e4m3fn"
    assert 0 < narrow.error().max() < 1 / 8
    x += 1
    x *= half(np.full(4, 0.5))
    assert x.soft.tolist() == x.twin.tolist() == [1.0, 1.5, 2.0, 2.5]
    out = Shadow(half(np.zeros(4)))
    assert np.multiply(x, 40000, out=out) is out
    assert out.where is not None
    assert out.where.endswith("assert np.multiply(x, 40000, out=out) is out")
    before = out.where
    assert np.multiply(x, 2, out=out).where is None  # what stood there is not among the operands
    out *= 40000
    assert out.where is not None
    assert out.where != before
    mixed = x.soft + x
    assert mixed.soft.tolist() == (x.soft + x.soft).tolist()
    assert (np.float64(2) * x - x.soft).twin.tolist() == x.twin.tolist()
    x[1] = out[3]
    assert x.where is not None
    assert "out *= 40000" in x.where
    assert "wrong since" in repr(x)
    assert Shadow(half([1.0]) / 3, 0.0).where is None
    assert (Shadow(half([1.0]), 0.0) / 3).where is not None


def test_cancellation_is_seen_as_bits_lost() -> None:
    x = Shadow(half(1.0))
    difference = x / 3 - 0.332
    assert 6 < difference.lost_bits() < 9
    assert difference.where is not None
    both_infinite = Shadow(half([np.inf, np.nan]))
    assert both_infinite.error().tolist() == [0, 0]
    assert not both_infinite.wrong()
    with pytest.raises(TypeError, match="x must be"):
        Shadow(np.ones(3))  # type: ignore[arg-type]


# -- digits ----------------------------------------------------------------------------------------------------------


def test_digits_of_what_is_known() -> None:
    """A sum of n roundings of deviation s: log10(total / (s t)), t for 99 % of runs, as the bound has it within a third of a digit."""
    x = half(np.full(64, 1.0))
    found = digits(lambda: (x / 3).sum(), runs=50)
    assert found.digits.shape == ()
    assert abs(found.mean / (64 / 3) - 1) < 1e-3
    known = -math.log10(found.deviation / found.mean * 2.576)
    assert known - 0.2 < found.digits < known
    assert digits(lambda: x[0]).digits == pytest.approx(11 * math.log10(2))  # nothing is rounded
    assert digits(lambda: 1.5).digits == pytest.approx(53 * math.log10(2))
    assert digits(lambda: x[:2] / 0 - x[0] / 0, runs=3).digits.tolist() == [0.0, 0.0]
    fewer = digits(lambda: (x / 3).sum(), runs=3)
    assert fewer.digits < found.digits  # of which less is known
    assert digits(lambda: (x / 3).sum(), 4, seed=2**64 - 2).mean > 0


def test_what_digits_refuses() -> None:
    for options, message in (
        ({"rounding": "nearest_even"}, "rounding must be"),
        ({"runs": 1}, "runs must be an integer of at least 2"),
        ({"confidence": 1.0}, "confidence must be less than 1"),
        ({"probability": 0.0}, "probability must be"),
        ({"seed": -1}, "seed must be"),
    ):
        with pytest.raises(ValueError, match=message):
            digits(lambda: 1.0, **options)  # type: ignore[arg-type]


def test_all_names_are_public() -> None:
    assert {"trace", "Shadow", "digits", "augmented_addition"} <= set(analysis.__all__)


def test_what_is_refused_is_refused_as_ever() -> None:
    env = softfloat.Environment(rounding="stochastic", seed=1)
    with env, trace() as found:
        with pytest.raises(TypeError) as within:
            softfloat.array(["a"], "float16")
        with pytest.raises(ValueError, match="shape"):
            half([1.0, 2.0]) + half([1.0, 2.0, 3.0])
        assert env.next_stream() == 2  # those of the two arrays: what was refused took none
        pair = env.evaluate(bits.add, half([1.0]).codes, np.uint32([0x3F800000]), "float16", b_format="float32")
    assert [line.operation for line in found.lines] == ["encode"]
    assert pair == half([2.0]).codes
    with pytest.raises(TypeError) as outside:
        softfloat.array(["a"], "float16")
    assert str(within.value) == str(outside.value)
