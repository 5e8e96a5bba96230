"""Compensated sums rounded stochastically, against the plain loop: every operation of a method has a random number of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faster
import numpy as np
import pytest
from faster import by_threads, same
from unit_cases import HALF, SINGLE, drawn

from softfloat import Format, bits
from softfloat.accumulators import Accumulator, compensated
from softfloat.accumulators.accumulator import COMPENSATIONS
from softfloat.engine import unit_ways

METHODS = pytest.mark.parametrize("method", COMPENSATIONS)


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sums have their own loop here, too."""
    monkeypatch.setattr(unit_ways, "LEAST_LINE", 0)


def both_ways(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *given: Any, **options: Any) -> None:
    """In a line, and by the plain loop."""
    faster.both_ways(
        monkeypatch, function, *given, **{"rounding": "stochastic", "seed": 11, "stream": 1 << 33, **options}
    )


@METHODS
def test_bits_that_sixteen_leave_open(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some millions of roundings, a hundred or so."""
    rng = np.random.default_rng(73)
    for sums in (HALF, SINGLE, "bfloat16"):
        x, _ = bits.encode(rng.standard_normal((4000, 200)), SINGLE)
        both_ways(monkeypatch, bits.vecdot, x, x[::-1].copy(), SINGLE, compensated(sums, method), seed=5)
        few = x.reshape(-1)[: 3 << 16].reshape(3, 1 << 16)  # which are summed one by one
        both_ways(monkeypatch, bits.vecdot, few, few[:, ::-1].copy(), SINGLE, compensated(sums, method), seed=5)


@pytest.mark.parametrize("how", [compensated(HALF), compensated(SINGLE, "two_term")])
def test_threads_and_blocks(how: Accumulator) -> None:
    """The same bits for any number of threads, and for some rows as for all."""
    a, b = (drawn(np.random.default_rng(75), Format.from_name(HALF), (90, 90), 1.0) for _ in range(2))
    drawing = {"rounding": "stochastic", "seed": 3}
    found = by_threads(lambda: bits.matmul(a, b, HALF, how, **drawing))
    same(found)
    some = bits.matmul(a[:7], b, HALF, how, **drawing)
    same((some, (found[0][0][:7], found[0][1][:7])))
