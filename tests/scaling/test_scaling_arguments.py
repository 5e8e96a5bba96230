"""What scaling refuses, by the argument's name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat.accumulators import fma
from softfloat.scaling import (
    RECIPES,
    AmaxHistory,
    CurrentScaling,
    DelayedScaling,
    Hadamard,
    Operand,
    encode_scales,
    fp8_blocks,
    hadamard_matrix,
    matmul,
    multiplied,
    nvfp4_scaling,
    quantized,
    swapped,
    tensor_scaling,
)

X = np.ones((2, 4), np.float32)
PRODUCT = RECIPES["mxfp8"].forward
MX = PRODUCT.first
WHOLE = Operand(scaling=CurrentScaling(format="float8_e4m3fn"))  # type: ignore[arg-type]
FP8 = DelayedScaling(format="float8_e4m3fn")  # type: ignore[arg-type]
ADDED = fma("float32")
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: CurrentScaling(format="float8_e4m3fn", per=0), "per must be a positive integer"),  # type: ignore[arg-type]
    (lambda: CurrentScaling(format="float8_e4m3fn", per=1.5), "per must be a positive integer"),  # type: ignore[arg-type]
    (lambda: Hadamard(signs=4), "signs must be tuple or list"),  # type: ignore[arg-type]
    (lambda: hadamard_matrix(None), "how must be Hadamard"),  # type: ignore[arg-type]
    (lambda: encode_scales("x", "float8_e4m3fn"), "amax must be float32 numbers"),
    (lambda: encode_scales([1j], "float8_e4m3fn"), "amax must be float32 numbers"),
    (lambda: encode_scales([-1.0], "float8_e4m3fn"), "amax must be magnitudes, at least 0, got -1.0"),
    (lambda: encode_scales([1.0], "float8_e4m3fn", epsilon=math.nan), "epsilon must be finite and at least 0"),
    (lambda: encode_scales([1.0], "float8_e4m3fn", power_of_two=1), "power_of_two must be True or False"),  # type: ignore[arg-type]
    (lambda: AmaxHistory(FP8).record(np.ones(2)), "amax must be one number"),  # type: ignore[arg-type]
    (lambda: AmaxHistory(FP8).record(-1.0), "amax must be magnitudes"),
    (lambda: quantized(X, MX, 2), "axis must be one of an array of 2 axes, got 2"),
    (lambda: quantized(X, MX, 0.5), "axis must be an integer"),  # type: ignore[arg-type]
    (lambda: quantized(X, MX, -1, input_format=3), "input_format must be a softfloat.Format"),  # type: ignore[arg-type]
    (lambda: quantized(X, WHOLE, -1, count=1), "count must be True or False"),  # type: ignore[arg-type]
    (lambda: matmul(X, X.T, PRODUCT, stream=-1), "stream must be a non-negative integer"),
    (lambda: matmul(X, X.T, PRODUCT, histories=None), "histories must be a pair"),  # type: ignore[arg-type]
    (lambda: multiplied(quantized(X, MX, -1), quantized(X, MX, -1), None), "accumulator must be Accumulator"),  # type: ignore[arg-type]
    (
        lambda: multiplied(quantized(X, MX, -1), quantized(X.T, MX, -2), ADDED, scale_order="last"),
        "scale_order must be one of 'scales_first', 'first', 'second'",
    ),
    (lambda: swapped(None), "product must be Product"),  # type: ignore[arg-type]
    (lambda: tensor_scaling(delayed="no"), "delayed must be True or False"),  # type: ignore[arg-type]
    (lambda: tensor_scaling(accumulators=(ADDED,)), "accumulators must be 3 of Accumulator"),  # type: ignore[arg-type]
    (lambda: nvfp4_scaling(hadamard=1), "hadamard must be True or False"),  # type: ignore[arg-type]
    (lambda: nvfp4_scaling(stochastic="no"), "stochastic must be True or False"),  # type: ignore[arg-type]
    (lambda: nvfp4_scaling(square_weights=None), "square_weights must be True or False"),  # type: ignore[arg-type]
    (lambda: nvfp4_scaling(accumulator=0), "accumulator must be Accumulator or None"),  # type: ignore[arg-type]
    (lambda: fp8_blocks(None, WHOLE, name="n"), "inputs must be Operand"),  # type: ignore[arg-type]
    (lambda: fp8_blocks(WHOLE, None, name="n"), "weights must be Operand"),  # type: ignore[arg-type]
    (lambda: fp8_blocks(WHOLE, WHOLE, name="n", scaling=""), "scaling must be one of"),
    (lambda: RECIPES["mxfp8"].replace(meaning=3), "meaning must be str"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
