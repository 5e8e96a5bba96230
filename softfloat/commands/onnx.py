"""`softfloat onnx`: saved models in emulated arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softfloat.commands import onnx_convert

__all__ = ["add_parsers"]

SUBCOMMANDS: tuple[Callable[[Any], None], ...] = (onnx_convert.add_parser,)
"""What adds each subcommand's parser, in the order of the help text."""


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    onnx = commands.add_parser(
        "onnx",
        help="run saved models in emulated arithmetic, and convert them",
        description="Works on models saved as ONNX (extra `onnx`).",
    )
    subcommands = onnx.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", required=True)
    for add in SUBCOMMANDS:
        add(subcommands)
