"""The command line's `softfloat coverage`, and `softfloat vectors --cover`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat.commands.cases import add_case_options, asked, headed, refused, size_of
from softfloat.commands.output import CommandError, console, one_line, print_json
from softfloat.markup import grouped, plain_table
from softfloat.progress import bar
from softfloat.testing.vectors.operations import Case

if TYPE_CHECKING:
    from rich.console import RenderableType

    from softfloat.testing.vectors.coverage import Coverage

__all__ = ["add_parsers", "cover", "render_coverage"]

MOST_EMPTY = 6  # empty bins of a dimension that are named in the table


def add_parsers(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "coverage",
        help="which exponents, cancellations, ties ... the rows of a file reach",
        description="Counts the rows of a file by operands, exponents, exponent difference, cancellation, carry, distance "
        "of the last bit, ties, results and flags; those of dot products also by what happens at each step of the sum. "
        "Exit status 0 if every bin that can be reached is, 1 if some are empty, 2 if the file is malformed.",
    )
    parser.add_argument("file", metavar="FILE", help="text, compressed text or an archive; - for standard input")
    parser.add_argument("--op", metavar="OP", help="what was computed (default: what the file says it holds)")
    add_case_options(parser)
    parser.add_argument("--all", action="store_true", help="name every empty bin")
    search = "look for rows that fill empty bins, and say which there are none for"
    parser.add_argument("--search", action="store_true", help=search)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.set_defaults(run=_coverage)


def _read(file: str, case: Case | None) -> Coverage:
    from softfloat.testing.vectors.coverage import coverage_of

    try:
        with bar(size_of(file), "read", "bar", "bytes", "remaining") as progress:
            return coverage_of(file, case, progress=progress)
    except OSError as error:
        raise refused(file, "read", error) from None
    except ValueError as error:
        raise CommandError(one_line(f"{file}: {error}")) from None


def _coverage(options: argparse.Namespace) -> int:
    found = _read(options.file, asked(options))
    document = found.as_dict()
    rendered = render_coverage(found, options.all)
    left = sum(len(found.fillable(x.name)) for x in found.dimensions)
    if options.search:
        added = len(found.fill()[0])
        searched = found.as_dict()
        document["search"] = {"rows": added, "dimensions": searched["dimensions"], "searched": searched["searched"]}
    if options.json:
        print_json({"version": softfloat.__version__, "file": options.file, **document})
        return 1 if left else 0
    console().print(rendered)
    if options.search:
        print(f"\n{grouped(added)} rows would fill what can be filled; left empty:")
        console().print(render_coverage(found, True, empty=True))
    return 1 if left else 0


def render_coverage(found: Coverage, whole: bool = False, empty: bool = False) -> RenderableType:
    """A table of dimensions: bins, how many are reached, which are not; with `empty`, of empty bins and why they are."""
    from rich.console import Group
    from rich.text import Text

    table = plain_table()
    table.add_column(no_wrap=True)
    if empty:
        table.add_column(overflow="fold")
        table.add_column(style="dim", overflow="fold")
        for dimension in found.dimensions:
            reasons: dict[str, list[str]] = {}
            for label in found.empty(dimension.name):
                reasons.setdefault(found.reason(dimension.name, label) or "not looked for", []).append(label)
            for reason, labels in reasons.items():
                table.add_row(dimension.name, ", ".join(labels), reason)
        return table
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    for dimension in found.dimensions:
        missing = found.fillable(dimension.name)
        impossible = len(found.empty(dimension.name)) - len(missing)
        reached = sum(1 for x in found.counts[dimension.name] if x)
        shown = missing if whole else missing[:MOST_EMPTY]
        names = ", ".join(shown) + (f" and {len(missing) - len(shown)} more" if len(shown) < len(missing) else "")
        words = [f"empty: {names}"] if missing else []
        words += [f"{impossible} unreachable"] if impossible else []
        table.add_row(dimension.name, str(reached), f"of {reached + len(missing)}", "; ".join(words))
    return Group(Text(f"{grouped(found.rows)} rows of {found.case.title}"), table)


def cover(case: Case, options: argparse.Namespace) -> int:
    """Write the rows that fill empty bins, and say which stay empty.

    Without `--cover FILE` all bins are empty; with it, those that the rows of the file leave so.
    """
    from softfloat.testing.vectors.coverage import Coverage
    from softfloat.testing.vectors.files import write_rows

    if options.count is not None or options.level != "random":
        raise CommandError(
            "--count and --level are for vectors without --cover, which writes the rows that are missing"
        )
    if case.stream:
        raise CommandError("--cover is not for mac, whose rows follow each other; accepted: vecdot with --addend")
    try:
        found = _read(options.cover, case) if options.cover else Coverage(case)
    except ValueError as error:
        raise CommandError(one_line(str(error))) from None
    operands = found.fill(options.seed)
    results, flags = case.run(operands)
    try:
        rows = write_rows(options.output, case, [[*operands, results, flags]], len(results), headed=headed(options))
    except BrokenPipeError:
        raise
    except OSError as error:
        if options.output == "-":
            raise
        raise refused(options.output, "write", error) from None
    to = sys.stderr if options.output == "-" else sys.stdout
    print(f"{grouped(rows)} rows of {case.title}: {options.output}", file=to)
    for dimension in found.dimensions:
        for label in found.empty(dimension.name):
            known = "unreachable" if found.unreachable(dimension.name, label) else "not found"
            print(f"{known}: {dimension.name} {label}: {found.reason(dimension.name, label)}", file=to)
    return 0
