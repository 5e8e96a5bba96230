"""One operation prepared for Python integers, call by call: for scoreboards that follow a simulation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Unpack

import numpy as np

from softfloat.bits import arithmetic, codes, comparisons, functions, numbers
from softfloat.bits.operations import ELEMENTWISE
from softfloat.engine import Call, Options, check_boolean, elementwise
from softfloat.engine.arguments import flattened
from softfloat.formats import Format, check_format
from softfloat.kernels.spec import Rounding

__all__ = ["scalar"]

Scalar = Callable[..., Any]
"""scalar(code, ..., stream=0) -> (code, flags), all of them Python integers."""

_MODULES: tuple[ModuleType, ...] = (arithmetic, codes, comparisons, functions, numbers)
_FUNCTIONS = {name: getattr(module, name) for module in _MODULES for name in module.__all__}
_PREPARED = {"add", "sub", "mul", "div", "remainder", "fmod", "modulo", "floor_divide", "hypot"}
_PREPARED |= {"sqrt", "fma", "round_to_integral", "convert"}
"""Operations that have a loop of their own."""

_ACCEPTED = (*(row.name for row in ELEMENTWISE.values() if row.flags), "convert")


def scalar(
    operation: str,
    fmt: Format | str,
    *,
    to: Format | str | None = None,
    exact: bool | None = None,
    signalling: bool | None = None,
    **options: Unpack[Options],
) -> Scalar:
    """An operation settled once, to be called with one code for each operand.

    Parameters
    ----------
    operation : str
        Any function of `softfloat.bits` on codes that gives flags: "fma", "convert", "lt", "exp" ...
    fmt : Format
        Of operands.
    to : Format
        What "convert" converts to.
    exact, signalling : bool
        As `round_to_integral` and the comparisons take them.
    **options
        Those of `softfloat.bits` but `out`, `flags` and `random_bits`.

    Returns
    -------
    callable
        Of codes (Python integers); gives (result, flags), a Python integer (of comparisons a bool) and an integer, the same as the
        function in `softfloat.bits`. Under stochastic rounding each call is element 0 of its stream: `stream=` or `random_bits=` (an
        integer, with `sr_bits`) at the call tell calls apart. Threads may share it.

    Raises
    ------
    TypeError, ValueError
        For what there is not, here; for what is no code, at the call.

    >>> fma = scalar("fma", "float16", rounding="toward_zero")
    >>> fma(0x3C01, 0x3C01, 0xBC02)
    (16, 0)
    """
    source = check_format(fmt)
    if operation not in _ACCEPTED:
        raise ValueError(f"operation must be one of {', '.join(map(repr, _ACCEPTED))}, got {operation!r}")
    if (to is not None) != (operation == "convert"):
        raise ValueError(
            "to must be a format for 'convert'" if to is None else f"to is for 'convert', not {operation!r}"
        )
    target = source if to is None else check_format(to, "to")
    for name in ("out", "flags", "random_bits"):
        if name in options:
            raise TypeError(f"scalar takes no {name}; it gives a result and flags for each call")
    call = Call(options, target)
    more: dict[str, Any] = {}
    if exact is not None:
        if operation != "round_to_integral":
            raise ValueError(f"exact is for 'round_to_integral', not {operation!r}")
        more["exact"] = check_boolean("exact", exact)
    if signalling is not None:
        if operation not in ("eq", "lt", "le"):
            raise ValueError(f"signalling is for comparisons, not {operation!r}")
        more["signalling"] = check_boolean("signalling", signalling)
    whole = _whole(operation, source, target, options, more)
    if operation not in _PREPARED:
        return whole
    extra = float(more.get("exact", True)) if operation == "round_to_integral" else 0.0
    read = source.spec if operation == "convert" else None
    ready = None
    if call.settings.rounding is not Rounding.STOCHASTIC or call.settings.seed is not None:
        ready = elementwise.prepared(operation, target, call.whole, elementwise.FAST, True, extra, read)
    count = 1 if operation == "convert" else len(ELEMENTWISE[operation].operands)
    return whole if ready is None else _quick(ready, whole, count, source, target, call.stream)


def _whole(operation: str, source: Format, target: Format, options: Options, more: dict[str, Any]) -> Scalar:
    """Calls of the function in `softfloat.bits`."""
    function = _FUNCTIONS[operation]
    formats = (source, target) if operation == "convert" else (source,)
    settled: dict[str, Any] = {**options, **more}

    def call(*operands: Any, **address: Any) -> Any:
        unknown = set(address) - {"stream", "random_bits"}
        if unknown:
            raise TypeError(
                f"unknown option {', '.join(map(repr, sorted(unknown)))}; accepted: 'stream', 'random_bits'"
            )
        result, flags = function(*operands, *formats, **{**settled, **address})
        return result.item(), int(flags)

    return call


def _quick(ready: elementwise.Ready, whole: Scalar, count: int, source: Format, target: Format, stream: int) -> Scalar:
    """The loop for one element, on places that each thread has; what is no code goes the long way, to be refused there."""
    limit = 1 << source.bits
    usual = stream
    known = threading.local()

    def places() -> Any:
        inputs = [np.zeros(1, source.dtype) for _ in range(count)]
        views = [flattened(x) for x in inputs]
        views += [views[-1]] * (3 - count)
        known.all = inputs, views, np.zeros(1, target.dtype), np.zeros(1, np.uint8)
        return known.all

    def call(*operands: Any, **address: Any) -> Any:
        at = usual
        if address:
            at = address.get("stream", usual)
            if set(address) != {"stream"} or type(at) is not int or not 0 <= at < 1 << 64:
                return whole(*operands, **address)
        try:
            inputs, (a, b, c), code, flags = known.all
        except AttributeError:
            inputs, (a, b, c), code, flags = places()
        if len(operands) != count:
            return whole(*operands, **address)
        for x, place in zip(operands, inputs, strict=True):
            if type(x) is not int or not 0 <= x < limit:
                return whole(*operands, **address)
            place[0] = x
        ready(a, b, c, code, flags, at, False)
        return code.item(), flags.item()

    return call
