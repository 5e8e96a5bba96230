"""What each operation on SoftArrays loses, by the line of the program that asks for it."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from contextvars import Token
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.bits.arithmetic import reciprocal
from softfloat.bits.operations import ELEMENTWISE
from softfloat.environments import WATCHES, Environment, Watch, watching
from softfloat.formats import Format, check_format
from softfloat.markup import aligned
from softfloat.status import Flags

__all__ = ["Line", "carrier_of", "line_outside", "trace"]

Values = np.ndarray[Any, Any]

EXACT: dict[Any, Callable[..., Any]] = {
    **{
        getattr(bits, row.name): getattr(np, row.numpy[0])
        for row in ELEMENTWISE.values()
        if row.rounds and row.flags and row.numpy
    },
    bits.fma: lambda a, b, c: a * b + c,
    bits.exp10: lambda x: np.float_power(10.0, x),
    reciprocal: lambda x: 1 / x,
    bits.convert: lambda x: x,
    bits.encode: np.asarray,
    bits.matmul: np.matmul,
    bits.vecdot: lambda a, b: (a * b).sum(-1),
    bits.sum: lambda x, axis=None: x.sum(axis),
    bits.cumsum: lambda x, axis=None: x.cumsum(axis),
}
"""Functions of `softfloat.bits` that round -> NumPy's, whose errors are some units in their type's last place, or that times a sum's length."""

SUMS = bits.matmul, bits.vecdot, bits.sum, bits.cumsum
"""Those that take an accumulator."""
INSIDE = str(Path(__file__).parent.parent) + os.sep, str(Path(np.__file__).parent) + os.sep
"""Where code lies that works for the caller's."""
SPARE = 8
"""Bits, at least, that exact results have more than a format."""
LOST = int(Flags.OVERFLOW | Flags.UNDERFLOW)


@dataclass
class Line:
    """What one operation lost on one line of a program.

    Attributes
    ----------
    file : str
    line : int
    operation : str
        In `softfloat.bits`.
    format : str
        Of results.
    count : int
        Results.
    worst : float
        The greatest relative error of a result, in units of 2^-p; without those that overflowed or underflowed, which are counted. Infinite
        where the exact result is 0 and this one is not.
    overflows, underflows, invalid : int
        Results that raised the flag.
    absorbed : int
        Additions that changed nothing, of numbers other than 0; of sums, all those in it.
    """

    file: str
    line: int
    operation: str
    format: str
    count: int = 0
    worst: float = 0.0
    overflows: int = 0
    underflows: int = 0
    invalid: int = 0
    absorbed: int = 0
    _total: float = field(default=0.0, repr=False)
    _measured: int = field(default=0, repr=False)

    @property
    def mean(self) -> float:
        """The mean relative error, in units of 2^-p, of results whose error `worst` looks at and that is finite."""
        return self._total / self._measured if self._measured else 0.0

    @property
    def source(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.line).strip()

    def _add(self, result: Values, exact: Values, flags: Values, p: int) -> None:
        """Results with their exact values and flags."""
        self.count += result.size
        for name, flag in (("overflows", Flags.OVERFLOW), ("underflows", Flags.UNDERFLOW), ("invalid", Flags.INVALID)):
            setattr(self, name, getattr(self, name) + int(np.count_nonzero(flags & int(flag))))
        kept = np.isfinite(exact) & np.isfinite(result) & (flags & LOST == 0)
        with np.errstate(all="ignore"):
            errors = np.abs(result - exact)[kept] / np.abs(exact[kept]) * 2.0**p
        errors = errors[~np.isnan(errors)]  # 0 of 0
        finite = errors[np.isfinite(errors)]
        self.worst = max(self.worst, float(errors.max(initial=0)))
        self._total += float(finite.sum())
        self._measured += finite.size + int(np.count_nonzero(kept & (exact == 0) & (result == 0)))


def line_outside() -> tuple[str, int]:
    """(file, line) of the code that called softfloat, by way of NumPy or not."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def carrier_of(fmt: Format) -> type | None:
    """The one of NumPy's types in which exact results are found, if one has enough bits."""
    return next((x for x in (np.float64, np.longdouble) if np.finfo(x).nmant + 1 >= fmt.p + SPARE), None)


def _absorbed(operation: Any, values: list[Values], result: Values) -> int:
    """Sums that are one of their terms though the other is not 0."""
    if operation is bits.fma:
        a, b, c = values
        terms = a * b, c
    elif operation in (bits.add, bits.sub):
        terms = values[0], values[1] if operation is bits.add else -values[1]
    else:
        return 0
    one, other = terms
    lost = ((result == one) & (other != 0)) | ((result == other) & (one != 0))
    return int(np.count_nonzero(lost & np.isfinite(result) & np.isfinite(one) & np.isfinite(other)))


class trace:
    """A block that looks at each operation that rounds: by line of the program, how many there are and what they lose.

    It sees operators, NumPy's functions and `softfloat.linalg` on SoftArrays, in this thread's blocks, and changes no bit. It sees no functions of
    `softfloat.bits`, which know no environment, nor Python's numbers as they become operands. Exact results are found in float64, of the
    operands as they are: an error is that of the one operation, not of what came before. Those of formats of more than 45 bits of precision are
    found in NumPy's longdouble; where it has no 8 bits more than the format, ValueError says so. Blocks may stand in each other.

    Attributes
    ----------
    lines : list of Line
        In the order in which they were reached.

    >>> import softfloat
    >>> with trace() as found:
    ...     x = softfloat.array([2048.0, 3.0], "float16")
    ...     y = (x + 1) / 3
    >>> [(one.operation, one.count, one.absorbed, one.worst < 1) for one in found.lines]
    [('encode', 2, 0, True), ('add', 2, 1, True), ('div', 2, 0, True)]
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[Any, ...], Line] = {}
        self._token: Token[tuple[Watch, ...]] | None = None

    @property
    def lines(self) -> list[Line]:
        """What was seen."""
        return list(self._lines.values())

    def __enter__(self) -> trace:
        if self._token is not None:
            raise RuntimeError("this trace is in a block already; another trace() serves")
        self._token = watching.set((*watching.get(), self._told))
        WATCHES.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        assert self._token is not None
        watching.reset(self._token)
        self._token = None
        WATCHES.remove(self)

    def table(self) -> str:
        """A line of text for each line and operation, errors in units of 2^-p."""
        rows = [["operation", "count", "mean", "worst", "overflow", "underflow", "invalid", "absorbed", "line"]]
        for one in self.lines:
            counts = one.overflows, one.underflows, one.invalid, one.absorbed
            cells = [one.operation, str(one.count), f"{one.mean:.2g}", f"{one.worst:.3g}", *map(str, counts)]
            rows.append([*cells, f"{one.line}: {one.source}"])
        return aligned(rows, [0, len(rows[0]) - 1])

    __str__ = table

    def _told(
        self, operation: Any, operands: tuple[Any, ...], options: dict[str, Any], env: Environment
    ) -> Callable[[Any, Any], None]:
        exactly = EXACT.get(operation)
        count = next((i for i, x in enumerate(operands) if isinstance(x, (Format, str))), None)
        if exactly is None or count is None or not options.keys().isdisjoint(("b_format", "c_format")):
            return lambda result, flags: None
        fmt = check_format(operands[count], wide=True)
        natural = operands[count + 1].output(fmt, fmt) if operation in SUMS else operands[-1]
        made = check_format(options.get("out_format") or natural, wide=True)
        carrier = carrier_of(made)
        if carrier is None:
            raise ValueError(
                f"trace finds exact results in NumPy's longdouble, which has too few bits on this machine for {made}; accepted: formats of at "
                "most 45 bits of precision, or a CPU of x86, where it has 64"
            )
        values: list[Values] = (
            [] if operation is bits.encode else [np.asarray(bits.decode(x, fmt), carrier) for x in operands[:count]]
        )
        place = line_outside()

        def tell(result: Any, flags: Any) -> None:
            key = (*place, operation.__name__, str(made))
            line = self._lines.setdefault(key, Line(*key))
            extra = {"axis": options["axis"]} if "axis" in options else {}
            with np.errstate(all="ignore"):
                exact: Values = np.asarray(exactly(*(values or operands[:1]), **extra), carrier)
                if operation in SUMS and len(operands) > count + 2:  # where the sum starts
                    exact = exact + bits.decode(operands[count + 2], operands[count + 1].partials)
                found = np.asarray(bits.decode(result, made))
                line.absorbed += _absorbed(operation, values, found)
            line._add(found, exact, np.asarray(flags), made.p)
            if operation in SUMS and operation is not bits.cumsum:
                again = {**options, "out": None, "environment": env, "flags": "any", "count": True}
                line.absorbed += int(operation(*operands, **again)[2].swamped.sum())

        return tell
