"""Files of test vectors: Berkeley TestFloat's text, and NumPy archives.

Text has a row in each line: operands, result and flags as hexadecimal digits, as many as a code has, with a space
between them. A dot product of k products has a0 ... a(k-1), b0 ... b(k-1), c if it has an addend, result, flags. A first
line that begins with # or // is no row; `softfloat.testing.vectors.headings` makes and reads such that say what the rows are.
There are no other comments. Streams of multiply-accumulate rows ("mac") have a column "clear" in the place of c: 1
where a sum starts anew. Files are written in capitals; small letters, a prefix 0x (then with any number of
digits), tabs and blanks, CRLF, a missing last line feed and empty lines at the end are read too. Names that end in .gz
are compressed; what is compressed is recognised. Error reports of TestFloat's tools are read for the rows of the device.

An archive (.npz) has an array of unsigned integers for each column: "a", "b" ..., "result", "flags", of shape (rows,),
or (rows, k) in dot products. Signed integers, floats and ml_dtypes of the column's width are read for their bits.
Objects are refused; nothing is unpickled. What the first line of text says is the archive's comment (of the ZIP file).

Both are read in pieces: memory does not grow with the file.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from softfloat.checks import check_choice, check_count, check_seed
from softfloat.files import replacing
from softfloat.testing.vectors.archives import DAMAGE, archive_chunks, write_archive
from softfloat.testing.vectors.distributions import DISTRIBUTIONS
from softfloat.testing.vectors.error_reports import Error, case_of_report, errors, functions_of, is_report, numbers_of
from softfloat.testing.vectors.headings import COMMENTS, case_from, heading
from softfloat.testing.vectors.levels import LEVELS, count_rows, level_chunks, random_chunks
from softfloat.testing.vectors.operations import Case
from softfloat.testing.vectors.streams import addends
from softfloat.testing.vectors.text import (
    MOST_DESCRIBED,
    MOST_MALFORMED,
    Chunk,
    Codes,
    Layout,
    TextReader,
    VectorError,
    format_rows,
)

__all__ = ["UNSAID", "Described", "described", "read_vectors", "write_rows", "write_vectors"]

File: TypeAlias = str | os.PathLike[str] | IO[bytes]
Progress: TypeAlias = Callable[[int], None]

BLOCK = 1 << 19  # bytes of text at a time
MOST_LINES = 100  # of the first ones, that are looked at before they are read
REPORTED = 1 << 12  # rows of error reports at a time
NPZ_MAGIC, GZIP_MAGIC = b"PK\x03\x04", b"\x1f\x8b"
EMPTY_NPZ_MAGIC = b"PK\x05\x06"
COMPRESSION_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


UNSAID = "the file does not say what it holds; accepted: an operation and a format (--op, --format)"


# -- reading ---------------------------------------------------------------------------------------------------------


def read_vectors(
    file: File,
    case: Case,
    *,
    flags: bool = True,
    malformed: list[tuple[int, str]] | None = None,
    progress: Progress | None = None,
) -> Iterator[Chunk]:
    """The rows of a file, in pieces.

    Parameters
    ----------
    file : path, "-" or binary stream
        "-" is standard input. Text, compressed text, or an archive, as its first bytes say.
    case : Case
        What the columns are.
    flags : bool
        Whether rows must have flags; if not, they may.
    malformed : list, optional
        (line, reason) of malformed lines are appended, and reading goes on, up to the twentieth.
    progress : callable, optional
        Called with the number of bytes read so far (of rows, for archives).

    Yields
    ------
    Chunk

    Raises
    ------
    VectorError
        For malformed lines, unless collected; for damaged archives.
    OSError
        If the file cannot be read.
    """
    before = 0
    for chunk in _read(file, case, flags, malformed, progress):
        if not case.stream:
            yield chunk
            continue
        *operands, clear = chunk.operands
        yield replace(chunk, operands=[*operands, addends(case, clear, chunk.results, before)])
        before = int(chunk.results[-1])


def _read(
    file: File, case: Case, flags: bool, malformed: list[tuple[int, str]] | None, progress: Progress | None
) -> Iterator[Chunk]:
    """The same, with operands as the file has them."""
    with contextlib.ExitStack() as stack:
        stream = _opened(file, stack)
        head = _head(stream)
        if head in (NPZ_MAGIC, EMPTY_NPZ_MAGIC):
            yield from archive_chunks(stream, case, flags, progress)
            return
        reader = TextReader(case, flags, malformed)
        packed = head[:2] == GZIP_MAGIC
        text: Any = stack.enter_context(gzip.GzipFile(fileobj=stream)) if packed else stream
        text = _Begun(b"", text)
        with _undamaged(reader):
            report = is_report(text.first_line())
        if report:
            with _undamaged(reader):
                yield from _reported(text, case, malformed)
            return
        while True:
            with _undamaged(reader):
                data = text.read(BLOCK)
            if not data:
                break
            yield from reader.feed(data)
            if progress is not None:
                progress(_position(stream))
        yield from reader.close()


@contextlib.contextmanager
def _undamaged(reader: TextReader) -> Iterator[None]:
    try:
        yield
    except COMPRESSION_DAMAGE as error:
        raise VectorError(f"the compressed data are damaged: {error}", reader.line) from None


class _Begun(io.RawIOBase):
    """A stream some of which was read already."""

    def __init__(self, begun: bytes, rest: Any) -> None:
        self.begun, self.rest = begun, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """What was read already; then the rest."""
        if self.begun:
            size = len(self.begun) if size is None or size < 0 else size
            found, self.begun = self.begun[:size], self.begun[size:]
            return found
        return bytes((self.rest.read1 if hasattr(self.rest, "read1") else self.rest.read)(size) or b"")

    def peek(self, size: int) -> bytes:
        """What comes first."""
        while len(self.begun) < size and self._more(size):
            pass
        return self.begun

    def _more(self, size: int) -> bool:
        begun, self.begun = self.begun, b""
        more = self.read(size)
        self.begun = begun + more
        return bool(more)

    def first_line(self) -> bytes:
        """The first line, which stays to be read; of a longer one the beginning."""
        while b"\n" not in self.begun and len(self.begun) < MOST_DESCRIBED and self._more(BLOCK):
            pass
        return self.begun.partition(b"\n")[0]

    def tell(self) -> int:
        return _position(self.rest)


class Described(NamedTuple):
    """What a file says of itself.

    Attributes
    ----------
    file : path, "-" or binary stream
        To be read instead: a stream cannot be read twice.
    case : Case or None
        None where the file does not say it.
    said : str
        What it says: "first line", "report" or "".
    rows : sequence of lists of str
        The numbers of its first lines of text, as they stand there.
    trouble : str
        Why there is no case although something is said, or "".
    """

    file: File
    case: Case | None = None
    said: str = ""
    rows: Sequence[list[str]] = ()
    trouble: str = ""


def described(file: File) -> Described:
    """What a file says of its rows: by its first line, or as an error report of TestFloat's tools.

    Parameters
    ----------
    file : path, "-" or binary stream
        As of `read_vectors`.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with contextlib.ExitStack() as stack:
        stream: Any = _opened(file, stack)
        read: Any = file
        if not stream.seekable():
            stream = read = _Begun(b"", stream)
        place = None if isinstance(stream, _Begun) else stream.tell()
        try:
            head = _head(stream)
            if head in (NPZ_MAGIC, EMPTY_NPZ_MAGIC):
                return _by_first_line(read, b"" if place is None else _comment(stream), [])
            packed = head[:2] == GZIP_MAGIC
            text = _Begun(b"", gzip.GzipFile(fileobj=stream) if packed else stream)
            read = text if place is None else read
            first = text.first_line()
            if not is_report(first):
                return _by_first_line(read, first, _first_rows(text.begun))
            whole = b"".join(iter(lambda: text.read(BLOCK), b""))
            return _by_report(io.BytesIO(whole) if place is None else read, whole)
        except COMPRESSION_DAMAGE:  # who reads it says what is wrong
            return Described(read)
        finally:
            if place is not None:
                stream.seek(place)


def _first_rows(text: bytes) -> list[list[str]]:
    """The numbers of lines that are nothing else; of each line the fields."""
    lines = [line for line in text.split(b"\n")[:MOST_LINES] if not line.startswith(COMMENTS)]
    rows = [line.decode("latin-1").lower().replace("0x", "").split() for line in lines]
    return [row for row in rows if row and all(re.fullmatch("[0-9a-f]{1,16}", x) for x in row)]


def _line(text: Any) -> bytes:
    """The next line of a stream, with its end."""
    found = text.first_line()
    return bytes(text.read(len(found) + 1))


def _by_first_line(file: File, first: bytes, rows: Sequence[list[str]]) -> Described:
    try:
        case = case_from(first.decode("utf-8", "replace").rstrip("\r"))
    except ValueError as error:
        return Described(file, None, "first line", rows, str(error))
    return Described(file, case, "" if case is None else "first line", rows)


def _by_report(file: File, text: bytes) -> Described:
    functions = functions_of(text)
    trouble = f"the report is of errors in {'; '.join(functions)}"
    if len(functions) > 1:
        return Described(file, None, "report", [], f"{trouble}; accepted: one of them, by --op and its options")
    try:
        return Described(file, case_of_report(functions[0]) if functions else None, "report")
    except ValueError as error:
        return Described(file, None, "report", [], f"{trouble}: {error}")


def _comment(stream: Any) -> bytes:
    """Of an archive."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return archive.comment
    except DAMAGE:  # who reads it says what is wrong
        return b""


def _reported(text: Any, case: Case, malformed: list[tuple[int, str]] | None) -> Iterator[Chunk]:
    """The rows of a report that are of this case."""
    layout, others, found = Layout(case.columns), [], 0
    lines: list[int] = []
    rows: list[list[int]] = []

    def chunk() -> Chunk:
        arrays = layout.arrays(rows)
        taken = np.array(lines, np.int64)
        lines.clear()
        rows.clear()
        return Chunk(taken, arrays[: len(case.stored)], arrays[-2], arrays[-1])

    matches: dict[str, bool] = {"": True}
    for row in errors(enumerate(iter(lambda: _line(text), b""), 1)):
        if isinstance(row, Error) and row.function not in matches:
            try:
                matches[row.function] = case_of_report(row.function).title == case.title
            except ValueError:
                matches[row.function] = False
            if not matches[row.function]:
                others.append(row.function)
        try:
            if not isinstance(row, Error):
                raise ValueError(row[1])
            if not matches[row.function]:
                continue
            found += 1
            rows.append(numbers_of(row, case.columns))
            lines.append(row.line)
        except ValueError as error:
            line = row.line if isinstance(row, Error) else row[0]
            if malformed is None:
                raise VectorError(str(error), line) from None
            malformed.append((line, str(error)))
            if len(malformed) >= MOST_MALFORMED:
                raise VectorError(f"the {MOST_MALFORMED}th malformed line; the rest is not read", line) from None
        if len(rows) == REPORTED:
            yield chunk()
    if rows:
        yield chunk()
    if not found and others:
        raise VectorError(f"the report is of errors in {'; '.join(others)}, and none of {case.title}")


def _opened(file: File, stack: contextlib.ExitStack) -> IO[bytes]:
    if isinstance(file, str) and file == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        stream = getattr(sys.stdin, "buffer", None)
        return stream if stream is not None else io.BytesIO(sys.stdin.read().encode("utf-8", "replace"))
    if isinstance(file, (str, os.PathLike)):
        return stack.enter_context(open(file, "rb", buffering=BLOCK))
    if not hasattr(file, "read"):
        raise TypeError(f"file must be a path, '-' or a binary stream, got {type(file).__name__}")
    return file


def _head(stream: Any) -> bytes:
    """The first four bytes, which stay to be read; b"" where a stream cannot say."""
    if hasattr(stream, "peek"):
        return bytes(stream.peek(4)[:4])
    if stream.seekable():
        place = stream.tell()
        head = bytes(stream.read(4))
        stream.seek(place)
        return head
    return b""


def _position(stream: Any) -> int:
    try:
        return int(stream.tell())
    except (OSError, ValueError, AttributeError):
        return 0


# -- writing ---------------------------------------------------------------------------------------------------------


def write_vectors(
    file: File,
    case: Case,
    count: int | None = None,
    *,
    seed: int = 0,
    distribution: str = "mixed",
    level: str | int = "random",
    headed: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write operands, right results and flags.

    Parameters
    ----------
    file : path, "-" or binary stream
        "-" is standard output. A name that ends in .npz makes an archive, .gz compressed text. A file that is there is
        replaced once the new one is complete.
    case : Case
    count : int, optional
        Rows; default 10 000.
    seed : int
        The same seed gives the same rows; a longer file begins with the rows of a shorter one, up to a multiple of the
        rows of a chunk.
    distribution : str
        One of `softfloat.testing.vectors.distributions`.
    level : {"random", "1", "2", "exhaustive"}
        "1" and "2" (or the integers): the corner products of `softfloat.testing.vectors.corners` and `.dots`, always the
        same. "exhaustive": every combination of operands once, in order, the first operand slowest.
    headed : bool
        Whether a first line says what the rows are (`softfloat.testing.vectors.headings`): then `check_vectors` needs no case.
        Berkeley TestFloat's testfloat_ver reads files without it.
    progress : callable, optional
        Called with the number of rows written so far.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    ValueError
        Naming the argument and the accepted values; saying how many rows there would be.
    OSError
        If the file cannot be written.
    """
    level = str(level)
    check_choice("level", level, LEVELS)
    check_choice("distribution", distribution, DISTRIBUTIONS)
    seed = check_seed("seed", seed)
    if level != "random":
        if count is not None:
            raise ValueError(f"count is for level='random': level={level!r} writes every row")
        total = count_rows(case, level)
        chunks = level_chunks(case, level, total)
    else:
        total = check_count("count", 10_000 if count is None else count)
        chunks = random_chunks(case, total, seed, distribution)
    return write_rows(file, case, chunks, total, progress, headed)


def write_rows(
    file: File,
    case: Case,
    chunks: Iterable[list[Codes]],
    total: int,
    progress: Progress | None = None,
    headed: bool = False,
) -> int:
    """Write rows that are there: operands, results and flags of pieces, `total` rows in all. The rest as of `write_vectors`."""
    first = f"{heading(case)}\n".encode() if headed else b""
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    if name == "":
        raise ValueError("file must be a path, '-' or a binary stream, got ''")
    with contextlib.ExitStack() as stack:
        if name == "-":
            stream: Any = getattr(sys.stdout, "buffer", None) or _Decoding(sys.stdout)
        elif name is not None:
            stream = stack.enter_context(replacing(name))
        else:
            stream = file
        if name is not None and name.endswith(".npz"):
            write_archive(stream, case, chunks, total, progress, stack, first.strip())
            return total
        if name is not None and name.endswith(".gz"):
            stream = stack.enter_context(
                gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0)
            )
        layout, done = Layout(case.columns), 0
        stream.write(first)
        for arrays in chunks:
            stream.write(format_rows(layout, arrays))
            done += len(arrays[-1])
            if progress is not None:
                progress(done)
        if name == "-":
            stream.flush()
    return total


class _Decoding:
    """Bytes to a stream of text that has no buffer below."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, data: bytes) -> None:
        self.stream.write(data.decode("ascii"))

    def flush(self) -> None:
        self.stream.flush()


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive or compressed: its size then says little of how much there is to read."""
    with Path(path).open("rb") as file:
        head = file.read(4)
    return head[:2] == GZIP_MAGIC or head == NPZ_MAGIC
