"""Random bits of a call: an address, or bits handed in."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes, flattened, refuse_mask
from softfloat.engine.parameters import dots, loops, spared
from softfloat.engine.threads import share_units
from softfloat.environments import Settings
from softfloat.positions import Place, Position

LONG_RUN, SHORT_RUN = 1 << 10, 1 << 5  # elements worth a call of a loop of their own; and of the one that draws
TOGETHER = 1 << 13  # random numbers made at a time by NumPy, in the cache
PIECE = 1 << 16  # random numbers drawn at a time; a multiple of TILE
TILE = 128  # positions whose random bits are drawn together: `prng.TILE`, without importing it


Work = Callable[[int, int], int]
"""Does the elements start ... stop of a call; returns their flags OR-ed together, 0 where each has its own byte."""


# -- randomness ------------------------------------------------------------------------------------------------------


class Draw:
    """The random bits of one call: addresses, or an array with `width` bits for each element.

    Elements are numbers start, start + 1 ... of the stream: `run` of them from each of `starts`, all multiples of TILE; without
    starts, all of them from 0 on.
    """

    def __init__(
        self, key: int, stream: int, width: int, handed: Codes, starts: Codes | None = None, run: int = 0
    ) -> None:
        self.key, self.stream, self.width, self.handed = np.uint64(key), np.uint64(stream), width, handed
        self._starts, self._run = starts, run

    def at(self, element: int) -> int:
        """The number of an element."""
        if self._starts is None:
            return element
        run, within = divmod(element, self._run)
        return int(self._starts[run]) + within

    def numbers(self, elements: Codes) -> Codes:
        """The numbers of some."""
        if self._starts is None:
            return elements
        run, within = np.divmod(elements, self._run)
        found: Codes = self._starts[run] + within
        return found

    def cut(self, work: Work) -> Work:
        """Work on elements that follow each other, for any of the call's."""
        run = self._run
        if self._starts is None or self._starts.size == 1:
            return work

        def cut_work(start: int, stop: int) -> int:
            seen = 0
            while start < stop:
                upto = min((start // run + 1) * run, stop)
                seen |= work(start, upto)
                start = upto
            return seen

        return cut_work

    def address(self, start: int, stop: int) -> tuple[np.uint64, np.uint64, int, Codes, int]:
        """Where the random bits of some elements are, as loops take it: (key, stream, number of the first, handed bits, width)."""
        return self.key, self.stream, self.at(start), self.span(start, stop), self.width

    def span(self, start: int, stop: int) -> Codes:
        """The handed bits of some elements."""
        return self.handed[start:stop] if self.handed.size else self.handed


NO_BITS = flattened(np.empty(0, np.uint64))


def bits_at(drawn: Draw, places: Codes) -> Codes:
    """The random bits of some elements."""
    if drawn.handed.size:
        return flattened(drawn.handed[places])
    return flattened(stream_bits(drawn.numbers(places), drawn.key, drawn.stream, drawn.width))


def stream_bits(numbers: Codes, key: np.uint64, stream: np.uint64, width: int) -> Codes:
    """The random bits of some numbers of a stream: what `prng.fill_half_words` and `prng.low_bits` make, for any numbers."""
    from softfloat.kernels.prng import LANES, LOW_WORD, low_bits, philox

    low, half = np.uint64(LOW_WORD), np.uint64(32)
    numbers = numbers.astype(np.uint64, copy=False)
    tile, within = numbers // np.uint64(TILE), numbers % np.uint64(TILE)
    block = tile * np.uint64(LANES) + within % np.uint64(LANES)
    words = philox(block & low, block >> half, stream & low, stream >> half, key & low, key >> half)
    place = within // np.uint64(LANES)
    chosen = np.choose((place % np.uint64(4)).astype(np.int64), words)
    high = chosen >> (place // np.uint64(4) * np.uint64(16)) & np.uint64(0xFFFF)
    found: Codes = (high << np.uint64(36) | low_bits(numbers, key, stream)) >> np.uint64(52 - width)
    return found


def rounding_bits(outputs: Codes, site: int, step: int, key: int, stream: int, width: int) -> Codes:
    """The random bits of one rounding of a dot product, for some outputs: what `accumulate.draw_row` draws."""
    from softfloat.kernels.prng import dot_high, dot_low

    address = outputs.astype(np.uint64, copy=False), site, step, np.uint64(key), np.uint64(stream)
    found: Codes = (dot_high(*address) << np.uint64(36) | dot_low(*address)) >> np.uint64(52 - width)
    return found


def grid_bits(
    shape: tuple[int, int], place: tuple[int, int, int], site: int, step: int | Codes, width: int, key: int, stream: int
) -> Codes:
    """The same for a grid of outputs, whose `place` is the number of the first, and how far it is to the next row and column.

    Rows may have a step each.
    """
    bits, steps = np.empty(shape, np.uint64), np.empty(shape[0], np.int64)
    steps[:] = step

    def work(start: int, stop: int) -> int:
        known = site, steps, width, np.uint64(key), np.uint64(stream)
        spared(dots().rounding_bits()).run((stop - start) * shape[1], start, stop, bits, *place, *known)
        return 0

    share_units(shape[0], work, 4 * shape[1])
    return bits


def _drawn_at(place: Place, shape: tuple[int, ...], drawn: Draw) -> Draw:
    """A draw for a block that lies elsewhere than at 0: of whole tiles where it can be, else with the bits of each element handed in."""
    size, run = math.prod(shape), 1
    if not size:
        return drawn
    outer = len(shape)
    while outer and (shape[outer - 1] == 1 or place.strides[outer - 1] == run):
        outer -= 1
        run *= shape[outer]
    starts = np.array([place.first], np.int64)
    for count, stride in zip(shape[:outer], place.strides[:outer], strict=True):
        starts = (starts[:, None] + np.arange(count) * stride).reshape(-1)
    whole = (run % TILE == 0 or starts.size == 1) and not (starts % TILE).any()
    if whole and run >= LONG_RUN:
        return Draw(int(drawn.key), int(drawn.stream), drawn.width, NO_BITS, starts, run)
    handed = np.empty((starts.size, run), np.uint64)
    if run < SHORT_RUN:
        _fill_apart(handed, starts, drawn)
    else:
        _fill(handed, starts, drawn)
    return Draw(0, 0, drawn.width, flattened(handed))


def _fill_apart(handed: Codes, starts: Codes, drawn: Draw) -> None:
    """The bits of runs too short for a loop."""
    within, step = np.arange(handed.shape[1]), max(1, TOGETHER // handed.shape[1])

    def work(first: int, last: int) -> int:
        for number in range(first, last, step):
            part = slice(number, min(number + step, last))
            handed[part] = stream_bits(starts[part, None] + within, drawn.key, drawn.stream, drawn.width)
        return 0

    share_units(starts.size, work, handed.shape[1])


def _fill(handed: Codes, starts: Codes, drawn: Draw) -> None:
    """The bits of runs that begin anywhere."""
    drawing, scale = loops().drawing(), 2.0**drawn.width
    run = handed.shape[1]

    def work(first: int, last: int) -> int:
        for number in range(first, last):
            skipped = int(starts[number]) % TILE
            for done in range(0, run, PIECE):
                count = min(PIECE, run - done)
                uniforms = np.empty(skipped + count)
                drawing(uniforms, drawn.key, drawn.stream, int(starts[number]) - skipped + done, drawn.width)
                handed[number, done : done + count] = uniforms[skipped:] * scale
        return 0

    share_units(starts.size, work, run)


@lru_cache(maxsize=256)
def replica_key(seed: int, replica: int) -> int:
    """A key of its own for each replica but 0: two words of Philox at the counter (replica, all ones)."""
    if replica == 0:
        return seed
    from softfloat.kernels.prng import philox

    halves = [
        np.uint64(x)
        for x in (replica & 0xFFFFFFFF, replica >> 32, 0xFFFFFFFF, 0xFFFFFFFF, seed & 0xFFFFFFFF, seed >> 32)
    ]
    low, high, _, _ = philox(*halves)
    return int(low) | int(high) << 32


def check_random_bits(random_bits: Any, sr_bits: int | None, shape: tuple[int, ...]) -> tuple[Codes, int]:
    """Handed-in bits as flat uint64, and how many of them each rounding uses.

    Raises
    ------
    TypeError, ValueError
        If they are not integers of `sr_bits` bits, or of a shape that does not broadcast.
    """
    refuse_mask(random_bits, "random_bits")
    array = np.asarray(random_bits)
    if array.dtype.kind not in "iu":
        raise TypeError(f"random_bits must be integers, got dtype {array.dtype}")
    if sr_bits is None:
        if array.dtype.kind != "u" or array.dtype.itemsize > 4:
            raise ValueError(
                f"random_bits of dtype {array.dtype} need sr_bits (1 to 52); without it, accepted: uint8, uint16, uint32, all bits used"
            )
        sr_bits = 8 * array.dtype.itemsize
    if array.dtype.kind == "u" and 8 * array.dtype.itemsize < sr_bits:
        raise ValueError(f"random_bits are too narrow: {array.dtype} holds fewer than sr_bits={sr_bits} bits")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> sr_bits):
        raise ValueError(
            f"random_bits must be 0 to 2^{sr_bits} - 1 (sr_bits={sr_bits}), got {int(array.min())} to {int(array.max())}"
        )
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"random_bits of shape {array.shape} do not broadcast to the operands' shape {shape}"
        ) from None
    return flattened(array.astype(np.uint64)), sr_bits


def refuse_random_bits(settings: Settings, random_bits: Any) -> None:
    """Random bits where nothing is drawn are a mistake."""
    if random_bits is not None:
        mode = settings.rounding.name.lower()
        raise ValueError(f"random_bits are for rounding='stochastic' or 'up_or_down', and rounding is {mode!r}")


def poplar_state(seed: int, modifier: int, tile: int = 0, worker: int = 0) -> tuple[int, int]:
    """State of the IPU's generator after poprand's setSeed (poplibs, RandomGen.cpp): four seeded words, fifteen outputs discarded."""
    from softfloat.kernels.prng import xoroshiro128aox

    high = ((tile << 4 ^ 0xAAAAAAA0) | worker) & 0xFFFFFFFF
    state = np.uint64(seed), np.uint64(high | ((modifier & 0xFFFFFFFF) ^ 0x55555555) << 32)
    for _ in range(15):
        _, *state = xoroshiro128aox(*state)
    return int(state[0]), int(state[1])


def check_block(operation: str, position: Position | None, shape: tuple[int, ...]) -> None:
    """Refuse a position that an elementwise result of this shape does not have."""
    if position is None:
        return
    if position.segment is not None:
        raise ValueError(f"position names a segment of k, and {operation} has none; accepted: one with segment=None")
    position.place(shape)


def draw(
    settings: Settings, random_bits: Any, stream: int, shape: tuple[int, ...], position: Position | None = None
) -> Draw:
    """Where a call's random bits come from.

    Raises
    ------
    ValueError
        If stochastic rounding has neither a seed nor bits handed in, or these and a position.
    """
    place = None if position is None else position.place(shape)
    if random_bits is not None and place is not None:
        raise ValueError("position comes with random_bits, which are the result's own; accepted: one or the other")
    if random_bits is not None:
        handed, width = check_random_bits(random_bits, settings.chosen_width, shape)
        return Draw(0, 0, width, handed)
    if settings.seed is None:
        raise ValueError(f"rounding={settings.rounding.name.lower()!r} needs a seed (0 to 2^64 - 1) or random_bits")
    width = settings.random_width
    key = replica_key(settings.seed, 0 if settings.replica_identical else settings.replica)
    if settings.generator == "xoroshiro128aox":
        if place is not None and (place.first or place.strides != Position(0).place(shape).strides):
            raise ValueError(
                "generator must be 'philox4x32' with a position, got 'xoroshiro128aox', whose random numbers have only an order"
            )
        if stream >= 2**32:
            raise ValueError(
                f"stream must be 0 to 2^32 - 1 with generator='xoroshiro128aox' (Poplar's seed modifier), got {stream}"
            )
        state = poplar_state(key, stream)
        outputs_ = np.empty(math.prod(shape), np.uint64)
        loops().generating()(outputs_, np.uint64(state[0]), np.uint64(state[1]))
        return Draw(0, 0, width, flattened(outputs_ >> np.uint64(64 - width)))
    drawn = Draw(key, stream, width, NO_BITS)
    return drawn if place is None else _drawn_at(place, shape, drawn)
