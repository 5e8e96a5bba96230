"""Numbers as text, exactly, and text as numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

__all__ = ["check_typed", "exact_decimal", "parse_value", "power_of_two"]


LONGEST_TYPED = 200  # characters
LARGEST_EXPONENT = 5000  # of a decimal number; far beyond every format, and still cheap to hold exactly


# -- numbers as text -------------------------------------------------------------------------------------------------


def exact_decimal(x: Fraction | int, plain_digits: int = 20) -> str:
    """All digits of a number whose denominator is a power of two; no rounding.

    Scientific notation is used for fractions that would need more than `plain_digits` places.

    >>> exact_decimal(Fraction(1, 2048)), exact_decimal(Fraction(1, 2**24))
    ('0.00048828125', '5.9604644775390625e-08')
    """
    x = Fraction(x)
    places = x.denominator.bit_length() - 1
    if x.denominator != 1 << places:
        raise ValueError(f"x must have a power of two as its denominator, got {x}")
    digits = str(abs(x.numerator) * 5**places)
    sign = "-" if x < 0 else ""
    if places == 0:
        return sign + digits
    if places <= plain_digits:
        digits = digits.rjust(places + 1, "0")
        return f"{sign}{digits[:-places]}.{digits[-places:]}"
    exponent = len(digits) - 1 - places
    digits = digits.rstrip("0")
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{exponent:+03d}"


def power_of_two(x: Fraction) -> int | None:
    """The exponent of a positive power of two; None for any other number.

    >>> power_of_two(Fraction(1, 1024)), power_of_two(Fraction(3))
    (-10, None)
    """
    if x <= 0 or x.numerator & (x.numerator - 1) or x.denominator & (x.denominator - 1):
        return None
    return x.numerator.bit_length() - x.denominator.bit_length()


HEXADECIMAL_FLOAT = re.compile(r"([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?\d+))?", re.IGNORECASE)
C_SUFFIX = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x[\da-f]*\.?[\da-f]*p[+-]?\d+)[fl]", re.IGNORECASE)
DECIMAL_EXPONENT = re.compile(r"e([+-]?\d+)$", re.IGNORECASE)


def parse_value(text: str) -> int | float | Fraction:
    """What a user typed: a code, or a number.

    Parameters
    ----------
    text : str
        "0x3c00", "0b1" and "0o17" are codes. "0.1", "1e-8", "1/3", "-0.0", "inf", "nan" and "0x1.8p-3" (a hexadecimal
        number has a point or a p) are numbers, as are C's constants with a suffix: "0.1f", "0x1.8p-3L".

    Returns
    -------
    int
        A code.
    Fraction
        A finite number, exactly.
    float
        Infinity, NaN or -0.0.

    Raises
    ------
    ValueError
        Naming what is accepted.
    """
    stripped = text.strip()
    lowered = stripped.lower()
    if C_SUFFIX.fullmatch(lowered):
        lowered = lowered[:-1]
    accepted = "accepted: a code (0x3c00, 0b0011) or a number (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3)"
    if re.fullmatch(r"0[xbo][0-9a-f_]+", lowered) and not ("p" in lowered or "." in lowered):
        try:
            return int(lowered, 0)
        except ValueError:
            raise ValueError(f"{text!r} is no code; {accepted}") from None
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", lowered):
        return float(lowered)
    number = None
    hexadecimal = HEXADECIMAL_FLOAT.fullmatch(lowered)
    if hexadecimal and ("." in lowered or "p" in lowered) and (hexadecimal[2] or hexadecimal[3]):
        sign, whole, fraction, exponent = hexadecimal.groups()
        power = _bounded(exponent or "0", text) - 4 * len(fraction)
        number = Fraction(int(sign + whole + fraction, 16)) * Fraction(2) ** power
    else:
        found = DECIMAL_EXPONENT.search(lowered)
        if found:
            _bounded(found[1], text)
        try:
            number = Fraction(lowered)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{text!r} is neither a code nor a number; {accepted}") from None
    return -0.0 if number == 0 and lowered.startswith("-") else number


def check_typed(typed: Any) -> str:
    """Text that may go to `parse_value` from a stranger."""
    if not isinstance(typed, str) or len(typed) > LONGEST_TYPED or not typed.isascii():
        raise ValueError(f"a number must be text of at most {LONGEST_TYPED} plain characters")
    return typed


def _bounded(exponent: str, text: str) -> int:
    if len(exponent) > 10 or abs(int(exponent)) > LARGEST_EXPONENT:
        raise ValueError(
            f"the exponent of {text!r} is out of range; accepted: -{LARGEST_EXPONENT} to {LARGEST_EXPONENT}"
        )
    return int(exponent)
