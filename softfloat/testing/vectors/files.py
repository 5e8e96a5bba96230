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
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from softfloat.checks import check_choice, check_count, check_seed
from softfloat.files import replacing
from softfloat.testing.vectors.columns import Column
from softfloat.testing.vectors.distributions import DISTRIBUTIONS
from softfloat.testing.vectors.error_reports import Error, case_of_report, errors, functions_of, is_report, numbers_of
from softfloat.testing.vectors.headings import COMMENTS, case_from, heading
from softfloat.testing.vectors.levels import CHUNK, LEVELS, count_rows, level_chunks, random_chunks
from softfloat.testing.vectors.operations import Case
from softfloat.testing.vectors.streams import addends

__all__ = ["UNSAID", "Chunk", "Described", "VectorError", "described", "read_vectors", "write_rows", "write_vectors"]

Codes = np.ndarray[Any, Any]
File: TypeAlias = str | os.PathLike[str] | IO[bytes]
Progress: TypeAlias = Callable[[int], None]

BLOCK = 1 << 19  # bytes of text at a time
MOST_MALFORMED = 20  # lines after which reading is given up
MOST_DESCRIBED = 1 << 16  # bytes of a first line
MOST_LINES = 100  # of the first ones, that are looked at before they are read
REPORTED = 1 << 12  # rows of error reports at a time
NPZ_MAGIC, GZIP_MAGIC = b"PK\x03\x04", b"\x1f\x8b"
EMPTY_NPZ_MAGIC = b"PK\x05\x06"


UNSAID = "the file does not say what it holds; accepted: an operation and a format (--op, --format)"


class VectorError(ValueError):
    """Vectors that cannot be read.

    Attributes
    ----------
    line : int or None
        Number of the line, or row, from 1; None where it is the file as a whole.
    reason : str
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.line, self.reason = line, reason
        super().__init__(reason if line is None else f"line {line}: {reason}")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows.

    Attributes
    ----------
    lines : array of int64
        Numbers of the lines they stand in, or of the rows of an archive, from 1.
    operands : list of arrays
        As `Case.run` takes them.
    results : array of the result's dtype
    flags : array of uint8, or None
        None where the file has none.
    """

    lines: Codes
    operands: list[Codes]
    results: Codes
    flags: Codes | None

    def __len__(self) -> int:
        return len(self.lines)


# -- text ------------------------------------------------------------------------------------------------------------

CAPITALS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
SPACE, LINE_FEED = 32, 10
NO_DIGIT = 255
VALUES = np.full(256, NO_DIGIT, np.uint8)  # of hexadecimal digits, by character
VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = range(16)
VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = range(10, 16)
KNOWN_CHARACTERS = b"0123456789abcdefABCDEFxX \t"


class Layout:
    """Where the digits of columns stand in a line that is regular: as many as codes have, single spaces between them."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.starts, at = [], 0
        for column in columns:
            self.starts.append(at)
            at += (column.length or 1) * (column.digits + 1)
        self.width = at - 1  # without the end of the line

    @cached_property
    def digits(self) -> list[int]:
        """Of every number of a line."""
        return [column.digits for column in self.columns for _ in range(column.length or 1)]

    @cached_property
    def limits(self) -> list[int]:
        """Bits of every number of a line."""
        return [column.number.bits for column in self.columns for _ in range(column.length or 1)]

    @property
    def names(self) -> str:
        """Of the columns, in order."""
        spans = ((column.name, column.length) for column in self.columns)
        return " ".join(name if length is None else f"{name}0...{name}{length - 1}" for name, length in spans)

    def arrays(self, rows: Sequence[Sequence[int]]) -> list[Codes]:
        """Numbers of lines as arrays of the columns."""
        table = np.array(rows, np.uint64).reshape(len(rows), len(self.digits))
        found, at = [], 0
        for column in self.columns:
            part = table[:, at : at + (column.length or 1)].astype(column.dtype)
            found.append(part.reshape(column.shape(len(rows))))
            at += column.length or 1
        return found


def format_rows(layout: Layout, arrays: Sequence[Codes]) -> bytes:
    """Lines of text of some rows."""
    rows = len(arrays[0])
    text = np.full((rows, layout.width + 1), SPACE, np.uint8)
    text[:, -1] = LINE_FEED
    for column, start, codes in zip(layout.columns, layout.starts, arrays, strict=True):
        step = column.digits + 1
        part = text[:, start : start + (column.length or 1) * step]
        wide = np.asarray(codes).reshape(rows, column.length or 1)
        for digit in range(column.digits):
            shift = wide.dtype.type(4 * (column.digits - 1 - digit))
            part[:, digit::step] = CAPITALS[(wide >> shift) & wide.dtype.type(15)]
    return text.tobytes()


def parse_regular(block: bytes, layout: Layout, ending: bytes) -> list[Codes] | None:
    """The columns of a block of lines, if every one of them is regular; else None."""
    width = layout.width + len(ending)
    rows, rest = divmod(len(block), width)
    if rest or not rows:
        return None
    text = np.frombuffer(block, np.uint8).reshape(rows, width)
    for place, character in enumerate(ending, layout.width):
        if (text[:, place] != character).any():
            return None
    found = []
    for column, start in zip(layout.columns, layout.starts, strict=True):
        length, step = column.length or 1, column.digits + 1
        part = text[:, start : start + length * step]
        if start + length * step <= layout.width and (part[:, column.digits :: step] != SPACE).any():
            return None
        if length > 1 and (part[:, column.digits : -1 : step] != SPACE).any():
            return None
        codes = np.zeros((rows, length), column.dtype)
        bad = np.zeros((rows, length), np.uint8)
        for digit in range(column.digits):
            values = VALUES[part[:, digit::step]]
            bad |= values
            codes <<= column.dtype.type(4) if digit else column.dtype.type(0)
            codes |= values
        if bad.max() > 15:
            return None
        spare = 4 * column.digits - column.number.bits
        if spare > 0 and (codes >> column.dtype.type(column.number.bits)).any():
            return None
        found.append(codes.reshape(column.shape(rows)))
    return found


def normalized(block: bytes) -> bytes:
    """Lines with single spaces, without 0x: regular, if their numbers have all their digits. Or b""."""
    block = block.replace(b"\r\n", b"\n")
    if block.translate(None, KNOWN_CHARACTERS + b"\n"):
        return b""
    lines = block.removesuffix(b"\n").split(b"\n")
    text = b"\n" + b"\n".join([b" ".join(line.split()) for line in lines]) + b"\n"
    if b"x" in text or b"X" in text:
        text = text.lower().replace(b" 0x", b" ").replace(b"\n0x", b"\n")
    return text[1:]


def parse_line(line: bytes, layout: Layout) -> list[int]:
    """The numbers of a line.

    Raises
    ------
    VectorError
        Saying what is wrong.
    """
    line = line.rstrip(b" \t\r")
    fields = line.split()
    if line.translate(None, KNOWN_CHARACTERS):
        raise VectorError(f"{_shown(line)} is not all hexadecimal numbers")
    if len(fields) != len(layout.digits):
        raise VectorError(f"{_shown(line)} has {len(fields)} numbers; accepted: {len(layout.digits)} ({layout.names})")
    numbers = []
    for field, digits, limit in zip(fields, layout.digits, layout.limits, strict=True):
        prefixed = field[1:2] in (b"x", b"X")
        try:
            number = int(field, 16) if len(field) <= 40 else -1
        except ValueError:
            raise VectorError(f"{_shown(field)} is no hexadecimal number") from None
        if not prefixed and len(field) != digits:
            raise VectorError(f"{_shown(field)} has {len(field)} digits; accepted: {digits}, or the prefix 0x")
        if number >> limit:
            raise VectorError(f"{_shown(field)} has more than {limit} bits")
        numbers.append(number)
    return numbers


def _shown(text: bytes) -> str:
    """Some text for a message, in ASCII."""
    short = text.strip()[:60].decode("latin-1")
    return ascii(short) + ("..." if len(text.strip()) > 60 else "")


class TextReader:
    """Lines to chunks, whatever pieces they come in.

    Parameters
    ----------
    case : Case
    flags : bool
        Whether rows must have flags. If not, the first row decides for all.
    malformed : list, optional
        Where (line, reason) of malformed lines go; None raises VectorError at the first.
    """

    def __init__(self, case: Case, flags: bool = True, malformed: list[tuple[int, str]] | None = None) -> None:
        whole = Layout(case.columns)
        self.layouts = [whole] if flags else [whole, Layout(case.columns[:-1])]
        self.malformed = malformed
        self.operands = len(case.stored)
        self.line = 1
        self.empty: int | None = None  # the first of some empty lines, which may end the file
        self.rest = b""
        self.longest = sum(digits + 8 for digits in whole.digits) + 256

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """Chunks of the lines that end in this piece."""
        data = self.rest + data
        cut = data.rfind(b"\n") + 1
        self.rest = data[cut:]
        if cut:
            yield from self._block(data[:cut])
        first = self.line == 1 and self.rest.startswith(COMMENTS)
        if len(self.rest) > (MOST_DESCRIBED if first else self.longest):
            raise VectorError(f"{_shown(self.rest)} is longer than any row of {self.layouts[0].names}", self.line)

    def close(self) -> Iterator[Chunk]:
        """Chunks of what is left when the file ends."""
        rest, self.rest = self.rest, b""
        if rest:
            yield from self._block(rest)

    def _block(self, block: bytes) -> Iterator[Chunk]:
        if self.line == 1 and block.startswith(COMMENTS):
            _, _, block = block.partition(b"\n")
            self.line = 2
        if not block:
            return
        chunk = None if self.empty is not None else self._regular(block) or self._regular(normalized(block))
        if chunk is not None:
            yield chunk
        else:
            yield from self._irregular(block)

    def _regular(self, block: bytes) -> Chunk | None:
        """The rows of a block, if all its lines are regular."""
        first = block.find(b"\n")
        ending = b"\r\n" if block[first - 1 : first] == b"\r" else b"\n"
        for layout in self.layouts:
            if first + 1 == layout.width + len(ending):
                arrays = parse_regular(block, layout, ending)
                if arrays is not None:
                    self.layouts = [layout]
                    lines = np.arange(self.line, self.line + len(arrays[-1]))
                    self.line += len(arrays[-1])
                    return self._chunk(lines, arrays, layout)
        return None

    def _irregular(self, block: bytes) -> Iterator[Chunk]:
        rows: list[list[int]] = []
        lines: list[int] = []
        pieces = block.split(b"\n")
        if not pieces[-1]:
            pieces.pop()
        for line in pieces:
            number = self.line
            self.line += 1
            if not line.strip(b" \t\r"):
                self.empty = self.empty or number
                continue
            if self.empty is not None:
                empty, self.empty = self.empty, None
                self._problem(empty, "is empty; accepted only at the end")
            try:
                rows.append(self._numbers(line))
                lines.append(number)
            except VectorError as error:
                self._problem(number, error.reason)
        if rows:
            layout = self.layouts[0]
            yield self._chunk(np.array(lines, np.int64), layout.arrays(rows), layout)

    def _numbers(self, line: bytes) -> list[int]:
        if len(self.layouts) == 2:  # the first row decides whether there are flags
            short = self.layouts[1]
            if len(line.split()) == len(short.digits):
                numbers = parse_line(line, short)
                self.layouts = [short]
                return numbers
            numbers = parse_line(line, self.layouts[0])
            self.layouts = [self.layouts[0]]
            return numbers
        return parse_line(line, self.layouts[0])

    def _problem(self, line: int, reason: str) -> None:
        if self.malformed is None:
            raise VectorError(reason, line)
        self.malformed.append((line, reason))
        if len(self.malformed) >= MOST_MALFORMED:
            raise VectorError(f"the {MOST_MALFORMED}th malformed line; the rest is not read", line)

    def _chunk(self, lines: Codes, arrays: list[Codes], layout: Layout) -> Chunk:
        flags = arrays[-1] if layout.columns[-1].name == "flags" else None
        return Chunk(lines, arrays[: self.operands], arrays[self.operands], flags)


# -- reading ---------------------------------------------------------------------------------------------------------

DAMAGE = (ValueError, EOFError, OSError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
"""What reading the data of a damaged archive raises."""
COMPRESSION_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


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
            yield from _archive_chunks(stream, case, flags, progress)
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


def _archive_chunks(stream: IO[bytes], case: Case, flags: bool, progress: Progress | None) -> Iterator[Chunk]:
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
            raise VectorError(f"the archive is damaged: {_reason(error)}") from None
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
                raise VectorError(f"the archive is damaged: {_reason(error)}", first + 1) from None
            lines = np.arange(first + 1, first + rows + 1)
            operands = [found[column.name] for column in case.stored]
            yield Chunk(lines, operands, found["result"], found.get("flags"))
            if progress is not None:
                progress(first + rows)
        for name, member in members.items():
            try:
                more = member.read(1)
            except DAMAGE as error:
                raise VectorError(f"the archive is damaged: {_reason(error)}") from None
            if more:
                raise VectorError(f"column {name} has more data than its header says")


def _reason(error: BaseException) -> str:
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
            _write_archive(stream, case, chunks, total, progress, stack, first.strip())
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


def _write_archive(
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


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive or compressed: its size then says little of how much there is to read."""
    with Path(path).open("rb") as file:
        head = file.read(4)
    return head[:2] == GZIP_MAGIC or head == NPZ_MAGIC
