"""What quantisation loses: rules for scales, and widths of sums, against computations of their own."""

from __future__ import annotations

import numpy as np
import pytest

from softfloat import bits
from softfloat.accumulators import exact, fma
from softfloat.experiments import accumulation_widths, scale_rule_losses


def test_rules_lose_what_their_blocks_lose() -> None:
    """One place, one rule, block by block."""
    losses = scale_rule_losses("mxfp4", ["rceil"], places=2, blocks=10, seed=3)
    drawn = np.random.default_rng(3).normal(size=(10, 32))
    x = (drawn / np.abs(drawn).max(axis=1, keepdims=True) * 2**0.5).astype(np.float32)
    wrong = bits.dequantize(bits.quantize(x, "mxfp4", "rceil")[0]) - x
    assert losses.errors[0, 1] == pytest.approx(np.sqrt((wrong**2).mean() / (x.astype(float) ** 2).mean()))
    assert losses.places.tolist() == [1, 2**0.5]


def test_where_rules_part() -> None:
    """Below 1.5 all have one scale. Above, rounding up loses resolution; near 2, floor saturates, which nothing else does."""
    losses = scale_rule_losses("mxfp4", blocks=100)
    floor, even, rceil = losses.errors
    below, near = losses.places <= 1.5, losses.places > 1.75
    np.testing.assert_array_equal(floor[below], rceil[below])
    np.testing.assert_array_equal(even[losses.places < 1.75], floor[losses.places < 1.75])
    np.testing.assert_array_equal(even[near], rceil[near])
    assert losses.saturated[2].max() == 0
    assert losses.saturated[0][near].min() > 0
    assert losses.best(1.6) == "floor"
    assert losses.best(1.97) == "even"
    assert losses.means["even"] < min(losses.means["floor"], losses.means["rceil"])


def test_widths() -> None:
    hopper, promoted, blackwell, single = accumulation_widths(4096, products=8, shift=1.0)
    assert hopper.error > 100 * promoted.error
    assert promoted.error > 50 * blackwell.error
    assert single.largest < 1e-6
    assert accumulation_widths(64, accumulators=[exact("float32")], products=3)[0].largest == 0
    assert [x.name for x in accumulation_widths(8, accumulators=[fma("float16")], products=1)] == ["fma('float16')"]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="rules 'te' makes scales with fractions"):
        scale_rule_losses("mxfp4", ["te"])
    with pytest.raises(ValueError, match="places must be a positive integer"):
        scale_rule_losses(places=0)
    with pytest.raises(ValueError, match="length must be a positive integer"):
        accumulation_widths(0)
