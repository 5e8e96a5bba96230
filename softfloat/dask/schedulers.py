"""Schedulers by the names that command lines take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["scheduled"]

LOCAL = ("threads", "processes", "synchronous")


@contextlib.contextmanager
def scheduled(scheduler: str) -> Iterator[dict[str, Any]]:
    """What `sweep` and `sweep_tasks` take for a scheduler's name; a connection made for it is closed at the end.

    Parameters
    ----------
    scheduler : str
        "threads", "processes", "synchronous", or the address of a cluster's scheduler, as "tcp://10.0.0.1:8786".

    Raises
    ------
    ValueError
        If it is neither, or no scheduler answers at that address.

    >>> with scheduled("threads") as options:
    ...     print(options)
    {'scheduler': 'threads'}
    """
    if scheduler in LOCAL:
        yield {"scheduler": scheduler}
        return
    if not isinstance(scheduler, str) or ":" not in scheduler:
        raise ValueError(
            f"scheduler must be {', '.join(map(repr, LOCAL))} or an address such as tcp://10.0.0.1:8786, got {scheduler!r}"
        )
    from distributed import Client

    try:
        client = Client(scheduler, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:
        raise ValueError(f"scheduler {scheduler!r} does not answer: {error}") from None
    with client:
        yield {"client": client}
