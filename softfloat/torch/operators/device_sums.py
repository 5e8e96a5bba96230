"""Sums over leading axes as PyTorch adds them up on a device, in float32.

A block of threads has columns, each for some neighbouring outputs, and rows. A thread adds every so-manieth number to one of four
sums in turn, and the four in order; where there are many numbers, the rows of a block share them, and their sums are added in
halves. Read off an H100 under PyTorch 2.11: outputs of 44 shapes, none differs.
Source of the order: PyTorch, aten/src/ATen/native/cuda/Reduce.cuh.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from softfloat import bits
from softfloat.formats import float32
from softfloat.torch import private
from softfloat.torch.operators.bridge import FORMATS, LOW, Codes
from softfloat.torch.operators.device_products import unread
from softfloat.torch.operators.unit import Unit

__all__ = ["DEVICE_SUMS", "device_sum"]

DEVICE_SUMS = frozenset({"sum", "mean"})
"""Operators, by name."""
THREADS, WIDTH = 512, 32
"""Of a block, and of it side by side at first."""
NEIGHBOURS = 4
"""Outputs of a thread, at most: a power of two that divides their number."""
TURNS = 4
"""Sums of a thread."""
SHARED, LONG = 16, 256
"""Numbers for each of a block's rows from which rows share them, and numbers that suffice in any case; of a thread, those from which
blocks share them, which was not read."""


def rows_that_share(inputs: int, outputs: int, offset: int) -> int:
    """How many rows of threads have a part of each sum; `offset` is the first element's place in its memory."""
    neighbours = math.gcd(math.gcd(outputs, offset), NEIGHBOURS)
    threads = THREADS // neighbours
    across, down = (min(1 << (x.bit_length() - 1), threads) for x in (outputs // neighbours, inputs))
    rows = min(down, threads // min(across, WIDTH))
    return rows if inputs >= min(rows * SHARED, LONG) else 1


def added_up(unit: Unit, codes: Codes, rows: int) -> Codes:
    """Sums of float32 codes over the first of two axes."""
    steps = -(-len(codes) // (rows * TURNS))
    numbers = np.zeros((steps * TURNS * rows, codes.shape[1]), np.uint32)
    numbers[: len(codes)] = codes
    numbers = numbers.reshape(steps, TURNS, rows, -1)
    sums = np.zeros(numbers.shape[1:], np.uint32)
    for each in numbers:
        sums = unit.run(bits.add, sums, each, float32)
    total = sums[0]
    for each in sums[1:]:
        total = unit.run(bits.add, total, each, float32)
    while len(total) > 1:
        half = len(total) // 2
        total = unit.run(bits.add, total[:half], total[half:], float32)
    return total[0]


def reduced(x: torch.Tensor, dim: Any) -> list[int]:
    """The axes that a sum goes over."""
    axes = [dim] if isinstance(dim, int) else list(dim or range(x.ndim))
    return sorted(axis % max(x.ndim, 1) for axis in axes)


def device_sum(unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`sum` or `mean` over leading axes of a tensor that lies row by row; others were not read."""
    given = {**dict(zip(private.argument_names(operator), args, strict=False)), **kwargs}
    x, name = given["self"], private.schema_name(operator)
    dtype = given.get("dtype") or x.dtype
    axes = reduced(x, given.get("dim"))
    leading = [axis for axis in range(x.ndim) if x.shape[axis] > 1][: sum(x.shape[axis] > 1 for axis in axes)]
    inputs = math.prod(x.shape[axis] for axis in axes)
    outputs = x.numel() // max(inputs, 1)
    advice = "sum over leading axes, or cast to float32 first, which is then PyTorch's sum on this machine"
    ordered = x.is_contiguous() and leading == [axis for axis in axes if x.shape[axis] > 1]
    if x.dtype not in LOW or dtype not in (x.dtype, torch.float32) or not ordered or min(inputs, outputs - 1) < 1:
        raise unread(unit, f"{name} over axes {axes} of {tuple(x.shape)} {x.dtype} to {dtype}", advice)
    rows = rows_that_share(inputs, outputs, x.storage_offset())
    if -(-inputs // rows) >= LONG:
        raise unread(unit, f"{name} of {inputs} numbers for each of {outputs} outputs", advice)
    codes = unit.converted(x.reshape(inputs, outputs), float32)
    found = added_up(unit, codes, rows)
    if name == "mean":
        factor = float(np.float32(outputs) / np.float32(inputs * outputs))
        found = unit.run(bits.mul, found, np.full_like(found, unit.number(factor, float32)), float32)
    if dtype != torch.float32:
        found = unit.run(bits.convert, found, float32, FORMATS[dtype].format)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    if not given.get("keepdim"):
        shape = [size for axis, size in enumerate(x.shape) if axis not in axes]
    return unit.deliver(found.reshape(shape), dtype, given.get("out"))
