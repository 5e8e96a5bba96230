"""Stochastic rounding: the probability of going up, the law of each rounding, and what its random bits depend on."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Environment, Format, StochasticRounding, bits, reference

FORMATS = [softfloat.float16, softfloat.bfloat16, softfloat.float8_e4m3fn]
PRECISE = Fraction(1, 2**200)
CHI_SQUARE_48 = 93.22
"""A chi-square of 48 degrees of freedom exceeds it with probability 1e-4. Seeds are fixed."""


def exponent_of(magnitude: Fraction) -> int:
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return e if Fraction(2) ** e <= magnitude else e - 1


def neighbours(exact: Fraction, fmt: Format) -> tuple[int, int, Fraction]:
    """(code below in magnitude, code above, distance from the lower as a part of their difference)."""
    magnitude = abs(exact)
    e = max(exponent_of(magnitude), fmt.minexp) if magnitude else fmt.minexp
    y = magnitude / Fraction(2) ** (e - fmt.mantissa_bits)
    n = y.numerator // y.denominator
    sign = fmt.sign_bit if exact < 0 else 0
    down = ((e - fmt.minexp) << fmt.mantissa_bits) + n
    return down | sign, (down + 1) | sign, y - n


def value(code: int, fmt: Format) -> Fraction:
    return Fraction(float(bits.decode(int(code), fmt)))


def square_root(x: Fraction) -> Fraction:
    """To 2^-200 of its value or better: below any probability that counting can tell."""
    scaled = x / PRECISE**4
    return Fraction(isqrt(scaled.numerator // scaled.denominator)) * PRECISE**2


OPERATIONS: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "div": (2, lambda x, y: x / y),
    "fma": (3, lambda x, y, z: x * y + z),
    "sqrt": (1, square_root),
}


def between(low: float, high: float, fmt: Format, count: int, draw: np.random.Generator) -> list[Fraction]:
    """Numbers with a few more significant bits than the format has, uniform in [low, high)."""
    step = Fraction(2) ** (max(exponent_of(Fraction(low)), fmt.minexp) - fmt.mantissa_bits - 9)
    return [step * int(draw.integers(int(low / step), int(high / step))) for _ in range(count)]


def chi_square(codes: np.ndarray, exact: list[Fraction], fmt: Format, beyond: dict[int, int] | None = None) -> float:
    """Statistic of counts of roundings up, a row per exact value; other results than the two neighbours fail.

    `beyond` says what a neighbour past the largest number has become.
    """
    statistic = 0.0
    draws = codes.shape[1]
    for row, number in zip(codes, exact, strict=True):
        down, up, fraction = neighbours(number, fmt)
        up = (beyond or {}).get(up, up)
        assert set(row.tolist()) <= ({down, up} if fraction else {down})
        p = float(fraction)
        if draws * min(p, 1 - p) > 5:
            statistic += (np.count_nonzero(row == up) - draws * p) ** 2 / (draws * p * (1 - p))
    return statistic


REGIONS = {
    "normal": lambda fmt: (1.0, 2.0),
    "subnormal": lambda fmt: (fmt.smallest_subnormal, fmt.tiny),
    "below the least": lambda fmt: (fmt.smallest_subnormal / 512, fmt.smallest_subnormal),
    "largest": lambda fmt: (float(value(fmt.max_code - 1, fmt)), fmt.max),
    "overflow": lambda fmt: (fmt.max, 2 * fmt.max - float(value(fmt.max_code - 1, fmt))),
}


@pytest.mark.parametrize("overflow", ["infinity", "saturate"])
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("fmt", [*FORMATS, softfloat.float32], ids=str)
def test_probability_of_encoding_up(fmt: Format, region: str, overflow: str) -> None:
    draw = np.random.default_rng(len(region))
    exact = between(*REGIONS[region](fmt), fmt, 48, draw)
    exact = [x if i % 2 else -x for i, x in enumerate(exact)]
    x = np.repeat(np.array([float(x) for x in exact])[:, None], 2048, axis=1)
    codes, flags = bits.encode(x, fmt, rounding="stochastic", seed=17, overflow=overflow)
    past = fmt.max_code + 1
    top = fmt.inf_code if fmt.infinities else fmt.nan_code
    beyond = {}
    if overflow == "infinity":
        beyond = {past: top, past | fmt.sign_bit: top | (fmt.sign_bit if fmt.infinities else 0)}
        assert chi_square(codes, exact, fmt, beyond) < CHI_SQUARE_48
    elif region != "overflow":
        assert chi_square(codes, exact, fmt) < CHI_SQUARE_48
    else:
        assert set(codes.ravel().tolist()) == {fmt.max_code, fmt.min_code}
    if region == "overflow":
        went = np.sign(x) * (flags & int(softfloat.Flags.OVERFLOW) != 0)
        carried = np.where(went == 0, fmt.max_code, past) | np.where(x < 0, fmt.sign_bit, 0)
        assert chi_square(carried, exact, fmt) < CHI_SQUARE_48


ARITHMETIC_REGIONS = [*((name, "any") for name in OPERATIONS), *((name, "subnormal") for name in ("mul", "div", "fma"))]
"""Of subnormals, the others' results are exact or no subnormals."""


@pytest.mark.parametrize(("name", "region"), ARITHMETIC_REGIONS)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_probability_of_arithmetic_up(fmt: Format, name: str, region: str) -> None:
    arity, operation = OPERATIONS[name]
    draw = np.random.default_rng(arity)
    one, half = fmt.one_code, 1 << fmt.mantissa_bits
    operands = draw.integers(one - 2 * half, one + 2 * half, (arity, 48))
    if region == "subnormal":
        operands[0] = draw.integers(2, fmt.smallest_normal_code, 48)
        operands[2:] = draw.integers(1, fmt.smallest_normal_code, (max(arity - 2, 0), 48))
        if name == "div":
            operands[1] = draw.integers(one + half, one + 2 * half, 48)
    numbers = [[value(code, fmt) for code in row] for row in operands]
    exact = [operation(*column) for column in zip(*numbers, strict=True)]
    if region == "subnormal":
        assert sum(abs(x) < fmt.tiny for x in exact) > 16
    assert sum(neighbours(x, fmt)[2] != 0 for x in exact) > 9
    codes, _ = getattr(bits, name)(*np.repeat(operands[:, :, None], 2048, axis=2), fmt, rounding="stochastic", seed=3)
    assert chi_square(codes, exact, fmt) < CHI_SQUARE_48


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_expectation_is_the_value(fmt: Format) -> None:
    """To five standard deviations of the mean of 2^16 roundings."""
    for number in (1 + fmt.eps / 7, fmt.tiny / 3, fmt.smallest_subnormal / 5, -fmt.max * 0.7):
        codes, _ = bits.encode(np.full(1 << 16, number), fmt, rounding="stochastic", seed=23)
        _, _, fraction = neighbours(Fraction(number), fmt)
        low, high = sorted(bits.decode(np.unique(codes), fmt))
        deviation = (high - low) * float(fraction * (1 - fraction)) ** 0.5 / 2**8
        assert abs(bits.decode(codes, fmt).mean() - number) < 5 * deviation


# -- the law of one rounding -----------------------------------------------------------------------------------------


def law(exact: Fraction, random: int, width: int, fmt: Format) -> int:
    down, up, fraction = neighbours(exact, fmt)
    shifted = fraction * 2**width
    return up if shifted.numerator // shifted.denominator + random >= 2**width else down


@pytest.mark.parametrize("width", [1, 2, 3, 8, 15, 16, 17, 24, 32, 51, 52])
@pytest.mark.parametrize("fmt", [*FORMATS, softfloat.float32], ids=str)
def test_law_of_encoding(fmt: Format, width: int) -> None:
    """Random numbers, and those one below, at and above the step: floor(f * 2^r) + R >= 2^r, in subnormals too."""
    draw = np.random.default_rng(width)
    scales = np.array([1.0, fmt.tiny, fmt.smallest_subnormal, fmt.max / 4])
    numbers = (scales * draw.uniform(-1.9, 1.9, (60, 4))).ravel()
    steps = [neighbours(Fraction(x), fmt)[2] * 2**width for x in numbers]
    edges = [2**width - s.numerator // s.denominator for s in steps]
    random = np.array([[draw.integers(0, 2**width), e - 1, e, e + 1, 0, 2**width - 1] for e in edges])
    random = np.clip(random, 0, 2**width - 1)
    x = np.broadcast_to(numbers[:, None], random.shape)
    codes, _ = bits.encode(x, fmt, rounding="stochastic", random_bits=random, sr_bits=width)
    expected = [[law(Fraction(n), int(r), width, fmt) for r in row] for n, row in zip(numbers, random, strict=True)]
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fmt", [*FORMATS, softfloat.float32], ids=str)
def test_law_of_arithmetic(fmt: Format, name: str) -> None:
    """Up to the width at which a carrier of 53 bits still shows every bit the law asks for."""
    arity, operation = OPERATIONS[name]
    draw = np.random.default_rng(arity)
    one, binade = fmt.one_code, 1 << fmt.mantissa_bits
    operands = draw.integers(one - 3 * binade, one + 3 * binade, (arity, 150))
    numbers = [[value(code, fmt) for code in row] for row in operands]
    exact = [operation(*column) for column in zip(*numbers, strict=True)]
    for width in (1, 7, 13, 52 - fmt.p):
        random = draw.integers(0, 2**width, 150)
        codes, _ = getattr(bits, name)(*operands, fmt, rounding="stochastic", random_bits=random, sr_bits=width)
        expected = [law(x, int(r), width, fmt) for x, r in zip(exact, random, strict=True)]
        np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("tininess", ["after", "before"])
@pytest.mark.parametrize("fmt", [*FORMATS, softfloat.float8_e8m0fnu, softfloat.float6_e2m3fn], ids=str)
def test_codes_and_flags_as_the_reference(fmt: Format, tininess: str) -> None:
    """Around the smallest normal number, where rounding decides tininess, and around the largest."""
    draw = np.random.default_rng(1)
    numbers = np.concatenate(
        [
            fmt.tiny * (1 - fmt.eps * draw.uniform(0, 1, 150)),
            fmt.max + fmt.eps * fmt.max * draw.uniform(-1, 1, 80),
            fmt.smallest_subnormal * draw.uniform(0, 2, 50),
            [fmt.tiny, fmt.max, np.inf, 1.0, 3e38],
        ]
    )
    if fmt.signed:
        numbers = np.concatenate([numbers, -numbers])
    for width in (3, 16, 52):
        random = draw.integers(0, 2**width, numbers.size)
        options = {"rounding": "stochastic", "sr_bits": width, "tininess": tininess}
        found = bits.encode(numbers, fmt, random_bits=random, **options)
        pairs = zip(numbers.tolist(), random.tolist(), strict=True)
        expected = [reference.encode(x, fmt, random_bits=r, **options) for x, r in pairs]
        assert list(zip(*(part.tolist() for part in found), strict=True)) == expected


@pytest.mark.parametrize(("dtype", "width"), [(np.uint8, 8), (np.uint16, 16), (np.uint32, 32)])
def test_all_handed_bits_are_used(dtype: Any, width: int) -> None:
    x = np.full(3, 1 + softfloat.float16.eps * 2.0**-8)
    random = np.array([0, 2**width - 2 ** (width - 8) - 1, 2**width - 2 ** (width - 8)]).astype(dtype)
    codes, _ = bits.encode(x, "float16", rounding="stochastic", random_bits=random)
    assert codes.tolist() == [0x3C00, 0x3C00, 0x3C01]
    assert_equal = np.testing.assert_array_equal
    assert_equal(
        bits.encode(x, "float16", rounding="stochastic", random_bits=random.astype(np.int64), sr_bits=width)[0], codes
    )


# -- addressed bits --------------------------------------------------------------------------------------------------

HANDED: dict[str, int] = {
    "encode": 1,
    "add": 2,
    "div": 2,
    "fma": 3,
    "sqrt": 1,
    "round_to_integral": 1,
    "convert": 1,
    "to_integer": 1,
}


def run(name: str, fmt: Format, count: int = 300, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    one, span = fmt.one_code, 4 << fmt.mantissa_bits
    codes = [draw.integers(max(one - span, 1), min(one + span, fmt.max_code), count) for _ in range(HANDED[name])]
    if name == "encode":
        numbers = draw.normal(size=count) * np.where(np.arange(count) % 2, 1.0, fmt.tiny)
        return bits.encode(numbers, fmt, rounding="stochastic", **options)
    tail = {"convert": [fmt, softfloat.float8_e5m2], "to_integer": [fmt, np.int32]}.get(name, [fmt])
    return getattr(bits, name)(*codes, *tail, rounding="stochastic", **options)


def assert_same(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> None:
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("generator", ["philox4x32", "xoroshiro128aox"])
@pytest.mark.parametrize("name", HANDED)
@pytest.mark.parametrize("fmt", FORMATS[:2], ids=str)
def test_handed_bits_are_the_addressed_ones(fmt: Format, name: str, generator: str) -> None:
    for width in range(1, 53) if generator == "philox4x32" else (1, 16, 52):
        address = {"seed": 9, "stream": width, "sr_bits": width, "generator": generator}
        random = bits.random_bits(300, **address)
        assert_same(run(name, fmt, random_bits=random, sr_bits=width), run(name, fmt, **address))
    everything = bits.random_bits(300, seed=9, generator=generator)
    assert_same(run(name, fmt, random_bits=everything, sr_bits=52), run(name, fmt, seed=9, generator=generator))


@pytest.mark.parametrize("width", [17, 20, 36, 51, 52])
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_the_last_drawn_bit_decides(fmt: Format, width: int) -> None:
    """Numbers so close to the step that all bits of the address count: the top 16 alone leave every one undecided."""
    random = bits.random_bits(500, seed=31, sr_bits=width)
    least = (2**width - random.astype(np.int64)).astype(np.float64) / 2.0**width * fmt.smallest_subnormal
    below = least - fmt.smallest_subnormal / 2.0**width
    options = {"rounding": "stochastic", "seed": 31, "sr_bits": width}
    np.testing.assert_array_equal(bits.encode(least, fmt, **options)[0], 1)
    np.testing.assert_array_equal(bits.encode(below, fmt, **options)[0], 0)
    np.testing.assert_array_equal(bits.encode(-least, fmt, **options)[0], 1 | fmt.sign_bit)


@pytest.mark.parametrize("generator", ["philox4x32", "xoroshiro128aox"])
def test_only_the_position_counts(generator: str) -> None:
    x = np.random.default_rng(0).normal(size=1200)
    options = {"rounding": "stochastic", "seed": 77, "stream": 4, "generator": generator}
    whole = bits.encode(x, "bfloat16", **options)
    assert_same([part.ravel() for part in bits.encode(x.reshape(3, 40, 10), "bfloat16", **options)], whole)
    fortran = bits.encode(np.asfortranarray(x.reshape(30, 40)), "bfloat16", **options)
    assert_same([part.ravel() for part in fortran], whole)
    for count in (1, 127, 129, 1000):
        assert_same(bits.encode(x[:count], "bfloat16", **options), [part[:count] for part in whole])
    out = np.empty(2400, np.uint16)[::2]
    assert_same(bits.encode(x, "bfloat16", out=out, **options), whole)
    assert bits.encode(x[0], "bfloat16", **options) == (whole[0][0], whole[1][0])
    together, _ = bits.encode(x, "bfloat16", flags="any", **options)
    np.testing.assert_array_equal(together, whole[0])


def test_seeds_and_streams_differ() -> None:
    x = np.full(200, 1 + 2.0**-9)
    seen = set()
    for seed in (0, 1, 2**32, 2**64 - 1):
        for stream in (0, 1, 2**32, 2**64 - 1):
            codes, _ = bits.encode(x, "bfloat16", rounding="stochastic", seed=seed, stream=stream)
            seen.add(tuple(codes.tolist()))
    assert len(seen) == 16


def test_an_operation_has_one_stream() -> None:
    """Results of an environment depend on its seed and the number of the operation, counted over those that draw."""
    x = np.full(200, 1 + 2.0**-9)
    env = Environment(rounding="stochastic", seed=6)
    drawn = [env.evaluate(bits.encode, x, softfloat.bfloat16) for _ in range(3)]
    for stream, codes in enumerate(drawn):
        options = {"rounding": "stochastic", "seed": 6, "stream": stream}
        np.testing.assert_array_equal(codes, bits.encode(x, "bfloat16", **options)[0])
    assert (drawn[0] != drawn[1]).any()
    again = env.replace()
    np.testing.assert_array_equal(again.evaluate(bits.encode, x, softfloat.bfloat16), drawn[0])


@pytest.mark.parametrize("single", ["float32", softfloat.float32], ids=["name", "format"])
def test_every_operation_takes_a_stream(single: Format | str) -> None:
    """float32 never rounds stochastically on an IPU; it counts all the same, however it is named."""
    x = np.full(200, 1 + 2.0**-12)
    env = Environment.ipu(esr=True, seed=6)
    codes = env.evaluate(bits.encode, x + 2.0**-30, single)
    np.testing.assert_array_equal(codes, bits.encode(x + 2.0**-30, softfloat.float32)[0])
    second, _ = bits.encode(x, softfloat.float16, environment=env, stream=1)
    np.testing.assert_array_equal(env.evaluate(bits.encode, x, softfloat.float16), second)


def test_replicas() -> None:
    x = np.full(200, 1 + 2.0**-12)

    def codes(esr: StochasticRounding | bool, replica: int) -> tuple[int, ...]:
        env = Environment.ipu(esr=esr, seed=8, replica=replica)
        return tuple(env.evaluate(bits.encode, x, softfloat.float16).tolist())

    replicas = [0, 1, 2, 2**32, 2**64 - 1]
    assert len({codes(StochasticRounding.ON, replica) for replica in replicas}) == len(replicas)
    assert len({codes(StochasticRounding.REPLICA_IDENTICAL_ONLY, replica) for replica in replicas}) == 1
    assert codes(StochasticRounding.ON, 0) == codes(StochasticRounding.REPLICA_IDENTICAL_ONLY, 5)
    assert codes(StochasticRounding.OFF, 0) == codes(False, 3) == (0x3C00,) * 200
    assert codes(True, 1) == codes(StochasticRounding.ON, 1)


# -- what stays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [*FORMATS, softfloat.float8_e8m0fnu, softfloat.float4_e2m1fn], ids=str)
def test_exact_values_stay(fmt: Format) -> None:
    codes = np.arange(2**fmt.bits).astype(fmt.dtype)
    codes = codes[bits.isfinite(codes, fmt)]
    numbers = bits.decode(codes, fmt)
    most = np.full(codes.shape, 2**52 - 1)
    for options in ({"seed": 1}, {"random_bits": most, "sr_bits": 52}, {"random_bits": np.uint8(255)}):
        found, flags = bits.encode(numbers, fmt, rounding="stochastic", **options)
        np.testing.assert_array_equal(found, codes)
        assert not flags.any()
        if fmt.zero:
            found, flags = bits.add(codes, fmt.zero_code, fmt, rounding="stochastic", **options)
            np.testing.assert_array_equal(found[codes != fmt.sign_bit], codes[codes != fmt.sign_bit])
            assert not flags.any()


@pytest.mark.parametrize("fmt", [*FORMATS, softfloat.float32], ids=str)
def test_signs_round_alike(fmt: Format) -> None:
    """The same bits take a number and its negative to codes that differ in the sign alone."""
    draw = np.random.default_rng(2)
    x = np.concatenate([draw.normal(size=500) * scale for scale in (1, fmt.tiny, fmt.max / 3)])
    options = {"rounding": "stochastic", "seed": 12, "overflow": "saturate"}
    codes, flags = bits.encode(x, fmt, **options)
    mirrored, mirrored_flags = bits.encode(-x, fmt, **options)
    np.testing.assert_array_equal(codes ^ fmt.dtype.type(fmt.sign_bit), mirrored)
    np.testing.assert_array_equal(flags, mirrored_flags)
