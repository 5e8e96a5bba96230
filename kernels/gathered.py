"""Operands as codes, read wherever they lie: numbers in the order of a sum, and what these span.

Codes come some of k and some of the outputs at a time. Whoever calls decides afterwards whether what was read serves.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import jit
from .fast import half_value
from .jit import bits_float, fill_row, flat, float_bits, kernel, row, viewed
from .vectors import named

TURNS = 16  # of k, and of outputs, of a block that is transposed in registers
READ = 2 * TURNS  # turns that are read at a time: a cache line of 16-bit codes
TOUCHED = 16 * READ  # turns whose memory is gone through in order before: the CPU foresees no lines that lie apart


def transposing(rows, turns):
    """function(source, start, stride, target, at, width): so many numbers each from `rows` places of a flat array, `stride` apart, to as
    many stretches of another, `width` apart.

    Rows are riffled with each other in pieces of 16 bytes, which every CPU does at once; a piece then holds whole stretches, or
    their parts of as many rows as it has numbers.
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
            for _ in range(rows):
                vectors.append(builder.load(place(source, where, turns), align=1))
                where = builder.add(where, integer(2))
            piece = 8 * 16 // signature.args[0].dtype.bitwidth
            together = min(piece, rows)
            corners = range(0, turns, piece)
            low = [first + n // 2 + n % 2 * turns for first in corners for n in range(piece)]
            high = [piece // 2 + n for n in low]
            for first in range(0, rows, together):
                some = vectors[first : first + together]
                # each riffle moves the highest bit of a number's place to the lowest: that of its row, bit by bit
                for _ in range(together.bit_length() - 1):
                    some = [
                        chosen(some[n // 2], some[(n + together) // 2], high if n % 2 else low) for n in range(together)
                    ]
                where, turns_of_each = builder.add(integer(4), ir.Constant(ir.IntType(64), first)), piece // together
                for turn in range(turns):
                    moved = some[turn % piece // turns_of_each]
                    lane = turn // piece * piece + turn % turns_of_each * together
                    part = chosen(moved, moved, list(range(lane, lane + together)))
                    builder.store(part, place(target, where, together), align=1)
                    where = builder.add(where, integer(5))
            return context.get_dummy_value()

        return signature, codegen

    return named(transpose, ("transpose", rows, turns))


transpose, transpose_line = transposing(TURNS, TURNS), transposing(TURNS, READ)


@row
def every_bit(octets):
    """Those that are set in any of some octets, so that these are in the CPU's caches."""
    seen = np.uint8(0)
    for place in range(octets.size):
        seen |= octets[place]
    return seen


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
    for turn in range(full if whole == width else 0, turns):
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
    """loop(codes, table, first, k_step, n_step, index, start, stop, count, cells, tiny, of_zeros, panels) -> (least, greatest, finite).

    Products start ... stop - 1 of `count` outputs to panels (planes, panels, turns, cells), cells beyond `count` as code 0. The
    code of output n and product k lies at first + k * k_step + n * n_step. `index`: which product comes where, -1 is +0; empty:
    as they are. `reading` is a key of READERS; a table holds what codes stand for. Where the carrier is uint16, codes of one of
    INFINITIES stay what they are. A second plane takes the power of two of
    each number, at least `tiny`; that of 0 is `of_zeros`. Told are the least and the greatest magnitude but 0, and whether all are finite.
    """
    stays = carrier is np.uint16
    single = np.float32 if stays else carrier
    number, settled = READERS[reading], panel_number(reading, single)
    unsigned, width_of_fraction = (np.uint32, 23) if single is np.float32 else (np.uint64, 52)
    without_sign = unsigned((1 << (8 * unsigned(0).itemsize - 1)) - 1)
    exponent = without_sign >> unsigned(width_of_fraction) << unsigned(width_of_fraction)
    by_code, (span, told) = reading in INFINITIES, spanning(reading, single)

    def gather_loop(codes, table, first, k_step, n_step, index, start, stop, count, cells, tiny, of_zeros, panels):
        planes, length = panels.shape[0], stop - start
        values = flat(panels[0])
        powers = flat(panels[planes - 1])
        together = READ if cells >= TURNS else TURNS * TURNS
        block = np.zeros(together * cells, codes.dtype)
        octets, size = viewed(codes, np.uint8), codes.itemsize
        touched, seen = np.empty(1, np.uint8), np.uint8(0)
        along = index.size == 0 and k_step == 1 and n_step > 1 and length >= READ
        low, high = without_sign, unsigned(0)
        low_code, high_code = np.uint16(0xFFFF), np.uint16(0)
        for panel in range((count + cells - 1) // cells):
            width = min(cells, count - panel * cells)
            if width < cells and not stays:
                fill_row(block, 0)
            corner = first + panel * cells * n_step
            for done in range(0, length, together):
                turns = min(together, length - done)
                if along and done % TOUCHED == 0:
                    stretch, lines = min(TOUCHED, length - done), width
                    if stretch == n_step:
                        stretch, lines = stretch * width, 1
                    for line in range(lines):
                        at = corner + line * n_step + start + done
                        if by_code:
                            low_code, high_code = span_of_codes(codes[at : at + stretch], low_code, high_code)
                        else:
                            seen |= every_bit(octets[at * size : (at + stretch) * size])
                    touched[0] = seen
                at = (panel * length + done) * cells
                target = values[at : at + turns * cells]
                if stays:
                    block = target
                    if width < cells:
                        fill_row(block, 0)
                read_turns(codes, block, corner, k_step, n_step, index, start + done, turns, width, cells)
                if not stays:
                    for place in range(target.size):
                        target[place] = settled(number(table, block[place]))
                if index.size:
                    for turn in range(turns):
                        if index[start + done + turn] < 0:
                            fill_row(target[turn * cells : (turn + 1) * cells], 0)
                if by_code and not along:
                    low_code, high_code = span_of_codes(block[: turns * cells], low_code, high_code)
                if not (by_code and planes == 1):
                    own = viewed(target, unsigned)
                    if not by_code:
                        low, high = span(own, low, high)
                    if planes > 1:
                        leading = powers[at : at + turns * cells]
                        fields = viewed(leading, unsigned)
                        for place in range(own.size):
                            fields[place] = own[place] & exponent
                        for place in range(own.size):
                            power = leading[place] if leading[place] > tiny else tiny
                            leading[place] = power if target[place] != 0.0 else of_zeros
        return told(table, low, high, low_code, high_code)

    return jit.compiled(gather_loop)
