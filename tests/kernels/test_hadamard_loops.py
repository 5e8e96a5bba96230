"""Butterflies against the accumulator's own sums, run by run: numbers, flags, and what is left to the plain way."""

from __future__ import annotations

import numpy as np
import pytest
from softfloat.kernels import jit

from softfloat import engine
from softfloat.accumulators import Alignment, fma, tensor_core
from softfloat.formats import float32
from softfloat.scaling import BlockScaling, Hadamard, Operand, quantized
from softfloat.scaling import hadamard as transforms


def runs(n: int) -> np.ndarray:
    """Runs of all kinds: of one size, of many, small integers, zeros of both signs, cancelling ones, the ends of the range, special numbers."""
    random = np.random.default_rng(n)
    normal = random.normal(size=(60, n))
    wide = random.normal(size=(60, n)) * 2.0 ** random.integers(-30, 30, (60, n)) * (random.random((60, n)) < 0.8)
    whole = random.integers(-8, 9, (60, n)).astype(np.float64)
    x = np.concatenate(
        [normal, wide, whole, np.zeros((1, n)), -np.zeros((1, n)), np.ones((1, n)), normal[:1] * 2.0**-140]
    )
    x = np.concatenate([x, normal[:2] * 2.0**126, normal[:2] * 2.0**-70]).astype(np.float32)
    special = np.ones((6, n), np.float32)
    special[0, 1], special[1, 2] = np.nan, np.inf
    # bfloat16 rounds the first two, which are tiny, has the next, and makes infinity of the last
    special[2:, 3] = np.array([0x00018001, 0x007FFFFF, 0x00010000, 0x7F7FFFFF], np.uint32).view(np.float32)
    return np.concatenate([x, special])


@pytest.mark.parametrize("n", [4, 16])
@pytest.mark.parametrize("core", ["B200", "A100", "fma"])
def test_the_accumulator(monkeypatch: pytest.MonkeyPatch, n: int, core: str) -> None:
    signs = tuple(np.random.default_rng(1).choice([-1, 1], n).tolist())
    sums = fma("float32") if core == "fma" else tensor_core(core, input="bfloat16")
    how = Hadamard(signs=signs, accumulator=sums)
    served = core == "B200" or (core == "A100" and n == 4)
    if not jit.DISABLED:
        assert engine.serves_transform(sums, how.format, n) == served
    x = runs(n)
    found, flags = transforms.transformed_whole(x, how)
    monkeypatch.setattr(engine, "serves_transform", lambda *_: False)
    plain, plain_flags = transforms.transformed_whole(x, how)
    np.testing.assert_array_equal(found.view(np.uint32), plain.view(np.uint32))
    assert flags == plain_flags
    if not served:
        return
    monkeypatch.undo()
    each = [transforms.transformed_whole(row, how)[1] for row in x[:, None]]
    monkeypatch.setattr(engine, "serves_transform", lambda *_: False)
    assert each == [transforms.transformed_whole(row, how)[1] for row in x[:, None]]
    assert 0 < np.count_nonzero(each) < len(each)


def test_what_is_not_served() -> None:
    core = tensor_core("B200", input="bfloat16")
    assert not engine.serves_transform(core, float32, 16)  # whose inputs are others
    assert not engine.serves_transform(core, Hadamard().format, 64)
    for aligned in (Alignment(26), Alignment(25, zeros=-126), Alignment(25, least=-64)):
        assert not engine.serves_transform(core.replace(alignment=aligned), Hadamard().format, 16)


@pytest.mark.parametrize("block", [None, (16, 16), (4, 16), (16, 1)])
def test_operands_that_lie_across_are_the_same(block: tuple[int, int] | None) -> None:
    """The same numbers in either order of memory."""
    x = np.random.default_rng(5).normal(size=(70, 50)).astype(np.float32)
    operand = Operand(scaling=BlockScaling(format="nvfp4", block=block))  # type: ignore[arg-type]
    one, other = (quantized(v, operand, -2, count=True) for v in (x, np.asfortranarray(x)))
    for name in ("elements", "scales"):
        np.testing.assert_array_equal(getattr(one.codes, name), getattr(other.codes, name))
    assert one.codes.block_shape == other.codes.block_shape
    assert (one.codes.axis, one.codes.tensor_scale) == (other.codes.axis, other.codes.tensor_scale)
    assert (one.flags, one.saturated, one.underflowed, one.amax) == (
        other.flags,
        other.saturated,
        other.underflowed,
        other.amax,
    )
