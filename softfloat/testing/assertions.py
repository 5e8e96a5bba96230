"""Comparing codes: distance in units of the last place, and an assertion that shows what differs.

>>> ulp_distance(0x3C00, 0x3C02, "float16"), ulp_distance(0x8001, 0x0001, "float16")
(2, 2)
>>> assert_bits_equal([0x3C00, 0x7E01], [0x3C00, 0x7E00], "float16", nan="any")
>>> assert_bits_equal([0x3C01, 0x8000], [0x3C00, 0x0000], "float16")
Traceback (most recent call last):
    ...
AssertionError: 2 of 2 codes of float16 differ
  at (0,)  actual 0x3c01  0 01111 0000000001  1.0009765625  expected 0x3c00  0 01111 0000000000  1.0  1 ulp
  at (1,)  actual 0x8000  1 00000 0000000000  -0.0          expected 0x0000  0 00000 0000000000  0.0  sign of zero
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays import SoftArray
from softfloat.checks import check_choice
from softfloat.formats import Format, bit_fields, check_format, code_text

__all__ = ["assert_bits_equal", "bits_differ", "order", "ulp_distance"]

NAN_COMPARISONS = ("any", "canonical", "payload")
SHOWN = 10  # differences that a message shows


def order(codes: Any, fmt: Format | str) -> np.ndarray[Any, Any]:
    """Integers that follow each other as the numbers do, both zeros at 0; meaningless for NaNs.

    >>> order([0x8001, 0x8000, 0x0000, 0x0001, 0x7C00], "float16").tolist()
    [-1, 0, 0, 1, 31744]
    """
    fmt = check_format(fmt, wide=True)
    return engine.order(engine.check_codes(codes, fmt, "codes"), fmt)


def ulp_distance(a: Any, b: Any, fmt: Format | str) -> Any:
    """How many numbers of the format lie from a to b: 0 for equal ones, and between the zeros.

    Parameters
    ----------
    a, b : int or array_like of int
        Codes, of shapes that broadcast. Infinities follow the largest numbers.
    fmt : Format or str

    Returns
    -------
    int, or array of int64, of Python's integers for formats of 64 bits
        0 between NaNs; -1 between a NaN and a number, which no steps join.
    """
    fmt = check_format(fmt, wide=True)
    nan_a, nan_b = bits.isnan(a, fmt), bits.isnan(b, fmt)
    kind: Any = object if fmt.bits > 63 else np.int64
    first, second = (order(x, fmt).astype(kind) for x in (a, b))
    steps = np.asarray(abs(first - second), kind)
    found = np.where(nan_a & nan_b, 0, np.where(nan_a | nan_b, -1, steps))
    return found if found.ndim else int(found)


def bits_differ(actual: Any, expected: Any, fmt: Format | str, nan: str = "payload") -> Any:
    """Whether codes differ.

    Parameters
    ----------
    actual, expected : array_like of int
    fmt : Format or str
    nan : {"payload", "canonical", "any"}
        "payload": every bit counts. "canonical": where a NaN is expected, the format's canonical one must come.
        "any": every NaN will do.

    Returns
    -------
    array of bool
    """
    check_choice("nan", nan, NAN_COMPARISONS)
    fmt = check_format(fmt, wide=True)
    found = engine.check_codes(actual, fmt, "actual")
    wanted = engine.check_codes(expected, fmt, "expected")
    if nan == "payload" or not fmt.has_nan:
        return np.asarray(found != wanted)
    nans = engine.is_nan(wanted, fmt)
    right = engine.is_nan(found, fmt) if nan == "any" else found == fmt.nan_code
    return np.asarray(np.where(nans, ~right, found != wanted))


def assert_bits_equal(actual: Any, expected: Any, fmt: Format | str | None = None, *, nan: str = "payload") -> None:
    """Fail, and show where, unless codes are equal bit for bit.

    Parameters
    ----------
    actual, expected : int, array_like of int, or SoftArray
        Codes of one shape; SoftArrays bring their format.
    fmt : Format or str, optional
        Needed unless one of them is a SoftArray.
    nan : {"payload", "canonical", "any"}
        As in `bits_differ`.

    Raises
    ------
    AssertionError
        With the number of differences, and of the first ten index, codes, bit fields, values and distance.
    TypeError
        If there is no format, or there are two.
    """
    formats = [x.format for x in (actual, expected) if isinstance(x, SoftArray)]
    formats += [check_format(fmt, wide=True)] if fmt is not None else []
    if not formats:
        raise TypeError("fmt is needed: a softfloat.Format or its name")
    if any(one != formats[0] for one in formats):
        raise AssertionError(f"formats differ: {', '.join(str(one) for one in formats)}")
    kind = formats[0]
    found, wanted = (
        engine.check_codes(x.codes if isinstance(x, SoftArray) else x, kind, name)
        for x, name in ((actual, "actual"), (expected, "expected"))
    )
    if found.shape != wanted.shape:
        raise AssertionError(f"shapes differ: actual {found.shape}, expected {wanted.shape}")
    wrong = bits_differ(found, wanted, kind, nan)
    if wrong.any():
        raise AssertionError(_difference(found, wanted, kind, wrong))


def _difference(actual: Any, expected: Any, fmt: Format, wrong: Any) -> str:
    rows = []
    for place in np.argwhere(wrong)[:SHOWN]:
        index = tuple(int(i) for i in place)
        a, b = int(actual[index]), int(expected[index])
        rows.append(
            [
                f"at {index}" if index else "",
                f"actual {code_text(a, fmt)}",
                _fields(a, fmt),
                str(float(bits.decode(a, fmt))),
                f"expected {code_text(b, fmt)}",
                _fields(b, fmt),
                str(float(bits.decode(b, fmt))),
                _distance(a, b, fmt),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  " + "  ".join(x.ljust(n) for x, n in zip(row, widths, strict=True)).strip() for row in rows]
    count = int(np.count_nonzero(wrong))
    more = [f"  and {count - SHOWN} more"] if count > SHOWN else []
    return "\n".join([f"{count} of {wrong.size} codes of {fmt} differ", *lines, *more])


def _fields(code: int, fmt: Format) -> str:
    return " ".join(digits for _, digits in bit_fields(code, fmt))


def _distance(a: int, b: int, fmt: Format) -> str:
    steps = ulp_distance(a, b, fmt)
    if steps < 0:
        return "NaN against a number"
    if steps == 0:
        return "another NaN" if bits.isnan(a, fmt) else "sign of zero"
    return f"{steps} ulp"
