"""Convolutions as matrix products: the same sums as `softfloat.bits` has, in the same order of k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softfloat import bits
from softfloat.accumulators import fma
from softfloat.bits.sums.windows import Geometry
from softfloat.scaling import convolution_matrices, input_gradient_matrices, weight_gradient_matrices

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
