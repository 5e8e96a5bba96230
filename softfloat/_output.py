"""What commands hand out: tables on a console, JSON, files that appear when they are complete, errors of one line."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["CommandError", "console", "plain", "print_json", "replacing"]


class CommandError(Exception):
    """Something the user can put right, in one line."""


def console() -> Console:
    """Standard output for tables; raises BrokenPipeError if nobody reads it."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the multiplication sign still gets its table
    return Quiet(highlight=False, emoji=False, markup=False)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    print(json.dumps(plain(document), indent=2, allow_nan=False))


def plain(x: Any) -> Any:
    """Data as JSON can hold it: fractions, infinities and NaN as strings, flags as lists of names."""
    if isinstance(x, Flag):
        return [member.name for member in type(x) if member in x]
    if isinstance(x, Enum):
        return str(x.value)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {field.name: plain(getattr(x, field.name)) for field in dataclasses.fields(x)}
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(value) for value in x]
    if isinstance(x, Fraction):
        return str(x)
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    return x


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write bytes to. What is there under its name is replaced at the end of the block, and stays if that fails.

    Devices, pipes and sockets are written to as they are.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        with path.open("wb") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:32]}-", suffix=path.suffix, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # mkstemp makes files for their owner alone
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
