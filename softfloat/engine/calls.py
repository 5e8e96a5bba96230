"""Small calls that need no looking into: codes as they should be, options of the ordinary kinds, everything else prepared.

Each function here gives what the long way gives, or None where that is to be gone: for refusals too, which say why there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine import elementwise
from softfloat.engine.arguments import Codes
from softfloat.engine.draws import NO_BITS
from softfloat.engine.elementwise import NO_CODES
from softfloat.engine.options import ARITHMETIC, COMPARISONS, CONVERSIONS, Options, Uses, idle_in, settings_of
from softfloat.engine.parameters import FLOAT16, FLOAT32, choosing, comparisons, numbers
from softfloat.engine.threads import SMALLEST_SHARE
from softfloat.environments import Environment, Settings
from softfloat.formats import Format
from softfloat.kernels.spec import CARRIER64, FLOAT64, FormatSpec, Rule, policy_for

SMALL = 2 * SMALLEST_SHARE - 1
"""Elements up to which one thread does a call, however many there may be: it goes straight to its loop."""

Brief = tuple[Settings, bool, int]
"""Settings with overrides, whether each element has flags of its own, the number of the stream."""

BY_DEFAULT: Brief = Settings(), True, 0


def brief(options: Options, uses: Uses = CONVERSIONS) -> Brief | None:
    """Options that concern settings, flags and stream alone, checked; None if one of them is to be refused, or may be."""
    if not options:
        return BY_DEFAULT
    if "out" in options or "random_bits" in options:
        return None
    settings, each, stream = None, True, 0
    given = []
    for name, value in options.items():
        if name == "environment":
            if isinstance(value, Environment) and value.position is None:
                settings = value.settings
            elif isinstance(value, Settings):
                settings = value
            else:
                return None
        elif name == "flags":
            if type(value) is not str or value not in ("each", "any"):
                return None
            each = value == "each"
        elif name == "stream":
            if type(value) is not int or not 0 <= value < 1 << 64:
                return None
            stream = value
        elif name in uses.settings:
            given.append((name, value, type(value)))
        else:
            return None
    if settings is None:
        settings = settings_of(tuple(given))
        if settings is None or not idle_in(settings.rounding).isdisjoint(options):
            return None
    elif given:
        return None
    return settings, each, stream


def flat(x: Codes) -> Codes:
    """An array as loops take it; its memory, where that is in C order."""
    found = x.ravel()
    found.setflags(write=False)
    return found


def single(x: int, fmt: Format, size: int = 1) -> Codes:
    """A code over and over, as loops take operands."""
    found = np.empty(size, fmt.dtype)
    found[:] = x
    found.setflags(write=False)
    return found


def operands(given: tuple[Any, ...], fmt: Format) -> tuple[list[Codes], tuple[int, ...]] | None:
    """Arrays of codes and Python integers, flat, and the shape that they broadcast to."""
    shape: tuple[int, ...] | None = None
    alike, dtype = True, fmt.dtype
    full = fmt.bits == 8 * dtype.itemsize
    for x in given:
        if type(x) is np.ndarray:
            if not full or x.dtype != dtype:
                return None
            if shape is None:
                shape = x.shape
            elif x.shape != shape:
                alike = False
        elif type(x) is fmt.dtype.type:
            return operands(tuple(int(x) if isinstance(x, np.integer) else x for x in given), fmt)
        elif type(x) is not int or not 0 <= x < 1 << fmt.bits:
            return None
    if shape is None:
        return [single(x, fmt) for x in given], ()
    if not alike:
        try:
            shape = np.broadcast_shapes(*[x.shape for x in given if type(x) is np.ndarray])
        except ValueError:
            return None
    size = math.prod(shape)
    if size > SMALL:
        return None
    found = []
    for x in given:
        if type(x) is int:
            found.append(single(x, fmt, size))
        else:
            found.append(flat(x if x.shape == shape else np.broadcast_to(x, shape)))
    return found, shape


def results(codes: Codes, flags: Codes, seen: int, shape: tuple[int, ...], each: bool) -> tuple[Any, Any]:
    """What the caller sees of a call without `out`."""
    if not shape:
        return codes[0], flags[0] if each else seen
    if len(shape) > 1:
        return codes.reshape(shape), flags.reshape(shape) if each else seen
    return codes, flags if each else seen


def arithmetic(
    operation: str,
    given: tuple[Any, ...],
    fmt: Format,
    options: Options,
    extra: float = 0.0,
    output: Format | None = None,
) -> tuple[Any, Any] | None:
    """An operation that has a loop of its own; `output`: the result's format, if another."""
    asked = brief(options, ARITHMETIC)
    taken = None if asked is None else operands(given, fmt)
    if asked is None or taken is None:
        return None
    whole, each, stream = asked
    made, daz = output or fmt, whole.for_format(fmt.name).daz
    settings = whole.for_format(made.name)
    if settings.daz != daz:
        settings = settings.replace(daz=daz)
    ready = elementwise.prepared(operation, made, settings, elementwise.FAST, each, extra, fmt.spec)
    if ready is None:
        return None
    (a, *rest), shape = taken
    codes, flags = np.empty(a.size, made.dtype), np.empty(a.size, np.uint8) if each else NO_CODES
    b, c = (rest[0], rest[-1]) if rest else (a, a)
    return results(codes, flags, ready(a, b, c, codes, flags, stream, False), shape, each)


FLOATS = {
    np.dtype(np.float16): (np.uint16, "float16", FLOAT16),
    np.dtype(np.float32): (np.uint32, "float32", FLOAT32),
    np.dtype(np.float64): (np.uint64, "float64", FLOAT64),
}
"""NumPy's floats: integers of their width, the name under which settings are looked up, and their format."""

EXACT = 1 << 53  # integers up to which are float64


def conversion(x: Any, fmt: Format, options: Options) -> tuple[Any, Any] | None:
    """Floats, as arrays or a Python number, in a format."""
    shape: tuple[int, ...] = ()
    if type(x) is np.ndarray:
        known = FLOATS.get(x.dtype)
        if known is None or x.size > SMALL or not x.flags.c_contiguous:
            return None
        shape, a = x.shape, x.reshape(-1).view(known[0])
    elif type(x) is float or (type(x) is int and -EXACT <= x <= EXACT):
        known = FLOATS[np.dtype(np.float64)]
        a = np.array([x], np.float64).view(np.uint64)
    else:
        return None
    a.setflags(write=False)
    return _converted(a, known[1], known[2], fmt, options, shape)


def between(codes: Any, source: Format, fmt: Format, options: Options) -> tuple[Any, Any] | None:
    """Codes of one format in another."""
    taken = operands((codes,), source)
    return None if taken is None else _converted(taken[0][0], source.name, source.spec, fmt, options, taken[1])


def _converted(
    a: Codes, name: str, source: FormatSpec, fmt: Format, options: Options, shape: tuple[int, ...]
) -> tuple[Any, Any] | None:
    asked = brief(options)
    if asked is None:
        return None
    whole, each, stream = asked
    settings = whole.between(name, fmt.name)
    ready = elementwise.prepared("convert", fmt, settings, elementwise.FAST, each, 0.0, source)
    if ready is None:
        return None
    codes, flags = np.empty(a.size, fmt.dtype), np.empty(a.size, np.uint8) if each else NO_CODES
    return results(codes, flags, ready(a, a, a, codes, flags, stream, False), shape, each)


Relation = Callable[[Codes, Codes, Codes, Codes], int]
"""relation(x, y, truths, flags) -> flags OR-ed together; each has its own byte where there is room."""


@lru_cache(maxsize=512)
def relation(name: str, fmt: Format, daz: bool, nan: str, signalling: bool) -> Relation:
    """What compares flat codes."""
    signals = signalling or policy_for(nan, fmt.spec).any_nan_signals
    known = numbers(fmt.spec, fmt.spec, Rule(daz=daz), CARRIER64, wide=True)
    run = elementwise.by_bytes(comparisons().by_element(comparisons().compared(name), 2), signals, *known, NO_BITS)
    return lambda x, y, truths, flags: run(x, y, y, truths, flags)


@lru_cache(maxsize=512)
def extremum(name: str, fmt: Format, daz: bool, ftz: bool, nan: str) -> Relation:
    """What chooses among flat codes: extremum(x, y, codes, flags), "minimum", "maximum_number" ..."""
    known = numbers(fmt.spec, fmt.spec, choosing(fmt, daz, ftz, nan), CARRIER64, wide=True)
    element = comparisons().extreme(name.startswith("maximum"), name.endswith("number"))
    run = elementwise.by_bytes(comparisons().by_element(element, 2), False, *known, NO_BITS)
    return lambda x, y, codes, flags: run(x, y, y, codes, flags)


def comparison(
    name: str, given: tuple[Any, ...], fmt: Format, options: Options, signalling: bool
) -> tuple[Any, Any] | None:
    """A comparison."""
    asked = brief(options, COMPARISONS)
    taken = None if asked is None else operands(given, fmt)
    if asked is None or taken is None:
        return None
    whole, each, _ = asked
    settings = whole.for_format(fmt.name)
    (x, y), shape = taken
    truths, flags = np.empty(x.size, bool), np.empty(x.size, np.uint8) if each else NO_CODES
    seen = relation(name, fmt, settings.daz, settings.nan, signalling)(x, y, truths, flags)
    return results(truths, flags, int(seen), shape, each)
