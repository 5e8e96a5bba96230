"""Numbers of all kinds into codes: what operators and functions take beside a SoftArray."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays.held import Held
from softfloat.engine import Codes
from softfloat.environments import Rounding, Settings, current_environment
from softfloat.formats import ROSTER, Format
from softfloat.status import Flags, FloatingPointTrap, as_flags

__all__ = [
    "check_has",
    "coerced",
    "common_format",
    "constant",
    "constants",
    "format_of",
    "has",
    "has_dtype",
    "held_codes",
    "is_operand",
    "one_of",
    "weak",
]


def format_of(x: Any) -> Format | None:
    """The format that an operand has, as a SoftArray or as an array of NumPy's or ml_dtypes' types; None if it has none."""
    if isinstance(x, Held):
        return x._format
    if isinstance(x, (np.ndarray, np.generic)):
        return ROSTER.get(x.dtype.name)
    return None


def common_format(operands: Sequence[Any], operation: str) -> Format:
    """The format of the operands that are SoftArrays.

    Raises
    ------
    TypeError
        If there are two, or none.
    """
    arrays = [(i, x._format) for i, x in enumerate(operands) if isinstance(x, Held)]
    if not arrays:
        raise TypeError(f"no operand of {operation!r} is a SoftArray; softfloat.array() converts")
    first, fmt = arrays[0]
    for i, other in arrays[1:]:
        if other != fmt:
            _mismatch(i, str(other), first, fmt, operation)
    return fmt


def _mismatch(position: int, found: str, where: int, fmt: Format, operation: str, hint: str = "") -> None:
    raise TypeError(
        f"operand {position + 1} of {operation!r} has format {found} that does not match format {fmt} of operand {where + 1}; "
        f"astype() or softfloat.array() converts{hint}"
    )


def is_operand(x: Any) -> bool:
    """Whether an operator takes x at all."""
    return isinstance(x, (Held, numbers.Real, np.ndarray, np.generic, list, tuple))


def coerced(x: Any, fmt: Format, operation: str, position: int = 1, quiet: bool = False) -> Codes:
    """An operand as codes of a format: SoftArrays and arrays that have it, numbers rounded into it.

    Parameters
    ----------
    x : SoftArray, array, number or nested lists of numbers
    fmt : Format
    operation : str
        For messages and traps.
    position : int
        Of the operand, from 0.
    quiet : bool
        Raise no flags.

    Raises
    ------
    TypeError
        If x has another format, or another type altogether.
    """
    if isinstance(x, Held):
        if x._format is not fmt and x._format != fmt:
            _mismatch(position, str(x._format), 0 if position else 1, fmt, operation)
        return x._codes
    if isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, np.float64):
            return weak(float(x), fmt, operation, quiet)
        engine.refuse_mask(x, f"operand {position + 1} of {operation!r}")
        if x.dtype == bool:
            return _booleans(np.asarray(x), fmt)
        held = held_codes(x, fmt)
        if held is not None:
            return held
        hint = "" if x.ndim else "; .item() makes a Python number of it, which is rounded into the format"
        found = "of NumPy's numbers" if x.dtype.name == fmt.name else str(x.dtype)
        _mismatch(position, found, 0 if position else 1, fmt, operation, hint)
    if isinstance(x, (list, tuple)):
        return _listed(x, fmt, operation, position, quiet)
    if isinstance(x, (bool, int, float, Fraction)):
        return weak(x, fmt, operation, quiet)
    raise TypeError(
        f"operand {position + 1} of {operation!r} is {type(x).__name__}; accepted: SoftArray of {fmt}, numbers, bool arrays"
    )


def _booleans(x: np.ndarray[Any, Any], fmt: Format) -> Codes:
    if not fmt.zero:
        raise TypeError(f"False has no code in {fmt}, which has no zero")
    return np.where(x, one_of(fmt, "True"), 0).astype(fmt.dtype)


def has(fmt: Format, power: int) -> bool:
    """Whether a power of two is among a format's numbers."""
    return fmt.smallest_subnormal <= power <= fmt.max


def check_has(fmt: Format, asked_by: str, *needed: int) -> None:
    """Refuse a format without powers of two that somebody computes with."""
    for number in needed:
        if not has(fmt, number):
            raise ValueError(
                f"{asked_by} needs a {number}, and {fmt} has none; accepted: formats among whose numbers {number} is"
            )


def one_of(fmt: Format, asked_by: str) -> int:
    """The code of 1, which somebody asked for."""
    check_has(fmt, asked_by, 1)
    return fmt.one_code


def held_codes(x: Any, fmt: Format) -> Codes | None:
    """The codes in a NumPy array or scalar whose dtype is the format; copied only if the bytes are swapped."""
    engine.refuse_mask(x, "x")
    if not has_dtype(fmt, x.dtype):
        return None
    array = np.asarray(x)
    codes = array.astype(array.dtype.newbyteorder("="), copy=False).view(fmt.dtype)
    return engine.check_codes(codes, fmt, "x") if fmt.bits < 8 else codes


def _listed(x: Any, fmt: Format, operation: str, position: int, quiet: bool) -> Codes:
    rows = [coerced(item, fmt, operation, position, quiet) for item in x]
    return np.stack(rows) if rows else np.empty(0, fmt.dtype)


def weak(x: Any, fmt: Format, operation: str, quiet: bool = False) -> Codes:
    """A Python number in a format; its flags go to the environment like any operation's."""
    env = current_environment()
    code, raised = constant(x, fmt, env.settings)
    if raised and not quiet:
        env.status.add(raised)
        if env.traps and raised & as_flags(env.traps):
            raise FloatingPointTrap(Flags(raised) & as_flags(env.traps), operation, (), (x,), env.nan)
    return code


def constants(settings: Settings, fmt: Format) -> Settings:
    """The settings under which numbers become codes: stochastic rounding leaves them to the nearest."""
    drawn = settings.for_format(fmt.name).rounding.draws
    return settings.replace(rounding=Rounding.NEAREST_EVEN) if drawn else settings


def constant(x: Any, fmt: Format, settings: Settings) -> tuple[Codes, int]:
    """(code, flags) of a Python number, kept."""
    kind: Any = type(x)  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
    return _constant(kind, x, math.copysign(1, x) if isinstance(x, float) else 0, fmt, settings)


@lru_cache(maxsize=4096)
def _constant(kind: type, x: Any, sign: float, fmt: Format, settings: Settings) -> tuple[Codes, int]:
    code, raised = bits.encode(x, fmt, environment=constants(settings, fmt), flags="any")
    found = np.array(code)
    found.flags.writeable = False
    return found, int(raised)


def has_dtype(fmt: Format, dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy dtype's bits are the format's codes, in some order of bytes."""
    return dtype.name == fmt.name and ROSTER.get(fmt.name) == fmt
