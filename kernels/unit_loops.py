"""Loops over tiles of the sums of dot-product units, whose steps `units` writes."""

import numpy as np

from . import jit
from .accumulate import STORE
from .jit import bits_float, copy_row, fill_row, flat, float_bits, row, scratch, viewed
from .lanes import closing, everywhere, opening, starting, tile
from .noise import filling
from .steps import DRAWN_SLOTS, EXPONENT64, INEXACT, OVERFLOW, SLOTS, UNDERFLOW, UNSETTLED, VALUE, Numbers
from .tiles import (
    SOON,
    WATCH,
    draw_stores,
    first_of,
    flags_of,
    next_of,
    pass_over,
    tile_of,
    together_of,
)
from .units import (
    LEAD,
    LONG_SLOTS,
    MAKERS,
    PER_GRID,
    TOTAL,
    UnitNumbers,
    aligned_phases,
    slots_of,
)
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK

FRACTION = 2.0**-16  # what the last of 16 random bits is worth
EVERY_MAGNITUDE = (1 << 63) - 1
"""What no sign is among, in the bits of float64."""


class Kind:
    """What the loops of a unit's kind have in common: its carrier, its turns, and what is around them. `layout` is what `tile` takes of it."""

    def __init__(self, unit, **layout):
        self.layout = layout
        single = unit.kind == "pairs"
        self.unit, self.carrier = unit, np.float32 if single else np.float64
        self.integer = np.int32 if single else np.int64
        self.planes, self.lanes = 1 + (unit.kind == "aligned"), LANES[self.carrier]
        self.parameters = Numbers._fields if single else UnitNumbers._fields
        seen = (VALUE, INEXACT, *(slot for slot in (UNDERFLOW, OVERFLOW) if slot in slots_of(unit)))
        self.begin = opening(self.carrier, max((INEXACT, *slots_of(unit))) + 1)
        self.end = closing(self.carrier, flags_of, seen)
        self.all_inexact = everywhere(self.carrier, INEXACT)
        self.cells = ROWS * self.lanes

    def tile(self, name, step, watches, more, group=1):
        """The loop of a step."""
        slots = (VALUE, *((INEXACT,) if watches else ()), *more)
        return self.loop((self.unit, name, watches), step, slots, group)

    def loop(self, name, step, slots, group=1):
        """That of a step with these slots."""
        return tile(name, step, self.carrier, slots, self.parameters, group, self.planes, **self.layout)

    def turns(self):
        """The loops of a turn: a watchful and a brief one."""
        unit = self.unit
        make, more = MAKERS[unit.kind], slots_of(unit)
        return (self.tile("turn", make(unit, watches), watches, more, unit.group) for watches in (True, False))

    def phases(self):
        """The loops of a long block: of what comes before its terms, of their powers of two, of what comes once these are known; of terms
        and of what comes after all, a watchful one and a brief one each."""
        unit, aside = self.unit, (LEAD, TOTAL, PER_GRID)
        starts, leads, scales, terms, ends = zip(
            *(aligned_phases(unit, watches) for watches in (True, False)), strict=True
        )
        return (
            self.tile("start", starts[1], False, aside[:2]),
            self.loop((unit, "lead"), leads[1], (LEAD,)),
            self.tile("scale", scales[1], False, (LEAD, PER_GRID)),
            tuple(
                self.loop((unit, "term", watches), terms[not watches], (TOTAL, PER_GRID, *(INEXACT,) * watches))
                for watches in (True, False)
            ),
            tuple(self.tile("end", ends[not watches], watches, (*aside, *slots_of(unit))) for watches in (True, False)),
        )

    def start(self, turns):
        """What begins a tile with so many watchful turns."""
        unit = self.unit
        step, slots = MAKERS[unit.kind](unit, True), (VALUE, INEXACT, *slots_of(unit))
        return starting((unit, "start"), step, self.carrier, slots, self.parameters, turns, unit.group, self.planes)


@jit.once
def summing_one_by_one(unit):
    """loop(first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns) over tiles first ... last - 1, a part of other loops.

    As `tiles.deterministic`, with products one after the other; k is a whole number of turns, a and b have planes of powers of
    two where terms are aligned.
    c and values may be one array, and c of one product for all.
    """
    kind, group = Kind(unit), unit.group
    carrier, integer, planes, lanes, cells = kind.carrier, kind.integer, kind.planes, kind.lanes, kind.cells
    begin, end, all_inexact = kind.begin, kind.end, kind.all_inexact
    watchful, brief = kind.turns()
    watched, soon, state_size = max(WATCH // group, 1), max(SOON // group, 1), SLOTS * cells
    start = kind.start(soon)

    def units_loop(first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns):
        products, panels, across, turns = a.shape[0], a.shape[2], b.shape[2], a.shape[3] // group
        a_size, b_size, size = a.size // products, b.size // products, values.size // products
        c_size = size if c.shape[0] == products else 0
        a_plane, b_plane, a_panel = a_size // planes, b_size // planes, a_size // panels * a.itemsize
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[2]
        state = scratch(state_size, carrier)
        happened = viewed(state, integer)
        product, i, j, rows_from = first_of(first, panels, across, a_panel)
        together = together_of(a_panel)
        for _ in range(first, last):
            a_at, b_at = product * a_size + i * turns * group * ROWS, product * b_size + j * turns * group * lanes
            within = i * ROWS * wide + j * lanes
            place, c_place = product * size + within, product * c_size + within
            done, known = 0, False
            if turns < soon:
                begin(state, flat_c, c_place, wide)
            else:
                known = start(flat_a, a_at, a_plane, flat_b, b_at, b_plane, flat_c, c_place, wide, state, numbers)
                done = soon
                a_at += soon * group * ROWS
                b_at += soon * group * lanes
            if ((i + 1) * ROWS > rows) | ((j + 1) * lanes > columns):
                pass_over(happened, i, j, lanes, rows, columns)
            while done < turns:
                count = turns - done
                known = known or all_inexact(state)
                if known:
                    brief(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, count)
                else:
                    count = min(watched, count)
                    watchful(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, count)
                done += count
                a_at += count * group * ROWS
                b_at += count * group * lanes
            end(state, flat_values, flat_flags, place, wide, nan_flags)
            product, i, j, rows_from = next_of(product, i, j, rows_from, panels, across, together)

    return jit.referable(row(units_loop), unit)


@jit.once
def drawn_unit_loop(unit):
    """loop(first, ..., columns, index, row_stride, column_stride, apart, width, key, stream): as `unit_loop`, for sums that are
    stored stochastically at the end of each turn, by 16 random bits, and where these leave a store open, again by all.
    The first output of a product is `apart` from the one before it.
    """
    kind, group = Kind(unit), unit.group
    carrier, integer, planes, lanes, cells = kind.carrier, kind.integer, kind.planes, kind.lanes, kind.cells
    begin, end, all_inexact = kind.begin, kind.end, kind.all_inexact
    watchful, brief = kind.turns()
    watched, state_size = max(WATCH // group, 1), DRAWN_SLOTS * cells
    fill_noise, room = filling(), STEPS_OF_A_BLOCK * cells

    def drawn_units_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns,
        index, row_stride, column_stride, apart, width, key, stream,
    ):  # fmt: skip
        products, panels, across, turns = a.shape[0], a.shape[2], b.shape[2], a.shape[3] // group
        a_size, b_size, size = a.size // products, b.size // products, values.size // products
        c_size = size if c.shape[0] == products else 0
        a_plane, b_plane, a_panel = a_size // planes, b_size // planes, a_size // panels * a.itemsize
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[2]
        state = scratch(state_size, carrier)
        happened = viewed(state, integer)
        unsettled = happened[UNSETTLED * cells :]
        saved = scratch(state_size, carrier)
        noise, random_bits = scratch(room, np.float64), scratch(room, np.uint64)
        for unit_ in range(first, last):
            product = unit_ // (panels * across)
            i, j = tile_of(unit_ - product * panels * across, panels, across, a_panel)
            a_at, b_at = product * a_size + i * turns * group * ROWS, product * b_size + j * turns * group * lanes
            within = i * ROWS * wide + j * lanes
            place, c_place = product * size + within, product * c_size + within
            corner = index + product * apart + i * ROWS * row_stride + j * lanes * column_stride
            begin(state, flat_c, c_place, wide)
            if ((i + 1) * ROWS > rows) | ((j + 1) * lanes > columns):
                pass_over(happened, i, j, lanes, rows, columns)
            done, known = 0, False
            while done < turns:
                block_end = min(done - done % STEPS_OF_A_BLOCK + STEPS_OF_A_BLOCK, turns)
                if done % STEPS_OF_A_BLOCK == 0:
                    block = done // STEPS_OF_A_BLOCK
                    fill_noise(random_bits, 0, STORE, block, corner, row_stride, column_stride, width, key, stream)
                    for n in range(room):
                        noise[n] = np.float64(random_bits[n]) * FRACTION
                drawn = noise[done % STEPS_OF_A_BLOCK * cells :]
                known = known or all_inexact(state)
                count = block_end - done if known else min(watched, block_end - done)
                fill_row(unsettled, 0)
                copy_row(saved, state)
                for few in (True, False):
                    if known:
                        brief(flat_a, a_at, a_plane, flat_b, b_at, b_plane, drawn, state, numbers, count)
                    else:
                        watchful(flat_a, a_at, a_plane, flat_b, b_at, b_plane, drawn, state, numbers, count)
                    if not few or not np.any(unsettled):
                        break
                    copy_row(state, saved)
                    draw_stores(
                        drawn, corner, row_stride, column_stride, done, count, lanes, ROWS, key, stream, width
                    )  # fmt: skip
                done += count
                a_at += count * group * ROWS
                b_at += count * group * lanes
            end(state, flat_values, flat_flags, place, wide, nan_flags)

    return jit.compiled(drawn_units_loop)


@jit.once
def summing_in_phases(unit):
    """As `summing_one_by_one`, for aligned blocks so long that their products are no code of their own: a block in phases."""
    kind, block = Kind(unit), unit.block
    carrier, integer, planes, lanes, cells = kind.carrier, kind.integer, kind.planes, kind.lanes, kind.cells
    begin, end, all_inexact = kind.begin, kind.end, kind.all_inexact
    start, lead, scale, (watchful, brief), (last_watchful, last_brief) = kind.phases()
    state_size = LONG_SLOTS * cells

    def long_units_loop(first, last, a, b, c, values, flags, numbers, nan_flags, rows, columns):
        products, panels, across, turns = a.shape[0], a.shape[2], b.shape[2], a.shape[3] // block
        a_size, b_size, size = a.size // products, b.size // products, values.size // products
        c_size = size if c.shape[0] == products else 0
        a_plane, b_plane, a_panel = a_size // planes, b_size // planes, a_size // panels * a.itemsize
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[2]
        state = scratch(state_size, carrier)
        happened = viewed(state, integer)
        product, i, j, rows_from = first_of(first, panels, across, a_panel)
        together = together_of(a_panel)
        for _ in range(first, last):
            a_at, b_at = product * a_size + i * turns * block * ROWS, product * b_size + j * turns * block * lanes
            within = i * ROWS * wide + j * lanes
            place, c_place = product * size + within, product * c_size + within
            begin(state, flat_c, c_place, wide)
            if ((i + 1) * ROWS > rows) | ((j + 1) * lanes > columns):
                pass_over(happened, i, j, lanes, rows, columns)
            known = False
            for _turn in range(turns):
                known = known or all_inexact(state)
                start(flat_a, 0, a_plane, flat_b, 0, b_plane, state, state, numbers, 1)
                lead(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, block)
                scale(flat_a, 0, a_plane, flat_b, 0, b_plane, state, state, numbers, 1)
                if known:
                    brief(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, block)
                    last_brief(flat_a, 0, a_plane, flat_b, 0, b_plane, state, state, numbers, 1)
                else:
                    watchful(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, block)
                    last_watchful(flat_a, 0, a_plane, flat_b, 0, b_plane, state, state, numbers, 1)
                a_at += block * ROWS
                b_at += block * lanes
            end(state, flat_values, flat_flags, place, wide, nan_flags)
            product, i, j, rows_from = next_of(product, i, j, rows_from, panels, across, together)

    return jit.referable(row(long_units_loop), unit)


unit_loop, long_unit_loop = (jit.outermost(make) for make in (summing_one_by_one, summing_in_phases))


@jit.once
def laid_out():
    """loop(first, last, values, tiny, of_zeros, target): panels first ... last - 1 of all products of an aligned unit's operand.

    values is (products, k, n), target (products, 2, panels, k, size), filled up with zeros: numbers, and their powers of two, a
    subnormal's `tiny`, a zero's `of_zeros`, none for what is not finite.
    """

    def laid_out_loop(first, last, values, tiny, of_zeros, target):
        panels, length, size = target.shape[2], target.shape[3], target.shape[4]
        for number in range(first, last):
            product = number // panels
            panel = number - product * panels
            numbers, powers = target[product, 0, panel], target[product, 1, panel]
            start = panel * size
            count = min(size, values.shape[2] - start)
            for k in range(length):
                for n in range(count):
                    x = values[product, k, start + n]
                    power = bits_float(float_bits(x) & np.int64(EXPONENT64), 1.0)
                    power = 0.0 if power == np.inf else max(power, tiny)
                    numbers[k, n] = x
                    powers[k, n] = of_zeros if x == 0.0 else power
                for n in range(count, size):
                    numbers[k, n] = 0.0
                    powers[k, n] = 0.0

    return jit.compiled(laid_out_loop)


@jit.once
def scaled_laid_out():
    """loop(first, last, codes, scales, places, elements, of_scales, of_nothing, target, spans): panels first ... last - 1 of codes with scales.

    `codes` and `scales` are flat; `places`: products that have codes, codes side by side, how far it is from one code to the next
    down k and across, the same of scales, products of a block and how many of its rows stand side by side, and products with what
    fills a block up. `elements` and `of_scales` have for each code what it stands for, and its power of two. target is
    (2, panels, k, size): numbers times scales, and powers times powers; beyond the last code zeros, whose powers are `of_nothing`
    where they fill a block up, and else 0.
    `spans`: of each panel's lanes the least magnitude but zero and the largest, as bits.
    """

    def scaled_laid_out_loop(first, last, codes, scales, places, elements, of_scales, of_nothing, target, spans):
        size, products, wide, filled = target.shape[3], places[0], places[1], places[8]
        values, powers = elements[0], elements[1]
        shared, lead = np.empty(size), np.empty(size)
        for panel in range(first, last):
            numbers, exponents = target[0, panel], target[1, panel]
            least, greatest = spans[0, panel], spans[1, panel]
            start = panel * size
            count = min(size, wide - start)
            for n in range(size):
                least[n], greatest[n] = EVERY_MAGNITUDE, 0
            for top in range(0, products, places[6]):
                for n in range(count):
                    scale = scales[top // places[6] * places[4] + (start + n) // places[7] * places[5]]
                    shared[n], lead[n] = of_scales[0, scale], of_scales[1, scale]
                for k in range(top, min(top + places[6], products)):
                    row, of_row = numbers[k], exponents[k]
                    at = k * places[2] + start * places[3]
                    for n in range(count):
                        code = codes[at + n * places[3]]
                        row[n] = values[code] * shared[n]
                        of_row[n] = powers[code] * lead[n]
                    for n in range(count, size):
                        row[n], of_row[n] = 0.0, 0.0
                    for n in range(size):
                        magnitude = float_bits(row[n]) & np.int64(EVERY_MAGNITUDE)
                        greatest[n] = max(greatest[n], magnitude)
                        least[n] = min(least[n], magnitude if magnitude != 0 else np.int64(EVERY_MAGNITUDE))
            for k in range(products, target.shape[2]):
                for n in range(size):
                    numbers[k, n] = 0.0
                    exponents[k, n] = of_nothing if (k < filled) & (n < count) else 0.0

    return jit.compiled(scaled_laid_out_loop)
