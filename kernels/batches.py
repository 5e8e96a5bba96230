"""Many small products in one call: each is read, summed and written before the next, in panels that stay in the CPU's first caches."""

import numpy as np

from . import jit
from .jit import flat, row, scratch
from .quick_steps import SPLIT_MOST
from .sums.calls import called, grids, place_of
from .sums.reading import READ_FIELDS
from .tiles import finding_least
from .vectors import LANES, ROWS

WORDS = len(READ_FIELDS)
CODES, SPANS, APART, SIZE_OF_CODE = (READ_FIELDS.index(name) for name in ("codes", "spans", "apart", "size"))
LEFT = 1 << 8
"""Beside the flags that a loop has seen: some product was left."""


@row
def product_read(function, words, number, spans):
    """Whether a product's operand is finite, which a loop reads that takes these words of the first; the least and the greatest go to `spans`."""
    call = scratch(WORDS, np.uint64)
    for n in range(WORDS):
        call[n] = words[n]
    call[CODES] = words[CODES] + np.uint64(number) * words[APART] * words[SIZE_OF_CODE]
    call[SPANS] = place_of(spans)
    return called(function, call) != 0


@jit.once
def batch(whole):
    """loop(function, words, read_a, words_a, read_b, words_b, first, last, rows, length, columns, panels_a, panels_b, begins, values, flags,
    own_values, own_flags, numbers, nan_flags, limit, lows, spans, left) -> flags seen, of products first ... last - 1.

    Operands are read by loops at addresses into panels of one product; values and flags, (products, rows, columns), are the codes and flags
    that `grids` makes of them, of `whole` tiles, or own values and flags are those of one product, filled up to such. `begins`, zeros, are
    what sums begin with. Products whose magnitudes add up to less than `limit` are as small as loops that split sums ask. lows has room for
    what is least in panels, or none if no sum asks. spans, (products, 2, 2), tells the least and the greatest magnitude of a and of b. A
    product that is not finite is left as it was, marked in `left`, and told by LEFT.
    """
    least_of_a, least_of_b = finding_least(ROWS), finding_least(LANES[np.float32])

    def batch_loop(
        function, words, read_a, words_a, read_b, words_b, first, last, rows, length, columns, panels_a, panels_b, begins, values, flags,
        own_values, own_flags, numbers, nan_flags, limit, lows, spans, left,
    ):  # fmt: skip
        units = panels_a.shape[2] * panels_b.shape[2]
        turns_of_a = panels_a.shape[2] * panels_a.shape[3]
        seen = 0
        for n in range(first, last):
            finite_a = product_read(read_a, words_a, n, spans[n, 0])
            if not (product_read(read_b, words_b, n, spans[n, 1]) and finite_a):
                left[n] = True
                seen |= LEFT
                continue
            if lows.size:
                least_of_a(flat(panels_a), lows[:turns_of_a])
                least_of_b(flat(panels_b), lows[turns_of_a:])
            greatest_b = spans[n, 1, 1]
            roomy = length * spans[n, 0, 1] * greatest_b < limit and greatest_b < SPLIT_MOST
            if whole:
                seen |= grids(
                    function, words, 0, units, panels_a, panels_b, begins, values[n : n + 1], flags[n : n + 1], numbers, nan_flags,
                    rows, columns, lows, roomy,
                )  # fmt: skip
            else:
                seen |= grids(
                    function, words, 0, units, panels_a, panels_b, begins, own_values, own_flags, numbers, nan_flags, rows, columns,
                    lows, roomy,
                )  # fmt: skip
                for i in range(rows):
                    for j in range(columns):
                        values[n, i, j], flags[n, i, j] = own_values[0, i, j], own_flags[0, i, j]
        return seen

    return jit.compiled(batch_loop)
