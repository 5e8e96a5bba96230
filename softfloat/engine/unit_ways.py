"""Which programs the loops of `kernels.units` serve, and how.

A program is served only if every field of its accumulator is one that the unit's description takes in: what it does not
know, the plain loop does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator, Reduction
from softfloat.accumulators.accumulator import ALL
from softfloat.engine import elementwise, generated, parameters
from softfloat.engine.arguments import Codes
from softfloat.engine.generated import NORMAL, beyond, spans_of
from softfloat.engine.parameters import FLOAT16, FLOAT32, available, dots, exact_units, sums, tiles, units
from softfloat.engine.programs import SIDE_BY_SIDE, Program, Site, is_known, spares
from softfloat.engine.ways import (
    LAYOUT,
    LONGEST,
    Panels,
    Place,
    Random,
    Tally,
    Way,
    exact_products,
    overflow_serves,
    tile_of,
)
from softfloat.formats import NAMED, Format
from softfloat.kernels import spec, targets
from softfloat.kernels.spec import InfiniteInput, Overflow, Rounding, Tininess

WORTH_LOOPS = 1 << 11
"""Multiply-adds from which on loops that lay codes out, which take half a second to compile, are quicker than those that decode any."""
LEAST_WORK = 1 << 16
"""Multiply-adds below which no loop is compiled for a unit of its own."""
LEAST_IN_ALL = 1 << 22
"""The same of all products together that were small: the plain loop takes a quarter of a second for them."""
LEAST_LINE = 1 << 13
"""The same of outputs in a line, where as many as the plain loop takes together count, even if there are fewer."""
NEAR = 1 << 18
"""Bytes of row panels that are read again and again before the next ones."""
LONGEST_SEGMENT = 128
UNROLLED = 8
"""Products of an aligned block whose code is written out."""
EXACT_BITS = 53
SUBTLEST = 100
"""Bits between the largest sum and the smallest bit, for errors of additions to add up exactly."""
DIRECTED = (Rounding.TOWARD_ZERO, Rounding.TOWARD_POSITIVE, Rounding.TOWARD_NEGATIVE, Rounding.TO_ODD)
CUTS = {Rounding.TOWARD_ZERO: "zero", Rounding.TOWARD_NEGATIVE: "floor", Rounding.TO_ODD: "odd"}


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitWay(Way):
    """A unit's description, and what its steps know of formats and grids."""

    unit: Any
    known: Any

    @cached_property
    def carrier(self) -> type:
        """What sums are in."""
        return np.float32 if self.unit.kind == "pairs" or getattr(self.unit, "single", False) else np.float64

    @cached_property
    def planes(self) -> int:
        """Arrays of an operand: terms that are aligned come with powers of two."""
        return 1 + (self.unit.kind == "aligned")

    @property
    def results(self) -> Format:
        """Float64 of registers, whose sums are yet to be rounded."""
        return NAMED["float64"] if self.unit.kind == "fixed" else self.last.format

    @cached_property
    def written(self) -> Codes:
        """Of others, codes are made of float32."""
        return generated.written(self.results, self.last.rule, self.unit.kind == "fixed")

    def numbers(self, planned: Program) -> Any:
        """What the steps know of formats and grids."""
        return self.known

    def turns(self, planned: Program) -> int:
        """Products of a sum with those that fill up whole turns; with those that fill up terms alone, where the last block may be shorter."""
        if not self.sum("grid", False).shortens or planned.order.size:
            return super().turns(planned)
        return -(-planned.products // self.unit.term) * self.unit.term

    @lru_cache(maxsize=512)  # noqa: B019 -- the caches of what makes ways keep these alive, too
    def sum(self, layout: str, counting: bool) -> Any:
        """The description of the loop."""
        of_nan = counting and bool(getattr(self.unit, "stored", "")) and self.site.rule.overflow is Overflow.NAN
        shape = tile_of(layout, self.carrier)
        how = self.joined and self.joined.how
        return sums().UnitSum(self.unit, phased(self.unit), counting, of_nan, layout, *shape, how)

    @cached_property
    def lows(self) -> list[int]:
        """The last bit of the largest number, where an overflow may store it."""
        stores = bool(getattr(self.unit, "stored", "")) or getattr(self.unit, "saturate", False)
        return [self.site.format.emax - self.site.format.mantissa_bits] if self.unit.kind == "exact" and stores else []

    @property
    def widest(self) -> float:
        """Bits that errors of exact sums may have in all, for them to add up exactly."""
        return SUBTLEST if self.unit.kind == "exact" else math.inf

    def of_zeros(self, planned: Program) -> float:
        """The power of two that a zero has where terms are aligned, 0 for none."""
        return 0.0 if self.carrier is np.float32 else power_of_zeros(planned.accumulator)

    @cached_property
    def alike(self) -> bool:
        """Whether all terms have the same power of two: those of several products each."""
        return bool(self.unit.kind == "aligned" and self.unit.term > 1)

    @cached_property
    def open(self) -> UnitWay | None:
        """That of blocks that are added exactly."""
        if self.unit.kind != "exact" or self.joined:
            return None
        return replace(self, unit=self.unit._replace(specials=True))

    @cached_property
    def counting(self) -> UnitWay:
        """Pairs do not overflow."""
        return replace(self, bounded=True) if self.unit.kind == "pairs" else self

    def grids(
        self, planned: Program, panels: Panels, place: Place, random: Random, tally: Tally | None = None, *, quickly: bool = True
    ) -> generated.Job:  # fmt: skip
        """The loop of grids for these operands."""
        known, given = panels.arrays(self, planned, tally), panels.sizes(self) | self.address(place, random)
        turns = panels.a.shape[-2]
        near = NEAR // (self.planes * turns * tiles().ROWS * np.dtype(self.carrier).itemsize)
        given |= {"near": max(near, 1), "step": planned.begun.get(dots().STORE, 0)}
        if (stretch := sums().spanned(self.unit)) and quickly:
            known |= {"spans_a": spans_of(panels.a, stretch), "spans_b": spans_of(panels.b, stretch)}
            known |= {"low_c": np.array([panels.low_c])}
            given["stretches"] = known["spans_a"].shape[1]
        return generated.Job(self.sum("grid", tally is not None), known, given)


def choose(planned: Program) -> UnitWay | None:
    """The way that serves a program, if its operands allow."""
    if not elementwise.quick() or not planned.length:
        return None
    return _choose(planned, available())


_DONE: dict[Any, int] = {}
"""Multiply-adds that were asked of units so far."""


def worth_grid(way: UnitWay, work: int, counting: bool = False) -> bool:
    """Whether a product of so many multiply-adds is worth the loop of its unit, once that is compiled: also a small one, where the unit had
    more to do before; loops that count are others."""
    if tries_quickly(way) or spares(way.unit, work):
        return True
    if counting:
        return work >= LEAST_WORK
    directly = way.unit.kind == "exact" or (way.unit.kind == "aligned" and way.unit.term == 1)
    enough = work >= LEAST_WORK or (directly and work >= WORTH_LOOPS)
    done = LEAST_IN_ALL if enough else _DONE.get(way.unit, 0) + work
    _DONE[way.unit] = min(done, LEAST_IN_ALL)
    return done >= LEAST_IN_ALL


@lru_cache(maxsize=512)
def _choose(planned: Program, features: tuple[bool, ...]) -> UnitWay | None:
    """The same, on a CPU with these features."""
    inner = {number: site for number, site in planned.sites.items() if number != dots().RESULT}
    drawn = {number for number, site in inner.items() if site.width}
    if drawn - {dots().RUNNING if planned.accumulator.fixed else dots().STORE} or any(
        not site.rule.restated for site in inner.values()
    ):
        return None
    how = planned.accumulator
    if how.fixed is not None:
        return _fixed(planned)
    if how.aligned is not None:
        return _aligned(planned)
    if how.product is None and how.block_sum is None and how.chains == 1 and not how.reduction:
        return _exact(planned)
    return _pairs(planned)


def worth_line(planned: Program, outputs: int) -> bool:
    """Whether so many outputs are worth a loop of their own, once that is compiled, beside the plain one, which takes seven times longer to compile.

    Registers, as they are usually rounded, and tensor cores' are at any size; of other roundings there are so many that few sums of each
    take less together by the one loop that serves all.
    """
    how, rule, lanes = planned.accumulator, planned.sites[dots().RUNNING].rule, SIDE_BY_SIDE
    way = choose(planned)
    if way is not None and (tries_quickly(way) or spares(way.unit, planned.length * outputs)):
        return True
    usual = rule.rounding is Rounding.NEAREST_EVEN and not (rule.daz or rule.ftz)
    if usual and how.fixed is not None:
        return True
    if how.kept_bits is not None and not (rule.daz or rule.ftz) and (usual or rule.rounding is Rounding.TOWARD_ZERO):
        return True
    return planned.length * -(-outputs // lanes) * lanes >= LEAST_LINE


def tries_quickly(way: UnitWay) -> bool:
    """Whether a unit's sums are exact, and most of its turns are quick: products of any size are worth its loop."""
    return bool(exact_units().is_quick(way.unit))


def joins(planned: Program) -> bool:
    """Whether a unit's turn joins chains or segments that other programs sum apart."""
    how = planned.accumulator
    return (bool(how.reduction) or how.chains > 1) and choose(planned) is not None


def _single(site: Site) -> bool:
    """Whether a stage is float32 that overflows to infinity; its subnormals never matter here."""
    rule = site.rule
    return site.format.spec == FLOAT32 and rule.overflow is Overflow.INFINITY and _infinities_stay(site)


def _infinities_stay(site: Site) -> bool:
    return site.rule.infinite_input is not InfiniteInput.NAN


def _pairs(planned: Program) -> UnitWay | None:
    """Everything rounded to float32: pairs, trees of blocks, chains of segments."""
    how, floor = planned.accumulator, dots()
    site = planned.sites[floor.RUNNING]
    mode, exact = site.rule.rounding, exact_products(planned)
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
    if not is_known(how, names) or planned.sites.get(floor.PRODUCT, site) != site:
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
        tree=tree,
    )
    known = parameters.steps().Numbers()
    return UnitWay(unit=unit, known=known, site=site, group=unit.group, bounded=not nearest)


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
    """Blocks of a turn, and what happens at its end: nothing, or a store as a half, the "nearest" one, "drawn", or by another mode.

    `saturate`: an overflow may store the largest number.
    """

    blocks: int
    half: str
    saturate: bool
    daz: bool = False
    ftz: bool = False


def _stored(planned: Program, result: str) -> _Stored | None:
    """What the store does; None if that is not known."""
    how, store = planned.accumulator, planned.sites.get(dots().STORE)
    if store is None:
        return _Stored(1, "", False)
    rule = store.rule
    if store.format.spec == FLOAT32 and rule.rounding is Rounding.NEAREST_EVEN and result == "cut":
        return None if rule.daz or rule.ftz else _Stored(1, "", False)  # it holds what is stored
    draws, nearest = rule.rounding is Rounding.STOCHASTIC, rule.rounding is Rounding.NEAREST_EVEN
    after = rule.tininess is Tininess.AFTER
    if store.format.spec != FLOAT16 or (nearest and not available()[1]) or (draws and not after):
        return None
    if rule.rounding is Rounding.UP_OR_DOWN or not overflow_serves(store, planned.policy):
        return None
    if result == "half" or planned.length % how.store_every or how.store_every > LONGEST:
        return None
    half = "drawn" if draws else "nearest" if nearest and after and not rule.ftz else rule.rounding.name.lower()
    saturates = any(math.isfinite(x) for x in beyond(store))
    return _Stored(how.store_every // how.block, half, saturates, rule.daz, rule.ftz)


def _wide_numbers(planned: Program, stored: str) -> Any:
    """What steps on float64 know of the running sum, of stores, and of grids."""
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
    if stored:
        fields["normal"] = float(planned.sites[dots().STORE].format.tiny)
    if stored not in ("", "nearest"):
        store = planned.sites[dots().STORE]
        memory, target = store.format, targets.target(store.format.spec, store.rule, spec.CARRIER64)
        fields["beyond_positive"], fields["beyond_negative"] = beyond(store)
        fields |= {
            "largest": float(memory.max),
            "lowest": (1023 + memory.emin) << 52,
            "magic": (52 - memory.mantissa_bits) << 52 | 1 << 51,
            "tiny": target.tiny_positive,
            "spacing": memory.mantissa_bits << 52,
            "per_quantum": (2 * 1023 + memory.mantissa_bits) << 52,
            "tiny_positive": target.tiny_positive,
            "tiny_negative": -target.tiny_negative,
        }
    if aligned is not None:
        grids = {"terms": aligned.terms, "sum": aligned.sum or 1, "addend": aligned.addend or 1}
        for name, bits in grids.items():
            odd = CUTS[aligned.cut if name == "terms" else aligned.sum_cut] == "odd"
            fields[f"{name}_per"] = (2 * 1023 + bits - odd) << 52
            fields[f"{name}_grid"] = bits << 52
        fields["halves_per"] = (2 * 1023 + aligned.terms - (CUTS[aligned.sum_cut] == "odd")) << 52
        fields["halves_grid"] = aligned.terms << 52
        fields["zero"] = power_of_zeros(planned.accumulator)
        fields["least"] = 0.0 if aligned.least is None else 2.0**aligned.least
        fields["drop"] = 2.0 ** (aligned.drop_addend_below or 0)
    return units().UnitNumbers(**fields)


FIELDS_OF_ALIGNMENT = {
    "terms", "cut", "zeros", "limit", "halves", "includes_addend", "sum", "addend", "sum_cut", "drop_addend_below", "least", "group",
}  # fmt: skip


def power_of_zeros(how: Accumulator) -> float:
    """The power of two that a zero has where terms are aligned, 0 for none."""
    return 0.0 if how.aligned is None or how.aligned.zeros is None else float(2.0**how.aligned.zeros)


def draws(unit: Any) -> bool:
    """Whether sums are stored stochastically."""
    return bool(getattr(unit, "stored", "") == "drawn")


def phased(unit: Any) -> bool:
    """Whether an aligned block is summed in phases, not as one piece of code: from so many products on that is quicker."""
    whole = unit.kind == "aligned" and unit.term == 1 and not (unit.halves or unit.stored)
    return bool(whole and unit.block > UNROLLED)


def _aligned(planned: Program) -> UnitWay | None:
    """Blocks whose terms are cut to a common grid."""
    how, aligned, floor = planned.accumulator, planned.accumulator.aligned, dots()
    running = planned.sites[floor.RUNNING]
    names = {"block", "fraction_bits", "alignment", "unpacked", "positive_zeros", "block_sum", "store", "store_every"}
    if aligned is None or not is_known(aligned, FIELDS_OF_ALIGNMENT) or not is_known(how, LAYOUT | names):
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
    if aligned.limit is not None and aligned.limit <= UnitWay.highest:
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
        positive=how.positive_zeros and result == "half",  # others never round a number to zero
        result=result,
        stored=stored.half,
        saturate=stored.saturate,
        daz=stored.daz,
        ftz=stored.ftz,
    )
    if unit.block > LONGEST and not phased(unit):
        return None
    lowest = NORMAL
    if {unit.cut, unit.sum_cut} != {"zero"} or result == "odd":  # which set bits that no operand has
        lowest += max(aligned.terms, aligned.sum or 0, aligned.addend or 0)
    site = planned.sites.get(floor.STORE, running)
    return UnitWay(unit=unit, known=_wide_numbers(planned, stored.half), site=site, group=unit.group, lowest=lowest)


def term_bits(planned: Program) -> int:
    """Bits of a term's exact sum: of a product, or of several, whatever their exponents."""
    group = 1 if planned.accumulator.aligned is None else planned.accumulator.aligned.group
    if group == 1:
        return sum(fmt.p for fmt in planned.formats)
    return sum(fmt.emax - fmt.emin + fmt.p for fmt in planned.formats) + group.bit_length()


LOWEST_SINGLE = -100
"""Exponent of the last bit that a product has where float32 holds terms that are aligned, and of the finest grid: far from subnormals."""


@lru_cache(maxsize=512)
def in_single(way: UnitWay, planned: Program) -> UnitWay | None:
    """The way of terms that are aligned in float32, twice as many at once, if that holds what comes of operands that fit, without c."""
    unit, aligned = way.unit, planned.accumulator.aligned
    if way.unit.kind != "aligned" or aligned is None or term_bits(planned) > FLOAT32.mantissa_bits + 1:
        return None
    if not unit.inside or unit.halves or unit.stored or (unit.cut, unit.result) != ("zero", "cut"):
        return None
    # a term is less than four times the power of two that sets the grid, the running sum less than twice
    terms, fmt, finest = (
        4 * unit.block << aligned.terms,
        planned.sites[dots().RUNNING].format,
        LOWEST_SINGLE + aligned.terms,
    )
    parts = 1 if unit.term > 1 else -(-terms >> 31)
    if unit.term > 1 or terms + (2 << aligned.terms) > 1 << FLOAT32.mantissa_bits + 1:
        if fmt.spec != FLOAT32 or parts > 1 + (phased(unit) and unit.block % 2 == 0):
            return None
        unit = unit._replace(result="truncated", parts=parts)
    if fmt.mantissa_bits > aligned.terms:
        return None
    if aligned.zeros is not None and min(x.emax for x in planned.formats) < 0:
        return None  # a zero may count for more than any product
    known = units().UnitNumbers(
        floor=(127 + fmt.emin) << 23,
        least=max(2.0**finest, way.known.least),  # below which nothing is cut, whatever power of two zeros have
        terms_per=(2 * 127 + aligned.terms) << 23,
        terms_grid=aligned.terms << 23,
        kept_bits=(1 << 32) - (1 << FLOAT32.mantissa_bits - fmt.mantissa_bits),
    )
    unit, highest = unit._replace(single=True), way.highest if aligned.zeros is None else finest - aligned.zeros
    return UnitWay(
        unit=unit, known=known, site=way.site, group=way.group, lowest=LOWEST_SINGLE, highest=highest, bounded=True
    )


def _exact(planned: Program) -> UnitWay | None:
    """Blocks that are added exactly; single products where sums are stored on the way."""
    how, running = planned.accumulator, planned.sites[dots().RUNNING]
    names = LAYOUT | {"block", "store", "store_every", "scale_exponent", "keeps_zero_sign"}
    if not is_known(how, names) or how.block == ALL or how.block > LONGEST or (how.block == 1 and how.store is None):
        return None
    result = _result(running)
    if result is None or result == "odd":
        return None
    overflow = running.rule.overflow
    if overflow is not Overflow.INFINITY and not (result == "half" and overflow is Overflow.SATURATE):
        return None
    if sum(fmt.p for fmt in planned.formats) > EXACT_BITS or (how.block == 1 and not exact_products(planned)):
        return None
    stored = _stored(planned, result)
    if stored is None:
        return None
    unit = exact_units().Exact(
        kind="exact",
        block=how.block,
        blocks=stored.blocks,
        signed=how.keeps_zero_sign or how.block == 1,
        careful=True,
        result=result,
        stored=stored.half,
        saturate=stored.saturate or overflow is Overflow.SATURATE,
        daz=stored.daz,
        ftz=stored.ftz,
    )
    site = planned.sites.get(dots().STORE, running)
    return UnitWay(unit=unit, known=_wide_numbers(planned, stored.half), site=site, group=unit.group)


def _fixed(planned: Program) -> UnitWay | None:
    """A register in fixed point."""
    how, site = planned.accumulator, planned.sites[dots().RUNNING]
    if not is_known(how, LAYOUT | {"fixed"}) or how.fixed is None:
        return None
    if sum(fmt.p for fmt in planned.formats) > EXACT_BITS:
        return None
    register = how.fixed
    unit = units().Fixed(kind="fixed", cut=CUTS[register.cut], saturate=register.overflow == "saturate")
    span = 2.0**register.bits
    known = units().UnitNumbers(span=span, half_span=span / 2, per_span=1 / span)
    return UnitWay(unit=unit, known=known, site=site)
