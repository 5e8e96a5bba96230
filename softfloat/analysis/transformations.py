"""Operations with their errors, which to nearest are numbers of the format where nothing overflows or underflows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.handlers import paired
from softfloat.arrays.held import evaluated, wrapped
from softfloat.arrays.softarray import SoftArray
from softfloat.engine import Codes
from softfloat.environments import Environment, Overflow, Rounding
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = [
    "augmented_addition",
    "augmented_multiplication",
    "augmented_subtraction",
    "fast_two_sum",
    "two_prod",
    "two_sum",
]


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


# -- augmented operations --------------------------------------------------------------------------------------------

ROUNDED = int(Flags.OVERFLOW | Flags.UNDERFLOW | Flags.INEXACT)


def augmented_addition(a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    """(s, e): s is a + b to nearest, ties toward zero, whatever the environment's mode; e is a + b - s, exactly.

    IEEE 754-2019, 9.5. Where s is infinite or NaN, e is the same; an e of 0 has the sign of s. INEXACT is raised with OVERFLOW, or with
    UNDERFLOW where the format cannot hold e, which is rounded as s is; subnormal numbers are kept, and overflow gives infinity.

    >>> import softfloat
    >>> augmented_addition(softfloat.array(2048.0, "float16"), 3)  # 2051 lies between 2050 and 2052
    (SoftArray(2050.0, float16), SoftArray(1.0, float16))
    """
    return _augmented("augmented_addition", SUM, a, b)


def augmented_subtraction(a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    """`augmented_addition` of a - b."""
    return _augmented("augmented_subtraction", DIFFERENCE, a, b)


def augmented_multiplication(a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    """`augmented_addition` of a b. Errors of small products may be too small for the format: these raise UNDERFLOW."""
    return _augmented("augmented_multiplication", PRODUCT, a, b)


def _augmented(name: str, function: Any, a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    x, y, fmt = paired(name, a, b)
    codes = np.broadcast_arrays(x.codes, y.codes)
    found = evaluated(name, function, *codes, fmt)
    return wrapped(found[0], fmt), wrapped(found[1], fmt)


def _with_errors(
    function: Any, x: Codes, y: Codes, fmt: Format, *, environment: Environment, flags: str, **options: Any
) -> tuple[Codes, Any]:
    """Codes of results and of their errors, and flags, as `evaluate_as` asks for them."""
    even = environment.settings.replace(
        rounding=Rounding.NEAREST_EVEN, overflow=Overflow.INFINITY, daz=False, ftz=False, projection="ieee"
    )
    first, raised = function(x, y, fmt, environment=even, flags="each", **options)
    a, b = (np.asarray(bits.decode(z, fmt)) for z in (x, y))
    with np.errstate(all="ignore"):
        if function is bits.mul:
            high, low = a * b, np.zeros(a.shape)  # 48 bits
        else:
            b = -b if function is bits.sub else b
            high = a + b  # and what float64 loses of it, by two_sum
            low = (a - (high - (high - a))) + (b - (high - a))
    first, rest = _ties_to_zero(np.asarray(first), high, low, fmt)
    finite = bits.isfinite(first, fmt)
    second, small = bits.encode(np.where(finite, rest, 0.0), fmt, environment=even, flags="each")
    second, _ = _ties_to_zero(np.asarray(second), rest, np.zeros(rest.shape), fmt)
    second = np.where(rest == 0, bits.copysign(second, first, fmt), second) if fmt.signed_zero else second
    raised = np.where(finite, (raised & ~np.uint8(ROUNDED)) | small, raised)
    return np.stack([first, np.where(finite, second, first)]), raised if flags == "each" else np.bitwise_or.reduce(
        raised, axis=None
    )


SUM, DIFFERENCE, PRODUCT = (partial(_with_errors, function) for function in (bits.add, bits.sub, bits.mul))


def _ties_to_zero(codes: Codes, high: Any, low: Any, fmt: Format) -> tuple[Codes, Any]:
    """Codes of high + low to nearest, ties toward zero, from those with ties to even; and what is left of high + low."""
    values = np.asarray(bits.decode(codes, fmt))
    toward_zero = np.where(values > 0, bits.next_down(codes, fmt)[0], bits.next_up(codes, fmt)[0])
    beside = np.asarray(bits.decode(toward_zero, fmt))
    with np.errstate(all="ignore"):
        beyond = 2.0 ** (np.floor(np.log2(fmt.max)) + 1)  # where infinity stands among numbers
        values = np.where(np.isinf(values) & np.isfinite(high), np.copysign(beyond, values), values)
        rest = (high - values) + low
        tie = (values != 0) & (values - beside == -2 * rest)
        return np.where(tie, toward_zero, codes).astype(fmt.dtype), np.where(tie, -rest, rest)
