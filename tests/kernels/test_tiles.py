"""Steps of a tile, and what is known of their operands beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from llvmlite import ir
from softfloat.kernels import fast, steps, tiles
from softfloat.kernels.sums import quick, target
from softfloat.kernels.sums.description import Stage
from softfloat.kernels.sums.language import Code
from softfloat.kernels.sums.observers import Nobody
from softfloat.kernels.vectors import Vector

from softfloat.engine.arguments import Codes

ROWS, LANES = tiles.ROWS, tiles.LANES[np.float32]


@pytest.mark.parametrize("size", [ROWS, LANES])
def test_the_least_magnitudes_of_turns(size: int) -> None:
    rng = np.random.default_rng(1)
    panels = rng.standard_normal((200, size)).astype(np.float32) * np.exp2(rng.integers(-149, 127, (200, 1))).astype(
        np.float32
    )
    panels[rng.random(panels.shape) < 0.3] = 0.0
    panels[0], panels[1], panels[2, 1:], panels[3, 0], panels[4] = 0.0, -0.0, 0.0, 2.0**-149, np.float32(3.4028235e38)
    low = np.empty(200, np.float32)
    tiles.least()(panels, low)
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
    split = quick.Split(SimpleNamespace(fuses=fused, lift=1.0), Stage(family), Nobody(), {})
    numbers = np.arange(2 ** (digits - 1), 2**digits) * 1.0
    a, b = np.repeat(numbers, numbers.size), -np.tile(numbers, numbers.size)
    product = split.product(*(x.astype(np.float32).view(Numbers) for x in (a, b)))
    np.testing.assert_array_equal(product, nearest_even(a * b, digits))
    sums = np.arange(2.0**23, 2.0**24)
    for exact in (sums, -sums) if fused else (sums[::7],):
        rounded = steps.split(exact.astype(np.float32), quick.SPLIT[family])
        np.testing.assert_array_equal(rounded, nearest_even(exact, digits))


def turn_of(step: Callable[..., Vector], directed: bool) -> Callable[[Codes, Codes, Codes], None]:
    """loop(a, b, state): step(tile, a, b, c) of every row's number, a vector of columns, and the tile's state, which it changes."""
    module, pointer = ir.Module("test"), ir.FloatType().as_pointer()
    made = ir.Function(module, ir.FunctionType(ir.IntType(64), [ir.IntType(64).as_pointer()]), "loop")
    code = Code(made, LANES)
    a, b, state = (code.builder.inttoptr(code.get(made.args[0], n).value, pointer) for n in range(3))
    tile = SimpleNamespace(directed=directed and fast.has_feature("avx512f"))
    with code.loop(ROWS) as row:
        found = step(tile, code.splat(code.get(a, row)), code.load(b), code.load(state, row * LANES))
        code.store(found, state, row * LANES)
    code.builder.ret(code.int(0).value)
    function = target.linked(target.compiled(module))

    def loop(*arrays: Codes) -> None:
        function(np.array([x.ctypes.data for x in arrays], np.uint64).ctypes.data)

    return loop


def to_odd(exact: Fraction) -> float:
    """The number of float32, or of the two around it the odd one."""
    unit = Fraction(2) ** max(math.frexp(float(abs(exact)))[1] - 24, -149)
    count = abs(exact) // unit
    odd = count if count * unit == abs(exact) else count | 1
    return math.copysign(float(odd * unit), exact)


@pytest.mark.skipif(not fast.has_feature("fma"), reason="without FMA wide products take the plain loop")
@pytest.mark.parametrize("directed", [True, False])
def test_wide_products_and_their_sums_to_odd(directed: bool) -> None:
    """Products of 48 bits: alone, and with sums that they undo but for what the multiplication lost, or that lie far away."""
    stage, rng = steps.Stage("half", wide=True), np.random.default_rng(6)
    multiply = turn_of(lambda tile, a, b, c: steps.exact_product(tile, a, b, stage), directed)
    add = turn_of(lambda tile, a, b, c: steps.exact_fma(tile, a, b, c, stage), directed)
    for number in range(12):
        a, b = (rng.standard_normal(size).astype(np.float32) for size in (ROWS, LANES))
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
