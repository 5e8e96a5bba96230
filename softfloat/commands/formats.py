"""`softfloat formats`: formats compared."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat.blocks import BLOCK_ROSTER, BlockFormat, Fixed
from softfloat.blocks.formats import block_text
from softfloat.commands.arguments import any_format_name
from softfloat.commands.output import console as _console
from softfloat.commands.output import grid
from softfloat.commands.output import print_json as _print_json
from softfloat.commands.reproduce import WIDE
from softfloat.formats import NAMED, Format
from softfloat.markup import general

if TYPE_CHECKING:
    from rich.text import Text


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    formats = commands.add_parser(
        "formats",
        help="compare formats: layout, range, precision, special values",
        description="Compares formats: fields, precision, exponents, largest and smallest numbers, how infinities and "
        "NaN are coded; and block formats: element, scale, elements to a scale.",
        epilog=f"formats: {', '.join(NAMED)}; block formats: {', '.join(BLOCK_ROSTER)}",
    )
    names = "these alone (default: all named formats)"
    formats.add_argument("--format", "-f", type=any_format_name, nargs="+", action="extend", metavar="NAME", help=names)
    formats.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    formats.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    chosen = list(dict.fromkeys(options.format or [*NAMED.values(), *BLOCK_ROSTER.values()]))
    formats = [fmt for fmt in chosen if isinstance(fmt, Format)]
    block_formats = [fmt for fmt in chosen if isinstance(fmt, BlockFormat)]
    if options.json:
        document = {"version": softfloat.__version__, "formats": [_format_document(fmt) for fmt in formats]}
        _print_json(document | {"block_formats": [_block_format_document(fmt) for fmt in block_formats]})
        return 0
    if formats:
        _print_formats(formats)
    if block_formats:
        if formats:
            _console().print()
        _print_block_formats(block_formats)
    return 0


DOCUMENTED = (
    *("bits", "signed", "exponent_bits", "mantissa_bits", "layout", "p", "bias", "emin", "emax", "max", "min"),
    *("smallest_normal", "smallest_subnormal", "eps", "infinities", "nan", "subnormals", "signed_zero", "zero"),
)
"""Attributes of a format that its JSON has."""


def _format_document(fmt: Format) -> dict[str, Any]:
    return {"name": fmt.name} | {name: getattr(fmt, name) for name in DOCUMENTED}


def _block_format_document(fmt: BlockFormat) -> dict[str, Any]:
    element = fmt.element
    if isinstance(element, Fixed):
        shown = {
            name: getattr(element, name) for name in ("bits", "fraction_bits", "coding", "symmetric", "max", "min")
        }
    else:
        shown = _format_document(element)
    tensor = None if fmt.tensor_scale is None else fmt.tensor_scale.name
    return {
        "name": fmt.name,
        "element": {"name": element.name} | shown,
        "scale": fmt.scale.name,
        "block": fmt.block,
        "tensor_scale": tensor,
        "bits_per_element": fmt.bits_per_element,
    }


def _print_block_formats(formats: Sequence[BlockFormat]) -> None:
    """A table; below 80 columns a block for each format."""
    from rich.text import Text

    console = _console()
    if console.width < 80:
        for index, fmt in enumerate(formats):
            if index:
                console.print()
            console.print(fmt)
        return
    rows: list[list[str | Text]] = []
    for fmt in formats:
        numbers = [block_text(fmt.block), f"{fmt.bits_per_element:.6g}", general(fmt.element.max, 6)]
        tensor = "" if fmt.tensor_scale is None else f", {fmt.tensor_scale} of the tensor"
        rows.append([Text(fmt.name, "bold"), *numbers, str(fmt.element), f"{fmt.scale}{tensor}"])
    console.print(grid(["block format", "block", "bits", "max", "element", "scale"], rows, whole=range(4), gap=1))
    console.print()
    console.print(Text("bits: of an element and its share of the scale. max: the largest element, scale aside.", "dim"))


def _print_formats(formats: Sequence[Format]) -> None:
    """A table; below 120 columns two, of codes and of values; below 80 a block for each format."""
    from rich.text import Text

    from softfloat import markup
    from softfloat.formats import special_values

    console = _console()

    codes: list[list[str | Text]] = []
    values: list[list[str | Text]] = []
    for fmt in formats:
        widths = zip(
            markup.FIELD_STYLES, map(str, (int(fmt.signed), fmt.exponent_bits, fmt.mantissa_bits)), strict=True
        )
        smallest = f"2^{fmt.emin - fmt.mantissa_bits}" if fmt.smallest_subnormal < fmt.tiny else "none"
        exponents = f"{fmt.emin} to {fmt.emax}"
        codes.append([str(fmt.bits), markup.styled(widths), str(fmt.p), str(fmt.bias), exponents])
        values.append([general(fmt.max, 6), f"2^{fmt.emin}", smallest, f"2^{-fmt.mantissa_bits}"])
    special: list[list[str | Text]] = [[special_values(fmt)] for fmt in formats]
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
