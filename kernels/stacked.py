"""Outputs of tiles on their way out: numbers to codes."""

import numpy as np

from . import jit
from .fast import half_code
from .jit import float_bits, kernel, row


@kernel
def half_written(x):
    """A half, by the CPU."""
    return half_code(np.float32(x))


@kernel
def bfloat16_written(x):
    """A bfloat16: the upper half of a float32."""
    return np.uint16((float_bits(np.float32(x)) >> 16) & 0xFFFF)


@kernel
def single_written(x):
    """A float32."""
    return np.float32(x)


WRITERS = {"half": half_written, "bfloat16": bfloat16_written, "number": single_written}


BOUNDED, INFINITE, UNKNOWN = range(3)
"""What numbers are at most: finite, infinite, or none at all."""


@jit.once
def coded(writing):
    """loop(values, codes) -> what they are at most: flat values to codes of a format that has them, as long as they are numbers."""
    written = WRITERS[writing]

    def coded_loop(values, codes):
        most = 0
        for n in range(values.size):
            x = values[n]
            codes[n] = written(x)
            most |= BOUNDED if abs(x) < np.inf else INFINITE if x == x else UNKNOWN
        return min(most, UNKNOWN)

    return jit.compiled(coded_loop)


@jit.once
def writing_out(writing):
    """loop(values, raised, codes, flags) -> whether all are finite: as `coded`, of outputs with flags, a part of other loops.

    values and raised are (products, rows, columns), filled up to whole tiles; codes and flags only of the outputs.
    """
    written = WRITERS[writing]

    def out_of_tiles_loop(values, raised, codes, flags):
        products, rows, columns = codes.shape
        unbounded = 0
        for product in range(products):
            for i in range(rows):
                sums, seen = values[product, i], raised[product, i]
                found, told = codes[product, i], flags[product, i]
                for j in range(columns):
                    found[j] = written(sums[j])
                    told[j] = seen[j]
                    unbounded |= 0 if abs(sums[j]) < np.inf else 1
        return unbounded == 0

    return jit.referable(row(out_of_tiles_loop), writing)


out_of_tiles = jit.outermost(writing_out)
