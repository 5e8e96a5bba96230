"""Work shared among ordinary threads, with progress; results do not depend on how many there are."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from importlib import import_module
from typing import Any, TypeVar

from softfloat.checks import check_count
from softfloat.progress import bars, is_watched

ALIGNMENT = 1 << 12  # chunks start at multiples of it: a whole number of random tiles and of cache lines
SMALLEST_SHARE = 1 << 16  # elements that are worth waking a thread for
T = TypeVar("T")


# -- threads ---------------------------------------------------------------------------------------------------------


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Workers:
    """A pool of ordinary threads. Loops hold no interpreter lock, so these run in parallel; tasks never wait for one another."""

    def __init__(self) -> None:
        wanted = os.environ.get("NUMBA_NUM_THREADS", "")
        self.count = int(wanted) if wanted.isdigit() and int(wanted) else _available_cores()
        self._pool: ThreadPoolExecutor | None = None
        self._owner = 0

    def pool(self) -> ThreadPoolExecutor:
        """The pool, made anew after a fork, which copies no threads."""
        pool = self._pool
        if pool is None or self._owner != os.getpid():
            pool = ThreadPoolExecutor(max(1, _available_cores(), self.count), thread_name_prefix="softfloat")
            self._pool, self._owner = pool, os.getpid()
        return pool

    def resize(self, count: int) -> None:
        self.count, self._pool = count, None


_workers = _Workers()


def get_num_threads() -> int:
    """Threads that large arrays are shared among; at first NUMBA_NUM_THREADS if set, else the cores this process may use."""
    return _workers.count


def set_num_threads(count: int) -> None:
    """Share large arrays among `count` threads. Results do not depend on it.

    Raises
    ------
    ValueError
        If `count` is not a positive integer.
    """
    _workers.resize(check_count("count", count))


_helping = threading.local()
"""Of a thread that does another's work: it hands none on, since all that might take it may be waiting as well."""


def _until(over: threading.Event, work: Callable[..., T], *span: int) -> T:
    """Work of another thread, which compiles nothing more once it is over."""
    from softfloat.kernels import linking

    def look() -> None:
        if over.is_set():
            raise KeyboardInterrupt

    linking.waiting.look, _helping.now = look, True
    try:
        return work(*span)
    finally:
        del linking.waiting.look, _helping.now


@contextlib.contextmanager
def _others() -> Iterator[tuple[Callable[..., None], list[Future[Any]]]]:
    """What to hand work to other threads with, and what they make of it. An interrupted call leaves none behind that still writes."""
    over = threading.Event()
    import_module("softfloat.kernels.linking")  # before other threads do: two at once find Numba half imported
    futures: list[Future[Any]] = []

    def submit(work: Callable[..., Any], *span: int) -> None:
        futures.append(_workers.pool().submit(_until, over, work, *span))

    try:
        yield submit, futures
    except BaseException:
        over.set()
        raise
    finally:
        wait(futures)


def share(size: int, work: Callable[[int, int], int], whole: int = 1) -> int:
    """Call work(start, stop) over 0 ... size in chunks, in parallel where it pays; returns the results OR-ed together.

    Chunks start at multiples of `whole`.
    """
    threads = min(_workers.count, max(1, size // SMALLEST_SHARE))
    if threads == 1:
        return int(work(0, size))
    step = -(-size // threads)
    aligned = math.lcm(ALIGNMENT, whole)
    step = -(-step // aligned) * aligned
    spans = [(start, min(start + step, size)) for start in range(0, size, step)]
    seen = 0
    with _others() as (submit, futures):
        for span in spans[1:]:
            try:
                submit(work, *span)
            except RuntimeError:  # the interpreter is leaving, and takes no more work for other threads
                seen |= int(work(*span))
        seen |= int(work(*spans[0]))
    for future in futures:
        seen |= int(future.result())
    return seen


PIECE = 1 << 23  # multiply-adds: what a thread does before it looks whether it is still wanted


def share_units(count: int, work: Callable[[int, int], int], cost: int) -> None:
    """Call work(start, stop) over 0 ... count in small pieces, in parallel where it pays; `cost` multiply-adds a unit.

    A run that takes long shows its progress where a terminal would see it, and an interrupt ends it between two pieces.
    """
    if count * cost < SMALLEST_SHARE or hasattr(_helping, "now"):
        if count:
            work(0, count)
        return
    shares = 4 * _workers.count if _workers.count > 1 else 1
    step = max(1, min(PIECE // max(cost, 1), -(-count // shares)))
    if step >= count and count * cost <= PIECE:  # a bar would show what is done
        work(0, count)
        return
    spans = [(start, min(start + step, count)) for start in range(0, count, step)]
    with Progress(len(spans)) as progress:
        if _workers.count == 1 or len(spans) == 1:
            for span in spans:
                work(*span)
                progress.advance()
            return
        _share_spans(spans, work, progress)


def _share_spans(spans: list[tuple[int, int]], work: Callable[[int, int], int], progress: Progress) -> None:
    remaining = iter(spans)
    lock = threading.Lock()

    def take() -> tuple[int, int] | None:
        with lock:
            return next(remaining, None)

    def drain() -> None:
        while (span := take()) is not None:
            work(*span)
            progress.advance()

    with _others() as (submit, futures):
        try:
            for _ in range(min(_workers.count, len(spans)) - 1):
                try:
                    submit(drain)
                except RuntimeError:  # the interpreter is leaving, and takes no more work for other threads
                    break
            drain()
        finally:
            with lock:
                remaining = iter(())
    for future in futures:
        future.result()


class Progress:
    """A bar on standard error, for runs that last, on terminals."""

    PATIENCE = 1.5  # seconds

    def __init__(self, total: int) -> None:
        self.total, self.done, self._began = total, 0, time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()

    def advance(self) -> None:
        """One more piece is done."""
        with self._lock:
            self.done += 1
            overdue = time.monotonic() - self._began > self.PATIENCE
            if self._bar is None and overdue and is_watched():
                self._open()
            if self._bar is not None:
                self._bar.update(self._task, completed=self.done)

    def _open(self) -> None:
        self._bar = bars()
        self._task = self._bar.add_task("softfloat", total=self.total)
        self._bar.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()
