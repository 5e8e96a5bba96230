"""The oracle's values: codes decoded into exact fractions."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeAlias

from softfloat.environments import as_member, as_rounding
from softfloat.formats import Format, check_format
from softfloat.frozen import settle
from softfloat.kernels.spec import (
    NAN_POLICIES,
    PROJECTIONS,
    SR_METHODS,
    InfiniteInput,
    NanPolicy,
    Overflow,
    Rounding,
    Tininess,
    policy_for,
)
from softfloat.status import Flags

__all__ = ["Kind", "Options", "Value", "decode"]


FormatOrName: TypeAlias = Any  # `_by_name` makes it a Format

INEXACT = int(Flags.INEXACT)
UNDERFLOW = int(Flags.UNDERFLOW)
OVERFLOW = int(Flags.OVERFLOW)
DIVBYZERO = int(Flags.DIVBYZERO)
INVALID = int(Flags.INVALID)

MAXIMUM_RANDOM_BITS = 52
ROOT_BITS = (
    128  # a root between two numbers this precise is on one side of every candidate, tie and stochastic threshold
)

SETTLED_BITS = 96
"""Numbers between the same neighbours of so many bits are on one side of every candidate, tie and threshold of a stochastic rounding: these have
at most 24 + 52 + 2 bits, of a precision, of random numbers, and of halves of both; in wide formats, of 40 random bits or fewer."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings of one operation: names, defaults and meaning as in `softfloat.Environment`.

    Parameters
    ----------
    rounding, overflow, tininess, infinite_input : enumeration member or str
        See `softfloat.Environment`.
    daz, ftz : bool
        Subnormal operands count as zeros; tiny results become zeros.
    nan : str
        A row of `NAN_POLICIES`.
    sr_bits : int, optional
        Random bits of a stochastic rounding, 1 to 52; None means 52.
    random_bits : int, optional
        The random number itself, 0 <= random_bits < 2^sr_bits; 0 or 1 of "up_or_down". Only roundings that draw need it.
    sr_method : str
        "truncate", "half" or "nearest"; "A", "B" or "C".
    projection : str
        "ieee" or "p3109".

    Raises
    ------
    ValueError
        Naming the setting and what it accepts.
    """

    rounding: Rounding | str = Rounding.NEAREST_EVEN
    overflow: Overflow | str = Overflow.INFINITY
    tininess: Tininess | str = Tininess.AFTER
    infinite_input: InfiniteInput | str = InfiniteInput.DEFAULT
    daz: bool = False
    ftz: bool = False
    nan: str = "canonical"
    sr_bits: int | None = None
    random_bits: int | None = None
    sr_method: str = "truncate"
    projection: str = "ieee"

    def __post_init__(self) -> None:
        """Settle names and check ranges."""
        settle(
            self,
            rounding=as_rounding(self.rounding),
            overflow=as_member(Overflow, self.overflow, "overflow"),
            tininess=as_member(Tininess, self.tininess, "tininess"),
            infinite_input=as_member(InfiniteInput, self.infinite_input, "infinite_input"),
        )
        if self.nan not in NAN_POLICIES:
            raise ValueError(f"nan must be one of {', '.join(map(repr, NAN_POLICIES))}, got {self.nan!r}")
        settle(self, sr_method={"A": "truncate", "B": "half", "C": "nearest"}.get(self.sr_method, self.sr_method))
        for name, accepted in (("sr_method", SR_METHODS), ("projection", PROJECTIONS)):
            if getattr(self, name) not in accepted:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {getattr(self, name)!r}")
        if self.sr_bits is not None and not 1 <= self.sr_bits <= MAXIMUM_RANDOM_BITS:
            raise ValueError(f"sr_bits must be 1 to {MAXIMUM_RANDOM_BITS}, got {self.sr_bits}")
        if self.random_bits is not None and not 0 <= self.random_bits < 2**self.random_width:
            raise ValueError(f"random_bits must be 0 to 2^{self.random_width} - 1, got {self.random_bits}")

    @property
    def random_width(self) -> int:
        """How many random bits a stochastic rounding uses."""
        if self.rounding is Rounding.UP_OR_DOWN:
            return 1
        return MAXIMUM_RANDOM_BITS if self.sr_bits is None else self.sr_bits

    def drawing(self, random_bits: int) -> Options:
        """These settings, checked already, with another random number of as many bits."""
        other = object.__new__(Options)
        other.__dict__.update(self.__dict__, random_bits=random_bits)
        return other

    @property
    def policy(self) -> NanPolicy:
        """The rules for NaNs, whatever the format."""
        return NAN_POLICIES[self.nan]

    def policy_for(self, fmt: Format) -> NanPolicy:
        """The rules for NaNs among results of a format."""
        return policy_for(self.nan, fmt.spec)


class Kind(Enum):
    """The three kinds of floating-point data."""

    FINITE = "finite"
    INFINITE = "infinite"
    NAN = "nan"


class Value(NamedTuple):
    """What a code means, exactly. The sign of a zero is kept."""

    kind: Kind
    negative: bool
    magnitude: Fraction = Fraction(0)  # of a finite value
    signalling: bool = False  # of a NaN
    payload: Fraction = Fraction(0)  # of a NaN: its fraction bits below the quiet bit, read as 0.bbb...

    @property
    def real(self) -> Fraction | float:
        """The extended real number: a fraction, or an infinite float."""
        if self.kind is not Kind.INFINITE:
            return self.number
        return -math.inf if self.negative else math.inf

    @property
    def number(self) -> Fraction:
        """The real number of a finite value."""
        return -self.magnitude if self.negative else self.magnitude

    @property
    def is_nan(self) -> bool:
        """Whether it is no number."""
        return self.kind is Kind.NAN

    @property
    def is_infinite(self) -> bool:
        """Whether it is infinite."""
        return self.kind is Kind.INFINITE

    @property
    def is_zero(self) -> bool:
        """Whether it is +0 or -0."""
        return self.kind is Kind.FINITE and not self.magnitude


FINITE, NAN, ZERO = Kind.FINITE, Kind.NAN, Fraction(0)

Result = tuple[int, int]
Exact = tuple[Value | None, int]  # the exact result, None if the operation is invalid; and the flags of reaching it


# -- formats: what the codes mean ------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """Magnitudes (codes without sign) with a meaning of their own; None where the format has none. And what the fields are."""

    largest: int
    infinity: int | None
    nan: int | None  # the canonical quiet NaN; with `nan="fnuz"` the whole code
    emin: int  # exponent of the smallest normal number: of exponent field 1, or of field 0 where that is an ordinary binade
    emax: int  # exponent of the largest number; where all are subnormal, of the smallest
    m: int  # bits of the fraction
    sign: int
    signed_zero: int  # the code of -0, or 0
    codes: int
    lone_nan: int  # of `nan="fnuz"`; else -1


@lru_cache(maxsize=1024)
def layout_of(fmt: Format) -> Layout:
    largest, infinity, nan = _ends_of(fmt)
    sign, emin = fmt.sign_bit, 1 - fmt.bias if fmt.zero else -fmt.bias
    lone = nan if fmt.nan == "fnuz" and nan is not None else -1
    m = fmt.mantissa_bits
    field = largest >> m
    emax = emin - m if fmt.zero and not field else emin + field - (1 if fmt.zero else 0)
    signed_zero = sign if fmt.signed_zero else 0
    return Layout(largest, infinity, nan, emin, emax, m, sign, signed_zero, 2**fmt.bits, lone)


def _ends_of(fmt: Format) -> tuple[int, int | None, int | None]:
    top = 2 ** (fmt.exponent_bits + fmt.mantissa_bits) - 1
    if (
        fmt.nan == "ieee"
    ):  # IEEE 754-2019 3.4: all ones in the exponent; fraction 0 is infinity, its first bit means quiet
        infinity = top - (2**fmt.mantissa_bits - 1)
        return infinity - 1, infinity, infinity + 2 ** (fmt.mantissa_bits - 1)
    nan = {"fn": top, "fnuz": fmt.sign_bit, "none": None}[fmt.nan]
    left = top - 1 if fmt.nan == "fn" else top
    return (left - 1, left, nan) if fmt.infinities else (left, None, nan)


def emin_of(fmt: Format) -> int:
    return layout_of(fmt).emin


@lru_cache(maxsize=4096)
def two_to(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def times_two_to(significand: int, exponent: int) -> Fraction:
    """significand * 2^exponent."""
    return Fraction(significand << exponent) if exponent >= 0 else Fraction(significand, 1 << -exponent)


def in_units(magnitude: Fraction, exponent: int) -> tuple[int, int]:
    """magnitude / 2^exponent as a numerator and a denominator, which may have factors in common."""
    numerator, denominator = magnitude.as_integer_ratio()
    return (numerator, denominator << exponent) if exponent > 0 else (numerator << -exponent, denominator)


def exponent_of(magnitude: Fraction) -> int:
    """e with 2^e <= magnitude < 2^(e+1)."""
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    numerator, denominator = in_units(magnitude, e)
    return e if numerator >= denominator else e - 1


def decode(code: int, fmt: FormatOrName) -> Value:
    """The exact meaning of a code (IEEE 754-2019 3.4, with the variations a `Format` states).

    Raises
    ------
    ValueError
        If the code has more bits than the format.
    """
    read = _kept if fmt.bits <= 16 else _decoded
    return read(operator.index(code), fmt)


def _decoded(code: int, fmt: Format) -> Value:
    largest, infinity, _, emin, _, m, sign, _, codes, lone_nan = layout_of(fmt)
    if not 0 <= code < codes:
        raise ValueError(f"code must be 0 to 2^{fmt.bits} - 1 in {fmt.name}, got {code}")
    if code == lone_nan:
        return Value(Kind.NAN, negative=True)  # by its sign bit; ml_dtypes converts it so
    negative, magnitude = code & sign != 0, code & ~sign
    if magnitude > largest:
        if magnitude == infinity:
            return Value(Kind.INFINITE, negative)
        if fmt.nan == "fn":
            return Value(Kind.NAN, negative)
        quiet = 2 ** (m - 1)
        return Value(Kind.NAN, negative, signalling=not magnitude & quiet, payload=Fraction(magnitude % quiet, quiet))
    field, fraction = magnitude >> m, magnitude & (1 << m) - 1
    if field:
        first = 1 if fmt.zero else 0
        return Value(FINITE, negative, times_two_to(fraction + (1 << m), emin + field - first - m))
    if fmt.zero:
        return Value(FINITE, negative, times_two_to(fraction, emin - m) if fmt.subnormals and fraction else ZERO)
    return Value(FINITE, negative, times_two_to(fraction + (1 << m), emin - m))


_kept = lru_cache(maxsize=1 << 17)(_decoded)
"""Codes of wider formats hardly come again."""


def code_of(negative: bool, magnitude: Fraction, fmt: Format) -> int:
    """The code of a number that the format has."""
    if not magnitude:
        return code_of_units(negative, 0, 0, fmt)
    unit = max(exponent_of(magnitude), emin_of(fmt)) - fmt.mantissa_bits
    numerator, denominator = in_units(magnitude, unit)
    assert numerator % denominator == 0
    return code_of_units(negative, numerator // denominator, unit, fmt)


def code_of_units(negative: bool, count: int, unit: int, fmt: Format) -> int:
    """The code of count * 2^unit, which the format has."""
    largest, _, _, emin, _, m, sign, signed_zero, _, _ = layout_of(fmt)
    if not count:
        return signed_zero if negative else 0
    exponent = max(count.bit_length() - 1 + unit, emin)
    up = unit - (exponent - m)
    significand = count << up if up >= 0 else count >> -up
    assert up >= 0 or significand << -up == count
    one = 1 << m
    # subnormals have no hidden bit, and the field 0
    code = significand if significand < one else ((exponent + fmt.bias) << m) + significand - one
    assert code <= largest
    return code + sign if negative else code


def operand_of(code: int, fmt: Format, rules: Options) -> Value:
    """A code's meaning to an operation: under `daz`, a subnormal is a zero of its sign."""
    value = decode(code, fmt)
    if rules.daz and value.kind is Kind.FINITE and value.magnitude < two_to(emin_of(fmt)):
        return value._replace(magnitude=Fraction(0))
    return value


def exactly(x: Fraction | int) -> Exact:
    return signed(x), 0


def signed(x: Fraction | int) -> Value:
    """The value of a number; that of zero is +0."""
    exact = x if type(x) is Fraction else Fraction(x)
    negative = exact.numerator < 0
    return Value(Kind.FINITE, negative, -exact if negative else exact)


UNDEFINED: Exact = (None, 0)


# -- names of formats ------------------------------------------------------------------------------------------------


def by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with names of formats turned into the formats, and anything else refused."""
    parameters = inspect.signature(function).parameters
    places = {i: name for i, name in enumerate(parameters) if name in ("fmt", "src", "dst")}
    least, indices = max(places, default=-1) + 1, tuple(places)

    last = indices[0] if len(indices) == 1 else 0

    @wraps(function)
    def named(*arguments: Any, **options: Any) -> Any:
        if last and len(arguments) >= least and type(arguments[last]) is Format:
            return function(*arguments, **options)
        if len(arguments) >= least:
            for i in indices:
                if type(arguments[i]) is not Format:
                    break
            else:
                return function(*arguments, **options)
        given = list(arguments)
        for i, name in places.items():
            if i < len(given):
                given[i] = check_format(given[i], name, wide=True)
            elif name in options:
                options[name] = check_format(options[name], name, wide=True)
        return function(*given, **options)

    return named
