"""Float64 numbers that become a short format's by way of float32, cut toward zero there, against the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faster import SERVED, both, left_to, same

import softfloat
from softfloat import ROSTER, Format, bits, get_num_threads, set_num_threads
from softfloat.engine import elementwise

MODES = (
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "toward_zero", "toward_positive", "toward_negative", "to_odd",
)  # fmt: skip
FORMATS = [
    ROSTER["float16"],
    ROSTER["bfloat16"],
    ROSTER["tfloat32"],
    ROSTER["float8_e4m3fn"],
    ROSTER["float8_e5m2fnuz"],
    ROSTER["float8_e8m0fnu"],
    Format("e8m21", exponent_bits=8, mantissa_bits=21),
    Format("e8m3_tiny", exponent_bits=8, mantissa_bits=3, bias=170),
    Format("e6m9_no_subnormals", exponent_bits=6, mantissa_bits=9, subnormals=False),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"tininess": "before", "overflow": "saturate"},
    {"daz": True, "nan": "arm"},
    {"ftz": True, "tininess": "before", "nan": "x86"},
]


def numbers(fmt: Format, count: int, seed: int) -> np.ndarray:
    """Next to the format's numbers and to what lies between two of them, by as little as float64 has; beyond its ends; and any."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << fmt.bits, count).astype(fmt.dtype)
    x = bits.decode(codes, fmt)
    x = np.where(np.isfinite(x), x, 1.5)
    ulp = np.maximum(np.abs(x) * fmt.eps, fmt.smallest_subnormal)
    x = x + ulp * random.choice([0, 0.5, 0.25, 1 / 3], count)
    x = np.nextafter(x, random.choice([-np.inf, np.inf], count), where=random.random(count) < 0.7, out=x)
    any_ = random.standard_normal(count) * 2.0 ** random.integers(-125, 127, count)
    ends = random.choice(
        [fmt.max, fmt.max * 1.01, 3.4028234663852886e38, 3.40282357e38, np.inf, 0.0, -0.0, 2.0**-126], count
    )
    x = np.select([random.random(count) < 0.1, random.random(count) < 0.1], [any_, ends], x)
    x *= random.choice([-1.0, 1.0], count)
    served = (x == 0) | np.isinf(x) | ((np.abs(x) >= 2.0**-126) & (np.abs(x) < 2.0**128))
    return np.where(served, x, 1.0)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_same_bits_and_flags(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    block = elementwise.BLOCK
    count = 3 * block + 77
    for seed, mode in enumerate(MODES):
        for options in OPTIONS:
            x = numbers(fmt, count, seed)
            same(both(monkeypatch, lambda x=x, m=mode, o=options: bits.encode(x, fmt, rounding=m, **o)))
            x[[3, block, 2 * block, -1]] = np.nan, 1e300, 1e-310, -(2.0**-140)
            same(both(monkeypatch, lambda x=x, m=mode, o=options: bits.encode(x, fmt, rounding=m, **o)))
            monkeypatch.setattr(elementwise, "FAST", True)
            _, seen = bits.encode(x, fmt, rounding=mode, flags="any", **options)
            assert seen == np.bitwise_or.reduce(bits.encode(x, fmt, rounding=mode, **options)[1])


def beside_drawn_thresholds(fmt: Format, count: int, width: int, address: dict[str, int], tiny: bool) -> np.ndarray:
    """Numbers whose dropped part is next to what their random bits round up from: by as little as float64 or float32 has, or some bits of these.

    `tiny`: some of them just below the smallest normal number, where the ulp of an exponent without bounds is half as large; else none.
    """
    random = np.random.default_rng([width, count])
    drawn = bits.random_bits(count, sr_bits=width, **address) * 2.0**-width
    codes = random.integers(0, (fmt.max_code >> 1) + 1, count) + random.integers(0, fmt.max_code >> 1, count)
    normal = 1 << fmt.mantissa_bits
    codes = np.where(random.random(count) < 0.1, normal - 1, codes) if tiny else np.maximum(codes, normal)
    low = bits.decode(codes.astype(fmt.dtype), fmt)
    low = np.where(np.isfinite(low) & (low >= 2.0**-120), low, fmt.tiny)
    ulp = np.maximum(2.0 ** np.floor(np.log2(low)) * fmt.eps, fmt.smallest_subnormal)
    x = low + ulp * (1 - drawn * random.choice([1, 0.5], count))
    units = random.choice([0, 0, 1, -1, 2, -2, 7, -7, 1 << 29, -(1 << 29), 3 << 28, -(3 << 28)], count)
    x = (x.view(np.int64) + units + random.choice([0, 1 << 28], count)).view(np.float64)
    return np.where(np.abs(x) < 2.0**127, x, 1.0) * random.choice([-1.0, 1.0], count)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_drawn_to_the_same_bits_and_flags(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """With random bits so few that float32 rounded to odd says everything, with more, and with those handed in."""
    count, dropped = 17 * elementwise.BLOCK + 77, 23 - fmt.mantissa_bits
    for options in ({}, {"tininess": "before", "overflow": "saturate"}):
        for seed, width in enumerate(
            sorted({1, 5, max(dropped - 2, 1), max(dropped - 1, 1), dropped, 15, 16, 17, 23, 52})
        ):
            address = {"seed": seed, "stream": 3}
            how: dict[str, Any] = options | {"rounding": "stochastic", "sr_bits": width}
            beside = [beside_drawn_thresholds(fmt, count, width, address, tiny) for tiny in (True, False)]
            for x in (numbers(fmt, count, seed), *beside):
                same(both(monkeypatch, lambda x=x, o=how | address: bits.encode(x, fmt, **o)))
                monkeypatch.setattr(elementwise, "FAST", True)
                _, seen = bits.encode(x, fmt, flags="any", **how, **address)
                assert seen == np.bitwise_or.reduce(bits.encode(x, fmt, **how, **address)[1])
            x = beside[0]
            x[[3, 1024, 2048, -1]] = np.nan, 1e300, 1e-310, -(2.0**-140)
            handed = bits.random_bits(count, sr_bits=width, seed=9)
            same(both(monkeypatch, lambda x=x, o=how | {"random_bits": handed}: bits.encode(x, fmt, **o)))


@SERVED
def test_ordinary_numbers_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is not regular is left alone."""
    left = left_to(monkeypatch, "_plain_work")
    x = np.random.default_rng(1).standard_normal(1 << 16)
    bits.encode(x, "float16")
    assert not left
    x[5000] = np.nan
    bits.encode(x, "float16")
    assert sum(left) == 1


def test_threads() -> None:
    x = np.random.default_rng(2).standard_normal((1 << 18) + 3333)
    x[::70001] = np.nan
    before, found = get_num_threads(), []
    try:
        for count in (1, 2, 3):
            set_num_threads(count)
            found.append(bits.encode(x, "bfloat16", rounding="to_odd"))
    finally:
        set_num_threads(before)
    for other in found[1:]:
        same((found[0], other))


def test_what_float32_would_round_twice() -> None:
    """1 + 2^-11 is a tie of halves, 2^-60 more is none: 0x3C01, not 0x3C00."""
    x = np.full(1 << 14, 1 + 2.0**-11)
    assert set(bits.encode(x, "float16")[0].tolist()) == {0x3C00}
    x[:] = float.fromhex("0x1.0020000000001p+0")
    codes, flags = bits.encode(x, softfloat.float16)
    assert set(codes.tolist()) == {0x3C01}
    assert set(flags.tolist()) == {1}
