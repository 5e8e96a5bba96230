"""Strategies draw what their names say, all of it, and near ties come near."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import Format, bits, reference
from softfloat.testing import strategies
from softfloat.testing.vectors import distributions

FORMATS = [
    softfloat.float16,
    softfloat.float8_e4m3fnuz,
    softfloat.float8_e8m0fnu,
    softfloat.float4_e2m1fn,
    Format("flush", exponent_bits=4, mantissa_bits=3, subnormals=False),
]
ROOMY = [softfloat.float16, softfloat.bfloat16, softfloat.float32, softfloat.float8_e4m3, softfloat.float8_e5m2]

QUICK = settings(
    max_examples=150,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def drawn(strategy: Any) -> list[Any]:
    found: list[Any] = []

    @QUICK
    @given(strategy)
    def collect(x: Any) -> None:
        found.append(x)

    collect()
    return found


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_codes_are_of_their_class(fmt: Format) -> None:
    everything = np.array(drawn(strategies.codes(fmt)))
    assert everything.min() >= 0
    assert everything.max() < 2**fmt.bits
    assert set(drawn(strategies.edges(fmt))) <= set(range(2**fmt.bits))
    finite = np.array(drawn(strategies.finite(fmt)), fmt.dtype)
    assert bits.isfinite(finite, fmt).all()
    assert bits.isnormal(np.array(drawn(strategies.normal(fmt)), fmt.dtype), fmt).all()
    assert bits.signbit(finite, fmt).any() == fmt.signed
    if fmt.smallest_subnormal_code < fmt.smallest_normal_code:
        assert bits.issubnormal(np.array(drawn(strategies.subnormal(fmt)), fmt.dtype), fmt).all()
    else:
        with pytest.raises(ValueError, match=f"fmt must have subnormal numbers, and {fmt} has none"):
            strategies.subnormal(fmt)


def test_every_finite_code_of_a_small_format_is_drawn() -> None:
    fmt = softfloat.float4_e2m1fn
    for code in range(16):
        assert find(strategies.finite(fmt), lambda x, code=code: x == code) == code


def test_values_keep_the_sign_of_zero() -> None:
    zero = find(strategies.values("float16"), lambda x: x == 0 and math.copysign(1, x) < 0)
    assert str(zero) == "-0.0"
    assert all(float(np.float16(x)) == x for x in drawn(strategies.values("float16")))


@settings(deadline=None)
@given(
    strategies.matrices("float8_e4m3fn", rows=3, columns=st.integers(2, 4)), strategies.soft_arrays("bfloat16", (2, 2))
)
def test_arrays(matrix: Any, x: softfloat.SoftArray) -> None:
    assert matrix.dtype == np.uint8
    assert matrix.shape[0] == 3
    assert matrix.shape[1] in (2, 3, 4)
    assert bits.isfinite(matrix, "float8_e4m3fn").all()
    assert x.format is softfloat.bfloat16
    assert x.shape == (2, 2)


@settings(deadline=None)
@given(strategies.environments(daz=True), strategies.roundings(stochastic=True), strategies.formats(["half", "e4m3"]))
def test_environments(env: softfloat.Environment, mode: softfloat.Rounding, fmt: Format) -> None:
    assert env.daz
    assert env.rounding is not softfloat.Rounding.STOCHASTIC
    assert isinstance(mode, softfloat.Rounding)
    assert fmt in (softfloat.float16, softfloat.float8_e4m3fn)


EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "sqrt": lambda a: Fraction(math.isqrt(int(a * 4**300)), 2**300),
    "fma": lambda a, b, c: a * b + c,
    "convert": lambda a: a,
}


def from_a_tie(exact: Fraction, fmt: Format) -> float:
    """Distance of a result from the nearest tie, in units of the last place."""
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    place = size / Fraction(2) ** (max(exponent, fmt.emin) - fmt.mantissa_bits)
    return float(abs(place - math.floor(place) - Fraction(1, 2)))


AIMED = [(fmt, operation) for fmt in ROOMY for operation in EXACT if operation != "convert" or fmt.p < 24]


@pytest.mark.parametrize(("fmt", "operation"), AIMED, ids=str)
def test_near_ties(fmt: Format, operation: str) -> None:
    source = softfloat.float32 if operation == "convert" else fmt
    distances = []
    for operands in drawn(strategies.near_ties(fmt, operation, source if operation == "convert" else None)):
        values = [reference.decode(code, source) for code in operands]
        assert all(value.kind is reference.Kind.FINITE for value in values)
        signed = [-value.magnitude if value.negative else value.magnitude for value in values]
        distances.append(from_a_tie(EXACT[operation](*signed), fmt))
    distances.sort()
    near = {"div": 4 / 2 ** (fmt.p / 2), "sqrt": 2 / 2 ** (fmt.p / 2)}.get(operation, 2.0 ** (2 - fmt.p / 2))
    assert distances[len(distances) // 2] <= near
    if operation in ("div", "sqrt"):
        assert distances[0] > 0  # no quotient and no root is a tie
    else:
        assert distances[len(distances) // 8] == 0


def test_errors_name_the_argument() -> None:
    with pytest.raises(
        ValueError, match="operation must be one of add, sub, mul, div, sqrt, fma or convert, got 'exp'"
    ):
        strategies.near_ties("float16", "exp")
    with pytest.raises(ValueError, match="source must be a format of more than 11 bits"):
        strategies.near_ties("float16", "convert", "bfloat16")
    with pytest.raises(ValueError, match="fmt must be signed and have a zero"):
        strategies.near_ties("float8_e8m0fnu", "add")
    with pytest.raises(ValueError, match="fmt must have at least five binades"):
        strategies.near_ties("float4_e2m1fn", "add")


def test_edges_of_a_format_of_two_codes() -> None:
    fmt = Format("two", exponent_bits=1, mantissa_bits=0, bias=0, nan="fn", signed=False, zero=False, subnormals=False)
    assert distributions.edges(fmt).tolist() == [0, 1]


def test_numbers_of_an_unsigned_format_and_of_a_signed_one() -> None:
    """Drawn numbers are made positive for formats that have no others, and for them alone."""
    (unsigned,) = distributions.draw("float8_e8m0fnu", "normal", 1000, 1)
    assert not bits.isnan(unsigned, "float8_e8m0fnu").any()
    (signed,) = distributions.draw("float16", "normal", 1000, 1)
    assert 300 < bits.signbit(signed, "float16").sum() < 700
