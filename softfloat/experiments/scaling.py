"""Loss scaling: multiplying by a power of two is exact, unless the product leaves the range.

>>> loss_scaling(256)
Scaling(format='float16', factor=256.0, finite=63488, scaled_exactly=47104, overflowed=16384, restored=47104)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softfloat import bits
from softfloat.environments import Environment
from softfloat.experiments.choices import environment_of
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["Scaling", "loss_scaling"]


@dataclass(frozen=True)
class Scaling:
    """Every finite code of a format multiplied by a factor, then divided by it.

    Attributes
    ----------
    format : str
    factor : float
    finite : int
        Finite codes.
    scaled_exactly : int
        Products that raised no flag.
    overflowed : int
        Products that raised OVERFLOW.
    restored : int
        Products without a flag whose quotient by the factor is the code they came from.
    """

    format: str
    factor: float
    finite: int
    scaled_exactly: int
    overflowed: int
    restored: int


def loss_scaling(
    factor: float = 256.0, fmt: Format | str = "float16", *, environment: Environment | None = None
) -> Scaling:
    """Scale and unscale every finite code of a format.

    Parameters
    ----------
    factor : float
        A value of the format.
    fmt : Format
        Of at most 16 bits.
    environment : Environment, optional
        How products and quotients are rounded; default: IEEE 754's settings. Its seed is 0 if it has none. Nothing is summed: there
        is no accumulator.
    """
    chosen = environment_of(environment, None, 0)
    fmt = Format.from_name(fmt)
    if fmt.bits > 16:
        raise ValueError(f"fmt must have at most 16 bits, for every code is tried, got {fmt}")
    codes = np.arange(1 << fmt.bits, dtype=fmt.dtype)
    codes = codes[bits.isfinite(codes, fmt)]
    scale, rounded = bits.encode(factor, fmt)
    if rounded:
        raise ValueError(f"factor must be a value of {fmt}, got {factor!r}")
    products, flags = bits.mul(codes, scale, fmt, environment=chosen)
    exact = flags == 0
    quotients, _ = bits.div(products, scale, fmt, environment=chosen)
    return Scaling(
        format=fmt.name,
        factor=float(factor),
        finite=len(codes),
        scaled_exactly=int(exact.sum()),
        overflowed=int(((flags & int(Flags.OVERFLOW)) != 0).sum()),
        restored=int((exact & (quotients == codes)).sum()),
    )
