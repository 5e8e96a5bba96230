"""NumPy's products of arrays on SoftArrays: each sum by the environment's accumulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.handlers import arranged, implements, named, paired, placed, refuse, relocated
from softfloat.arrays.held import evaluated, wrapped
from softfloat.arrays.operands import coerced, common_format
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import dots_of, product_of, sum_, total
from softfloat.engine import Codes
from softfloat.formats import Format

generic: Any = np  # NumPy's functions, called on SoftArrays: their signatures know arrays alone


@implements(np.dot, mixed=True)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Sums over the last axis of a and the last but one of b."""
    x, y, fmt = paired("dot", a, b)
    if not x.ndim or not y.ndim:
        return placed(np.multiply(x, y), out, "dot")
    return placed(_contracted(x.codes, y.codes, x.ndim - 1, max(y.ndim - 2, 0), fmt, "dot"), out, "dot")


def _contracted(a: Codes, b: Codes, axis_a: int, axis_b: int, fmt: Format, name: str) -> SoftArray:
    """Sums over one axis of each; the others of a, then those of b, are left."""
    if a.shape[axis_a] != b.shape[axis_b]:
        raise ValueError(
            f"shapes do not fit in numpy.{name}: {a.shape} along axis {axis_a}, {b.shape} along axis {axis_b}"
        )
    x, y = np.moveaxis(a, axis_a, -1), np.moveaxis(b, axis_b, 0)
    return wrapped(_flat_product(x, y, 1, fmt, name), fmt)


def _flat_product(x: Codes, y: Codes, count: int, fmt: Format, name: str) -> Codes:
    """Sums over the last `count` axes of x and the first of y; the others of x, then those of y, are left."""
    rows, columns = x.shape[: x.ndim - count], y.shape[count:]
    length = math.prod(y.shape[:count])
    with arranged((math.prod(rows), math.prod(columns)), lambda found: found.reshape(rows + columns)):
        found = product_of(x.reshape(math.prod(rows), length), y.reshape(length, math.prod(columns)), fmt, name)
    return found.reshape(rows + columns)


@implements(np.vdot, mixed=True)
def vdot(a: Any, b: Any) -> SoftArray:
    """The dot product of two flattened arrays."""
    x, y, fmt = paired("vdot", a, b)
    return _contracted(x.codes.reshape(-1), y.codes.reshape(-1), 0, 0, fmt, "vdot")


@implements(np.inner, mixed=True)
def inner(a: Any, b: Any) -> Any:
    """Sums over both last axes."""
    x, y, fmt = paired("inner", a, b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    return _contracted(x.codes, y.codes, x.ndim - 1, y.ndim - 1, fmt, "inner")


@implements(*named("outer", "linalg.outer"), mixed=True)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every product of two flattened arrays."""
    x, y, _ = paired("outer", a, b)
    return placed(np.multiply(x.reshape(-1, 1), y.reshape(1, -1)), out, "outer")


@implements(*named("tensordot", "linalg.tensordot"), mixed=True)
def tensordot(a: Any, b: Any, axes: Any = 2) -> SoftArray:
    """Sums over pairs of axes."""
    x, y, fmt = paired("tensordot", a, b)
    if isinstance(axes, (int, np.integer)):
        first: Any = range(x.ndim - int(axes), x.ndim)
        second: Any = range(int(axes))
    else:
        first, second = ([one] if isinstance(one, (int, np.integer)) else list(one) for one in axes)
    first, second = [int(i) % x.ndim for i in first], [int(i) % y.ndim for i in second]
    if [x.shape[i] for i in first] != [y.shape[i] for i in second]:
        raise ValueError(f"shapes do not fit in numpy.tensordot: {x.shape} along {first}, {y.shape} along {second}")
    rest_x = [i for i in range(x.ndim) if i not in first]
    rest_y = [i for i in range(y.ndim) if i not in second]
    left, right = x.codes.transpose(*rest_x, *first), y.codes.transpose(*second, *rest_y)
    return wrapped(_flat_product(left, right, len(first), fmt, "tensordot"), fmt)


@implements(np.kron, mixed=True)
def kron(a: Any, b: Any) -> SoftArray:
    """The Kronecker product."""
    x, y, _ = paired("kron", a, b)
    dims = max(x.ndim, y.ndim)
    one, two = (z.reshape((1,) * (dims - z.ndim) + z.shape) for z in (x, y))
    left = one.reshape([n for pair in zip(one.shape, (1,) * dims, strict=True) for n in pair])
    right = two.reshape([n for pair in zip((1,) * dims, two.shape, strict=True) for n in pair])
    shape = [m * n for m, n in zip(one.shape, two.shape, strict=True)]
    with arranged([n for pair in zip(one.shape, two.shape, strict=True) for n in pair], lambda z: z.reshape(shape)):
        return (left * right).reshape(shape)


@implements(np.trace)
def trace(a: SoftArray, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of the diagonal."""
    return sum_(wrapped(np.diagonal(a.codes, offset, axis1, axis2), a.format), -1, dtype, out)


@implements(*named("linalg.trace"))
def linalg_trace(x: SoftArray, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the last two axes."""
    return trace(x, offset, -2, -1, dtype)


@implements(*named("linalg.matmul"), mixed=True)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product."""
    return generic.matmul(x1, x2)


@implements(*named("linalg.vecdot"), mixed=True)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Dot products along an axis."""
    return generic.vecdot(x1, x2, axis=axis)


@implements(np.einsum, mixed=True)
def einsum(subscripts: Any, *operands: Any, out: Any = None, optimize: Any = False, **keywords: Any) -> Any:
    """Sums of products over the indices that the result lacks, in the order in which they first appear; one or two operands."""
    refuse("einsum", **keywords)
    if not isinstance(subscripts, str):
        raise TypeError("numpy.einsum of SoftArrays needs its subscripts as a string")
    if not 1 <= len(operands) <= 2:
        raise TypeError(
            f"numpy.einsum of SoftArrays takes one or two operands, got {len(operands)}: nest calls to say in which order to round"
        )
    fmt = common_format(operands, "einsum")
    codes = [coerced(x, fmt, "einsum", i) for i, x in enumerate(operands)]
    terms, wanted = _subscripts(subscripts, [x.ndim for x in codes])
    sizes: dict[str, int] = {}
    parts = []
    for term, x in zip(terms, codes, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) in (1, n):
                sizes[letter] = n
            elif n != 1:
                raise ValueError(f"numpy.einsum: index {letter!r} has lengths {sizes[letter]} and {n}")
        letters = list(dict.fromkeys(term))
        repeated = len(letters) < len(term)
        places = [letters.index(c) for c in term]
        parts.append(
            (letters, np.einsum(x, places, list(range(len(letters)))) if repeated else x)
        )  # a diagonal: a view
    summed = [letter for letter in dict.fromkeys("".join(terms)) if letter not in wanted]
    expanded = [
        np.broadcast_to(_spread_out(x, letters, [*wanted, *summed]), [sizes[c] for c in (*wanted, *summed)])
        for letters, x in parts
    ]
    shape, length = [sizes[c] for c in wanted], math.prod(sizes[c] for c in summed)
    if len(expanded) == 1:
        result = total(expanded[0].reshape(*shape, length), fmt, "einsum") if summed else expanded[0].copy()
    elif summed:
        result = _einsum_pair(parts, list(wanted), summed, sizes, fmt)
    else:
        result = np.asarray(evaluated("einsum", bits.mul, *expanded, fmt))
    return placed(wrapped(result.reshape(shape), fmt), out, "einsum")


def _subscripts(subscripts: str, dims: Sequence[int]) -> tuple[list[str], str]:
    """Letters of the operands and of the result, ellipses written out in digits."""
    text = subscripts.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(dims):
        raise ValueError(f"numpy.einsum: {subscripts!r} names {len(terms)} operands, and there are {len(dims)}")
    extra = [n - len(term.replace("...", "")) if "..." in term else 0 for term, n in zip(terms, dims, strict=True)]
    digits = "0123456789"[: max(extra, default=0)]
    terms = [term.replace("...", digits[len(digits) - n :]) for term, n in zip(terms, extra, strict=True)]
    for term, n in zip(terms, dims, strict=True):
        if len(term) != n or (not term.replace("...", "").isalnum() and term):
            raise ValueError(f"numpy.einsum: {term!r} does not fit an operand of {n} axes")
    if arrow:
        wanted = wanted.replace("...", digits)
    else:
        letters = "".join(terms)
        wanted = digits + "".join(sorted(c for c in set(letters) - set(digits) if letters.count(c) == 1))
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set("".join(terms)):
        raise ValueError(f"numpy.einsum: {subscripts!r} asks for indices that no operand has, or for one twice")
    return terms, wanted


def _spread_out(x: Codes, letters: Sequence[str], order: Sequence[str]) -> Codes:
    """Axes in a given order, of length 1 where there are none."""
    present = [c for c in order if c in letters]
    moved = x.transpose([letters.index(c) for c in present])
    return moved.reshape([moved.shape[present.index(c)] if c in present else 1 for c in order])


def _einsum_pair(
    parts: list[tuple[list[str], Codes]], wanted: list[str], summed: list[str], sizes: dict[str, int], fmt: Format
) -> Codes:
    """Two operands as stacks of matrices: indices of both, of the first alone, of the second alone."""
    (first, a), (second, b) = parts
    both = [c for c in wanted if c in first and c in second]
    rows = [c for c in wanted if c in first and c not in second]
    columns = [c for c in wanted if c in second and c not in first]

    def laid(x: Codes, letters: list[str], order: list[str], shape: list[int]) -> Codes:
        return np.broadcast_to(_spread_out(x, letters, order), [sizes[c] for c in order]).reshape(shape)

    batch = [sizes[c] for c in both]
    count, length, width = (math.prod(sizes[c] for c in group) for group in (rows, summed, columns))
    left = laid(a, first, both + rows + summed, [*batch, count, length])
    right = laid(b, second, both + summed + columns, [*batch, length, width])
    order = both + rows + columns

    def arrange(found: Codes) -> Codes:
        return found.reshape([sizes[c] for c in order]).transpose([order.index(c) for c in wanted])

    if not rows and not columns:  # dot products, which are quicker than matrices of one element
        with arranged(batch, arrange):
            return arrange(dots_of(left[..., 0, :], right[..., 0], fmt, "einsum"))
    with arranged([*batch, count, width], arrange):
        return arrange(product_of(left, right, fmt, "einsum"))


def _sliding(function: str, a: Any, v: Any, mode: str, reverse: bool) -> SoftArray:
    """Dot products of a with v at every shift, over growing indices of a."""
    x, y, fmt = paired(function, a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(
            f"numpy.{function} needs arrays of one axis and at least one element, got shapes {x.shape} and {y.shape}"
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode of numpy.{function} must be 'full', 'same' or 'valid', got {mode!r}")
    swapped = y.size > x.size
    one, two = (y.codes, x.codes) if swapped else (x.codes, y.codes)
    two = two[::-1] if reverse else two
    n, k = one.size, two.size
    middle_first = (k - 1) // 2
    places = {"valid": range(k - 1, n), "full": range(n + k - 1), "same": range(middle_first, middle_first + n)}[mode]
    inside = np.lib.stride_tricks.sliding_window_view(one, k)
    result = np.empty(len(places), fmt.dtype)
    backwards = swapped and not reverse
    with arranged(result.shape, lambda found: found[::-1] if backwards else found):
        first, last = k - 1 - places.start, n - places.start
        with relocated(lambda index: (index[0] + first,)):
            result[first:last] = product_of(inside, two, fmt, function)
        for i in (*range(first), *range(last, len(places))):
            place = places[i]
            low, high = max(place - k + 1, 0), min(place, n - 1)
            with relocated(lambda index, at: (at,), i):
                result[i] = dots_of(one[low : high + 1], two[low - place + k - 1 : high - place + k], fmt, function)
    return wrapped(result[::-1].copy() if backwards else result, fmt)


@implements(np.convolve, mixed=True)
def convolve(a: Any, v: Any, mode: Any = "full") -> SoftArray:
    """The discrete convolution; each element is a dot product, by the environment's accumulator."""
    return _sliding("convolve", a, v, mode, reverse=True)


@implements(np.correlate, mixed=True)
def correlate(a: Any, v: Any, mode: Any = "valid") -> SoftArray:
    """The cross-correlation; each element is a dot product, by the environment's accumulator."""
    return _sliding("correlate", a, v, mode, reverse=False)
