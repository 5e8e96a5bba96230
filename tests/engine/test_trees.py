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
from softfloat.engine import available, described, generated
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
TILED: list[tuple[str, str, dict[str, Any]]] = [
    (HALF, HALF, {}),
    (HALF, E5M2, {"rounding": "toward_negative", "overflow": "saturate", "tininess": "before"}),
    (HALF, HALF, {"rounding": "to_odd", "daz": True, "ftz": True}),
    (BF16, BF16, {}),
    (BF16, E4M3, {"rounding": "toward_zero", "overflow": "nan"}),
    (SINGLE, BF16, {"rounding": "toward_positive"}),
    (SINGLE, SINGLE, {"out_format": BF16}),
    (SINGLE, SINGLE, {"rounding": "nearest_away", "overflow": "saturate"}),
    (E4M3, E4M3, {"daz": True}),
    ("tfloat32", BF16, {"rounding": "toward_negative"}),
    ("float8_e4m3fnuz", "float8_e4m3fnuz", {"rounding": "nearest_away"}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("fmt", "name", "options"), TILED, ids=str)
def test_tiles(fmt: str, name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole subtrees, with an odd one or some leaves left over, or none; overflows, tiny products, zeros of either sign, counted or not.

    Of longer sums none is exact, for then quicker steps go on; some terms are next to nothing beside others.
    """
    monkeypatch.setattr(described, "LEAST_WORK", 0)
    given, how, rng = Format.from_name(name), pairwise(fmt), np.random.default_rng(11)
    sums, served = Format.from_name(fmt), watched(monkeypatch)
    for length, scale in ((32, 1.0), (64, 2.0**-9), (97, 1.0), (165, 30.0), (31, 1.0), (224, 1000.0), (3, 2.0**-7)):
        a, b = (numbers(rng, given, shape, scale, length > 100) for shape in ((9, length), (length, 17)))
        if length < 100:
            a[3], b[:, 4] = bits.encode(-0.0, given)[0], 0
        a[5, : length // 2] = given.max_code if length == 224 else a[5, 0]
        c = numbers(rng, sums, (9, 17), scale)
        for start in (None, c, np.full_like(c, bits.encode(-0.0, sums)[0])):
            both_ways(monkeypatch, bits.matmul, a, b, given, how, start, **options)
            same_counts(monkeypatch, bits.matmul, a, b, given, how, start, **options)
    assert len(served) > 25 or not all(available())


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The descriptions of sums that generated loops do from now on."""
    served, made = [], generated.Job.__init__

    def make(job: Any, what: Any, *arguments: Any) -> None:
        served.append(what)
        made(job, what, *arguments)

    monkeypatch.setattr(generated.Job, "__init__", make)
    return served


def numbers(
    rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], scale: float, apart: bool = False
) -> np.ndarray[Any, Any]:
    """Codes about as large as `scale`, a part of them small integers times it, whose sums tie and cancel; or far smaller (`apart`)."""
    x = np.where(rng.random(shape) < 0.5, rng.standard_normal(shape), rng.integers(-3, 4, shape))
    if apart:
        x = rng.standard_normal(shape) * np.exp2(-rng.choice([0, 0, 5, 11], shape))
    codes: np.ndarray[Any, Any] = bits.encode(x * scale, fmt, overflow="saturate")[0]
    return codes


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


DRAWN: list[tuple[str, str, dict[str, Any]]] = [
    (HALF, HALF, {"sr_bits": 24}),
    (BF16, E4M3, {"sr_bits": 16, "overflow": "saturate"}),
    (E5M2, E5M2, {"sr_bits": 5, "overflow": "nan"}),
    (HALF, E5M2, {"sr_bits": 52, "daz": True, "ftz": True}),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("fmt", "name", "options"), DRAWN, ids=str)
def test_tiles_that_draw_and_count(
    fmt: str, name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole groups of leaves, and some left over; overflows, tiny products, sums that hang on further random bits, with c and without."""
    given, how, rng, served = Format.from_name(name), pairwise(fmt), np.random.default_rng(12), watched(monkeypatch)
    rule = options | {"rounding": "stochastic", "seed": 7}
    for length, scale in ((8, 2.0**-8), (40, 1.0), (93, 30.0), (5, 2.0**-7), (2300, 1.0)):
        a, b = (numbers(rng, given, shape, scale) for shape in ((9, length), (length, 17)))
        c = numbers(rng, how.partials, (9, 17), scale)
        for start in (None, c):
            same_counts(monkeypatch, bits.matmul, a, b, given, how, start, **rule)
        same_counts(monkeypatch, bits.vecdot, a, a[::-1], given, how, c[:, 0], **rule)
        if given == how.partials:
            same_counts(monkeypatch, bits.sum, a, given, how, 1, **rule)
    assert len(served) > 12 or not all(available())


MODES: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative", "overflow": "saturate"},
    {"daz": True},
    {"ftz": True, "rounding": "nearest_away"},
    {"daz": True, "ftz": True, "overflow": "nan"},
]
"""With those that flush, nothing but the plain loop counted once."""


def operand(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Codes of zeros, small integers, and numbers whose products are tiny, ordinary, or overflow."""
    scale = rng.choice([float(fmt.tiny) ** 0.5, 1.0, float(fmt.max) ** 0.5 / 2])
    x = rng.standard_normal(shape) if rng.random() < 0.6 else rng.integers(-3, 4, shape)
    codes: np.ndarray[Any, Any] = bits.encode(np.where(rng.random(shape) < 0.1, 0, x * scale), fmt)[0]
    return codes


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", ["float16", "float32", "tfloat32", "float8_e4m3fnuz"])
def test_counts(name: str, mode: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids and lines of odd sizes, of few outputs and many, with c and without, by levels and by the plain loop."""
    fmt, rng, served = Format.from_name(name), np.random.default_rng(len(str(mode))), watched(monkeypatch)
    monkeypatch.setattr(described, "LEAST_WORK", 0)
    shapes = [(5, 9, 7), (1, 70, 1), (33, 2, 40), (70, 33, 3), (40, 1, 5), (3, 16, 1100), (2, 2100, 1)]
    for rows, length, columns in shapes * 2:
        a, b = operand(rng, fmt, (rows, length)), operand(rng, fmt, (length, columns))
        c = operand(rng, fmt, (rows, columns)) if rng.random() < 0.5 else None
        for function, arguments in ((bits.matmul, (a, b)), (bits.vecdot, (a, np.broadcast_to(b[:, 0], a.shape)))):
            start = c if c is None or function is bits.matmul else c[:, 0]
            same_counts(monkeypatch, function, *arguments, fmt, pairwise(fmt), start, **mode)
        for axis in (0, 1):
            same_counts(monkeypatch, bits.sum, a, fmt, pairwise(fmt), axis, **mode)
    assert len(served) >= 14 or not all(available())


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
