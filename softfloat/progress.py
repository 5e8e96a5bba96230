"""Bars and lines on standard error while something runs, for people at a terminal; logs and pipes get none, or a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Shown", "bar", "bars", "is_watched", "shares", "status_line"]


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def bars(*columns: str) -> Progress:
    """Bars that leave nothing behind; rich's own columns, or those named.

    Parameters
    ----------
    columns : str
        "bar", "count" and "bytes" (done of all), "elapsed" and "remaining" (time); anything else is a text, in which
        {task} is rich's task.
    """
    from rich import progress
    from rich.console import Console

    known: dict[str, Callable[[], progress.ProgressColumn]] = {
        "bar": progress.BarColumn,
        "count": progress.MofNCompleteColumn,
        "bytes": progress.DownloadColumn,
        "elapsed": progress.TimeElapsedColumn,
        "remaining": progress.TimeRemainingColumn,
    }
    made = [known[x]() if x in known else progress.TextColumn(x) for x in columns]
    return progress.Progress(*made, console=Console(stderr=True), transient=True, redirect_stdout=False)


@contextlib.contextmanager
def bar(total: int | None, *columns: str) -> Iterator[Callable[[int], None] | None]:
    """One bar, and what to call with how much is done; None where standard error is no terminal. `columns` as `bars` takes them."""
    if not is_watched():
        yield None
        return
    with bars(*columns) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.update(task, completed=done)


SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_NAMES = 1.0


class Shown:
    """A bar with a name and a share; without a terminal a line on standard error for each name, and for those that take long now and then."""

    def __init__(self, heading: str, progress: Progress | None) -> None:
        self._heading, self._progress = heading, progress
        self._task = None if progress is None else progress.add_task(heading, total=1.0)
        self._told, self._name = time.monotonic(), ""

    def update(self, name: str, share: float, detail: str = "") -> None:
        """What is under way, how much of the whole is done, from 0 to 1, and what of it in particular."""
        text = f"{name}: {detail}" if detail else name
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text, completed=share)
            self._progress.start()
            return
        wanted = SECONDS_BETWEEN_LINES if name == self._name else SECONDS_BETWEEN_NAMES
        if time.monotonic() - self._told >= wanted and sys.stderr is not None:
            self._told, self._name = time.monotonic(), name
            self._tell(f"{text}, {share:.0%} done")

    def _tell(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(f"{self._heading}: {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Say that all is done, after lines that said less."""
        if self._name and sys.stderr is not None:
            self._tell("done")

    def clear(self) -> None:
        """Take the bar away until the next update: what is printed in between may reach the terminal late, by way of a pipe."""
        if self._progress is not None:
            self._progress.stop()


@contextlib.contextmanager
def shares(heading: str) -> Iterator[Shown]:
    """Something under way whose parts have names and shares of the whole; lines without a terminal begin with `heading`."""
    if not is_watched():
        shown = Shown(heading, None)
        yield shown
        shown.end()
        return
    with bars("{task.description}", "bar", "{task.percentage:.0f} %", "elapsed") as progress:
        yield Shown(heading, progress)


@contextlib.contextmanager
def status_line(heading: str = "") -> Iterator[Callable[[str], None] | None]:
    """A line that says what is under way, and what to call with it.

    Without a terminal: a line each ten seconds after `heading`, or None where that is empty.
    """
    if is_watched():
        from rich.console import Console

        with Console(stderr=True).status("") as shown:
            yield shown.update
        return
    told = time.monotonic()

    def tell(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= SECONDS_BETWEEN_LINES and sys.stderr is not None:
            told = time.monotonic()
            with contextlib.suppress(OSError):
                print(f"{heading}: {text}", file=sys.stderr)

    yield tell if heading else None
