"""Elements of `blocks`: halves, rounded by the CPU's own conversions (x86: F16C; Armv8-A: FCVT)."""

from .elements import (
    INFINITE,
    MAGNITUDE,
    NEVER,
    TINY_INEXACT,
    converted_double,
    exact_fused,
    half_number,
    of_sign,
    one_where,
    quotient_and_rest,
    root_and_rest,
)
from .steps import sum_and_error
from .sums.language import WORD


def odd(bits, lost, signs):
    """float32 of an exact result that rounds as it does: its last bit says whether anything is lost."""
    return (bits | one_where(lost, bits)).floats()


def _converted(known, a, b, c):
    """(float32 nearest the exact result, numbers that are not zero where they differ)."""
    return a.floats(), NEVER


def _narrowed(known, a, b, c):
    """The same of float64."""
    return odd(*converted_double(known, a)), NEVER


def _sum(x, y, z):
    """The same of x + y. float32 has 24 >= 2*11 + 2 bits, so rounding there first is innocuous, as for all but fma."""
    return sum_and_error(x, y)


def _difference(x, y, z):
    """The same of x - y."""
    return sum_and_error(x, -y)


def _product(x, y, z):
    """The same of x * y."""
    return x * y, NEVER


def _quotient(x, y, z):
    """The same of x / y."""
    return quotient_and_rest(x, y)


def _root(x, y, z):
    """The same of a square root."""
    return root_and_rest(x)


def _fused(x, y, z):
    """float32 whose last bit says whether x * y + z is between it and another."""
    return odd(*exact_fused(x, y, z)), NEVER


NEAR = {"add": _sum, "sub": _difference, "mul": _product, "div": _quotient, "sqrt": _root, "fma": _fused}


def _near(operation, from_double):
    if operation == "convert":
        return _narrowed if from_double else _converted
    return lambda known, *codes: NEAR[operation](*(half_number(x, known) for x in codes))


def through_half(s):
    """(codes, the bits of what they stand for)."""
    code = s.halves()
    return code.long(WORD), code.singles("half").bits()


def apart(back, s, error):
    """Where a result is inexact."""
    differs = back.apart_from(s.bits())
    return differs if error is NEVER else differs | error.nonzero()


def rounded_sum(s, error, known):
    """(codes, flags) of results none of which is tiny and inexact, or overflows."""
    code, back = through_half(s)
    return code, one_where(apart(back, s, error), code)


def bounded(code, s, inexact, tiny, over, known):
    """(codes, flags) of any results."""
    flags = (inexact & tiny).choose(code.all_of(TINY_INEXACT), one_where(inexact, code))
    beyond = of_sign(known, "overflow", s.bits() < 0)
    return over.choose(beyond, code), over.choose(known.overflow_flags, flags)


def rounded(s, error, known):
    """The same to nearest even."""
    code, back = through_half(s)
    tiny, over = (s.bits() & MAGNITUDE) < known.tiny_positive, (back & MAGNITUDE).equals(INFINITE)
    return bounded(code, s, apart(back, s, error), tiny, over, known)


def stepped(s, error, known):
    """The same of exact results under another deterministic mode: the nearest half, or the one before or after it."""
    bits = s.bits()
    negative, magnitude = bits < 0, bits & MAGNITUDE
    tie = of_sign(known, "ties", negative)
    beside = (magnitude + tie.at_most_signed(0)).at_least_signed(0) | tie & 1
    near, back = through_half(beside.floats())
    kept = near + (back < magnitude).choose(of_sign(known, "away", negative), 0)
    kept = kept - (back > magnitude).choose(of_sign(known, "toward", negative), 0)
    inexact = back.apart_from(magnitude)
    kept = kept | inexact.choose(known.to_odd, 0)
    tiny = magnitude < of_sign(known, "tiny", negative)
    over = (kept > known.largest) | (magnitude >= known.above_largest)
    return bounded(negative.choose(kept | known.sign, kept), s, inexact, tiny, over, known)


def cut(s, error, known, to_odd=False):
    """The same toward zero, or `to_odd`: modes that treat both signs alike, and take nothing to infinity by themselves.

    Bits and codes of one sign are compared and counted as they are.
    """
    bits = s.bits()
    near, back = through_half(s)
    kept, inexact = near - one_where(back > bits, near), back.apart_from(bits)
    kept = kept | one_where(inexact, kept) if to_odd else kept
    magnitude = bits & MAGNITUDE
    return bounded(kept, s, inexact, magnitude < known.tiny_positive, magnitude >= known.above_largest, known)


def cut_to_odd(s, error, known):
    """The same to odd."""
    return cut(s, error, known, True)


MODES = {"nearest": rounded, "toward_zero": cut, "to_odd": cut_to_odd, "selected": stepped}
"""Way -> function of float32 near the result; `selected` serves all but nearest even, and like others exact ones."""


def cpu(operation, way, calm, from_double):
    """Halves that the CPU rounds; of conversions `from_double` they come from float64, not float32."""
    near, plain = _near(operation, from_double), calm or operation in ("add", "sub")
    made = rounded_sum if way == "nearest" and plain else MODES[way]

    def element(known, a, b, c, random):
        return *made(*near(known, a, b, c), known), NEVER

    return element
