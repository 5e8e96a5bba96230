"""Short last blocks of rows, which large arrays have a loop of their own for: the same as with zeros beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softfloat import BlockFormat, bits, engine
from softfloat.bits.blocks import numbers


def some_numbers(width: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Rows of ordinary numbers, of which some have zeros, NaNs, infinities or numbers near the ends of the range."""
    random = np.random.default_rng(width)
    x = random.standard_normal((256, width)) * 2.0 ** random.integers(-30, 30, (256, 1))
    x[3], x[4, -1], x[5, 0], x[6, -2], x[7], x[8, -5:] = 0, np.nan, np.inf, -np.inf, 2.0**-140, 2.0**120
    return x.astype(np.float32)


@pytest.mark.parametrize("width", [16, 80, 144, 160])
@pytest.mark.parametrize(
    "options", [{"flags": "each"}, {"flags": "any"}, {"rounding": "stochastic", "seed": 5}], ids=str
)
@pytest.mark.parametrize(
    "fmt",
    [
        "mxfp8_e4m3",
        "mxint8",
        BlockFormat("tiled", element="float8_e4m3fn", scale="float32", block=128),
        BlockFormat("two", element="float4_e2m1fn", scale="float8_e4m3fn", block=32),
    ],
    ids=str,
)
def test_short_last_blocks(monkeypatch: pytest.MonkeyPatch, fmt: Any, options: dict[str, Any], width: int) -> None:
    x, seen, run = some_numbers(width), [], engine.quantized
    monkeypatch.setattr(numbers, "MANY", 1)

    def watched(array: Any, places: Any, *rest: Any) -> Any:
        seen.extend(place.length for place in places)
        return run(array, places, *rest)

    monkeypatch.setattr(engine, "quantized", watched)
    found, flags = bits.quantize(x, fmt, **options)
    short = width % found.block_shape[-1]
    assert (short in seen) == (short in (16, 32, 64))  # lengths that have loops
    monkeypatch.setattr(numbers, "MANY", x.size + 1)
    seen.clear()
    wanted, raised = bits.quantize(x, fmt, **options)
    assert short not in seen
    np.testing.assert_array_equal(found.elements, wanted.elements)
    np.testing.assert_array_equal(found.scales, wanted.scales)
    np.testing.assert_array_equal(flags, raised)
