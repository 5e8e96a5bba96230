"""Arithmetic of wide formats against MPFR, which rounds once to any precision, subnormal numbers included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest

from softfloat import Format, bits, float64
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.operations import resolve

MPFR: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "sqrt": gmpy2.sqrt,
    "fma": gmpy2.fma,
    "fmod": gmpy2.fmod,
    "remainder": gmpy2.remainder,
}
MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "toward_positive": gmpy2.RoundUp,
    "toward_negative": gmpy2.RoundDown,
}
INEXACT, DIVBYZERO, INVALID = 1, 8, 16


@pytest.mark.parametrize("fmt", [float64, Format("e11m40", 11, 40), Format("e9m30", 9, 30)], ids=str)
@pytest.mark.parametrize("name", MPFR)
def test_operations_are_those_of_mpfr(name: str, fmt: Format) -> None:
    """Ties, subnormal results, cancellation, edges; values, signs, and the flags that MPFR has alike."""
    columns = draw_operands(resolve(name, fmt), "mixed", 400, 7)
    columns = [x[~np.logical_or.reduce([bits.issnan(y, fmt) for y in columns])] for x in columns]
    exact = [bits.decode(x, fmt).tolist() for x in columns]
    for mode, theirs in MODES.items():
        least = fmt.minexp - fmt.mantissa_bits + 1
        with gmpy2.context(precision=fmt.p, emax=fmt.maxexp, emin=least, subnormalize=True, round=theirs) as context:
            codes, raised = getattr(bits, name)(*columns, fmt, rounding=mode)
            for i, row in enumerate(zip(*exact, strict=True)):
                numbers = [gmpy2.mpfr(x) for x in row]
                context.clear_flags()
                expected, found = float(MPFR[name](*numbers)), float(bits.decode(codes[i], fmt))
                shared = (
                    INEXACT | DIVBYZERO | (0 if any(x != x for x in row) else INVALID)
                )  # 0 * inf + NaN may raise it
                flags = context.inexact * INEXACT | context.divzero * DIVBYZERO | context.invalid * INVALID
                assert (found != found and expected != expected) or (
                    (found, np.signbit(found)) == (expected, np.signbit(expected))
                ), (mode, row)
                assert raised[i] & shared == flags & shared, (mode, row)
