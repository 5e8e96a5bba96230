"""Codes and formats as HTML and as rich text: bit fields in colours, side by side with spaces between them.

The colours are Okabe and Ito's, told apart with every kind of colour vision; in HTML they tint and underline digits that
keep the reader's own text colour, so that they can be read on white and on black. Nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table
    from rich.text import Text

    from softfloat.formats import Format

__all__ = [
    "FIELD_STYLES",
    "array_html",
    "array_rich",
    "bit_fields",
    "code_text",
    "fields_html",
    "fields_rich",
    "format_facts",
    "format_html",
    "format_rich",
    "plain_table",
    "spans",
    "special_values",
    "styled",
    "table_html",
    "titled",
]

FIELD_STYLES = {"sign": "#D55E00", "exponent": "#009E73", "fraction": "#0072B2"}
"""Colours of the fields, as both rich and HTML take them."""

TINT = "40"  # a quarter opaque: the digits keep the contrast they have without it
MONOSPACE = "font-family:monospace;white-space:pre"
CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"
ROWS, COLUMNS, EDGE = 20, 20, 3  # arrays longer than this are cut to so many at either end
DIGITS = 160  # bits of a row of an array, about; more are wider than a page


# -- codes -----------------------------------------------------------------------------------------------------------


def bit_fields(code: int, fmt: Format) -> list[tuple[str, str]]:
    """Names and binary digits of a code's fields; a format has no field of width 0.

    >>> from softfloat.formats import float16
    >>> bit_fields(0x3C00, float16)
    [('sign', '0'), ('exponent', '01111'), ('fraction', '0000000000')]
    """
    digits, found, at = f"{int(code):0{fmt.bits}b}", [], 0
    for name, width in (("sign", int(fmt.signed)), ("exponent", fmt.exponent_bits), ("fraction", fmt.mantissa_bits)):
        if width:
            found.append((name, digits[at : at + width]))
            at += width
    return found


def code_text(code: int, fmt: Format) -> str:
    """A code as hexadecimal digits, as many as its format's width needs.

    >>> from softfloat.formats import float16
    >>> code_text(1, float16)
    '0x0001'
    """
    return f"0x{int(code):0{-(-fmt.bits // 4)}x}"


def spans(fields: Iterable[tuple[str, str]]) -> str:
    """HTML of named fields: a tinted, underlined span for each, spaces between them."""
    shown = (
        f'<span title="{name}" style="background:{FIELD_STYLES[name]}{TINT};border-bottom:2px solid {FIELD_STYLES[name]}">'
        f"{escape(digits)}</span>"
        for name, digits in fields
    )
    return f'<span style="{MONOSPACE}">{" ".join(shown)}</span>'


def styled(fields: Iterable[tuple[str, str]]) -> Text:
    """Rich text of named fields, spaces between them."""
    from rich.text import Text

    return Text(" ").join(Text(digits, FIELD_STYLES[name]) for name, digits in fields)


def fields_html(code: int, fmt: Format) -> str:
    """The bits of a code as an HTML span."""
    return spans(bit_fields(code, fmt))


def fields_rich(code: int, fmt: Format) -> Text:
    """The bits of a code as rich text."""
    return styled(bit_fields(code, fmt))


# -- tables ----------------------------------------------------------------------------------------------------------


def table_html(rows: Iterable[Sequence[str]], headings: Sequence[str] = (), caption: str = "") -> str:
    """An HTML table of cells that are HTML already; the first cell of a row is its heading, `caption` is text."""
    parts = ['<table style="border-collapse:collapse">']
    if caption:
        parts.append(f'<caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>')
    if headings:
        cells = "".join(f'<th scope="col" style="{CELL}">{cell}</th>' for cell in headings)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(f'<td style="{CELL}">{cell}</td>' for cell in rest)
        parts.append(f'<tr><th scope="row" style="{CELL};font-weight:normal;opacity:.75">{first}</th>{cells}</tr>')
    parts.append("</tbody></table>")
    return "".join(parts)


# -- formats ---------------------------------------------------------------------------------------------------------


def special_values(fmt: Format) -> str:
    """What a format has besides signed finite numbers and zero, or lacks, in a few words.

    >>> from softfloat.formats import float8_e4m3fnuz, float16
    >>> special_values(float16), special_values(float8_e4m3fnuz)
    ('inf, NaN', 'NaN (0x80), no -0')
    """
    words = ["inf"] if fmt.infinities else []
    if fmt.nan == "ieee":
        words.append("NaN")
    elif fmt.has_nan:
        first = "" if fmt.nan == "fnuz" or not fmt.signed else "±"
        words.append(f"NaN ({first}{code_text(fmt.nan_code & ~(fmt.sign_bit if first else 0), fmt)})")
    words = words or ["no inf, no NaN"]
    if not fmt.signed:
        words.append("unsigned")
    elif not fmt.signed_zero:
        words.append("no -0")
    if not fmt.zero:
        words.append("no zero")
    elif not fmt.subnormals:
        words.append("no subnormals")
    return ", ".join(words)


def format_facts(fmt: Format) -> list[tuple[str, str]]:
    """What a format is, as names and texts; its layout aside."""
    special = [(f"code of {name}", code_text(getattr(fmt, attribute), fmt)) for name, attribute in _special_codes(fmt)]
    return [
        ("bits", f"{fmt.bits}: {int(fmt.signed)} sign, {fmt.exponent_bits} exponent, {fmt.mantissa_bits} fraction"),
        ("precision", f"p = {fmt.p}"),
        ("exponents", f"{fmt.emin} to {fmt.emax}, bias {fmt.bias}"),
        ("max", f"{fmt.max:.9g}"),
        ("smallest normal", f"{fmt.tiny:.6g} = 2^{fmt.emin}"),
        (
            "smallest subnormal",
            f"{fmt.smallest_subnormal:.6g} = 2^{fmt.emin - fmt.mantissa_bits}"
            if fmt.subnormals and fmt.mantissa_bits
            else "none",
        ),
        ("eps", f"{fmt.eps:.6g} = 2^{-fmt.mantissa_bits}"),
        ("special values", special_values(fmt)),
        *special,
    ]


def _special_codes(fmt: Format) -> list[tuple[str, str]]:
    found = [("inf", "inf_code")] if fmt.infinities else []
    return found + ([("NaN", "nan_code")] if fmt.has_nan else [])


def _letters(fmt: Format) -> list[tuple[str, str]]:
    return [(name, name[0] * len(digits)) for name, digits in bit_fields(0, fmt)]


def format_html(fmt: Format) -> str:
    """A format as an HTML table: its fields, range, precision and special values."""
    facts = [(escape(name), escape(text)) for name, text in format_facts(fmt)]
    return table_html([("layout", spans(_letters(fmt))), *facts], caption=fmt.name)


def format_rich(fmt: Format) -> RenderableType:
    """The same as `format_html`, for a rich console."""
    from rich.text import Text

    table = plain_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("layout", styled(_letters(fmt)))
    for name, text in format_facts(fmt):
        table.add_row(name, Text(text))
    return titled(fmt.name, table)


def plain_table(header: bool = False) -> Table:
    """A rich table without lines."""
    from rich.table import Table

    return Table(show_header=header, box=None, pad_edge=False, padding=(0, 2, 0, 0))


def titled(title: str, table: RenderableType, note: str = "") -> RenderableType:
    """A title above a table and a note below; unlike the table's own, they may be wider than it."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(title, "bold"), table, *([Text(note, "dim")] if note else []))


# -- arrays ----------------------------------------------------------------------------------------------------------


def _shown(length: int, limit: int, edge: int = EDGE) -> list[int | None]:
    """Which places of an axis are shown; None stands for what is left out."""
    if length <= limit:
        return list(range(length))
    return [*range(edge), None, *range(length - edge, length)]


def _caption(codes: Any, fmt: Format) -> str:
    shape = tuple(codes.shape)
    if not shape:
        return fmt.name
    if len(shape) < 3 or not all(shape):
        return f"{fmt.name}, shape {shape}"
    return f"{fmt.name}, shape {shape}; shown: [{'0, ' * (len(shape) - 2)}:, :]"


def _matrix(array: Any) -> Any:
    """The first matrix of an array of more dimensions."""
    while len(array.shape) > 2:
        array = array[0]
    return array


def array_html(codes: Any, fmt: Format, texts: Any) -> str:
    """Elements as an HTML table.

    A scalar and a vector show value, code and coloured bits, in a row for each element; a matrix shows bits below each
    value. Of an axis longer than 20, or of a matrix wider than a page, the first and last 3 are shown; of more
    dimensions, the first matrix. The caption tells format and shape.

    Parameters
    ----------
    codes : ndarray of unsigned integers
        Of any shape, () included.
    fmt : Format
    texts : ndarray of str (dtype object)
        The values as text, of the same shape. They are escaped.
    """
    caption = _caption(codes, fmt)
    if 0 in codes.shape:
        return table_html([], caption=caption)
    codes, texts = _matrix(codes), _matrix(texts)
    if len(codes.shape) < 2:
        return _list_html(codes, fmt, texts, caption)
    limit = max(2 * EDGE, min(COLUMNS, DIGITS // (fmt.bits + 4)))
    rows, columns = _shown(codes.shape[0], ROWS), _shown(codes.shape[1], limit)

    def cell(i: int | None, j: int | None) -> str:
        if i is None or j is None:
            return "…"
        return f"{escape(str(texts[i, j]))}<br/>{fields_html(codes[i, j], fmt)}"

    headings = ["", *("…" if j is None else str(j) for j in columns)]
    body = [["…" if i is None else str(i), *(cell(i, j) for j in columns)] for i in rows]
    return table_html(body, headings, caption)


def _list_html(codes: Any, fmt: Format, texts: Any, caption: str) -> str:
    def row(name: str, place: Any) -> list[str]:
        code = f'<span style="{MONOSPACE}">{code_text(codes[place], fmt)}</span>'
        return [name, escape(str(texts[place])), code, fields_html(codes[place], fmt)]

    if not codes.shape:
        return table_html([row("", ())], ["", "value", "code", "bits"], caption)
    body = [["…"] * 4 if i is None else row(str(i), i) for i in _shown(codes.shape[0], ROWS)]
    return table_html(body, ["", "value", "code", "bits"], caption)


def array_rich(codes: Any, fmt: Format, texts: Any) -> RenderableType:
    """The same as `array_html`, for a rich console; as many columns of a matrix as fit its width.

    Parameters
    ----------
    codes, fmt, texts
        As for `array_html`.
    """
    return ArrayView(codes, fmt, texts)


class ArrayView:
    """An array that knows how to fit a console."""

    def __init__(self, codes: Any, fmt: Format, texts: Any) -> None:
        self.codes, self.fmt, self.texts = codes, fmt, texts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        codes, fmt, texts = _matrix(self.codes), self.fmt, _matrix(self.texts)
        title = _caption(self.codes, fmt)
        if 0 in self.codes.shape:
            yield Text(title, "bold")
            return
        if len(codes.shape) == 2:
            yield titled(title, self._grid(codes, texts, options.max_width))
            return
        table = plain_table(header=True)
        for heading in ("", "value", "code", "bits"):
            table.add_column(heading, header_style="dim", style=None if heading else "dim", overflow="fold")
        places: list[Any] = [()] if not codes.shape else list(_shown(codes.shape[0], ROWS))
        for place in places:
            if place is None:
                table.add_row(*["…"] * 4)
                continue
            name = str(place) if codes.shape else ""
            code = Text(code_text(codes[place], fmt))
            table.add_row(name, Text(str(texts[place])), code, fields_rich(codes[place], fmt))
        yield titled(title, table)

    def _grid(self, codes: Any, texts: Any, width: int) -> Table:
        from rich.text import Text

        fmt = self.fmt
        rows = _shown(codes.shape[0], ROWS)
        columns = _shown(codes.shape[1], COLUMNS)

        def needed(columns: Sequence[int | None]) -> int:
            bits = fmt.bits + len(bit_fields(0, fmt)) - 1
            places = product((i for i in rows if i is not None), (j for j in columns if j is not None))
            wide = max(bits, *(len(str(texts[i, j])) for i, j in places))
            return sum(3 if j is None else wide + 2 for j in columns) + len(str(codes.shape[0])) + 2

        edge = codes.shape[1]
        while needed(columns) > width and edge > 1:
            edge = min(edge - 1, EDGE)
            columns = _shown(codes.shape[1], 2 * edge, edge)
        table = plain_table(header=True)
        table.add_column("", style="dim", no_wrap=True)
        for j in columns:
            table.add_column("…" if j is None else str(j), header_style="dim", overflow="fold")
        for i in rows:
            cells = [
                "…" if i is None or j is None else Text(f"{texts[i, j]}\n").append_text(fields_rich(codes[i, j], fmt))
                for j in columns
            ]
            table.add_row("…" if i is None else str(i), *cells)
        return table
