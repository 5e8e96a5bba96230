"""Products of recipes: quantised, transformed and multiplied step by step by the oracle, on exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from softfloat import ROSTER, Environment, bits, reference
from softfloat.accumulators import chunked, exact, fma, tensor_core
from softfloat.bits.blocks.scales import product_of_scales
from softfloat.reference import dots, quantize_block
from softfloat.scaling import (
    RECIPES,
    AmaxHistory,
    BlockScaling,
    CurrentScaling,
    Hadamard,
    Operand,
    Product,
    hadamard_matrix,
    matmul,
    multiplied,
    nvfp4_scaling,
    quantized,
    swapped,
    tensor_scaling,
)

E2M1, E4M3, E5M2, E8M0, F32, BF16 = (
    ROSTER[x]
    for x in ("float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float32", "bfloat16")
)  # fmt: skip


def drawn(shape: tuple[int, ...], number: int) -> np.ndarray:
    """Numbers of bfloat16, of many sizes, zeros among them."""
    random = np.random.default_rng(number)
    x = random.normal(size=shape) * 2.0 ** random.integers(-6, 6, shape) * (random.random(shape) < 0.9)
    return np.asarray(bits.decode(bits.encode(x, "bfloat16", flags="any")[0], "bfloat16")).astype(np.float32)


def blocks_of(x: np.ndarray, fmt: str, rule: str, block: tuple[int, int], **more: Any) -> tuple[Any, Any]:
    """(codes, codes of each element's scale) by the oracle, block by block."""
    codes, scales = np.zeros(x.shape, int), np.zeros(x.shape, int)
    for i in range(0, x.shape[0], block[0]):
        for j in range(0, x.shape[1], block[1]):
            part = np.s_[i : i + block[0], j : j + block[1]]
            found = quantize_block(x[part].astype(float).ravel().tolist(), fmt, rule, **more)
            codes[part], scales[part] = np.reshape(found.codes, x[part].shape), found.scale
    return codes, scales


def single(x: Fraction) -> Fraction:
    return Fraction(float(np.uint32(code(x)).view(np.float32)))


def code(x: Fraction | float) -> int:
    return reference.encode(Fraction(x), F32)[0]


@pytest.mark.parametrize("name", ["forward", "input_gradient", "weight_gradient"])
def test_nvfp4(name: str) -> None:
    """Blocks, the transform, the tensor core, and both tensor scales: everything but random numbers."""
    product = nvfp4_scaling(stochastic=False).products[name]
    x, y = drawn((2, 80), 1), drawn((80, 3), 2)
    c = drawn((2, 3), 3)
    left, right = x, y
    if name == "weight_gradient":
        left, right = transformed(x), transformed(y.T).T
    second = (16, 16) if name != "weight_gradient" else (16, 1)
    amax = [Fraction(float(np.abs(v).max())) for v in (left, right)]
    a, a_scales = blocks_of(left, "nvfp4", "te", (1, 16), tensor_amax=amax[0])
    b, b_scales = blocks_of(right, "nvfp4", "te", second, tensor_amax=amax[1])
    tensor = [reference.tensor_scale_of(v, "nvfp4", "te") for v in amax]
    shared = single(tensor[0] * tensor[1])
    codes, _ = matmul(x, y, product, c.view(np.uint32))
    for i in range(2):
        for j in range(3):
            total, _ = dots.scaled_core(
                a[i].tolist(), b[:, j].tolist(), (E2M1, E2M1),
                (a_scales[i].tolist(), b_scales[:, j].tolist()), (E4M3, E4M3), True,
            )  # fmt: skip
            scaled, _ = reference.mul(code(shared), total, F32)
            assert int(codes[i, j]) == reference.add(scaled, int(c[i, j].view(np.uint32)), F32)[0]


def transformed(x: np.ndarray) -> np.ndarray:
    """Runs of 16 of the last axis by the matrix, entry by entry; summed as a tensor core does, and rounded to bfloat16."""
    signs = [1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1]
    result = np.empty(x.shape, np.float32)
    for i in range(x.shape[0]):
        for first in range(0, x.shape[1], 16):
            run = [reference.encode(Fraction(float(v)), BF16)[0] for v in x[i, first : first + 16]]
            for j in range(16):
                column = [signs[k] * (-1) ** bin(k & j).count("1") * Fraction(1, 4) for k in range(16)]
                weights = [reference.encode(w, BF16)[0] for w in column]
                total, _ = dots.tensor_core(run, weights, (BF16, BF16), "B200", input="bfloat16", out_format=BF16)
                result[i, first + j] = float(np.uint32(total << 16).view(np.float32))
    return result


def test_mxfp8() -> None:
    product = RECIPES["mxfp8_hybrid"].input_gradient
    x, y = drawn((2, 40), 4), drawn((40, 2), 5)
    a, a_scales = blocks_of(x, "mxfp8_e5m2", "rceil_saturate", (1, 32))
    b, b_scales = blocks_of(y, "mxfp8_e4m3", "rceil_saturate", (32, 1))
    codes, flags = matmul(x, y, product)
    for i in range(2):
        for j in range(2):
            wanted = dots.scaled_core(
                a[i].tolist(), b[:, j].tolist(), (E5M2, E4M3),
                (a_scales[i].tolist(), b_scales[:, j].tolist()), (E8M0, E8M0), False,
            )  # fmt: skip
            assert (int(codes[i, j]), int(flags[i, j])) == wanted


@pytest.mark.parametrize("order", ["scales_first", "first", "second"])
@pytest.mark.parametrize("per", ["tensor", "row"])
def test_scaled_tensors(per: str, order: str) -> None:
    recipe = tensor_scaling(
        "float8_e4m3fn", "float8_e5m2", per=per, accumulators=(fma("float32"),) * 3, scale_order=order
    )
    product = recipe.input_gradient
    x, y, c = drawn((2, 9), 6), drawn((9, 3), 7), drawn((2, 3), 8)
    codes, flags = matmul(x, y, product, c.view(np.uint32))
    rows = [x] * 2 if per == "tensor" else [x[i : i + 1] for i in range(2)]
    columns = [y] * 3 if per == "tensor" else [y[:, j : j + 1] for j in range(3)]
    for i in range(2):
        for j in range(3):
            parts, scales = [], []
            for v, whole, fmt in ((x[i], rows[i], E5M2), (y[:, j], columns[j], E4M3)):
                scale = single(Fraction(fmt.max) / Fraction(float(np.abs(whole).max())))
                parts.append(
                    [reference.encode(single(Fraction(float(n)) * scale), fmt, overflow="saturate")[0] for n in v]
                )
                scales.append(code(single(1 / scale)))
            total, raised = dots.fma(parts[0], parts[1], (E5M2, E4M3), F32)
            steps = scales if order == "first" else scales[::-1]
            if order == "scales_first":
                shared, more = reference.mul(*scales, F32)
                steps, raised = [shared], raised | more
            for step in steps:
                total, more = reference.mul(step, total, F32)
                raised |= more
            total, more = reference.add(total, int(c[i, j].view(np.uint32)), F32)
            assert (int(codes[i, j]), int(flags[i, j])) == (total, raised | more)


def test_deepseek() -> None:
    """Blocks of 128 and 128 x 128, sums of 128 products scaled as they are added."""
    x, y = drawn((2, 130), 9), drawn((130, 2), 10)
    product = RECIPES["deepseek_v3"].forward
    plain = Product(
        first=product.first, second=product.second, accumulator=chunked(128, "float32", "float32", "scales_fused")
    )
    codes, flags = matmul(x, y, plain)
    minimum = Fraction(float(np.float32(1e-4)))
    for i in range(2):
        for j in range(2):
            elements, scales = [], []
            for v, whole in ((x[i], x[i : i + 1].T), (y[:, j], y)):
                made, shared = [], []
                for first in (0, 128):
                    amax = max(Fraction(float(np.abs(whole[first : first + 128]).max())), minimum)
                    scale = single(amax / Fraction(448))
                    inverse = single(1 / scale)
                    part = v[first : first + 128]
                    made += [
                        reference.encode(single(Fraction(float(n)) * inverse), E4M3, overflow="saturate")[0]
                        for n in part
                    ]
                    shared += [code(scale)] * len(part)
                elements.append(made)
                scales.append(shared)
            wanted = dots.scaled_chunks(
                elements[0],
                elements[1],
                (E4M3, E4M3),
                (scales[0], scales[1]),
                (F32, F32),
                128,
                F32,
                F32,
                "scales_fused",
            )
            assert (int(codes[i, j]), int(flags[i, j])) == wanted


@pytest.mark.parametrize("name", RECIPES)
def test_transposed_products_are_the_same(name: str) -> None:
    """(first @ second).T is second.T @ first.T with everything exchanged, in accumulators without an order of operands too."""
    x, y = drawn((20, 48), 11), drawn((48, 18), 12)
    for product in RECIPES[name].products.values():
        remembered = [[AmaxHistory(o.scaling) if "Delayed" in repr(o.scaling) else None for o in pair]
                      for pair in ((product.first, product.second), (product.second, product.first))]  # fmt: skip
        if product.first.sr_bits:
            continue  # random numbers have the address of an element
        codes, flags = matmul(x, y, product, histories=tuple(remembered[0]))
        again, same = matmul(y.T, x.T, swapped(product), histories=tuple(remembered[1]))
        np.testing.assert_array_equal(codes, again.T)
        np.testing.assert_array_equal(flags, same.T)


@pytest.mark.parametrize("per", [16, 48, (8, 16), (16, 16)])
def test_tiles_of_numbers_that_lie_across(per: int | tuple[int, int]) -> None:
    """Numbers that follow each other along the axis of the sum have the codes, scales and flags of those that do not."""
    x, operand = drawn((160, 40), 21), Operand(scaling=CurrentScaling(format=E4M3, per=per))
    for special in (1.0, np.nan, 1e-42):
        x[3, 5] = special
        lying, across = (quantized(y, operand, -2, count=True) for y in (x, np.asfortranarray(x)))
        assert lying.codes.format == across.codes.format
        assert lying.codes.block_shape == across.codes.block_shape
        np.testing.assert_array_equal(lying.codes.elements, across.codes.elements)
        np.testing.assert_array_equal(lying.codes.scales, across.codes.scales)
        told = [(y.amax, y.scales, y.saturated, y.underflowed, y.flags) for y in (lying, across)]
        np.testing.assert_equal(*told)


def test_random_bits_of_gradients() -> None:
    """Eight of them, at the element's place: each result is that of the oracle with some 8 bits, and they differ."""
    operand = RECIPES["nvfp4"].input_gradient.first
    x = np.full((1, 16), 0.75, np.float32)
    x[0, 0] = 6.0
    once = quantized(x, operand, -1, seed=1, stream=5)
    again = quantized(x, operand, -1, seed=1, stream=5)
    np.testing.assert_array_equal(once.codes.elements, again.codes.elements)
    other = [quantized(x, operand, -1, seed=1, stream=n).codes.elements for n in range(64)]
    values = bits.decode(np.array(other), "float4_e2m1fn")[:, 0, 1:]
    assert set(np.unique(values)) == {0.5, 1.0}
    assert abs(values.mean() - 0.75) < 0.03


def test_the_transform_is_orthogonal_and_cancels() -> None:
    matrix = hadamard_matrix(Hadamard())
    np.testing.assert_array_equal(matrix @ matrix.T, np.eye(16))
    how = Operand(hadamard=Hadamard(format=F32, accumulator=exact("float32")))
    x, y = np.round(drawn((3, 40), 13)), np.round(drawn((40, 2), 14))
    a, b = quantized(x, how, -1), quantized(y, how, -2)
    assert a.codes.shape == (3, 48)
    codes, _ = multiplied(a, b, exact("float32"))
    np.testing.assert_allclose(codes.view(np.float32), x @ y, rtol=1e-5, atol=1e-3)


def test_operands_that_are_left_as_they_are() -> None:
    x, y = drawn((3, 40), 15), drawn((40, 2), 16)
    mx = Operand(scaling=BlockScaling(format="mxfp4"))
    codes, _ = matmul(x, y, Product(first=Operand(), second=mx, accumulator=fma("float32")))
    blocks, _ = bits.quantize(y, "mxfp4", axis=0)
    expected, _ = bits.matmul(
        x.view(np.uint32), bits.dequantize(blocks).astype(np.float32).view(np.uint32), "float32", fma("float32")
    )
    np.testing.assert_array_equal(codes, expected)
    scaled = Operand(scaling=CurrentScaling(format="float8_e4m3fn"))
    with pytest.raises(ValueError, match="b has values that float32 does not hold"):
        matmul(x, y, Product(first=Operand(), second=scaled, accumulator=fma("float32")))


def test_what_is_refused() -> None:
    x, y = drawn((2, 4), 17), drawn((4, 2), 18)
    product = tensor_scaling().forward
    with pytest.raises(ValueError, match="rounding must be deterministic for operands with scales"):
        matmul(x, y, product, rounding="stochastic", environment=None)
    with pytest.raises(ValueError, match="signs must be 4, 16, 64 or 256"):
        Hadamard(signs=(1, -1))
    with pytest.raises(TypeError, match="product must be Product"):
        matmul(x, y, RECIPES["nvfp4"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sr_bits must be 1 to 52"):
        Operand(sr_bits=60)
    with pytest.raises(TypeError, match="scaling must be CurrentScaling or DelayedScaling or BlockScaling or None"):
        Operand(scaling=E4M3)  # type: ignore[arg-type]


def test_the_table() -> None:
    for name, recipe in RECIPES.items():
        assert recipe.name == name
        assert all((recipe.meaning, recipe.source, recipe.standing))
        assert len(recipe.describe().splitlines()) == 3
    assert [name for name, x in RECIPES.items() if x.remembers] == ["delayed_scaling"]
    assert [name for name, x in RECIPES.items() if x.draws] == ["nvfp4", "torchao_nvfp4"]
    core = tensor_core("B200", input="float8_e4m3fn", instruction="mxf8f6f4")
    assert {p.accumulator for p in RECIPES["mxfp8"].products.values()} == {core}
    assert math.isclose(max(x.amax for x in [quantized([1.0, -3.0], Operand(), 0)]), 3.0)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("shape", [(0, 8, 3), (2, 0, 3), (2, 8, 0)], ids=str)
def test_nothing_to_multiply(recipe: str, shape: tuple[int, int, int]) -> None:
    """Operands without numbers: a sum of nothing is 0."""
    m, k, n = shape
    for product in RECIPES[recipe].products.values():
        histories = [
            AmaxHistory(x.scaling) if RECIPES[recipe].remembers else None for x in (product.first, product.second)
        ]  # type: ignore[arg-type]
        codes, flags = matmul(
            np.ones((m, k), np.float32),
            np.ones((k, n), np.float32),
            product,
            seed=1,
            histories=tuple(histories),  # type: ignore[arg-type]
        )
        assert codes.shape == flags.shape == (m, n)
        assert not codes.any()


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_positive"}, {"daz": True, "ftz": True}], ids=str)
def test_scales_of_tensors_are_multiplied_as_codes_are(options: dict[str, Any]) -> None:
    """Pairs of scales without a loop, those near the ends of the range among them, with the flags of a product of codes."""
    random = np.random.default_rng(2)
    numbers = (random.uniform(1, 2, 60) * 2.0 ** random.integers(-140, 120, 60)).astype(np.float32)
    numbers = np.concatenate([numbers, np.float32([1, 3, 2.0**-126, 2.0**-149, 2.0**127, 0, np.inf, np.nan])])
    environment = Environment(**options)
    for x in numbers.view(np.uint32):
        for y in numbers.view(np.uint32)[::5]:
            found = product_of_scales(np.asarray(x), np.asarray(y), environment.settings)
            assert found == bits.mul(x, y, "float32", environment=environment, flags="any")
