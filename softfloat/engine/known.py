"""What the faster loops are told: numbers that their steps know of formats, and what operands span."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.engine import parameters, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FLOAT32, steps, tiles
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER32, CARRIER64, Rounding

if TYPE_CHECKING:
    from softfloat.engine.programs import Site

NORMAL = -126  # exponent of float32's smallest normal number: no bit of an operand, product or sum may lie below
SCALED_NORMAL = -95  # rounding by quanta scales by them, and they must be normal as well


def beyond(site: Site) -> tuple[float, float]:
    """What overflows of either sign become; an infinity stands for a NaN that it turns into at the end."""
    fmt = site.format
    target = spec.target(fmt.spec, site.rule, CARRIER64)
    other = float(np.inf if fmt.infinities else np.nan)
    positive = float(fmt.max) if target.overflow_positive == fmt.spec.largest else other
    negative = -float(fmt.max) if target.overflow_negative == fmt.spec.largest | target.sign else -other
    return positive, negative


def _single_bits(x: float) -> int:
    """The code of a float32 number."""
    return int(np.float32(x).view(np.uint32))


@lru_cache(maxsize=512)
def narrow_numbers(site: Site) -> Any:
    """What steps on float32 know of a stage."""
    fmt, rule = site.format, site.rule
    positive, negative = beyond(site)
    undecided = 2.0**-16 if site.width > 16 else 0.0
    if fmt.spec == FLOAT32:
        return steps().Numbers(
            largest=float(fmt.max), beyond_positive=positive, beyond_negative=negative, undecided=undecided
        )
    target = spec.target(fmt.spec, rule, CARRIER32 if parameters.fits_narrow_carrier(fmt.spec) else CARRIER64)
    by_quanta = rule.rounding is not Rounding.NEAREST_EVEN
    lowest = max(fmt.emin, SCALED_NORMAL if by_quanta else NORMAL)
    taken = FLOAT32.mantissa_bits - fmt.mantissa_bits
    return steps().Numbers(
        tiny=_single_bits(target.tiny_positive),
        tiny_positive=target.tiny_positive,
        tiny_negative=-target.tiny_negative,
        normal=float(fmt.tiny),
        largest=float(fmt.max),
        beyond_positive=positive,
        beyond_negative=negative,
        lowest=(127 + lowest) << 23,
        magic=taken << 23 | 1 << 22,
        spacing=fmt.mantissa_bits << 23,
        per_quantum=(2 * 127 + fmt.mantissa_bits) << 23 if by_quanta else 0,
        sliver=_single_bits(fmt.tiny - fmt.smallest_subnormal / 2) if fmt.emin >= SCALED_NORMAL else 0,
        below=(1 << taken) - 1,
        tie=1 << (taken - 1) if rule.rounding.nearest else 0,
        noise_up=max(taken - 16, 0),
        noise_down=max(16 - taken, 0),
        noise_unit=1 << max(taken - 16, 0),
        undecided=undecided,
    )


def lows_of(*panels: Codes) -> Codes:
    """The least numbers of each turn but zero: those of one array of panels, whose last axis is what meets at a turn, after those of the other."""
    sizes = [math.prod(x.shape[:-1]) for x in panels]
    low, start = np.empty(sum(sizes), panels[0].dtype), 0
    for x, size in zip(panels, sizes, strict=True):
        tiles().least()(x.reshape(size, -1), low[start : start + size])
        start += size
    return low


def spans_of(panels: Codes, stretch: int) -> Codes:
    """The smallest lowest bit and the largest magnitude of each stretch of k of each panel, (panels, stretches, 2), of panels (..., k, size)."""
    length, size = panels.shape[-2:]
    whole = panels.reshape(-1, length, size)
    found = np.empty((len(whole), -(-length // stretch), 2))

    def work(start: int, stop: int) -> int:
        tiles().spans()(start, stop, whole, stretch, found)
        return 0

    threads.share_units(len(whole), work, length * size)
    return found


def growth(count: float, fmt: Format) -> float:
    """What so many roundings, each by less than a unit in the last place, can make of a sum of normal numbers."""
    return math.exp(min(count * fmt.eps, 700.0))
