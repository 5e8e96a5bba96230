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

from . import jit
from .fast import (
    INEXACT,
    INFINITE_BITS,
    MAGNITUDE,
    NONE,
    OVERFLOWED,
    SMALLEST_BITS,
    TINY_INEXACT,
    ZERO,
    lowest_bits,
    narrow_convert,
    scale_exponent,
)
from .jit import bits_float, cut, float_bits, kernel, lowered, shift_left, shift_right
from .rounding import target_of
from .vectors import load

LENGTHS = (16, 32, 64, 128, 256)
"""Elements of a block that there are loops for."""

LOWEST_POWER = 32
"""Codes of E8M0 below it, and so numbers that could make a subnormal float32 more than a tiny element, are left to the plain way."""
HIGHEST_POWER = 253
TINY_BITS = np.int32(27 << 23)  # 2^-100
NORMAL_BITS = np.int32(1 << 23)
LARGE = np.float32(2.0**60)
LARGEST_MULTIPLIER = np.float32(2.0**100)
ONE, UNIT = np.float32(1), np.int32(254)
"""The latter: twice the bias of float32. Exponent fields of a power of two and its inverse add up to it."""
GRID = np.int32(277)
"""Exponent field of a power of two whose last bit is a format's quantum, less that of a number's, and `scale_exponent`."""
KINDS = ("any", "each", "scaled")
"""Flags OR-ed together; a byte for each element; no codes, but float32 numbers that are scaled exactly as the rule has it."""
FLAG_BITS = 8
GROUP = 64
"""Blocks whose scales are found together, in vectors."""


@cache
def largest_of(length):
    """largest(numbers, start): the largest of `length` float32 numbers without their signs, as bits."""

    def largest(numbers, start):
        return (numbers[start : start + length] & MAGNITUDE).max()

    @lowered(largest)
    def define(context, numbers, start):
        def codegen(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            where = context.cast(builder, arguments[1], signature.args[1], types.int64)
            bits = (load(builder, data, where, ir.IntType(32), length) & int(MAGNITUDE)).value
            reduction = ir.FunctionType(ir.IntType(32), [bits.type])
            name = f"llvm.vector.reduce.smax.v{length}i32"
            return builder.call(cgutils.get_or_insert_function(builder.module, reduction, name), [bits])

        return types.int32(numbers, start), codegen

    return jit.referable(largest, length)


@kernel
def element(bits, scaled, target):
    """(code, flags) of a number whose magnitude, scaled, has the bits `scaled`: those of zero or of a normal number."""
    exponent = cut(max(scaled, lowest_bits(target)) & INFINITE_BITS, NONE)
    grid = cut(exponent + shift_left(cut(GRID - scale_exponent(target), NONE), 23), NONE)
    rounded = bits_float(scaled, ZERO) + bits_float(grid, ZERO)  # the last bit of such a sum is an element's
    base = shift_right(cut(exponent - lowest_bits(target), NONE), 23 - target.mantissa_bits)
    magnitude = cut(base + cut(float_bits(rounded) - grid, NONE), NONE)
    over = magnitude > target.largest
    inexact = rounded - bits_float(grid, ZERO) != bits_float(scaled, ZERO)
    flags = (TINY_INEXACT if scaled < float_bits(target.tiny_positive) else INEXACT) if inexact else NONE
    code = cut(magnitude | target.sign, NONE) if bits < NONE else magnitude
    code = (target.overflow_negative if bits < NONE else target.overflow_positive) if over else code
    return code, OVERFLOWED if over else flags


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


@kernel
def next_place(first, column, places, length):
    """(where the next block begins, which of those side by side it is)."""
    column += 1
    if column < places[2]:
        return first + length, column
    return first + length + places[3] * places[4] - places[2] * length, column - column


@cache
def multiplied(length, kind):
    """multiplied(numbers, codes, flags, first, places, multiplier, target): a block's elements -> flags OR-ed; not 0 where a scaled number may be
    inexact."""
    each, scales_only = kind == "each", kind == "scaled"

    @kernel
    def multiplied_block(numbers, codes, flags, first, places, multiplier, target):
        seen, pitch = NONE, places[4]
        for row in range(places[3]):
            start = np.uint64(first + row * pitch)  # unsigned: no index is looked at for its sign
            for k in range(length):
                bits = numbers[start + np.uint64(k)]
                magnitude = cut(bits & MAGNITUDE, NONE)
                product_bits = float_bits(bits_float(magnitude, ZERO) * multiplier)
                if scales_only:
                    scaled = product_bits if magnitude != NONE else NONE
                    codes[start + np.uint64(k)] = signed(bits, scaled)
                    seen = cut(seen | (NONE if is_exact(magnitude, scaled) else INEXACT), NONE)
                else:
                    scaled = max(product_bits, SMALLEST_BITS) if magnitude != NONE else NONE
                    made, here = element(bits, scaled, target)
                    codes[start + np.uint64(k)] = made
                    if each:
                        flags[start + np.uint64(k)] = here
                    seen = cut(seen | here, NONE)
        return seen

    return jit.referable(multiplied_block, length, kind)


@kernel
def told(largest, seen):
    """The bits of the largest magnitude of all blocks above those of flags OR-ed, as many as `FLAG_BITS`."""
    return np.int64(largest) << np.int64(FLAG_BITS) | np.int64(seen)


@cache
def powers(length, kind):
    """loop(numbers, codes, scales, left, flags, places, settings, reciprocal, integers, floats) -> what `told` makes, of powers of two.

    `settings`: what carries into the exponent of amax (or of amax * reciprocal, if the next is 1), what is taken off that
    exponent, the bits from which on the sum counts as infinite, the least amax, and the code for zeros (-1: left).
    """
    largest_in, multiplied_block, scales_only = largest_in_block(length), multiplied(length, kind), kind == "scaled"

    def powers_loop(numbers, codes, scales, left, flags, places, settings, reciprocal, integers, floats):
        target, seen, most = target_of(integers, floats), NONE, NONE
        carry, divides, offset = settings[0], settings[1] != NONE, settings[2]
        infinite, least, zero_code = settings[3], settings[4], settings[5]
        first, column = place_of(places[0], places, length), places[0] % places[2]
        for block in range(places[0], places[1]):
            largest = largest_in(numbers, first, places)
            amax, most = max(largest, least), max(largest, most)
            taken = float_bits(bits_float(amax, ZERO) * reciprocal) if divides else amax
            taken = cut(taken + carry, NONE)
            code = cut(shift_right(taken, 23) - offset, NONE)
            ordinary = (code >= LOWEST_POWER) & (code <= HIGHEST_POWER) & (taken >= NONE) & (taken < infinite)
            zeros = (amax == NONE) & (zero_code >= NONE)
            code = zero_code if amax == NONE else code
            found = INEXACT
            if (ordinary | zeros) & (largest < INFINITE_BITS):
                scales[block] = code
                multiplier = bits_float(shift_left(cut(UNIT - code, NONE), 23), ZERO)
                found = multiplied_block(numbers, codes, flags, first, places, multiplier, target)
                seen |= found
            else:
                left[block] = 1
            if scales_only and found != NONE:
                left[block] = 1
            first, column = next_place(first, column, places, length)
        return told(most, seen)

    return jit.compiled(powers_loop)


@cache
def inverses(length, kind):
    """loop(numbers, codes, scales, left, flags, places, reals, kept, integers, floats) -> what `told` makes, of scales whose inverses multiply.

    `reals`: an inverse is the first number / amax, which is at least the second; or it is the third, if that is not 0. `kept`: of the
    quotient's bits. It is 1 where amax is 0. Blocks are left that are not finite, or where a subnormal float32 could become more than a tiny
    element.
    """
    largest_in, multiplied_block = largest_in_block(length), multiplied(length, kind)

    def inverses_loop(numbers, codes, scales, left, flags, places, reals, kept, integers, floats):
        target, seen, most = target_of(integers, floats), NONE, NONE
        first, column = place_of(places[0], places, length), places[0] % places[2]
        for block in range(places[0], places[1]):
            largest = largest_in(numbers, first, places)
            amax, most = max(bits_float(largest, ZERO), reals[1]), max(largest, most)
            found = cut(float_bits(reals[0] / amax if amax > ZERO else ONE) & kept, NONE)
            multiplier = bits_float(found, ZERO) if reals[2] == ZERO else reals[2]
            product = bits_float(largest, ZERO) * multiplier
            ordinary = (largest < INFINITE_BITS) & (float_bits(multiplier) >= NORMAL_BITS) & (product < LARGE)
            if ordinary & (multiplier < LARGEST_MULTIPLIER):
                scales[block] = ONE / multiplier
                seen |= multiplied_block(numbers, codes, flags, first, places, multiplier, target)
            else:
                left[block] = 1
            first, column = next_place(first, column, places, length)
        return told(most, seen)

    return jit.compiled(inverses_loop)


@cache
def tables(length, kind):
    """loop(numbers, codes, scales, left, flags, places, reals, zero_code, multipliers, scale numbers, element numbers) -> what `told`
    makes.

    Of scales that are no powers of two. `reals`: a factor and two divisors, of which the scale is amax * factor or, if that is
    negative, amax / one / other; its least and its largest value; the least amax. `multipliers` has what numbers are multiplied by
    for each code of a scale; none for scales in float32, whose inverses these are.
    """
    largest_in, multiplied_block, scales_only = largest_in_block(length), multiplied(length, kind), kind == "scaled"

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
        target, of_scales = target_of(integers, floats), target_of(scale_integers, scale_floats)
        factor, one, other, low, high, least = reals[0], reals[1], reals[2], reals[3], reals[4], reals[5]
        seen, most, single, begins = NONE, NONE, multipliers.size == 0, np.empty(GROUP, np.int64)
        largest, chosen = np.empty(GROUP, np.int32), np.empty(GROUP, np.int32)
        first, column = place_of(places[0], places, length), places[0] % places[2]
        for start in range(places[0], places[1], GROUP):
            count = min(GROUP, places[1] - start)
            for i in range(count):
                begins[i], largest[i] = first, largest_in(numbers, first, places)
                most = max(largest[i], most)
                first, column = next_place(first, column, places, length)
            for i in range(count):
                amax = max(bits_float(largest[i], ZERO), least)
                wanted = amax * factor if factor >= ZERO else amax / one / other
                bits = float_bits(min(max(wanted, low), high))
                code = bits if single else narrow_convert(bits, bits, bits, of_scales)[0]
                chosen[i] = zero_code if (largest[i] == NONE) & (least == ZERO) else code
            for i in range(count):
                block, code = start + i, chosen[i]
                multiplier = ONE / bits_float(code, ZERO) if single else multipliers[max(code, NONE)]
                product = max(bits_float(largest[i], ZERO), least) * multiplier
                ordinary = (largest[i] >= TINY_BITS) & (largest[i] < INFINITE_BITS)
                ordinary = ordinary & (multiplier < LARGEST_MULTIPLIER) & (product < LARGE)
                found = INEXACT
                if ordinary | ((largest[i] == NONE) & (code >= NONE)):
                    scales[block] = code
                    found = multiplied_block(numbers, codes, flags, begins[i], places, multiplier, target)
                    seen |= found
                else:
                    left[block] = 1
                if scales_only and found != NONE:
                    left[block] = 1
        return told(most, seen)

    return jit.compiled(tables_loop)


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
