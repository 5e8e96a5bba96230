"""Convolutions and their gradients as the matrix products that recipes are about: windows side by side.

Arrays of numbers are (N, C, H, W), weights (O, I, H, W). k is that of `softfloat.bits.conv2d` and of its gradients: kernel row, kernel
column, channel for the first two, image, row, column for the gradient of weights. Groups of channels are products of
their own, along the first axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from softfloat.bits.sums.convolutions import Operand, in_zeros, kernel_matrices, windows_of, with_axes
from softfloat.bits.sums.windows import Geometry, Windows
from softfloat.formats import float32

__all__ = ["Matrices", "convolution_matrices", "input_gradient_matrices", "weight_gradient_matrices"]

Numbers = np.ndarray[Any, np.dtype[np.float32]]


class Matrices(NamedTuple):
    """A convolution as a product.

    Attributes
    ----------
    first, second : array of float32
        (groups, m, k) and (groups, k, n), in the roles of a recipe's `Product`; of one group without the first axis.
    finish : callable
        From the product, or an addend to broadcast, to the array that the convolution returns.
    """

    first: Numbers
    second: Numbers
    finish: Callable[[Any], Any]


def _rows(images: Numbers, windows: Windows, groups: int) -> Numbers:
    """Windows of (N, H, W, C) as (groups, windows, k)."""
    chunk = max(images.shape[-1] // groups, 1)
    found = windows_of(in_zeros(Operand(images, float32, "inputs"), windows, groups, chunk), windows, chunk)
    return np.ascontiguousarray(found).reshape(groups, math.prod(found.shape[1:4]), math.prod(found.shape[4:]))


def _single(matrix: Numbers) -> Numbers:
    return matrix[0] if len(matrix) == 1 else matrix


def _images(shape: Sequence[int]) -> Callable[[Any], Any]:
    """(groups, N * H * W, channels of a group) as (N, C, H, W)."""
    count, channels, *sizes = shape

    def finish(product: Any) -> Any:
        stacked = product if product.ndim == 3 else product[None]
        moved = stacked.transpose(1, 0, 2).reshape(count, *sizes, channels)
        return np.ascontiguousarray(moved.transpose(0, 3, 1, 2))

    return finish


def convolution_matrices(inputs: Numbers, weights: Numbers, geometry: Geometry) -> Matrices:
    """Inputs in windows, and weights.

    >>> x, w = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), np.float32)
    >>> made = convolution_matrices(x, w, Geometry(1, 0, 1, 1, "NCHW"))
    >>> made.finish(made.first @ made.second)[0, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    checked = geometry.over(inputs.shape, weights.shape)
    rows = _rows(with_axes(inputs, "NCHW", "NHWC"), checked.windows, checked.groups)
    kernel = Operand(with_axes(weights, "OIHW", "HWIO"), float32, "weights")
    columns = kernel_matrices(kernel, checked.groups, max(weights.shape[1], 1))
    return Matrices(_single(rows), _single(columns), _images(checked.shape))


def input_gradient_matrices(
    gradient: Numbers, weights: Numbers, input_shape: Sequence[int], geometry: Geometry
) -> Matrices:
    """The outputs' gradient in windows, zeros between and around, and the flipped weights."""
    checked = geometry.over(tuple(input_shape), weights.shape)
    checked.check_gradient(gradient)
    flipped = with_axes(weights, "OIHW", "HWIO")[::-1, ::-1]
    split = flipped.reshape(*flipped.shape[:3], checked.groups, checked.outputs).transpose(0, 1, 4, 3, 2)
    turned = Operand(split.reshape(*split.shape[:3], checked.groups * checked.inputs), float32, "weights")
    rows = _rows(with_axes(gradient, "NCHW", "NHWC"), checked.windows.transposed(), checked.groups)
    columns = kernel_matrices(turned, checked.groups, max(checked.outputs, 1))
    return Matrices(_single(rows), _single(columns), _images(tuple(input_shape)))


def weight_gradient_matrices(
    inputs: Numbers, gradient: Numbers, weight_shape: Sequence[int], geometry: Geometry
) -> Matrices:
    """The outputs' gradient with a row for each output channel, and inputs in windows."""
    shape = tuple(weight_shape)
    checked = geometry.over(inputs.shape, shape, "weight_shape")
    checked.check_gradient(gradient)
    columns = _rows(with_axes(inputs, "NCHW", "NHWC"), checked.windows, checked.groups)
    count = gradient.size // max(checked.groups * checked.outputs, 1)
    moved = with_axes(gradient, "NCHW", "NHWC").reshape(count, checked.groups, checked.outputs)
    rows = np.ascontiguousarray(moved.transpose(1, 2, 0))
    outputs, channels, *kernel = shape

    def finish(product: Any) -> Any:
        stacked = product if product.ndim == 3 else product[None]
        split = stacked.reshape(outputs, *kernel, channels)
        return np.ascontiguousarray(split.transpose(0, 3, 1, 2))

    return Matrices(_single(rows), _single(columns), finish)
