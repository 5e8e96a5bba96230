"""Roundings of one output by the plain functions, for generated code: compiled by Numba once, called by address."""

import numpy as np
from numba import carray, types

from .. import jit
from ..accumulate import RUNNING, STORE, draw_row, random_of
from ..arith import add
from ..carrier import SOURCE_FLOATS, SOURCE_INTEGERS, decode, source_of
from ..jit import float_bits, kernel, row
from ..prng import TILE, dot_low, top_bits
from ..rounding import TARGET_FLOATS, TARGET_INTEGERS, round_drawn_unusual, target_of
from ..spec import CARRIER64, FLOAT64
from ..sticky import settling
from ..targets import source as double
from ..wide import element_of

NUMBERS = types.CPointer(types.int64), types.CPointer(types.float64)
ARGUMENTS = (
    types.int64, *(types.float64,) * 3, types.uint64, types.uint64, types.int64, *NUMBERS, types.int64, types.uint64, types.uint64,
    types.CPointer(types.float64),
)  # fmt: skip


settled_add, wide_fma, DOUBLE = settling("add"), element_of("fma"), double(FLOAT64, CARRIER64, False)


@kernel
def known_of(integers, floats):
    """What two places say of formats and a rule."""
    ints = carray(integers, (SOURCE_INTEGERS + TARGET_INTEGERS,))
    reals = carray(floats, (SOURCE_FLOATS + TARGET_FLOATS,))
    return source_of(ints, reals), target_of(ints, reals)


def _rounding(site, x, y, z, noise, output, number, integers, floats, width, key, stream, total):
    """Flags of x * y + z, at the site of products without z, rounded to `total` with all random bits, the first 16 of which are in `noise`."""
    source, target = known_of(integers, floats)
    random = random_of(noise, site, output, number, width, key, stream)
    product, addend = x * y, z if site == RUNNING else -0.0
    s, _ = add(addend, product, product, target)
    code, raised = round_drawn_unusual(s, settled_add(addend, product, product, s, 0.0, random, target), target)
    carray(total, (1,))[0] = decode(code, source)
    return raised


def _wide_rounding(site, x, y, z, noise, output, number, integers, floats, width, key, stream, total):
    """The same of float64 or a format that is a part of it, by integers."""
    source, target = known_of(integers, floats)
    random = (noise << np.uint64(36) | dot_low(output, site, number, key, stream)) >> np.uint64(52 - width)
    operands = float_bits(x), float_bits(y), float_bits(z)
    code, raised = wide_fma(*operands, 0.0, random, width, DOUBLE, target)
    carray(total, (1,))[0] = decode(code, source)
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


def _half_words(words, first, count, start, handed, given, width, key, stream):
    """The first 16 random bits of so many elements from `first` on, of those that begin at `start`, a multiple of TILE; or of what is `given`.

    Of what is drawn they lie in `words` as in whole tiles.
    """
    begin = first if given else first // TILE * TILE
    size = count if given else (first + count - begin + TILE - 1) // TILE * TILE
    bits = carray(handed, (first + count if given else 0,))
    top_bits(start + begin, carray(words, (size,)), bits[first:] if given else bits, width, key, stream)
    return 0


HALF_WORDS = (
    types.CPointer(types.uint16), *(types.int64,) * 3, types.CPointer(types.uint64), *(types.int64,) * 2, *(types.uint64,) * 2,
)  # fmt: skip
FUNCTIONS = {
    "rounding": (_rounding, ARGUMENTS),
    "wide": (_wide_rounding, ARGUMENTS),
    "stores": (_stores, STORES),
    "half_words": (_half_words, HALF_WORDS),
}


@jit.once
def address(name):
    """Where the machine code of one of these functions is. It takes, before its arguments, where its result
    goes, and where what is raised would; nothing is."""
    return jit.address_of(*FUNCTIONS[name], arrays=True)
