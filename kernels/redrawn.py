"""Roundings that 16 random bits have left open, done again with all of them: by the plain functions on the wide carrier.

No tile, line or tree that draws serves a format without subnormals or signed zeros.
"""

import numpy as np

from .accumulate import PRODUCT, RUNNING
from .arith import add
from .carrier import decode
from .jit import bits_float, kernel
from .prng import dot_low, unit_fraction
from .rounding import round_drawn
from .sticky import settling

settled_add = settling("add")


@kernel
def random_of(noise, site, output, step, width, key, stream):
    """All random bits of a rounding, whose first 16 are in `noise`."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    random = unit_fraction(noise, 16)
    if width > 16:
        random += unit_fraction(dot_low(output, site, step, key, stream), 52)
    return np.floor(random * scale) / scale


@kernel
def product_again(product, noise, output, step, source, target, width, key, stream):
    """(value, flags) of a product rounded with all of its random bits."""
    random = random_of(noise, PRODUCT, output, step, width, key, stream)
    code, raised = round_drawn(product, random, target)
    return decode(code, source), raised


@kernel
def sum_again(x, y, noise, output, step, source, target, width, key, stream):
    """The same of a sum."""
    random = random_of(noise, RUNNING, output, step, width, key, stream)
    s, _ = add(x, y, y, target)
    code, raised = round_drawn(s, settled_add(x, y, y, s, 0.0, random, target), target)
    return decode(code, source), raised


@kernel
def fma_again(x, y, z, noises, output, step, source, target, width, key, stream):
    """The same of a fused multiply-add: the wide carrier holds its product, which makes it a sum."""
    return sum_again(z, x * y, noises[0], output, step, source, target, width, key, stream)


@kernel
def mul_add_again(x, y, z, noises, output, step, source, target, width, key, stream):
    """The same of a product and a sum."""
    product, seen = product_again(x * y, noises[1], output, step, source, target, width, key, stream)
    total, raised = sum_again(z, product, noises[0], output, step, source, target, width, key, stream)
    return total, seen | raised


AGAIN = {"fma": fma_again, "mul_add": mul_add_again}
AGAIN |= {"single_fma_of_narrow": fma_again, "single_fma": fma_again, "single_mul_add": mul_add_again}
SITES = {operation: (RUNNING, PRODUCT) if again is mul_add_again else (RUNNING,) for operation, again in AGAIN.items()}
"""Stages that draw, in the order of their noise."""
