"""Random bits of a call: an address, or bits handed in."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes, flattened, refuse_mask
from softfloat.engine.parameters import loops
from softfloat.environments import Settings

TILE = 128  # positions whose random bits are drawn together: `prng.TILE`, without importing it


# -- randomness ------------------------------------------------------------------------------------------------------


class Draw:
    """The random bits of one call: an address, or an array with `width` bits for each element."""

    def __init__(self, key: int, stream: int, width: int, handed: Codes) -> None:
        self.key, self.stream, self.width, self.handed = np.uint64(key), np.uint64(stream), width, handed

    def span(self, start: int, stop: int) -> Codes:
        """The handed bits of some elements."""
        return self.handed[start:stop] if self.handed.size else self.handed


NO_BITS = flattened(np.empty(0, np.uint64))


def bits_at(drawn: Draw, places: Codes) -> Codes:
    """The random bits of some elements."""
    if drawn.handed.size:
        return flattened(drawn.handed[places])
    found = np.empty(places.size, np.uint64)
    tile = np.empty(TILE)
    for i, place in enumerate(places.tolist()):
        loops().drawing()(tile, drawn.key, drawn.stream, place // TILE * TILE, drawn.width)
        found[i] = int(tile[place % TILE] * 2.0**drawn.width)
    return flattened(found)


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
        raise ValueError(f"random_bits are for rounding='stochastic', and rounding is {mode!r}")


def poplar_state(seed: int, modifier: int, tile: int = 0, worker: int = 0) -> tuple[int, int]:
    """State of the IPU's generator after poprand's setSeed (poplibs, RandomGen.cpp): four seeded words, fifteen outputs discarded."""
    from softfloat.kernels.prng import xoroshiro128aox

    high = ((tile << 4 ^ 0xAAAAAAA0) | worker) & 0xFFFFFFFF
    state = np.uint64(seed), np.uint64(high | ((modifier & 0xFFFFFFFF) ^ 0x55555555) << 32)
    for _ in range(15):
        _, *state = xoroshiro128aox(*state)
    return int(state[0]), int(state[1])


def draw(settings: Settings, random_bits: Any, stream: int, shape: tuple[int, ...]) -> Draw:
    """Where a call's random bits come from.

    Raises
    ------
    ValueError
        If stochastic rounding has neither a seed nor bits handed in.
    """
    if random_bits is not None:
        handed, width = check_random_bits(random_bits, settings.sr_bits, shape)
        return Draw(0, 0, width, handed)
    if settings.seed is None:
        raise ValueError("rounding='stochastic' needs a seed (0 to 2^64 - 1) or random_bits")
    width = settings.sr_bits or 52
    key = replica_key(settings.seed, 0 if settings.replica_identical else settings.replica)
    if settings.generator == "xoroshiro128aox":
        if stream >= 2**32:
            raise ValueError(
                f"stream must be 0 to 2^32 - 1 with generator='xoroshiro128aox' (Poplar's seed modifier), got {stream}"
            )
        state = poplar_state(key, stream)
        outputs_ = np.empty(math.prod(shape), np.uint64)
        loops().generating()(outputs_, np.uint64(state[0]), np.uint64(state[1]))
        return Draw(0, 0, width, flattened(outputs_ >> np.uint64(64 - width)))
    return Draw(key, stream, width, NO_BITS)
