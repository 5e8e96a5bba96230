"""Operations with their errors, which to nearest are numbers of the format where nothing overflows or underflows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import exact
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

ROUNDED = int(Flags.UNDERFLOW | Flags.INEXACT)


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
    if not fmt.signed:
        raise TypeError(f"{name} needs a format with negative numbers, got {fmt}; astype() converts")
    codes = np.broadcast_arrays(x.codes, y.codes)
    found = evaluated(name, function, *codes, fmt)
    return wrapped(found[0], fmt), wrapped(found[1], fmt)


def _with_errors(
    function: Any, x: Codes, y: Codes, fmt: Format, *, environment: Environment, flags: str, **options: Any
) -> tuple[Codes, Any]:
    """Codes of results and of their errors, and flags, as `evaluate_as` asks for them."""
    own = environment.settings.replace(
        rounding=Rounding.NEAREST_ZERO, overflow=Overflow.INFINITY, daz=False, ftz=False, projection="ieee"
    )

    def done(operation: Any, *operands: Any, **more: Any) -> Any:
        return operation(*operands, fmt, environment=own, flags="each", **options, **more)

    main, raised = done(function, x, y)
    if function is bits.mul:
        rest, small = done(bits.fma, x, y, bits.negative(main, fmt))
    else:  # at once: steps of `two_sum` overflow near the largest number, and need subnormal numbers
        terms = np.stack([x, y if function is bits.add else bits.negative(y, fmt), bits.negative(main, fmt)], axis=-1)
        rest, small = done(bits.sum, terms, accumulator=exact(fmt), axis=-1, out_format=fmt)
    finite = bits.isfinite(main, fmt)
    if fmt.signed_zero:
        rest = np.where(bits.iszero(rest, fmt) & (small == 0), bits.copysign(rest, main, fmt), rest)
    kept = np.where(finite & (raised & int(Flags.OVERFLOW) == 0), raised & ~np.uint8(ROUNDED), raised)
    raised = np.where(finite, kept | small, raised)
    found = np.stack([main, np.where(finite, rest, main)])
    return found, raised if flags == "each" else np.bitwise_or.reduce(raised, axis=None)


SUM, DIFFERENCE, PRODUCT = (partial(_with_errors, function) for function in (bits.add, bits.sub, bits.mul))
