"""Exceptions as IEEE 754 means them: flags, the sticky status that collects them, and the trap that stops on them.

>>> status = Status()
>>> status.raise_flags(Flags.OVERFLOW | Flags.INEXACT)
>>> print(status)
OFLO 0x1 DIV0 0x0 INV 0x0
>>> status
Status(OVERFLOW|INEXACT)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from enum import IntFlag
from numbers import Integral
from typing import Any

import numpy as np

from softfloat.kernels import spec

__all__ = ["Flags", "FloatingPointTrap", "Status", "as_flags", "first_trap"]


class Flags(IntFlag):
    """Exception flags, with Berkeley SoftFloat's bit values. The IPU's names INV, DIV0 and OFLO are aliases."""

    INEXACT = spec.INEXACT
    UNDERFLOW = spec.UNDERFLOW
    OVERFLOW = spec.OVERFLOW
    DIVBYZERO = spec.DIVBYZERO
    INVALID = spec.INVALID
    INV = INVALID
    DIV0 = DIVBYZERO
    OFLO = OVERFLOW

    @classmethod
    def _missing_(cls, value: object) -> Any:
        """The flags of an integer, of NumPy's types too."""
        return super()._missing_(int(value) if isinstance(value, Integral) else value)

    def __str__(self) -> str:
        return self.named()

    def named(self, nan: str = "") -> str:
        """The names of the flags, as processors that follow a NaN policy call them: INV, DIV0 and OFLO on the IPU."""
        names = IPU_NAMES if nan == "ipu" else {}
        return "|".join(names.get(flag, flag.name or "") for flag in reversed(Flags) if flag in self) or "none"


IPU_NAMES = {Flags[name]: name for name in ("INV", "DIV0", "OFLO")}
NO_FLAGS, ALL_FLAGS = Flags(0), Flags(31)


def as_flags(value: Flags | int | str | Iterable[str], argument: str = "flags") -> Flags:
    """Flags from flags, an integer, a name or several names.

    Raises
    ------
    ValueError, TypeError
        Naming `argument` and the accepted names.
    """
    if type(value) is Flags and 0 <= value <= ALL_FLAGS:
        return value
    accepted = f"accepted: {', '.join(Flags.__members__)}"
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if not 0 <= number <= ALL_FLAGS:
            raise ValueError(f"{argument}={number} is no combination of flags; {accepted}")
        return Flags(number)
    if isinstance(value, str):
        value = value.replace("|", " ").replace(",", " ").split()
    if not isinstance(value, Iterable):
        raise TypeError(f"{argument} must be Flags, a name or several names, got {value!r}; {accepted}")
    flags = Flags(0)
    for name in value:
        if not isinstance(name, str) or name.upper() not in Flags.__members__:
            raise ValueError(f"{argument} has no flag {name!r}; {accepted}")
        flags |= Flags[name.upper()]
    return flags


class Status:
    """The sticky flags of an environment. Prints as the IPU prints `$FP_STS`; safe to raise into from several threads."""

    def __init__(self, flags: Flags | int = NO_FLAGS) -> None:
        self._flags = as_flags(flags)
        self._lock = threading.Lock()

    @property
    def flags(self) -> Flags:
        """Everything raised since the last `clear`."""
        return self._flags

    def raise_flags(self, flags: Flags | int) -> None:
        """Add flags."""
        flags = as_flags(flags)
        with self._lock:
            self._flags |= flags

    def add(self, raised: int) -> None:
        """Add the flags of an operation; most were there before."""
        if raised & ~int(self._flags):
            self.raise_flags(raised)

    def clear(self, flags: Flags | int | str | Iterable[str] = ALL_FLAGS) -> None:
        """Lower the named flags; all, if none are named."""
        with self._lock:
            self._flags &= ~as_flags(flags)

    def __contains__(self, flags: Flags | str) -> bool:
        wanted = as_flags(flags)
        return wanted in self._flags

    def __bool__(self) -> bool:
        return bool(self._flags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Status) and self._flags == other._flags

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Status], tuple[int]]:
        return Status, (int(self._flags),)

    def __str__(self) -> str:
        return " ".join(f"{name} 0x{int(Flags[name] in self._flags)}" for name in ("OFLO", "DIV0", "INV"))

    def __repr__(self) -> str:
        return f"Status({self._flags})"


class FloatingPointTrap(FloatingPointError):
    """A flag whose trap is on was raised. The operation is complete; its flags are in the status.

    Attributes
    ----------
    flags : Flags
        The trapped flags the first offender raised.
    operation : str
        Name of the operation.
    index : tuple of int
        Where in the result the first offender is, in the order of the operation (of elementwise ones, C order). Where
        `operation` is one of a function's several steps, as in `numpy.gradient`, in the result of that step.
    operands : tuple of int
        Its operands' codes (or numbers, where the operation takes numbers).
    nan : str
        The environment's NaN policy: the message has the flags' names of the processors that follow it.
    """

    def __init__(
        self, flags: Flags, operation: str, index: tuple[int, ...], operands: tuple[object, ...], nan: str = ""
    ) -> None:
        self.flags, self.operation, self.index, self.operands, self.nan = flags, operation, index, operands, nan
        shown = ", ".join(hex(x) if isinstance(x, int) and x >= 0 else str(x) for x in operands)
        super().__init__(f"{flags.named(nan)} raised by {operation}({shown}) at index {index}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return FloatingPointTrap, (self.flags, self.operation, self.index, self.operands, self.nan)

    def moved(self, index: tuple[int, ...], operation: str | None = None) -> FloatingPointTrap:
        """The same trap at another place, which the caller sees, and by the name that he knows."""
        return FloatingPointTrap(self.flags, operation or self.operation, index, self.operands, self.nan)


def first_trap(
    operation: str, operands: Iterable[Any], flags: np.ndarray[Any, Any], traps: Flags, nan: str
) -> FloatingPointTrap:
    """The trap of an operation's first result, in C order, that raised a trapped flag; `operands` as it took them."""
    first = int(np.argmax((flags & int(traps)).ravel() != 0))
    index = tuple(int(i) for i in np.unravel_index(first, flags.shape))
    values = []
    for operand in operands:
        if operand is None or isinstance(operand, (str, type, np.dtype, bool)) or hasattr(operand, "mantissa_bits"):
            continue
        array = operand if isinstance(operand, (np.ndarray, np.generic)) else np.array(operand, dtype=object)
        value = np.broadcast_to(array, flags.shape)[index]
        values.append(value.item() if isinstance(value, np.generic) else value)
    return FloatingPointTrap(Flags(int(flags[index])) & traps, operation, index, tuple(values), nan)
