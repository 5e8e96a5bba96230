"""One operation prepared for Python integers, call by call: for scoreboards that follow a simulation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Unpack

import numpy as np

from softfloat.bits import arithmetic, codes, comparisons, numbers
from softfloat.bits.functions import evaluations, named
from softfloat.bits.operations import ELEMENTWISE
from softfloat.checks import nearest
from softfloat.engine import Call, Options, calls, check_boolean, elementwise, uses_of
from softfloat.engine.arguments import flattened
from softfloat.formats import Format, check_format

__all__ = ["scalar"]

Scalar = Callable[..., Any]
"""scalar(code, ..., stream=0) -> (code, flags), all of them Python integers."""

_MODULES: tuple[ModuleType, ...] = (arithmetic, codes, comparisons, named, numbers)
_FUNCTIONS = {name: getattr(module, name) for module in _MODULES for name in module.__all__}
_PREPARED = {"add", "sub", "mul", "div", "remainder", "fmod", "modulo", "floor_divide", "hypot"}
_PREPARED |= {"sqrt", "fma", "round_to_integral", "convert"}
"""Operations that round, in a loop of their own."""

_RELATIONS = {"eq", "lt", "le"}
_EXTREMA = {"minimum", "maximum", "minimum_number", "maximum_number"}
_STEPS = {"next_up": 1, "next_down": -1}
_TABLE_BITS = 16
"""Formats as wide have tables of the operations of one operand that are no loop of their own."""

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
        raise ValueError(
            f"operation must be one of {', '.join(map(repr, _ACCEPTED))}, got {operation!r}{nearest(operation, _ACCEPTED)}"
        )
    if (to is not None) != (operation == "convert"):
        raise ValueError(
            "to must be a format for 'convert'" if to is None else f"to is for 'convert', not {operation!r}"
        )
    target = source if to is None else check_format(to, "to")
    for name in ("out", "flags", "random_bits"):
        if name in options:
            raise TypeError(f"scalar takes no {name}; it gives a result and flags for each call")
    call = Call(options, target, None if to is None else source.name, uses_of(operation))
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
    settings, count = call.settings, 1 if operation == "convert" else len(ELEMENTWISE[operation].operands)
    if operation in _RELATIONS:
        signals = bool(more.get("signalling", operation != "eq"))
        compare = calls.relation(operation, source, settings.daz, settings.nan, signals)
        return _Quick(whole, count, source, np.dtype(bool), _undrawn(compare), call.stream).scalar()
    if operation in _EXTREMA:
        choose = calls.extremum(operation, source, settings.daz, settings.ftz, settings.nan)
        return _Quick(whole, count, source, source.dtype, _undrawn(choose), call.stream).scalar()
    drawn = settings.rounding.draws
    if operation not in _PREPARED:
        tabled = count == 1 and not drawn and source.bits <= _TABLE_BITS and elementwise.quick()
        if tabled:
            return _looked_up(whole, operation, source, {**options, **more})
        if operation in _STEPS:
            return _stepped(whole, source, _STEPS[operation])
        found = evaluations.prepared(operation, count, source, settings)
        return whole if found is None else _evaluated(whole, found, count)
    extra = float(more.get("exact", True)) if operation == "round_to_integral" else 0.0
    read = source.spec if operation == "convert" else None
    ready = handed = None
    if not drawn or settings.seed is not None:
        ready = elementwise.prepared(operation, target, settings, elementwise.FAST, True, extra, read)
    if drawn and settings.chosen_width is not None:
        handed = elementwise.prepared_handed(operation, target, settings, extra, read)
    if ready is None and handed is None:
        return whole
    quick = _Quick(whole, count, source, target.dtype, ready, call.stream, handed, settings.chosen_width or 0)
    return quick.scalar()


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


def _undrawn(loop: calls.Relation) -> elementwise.Ready:
    """A loop over two operands that draws nothing, as `_Quick` calls it."""
    return lambda a, b, c, codes, flags, stream, in_place: loop(a, b, codes, flags)


def _looked_up(whole: Scalar, operation: str, source: Format, options: dict[str, Any]) -> Scalar:
    """Results of every code, computed when the first is asked for."""
    known: list[tuple[list[Any], list[int]]] = []
    size = 1 << source.bits

    def call(*operands: Any, **address: Any) -> Any:
        if address or len(operands) != 1 or type(operands[0]) is not int or not 0 <= operands[0] < size:
            return whole(*operands, **address)
        if not known:
            results, flags = _FUNCTIONS[operation](np.arange(size, dtype=source.dtype), source, **options)
            known.append((results.tolist(), flags.tolist()))
        results, flags = known[0]
        return results[operands[0]], flags[operands[0]]

    return call


def _evaluated(whole: Scalar, known: Callable[..., tuple[int, int] | None], count: int) -> Scalar:
    """Calls of what knows most results, and the long way for the others."""

    def call(*operands: Any, **address: Any) -> Any:
        if address or len(operands) != count:
            return whole(*operands, **address)
        return known(*operands) or whole(*operands)

    return call


def _stepped(whole: Scalar, source: Format, step: int) -> Scalar:
    """The next number: codes of positive numbers step with them, those of negative ones against them."""
    first, last, sign = source.smallest_subnormal_code, source.max_code, source.sign_bit

    def call(*operands: Any, **address: Any) -> Any:
        if not address and len(operands) == 1 and type(operands[0]) is int:
            code = operands[0]
            if first < code < last:
                return code + step, 0
            if sign + first < code < sign + last and sign:
                return code - step, 0
        return whole(*operands, **address)

    return call


class _Quick(NamedTuple):
    """A loop for one element, on places that each thread has; what is no code goes the long way, to be refused there.

    Attributes
    ----------
    ready, handed : callable or None
        Loops that draw by address, if at all, and that take random bits, `width` of them.
    """

    whole: Scalar
    arity: int
    source: Format
    dtype: np.dtype[Any]
    ready: elementwise.Ready | None
    stream: int
    handed: Callable[..., int] | None = None
    width: int = 0

    def places(self) -> Any:
        """Operands, the same as loops take them, a result, flags and random bits."""
        inputs = [np.zeros(1, self.source.dtype) for _ in range(self.arity)]
        views = [flattened(x) for x in inputs]
        views += [views[-1]] * (3 - self.arity)
        bits = np.zeros(1, np.uint64)
        return inputs, views, np.zeros(1, self.dtype), np.zeros(1, np.uint8), bits, flattened(bits)

    def scalar(self) -> Scalar:
        """The callable."""
        whole, count, _, _, ready, usual, handed, width = self
        limit, random_limit, known = 1 << self.source.bits, 1 << width, threading.local()

        def call(*operands: Any, **address: Any) -> Any:
            at, random = usual, None
            if address or ready is None:
                at, random = address.get("stream", usual), address.get("random_bits")
                plain = set(address) == ({"stream"} if random is None else {"random_bits"})
                if not plain or type(at) is not int or not 0 <= at < 1 << 64:
                    return whole(*operands, **address)
                if (handed if random is not None else ready) is None:
                    return whole(*operands, **address)
                if random is not None and (type(random) is not int or not 0 <= random < random_limit):
                    return whole(*operands, **address)
            try:
                inputs, (a, b, c), code, flags, bits, drawn = known.all
            except AttributeError:
                inputs, (a, b, c), code, flags, bits, drawn = known.all = self.places()
            if len(operands) != count:
                return whole(*operands, **address)
            for x, place in zip(operands, inputs, strict=True):
                if type(x) is not int or not 0 <= x < limit:
                    return whole(*operands, **address)
                place[0] = x
            if random is None:
                ready(a, b, c, code, flags, at, False)  # type: ignore[misc]
            else:
                bits[0] = random
                handed(a, b, c, code, flags, drawn)  # type: ignore[misc]
            return code.item(), flags.item()

        return call
