"""Floats to floats that are numbers of a format: a rounding in one pass, with no code in between.

On the bits of the float, whose last `dropped` bits of significand the format has not:

    s = dropped, or as many more as the exponent is below emin
    n = (significand + part) >> s

The part of 2^s that is added is all there is to a mode: less than one half or one half, all but nothing, nothing, or s random bits. A carry goes
on into the exponent. Below the smallest number s is more than the significand has, and n is 0 or 1.

This restates `rounding.scaled`, `selected`, `drawn` and `assemble`, and is held against them, code and flag, by tests; it goes as far as the float
does, p = 53 and float64's exponents. Results of formats that are unsigned, or have no zero, are left to those.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from . import jit
from .jit import bits_float, fixed_tuple, float_bits, kernel
from .prng import TILE, bits_at, top_bits
from .spec import INEXACT, INVALID, UNDERFLOW

FRACTION, HIDDEN = (1 << 52) - 1, 1 << 52
MAGNITUDE, INFINITE = (1 << 63) - 1, 0x7FF << 52
TINY = UNDERFLOW | INEXACT
SINGLE_MAGNITUDE, SINGLE_INFINITE, SINGLE_HIDDEN = (1 << 31) - 1, 0xFF << 23, 1 << 23
SINGLE_REBIAS, SHIFTED = 896 << 52, 1075 << 52
"""What the exponent field of a float32 has less than a float64's; the field of 2^52, below which an integer is a fraction."""
FARTHEST = 62
"""2^62 is more than twice a significand: for what does not count random bits, s is no more."""
BLOCK = 2 * TILE
TOGETHER = 128
"""Numbers that are looked at, and rounded in the same way: few enough that often none of them is strange."""
DRAWN = 16
"""Random bits drawn at first."""


class Lattice(NamedTuple):
    """Which numbers results are, as bits of float64, and how others become such. Masks are 0 or -1."""

    dropped: int  # bits of a normal number's significand that the format has not
    gap: int  # so many more are dropped below the smallest normal number, as there are no subnormals
    lowest: int  # exponent field of the smallest normal number
    smallest_normal: int
    smallest: int  # the smallest number above zero
    largest: int
    flush_below: int  # operands below it are zeros
    halved: int  # 1: parts are halves, or the number below
    more_even: int  # what a part is more
    more_odd: int  # and more still for odd significands
    more_negative: int  # for negative numbers
    on: int  # mask: parts are added
    on_negative: int  # mask: it is the other way round for negative numbers
    on_odd: int  # for odd significands
    added: int  # the part itself, where bits dropped are `dropped`
    added_odd: int  # and what it is more for odd significands
    added_negative: int  # for negative numbers
    tiny_positive: int  # a magnitude below it is tiny
    tiny_negative: int
    unbounded: int  # bits that are dropped just below the smallest normal number where exponents have no end
    early: int  # mask: tininess is found before rounding
    ftz: int  # mask: tiny results are zeros
    zero_sign: int  # the sign bit, if there is a negative zero
    overflow_positive: int
    overflow_negative: int
    overflow_flags: int
    infinity_positive: int
    infinity_negative: int
    infinity_flags: int
    nan: int
    nan_flags: int
    nan_signals: int  # raised by every NaN operand
    odd_zeros: int  # mask: zeros are no ordinary numbers, as one of them becomes the other
    jam: int  # mask: random bits take up whatever is not exact, where they are all ones, and nothing otherwise
    short: int  # 2: what is in range has a shorter way; 1: if it is normal or zero, too; 0: nothing


COUNT = len(Lattice._fields)


@kernel
def double(bits):
    """The float64 of some bits."""
    return bits_float(bits, 0.0)


@kernel
def from_single(code):
    """The bits of a float32 as those of a float64. By integers, and by numbers that are normal: a host may flush subnormals."""
    magnitude = np.int64(code) & SINGLE_MAGNITUDE
    wide = (magnitude << 29) + SINGLE_REBIAS + (SINGLE_REBIAS if magnitude >= SINGLE_INFINITE else 0)
    least = float_bits((double(SHIFTED | magnitude) - 2.0**52) * 2.0**-149)
    return (least if magnitude < SINGLE_HIDDEN else wide) | (~MAGNITUDE if code < 0 else 0)


@kernel
def to_single(code):
    """The bits of a float64, which float32 has, as those of a float32."""
    magnitude = code & MAGNITUDE
    narrow = (magnitude - SINGLE_REBIAS - (SINGLE_REBIAS if magnitude >= INFINITE else 0)) >> 29
    least = float_bits(double(magnitude) * 2.0**149 + 2.0**52) - SHIFTED
    narrow = least if magnitude < SINGLE_REBIAS + HIDDEN else narrow
    return narrow | (~SINGLE_MAGNITUDE if code < 0 else 0)


@kernel
def magnitude_of(code, lattice):
    """The bits of |x|; those of 0 if operands so small are zeros."""
    magnitude = code & MAGNITUDE
    return 0 if magnitude < lattice.flush_below else magnitude


@kernel
def scaled(magnitude, lattice):
    """(significand, s)."""
    field = magnitude >> 52
    significand = (magnitude & FRACTION) | (HIDDEN if field > 0 else 0)
    low = lattice.lowest - max(field, 1)
    more = max(low, 0) + (lattice.gap if magnitude < lattice.smallest_normal else 0)
    return significand, lattice.dropped + more


@kernel
def kept(magnitude, significand, n, s, lattice):
    """The bits of n steps."""
    below = lattice.smallest if n > 0 else 0
    return magnitude + ((n << s) - significand) if s <= 52 else below


@kernel
def signed(code, found, lattice):
    """The sign of a result, that of its operand's bits: zeros may have none."""
    return code & (~MAGNITUDE if found != 0 else lattice.zero_sign)


@kernel
def finished(code, magnitude, found, tiny, lattice):
    """(bits, flags) of x, once its magnitude is rounded to `found`."""
    negative = code < 0
    flushed = tiny & (magnitude != 0) & (lattice.ftz != 0)
    found = 0 if flushed else found
    flags = (TINY if tiny else INEXACT) if found != magnitude else 0
    over = found > lattice.largest
    infinite, no_number = magnitude == INFINITE, magnitude > INFINITE
    result = found | signed(code, found, lattice)
    result = (lattice.overflow_negative if negative else lattice.overflow_positive) if over else result
    flags = lattice.overflow_flags if over else flags
    result = (lattice.infinity_negative if negative else lattice.infinity_positive) if infinite else result
    flags = lattice.infinity_flags if infinite else flags
    result = lattice.nan if no_number else result
    signals = lattice.nan_signals | (INVALID if magnitude & (1 << 51) == 0 else 0)
    return result, (lattice.nan_flags | signals) if no_number else flags


@kernel
def part_of(rest, odd, negative, lattice):
    """What is added to a significand before its last bits, of which `rest` has all, are dropped; `odd` is 0 or 1, `negative` 0 or -1."""
    more = lattice.more_even + (odd & lattice.more_odd) + (negative & lattice.more_negative)
    part = ((rest >> lattice.halved) + more) & rest
    return part & (lattice.on ^ (negative & lattice.on_negative) ^ (-odd & lattice.on_odd))


@kernel
def selected(code, lattice):
    """(bits, flags) under a mode that draws nothing."""
    magnitude = magnitude_of(code, lattice)
    significand, s = scaled(magnitude, lattice)
    s = min(s, FARTHEST)
    part = part_of((1 << s) - 1, (significand >> s) & 1, code >> 63, lattice)
    found = kept(magnitude, significand, (significand + part) >> s, s, lattice)
    tiny = magnitude < (lattice.tiny_negative if code < 0 else lattice.tiny_positive)
    return finished(code, magnitude, found, tiny, lattice)


@kernel
def fraction_of(significand, s, width, lattice):
    """So many bits of the dropped part of a significand, cut."""
    rest = significand & ((1 << min(s, FARTHEST)) - 1)
    return (rest >> min(s - width, FARTHEST) if s >= width else rest << (width - s)) | ((rest != 0) & lattice.jam)


@kernel
def in_sliver(magnitude, lattice):
    """Whether a number below the smallest normal one lies above the next one that there would be if exponents had no end."""
    below = magnitude < lattice.smallest_normal
    return below & (magnitude >= lattice.smallest_normal - (1 << lattice.unbounded))


@kernel
def drawn(code, random, width, lattice):
    """(bits, flags) where `width` random bits are all that there are: up where they carry the fraction over."""
    magnitude = magnitude_of(code, lattice)
    significand, s = scaled(magnitude, lattice)
    up = fraction_of(significand, s, width, lattice) + random >= (1 << width)
    found = kept(magnitude, significand, (significand >> min(s, FARTHEST)) + (1 if up else 0), s, lattice)
    stays = fraction_of(significand, lattice.unbounded, width, lattice) + random < (1 << width)
    escapes = in_sliver(magnitude, lattice) & (not stays) & (lattice.early == 0)
    tiny = (magnitude < lattice.smallest_normal) & (not escapes)
    return finished(code, magnitude, found, tiny, lattice)


@kernel
def left_open(code, half_word, lattice):
    """Whether more than 16 random bits decide on x, or may decide whether it is tiny."""
    magnitude = magnitude_of(code, lattice)
    significand, s = scaled(magnitude, lattice)
    near = fraction_of(significand, s, DRAWN, lattice) + half_word == (1 << DRAWN) - 1
    return near | in_sliver(magnitude, lattice)


@kernel
def aligned_bits(magnitude, lattice):
    """(bits, what is too much in them): below the smallest normal number, the sum with that number, rounded to odd.

    So all have their last kept bit at the same place. Bits, not values, are compared: a host may flush subnormals.
    """
    excess = lattice.smallest_normal if magnitude < lattice.smallest_normal else 0
    total = bits_float(magnitude, 0.0) + bits_float(excess, 0.0)
    back = float_bits(total - bits_float(excess, 0.0))
    return (float_bits(total) - (1 if back > magnitude else 0)) | (1 if back != magnitude else 0), excess


@kernel
def without(found, excess):
    """The bits of a number that is so much less."""
    return float_bits(bits_float(found, 0.0) - bits_float(excess, 0.0))


@kernel
def short_rounded(found, code, rest, lattice):
    """Bits whose last kept bit is where `dropped` says, rounded; `code` has the sign."""
    odd = (found << (63 - lattice.dropped)) >> 63
    return (found + lattice.added + (odd & lattice.added_odd) + ((code >> 63) & lattice.added_negative)) & ~rest


@kernel
def short_selected(code, rest, lattice):
    """(bits, whether they differ from x's, whether x is tiny) for x in range."""
    magnitude = code & MAGNITUDE
    found, excess = aligned_bits(magnitude, lattice)
    found = without(short_rounded(found, code, rest, lattice), excess)
    tiny = magnitude < (lattice.tiny_negative if code < 0 else lattice.tiny_positive)
    return found | signed(code, found, lattice), found ^ magnitude, tiny


@kernel
def short_drawn(code, half_word, rest, lattice):
    """(bits, whether they differ from x's, whether x is tiny, whether 16 random bits leave anything open) for x in range."""
    magnitude = code & MAGNITUDE
    found, excess = aligned_bits(magnitude, lattice)
    taken = half_word << (lattice.dropped - DRAWN)
    found += taken | (-(half_word & 1) & lattice.jam & rest)
    hangs = ((found >> (lattice.dropped - DRAWN)) & 0xFFFF == 0xFFFF) & (lattice.jam == 0)
    found = without(found & ~rest, excess)
    tiny = magnitude < lattice.smallest_normal
    return found | signed(code, found, lattice), found ^ magnitude, tiny, hangs | in_sliver(magnitude, lattice)


def accesses(single, narrow):
    """What makes bits of float64 of an operand, and a result of such; float32 go by their bits, as int32."""
    return from_single if single else float_bits, to_single if narrow else double


@cache
def looking(single):
    """A part of loops that looks at numbers before they are rounded."""
    load, _ = accesses(single, single)

    @kernel
    def looked_at(x, lattice):
        """(whether all numbers have a shorter way, whether they are zero or normal in the format)."""
        beyond, small = 0, 0
        for i in range(x.size):
            magnitude = load(x[i]) & MAGNITUDE
            beyond |= lattice.largest - magnitude
            small |= magnitude - lattice.smallest_normal if magnitude != 0 else lattice.odd_zeros
        ordinary = (beyond | small) >= 0
        return (beyond >= 0) & (ordinary | (lattice.short > 1)), ordinary

    return jit.referable(looked_at, single)


@cache
def rounding_values(single, narrow, each):
    """loop(x, out, flags, lattice) -> flags OR-ed together, 0 where `each`; `out` may be x.

    Of blocks whose numbers are all zero, or normal and in range, the same bits are dropped throughout, and nothing but inexact happens.
    """
    load, store = accesses(single, narrow)
    looked_at = looking(single)

    def rounding_values_loop(x, out, flags, lattice):
        known = Lattice(*fixed_tuple(lattice, COUNT))
        rest = (1 << known.dropped) - 1
        short = known.short != 0
        seen = 0
        for first in range(0, x.size, TOGETHER):
            operands, results = x[first : first + TOGETHER], out[first : first + TOGETHER]
            in_range, ordinary = looked_at(operands, known) if (short and not each) else (False, False)
            if ordinary:
                changed = 0
                for i in range(operands.size):
                    code = load(operands[i])
                    found = short_rounded(code, code, rest, known)
                    changed |= found ^ code
                    results[i] = store(found)
                seen |= INEXACT if changed != 0 else 0
                continue
            if in_range:
                changed, changed_tiny = 0, 0
                for i in range(operands.size):
                    found, different, tiny = short_selected(load(operands[i]), rest, known)
                    changed |= different
                    changed_tiny |= different if tiny else 0
                    results[i] = store(found)
                seen |= (INEXACT if changed != 0 else 0) | (TINY if changed_tiny != 0 else 0)
                continue
            for i in range(operands.size):
                result, raised = selected(load(operands[i]), known)
                results[i] = store(result)
                if each:
                    flags[first + i] = raised
                else:
                    seen |= raised
        return seen

    return jit.compiled(rounding_values_loop)


@cache
def rounding_drawn_values(single, narrow, each):
    """loop(x, out, flags, lattice, key, stream, start, handed, width) -> flags OR-ed together, 0 where `each`; `out` is not x.

    `handed` holds `width` random bits for each number, or is empty: then they come from the address (key, stream, start + i), `start` a multiple
    of TILE. Their top 16 are drawn first; what hangs on the rest is done again with all of them.
    """

    load, store = accesses(single, narrow)
    looked_at = looking(single)

    def rounding_drawn_values_loop(x, out, flags, lattice, key, stream, start, handed, width):
        known = Lattice(*fixed_tuple(lattice, COUNT))
        rest = (1 << known.dropped) - 1
        short = (known.short != 0) & (known.dropped > DRAWN)
        half_words = jit.scratch(BLOCK, np.uint16)
        seen = 0
        for first in range(0, x.size, BLOCK):
            operands, results = x[first : first + BLOCK], out[first : first + BLOCK]
            given = handed[first : first + BLOCK]
            top_bits(start + first, half_words, given, width, key, stream)
            if known.jam != 0:
                for i in range(operands.size):
                    half_words[i] = np.uint16(0xFFFF if half_words[i] != 0 else 0)
            in_range, _ = looked_at(operands, known) if (short and not each) else (False, False)
            hanging = 0
            if in_range:
                changed, changed_tiny = 0, 0
                for i in range(operands.size):
                    found, different, tiny, hangs = short_drawn(load(operands[i]), np.int64(half_words[i]), rest, known)
                    results[i] = store(found)
                    different = 0 if hangs else different
                    changed |= different
                    changed_tiny |= different if tiny else 0
                    hanging |= 1 if hangs else 0
                seen |= (INEXACT if changed != 0 else 0) | (TINY if changed_tiny != 0 else 0)
            else:
                for i in range(operands.size):
                    half_word = np.int64(half_words[i])
                    found, raised = drawn(load(operands[i]), half_word, DRAWN, known)
                    hangs = (width > DRAWN) & left_open(load(operands[i]), half_word, known)
                    results[i] = store(found)
                    if each:
                        flags[first + i] = raised
                    else:
                        seen |= 0 if hangs else raised
                    hanging |= 1 if hangs else 0
            if hanging == 0:
                continue
            for i in range(operands.size):
                if left_open(load(operands[i]), np.int64(half_words[i]), known):
                    position = np.uint64(start + first + i)
                    random = given[i] if given.size else bits_at(position, key, stream, width)
                    found, raised = drawn(load(operands[i]), np.int64(random), width, known)
                    results[i] = store(found)
                    if each:
                        flags[first + i] = raised
                    else:
                        seen |= raised
        return seen

    return jit.compiled(rounding_drawn_values_loop)
