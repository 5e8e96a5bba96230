"""Faster ways through the sums of dot-product units: steps of the tiles of `sums.units`, written from a unit's description.

A unit's description says how one turn goes, and code is generated for each that is asked for; numbers of bits and
exponents travel as parameters. What holds of `steps` holds here: operands are finite and of ranges in which no product,
sum or error leaves the carrier's normal numbers (`softfloat.engine.units` looks first), so that nothing is subnormal but
what is stored or summed in a narrower format.
"""

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from .steps import (
    COUNTED_SLOTS,
    COUNTS,
    EXPONENT,
    EXPONENT64,
    GREATEST,
    LEAST,
    OVERFLOW,
    OVERFLOWED,
    UNDERFLOW,
    UNSETTLED,
    VALUE,
    Stage,
    drawn_half,
    in_direction,
    in_pairs,
    rounded,
    signs,
    stored_half,
    sum_and_error,
    to_odd,
    without_subnormals,
)
from .sums.observers import Addition, Flags

LEAD, TOTAL, PART, PER_GRID = range(COUNTED_SLOTS, COUNTED_SLOTS + 4)
"""Between the phases of a long block: the power of two that sets its grid, the sum of terms so far, or of the first half and of the others,
and the reciprocal grid."""


class UnitNumbers(NamedTuple):
    """What a call's steps know of formats and grids, of float64 sums. Integers are bits of the carrier, in disguise."""

    floor: int = 0  # exponent field of the running format's smallest normal number
    zero: float = 0.0  # the power of two of a running sum that is zero
    least: float = 0.0  # the least power of two that sets a grid
    terms_per: int = 0  # less a power of two: the reciprocal of the grid of terms, or half of that
    terms_grid: int = 0  # from a power of two down to the grid
    halves_per: int = 0  # the same of sums of halves
    halves_grid: int = 0
    sum_per: int = 0
    sum_grid: int = 0
    addend_per: int = 0
    addend_grid: int = 0
    drop: float = 0.0
    kept_bits: int = 0  # the bits of float64 that the running format has
    largest: float = 0.0
    beyond_positive: float = 0.0
    lowest: int = 0
    magic: int = 0
    spacing: int = 0  # of stores, all but the plain nearest ones
    per_quantum: int = 0
    normal: float = 0.0  # the smallest normal number of stores
    tiny_positive: float = 0.0  # what is stored is tiny between these
    tiny_negative: float = 0.0
    beyond_negative: float = 0.0
    tiny: float = 0.0  # a magnitude below it is tiny
    span: float = 0.0  # of a register's whole numbers
    half_span: float = 0.0
    per_span: float = 0.0


class Watch(Flags):
    """What turns tell: whether anything was inexact, if anybody `looks`. Blocks and stores `begin`, and end as a `block` or as what is `stored`."""

    def __init__(self, looks):
        self.looks = looks

    def cut(self, state, found, exact):
        """A rounding, of what was exact, if somebody looks."""
        if self.looks:
            self.rounding(state, found.bits() ^ exact.bits())

    def begin(self, state):
        """A block begins, a store, or a turn of sums that are additions each."""

    def part(self, state):
        """What has been rounded since then was no addition."""

    def block(self, state, memory, before, after):
        """A block was added to what was there before; whatever is infinite in `memory` stays so."""

    def added(self, state, before, exact, after):
        """An addition to finite numbers."""
        self.cut(state, after, exact)

    def stored(self, tile, row, running, memory, state, unit):
        """A running sum to memory, as `stored` does it."""
        return stored(tile, row, running, memory, state, self.looks, unit)


# -- sums of float32 -------------------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """A turn of a unit that rounds every sum to float32.

    `blocks` blocks of `block` products; leaves are products, or the sums of `leaf` of them, added in pairs. The sums of blocks
    meet the running sum, or chains that begin at zero, are added up and meet it at the end of the turn. `exact`: products
    are exact in float32. `fused`: a product meets a sum without a rounding of its own. `tree`: sums of leaves are additions of the running
    sum's kind, which counts know; else the rounding of a block.
    """

    kind: str
    block: int
    blocks: int
    leaf: int
    chains: int
    rounding: str
    fused: bool
    exact: bool
    unsigned: bool
    tree: bool

    @property
    def group(self):
        """Products of a turn."""
        return self.block * self.blocks


def nudged(s, error, rounding):
    """The sum s of float32 numbers, whose error is known, rounded in a direction."""
    bits = s.bits()
    if rounding == "toward_zero":
        moved = bits + ((bits ^ error.bits()) >> 31)
        return error.nonzero().choose(moved, bits).floats()
    outward = error > 0.0 if rounding == "toward_positive" else error < 0.0
    away = 1 if rounding == "toward_positive" else -1
    # a sum of the error's sign grows, another one shrinks
    step = (bits >> 31 | 1) if away > 0 else -(bits >> 31 | 1)
    return outward.choose(bits + step, bits).floats()


def single_sum(tile, x, y, unit, state, observer, adds=True):
    """x + y in float32, rounded as the unit does; x, or the exact product of a pair (a, b), and a number. `adds`: it is an addition to the sum."""
    watchful = observer.looks
    if isinstance(x, tuple):
        product = x[0] * x[1]
        if unit.rounding == "nearest_even" and not watchful and tile.fuses:
            return x[0].fused(x[1], y)
    else:
        product = x
    if not watchful and unit.rounding == "nearest_even":
        return product + y
    if not watchful and tile.directed:
        return in_direction(lambda direction: product.plus_toward(direction, y), unit.rounding)
    s, error = sum_and_error(product, y)
    after = moved_off(s, error, product, y, unit.rounding)
    if adds and watchful:
        lost = error.nonzero() if observer.in_lanes else error.bits()
        observer.addition(state, Addition(y if isinstance(x, tuple) else x, after, lost))
    elif watchful:
        observer.rounding(state, error.bits())
    return after


def moved_off(s, error, x, y, rounding):
    """s + error, rounded: s is the nearest number to x + y."""
    if rounding == "nearest_even":
        return s
    if rounding == "to_odd":
        return to_odd(s, error)
    if rounding == "toward_negative":
        s = s.is_zero().choose(signs(x, y), s)
    return nudged(s, error, rounding)


def single_product(tile, row, k, unit, state, observer):
    """A product in float32; only the nearest one is not exact."""
    a, b = tile.a(row, k), tile.b(k)
    product = a * b
    if observer.looks and not unit.exact:
        lost = (a.double() * b.double()).bits() ^ product.double().bits()
        observer.rounding(state, lost.nonzero())
    return product + 0.0 if unit.unsigned else product


def pairs_step(unit, observer):
    """A turn of `Pairs`, no sum of which overflows."""

    def pair_of(tile, row, first, state, adds):
        start = tile.a(row, first) * tile.b(first)
        pair = tile.a(row, first + 1), tile.b(first + 1)
        return single_sum(tile, pair, start, unit, state, observer, adds)

    def block_of(tile, row, first, state):
        if unit.leaf == 1 and unit.block == 2 and unit.exact and not unit.unsigned:
            return pair_of(tile, row, first, state, unit.tree)

        def leaf(number):
            place = first + number * unit.leaf
            if unit.leaf == 1:
                return single_product(tile, row, place, unit, state, observer)
            return pair_of(tile, row, place, state, False)

        def joined(x, y, _):
            return single_sum(tile, x, y, unit, state, observer)

        return in_pairs(unit.block // unit.leaf, leaf, joined)

    def met(tile, row, first, before, state):
        if unit.fused:
            return single_sum(tile, (tile.a(row, first), tile.b(first)), before, unit, state, observer)
        return single_sum(tile, before, block_of(tile, row, first, state), unit, state, observer)

    def step(tile, row, state):
        observer.begin(state)
        if not unit.chains:
            for first in range(0, unit.group, unit.block):
                state[VALUE] = met(tile, row, first, state[VALUE], state)
            observer.part(state)
            return state
        zero = (state[VALUE].bits() & 0).floats()
        sums = [zero] * unit.chains
        for number in range(unit.blocks):
            chain = number % unit.chains
            sums[chain] = met(tile, row, number * unit.block, sums[chain], state)
        total = reduce(lambda x, y: single_sum(tile, x, y, unit, state, observer), sums)
        state[VALUE] = single_sum(tile, state[VALUE], total, unit, state, observer)
        observer.part(state)
        return state

    return step


# -- roundings of float64 sums ---------------------------------------------------------------------------------------


def narrowed(tile, s, result, running, state, observer, saturate=False):
    """A sum in float64, all of whose bits that decide are there, in the running format; the running sum was `running` before.

    `result`: "single", the nearest float32; "cut", the format's bits of it; "truncated", float32's, as such; "odd", the same, to odd; "half",
    the nearest of a narrow format.
    """
    if result == "truncated":
        y = (s.bits() & -(1 << 29)).floats()
        if observer.looks:
            observer.rounding(state, (y.bits() ^ s.bits()).nonzero())
        return y.single()
    if result == "single":
        y = s.single().double()
    elif result == "cut":
        y = (s.bits() & tile.integer("kept_bits")).floats()
    elif result == "odd":
        kept = s.bits() & tile.integer("kept_bits")
        below = s.bits() ^ kept
        y = below.nonzero().choose(kept | (-tile.integer("kept_bits")), kept).floats()
    else:
        y = rounded(tile, s, state, Stage("narrow", noted=saturate), False)
        y = (running.magnitude() < np.inf).choose(y, running)
    observer.cut(state, y, s)
    return y


def stored(tile, row, running, before, state, watchful, unit):
    """A float32 number to memory as a half, as the unit does; what was infinite `before` stays."""
    if unit.stored == "drawn":
        half = drawn_half(tile, row, running, state, unit.saturate, watchful, unit.ftz)
    elif unit.stored == "nearest":
        half = stored_half(running.single(), state, unit.saturate, watchful)
    else:
        half = rounded(tile, running, state, Stage("narrow", unit.stored, unit.saturate, ftz=unit.ftz), watchful)
    bounded = unit.saturate and unit.stored not in ("toward_positive", "toward_negative")
    return half if bounded else (before.magnitude() < np.inf).choose(half, before)


# -- aligned blocks --------------------------------------------------------------------------------------------------


class Aligned(NamedTuple):
    """A turn of a unit that cuts terms to a common grid: `blocks` blocks, then perhaps a store.

    `cut` and `sum_cut`: "zero", "floor", "odd". `inside`: the running sum is a term; else it meets the terms' sum on a grid of
    its own, or, with `apart`, in an addition of its own. A term is the exact sum of `term` products, with the power of two
    of the first. Even and odd terms may be `halves`. `drop`: a small running sum is left out. `positive`: a sum that rounding
    makes zero is +0. `stored`: "nearest", "drawn", another mode's name or empty; `daz` and `ftz` are stores'. `single`: float32 holds
    products and cut terms, which are added as integers, those of several products as float64; their sum, too, unless it is "truncated"
    from float64. One that 32 bits may not hold is made of two `parts`.
    """

    kind: str
    block: int
    blocks: int
    term: int
    cut: str
    halves: bool
    inside: bool
    apart: bool
    sum_cut: str
    drop: bool
    positive: bool
    result: str
    stored: str
    saturate: bool
    daz: bool = False
    ftz: bool = False
    single: bool = False
    parts: int = 1

    @property
    def group(self):
        """Products of a turn."""
        return self.block * self.blocks


def whole(x, cut):
    """Whole numbers of grids: of x, or for "odd" of twice x."""
    if cut == "odd":
        return x.floored() + x.ceiled()
    return x.floored() if cut == "floor" else x.truncated()


class Turn:
    """What turns of `Aligned` do, for one row, or for all rows together: their sums do not wait for one another, and numbers of b that
    rows share are read once."""

    def __init__(self, unit, observer):
        self.unit, self.observer = unit, observer

    def grids(self, tile, scale, name):
        """The grid below a scale."""
        return (scale.bits() - tile.integer(f"{name}_grid")).floats()

    def cut(self, y, cut, state):
        """Whole numbers of grids."""
        n = whole(y, cut)
        self.observer.cut(state, n * 0.5 if cut == "odd" else n, y)
        return n

    def whole(self, y, state):
        """A term, in grids, cut to them; of float32 and one product as an integer, which takes one instruction less."""
        n = self.cut(y, "zero" if self.unit.single else self.unit.cut, state)
        if not self.unit.single:
            return n
        return y.integers() if self.unit.term == 1 else n.double()

    def total(self, state):
        """The sum of terms so far, in grids, between the phases of a long block."""
        return state[TOTAL].bits() if self.unit.single and self.unit.term == 1 else state[TOTAL]

    def cut_to(self, tile, x, scale, name, state):
        """x, cut to so many bits below the scale."""
        y = x * (tile.integer(f"{name}_per") - scale.bits()).floats()
        return self.cut(y, self.unit.sum_cut, state) * self.grids(tile, scale, name)

    def product_sum(self, tile, row, k, per_grid):
        """A term, in grids."""
        if self.unit.term == 1 and not self.unit.single:
            return (tile.a(row, k) * per_grid) * tile.b(k)
        # products of float32 are normal numbers: a factor times the grid need not be one
        s = tile.a(row, k) * tile.b(k)
        for other in range(k + 1, k + self.unit.term):
            x, z = tile.a(row, other), tile.b(other)
            s = x.fused(z, s) if tile.fuses else s + x * z
        return s * per_grid

    def terms(self, tile, products, leads, states):
        """Of each row the sum of terms, in grids, the power of two that set them, 0 without any, the scale, and its reciprocal grid.

        `products` are the first of each term, `leads` what the powers are at least.
        """
        leads, totals, rows = list(leads), [None] * tile.rows, range(tile.rows)
        for k in products:
            for row in rows:
                tile.row = row
                leads[row] = leads[row].at_least(tile.a(row, k, 1) * tile.b(k, 1))
        scales = [scale_of(lead) for lead in leads]
        per_grids = [(tile.integer("terms_per") - scale.bits()).floats() for scale in scales]
        for k in products:
            for row in rows:
                tile.row = row
                n = self.whole(self.product_sum(tile, row, k, per_grids[row]), states[row])
                totals[row] = n if totals[row] is None else totals[row] + n
        return totals, leads, scales, per_grids

    def sums_of_halves(self, tile, products, least, states):
        """Even and odd terms, each on a grid of its own, then on the larger one's: sums and powers of two."""
        both = [self.terms(tile, products[half::2], least, states) for half in (0, 1)]
        leads = [one.at_least(other) for one, other in zip(both[0][1], both[1][1], strict=True)]
        sums = []
        for row, lead in enumerate(leads):
            parts = [
                self.cut_to(tile, total[row] * self.grids(tile, scale[row], "terms"), scale_of(lead), "halves", states[row])
                for total, _, scale, _ in both
            ]  # fmt: skip
            sums.append(parts[0] + parts[1])
        return sums, leads

    def start(self, tile, own):
        """What the power of two of a grid is at least, before any term."""
        least = tile.parameter("least")
        return own.at_least(least) if self.unit.inside else least

    def block(self, tile, sums_so_far, first, states):
        """The running sums after one more block."""
        for state in states:
            self.observer.begin(state)
        own = [own_power(tile, running) for running in sums_so_far]
        products = range(first, first + self.unit.block, self.unit.term)
        start = [self.start(tile, power) for power in own]
        if self.unit.halves:
            sums, leads = self.sums_of_halves(tile, products, start, states)
        else:
            totals, leads, scales, per_grids = self.terms(tile, products, start, states)
            sums = [
                self.summed(tile, *of_row)
                for of_row in zip(totals, scales, per_grids, sums_so_far, states, strict=True)
            ]
        return [self.finished(tile, *of_row) for of_row in zip(sums, leads, own, sums_so_far, states, strict=True)]

    def summed(self, tile, total, scale, per_grid, running, state, part=None):
        """The sum of terms in grids, maybe of a further `part`, and of the running sum where it is one of them, as a number."""
        own = self.whole(running * per_grid, state) if self.unit.inside else None
        grid = self.grids(tile, scale, "terms")
        if self.unit.result == "truncated":
            found = [total, own] if part is None else [total, own, part]
            return reduce(add, (x if x.is_float else x.doubles() for x in found)) * grid.double()
        total = total if own is None else total + own
        return (total.numbers() if self.unit.single else total) * grid

    def finished(self, tile, s, lead, own, running, state):
        """A row's sum of terms and the running sum, rounded."""
        unit, observer = self.unit, self.observer
        if unit.apart:
            dot = narrowed(tile, s + 0.0, unit.result, running, state, observer)
            observer.part(state)
            s, error = sum_and_error(running, dot)
            found = narrowed(tile, to_odd(s, error), unit.result, running, state, observer)
        else:
            if not unit.inside:
                scale = scale_of(lead.at_least(own))
                addend = running
                if unit.drop:
                    far = own * tile.parameter("drop") < scale
                    addend = far.choose((running.bits() & 0).floats(), running)
                    observer.cut(state, addend.magnitude(), running.magnitude())
                s = self.cut_to(tile, s, scale, "sum", state)
                s = s + self.cut_to(tile, addend, scale, "addend", state)
            found = narrowed(tile, s + 0.0, unit.result, running, state, observer)
            found = found + 0.0 if unit.positive else found
        observer.block(state, running, running, found)
        return found


def scale_of(lead):
    """The power of two that sets a grid; 1 where no term does."""
    return (lead > 0.0).choose(lead, 1.0)


def own_power(tile, running):
    """The power of two that a running sum has."""
    field = {32: EXPONENT, 64: EXPONENT64}[running.bits().element.width]
    power = (running.bits() & field).at_least(tile.integer("floor")).floats()
    return running.nonzero().choose(power, tile.parameter("zero"))


def aligned_unit_step(unit, observer):
    """A turn of `Aligned`, of all rows together."""
    turn = Turn(unit, observer)

    def step(tile, states):
        before = sums = [without_subnormals(tile, state[VALUE], unit) for state in states]
        for number in range(unit.blocks):
            sums = turn.block(tile, sums, number * unit.block, states)
        for row, (state, old, new) in enumerate(zip(states, before, sums, strict=True)):
            state[VALUE] = observer.stored(tile, row, new, old, state, unit) if unit.stored else new

    step.together = True
    return step


def aligned_phases(unit, observer):
    """A block of `Aligned` of any length as several steps, each with the products that its terms begin with, None where it is for none: before
    its terms; a term's power of two; once these are known; a term, and between two parts; after all."""
    turn = Turn(unit, observer)

    def before(tile, row, state):
        observer.begin(state)
        state[LEAD] = turn.start(tile, own_power(tile, state[VALUE]))
        state[TOTAL] = (state[TOTAL].bits() & 0).floats()
        return state

    def led(tile, row, state):
        state[LEAD] = state[LEAD].at_least(tile.a(row, 0, 1) * tile.b(0, 1))
        return state

    def scaled(tile, row, state):
        state[PER_GRID] = (tile.integer("terms_per") - scale_of(state[LEAD]).bits()).floats()
        return state

    def term(tile, row, state):
        n = turn.whole(turn.product_sum(tile, row, 0, state[PER_GRID]), state)
        state[TOTAL] = (turn.total(state) + n).floats()
        return state

    def parted(tile, row, state):
        state[PART], state[TOTAL] = state[TOTAL], (state[TOTAL].bits() & 0).floats()
        return state

    def after(tile, row, state):
        running, lead = state[VALUE], state[LEAD]
        part = state[PART].bits() if unit.parts > 1 else None
        s = turn.summed(tile, turn.total(state), scale_of(lead), state[PER_GRID], running, state, part)
        state[VALUE] = turn.finished(tile, s, lead, own_power(tile, running), running, state)
        return state

    half, whole = unit.block // unit.parts, range(0, unit.block, unit.term)
    terms = [(range(0, half, unit.term), term)] + [(None, parted), (range(half, unit.block), term)] * (unit.parts - 1)
    return (None, before), (whole, led), (None, scaled), *terms, (None, after)


# -- fixed point -----------------------------------------------------------------------------------------------------


class Fixed(NamedTuple):
    """A product to a register, all in units of its last bit."""

    kind: str
    cut: str
    saturate: bool

    @property
    def group(self):
        """Products of a turn."""
        return 1


def fixed_unit_step(unit, observer):
    """A turn of `Fixed`. An addition that goes beyond the register is inexact as well."""

    def step(tile, row, state):
        y, before = tile.a(row) * tile.b(), state[VALUE]
        n = whole(y, unit.cut)
        total = before + n
        if not observer.in_lanes:
            observer.cut(state, n, y)
        half = tile.parameter("half_span")
        if unit.saturate:
            over, under = total >= half, total < -half
            beyond = over | under
            total = over.choose(half - 1.0, under.choose(-half, total))
        else:
            turns = ((total + half) * tile.parameter("per_span")).floored()
            beyond = turns.nonzero()
            total = total - turns * tile.parameter("span")
        state[OVERFLOW] = beyond.choose(1, state[OVERFLOW].bits())
        state[VALUE] = total + 0.0
        if observer.in_lanes:
            lost = (n.bits() ^ y.bits()).nonzero() | beyond
            observer.addition(state, Addition(before, state[VALUE], lost, beyond, y.differs(0.0)))
        return state

    return step


MAKERS = {
    "pairs": pairs_step,
    "aligned": aligned_unit_step,
    "fixed": fixed_unit_step,
}
"""What writes the turns of a unit's kind."""


def is_narrow(unit):
    """Whether sums of blocks may overflow, or be tiny."""
    return unit.result == "half" or bool(unit.stored)


def slots_of(unit, counts=False):
    """What a unit's steps note beside the running sum and INEXACT."""
    told, over = (COUNTS, LEAST, GREATEST) * counts, (OVERFLOWED,) * counts
    if unit.kind == "fixed":
        return *told, OVERFLOW, *over
    if unit.kind == "pairs":
        return told
    tiny = (UNDERFLOW, *(OVERFLOW,) * unit.saturate, *over) * is_narrow(unit)
    return *told, *tiny, *(UNSETTLED,) * (unit.stored == "drawn" and not counts)
