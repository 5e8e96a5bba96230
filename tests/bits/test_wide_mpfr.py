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
ONE_OPERAND = (
    *("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt"),
)
TWO_OPERANDS = ("atan2", "hypot", "pow")


def numbers(random: np.random.Generator) -> np.ndarray:
    """About 1, near it, of the whole range, integers, and the ends."""
    some = 8
    drawn = (
        random.standard_normal(some) * 20,
        1 - 2.0 ** -random.integers(1, 54, some),
        2.0 ** random.integers(-1074, 1024, some) * random.choice([1, -1], some),
        random.integers(0, 2**64, some, dtype=np.uint64).view(np.float64),
        np.round(random.standard_normal(some) * 20),
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324, 27.0, -8.0, 1e22, 0.5, 1000.0],
        [-1074.0, -1022.5, 3.0**33, 709.78, -745.13, 2.0**-300, 2.0],
    )
    found = np.concatenate(drawn)
    return np.where(np.isnan(found), np.nan, found)


@pytest.mark.parametrize("fmt", [float64, Format("e11m40", 11, 40)], ids=str)
@pytest.mark.parametrize("name", [*ONE_OPERAND, *TWO_OPERANDS])
def test_functions_are_those_of_mpfr(name: str, fmt: Format) -> None:
    random = np.random.default_rng(3)
    operands = [numbers(random)]
    if name in TWO_OPERANDS:
        ends = operands[0][40:47]
        operands = [
            np.concatenate([operands[0], np.repeat(ends, ends.size)]),
            np.concatenate([random.permutation(operands[0]), np.tile(ends, ends.size)]),
        ]
    columns = [bits.encode(x, fmt)[0] for x in operands]
    exact = [bits.decode(x, fmt).tolist() for x in columns]
    least = fmt.minexp - fmt.mantissa_bits + 1
    for mode in ("nearest_even", "toward_negative"):
        codes, raised = getattr(bits, name)(*columns, fmt, rounding=mode)
        found = bits.decode(codes, fmt).tolist()
        own = gmpy2.context(precision=fmt.p, emax=fmt.maxexp, emin=least, subnormalize=True, round=MODES[mode])
        with own as context:
            for i, row in enumerate(zip(*exact, strict=True)):
                given = [gmpy2.mpfr(x) for x in row]
                context.clear_flags()
                expected = float(given[0] ** given[1] if name == "pow" else getattr(gmpy2, name)(*given))
                flags = context.inexact * INEXACT | context.divzero * DIVBYZERO | context.invalid * INVALID
                shared = INEXACT | DIVBYZERO | (0 if any(x != x for x in row) else INVALID)
                same = (found[i], np.signbit(found[i])) == (expected, np.signbit(expected))
                assert same or (found[i] != found[i] and expected != expected), (mode, row)
                assert raised[i] & shared == flags & shared, (mode, row)


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
