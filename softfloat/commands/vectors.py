"""The command line's `softfloat vectors` and `softfloat check`."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat.blocks.formats import BLOCK_ROSTER
from softfloat.commands.arguments import non_negative, positive, seed
from softfloat.commands.cases import add_case_options, asked, case_of, headed, refused, size_of
from softfloat.commands.coverage import cover
from softfloat.commands.output import CommandError, console, one_line, print_json
from softfloat.files import replacing
from softfloat.formats import ROSTER
from softfloat.markup import grouped, plain_table
from softfloat.progress import bar
from softfloat.testing.vectors.operations import OPERATIONS

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from softfloat.testing.verdicts.reports import Decoded, Mismatch, Report

__all__ = ["add_parsers", "junit", "render_report"]

MOST_OPERANDS = 8  # of a dot product, shown for each mismatch
ONE_LINE = 60  # characters of code, bits, value and flags that stand side by side in 80 columns


def add_parsers(commands: Any) -> None:
    """Add the commands to the subparsers of the command line."""
    operations = f"operations: {', '.join(OPERATIONS)}; mac (rows of a running sum); and Berkeley TestFloat's names: f16_add, f32_to_f16 ..."
    formats = f"formats: {', '.join(ROSTER)}; block formats: {', '.join(BLOCK_ROSTER)}"
    vectors = commands.add_parser(
        "vectors",
        help="write test vectors: operands, right results, flags",
        description="Writes rows of operands, the right result and its flags, as hexadecimal text in Berkeley "
        "TestFloat's columns, or as a NumPy archive.",
        epilog=f"{operations}. {formats}",
    )
    vectors.add_argument("operation", metavar="OP", help="what to compute")
    add_case_options(vectors)
    output = "where to; .npz makes an archive, .gz compressed text (default: standard output)"
    vectors.add_argument("--output", "-o", default="-", metavar="FILE", help=output)
    vectors.add_argument("--count", "-n", type=positive, metavar="N", help="rows (default: 10000)")
    vectors.add_argument("--seed", type=seed, default=0, metavar="N", help="of the operands (default: 0)")
    names = "bits, edge, mixed, normal, subnormal, ties, cancellation or corners (default: mixed)"
    vectors.add_argument("--distribution", default="mixed", metavar="NAME", help=f"of the operands: {names}")
    level = "random; 1 or 2: corner products, always the same; exhaustive: all operands there are (default: random)"
    vectors.add_argument("--level", default="random", metavar="LEVEL", help=level)
    cover = (
        "only rows that fill the bins which FILE's rows leave empty (without FILE: all bins); see softfloat coverage"
    )
    first = "a first line that says what the rows are, for `softfloat check` (default; not with TestFloat's names)"
    vectors.add_argument("--heading", action=argparse.BooleanOptionalAction, default=None, help=first)
    vectors.add_argument("--cover", nargs="?", const="", metavar="FILE", help=cover)
    vectors.set_defaults(run=_vectors)

    check = commands.add_parser(
        "check",
        help="check results that other hardware or tools computed",
        description="Reads rows of operands, result and flags as another device filled them in, and reports what is "
        "wrong and which known mistake explains it. Exit status 0 if every row is right, 1 if some are wrong, 2 if the "
        "file is malformed or has no rows.",
        epilog=f"{operations}. {formats}",
    )
    files = "text, compressed text, an archive, or errors that TestFloat's tools report; - for standard input"
    check.add_argument("file", metavar="FILE", help=files)
    check.add_argument("--op", metavar="OP", help="what was computed (default: what the file says it holds)")
    add_case_options(check)
    flags = "exact; subset: flags may be missing; ignore (default: exact)"
    check.add_argument("--flags", default="exact", metavar="HOW", help=f"how flags are compared: {flags}")
    nans = "any quiet one for another; canonical; payload: bit for bit (default: any; with --nan-policy, payload)"
    check.add_argument("--nan", metavar="HOW", help=f"how NaNs are compared: {nans}")
    check.add_argument("--first", type=non_negative, default=10, metavar="N", help="mismatches to show (default: 10)")
    check.add_argument("--no-causes", action="store_true", help="do not look for a cause")
    check.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    check.add_argument("--junit", metavar="FILE.xml", help="also write the verdict as JUnit XML")
    check.set_defaults(run=_check)


# -- softfloat vectors -----------------------------------------------------------------------------------------------


def _vectors(options: argparse.Namespace) -> int:
    from softfloat.testing.vectors.files import write_vectors
    from softfloat.testing.vectors.levels import LEVELS, count_rows

    case = case_of(options.operation, options)
    if options.cover is not None:
        return cover(case, options)
    quiet = options.output == "-" or _is_standard_output(options.output)
    try:
        named = options.level in LEVELS and options.level != "random"
        total = count_rows(case, options.level) if named else options.count or 10_000
        with bar(total, "rows", "bar", "count", "remaining") as progress:
            rows = write_vectors(
                options.output,
                case,
                options.count,
                seed=options.seed,
                distribution=options.distribution,
                level=options.level,
                headed=headed(options),
                progress=progress,
            )
    except BrokenPipeError:
        raise
    except OSError as error:
        if options.output == "-":
            raise
        raise refused(options.output, "write", error) from None
    except ValueError as error:
        raise CommandError(one_line(str(error))) from None
    if not quiet:
        print(f"{grouped(rows)} rows of {case.title}: {options.output}")
    return 0


def _is_standard_output(file: str) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # no such file, or no descriptor
        return False


# -- softfloat check -------------------------------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> int:
    from softfloat.testing.verdicts.check import check_vectors

    case = asked(options)
    if options.junit is not None and not os.path.isdir(os.path.dirname(os.path.abspath(options.junit))):
        raise CommandError(one_line(f"cannot write {options.junit}: its folder does not exist"))
    try:
        with bar(size_of(options.file), "checked", "bar", "bytes", "remaining") as progress:
            report = check_vectors(
                options.file,
                case,
                flags=options.flags,
                nan=options.nan,
                first=options.first,
                causes=not options.no_causes,
                progress=progress,
                interruptible=True,
            )
    except OSError as error:
        raise refused(options.file, "read", error) from None
    except ValueError as error:
        raise CommandError(one_line(str(error))) from None
    if options.junit is not None:
        try:
            with replacing(options.junit) as file:
                file.write(junit(report, options.file))
        except OSError as error:
            raise refused(options.junit, "write", error) from None
    if options.json:
        print_json({"version": softfloat.__version__, "file": options.file, **report.as_dict()})
    else:
        console().print(render_report(report, options.file))
    return report.status


def _share(share: float) -> str:
    text = f"{share:.2%}"
    return ">99.99%" if text == "100.00%" and share < 1 else text.replace(".00%", "%")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {grouped(count)}" for name, count in counts.items())


def verdict(report: Report) -> str:
    """The report in a word or two."""
    if report.interrupted:
        return "interrupted"
    if not report.well_formed:
        return "malformed"
    return "passed" if report.passed else "FAILED"


def render_report(report: Report, file: str = "") -> RenderableType:
    """A report as tables for a rich console."""
    from rich.console import Group
    from rich.text import Text

    style = {"passed": "green", "FAILED": "bold red"}.get(verdict(report), "bold yellow")
    head = Text.assemble((verdict(report), style), f"  {report.title}")
    if file:
        head.append(f": {one_line(file)}", "dim")
    so_far = " so far" if report.interrupted else ""
    parts: list[RenderableType] = [
        head,
        Text(f"{grouped(report.rows)} rows{so_far}, {grouped(report.mismatches)} mismatches"),
    ]
    compared = f"flags: {report.flags}, NaNs: {report.nan}"
    parts.append(
        Text(f"{grouped(report.wrong_results)} results and {grouped(report.wrong_flags)} flags are wrong ({compared})")
    )
    if report.failure:
        parts.append(Text(f"not read to the end: {report.failure}" if report.rows else report.failure, "bold red"))
    for line, reason in report.malformed:
        parts.append(Text(f"malformed line {line}: {reason}", "red"))
    if report.note:
        parts.append(Text(report.note, "dim"))
    if report.likenesses and not report.mismatches:
        parts += _explanations(report)
    if report.mismatches:
        parts += [Text(), _summary(report), Text()]
        parts += _explanations(report)
        parts += [Text(), *_shown(report)]
    return Group(*parts)


def _summary(report: Report) -> RenderableType:
    table = plain_table()
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", style="dim", no_wrap=True)
    for name, count in sorted(report.classes.items(), key=lambda item: -item[1]):
        table.add_row(name, grouped(count), _share(count / report.mismatches))
    from rich.console import Group
    from rich.text import Text

    notes = []
    if report.ulps:
        notes.append(f"distance in ulps: {_counts(report.ulps)}; at most {grouped(report.largest_ulps)}")
    if report.wrong_results:
        notes.append(f"P3109's kappa, value steps: {_kappa(report.kappa)}")
    if report.missing_flags:
        notes.append(f"flags missing: {_counts(report.missing_flags)}")
    if report.extra_flags:
        notes.append(f"flags raised without reason: {_counts(report.extra_flags)}")
    return Group(table, *(Text(note) for note in notes))


def _kappa(kappa: float) -> str:
    return grouped(int(kappa)) if math.isfinite(kappa) else "NaN" if math.isnan(kappa) else "infinite"


def _shared(report: Report) -> list[RenderableType]:
    """Regions: what the wrong rows share."""
    from rich.text import Text

    lines: list[RenderableType] = []
    for region in report.regions:
        rest = f"{_share(region.share)} of the wrong rows, {_share(region.right)} of the right ones"
        lines += [Text.assemble("wrong where ", ("; ".join(region.statements), "bold")), Text(f"  {rest}", "dim")]
    return lines


def _explanations(report: Report) -> list[RenderableType]:
    from rich.text import Text

    from softfloat.testing.verdicts.diagnosis import NEARLY_ALL

    if report.likenesses and not any(x.named for x in report.findings):
        return [Text.assemble("looks like ", (str(x), "bold"), f" ({x.options})") for x in report.likenesses]
    if not report.findings:
        kind, count = max(report.classes.items(), key=lambda item: item[1])
        if count >= NEARLY_ALL * report.mismatches:
            return [Text(f"Of one kind ({kind}), but no known mistake explains which rows.", "dim"), *_shared(report)]
        return [Text("No known mistake explains this.", "dim"), *_shared(report)]
    several = len(report.findings) > 1
    named = all(x.named for x in report.findings)
    lines: list[RenderableType] = []
    sampled = "" if report.diagnosed == report.mismatches else f" (of {grouped(report.diagnosed)} looked at)"
    if several and named and all(x.share >= 0.99 for x in report.findings):
        lines.append(Text("Any of these explains it; these rows do not tell them apart:"))
    elif several:
        lines.append(Text(f"Together these explain {_share(report.explained)} of the mismatches{sampled}:"))
    for finding in report.findings:
        text = Text.assemble(
            ("cause: " if finding.named else "perhaps: ", ""), (finding.name, "bold"), f", {finding.meaning}"
        )
        explains = f"explains {_share(finding.share)} of the mismatches{sampled}"
        if finding.result_share == finding.result_share and finding.result_share > finding.share:
            explains += f", {_share(finding.result_share)} of the wrong results"
        if finding.contradictions and not finding.named:
            explains += f"; {grouped(finding.contradictions)} right rows speak against it"
        lines += [text, Text(f"  {explains}", "dim")]
    return lines + _shared(report)


def _shown(report: Report) -> list[RenderableType]:
    from rich.text import Text

    from softfloat import markup

    parts: list[RenderableType] = []
    for found in report.first:
        steps = "" if found.ulps is None else f", {grouped(found.ulps)} apart"
        parts.append(Text(f"line {found.line}: {found.kind}{steps}", "bold"))
        numbers = [(x, "") for x in found.operands[:MOST_OPERANDS]]
        hidden = len(found.operands) - MOST_OPERANDS
        last = [(found.expected, _flags(found, True)), (found.actual, _flags(found, False))]
        names = [f"  {x.name}" for x, _ in [*numbers, *last]]
        narrow = max(sum(map(len, (x.code, x.pattern, x.value, flags))) for x, flags in [*numbers, *last]) <= ONE_LINE
        table = plain_table()
        for style in ("dim", *[""] * (4 if narrow else 1)):
            table.add_column(style=style, no_wrap=True)

        def row(name: str, x: Decoded, flags: str = "", narrow: bool = narrow, table: Table = table) -> None:
            fields: Text = markup.styled(x.fields) if x.fields else Text()
            if narrow:
                table.add_row(name, x.code, fields, x.value, flags)
            else:  # bits in a line of their own: they are not to be broken
                table.add_row(name, Text.assemble(f"{x.code}  {x.value}", f"  {flags}" if flags else ""))
                table.add_row("", fields)

        for name, (x, flags) in zip(names, numbers, strict=False):
            row(name, x, flags)
        if hidden > 0:
            table.add_row("  ...", Text(f"{hidden} more operands", "dim"))
        for name, (x, flags) in zip(names[-2:], last, strict=True):
            row(name, x, flags)
        parts.append(table)
    return parts


def _flags(found: Mismatch, expected: bool) -> str:
    flags = found.expected_flags if expected else found.actual_flags
    return "" if flags is None else str(flags)


# -- JUnit -----------------------------------------------------------------------------------------------------------


def junit(report: Report, file: str = "") -> bytes:
    """A report as JUnit XML: a test for the file's form, one for results, one for flags."""
    from xml.etree.ElementTree import Element, SubElement, tostring

    suite = Element("testsuite", name=_legal(f"softfloat check {report.title}"))
    problems = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}

    def test(name: str, kind: str = "", message: str = "", text: str = "") -> None:
        case = SubElement(suite, "testcase", classname=_legal(f"softfloat.{file or 'vectors'}"), name=name)
        problems["tests"] += 1
        if kind:
            problems["failures" if kind == "failure" else "errors"] += 1
            SubElement(case, kind, message=_legal(message), type=kind).text = _legal(text)

    if report.well_formed and not report.interrupted:
        test("rows")
    else:
        reasons = [report.failure] if report.failure else []
        reasons += [f"line {line}: {reason}" for line, reason in report.malformed]
        reasons += ["interrupted"] if report.interrupted else []
        test("rows", "error", reasons[0] if reasons else "there are no rows", "\n".join(reasons))
    details = "\n".join(
        [
            *(f"{name}: {count}" for name, count in report.classes.items()),
            *(f"cause: {x.name}, {x.meaning}: {_share(x.share)}" for x in report.findings),
            *(f"looks like {x}" for x in report.likenesses),
            *(_sentence(found) for found in report.first),
        ]
    )
    for name, count in (("results", report.wrong_results), ("flags", report.wrong_flags)):
        if count:
            test(name, "failure", f"{count} of {report.rows} rows have wrong {name}", details)
        elif report.rows and (name == "results" or report.flags != "ignore"):
            test(name)
    for name, count in problems.items():
        suite.set(name, str(count))
    return bytes(tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"


def _sentence(found: Mismatch) -> str:
    operands = " ".join(f"{x.name}={x.code}" for x in found.operands[:MOST_OPERANDS])
    flags = "" if found.expected_flags is None else f" ({found.expected_flags} expected, {found.actual_flags} found)"
    return (
        f"line {found.line}, {found.kind}: {operands} expected {found.expected.code} actual {found.actual.code}{flags}"
    )


def _legal(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
