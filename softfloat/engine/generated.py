"""Calls of the loops that `kernels.sums` generates."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import calls, sums

LINE = 16  # numbers
TURNS = 8
"""Turns of a sum that draws which are done at a time, as many as a block of random numbers has."""


class Job:
    """A loop of a sum and what it takes; job(first, last, more) -> flags seen, of tiles of these numbers. What is not named is 0."""

    def __init__(self, what: Any, arrays: Mapping[str, Codes], numbers: Mapping[str, int]) -> None:
        self._loop, self.places = sums().loop_of(what), sums().PLACES
        words = [0] * len(self.places)
        words[self.places["again"]] = sums().again_address(what)
        for name, number in (addresses(arrays) | dict(numbers)).items():
            words[self.places[name]] = number
        self.words = array("Q", words)
        self._arrays = arrays  # which live as long as their addresses

    def _call(self, first: int, last: int, more: Mapping[str, int]) -> array[int]:
        call, places = self.words[:], self.places
        call[places["first"]], call[places["last"]] = first, last
        for name, number in more.items():
            call[places[name]] = number
        return call

    def __call__(self, first: int, last: int, more: Mapping[str, int] | None = None) -> int:
        """Tiles first ... last - 1, with `more` numbers, or addresses of what lives until then."""
        call = self._call(first, last, more or {})  # which lives until the loop is done
        found: int = self._loop(call.buffer_info()[0])
        return found

    def called(self, first: int, last: int, more: Mapping[str, int]) -> tuple[np.uint64, Codes]:
        """The address of the loop, and what it takes for such a call."""
        return np.uint64(self._loop.address), np.array(self._call(first, last, more), np.uint64)


NO_LOWS = np.empty(0, np.float32)
"""Where a loop takes the least numbers of panels' turns, but none are needed."""


class Grids(Job):
    """The same of grids, called as `kernels.sums.calls.grids` is, through Numba: small calls count microseconds."""

    def __init__(self, what: Any, arrays: Mapping[str, Codes], numbers: Mapping[str, int]) -> None:
        super().__init__(what, arrays, numbers)
        self._what, self._chains, self._launch = what, numbers.get("chains", 1), calls().launch()
        self.words_of_grids = self.called(0, 0, {})
        """The address of the loop, and what it takes beside what `grids` does."""

    def grids(
        self, first: int, last: int, a: Codes, b: Codes, c: Codes, values: Codes, flags: Codes, numbers: Codes, nan_flags: int,
        rows: int, columns: int, lows: Codes = NO_LOWS, roomy: bool = False,
    ) -> int:  # fmt: skip
        """Flags seen, of tiles of grids."""
        function, words = self.words_of_grids
        if self._chains > 1:
            state, words = room(self._what, self._chains), words.copy()
            words[self.places["state"]] = address(state)
        seen: int = self._launch(
            function, words, first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, lows, roomy
        )
        return seen


def address(x: Codes) -> int:
    """Where an array lies."""
    found: int = x.__array_interface__["data"][0]
    return found


def addresses(arrays: Mapping[str, Codes]) -> dict[str, int]:
    """Where arrays lie."""
    return {name: address(x) for name, x in arrays.items()}


@lru_cache(maxsize=64)
def _as_bits(x: float, double: bool) -> int:
    """A number as panels of float64 or float32 have it."""
    return int(np.float64(x).view(np.uint64) if double else np.float32(x).view(np.uint32))


def words_of_reading(
    what: Any, arrays: Mapping[str, Codes], numbers: Mapping[str, int], tiny: float = 0.0, of_zeros: float = 0.0
) -> array[int]:
    """What the loop of a reading takes. Arrays of nothing lie nowhere."""
    places = sums().READ_PLACES
    words = array("Q", bytes(8 * len(places)))
    for name, x in arrays.items():
        words[places[name]] = address(x) if x.size else 0
    for name, number in numbers.items():
        words[places[name]] = number
    words[places["tiny"]], words[places["of_zeros"]] = _as_bits(tiny, what.double), _as_bits(of_zeros, what.double)
    return words


def read(what: Any, words: array[int]) -> tuple[float, float, bool]:
    """Operands to panels by that loop: the least magnitude but 0, and the greatest; whether all is finite."""
    floor, spans = sums(), array("d", (0.0, 0.0))
    words[floor.READ_PLACES["spans"]] = spans.buffer_info()[0]
    finite = floor.loop_of(what)(words.buffer_info()[0])
    return spans[0], spans[1], bool(finite)


def reading_of(reading: str, codes: Codes, panels: Codes) -> Any:
    """The description of a loop that reads such codes into panels, whose axes end with (planes, panels, k, size)."""
    double, stays = panels.dtype == np.float64, panels.dtype == np.uint16
    return sums().Reading(reading, codes.dtype.name, double, panels.shape[-4], panels.shape[-1], stays)


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
