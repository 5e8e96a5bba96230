"""What a code is: fields, value, neighbours.

>>> found = inspect_code(0x3C00, "float16")
>>> found.pattern, found.value, found.above.spacing
('0.01111.0000000000', Fraction(1, 1), Fraction(1, 1024))
>>> inspect_number("0.1", "float16").error_ulps
-0.4
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from softfloat import bits, formats, markup
from softfloat.display.numbers import exact_decimal, parse_value, power_of_two
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import Format
from softfloat.status import Flags

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "Inspection",
    "Neighbour",
    "code_from_bits",
    "inspect_code",
    "inspect_number",
    "inspection_rows",
    "render_inspection",
]


LONGEST_NEIGHBOUR = 26  # characters; longer values are written in hexadecimal


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
        return value_text(self.value, lambda x: exact_decimal(Fraction(x)))

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
                "value": value_text(neighbour.value, lambda x: exact_decimal(Fraction(x))),
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
        return formats.code_text(code, self.format)

    def __rich__(self) -> RenderableType:
        return render_inspection(self)

    def _repr_html_(self) -> str:
        rows = [(name, _field_html(field, text)) for name, text, field in inspection_rows(self)]
        bits_shown = ("bits", formats.fields_html(self.code, self.format))
        at = [name for name, _ in rows].index("code") + 1
        return markup.table_html(
            [*rows[:at], bits_shown, *rows[at:]], caption=f"{self.format.name} {self.format.layout}"
        )


def _hexadecimal(value: Fraction | float) -> str:
    return re.sub(r"\.?0+p", "p", float(value).hex())


def value_text(value: Fraction | float, finite: Any) -> str:
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
        pattern=".".join(digits for _, digits in formats.bit_fields(code, fmt)),
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


def code_from_bits(text: str, fmt: Format | str) -> int | None:
    """A code from its bits as an inspection prints them, with spaces or points between fields; None of any other text.

    >>> hex(code_from_bits("0 11110 1111111111", "float16"))
    '0x7bff'

    Raises
    ------
    ValueError
        If the fields are not those of the format.
    """
    fmt = Format.from_name(fmt)
    parts = text.split() if " " in text.strip() else text.strip().split(".")
    least = 2 if " " in text.strip() else 3  # 0.1 is a number
    if len(parts) < least or not all(re.fullmatch("[01]+", part) for part in parts):
        return None
    widths = [len(digits) for _, digits in formats.bit_fields(0, fmt)]
    if [len(part) for part in parts] != widths:
        raise ValueError(f"{text.strip()!r} is no code of {fmt}, whose fields have {' '.join(map(str, widths))} bits")
    return int("".join(parts), 2)


def inspect_number(
    number: str | float | Fraction,
    fmt: Format | str,
    rounding: Rounding | str = "nearest_even",
    seed: int = 0,
    **options: Any,
) -> Inspection:
    """Encode a number, with a single rounding, and take the code apart; say what the rounding cost.

    Parameters
    ----------
    number : str, int, float or Fraction
        Text is read as `parse_value` reads numbers.
    fmt : Format
    rounding : Rounding
    seed : int
        Of stochastic rounding; of no use beside `random_bits`.
    **options
        More options of `bits.encode`: `overflow`, `tininess`, `sr_bits`, `random_bits` ...
    """
    fmt, mode = Format.from_name(fmt), as_rounding(rounding)
    typed = number if isinstance(number, str) else str(number)
    exact = parse_value(number) if isinstance(number, str) else number.item() if hasattr(number, "item") else number
    if isinstance(number, str) and isinstance(exact, int):
        raise ValueError(f"number must be a number, and {number!r} is a code; accepted: inspect_code")
    if mode.draws and "random_bits" not in options:
        options["seed"] = seed
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


def typed_text(value: Fraction | float) -> str:
    """A value of a format as one types it: all its digits if they are few, else hexadecimal."""
    text = value_text(value, lambda x: exact_decimal(Fraction(x)))
    return text if len(text) <= LONGEST_NEIGHBOUR else _hexadecimal(value)


def short_text(value: Fraction | float) -> str:
    """A value of a format as one types it; of a hexadecimal one, what it is about, too."""
    text = typed_text(value)
    return f"{text}, about {float(value):.6g}" if "x" in text else text


def inspection_rows(found: Inspection) -> list[tuple[str, str, str | None]]:
    """Names and texts of what is known of a code, its bits aside, and the field that a text is about."""
    fmt = found.format

    def side(neighbour: Neighbour | None) -> str:
        if neighbour is None:
            return "none"
        return f"{found.code_text(neighbour.code)} = {short_text(neighbour.value)}{_away(neighbour.spacing)}"

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
    return escape(text) if field is None else markup.spans([(field, text)])


def render_inspection(found: Inspection) -> RenderableType:
    """An inspection as a two-column table for a rich console."""
    from rich.text import Text

    table = markup.plain_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text, field in inspection_rows(found):
        table.add_row(name, Text(text, markup.FIELD_STYLES[field] if field else ""))
        if name == "code":
            table.add_row("bits", formats.fields_rich(found.code, found.format))
    return markup.titled(f"{found.format.name} {found.format.layout}", table)


def _away(spacing: Fraction | None) -> str:
    if spacing is None:
        return ""
    power = power_of_two(spacing)
    return f", {'2^' + str(power) if power is not None else exact_decimal(spacing)} away"
