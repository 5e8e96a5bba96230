"""`softfloat reproduce`: published claims beside what the emulator computes."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat import display
from softfloat.commands.arguments import SEED_HELP, seed
from softfloat.commands.output import FAILED, UNBOUNDED, CommandError, grid, measurements
from softfloat.commands.output import console as _console
from softfloat.commands.output import print_json as _print_json
from softfloat.experiments import figures
from softfloat.markup import grouped
from softfloat.progress import bar

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from softfloat.experiments.accumulation import Accumulation
    from softfloat.experiments.claims import Claim, Report, SwampingCell


WIDE = 120  # columns that a table of claims needs; narrower terminals get a list
VERDICT_STYLES = {"reproduced": "green", "typo": "yellow", "not numeric": "dim", "FAILED": "bold red"}


# -- output ----------------------------------------------------------------------------------------------------------


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    reproduce = commands.add_parser(
        "reproduce",
        help="check the numbers that tutorials publish about half precision",
        description="Runs the numeric claims of public tutorials about half precision on the emulator and compares "
        "published, exact and emulated values; then measures errors of long sums beside the bounds of error analysis. "
        "Exit status 1 if the emulator disagrees with an exact value or a bound does not hold.",
    )
    seed_help = SEED_HELP.replace("rounding", "rounding and of random vectors")
    reproduce.add_argument("--seed", type=seed, default=0, metavar="N", help=seed_help)
    reproduce.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    plot_help = "draw the running sums; .png, .svg or .pdf (needs matplotlib)"
    reproduce.add_argument("--plot", metavar="FILE.png", help=plot_help)
    plots_help = "draw everything: the running sums and each measurement of long sums, as .png files in that folder"
    reproduce.add_argument("--plots", metavar="FOLDER", help=plots_help)
    reproduce.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.plot is not None:
        attempt_plot(lambda: display.check_plot_path(options.plot))
    if options.plots is not None:
        attempt_plot(lambda: display.check_plot_folder(options.plots))
    from softfloat.experiments import claims

    stages = itertools.count(1)
    with bar(claims.STAGES, "running sums", "bar", "count", "elapsed") as show:
        report = claims.reproduce(options.seed, show and (lambda: show(next(stages))))
    if options.plot is not None:
        attempt_plot(lambda: display.save(figures.running_sums(report.nearest, report.stochastic), options.plot))
    written = [] if options.plot is None else [options.plot]
    if options.plots is not None:
        written += _write_figures(report, options.plots)
    if options.json:
        _print_json(_document(report, options.plot, written))
    else:
        _print_report(report, written)
    return 0 if report.passed else FAILED


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


def _document(report: Report, plot: str | None, written: Sequence[str]) -> dict[str, Any]:
    return {
        "version": softfloat.__version__,
        "seed": report.seed,
        "passed": report.passed,
        "counts": report.counts,
        "claims": report.claims,
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


def _print_report(report: Report, written: Sequence[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = _console()

    def section(title: str, body: RenderableType, note: str = "") -> None:
        console.print(Text(title, "bold"))
        console.print(body)
        if note:
            console.print(Padding(Text(note, "dim"), (0, 0, 0, 1)))
        console.print()

    for source in dict.fromkeys(claim.source for claim in report.claims):
        claims = [claim for claim in report.claims if claim.source == source]
        section(
            source,
            _claims_table(claims, console.width) if console.width >= WIDE else _claims_list(claims, console.width),
        )
    count = grouped(report.nearest.count)
    section(
        f"{count} × {report.nearest.requested:g}, by format and rounding mode",
        _swamping_table(report.swamping, console.width),
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
    section("The status register after one operation", _table(headings, rows, console.width))
    rows = [
        [case.description, f"{case.number:.9g}", f"0x{case.code:04x}", f"{case.value:.6g}", str(case.flags)]
        for case in report.underflow
    ]
    headings = ["number", "float32", "code", "value", "flags"]
    section("Underflow from float32 to float16", _table(headings, rows, console.width))
    for title, body, note in _accumulation_sections(report.accumulation, console.width):
        section(title, body, note)
    for path in written:
        console.print(f"Plot written to {path}", soft_wrap=True)
    line = Text()
    for verdict, number in report.counts.items():
        words = f"{number} {verdict}" + "s" * (verdict == "typo" and number != 1)
        line.append(", " if line else "").append(words, VERDICT_STYLES[verdict] if number else "")
    failed = sum(cell.verdict.value == "FAILED" for cell in report.swamping)
    if failed:
        line.append("; ").append(f"{failed} running sums FAILED", VERDICT_STYLES["FAILED"])
    if report.accumulation.broken:
        line.append("; ").append(f"{report.accumulation.broken} error bounds FAILED", VERDICT_STYLES["FAILED"])
    console.print(line)


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


def _claims_table(claims: Sequence[Claim], width: int) -> RenderableType:
    """A row for each claim, then the notes."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows: list[list[str | Text]] = [
        [claim.id, claim.statement, claim.published, claim.exact, claim.emulated, _verdict(claim)] for claim in claims
    ]
    notes = Table.grid(padding=(0, 2, 0, 0))
    for claim in claims:
        if claim.note:
            notes.add_row(Text(claim.id, "dim"), Text(claim.note, "dim"))
    headings = ["", "claim", "published", "exact", "emulated", "verdict"]
    fixed = (
        {0: 4, 1: min(width - 91, 48), 2: 15, 3: 25, 4: 25, 5: 11} if width < UNBOUNDED else {}
    )  # a status register takes 25
    return Group(grid(headings, rows, whole=[0, 5], fixed=fixed, gap=1), Text(), notes)


def _claims_list(claims: Sequence[Claim], width: int) -> RenderableType:
    """The statement on a line of its own, the three values in columns below it; in lines below 60 columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    names = ("published", "exact", "emulated")
    blocks: list[RenderableType] = []
    stacked = width < 60
    wide = max((width - 28) // 2, (width - 7) // 3)  # a status register takes 25 columns
    widths = (width - 7 - 2 * wide, wide, wide)
    if not stacked:
        head = Table.grid(padding=(0, 1, 0, 0))
        for column in (4, *widths):
            head.add_column(width=column, style="dim")
        head.add_row("", *names)
        blocks.append(head)
    for claim in claims:
        first = Table.grid(padding=(0, 1, 0, 0), expand=True)
        first.add_column(width=4, style="dim")
        first.add_column(ratio=1)
        first.add_column(no_wrap=True)
        first.add_row(claim.id, claim.statement, _verdict(claim))
        blocks.append(first)
        values = Table.grid(padding=(0, 1, 0, 0))
        values.add_column(width=4)
        if stacked:
            values.add_column(width=9, style="dim")
            values.add_column(overflow="fold")
            for name in names:
                values.add_row("", name, getattr(claim, name))
        else:
            for column in widths:
                values.add_column(width=column, overflow="fold")
            values.add_row("", *(getattr(claim, name) for name in names))
        blocks.append(values)
        if claim.note:
            note = Table.grid(padding=(0, 1, 0, 0))
            note.add_column(width=4)
            note.add_row("", Text(claim.note, "dim"))
            blocks.append(note)
    return Group(*blocks)


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
