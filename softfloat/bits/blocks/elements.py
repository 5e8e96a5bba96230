"""Elements of blocks: their values and codes, and how numbers become fixed point."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import engine
from softfloat.bits.blocks.scales import FLOAT32, Reals
from softfloat.bits.numbers import to_integer
from softfloat.blocks import Fixed
from softfloat.engine import Codes, Options
from softfloat.formats import Format
from softfloat.status import Flags

INEXACT, OVERFLOW, INVALID = int(Flags.INEXACT), int(Flags.OVERFLOW), int(Flags.INVALID)


def every_flag(flags: Codes) -> int:
    """Flags OR-ed together."""
    return int(np.bitwise_or.reduce(flags, axis=None)) if flags.size else 0


def element_values(codes: Codes, element: Format | Fixed) -> Reals:
    """What elements stand for without their scales."""
    return np.asarray(element.values[codes] if isinstance(element, Fixed) else engine.decoded(codes, element))


@lru_cache(maxsize=64)
def codes_of_signs(element: Fixed) -> Codes:
    """What an element calls each pattern of a sign and a magnitude."""
    patterns = np.arange(1 << element.bits)
    size, negative = patterns & element.largest, (patterns & element.sign_bit) != 0
    return element.codes_of(np.where(negative, -size, size), negative)


def negative_zero(element: Format | Fixed) -> int:
    """The code of -0; of 0, where there is none."""
    return element.sign_bit if isinstance(element, Format) or element.coding == "sign_magnitude" else 0


TINY = 2.0**-100
"""As good as any smaller number: every rounding sees that it is not zero, and no more."""


def fixed_codes(scaled: Reals, element: Fixed, options: Options) -> tuple[Codes, Any]:
    """Codes of scaled numbers in fixed point: rounded to integers as `to_integer` rounds, then clamped with OVERFLOW and INEXACT."""
    counted = scaled * 2.0**element.fraction_bits
    limit, sizes = float(4 * element.sign_bit), np.abs(counted)
    usual = ((sizes <= limit) & ((sizes >= TINY) | (sizes == 0))).all()
    signs, numbers = np.signbit(counted), counted
    if not usual:
        nan = np.isnan(counted)  # to the largest, as in formats without one
        sizes = np.where(nan, limit, np.where(sizes == 0, 0.0, np.clip(sizes, TINY, limit)))
        signs &= ~nan
        numbers = np.where(signs, -sizes, sizes)
    given = {name: value for name, value in options.items() if name not in ("flags", "overflow", "daz", "ftz")}
    singles = numbers.astype(np.float32).view(np.uint32)  # none of which is subnormal, or beyond float32
    integers, flags = to_integer(singles, FLOAT32, np.int64, flags="each", **given)  # type: ignore[arg-type]
    integers, flags = np.asarray(integers), np.asarray(flags)
    kept = np.clip(integers, element.least, element.largest)
    beyond = kept != integers
    if beyond.any():
        flags = np.where(beyond, np.uint8(INEXACT | OVERFLOW), flags)
    if not usual:
        flags = np.where(nan, INVALID, np.where(np.isinf(counted), 0, flags)).astype(np.uint8)
    codes = element.codes_of(kept, signs)
    return codes, flags if options.get("flags") == "each" else every_flag(flags)
