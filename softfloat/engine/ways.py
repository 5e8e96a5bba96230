"""Which dot products generated loops serve, by program: formats, roundings, how products meet the sum."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softfloat.engine import elementwise, generated, parameters
from softfloat.engine.arguments import Codes
from softfloat.engine.known import NORMAL, SCALED_NORMAL, beyond, growth, lows_of, narrow_numbers
from softfloat.engine.parameters import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    available,
    descriptions,
    dots,
    orders,
    quick_steps,
    steps,
    tiles,
)
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, InfiniteInput, Overflow, Rounding

if TYPE_CHECKING:
    from softfloat.accumulators import Accumulator, Alignment
    from softfloat.engine.programs import Program, Site


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

    @property
    def tiles(self) -> int:
        """Of all products."""
        return int(len(self.a) * self.a.shape[2] * self.b.shape[2])

    def arrays(self, way: Way, planned: Program, tally: Tally | None) -> dict[str, Codes]:
        """What a loop is told of places; counts go to the `tally`, if there is one."""
        found = {
            "a": self.a, "b": self.b, "c": self.c, "values": self.values, "flags": self.flags,
            "numbers": numbers_of(way, planned),
        }  # fmt: skip
        return found if tally is None else found | tally._asdict()

    def sizes(self, way: Way) -> dict[str, int]:
        """And of sizes."""
        (panels, turns, height), (across, _, width) = self.a.shape[2:], self.b.shape[2:]
        size = panels * height * across * width
        return {
            "tiles": panels * across, "panels": panels, "turns": turns, "wide": across * width, "rows": self.rows, "columns": self.columns,
            "a_size": panels * turns * height, "b_size": across * turns * width, "c_size": size if len(self.c) > 1 else 0, "size": size,
            "product_stride": self.rows * self.columns, "nan_flags": nan_flags_of(way), "has_c": int(self.begins),
        }  # fmt: skip


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


RESULTS = {"half": np.uint16, "bfloat16": np.uint16, "number": np.float32}


def written(fmt: Format) -> str:
    """As what loops write a format's codes, if they do."""
    writing = {FLOAT16: "half", BFLOAT16: "bfloat16", FLOAT32: "number"}.get(fmt.spec, "")
    return "" if writing == "half" and not available()[1] else writing


@dataclass(frozen=True, eq=False, kw_only=True)
class Way:
    """A faster loop: what its operands must fulfil beyond being finite, and how it is called.

    `site` is the stage that rounds last. No bit of an operand may lie below 2^lowest, no product reach 2^highest;
    `bounded`: no sum may reach 2^most.
    """

    site: Site
    group: int = 1  # products of a turn
    lowest: int = NORMAL
    highest: int = 126
    bounded: bool = False
    most: int = 127

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

    @property
    def results(self) -> type | None:
        """The type of grids' results that are codes, of 16 bits or float32's; None if loops make values of the carrier."""
        return RESULTS.get(written(self.site.format))

    def numbers(self, planned: Program) -> Any:
        """What the steps know of formats and rules."""
        return narrow_numbers(planned.sites[dots().RUNNING])

    def grids(
        self,
        planned: Program,
        panels: Panels,
        place: Place,
        random: Random,
        tally: Tally | None = None,
        *,
        quickly: bool = True,
    ) -> generated.Job:
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
    def compensates(self) -> bool:
        """Whether sums keep what they lose, to make up for it."""
        return False

    def leaves(self, flags: Codes) -> bool:
        """Whether an output with one of these flags is left to the plain loop."""
        return False


@dataclass(frozen=True, eq=False, kw_only=True)
class Generated(Way):
    """Products that meet the sum one after the other, by generated loops. `operation` is their order."""

    operation: str

    @property
    def stage(self) -> Any:
        """How products and sums round."""
        raise NotImplementedError

    @property
    def compensates(self) -> bool:
        """Whether what is lost is kept, to make up for it."""
        return self.operation in orders().ADDITIONS

    @property
    def lifts(self) -> bool:
        """Halves that are added in order."""
        return bool(self.stage.family == "half" and self.in_order)

    @property
    def in_order(self) -> bool:
        """Whether products are added one after the other, not in pairs."""
        return bool(orders().ORDERS[self.operation](False).in_order)

    def sum(self, layout: str, counting: bool, reading: str = "", order: str = "") -> Any:
        """The description of the loop; in another order, if one is named. Results are codes, if loops make them, but for sums with errors in a
        line, which these are yet to be added to."""
        stage = self.stage
        if counting and not stage.native:
            stage = stage._replace(of_nan=self.site.rule.overflow is Overflow.NAN)
        coded = written(self.site.format) if self.results and (layout == "grid" or not self.compensates) else ""
        exact = stage.family == "float32_of_narrow" and self.operation == "mul_add"  # products: one instruction does
        return descriptions().Sum(
            order or ("fma" if exact else self.operation),
            stage,
            counting,
            layout,
            *tile_of(layout, self.carrier),
            reading,
            coded,
        )

    def watched(self, planned: Program, panels: Panels) -> tuple[dict[str, Codes], dict[str, int]]:
        """What loops are told of operands: arrays and numbers."""
        return {}, {}

    def grids(
        self, planned: Program, panels: Panels, place: Place, random: Random, tally: Tally | None = None, chains: int = 1, length: int = 0,
        *, quickly: bool = True,
    ) -> generated.Job:  # fmt: skip
        """The loop of grids for these operands, or of several chains of one, which have so many products in all; `planned` is the program of the
        first."""
        what = self.sum("grid", tally is not None)
        known, given = self.watched(planned, panels) if quickly else ({}, {})
        known |= panels.arrays(self, planned, tally)
        given |= panels.sizes(self) | {"length": length or planned.length, "chains": chains}
        if what.stage.draws:
            begun = planned.begun.get(dots().RUNNING, 0)  # and as many products rounded
            known |= self.rounding
            given |= self.address(place, random)
            given |= generated.turns(begun, chains if chains > 1 else planned.apart, chains)
        return generated.Job(what, known, given)


@dataclass(frozen=True, eq=False, kw_only=True)
class Settled(Generated):
    """The same, rounded deterministically."""

    manner: Any

    @cached_property
    def stage(self) -> Any:
        """How products and sums round."""
        return descriptions().Stage(*self.manner)


class Compensated(Settled):
    """Sums whose errors are made up for. What overflows is left to the plain loop."""

    def numbers(self, planned: Program) -> Any:
        """What the steps know of formats and rules: overflows are seen by infinities."""
        return narrow_numbers(self.site)._replace(beyond_positive=math.inf, beyond_negative=-math.inf)

    def leaves(self, flags: Codes) -> bool:
        """Whether some output is left to the plain loop."""
        return bool(np.any(flags & spec.OVERFLOW))


class OneByOne(Settled):
    """Sums of products that are fused, or rounded as the sum is."""

    def watched(self, planned: Program, panels: Panels) -> tuple[dict[str, Codes], dict[str, int]]:
        """What loops are told of operands: the least numbers of their turns, if they ask, and whether they may split sums."""
        limit, (a, b, c) = self.limit(planned.length), panels.greatest
        roomy = bool(limit) and planned.length * a * b + c < limit and b < quick_steps().SPLIT_MOST
        given = {"roomy": int(roomy)}
        if not self.asks:
            return {}, given
        return {"lows": lows_of(panels.a, panels.b)}, given | {"low_b": panels.a.size // panels.a.shape[-1]}

    def limit(self, length: int) -> float:
        """Of halves and bfloat16, what no sum reaches, rounded or not."""
        if not quick_steps().splits(self.operation, self.manner):
            return 0.0
        fmt = self.site.format  # the sum's roundings and the product's, each by half a unit in the last place
        top = min(float(fmt.max), quick_steps().SPLIT_MOST) / growth((length + 1) / 2, fmt)
        return max(top - length * fmt.smallest_subnormal, 0.0)

    @property
    def asks(self) -> bool:
        """Whether loops ask for the least numbers of turns."""
        return bool(quick_steps().is_lifted(self.operation, self.manner))


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn(Generated):
    """The same, rounded stochastically; `wide`: products have more bits than float32. Of sums with errors, outputs in a line alone."""

    wide: bool = False

    @cached_property
    def stage(self) -> Any:
        """How products and sums round."""
        rule, fmt = self.site.rule, self.site.format.spec
        narrow = fmt != FLOAT32  # of which nothing is subnormal, and nothing overflows
        return descriptions().Stage(
            family="half" if fmt == FLOAT16 else "narrow" if narrow else "float32",
            rounding=rule.rounding.name.lower(),
            noted=narrow and rule.overflow is Overflow.SATURATE,
            daz=narrow and rule.daz,
            ftz=narrow and rule.ftz,
            wide=self.wide,
        )


def nan_flags_of(way: Way) -> int:
    """The flags of outputs that are NaN."""
    invalid = way.site.rule.overflow is Overflow.NAN or bool(way.site.format.infinities)
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


def choose(planned: Program) -> Way | None:
    """The way that serves a program, if its operands allow."""
    accumulator = planned.accumulator
    if not elementwise.quick() or not planned.length or accumulator.reduction:
        return None
    if accumulator.compensation is not None:
        return _compensated(planned, available())
    if accumulator.tree or accumulator.chains > 1 or not planned.is_plain:
        return None
    return _choose(planned, available())


@lru_cache(maxsize=512)
def _choose(planned: Program, features: tuple[bool, ...]) -> Way | None:
    """The same of a program that some way may serve, on a CPU with these features."""
    if not all(site.rule.restated for site in planned.sites.values()):
        return None
    floor = dots()
    return one_by_one(planned) if planned.kind in (floor.FUSED, floor.ROUNDED) else None  # others are units


LAYOUT = {"name", "running", "inputs", "daz", "result", "nan", "note", "source", "channel_group", "order"}
"""Fields that the layout of operands, the stages of a program, and the plain loop's results take in."""
COMPENSATED = LAYOUT | {"product", "compensation"}


def only(described: Accumulator | Alignment, names: set[str]) -> bool:
    """Whether nothing but these fields departs from its default."""
    others = [x for x in dataclasses.fields(described) if x.name not in names]
    return all(getattr(described, x.name) == x.default for x in others)


@lru_cache(maxsize=512)
def _compensated(planned: Program, features: tuple[bool, ...]) -> Way | None:
    """The way of sums whose errors are made up for, on a CPU with these features."""
    how = planned.accumulator
    if not only(how, COMPENSATED) or not all(site.rule.restated for site in planned.sites.values()):
        return None
    known, operation = one_by_one(planned, bounded=True), str(how.compensation)
    if isinstance(known, Drawn):
        served = not planned.goes_on and overflow_serves(known.site, planned.policy)
        return replace(known, operation=operation) if served else None
    if not isinstance(known, OneByOne):
        return None
    return Compensated(
        operation=operation,
        manner=known.manner._replace(noted=False),
        site=known.site,
        lowest=known.lowest,
        highest=known.highest,
        bounded=known.bounded,
    )


def overflow_serves(site: Site, policy: spec.NanPolicy) -> bool:
    """Whether an overflow stays: as an infinity, a NaN, or the largest number."""
    rule, fmt = site.rule, site.format
    if rule.overflow is Overflow.SATURATE:
        return True
    if rule.overflow is Overflow.NAN:
        return fmt.has_nan and bool(fmt.infinities)
    plain = rule.infinite_input in (InfiniteInput.DEFAULT, InfiniteInput.KEEP)
    return plain and fmt.has_nan and (bool(fmt.infinities) or not policy.any_nan_signals)


def one_by_one(planned: Program, bounded: bool = False) -> Way | None:
    """For products that meet the sum one after the other: fused, or rounded as the sum is. `bounded`: overflows are not its affair."""
    floor = dots()
    site = planned.sites[floor.RUNNING]
    rule = site.rule
    family, wide = family_of_sums(site.format.spec)
    if (
        not family
        or not rule.restated
        or planned.accumulator.store
        or not (bounded or overflow_serves(site, planned.policy))
    ):
        return None
    operation = "fma" if planned.kind == floor.FUSED else "mul_add"
    if operation == "mul_add" and planned.sites[floor.PRODUCT] != site:
        return None
    exact = products_are_exact(planned)
    if family == "float32":
        return _single(operation, site, exact) if available()[0] else None
    if not (exact or products_are_wide(planned)):
        return None
    if rule.rounding.draws:
        if not available()[0]:
            return None
        return Drawn(
            operation=operation, site=site, lowest=lowest_of(site.format, not exact, SCALED_NORMAL), wide=not exact
        )
    nearest = rule.rounding is Rounding.NEAREST_EVEN
    ranged = family == "bfloat16"  # within the range asked of operands nothing is subnormal
    manner = steps().Manner(
        family=family,
        rounding=rule.rounding.name.lower(),
        noted=any(math.isfinite(x) for x in beyond(site)),
        daz=rule.daz and not ranged,
        ftz=rule.ftz and not ranged,
        wide=not exact,
    )
    highest = 100 if family == "narrow" or not nearest else 126
    # narrow formats are rounded by adding 2^23 quanta, of a sum's own size: they must not overflow
    return OneByOne(
        operation=operation,
        manner=manner,
        site=site,
        lowest=lowest_of(site.format, not exact, NORMAL if nearest else SCALED_NORMAL),
        highest=WIDE_HIGHEST if wide else highest,
    )


def products_are_exact(planned: Program) -> bool:
    """Whether float32 has all bits of the operands' products."""
    return sum(fmt.p for fmt in planned.formats) <= FLOAT32.mantissa_bits + 1


def products_are_wide(planned: Program) -> bool:
    """Whether it has those of the operands, and the CPU tells what their products lose."""
    return max(fmt.p for fmt in planned.formats) <= FLOAT32.mantissa_bits + 1 and available()[0]


def lowest_of(fmt: Format, wide: bool, lowest: int) -> int:
    """The exponent of the least bit of products that are rounded to a format: `lowest`, or of wide ones the least that float32 has, where
    what is scaled by the format's quanta stays in range."""
    return SUBNORMAL if wide and parameters.fits_narrow_carrier(fmt.spec) else lowest


def _single(operation: str, site: Site, exact: bool) -> Way | None:
    """For sums in float32."""
    rounding = site.rule.rounding
    if rounding.draws:
        return Drawn(operation="fma" if exact else operation, site=site, bounded=True, wide=not exact)
    manner = steps().Manner(family="float32_of_narrow" if exact else "float32", rounding=rounding.name.lower())
    bounded = site.rule.overflow is not Overflow.INFINITY or rounding is not Rounding.NEAREST_EVEN
    return OneByOne(operation=operation, manner=manner, site=site, bounded=bounded)
