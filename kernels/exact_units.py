"""Turns of dot-product units that add blocks of products and the running sum exactly: with care, or quickly where float64 has all bits."""

from typing import NamedTuple

import numpy as np

from .steps import (
    INVALID,
    LARGEST_SO_FAR,
    OVERFLOW,
    SMALLEST,
    VALUE,
    split,
    sum_and_error,
    to_odd,
    without_subnormals,
)
from .sums.guarded import guard, note
from .units import Watch, narrowed
from .vectors import Vector

BITS_OF_FLOAT32, BITS_OF_HALF = 29, 42  # of float64's that are taken away
AT_ONCE = 4  # sums that do not wait for one another
RUNNING, MEMORY = "running", "memory"
"""Beside the slots, between phases of a turn: a sum, and what was in memory before."""


class Exact(NamedTuple):
    """A turn of a unit that adds blocks and the running sum exactly: `blocks` of them, then perhaps a store.

    `signed`: zeros of one sign keep it. `careful`: float64 may lose bits of a sum, which are added up and folded in.
    """

    kind: str
    block: int
    blocks: int
    signed: bool
    careful: bool
    result: str
    stored: str
    saturate: bool
    daz: bool = False
    ftz: bool = False
    specials: bool = False
    """Operands may be infinite or NaN."""

    @property
    def group(self):
        """Products of a turn."""
        return self.block * self.blocks


def whole_block(tile, row, running, products, signed):
    """The running sum and a block's products, to odd: the errors of the additions are added up, exactly, and folded in. Zeros of one sign keep
    it if they are `signed`."""
    s, lost = running, None
    for product in products:
        s, error = sum_and_error(s, tile.a(row, product) * tile.b(product))
        lost = error if lost is None else lost + error
    found = to_odd(*sum_and_error(s, lost))
    return (found.is_zero() & s.is_zero()).choose(s, found) if signed else found


def block_sum(tile, row, products):
    """The sum of some products, none of whose partial sums loses a bit: in halves, for the shortest chain."""
    if len(products) == 1:
        return tile.a(row, products[0]) * tile.b(products[0])
    middle = (len(products) + 1) // 2
    first, rest = block_sum(tile, row, products[:middle]), products[middle:]
    if len(rest) == 1 and tile.fuses:
        return tile.a(row, rest[0]).fused(tile.b(rest[0]), first)
    return first + block_sum(tile, row, rest)


def gathered(values, join):
    """All of these joined, in an order that leaves the CPU several to do at once: for what does not hang on the order."""
    parts = []
    for number, value in enumerate(values):
        if number < AT_ONCE:
            parts.append(value)
        else:
            parts[number % AT_ONCE] = join(parts[number % AT_ONCE], value)
    while len(parts) > 1:
        parts = [join(*parts[n : n + 2]) if n + 1 < len(parts) else parts[n] for n in range(0, len(parts), 2)]
    return parts[0]


def in_phases(*phases, shared=()):
    """A step for all rows together: of several functions of one row each is taken for every row before the next one. The CPU
    looks no farther ahead than some rows' chains. What a phase puts aside is under keys that are no slots; slots in `shared`
    go from row to row, and end with the first one."""

    def step(tile, states):
        common = {slot: states[0][slot] for slot in shared}
        for phase in phases:
            for row, state in enumerate(states):
                tile.row = row
                states[row] = phase(tile, row, state | common)
                common = {slot: states[row].pop(slot) for slot in shared}
        states[0] |= common

    step.together = True
    return step


def moved_up(tile, row, x):
    """A float32 in float64 to half, stochastically: of as many random bits as it loses none needs to be known. `drawn_half` for normal numbers."""
    random = tile.noise(row).bits() << (BITS_OF_HALF - 16)
    return ((x.bits() + random) & -(1 << BITS_OF_HALF)).floats()


def exact_sum_of(tile, row, running, number, unit, looks):
    """The running sum and block `number` of a turn of `Exact`: all bits that decide."""
    s = running if unit.signed else running + 0.0
    products = range(number * unit.block, (number + 1) * unit.block)
    nearest = unit.block == 1 and unit.result == "single" and not looks  # float64 has more than twice the bits
    if unit.careful and not nearest:
        return whole_block(tile, row, s, products, unit.signed)
    sums = [s, *(tile.a(row, k) * tile.b(k) for k in products[: AT_ONCE - 1])]
    for n, k in enumerate(products[AT_ONCE - 1 :]):
        x, y, before_it = tile.a(row, k), tile.b(k), sums[n % AT_ONCE]
        sums[n % AT_ONCE] = x.fused(y, before_it) if tile.fuses else before_it + x * y
    return gathered(sums, Vector.__add__)


def guarded_block(tile, row, running, products, state, kept, found):
    """What was `found` of a block; of one with infinities or NaNs, or added to such, what the CPU makes of them."""
    total, numbers = running, running.equals(running)
    for k in products:
        x, y = tile.a(row, k), tile.b(k)
        product, number = x * y, x.equals(x) & y.equals(y)
        note(state, INVALID, product.differs(product) & number)
        total, numbers = total + product, numbers & number
    kept[INVALID] = state[INVALID]
    found = guarded(state, kept, total, found)
    note(state, INVALID, total.differs(total) & numbers)
    return found


def guarded(state, kept, exact, found):
    """What was `found` of an exact number, or one that is infinite or NaN; an infinity of others is an overflow."""
    rounds = exact.magnitude() < np.inf
    found = guard(state, kept, rounds, found, exact)
    note(state, OVERFLOW, rounds & (found.magnitude() >= np.inf))
    return found


def exact_unit_step(unit, observer):
    """A turn of `Exact`."""

    def step(tile, row, state):
        memory = running = without_subnormals(tile, state[VALUE], unit)
        for number in range(unit.blocks):
            before, kept = running, dict(state)
            observer.begin(state)
            s = exact_sum_of(tile, row, before, number, unit, observer.looks)
            running = narrowed(tile, s, unit.result, before, state, observer, unit.saturate)
            observer.block(state, before if unit.result == "half" else memory, before, running)
            if unit.specials:
                products = range(number * unit.block, (number + 1) * unit.block)
                running = guarded_block(tile, row, before, products, state, kept, running)
        kept, found = dict(state), running
        if unit.stored:
            found = observer.stored(tile, row, running, memory, state, unit)
            found = guarded(state, kept, running, found) if unit.specials else found
        state[VALUE] = found
        return state

    return step


def is_quick(unit):
    """Whether turns of `Exact` are tried quickly before they are done with care."""
    narrowed = unit.kind == "exact" and unit.careful and not unit.specials and unit.result in ("single", "cut", "odd")
    return narrowed and not (unit.stored == "drawn" and (unit.daz or unit.ftz))


def cuts(unit):
    """Whether quick turns store halves that they take to be normal numbers, or zero."""
    return unit.stored in ("nearest", "drawn") and not (unit.daz or unit.ftz)


EXTREMES = LARGEST_SO_FAR, SMALLEST
"""Of running sums before blocks: the largest magnitude, and the least but for zero, less one bit, of each lane."""


def extremes_of(unit, counts):
    """Those that are told: where additions are counted, the largest of finite sums is known by the least and the greatest."""
    return EXTREMES if not counts or (unit.stored and not cuts(unit)) else (SMALLEST,) * cuts(unit)


def quick_exact_step(unit, observer):
    """A turn of `Exact`, of all rows together, that is right where float64 has every bit of a block's sum; EXTREMES tell whether it has.

    Conversions of the CPU cost more than cutting bits. The noise of stores is 16 random bits.
    """
    extremes = extremes_of(unit, observer.in_lanes)

    def begun(tile, row, state):
        memory = without_subnormals(tile, state[VALUE], unit)
        return state | {MEMORY: memory, RUNNING: memory if unit.signed else memory + 0.0}

    def summed(number):
        def step(tile, row, state):
            running, products = state[RUNNING], range(number * unit.block, (number + 1) * unit.block)
            if unit.stored or not tile.fuses:
                s = running + block_sum(tile, row, products)
            else:  # other rows' chains are enough to wait with
                s = running
                for product in products:
                    s = tile.a(row, product).fused(tile.b(product), s)
            magnitude = running.magnitude()
            if LARGEST_SO_FAR in extremes:
                state[LARGEST_SO_FAR] = magnitude.at_least(state[LARGEST_SO_FAR])
            if SMALLEST in extremes:
                state[SMALLEST] = (magnitude.bits() - 1).floats().at_most(state[SMALLEST])  # no zero is smallest
            single = unit.result == "single"
            after = (
                split(s, BITS_OF_FLOAT32) if single else narrowed(tile, s, unit.result, running, state, Watch(False))
            )
            observer.added(state, running, s, after)
            return state | {RUNNING: after}

        return step

    def stores(tile, row, state):
        running, memory = state.pop(RUNNING), state.pop(MEMORY)
        if cuts(unit):
            half = moved_up(tile, row, running) if unit.stored == "drawn" else split(running, BITS_OF_HALF)
            observer.added(state, memory, running, half)
            running = half
        elif unit.stored:
            running = observer.stored(tile, row, running, memory, state, unit)
        state[VALUE] = running
        return state

    return in_phases(begun, *(summed(number) for number in range(unit.blocks)), stores, shared=extremes)
