"""Codes of any width as words, integers of a carrier's width: one loop of an operation then serves all formats.

Codes come as bytes, `size` for each. Those as wide as a word become the signed integers that the carrier's bits are.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .jit import kernel, lowered, row, stand_alone

SOME = 512
"""Words that loops have of each operand at a time: they stay in the cache, and on the stack."""
SIZES = 1, 2, 4, 8


def _read(words, codes, size, first):
    words[:] = codes.view(f"u{size}")[first : first + words.size].astype(words.dtype)


def _write(words, codes, size, first):
    codes.view(f"u{size}")[first : first + words.size] = words.astype(f"u{size}")


def _moving(writes):
    """What moves words in compiled code. For views, slices and a loop of each size and way Numba would take ten times longer."""

    def moving(context, words, codes, size, first):
        def codegen(context, builder, signature, arguments):
            room, given = (
                context.make_array(x)(context, builder, y) for x, y in ((words, arguments[0]), (codes, arguments[1]))
            )
            word, (size_is, start) = context.get_data_type(words.dtype), arguments[2:]
            for bytes_ in SIZES:
                code = ir.IntType(8 * bytes_)
                with builder.if_then(builder.icmp_signed("==", size_is, size_is.type(bytes_))):
                    there = builder.gep(builder.bitcast(given.data, code.as_pointer()), [start])
                    with cgutils.for_range(builder, room.nitems) as loop:
                        own, other = (builder.gep(x, [loop.index]) for x in (room.data, there))
                        taken, to, kind = (own, other, code) if writes else (other, own, word)
                        found = builder.load(taken)
                        wider = builder.sext if writes and words.dtype.signed else builder.zext
                        fits = builder.trunc if found.type.width > kind.width else wider
                        builder.store(fits(found, kind), to)
            return context.get_dummy_value()

        return types.void(words, codes, types.intp, types.intp), codegen

    return moving


lowered(_read)(_moving(False))
lowered(_write)(_moving(True))


@row
def read_words(words, codes, size, first):
    """All of `words` from the codes from `first` on."""
    stand_alone()
    _read(words, codes, size, first)


@kernel
def read_operands(words, operands, arity, size, first, count):
    """(`count` words of a, of b, of c) from an element on; operands that an operation does not have repeat the last."""
    x, y, z = words[0][:count], words[1][:count], words[2][:count]
    read_words(x, operands[0], size, first)
    if arity > 1:
        read_words(y, operands[1], size, first)
    if arity > 2:
        read_words(z, operands[2], size, first)
    second = y if arity > 1 else x
    return x, second, z if arity > 2 else second


@row
def write_words(codes, words, size, first):
    """All of `words` to the codes from `first` on."""
    stand_alone()
    _write(words, codes, size, first)
