"""Arrays of wide formats: where numbers are in the middle of the range, what a format with fewer exponents gives, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Environment, Format, SoftArray, analysis, linalg

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
