"""The command line's `softfloat hardware` and `softfloat identify`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat.commands.arguments import block_shape, number, positive, seed
from softfloat.commands.output import FAILED, INTERRUPTED, CommandError, console, grid, one_line, print_json
from softfloat.commands.scales import identify_scales
from softfloat.formats import ROSTER, Format
from softfloat.markup import grouped
from softfloat.progress import bars, is_watched, status_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from softfloat.testing.hardware.features import Features
    from softfloat.testing.hardware.model import Outcome
    from softfloat.testing.identification.units import Identification, Unit

__all__ = ["add_parsers", "render_identification", "render_outcomes"]

STATUS_STYLES = {"agrees": "green", "differs": "bold red"}
VERDICT_STYLES = {"preset": "green", "description": "yellow", "none fits": "bold red"}
FEW = 6  # candidates shown of those that are the same


def add_parsers(commands: Any) -> None:
    """Add the commands to the subparsers of the command line."""
    hardware = commands.add_parser(
        "hardware",
        help="check the model against this machine's own instructions",
        description="Runs the conversions, dot products and arithmetic of this CPU beside the model, over the same "
        "operands, and compares results and flags; with --device cuda the scalar instructions of an NVIDIA GPU. What the "
        "machine lacks is listed as not available. Exit status 0 "
        "unless something differs, 1 if it does, 130 after Ctrl-C.",
    )
    hardware.add_argument("names", nargs="*", metavar="INSTRUCTION", help="such as VDPBF16PS (default: all)")
    hardware.add_argument(
        "--list", action="store_true", help="list instructions, models and sources, and check nothing"
    )
    samples = "operands for each instruction, rounding mode and setting of MXCSR (default: 100000)"
    hardware.add_argument("--samples", type=positive, default=100_000, metavar="N", help=samples)
    everything = "also all 2^32 operands of conversions from float32: one to a few minutes for each mode"
    hardware.add_argument("--exhaustive", action="store_true", help=everything)
    scheduler = "what runs those 2^32: threads, processes, or the address of a Dask cluster's scheduler (extra: dask)"
    hardware.add_argument("--scheduler", metavar="NAME", help=scheduler)
    manifest = "with --scheduler, where parts are entered that are done: the next run goes on from there"
    hardware.add_argument("--manifest", metavar="FOLDER", help=manifest)
    hardware.add_argument("--seed", type=seed, default=0, metavar="N", help="of the operands (default: 0)")
    hardware.add_argument(
        "--device", default="cpu", metavar="NAME", help="where: cpu, or cuda, an NVIDIA GPU (default: cpu)"
    )
    hardware.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    hardware.set_defaults(run=_hardware)

    identify = commands.add_parser(
        "identify",
        help="find out how an unknown dot-product unit accumulates",
        description="Asks a unit for a few hundred to a few thousand dot products, and says what their results show: "
        "block size, bits kept, rounding, order of summation, subnormals; and which accumulators explain every answer. "
        "The unit is a program, which reads rows of hexadecimal codes a[0] ... a[k-1] b[0] ... b[k-1] c on its standard "
        "input and prints a code for each, until its input ends; or a Python function f(a, b, c) of arrays of codes "
        "a (rows, k), b (rows, k) and c (rows,), which returns codes (rows,). "
        "With --scales: finds the rule by which a device chose the scales of blocks. Exit status 0 if an accumulator fits, 1 if none does.",
        epilog=f"formats: {', '.join(ROSTER)}",
    )
    program = "the program and its arguments; put -- before it if it has options"
    identify.add_argument("program", nargs="*", metavar="COMMAND", help=program)
    identify.add_argument("--python", metavar="MODULE:FUNCTION", help="a Python function, found from this folder too")
    preset = "a preset itself, such as 'tensor_core(\"H100\")', to see what can be told of it"
    identify.add_argument("--preset", metavar="CALL", help=preset)
    both = "of a and b, or of each with a comma between (default: float16, or what the preset takes)"
    identify.add_argument("--format", "-f", metavar="NAME", help=both)
    addend = "of the addend c (default: float32, or what the preset takes)"
    identify.add_argument("--addend-format", metavar="NAME", help=addend)
    identify.add_argument("--output-format", metavar="NAME", help="of the result (default: that of the addend)")
    identify.add_argument("--length", "-k", type=positive, default=32, metavar="K", help="products (default: 32)")
    identify.add_argument("--seed", type=seed, default=0, metavar="N", help="of random rows (default: 0)")
    rows = "random rows (default: 800): a mistake that shows in few of them needs many"
    identify.add_argument("--random-rows", type=positive, default=800, metavar="N", help=rows)
    nans = "any quiet one for another; canonical; payload: bit for bit (default: any)"
    identify.add_argument("--nan", default="any", metavar="HOW", help=f"how NaNs are compared: {nans}")
    timeout = "that one run of a program may take (default: 60)"
    identify.add_argument("--timeout", type=_seconds, default=60.0, metavar="SECONDS", help=timeout)
    scales = "instead of a unit: numbers and the scales of their blocks, which rule made them? An archive with arrays x and scales (and "
    scales += "tensor_scale), or rows of block_scale"
    identify.add_argument("--scales", metavar="FILE", help=scales)
    identify.add_argument("--axis", type=int, default=-1, metavar="N", help="of blocks in x (default: -1)")
    identify.add_argument("--block", type=block_shape, metavar="N|NxM", help="size of blocks, if not the format's")
    identify.add_argument(
        "--tensor-scale", type=number, metavar="X", help="the tensor's, if not what the rule computes"
    )
    identify.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    identify.set_defaults(run=_identify)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text.strip()[:40]!r}")
    return seconds


# -- softfloat hardware ----------------------------------------------------------------------------------------------


def _hardware(options: argparse.Namespace) -> int:
    from softfloat.testing.hardware import model
    from softfloat.testing.hardware.table import instructions

    table = {row.name: row for row in instructions()}
    names = [_instruction(name, list(table)) for name in options.names] or None
    have = model.features()
    if options.list:
        rows = [table[name] for name in names or table]
        if options.json:
            print_json({"version": softfloat.__version__, "features": have, "instructions": [_listed(x) for x in rows]})
        else:
            cells = [[x.name, ", ".join(x.extensions), x.model, x.source] for x in rows]
            console().print(grid(["instruction", "needs", "model", "source"], cells, whole=[0], gap=1))
        return 0
    outcomes: list[Outcome] = []
    interrupted = False
    try:
        with _progress() as progress:
            model.check_hardware(
                names,
                samples=options.samples,
                seed=options.seed,
                exhaustive=options.exhaustive,
                device=options.device,
                outcomes=outcomes,
                progress=progress,
                scheduler=options.scheduler,
                manifest=options.manifest,
            )
    except KeyboardInterrupt:
        interrupted = True
    except (ValueError, ImportError, OSError) as error:
        raise CommandError(one_line(str(error))) from None
    if options.json:
        document = {"version": softfloat.__version__, "seed": options.seed, "interrupted": interrupted}
        passed = not any(x.status == "differs" for x in outcomes)
        print_json(document | {"passed": passed, "features": have, "outcomes": outcomes})
    else:
        console().print(render_outcomes(have, outcomes, interrupted))
    if interrupted:
        return INTERRUPTED
    return FAILED if any(x.status == "differs" for x in outcomes) else 0


def _instruction(name: str, known: list[str]) -> str:
    found = next((x for x in known if x.lower() == name.strip().lower()), None)
    if found is None:
        raise CommandError(f"unknown instruction {one_line(name)!r}; accepted: {', '.join(known)}")
    return found


def _listed(row: Any) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in ("name", "extensions", "model", "modes", "families", "source")}
    return found | {"formats": [x.name for x in row.formats], "checked": row.is_checked}


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on standard error, if that is a terminal: one line for the instruction at work."""
    if not is_watched():
        yield None
        return
    with bars("{task.description:<32}", "bar", "{task.percentage:>3.0f}%", "remaining") as shown:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            for known in [x for x in tasks if x != what]:
                shown.remove_task(tasks.pop(known))
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=total)
            shown.update(tasks[what], completed=done)

        yield update


def render_outcomes(have: Features, outcomes: Sequence[Outcome], interrupted: bool = False) -> RenderableType:
    """What `check_hardware` found, as tables for a rich console: modes that agree share a line."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    present = [name for name, there in have.extensions.items() if there]
    absent = [name for name, there in have.extensions.items() if not there]
    parts.append(Text(f"{have.machine}, {have.cpu}: {', '.join(present) or 'none of the extensions looked for'}"))
    if absent:
        parts.append(Text(f"not here: {', '.join(absent)}", "dim"))
    parts += [Text(f"GPU: {name}") for name in have.gpus]
    parts.append(Text())
    rows: list[list[Any]] = []
    checked = [x for x in outcomes if x.status in ("agrees", "differs")]
    for name in dict.fromkeys(x.instruction for x in checked):
        ours = [x for x in checked if x.instruction == name]
        alike = [x for x in ours if x.status == "agrees"]
        if len(alike) > 1:
            rows.append(_outcome_row(alike, f"{len(alike)} modes"))
            ours = [x for x in ours if x.status != "agrees"]
        rows += [_outcome_row([x], x.mode) for x in ours]
    if rows:
        headings = ["instruction", "rounding", "operands", "wrong", "flags", "", "M/s"]
        parts += [grid(headings, rows, whole=[0, 1, 2, 5], gap=1), Text()]
    others = [x for x in outcomes if x not in checked]
    for status, reason in dict.fromkeys((x.status, x.reason) for x in others):
        alike_names = ", ".join(x.instruction for x in others if (x.status, x.reason) == (status, reason))
        parts.append(Text.assemble(f"{alike_names}: ", (f"{status}, {reason}", "dim")))
    for outcome in outcomes:
        for example in outcome.examples:
            operands = ", ".join(f"{x:#x}" for x in example.operands)
            parts.append(
                Text(
                    f"{outcome.instruction} {outcome.mode}, {example.setting}: {operands} gives {example.found:#x} with flags "
                    f"{example.found_flags}, the model {example.expected:#x} with {example.expected_flags}",
                    "red",
                )
            )
    cases = sum(x.cases for x in outcomes)
    wrong = sum(x.mismatches + x.flag_mismatches for x in outcomes)
    parts.append(Text())
    line = Text(f"{grouped(cases)} operands, ")
    line.append(f"{grouped(wrong)} mismatches", "bold red" if wrong else "green")
    if interrupted:
        line.append("; interrupted", "bold yellow")
    elif not cases:
        line.append("; nothing here to check against", "dim")
    parts.append(line)
    return Group(*parts)


def _outcome_row(outcomes: Sequence[Outcome], mode: str) -> list[Any]:
    from rich.text import Text

    first = outcomes[0]
    cases, seconds = sum(x.cases for x in outcomes), sum(x.seconds for x in outcomes)
    status = Text(first.status, STATUS_STYLES[first.status])
    everything = " (all)" if all(x.exhaustive for x in outcomes) else ""
    return [
        first.instruction,
        mode,
        grouped(cases) + everything,
        grouped(sum(x.mismatches for x in outcomes)),
        grouped(sum(x.flag_mismatches for x in outcomes)),
        status,
        f"{cases / seconds / 1e6:.3g}" if seconds else "",
    ]


# -- softfloat identify ----------------------------------------------------------------------------------------------


def _identify(options: argparse.Namespace) -> int:
    from softfloat.testing.identification.units import identify

    given = [bool(options.program), *(x is not None for x in (options.python, options.preset, options.scales))]
    if sum(given) != 1:
        raise CommandError("one of COMMAND, --python, --preset and --scales must say what to identify")
    if options.scales is not None:
        return identify_scales(options)
    try:
        unit, formats, partials, output = _unit(options)
        with status_line("softfloat identify") as progress:
            found = identify(
                unit,
                formats,
                partials,
                options.length,
                output=output,
                seed=options.seed,
                random_rows=options.random_rows,
                nan=options.nan,
                progress=progress,
            )
    except (ValueError, TypeError) as error:
        raise CommandError(one_line(str(error))) from None
    if options.json:
        print_json({"version": softfloat.__version__, **found.as_dict()})
    else:
        screen = console()
        screen.print(render_identification(found, screen.width))
    return 0 if found.fits else FAILED


def _unit(options: argparse.Namespace) -> tuple[Unit, tuple[Format, Format], Format, Format]:
    from softfloat.testing.identification.units import command_unit, unit_of
    from softfloat.testing.vectors.expressions import parse_accumulator

    names = None if options.format is None else [x.strip() for x in options.format.split(",")]
    if names is not None and len(names) > 2:
        raise CommandError(f"--format takes one format or two, got {one_line(options.format)!r}")
    formats = None if names is None else (Format.from_name(names[0]), Format.from_name(names[-1]))
    partials = None if options.addend_format is None else Format.from_name(options.addend_format)
    output = None if options.output_format is None else Format.from_name(options.output_format)
    if options.preset is not None:
        accumulator = parse_accumulator(options.preset)
        if partials not in (None, accumulator.partials):
            raise CommandError(f"--addend-format must be {accumulator.partials.name} for {accumulator!r}")
        partials = accumulator.partials
        one = accumulator.inputs[0] if accumulator.inputs else partials
        formats = formats or (one, one)
        output = output or accumulator.output(*formats)
        return unit_of(accumulator, formats, output), formats, partials, output
    half, single = ROSTER["float16"], ROSTER["float32"]
    formats, partials = formats or (half, half), partials or single
    output = output or partials
    if options.python is not None:
        return _imported(options.python), formats, partials, output
    # main() puts a space before arguments that look like negative numbers
    command = [x[1:] if x.startswith(" -") else x for x in options.program]
    return command_unit(command, formats, partials, options.timeout), formats, partials, output


def _imported(text: str) -> Unit:
    """The function that MODULE:FUNCTION names."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise CommandError(f"--python must be MODULE:FUNCTION, got {one_line(text)!r}")
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise CommandError(one_line(f"cannot import {module}: {error}")) from None
    except AttributeError as error:
        raise CommandError(one_line(str(error))) from None
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
    if not callable(found):
        raise CommandError(f"{one_line(text)} is no function")
    unit: Unit = found
    return unit


def _properties(found: Identification, width: int) -> RenderableType:
    """A table; below 110 columns a list, what was seen below each property."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    if width >= 110:
        rows: list[list[str | Text]] = [
            [x.name, Text(x.value, "bold"), Text(x.evidence, "dim")] for x in found.properties
        ]
        return grid(["property", "value", "seen in"], rows, whole=[0], gap=1)
    lines: list[RenderableType] = []
    for x in found.properties:
        lines.append(Text.assemble(f"{x.name}: ", (x.value, "bold")))
        lines.append(Padding(Text(x.evidence, "dim"), (0, 0, 0, 2)))
    return Group(*lines)


def render_identification(found: Identification, width: int = 120) -> RenderableType:
    """What `identify` found, as tables for a rich console of that width."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    names = " x ".join(dict.fromkeys(x.name for x in found.formats))
    parts: list[RenderableType] = [
        Text(f"{found.length} products of {names}, addend {found.partials.name}, result {found.output.name}"),
        Text(),
        _properties(found, width),
        Text(),
    ]
    verdicts = {
        "preset": "fits",
        "description": "no preset fits; this does",
        "none fits": "none fits: no accumulator tried has all that the probes show",
    }
    parts.append(Text(verdicts[found.verdict], VERDICT_STYLES[found.verdict]))
    for candidate in found.fits[:FEW]:
        parts.append(Padding(Text(str(candidate), "bold"), (0, 0, 0, 2)))
    if len(found.fits) > FEW:
        parts.append(Padding(Text(f"and {len(found.fits) - FEW} more"), (0, 0, 0, 2)))
    if len(found.fits) > 1:
        same = f"the same function for {found.length} products, as far as {grouped(found.searched)} more rows tell"
        parts.append(Padding(Text(same, "dim"), (0, 0, 0, 2)))
    for near in found.nearest:
        share = f"wrong on {grouped(near.wrong)} of {grouped(near.rows)} rows"
        if near.wrong and not near.wrong_values:
            share += ", all of them NaNs with another code"
        parts.append(
            Padding(Text.assemble(("nearest: ", "dim"), (str(near.candidate), ""), (f", {share}", "dim")), (0, 0, 0, 2))
        )
    if found.nearest and found.nearest[0].examples:
        example = found.nearest[0].examples[0]
        pairs = [f"{x}·{y}" for x, y in zip(example["a"], example["b"], strict=True) if int(x, 16) and int(y, 16)]
        shown = " + ".join(pairs[:8]) + (" + ..." if len(pairs) > 8 else "")
        text = f"{shown or 0}, c = {example['c']}: the unit gives {example['unit']}, that one {example['candidate']}"
        parts.append(Padding(Text(text, "dim"), (0, 0, 0, 2)))
    parts.append(Text())
    summary = f"{found.calls} calls of the unit, {grouped(found.rows)} rows; {found.candidates} candidates held against all of them"
    parts.append(Text(summary, "dim"))
    return Group(*parts)
