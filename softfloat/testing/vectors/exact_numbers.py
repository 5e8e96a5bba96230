"""Numbers as integers of Python's times powers of two, many at once: nothing is rounded; and how they lie between numbers of a format."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.formats import Format
from softfloat.testing.vectors.columns import Number

__all__ = ["NONE", "ROUNDINGS", "Exact", "exact_values", "exponents", "quotient", "rounded", "shift", "square_root"]

Codes = np.ndarray[Any, Any]

NONE = -1
"""Bin of what a dimension says nothing of."""
ROUNDINGS = ("exact", "below half", "tie, even", "tie, odd", "above half")

_length = np.frompyfunc(lambda x: abs(x).bit_length(), 1, 1)
_trailing = np.frompyfunc(lambda x: (x & -x).bit_length() - 1, 1, 1)
_modulo = np.frompyfunc(lambda x, n: abs(x) & ((1 << n) - 1) if n > 0 else 0, 2, 1)
shift = np.frompyfunc(lambda x, n: x << n if n >= 0 else x >> -n, 2, 1)


def _lengths(x: Codes) -> Codes:
    """Bits of integers of Python's; of those that float64 holds, all at once."""
    try:
        magnitude = np.abs(x.astype(np.int64))
    except OverflowError:
        return _length(x).astype(np.int64)
    if magnitude.max(initial=0) > 1 << 53:
        return _length(x).astype(np.int64)
    return np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)


def _isqrt(x: int) -> int:
    """The root of an integer, with what is lost as a last bit."""
    root = math.isqrt(x)
    return root << 1 | (root * root != x)


_root = np.frompyfunc(_isqrt, 1, 1)


class Exact(NamedTuple):
    """Numbers: integers of Python's, signed, times 2^weight; `finite` where they are numbers."""

    integer: Codes
    weight: Codes
    finite: Codes

    @property
    def top(self) -> Codes:
        """Exponents of the leading bits; far below everything for 0."""
        length = _lengths(self.integer)
        return np.where(length > 0, length + self.weight - 1, -(1 << 20))

    def times(self, other: Exact) -> Exact:
        """Products."""
        return Exact(self.integer * other.integer, self.weight + other.weight, self.finite & other.finite)

    def plus(self, other: Exact) -> Exact:
        """Sums."""
        weight = np.minimum(self.weight, other.weight)
        first = shift(self.integer, self.weight - weight)
        second = shift(other.integer, other.weight - weight)
        return Exact(first + second, weight, self.finite & other.finite)

    def negated(self) -> Exact:
        """With the other sign."""
        return self._replace(integer=-self.integer)


def exact_values(codes: Codes, number: Number) -> Exact:
    """Codes as exact numbers; what is none counts as 0."""
    if number.format is None and number.kind != "float64":
        whole = codes if number.kind == "unsigned" else codes.view(np.dtype(number.name))
        return Exact(whole.astype(object), np.zeros(codes.shape, np.int64), np.ones(codes.shape, bool))
    values = codes.view(np.float64) if number.format is None else np.asarray(bits.decode(codes, number.format))
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    integer = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.where(integer != 0, integer & -integer, 1).astype(np.float64)
    drop = np.frexp(lowest)[1].astype(np.int64) - 1
    return Exact((integer >> drop).astype(object), exponent.astype(np.int64) - 53 + drop, finite)


def exponents(x: Exact, fmt: Format) -> Codes:
    """Exponents as hardware has them: a subnormal's, and zero's, is the least."""
    return np.maximum(x.top, fmt.emin)


def quotient(a: Exact, b: Exact, p: int) -> Exact:
    """Quotients to p + 3 bits, what is lost as a last bit."""
    usable = a.finite & b.finite & (b.integer != 0)
    divisor = np.where(usable, b.integer, 1)
    room = np.maximum(p + 4 - _lengths(a.integer) + _lengths(divisor), 0)
    numerator = shift(np.abs(a.integer), room)
    quotient, rest = numerator // np.abs(divisor), numerator % np.abs(divisor)
    sign = np.where((a.integer < 0) ^ (divisor < 0), -1, 1).astype(object)
    return Exact(sign * (quotient * 2 + (rest != 0)), a.weight - b.weight - room - 1, usable)


def square_root(a: Exact, p: int) -> Exact:
    """Roots to p + 3 bits, what is lost as a last bit."""
    usable = a.finite & (a.integer >= 0)
    integer = np.where(usable, a.integer, 0)
    least = 2 * (p + 3)
    room = np.where((a.weight - least) % 2 == 0, least, least + 1)
    return Exact(_root(shift(integer, room)), (a.weight - room) // 2 - 1, usable)


def rounded(x: Exact, fmt: Format, furthest: int) -> tuple[Codes, Codes]:
    """How exact numbers lie between two of a format: a bin of `ROUNDINGS`, and the distance of the last bit from the last
    place, from 1, or `furthest` and more; NONE for what is no number, and for exact ones.
    """
    place = np.maximum(x.top, fmt.emin) - fmt.p + 1
    drop = place - x.weight
    rest = _modulo(x.integer, np.clip(drop, 0, None))
    half = shift(np.ones(len(rest), object), np.clip(drop - 1, 0, None))
    odd = (shift(np.abs(x.integer), -drop) & 1).astype(bool)
    inexact = (rest != 0).astype(bool)
    below, above = (rest < half).astype(bool), (rest > half).astype(bool)
    case = np.select([~inexact, below, above, odd], [0, 1, 4, 3], 2)
    last = _trailing(np.where(inexact, x.integer, 1)).astype(np.int64)
    distance = np.where(inexact, np.clip(drop - last, 1, furthest) - 1, NONE)
    usable = x.finite & (x.integer != 0).astype(bool)
    return np.where(usable, case, NONE), np.where(usable, distance, NONE)
