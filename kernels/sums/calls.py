"""Calls of generated loops out of Numba's: there arrays come in for less than Python takes to ask where they lie."""

import numpy as np
from llvmlite import ir
from numba import types

from .. import jit
from ..jit import lowered, row, scratch
from .target import PLACES

GRID = (
    "first", "last", "a", "b", "c", "values", "flags", "numbers", "lows", "tiles", "panels", "wide", "rows", "columns", "nan_flags", "turns",
    "roomy", "low_b", "a_size", "b_size", "c_size", "size", "product_stride",
)  # fmt: skip
WORDS = len(PLACES)
(
    FIRST, LAST, A, B, C, VALUES, FLAGS, NUMBERS, LOWS, TILES, PANELS, WIDE, ROWS, COLUMNS, NAN_FLAGS, TURNS, ROOMY, LOW_B, A_SIZE, B_SIZE,
    C_SIZE, SIZE, PRODUCT_STRIDE,
) = (PLACES[name] for name in GRID)  # fmt: skip


def place_of(x):
    """The address of an array."""
    return x.ctypes.data


@lowered(place_of)
def _place_of(context, x):
    def codegen(context, builder, signature, arguments):
        data = context.make_array(x)(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.uint64(x), codegen


def called(function, words):
    """What the loop at an address returns for an array of words; only compiled code can call it."""
    raise NotImplementedError


@lowered(called)
def _called(context, function, words):
    def codegen(context, builder, signature, arguments):
        data = context.make_array(words)(context, builder, arguments[1]).data
        kind = ir.FunctionType(ir.IntType(64), [data.type])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [data])

    return types.uint64(function, words), codegen


@row
def grids(
    function, words, first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, lows, roomy
):  # fmt: skip
    """Flags seen, of tiles first ... last - 1 of grids, by the loop at an address, which takes these words but for what is here.

    a is (products, 1, row panels, k, rows of one), b alike, of columns; c and values are (products, rows, columns) of whole tiles, c may be of
    one product, for all. Tiles of a product follow those of another. What outputs beyond `rows` and `columns` raise is seen as well, INEXACT
    always. lows, flat, are the least numbers of turns of a, and after them of b, or empty. `roomy`: what operands add up to is as small as
    loops that split sums ask.
    """
    call = scratch(WORDS, np.uint64)
    for n in range(WORDS):
        call[n] = words[n]
    panels, turns, height = a.shape[2], a.shape[3], a.shape[4]
    across, width = b.shape[2], b.shape[4]
    size = panels * height * across * width
    call[FIRST], call[LAST], call[TILES], call[PANELS], call[TURNS] = first, last, panels * across, panels, turns
    call[A], call[B], call[C], call[VALUES] = place_of(a), place_of(b), place_of(c), place_of(values)
    call[FLAGS], call[NUMBERS], call[LOWS] = place_of(flags), place_of(numbers), place_of(lows)
    call[WIDE], call[ROWS], call[COLUMNS], call[NAN_FLAGS] = c.shape[2], rows, columns, nan_flags
    call[ROOMY], call[LOW_B] = 1 if roomy else 0, a.size // height if lows.size else 0
    call[A_SIZE], call[B_SIZE] = panels * turns * height, across * turns * width
    call[C_SIZE], call[SIZE], call[PRODUCT_STRIDE] = size if c.shape[0] > 1 else 0, size, rows * columns
    return np.int64(called(function, call))


@jit.once
def launch():
    """loop(...) of `grids`."""
    return jit.compiled(_launch)


def _launch(function, words, first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, lows, roomy):
    return grids(function, words, first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns, lows, roomy)
