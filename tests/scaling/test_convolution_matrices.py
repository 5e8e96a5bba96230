"""Convolutions as matrix products: the same sums as `softfloat.bits` has, in the same order of k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softfloat import bits
from softfloat.accumulators import fma
from softfloat.bits.sums.windows import Geometry
from softfloat.scaling import (
    RECIPES,
    AmaxHistory,
    DelayedScaling,
    Operand,
    convolution_matrices,
    input_gradient_matrices,
    quantized,
    weight_gradient_matrices,
)
from softfloat.scaling.convolutions import repeats

GEOMETRIES = [
    {},
    {"padding": 1},
    {"stride": (2, 1), "padding": (1, 2)},
    {"dilation": (1, 2), "padding": 2},
    {"groups": 2, "padding": 1},
    {"groups": 4, "stride": 2},
]


@pytest.mark.parametrize("options", GEOMETRIES, ids=str)
def test_against_convolutions_of_codes(options: dict[str, Any]) -> None:
    """The order of sums counts in bfloat16 partials."""
    random = np.random.default_rng(1)
    whole = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "layout": "NCHW", **options}
    geometry, how = Geometry(**whole), fma("bfloat16")
    x = random.normal(size=(2, 4, 6, 5)).astype(np.float32)
    w = random.normal(size=(4, 4 // whole["groups"], 3, 2)).astype(np.float32)
    shape = geometry.over(x.shape, w.shape).shape
    g = random.normal(size=shape).astype(np.float32)
    codes = [v.view(np.uint32) for v in (x, w, g)]
    cases = [
        (convolution_matrices(x, w, geometry), bits.conv2d(codes[0], codes[1], "float32", how, **whole)),
        (
            input_gradient_matrices(g, w, x.shape, geometry),
            bits.conv2d_input_gradient(codes[2], codes[1], x.shape, "float32", how, **whole),
        ),
        (
            weight_gradient_matrices(x, g, w.shape, geometry),
            bits.conv2d_weight_gradient(codes[0], codes[2], w.shape, "float32", how, **whole),
        ),
    ]
    for made, (expected, _) in cases:
        product, _ = bits.matmul(
            np.ascontiguousarray(made.first).view(np.uint32),
            np.ascontiguousarray(made.second).view(np.uint32),
            "float32",
            how,
        )
        np.testing.assert_array_equal(made.finish(product), expected)


def test_what_does_not_fit_is_refused() -> None:
    x, w = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 1, 2, 2), np.float32)
    geometry = Geometry(1, 0, 1, 1, "NCHW")
    with pytest.raises(ValueError, match="gradient must have the outputs' shape"):
        weight_gradient_matrices(x, x, w.shape, geometry)
    with pytest.raises(ValueError, match="no window fits"):
        convolution_matrices(w[:, :, :0, :0], w, geometry)


NUMBER_BY_NUMBER = {
    "current_scaling": (16, {"padding": 1}, 3),
    "delayed_scaling": (16, {"dilation": 2, "padding": 2}, 3),
    "torchao_rowwise": (16, {"padding": 1}, 0),
    "mxfp8": (64, {"groups": 2, "padding": (0, 1)}, 2),
    "fp8_blocks": (128, {"stride": 2, "padding": 1}, 2),
    "nvfp4_plain": (16, {"padding": 1}, 2),
    "nvfp4": (16, {"padding": 1}, 2),
}
"""Recipes, channels, geometries, and how many of the three operands in windows are quantised, or scaled, before these are laid out."""


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", NUMBER_BY_NUMBER)
def test_numbers_are_quantised_before_windows_or_after(name: str, special: bool) -> None:
    """With the same codes, scales and flags, special numbers among them; and after, where scales or random bits go by places in windows."""
    recipe, (channels, options, once) = RECIPES[name], NUMBER_BY_NUMBER[name]
    geometry = Geometry(**{"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "layout": "NCHW", **options})
    random = np.random.default_rng(0)
    x = random.normal(size=(2, channels, 7, 6)).astype(np.float32) * np.exp2(
        random.integers(-8, 8, (2, channels, 1, 1))
    )
    x = x.astype(np.float32)
    x[0, :, 0] = 0.0
    w = random.normal(size=(channels, channels // geometry.groups, 3, 2)).astype(np.float32)
    made = convolution_matrices(x, w, geometry)
    gradient = made.finish(random.normal(size=(*made.first.shape[:-1], made.second.shape[-1])).astype(np.float32))
    if special:
        for numbers in (x, gradient):
            numbers[1, 3, 2, 2], numbers[1, 5, 1, 0] = np.nan, np.inf
    found = 0
    for function, arguments, which, product in (
        (convolution_matrices, (x, w, geometry), 0, recipe.forward),
        (input_gradient_matrices, (gradient, w, x.shape, geometry), 0, recipe.input_gradient),
        (weight_gradient_matrices, (x, gradient, w.shape, geometry), 1, recipe.weight_gradient),
    ):
        whole, apart = function(*arguments)[which], function(*arguments, apart=True)[which]
        operand, axis = (product.first, product.second)[which], (-1, -2)[which]

        def history(operand: Operand = operand) -> AmaxHistory | None:
            return AmaxHistory(operand.scaling) if isinstance(operand.scaling, DelayedScaling) else None

        assert whole.shape == apart.shape
        expected = quantized(whole, operand, axis, history=history(), seed=1)
        got = apart.quantized(operand, axis, history=history(), seed=1)
        found += repeats(apart.windows, apart.size, operand, axis)[0]
        np.testing.assert_equal(got.amax, expected.amax)
        assert (got.scales, got.elements, got.flags) == (expected.scales, expected.elements, expected.flags)
        assert type(got.codes) is type(expected.codes)
        for field in ("elements", "scales", "scale", "tensor_scale", "axis", "block_shape"):
            np.testing.assert_array_equal(getattr(got.codes, field, None), getattr(expected.codes, field, None))
    assert found == once


ROWS = [
    ("nvfp4", {"padding": 1}, True),
    ("nvfp4", {"padding": (3, 1), "dilation": (2, 1), "groups": 2}, True),
    ("nvfp4_plain", {"stride": (2, 1), "padding": (0, 1)}, True),
    ("nvfp4_plain", {"stride": (4, 1), "padding": 1}, False),
    ("mxfp8", {"padding": 1}, False),
]
"""Recipes, geometries of 16 windows side by side, and whether all rows of a window have the same codes."""


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("name", "options", "within"), ROWS, ids=str)
def test_rows_of_windows_are_quantised_once(name: str, options: dict[str, Any], within: bool, special: bool) -> None:
    """Where blocks along the sum over windows lie in a row of them: with the same codes, scales and flags as of all windows."""
    geometry = Geometry(**{"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "layout": "NCHW", **options})
    random = np.random.default_rng(3)
    x = random.normal(size=(2, 6, 9, 15)).astype(np.float32) * np.exp2(random.integers(-8, 8, (2, 6, 1, 1)))
    x = x.astype(np.float32)
    x[0, :, 0] = 0.0
    if special:
        x[1, 3, 2, 2], x[1, 5, 4, 0] = np.nan, np.inf
    shape = (4, 6 // geometry.groups, 3, 2)
    gradient = np.ones(geometry.over(x.shape, shape).shape, np.float32)
    operand = RECIPES[name].weight_gradient.second
    whole = weight_gradient_matrices(x, gradient, shape, geometry).second
    apart = weight_gradient_matrices(x, gradient, shape, geometry, apart=True).second
    assert repeats(apart.windows, apart.size, operand, -2)[1] == within
    expected, got = quantized(whole, operand, -2), apart.quantized(operand, -2)
    np.testing.assert_equal((got.amax, got.scales), (expected.amax, expected.scales))
    assert (got.elements, got.flags) == (expected.elements, expected.flags)
    for field in ("elements", "scales", "tensor_scale", "axis", "block_shape"):
        np.testing.assert_array_equal(getattr(got.codes, field), getattr(expected.codes, field))


def test_numbers_that_no_window_has_do_not_count() -> None:
    """Scales are those of windows: the largest number lies between them."""
    x, operand = np.ones((1, 1, 3, 3), np.float32), RECIPES["current_scaling"].forward.first
    x[0, 0, 1, 1] = 100.0
    geometry = Geometry(stride=2, padding=0, dilation=1, groups=1, layout="NCHW")
    made = convolution_matrices(x, np.ones((1, 1, 1, 1), np.float32), geometry, apart=True).first
    assert made.quantized(operand, -1).amax == 1.0
