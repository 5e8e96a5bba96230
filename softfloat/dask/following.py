"""How far a computation is: its tasks, followed on whatever computes them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import dask
from dask.base import get_scheduler
from dask.callbacks import Callback

from softfloat.progress import bars, is_watched

Report: TypeAlias = Callable[[int, int], None]
Progress: TypeAlias = bool | Report
"""True for a bar on standard error where that is a terminal; or what to call with (tasks done, of so many)."""


@contextlib.contextmanager
def reporting(progress: Progress) -> Iterator[Report | None]:
    """What to call with how far it is; None where nobody wants to know.

    Raises
    ------
    TypeError
        If `progress` is neither.
    """
    if not isinstance(progress, bool):
        if not callable(progress):
            raise TypeError(f"progress must be True, False, or callable with (done, total), got {progress!r}")
        yield progress
    elif not progress or not is_watched():
        yield None
    else:
        with bars("bar", "count", "elapsed", "remaining") as shown:
            task = shown.add_task("", total=None)
            yield lambda done, total: shown.update(task, completed=done, total=total)


class _Following(Callback):
    """Counts the tasks of a scheduler of this process."""

    def __init__(self, report: Report) -> None:
        super().__init__(start_state=self._started, posttask=self._finished)
        self._report, self._total = report, 0

    def _started(self, graph: Any, state: dict[str, Any]) -> None:
        self._total = len(state["ready"]) + len(state["waiting"])
        self._report(0, self._total)

    def _finished(self, key: Any, result: Any, graph: Any, state: dict[str, Any], worker: Any) -> None:
        self._report(len(state["finished"]), self._total)


def client_of(options: dict[str, Any]) -> Any:
    """The cluster's client that would compute under these options of `dask.compute`; None for the schedulers of this process."""
    owner = getattr(get_scheduler(scheduler=options.get("scheduler")), "__self__", None)
    return owner if hasattr(owner, "nthreads") else None


def compute(things: Sequence[Any], progress: Progress = False, **options: Any) -> tuple[Any, ...]:
    """`dask.compute`, followed: several results at once, such as an array and its flags, so that what they share is computed once.

    Parameters
    ----------
    things : sequence
        Dask's collections.
    progress, options
        As in `DaskArray.compute`. Followed are the tasks of this process's schedulers, on a cluster the blocks of the results.
    """
    with reporting(progress) as report:
        if report is None:
            return tuple(dask.compute(*things, **options))
        client = client_of(options)
        if client is None:
            with _Following(report):
                return tuple(dask.compute(*things, **options))
        from distributed import as_completed
        from distributed.client import futures_of

        kept = dask.persist(*things, **options)
        futures = futures_of(kept)
        report(0, len(futures))
        for done, _ in enumerate(as_completed(futures, loop=client.loop), 1):
            report(done, len(futures))
        return tuple(dask.compute(*kept, **options))
