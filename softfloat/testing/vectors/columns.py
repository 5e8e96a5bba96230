"""What stands in a column of vectors: types of numbers by name, and columns of them.

>>> as_number("i32").kind, Column("a", as_number("float16"), 4).shape(10)
('signed', (10, 4))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softfloat.formats import Format, check_format, float64

__all__ = ["BOOLEAN", "CLASS", "DOUBLE", "FLAGS", "FLOAT64", "INTEGERS", "Column", "Number", "as_number"]


class Number(NamedTuple):
    """A type of number: `kind` is "float", "float64", "signed", "unsigned", "bool" or "flags"; codes are unsigned."""

    name: str
    kind: str
    bits: int
    format: Format | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned integer that holds a code."""
        size = next(size for size in (1, 2, 4, 8) if self.bits <= 8 * size)
        return np.dtype(f"u{size}")


FLOAT64 = Number("float64", "float64", 64)
"""What narrower formats are converted from and to."""
DOUBLE = Number("float64", "float", 64, float64)
"""The format of that name, which is computed in."""
BOOLEAN = Number("bool", "bool", 1)
CLASS = Number("class", "unsigned", 4)
FLAGS = Number("flags", "flags", 5)
INTEGERS = {
    f"{prefix}int{width}": Number(f"{prefix}int{width}", "unsigned" if prefix else "signed", width)
    for prefix in ("", "u")
    for width in (8, 16, 32, 64)
}
NUMBER_ALIASES = {"f64": "float64", "double": "float64", "fp64": "float64"} | {
    f"{prefix}{width}": f"{name}{width}"
    for prefix, name in (("i", "int"), ("ui", "uint"), ("u", "uint"))
    for width in (8, 16, 32, 64)
}


def as_number(value: Number | Format | str, argument: str = "format") -> Number:
    """A type of number from a format, or from a name: of a format, "float64", "int8" ... "uint64" (also "i32", "ui32").

    Raises
    ------
    ValueError, TypeError
        Naming `argument` and the accepted names.
    """
    if isinstance(value, Number):
        return value
    if isinstance(value, str):
        name = NUMBER_ALIASES.get(value.lower(), value.lower())
        if name in INTEGERS:
            return INTEGERS[name]
        if name == "float64":
            return FLOAT64
    try:
        fmt = check_format(value, argument, wide=True)
    except ValueError as error:
        raise ValueError(f"{error}; for conversions also float64, {', '.join(INTEGERS)}") from None
    return Number(fmt.name, "float", fmt.bits, fmt)


@dataclass(frozen=True)
class Column:
    """A column of a row of vectors; with a `length`, that many columns side by side."""

    name: str
    number: Number
    length: int | None = None

    @property
    def digits(self) -> int:
        """Hexadecimal digits of a code. Flags have two, as in TestFloat's files."""
        return 2 if self.number.kind == "flags" else -(-self.number.bits // 4)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of an array of codes."""
        return self.number.dtype

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of an array of codes: (rows,), or (rows, length)."""
        return (rows,) if self.length is None else (rows, self.length)
