"""What codes stand for."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softfloat.engine import arguments, parameters, threads
from softfloat.engine.arguments import Codes
from softfloat.formats import Format
from softfloat.kernels.spec import CARRIER64, FLOAT64, Rule

PLAIN = Rule()
SMALLEST_NORMAL, SINGLE_BIAS = 2.0**-126, 127  # of float32


def decoded(codes: Codes, fmt: Format, rule: Rule = PLAIN, carrier: type = np.float64) -> Codes:
    """The values of codes, of their shape; `rule` says whether subnormals count as zeros. A narrower `carrier` must hold them."""
    values: Codes = np.empty(codes.size, carrier)
    numbers = parameters.numbers(fmt.spec, fmt.spec, rule, CARRIER64, wide=True)
    flat, loop = arguments.flattened(codes), parameters.loops().decoding()

    def work(start: int, stop: int) -> int:
        parameters.spared(loop).run(stop - start, flat[start:stop], values[start:stop], *numbers)
        return 0

    threads.share(codes.size, work)
    return values.reshape(codes.shape)


def fits_single(fmt: Format) -> bool:
    """Whether float32 has all numbers of a format."""
    return fmt.p <= parameters.FLOAT32.mantissa_bits + 1 and fmt.max < 2.0**128 and fmt.smallest_subnormal >= 2.0**-149


def in_single(codes: Codes, fmt: Format, daz: bool) -> Codes | None:
    """The same numbers as codes of float32; None where some of the format's are not normal there, or one of these is NaN."""
    if not fits_single(fmt) or fmt.smallest_subnormal < SMALLEST_NORMAL or np.any(arguments.is_nan(codes, fmt)):
        return None
    return decoded(codes, fmt, Rule(daz=daz), np.float32).view(np.uint32)


TABULATED = 16
"""Formats of so many bits have a table of their codes in float64."""


def widened(codes: Codes, fmt: Format, daz: bool) -> Codes:
    """The same numbers as codes of float64. NaNs keep sign, payload and whether they signal."""
    if fmt.spec == FLOAT64 and not daz:
        return codes
    if fmt.bits > TABULATED:
        return _widened(codes, fmt, daz)
    return _table(fmt, daz)[codes]


@lru_cache(maxsize=64)
def _table(fmt: Format, daz: bool) -> Codes:
    return _widened(np.arange(1 << fmt.bits, dtype=fmt.dtype), fmt, daz)


def _widened(codes: Codes, fmt: Format, daz: bool) -> Codes:
    found = decoded(codes, fmt, Rule(daz=daz)).view(np.uint64)
    nans = arguments.is_nan(codes, fmt)
    if np.any(nans):
        code = codes[nans].astype(np.uint64)
        negative = (code & np.uint64(fmt.sign_bit)) != 0
        fraction = np.full(code.shape, FLOAT64.quiet, np.uint64)
        if fmt.spec.quiet:
            below = code & np.uint64((1 << fmt.mantissa_bits) - 1)
            fraction = below << np.uint64(FLOAT64.mantissa_bits - fmt.mantissa_bits)
        found[nans] = fraction | np.uint64(FLOAT64.infinity) | (negative.astype(np.uint64) << np.uint64(63))
    return found


READINGS = {parameters.FLOAT16: "half", parameters.BFLOAT16: "bfloat16", parameters.FLOAT32: "number"}
NO_TABLE: Codes = np.empty(0, np.float32)


def _single(codes: Codes, fmt: Format, daz: bool) -> Codes | None:
    """The numbers of codes as float32, or None if it does not hold them."""
    values = decoded(codes, fmt, Rule(daz=daz))
    with np.errstate(over="ignore"):
        single: Codes = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else None


@lru_cache(maxsize=64)
def reading_of(fmt: Format, daz: bool) -> tuple[str, Codes] | None:
    """(reading, what it takes) of a format: by how codes are made, or by a table; None of more than 16 bits that are unusual, or if float32 does not
    hold its numbers."""
    spec, mantissa = fmt.spec, fmt.mantissa_bits
    usual = not parameters.is_unusual(spec) and spec.lone_nan < 0 and fits_single(fmt)
    if fmt.bias == SINGLE_BIAS and (daz or fmt.bits > TABULATED):  # subnormal numbers are zeros, or float32's
        quantum, normal = 0.0, 1 << mantissa if daz else 0
    else:
        quantum, normal = 0.0 if daz else fmt.smallest_subnormal, 1 << mantissa
        usual = usual and fmt.smallest_subnormal >= SMALLEST_NORMAL
    if not usual:
        known = _single(np.arange(1 << fmt.bits, dtype=fmt.dtype), fmt, daz) if fmt.bits <= TABULATED else None
        return None if known is None else ("table", known)
    numbers = {
        "magnitude": fmt.sign_bit - 1, "sign": fmt.sign_bit, "to_sign": 32 - fmt.bits, "to_number": 23 - mantissa,
        "rebias": (SINGLE_BIAS - fmt.bias) << 23, "normal": normal, "quantum": int(np.float32(quantum).view(np.int32)), "special": fmt.max_code + 1,
    }  # fmt: skip
    return "narrow", np.array([numbers[name] for name in parameters.sums().NARROW], np.int64).astype(np.uint32).view(
        np.float32
    )


def readable(codes: Codes, fmt: Format, daz: bool) -> tuple[str, Codes, Codes] | None:
    """(reading, codes, table) as generated loops read these codes; None if float32 does not hold their numbers, and they are not float64's."""
    if fmt.spec == FLOAT64 and not daz:
        return "number", codes.view(np.float64), NO_TABLE
    reading = READINGS.get(fmt.spec, "")
    if reading and not daz and (reading != "half" or parameters.available()[1]):
        return reading, codes.view(np.float32) if reading == "number" else codes, NO_TABLE
    known = reading_of(fmt, daz)
    if known is not None:
        return known[0], codes, known[1]
    single = _single(codes, fmt, daz)
    return None if single is None else ("number", single, NO_TABLE)
