"""Small products: what they give, and how they are refused, is what the long way does, whatever the operands."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ways import both, served

import softfloat
from softfloat import Environment, Format, bits, engine
from softfloat.accumulators import Accumulator, amp, chunked, exact, fma, mul_add, pairwise, tensor_core

HALF, BFLOAT, E4M3 = softfloat.float16, softfloat.bfloat16, softfloat.float8_e4m3fn
CASES: list[tuple[Format, Accumulator, Format | None]] = [
    (HALF, mul_add(HALF), None),
    (HALF, fma(HALF), None),
    (HALF, fma("float32"), HALF),
    (HALF, fma("float32"), softfloat.float32),
    (HALF, mul_add("float32"), BFLOAT),
    (BFLOAT, fma("float32"), BFLOAT),
    (BFLOAT, mul_add(BFLOAT), None),
    (softfloat.float32, fma("float32"), None),
    (softfloat.float8_e5m2, fma(softfloat.float8_e5m2), None),
    (E4M3, mul_add(E4M3), None),
    (HALF, amp("half"), None),
    (HALF, exact(HALF), None),
    (softfloat.float8_e5m2, fma(softfloat.float8_e5m2), HALF),
    (HALF, pairwise(HALF), None),
    (softfloat.float4_e2m1fn, fma(HALF), None),
    (softfloat.float8_e8m0fnu, fma("float32"), None),
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"overflow": "saturate"},
    {"overflow": "nan"},
    {"rounding": "toward_zero"},
    {"nan": "x86", "tininess": "before"},
    {"nan": "arm", "daz": True},
    {"nan": "ipu", "ftz": True, "infinite_input": "nan"},
    {"rounding": "stochastic", "seed": 5},
    {"rounding": "stochastic"},
]
NESTED = Environment(overrides={"float16": Environment(overflow="saturate", overrides={"float16": Environment()})})
SHAPES = [
    ((20,), (20,)),
    ((1, 5), (5, 1)),
    ((3, 5), (5,)),
    ((7,), (7, 18)),
    ((9, 4), (4, 17)),
    ((2, 0), (0, 3)),
    ((0, 4), (4, 2)),
    ((3, 2, 5), (3, 5, 4)),
    ((2, 9, 4), (2, 4, 17)),
    ((0, 2, 3), (0, 3, 2)),
    ((2, 2, 3), (3, 2)),
    ((2, 2, 3), (1, 3, 2)),
    ((2, 3), (2, 3, 2)),
]


needs_fast_loops = pytest.mark.skipif(not all(engine.available()), reason="needs FMA and F16C, and the JIT")
KINDS = ["ordinary", "large", "tiny", "zeros", "any"]


def label(case: tuple[Format, Accumulator, Format | None]) -> str:
    return "-".join(map(str, case))


def drawn(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    """Ordinary numbers; ones whose products overflow, or are tiny; zeros; any codes at all."""
    if kind == "any":
        codes: np.ndarray[Any, Any] = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(fmt.dtype)
        return codes
    scale = {"ordinary": 1.0, "large": fmt.max / 4, "tiny": fmt.tiny * 4, "zeros": 0.0}[kind]
    found: np.ndarray[Any, Any] = bits.encode(rng.standard_normal(shape) * scale, fmt, overflow="saturate")[0]
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("setting", range(len(SETTINGS)))
@pytest.mark.parametrize("case", CASES, ids=label)
def test_same_products(case: tuple[Format, Accumulator, Format | None], setting: int) -> None:
    fmt, how, output = case
    rng = np.random.default_rng([setting, CASES.index(case)])
    options: dict[str, Any] = {"out_format": output, "stream": 3, **SETTINGS[setting]}
    for number, (left, right) in enumerate(SHAPES):
        kinds = KINDS if number == 3 else KINDS[(number + setting) % len(KINDS) :][:1]
        for turn, kind in enumerate(kinds):
            a, b = drawn(rng, fmt, left, kind), drawn(rng, fmt, right, "ordinary" if kind == "large" else kind)
            c = (None, drawn(rng, how.partials, addend_shape(left, right), kind))[(number + turn) % 2]
            options["flags"] = ("each", "any")[turn % 2]
            assert_same(bits.matmul, a, b, fmt, how, c, **options)
            if len(left) == len(right) == 1:
                assert_same(bits.vecdot, a, b, fmt, how, c, **options)
            axis = (None, 0, -1, len(right))[(number + setting) % 4]
            assert_same(bits.sum, b, fmt, how, axis, **options)
            assert_same(bits.cumsum, b, fmt, how, axis, **{**options, "flags": "any"})


def addend_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return (max(left, right, key=len)[:-2] + left[-2:-1] if len(left) > 1 else ()) + right[1:][-1:]


def assert_same(*call: Any, **options: Any) -> None:
    quick, long = both(*call, **options)
    assert quick == long


@pytest.mark.parametrize("code", [0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x7BFF, 0x8000, 0x0001], ids=hex)
@pytest.mark.parametrize("where", ["a", "b", "c"])
@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "toward_negative", "to_odd"])
@pytest.mark.parametrize("overflow", ["infinity", "saturate"])
def test_one_special_operand(overflow: str, rounding: str, where: str, code: int) -> None:
    options: dict[str, Any] = {"overflow": overflow, "rounding": rounding}
    rng = np.random.default_rng(code)
    for fmt, how, output in CASES[:3]:
        start = (3, 5)
        operands = {"a": drawn(rng, fmt, (3, 6), "ordinary"), "b": drawn(rng, fmt, (6, 5), "ordinary")}
        operands["c"] = drawn(rng, how.partials, start, "ordinary")
        operands[where][1, 2] = (
            code if operands[where].dtype == np.uint16 else {0x7C00: 0x7F800000, 0x8000: 1 << 31}.get(code, 1)
        )
        for c in (operands["c"], None):
            assert_same(bits.matmul, operands["a"], operands["b"], fmt, how, c, out_format=output, **options)
        assert_same(bits.sum, operands["b"], fmt, how, 0, out_format=output, **options)


@needs_fast_loops
@pytest.mark.parametrize("case", CASES[:10], ids=label)
def test_ordinary_products_go_the_short_way(case: tuple[Format, Accumulator, Format | None]) -> None:
    fmt, how, output = case
    rng = np.random.default_rng(1)
    a, b = drawn(rng, fmt, (9, 6), "ordinary"), drawn(rng, fmt, (6, 17), "ordinary")
    c = drawn(rng, how.partials, (9, 17), "ordinary")
    for options in ({}, {"flags": "any"}, {"overflow": "saturate"}):
        assert served(bits.matmul, a, b, fmt, how, c, out_format=output, **options)
        assert served(bits.matmul, a[0], b, fmt, how, out_format=output, **options)
        assert served(bits.sum, a, fmt, how, 1, out_format=output, **options)
        assert served(bits.vecdot, a[0], a[1], fmt, how, out_format=output, **options)
    many = np.broadcast_to(a[:1], (1000, 6)).copy()
    for x, y, more in (
        (a, b, {"count": True}),
        (a, b, {"c": c[0]}),
        (many, many.T, {"rounding": "stochastic", "seed": 1}),
        (a[None], b, {}),
    ):
        assert not served(bits.matmul, x, y, fmt, how, out_format=output, **more)
    assert not served(bits.matmul, many, many.T, fmt, how, out_format=output)
    assert not served(bits.sum, a, fmt, how, 1, out_format=output, count=True)


DRAWS: list[dict[str, Any]] = [
    {},
    {"sr_bits": 1},
    {"sr_bits": 11, "overflow": "saturate"},
    {"sr_bits": 24, "daz": True},
    {"ftz": True, "tininess": "before"},
    {"overflow": "nan", "nan": "x86"},
    {"sr_bits": 8, "sr_method": "nearest"},
    {"replica": 3},
]
FEW = [((20,), (20,)), ((3, 40), (40,)), ((7,), (7, 18)), ((5, 6), (6, 4)), ((1, 1), (1, 1)), ((40, 30), (30,))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("setting", range(len(DRAWS)))
@pytest.mark.parametrize("case", CASES, ids=label)
def test_few_that_draw(case: tuple[Format, Accumulator, Format | None], setting: int) -> None:
    fmt, how, output = case
    rng = np.random.default_rng([7, setting, CASES.index(case)])
    options: dict[str, Any] = {"out_format": output, "rounding": "stochastic", "seed": 9, **DRAWS[setting]}
    for number, (left, right) in enumerate(FEW):
        kind = KINDS[(number + setting) % len(KINDS)]
        a, b = drawn(rng, fmt, left, kind), drawn(rng, fmt, right, "ordinary" if kind == "large" else kind)
        options |= {"flags": ("each", "any")[number % 2], "stream": number << 40}
        assert_same(bits.matmul, a, b, fmt, how, **options)
        for axis in (None, 0, len(right) - 1):
            assert_same(bits.sum, b, fmt, how, axis, **options)


@needs_fast_loops
def test_few_that_draw_go_the_short_way() -> None:
    rng = np.random.default_rng(8)
    for fmt in (HALF, BFLOAT, softfloat.float32):
        for how in (fma(fmt), mul_add(fmt)):
            a, b = drawn(rng, fmt, (8, 20), "ordinary"), drawn(rng, fmt, (20, 3), "ordinary")
            options: dict[str, Any] = {"rounding": "stochastic", "seed": 1}
            assert served(bits.matmul, a, b[:, 0], fmt, how, **options)
            assert served(bits.matmul, a[0], b, fmt, how, **options)
            assert served(bits.vecdot, a[0], a[1], fmt, how, **options)
            assert served(bits.sum, a, fmt, how, 1, **options)
            assert served(bits.matmul, a, b, fmt, how, **options)
            assert not served(bits.matmul, a, b[:, 0], fmt, how, count=True, **options)
            assert not served(bits.matmul, a, b[:, 0], fmt, how.replace(chains=2), **options)
            assert not served(bits.sum, np.tile(a, 5000), fmt, how, 1, **options)


RULES: list[dict[str, Any]] = [{}, {"overflow": "saturate"}, {"daz": True, "tininess": "before"}, {"nan": "arm"}]


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "toward_negative", "nearest_away"])
@pytest.mark.parametrize("kind", KINDS)
def test_cumulative_sums(kind: str, rounding: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for fmt in (HALF, BFLOAT, softfloat.float32, softfloat.float8_e5m2, softfloat.float8_e4m3fnuz):
        codes = drawn(rng, fmt, (9, 7), kind)
        for how in (fma(fmt), mul_add(fmt), fma("float32"), amp("half")):
            for number, axis in enumerate((None, 0, 1, -1, 2)):
                assert_same(bits.cumsum, codes, fmt, how, axis, flags="any", rounding=rounding, **RULES[number % 4])
    ordinary = drawn(rng, HALF, (6, 5), "ordinary")
    assert served(bits.cumsum, ordinary, HALF, fma(HALF), 0, flags="any", rounding=rounding)
    assert not served(bits.cumsum, ordinary, HALF, fma(HALF), 0, rounding=rounding)  # flags of each sum
    assert not served(bits.cumsum, ordinary, HALF, fma(HALF).replace(chains=2), 0, flags="any", rounding=rounding)


def test_settings_of_single_formats() -> None:
    rng = np.random.default_rng(2)
    a = drawn(rng, HALF, (8, 8), "large")
    for environment in (NESTED, Environment.ipu(), Environment.ipu(nanoo=True), Environment.ipu(esr=True, seed=1)):
        for _, how, output in CASES[:5]:
            assert_same(bits.matmul, a, a, HALF, how, out_format=output, environment=environment)
            assert_same(bits.sum, a, HALF, how, 0, out_format=output, environment=environment)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros((2, 3), np.uint16), np.zeros((2, 3), np.uint16), HALF, fma(HALF)),
        (np.zeros(3, np.uint16), np.uint16(1), HALF, fma(HALF)),
        (np.zeros(3, np.int64), np.zeros(3, np.int64), HALF, fma(HALF)),
        (np.full(3, -1), np.zeros(3, np.uint16), HALF, fma(HALF)),
        (np.zeros(3, np.uint16), np.zeros(3, np.uint16), HALF, "fma"),
        (np.zeros(3, np.uint16), np.zeros(3, np.uint16), HALF, fma),
        (np.zeros(3, np.uint16), np.zeros(3, np.uint16), HALF, amp("float", inputs="float32")),
        (np.zeros(3, np.uint16), np.zeros(3, np.uint16), HALF, fma(HALF), np.zeros(2, np.uint16)),
        (np.zeros(3, np.uint16), np.zeros(3, np.uint16), (HALF, "bfloat16"), fma("float32")),
        (np.zeros(3, np.uint16), np.zeros(3, np.uint16), (HALF,), fma("float32")),
        (np.full(3, 16, np.uint8), np.zeros(3, np.uint8), softfloat.float4_e2m1fn, fma("float32")),
    ],
    ids=range(11),
)
def test_odd_arguments(arguments: tuple[Any, ...]) -> None:
    for options in (
        {},
        {"out_format": "nothing"},
        {"out_format": 3},
        {"flags": "some"},
        {"count": 1},
        {"out": np.empty((), np.uint16)},
    ):
        for function in (bits.matmul, bits.vecdot):
            assert_same(function, *arguments, **options)
    assert_same(bits.sum, arguments[0], arguments[2], arguments[3])
    assert_same(bits.sum, arguments[0], HALF, fma(HALF), True)


def test_orders_and_strides() -> None:
    rng = np.random.default_rng(3)
    a = drawn(rng, HALF, (6, 10), "ordinary")
    for x in (a, a.T, a[::-1], a[:, ::2], np.asfortranarray(a)):
        y = np.ascontiguousarray(x.T)
        for how in (fma(HALF), mul_add(HALF)):
            assert_same(bits.matmul, x, y, HALF, how)
            assert_same(bits.matmul, y[:, ::-1], x, HALF, how)
            assert_same(bits.sum, x, HALF, how, 1)
            assert_same(bits.sum, x, HALF, how)


ON_ARRAYS: list[Callable[[Any], Any]] = [
    lambda x: x.sum(),
    lambda x: x.sum(0),
    lambda x: x.sum(1, keepdims=True),
    lambda x: np.sum(x, axis=(0, 1)),
    lambda x: x @ x.T,
    lambda x: x[0] @ x[1],
    lambda x: x.mean(1),
    lambda x: x.cumsum(),
    lambda x: np.cumsum(x, axis=1),
    lambda x: x < x[:, ::-1],
    lambda x: x != 0.5,
    lambda x: x > 70000.0,
    lambda x: x[0, 0] <= x[0, 1],
    np.sqrt,
]


def tried(codes: np.ndarray[Any, Any], traps: tuple[str, ...]) -> list[Any]:
    """What functions on arrays give, the flags that they raise, and how many numbers of the stream they take."""
    found: list[Any] = []
    with softfloat.environment(Environment(traps=traps)) as env:
        x = softfloat.from_codes(codes, HALF)
        for call in ON_ARRAYS:
            try:
                result = call(x)
                found.append((type(result), np.array(getattr(result, "codes", result)).tolist()))
            except softfloat.FloatingPointTrap as trap:
                found.append(str(trap))
        return [*found, env.status.flags, env.next_stream()]


@pytest.mark.parametrize("traps", [(), ("OVERFLOW",), ("INVALID", "INEXACT")], ids=str)
@pytest.mark.parametrize("kind", ["ordinary", "large", "any"])
def test_softarrays_take_streams_and_raise_flags_as_ever(kind: str, traps: tuple[str, ...]) -> None:
    codes = drawn(np.random.default_rng(4), HALF, (4, 6), kind)
    quick, long = both(tried, codes, traps)
    assert quick == long
    assert quick[0][1][-1] >= len(ON_ARRAYS)


UNITS: list[tuple[Format, Accumulator]] = [
    (E4M3, tensor_core("H100", input=E4M3)),
    (E4M3, chunked(32, tensor_core("H100", input=E4M3), "float32")),
    (HALF, chunked(48, tensor_core("H100", input=HALF), "float32")),
    (BFLOAT, chunked(32, tensor_core("H100", input=BFLOAT), "float32")),
]


@needs_fast_loops
@pytest.mark.parametrize(("fmt", "how"), UNITS, ids=str)
def test_units_and_their_segments(fmt: Format, how: Accumulator) -> None:
    """Segments whose sums the loop adds up; what is not finite, overflows or is too small for the loop goes the long way."""
    rng = np.random.default_rng(8)
    for shape, kind in itertools.product([(24, 150, 33), (9, 64, 16), (12, 20, 40)], KINDS):
        (rows, length, columns), options = shape, {"flags": ("each", "any")[shape[0] % 2]}
        a, b = drawn(rng, fmt, (rows, length), kind), drawn(rng, fmt, (length, columns), kind)
        for output, addend in ((None, False), (None, True), (HALF, False)):
            c = drawn(rng, how.partials, (rows, columns), "ordinary") if addend else None
            assert_same(bits.matmul, a, b, fmt, how, c, out_format=output, **options)
            if kind == "ordinary" and length % 16 == 0:
                assert served(bits.matmul, a, b, fmt, how, c, out_format=output, **options)
        stack = drawn(rng, fmt, (2, rows, length), kind), drawn(rng, fmt, (2, length, columns), kind)
        assert_same(bits.matmul, *stack, fmt, how, **options)
