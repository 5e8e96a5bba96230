"""Turns of scalars that draw: by 16 random bits for each rounding, and again with all of them where these leave one open.

The second by the plain functions on the wide carrier, for tiles and lines, too.
No tile, line or tree that draws serves a format without subnormals.
"""

from functools import cache

import numpy as np

from .accumulate import PRODUCT, RUNNING
from .arith import add, two_sum
from .carrier import decode
from .jit import bits_float, float_bits, kernel, referable
from .prng import dot_low, unit_fraction
from .rounding import round_drawn_unusual
from .sticky import settling

settled_add = settling("add")
OPEN = 1 << 8
"""Beside the flags of a rounding: its first 16 random bits do not settle it."""


@kernel
def random_of(noise, site, output, step, width, key, stream):
    """All random bits of a rounding, whose first 16 are in `noise`."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    random = unit_fraction(noise, 16)
    if width > 16:
        random += unit_fraction(dot_low(output, site, step, key, stream), 52)
    return np.floor(random * scale) / scale


@kernel
def quickly(s, noise, target, largest):
    """(s rounded by its first 16 random bits, flags, OPEN if that does not settle it), the last bit of s being sticky.

    They are added to those that rounding takes away, and these cut: `rounding.drawn` for numbers that are neither tiny nor overflow.
    """
    bits, taken = float_bits(s), target.fraction_bits - target.mantissa_bits
    below = (np.int64(1) << taken) - np.int64(1)
    moved = bits + (np.int64(noise) << (taken - np.int64(16)))
    z = bits_float(moved & ~below, 1.0)
    settled = moved & below < below - (below >> np.int64(16))
    ordinary = settled & (abs(s) >= target.smallest_normal) & (abs(z) <= largest)
    return z, ((bits & below) != 0) | (0 if ordinary | (s == 0.0) else OPEN)


@kernel
def product_again(product, noise, output, step, source, target, width, key, stream):
    """(value, flags) of a product rounded with all of its random bits."""
    random = random_of(noise, PRODUCT, output, step, width, key, stream)
    code, raised = round_drawn_unusual(product, random, target)
    return decode(code, source), raised


@kernel
def sum_again(x, y, noise, output, step, source, target, width, key, stream):
    """The same of a sum."""
    random = random_of(noise, RUNNING, output, step, width, key, stream)
    s, _ = add(x, y, y, target)
    code, raised = round_drawn_unusual(s, settled_add(x, y, y, s, 0.0, random, target), target)
    return decode(code, source), raised


@kernel
def as_it_is(x, target):
    """A number that a stage reads."""
    return x


@kernel
def flushed(x, target):
    """The same of a stage that takes subnormals as zeros, with their signs."""
    return bits_float(float_bits(x) & np.int64(-1 << 63), 1.0) if abs(x) < target.smallest_normal else x


def reading(daz):
    """How a stage reads a number."""
    return flushed if daz else as_it_is


@kernel
def never(x, y, target):
    """Whether a stage reads one of two numbers as zero that is none: not where it reads subnormals."""
    return False


@kernel
def has_subnormal(x, y, target):
    """The same of a stage that takes them as zeros."""
    least = target.smallest_normal
    return ((abs(x) < least) & (x != 0.0)) | ((abs(y) < least) & (y != 0.0))


@kernel
def whole(x, y, noises, output, step, source, target, width, key, stream):
    """A product as it is; it raises nothing."""
    return x * y, 0


@kernel
def rounded(x, y, noises, output, step, source, target, width, key, stream):
    """A product rounded."""
    return product_again(x * y, noises[1], output, step, source, target, width, key, stream)


MULTIPLIED = {"fma": whole, "mul_add": rounded}
MULTIPLIED |= {"single_fma_of_narrow": whole, "single_fma": whole, "single_mul_add": rounded}
"""What becomes of a product before it meets the sum: it is fused, the wide carrier holding it, or rounded."""
SITES = {operation: (RUNNING,) if kept is whole else (RUNNING, PRODUCT) for operation, kept in MULTIPLIED.items()}
"""Stages that draw, in the order of their noise."""


@cache
def again(operation, daz):
    """kernel(x, y, z, noises, output, step, source, target, width, key, stream) -> (z + x * y, flags), z being read as `daz` says.

    `source` reads subnormals as they are.
    """
    multiplied, read = MULTIPLIED[operation], reading(daz)
    read_product = as_it_is if multiplied is whole else read

    @kernel
    def turn_again(x, y, z, noises, output, step, source, target, width, key, stream):
        product, seen = multiplied(x, y, noises, output, step, source, target, width, key, stream)
        z, product = read(z, target), read_product(product, target)
        total, raised = sum_again(z, product, noises[0], output, step, source, target, width, key, stream)
        return total, seen | raised

    return referable(turn_again, operation, daz)


@cache
def carrying(operation, daz):
    """The same with an error of the sum, e after z, that it hands on."""
    turn = again(operation, daz)

    @kernel
    def turn_carrying(x, y, z, e, noises, output, step, source, target, width, key, stream):
        total, raised = turn(x, y, z, noises, output, step, source, target, width, key, stream)
        return total, e, raised

    return referable(turn_carrying, operation, daz)


@cache
def quick_turn(operation, daz):
    """kernel(x, y, z, e, noises, output, step, largest, target, width, key, stream) -> (z + x * y, e, flags), by 16 random bits each.

    OPEN among the flags tells that these do not settle it.
    """
    fused, refuses = MULTIPLIED[operation] is whole, has_subnormal if daz else never

    @kernel
    def quickly_turned(x, y, z, e, noises, output, step, largest, target, width, key, stream):
        product, raised = (x * y, 0) if fused else quickly(x * y, noises[1], target, largest)
        total, seen = quickly(two_sum(z, product, target), noises[0], target, largest)
        return total, e, raised | seen | (OPEN if refuses(z, 0.0, target) else 0)

    return referable(quickly_turned, operation, daz)
