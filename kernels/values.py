"""Floats to floats that are numbers of a format: a rounding in one pass, with no code in between.

On the bits of the float, whose last `dropped` bits of significand the format has not:

    s = dropped, or as many more as the exponent is below emin
    n = (significand + part) >> s

The part of 2^s that is added is all there is to a mode: less than one half or one half, all but nothing, nothing, or s random bits. A carry goes
on into the exponent. Below the smallest number s is more than the significand has, and n is 0 or 1. This restates `rounding.scaled`, `selected`,
`drawn` and `assemble`; it goes as far as the float does, p = 53 and float64's exponents. Results of formats that are unsigned, or have no zero,
are left to those.

Numbers in range are counted in steps instead: times powers of two, one that belongs to the exponent of x, or to emin if that is more, x is
n and a fraction, normal or not, and the processor rounds it to an integer. Nothing there is inexact on a host that has subnormals.

All is held, code and flag, against the plain ways by tests.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from . import jit
from .jit import bits_float, cut, fixed_tuple, float_bits, kernel, row, stand_alone
from .prng import TILE, bits_at, top_bits
from .spec import INEXACT, INVALID, UNDERFLOW, Rounding

FRACTION, HIDDEN = (1 << 52) - 1, 1 << 52
MAGNITUDE, INFINITE = (1 << 63) - 1, 0x7FF << 52
TINY = UNDERFLOW | INEXACT
SINGLE_MAGNITUDE, SINGLE_INFINITE, SINGLE_HIDDEN = (1 << 31) - 1, 0xFF << 23, 1 << 23
SINGLE_REBIAS, SHIFTED = 896 << 52, 1075 << 52
"""What the exponent field of a float32 has less than a float64's; the field of 2^52, below which an integer is a fraction."""
ONES, SINGLE_ONES = 2046 << 52, 254 << 23
"""1.0 and 1.0, as integers: less the bits of a power of two, those of its inverse."""
FARTHEST = 62
"""2^62 is more than twice a significand: for what does not count random bits, s is no more."""
BLOCK, TOGETHER = 2 * TILE, 16 * TILE
"""Numbers that are rounded in the same way, with random bits and without: few enough that often all are in range."""
BEYOND, HANGING = 1 << 8, 1 << 9
"""Beside flags: not all are; random bits leave something open."""
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
    up_positive_even: int  # which part is added to even significands of positive numbers, as `part_of` takes it
    up_positive_odd: int
    up_negative_even: int
    up_negative_odd: int
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
    jam: int  # mask: random bits take up whatever is not exact, where they are all ones, and nothing otherwise
    # For those that are counted in steps, in bits of the float that is multiplied:
    top: int  # blocks with a larger magnitude go the plain way
    least: int  # and with a smaller one, zeros aside; in bits of operands
    normal: int  # the smallest normal number
    steps: int  # from a power of two to the next
    sure_positive: int  # a magnitude below it is tiny, whatever is drawn
    sure_negative: int


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
def part_of(rest, up):
    """What is added to a significand before its last bits, of which `rest` has all, are dropped: all of them shifted, and perhaps one more."""
    return ((rest >> (up >> 1)) + (up & 1)) & rest


@kernel
def selected(code, lattice):
    """(bits, flags) under a mode that draws nothing."""
    magnitude = magnitude_of(code, lattice)
    significand, s = scaled(magnitude, lattice)
    s = min(s, FARTHEST)
    odd = (significand >> s) & 1 != 0
    positive = lattice.up_positive_odd if odd else lattice.up_positive_even
    negative = lattice.up_negative_odd if odd else lattice.up_negative_even
    part = part_of((1 << s) - 1, negative if code < 0 else positive)
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


def accesses(single, narrow):
    """What makes bits of float64 of an operand, and a result of such; float32 go by their bits, as int32."""
    return from_single if single else float_bits, to_single if narrow else double


@kernel
def itself(x):
    """What is given."""
    return x


@kernel
def single_number(code):
    """The float32 of some bits."""
    return bits_float(code, np.float32(0.0))


@kernel
def widened(code):
    """The same as float64, on a host that flushes nothing."""
    return np.float64(single_number(code))


@kernel
def narrowed(code):
    """The bits of the float32 that a float64 of some bits is, on such a host."""
    return float_bits(np.float32(double(code)))


@kernel
def flushing(lattice):
    """Whether the host takes subnormals for zeros, or gives zeros for them. The compiler does not know the number that is halved."""
    return double(3 | lattice.zero_sign) * 0.5 == 0.0


@cache
def looking(single):
    """A part of loops that looks at operands before they are rounded."""
    bits, mask = (itself, SINGLE_MAGNITUDE) if single else (float_bits, MAGNITUDE)

    @row
    def any_outside(x, least, most):
        """Whether one of them is smaller, zeros aside, or larger."""
        stand_alone()
        outside = cut(0, bits(x[0]))
        for i in range(x.size):
            code = bits(x[i])
            magnitude = cut(code & mask, code)
            small = cut(magnitude - least, code) & ~cut(magnitude - 1, code)
            outside = cut(outside | small | cut(most - magnitude, code), code)
        return outside < 0

    return jit.referable(any_outside, single)


@kernel
def ties_up(x):
    """The nearest integer, halves up; zeros keep their sign."""
    nearest = np.rint(x)
    return nearest + cut(1.0, x) if x - nearest == cut(0.5, x) else nearest


@kernel
def to_odd(half):
    """Half of an integer, or of the odd one beside a number that is none: it ends in one half."""
    whole = np.floor(half)
    return whole if whole == half else whole + cut(0.5, half)


@kernel
def carried(x, half_word):
    """The next lower integer, or the next if 16 random bits carry the fraction over; and whether more of them could."""
    whole = np.floor(x)
    taken = np.floor((x - whole) * 65536.0) + np.float64(half_word)
    return whole + (1.0 if taken >= 65536.0 else 0.0), taken == 65535.0


@kernel
def either(x, half_word):
    """The next lower integer, or the next if there is a fraction and a random bit."""
    whole = np.floor(x)
    return whole + (1.0 if (x != whole) & (half_word != 0) else 0.0), False


INTEGERS = {
    Rounding.NEAREST_EVEN: (np.rint, 0),
    Rounding.NEAREST_AWAY: (ties_up, 1),
    Rounding.TOWARD_ZERO: (np.trunc, 0),
    Rounding.TOWARD_POSITIVE: (np.ceil, 0),
    Rounding.TOWARD_NEGATIVE: (np.floor, 0),
    Rounding.TO_ODD: (to_odd, 0),
    Rounding.NEAREST_ZERO: (ties_up, -1),
    Rounding.NEAREST_UP: (ties_up, 0),
    Rounding.STOCHASTIC: (carried, 1),
    Rounding.UP_OR_DOWN: (either, 1),
}
"""What rounds to an integer in each mode, and whether it rounds x and keeps its sign, of zeros too, or |x| (1), or -|x|."""


@cache
def stepping(single, narrow, unsigned, gap, mode):
    """A part of loops that counts in steps; zeros are `unsigned`, or a `gap` is beside them. What is out of range stays as it is, and is told of.

    Modes that draw have 16 random bits for each number, and tell of what these leave open.
    """
    (integer, side), draws, halves = INTEGERS[mode], mode.draws, mode is Rounding.TO_ODD
    sided = mode in (Rounding.TOWARD_POSITIVE, Rounding.TOWARD_NEGATIVE, Rounding.NEAREST_UP)
    short = narrow and not draws
    number = itself if not single else single_number if short else widened
    put, like, mask, infinite, ones = narrowed if narrow else double, 0.0, MAGNITUDE, INFINITE, ONES
    if short:
        put, like, mask, infinite, ones = itself, np.float32(0.0), SINGLE_MAGNITUDE, SINGLE_INFINITE, SINGLE_ONES

    @row
    def step_row(x, out, half_words, lattice):
        stand_alone()
        known = Lattice(*fixed_tuple(lattice, COUNT))
        none = float_bits(like)
        top, positive, negative = cut(known.top, none), cut(known.sure_positive, none), cut(known.sure_negative, none)
        least_normal = cut(known.smallest_normal, none)
        normal, steps = bits_float(known.normal, like), bits_float(known.steps, like)
        below = normal * steps if gap else normal
        steps = steps * cut(0.5, like) if halves else steps
        step = cut(1.0, like) / steps
        changed, changed_tiny, beyond, hanging = none, none, none, none
        for i in range(x.size):
            code = float_bits(number(x[i]))
            magnitude = cut(code & mask, none)
            power = bits_float(code & infinite, like)
            power = power if (power >= normal if gap else power > normal) else below
            inverse = bits_float(ones - float_bits(power), like)
            given = magnitude if side > 0 else code | ~mask if side else code
            exact = bits_float(given, like) * inverse * steps
            tiny = magnitude < (negative if sided and code < 0 else positive)
            if draws:
                whole, hangs = integer(exact, half_words[i])
                hanging = cut(hanging | (1 if hangs | ((magnitude < least_normal) & (not tiny)) else 0), none)
            else:
                whole = integer(exact)
            found = whole * (power * step)
            if side:
                found = np.copysign(found, bits_float(code, like))
            if unsigned:
                found += like
            over = cut(top - magnitude, none)
            result = cut(code if over < 0 else float_bits(found), none)
            out[i] = put(result)
            different = cut(result ^ code, none)
            changed = cut(changed | different, none)
            changed_tiny = cut(changed_tiny | (different if tiny else 0), none)
            beyond = cut(beyond | over, none)
        raised = (INEXACT if changed & mask != 0 else 0) | (TINY if changed_tiny & mask != 0 else 0)
        return raised | (BEYOND if beyond < 0 else 0) | (HANGING if hanging != 0 else 0)

    return jit.referable(step_row, single, narrow, unsigned, gap, mode)


@cache
def plain_way(single, narrow, each):
    """A part of loops that rounds any numbers by a mode that draws nothing, and tells flags OR-ed together, or of `each`."""
    load, store = accesses(single, narrow)

    @row
    def plain_row(x, out, flags, lattice):
        stand_alone()
        known = Lattice(*fixed_tuple(lattice, COUNT))
        seen = 0
        for i in range(x.size):
            result, raised = selected(load(x[i]), known)
            out[i] = store(result)
            if each:
                flags[i] = raised
            else:
                seen |= raised
        return seen

    return jit.referable(plain_row, single, narrow, each)


@cache
def rounding_values(single, narrow, unsigned, gap, mode, each):
    """loop(x, out, flags, lattice) -> flags OR-ed together; 0 where `each`: `flags` gets those of each number, and one mode serves all.

    `out` may be x. In modes that draw it is not, and loops take (x, out, flags, lattice, key, stream, start, handed, width): `handed` holds
    `width` random bits for each number, or is empty: then they come from the address (key, stream, start + i), `start` a multiple of TILE. Their
    top 16 are drawn first; what hangs on the rest is done again with all of them.
    """
    load, store = accesses(single, narrow)
    step_row, any_outside, draws = stepping(single, narrow, unsigned, gap, mode), looking(single), mode.draws
    plain_row = plain_way(single, narrow, each)
    block, jam = BLOCK if draws else TOGETHER, mode == Rounding.UP_OR_DOWN
    endless = SINGLE_MAGNITUDE if single else MAGNITUDE

    @row
    def rounded_row(x, out, flags, lattice, key, stream, start, handed, width):
        known = Lattice(*fixed_tuple(lattice, COUNT))
        counted = not each and known.top >= 0 and not flushing(known)
        half_words = jit.scratch(BLOCK, np.uint16)
        top = known.top if single == narrow else -1
        seen = 0
        for first in range(0, x.size, block):
            operands, results = x[first : first + block], out[first : first + block]
            if draws:
                given = handed[first : first + block]
                top_bits(start + first, half_words, given, width, key, stream)
                for i in range(operands.size if jam else 0):
                    half_words[i] = np.uint16(0xFFFF if half_words[i] != 0 else 0)
            stepped = counted and (known.least == 0 or not any_outside(operands, known.least, endless))
            found = step_row(operands, results, half_words, lattice) if stepped else BEYOND
            seen |= found & ~(BEYOND | HANGING)
            part = TILE if stepped else block
            for low in range(0, operands.size if found >= BEYOND else 0, part):
                some = operands[low : low + part]
                hanging = 0
                for i in range(some.size if draws and found & BEYOND == 0 else 0):
                    hanging |= 1 if left_open(load(some[i]), np.int64(half_words[low + i]), known) else 0
                within = (found & BEYOND == 0) & (hanging == 0) if draws else stepped and not any_outside(some, 0, top)
                if stepped and within:
                    continue  # they may be rounded already, where `out` is x
                if draws:
                    for i in range(low, low + some.size):
                        code, random, size = load(operands[i]), np.int64(half_words[i]), DRAWN
                        if left_open(code, random, known):
                            place = np.uint64(start + first + i)
                            random = np.int64(given[i] if given.size else bits_at(place, key, stream, width))
                            size = width
                        elif stepped and code & MAGNITUDE <= known.top:
                            continue
                        result, raised = drawn(code, random, size, known)
                        results[i] = store(result)
                        if each:
                            flags[first + i] = raised
                        else:
                            seen |= raised
                else:
                    seen |= plain_row(some, results[low : low + part], flags[first + low : first + low + part], lattice)
        return seen

    jit.referable(rounded_row, single, narrow, unsigned, gap, mode, each)

    def rounding_values_loop(x, out, flags, lattice):
        return rounded_row(x, out, flags, lattice, 0, 0, 0, flags, 0)

    def rounding_drawn_values_loop(x, out, flags, lattice, key, stream, start, handed, width):
        return rounded_row(x, out, flags, lattice, key, stream, start, handed, width)

    return jit.compiled(rounding_drawn_values_loop if draws else rounding_values_loop)
