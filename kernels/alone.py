"""Few outputs that are rounded stochastically, one by one: a tile would draw random numbers for a hundred of which most are not wanted.

Sums in float64 are rounded by 16 random bits each (`redrawn.quickly`). Where the bits to come could reach the next number, a turn goes to
the plain functions, with all of its random bits.
"""

import numpy as np

from . import compensated_draws, jit, redrawn
from .accumulate import PRODUCT, RUNNING
from .carrier import source_of
from .compensated_draws import ADDITIONS, ERRORS, CompensatedDraws
from .jit import flat, kernel, scratch, viewed
from .prng import DOT_PLANE, dot_words
from .redrawn import OPEN, SITES
from .rounding import target_of
from .steps import INEXACT, OVERFLOW, UNDERFLOW, VALUE, Numbers

LARGEST = Numbers._fields.index("largest")
MOST_NUMBERS = max(ADDITIONS.values()) + 1  # random ones of a turn


@kernel
def noise_of(words, number, kept):
    """The first 16 random bits of a rounding, of those that its block of eight has; `kept` of them."""
    pair = words[2:] if number & 2 else words[:2]
    word = pair[1] if number & 1 else pair[0]
    return np.int64((word >> np.uint64((number & 4) << 2)) & kept)


@kernel
def fill_words(words, output, site, block, key, stream):
    """Random numbers of a block of eight roundings."""
    words[0], words[1], words[2], words[3] = dot_words(output, DOT_PLANE, site, block, key, stream)


def _turns(operation, daz):
    """(turn by 16 random bits, turn by all, its additions, whether products draw, slots that it keeps beside) of an operation."""
    if isinstance(operation, CompensatedDraws):
        own, exact = compensated_draws, operation.family == "float32_of_narrow"
        return own.quick_turn(operation, daz), own.again(operation, daz), operation.additions, not exact, (ERRORS,)
    draws_products = len(SITES[operation]) > 1
    return redrawn.quick_turn(operation, daz), redrawn.carrying(operation, daz), 1, draws_products, ()


@jit.once
def drawn(operation, options, layout, records):
    """As `paired.drawn`, of panels of one output; in the layout "shared", all have the second operand in common.

    loop(state, a, b, kept, numbers, ints, floats, first, stride, step, apart, count, width, key, stream).
    """
    turn, turn_again, additions, draws_products, carried = _turns(operation, options.daz)
    carries, shared = len(carried) > 0, layout == "shared"

    def alone_loop(state, a, b, kept, numbers, ints, floats, first, stride, step, apart, count, width, key, stream):
        source, target = source_of(ints, floats), target_of(ints, floats)
        turns, largest = a.shape[2], np.float64(numbers[LARGEST])
        flat_a, flat_b = flat(a), flat(b)
        of_sums, of_products = scratch(4, np.uint64), scratch(4, np.uint64)
        noises = scratch(MOST_NUMBERS, np.uint32)
        kept_bits = np.uint64((0xFFFF << max(16 - width, 0)) & 0xFFFF)
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, np.int32)
            output, at = np.uint64(first + panel * stride), panel * turns
            xs, ys = flat_a[at : at + turns], flat_b[0 if shared else at :][:turns]
            z, e = np.float64(mine[VALUE]), np.float64(mine[ERRORS]) if carries else 0.0
            block, block_of_products = -1, -1
            inexact, underflow, overflow = happened[INEXACT] != 0, happened[UNDERFLOW] != 0, happened[OVERFLOW] != 0
            for n in range(turns):
                number = step + n * apart
                for addition in range(additions):
                    place = number * additions + addition
                    if place >> 3 != block:
                        block = place >> 3
                        fill_words(of_sums, output, RUNNING, block, key, stream)
                    noises[addition] = noise_of(of_sums, place, kept_bits)
                if draws_products:
                    if number >> 3 != block_of_products:
                        block_of_products = number >> 3
                        fill_words(of_products, output, PRODUCT, block_of_products, key, stream)
                    noises[additions] = noise_of(of_products, number, kept_bits)
                x, y = np.float64(xs[n]), np.float64(ys[n])
                total, error, seen = turn(x, y, z, e, noises, output, number, largest, target, width, key, stream)
                if seen & OPEN:
                    total, error, seen = turn_again(
                        x, y, z, e, noises, output, number, source, target, width, key, stream
                    )
                    underflow, overflow = underflow | (seen & 2 != 0), overflow | (seen & 4 != 0)
                z, e, inexact = total, error, inexact | (seen & 1 != 0)
                if records:
                    record = kept[n]
                    noted = viewed(record, np.int32)
                    record[VALUE] = z
                    if carries:
                        record[ERRORS] = e
                    noted[INEXACT], noted[UNDERFLOW], noted[OVERFLOW] = inexact, underflow, overflow
            mine[VALUE] = z
            if carries:
                mine[ERRORS] = e
            happened[INEXACT], happened[UNDERFLOW], happened[OVERFLOW] = inexact, underflow, overflow

    return jit.compiled(alone_loop)
