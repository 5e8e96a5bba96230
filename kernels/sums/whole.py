"""Roundings of one output by the plain functions, for generated code: compiled by Numba once, called by address."""

from functools import cache

import numpy as np
from numba import carray, types

from .. import jit
from ..accumulate import PRODUCT, RUNNING, STORE, draw_row
from ..arith import add
from ..carrier import SOURCE_FLOATS, SOURCE_INTEGERS, decode, source_of
from ..jit import bits_float, kernel, row
from ..prng import dot_low, unit_fraction
from ..rounding import TARGET_FLOATS, TARGET_INTEGERS, round_drawn_unusual, target_of
from ..sticky import settling

NUMBERS = types.CPointer(types.int64), types.CPointer(types.float64)
ARGUMENTS = (
    types.int64, types.float64, types.float64, types.uint32, types.uint64, types.int64, *NUMBERS, types.int64, types.uint64, types.uint64,
    types.CPointer(types.float64),
)  # fmt: skip


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
    code, raised = round_drawn_unusual(product, random, target)
    return decode(code, source), raised


@kernel
def sum_again(x, y, noise, output, step, source, target, width, key, stream):
    """The same of a sum."""
    random = random_of(noise, RUNNING, output, step, width, key, stream)
    s, _ = add(x, y, y, target)
    code, raised = round_drawn_unusual(s, settled_add(x, y, y, s, 0.0, random, target), target)
    return decode(code, source), raised


def _rounding(site, x, y, noise, output, number, integers, floats, width, key, stream, total):
    """Flags of x + y at the site of sums, of x * y at the other, rounded to `total` with all random bits, the first 16 of which are in `noise`."""
    ints = carray(integers, (SOURCE_INTEGERS + TARGET_INTEGERS,))
    reals = carray(floats, (SOURCE_FLOATS + TARGET_FLOATS,))
    source, target = source_of(ints, reals), target_of(ints, reals)
    if site == RUNNING:
        found, raised = sum_again(x, y, noise, output, number, source, target, width, key, stream)
    else:
        found, raised = product_again(x * y, noise, output, number, source, target, width, key, stream)
    carray(total, (1,))[0] = found
    return raised


@row
def draw_stores(noise, corner, row_stride, column_stride, done, count, lanes, rows, key, stream, width):
    """Random numbers of the stores of a tile of so many rows, from turn `done` on."""
    for turn in range(count):
        for row_ in range(rows):
            at = (turn * rows + row_) * lanes
            start = corner + row_ * row_stride
            draw_row(noise[at : at + lanes], start, column_stride, STORE, done + turn, key, stream, width)


def _stores(noise, corner, row_stride, column_stride, done, count, lanes, rows, width, key, stream):
    """All bits of the random numbers of a tile's stores, to `noise`."""
    draw_stores(
        carray(noise, (count * rows * lanes,)), corner, row_stride, column_stride, done, count, lanes, rows, key, stream, width
    )  # fmt: skip
    return 0


STORES = types.CPointer(types.float64), *(types.int64,) * 8, types.uint64, types.uint64


@cache
def address(stores=False):
    """Where the machine code of a rounding is, or of random numbers of stores. It takes, before its arguments, where its result goes, and where
    what is raised would; nothing is."""
    function, arguments = (_stores, STORES) if stores else (_rounding, ARGUMENTS)
    dispatcher = jit.compiled(function)
    dispatcher.compile(arguments)
    made = dispatcher.overloads[arguments]
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
