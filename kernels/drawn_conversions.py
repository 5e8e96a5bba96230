"""Conversions rounded stochastically, with 16 random bits: a faster way to the bits of `loops.elementwise_drawn`.

Canonical NaN, no flushing. What 16 bits leave open is told, and settled with all of them.
"""

from functools import cache

import numpy as np

from . import jit
from .carrier import decode, decode_wide, is_signalling, source_of
from .fast import (
    HALF_WORD,
    INEXACT,
    INFINITE_BITS,
    MAGNITUDE,
    NONE,
    ONE,
    OVERFLOWED,
    ZERO,
    bfloat16_result,
    limits_of,
    narrow_finite,
    narrow_scaled,
    with_specials,
)
from .jit import cut, kernel, shift_left, shift_right, viewed
from .prng import TILE, fill_half_words, uniform
from .rounding import round_drawn, target_of

SOME_PLACES = np.float32(2.0**-22)
"""Twice a float32's last place at most, as a share."""


@kernel
def beside_a_carry(code, carried, mask, sticky):
    """Whether a sum of dropped bits and random ones is within one unit of a carry, and the code stands for up to one unit less or more.

    So do odd codes where `sticky` is 1. Sums that further random bits may lift to a carry are told apart: those of odd codes are odd.
    """
    return (cut((carried + np.int32(1)) & mask, NONE) <= np.int32(1)) & (cut(code & sticky, NONE) != NONE)


@kernel
def bfloat16_drawn(code_a, half_word, limits, sticky):
    """float32 to bfloat16: 16 dropped bits, 16 random ones. (code, flags, whether that leaves anything open)."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    carried = cut(magnitude + np.int32(half_word), NONE)
    code, flags = bfloat16_result(code_a, magnitude, carried, limits)
    code, flags = with_specials(code, flags, code_a, magnitude, limits)
    sliver = (magnitude >= limits.tiny_bits) & (magnitude < limits.lowest_bits)
    hangs = sliver | beside_a_carry(code_a, carried, np.int32(0xFFFF), sticky)
    return code, flags, INEXACT if hangs else NONE


@kernel
def narrow_drawn(code_a, half_word, limits, sticky):
    """float32 to a narrow format: `narrow_convert` with the threshold drawn. (code, flags, whether that leaves anything open)."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    y, base = narrow_scaled(magnitude, limits)
    n = np.floor(y)
    short = (ONE - np.float32(np.int32(half_word)) * HALF_WORD) - (y - n)
    sliver = (magnitude >= limits.tiny_bits) & (magnitude < limits.lowest_bits)
    short_unbounded = short + (ONE - (y - n))  # just below the normal range the unbounded exponent's fraction is 2f - 1
    tiny = (magnitude < limits.tiny_bits) | (sliver & (short_unbounded > ZERO))
    n = n if short > ZERO else n + ONE
    code, flags = narrow_finite(code_a, y, n, base, tiny, limits)
    code, flags = with_specials(code, flags, code_a, magnitude, limits)
    more = y * SOME_PLACES if cut(code_a & sticky, NONE) != NONE else ZERO
    hangs = (abs(short) <= HALF_WORD + more) | (sliver & (abs(short_unbounded) <= HALF_WORD + (more + more)))
    return code, flags, INEXACT if hangs & (magnitude < INFINITE_BITS) else NONE


@kernel
def not_normal(code_a, limits):
    """Whether a float32 is infinite, NaN, or below the target's normal range and not zero."""
    magnitude = cut(code_a & MAGNITUDE, NONE)
    return ((magnitude < limits.lowest_bits) & (magnitude != NONE)) | (magnitude >= INFINITE_BITS)


@kernel
def normal_drawn(code_a, half_word, limits, sticky):
    """`narrow_drawn` of zero, or of a number not below the smallest normal one.

    Random bits are added below the last kept one, and the carry decides.
    """
    magnitude = cut(code_a & MAGNITUDE, NONE)
    random = shift_left(shift_right(np.int32(half_word), limits.random_right), limits.random_left)
    carried = cut(magnitude + random, NONE)
    kept = cut(shift_right(carried, limits.dropped_bits) - limits.rebias, NONE)
    result = max(kept, NONE)
    flags = INEXACT if cut(magnitude & limits.dropped_mask, NONE) != NONE else NONE
    over = result > limits.largest
    code = cut(result | limits.sign, NONE) if code_a < NONE else result
    code = (limits.overflow_negative if code_a < NONE else limits.overflow_positive) if over else code
    flags = OVERFLOWED if over else flags
    hangs = cut(carried & limits.dropped_mask, NONE) > limits.hanging
    hangs |= beside_a_carry(code_a, carried, limits.dropped_mask, sticky)
    return code, flags, INEXACT if hangs else NONE


DRAWN_BLOCK = 8 * TILE
DRAWN = {"bfloat16": (bfloat16_drawn, bfloat16_drawn), "narrow": (normal_drawn, narrow_drawn)}
"""Family -> (function for blocks of normal numbers and zeros, function for all)."""


@cache
def convert_drawn(family, each, odd=False):
    """loop(a, values, codes, flags, integers, floats, wide_integers, wide_floats, key, stream, start, width) -> flags OR-ed together, 0 where `each`.

    Whole blocks only; `width` is at least 16. What 16 random bits leave open is settled by the plain functions
    on the wide carrier, an element at a time. `odd`: a is float64 rounded to float32 and to odd, and `values` are the bits before;
    else nobody reads them.
    """
    normal, general = DRAWN[family]
    sticky = np.int32(1 if odd else 0)
    two_ways = normal is not general

    @kernel
    def block(operands, half_words, results, raises, limits, element):
        seen = NONE
        open_here = NONE
        for i in range(DRAWN_BLOCK):
            code, raised, left_open = element(operands[i], half_words[i], limits, sticky)
            results[i] = code
            open_here = cut(open_here | left_open, NONE)
            if each:
                raises[i] = raised
            else:
                seen = cut(seen | (NONE if left_open != NONE else raised), NONE)
        return seen, open_here

    def convert_drawn_loop(
        a, values, codes, flags, integers, floats, wide_integers, wide_floats, key, stream, start, width
    ):
        limits = limits_of(integers, floats)
        source, target = source_of(wide_integers, wide_floats), target_of(wide_integers, wide_floats)
        half_words = np.empty(DRAWN_BLOCK, np.uint16)
        left = np.empty(DRAWN_BLOCK, np.uint8)
        eights = viewed(left, np.uint64)
        seen = NONE
        for first in range(0, codes.size, DRAWN_BLOCK):
            for tile in range(DRAWN_BLOCK // TILE):
                words = half_words[tile * TILE : (tile + 1) * TILE]
                fill_half_words((start + first) // TILE + tile, words, key, stream)
            operands, before = a[first : first + DRAWN_BLOCK], values[first : first + DRAWN_BLOCK]
            results = codes[first : first + DRAWN_BLOCK]
            raises = flags[first : first + DRAWN_BLOCK] if each else flags
            special = NONE
            if two_ways:
                for i in range(DRAWN_BLOCK):
                    special = cut(special | (INEXACT if not_normal(operands[i], limits) else NONE), NONE)
            if special != NONE:
                seen_here, open_here = block(operands, half_words, results, raises, limits, general)
            else:
                seen_here, open_here = block(operands, half_words, results, raises, limits, normal)
            seen = cut(seen | seen_here, NONE)
            if open_here == NONE:
                continue
            for i in range(DRAWN_BLOCK):
                _, _, left_open = general(operands[i], half_words[i], limits, sticky)
                left[i] = left_open
            for eight in range(DRAWN_BLOCK // 8):
                if eights[eight] == 0:
                    continue
                for i in range(8 * eight, 8 * eight + 8):
                    if left[i] != 0:
                        more = settle(
                            before[i] if odd else operands[i],
                            half_words[i],
                            results,
                            raises,
                            i,
                            source,
                            target,
                            start + first,
                            key,
                            stream,
                            width,
                        )
                        seen = cut(seen | more, NONE)
        return seen

    @kernel
    def settle(operand, half_word, results, raises, i, source, target, base, key, stream, width):
        wide = np.int64(operand) if odd else np.int64(operand) & 0xFFFFFFFF
        random = uniform(base + i, half_word, key, stream, width)
        value = decode_wide(wide, source) if odd else decode(wide, source)
        code, raised = round_drawn(value, random, target)
        raised = raised | (target.invalid if is_signalling(wide, source) else target.none)
        results[i] = code
        if each:
            raises[i] = raised
        return target.none if each else raised

    block, settle = jit.referable(block, each, odd), jit.referable(settle, each, odd)
    return jit.compiled(convert_drawn_loop)
