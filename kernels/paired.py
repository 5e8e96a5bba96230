"""What becomes of sums of whole blocks, which were collected apart."""

import numpy as np

from . import jit
from .accumulate import RUNNING, collected_sum, draw_row, met, raised_by, shared
from .jit import copy_row, fill_row, row, scratch, stand_alone
from .rounding import round_drawn_unusual, target_of, undecided
from .sticky import settled_parts

OUTPUTS = 64  # of a row, collected side by side


@row
def collect_row(sums, terms, bins, magics, flags, integers, floats):
    """sums: those of rows of terms, to be rounded; flags: of the addition."""
    stand_alone()
    target, errors, top, width = target_of(integers, floats), scratch(OUTPUTS, np.float64), magics.size - 1, sums.size
    for b in range(magics.size):
        for j in range(width):
            bins[b, j] = 0.0
    for n in range(terms.shape[0]):
        copy_row(sums, terms[n])
        for b in range(top, 0, -1):
            for j in range(width):
                bins[b, j], sums[j] = shared(bins[b, j], sums[j], magics[b])
        for j in range(width):
            bins[0, j] += sums[j]
    for b in range(top):
        for j in range(width):
            bins[b + 1, j], bins[b, j] = shared(bins[b + 1, j], bins[b, j], magics[b + 1])
    fill_row(errors, 0.0)
    copy_row(sums, bins[top])
    for b in range(top - 1, -1, -1):
        for j in range(width):
            sums[j], errors[j] = met(sums[j], errors[j], bins[b, j])
    for j in range(width):
        sums[j] = collected_sum(sums[j], errors[j], target)
        flags[j] = raised_by(sums[j], True, target)


@jit.once
def collected():
    """loop(terms, magics, bins, values, ints, floats): exact sums of terms, (terms, outputs), as they are to be rounded.

    There is room for OUTPUTS in `bins` for each of magics.
    """

    def collected_loop(terms, magics, bins, values, ints, floats):
        flags = scratch(OUTPUTS, np.int64)
        for start in range(0, values.size, OUTPUTS):
            stop = min(start + OUTPUTS, values.size)
            collect_row(values[start:stop], terms[:, start:stop], bins, magics, flags, ints, floats)

    return jit.compiled(collected_loop, _nrt=False)


@jit.once
def collected_drawn():
    """loop(first, last, terms, magics, work, codes, flags, ints, floats, index, row_stride, column_stride, step, width, key, stream).

    The same of a grid of outputs, rounded stochastically: terms (terms, rows, columns) become codes and flags of the stage RUNNING,
    which has done `step` roundings before. Unit u is OUTPUTS columns of a row.
    There is room for OUTPUTS in `work` for each of magics.
    """

    def collected_drawn_loop(
        first, last, terms, magics, work, codes, flags, ints, floats, index, row_stride, column_stride, step, width, key, stream
    ):  # fmt: skip
        sums, uniforms, seen = scratch(OUTPUTS, np.float64), scratch(OUTPUTS, np.float64), scratch(OUTPUTS, np.int64)
        target = target_of(ints, floats)
        per_row = (codes.shape[1] + OUTPUTS - 1) // OUTPUTS
        for unit in range(first, last):
            i, start = unit // per_row, unit % per_row * OUTPUTS
            count = min(OUTPUTS, codes.shape[1] - start)
            values, random, hangs = sums[:count], uniforms[:count], False
            collect_row(values, terms[:, i, start : start + count], work, magics, seen, ints, floats)
            corner = index + i * row_stride + start * column_stride
            draw_row(random, corner, column_stride, RUNNING, step, key, stream, width)
            for j in range(count):
                code, raised = round_drawn_unusual(values[j], random[j], target)
                hangs |= undecided(values[j], random[j], target)
                codes[i, start + j], flags[i, start + j] = code, raised | seen[j]
            for j in range(count if hangs else 0):
                random[j] = settled_parts(work[:, j], 0.0, 0.0, values[j], 0.0, random[j], target)
                code, raised = round_drawn_unusual(values[j], random[j], target)
                codes[i, start + j], flags[i, start + j] = code, raised | seen[j]

    return jit.compiled(collected_drawn_loop, _nrt=False)
