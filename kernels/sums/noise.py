"""Random numbers of a tile's roundings: Philox, eight roundings of an output in one block."""

from typing import NamedTuple

from llvmlite import ir

from ..prng import DOT_PLANE
from ..vectors import Vector
from .language import CACHE_LINE, LONG, WORD, Code, Int

PHILOX_MULTIPLIERS, PHILOX_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
LOW_WORD = 0xFFFFFFFF
ROUNDINGS = 8
AT_ONCE = 2  # rows, in registers


def _philox(outputs, where, stream, keys):
    """`prng.philox` of vectors of outputs, two 32-bit numbers and the key of each round; the words' upper halves are of no account.

    The vectors take each round together, as one chain of rounds leaves the CPU waiting.
    """
    words = [[c0, where, *stream] for c0 in outputs]
    for k0, k1 in keys:
        for chain, (c0, c1, c2, c3) in enumerate(words):
            p0 = (c0 & LOW_WORD) * PHILOX_MULTIPLIERS[0]
            p1 = (c2 & LOW_WORD) * PHILOX_MULTIPLIERS[1]
            words[chain] = [p1.logical_right(32) ^ c1 ^ k0, p1, p0.logical_right(32) ^ c3 ^ k1, p0]
    return words


class Noise(NamedTuple):
    """Random numbers of tiles of so many rows and lanes, which loops of all their sums call by address."""

    rows: int
    lanes: int


FILL = ir.FunctionType(ir.VoidType(), [WORD.as_pointer(), *[LONG] * 8])


class Filler:
    """All code of that: the function `loop`."""

    def __init__(self, what):
        self.module = ir.Module("noise")
        function = ir.Function(self.module, FILL, "loop")
        function.attributes.alignstack = CACHE_LINE  # else vectors that leave registers lie across lines
        _fill(function, *what)


def _fill(function, rows, lanes):
    """The code of loop(noise, site, block, corner, row_stride, column_stride, width, key, stream): eight planes of a tile's random bits.

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
