"""Codes to carrier values, exactly. One of the files that decide every bit, with `arith`, `rounding` and `sticky`.

    binary16 code       s eeeee ffffffffff
    << shift            s 000000eeeee ffffffffff000...0      its fields in the carrier's places
    + rebias            s EEEEEEEEEEE ffffffffff000...0      the carrier's exponent

A subnormal has exponent field 0. Read as if the field were 1, its value is too large by exactly the smallest normal
number. No carrier subnormal ever appears on the way, so a host that flushes them gives the same bits.
"""

import numpy as np

from .jit import bits_float, cut, fixed_tuple, float_bits, kernel, shift_left
from .spec import PROPAGATE_SIGNALLING_FIRST
from .targets import Source, count_fields

SOURCE_INTEGERS, SOURCE_FLOATS = count_fields(Source)


@kernel
def source_of(integers, floats):
    """The Source at the start of two arrays."""
    return Source(*(fixed_tuple(integers, SOURCE_INTEGERS) + fixed_tuple(floats, SOURCE_FLOATS)))


@kernel
def decode(code, source):
    """The value of a code of the format described by `source`: finite, infinite or NaN."""
    magnitude = cut(code & source.magnitude_mask, source.hidden)
    fields = cut(shift_left(magnitude, source.shift) + source.rebias, source.hidden)
    below = magnitude < source.hidden
    value = bits_float(cut(fields + source.one_exponent, source.hidden) if below else fields, source.tiny)
    value = value - source.tiny if below else value
    value = source.zero if value < source.flush_below else value
    value = source.infinite if magnitude == source.infinity else value
    value = source.not_a_number if is_nan(code, source) else value
    sign = shift_left(cut(code ^ magnitude, source.hidden), source.sign_shift)
    return bits_float(float_bits(value) | sign, source.tiny)


@kernel
def decode_wide(code, source):
    """`decode` for the carrier's own format, whose subnormals all stand for its smallest normal number; see `bounded`."""
    magnitude = cut(code & source.magnitude_mask, source.hidden)
    below = (magnitude < source.hidden) & (magnitude > 0)
    value = source.tiny if below else bits_float(magnitude, source.tiny)
    value = source.zero if below & (source.flush_below > source.zero) else value
    return -value if code < 0 else value


@kernel
def is_nan(code, source):
    """Whether the code is a NaN, quiet or signalling."""
    return (cut(code & source.magnitude_mask, source.hidden) >= source.nan_first) | (code == source.lone_nan)


@kernel
def is_signalling(code, source):
    """Whether the code is a signalling NaN. Formats with a single NaN have only a quiet one: their `quiet` bit is 0."""
    magnitude = cut(code & source.magnitude_mask, source.hidden)
    return (magnitude >= source.nan_first) & (cut(code & source.quiet, source.hidden) != source.quiet)


@kernel
def quieted(code, source, target):
    """A NaN's code in the target format: sign and the payload's top bits kept; quiet, but where they are all that counts."""
    magnitude = code & source.magnitude_mask
    move = target.mantissa_bits - (target.fraction_bits - source.shift)
    fraction = code & source.payload
    fraction = (fraction << max(move, 0)) >> max(-move, 0)
    sign = target.nan_sign if code != magnitude else target.none
    return target.nan_base | (fraction & target.payload) | target.quieting | sign


@kernel
def propagated(code_a, code_b, code_c, source, target):
    """The NaN operand whose payload survives, by the policy: the first, or the first that signals; quiet, in the target format."""
    if target.from_second != target.none:
        code_a, code_b, code_c = code_b, code_c, code_a
    chosen = code_a if is_nan(code_a, source) else code_b if is_nan(code_b, source) else code_c
    if target.propagate == PROPAGATE_SIGNALLING_FIRST and not is_signalling(code_a, source):
        if is_signalling(code_b, source):
            chosen = code_b
        elif is_signalling(code_c, source):
            chosen = code_c
    return quieted(chosen, source, target)


@kernel
def integer_to_odd(integer, signed):
    """An integer of 64 bits as a float64 rounded to odd, and what that lacks."""
    negative = signed & (integer < 0)
    magnitude = np.uint64(0) - np.uint64(integer) if negative else np.uint64(integer)
    high = np.float64(magnitude >> np.uint64(32)) * 4294967296.0
    low = np.float64(magnitude & np.uint64(0xFFFFFFFF))
    value = high + low
    error = low - (value - high)
    code = float_bits(value)
    if (error != 0.0) & (code & 1 == 0):
        code += 1 if error > 0.0 else -1
    odd = bits_float(code, value)
    more = (value - odd) + error
    return (-odd, -more) if negative else (odd, more)
