"""Products and sums of arrays in blocks. Where k is cut, the accumulator must cut it there; otherwise bits would change, and it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import accumulator_for
from softfloat.checks import is_integer
from softfloat.dask.blocks import Chunks, Step, assembled, evaluated, parts, places, step, task
from softfloat.dask.collections import SUMS, DaskArray
from softfloat.engine import Codes
from softfloat.formats import Format, check_format
from softfloat.positions import Position

__all__ = ["matmul", "sum", "vecdot"]


class Cut(NamedTuple):
    """Where blocks cut k: products of the whole, and for each block the segments that it has; none if one block has all."""

    k: int
    segments: list[list[tuple[int, int, int]]]
    """Of each block: (number, first product, the one after the last), counted from the block's first."""


def _cut(name: str, accumulator: Accumulator, lengths: Sequence[int]) -> Cut:
    """How chunks along k are summed.

    Raises
    ------
    ValueError
        If the accumulator does not cut k there.
    """
    k = int(np.sum(lengths))
    if len(lengths) == 1:
        return Cut(k, [])
    if not accumulator.reduction:
        raise ValueError(
            f"{name} with {accumulator!r} adds along the whole of k={k}, and chunks {tuple(lengths)} cut it: "
            f"accepted: one chunk along k, by rechunk, or an accumulator with segments, such as accumulators.chunked({lengths[0]}, ...)"
        )
    bounds = bits.segments(accumulator, k)
    ends = np.cumsum(lengths)
    wanted = [stop for _, stop in bounds]
    if not set(ends.tolist()) <= set(wanted):
        raise ValueError(
            f"{name} with {accumulator!r} cuts k={k} after {_some(wanted)} products, and chunks {tuple(lengths)} cut it elsewhere: "
            f"accepted: chunks of {_offered(accumulator, wanted, int(lengths[0]))} along k, by rechunk, or one"
        )
    begins = [0, *ends.tolist()][:-1]
    found = [
        [(n, start - begin, stop - begin) for n, (start, stop) in enumerate(bounds) if begin <= start and stop <= end]
        for begin, end in zip(begins, ends.tolist(), strict=True)
    ]
    return Cut(k, found)


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:4]))
    return f"{shown} ..." if len(numbers) > 4 else shown


def _offered(accumulator: Accumulator, wanted: Sequence[int], length: int) -> str:
    """Chunks that would do, near those there are."""
    if accumulator.segment is not None:
        return str(max(1, length // accumulator.segment) * accumulator.segment)
    return str(tuple(np.diff([0, *wanted]).tolist()))


def _part(
    operation: Step, at: Position, cut: tuple[int, list[tuple[int, int, int]]], axes: tuple[int, ...], *operands: Codes
) -> tuple[list[Codes], int]:
    """(the sum of each segment of a block, their flags); `axes` are those of k in the operands."""
    k, segments = cut
    sums, raised = [], 0
    for number, start, stop in segments:
        here = Position(at.index, at.shape, segment=number, k=k)
        given = [
            x[(*(slice(None),) * (axis % x.ndim), slice(start, stop))] for x, axis in zip(operands, axes, strict=True)
        ]
        codes, flags = evaluated(operation, here, *given)
        sums.append(codes)
        raised |= flags
    return sums, raised


def _together(operation: Step, at: Position, found: list[tuple[list[Codes], int]]) -> tuple[Codes, int]:
    """The whole sums of some outputs."""
    sums = np.stack([codes for some, _ in found for codes in some])
    codes, raised = evaluated(operation, at, sums)
    for _, flags in found:
        raised |= flags
    return codes, raised


def _contracted(
    name: str,
    function: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    operands: list[Any],
    axes: tuple[int, ...],
    chunks: Chunks,
    lengths: Sequence[int],
    output: Format,
) -> tuple[da.Array, Delayed]:
    """(codes, flags) of sums over k; operands are functions from a block of outputs and one of k to the task of a block."""
    fmt, accumulator = arguments[0], arguments[1]
    cut = _cut(name, accumulator, lengths)
    if not cut.segments:
        operation = step(name, function, *arguments, **options, out_format=output)
        tasks = {
            block: task(evaluated, operation, at, *(x(block, 0) for x in operands)) for block, at in places(chunks)
        }
        return assembled(tasks, chunks, output.dtype)
    operation = step(name, function, *arguments, **options)
    joining = operation._replace(
        function="join_segments", arguments=(fmt, accumulator), options={"k": cut.k, "out_format": output}
    )
    tasks = {}
    for block, at in places(chunks):
        found = [
            task(_part, operation, at, (cut.k, segments), axes, *(x(block, number) for x in operands))
            for number, segments in enumerate(cut.segments)
        ]
        tasks[block] = task(_together, joining, at, found)
    return assembled(tasks, chunks, output.dtype)


def _array(x: Any, fmt: Format, name: str) -> DaskArray:
    if isinstance(x, SoftArray):
        x = DaskArray(da.from_array(x.codes, chunks=-1), x.format)
    if not isinstance(x, DaskArray):
        raise TypeError(f"{name} takes DaskArrays and SoftArrays, got {type(x).__name__}")
    if x.format != fmt:
        raise TypeError(f"{name} takes operands of one format, got {fmt} and {x.format}; accepted: after astype")
    return x


def _both(a: Any, b: Any, name: str) -> tuple[DaskArray, DaskArray, Format]:
    formats = [x.format for x in (a, b) if isinstance(x, (DaskArray, SoftArray))]
    if not formats:
        raise TypeError(f"{name} takes DaskArrays and SoftArrays, got {type(a).__name__} and {type(b).__name__}")
    return _array(a, formats[0], name), _array(b, formats[0], name), formats[0]


def _flags(*arrays: DaskArray) -> list[Delayed]:
    return [one for x in arrays for one in x._flags.values()]


def matmul(a: Any, b: Any, accumulator: Accumulator | None = None, out_format: Format | str | None = None) -> DaskArray:
    """Matrix products of arrays in blocks, each output summed by an accumulator.

    Parameters
    ----------
    a, b : DaskArray or SoftArray
        (..., m, k) and (k, n) or (..., k, n), with the same leading axes, of one format.
    accumulator : Accumulator, optional
        Default: the environment's. Chunks that cut k must do so where it does.
    out_format : Format or str, optional
        Of the result; default that of the operands.

    Raises
    ------
    ValueError, TypeError
        Naming the argument; for chunks along k that would change bits, saying which would not.
    """
    x, y, fmt = _both(a, b, "matmul")
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2] or y.ndim not in (2, x.ndim) or (
        y.ndim > 2 and x.shape[:-2] != y.shape[:-2]
    ):  # fmt: skip
        raise ValueError(
            f"shapes do not fit: a {x.shape}, b {y.shape}; accepted: (..., m, k) and (k, n), or (..., k, n) with the same leading axes"
        )
    how, output = accumulator or accumulator_for(fmt), check_format(out_format or fmt, "out_format")
    lengths = x.chunks[-1] if y.chunks[-2] == x.chunks[-1] else _common(x.chunks[-1], y.chunks[-2])
    x = x.rechunk({x.ndim - 1: lengths})
    y = y.rechunk({y.ndim - 2: lengths})
    if y.ndim > 2:
        y = y.rechunk({axis: x.chunks[axis] for axis in range(x.ndim - 2)})
    left, right = parts(x.codes), parts(y.codes)
    operands = [
        lambda block, k: left[(*block[:-1], k)],
        lambda block, k: right[(*(block[:-2] if y.ndim > 2 else ()), k, block[-1])],
    ]
    codes, flags = _contracted(
        "matmul", "matmul", (fmt, how), {}, operands, (-1, -2), (*x.chunks[:-1], y.chunks[-1]), lengths, output
    )  # fmt: skip
    return DaskArray(codes, output, [flags, *_flags(x, y)])


def _common(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Chunks that both have an end of."""
    ends = sorted({*np.cumsum(first).tolist()} & {*np.cumsum(second).tolist()})
    return tuple(np.diff([0, *ends]).tolist())


def vecdot(a: Any, b: Any, accumulator: Accumulator | None = None, out_format: Format | str | None = None) -> DaskArray:
    """Dot products over the last axis; arguments are those of `matmul`, and both have the same shape (..., k)."""
    x, y, fmt = _both(a, b, "vecdot")
    if not x.ndim or x.shape != y.shape:
        raise ValueError(f"shapes do not fit: a {x.shape}, b {y.shape}; accepted: (..., k), both the same")
    how, output = accumulator or accumulator_for(fmt), check_format(out_format or fmt, "out_format")
    y = y.rechunk(x.chunks)
    left, right = parts(x.codes), parts(y.codes)
    operands = [lambda block, k: left[(*block, k)], lambda block, k: right[(*block, k)]]
    codes, flags = _contracted(
        "vecdot", "vecdot", (fmt, how), {}, operands, (-1, -1), x.chunks[:-1], x.chunks[-1], output
    )
    return DaskArray(codes, output, [flags, *_flags(x, y)])


def sum(
    a: DaskArray,
    axis: int | None = None,
    accumulator: Accumulator | None = None,
    out_format: Format | str | None = None,
) -> DaskArray:
    """Sums along an axis.

    Parameters
    ----------
    a : DaskArray
    axis : int, optional
        None only for arrays of one axis: of others, blocks have no place in the order of a sum over everything.
    accumulator, out_format
        As in `matmul`.
    """
    if not isinstance(a, (DaskArray, SoftArray)):
        raise TypeError(f"sum takes DaskArrays and SoftArrays, got {type(a).__name__}")
    x = _array(a, a.format, "sum")
    if axis is None and x.ndim != 1:
        raise ValueError(
            f"axis must be an integer for an array of {x.ndim} axes, got None; accepted: reshape(-1) first"
        )
    if axis is not None and (not is_integer(axis) or not -x.ndim <= axis < x.ndim):
        raise ValueError(f"axis must be None or an integer from {-x.ndim} to {x.ndim - 1}, got {axis!r}")
    along = int(axis or 0) % x.ndim
    how = accumulator or accumulator_for(x.format, products=False)
    output, blocks = check_format(out_format or x.format, "out_format"), parts(x.codes)
    chunks = (*x.chunks[:along], *x.chunks[along + 1 :])
    operands = [lambda block, k: blocks[(*block[:along], k, *block[along:])]]
    codes, flags = _contracted(
        "sum", "sum", (x.format, how), {"axis": along}, operands, (along,), chunks, x.chunks[along], output
    )
    return DaskArray(codes, output, [flags, *_flags(x)])


SUMS.update(matmul=matmul, sum=sum, vecdot=vecdot)
