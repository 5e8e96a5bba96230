"""Comparisons, choices and integers, which round to no format, and loops of one element after the other: of these, and of wide formats.

Operands and results are as in `loops`.
"""

from functools import cache

import numpy as np

from . import jit
from .carrier import decode, is_signalling, propagated, source_of
from .jit import all_of, float_bits, scratch
from .prng import bits_at
from .rounding import drawn, selected, target_of
from .words import SOME, read_operands, write_words


@cache
def compared(relation):
    """Two elements compared, as `by_element` has it: (whether the relation holds, flags). `signals_all`: whether any NaN raises INVALID."""
    less, equal = relation in ("lt", "le"), relation in ("eq", "le")

    @jit.kernel
    def compared(code_a, code_b, _, signals_all, random, width, source, target):
        x = decode(code_a, source)
        y = decode(code_b, source)
        unordered = (x != x) | (y != y)
        signals = is_signalling(code_a, source) | is_signalling(code_b, source)
        return (less & (x < y)) | (equal & (x == y)), 16 if signals | (unordered & signals_all) else 0

    return jit.referable(compared, relation)


@cache
def by_element(element, arity, draws=False):
    """loop(a, b, c, results, flags, read, made, known, integers, floats, ...) -> flags OR-ed together.

    Codes and flags as in `elementwise`, of an element(a, b, c, known, random, width, source, target) -> (result, flags). If it `draws`, there come
    key, stream, start, handed and width as in `elementwise_drawn`, for nothing where the rule draws none; else a random number for each element,
    or none.
    """

    def element_loop(a, b, c, results, flags, read, made, known, integers, floats, *more):
        source, target = source_of(integers, floats), target_of(integers, floats)
        words = scratch(SOME, np.int64), scratch(SOME, np.int64), scratch(SOME, np.int64)
        found, room, size, seen = scratch(SOME, np.int64), scratch(SOME, np.uint8), results.size // made, 0
        if draws:
            key, stream, start, handed, width = more
        else:
            key, stream, start, handed, width = 0, 0, 0, more[0], 0
        random, addressed = handed.dtype.type(0), draws and target.stochastic != 0 and not handed.size
        for first in range(0, size, SOME):
            count = min(SOME, size - first)
            x, y, z = read_operands(words, (a, b, c), arity, read, first, count)
            told = flags[first : first + count] if flags.size else room[:count]
            for i in range(count):
                if addressed:
                    random = bits_at(np.uint64(start + first + i), key, stream, width)
                elif handed.size:
                    random = handed[first + i]
                found[i], told[i] = element(x[i], y[i], z[i], known, random, width, source, target)
            seen |= all_of(told)
            write_words(results, found[:count], made, first)
        return seen

    return jit.compiled(element_loop)


@cache
def extreme(largest, number):
    """The lesser or greater of two elements, as `by_element` has it. `number`: a NaN gives way to a number."""

    @jit.kernel
    def extreme(code_a, code_b, code_c, known, random, width, source, target):
        x = decode(code_a, source)
        y = decode(code_b, source)
        nan_a, nan_b = x != x, y != y
        first_is_less = (x < y) | ((x == y) & (float_bits(x) < 0))
        first = first_is_less != largest
        if number:
            first = (first & (not nan_a)) | nan_b
        chosen = code_a if first else code_b
        value = x if first else y
        if value == 0.0:
            chosen = target.zero_sign if float_bits(value) < 0 else target.none
        signals = is_signalling(code_a, source) | is_signalling(code_b, source)
        raised = (target.invalid if signals else target.none) | (
            target.any_nan_signals if nan_a | nan_b else target.none
        )
        if number:
            if target.number_signalling & target.ftz:
                field = (chosen & source.magnitude_mask) >> target.mantissa_bits
                if (field == target.none) & (target.zeroless == target.none) & (value != 0.0) & (value == value):
                    chosen = target.zero_sign if float_bits(value) < 0 else target.none
                    raised |= target.tiny_inexact
            unordered = (nan_a & nan_b) | (signals & (target.number_signalling != target.none))
        else:
            unordered = nan_a | nan_b
        code = chosen
        if unordered:
            code = propagated(code_a, code_b, code_b, source, target) if target.propagate else target.nan
            raised &= target.invalid
        if not number and target.second_operand != target.none:
            if unordered:
                code = code_b
                raised = target.invalid
            if (unordered | (x == 0.0)) & (y == 0.0):
                code = target.zero_sign if float_bits(y) < 0 else target.none
        return code, raised

    return jit.referable(extreme, largest, number)


@cache
def integer(draws):
    """One element as an integer, as `by_element` has it: (int64 or the bits of uint64, flags).

    Values at or above `bound` or below `lowest` are invalid.
    """

    @jit.kernel
    def integer(code, code_b, code_c, limits, uniform, width, source, target):
        lowest, bound, nan_result, low_result, high_result, exact = limits
        x = decode(code, source)
        magnitude = abs(x)
        magnitude = target.least if (magnitude < target.least) & (magnitude > 0.0) else magnitude
        negative = float_bits(x) < 0
        if draws:
            n = drawn(magnitude, uniform, target)
        else:
            n = selected(magnitude, target.code_base, negative, target)
        n = -n if negative else n
        raised = target.inexact if (n != x) & exact else target.none
        if x != x:
            result = nan_result
            raised = target.invalid
        elif n < lowest:
            result = low_result
            raised = target.invalid
        elif n >= bound:
            result = high_result
            raised = target.invalid
        elif n >= 9223372036854775808.0:
            result = np.int64(n - 9223372036854775808.0) ^ np.int64(-9223372036854775808)
        else:
            result = np.int64(n)
        return result, raised

    return jit.referable(integer, draws)
