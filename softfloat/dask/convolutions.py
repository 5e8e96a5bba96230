"""Convolutions of arrays in blocks: outputs are cut where inputs are, each block with the rows and columns that its windows reach over."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import getitem
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import accumulator_for
from softfloat.bits.sums.windows import Convolution, Geometry, spread
from softfloat.dask.blocks import parts, task
from softfloat.dask.collections import DaskArray
from softfloat.dask.products import Cut, Sums, both
from softfloat.engine import Codes, check_boolean
from softfloat.formats import Format, check_format

__all__ = ["conv2d"]

Range = tuple[int, int]


class Span(NamedTuple):
    """Outputs along an axis that one block has: which, the inputs that their windows reach, zeros before and after those."""

    outputs: Range
    inputs: Range
    zeros: Range


def spans(size: int, lengths: Sequence[int], stride: int, reach: int, before: int, count: int) -> list[Span]:
    """An axis of `size` inputs in chunks: each has the windows that begin in it, the first and the last those beyond.

    `reach` is the length of a window, `before` the zeros before the inputs, `count` the number of windows.

    >>> spans(6, (4, 2), 1, 3, 1, 6)
    [Span(outputs=(0, 5), inputs=(0, 6), zeros=(1, 0)), Span(outputs=(5, 6), inputs=(4, 6), zeros=(0, 1))]
    """
    ends = [min(count, max(0, -(-(end + before) // stride))) for end in itertools.accumulate(lengths)]
    ends[-1] = count
    found: list[Span] = []
    for first, last in itertools.pairwise([0, *ends]):
        if first < last or (not count and not found):
            start, stop = first * stride - before, spread(last - first, stride) + first * stride - before + reach - 1
            around = min(max(-start, 0), stop - start), min(max(stop - size, 0), stop - start)
            found.append(Span((first, last), (min(max(start, 0), size), min(max(stop, 0), size)), around))
    return found


def _reached(lengths: Sequence[int], wanted: Range) -> list[tuple[int, slice | None]]:
    """(chunk, what of it; None for all) of a range."""
    found: list[tuple[int, slice | None]] = []
    start = 0
    for number, length in enumerate(lengths):
        first, last = max(wanted[0] - start, 0), min(wanted[1] - start, length)
        if first < last:
            found.append((number, None if last - first == length else slice(first, last)))
        start += length
    return found or [(0, slice(0, 0))]


def _piece(x: DaskArray, blocks: Any, ranges: Sequence[Range]) -> Any:
    """The task that gives a part of an array, of whatever blocks it lies in: of each no more than is needed."""
    along = [_reached(lengths, wanted) for lengths, wanted in zip(x.chunks, ranges, strict=True)]
    table = np.empty([len(axis) for axis in along], object)
    for place in np.ndindex(table.shape):
        chosen = [axis[i] for axis, i in zip(along, place, strict=True)]
        block, taken = blocks[tuple(number for number, _ in chosen)], [part for _, part in chosen]
        whole = all(part is None for part in taken)
        table[place] = block if whole else task(getitem, block, tuple(part or slice(None) for part in taken))
    return table.item() if table.size == 1 else task(np.block, table.tolist())


class Channels(NamedTuple):
    """Output channels of one block, the input channels that they read, and in how many groups."""

    outputs: Range
    inputs: Range
    groups: int


def _channels(lengths: Sequence[int], checked: Convolution) -> list[Channels]:
    """Output channels in chunks, each of whole groups or within one."""
    found = []
    for start, stop in itertools.pairwise([0, *itertools.accumulate(lengths)]):
        first, last = start // checked.outputs, max(-(-stop // checked.outputs), start // checked.outputs + 1)
        whole = start % checked.outputs == stop % checked.outputs == 0
        if not whole and last - first > 1:
            raise ValueError(
                f"weights of conv2d have chunks {tuple(lengths)} of output channels in groups of {checked.outputs}: accepted: chunks of whole "
                "groups, or within one, by rechunk"
            )
        groups = last - first if whole else 1
        found.append(Channels((start, stop), (first * checked.inputs, (first + groups) * checked.inputs), groups))
    return found


def _cut(how: Accumulator, lengths: Sequence[int], checked: Convolution) -> Cut:
    """How chunks of input channels are summed; segments are counted in channels.

    Raises
    ------
    ValueError
        Where the accumulator does not cut k between them.
    """
    ends = list(itertools.accumulate(lengths))
    kernel, group = int(np.prod(checked.windows.kernel)), how.channel_group or 1
    length = -(-checked.inputs // group) * group
    if not any(end % checked.inputs for end in ends):
        return Cut(length * kernel, [])
    way_out = (
        f"conv2d with {how!r} cuts chunks {tuple(lengths)} of input channels out of the middle of its sums: accepted: "
        f"one chunk of all {ends[-1]}, by rechunk"
    )
    if checked.groups > 1:
        raise ValueError(f"{way_out}, or chunks of whole groups, multiples of {checked.inputs}")
    if not how.reduction or (kernel > 1 and how.channel_group is None):
        more = "a kernel of 1 by 1, or a channel_group, and segments" if kernel > 1 else "segments"
        raise ValueError(f"{way_out}, or an accumulator with {more}")
    ends[-1] = length
    bounds = bits.segments(how, length * kernel)
    fits = [stop // kernel for _, stop in bounds if stop % (kernel * group) == 0]
    if len(fits) < len(bounds):
        raise ValueError(f"{way_out}; its segments end between channels of a window")
    if not set(ends) <= set(fits):
        shown = ", ".join(map(str, fits[:4])) + (" ..." if len(fits) > 4 else "")
        raise ValueError(f"{way_out}, or chunks that end after {shown} channels")
    segments = [
        [
            (n, start // kernel - begin, stop // kernel - begin)
            for n, (start, stop) in enumerate(bounds)
            if begin * kernel <= start and stop <= end * kernel
        ]
        for begin, end in itertools.pairwise([0, *ends])
    ]
    return Cut(length * kernel, segments)


def _bias(c: Any, how: Accumulator, channels: int) -> Codes | None:
    if c is None:
        return None
    if not isinstance(c, SoftArray) or c.format != how.partials or c.shape != (channels,):
        found = f"{c.format} of shape {c.shape}" if isinstance(c, SoftArray) else type(c).__name__
        raise TypeError(f"c must be a SoftArray of {how.partials} and shape ({channels},), got {found}")
    return c.codes


def conv2d(
    inputs: Any,
    weights: Any,
    accumulator: Accumulator | None = None,
    c: SoftArray | None = None,
    *,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "NHWC",
    out_format: Format | str | None = None,
    count: bool = False,
) -> Any:
    """`softfloat.bits.conv2d` of arrays in blocks.

    Images, rows, columns and output channels may be cut anywhere, groups of channels between groups: an output has all of its sum. Input
    channels of one group may be cut where the accumulator cuts k: by segments that end between channels, for kernels of
    1 by 1, or where its `channel_group` makes channels the slowest part of k. Weights are one block but for their output channels.

    Parameters
    ----------
    inputs, weights : DaskArray or SoftArray
        (N, H, W, C) and (H, W, I, O), or in the order that `layout` says, of one format.
    accumulator : Accumulator, optional
        Default: the environment's.
    c : SoftArray, optional
        Where sums start: a number for each output channel, in the partials format.
    stride, padding, dilation, groups, layout
        As in `softfloat.bits.conv2d`.
    out_format : Format or str, optional
        Of the result; default that of the operands.
    count : bool
        Return `Counts` as well.

    Returns
    -------
    result : DaskArray
        In the layout of the inputs; its blocks have the windows that begin in blocks of the inputs.
    counts : Counts
        If `count`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument; for chunks of channels that would change bits, saying which would not.
    """
    x, w, fmt = both(inputs, weights, "conv2d")
    geometry = Geometry(stride, padding, dilation, groups, layout)
    axes = geometry.axes(2)
    for name, array, letters in (("inputs", x, axes.data), ("weights", w, axes.weights)):
        if array.ndim != len(letters):
            raise ValueError(f"{name} must have the axes {', '.join(letters)}, got shape {array.shape}")
    checked, how = geometry.over(x.shape, w.shape), accumulator or accumulator_for(fmt)
    output, windows = check_format(out_format or fmt, "out_format", wide=True), checked.windows
    bias = _bias(c, how, checked.groups * checked.outputs)
    w = w.rechunk({i: -1 for i, letter in enumerate(axes.weights) if letter != "O"})
    lengths = dict(zip(axes.data, x.chunks, strict=True))
    cut = _cut(how, lengths["C"], checked)
    channels = _channels(w.chunks[axes.weights.index("O")], checked)
    rows, columns = (
        spans(
            windows.inputs[i], lengths[letter], windows.stride[i], spread(windows.kernel[i], windows.dilation[i]),
            windows.before[i], windows.counts[i],
        ) for i, letter in enumerate("HW")
    )  # fmt: skip
    images = list(itertools.pairwise([0, *itertools.accumulate(lengths["N"])]))
    held = list(itertools.pairwise([0, *itertools.accumulate(lengths["C"])]))
    blocks, kernels, pieces = parts(x.codes), parts(w.codes), dict[tuple[Range, ...], Any]()

    def where(block: tuple[int, ...]) -> tuple[Range, Span, Span, Channels]:
        at = dict(zip(axes.data, block, strict=True))
        return images[at["N"]], rows[at["H"]], columns[at["W"]], channels[at["C"]]

    def given(block: tuple[int, ...], k: int) -> Any:
        image, row, column, channel = where(block)
        read = held[k] if cut.segments else channel.inputs
        wanted = {"N": image, "H": row.inputs, "W": column.inputs, "C": read}
        key = tuple(wanted[letter] for letter in axes.data)
        if key not in pieces:
            pieces[key] = _piece(x, blocks, key)
        return pieces[key]

    def kernel(block: tuple[int, ...], k: int) -> Any:
        number = block[axes.data.index("C")]
        found = kernels[tuple(number if letter == "O" else 0 for letter in axes.weights)]
        if not cut.segments:
            return found
        return task(getitem, found, tuple(slice(*held[k]) if letter == "I" else slice(None) for letter in axes.weights))

    def options(block: tuple[int, ...]) -> dict[str, Any]:
        _, row, column, channel = where(block)
        return {
            "stride": stride, "dilation": dilation, "layout": layout, "groups": channel.groups, "padding": (row.zeros, column.zeros),
        }  # fmt: skip

    def addend(block: tuple[int, ...]) -> dict[str, Any]:
        if bias is None:
            return {}
        return {"c": bias[slice(*where(block)[3].outputs)]}

    sizes = {
        "N": lengths["N"], "H": [last - first for (first, last), *_ in rows], "W": [last - first for (first, last), *_ in columns],
        "C": w.chunks[axes.weights.index("O")],
    }  # fmt: skip
    sums = Sums("conv2d", fmt, how, output, check_boolean("count", count), (x, w))
    chunks = tuple(tuple(sizes[letter]) for letter in axes.data)
    along, order = (axes.data.index("C"), axes.weights.index("I")), tuple(map(axes.data.index, "NHWC"))
    return sums.blocks(chunks, cut, [given, kernel], along, options, addend, order)
