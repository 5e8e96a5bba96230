"""Linear algebra written out: one operation on exact fractions after the other, by `softfloat.reference` alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softfloat import bits, reference
from softfloat.formats import Format

Matrix = list[list[int]]
SWEEPS = 16


class Scalars:
    """Operations on codes; `flags` gathers what they raise, and `fused` says whether sums take their products exactly."""

    def __init__(self, fmt: Format, fused: bool = False, **options: Any) -> None:
        self.fmt, self.fused, self.options, self.flags = fmt, fused, options, 0

    @property
    def one(self) -> int:
        return self.fmt.one_code

    def _done(self, function: Callable[..., Any], *codes: int) -> int:
        code, raised = function(*codes, self.fmt, **self.options)
        self.flags |= int(raised)
        return int(code)

    def add(self, x: int, y: int) -> int:
        return self._done(reference.add, x, y)

    def sub(self, x: int, y: int) -> int:
        return self._done(reference.sub, x, y)

    def mul(self, x: int, y: int) -> int:
        return self._done(reference.mul, x, y)

    def div(self, x: int, y: int) -> int:
        return self._done(reference.div, x, y)

    def sqrt(self, x: int) -> int:
        return self._done(reference.sqrt, x)

    def plus(self, c: int, x: int, y: int) -> int:
        """c + x y, as the accumulator has it."""
        return self._done(reference.fma, x, y, c) if self.fused else self.add(c, self.mul(x, y))

    def dot(self, x: Sequence[int], y: Sequence[int], c: int = 0) -> int:
        for one, other in zip(x, y, strict=True):
            c = self.plus(c, one, other)
        return c

    def neg(self, x: int) -> int:
        return int(bits.negative(x, self.fmt))

    def value(self, x: int) -> float:
        return float(bits.decode(x, self.fmt))

    def size(self, x: int) -> float:
        value = abs(self.value(x))
        return -1.0 if math.isnan(value) else value


def codes_of(x: Any) -> Matrix:
    return [[int(c) for c in row] for row in x.codes]


def column(a: Matrix, j: int, first: int = 0) -> list[int]:
    return [row[j] for row in a[first:]]


def lu(a: Matrix, ops: Scalars, pivot: str = "partial") -> tuple[Matrix, list[int], list[int]]:
    a = [row[:] for row in a]
    m, n = len(a), len(a[0])
    rows, columns = [*range(m)], [*range(n)]
    for k in range(min(m, n)):
        if pivot == "partial":
            sizes = [ops.size(x) for x in column(a, k, k)]
            best = k + sizes.index(max(sizes))
            a[k], a[best], rows[k], rows[best] = a[best], a[k], rows[best], rows[k]
        elif pivot == "complete":
            sizes = [ops.size(x) for row in a[k:] for x in row[k:]]
            i, j = divmod(sizes.index(max(sizes)), n - k)
            a[k], a[k + i], rows[k], rows[k + i] = a[k + i], a[k], rows[k + i], rows[k]
            columns[k], columns[k + j] = columns[k + j], columns[k]
            for row in a:
                row[k], row[k + j] = row[k + j], row[k]
        if k + 1 < m and any(ops.size(x) for x in column(a, k, k)):
            for i in range(k + 1, m):
                a[i][k] = ops.div(a[i][k], a[k][k])
        for i in range(k + 1, m):
            for j in range(k + 1, n):
                a[i][j] = ops.plus(a[i][j], ops.neg(a[i][k]), a[k][j])
    return a, rows, columns


def substituted(t: Matrix, b: list[int], ops: Scalars, lower: bool, unit: bool = False) -> list[int]:
    x, n = b[:], len(b)
    done: list[int] = []
    for i in range(n) if lower else reversed(range(n)):
        for j in done:
            x[i] = ops.plus(x[i], ops.neg(t[i][j]), x[j])
        if not unit:
            x[i] = ops.div(x[i], t[i][i])
        done.append(i)
    return x


def solved(a: Matrix, b: list[int], ops: Scalars) -> list[int]:
    factors, rows, _ = lu(a, ops)
    return substituted(factors, substituted(factors, [b[i] for i in rows], ops, True, True), ops, False)


def inverse(a: Matrix, ops: Scalars) -> Matrix:
    n = len(a)
    columns = [solved(a, [ops.one if i == j else 0 for i in range(n)], ops) for j in range(n)]
    return [list(row) for row in zip(*columns, strict=True)]


def determinant(a: Matrix, ops: Scalars) -> int:
    factors, rows, _ = lu(a, ops)
    found = factors[0][0]
    for i in range(1, len(a)):
        found = ops.mul(found, factors[i][i])
    odd = sum(x > y for i, x in enumerate(rows) for y in rows[i:]) % 2
    return ops.neg(found) if odd else found


def cholesky(a: Matrix, ops: Scalars) -> Matrix | int:
    """L, or the index of the element that is no positive number."""
    n = len(a)
    found = [[0] * n for _ in range(n)]
    for j in range(n):
        for i in range(j, n):
            x = a[i][j]
            for k in range(j):
                x = ops.plus(x, ops.neg(found[i][k]), found[j][k])
            found[i][j] = x
        if not ops.value(found[j][j]) > 0:
            return j
        found[j][j] = ops.sqrt(found[j][j])
        for i in range(j + 1, n):
            found[i][j] = ops.div(found[i][j], found[j][j])
    return found


def reflector(x: list[int], ops: Scalars) -> tuple[list[int], int, int] | None:
    if len(x) < 2:
        return None
    norm = ops.sqrt(ops.dot(x, x))
    if ops.value(norm) == 0 or not any(ops.size(y) for y in x[1:]):
        return None
    beta = norm if bool(x[0] & ops.fmt.sign_bit) else ops.neg(norm)
    below = ops.sub(x[0], beta)
    v = [ops.one, *(ops.div(y, below) for y in x[1:])]
    return v, ops.div(ops.sub(beta, x[0]), beta), beta


def reflected(a: Matrix, first: int, columns: range, found: tuple[list[int], int, int], ops: Scalars) -> None:
    v, tau, _ = found
    for j in columns:
        w = ops.mul(ops.dot(v, column(a, j, first)), tau)
        for i, y in enumerate(v):
            a[first + i][j] = ops.plus(a[first + i][j], ops.neg(y), w)


def qr(a: Matrix, ops: Scalars, mode: str = "reduced") -> tuple[Matrix, Matrix]:
    r, found = [row[:] for row in a], []
    m, n = len(r), len(r[0])
    for k in range(min(m, n)):
        made = reflector(column(r, k, k), ops)
        found.append(made)
        if made:
            reflected(r, k, range(k + 1, n), made, ops)
            r[k][k] = made[2]
        for i in range(k + 1, m):
            r[i][k] = 0
    size = m if mode == "complete" else min(m, n)
    q = [[ops.one if i == j else 0 for j in range(size)] for i in range(m)]
    for k in reversed(range(len(found))):
        made = found[k]
        if made:
            reflected(q, k, range(k, size), made, ops)
    return q, r[:size]


def rounds(n: int) -> list[list[tuple[int, int]]]:
    places = [*range(n + n % 2)]
    found = []
    for _ in range(len(places) - 1):
        pairs = zip(places[: len(places) // 2], places[::-1], strict=False)
        found.append([(min(x), max(x)) for x in pairs if max(x) < n])
        places = [places[0], places[-1], *places[1:-1]]
    return found


def angle(pp: int, qq: int, pq: int, ops: Scalars) -> tuple[int, int]:
    half = ops.div(ops.one, ops.add(ops.one, ops.one))
    theta = ops.div(ops.sub(qq, pp), ops.add(pq, pq))
    if ops.value(theta) ** 2 > float(ops.fmt.max):
        t = ops.div(half, theta)
    else:
        size = theta & ~ops.fmt.sign_bit
        root = ops.sqrt(ops.add(ops.mul(theta, theta), ops.one))
        t = ops.div(ops.one | (theta & ops.fmt.sign_bit), ops.add(size, root))
    c = ops.div(ops.one, ops.sqrt(ops.add(ops.mul(t, t), ops.one)))
    s = ops.mul(t, c)
    return s, ops.div(s, ops.add(c, ops.one))


def rotated(x: list[int], y: list[int], s: int, tau: int, ops: Scalars) -> tuple[list[int], list[int]]:
    pairs = [*zip(x, y, strict=True)]
    return (
        [ops.sub(a, ops.mul(s, ops.add(b, ops.mul(tau, a)))) for a, b in pairs],
        [ops.add(b, ops.mul(s, ops.sub(a, ops.mul(tau, b)))) for a, b in pairs],
    )


def left(pp: int, qq: int, pq: int, ops: Scalars) -> bool:
    bound = 2.0**-ops.fmt.p * math.sqrt(abs(ops.value(pp)) * abs(ops.value(qq)))
    return not abs(ops.value(pq)) <= bound


def turned(a: Matrix) -> Matrix:
    return [list(row) for row in zip(*a, strict=True)]


def eigen(a: Matrix, ops: Scalars) -> tuple[list[int], Matrix]:
    a, n, before = [row[:] for row in a], len(a), math.inf
    v = [[ops.one if i == j else 0 for j in range(n)] for i in range(n)]
    for _ in range(SWEEPS):
        values = np.array([[ops.value(x) for x in row] for row in a])
        off = float(np.sqrt(np.sum((values - np.diag(np.diag(values))) ** 2)))
        if not 0 < off < 0.9 * before:
            break
        before = off
        for pairs in rounds(n):
            chosen = [(p, q) for p, q in pairs if left(a[p][p], a[q][q], a[p][q], ops)]
            angles = [angle(a[p][p], a[q][q], a[p][q], ops) for p, q in chosen]
            for x in ("rows", "columns", "vectors"):
                rows = v if x == "vectors" else turned(a) if x == "columns" else a
                for (p, q), (s, tau) in zip(chosen, angles, strict=True):
                    rows[p], rows[q] = rotated(rows[p], rows[q], s, tau, ops)
                a = turned(rows) if x == "columns" else a
            for p, q in chosen:
                a[p][q] = a[q][p] = 0
    order = sorted(range(n), key=lambda i: ops.value(a[i][i]))
    return [a[i][i] for i in order], turned([v[i] for i in order])


def singular(a: Matrix, ops: Scalars) -> tuple[Matrix, list[int], Matrix]:
    """U, s, Vᵀ of a matrix of at least as many rows as columns, none of whose singular values is 0."""
    basis, r = qr(a, ops)
    g, n = turned(r), len(r)
    v = [[ops.one if i == j else 0 for j in range(n)] for i in range(n)]
    for _ in range(SWEEPS):
        most = 0.0
        for pairs in rounds(n):
            dots = [(ops.dot(g[p], g[p]), ops.dot(g[q], g[q]), ops.dot(g[p], g[q])) for p, q in pairs]
            chosen = [(p, q, x) for (p, q), x in zip(pairs, dots, strict=True) if left(*x, ops)]
            for _, _, x in chosen:
                b, c, d = map(ops.value, x)
                most = max(most, abs(d) / math.sqrt(b * c))
            turns = [(p, q, angle(*x, ops)) for p, q, x in chosen]
            for rows in (g, v):
                for p, q, (s, tau) in turns:
                    rows[p], rows[q] = rotated(rows[p], rows[q], s, tau, ops)
        if not most > min(4 * math.sqrt(n) * 2.0**-ops.fmt.p, 0.25):
            break
    first = [ops.sqrt(ops.dot(x, x)) for x in g]
    g = [[ops.div(y, size) for y in x] for x, size in zip(g, first, strict=True)]
    second = [ops.sqrt(ops.dot(x, x)) for x in g]
    g = [[ops.div(y, size) for y in x] for x, size in zip(g, second, strict=True)]
    sizes = [ops.mul(x, y) for x, y in zip(first, second, strict=True)]
    order = sorted(range(n), key=lambda i: -ops.value(sizes[i]))
    u = turned([g[i] for i in order])
    return [[ops.dot(row, c) for c in turned(u)] for row in basis], [sizes[i] for i in order], [v[i] for i in order]
