"""Arrays of wide formats: where numbers are in the middle of the range, what a format with fewer exponents gives, bit for bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Environment, Flags, FloatingPointTrap, Format, SoftArray, analysis, bits, linalg, reference
from softfloat.arrays.decimals import shortest

PAIRS = {
    "half": (Format("e8m10", 8, 10), Format("e9m10", 9, 10)),
    "single": (softfloat.float32, Format("e11m23", 11, 23)),
}
"""A format, and a wide one with the same numbers in the middle of its range."""
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "nearest": {},
    "stochastic": {"rounding": "stochastic", "seed": 3},
    "up": {"rounding": "toward_positive", "nan": "x86"},
}
Call = Callable[[SoftArray, SoftArray, SoftArray, SoftArray], Any]

OPERATORS: dict[str, Call] = {
    "arithmetic": lambda x, y, a, s: (x + y, x - y, x * y, x / y, -x, abs(x), x**2, 2.5 * x, np.float64(0.1) + x),
    "rests": lambda x, y, a, s: (np.fmod(x, y), x % y, x // y, *divmod(x, y)),
    "comparisons": lambda x, y, a, s: (x < y, x == y, np.maximum(x, y), np.fmin(x, y), np.sign(x), np.argsort(x)),
    "whole numbers": lambda x, y, a, s: (
        np.rint(x),
        np.floor(x),
        np.ceil(x),
        np.trunc(x),
        np.round(x, 1),
        x.astype(int),
    ),
    "parts": lambda x, y, a, s: (*np.modf(x), *np.frexp(x), np.ldexp(x, 3), np.copysign(x, y)),
    "roots": lambda x, y, a, s: (np.sqrt(abs(x)), np.cbrt(x), np.hypot(x, y), np.reciprocal(x)),
    "functions": lambda x, y, a, s: (np.exp(x), np.log(abs(x)), np.sin(x), np.tanh(x), np.arctan2(y, x), abs(x) ** y),
    "more functions": lambda x, y, a, s: (np.expm1(x), np.log1p(abs(x)), np.logaddexp(x, y), np.exp2(x), np.arcsinh(x)),
    "sums": lambda x, y, a, s: (x.sum(), x.mean(), np.prod(x), np.cumsum(x), np.cumprod(x), np.nansum(x)),
    "statistics": lambda x, y, a, s: (np.std(x), np.var(a, axis=0), np.median(x), np.quantile(x, 0.3), np.ptp(x)),
    "products": lambda x, y, a, s: (x @ y, a @ x, a @ s, np.outer(x, y), np.einsum("ij,j->i", a, x), np.inner(x, y)),
    "more products": lambda x, y, a, s: (np.convolve(x, y), np.kron(x, y), np.cross(x[:3], y[:3]), np.trace(a)),
    "places": lambda x, y, a, s: (np.diff(x), np.gradient(x), np.interp(y, np.sort(x), x), np.clip(x, -0.5, 0.5)),
    "orders": lambda x, y, a, s: (np.sort(x), np.unique(x), np.searchsorted(np.sort(x), y), np.histogram(x, 4)),
    "covariances": lambda x, y, a, s: (np.cov(a), np.average(x, weights=abs(y)), np.trapezoid(x), np.polyval(x[:3], y)),
}
ALGEBRA: dict[str, Call] = {
    "norms": lambda x, y, a, s: (
        np.linalg.norm(x),
        np.linalg.norm(a),
        np.linalg.norm(x, 1),
        np.linalg.matrix_norm(a, ord=1),
    ),
    "lu": lambda x, y, a, s: (linalg.lu(a), np.linalg.det(a), np.linalg.slogdet(a)),
    "solutions": lambda x, y, a, s: (np.linalg.solve(a, x), np.linalg.inv(a), np.linalg.matrix_power(a, 3)),
    "cholesky": lambda x, y, a, s: (
        np.linalg.cholesky(s),
        linalg.ldl(s),
        linalg.solve_triangular(np.tril(a), x, lower=True),
    ),
    "qr": lambda x, y, a, s: (np.linalg.qr(a), np.linalg.lstsq(a, x, rcond=None)),
    "eigenvalues": lambda x, y, a, s: (np.linalg.eigh(s), np.linalg.svd(a), np.linalg.cond(a), np.linalg.pinv(a)),
    "iterations": lambda x, y, a, s: (linalg.cg(s, x, rtol=1e-2), linalg.gmres(s, x, rtol=1e-2)),
    "scalings": lambda x, y, a, s: (linalg.equilibrate(a),),
    "errors": lambda x, y, a, s: (analysis.two_sum(x, y), analysis.two_prod(x, y), analysis.augmented_addition(x, y)),
}


def operands(fmt: Format) -> tuple[SoftArray, ...]:
    """Two vectors, a matrix, and one that is symmetric and positive definite; all products and quotients are normal numbers."""
    random = np.random.default_rng(4)
    x, y = random.uniform(0.25, 2.0, (2, 5)) * random.choice([1, -1], (2, 5))
    a = random.standard_normal((5, 5)) + 4 * np.eye(5)
    rounded = (softfloat.array(v, PAIRS["half"][0]).values for v in (x, y, a, a @ a.T))
    return tuple(softfloat.array(v, fmt) for v in rounded)


def plain(found: Any, formats: tuple[Format, Format]) -> Any:
    """A result without its formats: numbers, or what it is made of."""
    if isinstance(found, SoftArray):
        assert found.format in formats
        return found.values.tolist(), found.shape
    if is_dataclass(found) and not isinstance(found, type):
        return [plain(getattr(found, field.name), formats) for field in fields(found)]
    if isinstance(found, (tuple, list)):
        return [plain(x, formats) for x in found]
    return found.tolist() if isinstance(found, (np.ndarray, np.generic)) else repr(found)


def outcome(call: Call, fmt: Format, formats: tuple[Format, Format], how: dict[str, Any]) -> Any:
    """What a call gives, and its flags."""
    with softfloat.environment(Environment(**how)) as env:
        found = plain(call(*operands(fmt)), formats)
    return found, int(env.status.flags)


@pytest.mark.parametrize("how", ENVIRONMENTS)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", [*OPERATORS, *ALGEBRA])
def test_arrays(name: str, pair: str, how: str) -> None:
    call, formats = (OPERATORS | ALGEBRA)[name], PAIRS[pair]
    narrow, wide = (outcome(call, fmt, formats, ENVIRONMENTS[how]) for fmt in formats)
    assert repr(narrow) == repr(wide)


WIDE = [softfloat.float64, Format("e11m40", 11, 40), Format("e10m3", 10, 3)]


@pytest.mark.parametrize("fmt", WIDE, ids=str)
def test_traps_name_the_place(fmt: Format) -> None:
    x = softfloat.array([[1.0, 2.0], [fmt.max, 3.0]], fmt)
    calls: dict[str, Callable[[SoftArray], Any]] = {
        "mul": lambda x: x * 4,
        "matmul": lambda x: x @ softfloat.array([4.0, 1.0], fmt),
        "exp": np.exp,
    }
    for name, call in calls.items():
        place = r"\(1,\)" if name == "matmul" else r"\(1, 0\)"
        with softfloat.environment(traps=Flags.OVERFLOW), pytest.raises(FloatingPointTrap, match=place):
            call(x)
    with softfloat.environment(traps=Flags.DIVBYZERO) as env:
        assert np.isinf((x * 4).values[1, 0])
        with pytest.raises(FloatingPointTrap, match=r"\(0, 1\)"):
            x / softfloat.array([1.0, 0.0], fmt)
    assert env.status.flags & Flags.OVERFLOW


@pytest.mark.parametrize("fmt", WIDE, ids=str)
def test_files_keep_codes_and_format(fmt: Format, tmp_path: Path) -> None:
    """Payloads and signalling NaNs, too."""
    random = np.random.default_rng(2)
    codes = random.integers(0, 2**fmt.bits, (7, 9), dtype=np.uint64).astype(fmt.dtype)
    codes[0, :3] = fmt.inf_code + 1, fmt.inf_code, fmt.sign_bit
    x = softfloat.from_codes(codes, fmt)
    softfloat.save(tmp_path / "x.npz", {"x": x})
    back = softfloat.load(tmp_path / "x.npz")["x"]
    assert back.format == fmt
    assert (back.codes == codes).all()
    copied = pickle.loads(pickle.dumps(x))
    assert (copied.codes == codes).all()
    assert copied.format == fmt


def test_the_largest_and_the_least_numbers_are_written_without_a_warning() -> None:
    """NumPy's `round`, asked whether digits are few, overflowed: a RuntimeWarning."""
    x = softfloat.array([1e308, 5e-324], softfloat.float64)
    assert repr(x) == "SoftArray([1.e+308, 5.e-324], float64)"


def test_numbers_of_more_than_24_bits_are_as_short_as_they_read_back() -> None:
    """0.123456789012 has more digits than any number of 24 bits needs."""
    fmt = WIDE[1]
    codes = bits.encode([0.1, 0.123456789012, 2 / 3], fmt)[0]
    found = shortest(codes, fmt)
    assert found.tolist()[:2] == [0.1, 0.123456789012]
    assert (bits.encode(found, fmt)[0] == codes).all()


@pytest.mark.parametrize("fmt", [*WIDE, Format("e11m51", 11, 51)], ids=str)
def test_means_are_rounded_once(fmt: Format) -> None:
    """A fourth of float64's means were off by one place: quotients were rounded to odd in float64 first, which has no bits to spare."""
    random = np.random.default_rng(6)
    x = softfloat.array(random.standard_normal((60, 3)) * 2.0 ** random.integers(-20, 20, (60, 1)), fmt)
    x = np.concatenate([x, softfloat.array([[fmt.max, 0.0, 0.0], [fmt.tiny, 0.0, 0.0], [-0.0, -0.0, -0.0]], fmt)])
    totals, found = x.sum(axis=1), np.mean(x, axis=1)
    for total, code in zip(totals.values.tolist(), found.codes.tolist(), strict=True):
        assert code == reference.encode(Fraction(total) / 3 if total else total, fmt)[0], total


@pytest.mark.parametrize("fmt", [*WIDE, Format("e11m51", 11, 51)], ids=str)
def test_powers_of_two_reach_both_ends(fmt: Format) -> None:
    """0.1 times 2^2000 was 6.8e270 in float64."""
    numbers = [0.1, -1.5, fmt.max, fmt.smallest_subnormal, fmt.tiny, 0.0, -0.0]
    for shift in (2000, 1100, 950, 1, 0, -1, -60, -950, -1070, -1080, -2000, 10**6, -(10**6)):
        codes = bits.encode(numbers, fmt)[0]
        found = np.ldexp(softfloat.from_codes(codes, fmt), shift)
        for value, code in zip(bits.decode(codes, fmt).tolist(), found.codes.tolist(), strict=True):
            exact = Fraction(value) * Fraction(2) ** max(min(shift, 5000), -5000) if value else value
            assert code == reference.encode(exact, fmt)[0], (value, shift)


@pytest.mark.parametrize("fmt", [*WIDE, Format("e11m51", 11, 51), Format("unsigned", 11, 52, signed=False)], ids=str)
def test_codes_stay_integers(fmt: Format) -> None:
    """`numpy.where` makes float64 of uint64 and int64: heaviside(0, 0.1) of float64 was 0x3FB9999999999A00, nan_to_num(inf) was inf, and
    `sign` lost the payloads of NaNs."""
    nan = fmt.nan_code + 1
    x = softfloat.from_codes([0, fmt.one_code + 1, fmt.inf_code, nan], fmt)
    tenth = softfloat.array(0.1, fmt)
    with softfloat.environment(nan="x86"):
        assert np.heaviside(x, tenth).codes.tolist() == [int(tenth.codes), fmt.one_code, fmt.one_code, nan]
        assert np.sign(x).codes.tolist() == [0, fmt.one_code, fmt.one_code, nan]
    assert np.nan_to_num(x, nan=2).codes.tolist() == [
        0,
        fmt.one_code + 1,
        fmt.max_code,
        fmt.one_code + (1 << fmt.mantissa_bits),
    ]


@pytest.mark.parametrize("fmt", [*WIDE, Format("e11m51", 11, 51), Format("unsigned", 11, 52, signed=False)], ids=str)
def test_nans_are_the_last(fmt: Format) -> None:
    """Their rank was 2^40, before most numbers of more than 40 bits: sort([3, NaN, 1]) was [NaN, 1, 3]."""
    x = softfloat.array([3.0, np.nan, 1.0, np.inf, fmt.max, 0.0], fmt)
    wanted = [0.0, 1.0, 3.0, fmt.max, np.inf, np.nan]
    np.testing.assert_array_equal(np.sort(x).values, wanted)
    np.testing.assert_array_equal(np.sort(x, stable=True).values, wanted)
    np.testing.assert_array_equal(np.unique(np.tile(x, 2)).values, wanted)
    np.testing.assert_array_equal(np.unique(np.tile(x, 2), equal_nan=False).values, [*wanted, np.nan])
    np.testing.assert_array_equal(np.setdiff1d(x, x[:1]).values, [value for value in wanted if value != 3])
