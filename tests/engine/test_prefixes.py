"""Sums of the first 1, 2, 3 ... products in pairs, chains and segments, against the plain loop: the same codes and flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faster import SERVED, both, by_threads, same
from hypothesis import given
from hypothesis import strategies as st
from unit_cases import E4M3Z, E5M2, HALF, SINGLE, drawn

from softfloat import Format, bits
from softfloat.accumulators import (
    Accumulator,
    Reduction,
    Stage,
    chunked,
    compensated,
    fixed_point,
    fma,
    mul_add,
    pairwise,
)
from softfloat.engine import plain, prefixes

DRAWS = {"rounding": "stochastic", "seed": 4, "stream": 9}
STORED = chunked(5, HALF, SINGLE).replace(reduction=(Reduction(Stage(SINGLE), store=Stage(E5M2)),))
CASES: list[tuple[Accumulator, str, dict[str, Any]]] = [
    (pairwise(HALF), HALF, {}),
    (pairwise(HALF), E5M2, {"rounding": "toward_zero"}),
    (pairwise(E5M2), HALF, {"overflow": "nan"}),
    (pairwise("bfloat16"), "bfloat16", {"rounding": "to_odd", "ftz": True}),
    (pairwise(SINGLE), SINGLE, {"rounding": "nearest_away", "daz": True}),
    (pairwise(E4M3Z), E4M3Z, {}),
    (pairwise(HALF), HALF, {"out_format": "bfloat16"}),
    (chunked(8, HALF, SINGLE), HALF, {}),
    (chunked(8, HALF, HALF), HALF, {"rounding": "toward_negative", "overflow": "saturate"}),
    (chunked(3, mul_add(E5M2), HALF), E5M2, {"tininess": "before"}),
    (chunked(7, pairwise(HALF), SINGLE), HALF, {"out_format": HALF}),
    (chunked(1, HALF, HALF), HALF, {}),
    (chunked(1000, HALF, SINGLE), HALF, {}),
    (chunked(6, compensated(HALF), SINGLE), HALF, {}),
    (chunked(6, fixed_point(32, -16), SINGLE), HALF, {}),
    (STORED, HALF, {"rounding": "toward_positive"}),
    (STORED, HALF, {"daz": True}),
    (chunked(8, HALF, SINGLE), HALF, {"daz": True, "ftz": True}),
    (fma(HALF).replace(chains=4), HALF, {}),
    (mul_add(SINGLE).replace(chains=3), HALF, {"rounding": "toward_zero"}),
    (fma(E5M2).replace(chains=40), HALF, {"ftz": True}),
    (pairwise(HALF), HALF, DRAWS),
    (pairwise(E5M2), HALF, {**DRAWS, "sr_bits": 5, "daz": True, "overflow": "saturate"}),
    (pairwise(SINGLE), SINGLE, {**DRAWS, "out_format": "bfloat16"}),
    (fma(HALF).replace(chains=4), HALF, DRAWS),
    (mul_add(E5M2).replace(chains=3), E5M2, {**DRAWS, "sr_bits": 20, "ftz": True}),
]
SERVING = pytest.mark.parametrize(("accumulator", "fmt", "options"), CASES, ids=repr)


def both_ways(monkeypatch: pytest.MonkeyPatch, codes: Any, fmt: str, how: Accumulator, **options: Any) -> None:
    same(both(monkeypatch, lambda: bits.cumsum(codes, fmt, how, codes.ndim - 1, **options)))


@SERVING
def test_any_length(
    accumulator: Accumulator, fmt: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around powers of two, whole segments and chains; some outputs at a time."""
    monkeypatch.setattr(prefixes, "PIECE", 200)
    rng = np.random.default_rng(61)
    for length in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 40, 63, 64, 65, 300):
        for outputs, scale in ((1, 1.0), (9, 2.0**-13), (13, 600.0)):
            codes = drawn(rng, Format.from_name(fmt), (outputs, length), scale)
            both_ways(monkeypatch, codes, fmt, accumulator, **options)
    both_ways(monkeypatch, codes[:, :0], fmt, accumulator, **options)


@SERVING
def test_specials(accumulator: Accumulator, fmt: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities and NaN in some outputs, those that signal too, at every place of a short sum; every code there is."""
    rng, kind = np.random.default_rng(62), Format.from_name(fmt)
    codes = drawn(rng, kind, (60, 20), 1.0)
    special, _ = bits.encode([np.inf, np.nan, -np.inf, -0.0, np.inf], fmt)
    special[-1] += kind.infinities  # a NaN that signals, of formats that have such
    for row in range(60):
        codes[row, row % 20] = special[row % 5]
    both_ways(monkeypatch, codes, fmt, accumulator, **options)
    both_ways(monkeypatch, rng.integers(0, 1 << kind.bits, (80, 33)).astype(kind.dtype), fmt, accumulator, **options)
    largest = np.full((3, 33), bits.encode(kind.max, fmt)[0])
    both_ways(monkeypatch, largest, fmt, accumulator, **options)


@SERVED
@SERVING
def test_one_line_needs_no_plain_loop(
    accumulator: Accumulator, fmt: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes a hundred times longer for one output."""
    codes = drawn(np.random.default_rng(63), Format.from_name(fmt), (300,), 1.0)
    called: list[Any] = []
    monkeypatch.setattr(plain, "run", lambda *_: called.append(1))
    bits.cumsum(codes, fmt, accumulator, 0, **options)
    assert not called


@given(st.integers(1, 200), st.sampled_from([pairwise(HALF), chunked(8, HALF, HALF), fma(HALF).replace(chains=3)]))
def test_each_is_the_sum_of_so_many(length: int, accumulator: Accumulator) -> None:
    """As `sum` has it, which has other loops: codes and flags."""
    codes = drawn(np.random.default_rng(length), Format.from_name(HALF), (200,), 8.0)
    found, flags = bits.cumsum(codes, HALF, accumulator, 0)
    assert (found[length - 1], flags[length - 1]) == bits.sum(codes[:length], HALF, accumulator, 0)


@pytest.mark.parametrize("accumulator", [pairwise(HALF), chunked(8, HALF, SINGLE), fma(HALF).replace(chains=4)])
def test_threads(accumulator: Accumulator) -> None:
    codes = drawn(np.random.default_rng(64), Format.from_name(HALF), (500, 70), 1.0)
    same(by_threads(lambda: bits.cumsum(codes, HALF, accumulator, 1)))
