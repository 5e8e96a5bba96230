"""Arrays of codes as a notebook and a terminal show them: values, codes, coloured bit fields."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

from softfloat.formats import bit_fields, code_text, fields_html, fields_rich
from softfloat.markup import DIGITS, MONOSPACE, plain_table, table_html, titled

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

    from softfloat.formats import Format

__all__ = ["array_html", "array_rich"]


ROWS, COLUMNS, EDGE = 20, 20, 3  # arrays longer than this are cut to so many at either end


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

    headings = ["row", *("…" if j is None else str(j) for j in columns)]
    body = [["…" if i is None else str(i), *(cell(i, j) for j in columns)] for i in rows]
    return table_html(body, headings, caption)


def _list_html(codes: Any, fmt: Format, texts: Any, caption: str) -> str:
    def cells(place: Any) -> list[str]:
        code = f'<span style="{MONOSPACE}">{code_text(codes[place], fmt)}</span>'
        return [escape(str(texts[place])), code, fields_html(codes[place], fmt)]

    headings = ["value", "code", "bits"]
    if not codes.shape:
        return table_html([cells(())], headings, caption)
    body = [["…"] * 4 if i is None else [str(i), *cells(i)] for i in _shown(codes.shape[0], ROWS)]
    return table_html(body, ["index", *headings], caption)


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
