"""Working memory that calls hand on to each other: fresh pages from the system cost more than what is done in them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

KEPT = 1 << 24
"""Bytes that are kept, at most, while no call uses them."""


class Lent(Protocol):
    """What a pool lends."""

    asked: tuple[Any, ...]
    """What it was made of."""

    @property
    def size(self) -> int:
        """Bytes."""


T = TypeVar("T", bound=Lent)


class Pool(Generic[T]):
    """Those that no call uses, for calls that ask for the same."""

    def __init__(self, make: Callable[..., T]) -> None:
        self._make = make
        self._free: dict[tuple[Any, ...], list[T]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def borrow(self, *asked: Any) -> T:
        """One with whatever its arrays hold."""
        with self._lock:
            free = self._free.get(asked)
            if free:
                lent = free.pop()
                self._size -= lent.size
                return lent
        return self._make(*asked)

    def give_back(self, lent: T) -> None:
        """One that nobody uses any more."""
        with self._lock:
            if self._size + lent.size > KEPT:
                self._free.clear()
                self._size = 0
            if lent.size <= KEPT:
                self._free.setdefault(lent.asked, []).append(lent)
                self._size += lent.size
