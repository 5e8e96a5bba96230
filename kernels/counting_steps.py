"""Steps of a tile that count additions: those that overflowed, were inexact, or were swamped; and the least and greatest sum."""

import numpy as np

from .jit import referable, row, stand_alone, viewed
from .lanes import guarded_tile, tile
from .one_by_one import (
    single_fused,
    single_product,
    single_sum,
)
from .quick_steps import (
    SPLIT,
    is_lifted,
    is_tiny,
    never,
    quickly,
    round_half_bits,
    split_product,
    splits,
    watch_half,
    watch_subnormal,
    went_wrong,
)
from .steps import (
    BITS_OF_FLOAT32,
    COUNT_BITS,
    COUNTING_SLOTS,
    COUNTS,
    GREATEST,
    HALF_LARGEST,
    IN_COUNTS,
    INEXACT,
    LEAST,
    LOWEST_BIT,
    NEAR_ZERO,
    OVERFLOW,
    OVERFLOWED,
    ROUNDED,
    RUNNING,
    SLOTS,
    SWAMPED,
    TIE,
    UNDERFLOW,
    VALUE,
    Numbers,
    block_sum,
    bounded,
    drawn_half,
    exact_fma,
    exact_product,
    exact_sum,
    in_phases,
    rounded,
    split,
    stored_half,
    whole_block,
    without_subnormals,
)
from .vectors import LANES


def count(state, happened):
    """Count where something happened, in slots of their own or, where there is a slot for that, in one word."""
    for slot, lanes in happened.items():
        shared = COUNTS in state and slot in IN_COUNTS
        place = COUNTS if shared else slot
        counted = state[place].bits()
        one = 1 << LOWEST_BIT + COUNT_BITS[counted.element.width] * IN_COUNTS.index(slot) if shared else 1
        state[place] = counted + lanes.choose(counted.all_of(one), 0)


def counting_step(operation, manner):
    """The same additions, each looked at as `accumulate.count_row` does."""

    def step(tile, row, state):
        before = without_subnormals(tile, state[VALUE], manner)
        if operation == "fma":
            x = exact_fma(tile, tile.a(row), tile.b(), before, manner)
        else:
            product = rounded(tile, exact_product(tile, tile.a(row), tile.b(), manner), state, manner, True)
            x = exact_sum(tile, without_subnormals(tile, product, manner), before, manner)
        may_underflow = operation == "fma" or manner.ftz
        state[VALUE] = counted_rounding(tile, x, before, state, manner, may_underflow)
        return state

    return step


def counted_rounding(tile, x, before, state, manner, may_underflow):
    """x, to odd, what an addition to `before` makes, rounded; the addition is counted."""
    alone = COUNTS not in state  # which says as well whether anything was inexact
    unbounded = rounded(tile, x, state, manner, alone, may_underflow=may_underflow, bound=False)
    total = bounded(tile, unbounded, state, manner)
    if total is unbounded and not manner.daz:  # overflows are infinities
        lost = total.apart_from(x)
        over = lost & (total.magnitude() >= np.inf)
        counted_addition(state, None, before, lost, total, over, manner.of_nan)
        return total
    after = without_subnormals(tile, total, manner)
    over = (unbounded.magnitude() > tile.parameter("largest")) & (x.magnitude() < np.inf)
    inexact = over | (total - x).nonzero()  # never of NaN, nor of equal infinities
    count(state, {OVERFLOWED: over, ROUNDED: inexact, SWAMPED: x.differs(before) & after.equals(before)})
    note_extremes(state, after, manner.of_nan)
    return total


def quick_counting_step(operation, manner):
    """The same, of numbers that are neither tiny nor overflow: these are watched for. Counts are in one word of COUNTS."""

    def quick(tile, x, state):
        if manner.family == "half" and manner.nearest:
            watch_half(x.bits() | 1, state)
            return round_half_bits(x)
        return quickly(tile, x, state, manner._replace(noted=True), True)

    def step(tile, row, state):
        before = state[VALUE]
        watch_subnormal(tile, before, state, manner)
        if operation == "fma":
            x = exact_fma(tile, tile.a(row), tile.b(), before, manner)
        else:
            product = exact_product(tile, tile.a(row), tile.b(), manner)
            term = quick(tile, product, state)
            watch_subnormal(tile, term, state, manner)
            count(state, {INEXACT: term.apart_from(product)})
            x = exact_sum(tile, term, before, manner)
        after = quick(tile, x, state)
        counted_addition(state, None, before, after.apart_from(x), after)
        state[VALUE] = after
        return state

    return step


def single_counting_step(operation, manner):
    """The same of sums in float32, which the CPU rounds, but for overflows: these are seen by what is left (`counting_tiles`)."""

    def step(tile, row, state):
        before, a, b = state[VALUE], tile.a(row), tile.b()
        if operation == "fma" or manner.family == "float32_of_narrow":
            after, lost = single_fused(tile, a, b, before, manner)
        else:
            product, rounded_off = single_product(tile, a, b, manner)
            count(state, {INEXACT: rounded_off})
            after, lost = single_sum(tile, product, before, manner)
        counted_addition(state, None, before, lost, after)
        state[VALUE] = after
        return state

    return step


def counting_tiles(name, operation, manner, rows, **shape):
    """(quick, careful), loops of tiles of so many rows; the first counts in one word of COUNTS, and tells how many turns it did with care.

    Of sums in float32, whose one step needs no watching, both are the first.
    """
    carrier = np.float32
    if not manner.family.startswith("float32"):
        step = counting_step(operation, manner)
        slots = (VALUE, INEXACT, *manner.slots, *range(SLOTS, COUNTING_SLOTS))
        careful = tile(name, step, carrier, slots, Numbers._fields, rows=rows, **shape)
        quick = guarded_tile(
            name, quick_counting_step(operation, manner), went_wrong(manner), step, carrier,
            (INEXACT, *manner.slots, OVERFLOWED), counting_watches(manner), Numbers._fields, rows, 1.0,
            (VALUE, COUNTS, LEAST, GREATEST), rows, **shape,
        )  # fmt: skip
        return quick, careful
    slots = VALUE, COUNTS, LEAST, GREATEST
    every = tile(name, single_counting_step(operation, manner), carrier, slots, Numbers._fields, rows=rows, **shape)
    cells = rows * (shape.get("lanes") or LANES[carrier])

    @row
    def counted_singles(a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns):
        stand_alone()
        every(a, a_start, a_plane, b, b_start, b_plane, noise, state, numbers, turns)
        happened = viewed(state, np.int32)
        for cell in range(cells):
            # a sum that was finite overflows once: an infinity stays one, or becomes NaN
            happened[OVERFLOWED * cells + cell] = 0 if abs(state[cell]) < np.inf else 1
        return 0

    counted_singles = referable(counted_singles, *name, rows, *shape.values())
    return counted_singles, counted_singles


def split_counting_step(manner):
    """The same of multiply-adds that are rounded by splitting."""

    def step(tile, row, state):
        before, product = state[VALUE], tile.a(row) * tile.b()
        term = split_product(tile, row, manner.family)
        count(state, {INEXACT: term.apart_from(product)})
        x = exact_sum(tile, term, before, manner)
        after = split(x, SPLIT[manner.family])
        counted_addition(state, None, before, after.apart_from(x), after)
        state[VALUE] = after
        return state

    return step


def split_counting_tile(name, operation, manner, rows):
    """As the quick one of `counting_tiles`, where no overflow threatens, or None. Of halves it asks for the least numbers of turns."""
    if not splits(operation, manner):
        return None
    fails = is_tiny if is_lifted(operation, manner) else never
    return guarded_tile(
        (*name, "split"), split_counting_step(manner), fails, counting_step(operation, manner), np.float32,
        (INEXACT, *manner.slots, OVERFLOWED), {}, Numbers._fields, rows, 1.0, (VALUE, COUNTS, LEAST, GREATEST), rows,
    )  # fmt: skip


def counting_watches(manner):
    """The slots that these steps watch with, and the bits they begin with."""
    return dict.fromkeys((TIE, OVERFLOW) + (NEAR_ZERO,) * (manner.family == "narrow" or manner.daz), -1)


def counted_addition(state, alive, before, lost, after, over=None, of_nan=False, changed=None):
    """Note an addition, as `accumulate.count_row` does, in lanes that are `alive`, whose sum was finite; None: in all.

    A sum that is rounded to what was there before has changed if bits were `lost`, unless `changed` says where. `of_nan`: infinities
    stand for NaN.
    """
    happened = {ROUNDED: lost, SWAMPED: (lost if changed is None else changed) & after.equals(before)}
    if over is not None:
        happened[OVERFLOWED] = over
    if alive is not None:
        happened = {slot: lanes & alive for slot, lanes in happened.items()}
    count(state, happened)
    note_extremes(state, after, of_nan, alive)


def note_extremes(state, after, of_nan, alive=None):
    """A sum, where it is the least or the greatest so far, in lanes that are `alive`; None: in all. `of_nan`: infinities stand for NaN."""
    less, more = after < state[LEAST], after > state[GREATEST]
    shown = after.magnitude() < np.inf if of_nan else alive
    if of_nan and alive is not None:
        shown = shown & alive
    if shown is not None:
        less, more = shown & less, shown & more
    state[LEAST] = less.choose(after, state[LEAST])
    state[GREATEST] = more.choose(after, state[GREATEST])


def counting_exact_step(block, blocks, stored, saturate, of_nan, careful=True):
    """The same sums, each rounding and each store looked at; what is inexact is counted. `of_nan`: overflows become NaN in the end.

    If not `careful`, no sum of a block loses a bit in float64, and none overflows.
    """

    def begun(tile, row, state):
        return state | {RUNNING: state[VALUE] + 0.0}

    def summed(number):
        def step(tile, row, state):
            before, products = state[RUNNING], range(number * block, (number + 1) * block)
            if careful:
                s = whole_block(tile, row, before, products)
                running, alive = s.single().double(), state[VALUE].magnitude() < np.inf
            else:
                s = before + block_sum(tile, row, products)
                running, alive = split(s, BITS_OF_FLOAT32), None
            counted_addition(state, alive, before, s.differs(running), running)
            return state | {RUNNING: running}

        return step

    def kept(tile, row, state):
        memory, running = state[VALUE], state[RUNNING]
        alive = memory.magnitude() < np.inf if careful else None
        if stored:
            own = state | {OVERFLOW: memory.all_of(0.0)}
            store = (tile, row, running) if stored == "drawn" else (running.single(),)
            after = (drawn_half if stored == "drawn" else stored_half)(*store, own, saturate and careful, False)
            if careful:
                over = own[OVERFLOW].bits().nonzero() if saturate else after.magnitude() > HALF_LARGEST
                state[UNDERFLOW] = alive.choose(own[UNDERFLOW].bits(), state[UNDERFLOW].bits())
                counted_addition(state, alive, memory, running.differs(after), after, over, of_nan)
                if saturate:
                    state[OVERFLOW] = state[OVERFLOW].bits() | own[OVERFLOW].bits()
            else:
                state[UNDERFLOW] = own[UNDERFLOW]
                counted_addition(state, None, memory, running.differs(after), after)
            running = after
        state[VALUE] = alive.choose(running, memory) if careful else running
        return state

    return in_phases(begun, *(summed(number) for number in range(blocks)), kept)
