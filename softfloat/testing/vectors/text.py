"""Rows of test vectors as lines of hexadecimal digits, both ways; `softfloat.testing.vectors.files` says what they look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softfloat.testing.vectors.columns import Column
from softfloat.testing.vectors.headings import COMMENTS
from softfloat.testing.vectors.operations import Case

__all__ = ["Chunk", "Layout", "TextReader", "VectorError", "format_rows"]

Codes = np.ndarray[Any, Any]

MOST_MALFORMED = 20  # lines after which reading is given up
MOST_DESCRIBED = 1 << 16  # bytes of a first line


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
