"""Sums in pairs, level by level: products of wide operands are rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from softfloat import bits, float16, float32
from softfloat.accumulators import pairwise
from softfloat.reference import dots


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0x00000002], [0x00800000], (0x0000, 3)),  # 2^-274: below the carrier's own range
        ([0x3F800001], [0x3F800FFF], (0x3C01, 1)),  # just above a tie that float32 would round it to
        ([0x3F800000, 0x00000002], [0x7F800000, 0x00800000], (0x7C00, 3)),
    ],
)
def test_products_of_float32_in_half(a: list[int], b: list[int], expected: tuple[int, int]) -> None:
    code, flags = bits.vecdot(np.array(a, np.uint32), np.array(b, np.uint32), "float32", pairwise("float16"))
    assert (code, flags) == expected
    assert dots.pairwise(a, b, (float32, float32), float16) == expected
