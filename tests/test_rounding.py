"""`softfloat.round`: float64 and float32 to the numbers of a format, held against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from covering import covering
from hypothesis import given
from hypothesis import strategies as st

import softfloat
from softfloat import Flags, Format, Position, bits, engine, reference
from softfloat.environments import Environment, Rounding
from softfloat.formats import check_format
from softfloat.rounding import number_set

MODES = [mode.name.lower() for mode in Rounding]
DRAWN = [mode.name.lower() for mode in Rounding if mode.draws]
FORMATS: list[Any] = [
    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn", "float8_e8m0fnu",
    Format("e8m7 flushed", exponent_bits=8, mantissa_bits=7, subnormals=False),
    Format("one bit", exponent_bits=5, mantissa_bits=0, nan="fn"),
]  # fmt: skip
SETTINGS: list[dict[str, Any]] = [
    {},
    {"overflow": "saturate"},
    {"overflow": "nan", "infinite_input": "nan"},
    {"ftz": True, "nan": "ipu"},
    {"daz": True, "tininess": "before"},
    {"infinite_input": "saturate"},
]
EXTREME = [math.inf, -math.inf, math.nan, 0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.7e308, -1.7e308]
SIGNALLING = np.array([0x7FF0000000000001, 0xFFF4000000000000], np.uint64).view(np.float64)


def near(landmarks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers, those just beside them, and the same of the middle between two that follow each other."""
    middle = (landmarks[1:] + landmarks[:-1]) / 2
    both = np.concatenate([landmarks, middle])
    return np.concatenate([both, np.nextafter(both, np.inf), np.nextafter(both, -np.inf)])


def inputs(fmt: Format) -> np.ndarray[Any, Any]:
    """What is near some of a format's numbers, among them the least and the largest; and numbers from far off."""
    random = np.random.default_rng(1)
    tiny = [fmt.smallest_subnormal * k for k in (0.25, 0.5, 1, 2, 3)]
    edges = [fmt.tiny * (1 - 2.0**-k) for k in range(1, fmt.p + 3)]
    marks = np.sort(
        np.array(
            [
                *tiny,
                *edges,
                fmt.tiny,
                1.0,
                1.0 + fmt.eps,
                fmt.max * (1 - fmt.eps / 2),
                fmt.max * (1 + fmt.eps / 2),
                fmt.max,
            ]
        )
    )
    marks = near(marks)
    scattered = random.standard_normal(24) * 2.0 ** random.integers(fmt.emin - 3, fmt.emax + 2, 24)
    return np.concatenate([marks, -marks, scattered, EXTREME, SIGNALLING])


def same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether numbers have the same bits, all NaNs alike."""
    kind = np.int32 if found.dtype == np.float32 else np.int64
    return (found.view(kind) == wanted.view(kind)) | (np.isnan(found) & np.isnan(wanted))


def each(x: np.ndarray[Any, Any], numbers: engine.NumberSet, settings: Any, **options: Any) -> tuple[Any, Any]:
    """Results and flags of each number."""
    call = {"out": None, "flags": "each", "stream": 0, "position": None, "random_bits": None}
    call |= {"dtype": np.dtype(np.float64)} | options
    return engine.rounded_values(x, numbers, settings, **call)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_what_codes_would_be(fmt: Any, mode: str) -> None:
    fmt = check_format(fmt)
    x = inputs(fmt)
    for given_ in SETTINGS:
        if given_.get("overflow") == "nan" and not fmt.has_nan:
            continue
        options = {**given_, "rounding": mode}
        drawn: list[dict[str, int]] = [{}] * x.size
        if mode in DRAWN:
            width = 1 if mode == "up_or_down" else 52 if len(given_) < 2 else 9
            drawn = [{"random_bits": int(b)} for b in bits.random_bits(x.size, seed=3, sr_bits=width)]
            options |= {"seed": 3} | ({"sr_bits": width} if mode == "stochastic" else {})
        oracle = {name: value for name, value in options.items() if name != "seed"}
        pairs = [reference.encode(float(v), fmt, **oracle, **more) for v, more in zip(x[:-2], drawn, strict=False)]
        wanted = np.array([float(bits.decode(code, fmt)) for code, _ in pairs])
        settings = Environment(**options).settings.between("float64", fmt.name)
        found, flags = each(x, number_set(fmt), settings)
        assert same(found[:-2], wanted).all(), (given_, x[:-2][~same(found[:-2], wanted)])
        assert flags[:-2].tolist() == [raised for _, raised in pairs], given_
        assert (flags[-2:] & Flags.INVALID).all()
        with softfloat.environment(Environment(**options)) as env:
            whole = softfloat.round(x[:-2], fmt)
            assert same(whole, wanted).all()
            assert env.status.flags == Flags(int(np.bitwise_or.reduce(flags[:-2])))


# -- exponents, and no format ------------------------------------------------------------------------------------------


def exactly(x: float, p: int, emin: int, emax: int, mode: str, subnormals: bool, random: int = 0) -> tuple[float, int]:
    """(number, flags) as IEEE 754-2019 4.3, 7.4 and 7.5 have them, tininess after rounding; `random`: 52 bits."""
    if math.isnan(x) or math.isinf(x) or x == 0:
        return x, 0
    negative, magnitude = x < 0, abs(Fraction(x))
    e = math.frexp(abs(x))[1] - 1

    def stepped(quantum: int) -> int:
        n, rest = divmod(magnitude, Fraction(2) ** quantum)
        rest /= Fraction(2) ** quantum
        up = {
            "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n % 2 == 1),
            "nearest_away": rest >= Fraction(1, 2),
            "toward_zero": False,
            "toward_positive": rest > 0 and not negative,
            "toward_negative": rest > 0 and negative,
            "to_odd": rest > 0 and n % 2 == 0,
            "stochastic": math.floor(rest * 2**52) + random >= 2**52,
            "nearest_zero": rest > Fraction(1, 2),
            "nearest_up": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and not negative),
            "up_or_down": rest > 0 and random >= 2**51,
        }[mode]
        return int(n) + int(up)

    quantum = e - p + 1 if e >= emin else emin - p + 1 if subnormals else emin
    count = stepped(quantum)
    rounded = count * Fraction(2) ** quantum
    flags = 1 if rounded != magnitude else 0
    if flags and e < emin and stepped(e - p + 1) * Fraction(2) ** (e - p + 1) < Fraction(2) ** emin:
        flags = 3
    largest = (2 - Fraction(2) ** (1 - p)) * Fraction(2) ** emax
    if rounded > largest:
        stays = mode in ("toward_zero", "to_odd", "toward_positive" if negative else "toward_negative")
        return math.copysign(float(largest) if stays else math.inf, x), 5
    return math.copysign(float(rounded), x), flags


REACHES = [
    (53, -1022, 1023),
    (53, -5, 6),
    (52, -1000, 900),
    (37, -1021, 1023),
    (24, -1022, 1023),
    (2, -960, 3),
    (1, -4, 4),
    (1, 0, 5),
    (30, 0, 0),
]


@pytest.mark.parametrize("subnormals", [True, False])
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_exponents_that_no_format_has(reach: tuple[int, int, int], subnormals: bool) -> None:
    p, emin, emax = reach
    least = max(emin - p + 1, -1074) if subnormals else emin
    top = math.ldexp(2.0 - 2.0 ** (1 - p), emax)
    marks = np.array([math.ldexp(1.0, e) for e in (least, emin, (emin + emax) // 2)])
    random = np.random.default_rng(2)
    with np.errstate(over="ignore"):
        marks = near(np.sort([*marks, *(marks * 0.5), *(marks * (1 + 2.0 ** (1 - p))), top, top / 2]))
        scattered = np.ldexp(
            1 + random.random(60), random.integers(max(emin - p - 2, -1074), min(emax + 1, 1023) + 1, 60)
        )
    x = np.concatenate([marks, -marks, scattered, -scattered, EXTREME])
    numbers = number_set(reach, subnormals)
    drawn = bits.random_bits(x.size, seed=4)
    for mode in MODES:
        settings = Environment(rounding=mode, seed=4).settings
        found, flags = each(x, numbers, settings)
        pairs = [exactly(float(v), *reach, mode, subnormals, int(r)) for v, r in zip(x, drawn, strict=True)]
        wanted = np.array([value for value, _ in pairs])
        assert same(found, wanted).all(), (mode, x[~same(found, wanted)])
        assert flags.tolist() == [raised for _, raised in pairs], mode
        again = softfloat.round(x, reach, mode, subnormals=subnormals, seed=4)
        assert same(again, wanted).all(), mode


def test_the_carriers_range() -> None:
    x = np.array([1e300, 1.2345e-310, math.pi, -0.0, math.inf])
    wanted = [exactly(float(v), 11, -1022, 1023, "nearest_even", True)[0] for v in x]
    assert softfloat.round(x, "float16", range="carrier").tolist() == wanted
    single = x[2:].astype(np.float32)
    found = softfloat.round(np.array([1e30, 1e-40], np.float32), "float8_e4m3fn", range="carrier")
    assert found.dtype == np.float32
    assert found.tolist() == [
        exactly(float(v), 4, -126, 127, "nearest_even", True)[0] for v in np.array([1e30, 1e-40], np.float32)
    ]
    assert softfloat.round(single, (40, 200), range="carrier").tobytes() == single.tobytes()


# -- the shorter ways ----------------------------------------------------------------------------------------------------

WHOLES: list[Any] = [
    "float16",
    "bfloat16",
    "float8_e4m3fnuz",
    (36, 200),
    (37, 200),
    (51, 300),
    (52, 300),
    (53, 900),
    (2, 60),
    (1, 60),
    (11, 100, 200),
    (8, -140, 120),
    (24, 127),
]


KINDS = [(dtype, subnormals) for dtype in (np.float64, np.float32) for subnormals in (True, False)]


def kept_as(numbers: engine.NumberSet, dtype: type) -> type:
    """What float64 or float32 becomes: float32 where that has all numbers."""
    return np.float32 if dtype == np.float32 and numbers.fits_single else np.float64


def made_from(fmt: Any, mode: str, dtype: type, subnormals: bool) -> tuple[tuple[str, Any], ...]:
    """What the loop of a kind is made from."""
    numbers = number_set(fmt, subnormals)
    kinds = {"floats": (dtype, kept_as(numbers, dtype)), "unsigned": not numbers.kind.signed_zero}
    return *kinds.items(), ("gap", not subnormals), ("mode", mode)


@cache
def shown() -> set[tuple[tuple[str, Any], ...]]:
    """Those loops that other tests here take, and as many as show each two properties that none of these has together."""
    plain = [made_from("float16", mode, *kind) for kind in KINDS[:3] for mode in MODES]
    loops = list(dict.fromkeys(made_from(fmt, mode, *kind) for kind in KINDS for fmt in WHOLES for mode in MODES))
    return {*plain, *(loops[n] for n in covering([*map(dict, loops)], others=[*map(dict, plain)]))}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", WHOLES, ids=str)
def test_blocks_have_the_bits_of_each_number(fmt: Any, mode: str, request: pytest.FixtureRequest) -> None:
    random = np.random.default_rng(5)
    numbers = number_set(fmt)
    parts = [
        random.standard_normal(700),
        random.standard_normal(700) * 2.0 ** (numbers.emin - 1),
        random.standard_normal(300) * 2.0**numbers.emax,
    ]
    steps = random.integers(-(2**10), 2**10, 700) * math.ldexp(1.0, max(numbers.emin - numbers.p, -1074))
    parts += [np.ldexp(1 + random.integers(0, 16, 700) / 16, 0), steps, -np.abs(steps) / 64, parts[0]]
    least = max(numbers.emin - numbers.p + 1, -1074)
    marks = np.ldexp(np.arange(9.0), least), np.ldexp(np.linspace(0.5, 2, 13), numbers.emin), np.linspace(0.5, 4, 29)
    marks = np.unique(np.concatenate([*marks, numbers.largest * np.linspace(0.5, 1, 9)]))
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            edges = near(np.unique(marks.astype(dtype)))
            edges = np.sort(np.concatenate([edges, -edges])).repeat(3)
            edges = edges[np.argsort(np.abs(edges), kind="stable")]
            x = np.concatenate([*(part.astype(dtype) for part in parts), edges])
        for subnormals in (True, False):
            if not (request.config.getoption("--exhaustive") or made_from(fmt, mode, dtype, subnormals) in shown()):
                continue
            numbers = number_set(fmt, subnormals)
            kept = kept_as(numbers, dtype)
            for width in (52, 7) if mode == "stochastic" else (None,):
                settings = Environment(rounding=mode, seed=6, sr_bits=width).settings
                found, flags = each(x, numbers, settings, stream=9, dtype=np.dtype(kept))
                for start in range(0, x.size, 512):  # so that blocks are of one kind, and end early
                    part, place = x[start : start + 512], Position(start)
                    options: dict[str, Any] = {"flags": "any", "stream": 9, "position": place, "dtype": np.dtype(kept)}
                    whole, seen = each(part, numbers, settings, **options)
                    wanted = found[start : start + 512]
                    assert same(whole, wanted).all(), (dtype, subnormals, part[~same(whole, wanted)])
                    assert seen == np.bitwise_or.reduce(flags[start : start + 512]), (dtype, subnormals, start)


@pytest.mark.parametrize("tininess", ["before", "after"])
@pytest.mark.parametrize("mode", MODES)
def test_blocks_are_tiny_where_each_number_is(mode: str, tininess: str) -> None:
    for fmt, dtype in (("float16", np.float64), ("float16", np.float32), ("float8_e4m3fn", np.float64)):
        numbers = number_set(fmt)
        below = np.array([2.0 ** (numbers.emin - numbers.p - k) for k in range(4)], dtype)
        settings = Environment(rounding=mode, seed=6, tininess=tininess).settings
        for v in np.unique(near(np.sort(dtype(2.0**numbers.emin) - below))):
            for x in (np.full(40, v), np.full(40, -v)):
                kept = {"dtype": np.dtype(dtype), "stream": 9}
                found, flags = each(x, numbers, settings, **kept)
                whole, seen = each(x, numbers, settings, flags="any", **kept)
                assert same(whole, found).all(), v
                assert seen == np.bitwise_or.reduce(flags), v


@pytest.mark.parametrize("fmt", ["float16", "float8_e4m3fn", (24, 200)], ids=str)
def test_random_bits_after_the_first_16(fmt: Any) -> None:
    """The first leave open whether half a unit of them goes up."""
    numbers, random = number_set(fmt), np.random.default_rng(15)
    step = 2.0 ** (1 - numbers.p)
    first, rest = random.integers(0, 1 << 16, 600), random.integers(0, 1 << 36, 600)
    x = 1.0 + (np.arange(600) % 2 + (first + 0.5) / (1 << 16)) * step
    handed = ((0xFFFF - first) << 36 | rest).astype(np.uint64)
    settings = Environment(rounding="stochastic", sr_bits=52).settings
    found, flags = each(x, numbers, settings, flags="any", random_bits=handed)
    up = rest >= 1 << 35
    assert (found == 1.0 + (np.arange(600) % 2 + up) * step).all()
    assert flags == Flags.INEXACT


@given(st.lists(st.floats(width=64), min_size=1, max_size=8), st.sampled_from(MODES), st.integers(0, 2**64 - 1))
def test_any_numbers(values: list[float], mode: str, seed: int) -> None:
    found = softfloat.round(values, "float16", mode, seed=seed)
    codes, _ = bits.encode(values, "float16", rounding=mode, seed=seed)
    assert same(found, bits.decode(codes, "float16")).all()
    assert same(softfloat.round(found, "float16", mode, seed=seed), found).all()


# -- random numbers ------------------------------------------------------------------------------------------------------


def test_random_numbers_are_those_of_codes() -> None:
    x = np.random.default_rng(7).standard_normal((70, 130)) * 1e-3
    options: dict[str, Any] = {"rounding": "stochastic", "seed": 8, "stream": 5}
    wanted = bits.decode(bits.encode(x, "float16", **options)[0], "float16")
    assert (softfloat.round(x, "float16", **options) == wanted).all()
    threads = softfloat.get_num_threads()
    try:
        softfloat.set_num_threads(3)
        long = np.tile(x, (40, 1))
        three = softfloat.round(long, "float16", **options)
        softfloat.set_num_threads(1)
        assert (softfloat.round(long, "float16", **options) == three).all()
    finally:
        softfloat.set_num_threads(threads)
    block = softfloat.round(x[3:, 5:60], "float16", position=Position((3, 5), x.shape), **options)
    assert (block == wanted[3:, 5:60]).all()
    handed = bits.random_bits(x.shape, seed=8, stream=5)
    assert (softfloat.round(x, "float16", "stochastic", random_bits=handed, sr_bits=52) == wanted).all()
    other = {"rounding": "stochastic", "seed": 8, "generator": "xoroshiro128aox"}
    assert (
        softfloat.round(x, "float16", **other) == bits.decode(bits.encode(x, "float16", **other)[0], "float16")
    ).all()
    found = x.copy()
    assert softfloat.round(found, "float16", out=found, **options) is found
    assert (found == wanted).all()


@pytest.mark.parametrize("mode", ["nearest_even", "stochastic"])
def test_settled_calls_have_the_bits_and_flags_of_others(mode: str) -> None:
    """Settled beforehand unless results go where the operands are; also of sizes that threads share."""
    for size in (70_000, (1 << 18) + 5):
        x = np.random.default_rng(5).normal(size=size)
        with softfloat.environment(rounding=mode, seed=3) as settled:
            found, out = softfloat.round(x, "float16"), np.empty_like(x)
            assert softfloat.round(x, "float16", out=out, seed=3) is out
        with softfloat.environment(rounding=mode, seed=3) as other:
            expected = softfloat.round(x, "float16", out=x)
        assert np.array_equal(found, expected)
        assert np.array_equal(out, expected)
    assert settled.status.flags == other.status.flags


@pytest.mark.parametrize("mode", MODES)
def test_arrays_by_columns(mode: str) -> None:
    """Bits are those of the same numbers by rows, drawn ones too, and results lie in memory as the numbers do where nothing is drawn."""
    x = np.random.default_rng(5).standard_normal((40, 30)) * 1e4
    x[0, :3] = 0.0, math.inf, 2.0**-24
    for columns in (np.asfortranarray(x), np.asfortranarray(x.astype(np.float32))):
        rows, out = np.ascontiguousarray(columns), np.empty_like(columns)
        with softfloat.environment(rounding=mode, seed=2) as env:
            wanted = softfloat.round(rows, "float16", stream=7)
        with softfloat.environment(rounding=mode, seed=2) as again:
            found = softfloat.round(columns, "float16", stream=7)
            assert softfloat.round(columns, "float16", stream=7, out=out) is out
            with_rows = softfloat.round(columns, "float16", stream=7, out=np.empty_like(rows))
        for other in (found, out, with_rows):
            assert np.array_equal(
                wanted.view(f"u{wanted.itemsize}"), np.ascontiguousarray(other).view(f"u{wanted.itemsize}")
            )
        assert env.status.flags == again.status.flags
        assert found.flags.f_contiguous is (mode not in DRAWN)


def test_streams_go_on_unless_a_seed_is_named() -> None:
    x = np.full(64, 0.1)
    with softfloat.environment(rounding="stochastic", seed=1):
        first, second = softfloat.round(x, "bfloat16"), softfloat.round(x, "bfloat16")
        assert (first != second).any()
        assert (softfloat.round(x, "bfloat16", seed=1) == first).all()
        assert (softfloat.round(x, "bfloat16", seed=1, stream=1) == second).all()


def test_methods_that_codes_alone_have() -> None:
    x = np.random.default_rng(9).standard_normal(300)
    for options in (
        {"projection": "p3109"},
        {"rounding": "stochastic", "seed": 2, "sr_method": "nearest", "sr_bits": 8},
    ):
        wanted = bits.decode(bits.encode(x, "float8_e4m3fn", **options)[0], "float8_e4m3fn")
        assert same(softfloat.round(x, "float8_e4m3fn", **options), wanted).all()
        with pytest.raises(ValueError, match=r"softfloat\.Format"):
            softfloat.round(x, (4, 7), **options)


# -- bit errors ----------------------------------------------------------------------------------------------------------


def test_bits_that_are_turned_over() -> None:
    x = np.random.default_rng(10).standard_normal(4000)
    plain = bits.encode(x, "float16")[0]
    for where, width in (("significand", 10), ("any", 16)):
        codes = bits.encode(softfloat.round(x, "float16", flip=(1.0, where), seed=11), "float16")[0]
        numbers = ~bits.isnan(codes, "float16")
        turned = (codes ^ plain)[numbers]
        assert (np.bitwise_count(turned) == 1).all()
        counts = np.array([(turned == 1 << bit).sum() for bit in range(16)])
        assert (counts[:width] > 0.7 * 4000 / width).all()
        assert not counts[width:].any()
    some = softfloat.round(x, "float16", flip=(0.25, "any"), seed=11)
    assert 850 < (some != bits.decode(plain, "float16")).sum() < 1150
    again = softfloat.round(x[1000:], "float16", flip=(0.25, "any"), seed=11, position=Position(1000))
    assert same(again, some[1000:]).all()
    assert (softfloat.round(x, "float16", flip=(0.0, "any"), seed=11) == bits.decode(plain, "float16")).all()


def test_bits_of_numbers_without_codes() -> None:
    """The precision and exponents of half are turned over as half is."""
    x = np.concatenate(
        [np.random.default_rng(12).standard_normal(500) * 2.0 ** np.arange(-30, 20).repeat(10), [0.0, -0.0, math.inf]]
    )
    for subnormals in (True, False):
        wanted = softfloat.round(x, "float16", flip=(0.5, "significand"), seed=13, subnormals=subnormals)
        found = softfloat.round(x, (11, 15), flip=(0.5, "significand"), seed=13, subnormals=subnormals)
        assert same(found, wanted).all()
    wide = softfloat.round(np.array([5e-324, 1.0, -1e308]), (53, 1023), flip=(1.0, "significand"), seed=1)
    assert (np.bitwise_count(wide.view(np.uint64) ^ np.array([5e-324, 1.0, -1e308]).view(np.uint64)) == 1).all()


# -- blocks with a few numbers out of range ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", ["nearest_even", "to_odd", "toward_positive", "stochastic"])
@pytest.mark.parametrize("fmt", ["float8_e4m3fn", (11, 200)], ids=str)
def test_what_is_out_of_range_changes_nothing_beside_it(fmt: Any, mode: str, dtype: Any) -> None:
    """Few in a block, none in most parts of it, in place and not."""
    x = np.random.default_rng(15).standard_normal(5000).astype(dtype)
    x[[3, 130, 131, 2047, 2048, 4999]] = [1e6, math.inf, math.nan, -1e30, 5e-40, -449.0]
    numbers = number_set(fmt, single=dtype == np.float32)
    kept = np.float32 if dtype == np.float32 and numbers.fits_single else np.float64
    settings = Environment(rounding=mode, seed=6).settings
    wanted, flags = each(x, numbers, settings, dtype=np.dtype(kept))
    for operand in (x, x.copy()):
        out = operand if operand is not x and kept == dtype else np.empty(x.size, kept)
        with softfloat.environment(rounding=mode, seed=6) as env:
            assert same(softfloat.round(operand, fmt, out=out), wanted).all()
        assert env.status.flags == Flags(int(np.bitwise_or.reduce(flags)))


# -- arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest_even", "toward_negative", "to_odd", "stochastic"])
def test_float32_is_rounded_as_the_same_numbers_in_float64(mode: str) -> None:
    random = np.random.default_rng(14)
    anything = random.integers(0, 2**32, 3000, dtype=np.uint32).view(np.float32)
    small = random.integers(0, 2**24, 1000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([anything, small, np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)])
    numbers: list[Any] = ["bfloat16", "float32", "float16", (5, -140, 127), (40, 500)]
    for fmt, options in [(fmt, {}) for fmt in numbers] + [
        ("bfloat16", {"subnormals": False}),
        ("tfloat32", {"daz": False}),
    ]:
        with (
            softfloat.environment(seed=2) as env,
            softfloat.environment(seed=2) as other,
            np.errstate(invalid="ignore"),
        ):
            wide = softfloat.round(x.astype(np.float64), fmt, mode, **options)
            seen = int(other.status.flags)
            with env:
                found = softfloat.round(x, fmt, mode, stream=0, **options)
            assert same(found.astype(np.float64), wide).all(), (fmt, options)
            assert (int(env.status.flags) & ~Flags.INVALID) == seen & ~Flags.INVALID, fmt


def test_what_goes_in_and_out() -> None:
    assert type(softfloat.round(0.1, "float16")) is float
    assert type(softfloat.round(3, "float8_e4m3fn")) is float
    assert softfloat.round(np.float64(0.1), softfloat.bfloat16) == 0.10009765625
    single = np.array([[0.1, 1e-40]], np.float32)
    assert softfloat.round(single, "float16").dtype == np.float32
    assert softfloat.round(single, "bfloat16").tolist() == [
        [0.10009765625, float(np.float32(bits.decode(bits.encode(1e-40, "bfloat16")[0], "bfloat16")))]
    ]
    assert softfloat.round(single, (40, 500)).dtype == np.float64
    assert softfloat.round(np.float16(2.5), "float4_e2m1fn") == 2.0
    assert softfloat.round(softfloat.array([0.1, 70000.0], "float32"), "float16").tolist() == [
        0.0999755859375,
        math.inf,
    ]
    assert softfloat.round([[1, 2**53]], "float32").shape == (1, 2)
    x = np.arange(12.0).reshape(3, 4)[:, ::2] + 0.1
    out = np.empty((3, 2))
    assert softfloat.round(x, "bfloat16", out=out) is out
    assert (out == bits.decode(bits.encode(x, "bfloat16")[0], "bfloat16")).all()
    assert softfloat.round(np.empty((0, 3)), "float16").shape == (0, 3)
    assert softfloat.round(np.array(0.1), "float16").shape == ()


def test_environments_rule() -> None:
    wide = softfloat.Environment(rounding="toward_zero")
    with softfloat.environment(rounding="toward_positive", overflow="saturate", overrides={"float16": wide}) as env:
        assert softfloat.round(-0.1, "bfloat16") == -0.099609375
        assert softfloat.round(-0.1, "float16") == -0.0999755859375
        assert softfloat.round(1e9, "float16", "nearest_even") == math.inf
        assert env.status.flags == Flags.INEXACT | Flags.OVERFLOW
    with softfloat.environment(traps="OFLO"), pytest.raises(softfloat.FloatingPointTrap, match="round") as trap:
        softfloat.round([1.0, 70000.0], "float16")
    assert trap.value.index == (1,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fmt": "flaot16"}, "did you mean"),
        ({"fmt": (54, 15)}, "p must be 1 to 53"),
        ({"fmt": (11, 1024)}, "-1022 to 1023"),
        ({"fmt": (11, 5, 4)}, "emin no more than emax"),
        ({"fmt": (11.0, 15)}, r"\(p, emax\)"),
        ({"fmt": (1, 2, 3, 4)}, r"\(p, emin, emax\)"),
        ({"fmt": 11}, r"\(p, emax\).*, got 11"),
        ({"rounding": "nearest"}, "nearest_even"),
        ({"rounding": "stochastic"}, "seed"),
        ({"range": "double"}, "'carrier'"),
        ({"subnormals": 1}, "subnormals must be True, False or None"),
        ({"saturate": "yes"}, "saturate must be"),
        ({"saturate": True, "overflow": "nan"}, "one of them"),
        ({"sr_bits": 8}, "no effect without"),
        ({"roundng": 1}, "unknown option 'roundng'.*; did you mean 'rounding'?"),
        ({"saturation": 1}, "unknown option 'saturation'.*; did you mean 'saturate'?"),
        ({"flip": 0.5}, "flip must be"),
        ({"flip": (2.0, "any")}, "probability"),
        ({"flip": (0.5, "all")}, "'significand'"),
        ({"flip": (0.5, "any")}, "seed"),
        ({"fmt": (11, 15), "flip": (0.5, "any"), "seed": 1}, r"softfloat\.Format"),
        ({"fmt": "float8_e8m0fnu", "range": "carrier"}, "no negative numbers"),
        ({"fmt": "float8_e8m0fnu", "subnormals": True}, "no zero"),
        ({"fmt": "float4_e2m1fn", "overflow": "nan"}, "needs a format with a NaN"),
        ({"x": [2**53 + 1]}, r"bits\.encode"),
        ({"x": Fraction(1, 3)}, r"bits\.encode"),
        ({"x": 1j}, "floats"),
        ({"x": np.ma.array([1.0])}, "mask"),
        ({"out": np.empty(3)}, "out must be"),
        ({"random_bits": np.zeros(1, np.uint8)}, "stochastic"),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, Any], words: str) -> None:
    arguments = {"x": [0.5], "fmt": "float16"} | options
    with pytest.raises((TypeError, ValueError), match=words):
        softfloat.round(**arguments)
