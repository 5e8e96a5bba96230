"""Conjugate gradients and GMRES in one format; the matrices that they multiply by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat.arrays.creation import full_like, zeros, zeros_like
from softfloat.arrays.held import wrapped
from softfloat.arrays.softarray import SoftArray, array
from softfloat.checks import check_choice, check_count, check_real
from softfloat.engine import Codes
from softfloat.formats import Format
from softfloat.linalg.factors import LU
from softfloat.linalg.steps import Raised, Steps, check_matrix, check_soft
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
    matrix: Any = a if isinstance(a, SoftArray) and a.format == fmt else array(a, fmt)
    check_matrix(matrix, name, argument, square=True)
    return lambda v: matrix @ v


def _checked(found: Any, v: SoftArray, name: str, argument: str) -> SoftArray:
    if not isinstance(found, SoftArray) or found.format != v.format or found.shape != v.shape:
        got = f"{found.format} of shape {found.shape}" if isinstance(found, SoftArray) else type(found).__name__
        raise TypeError(f"{argument} of {name} must give a SoftArray of {v.format} and shape {v.shape}, got {got}")
    return found


def _sparse(a: Any, fmt: Format, name: str) -> Product:
    """Rows in compressed form: each the sum of its products in the order of columns, by the accumulator."""
    a = a.sorted_indices()
    steps, data = Steps(zeros(1, fmt), name), array(np.asarray(a.data, np.float64), fmt).codes
    counts, groups = np.diff(a.indptr), list[tuple[Any, Codes, Any]]()
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        places = a.indptr[rows][:, None] + np.arange(count)
        groups.append((rows, data[places], a.indices[places]))

    def times(v: SoftArray) -> SoftArray:
        found = np.zeros(a.shape[0], fmt.dtype)
        for rows, elements, columns in groups:
            found[rows] = steps.dots(elements, v.codes[columns])
        return wrapped(found, fmt)

    return times


def size_of(x: SoftArray) -> float:
    """The Euclidean norm, in float64: it says when to stop, and enters no result."""
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(np.asarray(x.values)))


class _Begun:
    """What an iteration starts from, multiplies by, and when it ends at the latest."""

    def __init__(self, name: str, A: Any, b: Any, x0: Any, M: Any, rtol: float | None, maxiter: int | None) -> None:
        if check_soft(b, name, "b").ndim != 1:
            raise ValueError(f"b of {name} must be of one axis, got shape {b.shape}")
        self.name, self.b, self.given = name, b, x0 is not None
        self.x: Any = array(x0, b.format) if self.given else zeros_like(b)
        if self.x.shape != b.shape:
            raise ValueError(f"x0 of {name} must have the shape of b, {b.shape}, got {self.x.shape}")
        self.times = product_with(A, b.format, name)
        self.by: Product = (lambda v: v) if M is None else product_with(M, b.format, name, "M")
        self.share = 2.0**-b.format.mantissa_bits if rtol is None else check_real("rtol", rtol, 0)
        self.most = 10 * b.size if maxiter is None else check_count("maxiter", maxiter)

    def residual(self) -> Any:
        """b - A x, of where it starts."""
        return self.b - self.times(self.x) if self.given else self.b


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
    with Raised() as raised:
        begun = _Begun("softfloat.linalg.cg", A, b, x0, M, rtol, maxiter)
        x, r, limit = begun.x, begun.residual(), begun.share * size_of(b)
        sizes, p, before = [size_of(r)], None, None
        while sizes[-1] > limit and len(sizes) <= begun.most:
            z = begun.by(r)
            now = r @ z
            p = z if p is None else z + full_like(p, now / before) * p
            q: Any = begun.times(p)
            across = p @ q
            if not float(across) > 0:
                break
            alpha = full_like(p, now / across)
            x, r, before = x + alpha * p, r - alpha * q, now
            sizes.append(size_of(r))
            if callback is not None:
                callback(x)
    return Solved(x, sizes[-1] <= limit, len(sizes) - 1, sizes, raised.flags)


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
    check_choice("orthogonal", orthogonal, ("mgs", "cgs2"))
    with Raised() as raised:
        begun = _Begun("softfloat.linalg.gmres", A, b, x0, M, rtol, maxiter)
        length = b.size if restart is None else check_count("restart", restart)
        x, limit, sizes = begun.x, begun.share * size_of(begun.by(b)), list[float]()
        while True:
            r = begun.by(begun.residual() if not sizes else b - begun.times(x))
            sizes = sizes or [size_of(r)]
            if not size_of(r) > limit or len(sizes) > begun.most:
                break
            x, made = _cycle(begun, x, r, min(length, begun.most + 1 - len(sizes)), limit, orthogonal)
            sizes += made
            if callback is not None:
                callback(x)
            if not made or len(made) < length or not np.isfinite(made[-1]):
                break
    return Solved(x, bool(sizes[-1] <= limit), len(sizes) - 1, sizes, raised.flags)


def _cycle(begun: _Begun, x: Any, r: Any, length: int, limit: float, orthogonal: str) -> tuple[Any, list[float]]:
    """x after at most `length` vectors, and the estimates of the residual's norm."""
    norm: Any = np.sqrt(r @ r)
    if not float(norm) > 0:
        return x, []
    basis, right, sizes = [r / full_like(r, norm)], [norm], list[float]()
    columns, turns = list[list[Any]](), list[tuple[Any, Any]]()
    for k in range(length):
        h, w = _orthogonal(begun.by(begun.times(basis[k])), basis, orthogonal, begun.name)
        below: Any = np.sqrt(w @ w)
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
        basis.append(w / full_like(w, below))
    y: list[Any] = []
    for i in reversed(range(len(columns))):
        found = right[i]
        for column, known in zip(reversed(columns), y, strict=False):
            found = found - column[i] * known
        y.append(found / columns[i][i])
    for v, by in zip(basis, reversed(y), strict=False):
        x = x + full_like(v, by) * v
    return x, sizes


def _orthogonal(w: Any, basis: list[Any], how: str, name: str) -> tuple[list[Any], Any]:
    """Coefficients, and what is left of w."""
    h: list[Any] = []
    if how == "mgs":
        for v in basis:
            h.append(w @ v)
            w = w - full_like(v, h[-1]) * v
        return h, w
    steps, rows = Steps(w, name), np.stack([v.codes for v in basis])
    total: Any = None
    for _ in range(2):
        part = steps.product(rows, w.codes[:, None])
        w = wrapped(steps.added(w.codes[:, None], steps.negated(rows.T), part)[:, 0], w.format)
        more = wrapped(part[:, 0], w.format)
        total = more if total is None else total + more
    return [*total], w
