"""Tables of a format's values.

>>> [row.value for row in value_table("float4_e2m1fn").rows][:8]
[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from softfloat import bits, formats, markup
from softfloat.display.inspection import LONGEST_NEIGHBOUR, value_text
from softfloat.display.numbers import exact_decimal, power_of_two
from softfloat.formats import Format, check_format

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["ValueRow", "ValueTable", "value_table"]


WHOLE_TABLE = 8  # bits; of wider formats a table of values has landmarks


# -- tables of values ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ValueRow:
    """A code and what it means.

    Attributes
    ----------
    name : str
        Of a landmark, such as "smallest normal"; otherwise empty.
    code : int
    pattern : str
        Its bits, fields separated by points.
    kind : str
        One of `softfloat.bits.CLASSES`.
    value : float
        Exactly.
    """

    name: str
    code: int
    pattern: str
    kind: str
    value: float


@dataclass(frozen=True)
class ValueTable:
    """Codes of a format and their values; consoles and notebooks show it as a table.

    Attributes
    ----------
    format : Format
    rows : tuple of ValueRow
        In the order of codes if they are all there; else landmarks from zero to infinity and NaN.
    whole : bool
        Whether all codes are there.
    """

    format: Format
    rows: tuple[ValueRow, ...]
    whole: bool

    def _grid(self) -> tuple[list[list[tuple[str, str]]], list[list[tuple[str, str]]], list[list[str]], str]:
        """Fields that head rows and columns, short values in a grid, and a note; negative numbers are left out."""
        fmt = self.format
        low = fmt.mantissa_bits or min(3, fmt.exponent_bits - 1)  # bits that count columns, or rows if they are more
        half = len(self.rows) >> fmt.signed
        across = 1 << low

        def part(code: int, places: slice) -> list[tuple[str, str]]:
            digits, fields = f"{code:0{fmt.bits}b}"[places], []
            names = [name for name, text in formats.bit_fields(code, fmt) for _ in text][places]
            for name in dict.fromkeys(names):
                fields.append((name, "".join(digit for digit, of in zip(digits, names, strict=True) if of == name)))
            return fields

        down = [part(code, slice(0, fmt.bits - low)) for code in range(0, half, across)]
        along = [part(code, slice(fmt.bits - low, None)) for code in range(across)]
        powers = not fmt.mantissa_bits and not fmt.zero
        texts = [_short(row.value, powers) for row in self.rows]
        cells = [texts[at : at + across] for at in range(0, half, across)]
        if fmt.mantissa_bits and len(along) > len(down):
            down, along, cells = along, down, [list(column) for column in zip(*cells, strict=True)]
        note = ""
        if fmt.signed:
            first = formats.code_text(half, fmt)
            note = f"codes from {first} on: the same, negative" + ("" if fmt.signed_zero else f"; {first} is NaN")
        return down, along, cells, note

    def _repr_html_(self) -> str:
        fmt = self.format
        if not self.whole:
            body = [
                [
                    row.name,
                    formats.code_text(row.code, fmt),
                    formats.fields_html(row.code, fmt),
                    escape(_exact(row.value)),
                ]
                for row in self.rows
            ]
            return markup.table_html(body, ["number", "code", "bits", "value"], fmt.name)
        down, along, cells, note = self._grid()
        grid = [[markup.spans(fields), *map(escape, line)] for fields, line in zip(down, cells, strict=True)]
        return markup.table_html(grid, ["bits", *map(markup.spans, along)], f"{fmt.name}{note and f' ({note})'}")

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        fmt = self.format
        if not self.whole:
            table = markup.plain_table()
            for style in ("dim", "", "", ""):
                table.add_column(style=style, overflow="fold")
            for row in self.rows:
                fields = formats.fields_rich(row.code, fmt)
                table.add_row(row.name, Text(formats.code_text(row.code, fmt)), fields, Text(_exact(row.value)))
            return markup.titled(fmt.name, table)
        down, along, cells, note = self._grid()
        table = markup.plain_table(header=True)
        table.add_column("bits", no_wrap=True)
        for column in along:
            table.add_column(markup.styled(column), justify="right", overflow="fold")
        for head, line in zip(down, cells, strict=True):
            table.add_row(markup.styled(head), *map(Text, line))
        return markup.titled(fmt.name, table, note)


def _short(value: float, power: bool) -> str:
    return f"2^{math.frexp(value)[1] - 1}" if power and math.isfinite(value) else markup.general(value, 4)


def _exact(value: float) -> str:
    text = value_text(value, lambda x: exact_decimal(Fraction(x)))
    if len(text) <= LONGEST_NEIGHBOUR:
        return text
    exponent = power_of_two(Fraction(value))
    return f"about {value:.9g}" if exponent is None else f"2^{exponent}"


def value_table(fmt: Format | str) -> ValueTable:
    """The values of a format: all of them up to 8 bits, landmarks of wider formats.

    Raises
    ------
    TypeError, ValueError
        If there is no such format, naming the accepted names.
    """
    fmt = check_format(fmt)
    whole = fmt.bits <= WHOLE_TABLE
    named = [("", code) for code in range(1 << fmt.bits)] if whole else _landmarks(fmt)
    codes = np.array([code for _, code in named], fmt.dtype)
    kinds = [bits.CLASSES[kind] for kind in bits.classify(codes, fmt).tolist()]
    rows = (
        ValueRow(name, code, ".".join(text for _, text in formats.bit_fields(code, fmt)), kind, value)
        for (name, code), kind, value in zip(named, kinds, bits.decode(codes, fmt).tolist(), strict=True)
    )
    return ValueTable(fmt, tuple(rows), whole)


def _landmarks(fmt: Format) -> list[tuple[str, int]]:
    """Names and codes of the values that tell most of a format, in ascending order, NaN last."""
    found = [("zero", fmt.zero_code)] if fmt.zero else []
    if fmt.subnormals and fmt.mantissa_bits:
        found += [
            ("smallest subnormal", fmt.smallest_subnormal_code),
            ("largest subnormal", fmt.smallest_normal_code - 1),
        ]
    found.append(("smallest normal", fmt.smallest_normal_code))
    one = (fmt.bias or 0) << fmt.mantissa_bits
    if fmt.smallest_normal_code < one < fmt.max_code:
        found += [("below 1", one - 1), ("1", one), ("above 1", one + 1)]
    found.append(("largest number", fmt.max_code))
    if fmt.infinities:
        found.append(("infinity", fmt.inf_code))
    if fmt.has_nan:
        found.append(("NaN", fmt.nan_code))
    return found
