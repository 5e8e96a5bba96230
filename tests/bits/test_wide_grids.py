"""Grids of sums in float64 by the loops that are generated, against sums one operation after another by integers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from faster import SERVED, both, same, same_counts

from softfloat import Accumulator, Format, bits, float64
from softfloat.accumulators import compensated, fma, mul_add, pairwise
from softfloat.engine import wide_sums

MODES = (
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "toward_zero", "toward_positive", "toward_negative", "to_odd",
)  # fmt: skip
HOW = [
    fma(float64),
    mul_add(float64),
    pairwise(float64),
    *(compensated(float64, method) for method in ("kahan", "neumaier", "two_term")),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative", "ftz": True, "daz": True},
    {"overflow": "saturate"},
]
SHAPES = [((9, 23, 11), 1.0), ((2, 3, 40, 10), 2.0**200), ((17, 5, 8), 2.0**-200)]


def operands(shape: tuple[int, ...], scale: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers whose sums are exact, tied, cancelled, or anything; and what they begin with."""
    random = np.random.default_rng(seed)
    *many, rows, length, columns = shape
    a, b = random.standard_normal((*many, rows, length)), random.standard_normal((*many, length, columns))
    a[..., 0, :], b[..., 0] = np.round(a[..., 0, :] * 8), np.round(b[..., 0] * 8)
    tied = 2.0 ** random.integers(-54, 2, (*many, length)) * random.choice([-1.0, 1.0], (*many, length))
    a[..., 1, :], b[..., 1] = tied, 2.0 ** random.integers(-1, 2, (*many, length))
    a[..., 2, 1::2] = -a[..., 2, : length // 2 * 2 : 2]
    b[..., 1::2, 2] = b[..., : length // 2 * 2 : 2, 2]
    start = np.round(random.standard_normal((*many, rows, columns)) * 4)
    return tuple(x.view(np.uint64) for x in (a * scale, b * scale, start * scale**2))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("how", HOW, ids=repr)
def test_same_bits_flags_and_counts(how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, (shape, scale) in enumerate(SHAPES):
        a, b, c = operands(shape, scale, seed)
        given: dict[str, Any] = {"rounding": rounding, "daz": seed == 1}
        for start in (None, c):
            product = partial(bits.matmul, a, b, float64, how, start, **given)
            same(both(monkeypatch, product))
            if len(shape) == 3:
                same_counts(both(monkeypatch, partial(product, count=True)))
        same(both(monkeypatch, partial(bits.sum, a, float64, how, -1, **given)))


@pytest.mark.parametrize("how", HOW, ids=repr)
def test_numbers_beyond_what_loops_serve(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """In operands, or in what sums begin with; in all products of a batch, or in one."""
    a, b, c = operands((3, 5, 9, 10), 1.0, 4)
    for odd in (2.0**-1060, 2.0**-520, 2.0**600, 1.7e308, np.inf, -np.inf, np.nan):
        for place in range(3):
            x = [z.copy() for z in (a, b, c)]
            x[place].view(np.float64)[1, 2, 3] = odd
            for options in OPTIONS:
                for of_one in (x, [z[1] for z in x]):
                    same(both(monkeypatch, partial(bits.matmul, *of_one[:2], float64, how, of_one[2], **options)))


def test_operands_and_outputs_of_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them one of 16 bits whose numbers float32 has not: its codes once were read as numbers."""
    long, short, random = Format("e11m40", 11, 40), Format("e11m4", 11, 4), np.random.default_rng(8)
    x, y = random.standard_normal((12, 30)), random.standard_normal((30, 9))
    for first, second, out in (
        (short, "float16", float64),
        (long, "float32", float64),
        ("float16", float64, "float16"),
        (float64, long, long),
    ):
        a, b = bits.encode(x, first)[0], bits.encode(y, second)[0]
        for options in OPTIONS:
            for how in (fma(float64), mul_add(float64)):
                given: dict[str, Any] = options | {"out_format": out}
                same(both(monkeypatch, partial(bits.matmul, a, b, (first, second), how, **given)))


@SERVED
def test_ordinary_numbers_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no integers are asked: of one product, whatever its size, and of many."""

    def refused(*_: Any) -> None:
        raise AssertionError("a sum was done one operation after another")

    monkeypatch.setattr(wide_sums, "_sum", refused)
    random = np.random.default_rng(1)
    for how in HOW:
        for rounding in MODES:
            for shape in ((3, 4), (60, 70), (2, 5, 6)):
                a = random.standard_normal(shape).view(np.uint64)
                bits.matmul(a, a.swapaxes(-1, -2).copy(), float64, how, rounding=rounding)
