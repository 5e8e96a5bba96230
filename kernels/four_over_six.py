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
        size = length * height
        made, raised = np.empty(WAYS * size, np.uint8), np.empty(WAYS * size, np.uint8)
        lost, sums = np.empty(length, np.float32), np.empty(height, np.float32)
        errors, chosen = np.empty(WAYS, np.float32), np.empty(WAYS, np.int32)
        for block in range(places[0], places[1]):
            first = place_of(block, places, length)
            largest = largest_in(numbers, first, places)
            ordinary = ((largest >= TINY_BITS) & (largest < INFINITE_BITS)) | ((largest == NONE) & (zero_code >= NONE))
            ordinary &= not flushes
            base = bits_float(largest, ZERO) / most * encode
            for way in range(WAYS):
                wanted = min(base if way == 0 else base * STRETCH, high)
                bits = float_bits(wanted)
                code, _ = narrow_convert(bits, bits, bits, scale_limits)
                code = zero_code if largest == NONE else code
                chosen[way] = code
                multiplier = multipliers[max(code, NONE)]
                product = bits_float(largest, ZERO) * multiplier
                ordinary &= (largest == NONE) | ((multiplier < LARGEST_MULTIPLIER) & (product < LARGE))
            if not ordinary:
                left[block] = 1
                continue
            for way in range(WAYS):
                code = chosen[way]
                multiplier, value = multipliers[code], values[code]
                for row in range(height):
                    start, there = first + row * pitch, way * size + row * length
                    these, found, noted = (
                        numbers[start : start + length],
                        made[there : there + length],
                        raised[there : there + length],
                    )
                    for i in range(length):
                        bits = these[i]
                        magnitude = cut(bits & MAGNITUDE, NONE)
                        scaled = max(float_bits(bits_float(magnitude, ZERO) * multiplier), SMALLEST)
                        code, here = element(bits, scaled if magnitude != NONE else NONE, limits)
                        found[i] = code
                        noted[i] = here
                    for i in range(length):
                        lost[i] = elements[found[i]]
                    for i in range(length):
                        apart = lost[i] * value * amax / divisor - bits_float(these[i], ZERO)
                        lost[i] = apart * apart if squares else abs(apart)
                    total = ZERO
                    for i in range(length):
                        total += lost[i]
                    sums[row] = total
                rows = height
                while rows > 1:
                    rows //= 2
                    for row in range(rows):
                        sums[row] += sums[rows + row]
                errors[way] = sums[0]
            way = 1 if errors[1] < errors[0] else 0
            scales[block] = chosen[way]
            for row in range(height):
                start, there = first + row * pitch, way * size + row * length
                copy_row(codes[start : start + length], made[there : there + length])
                copy_row(flags[start : start + length], raised[there : there + length])
        return NONE

    return jit.compiled(four_over_six_loop)
