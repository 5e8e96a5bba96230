"""`softfloat explore`: the explorer of formats in a browser."""

from __future__ import annotations

import argparse
import webbrowser
from typing import Any

from softfloat.commands.output import CommandError, one_line


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    explore = commands.add_parser(
        "explore",
        help="open the explorer of formats in a browser",
        description="Makes a page and opens it in the browser: bits to click, numbers to round in every mode, two operands, "
        "dot products step by step. The page needs no network.",
    )
    explore.add_argument("--no-browser", action="store_true", help="print where the page is, and open nothing")
    explore.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from softfloat.display.pages import page

    try:
        path = page()
    except (OSError, RuntimeError) as error:  # no folder that can be written to, or a user without a home
        raise CommandError(f"cannot write the page: {one_line(str(error))}") from None
    if not options.no_browser and not webbrowser.open(path.as_uri()):
        raise CommandError(f"no browser was found; open {path}")
    print(path)
    return 0
