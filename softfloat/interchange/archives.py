"""Archives of NumPy, `.npz`: codes as unsigned integers, and a member that says of what."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from softfloat.arrays import SoftArray
from softfloat.interchange.members import Content, Header, described_arrays, part_names, restored, wanted_names

__all__ = ["ARCHIVE", "HEADER", "read_archive", "read_archive_header", "write_archive"]

HEADER = "__softfloat__"
"""The member with the header: JSON in an array of bytes."""

ARCHIVE, SUFFIX = ".npz", ".npy"
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
)
"""What comes of reading a file that is not one, or only the beginning of one."""


def write_archive(file: IO[bytes], content: Content, compressed: bool) -> None:
    """Members and header into a file that is open for writing."""
    if HEADER in content.members:
        raise ValueError(f"arrays has {HEADER!r}, the name of the header; accepted: any other name")
    text = np.frombuffer(json.dumps(content.header).encode(), np.uint8)
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, x in {HEADER: text, **content.members}.items():
            codes = x.codes if isinstance(x, SoftArray) else x
            with archive.open(name + SUFFIX, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, codes, allow_pickle=False)


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    with archive.open(name + SUFFIX) as member:
        found: np.ndarray[Any, Any] = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError(f"{name!r} is longer than its shape says")
    return found


def _names(archive: zipfile.ZipFile) -> list[str]:
    found = [name.removesuffix(SUFFIX) for name in archive.namelist()]
    if len(set(found)) != len(found):
        raise ValueError("two members have one name")
    return found


@contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except DAMAGED as error:
        raise ValueError(f"{path} is no {ARCHIVE} archive, or a damaged one: {error}") from None


def _read(path: str) -> tuple[list[str], Header]:
    """Names of the members, and the header."""
    with _opened(path) as archive:
        members = _names(archive)
        header = json.loads(_array(archive, HEADER).tobytes()) if HEADER in members else None
    if header is None:
        raise ValueError(
            f"{path} has no member {HEADER!r}; accepted: files of softfloat.save; numpy.load reads NumPy's own archives"
        )
    return [name for name in members if name != HEADER], header


def read_archive_header(path: str) -> Header:
    """The header of an archive; ValueError if there is none."""
    return _read(path)[1]


def read_archive(path: str, names: list[str] | None) -> dict[str, Any]:
    """Arrays by name, all of them unless some are named."""
    members, header = _read(path)
    described = described_arrays(header, path)
    wanted = wanted_names(names, members, described, path)
    with _opened(path) as archive:
        raw = {part: _array(archive, part) for name in wanted for part in part_names(name, described)}
    return {
        name: restored(name, described, [raw[part] for part in part_names(name, described)], path) for name in wanted
    }
