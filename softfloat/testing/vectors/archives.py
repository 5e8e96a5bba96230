"""Rows of test vectors in NumPy archives, an array for each column; nothing is unpickled, and memory does not grow with the file."""

from __future__ import annotations

import contextlib
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, TypeAlias

import numpy as np

from softfloat.testing.vectors.columns import Column
from softfloat.testing.vectors.levels import CHUNK
from softfloat.testing.vectors.operations import Case
from softfloat.testing.vectors.text import Chunk, Codes, VectorError

__all__ = ["archive_chunks", "reason", "write_archive"]

Progress: TypeAlias = Callable[[int], None]

BLOCK = 1 << 19  # bytes at a time
DAMAGE = (ValueError, EOFError, OSError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
"""What reading the data of a damaged archive raises."""
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def archive_chunks(stream: IO[bytes], case: Case, flags: bool, progress: Progress | None) -> Iterator[Chunk]:
    """The rows of an archive, some at a time."""
    if not stream.seekable():
        raise VectorError("an archive cannot be read from a stream; accepted: a file")
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(stream))
            columns = _archive_columns(archive, case, flags)
            members = {column.name: stack.enter_context(archive.open(f"{column.name}.npy")) for column in columns}
            headers = {column.name: _header(members[column.name], column) for column in columns}
        except VectorError:
            raise
        except Exception as error:  # directories and headers are read by many parts, each with errors of its own
            raise VectorError(f"the archive is damaged: {reason(error)}") from None
        counts = {name: rows for name, (rows, _) in headers.items()}
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{name} {rows}" for name, rows in counts.items())
            raise VectorError(f"columns must have as many rows as each other, got {shown}")
        total = next(iter(counts.values()))
        step = max(1, CHUNK // max(column.length or 1 for column in columns))
        for first in range(0, total, step):
            rows = min(step, total - first)
            try:
                found = {c.name: _rows(members[c.name], c, headers[c.name][1], rows, first) for c in columns}
            except VectorError:
                raise
            except DAMAGE as error:
                raise VectorError(f"the archive is damaged: {reason(error)}", first + 1) from None
            lines = np.arange(first + 1, first + rows + 1)
            operands = [found[column.name] for column in case.stored]
            yield Chunk(lines, operands, found["result"], found.get("flags"))
            if progress is not None:
                progress(first + rows)
        for name, member in members.items():
            try:
                more = member.read(1)
            except DAMAGE as error:
                raise VectorError(f"the archive is damaged: {reason(error)}") from None
            if more:
                raise VectorError(f"column {name} has more data than its header says")


def reason(error: BaseException) -> str:
    """What an error says, in one line of ASCII."""
    return ascii(str(error).partition("\n")[0][:100])[1:-1] or type(error).__name__


def _archive_columns(archive: zipfile.ZipFile, case: Case, flags: bool) -> list[Column]:
    names = [name.removesuffix(".npy") for name in archive.namelist()]
    columns = [column for column in case.columns if flags or column.name != "flags" or "flags" in names]
    wanted = [column.name for column in columns]
    if sorted(names) != sorted(wanted):
        shown = ascii(" ".join(names)[:100])
        raise VectorError(f"the archive has columns {shown}; accepted: {' '.join(wanted)}")
    if any(info.compress_type not in COMPRESSIONS for info in archive.infolist()):
        raise VectorError("the archive is compressed in a way NumPy does not use; accepted: deflated or stored")
    return columns


def _header(member: IO[bytes], column: Column) -> tuple[int, np.dtype[Any]]:
    """Rows and dtype of an array in an archive."""
    version = np.lib.format.read_magic(member)
    readers: dict[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise VectorError(f"column {column.name} is in version {version} of NumPy's format; accepted: 1.0, 2.0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        shape, fortran, dtype = readers[version](member)
    if dtype.hasobject:
        raise VectorError(f"column {column.name} holds Python objects; accepted: integers")
    width = 8 * dtype.itemsize
    same = dtype.kind in "ifV" and dtype.fields is None and dtype.subdtype is None and width == column.number.bits
    if not (dtype.kind in "ub" or same) or dtype.itemsize not in (1, 2, 4, 8):
        raise VectorError(f"column {column.name} is of dtype {str(dtype)!a}; accepted: {column.dtype}")
    wanted = column.shape(0)[1:]
    if len(shape) != len(wanted) + 1 or tuple(shape[1:]) != wanted or (fortran and len(shape) > 1):
        accepted = ", ".join(["rows", *map(str, wanted)])
        raise VectorError(
            f"column {column.name} is of shape {ascii(str(shape))[:60]}; accepted: ({accepted}), in C order"
        )
    return int(shape[0]), dtype


def _rows(member: IO[bytes], column: Column, dtype: np.dtype[Any], rows: int, first: int) -> Codes:
    """The next rows of an array in an archive."""
    shape = column.shape(rows)
    size = int(np.prod(shape)) * dtype.itemsize
    data = b""
    while len(data) < size:
        more = member.read(size - len(data))
        if not more:
            raise VectorError(f"column {column.name} ends early", first + 1)
        data += more
    order = ">" if dtype.byteorder == ">" else "<"
    codes = np.frombuffer(data, f"{order}u{dtype.itemsize}").reshape(shape)
    wrong = codes > np.array((1 << column.number.bits) - 1, np.uint64)
    if wrong.any():
        row = int(np.argmax(wrong.reshape(rows, -1).any(axis=1)))
        raise VectorError(f"column {column.name} has a number of more than {column.number.bits} bits", first + row + 1)
    return codes.astype(column.dtype)


def write_archive(
    stream: IO[bytes],
    case: Case,
    chunks: Iterable[list[Codes]],
    total: int,
    progress: Progress | None,
    stack: contextlib.ExitStack,
    comment: bytes,
) -> None:
    """Columns go to files of their own first: an archive has them one after the other."""
    spools = [stack.enter_context(tempfile.TemporaryFile()) for _ in case.columns]  # noqa: SIM115 -- it is one
    done = 0
    for arrays in chunks:
        for spool, array in zip(spools, arrays, strict=True):
            spool.write(np.ascontiguousarray(array).data)
        done += len(arrays[-1])
        if progress is not None:
            progress(done)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        for column, spool in zip(case.columns, spools, strict=True):
            member = zipfile.ZipInfo(f"{column.name}.npy")  # of 1980: the same vectors are the same file
            member.compress_type = zipfile.ZIP_DEFLATED
            header = {
                "descr": np.lib.format.dtype_to_descr(column.dtype),
                "fortran_order": False,
                "shape": column.shape(total),
            }
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, header)
                spool.seek(0)
                while data := spool.read(BLOCK):
                    file.write(data)
