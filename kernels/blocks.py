"""Faster ways to the same bits for ordinary operands, as `ordinary` says which are: one loop, around the elements of other files.

Data are ordinary almost everywhere, and whether a block is takes a fraction of the time that its results take. So the loop looks at a block
first. Operands that are not ordinary are replaced by harmless ones, and told to the caller, who has another loop do these elements. An
element's function may leave it to that loop, too: where its result is not ordinary, or hangs on more random bits than 16.
"""

from functools import cache

import numpy as np

from . import elements, halves, jit, singles, wide_elements
from .fast import NONE
from .jit import cut, kernel, read_only, scratch, viewed
from .ordinary import all_ordinary, all_singles, are_calm_doubles, is_calm, is_ordinary, is_single, ordinary_of
from .prng import top_bits

BLOCK = 2048
"""Operands looked at together; a whole number of random tiles."""

FLAG_BITS = 5
"""A loop returns the number of elements it did, shifted left by so many bits, and their flags OR-ed together."""

OPERANDS = {"convert": 1, "sqrt": 1, "fma": 3}
"""Operation -> number of operands, of those that have not two."""

CALM = ("convert",)
"""Operations of which operands say whether a result is tiny or too large: blocks with none need fewer instructions."""

STOCHASTIC = ("stochastic", "up_or_down")

WIDE = dict.fromkeys(("wide", "double"), wide_elements.known_of)
"""Kinds whose elements look at operands themselves -> what makes their numbers of two arrays."""


def _element(kind, operation, way, lifts, flushes, calm=False):
    """element(code_a, code_b, code_c, half_word, numbers) -> (code, flags, 1 where another loop is to do it)."""
    if kind in WIDE:
        return wide_elements.element_of(operation, way, kind == "double")
    if kind == "single":
        return (singles.drawn if way in STOCHASTIC else singles.rounded)(operation, way)
    if kind in ("cpu", "cpu64"):
        return halves.cpu(operation, way, calm, kind == "cpu64")
    make = elements.stochastic if way in STOCHASTIC else elements.deterministic
    return make(kind, operation, way, lifts, flushes, calm)


@kernel
def noted(marks, flags, first, left, count):
    """Elements left so far, with those of a block that are marked, of which `left` gets the numbers; so far, they raise nothing."""
    for i in range(flags.size, min(flags.size + 7, BLOCK)):
        marks[i] = 0
    eights = viewed(marks, np.uint64)
    for eight in range((flags.size + 7) // 8):
        if eights[eight]:
            for i in range(8 * eight, 8 * eight + 8):
                if marks[i]:
                    left[count], flags[i] = first + i, 0
                    count += 1
    return count


@cache
def _block(kind, operation, way, lifts, flushes):
    """One block: (flags OR-ed together, elements left so far, of which `left` has the numbers)."""
    draws = way in STOCHASTIC
    parameters = kind, operation, way, lifts, flushes
    element, numbers_of = jit.referable(_element(*parameters), *parameters), WIDE.get(kind, ordinary_of)
    leaves = draws or flushes or kind == "single" or kind in WIDE
    calms = operation in CALM and kind not in WIDE
    easy = jit.referable(_element(*parameters, True), *parameters, "calm") if calms else element

    @jit.kernel
    def some(element, a, b, c, codes, flags, half_words, marks, numbers):
        seen = NONE
        for i in range(codes.size):
            codes[i], raised, leave = element(a[i], b[i], c[i], half_words[i], numbers)
            if leaves:
                marks[i] = leave
                seen = cut(seen | leave, NONE)
            flags[i] = raised
        return seen

    some = jit.referable(some, *parameters)

    @jit.row
    def block(
        a, b, c, codes, flags, each, calm, left, count, integers, floats, first, key, stream, start, handed, width
    ):
        numbers = numbers_of(integers, floats)
        half_words, marks = scratch(BLOCK, np.uint16), scratch(BLOCK, np.uint8)
        if draws:
            top_bits(start + first, half_words, handed, width, key, stream)
        seen = np.uint8(0)
        if calms and calm:
            leave = some(easy, a, b, c, codes, flags, half_words, marks, numbers)
        else:
            leave = some(element, a, b, c, codes, flags, half_words, marks, numbers)
        if leave != NONE:
            count = noted(marks, flags, first, left, count)
        for i in range(0 if each else flags.size):
            seen = cut(seen | flags[i], seen)
        return seen, count

    return jit.referable(block, *parameters)


@kernel
def one_ordinary(a, b, c, numbers):
    """Whether the operands of a block are ordinary."""
    return all_ordinary(a, 1, numbers)


@kernel
def two_ordinary(a, b, c, numbers):
    """The same of two."""
    return all_ordinary(a, 1, numbers) and all_ordinary(b, numbers.divisor, numbers)


@kernel
def three_ordinary(a, b, c, numbers):
    """The same of three."""
    return all_ordinary(a, 1, numbers) and all_ordinary(b, 1, numbers) and all_ordinary(c, 1, numbers)


@kernel
def doubles_ordinary(a, b, c, numbers):
    """Whether float64 numbers are zeros or float32's normal ones."""
    return all_singles(a)


@kernel
def never(codes, numbers):
    """Nothing is calm."""
    return False


@kernel
def unseen(a, b, c, numbers):
    """Nothing is looked at."""
    return True


@jit.row
def as_they_are(a, b, c, x, y, z, flags, left, count, integers, floats, first):
    """`tamed` where nothing is."""
    return count


LOOKS = {1: one_ordinary, 2: two_ordinary, 3: three_ordinary}


@cache
def _tamed(operands, double=False):
    """tamed(a, b, c, x, y, z, flags, left, count, integers, floats, first) -> elements left so far: those with an operand that is not ordinary.

    x, y and z are the operands of a block, harmless in these; `double`: the only one is float64.
    """
    two, three, fits = operands > 1, operands > 2, is_single if double else is_ordinary

    @jit.row
    def tamed(a, b, c, x, y, z, flags, left, count, integers, floats, first):
        numbers, marks = ordinary_of(integers, floats), scratch(BLOCK, np.uint8)
        nothing, harmless = cut(0, a[0]), cut(numbers.harmless, a[0])
        for i in range(a.size):
            fine = fits(a[i], 1, numbers)
            if two:
                fine = fine & is_ordinary(b[i], numbers.divisor, numbers)
                y[i] = b[i] if fine else harmless
            if three:
                fine = fine & is_ordinary(c[i], 1, numbers)
                y[i] = b[i] if fine else harmless
                z[i] = c[i] if fine else nothing
            x[i] = a[i] if fine else nothing
            marks[i] = 0 if fine else 1
        return noted(marks, flags, first, left, count)

    return jit.referable(tamed, operands, double)


@cache
def elementwise(kind, operation, way, lifts, flushes):
    """loop(a, b, c, codes, flags, left, integers, floats, key, stream, start, handed, width) -> elements done and flags OR-ed together, 0
    where there is room for those of each.

    `left` takes the numbers of elements that are left to another loop, and at its end how many these are; the loop stops where there is no
    room for those of one more block. Where it draws, `start` is a multiple of TILE, and `handed` has `width` random bits of each element, or
    is empty. `kind` is one of `elements.READERS`, "cpu" of halves that the CPU rounds, "single" of float32 in float32, "float64" of
    conversions from there, "cpu64" of such that the CPU rounds; "wide" of wide formats, "double" of those with 53 bits. `way`: "nearest",
    "selected", or, of halves, singles and wide formats, the name of a mode; "stochastic" of those that draw.
    """
    block, operands = _block(kind, operation, way, lifts, flushes), OPERANDS.get(operation, 2)
    numbers_of, calm_at, look, tamed = ordinary_of, never, LOOKS[operands], _tamed(operands)
    if kind in WIDE:
        numbers_of, look, tamed = WIDE[kind], unseen, as_they_are
    elif operation == "convert":
        calm_at = is_calm
    if kind in ("float64", "cpu64"):
        calm_at, look, tamed = are_calm_doubles, doubles_ordinary, _tamed(1, True)

    def blocks_loop(a, b, c, codes, flags, left, integers, floats, key, stream, start, handed, width):
        numbers = numbers_of(integers, floats)
        x, y, z = np.empty(BLOCK, a.dtype), np.empty(BLOCK, a.dtype), np.empty(BLOCK, a.dtype)
        each, room = flags.size == codes.size, np.empty(BLOCK, np.uint8)
        seen, count, first, most = np.uint8(0), 0, 0, left.size - 1 - BLOCK
        while first < codes.size and count <= most:
            last = min(first + BLOCK, codes.size)
            xs, ys, zs = a[first:last], b[first:last], c[first:last]
            raises = flags[first:last] if each else room[: last - first]
            calm = calm_at(xs, numbers)
            if not (calm or look(xs, ys, zs, numbers)):
                count = tamed(xs, ys, zs, x, y, z, raises, left, count, integers, floats, first)
                size = last - first
                xs, ys, zs = read_only(x[:size]), read_only(y[:size]), read_only(z[:size])
            here, count = block(
                xs, ys, zs, codes[first:last], raises, each, calm, left, count, integers, floats, first, key, stream, start,
                handed[first:last], width,
            )  # fmt: skip
            seen |= here
            first = last
        left[left.size - 1] = count
        return (first << FLAG_BITS) | seen

    return jit.compiled(blocks_loop)
