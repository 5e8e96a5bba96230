"""The oracle of dot products whose operands have scales: of block formats, and of chunks; conventions as in `softfloat.reference.dots`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from softfloat.formats import Format
from softfloat.kernels.spec import Overflow, Rounding
from softfloat.reference.outputs import (
    LEVEL,
    RUNNING,
    SINGLE,
    Codes,
    Number,
    Output,
    Pair,
    Site,
    Summed,
    Term,
    exponent_in,
)
from softfloat.reference.values import Kind, Result, Value, decode, two_to

__all__ = ["scaled_chunks", "scaled_core", "scaled_exact"]

ScaleCodes = tuple[Codes, Codes]
"""Of a and b, one for each product; their signs say nothing."""


def _scale(code: int, fmt: Format) -> Value:
    return decode(code & ((1 << (fmt.bits - fmt.signed)) - 1), fmt)


def _times(x: Value, scale: Value) -> Value:
    if x.is_nan or scale.is_nan or (x.is_infinite and scale.is_zero):
        return x if x.is_nan else Value(Kind.NAN, negative=False)
    return x if x.is_infinite else x._replace(magnitude=x.magnitude * scale.magnitude)


def _scaled_terms(
    output: Output, a: Codes, b: Codes, fmts: Pair, scales: ScaleCodes, scale_fmts: Pair, site: Site | bool
) -> list[Term]:
    """Products of elements times their scales. A zero, element or scale, has the exponent -126 of its own."""

    def exponent(x: Value, scale: Value, fmts: Pair) -> int:
        parts = ((x, fmts[0]), (scale, fmts[1]))
        return sum(exponent_in(fmt, v) if v.magnitude else -126 for v, fmt in parts)

    terms = []
    for term, first, second in zip(output.terms(a, b, fmts, site), *scales, strict=True):
        x, y = _scale(first, scale_fmts[0]), _scale(second, scale_fmts[1])
        both = exponent(term.x, x, (fmts[0], scale_fmts[0])) + exponent(term.y, y, (fmts[1], scale_fmts[1]))
        terms.append(Term(_times(term.x, x), _times(term.y, y), both))
    return terms


def scaled_exact(
    a: Codes,
    b: Codes,
    fmts: Pair,
    scales: ScaleCodes,
    scale_fmts: Pair,
    fmt: Format,
    c: int | None = None,
    **options: Any,
) -> Result:
    """The exact sum of all products, scales included, and c, rounded once: DotGeneral of OCP MX."""
    output, running = Output(options, payloads=len(a) < 2), Site(RUNNING, fmt)
    total = output.start(c, running)
    terms = _scaled_terms(output, a, b, fmts, scales, scale_fmts, running)
    if len(terms) == 1:
        total = output.fuse(running, terms[0], total)
    elif terms:
        total = output.block(running, terms, total)
    return output.deliver(total)


def scaled_core(
    a: Codes,
    b: Codes,
    fmts: Pair,
    scales: ScaleCodes,
    scale_fmts: Pair,
    grouped: bool,
    c: int | None = None,
    **options: Any,
) -> Result:
    """NVIDIA's block-scaled instructions: 32 products and c on 25 bits; or `grouped`, four exact sums of 16 and c on 35."""
    fixed = {"rounding": Rounding.TOWARD_ZERO, "overflow": Overflow.INFINITY, "daz": False, "ftz": False}
    output, running = Output(options, nan="nvidia", payloads=False), Site(RUNNING, SINGLE, fixed, always_infinite=True)
    total = output.start(c, running)
    length, size, bits = (64, 16, 35) if grouped else (32, 1, 25)
    terms = _scaled_terms(output, a, b, fmts, scales, scale_fmts, False)
    every = [
        [_scale(code, fmt) for code, fmt in zip(pair, scale_fmts, strict=True)] for pair in zip(*scales, strict=True)
    ]
    for first in range(0, len(terms), length):
        block = terms[first : first + length]

        def summed(numbers: list[Fraction], block: list[Term] = block, first: int = first, c: Number = total) -> Summed:
            *products, addend = numbers
            exponents, sums = [], []
            for k in range(0, len(products), size):
                sums.append(sum(products[k : k + size], Fraction(0)))
                shared = [
                    exponent_in(fmt, x) if x.magnitude else -126
                    for x, fmt in zip(every[first + k], scale_fmts, strict=True)
                ]
                exponents.append(sum(shared) if grouped else block[k].exponent)
            own = exponent_in(SINGLE, c.value) if addend else -126
            unit = two_to(max(*exponents, own) - bits)
            kept = [math.trunc(x / unit) * unit for x in [*sums, addend]]
            return sum(kept, Fraction(0)), kept != [*sums, addend]

        total = output.total(running, block, [total], summed)
    return output.deliver(total)


def scaled_chunks(
    a: Codes,
    b: Codes,
    fmts: Pair,
    scales: ScaleCodes,
    scale_fmts: Pair,
    length: int,
    inner_fmt: Format,
    outer_fmt: Format,
    order: str,
    c: int | None = None,
    **options: Any,
) -> Result:
    """Chunks of fused multiply-adds from +0, each sum times its two scales, in that order, and added to the sum so far."""
    output, inner, outer = Output(options, payloads=False), Site(RUNNING, inner_fmt), Site(LEVEL, outer_fmt)
    total, terms = output.start(c, outer), output.terms(a, b, fmts, inner)
    for first in range(0, len(terms), length):
        chunk = output.start(None, inner)
        for term in terms[first : first + length]:
            chunk = output.fuse(inner, term, chunk)
        x, y = (_scale(codes[first], fmt) for codes, fmt in zip(scales, scale_fmts, strict=True))
        left, right, last = {
            "scales_fused": (x, y, chunk.value),
            "scales_added": (x, y, chunk.value),
            "first_fused": (chunk.value, x, y),
            "second_fused": (chunk.value, y, x),
        }[order]
        part = output.multiply(outer, Term(left, right, 0))
        if order == "scales_added":
            total = output.add(outer, total, output.multiply(outer, Term(part.value, last, 0)))
        else:
            total = output.fuse(outer, Term(part.value, last, 0), total)
    return output.deliver(total)
