"""The faster loops over tiles against the plain one: the same codes and flags, whatever the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from faster import same, same_counts
from softfloat.kernels import dots
from softfloat.kernels.spec import NAN_POLICIES

from softfloat import Environment, Format, bits, engine, get_num_threads, set_num_threads
from softfloat.accumulators import (
    Accumulator,
    Stage,
    amp,
    chunked,
    exact,
    fma,
    from_poplar_options,
    mul_add,
    pairwise,
    slic,
    tensor_core,
    vdpbf16ps,
)
from softfloat.engine import elementwise, joining, lines, plain, products, program, small, stacks, unit_ways, ways

SERVED = pytest.mark.skipif(not all(engine.available()), reason="needs FMA and F16C, and the JIT")
E8M5 = Format("e8m5", exponent_bits=8, mantissa_bits=5)
E6M9 = Format("e6m9_low", exponent_bits=6, mantissa_bits=9, bias=40)
E5M6 = Format("e5m6", exponent_bits=5, mantissa_bits=6)
STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 7}
NANOO = Environment.ipu(nanoo=True)
SATURATING = Environment.ipu()

CASES: list[tuple[Accumulator, Format | str, dict[str, Any]]] = [
    (mul_add("float16"), "float16", {}),
    (mul_add("float16"), "float16", {"overflow": "saturate"}),
    (mul_add("float16"), "float16", {"overflow": "nan"}),
    (mul_add("float16"), "float16", {"nan": "x86"}),
    (mul_add("bfloat16"), "bfloat16", {}),
    (mul_add("bfloat16"), "bfloat16", {"overflow": "saturate"}),
    (mul_add(E5M6), E5M6, {}),
    (mul_add("float8_e4m3fn"), "float8_e4m3fn", {}),
    (mul_add("float32"), "float32", {}),
    (mul_add("float32"), "float16", {}),
    (fma("float16"), "float16", {}),
    (fma("float16"), "float16", {"overflow": "saturate"}),
    (fma("float16"), "float16", {"tininess": "before"}),
    (fma("float16"), "float8_e4m3fn", {}),
    (fma("bfloat16"), "bfloat16", {}),
    (fma(E5M6), E5M6, {}),
    (fma("float8_e5m2"), "float8_e5m2", {}),
    (fma("float8_e4m3fn"), "float8_e4m3fn", {"overflow": "saturate"}),
    (fma("float32"), "float16", {}),
    (fma("float32"), "float32", {}),
    (fma("float32"), "float16", {"overflow": "saturate"}),
    (fma("float32"), "float16", {"overflow": "nan", "out_format": "float16"}),
    (mul_add("float32"), "bfloat16", {"overflow": "saturate", "out_format": "bfloat16"}),
    (fma("float32"), "bfloat16", {"out_format": "bfloat16"}),
    (fma("float16"), "float16", STOCHASTIC),
    (fma("float16"), "float16", STOCHASTIC | {"sr_bits": 5}),
    (fma("float16"), "float16", STOCHASTIC | {"sr_bits": 20, "overflow": "saturate"}),
    (fma("float16"), "float16", STOCHASTIC | {"sr_bits": 16, "tininess": "before"}),
    (fma("bfloat16"), "bfloat16", STOCHASTIC),
    (fma("bfloat16"), "bfloat16", STOCHASTIC | {"overflow": "nan"}),
    (fma("float8_e5m2"), "float16", STOCHASTIC),
    (fma(E5M6), E5M6, STOCHASTIC | {"overflow": "saturate"}),
    (amp("half"), "float16", {}),
    (amp("half"), "float16", {"environment": SATURATING}),
    (amp("half"), "float16", {"environment": NANOO}),
    (amp("half"), "float16", STOCHASTIC),
    (amp("half"), "float16", STOCHASTIC | {"sr_bits": 7, "overflow": "saturate"}),
    (amp("half"), "float16", {"environment": Environment.ipu(esr=True, nanoo=True, seed=3)}),
    (amp("half", stochastic=False), "float16", {"environment": Environment.ipu(esr=True, seed=3)}),
    (amp("float"), "float16", {}),
    (amp("float", mode="chained"), "float16", {}),
    (amp("float"), "float16", STOCHASTIC | {"out_format": "float16"}),
    (amp("float"), "float16", STOCHASTIC | {"out_format": "float16", "sr_bits": 9, "overflow": "saturate"}),
    (amp("float"), "float16", {"out_format": "float16", "environment": Environment.ipu(esr=True, nanoo=True, seed=3)}),
    (fma("float16"), "float16", STOCHASTIC | {"out_format": "float8_e5m2", "tininess": "before"}),
    (amp("float", inputs="float32"), "float32", {}),
    (amp("half", inputs="float8_e4m3fnuz"), "float8_e4m3fnuz", {}),
    (slic("half", window=3), "float16", {}),
    (vdpbf16ps(), "bfloat16", {}),
    (chunked(16, "float16", "float32"), "float16", {}),
    (chunked(7, mul_add("float16"), "float16"), "float16", {}),
    (chunked(50, "bfloat16", "bfloat16"), "bfloat16", {"nan": "x86", "overflow": "saturate"}),
    (chunked(64, "float8_e5m2", "float16"), "float8_e5m2", {"rounding": "nearest_even", "tininess": "before"}),
    (tensor_core("H100", "float8_e4m3fn", instruction="mma.sync"), "float8_e4m3fn", {}),
    (from_poplar_options({"partialsType": "half"}, splits=3), "float16", {}),
    (
        from_poplar_options({"partialsType": "float"}, splits=3),
        "float16",
        {"out_format": "float16", "environment": Environment.ipu(esr=True, seed=5)},
    ),
    (tensor_core("V100"), "float16", {}),
    (tensor_core("A100", "bfloat16"), "bfloat16", {}),
    (tensor_core("H100"), "float16", {}),
    (tensor_core("H100", output="float16"), "float16", {}),
    (tensor_core("H100", "tfloat32"), "tfloat32", {}),
    (tensor_core("H100", "float8_e4m3fn"), "float8_e4m3fn", {}),
    (tensor_core("Ada", "float8_e5m2", "float16"), "float8_e5m2", {}),
    (mul_add("float16"), "float16", STOCHASTIC),
    (mul_add("float16"), "float16", STOCHASTIC | {"sr_bits": 7, "overflow": "saturate"}),
    (mul_add("float16"), "float16", STOCHASTIC | {"sr_bits": 16, "tininess": "before", "overflow": "nan"}),
    (mul_add("bfloat16"), "bfloat16", STOCHASTIC),
    (mul_add(E5M6), E5M6, STOCHASTIC | {"sr_bits": 24}),
    (mul_add("float16"), "float8_e5m2", STOCHASTIC | {"overflow": "saturate"}),
    *(
        (how(fmt), fmt, {"rounding": rounding} | options)
        for how in (fma, mul_add)
        for rounding, fmt, options in (
            ("toward_zero", "float16", {}),
            ("toward_positive", "float16", {"tininess": "before"}),
            ("toward_negative", "float16", {"overflow": "saturate"}),
            ("nearest_away", "float16", {"overflow": "nan"}),
            ("to_odd", "float16", {"ftz": True}),
            ("toward_zero", "bfloat16", {"daz": True}),
            ("toward_positive", "bfloat16", {}),
            ("toward_negative", "bfloat16", {"ftz": True, "daz": True}),
            ("nearest_away", "bfloat16", {"overflow": "saturate"}),
            ("to_odd", "bfloat16", {}),
            ("toward_zero", "float8_e5m2", {"overflow": "nan"}),
            ("toward_positive", E5M6, {"daz": True}),
            ("toward_negative", E5M6, {}),
            ("nearest_away", "float8_e4m3fn", {"ftz": True}),
            ("to_odd", E5M6, {"overflow": "saturate"}),
            ("nearest_even", "float16", {"daz": True}),
            ("nearest_even", "float16", {"ftz": True}),
            ("nearest_even", "float16", {"ftz": True, "daz": True, "tininess": "before", "overflow": "saturate"}),
            ("nearest_even", E5M6, {"ftz": True, "daz": True}),
        )
    ),
    (fma("float32"), "float16", {"rounding": "toward_zero"}),
    (fma("float32"), "float32", {"rounding": "toward_negative"}),
    (fma("float32"), "float32", {"rounding": "nearest_away", "daz": True}),
    (mul_add("float32"), "bfloat16", {"rounding": "nearest_away"}),
    (mul_add("float32"), "float32", {"rounding": "to_odd", "ftz": True}),
    (mul_add("float32"), "float32", {"rounding": "toward_positive", "overflow": "saturate"}),
    (fma("float32"), "float16", STOCHASTIC),
    (fma("float32"), "float32", STOCHASTIC | {"sr_bits": 20, "overflow": "saturate"}),
    (mul_add("float32"), "bfloat16", STOCHASTIC | {"sr_bits": 5, "overflow": "nan"}),
    (mul_add("float32"), "float32", STOCHASTIC | {"sr_bits": 16, "daz": True, "ftz": True}),
    (fma("tfloat32"), "tfloat32", {}),
    (fma("float16"), "float32", {}),
    (mul_add("float16"), "float32", {"rounding": "toward_negative", "daz": True}),
    (mul_add("bfloat16"), "float32", {"overflow": "saturate"}),
    (fma("float8_e5m2"), "float32", {"rounding": "to_odd", "ftz": True}),
    (fma("float16"), "float32", STOCHASTIC),
    (mul_add("tfloat32"), "float32", STOCHASTIC | {"daz": True, "overflow": "nan"}),
    (mul_add("tfloat32"), "float16", {"rounding": "toward_zero", "overflow": "saturate"}),
    (mul_add(E8M5), E8M5, {"tininess": "before", "daz": True}),
    (fma(E8M5), E8M5, STOCHASTIC | {"sr_bits": 20}),
    (fma(E6M9), E6M9, {"rounding": "to_odd", "ftz": True}),
    (mul_add(E6M9), "float16", {}),
    (fma("float8_e4m3fnuz"), "float8_e4m3fnuz", {}),
    (mul_add("float8_e5m2fnuz"), "float8_e5m2fnuz", {"rounding": "toward_negative", "overflow": "saturate"}),
    (fma("binary8p4sf"), "binary8p4sf", {"rounding": "nearest_away"}),
    (fma("float16"), "float16", STOCHASTIC | {"daz": True}),
    (mul_add("float16"), "float16", STOCHASTIC | {"daz": True, "ftz": True, "overflow": "saturate", "sr_bits": 20}),
    (mul_add(E5M6), E5M6, STOCHASTIC | {"daz": True}),
    (fma("float8_e4m3fn"), "float8_e4m3fn", STOCHASTIC | {"ftz": True, "sr_bits": 5}),
    (fma("float8_e4m3fnuz"), "float8_e4m3fnuz", STOCHASTIC),
]


def label(case: tuple[Accumulator, Format | str, dict[str, Any]]) -> str:
    accumulator, fmt, options = case
    shown = [name if name == "environment" else str(value) for name, value in options.items()]
    return "-".join([repr(accumulator), str(getattr(fmt, "name", fmt)), *shown])


def drawn(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], scale: float) -> np.ndarray[Any, Any]:
    """Codes of zeros, ordinary numbers, and numbers a few binades around them; small integers at times, whose sums are exact."""
    x = rng.standard_normal(shape) * scale
    if rng.random() < 0.2:
        x = np.round(4 * x) / 4
    x = x * np.exp2(rng.integers(-3, 4, shape) * rng.integers(0, 3))
    x = np.where(rng.random(shape) < 0.1, 0, x)
    codes: np.ndarray[Any, Any] = bits.encode(x, fmt, overflow="saturate")[0]
    return codes


def both_ways(monkeypatch: pytest.MonkeyPatch, *arguments: Any, function: Any = bits.matmul, **options: Any) -> None:
    """Small calls, tiles, and the plain loop."""
    found = [function(*arguments, **options)]
    with monkeypatch.context() as patch:
        for name in ("product", "total"):
            patch.setattr(small, name, lambda *_: None)
        for most in (0, 1 << 40):  # of what takes the loops that compile quickly
            for name in ("FEW_PRODUCTS", "FEW_ROUNDINGS"):
                patch.setattr(ways, name, most)
            found.append(function(*arguments, **options))
        patch.setattr(elementwise, "FAST", False)
        plain = function(*arguments, **options)
    for quick in found:
        for one, other in zip(quick, plain, strict=True):
            np.testing.assert_array_equal(one, other)


SCALES = (1.0, 2.0**-7, 2.0**-13, 30.0)
SHAPES = ((17, 65, 33), (40, 200, 50))


@pytest.mark.parametrize("case", CASES, ids=label)
@pytest.mark.parametrize("scale", SCALES)
def test_same_bits_and_flags(
    case: tuple[Accumulator, Format | str, dict[str, Any]], scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case with every scale and both shapes, each scale with both shapes."""
    accumulator, name, options = case
    fmt = name if isinstance(name, Format) else Format.from_name(name)
    rng = np.random.default_rng([CASES.index(case), int(scale * 2**13)])
    rows, length, columns = SHAPES[(CASES.index(case) + SCALES.index(scale)) % 2]
    a, b = drawn(rng, fmt, (rows, length), scale), drawn(rng, fmt, (length, columns), scale)
    c = drawn(rng, accumulator.partials, (rows, columns), scale) if rng.random() < 0.5 else None
    both_ways(monkeypatch, a, b, fmt, accumulator, c, **options)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_sums(case: tuple[Accumulator, Format | str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Products with ones; the fused ones are additions. Of one output, of few, and of many."""
    accumulator, name, options = case
    fmt = name if isinstance(name, Format) else Format.from_name(name)
    rng = np.random.default_rng(CASES.index(case))
    for length, columns, scale in ((3, 1, 1.0), (700, 1, 1.0), (300, 9, 2.0**-9), (130, 140, 30.0)):
        codes = drawn(rng, fmt, (length, columns), scale)
        both_ways(monkeypatch, codes, fmt, accumulator, 0, function=bits.sum, **options)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("float16", "bfloat16"),  # fewer fraction bits
        ("float16", Format("e5m10_no_subnormals", exponent_bits=5, mantissa_bits=10, subnormals=False)),
        ("float16", Format("e8m10_unsigned", exponent_bits=8, mantissa_bits=10, signed=False)),
        ("float16", Format("e4m12", exponent_bits=4, mantissa_bits=12, bias=13)),  # only a smaller largest number
        ("float16", Format("e5m10_small", exponent_bits=5, mantissa_bits=10, bias=14)),  # only larger subnormals
    ],
    ids=str,
)
def test_chunks_whose_sums_the_outer_format_does_not_hold(
    inner: str, outer: Format | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = chunked(16, inner, outer)
    rng = np.random.default_rng(5)
    for scale in (1.0, 2.0**-10, 300.0):
        a, b = (drawn(rng, Format.from_name(inner), shape, scale) for shape in ((32, 64), (64, 32)))
        both_ways(monkeypatch, a, b, inner, how)


@SERVED
@pytest.mark.parametrize("case", CASES, ids=label)
def test_every_case_is_served(case: tuple[Accumulator, Format | str, dict[str, Any]]) -> None:
    """A case that silently went the plain way would test nothing."""
    accumulator, name, options = case
    fmt = name if isinstance(name, Format) else Format.from_name(name)
    settings = {key: value for key, value in options.items() if key not in ("environment", "out_format")}
    environment = options.get("environment", Environment(**settings))
    output = Format.from_name(options["out_format"]) if "out_format" in options else accumulator.output(fmt, fmt)
    if accumulator.reduction:
        accumulator = accumulator.replace(segment=None, segments=None, reduction=())
        output = accumulator.partials
    planned = program(accumulator, fmt, fmt, output, environment.settings, 64)
    assert engine.choose(planned) is not None


SPECIAL = {
    "infinite a": (0x7C00, "a"),
    "nan b": (0x7E01, "b"),
    "signalling c": (0x7C01, "c"),
    "infinite b": (0xFC00, "b"),
}
ELSEWHERE = {"once": [(3, 4)], "at corners": [(0, 0), (69, 69)], "everywhere": [(n, n) for n in range(70)]}


@pytest.mark.parametrize("places", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize(("code", "where"), SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize(
    "accumulator", [fma("float16"), mul_add("float16"), amp("half"), chunked(16, "float16", "float32")], ids=repr
)
def test_rows_and_columns_out_of_reach_go_the_plain_way(
    code: int,
    where: str,
    places: list[tuple[int, int]],
    accumulator: Accumulator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    policies = list(NAN_POLICIES)
    nan = policies[(code + len(places) + len(repr(accumulator))) % len(policies)]
    operands = {name: drawn(rng, Format.from_name("float16"), (70, 70), 1.0) for name in "abc"}
    for place in places:
        operands[where][place] = code
        operands["a"][place[::-1]] = 0x7C00
    c = operands["c"].astype(accumulator.partials.dtype) if accumulator.partials.spec.width == 16 else None
    for options in ({}, STOCHASTIC):
        both_ways(monkeypatch, operands["a"], operands["b"], "float16", accumulator, c, nan=nan, **options)


DIRECTED = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


@pytest.mark.parametrize("flushes", [{}, {"daz": True}, {"ftz": True}, {"tininess": "before"}], ids=str)
@pytest.mark.parametrize("rounding", DIRECTED)
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_ties_zeros_and_tiny_sums(
    how: Accumulator, rounding: str, flushes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operands of few bits meet ties, exact zeros of either sign and the least numbers all the time; some beside true halves."""
    rng = np.random.default_rng(9)
    few = encoded([0.0, -0.0, 1.0, -1.0, 1.5, 2.0**-7, -(2.0**-7), 2.0**-8, 2.0**-12, 3 * 2.0**-13, 1024.0, 2049.0])
    a, b = rng.choice(few, (24, 150)), rng.choice(few, (150, 33))
    c = rng.choice(np.append(few, [0x0001, 0x8001, 0x0400, 0x03FF, 0x83FF]).astype(np.uint16), (24, 33))
    a[:, 70:90] = rng.integers(0, 0x3C00, (24, 20))
    a[9] = 0
    both_ways(monkeypatch, a, b, "float16", how, c, rounding=rounding, **flushes)
    both_ways(monkeypatch, a, b, "float16", how, rounding=rounding, **flushes)


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_zero"}, {"rounding": "to_odd"}, STOCHASTIC], ids=str)
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_quick_steps_that_begin_with_subnormals(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inexact and subnormal everywhere after eight products, about 2^-15, which reads as zero: with the next product it would be normal."""
    for x, y in ((2.0**-7, 2.0**-7), (3 * 2.0**-12, 683 * 2.0**-13)):  # and half way between two, with the sum before
        a = encoded(np.tile([*[0.0] * 7, 3 * 2.0**-13, x, x], (8, 1)))
        b = encoded(np.tile([[1.0]] * 7 + [[683 * 2.0**-13], [y], [-y]], (1, 16)))
        both_ways(monkeypatch, a, b, "float16", how, daz=True, **options)
        both_ways(monkeypatch, a[:, :9], b[:9], "float16", how, daz=True, **options)


def test_ties_of_the_first_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """2049 and a product of +-2^-30: half a quantum, and next to nothing that float32 does not hold, or does."""
    a = encoded(np.tile([[1.0, 2.0**-15, -1.0, 1.0, -(2.0**-15)]], (8, 60)))
    b = encoded(np.tile([[2048.0], [2.0**-15], [2047.0], [2048.0], [2.0**-15]], (60, 16)))
    start = encoded(np.full((8, 16), 1.0009765625))
    for options in ({}, {"overflow": "saturate"}):
        both_ways(monkeypatch, a, b, "float16", fma("float16"), start, **options)
        both_ways(
            monkeypatch, encoded(bits.decode(a, "float16"), "bfloat16"), b, "bfloat16", fma("bfloat16"), **options
        )


@pytest.mark.parametrize(
    "options", [{}, {"overflow": "saturate"}, {"ftz": True}, {"rounding": "nearest_away"}], ids=str
)
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_ties_behind_inexact_sums(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums from 1024 to 2048, and products n + 1/2, some by less than float32 would keep beside them: each meets even and odd sums."""
    rng = np.random.default_rng(7)
    any_halves, few_bits = rng.integers(0x3800, 0x4600, (2, 1 << 21)), rng.integers(4, 48, (2, 1 << 14)) / 8
    pairs = np.hstack([bits.decode(any_halves, "float16"), few_bits])
    products = pairs[0] * pairs[1]
    beyond = products - np.floor(products) - 0.5
    near = (beyond != 0) & (abs(beyond) < 2.0**-13)
    turns = np.concatenate([rng.permutation(np.flatnonzero(kind))[:100] for kind in (near, beyond == 0)])
    assert turns.size == 200
    assert (beyond[turns] > 0).any()
    assert (beyond[turns] < 0).any()
    turns, middle = rng.permutation(turns), 1500.0
    sign = np.empty(turns.size)
    for n, product in enumerate(products[turns]):
        sign[n] = 1.0 if middle < 1500 else -1.0
        middle += sign[n] * product
    ordinary = rng.standard_normal((24, 8)), rng.standard_normal((8, 33))
    a = np.hstack([ordinary[0], np.tile(sign * pairs[0][turns], (24, 1))])
    b = np.vstack([ordinary[1], np.tile(pairs[1][turns], (33, 1)).T])
    c = rng.integers(1400, 1600, (24, 33)).astype(np.float64)
    both_ways(monkeypatch, encoded(a), encoded(b), "float16", how, encoded(c), **options)


def test_subnormal_products_of_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    a = bits.encode(rng.standard_normal((10, 40)) * 2.0**-70, "bfloat16")[0]
    for accumulator in (fma("bfloat16"), mul_add("bfloat16"), vdpbf16ps(), tensor_core("A100", "bfloat16")):
        both_ways(monkeypatch, a, a.T, "bfloat16", accumulator)


def test_half_way_sums_that_float32_rounds_to_a_power_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 - 2^-32 is 1 in float32, with an error of less than nothing: below 1 the quanta are half as large."""
    a = np.array([[0x3C00, 0x0100]], np.uint16)  # 1 and 2^-16
    b = np.array([[0x3C00] * 4096, [0x8100] * 4096], np.uint16)  # 1 and -2^-16
    for seed in range(8):
        both_ways(monkeypatch, a, b, "float16", fma("float16"), rounding="stochastic", seed=seed, sr_bits=5)
        both_ways(monkeypatch, a, b, "float16", fma("float16"), rounding="stochastic", seed=seed)


def test_sums_too_wide_for_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products from 2^-48 to 2^30 in one block: the quick sums would lose bits, the careful ones keep them."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 0x7C00, (24, 160), dtype=np.uint16) | rng.integers(0, 2, (24, 160), dtype=np.uint16) << 15
    b = rng.integers(0, 0x7C00, (160, 24), dtype=np.uint16) | rng.integers(0, 2, (160, 24), dtype=np.uint16) << 15
    for accumulator in (amp("half"), amp("float", out_format="float32"), tensor_core("H100")):
        both_ways(monkeypatch, a, b, "float16", accumulator)
        both_ways(monkeypatch, a.astype(np.uint16), b, "float16", accumulator, overflow="saturate")


# -- outputs in a line, and small products together --------------------------------------------------------------------

Case = tuple[Accumulator, Format | str, dict[str, Any]]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that outputs and k are cut."""
    monkeypatch.setattr(lines, "PIECE", 1 << 12)
    monkeypatch.setattr(lines, "RECORDED", 1 << 9)


def resolved(case: Case) -> tuple[Accumulator, Format, dict[str, Any], np.random.Generator]:
    accumulator, name, options = case
    fmt = name if isinstance(name, Format) else Format.from_name(name)
    return accumulator, fmt, options, np.random.default_rng([CASES.index(case), 1])


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", CASES, ids=label)
def test_dot_products_one_by_one(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)
    for outputs, length, scale in ((150, 65, 1.0), (129, 3, 2.0**-13), (1, 200, 30.0), (4, 4, 2.0**-7)):
        a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
        c = drawn(rng, accumulator.partials, (outputs,), scale)
        both_ways(monkeypatch, a, b, fmt, accumulator, function=bits.vecdot, **options)
        both_ways(monkeypatch, a, b, fmt, accumulator, c, function=bits.vecdot, **options)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", CASES, ids=label)
def test_matrices_times_vectors(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)
    matrix, vector = drawn(rng, fmt, (140, 70), 1.0), drawn(rng, fmt, (140,), 1.0)
    both_ways(monkeypatch, matrix, vector[:70], fmt, accumulator, **options)
    c = drawn(rng, accumulator.partials, (70,), 1.0)
    both_ways(monkeypatch, vector, matrix, fmt, accumulator, c, **options)


def one_at_a_time(how: Accumulator) -> bool:
    return how.block == len(how.order) == 1 and how.store is None and not how.segments


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", [x for x in CASES if one_at_a_time(x[0])], ids=label)
def test_cumulative_sums(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)
    for shape, scale in (((150, 131), 1.0), ((700,), 2.0**-9), ((1, 3), 30.0)):
        codes = drawn(rng, fmt, shape, scale)
        both_ways(monkeypatch, codes, fmt, accumulator, 0, function=bits.cumsum, **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_batches(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)
    for batch, rows, length, columns in ((3, 9, 40, 17), (4, 2, 5, 3), (5, 17, 33, 32)):
        a, b = drawn(rng, fmt, (batch, rows, length), 1.0), drawn(rng, fmt, (batch, length, columns), 1.0)
        c = drawn(rng, accumulator.partials, (batch, rows, columns), 1.0) if batch == 3 else None
        both_ways(monkeypatch, a, b, fmt, accumulator, c, **options)
    monkeypatch.setattr(stacks, "ROOM", 1)  # one product after the other, of which some are not served
    a[1, 2, 3], b[3, 4, 5] = (bits.encode(x, fmt)[0] for x in (np.inf, np.nan))
    b[4], a[4] = 0, a[4] | (1 << (fmt.bits - 1))
    for size in (stacks.SMALL, 0):  # by one loop, and by others
        monkeypatch.setattr(stacks, "SMALL", size)
        both_ways(monkeypatch, a, b, fmt, accumulator, **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_batches_of_any_size_are_settled_beforehand(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes straight to the loops of batches: sums as short as they begin with, and products among them that the loops leave."""
    accumulator, fmt, options, rng = resolved(case)
    monkeypatch.setattr(small, "_plan", lambda *_: None)
    shapes = (2, 9, 1, 17), (3, 8, 2, 16), (2, 8, 3, 5), (4, 17, 35, 18)
    for batch, rows, length, columns in shapes[2 if accumulator.segments else 0 :]:
        a, b = drawn(rng, fmt, (batch, rows, length), 1.0), drawn(rng, fmt, (batch, length, columns), 1.0)
        both_ways(monkeypatch, a, b, fmt, accumulator, **options)
        both_ways(monkeypatch, a[0], b[0], fmt, accumulator, **options)
    monkeypatch.setattr(stacks, "ROOM", 1)
    a[1, 2, 3], b[2, 4, 5] = (bits.encode(x, fmt)[0] for x in (np.inf, np.nan))
    both_ways(monkeypatch, a.swapaxes(1, 2).copy().swapaxes(1, 2), b, fmt, accumulator, **options)
    for size in (stacks.SMALL, 0):
        monkeypatch.setattr(stacks, "SMALL", size)
        codes, flags = bits.matmul(a, b, fmt, accumulator, **options)
        again, seen = bits.matmul(a, b, fmt, accumulator, flags="any", **options)
        np.testing.assert_array_equal(codes, again)
        assert seen == np.bitwise_or.reduce(flags, axis=None)


BATCHED = [
    *(
        (how, how.partials)
        for how in (fma("float16"), mul_add("float16"), fma("bfloat16"), mul_add("bfloat16"), fma("float32"))
    ),
    *((tensor_core(name), Format.from_name("float16")) for name in ("V100", "A100", "H100")),
    *((tensor_core(name, output="float16"), Format.from_name("float16")) for name in ("V100", "H100")),
    (tensor_core("H100", "bfloat16"), Format.from_name("bfloat16")),
    (tensor_core("H100", "float8_e4m3fn"), Format.from_name("float8_e4m3fn")),
]


def left_by_one_loop(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Any]]:
    """What tells of the calls since it was asked last which of their products the loop of small ones left; None: all, and more."""
    found, one_after_the_other = set(), stacks.one_after_the_other

    def watched(*arguments: Any) -> Any:
        done = one_after_the_other(*arguments)
        if len(arguments[2][0].codes) > 1:
            found.add(None if done is None else tuple(span.start for span in done.left))
        return done

    def told() -> set[Any]:
        before = found.copy()
        found.clear()
        return before

    monkeypatch.setattr(stacks, "one_after_the_other", watched)
    return told


@SERVED
@pytest.mark.parametrize(("how", "fmt"), BATCHED, ids=repr)
def test_small_products_go_by_one_loop(how: Accumulator, fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with an infinity or NaN are left by it, and no other; larger ones and those that go on from sums are not for it."""
    rng, left = np.random.default_rng(8), left_by_one_loop(monkeypatch)
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    special = (-np.inf if fmt.infinities else np.nan), np.nan
    for rows, length, columns in ((16, 24, 32), (9, 30, 21), (8, 33, 16)):
        a, b = drawn(rng, fmt, (7, rows, length), 1.0), drawn(rng, fmt, (7, length, columns), 1.0)
        both_ways(monkeypatch, a, b, fmt, how)
        assert left() == {()}
        a[2, rows - 1, 3], b[5, length - 1, columns - 1] = (bits.encode(x, fmt)[0] for x in special)
        both_ways(monkeypatch, a, b, fmt, how)
        assert left() == {(2, 5)}
        c = drawn(rng, how.partials, (7, rows, columns), 1.0)
        both_ways(monkeypatch, a, b, fmt, how, c)
        assert left() == set()
    a, b = drawn(rng, fmt, (2, 300, 300), 1.0), drawn(rng, fmt, (2, 300, 8), 1.0)
    bits.matmul(a, b, fmt, how)
    assert left() == {None}


@SERVED
@pytest.mark.parametrize("name", ["V100", "H100"])
def test_small_products_that_overflow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite sums are codes like any others."""
    rng, how = np.random.default_rng(3), tensor_core(name, output="float16")
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    a, b = (encoded(rng.standard_normal(shape) * 100) for shape in ((6, 9, 64), (6, 64, 12)))
    both_ways(monkeypatch, a, b, "float16", how)
    beyond = ~np.isfinite(bits.decode(bits.matmul(a, b, "float16", how)[0], "float16"))
    assert 0 < beyond.sum() < beyond.size


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_products_and_sums_of_all_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What rounds by splitting, behind a product that makes all sums inexact: each pair of significands, and sums of any digits."""
    fmt, rng = Format.from_name(name), np.random.default_rng(5)
    every = np.arange(2**fmt.mantissa_bits, 2 ** (fmt.mantissa_bits + 1)) / 2.0**fmt.mantissa_bits
    odd = every[1::2]
    for scale in (1.0, 2.0**-3, 2.0**3):
        a = np.stack([rng.choice(odd[odd > 1.5], every.size) * scale, every, rng.permutation(every)], axis=1)
        b = np.stack([rng.choice(odd[odd > 1.5], every.size), every, rng.choice([1.0, -1.0, 0.0], every.size)])
        both_ways(monkeypatch, encoded(a, name), encoded(b, name), name, mul_add(name))


def test_products_that_splitting_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that may overflow, and operands that are large alone, beside others."""
    rng = np.random.default_rng(5)
    for name, large in (("float16", 2.0**7), ("bfloat16", 2.0**60)):
        a, b = rng.standard_normal((5, 16, 40)), rng.standard_normal((5, 40, 32))
        a[1], b[1], a[3], b[3] = a[1] * large, b[1] * large, a[3] / large, b[3] * large
        both_ways(monkeypatch, encoded(a, name), encoded(b, name), name, mul_add(name))
    b[3], a[3] = b[3] * 2.0**58, 2.0**-100
    both_ways(monkeypatch, encoded(a, "bfloat16"), encoded(b, "bfloat16"), "bfloat16", mul_add("bfloat16"))
    a, b, c = (
        rng.standard_normal((16, 40)) * 4,
        rng.standard_normal((40, 32)) * 4,
        rng.choice([-1, 1], (16, 32)) * 65440.0,
    )
    both_ways(monkeypatch, encoded(a), encoded(b), "float16", mul_add("float16"), encoded(c))
    assert (bits.matmul(encoded(a), encoded(b), "float16", mul_add("float16"), encoded(c))[1] & 4).any()


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "toward_zero", "to_odd", "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_second_operands_that_a_lift_would_make_infinite(
    how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of formats that reach further than half: factors of 2^16 and more, of products that half has."""
    rng, fmt = np.random.default_rng(4), "bfloat16"
    options = {"rounding": rounding} | ({"seed": 3} if rounding == "stochastic" else {})
    for exponent in (13, 17, 60):
        a = encoded(rng.standard_normal((3, 24, 40)) * 2.0**-exponent, fmt)
        b = encoded(rng.standard_normal((3, 40, 32)) * 2.0 ** (exponent + 2), fmt)
        both_ways(monkeypatch, a, b, fmt, how, **options)
        both_ways(monkeypatch, a[0], b[0], fmt, how, daz=True, overflow="saturate", **options)
    a, b = encoded(np.full((16, 3), 1.0078125), fmt), encoded([[1.0078125] * 16, [2.0**17] * 16, [2.0] * 16], fmt)
    a[:, 1] = encoded([2.0**-10], fmt)
    codes, flags = bits.matmul(a, b, fmt, how, rounding="nearest_even")
    assert (codes == 0x5818).all(), "1.0156 + 128 + 2.015625, each sum rounded to half; infinities before"
    assert (flags == 1).all()


@SERVED
def test_products_beyond_the_lift_stay_on_the_fast_road(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", None)
    rng = np.random.default_rng(4)
    a = encoded(rng.standard_normal((24, 40)) * 2.0**-15, "bfloat16")
    b = encoded(rng.standard_normal((40, 32)) * 2.0**17, "bfloat16")
    bits.matmul(a, b, "bfloat16", fma("float16"))
    bits.matmul(np.stack([a] * 3), np.stack([b] * 3), "bfloat16", mul_add("float16"))


@SERVED
def test_small_products_out_of_range_are_left_by_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of formats whose numbers reach further than the loop: each product is judged by its own."""
    rng, left = np.random.default_rng(8), left_by_one_loop(monkeypatch)
    a, b = (drawn(rng, Format.from_name("bfloat16"), shape, 1.0) for shape in ((6, 16, 20), (6, 20, 32)))
    a[1, 15, 19], b[3, 0, 0], a[4, 0, 1], b[4, 1, 31] = encoded([2.0**-130, 2.0**-120, 2.0**90, 2.0**80], "bfloat16")
    a[5] = 0
    both_ways(monkeypatch, a, b, "bfloat16", fma("bfloat16"))
    assert left() == {(1, 3, 4)}
    scales = 2.0 ** np.array([-60, 60, -20, 20, 0, 9])[:, None, None]
    a, b = (encoded(rng.standard_normal(x.shape) * s, "bfloat16") for x, s in ((a, scales), (b, 1 / scales)))
    both_ways(monkeypatch, a, b, "bfloat16", fma("bfloat16"))
    assert left() == {()}, "together they span more than one may"
    a, b = (np.tile(x, (9, 1, 1)) for x in (a, b))  # so many that their flags are told together
    assert bits.matmul(a, b, "bfloat16", fma("bfloat16"), flags="any")[1] == 1


@SERVED
@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add("float16"), tensor_core("H100"), pairwise("float16")], ids=repr
)
def test_batches_that_are_settled_beforehand(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []

    def run(*arguments: Any) -> Any:
        served.append(small_batch(*arguments))
        return served[-1]

    small_batch = small._batch
    monkeypatch.setattr(small, "_batch", run)
    a, b = np.full((40, 24, 24), 0x3C00, np.uint16), np.full((40, 24, 24), 0x3C00, np.uint16)
    bits.matmul(a, b, "float16", how)
    bits.matmul(a, b, "float16", how, seed=3, rounding="stochastic")
    bits.matmul(np.tile(a[0], (8, 1)), np.tile(b[0], 8), "float16", how)
    drawn_too = how == tensor_core("H100")
    assert [x is not None for x in served] == [how != pairwise("float16"), drawn_too, how != pairwise("float16")]


def test_a_product_too_small_for_its_loops_compiles_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products.Together, "run", None)
    few = np.full((4, 4), 0x3C00, np.uint16)
    codes, flags = bits.matmul(few, few, "float16", amp("half"))
    assert (codes == 0x4400).all()
    assert not flags.any()


@pytest.mark.parametrize("fmt", ["float16", "bfloat16", "float8_e4m3fn", "float32"])
def test_batches_by_one_and_two_threads(fmt: str) -> None:
    rng, before, found = np.random.default_rng(9), get_num_threads(), []
    a, b = drawn(rng, Format.from_name(fmt), (37, 24, 40), 1.0), drawn(rng, Format.from_name(fmt), (37, 40, 24), 1.0)
    try:
        for threads in (1, 2):
            set_num_threads(threads)
            found += [bits.matmul(a, b, fmt, fma("float32")), bits.matmul(a, b, fmt, mul_add("float16"))]
    finally:
        set_num_threads(before)
    for one, other in zip(found[:2], found[2:], strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("groups", [3, 150])
@pytest.mark.parametrize("accumulator", [fma("float16"), amp("half"), pairwise("float16")], ids=repr)
def test_depthwise_convolutions(accumulator: Accumulator, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(groups)
    fmt = Format.from_name("float16")
    image, weights = drawn(rng, fmt, (2, 6, 5, groups), 1.0), drawn(rng, fmt, (3, 2, 1, groups), 1.0)
    c = drawn(rng, fmt, (groups,), 1.0)
    options: dict[str, Any] = {"padding": "same", "groups": groups} | (STOCHASTIC if groups == 3 else {})
    both_ways(monkeypatch, image, weights, "float16", accumulator, c, function=bits.conv2d, **options)
    gradient = drawn(rng, fmt, (2, 6, 5, groups), 1.0)
    both_ways(
        monkeypatch, image, gradient, weights.shape, fmt, accumulator, function=bits.conv2d_weight_gradient, **options
    )


ROUNDINGS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative"},
    {"rounding": "to_odd", "overflow": "saturate"},
    {"overflow": "nan", "nan": "x86"},
    {"ftz": True, "tininess": "before"},
    {"daz": True},
    STOCHASTIC,
    {"out_format": "float8_e5m2", "rounding": "toward_zero"},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", ROUNDINGS, ids=str)
@pytest.mark.parametrize(
    "fmt", [Format.from_name(x) for x in ("float16", "bfloat16", "float8_e5m2", "float32")], ids=str
)
def test_trees_chains_and_entire_sums(fmt: Format, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(len(str(options)))
    ways = [pairwise(fmt), exact(fmt), fma(fmt).replace(chains=3), mul_add(fmt).replace(chains=9)]
    for how in ways:
        for outputs, length, scale in ((5, 7, 1.0), (70, 67, 2.0**-9), (1, 130, 300.0), (3, 1, 1.0), (2, 2, 2.0**-12)):
            a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
            c = drawn(rng, fmt, (outputs,), scale)
            both_ways(monkeypatch, a, b, fmt, how, function=bits.vecdot, **options)
            both_ways(monkeypatch, a, b, fmt, how, c, function=bits.vecdot, **options)
            both_ways(monkeypatch, a[-37:], b.T, fmt, how, c, **options)
            both_ways(monkeypatch, a, fmt, how, 1, function=bits.sum, **options)
            both_ways(monkeypatch, np.ascontiguousarray(a.T), fmt, how, 0, function=bits.sum, **options)


def test_entire_sums_of_distant_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All exponents: many slices. Sums that cancel but for their smallest term."""
    rng = np.random.default_rng(8)
    for fmt, high in (("float16", 0x7C00), ("bfloat16", 0x7F80)):
        a, b = (
            rng.integers(0, high, (20, 40), dtype=np.uint16) | rng.integers(0, 2, (20, 40), dtype=np.uint16) << 15
            for _ in "ab"
        )
        for how in (exact(fmt), exact("float32")):
            both_ways(monkeypatch, a, b.T.copy(), fmt, how)
            both_ways(
                monkeypatch,
                np.hstack([a, a ^ 0x8000, a[:, :1]]),
                np.hstack([b, b, b[:, :1]]),
                fmt,
                how,
                function=bits.vecdot,
            )
    near = encoded([[1.0, 2.0**-11, 2.0**-24, -(2.0**-24), 2.0**-24, 0.0]])
    for rounding in ("nearest_even", "nearest_away", "toward_positive", "toward_zero"):
        both_ways(monkeypatch, near, "float16", exact("float16"), 1, function=bits.sum, rounding=rounding)
    assert bits.sum(near, "float16", exact("float16"))[0] == 0x3C01  # just above half-way


def test_entire_sums_of_as_many_bits_as_float64_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of 48 bits whose sums grow to 56 before they cancel."""
    rng = np.random.default_rng(9)
    factors = rng.integers(0x3F800001, 0x40000000, (2, 3, 200), dtype=np.uint32)
    rest = np.array([[0x3F800001, 0xBF800000]] * 3, np.uint32)  # 1 + 2^-23 and -1
    a = np.concatenate([factors[0], factors[0] ^ 0x80000000, rest], axis=1)
    b = np.concatenate([factors[1], factors[1], np.full((3, 2), 0x3F800000, np.uint32)], axis=1)
    assert bits.vecdot(a, b, "float32", exact("float32"))[0].tolist() == [0x34000000] * 3
    both_ways(monkeypatch, a, b, "float32", exact("float32"), function=bits.vecdot)
    both_ways(monkeypatch, a, b.T, "float32", exact("float32"))


@pytest.mark.parametrize("how", [fma("float8_e5m2"), fma("float8_e4m3fn"), mul_add("float16")], ids=repr)
@pytest.mark.parametrize("fmt", ["float16", "bfloat16"])
def test_sums_of_numbers_that_the_running_format_has_not(
    fmt: str, how: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(10)
    for scale in (1.0, 2.0**-6, 2.0**-13, 2.0**-24):
        codes = bits.encode(rng.standard_normal((40, 150)) * scale, fmt)[0]
        both_ways(monkeypatch, codes, fmt, how, 0, function=bits.sum)
        both_ways(monkeypatch, codes[:, 0], fmt, how, function=bits.cumsum)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", CASES, ids=label)
def test_special_operands_go_the_plain_way_alone(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities and NaNs at every kind of place, in a, b and c; only outputs that they go into are done again."""
    accumulator, fmt, options, rng = resolved(case)
    infinity = fmt.spec.infinity if fmt.infinities else fmt.nan_code
    a, b = (drawn(rng, fmt, (300, 33), 1.0) for _ in range(2))
    c = drawn(rng, accumulator.partials, (300,), 1.0)
    for place, code in (((0, 0), infinity), ((299, 32), infinity | fmt.sign_bit), ((128, 5), fmt.nan_code)):
        x, y = a.copy(), b.copy()
        x[place] = code
        both_ways(monkeypatch, x, y, fmt, accumulator, function=bits.vecdot, **options)
        y[place] = 0
        both_ways(monkeypatch, x, y, fmt, accumulator, c, function=bits.vecdot, **options)
        both_ways(monkeypatch, x, b[0], fmt, accumulator, **options)
        both_ways(monkeypatch, a, x[place[0]], fmt, accumulator, **options)
    a[[3, 4, 5, 130, 131, 299], [0, 7, 32, 5, 5, 9]] = infinity
    b[[4, 77, 131], [8, 1, 5]] = fmt.nan_code
    c[[5, 200, 201]] = accumulator.partials.nan_code
    both_ways(monkeypatch, a, b, fmt, accumulator, c, function=bits.vecdot, **options)
    if bits.decode(bits.encode(1.0, fmt)[0], fmt) == 1.0:
        for axis in (0, 1):
            both_ways(monkeypatch, a, fmt, accumulator, axis, function=bits.sum, **options)
            if accumulator in (fma(accumulator.partials), mul_add(accumulator.partials)):
                both_ways(monkeypatch, a, fmt, accumulator, axis, function=bits.cumsum, **options)


FUSED: list[Case] = [
    *(x for x in CASES if x[0] == fma(x[0].partials)),
    (fma("float16"), "float16", {"rounding": "stochastic", "seed": 3, "sr_bits": 7}),
    (fma("float16"), "float16", {"rounding": "toward_negative", "ftz": True, "daz": True}),
    (fma("float16"), "float16", {"rounding": "to_odd"}),
    (fma("float8_e4m3fn"), "float8_e5m2", {"overflow": "saturate"}),
    (fma("float8_e4m3fn"), "float8_e5m2", {"overflow": "saturate", "rounding": "stochastic", "seed": 4}),
    (fma("float16"), "float16", {"nan": "riscv"}),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", FUSED, ids=label)
def test_fused_sums_go_on_from_their_first_special_operand(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows, in columns, in both before each other and after, in c; with sums that overflow before, and zeros against infinities."""
    accumulator, name, options = case
    fmt = name if isinstance(name, Format) else Format.from_name(name)
    rng = np.random.default_rng(5)
    infinity, nan = fmt.spec.infinity if fmt.infinities else fmt.nan_code, fmt.nan_code
    a, b = drawn(rng, fmt, (48, 40), 1.0), drawn(rng, fmt, (40, 64), 1.0)
    c = drawn(rng, accumulator.partials, (48, 64), 1.0)
    a[5, :20], b[:20, ::3] = fmt.max_code, fmt.max_code
    for rows, columns, start in (
        ({5: (20, infinity)}, {}, None),
        ({5: (39, infinity), 7: (0, nan)}, {}, c),
        ({}, {5: (20, infinity | fmt.sign_bit), 33: (39, nan)}, None),
        ({5: (30, infinity)}, {6: (20, infinity)}, c),
        ({5: (20, infinity), 9: (38, infinity)}, {6: (30, infinity), 8: (39, nan)}, None),
    ):
        x, y, z = a.copy(), b.copy(), start if start is None else start.copy()
        for row, (k, code) in rows.items():
            x[row, k] = code
            y[k, ::5] = 0
        for column, (k, code) in columns.items():
            y[k, column] = code
        both_ways(monkeypatch, x, y, fmt, accumulator, z, **options)
        if z is not None:
            z[11, 3] = accumulator.partials.nan_code
            both_ways(monkeypatch, x, y, fmt, accumulator, z, **options)


def ordinary_or_not(monkeypatch: pytest.MonkeyPatch, *operands: Any, **options: Any) -> bool:
    """Whether the plain loop without what only some accumulators ask for was used; if so, that it does what the whole one does."""
    asked, contraction = [], dots.contraction
    with monkeypatch.context() as patch:
        patch.setattr(elementwise, "FAST", False)
        patch.setattr(dots, "contraction", lambda *parts: (asked.append(parts[0]), contraction(*parts))[1])
        found = bits.vecdot(*operands, **options)
        patch.setattr(dots, "contraction", lambda *_: contraction(True, True))
        same((found, bits.vecdot(*operands, **options)))
    return not any(asked)


ORDINARY = [x for x in CASES if x[0].chains == 1 and not x[0].reduction and x[0].aligned is None and not x[0].tree]


@pytest.mark.parametrize("case", ORDINARY, ids=label)
def test_the_plain_loop_of_ordinary_sums_is_that_of_all(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)
    ordinary = []
    for length in (0, 1, 31, 100):
        a, b = (drawn(rng, fmt, (70, length), 1.0) for _ in range(2))
        c = drawn(rng, accumulator.partials, (70,), 1.0)
        if length > 4:
            a[3, 4], a[5, length - 1], b[5, 2] = fmt.nan_code, fmt.max_code, fmt.max_code
            b[64, 1], c[69] = fmt.spec.infinity if fmt.infinities else fmt.nan_code, accumulator.partials.nan_code
        for start in (None, c):
            ordinary.append(ordinary_or_not(monkeypatch, a, b, fmt, accumulator, start, **options))
    assert any(ordinary)


def test_outputs_beside_special_ones_stay_on_the_fast_road(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PIECE", 1)
    redone: list[int] = []
    grid = products._grid
    monkeypatch.setattr(
        products, "_grid", lambda problem, *more: (redone.append(problem.b.shape[1]), grid(problem, *more))
    )
    a = encoded(np.ones((400, 10)))
    a[150, 3] = 0x7C00
    codes, flags = bits.vecdot(a, a, "float16", fma("float16"))
    assert redone == [400 if engine.loops().jit.DISABLED else 1]
    assert codes.tolist() == [0x4900] * 150 + [0x7C00] + [0x4900] * 249
    assert not flags.any()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("how", [fma("float16"), amp("half"), pairwise("float16"), exact("float16")], ids=repr)
def test_any_number_of_threads(count: int, how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    fmt = Format.from_name("float16")
    a, b = (drawn(rng, fmt, (600, 70), 1.0) for _ in range(2))
    monkeypatch.setattr(lines, "PIECE", 1 << 13)
    before = get_num_threads()
    try:
        set_num_threads(count)
        for options in ({}, STOCHASTIC):
            both_ways(monkeypatch, a, b, "float16", how, function=bits.vecdot, **options)
            both_ways(monkeypatch, a.reshape(15, 40, 70), b.reshape(15, 70, 40), "float16", how, **options)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("how", [fma("float16"), amp("half"), pairwise("float16"), exact("float16")], ids=repr)
def test_operands_wherever_they_lie(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backwards, spread, repeated, read-only, transposed, swapped bytes."""
    rng = np.random.default_rng(12)
    whole = drawn(rng, Format.from_name("float16"), (150, 134), 1.0)
    whole.flags.writeable = False
    other = np.broadcast_to(whole[0, :67], (150, 67))
    for a in (whole[:, ::-2], whole[::-1, :67], whole[:, ::2], whole.reshape(134, 150).T[:, :67], whole[:, :67]):
        for b in (other, whole[:, 67:], np.broadcast_to(whole[:, :1], (150, 67))):
            both_ways(monkeypatch, a, b, "float16", how, function=bits.vecdot)
            both_ways(monkeypatch, b, a, "float16", how, function=bits.vecdot)
    both_ways(monkeypatch, whole.astype(whole.dtype.newbyteorder()), whole, "float16", how, function=bits.vecdot)
    both_ways(monkeypatch, whole, "float16", how, 0, function=bits.sum)


@pytest.mark.sampled(3)
@SERVED
@pytest.mark.parametrize("case", [x for x in CASES if not x[0].segments], ids=label)
def test_every_line_and_batch_is_served(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)

    def refuse(*arguments: Any) -> None:
        raise AssertionError("the plain way")

    monkeypatch.setattr(plain, "run", refuse)
    a = drawn(rng, fmt, (150, 16), 1.0)
    bits.vecdot(a, a, fmt, accumulator, **options)
    bits.matmul(a, a[0], fmt, accumulator, **options)
    bits.sum(a, fmt, accumulator, 1, **options)
    if not accumulator.reduction:
        bits.matmul(a.reshape(3, 50, 16), a.reshape(3, 50, 16).transpose(0, 2, 1), fmt, accumulator, **options)


@SERVED
@pytest.mark.parametrize("how", [pairwise("float16"), exact("float16"), fma("float16").replace(chains=4)], ids=repr)
def test_trees_chains_and_entire_sums_are_served(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", None)
    a = drawn(np.random.default_rng(1), Format.from_name("float16"), (30, 30), 1.0)
    bits.matmul(a, a, "float16", how)
    bits.vecdot(a, a, "float16", how)
    bits.sum(a, "float16", how)


@SERVED
@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add("bfloat16"), mul_add("float32"), fma("float16").replace(chains=4)], ids=repr
)
def test_sums_that_draw_are_served(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", None)
    monkeypatch.setattr(joining, "WORTH_CALLS", 0)
    a = drawn(np.random.default_rng(1), how.partials, (30, 30), 1.0)
    bits.matmul(a, a, how.partials, how, **STOCHASTIC)
    bits.vecdot(a, a, how.partials, how, **STOCHASTIC)
    bits.sum(a, how.partials, how, 1, **STOCHASTIC)
    if how.chains == 1:
        bits.cumsum(a, how.partials, how, 1, **STOCHASTIC)


@pytest.mark.parametrize("nan", ["canonical", "x86"])
@pytest.mark.parametrize(
    "how",
    [fma("float16").replace(chains=3), chunked(4, "float16", "float16"), pairwise("float16"), exact("float16")],
    ids=repr,
)
def test_payloads_of_c(how: Accumulator, nan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = drawn(np.random.default_rng(1), Format.from_name("float16"), (70, 10), 1.0)
    for code in (0x7E12, 0x7C01, 0xFC00):
        c = np.full(70, code, np.uint16)
        both_ways(monkeypatch, a, a, "float16", how, c, function=bits.vecdot, nan=nan)
        both_ways(monkeypatch, a, a.T, "float16", how, c, nan=nan)
        x = a.copy()
        x[3, 2] = code
        both_ways(monkeypatch, x, a, "float16", how, function=bits.vecdot, nan=nan)
        both_ways(monkeypatch, x[3:4], "float16", how, 1, function=bits.sum, nan=nan)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("rounding", [*DIRECTED, "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), fma("bfloat16"), fma("float32")], ids=repr)
def test_overflows_on_the_way(how: Accumulator, rounding: str, overflow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums beyond the largest number, which products of the other sign follow; next to it, where half a unit decides; and all of them again.

    In one product, whose tiles are whole or not, and in many.
    """
    fmt, rng = how.partials, np.random.default_rng(4)
    options: dict[str, Any] = {"rounding": rounding, "overflow": overflow} | (
        STOCHASTIC if rounding == "stochastic" else {}
    )
    size = 2.0 ** ((fmt.emax - 2) // 2)
    x = rng.choice([size, size / 2, -size, 1.0, 1.5, -1.0], (3, 24, 40))
    y = rng.choice([size, size / 2, size * (2 - fmt.eps), 2.0, 1.0], (3, 40, 48))
    a, b = encoded(x, fmt.name), encoded(y, fmt.name)
    end = encoded(np.full((24, 48), fmt.max), fmt.name)
    for part, c in ((slice(1), end), (slice(1), None), (slice(2, 3), None)):
        for rows, columns in ((24, 48), (17, 33)):
            start = None if c is None else c[:rows, :columns]
            both_ways(monkeypatch, a[part][0, :rows], b[part][0, :, :columns], fmt, how, start, **options)
    both_ways(monkeypatch, a, b, fmt, how, **options)
    both_ways(monkeypatch, a[:, :9], b[:, :, :20], fmt, how, **options)
    just = encoded([[fmt.max, 2.0**fmt.emax * fmt.eps, -(2.0**fmt.emax) * fmt.eps / 2, fmt.max, -fmt.max]], fmt.name)
    both_ways(
        monkeypatch, np.repeat(just, 16, 0), encoded(rng.choice([1.0, 0.5], (5, 16)), fmt.name), fmt, how, **options
    )


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("bfloat16"), fma("float32")], ids=repr)
def test_flags_of_all_outputs_of_a_batch(how: Accumulator, overflow: str) -> None:
    """Those of each together: of whole tiles and others, exact or not, with infinities, NaN or none."""
    fmt, rng = how.partials, np.random.default_rng(3)
    large = 2.0 ** ((fmt.emax - 1) // 2)
    for rows, columns in ((16, 32), (9, 20)):
        for x in (np.ones((96, 24, 40)), rng.standard_normal((96, 24, 40)), np.full((96, 24, 40), large)):
            x[1:] = rng.choice([1.0, -1.0], (95, 24, 40))
            a = encoded(x[:, :rows], fmt.name)
            b = encoded(np.repeat(np.abs(x[:, :1, :, None]), columns, 3)[:, 0], fmt.name)
            each = bits.matmul(a, b, fmt, how, overflow=overflow)
            seen = bits.matmul(a, b, fmt, how, overflow=overflow, flags="any")
            np.testing.assert_array_equal(each[0], seen[0])
            assert int(seen[1]) == np.bitwise_or.reduce(each[1], axis=None)


@pytest.mark.parametrize("rounding", [*DIRECTED, "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_sums_just_below_the_smallest_normal_half(
    how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0x03FF and its neighbours, and products of a few quarters of 2^-24, after a sum that is inexact."""
    rng = np.random.default_rng(2)
    quarters = rng.integers(-9, 10, (16, 200)) * 2.0**-13
    first, last = np.full((16, 1), 1 + 2.0**-10), np.full((16, 1), -1 - 2.0**-10)
    a = np.concatenate((first, last, quarters), 1)
    b = np.concatenate((first, first, np.full((16, 200), 2.0**-13)), 1).T
    start = rng.integers(0x03F0, 0x0402, (16, 16)).astype(np.uint16)
    options: dict[str, Any] = {"rounding": rounding} | (STOCHASTIC if rounding == "stochastic" else {})
    for tininess in ("after", "before"):
        both_ways(monkeypatch, encoded(a), encoded(b), "float16", how, start, tininess=tininess, **options)
        middle = encoded(a[:, 2:]), encoded(b[2:])
        both_ways(monkeypatch, *middle, "float16", how, start, tininess=tininess, **options)


@pytest.mark.parametrize("rounding", [*DIRECTED, "stochastic"])
def test_inexact_products_alone(rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is added to +0, or to the sum that the product makes even: only the product is inexact."""
    rng = np.random.default_rng(1)
    options: dict[str, Any] = {"rounding": rounding} | (STOCHASTIC if rounding == "stochastic" else {})
    a, b = (encoded(rng.standard_normal(shape), "float32") for shape in ((16, 1), (1, 32)))
    for how in (mul_add("float32"), fma("float32")):
        both_ways(monkeypatch, a, b, "float32", how, **options)
        counted_both_ways(monkeypatch, a, b, "float32", how, **options)
    assert (bits.matmul(a, b, "float32", mul_add("float32"), **options)[1] & 1).any()


@pytest.mark.parametrize("name", ["float8_e4m3fnuz", "float8_e5m2fnuz", "binary8p4sf"])
def test_formats_without_a_negative_zero(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that vanish from below, where every mode has its zero: of numbers that cancel, and of tiny ones."""
    rng, fmt = np.random.default_rng(5), Format.from_name(name)
    few = [1.0, -1.0, 0.0, 1.125, -1.125, fmt.smallest_subnormal, -fmt.smallest_subnormal, 0.5, -0.25, fmt.tiny]
    a, b = (encoded(rng.choice(few, shape), name) for shape in ((16, 64), (64, 32)))
    for how in (fma(name), mul_add(name)):
        for rounding in DIRECTED:
            both_ways(monkeypatch, a, b, name, how, rounding=rounding)
        for width in (6, 16, 20):
            both_ways(monkeypatch, a, b, name, how, **STOCHASTIC | {"sr_bits": width})


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_zero"}, {"overflow": "saturate"}, STOCHASTIC], ids=str)
@pytest.mark.parametrize("fmt", [Format.from_name("tfloat32"), E8M5], ids=str)
def test_sums_of_wide_formats_at_the_ends_of_what_is_served(
    fmt: Format, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    for exponent in (-126, -96, -63, -47, 29, 30, 31, 52, 53, 54, 60, 63):
        for beside in (0, exponent, -exponent):
            a, b = (
                bits.encode(rng.standard_normal(shape) * 2.0**power, fmt, overflow="saturate")[0]
                for shape, power in (((9, 33), exponent), ((33, 17), beside))
            )
            for how in (fma(fmt), mul_add(fmt)):
                both_ways(monkeypatch, a, b, fmt, how, **options)


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_positive"}, STOCHASTIC], ids=str)
@pytest.mark.parametrize("fmt", [Format.from_name("tfloat32"), E8M5], ids=str)
def test_sums_that_begin_far_beyond_their_products(
    fmt: Format, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^117 + 1 in tfloat32 (0x3D000) is 2^117, and inexact: once it was exact, as 2^23 quanta beside it are infinite."""
    rng = np.random.default_rng(19)
    a, b = (encoded(rng.standard_normal(shape)) for shape in ((9, 33), (33, 17)))
    for exponent in (57, 60, 61, 95, 105, 117, 125):
        c = bits.encode(rng.standard_normal((9, 17)) * 2.0**exponent, fmt, overflow="saturate")[0]
        for how in (fma(fmt), mul_add(fmt), pairwise(fmt)):
            both_ways(monkeypatch, a, b, "float16", how, c, **options)
    far = bits.encode([[2.0**117]], fmt)[0]
    codes, flags = bits.matmul(encoded([[1.0]]), encoded([[1.0]]), "float16", fma(fmt), far)
    assert (codes[0, 0], flags[0, 0]) == (far[0, 0], 1)


@pytest.mark.parametrize("rounding", DIRECTED)
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_products_of_the_smallest_halves(how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^-48 and its neighbours (0x0001 and 0x8001, 0x0002, 0x0003), alone and beside 2^-14 (0x0400), after sums that are inexact."""
    rng = np.random.default_rng(6)
    tiny = rng.choice(np.array([0x0001, 0x8001, 0x0002, 0x0003, 0x8002, 0x0000], np.uint16), (16, 30))
    small_ = np.where(rng.random((16, 30)) < 0.1, 0x0400, tiny)
    first, last = encoded(np.full((16, 1), 1 + 2.0**-10)), encoded(np.full((16, 1), -1 - 2.0**-10))
    for a in (tiny, small_):
        both_ways(monkeypatch, a, a.T, "float16", how, rounding=rounding)
        beside = np.concatenate((first, first, a, last, a), 1)
        other = np.concatenate((first, last, a, first, a), 1)
        both_ways(monkeypatch, beside, other.T, "float16", how, rounding=rounding)


def test_formats_that_float32_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny numbers times large ones: the products are ordinary."""
    tiny = Format("e8m3_tiny", exponent_bits=8, mantissa_bits=3, bias=170)
    small = np.arange(1, 200, dtype=np.uint16).reshape(1, -1).astype(tiny.dtype)
    big = np.full((199, 40), 0x7A00, np.uint16)  # bfloat16
    for how in (fma("float16"), fma("float32"), amp("half").replace(inputs=())):
        both_ways(monkeypatch, small, big, (tiny, "bfloat16"), how)
        both_ways(monkeypatch, np.repeat(small, 3, 0), big.T[:3], (tiny, "bfloat16"), how, function=bits.vecdot)
    wide = Format("e8m11_tiny", exponent_bits=8, mantissa_bits=11, bias=190)
    x = bits.encode(2.0**-175 * np.arange(1, 141), wide)[0].reshape(2, 7, 10)
    y = bits.encode(2.0**110 * np.arange(1, 141), "bfloat16")[0].reshape(2, 10, 7)
    both_ways(monkeypatch, x[0], y[0].T, (wide, "bfloat16"), fma("float32"), function=bits.vecdot)
    both_ways(monkeypatch, x, y, (wide, "bfloat16"), fma("float32"))


# -- operands that once gave other bits -------------------------------------------------------------------------------


def encoded(values: Any, fmt: Any = "float16") -> np.ndarray[Any, Any]:
    codes: np.ndarray[Any, Any] = bits.encode(np.array(values, np.float64), fmt)[0]
    return codes


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("exponent", [60, 62, 63, 64])
def test_sums_in_single_near_its_end(overflow: str, exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a = encoded(np.full((16, 40), 1.5 * 2.0**exponent), "bfloat16")
    for how in (fma("float32"), mul_add("float32")):
        both_ways(monkeypatch, a, a.T, "bfloat16", how, overflow=overflow)


@pytest.mark.parametrize("overflow", ["infinity", "saturate"])
@pytest.mark.parametrize("exponent", [50, 52, 54, 60, 62])
@pytest.mark.parametrize("fmt", ["float8_e5m2", "float8_e4m3fn", "float16"])
def test_sums_too_large_for_quanta_of_their_own(
    fmt: str, exponent: int, overflow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^54 * 2^53 (0x5A80 * 0x5A00) in e5m2 is infinity, 0x7C, and no NaN: 2^23 quanta of 2^107 are one."""
    a, b = encoded([[2.0**exponent, -1.0]], "bfloat16"), encoded([[2.0**53], [1.0]], "bfloat16")
    for how in (fma(fmt), mul_add(fmt)):
        both_ways(monkeypatch, a, b, "bfloat16", how, overflow=overflow)
    assert bits.matmul(a, b, "bfloat16", fma("float8_e5m2"))[0].tolist() == [[0x7C]]


@pytest.mark.parametrize(
    "how", [amp("half"), amp("float"), tensor_core("H100"), tensor_core("H100", output="float16")], ids=repr
)
def test_an_exact_zero_is_positive(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """-0 (0x8000) and products of -1 and +0; and a half partial that underflows to -0 first."""
    a, b = encoded([[-1.0] * 32]), encoded(np.zeros((32, 1)))
    start = np.full((1, 1), how.partials.sign_bit, how.partials.dtype)
    both_ways(monkeypatch, a, b, "float16", how, start)
    assert bits.matmul(a, b, "float16", how, start)[0].tolist() == [[0]]
    a[0, 0], b[0, 0] = encoded([-(2.0**-13), 2.0**-13])
    both_ways(monkeypatch, a, b, "float16", how)


@pytest.mark.parametrize("tininess", ["before", "after"])
@pytest.mark.parametrize("width", [5, 16, 20, 52])
def test_sums_that_float32_rounds_to_the_smallest_normal_number(
    width: int, tininess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^-14 - 2^-48 (0x0400 and the product of 0x0001 and 0x8001) is tiny before rounding."""
    a, b = encoded(np.full((1, 1), 2.0**-24)), encoded(np.full((1, 64), -(2.0**-24)))
    start = np.full((1, 64), 0x0400, np.uint16)
    drawn_: dict[str, Any] = {"rounding": "stochastic", "seed": 1, "sr_bits": width, "tininess": tininess}
    both_ways(monkeypatch, a, b, "float16", fma("float16"), start, **drawn_)
    both_ways(monkeypatch, a, -b.astype(np.int64) & 0x7FFF, "float16", fma("float16"), start, **drawn_)


def test_unpacked_and_unsigned_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: dict[str, Any] = {"rounding": "toward_zero", "overflow": "infinity", "always_infinite": True}
    unpacked = Accumulator(name="u", running=Stage("float32", **cut), block=1, fraction_bits=2, unpacked="float16")
    one = np.ones((1, 1), np.uint8)
    both_ways(monkeypatch, one, one, "float8_e4m3fn", unpacked)
    assert bits.matmul(one, one, "float8_e4m3fn", unpacked)[0].tolist() == [[0x36800000]]
    unsigned = Format("u8m7", exponent_bits=8, mantissa_bits=7, signed=False)
    how = Accumulator(name="v", running=Stage(unsigned, **cut), block=4, fraction_bits=25)
    both_ways(monkeypatch, encoded([[-1.0] * 4]), encoded(np.ones((4, 1))), "float16", how)


@pytest.mark.parametrize("options", [{"overflow": "saturate"}, {"rounding": "toward_zero"}], ids=str)
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn"])
def test_the_largest_number_beside_larger_products(
    name: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of 2^90 overflow to the largest number, whose last bit lies far below theirs; then they cancel."""
    fmt = Format.from_name(name)
    a = encoded([[2.0**60] * 4 + [-(2.0**60), 2.0**60, 0, 0]], "bfloat16")
    b = encoded([[2.0**30]] * 8, "bfloat16")
    how = Accumulator(name="b", running=Stage(name), block=4)
    codes, flags = bits.matmul(a, b, "bfloat16", how, **options)
    assert (codes.tolist(), flags.tolist()) == ([[fmt.max_code]], [[5]])
    single = Stage("float32", overflow="infinity", rounding="nearest_even")
    stored = Accumulator(name="s", running=single, block=4, store=Stage("float16"), store_every=4, order=(0, 1, 2, 3))
    both_ways(monkeypatch, a, b, "bfloat16", stored, **options)
    assert bits.matmul(a, b, "bfloat16", stored, overflow="saturate")[0].tolist() == [[0x7BFF]]


def counted_both_ways(
    monkeypatch: pytest.MonkeyPatch, *arguments: Any, function: Any = bits.matmul, **options: Any
) -> bits.Counts:
    """By tiles and by the plain loop."""
    found = []
    for fast in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(elementwise, "FAST", fast)
            found.append(function(*arguments, count=True, **options))
    same_counts(tuple(found))
    counts: bits.Counts = found[-1][2]
    return counts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", [case for case in CASES if not case[0].reduction], ids=label)
def test_same_counts(case: tuple[Accumulator, Format | str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, name, options = case
    fmt = name if isinstance(name, Format) else Format.from_name(name)
    rng = np.random.default_rng(CASES.index(case))
    for scale in (1.0, 2.0**-9, 30.0):
        a, b = drawn(rng, fmt, (17, 70), scale), drawn(rng, fmt, (70, 33), scale)
        c = drawn(rng, accumulator.partials, (17, 33), scale) if rng.random() < 0.5 else None
        counted_both_ways(monkeypatch, a, b, fmt, accumulator, c, **options)


@pytest.mark.parametrize(
    "how",
    [fma("float16"), mul_add("float16"), fma("bfloat16"), amp("half"), fma("float32"), mul_add("float32")],
    ids=repr,
)
@pytest.mark.parametrize("options", [{}, STOCHASTIC], ids=["nearest", "stochastic"])
def test_counts_of_long_sums(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """More additions than the words of quick loops count; nearly all inexact, or swamped; ties and tiny sums among them."""
    fmt, rng = how.partials, np.random.default_rng(3)
    noise = rng.standard_normal((2, 1300, 20)) * 2.0 ** rng.integers(-9, 1, (2, 1300, 1))
    a, b = (bits.encode(x, fmt)[0] for x in (noise[0].T + 1, noise[1]))
    counts = counted_both_ways(monkeypatch, a, b, fmt, how, **options)
    assert counts.inexact.max() > 1100 or how.block > 1
    start = np.full((20, 20), bits.encode(4096.0, fmt)[0])
    assert counted_both_ways(monkeypatch, a, b, fmt, how, start, **options).swamped.max() > 30
    counted_both_ways(monkeypatch, a, np.where(noise[1] > 1, fmt.max_code, b).astype(fmt.dtype), fmt, how, **options)


@pytest.mark.parametrize("place", [4, 20, 40, 100, 300])
@pytest.mark.parametrize("how", [amp("float", out_format="float32"), exact("float32")], ids=repr)
def test_bits_that_float64_would_lose(how: Accumulator, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 + 2^-19 is a tie of float32, which 2^-48 breaks, one bit beyond float64: of one block, long before, or what sums begin with.

    So is 8 + 2^-21, where a bit is lost only beside products that cancel.
    """
    large, half, little = (32.0, 1.0), (2.0**-19, 1.0), (2.0**-24, 2.0**-24)
    beside = {place: (2.0**15, 1.0), place + 1: little, place + 2: (-(2.0**15), 1.0), place + 3: (2.0**-21, 1.0)}
    cases: list[tuple[dict[int, tuple[float, float]], float, int]] = [
        ({place: large, place + 1: half, place + 2: little}, 0.0, 0x42000001),
        ({1: little, place: large, place + 1: half}, 0.0, 0x42000001),
        ({place: large, place + 1: half}, 2.0**-48, 0x42000001),
        (beside, 8.0, 0x41000001),
    ]
    for products_, begin, expected in cases:
        a, b = np.zeros((20, 400)), np.zeros((400, 33))
        for k, (x, y) in products_.items():
            a[:, k], b[k] = x, y
        start = bits.encode(np.full((20, 33), begin), "float32")[0]
        arguments = encoded(a), encoded(b), "float16", how, start
        assert set(bits.matmul(*arguments)[0].reshape(-1).tolist()) == {expected}
        both_ways(monkeypatch, *arguments)
        if how.block:
            counted_both_ways(monkeypatch, *arguments)


@pytest.mark.parametrize("options", [{}, {"environment": SATURATING}, {"environment": NANOO}], ids=str)
def test_counted_stores_that_overflow(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small operands that add up to more than a half, with none so small that a bit would be lost."""
    a, b = np.full((20, 400), 30.0), np.full((400, 33), np.repeat([0.0, 300.0, -280.0], 11))
    found = counted_both_ways(monkeypatch, encoded(a), encoded(b), "float16", amp("half"), **options)
    assert (found.overflowed > 0).any()
    assert (found.overflowed == 0).any()


@pytest.mark.parametrize(
    "how",
    [
        amp("half"),
        fma("float16"),
        mul_add("bfloat16"),
        chunked(50, "float16", "float16"),
        fma("float16").replace(chains=3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("options", [{}, STOCHASTIC], ids=["nearest", "stochastic"])
def test_loops_for_few_outputs_sum_what_is_long(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More turns than random numbers are drawn for at once; segments that begin within a block of these; chains."""
    fmt, rng = how.partials, np.random.default_rng(8)
    a, b, c = (drawn(rng, fmt, shape, 1.0) for shape in ((20, 700), (700, 33), (20, 33)))
    both_ways(monkeypatch, a, b, fmt, how, c, **options)


@SERVED
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), fma("bfloat16"), mul_add("bfloat16")], ids=repr)
def test_what_few_roundings_leave_open(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that settles nothing, and from the first tile that hangs on more random bits the one that does, in any tile.

    Sums of few bits hardly ever do; products of 48 do.
    """
    fmt, rng = how.partials, np.random.default_rng(9)
    calls: list[str] = []

    def watched(name: str, kept: Any) -> Any:
        return lambda *arguments: calls.append(name) or kept(*arguments)

    for floor, name in ((ways.few(), "few_drawn"), (ways.drawn_tiles(), "stochastic")):
        monkeypatch.setattr(floor, name, watched(name, getattr(floor, name)))
    for seed in range(4):
        a, b, c = (drawn(rng, fmt, shape, 1.0) for shape in ((8, 32), (32, 16), (8, 16)))
        both_ways(monkeypatch, a, b, fmt, how, c, rounding="stochastic", seed=seed)
    assert "few_drawn" in calls
    monkeypatch.setattr(ways, "FEW_ROUNDINGS", 1 << 40)
    for length in (70, 300):
        a, b = (encoded(rng.standard_normal(shape), "float32") for shape in ((45, length), (length, 50)))
        calls.clear()
        bits.matmul(a, b, "float32", how, rounding="stochastic", seed=length)
        assert calls[0] == "few_drawn"
        assert set(calls[1:]) == {"stochastic"}
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


def test_counts_of_drawn_sums_that_become_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a format has no infinities, what overflowed is NaN, and counts as one that did."""
    fmt = Format.from_name("float8_e4m3fn")
    a = drawn(np.random.default_rng(2), fmt, (24, 40), 60.0)
    counts = counted_both_ways(monkeypatch, a, a.T, fmt, fma(fmt), **STOCHASTIC)
    assert counts.overflowed.max() == 1


@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
@pytest.mark.parametrize("name", ["bfloat16", "float32"])
@pytest.mark.parametrize("function", [bits.matmul, bits.vecdot])
def test_counted_sums_that_overflow_float32(
    how: Accumulator, name: str, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of either sign, half of the rows; after an overflow nothing is inexact any more."""
    fmt, rng = Format.from_name(name), np.random.default_rng(4)
    a, b = (rng.uniform(1, 1.9, (24, 60)) * 2.0**62 for _ in range(2))
    a *= rng.choice([-1.0, 1.0], (24, 1))
    a[:, ::7] = 0.0
    a[5:, 30:] = a[:19, 30:] * -1.0
    a[12:] *= 2.0**-20
    a, b = (bits.encode(x, fmt)[0] for x in (a, b))
    c = bits.encode(rng.uniform(-1, 1, 24) * 2.0**127.9, "float32")[0]
    if function is bits.matmul:
        b, c = b.T.copy(), np.broadcast_to(c, (24, 24))
    counts = counted_both_ways(monkeypatch, a, b, fmt, how, c, function=function)
    assert set(np.unique(counts.overflowed)) == {0, 1}
    assert np.isinf(counts.largest).any()
    assert np.isinf(counts.smallest).any()


@pytest.mark.parametrize("how", [fma("float16"), mul_add("bfloat16"), mul_add("float8_e5m2")], ids=repr)
@pytest.mark.parametrize("rounding", ["nearest_even", "to_odd", "stochastic"])
def test_counts_of_sums_whose_overflows_are_nan(
    how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of the upper rows overflow, some of them late; NaN is neither the least nor the greatest."""
    fmt, rng = how.partials, np.random.default_rng(6)
    x = rng.uniform(0.5, 1.0, (2, 40, 36)) * np.sqrt(fmt.max / 3)
    x[:, 20:] *= 2.0**-4
    x[0] *= rng.choice([-1.0, 1.0], (40, 1))
    a, b = (bits.encode(part, fmt)[0] for part in x)
    rule: dict[str, Any] = {"rounding": rounding, "overflow": "nan", "sr_bits": 20, "seed": 3}
    for function, other in ((bits.matmul, b.T.copy()), (bits.vecdot, b)):
        counts = counted_both_ways(monkeypatch, a, other, fmt, how, function=function, **rule)
        assert set(np.unique(counts.overflowed)) == {0, 1}
        assert np.isfinite(counts.largest).all()
        assert np.isfinite(counts.smallest).all()


@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
@pytest.mark.parametrize("width", [5, 16, 24])
def test_counts_of_float32_sums_that_draw(how: Accumulator, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of operands of float32 and of half; small integers make exact sums, and sums that hang on few random bits."""
    rng = np.random.default_rng(width)
    for name in ("float32", "float16"):
        fmt = Format.from_name(name)
        a, b = (drawn(rng, fmt, (26, 50), 1.0) for _ in range(2))
        a[:9], b[:9] = (bits.encode(rng.integers(-3, 4, (9, 50)), fmt)[0] for _ in range(2))
        c = bits.encode(rng.integers(-4, 5, 26) * 2.0**22, "float32")[0]
        rule: dict[str, Any] = STOCHASTIC | {"sr_bits": width}
        counted_both_ways(monkeypatch, a, b.T.copy(), fmt, how, np.broadcast_to(c, (26, 26)), **rule)
        counted_both_ways(monkeypatch, a, b, fmt, how, c, function=bits.vecdot, **rule)


@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
def test_float32_operands_that_read_as_zero(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either sign, beside numbers that do not, and alone; in products and in sums of rows."""
    a, b = drawn(np.random.default_rng(7), Format.from_name("float32"), (40, 30), 1.0), np.full((30, 20), 0x3F800000)
    a[::2, 3], a[5], a[6, :15], a[7] = 0x807FFFFF, 0x00000001, 0x80000000, 0x80000001
    for operand in (a, np.ascontiguousarray(a[:, :3])):
        k = operand.shape[1]
        both_ways(monkeypatch, operand, b[:k].astype(np.uint32), "float32", how, daz=True, rounding="toward_negative")
        found = []
        for fast in (True, False):
            monkeypatch.setattr(elementwise, "FAST", fast)
            sums = bits.sum(operand, "float32", how, 1, daz=True, rounding="toward_negative")
            found.append((*sums, *bits.vecdot(operand, operand[::-1].copy(), "float32", how, daz=True)))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
        assert sums[0][5] == 0
        assert sums[0][7] == 0x80000000


@SERVED
@pytest.mark.parametrize("how", [fma("float16"), mul_add("bfloat16"), fma("float32")], ids=repr)
@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
def test_counted_draws_are_served(how: Accumulator, overflow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By tiles."""
    calls = []
    kept = ways.counted_draws().counted
    monkeypatch.setattr(ways.counted_draws(), "counted", lambda *arguments: calls.append(1) or kept(*arguments))
    a = drawn(np.random.default_rng(5), how.partials, (16, 16), 1.0)
    bits.matmul(a, a, how.partials, how, count=True, overflow=overflow, **STOCHASTIC)
    assert calls


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "stochastic"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float32"])
def test_counted_sums_that_only_a_product_makes_inexact(
    name: str, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fmt = Format.from_name(name)
    odd, one = (bits.encode(x, fmt)[0] for x in (1 + fmt.eps, 1.0))
    a, b = np.full((16, 3), one, fmt.dtype), np.zeros((3, 32), fmt.dtype)
    a[:, 1], b[1] = odd, odd
    found = bits.matmul(a, b, fmt, mul_add(name), count=True, rounding=rounding, seed=1)
    counts = counted_both_ways(monkeypatch, a, b, fmt, mul_add(name), rounding=rounding, seed=1)
    assert not counts.inexact.any()
    assert (found[1] == 1).all()


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", [case for case in CASES if not case[0].reduction], ids=label)
def test_same_counts_of_outputs_in_a_line(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator, fmt, options, rng = resolved(case)
    for outputs, length, scale in ((150, 70, 1.0), (33, 3, 2.0**-13), (1, 200, 30.0), (4, 1, 2.0**-7), (2, 0, 1.0)):
        a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
        c = drawn(rng, accumulator.partials, (outputs,), scale)
        counted_both_ways(monkeypatch, a, b, fmt, accumulator, c, function=bits.vecdot, **options)
        counted_both_ways(monkeypatch, a, b[0], fmt, accumulator, **options)
    counted_both_ways(monkeypatch, a[:0], b[:0], fmt, accumulator, function=bits.vecdot, **options)
    matrix, vector = drawn(rng, fmt, (140, 70), 8.0), drawn(rng, fmt, (140,), 8.0)
    counted_both_ways(monkeypatch, vector, matrix, fmt, accumulator, **options)
    few = bits.encode(np.array([0.0, -0.0, 1.0, -1.0, 1.5, fmt.max, -fmt.max, fmt.tiny, fmt.smallest_subnormal]), fmt)[
        0
    ]
    a, b = rng.choice(few, (90, 40)), rng.choice(few, (90, 40))
    counted_both_ways(monkeypatch, a, b, fmt, accumulator, function=bits.vecdot, **options)


@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), amp("half"), tensor_core("H100")], ids=repr)
def test_special_operands_anywhere_in_a_counted_line(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces with a NaN or an infinity go the plain way, the others do not."""
    rng, fmt = np.random.default_rng(5), Format.from_name("float16")
    a, b = (drawn(rng, fmt, (70, 32), 1.0) for _ in range(2))
    monkeypatch.setattr(lines, "PIECE", 1 << 8)
    for special in bits.encode(np.array([np.inf, -np.inf, np.nan]), fmt)[0]:
        for output, k in ((0, 0), (69, 31), (31, 17), (32, 16), (64, 5)):
            for operand in (a, b):
                before = operand[output, k]
                operand[output, k] = special
                for options in ({}, STOCHASTIC):
                    counted_both_ways(monkeypatch, a, b, fmt, how, function=bits.vecdot, **options)
                operand[output, k] = before


@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add("bfloat16"), mul_add("float32"), amp("half"), tensor_core("H100")], ids=repr
)
def test_counts_of_long_lines_by_any_number_of_threads(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """More additions than words count; nearly all inexact, or swamped; operands wherever they lie."""
    name = "bfloat16" if how.partials.name == "bfloat16" else "float16"
    fmt, rng = Format.from_name(name), np.random.default_rng(6)
    noise = rng.standard_normal((2, 70, 2600)) * 2.0 ** rng.integers(-9, 1, (2, 1, 2600))
    a, b = (bits.encode(x, fmt)[0] for x in (noise[0] + 1, noise[1]))
    before = get_num_threads()
    try:
        for count in (1, 2):
            set_num_threads(count)
            for options in ({}, STOCHASTIC):
                x, y = a[:, ::2], b[::-1, 1300:]
                found = counted_both_ways(monkeypatch, x, y, fmt, how, function=bits.vecdot, **options)
                assert found.inexact.max() > (1023 if options else 1100) or how.block > 1  # what a word holds, or more
    finally:
        set_num_threads(before)


@SERVED
@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add(E5M6), fma("float32"), amp("half"), amp("float"), tensor_core("H100")], ids=repr
)
def test_counted_lines_are_served(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", None)
    fmt = how.partials if how.block == 1 else Format.from_name("float16")
    a = drawn(np.random.default_rng(1), fmt, (32, 32), 1.0)
    bits.vecdot(a, a, fmt, how, count=True)
    bits.matmul(a, a[0], fmt, how, count=True)
    bits.matmul(a[0], a, fmt, how, count=True)
