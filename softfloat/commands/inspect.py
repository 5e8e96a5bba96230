"""`softfloat inspect`: a code or a number bit by bit."""

from __future__ import annotations

import argparse
from typing import Any

import softfloat
from softfloat.blocks import BLOCK_ROSTER, SCALE_RULES, BlockFormat
from softfloat.commands.arguments import SEED_HELP, any_format_name, rounding_mode, scale_rule, seed
from softfloat.commands.cases import add_rounding_options, rounding_settings
from softfloat.commands.output import CommandError
from softfloat.commands.output import console as _console
from softfloat.commands.output import print_json as _print_json
from softfloat.environments import Rounding
from softfloat.formats import ROSTER


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    inspect = commands.add_parser(
        "inspect",
        help="show the fields, value and neighbours of a code or number",
        description="Shows sign, exponent, fraction, value, class, neighbours and spacing of codes (0x3c00, 0b0011, or "
        "their fields, '0 01111 0000000000') or of numbers (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3) encoded in a format. In a block format the "
        "numbers are one block: its scale, and each element.",
        epilog=f"formats: {', '.join(ROSTER)}; block formats, for numbers: {', '.join(BLOCK_ROSTER)}",
    )
    inspect.add_argument("values", nargs="+", metavar="VALUE", help="a code or a number")
    inspect.add_argument(
        "--format", "-f", type=any_format_name, default="float16", metavar="NAME", help="default: float16"
    )
    rounding = f"of numbers: {', '.join(mode.name.lower() for mode in Rounding)} (default: nearest_even)"
    inspect.add_argument("--rounding", "-r", type=rounding_mode, default="nearest_even", metavar="MODE", help=rounding)
    add_rounding_options(inspect)
    rules = f"how a block's scale is found: {', '.join(SCALE_RULES)} (default: the block format's own)"
    inspect.add_argument("--rule", type=scale_rule, metavar="RULE", help=rules)
    inspect.add_argument("--seed", type=seed, default=0, metavar="N", help=SEED_HELP)
    inspect.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    inspect.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from softfloat.display import code_from_bits, inspect_code, inspect_number, parse_value, render_inspection

    try:
        settings = rounding_settings(options)
        if isinstance(options.format, BlockFormat):
            return _run_block(options, settings)
        if options.rule is not None:
            raise CommandError("--rule is for block formats")
        found, codes = [], 0
        for text in options.values:
            text = text.strip()
            code = code_from_bits(text, options.format)
            value = parse_value(text) if code is None else code
            if isinstance(value, int):
                codes += 1
                found.append(inspect_code(value, options.format))
            else:
                found.append(inspect_number(text, options.format, options.rounding, options.seed, **settings))
    except ValueError as error:
        raise CommandError(str(error)) from None
    if settings and codes == len(found):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in settings)
        raise CommandError(f"{names} is for numbers, which are rounded; {options.values[0].strip()!r} is a code")
    if options.json:
        _print_json({"version": softfloat.__version__, "values": [item.as_dict() for item in found]})
        return 0
    console = _console()
    for index, item in enumerate(found):
        if index:
            console.print()
        console.print(render_inspection(item))
    return 0


def _run_block(options: argparse.Namespace, settings: dict[str, Any]) -> int:
    """The numbers as one block."""
    from softfloat.display import inspect_block

    found = inspect_block(options.values, options.format, options.rule, options.rounding, options.seed, **settings)
    if options.json:
        _print_json({"version": softfloat.__version__, "block": found.as_dict()})
    else:
        _console().print(found)
    return 0
