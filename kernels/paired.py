"""Outputs in a line: dot products whose operands are their own, in tiles whose rows have nothing to do with each other.

The tiles of `tiles` share: a number of a for a whole row, a vector of b for a whole column. Sums along an axis, dot products one
by one, matrices times vectors and depthwise convolutions have no such grid. Here a tile is a stretch of outputs; every row
takes a vector of a, and one of b, or where all outputs share b, one number. The steps are those of `tiles`.

Operands are read by `gathered.gather`, some of k and some of the outputs at a time.
"""

from functools import cache

import numpy as np
from llvmlite import ir

from . import jit
from .accumulate import (
    RUNNING,
    bin_row,
    carry_row,
    collect_row,
    draw_row,
    round_drawn_projected_row,
    round_drawn_row,
)
from .gathered import TURNS
from .jit import copy_row, fill_row, flat, kernel, row, viewed
from .lanes import Tile, tile
from .one_by_one import STEPS, note_inexact, rounded_sum, single_sum
from .rounding import target_of
from .steps import (
    INEXACT,
    OVERFLOW,
    SLOTS,
    UNDERFLOW,
    VALUE,
    Numbers,
)
from .tiles import WATCH
from .vectors import LANES, ROWS, load


class Paired(Tile):
    """Both operands are vectors, of each row."""

    reading = ""

    def _vector(self, pointers, row, product, plane):
        where = self._at(self.rows * self.lanes * self.block, product * self.rows * self.lanes, row, self.lanes)
        vector = load(self.builder, pointers[plane], where, pointers[plane].type.pointee, self.lanes)
        return vector if vector.is_float else vector.singles(self.reading)

    def a(self, row, product=0, plane=0):
        """The numbers of a row for a product of the block."""
        return self._vector(self._a, row, product, plane)

    def b(self, product=0, plane=0):
        """Those of the other operand."""
        return self._vector(self._b, self.row, product, plane)

    def keep(self, slot, vector):
        """A state after this turn, in place of noise."""
        where = self._at(SLOTS * self.rows * self.lanes, slot * self.rows * self.lanes, self.row, self.lanes)
        value = vector.floats().value
        pointer = self.builder.bitcast(self.builder.gep(self._noise, [where]), value.type.as_pointer())
        self.builder.store(value, pointer, align=4)


class Shared(Paired):
    """The second operand is one number for all outputs."""

    def _number(self, pointers, product, plane):
        where = self._at(self.block, product)
        return self._splat(self.builder.load(self.builder.gep(pointers[plane], [where])))

    def b(self, product=0, plane=0):
        """The number for a product of the block, in every lane."""
        return self._number(self._b, product, plane)


class Lone(Shared):
    """There is one output, in every lane."""

    def a(self, row, product=0, plane=0):
        """The number for a product of the block, in every lane."""
        return self._number(self._a, product, plane)

    def keep(self, slot, vector):
        """A state after this turn, of one lane."""
        where = self.builder.gep(self._noise, [self._at(SLOTS, slot)])
        self.builder.store(self.builder.extract_element(vector.floats().value, ir.Constant(ir.IntType(32), 0)), where)


LAYOUTS = {"paired": Paired, "shared": Shared, "lone": Lone}


@cache
def laid(layout, reading):
    """The layout whose panels hold codes, "half" or "bfloat16", which are read at each turn: half as many bytes. Or numbers, with ""."""
    kind = LAYOUTS[layout]
    return type(f"{kind.__name__}_{reading}", (kind,), {"reading": reading}) if reading else kind


LONE_LANES = 4
"""Of the smallest vector that CPUs have."""


def recording(step):
    """A step that keeps the state after every turn."""

    def recorded(tile, row, state):
        state = step(tile, row, state)
        for slot, vector in state.items():
            tile.keep(slot, vector)
        if INEXACT not in state:  # nobody looks where all outputs have it
            tile.keep(INEXACT, state[VALUE].bits() | 1)
        return state

    return recorded


def add_step(manner, watchful):
    """A number that the format has, added: a product with 1. Sums that are tiny are exact."""
    single = manner.family.startswith("float32")

    def step(tile, row, state):
        c, term = state[VALUE], tile.a(row)
        if not single:
            state[VALUE] = rounded_sum(tile, c, term, state, manner, watchful)
            return state
        state[VALUE], lost = single_sum(tile, term, c, manner)
        if watchful:
            note_inexact(state, lost)
        return state

    return step


@row
def all_inexact(happened, cells):
    """Whether nothing is left to watch for."""
    slot = happened[INEXACT * cells : (INEXACT + 1) * cells]
    exact = 0
    for cell in range(slot.size):
        exact += 1 if slot[cell] == 0 else 0
    return exact == 0


@kernel
def flags_of(value, inexact, underflow, overflow, nan_flags):
    """An output's flags from its state at the end."""
    flags = 1 if inexact != 0 else 0
    flags |= 3 if underflow != 0 else 0
    flags |= 5 if (overflow != 0) | (abs(value) == np.inf) else 0
    return flags | nan_flags if value != value else flags


@jit.once
def chain(kind, carrier, layout, reading, records, manner):
    """loop(state, a, b, kept, numbers): further products for every panel's outputs.

    `kind` is an operation of STEPS, or "add", which takes a alone. In the layout "paired", a and b are (1, panels, k, cells); "shared", b is
    (1, 1, k, 1); "lone", both are. `reading`: as `laid` says. state is (panels, SLOTS * cells). `records`: what it is after every product goes
    to kept, (k, SLOTS * cells) of zeros, or (k, SLOTS) if "lone"; there is one panel then.
    """
    rows, lanes = (1, LONE_LANES) if layout == "lone" else (ROWS, LANES[carrier])
    make = add_step if kind == "add" else STEPS[kind, manner.family]
    wrap = recording if records else lambda step: step
    watchful, brief = (
        tile(
            ("paired", kind, manner, watches, records), wrap(make(manner, watches)), carrier,
            (VALUE, *((INEXACT,) if watches else ()), *manner.slots), Numbers._fields,
            kind=laid(layout, reading), rows=rows, lanes=lanes,
        )
        for watches in (True, False)
    )  # fmt: skip
    integer = np.int32 if carrier is np.float32 else np.int64
    cells = rows * lanes
    a_cells, b_cells = 1 if layout == "lone" else cells, cells if layout == "paired" else 1
    kept_cells = SLOTS * a_cells if records else 0

    def chain_loop(state, a, b, kept, numbers):
        turns = a.shape[2]
        flat_a, flat_b, flat_kept = flat(a), flat(b), flat(kept)
        for panel in range(state.shape[0]):
            mine = state[panel]
            happened = viewed(mine, integer)
            a_at = panel * turns * a_cells
            b_at = panel * turns * b_cells if b_cells > 1 else 0
            kept_at = panel * turns * kept_cells
            done = 0
            while done < turns:
                count = turns - done
                known = flat_kept[kept_at + done * kept_cells :]
                if all_inexact(happened, cells):
                    brief(flat_a, a_at, 0, flat_b, b_at, 0, known, mine, numbers, count)
                else:
                    count = min(WATCH, count)
                    watchful(flat_a, a_at, 0, flat_b, b_at, 0, known, mine, numbers, count)
                done += count
                a_at += count * a_cells
                b_at += count * b_cells

    return jit.compiled(chain_loop)


@jit.once
def settle(carrier, slots=SLOTS):
    """loop(state, values, flags, nan_flags): outputs of all panels, (panels, cells or fewer), and their flags. A state has so many slots."""
    integer = np.int32 if carrier is np.float32 else np.int64

    def settle_loop(state, values, flags, nan_flags):
        cells = state.shape[1] // slots
        sums = flat(state)
        happened = viewed(sums, integer)
        width = values.shape[1]
        results, raised = flat(values), flat(flags)
        # of few outputs and many panels, the loop over panels inside
        outer, inner = (width, state.shape[0]) if width < TURNS else (state.shape[0], width)
        steps = (1, slots * cells, 1, width) if width < TURNS else (slots * cells, 1, width, 1)
        for i in range(outer):
            for j in range(inner):
                first, place = i * steps[0] + j * steps[1], i * steps[2] + j * steps[3]
                value = sums[first]
                inexact, underflow = happened[first + INEXACT * cells], happened[first + UNDERFLOW * cells]
                results[place] = value
                raised[place] = flags_of(value, inexact, underflow, happened[first + OVERFLOW * cells], nan_flags)

    return jit.compiled(settle_loop)


OUTPUTS = 64  # of a row, collected side by side


@jit.once
def collected():
    """loop(terms, magics, values, ints, floats): exact sums of terms, (terms, outputs), as they are to be rounded."""

    def collected_loop(terms, magics, values, ints, floats):
        bins = np.empty((magics.size, OUTPUTS))
        term, errors, numbers = np.empty(OUTPUTS), np.empty(OUTPUTS), np.ones(OUTPUTS)
        flags = np.zeros(OUTPUTS, np.int64)
        for start in range(0, values.size, OUTPUTS):
            width = min(OUTPUTS, values.size - start)
            sums = bins[:, :width]
            for b in range(magics.size):
                for j in range(width):
                    bins[b, j] = 0.0
            for n in range(terms.shape[0]):
                for j in range(width):
                    term[j] = terms[n, start + j]
                bin_row(sums, term[:width], magics)
            carry_row(sums, magics)
            running = values[start : start + width]
            collect_row(running, sums, errors[:width], numbers[:width], flags[:width], ints, floats)

    return jit.compiled(collected_loop)


@jit.once
def collected_drawn():
    """loop(first, last, terms, magics, codes, flags, ints, floats, index, row_stride, column_stride, step, width, key, stream).

    The same of a grid of outputs, rounded stochastically: terms (terms, rows, columns) become codes and flags of the stage RUNNING,
    which has done `step` roundings before. Unit u is OUTPUTS columns of a row.
    """

    def collected_drawn_loop(
        first, last, terms, magics, codes, flags, ints, floats, index, row_stride, column_stride, step, width, key, stream
    ):  # fmt: skip
        work = np.empty((magics.size + 1, OUTPUTS))  # before the parts of a sum, what is rounded
        term, errors, numbers = np.empty(OUTPUTS), np.empty(OUTPUTS), np.ones(OUTPUTS)
        sums, uniforms = np.empty(OUTPUTS), np.empty(OUTPUTS)
        found, raised, seen = np.empty(OUTPUTS, np.int64), np.empty(OUTPUTS, np.int64), np.empty(OUTPUTS, np.int64)
        projected, parts = target_of(ints, floats).projected, magics.size + 1
        per_row = (codes.shape[1] + OUTPUTS - 1) // OUTPUTS
        for unit in range(first, last):
            i, start = unit // per_row, unit % per_row * OUTPUTS
            count = min(OUTPUTS, codes.shape[1] - start)
            room, running, happened = work[:, :count], sums[:count], seen[:count]
            bins, some = room[1:], term[:count]
            for b in range(magics.size):
                fill_row(bins[b], 0.0)
            for n in range(terms.shape[0]):
                copy_row(some, terms[n, i, start : start + count])
                bin_row(bins, some, magics)
            carry_row(bins, magics)
            fill_row(happened, 0)
            collect_row(running, bins, errors[:count], numbers[:count], happened, ints, floats)
            random, rounded_to, by_rounding = uniforms[:count], found[:count], raised[:count]
            corner = index + i * row_stride + start * column_stride
            draw_row(random, corner, column_stride, RUNNING, step, key, stream, width)
            if projected:
                round_drawn_projected_row(running, room, 1, parts, random, rounded_to, by_rounding, ints, floats)
            else:
                round_drawn_row(running, room, 1, parts, random, rounded_to, by_rounding, ints, floats)
            for j in range(count):
                codes[i, start + j] = rounded_to[j]
                flags[i, start + j] = by_rounding[j] | happened[j]

    return jit.compiled(collected_drawn_loop)
