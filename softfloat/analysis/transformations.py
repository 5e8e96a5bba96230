"""Operations with their errors, which to nearest are numbers of the format where nothing overflows or underflows."""

from __future__ import annotations

from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.functions import paired
from softfloat.arrays.softarray import SoftArray, evaluated, wrapped

__all__ = ["fast_two_sum", "two_prod", "two_sum"]


def two_sum(a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    """(s, e) with s = a + b rounded and s + e = a + b, by six operations.

    Operands as an operator takes them, one of them a SoftArray; flags are those of the steps. Source: Knuth, The Art of Computer
    Programming, 4.2.2.

    >>> import softfloat
    >>> two_sum(softfloat.array(2048.0, "float16"), 1)
    (SoftArray(2048.0, float16), SoftArray(1.0, float16))
    """
    x, y, _ = paired("two_sum", a, b)
    s: Any = x + y
    z = s - x
    return s, (x - (s - z)) + (y - z)


def fast_two_sum(a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    """`two_sum` by three operations, where ``|a| >= |b|``. Source: Dekker 1971."""
    x, y, _ = paired("fast_two_sum", a, b)
    s: Any = x + y
    return s, y - (s - x)


def two_prod(a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    """(p, e) with p = a b rounded and p + e = a b, by a fused multiply-add.

    >>> import softfloat
    >>> two_prod(softfloat.array(1.001, "float16"), softfloat.array(1.001, "float16"))
    (SoftArray(1.002, float16), SoftArray(9.5e-07, float16))
    """
    x, y, fmt = paired("two_prod", a, b)
    p: Any = x * y
    rest = evaluated("two_prod", bits.fma, *np.broadcast_arrays(x.codes, y.codes), (-p).codes, fmt)
    return p, wrapped(np.asarray(rest), fmt)
