"""Convolutions of codes over an `Accumulator`, and the gradients of conv2d: windows gathered piece by piece, each piece a matrix product.

`softfloat.bits` offers these functions. What they share:

layout
    "NHWC" has weights in HWIO, "NCHW" in OIHW; one-dimensional, "NWC" in WIO and "NCW" in OIW. I counts the input
    channels of one group.
order of k
    Kernel row, kernel column, input channel of the group, channels fastest. Where the accumulator has a
    `channel_group` of g, the channels of a group are filled up with +0 to a multiple of g, and k is group of g, kernel
    row, kernel column, channel within it: the passes of the IPU's AMP (poplibs, inlineAssemblerConv.hpp).
padding
    Operands +0; their products enter the accumulator like all others. So 0 * inf is INVALID there too.

Stochastic rounding addresses an output by its place in an array in NHWC or HWIO, whatever the layout: layouts change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Unpack, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softfloat.accumulators import Accumulator
from softfloat.bits.sums.products import Contraction, check_formats
from softfloat.bits.sums.windows import Geometry, Layout, Windows, shaped, spread
from softfloat.engine import Codes, Options, Problem, check_codes, is_nan
from softfloat.formats import Format

__all__ = ["conv1d", "conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"]

PIECE = 1 << 24  # codes of windows gathered at a time: 128 MiB as float64
SIDE_BY_SIDE = 64
"""Columns that the loops take together, about."""


def _array(codes: Any, fmt: Format, name: str, axes: str) -> Codes:
    array = check_codes(codes, fmt, name)
    if array.ndim != len(axes):
        raise ValueError(f"{name} must have the axes {', '.join(axes)}, got shape {array.shape}")
    return array


@lru_cache(maxsize=64)
def _moves(axes: str, wanted: str) -> tuple[int, ...]:
    return tuple(axes.index(x) for x in wanted if x in axes)


def with_axes(codes: Codes, axes: str, wanted: str) -> Codes:
    """A view with the axes in the order wanted; an H that is missing has length 1."""
    moved = codes.transpose(*_moves(axes, wanted))
    return moved if "H" in axes else np.expand_dims(moved, wanted.index("H"))


def _addend(contraction: Contraction, c: Any, shape: tuple[int, ...], layout: Layout) -> Codes | None:
    """Codes of c in the shape of the output; those of one axis go with channels."""
    if c is None:
        return None
    codes = check_codes(c, contraction.accumulator.partials, "c")
    if codes.ndim == 1:
        channels = shape[layout.data.index("C")]
        if codes.size not in (1, channels):
            raise ValueError(
                f"c of shape {codes.shape} does not fit; accepted: one for each of {channels} channels, or any shape "
                f"that broadcasts to the output's {shape}"
            )
        codes = codes.reshape([-1 if x == "C" else 1 for x in layout.data])
    return contraction.check_addend(codes, shape)


# -- windows ---------------------------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """Codes, what they are codes of, and what the caller calls them."""

    codes: Codes
    format: Format
    name: str

    def needs_zero(self) -> None:
        """Refuse formats that have none."""
        if not self.format.zero:
            raise ValueError(
                f"fmt of {self.name} must have a zero where windows are padded, gradients have strides, or the "
                f"accumulator fills up channels, and {self.format} has none"
            )


@lru_cache(maxsize=1024)
def surrounded(shape: tuple[int, int], windows: Windows) -> tuple[tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]:
    """(sizes of images with zeros between and around, where numbers go, and which ones)."""
    sizes, targets, sources = [], [], []
    for size, step, before, after in zip(shape, windows.spacing, windows.before, windows.after, strict=True):
        whole = spread(size, step) + before + after
        first = max(0, -(before // step))
        start = before + first * step
        kept = max(0, min(size - first, -(-(whole - start) // step)))
        sizes.append(whole)
        targets.append(slice(start, start + kept * step, step))
        sources.append(slice(first, first + kept))
    return tuple(sizes), tuple(targets), tuple(sources)


def in_zeros(data: Operand, windows: Windows, groups: int, chunk: int, planes: bool = False) -> Codes:
    """(N, H, W, C) as (N, H, W, groups, channels), with zeros between and around, and up to whole chunks of channels; in memory as it is, or
    channel by channel in `planes`."""
    images, height, width, channels = data.codes.shape
    each, (sizes, targets, sources) = channels // groups, surrounded((height, width), windows)
    whole = groups, -(-each // chunk) * chunk
    if planes:
        result = np.zeros((images, *whole, *sizes), data.codes.dtype).transpose(0, 3, 4, 1, 2)
    else:
        result = np.zeros((images, *sizes, *whole), data.codes.dtype)
    inner = result[:, targets[0], targets[1], :, :each]
    if inner.size < result.size:
        data.needs_zero()
    inner[...] = data.codes.reshape(images, height, width, groups, each)[:, sources[0], sources[1]]
    return result


def strided(array: Codes, shape: tuple[int, ...], strides: tuple[int, ...]) -> Codes:
    """A view with these strides, which stay within the array, to be read; NumPy makes one of what lies together in a fifth of the time."""
    if array.flags.c_contiguous and array.size:
        return np.ndarray(shape, array.dtype, array.data, strides=strides)
    return as_strided(array, shape, strides, writeable=False)


def windows_of(surrounded: Codes, windows: Windows, chunk: int) -> Codes:
    """(groups, N, rows, columns, chunks, kernel rows, kernel columns, channels of a chunk): a view."""
    images, _, _, groups, channels = surrounded.shape
    image, row, column, group, channel = surrounded.strides
    (down, right), (below, beside) = windows.stride, windows.dilation
    shape = groups, images, *windows.counts, channels // chunk, *windows.kernel, chunk
    steps = group, image, row * down, column * right, channel * chunk, row * below, column * beside, channel
    return strided(surrounded, shape, steps)


def kernel_matrices(weights: Operand, groups: int, chunk: int) -> Codes:
    """(H, W, I, O) as (groups, k, O of a group), in the order of `windows_of`, zeros up to whole chunks."""
    height, width, inputs, outputs = weights.codes.shape
    chunks = -(-inputs // chunk)
    if chunks * chunk > inputs:
        weights.needs_zero()
    filled = np.zeros((height, width, chunks * chunk, outputs), weights.codes.dtype)
    filled[:, :, :inputs] = weights.codes
    split = filled.reshape(height, width, chunks, chunk, groups, outputs // groups)
    return split.transpose(4, 2, 0, 1, 3, 5).reshape(groups, chunks * height * width * chunk, outputs // groups)


class Grid(NamedTuple):
    """The outputs of one group: three axes that have a window each, and the columns of a matrix.

    Attributes
    ----------
    windows : array
        (three axes, axes of k): a view.
    matrix : array
        (k, columns).
    addend : array, or None
        (three axes, columns).
    first : int
        Number of the first output: those of other groups come between one window's and the next's.
    distance : int
        Between the numbers of a window's outputs and the next's. Columns follow each other.
    """

    windows: Codes
    matrix: Codes
    addend: Codes | None
    first: int
    distance: int


def _boxes(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Pieces of three axes, each of consecutive places, `most` or fewer."""
    axis = next(x for x in range(3) if math.prod(shape[x + 1 :]) <= most or x == 2)
    step = max(1, most // max(math.prod(shape[axis + 1 :]), 1))
    for place in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            piece = slice(start, min(start + step, shape[axis]))
            yield (*(slice(x, x + 1) for x in place), piece, *(slice(0, x) for x in shape[axis + 1 :]))


def _problems(grid: Grid, swapped: bool) -> Iterator[Problem]:
    """A grid in pieces, with windows as rows; as columns if `swapped`."""
    length, columns = grid.matrix.shape
    index = grid.first
    for box in _boxes(grid.windows.shape[:3], PIECE // max(length, 1)):
        windows = grid.windows[box]
        count = math.prod(windows.shape[:3])
        c = None if grid.addend is None else grid.addend[box].reshape(count, columns)
        if swapped:
            moved = windows.transpose(*range(3, windows.ndim), 0, 1, 2).reshape(length, count)
            start = None if c is None else c.T
            yield Problem(grid.matrix.T, moved, start, False, index, 1, grid.distance)
        else:
            rows = windows.reshape(count, length)
            yield Problem(rows, grid.matrix, c, False, index, grid.distance, 1)
        index += count * grid.distance


Stack = tuple[Codes, Codes, Codes | None]
"""Of all groups: (groups, three axes, axes of k), (groups, k, columns), (three axes, all columns)."""


def _one_by_one(windows: Codes, matrices: Codes, addend: Codes | None) -> Iterator[Problem]:
    """Groups of one column in pieces: every output has a window and a column of its own."""
    groups, length, _ = matrices.shape
    index = 0
    for box in _boxes(windows.shape[1:4], max(PIECE // max(length * groups, 1), 1)):
        taken = windows[:, *box]
        count = math.prod(taken.shape[1:4])
        a = taken.transpose(*range(4, taken.ndim), 1, 2, 3, 0).reshape(length, count * groups)
        b = np.broadcast_to(matrices[:, :, 0].T[:, None], (length, count, groups)).reshape(length, count * groups)
        c = None if addend is None else addend[box].reshape(1, count * groups)
        yield Problem(a, b, c, True, index, 0, 1)
        index += count * groups


def _contract(
    contraction: Contraction, stack: Stack, shape: tuple[int, ...], axes: str, wanted: str, operands: list[Operand]
) -> Any:
    """All grids of a call. The loops take many columns at a time: grids of few columns and more rows are transposed.

    Outputs are numbered in the order of the axes `wanted`; the array returned has a shape in the order `axes`.
    """
    grids, (groups, length, columns) = _grids(*stack), stack[1].shape
    planned = contraction.program(length)
    count = min(math.prod(grids[0].windows.shape[:3]), max(PIECE // max(length, 1), 1))
    lanes = SIDE_BY_SIDE
    lone = columns == 1 < groups
    swapped = not lone and columns * -(-count // lanes) < count * -(-columns // lanes)
    if swapped and planned.policy.propagate:  # of two NaNs the first survives
        swapped = not all(np.any(is_nan(x.codes, x.format)) for x in operands)
    if swapped:
        contraction.formats = contraction.formats[1], contraction.formats[0]
    problems = _one_by_one(*stack) if lone else (x for grid in grids for x in _problems(grid, swapped))
    numbered = [x for x in wanted if x in axes]
    moved = [numbered.index(x) for x in axes]
    ordered = tuple(shape[axes.index(x)] for x in numbered)
    return contraction.run(problems, length, ordered, [x.codes for x in operands], axes=moved)


def _convolve(
    contraction: Contraction,
    data: Operand,
    weights: Operand,
    windows: Windows,
    groups: int,
    c: Codes | None,
    shape: tuple[int, ...],
    layout: Layout,
) -> Any:
    """The convolution of (N, H, W, C) and (H, W, I, O). The output's `shape`, and c, are in the layout."""
    chunk = contraction.accumulator.channel_group or max(weights.codes.shape[2], 1)
    gathered = windows_of(in_zeros(data, windows, groups, chunk), windows, chunk)
    matrices = kernel_matrices(weights, groups, chunk)
    addend = None if c is None else with_axes(c, layout.data, "NHWC")
    return _contract(contraction, (gathered, matrices, addend), shape, layout.data, "NHWC", [data, weights])


def _grids(windows: Codes, matrices: Codes, addend: Codes | None) -> list[Grid]:
    """One for each group of a `Stack`."""
    groups, _, columns = matrices.shape
    starts = range(0, groups * columns, columns) if columns else [0] * groups
    return [
        Grid(x, y, None if addend is None else addend[..., start : start + columns], start, groups * columns)
        for x, y, start in zip(windows, matrices, starts, strict=True)
    ]


# -- public ----------------------------------------------------------------------------------------------------------


class Keywords(Options, total=False):
    """What convolutions and their gradients take beside operands; `conv2d` says what is accepted."""

    stride: Any
    padding: Any
    dilation: Any
    groups: int
    layout: str
    out_format: Format | str | None
    count: bool


DEFAULTS: dict[str, Any] = {
    "stride": 1,
    "padding": "valid",
    "dilation": 1,
    "groups": 1,
    "layout": "NHWC",
    "out_format": None,
    "count": False,
}


def _opened(
    function: Callable[..., Any], fmt: Any, accumulator: Accumulator, keywords: Keywords
) -> tuple[Geometry, Layout, Contraction]:
    """What a call's keywords say."""
    given = {**KEYWORDS[function.__name__], **keywords}
    geometry = Geometry(*map(given.pop, Geometry._fields))
    axes = geometry.axes(1 if function is conv1d else 2)
    out_format, count = given.pop("out_format"), given.pop("count")
    return geometry, axes, Contraction(check_formats(fmt), accumulator, out_format, count, cast(Options, given))


def _forward(
    function: Callable[..., Any],
    inputs: Any,
    weights: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any,
    keywords: Keywords,
) -> Any:
    geometry, axes, contraction = _opened(function, fmt, accumulator, keywords)
    first, second = contraction.formats
    x = _array(inputs, first, "inputs", axes.data)
    w = _array(weights, second, "weights", axes.weights)
    checked = geometry.over(x.shape, w.shape)
    chunk = contraction.accumulator.channel_group or max(checked.inputs, 1)
    length = -(-checked.inputs // chunk) * chunk * math.prod(checked.windows.kernel)
    contraction.only(length, c, keywords.get("out_format"), function.__name__)
    return _convolve(
        contraction,
        Operand(with_axes(x, axes.data, "NHWC"), first, "inputs"),
        Operand(with_axes(w, axes.weights, "HWIO"), second, "weights"),
        checked.windows,
        checked.groups,
        _addend(contraction, c, checked.shape, axes),
        checked.shape,
        axes,
    )


def conv1d(
    inputs: Any,
    weights: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    **keywords: Unpack[Keywords],
) -> Any:
    """`conv2d` with one spatial axis: inputs (N, W, C) and weights (W, I, O), or with "NCW" (N, C, W) and (O, I, W).

    >>> from softfloat.accumulators import fma
    >>> one, two = 0x3C00, 0x4000
    >>> codes, flags = conv1d([[[one], [two], [one]]], [[[one]], [[two]]], "float16", fma("float16"))
    >>> [hex(x) for x in codes.ravel()]  # 1*1 + 2*2, 2*1 + 1*2
    ['0x4500', '0x4400']
    """
    return _forward(conv1d, inputs, weights, fmt, accumulator, c, keywords)


def conv2d(
    inputs: Any,
    weights: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    **keywords: Unpack[Keywords],
) -> Any:
    """Convolution without flipping the kernel, as neural networks have it, each output summed by an accumulator.

    Parameters
    ----------
    inputs : array_like of int
        Codes, (N, H, W, C), or (N, C, H, W) with layout "NCHW".
    weights : array_like of int
        Codes, (H, W, I, O), or (O, I, H, W) with layout "NCHW"; I is C / groups.
    fmt : Format, str, or a pair of them
        What both are codes of, or inputs and weights.
    accumulator : Accumulator
        How to sum; see `softfloat.accumulators`.
    c : array_like of int, optional
        Codes in the partials format: where sums start. One axis is a bias for each output channel, in both layouts;
        other shapes broadcast to the output's.
    stride, dilation : int or sequence of int
        At least 1; one for rows and columns, or one each.
    padding : "valid", "same", int, or a sequence of int or pairs
        Zeros around the inputs: none; as many as make ceil(H / stride) outputs, the smaller half first (TensorFlow,
        JAX); or so many, for each axis if it is a sequence, before and after if that holds pairs.
    groups : int
        Groups of channels that have nothing to do with each other; C for a depthwise convolution.
    layout : str
        "NHWC" or "NCHW".
    out_format : Format or str, optional
        Of the output; default as the accumulator says, mostly the partials format.
    count : bool
        Return `Counts` as well.

    Returns
    -------
    codes : array of the output format's dtype
        In the layout of the inputs.
    flags : array of uint8, or int
        Everything the roundings of an output raised; INVALID also for signalling operands, 0 * inf and inf - inf.
    counts : Counts
        If `count`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: shapes that do not fit, kernels larger than padded inputs, formats the accumulator does not
        take, formats without zero where padding or filled channels need one.

    Notes
    -----
    k is kernel row, kernel column, input channel, channels fastest; with `Accumulator.channel_group` g it is group of g
    channels, kernel row, kernel column, channel, the last group filled up with products +0. Padding is +0 and has its
    products, too. Windows are gathered some 2^24 codes at a time.

    Source: TensorFlow, `tf.nn.convolution`, for "same"; poplibs, inlineAssemblerConv.hpp, for groups of channels.

    >>> from softfloat.accumulators import mul_add
    >>> import numpy as np
    >>> ones = np.full((1, 3, 3, 1), 0x3C00, np.uint16)
    >>> codes, flags = conv2d(ones, ones.reshape(3, 3, 1, 1), "float16", mul_add("float16"), padding="same")
    >>> [[hex(x) for x in row] for row in codes[0, :, :, 0]]  # 4, 6 and 9
    [['0x4400', '0x4600', '0x4400'], ['0x4600', '0x4880', '0x4600'], ['0x4400', '0x4600', '0x4400']]
    """
    return _forward(conv2d, inputs, weights, fmt, accumulator, c, keywords)


def conv2d_input_gradient(
    gradient: Any,
    weights: Any,
    input_shape: Sequence[int],
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    **keywords: Unpack[Keywords],
) -> Any:
    """The gradient of `conv2d` for its inputs: a convolution of the gradient, zeros between and around, with the flipped kernel.

    Parameters
    ----------
    gradient : array_like of int
        Codes, of the shape of the outputs.
    weights : array_like of int
        As in `conv2d`.
    input_shape : sequence of int
        The shape of the inputs, and of the result.
    fmt : Format, str, or a pair of them
        What both are codes of, or gradient and weights.

    Notes
    -----
    Other parameters, results and errors are those of `conv2d`; a c of one axis goes with input channels.

    Each result is a sum over k of row and column of the flipped kernel and output channel of the group, channels
    fastest, or in groups of channels as in `conv2d`. Where `stride` left an input out, and beyond the edges, the
    gradient is +0; all these products enter the accumulator.
    """
    geometry, axes, contraction = _opened(conv2d_input_gradient, fmt, accumulator, keywords)
    first, second = contraction.formats
    g = _array(gradient, first, "gradient", axes.data)
    w = _array(weights, second, "weights", axes.weights)
    shape = shaped("input_shape", input_shape, axes.data)
    checked = geometry.over(shape, w.shape)
    checked.check_gradient(g)
    flipped = with_axes(w, axes.weights, "HWIO")[::-1, ::-1]
    split = flipped.reshape(*flipped.shape[:3], checked.groups, checked.outputs).transpose(0, 1, 4, 3, 2)
    turned = split.reshape(*split.shape[:3], checked.groups * checked.inputs)
    return _convolve(
        contraction,
        Operand(with_axes(g, axes.data, "NHWC"), first, "gradient"),
        Operand(turned, second, "weights"),
        checked.windows.transposed(),
        checked.groups,
        _addend(contraction, c, shape, axes),
        shape,
        axes,
    )


def conv2d_weight_gradient(
    inputs: Any,
    gradient: Any,
    weight_shape: Sequence[int],
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    **keywords: Unpack[Keywords],
) -> Any:
    """The gradient of `conv2d` for its weights: each a sum over all windows that the weight had a part in.

    Parameters
    ----------
    inputs : array_like of int
        As in `conv2d`.
    gradient : array_like of int
        Codes, of the shape of the outputs.
    weight_shape : sequence of int
        The shape of the weights, and of the result.
    fmt : Format, str, or a pair of them
        What both are codes of, or inputs and gradient.
    c : array_like of int, optional
        Codes in the partials format, of a shape that broadcasts to `weight_shape`.

    Notes
    -----
    Other parameters, results and errors are those of `conv2d`.

    k is image, output row, output column, columns fastest. Products with padding enter the accumulator. There are no
    groups of channels to fill up: k has no channels.
    """
    geometry, axes, contraction = _opened(conv2d_weight_gradient, fmt, accumulator, keywords)
    first, second = contraction.formats
    x = _array(inputs, first, "inputs", axes.data)
    g = _array(gradient, second, "gradient", axes.data)
    shape = shaped("weight_shape", weight_shape, axes.weights)
    checked = geometry.over(x.shape, shape, "weight_shape")
    checked.check_gradient(g)
    start = contraction.check_addend(c, shape)
    data, other = Operand(with_axes(x, axes.data, "NHWC"), first, "inputs"), Operand(g, second, "gradient")
    chunk, outputs = max(checked.inputs, 1), checked.outputs
    gathered = windows_of(in_zeros(data, checked.windows, checked.groups, chunk), checked.windows, chunk)
    turned = gathered.transpose(0, 5, 6, 7, 1, 2, 3, 4)  # groups; H and W of the kernel, I; N, H, W; 1
    matrix = with_axes(g, axes.data, "NHWC").reshape(math.prod(gathered.shape[1:4]), checked.groups, outputs)
    addend = None if start is None else with_axes(start, axes.weights, "HWIO")
    stack = turned, matrix.transpose(1, 0, 2), addend
    return _contract(contraction, stack, shape, axes.weights, "HWIO", [data, other])


KEYWORDS = dict.fromkeys(__all__, DEFAULTS) | {"conv1d": {**DEFAULTS, "layout": "NWC"}}
"""Function -> what its keywords stand at."""
