"""Stochastic rounding: the probability of going up, the law of each rounding, and what its random bits depend on."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
import pytest
from faster import both, same, summed_again
from hypothesis import given, settings
from hypothesis import strategies as st
from softfloat.kernels.spec import CARRIER64, Rule

import softfloat
from softfloat import Environment, Format, StochasticRounding, bits, engine, reference
from softfloat.accumulators import chunked, exact, fma, mul_add, pairwise
from softfloat.reference.outputs import random_bits_of

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


# -- what a carrier's sticky bit hides -------------------------------------------------------------------------------


def exact_root(x: Fraction) -> Fraction:
    """The square root, or, if it is irrational, a number between the same neighbours of some 200 bits."""
    scaled = x * 4**600
    root = Fraction(isqrt(scaled.numerator // scaled.denominator), 2**600)
    return root if root * root == x else root + Fraction(1, 2**601)


EXACT: dict[str, tuple[int, Callable[..., Fraction]]] = {
    **OPERATIONS,
    "sqrt": (1, exact_root),
    "hypot": (2, lambda x, y: exact_root(x * x + y * y)),
    "modulo": (2, lambda x, y: x % y),
    "fmod": (2, lambda x, y: (abs(x) % abs(y)) * (1 if x >= 0 else -1)),
    "floor_divide": (2, lambda x, y: Fraction(x // y)),
}
WIDE_FORMATS = [
    softfloat.float32,
    softfloat.tfloat32,
    softfloat.bfloat16,
    Format("e8m22", exponent_bits=8, mantissa_bits=22),
    Format("e4m23", exponent_bits=4, mantissa_bits=23),
    Format("e7m0fn", exponent_bits=7, mantissa_bits=0, nan="fn"),
    Format("e8m12 without subnormals", exponent_bits=8, mantissa_bits=12, subnormals=False),
]


def least_that_rounds_up(fraction: Fraction, width: int) -> int:
    """The least random number that takes a fraction up; 2^width if none does."""
    shifted = fraction * 2**width
    return int(2**width - shifted.numerator // shifted.denominator)


@st.composite
def cases(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[str, Format, list[list[int]]]:
    """An operation, a format, and rows of operands that lie a few or many binades apart."""
    name, fmt = draw(st.sampled_from(names)), draw(st.sampled_from(WIDE_FORMATS))
    one, binade = fmt.one_code, 1 << fmt.mantissa_bits
    near = st.integers(max(one - 3 * binade, fmt.smallest_normal_code), min(one + 3 * binade, fmt.max_code))
    powers = st.integers(1, fmt.max_code // binade - 1).map(lambda n: n * binade)
    tiny = st.integers(max(fmt.smallest_subnormal_code, 1), fmt.smallest_normal_code + binade)
    magnitude = st.one_of(near, powers, tiny, st.integers(fmt.smallest_normal_code, fmt.max_code))
    signed = st.tuples(magnitude, st.sampled_from([0, fmt.sign_bit])).map(sum)
    operand = magnitude if name == "sqrt" else signed
    return (
        name,
        fmt,
        draw(st.lists(st.lists(operand, min_size=EXACT[name][0], max_size=EXACT[name][0]), min_size=1, max_size=6)),
    )


@settings(deadline=None, max_examples=400)
@given(cases(tuple(EXACT)), st.integers(1, 52), st.sampled_from(["after", "before"]))
def test_law_of_exact_results(case: tuple[str, Format, list[list[int]]], width: int, tininess: str) -> None:
    """Every width, at the random number that the exact fraction asks for and its neighbours: below is down, above is up."""
    name, fmt, rows = case
    operands, random, expected = [], [], []
    for row in rows:
        exact = EXACT[name][1](*(value(code, fmt) for code in row))
        _, _, fraction = neighbours(exact, fmt)
        if not fmt.subnormals and 0 < abs(exact) < Fraction(fmt.tiny):
            fraction = abs(exact) / Fraction(fmt.tiny)
        step = least_that_rounds_up(fraction, width)
        for number in {min(max(step + i, 0), 2**width - 1) for i in (-1, 0, 1)}:
            operands.append(row)
            random.append(number)
            expected.append(exact_rounding(exact, fmt, fraction > 0 and number >= step))
    columns = np.array(operands, fmt.dtype).T
    handed = {"random_bits": np.array(random, np.uint64), "sr_bits": width}
    codes, flags = getattr(bits, name)(
        *columns, fmt, rounding="stochastic", tininess=tininess, overflow="saturate", **handed
    )
    for row, number, code, flag, wanted in zip(operands, random, codes, flags, expected, strict=True):
        found = value(code, fmt)
        assert found == wanted, ([hex(x) for x in row], hex(number), hex(code))
        oracle = getattr(reference, name)(
            *row, fmt, rounding="stochastic", tininess=tininess, overflow="saturate", random_bits=number, sr_bits=width
        )
        assert (int(code), int(flag)) == oracle, ([hex(x) for x in row], hex(number))


def exact_rounding(exact: Fraction, fmt: Format, up: bool) -> Fraction:
    """The neighbour of an exact value that is greater in magnitude, or the lesser; at most the largest number."""
    e = max(exponent_of(abs(exact)), fmt.minexp) if exact else fmt.minexp
    spacing = Fraction(2) ** (e - fmt.mantissa_bits)
    if not fmt.subnormals and abs(exact) < Fraction(fmt.tiny):
        spacing = Fraction(fmt.tiny)
    y = abs(exact) / spacing
    magnitude = min((y.numerator // y.denominator + up) * spacing, Fraction(fmt.max))
    return -magnitude if exact < 0 else magnitude


def test_a_fraction_below_the_carrier() -> None:
    """2^-37 of a unit in the last place, of which 32 bits show nothing."""
    drawn = {"rounding": "stochastic", "sr_bits": 32, "random_bits": 2**32 - 1}
    assert bits.add(0x3F800000, (127 - 60) << 23, "float32", **drawn) == (0x3F800000, 1)
    assert bits.fma(0x3F800000, (127 - 60) << 23, 0x3F800000, "float32", **drawn) == (0x3F800000, 1)
    assert reference.add(0x3F800000, (127 - 60) << 23, softfloat.float32, **drawn) == (0x3F800000, 1)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from([*WIDE_FORMATS, softfloat.float8_e4m3fn]),
    st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=5),
    st.integers(1, 52),
    st.sampled_from([1, Fraction(1, 3), Fraction(1, 2**70), 2**80]),
)
def test_law_of_long_integers_and_fractions(
    fmt: Format, integers: list[int], width: int, factor: int | Fraction
) -> None:
    for x in integers:
        exact = Fraction(x) * factor
        _, _, fraction = neighbours(exact, fmt)
        step = least_that_rounds_up(fraction, width)
        for number in {min(max(step + i, 0), 2**width - 1) for i in (-1, 0, 1)}:
            drawn: dict[str, Any] = {"rounding": "stochastic", "sr_bits": width, "overflow": "saturate"}
            oracle = reference.encode(exact, fmt, random_bits=number, **drawn)
            assert abs(exact) > Fraction(fmt.max) or value(oracle[0], fmt) == exact_rounding(
                exact, fmt, fraction > 0 and number >= step
            )
            assert bits.encode([exact], fmt, random_bits=[number], **drawn) == ([oracle[0]], [oracle[1]])
            if factor == 1:
                array = np.array([x], np.int64 if x < 2**63 else np.uint64)
                assert bits.encode(array, fmt, random_bits=[number], **drawn) == ([oracle[0]], [oracle[1]])


def test_long_integers_draw_by_address() -> None:
    """Where some numbers of a call are long, all take the same random bits as those handed in."""
    x = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1000)
    x[::3] >>= 40
    handed = bits.random_bits(1000, seed=3, sr_bits=52)
    addressed = bits.encode(x, "float32", rounding="stochastic", seed=3)
    assert_same(bits.encode(x, "float32", rounding="stochastic", random_bits=handed, sr_bits=52), addressed)
    assert bits.encode(x, "float32", rounding="stochastic", seed=3, flags="any")[1] == 1


SUMS = {
    "fma": lambda fmt: fma(fmt),
    "mul_add": lambda fmt: mul_add(fmt),
    "exact": lambda fmt: exact(fmt),
    "chunked": lambda fmt: chunked(1, fmt, fmt),
    "tree": lambda fmt: pairwise(fmt),
}


@pytest.mark.parametrize("width", [29, 32, 41, 52])
@pytest.mark.parametrize("name", SUMS)
def test_law_of_sums(name: str, width: int) -> None:
    """1 + x, with x next to what the output's random bits ask for, where the carrier shows 29 bits of the fraction."""
    fmt, seed, stream = softfloat.float32, 11, 2
    site = 4 if name == "chunked" else 1
    levels = [(2**width - random_bits_of(seed, stream, index, site, 0, width), index) for index in range(3000)]
    for level, index in sorted(levels)[:12]:
        target = Fraction(level, 2**width) * Fraction(fmt.eps)
        for mode in ("toward_zero", "toward_positive"):
            code, _ = bits.encode(target, fmt, rounding=mode)
            b = np.full((1, index + 1), int(code), np.uint32)
            a = np.array([[fmt.one_code]], np.uint32)
            c = np.full((1, index + 1), fmt.one_code, np.uint32)
            if name == "tree":
                a, b = np.repeat(a, 2, axis=1), np.concatenate([c, b])
                c = None
            codes, flags = bits.matmul(
                a, b, fmt, SUMS[name](fmt), c, rounding="stochastic", seed=seed, stream=stream, sr_bits=width
            )
            fraction = value(int(code), fmt) / Fraction(fmt.eps)
            up = fraction * 2**width >= level
            assert (int(codes[0, -1]), int(flags[0, -1])) == (fmt.one_code + up, 1), (index, mode)


def test_law_of_exact_blocks() -> None:
    """1 and a fraction that equals the random bits' threshold to all its bits, and one that misses it by 2^-100."""
    fmt, width = softfloat.float32, 52
    ones = np.full((1, 4), fmt.one_code, np.uint32)
    for index in range(30):
        level = 2**width - random_bits_of(7, 0, index, 1, 0, width)
        shares = level >> 30 << 30, level % 2**30 >> 8 << 8, level % 2**8
        parts = [Fraction(share, 2**width) for share in shares]
        for tail, up in ((Fraction(0), 1), (Fraction(-1, 2**77), 0), (Fraction(1, 2**77), 1)):
            terms = [x * Fraction(fmt.eps) for x in (*parts, tail)]
            column = [int(bits.encode(x, fmt)[0]) for x in terms]
            assert [value(code, fmt) for code in column] == terms
            b = np.repeat(np.array([column], np.uint32).T, index + 1, axis=1)
            c = np.full((1, index + 1), fmt.one_code, np.uint32)
            codes, _ = bits.matmul(ones, b, fmt, exact(fmt), c, rounding="stochastic", seed=7)
            assert codes[0, -1] == fmt.one_code + up


@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_tile_settles_what_the_carrier_hides(side: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 + 2^-42 units in the last place and a little more or less, and random bits next to what that takes."""
    from softfloat.kernels import accumulate

    fmt, level = softfloat.float16, 2**10
    rule = Rule(rounding=softfloat.Rounding.STOCHASTIC)
    numbers = engine.numbers(fmt.spec, fmt.spec, rule, CARRIER64)
    random = 2**52 - level + step
    monkeypatch.setattr(accumulate, "dot_low", lambda *address: random % 2**36)
    noise = random >> 36
    x, y = 2.0**-20, 2.0**-32 * (1 + side * 2.0**-11)
    found, flags = summed_again(1.0, x * y, noise, numbers)
    fraction = Fraction(x) * Fraction(y) / Fraction(fmt.eps)
    assert (found, flags) == (1 + fmt.eps * (fraction * 2**52 >= 2**52 - random), 1)


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


def test_gfloats_names() -> None:
    """Its three modes are the methods of those names, for every random number."""
    gfloat = pytest.importorskip("gfloat")
    info = pytest.importorskip("gfloat.formats").format_info_ocp_e4m3
    x = np.concatenate([1 + np.arange(32) / 256, -4 - np.arange(1, 32) / 16, np.arange(1, 20) * 2.0**-13])
    for name in ("StochasticFastest", "StochasticFast", "Stochastic"):
        for drawn in range(8):
            options: dict[str, Any] = {
                "rounding": "stochastic",
                "sr_bits": 3,
                "sr_method": name,
                "overflow": "saturate",
            }
            given = np.full(x.shape, drawn, np.uint64)
            codes, _ = bits.encode(x, "float8_e4m3fn", random_bits=given, **options)
            wanted = [gfloat.round_float(info, float(v), gfloat.RoundMode[name], True, drawn, 3) for v in x]
            np.testing.assert_array_equal(bits.decode(codes, "float8_e4m3fn"), wanted)


@pytest.mark.parametrize("width", [1, 8, 13, 16])
@pytest.mark.parametrize("fmt", ["float4_e2m1fn", "float8_e4m3fn", "float8_e5m2"])
def test_few_random_bits_leave_nothing_open(monkeypatch: pytest.MonkeyPatch, fmt: str, width: int) -> None:
    """Of numbers whose last bits are ones the loop over blocks leaves none: there are no more random bits that could decide."""
    x = np.random.default_rng(width).uniform(1, 2, 1 << 13).astype(np.float32).view(np.uint32) | np.uint32(0x3FFF)
    call = partial(bits.convert, x, "float32", fmt, rounding="stochastic", seed=3, sr_bits=width)
    left: list[Any] = []
    monkeypatch.setattr(engine.elementwise, "_left", lambda *job: left.append(job) or 0)
    same(both(monkeypatch, call))
    assert not left
