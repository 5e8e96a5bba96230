"""Mathematical functions: every code of half and bfloat16 against MPFR, every format, mode and rule against the oracle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import gmpy2
import numpy as np
import pytest
from operands import CUSTOM, operands
from oracle import MODES, agree, assert_rounds_up_where_the_oracle_does, drawn, options_of
from softfloat.kernels.spec import CARRIER64, NAN_POLICIES
from tallies import Tally

import softfloat
from softfloat import ROSTER, Format, bits, reference
from softfloat.bits.functions import named, table, values, ways
from softfloat.bits.functions.bounds import Bounds

HALF, BRAIN, SINGLE = (ROSTER[name] for name in ("float16", "bfloat16", "float32"))
FORMATS = [*ROSTER.values(), *CUSTOM]
BYTES = [fmt for fmt in FORMATS if fmt.bits <= 8]
BINARY = ("pow", "hypot", "atan2", "logaddexp", "logaddexp2", "floor_divide", "fmod", "modulo")
UNARY = tuple(name for name in named.__all__ if name not in BINARY)
INEXACT, UNDERFLOW, OVERFLOW, DIVBYZERO, INVALID = 1, 2, 4, 8, 16
COUNT = 60

MPFR: dict[str, Callable[..., Any]] = {
    **{name: getattr(gmpy2, name) for name in UNARY if name not in ("degrees", "radians")},
    "pow": lambda a, b: a**b,
    **{name: getattr(gmpy2, name) for name in ("hypot", "atan2", "fmod")},
}
MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "toward_positive": gmpy2.RoundUp,
    "toward_negative": gmpy2.RoundDown,
}


def context_of(fmt: Format, mode: str) -> Any:
    emin = fmt.minexp - fmt.mantissa_bits + 1
    return gmpy2.context(
        precision=fmt.mantissa_bits + 1, emax=fmt.maxexp, emin=emin, subnormalize=True, round=MPFR_MODES[mode]
    )


def mpfr(name: str, fmt: Format, mode: str, *columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """MPFR's values at codes, and its flags: inexact, division by zero, invalid."""
    values, flags = [], []
    with context_of(fmt, mode) as context:
        for row in zip(*(bits.decode(column, fmt).tolist() for column in columns), strict=True):
            numbers = [gmpy2.mpfr(x) for x in row]
            context.clear_flags()
            values.append(float(MPFR[name](*numbers)))
            invalid = context.invalid and not any(x != x for x in row)
            flags.append(context.inexact * INEXACT | context.divzero * DIVBYZERO | invalid * INVALID)
    return np.array(values), np.array(flags)


def differ(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where numbers, or their signs, differ; one NaN is as good as another."""
    same = (found == expected) & (np.signbit(found) == np.signbit(expected))
    return ~(same | (np.isnan(found) & np.isnan(expected)))


def assert_agrees_with_mpfr(tally: Tally, name: str, fmt: Format, mode: str, *columns: np.ndarray) -> None:
    signals = np.logical_or.reduce([bits.issnan(column, fmt) for column in columns])
    columns = tuple(column[~signals] for column in columns)  # MPFR knows one kind of NaN
    codes, raised = getattr(bits, name)(*columns, fmt, rounding=mode)
    expected, flags = mpfr(name, fmt, mode, *columns)
    wrong = differ(bits.decode(codes, fmt), expected) | (raised & (INEXACT | DIVBYZERO | INVALID) != flags)
    tally(name, fmt, mode, wrong.size, wrong.sum())
    assert not wrong.any(), [hex(column[wrong][0]) for column in columns]


@cache
def numbers(fmt: Format) -> list[Any]:
    """MPFR's numbers of all codes."""
    with context_of(fmt, "nearest_even"):
        return [gmpy2.mpfr(x) for x in bits.decode(every(fmt), fmt).tolist()]


def every(fmt: Format, step: int = 1) -> np.ndarray:
    return np.arange(0, 2**fmt.bits, step, dtype=fmt.dtype)


GMPY2 = "MPFR, through gmpy2: functions"

# -- against MPFR ----------------------------------------------------------------------------------------------------


@pytest.mark.conformance(GMPY2)
@pytest.mark.parametrize("fmt", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("name", [name for name in UNARY if name in MPFR])
def test_every_code(tally: Tally, name: str, fmt: Format) -> None:
    """Values alone; flags are slow to get from MPFR."""
    codes = every(fmt)
    with context_of(fmt, "nearest_even"):
        expected = np.array([float(MPFR[name](x)) for x in numbers(fmt)])
    wrong = differ(bits.decode(getattr(bits, name)(codes, fmt)[0], fmt), expected)
    tally(name, fmt, "nearest_even", wrong.size, wrong.sum())
    assert not wrong.any(), hex(codes[wrong][0])


@pytest.mark.conformance(GMPY2)
@pytest.mark.parametrize("mode", list(MPFR_MODES)[1:])
@pytest.mark.parametrize("name", [name for name in UNARY if name in MPFR])
def test_directed_modes(tally: Tally, name: str, mode: str) -> None:
    for fmt in (HALF, BRAIN):
        assert_agrees_with_mpfr(tally, name, fmt, mode, every(fmt, 23))


def moderate(fmt: Format, count: int, seed: int) -> np.ndarray:
    """Numbers around 1, a third of them of few bits."""
    random = np.random.default_rng(seed)
    values = np.exp2(random.normal(0, 3, count)) * random.choice([1, -1], count)
    return bits.encode(np.where(random.random(count) < 1 / 3, np.rint(values * 8) / 8, values), fmt)[0]


def corners() -> np.ndarray:
    """Numbers of float32 where something cancels: next to 1, and next to multiples of a quarter turn, huge ones too."""
    one = np.float32(1).view(np.uint32) + np.arange(-12, 13, dtype=np.int64)
    turns = np.concatenate([np.arange(1, 100), 2 ** np.arange(7, 100, 3) - 1.0]) * (np.pi / 2)
    worst = [float(16367173 * 2**72), float(np.uint32(0x44DDA6C4).view(np.float32))]  # closest to multiples of pi / 2
    codes = np.concatenate(
        [one.astype(np.uint32), turns.astype(np.float32).view(np.uint32), np.float32(worst).view(np.uint32)]
    )
    return np.concatenate([codes, codes ^ np.uint32(1 << 31)])


@pytest.mark.conformance(GMPY2)
@pytest.mark.parametrize("mode", MPFR_MODES)
@pytest.mark.parametrize("name", MPFR)
def test_single(tally: Tally, name: str, mode: str) -> None:
    arity = 2 if name in BINARY else 1
    seed = list(MPFR).index(name)
    columns = operands(SINGLE, 300, arity, seed)
    columns = [
        np.concatenate([x, moderate(SINGLE, 300, seed + i), np.roll(corners(), i)]) for i, x in enumerate(columns)
    ]
    assert_agrees_with_mpfr(tally, name, SINGLE, mode, *columns)


@pytest.mark.conformance(GMPY2)
@pytest.mark.parametrize("name", [name for name in BINARY if name in MPFR])
def test_pairs(tally: Tally, name: str) -> None:
    for fmt in (HALF, BRAIN):
        columns = [np.concatenate([x, moderate(fmt, 1500, i)]) for i, x in enumerate(operands(fmt, 1500, 2, 11))]
        for mode in MPFR_MODES:
            assert_agrees_with_mpfr(tally, name, fmt, mode, *columns)


@pytest.mark.parametrize("name", MPFR)
def test_the_oracle(name: str) -> None:
    """`reference` has the values that MPFR has."""
    arity = 2 if name in BINARY else 1
    for fmt, mode in itertools.product((HALF, BRAIN, SINGLE), MPFR_MODES):
        columns = [np.concatenate([x, moderate(fmt, 40, i)]) for i, x in enumerate(operands(fmt, 40, arity, 5))]
        values, flags = mpfr(name, fmt, mode, *columns)
        signals = np.logical_or.reduce([bits.issnan(column, fmt) for column in columns])
        for row, value, raised, signal in zip(zip(*columns, strict=True), values, flags, signals, strict=True):
            if signal:
                continue
            code, found = getattr(reference, name)(*map(int, row), fmt, rounding=mode)
            decoded = bits.decode(code, fmt)
            assert (decoded == value and np.signbit(decoded) == np.signbit(value)) or (
                decoded != decoded and value != value
            ), row
            assert found & (INEXACT | DIVBYZERO | INVALID) == raised, row


# -- against the oracle ----------------------------------------------------------------------------------------------


def agrees(name: str, fmt: Format, columns: list[np.ndarray], options: dict[str, object], random: Any) -> None:
    compiled, oracle = getattr(bits, name), getattr(reference, name)
    agree(
        name,
        lambda o: compiled(*columns, fmt, **o),
        lambda *row_o: oracle(*row_o[:-1], fmt, **row_o[-1]),
        columns,
        options,
        random,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_functions(fmt: Format, mode: str) -> None:
    for case, name in enumerate(named.__all__):
        seed = 10_000 * FORMATS.index(fmt) + 100 * MODES.index(mode) + case
        columns = [x[: COUNT // 5 + 40 * (name in BINARY)] for x in operands(fmt, COUNT, 1 + (name in BINARY), seed)]
        options = options_of(seed, fmt, mode)
        random = drawn(options, seed)
        agrees(name, fmt, columns, options, None if random is None else random[: columns[0].size])


@pytest.mark.parametrize("fmt", BYTES, ids=str)
def test_narrow_formats(fmt: Format) -> None:
    """Every code, in nearest even and in one more mode."""
    for case, name in enumerate(UNARY):
        for mode in ("nearest_even", MODES[1:6][case % 5]):
            agrees(name, fmt, [every(fmt)], {"rounding": mode}, None)
    for case, name in enumerate(BINARY):
        pairs = np.arange(3 * case, 2 ** (2 * fmt.bits), max(2 ** (2 * fmt.bits) // 200, 1) | 1)
        columns = [(pairs >> fmt.bits).astype(fmt.dtype), (pairs % 2**fmt.bits).astype(fmt.dtype)]
        agrees(name, fmt, columns, {"rounding": MODES[case % 6]}, None)


@pytest.mark.parametrize("step", [509, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", UNARY)
def test_codes(name: str, step: int) -> None:
    for fmt in (HALF, BRAIN):
        agrees(name, fmt, [every(fmt, step)], {}, None)


@pytest.mark.parametrize("name", ["exp", "log2", "cbrt", "atan2", "pow", "hypot"])
@pytest.mark.parametrize("fmt", [HALF, SINGLE], ids=str)
def test_the_least_random_number_that_rounds_up(fmt: Format, name: str) -> None:
    """Of 2^52 random numbers, the one at which the oracle starts to round up, and the one before it: all bits kept count."""
    arity = 2 if name in BINARY else 1
    columns = [np.abs(moderate(fmt, 60, i).view(f"i{fmt.dtype.itemsize}")).view(fmt.dtype) for i in range(arity)]
    assert_rounds_up_where_the_oracle_does(name, fmt, columns)


# -- intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", [name for name in UNARY if name in MPFR])
def test_intervals_hold_the_value(name: str, step: int) -> None:
    """|f(x) - near - more| <= error: what is claimed of NumPy's functions, and of the series; 2^-400 is nothing to any format."""
    for fmt in (HALF, BRAIN):
        x = bits.decode(every(fmt, step), fmt)
        x = x[np.isfinite(x)]
        with np.errstate(all="ignore"):
            near, more, error = table.FUNCTIONS[name].bounds(x)
        with gmpy2.context(precision=700):
            for number, *interval in zip(x.tolist(), near.tolist(), more.tolist(), error.tolist(), strict=True):
                value = MPFR[name](gmpy2.mpfr(number))
                if not gmpy2.is_finite(value) or abs(value) > 2.0**400:
                    continue
                middle, rest, width = map(gmpy2.mpfr, interval)
                assert abs(value - middle - rest) <= width + 2.0**-400, number


@pytest.mark.parametrize("name", table.FUNCTIONS)
def test_the_library_does_not_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another library, right to eight units in the last place, leads to the same values, sticky bit and all."""
    numbers = values.carrier_numbers(HALF.spec, False)
    function = table.FUNCTIONS[name]
    arity = 2 if name in BINARY else 1
    columns = tuple(bits.decode(moderate(HALF, 3000, i), HALF) for i in range(arity))
    if name in ("pow", "acosh", "log", "log2", "log10", "log1p"):
        columns = tuple(np.abs(x) for x in columns)

    def other(*operands: np.ndarray) -> Bounds:
        near, more, error = function.bounds(*operands)
        shift = np.where(more == 0.0, error, 0.0) * np.random.default_rng(1).uniform(-0.5, 0.5, near.size)
        return near + np.where(np.isfinite(shift), shift, 0.0), more, error

    for kept in (values.KEPT, values.KEPT_IN_TABLES):
        expected = values.values_at(function, columns, kept, numbers)
        found = values.values_at(function._replace(bounds=other), columns, kept, numbers)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", table.FUNCTIONS)
def test_more_bits_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [moderate(SINGLE, 2000, i) for i in range(1 + (name in BINARY))]
    results = []
    for kept in (values.KEPT, 36, 45):
        monkeypatch.setattr(ways, "KEPT", kept)
        results.append(getattr(bits, name)(*columns, SINGLE, rounding="nearest_away"))
    for codes, flags in results[1:]:
        np.testing.assert_array_equal(codes, results[0][0])
        np.testing.assert_array_equal(flags, results[0][1])


LONG_POWERS = [(3.0, 33.0), (1.0 + 2.0**-23, 3.0), (1.0 + 2.0**-11, 6.0), (49.0, 8.5), (5.0, 29.0), (7.0, -2.0)]
"""Of more bits than the carrier has; the first five end in binary."""


@pytest.mark.parametrize("name", table.FUNCTIONS)
def test_law_of_stochastic_rounding(name: str) -> None:
    """What the bits kept of a value leave open is settled on more."""
    columns = [moderate(SINGLE, 60, i) & 0x7FFFFFFF for i in range(1 + (name in BINARY))]
    longer = {"pow": LONG_POWERS, "exp10": [(24.0,)]}.get(name, [])
    for i, numbers in enumerate(zip(*longer, strict=True)):
        columns[i] = np.concatenate([columns[i], bits.encode(numbers, SINGLE)[0]])
    assert_rounds_up_where_the_oracle_does(name, SINGLE, columns)


NEXT_TO_NUMBERS = [
    ("logaddexp", (3e38, 1.0)),
    ("logaddexp2", (-1e10, 3e10)),
    ("tanh", (3e38,)),
    ("expm1", (-3e38,)),
    ("exp", (-1e-44,)),
    ("cosh", (1e-44,)),
    ("cos", (1e-44,)),
]
"""Results that are a number and next to nothing: no precision shows more of them."""


@pytest.mark.parametrize(("name", "operands"), NEXT_TO_NUMBERS, ids=str)
def test_next_to_nothing_is_settled(name: str, operands: tuple[float, ...]) -> None:
    """mpmath was asked for ever more digits of tanh(3e38), where 52 ones or zeros left its side of 1 open."""
    row = [int(bits.encode(x, SINGLE)[0]) for x in operands]
    for random in (0, 1, (1 << 52) - 1):
        options: dict[str, Any] = {"rounding": "stochastic", "random_bits": random, "sr_bits": 52}
        assert getattr(bits, name)(*row, SINGLE, **options) == getattr(reference, name)(*row, SINGLE, **options)


def test_half_a_random_bit_needs_the_bits_kept() -> None:
    """log10(4.320e-4) lies 9838.93 of 2^16 above the number nearer to 0: 55697 and a half reach it, 55696 and a half do not."""
    for random, code in ((55696, 0xC057546F), (55697, 0xC0575470)):
        options: dict[str, Any] = {"rounding": "stochastic", "random_bits": random, "sr_bits": 16, "sr_method": "half"}
        assert bits.log10(0x39E27C6E, SINGLE, **options) == (code, INEXACT)
        assert reference.log10(0x39E27C6E, SINGLE, **options) == (code, INEXACT)


# -- tables of one operand of two ---------------------------------------------------------------------------------------

RULES: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_zero"},
    {"rounding": "toward_negative", "daz": True, "ftz": True},
    {"rounding": "to_odd", "tininess": "before"},
    {"overflow": "saturate", "nan": "arm"},
    {"nan": "x86", "daz": True},
    {"projection": "p3109"},
]
DRAWING: list[dict[str, Any]] = [
    {"rounding": "stochastic", "seed": 3},
    {"rounding": "stochastic", "seed": 3, "sr_bits": 5, "daz": True},
    {"rounding": "stochastic", "seed": 3, "sr_bits": 8, "sr_method": "nearest", "ftz": True},
]


def assert_as_computed(name: str, columns: list[Any], fmt: Format, options: dict[str, Any]) -> None:
    """Results by whatever way is taken are those computed one by one."""
    found, raised = getattr(bits, name)(*columns, fmt, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "work", ways._computed)
        codes, flags = getattr(bits, name)(*columns, fmt, **options)
    np.testing.assert_array_equal(found, codes)
    np.testing.assert_array_equal(raised, flags)
    assert getattr(bits, name)(*columns, fmt, flags="any", **options)[1] == np.bitwise_or.reduce(flags, axis=None)


@pytest.mark.parametrize("options", RULES, ids=str)
@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if 4 < fmt.bits <= 16], ids=str)
def test_one_code_beside_every_other(fmt: Format, options: dict[str, Any]) -> None:
    if options.get("nan") and not fmt.has_nan:
        return
    random = np.random.default_rng(FORMATS.index(fmt) + 100 * RULES.index(options))
    for name, number in (("pow", 0.5), ("pow", -3.0), ("atan2", 1.0), ("logaddexp", 0.25)):
        code = bits.encode(number, fmt)[0] if random.random() < 0.7 else random.integers(1 << fmt.bits)
        for columns in ([every(fmt), code], [code, every(fmt)], [np.full(1 << fmt.bits, code, fmt.dtype), every(fmt)]):
            assert_as_computed(name, columns, fmt, options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", RULES + DRAWING, ids=str)
@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if 4 < fmt.bits <= 16], ids=str)
def test_a_square_is_a_product(fmt: Format, options: dict[str, Any]) -> None:
    if options.get("nan") and not fmt.has_nan:
        return
    two, raised = bits.encode(2.0, fmt)
    if raised:
        return
    assert_as_computed("pow", [every(fmt, 1 if fmt.bits < 12 else 7), two], fmt, options)
    found, product = (
        bits.pow(every(fmt), two, fmt, **options),
        bits.mul(every(fmt), every(fmt), fmt, **options),
    )
    np.testing.assert_array_equal(found, product)


def test_small_squares_and_what_is_no_code_of_two() -> None:
    x = np.array([0x3C01, 0x7D00, 0x7BFF, 0x0001], np.uint16)
    for two in (0x4000, np.uint16(0x4000), np.array(0x4000, np.uint16), np.array([0x4000], np.uint16), [0x4000]):
        np.testing.assert_array_equal(bits.pow(x, two, HALF), bits.mul(x, x, HALF))
    assert bits.pow(0x4200, 0x4000, HALF) == (0x4880, 0)
    with pytest.raises(TypeError, match="b must be codes"):
        bits.pow(x, 16384.0, HALF)


def test_a_table_is_made_when_it_pays() -> None:
    x, fifth = every(HALF, 8), bits.encode(0.2, HALF)[0]
    ways.result_table.cache_clear()
    ways._asked_for.cache_clear()
    for call in range(6):
        assert_as_computed("pow", [x, fifth], HALF, {})
        assert ways.result_table.cache_info().currsize == (call >= 1)
    for _ in range(20):
        bits.pow(x[:3], fifth, HALF, rounding="toward_zero")
    assert ways.result_table.cache_info().currsize == 2


def test_few_elements_need_no_table() -> None:
    x = every(HALF, 1601)
    for cached in (named._lookup, ways.lookup, ways.result_table):
        cached.cache_clear()
    sizes, found = [], []
    for _ in range(60):
        found.append(bits.expm1(x, HALF))
        sizes.append(ways.result_table.cache_info().currsize)
    np.testing.assert_array_equal(found, [found[-1]] * len(found))
    assert sizes[0] == 0
    assert sizes == sorted(sizes)
    assert sizes[-1] == 1


def test_squares_of_single() -> None:
    x = np.concatenate([operands(SINGLE, 1000, 1, 3)[0], moderate(SINGLE, 1000, 4)])
    for options in RULES + DRAWING:
        assert_as_computed("pow", [x, 0x40000000], SINGLE, options)


@pytest.mark.parametrize("fmt", [fmt for fmt in BYTES if fmt.bits > 6], ids=str)
def test_pairs_of_every_code(fmt: Format) -> None:
    first, second = (x.reshape(-1) for x in np.meshgrid(every(fmt), every(fmt), indexing="ij"))
    for case, name in enumerate(name for name in BINARY if name in table.FUNCTIONS):
        assert_as_computed(name, [first, second], fmt, RULES[case % 4])


# -- special cases ---------------------------------------------------------------------------------------------------

inf, nan, pi = math.inf, math.nan, math.pi
SPECIAL: dict[str, list[tuple[Any, ...]]] = {
    "exp": [(0.0, 1.0, 0), (-0.0, 1.0, 0), (inf, inf, 0), (-inf, 0.0, 0), (nan, nan, 0)],
    "exp2": [(3.0, 8.0, 0), (-3.0, 0.125, 0), (-0.0, 1.0, 0), (-inf, 0.0, 0), (inf, inf, 0)],
    "exp10": [(2.0, 100.0, 0), (0.0, 1.0, 0), (-inf, 0.0, 0), (inf, inf, 0)],
    "expm1": [(0.0, 0.0, 0), (-0.0, -0.0, 0), (inf, inf, 0), (-inf, -1.0, 0)],
    "log": [(0.0, -inf, 8), (-0.0, -inf, 8), (1.0, 0.0, 0), (-1.0, nan, 16), (-inf, nan, 16), (inf, inf, 0)],
    "log2": [(8.0, 3.0, 0), (0.125, -3.0, 0), (0.0, -inf, 8), (-1.0, nan, 16), (inf, inf, 0)],
    "log10": [(1000.0, 3.0, 0), (1.0, 0.0, 0), (-0.0, -inf, 8), (-1.0, nan, 16), (inf, inf, 0)],
    "log1p": [(-0.0, -0.0, 0), (-1.0, -inf, 8), (-2.0, nan, 16), (inf, inf, 0), (-inf, nan, 16)],
    "sin": [(-0.0, -0.0, 0), (inf, nan, 16), (-inf, nan, 16)],
    "cos": [(-0.0, 1.0, 0), (inf, nan, 16)],
    "tan": [(-0.0, -0.0, 0), (inf, nan, 16)],
    "asin": [(-0.0, -0.0, 0), (1.0, pi / 2, 1), (2.0, nan, 16), (inf, nan, 16)],
    "acos": [(1.0, 0.0, 0), (-1.0, pi, 1), (0.0, pi / 2, 1), (-2.0, nan, 16), (inf, nan, 16)],
    "atan": [(-0.0, -0.0, 0), (inf, pi / 2, 1), (-inf, -pi / 2, 1)],
    "sinh": [(-0.0, -0.0, 0), (inf, inf, 0), (-inf, -inf, 0)],
    "cosh": [(-0.0, 1.0, 0), (inf, inf, 0), (-inf, inf, 0)],
    "tanh": [(-0.0, -0.0, 0), (inf, 1.0, 0), (-inf, -1.0, 0), (100.0, 1.0, 1)],
    "asinh": [(-0.0, -0.0, 0), (inf, inf, 0), (-inf, -inf, 0)],
    "acosh": [(1.0, 0.0, 0), (0.5, nan, 16), (-inf, nan, 16), (inf, inf, 0)],
    "atanh": [(-0.0, -0.0, 0), (1.0, inf, 8), (-1.0, -inf, 8), (2.0, nan, 16), (inf, nan, 16)],
    "cbrt": [
        (27.0, 3.0, 0),
        (-0.125, -0.5, 0),
        (-0.0, -0.0, 0),
        (inf, inf, 0),
        (-inf, -inf, 0),
        (2.0, 2 ** (1 / 3), 1),
    ],
    "degrees": [(-0.0, -0.0, 0), (inf, inf, 0), (1.0, 180 / pi, 1)],
    "radians": [(-0.0, -0.0, 0), (-inf, -inf, 0), (180.0, pi, 1)],
    "pow": [
        *[(x, zero, 1.0, 0) for x in (2.0, 0.0, -0.0, inf, -inf, nan, -3.0) for zero in (0.0, -0.0)],
        *[(1.0, y, 1.0, 0) for y in (3.0, inf, -inf, nan, -0.5)],
        *[(zero, -3.0, math.copysign(inf, zero), 8) for zero in (0.0, -0.0)],
        *[(zero, y, inf, 8) for zero in (0.0, -0.0) for y in (-2.0, -0.5)],
        *[(zero, -inf, inf, 0) for zero in (0.0, -0.0)],
        *[(zero, inf, 0.0, 0) for zero in (0.0, -0.0)],
        *[(zero, 3.0, zero, 0) for zero in (0.0, -0.0)],
        *[(zero, y, 0.0, 0) for zero in (0.0, -0.0) for y in (2.0, 0.5)],
        *[(-1.0, y, 1.0, 0) for y in (inf, -inf, 2.0)],
        *[(x, inf, 0.0, 0) for x in (0.5, -0.5)],
        *[(x, inf, inf, 0) for x in (2.0, -2.0, inf, -inf)],
        *[(x, -inf, inf, 0) for x in (0.5, -0.5)],
        *[(x, -inf, 0.0, 0) for x in (2.0, -2.0, inf, -inf)],
        *[(inf, 2.0, inf, 0), (inf, -2.0, 0.0, 0), (-inf, 3.0, -inf, 0), (-inf, 2.0, inf, 0), (-inf, 0.5, inf, 0)],
        *[(-inf, -3.0, -0.0, 0), (-inf, -2.0, 0.0, 0), (-2.0, 0.5, nan, 16), (-1.0, 0.5, nan, 16), (-2.0, nan, nan, 0)],
        *[(9.0, 0.5, 3.0, 0), (2.25, 1.5, 3.375, 0), (4.0, -0.5, 0.5, 0), (16.0, 0.25, 2.0, 0), (-3.0, 3.0, -27.0, 0)],
        *[(-1.0, 5.0, -1.0, 0), (3.0, -1.0, 1 / 3, 1), (2.0, 0.5, 2**0.5, 1), (nan, 1.0, nan, 0), (-3.0, 2.0, 9.0, 0)],
    ],
    "hypot": [
        (3.0, 4.0, 5.0, 0),
        (-inf, nan, inf, 0),
        (nan, inf, inf, 0),
        (nan, 1.0, nan, 0),
        (-0.0, -0.0, 0.0, 0),
        (1.0, 1.0, 2**0.5, 1),
    ],
    "atan2": [
        *[(s, 1.0, s, 0) for s in (0.0, -0.0)],
        *[(s, 0.0, s, 0) for s in (0.0, -0.0)],
        *[(s, x, math.copysign(pi, s), 1) for s in (0.0, -0.0) for x in (-1.0, -0.0, -inf)],
        *[(y, zero, math.copysign(pi / 2, y), 1) for y in (1.0, -1.0, inf, -inf) for zero in (0.0, -0.0)],
        *[(y, inf, math.copysign(0.0, y), 0) for y in (1.0, -1.0)],
        *[(y, -inf, math.copysign(pi, y), 1) for y in (1.0, -1.0)],
        *[(inf, inf, pi / 4, 1), (-inf, inf, -pi / 4, 1), (inf, -inf, 3 * pi / 4, 1), (-inf, -inf, -3 * pi / 4, 1)],
        (nan, 1.0, nan, 0),
    ],
    "logaddexp": [
        (inf, -inf, inf, 0),
        (-inf, -inf, -inf, 0),
        (-inf, 2.0, 2.0, 0),
        (inf, nan, nan, 0),
        (-inf, -0.0, 0.0, 0),
    ],
    "logaddexp2": [
        (3.0, 3.0, 4.0, 0),
        (-1.0, -1.0, 0.0, 0),
        (inf, inf, inf, 0),
        (-inf, 2.0, 2.0, 0),
        (0.0, 1.0, math.log2(3), 1),
    ],
    "floor_divide": [
        *[(7.0, 2.0, 3.0, 0), (-7.0, 2.0, -4.0, 0), (-0.5, 4.0, -1.0, 0), (0.0, -3.0, -0.0, 0), (0.5, 4.0, 0.0, 0)],
        *[(5.0, 0.0, inf, 8), (-5.0, 0.0, -inf, 8), (0.0, 0.0, nan, 16), (inf, 1.0, nan, 16), (inf, 0.0, inf, 0)],
        *[(5.0, inf, 0.0, 0), (-5.0, inf, -1.0, 0), (inf, inf, nan, 16), (nan, inf, nan, 0), (-0.0, inf, -0.0, 0)],
    ],
    "fmod": [
        (7.0, -2.0, 1.0, 0),
        (-7.0, 2.0, -1.0, 0),
        (-4.0, 2.0, -0.0, 0),
        (5.0, inf, 5.0, 0),
        (5.0, 0.0, nan, 16),
        (inf, 2.0, nan, 16),
    ],
    "modulo": [
        *[(7.0, -2.0, -1.0, 0), (-7.0, 2.0, 1.0, 0), (-4.0, 2.0, 0.0, 0), (4.0, -2.0, -0.0, 0), (5.0, 0.0, nan, 16)],
        *[(5.0, inf, 5.0, 0), (-5.0, inf, inf, 0), (5.0, -inf, -inf, 0), (-0.0, inf, 0.0, 0), (inf, 2.0, nan, 16)],
    ],
}
"""Operands, result, flags, from the tables of IEEE 754-2019 9.2.1, C23 annex F and NumPy."""


@pytest.mark.parametrize("fmt", [HALF, SINGLE], ids=str)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name: str, fmt: Format) -> None:
    assert set(SPECIAL) == set(named.__all__)
    for *numbers, result, flags in SPECIAL[name]:
        row = [bits.encode(x, fmt)[0] for x in numbers]
        codes, raised = getattr(bits, name)(*row, fmt)
        assert (codes, raised) == (bits.encode(result, fmt)[0], flags), (numbers, result)
        assert (int(codes), int(raised)) == getattr(reference, name)(*map(int, row), fmt)


@pytest.mark.parametrize("policy", NAN_POLICIES)
def test_results_in_spite_of_nan(policy: str) -> None:
    """A quiet NaN may have no say; a signalling one always has."""
    raised = INVALID if NAN_POLICIES[policy].any_nan_signals else 0
    quiet, signalling, one, infinity = 0x7E01, 0x7C01, 0x3C00, 0xFC00
    for fmt_row, code in (
        ((bits.pow, quiet, 0x8000), one),
        ((bits.pow, one, quiet), one),
        ((bits.hypot, quiet, infinity), 0x7C00),
    ):
        function, a, b = fmt_row
        assert function(a, b, HALF, nan=policy) == (code, raised)
    for function, a, b in ((bits.pow, signalling, 0), (bits.pow, one, signalling), (bits.hypot, infinity, signalling)):
        code, flags = function(a, b, HALF, nan=policy)
        assert bits.isnan(code, HALF)
        assert flags == INVALID
        if NAN_POLICIES[policy].propagate:
            assert code == 0x7E01


MISROUNDED = [
    ("exp", 0x264C, 0x3C19),  # exp(0.02459716796875) = 1 + 25.49983 * 2^-10
    ("exp", 0xA57F, 0x3BD4),  # exp(-0.0214691162109375)
    ("log", 0x1D78, 0xC53B),  # log(0.005340576171875)
    ("log10", 0x719D, 0x440F),  # log10(11496)
    ("sin", 0x32B3, 0x32A7),  # sin(0.2093505859375)
    ("tan", 0x55ED, 0x3911),  # tan(94.8125)
    ("expm1", 0x2864, 0x2877),  # expm1(0.0343017578125)
]
"""(function, half code, its correctly rounded result), where NumPy's vector code for half misses by one."""


@pytest.mark.parametrize(("name", "code", "result"), MISROUNDED)
def test_what_numpy_misrounds(name: str, code: int, result: int) -> None:
    assert getattr(bits, name)(code, HALF) == (result, INEXACT)


def test_results_beyond_range() -> None:
    for mode, high, low in (
        ("nearest_even", 0x7C00, 0),
        ("toward_zero", 0x7BFF, 0),
        ("toward_positive", 0x7C00, 1),
        ("toward_negative", 0x7BFF, 0),
        ("to_odd", 0x7BFF, 1),
    ):
        assert bits.exp(0x7BFF, HALF, rounding=mode) == (high, OVERFLOW | INEXACT)
        assert bits.exp(0xFBFF, HALF, rounding=mode) == (low, UNDERFLOW | INEXACT)
        assert bits.pow(0x7BFF, 0x7BFF, HALF, rounding=mode) == (high, OVERFLOW | INEXACT)
        assert bits.pow(0x7BFF, 0xFBFF, HALF, rounding=mode) == (low, UNDERFLOW | INEXACT)
    assert bits.exp(0x7BFF, HALF, overflow="saturate") == (0x7BFF, OVERFLOW | INEXACT)
    assert bits.exp(0x7BFF, HALF, overflow="nan") == (0x7E00, OVERFLOW | INEXACT | INVALID)
    tiny = bits.exp2(bits.encode(-20.0, HALF)[0], HALF)
    assert tiny == (16, 0)
    assert bits.exp2(bits.encode(-20.0, HALF)[0], HALF, ftz=True) == (0, UNDERFLOW | INEXACT)
    assert bits.sin(0x0001, HALF, daz=True) == (0, 0)


# -- stochastic rounding ---------------------------------------------------------------------------------------------

DRAWN = [("exp", HALF), ("log", BRAIN), ("sin", SINGLE), ("pow", HALF), ("hypot", SINGLE), ("modulo", HALF)]


@pytest.mark.parametrize(("name", "fmt"), DRAWN, ids=str)
def test_up_with_the_dropped_fraction(name: str, fmt: Format) -> None:
    numbers = [0.7, 1.3] if name in BINARY else [0.7]
    row = [int(bits.encode(x, fmt)[0]) for x in numbers]
    with gmpy2.context(precision=80):
        exact = {"modulo": lambda a, b: a % b, **MPFR}[name](*(gmpy2.mpfr(float(bits.decode(x, fmt))) for x in row))
    size = 200_000
    codes, _ = getattr(bits, name)(*(np.full(size, x, fmt.dtype) for x in row), fmt, rounding="stochastic", seed=3)
    down, up = (int(getattr(bits, name)(*row, fmt, rounding=f"toward_{side}")[0]) for side in ("negative", "positive"))
    assert set(np.unique(codes).tolist()) <= {down, up}
    if down == up:
        return
    low, high = (bits.decode(x, fmt) for x in (down, up))
    fraction = float((exact - float(low)) / (float(high) - float(low)))
    assert abs(np.mean(codes == up) - fraction) < 5 * math.sqrt(fraction * (1 - fraction) / size)


@pytest.mark.parametrize(("name", "fmt"), DRAWN, ids=str)
def test_threads_and_chunks_do_not_show(name: str, fmt: Format) -> None:
    size = 150_001
    columns = [moderate(fmt, size, i) for i in range(1 + (name in BINARY))]
    how = {"rounding": "stochastic", "seed": 9, "stream": 4}
    before = softfloat.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            softfloat.set_num_threads(threads)
            results.append(getattr(bits, name)(*columns, fmt, **how))
    finally:
        softfloat.set_num_threads(before)
    handed = bits.random_bits(size, seed=9, stream=4)
    results.append(getattr(bits, name)(*columns, fmt, rounding="stochastic", random_bits=handed, sr_bits=52))
    for codes, flags in results[1:]:
        np.testing.assert_array_equal(codes, results[0][0])
        np.testing.assert_array_equal(flags, results[0][1])
    some = getattr(bits, name)(*(x[:5000] for x in columns), fmt, **how)
    np.testing.assert_array_equal(some[0], results[0][0][:5000])


# -- the call --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", named.__all__)
def test_documentation(name: str) -> None:
    function = getattr(bits, name)
    assert function is getattr(named, name)
    assert function.__name__ == name
    for word in ("Codes in, (codes, flags) out", "Source: "):
        assert word in function.__doc__


@pytest.mark.parametrize("name", ["exp", "pow", "modulo"])
@pytest.mark.parametrize("fmt", [HALF, SINGLE], ids=str)
def test_outputs(name: str, fmt: Format) -> None:
    columns = [moderate(fmt, 300, i).reshape(3, 100) for i in range(1 + (name in BINARY))]
    function = getattr(bits, name)
    codes, flags = function(*columns, fmt)
    out = np.empty_like(codes), np.empty_like(flags)
    assert function(*columns, fmt, out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], codes)
    np.testing.assert_array_equal(out[1], flags)
    again, seen = function(*columns, fmt, flags="any")
    np.testing.assert_array_equal(again, codes)
    assert seen == np.bitwise_or.reduce(flags, axis=None)
    place = columns[0].copy()
    function(place, *columns[1:], fmt, out=place)
    np.testing.assert_array_equal(place, codes)
    assert function(*(x[:0] for x in columns), fmt)[0].shape == (0, 100)
    with pytest.raises(TypeError, match="unknown option 'round'"):
        function(*columns, fmt, round="up")
    with pytest.raises(ValueError, match="random_bits are for"):
        function(*columns, fmt, random_bits=0)
    with pytest.raises(ValueError, match="out must be an array"):
        function(*columns, fmt, out=np.empty(3))
    env = softfloat.Environment(traps="INVALID")
    with pytest.raises(softfloat.FloatingPointTrap, match=name):
        env.evaluate(function, *(np.full(2, x, fmt.dtype) for x in (fmt.inf_code | 1,) * len(columns)), fmt)


def test_rounding_keeps_within_the_carrier() -> None:
    """Tables hold zeros, infinities, NaNs, and numbers that `kernels.rounding` takes."""
    for name in UNARY:
        table = np.abs(values.table_of(name, HALF.spec, False))
        finite = table[np.isfinite(table) & (table > 0)]
        assert finite.max() <= CARRIER64.most
        assert finite.min() >= CARRIER64.least
