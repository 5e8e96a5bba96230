"""What commands hand out: tables on a console, JSON, files that appear when they are complete, errors of one line, exit statuses."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from softfloat.checks import nearest
from softfloat.files import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "BROKEN_PIPE",
    "ERROR",
    "FAILED",
    "INTERRUPTED",
    "UNBOUNDED",
    "CommandError",
    "Parser",
    "console",
    "exit_status",
    "grid",
    "helping",
    "measurements",
    "one_line",
    "print_json",
]


FAILED, ERROR, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
UNBOUNDED = 1 << 16  # columns of a console that is no terminal
BROKEN = 24  # letters of a word that a column may break, at least
NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d|inf|nan|0x)", re.IGNORECASE)


class CommandError(Exception):
    """Something the user can put right, in one line."""


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line, which say what was probably meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse has it; an option that there is not is refused first, whatever else is missing."""
        for word in (args or []) if self._subparsers is None else []:
            name = word.partition("=")[0]
            if word == "--":
                break
            if (
                word.startswith("--")
                and " " not in name
                and not any(x.startswith(name) for x in self._option_string_actions)
            ):
                self.error(f"unrecognized arguments: {one_line(word)}{nearest(name, self._option_string_actions)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Of commands and choices."""
        if action.choices is not None and value not in action.choices:
            names = [str(x) for x in action.choices]
            meant = nearest(str(value), names)
            raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {', '.join(names)}){meant}")

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise CommandError(message)


def helping(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """What a parser with commands runs where none is given."""

    def run(_: argparse.Namespace) -> int:
        print(parser.format_help(), end="")
        return 0

    return run


def exit_status(name: str, run: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """What a program `name` ends with: what `run` returns of the arguments, None: the process's; or another status, whatever stops it.

    2 after an error, a mistake in the program itself among them; 130 after Ctrl-C, 141 if the reader of the output has gone, 143 and
    129 after SIGTERM and SIGHUP.
    """
    with _standard_error(), _signals_as_exits():
        status = _exit_status(name, run, argv)
        try:
            sys.stderr.flush()  # what was written there by those who do not mind if it is full
        except OSError:
            _abandon(sys.stderr)
        return status


def _exit_status(name: str, run: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    def complain(text: object) -> int:
        with contextlib.suppress(OSError):
            print(f"{name}: error: {text}", file=sys.stderr)
        return ERROR

    if sys.stdout is None:
        return complain("standard output is closed")
    # argparse takes -1e-8 and -inf for options; it never does so with an argument that has a space in it
    arguments = [f" {x}" if NEGATIVE_NUMBER.match(x) else x for x in (sys.argv[1:] if argv is None else argv)]
    try:
        status = run(arguments)
        sys.stdout.flush()
        return status
    except CommandError as error:
        return complain(error)
    except SystemExit as leaving:  # --help, --version and signals
        return leaving.code if isinstance(leaving.code, int) else 0
    except BrokenPipeError:
        _abandon(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        complain(f"cannot write the output: {error.strerror or error}")
        _abandon(sys.stdout)
        return ERROR
    except MemoryError:
        return complain("not enough memory")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # 1, Python's status for these, is a verdict of these programs
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return ERROR


@contextlib.contextmanager
def _standard_error() -> Iterator[None]:
    """Something to write messages to where standard error is closed: Python prints them to standard output otherwise."""
    if sys.stderr is not None:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


@contextlib.contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the program as an exception does, which removes temporary files; what else handles them stays."""
    replaced = []

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        replaced = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def _abandon(stream: TextIO) -> None:
    """What the interpreter flushes on its way out must go somewhere."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def console() -> Console:
    """Standard output for tables; raises BrokenPipeError if its reader has gone.

    It is as wide as the terminal, or as COLUMNS says; where it is no terminal, and COLUMNS says nothing, no line is broken.
    """
    from rich.console import Console
    from rich.measure import Measurement

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def print(self, *shown: Any, **options: Any) -> None:
            if self.width == UNBOUNDED:  # what fills a line with spaces is to fill no more than it needs
                widths = (Measurement.get(self, self.options, x).maximum for x in shown)
                options.setdefault("width", max(widths, default=0) or 1)
            super().print(*shown, **options)

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the multiplication sign still gets its table
    bounded = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return Quiet(highlight=False, emoji=False, markup=False, width=None if bounded else UNBOUNDED)


class _Grid:
    """A plain table; where words would be broken for it, a paragraph for each row."""

    def __init__(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str | Text]],
        whole: Sequence[int],
        fixed: Mapping[int, int],
        gap: int,
    ) -> None:
        self.headings, self.rows, self.whole, self.fixed, self.gap = headings, rows, whole, fixed, gap

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        table = Measurement.get(console, options, self._table())
        return Measurement(min(table.minimum, options.max_width), table.maximum)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self._table() if self._least() <= options.max_width else self._paragraphs()

    def _least(self) -> int:
        """Columns that the table needs: those that do not wrap, the longest name in the first, and of words in others a good part."""
        widths = []
        for index, cells in enumerate(zip(self.headings, *self.rows, strict=True)):
            texts = [cell if isinstance(cell, str) else cell.plain for cell in cells]
            words = texts if index in self.whole else [word for text in texts for word in text.split()]
            longest = max(map(len, words), default=0)
            widths.append(self.fixed.get(index, longest if index in self.whole or not index else min(longest, BROKEN)))
        return sum(widths) + (self.gap + 1) * (len(widths) - 1)

    def _table(self) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
        table.padding = (0, self.gap, 0, 0)
        for index, heading in enumerate(self.headings):
            table.add_column(heading, overflow="fold", no_wrap=index in self.whole, width=self.fixed.get(index))
        for row in self.rows:
            table.add_row(*row)
        return table

    def _paragraphs(self) -> RenderableType:
        """The first cell of each row, and below it the others with their headings, those that are not empty."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        parts: list[RenderableType] = []
        for first, *others in self.rows:
            named = [
                Text.assemble((f"{heading} " if heading else "", "dim"), cell)
                for heading, cell in zip(self.headings[1:], others, strict=True)
                if cell
            ]
            parts += [Text.assemble(first), Padding(Text(", ").join(named), (0, 0, 0, 2), expand=False)]
        return Group(*parts)


def grid(
    headings: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    whole: Sequence[int] = (),
    fixed: Mapping[int, int] = MappingProxyType({}),
    gap: int = 2,
) -> RenderableType:
    """A plain table. Columns named in `whole` do not wrap; those in `fixed` have that width. Where it does not fit, a paragraph a row.

    The box puts one more space than `gap` between columns.
    """
    return _Grid(headings, rows, whole, fixed, gap)


def measurements(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> RenderableType:
    """A table of numbers; below 80 columns a line for each row, naming each number."""
    from rich.text import Text

    if width < 80:
        lines = [", ".join(f"{name} {cell}" for name, cell in zip(headings, row, strict=True)) for row in rows]
        return Text("\n".join(" " + line for line in lines))
    return grid(headings, rows, gap=1)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    print(json.dumps(plain(document), indent=2, allow_nan=False))


def one_line(text: str) -> str:
    """A message as one line of printable characters."""
    return "".join(x if x.isprintable() else "?" for x in " ".join(text.split()))
