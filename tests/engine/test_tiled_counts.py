"""Additions that the faster loops over tiles count, against the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiling_cases import NANOO, SATURATING, STOCHASTIC, counted_both_ways, encoded
from unit_cases import E5M6, drawn

from softfloat import Format, bits, get_num_threads, set_num_threads
from softfloat.accumulators import (
    Accumulator,
    amp,
    fma,
    mul_add,
    tensor_core,
)
from softfloat.engine import as_environment, lines


@pytest.mark.parametrize(
    "how",
    [fma("float16"), mul_add("float16"), fma("bfloat16"), amp("half"), fma("float32"), mul_add("float32")],
    ids=repr,
)
@pytest.mark.parametrize("options", [{}, STOCHASTIC], ids=["nearest", "stochastic"])
def test_counts_of_long_sums(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """More additions than the words of quick loops count; nearly all inexact, or swamped; ties and tiny sums among them."""
    fmt, rng = how.partials, np.random.default_rng(3)
    noise = rng.standard_normal((2, 1300, 20)) * 2.0 ** rng.integers(-9, 1, (2, 1300, 1))
    a, b = (bits.encode(x, fmt)[0] for x in (noise[0].T + 1, noise[1]))
    counts = counted_both_ways(monkeypatch, a, b, fmt, how, **options)
    assert counts.inexact.max() > 1100 or how.block > 1
    start = np.full((20, 20), bits.encode(4096.0, fmt)[0])
    assert counted_both_ways(monkeypatch, a, b, fmt, how, start, **options).swamped.max() > 30
    counted_both_ways(monkeypatch, a, np.where(noise[1] > 1, fmt.max_code, b).astype(fmt.dtype), fmt, how, **options)


@pytest.mark.parametrize("options", [{}, {"environment": SATURATING}, {"environment": NANOO}], ids=str)
def test_counted_stores_that_overflow(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small operands that add up to more than a half, with none so small that a bit would be lost."""
    a, b = np.full((20, 400), 30.0), np.full((400, 33), np.repeat([0.0, 300.0, -280.0], 11))
    found = counted_both_ways(monkeypatch, encoded(a), encoded(b), "float16", amp("half"), **options)
    assert (found.overflowed > 0).any()
    assert (found.overflowed == 0).any()


def test_counts_of_drawn_sums_that_become_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a format has no infinities, what overflowed is NaN, and counts as one that did."""
    fmt = Format.from_name("float8_e4m3fn")
    a = drawn(np.random.default_rng(2), fmt, (24, 40), 60.0)
    counts = counted_both_ways(monkeypatch, a, a.T, fmt, fma(fmt), **STOCHASTIC)
    assert counts.overflowed.max() == 1


@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
@pytest.mark.parametrize("name", ["bfloat16", "float32"])
@pytest.mark.parametrize("function", [bits.matmul, bits.vecdot])
def test_counted_sums_that_overflow_float32(
    how: Accumulator, name: str, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of either sign, half of the rows; after an overflow nothing is inexact any more."""
    fmt, rng = Format.from_name(name), np.random.default_rng(4)
    a, b = (rng.uniform(1, 1.9, (24, 60)) * 2.0**62 for _ in range(2))
    a *= rng.choice([-1.0, 1.0], (24, 1))
    a[:, ::7] = 0.0
    a[5:, 30:] = a[:19, 30:] * -1.0
    a[12:] *= 2.0**-20
    a, b = (bits.encode(x, fmt)[0] for x in (a, b))
    c = bits.encode(rng.uniform(-1, 1, 24) * 2.0**127.9, "float32")[0]
    if function is bits.matmul:
        b, c = b.T.copy(), np.broadcast_to(c, (24, 24))
    counts = counted_both_ways(monkeypatch, a, b, fmt, how, c, function=function)
    assert set(np.unique(counts.overflowed)) == {0, 1}
    assert np.isinf(counts.largest).any()
    assert np.isinf(counts.smallest).any()


@pytest.mark.parametrize("how", [fma("float16"), mul_add("bfloat16"), mul_add("float8_e5m2")], ids=repr)
@pytest.mark.parametrize("rounding", ["nearest_even", "to_odd", "stochastic"])
def test_counts_of_sums_whose_overflows_are_nan(
    how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of the upper rows overflow, some of them late; NaN is neither the least nor the greatest."""
    fmt, rng = how.partials, np.random.default_rng(6)
    x = rng.uniform(0.5, 1.0, (2, 40, 36)) * np.sqrt(fmt.max / 3)
    x[:, 20:] *= 2.0**-4
    x[0] *= rng.choice([-1.0, 1.0], (40, 1))
    a, b = (bits.encode(part, fmt)[0] for part in x)
    rule: dict[str, Any] = {"rounding": rounding, "overflow": "nan", "seed": 3}
    rule |= {"sr_bits": 20} if rounding == "stochastic" else {}
    for function, other in ((bits.matmul, b.T.copy()), (bits.vecdot, b)):
        counts = counted_both_ways(monkeypatch, a, other, fmt, how, function=function, **rule)
        assert set(np.unique(counts.overflowed)) == {0, 1}
        assert np.isfinite(counts.largest).all()
        assert np.isfinite(counts.smallest).all()


@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
@pytest.mark.parametrize("width", [5, 16, 24])
def test_counts_of_float32_sums_that_draw(how: Accumulator, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of operands of float32 and of half; small integers make exact sums, and sums that hang on few random bits."""
    rng = np.random.default_rng(width)
    for name in ("float32", "float16"):
        fmt = Format.from_name(name)
        a, b = (drawn(rng, fmt, (26, 50), 1.0) for _ in range(2))
        a[:9], b[:9] = (bits.encode(rng.integers(-3, 4, (9, 50)), fmt)[0] for _ in range(2))
        c = bits.encode(rng.integers(-4, 5, 26) * 2.0**22, "float32")[0]
        rule: dict[str, Any] = STOCHASTIC | {"sr_bits": width}
        counted_both_ways(monkeypatch, a, b.T.copy(), fmt, how, np.broadcast_to(c, (26, 26)), **rule)
        counted_both_ways(monkeypatch, a, b, fmt, how, c, function=bits.vecdot, **rule)


@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), fma("float8_e5m2")], ids=repr)
def test_sums_on_the_way_that_read_as_zero(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the smallest normal number is left of two, and the next turn, quick where additions are counted, must take it for zero."""
    fmt = how.partials
    large = 4 * fmt.tiny
    b = np.tile(bits.encode([[large], [-large + fmt.tiny / 2]], fmt)[0], (6, 32))
    a = np.full((16, 12), bits.encode(1.0, fmt)[0])
    counts = counted_both_ways(monkeypatch, a, b, fmt, how, daz=True, **STOCHASTIC)
    assert not counts.inexact.any()


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "stochastic"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float32"])
def test_counted_sums_that_only_a_product_makes_inexact(
    name: str, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fmt = Format.from_name(name)
    odd, one = (bits.encode(x, fmt)[0] for x in (1 + fmt.eps, 1.0))
    a, b = np.full((16, 3), one, fmt.dtype), np.zeros((3, 32), fmt.dtype)
    a[:, 1], b[1] = odd, odd
    found = bits.matmul(a, b, fmt, mul_add(name), count=True, rounding=rounding, seed=1)
    counts = counted_both_ways(monkeypatch, a, b, fmt, mul_add(name), rounding=rounding, seed=1)
    assert not counts.inexact.any()
    assert (found[1] == 1).all()


@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), amp("half"), tensor_core("H100")], ids=repr)
def test_special_operands_anywhere_in_a_counted_line(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces with a NaN or an infinity go the plain way, the others do not."""
    rng, fmt = np.random.default_rng(5), Format.from_name("float16")
    a, b = (drawn(rng, fmt, (70, 32), 1.0) for _ in range(2))
    monkeypatch.setattr(lines, "PIECE", 1 << 8)
    for special in bits.encode(np.array([np.inf, -np.inf, np.nan]), fmt)[0]:
        for output, k in ((0, 0), (69, 31), (31, 17), (32, 16), (64, 5)):
            for operand in (a, b):
                before = operand[output, k]
                operand[output, k] = special
                for options in ({}, as_environment(STOCHASTIC)):
                    counted_both_ways(monkeypatch, a, b, fmt, how, function=bits.vecdot, **options)
                operand[output, k] = before


@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add("bfloat16"), mul_add("float32"), amp("half"), tensor_core("H100")], ids=repr
)
def test_counts_of_long_lines_by_any_number_of_threads(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """More additions than words count; nearly all inexact, or swamped; operands wherever they lie."""
    name = "bfloat16" if how.partials.name == "bfloat16" else "float16"
    fmt, rng = Format.from_name(name), np.random.default_rng(6)
    noise = rng.standard_normal((2, 70, 2600)) * 2.0 ** rng.integers(-9, 1, (2, 1, 2600))
    a, b = (bits.encode(x, fmt)[0] for x in (noise[0] + 1, noise[1]))
    before = get_num_threads()
    try:
        for count in (1, 2):
            set_num_threads(count)
            for options in ({}, as_environment(STOCHASTIC)):
                x, y = a[:, ::2], b[::-1, 1300:]
                found = counted_both_ways(monkeypatch, x, y, fmt, how, function=bits.vecdot, **options)
                assert found.inexact.max() > (1023 if options else 1100) or how.block > 1  # what a word holds, or more
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("options", [{}, {"daz": True}, STOCHASTIC], ids=["nearest", "daz", "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add(E5M6), fma("float8_e5m2")], ids=repr)
def test_products_so_small_that_float32_loses_them_are_swamped(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^12 and products of 2^-20, with halves of a last place among them, whose turns are done with care."""
    fmt = how.partials
    terms = np.tile([2.0**-20, -(2.0**-20), 2.0**-30, 2.0**11 * fmt.eps, 0.0, -(2.0**-20)], 6)
    a, b = np.ones((16, 37)), np.repeat([[2.0**12], *terms[:, np.newaxis]], 33, 1)
    a[3], a[5, ::2] = -1.0, -1.0
    counts = counted_both_ways(monkeypatch, *(encoded(x, "bfloat16") for x in (a, b)), "bfloat16", how, **options)
    assert counts.swamped.max() >= 6
