"""`softfloat accumulators`: the ways to sum, with their sources."""

from __future__ import annotations

import argparse
import ast
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat.accumulators.roster import STANDINGS
from softfloat.commands.arguments import preset
from softfloat.commands.output import console as _console
from softfloat.commands.output import grid, measurements
from softfloat.commands.output import print_json as _print_json
from softfloat.commands.reproduce import WIDE

if TYPE_CHECKING:
    from rich.text import Text

    from softfloat.accumulators import Accumulator


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    accumulators = commands.add_parser(
        "accumulators",
        help="list how dot products can be summed, and where each rule comes from",
        description="Lists the presets of softfloat.accumulators: how to call them, what they mean, and their sources. "
        "With a name, what that one does, and for hardware its table.",
    )
    accumulators.add_argument("name", nargs="?", type=preset, metavar="NAME", help="one preset, such as tensor_core")
    accumulators.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    accumulators.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
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


def example_of(name: str) -> Accumulator:
    """The accumulator that the example of a preset makes."""
    from softfloat.accumulators import PRESETS

    call = ast.parse(PRESETS[name].example, mode="eval").body
    assert isinstance(call, ast.Call)
    keywords = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    return PRESETS[name].make(*map(ast.literal_eval, call.args), **keywords)


def _preset_document(name: str) -> dict[str, Any]:
    from softfloat.accumulators import PRESETS

    row, example = PRESETS[name], example_of(name)
    return {
        "name": name,
        "example": row.example,
        "meaning": row.meaning,
        "source": row.source,
        "standing": row.standing,
        "parameters": {parameter: list(values) for parameter, values in row.parameters.items()},
        "description": example.describe(),
        "note": example.note,
    }


def _hardware(name: str) -> dict[str, Any]:
    """What stands in tables behind a preset, by the keys it has in JSON."""
    from softfloat.accumulators import TENSOR_CORES
    from softfloat.accumulators.ipu import IPU_DATAPATHS
    from softfloat.accumulators.tensor_cores import SAME_AS

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
            [Text(row.example, "bold"), row.meaning, row.standing, Text(row.source, "dim")] for row in PRESETS.values()
        ]
        console.print(grid(["call", "meaning", "standing", "source"], rows, whole=[0]))
        return
    for row in PRESETS.values():
        console.print(Text(row.example, "bold"))
        console.print(Padding(Text(row.meaning), (0, 0, 0, 2)))
        console.print(Padding(Text(f"{row.standing}: {row.source}", "dim"), (0, 0, 0, 2)))


def _told(label: str, found: Any) -> str:
    """A property of a preset in words."""
    if label == "parameters":
        return "; ".join(f"{name}: {', '.join(map(str, values)) or 'any'}" for name, values in found.items())
    return f"{found}: {STANDINGS[found]}" if label == "standing" else str(found)


def _print_preset(name: str) -> None:
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    found = _preset_document(name)
    for label in ("example", "parameters", "meaning", "description", "standing", "note", "source"):
        text = _told(label, found[label])
        if text:
            table.add_row(label, Text(text, "bold" if label == "example" else ""))
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
        "float16 stands for bfloat16 too (not on V100 and T4), float8 for both formats. "
        + ", ".join(f"{name} is as {other}" for name, other in hardware["same_as"].items())
        + ".",
        *(f"{row['architecture']}, {row['input']}: {row['note']}." for row in cores if row["note"]),
    ]
    for note in notes:
        console.print(Text(note, "dim"))
