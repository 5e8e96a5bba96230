"""Products of float32 operands from those of their parts, against parts and sums restated on fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from softfloat import Environment, accumulators, bits, float32, reference
from softfloat.accumulators import SPLITS, STANDINGS, Split, fma, split, tensor_core
from softfloat.formats import ROSTER
from softfloat.reference import Kind, Value, dots

INVALID = 16
IDS = [f"{x.format} {len(x.products)} {x.scale}" for x in SPLITS]


def restated_parts(code: int, how: Split) -> list[int]:
    """By the words of `Split`, on fractions: what is left is a float32 number, and no rounding has a part in it."""
    fmt, value = ROSTER[how.format], Fraction(reference.decode(code, float32).real)
    parts = []
    for _ in range(how.parts):
        exact = Value(Kind.FINITE, value < 0, abs(value))
        parts.append(reference.round_exact(exact, fmt, rounding=how.rounding)[0])
        value = (value - Fraction(reference.decode(parts[-1], fmt).real)) * 2**how.scale
    return parts


def operands(random: np.random.Generator, *shape: int) -> np.ndarray:
    x = random.standard_normal(shape) * 2.0 ** random.integers(-6, 7, shape)
    return x.astype(np.float32).view(np.uint32)


@pytest.mark.parametrize("how", SPLITS, ids=IDS)
def test_parts(how: Split) -> None:
    codes = operands(np.random.default_rng(1), 300)
    found = np.array(bits.split_parts(codes, how)).T
    for code, parts in zip(codes.tolist(), found.tolist(), strict=True):
        expected = restated_parts(code, how)
        assert [bits.decode(x, how.format) for x in parts] == [bits.decode(x, how.format) for x in expected]


@pytest.mark.parametrize("how", SPLITS, ids=IDS)
def test_products(how: Split) -> None:
    """Passes through the oracle's fused multiply-adds, in the order that the row says."""
    random, fmt = np.random.default_rng(2), ROSTER[how.format]
    a, b, c = operands(random, 3, 5), operands(random, 5, 2), operands(random, 3, 2)
    codes, flags = bits.matmul_split(a, b, how, fma("float32"), c)
    for i, j in np.ndindex(3, 2):
        rows = list(zip(*(restated_parts(int(x), how) for x in a[i]), strict=True))
        columns = list(zip(*(restated_parts(int(x), how) for x in b[:, j]), strict=True))
        totals: dict[int, int | None] = {0: int(c[i, j])}
        raised = 0
        for p, q in how.products:
            level = (p + q) if how.scale else 0
            total, more = dots.fma(rows[p], columns[q], (fmt, fmt), float32, totals.get(level))
            totals[level], raised = total, raised | more
        for level in sorted(totals, reverse=True)[:-1]:
            down = reference.encode(2.0**-how.scale, float32)[0]
            part, first = reference.mul(totals[level], down, float32)
            totals[level - 1], second = reference.add(totals[level - 1], part, float32)
            raised |= first | second
        assert (int(codes[i, j]), int(flags[i, j])) == (totals[0], raised)


def test_more_products_are_nearer() -> None:
    random = np.random.default_rng(3)
    a, b = operands(random, 20, 30), operands(random, 30, 20)
    exact = bits.decode(a, float32) @ bits.decode(b, float32)
    errors = [
        np.abs(bits.decode(bits.matmul_split(a, b, split("bfloat16", n), fma("float32"))[0], float32) - exact).max()
        for n in (1, 3, 6)
    ]
    assert errors[0] > 50 * errors[1] > 500 * errors[2]


def test_hardware_sums_each_product() -> None:
    random = np.random.default_rng(4)
    a, b = operands(random, 4, 16), operands(random, 16, 4)
    how, core = split("tfloat32", 3), tensor_core("A100", "tfloat32")
    (high_a, low_a), (high_b, low_b) = bits.split_parts(a, how), bits.split_parts(b, how)
    total = None
    for x, y in ((low_a, high_b), (high_a, low_b), (high_a, high_b)):
        total, _ = bits.matmul(x, y, "tfloat32", core, total)
    np.testing.assert_array_equal(bits.matmul_split(a, b, how, core)[0], total)


def test_signalling_operands_and_flags() -> None:
    a = np.array([[0x3F800000, 0x7F800001], [0x3F800000, 0x3F800000]])
    b = np.array([[0x3F800000, 0x7FA00000], [0x3F800000, 0x3F800000]])
    codes, flags = bits.matmul_split(a, b, split("bfloat16", 3), fma("float32"))
    assert (flags & INVALID).tolist() == [[16, 16], [0, 16]]
    assert bits.isnan(codes, float32).tolist() == [[True, True], [False, True]]
    assert bits.matmul_split(a, b, split("bfloat16", 3), fma("float32"), flags="any")[1] & INVALID
    for x, y in ((a[0], b), (a, b[:, 0]), (a[0], b[:, 0])):
        one = bits.matmul_split(x, y, split("bfloat16", 1), fma("float32"))
        assert np.shape(one[0]) == np.shape(one[1]) == bits.matmul(x, y, "float32", fma("float32"))[0].shape
        assert (np.asarray(one[1]) & INVALID).any()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: split("bfloat16", 4), ValueError, "'bfloat16', passes=6"),
        (lambda x: split("float16", 3, True), TypeError, "scale"),
        (lambda x: bits.split_parts(x, "bfloat16"), TypeError, "how"),
        (lambda x: bits.matmul_split(x, x, split("bfloat16", 3), fma("float16")), ValueError, "accumulator"),
        (lambda x: bits.matmul_split(x, x, split("bfloat16", 3), "fma"), TypeError, "accumulator"),
        (lambda x: bits.matmul_split(x, x, split("bfloat16", 3), fma("float32"), out=x), TypeError, "out"),
        (lambda x: bits.matmul_split(x, x, split("bfloat16", 3), fma("float32"), rounding="SR"), ValueError, "stoch"),
        (
            lambda x: bits.matmul_split(
                x, x, split("bfloat16", 3), fma("float32"), environment=Environment(rounding="SR", seed=1)
            ),
            ValueError,
            "stochastic",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(np.zeros((2, 2), np.uint32))


def test_rows_have_standings() -> None:
    for row in SPLITS:
        assert row.standing in STANDINGS
        assert split(row.format, len(row.products), row.scale) is row
        assert str(row.parts) in str(row)
    assert "split" in accumulators.__all__
