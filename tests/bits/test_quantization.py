"""Quantising to blocks and back: against the oracle on fractions, by laws, and by what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import BLOCK_ROSTER, BlockFormat, Fixed, bits, reference
from softfloat.bits import BlockCodes
from softfloat.bits.blocks import quantization
from softfloat.blocks import SCALE_RULES, check_rule
from softfloat.blocks.rules import POWER_OF_TWO, TWO_LEVELS

ROUNDINGS = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")
E8M0_RULES = [rule.name for rule in SCALE_RULES.values() if rule.kind == POWER_OF_TWO]
DEEPSEEK = BlockFormat("deepseek", element="float8_e4m3fn", scale="float32", block=8)
OTHERS = (
    BlockFormat("coarse", element="float6_e3m2fn", scale="bfloat16", block=8),
    BlockFormat(
        "fourths",
        element=Fixed("int5", bits=5, fraction_bits=2),
        scale="float8_e4m3fn",
        block=8,
        tensor_scale="float32",
    ),
    BlockFormat("short", element="float8_e3m4", scale="float8_e8m0fnu", block=5),
    BlockFormat("below", element=Fixed("int4", bits=4, fraction_bits=11), scale="float8_e8m0fnu", block=8),
)
FORMATS = (*BLOCK_ROSTER.values(), DEEPSEEK, *OTHERS)

KINDS = ("normal", "wide", "huge", "tiny", "subnormal", "zeros", "edges", "specials", "midpoints")


def draw_block(kind: str, length: int, element: Any, random: np.random.Generator) -> np.ndarray:
    """float32 numbers of a kind."""
    signs = np.where(random.random(length) < 0.5, -1.0, 1.0)
    if kind == "normal":
        return random.normal(0, 10.0 ** random.integers(-3, 4), length).astype(np.float32)
    if kind == "zeros":
        return (signs * 0.0).astype(np.float32)
    if kind == "midpoints":
        steps = random.integers(0, 64, length) / 16 * element.max / 4
        return (signs * steps * 2.0 ** random.integers(-9, 10)).astype(np.float32)
    if kind == "edges":
        powers = np.float32(2.0) ** random.integers(-4, 4, length).astype(np.float32)
        away = np.where(random.random(length) < 0.5, np.float32(np.inf), np.float32(0))
        return (signs * np.where(random.random(length) < 0.4, np.nextafter(powers, away), powers)).astype(np.float32)
    low, high = {"wide": (-149, 128), "huge": (120, 128), "tiny": (-149, -115), "subnormal": (-149, -127)}.get(
        kind, (-9, 9)
    )
    found = np.ldexp(1 + random.random(length), random.integers(low, high, length)) * signs
    found = np.clip(found, -softfloat.float32.max, softfloat.float32.max).astype(np.float32)
    if kind == "specials":
        found[random.integers(length)] = random.choice([np.nan, np.inf, -np.inf])
        found[random.integers(length)] = random.choice([np.nan, np.inf, 0.0, 1e-45])
    return found


def rules_of(fmt: BlockFormat) -> list[str]:
    def fits(name: str) -> bool:
        try:
            return bool(check_rule(name, fmt))
        except ValueError:
            return False

    return [name for name in SCALE_RULES if fits(name)]


def options_of(fmt: BlockFormat, rule: str, random: np.random.Generator) -> dict[str, Any]:
    """Named options, most of them at their defaults."""

    def one(*values: Any) -> Any:
        return values[0] if random.random() < 0.6 else random.choice(np.array(values, object))

    found = {
        "rounding": one("nearest_even", *ROUNDINGS[1:]),
        "nans": one("block", "element"),
        "infinities": one(None, "block", "saturate", "element"),
        "nan_to": one("max", "zero", "negative_zero"),
        "zero_block": one(None, "smallest", "one", "nan", "rule"),
        "subnormal_blocks": one("keep", "zero"),
        "daz": bool(one(False, True)),
    }
    if not isinstance(fmt.element, Fixed):
        found |= {"overflow": one("saturate", "infinity"), "ftz": bool(one(False, True))}
        found["infinite_input"] = one("default", "keep", "saturate")
    if SCALE_RULES[rule].kind != TWO_LEVELS and random.random() < 0.2:
        found["minimum"] = float(np.float32(10.0 ** random.integers(-6, 3)))
    return found


def assert_as_the_oracle(x: np.ndarray, fmt: BlockFormat, rule: str, options: dict[str, Any], **oracle: Any) -> None:
    blocks, flags = bits.quantize(x, fmt, rule, **options)
    for name in ("block", "tensor_amax", "tensor_scale"):
        options.pop(name, None)
    for i, row in enumerate(x):
        found = reference.quantize_block(row.tolist(), fmt, rule, **options, **oracle)
        assert blocks.scales[i, 0] == found.scale, (row, options)
        assert blocks.elements[i].tolist() == found.codes, (row, found.scale, options)
        assert flags[i].tolist() == found.flags, (row, found.scale, options)
        values = reference.dequantize_block(found.codes, found.scale, fmt, oracle.get("tensor_scale"))
        if "tensor_amax" not in oracle:
            np.testing.assert_array_equal(bits.dequantize(blocks)[i], [float(v) for v in values])


@pytest.mark.parametrize(
    ("fmt", "rule"), [(fmt, rule) for fmt in FORMATS for rule in rules_of(fmt)], ids=lambda x: str(x)
)
def test_the_oracle(fmt: BlockFormat, rule: str) -> None:
    """Every rule of every format, with its options, on blocks of all kinds."""
    random = np.random.default_rng([FORMATS.index(fmt), list(SCALE_RULES).index(rule)])
    length = min(fmt.elements, 8)
    for kind in KINDS:
        options, oracle = options_of(fmt, rule, random), {}
        x = np.stack([draw_block(kind, length, fmt.element, random) for _ in range(2)])
        if fmt.tensor_scale is not None and SCALE_RULES[rule].kind == TWO_LEVELS:
            name = random.choice(["amax", "scale", "none"])
            if name == "amax":
                options["tensor_amax"] = oracle["tensor_amax"] = float(
                    np.float32(
                        random.choice([0.0, 3.5, 1e30, 1e-40, float(np.nanmax(np.abs(x[np.isfinite(x)]), initial=0))])
                    )
                )
            else:
                value = float(np.float32(10.0 ** random.integers(-40, 38))) if name == "scale" else None
                options["tensor_scale"] = oracle["tensor_scale"] = value
        assert_as_the_oracle(x, fmt, rule, options, **oracle)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("mxfp8_e4m3", rule) for rule in E8M0_RULES]
    + [("mxfp4_e2m1", rule) for rule in E8M0_RULES]
    + [("nvfp4", "te"), ("nvfp4", "torchao"), ("nvfp4", "amax")],
)
def test_scales_of_neighbours(name: str, rule: str) -> None:
    """Where rules change their minds: float32 numbers around the largest element, its root of two, and powers of two; and any other."""
    fmt = BLOCK_ROSTER[name]
    random = np.random.default_rng(4)
    points = [fmt.element.max, fmt.element.max * math.sqrt(2), 1.0, 2.0 - 2.0**-20, 1.75, 1.25 * fmt.element.max]
    points.append((fmt.element.max + 2.0 ** (fmt.element.emax + 1)) / 2)
    codes = np.concatenate([np.arange(-24, 25) + int(np.float32(point).view(np.uint32)) for point in points])
    x = np.concatenate([codes.astype(np.uint32).view(np.float32), random.lognormal(0, 3, 106).astype(np.float32)])
    tensors: list[dict[str, Any]] = [{"tensor_amax": float(np.float32(amax))} for amax in (37.7, 1e6)]
    for chosen in tensors if rule in ("te", "torchao") else [{}]:
        blocks, flags = bits.quantize(x[:, None], fmt, rule, **chosen)
        for i, v in enumerate(x.tolist()):
            found = reference.quantize_block([v], fmt, rule, **chosen)
            row = blocks.scales[i, 0], blocks.elements[i, 0], flags[i, 0]
            assert row == (found.scale, found.codes[0], found.flags[0])


@pytest.mark.parametrize("kind", ["mae", "mse"])
@pytest.mark.parametrize("shape", [(1, 16), (16, 16)])
def test_four_over_six_is_the_oracles(kind: str, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(3)
    for draw in ("normal", "midpoints", "wide", "specials"):
        x = np.stack([draw_block(draw, 32, softfloat.float4_e2m1fn, random) for _ in range(16)])
        amax = float(np.abs(x[np.isfinite(x)]).max())
        blocks, flags = bits.quantize(x, "nvfp4", four_over_six=kind, block=shape, tensor_amax=amax, infinities="block")
        for (i, j), scale in np.ndenumerate(blocks.scales):
            if shape[0] == 1 and i % 4:
                continue
            part = (slice(i * shape[0], (i + 1) * shape[0]), slice(16 * j, 16 * j + 16))
            found = reference.quantize_block(
                x[part].ravel().tolist(), "nvfp4", "te", tensor_amax=amax, four_over_six=kind, infinities="block"
            )
            assert found.scale == scale
            assert found.codes == blocks.elements[part].ravel().tolist()
            assert found.flags == flags[part].ravel().tolist()


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "mxfp6_e3m2", "mxfp4", "mxint8"])
def test_maxima_that_round_to_infinity(fmt: str) -> None:
    """The least magnitude that `even` rounds up to 2^128, and its neighbours."""
    mantissa = BlockFormat.from_name(fmt).element.mantissa_bits
    least = 0x7F800000 - (1 << (22 - mantissa))
    x = np.zeros((3, 32), np.float32)
    x[:, 7] = np.arange(least - 1, least + 2, dtype=np.uint32).view(np.float32)
    assert_as_the_oracle(x, BlockFormat.from_name(fmt), "even", {})
    assert bits.quantize(x, fmt, "even")[0].scales[:, 0].tolist().count(255) == 2


@pytest.mark.parametrize(
    "element", [Fixed("int8", bits=8, fraction_bits=6, symmetric=True), "float4_e2m1fn", "float8_e5m2"]
)
def test_tensor_scales_far_too_small(element: Any) -> None:
    """Everything saturates, however large the numbers are that elements are rounded from."""
    fmt = BlockFormat("far", element=element, scale="float8_e4m3fn", block=16, tensor_scale="float32")
    x = np.ldexp(
        np.float32(1) + np.arange(64, dtype=np.float32).reshape(4, 16) / 64, np.array([[-40], [0], [9], [100]])
    )
    for power in (-40, -70, -90, -99, -120):
        options = {"tensor_scale": 2.0**power}
        assert_as_the_oracle(x.astype(np.float32), fmt, "te", options, tensor_scale=2.0**power)


@pytest.mark.parametrize("recipe", ["te", "torchao"])
def test_every_row_of_a_square_counts(recipe: str) -> None:
    """The largest magnitude in any row of 16 x 16 makes the scale, whatever the tensor."""
    random = np.random.default_rng(2)
    for amax in random.uniform(7, 9, 16).astype(np.float32).tolist():
        x = random.uniform(-1, 1, (16, 16)).astype(np.float32)
        x[random.integers(16), random.integers(16)] = random.uniform(2, 7)
        blocks, _ = bits.quantize(x, "nvfp4", recipe, block=(16, 16), tensor_amax=amax)
        found = reference.quantize_block(x.ravel().tolist(), "nvfp4", recipe, tensor_amax=amax)
        assert (blocks.scales.item(), blocks.elements.ravel().tolist()) == (found.scale, found.codes)


@pytest.mark.parametrize("zero_block", ["smallest", "one", "nan", "rule"])
def test_four_over_six_of_zeros(zero_block: str) -> None:
    """Blocks of zeros have the scale that their option says, whichever candidate they are."""
    x = np.zeros((2, 32), np.float32)
    x[0, :16], x[1, 20] = 3.0, -0.0
    more: dict[str, Any] = {"tensor_amax": 3.0, "four_over_six": "mse", "zero_block": zero_block}
    blocks, flags = bits.quantize(x, "nvfp4", **more)
    for i, j in np.ndindex(2, 2):
        part = np.s_[i, 16 * j : 16 * j + 16]
        found = reference.quantize_block(x[part].tolist(), "nvfp4", "te", **more)
        assert (blocks.scales[i, j], blocks.elements[part].tolist(), flags[part].tolist()) == (
            found.scale,
            found.codes,
            found.flags,
        )


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "mxfp4_e2m1", "nvfp4", "mxint8", "msfp13"])
def test_stochastic_rounding_is_addressed_by_place(fmt: str) -> None:
    """Blocks along any axis take the random bits of their elements' places, seeded or handed in."""
    random = np.random.default_rng(5)
    x = random.normal(0, 1, (32, 32)).astype(np.float32)
    drawn = bits.random_bits(x.shape, seed=9, stream=2, sr_bits=8)
    for axis in (0, 1):
        blocks, flags = bits.quantize(x, fmt, axis=axis, rounding="stochastic", seed=9, stream=2, sr_bits=8)
        handed, again = bits.quantize(x, fmt, axis=axis, rounding="stochastic", random_bits=drawn, sr_bits=8)
        np.testing.assert_array_equal(blocks.elements, handed.elements)
        np.testing.assert_array_equal(flags, again)
        line = x[:, 3] if axis == 0 else x[3]
        places = drawn[:, 3] if axis == 0 else drawn[3]
        size = blocks.format.block
        given: dict[str, Any] = {"tensor_amax": float(np.abs(x).max())} if fmt == "nvfp4" else {}
        found = reference.quantize_block(
            line[:size].tolist(), fmt, rounding="stochastic", sr_bits=8, random_bits=places[:size].tolist(), **given
        )
        line_codes = blocks.elements[:, 3] if axis == 0 else blocks.elements[3]
        assert found.codes == line_codes[:size].tolist()


def test_eight_random_bits_of_e2m1() -> None:
    """Every number of 8 random bits on a grid of 64 points to a step: as many go up as the fraction says."""
    grid = np.arange(0, 6 + 1 / 128, 1 / 128, dtype=np.float32)
    lower = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    below = lower[np.searchsorted(lower, grid, side="right") - 1]
    above = lower[np.minimum(np.searchsorted(lower, grid, side="right"), 7)]
    fraction = np.where(above > below, (grid - below) / np.where(above > below, above - below, 1), 0)
    anchor = np.full(grid.size, 6, np.float32)  # its block's scale is 1
    x = np.stack([anchor, grid], axis=1)
    fmt = BlockFormat("pair", element="float4_e2m1fn", scale="float8_e8m0fnu", block=2)
    for r in range(256):
        random = np.full(x.shape, r, np.uint8)
        blocks, _ = bits.quantize(x, fmt, rounding="stochastic", random_bits=random, flags="any")
        expected = np.where(np.floor(fraction * 256) + r >= 256, above, below)
        np.testing.assert_array_equal(bits.dequantize(blocks)[:, 1], expected)


# -- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", ["mxfp6_e3m2", "nvfp4", "mxint8"])
def test_blocks_along_any_axis(fmt: str) -> None:
    x = np.random.default_rng(6).normal(0, 1, (40, 3, 50)).astype(np.float32)
    amax = {"tensor_amax": float(np.abs(x).max())} if fmt == "nvfp4" else {}
    for axis in (-3, 0, 1, 2):
        blocks, flags = bits.quantize(x, fmt, axis=axis)
        moved, there = bits.quantize(np.ascontiguousarray(np.moveaxis(x, axis, -1)), fmt, **amax)
        np.testing.assert_array_equal(np.moveaxis(blocks.elements, axis, -1), moved.elements)
        np.testing.assert_array_equal(np.moveaxis(blocks.scales, axis, -1), moved.scales)
        np.testing.assert_array_equal(np.moveaxis(flags, axis, -1), there)
        np.testing.assert_array_equal(np.moveaxis(bits.dequantize(blocks), axis, -1), bits.dequantize(moved))
        assert blocks.axis == axis % 3
        assert bits.quantize(x, fmt, axis=axis, flags="any")[1] == np.bitwise_or.reduce(flags, axis=None)


def test_tiles_and_short_blocks() -> None:
    x = np.random.default_rng(7).normal(0, 1, (20, 40)).astype(np.float32)
    tiles, _ = bits.quantize(x, "nvfp4", block=(16, 16))
    assert tiles.scales.shape == (2, 3)
    padded = np.pad(x, ((0, 12), (0, 8)))
    whole, _ = bits.quantize(padded, "nvfp4", block=(16, 16))
    np.testing.assert_array_equal(tiles.scales, whole.scales)
    np.testing.assert_array_equal(tiles.elements, whole.elements[:20, :40])
    deepseek = BlockFormat("weights", element="float8_e4m3fn", scale="float32", block=(8, 8))
    blocks, _ = bits.quantize(x, deepseek)
    assert blocks.scales.shape == (3, 5)
    with pytest.raises(ValueError, match="no whole number of blocks of 16x16"):
        bits.quantize(x, "nvfp4", block=(16, 16), partial="refuse")
    bits.quantize(x, "mxfp4", block=20, partial="refuse")


def test_empty_arrays() -> None:
    for shape in ((0,), (0, 32), (3, 0)):
        for fmt in ("mxfp4", "nvfp4", "mxint8"):
            blocks, flags = bits.quantize(np.zeros(shape, np.float32), fmt, flags="any")
            assert blocks.shape == shape
            assert flags == 0
            assert bits.dequantize(blocks).shape == shape


def test_types_of_numbers() -> None:
    """float16, bfloat16, integers, lists and SoftArrays are the float32 numbers that they are."""
    halves = np.random.default_rng(8).normal(0, 1, 64).astype(np.float16)
    expected, _ = bits.quantize(halves.astype(np.float32), "mxfp8_e5m2", "rceil")
    for x in (halves, halves.astype(np.float64), halves.tolist(), softfloat.asarray(halves), halves.astype(">f4")):
        np.testing.assert_array_equal(bits.quantize(x, "mxfp8_e5m2", "rceil")[0].elements, expected.elements)
    assert bits.quantize([1, 2, 2**24], "mxfp8_e4m3")[0].scales == 127 + 24 - 8
    np.testing.assert_array_equal(
        bits.quantize(np.repeat(halves, 2)[::2], "mxfp8_e5m2", "rceil")[0].elements, expected.elements
    )


# -- special numbers -------------------------------------------------------------------------------------------------


def test_a_negative_nan_keeps_its_sign_under_policies_that_hand_it_on() -> None:
    """Beside nothing but NaNs the multiplier is a NaN as well, and rounding to float32 has a NaN of its own."""
    x = np.array([0xFFC00000, 0x7FC00000], np.uint32).view(np.float32)
    fmt = BlockFormat("d", element="float16", scale="float6_e3m2fn", block=1)
    for rule in ("te", "amax"):
        blocks, _ = bits.quantize(x, fmt, rule, nans="element", nan="arm_ah")
        assert [hex(code) for code in blocks.elements.tolist()] == ["0xfe00", "0x7e00"]


def test_a_nan_makes_its_block_nan_or_one_element() -> None:
    x = np.array([1, np.nan, 0.5, -6], np.float32)
    blocks, flags = bits.quantize(x, "mxfp4")
    assert blocks.scales == 255
    assert np.isnan(bits.dequantize(blocks)).all()
    assert flags.tolist() == [16, 0, 16, 16]
    for nan_to, code in (("max", 0x7), ("zero", 0x0), ("negative_zero", 0x8)):
        blocks, flags = bits.quantize(x, "mxfp4", nans="element", nan_to=nan_to)
        assert blocks.elements.tolist() == [0x2, code, 0x1, 0xF]
        assert flags.tolist() == [0, 16, 0, 0]
    blocks, _ = bits.quantize(x, "mxfp8_e4m3", nans="element")
    assert blocks.elements[1] == 0x7F
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    assert bits.quantize(signalling, "mxfp8_e4m3")[1] == [16]
    assert bits.quantize(signalling, "mxfp8_e4m3", flags="any")[1] == 16


def test_infinities() -> None:
    x = np.array([1, np.inf, -0.5], np.float32)
    assert bits.quantize(x, "mxfp8_e5m2")[0].scales == 255
    assert bits.quantize(x, "mxfp8_e5m2", "rceil_saturate")[0].scales == 254
    kept, _ = bits.quantize(x, "mxfp8_e5m2", infinities="element", infinite_input="keep")
    np.testing.assert_array_equal(bits.dequantize(kept), x)
    clamped, flags = bits.quantize(x, "mxfp8_e5m2", infinities="element")
    np.testing.assert_array_equal(bits.dequantize(clamped)[::2], x[::2])
    assert flags.tolist() == [0, 0, 0]
    powers = softfloat.Format(
        "p6", exponent_bits=6, mantissa_bits=0, nan="none", signed=False, zero=False, subnormals=False
    )
    nameless = BlockFormat("bare", element=Fixed("i8", bits=8, fraction_bits=6), scale=powers, block=4)
    with pytest.raises(ValueError, match="x holds blocks whose scale is NaN, which p6 has none of"):
        bits.quantize(x, nameless)
    assert bits.quantize(x, nameless, infinities="saturate")[0].scales == 63


@pytest.mark.parametrize("recipe", ["te", "torchao"])
def test_tensors_with_an_infinity(recipe: str) -> None:
    """Their scale is that of the finite numbers, unless an infinity counts as the largest."""
    x = np.random.default_rng(2).normal(size=(4, 32)).astype(np.float32)
    x[1, 3] = 0
    finite = bits.quantize(x, "nvfp4", recipe=recipe)[0]
    x[1, 3] = -np.inf
    for infinities in ("block", "element"):
        found = bits.quantize(x, "nvfp4", recipe=recipe, infinities=infinities)[0]
        assert found.tensor_scale == finite.tensor_scale
        np.testing.assert_array_equal(found.elements[2:], finite.elements[2:])
    assert bits.quantize(x, "nvfp4", recipe=recipe, infinities="saturate")[0].tensor_scale == 1


def test_zeros_and_subnormal_numbers() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    for zero_block, code in ((None, 0), ("smallest", 0), ("one", 127), ("nan", 255), ("rule", 0)):
        blocks, flags = bits.quantize(zeros, "mxfp4", zero_block=zero_block)
        assert blocks.scales == code
        assert blocks.elements.tolist() == ([0, 0] if code == 255 else [0, 8])
    assert bits.quantize(zeros, "nvfp4")[0].scales == 0
    assert bits.quantize(zeros, "nvfp4", recipe="torchao")[0].scales == 0x08
    assert bits.quantize(zeros, "nvfp4")[0].tensor_scale == 1
    assert bits.quantize(zeros, DEEPSEEK, minimum=0.0, zero_block="one")[0].scales == 0x3F800000
    tiny = np.array([2.0**-127, -(2.0**-130)], np.float32)
    blocks, flags = bits.quantize(tiny, "mxfp8_e4m3")
    np.testing.assert_array_equal(bits.dequantize(blocks), tiny)
    blocks, flags = bits.quantize(tiny, "mxfp8_e4m3", subnormal_blocks="zero")
    assert blocks.elements.tolist() == [0x00, 0x80]
    assert flags.tolist() == [3, 3]
    assert bits.quantize(tiny, "mxfp8_e4m3", daz=True)[1].tolist() == [0, 0]


def test_counts() -> None:
    x = np.array([[7.9, -7.99, 0.3, 1e-9, 0, 0.1, 5, 1]], np.float32)
    fmt = BlockFormat("halves", element="float4_e2m1fn", scale="float8_e8m0fnu", block=4)
    blocks, flags, counts = bits.quantize(x, fmt, count=True)
    assert counts.saturated.tolist() == [[2, 0]]
    assert counts.zeroed.tolist() == [[1, 1]]
    assert counts.underflowed.tolist() == [[2, 1]]
    assert flags.tolist() == [[5, 5, 3, 3, 0, 3, 1, 0]]
    _, seen, again = bits.quantize(x, fmt, count=True, flags="any")
    assert seen == 7
    np.testing.assert_array_equal(again.zeroed, counts.zeroed)
    columns = bits.quantize(x.T, fmt, count=True, axis=0)[2]
    np.testing.assert_array_equal(columns.saturated, counts.saturated.T)
    assert blocks.scales.shape == counts.zeroed.shape


# -- laws ------------------------------------------------------------------------------------------------------------

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
BLOCKS = st.lists(FLOATS, min_size=1, max_size=40).map(lambda x: np.array(x, np.float32))
E8M0_FORMATS = st.sampled_from([name for name, fmt in BLOCK_ROSTER.items() if fmt.power_of_two_scale])


def scale_codes(x: np.ndarray, fmt: str, rule: str) -> np.ndarray:
    return bits.quantize(x, fmt, rule, flags="any")[0].scales.astype(int)


@settings(deadline=None)
@given(BLOCKS, E8M0_FORMATS)
def test_rules_are_ordered(x: np.ndarray, fmt: str) -> None:
    """By what they say; float32 may round rceil's quotient down to a power of two, by which it stays one below the smallest."""
    floor, even, ceil = (scale_codes(x, fmt, rule) for rule in ("floor", "even", "ceil"))
    nearest, rceil, smallest = (scale_codes(x, fmt, rule) for rule in ("nearest_log2", "rceil", "smallest"))
    assert (floor <= even).all()
    assert (floor <= ceil).all()
    assert (nearest <= rceil).all()
    assert (floor <= smallest).all()
    assert (smallest - 1 <= rceil).all()
    assert (rceil <= smallest).all()


@settings(deadline=None)
@given(BLOCKS, E8M0_FORMATS)
def test_the_smallest_scale_saturates_nothing(x: np.ndarray, fmt: str) -> None:
    counts = bits.quantize(x, fmt, "smallest", count=True)[2]
    assert not counts.saturated.any()
    rounded_up = bits.quantize(x, fmt, "rceil", count=True)[2]
    assert not rounded_up.saturated.any()  # the quotient's rounding in float32 is far finer than the element's


@settings(deadline=None)
@given(BLOCKS, st.sampled_from(list(BLOCK_ROSTER)), st.sampled_from(ROUNDINGS))
def test_blocks_that_are_read_and_quantised_again_stay(x: np.ndarray, fmt: str, rounding: str) -> None:
    """Under the same scale, every value is an element: nothing is rounded."""
    given: dict[str, Any] = {"tensor_scale": None} if fmt == "nvfp4" else {}
    blocks, _ = bits.quantize(x, fmt, rounding=rounding, **given)
    values = bits.dequantize(blocks)
    scale = blocks.spread(bits.decode(blocks.scales, blocks.format.scale))
    live = scale > 0  # neither NaN, of what rounds up to infinity, nor NVFP4's zero
    again, elements = values[live] / scale[live], blocks.elements[live]
    element = blocks.format.element
    if isinstance(element, Fixed):
        np.testing.assert_array_equal(again, element.values[elements])
    else:
        codes, flags = bits.encode(again, element)
        assert not flags.any()
        np.testing.assert_array_equal(codes, elements)


@settings(deadline=None)
@given(BLOCKS, E8M0_FORMATS, st.integers(-20, 20))
def test_powers_of_two_move_the_scale_alone(x: np.ndarray, fmt: str, power: int) -> None:
    scaled = np.ldexp(x.astype(np.float64), power)
    inside = (np.abs(x) == 0) | ((np.abs(x) > 2.0**-90) & (np.abs(x) < 2.0**90))
    x, scaled = np.where(inside, x, np.float32(1)), np.where(inside, scaled, 2.0**power)
    for rule in E8M0_RULES:
        if rule == "deepgemm_ue8m0":
            continue
        first, second = (bits.quantize(v, fmt, rule)[0] for v in (x, scaled))
        np.testing.assert_array_equal(first.elements, second.elements)
        zero = first.scales == 0
        np.testing.assert_array_equal(second.scales.astype(int)[~zero], first.scales.astype(int)[~zero] + power)


@settings(deadline=None)
@given(BLOCKS, st.sampled_from(["mxfp8_e4m3", "mxint8", "nvfp4"]))
def test_signs_mirror(x: np.ndarray, fmt: str) -> None:
    plus, minus = bits.quantize(x, fmt)[0], bits.quantize(-x, fmt)[0]
    np.testing.assert_array_equal(plus.scales, minus.scales)
    np.testing.assert_array_equal(bits.dequantize(plus), -bits.dequantize(minus))


@pytest.mark.parametrize("name", [x for x, fmt in BLOCK_ROSTER.items() if fmt.power_of_two_scale])
def test_every_code_under_every_scale(name: str) -> None:
    """Decoded exactly, and coded again: 256 scales, all elements."""
    fmt = BLOCK_ROSTER[name]
    width = 1 << fmt.element.bits
    codes = np.tile(np.arange(width, dtype=fmt.element.dtype), (256, 1))
    scales = np.arange(256, dtype=np.uint8)[:, None]
    values = bits.dequantize(BlockCodes(codes, scales, fmt, block=width))
    own = [float(reference_value(code, fmt)) for code in range(width)]
    np.testing.assert_array_equal(values[127], own)
    assert np.isnan(values[255]).all()
    np.testing.assert_array_equal(values[:255], np.ldexp(np.array(own), np.arange(255)[:, None] - 127))
    top = np.array([fmt.element.max], np.float32)
    for k in (-100, 0, 100):
        x = np.ldexp(np.array(own, np.float32), k)
        x = np.concatenate([x[np.isfinite(x) & (np.abs(x) <= np.ldexp(top, k))], np.ldexp(top, k)])
        blocks, flags = bits.quantize(x, fmt, block=x.size)
        np.testing.assert_array_equal(bits.dequantize(blocks), x)
        assert not flags.any()


def reference_value(code: int, fmt: BlockFormat) -> Fraction | float:
    return reference.dequantize_block([code], 127, fmt)[0]


@pytest.mark.parametrize("fmt", ["mxfp4_e2m1", "nvfp4"])
def test_midpoints_of_e2m1_go_to_even(fmt: str) -> None:
    x = np.array([6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)
    given: dict[str, Any] = {"tensor_scale": None} if fmt == "nvfp4" else {}
    blocks, _ = bits.quantize(x, fmt, **given)
    np.testing.assert_array_equal(bits.dequantize(blocks), [6, 0, 1, 1, 2, 2, 4, 4])


def test_literal_rceil_scales() -> None:
    """The scale of torchao's and cuBLAS's rule at quotients around powers of two, subnormal ones too."""
    for amax, code in ((448.0, 127), (449.0, 128), (447.0, 127), (1e-45, 0), (2.0**-118, 1), (0.0, 0), (3.4e38, 247)):
        assert scale_codes(np.array([amax], np.float32), "mxfp8_e4m3", "rceil") == code, amax


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fmt", "options", "error", "message"),
    [
        ("mxfp9", {}, ValueError, "unknown block format 'mxfp9'"),
        (softfloat.float16, {}, TypeError, r"block_format must be a softfloat\.BlockFormat"),
        ("mxfp4", {"rule": "flor"}, ValueError, "rule must be one of 'floor', 'ceil'"),
        ("mxfp4", {"rule": 3}, TypeError, "rule must be the name of a scale rule"),
        ("mxfp4", {"rule": "te"}, ValueError, "rule 'te' makes scales with fractions.*accepted: 'floor'"),
        ("nvfp4", {"rule": "floor"}, ValueError, "rule 'floor' makes powers of two.*accepted: 'amax', 'te', 'torchao'"),
        ("nvfp4", {"recipe": "amax"}, ValueError, "recipe must be one of 'te', 'torchao'"),
        ("mxfp4", {"recipe": "te"}, ValueError, "recipe 'te' makes scales with fractions"),
        ("nvfp4", {"recipe": "te", "rule": "te"}, TypeError, "recipe='te' comes with rule='te'"),
        ("mxfp4", {"axis": 1}, ValueError, "axis must be one of an array of 1 axes"),
        ("mxfp4", {"block": 0}, ValueError, "block must be a positive integer"),
        ("mxfp4", {"partial": "drop"}, ValueError, "partial must be one of 'pad', 'refuse'"),
        ("mxfp4", {"nans": "none"}, ValueError, "nans must be one of"),
        ("mxfp4", {"infinities": "none"}, ValueError, "infinities must be one of"),
        ("mxfp4", {"nan_to": "one"}, ValueError, "nan_to must be one of"),
        ("mxfp4", {"zero_block": "two"}, ValueError, "zero_block must be one of"),
        ("mxfp4", {"subnormal_blocks": "flush"}, ValueError, "subnormal_blocks must be one of"),
        ("mxfp4", {"minimum": -1.0}, ValueError, "minimum must be finite and at least 0"),
        ("mxfp4", {"minimum": 0.1}, ValueError, "minimum must be a float32 number"),
        ("mxfp4", {"minimum": "a"}, TypeError, "minimum must be a number"),
        ("nvfp4", {"minimum": 1.0}, ValueError, "minimum is not for rule 'te'"),
        ("mxfp4", {"tensor_scale": 1.0}, ValueError, "tensor_scale is for formats that have one"),
        ("mxfp4", {"tensor_amax": 1.0}, ValueError, "tensor_amax is what a tensor's scale"),
        ("nvfp4", {"tensor_amax": math.inf}, ValueError, "tensor_amax must be finite"),
        ("nvfp4", {"tensor_amax": 1.0, "tensor_scale": 1.0}, ValueError, "tensor_amax is what a tensor's scale"),
        ("nvfp4", {"tensor_scale": 0.0}, ValueError, "tensor_scale must be positive and finite"),
        ("nvfp4", {"four_over_six": "max"}, ValueError, "four_over_six must be one of"),
        ("nvfp4", {"four_over_six": "mae", "recipe": "torchao"}, ValueError, "four_over_six is for rule 'te'"),
        ("nvfp4", {"four_over_six": "mae", "tensor_scale": 1.0}, ValueError, "four_over_six needs the tensor's amax"),
        (
            "nvfp4",
            {"four_over_six": "mae", "block": (4, 16)},
            ValueError,
            "four_over_six is for blocks of one row and of 16x16, got 4x16",
        ),
        ("mxfp4", {"count": 1}, TypeError, "count must be True or False"),
        ("mxfp4", {"out": np.zeros(1, np.uint8)}, ValueError, "out is for functions that return one array"),
        ("mxfp4", {"flags": "all"}, ValueError, "flags must be 'each'"),
        ("mxint8", {"flags": "all"}, ValueError, "flags must be 'each'"),
        ("mxfp4", {"rounding": "up"}, ValueError, "rounding must be one of"),
        ("mxint8", {"rounding": "stochastic"}, ValueError, "needs a seed"),
        ("mxint8", {"overflow": "nan"}, ValueError, "overflow='nan' needs elements with a NaN"),
        ("mxfp4", {"overflow": "nan"}, ValueError, "overflow='nan' needs a format with a NaN"),
        ("mxfp4", {"roundin": "up"}, TypeError, "unknown option 'roundin'"),
    ],
)
def test_bad_arguments(fmt: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    x = np.ones((4, 4) if isinstance(options.get("block"), tuple) else 4, np.float32)
    with pytest.raises(error, match=message):
        bits.quantize(x, fmt, **options)


def test_bad_numbers() -> None:
    with pytest.raises(ValueError, match=r"x must hold float32 numbers, got .*0\.1.*bits\.encode"):
        bits.quantize([1.0, 0.1], "mxfp4")
    with pytest.raises(ValueError, match="x must hold float32 numbers"):
        bits.quantize([2**60 + 1], "mxfp4")
    with pytest.raises(ValueError, match="x must hold float32 numbers"):
        bits.quantize([1e300], "mxfp4")
    with pytest.raises(TypeError, match="x must be numbers"):
        bits.quantize(np.ones(3, complex), "mxfp4")
    with pytest.raises(TypeError, match="no mask"):
        bits.quantize(np.ma.masked_array(np.ones(3)), "mxfp4")
    with pytest.raises(ValueError, match="as there is no axis"):
        bits.quantize(1.0, "mxfp4")
    with pytest.raises(TypeError, match=r"blocks must be a softfloat\.bits\.BlockCodes"):
        bits.dequantize(np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp4", "mxint8"])
def test_zeroed_is_what_decodes_as_zero(fmt: str) -> None:
    """Blocks far below the tensor's largest magnitude, whose scale is zero in NVFP4, among ordinary ones, with and without a NaN scale."""
    x = np.random.default_rng(1).normal(size=(8, 64)) * 2.0 ** np.array([0, -10, -20, -40, -60, -80, 0, 0])[:, None]
    x[6, 3] = np.nan
    x[7, :40] = 0
    x[:, 5] *= 2.0**-12
    x = x.astype(np.float32)
    blocks, _, counts = bits.quantize(x, fmt, count=True)
    lost = (bits.dequantize(blocks) == 0) & (x != 0)
    np.testing.assert_array_equal(counts.zeroed, lost.reshape(*counts.zeroed.shape, -1).sum(-1))
    assert 0 < counts.zeroed.sum() < x.size
    assert (bits.decode(blocks.scales, blocks.format.scale) == 0).any() == (fmt == "nvfp4")
    again = bits.quantize(x, fmt, count=True, rounding="toward_zero")[2]
    assert again.zeroed.sum() >= counts.zeroed.sum()


@pytest.mark.parametrize("kind", ["ordinary", "special", "tiny"])
@pytest.mark.parametrize("block", [128, (128, 128), (16, 16)])
def test_scales_in_float32_by_the_compiled_loop(
    monkeypatch: pytest.MonkeyPatch, block: int | tuple[int, int], kind: str
) -> None:
    """Codes, scales and flags are those of the plain way, whole blocks or not, on any number of threads."""
    fmt = BlockFormat("scaled", element="float8_e4m3fn", scale="float32", block=block)
    random, served = np.random.default_rng(7), []
    quick = quantization.Plan.quick

    def watched(*arguments: Any) -> Any:
        served.append(quick(*arguments))
        return served[-1]

    for shape in ((130, 144), (512, 384)):
        x = np.ldexp(random.standard_normal(shape), random.integers(-30, 30, shape)).astype(np.float32)
        x[:16] = 0
        x[20:40] *= {"ordinary": 1, "special": np.float32(np.nan), "tiny": np.float32(2.0**-140)}[kind]
        for options in ({"flags": "any"}, {"flags": "each"}, {"minimum": 2.0**-13, "flags": "any"}):
            found = []
            for way, threads in ((watched, 1), (watched, 3), (lambda *_: None, 1)):
                monkeypatch.setattr(quantization.Plan, "quick", way)
                monkeypatch.setattr("softfloat.engine.threads._workers.count", threads)
                blocks, flags = bits.quantize(x, fmt, **options)
                found.append((blocks.elements.tobytes(), blocks.scales.tobytes(), np.asarray(flags).tobytes()))
            assert found[0] == found[1] == found[2]
    assert all(x is not None for x in served)
