"""Sums of segments, maybe times their scales, added up in float32 to nearest: elementwise what `dot_steps.scaled_addition` does.

What is not ordinary is seen: a scale that is subnormal, infinite or NaN, or a product or sum other than an exact zero that is not above the
smallest normal number and finite. So no result hangs on what a host does with subnormals. Segments' sums are ordinary where operands are
such as units take.
"""

from ..fast import INFINITE_BITS, SMALLEST_BITS
from ..steps import INEXACT, Stage
from .arithmetics import careful
from .loop import Seen, is_directed
from .observers import Flags

PLAIN = "plain"
"""Sums of segments as they are."""
MULTIPLIED = {
    "scales_fused": (("x", "y"), "sum"), "first_fused": (("sum", "x"), "y"), "second_fused": (("sum", "y"), "x"),
}  # fmt: skip
"""Of each order of `Reduction.scaling`, x and y being a row's and a column's scale: which two are multiplied first, and by what the product is,
in one rounding with the addition."""
STAGE = Stage("float32", wide=True)
UNUSUAL = 1 << 7
"""What is seen beside the flags of tiles in which something is not ordinary."""


def _unusual(x):
    """Lanes in which a float32 number is subnormal, infinite or NaN."""
    magnitude = x.bits() & 0x7FFFFFFF
    normal = (magnitude - int(SMALLEST_BITS)).below(int(INFINITE_BITS - SMALLEST_BITS))
    return ~(normal | magnitude.is_zero())


def _may_be_tiny(x, lost):
    """Lanes in which a result is beyond the normal numbers, or may have been rounded there."""
    magnitude = x.bits() & 0x7FFFFFFF
    above = (magnitude - int(SMALLEST_BITS) - 1).below(int(INFINITE_BITS - SMALLEST_BITS) - 1)
    return ~(above | (magnitude.is_zero() & ~lost))


class _Addition(Seen):
    """What an arithmetic sees: the CPU, and nothing of a call."""

    def __init__(self, lanes):
        self.directed = is_directed(lanes)


def added(order, value, scales, total):
    """(total and a segment's sum, times scales that the order asks for; lanes in which that is inexact, and in which not all is ordinary)."""
    nothing = value.bits() & 0
    steps = careful(STAGE)(_Addition(value.value.type.count), STAGE, Flags(), {INEXACT: nothing})

    def taken():
        """Lanes in which something was lost since the last look."""
        lost, steps.state[INEXACT] = steps.state[INEXACT].bits().nonzero(), nothing
        return lost

    if order == PLAIN:
        found = steps.total(total, value)
        lost = taken()
        return found, lost, _may_be_tiny(found, lost)
    known = {"x": scales[0], "y": scales[1], "sum": value}
    (one, other), last = MULTIPLIED[order]
    product = steps.product(known[one], known[other])
    cut = taken()
    found = steps.fused(product, known[last], total)
    lost, unusual = taken(), _unusual(known["x"]) | _unusual(known["y"])
    return found, cut | lost, unusual | _may_be_tiny(product, cut) | _may_be_tiny(found, lost)
