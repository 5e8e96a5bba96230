"""What a task computes: one block of one operation, under settings that travel with it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, TypeAlias

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph

from softfloat import bits
from softfloat.bits.operations import ELEMENTWISE
from softfloat.dask.following import Progress, compute
from softfloat.engine import Codes
from softfloat.environments import Environment, Rounding, current_environment
from softfloat.positions import Position
from softfloat.status import Flags, as_flags, first_trap

Chunks: TypeAlias = tuple[tuple[int, ...], ...]
TOGETHER = 16  # flags OR-ed by one task


class Step(NamedTuple):
    """One operation as it was written: the function of `softfloat.bits`, its further arguments, the settings and the stream then in force."""

    name: str
    function: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    environment: Environment
    stream: int


def step(name: str, function: str, *arguments: Any, rounding: Rounding | None = None, **options: Any) -> Step:
    """An operation under the environment in force; it takes the next stream, as any operation does.

    `rounding` is for functions that round in a direction of their own.
    """
    env = current_environment()
    if env.position is not None:
        raise ValueError(
            "position of the environment must be None: blocks of Dask's arrays have positions of their own"
        )
    if env.generator != "philox4x32":
        raise ValueError(f"generator must be 'philox4x32' for arrays in blocks, got {env.generator!r}")
    own = {} if rounding is None else {"rounding": rounding}
    return Step(name, function, arguments, options, env.replace(accumulator=None, **own), env.next_stream())


class Block(NamedTuple):
    """What a task gives: codes, flags OR-ed together, and counts of sums where they were asked for."""

    codes: Any
    flags: int
    counts: bits.Counts | None = None


def evaluated(operation: Step, position: Position, *operands: Codes) -> Block:
    """One block of an operation; a trap tells the index in the whole."""
    traps = as_flags(operation.environment.traps)
    codes, flags, *counts = getattr(bits, operation.function)(
        *operands, *operation.arguments, environment=operation.environment, stream=operation.stream, position=position,
        flags="each" if traps else "any", **operation.options,
    )  # fmt: skip
    raised = int(np.bitwise_or.reduce(flags, axis=None)) if traps else int(flags)
    if raised & traps:
        alike = operands if operation.function in ELEMENTWISE or operation.function in ("encode", "convert") else ()
        trap = first_trap(operation.name, alike, np.asarray(flags), traps, operation.environment.nan)
        assert isinstance(position.index, tuple)
        index = tuple(start + at for start, at in zip(position.index, trap.index, strict=True))
        raise trap.moved(index)
    return Block(np.asarray(codes), raised, *counts)


def added(counts: Sequence[bits.Counts]) -> bits.Counts:
    """Counts of one sum that was done in parts."""
    overflowed, inexact, swamped = (
        np.sum([getattr(x, name) for x in counts], axis=0) for name in ("overflowed", "inexact", "swamped")
    )
    smallest, largest = np.fmin.reduce([x.smallest for x in counts]), np.fmax.reduce([x.largest for x in counts])
    return bits.Counts(sum(x.additions for x in counts), overflowed, inexact, swamped, smallest, largest)


def check_chunks(chunks: Any, name: str) -> Chunks:
    """Chunks of known lengths."""
    if any(isinstance(size, float) for axis in chunks for size in axis):
        raise ValueError(
            f"{name} has chunks of unknown length, which have no place; accepted: after compute_chunk_sizes()"
        )
    return tuple(tuple(int(size) for size in axis) for axis in chunks)


def starts(chunks: Chunks) -> list[list[int]]:
    """Where the chunks of each axis begin."""
    return [[0, *itertools.accumulate(axis)][:-1] for axis in chunks]


def places(chunks: Chunks) -> Iterator[tuple[tuple[int, ...], Position]]:
    """The number of each block, and its position in the whole."""
    shape, begins = tuple(sum(axis) for axis in chunks), starts(chunks)
    for block in np.ndindex(*(len(axis) for axis in chunks)):
        yield block, Position(tuple(begin[i] for begin, i in zip(begins, block, strict=True)), shape)


def parts(codes: da.Array) -> Any:
    """The blocks of an array as an array of tasks, which are those of every other use of it."""
    return codes.to_delayed(optimize_graph=False)


Tasks: TypeAlias = dict[tuple[int, ...], Delayed]
"""The number of each block -> the task that gives it."""


def laid_out(found: Tasks, chunks: Chunks, dtype: Any, part: str = "codes") -> da.Array:
    """The array whose blocks are a part of what tasks give: their codes, or an array of their counts."""
    name = f"{part}-{uuid.uuid4().hex}"
    blocks = {(name, *block): (_part_of, one.key, part) for block, one in found.items()}
    graph = HighLevelGraph.from_collections(name, blocks, dependencies=list(found.values()))
    return da.Array(graph, name, chunks, dtype=dtype)


def _part_of(block: Block, name: str) -> Any:
    return block.codes if name == "codes" else np.asarray(getattr(block.counts, name))


def assembled(found: Tasks, chunks: Chunks, dtype: Any) -> tuple[da.Array, Delayed]:
    """(the array of codes, the flags of all blocks)."""
    return laid_out(found, chunks, dtype), gathered([task[1] for task in found.values()])


def gathered(flags: Sequence[Any]) -> Delayed:
    """Flags OR-ed together, some at a time."""
    level = list(flags) or [delayed(0)]
    while True:
        level = [delayed(_any)(level[i : i + TOGETHER]) for i in range(0, len(level), TOGETHER)]
        if len(level) == 1:
            return level[0]


def _any(flags: Sequence[int]) -> int:
    return reduce(or_, flags, 0)


def computed(codes: Any, flags: Sequence[Delayed], progress: Progress = False, **options: Any) -> Any:
    """The array computed; its flags go to the status of the environment in force."""
    found, raised = compute([codes, gathered(flags)], progress, **options)
    current_environment().status.raise_flags(Flags(int(raised)))
    return found


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """A call in a task of its own; each is one, however alike."""
    return delayed(function, pure=False)(*arguments)
