"""The command line, a file for each command."""

from softfloat.commands.parser import main

__all__ = ["main"]
