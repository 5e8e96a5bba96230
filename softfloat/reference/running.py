"""The oracle of running sums that are more than one number in a format: compensated, in fixed point, down a systolic array."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from softfloat.formats import Format
from softfloat.kernels.spec import Overflow, Rounding, Tininess
from softfloat.reference.outputs import LEVEL, PRODUCT, RUNNING, Codes, Number, Output, Pair, Site
from softfloat.reference.values import INEXACT, INVALID, OVERFLOW, Kind, Result, Value, two_to

__all__ = ["compensated", "fixed_point", "systolic"]


def compensated(
    a: Codes, b: Codes, fmts: Pair, fmt: Format, method: str, c: int | None = None, **options: Any
) -> Result:
    """Rounded products added one by one, from c, each operation rounded: Kahan's, Neumaier's, or a sum of two terms."""
    output, product, running = Output(options, payloads=False), Site(PRODUCT, fmt), Site(RUNNING, fmt)
    zero = output.start(None, running)
    s, e = output.start(c, running), zero

    def plus(x: Number, y: Number) -> Number:
        return output.add(running, x, y)

    def minus(x: Number, y: Number) -> Number:
        return output.subtract(running, x, y)

    terms = output.terms(a, b, fmts, product)
    for x in (output.multiply(product, term) for term in terms):
        if method == "kahan":
            y = minus(x, e)
            t = plus(s, y)
            e = minus(minus(t, s), y)
        elif method == "neumaier":
            t = plus(s, x)
            larger = not (s.value.is_nan or x.value.is_nan) and _size(s) >= _size(x)
            u, v = (s, x) if larger else (x, s)
            e = plus(e, plus(minus(u, t), v))
        else:
            high = plus(s, x)
            of_x = minus(high, s)
            of_s = minus(high, of_x)
            lost_x = minus(x, of_x)
            d = plus(minus(s, of_s), lost_x)
            low = plus(d, e)
            t = plus(high, low)
            e = minus(low, minus(t, high))
        s = t
    return output.deliver(plus(s, e) if method == "neumaier" and terms else s)


def _size(x: Number) -> Any:
    return abs(x.value.real)


def fixed_point(
    a: Codes,
    b: Codes,
    fmts: Pair,
    bits: int,
    last: int,
    fmt: Format,
    beyond: str = "wrap",
    cut: str = "toward_negative",
    c: int | None = None,
    **options: Any,
) -> Result:
    """An integer that counts multiples of 2^last, in two's complement; c and products are cut, the sum rounded in the end."""
    output, running = Output(options, payloads=False), Site(RUNNING, fmt)
    addend, half = output.start(c, running), 1 << (bits - 1)
    terms = output.terms(a, b, fmts, running)
    if not terms:
        return output.deliver(addend)
    count: int | None = 0
    numbers: list[tuple[Value, bool]] = [(addend.value, addend.value.is_nan)]
    for x, y, _ in terms:
        output.flags |= INVALID if x.signalling or y.signalling else 0
        sign, invalid = x.negative != y.negative, (x.is_infinite and y.is_zero) or (x.is_zero and y.is_infinite)
        if x.is_nan or y.is_nan or invalid:
            numbers.append((Value(Kind.NAN, negative=False), not invalid))
        elif x.is_infinite or y.is_infinite:
            numbers.append((Value(Kind.INFINITE, sign), False))
        else:
            numbers.append((Value(Kind.FINITE, sign, x.magnitude * y.magnitude), False))
    for number, given_nan in numbers:
        if number.is_nan or number.is_infinite:
            output.flags |= 0 if given_nan else INVALID
            count = None
            continue
        exact = Fraction(number.real) / two_to(last)
        whole = math.floor(exact) if cut == "toward_negative" else math.trunc(exact)
        output.flags |= INEXACT if whole != exact else 0
        if count is None:
            continue
        count += whole
        if not -half <= count < half:
            output.flags |= OVERFLOW | INEXACT
            count = max(-half, min(count, half - 1)) if beyond == "saturate" else (count + half) % (2 * half) - half
    total = (
        Value(Kind.NAN, negative=False) if count is None else Value(Kind.FINITE, count < 0, abs(count) * two_to(last))
    )
    return output.deliver(output.settle(running, total))


def systolic(
    a: Codes,
    b: Codes,
    fmts: Pair,
    depth: int | None,
    fmt: Format,
    flush: bool = False,
    c: int | None = None,
    **options: Any,
) -> Result:
    """Fused multiply-adds down a column of `depth` rows, from +0; the sums of columns added from c. None: one column, from c."""
    fixed = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY, "daz": flush, "ftz": flush}
    output = Output(options)
    column, between = (Site(number, fmt, {**fixed, "tininess": Tininess.AFTER}) for number in (RUNNING, LEVEL))
    total, terms = output.start(c, between if depth else column), output.terms(a, b, fmts, flush)
    if depth is None:
        for term in terms:
            total = output.fuse(column, term, total)
        return output.deliver(total)
    for first in range(0, len(terms), depth):
        partial = output.start(None, column)
        for term in terms[first : first + depth]:
            partial = output.fuse(column, term, partial)
        total = output.add(between, total, partial)
    return output.deliver(total)
