"""Calls of the loops that `kernels.sums` generates."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import sums

LINE = 16  # numbers
TURNS = 8
"""Turns of a sum that draws which are done at a time, as many as a block of random numbers has."""


class Job:
    """A loop of a sum and what it takes; job(first, last, more) calls it for tiles of these numbers. What is not named is 0."""

    def __init__(self, what: Any, arrays: Mapping[str, Codes], numbers: Mapping[str, int]) -> None:
        self._loop, self._places = sums().loop_of(what), sums().PLACES
        self._words = [0] * len(self._places)
        self._words[self._places["again"]] = sums().again_address(what)
        for name, number in (addresses(arrays) | dict(numbers)).items():
            self._words[self._places[name]] = number
        self._arrays = arrays  # which live as long as their addresses

    def _call(self, first: int, last: int, more: Mapping[str, int]) -> array[int]:
        call, places = array("Q", self._words), self._places
        call[places["first"]], call[places["last"]] = first, last
        for name, number in more.items():
            call[places[name]] = number
        return call

    def __call__(self, first: int, last: int, more: Mapping[str, int] | None = None) -> None:
        """Tiles first ... last - 1, with `more` numbers, or addresses of what lives until then."""
        call = self._call(first, last, more or {})  # which lives until the loop is done
        self._loop(call.buffer_info()[0])

    def words(self, first: int, last: int, more: Mapping[str, int]) -> Codes:
        """What the loop takes for such a call, and after it the loop's address."""
        call = self._call(first, last, more)
        call.append(ctypes.cast(self._loop, ctypes.c_void_p).value or 0)
        return np.array(call).view(np.int64)


def addresses(arrays: Mapping[str, Codes]) -> dict[str, int]:
    """Where arrays lie."""
    return {name: x.ctypes.data for name, x in arrays.items()}


def room(what: Any, tiles: int) -> Codes:
    """Where so many tiles have their state, on lines of the cache."""
    size = tiles * sums().SLOTS * what.cells
    found = np.empty(size + LINE, np.float32)
    return found[-(found.ctypes.data // 4) % LINE :][:size]


def turns(step: int, apart: int, chains: int = 1, each: bool = False) -> dict[str, int]:
    """Of sums in order: the number of the first product, how far apart a chain's are, and how many turns are done at a time: those whose
    random numbers there is room for, or `each` alone."""
    floor = sums()
    if chains > 1:
        at_once = min(TURNS, (floor.MANY_NUMBERS - TURNS) // chains)
    else:
        at_once = (TURNS - 1 + apart) // apart
    mask = (floor.FEW_NUMBERS if chains == 1 else floor.MANY_NUMBERS) - 1
    return {"step": step, "apart": apart, "chains": chains, "at_once": 1 if each else at_once, "mask": mask}
