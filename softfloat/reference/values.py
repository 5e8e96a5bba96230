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
        The random number itself, 0 <= random_bits < 2^sr_bits. Only stochastic rounding needs it.
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
        return MAXIMUM_RANDOM_BITS if self.sr_bits is None else self.sr_bits

    def drawing(self, random_bits: int) -> Options:
        """These settings, checked already, with another random number of as many bits."""
        other = object.__new__(Options)
        other.__dict__.update(self.__dict__, random_bits=random_bits)
        return other

    @property
    def policy(self) -> NanPolicy:
        """The rules for NaNs."""
        return NAN_POLICIES[self.nan]


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


Result = tuple[int, int]
Exact = tuple[Value | None, int]  # the exact result, None if the operation is invalid; and the flags of reaching it


# -- formats: what the codes mean ------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """Magnitudes (codes without sign) with a meaning of their own; None where the format has none."""

    largest: int
    infinity: int | None
    nan: int | None  # the canonical quiet NaN; with `nan="fnuz"` the whole code


@lru_cache(maxsize=1024)
def layout_of(fmt: Format) -> Layout:
    top = 2 ** (fmt.exponent_bits + fmt.mantissa_bits) - 1
    if (
        fmt.nan == "ieee"
    ):  # IEEE 754-2019 3.4: all ones in the exponent; fraction 0 is infinity, its first bit means quiet
        infinity = top - (2**fmt.mantissa_bits - 1)
        return Layout(infinity - 1, infinity, infinity + 2 ** (fmt.mantissa_bits - 1))
    nan = {"fn": top, "fnuz": fmt.sign_bit, "none": None}[fmt.nan]
    left = top - 1 if fmt.nan == "fn" else top
    return Layout(left - 1, left, nan) if fmt.infinities else Layout(left, None, nan)


def emin_of(fmt: Format) -> int:
    """Exponent of the smallest normal number: of exponent field 1, or of field 0 where that is an ordinary binade."""
    return 1 - fmt.bias if fmt.zero else -fmt.bias


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
    if not 0 <= code < 2**fmt.bits:
        raise ValueError(f"code must be 0 to 2^{fmt.bits} - 1 in {fmt.name}, got {code}")
    layout = layout_of(fmt)
    if fmt.nan == "fnuz" and code == layout.nan:
        return Value(Kind.NAN, negative=True)  # by its sign bit; ml_dtypes converts it so
    sign, m = fmt.sign_bit, fmt.mantissa_bits
    negative, magnitude = bool(code & sign), code & ~sign
    if magnitude == layout.infinity:
        return Value(Kind.INFINITE, negative)
    if magnitude > layout.largest:
        if fmt.nan == "fn":
            return Value(Kind.NAN, negative)
        quiet = 2 ** (m - 1)
        return Value(Kind.NAN, negative, signalling=not magnitude & quiet, payload=Fraction(magnitude % quiet, quiet))
    field, fraction = magnitude >> m, magnitude & (1 << m) - 1
    if fmt.zero and field == 0:
        least = emin_of(fmt) - m
        return Value(Kind.FINITE, negative, times_two_to(fraction, least) if fmt.subnormals else Fraction(0))
    return Value(Kind.FINITE, negative, times_two_to(fraction + (1 << m), field - fmt.bias - m))


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
    if not count:
        return fmt.sign_bit if negative and fmt.signed_zero else 0
    exponent, m = max(count.bit_length() - 1 + unit, emin_of(fmt)), fmt.mantissa_bits
    up = unit - (exponent - m)
    significand = count << up if up >= 0 else count >> -up
    assert up >= 0 or significand << -up == count
    field = exponent + fmt.bias
    if significand < 2**m:
        field = 0  # subnormal: no hidden bit
    code = field * 2**m + significand % 2**m
    assert code <= layout_of(fmt).largest
    return code + fmt.sign_bit if negative else code


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

    @wraps(function)
    def named(*arguments: Any, **options: Any) -> Any:
        if len(arguments) >= least and {type(arguments[i]) for i in indices} == {Format}:
            return function(*arguments, **options)
        given = list(arguments)
        for i, name in places.items():
            if i < len(given):
                given[i] = check_format(given[i], name)
            elif name in options:
                options[name] = check_format(options[name], name)
        return function(*given, **options)

    return named
