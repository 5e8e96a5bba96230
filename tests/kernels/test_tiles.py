"""What is around the steps of a tile: in which order tiles come, and what is known of their operands beforehand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from softfloat.kernels import fast, jit, one_by_one, quick_steps, steps, tiles
from softfloat.kernels.lanes import Tile, tile


@pytest.mark.parametrize("size", [1, 100_000, 1 << 16, 1 << 17, 1 << 19])
@pytest.mark.parametrize("across", [1, 2, 4])
@pytest.mark.parametrize("panels", [1, 2, 3, 5, 9])
def test_tiles_follow_each_other_as_they_are_numbered(panels: int, across: int, size: int) -> None:
    """From wherever a thread begins, and from one product to the next; each once."""
    numbered = [tiles.first_of(unit, panels, across, size) for unit in range(3 * panels * across)]
    for start in range(len(numbered)):
        place = numbered[start]
        for expected in numbered[start:]:
            assert place == expected
            place = tiles.next_of(*place, panels, across, tiles.together_of(size))
    assert sorted(x[:3] for x in numbered) == list(itertools.product(range(3), range(panels), range(across)))


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


class Turn:
    """What a step asks of a tile: one row and its columns."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self._a, self._b = (x.astype(np.float32).view(Numbers) for x in (a, b))

    def a(self, row: int) -> np.ndarray:
        return self._a

    def b(self) -> np.ndarray:
        return self._b

    def scaled_b(self, factor: float) -> np.ndarray:
        return self._b * factor


def nearest_even(exact: np.ndarray, digits: int) -> np.ndarray:
    significands, exponents = np.frexp(exact)
    return np.ldexp(np.rint(np.ldexp(significands, digits)), exponents - digits)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("family", "digits"), [("half", 11), ("bfloat16", 8)])
def test_splitting_rounds_to_nearest_even(
    family: str, digits: int, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each product of two significands, and each sum of float32's digits, of both signs."""
    monkeypatch.setattr(quick_steps, "has_feature", lambda name: fused)
    numbers = np.arange(2 ** (digits - 1), 2**digits) * 1.0
    a, b = np.repeat(numbers, numbers.size), -np.tile(numbers, numbers.size)
    np.testing.assert_array_equal(quick_steps.split_product(Turn(a, b), 0, family), nearest_even(a * b, digits))
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


@pytest.mark.skipif(not fast.has_feature("avx512bf16"), reason="the CPU has no AVX512_BF16")
def test_two_vectors_are_rounded_to_bfloat16_as_each_is() -> None:
    """On any CPU that has the instruction, whether it is the quicker way there or not; ties and overflows among them."""
    manner = steps.Manner("bfloat16")
    ways = one_by_one.paired_mul_add_step(), one_by_one.mul_add_step(manner, False)
    rng, lanes, found = np.random.default_rng(3), tiles.LANES[np.float32], []
    numbers = [rng.standard_normal(64 * size) * 2.0 ** rng.integers(-3, 4, 64 * size) for size in (tiles.ROWS, lanes)]
    a, b = ((x.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32) for x in numbers)
    for scale in (1.0, 2.0**64):
        for name, step in zip(("in pairs", "one by one"), ways, strict=True):
            state = np.zeros(tiles.ROWS * lanes, np.float32)
            brief_loop(name, step)(a * np.float32(scale), b * np.float32(2.0**60 if scale > 1 else 1.0), state)
            found.append(state.view(np.uint32))
        np.testing.assert_array_equal(*found[-2:])
    assert np.isinf(found[-1].view(np.float32)).any()
    assert len(set(found[0].tolist())) > 100


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
