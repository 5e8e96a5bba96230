"""Which dot products generated loops serve, by program: formats, roundings, how products meet the sum."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine import elementwise, generated, parameters
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import NO_TABLE, decoded, readable
from softfloat.engine.generated import NORMAL, SCALED_NORMAL, beyond, growth, lows_of, narrow_numbers
from softfloat.engine.parameters import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    arithmetics,
    available,
    descriptions,
    dots,
    orders,
    quick,
    steps,
    tiles,
    wide_elements,
)
from softfloat.engine.programs import Program, Site, is_known
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, InfiniteInput, Overflow, Rounding

WIDE_HIGHEST = 60
"""No product, nor what a sum begins with, reaches this power of two where the format itself has larger numbers than 2^23 quanta allow."""
SUBNORMAL = -149
"""Exponent of float32's smallest number: operands, and errors of sums and products, are multiples of it."""
LONGEST = 64  # products of a turn, which are written out in code


class Place(NamedTuple):
    """Where outputs lie among a call's random addresses: the number of the first, and how far it is to the next row and column."""

    first: int
    row_stride: int
    column_stride: int


class Panels(NamedTuple):
    """Operands as the loops of grids take them, and where results go, of whole tiles; so many rows and columns are wanted.

    a is (products, planes, row panels, k, rows of one), b alike, of columns; c, values and flags are (products, rows, columns), c maybe of one
    product, for all. Tiles of a product follow those of another. What outputs beyond `rows` and `columns` raise is seen as well, INEXACT always.
    """

    a: Codes
    b: Codes
    c: Codes
    values: Codes
    flags: Codes
    rows: int
    columns: int
    begins: bool
    """Whether sums begin with c; else that holds zeros."""
    greatest: tuple[float, float, float] = (math.inf, math.inf, math.inf)
    """The largest magnitudes of a, b and c."""
    low_c: float = math.inf
    """The lowest bit that a sum may have before its first product, infinite without any."""
    scales: tuple[Codes, ...] = ()
    """As float32 codes, (segments, rows) and (segments, columns) of whole tiles, if sums of segments are multiplied by any."""

    @property
    def tiles(self) -> int:
        """Of all products."""
        return int(len(self.a) * self.a.shape[2] * self.b.shape[2])

    def arrays(self, way: Way, planned: Program, tally: Tally | None) -> dict[str, Codes]:
        """What a loop is told of places; counts go to the `tally`, if there is one."""
        found = {
            "a": self.a, "b": self.b, "c": self.c, "values": self.values, "flags": self.flags,
            "numbers": numbers_of(way, planned), "written": way.written,
        }  # fmt: skip
        if way.joined is not None:
            found |= {"ends": way.joined.ends, "joining": way.joined.numbers}
            found |= dict(zip(("scales_a", "scales_b"), self.scales, strict=False))
        return found if tally is None else found | tally._asdict()

    def sizes(self, way: Way) -> dict[str, int]:
        """And of sizes."""
        (panels, turns, height), (across, _, width) = self.a.shape[2:], self.b.shape[2:]
        size = panels * height * across * width
        return {
            "tiles": panels * across, "panels": panels, "turns": turns, "wide": across * width, "rows": self.rows, "columns": self.columns,
            "a_size": panels * turns * height, "b_size": across * turns * width, "c_size": size if len(self.c) > 1 else 0, "size": size,
            "product_stride": self.rows * self.columns, "has_c": int(self.begins),
            "parts": 0 if way.joined is None else way.joined.ends.size - 1, "tall": panels * height,
        } | way.flags  # fmt: skip


class Tally(NamedTuple):
    """Of each output: additions that overflowed, were inexact, were swamped; the least and the greatest running sum."""

    counts: Codes
    extremes: Codes

    @staticmethod
    def room(shape: tuple[int, ...], carrier: type) -> Tally:
        """For counts of outputs of this shape, whatever it holds."""
        return Tally(np.empty((3, *shape), np.int32), np.empty((2, *shape), carrier))

    def part(self, some: slice) -> Tally:
        """Those of some outputs in a line."""
        return Tally(self.counts[:, some], self.extremes[:, some])

    def padded(self, shape: tuple[int, ...], carrier: type) -> Tally:
        """For counts of a grid filled up to whole tiles, of this shape: these arrays, if they are such."""
        kinds = self.counts.dtype, self.extremes.dtype
        fits = self.counts.shape[1:] == shape and kinds == (np.int32, carrier)
        return self if fits and all(x.flags.c_contiguous for x in self) else Tally.room(shape, carrier)

    def cut(self, padded: Tally) -> None:
        """To be what a grid filled up to whole tiles has counted, of the outputs that there are."""
        if padded is self:
            return
        _, rows, columns = self.counts.shape
        for target, source in zip(self, padded, strict=True):
            target[...] = source[:, :rows, :columns]


class Random(NamedTuple):
    """The key and stream of a call's random numbers."""

    key: int
    stream: int

    @property
    def words(self) -> tuple[np.uint64, np.uint64]:
        """As loops take them."""
        return np.uint64(self.key), np.uint64(self.stream)


class Joined(NamedTuple):
    """Segments or chains whose sums a loop adds up: how it describes that, the stage, what steps know of it, 0 and products before which each ends,
    and the program of all, which has products in the order that loops take."""

    how: Any
    site: Site
    numbers: Codes
    ends: Codes
    planned: Program


@dataclass(frozen=True, eq=False, kw_only=True)
class Way:
    """A faster loop: what its operands must fulfil beyond being finite, and how it is called.

    `site` is the stage that rounds last, unless sums are `joined`. No bit of an operand may lie below 2^lowest, no product reach 2^highest;
    `bounded`: no sum may reach 2^most.
    """

    site: Site
    group: int = 1  # products of a turn
    lowest: int = NORMAL
    highest: int = 126
    bounded: bool = False
    most: int = 127
    joined: Joined | None = None

    @property
    def last(self) -> Site:
        """The stage that results come from."""
        return self.site if self.joined is None else self.joined.site

    @property
    def carrier(self) -> type:
        """What loops compute in."""
        return np.float32

    @property
    def planes(self) -> int:
        """Arrays of an operand."""
        return 1

    @property
    def lifts(self) -> bool:
        """Whether quick steps multiply the second operand by `LIFT`."""
        return False

    @cached_property
    def unflushed(self) -> parameters.Numbers:
        """What rounds by codes where the steps leave it open, and reads these as they are."""
        fmt = self.site.format.spec
        return parameters.numbers(fmt, fmt, self.site.rule._replace(daz=False), CARRIER64)

    @cached_property
    def rounding(self) -> dict[str, Codes]:
        """What the plain functions take, that round where 16 random bits do not tell."""
        integers, floats = self.unflushed
        return {"integers": integers, "floats": floats}

    def address(self, place: Place, random: Random) -> dict[str, int]:
        """Where the random numbers of outputs are."""
        return {
            "index": place.first, "row_stride": place.row_stride, "column_stride": place.column_stride, "width": self.site.width,
            "key": random.key, "stream": random.stream,
        }  # fmt: skip

    def turns(self, planned: Program) -> int:
        """Products of a sum, with those that fill up whole turns."""
        return -(-planned.length // self.group) * self.group

    @property
    def results(self) -> Format:
        """The format whose codes loops make of sums."""
        return self.last.format

    @cached_property
    def written(self) -> Codes:
        """What makes them."""
        return generated.written(self.results, self.last.rule, self.carrier is np.float64)

    @cached_property
    def flags(self) -> dict[str, int]:
        """Those of outputs that are NaN, and infinite."""
        nan = nan_flags_of(self)
        return {"nan_flags": nan, "infinity_flags": nan if self.last.rule.overflow is Overflow.NAN else 0}

    def numbers(self, planned: Program) -> Any:
        """What the steps know of formats and rules."""
        raise NotImplementedError

    def grids(
        self, planned: Program, panels: Panels, place: Place, random: Random, tally: Tally | None = None, *, quickly: bool = True
    ) -> generated.Job:  # fmt: skip
        """The loop of grids for these operands; it fills the `tally`, which has room for whole tiles, if there is one. Operands that are yet to
        come are not looked at for what would be `quickly` done."""
        raise NotImplementedError

    @property
    def lows(self) -> list[int]:
        """Exponents of the least bits that sums may have beside those of products."""
        return []

    @property
    def widest(self) -> float:
        """Bits that there may be between the largest sum and the smallest bit."""
        return math.inf

    def of_zeros(self, planned: Program) -> float:
        """The power of two that loops are told of zeros, where terms are aligned."""
        return 0.0

    @property
    def alike(self) -> bool:
        """Whether all terms that are aligned have the same power of two."""
        return False

    @property
    def counting(self) -> Way:
        """The way whose loops count as well."""
        return self

    def source(self, planned: Program, which: int, codes: Codes) -> generated.Source | None:
        """How an operand's codes are read; None if the carrier does not hold their numbers."""
        fmt, rule = planned.formats[which], planned.reading[which]
        read = readable(codes, fmt, rule.daz)
        if read is None and self.carrier is np.float64:
            read = "number", decoded(codes, fmt, rule), NO_TABLE
        tiny = float((planned.accumulator.unpacked or fmt).tiny)
        return None if read is None else generated.Source(*read, tiny, self.of_zeros(planned))

    @property
    def compensates(self) -> bool:
        """Whether sums keep what they lose, to make up for it."""
        return False

    def leaves(self, flags: Codes) -> bool:
        """Whether an output with one of these flags is left to the plain loop."""
        return False

    @property
    def open(self) -> Way | None:
        """The way of operands that may be infinite or NaN as well, where these stay what they are, if there is one."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Generated(Way):
    """An order of sums, `operation`, and how products and sums round, by generated loops."""

    operation: str
    stage: Any

    @property
    def compensates(self) -> bool:
        """Whether what is lost is kept, to make up for it."""
        return self.operation in ("exact", *orders().ADDITIONS)

    @property
    def lifts(self) -> bool:
        """Halves that are added in order."""
        return bool(self.stage.family == "half" and self.in_order)

    @property
    def in_order(self) -> bool:
        """Whether products are added one after the other, not in pairs."""
        return bool(self._order.in_order)

    @cached_property
    def _order(self) -> Any:
        return orders().ORDERS[self.operation](self.stage.draws)

    @property
    def plainly_in_order(self) -> bool:
        """Whether they are, deterministically, and nothing else is done."""
        return self.in_order and not (self.compensates or self.stage.draws)

    @property
    def _leaves_overflows(self) -> bool:
        """Whether outputs that overflow are left to the plain loop: where what is lost is kept, and nothing drawn."""
        return self.compensates and not self.stage.draws

    def leaves(self, flags: Codes) -> bool:
        """Whether some output is left to the plain loop."""
        return self._leaves_overflows and bool(np.any(flags & spec.OVERFLOW))

    @cached_property
    def open(self) -> Generated | None:
        """That of vectors, but for pairs that draw."""
        opened, joined = {"specials": True, "noted": True}, self.joined
        if (self.stage.draws and not self.in_order) or (joined and joined.how.scaling):
            return None
        if joined is not None:
            joined = joined._replace(how=joined.how._replace(stage=joined.how.stage._replace(**opened)))
        return replace(self, stage=self.stage._replace(**opened), joined=joined)

    def numbers(self, planned: Program) -> Any:
        """What the steps know of formats and rules. Overflows that are left are seen by infinities."""
        known = narrow_numbers(self.site)
        return known._replace(beyond_positive=math.inf, beyond_negative=-math.inf) if self._leaves_overflows else known

    def sum(self, layout: str, counting: bool, order: str = "") -> Any:
        """The description of the loop; in another order, if one is named."""
        stage = self.stage
        if counting and not stage.native:
            stage = stage._replace(of_nan=self.site.rule.overflow is Overflow.NAN)
        exact = stage.family == "float32_of_narrow" and self.operation == "mul_add"  # products: one instruction does
        order = order or ("fma" if exact else self.operation)
        shape = tile_of(layout, self.carrier)
        return descriptions().Sum(order, stage, counting, layout, *shape, self.joined and self.joined.how)

    def watched(self, planned: Program, panels: Panels) -> tuple[dict[str, Codes], dict[str, int]]:
        """What loops are told of operands: the least numbers of their turns, if they ask, and whether they may split sums."""
        length = planned.length if self.joined is None else int(np.diff(self.joined.ends).max())
        limit, (a, b, c) = self._limit(length), panels.greatest
        roomy = bool(limit) and length * a * b + c < limit and b < quick().SPLIT_MOST
        given = {"roomy": int(roomy)}
        if not arithmetics().is_lifted(self._order, self.stage):
            return {}, given
        return {"lows": lows_of(panels.a, panels.b)}, given | {"low_b": panels.a.size // panels.a.shape[-1]}

    def _limit(self, length: int) -> float:
        """Of halves and bfloat16, what no sum reaches, rounded or not."""
        if not arithmetics().splits(self._order, self.stage):
            return 0.0
        fmt = self.site.format  # the sum's roundings and the product's, each by half a unit in the last place
        top = min(float(fmt.max), quick().SPLIT_MOST) / growth((length + 1) / 2, fmt)
        return max(top - length * fmt.smallest_subnormal, 0.0)

    def grids(
        self, planned: Program, panels: Panels, place: Place, random: Random, tally: Tally | None = None, *, quickly: bool = True
    ) -> generated.Job:  # fmt: skip
        """The loop of grids for these operands."""
        what = self.sum("grid", tally is not None)
        known, given = self.watched(planned, panels) if quickly else ({}, {})
        known |= panels.arrays(self, planned, tally)
        given |= panels.sizes(self) | {"length": planned.length, "chains": 1}
        if what.stage.draws:
            begun = planned.begun.get(dots().RUNNING, 0)  # and as many products rounded
            chains = planned.accumulator.chains
            known |= self.rounding
            given |= self.address(place, random)
            given |= generated.turns(begun, chains if chains > 1 else planned.apart, chains)
        return generated.Job(what, known, given)


class Double(Generated):
    """Sums in wide formats, by the CPU's operations in float64, and what these lose: of finite numbers of which none is tiny or huge. Where
    three numbers do not hold an exact sum, it is infinite, and left to the loop that holds all."""

    @property
    def carrier(self) -> type:
        """What loops compute in."""
        return np.float64

    def numbers(self, planned: Program) -> Any:
        """Those of bits, of units in the last place, and what random bits after the first 16 may add."""
        bits = self.site.format.mantissa_bits
        taken = spec.FLOAT64.mantissa_bits - bits
        return steps().Numbers(
            below=(1 << taken) - 1,
            tie=1 << taken >> 1,
            per_quantum=(2 * CARRIER64.bias + bits) << spec.FLOAT64.mantissa_bits,
            undecided=2.0**-16 if self.site.width > 16 else 0.0,
        )

    @cached_property
    def unflushed(self) -> parameters.Numbers:
        """What rounds with all random bits takes."""
        fmt = self.site.format.spec
        return parameters.numbers(fmt, fmt, self.site.rule._replace(daz=False), CARRIER64, wide=True)


def nan_flags_of(way: Way) -> int:
    """The flags of outputs that are NaN."""
    invalid = way.last.rule.overflow is Overflow.NAN or bool(way.last.format.infinities)
    return int(spec.OVERFLOW | spec.INEXACT | (spec.INVALID if invalid else 0))


@lru_cache(maxsize=512)
def numbers_of(way: Way, planned: Program) -> Codes:
    """What the steps know, as an array that nobody writes to."""
    packed: Codes = steps().packed(way.numbers(planned), way.carrier)
    return packed


def tile_of(layout: str, carrier: type) -> tuple[int, int]:
    """Rows and lanes of a tile. The smallest vectors that CPUs have do for a "lone" output, and for "few": code of one number is slow."""
    return (1, tiles().LONE_LANES) if layout in ("lone", "few") else (tiles().ROWS, tiles().LANES[carrier])


# -- choosing --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def family_of(fmt: spec.FormatSpec) -> str:
    """The family of formats that steps on float32 know this one by, if any."""
    if fmt == FLOAT16 and available()[1]:
        return "half"
    if fmt == BFLOAT16:
        return "bfloat16"
    if fmt == FLOAT32:
        return "float32"
    return "narrow" if parameters.fits_narrow_carrier(fmt) and not parameters.is_unusual(fmt) else ""


def family_of_sums(fmt: spec.FormatSpec) -> tuple[str, bool]:
    """The same, and whether it is one for sums of numbers in a middle range: of any exponents that float32 has, maybe without a negative zero."""
    family = family_of(fmt)
    wide = not family and parameters.ranges_in_single(fmt) and fmt.signed and fmt.zero and fmt.subnormals
    return "narrow" if wide else family, wide


LAYOUT = {"name", "running", "inputs", "daz", "result", "nan", "note", "source", "channel_group", "order"}
"""Fields that the layout of operands, the stages of a program, and the plain loop's results take in."""
OF_PROGRAMS = frozenset({
    "accumulator", "formats", "partials", "output", "sites", "reading", "entry", "length", "products", "fixed", "block", "stores", "closes",
    "entered", "draws", "policy",
})  # fmt: skip
IN_ORDER = {"index", "begun", "apart"}
"""Those of programs that matter to sums in order alone: which product comes where, and what has been done before."""
OF_ACCUMULATORS = frozenset(LAYOUT | {"product", "tree", "compensation", "segment", "segments", "block"})
OF_RULES = frozenset({
    "rounding", "overflow", "tininess", "infinite_input", "daz", "ftz", "nan", "always_infinite", "random_width",
})  # fmt: skip
"""Fields that the pieces know: what they mean is in the order, the stage, the extents of operands, or done before or after the sum. One that
nobody names must be as it is by default: then a sum that a new field describes goes the plain way, and no condition has to be added for that."""


def choose(planned: Program) -> Generated | None:
    """The way that serves a program, if its operands allow."""
    if not elementwise.quick() or not planned.length:
        return None
    if planned.wide:
        return _wide(planned) if wide_elements().HAS_FUSED else None
    return _choose(planned, available())


@lru_cache(maxsize=512)
def _choose(planned: Program, features: tuple[bool, ...]) -> Generated | None:
    """The same of a program of formats that are not wide, on a CPU with these features."""
    how, rule, kinds = planned.accumulator, planned.sites[dots().RUNNING].rule, dots()
    known = is_known(how, OF_ACCUMULATORS) and is_known(rule, OF_RULES)
    if not (known and is_known(planned, OF_PROGRAMS if how.tree else OF_PROGRAMS | IN_ORDER)):
        return None
    if planned.kind not in (kinds.FUSED, kinds.ROUNDED) or (how.tree and planned.block > 1):
        return None  # others are units
    made = one_by_one(planned, bounded=how.compensation is not None)
    if made is None or not (how.tree or how.compensation):
        return made
    if how.tree:
        return replace(made, operation="pairwise") if planned.kind == kinds.ROUNDED else None
    if made.stage.draws and (planned.goes_on or not overflow_serves(made.site, planned.policy)):
        return None
    stage = made.stage if made.stage.draws else made.stage._replace(noted=False)
    return replace(made, operation=str(how.compensation), stage=stage)


def overflow_serves(site: Site, policy: spec.NanPolicy) -> bool:
    """Whether an overflow stays: as an infinity, a NaN, or the largest number."""
    rule, fmt = site.rule, site.format
    if rule.overflow is Overflow.SATURATE:
        return True
    if rule.overflow is Overflow.NAN:
        return fmt.has_nan and bool(fmt.infinities)
    plain = rule.infinite_input in (InfiniteInput.DEFAULT, InfiniteInput.KEEP)
    return plain and fmt.has_nan and (bool(fmt.infinities) or not policy.any_nan_signals)


def exact_products(planned: Program) -> bool:
    """Whether float32 has every product."""
    return sum(fmt.p for fmt in planned.formats) <= FLOAT32.mantissa_bits + 1


def one_by_one(planned: Program, bounded: bool = False) -> Generated | None:
    """For products that meet the sum one after the other: fused, or rounded as the sum is. `bounded`: overflows are not its affair."""
    floor, site = dots(), planned.sites[dots().RUNNING]
    fused = planned.kind == floor.FUSED
    if not fused and planned.sites[floor.PRODUCT] != site:
        return None
    return by_stage(site, planned.policy, fused, exact_products(planned), bounded)


def by_stage(
    site: Site, policy: spec.NanPolicy, fused: bool = True, exact: bool = True, bounded: bool = False
) -> Generated | None:
    """The same of a stage, and products of which float32 has `exact` ones."""
    rule, draws, nearest = site.rule, site.rule.rounding.draws, site.rule.rounding is Rounding.NEAREST_EVEN
    family, wide = family_of_sums(site.format.spec)
    if not family or not rule.restated or not (bounded or overflow_serves(site, policy)):
        return None
    if (draws or not exact or family == "float32") and not available()[0]:
        return None
    make = partial(Generated, site=site, operation="fma" if fused else "mul_add")
    stage = descriptions().Stage(family, rule.rounding.name.lower(), wide=not exact)
    if family == "float32":
        if draws:
            return make(stage=stage, bounded=True, operation="fma" if fused or exact else "mul_add")
        family = "float32_of_narrow" if exact else family
        bounded = rule.overflow is not Overflow.INFINITY or not nearest
        return make(stage=stage._replace(family=family, wide=False), bounded=bounded)
    ranged = family == "bfloat16" and not draws  # within the range asked of operands nothing is subnormal
    stage = stage._replace(
        family="narrow" if draws and family == "bfloat16" else family,
        noted=any(math.isfinite(x) for x in beyond(site)),
        daz=rule.daz and not ranged,
        ftz=rule.ftz and not ranged,
    )
    # the least bit of products: of wide ones what float32 has, where what is scaled by the format's quanta stays in range
    finest = SUBNORMAL if not exact and parameters.fits_narrow_carrier(site.format.spec) else None
    lowest = NORMAL if nearest else SCALED_NORMAL
    if draws:
        return make(stage=stage, lowest=lowest if finest is None else finest)
    # narrow formats are rounded by adding 2^23 quanta, of a sum's own size: they must not overflow
    highest = WIDE_HIGHEST if wide else 100 if family == "narrow" or not nearest else 126
    return make(stage=stage, lowest=lowest if finest is None else finest, highest=highest)


# -- wide formats ----------------------------------------------------------------------------------------------------

KNOWN_OF_WIDE = (LAYOUT | {"product", "compensation", "tree", "block"}) - {"order"}
"""Fields of accumulators that their loops know."""
WIDE_NORMAL, WIDE_MOST = spec.FLOAT64.mantissa_bits - 1074, 1022
"""Powers of two below which no bit lies, so that half units are normal, and that no sum reaches, of float64."""


def operation_of(planned: Program) -> str:
    """The order in which a program adds up products, each chain or segment by itself."""
    how = planned.accumulator
    if planned.kind == dots().EXACT:
        return "exact"
    return "pairwise" if how.tree else how.compensation or ("fma" if how.product is None else "mul_add")


@lru_cache(maxsize=512)
def _wide(planned: Program) -> Generated | None:
    how, stages = planned.accumulator, dots()
    sites = [planned.sites[n] for n in (stages.RUNNING, stages.PRODUCT) if n in planned.sites]
    kinds = {(site.format.spec, site.rule.rounding, site.width) for site in sites}
    site, fmt, rule = sites[0], sites[0].format, sites[0].rule
    if len(kinds) > 1 or parameters.is_unusual(fmt.spec) or planned.daz or not is_known(how, KNOWN_OF_WIDE):
        return None
    exact = planned.kind == stages.EXACT
    apart = how.tree or how.compensation is not None
    if rule.rounding.draws and (exact or not rule.restated or (apart and planned.goes_on)):
        return None
    family = "float64" if fmt.mantissa_bits == spec.FLOAT64.mantissa_bits else "float64_shorter"
    flushes, highest = rule.daz or rule.ftz, min(WIDE_MOST, fmt.emax)
    return Double(
        operation=operation_of(planned),
        stage=descriptions().Stage(family, rule.rounding.name.lower(), wide=True),
        site=site,
        lowest=max(WIDE_NORMAL, fmt.emin - (0 if flushes else fmt.mantissa_bits)),
        highest=highest,
        most=highest,
    )
