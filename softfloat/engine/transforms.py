"""Hadamard transforms by compiled butterflies: which accumulators they have the same bits as, and how they are run."""

from __future__ import annotations

from array import array
from functools import lru_cache

import numpy as np

from softfloat.accumulators import Accumulator, Alignment
from softfloat.engine.arguments import Codes, flattened
from softfloat.engine.elementwise import quick
from softfloat.engine.generated import address
from softfloat.engine.parameters import sums
from softfloat.engine.threads import share
from softfloat.environments import Overflow, Rounding
from softfloat.formats import ROSTER, Format

FLOAT32, BFLOAT16 = ROSTER["float32"], ROSTER["bfloat16"]
WIDEST = 30  # bits of a sum of integers
NO_FLOOR = -65  # a floor of exponents that no run which the loop takes comes to
BLOCK = 1 << 12  # numbers that threads begin at multiples of


def serves_transform(how: Accumulator, fmt: Format, n: int) -> bool:
    """Whether sums of n products by powers of two, cut to one grid and to float32 toward zero, are what an accumulator makes of them."""
    return quick() and _serves(how, fmt, n)


@lru_cache(maxsize=64)
def _serves(how: Accumulator, fmt: Format, n: int) -> bool:
    stage, aligned = how.running, how.aligned
    if n not in (4, 16) or fmt not in (FLOAT32, BFLOAT16) or stage is None or aligned is None:
        return False
    kept = "name", "inputs", "channel_group", "nan", "note", "source", "positive_zeros", "alignment", "fraction_bits"
    told = {name: getattr(how, name) for name in kept}
    whole = how == Accumulator(running=stage, block=how.block, daz=False, **told)
    grid, lowest = aligned.terms, NO_FLOOR if aligned.least is None else aligned.least
    whole = whole and lowest <= NO_FLOOR and aligned == Alignment(grid, least=aligned.least)
    fixed = (stage.format, stage.rounding) == (FLOAT32, Rounding.TOWARD_ZERO)
    decided = stage.daz is False and stage.ftz is False and stage.overflow is Overflow.INFINITY
    fits = how.block >= n and FLOAT32.mantissa_bits <= grid <= WIDEST - n.bit_length()
    taken = not how.inputs or fmt in how.inputs
    return whole and fixed and decided and fits and taken


def transformed_runs(
    numbers: np.ndarray[tuple[int, ...], np.dtype[np.float32]], signs: tuple[int, ...], how: Accumulator, fmt: Format
) -> tuple[Codes, Codes, bool]:
    """(float32 numbers of `fmt`, marks of runs that were left, whether anything was rounded) of runs side by side along the last axis, rounded to
    `fmt` before."""
    n, made = len(signs), np.empty(numbers.shape, np.float32)
    runs, left, flat = numbers.size // n, np.zeros(numbers.size // n, np.uint8), flattened(numbers)
    loop, given = sums().loop_of(sums().Transform(n)), np.array(signs, np.int32)
    assert how.aligned is not None
    grid, dropped = how.aligned.terms - FLOAT32.mantissa_bits, FLOAT32.mantissa_bits - fmt.mantissa_bits
    source, target, marks, of_signs = map(address, (flat, made, left, given))

    def work(start: int, stop: int) -> int:
        first, count = start // n, (stop - start) // n
        places = source + 4 * start, target + 4 * start, marks + first, of_signs
        words = array("Q", (*places, count, grid, dropped, n.bit_length() // 2))
        return int(loop(words.buffer_info()[0]))

    lost = share(runs * n, work)
    return made, left, bool(lost)
