"""Sums in order of float64, to nearest: by the CPU's own operations, tiles of outputs in registers.

Operands are ordinary or zero: then every product, and every sum but one that overflows, is a multiple of 2^-1004, nothing is tiny and
inexact, and errors are numbers of float64. Whether an output is inexact its first turns tell, mostly: they are done again until all of a row
are.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from . import jit
from .arith import sum_and_error
from .fast import has_feature
from .jit import fill_row, kernel, lowered, scratch
from .vectors import Vector, load
from .wide_elements import FARTHEST, MAGNITUDE, fma, product

ROWS, LANES, VECTORS = (8, 8, 3) if has_feature("avx512f") else (4, 4, 3)
COLUMNS = LANES * VECTORS
AT_ONCE = 256  # turns of a tile whose operands stay in the CPU's first caches
TILE, PANEL = ROWS * COLUMNS, AT_ONCE * COLUMNS
LEAST, MOST, MOST_BEFORE = 2.0**-FARTHEST, 2.0**FARTHEST, 2.0 ** (2 * FARTHEST)
"""Magnitudes of ordinary operands; and of what sums begin with, down to 1 / MOST_BEFORE."""


def fused_turns(a, b, tile, row, begin, count):
    """tile[i, j] = a[row + i, begin + k] * b[k, j] + tile[i, j] for k = 0 ... count - 1, rounded once; b and the tile are flat."""
    raise NotImplementedError("compiled code alone has it")


def rounded_turns(a, b, tile, row, begin, count):
    """The same, each product rounded before it is added."""
    raise NotImplementedError("compiled code alone has it")


def _turns(meet):
    """The definition of turns in which meet(x, y, sum) makes the next sum. Rows beyond a's last are that one again."""

    def turns(context, a, b, tile, row, begin, count):
        def codegen(context, builder, signature, arguments):
            left, right, out = (
                context.make_array(kind)(context, builder, x) for kind, x in zip((a, b, tile), arguments, strict=False)
            )
            index, kind = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
            undefined, zeros = (
                ir.Constant(kind, ir.Undefined),
                ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES),
            )
            height, length = cgutils.unpack_tuple(builder, left.shape)
            last = builder.sub(height, index(1))

            def start_of(i):
                own = builder.add(arguments[3], index(i))
                own = builder.select(builder.icmp_signed("<", own, last), own, last)
                return builder.gep(left.data, [builder.add(builder.mul(own, length), arguments[4])])

            rows = [start_of(i) for i in range(ROWS)]
            cells = {(i, v): index(i * COLUMNS + v * LANES) for i in range(ROWS) for v in range(VECTORS)}
            sums = {cell: load(builder, out.data, at, kind.element, LANES) for cell, at in cells.items()}
            held = {cell: cgutils.alloca_once_value(builder, x.value) for cell, x in sums.items()}
            with cgutils.for_range(builder, arguments[5]) as loop:
                start = builder.mul(loop.index, index(COLUMNS))
                places = [builder.add(start, index(v * LANES)) for v in range(VECTORS)]
                others = [load(builder, right.data, at, kind.element, LANES) for at in places]
                for i in range(ROWS):
                    number = builder.load(builder.gep(rows[i], [loop.index]))
                    number = builder.insert_element(undefined, number, ir.IntType(32)(0))
                    factor = Vector(builder, builder.shuffle_vector(number, undefined, zeros))
                    for v, other in enumerate(others):
                        found = meet(factor, other, Vector(builder, builder.load(held[i, v])))
                        builder.store(found.value, held[i, v])
            for cell, at in cells.items():
                pointer = builder.bitcast(builder.gep(out.data, [at]), kind.as_pointer())
                builder.store(builder.load(held[cell]), pointer, align=8)
            return context.get_dummy_value()

        return types.void(a, b, tile, row, begin, count), codegen

    return turns


lowered(fused_turns)(_turns(lambda x, y, total: x.fused(y, total)))
lowered(rounded_turns)(_turns(lambda x, y, total: total + x * y))


@kernel
def fused_error(x, y, total):
    """(x * y + total, a number that is 0 where that is exact)."""
    found, error, _ = fma(x, y, total)
    return found, error


@kernel
def rounded_error(x, y, total):
    """The same, the product rounded before it is added."""
    part, least = product(x, y)
    found, error = sum_and_error(total, part)
    return found, abs(error) + abs(least)


@cache
def products(fuses):
    """loop(a, b, c, flags, first, last): tiles first ... last - 1; those under each other follow one another.

    a is (rows, k), b (k, columns), c and flags (rows, columns). c holds what sums begin with, and is to hold them; flags, that are inexact,
    begin as 0.
    """
    turns, meet = (fused_turns, fused_error) if fuses else (rounded_turns, rounded_error)

    def wide_products_loop(a, b, c, flags, first, last):
        rows, length, columns = a.shape[0], a.shape[1], b.shape[1]
        panels = -(-rows // ROWS)
        tile, laid = scratch(TILE, np.float64), scratch(PANEL, np.float64)
        sums, raised = scratch(COLUMNS, np.float64), scratch(COLUMNS, np.int64)
        fill_row(tile, 0.0)
        fill_row(laid, 0.0)
        for begin in range(0, length, AT_ONCE):
            count, held = min(AT_ONCE, length - begin), -1
            for unit in range(first, last):
                row, column = unit % panels * ROWS, unit // panels * COLUMNS
                high, wide = min(ROWS, rows - row), min(COLUMNS, columns - column)
                if column != held:
                    held = column
                    for k in range(count):
                        for j in range(wide):
                            laid[k * COLUMNS + j] = b[begin + k, column + j]
                for i in range(high):
                    fill_row(sums, 0.0)
                    fill_row(raised, np.int64(1))
                    every = np.int64(1)
                    for j in range(wide):
                        sums[j] = tile[i * COLUMNS + j] = c[row + i, column + j]
                        raised[j] = flags[row + i, column + j]
                        every &= raised[j]
                    k = 0
                    while every == 0 and k < count:
                        x, others, every = a[row + i, begin + k], laid[k * COLUMNS : (k + 1) * COLUMNS], np.int64(1)
                        for j in range(COLUMNS):
                            sums[j], error = meet(x, others[j], sums[j])
                            raised[j] |= np.int64(error != 0.0)
                            every &= raised[j]
                        k += 1
                    for j in range(wide):
                        flags[row + i, column + j] = raised[j]
                turns(a, laid, tile, row, begin, count)
                for i in range(high):
                    for j in range(wide):
                        c[row + i, column + j] = tile[i * COLUMNS + j]

    return jit.compiled(wide_products_loop)


@jit.once
def ordinary():
    """loop(codes, least, most) -> negative, if a magnitude is neither zero nor from `least` to `most`; codes are int64."""
    return jit.compiled(_ordinary)


def _ordinary(codes, least, most):
    found = np.int64(0)
    for i in range(codes.size):
        magnitude = codes[i] & MAGNITUDE
        found |= ((magnitude - least) & -magnitude) | (most - magnitude)
    return found
