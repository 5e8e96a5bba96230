"""Many small products in one call: each is read, summed and written before the next, in panels that stay in the CPU's first caches."""

import numpy as np

from . import jit
from .jit import flat
from .quick_steps import SPLIT_MOST
from .stacked import laying_out
from .tiles import finding_least, is_lifted, summing
from .vectors import LANES, ROWS

LEFT = 1 << 8
"""Beside the flags that a loop has seen: some product was left."""


@jit.once
def batch(readings, operation, manner, whole):
    """loop(first, last, a, table_a, b, table_b, panels_a, panels_b, begins, values, flags, own_values, own_flags, numbers, nan_flags,
    limit, lows, spans, left) -> flags seen, of products first ... last - 1.

    a and b are codes, (products, rows, k) and (products, k, columns), read as `stacked.laying_out` has it, into panels of one product
    that it fills; values and flags, (products, rows, columns), are what `tiles.summing` makes of them, in float32 or as codes. They are
    `whole` tiles, or own values and flags are those of one product, filled up to such. `begins`, zeros, are what sums begin with.
    Products whose magnitudes add up to less than `limit` are as small as loops that split sums ask. lows has room for what is least
    in panels, if a step asks. spans, (products, 2, 2), tells the least and the greatest magnitude of a and of b. A product that is
    not finite is left as it was, marked in `left`, and told by LEFT.
    """
    carrier = np.float32
    read_a, read_b = (laying_out(x, carrier, 1, stands) for x, stands in zip(readings, (True, False), strict=True))
    sum_tiles, lifted = summing(operation, carrier, 1, 1, manner), is_lifted(operation, manner)
    least_of_a, least_of_b = finding_least(ROWS), finding_least(LANES[carrier])

    def batch_loop(
        first, last, a, table_a, b, table_b, panels_a, panels_b, begins, values, flags, own_values, own_flags, numbers, nan_flags,
        limit, lows, spans, left,
    ):  # fmt: skip
        units = panels_a.shape[2] * panels_b.shape[2]
        rows, columns = a.shape[1], b.shape[2]
        turns_of_a = panels_a.shape[2] * panels_a.shape[3]
        seen = 0
        for n in range(first, last):
            least_a, greatest_a, finite_a = read_a(a[n : n + 1], table_a, 1.0, 0.0, panels_a)
            least_b, greatest_b, finite_b = read_b(b[n : n + 1], table_b, 1.0, 0.0, panels_b)
            spans[n, 0, 0], spans[n, 0, 1], spans[n, 1, 0], spans[n, 1, 1] = least_a, greatest_a, least_b, greatest_b
            if not (finite_a and finite_b):
                left[n] = True
                seen |= LEFT
                continue
            if lifted:
                least_of_a(flat(panels_a), lows[:turns_of_a])
                least_of_b(flat(panels_b), lows[turns_of_a:])
            results = values[n : n + 1] if whole else own_values
            raised = flags[n : n + 1] if whole else own_flags
            roomy = a.shape[2] * greatest_a * greatest_b < limit and greatest_b < SPLIT_MOST
            seen |= sum_tiles(
                0, units, panels_a, panels_b, begins, results, raised, numbers, nan_flags, rows, columns, lows, roomy
            )
            if not whole:
                for i in range(rows):
                    for j in range(columns):
                        values[n, i, j] = own_values[0, i, j]
                        flags[n, i, j] = own_flags[0, i, j]
        return seen

    return jit.compiled(batch_loop)
