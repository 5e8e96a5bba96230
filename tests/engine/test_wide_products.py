"""Products of more bits than float32 has, summed in formats of fewer: fast and plain results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faster import both, same, same_counts

from softfloat import Accumulator, bits
from softfloat.accumulators import fma, mul_add, pairwise

STOCHASTIC = {"rounding": "stochastic", "seed": 4}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative", "ftz": True},
    {"rounding": "to_odd", "daz": True},
    {"rounding": "nearest_away"},
    STOCHASTIC,
    STOCHASTIC | {"sr_bits": 5, "daz": True},
]
HOW = [fma("float16"), mul_add("float16"), fma("bfloat16"), mul_add("float8_e5m2"), pairwise("float16")]


def counted(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> None:
    same_counts(both(monkeypatch, lambda: bits.matmul(*arguments, count=True, **options)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", HOW, ids=repr)
def test_products_that_undo_others(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of which nothing is left, or the last bits of one product: what a multiplication lost is more than the sum."""
    rng = np.random.default_rng(3)
    for bits_apart, scale in ((10, 1.0), (23, 1.0), (22, 2.0**-12), (12, 2.0**-25)):
        a, b = rng.standard_normal((12, 60)) * scale, rng.standard_normal((60, 37))
        a[:, 1::2] = -a[:, ::2]
        b[1::2] = b[::2] * (1 + rng.integers(-2, 3, (30, 37)) * 2.0**-bits_apart)
        few = np.round(a / scale * 4) * scale
        for left in (a, few):
            x, y = bits.encode(left, "float32")[0], bits.encode(b, "float32")[0]
            same(both(monkeypatch, lambda x=x, y=y: bits.matmul(x, y, "float32", how, **options)))
            same(both(monkeypatch, lambda x=x, y=y: bits.vecdot(x, y[:, :12].T, "float32", how, **options)))
            counted(monkeypatch, x, y, "float32", how, **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [*OPTIONS, {"rounding": "toward_positive"}], ids=str)
@pytest.mark.parametrize("how", HOW, ids=repr)
def test_negative_zeros_stay(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """-7 * 2^-29 * 2^-11 rounds to -0 in most modes; -0 * 2^-10 adds nothing, and must not make it +0."""
    a = bits.encode(np.tile([-7 * 2.0**-29, -0.0, -0.0], (9, 1)), "float32")[0]
    b = bits.encode(np.tile([[1.6777216 * 2.0**-12], [2.0**-10], [1.2]], (1, 17)), "float32")[0]
    for k in (1, 2, 3):
        x, y = a[:, :k], b[:k]
        same(both(monkeypatch, lambda x=x, y=y: bits.matmul(x, y, "float32", how, **options)))
        same(both(monkeypatch, lambda x=x, y=y: bits.vecdot(x, y[:, :9].T, "float32", how, **options)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", HOW, ids=repr)
def test_the_least_bits_that_float32_has(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products down to its smallest number and beyond, which are nothing but inexact, beside ordinary ones."""
    rng = np.random.default_rng(8)
    for power in (-80, -52, -49, -40):
        a, b = (rng.integers(1 << 23, 1 << 24, shape) * 2.0**-24 for shape in ((10, 40), (40, 35)))
        a[:, ::3] *= 2.0**power
        b[::3] *= 2.0**power
        x, y = bits.encode(a * rng.choice([-1, 1], a.shape), "float32")[0], bits.encode(b, "float32")[0]
        for left, right in ((x, y), (x[:, ::3], y[::3])):
            same(both(monkeypatch, lambda x=left, y=right: bits.matmul(x, y, "float32", how, **options)))
        same(both(monkeypatch, lambda x=x, y=y: bits.vecdot(x, y[:, :10].T, "float32", how, **options)))


@pytest.mark.parametrize("how", [*HOW, mul_add("tfloat32"), pairwise("float8_e4m3fn")], ids=repr)
def test_so_many_roundings_that_16_random_bits_leave_some_open(
    how: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(12)
    x, y = (bits.encode(rng.standard_normal(shape), "float32")[0] for shape in ((90, 300), (300, 100)))
    same(both(monkeypatch, lambda: bits.matmul(x, y, "float32", how, **STOCHASTIC)))
    counted(monkeypatch, x[:40], y, "float32", how, **STOCHASTIC)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", HOW, ids=repr)
def test_operands_of_two_formats(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    for formats in (("float16", "float32"), ("float32", "bfloat16"), ("float32", "tfloat32")):
        x, y = (bits.encode(rng.standard_normal(n), f)[0] for n, f in zip(((20, 90), (90, 33)), formats, strict=True))
        same(both(monkeypatch, lambda x=x, y=y, f=formats: bits.matmul(x, y, f, how, **options)))
