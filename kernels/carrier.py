"""Codes to carrier values, exactly. One of the two files that decide every bit.

    binary16 code       s eeeee ffffffffff
    << shift            s 000000eeeee ffffffffff000...0      its fields in the carrier's places
    + rebias            s EEEEEEEEEEE ffffffffff000...0      the carrier's exponent

A subnormal has exponent field 0. Read as if the field were 1, its value is too large by exactly the smallest normal number.
No carrier subnormal ever appears on the way, so a host that flushes them gives the same bits.
"""

from .jit import bits_float, float_bits, kernel


@kernel
def decode(code, source):
    """The value of a code of the format described by `source`: finite, infinite or NaN."""
    magnitude = code & source.magnitude_mask
    fields = (magnitude << source.shift) + source.rebias
    below = magnitude < source.hidden
    value = bits_float(fields + source.one_exponent if below else fields, source.tiny)
    value = value - source.tiny if below else value
    value = source.zero if value < source.flush_below else value
    value = source.infinite if magnitude == source.infinity else value
    value = source.not_a_number if is_nan(code, source) else value
    return bits_float(float_bits(value) | ((code ^ magnitude) << source.sign_shift), source.tiny)


@kernel
def is_nan(code, source):
    """Whether the code is a NaN, quiet or signalling."""
    return ((code & source.magnitude_mask) >= source.nan_first) | (code == source.lone_nan)


@kernel
def is_signalling(code, source):
    """Whether the code is a signalling NaN. Formats with a single NaN have only a quiet one: their `quiet` bit is 0."""
    return ((code & source.magnitude_mask) >= source.nan_first) & ((code & source.quiet) != source.quiet)
