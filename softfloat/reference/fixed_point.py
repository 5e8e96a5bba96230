"""The oracle's first try at powers and at logarithms of sums: integers, with a bound of their error. What it cannot settle is left to mpmath.

Numbers are counted in 2^-BITS; tables are mpmath's, to nearest.

>>> from fractions import Fraction
>>> [float(power(Fraction(3, 2), Fraction(1, 4))), float(log_of_sum(Fraction(1), Fraction(-1, 2), natural=False))]
[1.1066819197003215, 1.771553303163612]
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from mpmath import libmp

from softfloat.reference.values import SETTLED_BITS, times_two_to

__all__ = ["angle", "log_of_sum", "power"]

BITS = 136
ONE = 1 << BITS
ERROR = 12
"""Values of `_exp2` and `_log2` are off by less than so many 2^-BITS; each says why."""
_COARSE, _FINE = BITS - 9, BITS - 18  # the last bits that the first and the second table know
_MASK = (1 << 9) - 1


class _Tables(NamedTuple):
    """Numbers that steps take, each off by at most 1/2."""

    log_2: int
    over_log_2: int
    powers: list[int]  # 2^(i / 512)
    fine_powers: list[int]  # 2^(j / 2^18)
    factors: list[int]  # C next to 2^12 / (1 + (i + 1/2) / 512)
    logarithms: list[int]  # -log2(C / 2^12)
    fine_logarithms: list[int]  # -log2(1 - j / 2^18), for j from -_FARTHEST to _FARTHEST
    series: list[int]  # 1 / (n log(2)), the seventh first
    half_turn: int  # pi
    arctangents: list[int]  # atan(i / 512)
    odd_series: list[int]  # (-1)^n / (2n + 1), the seventh first


_FARTHEST = 330


@cache
def _tables() -> _Tables:
    precision = BITS + 40

    def rounded(x: Any) -> int:
        return int(libmp.to_int(libmp.mpf_shift(x, BITS), "n"))

    def logarithm(x: Fraction) -> Any:
        """-log(x) / log(2)."""
        found = libmp.mpf_log(libmp.from_rational(x.numerator, x.denominator, precision), precision)
        return libmp.mpf_neg(libmp.mpf_div(found, log_2, precision))

    def exponential(x: Fraction) -> Any:
        return libmp.mpf_exp(
            libmp.mpf_mul(log_2, libmp.from_rational(x.numerator, x.denominator, precision)), precision
        )

    log_2 = libmp.mpf_ln2(precision)
    factors = [round(Fraction(2**13 * 512, 2 * (512 + i) + 1)) for i in range(512)]
    return _Tables(
        rounded(log_2),
        rounded(libmp.mpf_div(libmp.fone, log_2, precision)),
        [rounded(exponential(Fraction(i, 512))) for i in range(512)],
        [rounded(exponential(Fraction(i, 2**18))) for i in range(512)],
        factors,
        [rounded(logarithm(Fraction(c, 2**12))) for c in factors],
        [rounded(logarithm(1 - Fraction(j, 2**18))) for j in range(-_FARTHEST, _FARTHEST + 1)],
        [
            rounded(libmp.mpf_div(libmp.fone, libmp.mpf_mul_int(log_2, n, precision), precision))
            for n in range(7, 0, -1)
        ],
        rounded(libmp.mpf_pi(precision)),
        [rounded(libmp.mpf_atan(libmp.from_rational(i, 512, precision), precision)) for i in range(513)],
        [round(Fraction((-1) ** n * ONE, 2 * n + 1)) for n in range(6, -1, -1)],
    )


def _exp2(x: int) -> int:
    """2^x, 0 <= x < 1.

    u = x' log(2) < 2^-18.5 is cut, and off by 1.01; six terms of its series lack 2^-141 and are cut, the last counting: off by 2.1. The
    product of the tables' numbers, below 2.003, is off by 2.51 and so the whole by 2.51 + 2.003 * 2.1 + 1 < ERROR.
    """
    known = _tables()
    u = (x & (1 << _FINE) - 1) * known.log_2 >> BITS
    s = ONE + u // 6
    s = ONE + (u * s >> BITS) // 5
    s = ONE + (u * s >> BITS) // 4
    s = ONE + (u * s >> BITS) // 3
    s = ONE + (u * s >> BITS >> 1)
    s = ONE + (u * s >> BITS)
    table = known.powers[x >> _COARSE] * known.fine_powers[x >> _FINE & _MASK] >> BITS
    return table * s >> BITS


def _log2(x: int) -> int:
    """log2(x), 1 <= x < 2.

    Times C / 2^12 it is within 2^-9.6 of 1, times 1 - j / 2^18 then, |j| <= 323, within 2^-18 as 1 + z; both are cut, which is 3.1 in
    the logarithm. Seven terms of z's series lack 2^-147 and are cut, off by 1.1; the tables by 1: less than ERROR.
    """
    known = _tables()
    i = (x >> _COARSE) - 512
    near = x * known.factors[i] >> 12
    j = (near - ONE + (1 << _FINE - 1)) >> _FINE
    z = near - (near * j >> 18) - ONE
    s, *terms = known.series
    for term in terms:
        s = term - (s * z >> BITS)
    return known.logarithms[i] + known.fine_logarithms[j + _FARTHEST] + (s * z >> BITS)


def _settled(found: int, error: int, exponent: int) -> Fraction | None:
    """A number between the same neighbours of SETTLED_BITS bits as all within the error of what was found; None if there is none."""
    size = abs(found)
    beyond = size.bit_length() - SETTLED_BITS
    if beyond <= 0 or not error < size & ((1 << beyond) - 1) < (1 << beyond) - error:
        return None
    middle = 2 * (size >> beyond) + 1
    return times_two_to(-middle if found < 0 else middle, exponent - BITS + beyond - 1)


def angle(y: Fraction, x: Fraction) -> Fraction | None:
    """The angle of the point (x, y), as settled; y > 0, x not 0, denominators powers of two. None: unknown.

    Of a quotient of at most 1, next to i / 512, the tangent of the rest is z = (q - i / 512) / (1 + q i / 512), below 2^-10, and cut. Seven
    terms of z's series lack 2^-153 and are cut, off by 1.1; the table and pi by 1/2: less than ERROR.
    """
    known = _tables()
    (above, below), (beside, under) = y.as_integer_ratio(), x.as_integer_ratio()
    high, wide = above * under, abs(beside) * below
    small, large = (high, wide) if high <= wide else (wide, high)
    i = (small * 1024 + large) // (2 * large)
    z = (512 * small - i * large << BITS) // (512 * large + i * small)
    square = z * z >> BITS
    s, *terms = known.odd_series
    for term in terms:
        s = term + (s * square >> BITS)
    found = known.arctangents[i] + (s * z >> BITS)
    if high > wide:
        found = (known.half_turn >> 1) - found
    return _settled(known.half_turn - found if beside < 0 else found, ERROR, 0)


def power(x: Fraction, y: Fraction) -> Fraction | None:
    """x^y, irrational, as settled; x > 0, denominators powers of two. None: unknown."""
    numerator, denominator = x.as_integer_ratio()
    above, below = y.as_integer_ratio()
    length = numerator.bit_length() - 1
    shift = BITS - length
    if shift < 0:
        return None  # longer than any operand
    logarithm = _log2(numerator << shift) + (length + 1 - denominator.bit_length() << BITS)
    total = logarithm * above >> below.bit_length() - 1
    exponent = total >> BITS
    if not -1000 < exponent < 1000:
        return None
    # the logarithm's error, times y, the cut, times the slope of 2^x, at most 1.4, and its own
    error = 2 * (ERROR * (abs(above) // below + 1) + 1) + ERROR
    return _settled(_exp2(total - (exponent << BITS)), error, exponent)


def log_of_sum(high: Fraction, less: Fraction, natural: bool) -> Fraction | None:
    """log(b^high + b^(high + less)) to the base b, e if `natural`, else 2, as settled; less <= 0, denominators powers of two. None: unknown.

    The power, at most 1, is off by ERROR, its own cut, those of its exponent, and, if `natural`, by what 1 / log(2) is off, d times, which
    counts less than once, as d 2^-d < 1: 15. The logarithm, of slope below 1.5, is off by 1.5 times that and ERROR, and high by 1.
    """
    known = _tables()
    above, below = less.as_integer_ratio()
    exponent = (above << BITS) >> below.bit_length() - 1
    if natural:
        exponent = exponent * known.over_log_2 >> BITS
    whole = exponent >> BITS
    total = ONE + (_exp2(exponent - (whole << BITS)) >> -whole)
    if total >= 2 * ONE:
        return None
    rest = _log2(total)
    if natural:
        rest = rest * known.log_2 >> BITS
    above, below = high.as_integer_ratio()
    return _settled(((above << BITS) >> below.bit_length() - 1) + rest, 4 * ERROR, 0)
