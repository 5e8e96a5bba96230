"""Files that appear when they are complete, and data as plain as JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

__all__ = ["kept", "plain", "replacing"]


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
    path = Path(path)
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # /dev/stdout names a pipe that no resolved path does
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
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


def kept(name: str, data: bytes) -> Path:
    """Where a file of this name and content is, among what the platform keeps for a user's programs to make again: written if need be."""
    variable, default = {
        "win32": ("LOCALAPPDATA", "AppData/Local"),
        "darwin": ("", "Library/Caches"),
    }.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    given = Path(os.environ.get(variable, ""))
    path = (given if given.is_absolute() else Path.home() / default) / "numba-softfloat" / name
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(data)
    return path
