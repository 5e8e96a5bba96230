"""Codes of any width as words, integers of a carrier's width: one loop of an operation then serves all formats.

Codes come as bytes, `size` for each. Those as wide as a word become the signed integers that the carrier's bits are.
"""

import numpy as np

from .jit import cut, kernel, row, stand_alone, viewed

SOME = 512
"""Words that loops have of each operand at a time: they stay in the cache, and on the stack."""


@kernel
def _copied(target, source):
    for i in range(target.size):
        target[i] = cut(source[i], target[i])


@row
def read_words(words, codes, size, first):
    """All of `words` from the codes from `first` on."""
    stand_alone()
    last = first + words.size
    if size == 1:
        _copied(words, codes[first:last])
    elif size == 2:
        _copied(words, viewed(codes, np.uint16)[first:last])
    elif size == 4:
        _copied(words, viewed(codes, np.uint32)[first:last])
    else:
        _copied(words, viewed(codes, np.int64)[first:last])


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
    last = first + words.size
    if size == 1:
        _copied(codes[first:last], words)
    elif size == 2:
        _copied(viewed(codes, np.uint16)[first:last], words)
    elif size == 4:
        _copied(viewed(codes, np.uint32)[first:last], words)
    else:
        _copied(viewed(codes, np.int64)[first:last], words)
