"""The faster loops over tiles against the plain one: the same codes and flags, whatever the operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from covering import Case, label, resolved
from softfloat.kernels.spec import NAN_POLICIES
from tiling_cases import CASES, DIRECTED, SERVED, STOCHASTIC, both_ways, encoded
from unit_cases import drawn

from softfloat import Environment, Format, bits, engine
from softfloat.accumulators import (
    Accumulator,
    amp,
    chunked,
    fma,
    mul_add,
    tensor_core,
    vdpbf16ps,
)
from softfloat.engine import program, unit_ways


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
def test_every_case_is_served(case: Case) -> None:
    """A case that silently went the plain way would test nothing."""
    accumulator, fmt, options, _ = resolved(case)
    settings = {key: value for key, value in options.items() if key not in ("environment", "out_format")}
    environment = options.get("environment", Environment(**settings))
    output = Format.from_name(options["out_format"]) if "out_format" in options else accumulator.output(fmt, fmt)
    if accumulator.reduction:
        accumulator = accumulator.replace(segment=None, segments=None, reduction=())
        output = accumulator.partials
    planned = program(accumulator, fmt, fmt, output, environment.settings, 64)
    assert engine.choose(planned) is not None or unit_ways.choose(planned) is not None


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


@pytest.mark.sampled(2)
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
        saturating = Environment(overflow="saturate")
        both_ways(monkeypatch, a.astype(np.uint16), b, "float16", accumulator, environment=saturating)
