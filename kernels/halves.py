"""Elements of `blocks`: halves, rounded by the CPU's own conversions (x86: F16C; Armv8-A: FCVT)."""

from functools import partial

from .elements import (
    INFINITE,
    MAGNITUDE,
    NEAR,
    NEVER,
    TINY_INEXACT,
    converted_double,
    exact,
    half_number,
    of_sign,
    one_where,
)
from .sums.language import WORD


def odd(bits, lost, signs):
    """float32 of an exact result that rounds as it does: its last bit says whether anything is lost."""
    return (bits | one_where(lost, bits)).floats()


def _near(operation, from_double):
    """near(known, a, b, c): (float32 nearest the exact result, numbers that are not zero where they differ).

    float32 has 24 >= 2*11 + 2 bits, so rounding there first is innocuous. Of fma and float64 it is an odd number that rounds as the result does.
    """
    if operation == "convert":
        return lambda known, a, b, c: (odd(*converted_double(known, a)) if from_double else a.floats(), NEVER)

    def near(known, *codes):
        s, error, *side = NEAR[operation](*(half_number(x, known) for x in codes))
        return (odd(*exact(s, error, *side)), NEVER) if operation == "fma" else (s, error)

    return near


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


def cut(s, error, known, to_odd=False):
    """The same of exact results toward zero, or `to_odd`: modes that treat both signs alike, and take nothing to infinity by themselves.

    Bits and codes of one sign are compared and counted as they are.
    """
    bits = s.bits()
    near, back = through_half(s)
    kept, inexact = near - one_where(back > bits, near), back.apart_from(bits)
    kept = kept | one_where(inexact, kept) if to_odd else kept
    magnitude = bits & MAGNITUDE
    return bounded(kept, s, inexact, magnitude < known.tiny_positive, magnitude >= known.above_largest, known)


MODES = {"nearest": rounded, "toward_zero": cut, "to_odd": partial(cut, to_odd=True)}
"""Way -> function of float32 near the result, or of products alone."""


def cpu(operation, way, calm, from_double):
    """Halves that the CPU rounds; of conversions `from_double` they come from float64, not float32."""
    near, plain = _near(operation, from_double), calm or operation == "add"
    made = rounded_sum if way == "nearest" and plain else MODES[way]

    def element(known, a, b, c, random):
        return *made(*near(known, a, b, c), known), NEVER

    return element
