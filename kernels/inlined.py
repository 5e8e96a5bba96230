"""Operations as functions that other compiled code calls: one format and one rule, as numbers in the code.

Each takes codes as int64 and `bits`, the random ones of its rounding as uint64, and gives (result, flags). They are the functions
that the loops of `loops` call for each element.
"""

import numpy as np
from numba import types
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from . import jit, loops
from .carrier import decode, integer_to_odd
from .compile_cache import CompileCache
from .jit import float_bits
from .linking import interruptible
from .prng import bits_at, unit_fraction


def rounded(operation, way, source, target, extra, width):
    """An operation that rounds; `width` random bits for each, 0 under a deterministic mode."""
    element, draws = loops.rounded(operation, way), width > 0

    @jit.kernel
    def apply(a, b, c, bits):
        random = unit_fraction(bits, width) if draws else target.zero
        return element(a, b, c, extra, target.zero, random, source, target)

    return apply


def encoded(way, source, target, width):
    """The code of a number, which comes as `exact_number` gives it."""
    element, draws = loops.rounded("convert_wide", way), width > 0

    @jit.kernel
    def apply(a, b, c, bits):
        value, more = a
        code = np.int64(float_bits(value))
        random = unit_fraction(bits, width) if draws else target.zero
        return element(code, code, code, 0.0, more, random, source, target)

    return apply


def by_element(element, known, source, target, width):
    """An element of `comparisons`, which does not round to a format: a comparison, a choice, or an integer."""
    draws = width > 0

    @jit.kernel
    def apply(a, b, c, bits):
        random = unit_fraction(bits, width) if draws else 0.0
        return element(a, b, c, known, random, width, source, target)

    return apply


@jit.kernel
def nothing(a, b, c, bits):
    """The code as it came, without flags."""
    return a, 0


# -- operands and results ----------------------------------------------------------------------------------------------


def taking(numbers, message, enter):
    """A kernel for integers of 64 bits, or any `numbers`: what else comes is a TypeError, in compiled code while that is compiled."""
    kinds = (types.Integer, types.Boolean, types.Float) if numbers else types.Integer
    accepted = (int, np.integer, np.bool_, float, np.floating) if numbers else (int, np.integer)

    def entered(x):
        if not isinstance(x, accepted) or (isinstance(x, bool) and not numbers) or getattr(x, "itemsize", 0) > 8:
            raise TypeError(message + ", got " + type(x).__name__)
        if isinstance(x, int) and not -(2**63) <= x < 2**64:
            raise ValueError(message + ", got one of more than 64 bits")
        return enter(x)

    @overload(entered, jit_options=jit.KERNEL)
    def compiled(x):
        if not isinstance(x, kinds) or x is types.float16:
            raise TypeError(f"{message}, got {x}")
        return lambda x: enter(x)

    return entered


def code_of_value(to_code, source, layout, message):
    """The code of a number that the format has; others are refused.

    `layout` are fraction bits, bias, code of the largest number, the least exponent of a normal number, and the bit of the sign, 0 if there
    is none: normal numbers are moved, all others rounded by `to_code`, flags no matter, and compared.
    """
    fraction_bits, bias, largest, lowest, sign = layout
    lost, beside = (1 << 52 - fraction_bits) - 1, 52 - fraction_bits

    @jit.kernel
    def enter(x):
        value, _ = exact_number(x)
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

    return taking(True, message, enter)


def exact_number(x):
    """A number as float64, an integer of more than 53 bits rounded to odd; and what that lacks."""
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return integer_to_odd(np.int64(x) if x < 0 else np.uint64(x), bool(x < 0))
    return np.float64(x), 0.0


@overload(exact_number, jit_options=jit.KERNEL)
def _exact_number(x):
    if isinstance(x, types.Integer) and x.bitwidth == 64:
        signed = x.signed
        return lambda x: integer_to_odd(x, signed)
    return lambda x: (np.float64(x), 0.0)


def integer_below(limit, kind, message):
    """An integer from 0 on as one of NumPy's type `kind`: below `limit`, or any of 64 bits if that is 0."""

    @jit.kernel
    def enter(x):
        if x < 0 or (limit != 0 and x >= limit):
            raise ValueError(message)
        return kind(x)

    return taking(False, message, enter)


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

    stream_of = integer_below(0, np.uint64, "stream must be an integer from 0 to 2^64 - 1")
    position_of = integer_below(1 << 62, np.uint64, "position must be an integer from 0 to 2^62 - 1")

    @jit.kernel
    def drawn_at(stream, position):
        return bits_at(position_of(position), np.uint64(key), stream_of(stream), width)

    @jit.kernel
    def one(a, bits):
        x = enter(a)
        return finish(x, x, x, bits)

    @jit.kernel
    def two(a, b, bits):
        x, y = enter(a), enter(b)
        return finish(x, y, y, bits)

    @jit.kernel
    def three(a, b, c, bits):
        return finish(enter(a), enter(b), enter(c), bits)

    none = np.uint64(0)
    made = {
        ("", 1): lambda a: one(a, none),
        ("", 2): lambda a, b: two(a, b, none),
        ("", 3): lambda a, b, c: three(a, b, c, none),
        ("bits", 1): lambda a, bits: one(a, handed(bits)),
        ("bits", 2): lambda a, b, bits: two(a, b, handed(bits)),
        ("bits", 3): lambda a, b, c, bits: three(a, b, c, handed(bits)),
        ("address", 1): lambda a, stream, position: one(a, drawn_at(stream, position)),
        ("address", 2): lambda a, b, stream, position: two(a, b, drawn_at(stream, position)),
        ("address", 3): lambda a, b, c, stream, position: three(a, b, c, drawn_at(stream, position)),
    }
    return made[drawing, count]


def interpreted(function):
    """A function in plain Python: the same bits, slowly."""

    def call(*arguments):
        with np.errstate(all="ignore"):
            return function(*arguments)

    return call


class Function(CPUDispatcher):
    """A compiled function, which Python calls too."""

    def __call__(self, *arguments):
        """What Python gets."""
        try:
            return super().__call__(*arguments)
        except OverflowError:  # Numba takes every Python integer for one of int64, once it knows these
            return interpreted(self.py_func)(*arguments)

    def _compile_for_args(self, *arguments, **named):
        """What Numba asks for where it does not know the types of arguments yet."""
        plain = interpreted(self.py_func)
        plain(*arguments)  # says in Python's words what is refused
        if any(isinstance(x, np.float16) for x in arguments):  # Numba has no arithmetic of them
            return plain
        with interruptible():
            return super()._compile_for_args(*arguments, **named)


def callable_from_compiled(made):
    """A function as compiled code calls it: without the interpreter lock, IEEE division, whatever the caller's options are."""
    if jit.DISABLED:
        return interpreted(made)
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "fastmath": False, "boundscheck": False}
    function = Function(made, targetoptions=options)
    function._cache = CompileCache(made, jit.SOURCE_DIGEST)
    return function
