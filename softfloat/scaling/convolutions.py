"""Convolutions and their gradients as the matrix products that recipes are about: windows side by side.

Arrays of numbers are (N, C, H, W), weights (O, I, H, W). k is that of `softfloat.bits.conv2d` and of its gradients: kernel row, kernel
column, channel for the first two, image, row, column for the gradient of weights. Groups of channels are products of
their own, along the first axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.bits import BlockCodes
from softfloat.bits.sums import convolutions
from softfloat.bits.sums.convolutions import in_zeros, kernel_matrices, strided, surrounded, windows_of, with_axes
from softfloat.bits.sums.windows import Geometry, Windows
from softfloat.formats import float32
from softfloat.scaling.products import Quantized, drawn, quantized, turns
from softfloat.scaling.recipes import AXIS, BlockScaling, CurrentScaling, DelayedScaling, Operand
from softfloat.scaling.tensors import ScaledCodes, tile_format

__all__ = ["Matrices", "Windowed", "convolution_matrices", "input_gradient_matrices", "weight_gradient_matrices"]

Numbers = np.ndarray[Any, np.dtype[np.float32]]


@lru_cache(maxsize=256)
def _covers(windows: Windows, sizes: tuple[int, int]) -> bool:
    """Whether each place of images so large, with the zeros around, is in a window."""
    axes = zip(windows.counts, windows.stride, windows.kernel, windows.dilation, sizes, strict=True)
    return all(
        np.unique(np.add.outer(np.arange(count) * stride, np.arange(kernel) * dilation)).size == size
        for count, stride, kernel, dilation, size in axes
    )


@dataclass(frozen=True, eq=False)
class Windowed:
    """The operand of a convolution that has a row for each window, before windows are laid out.

    Attributes
    ----------
    numbers : array of float32
        (N, H, W, C), of any strides.
    windows : Windows
    groups : int
        Of channels.
    """

    numbers: Numbers
    windows: Windows
    groups: int

    def surrounded(self, planes: bool = False) -> Numbers:
        """(N, H, W, groups, channels of a group), zeros between and around; `planes`: in memory channel by channel."""
        data = convolutions.Operand(self.numbers, float32, "inputs")
        return in_zeros(data, self.windows, self.groups, self.size[-1], planes)

    @cached_property
    def images(self) -> Numbers:
        """Those in the order of the axes."""
        return self.surrounded()

    @cached_property
    def size(self) -> tuple[int, ...]:
        """That of `images`."""
        count, height, width, channels = self.numbers.shape
        return count, *surrounded((height, width), self.windows)[0], self.groups, max(channels // self.groups, 1)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """That of the matrix: (groups, windows, k), of one group (windows, k)."""
        rows = len(self.numbers) * math.prod(self.windows.counts)
        whole = self.groups, rows, math.prod(self.windows.kernel) * self.size[-1]
        return whole if self.groups > 1 else whole[1:]

    @property
    def ndim(self) -> int:
        """Axes of the matrix."""
        return len(self.shape)

    def matrix(self, images: np.ndarray[Any, Any] | None = None) -> Any:
        """Windows laid out, of these images or of others; of one number of each pixel, one for each place of windows after the other."""
        given = self.images if images is None else images
        found = windows_of(given, self.windows, max(given.shape[-1], 1))
        k = math.prod(found.shape[4:])
        if images is None or given.shape[-1] > 1:
            return np.ascontiguousarray(found).reshape(*self.shape[:-1], k)
        turned = np.ascontiguousarray(found.transpose(0, 4, 5, 6, 7, 1, 2, 3))
        return turned.reshape(*self.shape[:-2], k, self.shape[-2]).swapaxes(-1, -2)

    def across(self) -> Any:
        """The same of windows a row high, one for each row of the images; numbers follow each other from window to window in memory."""
        where = self.windows
        (_, width), (_, count), (_, stride), (_, dilation) = where.kernel, where.counts, where.stride, where.dilation
        flat = where._replace(
            kernel=(1, width), counts=(self.size[1], count), stride=(1, stride), dilation=(1, dilation)
        )
        found = windows_of(self.surrounded(planes=True), flat, self.size[-1]).transpose(0, 4, 5, 6, 7, 1, 2, 3)
        columns, rows = math.prod(found.shape[1:5]), math.prod(found.shape[5:])
        return np.swapaxes(np.ascontiguousarray(found).reshape(*self.shape[:-2], columns, rows), -1, -2)

    def of_rows(self, made: np.ndarray[Any, Any]) -> Any:
        """The matrix, whose numbers lie so, of what was made of those of `across`: one number of each, or of some side by side."""
        (images, height), (down, _), (rows, _) = self.size[:2], self.windows.kernel, self.windows.counts
        *groups, count, columns = made.shape
        wide = count // max(images * height, 1)
        turned = np.swapaxes(made, -1, -2).reshape(*groups, columns, images, height, wide)
        *others, column, image, row, number = turned.strides
        steps = *others, row * self.windows.dilation[0], column, image, row * self.windows.stride[0], number
        found = strided(turned, (*groups, down, columns, images, rows, wide), steps)
        laid_out = np.ascontiguousarray(found).reshape(*groups, down * columns, images * rows * wide)
        return np.swapaxes(laid_out, -1, -2)

    def quantized(self, operand: Operand, axis: int, *, count: bool = False, **options: Any) -> Quantized:
        """`softfloat.scaling.quantized` of the matrix: each number once, before windows have it several times, where nothing tells them apart."""
        once, within_rows = repeats(self.windows, self.size, operand, axis)
        if not count and once and not operand.rounding.draws:
            return self._laid_out(quantized(self.images, operand, -1, **options), self.matrix, -1)
        if not count and once and isinstance(operand.scaling, BlockScaling):
            found = drawn(self.images, operand, self.matrix, **options)
            if found is not None:
                return self._laid_out(found, np.asarray, -1)
        if axis == -1 or not (operand.hadamard is not None or turns(operand)):
            return quantized(self.matrix(), operand, axis, count=count, **options)
        if not count and within_rows:
            return self._laid_out(quantized(self.across(), operand, axis, **options), self.of_rows, axis)
        return quantized(self.of_rows(self.across()), operand, axis, count=count, **options)

    def _laid_out(self, found: Quantized, lay_out: Callable[[Any], Any], axis: int) -> Quantized:
        """What was made of fewer numbers as the matrix has it, whose blocks lie along an axis."""
        made = found.codes
        elements = lay_out(made.elements)  # type: ignore[union-attr]
        if isinstance(made, BlockCodes):
            axis, length = self.ndim + axis, max(made.block_shape)
            shape = tuple(length if i == axis else 1 for i in range(self.ndim))
            codes: Any = BlockCodes.made(elements, lay_out(made.scales), made.format, axis, shape, made.tensor_scale)
        else:
            assert isinstance(made, ScaledCodes)
            codes = ScaledCodes(elements, made.scale, made.format)
        return replace(found, codes=codes, elements=elements.size)


@lru_cache(maxsize=1024)
def repeats(windows: Windows, images: tuple[int, ...], operand: Operand, axis: int) -> tuple[bool, bool]:
    """(whether numbers are scaled alike in every window: scales are the tensor's, or those of a pixel's channels; whether codes of numbers
    from window to window are the same in every row of a window: scales, and runs of a transform, are those of windows side by side)."""
    how, count = operand.scaling, windows.counts[1]
    if how is None or not _covers(windows, images[1:3]):
        return False, False
    of_tensor = isinstance(how, DelayedScaling) or (isinstance(how, CurrentScaling) and how.per == "tensor")
    length = _length(how, len(images), -1) if axis == -1 else 0
    once = operand.hadamard is None and (of_tensor or (length > 0 and images[-1] % length == 0))
    length = _length(how, 3 if images[3] > 1 else 2, -2)
    runs = 1 if operand.hadamard is None else len(operand.hadamard.signs)
    return once, length > 0 and count % length == 0 and count % runs == 0 and not operand.rounding.draws


def _length(how: BlockScaling | CurrentScaling | DelayedScaling, ndim: int, axis: int) -> int:
    """Of blocks of numbers along an axis; 0 where others share a scale."""
    each = how.block if isinstance(how, BlockScaling) else getattr(how, "per", AXIS)
    if isinstance(how, DelayedScaling) or isinstance(each, str):
        return 0
    fmt = how.format if isinstance(how, BlockScaling) else tile_format(how.format, how.per)
    shape = fmt.block_shape(ndim, axis, each)
    return shape[axis] if max(shape) == shape[axis] == math.prod(shape) else 0


class Matrices(NamedTuple):
    """A convolution as a product.

    Attributes
    ----------
    first, second : array of float32, or Windowed
        (groups, m, k) and (groups, k, n), in the roles of a recipe's `Product`; of one group without the first axis.
    finish : callable
        From the product, or an addend to broadcast, to the array that the convolution returns.
    """

    first: Any
    second: Any
    finish: Callable[[Any], Any]


def _rows(images: Numbers, windows: Windows, groups: int, apart: bool) -> Any:
    """Windows of (N, H, W, C) as (groups, windows, k)."""
    found = Windowed(images, windows, groups)
    return found if apart else found.matrix()


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


def convolution_matrices(inputs: Numbers, weights: Numbers, geometry: Geometry, *, apart: bool = False) -> Matrices:
    """Inputs in windows, and weights. `apart`: inputs as `Windowed`, not laid out.

    >>> x, w = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), np.float32)
    >>> made = convolution_matrices(x, w, Geometry(1, 0, 1, 1, "NCHW"))
    >>> made.finish(made.first @ made.second)[0, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    checked = geometry.over(inputs.shape, weights.shape)
    rows = _rows(with_axes(inputs, "NCHW", "NHWC"), checked.windows, checked.groups, apart)
    kernel = convolutions.Operand(with_axes(weights, "OIHW", "HWIO"), float32, "weights")
    columns = kernel_matrices(kernel, checked.groups, max(weights.shape[1], 1))
    return Matrices(rows, _single(columns), _images(checked.shape))


def input_gradient_matrices(
    gradient: Numbers, weights: Numbers, input_shape: Sequence[int], geometry: Geometry, *, apart: bool = False
) -> Matrices:
    """The outputs' gradient in windows, zeros between and around, and the flipped weights. `apart` as of `convolution_matrices`."""
    checked = geometry.over(tuple(input_shape), weights.shape)
    checked.check_gradient(gradient)
    flipped = with_axes(weights, "OIHW", "HWIO")[::-1, ::-1]
    split = flipped.reshape(*flipped.shape[:3], checked.groups, checked.outputs).transpose(0, 1, 4, 3, 2)
    turned = convolutions.Operand(split.reshape(*split.shape[:3], checked.groups * checked.inputs), float32, "weights")
    rows = _rows(with_axes(gradient, "NCHW", "NHWC"), checked.windows.transposed(), checked.groups, apart)
    columns = kernel_matrices(turned, checked.groups, max(checked.outputs, 1))
    return Matrices(rows, _single(columns), _images(tuple(input_shape)))


def weight_gradient_matrices(
    inputs: Numbers, gradient: Numbers, weight_shape: Sequence[int], geometry: Geometry, *, apart: bool = False
) -> Matrices:
    """The outputs' gradient with a row for each output channel, and inputs in windows. `apart` as of `convolution_matrices`."""
    shape = tuple(weight_shape)
    checked = geometry.over(inputs.shape, shape, "weight_shape")
    checked.check_gradient(gradient)
    columns = _rows(with_axes(inputs, "NCHW", "NHWC"), checked.windows, checked.groups, apart)
    count = gradient.size // max(checked.groups * checked.outputs, 1)
    rows = gradient.swapaxes(0, 1).reshape(checked.groups, checked.outputs, count)
    outputs, channels, *kernel = shape

    def finish(product: Any) -> Any:
        stacked = product if product.ndim == 3 else product[None]
        split = stacked.reshape(outputs, *kernel, channels)
        return np.ascontiguousarray(split.transpose(0, 3, 1, 2))

    return Matrices(_single(rows), columns, finish)
