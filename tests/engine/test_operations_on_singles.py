"""Sums, products and quotients of float32, rounded in every mode, against the plain loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from faster import SERVED, both, left_to, same

from softfloat import bits
from softfloat.engine import elementwise

OPERATIONS = {"add": bits.add, "sub": bits.sub, "mul": bits.mul}
WIDTHS = (1, 5, 15, 16, 17, 23, 29, 52)
COUNT = 6 * 1024 + 77
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


def with_special(random: np.random.Generator, ends: tuple[float, ...], how_many: int = 5) -> Operands:
    """Numbers about 1, and these among them, in either operand or in both at one place, and in all of one block."""
    pair = [numbers(random, 3) for _ in range(2)]
    for x in pair:
        x[random.integers(0, COUNT, how_many)] = random.choice(ends, how_many)
    at = random.integers(0, COUNT, how_many)
    for x in pair:
        x[at] = random.choice(ends, how_many) * random.choice([1, -1], how_many)
        x[2048:3072] = random.choice(ends, 1024)
    return codes(pair[0]), codes(pair[1])


LARGEST, TINY = 3.4028234663852886e38, 2.0**-126
SPECIAL = {
    "zeros": (0.0, -0.0),
    "numbers that cancel": (1.0, -1.0, 0.0),
    "the largest": (LARGEST, LARGEST / 2, 2.0**103),
    "the least normal ones": (TINY, TINY * (1 + 2.0**-23), TINY * 1.5, 2.0**-64),
    "subnormal ones": (TINY / 2, 2.0**-149, TINY),
    "infinities": (np.inf, -np.inf, 1.0),
    "NaN": (np.nan, 1.0),
}
"""Apart, as any of them sends a block to the loop that serves everything."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_same_bits_and_flags(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Callable[..., Any] = OPERATIONS[operation]
    for seed, width in enumerate(WIDTHS):
        random = np.random.default_rng(seed)
        pairs = [tuple(codes(numbers(random, spread)) for _ in range(2)) for spread in (0, 3, 20, 62)]
        pairs += [beside_thresholds(operation, width, seed), *(with_special(random, x) for x in SPECIAL.values())]
        pairs.append((codes(np.ones(COUNT)), codes(2.0 ** -random.uniform(48, 76, COUNT))))
        handed = bits.random_bits(COUNT, sr_bits=width, seed=9)
        handed[random.random(COUNT) < 0.3] = (1 << width) - 1  # of which a bit beyond float64's makes a unit
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
        tiny = tuple(codes(numbers(random, 64) * 2.0**-60) for _ in range(2))
        for x, y in (tiny, *(with_special(random, ends) for ends in SPECIAL.values())):
            how: dict[str, Any] = {"rounding": "stochastic", "seed": 2, **options}
            same(both(monkeypatch, lambda f=function, x=x, y=y, o=how: f(x, y, "float32", **o)))


@SERVED
@pytest.mark.parametrize("operation", OPERATIONS)
def test_ordinary_numbers_are_served(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the blocks in which a rounding hangs on more random bits, and some after two of these in a row."""
    left = left_to(monkeypatch, "_plain_work")
    x, y = (codes(row) for row in np.random.default_rng(1).standard_normal((2, 1 << 18)))
    OPERATIONS[operation](x, y, "float32", rounding="stochastic", seed=1)
    assert sum(left) < x.size / 8


# -- rounded by the CPU ----------------------------------------------------------------------------------------------

ROUNDED: dict[str, Callable[..., Any]] = OPERATIONS | {
    "div": bits.div,
    "sqrt": lambda x, y, fmt, **how: bits.sqrt(x & np.uint32(0x7FFFFFFF), fmt, **how),
    "fma": lambda x, y, fmt, **how: bits.fma(x, y, np.roll(y, 1), fmt, **how),
}
MODES = ("nearest_even", "toward_zero", "toward_positive", "toward_negative", "to_odd", "nearest_away")
RULES: list[dict[str, Any]] = [
    {},
    {"daz": True, "overflow": "saturate"},
    {"ftz": True, "overflow": "nan"},
    {"tininess": "before"},
]


def beside_ties(operation: str, random: np.random.Generator) -> Operands:
    """Exact results half a last bit beyond a number of float32, by a little less or more, and on it."""
    x = 1 + random.integers(0, 1 << 22, COUNT) * 2.0**-22
    if operation in ("add", "sub"):
        y = 2.0**-24 * (1 + random.integers(-2, 3, COUNT) * 2.0**-23) * random.choice([-1, 0, 1], COUNT)
        return codes(x), codes(y)
    near = 1 + random.integers(-3, 4, COUNT) * 2.0**-23
    return codes(near if operation == "mul" else x * near), codes(x * random.choice([0.5, 1.0, -1.5], COUNT))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", ROUNDED)
def test_same_bits_and_flags_of_what_the_cpu_rounds(operation: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Callable[..., Any] = ROUNDED[operation]
    random = np.random.default_rng(len(operation + mode))
    pairs = [tuple(codes(numbers(random, spread)) for _ in range(2)) for spread in (0, 3, 20, 70)]
    pairs += [beside_ties(operation, random), *(with_special(random, x) for x in SPECIAL.values())]
    edges = codes(
        (1 + random.integers(0, 4, COUNT) * 2.0**-23) * 2.0 ** random.choice([-126, -125, -64, -63, 63, 64, 127], COUNT)
    )
    pairs += [(edges, random.permutation(edges)), (edges, edges ^ np.uint32(1 << 31))]
    for x, y in pairs:
        for rules in RULES:
            both_ways = both(monkeypatch, lambda x=x, y=y, r=rules: function(x, y, "float32", rounding=mode, **r))
            same(both_ways)
            monkeypatch.setattr(elementwise, "FAST", True)
            _, seen = function(x, y, "float32", flags="any", rounding=mode, **rules)
            assert seen == np.bitwise_or.reduce(both_ways[0][1])


@SERVED
@pytest.mark.parametrize("mode", MODES[:-1])
@pytest.mark.parametrize("operation", ROUNDED)
def test_ordinary_numbers_are_rounded_by_the_cpu(operation: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_to(monkeypatch, "_plain_work")
    x, y = (codes(row) for row in np.random.default_rng(1).standard_normal((2, 1 << 16)))
    ROUNDED[operation](x, y, "float32", rounding=mode)
    assert not sum(left)
