"""`softfloat inspect`: a code or a number bit by bit."""

from __future__ import annotations

import argparse

import softfloat
from softfloat.commands.output import CommandError
from softfloat.commands.output import console as _console
from softfloat.commands.output import print_json as _print_json

# -- softfloat inspect -----------------------------------------------------------------------------------------------


def run_inspect(options: argparse.Namespace) -> int:
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
