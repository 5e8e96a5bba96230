"""Outputs of tiles on their way out: numbers to codes."""

import numpy as np

from . import jit
from .fast import half_code
from .jit import float_bits, kernel


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
