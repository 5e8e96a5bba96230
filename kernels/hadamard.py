"""Runs of numbers times diag(signs) * H / sqrt(n) as a tensor core sums them, by butterflies of integers.

An aligned sum cuts each term toward zero to a grid that the largest one sets, and is exact from there on. Here every entry of the
matrix is a power of two up to its sign, so all sums of a run have the same terms but for signs, and the same grid: terms are
cut once and added as integers. Runs with numbers at the ends of the range are left to the plain way, and marked.
"""

from functools import cache

import numpy as np

from . import jit
from .fast import MAGNITUDE, NONE
from .jit import cut, float_bits, shift_left, shift_right
from .quantization import largest_of

LANES = 16
"""Runs that go together."""
LOWEST, HIGHEST = np.int32(64), np.int32(240)
"""Exponent fields of the largest number of a run, so that no sum leaves the normal range."""
FRACTION = np.int32(0x007FFFFF)
LEADING = np.int32(1 << 23)
FARTHEST = np.int32(31)
ONE, SIGN = np.int32(1), np.int32(-(1 << 31))


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
        mask = cut((np.int64(1) << dropped) - 1, NONE)
        half, rounds = shift_right(mask, 1), ONE if dropped else NONE
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
                    whole = cut(abs(terms[i, j]), NONE)
                    nearest = np.float32(whole)
                    over = np.int32(nearest) > whole
                    kept = cut(float_bits(nearest) - (ONE if over else NONE), NONE)
                    odd = cut(shift_right(kept, dropped) & rounds, NONE)
                    rounded = cut(cut(cut(kept + half, NONE) + odd, NONE) & ~mask, NONE)
                    lost[j] |= NONE if (np.int32(nearest) == whole) & (rounded == kept) else ONE
                    field = shift_left(cut(most[j] - cut_bits - root - np.int32(150), NONE), 23)
                    made = cut(rounded + field, NONE) if whole != NONE else NONE
                    held[i, j] = cut(made | SIGN, NONE) if terms[i, j] < NONE else made
            for j in range(count):
                for i in range(n):
                    results[(start + j) * n + i] = held[i, j]
                seen |= lost[j] if left[start + j] == 0 else NONE
        return seen

    return jit.compiled(hadamard_loop)
