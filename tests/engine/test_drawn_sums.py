"""Sums in pairs and exact ones, rounded stochastically: the faster ways against the plain loop, to the bit and the flag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from softfloat import Environment, Format, Position, bits, engine, get_num_threads, set_num_threads
from softfloat.accumulators import Accumulator, exact
from softfloat.engine import elementwise, products, small

SERVED = pytest.mark.skipif(not all(engine.available()), reason="needs FMA and F16C, and the JIT")
STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 7}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"sr_bits": 5, "overflow": "saturate"},
    {"sr_bits": 16, "tininess": "before"},
    {"environment": Environment(**STOCHASTIC, sr_bits=20, overflow="nan", nan="x86", replica=3)},
    {"sr_bits": 9, "sr_method": "half"},
    {"seed": 2**63 + 1, "stream": 2**40 + 5, "out_format": "float8_e5m2"},
]
EXACT = [
    (exact("float16"), "float16"),
    (exact("bfloat16"), "float16"),
    (exact("float32"), "float16"),
    (exact("float32"), "float32"),
    (exact("float8_e4m3fn"), "float8_e5m2"),
]


def drawn(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], scale: float) -> np.ndarray[Any, Any]:
    """Codes of zeros, of numbers some binades apart, and at times of small integers, whose sums are exact."""
    x = rng.standard_normal(shape) * scale
    if rng.random() < 0.2:
        x = np.round(4 * x / scale) * (scale / 4)
    x = x * np.exp2(rng.integers(-3, 4, shape) * rng.integers(0, 3))
    codes: np.ndarray[Any, Any] = bits.encode(np.where(rng.random(shape) < 0.1, 0, x), fmt, overflow="saturate")[0]
    return codes


def both_ways(*arguments: Any, function: Any = bits.matmul, **options: Any) -> Any:
    """The faster way's result, which is the plain loop's."""
    options = options if "environment" in options else STOCHASTIC | options
    with pytest.MonkeyPatch.context() as patch:
        for name in ("product", "total"):
            patch.setattr(small, name, lambda *_: None)
        quick = function(*arguments, **options)
        patch.setattr(elementwise, "FAST", False)
        plain = function(*arguments, **options)
    for one, other in zip(quick, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    return quick


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = get_num_threads()
    set_num_threads(request.param)
    yield request.param
    set_num_threads(before)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("how", "name"), EXACT, ids=str)
def test_exact_sums(how: Accumulator, name: str, options: dict[str, Any]) -> None:
    """Grids and lines of odd sizes, with c and without."""
    fmt = Format.from_name(name)
    rng = np.random.default_rng(len(str(options)))
    for outputs, length, scale in ((5, 7, 1.0), (70, 67, 2.0**-9), (3, 1, 300.0), (2, 40, 2.0**-12), (4, 0, 1.0)):
        a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
        c = drawn(rng, how.partials, (outputs,), scale)
        both_ways(a, b, fmt, how, function=bits.vecdot, **options)
        both_ways(a, b, fmt, how, c, function=bits.vecdot, **options)
        both_ways(a[-37:], b.T, fmt, how, c, **options)
        both_ways(a, fmt, how, 1, function=bits.sum, **options)


def test_exact_sums_whose_terms_cancel() -> None:
    """All that is left is the smallest term, or nothing; sums far below the others' last bits."""
    rng = np.random.default_rng(8)
    a, b = (
        rng.integers(0, 0x7C00, (20, 40), dtype=np.uint16) | rng.integers(0, 2, (20, 40), dtype=np.uint16) << 15
        for _ in "ab"
    )
    for how in (exact("float16"), exact("float32")):
        for more in (0, 1):
            x, y = np.hstack([a, a ^ 0x8000, a[:, :more]]), np.hstack([b, b, b[:, :more]])
            both_ways(x, y, "float16", how, function=bits.vecdot)
            both_ways(x, y.T, "float16", how)


@pytest.mark.parametrize("how", [exact("float16")], ids=repr)
def test_blocks_of_a_larger_result(how: Accumulator) -> None:
    """A block draws what the whole draws there, by both ways."""
    rng = np.random.default_rng(3)
    a, b = drawn(rng, how.partials, (40, 37), 1.0), drawn(rng, how.partials, (37, 50), 1.0)
    whole = both_ways(a, b, "float16", how)
    for rows, columns in ((slice(3, 29), slice(5, 44)), (slice(7, 8), slice(0, 50)), (slice(0, 40), slice(9, 10))):
        position = Position((rows.start, columns.start), (40, 50))
        block = both_ways(a[rows], b[:, columns], "float16", how, position=position)
        for one, other in zip(block, whole, strict=True):
            np.testing.assert_array_equal(one, other[rows, columns])


@pytest.mark.parametrize("how", [exact("float16")], ids=repr)
def test_threads(how: Accumulator, threads: int) -> None:
    rng = np.random.default_rng(4)
    a, b = drawn(rng, how.partials, (90, 70), 1.0), drawn(rng, how.partials, (70, 130), 1.0)
    both_ways(a, b, "float16", how)
    both_ways(np.tile(a, (20, 1)), np.tile(a, (20, 1)), "float16", how, function=bits.vecdot)


@SERVED
@pytest.mark.parametrize("how", [exact("float16"), exact("float32")], ids=repr)
def test_served(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that silently went the plain way would test nothing."""
    monkeypatch.setattr(products, "_plain", None)
    a = drawn(np.random.default_rng(1), Format.from_name("float16"), (130, 30), 1.0)
    bits.matmul(a, a.T, "float16", how, **STOCHASTIC)
    bits.vecdot(a, a, "float16", how, **STOCHASTIC)
    bits.sum(a, "float16", how, 1, **STOCHASTIC)
