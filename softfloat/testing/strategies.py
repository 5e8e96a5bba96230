"""Hypothesis strategies for codes, operands and environments. Everything is drawn by construction; nothing is filtered away.

>>> from hypothesis import given
>>> from softfloat import bits
>>> @given(near_ties("float16", "mul"))
... def test_my_multiplier(operands):
...     assert len(operands) == 2
>>> test_my_multiplier()
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as extra
except ImportError:
    raise ImportError('softfloat.testing.strategies needs hypothesis: pip install "numba-softfloat[testing]"') from None

from softfloat import reference
from softfloat.arrays import SoftArray, from_codes
from softfloat.environments import Environment, Overflow, Rounding, Tininess
from softfloat.formats import ROSTER, Format, check_format
from softfloat.testing.vectors.distributions import edges as edge_codes

__all__ = [
    "TIE_OPERATIONS",
    "arrays",
    "codes",
    "edges",
    "environments",
    "finite",
    "formats",
    "matrices",
    "near_ties",
    "normal",
    "roundings",
    "soft_arrays",
    "subnormal",
    "values",
]

Strategy = st.SearchStrategy[Any]


# -- codes -----------------------------------------------------------------------------------------------------------


def _signed(magnitudes: Strategy, fmt: Format) -> Strategy:
    """Codes with either sign."""
    if not fmt.signed:
        return magnitudes
    negative = st.booleans()
    zero_is_alone = not fmt.signed_zero
    return st.builds(
        lambda magnitude, minus: (
            magnitude | fmt.sign_bit if minus and not (magnitude == 0 and zero_is_alone) else magnitude
        ),
        magnitudes,
        negative,
    )


def codes(fmt: Format | str) -> Strategy:
    """Any code of a format, the edges often: int."""
    fmt = check_format(fmt, wide=True)
    return st.one_of(edges(fmt), st.integers(0, (1 << fmt.bits) - 1))


def edges(fmt: Format | str) -> Strategy:
    """Codes at and next to zero, the smallest and largest numbers, powers of two, infinities and NaNs."""
    return st.sampled_from(edge_codes(check_format(fmt, wide=True)).tolist())


def finite(fmt: Format | str) -> Strategy:
    """Codes of zeros and of finite numbers."""
    fmt = check_format(fmt, wide=True)
    return _signed(st.integers(0, fmt.max_code), fmt)


def normal(fmt: Format | str) -> Strategy:
    """Codes of normal numbers."""
    fmt = check_format(fmt, wide=True)
    return _signed(st.integers(fmt.smallest_normal_code, fmt.max_code), fmt)


def subnormal(fmt: Format | str) -> Strategy:
    """Codes of subnormal numbers.

    Raises
    ------
    ValueError
        If the format has none.
    """
    fmt = check_format(fmt, wide=True)
    if fmt.smallest_subnormal_code == fmt.smallest_normal_code:
        raise ValueError(f"fmt must have subnormal numbers, and {fmt} has none")
    return _signed(st.integers(fmt.smallest_subnormal_code, fmt.smallest_normal_code - 1), fmt)


def values(fmt: Format | str) -> Strategy:
    """Finite numbers of a format as Python floats."""
    fmt = check_format(fmt, wide=True)
    return finite(fmt).map(lambda code: _float(code, fmt))


def _float(code: int, fmt: Format) -> float:
    value = reference.decode(code, fmt)
    return math.copysign(float(value.magnitude), -1.0 if value.negative else 1.0)


# -- arrays ----------------------------------------------------------------------------------------------------------


def arrays(fmt: Format | str, shape: Any = None, elements: Strategy | None = None) -> Strategy:
    """Arrays of codes.

    Parameters
    ----------
    fmt : Format or str
    shape : int, tuple or strategy, optional
        Default: up to three axes of up to eight.
    elements : strategy, optional
        Of codes; default `codes(fmt)`.
    """
    fmt = check_format(fmt, wide=True)
    wanted = extra.array_shapes(max_dims=3, max_side=8) if shape is None else shape
    return extra.arrays(fmt.dtype, wanted, elements=codes(fmt) if elements is None else elements)


def matrices(fmt: Format | str, rows: Any = None, columns: Any = None, elements: Strategy | None = None) -> Strategy:
    """Matrices of codes; `rows` and `columns` are integers or strategies of them, default 1 to 8, elements finite."""
    sides = [
        st.integers(1, 8) if n is None else n if isinstance(n, st.SearchStrategy) else st.just(n)
        for n in (rows, columns)
    ]
    shape = st.tuples(*sides)
    return arrays(fmt, shape, finite(fmt) if elements is None else elements)


def soft_arrays(fmt: Format | str, shape: Any = None, elements: Strategy | None = None) -> Strategy:
    """SoftArrays; parameters as in `arrays`."""
    fmt = check_format(fmt, wide=True)

    def made(found: Any) -> SoftArray:
        return from_codes(found, fmt)

    return arrays(fmt, shape, elements).map(made)


# -- formats and environments ----------------------------------------------------------------------------------------


def formats(names: Sequence[str] | None = None) -> Strategy:
    """Formats of the roster, or those of the given names."""
    return st.sampled_from([check_format(name, wide=True) for name in (ROSTER if names is None else names)])


def roundings(stochastic: bool = False) -> Strategy:
    """Rounding modes; the deterministic ones unless told otherwise."""
    return st.sampled_from([mode for mode in Rounding if stochastic or not mode.draws])


def environments(**settings: Any) -> Strategy:
    """Environments of every deterministic rounding, overflow and tininess, with and without flushing; settings named are fixed."""
    drawn = {
        "rounding": roundings(),
        "overflow": st.sampled_from([Overflow.INFINITY, Overflow.SATURATE]),
        "tininess": st.sampled_from(Tininess),
        "daz": st.booleans(),
        "ftz": st.booleans(),
    }
    return st.builds(Environment, **{**drawn, **{name: st.just(value) for name, value in settings.items()}})


# -- operands whose result is at a tie, or next to one ---------------------------------------------------------------


def _midpoints(fmt: Format) -> Strategy:
    """Numbers half way between two normal neighbours, clear of the range's ends: (odd significand of p + 1 bits, exponent of its last bit)."""
    low, high = fmt.emin + 2, fmt.emax - 2
    if low > high:
        raise ValueError(
            f"fmt must have at least five binades of normal numbers, and {fmt} has {fmt.emax - fmt.emin + 1}"
        )
    significands = st.integers(1 << (fmt.p - 1), (1 << fmt.p) - 1).map(lambda n: 2 * n + 1)
    return st.tuples(significands, st.integers(low, high).map(lambda e: e - fmt.p))


def _code(x: Fraction, fmt: Format, rounding: str = "nearest_even") -> int:
    return int(reference.encode(x, fmt, rounding=rounding)[0])


def _moved(code: int, steps: int, fmt: Format) -> int:
    """A code some steps away, not beyond the finite ones."""
    magnitude = code & ~fmt.sign_bit
    return (code & fmt.sign_bit) | min(max(magnitude + steps, 0), fmt.max_code)


STEPS = st.integers(-1, 1)


def _adding(fmt: Format, minus: bool) -> Strategy:
    """a + b: a any number, b half of its last place, or next to that."""

    def made(middle: tuple[int, int], steps: int, negative: bool) -> tuple[int, int]:
        significand, last = middle
        a = _code(Fraction(significand - 1) * Fraction(2) ** last, fmt)
        b = _moved(_code(Fraction(2) ** last, fmt), steps, fmt)
        sign = fmt.sign_bit if negative else 0
        return a ^ sign, b ^ sign ^ (fmt.sign_bit if minus else 0)

    return st.builds(made, _midpoints(fmt), STEPS, st.booleans())


SMALL_ODD = (1, 3, 5, 7, 9, 11, 13, 15)


def _significand(n: int, fmt: Format, shift: int = 0) -> int:
    """The code of an integer of at most p bits, brought to 1 <= x < 2, times 2^shift."""
    return _code(Fraction(n, 1 << (n.bit_length() - 1)) * Fraction(2) ** shift, fmt)


def _multiplying(fmt: Format) -> Strategy:
    """a * b: odd factors whose product has one bit more than the format; or whose dropped bits are 2^(p-1) + r for a small r."""
    p = fmt.p
    if p < 3:
        raise ValueError(f"fmt must have at least 3 bits of precision, and {fmt} has {p}")

    def factors(i: int) -> Strategy:
        return st.integers(1 << (i - 1), (1 << i) - 1).map(lambda x: x | 1)

    def partner(a: int) -> Strategy:
        low, high = -((-1 << p) // a) | 1, (((2 << p) - 1) // a - 1) | 1  # odd, and at least one: a is below 2^(p-1)
        return st.tuples(st.just(a), st.integers(low // 2, high // 2).map(lambda x: 2 * x + 1))

    def miss(a: int, first: int) -> tuple[int, int]:
        inverse = pow(a, -1, 1 << p)
        for r in (*SMALL_ODD[first:], *SMALL_ODD[:first]):
            for dropped in ((1 << (p - 1)) + r, (1 << (p - 1)) - r):
                b = dropped * inverse % (1 << p)
                if a * b >> (2 * p - 1):  # 2p bits: as many are dropped as are kept
                    return a, b
        return 3, -((-1 << p) // 3) | 1

    ties = st.integers(2, p - 1).flatmap(factors).flatmap(partner)
    tops = st.integers(3 << (p - 2), (1 << p) - 1).map(lambda x: x | 1)
    misses = st.builds(miss, tops, st.integers(0, len(SMALL_ODD) - 1))
    exponents = st.integers(-2, 2) if fmt.emin <= -4 and fmt.emax >= 4 else st.just(0)

    def made(pair: tuple[int, int], shift: int, negative: bool) -> tuple[int, int]:
        a, b = pair
        x, y = _significand(a, fmt), _significand(b, fmt, shift)
        return (x ^ fmt.sign_bit if negative else x), y

    return st.builds(made, st.one_of(ties, misses), exponents, st.booleans())


def _dividing(fmt: Format) -> Strategy:
    """a / b = m + r/b, m an odd significand of p + 1 bits and r small: b = -r/m modulo 2^(p+1). No quotient is a tie."""
    p = fmt.p

    def made(m: int) -> tuple[int, int]:
        inverse = pow(m, -1, 2 << p)
        found = [(-r * inverse) % (2 << p) for r in SMALL_ODD]
        b = max(min(x, (2 << p) - x) for x in found)
        product = m * b
        a = (product + (1 << p)) >> (p + 1)
        return _significand(a, fmt), _significand(b, fmt)

    return st.integers(1 << (p - 1), (1 << p) - 1).map(lambda n: made(2 * n + 1))


def _rooting(fmt: Format) -> Strategy:
    """sqrt(a) next to m, an odd significand of p + 1 bits: m*m = c modulo 2^(p+2) for a small c. No root is a tie."""
    p = fmt.p
    reach = 1 << max(p // 2 - 2, 0)

    def made(c: int, shift: int) -> tuple[int]:
        root = 1
        for k in range(3, p + 2):  # one more bit of the root at a time
            if (root * root - c) >> k & 1:
                root ^= 1 << (k - 1)
        m = root if root >> p else (2 << p) - root  # both are roots; one has p + 1 bits
        a = (m * m - c) >> (p + 2)
        scale = Fraction(4) ** (shift - p // 2) * (1 if p % 2 == 0 else Fraction(1, 2))
        return (_code(a * scale, fmt),)

    return st.builds(made, st.integers(-reach, reach).map(lambda n: 8 * n + 1), st.integers(-1, 1))


def _fusing(fmt: Format) -> Strategy:
    """a * b + c: a product at a tie, and nothing, or next to nothing, added on either side."""
    smallest = fmt.smallest_subnormal_code
    tails = st.sampled_from([0, fmt.sign_bit, smallest, smallest | fmt.sign_bit])
    return st.builds(lambda pair, tail: (*pair, tail), _multiplying(fmt), tails)


TIE_OPERATIONS: dict[str, Callable[[Format], Strategy]] = {
    "add": lambda fmt: _adding(fmt, False),
    "sub": lambda fmt: _adding(fmt, True),
    "mul": _multiplying,
    "div": _dividing,
    "sqrt": _rooting,
    "fma": _fusing,
}
"""Operations that `near_ties` knows how to aim."""


def near_ties(fmt: Format | str, operation: str, source: Format | str | None = None) -> Strategy:
    """Operands whose exact result is half way between two numbers of the format, or the nearest there is to that.

    Parameters
    ----------
    fmt : Format or str
        Of the operands and the result. Signed, with some binades to spare.
    operation : str
        "add", "sub", "mul", "div", "sqrt", "fma", or "convert" from `source`.
    source : Format or str, optional
        For "convert": a format of more precision.

    Returns
    -------
    strategy of tuples of int
        Codes of the operands.

    Raises
    ------
    ValueError
        For other operations, and formats too small to aim in.
    """
    fmt = check_format(fmt, wide=True)
    if operation == "convert":
        if source is None or check_format(source, "source").p <= fmt.p:
            raise ValueError(f"source must be a format of more than {fmt.p} bits of precision, got {source}")
        wide = check_format(source)

        def made(middle: tuple[int, int], steps: int) -> tuple[int]:
            significand, last = middle
            return (_moved(_code(Fraction(significand) * Fraction(2) ** last, wide), steps, wide),)

        return st.builds(made, _midpoints(fmt), STEPS)
    if operation not in TIE_OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(TIE_OPERATIONS)} or convert, got {operation!r}")
    if not fmt.signed or not fmt.zero:
        raise ValueError(f"fmt must be signed and have a zero, and {fmt} is not")
    return TIE_OPERATIONS[operation](fmt)
