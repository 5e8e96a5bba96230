"""Sums of dot-product units by the loops of `kernels.units`: which programs these serve, and how operands are laid out.

A program is served only if every field of its accumulator is one that the unit's description takes in: what it does not
know, the plain loop does.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator, Alignment, Reduction
from softfloat.accumulators.accumulator import ALL
from softfloat.engine import elementwise, parameters, threads, tiling
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FLOAT16, FLOAT32, available, dots, tiles
from softfloat.engine.programs import Program, Site
from softfloat.engine.ways import (
    LONGEST,
    NORMAL,
    Loop,
    Place,
    Random,
    Tally,
    Way,
    family_of,
    narrow_numbers,
    overflow_serves,
)
from softfloat.formats import Format
from softfloat.kernels.spec import FLOAT64, InfiniteInput, Overflow, Rounding, Tininess

LEAST_WORK = 1 << 16
"""Multiply-adds below which no loop is compiled for a unit of its own."""
LONGEST_SEGMENT = 128
TOGETHER = 8
"""Products of an aligned block from which all rows of a tile together are quicker than one after the other."""
UNROLLED = 8
"""Products of an aligned block whose code is written out."""
SUBTREE = 32
"""Products that a tile adds in pairs at once."""
EXACT_BITS = 53
REGISTER_ROOM = 51
"""Bits of a product in units of a register."""
DIRECTED = (Rounding.TOWARD_ZERO, Rounding.TOWARD_POSITIVE, Rounding.TOWARD_NEGATIVE, Rounding.TO_ODD)
CUTS = {Rounding.TOWARD_ZERO: "zero", Rounding.TOWARD_NEGATIVE: "floor", Rounding.TO_ODD: "odd"}


@cache
def units() -> ModuleType:
    """The compiled floor, imported when first needed."""
    from softfloat.kernels import units as module

    return module


@cache
def loops() -> ModuleType:
    """That of their loops, alike."""
    from softfloat.kernels import unit_loops as module

    return module


@cache
def counted() -> ModuleType:
    """Those that count."""
    from softfloat.kernels import counted_units as module

    return module


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitWay(Way):
    """A unit's description, and what its steps know of formats and grids."""

    unit: Any
    known: Any


class Singles(UnitWay):
    """Sums in float32."""


class Wide(UnitWay):
    """Sums in float64."""

    carrier: ClassVar[type] = np.float64


@lru_cache(maxsize=512)
def numbers_of(way: UnitWay) -> Codes:
    """What its steps know, as an array that nobody writes to."""
    packed: Codes = parameters.steps().packed(way.known, way.carrier)
    return packed


# -- choosing --------------------------------------------------------------------------------------------------------

LAYOUT = {"name", "running", "inputs", "daz", "result", "nan", "note", "source", "channel_group", "order"}
"""Fields that the layout of operands, the stages of a program, and the plain loop's results take in."""


def _only(described: Accumulator | Alignment, names: set[str]) -> bool:
    """Whether nothing but these fields departs from its default."""
    others = [x for x in dataclasses.fields(described) if x.name not in names]
    return all(getattr(described, x.name) == x.default for x in others)


def choose(planned: Program) -> UnitWay | None:
    """The way that serves a program, if its operands allow."""
    if not elementwise.FAST or parameters.loops().jit.DISABLED or not planned.length:
        return None
    return _choose(planned, available())


@lru_cache(maxsize=512)
def _choose(planned: Program, features: tuple[bool, ...]) -> UnitWay | None:
    """The same, on a CPU with these features."""
    inner = {number: site for number, site in planned.sites.items() if number != dots().RESULT}
    drawn = {number for number, site in inner.items() if site.width}
    if drawn - {dots().STORE} or any(not site.rule.restated for site in inner.values()):
        return None
    how = planned.accumulator
    if how.fixed is not None:
        return _fixed(planned)
    if how.compensation is not None:
        return _compensated(planned)
    if how.aligned is not None:
        return _aligned(planned)
    if how.product is None and how.block_sum is None and how.chains == 1 and not how.reduction:
        return _exact(planned)
    return _pairs(planned)


def _single(site: Site) -> bool:
    """Whether a stage is float32 that overflows to infinity; its subnormals never matter here."""
    rule = site.rule
    return site.format.spec == FLOAT32 and rule.overflow is Overflow.INFINITY and _infinities_stay(site)


def _infinities_stay(site: Site) -> bool:
    return site.rule.infinite_input is not InfiniteInput.NAN


def _exact_products(planned: Program) -> bool:
    return planned.formats[0].p + planned.formats[1].p <= FLOAT32.mantissa_bits + 1


def _pairs(planned: Program) -> UnitWay | None:
    """Everything rounded to float32: pairs, trees of blocks, chains of segments."""
    how, floor = planned.accumulator, dots()
    site = planned.sites[floor.RUNNING]
    mode, exact = site.rule.rounding, _exact_products(planned)
    nearest = mode is Rounding.NEAREST_EVEN
    if not _single(site) or not (nearest or mode in DIRECTED):
        return None
    names = LAYOUT | {"block"}
    tree, segmented = how.product is not None, how.segment is not None
    if tree:
        names |= {"product", "tree", "leaf", "keeps_zero_sign", "unsigned_zeros"}
        if not how.tree or how.block == 1 or how.block > LONGEST // 4 or how.leaf > 2:
            return None
        if how.leaf == 2 and not how.keeps_zero_sign:
            return None
    elif not segmented:
        names |= {"block_sum", "keeps_zero_sign"}
        if how.block_sum is None or how.block != 2 or not how.keeps_zero_sign:
            return None
    if segmented:
        names |= {"segment", "chains", "reduction"}
        if not nearest or not exact or how.segment is None or how.segment > LONGEST_SEGMENT:
            return None
        if how.reduction != (Reduction(how.running),) or planned.sites[floor.LEVEL] != site:
            return None
        if how.segment % (how.chains * how.block) or (not tree and how.block > 1) or not available()[0]:
            return None
    if not _only(how, names) or planned.sites.get(floor.PRODUCT, site) != site:
        return None
    if not exact and not (nearest and how.leaf == 1 and tree):
        return None
    unit = units().Pairs(
        kind="pairs",
        block=how.block,
        blocks=1 if how.segment is None else how.segment // how.block,
        leaf=how.leaf,
        chains=how.chains if segmented else 0,
        rounding=mode.name.lower(),
        fused=segmented and not tree,
        exact=exact,
        unsigned=how.unsigned_zeros,
    )
    known = parameters.steps().Numbers()
    return Singles(unit=unit, known=known, site=site, group=unit.group, bounded=not nearest)


def _result(site: Site) -> str | None:
    """How a sum in float64 becomes one of the running format."""
    rule, fmt = site.rule, site.format
    exponents = fmt.exponent_bits == FLOAT32.exponent_bits and fmt.bias == FLOAT32.bias
    if parameters.is_unusual(fmt.spec) or not _infinities_stay(site):
        return None
    if fmt.spec == FLOAT32 and rule.rounding is Rounding.NEAREST_EVEN:
        return "single"
    if exponents and rule.rounding in (Rounding.TOWARD_ZERO, Rounding.TO_ODD):
        return "cut" if rule.rounding is Rounding.TOWARD_ZERO else "odd"
    if fmt.spec == FLOAT16 and rule.rounding is Rounding.NEAREST_EVEN and not (rule.daz or rule.ftz):
        return "half"
    return None


class _Stored(NamedTuple):
    """Blocks of a turn, and what happens at its end: nothing, or a store as a half, the "nearest" one or "drawn"."""

    blocks: int
    half: str
    saturate: bool


def _stored(planned: Program, result: str) -> _Stored | None:
    """What the store does; None if that is not known."""
    how, store = planned.accumulator, planned.sites.get(dots().STORE)
    if store is None:
        return _Stored(1, "", False)
    rule = store.rule
    if store.format.spec == FLOAT32 and rule.rounding is Rounding.NEAREST_EVEN and result == "cut":
        return None if rule.daz or rule.ftz else _Stored(1, "", False)  # it holds what is stored
    how_stored = {Rounding.NEAREST_EVEN: "nearest" * available()[1], Rounding.STOCHASTIC: "drawn"}
    half = how_stored.get(rule.rounding, "")
    if store.format.spec != FLOAT16 or not half:
        return None
    if rule.daz or rule.ftz or rule.tininess is not Tininess.AFTER or not overflow_serves(store, planned.policy):
        return None
    if result == "half" or planned.length % how.store_every or how.store_every > LONGEST:
        return None
    return _Stored(how.store_every // how.block, half, rule.overflow is Overflow.SATURATE)


def _wide_numbers(planned: Program, drawn: bool) -> Any:
    """What steps on float64 know of the running sum, of stores that are `drawn`, and of grids."""
    site, aligned = planned.sites[dots().RUNNING], planned.accumulator.aligned
    fmt, taken = site.format, 52 - site.format.mantissa_bits
    fields: dict[str, Any] = {
        "floor": (1023 + fmt.emin) << 52,
        "kept_bits": (1 << 64) - (1 << taken),
        "largest": float(fmt.max),
        "beyond_positive": float(fmt.max) if site.rule.overflow is Overflow.SATURATE else math.inf,
        "lowest": (1023 + fmt.emin) << 52,
        "magic": taken << 52 | 1 << 51,
        "tiny": float(fmt.tiny) * (1.0 if site.rule.tininess is Tininess.BEFORE else 1.0 - 2.0 ** -(fmt.p + 1)),
    }
    if drawn:
        store = planned.sites[dots().STORE]
        memory = store.format
        fields |= {
            "lowest": (1023 + memory.emin) << 52,
            "spacing": memory.mantissa_bits << 52,
            "per_quantum": (2 * 1023 + memory.mantissa_bits) << 52,
            "beyond_positive": float(memory.max) if store.rule.overflow is Overflow.SATURATE else math.inf,
        }
    if aligned is not None:
        grids = {"terms": aligned.terms, "sum": aligned.sum or 1, "addend": aligned.addend or 1}
        for name, bits in grids.items():
            odd = CUTS[aligned.cut if name == "terms" else aligned.sum_cut] == "odd"
            fields[f"{name}_per"] = (2 * 1023 + bits - odd) << 52
            fields[f"{name}_grid"] = bits << 52
        fields["halves_per"] = (2 * 1023 + aligned.terms - (CUTS[aligned.sum_cut] == "odd")) << 52
        fields["halves_grid"] = aligned.terms << 52
        fields["zero"] = 0.0 if aligned.zeros is None else 2.0**aligned.zeros
        fields["least"] = 0.0 if aligned.least is None else 2.0**aligned.least
        fields["drop"] = 2.0 ** (aligned.drop_addend_below or 0)
    return units().UnitNumbers(**fields)


FIELDS_OF_ALIGNMENT = {
    "terms", "cut", "zeros", "limit", "halves", "includes_addend", "sum", "addend", "sum_cut", "drop_addend_below", "least", "group",
}  # fmt: skip


def _phased(unit: Any) -> bool:
    """Whether an aligned block is summed in phases, not as one piece of code: from so many products on that is quicker."""
    return unit.block > UNROLLED and unit.term == 1 and not (unit.halves or unit.stored)


def _aligned(planned: Program) -> UnitWay | None:
    """Blocks whose terms are cut to a common grid."""
    how, aligned, floor = planned.accumulator, planned.accumulator.aligned, dots()
    running = planned.sites[floor.RUNNING]
    names = {"block", "fraction_bits", "alignment", "unpacked", "positive_zeros", "block_sum", "store", "store_every"}
    if aligned is None or not _only(aligned, FIELDS_OF_ALIGNMENT) or not _only(how, LAYOUT | names):
        return None
    apart, result = how.block_sum is not None, _result(running)
    if planned.block % aligned.group or (aligned.halves and aligned.group > 1):
        return None
    if result is None or planned.block == 1 or planned.sites.get(floor.PRODUCT, running) != running:
        return None
    if not (aligned.includes_addend or apart or aligned.sum is not None) or (apart and aligned.sum is not None):
        return None
    if apart and result not in ("single", "odd"):
        return None
    if apart and aligned.includes_addend:
        return None
    if aligned.limit is not None and aligned.limit <= Wide.highest:
        return None
    if result == "half" and running.rule.overflow is not Overflow.INFINITY:
        return None
    stored = _stored(planned, result)
    if stored is None:
        return None
    unit = units().Aligned(
        kind="aligned",
        block=planned.block,
        blocks=stored.blocks,
        term=aligned.group,
        cut=CUTS[aligned.cut],
        halves=aligned.halves,
        inside=aligned.includes_addend,
        apart=apart,
        sum_cut=CUTS[aligned.sum_cut],
        drop=aligned.drop_addend_below is not None,
        result=result,
        stored=stored.half,
        saturate=stored.saturate,
    )
    if unit.block > LONGEST and not _phased(unit):
        return None
    lowest = NORMAL
    if {unit.cut, unit.sum_cut} != {"zero"} or result == "odd":  # which set bits that no operand has
        lowest += max(aligned.terms, aligned.sum or 0, aligned.addend or 0)
    site = planned.sites.get(floor.STORE, running)
    return Wide(
        unit=unit, known=_wide_numbers(planned, stored.half == "drawn"), site=site, group=unit.group, lowest=lowest
    )


def _exact(planned: Program) -> UnitWay | None:
    """Blocks that are added exactly; single products where sums are stored on the way."""
    how, running = planned.accumulator, planned.sites[dots().RUNNING]
    names = LAYOUT | {"block", "store", "store_every", "scale_exponent", "keeps_zero_sign"}
    if not _only(how, names) or how.block == ALL or how.block > LONGEST or (how.block == 1 and how.store is None):
        return None
    result = _result(running)
    if result is None or result == "odd":
        return None
    overflow = running.rule.overflow
    if overflow is not Overflow.INFINITY and not (result == "half" and overflow is Overflow.SATURATE):
        return None
    if sum(fmt.p for fmt in planned.formats) > EXACT_BITS or (how.block == 1 and not _exact_products(planned)):
        return None
    stored = _stored(planned, result)
    if stored is None:
        return None
    unit = units().Exact(
        kind="exact",
        block=how.block,
        blocks=stored.blocks,
        signed=how.keeps_zero_sign or how.block == 1,
        careful=True,
        result=result,
        stored=stored.half,
        saturate=stored.saturate or overflow is Overflow.SATURATE,
    )
    site = planned.sites.get(dots().STORE, running)
    return Wide(unit=unit, known=_wide_numbers(planned, stored.half == "drawn"), site=site, group=unit.group)


def _fixed(planned: Program) -> UnitWay | None:
    """A register in fixed point."""
    how, site = planned.accumulator, planned.sites[dots().RUNNING]
    if not _only(how, LAYOUT | {"fixed"}) or how.fixed is None or site.rule.daz or site.rule.ftz:
        return None
    if sum(fmt.p for fmt in planned.formats) > EXACT_BITS:
        return None
    register = how.fixed
    unit = units().Fixed(kind="fixed", cut=CUTS[register.cut], saturate=register.overflow == "saturate")
    span = 2.0**register.bits
    known = units().UnitNumbers(span=span, half_span=span / 2, per_span=1 / span)
    return Wide(unit=unit, known=known, site=site)


def _compensated(planned: Program) -> UnitWay | None:
    """Sums whose errors are made up for, to nearest even."""
    how, site = planned.accumulator, planned.sites[dots().RUNNING]
    family = family_of(site.format.spec)
    if not _only(how, LAYOUT | {"product", "compensation"}) or not family:
        return None
    rule, exact = site.rule, _exact_products(planned)
    if rule.rounding is not Rounding.NEAREST_EVEN or planned.sites[dots().PRODUCT] != site:
        return None
    if family != "float32" and (rule.daz or rule.ftz or not exact):
        return None
    manner = parameters.steps().Manner(family=family)
    unit = units().Compensated(
        kind="compensated", method=how.compensation, manner=manner, exact=exact, last=False
    )  # fmt: skip
    known = narrow_numbers(site)._replace(beyond_positive=math.inf)  # what overflows is left to the plain loop
    return Singles(unit=unit, known=known, site=site)


def _subtree(planned: Program) -> UnitWay | None:
    """Subtrees of sums in pairs, to nearest even."""
    site = planned.sites[dots().RUNNING]
    rule, family, exact = site.rule, family_of(site.format.spec), _exact_products(planned)
    if not _only(planned.accumulator, LAYOUT | {"product", "tree"}) or not elementwise.FAST or not family:
        return None
    if planned.sites[dots().PRODUCT] != site or rule.rounding is not Rounding.NEAREST_EVEN or not rule.restated:
        return None
    if rule.overflow is not Overflow.INFINITY or not overflow_serves(site, planned.policy) or rule.daz or rule.ftz:
        return None
    if family != "float32" and not exact:
        return None
    manner = None if family == "float32" else parameters.steps().Manner(family=family)
    unit = units().Pairs(
        kind="pairs", block=SUBTREE, blocks=1, leaf=1, chains=0, rounding="nearest_even", fused=False, exact=exact,
        unsigned=False, manner=manner,
    )  # fmt: skip
    return Singles(unit=unit, known=narrow_numbers(site), site=site, group=SUBTREE)


# -- running ---------------------------------------------------------------------------------------------------------


def leads(values: Codes, fmt: Format, accumulator: Accumulator, scales: Codes | None) -> Codes:
    """2^exponent of each factor, its scale's included, a subnormal's that of its format; 0 for what has no part in the largest exponent."""
    aligned = accumulator.aligned
    assert aligned is not None
    of_zeros = 0.0 if aligned.zeros is None else 2.0**aligned.zeros
    if scales is not None and not scales.all():
        scales = np.where(scales == 0.0, of_zeros, scales)
    if aligned.group > 1:
        return np.ones(values.shape) if scales is None else scales
    found = (values.view(np.int64) & 0x7FF0000000000000).view(np.float64)
    finite = bool(np.isfinite(found.max(initial=0.0)))
    np.maximum(found, fmt.tiny, out=found)
    np.copyto(found, of_zeros, where=values == 0.0)
    if scales is not None:
        with np.errstate(invalid="ignore"):  # an infinite element of scale zero
            found *= scales
    if not finite:
        found[~np.isfinite(values)] = 0.0
    return found


class Scaled(NamedTuple):
    """Operands whose values have scales in them: powers of two for alignment, and the bits of precision of their scales."""

    a: Codes
    b: Codes
    bits: tuple[int, int]


def span_of(values: Codes) -> tiling.Extent:
    """What finite numbers span, to the bit."""
    lowest, largest = np.empty((1, 1)), np.empty((1, 1))
    tiles().spans()(np.ascontiguousarray(values).reshape(1, -1, 1), max(values.size, 1), lowest, largest)
    greatest = float(largest[0, 0])
    if not greatest:
        return tiling.Extent(0, 0, True, True)
    return tiling.Extent(math.frexp(float(lowest[0, 0]))[1] - 1, math.frexp(greatest)[1], True, False)


def scaled_extent(values: Codes, fmt: Format, bits: int) -> tiling.Extent:
    """The span of numbers of a format times scales of so many bits."""
    least, greatest, finite = dots().extent()(np.ascontiguousarray(values).reshape(-1))
    return extent_with_scales(least, greatest, finite, fmt, bits)


def extent_with_scales(least: float, greatest: float, finite: bool, fmt: Format, bits: int) -> tiling.Extent:
    """The same between these magnitudes."""
    low = math.frexp(least)[1] - fmt.p - bits if greatest else 0
    return tiling.Extent(low, math.frexp(greatest)[1] if greatest else 0, bool(finite), not greatest)


def _filled_up(values: Codes, axis: int, group: int) -> Codes:
    """Zeros at the end of k, up to whole turns."""
    missing = -values.shape[axis] % group
    if not missing:
        return values
    widths = [(0, 0), (0, 0)]
    widths[axis] = (0, missing)
    return np.pad(values, widths)


def run(
    planned: Program,
    operands: tiling.Operands,
    place: Place,
    random: Random,
    scaled: Scaled | None = None,
    tally: Tally | None = None,
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags), or None if no loop serves the program or these operands. A `tally` is filled."""
    a, b, c = operands.a, operands.b, operands.c
    if a.shape[0] * b.size < LEAST_WORK:
        return None
    way = choose(planned)
    if way is None or (scaled is not None and way.unit.kind != "aligned"):
        return None
    if tally is not None and way.unit.kind not in counted().KINDS:
        return None
    first, second = planned.formats
    if scaled is None:
        spans = [tiling.extent(a, first), tiling.extent(b, second)]
    else:
        spans = [scaled_extent(a, first, scaled.bits[0]), scaled_extent(b, second, scaled.bits[1])]
        if not terms_fit(planned, scaled.bits):
            return None
    start = None if c is None else tiling.extent(c, planned.partials)
    scale = planned.accumulator.scale_exponent
    if scale:
        a = a * 2.0**scale
        spans[0] = spans[0]._replace(low=spans[0].low + scale, high=spans[0].high + scale)
    if not tiling.fits(way, planned.length, spans, start):
        return None
    flags_of_c: Codes | None = None
    unit = way.unit
    if unit.kind == "exact":
        careful = _needs_care(way, planned.length, a, b, start)
        if careful is None:
            return None
        unit = unit._replace(careful=careful)
    if unit.kind == "fixed":
        register = planned.accumulator.fixed
        assert register is not None
        if spans[0].high + spans[1].high - register.last > REGISTER_ROOM:
            return None
        a = a * 2.0**-register.last
        c, flags_of_c = _registered(c, way, register.last)
    lift = unit.lift if unit.kind == "compensated" else 1.0
    c = c if c is None or lift == 1.0 else c * lift
    panels = _panels(way, unit, planned, tiling.Operands(a, b, c), scaled)
    rows, columns = a.shape[0], b.shape[1]
    if tally is None:
        values, flags = (x[0] for x in looped(way, loop_of(way, unit, place, random), panels, c, rows, columns))
    else:
        values, flags = _counted(way, unit, panels, c, place, random, tally)
    if np.any(flags & loops().WRONG):
        return None
    if unit.kind == "fixed":
        if flags_of_c is not None:
            flags |= flags_of_c
        assert planned.accumulator.fixed is not None
        values = np.ascontiguousarray(values * 2.0**planned.accumulator.fixed.last)
        site = way.site
        codes, raised = elementwise.settled(
            "convert", [values.view(np.uint64)], FLOAT64, site.format, site.rule
        )  # fmt: skip
        return codes, flags | raised
    if lift != 1.0:
        values *= 1.0 / lift
    return coded(way, planned, values, flags)


def subtrees(planned: Program, a: Codes, b: Codes) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags) of sums in pairs of every whole subtree of products: of shape (subtrees, rows, columns).

    None if no loop serves the program or these operands.
    """
    count = planned.length // SUBTREE
    if not count or a.shape[0] * b.size < LEAST_WORK or parameters.loops().jit.DISABLED:
        return None
    way = _subtree(planned)
    spans = [tiling.extent(x, fmt) for x, fmt in zip((a, b), planned.formats, strict=True)]
    if way is None or not tiling.fits(way, planned.length, spans, None):
        return None
    shape = a.shape[0], b.shape[1]
    nothing = np.full(shape, -0.0)  # to which a sum is added, and stays what it is
    codes, flags = np.empty((count, *shape), planned.partials.dtype), np.empty((count, *shape), np.uint8)
    loop: Loop = loops().unit_loop(way.unit), ()
    for number in range(count):
        part = slice(number * SUBTREE, (number + 1) * SUBTREE)
        operands = tiling.Operands(a[:, part], b[part], nothing)
        panels = _panels(way, way.unit, planned, operands, None)
        values, flags[number] = (x[0] for x in looped(way, loop, panels, nothing, *shape))
        codes[number] = tiling.codes_of(values, planned.partials, way.site)
    return codes, flags


def _needs_care(way: UnitWay, length: int, a: Codes, b: Codes, start: tiling.Extent | None) -> bool | None:
    """Whether float64 may lose bits of these sums; None if more than what the careful steps put together."""
    spans = span_of(a), span_of(b)
    lows = [sum(x.low for x in spans)]
    highs = [sum(x.high for x in spans) + length.bit_length() + 1]
    fmt = way.site.format
    if way.unit.stored or way.unit.saturate:  # an overflow may store the largest number: its last bit
        lows.append(fmt.emax - fmt.mantissa_bits)
    if start is not None and not start.empty:
        lows.append(start.low)
        highs.append(start.high + 1)
    # roundings add up as well
    width = max(highs) + 1 - min(lows)
    if width > tiling.SUBTLEST:
        return None
    return width > EXACT_BITS


def terms_fit(planned: Program, bits: tuple[int, int]) -> bool:
    """Whether a term, whose products share scales of so many bits, is exact in float64."""
    aligned = planned.accumulator.aligned
    if aligned is None or sum(fmt.p for fmt in planned.formats) + sum(bits) > EXACT_BITS:
        return False
    if aligned.group == 1:
        return True
    width = sum(fmt.emax - fmt.emin + fmt.p for fmt in planned.formats) + sum(bits)
    return width + (planned.block - 1).bit_length() + 1 <= EXACT_BITS


def _registered(c: Codes | None, way: UnitWay, last: int) -> tuple[Codes | None, Codes | None]:
    """c in units of a register's last bit, and the flags that it raised there."""
    if c is None:
        return None, None
    exact = c * 2.0**-last
    n = np.floor(exact) if way.unit.cut == "floor" else np.trunc(exact)
    known = way.known
    beyond = (n >= known.half_span) | (n < -known.half_span)
    if way.unit.saturate:
        kept = np.where(n > 0.0, known.half_span - 1.0, -known.half_span)
    else:
        kept = n - known.span * np.floor(n * known.per_span)
        kept = kept - known.span * np.floor((kept + known.half_span) * known.per_span)
    flags = np.where(n != exact, 1, 0) | np.where(beyond, 5, 0)
    return np.where(beyond, kept, n) + 0.0, flags.astype(np.uint8)


def loop_of(way: UnitWay, unit: Any, place: Place, random: Random, apart: int = 0) -> Loop:
    """The loop of a unit, and what it takes beyond what all take; products' first outputs are `apart`."""
    if unit.kind == "aligned" and _phased(unit):
        return loops().long_unit_loop(unit), ()
    if unit.kind in ("aligned", "exact") and unit.stored == "drawn":
        return loops().drawn_unit_loop(unit), (*place, apart, way.site.width, *random.words)
    return loops().unit_loop(unit), ()


def _counted(
    way: UnitWay, unit: Any, panels: list[Codes], c: Codes | None, place: Place, random: Random, tally: Tally
) -> tuple[Codes, Codes]:
    """(values, flags) of a grid of outputs; the tally is filled."""
    _, rows, columns = tally.counts.shape
    shape = panels[0].shape[2] * tiles().ROWS, panels[1].shape[2] * tiles().LANES[way.carrier]
    padded = Tally(np.empty((3, *shape), np.int32), np.empty((2, *shape), way.carrier))
    loop: Loop
    if unit.kind == "aligned" and _phased(unit):
        loop = counted().counted_long_unit_loop(unit), padded
    else:
        of_nan = bool(unit.stored) and way.site.rule.overflow is Overflow.NAN
        made = counted().counted_unit_loop(unit, of_nan)
        loop = made, (*padded, *place, way.site.width, *random.words)
    values, flags = (x[0] for x in looped(way, loop, panels, c, rows, columns))
    for target, source in zip(tally, padded, strict=True):
        target[...] = source[:, :rows, :columns]
    return values, flags


def _panels(way: UnitWay, unit: Any, planned: Program, operands: tiling.Operands, scaled: Scaled | None) -> list[Codes]:
    """Both operands as tiles take them, of one product: (1, planes, panels, k, size)."""
    lanes, group = tiles().LANES[way.carrier], unit.group
    a, b = _filled_up(operands.a, 1, group), _filled_up(operands.b, 0, group)
    if scaled is None and unit.kind == "aligned" and unit.term == 1:
        return aligned_panels(planned, a[np.newaxis], b[np.newaxis])
    planes = [a], [b]
    if scaled is not None:
        planes = [a, scaled.a], [b, scaled.b]
    elif unit.kind == "aligned":
        planes = [a, np.ones(a.shape)], [b, np.ones(b.shape)]
    panels_a = tiling.panels([x.T for x in planes[0]], tiles().ROWS, way.carrier)
    return [panels_a[np.newaxis], tiling.panels(planes[1], lanes, way.carrier)[np.newaxis]]


def aligned_panels(planned: Program, a: Codes, b: Codes) -> list[Codes]:
    """The same of many products whose terms are aligned, (products, rows, k) and (products, k, columns), without scales."""
    floor, unpacked, aligned = tiles(), planned.accumulator.unpacked, planned.accumulator.aligned
    assert aligned is not None
    of_zeros = 0.0 if aligned.zeros is None else 2.0**aligned.zeros
    found = []
    sizes = floor.ROWS, floor.LANES[np.float64]
    for values, size, fmt in zip((a.transpose(0, 2, 1), b), sizes, planned.formats, strict=True):
        products, length, count = values.shape
        shape = products, 2, -(-count // size), length, size
        target = tiling.on_lines(shape, np.float64, np.empty)
        tiny = (unpacked or fmt).tiny

        def work(first: int, last: int, values: Codes = values, tiny: float = tiny, target: Codes = target) -> int:
            loops().laid_out()(first, last, values, tiny, of_zeros, target)
            return 0

        threads.share_units(products * shape[2], work, 2 * length * size)
        found.append(target)
    return found


def looped(
    way: UnitWay, loop: Loop, panels: list[Codes], c: Codes | None, rows: int, columns: int
) -> tuple[Codes, Codes]:
    """(values, flags) of the outputs of products whose operands are laid out so: (products, rows, columns)."""
    floor = tiles()
    a, b = panels
    shape = a.shape[0], a.shape[2] * floor.ROWS, b.shape[2] * floor.LANES[way.carrier]
    values, flags = np.zeros(shape, way.carrier), np.empty(shape, np.uint8)
    if c is not None:
        values[:, :rows, :columns] = c
    numbers, of_nan = numbers_of(way), tiling.nan_flags_of(way)
    run_tiles, more = loop

    def work(first: int, last: int) -> int:
        run_tiles(first, last, a, b, values, values, flags, numbers, of_nan, rows, columns, *more)
        return 0

    tile = a.shape[3] * floor.ROWS * floor.LANES[way.carrier]
    threads.share_units(a.shape[0] * a.shape[2] * b.shape[2], work, tile)
    return values[:, :rows, :columns], flags[:, :rows, :columns]


def coded(way: UnitWay, planned: Program, values: Codes, flags: Codes) -> tuple[Codes, Codes]:
    """(codes in the partials format, flags)."""
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= tiling.nan_flags_of(way)
    return tiling.codes_of(values, planned.partials, way.site), flags
