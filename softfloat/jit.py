"""Elementwise operations for code that you compile yourself: recurrences that arrays cannot express.

`function` settles an operation, a format and a rule, and gives a function for `numba.njit` code. Results and flags are those of
`softfloat.bits`. Python may call it too; with NUMBA_DISABLE_JIT=1 it is plain Python, slow, with the same bits.

>>> from softfloat import jit
>>> add = jit.function("add", "float16", values=True)
>>> add(2048.0, 1.0)
2048.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from softfloat import engine
from softfloat.bits.operations import ELEMENTWISE
from softfloat.checks import check_switch
from softfloat.engine import Call, Inlined, Options, uses_of
from softfloat.formats import Format, check_format

__all__ = ["OPERATIONS", "function"]

OPERATIONS = {
    **{
        name: ELEMENTWISE[name].operands
        for name in (
            *("add", "sub", "mul", "div", "remainder", "fmod", "modulo", "floor_divide", "hypot"),
            *("sqrt", "fma", "round_to_integral", "eq", "lt", "le"),
            *("minimum", "maximum", "minimum_number", "maximum_number"),
        )
    },
    "convert": ("codes",),
    "encode": ("x",),
    "decode": ("codes",),
    "to_integer": ("codes",),
}
"""Name -> operands, those of `softfloat.bits`."""

COMPARISONS = ("eq", "lt", "le")


def function(
    operation: str,
    fmt: Format | str,
    *,
    to: Format | str | None = None,
    dtype: Any = None,
    values: bool = False,
    flags: bool = False,
    exact: bool | None = None,
    signalling: bool | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """An operation as a function that `numba.njit` code calls.

    Parameters
    ----------
    operation : str
        A name in `OPERATIONS`.
    fmt : Format
        Of operands; of "encode", the result's.
    to : Format
        What "convert" converts to.
    dtype : NumPy integer dtype
        What "to_integer" gives.
    values : bool
        Whether operands and results are float64 numbers rather than codes. They must be numbers of the format: what is none raises
        ValueError. NaNs are quiet, without payload.
    flags : bool
        Whether the function gives (result, flags) rather than the result alone.
    exact, signalling : bool
        As `round_to_integral`, `to_integer` and the comparisons of `softfloat.bits` take them.
    **options
        Those of `softfloat.bits` that describe a rule: `environment`, or `rounding`, `overflow`, `seed` ...

    Returns
    -------
    callable
        Of one argument for each operand: codes as integers of any type; of "encode" a number, integers of up to 64 bits among them.
        Stochastic rounding takes more: with a seed `stream` and `position`, and then the result is element `position` of a call
        of `softfloat.bits` with that stream; without a seed `bits`, the random ones of this rounding, `sr_bits` of them. Results
        have the format's NumPy type; flags are uint8. It has no state, compiles when it is first called, and is kept on disk.

    Raises
    ------
    TypeError, ValueError
        For what there is not, here; for what is no code, no number of the format or no random bits, at the call. Of types that
        no operand has, such as floats for codes, the TypeError comes when `numba.njit` code that calls it is compiled.

    Source
    ------
    As `softfloat.bits`: the same kernels.

    >>> fma = function("fma", "float16", rounding="toward_zero", flags=True)
    >>> fma(0x3C01, 0x3C01, 0xBC02)
    (16, 0)
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(map(repr, OPERATIONS))}, got {operation!r}")
    source = check_format(fmt)
    if (to is not None) != (operation == "convert"):
        raise ValueError(
            "to must be a format for 'convert'" if to is None else f"to is for 'convert', not {operation!r}"
        )
    target = source if to is None else check_format(to, "to")
    for name in ("out", "flags", "random_bits", "stream", "position"):
        if name in options:
            raise TypeError(f"jit.function takes no {name}; random bits, streams and positions come with each call")
    for name, value, accepted in (
        ("exact", exact, ("round_to_integral", "to_integer")),
        ("signalling", signalling, COMPARISONS),
    ):
        if value is not None:
            if operation not in accepted:
                raise ValueError(f"{name} is for {', '.join(map(repr, accepted))}, not {operation!r}")
            check_switch(name, value)
    check_switch("values", values)
    check_switch("flags", flags)
    if values and operation in ("encode", "decode"):
        raise ValueError(
            f"values is for operations on numbers of one kind, not {operation!r}, between numbers and codes"
        )
    reads = {"convert": source.name, "encode": "float64"}.get(operation)
    call = Call(cast(Options, options), target, reads, uses_of(operation))
    if call.position is not None:
        raise ValueError("environment must be one without position; it comes with each call")
    if call.settings.rounding.draws and call.settings.generator != "philox4x32":
        raise ValueError(
            f"generator must be 'philox4x32', got {call.settings.generator!r}, whose random numbers have only an order"
        )
    wanted = Inlined(
        operation=operation,
        operands=len(OPERATIONS[operation]),
        source=source,
        target=target,
        settings=call.settings,
        values=values,
        flagged=flags,
        exact=exact is not False,
        signalling=operation != "eq" if signalling is None else signalling,
        integer=_integer(operation, dtype),
    )
    made = engine.inlined(wanted)
    made.__doc__ = _text(wanted)
    return made


def _integer(operation: str, dtype: Any) -> np.dtype[Any] | None:
    """The dtype of `to_integer`."""
    if operation != "to_integer":
        if dtype is not None:
            raise ValueError(f"dtype is for 'to_integer', not {operation!r}")
        return None
    try:
        np.iinfo(dtype)
    except (ValueError, TypeError):
        raise TypeError(f"dtype must be a NumPy integer dtype, got {dtype!r}") from None
    return np.dtype(dtype)


def _text(wanted: Inlined) -> str:
    """What a function says of itself."""
    more = {"": (), "bits": ("bits",), "address": ("stream", "position")}[engine.drawing_of(wanted.settings)]
    if wanted.operation in (*COMPARISONS, "decode") or wanted.operation.startswith(("minimum", "maximum")):
        more = ()
    kind = "numbers" if wanted.values else "codes"
    gives = "(result, flags)" if wanted.flagged else "the result"
    takes = ", ".join((*OPERATIONS[wanted.operation], *more))
    to = f" to {wanted.target.name}" if wanted.target != wanted.source else ""
    mode = wanted.settings.rounding.name.lower()
    return f"{wanted.operation}({takes}) of {kind} of {wanted.source.name}{to}, {mode}: {gives}, as softfloat.bits.{wanted.operation} has it."
