"""Sums in pairs, by generated loops and level by level, against the plain loop and the oracle."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest
from faster import both_ways

from softfloat import bits, float16, float32, reference
from softfloat.accumulators import pairwise
from softfloat.engine import described
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


HALF, BF16, SINGLE, E5M2, E4M3 = "float16", "bfloat16", "float32", "float8_e5m2", "float8_e4m3fn"


def test_tiles_that_count_more_than_their_words_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2^14 products every sum of which swamps: 2048 and 1/4, in turn; sums of 2^5 and more of the former overflow."""
    a = np.tile(np.array([0x6800, 0x3400], np.uint16), (9, 1 << 13))
    b = np.full((a.shape[1], 3), 0x3C00, np.uint16)
    monkeypatch.setattr(described, "LEAST_WORK", 0)
    codes, flags, counts = bits.matmul(a, b, HALF, pairwise(HALF), count=True)
    assert set(counts.swamped.flat) == {1 << 13}
    assert set(counts.overflowed.flat) == {1 << 8}
    assert set(counts.inexact.flat) == {(1 << 13) + (1 << 8)}
    assert set(codes.flat) == {0x7C00}
    assert set(flags.flat) == {5}
    same_counts(monkeypatch, bits.matmul, a, b, HALF, pairwise(HALF))


def test_codes_below_the_normal_numbers_of_a_format_without_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read as zero: a sum of one of them is none of them, and nothing swamps one."""
    fmt = Format("e4m3_gap", exponent_bits=4, mantissa_bits=3, subnormals=False)
    assert bits.sum(np.array([0x03], np.uint8), fmt, pairwise(fmt))[0] == 0x00
    codes = np.random.default_rng(1).integers(0, 0x10, (40, 9)).astype(fmt.dtype) | np.uint8(0x80)
    for axis in (0, 1):
        same_counts(monkeypatch, bits.sum, codes, fmt, pairwise(fmt), axis)
    same_counts(monkeypatch, bits.matmul, codes, np.ascontiguousarray(codes.T), fmt, pairwise(fmt))


def same_counts(monkeypatch: pytest.MonkeyPatch, function: Any, *arguments: Any, **options: Any) -> None:
    """The same, with counts."""
    both_ways(monkeypatch, function, *arguments, count=True, **options)


def test_columns_that_count_more_than_their_words_hold() -> None:
    """Of two outputs' first level more than 2^10 rows of a thousand columns, all of whose additions are inexact and swamped."""
    x = np.empty((1 << 22, 2), np.uint16)
    x[0::2], x[1::2] = 0x6800, 0x3400  # 2048 and 1/4: sums of 2^5 and more of the former overflow
    codes, flags, counts = bits.sum(x, "float16", pairwise("float16"), 0, count=True)
    assert counts.additions == 1 << 22
    assert set(counts.swamped) == {1 << 21}
    assert set(counts.overflowed) == {1 << 16}
    assert set(counts.inexact) == {(1 << 21) + (1 << 16)}
    assert set(codes) == {0x7C00}
    assert set(flags) == {5}
