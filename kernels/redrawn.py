"""Roundings that 16 random bits have left open, done again with all of them: by the plain functions on the wide carrier."""

from functools import cache

import numpy as np

from . import jit
from .accumulate import PRODUCT, RUNNING
from .arith import add
from .carrier import decode
from .jit import bits_float, kernel
from .prng import dot_low, unit_fraction
from .rounding import round_drawn, round_drawn_unusual
from .sticky import settling

settled_add = settling("add")
ROUNDED = {False: round_drawn, True: round_drawn_unusual}


@kernel
def random_of(noise, site, output, step, width, key, stream):
    """All random bits of a rounding, whose first 16 are in `noise`."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    random = unit_fraction(noise, 16)
    if width > 16:
        random += unit_fraction(dot_low(output, site, step, key, stream), 52)
    return np.floor(random * scale) / scale


@cache
def product_again(unusual):
    """function(x, y, noises, output, step, source, target, width, key, stream): a product rounded with all of its random bits."""
    rounded = ROUNDED[unusual]

    @kernel
    def product(x, y, noises, output, step, source, target, width, key, stream):
        random = random_of(noises[1], PRODUCT, output, step, width, key, stream)
        code, raised = rounded(x * y, random, target)
        return decode(code, source), raised

    return jit.referable(product, "again", unusual)


@cache
def sum_again(unusual):
    """function(product, z, ...): a sum rounded alike."""
    rounded = ROUNDED[unusual]

    @kernel
    def total(product, z, noises, output, step, source, target, width, key, stream):
        random = random_of(noises[0], RUNNING, output, step, width, key, stream)
        s, _ = add(z, product, z, target)
        code, raised = rounded(s, settled_add(z, product, z, s, 0.0, random, target), target)
        return decode(code, source), raised

    return jit.referable(total, "again", unusual)


@cache
def fma_again(unusual):
    """function(x, y, z, ...): a fused multiply-add rounded alike. The wide carrier holds its product, which makes it a sum."""
    rounded_sum = sum_again(unusual)

    @kernel
    def fused(x, y, z, noises, output, step, source, target, width, key, stream):
        return rounded_sum(x * y, z, noises, output, step, source, target, width, key, stream)

    return jit.referable(fused, "again", unusual)


@cache
def mul_add_again(unusual):
    """function(x, y, z, ...): a product and a sum, alike."""
    rounded_product, rounded_sum = product_again(unusual), sum_again(unusual)

    @kernel
    def apart(x, y, z, noises, output, step, source, target, width, key, stream):
        product, seen = rounded_product(x, y, noises, output, step, source, target, width, key, stream)
        total, raised = rounded_sum(product, z, noises, output, step, source, target, width, key, stream)
        return total, seen | raised

    return jit.referable(apart, "again", unusual)


AGAIN = {"fma": fma_again, "mul_add": mul_add_again}
"""Operation -> what makes its function, for formats that are `unusual` or not."""
SITES = {"fma": (RUNNING,), "mul_add": (RUNNING, PRODUCT)}
"""Stages that draw, in the order of their noise."""
