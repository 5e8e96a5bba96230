"""What differs under P3109 (draft 4.0), and the three methods of stochastic rounding with every random number."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Environment, Flags, Format, bits, reference
from softfloat.accumulators import fma, pairwise

METHODS = ("truncate", "half", "nearest")
P8 = Format.p3109(8, 1, signed=False)
DRAFT = Environment.p3109()


def ups(f: Fraction, width: int, method: str) -> int:
    """How many of 2^width random numbers take a fraction up: P3109 draft 4.0, StochasticA, B and C."""
    scaled = f * 2**width
    return {"truncate": math.floor(scaled), "half": math.floor(scaled + Fraction(1, 2)), "nearest": round(scaled)}[
        method
    ]


def assert_goes_up_as_often(fmt: Format, width: int, method: str, fractions: list[Fraction]) -> None:
    """Numbers above 1, above a subnormal, and below the smallest number, with every random number."""
    everything = np.arange(1 << width, dtype=np.uint32)
    starts = [(fmt.one_code, Fraction(1), Fraction(fmt.eps))]
    starts += [(code, code * Fraction(fmt.smallest_subnormal), Fraction(fmt.smallest_subnormal)) for code in (0, 1)]
    for code, start, step in starts:
        for f in fractions:
            x = start + f * step
            found, flags = bits.encode(
                np.full(everything.size, float(x)), fmt,
                rounding="stochastic", sr_method=method, sr_bits=width, random_bits=everything,
            )  # fmt: skip
            assert Fraction(float(x)) == x
            assert set(found.tolist()) <= {code, code + 1}
            assert ((found == code + 1) == (everything >= (1 << width) - ups(f, width, method))).all(), (f, width)
            assert ((flags & 1) == (f > 0)).all()


def grid(width: int) -> list[Fraction]:
    """Quarters of the random numbers' steps, some, and what lies a little beside."""
    count, least = 1 << (width + 2), Fraction(1, 2 ** (width + 9))
    places = sorted(
        {*range(0, count, max(1, count // 37)), *range(1, 20), *range(count - 13, count)} & set(range(count))
    )
    return [x for n in places for d in (-1, 0, 1) if 0 <= (x := Fraction(n, count) + d * least) < 1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [1, 2, 5])
def test_every_random_number(width: int, method: str) -> None:
    assert_goes_up_as_often(Format.p3109(8, 4), width, method, grid(width))


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", range(1, 9))
def test_every_random_number_of_more_bits(width: int, method: str) -> None:
    for fmt in (Format.p3109(8, 4), Format.p3109(4, 2, extended=False), softfloat.float16, softfloat.bfloat16):
        assert_goes_up_as_often(fmt, width, method, grid(width))


@pytest.mark.parametrize("width", [3, 16, 20])
@pytest.mark.parametrize("method", METHODS)
def test_addressed_numbers_are_those_handed_in(method: str, width: int) -> None:
    """Of elementwise operations, conversions, functions and rounding to integers: 16 bits first and the rest where they count."""
    fmt, address = softfloat.bfloat16, {"seed": 5, "stream": 3, "sr_bits": width}
    x = np.random.default_rng(width).integers(0x3E00, 0x4180, 1000).astype(np.uint16)
    random = bits.random_bits(x.shape, **address)
    rule: dict[str, Any] = {"rounding": "stochastic", "sr_method": method, "sr_bits": width}
    for call in (
        lambda **o: bits.mul(x, x[::-1], fmt, **o),
        lambda **o: bits.convert(x, fmt, "float8_e5m2", **o),
        lambda **o: bits.exp(x, fmt, **o),
        lambda **o: bits.round_to_integral(x, fmt, **o),
        lambda **o: bits.to_integer(x, fmt, np.int16, **o),
        lambda **o: bits.mul(x.astype(np.uint8), x.astype(np.uint8)[::-1], "float8_e4m3fn", out_format=fmt, **o),
    ):
        codes, flags = call(**rule, seed=5, stream=3)
        wanted, raised = call(**rule, random_bits=random)
        assert (codes == wanted).all()
        assert (flags == raised).all()


def test_methods_differ_and_have_names_of_the_draft() -> None:
    x, random = np.full(4, 1 + 0.375 * 2.0**-10), np.arange(4, dtype=np.uint8)
    given = {"rounding": "stochastic", "random_bits": random, "sr_bits": 2}
    ups = {m: int((bits.encode(x, "float16", sr_method=m, **given)[0] != 0x3C00).sum()) for m in (*METHODS, *"ABC")}
    assert ups == {"truncate": 1, "half": 2, "nearest": 2, "A": 1, "B": 2, "C": 2}
    assert Environment(sr_method="C") == Environment(sr_method="nearest")


@pytest.mark.parametrize(("fmt", "most"), [("float32", 16), ("float16", 29), ("float8_e4m3fn", 36)])
def test_random_bits_that_a_method_takes(fmt: str, most: int) -> None:
    given: dict[str, Any] = {"rounding": "stochastic", "sr_method": "half", "seed": 1}
    bits.encode(1.0, fmt, sr_bits=most, **given)
    for width in (most + 1, None):
        with pytest.raises(ValueError, match=rf"^sr_bits must be 1 to {most} for sr_method='half' into {fmt}"):
            bits.encode(1.0, fmt, sr_bits=width, **given)
    with pytest.raises(ValueError, match=rf"^sr_bits must be 1 to {most}"):
        bits.to_integer(0, fmt, np.int32, **given)


def test_one_bit_of_precision() -> None:
    """0.375 lies between 0.25 and 0.5: IEEE 754 has the larger number, P3109 the even code."""
    fmt = Format.p3109(3, 1, signed=False)
    assert bits.encode(0.375, fmt)[0] == 3
    assert bits.encode(0.375, fmt, environment=DRAFT)[0] == 2
    assert bits.encode(0.375, fmt, projection="p3109", rounding="to_odd")[0] == 3


@pytest.mark.parametrize("name", ["binary8p3se", "float16"])
def test_division_by_zero(name: str) -> None:
    """There is no infinity from zero."""
    fmt = Format.from_name(name)
    by_zero = int(Flags.DIVBYZERO | Flags.INVALID)
    code, flags = bits.div([fmt.one_code, fmt.inf_code, 0], 0, fmt, environment=DRAFT)
    assert bits.isnan(code, fmt).all()
    assert flags.tolist() == [by_zero, 16, 16]
    assert reference.div(fmt.one_code, 0, fmt, projection="p3109") == (code[0], by_zero)
    assert bits.isinf(bits.log(0, fmt, environment=DRAFT)[0], fmt)


def test_negatives_of_unsigned_formats() -> None:
    x = [-1.0, -(2.0**-140), -math.inf, -0.0]
    for saturation, rounding, expected in (
        ("finite", "nearest_even", [0, 0, 0, 0]),
        ("propagate", "nearest_even", [0, 0, 0, 0]),
        ("none", "nearest_even", [P8.nan_code, 0, P8.nan_code, 0]),
        ("none", "toward_positive", [0, 0, P8.nan_code, 0]),
        ("none", "toward_negative", [P8.nan_code, P8.nan_code, P8.nan_code, 0]),
    ):
        environment = Environment.p3109(rounding, saturation=saturation)
        assert bits.encode(x, P8, environment=environment)[0].tolist() == expected, (saturation, rounding)


def test_infinite_sums_saturate() -> None:
    """Every addition of a sum is projected: an infinity is the largest number at once."""
    fmt = Format.p3109(8, 3)
    codes = np.array([fmt.inf_code, fmt.one_code, fmt.max_code | fmt.sign_bit], np.uint8)
    for how in (fma(fmt), pairwise(fmt)):
        found = bits.sum(codes, fmt, how, environment=Environment.p3109(saturation="finite"))[0]
        assert found == 0
        assert found != bits.sum(codes, fmt, how)[0] == fmt.inf_code


def test_names_of_modes_and_what_saturation_sets() -> None:
    for name in ("NearestTiesToEven", "TowardZero", "ToOdd", "stochasticb"):
        environment = Environment.p3109(name, seed=1, bits=3)
        assert (environment.projection, environment.sr_bits) == ("p3109", 3)
    assert Environment.p3109("NearestTiesToAway").rounding.name == "NEAREST_AWAY"
    with pytest.raises(ValueError, match=r"^saturation must be one of 'none', 'finite', 'propagate'"):
        Environment.p3109(saturation="clamp")
    with pytest.raises(TypeError, match=r"^overflow of Environment.p3109"):
        Environment.p3109(overflow="nan")
    with pytest.raises(TypeError, match=r"^bits comes with sr_bits"):
        Environment.p3109(bits=3, sr_bits=3)
    with pytest.raises(TypeError, match=r"comes with sr_method"):
        Environment.p3109("StochasticA", sr_method="half")
    with pytest.raises(ValueError, match=r"^projection must be one of 'ieee', 'p3109'"):
        bits.add(0, 0, "float16", projection="ocp")
    with pytest.raises(ValueError, match=r"^sr_method must be one of 'truncate', 'half', 'nearest'"):
        bits.add(0, 0, "float16", sr_method="D")


def test_operands_of_other_formats_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^b holds 0x100"):
        bits.add(1, 0x100, "float16", b_format="float8_e5m2")
    for name in ("b_format", "c_format", "out_format"):
        with pytest.raises(TypeError, match=rf"^{name} must be a softfloat.Format"):
            bits.fma(1, 1, 1, "float16", **{name: 8})
    low = Format("low", exponent_bits=5, mantissa_bits=2, bias=380)
    high = Format("high", exponent_bits=5, mantissa_bits=20, bias=-360)
    with pytest.raises(ValueError, match=r"^out_format='high' is too far above 'low'"):
        bits.mul(1, 1, low, out_format=high)


def test_products_of_fp8_into_bfloat16() -> None:
    """All pairs: exact products of few bits, which float64 rounds once."""
    a, b = (x.ravel() for x in np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2))
    codes, _ = bits.mul(a, b, "float8_e4m3fn", b_format="float8_e5m2", out_format="bfloat16")
    with np.errstate(invalid="ignore"):
        exact = bits.decode(a, "float8_e4m3fn") * bits.decode(b, "float8_e5m2")
    wanted = bits.encode(exact, "bfloat16")[0]
    numbers = ~np.isnan(exact)
    assert (codes == wanted)[numbers].all()
    assert bits.isnan(codes[~numbers], "bfloat16").all()
