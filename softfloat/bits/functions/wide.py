"""Functions in wide formats: every value by mpmath, to so many bits that all modes are decided (Ziv's strategy), an element at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from softfloat import engine
from softfloat.bits.functions.bounds import Bounds, Floats
from softfloat.bits.functions.precise import libmp
from softfloat.bits.functions.table import FUNCTIONS, Function
from softfloat.bits.functions.values import decided, fraction_of, mpmath_lock
from softfloat.bits.numbers import Word, exact_word
from softfloat.engine import Codes, Draw, Job, Work, elementwise
from softfloat.formats import Format, float64
from softfloat.kernels.spec import INVALID

__all__ = ["WIDE_FUNCTIONS", "work"]

KEPT = 128  # bits of values, the last one sticky: what the wide loops round
FARTHEST = 1 << 14  # binades from 1: further than any format and its random bits


def _hypot_bounds(x: Floats, y: Floats) -> Bounds:
    near = np.hypot(x, y)
    return near, np.zeros_like(near), np.where(np.isfinite(near), near, 0.0)


def _root_of_squares(x: float, y: float) -> Fraction:
    """The length of (x, y) to more bits than are kept, the last one sticky."""
    unit = Fraction(float64.smallest_subnormal)
    square = int(Fraction(x) / unit) ** 2 + int(Fraction(y) / unit) ** 2 << 2 * KEPT
    root = math.isqrt(square)
    return Fraction(2 * root + (root * root != square)) * unit / (2 << KEPT)


WIDE_FUNCTIONS = {**FUNCTIONS, "hypot": Function(_hypot_bounds, lambda *_: (), rational=_root_of_squares)}


def _word(name: str, function: Function, operands: tuple[float, ...], near: float, more: float, error: float) -> Word:
    """A value that is neither NaN nor of a pole."""
    special = any(x == 0.0 or not math.isfinite(x) for x in operands)
    if (special and math.isinf(near)) or (near == more == error == 0.0 and (special or operands[0] == 1.0)):
        return exact_word(near)
    if special and error == 0.0:
        return exact_word(Fraction(near) + Fraction(more))
    if special and name in ("atan", "acos", "atan2"):
        with mpmath_lock:  # quarters of pi: mpmath knows no signs of zeros
            sign, turn, exponent, _ = libmp().mpf_pi(KEPT)
        return exact_word((2 * Fraction(int(turn)) + 1) * Fraction(2) ** (exponent - 1) * round(near / math.pi * 4) / 4)
    found = fraction_of(function, operands, near, more, error)
    if found is not None:
        return exact_word(found)
    with mpmath_lock:
        sign, significand, exponent = decided(function.precise, operands, KEPT)
    place = min(max(exponent + KEPT - 1, -FARTHEST), FARTHEST)
    return significand >> 64, significand & (1 << 64) - 1, 4 * place + 2 * (sign < 0)


def work(fmt: Format, job: Job) -> Work:
    """The work of a function on codes of a wide format, some twenty thousand a second."""
    name, rule = job.operation, job.rule
    function = WIDE_FUNCTIONS[name]

    def some(start: int, stop: int) -> int:
        given = [x[start:stop] for x in job.operands]
        doubles = [engine.widened(x, fmt, rule.daz) for x in given]
        operands = [x.view(np.float64) for x in doubles]
        if function.symmetric:
            operands = [np.maximum(*operands), np.minimum(*operands)]
        with np.errstate(all="ignore"):
            near, more, error = (np.broadcast_to(x, stop - start) for x in function.bounds(*operands))
        number, finite, signals = np.ones(near.size, bool), np.ones(near.size, bool), np.zeros(near.size, bool)
        for x, codes in zip(operands, given, strict=True):
            number, finite = number & ~np.isnan(x), finite & np.isfinite(x)
            signals = signals | engine.is_signalling(codes, fmt)
        unit = (np.abs(operands[0]) == 1.0) | np.logical_or.reduce([x == 0.0 for x in operands])
        pole, invalid = finite & np.isinf(near) & unit, number & np.isnan(near)
        nan = signals | (~number & np.isnan(near))
        drawn = None if job.drawn is None else engine.bits_at(job.drawn, np.arange(start, stop))

        def settled(rows: Codes, operation: str, *operands: Codes, source: Format = float64) -> None:
            if not rows.any():
                return
            address = None if job.drawn is None or drawn is None else Draw(0, 0, job.drawn.width, drawn[rows])
            own = rule._replace(handed_bits=address is not None, daz=False)
            made[rows], flags[rows] = elementwise.settled(operation, operands, source.spec, fmt, own, address)

        made, flags = np.empty(near.size, fmt.dtype), np.empty(near.size, np.uint8)
        plain = ~(pole | invalid | nan)
        table = [x[plain].tolist() for x in (near, more, error, *operands)]
        words = [
            _word(name, function, tuple(x), *known)
            for *known, x in zip(*table[:3], zip(*table[3:], strict=True), strict=True)
        ]
        kinds = np.uint64, np.uint64, np.int64
        settled(plain, "convert_exact", *(np.array([w[i] for w in words], kind) for i, kind in enumerate(kinds)))
        settled(pole, "div", np.copysign(1.0, near[pole]).view(np.uint64), np.zeros(pole.sum(), np.uint64))
        settled(invalid, "div", *[np.zeros(invalid.sum(), np.uint64)] * 2)
        settled(nan, "add" if len(given) > 1 else "sqrt", *(x[nan] for x in given), source=fmt)
        if rule.policy.any_nan_signals:
            flags |= np.where(number, np.uint8(0), np.uint8(INVALID))
        job.codes[start:stop] = made
        if job.each:
            job.raises[start:stop] = flags
            return 0
        return int(np.bitwise_or.reduce(flags, initial=0))

    return some
