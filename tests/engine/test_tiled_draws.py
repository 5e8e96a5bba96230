"""Sums that the faster loops over tiles round stochastically, against the plain loop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import faster
import numpy as np
import pytest
from softfloat.kernels.sums import target
from tiling_cases import SERVED, STOCHASTIC, both_ways, counted_both_ways, encoded
from unit_cases import drawn

from softfloat import Format, bits
from softfloat.accumulators import (
    Accumulator,
    fma,
    mul_add,
    pairwise,
)
from softfloat.engine import lines


@SERVED
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), fma("bfloat16"), mul_add("bfloat16")], ids=repr)
def test_what_16_random_bits_leave_open(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of few bits hardly ever hang on more; products of 48 do."""
    fmt, rng = how.partials, np.random.default_rng(9)
    for seed in range(4):
        a, b, c = (drawn(rng, fmt, shape, 1.0) for shape in ((8, 32), (32, 16), (8, 16)))
        both_ways(monkeypatch, a, b, fmt, how, c, rounding="stochastic", seed=seed)
    for length in (70, 300):
        a, b = (encoded(rng.standard_normal(shape), "float32") for shape in ((45, length), (length, 50)))
        both_ways(monkeypatch, a, b, "float32", how, rounding="stochastic", seed=length)


@pytest.mark.parametrize("width", [1, 4, 16, 17])
@pytest.mark.parametrize(
    ("how", "fmt"),
    [
        (mul_add("float16"), "float16"),
        (fma("float8_e5m2"), "float16"),
        (pairwise("float16"), "float16"),
        (fma("float32"), "float16"),
        (mul_add("float32"), "float32"),
        (fma("float32"), "float32"),
        (pairwise("float32"), "float32"),
    ],
    ids=repr,
)
def test_fractions_that_random_bits_just_reach(
    how: Accumulator, fmt: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of few bits, which random ones, few as well, often complete exactly; beside sums a little off, by bits far below."""
    rng = np.random.default_rng(width)
    single, few = how.partials.name == "float32", rng.integers(1, 8, (24, 80)) / 8
    a = few * 2.0 ** rng.integers(-12 if single else -6, 1, (24, 80)) * rng.choice([1.0, -1.0], (24, 80))
    b = rng.integers(1, 8, (80, 33)) / 8 + (rng.random((80, 33)) < 0.1) * (2.0**-20 if fmt == "float32" else 2.0**-9)
    x, y = encoded(a, fmt), encoded(b, fmt)
    draw = STOCHASTIC | {"sr_bits": width}
    both_ways(monkeypatch, x, y, fmt, how, bits.encode(np.full((24, 33), 1.5), how.partials)[0], **draw)
    counted_both_ways(monkeypatch, x, y, fmt, how, **draw)
    both_ways(monkeypatch, x, y[:, :24].T, fmt, how, function=bits.vecdot, **draw)


@pytest.mark.parametrize(
    "flushes", [{"daz": True}, {"daz": True, "ftz": True, "sr_bits": 20, "overflow": "saturate"}], ids=str
)
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), fma("float8_e5m2")], ids=repr)
def test_drawn_sums_that_are_flushed(
    how: Accumulator, flushes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products and sums on either side of the smallest normal number, exact and not, c below it; counted as well: what an exact sum
    becomes may read as the zero that was there before."""
    fmt, rng = how.partials, np.random.default_rng(3)
    root = float(fmt.tiny) ** 0.5
    quanta = float(fmt.smallest_subnormal) * np.exp2(rng.integers(0, fmt.mantissa_bits + 3, (24, 33)))
    c = bits.encode(rng.integers(-8, 9, (24, 33)) * quanta, fmt)[0]
    around = rng.standard_normal((24, 70)) * root * np.exp2(rng.integers(-3, 4, (24, 70)))
    few = root * np.exp2(rng.integers(-3, 2, (24, 70))) * rng.integers(-1, 2, (24, 70))
    for a in (around, few):
        x, y = bits.encode(a, fmt)[0], bits.encode(np.vstack([a, a[:9]]).T, fmt)[0]
        both_ways(monkeypatch, x, y, fmt, how, c, **STOCHASTIC, **flushes)
        counted_both_ways(monkeypatch, x, y, fmt, how, c, **STOCHASTIC, **flushes)
        both_ways(monkeypatch, x, x, fmt, how, c[:, 0], function=bits.vecdot, **STOCHASTIC, **flushes)


@pytest.mark.parametrize(
    ("how", "name"),
    [
        (fma("float16"), "float16"),
        (mul_add("bfloat16"), "bfloat16"),
        (fma("float32"), "float32"),
    ],
    ids=str,
)
def test_few_outputs_that_draw_alone_and_in_panels(
    how: Accumulator, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to some outputs each draws its own random numbers, of more a panel does: to the same bits, any of whose length it stops at."""
    fmt, rng = Format.from_name(name), np.random.default_rng(8)
    for outputs, length in ((1, 1), (3, 67), (lines.FEW_DRAWN, 40), (lines.FEW_DRAWN + 1, 9)):
        a, b = (drawn(rng, fmt, (outputs, length), scale) for scale in (1.0, rng.choice([2.0**-8, 1.0, 200.0])))
        c = drawn(rng, how.partials, (outputs,), 1.0)
        for options in (
            STOCHASTIC | {"sr_bits": 3, "daz": True},
            STOCHASTIC | {"sr_bits": 24, "ftz": True, "overflow": "saturate"},
        ):
            for most in (0, lines.FEW_DRAWN, 1 << 20):
                monkeypatch.setattr(lines, "FEW_DRAWN", most)
                both_ways(monkeypatch, a, b, fmt, how, c, function=bits.vecdot, **options)
                both_ways(monkeypatch, a, b[0], fmt, how, **options)
                both_ways(monkeypatch, a, fmt, how, 1, function=bits.cumsum, **options)
            monkeypatch.undo()


@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_outputs_alone_that_hang_on_more_random_bits(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums about 1500, whose fractions have 20 bits: of half a million roundings some eight are not settled by 16 random bits."""
    rng = np.random.default_rng(6)
    a, b = (encoded(x) for x in rng.standard_normal((2, 600, 900)))
    monkeypatch.setattr(lines, "FEW_DRAWN", 1 << 20)
    options = STOCHASTIC | {"sr_bits": 30}
    both_ways(monkeypatch, a, b, "float16", how, encoded(np.full(600, 1500.0)), function=bits.vecdot, **options)
    x = bits.encode(rng.standard_normal((8, 1 << 15)), "float32")[0]
    both_ways(monkeypatch, x, "float32", fma("float32"), 1, function=bits.cumsum, **options)


@SERVED
def test_the_first_rounding_that_hangs_on_more_random_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that decides it is compiled before it is there, and then the sum is done once more, from where it began."""
    monkeypatch.setattr(lines, "PIECE", 1)
    rng, name, how = np.random.default_rng(12), "float32", fma("float32")
    a, b, c = (encoded(rng.standard_normal(shape), name) for shape in ((300, 1500), (1500, 33), (300, 33)))
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (bits.matmul, (a[:40], b, name, how, c[:40]), {}),
        (bits.vecdot, (a, b[:, 0], name, how, c[:, 0]), {}),
        (bits.vecdot, (a, b[:, 0], name, how, c[:, 0]), {"count": True}),
        (bits.cumsum, (a, name, how, 1), {}),
    ]
    for function, arguments, options in calls:
        word, _ = target._spared("rounding")
        word[0] = 0
        faster.both_ways(monkeypatch, function, *arguments, **STOCHASTIC, **options)
        assert word[0] == 1


@SERVED
def test_threads_whose_first_roundings_hang_on_more_random_bits() -> None:
    """Each does its own sum once more."""
    rng = np.random.default_rng(13)
    a, b = (encoded(rng.standard_normal(shape), "float32") for shape in ((96, 400), (400, 96)))
    wanted = bits.matmul(a, b, "float32", fma("float32"), **STOCHASTIC)
    for _ in range(5):
        word, _ = target._spared("rounding")
        word[0] = 0
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(lambda _: bits.matmul(a, b, "float32", fma("float32"), **STOCHASTIC), range(8)):
                faster.same_counts((found, wanted))
