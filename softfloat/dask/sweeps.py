"""A function over whole operand spaces, in tasks: a digest of everything it gives, or what differs from another."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import delayed
from dask.multiprocessing import get_context

from softfloat.checks import check_count
from softfloat.dask.following import Progress, client_of, reporting
from softfloat.engine import Codes, refuse_mask
from softfloat.formats import Format, check_format

__all__ = ["Mismatch", "Sweep", "sweep", "sweep_tasks"]

STEP = 1 << 24
PIECE = 1 << 15  # operands of a call within a task: what is made of them stays in a core's cache
SHOWN = 10  # mismatches that are kept
AT_ONCE = (
    32  # tasks between two entries of a manifest without a cluster, and those that each thread of a cluster has waiting
)


class Mismatch(NamedTuple):
    """Operands for which two functions differ.

    Attributes
    ----------
    operands : tuple of int
    found, expected : tuple of int
        What each gave: its result, and what came with it.
    """

    operands: tuple[int, ...]
    found: tuple[int, ...]
    expected: tuple[int, ...]


class Sweep(NamedTuple):
    """What a sweep found.

    Attributes
    ----------
    elements : int
        Operands, or pairs or triples of them, each tried once.
    digest : str
        SHA-256 over the digests of the tasks, in their order; it depends on `step`, and on nothing else of how the work was done.
    mismatches : int
        Where `expected` differs; 0 without one.
    examples : tuple of Mismatch
        The first of them.
    """

    elements: int
    digest: str
    mismatches: int
    examples: tuple[Mismatch, ...]


def pieces(formats: Sequence[Format], first: int, last: int, size: int) -> Iterator[tuple[int, list[Codes]]]:
    """(number of the first, operands) of so many numbers at a time, from first to last - 1, in arrays that are used again:
    where memory goes back to the system at once, as on workers of a cluster, new ones cost more than most functions.

    >>> from softfloat import float8_e5m2
    >>> [(start, [x.tolist() for x in some]) for start, some in pieces([float8_e5m2] * 2, 254, 258, 3)]
    [(254, [[0, 0, 1], [254, 255, 0]]), (257, [[1], [1]])]
    """
    size = min(size, last - first)
    offsets, rest = np.arange(size, dtype=np.uint64), np.empty(size, np.uint64)
    operands = [np.empty(size, fmt.dtype) for fmt in formats]
    for start in range(first, last, size):
        count = min(size, last - start)
        np.add(offsets, np.uint64(start), out=rest)
        for fmt, codes in zip(reversed(formats), reversed(operands), strict=True):
            np.bitwise_and(rest, np.uint64((1 << fmt.bits) - 1), out=codes, casting="unsafe")
            np.right_shift(rest, np.uint64(fmt.bits), out=rest)
        yield start, [codes[:count] for codes in operands]


def _results(function: Callable[..., Any], operands: list[Codes], addressed: bool, start: int) -> list[Codes]:
    found = function(*operands, **({"position": start} if addressed else {}))
    refuse_mask(found, "function's result")
    arrays = [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]
    for x in arrays:
        if x.shape != operands[0].shape or x.dtype.kind not in "biuf":
            raise ValueError(
                f"function must give arrays of numbers of its operands' shape, {operands[0].shape}, got {x.dtype} of shape {x.shape}"
            )
    return arrays


@dataclass(frozen=True)
class _Comparison:
    """What a task of a sweep does: some operands, the last one's codes fastest."""

    function: Callable[..., Any]
    expected: Callable[..., Any] | None
    formats: tuple[Format, ...]
    addressed: bool
    step: int
    elements: int

    def __call__(self, number: int) -> dict[str, Any]:
        first, last = number * self.step, min((number + 1) * self.step, self.elements)
        found = _Digests()
        entry: dict[str, Any] = {"mismatches": 0, "examples": []}
        for start, operands in pieces(self.formats, first, last, PIECE):
            results = _results(self.function, operands, self.addressed, start)
            found.add(results)
            if self.expected is not None:
                _compare(operands, results, _results(self.expected, operands, self.addressed, start), entry)
        return entry | {"digest": found.whole()}


def _compare(operands: list[Codes], found: list[Codes], wanted: list[Codes], entry: dict[str, Any]) -> None:
    """Enter what differs."""
    if len(wanted) != len(found):
        raise ValueError(f"function and expected must give as many arrays, got {len(found)} and {len(wanted)}")
    differs = np.zeros(found[0].shape, bool)
    for x, y in zip(found, wanted, strict=True):
        differs |= (x != y) & ~((x != x) & (y != y))
    count = int(differs.sum())
    if count:
        entry["mismatches"] += count
        for at in np.flatnonzero(differs)[: SHOWN - len(entry["examples"])].tolist():
            entry["examples"].append([[x[at].item() for x in part] for part in (operands, found, wanted)])


class _Digests:
    """SHA-256 of what comes in pieces, an array each; that of the arrays' digests is the task's."""

    def __init__(self) -> None:
        self.kinds, self.each = list[str](), list[Any]()

    def add(self, arrays: list[Codes]) -> None:
        kinds = [x.dtype.str for x in arrays]
        if not self.each:
            self.kinds, self.each = kinds, [hashlib.sha256(f"{kind} ".encode()) for kind in kinds]
        if kinds != self.kinds:
            raise ValueError(f"function must give the same types for all operands, got {self.kinds} and {kinds}")
        for digest, x in zip(self.each, arrays, strict=True):
            digest.update(np.ascontiguousarray(x.astype(x.dtype.newbyteorder("<"), copy=False)))

    def whole(self) -> str:
        return _digest(digest.digest() for digest in self.each)


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class Manifest:
    """The tasks that are done, a line each, under a line that says of what; a line that was cut off counts for nothing."""

    def __init__(self, path: Path | None, heading: dict[str, Any]) -> None:
        self.path, self.entries = path, dict[int, dict[str, Any]]()
        if path is None:
            return
        if path.exists():
            self._read(path, heading)
        else:
            path.write_text(json.dumps(heading) + "\n", encoding="utf-8")

    def _read(self, path: Path, heading: dict[str, Any]) -> None:
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.decode("utf-8").splitlines()
        if not lines or json.loads(lines[0]) != heading:
            raise ValueError(
                f"manifest {path} is that of another sweep: {lines[0] if lines else 'empty'}; accepted: a new path, or {json.dumps(heading)}"
            )
        if len(whole) < len(text):
            os.truncate(path, len(whole))
        for line in lines[1:]:
            entry = json.loads(line)
            self.entries[entry["task"]] = entry

    def add(self, entries: Sequence[dict[str, Any]]) -> None:
        """Enter tasks, each once however often it was done."""
        new = [entry for entry in entries if entry["task"] not in self.entries]
        if self.path is not None and new:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps(entry) + "\n" for entry in new))
                file.flush()
                os.fsync(file.fileno())
        self.entries.update((entry["task"], entry) for entry in new)


def sweep(
    function: Callable[..., Any],
    operands: Sequence[Format | str],
    *,
    expected: Callable[..., Any] | None = None,
    addressed: bool = False,
    step: int = STEP,
    manifest: str | os.PathLike[str] | None = None,
    name: str | None = None,
    client: Any = None,
    retries: int = 3,
    progress: Progress = False,
    **options: Any,
) -> Sweep:
    """A function over all codes of its operands' formats, in tasks.

    Parameters
    ----------
    function : callable
        Takes an array of codes for each operand; returns an array of their shape, or a tuple of them. A task calls it for some
        thousands of operands at a time, whose arrays are used again. On a cluster it is pickled.
    operands : sequence of Format or str
        What operands are codes of: two of 16 bits make 2^32 pairs.
    expected : callable, optional
        Another such function: what differs from it is counted. NaN equals NaN where results are floats.
    addressed : bool
        Give functions `position`, the number of their first operands in the space, for random numbers.
    step : int
        Operands of a task.
    manifest : path, optional
        Where tasks are entered that are done. A sweep that was interrupted goes on from there; one of another name, space or
        step is refused.
    name : str, optional
        What the manifest calls the sweep; default the function's name.
    client, retries, progress, options
        As in `sweep_tasks`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument.

    >>> from functools import partial
    >>> from softfloat import bits
    >>> found = sweep(partial(bits.mul, fmt="float8_e5m2"), ["float8_e5m2"] * 2, scheduler="synchronous")
    >>> found.elements, found.mismatches
    (65536, 0)
    """
    formats = tuple(check_format(fmt, "operands", wide=True) for fmt in operands)
    if not formats:
        raise ValueError("operands must be one format or more, got none")
    if not callable(function) or not (expected is None or callable(expected)):
        raise TypeError(f"function and expected must be callable, got {function!r} and {expected!r}")
    step, elements = check_count("step", step), math.prod(1 << fmt.bits for fmt in formats)
    if elements > 1 << 62:
        raise ValueError(f"operands have {elements} combinations; accepted: at most 2^62")
    heading = {
        "name": name or _name(function), "expected": None if expected is None else _name(expected),
        "operands": [fmt.name for fmt in formats], "step": step, "addressed": bool(addressed),
    }  # fmt: skip
    work = _Comparison(function, expected, formats, bool(addressed), step, elements)
    entries = sweep_tasks(
        work, -(-elements // step), heading, manifest=manifest, client=client, retries=retries, progress=progress, **options
    )  # fmt: skip
    examples = [Mismatch(*(tuple(x) for x in one)) for entry in entries for one in entry["examples"]]
    digest = _digest(entry["digest"].encode() for entry in entries)
    return Sweep(elements, digest, sum(entry["mismatches"] for entry in entries), tuple(examples[:SHOWN]))


def sweep_tasks(
    work: Callable[[int], Any],
    count: int,
    heading: dict[str, Any] | str,
    *,
    manifest: str | os.PathLike[str] | None = None,
    client: Any = None,
    retries: int = 3,
    progress: Progress = False,
    **options: Any,
) -> list[Any]:
    """What a function gives for each number from 0 to count - 1, each counted once, however often it was done.

    Parameters
    ----------
    work : callable
        Takes a number, returns what JSON can hold. Processes and clusters get it pickled.
    count : int
        How many tasks there are.
    heading : dict or str
        What the manifest says they are tasks of.
    manifest : path, optional
        Where tasks are entered that are done. What was interrupted goes on from there; a manifest of another heading is refused.
    client : distributed.Client, optional
        The cluster. Default: dask's scheduler in force, or the one that `options`, those of `dask.compute`, name.
    retries : int
        How often a task may fail, or the processes of scheduler="processes" be lost, before the error is raised. Tasks of a cluster's
        worker that is lost are done by others.
    progress : bool or callable
        As in `DaskArray.compute`; done are tasks.

    Returns
    -------
    list
        In the order of numbers.

    Raises
    ------
    ValueError, TypeError
        Naming the argument; what `work` raised.

    >>> sweep_tasks(lambda number: number**2, 5, "squares", scheduler="synchronous")
    [0, 1, 4, 9, 16]
    """
    tasks, retries = check_count("count", count), check_count("retries", retries, 0)
    done = Manifest(None if manifest is None else Path(manifest), {"sweep": heading, "tasks": tasks})
    numbers = [number for number in range(tasks) if number not in done.entries]
    client = client_of(options) if client is None else client
    with reporting(progress) as report:

        def entered(found: Sequence[tuple[int, Any]]) -> None:
            done.add([{"task": number, "found": value} for number, value in found])
            if report is not None:
                report(len(done.entries), tasks)

        entered([])
        if client is not None:
            _on_cluster(client, work, numbers, entered, retries)
        else:
            _here(work, numbers, entered, retries, options)
    return [done.entries[number]["found"] for number in range(tasks)]


def _here(
    work: Callable[[int], Any], numbers: list[int], entered: Callable[..., None], retries: int, options: dict[str, Any]
) -> None:
    """Tasks on a scheduler of this process, some at a time; processes are the same for all of them, until one is lost."""
    named = str(options.get("scheduler") or dask.config.get("scheduler", "")).lower()
    own = named in ("processes", "multiprocessing") and "pool" not in options
    pool: ProcessPoolExecutor | None = None
    try:
        for first in range(0, len(numbers), AT_ONCE):
            some = numbers[first : first + AT_ONCE]
            while True:
                if own and pool is None:
                    workers = options.get("num_workers") or dask.config.get("num_workers", None)
                    pool = ProcessPoolExecutor(workers, mp_context=get_context())
                given = options if pool is None else {**options, "pool": pool}
                try:
                    found = dask.compute(*(delayed(work, pure=False)(number) for number in some), **given)
                    break
                except BrokenProcessPool:
                    if not own or not retries:
                        raise
                    retries, pool = retries - 1, None
            entered(list(zip(some, found, strict=True)))
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _name(function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)
    more = {key: str(value) for key, value in getattr(function, "keywords", {}).items()}
    return f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', inner)} {more or ''}".strip()


def _on_cluster(
    client: Any, work: Callable[[int], Any], numbers: list[int], entered: Callable[..., None], retries: int
) -> None:
    """All tasks on a cluster, entered as they come."""
    from distributed import as_completed

    remaining, running = iter(numbers), dict[Any, int]()
    workers = max(1, sum(client.nthreads().values()))

    def submitted(count: int) -> list[Any]:
        some = {
            client.submit(work, number, pure=False, retries=retries): number
            for number in itertools.islice(remaining, count)
        }
        running.update(some)
        return list(some)

    finished = as_completed(submitted(AT_ONCE * workers), loop=client.loop)
    for some in finished.batches():
        entered([(running.pop(future), future.result()) for future in some])
        for one in submitted(len(some)):
            finished.add(one)
