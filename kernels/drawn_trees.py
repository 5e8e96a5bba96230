"""Sums in pairs, rounded stochastically: tiles of 8 rows by a vector of columns, a row at a time.

Eight products and the seven additions that join them are one piece of code; what a row's subtrees add up to meets the subtrees
before it on a stack. The steps are those of `quick_steps` and `steps`: what a quick one may have rounded otherwise is done again by the
careful one, and what 16 random bits leave open by the plain functions on the wide carrier, an output at a time. Additions may be counted.

Roundings of an output take the random numbers of their stage in turn. Additions come in the order in which leaves complete subtrees.
Noise is a block for products, and a ring of two for additions, small enough for the CPU's nearest cache.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import jit
from .accumulate import PRODUCT, RUNNING
from .carrier import source_of
from .counting_steps import count, counted_addition, drawn_counted_sum
from .jit import copy_row, fill_row, flat, row, scratch, viewed
from .lanes import Operands, Tile
from .noise import filling
from .one_by_one import note_inexact, product_to_draw, settling
from .quick_steps import (
    AROUND,
    draw_went_wrong,
    drawn_from,
    drawn_manner,
    drawn_product,
    drawn_watches,
    quick_settling,
    quickly_drawn,
    watch_subnormal,
)
from .redrawn import flushed, product_again, sum_again
from .rounding import target_of
from .steps import (
    COUNT_BITS,
    COUNTED_SLOTS,
    COUNTS,
    GREATEST,
    INEXACT,
    LEAST,
    LEFT_OPEN,
    ONE,
    OVERFLOW,
    OVERFLOWED,
    SLOTS,
    SMALLEST,
    UNDERFLOW,
    VALUE,
    Manner,
    Numbers,
    drawn,
    exact_product,
    exact_sum,
    in_pairs,
    random_number,
    sum_and_error,
    without_subnormals,
)
from .tiles import begin_counting, count_again, take_counts, tell, tile_of
from .vectors import LANES, ROWS, STEPS_OF_A_BLOCK, Vector, load, named

GROUP = STEPS_OF_A_BLOCK
"""Leaves whose roundings take one block of random numbers, and whose sum is one piece of code."""
SAVED = SMALLEST
"""The slot of what stood in VALUE before a row was done again."""
COLUMNS = LANES[np.float32]
CELLS = ROWS * COLUMNS
RING = 2 * GROUP
"""Turns of the noise of additions, after those of products."""
DEEPEST = 40
"""Levels of a stack of subtrees: so many leaves as fill more do not fit into memory."""
COUNTABLE = (1 << COUNT_BITS[32]) - GROUP - 2 * DEEPEST
"""Products and additions after which counts in one word are taken, before another turn and the subtrees that it completes."""
_INDEX = ir.IntType(64)


class Row(Tile):
    """One row of a tile, whose number is known when code runs. Noise counts planes of whole tiles: of products, then from GROUP on of
    additions, from the ring's turn `at` on."""

    at = first = None

    def a(self, row, product=0, plane=0):
        """The number of the row for a leaf."""
        where = self.builder.add(self._k, ir.Constant(_INDEX, product * ROWS))
        return self._splat(self.builder.load(self.builder.gep(self._a[plane], [where])))

    def b(self, product=0, plane=0):
        """The numbers of the columns for a leaf."""
        where = ir.Constant(_INDEX, product * self.lanes)
        return load(self.builder, self._b[plane], where, self._b[plane].type.pointee, self.lanes)

    def of_row(self, pointer, plane):
        """The row's vector in this plane of an array of whole tiles."""
        where = self._at(self.lanes, plane * ROWS * self.lanes)
        return load(self.builder, pointer, where, pointer.type.pointee, self.lanes)

    def noise(self, row, plane=0):
        """Random bits of the row."""
        builder, step = self.builder, ir.Constant(_INDEX, plane % GROUP)
        if plane < GROUP:
            turn = builder.add(self.first, step)
        else:
            turn = builder.and_(builder.add(self.at, step), ir.Constant(_INDEX, RING - 1))
            turn = builder.add(turn, ir.Constant(_INDEX, GROUP))
        where = builder.add(self._at(self.lanes, 0), builder.mul(turn, ir.Constant(_INDEX, CELLS)))
        return load(builder, self._noise, where, self._noise.type.pointee, self.lanes)


class OwnRow(Row):
    """The same where every output has operands of its own."""

    def a(self, row, product=0, plane=0):
        """The numbers of the row for a leaf."""
        return self.of_row(self._a[plane], product)

    def b(self, product=0, plane=0):
        """Those of the other operand."""
        return self.of_row(self._b[plane], product)


ROW_KINDS = {"grid": Row, "own": OwnRow}


# -- steps -----------------------------------------------------------------------------------------------------------


def quick_subtree_step(leaves, family, options, ones, counts):
    """Leaves, and the additions of their subtree, by the CPU's float32 and random bits."""

    def step(tile, row, state):
        def leaf(place):
            if ones:
                return tile.a(row, place)
            if family == "float32":
                return quick_single_product(tile, row, place, state, options, counts)
            product, where = quick_product(tile, tile.a(row, place), tile.b(place), options, counts)
            term = quickly_drawn(tile, product, tile.noise(row, place).bits(), state, family, False, where)
            if counts:
                count(state, {INEXACT: term.apart_from(product)})
            return term

        def joined(x, y, number):
            return quick_sum(tile, x, y, tile.noise(row, GROUP + number).bits(), state, family, counts)

        state[VALUE] = in_pairs(leaves, leaf, joined)
        return state

    return step


def quick_product(tile, a, b, options, counts):
    """As `drawn_product`; a wide one to odd where additions are counted, for it says what is inexact."""
    if options.wide and counts:
        return exact_product(tile, a, b, options), AROUND
    return drawn_product(tile, a, b, options.wide)


def quick_single_product(tile, row, place, state, options, counts):
    """A product in float32: exact, or rounded by random bits."""
    product, lost = product_to_draw(tile.a(row, place), tile.b(place), options)
    if lost is None:
        return product
    if counts:
        count(state, {INEXACT: lost.nonzero()})
    return quick_settling(tile, state, True)(product, lost, random_number(tile, row, place))


def quick_sum(tile, x, y, noise, state, family, counts):
    """A sum by the CPU, toward zero if it can, and random bits; to odd where additions are counted, for it says what is inexact."""
    if family == "float32":
        s, error = sum_and_error(x, y)
        after = quick_settling(tile, state, True)(s, error, (noise << 7 | ONE).floats())
        if counts:
            counted_addition(state, None, x, error.nonzero(), after)
        return after
    if counts:
        s = exact_sum(tile, y, x, Manner(family))
        after = quickly_drawn(tile, s, noise, state, family, False, AROUND)
        counted_addition(state, None, x, after.apart_from(s), after)
        return after
    s = x.plus_toward("zero", y) if tile.directed else x + y
    return quickly_drawn(tile, s, noise, state, family, False, drawn_from(tile))


def quick_join_step(family, options, counts):
    """What stands in VALUE and a subtree before it, quickly."""
    manner = drawn_manner(family, options)

    def step(tile, row, state):
        for x in (tile.b(), state[VALUE]):  # which were watched if they came quickly, and may come otherwise
            watch_subnormal(tile, x, state, manner)
        noise = tile.noise(row, GROUP).bits()
        state[VALUE] = quick_sum(tile, tile.b(), state[VALUE], noise, state, family, counts)
        return state

    return step


def single_of(tile, s, error, noise, state):
    """s + error in float32 as far as 16 random bits go; what is inexact is noted."""
    note_inexact(state, error.nonzero())
    return settling(tile, state, True)(s, error, noise)


def drawn_sum(tile, x, y, noise, state, family, options, counts):
    """A sum as far as 16 random bits go."""
    if family == "float32":
        s, error = sum_and_error(x, y)
        after = single_of(tile, s, error, noise, state)
        if counts:
            counted_addition(state, None, x, error.nonzero(), after)
        return after
    x, y = (without_subnormals(tile, z, options) for z in (x, y))
    if counts:
        return drawn_counted_sum(tile, x, y, noise, state, options)
    s, error = sum_and_error(x, y)
    return drawn(tile, s, error, noise, state, options, True)


def subtree_step(leaves, family, options, ones, counts):
    """Leaves, and the additions of their subtree, as far as 16 random bits go."""

    def step(tile, row, state):
        def leaf(place):
            if ones:
                return tile.a(row, place)
            product, lost = product_to_draw(tile.a(row, place), tile.b(place), options)
            if family == "float32":
                noise = random_number(tile, row, place)
                return product if lost is None else single_of(tile, product, lost, noise, state)
            return drawn(tile, product, lost, random_number(tile, row, place), state, options, True)

        def joined(x, y, number):
            return drawn_sum(tile, x, y, random_number(tile, row, GROUP + number), state, family, options, counts)

        state[VALUE] = in_pairs(leaves, leaf, joined)
        return state

    return step


def join_step(family, options, counts):
    """What stands in VALUE and a subtree before it, as far as 16 random bits go."""

    def step(tile, row, state):
        noise = random_number(tile, row, GROUP)
        state[VALUE] = drawn_sum(tile, tile.b(), state[VALUE], noise, state, family, options, counts)
        return state

    return step


def rows_of(name, kind, carried, noted, careful, quick, fails, watched):
    """function(a, a_at, first, b, b_at, watch, noise, state, numbers, at) -> rows of which an output was left open, as bits.

    Noise of products is taken from turn `first` on, of additions from number `at` on. Each row by the quick step, and where it
    fails(tile, state), or all are to be watched, by the careful one. Both see and make slots `carried`, of which VALUE is the
    result's; of rows done with care SAVED has what stood there, and `noted` slots what has happened; to outputs left open, nothing,
    and what else is carried stays for these.
    """
    lanes = COLUMNS

    @intrinsic
    def run(context, a, a_at, first, b, b_at, watch, noise, state, numbers, at):
        signature = types.int64(a, a_at, first, b, b_at, watch, noise, state, numbers, at)
        assert a.dtype == b.dtype == noise.dtype == state.dtype == numbers.dtype == types.float32

        def codegen(context, builder, signature, arguments):
            operands = Operands(
                context, builder, signature, arguments, np.float32, Numbers._fields, 1, 1, kind, 1, lanes
            )
            from_product, from_sum = operands.index(2), operands.index(9)
            watches = builder.icmp_signed("!=", operands.index(5), ir.Constant(_INDEX, 0))
            kept = operands.data(7)
            vector = ir.VectorType(ir.FloatType(), lanes)
            nothing = Vector(builder, ir.Constant(vector, None))
            ones = builder.bitcast(ir.Constant(ir.VectorType(ir.IntType(32), lanes), [-1] * lanes), vector)
            none, one = ir.Constant(_INDEX, 0), ir.Constant(_INDEX, 1)

            def place(k, slot):
                where = builder.add(builder.mul(k, ir.Constant(_INDEX, lanes)), ir.Constant(_INDEX, slot * CELLS))
                return builder.bitcast(builder.gep(kept, [where]), vector.as_pointer())

            def turn_of(k):
                turn = operands.turn(k)
                turn.first, turn.at = from_product, from_sum
                return turn

            def put(k, slot, x):
                builder.store(x.floats().value, place(k, slot)).align = 4

            entry = builder.block
            loop, repair, on, done = (
                builder.function.append_basic_block(part) for part in ("row", "repair", "on", "done")
            )
            builder.branch(loop)
            builder.position_at_end(loop)
            k, mask = builder.phi(_INDEX), builder.phi(_INDEX)
            turn = turn_of(k)
            before = {slot: Vector(builder, builder.load(place(k, slot), align=4)) for slot in carried}
            made = quick(turn, 0, before | {slot: Vector(builder, ones) for slot in watched})
            for slot in carried:
                put(k, slot, made[slot])
            failed = fails(turn, {slot: made[slot].floats() for slot in watched})
            builder.cbranch(builder.or_(failed, watches), repair, on).set_weights([1, 100])
            stood = builder.block
            builder.position_at_end(repair)
            put(k, SAVED, before[VALUE])
            found = careful(turn_of(k), 0, before | dict.fromkeys(noted, nothing))
            put(k, VALUE, found[VALUE])
            put(k, LEFT_OPEN, found[LEFT_OPEN])
            is_open = found[LEFT_OPEN].bits() < 0
            for slot in carried:
                if slot != VALUE:
                    put(k, slot, is_open.choose(before[slot].bits(), found[slot].bits()))
            for slot in noted:
                if slot != LEFT_OPEN:
                    so_far = Vector(builder, builder.load(place(k, slot), align=4)).bits()
                    put(k, slot, so_far | is_open.choose(0, found[slot].bits()))
            more = builder.or_(mask, builder.shl(builder.zext(is_open.anywhere(), _INDEX), k))
            builder.branch(on)
            repaired = builder.block
            builder.position_at_end(on)
            total = builder.phi(_INDEX)
            total.add_incoming(more, repaired)
            total.add_incoming(mask, stood)
            following = builder.add(k, one)
            for joined, first, value in ((k, none, following), (mask, none, total)):
                joined.add_incoming(first, entry)
                joined.add_incoming(value, on)
            builder.cbranch(builder.icmp_signed("<", following, ir.Constant(_INDEX, ROWS)), loop, done)
            builder.position_at_end(done)
            return total

        return signature, codegen

    return named(run, (name, kind.__name__, carried, noted, watched))


# -- what random bits leave open -------------------------------------------------------------------------------------


@row
def read(x, daz, target):
    """A number that a sum reads."""
    return flushed(x, target) if daz else x


@row
def subtree_again(
    x, y, ones, daz, of_nan, counted, cell, noise, turn, branch, output, product, step, ints, floats, width, key, stream
):  # fmt: skip
    """(value, flags) of a subtree of leaves x * y, or x, which sums read as `daz` says.

    `noise` is an output's, of products from a turn on; `branch` is room. Additions are counted in a tile's state for its cell, if `counted`
    is one.
    """
    jit.stand_alone()
    source, target = source_of(ints, floats), target_of(ints, floats)
    top, seen, additions = 0, 0, 0
    for leaf in range(x.size):
        branch[top] = x[leaf]
        if not ones:
            branch[top], raised = product_again(
                x[leaf] * y[leaf], noise[turn + leaf], output, product + leaf, source, target, width, key, stream
            )
            seen |= raised
        place = leaf
        while place & 1:
            top -= 1
            number = step + additions
            first, second = read(branch[top], daz, target), read(branch[top + 1], daz, target)
            branch[top], raised = sum_again(
                first, second, noise[GROUP + number % RING], output, number, source, target, width, key, stream
            )  # fmt: skip
            seen |= raised
            if counted.size:
                after = read(branch[top], daz, target)
                count_again(counted, viewed(counted, np.int32), CELLS, cell, first, second, after, raised, of_nan)
            additions += 1
            place >>= 1
        top += 1
    return branch[0], seen


@row
def joined_again(x, y, daz, of_nan, counted, cell, noise, output, step, ints, floats, width, key, stream):
    """(value, flags) of a sum of two subtrees; counted alike."""
    jit.stand_alone()
    source, target = source_of(ints, floats), target_of(ints, floats)
    x, y = read(np.float64(x), daz, target), read(np.float64(y), daz, target)
    total, raised = sum_again(x, y, noise, output, step, source, target, width, key, stream)
    if counted.size:
        after = read(total, daz, target)
        count_again(counted, viewed(counted, np.int32), CELLS, cell, x, y, after, raised, of_nan)
    return total, raised


@row
def happened_to(happened, cell):
    """Flags of what careful steps have noted."""
    flags = 1 if happened[INEXACT * CELLS + cell] != 0 else 0
    flags |= 3 if happened[UNDERFLOW * CELLS + cell] != 0 else 0
    return flags | (5 if happened[OVERFLOW * CELLS + cell] != 0 else 0)


fill_noise = filling(np.float32)


@row
def more_noise(pairs, turn, site, block, corner, row_stride, column_stride, width, key, stream):
    """Random bits of eight turns, to noise from this turn on."""
    jit.stand_alone()
    fill_noise(pairs, turn * (CELLS // 2), site, block, corner, row_stride, column_stride, width, key, stream)


@row
def all_inexact(seen, happened):
    """Whether every output of a tile is inexact."""
    exact = 0
    for cell in range(seen.size):
        exact += 1 if (seen[cell] & 1 == 0) & (happened[INEXACT * CELLS + cell] == 0) else 0
    return exact == 0


@row
def finished(state, happened, seen, values, flags, place, wide, nan_flags):
    """Outputs of a tile, and their flags."""
    for row_ in range(ROWS):
        for lane in range(COLUMNS):
            cell = row_ * COLUMNS + lane
            value, raised = state[cell], seen[cell] | happened_to(happened, cell)
            raised |= 5 if abs(value) == np.inf else 0
            raised |= nan_flags if value != value else 0
            values[place + row_ * wide + lane] = value
            flags[place + row_ * wide + lane] = raised


# -- the loop --------------------------------------------------------------------------------------------------------


@jit.once
def drawn_tree(layout, family, options, ones, counts):
    """loop(first, last, a, b, c, has_c, values, flags, numbers, nan_flags, rows, columns, counted, extremes, ints, floats,
    index, row_stride, column_stride, width, key, stream) over tiles first ... last - 1.

    As `drawn_tiles.stochastic`, for products added in pairs, k of them; with `ones` for numbers of the format, without products. `options`
    are Draws that look for overflows. In the layout "own" every output has operands of its own: a and b are (1, tiles, k, cells), b
    may be a itself. c, values and flags are of whole tiles. Where the loop `counts`, counted (3, ...) and extremes (2, ...) are filled, as by
    `tiles.counted`; else they may be empty.
    """
    lanes, kind = COLUMNS, ROW_KINDS[layout]
    noted, daz, of_nan = (INEXACT, *options.slots), options.daz, options.of_nan
    carried = (VALUE, *(COUNTS, LEAST, GREATEST, OVERFLOWED) * counts)
    watched = drawn_watches(family, False)
    fails = draw_went_wrong(family, False, (lambda _: AROUND) if counts else drawn_from)
    name = "drawn tree", family, options, ones, counts
    leaves_of_row, leaf_of_row = (
        rows_of(
            (name, leaves), kind, carried, noted, subtree_step(leaves, family, options, ones, counts),
            quick_subtree_step(leaves, family, options, ones, counts), fails, watched,
        )
        for leaves in (GROUP, 1)
    )  # fmt: skip
    join = rows_of(
        (name, "join"), OwnRow, carried, noted, join_step(family, options, counts), quick_join_step(family, options, counts),
        fails, watched,
    )  # fmt: skip
    own = layout == "own"
    a_row, b_row, a_lane, b_lane = (lanes, lanes, 1, 1) if own else (1, 0, 0, 1)
    a_leaf, b_leaf = (CELLS, CELLS) if own else (ROWS, lanes)
    turns_of_noise = GROUP + RING
    slots = COUNTED_SLOTS if counts else SLOTS
    state_size = slots * CELLS
    room_size, counted_size = (turns_of_noise + slots + DEEPEST) * CELLS, state_size if counts else 0

    def drawn_tree_loop(
        first, last, a, b, c, has_c, values, flags, numbers, nan_flags, rows, columns, counted, extremes, ints, floats,
        index, row_stride, column_stride, width, key, stream,
    ):  # fmt: skip
        panels, across, length = a.shape[1], 1 if own else b.shape[1], a.shape[2]
        flat_a, flat_b, flat_c = flat(a), flat(b), flat(c)
        flat_values, flat_flags, wide = flat(values), flat(flags), c.shape[1]
        a_panel = a.size // panels * a.itemsize
        # in one piece: a row's vectors of all these then differ in the address bits by which the CPU tells stores from loads
        room = scratch(room_size, np.float32)
        noise, rest = room[: turns_of_noise * CELLS], room[turns_of_noise * CELLS :]
        state, stack = rest[:state_size], rest[state_size:]
        noting = state[:counted_size]
        happened = viewed(state, np.int32)
        pairs, words = viewed(noise, np.uint64), viewed(noise, np.uint32)
        seen = scratch(CELLS, np.int64)
        x, y, branch = scratch(GROUP, np.float64), scratch(GROUP, np.float64), scratch(4, np.float64)
        whole = length // GROUP
        for unit in range(first, last):
            i, j = (unit, 0) if own else tile_of(unit, panels, across, a_panel)
            a_at, b_at = i * length * a_leaf, (i if own else j) * length * b_leaf
            corner = index + i * ROWS * row_stride + j * lanes * column_stride
            place = i * ROWS * wide + j * lanes
            for cell in range(CELLS):
                row_, lane = cell // lanes, cell % lanes
                seen[cell] = 1 if (i * ROWS + row_ >= rows) | (j * lanes + lane >= columns) else 0
            fill_row(state, 0.0)
            if counts:
                begin_counting(state, CELLS)
            known, level, step, filled, told_of = counts, 0, 0, 0, 0
            turns = whole + length % GROUP + (2 if has_c else 1)
            for turn in range(turns):
                # eight leaves, or one, or what is left on the stack, or c; then the subtrees that this completes
                leaves = GROUP if turn < whole else 1 if turn < whole + length % GROUP else 0
                left = turn - whole
                joins = 0
                if leaves:
                    number = turn if leaves == GROUP else left
                    while number & 1:
                        joins += 1
                        number >>= 1
                elif turn == turns - 1 and has_c:
                    joins = 1
                    for row_ in range(ROWS):
                        for lane in range(lanes):
                            cell = row_ * lanes + lane
                            stack[cell] = state[cell]
                            state[cell] = flat_c[place + row_ * wide + lane]
                    level = 1
                else:
                    level -= 1  # the last subtree stands in VALUE
                    joins = level
                if leaves:
                    first_turn = 0 if leaves == GROUP else left
                    if leaves == GROUP and step + GROUP > filled:
                        at = GROUP + filled % RING
                        more_noise(
                            pairs, at, RUNNING, filled // GROUP, corner, row_stride, column_stride, width, key, stream
                        )
                        filled += GROUP
                    if first_turn == 0 and not ones:
                        more_noise(
                            pairs, 0, PRODUCT, min(turn, whole), corner, row_stride, column_stride, width, key, stream
                        )
                    watch = 0 if known else 1
                    if leaves == GROUP:
                        again = leaves_of_row(flat_a, a_at, 0, flat_b, b_at, watch, noise, state, numbers, step)
                    else:
                        again = leaf_of_row(flat_a, a_at, left, flat_b, b_at, watch, noise, state, numbers, step)
                    for row_ in range(ROWS if again else 0):
                        if not (again >> row_) & 1:
                            continue
                        for lane in range(lanes):
                            cell = row_ * lanes + lane
                            if happened[LEFT_OPEN * CELLS + cell] >= 0:
                                continue
                            for leaf in range(leaves):
                                x[leaf] = flat_a[a_at + leaf * a_leaf + row_ * a_row + lane * a_lane]
                                y[leaf] = flat_b[b_at + leaf * b_leaf + row_ * b_row + lane * b_lane]
                            output = np.uint64(corner + row_ * row_stride + lane * column_stride)
                            product = turn * GROUP if leaves == GROUP else whole * GROUP + left
                            found, raised = subtree_again(
                                x[:leaves], y[:leaves], ones, daz, of_nan, noting, cell, words[cell::CELLS], first_turn,
                                branch, output, product, step, ints, floats, width, key, stream,
                            )  # fmt: skip
                            state[cell] = found
                            seen[cell] |= raised
                    a_at += leaves * a_leaf
                    b_at += leaves * b_leaf
                    step += leaves - 1
                for _ in range(joins):
                    level -= 1
                    if step == filled:
                        at = GROUP + filled % RING
                        more_noise(
                            pairs, at, RUNNING, filled // GROUP, corner, row_stride, column_stride, width, key, stream
                        )
                        filled += GROUP
                    watch = 0 if known else 1
                    again = join(stack, 0, 0, stack, level * CELLS, watch, noise, state, numbers, step)
                    for row_ in range(ROWS if again else 0):
                        if not (again >> row_) & 1:
                            continue
                        for lane in range(lanes):
                            cell = row_ * lanes + lane
                            if happened[LEFT_OPEN * CELLS + cell] >= 0:
                                continue
                            output = np.uint64(corner + row_ * row_stride + lane * column_stride)
                            found, raised = joined_again(
                                stack[level * CELLS + cell], state[SAVED * CELLS + cell], daz, of_nan, noting, cell,
                                words[(GROUP + step % RING) * CELLS + cell], output, step, ints, floats, width, key, stream,
                            )  # fmt: skip
                            state[cell] = found
                            seen[cell] |= raised
                    step += 1
                if leaves:
                    copy_row(stack[level * CELLS : (level + 1) * CELLS], state)
                    level += 1
                    known = known or all_inexact(seen, happened)
                if counts and (step + leaves - told_of > COUNTABLE or turn == turns - 1):
                    take_counts(happened, CELLS, False)
                    told_of = step
            finished(state, happened, seen, flat_values, flat_flags, place, wide, nan_flags)
            if counts:
                tell(state, happened, ROWS, i * ROWS, j, lanes, counted, extremes)

    return jit.compiled(drawn_tree_loop)
