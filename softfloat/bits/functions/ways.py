"""How calls find their results: values looked up or computed, and rounded; or codes in tables, made on first use."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softfloat import engine
from softfloat.bits.functions.bounds import LIBRARY_BITS, Floats
from softfloat.bits.functions.table import FUNCTIONS
from softfloat.bits.functions.values import (
    KEPT,
    KEPT_IN_TABLES,
    carrier_numbers,
    table_of,
    values_at,
    what_is_lacking,
)
from softfloat.engine import Job, Work
from softfloat.engine.elementwise import by_bytes, drawing
from softfloat.engine.parameters import FEW, SPARED
from softfloat.kernels.spec import CARRIER64, FormatSpec, Rule

__all__ = ["TABLE_BITS", "Lookup", "code_of_two", "lookup", "work"]

CHUNK = 1 << 14  # elements at a time: a dozen arrays of that many float64 stay in the cache
TABLE_BITS = 16  # formats as wide get tables


class Beside(NamedTuple):
    """Of two operands, that which is the same for all elements: the first or the second, and its code."""

    place: int
    code: int


@lru_cache(maxsize=128)
def result_table(
    name: str, fmt: FormatSpec, rule: Rule, beside: Beside | None = None
) -> tuple[engine.Codes, engine.Codes]:
    """A function's codes and flags at every code of a format; of two operands, of that which is not `beside`."""
    every = engine.flattened(np.arange(1 << fmt.width, dtype=np.uint16 if fmt.width > 8 else np.uint8))
    operands = [every]
    if beside is not None:
        operands.insert(beside.place, engine.flattened(np.full_like(every, beside.code)))
    codes, flags = np.empty_like(every), np.empty(every.size, np.uint8)
    _computed(Job(name, fmt, fmt, rule, operands, codes, flags, True, 0.0, None))(0, every.size)
    return engine.flattened(codes), engine.flattened(flags)


class Lookup:
    """Results at every code of a format, which are made once more than a few are asked for."""

    def __init__(self, name: str, fmt: FormatSpec, rule: Rule) -> None:
        self._of, self._left = (name, fmt, rule), SPARED
        self._made: tuple[engine.Codes, engine.Codes] | None = None

    def ready(self, size: int) -> tuple[engine.Codes, engine.Codes] | None:
        """Codes and flags; None if so many are to be computed by themselves."""
        if self._made is None and size > min(self._left, FEW):
            self._made = result_table(*self._of)
        return self._made

    def taken(self, size: int) -> tuple[engine.Codes, engine.Codes] | None:
        """The same, for what does so many."""
        self._left -= size
        return self.ready(size)


lookup = lru_cache(maxsize=512)(Lookup)
"""One for each function, format and rule."""


def _rounding(job: Job) -> Callable[[int, int, Floats], int]:
    """What rounds values of the elements start ... stop."""
    if job.drawn is not None:
        return _drawn_rounding(job, job.drawn)
    known = engine.numbers(job.source, job.fmt, job.rule, CARRIER64)
    a, b, c = job.operands_for()
    codes, raises = job.codes, job.raises
    loop = by_bytes(engine.loops().elementwise("given", engine.way_of(job.fmt, job.rule), known[0].dtype))

    def work(start: int, stop: int, values: Floats) -> int:
        span = slice(start, stop)
        return int(loop(a[span], b[span], c[span], codes[span], raises[span], values, *known))

    return work


def _drawn_rounding(job: Job, drawn: engine.Draw) -> Callable[[int, int, Floats], int]:
    """`_rounding`, stochastically. What the values, cut as they are, leave open is found to more bits, an element at a time."""
    loop = drawing(job, "given")
    rule = job.rule._replace(value_bits=_kept(job))
    known = engine.numbers(job.source, job.fmt, rule, CARRIER64)
    operands, codes, raises = job.operands_for(), job.codes, job.raises

    def work(start: int, stop: int, values: Floats) -> int:
        span = slice(start, stop)
        spans = *(x[span] for x in operands), codes[span], raises[span], values
        more, unknown = np.full(values.size, math.nan), np.zeros(values.size, np.bool_)
        address = drawn.key, drawn.stream, drawn.at(start), drawn.span(start, stop), drawn.width
        seen = loop(*spans, more, unknown, *known, *address)
        return seen | again(start + np.flatnonzero(unknown), values[unknown]) if unknown.any() else seen

    def again(places: engine.Codes, values: Floats) -> int:
        parts = [x[places] for x in operands]
        more = what_is_lacking(job, places, values)
        redone, raised = np.empty(places.size, codes.dtype), np.empty(places.size if job.each else 0, np.uint8)
        handed = engine.bits_at(drawn, places)
        spans = *parts, redone, raised, values, more, np.zeros(places.size, np.bool_)
        seen = loop(*spans, *known, np.uint64(0), np.uint64(0), 0, handed, drawn.width)
        codes[places] = redone
        if job.each:
            raises[places] = raised
        return seen

    return work


def _looked_up(job: Job, a: engine.Codes, table: engine.Codes, raised: engine.Codes) -> Work:
    """The work of a function whose results at each code of an operand are in a table."""
    gather = engine.loops().gathering(job.each)
    codes, raises = job.codes, job.raises

    def work(start: int, stop: int) -> int:
        return int(gather(a[start:stop], codes[start:stop], raises[start:stop], table, raised))

    return work


def _computed(job: Job, spare: bool = False) -> Work:
    """The work of a function chunk by chunk: operands decoded (or values looked up, but where that is spared), then values, then codes."""
    function, daz = FUNCTIONS[job.operation], job.rule.daz
    numbers = carrier_numbers(job.source, daz)
    table = table_of(job.operation, job.source, daz) if _tabulated(job) and not spare else None
    kept = _kept(job)
    decode = engine.spared(engine.loops().decoding())
    rounding = _rounding(job)

    def work(start: int, stop: int) -> int:
        seen = 0
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            parts = [x[first:last] for x in job.operands]
            if table is not None:
                values = table[parts[0]]
            else:
                operands = tuple(np.empty(last - first) for _ in parts)
                for part, place in zip(parts, operands, strict=True):
                    decode.taken(place.size)(part, place, *numbers)
                values = values_at(function, operands, kept, numbers)
            seen |= rounding(first, last, values)
        return seen

    return work


def _may_be_tabulated(job: Job) -> bool:
    """Whether the format is short enough for tables; in plain Python they would take longer to make than anybody waits."""
    return job.source.width <= TABLE_BITS and not engine.loops().jit.DISABLED


def _tabulated(job: Job) -> bool:
    """Whether there is a table of values at every code of the operand."""
    return len(job.operands) == 1 and _may_be_tabulated(job)


def _kept(job: Job) -> int:
    """Significant bits that values keep.

    Stochastic rounding meets what its random bits leave open less often the more there are, and what the library leaves in doubt the
    fewer there are: midway, both are rare. Other ways to cut a fraction than the usual one must see it (`spec.SR_REACH`).
    """
    if job.drawn is None:
        return KEPT
    if _tabulated(job) or job.rule.sr_method != "truncate":
        return KEPT_IN_TABLES
    return max(KEPT, (LIBRARY_BITS + job.fmt.mantissa_bits + 1) // 2)


def work(job: Job) -> Work:
    """The work of a function on codes."""
    name, width, size = job.operation, job.source.width, job.codes.size
    beside = _beside(job.operands)
    if name == "pow" and beside == (1, code_of_two(job.source)):
        return engine.way(job._replace(operation="mul", operands=[job.operands[0]] * 2))
    if job.drawn is not None or not _may_be_tabulated(job):
        return _computed(job)
    if len(job.operands) == 1:
        tables = lookup(name, job.fmt, job.rule).taken(size)
        return _computed(job, True) if tables is None else _looked_up(job, job.operands[0], *tables)
    if beside is not None and _pays(name, job.fmt, job.rule, beside, size):
        return _looked_up(job, job.operands[1 - beside.place], *result_table(name, job.fmt, job.rule, beside))
    if 2 * width <= TABLE_BITS and 2 * size >= 1 << 2 * width:
        return engine.pairs_work(job, _computed)
    return _computed(job)


LEAST_COUNTED = 1 << 12  # elements that take as long as a small call does without any


@lru_cache(maxsize=256)
def _asked_for(name: str, fmt: FormatSpec, rule: Rule, beside: Beside) -> list[int]:
    """How many results have been asked for, in a list of one number."""
    return [0]


def _pays(name: str, fmt: FormatSpec, rule: Rule, beside: Beside, size: int) -> bool:
    """Whether a table of results beside a code pays: so many have been asked for that half of the table would have been made."""
    asked = _asked_for(name, fmt, rule, beside)
    asked[0] += max(size, LEAST_COUNTED)
    return 2 * asked[0] >= 1 << fmt.width


def _beside(operands: list[engine.Codes]) -> Beside | None:
    """Which of two operands is the same for all elements, the second if both are."""
    if len(operands) == 2:
        for place in (1, 0):
            x = operands[place]
            if x.size and x[0] == x[-1] and (x == x[0]).all():
                return Beside(place, int(x[0]))
    return None


def code_of_two(fmt: FormatSpec) -> int | None:
    """The code of 2 where it is a normal number: a square is a product, in every format and mode, with the same flags."""
    two = (fmt.bias + 1) << fmt.mantissa_bits
    return two if fmt.bias >= 0 and two <= fmt.largest else None
