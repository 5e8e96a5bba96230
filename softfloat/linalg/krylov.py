"""Conjugate gradients and GMRES in one format; the matrices that they multiply by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat.arrays.creation import zeros
from softfloat.arrays.held import wrapped
from softfloat.arrays.softarray import SoftArray, array
from softfloat.checks import check_choice, check_count, check_kind, check_real
from softfloat.engine import Codes
from softfloat.formats import Format
from softfloat.linalg.factors import LU
from softfloat.linalg.steps import Raised, Steps, check_matrix
from softfloat.status import Flags

__all__ = ["Solved", "cg", "gmres"]

Product = Callable[[SoftArray], SoftArray]


@dataclass(frozen=True, eq=False)
class Solved:
    """What an iteration found.

    Attributes
    ----------
    x : SoftArray
    converged : bool
        Whether the last residual is at most rtol times the norm of b.
    iterations : int
    residuals : list of float
        Norms of the residual that the iteration carries along, the first before it: of GMRES the estimate, preconditioned.
    flags : Flags
        What it raised.
    """

    x: SoftArray
    converged: bool
    iterations: int
    residuals: list[float]
    flags: Flags


# -- operands ------------------------------------------------------------------------------------------------------------


def product_with(a: Any, fmt: Format, name: str, argument: str = "A") -> Product:
    """v -> a v in a format, of a matrix of any kind that is rounded into it, factors that are applied, or a function."""
    if isinstance(a, LU):
        return a.solve
    if hasattr(a, "tocsr") and hasattr(a, "nnz"):
        return _sparse(a.tocsr(), fmt, name)
    if callable(a):
        return lambda v: _checked(a(v), v, name, argument)
    matrix = a if isinstance(a, SoftArray) and a.format == fmt else array(a, fmt)
    check_matrix(matrix, name, argument, square=True)
    steps = Steps(matrix, name)
    return lambda v: wrapped(steps.product(matrix.codes, v.codes[:, None])[:, 0], fmt)


def _checked(found: Any, v: SoftArray, name: str, argument: str) -> SoftArray:
    if not isinstance(found, SoftArray) or found.format != v.format or found.shape != v.shape:
        got = f"{found.format} of shape {found.shape}" if isinstance(found, SoftArray) else type(found).__name__
        raise TypeError(f"{argument} of {name} must give a SoftArray of {v.format} and shape {v.shape}, got {got}")
    return found


def _sparse(a: Any, fmt: Format, name: str) -> Product:
    """Rows in compressed form: each the sum of its products in the order of columns, by the accumulator."""
    a = a.sorted_indices()
    steps = Steps(zeros(1, fmt), name)
    data = array(np.asarray(a.data, np.float64), fmt).codes
    counts = np.diff(a.indptr)
    groups: list[tuple[Any, Codes, Any]] = []
    for count in np.unique(counts).tolist():
        rows = np.nonzero(counts == count)[0]
        places = a.indptr[rows][:, None] + np.arange(count)
        groups.append((rows, data[places], a.indices[places]))

    def times(v: SoftArray) -> SoftArray:
        found = np.zeros(a.shape[0], fmt.dtype)
        for rows, elements, columns in groups:
            found[rows] = steps.dots(elements, v.codes[columns])
        return wrapped(found, fmt)

    return times


def _begun(b: Any, x0: Any, name: str) -> tuple[SoftArray, SoftArray]:
    """b, and where the iteration starts."""
    check_kind("b", b, SoftArray)
    if b.ndim != 1:
        raise ValueError(f"b of {name} must be of one axis, got shape {b.shape}")
    if x0 is None:
        return b, zeros(b.shape, b.format)
    x = array(x0, b.format)
    if x.shape != b.shape:
        raise ValueError(f"x0 of {name} must have the shape of b, {b.shape}, got {x.shape}")
    return b, x


def size_of(x: SoftArray) -> float:
    """The Euclidean norm, in float64: it says when to stop, and enters no result."""
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(np.asarray(x.values)))


def _limits(b: SoftArray, rtol: float | None, maxiter: int | None) -> tuple[float, int]:
    """The norm at which an iteration stops, and its length at most."""
    share = 2.0**-b.format.mantissa_bits if rtol is None else check_real("rtol", rtol, 0)
    return share * size_of(b), 10 * b.size if maxiter is None else check_count("maxiter", maxiter)


class _Vectors:
    """Dot products by the accumulator, and steps along a vector, elementwise."""

    def __init__(self, b: SoftArray, name: str) -> None:
        self.steps, self.fmt = Steps(b, name), b.format

    def dot(self, x: SoftArray, y: SoftArray) -> SoftArray:
        return wrapped(self.steps.product(x.codes[None], y.codes[:, None])[0, 0], self.fmt)

    def scaled(self, x: SoftArray, by: SoftArray) -> SoftArray:
        return wrapped(np.full(x.shape, by.codes), self.fmt) * x


# -- conjugate gradients ---------------------------------------------------------------------------------------------------


def cg(
    A: Any,
    b: SoftArray,
    *,
    x0: Any = None,
    M: Any = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    callback: Callable[[SoftArray], Any] | None = None,
) -> Solved:
    """x of A x = b for a symmetric positive definite A, by conjugate gradients (Hestenes and Stiefel), every operation in b's format.

    alpha = (r · z) / (p · q) with q = A p; x + alpha p, r - alpha q; beta = (r · z) / (r · z before); z + beta p.
    Each is a product and a sum, rounded both; dot products are sums by the environment's accumulator.

    Parameters
    ----------
    A : SoftArray, array of float64, SciPy sparse matrix or array, or callable
        Numbers are rounded into b's format; a sparse row is the sum of its products in the order of columns. A callable makes a
        SoftArray of one.
    b : SoftArray
        Of shape (n,).
    x0 : array_like, optional
        Where to start; default 0.
    M : as A, or `LU`, optional
        What a residual is multiplied by: an approximate inverse; of factors, their `solve`.
    rtol : float, optional
        Stop when the norm of the residual that is carried along is at most that share of b's: decided in float64. Default the epsilon
        of the format.
    maxiter : int, optional
        Default 10 n.
    callback : callable, optional
        Called with x after every iteration.

    Returns
    -------
    Solved
        Not `converged` also where p · q is not positive: A is not definite, or is no longer in this format.

    Source
    ------
    Hestenes and Stiefel 1952; the form of Barrett et al., Templates, 2.3.1.
    """
    name = "softfloat.linalg.cg"
    b, x = _begun(b, x0, name)
    with Raised() as raised:
        times, by, vectors = product_with(A, b.format, name), _preconditioner(M, b, name), _Vectors(b, name)
        limit, most = _limits(b, rtol, maxiter)
        r = b if x0 is None else b - times(x)
        sizes, p, before = [size_of(r)], None, None
        while sizes[-1] > limit and len(sizes) <= most:
            z = by(r)
            now = vectors.dot(r, z)
            p = z if p is None else z + vectors.scaled(p, now / before)
            q = times(p)
            across = vectors.dot(p, q)
            if not float(across) > 0:
                break
            alpha = now / across
            x, r, before = x + vectors.scaled(p, alpha), r - vectors.scaled(q, alpha), now
            sizes.append(size_of(r))
            if callback is not None:
                callback(x)
    return Solved(x, sizes[-1] <= limit, len(sizes) - 1, sizes, raised.flags)


def _preconditioner(M: Any, b: SoftArray, name: str) -> Product:
    return (lambda v: v) if M is None else product_with(M, b.format, name, "M")


# -- GMRES -----------------------------------------------------------------------------------------------------------------


def gmres(
    A: Any,
    b: SoftArray,
    *,
    x0: Any = None,
    M: Any = None,
    restart: int | None = None,
    orthogonal: str = "mgs",
    rtol: float | None = None,
    maxiter: int | None = None,
    callback: Callable[[SoftArray], Any] | None = None,
) -> Solved:
    """x of A x = b by GMRES, preconditioned from the left, every operation in b's format.

    Arnoldi's vectors w = M (A v) are made orthogonal to those before, h = w · v and w - h v, and divided by their norms; rotations
    c = f / r, s = g / r with r = sqrt(f² + g²) make the Hessenberg matrix triangular as it grows; back substitution gives y, and x + y_1 v_1 + ...

    Parameters
    ----------
    A, b, x0, M, rtol, maxiter, callback
        As `cg` takes them; rtol is of the preconditioned residual, as GMRES estimates it, and of M b. `callback` is called at the end of
        each cycle. Default of `maxiter` 10 n.
    restart : int, optional
        Vectors of a cycle; default n.
    orthogonal : {"mgs", "cgs2"}
        One vector after the other (modified Gram-Schmidt), or all at once, twice (classical, as matrix products by the accumulator).

    Returns
    -------
    Solved

    Source
    ------
    Saad and Schultz 1986; the form of Barrett et al., Templates, 2.3.4.
    """
    name = "softfloat.linalg.gmres"
    b, x = _begun(b, x0, name)
    check_choice("orthogonal", orthogonal, ("mgs", "cgs2"))
    length = b.size if restart is None else check_count("restart", restart)
    with Raised() as raised:
        times, by, vectors = product_with(A, b.format, name), _preconditioner(M, b, name), _Vectors(b, name)
        _, most = _limits(b, rtol, maxiter)
        limit, _ = _limits(by(b), rtol, maxiter)
        sizes: list[float] = []
        while True:
            r = by(b if x0 is None and not sizes else b - times(x))
            sizes = sizes or [size_of(r)]
            if not size_of(r) > limit or len(sizes) > most:
                break
            x, made = _cycle(
                lambda v: by(times(v)), x, r, min(length, most + 1 - len(sizes)), limit, orthogonal, vectors
            )
            sizes += made
            if callback is not None:
                callback(x)
            if not made or len(made) < length or not np.isfinite(made[-1]):
                break
    return Solved(x, bool(sizes[-1] <= limit), len(sizes) - 1, sizes, raised.flags)


def _cycle(
    step: Product, x: SoftArray, r: SoftArray, length: int, limit: float, orthogonal: str, vectors: _Vectors
) -> tuple[SoftArray, list[float]]:
    """x after at most `length` vectors, and the estimates of the residual's norm."""
    steps, fmt = vectors.steps, vectors.fmt
    norm: Any = np.sqrt(vectors.dot(r, r))
    if not float(norm) > 0:
        return x, []
    basis = [wrapped(steps.divided(r.codes, norm.codes), fmt)]
    right, sizes = [norm], list[float]()
    columns, turns = list[list[Any]](), list[tuple[Any, Any]]()
    for k in range(length):
        w = step(basis[k])
        column = _orthogonal(w, basis, orthogonal, vectors)
        w, h = column.pop(), [*column]
        below: Any = np.sqrt(vectors.dot(w, w))
        for i, (c, s) in enumerate(turns):
            h[i], h[i + 1] = c * h[i] + s * h[i + 1], c * h[i + 1] - s * h[i]
        root = np.sqrt(h[k] * h[k] + below * below)
        c, s = h[k] / root, below / root
        turns.append((c, s))
        columns.append([*h[:k], root])
        right[k:] = [c * right[k], -s * right[k]]
        sizes.append(abs(float(right[k + 1])))
        if not sizes[-1] > limit or not float(below) > 0:
            break
        basis.append(wrapped(steps.divided(w.codes, below.codes), fmt))
    y: list[Any] = []
    for i in reversed(range(len(columns))):
        found = right[i]
        for j, known in enumerate(y):
            found = found - columns[len(columns) - 1 - j][i] * known
        y.append(found / columns[i][i])
    for v, by in zip(basis, reversed(y), strict=False):
        x = x + vectors.scaled(v, by)
    return x, sizes


def _orthogonal(w: SoftArray, basis: list[SoftArray], how: str, vectors: _Vectors) -> list[Any]:
    """Coefficients, and what is left of w."""
    if how == "mgs":
        h: list[Any] = []
        for v in basis:
            h.append(vectors.dot(w, v))
            w = w - vectors.scaled(v, h[-1])
        return [*h, w]
    steps, fmt = vectors.steps, vectors.fmt
    rows, total = np.stack([v.codes for v in basis]), None
    for _ in range(2):
        part = steps.product(rows, w.codes[:, None])
        w = wrapped(steps.added(w.codes[:, None], steps.negated(rows.T), part)[:, 0], fmt)
        total = wrapped(part[:, 0], fmt) if total is None else total + wrapped(part[:, 0], fmt)
    return [*(total if total is not None else ()), w]
