"""Block formats against gfloat: codes read under every scale, and blocks quantised, in all its modes of rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softfloat import BLOCK_ROSTER, Fixed, bits
from softfloat.bits import BlockCodes

gfloat: Any = pytest.importorskip("gfloat")

NAMES = ("mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1", "mxint8")
MODES = {
    "TiesToEven": "nearest_even",
    "TiesToAway": "nearest_away",
    "TowardZero": "toward_zero",
    "TowardPositive": "toward_positive",
    "TowardNegative": "toward_negative",
}


def described(name: str) -> Any:
    from gfloat import formats

    return getattr(formats, f"format_info_{name}")


@pytest.mark.parametrize("name", NAMES)
def test_every_element_under_scales(name: str) -> None:
    fmt, info = BLOCK_ROSTER[name], described(name)
    codes = np.arange(1 << fmt.element.bits, dtype=fmt.element.dtype)
    scales = np.array([0, 1, 64, 126, 127, 128, 200, 254, 255], np.uint8)
    whole = BlockCodes(np.tile(codes, (scales.size, 1)), scales[:, None], fmt, block=codes.size)
    values = bits.dequantize(whole)
    expected = [list(gfloat.decode_block(info, [int(scale), *codes.tolist()])) for scale in scales]
    np.testing.assert_array_equal(values, expected)


def blocks() -> np.ndarray:
    """Ordinary ones, ones of many exponents, zeros, midpoints, and those whose largest number lies just below a power of two."""
    random = np.random.default_rng(12)
    normal = random.normal(size=(12, 32)) * 2.0 ** random.integers(-40, 40, (12, 1))
    wide = random.normal(size=(12, 32)) * 2.0 ** random.integers(-20, 20, (12, 32))
    halves = random.integers(-64, 65, (12, 32)) / 16 * 2.0 ** random.integers(-9, 9, (12, 1))
    below = random.uniform(-1, 1, (4, 32)).astype(np.float32)
    below[:, 3] = np.nextafter(np.float32(2.0) ** np.arange(4, dtype=np.float32), np.float32(0))
    return np.concatenate([normal, wide, halves, below, np.zeros((1, 32))]).astype(np.float32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_quantised_blocks(name: str, mode: str) -> None:
    """Its scales are OCP's, of float64 numbers: in float32 its logarithm errs below powers of two. Its integers reach down to -2."""
    fmt, info, x = BLOCK_ROSTER[name], described(name), blocks()
    values = bits.dequantize(bits.quantize(x, name, rounding=MODES[mode], flags="any")[0])
    wanted = gfloat.RoundMode[mode]
    expected = np.array(
        [gfloat.quantize_block(info, row, gfloat.compute_scale_amax, wanted) for row in x.astype(np.float64)]
    )
    differs = values != expected
    if isinstance(fmt.element, Fixed):
        scale = 2.0 ** np.floor(np.log2(np.abs(x).max(axis=1, initial=1e-30).astype(np.float64)))[:, None]
        differs &= expected != -2 * scale
    assert not differs.any()
