"""Operands by construction: every class of code, neighbourhoods of thresholds, cancellation, and plain random bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from softfloat import Format, bits

CUSTOM = (
    Format("e6m9", exponent_bits=6, mantissa_bits=9),
    Format("e8m15", exponent_bits=8, mantissa_bits=15),
    Format("e3m0", exponent_bits=3, mantissa_bits=0, nan="none"),
    Format("e5m7_no_subnormals", exponent_bits=5, mantissa_bits=7, subnormals=False),
    Format("e5m3_unsigned", exponent_bits=5, mantissa_bits=3, signed=False),
    Format("e4m3_p3109", exponent_bits=4, mantissa_bits=3, nan="fnuz", infinities=True),
    Format("e4m2_fn_inf", exponent_bits=4, mantissa_bits=2, nan="fn", infinities=True, bias=20),
)
"""Formats beyond the roster, each for something no roster format has."""


def edges(fmt: Format) -> np.ndarray:
    """Codes at and next to every boundary."""
    codes = {
        0,
        1,
        2,
        fmt.max_code,
        fmt.max_code - 1,
        fmt.smallest_normal_code,
        fmt.smallest_normal_code + 1,
        max(fmt.smallest_normal_code - 1, 0),
    }
    for exponent in (0, 1, fmt.mantissa_bits):
        code = (exponent + (fmt.bias or 0)) << fmt.mantissa_bits
        codes |= {code, code + 1} if 0 <= code < fmt.max_code else set()
    if fmt.infinities:
        codes.add(fmt.inf_code)
    if fmt.has_nan:
        codes.add(fmt.nan_code)
    if fmt.nan == "ieee":
        codes |= {fmt.inf_code | 1, fmt.nan_code | 1} if fmt.mantissa_bits > 1 else set()
    codes = {code for code in codes if 0 <= code < 1 << (fmt.bits - fmt.signed)}  # the shortest formats have few
    signed = {code ^ fmt.sign_bit for code in codes}
    return np.array(sorted(codes | signed), fmt.dtype)


def operands(fmt: Format, count: int, arity: int, seed: int) -> list[np.ndarray]:
    """`arity` arrays of `count` codes: a third random bits, a third edges, a third with magnitudes close to each other."""
    random = np.random.default_rng(seed)
    everything = np.arange(2**fmt.bits, dtype=fmt.dtype) if fmt.bits <= 8 else None

    def any_bits(size: int) -> np.ndarray:
        if everything is not None:
            return random.choice(everything, size)
        return random.integers(0, 2**fmt.bits, size, dtype=np.uint64).astype(fmt.dtype)

    result = []
    near = any_bits(count)
    for _ in range(arity):
        mixed = any_bits(count)
        boundary = random.choice(edges(fmt), count)
        shift = random.integers(-3, 4, count)
        magnitude = np.clip((near & ~fmt.dtype.type(fmt.sign_bit)).astype(np.int64) + shift, 0, fmt.max_code)
        close = magnitude.astype(fmt.dtype) | random.choice(np.array([0, fmt.sign_bit], fmt.dtype), count)
        kind = random.integers(0, 3, count)
        result.append(np.select([kind == 0, kind == 1], [boundary, close], mixed).astype(fmt.dtype))
    assert bits.isnan(result[0], fmt).shape == (count,)
    return result


def ordinary(fmt: Format, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Numbers of many sizes, some of whose products are tiny, and some of whose sums overflow."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape) * np.exp2(random.integers(-9, 6, shape))
    found: np.ndarray[Any, Any] = bits.encode(values, fmt, overflow="saturate")[0]
    return found
