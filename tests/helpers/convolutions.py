"""Convolutions as lists of products written down one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from operands import edges

from softfloat import bits
from softfloat.accumulators import (
    Accumulator,
)

Pair = tuple[int, int]
COUNTED = ("overflowed", "inexact", "swamped", "smallest", "largest")


class Case(NamedTuple):
    """Shapes and options of a convolution, NHWC."""

    inputs: tuple[int, int, int, int]
    kernel: Pair
    outputs: int
    stride: Pair = (1, 1)
    padding: Any = "valid"
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def weights(self) -> tuple[int, int, int, int]:
        return *self.kernel, self.inputs[3] // self.groups, self.outputs

    @property
    def options(self) -> dict[str, Any]:
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }

    @cache  # noqa: B019 -- the cases of a test are few
    def axis(self, i: int) -> tuple[int, int, int]:
        """(zeros before, after, outputs) of rows or columns."""
        size, step, reach = self.inputs[1 + i], self.stride[i], (self.kernel[i] - 1) * self.dilation[i]
        if self.padding == "same":
            count = -(-size // step)
            zeros = max((count - 1) * step + reach + 1 - size, 0)
            return zeros // 2, zeros - zeros // 2, count
        before, after = (0, 0) if self.padding == "valid" else self.padding[i]
        return before, after, len(range(0, size + before + after - reach, step))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.inputs[0], self.axis(0)[2], self.axis(1)[2], self.outputs

    def position(self, i: int, output: int, k: int) -> int | None:
        """Which row or column of the inputs an output's window has at k."""
        at = output * self.stride[i] + k * self.dilation[i] - self.axis(i)[0]
        return at if 0 <= at < self.inputs[1 + i] else None

    @cache  # noqa: B019
    def window(self, i: int, position: int, k: int) -> int | None:
        """Which output's window has at k this row or column of the inputs."""
        return next((x for x in range(self.shape[1 + i]) if self.position(i, x, k) == position), None)


def arranged(layout: str, codes: np.ndarray, weights: bool = False) -> np.ndarray:
    """An NHWC or HWIO array in a layout; further axes stay behind."""
    if layout == "NHWC":
        return codes
    return np.moveaxis(codes, (3, 2), (0, 1)) if weights else np.moveaxis(codes, 3, 1)


def sample(fmt: Any, shape: tuple[int, ...], seed: int, specials: float = 0.01) -> np.ndarray:
    """Codes of numbers around 1, with a few from every boundary."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape) if fmt.signed else np.exp2(random.integers(-3, 4, shape).astype(float))
    codes = np.asarray(bits.encode(values, fmt)[0])
    return np.where(random.random(shape) < specials, random.choice(edges(fmt), shape), codes).astype(fmt.dtype)


# -- products, one by one --------------------------------------------------------------------------------------------

Products = Iterator[tuple[int, int]]


def channel_order(channels: int, accumulator: Accumulator) -> list[range]:
    """Groups of channels; those beyond `channels` are filled in."""
    size = accumulator.channel_group or max(channels, 1)
    return [range(start, start + size) for start in range(0, channels, size)]


def forward(x: np.ndarray, w: np.ndarray, case: Case, accumulator: Accumulator, output: tuple[int, ...]) -> Products:
    image, row, column, channel = output
    inputs = w.shape[2]
    group = channel // (case.outputs // case.groups)
    for chunk in channel_order(inputs, accumulator):
        for i, j, k in itertools.product(range(w.shape[0]), range(w.shape[1]), chunk):
            y, z = case.position(0, row, i), case.position(1, column, j)
            outside = y is None or z is None or k >= inputs
            yield 0 if outside else x[image, y, z, group * inputs + k], 0 if k >= inputs else w[i, j, k, channel]


def input_gradient(
    g: np.ndarray, w: np.ndarray, case: Case, accumulator: Accumulator, output: tuple[int, ...]
) -> Products:
    image, row, column, channel = output
    inputs, outputs = w.shape[2], case.outputs // case.groups
    group, of_group = divmod(channel, inputs)
    for chunk in channel_order(outputs, accumulator):
        for i, j, k in itertools.product(range(w.shape[0])[::-1], range(w.shape[1])[::-1], chunk):
            y, z = case.window(0, row, i), case.window(1, column, j)
            outside = y is None or z is None or k >= outputs
            at = group * outputs + k
            yield 0 if outside else g[image, y, z, at], 0 if k >= outputs else w[i, j, of_group, at]


def weight_gradient(x: np.ndarray, g: np.ndarray, case: Case, _: Accumulator, output: tuple[int, ...]) -> Products:
    i, j, k, channel = output
    at = channel // (case.outputs // case.groups) * case.weights[2] + k
    for image, row, column in itertools.product(*map(range, case.shape[:3])):
        y, z = case.position(0, row, i), case.position(1, column, j)
        yield 0 if y is None or z is None else x[image, y, z, at], g[image, row, column, channel]


PRODUCTS = {
    "conv2d": forward,
    "conv2d_input_gradient": input_gradient,
    "conv2d_weight_gradient": weight_gradient,
}


class Trial:
    """Operands of one of the three functions, and the shape of its result: all NHWC and HWIO."""

    def __init__(self, name: str, case: Case, accumulator: Accumulator, fmt: Any, specials: float = 0.01) -> None:
        self.name, self.case, self.accumulator, self.fmt = name, case, accumulator, fmt
        self.pair = fmt if isinstance(fmt, tuple) else (fmt, fmt)
        first, second, self.shape = {
            "conv2d": (case.inputs, case.weights, case.shape),
            "conv2d_input_gradient": (case.shape, case.weights, case.inputs),
            "conv2d_weight_gradient": (case.inputs, case.shape, case.weights),
        }[name]
        self.first = sample(self.pair[0], first, 1, specials)
        self.second = sample(self.pair[1], second, 2, specials)
        self.c = np.asarray(sample(accumulator.partials, self.shape, 3, specials))

    @property
    def of_weights(self) -> bool:
        """Whether the result is a gradient of weights."""
        return self.name == "conv2d_weight_gradient"

    def found(self, layout: str = "NHWC", addend: bool = False, **options: Any) -> Any:
        """What the function says."""
        operands = arranged(layout, self.first), arranged(layout, self.second, not self.of_weights)
        like = arranged(layout, self.c, self.of_weights)
        shape = () if self.name == "conv2d" else (like.shape,)
        c = like if addend else None
        options = {**self.case.options, "layout": layout, **options}
        return getattr(bits, self.name)(*operands, *shape, self.fmt, self.accumulator, c, **options)

    def expected(self, layout: str = "NHWC", addend: bool = False, **options: Any) -> Any:
        """What `vecdot` says of the products one by one, in NHWC; then rearranged."""
        arguments = self.first, self.second, self.case, self.accumulator
        lists = [list(PRODUCTS[self.name](*arguments, output)) for output in np.ndindex(*self.shape)]
        products = np.array(lists, np.uint64).reshape(*self.shape, len(lists[0]) if lists else 0, 2)
        a, b = (products[..., i].astype(fmt.dtype) for i, fmt in enumerate(self.pair))
        codes, flags, *counts = bits.vecdot(a, b, self.pair, self.accumulator, self.c if addend else None, **options)
        rearranged = [arranged(layout, x, self.of_weights) for x in (codes, flags)]
        return *rearranged, *(
            replace(x, **{name: arranged(layout, getattr(x, name), self.of_weights) for name in COUNTED})
            for x in counts
        )
