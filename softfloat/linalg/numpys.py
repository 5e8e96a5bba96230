"""NumPy's linear algebra on SoftArrays: `numpy.linalg`, every step rounded into the format, and stacks of matrices one after the other."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.creation import zeros
from softfloat.arrays.handlers import (
    ABSENT,
    as_soft,
    implements,
    keeping,
    laid_out,
    named,
    paired,
    placed,
    refuse,
    restored,
    truth,
)
from softfloat.arrays.held import evaluated, wrapped
from softfloat.arrays.operands import common_format, one_of
from softfloat.arrays.order import max_, min_
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import dots_of, prod, sum_
from softfloat.engine import Codes
from softfloat.linalg import factors, rotations
from softfloat.linalg.steps import Steps, identity, mirrored, read

generic: Any = np  # NumPy's functions, called on SoftArrays: their signatures know arrays alone


QRResult = namedtuple("QRResult", "Q R")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
SVDResult = namedtuple("SVDResult", "U S Vh")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")
"""Of SoftArrays, with NumPy's names."""


# -- stacks ------------------------------------------------------------------------------------------------------------


def _each(function: Callable[..., Any], name: str, a: SoftArray, *others: Any, square: bool = False) -> Any:
    """function(codes of a matrix, steps, matrices of others) of every matrix in the last two axes, in C order."""
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise np.linalg.LinAlgError(
            f"numpy.linalg.{name} needs {'square ' * square}matrices in the last two axes, got shape {a.shape}"
        )
    steps = Steps(a, f"numpy.linalg.{name}")
    batch = np.broadcast_shapes(a.shape[:-2], *(x.shape[:-2] for x in others))
    count, stacks = math.prod(batch), [np.broadcast_to(read(x), batch + x.shape[-2:]) for x in (a, *others)]
    stacks = [x.reshape(count, *x.shape[-2:]) for x in stacks]
    if not count:  # one, for the shapes of the results
        stacks = [identity(x.shape[-2], steps, x.shape[-1])[None] for x in stacks]
    found = [function(first, steps, *rest) for first, *rest in zip(*stacks, strict=True)]
    made = [np.stack(x)[:count].reshape(batch + np.shape(x[0])) for x in zip(*found, strict=True)]
    return [wrapped(x, a.format) if x.dtype == a.codes.dtype else x for x in made]


def _factored(a: Codes, steps: Steps) -> tuple[Codes, Any]:
    """LU factors with partial pivoting, and the order of rows."""
    codes = a.copy()
    return codes, factors.factor(codes, steps)[0]


def _solved(a: Codes, steps: Steps, b: Codes) -> tuple[Codes]:
    codes, rows = _factored(a, steps)
    if np.any(steps.magnitudes(np.diag(codes)) == 0):
        raise np.linalg.LinAlgError("Singular matrix: a pivot is zero; softfloat.linalg.lu(a).solve(b) divides by it")
    return (factors.solved(codes, rows, b, steps),)


# -- systems, inverses, determinants -------------------------------------------------------------------------------------


@implements(np.linalg.solve, mixed=True)
def solve(a: Any, b: Any) -> SoftArray:
    """x of a x = b: LU with partial pivoting, forward and back substitution, as `softfloat.linalg` has them."""
    x, y, _ = paired("linalg.solve", a, b)
    vector = y.ndim == 1
    right = y[:, None] if vector else y
    if x.ndim > 1 and right.ndim > 1 and x.shape[-1] != right.shape[-2]:
        raise ValueError(f"shapes of numpy.linalg.solve do not fit: {x.shape} and {y.shape}")
    (found,) = _each(_solved, "solve", x, right, square=True)
    return found[..., 0] if vector else found


@implements(np.linalg.inv)
def inv(a: SoftArray) -> SoftArray:
    """The solution of a x = 1, column by column."""
    return _each(lambda x, steps: _solved(x, steps, identity(len(x), steps)), "inv", a, square=True)[0]


def _diagonal(x: Codes, steps: Steps) -> tuple[Codes, Codes]:
    """Of U, and the sign of the exchanges."""
    codes, rows = _factored(x, steps)
    return np.diag(codes).copy(), np.asarray(1 if factors.even(rows) else -1, np.int8)


@implements(np.linalg.det)
def det(a: SoftArray) -> SoftArray:
    """The product of the pivots in their order, each step rounded; negated where an odd number of rows was exchanged."""
    pivots, signs = _each(_diagonal, "det", a, square=True)
    found = prod(pivots, -1)
    return generic.where(signs < 0, -found, found)


@implements(np.linalg.slogdet)
def slogdet(a: SoftArray) -> SlogdetResult:
    """The sign, and the sum of the logarithms of the pivots' magnitudes, each rounded; 0 and -inf of a singular matrix."""
    pivots, signs = _each(_diagonal, "slogdet", a, square=True)
    sign = prod(generic.sign(pivots), -1)
    return SlogdetResult(generic.where(signs < 0, -sign, sign), sum_(np.log(np.abs(pivots)), -1))


@implements(np.linalg.cholesky)
def cholesky(a: SoftArray, /, *, upper: bool = False) -> SoftArray:
    """L of a = L Lᵀ, of what lies on and below the diagonal; its transpose of what lies on and above, if `upper`."""

    def root(x: Codes, steps: Steps) -> tuple[Codes]:
        codes = np.array(x.T if upper else x)
        factors.factor(codes, steps, "root")
        found = np.tril(codes)
        return (found.T if upper else found,)

    return _each(root, "cholesky", a, square=True)[0]


@implements(np.linalg.tensorsolve, mixed=True)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> SoftArray:
    """`solve` of arrays whose axes are the rows and the columns."""
    x, y, _ = paired("linalg.tensorsolve", a, b)
    if axes is not None:
        x = generic.transpose(x, [i for i in range(x.ndim) if i not in axes] + list(axes))
    shape = x.shape[y.ndim :]
    if x.size != math.prod(shape) ** 2 or y.size != math.prod(shape):
        raise np.linalg.LinAlgError(f"numpy.linalg.tensorsolve needs as many rows as columns, got {x.shape}, {y.shape}")
    return solve(x.reshape(y.size, y.size), y.reshape(-1)).reshape(shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: SoftArray, ind: int = 2) -> SoftArray:
    """`inv` of an array whose first axes are the rows."""
    if ind <= 0:
        raise ValueError(f"ind of numpy.linalg.tensorinv must be positive, got {ind}")
    shape = a.shape[ind:] + a.shape[:ind]
    return inv(a.reshape(math.prod(a.shape[:ind]), -1)).reshape(shape)


# -- products ------------------------------------------------------------------------------------------------------------


@implements(np.linalg.matrix_power)
def matrix_power(a: SoftArray, n: int) -> SoftArray:
    """Products of a matrix with itself, or of its inverse: by repeated squaring, as NumPy does, each rounded as `matmul` rounds."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"numpy.linalg.matrix_power takes square matrices, got shape {a.shape}")
    if n < 0:
        a, n = inv(a), -n
    if not n:
        unit = zeros((a.shape[-1],) * 2, a.format)
        np.fill_diagonal(unit.codes, one_of(a.format, "numpy.linalg.matrix_power"))
        return generic.broadcast_to(unit, a.shape).copy()
    if n == 3:
        return (a @ a) @ a
    power, result = a, None
    while n:
        if n & 1:
            result = power.copy() if result is None else result @ power
        n >>= 1
        power = power @ power if n else power
    return as_soft(result, a.format, "matrix_power")


@implements(np.linalg.multi_dot, mixed=True)
def multi_dot(arrays: Any, *, out: Any = None) -> SoftArray:
    """A product of matrices, in the order that multiplies least, the first of several; vectors may stand at both ends."""
    fmt = common_format(arrays, "linalg.multi_dot")
    parts = [as_soft(x, fmt, "linalg.multi_dot") for x in arrays]
    if len(parts) < 2:
        raise ValueError(f"numpy.linalg.multi_dot takes at least two arrays, got {len(parts)}")
    first, last = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = parts[0][None] if first else parts[0]
    parts[-1] = parts[-1][:, None] if last else parts[-1]
    if any(x.ndim != 2 for x in parts):
        raise np.linalg.LinAlgError("numpy.linalg.multi_dot takes matrices, and vectors at both ends")
    sizes = [len(parts[0]), *(x.shape[1] for x in parts)]
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(parts))}
    for length in range(1, len(parts)):
        for i in range(len(parts) - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    if len(parts) == 3:  # where both orders cost the same, NumPy multiplies the last two first
        left = sizes[0] * sizes[2] * (sizes[1] + sizes[3])
        best[0, 2] = 0, 1 if left < sizes[1] * sizes[3] * (sizes[0] + sizes[2]) else 0

    def product(i: int, j: int) -> Any:
        k = best[i, j][1]
        return parts[i] if i == j else product(i, k) @ product(k + 1, j)

    found = product(0, len(parts) - 1)
    found = found[0] if first else found
    return placed(found[..., 0] if last else found, out, "linalg.multi_dot")


# -- norms ------------------------------------------------------------------------------------------


@implements(np.linalg.norm)
def norm(x: SoftArray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> SoftArray:
    """Norms of vectors and matrices; sums of absolute values and dot products as `sum` and `dot` round them."""
    axes = range(x.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    if ord is None:
        return _vector_norm(x, 2, axis, keepdims)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"numpy.linalg.norm with ord= is of one axis or of two, got {len(axes)}")
    if ord == "fro":
        return _vector_norm(x, 2, tuple(axes), keepdims)
    rows, columns = axes
    if ord in (2, -2, "nuc"):
        s = svd(generic.moveaxis(x, (rows, columns), (-2, -1)), compute_uv=False)
        if ord != "nuc" and not s.shape[-1]:
            raise ValueError(f"numpy.linalg.norm with ord={ord} of no elements; accepted: ord='fro', 'nuc'")
        found = sum_(s, -1) if ord == "nuc" else s[..., 0 if ord == 2 else -1]
        return generic.expand_dims(found, tuple(i % x.ndim for i in axes)) if keepdims else found
    if ord not in (1, -1, math.inf, -math.inf):
        raise TypeError(
            f"numpy.linalg.norm of matrices has no ord={ord!r}; accepted: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf"
        )
    inner, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = sum_(np.abs(x), inner, keepdims=True)
    found = (max_ if ord > 0 else min_)(sums, over, keepdims=True)
    return found if keepdims else np.squeeze(found, tuple(axes))


@implements(*named("linalg.vector_norm"))
def vector_norm(x: SoftArray, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> SoftArray:
    """`norm` of vectors, which have as many axes as are named."""
    return _vector_norm(x, ord, axis, keepdims)


@implements(*named("linalg.matrix_norm"))
def matrix_norm(x: SoftArray, /, *, keepdims: bool = False, ord: Any = "fro") -> SoftArray:
    """`norm` of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


def _vector_norm(x: SoftArray, ord: Any, axis: Any, keepdims: bool) -> SoftArray:
    fmt = x.format
    if isinstance(ord, str):
        raise TypeError(f"numpy.linalg.norm of vectors has no ord={ord!r}; accepted: numbers")
    if ord == 2:
        codes, kept = laid_out(x.codes, axis)
        with keeping(codes, kept, keepdims):
            squares = dots_of(codes, codes, fmt, "norm")
        return wrapped(evaluated("norm", bits.sqrt, restored(squares, kept, keepdims, fmt).codes, fmt), fmt)
    if ord in (math.inf, -math.inf):
        return (max_ if ord > 0 else min_)(np.abs(x), axis, keepdims=keepdims)
    if ord == 0:
        counts = np.count_nonzero(truth(x), axis, keepdims=keepdims)
        return wrapped(np.asarray(evaluated("norm", bits.encode, counts, fmt)), fmt)
    if ord == 1:
        return sum_(np.abs(x), axis, keepdims=keepdims)
    return sum_(np.abs(x) ** ord, axis, keepdims=keepdims) ** (1 / ord)


# -- orthogonal factors, eigenvalues, singular values ------------------------------------------------------------------------


@implements(np.linalg.qr)
def qr(a: SoftArray, mode: str = "reduced") -> Any:
    """Householder's reflectors: beta = -sign(x_1) sqrt(x · x), tau = (beta - x_1) / beta, v = x / (x_1 - beta), and a + (-v) (tau (vᵀ a)).

    Sums are the accumulator's; nothing is scaled, so that x · x may overflow.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"numpy.linalg.qr of a SoftArray has no mode={mode!r}; accepted: 'reduced', 'complete', 'r'")
    found = _each(lambda x, steps: factors.orthogonal_factors(x, steps, mode), "qr", a)
    return found[0] if mode == "r" else QRResult(*found)


def _eigen(name: str, a: SoftArray, uplo: str, vectors: bool) -> Any:
    """Eigenvalues, and eigenvectors if they are asked for, of what lies on one side of the diagonal."""
    if uplo.upper() not in ("L", "U"):
        raise ValueError(f"UPLO must be 'L' or 'U', got {uplo!r}")

    def found(x: Codes, steps: Steps) -> tuple[Codes, ...]:
        return rotations.eigen(mirrored(x if uplo.upper() == "L" else x.T), steps, vectors)[: 1 + vectors]

    return _each(found, name, a, square=True)


@implements(np.linalg.eigh)
def eigh(a: SoftArray, UPLO: str = "L") -> EighResult:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, by Jacobi's rotations."""
    return EighResult(*_eigen("eigh", a, UPLO, True))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: SoftArray, UPLO: str = "L") -> SoftArray:
    """The eigenvalues of `eigh`."""
    return _eigen("eigvalsh", a, UPLO, False)[0]


def _decomposed(a: Codes, steps: Steps, full: bool, vectors: bool) -> tuple[Codes, ...]:
    """U, s, Vᵀ: rotations of the columns of R, and Q times theirs; of a wide matrix, those of its transpose."""
    m, n = a.shape
    if m < n:
        found = _decomposed(a.T, steps, full, vectors)
        return (np.ascontiguousarray(found[2].T), found[1], np.ascontiguousarray(found[0].T)) if vectors else found
    r = a.copy()
    reflectors = factors.householder(r, steps)
    u, s, v = rotations.singular(r[:n], steps, vectors)
    if not vectors:
        return (s,)
    some = int(np.count_nonzero(steps.magnitudes(s) != 0))
    if some < n:  # columns that are orthogonal to the others
        u[:, some:] = factors.orthogonal_factors(u[:, :some], steps, "complete")[0][:, some:]
    q = factors.orthogonal(reflectors, m, m if full else n, steps)
    u = steps.product(q[:, :n], u) if n else u.reshape(m, 0)
    return np.concatenate([u, q[:, n:]], axis=1), s, v


@implements(np.linalg.svd)
def svd(a: SoftArray, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """QR, then Jacobi's rotations of the columns of R; singular values in descending order."""
    refuse("linalg.svd", hermitian=hermitian or None)
    found = _each(lambda x, steps: _decomposed(x, steps, full_matrices, compute_uv), "svd", a)
    return SVDResult(*found) if compute_uv else found[0]


@implements(*named("linalg.svdvals"))
def svdvals(x: SoftArray, /) -> SoftArray:
    """The singular values of `svd`."""
    return svd(x, compute_uv=False)


def _cutoff(s: SoftArray, shape: Sequence[int], rtol: Any) -> np.ndarray[Any, Any]:
    """What counts as 0 among singular values: a share of the greatest, by default the longer side times the format's epsilon."""
    if isinstance(rtol, SoftArray):
        rtol = rtol.values
    share = max(shape[-2:]) * 2.0**-s.format.mantissa_bits if rtol is None or rtol is ABSENT else np.asarray(rtol)
    return np.asarray(share)[..., None] * np.max(s.values, axis=-1, keepdims=True, initial=0.0)


@implements(np.linalg.pinv)
def pinv(a: SoftArray, rcond: Any = None, hermitian: bool = False, *, rtol: Any = ABSENT) -> SoftArray:
    """V (1/s Uᵀ), without singular values that count as 0: rcond is by default the longer side times the format's epsilon."""
    refuse("linalg.pinv", hermitian=hermitian or None)
    u, s, vt = svd(a, full_matrices=False)
    some = s.values > _cutoff(s, a.shape, rtol if rcond is None else rcond)
    inverse = generic.where(some, 1 / generic.where(some, s, 1), 0)
    return generic.matrix_transpose(vt) @ (inverse[..., None] * generic.matrix_transpose(u))


@implements(np.linalg.matrix_rank)
def matrix_rank(A: SoftArray, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """How many singular values are above `tol`, or a share of the greatest: by default the longer side times the format's epsilon."""
    refuse("linalg.matrix_rank", hermitian=hermitian or None)
    if A.ndim < 2:
        return int(np.any(truth(A)))
    s = svd(A, compute_uv=False)
    limit = _cutoff(s, A.shape, rtol) if tol is None else np.asarray(getattr(tol, "values", tol))[..., None]
    return np.count_nonzero(s.values > limit, axis=-1)


@implements(np.linalg.lstsq, mixed=True)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[SoftArray, SoftArray, int, SoftArray]:
    """QR of `a`, or of its transpose if it is wide: R x = Qᵀ b, residuals as sums of squares of the rest of Qᵀ b.

    Raises LinAlgError where singular values count as 0: `pinv(a) @ b` solves that.
    """
    x, y, fmt = paired("linalg.lstsq", a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or len(x) != len(y):
        raise np.linalg.LinAlgError(f"shapes of numpy.linalg.lstsq do not fit: {x.shape} and {y.shape}")
    steps, (m, n) = Steps(x, "numpy.linalg.lstsq"), x.shape
    right = (y.codes if y.ndim == 2 else y.codes[:, None]).copy()
    r = np.array(read(x) if m >= n else read(x).T)
    reflectors, size = factors.householder(r, steps), min(m, n)
    s = wrapped(rotations.singular(r[:size], steps, False)[1], fmt)
    rank = int(np.count_nonzero(s.values > _cutoff(s, x.shape, rcond)))
    if rank < size:
        raise np.linalg.LinAlgError(
            f"numpy.linalg.lstsq of SoftArrays needs full rank {size}, got {rank}, of singular values up to {s.values[0]}; "
            "accepted: numpy.linalg.pinv(a) @ b, where they are finite, or a smaller rcond"
        )
    residuals = wrapped(np.empty(0, fmt.dtype), fmt)
    if m >= n:
        for k, reflector in enumerate(reflectors):
            factors.reflect(right[k:], reflector, steps)
        found = factors.substituted(r[:n], right[:n], steps, False)
        if m > n:
            rest = np.ascontiguousarray(right[n:].T)
            residuals = wrapped(dots_of(rest, rest, fmt, "linalg.lstsq"), fmt)
    else:
        found = np.zeros((n, right.shape[1]), fmt.dtype)
        found[:m] = factors.substituted(r[:m].T, right, steps, True)
        for k, reflector in reversed([*enumerate(reflectors)]):
            factors.reflect(found[k:], reflector, steps)
    return wrapped(found if y.ndim == 2 else found[:, 0].copy(), fmt), residuals, rank, s


@implements(np.linalg.cond)
def cond(x: SoftArray, p: Any = None) -> SoftArray:
    """The quotient of the greatest and the least singular value (p=None, 2), its inverse (-2), or the product of norms of x and of `inv`."""
    if p in (None, 2, -2):
        s = svd(x, compute_uv=False)
        if not s.shape[-1]:
            raise np.linalg.LinAlgError(f"numpy.linalg.cond of no elements, shape {x.shape}")
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    try:
        inverse = inv(x)
    except np.linalg.LinAlgError:
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise
        return as_soft(math.inf, x.format, "linalg.cond")
    return norm(x, p, (-2, -1)) * norm(inverse, p, (-2, -1))
