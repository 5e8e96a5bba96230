"""Codes that loops make of sums, of every number of many formats."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat import ROSTER, Format, bits
from softfloat.accumulators import fma, mul_add, pairwise
from softfloat.engine import plain, ways

DRAWN = [
    Format(f"e{e}m{m} {bias} {nan}", e, m, bias=bias, nan=nan)
    for (e, m), bias, nan in itertools.product(
        [(2, 1), (4, 3), (5, 2), (5, 10), (6, 9), (7, 10), (8, 4), (8, 7), (8, 10)], (None, 4, 120, 126), ("ieee", "fn", "fnuz", "none")
    )
    if bias is None or (2**e - bias < 127 and 1 - bias > -126)
]  # fmt: skip
NARROW = [fmt for fmt in [*ROSTER.values(), *DRAWN] if fmt.bits <= 19 and ways.family_of_sums(fmt.spec)[0]]


def grid(a: Any, b: Any, c: Any, **call: Any) -> Any:
    """Each of some outputs in a grid, filled up to whole rows."""
    whole = np.resize(c, (-(-c.size // 20), 20))
    codes, flags = bits.matmul(np.full((len(whole), 3), a, c.dtype), np.full((3, 20), b, c.dtype), c=whole, **call)
    return codes.reshape(-1)[: c.size], flags.reshape(-1)[: c.size]


def line(a: Any, b: Any, c: Any, **call: Any) -> Any:
    """Side by side."""
    operands = (np.full((c.size, 3), x, c.dtype) for x in (a, b))
    return bits.vecdot(*operands, c=c, **call)


@pytest.mark.parametrize("laid_out", [grid, line])
@pytest.mark.parametrize("order", [fma, mul_add, pairwise])
def test_numbers_that_nothing_is_added_to(
    order: Callable[[Format], Any], laid_out: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum that begins with a number and adds -0, or +0 where there is no -0, is that number: every code comes back."""
    left: list[int] = []
    monkeypatch.setattr(plain, "run", lambda problem, *rest: left.append(problem.b.size))
    for fmt in NARROW:
        found = np.arange(1 << fmt.bits, dtype=fmt.dtype)
        c = found[(found & fmt.sign_bit - 1) <= fmt.max_code]
        if not fmt.signed_zero:
            c = c[c != fmt.sign_bit]
        magnitude = np.abs(np.asarray(bits.decode(c, fmt)))
        c = c[((magnitude >= 2.0**-90) & (magnitude < 2.0**55)) | (magnitude == 0)]  # others are the plain way's
        zero = fmt.sign_bit if fmt.signed_zero else 0
        call = {"fmt": fmt, "accumulator": order(fmt), "overflow": "infinity" if fmt.has_nan else "saturate"}
        codes, flags = laid_out(zero, 1 << fmt.mantissa_bits, c, **call)
        np.testing.assert_array_equal(codes, c, err_msg=str(fmt))
        assert not flags.any()
    assert not left
