"""The command line: a parser, and the commands that stand in files of their own.

Exit status: 0 if all is well, 1 if a verdict fails, 2 for an error in what was asked, 130 after Ctrl-C, 141 if the
reader of the output has gone, 143 and 129 after SIGTERM and SIGHUP. Without a command the help is printed, and that is no error, as of pip: nothing
was asked that failed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import softfloat
from softfloat.commands import (
    accumulators,
    coverage,
    explore,
    export,
    formats,
    hardware,
    inspect,
    onnx,
    reproduce,
    vectors,
)
from softfloat.commands.output import Parser, exit_status, helping

__all__ = ["main"]

COMMANDS = (reproduce, inspect, explore, formats, accumulators, vectors, coverage, hardware, export, onnx)
"""Files of commands, in the order of the help text; each adds its own to the parser."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = Parser(prog="softfloat", description="Bit-exact software floating point for narrow formats.")
    parser.add_argument("--version", action="version", version=f"softfloat {softfloat.__version__}")
    parser.set_defaults(run=helping(parser))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS:
        module.add_parsers(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; default those of the process.

    Returns
    -------
    int
        The exit status.
    """

    def run(arguments: Sequence[str]) -> int:
        options = build_parser().parse_args(arguments)
        return int(options.run(options))

    return exit_status("softfloat", run, argv)
