"""Softmax, norms and pools: in float32, each step rounded to nearest even whatever the environment says, the last result rounded to the format.

Sums run in order of the indices, so that the bits depend on no library and no thread. e^x and log x in float32 are
`softfloat.bits`' own, correctly rounded. Flags are those of the last rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softfloat import bits
from softfloat.accumulators import fma
from softfloat.onnx.moves import exactly
from softfloat.onnx.products import padding_of
from softfloat.onnx.table import operator
from softfloat.onnx.tensors import Array
from softfloat.onnx.unit import Call

__all__: list[str] = []

Single = np.ndarray[Any, np.dtype[np.float32]]
IN_SINGLE = fma("float32")


def total(x: Single, axes: Sequence[int]) -> Single:
    """Sums over some axes, in C order of those, which stay with length 1."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    length = math.prod(x.shape[axis] for axis in axes)
    flat = np.ascontiguousarray(x.transpose([*axes, *kept])).reshape(length, math.prod(x.shape[i] for i in kept))
    codes, _ = bits.sum(flat.view(np.uint32), "float32", IN_SINGLE, 0, flags="any")
    shape = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
    return np.asarray(codes).view(np.float32).reshape(shape)


def exponential(x: Single) -> Single:
    """e^x."""
    return np.asarray(bits.exp(np.ascontiguousarray(x).view(np.uint32), "float32", flags="any")[0]).view(np.float32)


def logarithm(x: Single) -> Single:
    """The natural logarithm."""
    return np.asarray(bits.log(np.ascontiguousarray(x).view(np.uint32), "float32", flags="any")[0]).view(np.float32)


def axis_of(call: Call, rank: int, default: int) -> int:
    """An axis from the end or from the front."""
    axis = int(call.attributes.get("axis", default))
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"node {call.key.name!r}: axis must be from {-rank} to {rank - 1}, got {axis}")
    return axis % max(rank, 1)


def _softmax(call: Call) -> tuple[Single, Single, Single]:
    """(x - max, e^(x - max), the sum of these)."""
    x = call.single(0)
    axis = axis_of(call, x.ndim, 1 if call.version < 13 else -1)
    axes = [axis] if call.version >= 13 else list(range(axis, x.ndim))
    with np.errstate(all="ignore"):
        shifted = x - np.max(x, axis=tuple(axes), keepdims=True, initial=-np.inf)
    powers = exponential(shifted)
    return shifted, powers, total(powers, axes)


@operator("staged", "Softmax", "d = x - max; e = exp(d); e / sum(e).")
def softmax(call: Call) -> tuple[Any, ...]:
    """Along one axis; before operator set 13 along all from there on."""
    _, powers, sums = _softmax(call)
    with np.errstate(all="ignore"):
        return (call.rounded(powers / sums, call.format),)


@operator("staged", "LogSoftmax", "d = x - max; e = exp(d); d - log(sum(e)).")
def log_softmax(call: Call) -> tuple[Any, ...]:
    """As Softmax."""
    shifted, _, sums = _softmax(call)
    with np.errstate(all="ignore"):
        return (call.rounded(shifted - logarithm(sums), call.format),)


# -- norms -----------------------------------------------------------------------------------------------------------


def affine(y: Single, *steps: tuple[Any, Any]) -> Single:
    """y, with each operand that is given applied."""
    for function, operand in steps:
        if operand is not None:
            y = function(y, operand)
    return y


def standardised(x: Single, axes: Sequence[int], epsilon: float) -> tuple[Single, Single, Single]:
    """((x - mean) * scale, mean, scale) with scale = 1 / sqrt(variance + epsilon)."""
    count = np.float32(math.prod(x.shape[axis] for axis in axes))
    mean = total(x, axes) / count
    centred = x - mean
    variance = total(centred * centred, axes) / count
    scale = np.float32(1) / np.sqrt(variance + np.float32(epsilon))
    return centred * scale, mean, scale


def spread(values: Single | None, rank: int) -> Single | None:
    """One number for each channel, for arrays of some rank."""
    return None if values is None else values.reshape(1, -1, *[1] * (rank - 2))


MOMENTS = (
    "mean = sum(x) / n; v = sum((x - mean)^2) / n; s = 1 / sqrt(v + epsilon); y = (((x - mean) * s) * scale) + bias"
)


def single_or_none(call: Call, place: int) -> Single | None:
    """An input as float32, if it is given."""
    return None if call.given(place) is None else call.single(place)


def check_stash(call: Call) -> None:
    """Refuse statistics in anything but float32."""
    if call.attributes.get("stash_type", 1) != 1:
        call.refuse(f"stash_type={call.attributes['stash_type']} is not emulated; accepted: 1, float32")


@operator("staged", "LayerNormalization", f"{MOMENTS}, over the axes from `axis` on. Mean and s go out in float32.")
def layer_normalization(call: Call) -> tuple[Any, ...]:
    """Over the last axes."""
    check_stash(call)
    x = call.single(0)
    first = axis_of(call, x.ndim, -1)
    with np.errstate(all="ignore"):
        y, mean, scale = standardised(x, range(first, x.ndim), call.attributes.get("epsilon", 1e-5))
        y = affine(y, (np.multiply, single_or_none(call, 1)), (np.add, single_or_none(call, 2)))
    return (call.rounded(y, call.format), mean, scale)[: call.outputs]


@operator(
    "staged",
    "RMSNormalization",
    "m = sum(x^2) / n; (x * (1 / sqrt(m + epsilon))) * scale, over the axes from `axis` on.",
)
def rms_normalization(call: Call) -> tuple[Any, ...]:
    """Over the last axes, without a mean."""
    check_stash(call)
    x = call.single(0)
    axes = range(axis_of(call, x.ndim, -1), x.ndim)
    with np.errstate(all="ignore"):
        power = total(x * x, axes) / np.float32(math.prod(x.shape[axis] for axis in axes))
        scale = np.float32(1) / np.sqrt(power + np.float32(call.attributes.get("epsilon", 1e-5)))
        return (call.rounded(affine(x * scale, (np.multiply, single_or_none(call, 1))), call.format),)


@operator("staged", "InstanceNormalization", f"{MOMENTS}, over the spatial axes.")
def instance_normalization(call: Call) -> tuple[Any, ...]:
    """Each image and channel by itself."""
    x = call.single(0)
    with np.errstate(all="ignore"):
        y, _, _ = standardised(x, range(2, x.ndim), call.attributes.get("epsilon", 1e-5))
        y = affine(y, (np.multiply, spread(call.single(1), x.ndim)), (np.add, spread(call.single(2), x.ndim)))
    return (call.rounded(y, call.format),)


@operator("staged", "GroupNormalization", f"{MOMENTS}, over a group of channels and the spatial axes.")
def group_normalization(call: Call) -> tuple[Any, ...]:
    """Groups of channels; before operator set 21 scale and bias are one for each group."""
    check_stash(call)
    x, groups = call.single(0), int(call.attributes["num_groups"])
    if x.shape[1] % groups:
        raise ValueError(f"node {call.key.name!r}: num_groups must divide {x.shape[1]} channels, got {groups}")
    split = x.reshape(x.shape[0], groups, -1)
    with np.errstate(all="ignore"):
        y, _, _ = standardised(split, [2], call.attributes.get("epsilon", 1e-5))
        scale, bias = (
            np.repeat(v, x.shape[1] // groups) if call.version < 21 else v for v in (call.single(1), call.single(2))
        )
        y = affine(y.reshape(x.shape), (np.multiply, spread(scale, x.ndim)), (np.add, spread(bias, x.ndim)))
    return (call.rounded(y, call.format),)


@operator(
    "staged",
    "BatchNormalization",
    "a = scale / sqrt(var + epsilon); b = bias - mean * a; x * a + b. Of inference; with training_mode it is refused.",
)
def batch_normalization(call: Call) -> tuple[Any, ...]:
    """By the statistics that are given."""
    trains = call.attributes.get("training_mode", 0) or (call.version < 7 and not call.attributes.get("is_test", 0))
    if trains or call.outputs > 1:
        call.refuse("training_mode is not emulated; export the model for inference")
    if call.attributes.get("spatial", 1) != 1:
        call.refuse("spatial=0 is not emulated")
    x = call.single(0)
    scale, bias, mean, variance = (call.single(place) for place in range(1, 5))
    with np.errstate(all="ignore"):
        root: Single = np.sqrt(variance + np.float32(call.attributes.get("epsilon", 1e-5)))
        a: Single = (np.float32(1) / root) * scale
        y = affine(x, (np.multiply, spread(a, x.ndim)), (np.add, spread(bias - mean * a, x.ndim)))
    return (call.rounded(y, call.format),)


# -- pools -----------------------------------------------------------------------------------------------------------


def windows(call: Call, x: Array, fill: float) -> Array:
    """(N, C, places..., kernel...): a view of the padded input, where `fill` lies around."""
    given, axes = call.attributes, x.ndim - 2
    kernel = list(given["kernel_shape"])
    stride, dilation = given.get("strides") or [1] * axes, given.get("dilations") or [1] * axes
    pairs = padding_of(call, x.shape[2:], kernel, stride, dilation)
    counts, around = [], []
    for size, (before, after), window, step, apart in zip(x.shape[2:], pairs, kernel, stride, dilation, strict=True):
        reach = (window - 1) * apart + 1
        room = size + before + after - reach
        count = (-(-room // step) if given.get("ceil_mode", 0) else room // step) + 1
        if given.get("ceil_mode", 0) and (count - 1) * step >= size + before:
            count -= 1  # a window that starts beyond the input and the padding before it
        counts.append(count)
        around.append((before, max(after, (count - 1) * step + reach - size - before)))
    padded = np.pad(x, [(0, 0), (0, 0), *around], constant_values=fill)
    inner = padded.strides[2:]
    return as_strided(
        padded,
        (*x.shape[:2], *counts, *kernel),
        (
            *padded.strides[:2],
            *(s * n for s, n in zip(stride, inner, strict=True)),
            *(d * n for d, n in zip(dilation, inner, strict=True)),
        ),
        writeable=False,
    )


@operator(
    "exact", "MaxPool", "NaNs win, as the canonical one. With the output of indices, ONNX's own implementation.", True
)
def max_pool(call: Call) -> tuple[Any, ...]:
    """The greatest in each window."""
    if call.outputs > 1:
        values, indices = call.native(call.single(0))
        return exactly(call, values, call.format), indices
    x = call.single(0)
    seen = windows(call, x, -np.inf)
    places = np.ndindex(*seen.shape[x.ndim :])
    result = np.array(seen[(..., *next(places))])
    for place in places:
        np.maximum(result, seen[(..., *place)], out=result)
    return (exactly(call, result, call.format),)


@operator("exact", "GlobalMaxPool", "NaNs win, as the canonical one.")
def global_max_pool(call: Call) -> tuple[Any, ...]:
    """The greatest of each channel."""
    x = call.single(0)
    return (exactly(call, np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True), call.format),)


@operator("staged", "AveragePool", "The sum over a window, divided by the number of elements.")
def average_pool(call: Call) -> tuple[Any, ...]:
    """The mean of each window; padding counts with count_include_pad."""
    x = call.single(0)
    seen = windows(call, x, 0.0)
    counted = np.ones([1] * x.ndim, np.float32)
    for axis, each in enumerate(_taps(call, x.shape[2:], seen.shape[2 : x.ndim]), 2):
        counted = counted * each.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    with np.errstate(all="ignore"):
        sums = total(seen, range(x.ndim, seen.ndim)).reshape(seen.shape[: x.ndim])
        return (call.rounded(sums / counted, call.format),)


def _taps(call: Call, sizes: Sequence[int], counts: Sequence[int]) -> Iterator[Single]:
    """For each spatial axis, how many elements of each window count."""
    given, ones = call.attributes, [1] * len(sizes)
    kernel, stride, dilation = given["kernel_shape"], given.get("strides") or ones, given.get("dilations") or ones
    pairs = padding_of(call, sizes, kernel, stride, dilation)
    for size, pair, window, step, apart, count in zip(sizes, pairs, kernel, stride, dilation, counts, strict=True):
        before, after = pair if given.get("count_include_pad", 0) else (0, 0)
        places = np.arange(count)[:, None] * step + np.arange(window) * apart - pair[0]
        yield ((places >= -before) & (places < size + after)).sum(1).astype(np.float32)
