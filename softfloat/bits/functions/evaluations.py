"""Mathematical functions of one code at a time, by the C library's float64 functions: where those leave the result in no doubt.

A value whose bits below the 30th are neither all zeros nor all ones, by a margin of 4096 units in the last place, is on the same side of
every number and every tie of a format as the exact one: it is rounded as that would be. What is left in doubt, what is exact, and what is
no ordinary number is None here, and goes the long way of `softfloat.bits.functions`.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from softfloat import engine
from softfloat.bits.functions.values import KEPT
from softfloat.bits.functions.ways import TABLE_BITS
from softfloat.engine.elementwise import by_bytes
from softfloat.environments import Settings
from softfloat.formats import Format, float32
from softfloat.kernels.spec import CARRIER64, Rule

__all__ = ["EVALUATED", "prepared"]

Evaluation = Callable[..., "tuple[int, int] | None"]
"""Codes in, (code, flags) out, or None."""

BELOW = (1 << (53 - KEPT)) - 1
"""Bits of a float64 that no format's number or tie has."""
MARGIN = 1 << 12
"""Units in the last place: more than any C library is wrong by, with what is lost here."""
LN2 = math.log(2.0)
CANCELLED = 2.0**-4
LEAST, MOST = 2.0**-16, 2.0**16
"""Of periodic functions: nearer to their zeros and poles a reduced operand may be too imprecise."""


def _periodic(function: Callable[[float], float], x: float) -> float | None:
    value = function(x)
    return value if -1.0 <= x <= 1.0 or LEAST < abs(value) < MOST else None


def _exp10(x: float) -> float:
    return math.pow(10.0, x)


def _log_of_sum(power: Callable[[float], float], unit: float, a: float, b: float) -> float | None:
    if a < b:
        a, b = b, a
    more = math.log1p(power(b - a)) / unit
    value = a + more
    return value if abs(value) > CANCELLED * more else None  # what cancels leaves too few bits


EVALUATED: dict[str, Callable[..., float | None]] = {
    **{
        name: getattr(math, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
            *("asinh", "acosh", "atanh", "cbrt", "degrees", "radians", "pow", "atan2"),
        )
    },
    **{name: partial(_periodic, getattr(math, name)) for name in ("sin", "cos", "tan")},
    "exp10": _exp10,
    "logaddexp": partial(_log_of_sum, math.exp, 1.0),
    "logaddexp2": partial(_log_of_sum, math.exp2, LN2),
}
"""Name -> the function in float64; None where that is too imprecise, NaN of a NaN, and errors of `math` outside its domain."""
POLES = 0.0, 1.0, -1.0
"""Operands at which an error may mean infinity."""


class _Places(threading.local):
    """What a loop reads and writes, each thread its own."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.value, self.code, self.flags = np.zeros(1), np.zeros(1, dtype), np.zeros(1, np.uint8)


def prepared(name: str, operands: int, fmt: Format, settings: Settings) -> Evaluation | None:
    """A function settled for codes of a format; None under stochastic rounding, and where nothing is compiled."""
    if settings.rounding.draws or engine.loops().jit.DISABLED:
        return None
    rule = engine.rule_for(settings, fmt, False)
    known = engine.numbers(fmt.spec, fmt.spec, rule, CARRIER64)
    loop = by_bytes(engine.loops().elementwise("given", engine.way_of(fmt.spec, rule), known[0].dtype))
    ordinary = engine.flattened(np.array([fmt.max_code], fmt.dtype))
    places, limit = _Places(fmt.dtype), 1 << fmt.bits
    function, value_of = EVALUATED[name], _decoder(fmt, rule)
    least, most = 0.25 * fmt.smallest_subnormal, 4.0 * fmt.max
    low, high, as_bits, as_float = MARGIN, BELOW - MARGIN, struct.Struct("<q").unpack, struct.Struct("<d").pack

    def rounded(value: float | None) -> tuple[int, int] | None:
        if value is None or not (least < value < most or -most < value < -least):
            return None
        return found(value) if low < as_bits(as_float(value))[0] & BELOW < high else None

    def found(value: float) -> tuple[int, int]:
        where = places
        where.value[0] = value
        loop(ordinary, ordinary, ordinary, where.code, where.flags, where.value, *known)
        return where.code.item(), where.flags.item()

    def unary(a: int) -> tuple[int, int] | None:
        if type(a) is not int or not 0 <= a < limit:
            return None
        x = value_of(a)
        try:
            return rounded(function(x))
        except ArithmeticError:
            return None
        except ValueError:
            return None if x in POLES else found(math.nan)

    def binary(a: int, b: int) -> tuple[int, int] | None:
        if type(a) is not int or type(b) is not int or not (0 <= a < limit and 0 <= b < limit):
            return None
        x = value_of(a)
        try:
            return rounded(function(x, value_of(b)))
        except ArithmeticError:
            return None
        except ValueError:
            return None if x in POLES else found(math.nan)

    return unary if operands == 1 else binary


def _decoder(fmt: Format, rule: Rule) -> Callable[[int], float]:
    """The value of a code: from a table, of a float32 by its bits, else by the loop."""
    numbers = engine.numbers(fmt.spec, fmt.spec, Rule(daz=rule.daz), CARRIER64)
    decode = engine.loops().decoding()
    if fmt.bits <= TABLE_BITS:
        codes = engine.flattened(np.arange(1 << fmt.bits, dtype=fmt.dtype))
        values = np.empty(codes.size)
        decode(codes, values, *numbers)
        table: list[float] = values.tolist()
        return table.__getitem__
    if fmt == float32 and not rule.daz:
        as_bytes, as_float = struct.Struct("<I").pack, struct.Struct("<f").unpack
        return lambda code: as_float(as_bytes(code))[0]

    def value_of(code: int) -> float:
        value = np.empty(1)
        decode(engine.flattened(np.array([code], fmt.dtype)), value, *numbers)
        return value.item()

    return value_of
