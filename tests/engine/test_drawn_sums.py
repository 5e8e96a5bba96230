"""Sums in pairs and exact ones, rounded stochastically: the faster ways against the plain loop, to the bit and the flag."""

from __future__ import annotations

from typing import Any

import faster
import numpy as np
import pytest
from softfloat.kernels.spec import CARRIER64, Rule
from unit_cases import drawn

from softfloat import Format, Position, Rounding, bits, engine
from softfloat.accumulators import Accumulator, exact, pairwise
from softfloat.engine import lines, small

STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 7}


def both_ways(*arguments: Any, function: Any = bits.matmul, **options: Any) -> Any:
    """The faster way's result, which is the plain loop's."""
    options = options if "environment" in options else STOCHASTIC | options
    with pytest.MonkeyPatch.context() as patch:
        for name in ("product", "total"):
            patch.setattr(small, name, lambda *_: None)
        return faster.both_ways(patch, function, *arguments, **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("flushes", [{}, {"daz": True}, {"ftz": True, "sr_bits": 5}], ids=str)
@pytest.mark.parametrize("name", ["float16", "float8_e5m2", "float8_e4m3fnuz", "tfloat32"])
def test_sums_that_are_flushed(name: str, flushes: dict[str, Any]) -> None:
    """Leaves and sums on either side of the smallest normal number, and where there is one zero only."""
    fmt, rng = Format.from_name(name), np.random.default_rng(5)
    for length, scale in ((67, 1.0), (33, 4.0), (1, 0.5), (8, 0.25)):
        x = rng.standard_normal((40, length)) * (scale * float(fmt.tiny) ** 0.5)
        a = bits.encode(np.where(rng.random(x.shape) < 0.2, 0, x), fmt)[0]
        tiny = bits.encode(rng.integers(-5, 6, (40, length)) * float(fmt.tiny) / 4, fmt)[0]
        c = tiny[:, 0].copy()
        both_ways(a, a, fmt, pairwise(fmt), c, function=bits.vecdot, **flushes)
        both_ways(a, a.T, fmt, pairwise(fmt), **flushes)
        both_ways(tiny, fmt, pairwise(fmt), 1, function=bits.sum, **flushes)


def test_exact_sums_whose_terms_cancel() -> None:
    """All that is left is the smallest term, or nothing; sums far below the others' last bits."""
    rng = np.random.default_rng(8)
    a, b = (
        rng.integers(0, 0x7C00, (20, 40), dtype=np.uint16) | rng.integers(0, 2, (20, 40), dtype=np.uint16) << 15
        for _ in "ab"
    )
    for how in (exact("float16"), exact("float32")):
        for more in (0, 1):
            x, y = np.hstack([a, a ^ 0x8000, a[:, :more]]), np.hstack([b, b, b[:, :more]])
            both_ways(x, y, "float16", how, function=bits.vecdot)
            both_ways(x, y.T, "float16", how)


@pytest.mark.parametrize("how", [exact("float16"), pairwise("float16")], ids=repr)
def test_blocks_of_a_larger_result(how: Accumulator) -> None:
    """A block draws what the whole draws there, by both ways."""
    rng = np.random.default_rng(3)
    a, b = drawn(rng, how.partials, (40, 37), 1.0), drawn(rng, how.partials, (37, 50), 1.0)
    whole = both_ways(a, b, "float16", how)
    for rows, columns in ((slice(3, 29), slice(5, 44)), (slice(7, 8), slice(0, 50)), (slice(0, 40), slice(9, 10))):
        position = Position((rows.start, columns.start), (40, 50))
        block = both_ways(a[rows], b[:, columns], "float16", how, position=position)
        for one, other in zip(block, whole, strict=True):
            np.testing.assert_array_equal(one, other[rows, columns])


def test_lines_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of a larger result, some outputs at a time."""
    monkeypatch.setattr(lines, "PIECE", 1)
    rng, fmt = np.random.default_rng(5), Format.from_name("float16")
    a, b = (bits.encode(rng.standard_normal(shape), fmt)[0] for shape in ((300, 19), (19, 1)))
    both_ways(a, b, fmt, pairwise(fmt), position=Position((2, 3), (310, 7)))
    both_ways(a, fmt, pairwise(fmt), 1, function=bits.sum)


@pytest.mark.parametrize("share", [2**52 - 1, 2**52 - 3, 2**52 - 2**40])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_a_tree_settles_what_the_carrier_hides(share: int, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 and just what the random number takes to round up, or a little less or more."""
    from softfloat.kernels import accumulate

    fmt = Format.from_name("bfloat16")
    numbers = engine.numbers(fmt.spec, fmt.spec, Rule(rounding=Rounding.STOCHASTIC), CARRIER64)
    monkeypatch.setattr(accumulate, "dot_low", lambda *address: share % 2**36)
    y = (2**52 - share) * 2.0**-52 * fmt.eps * (1 + side * fmt.eps)
    found, flags = faster.summed_again(1.0, y, share >> 36, numbers)
    assert (found, flags) == (1 + fmt.eps * (side >= 0), 1)
