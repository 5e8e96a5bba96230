"""`softfloat explore`: the explorer of formats in a browser."""

from __future__ import annotations

import argparse
import webbrowser
from typing import Any

from softfloat.commands.output import CommandError


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    explore = commands.add_parser(
        "explore",
        help="open the explorer of formats in a browser",
        description="Opens a page of this package in the browser: bits to click, numbers to round in every mode, two operands, "
        "dot products step by step. The page needs no network.",
    )
    explore.add_argument("--no-browser", action="store_true", help="print where the page is, and open nothing")
    explore.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from softfloat.display.pages import PAGE

    if not PAGE.is_file():
        raise CommandError(f"the page is not installed: {PAGE}")
    if not options.no_browser and not webbrowser.open(PAGE.as_uri()):
        raise CommandError(f"no browser was found; open {PAGE}")
    print(PAGE)
    return 0
