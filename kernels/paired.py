"""What becomes of sums of whole blocks, which were collected apart."""

import numpy as np

from . import jit
from .accumulate import (
    RUNNING,
    bin_row,
    carry_row,
    collect_row,
    draw_row,
    drawn_row,
    settled_row,
)
from .jit import copy_row, fill_row

OUTPUTS = 64  # of a row, collected side by side


@jit.once
def collected():
    """loop(terms, magics, values, ints, floats): exact sums of terms, (terms, outputs), as they are to be rounded."""

    def collected_loop(terms, magics, values, ints, floats):
        bins = np.empty((magics.size, OUTPUTS))
        term, errors, numbers = np.empty(OUTPUTS), np.empty(OUTPUTS), np.ones(OUTPUTS)
        flags = np.zeros(OUTPUTS, np.int64)
        for start in range(0, values.size, OUTPUTS):
            width = min(OUTPUTS, values.size - start)
            sums = bins[:, :width]
            for b in range(magics.size):
                for j in range(width):
                    bins[b, j] = 0.0
            for n in range(terms.shape[0]):
                for j in range(width):
                    term[j] = terms[n, start + j]
                bin_row(sums, term[:width], magics)
            carry_row(sums, magics)
            running = values[start : start + width]
            collect_row(running, sums, errors[:width], numbers[:width], flags[:width], ints, floats)

    return jit.compiled(collected_loop)


@jit.once
def collected_drawn():
    """loop(first, last, terms, magics, codes, flags, ints, floats, index, row_stride, column_stride, step, width, key, stream).

    The same of a grid of outputs, rounded stochastically: terms (terms, rows, columns) become codes and flags of the stage RUNNING,
    which has done `step` roundings before. Unit u is OUTPUTS columns of a row.
    """

    def collected_drawn_loop(
        first, last, terms, magics, codes, flags, ints, floats, index, row_stride, column_stride, step, width, key, stream
    ):  # fmt: skip
        work = np.empty((magics.size + 1, OUTPUTS))  # before the parts of a sum, what is rounded
        term, errors, numbers = np.empty(OUTPUTS), np.empty(OUTPUTS), np.ones(OUTPUTS)
        sums, uniforms = np.empty(OUTPUTS), np.empty(OUTPUTS)
        found, raised, seen = np.empty(OUTPUTS, np.int64), np.empty(OUTPUTS, np.int64), np.empty(OUTPUTS, np.int64)
        per_row = (codes.shape[1] + OUTPUTS - 1) // OUTPUTS
        for unit in range(first, last):
            i, start = unit // per_row, unit % per_row * OUTPUTS
            count = min(OUTPUTS, codes.shape[1] - start)
            room, running, happened = work[:, :count], sums[:count], seen[:count]
            bins, some = room[1:], term[:count]
            for b in range(magics.size):
                fill_row(bins[b], 0.0)
            for n in range(terms.shape[0]):
                copy_row(some, terms[n, i, start : start + count])
                bin_row(bins, some, magics)
            carry_row(bins, magics)
            fill_row(happened, 0)
            collect_row(running, bins, errors[:count], numbers[:count], happened, ints, floats)
            random, rounded_to, by_rounding = uniforms[:count], found[:count], raised[:count]
            corner = index + i * row_stride + start * column_stride
            draw_row(random, corner, column_stride, RUNNING, step, key, stream, width)
            whole = room[0]
            if drawn_row(running, whole, random, rounded_to, by_rounding, ints, floats):
                settled_row(running, whole, bins, random, rounded_to, by_rounding, ints, floats)
            for j in range(count):
                codes[i, start + j] = rounded_to[j]
                flags[i, start + j] = by_rounding[j] | happened[j]

    return jit.compiled(collected_drawn_loop)
