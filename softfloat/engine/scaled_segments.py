"""Sums of segments times their scales in one pass, where all of them are ordinary numbers."""

from __future__ import annotations

import numpy as np

from softfloat.engine import elementwise, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FLOAT32, scaled_segments
from softfloat.engine.programs import Site
from softfloat.kernels.spec import Rounding

FUSED = "scales_fused", "first_fused", "second_fused"
"""Orders of which the loop has one."""
WORTH_A_LOOP = 1 << 14
"""Products of sums and scales from which on a call is worth the loop, which takes a second to compile."""


def added(order: str, total: Codes, sums: Codes, a: Codes, b: Codes, site: Site) -> tuple[Codes, Codes] | None:
    """(codes, flags) of sums of segments, (segments, rows, columns), times scales a, (segments, rows), and b, (segments, columns), added one
    after the other to the total, all float32; None where the loop does not serve, or something is not ordinary."""
    rule, shape = site.rule, total.shape
    if not elementwise.quick() or order not in FUSED or sums.ndim != 3 or sums.size < WORTH_A_LOOP:
        return None
    if site.format.spec != FLOAT32 or rule.rounding is not Rounding.NEAREST_EVEN or not rule.restated:
        return None
    codes, flags, loop = (
        np.array(total, np.uint32, order="C"),
        np.zeros(shape, np.uint8),
        scaled_segments().added(order),
    )
    known = [np.ascontiguousarray(x, np.uint32).view(np.int32) for x in (sums, a, b)]
    wild: list[bool] = []

    def work(first: int, last: int) -> int:
        wild.append(not loop(first, last, *known, codes.view(np.int32), flags))
        return 0

    threads.share_units(shape[0], work, max(sums.size // shape[0], 1))
    return None if any(wild) else (codes, flags)
