"""Where the windows of a convolution lie: layouts, steps, zeros around the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from softfloat.checks import is_integer
from softfloat.engine import Codes


class Layout(NamedTuple):
    """One row of `LAYOUTS`: axes of inputs and outputs, and of weights."""

    data: str
    weights: str

    @property
    def spatial(self) -> str:
        """The axes a kernel moves along."""
        return self.data.translate({ord("N"): None, ord("C"): None})


LAYOUTS = {
    row.data: row
    for row in (Layout("NHWC", "HWIO"), Layout("NCHW", "OIHW"), Layout("NWC", "WIO"), Layout("NCW", "OIW"))
}

Two = tuple[int, int]


class Geometry(NamedTuple):
    """What a call says of a convolution's windows, channels and axes; `conv2d` says what is accepted."""

    stride: Any
    padding: Any
    dilation: Any
    groups: Any
    layout: Any

    def axes(self, dimensions: int) -> Layout:
        """The layout's axes, as many of them spatial as asked for."""
        accepted = [x for x in LAYOUTS if len(x) == dimensions + 2]
        if self.layout not in accepted:
            raise ValueError(f"layout must be {' or '.join(map(repr, accepted))}, got {self.layout!r}")
        return LAYOUTS[self.layout]

    def over(self, inputs: tuple[int, ...], weights: tuple[int, ...], name: str = "weights") -> Convolution:
        """The convolution of arrays of these shapes, checked; `name` is what messages call the weights.

        It is kept for the next call where all arguments are integers and names: 1, True and 1.0 would be one key.
        """
        kept = Geometry(*[tuple(x) if isinstance(x, list) else x for x in self])
        if all(map(_is_plain, kept)):
            return _kept(inputs, weights, kept, name)
        return _convolution(inputs, weights, self, name)


class Windows(NamedTuple):
    """Where windows lie, for rows and columns: sizes, steps, zeros around the inputs, and the number of windows.

    Inputs are `spacing` apart, zeros between them. Negative numbers of zeros cut inputs off.
    """

    inputs: Two
    spacing: Two
    kernel: Two
    stride: Two
    dilation: Two
    before: Two
    after: Two
    counts: Two

    @lru_cache(maxsize=1024)  # noqa: B019 -- it keeps small tuples alive, no arrays
    def transposed(self) -> Windows:
        """Those of the input gradient: a window for each input, over output gradients as far apart as windows were."""
        reach = [(kernel - 1) * dilation for kernel, dilation in zip(self.kernel, self.dilation, strict=True)]
        before = reach[0] - self.before[0], reach[1] - self.before[1]
        apart = [spread(count, stride) for count, stride in zip(self.counts, self.stride, strict=True)]
        after = [self.inputs[i] + reach[i] - before[i] - apart[i] for i in range(2)]
        return Windows(
            inputs=self.counts,
            spacing=self.stride,
            kernel=self.kernel,
            stride=(1, 1),
            dilation=self.dilation,
            before=before,
            after=(after[0], after[1]),
            counts=self.inputs,
        )


def spread(count: int, step: int) -> int:
    """The length of `count` things `step` apart."""
    return (count - 1) * step + 1 if count else 0


# -- arguments -------------------------------------------------------------------------------------------------------


def _steps(name: str, value: Any, axes: str) -> Two:
    """An integer for all axes, or one each, as (for rows, for columns)."""
    each = [value] * len(axes) if is_integer(value) else value
    if not isinstance(each, (tuple, list)) or len(each) != len(axes) or not all(is_integer(x) and x >= 1 for x in each):
        raise ValueError(
            f"{name} must be an integer of at least 1, or one for each of {', '.join(axes)}, got {value!r}"
        )
    return (1, int(each[0])) if len(axes) == 1 else (int(each[0]), int(each[1]))


def _padding(padding: Any, axes: str, inputs: Two, dilated: Two, stride: Two) -> list[Two]:
    """(before, after) for rows and for columns."""
    if isinstance(padding, str) and padding == "valid":
        return [(0, 0), (0, 0)]
    if isinstance(padding, str) and padding == "same":
        totals = [
            max((-(-size // step) - 1) * step + window - size, 0)
            for size, window, step in zip(inputs, dilated, stride, strict=True)
        ]
        return [(total // 2, total - total // 2) for total in totals]
    each = [padding] * len(axes) if is_integer(padding) else padding
    pairs = []
    for x in each if isinstance(each, (tuple, list)) else ():
        pair = (x, x) if is_integer(x) else x
        if isinstance(pair, (tuple, list)) and len(pair) == 2 and all(is_integer(y) and y >= 0 for y in pair):
            pairs.append((int(pair[0]), int(pair[1])))
    if not isinstance(each, (tuple, list)) or not len(each) == len(pairs) == len(axes):
        raise ValueError(
            f"padding must be 'same', 'valid', an integer of at least 0, or for each of {', '.join(axes)} one or a pair "
            f"(before, after), got {padding!r}"
        )
    return [(0, 0), *pairs][-2:]


def placed(inputs: Two, kernel: Two, name: str, geometry: Geometry, axes: str) -> Windows:
    """The windows of a convolution, from its arguments."""
    steps, dilations = _steps("stride", geometry.stride, axes), _steps("dilation", geometry.dilation, axes)
    if min(kernel) < 1:
        raise ValueError(f"{name} must have a kernel of at least 1 in each of {', '.join(axes)}, got {kernel}")
    dilated = spread(kernel[0], dilations[0]), spread(kernel[1], dilations[1])
    zeros = _padding(geometry.padding, axes, inputs, dilated, steps)
    counts = []
    for axis, size, pair, window, step in zip("HW", inputs, zeros, dilated, steps, strict=True):
        count = (size + sum(pair) - window) // step + 1
        if count < 0:
            raise ValueError(
                f"{name} span {window} along {axis} and the padded inputs {size + sum(pair)}: no window fits; "
                "accepted: a smaller kernel or dilation, or more padding"
            )
        counts.append(count)
    (top, bottom), (left, right) = zeros
    around = (top, left), (bottom, right)
    return Windows(inputs, (1, 1), kernel, steps, dilations, *around, (counts[0], counts[1]))


def shaped(name: str, shape: Any, axes: str) -> tuple[int, ...]:
    """A shape that has these axes."""
    fits = isinstance(shape, (tuple, list)) and len(shape) == len(axes)
    if not fits or not all(is_integer(x) and x >= 0 for x in shape):
        raise ValueError(f"{name} must have the axes {', '.join(axes)}, got {shape!r}")
    return tuple(int(x) for x in shape)


def _check_groups(groups: Any, channels: int, weights: dict[str, int], name: str) -> int:
    if not is_integer(groups) or groups < 1:
        raise ValueError(f"groups must be an integer of at least 1, got {groups!r}")
    if channels % groups or weights["O"] % groups:
        raise ValueError(
            f"groups must divide input and output channels, got {groups} for {channels} and {weights['O']} channels"
        )
    if weights["I"] * groups != channels:
        raise ValueError(
            f"{name} must have {channels // groups} input channels for inputs of {channels} in groups={groups}, "
            f"got {weights['I']}"
        )
    return int(groups)


def _sizes(shape: Sequence[int], axes: str) -> dict[str, int]:
    """The length of each axis."""
    return {"H": 1, **dict(zip(axes, shape, strict=True))}


class Convolution(NamedTuple):
    """A convolution, or what one of its gradients is of, checked.

    Attributes
    ----------
    windows : Windows
        Where they lie.
    groups, inputs, outputs : int
        Groups of channels; input and output channels of each.
    shape : tuple of int
        Of the outputs, in the layout.
    """

    windows: Windows
    groups: int
    inputs: int
    outputs: int
    shape: tuple[int, ...]

    def check_gradient(self, gradient: Codes) -> None:
        """Refuse any shape but that of the outputs."""
        if gradient.shape != self.shape:
            raise ValueError(f"gradient must have the outputs' shape {self.shape}, got {gradient.shape}")


def _convolution(inputs: tuple[int, ...], weights: tuple[int, ...], geometry: Geometry, name: str) -> Convolution:
    layout = LAYOUTS[geometry.layout]
    data, kernel = _sizes(inputs, layout.data), _sizes(weights, layout.weights)
    groups = _check_groups(geometry.groups, data["C"], kernel, name)
    windows = placed((data["H"], data["W"]), (kernel["H"], kernel["W"]), name, geometry, layout.spatial)
    sizes = {"N": data["N"], "C": kernel["O"], **dict(zip("HW", windows.counts, strict=True))}
    shape = tuple(sizes[x] for x in layout.data)
    return Convolution(windows, groups, kernel["I"], kernel["O"] // groups, shape)


def _is_plain(x: Any) -> bool:
    return type(x) in (int, str) or (type(x) is tuple and all(map(_is_plain, x)))


_kept = lru_cache(maxsize=1024)(_convolution)
