"""Loops over flat arrays: factories over the scalar functions below this floor.

What differs between formats and rules is passed in; what differs in kind (operation, way of rounding) is closed over, and
only that compiles anew. Compiled code is kept by the digest of all kernel sources.

The numbers of a Source, and of a Target after it, come as an array of integers and one of floats, of the carrier's width.
Codes come as flat arrays of one length, 32- and 64-bit ones also as signed views; operands an operation does not take
repeat the last. Flags go to one byte per element, or are OR-ed together and returned.
"""

from functools import cache, partial

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from . import arith, jit, sticky
from .carrier import decode, decode_wide, is_signalling, propagated, source_of
from .jit import all_of, cut, float_bits, read_only, scratch
from .parts import Composed, called
from .prng import TILE, add_low, fill_high, keep_bits, unit_fraction, xoroshiro128aox
from .rounding import ROUNDERS, target_of, undecided
from .words import SOME, read_operands, write_words

OPERATIONS = {
    "convert": (arith.identity, 1),
    "convert_wide": (arith.bounded, 1),
    "convert_more": (arith.bounded, 1),
    "add": (arith.add, 2),
    "sub": (arith.sub, 2),
    "mul": (arith.mul, 2),
    "div": (arith.div, 2),
    "remainder": (arith.remainder, 2),
    "sqrt": (arith.sqrt, 1),
    "round_to_integral": (arith.integral, 1),
    "fma": (arith.fma, 3),
    "hypot": (arith.hypot, 2),
    "fmod": (arith.fmod, 2),
    "modulo": (arith.modulo, 2),
    "floor_divide": (arith.floor_divide, 2),
    "given": (arith.given, 2),
}
"""Name -> (function of carrier values, number of operands). `convert_wide` is for sources that reach beyond any format, `convert_more`
for those that have more bits than the carrier.

`given` rounds values that `extra` holds, one for each element, and sees to NaN operands; a function's only operand comes twice. It and
`hypot` may have a number for a result where an operand is a quiet NaN.
"""

WIDE = ("convert_wide", "convert_more")


def _kind(operation):
    """What rounding is to know of an operation: that it has a third operand, may have a number for a result where an operand is a quiet NaN,
    or rounds to integers.
    """
    if operation in ("given", "hypot"):
        return "forgiving"
    return "integral" if operation == "round_to_integral" else "third" if OPERATIONS[operation][1] > 2 else ""


@cache
def _operated(operation, drawn):
    """An operation before it is rounded: codes in, (value, flags, whether operands are numbers, whether one signals) out."""
    operate, arity = OPERATIONS[operation]
    operate = arith.integral_drawn if drawn and operation == "round_to_integral" else operate
    read = decode_wide if operation in WIDE else decode
    given = operation == "given"

    @jit.kernel
    def operated(code_a, code_b, code_c, extra, random, source, target):
        x = read(code_a, source)
        y = read(code_b, source) if arity > 1 else extra
        z = read(code_c, source) if arity > 2 else random
        value, raised = operate(x, y, extra if given else z, target)
        number = (x == x) & (y == y) & (z == z)
        signals = is_signalling(code_a, source)
        if arity > 1:
            signals = signals | is_signalling(code_b, source)
        if arity > 2:
            signals = signals | is_signalling(code_c, source)
        return value, raised, number, signals

    return jit.referable(operated, operation, drawn)


@cache
def _ended(way, kind):
    """A value rounded: what `_operated` gives in, (code, flags) out. No payload of a NaN survives."""
    round_value, refuses = ROUNDERS[way], kind == "integral" and way.endswith("unusual")

    @jit.kernel
    def ended(value, raised, number, signals, random, source, target):
        if kind == "forgiving":
            value = source.not_a_number if signals else value
        code, rounded = round_value(value, random, target)
        if refuses and rounded == target.invalid:
            raised = target.none
        invalid = target.invalid if (value != value) & (number | signals) else target.none
        unordered = target.none if number else target.any_nan_signals
        return code, cut(cut(raised | rounded, target.none) | cut(invalid | unordered, target.none), target.none)

    return jit.referable(ended, way, kind)


@cache
def _carried(kind):
    """The code of a result, of a target whose policy lets payloads survive."""

    @jit.kernel
    def carried(code, code_a, code_b, code_c, value, raised, number, signals, source, target):
        kept = raised == target.none
        if kind == "forgiving":
            kept = kept & ((value != value) | signals)
        if kind == "third" and target.addend_first != target.none:
            if not number and (kept or is_signalling(code_c, source)):
                code = propagated(code_c, code_a, code_b, source, target)
        elif not number and kept:
            code = propagated(code_a, code_b, code_c, source, target)
        return code

    return jit.referable(carried, kind)


@cache
def _element(operation, way):
    """One element: codes in, (code, flags, value before rounding) out."""
    kind = _kind(operation)
    operated, ended, carried = _operated(operation, way.startswith("drawn")), _ended(way, kind), _carried(kind)
    payloads = way != "nearest"

    @jit.kernel
    def element(code_a, code_b, code_c, extra, random, source, target):
        value, raised, number, signals = operated(code_a, code_b, code_c, extra, random, source, target)
        code, flags = ended(value, raised, number, signals, random, source, target)
        if payloads and target.propagate != target.none:
            code = carried(code, code_a, code_b, code_c, value, raised, number, signals, source, target)
        return code, flags, value

    return jit.referable(element, operation, way)


@cache
def _settled(operation):
    """The random number that rounds an element's carrier value as the given one rounds its exact value; whether `more` had to be known."""
    operate, arity = OPERATIONS[operation]
    read = decode_wide if operation in WIDE else decode
    given = operation == "given"
    settle = sticky.settling(operation)

    @jit.kernel
    def settled(code_a, code_b, code_c, extra, more, random, source, target):
        x = read(code_a, source)
        y = read(code_b, source) if arity > 1 else extra
        z = read(code_c, source) if arity > 2 else random
        value, _ = operate(x, y, extra if given else z, target)
        if given and more != more:
            return random, sticky.hidden(value, random, target)
        return settle(x, y, z, value, more, random, target), False

    return jit.referable(settled, operation)


@cache
def rounded(operation, way):
    """One element: codes, and what the value lacks, `more`, in, (code, flags) out."""
    element, settled = _element(operation, way), _settled(operation)
    settles = way.startswith("drawn") and operation != "round_to_integral"

    @jit.kernel
    def rounded(code_a, code_b, code_c, extra, more, random, source, target):
        if settles:
            random, _ = settled(code_a, code_b, code_c, extra, more, random, source, target)
        code, raised, _ = element(code_a, code_b, code_c, extra, random, source, target)
        return code, raised

    return jit.referable(rounded, operation, way)


NUMBER, SIGNALS, FLAGS = 256, 512, 255
"""What a row of values knows of each: whether its operands are numbers, whether one signals, and flags of the operation."""


@cache
def _operating(operation, drawn):
    """row(x, y, z, extra, random, values, states, integers, floats) -> 0: an operation before it is rounded. `extra` is one number for all, or has
    one for each (given).
    """
    operated, given = _operated(operation, drawn), operation == "given"

    def operating_row(x, y, z, extra, random, values, states, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        for i in range(x.size):
            own, uniform = extra[i if given else 0], random[i] if drawn else target.zero
            values[i], raised, number, signals = operated(x[i], y[i], z[i], own, uniform, source, target)
            states[i] = raised | (NUMBER if number else 0) | (SIGNALS if signals else 0)
        return 0

    return operating_row


@cache
def _settling(operation):
    """row(x, y, z, extra, more, random, unknown, integers, floats) -> 0: random numbers that round values as those given round exact values."""
    settled, lacking = _settled(operation), operation in ("convert_more", "given")
    given = operation == "given"

    def settling_row(x, y, z, extra, more, random, unknown, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        for i in range(x.size):
            lacks = more[i] if lacking else 0.0
            random[i], hides = settled(x[i], y[i], z[i], extra[i if given else 0], lacks, random[i], source, target)
            if lacking:
                unknown[i] = hides
        return 0

    return settling_row


@cache
def _ending(way, kind):
    """row(x, y, z, values, states, random, codes, flags, integers, floats) -> flags OR-ed together, and 256 if one rounding is open: values
    rounded.

    Flags are gone through again, as that takes less than to OR them on the way.
    """
    ended, carried, draws = _ended(way, kind), _carried(kind), way.startswith("drawn")

    def ending_row(x, y, z, values, states, random, codes, flags, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        hangs = False
        for i in range(x.size):
            raised, number, signals = read_state(states[i], target)
            uniform = random[i] if draws else target.zero
            codes[i], flags[i] = ended(values[i], raised, number, signals, uniform, source, target)
            if draws:
                hangs |= undecided(values[i], uniform, target)
        if target.propagate != target.none:
            for i in range(x.size):
                state = read_state(states[i], target)
                codes[i] = carried(codes[i], x[i], y[i], z[i], values[i], *state, source, target)
        return all_of(flags[: x.size]) | (256 if hangs else 0)

    return ending_row


@jit.kernel
def read_state(state, target):
    """(flags, whether operands are numbers, whether one signals)."""
    return cut(state & FLAGS, target.none), state & NUMBER != 0, state & SIGNALS != 0


@cache
def kinds_of(word):
    """Types of what rows take, by name, of the carrier with these words."""
    line = partial(types.Array, ndim=1, layout="C")
    words, reals = line(from_dtype(word)), line(types.float32 if word == np.int32 else types.float64)
    found = dict.fromkeys(("x", "y", "z", "states", "codes", "integers"), words)
    found |= dict.fromkeys(("extra", "random", "values", "floats"), reals)
    return found | {"more": line(types.float64), "unknown": line(types.boolean), "flags": line(types.uint8)}


@cache
def elementwise(operation, way, word):
    """The loop of one operation under a deterministic mode, of a carrier with such words.

    loop(a, b, c, codes, flags, read, made, extra, integers, floats) -> flags OR-ed together, of which each element has its own where there is
    room for them. Codes are bytes, `read` for each of the operands' and `made` for each of the results'. `extra` has one number for the operation
    (round_to_integral: 1 to raise INEXACT), or one for each element (given).
    """
    rows = _operating(operation, False), _ending(way, _kind(operation))
    return Composed(_elementwise(), rows, kinds_of(word), OPERATIONS[operation][1])


@jit.once
def _elementwise():
    def elementwise_loop(rows, a, b, c, codes, flags, read, made, extra, integers, floats):
        (operate, end, arity), word, real = jit.fixed_tuple(rows, 3), integers.dtype, floats.dtype
        words, results = (scratch(SOME, word), scratch(SOME, word), scratch(SOME, word)), scratch(SOME, word)
        values, states, room = scratch(SOME, real), scratch(SOME, word), scratch(SOME, np.uint8)
        size, seen = codes.size // made, 0
        for first in range(0, size, SOME):
            count = min(SOME, size - first)
            x, y, z = read_operands(words, (a, b, c), arity, read, first, count)
            told = flags[first : first + count] if flags.size else room[:count]
            own, found = extra if extra.size == 1 else extra[first : first + count], results[:count]
            called(operate, (x, y, z, own, values, values, states, integers, floats))
            seen |= called(end, (x, y, z, values, states, values, found, told, integers, floats))
            write_words(codes, found, made, first)
        return seen

    return jit.compiled(elementwise_loop)


@jit.row
def add_rest(uniforms, start, count, key, stream, width):
    """What random numbers of so many positions have after their top 16 bits."""
    if width > 16:
        for done in range(0, count, TILE):
            some = uniforms[done : done + TILE]
            add_low((start + done) // TILE, some, key, stream)
            keep_bits(some, width)


@jit.row
def drawn_pass(
    rows, a, b, c, codes, flags, read, made, extra, more, unknown, integers, floats, key, stream, start, handed, width,
):  # fmt: skip
    """What the loop of an operation does under stochastic rounding."""
    words = scratch(SOME, np.int64), scratch(SOME, np.int64), scratch(SOME, np.int64)
    results, half_words, room = scratch(SOME, np.int64), scratch(TILE, np.uint16), scratch(SOME, np.uint8)
    uniforms, values, states = scratch(SOME, np.float64), scratch(SOME, np.float64), scratch(SOME, np.int64)
    size, seen, (operate, settle, end, arity, at_once) = codes.size // made, 0, jit.fixed_tuple(rows, 5)
    for first in range(0, size, SOME):
        count = min(SOME, size - first)
        last = first + count
        x, y, z = read_operands(words, (a, b, c), arity, read, first, count)
        if handed.size:
            for i in range(count):
                uniforms[i] = unit_fraction(handed[first + i], width)
        else:
            for done in range(0, count, TILE):
                some = uniforms[done : done + TILE]
                fill_high((start + first + done) // TILE, half_words, some, key, stream)
                if width < 16:
                    keep_bits(some, width)
            if at_once:
                add_rest(uniforms, start + first, count, key, stream, width)
        told, found = flags[first:last] if flags.size else room[:count], results[:count]
        own, lacks, hidden = extra if extra.size == 1 else extra[first:last], more[first:last], unknown[first:last]
        called(operate, (x, y, z, own, uniforms, values, states, integers, floats))
        raised = called(end, (x, y, z, values, states, uniforms, found, told, integers, floats))
        if raised > FLAGS and not at_once:
            if not handed.size:
                add_rest(uniforms, start + first, count, key, stream, width)
            called(settle, (x, y, z, own, lacks, uniforms, hidden, integers, floats))
            raised = called(end, (x, y, z, values, states, uniforms, found, told, integers, floats))
            if more.size:
                for i in range(count):
                    told[i] = 0 if hidden[i] else told[i]
                raised = all_of(told)
        write_words(codes, found, made, first)
        seen |= raised & FLAGS
    return seen


def _drawing(loop, operation, way):
    operate, end = _operating(operation, operation == "round_to_integral"), _ending(way, _kind(operation))
    rows, arity = (operate, _settling(operation), end), OPERATIONS[operation][1]
    return Composed(loop, rows, kinds_of(np.int64), arity, operation == "round_to_integral")


@cache
def elementwise_drawn(operation, way):
    """The loop of one operation under stochastic rounding.

    loop(a, b, c, codes, flags, read, made, extra, more, unknown, integers, floats, key, stream, start, handed, width) -> flags OR-ed
    together, of which each element has its own where there is room for them. Codes are bytes, as `elementwise` takes them, and
    may be those of an operand. `handed` holds `width` random bits per element, or is empty:
    then they come from the address (key, stream, start + i), `start` a multiple of TILE. Their top 16 are drawn first; elements
    among which one rounding hangs on the rest, or on what a sticky bit hides, are done again together, with all of them.

    `more` is what the values lack (convert_more, given), or empty. NaN says that it is not known: where a rounding hangs
    on it, `unknown` is set, the code is not to be used, and flags are left out.
    """
    return _drawing(_elementwise_drawn(), operation, way)


@jit.once
def _elementwise_drawn():
    return jit.compiled(drawn_pass)


@cache
def decoding():
    """loop(codes, values, integers, floats): codes to float64, or to float32 if that has all of their values."""

    def decoding_loop(codes, values, integers, floats):
        source = source_of(integers, floats)
        for i in range(codes.size):
            values[i] = decode(cut(codes[i], source.hidden), source)

    return jit.compiled(decoding_loop)


@cache
def settling():
    """loop(near, more, error, values, doubtful, dropped, integers, floats) -> whether one is doubtful.

    What lies within `error` of near + more becomes the float64 that `arith.shortened` makes of it; where the two ends differ, it is
    doubtful. The target is any: its range is the carrier's.
    """
    shortened = arith.shortened

    def settling_loop(near, more, error, values, doubtful, dropped, integers, floats):
        target = target_of(integers, floats)
        seen = False
        for i in range(values.size):
            low = shortened(near[i], more[i] - error[i], dropped, target)
            high = shortened(near[i], more[i] + error[i], dropped, target)
            values[i] = low
            doubt = float_bits(low) != float_bits(high)
            doubtful[i] = doubt
            seen |= doubt
        return seen

    return jit.compiled(settling_loop)


@cache
def gathering(each):
    """loop(a, codes, flags, table, raised) -> flags OR-ed together, 0 where `each`: results looked up by code."""

    def gathering_loop(a, codes, flags, table, raised):
        seen = 0
        for i in range(codes.size):
            code = a[i]
            codes[i] = table[code]
            if each:
                flags[i] = raised[code]
            else:
                seen |= raised[code]
        return seen

    return jit.compiled(gathering_loop)


PAIRS = 512
"""Pairs of codes looked up together; a multiple of four."""


@cache
def gathering_pairs(each):
    """loop(a, b, codes, flags, table) -> flags OR-ed together, 0 where `each`: results looked up by two codes of 8 bits.

    An entry of the table holds a code of 8 bits and, above it, flags. All places come first, as vectors, which leaves the CPU two loads and a
    store for each: it does four side by side. They lie where entries go; after the last pair any will do.
    """

    def gathering_pairs_loop(a, b, codes, flags, table):
        seen, entries, high = np.uint16(0), scratch(PAIRS, np.uint16), np.uint16(8)
        for start in range(0, codes.size, PAIRS):
            end = min(start + PAIRS, codes.size)
            x, y, made, told = a[start:end], b[start:end], codes[start:end], flags[start:end]
            for i in range(made.size):
                entries[i] = (np.uint16(x[i]) << high) | np.uint16(y[i])
            for i in range(0, PAIRS, 4):
                first, second = table[np.uint64(entries[i])], table[np.uint64(entries[i + 1])]
                third, fourth = table[np.uint64(entries[i + 2])], table[np.uint64(entries[i + 3])]
                entries[i], entries[i + 1], entries[i + 2], entries[i + 3] = first, second, third, fourth
            for i in range(made.size):
                made[i] = np.uint8(entries[i] & np.uint16(0xFF))
            for i in range(made.size):
                if each:
                    told[i] = np.uint8(entries[i] >> high)
                else:
                    seen |= entries[i]
        return seen >> high

    return jit.compiled(gathering_pairs_loop)


# -- folds: one element after another ------------------------------------------------------------------------------------


@cache
def folded(step):
    """loop(start, stop, values, before, codes, flags, extra, integers, floats) -> 0: `step` down columns start ... stop.

    `codes` has the first row of `values` in its own, and a row for each of them, or one for the last step alone;
    `before` is what reads it. The flags of a column's steps are OR-ed to its own.
    """

    def folding_loop(start, stop, values, before, codes, flags, extra, integers, floats):
        source, target = source_of(integers, floats), target_of(integers, floats)
        keeps = 1 if codes.shape[0] > 1 else 0
        for k in range(1, values.shape[0]):
            for i in range(start, stop):
                x, y = cut(before[(k - 1) * keeps, i], target.none), cut(values[k, i], target.none)
                code, raised = step(x, y, y, extra, target.zero, 0, source, target)
                codes[k * keeps, i] = code
                flags[i] |= raised
        return 0

    return jit.compiled(folding_loop)


@cache
def folding(operation, way):
    """The fold by an operation of two operands under a deterministic mode."""
    element = _element(operation, way)

    @jit.kernel
    def step(code_a, code_b, code_c, extra, random, width, source, target):
        code, raised, _ = element(code_a, code_b, code_c, extra, random, source, target)
        return code, raised

    return folded(jit.referable(step, operation, way))


@cache
def folding_drawn(operation, way):
    """loop(start, stop, columns, values, codes, flags, size, streams, extra, integers, floats, key, width) -> 0: a fold under stochastic rounding.

    Rows of `values` and of `codes`, as bytes, `size` for each code, are of so many columns. A step draws what an elementwise call draws in
    its stream: streams[k - 1] for row k. `start` is a multiple of TILE.
    """
    return _drawing(_folding_drawn(), operation, way)


@jit.once
def _folding_drawn():
    def folding_drawn_loop(
        rows, start, stop, columns, values, codes, flags, size, streams, extra, integers, floats, key, width
    ):
        more, known, handed = np.empty(0, np.float64), np.empty(0, np.bool_), np.empty(0, np.uint64)
        raised, length = np.empty(stop - start, np.uint8), (stop - start) * size
        keeps = columns * size if codes.size > columns * size else 0
        for k in range(1, streams.size + 1):
            at, place = (k * columns + start) * size, k * keeps + start * size
            row, out = values[at : at + length], codes[place : place + length]
            before = read_only(codes[place - keeps : place - keeps + length])
            drawn_pass(
                rows, before, row, row, out, raised, size, size, extra, more, known, integers, floats, key,
                streams[k - 1], start, handed, width,
            )  # fmt: skip
            for i in range(raised.size):
                flags[start + i] |= raised[i]
        return 0

    return jit.compiled(folding_drawn_loop)


@cache
def drawing():
    """loop(uniforms, key, stream, start, width): the random numbers of positions start, start + 1 ..., `start` a multiple of TILE."""

    def drawing_loop(uniforms, key, stream, start, width):
        half_words = np.empty(TILE, np.uint16)
        tile = np.empty(TILE, np.float64)
        for first in range(0, uniforms.size, TILE):
            fill_high((start + first) // TILE, half_words, tile, key, stream)
            if width > 16:
                add_low((start + first) // TILE, tile, key, stream)
            keep_bits(tile, width)
            for i in range(min(TILE, uniforms.size - first)):
                uniforms[first + i] = tile[i]

    return jit.compiled(drawing_loop)


@cache
def generating():
    """loop(outputs, s0, s1): consecutive outputs of xoroshiro128aox. Serial by nature; what uses them is not."""

    def generating_loop(outputs, s0, s1):
        for i in range(outputs.size):
            outputs[i], s0, s1 = xoroshiro128aox(s0, s1)

    return jit.compiled(generating_loop)
