"""Jacobi's rotations: eigenvalues of symmetric matrices, singular values of others.

A rotation of x and y is x - s (y + tau x), y + s (x - tau y) with theta = (a_qq - a_pp) / (2 a_pq),
t = sign(theta) / (|theta| + sqrt(theta² + 1)), or 1/2 / theta where the format does not have theta²; c = 1 / sqrt(t² + 1), s = t c,
tau = s / (1 + c) (Rutishauser): errors are several times less than with c x - s y. A sweep is of n - 1 rounds of disjoint pairs (Brent
and Luk). Pairs with |a_pq| <= u sqrt(|a_pp a_qq|) are left. Sweeps of a symmetric matrix end when what is off its diagonal no longer falls by
a tenth; those of columns, when the greatest cosine of two is at most 4 sqrt(m) u, and 1/4; and at any rate after 16.
These decisions, and the order of the results, are made in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.operands import one_of
from softfloat.engine import Codes
from softfloat.linalg.steps import Steps, identity, spread

__all__ = ["eigen", "singular"]

SWEEPS = 16
FALL = 0.9  # of what is off the diagonal, from one sweep to the next, above which they end
CLOSE, SMALL = 4, 0.25  # cosines of columns that are small: in units of sqrt(m) u, and in any case


def rounds(n: int) -> Iterator[tuple[Any, Any]]:
    """Disjoint pairs p < q; all of them in the rounds of one sweep."""
    places = list(range(n + n % 2))
    half = len(places) // 2
    for _ in range(len(places) - 1):
        pairs = [(min(x), max(x)) for x in zip(places[:half], places[::-1][:half], strict=True) if max(x) < n]
        yield np.array([p for p, _ in pairs], np.intp), np.array([q for _, q in pairs], np.intp)
        places = [places[0], places[-1], *places[1:-1]]


def _angles(pp: Codes, qq: Codes, pq: Codes, steps: Steps) -> tuple[Codes, Codes]:
    """(s, tau) of rotations."""
    done, sign = steps.computed, steps.sign
    one = np.full_like(pp, one_of(steps.fmt, steps.name))
    theta = done("div", done("sub", qq, pp), done("add", pq, pq))
    far = np.asarray(bits.decode(theta, steps.fmt)) ** 2 > float(steps.fmt.max)
    near = np.where(far, one, theta)
    root = done("sqrt", done("add", done("mul", near, near), one))
    t = done("div", one | near & sign, done("add", near & ~sign, root))
    if far.any():
        half = done("div", one, done("add", one, one))
        t = np.where(far, done("div", half, np.where(far, theta, half)), t)  # of a theta of 0 nothing is raised
    c = done("div", one, done("sqrt", done("add", done("mul", t, t), one)))
    s = done("mul", t, c)
    return s, done("div", s, done("add", c, one))


def _rotated(x: Codes, y: Codes, s: Codes, tau: Codes, steps: Steps) -> tuple[Codes, Codes]:
    """Rows of two matrices, each pair of rows by its own angle."""

    def times(by: Codes, *parts: Codes) -> Codes:
        both = np.stack(parts)
        return steps.computed("mul", spread(by[:, None], both.shape), both)

    to_y, to_x = times(tau, x, y)
    down, up = times(s, steps.computed("add", y, to_y), steps.computed("sub", x, to_x))
    return steps.computed("sub", x, down), steps.computed("add", y, up)


def _turned(
    p: Any, q: Any, products: tuple[Codes, Codes, Codes], across: tuple[Codes, ...], steps: Steps
) -> tuple[Any, Any, float]:
    """Rows of the matrices `across` rotated, of those pairs that are to be, NaNs among them: which these are, and their greatest cosine."""
    b, c, d = (np.asarray(bits.decode(x, steps.fmt)) for x in products)
    with np.errstate(all="ignore"):
        wanted = ~(np.abs(d) <= 2.0**-steps.fmt.p * np.sqrt(np.abs(b) * np.abs(c)))
        if not wanted.any():
            return p[wanted], q[wanted], 0.0
        cosines = np.abs(d[wanted]) / np.sqrt(b[wanted] * c[wanted])
    p, q = p[wanted], q[wanted]
    pp, qq, pq = (x[wanted] for x in products)
    s, tau = _angles(pp, qq, pq, steps)
    for x in across:
        x[p], x[q] = _rotated(x[p], x[q], s, tau, steps)
    return p, q, float(np.max(cosines))


def eigen(a: Codes, steps: Steps, vectors: bool) -> tuple[Codes, Codes]:
    """(eigenvalues in ascending order, eigenvectors in columns) of a symmetric matrix."""
    fmt, n, before, pairs = steps.fmt, len(a), np.inf, [*rounds(len(a))]
    whole = np.hstack([a, identity(n, steps)]) if vectors else a.copy()  # rows of both are rotated alike
    a = whole[:, :n]
    for _ in range(SWEEPS):
        values = np.asarray(bits.decode(a, fmt))
        with np.errstate(all="ignore"):
            off = float(np.sqrt(np.sum((values - np.diag(np.diag(values))) ** 2)))
        if not 0 < off < FALL * before:
            break
        before = off
        for p, q in pairs:
            p, q, _ = _turned(p, q, (a[p, p], a[q, q], a[p, q]), (whole, a.T), steps)
            a[p, q] = a[q, p] = 0
    found = np.diag(a).copy()
    order = np.argsort(np.asarray(bits.decode(found, fmt)), kind="stable")
    return found[order], np.ascontiguousarray(whole[order, n:].T)


def singular(a: Codes, steps: Steps, vectors: bool) -> tuple[Codes, Codes, Codes]:
    """(U, s in descending order, Vᵀ) of a matrix of at least as many rows as columns, whose columns are rotated until they are orthogonal.

    Dot products of columns are sums by the accumulator, and r their square roots. U has the columns over r, once more over
    their norms, with which r is multiplied to give s: squares of small numbers have few digits, or none. Columns of U are 0 where
    r is 0 or no finite number.
    """
    g, fmt = np.ascontiguousarray(a.T), steps.fmt
    (n, m), pairs = g.shape, [*rounds(len(g))]
    v, close = identity(n, steps), min(CLOSE * np.sqrt(m) * 2.0**-fmt.p, SMALL)
    for _ in range(SWEEPS):
        most = 0.0
        for p, q in pairs:
            x, y = g[p], g[q]
            products = steps.dots(x, x), steps.dots(y, y), steps.dots(x, y)
            most = max(most, _turned(p, q, products, (g, v)[: 2 if vectors else 1], steps)[2])
        if not most > close:
            break
    found, sizes = _norms(g, steps)
    some = (sizes > 0) & np.isfinite(sizes)
    g[some] = steps.divided(g[some], found[some][:, None])
    again, _ = _norms(g[some], steps)  # squares of small columns have few digits, or none
    g[some] = steps.divided(g[some], again[:, None])
    found[some] = steps.computed("mul", found[some], again)
    g[~some] = 0
    order = np.argsort(-np.asarray(bits.decode(found, fmt)), kind="stable")
    return np.ascontiguousarray(g[order].T), found[order], v[order]


def _norms(x: Codes, steps: Steps) -> tuple[Codes, np.ndarray[Any, Any]]:
    """Of the rows of a matrix: codes and values."""
    found = steps.computed("sqrt", steps.dots(x, x))
    return found, np.asarray(bits.decode(found, steps.fmt))
