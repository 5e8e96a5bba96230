"""Blocks quantised twice, their largest element at 6 and at 4, and the better one taken: TransformerEngine's choice, in one pass.

Errors are float32 sums in the order of its reference: along a row one after the other, rows in a tree. They see subnormal
numbers, so a host that flushes those has every block left to the plain way, and marked; so has a block that `quantization`
would leave.
"""

from functools import cache

import numpy as np

from . import jit
from .fast import (
    INFINITE_BITS,
    MAGNITUDE,
    NONE,
    ZERO,
    lowest_bits,
    narrow_convert,
    narrow_finite,
    narrow_scaled,
    scale_exponent,
)
from .jit import all_of, bits_float, cut, float_bits, kernel, scratch, shift_left, shift_right
from .quantization import LARGE, LARGEST_MULTIPLIER, TINY_BITS, UNIT, largest_in_block, place_of
from .rounding import target_of

WAYS, SMALLEST = 2, np.int32(1)
STRETCHES = np.float32(1.0), np.float32(1.5)
"""What 6 and 4 make of a scale."""
CODE_BITS, CODE = np.int32(8), np.int32(0xFF)
"""Where flags begin beside a code."""
LINES = 64
TOGETHER = 8
"""Rows of blocks that go together, each with a sum of its own."""


@kernel
def element_read(bits, scaled, target):
    """(code, flags, magnitude that the code stands for unless that is too large) of a number, as `quantization.element`."""
    y, base = narrow_scaled(scaled, target)
    n = np.rint(y)
    code, flags = narrow_finite(bits, y, n, base, scaled < float_bits(target.tiny_positive), target)
    exponent = shift_right(max(scaled, lowest_bits(target)), 23)
    quantum = shift_left(cut(UNIT - scale_exponent(target) + exponent, NONE), 23)
    return code, flags, n * bits_float(quantum, ZERO)


@cache
def four_over_six(length, squares, each):
    """loop(numbers, codes, scales, left, flags, places, reals, zero_code, multipliers, values, scale numbers, element numbers) -> flags OR-ed.

    `each`: flags are of each number, else OR-ed together alone. `reals`: the largest element, the tensor's encoding scale, the largest
    scale, the tensor's amax, what reading divides by, and two numbers whose product is subnormal. `multipliers` and `values` are those
    of every code of a scale.
    """
    largest_in = largest_in_block(length)

    def four_over_six_loop(
        numbers,
        codes,
        scales,
        left,
        flags,
        places,
        reals,
        zero_code,
        multipliers,
        values,
        scale_integers,
        scale_floats,
        integers,
        floats,
    ):
        target, of_scales = target_of(integers, floats), target_of(scale_integers, scale_floats)
        most, encode, high, amax, divisor = reals[0], reals[1], reals[2], reals[3], reals[4]
        subnormal = reals[5] * reals[6]
        flushes = (float_bits(subnormal) == NONE) | (subnormal + subnormal == ZERO)
        height, pitch = places[3], places[4]
        together = LINES // height
        made, lost = np.zeros(WAYS * LINES * length, np.int32), np.zeros(LINES * length, np.float32)
        sums, seen = scratch(LINES, np.float32), np.zeros(length, np.int32)
        errors, chosen = np.empty((WAYS, LINES), np.float32), np.empty((WAYS, LINES), np.int32)
        largest, ordinary = np.empty(LINES, np.int32), np.empty(LINES, np.uint8)
        for begun in range(places[0], places[1], together):
            count = min(together, places[1] - begun)
            for i in range(count):
                largest[i] = largest_in(numbers, place_of(begun + i, places, length), places)
            for way in range(WAYS):
                stretch, codes_of_way = STRETCHES[way], chosen[way]
                for i in range(count):
                    bits = float_bits(min(bits_float(largest[i], ZERO) / most * encode * stretch, high))
                    code, _ = narrow_convert(bits, bits, bits, of_scales)
                    codes_of_way[i] = zero_code if largest[i] == NONE else code
            for i in range(count):
                size = largest[i]
                fine = ((size >= TINY_BITS) & (size < INFINITE_BITS)) | ((size == NONE) & (zero_code >= NONE))
                for way in range(WAYS):
                    multiplier = multipliers[max(chosen[way, i], NONE)]
                    fits = (multiplier < LARGEST_MULTIPLIER) & (bits_float(size, ZERO) * multiplier < LARGE)
                    fine &= (size == NONE) | fits
                ordinary[i] = fine & (not flushes)
            for i in range(count):
                left[begun + i] = 1 - ordinary[i]
            for way in range(WAYS):
                for i in range(count):
                    if ordinary[i] == 0:
                        continue
                    multiplier, value = multipliers[chosen[way, i]], values[chosen[way, i]]
                    first = place_of(begun + i, places, length)
                    for row in range(height):
                        start, line = first + row * pitch, (i * height + row) * length
                        there = way * LINES * length + line
                        these, apart = numbers[start : start + length], lost[line : line + length]
                        found = made[there : there + length]
                        for k in range(length):
                            bits = these[k]
                            magnitude = cut(bits & MAGNITUDE, NONE)
                            scaled = max(float_bits(bits_float(magnitude, ZERO) * multiplier), SMALLEST)
                            code, here, read = element_read(bits, scaled if magnitude != NONE else NONE, target)
                            found[k] = cut(shift_left(here, CODE_BITS) | code, NONE)
                            error = abs(min(read, most) * value * amax / divisor - bits_float(magnitude, ZERO))
                            apart[k] = error * error if squares else error
                for line in range(0, LINES, TOGETHER):
                    for n in range(TOGETHER):
                        sums[line + n] = ZERO
                    for k in range(length):
                        for n in range(TOGETHER):
                            sums[line + n] += lost[(line + n) * length + k]
                for i in range(count):
                    rows, line = height, i * height
                    while rows > 1:
                        rows //= 2
                        for row in range(rows):
                            sums[line + row] += sums[line + rows + row]
                    errors[way, i] = sums[line]
            for i in range(count):
                if ordinary[i] == 0:
                    continue
                way = 1 if errors[1, i] < errors[0, i] else 0
                scales[begun + i] = chosen[way, i]
                first = place_of(begun + i, places, length)
                for row in range(height):
                    start = first + row * pitch
                    there = (way * LINES + i * height + row) * length
                    found = made[there : there + length]
                    results, noted = codes[start : start + length], flags[start : start + length]
                    for k in range(length):
                        results[k] = found[k] & CODE
                        if each:
                            noted[k] = shift_right(found[k], CODE_BITS)
                        else:
                            seen[k] |= found[k]
        return shift_right(all_of(seen), CODE_BITS)

    return jit.compiled(four_over_six_loop)
