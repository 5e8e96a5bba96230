"""Values to any number of bits, by mpmath: precision and operands in, a number out. mpmath is imported at the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["Number", "libmp"]

Number: TypeAlias = tuple[Any, ...]
"""mpmath's: (sign, significand, exponent, bits of the significand)."""


def libmp() -> Any:
    """mpmath's functions of numbers."""
    import mpmath.libmp

    return mpmath.libmp


def named(name: str) -> Callable[..., Number]:
    return lambda precision, x: getattr(libmp(), name)(x, precision)


def exp(base: str) -> Callable[..., Number]:
    def value(precision: int, x: Number) -> Number:
        mp = libmp()
        return mp.mpf_exp(mp.mpf_mul(x, getattr(mp, base)(precision + 20), precision + 20), precision)

    return value


def log(base: str) -> Callable[..., Number]:
    def value(precision: int, x: Number) -> Number:
        mp = libmp()
        return mp.mpf_div(mp.mpf_log(x, precision + 10), getattr(mp, base)(precision + 10), precision)

    return value


def expm1(precision: int, x: Number) -> Number:
    mp = libmp()
    lost = max(0, -x[2] - x[3])  # bits before the first that is not that of 1
    return mp.mpf_sub(mp.mpf_exp(x, precision + 60 + lost), mp.fone, precision)


def log1p(precision: int, x: Number) -> Number:
    mp = libmp()
    return mp.mpf_log(mp.mpf_add(mp.fone, x), precision)


def cbrt(precision: int, x: Number) -> Number:
    mp = libmp()
    root = mp.mpf_cbrt(mp.mpf_abs(x), precision)
    return mp.mpf_neg(root) if x[0] else root


def degrees(precision: int, x: Number) -> Number:
    mp = libmp()
    return mp.mpf_div(mp.mpf_mul_int(x, 180, precision + 10), mp.mpf_pi(precision + 10), precision)


def radians(precision: int, x: Number) -> Number:
    mp = libmp()
    return mp.mpf_div(mp.mpf_mul(x, mp.mpf_pi(precision + 10)), mp.from_int(180), precision)


def pow(precision: int, x: Number, y: Number) -> Number:
    mp = libmp()
    logarithm = mp.mpf_log(mp.mpf_abs(x), precision + 30)
    value = mp.mpf_exp(mp.mpf_mul(y, logarithm), precision)
    odd = y[2] == 0  # a normal number is an odd integer by its exponent
    return mp.mpf_neg(value) if x[0] and odd else value


def atan2(precision: int, y: Number, x: Number) -> Number:
    return libmp().mpf_atan2(y, x, precision)


def log_of_sum(base: str) -> Callable[..., Number]:
    def value(precision: int, a: Number, b: Number) -> Number:
        """The sum may cancel all but the difference of a number of 53 bits and a logarithm: some hundred bits."""
        mp = libmp()
        working = 2 * precision + 60
        unit = getattr(mp, base)(working) if base else mp.fone
        power = mp.mpf_exp(mp.mpf_mul(mp.mpf_sub(b, a), unit), working)
        tiny = power[2] + power[3] < -working
        term = mp.mpf_div(power if tiny else log1p(working, power), unit, working)
        return mp.mpf_add(a, term, precision)

    return value
