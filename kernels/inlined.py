"""Operations as functions that other compiled code calls: one format and one rule, as numbers in the code.

Each takes codes as int64 and `bits`, the random ones of its rounding as uint64, and gives (result, flags). They are the functions
that the loops of `loops` call for each element.
"""

import numba
import numpy as np

from . import jit, loops
from .carrier import decode
from .compile_cache import CompileCache
from .jit import float_bits
from .prng import bits_at, unit_fraction


def rounded(operation, way, unusual, payloads, source, target, extra, width):
    """An operation that rounds; `width` random bits for each, 0 under a deterministic mode."""
    element, settled = loops._element(operation, way, unusual, payloads), loops._settled(operation)
    draws, at_once = width > 0, operation == "round_to_integral"

    @jit.kernel
    def apply(a, b, c, bits):
        random = target.zero
        if draws:
            random = unit_fraction(bits, width)
            if not at_once:
                random, _ = settled(a, b, c, extra, target.zero, random, source, target)
        code, raised, _ = element(a, b, c, extra, random, source, target)
        return code, raised

    return apply


def compared(relation, signals_all, source):
    """A comparison: whether the relation holds; `signals_all`: whether any NaN signals."""
    compare = loops._compared(relation)

    @jit.kernel
    def apply(a, b, c, bits):
        return compare(a, b, source, signals_all)

    return apply


def extreme(largest, number, source, target):
    """The lesser or greater code."""
    choose = loops._extreme(largest, number)

    @jit.kernel
    def apply(a, b, c, bits):
        return choose(a, b, source, target)

    return apply


def integer(source, target, limits, width):
    """An integer; `limits` as `loops.to_integer` has them."""
    convert, draws = loops._integer(width > 0), width > 0
    lowest, bound, nan_result, low_result, high_result, exact = limits

    @jit.kernel
    def apply(a, b, c, bits):
        random = unit_fraction(bits, width) if draws else 0.0
        return convert(a, random, source, target, lowest, bound, nan_result, low_result, high_result, exact)

    return apply


@jit.kernel
def nothing(a, b, c, bits):
    """The code as it came, without flags."""
    return a, 0


# -- operands and results ----------------------------------------------------------------------------------------------


def code_of(width, message):
    """An integer as a code; what is none is refused."""
    limit = 1 << width

    @jit.kernel
    def enter(x):
        code = np.int64(x)
        if code < 0 or code >= limit:
            raise ValueError(message)
        return code

    return enter


def code_of_value(to_code, source, layout, message):
    """The code of a number that the format has; others are refused.

    `layout` are fraction bits, bias, code of the largest number, the least exponent of a normal number, and the bit of the sign, 0 if there
    is none: normal numbers are moved, all others rounded by `to_code`, flags no matter, and compared.
    """
    fraction_bits, bias, largest, lowest, sign = layout
    lost, beside = (1 << 52 - fraction_bits) - 1, 52 - fraction_bits

    @jit.kernel
    def enter(x):
        value = np.float64(x)
        found = np.int64(float_bits(value))
        magnitude = found & np.int64(0x7FFFFFFFFFFFFFFF)
        code = (magnitude >> beside) - ((1023 - bias) << fraction_bits)
        if (magnitude & lost) == 0 and magnitude >= lowest and code <= largest and (found >= 0 or sign != 0):
            return code | (sign if found < 0 else 0)
        rounded_code, _ = to_code(found, found, found, np.uint64(0))
        back = decode(np.int64(rounded_code), source)
        if back != value and (back == back or value == value):
            raise ValueError(message)
        return np.int64(rounded_code)

    return enter


@jit.kernel
def any_number(x):
    """A float64 as the bits that `convert_wide` reads."""
    return np.int64(float_bits(np.float64(x)))


def random_of(width, message):
    """Random bits handed in; more than `width` are refused."""

    @jit.kernel
    def enter(bits):
        found = np.uint64(bits)
        if found >> np.uint64(width) != 0:
            raise ValueError(message)
        return found

    return enter


def result_of(kind):
    """A result as a number of NumPy's type `kind`."""

    @jit.kernel
    def leave(code):
        return kind(np.int64(code))

    return leave


def value_of(source):
    """The value of a code."""

    @jit.kernel
    def leave(code):
        return decode(np.int64(code), source)

    return leave


# -- functions ---------------------------------------------------------------------------------------------------------


def function(apply, count, enter, leave, flagged, drawing, handed, address):
    """What compiled code calls: `count` operands, then `drawing`: "", "bits" (`handed` checks them) or "address" (of key and width `address`)."""
    key, width = address

    @jit.kernel
    def finish(a, b, c, bits):
        code, raised = apply(a, b, c, bits)
        if flagged:
            return leave(code), np.uint8(raised)
        return leave(code)

    @jit.kernel
    def drawn_at(stream, position):
        if position < 0 or position >= 1 << 62:
            raise ValueError("position must be 0 to 2^62 - 1")
        return bits_at(np.uint64(position), np.uint64(key), np.uint64(stream), width)

    none = np.uint64(0)

    def one(a):
        x = enter(a)
        return finish(x, x, x, none)

    def two(a, b):
        x, y = enter(a), enter(b)
        return finish(x, y, y, none)

    def three(a, b, c):
        return finish(enter(a), enter(b), enter(c), none)

    def one_with(a, bits):
        x = enter(a)
        return finish(x, x, x, handed(bits))

    def two_with(a, b, bits):
        x, y = enter(a), enter(b)
        return finish(x, y, y, handed(bits))

    def three_with(a, b, c, bits):
        return finish(enter(a), enter(b), enter(c), handed(bits))

    def one_at(a, stream, position):
        x = enter(a)
        return finish(x, x, x, drawn_at(stream, position))

    def two_at(a, b, stream, position):
        x, y = enter(a), enter(b)
        return finish(x, y, y, drawn_at(stream, position))

    def three_at(a, b, c, stream, position):
        return finish(enter(a), enter(b), enter(c), drawn_at(stream, position))

    made = {"": (one, two, three), "bits": (one_with, two_with, three_with), "address": (one_at, two_at, three_at)}
    return made[drawing][count - 1]


def callable_from_compiled(made):
    """A function as compiled code calls it: without the interpreter lock, IEEE division, whatever the caller's options are."""
    if jit.DISABLED:

        def interpreted(*arguments):
            with np.errstate(all="ignore"):
                return made(*arguments)

        return interpreted
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=False, boundscheck=False)(made)
    dispatcher._cache = CompileCache(made, jit.SOURCE_DIGEST)
    return dispatcher
