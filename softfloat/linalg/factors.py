"""Factorizations, in steps that each round once: LU, triangular systems, Cholesky, LDL, QR.

In all of them c - l * u is c + (-l) * u: in modes that round up or down the bits differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.handlers import as_soft
from softfloat.arrays.held import wrapped
from softfloat.arrays.operands import one_of
from softfloat.arrays.softarray import SoftArray
from softfloat.checks import check_choice, check_switch
from softfloat.engine import Codes
from softfloat.linalg.steps import Raised, Steps, Summing, check_matrix, identity, mirrored, read, spread
from softfloat.status import Flags

__all__ = ["LDL", "LU", "ldl", "lu", "solve_triangular"]

Places = np.ndarray[Any, np.dtype[np.intp]]


# -- triangular systems ------------------------------------------------------------------------------------------------


def substituted(t: Codes, b: Codes, steps: Steps, lower: bool, unit: bool = False) -> Codes:
    """X of T X = B: each element of B, less products with unknowns in the order in which these are found, over the diagonal."""
    if not lower:
        return substituted(t[::-1, ::-1], b[::-1], steps, True, unit)[::-1]
    x = np.array(b)
    _substitute(steps.negated(t), t, x, steps, unit)
    return x


def _substitute(minus: Codes, t: Codes, x: Codes, steps: Steps, unit: bool) -> None:
    """The same in place, with -T at hand."""
    n = len(x)
    whole = steps.whole(n, x.shape[1])
    if whole and steps.panels:
        steps.env.status.add(steps.panels.substitute(t, x, unit))
        return
    width = 1 if whole else steps.width(n)
    for low in range(0, n, width):
        here, below = slice(low, low + width), slice(low + width, n)
        if not whole:
            _substitute(minus[here, here], t[here, here], x[here], steps, unit)
        elif low and not steps.single:
            x[here] = steps.added(x[here], minus[here, :low], x[:low])
        if whole and not unit:
            x[here] = steps.divided(x[here], t[low, low])
        if low + width < n and (steps.single or not whole):
            added = steps.outer_added if whole else steps.added
            x[below] = added(x[below], minus[below, here], x[here])


def solved(factors: Codes, rows: Places, b: Codes, steps: Steps) -> Codes:
    """X of A X = B, by forward and back substitution with LU factors of A whose rows are exchanged."""
    return substituted(factors, substituted(factors, b[rows], steps, True, unit=True), steps, False)


def solve_triangular(
    a: SoftArray, b: Any, *, lower: bool = False, unit: bool = False, trans: bool = False, block: int | None = None
) -> SoftArray:
    """x of a triangular system: each b_i + (-t_ij) x_j + ..., over the unknowns in the order in which they are found, divided by t_ii.

    Parameters
    ----------
    a : SoftArray
        Square; of what lies on the other side of the diagonal nothing is read.
    b : SoftArray
        Of one format with a; of shape (n,) or (n, k).
    lower, unit, trans : bool
        Whether `a` is lower triangular, its diagonal is taken as ones, and its transpose is meant.
    block : int, optional
        Products in one sum: see `lu`.

    Returns
    -------
    SoftArray
        Of the shape of b. Flags are those of its steps; x / 0 is as IEEE 754 has it.

    Raises
    ------
    TypeError, ValueError
        For shapes that do not fit, and two formats.

    >>> import softfloat
    >>> solve_triangular(softfloat.array([[2, 0], [3, 4]], "float16"), softfloat.array([1, 2], "float16"), lower=True)
    SoftArray([0.5  , 0.125], float16)
    """
    name = "softfloat.linalg.solve_triangular"
    for argument, value in (("lower", lower), ("unit", unit), ("trans", trans)):
        check_switch(argument, value)
    a = check_matrix(a, name, square=True)
    t = a.codes.T if trans else a.codes
    right = right_hand_side(b, a, name)
    found = substituted(t, right, Steps(a, name, block), lower != trans, unit)
    return wrapped(np.ascontiguousarray(found).reshape(np.shape(b)), a.format)


def right_hand_side(b: Any, a: SoftArray, name: str) -> Codes:
    """Codes of b as a matrix."""
    right = as_soft(b, a.format, name)
    if right.ndim not in (1, 2) or len(right) != len(a):
        raise ValueError(f"b of {name} must have shape ({len(a)},) or ({len(a)}, k), got {right.shape}")
    return right.codes if right.ndim == 2 else right.codes[:, None]


# -- LU ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LU:
    """Factors of a matrix whose rows (and columns) are exchanged: a[rows][:, columns] = l @ u, but for rounding errors.

    Attributes
    ----------
    lu : SoftArray
        u on and above the diagonal, l without its ones below.
    rows, columns : array of int
        Which row and column of `a` each is; columns are exchanged for pivot="complete" alone.
    growth : float
        The greatest magnitude of u over that of a; NaN where either has a NaN.
    flags : Flags
        What the factorization raised.
    """

    lu: SoftArray
    rows: Places
    columns: Places
    growth: float
    flags: Flags

    @property
    def l(self) -> SoftArray:  # noqa: E743 -- its name in every textbook
        """Lower triangular, with ones on the diagonal."""
        m, n = self.lu.shape
        found: Any = np.tril(self.lu)[:, : min(m, n)]
        np.fill_diagonal(found.codes, one_of(found.format, "softfloat.linalg.LU.l"))
        return found

    @property
    def u(self) -> SoftArray:
        """Upper triangular."""
        found: Any = np.triu(self.lu)
        return found[: min(self.lu.shape)]

    @property
    def sign(self) -> int:
        """1, or -1 where an odd number of exchanges was made."""
        return 1 if even(self.rows) == even(self.columns) else -1

    def solve(self, b: Any) -> SoftArray:
        """x of a x = b by forward and back substitution, as `solve_triangular` has them; a pivot that is 0 divides, as IEEE 754 has it."""
        name = "softfloat.linalg.lu.solve"
        square = check_matrix(self.lu, name, "lu", square=True)
        right = right_hand_side(b, square, name)
        found = np.empty_like(right)
        found[self.columns] = solved(square.codes, self.rows, right, Steps(square, name))
        return wrapped(found.reshape(np.shape(b)), square.format)

    def backward_error(self, a: SoftArray) -> float:
        """The greatest element of ``|a - l u| / (|l| |u|)``, in float64: of componentwise bounds the constant."""
        factors, size = np.asarray(self.lu.values), min(self.lu.shape)
        low, high = np.tril(factors[:, :size], -1) + np.eye(len(factors), size), np.triu(factors[:size])
        wanted = a.values[self.rows][:, self.columns]
        with np.errstate(all="ignore"):
            product = low @ high
            shares = np.abs(wanted - product) / (np.abs(low) @ np.abs(high))
        return float(np.max(np.where(wanted == product, 0.0, shares), initial=0.0))


def even(order: Places) -> bool:
    """Whether a permutation is one of an even number of exchanges."""
    seen, even = np.zeros(len(order), bool), True
    for start in range(len(order)):
        place = start
        while not seen[place]:
            seen[place], place = True, int(order[place])
            even ^= place != start
    return even


def lu(a: SoftArray, *, pivot: str = "partial", block: int | None = None, accumulator: Summing | None = None) -> LU:
    """LU factors of a matrix: each element a_ij + (-l_i1) u_1j + (-l_i2) u_2j + ..., below the diagonal divided by the pivot.

    Parameters
    ----------
    a : SoftArray
        Of shape (m, n).
    pivot : {"partial", "none", "complete"}
        Which element divides: the greatest magnitude of its column, the first of several; the one on the diagonal; the
        greatest of what is left. NaN is taken where there is nothing else. A column of zeros is not divided.
    block : int, optional
        Products in one sum, which starts from what is there and is rounded to the format. By `mul_add` and `fma` each product is
        added alone, no bit depends on it, and None is what is quick. By other accumulators None is 64; from n on, each
        element is one sum. Under stochastic rounding, random numbers come with each step in the order of blocks, so that
        block, seed and shape fix the result.
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        How to sum; default the environment's.

    Returns
    -------
    LU

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    >>> import softfloat
    >>> found = lu(softfloat.array([[1, 2], [3, 4]], "float16"))
    >>> found.l, found.u, found.rows.tolist(), str(found.flags)
    (SoftArray([[1.    , 0.    ],
               [0.3333, 1.    ]], float16), SoftArray([[3.   , 4.   ],
               [0.   , 0.667]], float16), [1, 0], 'INEXACT')
    """
    name = "softfloat.linalg.lu"
    a = check_matrix(a, name)
    check_choice("pivot", pivot, ("partial", "none", "complete"))
    steps = Steps(a, name, block, accumulator)
    codes = read(a).copy()
    with Raised() as raised:
        rows, columns = factor(codes, steps, pivot)
    with np.errstate(all="ignore"):
        growth = float(np.divide(steps.greatest(np.triu(codes)), steps.greatest(a.codes))) if a.size else 1.0
    return LU(wrapped(codes, a.format), rows, columns, growth, raised.flags)


def factor(a: Codes, steps: Steps, pivot: str = "partial", first: int = 0) -> tuple[Places, Places]:
    """LU in place; the row and the column of `a` that each now is.

    For pivot="root", Cholesky's factor on the diagonal and below it, of columns of which the first has this index in the whole matrix: each
    element is a_ij + (-l_i1) l_j1 + ..., of the diagonal its square root, below it over that.
    """
    m, n = a.shape
    rows, columns, width, roots = np.arange(m), np.arange(n), steps.width(n), pivot == "root"
    if pivot == "complete" or (steps.single and not steps.panels and not roots and steps.whole(n, m)):
        return _one_by_one(a, steps, pivot)
    if steps.whole(n, m):
        if not steps.panels:
            _sum_by_sum(a, steps, pivot, rows, first)
            return rows, columns
        rows, found, raised = steps.panels.factor(a, pivot == "partial", roots)
        steps.env.status.add(raised)
        if roots and found < n:  # they stop there
            _check_positive(a[found, found], steps, first + found)
        return rows, columns
    for low in range(0, min(m, n), width):
        high = min(low + width, n)
        here = slice(low, high)
        panel = np.array(a[low:, here])
        moved, _ = factor(panel, steps, pivot, first + low)
        if pivot == "partial":
            a[low:] = a[low:][moved]
            rows[low:] = rows[low:][moved]
        a[low:, here] = panel
        if roots:
            for left in range(high, n, width):
                rest, lines = a[left:, left : left + width], panel[left - low :]
                rest[...] = steps.added(rest, steps.negated(lines), lines[: rest.shape[1]].T)
        elif high < n:
            done = a[here, high:]
            _substitute(steps.negated(panel[: len(done)]), panel, done, steps, True)
            if high < m:
                a[high:, high:] = steps.added(a[high:, high:], steps.negated(panel[high - low :]), done)
    return rows, columns


def _check_positive(pivot: Any, steps: Steps, place: int) -> None:
    """Of an element of the diagonal that has a square root to divide by."""
    if pivot & steps.sign or steps.magnitudes(np.atleast_1d(pivot))[0] <= 0:
        found = float(bits.decode(pivot, steps.fmt))
        raise np.linalg.LinAlgError(f"{steps.name}: element {place} of the diagonal has become {found}")


def _exchange(lines: Codes, order: Places, k: int, other: int) -> None:
    """Two lines along the first axis, and their places in the order."""
    if other != k:
        lines[[k, other]], order[[k, other]] = lines[[other, k]], order[[other, k]]


def _scaled(below: Codes, pivot: Any, steps: Steps) -> Codes:
    """A column divided by its pivot; zeros over zero stay zeros, as there is nothing to eliminate."""
    if steps.zero(pivot) and not steps.magnitudes(below).any():
        return below
    return steps.divided(below, pivot)


def _one_by_one(a: Codes, steps: Steps, pivot: str) -> tuple[Places, Places]:
    """After each pivot, one product more in every element to its right. Columns lie in rows meanwhile."""
    lines, rows, columns = np.ascontiguousarray(a.T), np.arange(len(a)), np.arange(a.shape[1])
    for k in range(min(a.shape)):
        if pivot != "none":
            left = lines[k:, k:] if pivot == "complete" else lines[k : k + 1, k:]
            i, j = divmod(int(np.argmax(steps.magnitudes(left.T))), len(left))
            _exchange(lines.T, rows, k, k + i)
            _exchange(lines, columns, k, k + j)
        below, rest = lines[k, k + 1 :], lines[k + 1 :, k + 1 :]
        if below.size:
            below[:] = _scaled(below, lines[k, k], steps)
        if rest.size:
            rest[...] = steps.outer_added(rest, steps.negated(below)[None], lines[k + 1 :, k : k + 1])
    a[...] = lines.T
    return rows, columns


def _sum_by_sum(a: Codes, steps: Steps, pivot: str, rows: Places, first: int) -> None:
    """Few columns: each element is one sum, found when its column or row is due."""
    (m, n), root = a.shape, pivot == "root"
    for k in range(min(m, n)):
        here, right, below = slice(k, k + 1), slice(k + 1, n), slice(k + 1, m)
        if k:
            above = a[here, :k].T if root else a[:k, here]
            a[k:, here] = steps.added(a[k:, here], steps.negated(a[k:, :k]), above)
        if root:
            _check_positive(a[k, k], steps, first + k)
            a[here, k] = steps.computed("sqrt", a[here, k])
        if pivot == "partial":
            _exchange(a, rows, k, k + int(np.argmax(steps.magnitudes(a[k:, k]))))
        if k and k + 1 < n and not root:
            a[here, right] = steps.added(a[here, right], steps.negated(a[here, :k]), a[:k, right])
        if k + 1 < m or root:  # of nothing, too, which takes a random stream
            a[below, k] = _scaled(a[below, k], a[k, k], steps)


# -- symmetric matrices --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LDL:
    """Factors of a symmetric matrix whose rows and columns are exchanged alike: a[rows][:, rows] = l @ d @ lᵀ, but for rounding errors.

    Attributes
    ----------
    l : SoftArray
        Lower triangular, with ones on the diagonal.
    d : SoftArray
        Blocks of one or two rows on the diagonal.
    rows : array of int
        Which row of `a` each is.
    flags : Flags
        What the factorization raised.
    """

    l: SoftArray  # noqa: E741 -- its name in every textbook
    d: SoftArray
    rows: Places
    flags: Flags


ALPHA = (1 + math.sqrt(17)) / 8  # of Bunch and Kaufman: the bound on growth is least


def ldl(a: SoftArray) -> LDL:
    """L D Lᵀ of a symmetric matrix, by the pivoting of Bunch and Kaufman.

    Which pivot is taken is decided on exact values. A block of one divides its column; one of two solves for its columns by
    elimination with partial pivoting; then each element on and below the diagonal has one or two products more, by the environment's
    accumulator, and those above are their copies.

    Parameters
    ----------
    a : SoftArray
        Square; of what lies above the diagonal nothing is read.

    Source
    ------
    Bunch and Kaufman 1977, partial pivoting; Higham, Accuracy and Stability of Numerical Algorithms, 11.1.
    """
    name = "softfloat.linalg.ldl"
    a = check_matrix(a, name, square=True)
    steps, n = Steps(a, name), len(a)
    one = one_of(a.format, name)
    codes = mirrored(read(a))
    low, rows = np.zeros_like(codes), np.arange(n)
    d: Any = wrapped(np.zeros_like(codes), a.format)
    with Raised() as raised:
        k = 0
        while k < n:
            size, other = _pivot(np.abs(np.asarray(bits.decode(codes[k:, k:], a.format))))
            other += k
            last = k + size - 1
            for x in (codes, codes.T, low):
                x[[last, other]] = x[[other, last]]
            rows[[last, other]] = rows[[other, last]]
            here, below = slice(k, k + size), slice(k + size, n)
            d.codes[here, here] = codes[here, here]
            columns = codes[below, here].copy()
            if size == 1:
                low[below, k] = _scaled(columns[:, 0], codes[k, k], steps)
            elif len(columns):
                two = codes[here, here].copy()
                order, _ = factor(two, steps)
                low[below, here] = solved(two, order, columns.T, steps).T
            if k + size < n:
                rest = steps.added(codes[below, below], steps.negated(low[below, here]), columns.T)
                codes[below, below] = mirrored(rest)
            k += size
    np.fill_diagonal(low, one)
    return LDL(wrapped(low, a.format), d, rows, raised.flags)


def _pivot(sizes: np.ndarray[Any, Any]) -> tuple[int, int]:
    """How many rows the next block has, and the row that its last is exchanged with."""
    if len(sizes) == 1:
        return 1, 0
    first = 1 + int(np.argmax(sizes[1:, 0]))
    most = sizes[first, 0]
    if sizes[0, 0] >= ALPHA * most:
        return 1, 0
    across = np.delete(sizes[first], first).max()
    if sizes[0, 0] * across >= ALPHA * most * most:
        return 1, 0
    return (1, first) if sizes[first, first] >= ALPHA * across else (2, first)


# -- QR ------------------------------------------------------------------------------------------------------------------


WORTH_PRODUCTS = 1 << 16
"""Elements from which on a reflector is applied sooner by a product of matrices."""
Reflector = tuple[Codes, Codes] | None  # v, whose first element is 1, and tau; None leaves things as they are


def _reflector(x: Codes, steps: Steps) -> tuple[Reflector, Codes]:
    """I - tau v vᵀ that makes one number of a vector, and that number, beta.

    beta = -sign(x_1) sqrt(x · x), tau = (beta - x_1) / beta, v = x / (x_1 - beta) but for v_1 = 1. Where all elements but the
    first are 0, or x · x is rounded to 0, nothing is done.
    """
    first, v = x[:1], np.full_like(x, one_of(steps.fmt, steps.name))
    norm = steps.computed("sqrt", steps.product(x[None], x[:, None])[0]) if len(x) > 1 else None
    if norm is None or steps.zero(norm) or not steps.magnitudes(x[1:]).any():
        return None, x[0]
    beta = norm if x[0] & steps.sign else steps.negated(norm)
    v[1:] = steps.divided(x[1:], steps.computed("sub", first, beta))
    return (v, steps.divided(steps.computed("sub", beta, first), beta)), beta[0]


def reflect(a: Codes, reflector: Reflector, steps: Steps) -> None:
    """A - v (tau (vᵀ A)) in place."""
    if reflector is None or not a.shape[1]:
        return
    v, tau = reflector
    if steps.panels and a.size < WORTH_PRODUCTS:
        steps.env.status.add(steps.panels.reflect(a, v, tau))
        return
    across = steps.product(v[None], a)
    row = steps.computed("mul", across, spread(tau, across.shape))
    a[...] = steps.outer_added(a, steps.negated(v)[:, None], row)


def householder(a: Codes, steps: Steps) -> list[Reflector]:
    """R in place of a matrix, with zeros below the diagonal, and the reflectors, each of the rows from its number on."""
    m, n = a.shape
    found = []
    for k in range(min(m, n)):
        reflector, beta = _reflector(np.ascontiguousarray(a[k:, k]), steps)
        reflect(a[k:, k + 1 :], reflector, steps)
        a[k, k], a[k + 1 :, k] = beta, 0
        found.append(reflector)
    return found


def orthogonal(reflectors: list[Reflector], m: int, columns: int, steps: Steps) -> Codes:
    """The first columns of the product of reflectors, which are applied to those of the identity from the last on."""
    q = identity(m, steps, columns)
    for k in reversed(range(min(len(reflectors), columns))):
        reflect(q[k:, k:], reflectors[k], steps)
    return q


def orthogonal_factors(a: Codes, steps: Steps, mode: str) -> tuple[Codes, ...]:
    """Q and R, or R alone, of one of NumPy's modes. Q is made of the reflectors from the last on."""
    r = a.copy()
    m, n = r.shape
    reflectors = householder(r, steps)
    columns = m if mode == "complete" else min(m, n)
    if mode == "r":
        return (r[:columns].copy(),)
    return orthogonal(reflectors, m, columns, steps), r[:columns].copy()
