"""Operands as codes, read wherever they lie: numbers in the order of a sum, and what these span.

Codes come some of k and some of the outputs at a time. Whoever calls decides afterwards whether what was read serves.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import jit
from .fast import half_value
from .jit import bits_float, fill_row, flat, float_bits, kernel, row, viewed
from .vectors import named

TURNS = 16  # of k, and of outputs, of a block that is transposed in registers
READ = 2 * TURNS  # turns that are read at a time: a cache line of 16-bit codes


def fetch(builder, pointer):
    """Asks for what is to be read soon: lines far apart, which the CPU does not foresee, for its second cache: many share a place in the first."""
    octets, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [octets, flag, flag, flag])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    reads, stays, data = (ir.Constant(flag, x) for x in (0, 2, 1))
    builder.call(function, [builder.bitcast(pointer, octets), reads, stays, data])


def transposing(turns):
    """function(source, start, stride, target, at, width): so many numbers each from TURNS places of a flat array, `stride` apart, to as
    many stretches of another, `width` apart: riffled four times. `turns` is TURNS or twice that.
    """

    @intrinsic
    def transpose(context, source, start, stride, target, at, width):
        assert source.dtype == target.dtype
        signature = types.void(source, start, stride, target, at, width)

        def codegen(context, builder, signature, arguments):
            def data(number):
                return context.make_array(signature.args[number])(context, builder, arguments[number]).data

            def integer(number):
                return context.cast(builder, arguments[number], signature.args[number], types.int64)

            def place(pointer, where, lanes):
                vector = ir.VectorType(pointer.type.pointee, lanes)
                return builder.bitcast(builder.gep(pointer, [where]), vector.as_pointer())

            def chosen(first, second, lanes):
                places = ir.VectorType(ir.IntType(32), len(lanes))
                return builder.shuffle_vector(first, second, ir.Constant(places, lanes))

            source, target, where, vectors = data(0), data(3), integer(1), []
            for _ in range(TURNS):
                vectors.append(builder.load(place(source, where, turns), align=1))
                fetch(builder, builder.gep(source, [builder.add(where, ir.Constant(where.type, turns))]))
                where = builder.add(where, integer(2))
            low = [lane // 2 + lane % 2 * turns for lane in range(turns)]
            high = [turns // 2 + lane for lane in low]
            for _ in range(TURNS.bit_length() - 1):
                vectors = [
                    chosen(vectors[n // 2], vectors[n // 2 + TURNS // 2], high if n % 2 else low) for n in range(TURNS)
                ]
            where = integer(4)
            for moved in vectors:
                for first in range(0, turns, TURNS):
                    part = moved if turns == TURNS else chosen(moved, moved, list(range(first, first + TURNS)))
                    builder.store(part, place(target, where, TURNS), align=1)
                    where = builder.add(where, integer(5))
            return context.get_dummy_value()

        return signature, codegen

    return named(transpose, ("transpose", turns))


transpose, transpose_line = transposing(TURNS), transposing(READ)


@row
def read_turns(codes, block, first, k_step, n_step, index, start, turns, width, cells):
    """Codes of some turns of a panel, to `block`: turn by turn, outputs side by side."""
    if cells == 1 and k_step == 1 and index.size == 0:
        source = codes[first + start : first + start + turns]
        for turn in range(turns):
            block[turn] = source[turn]
        return
    whole, full = width // TURNS * TURNS, 0
    if index.size == 0 and k_step == 1 and n_step != 1:
        full = turns // TURNS * TURNS
        lines = turns // READ * READ
        for lane in range(0, whole, TURNS):
            corner = first + lane * n_step + start
            for turn in range(0, lines, READ):
                transpose_line(codes, corner + turn, n_step, block, turn * cells + lane, cells)
            for turn in range(lines, full, TURNS):
                transpose(codes, corner + turn, n_step, block, turn * cells + lane, cells)
    for turn in range(turns):
        k = max(index[start + turn], 0) if index.size else start + turn
        corner = first + k * k_step
        done = whole if turn < full else 0
        target = block[turn * cells + done : turn * cells + width]
        if n_step == 1:
            source = codes[corner + done : corner + width]
            for lane in range(target.size):
                target[lane] = source[lane]
        else:
            for lane in range(target.size):
                target[lane] = codes[corner + (done + lane) * n_step]


@kernel
def looked_up(table, code):
    """What a code stands for, from a table."""
    return table[code]


@kernel
def half_read(table, code):
    """A half, by the CPU."""
    return half_value(code)


@kernel
def bfloat16_read(table, code):
    """A bfloat16: the upper half of a float32."""
    return bits_float(np.int32(code) << 16, np.float32(0.0))


@kernel
def number_read(table, number):
    """A float32, which needs no reading."""
    return number


READERS = {"table": looked_up, "half": half_read, "bfloat16": bfloat16_read, "number": number_read}
INFINITIES = {"half": np.uint16(0x7C00), "bfloat16": np.uint16(0x7F80)}
"""Formats whose codes are in the order of their magnitudes: of these the span is that of codes, half as wide as numbers or less."""


@row
def span_of_codes(codes, low, high):
    """The least magnitude of codes of 16 bits but 0, less 1, and the greatest, these included."""
    sign, one = np.uint16(0x7FFF), np.uint16(1)
    for place in range(codes.size):
        magnitude = np.uint16(codes[place] & sign)
        low = min(low, np.uint16(magnitude - one))  # that of 0 becomes the largest of all
        high = max(high, magnitude)
    return low, high


@kernel
def magnitude_of(bits):
    """The number of a float32's bits, none of them its sign, in float64. The host may be told to read subnormal numbers as zero."""
    if bits < SINGLE_NORMAL:
        return np.float64(bits) * SINGLE_UNIT
    return np.float64(bits_float(np.int64(bits), np.float32(0.0)))


@kernel
def kept_number(x):
    """A number as it is read."""
    return x


@kernel
def widened(x):
    """A float32 in float64, subnormal ones, too."""
    bits = float_bits(np.float32(x))
    magnitude = bits & np.int32(0x7FFFFFFF)
    tiny = np.float64(magnitude) * SINGLE_UNIT
    return (tiny if bits >= 0 else -tiny) if magnitude < SINGLE_NORMAL else np.float64(x)


SINGLE_NORMAL, SINGLE_UNIT = 0x00800000, 2.0**-149


def panel_number(reading, carrier):
    """What makes a panel's number of one that was read: halves are normal in float32, and what stays float32 is looked through first."""
    return kept_number if carrier is np.float32 or reading == "half" else widened


@cache
def spanning(reading, carrier):
    """Functions that tell what numbers of a carrier span: (span(fields, low, high), told(table, low, high, low_code, high_code)).

    The first finds the least magnitude but 0, less 1, and the greatest, of bits as integers, as `span_of_codes` does; the second
    makes of what either found (least, greatest, finite).
    """
    number = READERS[reading]
    unsigned, fraction = (np.uint32, 23) if carrier is np.float32 else (np.uint64, 52)
    without_sign = unsigned((1 << (8 * unsigned(0).itemsize - 1)) - 1)
    exponent, one = without_sign >> unsigned(fraction) << unsigned(fraction), unsigned(1)
    by_code, infinity = reading in INFINITIES, INFINITIES.get(reading, np.uint16(0))
    like, single = carrier(0.0), carrier is np.float32

    @row
    def span(fields, low, high):
        for place in range(fields.size):
            magnitude = fields[place] & without_sign
            low = min(low, unsigned(magnitude - one))  # that of 0 becomes the largest of all
            high = max(high, magnitude)
        return low, high

    @row
    def told(table, low, high, low_code, high_code):
        if by_code:
            if high_code == np.uint16(0):
                return np.inf, 0.0, True
            least = magnitude_of(float_bits(np.float32(number(table, np.uint16(low_code + np.uint16(1))))))
            greatest = magnitude_of(float_bits(np.float32(number(table, min(high_code, infinity)))))
            return least, greatest, high_code < infinity
        if high == unsigned(0):
            return np.inf, 0.0, True
        if single:
            return magnitude_of(np.int64(low + one)), magnitude_of(np.int64(min(high, exponent))), high < exponent
        return bits_float(np.int64(low + one), like), bits_float(np.int64(min(high, exponent)), like), high < exponent

    parameters = reading, np.dtype(carrier)
    return jit.referable(span, *parameters), jit.referable(told, *parameters)


@jit.once
def gather(reading, carrier):
    """loop(codes, table, first, k_step, n_step, index, start, stop, count, cells, tiny, panels) -> (least, greatest, finite).

    Products start ... stop - 1 of `count` outputs to panels (planes, panels, turns, cells), cells beyond `count` as code 0. The
    code of output n and product k lies at first + k * k_step + n * n_step. `index`: which product comes where, -1 is +0; empty:
    as they are. `reading` is a key of READERS; a table holds what codes stand for. A second plane takes the power of two of
    each number, at least `tiny`; that of 0 is 0. Told are the least and the greatest magnitude but 0, and whether all are finite.
    """
    number, settled = READERS[reading], panel_number(reading, carrier)
    unsigned, width_of_fraction = (np.uint32, 23) if carrier is np.float32 else (np.uint64, 52)
    without_sign = unsigned((1 << (8 * unsigned(0).itemsize - 1)) - 1)
    exponent = without_sign >> unsigned(width_of_fraction) << unsigned(width_of_fraction)
    by_code, (span, told) = reading in INFINITIES, spanning(reading, carrier)

    def gather_loop(codes, table, first, k_step, n_step, index, start, stop, count, cells, tiny, panels):
        planes, length = panels.shape[0], stop - start
        values = flat(panels[0])
        powers = flat(panels[planes - 1])
        bits = viewed(values, unsigned)
        together = READ if cells >= TURNS else TURNS * TURNS
        block = np.zeros(together * cells, codes.dtype)
        low, high = without_sign, unsigned(0)
        low_code, high_code = np.uint16(0xFFFF), np.uint16(0)
        for panel in range((count + cells - 1) // cells):
            width = min(cells, count - panel * cells)
            if width < cells:
                fill_row(block, 0)
            corner = first + panel * cells * n_step
            for done in range(0, length, together):
                turns = min(together, length - done)
                read_turns(codes, block, corner, k_step, n_step, index, start + done, turns, width, cells)
                at = (panel * length + done) * cells
                target = values[at : at + turns * cells]
                for place in range(target.size):
                    target[place] = settled(number(table, block[place]))
                if index.size:
                    for turn in range(turns):
                        if index[start + done + turn] < 0:
                            fill_row(target[turn * cells : (turn + 1) * cells], 0.0)
                own = bits[at : at + turns * cells]
                if by_code:
                    low_code, high_code = span_of_codes(block[: turns * cells], low_code, high_code)
                else:
                    low, high = span(own, low, high)
                if planes > 1:
                    leading = powers[at : at + turns * cells]
                    fields = viewed(leading, unsigned)
                    for place in range(own.size):
                        fields[place] = own[place] & exponent
                    for place in range(own.size):
                        power = leading[place] if leading[place] > tiny else tiny
                        leading[place] = power if target[place] != 0.0 else 0.0
        return told(table, low, high, low_code, high_code)

    return jit.compiled(gather_loop)
