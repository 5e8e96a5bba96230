"""Products and sums of products: matrix products, convolutions and their gradients, sums.

The accumulator rounds to the tensors' format at the end. An addend (bias) is where the sum starts, in the format of
partials. A `beta` other than 1 is a product of its own, rounded into that format: beta*input starts the sum. With an `alpha`
the sum stays in the format of partials, whose range it may need, until alpha*sum + addend is rounded, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.bits.sums.windows import Geometry
from softfloat.formats import Format, float32
from softfloat.torch.operators.bridge import Codes, UnsupportedArguments, codes_of
from softfloat.torch.operators.unit import Unit

__all__ = ["CONVOLUTIONS", "PRODUCTS", "grouped", "grouped_arguments", "times_alpha", "times_beta"]


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
    how = unit.accumulator("matmul", fmt)
    options: dict[str, Any] = {"out_format": fmt}
    c_format = fmt
    if beta == 0:
        c = None
    elif c is not None and beta != 1:
        c, c_format = times_beta(unit, c, fmt, beta, how.partials), how.partials
    if alpha != 1:
        sums = unit.run(bits.matmul, a, b, fmt, how, out_format=how.partials)
        return times_alpha(unit, sums, how.partials, alpha, c, c_format, fmt)
    if c is None:
        return unit.run(bits.matmul, a, b, fmt, how, **options)
    shape = (*a.shape[:-1], *b.shape[-1:]) if b.ndim > 1 else a.shape[:-1]
    start = np.broadcast_to(addend(unit, np.asarray(c), c_format, how), shape)
    return unit.run(bits.matmul, a, b, fmt, how, start, **options)


def times_beta(unit: Unit, c: Codes, fmt: Format, beta: Any, wide: Format) -> Codes:
    """beta*c in the format of partials."""
    return unit.run(bits.mul, c, unit.number(beta, wide), fmt, b_format=wide, out_format=wide)


def times_alpha(
    unit: Unit, sums: Codes, wide: Format, alpha: Any, c: Codes | None, c_format: Format, fmt: Format
) -> Codes:
    """alpha*sums + c, rounded once, of sums in a format of their own."""
    factor = np.broadcast_to(unit.number(alpha, wide), np.shape(sums))
    if c is None:
        return unit.run(bits.mul, sums, factor, wide, out_format=fmt)
    return unit.run(bits.fma, sums, factor, np.broadcast_to(c, np.shape(sums)), wide, c_format=c_format, out_format=fmt)


@product("mm")
@product("bmm")
@product("mv")
@product("dot")
@product("vdot")
def _matmul(unit: Unit, fmt: Format, target: torch.Tensor | None, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return unit.deliver(multiplied(unit, fmt, codes_of(a), codes_of(b)), a.dtype, target)


Arranged = Callable[[Codes, Codes], tuple[Codes, Codes]]
"""The operands of one matrix product, from those of the operator."""


def _added(arrange: Arranged = lambda a, b: (a, b)) -> Handler:
    """What adds a matrix product to its first tensor."""

    def handler(
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
        operands = arrange(codes_of(a), codes_of(b))
        return unit.deliver(multiplied(unit, fmt, *operands, codes_of(c), beta, alpha), a.dtype, target)

    return handler


def _one_sum(a: Codes, b: Codes) -> tuple[Codes, Codes]:
    """Over batch and k."""
    return a.transpose(1, 0, 2).reshape(a.shape[1], -1), b.reshape(-1, b.shape[2])


PRODUCTS["addmm"] = PRODUCTS["baddbmm"] = PRODUCTS["addmv"] = _added()
PRODUCTS["addbmm"] = _added(_one_sum)
PRODUCTS["addr"] = _added(lambda a, b: (a[:, None], b[None]))


class Group(NamedTuple):
    """One product of a grouped one: where its operands lie in those of the operator, and its result."""

    first: Any
    second: Any
    result: Any


def grouped(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor | None) -> tuple[tuple[int, ...], list[Group]]:
    """(shape of the result, its products) of `torch.nn.functional.grouped_mm`. `ends`: where groups of rows, columns or k end.

    What belongs to no group is zero.
    """
    m, n = a.shape[-2], b.shape[-1]
    if a.ndim == b.ndim == 3:
        return (len(a), m, n), [Group(g, g, g) for g in range(len(a))]
    places = [0, *([] if ends is None else ends.tolist())]
    spans = [slice(start, max(start, end)) for start, end in pairwise(places)]
    every = slice(None)
    if a.ndim == 2 and b.ndim == 3:
        return (m, n), [Group(rows, g, rows) for g, rows in enumerate(spans)]
    if a.ndim == 3:
        return (m, n), [Group(g, (every, columns), (every, columns)) for g, columns in enumerate(spans)]
    return (len(spans), m, n), [Group((every, k), k, g) for g, k in enumerate(spans)]


def grouped_arguments(given: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Operands and ends of groups, by the names of the operator's arguments."""
    for name in ("bias", "out_dtype"):
        if given.get(name) is not None:
            raise UnsupportedArguments(
                f"argument {name} of grouped products is not emulated; add it, or cast, afterwards"
            )
    return given["self"], given["mat2"], given.get("offs")


@product("_grouped_mm")
def _grouped(
    unit: Unit,
    fmt: Format,
    target: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    offs: torch.Tensor | None = None,
) -> torch.Tensor:
    x, y = codes_of(a), codes_of(b)
    shape, groups = grouped(a, b, offs)
    result = np.zeros(shape, x.dtype)
    for group in groups:
        result[group.result] = multiplied(unit, fmt, x[group.first], y[group.second])
    return unit.deliver(result, a.dtype, target)


def summed(unit: Unit, fmt: Format, codes: Codes, axes: Sequence[int], use: str = "matmul") -> Codes:
    """Sums over some axes, in C order of those, by the accumulator of products."""
    kept = [axis for axis in range(codes.ndim) if axis not in axes]
    length = math.prod(codes.shape[axis] for axis in axes)
    shape = [codes.shape[axis] for axis in kept]
    flat = codes.transpose([*axes, *kept]).reshape(length, math.prod(shape))
    how = unit.accumulator(use, fmt)
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


class Runner(NamedTuple):
    """Runs convolutions of codes of a format, summed by an accumulator."""

    unit: Unit
    format: Format
    how: Accumulator

    def __call__(
        self, function: Callable[..., Any], a: Codes, b: Codes, c: Codes | None, options: dict[str, Any], *shape: Any
    ) -> Codes:
        """One function of `softfloat.bits`; `options` are a `Geometry`'s, `shape` is that of a gradient."""
        return self.unit.run(function, a, b, *shape, self.format, self.how, c, out_format=self.format, **options)


class Spatial(NamedTuple):
    """A convolution with one, two or three spatial axes, and how `softfloat.bits`, whose convolutions have two, does it.

    With one axis there is a second of length 1. With three, windows along the first, depth, are laid side by side: for
    each place of depth an image, whose channels are those of the planes in its window. So k is kernel row, kernel
    column, and within a group of channels the plane of the kernel and the channel, channels fastest.

    Attributes
    ----------
    stride, padding, dilation, output_padding : tuple of int
        One for each spatial axis.
    options : dict
        The `Geometry` of the last two axes, as keywords.
    """

    axes: int
    groups: int
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    options: dict[str, Any]

    # -- shapes --

    def adapted(self, codes: Codes, inputs: Sequence[int], kernel: Sequence[int]) -> Codes:
        """Codes of a transposed convolution's inputs, with as many places as a convolution from its outputs' shape gives.

        Output padding of a stride or more, which dilation allows, makes room for more windows than there are inputs:
        there, zeros.
        """
        counts = [
            (inputs[axis + 2] + 2 * padding - dilation * (kernel[axis + 2] - 1) - 1) // stride + 1
            for axis, (stride, padding, dilation) in enumerate(
                zip(self.stride, self.padding, self.dilation, strict=True)
            )
        ]
        more = [(0, count - have) for count, have in zip(counts, codes.shape[2:], strict=True)]
        return np.pad(codes, [(0, 0), (0, 0), *more]) if any(after for _, after in more) else codes

    def transposed_shape(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[int, ...]:
        """The output's shape of a transposed convolution."""
        sizes = [
            (x.shape[axis + 2] - 1) * stride - 2 * padding + dilation * (weight.shape[axis + 2] - 1) + beyond + 1
            for axis, (stride, padding, dilation, beyond) in enumerate(
                zip(self.stride, self.padding, self.dilation, self.output_padding, strict=True)
            )
        ]
        return (x.shape[0], weight.shape[1] * self.groups, *sizes)

    # -- depth --

    def _planes(self, kernel: int, outputs: int, inputs: int) -> Codes:
        """The plane of inputs under each place of the kernel's depth, for each place of the outputs'; -1: none."""
        places = np.arange(outputs)[:, None] * self.stride[0] + np.arange(kernel) * self.dilation[0] - self.padding[0]
        return np.where((places >= 0) & (places < inputs), places, -1)

    def _meetings(self, kernel: int, inputs: int, outputs: int) -> Codes:
        """The plane of outputs that met a plane of inputs under each place of the kernel's depth, last place first; -1: none."""
        spread = np.arange(inputs)[:, None] + self.padding[0] - np.arange(kernel)[::-1] * self.dilation[0]
        places = spread // self.stride[0]
        return np.where((spread % self.stride[0] == 0) & (places >= 0) & (places < outputs), places, -1)

    def _laid_out(self, codes: Codes, planes: Codes) -> Codes:
        """(N, C, depth, H, W) as (N * places, groups * kernel depth * C / groups, H, W), zeros where there is no plane."""
        taken = codes[:, :, planes]
        taken[:, :, planes < 0] = 0
        images, channels, places, depth, *image = taken.shape
        split = taken.reshape(images, self.groups, channels // self.groups, places, depth, *image)
        return split.transpose(0, 3, 1, 4, 2, 5, 6).reshape(images * places, depth * channels, *image)

    @staticmethod
    def _images(codes: Codes) -> Codes:
        """(N, C, depth, H, W) as (N * depth, C, H, W)."""
        return codes.transpose(0, 2, 1, 3, 4).reshape(-1, codes.shape[1], *codes.shape[3:])

    @staticmethod
    def _volumes(codes: Codes, images: int) -> Codes:
        """The way back."""
        return codes.reshape(images, -1, *codes.shape[1:]).transpose(0, 2, 1, 3, 4)

    # -- the convolution and its gradients --

    def outputs(self, run: Runner, x: Codes, weight: Codes, c: Codes | None = None) -> Codes:
        """Outputs, from inputs and weights as PyTorch has them."""
        if self.axes == 1:
            return run(bits.conv2d, x[:, :, None], weight[:, :, None], c, self.options)[:, :, 0]
        if self.axes == 2:
            return run(bits.conv2d, x, weight, c, self.options)
        depth = (weight.shape[2] - 1) * self.dilation[0] + 1
        outputs = max((x.shape[2] + 2 * self.padding[0] - depth) // self.stride[0] + 1, 0)
        laid_out = self._laid_out(x, self._planes(weight.shape[2], outputs, x.shape[2]))
        flat = weight.transpose(0, 2, 1, 3, 4).reshape(weight.shape[0], -1, *weight.shape[3:])
        return self._volumes(run(bits.conv2d, laid_out, flat, c, self.options), x.shape[0])

    def input_gradient(
        self, run: Runner, gradient: Codes, weight: Codes, shape: Sequence[int], c: Codes | None = None
    ) -> Codes:
        """That of inputs of some shape, from the outputs'."""
        function, shape = bits.conv2d_input_gradient, tuple(shape)
        if self.axes == 1:
            wide = (*shape[:2], 1, *shape[2:])
            return run(function, gradient[:, :, None], weight[:, :, None], c, self.options, wide)[:, :, 0]
        if self.axes == 2:
            return run(function, gradient, weight, c, self.options, shape)
        outputs, inputs, depth, *kernel = weight.shape
        laid_out = self._laid_out(gradient, self._meetings(depth, shape[2], gradient.shape[2]))
        split = weight[:, :, ::-1].reshape(self.groups, outputs // self.groups, inputs, depth, *kernel)
        flat = split.transpose(0, 3, 1, 2, 4, 5).reshape(outputs * depth, inputs, *kernel)
        image = (shape[0] * shape[2], shape[1], *shape[3:])
        return self._volumes(run(function, laid_out, flat, c, self.options, image), shape[0])

    def weight_gradient(self, run: Runner, x: Codes, gradient: Codes, shape: Sequence[int]) -> Codes:
        """That of weights of some shape, from inputs and the outputs' gradient."""
        function, shape = bits.conv2d_weight_gradient, tuple(shape)
        if self.axes == 1:
            wide = (*shape[:2], 1, *shape[2:])
            return run(function, x[:, :, None], gradient[:, :, None], None, self.options, wide)[:, :, 0]
        if self.axes == 2:
            return run(function, x, gradient, None, self.options, shape)
        outputs, inputs, depth, *kernel = shape
        laid_out = self._laid_out(x, self._planes(depth, gradient.shape[2], x.shape[2]))
        flat = outputs, depth * inputs, *kernel
        found = run(function, laid_out, self._images(gradient), None, self.options, flat)
        return found.reshape(outputs, depth, inputs, *kernel).transpose(0, 2, 1, 3, 4)


@lru_cache(maxsize=1024)
def _spatial(axes: int, groups: int, *each: tuple[int, ...]) -> Spatial:
    if axes not in (1, 2, 3):
        raise UnsupportedArguments(f"convolutions have 1, 2 or 3 spatial axes, got {axes}")
    for name, x in zip(("stride", "padding", "dilation", "output_padding"), each, strict=True):
        if len(x) not in (1, axes):
            raise RuntimeError(f"{name} must be one integer or {axes}, one for each spatial axis, got {list(x)}")
    stride, padding, dilation, output_padding = (x * (axes if len(x) == 1 else 1) for x in each)
    rows = (1,) * (2 - axes)  # those of a convolution that has columns alone
    geometry = Geometry(
        stride=(*rows, *stride)[-2:],
        padding=(*(0 for _ in rows), *padding)[-2:],
        dilation=(*rows, *dilation)[-2:],
        groups=groups,
        layout="NCHW",
    )
    return Spatial(axes, groups, stride, padding, dilation, output_padding, geometry._asdict())


def spatial(weight: torch.Tensor, groups: int, *each: Sequence[int]) -> Spatial:
    """That of weights, and stride, padding, dilation and output padding."""
    return _spatial(weight.ndim - 2, groups, *map(tuple, each))


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
    convolution = spatial(weight, groups, stride, padding, dilation, output_padding)
    how = unit.accumulator("convolution", fmt)
    run = Runner(unit, fmt, how)
    c = None if bias is None else addend(unit, codes_of(bias), fmt, how)
    data, kernel = codes_of(x), codes_of(weight)
    if transposed:
        shape = convolution.transposed_shape(x, weight)
        result = convolution.input_gradient(run, convolution.adapted(data, shape, kernel.shape), kernel, shape, c)
    else:
        result = convolution.outputs(run, data, kernel, c)
    return unit.deliver(result, x.dtype, target)


def _traced_convolution(unit: Unit, fmt: Format, target: torch.Tensor | None, *args: Any) -> torch.Tensor:
    """What `torch.jit.trace` records: with four switches of other devices at the end."""
    return _convolution(unit, fmt, target, *args[:-4])


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
    convolution = spatial(weight, groups, stride, padding, dilation, output_padding)
    run = Runner(unit, fmt, unit.accumulator("convolution", fmt))
    g, data, kernel = codes_of(gradient), codes_of(x), codes_of(weight)
    results: list[Codes | None] = [None, None, None]
    if transposed:
        data = convolution.adapted(data, g.shape, kernel.shape)
    if output_mask[0] and transposed:
        found = convolution.outputs(run, g, kernel)
        results[0] = found[tuple(slice(size) for size in x.shape)]
    elif output_mask[0]:
        results[0] = convolution.input_gradient(run, g, kernel, x.shape)
    if output_mask[1]:
        inputs, outputs = (g, data) if transposed else (data, g)
        results[1] = convolution.weight_gradient(run, inputs, outputs, kernel.shape)
    if output_mask[2]:
        axes = [axis for axis in range(gradient.ndim) if axis != 1]
        results[2] = summed(unit, fmt, g, axes, "convolution")
    return tuple(None if codes is None else unit.deliver(codes, x.dtype, None) for codes in results)


CONVOLUTIONS["convolution"] = CONVOLUTIONS["convolution_overrideable"] = _convolution
CONVOLUTIONS["_convolution"] = _traced_convolution
CONVOLUTIONS["convolution_backward"] = CONVOLUTIONS["convolution_backward_overrideable"] = _convolution_backward
