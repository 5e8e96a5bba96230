"""The command line: `softfloat reproduce`, `softfloat inspect`, `softfloat formats` and `softfloat accumulators`.

Exit status: 0 if all is well, 1 if a verdict fails, 2 for an error in what was asked, 130 after Ctrl-C, 141 if nobody
reads the output.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat._output import FAILED, CommandError, Parser, exit_status, grid, measurements
from softfloat._output import console as _console
from softfloat._output import print_json as _print_json
from softfloat.environment import Rounding, as_rounding
from softfloat.formats import ROSTER, Format
from softfloat.testing import hardware_commands
from softfloat.testing.commands import add_parsers

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from softfloat.accumulators import Accumulator
    from softfloat.experiments.accumulation import Accumulation
    from softfloat.experiments.claims import Claim, Report, SwampingCell

__all__ = ["main"]

SEED_HELP = "of stochastic rounding, 0 to 2^64 - 1 (default: 0)"
WIDE = 120  # columns that a table of claims needs; narrower terminals get a list
VERDICT_STYLES = {"reproduced": "green", "typo": "yellow", "not numeric": "dim", "FAILED": "bold red"}


def _format(name: str) -> Format:
    try:
        return Format.from_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rounding(name: str) -> Rounding:
    try:
        return as_rounding(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seed(text: str) -> int:
    try:
        seed = int(text, 0)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**64:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to 2^64 - 1, got {text.strip()!r}")
    return seed


def _preset(name: str) -> str:
    from softfloat.accumulators import PRESETS

    if name not in PRESETS:
        raise argparse.ArgumentTypeError(f"unknown accumulator {name.strip()!r}; accepted: {', '.join(PRESETS)}")
    return name


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = Parser(prog="softfloat", description="Bit-exact software floating point for narrow formats.")
    parser.add_argument("--version", action="version", version=f"softfloat {softfloat.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    reproduce = commands.add_parser(
        "reproduce",
        help="check the numbers that tutorials publish about half precision",
        description="Runs the numeric claims of public tutorials about half precision on the emulator and compares "
        "published, exact and emulated values; then measures errors of long sums beside the bounds of error analysis. "
        "Exit status 1 if the emulator disagrees with an exact value or a bound does not hold.",
    )
    seed_help = SEED_HELP.replace("rounding", "rounding and of random vectors")
    reproduce.add_argument("--seed", type=_seed, default=0, metavar="N", help=seed_help)
    reproduce.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    plot_help = "draw the running sums; .png, .svg or .pdf (needs matplotlib)"
    reproduce.add_argument("--plot", metavar="FILE.png", help=plot_help)
    plots_help = "draw everything: the running sums and each measurement of long sums, as .png files in that folder"
    reproduce.add_argument("--plots", metavar="FOLDER", help=plots_help)
    reproduce.set_defaults(run=_reproduce)

    inspect = commands.add_parser(
        "inspect",
        help="show the fields, value and neighbours of a code or number",
        description="Shows sign, exponent, fraction, value, class, neighbours and spacing of codes (0x3c00, 0b0011) "
        "or of numbers (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3) encoded in a format.",
        epilog=f"formats: {', '.join(ROSTER)}",
    )
    inspect.add_argument("values", nargs="+", metavar="VALUE", help="a code or a number")
    inspect.add_argument("--format", "-f", type=_format, default="float16", metavar="NAME", help="default: float16")
    rounding = f"of numbers: {', '.join(mode.name.lower() for mode in Rounding)} (default: nearest_even)"
    inspect.add_argument("--rounding", "-r", type=_rounding, default="nearest_even", metavar="MODE", help=rounding)
    inspect.add_argument("--seed", type=_seed, default=0, metavar="N", help=SEED_HELP)
    inspect.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    inspect.set_defaults(run=_inspect)

    formats = commands.add_parser(
        "formats",
        help="compare formats: layout, range, precision, special values",
        description="Compares formats: fields, precision, exponents, largest and smallest numbers, how infinities and "
        "NaN are coded.",
        epilog=f"formats: {', '.join(ROSTER)}",
    )
    names = "these alone (default: all named formats)"
    formats.add_argument("--format", "-f", type=_format, nargs="+", action="extend", metavar="NAME", help=names)
    formats.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    formats.set_defaults(run=_formats)

    accumulators = commands.add_parser(
        "accumulators",
        help="list how dot products can be summed, and where each rule comes from",
        description="Lists the presets of softfloat.accumulators: how to call them, what they mean, and their sources. "
        "With a name, what that one does, and for hardware its table.",
    )
    accumulators.add_argument("name", nargs="?", type=_preset, metavar="NAME", help="one preset, such as tensor_core")
    accumulators.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    accumulators.set_defaults(run=_accumulators)
    add_parsers(commands)
    hardware_commands.add_parsers(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; default those of the process.

    Returns
    -------
    int
        The exit status.
    """

    def run(arguments: Sequence[str]) -> int:
        options = build_parser().parse_args(arguments)
        return int(options.run(options))

    return exit_status("softfloat", run, argv)


# -- output ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[], None] | None]:
    """A bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("running sums"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


# -- softfloat inspect -----------------------------------------------------------------------------------------------


def _inspect(options: argparse.Namespace) -> int:
    from softfloat.display import inspect_code, inspect_number, parse_value, render_inspection

    found = []
    for text in options.values:
        text = text.strip()
        try:
            value = parse_value(text)
            if isinstance(value, int):
                found.append(inspect_code(value, options.format))
            else:
                found.append(inspect_number(text, options.format, options.rounding, options.seed))
        except ValueError as error:
            raise CommandError(str(error)) from None
    if options.json:
        _print_json({"version": softfloat.__version__, "values": [item.as_dict() for item in found]})
        return 0
    console = _console()
    for index, item in enumerate(found):
        if index:
            console.print()
        console.print(render_inspection(item))
    return 0


# -- softfloat reproduce ---------------------------------------------------------------------------------------------


def _reproduce(options: argparse.Namespace) -> int:
    if options.plot is not None:
        _attempt(lambda: _display().check_plot_path(options.plot))
    if options.plots is not None:
        _attempt(lambda: _display().check_plot_folder(options.plots))
    from softfloat.experiments import claims

    with _progress(claims.STAGES) as advance:
        report = claims.reproduce(options.seed, advance)
    if options.plot is not None:
        display = _display()
        _attempt(lambda: display.save(display.running_sums(report.nearest, report.stochastic), options.plot))
    written = [] if options.plot is None else [options.plot]
    if options.plots is not None:
        written += _write_figures(report, options.plots)
    if options.json:
        _print_json(_document(report, options.plot, written))
    else:
        _print_report(report, written)
    return 0 if report.passed else FAILED


def _write_figures(report: Report, folder: str) -> list[str]:
    display, written = _display(), []

    def write() -> None:
        for name, figure in display.report_figures(report).items():
            written.append(str(display.save(figure, Path(folder, name))))

    _attempt(write)
    return written


def _display() -> Any:
    from softfloat import display

    return display


def _attempt(action: Callable[[], object]) -> None:
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
    count = f"{report.nearest.count:_}".replace("_", " ")
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
    fixed = {0: 4, 1: min(width - 91, 48), 2: 15, 3: 25, 4: 25, 5: 11}  # a status register takes 25 columns
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


# -- softfloat formats -----------------------------------------------------------------------------------------------


def _formats(options: argparse.Namespace) -> int:
    formats = list(dict.fromkeys(options.format or ROSTER.values()))
    if options.json:
        _print_json({"version": softfloat.__version__, "formats": [_format_document(fmt) for fmt in formats]})
    else:
        _print_formats(formats)
    return 0


DOCUMENTED = (
    *("bits", "signed", "exponent_bits", "mantissa_bits", "layout", "p", "bias", "emin", "emax", "max", "min"),
    *("smallest_normal", "smallest_subnormal", "eps", "infinities", "nan", "subnormals", "signed_zero", "zero"),
)
"""Attributes of a format that its JSON has."""


def _format_document(fmt: Format) -> dict[str, Any]:
    return {"name": fmt.name} | {name: getattr(fmt, name) for name in DOCUMENTED}


def _print_formats(formats: Sequence[Format]) -> None:
    """A table; below 120 columns two, of codes and of values; below 80 a block for each format."""
    from rich.text import Text

    from softfloat import _markup

    console = _console()

    codes: list[list[str | Text]] = []
    values: list[list[str | Text]] = []
    for fmt in formats:
        widths = zip(
            _markup.FIELD_STYLES, map(str, (int(fmt.signed), fmt.exponent_bits, fmt.mantissa_bits)), strict=True
        )
        smallest = f"2^{fmt.emin - fmt.mantissa_bits}" if fmt.smallest_subnormal < fmt.tiny else "none"
        exponents = f"{fmt.emin} to {fmt.emax}"
        codes.append([str(fmt.bits), _markup.styled(widths), str(fmt.p), str(fmt.bias), exponents])
        values.append([f"{fmt.max:.6g}", f"2^{fmt.emin}", smallest, f"2^{-fmt.mantissa_bits}"])
    special: list[list[str | Text]] = [[_markup.special_values(fmt)] for fmt in formats]
    names: list[list[str | Text]] = [[Text(fmt.name, "bold")] for fmt in formats]
    head_codes = ["bits", "s e f", "p", "bias", "exponents"]
    head_values = ["max", "normal", "subnormal", "eps"]
    note = "s e f: bits of sign, exponent and fraction. normal, subnormal: the smallest of either kind."
    if console.width >= WIDE:
        rows = [[*a, *b, *c, *d] for a, b, c, d in zip(names, codes, values, special, strict=True)]
        console.print(grid(["format", *head_codes, *head_values, "special values"], rows, whole=range(10), gap=1))
    elif console.width >= 80:
        rows = [[*a, *b, *c] for a, b, c in zip(names, codes, special, strict=True)]
        console.print(grid(["format", *head_codes, "special values"], rows, whole=range(6), gap=1))
        console.print()
        rows = [[*a, *b] for a, b in zip(names, values, strict=True)]
        console.print(grid(["format", *head_values], rows, whole=range(5)))
    else:
        for index, fmt in enumerate(formats):
            if index:
                console.print()
            console.print(fmt)
        return
    console.print()
    console.print(Text(note, "dim"))


# -- softfloat accumulators ------------------------------------------------------------------------------------------


def _accumulators(options: argparse.Namespace) -> int:
    from softfloat.accumulators import PRESETS

    names = list(PRESETS) if options.name is None else [options.name]
    if options.json:
        document = {"version": softfloat.__version__, "presets": [_preset_document(name) for name in names]}
        if options.name is not None:
            document |= _hardware(options.name)
        _print_json(document)
    elif options.name is None:
        _print_presets()
    else:
        _print_preset(options.name)
    return 0


def _example(name: str) -> Accumulator:
    """The accumulator that the example of a preset makes."""
    from softfloat.accumulators import PRESETS

    call = ast.parse(PRESETS[name].example, mode="eval").body
    assert isinstance(call, ast.Call)
    keywords = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    return PRESETS[name].make(*map(ast.literal_eval, call.args), **keywords)


def _preset_document(name: str) -> dict[str, Any]:
    from softfloat.accumulators import PRESETS

    row, example = PRESETS[name], _example(name)
    return {
        "name": name,
        "example": row.example,
        "meaning": row.meaning,
        "source": row.source,
        "description": example.describe(),
        "note": example.note,
    }


def _hardware(name: str) -> dict[str, Any]:
    """What stands in tables behind a preset, by the keys it has in JSON."""
    from softfloat.accumulators import IPU_DATAPATHS, SAME_AS, TENSOR_CORES

    if name == "tensor_core":
        return {"tensor_cores": [row._asdict() for row in TENSOR_CORES], "same_as": SAME_AS}
    if name in ("amp", "slic"):
        paths = [
            {
                "inputs": [fmt.name for fmt in path.inputs],
                "phase": path.block,
                "pass": path.group,
                "partials": [fmt.name for fmt in path.partials],
            }
            for path in IPU_DATAPATHS.values()
        ]
        if name == "slic":
            for path in paths:
                del path["pass"]  # the window decides
        return {"datapaths": paths}
    return {}


def _print_presets() -> None:
    from rich.padding import Padding
    from rich.text import Text

    from softfloat.accumulators import PRESETS

    console = _console()
    if console.width >= WIDE:
        rows: list[list[str | Text]] = [
            [Text(row.example, "bold"), row.meaning, Text(row.source, "dim")] for row in PRESETS.values()
        ]
        console.print(grid(["call", "meaning", "source"], rows, whole=[0]))
        return
    for row in PRESETS.values():
        console.print(Text(row.example, "bold"))
        console.print(Padding(Text(row.meaning), (0, 0, 0, 2)))
        console.print(Padding(Text(row.source, "dim"), (0, 0, 0, 2)))


def _print_preset(name: str) -> None:
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    found = _preset_document(name)
    for label in ("example", "meaning", "description", "note", "source"):
        if found[label]:
            table.add_row(label, Text(found[label], "bold" if label == "example" else ""))
    console.print(table)
    hardware = _hardware(name)
    if not hardware:
        return
    console.print()
    if "datapaths" in hardware:
        columns = [key for key in ("phase", "pass") if key in hardware["datapaths"][0]]
        rows = [
            [", ".join(path["inputs"]), *(str(path[key]) for key in columns), ", ".join(path["partials"])]
            for path in hardware["datapaths"]
        ]
        console.print(measurements(["inputs", *columns, "partials"], rows, console.width))
        passes = "a pass ends with a store" if "pass" in columns else "a pass is a phase for each place of the window"
        console.print(Text(f"Products of a phase meet the accumulator at once; {passes}.", "dim"))
        return
    headings = ["GPU", "input", "instruction", "block", "cut at", "result", "output"]
    cores = hardware["tensor_cores"]
    rows = [
        [
            *(str(row[key]) for key in ("architecture", "input", "instruction", "block", "fraction_bits", "sum_bits")),
            ", ".join(row["outputs"]),
        ]
        for row in cores
    ]
    console.print(measurements(headings, rows, console.width))
    notes = [
        "Cut at: fraction bits kept below the largest exponent of a block. Result: fraction bits of a single result.",
        "float16 stands for bfloat16 too (not on V100), float8 for both formats. "
        + ", ".join(f"{name} is as {other}" for name, other in hardware["same_as"].items())
        + ".",
        *(f"{row['architecture']}, {row['input']}: {row['note']}." for row in cores if row["note"]),
    ]
    for note in notes:
        console.print(Text(note, "dim"))


if __name__ == "__main__":
    sys.exit(main())
