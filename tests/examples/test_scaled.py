"""Trainings with recipes: deterministic, and told apart."""

from __future__ import annotations

import pytest
from needed import needs

torch = pytest.importorskip("torch")
needs("sklearn")

from softfloat.accumulators import fma  # noqa: E402 -- after the skips
from softfloat.examples import scaled  # noqa: E402


def test_recipes_side_by_side() -> None:
    """The same weights and batches: eight bits in blocks come near single precision; again, the same bits."""
    ways = ["float32", "bfloat16", "mxfp8"]
    found = {x.name: x for x in scaled.train(ways, epochs=1, limit=256, accumulator=fma("float32"))}
    assert list(found) == ways
    single = found["float32"]
    assert single.loss == pytest.approx(single.own_loss, rel=1e-5)
    assert found["mxfp8"].loss == pytest.approx(single.loss, rel=0.02)
    assert found["mxfp8"].own_loss not in (single.own_loss, found["bfloat16"].own_loss)
    again = scaled.train({"again": "mxfp8"}, epochs=1, limit=256, accumulator=fma("float32"))
    assert again[0].own_loss == found["mxfp8"].own_loss


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="ways must be one of"):
        scaled.train(["fp8"])
    with pytest.raises(ValueError, match="epochs must be"):
        scaled.train(["float32"], epochs=0)


def test_recipes_by_layer_and_of_the_last_epoch() -> None:
    """Each part changes what it should: layers by their paths, the forward product in the end only."""
    parts = scaled.nvfp4_parts()
    ways = {"bfloat16": "bfloat16", "none": scaled.Way({"*": None}), **parts}
    found = {x.name: x for x in scaled.train(ways, epochs=2, limit=128, accumulator=fma("float32"))}
    losses = [found[name].own_loss for name in parts]
    assert len(set(losses)) == len(losses)
    assert found["none"].accuracy == pytest.approx(found["bfloat16"].accuracy, abs=0.02)
    with pytest.raises(ValueError, match="ways must be one of"):
        scaled.train({"wrong": scaled.Way("nvfp4", {"*": "fp9"})})
