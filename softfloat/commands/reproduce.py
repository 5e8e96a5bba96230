"""`softfloat reproduce`: published claims beside what the emulator computes."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat import display, engine
from softfloat.commands.arguments import SEED_HELP, seed
from softfloat.commands.output import FAILED, UNBOUNDED, CommandError, grid, measurements
from softfloat.commands.output import console as _console
from softfloat.commands.output import print_json as _print_json
from softfloat.experiments import figures
from softfloat.markup import grouped
from softfloat.progress import shares

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from softfloat.experiments.accumulation import Accumulation
    from softfloat.experiments.claims import Claim, Claims, Report, SwampingCell
    from softfloat.progress import Shown


DOCUMENTS = ("tutorials", "numerics")
LOOPS = {
    ("tutorials", True): 17,
    ("tutorials", False): 45,
    ("numerics", True): 59,
    ("numerics", False): 94,
}
"""Compiled loops that a process takes for a document, quickly or in full, on CPUs with fused multiply-adds and conversions of halves; on
others their number differs."""
WIDE = 120  # columns that a table of claims needs; narrower terminals get a list
VERDICT_STYLES = {"reproduced": "green", "typo": "yellow", "not numeric": "dim", "FAILED": "bold red"}


# -- output ----------------------------------------------------------------------------------------------------------


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    reproduce = commands.add_parser(
        "reproduce",
        help="check the numbers that tutorials and papers publish about narrow formats",
        description="Runs the numeric claims of public tutorials about half precision on the emulator and compares "
        "published, exact and emulated values; then measures errors of long sums beside the bounds of error analysis. "
        "With `numerics`, runs experiments that papers of numerical analysis have published, and compares their numbers. "
        "Exit status 1 if the emulator disagrees with an exact value or a published number, or a bound does not hold.",
    )
    documents_help = "what to check: tutorials (the default), or numerics, numbers of papers of numerical analysis"
    reproduce.add_argument("documents", nargs="?", choices=DOCUMENTS, default="tutorials", help=documents_help)
    seed_help = SEED_HELP.replace("rounding", "rounding and of random vectors")
    reproduce.add_argument("--seed", type=seed, default=0, metavar="N", help=seed_help)
    quick_help = (
        "the claims alone: neither the table of running sums nor the measurements of long sums; of numerics, some"
    )
    reproduce.add_argument("--quick", action="store_true", help=quick_help)
    reproduce.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    plot_help = "draw the running sums; .png, .svg or .pdf (needs matplotlib)"
    reproduce.add_argument("--plot", metavar="FILE.png", help=plot_help)
    plots_help = "draw everything: the running sums and each measurement of long sums, as .png files in that folder"
    reproduce.add_argument("--plots", metavar="FOLDER", help=plots_help)
    reproduce.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    of_papers = options.documents == "numerics"
    if of_papers and not options.plot is options.plots is None:
        raise CommandError("--plot and --plots draw what tutorials have; accepted: numerics without them")
    if options.plot is not None:
        attempt_plot(lambda: display.check_plot_path(options.plot))
    if options.plots is not None:
        if options.quick:
            raise CommandError("--plots draws what --quick leaves out; accepted: one of them, or --quick with --plot")
        attempt_plot(lambda: display.check_plot_folder(options.plots))
    from softfloat.experiments import claims, numerics

    out = None if options.json else _Claims(_console())
    loops = LOOPS[options.documents, options.quick] if all(engine.available()) else None
    with shares("softfloat reproduce") as bar, _compilations(bar, loops) as begin:

        def told(claim: Claim) -> None:
            if out is not None:
                bar.clear()
                out.show(claim)

        if of_papers:
            papers = numerics.reproduce(options.seed, begin, told, quick=options.quick)
        else:
            report = claims.reproduce(options.seed, begin, told, quick=options.quick)
    if of_papers:
        if options.json:
            _print_json(_claims_document(papers))
        else:
            _console().print()
            _console().print(_counts(papers))
        return 0 if papers.passed else FAILED
    if options.plot is not None:
        attempt_plot(lambda: display.save(figures.running_sums(report.nearest, report.stochastic), options.plot))
    written = [] if options.plot is None else [options.plot]
    if options.plots is not None:
        written += _write_figures(report, options.plots)
    if options.json:
        _print_json(_document(report, options.plot, written))
    else:
        _print_report(report, written, options.quick)
    return 0 if report.passed else FAILED


@contextlib.contextmanager
def _compilations(bar: Shown, loops: int | None) -> Iterator[Callable[[str, float], None]]:
    """What to call with the name of a step and the share that is done; the bar tells, too, how many of so many loops there are.

    Those that were kept count: which are missing, only the calls tell.
    """
    from numba.core import event

    name, share, taken = "", 0.0, 0

    def of_all() -> str:
        return f" of {loops}" if loops is not None and taken <= loops else ""

    def begin(step: str, done: float) -> None:
        nonlocal name, share
        name, share = step, done
        bar.update(name, share, f"{taken}{of_all()} loops are there" if taken else "")

    class Listener(event.Listener):
        def on_start(self, found: Any) -> None:
            nonlocal taken
            taken += 1
            if not found.data["kept"]:
                bar.update(name, share, f"compiling loop {taken}{of_all()}, once")

        def on_end(self, found: Any) -> None:
            begin(name, share)

    with event.install_listener(engine.loop_event(), Listener()):
        yield begin


def _write_figures(report: Report, folder: str) -> list[str]:
    written: list[str] = []

    def write() -> None:
        for name, figure in figures.report_figures(report).items():
            written.append(str(display.save(figure, Path(folder, name))))

    attempt_plot(write)
    return written


def attempt_plot(action: Callable[[], object]) -> None:
    """Do something with a plot's file; what is wrong with it, or with matplotlib, is an error of one line."""
    try:
        action()
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(
            f"cannot write the plot: {error.strerror}: {error.filename}" if error.strerror else str(error)
        ) from None


def _claims_document(report: Claims) -> dict[str, Any]:
    return {
        "version": softfloat.__version__,
        "seed": report.seed,
        "passed": report.passed,
        "counts": report.counts,
        "claims": report.claims,
    }


def _document(report: Report, plot: str | None, written: Sequence[str]) -> dict[str, Any]:
    return _claims_document(report) | {
        "running_sums": {
            "increment": report.nearest.increment,
            "count": report.nearest.count,
            "nearest_even": float(report.nearest.final[0]),
            "stalled_after": report.nearest.stalled_after,
            "stochastic": [float(x) for x in report.stochastic.final],
            "spread": report.spread,
            "wide_spread": report.wide_spread,
        },
        "swamping": report.swamping,
        "overflow": report.overflow,
        "exceptions": report.exceptions,
        "underflow": report.underflow,
        "accumulation": report.accumulation,
        "plot": plot,
        "plots": written,
    }


def _print_report(report: Report, written: Sequence[str], quick: bool) -> None:
    """What follows the claims."""
    from rich.padding import Padding
    from rich.text import Text

    console = _console()

    def section(title: str, body: RenderableType, note: str = "") -> None:
        console.print(Text(title, "bold"))
        console.print(body)
        if note:
            console.print(Padding(Text(note, "dim"), (0, 0, 0, 1)))
        console.print()

    console.print()
    if not quick:
        _print_measurements(report, console.width, section)
    for path in written:
        console.print(f"Plot written to {path}", soft_wrap=True)
    line = _counts(report)
    failed = sum(cell.verdict.value == "FAILED" for cell in report.swamping)
    if failed:
        line.append("; ").append(f"{failed} running sums FAILED", VERDICT_STYLES["FAILED"])
    if report.accumulation.broken:
        line.append("; ").append(f"{report.accumulation.broken} error bounds FAILED", VERDICT_STYLES["FAILED"])
    console.print(line)


def _counts(report: Claims) -> Text:
    """How many claims have each verdict, in words."""
    from rich.text import Text

    line = Text()
    for verdict, number in report.counts.items():
        words = f"{number} {verdict}" + "s" * (verdict == "typo" and number != 1)
        line.append(", " if line else "").append(words, VERDICT_STYLES[verdict] if number else "")
    return line


def _print_measurements(report: Report, width: int, section: Callable[..., None]) -> None:
    """Running sums, exceptions and long sums, a section each."""
    from rich.padding import Padding
    from rich.text import Text

    count = grouped(report.nearest.count)
    section(
        f"{count} × {report.nearest.requested:g}, by format and rounding mode",
        _swamping_table(report.swamping, width),
        "The last sum (the mean of 20, if stochastic), and in brackets how many additions changed it. "
        "The increment is rounded to nearest even first; without other rounding the sums would be 10 000 times that: "
        + ", ".join(dict.fromkeys(f"{exact} ({name})" for name, exact in _unrounded_sums(report.swamping)))
        + ".",
    )
    sums = " ".join(f"{x:.4g}" for x in report.stochastic.final)
    spread = report.spread
    section(
        f"Twenty stochastic sums in float16, seed {report.seed}",
        Padding(Text(sums), (0, 0, 0, 1)),
        f"Mean {spread.mean:.6f}, standard deviation {spread.std:.4f}; "
        f"from theory {float(spread.expectation):.6f} and {spread.theoretical_std:.4f}.",
    )
    cases = [*report.overflow, *report.exceptions]
    rows = [[case.expression, case.format, case.environment, f"{case.value:g}", case.status] for case in cases]
    headings = ["operation", "format", "settings", "result", "status"]
    section("The status register after one operation", _table(headings, rows, width))
    rows = [
        [case.description, f"{case.number:.9g}", f"0x{case.code:04x}", f"{case.value:.6g}", str(case.flags)]
        for case in report.underflow
    ]
    headings = ["number", "float32", "code", "value", "flags"]
    section("Underflow from float32 to float16", _table(headings, rows, width))
    for title, body, note in _accumulation_sections(report.accumulation, width):
        section(title, body, note)


def _unrounded_sums(cells: Sequence[SwampingCell]) -> list[tuple[str, str]]:
    """Format and sum without rounding of the stochastic cells, whose expectation it is."""
    return [(cell.format, f"{float(cell.exact):.6g}") for cell in cells if cell.rounding == "stochastic"]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> RenderableType:
    """A table whose last column does not wrap; below 80 columns a line for each row."""
    from rich.text import Text

    if width < 80:
        return Text("\n".join(" " + ", ".join(row) for row in rows))
    return grid(headings, rows, whole=[len(headings) - 1])


def _verdict(claim: Claim) -> Text:
    from rich.text import Text

    return Text(claim.verdict.value, VERDICT_STYLES[claim.verdict.value])


class _Claims:
    """Claims printed one after the other, below their source: in columns, or where these have no room, in lines."""

    HEADINGS = ("", "claim", "published", "exact", "emulated", "verdict")
    NAMES = ("published", "exact", "emulated")

    def __init__(self, console: Console) -> None:
        self._console, self._source = console, ""
        width = console.width
        self._stacked, self._wide = width < 60, width >= WIDE
        if self._wide:  # a status register takes 25 columns
            self._widths = [4, min(width - 92, 48), 15, 25, 25, 11]
        else:
            wide = max((width - 28) // 2, (width - 7) // 3)
            self._widths = [4, width - 7 - 2 * wide, wide, wide]

    def show(self, claim: Claim) -> None:
        """Print a claim, after its source's name and headings where it is the first."""
        from rich.text import Text

        if claim.source != self._source:
            if self._source:
                self._console.print()
            self._source = claim.source
            self._console.print(Text(claim.source, "bold"))
            if not self._stacked:
                self._print_row([Text(name, "dim") for name in (self.HEADINGS if self._wide else ("", *self.NAMES))])
        first, verdict = Text(claim.id, "dim"), _verdict(claim)
        values = [Text(getattr(claim, name)) for name in self.NAMES]
        if self._wide:
            self._print_row([first, Text(claim.statement), *values, verdict])
        else:
            self._print_heading(first, claim.statement, verdict)
            if self._stacked:
                for name, value in zip(self.NAMES, values, strict=True):
                    self._print_indented(Text(f"{name:<10}", "dim") + value)
            else:
                self._print_row([Text(), *values])
        if claim.note:
            self._print_indented(Text(claim.note, "dim"))

    def _print_row(self, cells: Sequence[Text]) -> None:
        """Cells in columns: of a terminal, folded to their widths; else, whatever does not fit pushes what follows aside."""
        from rich.table import Table
        from rich.text import Text

        if self._console.width == UNBOUNDED:
            padded = [cell + " " * (width - len(cell)) for cell, width in zip(cells, self._widths, strict=True)]
            line = Text(" ").join(padded)
            line.rstrip()
            self._console.print(line)
            return
        row = Table.grid(padding=(0, 2 if self._wide else 1, 0, 0))
        for width in self._widths:
            row.add_column(width=width, overflow="fold")
        row.add_row(*cells)
        self._console.print(row)

    def _print_heading(self, first: Text, statement: str, verdict: Text) -> None:
        from rich.table import Table

        row = Table.grid(padding=(0, 1, 0, 0), expand=True)
        row.add_column(width=4)
        row.add_column(ratio=1)
        row.add_column(no_wrap=True)
        row.add_row(first, statement, verdict)
        self._console.print(row)

    def _print_indented(self, text: Text) -> None:
        from rich.padding import Padding

        self._console.print(Padding(text, (0, 0, 0, 6 if self._wide else 5), expand=False))


def _swamping_table(cells: Sequence[SwampingCell], width: int) -> RenderableType:
    from rich.text import Text

    formats = list(dict.fromkeys(cell.format for cell in cells))
    roundings = list(dict.fromkeys(cell.rounding for cell in cells))
    found = {(cell.format, cell.rounding): cell for cell in cells}

    def shown(cell: SwampingCell) -> Text:
        stalled = "" if cell.stalled_after is None else f" ({cell.stalled_after})"
        brief = f"{cell.final:.5g}"
        if len(brief) > 6:
            brief = f"{cell.final:.4g}"
        text = Text(f"{brief}{stalled}")
        if cell.verdict.value == "FAILED":
            text.append(" FAILED", VERDICT_STYLES["FAILED"])
        return text

    if width < 80:
        return Text("\n").join([Text(f" {cell.format} {cell.rounding}: ").append_text(shown(cell)) for cell in cells])
    rows: list[list[str | Text]] = [
        [mode.replace("_", " "), *(shown(found[name, mode]) for name in formats)] for mode in roundings
    ]
    return grid(["", *formats], rows, whole=[0], gap=0)


def _accumulation_sections(found: Accumulation, width: int) -> Iterator[tuple[str, RenderableType, str]]:
    """Title, table and note of each measurement of long sums; rows for every second power of two."""

    def number(x: float) -> str:
        return f"{x:.1e}"

    def table(headings: Sequence[str], columns: Mapping[Any, Sequence[str]]) -> RenderableType:
        return measurements(headings, [[*map(str, key), *cells] for key, cells in columns.items()], width)

    def columns(rows: Sequence[Any], key: Callable[[Any], tuple[Any, ...]], *cells: Callable[[Any], str]) -> Any:
        """Cells of all rows with the same key, side by side."""
        lines: dict[tuple[Any, ...], list[str]] = {}
        for row in rows:
            if key(row)[-1].bit_length() % 2:
                lines.setdefault(key(row), []).extend(cell(row) for cell in cells)
        return lines

    error, bound = (lambda row: number(row.error)), (lambda row: number(row.bound))
    yield (
        "Squared norms of random half vectors: relative error, and the share of additions that changed nothing",
        table(
            ["K", "half partials", "stalled", "float partials", "stalled", "fma(float16)", "stalled"],
            columns(found.dots, lambda row: (row.length,), error, lambda row: f"{row.swamped:.0%}"),
        ),
        "The IPU's AMP stores half partials after 16 products, multiply-adds in half round after each: both stall, the AMP "
        "later.",
    )
    length = found.chunks[0].length
    yield (
        f"Dot products of {length} numbers in chunks: relative error",
        table(
            ["chunk", "added in float16", "added in float32"], columns(found.chunks, lambda row: (row.chunk,), error)
        ),
        "Chunks summed in float16, their sums in either format; the bound (c + n/c)·u is least for chunks of √n = "
        f"{math.isqrt(length)}. Wang et al., Training Deep Neural Networks with 8-bit Floating Point Numbers, "
        "NeurIPS 2018.",
    )
    yield (
        "Half dot products: largest error / |a|·|b|, and its bound",
        table(
            ["n", "half", "n·u16", "V100 to half", "u16+2.5n·u32", "V100 to float", "2.5n·u32"],
            columns(found.blocks, lambda row: (row.length,), error, bound),
        ),
        "u16 = 2^-11, u32 = 2^-24. Blanchard, Higham, Lopez, Mary and Pranesh (SIAM J. Sci. Comput. 2020) have n·u32 for "
        "blocks rounded to nearest; V100 cuts, four products and the sum in each block, up to 2·u32 each time.",
    )
    yield (
        "Sums one after the other: root mean square of the relative error, and its bound",
        table(
            ["format", "n", "nearest even", "n·u", "stochastic", "√n·u"],
            columns(found.sums, lambda row: (row.format, row.length), error, bound),
        ),
        "u = 2^-11 in float16, 2^-8 in bfloat16. Connolly, Higham and Mary, Stochastic rounding and its probabilistic "
        "backward error analysis (SIAM J. Sci. Comput. 2021).",
    )
