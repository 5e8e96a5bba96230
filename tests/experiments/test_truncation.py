"""Paddle's software conversion, against its own steps on integers, and against rounding to nearest even."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softfloat import bits
from softfloat.experiments import software_half, truncation


def by_shifts(codes: Any) -> Any:
    """What the C++ does, told step by step: a product with 2^37 cut to an integer below 2^-14, shifts, and gaps closed."""
    sign, magnitude = codes & np.uint32(0x80000000), (codes & np.uint32(0x7FFFFFFF)).astype(np.int64)
    below = magnitude < 0x38800000
    scaled = (magnitude.astype(np.uint32).view(np.float32)[below] * np.float32(2.0**37)).astype(np.int64)
    magnitude[below] = scaled
    infinite, quietest = 0x7F800000, ((0x7F800000 >> 13) + 1) << 13
    magnitude[(magnitude > 0x477FE000) & (magnitude < infinite)] = infinite
    magnitude[(magnitude > infinite) & (magnitude < quietest)] = quietest
    shifted = magnitude >> 13
    top, smallest = 0x477FE000 >> 13, 0x38800000 >> 13
    shifted = np.where(shifted > top, shifted - ((infinite >> 13) - top - 1), shifted)
    shifted = np.where(shifted > 0x3FF, shifted - (smallest - 0x3FF - 1), shifted)
    return (shifted | (sign >> 16)).astype(np.uint16)


def borders() -> Any:
    """Every half, the float32 codes around it, and around the middle to the next; NaNs."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    finite = bits.decode(halves[bits.isfinite(halves, "float16")], "float16").astype(np.float32).view(np.uint32)
    around = [finite + np.uint32(x) for x in (-1, 0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF) if x >= 0] + [
        finite - np.uint32(1)
    ]
    nans = [
        sign | 0x7F800000 | x for sign in (0, 1 << 31) for x in (0, 1, 0x1FFF, 0x2000, 0x3FFFFF, 0x400000, 0x7FFFFF)
    ]
    return np.concatenate([*around, np.array(nans, np.uint32)])


def test_it_is_what_the_shifts_do() -> None:
    codes = np.concatenate([borders(), np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)])
    assert np.array_equal(software_half(codes), by_shifts(codes))


@pytest.mark.exhaustive
def test_it_is_what_the_shifts_do_for_all_numbers() -> None:
    for start in range(0, 2**32, 2**24):
        codes = np.arange(start, start + 2**24, dtype=np.uint64).astype(np.uint32)
        assert np.array_equal(software_half(codes), by_shifts(codes))


def test_half_of_all_numbers_come_out_otherwise_and_smaller() -> None:
    found = truncation()
    assert found.count == 20_000
    assert abs(found.different / found.count - 0.5) < 0.02
    assert found.software_bias < -(2.0**-12)
    assert abs(found.nearest_bias) < 2.0**-16


def test_numbers_on_which_they_differ() -> None:
    """Within the normal range, at its end, below its beginning."""
    numbers = np.float32([0.3, 1 - 2.0**-24, 65504.01, 65519.99, 2.0**-24 - 2.0**-48, 1.99 * 2.0**-24])
    software, nearest = software_half(numbers.view(np.uint32)).view(np.float16), numbers.astype(np.float16)
    assert ((np.abs(software) < np.abs(nearest)) | np.isinf(software)).all()
    assert software[2:].tolist() == [np.inf, np.inf, 0.0, 2.0**-24]


def test_weights_are_not_converted_that_way() -> None:
    pytest.importorskip("onnx")
    from saved_models import MODELS

    from softfloat.onnx import convert

    source, model = (MODELS["perceptron"](), convert(MODELS["perceptron"](), recipe="paddle")[0])
    given = np.frombuffer(source.graph.initializer[2].raw_data, np.uint32)
    made = np.frombuffer(model.graph.initializer[2].raw_data, np.uint16)
    assert np.array_equal(made, given.view(np.float32).astype(np.float16).view(np.uint16))
    assert not np.array_equal(made, software_half(given))
