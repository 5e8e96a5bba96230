"""Values of functions, cut to so many bits that they round as the exact ones do: by interval, by theorem, by mpmath."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from softfloat import engine
from softfloat.bits.functions.bounds import Floats
from softfloat.bits.functions.precise import Number, libmp
from softfloat.bits.functions.table import FUNCTIONS, Function
from softfloat.engine import Job
from softfloat.formats import Format
from softfloat.kernels.spec import CARRIER64, FormatSpec, Rule

__all__ = [
    "KEPT",
    "KEPT_IN_TABLES",
    "carrier_numbers",
    "decided",
    "fraction_of",
    "mpmath_lock",
    "table_of",
    "tabulated",
    "values_at",
    "what_is_lacking",
]

KEPT = 30  # significant bits of values for deterministic modes: 24 + 2 suffice, and 30 leave few results in doubt
KEPT_IN_TABLES = 42  # of those in tables, for stochastic rounding, too: the library's error leaves one in 32 in doubt
KEPT_LACKING = 128  # of those whose side is open: any threshold has at most 76
NEXT_TO_NOTHING = 2.0**-200  # beside 1: far below the last of those bits, and not so far that mpmath would not reach it
GUARD = 30  # bits in which a value of mpmath may be wrong: far more than any of its functions loses
APART = 1 << 12  # between operands whose powers add up to next to nothing more than the greater one
mpmath_lock = threading.Lock()  # mpmath keeps constants in caches that two threads must not fill at once


def _number(x: float) -> Number:
    fraction, exponent = math.frexp(x)
    return libmp().from_man_exp(int(fraction * 2.0**53), exponent - 53)


def decided(precise: Callable[..., Number], operands: tuple[float, ...], kept: int) -> tuple[int, int, int]:
    """(sign, significand, exponent) of a value that has more than `kept` bits: cut to those bits, the last one set."""
    numbers = [_number(x) for x in operands]
    margin = 64
    while True:
        sign, significand, exponent, length = precise(kept + margin, *numbers)
        significand, exponent = int(significand), int(exponent)
        up = kept + margin - length  # zeros that mpmath cut off
        whole = significand << up if up >= 0 else significand >> -up
        exponent -= up
        rest = whole & ((1 << margin) - 1)
        if 1 << GUARD < rest < (1 << margin) - (1 << GUARD):
            return -1 if sign else 1, (whole >> margin) | 1, exponent + margin
        margin *= 2


def _decided_float(precise: Callable[..., Number], operands: tuple[float, ...], kept: int) -> float:
    """The value at operands where it is irrational or has more than `kept` bits, cut to those bits, the last one set."""
    sign, significand, exponent = decided(precise, operands, kept)
    return math.ldexp(sign * significand, exponent)


def _lacking(function: Function, operands: tuple[float, ...], value: float) -> float:
    """What a cut value lacks, rounded to odd: the exact value is on the same side of any threshold as the sum of both."""
    bounds = function.bounds(*(np.array([x]) for x in operands))
    exact = fraction_of(function, operands, *(float(x[0]) for x in bounds))
    if exact is None:
        if function.symmetric:
            operands = max(operands), min(operands)
        sign, significand, exponent = decided(function.precise, operands, KEPT_LACKING)
        exact = sign * significand * Fraction(2) ** exponent
    return engine.odd_float(exact - Fraction(value))


def fraction_of(
    function: Function, operands: tuple[float, ...], near: float, more: float, error: float
) -> Fraction | None:
    """The value at finite operands, if it is rational, and of few enough bits to matter; or where it is a number and next to nothing.

    Then it is one on the same side of that number: all digits between them are alike.
    """
    if function.rational is not None:
        found = function.rational(*operands)
    else:
        exact, rest, known = (x[0] for x in function.exact(*(np.array([x]) for x in operands)))
        found = Fraction(float(exact)) + Fraction(float(rest)) if known else None
    apart = function.symmetric and near != 0.0 and abs(operands[0] - operands[1]) > APART
    if found is None and (apart or error < abs(more) < abs(near) * NEXT_TO_NOTHING):
        return Fraction(near) + Fraction(math.copysign(near, more)) * Fraction(NEXT_TO_NOTHING)
    return found


@lru_cache(maxsize=64)
def carrier_numbers(fmt: FormatSpec, daz: bool) -> engine.Numbers:
    """What decodes a format, and what `settling` needs."""
    return engine.numbers(fmt, fmt, Rule(daz=daz), CARRIER64)


def values_at(function: Function, operands: tuple[Floats, ...], kept: int, numbers: engine.Numbers) -> Floats:
    """Results at operands, cut to `kept` significant bits, the last one sticky."""
    dropped = (1 << (53 - kept)) - 1
    values, doubtful = np.empty(operands[0].size), np.empty(operands[0].size, np.bool_)
    settle = engine.spared(engine.loops().settling()).taken(values.size)
    with np.errstate(all="ignore"):
        near, more, error = function.bounds(*operands)
        if not settle(near, more, error, values, doubtful, dropped, *numbers):
            return values
        places = np.flatnonzero(doubtful)
        operands = tuple(x[places] for x in operands)
        near, more, known = function.exact(*operands)
    if known.any():
        exact = np.empty(places.size)
        settle(near, more, np.zeros(places.size), exact, np.empty(places.size, np.bool_), dropped, *numbers)
        values[places[known]] = exact[known]
        places, operands = places[~known], tuple(x[~known] for x in operands)
    if places.size:
        if function.symmetric:
            operands = np.maximum(*operands), np.minimum(*operands)
        rows = zip(*(x.tolist() for x in operands), strict=True)
        with mpmath_lock:
            values[places] = [_decided_float(function.precise, row, kept) for row in rows]
    return values


@lru_cache(maxsize=64)
def table_of(name: str, fmt: FormatSpec, daz: bool) -> Floats:
    """A unary function's values at every code of a format, cut to KEPT_IN_TABLES bits."""
    numbers = carrier_numbers(fmt, daz)
    codes = np.arange(1 << fmt.width, dtype=np.uint16)
    operands = np.empty(codes.size)
    engine.loops().decoding()(codes, operands, *numbers)
    table = values_at(FUNCTIONS[name], (operands,), KEPT_IN_TABLES, numbers)
    table.flags.writeable = False
    return table


def tabulated(name: str, operands: int, fmt: Format) -> Floats:
    """A function's values at every code of a format, and after these at +0 and -0; of two operands a row of them for each a.

    They are cut to `KEPT_IN_TABLES` bits, the last one sticky: enough to round them in every deterministic mode.
    """
    spec = fmt.spec
    numbers = carrier_numbers(spec, False)
    codes = np.arange(1 << spec.width, dtype=fmt.dtype)
    decoded = np.empty(codes.size)
    engine.loops().decoding()(codes, decoded, *numbers)
    every = np.concatenate([decoded, [0.0, -0.0]])
    if operands == 1:
        return values_at(FUNCTIONS[name], (every,), KEPT_IN_TABLES, numbers)
    pairs = np.repeat(every, every.size), np.tile(every, every.size)
    return values_at(FUNCTIONS[name], pairs, KEPT_IN_TABLES, numbers)


def what_is_lacking(job: Job, places: engine.Codes, values: Floats) -> Floats:
    """What the values of some elements lack, as `elementwise_drawn` takes it."""
    numbers = carrier_numbers(job.source, job.rule.daz)
    operands = [np.empty(places.size) for _ in job.operands]
    for codes, place in zip(job.operands, operands, strict=True):
        engine.loops().decoding()(codes[places], place, *numbers)
    rows = zip(*(x.tolist() for x in operands), strict=True)
    with mpmath_lock, np.errstate(all="ignore"):
        return np.array([_lacking(FUNCTIONS[job.operation], *row) for row in zip(rows, values.tolist(), strict=True)])
