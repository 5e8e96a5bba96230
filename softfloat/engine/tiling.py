"""Which dot products the faster loops of `kernels.tiles` serve, and how their operands are laid out for them.

A way is chosen twice: by the program (formats, roundings, how products meet the sum), and by the operands, whose values
must be finite and of a range in which nothing leaves the carrier's normal numbers. What is not served goes the plain way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softfloat.engine import elementwise, parameters, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import BFLOAT16, FLOAT16, FLOAT32, available, dots, tiles
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, InfiniteInput, Overflow, Rounding

if TYPE_CHECKING:
    from softfloat.engine.programs import Program, Site


NORMAL = -126  # exponent of float32's smallest normal number: no bit of an operand, product or sum may lie below
SMALLEST = -149  # exponent of float32's smallest number: what operands may be multiples of
STOCHASTIC_NORMAL = -95  # stochastic rounding scales by quanta, which must be normal as well
LONGEST = 64  # products of a turn, which are written out in code
SUBTLEST = 100  # bits between the largest sum and the smallest bit, for errors of additions to add up exactly


class Extent(NamedTuple):
    """What the values of an operand span: exponents of the smallest bit and just above the largest number."""

    low: int
    high: int
    finite: bool
    empty: bool  # nothing but zeros


def extent(values: Codes, fmt: Format) -> Extent:
    """The span of values of a format."""
    least, greatest, finite = dots().extent()(values.reshape(-1))
    return extent_of(least, greatest, finite, fmt)


def extent_of(least: float, greatest: float, finite: bool, fmt: Format) -> Extent:
    """The span of values of a format between these magnitudes."""
    if not greatest:
        return Extent(0, 0, bool(finite), True)
    return Extent(
        max(math.frexp(least)[1] - 1, fmt.emin) - fmt.mantissa_bits, math.frexp(greatest)[1], bool(finite), False
    )


@dataclass(frozen=True, eq=False)
class Way:
    """A faster loop: its carrier, products of a turn, and what its operands must fulfil beyond being finite."""

    carrier: type
    kind: str
    options: tuple[Any, ...]
    group: int
    planes: int
    lowest: int
    site: Site
    highest: int = 126  # exponent above the largest product
    bounded: bool = False  # whether no sum may overflow


@lru_cache(maxsize=512)
def _narrow_family(fmt: spec.FormatSpec) -> str:
    if fmt == FLOAT16 and available()[1]:
        return "half"
    if fmt == BFLOAT16:
        return "bfloat16"
    if fmt == FLOAT32:
        return "float32"
    return "narrow" if parameters.fits_narrow_carrier(fmt) and not parameters.is_unusual(fmt) else ""


def choose(planned: Program) -> Way | None:
    """The way that serves a program, if its operands allow."""
    accumulator = planned.accumulator
    if not elementwise.quick() or not planned.length or accumulator.reduction:
        return None
    if accumulator.tree or accumulator.chains > 1:
        return None
    floor = dots()
    makers = {
        floor.FUSED: _fused,
        floor.ROUNDED: _rounded,
        floor.EXACT: _exact,
        floor.ALIGNED: _aligned,
    }
    return makers[planned.kind](planned)


def _overflow_serves(site: Site, policy: spec.NanPolicy) -> bool:
    """Whether an overflow stays: as an infinity, a NaN, or the largest number."""
    rule, fmt = site.rule, site.format
    if rule.overflow is Overflow.SATURATE:
        return True
    if rule.overflow is Overflow.NAN:
        return fmt.has_nan and bool(fmt.infinities)
    plain = rule.infinite_input in (InfiniteInput.DEFAULT, InfiniteInput.KEEP)
    return plain and fmt.has_nan and (bool(fmt.infinities) or not policy.any_nan_signals)


def _running(planned: Program) -> tuple[Site, str] | None:
    site = planned.sites[dots().RUNNING]
    family = _narrow_family(site.format.spec)
    if not family or planned.accumulator.store or not _overflow_serves(site, planned.policy):
        return None
    if family in ("half", "narrow") and (site.rule.daz or site.rule.ftz):
        return None
    exact = planned.formats[0].p + planned.formats[1].p <= FLOAT32.mantissa_bits + 1
    if family == "float32":
        family = "float32_of_narrow" if exact else family
        return (site, family) if available()[0] else None
    return (site, family) if exact else None


def _fused(planned: Program) -> Way | None:
    found = _running(planned)
    if found is None:
        return None
    site, family = found
    if site.rule.rounding is Rounding.NEAREST_EVEN:
        return _one_by_one("fma", site, family)
    saturate = site.rule.overflow is Overflow.SATURATE
    if site.rule.rounding is Rounding.STOCHASTIC and site.format.spec != FLOAT32 and available()[0]:
        return Way(np.float32, "stochastic", (saturate,), 1, 1, STOCHASTIC_NORMAL, site)
    return None


def _rounded(planned: Program) -> Way | None:
    found = _running(planned)
    if found is None:
        return None
    site, family = found
    product = planned.sites[dots().PRODUCT]
    if product != site or site.rule.rounding is not Rounding.NEAREST_EVEN:
        return None
    return _one_by_one("mul_add", site, family)


def _one_by_one(kind: str, site: Site, family: str) -> Way:
    """The way of products that meet the sum one after the other, to nearest even."""
    single = site.format.spec == FLOAT32
    saturate = site.rule.overflow is Overflow.SATURATE and not single
    # narrow formats are rounded by adding 2^23 quanta, of a sum's own size: they must not overflow
    highest = 100 if family == "narrow" else 126
    bounded = single and site.rule.overflow is not Overflow.INFINITY
    return Way(np.float32, "deterministic", ((kind, family), saturate), 1, 1, NORMAL, site, highest, bounded)


def _plain_single(site: Site) -> bool:
    """Whether a stage is float32, nearest even, with infinities; its subnormals never matter here."""
    rule = site.rule
    nearest = rule.rounding is Rounding.NEAREST_EVEN and rule.overflow is Overflow.INFINITY
    return site.format.spec == FLOAT32 and nearest and rule.infinite_input is not InfiniteInput.NAN


def _exact(planned: Program) -> Way | None:
    accumulator = planned.accumulator
    running = planned.sites[dots().RUNNING]
    if not _plain_single(running) or accumulator.block not in (4, 8):
        return None
    store = planned.sites.get(dots().STORE)
    saturate, stored = False, ""
    if store is not None:
        stored = {Rounding.NEAREST_EVEN: "nearest" * available()[1], Rounding.STOCHASTIC: "drawn"}.get(
            store.rule.rounding, ""
        )
        if (
            store.format.spec != FLOAT16
            or not stored
            or store.rule.daz
            or store.rule.ftz
            or not _overflow_serves(store, planned.policy)
        ):
            return None
        if store.rule.tininess is not spec.Tininess.AFTER:
            return None
        saturate = store.rule.overflow is Overflow.SATURATE
    group = len(accumulator.order)
    if (
        group > LONGEST
        or planned.length % group
        or (store is not None and accumulator.store_every != group)
        or group % accumulator.block
    ):
        return None
    options = (accumulator.block, group // accumulator.block, stored, saturate)
    return Way(np.float64, "exact", options, group, 1, NORMAL, store or running)


def _aligned(planned: Program) -> Way | None:
    running, store = planned.sites[dots().RUNNING], planned.sites.get(dots().STORE)
    rule = running.rule
    if parameters.is_unusual(running.format.spec) or not 1 < planned.block <= LONGEST:
        return None
    if rule.daz or rule.ftz or rule.overflow is not Overflow.INFINITY or rule.infinite_input is InfiniteInput.NAN:
        return None
    if store is not None and store.format.spec != FLOAT32:
        return None
    exponents = running.format.exponent_bits == FLOAT32.exponent_bits and running.format.bias == FLOAT32.bias
    if rule.rounding is Rounding.TOWARD_ZERO and exponents and rule.always_infinite:
        result = "cut"
    elif rule.rounding is Rounding.NEAREST_EVEN and running.format.spec == FLOAT16 and store is None:
        if rule.tininess is not spec.Tininess.AFTER:
            return None
        result = "half"
    else:
        return None
    block = planned.block
    return Way(np.float64, "deterministic", (("aligned", ""), result), block, 2, NORMAL, store or running)


# -- running ---------------------------------------------------------------------------------------------------------


def numbers_of(way: Way, planned: Program) -> Codes:
    """The numbers of `tiles`, for the carrier of this way."""
    floor = tiles()
    numbers = np.zeros(floor.PARAMETERS, way.carrier)
    single = way.carrier is np.float32
    bits = numbers.view(np.uint32 if single else np.uint64)
    site = way.site if way.kind == "exact" else planned.sites[dots().RUNNING]
    fmt, rule = site.format, site.rule
    fraction, bias = (23, 127) if single else (52, 1023)
    saturates = rule.overflow is Overflow.SATURATE
    numbers[floor.LARGEST] = fmt.max
    numbers[floor.BEYOND] = fmt.max if saturates else np.inf if fmt.infinities else np.nan
    if fmt.spec == FLOAT32 and way.planes == 1:
        return numbers
    target = spec.target(fmt.spec, rule, CARRIER64)
    if way.kind == "stochastic" or (way.kind == "exact" and way.site.width):
        lowest = max(fmt.emin, STOCHASTIC_NORMAL)
        bits[floor.LOWEST] = (bias + lowest) << fraction
        bits[floor.PER_QUANTUM] = (2 * bias + fmt.mantissa_bits) << fraction
        bits[floor.MAGIC] = fmt.mantissa_bits << fraction
        return numbers
    bits[floor.LOWEST] = max(bias + fmt.emin, 1) << fraction
    bits[floor.MAGIC] = (fraction - fmt.mantissa_bits) << fraction | 1 << (fraction - 1)
    if single:
        bits[floor.TINY] = np.float32(target.tiny_positive).view(np.uint32)
    if way.planes == 2:
        assert planned.accumulator.fraction_bits is not None
        bits[floor.SCALE_OF_GRID] = (2 * bias + planned.accumulator.fraction_bits) << fraction
        bits[floor.GRID_OF_SCALE] = planned.accumulator.fraction_bits << fraction
        bits[floor.KEPT_BITS] = (1 << 64) - (1 << (fraction - fmt.mantissa_bits))
        bits[floor.FLOOR] = (bias + fmt.emin) << fraction
    return numbers


def _leading(values: Codes, fmt: Format) -> Codes:
    """2^exponent of each value, a subnormal's that of its format; 0 for 0."""
    powers = (values.view(np.int64) & 0x7FF0000000000000).view(np.float64)
    return np.where(values == 0.0, 0.0, np.maximum(powers, fmt.tiny))


def _panels(planes: list[Codes], size: int, carrier: type) -> Codes:
    """(planes, panels, k, size) of arrays (k, n), filled up with zeros."""
    length, count = planes[0].shape
    panels = -(-count // size)
    result = np.zeros((len(planes), panels, length, size), carrier)
    whole = count // size
    for plane, values in zip(result, planes, strict=True):
        whole_panels = values[:, : whole * size].reshape(length, whole, size).transpose(1, 0, 2)

        def work(start: int, stop: int, plane: Codes = plane, source: Codes = whole_panels) -> int:
            plane[start:stop] = source[start:stop]
            return 0

        threads.share_units(whole, work, length * size)
        if whole < panels:
            plane[whole, :, : count - whole * size] = values[:, whole * size :]
    return result


def planes_of(way: Way, planned: Program, a: Codes, b: Codes) -> tuple[list[Codes], list[Codes]]:
    """What tiles take of each operand: values, and where exponents are compared, powers of two."""
    if way.planes == 1:
        return [a], [b]
    (first, second), unpacked = planned.formats, planned.accumulator.unpacked
    return [a, _leading(a, unpacked or first)], [b, _leading(b, unpacked or second)]


def _filled(c: Codes | None, rows: int, columns: int, carrier: type) -> Codes:
    result: Codes = np.zeros((rows, columns), carrier)
    if c is not None:
        result[: c.shape[0], : c.shape[1]] = c
    return result


@dataclass(frozen=True, eq=False)
class Operands:
    """Values in the order of the sum, as float64: a is (rows, k), b is (k, columns), c is (rows, columns) or None."""

    a: Codes
    b: Codes
    c: Codes | None


def _other_lows(way: Way, start: Extent | None) -> list[int]:
    """Exponents of the smallest bits beside those of products."""
    lows = [] if start is None or start.empty else [start.low]
    if way.kind == "exact" and way.options[2]:  # an overflow may store the largest number: its last bit
        lows.append(way.site.format.emax - way.site.format.mantissa_bits)
    return lows


def low_of(way: Way, start: Extent | None) -> float:
    """The smallest bit of what a sum may be before its first product."""
    lows = _other_lows(way, start)
    return 2.0 ** min(lows) if lows else math.inf


def fits(way: Way, planned: Program, spans: list[Extent], start: Extent | None) -> bool:
    """Whether operands that span so much, and c, if there is one, are of a kind that this way serves."""
    known = [*spans, *([] if start is None else [start])]
    if not all(x.finite for x in known):
        return False
    if way.carrier is np.float32 and any(x.low < SMALLEST or x.high > 128 for x in known):
        return False
    high = sum(x.high for x in spans)
    lows = [sum(x.low for x in spans), *_other_lows(way, start)]
    highs = [high] if start is None or start.empty else [high, start.high]
    low, top = min(lows), max(highs) + planned.length.bit_length() + 1
    if any(x.empty for x in spans):
        low, top = min(lows[1:], default=0), max(highs[1:], default=0) + 1
    if low < way.lowest or high > way.highest or (way.bounded and top > 127):
        return False
    return way.carrier is not np.float64 or not (top > 127 or (way.kind == "exact" and top - low > SUBTLEST))


def nan_flags_of(way: Way) -> int:
    """The flags of outputs that are NaN."""
    invalid = way.site.rule.overflow is Overflow.NAN or bool(way.site.format.infinities)
    return int(spec.OVERFLOW | spec.INEXACT | (spec.INVALID if invalid else 0))


def run(
    way: Way,
    planned: Program,
    operands: Operands,
    place: tuple[int, int, int],
    key: int,
    stream: int,
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None if the operands go beyond what this way can do.

    `place`: the number of the first output, and how far it is to the next row and the next column.
    """
    first, second = planned.formats
    start = None if operands.c is None else extent(operands.c, planned.partials)
    if not fits(way, planned, [extent(operands.a, first), extent(operands.b, second)], start):
        return None
    floor = tiles()
    lanes = floor.LANES[way.carrier]
    planes = planes_of(way, planned, operands.a, operands.b)
    a = _panels([x.T for x in planes[0]], floor.ROWS, way.carrier)
    b = _panels(planes[1], lanes, way.carrier)
    rows, columns = operands.a.shape[0], operands.b.shape[1]
    shape = a.shape[1] * floor.ROWS, b.shape[1] * lanes
    c = _filled(operands.c, *shape, way.carrier)
    values, flags = np.empty(shape, way.carrier), np.empty(shape, np.uint8)
    numbers, nan_flags = numbers_of(way, planned), nan_flags_of(way)
    common = a, b, c, values, flags, numbers, nan_flags
    low_c = low_of(way, start)
    loop, more = loop_of(way, planned, a, b, c, low_c, place, (rows, columns), key, stream)

    def work(start: int, stop: int) -> int:
        loop(start, stop, *common, *more)
        return 0

    threads.share_units(a.shape[1] * b.shape[1], work, planned.length * floor.ROWS * lanes)
    values, flags = values[:rows, :columns], flags[:rows, :columns]
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= nan_flags
    return codes_of(values, planned.partials, way.site), flags


def loop_of(
    way: Way,
    planned: Program,
    a: Codes,
    b: Codes,
    c: Codes,
    low_c: float,
    place: tuple[int, int, int],
    shape: tuple[int, int],
    key: int,
    stream: int,
    alone: bool = True,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loop of a way, and what it takes beyond the common arguments. `alone`: no other threads are busy with this call."""
    floor = tiles()
    if way.kind == "deterministic":
        kind, *options = way.options
        return floor.deterministic(kind, way.carrier, way.group, way.planes, *options), ()
    if way.kind == "exact":
        chunk = floor.chunk_of(way.group)
        found: list[Any] = [low_c]
        for panels in (a[0], b[0]):
            found += _spans(panels, chunk, alone)
        return floor.exact_blocks(*way.options), (*place, way.site.width, np.uint64(key), np.uint64(stream), *found)
    numbers = way.site.numbers
    fmt = way.site.format
    largest = [float(np.abs(x).max(initial=0.0)) for x in (a, b, c)]
    reach = planned.length * (largest[0] * largest[1] + fmt.smallest_subnormal) + largest[2]
    reach *= _growth(planned.length, fmt)
    return floor.stochastic(*way.options, reach < fmt.max), (
        *numbers,
        *place,
        *shape,
        way.site.width,
        np.uint64(key),
        np.uint64(stream),
    )


def _spans(panels: Codes, chunk: int, shared: bool) -> tuple[Codes, Codes]:
    """The smallest lowest bit and the largest magnitude of each chunk of k of each panel."""
    count, length, size = panels.shape
    shape = count, -(-length // chunk)
    lowest, largest = np.empty(shape), np.empty(shape)

    def work(start: int, stop: int) -> int:
        tiles().spans()(panels[start:stop], chunk, lowest[start:stop], largest[start:stop])
        return 0

    if shared:
        threads.share_units(count, work, length * size)
    else:
        work(0, count)
    return lowest, largest


def _growth(count: int, fmt: Format) -> float:
    """What so many roundings, each by less than a unit in the last place, can make of a sum of normal numbers."""
    return math.exp(min(count * fmt.eps, 700.0))


def codes_of(values: Codes, partials: Format, site: Site) -> Codes:
    """Codes of values that the format has; NaN as the rule makes it."""
    single = np.ascontiguousarray(values, np.float32)
    codes = single.view(np.uint32)
    beyond = ~np.isfinite(single)
    if partials.spec != FLOAT32:
        codes, _ = elementwise.run(
            "convert", [codes], ["values"], FLOAT32, partials, parameters.NEAREST, out=None, flags="any", random_bits=None, stream=0
        )  # fmt: skip
    if beyond.any():
        target = spec.target(partials.spec, site.rule, CARRIER64)
        nan = beyond if site.rule.overflow is Overflow.NAN else np.isnan(single)
        codes = np.where(nan, np.asarray(target.nan, codes.dtype), codes)
    return codes
