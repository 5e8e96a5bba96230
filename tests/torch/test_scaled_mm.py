"""PyTorch's products of scaled operands: the bits of `softfloat.scaling`'s, near PyTorch's own where it has them on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402 -- after the skip

from softfloat import BlockFormat, Environment, bits  # noqa: E402 -- after the skip
from softfloat.accumulators import chunked, exact, fma, tensor_core, torch_mm  # noqa: E402
from softfloat.torch import UnemulatedOperatorError, emulate  # noqa: E402

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
E8M0, FP4 = getattr(torch, "float8_e8m0fnu", None), getattr(torch, "float4_e2m1fn_x2", None)
needs_blocks = pytest.mark.skipif(E8M0 is None or FP4 is None, reason="needs PyTorch 2.8 or later")
Kinds: Any = getattr(functional, "ScalingType", None)
needs_names = pytest.mark.skipif(Kinds is None, reason="needs torch.nn.functional.scaled_mm")


SLOW = torch_mm("scaled_mm", "float8_e4m3fn")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def codes(x: torch.Tensor) -> np.ndarray:
    return x.contiguous().view(torch.uint8).numpy()


def expected_product(a: torch.Tensor, b: torch.Tensor, how: Any = SLOW) -> np.ndarray:
    """The sum without scales."""
    names = {E4M3: "float8_e4m3fn", E5M2: "float8_e5m2"}
    found, _ = bits.matmul(codes(a), codes(b), (names[a.dtype], names[b.dtype]), how, out_format="float32")
    return np.asarray(found).view(np.float32)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("out", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [False, True])
def test_tensors_and_rows(rows: bool, out: Any, bias: bool) -> None:
    """(scale * scale) * sum, or row by row one after the other; + bias, each in float32; rounded."""
    a, b = drawn(16, 32).to(E4M3), drawn(32, 16, seed=1).to(E5M2)
    x, y = (drawn(16, 1, seed=2).abs(), drawn(1, 16, seed=3).abs()) if rows else (torch.tensor(0.3), torch.tensor(0.7))
    c = drawn(16, seed=4).to(out) if bias else None
    with emulate():
        found = torch._scaled_mm(a, b, x, y, bias=c, out_dtype=out)
    sums = expected_product(a, b)
    scaled = x.numpy() * (y.numpy() * sums) if rows else (x.numpy() * y.numpy()) * sums
    wanted = scaled if c is None else scaled + c.float().numpy()
    assert found.dtype == out
    assert torch.equal(found, torch.from_numpy(wanted).to(out))


def test_what_the_cpu_computes_is_near() -> None:
    a, b, x, y = drawn(16, 32).to(E4M3), drawn(32, 16, seed=1).to(E4M3), torch.tensor(0.3), torch.tensor(0.7)
    native = torch._scaled_mm(a, b, x, y, out_dtype=torch.float32)
    with emulate(matmul=exact("float32")):
        torch.testing.assert_close(torch._scaled_mm(a, b, x, y, out_dtype=torch.float32), native)


def test_accumulators_and_fast_accumulation() -> None:
    a, b, one = drawn(16, 256).to(E4M3), drawn(256, 16, seed=1).to(E4M3), torch.tensor(1.0)
    hopper = tensor_core("H100", input="float8_e4m3fn")
    for options, fast, how in (
        ({}, False, chunked(128, hopper, "float32")),
        ({}, True, hopper),
        ({"matmul": exact("float32")}, True, exact("float32")),
        ({"environment": Environment(accumulator=hopper)}, False, hopper),
    ):
        with emulate(**options):
            found = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32, use_fast_accum=fast)
        np.testing.assert_array_equal(found.numpy(), expected_product(a, b, how))
    assert not np.array_equal(expected_product(a, b, hopper), expected_product(a, b))


def tiled(scales: np.ndarray) -> np.ndarray:
    """Rows of scales in tiles of 128 x 4, written out entry by entry."""
    rows, columns = -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4
    result = np.zeros(rows * columns, scales.dtype)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            tile = (i // 128) * (columns // 4) + j // 4
            result[tile * 512 + (i % 32) * 16 + (i % 128 // 32) * 4 + j % 4] = scales[i, j]
    return result


def blocks_of(kind: str, x: np.ndarray) -> Any:
    made, _ = bits.quantize(x, "mxfp8_e4m3" if kind == "mx" else "nvfp4", axis=-1)
    return made


@needs_blocks
@pytest.mark.parametrize("swizzled", [True, False])
@pytest.mark.parametrize("kind", ["mx", "nv"])
def test_blocks(kind: str, swizzled: bool) -> None:
    """MXFP8 and NVFP4, scales in tiles or not; 130 rows fill more than one tile."""
    x, y = drawn(130, 96).numpy(), drawn(20, 96, seed=1).numpy()
    a, b = blocks_of(kind, x), blocks_of(kind, y)
    by = bits.BlockCodes(b.elements.T.copy(), b.scales.T.copy(), b.format, axis=0, tensor_scale=b.tensor_scale)
    wanted, _ = bits.matmul_blocks(a, by, fma("float32"))
    tensors, scales = [], []
    for made in (a, b):
        element, scale = (E4M3, E8M0) if kind == "mx" else (FP4, E4M3)
        tensors.append(torch.from_numpy(made.packed()).view(element))
        scales.append(torch.from_numpy(tiled(made.scales) if swizzled else made.scales).view(scale))
    out = torch.float32
    if swizzled and kind == "mx":
        with emulate():
            found = torch._scaled_mm(tensors[0], tensors[1].t(), *scales, out_dtype=out)
        np.testing.assert_array_equal(found.numpy().view(np.uint32), wanted)
    if Kinds is None:
        pytest.skip("needs torch.nn.functional.scaled_mm")
    kinds = [Kinds.BlockWise1x32] if kind == "mx" else [Kinds.BlockWise1x16, Kinds.TensorWise]
    swizzles = [functional.SwizzleType(int(swizzled)), functional.SwizzleType.NO_SWIZZLE][: len(kinds)]
    whole = [
        [s] if kind == "mx" else [s, torch.tensor(float(m.tensor_scale))] for s, m in zip(scales, (a, b), strict=True)
    ]
    with emulate():
        found = functional.scaled_mm(
            tensors[0], tensors[1].t(), whole[0], kinds, whole[1], kinds,
            swizzle_a=swizzles, swizzle_b=swizzles, output_dtype=out,
        )  # fmt: skip
    np.testing.assert_array_equal(found.numpy().view(np.uint32), wanted)


@needs_names
@pytest.mark.parametrize("kinds", [("BlockWise1x128", "BlockWise128x128"), ("BlockWise1x128", "BlockWise1x128"),
                                   ("BlockWise128x128", "BlockWise1x128")])  # fmt: skip
def test_scales_every_128_products(kinds: tuple[str, str]) -> None:
    x, y = drawn(130, 256).numpy(), drawn(132, 256, seed=1).numpy()
    order = "scales_fused" if "BlockWise128x128" in kinds else "first_fused"
    how = chunked(128, tensor_core("H100", input="float8_e4m3fn"), "float32", scaling=order)
    made, tensors, scales = [], [], []
    for v, kind in zip((x, y), kinds, strict=True):
        block = (128, 128) if kind == "BlockWise128x128" else 128
        fmt = BlockFormat("fp8", element="float8_e4m3fn", scale="float32", block=block)
        one, _ = bits.quantize(v, fmt, "amax", axis=-1)
        made.append(one)
        tensors.append(torch.from_numpy(one.elements).view(E4M3))
        scales.append(torch.from_numpy(np.ascontiguousarray(one.scales.view(np.float32))))
    by = bits.BlockCodes(made[1].elements.T.copy(), made[1].scales.T.copy(), made[1].format, axis=-2)
    wanted, _ = bits.matmul_blocks(made[0], by, how)
    with emulate():
        old = torch._scaled_mm(tensors[0], tensors[1].t(), scales[0], scales[1].t(), out_dtype=torch.float32)
    np.testing.assert_array_equal(old.numpy().view(np.uint32), wanted)
    named = [s.t().contiguous().t() if k == "BlockWise1x128" else torch.nn.functional.pad(s.t(), (0, 0, 0, 2))
             for s, k in zip(scales, kinds, strict=True)]  # fmt: skip
    with emulate():
        new = functional.scaled_mm(
            tensors[0], tensors[1].t(), named[0], getattr(Kinds, kinds[0]), named[1], getattr(Kinds, kinds[1]),
            output_dtype=torch.float32,
        )  # fmt: skip
    np.testing.assert_array_equal(new.numpy().view(np.uint32), wanted)


@needs_names
def test_named_tensors_and_rows() -> None:
    a, b = drawn(16, 32).to(E4M3), drawn(32, 16, seed=1).to(E4M3)
    x, y = drawn(16, 1, seed=2).abs(), drawn(16, 1, seed=3).abs()
    with emulate():
        rows = functional.scaled_mm(a, b, x, Kinds.RowWise, y, Kinds.RowWise, output_dtype=torch.float32)
        whole = functional.scaled_mm(a, b, x[0], Kinds.TensorWise, y[0], Kinds.TensorWise, output_dtype=torch.float32)
        assert torch.equal(rows, torch._scaled_mm(a, b, x, y.t(), out_dtype=torch.float32))
        assert torch.equal(whole, torch._scaled_mm(a, b, x[0], y[0], out_dtype=torch.float32))


def test_what_is_refused() -> None:
    a, b, one = drawn(16, 32).to(E4M3), drawn(32, 16, seed=1).to(E4M3), torch.tensor(1.0)
    cases = [
        (lambda: torch._scaled_mm(a, b, one, one, scale_result=one), "scale_result is not emulated"),
        (
            lambda: torch._scaled_mm(a, b, torch.ones(3, 1), torch.ones(1, 16)),
            "scale_a and scale_b must be one number each",
        ),
        (lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.float64), "out_dtype must be one of"),
        (lambda: torch._scaled_mm(a, b[:16], one, one), "must agree in k"),
        (lambda: torch._scaled_mm(a.float(), b, one, one), "mat_a must be of an 8-bit or 4-bit"),
        (lambda: torch._scaled_mm(a, b, one.double(), one), "must be torch.float32"),
    ]
    if E8M0 is not None:
        scale = torch.ones(5).to(E8M0)
        cases.append((lambda: torch._scaled_mm(a, b, scale, scale), "must hold 512 scales"))
    if Kinds is not None:
        cases += [
            (lambda: functional.scaled_mm(a, b, one, Kinds.TensorWise, torch.ones(16), Kinds.RowWise, contraction_dim=(0, 1)),
             "contraction_dim must be"),
            (lambda: functional.scaled_mm(a, b, [one, one], Kinds.TensorWise, one, Kinds.TensorWise), "must be equally many"),
            (lambda: functional.scaled_mm(a, b, torch.ones(16, 1), Kinds.BlockWise1x32, one, Kinds.TensorWise), "have no product"),
        ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(UnemulatedOperatorError, match=message), emulate():
            call()


@needs_blocks
@pytest.mark.parametrize("rounding", ["nearest_even", "toward_positive"])
def test_casts_to_scales(rounding: str) -> None:
    x = (drawn(40).abs() * 2.0 ** torch.arange(-20, 20)).bfloat16()
    with emulate(Environment(rounding=rounding)):
        found = x.to(E8M0)
    wanted, _ = bits.encode(x.double().numpy(), "float8_e8m0fnu", rounding=rounding)
    np.testing.assert_array_equal(codes(found), wanted)
    with emulate():
        assert torch.equal(found.float(), found.to(torch.float32))
