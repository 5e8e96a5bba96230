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
from .fast import has_feature
from .jit import kernel, lowered
from .vectors import Vector
from .wide_blocks import FARTHEST, HAS_FUSED, MAGNITUDE, fma, mul, two_sum

ROWS, LANES, VECTORS = (8, 8, 3) if has_feature("avx512f") else (4, 4, 3)
COLUMNS = LANES * VECTORS
AT_ONCE = 256  # turns of a tile whose operands stay in the CPU's first caches
SERVES_FUSED = HAS_FUSED
LEAST, MOST, MOST_BEFORE = 2.0**-FARTHEST, 2.0**FARTHEST, 2.0 ** (2 * FARTHEST)
"""Magnitudes of ordinary operands; and of what sums begin with, down to 1 / MOST_BEFORE."""


def fused_turns(a, b, c, wide, first, last):
    """c[i, j] = a[k, i] * b[k, j] + c[i, j] for k = first ... last - 1, rounded once; rows of c are `wide` numbers apart."""
    raise NotImplementedError("compiled code alone has it")


def rounded_turns(a, b, c, wide, first, last):
    """The same, each product rounded before it is added."""
    raise NotImplementedError("compiled code alone has it")


def _turns(meet):
    """The definition of turns in which meet(x, y, sum) makes the next sum."""

    def turns(context, a, b, c, wide, first, last):
        def codegen(context, builder, signature, arguments):
            left, right, out = (
                context.make_array(kind)(context, builder, x).data
                for kind, x in zip((a, b, c), arguments, strict=False)
            )
            kind, index = ir.VectorType(ir.DoubleType(), LANES), ir.IntType(64)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

            def place(pointer, where):
                return builder.bitcast(builder.gep(pointer, [where]), kind.as_pointer())

            cells = [(row, v) for row in range(ROWS) for v in range(VECTORS)]
            held = {cell: cgutils.alloca_once(builder, kind) for cell in cells}
            rows = [builder.gep(out, [builder.mul(arguments[3], index(row))]) for row in range(ROWS)]
            own = {(row, v): place(rows[row], index(v * LANES)) for row, v in cells}
            for cell in cells:
                builder.store(builder.load(own[cell], align=8), held[cell])
            with cgutils.for_range_slice(builder, arguments[4], arguments[5], index(1)) as (k, _):
                start = builder.mul(k, index(COLUMNS))
                others = [
                    Vector(builder, builder.load(place(right, builder.add(start, index(v * LANES))), align=8))
                    for v in range(VECTORS)
                ]
                for row in range(ROWS):
                    where = builder.add(builder.mul(k, index(ROWS)), index(row))
                    number = builder.insert_element(
                        ir.Constant(kind, ir.Undefined), builder.load(builder.gep(left, [where])), ir.IntType(32)(0)
                    )
                    factor = Vector(builder, builder.shuffle_vector(number, ir.Constant(kind, ir.Undefined), zeros))
                    for v, other in enumerate(others):
                        found = meet(factor, other, Vector(builder, builder.load(held[row, v])))
                        builder.store(found.value, held[row, v])
            for cell in cells:
                builder.store(builder.load(held[cell]), own[cell], align=8)
            return context.get_dummy_value()

        return types.void(a, b, c, wide, first, last), codegen

    return turns


lowered(fused_turns)(_turns(lambda x, y, total: x.fused(y, total)))
lowered(rounded_turns)(_turns(lambda x, y, total: total + x * y))


@kernel
def fused_error(x, y, total):
    """(x * y + total, a number that is 0 where that is exact)."""
    return fma(x, y, total)


@kernel
def rounded_error(x, y, total):
    """The same, the product rounded before it is added."""
    product, least = mul(x, y, 0.0)
    found, error = two_sum(total, product)
    return found, abs(error) + abs(least)


@cache
def products(fuses):
    """loop(a, b, c, flags, first, last): tiles first ... last - 1.

    a is (row panels, k, ROWS), b (column panels, k, COLUMNS); c and flags are of all their rows and columns. Tiles under each other follow one
    another. c holds what sums begin with, and is to hold them; flags, that are inexact, begin as what had been.
    """
    turns, meet = (fused_turns, fused_error) if fuses else (rounded_turns, rounded_error)

    def wide_products_loop(a, b, c, flags, first, last):
        panels, length, wide = a.shape[0], a.shape[1], c.shape[1]
        sums, raised = np.empty(COLUMNS, np.float64), np.empty(COLUMNS, np.int64)
        for unit in range(first, last):
            row, column = unit % panels * ROWS, unit // panels * COLUMNS
            for i in range(ROWS):
                before, seen = c[row + i, column : column + COLUMNS], flags[row + i, column : column + COLUMNS]
                for j in range(sums.size):
                    sums[j], raised[j] = before[j], seen[j]
                for k in range(length):
                    x, others, every = a[unit % panels, k, i], b[unit // panels, k], np.int64(1)
                    for j in range(sums.size):
                        sums[j], error = meet(x, others[j], sums[j])
                        raised[j] |= np.int64(error != 0.0)
                        every &= raised[j]
                    if every != 0:
                        break
                for j in range(sums.size):
                    seen[j] = raised[j]
        for begin in range(0, length, AT_ONCE):
            end = min(begin + AT_ONCE, length)
            for unit in range(first, last):
                row, column = unit % panels * ROWS, unit // panels * COLUMNS
                turns(a[unit % panels], b[unit // panels], c[row:, column:], wide, begin, end)

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
