"""Sums with wide formats that no generated loop serves: one operation after another, each for all outputs of a grid."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.accumulators.accumulator import ALL
from softfloat.engine import elementwise, ways
from softfloat.engine.arguments import Codes, flattened, is_nan, is_signalling
from softfloat.engine.decoding import PLAIN, widened
from softfloat.engine.draws import NO_BITS, Draw, rounding_bits
from softfloat.engine.parameters import dots, numbers, orders, spared, steps, wide_exact
from softfloat.engine.problems import Problem, Results
from softfloat.engine.programs import Program, Site
from softfloat.engine.threads import share_units
from softfloat.formats import WIDE_ROSTER
from softfloat.kernels import targets
from softfloat.kernels.spec import CARRIER64, FLOAT64, INVALID

ONE, SIGN = np.uint64(1), np.uint64(1 << 63)


@dataclass(frozen=True, eq=False)
class _Number:
    """Sums on their way, as codes of a stage's format and of float64, which has their values. What is neither rounded nor a sum has values alone."""

    codes: Codes
    values: Codes

    def __neg__(self) -> _Number:
        return _Number(self.codes, self.values ^ SIGN)

    def __ge__(self, other: _Number) -> _Where:
        return _Where(self.values.view(np.float64) >= other.values.view(np.float64))

    def magnitude(self) -> _Number:
        """Without the sign."""
        return _Number(self.codes, self.values & ~SIGN)


class _Where(NamedTuple):
    """Outputs for which something holds."""

    lanes: Codes

    def choose(self, x: _Number, y: _Number) -> _Number:
        """x for these, y for the others."""
        return _Number(np.where(self.lanes, x.codes, y.codes), np.where(self.lanes, x.values, y.values))


def _in_order(how: Accumulator) -> bool:
    """Whether each product meets a running sum, its segment's if there are some, one after another."""
    return not (how.tree or how.chains > 1 or how.compensation or how.block == ALL)


def check_served(how: Accumulator, what: str = "") -> None:
    """Refuse accumulators of wide formats that this does not know, and `what` else a call asks for."""
    whole, levels, pairs = how.block == ALL, how.reduction, how.tree and how.product
    lacks = {
        "blocks of several products": how.block not in (1, ALL) or how.leaf != 1 or (whole and how.product),
        "alignment": how.aligned is not None,
        "sums of blocks": how.block_sum is not None,
        "fixed point": how.fixed is not None,
        "scales": how.scale_exponent != 0,
        "stores": how.store is not None or any(level.store for level in levels),
        "several levels of segments": len(levels) > 1,
        "segments of anything but sums in order": levels and not _in_order(how),
        "an order of products": len(how.order) > 1,
        "pairs in another format than products": pairs and pairs.format != how.running.format,
        "rules for zeros": how.keeps_zero_sign or how.unsigned_zeros or how.positive_zeros,
        what: what,
    }
    found = [name for name, asked in lacks.items() if asked]
    if found:
        raise ValueError(
            f"accumulator must be one in order, in pairs, chains or chunks for wide formats, got {how!r} with {' and '.join(found)}; "
            "accepted: fma, mul_add, pairwise, compensated, exact, chunked and chains of fma and mul_add, or formats that are not wide"
        )


class _Grid:
    """The words of an order, of one grid of outputs, each an operation; and counts where additions are counted. A turn's products begin with the
    `first`."""

    def __init__(
        self, problem: Problem, planned: Program, random: ways.Random, shape: tuple[int, ...], counting: bool
    ) -> None:
        self.planned, self.key_and_stream, self.shape = planned, random, shape
        self.flags = self.raised = np.zeros(shape, np.uint8)
        self.steps: Counter[int] = Counter()
        self.counts = np.zeros((3, *shape), np.int64) if counting else None
        self.least, self.greatest = np.full(shape, np.inf), np.full(shape, -np.inf)
        self.problem, self.first = problem, 0

    @cached_property
    def numbers(self) -> Codes:
        """Those of outputs, as random numbers lie."""
        problem, rows = self.problem, np.arange(int(np.prod(self.shape[:-1])))[:, np.newaxis]
        numbers = problem.index + rows * problem.row_stride + np.arange(self.shape[-1]) * problem.column_stride
        return flattened(numbers.astype(np.uint64))

    def zero(self) -> _Number:
        """+0."""
        nothing = np.zeros(self.shape, np.uint64)
        return _Number(nothing, nothing)

    def random(self, number: int) -> Codes:
        """The random bits of a stage's next rounding, if it draws any."""
        width, step = self.planned.sites[number].width, self.steps[number]
        self.steps[number] += 1
        if not width:
            return NO_BITS
        return flattened(rounding_bits(self.numbers, number, step, *self.key_and_stream, width))

    def rounded(self, number: int, codes: Codes, flags: Codes) -> _Number:
        """What an operation of a stage gave."""
        site = self.planned.sites[number]
        self.flags, self.raised = self.flags | flags, flags
        if site.rule.propagate and not self.planned.carries:
            default = targets.target(site.format.spec, site.rule, CARRIER64).nan
            codes = np.where(is_nan(codes, site.format), site.format.dtype.type(default), codes)
        return _Number(codes, widened(codes, site.format, site.rule.daz))

    def done(self, number: int, operation: str, *operands: _Number) -> _Number:
        """An operation, rounded by the stage of that number."""
        site, bits = self.planned.sites[number], self.random(number)
        drawn = Draw(0, 0, site.width, bits) if site.width else None
        rule = site.rule._replace(daz=False, handed_bits=drawn is not None)
        given = [np.broadcast_to(x.values, self.shape) for x in operands]
        return self.rounded(number, *elementwise.settled(operation, given, FLOAT64, site.format, rule, drawn))

    def operands(self, place: int) -> tuple[_Number, _Number]:
        """The factors of a product."""
        a, b, k = self.problem.a, self.problem.b, self.first + place
        x, y = (a[k], b[k]) if self.problem.paired else (a[..., k, np.newaxis], b[..., k, np.newaxis, :])
        return _Number(x, x), _Number(y, y)

    def product(self, x: _Number, y: _Number) -> _Number:
        """x * y."""
        return self.done(dots().PRODUCT, "mul", x, y)

    def plus(self, x: _Number, y: _Number) -> _Number:
        """x + y."""
        return self.done(dots().RUNNING, "add", x, y)

    exactly = close = plus

    def total(self, x: _Number, y: _Number) -> _Number:
        """x + y, which is the sum."""
        return self.added(dots().RUNNING, x, y)

    def fused(self, x: _Number, y: _Number, z: _Number) -> _Number:
        """x * y + z, which is the sum."""
        found = self.done(dots().RUNNING, "fma", x, y, z)
        return self.counted(z, found, (x.values << ONE != 0) & (y.values << ONE != 0))

    def added(self, number: int, x: _Number, y: _Number) -> _Number:
        """x + y by a stage, counted."""
        return self.counted(x, self.done(number, "add", x, y), y.values << ONE != 0)

    def counted(self, before: _Number, after: _Number, adds: Codes) -> _Number:
        """A partial, after one more addition is counted; `adds`: whether it added anything but zero."""
        if self.counts is not None:
            old, new = before.values.view(np.float64), after.values.view(np.float64)
            self.counts += (self.raised >> 2 & 1, self.raised & 1, adds & np.isfinite(old) & (new == old))
            self.least, self.greatest = np.fmin(self.least, new), np.fmax(self.greatest, new)
        return after

    def begun(self, c: Codes | None) -> _Number:
        """c, or +0."""
        if c is None:
            return self.zero()
        partials = self.planned.partials
        codes = np.broadcast_to(c, self.shape)
        self.flags |= np.where(is_signalling(codes, partials), np.uint8(INVALID), np.uint8(0))
        return _Number(codes, widened(codes, partials, self.planned.entry.daz))


def entered(problem: Problem, planned: Program) -> tuple[Problem, Program]:
    """The same with operands in float64, which has their numbers; accumulators and segments that are not known are refused."""
    segment = "a segment alone" * (bool(planned.begun) or planned.apart > 1)
    check_served(planned.accumulator, segment if problem.scales is None else "scales of operands")
    a, b = (
        widened(x, fmt, rule.daz)
        for x, fmt, rule in zip((problem.a, problem.b), planned.formats, planned.reading, strict=True)
    )
    return replace(problem, a=a, b=b), _of_codes(planned)


@lru_cache(maxsize=512)
def _of_codes(planned: Program) -> Program:
    """The program of operands in float64."""
    return replace(planned, formats=(WIDE_ROSTER["float64"],) * 2, reading=(PLAIN,) * 2)


def run(problem: Problem, planned: Program, random: ways.Random, results: Results) -> None:
    """One grid of outputs, or many, of operands in float64: k steps, each of one operation or two. Cumulative sums that are not in order are
    found one by one."""
    how, columns = planned.accumulator, problem.b.shape[-1]
    shape = (1, columns) if problem.paired else (*problem.a.shape[:-1], columns)
    grid = _Grid(problem, planned, random, shape, results.counting)
    total = grid.begun(problem.c)
    if not problem.cumulative:
        _deliver(planned, grid, _sum(grid, total, 0, planned.length), results)
        return
    in_order = _in_order(how) and not how.reduction
    for k in range(planned.length):
        if not in_order:
            grid = _Grid(problem, planned, random, shape, False)
        total = _sum(grid, total if in_order else grid.zero(), k if in_order else 0, k + 1)
        flags, grid.steps[dots().RESULT] = grid.flags, 0
        _deliver(planned, grid, total, results._replace(codes=results.codes[k], flags=results.flags[k]))
        grid.flags = flags


def _sum(grid: _Grid, total: _Number, first: int, length: int) -> _Number:
    """A sum onto `total` of products `first` ... `length` - 1, of the first `length` where the order is another than theirs."""
    problem, planned, how, zero = grid.problem, grid.planned, grid.planned.accumulator, grid.zero()
    order, value = orders().ORDERS[ways.operation_of(planned)](planned.draws), steps().VALUE
    if order.exact:
        site, bits = planned.sites[dots().RUNNING], grid.random(dots().RUNNING)
        a, b, paired = problem.a, problem.b, problem.paired
        some = (a[:length], b[:length]) if paired else (a[..., :length], b[..., :length, :])
        codes, flags, adds = _exact(site, *some, total.values, paired, bits)
        return grid.counted(total, grid.rounded(dots().RUNNING, codes, flags), adds)
    if not order.in_order and length:
        pairs: _Number = steps().in_pairs(
            length, lambda k: grid.product(*grid.operands(k)), lambda x, y, _: grid.total(x, y)
        )
        return pairs if problem.c is None else grid.total(pairs, total)
    begins = zero if how.chains > 1 or how.reduction else total
    states = [{value: begins, orders().ERRORS: zero} for _ in range(how.chains)]
    for k in range(first, length):
        grid.first, state = k, states[k % how.chains]
        order.subtree.step(grid, state)
        if how.reduction and (planned.closes[k] or k == length - 1):
            total, state[value] = grid.added(dots().LEVEL, total, state[value]), zero
    if order.last and length:
        order.last.step(grid, states[0])
    if how.reduction or not length:
        return total
    sums = [state[value] for state in states] + [total] * (how.chains > 1 and problem.c is not None)
    return reduce(grid.total, sums)


def _exact(site: Site, a: Codes, b: Codes, c: Codes, paired: bool, bits: Codes) -> tuple[Codes, Codes, Codes]:
    """(codes, flags, whether products add anything) of exact sums of codes of float64, each rounded once; `bits` are random ones."""
    if a.ndim > 2:
        parts = bits.reshape(len(a), -1) if bits.size else [bits] * len(a)
        many = [_exact(site, x, y, z, paired, some) for x, y, z, some in zip(a, b, c, parts, strict=True)]
        codes, flags, adds = (np.stack(x) for x in zip(*many, strict=True))
        return codes, flags, adds
    rows, columns = (np.ascontiguousarray(x).view(np.int64) for x in (a.T if paired else a, b.T))
    outputs, start = c.size, flattened(c).view(np.int64)
    codes, flags, adds = np.empty(outputs, np.int64), np.empty(outputs, np.uint8), np.empty(outputs, np.bool_)
    known = numbers(FLOAT64, site.format.spec, site.rule._replace(daz=False), CARRIER64, wide=True)
    loop = spared(wide_exact().sums())

    def work(first: int, last: int) -> int:
        size = (last - first) * rows.shape[1]
        loop.run(size, rows, columns, start, paired, codes, flags, adds, *known, bits, site.width, first, last)
        return 0

    share_units(outputs, work, rows.shape[1])
    made = codes.view(np.uint64).astype(site.format.dtype)
    return made.reshape(c.shape), flags.reshape(c.shape), adds.reshape(c.shape)


def _deliver(planned: Program, grid: _Grid, total: _Number, results: Results) -> None:
    """Sums in the output's format, and all their flags. A sum is quiet: a signalling NaN is the addend of no products."""
    partials, entry = planned.partials, planned.entry._replace(daz=False)
    signals = is_signalling(total.codes, partials)
    if np.any(signals):
        quiet, _ = elementwise.settled("convert", [total.values], FLOAT64, partials, entry._replace(conversion=True))
        codes = np.where(signals, quiet, total.codes)
        total = _Number(codes, widened(codes, partials, planned.entry.daz))
    if planned.converts:
        total = grid.done(dots().RESULT, "convert", total)
    results.codes[...], results.flags[...] = (x.reshape(results.codes.shape) for x in (total.codes, grid.flags))
    if grid.counts is not None:
        results.counts[...] = grid.counts.reshape(results.counts.shape)
        extremes = np.where(grid.least > grid.greatest, np.nan, [grid.least, grid.greatest])  # none but NaN
        results.extremes[...] = extremes.reshape(results.extremes.shape)
