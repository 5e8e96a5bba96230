"""Files of arrays by name: which kind, by the end of the path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from softfloat.checks import check_kind, check_switch
from softfloat.descriptions import environment_from
from softfloat.environments import Environment
from softfloat.files import replacing
from softfloat.interchange.archives import ARCHIVE, read_archive, read_archive_header, write_archive
from softfloat.interchange.members import content_of, described_arrays
from softfloat.interchange.tensor_files import TENSORS, read_tensor_file, read_tensor_file_header, write_tensor_file

__all__ = ["load", "save", "stored_environment"]


def _suffix(path: str | os.PathLike[str]) -> str:
    found = Path(path).suffix.lower()
    if found not in (ARCHIVE, TENSORS):
        raise ValueError(f"path must end in {ARCHIVE} or {TENSORS}, got {os.fspath(path)!r}")
    return found


def save(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    *,
    environment: Environment | None = None,
    compressed: bool = False,
) -> None:
    """Write arrays with their formats to a file, which appears when it is complete.

    Parameters
    ----------
    path : str or path-like
        Ends in ".npz" (an archive that `numpy.load` reads too: codes are unsigned integers there), or in ".safetensors" (half,
        bfloat16, float32, fp8 and fp4 under safetensors' own types, two of fp4 to a byte where the last axis has an even length; other
        formats as unsigned integers).
    arrays : mapping of str to SoftArray, BlockCodes or ndarray
        NumPy arrays are of NumPy's own numbers. The scales of blocks lie beside them, as "NAME.scales".
    environment : Environment, optional
        To be read again by `stored_environment`.
    compressed : bool
        Deflate the members of an archive.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted; nothing is written then.

    See Also
    --------
    load : reads them again, bit for bit.
    """
    kind = _suffix(path)
    check_kind("environment", environment, Environment, optional=True)
    check_switch("compressed", compressed)
    if compressed and kind != ARCHIVE:
        raise ValueError(f"compressed is for {ARCHIVE}; accepted: False")
    content = content_of(arrays, environment)
    with replacing(path) as file:
        if kind == ARCHIVE:
            write_archive(file, content, compressed)
        else:
            write_tensor_file(file, content)


def load(path: str | os.PathLike[str], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Read the arrays that `save` wrote, or a safetensors file of anybody's.

    Parameters
    ----------
    path : str or path-like
        Ends in ".npz" or ".safetensors".
    names : iterable of str, optional
        Of the arrays to read; by default all.

    Returns
    -------
    dict of str to SoftArray, BlockCodes or ndarray
        As they were saved, NaN payloads included, each in memory of its own. From another program's safetensors file, what has one of the
        roster's formats is a SoftArray (float32 too), everything else a NumPy array.

    Raises
    ------
    ValueError
        If the file is damaged or no such file, or holds no array of a name. Nothing is ever unpickled.
    """
    kind = _suffix(path)
    read = read_archive if kind == ARCHIVE else read_tensor_file
    return read(os.fspath(path), None if names is None else _checked(names))


def _checked(names: Any) -> list[str]:
    found = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else None
    if found is None or not all(isinstance(name, str) for name in found):
        raise TypeError(f"names must be a list of strings, got {names!r}")
    return found


def stored_environment(path: str | os.PathLike[str]) -> Environment | None:
    """The environment that `save` wrote with the arrays; None if there was none.

    Raises
    ------
    ValueError
        If the file is damaged or no such file.
    """
    path, kind = os.fspath(path), _suffix(path)
    read = read_archive_header if kind == ARCHIVE else read_tensor_file_header
    header = read(path)
    if not header:
        return None
    described_arrays(header, path)
    return environment_from(header["environment"], path) if "environment" in header else None
