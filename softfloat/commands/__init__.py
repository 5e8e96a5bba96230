"""The command line, a file for each command."""

from softfloat.commands.main import main

__all__ = ["main"]
