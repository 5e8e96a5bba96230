"""Blocks quantised twice, their largest element at 6 and at 4, and the better one taken: TransformerEngine's choice, in one pass.

Errors are float32 sums in the order of its reference: along a row one after the other, rows in a tree. They see subnormal
numbers, so a host that flushes those has every block left to the plain way, and marked; so has a block that `quantization`
would leave.
"""

from functools import cache

import numpy as np

from . import jit
from .fast import INFINITE_BITS, MAGNITUDE, NONE, ZERO, limits_of, narrow_convert
from .jit import bits_float, copy_row, cut, float_bits
from .quantization import LARGE, LARGEST_MULTIPLIER, SMALLEST, TINY_BITS, element, largest_in_block, place_of

WAYS = 2
STRETCH = np.float32(1.5)
"""What 4 in place of 6 makes of a scale."""
LINES = 64
"""Rows of blocks that go together, each with a sum of its own."""


@cache
def four_over_six(length, squares):
    """loop(numbers, codes, scales, left, flags, places, reals, zero_code, multipliers, values, elements, scale numbers, element numbers).

    `reals`: the largest element, the tensor's encoding scale, the largest scale, the tensor's amax, what reading divides by, and
    two numbers whose product is subnormal. `multipliers` and `values` are those of every code of a scale, `elements` of an element.
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
        elements,
        scale_integers,
        scale_floats,
        integers,
        floats,
    ):
        limits, scale_limits = limits_of(integers, floats), limits_of(scale_integers, scale_floats)
        most, encode, high, amax, divisor = reals[0], reals[1], reals[2], reals[3], reals[4]
        subnormal = reals[5] * reals[6]
        flushes = (float_bits(subnormal) == NONE) | (subnormal + subnormal == ZERO)
        height, pitch = places[3], places[4]
        together = LINES // height
        made, raised = np.zeros(WAYS * LINES * length, np.uint8), np.zeros(WAYS * LINES * length, np.uint8)
        lost, sums = np.zeros(LINES * length, np.float32), np.empty(LINES, np.float32)
        errors, chosen = np.empty((WAYS, LINES), np.float32), np.empty((WAYS, LINES), np.int32)
        largest, ordinary = np.empty(LINES, np.int32), np.empty(LINES, np.uint8)
        for begun in range(places[0], places[1], together):
            count = min(together, places[1] - begun)
            for i in range(count):
                largest[i] = largest_in(numbers, place_of(begun + i, places, length), places)
            for i in range(count):
                size = largest[i]
                fine = ((size >= TINY_BITS) & (size < INFINITE_BITS)) | ((size == NONE) & (zero_code >= NONE))
                base = bits_float(size, ZERO) / most * encode
                for way in range(WAYS):
                    bits = float_bits(min(base if way == 0 else base * STRETCH, high))
                    code, _ = narrow_convert(bits, bits, bits, scale_limits)
                    code = zero_code if size == NONE else code
                    chosen[way, i] = code
                    multiplier = multipliers[max(code, NONE)]
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
                        found, noted = made[there : there + length], raised[there : there + length]
                        for k in range(length):
                            bits = these[k]
                            magnitude = cut(bits & MAGNITUDE, NONE)
                            scaled = max(float_bits(bits_float(magnitude, ZERO) * multiplier), SMALLEST)
                            code, here = element(bits, scaled if magnitude != NONE else NONE, limits)
                            found[k] = code
                            noted[k] = here
                        for k in range(length):
                            apart[k] = elements[found[k]]
                        for k in range(length):
                            error = apart[k] * value * amax / divisor - bits_float(these[k], ZERO)
                            apart[k] = error * error if squares else abs(error)
                for line in range(LINES):
                    sums[line] = ZERO
                for k in range(length):
                    for line in range(LINES):
                        sums[line] += lost[line * length + k]
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
                    copy_row(codes[start : start + length], made[there : there + length])
                    copy_row(flags[start : start + length], raised[there : there + length])
        return NONE

    return jit.compiled(four_over_six_loop)
