"""Floats rounded to floats in one pass, for those who want no codes; `softfloat.kernels.values` has the loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine import elementwise
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded
from softfloat.engine.draws import NO_BITS, Draw, check_block, draw, refuse_random_bits
from softfloat.engine.elementwise import NO_CODES
from softfloat.engine.parameters import FLOAT32, check_reach, rule_for, spared, values
from softfloat.engine.results import finished, flag_bytes, outputs
from softfloat.engine.threads import SMALLEST_SHARE, share
from softfloat.environments import Rounding, Settings, Tininess
from softfloat.formats import Format
from softfloat.frozen import hash_kept
from softfloat.kernels import targets
from softfloat.kernels.spec import CARRIER64, FLOAT64, Rule
from softfloat.positions import Position


@hash_kept
@dataclass(frozen=True)
class NumberSet:
    """Which numbers a rounding leads to, and a format that has their kind of infinities, NaNs and zeros.

    `fmt` is the format that they are; None of those that have no codes.
    """

    p: int
    emin: int
    emax: int
    subnormals: bool
    largest: float
    kind: Format
    fmt: Format | None

    @property
    def fits_single(self) -> bool:
        """Whether float32 has them all."""
        least = self.emin - self.p + 1 if self.subnormals else self.emin
        return self.p <= CARRIER_P and self.emax <= 127 and least >= (-149 if self.subnormals else -126)


CARRIER_P = 24
SIGNED, HIDDEN_BIT = -1 << 63, 52

BEYOND = "overflow_positive", "overflow_negative", "infinity_positive", "infinity_negative"
"""What becomes of numbers beyond the largest, and of infinities."""


def _bits(x: float) -> int:
    return int(np.float64(x).view(np.int64))


def _single_bits(code: int) -> int:
    """The bits of the least float32 that is no less than a positive float64 of some bits. No float is made: a host may flush subnormals."""
    below = max(897 - (code >> HIDDEN_BIT), 0)
    if below:
        return -(-(code & (1 << HIDDEN_BIT) - 1 | 1 << HIDDEN_BIT) >> 29 + below)
    return min(-(-(code - (896 << HIDDEN_BIT)) >> 29), 0xFF << 23)


def _part(threshold: float) -> int:
    """What takes significands up from a threshold on, as `kernels.values.part_of` has it: bits to shift by, and a last bit that is added."""
    shift = 0 if threshold < 0.5 else 1 if threshold < 1.0 else 63
    return 2 * shift + (threshold == 0.5)


def _steps(numbers: NumberSet, rule: Rule, single: bool, least: int, tiny: list[int]) -> dict[str, int]:
    """What the loops know of steps; `least` and `tiny` are bits of float64."""
    narrow = single and numbers.fits_single and not rule.rounding.draws
    kind, codes, least_exponent = (np.float32, np.int32, -126) if narrow else (np.float64, np.int64, -1022)
    first = numbers.emin + (0 if numbers.subnormals else numbers.p - 1)
    if first >= 0:  # smaller numbers would be subnormal, counted in steps
        least = max(least, _bits(math.ldexp(1.0, min(first, -least_exponent) + least_exponent)))

    def code(x: float) -> int:
        return int(kind(x).view(codes))

    serves = numbers.emin >= least_exponent and first <= -least_exponent
    return {
        "top": min(code(numbers.largest), code(math.ldexp(1.0, 1 - least_exponent)) - 1) if serves else -1,
        "least": _single_bits(least) if single and least else least,
        "normal": code(math.ldexp(1.0, numbers.emin)) if serves else 0,
        "steps": code(math.ldexp(1.0, numbers.p - 1)),
        "sure_positive": _single_bits(tiny[0]) if narrow else tiny[0],
        "sure_negative": _single_bits(tiny[1]) if narrow else tiny[1],
    }


@lru_cache(maxsize=1024)
def lattice(numbers: NumberSet, rule: Rule, single: bool) -> Codes:
    """What the loops know; `single`: operands are float32."""
    target, kind = targets.target(numbers.kind.spec, rule, CARRIER64), numbers.kind
    sides = (targets.thresholds(rule.rounding, negative, CARRIER64) for negative in (False, True))
    ups = [[_part(threshold) for threshold in side] for side in sides]
    dropped, lowest = 53 - numbers.p, numbers.emin + CARRIER64.bias
    smallest_normal, largest = lowest << HIDDEN_BIT, _bits(numbers.largest)
    unbounded = dropped if lowest > 1 else max(dropped - 1, 0)

    def value(code: int) -> int:
        found = float(decoded(np.array([code], kind.dtype), kind)[0])
        return _bits(math.copysign(numbers.largest, found) if abs(found) == kind.max else found)

    flush_below = 0 if not rule.daz else _bits(2.0**-126 if single else 2.0**-1022)
    least = max(flush_below, smallest_normal if rule.ftz else 0)
    sure = smallest_normal - (1 << unbounded)
    rest = 0 if rule.tininess is Tininess.BEFORE else (1 << unbounded) - 1
    tiny = [smallest_normal - int(values().part_of(rest, odd)) for _, odd in ups]
    steps = _steps(numbers, rule, single, least, [sure, sure] if rule.rounding.draws else tiny)
    return np.array(
        values().Lattice(
            up_positive_even=ups[0][0],
            up_positive_odd=ups[0][1],
            up_negative_even=ups[1][0],
            up_negative_odd=ups[1][1],
            dropped=dropped,
            gap=0 if numbers.subnormals else HIDDEN_BIT - dropped,
            lowest=lowest,
            smallest_normal=smallest_normal,
            smallest=_bits(math.ldexp(1.0, numbers.emin - (numbers.p - 1 if numbers.subnormals else 0))),
            largest=largest,
            flush_below=flush_below,
            tiny_positive=tiny[0],
            tiny_negative=tiny[1],
            unbounded=unbounded,
            early=-1 if rule.tininess is Tininess.BEFORE else 0,
            ftz=-1 if rule.ftz else 0,
            zero_sign=SIGNED if kind.signed_zero else 0,
            **{name: value(getattr(target, name)) for name in BEYOND},
            overflow_flags=target.overflow_flags,
            infinity_flags=target.infinity_flags,
            nan=value(target.nan) if kind.has_nan else largest,
            nan_flags=target.nan_flags,
            nan_signals=target.any_nan_signals,
            jam=-1 if rule.rounding is Rounding.UP_OR_DOWN else 0,
            **steps,
        ),
        np.int64,
    )


def served(numbers: NumberSet, settings: Settings) -> bool:
    """Whether one pass rounds under such settings; where it does not, codes come in between."""
    fmt, rule = numbers.kind, rule_for(settings, numbers.kind, True, 1)
    return fmt.signed and fmt.zero and rule.restated


Ready = Callable[[Codes, Codes, int], int]
"""ready(x, out, stream) -> flags OR-ed together, on flat arrays of one length; x is read-only, and lies elsewhere than `out` where bits are drawn."""


def viewed(x: Codes) -> Codes:
    """Floats as loops take them: float32 as its bits."""
    return x.view(np.int32) if x.dtype == np.float32 else x


@lru_cache(maxsize=512)
def ready_values(numbers: NumberSet, settings: Settings, single: bool) -> Ready | None:
    """What rounds numbers, everything but arrays settled; None where there is more to settle."""
    if not served(numbers, settings):
        return None
    draws = settings.rounding.draws
    if draws and (settings.generator != "philox4x32" or settings.seed is None):
        return None
    address = draw(settings, None, 0, ()) if draws else None
    loop, known = _loop(numbers, settings, single, single and numbers.fits_single, False, address)

    def some(x: Codes, out: Codes, stream: int, start: int) -> int:
        random = () if address is None else (address.key, np.uint64(stream), start, NO_BITS, address.width)
        return loop(x.size, x, out, NO_CODES, known, *random)

    def ready(x: Codes, out: Codes, stream: int) -> int:
        flat, made = viewed(x), viewed(out)
        if x.size < 2 * SMALLEST_SHARE:
            return some(flat, made, stream, 0)
        return share(x.size, lambda start, stop: some(flat[start:stop], made[start:stop], stream, start))

    return ready


def _loop(
    numbers: NumberSet, settings: Settings, single: bool, narrow: bool, each: bool, drawn: Draw | None
) -> tuple[Callable[..., int], Codes]:
    """The loop from float32 (`single`) or float64 to the same (`narrow`), as `Spared` runs it, and what it knows of numbers."""
    mode = Rounding.NEAREST_EVEN if each and not settings.rounding.draws else settings.rounding
    loop = values().rounding_values(single, narrow, not numbers.kind.signed_zero, not numbers.subnormals, mode, each)
    random = () if drawn is None else (drawn.width, bool(drawn.handed.size))
    return spared(loop).run, lattice(numbers, rule_for(settings, numbers.kind, True, *random), single)


def rounded_values(
    x: Codes,
    numbers: NumberSet,
    settings: Settings,
    *,
    dtype: np.dtype[Any],
    out: Any,
    flags: str,
    stream: int,
    position: Position | None,
    random_bits: Any,
) -> tuple[Any, Any]:
    """(numbers of `dtype`, flags) of an array of float64 or float32."""
    if not served(numbers, settings):
        call = {"flags": flags, "stream": stream, "position": position, "random_bits": random_bits}
        return _by_codes(x, numbers, settings, dtype, out, call)
    check_block("round", position, x.shape)
    draws = settings.rounding.draws
    read = [*([] if out is x and not draws else [x]), *([] if random_bits is None else [np.asarray(random_bits)])]
    result, raised = outputs(out, flags, x.shape, dtype, read)
    flat, raises, each = np.ascontiguousarray(x).reshape(-1).view(), flag_bytes(raised), raised is not None
    flat.flags.writeable = False
    single, narrow = x.dtype == np.float32, dtype == np.float32
    flat, made, drawn = viewed(flat), viewed(result.flat), None
    if draws:
        drawn = draw(settings, random_bits, stream, x.shape, position)
    else:
        refuse_random_bits(settings, random_bits)
    loop, known = _loop(numbers, settings, single, narrow, each, drawn)

    def work(start: int, stop: int) -> int:
        span = slice(start, stop)
        random = () if drawn is None else drawn.address(start, stop)
        return loop(stop - start, flat[span], made[span], raises[span], known, *random)

    return finished(result, raised, share(flat.size, work if drawn is None else drawn.cut(work)))


def _by_codes(
    x: Codes, numbers: NumberSet, settings: Settings, dtype: np.dtype[Any], out: Any, call: dict[str, Any]
) -> tuple[Any, Any]:
    """The same by way of codes."""
    fmt = numbers.fmt
    if fmt is None:
        raise ValueError(
            f"projection={settings.projection!r} with sr_method={settings.sr_method!r} is for a softfloat.Format or the name of one, "
            "whose numbers have codes; accepted here: projection='ieee', sr_method='truncate'"
        )
    if settings.rounding.draws and call["random_bits"] is None:
        check_reach(settings, fmt, settings.random_width)
    source, kind = (np.uint32, FLOAT32) if x.dtype == np.float32 else (np.uint64, FLOAT64)
    codes, raised = elementwise.run("convert", [x.view(source)], ["x"], kind, fmt, settings, out=None, **call)
    result, _ = outputs(out, "any", x.shape, dtype, [])
    result.flat[...] = decoded(np.asarray(codes), fmt).reshape(-1)
    return result.finish(), raised
