"""Positions: what they accept, what they refuse, and the numbers that they give a block's elements."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softfloat
from softfloat import Environment, Position, bits
from softfloat.accumulators import chunked, fma

SR: dict[str, Any] = {"rounding": "stochastic", "seed": 5}


@given(st.data())
def test_a_place_numbers_elements_as_numpy_does(data: st.DataObject) -> None:
    whole = tuple(data.draw(st.lists(st.integers(1, 6), max_size=4), "whole"))
    index = tuple(data.draw(st.integers(0, size - 1)) for size in whole)
    block = tuple(data.draw(st.integers(0, size - at)) for size, at in zip(whole, index, strict=True))
    order = data.draw(st.permutations(range(len(whole))), "order")
    place = Position(index, whole).place(block, order)
    numbers = np.arange(int(np.prod(whole))).reshape([whole[axis] for axis in order]).transpose(np.argsort(order))
    cut = numbers[tuple(slice(at, at + size) for at, size in zip(index, block, strict=True))]
    found = place.first + sum(
        (step * i for step, i in zip(place.strides, np.indices(block), strict=True)), np.zeros(block, int)
    )
    assert (found == cut).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"index": -1}, "index must be at least 0"),
        ({"index": 1.0}, "index must be an integer"),
        ({"index": True}, "index must be an integer"),
        ({"index": (1, 2)}, "shape must be that of the whole"),
        ({"index": (1, 2), "shape": (4,)}, "index and shape must have the same axes"),
        ({"index": (1,), "shape": (-4,)}, "shape must be at least 0"),
        ({"index": (1,), "shape": "4"}, "shape must be a tuple of integers"),
        ({"index": (0, 0), "shape": (1 << 40, 1 << 40)}, "at most 2\\^62 elements"),
        ({"segment": 1}, "segment and k come together"),
        ({"k": 1}, "segment and k come together"),
        ({"segment": -1, "k": 5}, "segment must be at least 0"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Position(**arguments)


ONES = np.full((4, 6), 0x3C00, np.uint16)
HOW = chunked(2, fma("float16"), "float32")


@pytest.mark.parametrize("drawing", [SR, {}], ids=["stochastic", "nearest"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda **o: bits.add(ONES, ONES, "float16", position="1", **o), "position must be a softfloat.Position"),
        (lambda **o: bits.add(ONES, ONES, "float16", position=-1, **o), "position must be at least 0"),
        (lambda **o: bits.add(ONES, ONES, "float16", position=Position((1,), (9,)), **o), r"result of shape \(4, 6\)"),
        (lambda **o: bits.add(ONES, ONES, "float16", position=Position((1, 0), (4, 6)), **o), "does not lie"),
        (lambda **o: bits.exp(ONES, "float16", position=Position(segment=0, k=2), **o), "exp has none"),
        (lambda **o: bits.encode(1.5, "float16", position=Position((1,), (9,)), **o), r"result of shape \(\)"),
        (lambda **o: bits.to_integer(ONES, "float16", "int8", position=Position(segment=0, k=2), **o), "to_integer"),
        (lambda **o: bits.matmul(ONES, ONES.T, "float16", HOW, position=Position((0, 0), (3, 4)), **o), "does not lie"),
        (
            lambda **o: bits.sum(ONES, "float16", HOW, position=Position(segment=12, k=24), **o),
            "segment must be 0 to 11",
        ),
        (
            lambda **o: bits.sum(ONES, "float16", HOW, position=Position(segment=0, k=24), **o),
            "segment 0 has 2: 0 to 1",
        ),
        (
            lambda **o: bits.sum(ONES, "float16", fma("float16"), position=Position(segment=0, k=24), **o),
            "accumulator must have segments",
        ),
        (
            lambda **o: bits.vecdot(
                ONES[:, :2], ONES[:, :2], "float16", HOW, 0, position=Position(segment=0, k=6), **o
            ),
            "c must be None",
        ),
        (
            lambda **o: bits.cumsum(ONES, "float16", HOW, axis=1, position=Position((0, 1), (4, 9)), **o),
            "all of axis 1",
        ),
        (lambda **o: bits.cumsum(ONES, "float16", HOW, position=3, **o), "whole sums"),
        (
            lambda **o: bits.conv1d(ONES[None], ONES.T[None], "float16", HOW, position=Position(segment=0, k=6), **o),
            "conv1d has 6 products, and segment 0 has 2",
        ),
        (
            lambda **o: bits.conv2d_input_gradient(
                ONES[None, None], ONES[None, None], (1, 1, 4, 4), "float16", HOW, position=Position(segment=0, k=6), **o
            ),
            "segment of k",
        ),
        (lambda **o: bits.join_segments(ONES[:2], "float16", HOW, k=6, **o), r"shape \(3, \.\.\.\)"),
    ],
)
def test_refused_by_name(call: Any, message: str, drawing: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call(**drawing)


def test_refused_with_other_sources_of_random_numbers() -> None:
    with pytest.raises(ValueError, match="position comes with random_bits"):
        bits.add(ONES, ONES, "float16", rounding="SR", sr_bits=8, random_bits=ONES & 255, position=0)
    with pytest.raises(ValueError, match="generator must be 'philox4x32' with a position"):
        bits.add(ONES, ONES, "float16", generator="xoroshiro128aox", position=3, **SR)
    plain, _ = bits.add(ONES, 0x1001, "float16", generator="xoroshiro128aox", **SR)
    assert (bits.add(ONES, 0x1001, "float16", generator="xoroshiro128aox", position=0, **SR)[0] == plain).all()


def test_sums_beyond_the_addresses_are_refused() -> None:
    with pytest.raises(ValueError, match="addresses for 4294967296 outputs"):
        bits.sum(ONES, "float16", fma("float16"), axis=0, position=(1 << 32) - 5, **SR)
    assert bits.sum(ONES, "float16", fma("float16"), axis=0, position=(1 << 32) - 6, **SR)[0].size == 6


def test_an_environment_carries_a_position() -> None:
    draw = np.random.default_rng(1)
    x, y = (softfloat.array(draw.normal(size=(7, 9)), softfloat.float16) for _ in range(2))
    with softfloat.environment(accumulator=fma("float16"), **SR):
        whole, product, power = x * y, x @ y.T, np.exp(x)
    with softfloat.environment(accumulator=fma("float16"), position=Position((2, 4), (7, 9)), **SR) as env:
        assert env.position == Position((2, 4), (7, 9))
        block = x[2:5, 4:] * y[2:5, 4:]
        with softfloat.environment(position=Position((2, 3), (7, 7))):
            part = x[2:5] @ y[3:].T
        one = np.exp(x[2:5, 4:])
        with pytest.raises(ValueError, match="does not lie"):
            x * y
    assert (block.codes == whole.codes[2:5, 4:]).all()
    assert (part.codes == product.codes[2:5, 3:]).all()
    assert (one.codes == power.codes[2:5, 4:]).all()
    assert (block.codes != (x * y).codes[2:5, 4:]).any()


def test_an_environment_hands_its_position_to_bits_and_to_copies() -> None:
    env = Environment(position=3, **SR)
    assert env.position == Position(3)
    other = pickle.loads(pickle.dumps(env))
    assert other.position == Position(3)
    assert env.replace(position=None).position is None
    x = np.arange(0x3C00, 0x3C00 + 40, dtype=np.uint16)
    expected = bits.mul(x, x, "float16", position=3, **SR)[0]
    assert (bits.mul(x, x, "float16", environment=env)[0] == expected).all()
    assert (bits.mul(x, x, "float16", environment=env, position=0)[0] != expected).any()
    with pytest.raises(TypeError, match="position must be"):
        Environment(position="here")  # type: ignore[arg-type]
