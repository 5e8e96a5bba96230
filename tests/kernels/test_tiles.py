"""Steps of a tile, and what is known of their operands beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from softfloat.kernels import fast, jit, quick_steps, steps, tiles
from softfloat.kernels.lanes import Tile, tile
from softfloat.kernels.sums import arithmetics
from softfloat.kernels.sums.description import Stage
from softfloat.kernels.sums.observers import Nobody


@pytest.mark.parametrize("size", [tiles.ROWS, tiles.LANES[np.float32]])
def test_the_least_magnitudes_of_turns(size: int) -> None:
    rng = np.random.default_rng(1)
    panels = rng.standard_normal((200, size)).astype(np.float32) * np.exp2(rng.integers(-149, 127, (200, 1))).astype(
        np.float32
    )
    panels[rng.random(panels.shape) < 0.3] = 0.0
    panels[0], panels[1], panels[2, 1:], panels[3, 0], panels[4] = 0.0, -0.0, 0.0, 2.0**-149, np.float32(3.4028235e38)
    low = np.empty(200, np.float32)
    tiles.least(size)(panels.reshape(-1), low)
    expected = np.where(panels == 0, np.float32(np.inf), abs(panels)).min(axis=1)
    np.testing.assert_array_equal(low, expected)


class Numbers(np.ndarray):
    """Numbers of float32 as steps take them."""

    def fused(self, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """self * b + c, which float64 holds, rounded once."""
        return (self.astype(np.float64) * b.astype(np.float64) + c).astype(np.float32)

    def apart_from(self, other: np.ndarray) -> np.ndarray:
        """Where their bits differ."""
        return self.view(np.int32) != other.view(np.int32)


def nearest_even(exact: np.ndarray, digits: int) -> np.ndarray:
    significands, exponents = np.frexp(exact)
    return np.ldexp(np.rint(np.ldexp(significands, digits)), exponents - digits)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("family", "digits"), [("half", 11), ("bfloat16", 8)])
def test_splitting_rounds_to_nearest_even(family: str, digits: int, fused: bool) -> None:
    """Each product of two significands, and each sum of float32's digits, of both signs."""
    split = arithmetics.Split(SimpleNamespace(fuses=fused, lift=1.0), Stage(family), Nobody(), {})
    numbers = np.arange(2 ** (digits - 1), 2**digits) * 1.0
    a, b = np.repeat(numbers, numbers.size), -np.tile(numbers, numbers.size)
    product = split.product(*(x.astype(np.float32).view(Numbers) for x in (a, b)))
    np.testing.assert_array_equal(product, nearest_even(a * b, digits))
    sums = np.arange(2.0**23, 2.0**24)
    for exact in (sums, -sums) if fused else (sums[::7],):
        rounded = steps.split(exact.astype(np.float32), quick_steps.SPLIT[family])
        np.testing.assert_array_equal(rounded, nearest_even(exact, digits))


def brief_loop(name: str, step: Callable[..., Any], kind: type[Tile] = Tile) -> Callable[..., Any]:
    """loop(a, b, state): turns of a step for one tile."""
    every = tile(("test", name), step, np.float32, (steps.VALUE,), (), kind=kind)

    def turns_loop(a, b, state):  # type: ignore[no-untyped-def]
        every(a, 0, 0, b, 0, 0, state, state, state, a.size // tiles.ROWS)

    return jit.compiled(turns_loop)


class Undirected(Tile):
    """Of a CPU whose instructions do not round in directions of their own."""

    directed = False


def to_odd(exact: Fraction) -> float:
    """The number of float32, or of the two around it the odd one."""
    unit = Fraction(2) ** max(math.frexp(float(abs(exact)))[1] - 24, -149)
    count = abs(exact) // unit
    odd = count if count * unit == abs(exact) else count | 1
    return math.copysign(float(odd * unit), exact)


@pytest.mark.skipif(not fast.has_feature("fma"), reason="without FMA wide products take the plain loop")
@pytest.mark.parametrize("kind", [Tile, Undirected])
def test_wide_products_and_their_sums_to_odd(kind: type[Tile]) -> None:
    """Products of 48 bits: alone, and with sums that they undo but for what the multiplication lost, or that lie far away."""
    manner, rng, lanes = steps.Manner("half", wide=True), np.random.default_rng(6), tiles.LANES[np.float32]

    def product(tile: Tile, row: int, state: dict[int, Any]) -> dict[int, Any]:
        return {steps.VALUE: steps.exact_product(tile, tile.a(row), tile.b(), manner)}

    def total(tile: Tile, row: int, state: dict[int, Any]) -> dict[int, Any]:
        return {steps.VALUE: steps.exact_fma(tile, tile.a(row), tile.b(), state[steps.VALUE], manner)}

    multiply, add = (brief_loop(f"{step.__name__} {kind.__name__}", step, kind) for step in (product, total))
    for number in range(12):
        a, b = (rng.standard_normal(size).astype(np.float32) for size in (tiles.ROWS, lanes))
        if number % 3 == 2:
            a, b = np.round(a * 4), np.round(b * 256)
        nearby = -np.multiply.outer(a, b).astype(np.float16).astype(np.float32).reshape(-1)
        far = np.exp2(rng.integers(-40, 40, nearby.size)) * rng.choice([1.0, -1.0], nearby.size)
        start = [nearby, far.astype(np.float32), np.zeros_like(nearby)][number // 3 % 3]
        state, products = start.copy(), np.zeros_like(start)
        multiply(a, b, products)
        add(a, b, state)
        exact = [Fraction(float(x)) * Fraction(float(y)) for x in a for y in b]
        assert products.tolist() == [to_odd(x) for x in exact]
        assert state.tolist() == [to_odd(x + Fraction(float(c))) for x, c in zip(exact, start, strict=True)]
