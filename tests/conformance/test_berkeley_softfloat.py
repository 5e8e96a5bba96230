"""Compiled code beside Berkeley SoftFloat and MPFR themselves: codes and flags, five modes, both tininess rules."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from operands import operands
from outside import MPFR_MODES, MPFR_OPS, SETTINGS, mpfr, pack, softfloat, to_float, unpack

from softfloat import ROSTER, bits, float64

SOFTFLOAT = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rem": 2, "sqrt": 1, "mul_add": 3}
OURS = {"rem": bits.remainder, "mul_add": bits.fma}
KINDS = {"f16": ROSTER["float16"], "f32": ROSTER["float32"], "f64": float64}
MPFR_FORMATS = [
    "bfloat16",
    "float8_e5m2",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3b11fnuz",
]


@pytest.mark.parametrize("operation", SOFTFLOAT)
@pytest.mark.parametrize("kind", KINDS)
def test_softfloat(kind: str, operation: str) -> None:
    fmt = KINDS[kind]
    columns = operands(fmt, 3000, SOFTFLOAT[operation], 11)
    packed = [[pack(int(code), kind) for code in column] for column in columns]
    compute = OURS.get(operation) or getattr(bits, operation)
    for rounding, tininess in SETTINGS:
        codes, flags = compute(*columns, fmt, rounding=rounding, tininess=tininess)
        name = f"{kind}_{operation}"
        theirs = [softfloat(name, rounding, tininess, *row) for row in zip(*packed, strict=True)]
        expected = np.array([unpack(result) for result, _ in theirs], fmt.dtype)
        raised = np.array([flag for _, flag in theirs])
        codes, expected = (np.where(bits.isnan(x, fmt), fmt.dtype.type(fmt.nan_code), x) for x in (codes, expected))
        for i in np.flatnonzero((codes != expected) | (flags != raised)):
            pytest.fail(f"{[hex(int(column[i])) for column in columns]}, {rounding}, tininess {tininess}")


@pytest.mark.parametrize("operation", MPFR_OPS)
@pytest.mark.parametrize("name", MPFR_FORMATS)
def test_mpfr(name: str, operation: str) -> None:
    """Overflow is left out where the format has no infinity, and -0 compares as 0 where it has none."""
    fmt, (arity, _, theirs) = ROSTER[name], MPFR_OPS[operation]
    columns = operands(fmt, 1500, arity, 13)
    compute = getattr(bits, operation)
    compared = 0
    unordered = np.logical_or.reduce([bits.isnan(column, fmt) for column in columns]).tolist()
    for rounding in MPFR_MODES:
        codes, flags = compute(*columns, fmt, rounding=rounding)
        for i, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if unordered[i]:
                continue
            value, expected = mpfr(fmt, rounding, theirs, row)
            if not fmt.infinities and (expected & 12 or abs(value) > fmt.max):
                continue
            found = to_float(int(codes[i]), fmt)
            if not fmt.signed_zero:
                value, found = value + 0.0, found + 0.0
            assert (repr(found), int(flags[i])) == (repr(value), expected), ([hex(code) for code in row], rounding)
            compared += 1
    assert compared > 2000


def test_rows_are_of_every_kind() -> None:
    """The operands above meet every flag in every combination that half add, mul and div can raise."""
    fmt = ROSTER["float16"]
    seen = set()
    for operation, seed in itertools.product((bits.add, bits.mul, bits.div), range(3)):
        seen |= set(operation(*operands(fmt, 3000, 2, seed), fmt)[1].tolist())
    assert seen == {0, 1, 3, 5, 8, 16}
