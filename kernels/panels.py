"""Panels of factorizations and triangular systems: one product after the other is added, by the elements of `loops`.

Codes are words of the carrier's width, and each line of a panel is a column of the matrix. `known` has what tells zeros and NaNs: the sign
bit, the bits without it, the first NaN among these, the code of a lone NaN or -1, and whether zero has a sign.
"""

from functools import cache

import numpy as np

from . import jit
from .carrier import source_of
from .jit import kernel
from .loops import _element
from .rounding import target_of


@kernel
def _one_for_all(codes, i):
    return codes


@kernel
def _one_each(codes, i):
    return codes[i]


@kernel
def size_of(code, known):
    """Magnitudes in their order; of NaN -1."""
    size = code & known[1]
    return -1 if (size >= known[2]) | (code == known[3]) else size


@kernel
def negated(code, known):
    """The code of the number of the other sign."""
    return code ^ known[0] if (known[4] != 0) | (code & known[1] != 0) else code


@kernel
def all_of(flags):
    """Flags OR-ed together."""
    seen = 0
    for i in range(flags.size):
        seen |= np.int64(flags[i])
    return seen


@cache
def _added(way, unusual, fused, scalar_first):
    """added(line, x, y, room, integers, floats) -> flags OR-ed together: line + x * y in place, of another line and a number, which is x if
    `scalar_first`: NaNs may tell which.
    """
    multiply, add, both = (_element(name, way, unusual, way != "nearest") for name in ("mul", "add", "fma"))
    first_at, second_at = (_one_for_all, _one_each) if scalar_first else (_one_each, _one_for_all)

    @jit.row
    def added(line, x, y, room, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        for i in range(line.size):
            a, b = first_at(x, i), second_at(y, i)
            if fused:
                line[i], room[i], _ = both(a, b, line[i], target.zero, target.zero, source, target)
            else:
                product, first, _ = multiply(a, b, b, target.zero, target.zero, source, target)
                line[i], second, _ = add(line[i], product, product, target.zero, target.zero, source, target)
                room[i] = first | second
        return all_of(room[: line.size])

    return jit.referable(added, way, unusual, fused, scalar_first)


@cache
def _by(operation, way, unusual):
    """by(line, y, room, integers, floats) -> flags OR-ed together: an operation on a line, in place, and a number."""
    element = _element(operation, way, unusual, way != "nearest")

    @jit.row
    def by(line, y, room, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        for i in range(line.size):
            line[i], room[i], _ = element(line[i], y, y, target.zero, target.zero, source, target)
        return all_of(room[: line.size])

    return jit.referable(by, operation, way, unusual)


@cache
def factoring(way, unusual, fused, roots):
    """loop(lines, order, pivoting, minus, room, known, integers, floats) -> pivots that were found, and 8 bits below them flags OR-ed together.

    LU of a panel, or Cholesky's factor (`roots`), which ends at a pivot that is not positive.
    """
    less, divided, rooted = _added(way, unusual, fused, False), _by("div", way, unusual), _by("sqrt", way, unusual)

    def factoring_loop(lines, order, pivoting, minus, room, known, integers, floats):
        n, m = lines.shape
        seen, count = 0, min(n, m)
        for k in range(count):
            column = lines[k]
            best, most, some = k, size_of(column[k], known), False
            for i in range(k, m):
                size = size_of(column[i], known)
                some |= size != 0
                if pivoting & (size > most):
                    best, most = i, size
            if best != k:
                order[k], order[best] = order[best], order[k]
                for j in range(n):
                    lines[j, k], lines[j, best] = lines[j, best], lines[j, k]
            if roots:
                if (most <= 0) | (column[k] & known[0] != 0):
                    return (k << 8) | seen
                seen |= rooted(column[k : k + 1], column[k], room, integers, floats)
            if some:
                seen |= divided(column[k + 1 :], column[k], room, integers, floats)
            for i in range(k + 1, m):
                minus[i] = negated(column[i], known)
            for j in range(k + 1, n):
                first, factor = (j, column[j]) if roots else (k + 1, lines[j, k])
                seen |= less(lines[j, first:], minus[first:], factor, room, integers, floats)
        return (count << 8) | seen

    return jit.compiled(factoring_loop)


@cache
def substituting(way, unusual, fused):
    """loop(columns, lines, unit, minus, room, known, integers, floats) -> flags OR-ed together: of a lower triangular system."""
    less, divided = _added(way, unusual, fused, False), _by("div", way, unusual)

    def substituting_loop(columns, lines, unit, minus, room, known, integers, floats):
        seen, n = 0, columns.shape[0]
        for k in range(n):
            for i in range(k + 1, n):
                minus[i] = negated(columns[k, i], known)
            for j in range(lines.shape[0]):
                if not unit:
                    seen |= divided(lines[j, k : k + 1], columns[k, k], room, integers, floats)
                seen |= less(lines[j, k + 1 :], minus[k + 1 :], lines[j, k], room, integers, floats)
        return seen

    return jit.compiled(substituting_loop)


@cache
def reflecting(way, unusual, fused):
    """loop(a, v, tau, across, room, known, integers, floats) -> flags OR-ed together: A - v (tau (vᵀ A)) in place, row by row."""
    added, multiplied = _added(way, unusual, fused, True), _by("mul", way, unusual)

    def reflecting_loop(a, v, tau, across, room, known, integers, floats):
        seen = 0
        for i in range(v.size):
            seen |= added(across, v[i], a[i], room, integers, floats)
        seen |= multiplied(across, tau, room, integers, floats)
        for i in range(v.size):
            seen |= added(a[i], negated(v[i], known), across, room, integers, floats)
        return seen

    return jit.compiled(reflecting_loop)
