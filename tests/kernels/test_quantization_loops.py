"""The compiled loops of blocks against the plain way, element by element, and what they leave to it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from faster import both

import softfloat
from softfloat import BLOCK_ROSTER, BlockFormat, Environment, Fixed, bits
from softfloat.blocks import SCALE_RULES, check_rule
from softfloat.engine import quantization

FORMATS = {
    name: BLOCK_ROSTER[name] for name in ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4_e2m1", "nvfp4")
} | {
    "odd": BlockFormat("odd", element="float8_e3m4", scale="float8_e5m2", block=64),
    "single": BlockFormat("single", element="float8_e4m3fn", scale="float32", block=16),
    "ieee": BlockFormat("ieee", element="float8_e4m3", scale="float8_e8m0fnu", block=16),
}
CASES = [
    (name, rule)
    for name, fmt in FORMATS.items()
    for rule, row in SCALE_RULES.items()
    if (row.kind == "power of two") == fmt.power_of_two_scale and (name != "single" or rule == "amax")
]


def numbers(length: int, seed: int) -> np.ndarray:
    """Blocks of every kind: ordinary ones, all exponents, borders of rounding, zeros, and special numbers among others."""
    random = np.random.default_rng(seed)
    shape = 160, length
    normal = random.normal(0, 1, shape) * 2.0 ** random.integers(-30, 30, (160, 1))
    wide = random.integers(0, 0x7F800000, shape, dtype=np.uint32).view(np.float32)
    narrow = np.ldexp(random.integers(0, 64, shape) / 8.0, random.integers(-140, 120, (160, 1)))
    near = np.nextafter(narrow.astype(np.float32), np.float32(1))
    fading = normal * 2.0 ** random.integers(-60, 1, shape)
    special = normal.astype(np.float32)
    special[::7, 3] = random.choice(np.array([np.nan, np.inf, -np.inf], np.float32), special[::7].shape[0])
    special[3] = 0
    special[4] = -0.0
    special[5, 2:] = 0
    special[9, 1:] = np.array([0x7F800001], np.uint32).view(np.float32)
    whole = np.concatenate([x.astype(np.float32) for x in (normal, wide, narrow, near, fading, special)])
    signs = random.integers(0, 2, whole.shape, dtype=np.uint32) << np.uint32(31)
    return (whole.view(np.uint32) ^ signs).view(np.float32)


def assert_same(pair: tuple[Any, Any]) -> None:
    (quick, flags, counts), (plain, plain_flags, plain_counts) = pair
    np.testing.assert_array_equal(quick.scales, plain.scales)
    np.testing.assert_array_equal(quick.elements, plain.elements)
    np.testing.assert_array_equal(flags, plain_flags)
    for name in ("saturated", "underflowed", "zeroed"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(plain_counts, name))
    assert quick.tensor_scale == plain.tensor_scale


def is_served(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts of blocks that loops left, one for each call that they served."""
    left: list[int] = []
    inner = quantization.quantized

    def watched(*arguments: Any) -> quantization.Quantized:
        made = inner(*arguments)
        left.append(int(made.left.sum()))
        return made

    monkeypatch.setattr(softfloat.engine, "quantized", watched)
    return left


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_the_plain_way(monkeypatch: pytest.MonkeyPatch, name: str, rule: str) -> None:
    fmt = FORMATS[name]
    x = numbers(fmt.elements, list(FORMATS).index(name))
    left = is_served(monkeypatch)
    given: list[dict[str, Any]] = [{}, {"overflow": "infinity", "nans": "element", "infinities": "element"}]
    given += [{"tininess": "before", "zero_block": "one", "infinities": "saturate"}, {"zero_block": "nan"}]
    if check_rule(rule, fmt).kind != "two levels":
        given.append({"minimum": 0.5})
    elif fmt.tensor_scale is not None:
        given += [{"tensor_amax": 3.0}, {"tensor_scale": 2.0**-20}, {"tensor_scale": 2.0**60}]
    for options in given:
        if options.get("nans") == "element":
            x = np.where(np.isnan(x), np.float32(1), x)
        assert_same(both(monkeypatch, lambda x=x, options=options: bits.quantize(x, fmt, rule, count=True, **options)))
        seen = both(monkeypatch, lambda x=x, options=options: bits.quantize(x, fmt, rule, flags="any", **options)[1])
        assert seen[0] == seen[1]
    if not softfloat.kernels.jit.DISABLED:
        assert len(left) == 2 * len(given)
        assert 0 < min(left) < 0.6 * x.shape[0]


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "nvfp4"])
def test_axes_tiles_and_short_blocks(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    x = numbers(24, 5)[:600:2]
    x = np.where(np.isfinite(x), x, np.float32(0))
    cases: list[dict[str, Any]] = [{"axis": 0}, {"axis": 1}, {"block": (16, 16)}, {"block": 128, "axis": 0}]
    for options in cases:
        assert_same(both(monkeypatch, lambda options=options: bits.quantize(x, name, count=True, **options)))


ROUNDINGS: list[dict[str, Any]] = [
    {"rounding": "toward_positive"},
    {"rounding": "to_odd"},
    {"rounding": "stochastic", "seed": 3},
    {"rounding": "stochastic", "seed": 3, "stream": 5, "sr_bits": 8},
    {"rounding": "stochastic", "seed": 3, "sr_bits": 8, "sr_method": "nearest"},
    {"ftz": True},
]


@pytest.mark.parametrize("options", ROUNDINGS, ids=lambda x: " ".join(map(str, x.values())))
@pytest.mark.parametrize("name", ["mxfp8_e5m2", "mxfp4_e2m1", "nvfp4", "mxint8", "msfp13"])
def test_other_roundings(monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any]) -> None:
    """Numbers that a loop scales, and rounds nothing; an array with unusual blocks goes the plain way, random numbers and all."""
    if "ftz" in options and name in ("mxint8", "msfp13"):
        pytest.skip("fixed point has no subnormal numbers to flush")
    left = is_served(monkeypatch)
    random = np.random.default_rng(7)
    ordinary = (
        random.normal(0, 1, (64, 128)) * 2.0 ** random.integers(-30, 30, (64, 1)) * (random.random((64, 128)) < 0.8)
    )
    for x in (ordinary.astype(np.float32), np.where(np.isnan(numbers(64, 8)), np.float32(1), numbers(64, 8))):
        for axis in (0, 1):
            assert_same(both(monkeypatch, partial(bits.quantize, x, name, axis=axis, count=True, **options)))
    if not softfloat.kernels.jit.DISABLED:
        assert left[0] == 0
        assert (left[1] > 0) == (name == "nvfp4")  # whose scales are 0 where the tensor has far larger numbers
        assert min(left[2:]) > 0


@pytest.mark.parametrize("name", ["mxint8", "msfp12", "msfp16"])
def test_fixed_point(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    fmt = BLOCK_ROSTER[name]
    left = is_served(monkeypatch)
    x = numbers(fmt.elements, 2)
    for rule in ("floor", "rceil", "smallest", "nearest_log2"):
        assert_same(both(monkeypatch, lambda rule=rule: bits.quantize(x, fmt, rule, count=True)))
        seen = both(monkeypatch, lambda rule=rule: bits.quantize(x, fmt, rule, flags="any")[1])
        assert seen[0] == seen[1]
    if not softfloat.kernels.jit.DISABLED:
        assert 0 < min(left) < 0.6 * x.shape[0]


@pytest.mark.parametrize("kind", ["mae", "mse"])
@pytest.mark.parametrize("block", [16, (16, 16)])
def test_four_over_six(monkeypatch: pytest.MonkeyPatch, kind: str, block: Any) -> None:
    """Both candidates and the choice; ties, which go to 6, among them."""
    random = np.random.default_rng(9)
    normal = random.normal(0, 1, (64, 64)) * 2.0 ** random.integers(-20, 20, (64, 1))
    ordinary = np.concatenate([normal, np.zeros((16, 64)), random.integers(-12, 13, (48, 64)) / 2, -normal]).astype(
        np.float32
    )
    for x in (ordinary, np.where(np.isfinite(numbers(64, 4)), numbers(64, 4), np.float32(2))):
        for given in ({}, {"tensor_amax": 3.0}, {"zero_block": "one"}):
            options = {"block": block, "four_over_six": kind, **given}
            assert_same(both(monkeypatch, partial(bits.quantize, x, "nvfp4", count=True, **options)))
            for part in (x, x[:16] / 4):  # of which no block raises anything, or some do
                together = both(monkeypatch, partial(bits.quantize, part, "nvfp4", flags="any", **options))
                np.testing.assert_array_equal(together[0][0].elements, together[1][0].elements)
                assert together[0][1] == together[1][1]


@pytest.mark.parametrize("fmt", [BLOCK_ROSTER["nvfp4"], BLOCK_ROSTER["mxfp8_e4m3"], BLOCK_ROSTER["mxint8"]], ids=str)
@pytest.mark.parametrize(
    "options", [{"rounding": "toward_positive"}, {"rounding": "stochastic", "seed": 1, "sr_bits": 8}, {}]
)
def test_numbers_far_below_their_block(monkeypatch: pytest.MonkeyPatch, fmt: BlockFormat, options: Any) -> None:
    """Scaled, they are zero in float32, or none of its numbers; each alone among zeros and beside ordinary ones."""
    x = np.zeros((8, 32), np.float32)
    x[:, ::16] = np.float32(1e30)
    for row, small in enumerate((1e-30, 1e-45, 3e-20, 1.1e-8, -1e-30, 1e-37, 1e-12)):
        x[row, 5] = np.float32(small)
    x[7] = 1.0
    for row in (*x[:, None], x):
        assert_same(both(monkeypatch, partial(bits.quantize, row, fmt, count=True, **options)))
        seen = both(monkeypatch, partial(bits.quantize, row, fmt, flags="any", **options))
        assert seen[0][1] == seen[1][1]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["mxfp4_e2m1", "mxfp8_e5m2", "nvfp4"])
def test_special_elements_under_other_roundings(monkeypatch: pytest.MonkeyPatch, name: str, special: float) -> None:
    """What a NaN or an infinity becomes has options of its own, which scaled numbers know nothing of."""
    x = np.random.default_rng(4).normal(size=(6, 32)).astype(np.float32)
    x[2, 7] = special
    given = (
        {"nans": "element", "infinities": "element", "tensor_amax": 4.0}
        if name == "nvfp4"
        else {"nans": "element", "infinities": "element"}
    )
    for options in ({"nan_to": "zero"}, {"infinite_input": "keep"}, {"infinite_input": "nan"}):
        for rounding in ({"rounding": "stochastic", "seed": 2}, {"rounding": "to_odd"}, {}):
            assert_same(both(monkeypatch, partial(bits.quantize, x, name, count=True, **given, **options, **rounding)))


def test_fixed_point_that_reaches_further_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """-2^n is an element, and 2^n is none: no sign and magnitude."""
    fmt = BlockFormat("down", element=Fixed("int4", bits=4, fraction_bits=2), scale="float8_e8m0fnu", block=16)
    assert fmt.element.least < -fmt.element.max
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(4, 16)
    pair = both(monkeypatch, partial(bits.quantize, x, fmt, count=True))
    assert_same(pair)
    assert (pair[0][0].elements == 8).any()  # the least


@pytest.mark.parametrize(("fmt", "serves"), [("float4_e2m1fn", True), ("float8_e4m3fn", False), ("float8_e5m2", False)])
@pytest.mark.parametrize("overflow", ["saturate", "infinity"])
def test_four_over_six_of_other_elements(
    monkeypatch: pytest.MonkeyPatch, fmt: str, serves: bool, overflow: str
) -> None:
    """Codes that stand for no number have no error that adds up: they go the plain way."""
    element = BlockFormat("any", element=fmt, scale="float8_e4m3fn", block=16, tensor_scale="float32")
    x = np.random.default_rng(3).normal(size=(9, 64)).astype(np.float32)
    given = {"four_over_six": "mse", "tensor_amax": 1.0, "overflow": overflow}
    assert quantization.serves_elements(element.element, Environment(overflow=overflow).settings, True) == serves
    assert_same(both(monkeypatch, partial(bits.quantize, x, element, count=True, **given)))


def test_rows_of_tiles_are_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles lie in rows of the array; blocks of several rows are found where they are."""
    x = np.random.default_rng(2).normal(0, 1, (3, 64, 96)).astype(np.float32)
    x[1, 40, 3] = np.nan
    for block in ((16, 16), (4, 32), (64, 32), (2, 3, 16), (48, 16)):
        call = partial(bits.quantize, x, "nvfp4", block=block, count=True, tensor_amax=4.0)
        assert_same(both(monkeypatch, call))


def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.concatenate([numbers(32, 6)] * 8)
    found = []
    before = softfloat.get_num_threads()
    try:
        for threads in (1, 3):
            softfloat.set_num_threads(threads)
            found.append(bits.quantize(x, "mxfp4", "rceil", count=True))
    finally:
        softfloat.set_num_threads(before)
    assert_same((found[0], found[1]))


def test_signalling_nans_are_told() -> None:
    x = np.ones((2, 32), np.float32)
    x[1, 5] = np.array([0x7F800001], np.uint32).view(np.float32)[0]
    flags = bits.quantize(x, "mxfp8_e4m3", nans="element")[1]
    assert np.flatnonzero(flags).tolist() == [37]
    assert bits.quantize(x, "mxfp8_e4m3", nans="element", flags="any")[1] == 16
    transposed = bits.quantize(np.ascontiguousarray(x.T), "mxfp8_e4m3", nans="element", axis=0)[1]
    np.testing.assert_array_equal(transposed.T, flags)
