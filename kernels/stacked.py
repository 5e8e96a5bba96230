"""Operands and outputs of many small products on their way into and out of tiles: codes in, codes out, one pass each.

A number of a small product meets few others: what reading it costs counts as much as its sums. Here a panel is read in a
stretch that stays in the CPU's first cache: codes are put where the panel wants them, which is half the bytes or less, and made
numbers there, of which is told what they span.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import jit
from .fast import half_code
from .gathered import INFINITIES, READERS, TURNS, panel_number, span_of_codes, spanning, transposing
from .jit import fill_row, flat, float_bits, kernel, row, scratch, viewed
from .vectors import INDEX, LANES, ROWS, Vector, load, named


def _data(context, builder, signature, arguments, number):
    """The pointer of an array among the arguments of an intrinsic."""
    return context.make_array(signature.args[number])(context, builder, arguments[number]).data


def _vector_at(builder, pointer, where, lanes):
    """A pointer to a vector, from a place of an array on."""
    return builder.bitcast(builder.gep(pointer, [where]), ir.VectorType(pointer.type.pointee, lanes).as_pointer())


def moving(lanes):
    """function(source, start, target, at): so many numbers from one flat array to another."""

    @intrinsic
    def move(context, source, start, target, at):
        assert source.dtype == target.dtype
        signature = types.void(source, start, target, at)

        def codegen(context, builder, signature, arguments):
            pointers = [_data(context, builder, signature, arguments, n) for n in (0, 2)]
            places = [context.cast(builder, arguments[n], signature.args[n], types.int64) for n in (1, 3)]
            loaded = builder.load(_vector_at(builder, pointers[0], places[0], lanes), align=1)
            builder.store(loaded, _vector_at(builder, pointers[1], places[1], lanes), align=1)
            return context.get_dummy_value()

        return signature, codegen

    return named(move, ("move", lanes))


def numbering(reading, lanes):
    """function(codes, start, apart, count, numbers, at, seen): so many vectors of codes, `apart` from one another, to numbers side by side.

    seen, two vectors, has what `span_of_codes` tells of these and of codes before.
    """

    @intrinsic
    def number_codes(context, codes, start, apart, count, numbers, at, seen):
        signature = types.void(codes, start, apart, count, numbers, at, seen)

        def codegen(context, builder, signature, arguments):
            source, target, kept = (_data(context, builder, signature, arguments, n) for n in (0, 4, 6))
            first, step, vectors, place = (
                context.cast(builder, arguments[n], signature.args[n], types.int64) for n in (1, 2, 3, 5)
            )
            spans = [_vector_at(builder, kept, ir.Constant(INDEX, n * lanes), lanes) for n in range(2)]
            before = [builder.load(span, align=2) for span in spans]
            entry = builder.block
            loop, done = (builder.function.append_basic_block(part) for part in ("numbers", "numbers_done"))
            builder.cbranch(builder.icmp_signed(">", vectors, ir.Constant(INDEX, 0)), loop, done)
            builder.position_at_end(loop)
            k = builder.phi(INDEX)
            so_far = [builder.phi(x.type) for x in before]
            found = load(builder, source, builder.add(first, builder.mul(k, step)), ir.IntType(16), lanes)
            behind = builder.add(place, builder.mul(k, ir.Constant(INDEX, lanes)))
            builder.store(found.singles(reading).value, _vector_at(builder, target, behind, lanes), align=4)
            magnitude = found & 0x7FFF
            least, greatest = (Vector(builder, x) for x in so_far)
            after = [(magnitude - 1).at_most(least).value, magnitude.at_least(greatest).value]
            following = builder.add(k, ir.Constant(INDEX, 1))
            for joined, start, value in zip(
                (k, *so_far), (ir.Constant(INDEX, 0), *before), (following, *after), strict=True
            ):
                joined.add_incoming(start, entry)
                joined.add_incoming(value, loop)
            builder.cbranch(builder.icmp_signed("<", following, vectors), loop, done)
            builder.position_at_end(done)
            last = [builder.phi(x.type) for x in before]
            for joined, start, value, span in zip(last, before, after, spans, strict=True):
                joined.add_incoming(start, entry)
                joined.add_incoming(value, loop)
                builder.store(joined, span, align=2)
            return context.get_dummy_value()

        return signature, codegen

    return named(number_codes, ("numbering", reading, lanes))


riffle = transposing(ROWS, TURNS)
"""ROWS stretches of TURNS numbers to TURNS stretches of ROWS."""


@row
def stand(codes, corner, length, block, width):
    """Rows of k to turns of a panel, outputs side by side."""
    done = 0
    if width == ROWS:
        done = length // TURNS * TURNS
        for turn in range(0, done, TURNS):
            riffle(codes, corner + turn, length, block, turn * ROWS, ROWS)
    for turn in range(done, length):
        for output in range(width):
            block[turn * ROWS + output] = codes[corner + output * length + turn]


@jit.once
def laying_out(reading, carrier, planes, stands):
    """loop(codes, table, tiny, of_zeros, panels) -> (least, greatest, finite), a part of other loops.

    Codes of products, (products, k, n), or (products, n, k) if the operand `stands`, go to panels (products, planes, panels, k,
    size), filled up with code 0. `reading` is a key of READERS; a table holds what codes stand for. A second plane takes the
    power of two of each number, at least `tiny`, and `of_zeros` for 0. Told are the least and the greatest magnitude but 0, and
    whether all are finite.
    """
    number, settled = READERS[reading], panel_number(reading, carrier)
    size = ROWS if stands else LANES[carrier]
    unsigned, fraction = (np.uint32, 23) if carrier is np.float32 else (np.uint64, 52)
    without_sign = unsigned((1 << (8 * unsigned(0).itemsize - 1)) - 1)
    exponent = without_sign >> unsigned(fraction) << unsigned(fraction)
    span, told = spanning(reading, carrier)
    by_code = reading in INFINITIES
    at_once = by_code and carrier is np.float32 and planes == 1  # vectors of codes become numbers
    lanes = LANES[np.float32]
    two_vectors = 2 * lanes
    move, number_codes = moving(size), numbering(reading, lanes) if at_once else None

    @row
    def lie(codes, corner, stride, length, block, width):
        for turn in range(length):
            if width == size:
                move(codes, corner + turn * stride, block, turn * size)
            else:
                for output in range(width):
                    block[turn * size + output] = codes[corner + turn * stride + output]

    lie = jit.referable(lie, reading, np.dtype(carrier), planes, stands)

    def laid_out_loop(codes, table, tiny, of_zeros, panels):
        products, across, length = panels.shape[0], panels.shape[2], panels.shape[3]
        count = codes.shape[1] if stands else codes.shape[2]
        flat_codes, numbers = flat(codes), flat(panels)
        fields = viewed(numbers, unsigned)
        stretch = length * size
        block = np.empty(stretch, codes.dtype)
        low, high = without_sign, unsigned(0)
        low_code, high_code = np.uint16(0xFFFF), np.uint16(0)
        seen = scratch(two_vectors, np.uint16)
        for lane in range(lanes):
            seen[lane], seen[lanes + lane] = low_code, high_code
        smallest, nothing = unsigned(float_bits(carrier(tiny))), unsigned(float_bits(carrier(of_zeros)))
        for product in range(products):
            for panel in range(across):
                width = min(size, count - panel * size)
                if width < size:
                    fill_row(block, 0)
                corner = product * count * length
                at, done = (product * planes * across + panel) * stretch, 0
                if at_once and not stands and width == size:
                    number_codes(flat_codes, corner + panel * size, count, length, numbers, at, seen)
                    continue
                if stands:
                    stand(flat_codes, corner + panel * size * length, length, block, width)
                else:
                    lie(flat_codes, corner + panel * size, count, length, block, width)
                if at_once:
                    done = stretch // lanes * lanes
                    number_codes(block, 0, lanes, stretch // lanes, numbers, at, seen)
                target, own = numbers[at : at + stretch], fields[at : at + stretch]
                if planes > 1:
                    beside = at + across * stretch
                    leading = fields[beside : beside + stretch]
                    for place in range(stretch):
                        x = carrier(settled(number(table, block[place])))
                        target[place] = x
                        magnitude = unsigned(float_bits(x)) & without_sign
                        leading[place] = max(magnitude & exponent, smallest) if magnitude else nothing
                else:
                    for place in range(done, stretch):
                        target[place] = settled(number(table, block[place]))
                if by_code:
                    low_code, high_code = span_of_codes(block[done:], low_code, high_code)
                else:
                    low, high = span(own, low, high)
        if at_once:
            for lane in range(lanes):
                low_code, high_code = min(low_code, seen[lane]), max(high_code, seen[lanes + lane])
        return told(table, low, high, low_code, high_code)

    return jit.referable(row(laid_out_loop), reading, np.dtype(carrier), planes, stands)


laid_out = jit.outermost(laying_out)


@kernel
def half_written(x):
    """A half, by the CPU."""
    return half_code(np.float32(x))


@kernel
def bfloat16_written(x):
    """A bfloat16: the upper half of a float32."""
    return np.uint16((float_bits(np.float32(x)) >> 16) & 0xFFFF)


@kernel
def single_written(x):
    """A float32."""
    return np.float32(x)


WRITERS = {"half": half_written, "bfloat16": bfloat16_written, "number": single_written}


BOUNDED, INFINITE, UNKNOWN = range(3)
"""What numbers are at most: finite, infinite, or none at all."""


@jit.once
def coded(writing):
    """loop(values, codes) -> what they are at most: flat values to codes of a format that has them, as long as they are numbers."""
    written = WRITERS[writing]

    def coded_loop(values, codes):
        most = 0
        for n in range(values.size):
            x = values[n]
            codes[n] = written(x)
            most |= BOUNDED if abs(x) < np.inf else INFINITE if x == x else UNKNOWN
        return min(most, UNKNOWN)

    return jit.compiled(coded_loop)


@jit.once
def writing_out(writing):
    """loop(values, raised, codes, flags) -> whether all are finite: as `coded`, of outputs with flags, a part of other loops.

    values and raised are (products, rows, columns), filled up to whole tiles; codes and flags only of the outputs.
    """
    written = WRITERS[writing]

    def out_of_tiles_loop(values, raised, codes, flags):
        products, rows, columns = codes.shape
        unbounded = 0
        for product in range(products):
            for i in range(rows):
                sums, seen = values[product, i], raised[product, i]
                found, told = codes[product, i], flags[product, i]
                for j in range(columns):
                    found[j] = written(sums[j])
                    told[j] = seen[j]
                    unbounded |= 0 if abs(sums[j]) < np.inf else 1
        return unbounded == 0

    return jit.referable(row(out_of_tiles_loop), writing)


out_of_tiles = jit.outermost(writing_out)
