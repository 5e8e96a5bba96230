"""Calls of the loops that `kernels.sums` generates."""

from __future__ import annotations

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
    """A loop of a sum and what it takes; job(first, last, more) -> flags seen, of tiles of these numbers. What is not named is 0."""

    def __init__(self, what: Any, arrays: Mapping[str, Codes], numbers: Mapping[str, int]) -> None:
        self._loop, self._places = sums().loop_of(what), sums().PLACES
        self._words = [0] * len(self._places)
        if what.stage.draws:
            self._words[self._places["again"]] = sums().again_address()
        for name, number in (addresses(arrays) | dict(numbers)).items():
            self._words[self._places[name]] = number
        self._arrays = arrays  # which live as long as their addresses

    def __call__(self, first: int, last: int, more: Mapping[str, int] | None = None) -> int:
        """Tiles first ... last - 1, with `more` numbers, or addresses of what lives until then."""
        call, places = array("Q", self._words), self._places
        call[places["first"]], call[places["last"]] = first, last
        for name, number in (more or {}).items():
            call[places[name]] = number
        return int(self._loop(call.buffer_info()[0]))


def addresses(arrays: Mapping[str, Codes]) -> dict[str, int]:
    """Where arrays lie."""
    return {name: x.__array_interface__["data"][0] for name, x in arrays.items()}


def room(what: Any, tiles: int) -> Codes:
    """Where so many tiles have their state, on lines of the cache."""
    size = tiles * sums().SLOTS * what.cells
    found = np.empty(size + LINE, np.float32)
    return found[-(found.ctypes.data // 4) % LINE :][:size]


def turns(step: int, apart: int, chains: int = 1, each: bool = False) -> dict[str, int]:
    """Of sums in order that draw: the number of the first product, how far apart a chain's are, and how many turns are done at a time: those
    whose random numbers there is room for, or `each` alone."""
    floor = sums()
    if chains > 1:
        at_once = min(TURNS, (floor.MANY_NUMBERS - TURNS) // chains)
    else:
        at_once = (TURNS - 1 + apart) // apart
    mask = (floor.FEW_NUMBERS if chains == 1 else floor.MANY_NUMBERS) - 1
    return {"step": step, "apart": apart, "chains": chains, "at_once": 1 if each else at_once, "mask": mask}
