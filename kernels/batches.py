"""Many small products in one call: each is read, summed and written before the next, in panels that stay in the CPU's first caches."""

import numpy as np

from . import jit, spec
from .jit import flat, row
from .quick_steps import SPLIT_MOST
from .stacked import laying_out, writing_out
from .sums.calls import grids
from .tiles import finding_least
from .vectors import LANES, ROWS

LEFT = 1 << 8
"""Beside the flags that a loop has seen: some product was left."""


@row
def copied_out(values, raised, codes, flags):
    """As `stacked.writing_out`, of outputs that are codes; no flags are told that their loop has not."""
    products, rows, columns = codes.shape
    for product in range(products):
        for i in range(rows):
            for j in range(columns):
                codes[product, i, j] = values[product, i, j]
                flags[product, i, j] = raised[product, i, j]
    return True


@jit.once
def batch(readings, whole):
    """The loop of products that meet the sum one after the other, by a generated loop at an address, whose outputs are codes."""
    return _batch(readings, np.float32, 1, whole, copied_out)


@jit.once
def unit_batch(readings, carrier, writing):
    """The same of units whose terms are aligned, whose stores draw nothing, written as `stacked.WRITERS` says."""
    return _batch(readings, carrier, 2, False, writing_out(writing))


def _batch(readings, carrier, planes, whole, write):
    """loop(function, words, first, last, a, table_a, tiny_a, b, table_b, tiny_b, of_zeros, panels_a, panels_b, begins, values, flags, own_values,
    own_flags, numbers, nan_flags, limit, lows, spans, left) -> flags seen, of products first ... last - 1.

    a and b are codes, (products, rows, k) and (products, k, columns), read as `stacked.laying_out` has it, into panels of one product
    that it fills; values and flags, (products, rows, columns), are what `grids` makes of them, or what `write` makes of that. They
    are `whole` tiles, or own values and flags are those of one product, filled up to such. `begins`, zeros, are what sums begin
    with. Products whose magnitudes add up to less than `limit` are as small as loops that split sums ask. lows has room for what
    is least in panels, or none if no sum asks. spans, (products, 2, 2), tells the least and the greatest magnitude of a and of b. A product
    that is not finite is left as it was, marked in `left`, and told by LEFT.
    """
    read_a, read_b = (laying_out(x, carrier, planes, stands) for x, stands in zip(readings, (True, False), strict=True))
    least_of_a, least_of_b = finding_least(ROWS), finding_least(LANES[carrier])
    unbounded, numbers_alone = spec.OVERFLOW | spec.INVALID, planes == 1

    def batch_loop(
        function, words, first, last, a, table_a, tiny_a, b, table_b, tiny_b, of_zeros, panels_a, panels_b, begins, values, flags, own_values,
        own_flags, numbers, nan_flags, limit, lows, spans, left,
    ):  # fmt: skip
        units = panels_a.shape[2] * panels_b.shape[2]
        rows, columns = a.shape[1], b.shape[2]
        turns_of_a = panels_a.shape[2] * panels_a.shape[3]
        seen = 0
        for n in range(first, last):
            least_a, greatest_a, finite_a = read_a(a[n : n + 1], table_a, tiny_a, of_zeros, panels_a)
            least_b, greatest_b, finite_b = read_b(b[n : n + 1], table_b, tiny_b, of_zeros, panels_b)
            spans[n, 0, 0], spans[n, 0, 1], spans[n, 1, 0], spans[n, 1, 1] = least_a, greatest_a, least_b, greatest_b
            if not (finite_a and finite_b):
                left[n] = True
                seen |= LEFT
                continue
            if numbers_alone and lows.size:
                least_of_a(flat(panels_a), lows[:turns_of_a])
                least_of_b(flat(panels_b), lows[turns_of_a:])
            roomy = a.shape[2] * greatest_a * greatest_b < limit and greatest_b < SPLIT_MOST
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
                finite = write(own_values, own_flags, values[n : n + 1], flags[n : n + 1])
                seen |= 0 if finite else unbounded
        return seen

    return jit.compiled(batch_loop)
