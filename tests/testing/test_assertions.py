"""Distance in units of the last place, and the assertion that shows what differs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import bits
from softfloat.testing import assert_bits_equal, bits_differ, ulp_distance
from softfloat.testing.assertions import order

FORMATS = [*softfloat.ROSTER.values(), softfloat.Format("flush", exponent_bits=4, mantissa_bits=3, subnormals=False)]


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_order_counts_the_numbers(fmt: softfloat.Format) -> None:
    """Consecutive numbers are one apart, and nothing but the zeros shares a place."""
    count = min(2**fmt.bits, 1 << 16)
    codes = np.unique(np.linspace(0, 2**fmt.bits - 1, count, dtype=np.int64)).astype(fmt.dtype)
    codes = codes[~bits.isnan(codes, fmt)]
    values, places = bits.decode(codes, fmt), order(codes, fmt)
    arranged = np.argsort(values, kind="stable")
    values, places = values[arranged], places[arranged]
    assert ((np.diff(values) > 0) == (np.diff(places) > 0)).all()
    if 2**fmt.bits <= 1 << 16:
        assert (np.diff(places)[np.diff(values) > 0] == 1).all()


def test_distances_of_64_bits_are_whole() -> None:
    least, greatest = 0xFFEFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF
    assert ulp_distance(least, greatest, "float64") == 2 * greatest > 2**63
    assert ulp_distance([1, 1 << 63], [0x7FF8000000000000, 3], "float64").tolist() == [-1, 3]
    with pytest.raises(AssertionError, match="1 ulp"):
        assert_bits_equal([greatest], [greatest - 1], "float64")


@settings(deadline=None)
@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_distance_is_the_number_of_steps(a: int, b: int) -> None:
    distance = ulp_distance(a, b, "float16")
    assert distance == ulp_distance(b, a, "float16")
    if bits.isnan(a, "float16") or bits.isnan(b, "float16"):
        assert distance == (0 if bits.isnan(a, "float16") and bits.isnan(b, "float16") else -1)
        return
    if distance and not bits.isinf(a, "float16"):
        step = bits.next_up if bits.decode(a, "float16") < bits.decode(b, "float16") else bits.next_down
        assert ulp_distance(step(a, "float16")[0], b, "float16") == distance - 1


def test_distance_of_arrays() -> None:
    found = ulp_distance([0x3C00, 0x0000, 0x7BFF, 0x7E00], [[0x3C01], [0x8000]], "float16")
    assert found.tolist() == [[1, 0x3C01, 0x7BFF - 0x3C01, -1], [0x3C00, 0, 0x7BFF, -1]]
    assert isinstance(ulp_distance(1, 2, "float16"), int)


def test_equal_codes_pass() -> None:
    assert_bits_equal(0x3C00, np.uint16(0x3C00), "float16")
    assert_bits_equal(np.zeros((2, 0), np.uint16), np.zeros((2, 0), np.uint16), "float16")
    x = softfloat.array([1.0, -0.0, np.nan], "bfloat16")
    assert_bits_equal(x, x.codes)
    assert_bits_equal([0x7E01, 0xFE00], [0x7E00, 0x7E00], "float16", nan="any")


@pytest.mark.parametrize(
    ("actual", "expected", "nan", "said"),
    [
        (0x3C00, 0x3C02, "payload", "2 ulp"),
        (0x8000, 0x0000, "payload", "sign of zero"),
        (0x7E01, 0x7E00, "payload", "another NaN"),
        (0x7E01, 0x7E00, "canonical", "another NaN"),
        (0x7E00, 0x7C00, "any", "NaN against a number"),
        (0x7C00, 0x7E00, "any", "NaN against a number"),
        (0x7C00, 0x7BFF, "any", "1 ulp"),
    ],
)
def test_different_codes_fail(actual: int, expected: int, nan: str, said: str) -> None:
    with pytest.raises(AssertionError, match=r"^1 of 1 codes of float16 differ\n") as failure:
        assert_bits_equal(actual, expected, "float16", nan=nan)
    line = str(failure.value).splitlines()[1]
    assert line.endswith(said)
    assert f"actual 0x{actual:04x}" in line
    assert f"expected 0x{expected:04x}" in line


def test_a_canonical_nan_may_be_asked_for() -> None:
    assert bits_differ([0x7E00, 0x7E01, 0xFE00], 0x7D01, "float16", nan="canonical").tolist() == [False, True, True]
    assert not bits_differ([0x7E00, 0x7E01, 0xFE00], 0x7D01, "float16", nan="any").any()


def test_long_messages_are_cut() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_bits_equal(np.zeros((5, 5), np.uint8), np.ones((5, 5), np.uint8), "float8_e4m3fn")
    lines = str(failure.value).splitlines()
    assert lines[0] == "25 of 25 codes of float8_e4m3fn differ"
    assert lines[-1] == "  and 15 more"
    assert "at (1, 4)" in lines[10]
    assert len(lines) == 12


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(TypeError, match="fmt is needed"):
        assert_bits_equal(1, 1)
    with pytest.raises(AssertionError, match="formats differ: float16, bfloat16"):
        assert_bits_equal(softfloat.ones(1, "float16"), softfloat.ones(1, "bfloat16"))
    with pytest.raises(AssertionError, match=r"shapes differ: actual \(1,\), expected \(\)"):
        assert_bits_equal([1], 1, "float16")
    with pytest.raises(ValueError, match="nan must be one of 'any', 'canonical', 'payload'"):
        bits_differ(1, 1, "float16", nan="quiet")
    with pytest.raises(ValueError, match="actual holds 0x10000"):
        assert_bits_equal(0x10000, 1, "float16")
