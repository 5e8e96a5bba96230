"""The oracle of processors' dot-product units: x86, RISC-V, Arm and AMD; conventions are those of `dots`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from softfloat.formats import Format
from softfloat.kernels.spec import Overflow, Rounding, Tininess
from softfloat.reference.outputs import (
    FILL,
    LEVEL,
    PRODUCT,
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
    groups,
)
from softfloat.reference.values import Result, Value, two_to

__all__ = ["amd_mfma", "amx", "arm_bfdot", "arm_fdot", "arm_fmmla", "arm_fp8dot", "rvbna", "vdpbf16ps", "vdpphps"]


# -- x86 -------------------------------------------------------------------------------------------------------------


LANE = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY, "daz": True, "ftz": True}
LANE |= {"tininess": Tininess.AFTER}


def _in_pairs(a: Codes, b: Codes, fmts: Pair, c: int | None, options: dict[str, Any], daz: bool) -> Result:
    """Of each pair the second product first: fused multiply-adds, flushed. `daz`: so are the operands."""
    output, lane = Output(options, nan="x86_fma3"), Site(RUNNING, SINGLE, LANE)
    total = output.start(c, lane)
    for low, high in groups(output.terms(a, b, fmts, daz and lane), 2):
        total = output.fuse(lane, low, output.fuse(lane, high, total))
    return output.deliver(total)


def vdpbf16ps(a: Codes, b: Codes, fmts: Pair, c: int | None = None, **options: Any) -> Result:
    """VDPBF16PS."""
    return _in_pairs(a, b, fmts, c, options, daz=True)


def vdpphps(a: Codes, b: Codes, fmts: Pair, c: int | None = None, **options: Any) -> Result:
    """VDPPHPS: subnormal halves are numbers."""
    return _in_pairs(a, b, fmts, c, options, daz=False)


def amx(a: Codes, b: Codes, fmts: Pair, tile: int | None = None, c: int | None = None, **options: Any) -> Result:
    """AMX: per tile two sums from +0, of even and odd products or of pairs of fp8 products; added up, then c + that."""
    pairs = fmts[0].bits == 8
    output = Output(options, nan="canonical", payloads=False)
    product, lane, end = (Site(number, SINGLE, LANE) for number in (PRODUCT, RUNNING, LEVEL))
    total = output.start(c, end)
    terms = output.terms(a, b, fmts, fmts[0].name == "bfloat16")
    length = tile or (64 if pairs else 32)
    for first in range(0, len(terms), length):
        sums = [output.start(None, lane), output.start(None, lane)]
        segment = terms[first : first + length]
        if pairs:
            for n, pair in enumerate(groups(segment, 2)):
                low, high = (output.multiply(product, x) for x in pair)
                sums[n % 2] = output.add(lane, sums[n % 2], output.add(lane, low, high))
        else:
            for n, term in enumerate(segment):
                sums[n % 2] = output.fuse(lane, term, sums[n % 2])
        total = output.add(end, total, output.add(lane, *sums))
    return output.deliver(total)


# -- RISC-V, Arm and AMD ---------------------------------------------------------------------------------------------


def rvbna(a: Codes, b: Codes, fmts: Pair, n: int, c: int | None = None, **options: Any) -> Result:
    """Bulk normalisation: n products on a grid below the largest exponent, what lies below it in the last bit."""
    fixed = {"rounding": Rounding.TO_ODD, "overflow": Overflow.INFINITY, "daz": False, "ftz": False}
    output = Output(options, nan="riscv", payloads=False)
    dot, running = (Site(number, SINGLE, fixed, always_infinite=True) for number in (PRODUCT, RUNNING))
    fraction_bits = 23 + math.ceil(math.log2(n))
    total = output.start(c, running)
    for group in groups(output.terms(a, b, fmts, False), n):

        def summed(products: list[Fraction], group: list[Term] = group) -> Summed:
            exponents = [x.exponent for x, product in zip(group, products, strict=True) if product]
            unit = two_to(max(exponents, default=0) - fraction_bits)
            kept, lost = Fraction(0), False
            for product in products:
                magnitude, rest = divmod(abs(product), unit)
                lost |= rest != 0
                count = int(magnitude) | (rest != 0)
                kept += (-count if product < 0 else count) * unit
            return kept, lost

        total = output.add(running, total, output.total(dot, group, [], summed))
    return output.deliver(total)


def arm_bfdot(
    a: Codes,
    b: Codes,
    fmts: Pair,
    ebf: bool = False,
    mode: str = "nearest_even",
    c: int | None = None,
    **options: Any,
) -> Result:
    """BFDotAdd: pair by pair; without EBF each step to odd and flushed, with it the exact pair rounded, then added."""
    output = Output(options, nan="canonical", payloads=False)
    fixed: dict[str, Any] = {"overflow": Overflow.INFINITY, "daz": not ebf, "ftz": not ebf, "tininess": Tininess.BEFORE}
    fixed["rounding"] = Rounding[mode.upper()] if ebf else Rounding.TO_ODD
    product, running = (Site(number, SINGLE, fixed, always_infinite=not ebf) for number in (PRODUCT, RUNNING))
    output.signed_zeros = True
    total = output.start(c, running)
    for pair in groups(output.terms(a, b, fmts, not ebf), 2):
        if ebf:
            both = output.total(product, pair, [], lambda products: (sum(products, Fraction(0)), False))
        else:
            low, high = (output.multiply(product, x) for x in pair)
            both = output.add(running, low, high)
        total = output.add(running, total, both)
    return output.deliver(total)


def _pair_sum(products: list[Fraction]) -> Summed:
    return sum(products, Fraction(0)), False


def arm_fdot(a: Codes, b: Codes, fmts: Pair, fz16: bool = False, c: int | None = None, **options: Any) -> Result:
    """FPDotAdd: the exact sum of two products of halves, rounded, then added."""
    output = Output(options, payloads=False)
    product, running = (Site(number, SINGLE, {"tininess": Tininess.BEFORE}) for number in (PRODUCT, RUNNING))
    output.signed_zeros = True
    total = output.start(c, running)
    for pair in groups(output.terms(a, b, fmts, fz16), 2):
        total = output.add(running, total, output.total(product, pair, [], _pair_sum))
    return output.deliver(total)


def arm_fmmla(a: Codes, b: Codes, fmts: Pair, fz16: bool = False, c: int | None = None, **options: Any) -> Result:
    """FPMatMulAddH, and of singles FPMatMulAdd: two dot products, or products, rounded and added; then c + that."""
    output, half = Output(options, payloads=False), fmts[0].name == "float16"
    product, running = (Site(number, SINGLE, {"tininess": Tininess.BEFORE}) for number in (PRODUCT, RUNNING))
    output.signed_zeros = True
    total = output.start(c, running)
    terms = output.terms(a, b, fmts, fz16 if half else product)
    for group in groups(terms, 4 if half else 2):
        if half:
            low, high = (output.total(product, pair, [], _pair_sum) for pair in (group[:2], group[2:]))
        else:
            low, high = (output.multiply(product, x) for x in group)
        total = output.add(running, total, output.add(running, low, high))
    return output.deliver(total)


def arm_fp8dot(
    a: Codes,
    b: Codes,
    fmts: Pair,
    ways: int,
    fmt: Format,
    lscale: int = 0,
    saturate: bool = False,
    c: int | None = None,
    **options: Any,
) -> Result:
    """FP8DotAddFP: c and `ways` products times 2^-lscale, one rounding to nearest even."""
    output = Output(options, nan="canonical", payloads=False)
    overflow = Overflow.SATURATE if saturate else Overflow.INFINITY
    fixed = {"rounding": Rounding.NEAREST_EVEN, "overflow": overflow, "daz": False, "ftz": False}
    running = Site(RUNNING, fmt, {**fixed, "tininess": Tininess.BEFORE})
    output.signed_zeros = True
    total = output.start(c, running)
    for group in groups(output.terms(a, b, fmts, False), ways):
        total = output.total(
            running,
            group,
            [total],
            lambda x: (sum(x[:-1], Fraction(0)) * two_to(-lscale) + x[-1], False),
        )
    return output.deliver(total)


def amd_mfma(a: Codes, b: Codes, fmts: Pair, arch: str, group: int, c: int | None = None, **options: Any) -> Result:
    """MFMA in groups: 1 fused; pairs on CDNA1 and CDNA2, which flushes; on CDNA3 cut, floored and rounded, fp8 in halves."""
    flushed = arch == "CDNA2" and group > 1
    fixed: dict[str, Any] = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY}
    fixed |= {"daz": flushed, "ftz": flushed} | ({"tininess": Tininess.AFTER} if flushed else {})
    output = Output(options, nan="canonical", payloads=group == 1)
    product, running = Site(PRODUCT, SINGLE, fixed), Site(RUNNING, SINGLE, fixed)
    total = output.start(c, running)
    terms = output.terms(a, b, fmts, flushed)
    if terms and flushed and total.value.is_zero and total.code != SINGLE.sign_bit:
        total = total._replace(code=0)
    if group == 1:
        for term in terms:
            total = output.fuse(running, term, total)
        return output.deliver(total)
    for products in groups(terms, group):
        if arch == "CDNA3":
            total = output.total(running, products, [total], _floored(products, fmts, total, halves=group == 16))
            continue
        leaves = [output.multiply(product, _unsigned(x)) for x in products]
        low = output.add(running, *leaves[:2])
        total = output.add(
            running, total, low if group == 2 else output.add(running, low, output.add(running, *leaves[2:]))
        )
    return output.deliver(total)


def _unsigned(term: Term) -> Term:
    """The same, but a zero product is +0."""
    if term.x.is_nan or term.y.is_nan or term.is_invalid or not (term.x.is_zero or term.y.is_zero):
        return term
    return FILL


def _floored(terms: Sequence[Term], fmts: Pair, c: Number, halves: bool) -> Callable[[list[Fraction]], Summed]:
    """CDNA3's sum of products and c, which comes last."""

    def of_factor(x: Value, fmt: Format) -> int:
        return exponent_in(fmt, x) if x.magnitude else -126

    def summed(numbers: list[Fraction]) -> Summed:
        *products, addend = numbers
        beyond = {x < 0 for x in products if abs(x) >= two_to(128)}
        if beyond:
            return (None if len(beyond) == 2 else -math.inf if beyond.pop() else math.inf), False
        exponents = [of_factor(x.x, fmts[0]) + of_factor(x.y, fmts[1]) for x in terms]
        lost = []

        def cut(x: Fraction, exponent: int, bits: int, whole: Callable[[Fraction], int]) -> Fraction:
            unit = two_to(exponent - bits)
            lost.append(whole(x / unit) * unit != x)
            return whole(x / unit) * unit

        sums, tops = [], []
        for first in range(2 if halves else 1):
            part = slice(first, None, 2 if halves else 1)
            tops.append(max(exponents[part]))
            sums.append(sum((cut(x, tops[-1], 24, math.trunc) for x in products[part]), Fraction(0)))
        top = max(tops)
        if halves:
            sums = [cut(x, top, 24, math.floor) for x in sums]
        own = of_factor(c.value, SINGLE)
        largest = max(top, own)
        total = cut(sum(sums, Fraction(0)), largest, 31, math.floor)
        if halves and own < largest - 25:
            return total, any(lost) or addend != 0
        return total + cut(addend, largest, 24, math.floor), any(lost)

    return summed
