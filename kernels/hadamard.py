"""Runs of numbers times diag(signs) * H / sqrt(n) as a tensor core sums them, by butterflies of integers.

An aligned sum cuts each term toward zero to a grid that the largest one sets, and is exact from there on. Here every entry of the
matrix is a power of two up to its sign, so all sums of a run have the same terms but for signs, and the same grid: terms are
cut once and added as integers. Runs with numbers at the ends of the range are left to the plain way, and marked.
"""

from functools import cache

import numpy as np

from . import jit
from .fast import MAGNITUDE, NONE
from .jit import bits_float, cut, float_bits, shift_left, shift_right
from .quantization import largest_of

LANES = 16
"""Runs that go together."""
LOWEST, HIGHEST = np.int32(64), np.int32(240)
"""Exponent fields of the largest number of a run, so that no sum leaves the normal range."""
FRACTION = np.int32(0x007FFFFF)
LEADING = np.int32(1 << 23)
FARTHEST = np.int32(31)
SINGLE = 29  # bits of float64's fraction that float32 lacks


@cache
def hadamard(n):
    """loop(numbers, results, left, signs, cut_bits, dropped, root) -> whether anything was rounded.

    `numbers` and `results` are bits of float32, run after run. `cut_bits`: how far below float32's last bit the grid of the largest
    number lies. `dropped`: bits of a float32 result that are rounded off to nearest even. `root`: the binary logarithm of sqrt(n).
    """
    largest_in = largest_of(n)

    def hadamard_loop(numbers, results, left, signs, cut_bits, dropped, root):
        terms, lost = np.zeros((n, LANES), np.int32), np.zeros(LANES, np.int32)
        most, held = np.zeros(LANES, np.int32), np.zeros((n, LANES), np.int32)
        runs, seen = left.size, NONE
        low = np.int64((1 << SINGLE) - 1)
        rest = np.int64(SINGLE + dropped)
        mask = (np.int64(1) << rest) - 1
        half = mask >> 1
        for start in range(0, runs, LANES):
            count = min(LANES, runs - start)
            for j in range(count):
                largest = largest_in(numbers, (start + j) * n)
                most[j] = shift_right(largest, 23)
                lost[j] = NONE
                if (largest != NONE) & ((most[j] < LOWEST) | (most[j] > HIGHEST)):
                    left[start + j] = 1
                for i in range(n):
                    held[i, j] = numbers[(start + j) * n + i]
            for j in range(count, LANES):  # as if runs of zeros followed: all lanes do the same
                most[j] = lost[j] = NONE
                for i in range(n):
                    held[i, j] = NONE
            for i in range(n):
                for j in range(LANES):
                    bits = held[i, j]
                    magnitude = cut(bits & MAGNITUDE, NONE)
                    exponent = shift_right(magnitude, 23)
                    whole = cut(magnitude & FRACTION, NONE) | (LEADING if exponent != NONE else NONE)
                    whole = shift_left(cut(whole, NONE), cut_bits)
                    far = min(cut(most[j] - exponent, NONE), FARTHEST)
                    kept = shift_right(whole, far)
                    lost[j] |= cut(shift_left(kept, far) ^ whole, NONE)
                    terms[i, j] = kept if (bits < NONE) == (signs[i] < NONE) else cut(NONE - kept, NONE)
            step = 1
            while step < n:
                for first in range(0, n, 2 * step):
                    for i in range(first, first + step):
                        for j in range(LANES):
                            one, other = terms[i, j], terms[i + step, j]
                            terms[i, j] = cut(one + other, NONE)
                            terms[i + step, j] = cut(one - other, NONE)
                step *= 2
            for i in range(n):
                for j in range(LANES):
                    bits = float_bits(np.float64(terms[i, j]))
                    kept = bits & ~low
                    odd = (kept >> rest) & 1
                    rounded = (kept + half + odd) & ~mask if dropped else kept
                    lost[j] |= NONE if rounded == bits else np.int32(1)
                    field = np.int64(most[j] - cut_bits - root - np.int32(150 - 1023))
                    value = bits_float(rounded, 1.0) * bits_float(field << 52, 1.0)
                    held[i, j] = float_bits(np.float32(value))
            for j in range(count):
                for i in range(n):
                    results[(start + j) * n + i] = held[i, j]
                seen |= lost[j] if left[start + j] == 0 else NONE
        return seen

    return jit.compiled(hadamard_loop)
