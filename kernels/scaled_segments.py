"""Sums of segments, maybe times their scales, added up in float32 to nearest: elementwise what `dot_steps.scaled_addition` does, in one pass.

The loop stops where something is not ordinary: a number is subnormal, infinite or NaN, or a product or sum other than an exact
zero is not above the smallest normal number and finite. So no result hangs on what a host does with subnormals.
"""

import numpy as np
from numba import types

from . import jit
from .fast import INEXACT, INFINITE_BITS, MAGNITUDE, NONE, SMALLEST_BITS, ZERO, has_feature, odd_sum
from .jit import bits_float, cut, float_bits, kernel, lowered

ONE = np.float32(1)


def fused(x, y, z):
    """x * y + z, rounded to nearest."""
    return np.float32(odd_sum(np.float64(x) * np.float64(y), np.float64(z)))


if has_feature("fma"):

    @lowered(fused)
    def _fused(context, x, y, z):
        return types.float32(x, y, z), lambda context, builder, signature, given: builder.fma(*given)

else:
    fused = kernel(fused)


@kernel
def product_of(x, y):
    """(x * y rounded to nearest, whether anything is lost)."""
    exact = np.float64(x) * np.float64(y)
    product = np.float32(exact)
    return product, exact != np.float64(product)


@kernel
def fused_of(x, y, z):
    """The same of x * y + z. Of what is found less the one and less the other, what is less the larger is exact."""
    near, product, addend = fused(x, y, z), np.float64(x) * np.float64(y), np.float64(z)
    found = np.float64(near)
    return near, (found - addend != product) | (found - product != addend)


@kernel
def not_ordinary(bits, lost):
    """Whether a result is beyond the normal numbers, or may have been rounded there."""
    magnitude = cut(bits & MAGNITUDE, NONE)
    return ((magnitude <= SMALLEST_BITS) & ((magnitude != NONE) | lost)) | (magnitude >= INFINITE_BITS)


@kernel
def unusual(bits):
    """Whether a float32 is subnormal, infinite or NaN."""
    magnitude = cut(bits & MAGNITUDE, NONE)
    return ((magnitude < SMALLEST_BITS) & (magnitude != NONE)) | (magnitude >= INFINITE_BITS)


@jit.once
def added(order):
    """loop(first, last, sums, a, b, total, flags) -> whether all of rows first ... last - 1 is ordinary.

    Bits of float32: sums (segments, rows, columns), scales a (segments, rows) and b (segments, columns), the total so far, (rows,
    columns), which takes the result, and a flag byte for each. `order` as `Reduction.scaling` has it, of a product that is fused with
    the addition; empty: without scales, of which none is read.
    """
    sums_first, by_b, scaled = order != "scales_fused", order == "second_fused", bool(order)

    def scaled_segments_loop(first, last, sums, a, b, total, flags):
        stops = NONE
        for row in range(first, last):
            totals, raises = total[row], flags[row]
            for j in range(totals.size):
                stops = cut(stops | (INEXACT if unusual(totals[j]) else NONE), NONE)
            for segment in range(sums.shape[0]):
                of_row = sums[segment, row]
                columns, of_a = (b[segment], a[segment, row]) if scaled else (of_row, NONE)
                x = bits_float(of_a, ZERO)
                stops = cut(stops | (INEXACT if unusual(of_a) else NONE), NONE)
                for j in range(totals.size):
                    wild = unusual(of_row[j]) | unusual(columns[j])
                    s, y = bits_float(of_row[j], ZERO), bits_float(columns[j], ZERO)
                    if not scaled:
                        product, cut_off, other = s, False, ONE
                    elif sums_first:
                        product, cut_off = product_of(s, y if by_b else x)
                        other = x if by_b else y
                    else:
                        product, cut_off = product_of(x, y)
                        other = s
                    found, lost = fused_of(product, other, bits_float(totals[j], ZERO))
                    wild = wild | not_ordinary(float_bits(product), cut_off) | not_ordinary(float_bits(found), lost)
                    stops = cut(stops | (INEXACT if wild else NONE), NONE)
                    totals[j] = float_bits(found)
                    raises[j] = raises[j] | np.uint8(lost | cut_off)
        return stops == NONE

    return jit.compiled(scaled_segments_loop)
