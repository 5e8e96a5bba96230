"""Blocks that share a scale: the largest magnitude, the scale it asks for, and the elements, in one pass over the numbers.

Numbers are the bits of float32. A block is some rows of a row-major array, `length` numbers of each.
A block whose numbers or scale are not ordinary (a NaN, an infinity, a scale near the ends of its range) is left to the plain way,
and marked. In the others nothing depends on what the host does with subnormals: scaled numbers that float32 could not hold are
as good as its smallest, which every element rounds to zero.
Elements and scales are rounded by the functions of `fast`, to nearest even; or numbers are scaled only, for roundings of another kind.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import jit
from .fast import INFINITE_BITS, MAGNITUDE, NONE, ZERO, limits_of, narrow_convert, narrow_finite, narrow_scaled
from .jit import bits_float, cut, float_bits, kernel, shift_left, shift_right
from .vectors import load, named

LENGTHS = (16, 32, 64, 128, 256)
"""Elements of a block that there are loops for."""

LOWEST_POWER = 32
"""Codes of E8M0 below it, and so numbers that could make a subnormal float32 more than a tiny element, are left to the plain way."""
HIGHEST_POWER = 254
TINY_BITS = np.int32(27 << 23)  # 2^-100
NORMAL_BITS = np.int32(1 << 23)
LARGE = np.float32(2.0**60)
LARGEST_MULTIPLIER = np.float32(2.0**100)
SMALLEST, ONE = np.int32(1), np.float32(1)
KINDS = ("any", "each", "scaled")
"""Flags OR-ed together; a byte for each element; no codes, but float32 numbers that are scaled exactly as the rule has it."""
GROUP = 64
"""Blocks whose scales are found together, in vectors."""
BIAS = np.int32(127)


@cache
def largest_of(length):
    """largest(numbers, start): the largest of `length` float32 numbers without their signs, as bits."""

    @intrinsic
    def largest(context, numbers, start):
        def codegen(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            where = context.cast(builder, arguments[1], signature.args[1], types.int64)
            bits = (load(builder, data, where, ir.IntType(32), length) & int(MAGNITUDE)).value
            reduction = ir.FunctionType(ir.IntType(32), [bits.type])
            name = f"llvm.vector.reduce.smax.v{length}i32"
            return builder.call(cgutils.get_or_insert_function(builder.module, reduction, name), [bits])

        return types.int32(numbers, start), codegen

    return named(largest, ("largest", length))


@kernel
def element(bits, scaled, limits):
    """(code, flags) of a number whose magnitude, scaled, has the bits `scaled`, at least the smallest if it is no zero."""
    y, base = narrow_scaled(scaled, limits)
    return narrow_finite(bits, y, np.rint(y), base, scaled < limits.tiny_bits, limits)


@kernel
def place_of(block, places, length):
    """Where a block begins. `places`: the first block, the last but one, blocks side by side, rows of a block, numbers between rows, the first
    number of all."""
    if places[3] == 1 and places[4] == places[2] * length:
        return block * length
    return (block // places[2]) * places[3] * places[4] + (block % places[2]) * length + places[5]


@cache
def largest_in_block(length):
    """largest(numbers, first, places): the largest of a block's numbers without their signs, as bits."""
    largest_in = largest_of(length)

    @kernel
    def largest_in_rows(numbers, first, places):
        found = largest_in(numbers, first)
        for row in range(1, places[3]):
            found = max(found, largest_in(numbers, first + row * places[4]))
        return found

    return jit.referable(largest_in_rows, length)


@kernel
def is_exact(magnitude, scaled):
    """Whether neither a number nor the scaled one is too small for float32's normal range."""
    return (magnitude == NONE) | ((magnitude >= NORMAL_BITS) & (scaled >= NORMAL_BITS))


@kernel
def signed(bits, scaled):
    """The scaled number with the sign of the number."""
    return cut(scaled | (bits & ~MAGNITUDE), NONE)


@cache
def powers(length, kind):
    """loop(numbers, codes, scales, left, flags, places, settings, reciprocal, integers, floats) -> flags OR-ed, of scales that are powers of two.

    `settings`: what carries into the exponent of amax (or of amax * reciprocal, if the next is 1), what is taken off that
    exponent, the bits from which on the sum counts as infinite, the least amax, and the code for zeros (-1: left).
    """
    largest_in = largest_in_block(length)
    each, scales_only = kind == "each", kind == "scaled"

    def powers_loop(numbers, codes, scales, left, flags, places, settings, reciprocal, integers, floats):
        limits = limits_of(integers, floats)
        carry, divides, offset = settings[0], settings[1] != NONE, settings[2]
        infinite, least, zero_code = settings[3], settings[4], settings[5]
        raised = np.zeros(length, np.uint8)
        height, pitch = places[3], places[4]
        for block in range(places[0], places[1]):
            first = place_of(block, places, length)
            largest = largest_in(numbers, first, places)
            amax = max(largest, least)
            taken = float_bits(bits_float(amax, ZERO) * reciprocal) if divides else amax
            taken = cut(taken + carry, NONE)
            code = cut(shift_right(taken, 23) - offset, NONE)
            ordinary = (code >= LOWEST_POWER) & (code <= HIGHEST_POWER) & (taken >= NONE) & (taken < infinite)
            ordinary = (ordinary | ((amax == NONE) & (zero_code >= NONE))) & (largest < INFINITE_BITS)
            if not ordinary:
                left[block] = 1
                continue
            code = code if amax != NONE else zero_code
            scales[block] = code
            shift = shift_left(cut(code - BIAS, NONE), 23)
            inexact = False
            for row in range(height):
                start = first + row * pitch
                these, results = numbers[start : start + length], codes[start : start + length]
                noted = flags[start : start + length]
                for i in range(length):
                    bits = these[i]
                    magnitude = cut(bits & MAGNITUDE, NONE)
                    if scales_only:
                        scaled = cut(magnitude - shift, NONE) if magnitude != NONE else NONE
                        results[i] = signed(bits, scaled)
                        inexact |= not is_exact(magnitude, scaled)
                    else:
                        scaled = max(cut(magnitude - shift, NONE), SMALLEST) if magnitude != NONE else NONE
                        made, here = element(bits, scaled, limits)
                        results[i] = made
                        if each:
                            noted[i] = here
                        else:
                            raised[i] |= np.uint8(here)
            if inexact:
                left[block] = 1
        return any_of(raised)

    return jit.compiled(powers_loop)


@cache
def multiplied(length, kind):
    """multiplied(numbers, codes, flags, raised, first, places, multiplier, limits): a block's elements; whether a scaled number may be inexact."""
    each, scales_only = kind == "each", kind == "scaled"

    @kernel
    def multiplied_block(numbers, codes, flags, raised, first, places, multiplier, limits):
        inexact = False
        for row in range(places[3]):
            start = first + row * places[4]
            these, results = numbers[start : start + length], codes[start : start + length]
            for k in range(length):
                bits = these[k]
                magnitude = cut(bits & MAGNITUDE, NONE)
                product_bits = float_bits(bits_float(magnitude, ZERO) * multiplier)
                if scales_only:
                    scaled = product_bits if magnitude != NONE else NONE
                    results[k] = signed(bits, scaled)
                    inexact |= not is_exact(magnitude, scaled)
                else:
                    scaled = max(product_bits, SMALLEST) if magnitude != NONE else NONE
                    made, here = element(bits, scaled, limits)
                    results[k] = made
                    if each:
                        flags[start + k] = here
                    else:
                        raised[k] |= np.uint8(here)
        return inexact

    return jit.referable(multiplied_block, length, kind)


@cache
def given(length, kind):
    """loop(numbers, codes, scales, left, flags, places, multiplier, integers, floats) -> flags OR-ed, of what all blocks are multiplied by.

    Blocks are left that are not finite, or where the factor could make more than a tiny element of a subnormal float32.
    """
    largest_in, multiplied_block = largest_in_block(length), multiplied(length, kind)

    def given_loop(numbers, codes, scales, left, flags, places, multiplier, integers, floats):
        limits, raised = limits_of(integers, floats), np.zeros(length, np.uint8)
        for block in range(places[0], places[1]):
            first = place_of(block, places, length)
            largest = largest_in(numbers, first, places)
            product = bits_float(largest, ZERO) * multiplier
            if (largest < INFINITE_BITS) & (multiplier < LARGEST_MULTIPLIER) & (product < LARGE):
                multiplied_block(numbers, codes, flags, raised, first, places, multiplier, limits)
            else:
                left[block] = 1
        return any_of(raised)

    return jit.compiled(given_loop)


@cache
def inverses(length, kind):
    """loop(numbers, codes, scales, left, flags, places, reals, kept, integers, floats) -> flags OR-ed, of scales whose inverses multiply.

    `reals`: an inverse is the first number / amax, which is at least the second. `kept`: of the inverse's bits. It is 1 where amax is 0.
    """
    largest_in, multiplied_block = largest_in_block(length), multiplied(length, kind)

    def inverses_loop(numbers, codes, scales, left, flags, places, reals, kept, integers, floats):
        limits, raised = limits_of(integers, floats), np.zeros(length, np.uint8)
        for block in range(places[0], places[1]):
            first = place_of(block, places, length)
            largest = largest_in(numbers, first, places)
            amax = max(bits_float(largest, ZERO), reals[1])
            bits = cut(float_bits(reals[0] / amax if amax > ZERO else ONE) & kept, NONE)
            multiplier = bits_float(bits, ZERO)
            if (largest < INFINITE_BITS) & (bits >= NORMAL_BITS) & (multiplier < LARGEST_MULTIPLIER):
                scales[block] = ONE / multiplier
                multiplied_block(numbers, codes, flags, raised, first, places, multiplier, limits)
            else:
                left[block] = 1
        return any_of(raised)

    return jit.compiled(inverses_loop)


@cache
def tables(length, kind):
    """loop(numbers, codes, scales, left, flags, places, reals, zero_code, multipliers, scale numbers, element numbers) -> flags OR-ed.

    Of scales that are no powers of two. `reals`: a factor and two divisors, of which the scale is amax * factor or, if that is
    negative, amax / one / other; its least and its largest value; the least amax. `multipliers` has what numbers are multiplied by
    for each code of a scale; none for scales in float32, whose inverses these are.
    """
    largest_in, multiplied_block = largest_in_block(length), multiplied(length, kind)

    def tables_loop(
        numbers,
        codes,
        scales,
        left,
        flags,
        places,
        reals,
        zero_code,
        multipliers,
        scale_integers,
        scale_floats,
        integers,
        floats,
    ):
        limits, scale_limits = limits_of(integers, floats), limits_of(scale_integers, scale_floats)
        factor, one, other, low, high, least = reals[0], reals[1], reals[2], reals[3], reals[4], reals[5]
        raised, single = np.zeros(length, np.uint8), multipliers.size == 0
        largest, chosen = np.empty(GROUP, np.int32), np.empty(GROUP, np.int32)
        for start in range(places[0], places[1], GROUP):
            count = min(GROUP, places[1] - start)
            for i in range(count):
                largest[i] = largest_in(numbers, place_of(start + i, places, length), places)
            for i in range(count):
                amax = max(bits_float(largest[i], ZERO), least)
                wanted = amax * factor if factor >= ZERO else amax / one / other
                bits = float_bits(min(max(wanted, low), high))
                code = bits if single else narrow_convert(bits, bits, bits, scale_limits)[0]
                chosen[i] = zero_code if (largest[i] == NONE) & (least == ZERO) else code
            for i in range(count):
                block, code = start + i, chosen[i]
                multiplier = ONE / bits_float(code, ZERO) if single else multipliers[max(code, NONE)]
                product = max(bits_float(largest[i], ZERO), least) * multiplier
                ordinary = (largest[i] >= TINY_BITS) & (largest[i] < INFINITE_BITS)
                ordinary = ordinary & (multiplier < LARGEST_MULTIPLIER) & (product < LARGE)
                if not (ordinary | ((largest[i] == NONE) & (code >= NONE))):
                    left[block] = 1
                    continue
                scales[block] = code
                first = place_of(block, places, length)
                if multiplied_block(numbers, codes, flags, raised, first, places, multiplier, limits):
                    left[block] = 1
        return any_of(raised)

    return jit.compiled(tables_loop)


@kernel
def any_of(raised):
    """Flags OR-ed together."""
    seen = NONE
    for i in range(raised.size):
        seen |= np.int32(raised[i])
    return seen


@cache
def largest():
    """loop(numbers) -> the bits of the largest magnitude; those of NaNs are larger than infinity's."""
    widest = LENGTHS[-1]
    largest_in = largest_of(widest)

    def largest_loop(numbers):
        found = NONE
        whole = numbers.size // widest
        for block in range(whole):
            found = max(found, largest_in(numbers, block * widest))
        for i in range(whole * widest, numbers.size):
            found = max(found, cut(numbers[i] & MAGNITUDE, NONE))
        return found

    return jit.compiled(largest_loop)
