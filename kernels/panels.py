"""Panels of factorizations and triangular systems: one product after the other is added, by the elements of `loops`.

Codes are words of the carrier's width, and each line of a panel is a column of the matrix. `known` has what tells zeros and NaNs: the sign
bit, the bits without it, the first NaN among these, the code of a lone NaN or -1, and whether zero has a sign.
"""

from functools import cache

from . import jit
from .carrier import source_of
from .jit import all_of, kernel, scratch
from .loops import _element, kinds_of
from .parts import Composed, called
from .rounding import target_of


@kernel
def size_of(code, known):
    """Magnitudes in their order; of NaN -1."""
    size = code & known[1]
    return -1 if (size >= known[2]) | (code == known[3]) else size


@kernel
def negated(code, known):
    """The code of the number of the other sign."""
    return code ^ known[0] if (known[4] != 0) | (code & known[1] != 0) else code


@cache
def _adding(way, fused, scalar_first):
    """row(line, x, y, room, integers, floats) -> flags OR-ed together: line + x * y in place, of another line and a number, which is x if
    `scalar_first`: NaNs may tell which.
    """
    multiply, add, both = (_element(name, way) for name in ("mul", "add", "fma"))

    def adding_row(line, x, y, room, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        number = x[0] if scalar_first else y[0]
        for i in range(line.size):
            a, b = (number, y[i]) if scalar_first else (x[i], number)
            if fused:
                line[i], room[i], _ = both(a, b, line[i], target.zero, target.zero, source, target)
            else:
                product, first, _ = multiply(a, b, b, target.zero, target.zero, source, target)
                line[i], second, _ = add(line[i], product, product, target.zero, target.zero, source, target)
                room[i] = first | second
        return all_of(room[: line.size])

    return adding_row


@cache
def _by(operation, way):
    """row(line, y, room, integers, floats) -> flags OR-ed together: an operation on a line, in place, and a number."""
    element = _element(operation, way)

    def by_row(line, y, room, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        number = y[0]
        for i in range(line.size):
            line[i], room[i], _ = element(line[i], number, number, target.zero, target.zero, source, target)
        return all_of(room[: line.size])

    return by_row


@jit.once
def _factoring():
    def factoring_loop(rows, lines, order, pivoting, roots, minus, room, known, integers, floats):
        """Pivots that were found, and 8 bits below them flags OR-ed together: of LU of a panel, or of Cholesky's factor (`roots`), which
        ends at a pivot that is not positive.
        """
        less, divided, rooted = rows[0], rows[1], rows[len(rows) - 1]
        n, m = lines.shape
        seen, count = 0, min(n, m)
        for k in range(count):
            column = lines[k]
            pivot = column[k : k + 1]
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
                seen |= called(rooted, (pivot, pivot, room, integers, floats))
            if some:
                seen |= called(divided, (column[k + 1 :], pivot, room, integers, floats))
            for i in range(k + 1, m):
                minus[i] = negated(column[i], known)
            for j in range(k + 1, n):
                first, factor = (j, column[j : j + 1]) if roots else (k + 1, lines[j, k : k + 1])
                seen |= called(less, (lines[j, first:], minus[first:], factor, room, integers, floats))
        return (count << 8) | seen

    return jit.compiled(factoring_loop)


@jit.once
def _substituting():
    def substituting_loop(rows, columns, lines, unit, minus, room, known, integers, floats):
        """Flags OR-ed together, of a lower triangular system."""
        less, divided = jit.fixed_tuple(rows, 2)
        seen, n = 0, columns.shape[0]
        for k in range(n):
            for i in range(k + 1, n):
                minus[i] = negated(columns[k, i], known)
            for j in range(lines.shape[0]):
                found = lines[j, k : k + 1]
                if not unit:
                    seen |= called(divided, (found, columns[k, k : k + 1], room, integers, floats))
                seen |= called(less, (lines[j, k + 1 :], minus[k + 1 :], found, room, integers, floats))
        return seen

    return jit.compiled(substituting_loop)


@jit.once
def _reflecting():
    def reflecting_loop(rows, a, v, tau, across, room, known, integers, floats):
        """Flags OR-ed together, of A - v (tau (vᵀ A)) in place, row by row."""
        added, multiplied = jit.fixed_tuple(rows, 2)
        seen, minus = 0, scratch(1, integers.dtype)
        for i in range(v.size):
            seen |= called(added, (across, v[i : i + 1], a[i], room, integers, floats))
        seen |= called(multiplied, (across, tau, room, integers, floats))
        for i in range(v.size):
            minus[0] = negated(v[i], known)
            seen |= called(added, (a[i], minus, across, room, integers, floats))
        return seen

    return jit.compiled(reflecting_loop)


LOOPS = {
    "lu": (_factoring, ("column", "div")),
    "cholesky": (_factoring, ("column", "div", "sqrt")),
    "substitute": (_substituting, ("column", "div")),
    "reflect": (_reflecting, ("row", "mul")),
}
"""Loops, and the rows that they call: a column or a row is added, times a number, or an operation is done on a line."""


@cache
def panel(name, way, fused, word):
    """One of these loops, by rows of a rule, for codes of a type."""
    loop, parts = LOOPS[name]
    rows = [_adding(way, fused, x == "row") if x in ("column", "row") else _by(x, way) for x in parts]
    known = kinds_of(word)
    lines = dict.fromkeys(("line", "x", "y"), known["codes"]) | {"room": known["flags"]}
    return Composed(loop(), tuple(rows), known | lines)
