"""PyTorch's own products of scaled operands: `torch._scaled_mm` and `torch.nn.functional.scaled_mm`.

Scales that multiply whole tensors, or their rows and columns, multiply the sum, in float32; scales of blocks along k go
to `softfloat.bits.matmul_blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator, chunked, tensor_core, torch_mm
from softfloat.bits import BlockCodes
from softfloat.blocks import BlockFormat
from softfloat.formats import ROSTER, Format, float32
from softfloat.runner import SINGLE
from softfloat.scaling import Quantized, ScaledCodes
from softfloat.torch import private
from softfloat.torch.operators.bridge import FORMATS, UnsupportedArguments, codes_of
from softfloat.torch.operators.device_products import device_accumulator, unread
from softfloat.torch.operators.scaled import numbers_of, run_product
from softfloat.torch.operators.unit import Unit

__all__ = ["SCALED_PRODUCTS"]

TENSOR, ROW, BLOCK_16, BLOCK_32, BLOCK_128, SQUARE_128 = range(6)  # of torch.nn.functional.ScalingType
NAMES = ("TensorWise", "RowWise", "BlockWise1x16", "BlockWise1x32", "BlockWise1x128", "BlockWise128x128")
ALONG = {BLOCK_16: 16, BLOCK_32: 32, BLOCK_128: 128, SQUARE_128: 128}
SWIZZLE_32_4_4 = 1
E2M1, E4M3, E8M0 = (ROSTER[x] for x in ("float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu"))
FP4 = getattr(torch, "float4_e2m1fn_x2", None)  # of PyTorch 2.8
SCALE_FORMATS = {torch.float8_e4m3fn: E4M3, torch.float32: float32, getattr(torch, "float8_e8m0fnu", None): E8M0}
HOPPER = (ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"])


class Side(NamedTuple):
    """One operand as it came: codes (rows, k), and its scales with what they are."""

    name: str
    codes: Any
    format: Format
    scales: Sequence[torch.Tensor]
    kinds: tuple[int, ...]
    swizzles: tuple[int, ...]
    columns_first: bool = False  # scales of 128 x 128: a column for each block of rows, filled up to a multiple of four


def elements_of(tensor: torch.Tensor, name: str) -> tuple[Any, Format]:
    """(codes, format) of a matrix of (rows, k), two 4-bit elements in a byte taken apart."""
    if tensor.ndim != 2:
        raise UnsupportedArguments(f"{name} must have two axes, got {tensor.ndim}")
    if FP4 is not None and tensor.dtype == FP4:
        packed = tensor.contiguous().view(torch.uint8).numpy()
        return np.stack([packed & 0xF, packed >> 4], axis=-1).reshape(len(packed), -1), E2M1
    if tensor.dtype not in FORMATS or FORMATS[tensor.dtype].format.bits != 8:
        raise UnsupportedArguments(f"{name} must be of an 8-bit or 4-bit floating-point dtype, got {tensor.dtype}")
    return codes_of(tensor), FORMATS[tensor.dtype].format


def scale_codes(tensor: torch.Tensor, name: str) -> tuple[Any, Format]:
    """(codes, format) of scales."""
    if tensor.dtype not in SCALE_FORMATS:
        raise UnsupportedArguments(
            f"{name} must be torch.float32, torch.float8_e8m0fnu or torch.float8_e4m3fn, got {tensor.dtype}"
        )
    fmt = SCALE_FORMATS[tensor.dtype]
    return tensor.contiguous().view(torch.uint32 if fmt == float32 else torch.uint8).numpy(), fmt


def straightened(codes: Any, rows: int, columns: int, name: str) -> Any:
    """(rows, columns) of scales laid out in tiles of 128 x 4, as cuBLAS has them: 32 rows of four times four."""
    tiles = -(-rows // 128), -(-columns // 4)
    if codes.size != tiles[0] * tiles[1] * 512:
        raise UnsupportedArguments(
            f"{name} must hold {tiles[0] * tiles[1] * 512} scales, those of {rows} x {columns} blocks in tiles of 128 x 4, got {codes.size}"
        )
    split = codes.reshape(*tiles, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(split.reshape(tiles[0] * 128, tiles[1] * 4)[:rows, :columns])


def operand(side: Side, is_second: bool) -> Quantized:
    """An operand of `softfloat.scaling.multiplied`; the second one is (k, n)."""
    kind, name = side.kinds[0], side.name
    codes, fmt = scale_codes(side.scales[0], f"scale_{name}")
    rows, length = side.codes.shape
    if kind in (TENSOR, ROW):
        if len(side.kinds) > 1 or fmt != float32 or codes.size != (1 if kind == TENSOR else rows):
            raise UnsupportedArguments(
                f"scale_{name} must be {1 if kind == TENSOR else rows} float32 numbers for {NAMES[kind]}, got {codes.size} of {fmt}"
            )
        scale = codes.reshape(() if kind == TENSOR else (-1, 1)).view(np.float32)
        elements = side.codes.T if is_second else side.codes
        found: Any = ScaledCodes(np.ascontiguousarray(elements), scale.T if is_second else scale, side.format)
        return Quantized(found, 0.0, (1.0, 1.0), elements.size, None, None, 0)
    block = ALONG[kind]
    columns, tall = -(-length // block), -(-rows // 128) if kind == SQUARE_128 else rows
    if side.swizzles[0] == SWIZZLE_32_4_4:
        codes = straightened(codes, tall, columns, f"scale_{name}")
    elif kind == SQUARE_128 and side.columns_first and codes.shape == (-(-columns // 4) * 4, tall):
        codes = codes[:columns].T
    elif codes.shape != (tall, columns):
        raise UnsupportedArguments(
            f"scale_{name} must be of shape {(tall, columns)} for {NAMES[kind]} without a swizzle, got {codes.shape}"
        )
    tensor_scale = None
    if len(side.kinds) > 1:
        if side.kinds[1:] != (TENSOR,) or len(side.scales) != 2 or side.scales[1].numel() != 1:
            raise UnsupportedArguments(
                f"scale_recipe_{name} must be one block scale, and TensorWise with one number at most"
            )
        tensor_scale = np.float32(side.scales[1].item())
    shape = (128, 128) if kind == SQUARE_128 else block
    described = BlockFormat(
        "scaled_mm", element=side.format, scale=fmt, block=shape, tensor_scale=None if tensor_scale is None else float32
    )
    elements, scales = (np.ascontiguousarray(x.T if is_second else x) for x in (side.codes, codes))
    made = BlockCodes(elements, scales, described, axis=-2 if is_second else -1, tensor_scale=tensor_scale)
    return Quantized(made, 0.0, (1.0, 1.0), elements.size, None, None, 0)


def accumulator_for(unit: Unit, sides: tuple[Side, Side], fast: bool) -> Accumulator:
    """The one that was chosen; else what an H100 does for scales that it knows, of others single, fused."""
    if unit.device is None:
        chosen = unit.chosen_accumulator("matmul", sides[0].format)
        if chosen is not None:
            return chosen
    hopper, kinds = all(x.format in HOPPER for x in sides), {x.kinds[0] for x in sides}
    if kinds & {BLOCK_128, SQUARE_128}:
        inner = tensor_core("H100", input=sides[0].format) if hopper else SINGLE
        return chunked(128, inner, "float32", scaling="scales_fused" if SQUARE_128 in kinds else "first_fused")
    if not (hopper and kinds <= {TENSOR, ROW}):
        return SINGLE
    if unit.device is not None and fast:
        shape = len(sides[0].codes), len(sides[1].codes), sides[0].codes.shape[1]
        return device_accumulator(unit, "scaled_mm_fast", sides[0].format, 1, *shape).sum
    return torch_mm("scaled_mm_fast" if fast else "scaled_mm", sides[0].format)


def check_read(unit: Unit, sides: tuple[Side, Side]) -> None:
    """Refuse operands and scales that the emulation's device does not multiply, or whose product was not read."""
    formats, kinds = {x.format for x in sides}, {x.kinds[0] for x in sides}
    if (
        not formats <= set(HOPPER)
        or (len(formats) == 1 and sides[0].format == HOPPER[1])
        or kinds & {BLOCK_16, BLOCK_32}
    ):
        names = " by ".join(f"{x.format.name} with {NAMES[x.kinds[0]]} scales" for x in sides)
        raise unread(unit, names, "float8_e4m3fn by itself or by float8_e5m2, with float32 scales, was")


def multiply(
    unit: Unit, sides: tuple[Side, Side], bias: torch.Tensor | None, dtype: torch.dtype, fast: bool, target: Any
) -> torch.Tensor:
    """The product, a bias added in float32, rounded to a dtype."""
    a, b = operand(sides[0], False), operand(sides[1], True)
    if type(a.codes) is not type(b.codes):
        raise UnsupportedArguments(
            f"scales of {NAMES[sides[0].kinds[0]]} and {NAMES[sides[1].kinds[0]]} have no product in common"
        )
    if dtype not in FORMATS:
        raise UnsupportedArguments(f"out_dtype must be one of {', '.join(map(str, FORMATS))}, got {dtype}")
    if unit.device is not None and not unit.device.assumes:
        check_read(unit, sides)
    shape = len(sides[0].codes), len(sides[1].codes)
    c = None if bias is None else np.ascontiguousarray(np.broadcast_to(numbers_of(bias), shape)).view(np.uint32)
    order = "second" if sides[0].kinds[0] == ROW else "scales_first"
    sums = run_product(unit, a, b, accumulator_for(unit, sides, fast), c, order)
    fmt = FORMATS[dtype].format
    return unit.deliver(sums if fmt == float32 else unit.run(bits.convert, sums, float32, fmt), dtype, target)


# -- the operators ---------------------------------------------------------------------------------------------------


def arguments(operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """By name; those left out as None."""
    names = private.argument_names(operator)
    return {**dict.fromkeys(names), **dict(zip(names, args, strict=False)), **kwargs}


def _matrices(given: dict[str, Any]) -> tuple[tuple[Any, Format], tuple[Any, Format]]:
    a, b = elements_of(given["self"], "mat_a"), elements_of(given["mat2"].t(), "mat_b")
    if a[0].shape[1] != b[0].shape[1]:
        raise UnsupportedArguments(f"mat_a and mat_b must agree in k, got {a[0].shape[1]} and {b[0].shape[1]}")
    return a, b


def scaled_mm(unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor:
    """`torch._scaled_mm`, whose scales say by shape and dtype what they are."""
    given = arguments(operator, args, kwargs)
    if given["scale_result"] is not None:
        raise UnsupportedArguments("scale_result is not emulated; multiply the result")
    (a, a_fmt), (b, b_fmt) = _matrices(given)
    first, second = given["scale_a"], given["scale_b"]
    m, k, n = len(a), a.shape[1], len(b)
    blocks = -(-k // 128)
    swizzle = 0
    if first.numel() == 1 and second.numel() == 1:
        kinds = TENSOR, TENSOR
    elif first.dtype == second.dtype and first.dtype in SCALE_FORMATS and first.dtype != torch.float32:
        kind = BLOCK_16 if SCALE_FORMATS[first.dtype] == E4M3 else BLOCK_32
        kinds, swizzle = (kind, kind), SWIZZLE_32_4_4
    else:
        shapes = [
            ((m, 1), (1, n), (ROW, ROW)),
            ((m, blocks), (blocks, -(-n // 128)), (BLOCK_128, SQUARE_128)),
            ((m, blocks), (blocks, n), (BLOCK_128, BLOCK_128)),
            ((-(-m // 128), blocks), (blocks, n), (SQUARE_128, BLOCK_128)),
        ]  # in PyTorch's order: of one block of k, rows come first
        found = next((kinds for x, y, kinds in shapes if (x, y) == (tuple(first.shape), tuple(second.shape))), None)
        if found is None:
            accepted = "; ".join(f"{x} and {y}" for x, y, _ in shapes)
            raise UnsupportedArguments(
                f"scale_a and scale_b must be one number each, of shapes {accepted}, or of blocks in the layout of tiles; got "
                f"{tuple(first.shape)} and {tuple(second.shape)} of {first.dtype} and {second.dtype}"
            )
        kinds, second = found, second.t()
    sides = (
        Side("a", a, a_fmt, [first], kinds[:1], (swizzle,)),
        Side("b", b, b_fmt, [second], kinds[1:], (swizzle,)),
    )
    dtype = given["out_dtype"] or given["self"].dtype
    return multiply(unit, sides, given["bias"], dtype, bool(given["use_fast_accum"]), kwargs.get("out"))


def scaled_mm_v2(unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor:
    """`torch.nn.functional.scaled_mm`, which says what scales are."""
    given = arguments(operator, args, kwargs)
    if list(given["contraction_dim"] or []) not in ([], [1, 0], [-1, -2], [-1, 0], [1, -2]):
        raise UnsupportedArguments(
            f"contraction_dim must be (1, 0), the columns of mat_a and the rows of mat_b, or none, got {given['contraction_dim']}"
        )
    sides = []
    for (codes, fmt), name in zip(_matrices(given), "ab", strict=True):
        scales, kinds = given[f"scale_{name}"], tuple(int(x) for x in given[f"recipe_{name}"])
        swizzles = tuple(int(x) for x in given[f"swizzle_{name}"] or ()) or (0,) * len(kinds)
        if not kinds or len(scales) != len(kinds) or len(swizzles) != len(kinds):
            raise UnsupportedArguments(f"scale_{name}, scale_recipe_{name} and swizzle_{name} must be equally many")
        if max(kinds) > SQUARE_128 or any(x not in (0, SWIZZLE_32_4_4) for x in swizzles) or any(swizzles[1:]):
            raise UnsupportedArguments(
                f"scale_recipe_{name} must be among {', '.join(NAMES)}, and swizzle_{name} NO_SWIZZLE or, of blocks, SWIZZLE_32_4_4"
            )
        sides.append(Side(name, codes, fmt, scales, kinds, swizzles, True))
    dtype = given["out_dtype"] or given["self"].dtype
    pair = sides[0], sides[1]
    return multiply(unit, pair, given["bias"], dtype, bool(given["use_fast_accum"]), kwargs.get("out"))


SCALED_PRODUCTS = {"_scaled_mm": scaled_mm, "_scaled_mm_v2": scaled_mm_v2}
"""What computes them, by the operator's name."""
