"""`softfloat onnx`: saved models in emulated arithmetic."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import softfloat
from softfloat.commands import onnx_convert
from softfloat.commands.arguments import SEED_HELP, rounding_mode, seed
from softfloat.commands.output import CommandError, console, grid, helping, one_line, print_json
from softfloat.commands.reproduce import attempt_plot
from softfloat.environments import Environment, Overflow, as_member
from softfloat.files import replacing
from softfloat.markup import grouped
from softfloat.progress import status_line
from softfloat.status import Flags

if TYPE_CHECKING:
    from softfloat.onnx import Evaluator
    from softfloat.onnx.comparison import NodeReport

__all__ = ["add_parsers"]

ROWS = 40


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    onnx = commands.add_parser(
        "onnx",
        help="run saved models in emulated arithmetic, and convert them",
        description="Works on models saved as ONNX (extra `onnx`).",
    )
    onnx.set_defaults(run=helping(onnx))
    subcommands = onnx.add_subparsers(dest="subcommand", metavar="SUBCOMMAND")
    for add in SUBCOMMANDS:
        add(subcommands)


def _add_run(subcommands: Any) -> None:
    run = subcommands.add_parser(
        "run",
        help="run a model and tell what became of each node",
        description="Runs a model whose nodes on narrow numbers compute in emulated arithmetic, and prints a table of these "
        "nodes, worst first: error against float32, overflows, underflows, swamped additions.",
    )
    add = run.add_argument
    add("model", metavar="MODEL.onnx", help="the model; external data lie in its folder")
    given = "an input; real numbers are rounded to the model's type, to nearest even"
    add("--input", "-i", action="append", default=[], metavar="NAME=FILE.npy", help=given)
    how = 'of products and convolutions, such as amp("half"), tensor_core("H100") (default: fma("float32"))'
    add("--accumulator", metavar="PRESET", help=how)
    add("--reduction", metavar="PRESET", help='of sums and means (default: that of products, else fma("float32"))')
    add("--rounding", "-r", type=rounding_mode, default="nearest_even", metavar="MODE", help="default: nearest_even")
    add("--overflow", default="infinity", metavar="RULE", help="infinity, saturate or nan (default: infinity)")
    add("--seed", type=seed, default=0, metavar="N", help=SEED_HELP)
    stages = "softmax and norms in stages of float32, or each stage in the format (default: float32)"
    add("--inner", choices=("float32", "format"), default="float32", help=stages)
    add("--no-strict", action="store_true", help="leave what is not emulated to ONNX's own implementation, and list it")
    add("--compare", choices=("float32",), help="also run the model in float32, and show each node's error")
    add("--no-count", action="store_true", help="count nothing: much faster")
    add("--output", "-o", metavar="FILE.npz", help="write the outputs; narrow ones as their codes")
    add("--plot", metavar="FILE.png", help="draw the errors; .png, .svg or .pdf (needs matplotlib and --compare)")
    add("--json", action="store_true", help="print one JSON document instead of a table")
    run.set_defaults(run=_run)


SUBCOMMANDS: tuple[Callable[[Any], None], ...] = (_add_run, onnx_convert.add_parser)
"""What adds each subcommand's parser, in the order of the help text."""


def _run(options: argparse.Namespace) -> int:
    if options.plot is not None:
        if options.compare is None:
            raise CommandError("--plot draws errors and needs --compare float32")
        attempt_plot(lambda: softfloat_display().check_plot_path(options.plot))
    feeds = _files(options.input)
    try:
        from softfloat.onnx import UnemulatedOperatorError
        from softfloat.onnx.comparison import compare_nodes, draw_nodes
    except ImportError as error:
        raise CommandError(one_line(str(error))) from None
    try:
        with status_line() as show:
            evaluator = _evaluator(options)
            evaluator.watch = show
            feeds = _typed(evaluator, feeds)
            outputs, reports = compare_nodes(evaluator, feeds, options.compare is not None)
    except OSError as error:
        raise CommandError(
            one_line(f"cannot read {error.filename or options.model}: {error.strerror or error}")
        ) from None
    except (ValueError, TypeError, UnemulatedOperatorError) as error:
        raise CommandError(one_line(str(error))) from None
    if options.plot is not None:
        attempt_plot(lambda: softfloat_display().save(draw_nodes(reports, evaluator.nodes), options.plot))
    if options.output is not None:
        _write(options.output, outputs)
    if options.json:
        print_json(_document(options, evaluator, reports))
    else:
        _print(options, evaluator, reports)
    return 0


def softfloat_display() -> Any:
    """What draws and writes figures."""
    from softfloat import display

    return display


def _files(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise CommandError(f"argument --input: must be NAME=FILE.npy, got {pair!r}")
        if name in found:
            raise CommandError(f"argument --input: {name} is given twice")
        try:
            array = np.load(path, allow_pickle=False)
        except OSError as error:
            raise CommandError(one_line(f"cannot read {path}: {error.strerror or error}")) from None
        except (ValueError, EOFError) as error:
            raise CommandError(one_line(f"cannot read {path} as .npy: {error}")) from None
        if not isinstance(array, np.ndarray):
            raise CommandError(f"cannot read {path}: it holds several arrays; accepted: one, as .npy")
        found[name] = array
    return found


def _evaluator(options: argparse.Namespace) -> Evaluator:
    from softfloat.onnx import Evaluator
    from softfloat.testing.vectors.expressions import parse_accumulator

    environment = Environment(
        rounding=options.rounding, overflow=as_member(Overflow, options.overflow, "--overflow"), seed=options.seed
    )
    how = None if options.accumulator is None else parse_accumulator(options.accumulator)
    sums = how if options.reduction is None else parse_accumulator(options.reduction)
    return Evaluator(
        options.model,
        environment,
        matmul=how,
        convolution=how,
        reduction=sums,
        strict=not options.no_strict,
        count=not options.no_count,
        inner=options.inner,
    )


def _typed(evaluator: Evaluator, feeds: dict[str, Any]) -> dict[str, Any]:
    """Inputs in the model's types: real numbers rounded to them, to nearest even, integers only where nothing is lost."""
    from onnx.helper import tensor_dtype_to_np_dtype

    from softfloat import bits
    from softfloat.onnx.tensors import array_of, format_of

    kinds = dict(zip(evaluator.input_names, evaluator.input_types or (), strict=False))
    typed = dict(feeds)
    for name, array in feeds.items():
        if name not in kinds or not kinds[name].HasField("tensor_type"):
            continue
        wanted = np.dtype(tensor_dtype_to_np_dtype(kinds[name].tensor_type.elem_type))
        fmt = format_of(wanted)
        if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
            typed[name] = array.view(wanted)  # what NumPy makes of ml_dtypes in files
        elif fmt is not None and array.dtype != wanted and array.dtype.kind == "f":
            typed[name] = array_of(bits.encode(array, fmt)[0], fmt)
        elif fmt is None and array.dtype != wanted and np.can_cast(array.dtype, wanted, "safe"):
            typed[name] = array.astype(wanted)
    return typed


def _write(path: str, outputs: dict[str, Any]) -> None:
    from softfloat.onnx.tensors import codes_of, format_of, is_narrow

    plain: dict[str, Any] = {}
    for name, x in outputs.items():
        fmt = format_of(x.dtype) if isinstance(x, np.ndarray) and is_narrow(x) else None
        plain[name] = x if fmt is None or x.dtype == np.float16 else codes_of(x, fmt)
    try:
        with replacing(path) as file:
            np.savez(file, **plain)
    except OSError as error:
        raise CommandError(one_line(f"cannot write {path}: {error.strerror or error}")) from None


def _document(options: argparse.Namespace, evaluator: Evaluator, reports: list[NodeReport]) -> dict[str, Any]:
    return {
        "version": softfloat.__version__,
        "model": options.model,
        "rounding": options.rounding if isinstance(options.rounding, str) else options.rounding.name.lower(),
        "overflow": options.overflow,
        "seed": options.seed,
        "accumulator": options.accumulator,
        "reduction": options.reduction,
        "inner": options.inner,
        "compared_with": options.compare,
        "flags": evaluator.status.flags,
        "passed": evaluator.passed,
        "nodes": reports,
    }


def _print(options: argparse.Namespace, evaluator: Evaluator, reports: list[NodeReport]) -> None:
    out = console()
    if not reports:
        out.print("No node computes on numbers narrower than float32.")
        return
    headings = ["node", "operator", "format", "error", "overflow", "underflow", "swamped", "flags"]
    rows = []
    for report in reports[:ROWS]:
        counts, flags = report.counts, report.flags & ~Flags.INEXACT
        numbers = ["", "", ""]
        if counts is not None:
            swamped = f"{grouped(counts.swamped)} of {grouped(counts.additions)}" if counts.additions else ""
            numbers = [grouped(counts.overflowed), grouped(counts.underflowed), swamped]
        named = str(flags).replace("|", " ") if flags else ""
        rows.append([report.node, report.operator, report.format, _error(report.error), *numbers, named])
    out.print(grid(headings, rows, whole=range(1, 7), gap=1))
    if len(reports) > ROWS:
        out.print(f"and {len(reports) - ROWS} nodes less bad; --json has them all")
    for name, operator in evaluator.passed.items():
        out.print(f"left to ONNX's own implementation: {name} ({operator})")
    out.print(f"status: {evaluator.status.flags}")


def _error(error: float | None) -> str:
    return "" if error is None else "inf" if math.isinf(error) else f"{error:.2e}"
