"""Products and sums of products: matrix products, convolutions and their gradients, sums.

The accumulator rounds to the tensors' format at the end. An addend (bias) is where the sum starts, in the format of
partials. `alpha` and `beta` other than 1 are products of their own, each rounded: beta*input starts the sum; with an
alpha, the product is rounded, scaled, and added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.formats import Format, float32
from softfloat.torch._bridge import Codes, UnsupportedArguments, codes_of
from softfloat.torch._unit import Unit

__all__ = ["CONVOLUTIONS", "PRODUCTS"]


Handler = Callable[..., Any]

PRODUCTS: dict[str, Handler] = {}
"""handler(unit, fmt, target, *args, **kwargs) by the operator's name, of operators whose tensors share one low dtype."""

CONVOLUTIONS: dict[str, Handler] = {}
"""The same for convolutions."""


def product(name: str) -> Callable[[Handler], Handler]:
    """Enter a handler into the table."""

    def enter(handler: Handler) -> Handler:
        PRODUCTS[name] = handler
        return handler

    return enter


def addend(unit: Unit, codes: Codes, fmt: Format, how: Accumulator) -> Codes:
    """Codes in the accumulator's partials format; single has them all."""
    partials = how.partials
    if partials == fmt:
        return codes
    if partials == float32:
        wide: Codes = bits.convert(codes, fmt, float32)[0]
        return wide
    return unit.run(bits.convert, codes, fmt, partials)


def multiplied(
    unit: Unit, fmt: Format, a: Codes, b: Codes, c: Codes | None = None, beta: Any = 1, alpha: Any = 1
) -> Codes:
    """beta*c + alpha*(a @ b)."""
    how = unit.accumulator(False, fmt)
    options: dict[str, Any] = {"out_format": fmt}
    if c is None or beta == 0:
        result = unit.run(bits.matmul, a, b, fmt, how, **options)
        return result if alpha == 1 else unit.run(bits.mul, result, unit.number(alpha, fmt), fmt)
    if beta != 1:
        c = unit.run(bits.mul, c, unit.number(beta, fmt), fmt)
    if alpha == 1:
        shape = (*a.shape[:-1], *b.shape[-1:]) if b.ndim > 1 else a.shape[:-1]
        start = np.broadcast_to(addend(unit, np.asarray(c), fmt, how), shape)
        return unit.run(bits.matmul, a, b, fmt, how, start, **options)
    result = unit.run(bits.matmul, a, b, fmt, how, **options)
    scaled = unit.run(bits.mul, result, unit.number(alpha, fmt), fmt)
    return unit.run(bits.add, c, scaled, fmt)


@product("mm")
@product("bmm")
@product("mv")
@product("dot")
@product("vdot")
def _matmul(unit: Unit, fmt: Format, target: torch.Tensor | None, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return unit.deliver(multiplied(unit, fmt, codes_of(a), codes_of(b)), a.dtype, target)


@product("addmm")
@product("baddbmm")
@product("addmv")
def _addmm(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> torch.Tensor:
    return unit.deliver(multiplied(unit, fmt, codes_of(a), codes_of(b), codes_of(c), beta, alpha), a.dtype, target)


@product("addbmm")
def _addbmm(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> torch.Tensor:
    """One sum over batch and k."""
    rows = codes_of(a).transpose(1, 0, 2).reshape(a.shape[1], -1)
    columns = codes_of(b).reshape(-1, b.shape[2])
    return unit.deliver(multiplied(unit, fmt, rows, columns, codes_of(c), beta, alpha), a.dtype, target)


@product("addr")
def _addr(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> torch.Tensor:
    return unit.deliver(
        multiplied(unit, fmt, codes_of(a)[:, None], codes_of(b)[None], codes_of(c), beta, alpha), a.dtype, target
    )


def summed(unit: Unit, fmt: Format, codes: Codes, axes: Sequence[int], convolution: bool = False) -> Codes:
    """Sums over some axes, in C order of those, by the accumulator of products."""
    kept = [axis for axis in range(codes.ndim) if axis not in axes]
    length = math.prod(codes.shape[axis] for axis in axes)
    shape = [codes.shape[axis] for axis in kept]
    flat = codes.transpose([*axes, *kept]).reshape(length, math.prod(shape))
    how = unit.accumulator(convolution, fmt)
    return np.reshape(unit.run(bits.sum, flat, fmt, how, 0, out_format=fmt), shape)


@product("sum")
def _sum(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    x: torch.Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> torch.Tensor:
    codes = codes_of(x)
    each = [dim] if isinstance(dim, int) else list(dim or range(codes.ndim))
    axes = sorted(axis % max(codes.ndim, 1) for axis in each) if codes.ndim else []
    result = summed(unit, fmt, codes, axes)
    if keepdim:
        result = result.reshape([1 if axis in axes else size for axis, size in enumerate(codes.shape)])
    return unit.deliver(result, x.dtype, target)


# -- convolutions ----------------------------------------------------------------------------------------------------


class Geometry:
    """A convolution's arguments as `softfloat.bits` takes them, those with one spatial axis given a second of length 1."""

    def __init__(self, axes: int, *each: tuple[int, ...], groups: int) -> None:
        self.axes = axes
        if self.axes not in (1, 2):
            raise UnsupportedArguments(
                f"convolutions have 1 or 2 spatial axes here, got {self.axes}; write it as sums of conv2d"
            )
        first = [1] * (2 - axes)
        stride, padding, dilation, self.output_padding = (list(x) * (axes if len(x) == 1 else 1) for x in each)
        self.options: dict[str, Any] = {
            "stride": first + stride,
            "padding": [0] * len(first) + padding,
            "dilation": first + dilation,
            "groups": groups,
            "layout": "NCHW",
        }

    def codes(self, x: torch.Tensor) -> Codes:
        """Codes with two spatial axes."""
        codes = codes_of(x)
        return codes if self.axes == 2 else codes[:, :, None]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape with two spatial axes."""
        return tuple(shape) if self.axes == 2 else (*shape[:2], 1, *shape[2:])

    def narrowed(self, codes: Codes) -> Codes:
        """A result with as many axes as PyTorch expects."""
        return codes if self.axes == 2 else codes[:, :, 0]

    def adapted(self, codes: Codes, inputs: Sequence[int], kernel: Sequence[int]) -> Codes:
        """Codes of a transposed convolution's inputs, with as many places as a convolution from its outputs' shape gives.

        Output padding of a stride or more, which dilation allows, makes room for more windows than there are inputs:
        there, zeros.
        """
        counts = []
        for axis in range(2):
            stride, padding, dilation = (self.options[name][axis] for name in ("stride", "padding", "dilation"))
            counts.append((inputs[axis + 2] + 2 * padding - dilation * (kernel[axis + 2] - 1) - 1) // stride + 1)
        more = [(0, count - have) for count, have in zip(counts, codes.shape[2:], strict=True)]
        return np.pad(codes, [(0, 0), (0, 0), *more]) if any(after for _, after in more) else codes

    def transposed_shape(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[int, ...]:
        """The output's shape of a transposed convolution."""
        sizes = []
        skip = 2 - self.axes
        for axis in range(self.axes):
            stride, padding, dilation = (self.options[name][axis + skip] for name in ("stride", "padding", "dilation"))
            reach = dilation * (weight.shape[axis + 2] - 1)
            sizes.append((x.shape[axis + 2] - 1) * stride - 2 * padding + reach + self.output_padding[axis] + 1)
        return self.shape((x.shape[0], weight.shape[1] * self.options["groups"], *sizes))


@lru_cache(maxsize=1024)
def _geometry(axes: int, *each: tuple[int, ...], groups: int) -> Geometry:
    return Geometry(axes, *each, groups=groups)


def geometry_of(weight: torch.Tensor, each: Sequence[Any], groups: int) -> Geometry:
    """The geometry for weights, and stride, padding, dilation and output padding."""
    return _geometry(weight.ndim - 2, *map(tuple, each), groups=groups)


def _convolution(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> torch.Tensor:
    """A transposed convolution is the input gradient of one whose outputs are the inputs."""
    geometry = geometry_of(weight, (stride, padding, dilation, output_padding), groups)
    how = unit.accumulator(True, fmt)
    c = None if bias is None else addend(unit, codes_of(bias), fmt, how)
    data, kernel = geometry.codes(x), geometry.codes(weight)
    if transposed:
        shape = geometry.transposed_shape(x, weight)
        data = geometry.adapted(data, shape, kernel.shape)
        result = unit.run(
            bits.conv2d_input_gradient, data, kernel, shape, fmt, how, c, out_format=fmt, **geometry.options
        )
    else:
        result = unit.run(bits.conv2d, data, kernel, fmt, how, c, out_format=fmt, **geometry.options)
    return unit.deliver(geometry.narrowed(result), x.dtype, target)


def _convolution_backward(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    gradient: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    geometry = geometry_of(weight, (stride, padding, dilation, output_padding), groups)
    how = unit.accumulator(True, fmt)
    g, data, kernel = geometry.codes(gradient), geometry.codes(x), geometry.codes(weight)
    results: list[torch.Tensor | None] = [None, None, None]

    if transposed:
        data = geometry.adapted(data, g.shape, kernel.shape)

    def result(codes: Codes) -> torch.Tensor:
        return unit.deliver(geometry.narrowed(codes), x.dtype, None)

    if output_mask[0]:
        shape = geometry.shape(x.shape)
        results[0] = result(
            unit.run(bits.conv2d, g, kernel, fmt, how, out_format=fmt, **geometry.options)[:, :, : shape[2], : shape[3]]
            if transposed
            else unit.run(bits.conv2d_input_gradient, g, kernel, shape, fmt, how, out_format=fmt, **geometry.options)
        )
    if output_mask[1]:
        shape = geometry.shape(weight.shape)
        inputs, outputs = (g, data) if transposed else (data, g)
        results[1] = result(
            unit.run(bits.conv2d_weight_gradient, inputs, outputs, shape, fmt, how, out_format=fmt, **geometry.options)
        )
    if output_mask[2]:
        axes = [axis for axis in range(gradient.ndim) if axis != 1]
        results[2] = unit.deliver(summed(unit, fmt, codes_of(gradient), axes, True), x.dtype, None)
    return tuple(results)


CONVOLUTIONS["convolution"] = CONVOLUTIONS["convolution_overrideable"] = _convolution
CONVOLUTIONS["convolution_backward"] = CONVOLUTIONS["convolution_backward_overrideable"] = _convolution_backward
