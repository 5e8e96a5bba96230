"""Roundings that 16 random bits have left open, done again with all of them: by the plain functions on the wide carrier."""

import numpy as np

from .accumulate import PRODUCT, RUNNING
from .arith import add, fma
from .carrier import decode
from .jit import bits_float, kernel
from .prng import dot_low, unit_fraction
from .rounding import round_drawn_unusual
from .sticky import settling

settled_fma, settled_add, settled_mul = settling("fma"), settling("add"), settling("mul")


@kernel
def random_of(noise, site, output, step, width, key, stream):
    """All random bits of a rounding, whose first 16 are in `noise`."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    random = unit_fraction(noise, 16)
    if width > 16:
        random += unit_fraction(dot_low(output, site, step, key, stream), 52)
    return np.floor(random * scale) / scale


@kernel
def fma_again(x, y, z, noises, output, step, source, target, width, key, stream):
    """A fused multiply-add rounded with all of its random bits."""
    random = random_of(noises[0], RUNNING, output, step, width, key, stream)
    s, _ = fma(x, y, z, target)
    code, raised = round_drawn_unusual(s, settled_fma(x, y, z, s, 0.0, random, target), target)
    return decode(code, source), raised


@kernel
def product_again(x, y, noises, output, step, source, target, width, key, stream):
    """A product rounded alike."""
    random = random_of(noises[1], PRODUCT, output, step, width, key, stream)
    code, raised = round_drawn_unusual(x * y, random, target)
    return decode(code, source), raised


@kernel
def sum_again(product, z, noises, output, step, source, target, width, key, stream):
    """A sum rounded alike."""
    random = random_of(noises[0], RUNNING, output, step, width, key, stream)
    s, _ = add(z, product, z, target)
    code, raised = round_drawn_unusual(s, settled_add(z, product, z, s, 0.0, random, target), target)
    return decode(code, source), raised


@kernel
def mul_add_again(x, y, z, noises, output, step, source, target, width, key, stream):
    """A product and a sum, alike."""
    product, seen = product_again(x, y, noises, output, step, source, target, width, key, stream)
    total, raised = sum_again(product, z, noises, output, step, source, target, width, key, stream)
    return total, seen | raised


AGAIN = {"fma": fma_again, "mul_add": mul_add_again}
SITES = {"fma": (RUNNING,), "mul_add": (RUNNING, PRODUCT)}
"""Stages that draw, in the order of their noise."""
