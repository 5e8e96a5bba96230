"""An accumulator under one call's options, for one length of k: which stages round where, which products come when."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator, Alignment, Stage
from softfloat.accumulators.accumulator import ALL, COMPENSATIONS
from softfloat.engine import parameters
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FEW_PRODUCTS, SPARED_PRODUCTS, Numbers, Spared, dots, spared
from softfloat.environments import Settings
from softfloat.formats import Format
from softfloat.kernels import spec, targets
from softfloat.kernels.spec import CARRIER64, Rounding, Rule

DIRECTIONS = Rounding.TOWARD_ZERO, Rounding.TOWARD_NEGATIVE, Rounding.TO_ODD
"""In the order of `kernels.accumulate`."""

# -- programs --------------------------------------------------------------------------------------------------------


class Site(NamedTuple):
    """A stage of one call: where it rounds to, under which rule, and how many random bits it draws (0: none)."""

    format: Format
    rule: Rule
    width: int

    @property
    def numbers(self) -> Numbers:
        """What the loops know of it."""
        return parameters.numbers(self.format.spec, self.format.spec, self.rule, CARRIER64)


@dataclass(frozen=True, eq=False)
class Program:
    """One accumulator under one call's options, for one length of k.

    Attributes
    ----------
    sites : dict of int to Site
        The stages by the numbers of `kernels.accumulate`.
    index : array of int, or None
        Which product comes where; -1 is +0. None: as they are.
    reading : pair of Rule
        How operands are read.
    length, products : int
        Products, with those filled in; those given.
    stores, closes : array of uint8
        After which blocks the running sum is stored, and how many levels of the reduction end.
    begun : mapping of int to int
        How many roundings stages have done before, in other segments of the whole; none where that is 0.
    fixed : set of str
        Settings that each stage fixes: what the call says of them has no effect.
    apart : int
        How many products of the whole it is from one of these to the next, whose roundings' random numbers lie as far apart.
    """

    accumulator: Accumulator
    formats: tuple[Format, Format]
    partials: Format
    output: Format
    sites: dict[int, Site]
    reading: tuple[Rule, Rule]
    entry: Rule
    index: np.ndarray[Any, Any] | None
    length: int
    products: int
    block: int
    stores: np.ndarray[Any, Any]
    closes: np.ndarray[Any, Any]
    entered: int
    draws: bool
    policy: spec.NanPolicy
    fixed: frozenset[str]
    begun: Mapping[int, int] = field(default_factory=dict)
    apart: int = 1

    @property
    def daz(self) -> bool:
        """Whether a subnormal operand may count as zero."""
        return any(rule.daz for rule in self.reading)

    @cached_property
    def wide(self) -> bool:
        """Whether a format is beyond the carriers."""
        return any(fmt.wide for fmt in (*self.formats, *(site.format for site in self.sites.values())))

    @cached_property
    def order(self) -> Codes:
        """Which product comes where, -1 is +0; of size 0 where they follow each other, with nothing but more at the end."""
        index = self.index
        if index is None or np.array_equal(index[: self.products], np.arange(self.products)):
            return np.empty(0, np.int64)
        return index

    @property
    def kind(self) -> int:
        """How products meet the running sum."""
        kinds = dots()
        if self.accumulator.fixed is not None:
            return int(kinds.FIXED)
        if self.accumulator.aligned is not None:
            return int(kinds.ALIGNED)
        if self.accumulator.product is not None:
            return int(kinds.ROUNDED)
        return int(kinds.FUSED if self.block == 1 else kinds.EXACT)

    @property
    def carries(self) -> bool:
        """Whether payloads of NaN operands pass on to the output."""
        how = self.accumulator
        one_by_one = self.kind in (dots().FUSED, dots().ROUNDED) and not (how.tree or how.compensation)
        return bool(self.policy.propagate) and one_by_one and self.accumulator.chains == 1

    @property
    def nan_code(self) -> int:
        """The NaN of the output's format, where no payload passes."""
        rule = self.sites[dots().RESULT].rule if self.converts else self.entry
        return int(targets.target(self.output.spec, rule, spec.CARRIER32).nan)

    @property
    def loses_signs(self) -> bool:
        """Whether a NaN may pass through a format whose NaN has no sign."""
        return any(not site.format.signed or site.format.nan == "fnuz" for site in self.sites.values())

    @property
    def goes_on(self) -> bool:
        """Whether random numbers are those of later roundings: loops over grids have none to begin with."""
        return self.draws and (bool(self.begun) or self.apart > 1)

    @property
    def is_plain(self) -> bool:
        """Whether only fields of the accumulator count that the faster loops know."""
        how = self.accumulator
        special = how.alignment, how.block_sum, how.scale_exponent, how.compensation, how.fixed
        return not any((*special, how.keeps_zero_sign, how.unsigned_zeros, how.positive_zeros, how.leaf > 1))

    @property
    def converts(self) -> bool:
        """Whether the output's format differs from that of partials."""
        return self.output != self.partials

    @cached_property
    def to_partials(self) -> Program:
        """The same, without that conversion."""
        return dataclasses.replace(self, output=self.partials) if self.converts else self


STAGE_SETTINGS = ("rounding", "overflow", "daz", "ftz", "tininess")


def _site(stage: Stage, accumulator: Accumulator, whole: Settings, conversion: bool) -> Site:
    """What a stage does under a call's options."""
    name = stage.format.name
    settings = whole.between(name, name) if conversion else whole.for_format(name)
    fixed = {name: getattr(stage, name) for name in STAGE_SETTINGS} | {"nan": accumulator.nan}
    settings = settings.replace(**{name: value for name, value in fixed.items() if value is not None})
    draws = settings.rounding.draws
    if draws and settings.seed is None and whole.seed is None:
        raise ValueError(f"rounding={settings.rounding.name.lower()!r} needs a seed (0 to 2^64 - 1)")
    width = settings.random_width
    rule = parameters.rule_for(settings, stage.format, conversion, width if draws else 52)
    return Site(stage.format, rule._replace(always_infinite=stage.always_infinite), width if draws else 0)


def _reading(accumulator: Accumulator, fmt: Format, whole: Settings) -> Rule:
    """How operands are read: as the accumulator fixes it, else as settings of their format say."""
    fixed = (accumulator.daz, (accumulator.product or accumulator.running).daz, whole.for_format(fmt.name).daz)
    return Rule(daz=next(daz for daz in fixed if daz is not None))


LONGEST_KEPT = 1 << 16  # programs for longer k are made anew


def program(
    accumulator: Accumulator, first: Format, second: Format, output: Format, settings: Settings, length: int
) -> Program:
    """Everything about a call that depends neither on its operands' values nor on its seed."""
    make = _program if length <= LONGEST_KEPT else _program.__wrapped__
    return make(accumulator, first, second, output, _seedless(settings), length)


@lru_cache(maxsize=512)
def _seedless(settings: Settings) -> Settings:
    """The same, with 0 for any seed and replica."""
    return settings.replace(seed=None if settings.seed is None else 0, replica=0)


def check_inputs(accumulator: Accumulator, fmt: Format, argument: str = "fmt") -> None:
    """Refuse operands that the accumulator does not take; `argument` is named."""
    if accumulator.inputs and fmt not in accumulator.inputs:
        names = ", ".join(repr(x.name) for x in accumulator.inputs)
        raise ValueError(f"{argument} must be {names} for {accumulator!r}, got {fmt.name!r}")


EXACT_BITS = 53


def check_groups(accumulator: Accumulator, formats: tuple[Format, Format], argument: str = "fmt") -> None:
    """Refuse formats whose products the loop could not add exactly; `argument` is named."""
    how = accumulator.aligned
    if how is None or how.group == 1:
        return
    width = sum(fmt.emax + 1 - fmt.emin + fmt.mantissa_bits for fmt in formats)
    if width + how.group.bit_length() > EXACT_BITS:
        names = " and ".join(dict.fromkeys(repr(fmt.name) for fmt in formats))
        raise ValueError(
            f"{argument} must be formats whose products, {how.group} of them, add up in {EXACT_BITS} bits for {accumulator!r}, "
            f"such as 'float4_e2m1fn', got {names}"
        )
    largest = math.log2(how.group * formats[0].max * formats[1].max * 4 * (accumulator.block // how.group + 1))
    if largest + how.terms > EXACT_BITS:
        raise ValueError(
            f"{argument} must be formats whose aligned sums take {EXACT_BITS} bits or fewer for {accumulator!r}, "
            f"got {' and '.join(dict.fromkeys(repr(fmt.name) for fmt in formats))}"
        )


@lru_cache(maxsize=512)
def _program(
    accumulator: Accumulator, first: Format, second: Format, output: Format, settings: Settings, length: int
) -> Program:
    for fmt in (first, second):
        check_inputs(accumulator, fmt)
    check_groups(accumulator, (first, second))
    numbers = dots()
    stages: dict[int, tuple[Stage, bool]] = {numbers.RUNNING: (accumulator.running, False)}
    product = accumulator.product or accumulator.block_sum  # of which an accumulator has one
    if product:
        stages[numbers.PRODUCT] = product, False
    if accumulator.store:
        stages[numbers.STORE] = accumulator.store, True
    for level, reduction in enumerate(accumulator.reduction):
        stages[numbers.LEVEL + 2 * level] = reduction.running, False
        if reduction.store:
            stages[numbers.LEVEL + 2 * level + 1] = reduction.store, True
    partials = accumulator.partials
    if output != partials:
        stages[numbers.RESULT] = _result_stage(output), True
    sites = {site: _site(stage, accumulator, settings, conversion) for site, (stage, conversion) in stages.items()}
    block = accumulator.block if accumulator.block != ALL else max(length, 1)
    index, stores, closes = _layout(accumulator, length, block)
    entered = numbers.STORE if accumulator.store else numbers.RUNNING
    if accumulator.reduction:
        entered = numbers.LEVEL + 2 * (len(accumulator.reduction) - 1) + (accumulator.reduction[-1].store is not None)
    arithmetic = sites[numbers.PRODUCT if accumulator.product else numbers.RUNNING]
    return Program(
        accumulator=accumulator,
        formats=(first, second),
        partials=partials,
        output=output,
        sites=sites,
        reading=(_reading(accumulator, first, settings), _reading(accumulator, second, settings)),
        entry=sites[entered].rule,
        index=index,
        length=length if index is None else index.size,
        products=length,
        block=block,
        stores=stores,
        closes=closes,
        entered=entered,
        draws=any(site.width for site in sites.values()),
        policy=arithmetic.rule.policy,
        fixed=frozenset(
            {name for name in STAGE_SETTINGS if all(getattr(stage, name) is not None for stage, _ in stages.values())}
            | ({"nan"} if accumulator.nan else set())
        ),
    )


def _result_stage(output: Format) -> Stage:
    if not output.zero:
        raise ValueError(f"out_format must have a zero, and {output} has none")
    return Stage(output)


def _layout(
    accumulator: Accumulator, length: int, block: int
) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(index, stores, closes): segments one after the other, each filled up to whole groups and blocks; no index where that changes nothing."""
    order = np.array(accumulator.order)
    unit, bounds = math.lcm(order.size, block), bounds_of(accumulator, length)
    lengths = np.diff(bounds)
    filled = -(-lengths // unit) * unit
    index = None
    if accumulator.order != tuple(range(order.size)) or (lengths % unit).any():
        before = np.cumsum(filled) - filled
        places = np.arange(filled.sum()).reshape(-1, order.size)[:, order].reshape(-1)
        places += np.repeat(bounds[:-1] - before, filled)
        index = np.where(places < np.repeat(bounds[1:], filled), places, -1)
    counts = filled // block
    behind, some = np.cumsum(counts), counts > 0
    stores, closes = (np.zeros(counts.sum(), np.uint8) for _ in range(2))
    closes[behind[some] - 1] = np.array(segment_ends(accumulator, lengths.size), np.uint8)[some]
    every = accumulator.store_every // block if accumulator.store else 0
    if every:
        within = np.arange(stores.size) - np.repeat(behind - counts, counts)
        stores[within % every == every - 1] = 1
        stores[behind[some] - 1] = 1
    return index, stores, closes


def bounds_of(accumulator: Accumulator, length: int) -> np.ndarray[Any, Any]:
    """Where segments begin, and the end."""
    parts = accumulator.segments
    if not length:
        return np.zeros(1, np.int64)
    if accumulator.segment is not None:
        return np.append(np.arange(0, length, accumulator.segment), length)
    if isinstance(parts, tuple):
        bounds = np.concatenate([[0], np.cumsum(parts)])
        if bounds[-1] != length:
            raise ValueError(f"segments of {accumulator!r} are {bounds[-1]} products long, and k is {length}")
        return bounds
    if parts is None:
        return np.array([0, length])
    if parts > length:
        raise ValueError(f"segments of {accumulator!r} are {parts}, more than the {length} products")
    return np.arange(parts + 1) * length // parts


@lru_cache(maxsize=512)
def segment_bounds(accumulator: Accumulator, length: int) -> tuple[int, ...]:
    """The same as Python's integers."""
    return tuple(bounds_of(accumulator, length).tolist())


def segment_ends(accumulator: Accumulator, count: int) -> list[int]:
    """How many levels of the reduction end after each segment."""
    levels = accumulator.reduction
    if not levels or not count:
        return [0] * count
    ends = [1] * count
    inputs, members = count, list(range(count))  # members: the last segment of each input of a level
    for level in levels[:-1]:
        sections = level.sections or 1
        if sections > inputs:
            raise ValueError(f"reduction of {accumulator!r} makes {sections} sections of {inputs} sums")
        members = [members[(i + 1) * inputs // sections - 1] for i in range(sections)]
        for segment in members:
            ends[segment] += 1
        inputs = sections
    return ends


def choices(planned: Program) -> Any:
    """What a program settles of a call: `kernels.dots.Choices`."""
    floor, accumulator = dots(), planned.accumulator
    aligned, fixed, product = accumulator.aligned or Alignment(1), accumulator.fixed, accumulator.product
    running = planned.sites[floor.RUNNING].format
    return floor.Choices(
        kind=planned.kind,
        block=planned.block,
        chains=accumulator.chains,
        tree=int(accumulator.tree),
        levels=len(accumulator.reduction),
        fraction_bits=aligned.terms,
        has_result=int(planned.converts),
        entered=planned.entered,
        products_rounded=int(product is not None),
        lone_converted=int(product is not None and product.format != running),
        sums_blocks=int(accumulator.block_sum is not None or accumulator.leaf > 1),
        signed_zeros=int(accumulator.keeps_zero_sign),
        unsigned_products=int(accumulator.unsigned_zeros),
        direction=DIRECTIONS.index(aligned.cut if fixed is None else fixed.cut),
        group=aligned.group,
        halves=int(aligned.halves),
        limit=floor.UNLIMITED if aligned.limit is None else aligned.limit,
        zero=floor.NO_EXPONENT if aligned.zeros is None else aligned.zeros,
        addend_inside=int(aligned.includes_addend),
        sum_bits=aligned.sum or 0,
        addend_bits=aligned.addend or 0,
        sum_direction=DIRECTIONS.index(aligned.sum_cut),
        drop=-1 if aligned.drop_addend_below is None else aligned.drop_addend_below,
        least=floor.NO_EXPONENT if aligned.least is None else aligned.least,
        positive_zeros=int(accumulator.positive_zeros),
        leaf=accumulator.leaf,
        compensation=0 if accumulator.compensation is None else 1 + COMPENSATIONS.index(accumulator.compensation),
        fixed_bits=0 if fixed is None else fixed.bits,
        fixed_last=0 if fixed is None else fixed.last,
        fixed_saturates=int(fixed is not None and fixed.overflow == "saturate"),
    )


SIDE_BY_SIDE = 64
"""Outputs that faster loops take together, about: few are not worth their time."""


def plain_loop() -> Spared:
    """The loop that serves every program."""
    return spared(dots().contraction(), FEW_PRODUCTS, SPARED_PRODUCTS)


SPARING = 8
"""Sums whose own loops are made for little work while the plain one is not there, which takes longer to compile than all of them."""
_MADE: set[Any] = set()
"""These."""


def spares(described: Any, products: int) -> bool:
    """Whether the own loop of a sum that is so described keeps the plain one from being compiled for so many products."""
    if described not in _MADE and len(_MADE) < SPARING and not plain_loop().is_there(products):
        _MADE.add(described)
    return described in _MADE


def arranged(values: Codes, axis: int, planned: Program, fill: float = 0.0) -> Codes:
    """Operands along k in the order of the sum, filled up with zeros, or with what is asked for."""
    if planned.index is None:
        return np.ascontiguousarray(values)
    length = values.shape[axis]
    if not planned.order.size:
        shape = *values.shape[:axis], planned.index.size, *values.shape[axis + 1 :]
        longer, before = np.empty(shape, values.dtype), (slice(None),) * axis
        longer[(*before, slice(length))], longer[(*before, slice(length, None))] = values, fill
        return longer
    taken = np.take(values, planned.index, axis=axis)  # -1 takes the last one
    filled = planned.index < 0
    if filled.any():
        np.moveaxis(taken, axis, 0)[filled] = fill
    return np.ascontiguousarray(taken)


# -- what is known of them ------------------------------------------------------------------------------------------------


@cache
def defaults(kind: Any) -> dict[str, Any]:
    """Field -> what it is by default, of a named tuple or a dataclass; None of a field without one."""
    if issubclass(kind, tuple):
        return dict.fromkeys(kind._fields) | kind._field_defaults
    found = {}
    for one in dataclasses.fields(kind):
        made = one.default_factory
        found[one.name] = None if one.default is dataclasses.MISSING else one.default
        if made is not dataclasses.MISSING:
            found[one.name] = made()
    return found


def is_known(of: Any, known: Collection[str]) -> bool:
    """Whether all fields of a description that are not among these are as they are by default."""
    kind: Any = type(of)
    for name, usual in defaults(kind).items():
        found = getattr(of, name)
        if name not in known and (isinstance(found, np.ndarray) or found != usual):
            return False
    return True
