"""Blocks that share a scale: the largest magnitude, the scale it asks for, and the elements, in one pass over the numbers.

Numbers are the bits of float32, block after block. A block whose numbers or scale are not ordinary (a NaN, an infinity, a
scale near the ends of its range) is left to the plain way, and marked. In the others nothing depends on what the host does
with subnormals: scaled numbers that float32 could not hold are as good as its smallest, which every element rounds to zero.
Elements and scales are rounded by the functions of `fast`, to nearest even.
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
from .lanes import load, named

LENGTHS = (16, 32, 64, 128, 256)
"""Elements of a block that there are loops for."""

LOWEST_POWER = 32
"""Codes of E8M0 below it, and so numbers that could make a subnormal float32 more than a tiny element, are left to the plain way."""
HIGHEST_POWER = 254
TINY_BITS = np.int32(27 << 23)  # 2^-100
LARGE = np.float32(2.0**60)
LARGEST_MULTIPLIER = np.float32(2.0**100)
SMALLEST = np.int32(1)
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


@cache
def powers(length, each):
    """loop(numbers, codes, scales, left, flags, settings, reciprocal, integers, floats) -> flags OR-ed, of scales that are powers of two.

    `settings`: what carries into the exponent of amax (or of amax * reciprocal, if the next is 1), what is taken off that
    exponent, the bits from which on the sum counts as infinite, the least amax, and the code for zeros (-1: left).
    """
    largest_in = largest_of(length)

    def powers_loop(numbers, codes, scales, left, flags, settings, reciprocal, integers, floats):
        limits = limits_of(integers, floats)
        carry, divides, offset = settings[0], settings[1] != NONE, settings[2]
        infinite, least, zero_code = settings[3], settings[4], settings[5]
        raised = np.zeros(length, np.uint8)
        for block in range(scales.size):
            first = block * length
            largest = largest_in(numbers, first)
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
            for i in range(length):
                bits = numbers[first + i]
                magnitude = cut(bits & MAGNITUDE, NONE)
                scaled = max(cut(magnitude - shift, NONE), SMALLEST) if magnitude != NONE else NONE
                made, here = element(bits, scaled, limits)
                codes[first + i] = made
                if each:
                    flags[first + i] = here
                else:
                    raised[i] |= np.uint8(here)
        return any_of(raised)

    return jit.compiled(powers_loop)


@cache
def tables(length, each):
    """loop(numbers, codes, scales, left, flags, reals, zero_code, multipliers, scale numbers, element numbers) -> flags OR-ed, of other scales.

    `reals`: a factor and two divisors, of which the scale is amax * factor or, if that is negative, amax / one / other; its least
    and its largest value; the least amax. `multipliers` has what numbers are multiplied by for each code of a scale.
    """
    largest_in = largest_of(length)

    def tables_loop(
        numbers,
        codes,
        scales,
        left,
        flags,
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
        raised = np.zeros(length, np.uint8)
        largest, chosen = np.empty(GROUP, np.int32), np.empty(GROUP, np.int32)
        for group in range((scales.size + GROUP - 1) // GROUP):
            start = group * GROUP
            count = min(GROUP, scales.size - start)
            for i in range(count):
                largest[i] = largest_in(numbers, (start + i) * length)
            for i in range(count):
                amax = max(bits_float(largest[i], ZERO), least)
                wanted = amax * factor if factor >= ZERO else amax / one / other
                bits = float_bits(min(max(wanted, low), high))
                code, _ = narrow_convert(bits, bits, bits, scale_limits)
                chosen[i] = zero_code if (largest[i] == NONE) & (least == ZERO) else code
            for i in range(count):
                block, code = start + i, chosen[i]
                multiplier = multipliers[max(code, NONE)]
                product = max(bits_float(largest[i], ZERO), least) * multiplier
                ordinary = (largest[i] >= TINY_BITS) & (largest[i] < INFINITE_BITS)
                ordinary = ordinary & (multiplier < LARGEST_MULTIPLIER) & (product < LARGE)
                if not (ordinary | ((largest[i] == NONE) & (code >= NONE))):
                    left[block] = 1
                    continue
                scales[block] = code
                first = block * length
                these, results = numbers[first : first + length], codes[first : first + length]
                for k in range(length):
                    bits = these[k]
                    magnitude = cut(bits & MAGNITUDE, NONE)
                    product_bits = float_bits(bits_float(magnitude, ZERO) * multiplier)
                    scaled = max(product_bits, SMALLEST) if magnitude != NONE else NONE
                    made, here = element(bits, scaled, limits)
                    results[k] = made
                    if each:
                        flags[first + k] = here
                    else:
                        raised[k] |= np.uint8(here)
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
