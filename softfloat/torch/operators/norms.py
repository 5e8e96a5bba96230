"""Norms whose variance is the mean of squares less the square of the mean, in float32: what `use_stable_statistics=False` chooses.

The mean of squares of half numbers overflows half beyond 256, and never float32 (that of bfloat16 numbers does, beyond
2^64). What is left is cancellation: where the mean is 2^12 standard deviations or more, no digit of the variance is right.

Rule, for the n numbers x of a channel, a group or a row, in the order of their indices, each step rounded to float32:
s1 = ((x0 + x1) + x2) + ..., s2 the same of fused x*x, mean = s1 / n, variance = max(s2 / n - mean*mean, 0),
scale = 1 / sqrt(variance + eps), and every output ((x - mean) * scale) * weight + bias, rounded to its format.

Source: graphcore/poplibs, lib/poplin/Norms.cpp and codelets/InverseStdDeviation.cpp: sums of x and of x*x, and a
variance below zero taken for zero before eps is added. There the mean and the scale are stored in the dtype of the
activations, and the mean of squares in that of `partialsType`, float by default; here all three are float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat import bits
from softfloat.runner import SINGLE
from softfloat.torch import private
from softfloat.torch.operators.bridge import FORMATS, LOW, UnsupportedArguments, codes_of, memory
from softfloat.torch.operators.unit import Unit
from softfloat.torch.operators.wide import judged

__all__ = ["LAYOUTS", "normalised"]

Numbers = np.ndarray[Any, np.dtype[np.float32]]


class Layout(NamedTuple):
    """How a norm looks at its input: reshaped to `shape`, one pair of statistics for each place on the axes `kept`."""

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    affine: tuple[int, ...]
    saved: tuple[int, ...]


def _layer(x: torch.Tensor, given: Mapping[str, Any]) -> Layout | None:
    inner = tuple(given["normalized_shape"])
    outer = tuple(x.shape[: x.ndim - len(inner)])
    if tuple(x.shape) != outer + inner:
        return None
    size = math.prod(inner)
    return Layout((math.prod(outer), size), (0,), (1, size), outer + (1,) * len(inner))


def _group(x: torch.Tensor, given: Mapping[str, Any]) -> Layout | None:
    batch, channels, space, groups = (given[name] for name in ("N", "C", "HxW", "group"))
    if groups < 1 or channels % groups:
        return None
    each = channels // groups
    return Layout((batch, groups, each, space), (0, 1), (1, groups, each, 1), (batch, groups))


def _batch(x: torch.Tensor, given: Mapping[str, Any]) -> Layout | None:
    if x.ndim < 2 or not given.get("training", True):
        return None
    batch, channels = x.shape[:2]
    return Layout((batch, channels, math.prod(x.shape[2:])), (1,), (1, channels, 1), (channels,))


LAYOUTS: dict[str, Callable[[torch.Tensor, Mapping[str, Any]], Layout | None]] = {
    "native_layer_norm": _layer,
    "native_group_norm": _group,
    "native_batch_norm": _batch,
    "_native_batch_norm_legit": _batch,
    "_batch_norm_with_update": _batch,
}
"""Norms that compute a variance, by the operator's name. None: they compute none now, or the arguments do not fit."""


def normalised(
    unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any], stable: Callable[..., Any], name: str
) -> Any:
    """A norm by the rule above; by `stable` where the emulation is told so, and where there is no variance to compute."""
    if unit.stable_statistics or args[0].dtype not in LOW:
        return stable(unit, operator, args, kwargs)
    given = dict(zip(private.argument_names(operator), args, strict=False))
    x = given["input"]
    layout = LAYOUTS[name](x, given)
    if layout is None or not x.numel():
        return stable(unit, operator, args, kwargs)  # which refuses what does not fit, in PyTorch's own words
    if kwargs:
        raise UnsupportedArguments(f"argument {', '.join(kwargs)} is not emulated with use_stable_statistics=False")
    affine = given["weight"], given["bias"]
    with np.errstate(all="ignore"):
        mean, variance, count = moments(x, layout)
        scale = np.float32(1) / np.sqrt(variance + np.float32(given["eps"]))
        y = _outputs(x, layout, mean, scale, affine)
        running = [
            (given[key], _moved(given[key], batch, given["momentum"]))
            for key, batch in (("running_mean", mean), ("running_var", variance * np.float64(count) / (count - 1)))
            if given.get(key) is not None
        ]

    def rerun(change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        changed = change(x)
        with np.errstate(all="ignore"):
            mean, variance, _ = moments(changed, layout)
            scale = np.float32(1) / np.sqrt(variance + np.float32(given["eps"]))
            again = _outputs(changed, layout, mean, scale, [None if t is None else change(t) for t in affine])
        return torch.from_numpy(again)

    found, raised = judged(name, torch.from_numpy(y), [x, *(t for t in affine if t is not None)], rerun)
    memory = torch.contiguous_format if name == "native_layer_norm" else torch.preserve_format  # as PyTorch's
    wide = torch.empty_like(x, dtype=torch.float32, memory_format=memory, requires_grad=False)
    wide.copy_(found)
    result = unit.cast(wide, x.dtype, raised)
    for target, moved in running:
        unit.store(target, moved)
    saved = [torch.from_numpy(value.reshape(layout.saved)) for value in (mean, scale)]
    reserve = [torch.empty(0, dtype=torch.uint8)] if name == "_batch_norm_with_update" else []
    return (result, *saved, *reserve)


def moments(x: torch.Tensor, layout: Layout) -> tuple[Numbers, Numbers, int]:
    """(mean, variance) for each place on the axes kept, and of how many numbers."""
    summed = [axis for axis in range(len(layout.shape)) if axis not in layout.kept]
    count = math.prod(layout.shape[axis] for axis in summed)
    codes = codes_of(x).reshape(layout.shape).transpose(*layout.kept, *summed).reshape(-1, count)
    fmt = FORMATS[x.dtype].format
    sums = (  # to nearest even, whatever the emulation rounds like
        bits.sum(codes, fmt, SINGLE, 1, out_format="float32", flags="any")[0],
        bits.vecdot(codes, codes, fmt, SINGLE, out_format="float32", flags="any")[0],
    )
    mean, power = (np.asarray(found).view(np.float32) / np.float32(count) for found in sums)
    return mean, np.maximum(power - mean * mean, np.float32(0)), count


def _outputs(
    x: torch.Tensor, layout: Layout, mean: Numbers, scale: Numbers, affine: Sequence[torch.Tensor | None]
) -> Numbers:
    """What the rule makes of statistics, in the shape of x."""
    around = [size if axis in layout.kept else 1 for axis, size in enumerate(layout.shape)]
    y = (_single(x).reshape(layout.shape) - mean.reshape(around)) * scale.reshape(around)
    for step, tensor in zip((np.multiply, np.add), affine, strict=True):
        if tensor is not None:
            y = step(y, _single(tensor.reshape(layout.affine)))
    return y.reshape(x.shape)


def _single(tensor: torch.Tensor) -> Numbers:
    return memory(tensor.detach().to(torch.float32))


def _moved(running: torch.Tensor, batch: np.ndarray[Any, Any], momentum: float) -> torch.Tensor:
    """Running statistics after a batch: in float64, as PyTorch computes them, rounded to float32."""
    moved = momentum * batch.astype(np.float64) + (1 - momentum) * _single(running).astype(np.float64)
    return torch.from_numpy(moved.astype(np.float32))
