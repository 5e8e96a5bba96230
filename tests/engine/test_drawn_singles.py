"""Sums and products of float32 that are rounded stochastically, against the plain loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from faster import both, same

from softfloat import bits
from softfloat.engine import elementwise
from softfloat.engine.parameters import fast

OPERATIONS = {"add": bits.add, "sub": bits.sub, "mul": bits.mul}
WIDTHS = (1, 5, 15, 16, 17, 23, 29, 52)
COUNT = 6 * 1024 + 77
SERVED = pytest.mark.skipif(fast().jit.DISABLED, reason="nothing is compiled")
Operands = tuple[np.ndarray, np.ndarray]


def codes(x: np.ndarray) -> np.ndarray:
    """Of float32 numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float32).view(np.uint32)


def numbers(random: np.random.Generator, spread: int) -> np.ndarray:
    """Of any sign, some with few bits, so many binades about 1."""
    x = random.standard_normal(COUNT) * 2.0 ** random.integers(-spread, spread + 1, COUNT)
    few = np.round(x * 64) / 64
    return np.where(random.random(COUNT) < 0.2, few, x)


def beside_thresholds(operation: str, width: int, seed: int) -> Operands:
    """What is dropped of these results is next to what their random bits round up from, by units of its own or none."""
    random, drawn = np.random.default_rng(seed), bits.random_bits(COUNT, sr_bits=width, seed=seed, stream=3)
    fraction = 1 - drawn * 2.0**-width
    large = np.float32(1 + random.integers(0, 1 << 23, COUNT) * 2.0**-23).astype(np.float64)
    if operation == "mul":  # (1 + j ulp)(1 + f / j) is j ulp + f ulp above 1, and a little more
        j = random.integers(1, 1 << 11, COUNT)
        return codes(1 + j * 2.0**-23), codes(1 + fraction / j + random.integers(-2, 3, COUNT) * 2.0**-23)
    small = codes(fraction * 2.0**-23) + random.integers(-2, 3, COUNT).astype(np.uint32)
    small = np.where(drawn == 0, codes(np.full(COUNT, 2.0**-50)), small).astype(np.uint32)
    flip = np.where((random.random(COUNT) < 0.5) != (operation == "sub"), 1 << 31, 0).astype(np.uint32)
    return codes(large) ^ np.uint32(random.integers(2) << 31), small ^ flip


def special(random: np.random.Generator) -> Operands:
    """Zeros of either sign, sums that cancel, the ends of the range, and what is no number, among others."""
    largest, tiny = 3.4028234663852886e38, 2.0**-126
    ends = [
        0.0,
        -0.0,
        largest,
        -largest,
        largest / 2,
        tiny,
        -tiny,
        tiny * (1 + 2.0**-23),
        tiny / 2,
        2.0**-149,
        np.inf,
        -np.inf,
    ]
    some = random.choice([*ends, np.nan, 2.0**103, 2.0**-64, 1.0, -1.0], (2, COUNT))
    x, y = (np.where(random.random(COUNT) < 0.01, special, numbers(random, 3)) for special in some)
    y[100:300], y[1500:1600] = -x[100:300], x[1500:1600]
    y[3000:3100], x[3000:3100], y[4000:4050], x[4000:4100] = 0.0, -0.0, -0.0, 0.0
    return codes(x), codes(y)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_same_bits_and_flags(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Callable[..., Any] = OPERATIONS[operation]
    for seed, width in enumerate(WIDTHS):
        random = np.random.default_rng(seed)
        pairs = [tuple(codes(numbers(random, spread)) for _ in range(2)) for spread in (0, 3, 20, 62)]
        pairs += [beside_thresholds(operation, width, seed), special(random)]
        handed = bits.random_bits(COUNT, sr_bits=width, seed=9)
        for x, y in pairs:
            for how in ({"seed": seed, "stream": 3}, {"random_bits": handed}):
                options: dict[str, Any] = {"rounding": "stochastic", "sr_bits": width, **how}
                both_ways = both(monkeypatch, lambda x=x, y=y, o=options: function(x, y, "float32", **o))
                same(both_ways)
                monkeypatch.setattr(elementwise, "FAST", True)
                _, seen = function(x, y, "float32", flags="any", **options)
                assert seen == np.bitwise_or.reduce(both_ways[0][1])


@pytest.mark.parametrize(
    "options", [{"daz": True}, {"ftz": True}, {"overflow": "saturate", "tininess": "before"}, {"nan": "arm"}]
)
def test_other_rules(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    for function in OPERATIONS.values():
        for x, y in (special(random), tuple(codes(numbers(random, 64) * 2.0**-60) for _ in range(2))):
            how: dict[str, Any] = {"rounding": "stochastic", "seed": 2, **options}
            same(both(monkeypatch, lambda f=function, x=x, y=y, o=how: f(x, y, "float32", **o)))


@SERVED
@pytest.mark.parametrize("operation", OPERATIONS)
def test_ordinary_numbers_are_served(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the blocks in which a rounding hangs on more random bits, and some after two of these in a row."""
    left: list[int] = []
    plain = elementwise._drawn_work

    def watched(job: elementwise.Job) -> elementwise.Work:
        work = plain(job)

        def counted(start: int, stop: int) -> int:
            left.append(stop - start)
            return work(start, stop)

        return counted

    monkeypatch.setattr(elementwise, "_drawn_work", watched)
    x, y = (codes(row) for row in np.random.default_rng(1).standard_normal((2, 1 << 18)))
    OPERATIONS[operation](x, y, "float32", rounding="stochastic", seed=1)
    assert sum(left) < x.size / 8
