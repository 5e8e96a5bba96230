"""NumPy's names for linear algebra: shapes, keywords, residuals, what is raised; bits are held in `test_written_out.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import written_out
from written_out import Scalars, codes_of

import softfloat
from softfloat import SoftArray, linalg
from softfloat.formats import bfloat16, float16

U = 2.0**-11
RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((6, 6))
HALF = softfloat.array(A, float16)
TALL = softfloat.array(RANDOM.standard_normal((7, 3)), float16)
STACK = softfloat.array(RANDOM.standard_normal((2, 3, 4, 4)), float16)
SINGULAR = softfloat.array([[1, 2], [2, 4]], float16)


def near(found: Any, wanted: Any, units: float) -> None:
    """Within so many u of the greatest number."""
    values = np.asarray(found.values)
    assert values.shape == np.shape(wanted)
    assert np.max(np.abs(values - wanted), initial=0.0) <= units * U * np.max(np.abs(wanted), initial=1.0)


CALLS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "solve of a vector": (lambda x: np.linalg.solve(x(HALF), x(HALF)[0]), 60),
    "solve of numbers": (lambda x: np.linalg.solve(x(HALF), x(HALF)[:, :2]), 60),
    "solve of stacks": (lambda x: np.linalg.solve(x(STACK), x(STACK)[0, 0]), 900),
    "inv": (lambda x: np.linalg.inv(x(STACK)), 900),
    "det": (lambda x: np.linalg.det(x(STACK)), 30),
    "slogdet": (lambda x: np.stack(list(np.linalg.slogdet(x(STACK)))), 60),
    "cond": (lambda x: np.linalg.cond(x(HALF)), 80),
    "cond in norm 1": (lambda x: np.linalg.cond(x(STACK), 1), 400),
    "cond, smallest first": (lambda x: np.linalg.cond(x(HALF), -2), 10),
    "norm 2": (lambda x: np.linalg.norm(x(HALF), 2), 10),
    "norm -2, kept": (lambda x: np.linalg.norm(x(STACK), -2, axis=(0, 3), keepdims=True), 10),
    "nuclear norm": (lambda x: np.linalg.norm(x(STACK), "nuc", axis=(2, 1)), 10),
    "nuclear norm of the standard": (lambda x: np.linalg.matrix_norm(x(STACK), ord="nuc"), 10),
    "negative powers": (lambda x: np.linalg.matrix_power(x(HALF), -2), 400),
    "pinv": (lambda x: np.linalg.pinv(x(TALL)), 40),
    "pinv of stacks": (lambda x: np.linalg.pinv(x(STACK)[..., :3]), 300),
    "pinv without small ones": (lambda x: np.linalg.pinv(x(HALF), 0.3), 60),
    "pinv of what is singular": (lambda x: np.linalg.pinv(x(SINGULAR)), 10),
    "lstsq": (lambda x: np.linalg.lstsq(x(TALL), x(TALL)[:, 0], None)[0], 20),
    "residuals": (lambda x: np.linalg.lstsq(x(TALL), x(HALF)[:, :1].repeat(2, 1)[[0, 1, 2, 3, 4, 5, 0]], None)[1], 20),
    "lstsq of a wide matrix": (lambda x: np.linalg.lstsq(x(TALL).T, x(TALL).T[:, :2], None)[0], 20),
    "singular values of lstsq": (lambda x: np.linalg.lstsq(x(TALL), x(TALL), None)[3], 20),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(x(STACK)), 20),
    "eigvalsh above": (lambda x: np.linalg.eigvalsh(x(HALF), "U"), 20),
    "svdvals": (lambda x: np.linalg.svd(x(TALL).T, compute_uv=False), 20),
    "tensorsolve": (lambda x: np.linalg.tensorsolve(x(HALF).reshape(2, 3, 6), x(HALF)[:2, :3]), 60),
    "tensorsolve along axes": (lambda x: np.linalg.tensorsolve(x(HALF).reshape(6, 2, 3), x(HALF)[:2, :3], [0]), 60),
    "tensorinv": (lambda x: np.linalg.tensorinv(x(HALF).reshape(2, 3, 6)), 60),
    "multi_dot": (lambda x: np.linalg.multi_dot([x(TALL)[:, 0], x(TALL), x(TALL).T, x(TALL)[:, 1]]), 20),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_numpy(name: str) -> None:
    """Shapes, and values within a multiple of u that the condition asks for."""
    call, units = CALLS[name]
    found = call(lambda x: x)
    assert isinstance(found, SoftArray)
    near(found, call(lambda x: x.values), units)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("x", [TALL, TALL.T, HALF, STACK], ids=lambda x: str(x.shape))
def test_orthogonal_factors(x: SoftArray, full: bool) -> None:
    u, s, vt = np.linalg.svd(x, full_matrices=full)
    like = np.linalg.svd(x.values, full_matrices=full)
    assert [y.shape for y in (u, s, vt)] == [y.shape for y in like]
    k = s.shape[-1]
    near(wrapped_product(u.values[..., :k] * s.values[..., None, :], vt.values[..., :k, :]), x.values, 30)
    q, r = np.linalg.qr(x, "complete" if full else "reduced")
    assert [y.shape for y in (q, r)] == [y.shape for y in np.linalg.qr(x.values, "complete" if full else "reduced")]
    near(wrapped_product(q.values, r.values), x.values, 12)
    np.testing.assert_array_equal(np.linalg.qr(x, "r").codes, r.codes[..., : min(x.shape[-2:]), :])
    for y in (u, q, np.swapaxes(vt, -1, -2)):
        near(
            wrapped_product(np.swapaxes(y.values, -1, -2), y.values),
            np.broadcast_to(np.eye(y.shape[-1]), y.shape[:-2] + (y.shape[-1],) * 2),
            24,
        )


class wrapped_product:
    """A product in float64, where an array is looked for."""

    def __init__(self, x: Any, y: Any) -> None:
        self.values = x @ y


def test_eigenvectors() -> None:
    for uplo in ("L", "U", "l"):
        w, v = np.linalg.eigh(HALF, uplo)
        low = np.tril(HALF.values) if uplo != "U" else np.triu(HALF.values).T
        whole = low + np.tril(low, -1).T
        near(wrapped_product(v.values * w.values, v.values.T), whole, 30)
        near(w, np.linalg.eigvalsh(whole), 20)
    with pytest.raises(ValueError, match="UPLO must be 'L' or 'U', got 'x'"):
        np.linalg.eigh(HALF, "x")


def test_cholesky_of_either_half() -> None:
    s = softfloat.array(A @ A.T / 6 + np.eye(6), float16)
    low = np.linalg.cholesky(s)
    np.testing.assert_array_equal(np.linalg.cholesky(s, upper=True).codes, low.codes.T)
    above = softfloat.array(np.triu(s.values), float16)
    np.testing.assert_array_equal(np.linalg.cholesky(above, upper=True).codes, low.codes.T)
    with pytest.raises(np.linalg.LinAlgError, match=r"element 1 of the diagonal has become -3\.0"):
        np.linalg.cholesky(softfloat.array([[1, 2], [2, 1]], float16))
    n = 70
    broken = np.eye(n)
    broken[66, 66] = 0
    with pytest.raises(np.linalg.LinAlgError, match=r"element 66 of the diagonal has become 0\.0"):
        np.linalg.cholesky(softfloat.array(broken, float16))


def test_ranks() -> None:
    assert np.linalg.matrix_rank(SINGULAR) == 1
    assert np.linalg.matrix_rank(HALF) == 6
    assert np.linalg.matrix_rank(HALF, 1e9) == 0
    assert np.linalg.matrix_rank(HALF, rtol=0.5) == np.linalg.matrix_rank(HALF.values, rtol=0.5)
    assert np.linalg.matrix_rank(STACK).tolist() == [[4] * 3] * 2
    assert (np.linalg.matrix_rank(HALF[0]), np.linalg.matrix_rank(HALF[0] * 0)) == (1, 0)
    u, s, vt = np.linalg.svd(softfloat.zeros((3, 2), float16))
    assert s.tolist() == [0, 0]
    np.testing.assert_array_equal(np.abs(u.values), np.eye(3))
    np.testing.assert_array_equal(vt.values, np.eye(2))


def test_what_is_singular() -> None:
    for call in (lambda: np.linalg.solve(SINGULAR, SINGULAR), lambda: np.linalg.inv(SINGULAR)):
        with pytest.raises(np.linalg.LinAlgError, match=r"^Singular matrix: a pivot is zero; softfloat\.linalg\.lu"):
            call()
    with pytest.raises(
        np.linalg.LinAlgError, match=r"full rank 2, got 1, of singular values up to 5\.0; accepted: numpy\.linalg\.pinv"
    ):
        np.linalg.lstsq(SINGULAR, SINGULAR[0])
    assert float(np.linalg.det(SINGULAR)) == 0
    assert [float(x) for x in np.linalg.slogdet(SINGULAR)] == [0, -math.inf]
    assert float(np.linalg.cond(SINGULAR, 1)) == math.inf
    with softfloat.environment() as env:
        x = linalg.lu(SINGULAR).solve([1, 1])
    assert not np.isfinite(x.values).any()
    assert "DIVBYZERO" in str(env.status.flags)


def test_nothing_is_scaled() -> None:
    """Squares beyond the format overflow, as they do in it; the same matrix in bfloat16 does not."""
    large = np.full((2, 2), 300.0) + np.eye(2)
    with softfloat.environment() as env:
        assert not np.isfinite(np.linalg.qr(softfloat.array(large, float16)).Q.values).all()
    assert "OVERFLOW" in str(env.status.flags)
    assert np.isfinite(np.linalg.qr(softfloat.array(large, bfloat16)).Q.values).all()


def test_traps_are_raised_in_the_middle() -> None:
    large = softfloat.array(np.full((3, 3), 300.0) + np.eye(3), float16)
    with softfloat.environment(traps="OVERFLOW") as env, pytest.raises(softfloat.FloatingPointTrap, match=r"^OVERFLOW"):
        np.linalg.qr(large)
    assert "OVERFLOW" in str(env.status.flags)
    with softfloat.environment(traps="DIVBYZERO"):
        np.testing.assert_array_equal(linalg.lu(HALF).lu.codes, linalg.lu(HALF.copy()).lu.codes)


def test_stacks_are_their_matrices() -> None:
    for function in (
        np.linalg.inv,
        np.linalg.det,
        lambda x: np.linalg.qr(x).R,
        lambda x: np.linalg.eigh(x).eigenvectors,
    ):
        found = function(STACK)
        for i in np.ndindex(2, 3):
            np.testing.assert_array_equal(found[i].codes, function(STACK[i]).codes)
    empty = softfloat.zeros((0, 3, 3), float16)
    assert np.linalg.inv(empty).shape == (0, 3, 3)
    assert np.linalg.svd(empty).S.shape == (0, 3)


def test_sums_are_the_accumulators() -> None:
    """Residuals are smaller where sums are exact."""
    a = softfloat.array(np.random.default_rng(1).standard_normal((64, 64)), float16)
    errors = []
    for how in (None, softfloat.accumulators.exact("float16")):
        with softfloat.environment(accumulator=how):
            errors.append(linalg.lu(a).backward_error(a))
    assert errors[1] < errors[0] / 2


BEYOND = softfloat.from_codes(
    [[64, 64], [64, 72]], softfloat.Format("beyond", exponent_bits=5, mantissa_bits=3, bias=40)
)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "vectors": (lambda: np.linalg.inv(HALF[0]), np.linalg.LinAlgError, "inv needs square matrices"),
    "oblong": (lambda: np.linalg.det(TALL), np.linalg.LinAlgError, "det needs square matrices in the last two axes"),
    "shapes": (lambda: np.linalg.solve(HALF, TALL), ValueError, r"shapes of numpy.linalg.solve do not fit: \(6, 6\)"),
    "formats": (lambda: np.linalg.solve(HALF, TALL.astype(bfloat16)), TypeError, "format bfloat16 that does not match"),
    "raw": (lambda: np.linalg.qr(HALF, "raw"), ValueError, "has no mode='raw'; accepted: 'reduced', 'complete', 'r'"),
    "hermitian": (lambda: np.linalg.svd(HALF, hermitian=True), TypeError, "takes no hermitian="),
    "hermitian rank": (lambda: np.linalg.matrix_rank(HALF, hermitian=True), TypeError, "takes no hermitian="),
    "hermitian pinv": (lambda: np.linalg.pinv(HALF, hermitian=True), TypeError, "takes no hermitian="),
    "unsigned": (lambda: np.linalg.inv(softfloat.ones((1, 1), "float8_e8m0fnu")), TypeError, "zero and negative numbers"),
    "one factor": (lambda: np.linalg.multi_dot([HALF]), ValueError, "at least two arrays, got 1"),
    "powers": (lambda: np.linalg.matrix_power(TALL, -1), np.linalg.LinAlgError, "takes square matrices"),
    "tensors": (lambda: np.linalg.tensorinv(HALF, 0), ValueError, "ind of numpy.linalg.tensorinv must be positive"),
    "pivot": (lambda: linalg.lu(HALF, pivot="some"), ValueError, "pivot must be"),
    "block": (lambda: linalg.lu(HALF, block=0), ValueError, "block must be at least 1, got 0"),
    "accumulator": (lambda: linalg.lu(HALF, accumulator="fma"), TypeError, "accumulator must be a softfloat.Accumulator"),
    "arrays": (lambda: linalg.lu(A), TypeError, r"a of softfloat\.linalg\.lu must be a SoftArray, got ndarray"),
    "name of NumPy": (lambda: linalg.qr(HALF), AttributeError, r"has no 'qr'; numpy\.linalg\.qr takes SoftArrays"),
    "no name": (lambda: linalg.hilb(3), AttributeError, r"softfloat\.linalg has no 'hilb'$"),
    "identity": (lambda: np.linalg.inv(BEYOND), ValueError, r"numpy\.linalg\.inv needs a 1, and beyond has none"),
    "reflectors": (lambda: np.linalg.qr(BEYOND), ValueError, r"numpy\.linalg\.qr needs a 1, and beyond has none"),
    "rotations": (lambda: np.linalg.eigvalsh(BEYOND), ValueError, r"numpy\.linalg\.eigvalsh needs a 1, and beyond has none"),
    "no powers": (lambda: np.linalg.matrix_power(BEYOND, 0), ValueError, r"numpy\.linalg\.matrix_power needs a 1, and beyond has none"),
    "empty": (lambda: np.linalg.cond(HALF[:0]), np.linalg.LinAlgError, r"numpy\.linalg\.cond of no elements, shape \(0, 6\)"),
    "position": (lambda: _placed(), ValueError, "takes no block of a larger array"),
}  # fmt: skip


def test_accumulators_of_a_call_are_taken_as_environments_take_them() -> None:
    with softfloat.environment(accumulator=softfloat.accumulators.exact):
        wanted = linalg.lu(HALF).lu
    for how in (softfloat.accumulators.exact, softfloat.accumulators.exact("float16")):
        assert np.array_equal(linalg.lu(HALF, accumulator=how).lu.codes, wanted.codes)


def _placed() -> Any:
    with softfloat.environment(position=softfloat.Position((0, 0), (12, 12))):
        return np.linalg.inv(HALF)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


def test_the_standards_names() -> None:
    xp: Any = softfloat.array_namespace("float16")
    q, r = xp.linalg.qr(HALF)
    np.testing.assert_array_equal(q.codes, np.linalg.qr(HALF).Q.codes)
    assert [*xp.linalg.slogdet(HALF)._fields] == ["sign", "logabsdet"]
    assert [*xp.linalg.eigh(HALF)._fields] == ["eigenvalues", "eigenvectors"]
    assert [*xp.linalg.svd(HALF)._fields] == ["U", "S", "Vh"]
    assert [*xp.linalg.qr(HALF)._fields] == ["Q", "R"]
    near(wrapped_product(q.values, r.values), HALF.values, 12)


# -- bounds ------------------------------------------------------------------------------------------------------------


def gamma(n: int) -> float:
    return n * U / (1 - n * U)


def hilbert(n: int) -> Any:
    return 1.0 / (1 + np.add.outer(np.arange(n), np.arange(n)))


def kahan(n: int, angle: float = 1.2) -> Any:
    upper = np.eye(n) - math.cos(angle) * np.triu(np.ones((n, n)), 1)
    return math.sin(angle) ** np.arange(n)[:, None] * upper


def of_spectrum(n: int, kappa: float) -> Any:
    u, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))
    v, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((n, n)))
    return (u * kappa ** -np.linspace(0, 1, n)) @ v


MATRICES = {
    "normal": A,
    "hilbert": hilbert(6),
    "lehmer": np.minimum.outer(np.arange(1, 9), np.arange(1, 9)) / np.maximum.outer(np.arange(1, 9), np.arange(1, 9)),
    "wilkinson": np.tril(-np.ones((10, 10)), -1) + np.eye(10) + np.outer(np.ones(10), np.arange(10) == 9) * (np.arange(10) != 9)[:, None],
    "graded": A * 2.0 ** -np.arange(6)[:, None],
    "kahan": kahan(12),
    "spectrum": of_spectrum(20, 1e3),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_residuals_are_within_gamma(name: str) -> None:
    """Higham, Accuracy and Stability, theorems 9.3, 8.5, 10.3 and 19.4: by elements, of QR by columns."""
    a = softfloat.array(MATRICES[name], float16)
    n = len(a)
    q, r = (x.values for x in np.linalg.qr(a))
    assert np.all(np.linalg.norm(q @ r - a.values, axis=0) <= 2 * n * n * U * np.linalg.norm(a.values, axis=0))
    found = linalg.lu(a)
    assert found.backward_error(a) <= gamma(n)
    b = softfloat.array(np.arange(1.0, n + 1), float16)
    x = linalg.solve_triangular(found.u, b)
    u, v = found.u.values, x.values
    if np.isfinite(v).all():
        tiny = n * 2.0**-25 * (1 + np.abs(np.diag(u)))
        assert np.all(np.abs(u @ v - b.values) <= gamma(n) * np.abs(u) @ np.abs(v) + tiny)
    if name == "wilkinson":
        assert found.growth == 2.0 ** (n - 1)
    if name in ("lehmer",):
        low = np.linalg.cholesky(a).values
        assert np.all(np.abs(low @ low.T - a.values) <= gamma(n + 1) * np.abs(low) @ np.abs(low.T))


@pytest.mark.parametrize("name", [name for name in MATRICES if name != "kahan"])
def test_float64_is_near_numpys(name: str) -> None:
    """Of 53 bits, other orders of sums and other steps: within the condition times gamma."""
    a = MATRICES[name]
    x, n = softfloat.array(a, "float64"), len(a)
    share = 8 * n * np.linalg.cond(a) * 2.0**-53
    for found, wanted in (
        (np.linalg.solve(x, softfloat.array(a.sum(1), "float64")), np.ones(n)),
        (np.linalg.inv(x), np.linalg.inv(a)),
        (abs(np.linalg.qr(x).R), abs(np.linalg.qr(a).R)),
        (np.linalg.svdvals(x), np.linalg.svdvals(a)),
        (np.linalg.eigvalsh(x + x.T), np.linalg.eigvalsh(a + a.T)),
    ):
        assert found.format.name == "float64"
        assert np.max(np.abs(found.values - wanted)) <= share * np.max(np.abs(wanted))


def test_ldl_of_indefinite_matrices() -> None:
    for seed, n in ((0, 1), (1, 2), (2, 7), (3, 20)):
        x = np.random.default_rng(seed).standard_normal((n, n))
        x[np.diag_indices(n)] = 0
        a = softfloat.array(x + x.T, float16)
        with softfloat.environment() as env:
            found = linalg.ldl(a)
        assert env.status.flags == found.flags
        low, d = found.l.values, found.d.values
        wanted = a.values[found.rows][:, found.rows]
        bound = 20 * n * U * (np.abs(wanted) + np.abs(low) @ np.abs(d) @ np.abs(low.T))
        assert np.all(np.abs(low @ d @ low.T - wanted) <= bound)
        np.testing.assert_array_equal(d, d.T)
        assert np.all(np.triu(d, 2) == 0)
    two = softfloat.array([[0, 1], [1, 0]], float16)  # a block of two rows, and nothing rounded
    assert linalg.ldl(two).d.tolist() == two.tolist()


def test_a_product_written_out_is_what_ldl_divides_by() -> None:
    """Where every pivot is one element, LDL has the elements of LU without exchanges below the diagonal."""
    a = softfloat.array([[8, 1, 2], [1, 9, 3], [2, 3, 10]], float16)
    found, (factors, _, _) = linalg.ldl(a), written_out.lu(codes_of(a), Scalars(float16), "none")
    np.testing.assert_array_equal(np.tril(found.l.codes, -1), np.tril(np.array(factors), -1))
    np.testing.assert_array_equal(np.diag(found.d.codes), np.diag(np.array(factors)))
