"""Sums in pairs, level by level: products of wide operands are rounded once."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

from softfloat import bits, float16, float32, reference
from softfloat.accumulators import pairwise
from softfloat.engine.arguments import has_nan, is_nan
from softfloat.formats import ROSTER, Format
from softfloat.reference import dots


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0x00000002], [0x00800000], (0x0000, 3)),  # 2^-274: below the carrier's own range
        ([0x3F800001], [0x3F800FFF], (0x3C01, 1)),  # just above a tie that float32 would round it to
        ([0x3F800000, 0x00000002], [0x7F800000, 0x00800000], (0x7C00, 3)),
    ],
)
def test_products_of_float32_in_half(a: list[int], b: list[int], expected: tuple[int, int]) -> None:
    code, flags = bits.vecdot(np.array(a, np.uint32), np.array(b, np.uint32), "float32", pairwise("float16"))
    assert (code, flags) == expected
    assert dots.pairwise(a, b, (float32, float32), float16) == expected


@pytest.mark.parametrize("fmt", ROSTER.values(), ids=str)
def test_a_nan_anywhere_is_found(fmt: Format) -> None:
    """Every code of few bits, of more those beside the ends: alone, among others, in a view that repeats it."""
    ends = [0, fmt.max_code, fmt.spec.infinity, fmt.spec.nan_first, fmt.sign_bit, fmt.sign_bit | fmt.spec.nan_first]
    near = {x + step for x in ends if x >= 0 for step in (-1, 0, 1)}
    last = (1 << fmt.bits) - 1
    tried = range(last + 1) if fmt.bits <= 8 else sorted({x for x in near if 0 <= x <= last} | {last})
    for code in tried:
        one = np.full((1, 1), code, fmt.dtype)
        among = np.zeros((5, 9), fmt.dtype)
        among[3, 7] = code
        wanted = bool(is_nan(one, fmt)[0, 0])
        for codes in (one, among, among.T, among[::-1, ::2], np.broadcast_to(one, (4, 3)), among[3:4, 7:8]):
            assert has_nan(codes, fmt) is bool(np.any(is_nan(codes, fmt)))
        assert has_nan(np.broadcast_to(one, (2, 70)), fmt) is wanted
        assert not has_nan(one[:0], fmt)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float16", "float32"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 31, 64, 65])
def test_pairs_wherever_they_lie(name: str, count: int) -> None:
    """Sums along either axis, of copies, of views backwards and of every other number."""
    fmt, rng = Format.from_name(name), np.random.default_rng(count)
    wide = bits.encode(rng.standard_normal((6, 2 * count)), fmt)[0]
    for x in (wide[:, :count], np.ascontiguousarray(wide[:, :count]), wide[:, ::2], wide[:, count - 1 :: -1]):
        found = [bits.sum(view, fmt, pairwise(fmt), axis) for view, axis in ((x, 1), (x.T, 0), (np.array(x.T), 0))]
        for row in range(6):
            wanted, raised = sum_in_pairs([int(code) for code in x[row]], fmt)
            for codes, flags in found:
                assert (int(codes[row]), int(flags[row])) == (wanted, raised)


def sum_in_pairs(codes: list[int], fmt: Format) -> tuple[int, int]:
    """By the oracle, level by level; an odd one goes up as it is."""
    seen = 0
    while len(codes) > 1:
        sums = [reference.add(x, y, fmt) for x, y in zip(codes[::2], codes[1::2], strict=False)]
        seen |= functools.reduce(operator.or_, (flags for _, flags in sums))
        codes = [code for code, _ in sums] + codes[len(codes) // 2 * 2 :]
    return codes[0], seen
