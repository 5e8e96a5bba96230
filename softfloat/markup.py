"""Codes and formats as HTML and as rich text: bit fields in colours, side by side with spaces between them.

The colours are Okabe and Ito's, told apart with every kind of colour vision; in HTML they tint and underline digits that
keep the reader's own text colour, so that they can be read on white and on black. Nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["FIELD_STYLES", "Tabled", "aligned", "plain_table", "rendered", "spans", "styled", "table_html", "titled"]


FIELD_STYLES = {"sign": "#D55E00", "exponent": "#009E73", "fraction": "#0072B2"}
"""Colours of the fields, as both rich and HTML take them."""

TINT = "40"  # a quarter opaque: the digits keep the contrast they have without it
MONOSPACE = "font-family:monospace;white-space:pre"
CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"
ONE_LINE = 80  # letters of a caption that is not broken, however narrow its table is
DIGITS = 160  # bits of a row of an array, about; more are wider than a page


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


# -- tables ----------------------------------------------------------------------------------------------------------


def aligned(rows: Sequence[Sequence[str]], left: Iterable[int]) -> str:
    """Rows of text in columns, those of these numbers on the left, others on the right."""
    sides = [str.ljust if i in left else str.rjust for i in range(len(rows[0]))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
        for row in rows
    )


def table_html(rows: Iterable[Sequence[str]], headings: Sequence[str] = (), caption: str = "") -> str:
    """An HTML table of cells that are HTML already; the first cell of a row is its heading, `caption` is text."""
    parts = ['<table style="border-collapse:collapse">']
    if caption:
        line = ";white-space:nowrap" if len(caption) <= ONE_LINE else ""
        parts.append(f'<caption style="text-align:left;font-weight:bold{line}">{escape(caption)}</caption>')
    if headings:
        cells = "".join(f'<th scope="col" style="{CELL}">{cell}</th>' for cell in headings)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(f'<td style="{CELL}">{cell}</td>' for cell in rest)
        parts.append(f'<tr><th scope="row" style="{CELL};font-weight:normal;opacity:.75">{first}</th>{cells}</tr>')
    parts.append("</tbody></table>")
    return "".join(parts)


LEAST_LARGE = 10.0**8
"""Integers below it are written out: NumPy's limit for arrays of float64 without exponents."""


def is_written_out(x: float) -> bool:
    """Whether a number is an integer that is shown with all of its digits."""
    return abs(x) < LEAST_LARGE and x == int(x)


def general(x: float, digits: int) -> str:
    """A number in as many significant digits; integers that are written out, with all of theirs."""
    return f"{x:.0f}" if is_written_out(x) else f"{x:.{digits}g}"


def grouped(number: int) -> str:
    """A count, its digits in groups of three."""
    return f"{number:_}".replace("_", " ")


def plain_table(header: bool = False) -> Table:
    """A rich table without lines."""
    from rich.table import Table

    return Table(show_header=header, box=None, pad_edge=False, padding=(0, 2, 0, 0))


def titled(title: str, table: RenderableType, note: str = "") -> RenderableType:
    """A title above a table and a note below; unlike the table's own, they may be wider than it."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(title, "bold"), table, *([Text(note, "dim")] if note else []))


def rendered(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], left: int | None = None
) -> RenderableType:
    """A table of text with a title, for consoles: so many columns on the left, or all."""
    from rich.text import Text

    table = plain_table(header=True)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if left is None or place < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return titled(title, table)


class Tabled:
    """What prints, and shows on consoles and in notebooks, as one table."""

    _left: ClassVar[int | None] = None
    """Columns on the left, before those of numbers; None: all."""

    def _table(self) -> tuple[str, Sequence[str], Sequence[Sequence[str]]]:
        """Title, headings, rows."""
        raise NotImplementedError

    def __str__(self) -> str:
        title, headings, rows = self._table()
        return f"{title}\n{aligned([headings, *rows], range(len(headings) if self._left is None else self._left))}"

    def __rich__(self) -> RenderableType:
        return rendered(*self._table(), self._left)

    def _repr_html_(self) -> str:
        title, headings, rows = self._table()
        return table_html(([escape(x) for x in row] for row in rows), [escape(x) for x in headings], title)
