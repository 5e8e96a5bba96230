"""What functions of blocks, scales and P3109's formats refuse: the argument is named, and what is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat import BlockFormat, Environment, Fixed, Format, bits, reference
from softfloat.accumulators import chunked, fma, tensor_core
from softfloat.bits import BlockCodes
from softfloat.scaling import (
    RECIPES,
    BlockScaling,
    CurrentScaling,
    DelayedScaling,
    Hadamard,
    Operand,
    Product,
    block_scaling,
    check_recipe,
    fp8_blocks,
    from_torchao,
    matmul,
    multiplied,
    quantized,
    tensor_scaling,
)
from softfloat.testing import identify_scales

X = np.ones((4, 32), np.float32)
FORMATS: Any = "x"  # none
E8M0, E4M3 = "float8_e8m0fnu", "float8_e4m3fn"
CORE8, CORE4 = (
    tensor_core("B200", E4M3, instruction="mxf8f6f4"),
    tensor_core("B200", "float4_e2m1fn", instruction="mxf4nvf4"),
)
MX8 = RECIPES["mxfp8"].forward
WHOLE = Operand(scaling=CurrentScaling(format=E4M3))  # type: ignore[arg-type]
CROSSED = Product(first=MX8.first, second=MX8.second, accumulator=CORE4)


def blocks(fmt: str, axis: int = -1) -> BlockCodes:
    return bits.quantize(X if axis else X.T, fmt, axis=axis)[0]


UNKNOWN: list[tuple[str, Callable[[], Any]]] = [
    ("block_format", lambda: bits.quantize(X, "x")),
    ("format", lambda: BlockCodes([1], [1], "x")),
    ("format", lambda: BlockCodes.from_packed(np.zeros(1, np.uint8), [1], "x")),
    ("name", lambda: BlockFormat.from_name("x")),
    ("element", lambda: BlockFormat("a", element=FORMATS, scale=E8M0, block=4)),  # type: ignore[arg-type]
    ("scale", lambda: BlockFormat("a", element=E4M3, scale=FORMATS, block=4)),  # type: ignore[arg-type]
    ("tensor_scale", lambda: BlockFormat("a", element=E4M3, scale=E8M0, block=4, tensor_scale=FORMATS)),  # type: ignore[arg-type]
    ("out_format", lambda: bits.matmul_blocks(blocks("mxfp4"), blocks("mxfp4", 0), CORE4, out_format="x")),
    ("out_format", lambda: bits.vecdot_blocks(blocks("mxfp4"), blocks("mxfp4"), CORE4, out_format="x")),
    ("block_format", lambda: reference.quantize_block([1.0], "x")),
    ("block_format", lambda: reference.dequantize_block([1], 127, "x")),
    ("block_format", lambda: identify_scales(X, np.zeros((4, 1), np.uint8), "x")),
    ("format", lambda: CurrentScaling(format=FORMATS)),
    ("format", lambda: DelayedScaling(format=FORMATS)),
    ("format", lambda: BlockScaling(format=FORMATS)),
    ("format", lambda: Hadamard(format=FORMATS)),
    ("format", lambda: tensor_scaling("x")),
    ("input_format", lambda: quantized(X, WHOLE, 0, input_format="x")),
    ("fmt", lambda: bits.add(1, 1, "x")),
    ("fmt", lambda: bits.encode(1.0, "x")),
    ("fmt", lambda: bits.decode(1, "x")),
    ("src", lambda: bits.convert(1, "x", "float16")),
    ("dst", lambda: bits.convert(1, "float16", "x")),
    ("fmt", lambda: bits.matmul([[1]], [[1]], "x", fma("float32"))),
    (r"fmt\[1\]", lambda: bits.matmul([[1]], [[1]], (E4M3, "x"), fma("float32"))),
    ("input", lambda: tensor_core("B200", "x")),
    ("inner", lambda: chunked(8, "x", "float32")),
    ("outer", lambda: chunked(8, "float16", "x")),
    ("b_format", lambda: reference.add(1, 1, "float16", b_format="x")),
    ("out_format", lambda: reference.add(1, 1, "float16", out_format="x")),
]
"""The argument, and a call that gives it a name that no format has."""


@pytest.mark.parametrize(("argument", "call"), UNKNOWN)
def test_names_of_no_format(argument: str, call: Callable[[], Any]) -> None:
    with pytest.raises(
        ValueError, match=rf"^{argument}: unknown (block )?format 'x'; accepted: (float16|mxfp8_e4m3), "
    ):
        call()


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bits.matmul_blocks(blocks("mxfp4"), blocks("mxfp4", 0), CORE8), ValueError, "^a's elements must be 'float8_e4m3fn', 'float8_e5m2' for"),
    (lambda: bits.vecdot_blocks(blocks("mxfp8_e4m3"), blocks("mxfp4"), CORE8), ValueError, "^b's elements must be 'float8_e4m3fn', 'float8_e5m2'"),
    (
        lambda: bits.matmul_blocks(blocks("mxfp8_e4m3"), blocks("mxfp8_e4m3", 0), CORE4.replace(inputs=())),
        ValueError,
        "^elements of a and b must be formats whose aligned sums take 53 bits or fewer .*, got 'float8_e4m3fn'",
    ),
    (
        lambda: bits.matmul_blocks(blocks("mxfp8_e5m2"), blocks("mxfp8_e5m2", 0), CORE4.replace(inputs=())),
        ValueError,
        "^elements of a and b must be formats whose products, 16 of them, add up in 53 bits .* such as 'float4_e2m1fn', got 'float8_e5m2'",
    ),
    (lambda: bits.matmul_blocks(3, blocks("mxfp4", 0), CORE4), TypeError, "^a must be BlockCodes, which bits.quantize makes, got int"),  # type: ignore[arg-type]
    (lambda: bits.matmul_blocks(blocks("mxfp4"), 3, CORE4), TypeError, "^b must be BlockCodes, which bits.quantize makes, got int"),  # type: ignore[arg-type]
    (lambda: bits.matmul_blocks(blocks("mxfp4"), blocks("mxfp4", 0), 3), TypeError, "^accumulator must be a softfloat.Accumulator"),  # type: ignore[arg-type]
    (lambda: bits.quantize(X, "mxfp4", environment="x"), TypeError, "^environment must be a softfloat.Environment"),  # type: ignore[arg-type]
    (lambda: bits.quantize(X, "mxfp4", scales=np.zeros((1, 1), np.uint8)), ValueError, r"^scales must have the shape \(4, 1\)"),
    (lambda: bits.quantize(X, "mxfp4", scales="x"), TypeError, "^scales must be codes of float8_e8m0fnu: integers from 0 to 0xff"),
    (lambda: Fixed("a", bits="x", fraction_bits=3), TypeError, "^bits must be an integer"),  # type: ignore[arg-type]
    (lambda: BlockScaling(format="mxfp4", rule="x"), ValueError, "^rule must be one of 'floor', 'ceil'"),  # type: ignore[arg-type]
    (lambda: Operand(scaling="x"), TypeError, "^scaling must be CurrentScaling or DelayedScaling or BlockScaling or None"),  # type: ignore[arg-type]
    (lambda: Operand(rounding="x"), ValueError, "^rounding must be one of 'nearest_even'"),  # type: ignore[arg-type]
    (lambda: matmul(X, X.T, CROSSED), ValueError, "^a's elements must be 'float4_e2m1fn' for"),
    (
        lambda: multiplied(quantized(X, WHOLE, -1), quantized(X.T, WHOLE, -2), CORE4),
        ValueError,
        "^a's elements must be 'float4_e2m1fn' for .*, got 'float8_e4m3fn'",
    ),
    (lambda: matmul(X, X.T, MX8, out_format="float16"), TypeError, "^out_format is for products of codes, got 'float16'; accepted: by bits"),
    (lambda: matmul(X, X.T, MX8, count=True), TypeError, "^count is for products of codes, got True; accepted: by bits"),
    (lambda: block_scaling("x", accumulator=fma("float32")), ValueError, "^format: unknown block format 'x'; accepted: mxfp8_e4m3"),
    (lambda: fp8_blocks("x", WHOLE, name="a"), TypeError, "^inputs must be Operand, got 'x'"),  # type: ignore[arg-type]
    (lambda: from_torchao("x"), ValueError, "^name must be one of 'tensorwise', 'rowwise'"),
    (lambda: check_recipe("x", "quantize"), ValueError, "^quantize must be one of 'current_scaling'"),
    (lambda: bits.add(1, 1, "binary8p9se"), ValueError, "^fmt: p must be 1 to 7 in a signed format of 8 bits, got 9"),
    (lambda: Format.p3109("x"), ValueError, "^k must be a number of bits or a name such as 'binary8p3se', got 'x'"),
    (lambda: bits.encode(1.0, "binary8p3se", projection="x"), ValueError, "^projection must be one of 'ieee', 'p3109', got 'x'"),
    (lambda: bits.encode(1.0, "binary8p3se", sr_method="x"), ValueError, "^sr_method must be one of 'truncate', 'half', 'nearest', got 'x'"),
    (lambda: Environment(projection="x"), ValueError, "^projection must be one of 'ieee', 'p3109', got 'x'"),
    (lambda: identify_scales(X, 3, "mxfp4"), ValueError, r"^scales must be 4 codes, of shape \(4, 1\), got shape \(\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
