"""Notebooks run ahead, side by side, while Sphinx reads the other pages.

What they show goes to the cache from which myst_nb takes it. A notebook that fails leaves nothing there: myst_nb then runs it once more,
where it is read, and reports what is wrong.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution

FOLDER = "made/notebooks/"
"""How the names of their pages begin."""

MOST = 4
"""At once: each has a process with PyTorch, and some hundred megabytes."""

DONE: dict[str, Event] = {}
"""Page of a notebook that runs, or waits to -> set once it has."""


def results(path: Path, cache: Any, timeout: int) -> None:
    """Run a notebook, unless its results are kept already."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        found = single_nb_execution(notebook, str(path.parent), timeout, allow_errors=False)
        if found.err is None:
            bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": found.time})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def run_ahead(run: Callable[[Path], None], paths: list[Path], count: int) -> None:
    """Run notebooks in threads that do not keep a build from ending which is interrupted; the last first, as they take longest."""
    waiting: SimpleQueue[Path] = SimpleQueue()
    for path in reversed(paths):
        DONE[FOLDER + path.stem] = Event()
        waiting.put(path)

    def work() -> None:
        while True:
            try:
                path = waiting.get_nowait()
            except Empty:
                return
            with contextlib.suppress(Exception):  # myst_nb meets it again
                run(path)
            DONE[FOLDER + path.stem].set()

    for _ in range(min(count, len(paths))):
        Thread(target=work, daemon=True).start()


def start(app: Any) -> None:
    """Once every page is made."""
    cache, timeout = get_cache(app.config.nb_execution_cache_path), app.config.nb_execution_timeout
    cache.list_cache_records()  # makes its database, which threads cannot do at once
    left_out = app.config.nb_execution_excludepatterns
    found = sorted(Path(app.srcdir, FOLDER).glob("*.ipynb"))
    paths = [path for path in found if not any(path.match(pattern) for pattern in left_out)]
    run_ahead(lambda path: results(path, cache, timeout), paths, min(os.cpu_count() or 1, MOST))


def last(app: Any, env: Any, pages: list[str]) -> None:
    """Notebooks are read after everything else. Processes that read side by side cannot wait for a thread of this one."""
    pages.sort(key=lambda page: page.startswith(FOLDER))
    if app.parallel > 1:
        for done in DONE.values():
            done.wait()


def wait(app: Any, page: str, source: list[str]) -> None:
    """Before a notebook is read."""
    if page in DONE:
        DONE[page].wait()


def setup(app: Any) -> dict[str, Any]:
    """Sphinx's hook."""
    app.connect("builder-inited", start, priority=900)
    app.connect("env-before-read-docs", last)
    app.connect("source-read", wait)
    return {"parallel_read_safe": True}
