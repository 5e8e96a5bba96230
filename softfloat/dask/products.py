"""Products and sums of arrays in blocks. Where k is cut, the accumulator must cut it there; otherwise bits would change, and it is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.sums import accumulator_for
from softfloat.checks import is_integer
from softfloat.dask.blocks import Block, Chunks, Step, Tasks, added, assembled, evaluated, parts, places, step, task
from softfloat.dask.collections import SUMS, DaskArray
from softfloat.dask.counting import FIELDS, counts_of
from softfloat.engine import Codes, check_boolean
from softfloat.formats import Format, check_format
from softfloat.positions import Position
from softfloat.status import FloatingPointTrap

__all__ = ["matmul", "sum", "vecdot"]


class Cut(NamedTuple):
    """Where blocks cut k: products of the whole, and for each block the segments that it has; none if one block has all."""

    k: int
    segments: list[list[tuple[int, int, int]]]
    """Of each block: (number, first product, the one after the last), counted from the block's first."""


def cut_of(name: str, accumulator: Accumulator, lengths: Sequence[int]) -> Cut:
    """How chunks along k are summed.

    Raises
    ------
    ValueError
        If the accumulator does not cut k there.
    """
    k = int(np.sum(lengths))
    if len(lengths) == 1:
        return Cut(k, [])
    if not accumulator.reduction or accumulator.wide:
        other = f"an accumulator with segments, such as accumulators.chunked({lengths[0]}, ...)"
        raise ValueError(
            f"{name} with {accumulator!r} adds along the whole of k={k}, and chunks {tuple(lengths)} cut it: "
            f"accepted: one chunk along k, by rechunk, or {other}{', of formats that are not wide' * accumulator.wide}"
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
) -> list[Block]:
    """The sum of each segment of a block; `axes` are those of k in the operands."""
    k, segments = cut
    sums = []
    for number, start, stop in segments:
        here = Position(at.index, at.shape, segment=number, k=k)
        given = [
            x[(*(slice(None),) * (axis % x.ndim), slice(start, stop))] for x, axis in zip(operands, axes, strict=True)
        ]
        sums.append(evaluated(operation, here, *given))
    return sums


def _together(operation: Step, at: Position, order: tuple[int, ...], found: list[list[Block]]) -> Block:
    """The whole sums of some outputs, whose random numbers are addressed with the axes in this order."""
    sums = [one for some in found for one in some]
    assert isinstance(at.index, tuple)
    assert at.shape is not None
    there = Position(tuple(at.index[axis] for axis in order), tuple(at.shape[axis] for axis in order))
    back = np.argsort(order).tolist()
    try:
        codes, raised, counts = evaluated(operation, there, np.stack([one.codes.transpose(order) for one in sums]))
    except FloatingPointTrap as trap:
        index = tuple(trap.index[axis] for axis in back)
        raise trap.moved(index) from None
    for one in sums:
        raised |= one.flags
    if counts is not None:
        arrays = [np.transpose(getattr(counts, name), back) for name in FIELDS[1:]]
        parts = [one.counts for one in sums if one.counts is not None]
        counts = added([*parts, bits.Counts(counts.additions, *arrays)])
    return Block(codes.transpose(back), raised, counts)


class Sums(NamedTuple):
    """Sums of products as they were asked for.

    Attributes
    ----------
    name : str
        Of the function, here and in `softfloat.bits`.
    format : Format
        Of the operands.
    accumulator : Accumulator
    output : Format
    counted : bool
        Whether `Counts` are wanted.
    sources : tuple of DaskArray
        Whose flags the result has, too.
    """

    name: str
    format: Format
    accumulator: Accumulator
    output: Format
    counted: bool
    sources: tuple[DaskArray, ...]

    def blocks(
        self,
        chunks: Chunks,
        cut: Cut,
        operands: Sequence[Callable[[tuple[int, ...], int], Any]],
        axes: tuple[int, ...],
        options: Callable[[tuple[int, ...]], dict[str, Any]] = lambda block: {},
        addend: Callable[[tuple[int, ...]], dict[str, Any]] = lambda block: {},
        order: tuple[int, ...] | None = None,
    ) -> Any:
        """The result in chunks, with `Counts` if they are wanted.

        `operands` are functions from a block of the result and one of k to the task of a block; `axes` those of k in them. `options`
        and `addend` are what a block's call takes besides; the addend goes to where sums are whole. Outputs are numbered with the
        axes in this `order`, by default their own.
        """
        asked: dict[str, Any] = {"count": True} if self.counted else {}
        operation, tasks = step(self.name, self.name, self.format, self.accumulator, **asked), Tasks()
        joined = {"k": cut.k, "out_format": self.output, **asked}
        for block, at in places(chunks):
            here = operation._replace(options=operation.options | options(block))
            if not cut.segments:
                here.options.update(addend(block), out_format=self.output)
                tasks[block] = task(evaluated, here, at, *(x(block, 0) for x in operands))
                continue
            found = [
                task(_part, here, at, (cut.k, segments), axes, *(x(block, number) for x in operands))
                for number, segments in enumerate(cut.segments)
            ]
            joining = operation._replace(function="join_segments", options=joined | addend(block))
            tasks[block] = task(_together, joining, at, order or tuple(range(len(chunks))), found)
        codes, flags = assembled(tasks, chunks, self.output.dtype)
        result = DaskArray(codes, self.output, [flags, *_flags(*self.sources)])
        return (result, counts_of(tasks, chunks)) if self.counted else result


def in_blocks(x: Any, fmt: Format, name: str) -> DaskArray:
    """An operand in blocks."""
    if isinstance(x, SoftArray):
        x = DaskArray(da.from_array(x.codes, chunks=-1), x.format)
    if not isinstance(x, DaskArray):
        raise TypeError(f"{name} takes DaskArrays and SoftArrays, got {type(x).__name__}")
    if x.format != fmt:
        raise TypeError(f"{name} takes operands of one format, got {fmt} and {x.format}; accepted: after astype")
    return x


def both(a: Any, b: Any, name: str) -> tuple[DaskArray, DaskArray, Format]:
    """Operands in blocks, and their format."""
    formats = [x.format for x in (a, b) if isinstance(x, (DaskArray, SoftArray))]
    if not formats:
        raise TypeError(f"{name} takes DaskArrays and SoftArrays, got {type(a).__name__} and {type(b).__name__}")
    return in_blocks(a, formats[0], name), in_blocks(b, formats[0], name), formats[0]


def _flags(*arrays: DaskArray) -> list[Delayed]:
    return [one for x in arrays for one in x._flags.values()]


def matmul(
    a: Any,
    b: Any,
    accumulator: Accumulator | None = None,
    out_format: Format | str | None = None,
    *,
    count: bool = False,
) -> Any:
    """Matrix products of arrays in blocks, each output summed by an accumulator.

    Parameters
    ----------
    a, b : DaskArray or SoftArray
        (..., m, k) and (k, n) or (..., k, n), with the same leading axes, of one format.
    accumulator : Accumulator, optional
        Default: the environment's. Chunks that cut k must do so where it does.
    out_format : Format or str, optional
        Of the result; default that of the operands.
    count : bool
        Return `Counts` as well.

    Returns
    -------
    result : DaskArray
    counts : Counts
        If `count`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument; for chunks along k that would change bits, saying which would not.
    """
    x, y, fmt = both(a, b, "matmul")
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2] or y.ndim not in (2, x.ndim) or (
        y.ndim > 2 and x.shape[:-2] != y.shape[:-2]
    ):  # fmt: skip
        raise ValueError(
            f"shapes do not fit: a {x.shape}, b {y.shape}; accepted: (..., m, k) and (k, n), or (..., k, n) with the same leading axes"
        )
    how, output = accumulator or accumulator_for(fmt), check_format(out_format or fmt, "out_format", wide=True)
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
    sums = Sums("matmul", fmt, how, output, check_boolean("count", count), (x, y))
    return sums.blocks((*x.chunks[:-1], y.chunks[-1]), cut_of("matmul", how, lengths), operands, (-1, -2))


def _common(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Chunks that both have an end of."""
    ends = sorted({*np.cumsum(first).tolist()} & {*np.cumsum(second).tolist()})
    return tuple(np.diff([0, *ends]).tolist())


def vecdot(
    a: Any,
    b: Any,
    accumulator: Accumulator | None = None,
    out_format: Format | str | None = None,
    *,
    count: bool = False,
) -> Any:
    """Dot products over the last axis; arguments are those of `matmul`, and both have the same shape (..., k)."""
    x, y, fmt = both(a, b, "vecdot")
    if not x.ndim or x.shape != y.shape:
        raise ValueError(f"shapes do not fit: a {x.shape}, b {y.shape}; accepted: (..., k), both the same")
    how, output = accumulator or accumulator_for(fmt), check_format(out_format or fmt, "out_format", wide=True)
    y = y.rechunk(x.chunks)
    left, right = parts(x.codes), parts(y.codes)
    operands = [lambda block, k: left[(*block, k)], lambda block, k: right[(*block, k)]]
    sums = Sums("vecdot", fmt, how, output, check_boolean("count", count), (x, y))
    return sums.blocks(x.chunks[:-1], cut_of("vecdot", how, x.chunks[-1]), operands, (-1, -1))


def sum(
    a: DaskArray,
    axis: int | None = None,
    accumulator: Accumulator | None = None,
    out_format: Format | str | None = None,
    *,
    count: bool = False,
) -> Any:
    """Sums along an axis.

    Parameters
    ----------
    a : DaskArray
    axis : int, optional
        None only for arrays of one axis: of others, blocks have no place in the order of a sum over everything.
    accumulator, out_format, count
        As in `matmul`, and so are results.
    """
    if not isinstance(a, (DaskArray, SoftArray)):
        raise TypeError(f"sum takes DaskArrays and SoftArrays, got {type(a).__name__}")
    x = in_blocks(a, a.format, "sum")
    if axis is None and x.ndim != 1:
        raise ValueError(
            f"axis must be an integer for an array of {x.ndim} axes, got None; accepted: reshape(-1) first"
        )
    if axis is not None and (not is_integer(axis) or not -x.ndim <= axis < x.ndim):
        raise ValueError(f"axis must be None or an integer from {-x.ndim} to {x.ndim - 1}, got {axis!r}")
    along = int(axis or 0) % x.ndim
    how = accumulator or accumulator_for(x.format, products=False)
    output, blocks = check_format(out_format or x.format, "out_format", wide=True), parts(x.codes)
    chunks = (*x.chunks[:along], *x.chunks[along + 1 :])
    operands = [lambda block, k: blocks[(*block[:along], k, *block[along:])]]
    sums = Sums("sum", x.format, how, output, check_boolean("count", count), (x,))
    return sums.blocks(chunks, cut_of("sum", how, x.chunks[along]), operands, (along,), lambda block: {"axis": along})


SUMS.update(matmul=matmul, sum=sum, vecdot=vecdot)
