"""Scaling, conjugate gradients, GMRES and refinement: the programs written out, published regimes, what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import SoftArray, bits, linalg
from softfloat.accumulators import exact, fma
from softfloat.formats import bfloat16, float16, float32
from softfloat.linalg.krylov import product_with
from softfloat.linalg.refinement import _residual
from softfloat.status import Flags


def spread_spectrum(n: int, kappa: float, kind: str = "even", seed: int = 1) -> Any:
    """A matrix whose singular values fall evenly, on a logarithmic scale, from 1 to 1 / kappa; or whose last alone is not 1."""
    random = np.random.default_rng(seed)
    u, _ = np.linalg.qr(random.standard_normal((n, n)))
    v, _ = np.linalg.qr(random.standard_normal((n, n)))
    share = np.arange(n) // (n - 1) if kind == "one small" else np.arange(n) / (n - 1)
    return (u * kappa ** -(1.0 * share)) @ v.T


def poisson(n: int) -> Any:
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


# -- scaling ------------------------------------------------------------------------------------------------------------


def is_power_of_two(x: Any) -> bool:
    return bool(np.all(np.frexp(x)[0] == 0.5))


@pytest.mark.parametrize("symmetric", [False, True])
def test_equilibrated_rows_and_columns_have_magnitudes_near_one(symmetric: bool) -> None:
    scales = 2.0 ** np.random.default_rng(0).integers(-6, 6, 8)
    a = np.random.default_rng(1).standard_normal((8, 8))
    a = (a + a.T) * scales[:, None] * scales
    x = softfloat.array(a, float16)
    found, r, c = linalg.equilibrate(x, symmetric=symmetric)
    assert is_power_of_two(r)
    assert is_power_of_two(c)
    np.testing.assert_array_equal(found.values, x.values * r[:, None] * c)  # nothing is rounded
    for tops in (np.abs(found.values).max(0), np.abs(found.values).max(1)):
        assert tops.min() >= 0.25
        assert tops.max() <= 4
    if symmetric:
        np.testing.assert_array_equal(r, c)
        np.testing.assert_array_equal(found.values, found.values.T)
    plain, _, _ = linalg.equilibrate(x.values, symmetric=symmetric)
    assert isinstance(plain, np.ndarray)
    np.testing.assert_array_equal(plain, found.values)


def test_rows_of_zeros_and_infinities_are_left() -> None:
    a, r, c = linalg.equilibrate(np.array([[0.0, 0.0], [math.inf, 8.0]]))
    assert (r.tolist(), c.tolist()) == ([1, 1], [1, 0.125])
    assert a.tolist() == [[0, 0], [math.inf, 1]]


def test_squeezed_matrices_fill_the_range() -> None:
    """A matrix of elements up to 1e9 and down to 1e-9 has all its rows in half."""
    a = spread_spectrum(8, 10) * 10.0 ** np.linspace(-9, 9, 8)[:, None]
    assert not np.isfinite(softfloat.array(a, float16).values).all()
    found = linalg.squeeze(a, "float16")
    top = np.abs(found.a.values).max()
    assert 65504 * 0.1 / 4 < top <= 65504 * 0.1
    assert is_power_of_two(np.array([found.mu, *found.r, *found.c]))
    wanted, _ = bits.encode(found.mu * a * found.r[:, None] * found.c, "float16")
    np.testing.assert_array_equal(found.a.codes, wanted)
    assert linalg.squeeze(np.zeros((2, 2)), float16).mu == 1


# -- matrices of any kind -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, fma, exact(float16)], ids=["usual", "fma", "exact"])
def test_sparse_rows_are_sums_in_the_order_of_columns(how: Any) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    random = np.random.default_rng(0)
    dense = random.standard_normal((20, 20)) * (random.random((20, 20)) < 0.3)
    dense[3] = 0
    x = softfloat.array(random.standard_normal(20), float16)
    with softfloat.environment(accumulator=how) as env:
        expected = softfloat.array(dense, float16) @ x
        seen = env.status.flags
        rows = sparse.csr_array(dense)
        columns = np.concatenate([np.flip(x) for x in np.split(rows.indices, rows.indptr[1:-1])])
        data = np.concatenate([np.flip(x) for x in np.split(rows.data, rows.indptr[1:-1])])
        unsorted = sparse.csr_array((data, columns, rows.indptr), rows.shape)
        np.testing.assert_array_equal(product_with(unsorted, float16, "cg")(x).codes, expected.codes)
        for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_matrix):
            np.testing.assert_array_equal(product_with(kind(dense), float16, "cg")(x).codes, expected.codes)
    assert env.status.flags == seen


# -- conjugate gradients ------------------------------------------------------------------------------------------------


def test_conjugate_gradients_written_out() -> None:
    a, b = softfloat.array(poisson(12), float16), softfloat.array(np.arange(1.0, 13), float16)
    x, r = softfloat.zeros(12, float16), b
    p, before, sizes = None, None, [float(np.linalg.norm(r.values))]
    limit = 2.0**-10 * sizes[0]
    while sizes[-1] > limit and len(sizes) <= 30:
        now = r @ r
        p = r if p is None else r + p * (now / before)
        q = a @ p
        alpha = now / (p @ q)
        x, r, before = x + p * alpha, r - q * alpha, now
        sizes.append(float(np.linalg.norm(r.values)))
    seen: list[Any] = []
    with softfloat.environment() as env:
        found = linalg.cg(a, b, maxiter=30, callback=seen.append)
    np.testing.assert_array_equal(found.x.codes, x.codes)
    assert found.residuals == sizes
    assert (found.iterations, found.converged) == (len(sizes) - 1, sizes[-1] <= limit)
    assert len(seen) == found.iterations
    assert found.flags == env.status.flags == Flags.INEXACT | Flags.UNDERFLOW


def test_conjugate_gradients_of_every_kind_of_operand() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense, b = poisson(10) + np.eye(10), softfloat.array(np.ones(10), float32)
    soft = softfloat.array(dense, float32)
    found = [linalg.cg(a, b).x.codes for a in (soft, dense, sparse.csr_array(dense), lambda v: soft @ v)]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    wanted = np.linalg.solve(dense, np.ones(10))
    np.testing.assert_allclose(softfloat.from_codes(found[0], float32).values, wanted, rtol=1e-5)
    again = linalg.cg(soft, b, x0=wanted)
    assert (again.iterations, again.converged) == (0, True)
    quick = linalg.cg(soft, b, M=linalg.lu(soft))
    assert quick.converged
    assert quick.iterations <= 2


def test_what_is_not_definite_stops() -> None:
    found = linalg.cg(np.diag([1.0, -1.0]), softfloat.ones(2, float16))
    assert (found.converged, found.iterations) == (False, 0)


# -- GMRES ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orthogonal", ["mgs", "cgs2"])
@pytest.mark.parametrize("fmt", [float16, bfloat16, float32], ids=str)
def test_gmres_solves(fmt: Any, orthogonal: str) -> None:
    a, u = spread_spectrum(20, 10), 2.0**-fmt.p
    b = softfloat.array(a.sum(1), fmt)
    found = linalg.gmres(a, b, orthogonal=orthogonal, rtol=16 * u)
    assert found.converged
    assert found.iterations <= 22
    assert found.residuals[1:20] == sorted(found.residuals[1:20], reverse=True)
    rest = np.linalg.norm(softfloat.array(a, fmt).values @ found.x.values - b.values)
    assert rest <= 40 * u * np.linalg.norm(b.values)
    by_factors = linalg.gmres(a, b, M=linalg.lu(softfloat.array(a, fmt)), orthogonal=orthogonal, rtol=16 * u)
    assert by_factors.converged
    assert by_factors.iterations <= 3


def test_gmres_in_cycles() -> None:
    a, b = poisson(16) + np.eye(16), softfloat.ones(16, float32)
    seen: list[SoftArray] = []
    found = linalg.gmres(a, b, restart=4, rtol=1e-5, callback=seen.append)
    assert found.converged
    assert len(seen) > 1
    np.testing.assert_allclose(found.x.values, np.linalg.solve(a, np.ones(16)), rtol=1e-3, atol=1e-3)
    assert linalg.gmres(a, b, maxiter=3).iterations == 3
    assert linalg.gmres(a, b * 0).iterations == 0
    again = linalg.gmres(a, b, x0=found.x, rtol=1e-5)
    assert (again.iterations, again.converged) == (0, True)


# -- refinement -----------------------------------------------------------------------------------------------------------


def system(kappa: float, n: int = 40, kind: str = "even") -> tuple[SoftArray, SoftArray, Any]:
    """A and b in float32, and the solution to more digits than float32 has."""
    a = softfloat.array(spread_spectrum(n, kappa, kind), float32)
    b = softfloat.array(np.random.default_rng(2).standard_normal(n), float32)
    x = np.linalg.solve(a.values, b.values)
    for _ in range(3):
        rest = b.values.astype(np.longdouble) - a.values.astype(np.longdouble) @ x.astype(np.longdouble)
        x = x + np.linalg.solve(a.values, rest.astype(float))
    return a, b, x


@pytest.mark.parametrize(
    ("kappa", "solver", "converged"),
    [(1e1, "lu", True), (1e2, "lu", True), (1e5, "lu", False), (1e2, "gmres", True), (1e5, "gmres", True)],
)
def test_the_regimes_of_carson_and_higham(kappa: float, solver: str, converged: bool) -> None:
    """Factors in half, x in single: by substitution up to about 1e3 or 1e4, by GMRES beyond."""
    a, b, x = system(kappa)
    found = linalg.refine(a, b, factor="float16", working="float32", solver=solver, exact=x)
    assert found.converged == converged
    assert found.steps == len(found.nbe) - 1 == len(found.cbe) - 1 == len(found.forward) - 1
    if converged:
        assert found.forward[-1] <= 2.0**-23
        assert found.steps <= 4
    assert (len(found.inner) == found.steps) == (solver == "gmres")
    assert set(found.flags) == {"factor", "solve", "residual", "update"}
    assert found.flags["factor"] & Flags.INEXACT


def exactly(x: SoftArray) -> Any:
    return np.vectorize(Fraction, otypes=[object])(x.values)


@pytest.mark.parametrize("kind", ["even", "one small"])
def test_published_limits_of_refinement_by_substitution(kind: str) -> None:
    """Carson and Higham 2018: factors in half, 100 rows, singular values of both kinds; 1e3 converges, 1e4 does not, and GMRES does."""
    for kappa, converged in ((1e1, True), (1e2, True), (1e3, True), (1e4, False)):
        a, b, x = system(kappa, 100, kind)
        assert linalg.refine(a, b, factor="float16", working="float32", exact=x).converged == converged
    assert linalg.refine(a, b, factor="float16", working="float32", solver="gmres", exact=x).converged


def test_residuals() -> None:
    """Rounded once; as in twice the precision; in a format of its own."""
    a, b, _ = system(1e4, 12)
    x = softfloat.array(np.linalg.solve(a.values, b.values), float32)
    at = exactly(x)
    once = [s - sum(p * q for p, q in zip(row, at, strict=True)) for row, s in zip(exactly(a), exactly(b), strict=True)]
    found = _residual(a, b, x, "exact", "refine")
    np.testing.assert_array_equal(found.codes, bits.encode(once, "float32")[0])
    np.testing.assert_allclose(_residual(a, b, x, "twice", "refine").values, found.values, rtol=2.0**-20)
    plain = _residual(a, b, x, float32, "refine")
    expected = b.codes.copy()
    for j in range(12):
        products = bits.mul(bits.negative(a.codes[:, j], "float32"), x.codes[j], "float32")[0]
        expected = bits.add(expected, products, "float32")[0]
    np.testing.assert_array_equal(plain.codes, expected)


def test_a_matrix_beyond_half_is_squeezed() -> None:
    n = 12
    scales = 10.0 ** np.linspace(-8, 8, n)
    a = spread_spectrum(n, 20) * scales[:, None]
    b = a @ np.ones(n)
    lost = linalg.refine(a, b, factor="float16", working="float32")
    assert not lost.converged
    assert lost.flags["factor"] & Flags.OVERFLOW
    for solver in ("lu", "gmres"):
        found = linalg.refine(a, b, factor="float16", working="float32", squeeze=True, solver=solver)
        assert found.converged
        assert found.mu > 1


def test_tables() -> None:
    a, b, x = system(1e2)
    found = linalg.refine(a, b, factor="bfloat16", working="float32", residual="twice", exact=x, solver="gmres")
    assert str(found) == found.table()
    lines = found.table().split("\n")
    assert lines[0].split() == ["step", "inner", "forward", "nbe", "cbe"]
    assert len(lines) == found.steps + 2
    errors = (found.forward[-1], found.nbe[-1], found.cbe[-1])
    assert lines[-1].split() == [str(found.steps), str(found.inner[-1]), *(f"{x:.2e}" for x in errors)]
    short = linalg.refine(a, b, factor="float16", working="float32", residual="float32", apply="float32")
    assert short.table().split("\n")[0].split() == ["step", "nbe", "cbe"]


def test_refusals() -> None:
    a, b, _ = system(1e1, 4)
    half = softfloat.ones(4, float16)
    for call, kind, message in (
        (lambda: linalg.refine(a, b, factor="float16", working="float32", solver="cg"), ValueError, "solver must be"),
        (lambda: linalg.refine(a, b, factor="flot16", working="float32"), ValueError, "factor"),
        (
            lambda: linalg.refine(a, b, factor="float16", working="float32", residual="quad"),
            ValueError,
            "'exact', 'twice'",
        ),
        (
            lambda: linalg.refine(a, b[:2], factor="float16", working="float32"),
            ValueError,
            r"must have shapes \(n, n\)",
        ),
        (lambda: linalg.gmres(a.astype(float16), half, orthogonal="cgs"), ValueError, "orthogonal must be"),
        (
            lambda: linalg.gmres(np.ones((4, 3)), half),
            ValueError,
            r"A of softfloat\.linalg\.gmres must be a square matrix",
        ),
        (lambda: linalg.cg(lambda v: v.values, half), TypeError, r"A of softfloat\.linalg\.cg must give a SoftArray"),
        (lambda: linalg.cg(a, half, x0=[1.0]), ValueError, r"x0 of softfloat\.linalg\.cg must have the shape of b"),
        (
            lambda: linalg.cg(np.eye(4), np.ones(4)),
            TypeError,
            r"b of softfloat\.linalg\.cg must be a SoftArray, got ndarray",
        ),
        (lambda: linalg.squeeze(np.eye(2), "float16", 2.0), ValueError, "theta must be at most 1"),
        (lambda: linalg.equilibrate(np.ones((2, 3)), symmetric=True), ValueError, "must be a square matrix"),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_systems_of_no_unknowns() -> None:
    """The greatest of no residuals was asked for."""
    none, b = softfloat.zeros((0, 0), "float16"), softfloat.zeros(0, "float16")
    found = linalg.refine(none, b, factor="float16", working="float32", exact=np.zeros(0))
    assert found.x.shape == (0,)
    assert (found.converged, found.nbe, found.cbe, found.forward) == (True, [0.0], [0.0], [0.0])
    assert linalg.cg(none, b).converged
    assert linalg.gmres(none, b).converged
