"""Numbers of a format in decimal: as short as they tell codes apart, and as NumPy lays arrays out."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

from softfloat import bits, markup
from softfloat.engine import Codes
from softfloat.formats import Format

__all__ = ["array_text", "decimals", "shortest"]

MOST_DIGITS = 9  # identify every number of 24 bits of precision; wide formats may need more
FEW_DIGITS = 3  # are read at a glance, whatever the format
LEAST_PLAIN = 1e-4  # NumPy writes smaller numbers with exponents, and so are they here


def shortest(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """float64 numbers whose shortest decimal representation tells each code from every other, and does not mislead.

    Integers that are written out (`markup.is_written_out`) are exact, and so are numbers of as few digits as the format may need to
    tell its numbers apart, or three: 288 is not 300 in a format that would read it so, nor 7.5 a whole 8. All others have as few
    digits as will do: 0.1 is the nearest number to 0.1.
    """
    flat = np.asarray(codes).reshape(-1)
    values = np.asarray(bits.decode(flat, fmt))
    result = values.copy()
    enough = max(FEW_DIGITS, 1 + math.ceil(fmt.p * math.log10(2)))
    brief = [markup.is_written_out(x) or float(f"{x:.{enough}g}") == x for x in values.tolist()]
    left = np.flatnonzero(np.isfinite(values) & ~np.array(brief, bool))
    for digits in range(1, max(enough, MOST_DIGITS) + 1):
        if not left.size:
            break
        for rounding in (decimal.ROUND_HALF_EVEN, decimal.ROUND_FLOOR, decimal.ROUND_CEILING):
            decimals = decimal.Context(digits, rounding)
            tried = np.array([float(decimals.create_decimal_from_float(x)) for x in values[left].tolist()])
            found = bits.encode(tried, fmt, flags="any")[0] == flat[left]
            result[left[found]] = tried[found]
            left = left[~found]
    return result.reshape(np.shape(codes))


def array_text(
    numbers: np.ndarray[Any, Any], max_line_width: Any = None, precision: int | None = None, *more: Any, **options: Any
) -> str:
    """`numpy.array2string`, but without exponents where all digits have room, however far apart the numbers are."""
    places = np.get_printoptions()["precision"] if precision is None else precision
    some = numbers[np.isfinite(numbers) & (numbers != 0)]
    with np.errstate(over="ignore"):  # in `round`, of the largest numbers of wide formats
        plain = (abs(some) >= LEAST_PLAIN) & (abs(some) < markup.LEAST_LARGE) & (np.round(some, places) == some)
    with np.printoptions(suppress=np.get_printoptions()["suppress"] or bool(plain.all())):
        return np.array2string(numbers, max_line_width, precision, *more, **options)


def decimals(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """`shortest` of the elements; of a long array, only of those that are printed."""
    options = np.get_printoptions()
    if codes.size <= options["threshold"]:
        return shortest(codes, fmt)
    edge = options["edgeitems"]
    part = np.ix_(*(np.r_[0:edge, n - edge : n] if n > 2 * edge else np.arange(n) for n in codes.shape))
    result = np.zeros(codes.shape, np.float64)
    result[part] = shortest(codes[part], fmt)
    return result
