"""Truncation: PaddlePaddle's conversion of float32 to half precision in software, beside rounding to nearest even.

Paddle's design document says `float_to_half_rn`, to nearest even, and so convert F16C, CUDA and ARM; where none of them is there,
`paddle/fluid/platform/float16.h` shifts bits out. What Paddle's transpiler converts in Python, weights above all, NumPy rounds.

>>> import numpy as np
>>> [hex(code) for code in software_half(np.float32([1.0009765, 65504.0, 65504.01]).view(np.uint32))]
['0x3c00', '0x7bff', '0x7c00']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.checks import check_count, check_seed
from softfloat.environments import Environment
from softfloat.formats import float16, float32

__all__ = ["Truncation", "software_half", "truncation"]


def software_half(codes: Any) -> Any:
    """Paddle's software conversion of float32 to half precision. Its rule is fixed: it takes neither an environment nor an accumulator.

    Parameters
    ----------
    codes : array_like of int
        Of float32.

    Returns
    -------
    codes : array of uint16
        Rounded toward zero; but everything above 65504 is infinity, what rounds down to 65504 too. NaNs keep their sign and the
        upper ten bits of their payload, and are not quieted; where these bits are zero, the payload is 1.

    Source
    ------
    PaddlePaddle/Paddle, paddle/fluid/platform/float16.h, the branch without CUDA, ARM and F16C.
    """
    given = np.asarray(codes, float32.dtype)
    rounded, _ = bits.convert(given, float32, float16, environment=Environment(rounding="toward_zero"))
    magnitude = given & 0x7FFFFFFF
    largest = int(np.float32(float16.max).view(np.uint32))
    sign = ((given >> 16) & 0x8000).astype(np.uint16)
    payload = np.maximum((magnitude >> 13) & 0x3FF, 1).astype(np.uint16)
    infinity = np.uint16(0x7C00)
    made = np.where(magnitude > largest, sign | infinity, rounded)
    return np.where(magnitude > 0x7F800000, sign | infinity | payload, made).astype(np.uint16)[()]


@dataclass(frozen=True)
class Truncation:
    """Many numbers converted both ways.

    Attributes
    ----------
    count : int
        How many.
    different : int
        On how many the two differ.
    software_bias, nearest_bias : float
        The mean of the relative errors, with their sign toward zero: 2^-11 is half a unit of the last place.
    """

    count: int
    different: int
    software_bias: float
    nearest_bias: float


def truncation(count: int = 20_000, seed: int = 0) -> Truncation:
    """Normally distributed numbers, as of weights, truncated and rounded to nearest.

    Both rules are fixed: it takes neither an environment nor an accumulator.
    """
    numbers = np.random.default_rng(check_seed("seed", seed)).standard_normal(check_count("count", count))
    sources = numbers.astype(np.float32)
    software, nearest = _both(sources)
    exact = sources.astype(np.float64)
    biases = (float(np.mean((made - exact) / exact)) for made in (software, nearest))
    return Truncation(count, int(np.count_nonzero(software != nearest)), *biases)


def _both(sources: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    software = bits.decode(software_half(sources.view(np.uint32)), float16)
    rounded, _ = bits.encode(sources, float16, environment=Environment())
    return np.asarray(software), np.asarray(bits.decode(rounded, float16))
