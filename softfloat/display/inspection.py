"""What codes and formats look like: fields, values, neighbours, tables of values, and the pictures of `softfloat.figures`.

Functions return data, which rich consoles and notebooks show as tables, or figures; nothing is shown by itself.

>>> found = inspect_code(0x3C00, "float16")
>>> found.pattern, found.value, found.above.spacing
('0.01111.0000000000', Fraction(1, 1), Fraction(1, 1024))
>>> inspect_number("0.1", "float16").error_ulps
-0.4
>>> [row.value for row in value_table("float4_e2m1fn").rows][:8]
[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat import _markup, bits
from softfloat._measures import (
    ExponentShares,
    FunctionError,
    Step,
    count_between,
    exponent_shares,
    function_errors,
    spacing_steps,
    steps,
    values_between,
)
from softfloat.environment import Rounding, as_rounding
from softfloat.figures import (
    PLOT_SUFFIXES,
    PLOTS,
    block_fma,
    check_plot_folder,
    check_plot_path,
    chunking,
    dot_swamping,
    exponent_histogram,
    function_error,
    number_line,
    report_figures,
    running_sums,
    save,
    spacing,
    staircase,
    stochastic_sums,
)
from softfloat.formats import Format, check_format
from softfloat.status import Flags

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "PLOTS",
    "PLOT_SUFFIXES",
    "ExponentShares",
    "FunctionError",
    "Inspection",
    "Neighbour",
    "Step",
    "ValueRow",
    "ValueTable",
    "block_fma",
    "check_plot_folder",
    "check_plot_path",
    "chunking",
    "count_between",
    "dot_swamping",
    "exact_decimal",
    "exponent_histogram",
    "exponent_shares",
    "function_error",
    "function_errors",
    "inspect_code",
    "inspect_number",
    "number_line",
    "parse_value",
    "power_of_two",
    "render_inspection",
    "report_figures",
    "running_sums",
    "save",
    "spacing",
    "spacing_steps",
    "staircase",
    "steps",
    "stochastic_sums",
    "value_table",
    "values_between",
]

LARGEST_EXPONENT = 5000  # of a decimal number; far beyond every format, and still cheap to hold exactly
LONGEST_NEIGHBOUR = 26  # characters; longer values are written in hexadecimal
WHOLE_TABLE = 8  # bits; of wider formats a table of values has landmarks


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
DECIMAL_EXPONENT = re.compile(r"e([+-]?\d+)$", re.IGNORECASE)


def parse_value(text: str) -> int | float | Fraction:
    """What a user typed: a code, or a number.

    Parameters
    ----------
    text : str
        "0x3c00", "0b1" and "0o17" are codes. "0.1", "1e-8", "1/3", "-0.0", "inf", "nan" and "0x1.8p-3" (a hexadecimal
        number has a point or a p) are numbers.

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
    accepted = "accepted: a code (0x3c00, 0b0011) or a number (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3)"
    if re.fullmatch(r"0[xbo][0-9a-f_]+", lowered) and not ("p" in lowered or "." in lowered):
        try:
            return int(lowered, 0)
        except ValueError:
            raise ValueError(f"{text!r} is no code; {accepted}") from None
    if lowered.lstrip("+-") in ("inf", "infinity", "nan"):
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


def _bounded(exponent: str, text: str) -> int:
    if len(exponent) > 10 or abs(int(exponent)) > LARGEST_EXPONENT:
        raise ValueError(
            f"the exponent of {text!r} is out of range; accepted: -{LARGEST_EXPONENT} to {LARGEST_EXPONENT}"
        )
    return int(exponent)


# -- inspection ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbour:
    """The next value on one side.

    Attributes
    ----------
    code : int
    value : Fraction, or float for an infinity
    spacing : Fraction or None
        Distance to it; None to an infinity or from one.
    """

    code: int
    value: Fraction | float
    spacing: Fraction | None


@dataclass(frozen=True)
class Inspection:
    """Everything about one code.

    Attributes
    ----------
    format : Format
    code : int
    pattern : str
        Its bits, fields separated by points.
    sign_field : int or None
        None in an unsigned format.
    exponent_field, fraction_field : int
        The fields as integers.
    exponent : int or None
        The unbiased exponent of a finite number that is not zero.
    hidden_bit : int or None
        The significand's bit before the point, likewise: 0 for subnormal numbers, else 1.
    value : Fraction or float
        The exact value; float for -0.0, infinities and NaN.
    kind : str
        One of `softfloat.bits.CLASSES`.
    below, above : Neighbour or None
        The next values; None where there are none, and for NaN.
    given : str or None
        The number that was encoded, as typed; None if a code was given.
    rounding : str or None
        How it was encoded.
    flags : Flags or None
        What encoding it raised.
    error : Fraction or None
        The value less the number that was given, if both are finite and nothing overflowed.
    error_ulps : float or None
        The same in units in the last place: the format's spacing at the given number.
    """

    format: Format
    code: int
    pattern: str
    sign_field: int | None
    exponent_field: int
    exponent: int | None
    fraction_field: int
    hidden_bit: int | None
    value: Fraction | float
    kind: str
    below: Neighbour | None
    above: Neighbour | None
    given: str | None = None
    rounding: str | None = None
    flags: Flags | None = None
    error: Fraction | None = None
    error_ulps: float | None = None

    @property
    def hexadecimal(self) -> str:
        """The value as C writes hexadecimal floating point."""
        return _hexadecimal(self.value)

    @property
    def decimal(self) -> str:
        """The value with all its digits."""
        return _text(self.value, lambda x: exact_decimal(Fraction(x)))

    @property
    def formula(self) -> str | None:
        """How the fields make the value, of a finite number that is not zero."""
        if self.exponent is None:
            return None
        sign = "-" if self.sign_field else ""
        fraction = (
            f" × ({self.hidden_bit} + {self.fraction_field}/{1 << self.format.mantissa_bits})"
            if self.format.mantissa_bits
            else ""
        )
        return f"{sign}2^{self.exponent}{fraction}"

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON: exact decimals and hexadecimal codes as strings, None where something does not exist."""

        def side(neighbour: Neighbour | None) -> dict[str, Any] | None:
            if neighbour is None:
                return None
            spacing = None if neighbour.spacing is None else exact_decimal(neighbour.spacing)
            return {
                "code": self.code_text(neighbour.code),
                "value": _text(neighbour.value, lambda x: exact_decimal(Fraction(x))),
                "spacing": spacing,
            }

        result: dict[str, Any] = {
            "format": self.format.name,
            "code": self.code_text(self.code),
            "pattern": self.pattern,
            "sign": self.sign_field,
            "exponent_field": self.exponent_field,
            "exponent": self.exponent,
            "fraction": self.fraction_field,
            "value": self.decimal,
            "hex": self.hexadecimal,
            "class": self.kind,
            "below": side(self.below),
            "above": side(self.above),
        }
        if self.given is not None:
            result |= {
                "given": self.given,
                "rounding": self.rounding,
                "flags": [flag.name for flag in Flags if flag in (self.flags or Flags(0))],
                "error_ulps": self.error_ulps,
            }
        return result

    def code_text(self, code: int) -> str:
        """A code of the format as hexadecimal digits, as many as its width needs."""
        return _markup.code_text(code, self.format)

    def __rich__(self) -> RenderableType:
        return render_inspection(self)

    def _repr_html_(self) -> str:
        rows = [(name, _field_html(field, text)) for name, text, field in _inspection_rows(self)]
        bits_shown = ("bits", _markup.fields_html(self.code, self.format))
        at = [name for name, _ in rows].index("code") + 1
        return _markup.table_html(
            [*rows[:at], bits_shown, *rows[at:]], caption=f"{self.format.name} {self.format.layout}"
        )


def _hexadecimal(value: Fraction | float) -> str:
    return re.sub(r"\.?0+p", "p", float(value).hex())


def _text(value: Fraction | float, finite: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value == 0:
        return "-0" if isinstance(value, float) and math.copysign(1, value) < 0 else "0"
    return str(finite(float(value)))


def _value(code: int, fmt: Format) -> Fraction | float:
    value = float(bits.decode(code, fmt))
    return Fraction(value) if math.isfinite(value) and (value or math.copysign(1, value) > 0) else value


def _neighbour(code: int, value: Fraction | float, moved: int, fmt: Format) -> Neighbour | None:
    if moved == code:
        return None
    there = _value(moved, fmt)
    finite = math.isfinite(value) and math.isfinite(there)
    return Neighbour(moved, there, abs(Fraction(there) - Fraction(value)) if finite else None)


def inspect_code(code: int, fmt: Format | str) -> Inspection:
    """Take a code apart.

    Raises
    ------
    ValueError
        If the format has no such code.
    """
    fmt = Format.from_name(fmt)
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"{fmt} has no code {hex(code)}; accepted: 0x0 to {hex((1 << fmt.bits) - 1)}")
    kind = bits.CLASSES[int(bits.classify(code, fmt))]
    value = _value(code, fmt)
    exponent_field = code >> fmt.mantissa_bits & ((1 << fmt.exponent_bits) - 1)
    numeric = kind.endswith(("Normal", "Subnormal"))
    not_a_number = kind.endswith("NaN")
    return Inspection(
        format=fmt,
        code=code,
        pattern=".".join(digits for _, digits in _markup.bit_fields(code, fmt)),
        sign_field=code >> (fmt.bits - 1) if fmt.signed else None,
        exponent_field=exponent_field,
        exponent=(fmt.emin if kind.endswith("Subnormal") else exponent_field - fmt.bias) if numeric else None,
        fraction_field=code & ((1 << fmt.mantissa_bits) - 1),
        hidden_bit=int(kind.endswith("Normal")) if numeric else None,
        value=value,
        kind=kind,
        below=None if not_a_number else _neighbour(code, value, int(bits.next_down(code, fmt)[0]), fmt),
        above=None if not_a_number else _neighbour(code, value, int(bits.next_up(code, fmt)[0]), fmt),
    )


def inspect_number(
    number: str | float | Fraction, fmt: Format | str, rounding: Rounding | str = "nearest_even", seed: int = 0
) -> Inspection:
    """Encode a number, with a single rounding, and take the code apart; say what the rounding cost.

    Parameters
    ----------
    number : str, int, float or Fraction
        Text is read as `parse_value` reads numbers.
    fmt : Format
    rounding : Rounding
    seed : int
        Of stochastic rounding.
    """
    fmt, mode = Format.from_name(fmt), as_rounding(rounding)
    typed = number if isinstance(number, str) else str(number)
    exact = parse_value(number) if isinstance(number, str) else number.item() if hasattr(number, "item") else number
    if isinstance(number, str) and isinstance(exact, int):
        raise ValueError(f"number must be a number, and {number!r} is a code; accepted: inspect_code")
    options: dict[str, Any] = {"seed": seed} if mode is Rounding.STOCHASTIC else {}
    code, flags = bits.encode(exact, fmt, rounding=mode, **options)
    found = inspect_code(int(code), fmt)
    error = ulps = None
    finite = not isinstance(exact, float) or math.isfinite(exact)
    if finite and math.isfinite(found.value) and not flags & Flags.OVERFLOW:
        error = Fraction(found.value) - Fraction(exact)
        ulps = float(error / _ulp(abs(Fraction(exact)), fmt)) + 0.0
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    return Inspection(
        **fields
        | {
            "given": typed.strip(),
            "rounding": mode.name.lower(),
            "flags": Flags(int(flags)),
            "error": error,
            "error_ulps": ulps,
        }
    )


def _ulp(magnitude: Fraction, fmt: Format) -> Fraction:
    exponent = fmt.emin
    if magnitude:
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > magnitude
    return Fraction(2) ** (min(max(exponent, fmt.emin), fmt.emax) - fmt.mantissa_bits)


def _inspection_rows(found: Inspection) -> list[tuple[str, str, str | None]]:
    """Names and texts of what is known of a code, its bits aside, and the field that a text is about."""
    fmt = found.format

    def side(neighbour: Neighbour | None) -> str:
        if neighbour is None:
            return "none"
        value = _text(neighbour.value, lambda x: exact_decimal(Fraction(x)))
        if len(value) > LONGEST_NEIGHBOUR:
            value = f"{_hexadecimal(neighbour.value)}, about {float(neighbour.value):.6g}"
        return f"{found.code_text(neighbour.code)} = {value}{_away(neighbour.spacing)}"

    rows: list[tuple[str, str, str | None]] = []
    if found.given is not None:
        rows.append(("number", f"{found.given}, rounded {(found.rounding or '').replace('_', ' ')}", None))
    rows.append(("code", found.code_text(found.code), None))
    if found.sign_field is not None:
        rows.append(("sign", "1 (negative)" if found.sign_field else "0 (positive)", "sign"))
    unbiased = "" if found.exponent is None else f", 2^{found.exponent}"
    rows.append(("exponent", f"field {found.exponent_field}{unbiased} (bias {fmt.bias})", "exponent"))
    if fmt.mantissa_bits:
        rows.append(("fraction", f"{found.fraction_field} of {1 << fmt.mantissa_bits}", "fraction"))
    rows += [("value", found.decimal, None), ("hexadecimal", found.hexadecimal, None)]
    if found.formula:
        rows.append(("formula", found.formula, None))
    rows.append(("class", found.kind, None))
    if not found.kind.endswith("NaN"):
        rows += [("below", side(found.below), None), ("above", side(found.above), None)]
    if found.given is not None:
        rows.append(("flags", str(found.flags), None))
        if found.error_ulps is not None:
            rows.append(("error", f"{found.error_ulps:+.6g} ulp" if found.error else "0, exact", None))
    return rows


def _field_html(field: str | None, text: str) -> str:
    return escape(text) if field is None else _markup.spans([(field, text)])


def render_inspection(found: Inspection) -> RenderableType:
    """An inspection as a two-column table for a rich console."""
    from rich.text import Text

    table = _markup.plain_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text, field in _inspection_rows(found):
        table.add_row(name, Text(text, _markup.FIELD_STYLES[field] if field else ""))
        if name == "code":
            table.add_row("bits", _markup.fields_rich(found.code, found.format))
    return _markup.titled(f"{found.format.name} {found.format.layout}", table)


def _away(spacing: Fraction | None) -> str:
    if spacing is None:
        return ""
    power = power_of_two(spacing)
    return f", {'2^' + str(power) if power is not None else exact_decimal(spacing)} away"


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
            names = [name for name, text in _markup.bit_fields(code, fmt) for _ in text][places]
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
            first = _markup.code_text(half, fmt)
            note = f"codes from {first} on: the same, negative" + ("" if fmt.signed_zero else f"; {first} is NaN")
        return down, along, cells, note

    def _repr_html_(self) -> str:
        fmt = self.format
        if not self.whole:
            body = [
                [
                    row.name,
                    _markup.code_text(row.code, fmt),
                    _markup.fields_html(row.code, fmt),
                    escape(_exact(row.value)),
                ]
                for row in self.rows
            ]
            return _markup.table_html(body, ["", "code", "bits", "value"], fmt.name)
        down, along, cells, note = self._grid()
        grid = [[_markup.spans(fields), *map(escape, line)] for fields, line in zip(down, cells, strict=True)]
        return _markup.table_html(grid, ["", *map(_markup.spans, along)], f"{fmt.name}{note and f' ({note})'}")

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        fmt = self.format
        if not self.whole:
            table = _markup.plain_table()
            for style in ("dim", "", "", ""):
                table.add_column(style=style, overflow="fold")
            for row in self.rows:
                fields = _markup.fields_rich(row.code, fmt)
                table.add_row(row.name, Text(_markup.code_text(row.code, fmt)), fields, Text(_exact(row.value)))
            return _markup.titled(fmt.name, table)
        down, along, cells, note = self._grid()
        table = _markup.plain_table(header=True)
        table.add_column("", no_wrap=True)
        for column in along:
            table.add_column(_markup.styled(column), justify="right", overflow="fold")
        for head, line in zip(down, cells, strict=True):
            table.add_row(_markup.styled(head), *map(Text, line))
        return _markup.titled(fmt.name, table, note)


def _short(value: float, power: bool) -> str:
    return f"2^{math.frexp(value)[1] - 1}" if power and math.isfinite(value) else f"{value:.4g}"


def _exact(value: float) -> str:
    text = _text(value, lambda x: exact_decimal(Fraction(x)))
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
        ValueRow(name, code, ".".join(text for _, text in _markup.bit_fields(code, fmt)), kind, value)
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
