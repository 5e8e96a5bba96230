"""Random numbers of a tile's roundings: Philox, eight roundings of an output in one block."""

from llvmlite import ir

from ..noise import LOW_WORD, PHILOX_STEPS, _philox
from ..prng import DOT_PLANE
from ..vectors import Vector
from .language import LONG, WORD, Code, Int

ROUNDINGS = 8
AT_ONCE = 2  # rows, in registers


def fill(function, rows, lanes):
    """The code of fill(noise, site, block, corner, row_stride, column_stride, width, key, stream): eight planes of a tile's random bits.

    Of each number the first 16 bits, or `width` if these are fewer.
    """
    code = Code(function, lanes)
    noise, *numbers = function.args
    site, block, corner, row_stride, column_stride, width, key, stream = (Int(code.builder, x) for x in numbers)
    kept = ((code.int(0xFFFF) << (code.int(16) - width.least(16))) & 0xFFFF).cut(WORD)
    apart = 2 if lanes > 1 else 1  # vectors for every second column, whose words an instruction joins
    narrow = code.of(lanes // apart)
    every = ir.Constant(ir.VectorType(LONG, lanes // apart), list(range(0, lanes, apart)))
    columns = Vector(code.builder, every) * narrow.splat(column_stride)
    place = narrow.splat(code.int(DOT_PLANE) | site << 26 | block)
    (key_low, key_high), words_of_stream = ((x & LOW_WORD, x >> 32) for x in (key, stream))
    keys = [
        [
            narrow.splat((half + turn * step) & LOW_WORD)
            for half, step in zip((key_low, key_high), PHILOX_STEPS, strict=True)
        ]
        for turn in range(10)
    ]
    some = AT_ONCE if rows % AT_ONCE == 0 else 1
    with code.loop(rows // some) as group:
        first = group * some
        outputs = []
        for n in range(some):
            even = columns + narrow.splat(corner + (first + n) * row_stride)
            outputs += [even, even + narrow.splat(column_stride)][:apart]
        found = _philox(outputs, place, [narrow.splat(x) for x in words_of_stream], keys)
        for n in range(some):
            for number in range(4):
                of_row = [words[number] for words in found[n * apart : (n + 1) * apart]]
                word = of_row[0].low_halves(of_row[1]) if apart > 1 else of_row[0].cut(WORD)
                for half, bits in enumerate((word, word.logical_right(16))):
                    where = ((first + n) + (number + 4 * half) * rows) * lanes
                    code.store(bits & code.splat(kept), noise, where)
    code.builder.ret_void()
