"""The oracle: each operation is its exact value and then one rounding, on Python integers and fractions.

It is slow and obvious. It restates IEEE 754-2019 and the project's own rules in words of its own and shares no
arithmetic with the compiled kernels: what both agree on was reached twice. Operands are codes, one at a time; a result
is `(code, flags)`, both Python integers. Flags add up 1 inexact, 2 underflow, 4 overflow, 8 division by zero, 16
invalid. Every function takes the settings of `Options` as keywords.

>>> from softfloat.formats import float16
>>> add(0x6800, 0x3C00, float16)  # 2048 + 1 is a tie; the even neighbour is 2048
(26624, 1)
>>> add(0x6800, 0x3C00, float16, rounding="toward_positive")
(26625, 1)
>>> [hex(code) for code in div(0x3C00, 0x8000, float16)]  # 1 / -0
['0xfc00', '0x8']
"""

from __future__ import annotations

import inspect
import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeAlias

import mpmath

from softfloat.environment import as_member, as_rounding
from softfloat.formats import Format, check_format
from softfloat.kernels.spec import (
    INTEGER_INDEFINITE,
    INTEGER_ZERO,
    NAN_POLICIES,
    PROPAGATE_NONE,
    PROPAGATE_SIGNALLING_FIRST,
    InfiniteInput,
    NanPolicy,
    Overflow,
    Rounding,
    Tininess,
)
from softfloat.status import Flags

FormatOrName: TypeAlias = Any  # `_by_name` makes it a Format

__all__ = [
    "Kind",
    "Options",
    "Value",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "classify",
    "convert",
    "cos",
    "cosh",
    "decode",
    "degrees",
    "div",
    "encode",
    "eq",
    "eq_signalling",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "floor_divide",
    "fma",
    "fmod",
    "hypot",
    "le",
    "le_signalling",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "lt",
    "lt_signalling",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
    "modulo",
    "mul",
    "pow",
    "radians",
    "remainder",
    "round_exact",
    "round_to_integral",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "tan",
    "tanh",
    "to_integer",
]

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

    def __post_init__(self) -> None:
        """Settle names and check ranges."""
        object.__setattr__(self, "rounding", as_rounding(self.rounding))
        object.__setattr__(self, "overflow", as_member(Overflow, self.overflow, "overflow"))
        object.__setattr__(self, "tininess", as_member(Tininess, self.tininess, "tininess"))
        object.__setattr__(self, "infinite_input", as_member(InfiniteInput, self.infinite_input, "infinite_input"))
        if self.nan not in NAN_POLICIES:
            raise ValueError(f"nan must be one of {', '.join(map(repr, NAN_POLICIES))}, got {self.nan!r}")
        if self.sr_bits is not None and not 1 <= self.sr_bits <= MAXIMUM_RANDOM_BITS:
            raise ValueError(f"sr_bits must be 1 to {MAXIMUM_RANDOM_BITS}, got {self.sr_bits}")
        if self.random_bits is not None and not 0 <= self.random_bits < 2**self.random_width:
            raise ValueError(f"random_bits must be 0 to 2^{self.random_width} - 1, got {self.random_bits}")

    @property
    def random_width(self) -> int:
        """How many random bits a stochastic rounding uses."""
        return MAXIMUM_RANDOM_BITS if self.sr_bits is None else self.sr_bits

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
        """The extended real number, for comparison: a fraction, or an infinite float."""
        magnitude = math.inf if self.kind is Kind.INFINITE else self.magnitude
        return -magnitude if self.negative else magnitude

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
def _layout(fmt: Format) -> Layout:
    top = 2 ** (fmt.exponent_bits + fmt.mantissa_bits) - 1
    if (
        fmt.nan == "ieee"
    ):  # IEEE 754-2019 3.4: all ones in the exponent; fraction 0 is infinity, its first bit means quiet
        infinity = top - (2**fmt.mantissa_bits - 1)
        return Layout(infinity - 1, infinity, infinity + 2 ** (fmt.mantissa_bits - 1))
    nan = {"fn": top, "fnuz": fmt.sign_bit, "none": None}[fmt.nan]
    left = top - 1 if fmt.nan == "fn" else top
    return Layout(left - 1, left, nan) if fmt.infinities else Layout(left, None, nan)


def _emin(fmt: Format) -> int:
    """Exponent of the smallest normal number: of exponent field 1, or of field 0 where that is an ordinary binade."""
    return 1 - fmt.bias if fmt.zero else -fmt.bias


@lru_cache(maxsize=4096)
def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _exponent(magnitude: Fraction) -> int:
    """e with 2^e <= magnitude < 2^(e+1)."""
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return e if _power(e) <= magnitude else e - 1


def decode(code: int, fmt: FormatOrName) -> Value:
    """The exact meaning of a code (IEEE 754-2019 3.4, with the variations a `Format` states).

    Raises
    ------
    ValueError
        If the code has more bits than the format.
    """
    code = operator.index(code)
    if not 0 <= code < 2**fmt.bits:
        raise ValueError(f"code must be 0 to 2^{fmt.bits} - 1 in {fmt.name}, got {code}")
    layout = _layout(fmt)
    if fmt.nan == "fnuz" and code == layout.nan:
        return Value(Kind.NAN, negative=True)  # by its sign bit; ml_dtypes converts it so
    negative = bool(code & fmt.sign_bit)
    magnitude = code & ~fmt.sign_bit
    if magnitude == layout.infinity:
        return Value(Kind.INFINITE, negative)
    if magnitude > layout.largest:
        if fmt.nan == "fn":
            return Value(Kind.NAN, negative)
        quiet = 2 ** (fmt.mantissa_bits - 1)
        return Value(Kind.NAN, negative, signalling=not magnitude & quiet, payload=Fraction(magnitude % quiet, quiet))
    field, fraction = divmod(magnitude, 2**fmt.mantissa_bits)
    spacing = _power(max(field, int(fmt.zero)) - fmt.bias - fmt.mantissa_bits)
    if fmt.zero and field == 0:
        return Value(Kind.FINITE, negative, fraction * spacing if fmt.subnormals else Fraction(0))
    return Value(Kind.FINITE, negative, (2**fmt.mantissa_bits + fraction) * spacing)


def _code(negative: bool, magnitude: Fraction, fmt: Format) -> int:
    """The code of a number that the format has."""
    if not magnitude:
        return fmt.sign_bit if negative and fmt.signed_zero else 0
    exponent = max(_exponent(magnitude), _emin(fmt))
    significand = magnitude / _power(exponent - fmt.mantissa_bits)
    assert significand.denominator == 1
    field = exponent + fmt.bias
    if significand < 2**fmt.mantissa_bits:
        field = 0  # subnormal: no hidden bit
    code = field * 2**fmt.mantissa_bits + int(significand) % 2**fmt.mantissa_bits
    assert code <= _layout(fmt).largest
    return code + fmt.sign_bit if negative else code


def _operand(code: int, fmt: Format, rules: Options) -> Value:
    """A code's meaning to an operation: under `daz`, a subnormal is a zero of its sign."""
    value = decode(code, fmt)
    subnormal = value.kind is Kind.FINITE and value.magnitude < _power(_emin(fmt))
    return value._replace(magnitude=Fraction(0)) if rules.daz and subnormal else value


# -- results that are not rounded ------------------------------------------------------------------------------------


def _largest(negative: bool, fmt: Format) -> int:
    return _layout(fmt).largest + (fmt.sign_bit if negative else 0)


def _default_nan(fmt: Format, rules: Options) -> int:
    """The NaN of an invalid operation; in a format without NaN the largest finite value."""
    nan = _layout(fmt).nan
    if nan is None:
        return _largest(False, fmt)
    if rules.policy.all_ones and fmt.nan == "ieee":
        return (2**fmt.bits - 1) & ~fmt.sign_bit
    return nan | fmt.sign_bit if rules.policy.negative_default and fmt.nan in ("ieee", "fn") else nan


def _invalid(fmt: Format, rules: Options) -> Result:
    return _default_nan(fmt, rules), INVALID


def _infinity(negative: bool, fmt: Format, rules: Options) -> int:
    """Infinity; where there is none NaN; where there is neither the largest finite value."""
    infinity = _layout(fmt).infinity
    if infinity is not None:
        return infinity + (fmt.sign_bit if negative else 0)
    return _default_nan(fmt, rules) if fmt.has_nan else _largest(negative, fmt)


def _signals(values: Sequence[Value], rules: Options) -> int:
    """INVALID if an operand is a signalling NaN (IEEE 754-2019 7.2 a), or a NaN that the policy counts as one."""
    return INVALID if any(x.is_nan and (x.signalling or rules.policy.any_nan_signals) for x in values) else 0


def _propagate(values: Sequence[Value], fmt: Format, rules: Options) -> Result:
    """The result of an operation with NaN operands: a quiet NaN (IEEE 754-2019 6.2); which one, the policy says."""
    flags = _signals(values, rules) | (0 if fmt.has_nan else INVALID)
    if rules.policy.propagate == PROPAGATE_NONE or not fmt.has_nan:
        return _default_nan(fmt, rules), flags
    nans = [x for x in values if x.is_nan]
    if rules.policy.propagate == PROPAGATE_SIGNALLING_FIRST:
        nans.sort(key=lambda x: not x.signalling)
    nan = _layout(fmt).nan
    assert nan is not None
    if fmt.nan == "ieee":
        nan += math.floor(nans[0].payload * 2 ** (fmt.mantissa_bits - 1))
    signed = fmt.nan in ("ieee", "fn")
    return (nan | fmt.sign_bit if nans[0].negative and signed else nan), flags


# -- the rounding ----------------------------------------------------------------------------------------------------


def _nearby_integer(y: Fraction, negative: bool, rules: Options) -> int:
    """The magnitude y >= 0 rounded to an integer: IEEE 754-2019 4.3, round to odd, stochastic rounding.

    Counted in spacings, a number is its significand, with the significand's parity. A one-bit significand is 1 and odd,
    the power of two above it 2 and even: a tie between powers of two goes to the larger, as 4.3.1 demands.
    """
    i = math.floor(y)
    f = y - i
    if f == 0:
        return i
    match rules.rounding:
        case Rounding.NEAREST_EVEN:
            up = f > Fraction(1, 2) or (f == Fraction(1, 2) and i % 2 == 1)
        case Rounding.NEAREST_AWAY:
            up = f >= Fraction(1, 2)
        case Rounding.TOWARD_ZERO:
            up = False
        case Rounding.TOWARD_POSITIVE:
            up = not negative
        case Rounding.TOWARD_NEGATIVE:
            up = negative
        case Rounding.TO_ODD:
            up = i % 2 == 0
        case _:
            assert rules.random_bits is not None
            r = rules.random_width
            up = math.floor(f * 2**r) + rules.random_bits >= 2**r
    return i + 1 if up else i


def _round(value: Value, fmt: Format, rules: Options) -> Result:
    """The one rounding. The value is exact: finite, or infinite as the result of arithmetic."""
    if value.negative and not value.is_zero and not fmt.signed:
        return _invalid(fmt, rules)
    if value.is_zero:
        return (_code(value.negative, Fraction(0), fmt), 0) if fmt.zero else _invalid(fmt, rules)
    if value.is_infinite:
        if rules.infinite_input is InfiniteInput.NAN:
            return _invalid(fmt, rules)
        if fmt.infinities or rules.overflow is Overflow.INFINITY:
            return _infinity(value.negative, fmt, rules), 0
        return _largest(value.negative, fmt) if rules.overflow is Overflow.SATURATE else _default_nan(fmt, rules), 0

    magnitude = value.magnitude
    e, emin, m = _exponent(magnitude), _emin(fmt), fmt.mantissa_bits
    unbounded_spacing = _power(e - m)
    if e >= emin:
        spacing = unbounded_spacing
    else:
        spacing = _power(emin - m) if fmt.subnormals else _power(emin)
    rounded = _nearby_integer(magnitude / spacing, value.negative, rules) * spacing

    if rounded > decode(_layout(fmt).largest, fmt).magnitude:
        return _overflow(value.negative, fmt, rules)

    smallest = _power(emin)  # normal number
    if rules.tininess is Tininess.BEFORE:
        tiny = magnitude < smallest
    else:
        tiny = _nearby_integer(magnitude / unbounded_spacing, value.negative, rules) * unbounded_spacing < smallest
    flags = INEXACT if rounded != magnitude else 0
    if tiny and flags:
        flags |= UNDERFLOW
    if tiny and rules.ftz:
        rounded, flags = Fraction(0), UNDERFLOW | INEXACT
    if not rounded and not fmt.zero:
        rounded = smallest
    return _code(value.negative, rounded, fmt), flags


def _overflow(negative: bool, fmt: Format, rules: Options) -> Result:
    """A rounded result beyond the largest finite value: IEEE 754-2019 7.4, saturation, or NaN."""
    flags = OVERFLOW | INEXACT
    if rules.overflow is Overflow.SATURATE:
        return _largest(negative, fmt), flags
    if rules.overflow is Overflow.NAN:
        return _default_nan(fmt, rules), flags | INVALID
    inward = {
        Rounding.TOWARD_ZERO: True,
        Rounding.TO_ODD: True,
        Rounding.TOWARD_POSITIVE: negative,
        Rounding.TOWARD_NEGATIVE: not negative,
    }
    stays_finite = inward.get(as_rounding(rules.rounding), False)
    return _largest(negative, fmt) if stays_finite else _infinity(negative, fmt, rules), flags


def _rules(fmt: Format, options: dict[str, Any]) -> Options:
    """The settings of an operation that rounds to `fmt`."""
    rules = Options(**options)
    _check_random_bits(rules)
    if rules.overflow is Overflow.NAN and not fmt.has_nan:
        raise ValueError(f"overflow='nan' needs a NaN, {fmt.name} has none; accepted: 'infinity', 'saturate'")
    return rules


def _check_random_bits(rules: Options) -> None:
    if rules.rounding is Rounding.STOCHASTIC and rules.random_bits is None:
        raise ValueError(f"random_bits must be 0 to 2^{rules.random_width} - 1 for stochastic rounding, got None")


def round_exact(value: Value | Fraction | int, fmt: FormatOrName, **options: Any) -> Result:
    """The code of an exact value, rounded once. An infinite value is taken for the result of arithmetic.

    Flags: INEXACT, UNDERFLOW, OVERFLOW; INVALID for an overflow under `overflow="nan"`, for a negative value in an
    unsigned format, for zero in a format without zero, for NaN in a format without NaN. Rule: IEEE 754-2019 4.3, 7.4,
    7.5.

    With y = |value| / spacing, stochastic rounding goes up in magnitude where floor(frac(y) * 2^sr_bits) + random_bits >=
    2^sr_bits.

    Raises
    ------
    ValueError
        Naming the setting: `overflow="nan"` in a format without NaN, `random_bits` missing.
    """
    rules = _rules(fmt, options)
    if not isinstance(value, Value):
        value = Value(Kind.FINITE, value < 0, abs(Fraction(value)))
    return _propagate([value], fmt, rules) if value.is_nan else _round(value, fmt, rules)


# -- conversions -----------------------------------------------------------------------------------------------------


def _convert(value: Value, fmt: Format, rules: Options) -> Result:
    if value.is_nan:
        return _propagate([value], fmt, rules)
    if not value.is_infinite or (value.negative and not fmt.signed):
        return _round(value, fmt, rules)
    choice = rules.infinite_input
    if choice is InfiniteInput.DEFAULT:
        choice = InfiniteInput.SATURATE if rules.overflow is Overflow.SATURATE else InfiniteInput.KEEP
    if choice is InfiniteInput.SATURATE:
        return _largest(value.negative, fmt), 0
    return _invalid(fmt, rules) if choice is InfiniteInput.NAN else (_infinity(value.negative, fmt, rules), 0)


def _decode_float64(x: float) -> Value:
    (code,) = struct.unpack("<Q", struct.pack("<d", x))
    negative, quiet = bool(code >> 63), 2**51
    if math.isnan(x):
        return Value(Kind.NAN, negative, signalling=not code & quiet, payload=Fraction(code % quiet, quiet))
    return Value(Kind.INFINITE, negative) if math.isinf(x) else Value(Kind.FINITE, negative, abs(Fraction(x)))


def encode(x: int | float | Fraction, fmt: FormatOrName, **options: Any) -> Result:
    """The code of a number: an integer or fraction of any size, or a float64 (IEEE 754-2019 5.4.1, 5.4.2).

    Flags as in `round_exact`; INVALID for a signalling NaN. `infinite_input` rules infinities; `daz` counts a subnormal
    float64 as zero.

    Raises
    ------
    TypeError
        If `x` is of another type.
    ValueError
        As `round_exact`.
    """
    rules = _rules(fmt, options)
    if isinstance(x, float):
        value = _decode_float64(x)
        if rules.daz and value.kind is Kind.FINITE and value.magnitude < _power(-1022):
            value = value._replace(magnitude=Fraction(0))
        return _convert(value, fmt, rules)
    if not isinstance(x, Fraction):
        try:
            x = Fraction(operator.index(x))
        except TypeError:
            raise TypeError(f"x must be an int, float or Fraction, got {type(x).__name__}") from None
    return _convert(Value(Kind.FINITE, x < 0, abs(x)), fmt, rules)


def convert(code: int, src: FormatOrName, dst: FormatOrName, **options: Any) -> Result:
    """A code of `src` as a code of `dst` (IEEE 754-2019 5.4.2 convertFormat).

    Flags as in `round_exact`; INVALID for a signalling NaN. `infinite_input` rules infinities. Where the policy
    propagates NaNs, the payload's top bits are kept if both formats have payloads, and the sign if both have signed
    NaNs.

    Raises
    ------
    ValueError
        As `decode` and `round_exact`.
    """
    rules = _rules(dst, options)
    return _convert(_operand(code, src, rules), dst, rules)


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _arithmetic(exact: Callable[..., Exact], codes: Sequence[int], fmt: Format, options: dict[str, Any]) -> Result:
    """Decode, settle NaNs, work exactly, round."""
    rules = _rules(fmt, options)
    values = [_operand(code, fmt, rules) for code in codes]
    if any(x.is_nan for x in values):
        return _propagate(values, fmt, rules)
    result, flags = exact(*values, rules)
    if result is None:
        return _invalid(fmt, rules)
    code, raised = _round(result, fmt, rules)
    return code, flags | raised


def _negated(x: Value) -> Value:
    return x._replace(negative=not x.negative)


def _sum(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite and y.is_infinite and x.negative != y.negative:
        return None, 0
    if x.is_infinite or y.is_infinite:
        return (x if x.is_infinite else y), 0
    total = Fraction(x.real) + Fraction(y.real)
    if total == 0:  # IEEE 754-2019 6.3: operands of one sign keep it; else +0, or -0 when rounding toward negative
        negative = x.negative if x.negative == y.negative else rules.rounding is Rounding.TOWARD_NEGATIVE
        return Value(Kind.FINITE, negative), 0
    return Value(Kind.FINITE, total < 0, abs(total)), 0


def _difference(x: Value, y: Value, rules: Options) -> Exact:
    return _sum(x, _negated(y), rules)


def _product(x: Value, y: Value, rules: Options) -> Exact:
    negative = x.negative != y.negative
    if x.is_infinite or y.is_infinite:
        return (None if x.is_zero or y.is_zero else Value(Kind.INFINITE, negative)), 0
    return Value(Kind.FINITE, negative, x.magnitude * y.magnitude), 0


def _quotient(x: Value, y: Value, rules: Options) -> Exact:
    negative = x.negative != y.negative
    if (x.is_infinite and y.is_infinite) or (x.is_zero and y.is_zero):
        return None, 0
    if x.is_infinite:
        return Value(Kind.INFINITE, negative), 0
    if y.is_zero:  # a finite number by zero: an exact infinity (IEEE 754-2019 7.3)
        return Value(Kind.INFINITE, negative), DIVBYZERO
    return Value(Kind.FINITE, negative, Fraction(0) if y.is_infinite else x.magnitude / y.magnitude), 0


def _remainder(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite or y.is_zero:
        return None, 0
    if y.is_infinite or x.is_zero:
        return x, 0
    n = round(x.magnitude / y.magnitude)  # Fraction rounds ties to even
    rest = x.magnitude - n * y.magnitude  # of |x|; remainder(-x, y) = -remainder(x, y)
    return Value(Kind.FINITE, x.negative != (rest < 0), abs(rest)), 0


def _square_root(x: Value, rules: Options) -> Exact:
    if x.is_zero:
        return x, 0
    if x.negative:
        return None, 0
    if x.is_infinite:
        return x, 0
    numerator, denominator = x.magnitude.as_integer_ratio()
    with mpmath.workprec(ROOT_BITS):
        radicand = mpmath.ldexp(numerator, 1 - denominator.bit_length())  # exact: the denominator is a power of two
        significand, exponent = mpmath.sqrt(radicand, rounding="d").man_exp
    below = significand * _power(exponent)
    if below * below == x.magnitude:
        return Value(Kind.FINITE, False, below), 0
    # Irrational: anything strictly between the two neighbours of 128 bits rounds as the root does.
    return Value(Kind.FINITE, False, below + _power(_exponent(below) - ROOT_BITS)), 0


def _fused(x: Value, y: Value, z: Value, rules: Options) -> Exact:
    product, _ = _product(x, y, rules)
    return (None, 0) if product is None else _sum(product, z, rules)


def add(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a + b (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf - inf and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_sum, (a, b), fmt, options)


def sub(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - b (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf - inf and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_difference, (a, b), fmt, options)


def mul(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a * b (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf * 0 and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_product, (a, b), fmt, options)


def div(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a / b (IEEE 754-2019 5.4.1, 7.3).

    Flags: INVALID for 0/0, inf/inf and signalling NaNs; DIVBYZERO for a finite non-zero number by zero, which is an
    exact infinity: in a format without infinities what an overflow would deliver, without the flags of an overflow;
    else those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_quotient, (a, b), fmt, options)


def remainder(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - n * b with n the integer nearest to a / b, ties to even; a zero has the sign of a (IEEE 754-2019 5.3.1).

    Flags: INVALID for infinite a, zero b and signalling NaNs; those of `round_exact` where the format cannot hold the
    result: it has no subnormals, no zero or no sign, or `ftz` flushes. Errors as `round_exact`.
    """
    return _arithmetic(_remainder, (a, b), fmt, options)


def sqrt(a: int, fmt: FormatOrName, **options: Any) -> Result:
    """The square root of a (IEEE 754-2019 5.4.1); that of -0 is -0.

    Flags: INVALID for negative numbers and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_square_root, (a,), fmt, options)


def fma(a: int, b: int, c: int, fmt: FormatOrName, **options: Any) -> Result:
    """a * b + c, rounded once (IEEE 754-2019 5.4.1).

    Flags: INVALID for inf * 0, inf - inf and signalling NaNs; for inf * 0 + NaN the policy says whether that is an
    invalid operation, with the default NaN as its result, or a NaN propagated (IEEE 754-2019 7.2 c leaves it open);
    those of `round_exact`. Where the policy looks at the addend first (Arm's FPMulAdd), that decides among NaN
    operands, and a signalling addend goes before inf * 0. Errors as `round_exact`.
    """
    rules = _rules(fmt, options)
    x, y, z = (_operand(code, fmt, rules) for code in (a, b, c))
    product_invalid = (x.is_infinite and y.is_zero) or (x.is_zero and y.is_infinite)
    addend_signals = rules.policy.addend_first and z.is_nan and z.signalling
    if rules.policy.product_invalid and product_invalid and not addend_signals:
        return _invalid(fmt, rules)
    if rules.policy.addend_first and z.is_nan:
        return _propagate([z, x, y], fmt, rules)
    return _arithmetic(_fused, (a, b, c), fmt, options)


# -- mathematical functions ------------------------------------------------------------------------------------------

SETTLED_BITS = (
    128  # numbers between the same neighbours of so many bits are on one side of every candidate, tie and threshold
)
BEYOND = 2000  # 2^2000 overflows every format, 2^-2000 is on the same side of everything as any smaller number
LOST_BITS = (
    60  # of mpmath's working precision, by cancellation and by its own errors: more than any function here loses
)
Reals = tuple[Fraction, ...]


def _mpf(x: Fraction) -> Any:
    """An operand, exactly: its denominator is a power of two."""
    return mpmath.ldexp(x.numerator, 1 - x.denominator.bit_length())


@lru_cache(maxsize=1 << 18)
def _settled(compute: Callable[..., Any], *operands: Fraction) -> Fraction:
    """A number between the same neighbours of 128 bits as a value that has no 128 bits itself; mpmath computes it ever more precisely."""
    precision = 256
    while True:
        with mpmath.workprec(precision):
            value = compute(*map(_mpf, operands))
            significand, exponent = mpmath.mpf(value).man_exp
        size, exponent = abs(int(significand)), int(exponent)
        sign = -1 if value < 0 else 1
        top = exponent + size.bit_length()
        if abs(top) > BEYOND:
            return sign * _power(BEYOND if top > 0 else -BEYOND)
        scaled = size * _power(exponent - top + SETTLED_BITS)
        fraction = scaled - math.floor(scaled)
        slack = _power(SETTLED_BITS + LOST_BITS - precision)
        if slack < fraction < 1 - slack:
            return sign * (math.floor(scaled) + Fraction(1, 2)) * _power(top - SETTLED_BITS)
        precision *= 2


def _near(limit: int, side: int) -> Fraction:
    """A number next to an integer, on one side."""
    return limit + side * _power(-BEYOND)


def _is_power_of_two(x: Fraction) -> bool:
    return x > 0 and x.numerator.bit_count() == 1 and x.denominator.bit_count() == 1


def _power_of_two(x: Any) -> Any:
    return mpmath.power(2, x)


def _power_of_ten(x: Any) -> Any:
    return mpmath.power(10, x)


def _binary_logarithm(x: Any) -> Any:
    return mpmath.log(x, 2)


def _exp(x: Fraction) -> Fraction:
    if abs(x) > BEYOND:
        return _power(BEYOND if x > 0 else -BEYOND)
    return Fraction(1) if x == 0 else _settled(mpmath.exp, x)


def _exp2(x: Fraction) -> Fraction:
    x = max(min(x, Fraction(BEYOND)), Fraction(-BEYOND))
    return _power(int(x)) if x.denominator == 1 else _settled(_power_of_two, x)


def _exp10(x: Fraction) -> Fraction:
    x = max(min(x, Fraction(BEYOND)), Fraction(-BEYOND))
    return Fraction(10) ** int(x) if x.denominator == 1 else _settled(_power_of_ten, x)


def _expm1(x: Fraction) -> Fraction:
    if abs(x) > BEYOND:
        return _power(BEYOND) if x > 0 else _near(-1, 1)
    return _settled(mpmath.expm1, x) if x else x


def _log2(x: Fraction) -> Fraction:
    return Fraction(_exponent(x)) if _is_power_of_two(x) else _settled(_binary_logarithm, x)


def _log10(x: Fraction) -> Fraction:
    decimal = str(x.numerator)
    if x.denominator == 1 and decimal.rstrip("0") == "1":
        return Fraction(len(decimal) - 1)
    return _settled(mpmath.log10, x)


def _irrational(function: Callable[..., Any], exact: Fraction | None = Fraction(0)) -> Callable[[Fraction], Fraction]:
    """A function whose value at `exact` is 0 and which is irrational elsewhere."""
    return lambda x: Fraction(0) if x == exact else _settled(function, x)


def _hyperbolic(function: Callable[..., Any]) -> Callable[[Fraction], Fraction]:
    """sinh, cosh and tanh, far from 0 by their limits."""
    limits = {"tanh": _near(1, -1)}

    def value(x: Fraction) -> Fraction:
        if x == 0:
            return Fraction(function is mpmath.cosh)
        if abs(x) > BEYOND:
            limit = limits["tanh"] if function is mpmath.tanh else _power(BEYOND)
            return -limit if x < 0 and function is not mpmath.cosh else limit
        return _settled(function, x)

    return value


def _cbrt(x: Fraction) -> Fraction:
    roots = []
    for part in x.as_integer_ratio():
        with mpmath.workprec(512):
            root = int(mpmath.nint(mpmath.cbrt(abs(part))))
        roots.append(root)
    exact = Fraction(*roots)
    if exact**3 != abs(x):
        exact = _settled(mpmath.cbrt, abs(x))
    return -exact if x < 0 else exact


Special = Callable[[Value], Exact]


def _at_infinity(negative: Exact, positive: Exact) -> Special:
    """The values at -inf and +inf."""
    return lambda x: negative if x.negative else positive


def _finite(x: Fraction | int) -> Exact:
    return Value(Kind.FINITE, x < 0, abs(Fraction(x))), 0


UNDEFINED: Exact = (None, 0)
ZERO, ONE = _finite(0), _finite(1)
UP: Exact = (Value(Kind.INFINITE, False), 0)
DOWN: Exact = (Value(Kind.INFINITE, True), 0)
POLE_UP: Exact = (Value(Kind.INFINITE, False), DIVBYZERO)
POLE_DOWN: Exact = (Value(Kind.INFINITE, True), DIVBYZERO)
HALF_TURN = _settled(lambda: +mpmath.pi)


class Analytic(NamedTuple):
    """A function of one operand: its value, its values at infinities, its domain and poles, whether it keeps a zero's sign."""

    summary: str
    value: Callable[[Fraction], Fraction]
    infinite: Special
    low: float = -math.inf
    high: float = math.inf
    poles: dict[int, Exact] = {}  # noqa: RUF012 -- an empty one, never written
    odd_zero: bool = False


ODD_POLES = {-1: POLE_DOWN, 1: POLE_UP}
WHOLE = _at_infinity(DOWN, UP)
NOWHERE = _at_infinity(UNDEFINED, UNDEFINED)
EXPONENTIAL = _at_infinity(ZERO, UP)
LOGARITHM = _at_infinity(UNDEFINED, UP)

ANALYTIC = {
    "exp": Analytic("e^a", _exp, EXPONENTIAL),
    "exp2": Analytic("2^a", _exp2, EXPONENTIAL),
    "exp10": Analytic("10^a", _exp10, EXPONENTIAL),
    "expm1": Analytic("e^a - 1", _expm1, _at_infinity(_finite(-1), UP), odd_zero=True),
    "log": Analytic("The natural logarithm", _irrational(mpmath.log, Fraction(1)), LOGARITHM, 0, poles={0: POLE_DOWN}),
    "log2": Analytic("The binary logarithm", _log2, LOGARITHM, 0, poles={0: POLE_DOWN}),
    "log10": Analytic("The decimal logarithm", _log10, LOGARITHM, 0, poles={0: POLE_DOWN}),
    "log1p": Analytic("log(1 + a)", _irrational(mpmath.log1p), LOGARITHM, -1, poles={-1: POLE_DOWN}, odd_zero=True),
    "sin": Analytic("The sine", _irrational(mpmath.sin), NOWHERE, odd_zero=True),
    "cos": Analytic("The cosine", lambda x: _settled(mpmath.cos, x) if x else Fraction(1), NOWHERE),
    "tan": Analytic("The tangent", _irrational(mpmath.tan), NOWHERE, odd_zero=True),
    "asin": Analytic("The arcsine", _irrational(mpmath.asin), NOWHERE, -1, 1, odd_zero=True),
    "acos": Analytic("The arccosine", _irrational(mpmath.acos, Fraction(1)), NOWHERE, -1, 1),
    "atan": Analytic(
        "The arctangent",
        _irrational(mpmath.atan),
        _at_infinity(_finite(-HALF_TURN / 2), _finite(HALF_TURN / 2)),
        odd_zero=True,
    ),
    "sinh": Analytic("The hyperbolic sine", _hyperbolic(mpmath.sinh), WHOLE, odd_zero=True),
    "cosh": Analytic("The hyperbolic cosine", _hyperbolic(mpmath.cosh), _at_infinity(UP, UP)),
    "tanh": Analytic("The hyperbolic tangent", _hyperbolic(mpmath.tanh), _at_infinity(_finite(-1), ONE), odd_zero=True),
    "asinh": Analytic("The inverse hyperbolic sine", _irrational(mpmath.asinh), WHOLE, odd_zero=True),
    "acosh": Analytic("The inverse hyperbolic cosine", _irrational(mpmath.acosh, Fraction(1)), LOGARITHM, 1),
    "atanh": Analytic(
        "The inverse hyperbolic tangent", _irrational(mpmath.atanh), NOWHERE, -1, 1, ODD_POLES, odd_zero=True
    ),
    "cbrt": Analytic("The cube root", _cbrt, WHOLE, odd_zero=True),
    "degrees": Analytic("a * 180 / pi", _irrational(mpmath.degrees), WHOLE, odd_zero=True),
    "radians": Analytic("a * pi / 180", _irrational(mpmath.radians), WHOLE, odd_zero=True),
}


def _analytic(name: str) -> Callable[..., Result]:
    how = ANALYTIC[name]

    def exact(x: Value, rules: Options) -> Exact:
        if x.is_infinite:
            return how.infinite(x)
        real = Fraction(x.real)
        if not how.low <= real <= how.high:
            return UNDEFINED
        if real in how.poles:
            return how.poles[int(real)]
        if x.is_zero and how.odd_zero:
            return x, 0
        return _finite(how.value(real))

    def function(a: int, fmt: Format, **options: Any) -> Result:
        return _arithmetic(exact, (a,), fmt, options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{how.summary} (IEEE 754-2019 9.2).\n\n    Flags: INVALID outside the domain and for signalling NaNs; DIVBYZERO at "
        "poles; those of `round_exact`.\n    Errors as `round_exact`.\n    "
    )
    return function


exp, exp2, exp10, expm1 = map(_analytic, ("exp", "exp2", "exp10", "expm1"))
log, log2, log10, log1p = map(_analytic, ("log", "log2", "log10", "log1p"))
sin, cos, tan = map(_analytic, ("sin", "cos", "tan"))
asin, acos, atan = map(_analytic, ("asin", "acos", "atan"))
sinh, cosh, tanh = map(_analytic, ("sinh", "cosh", "tanh"))
asinh, acosh, atanh = map(_analytic, ("asinh", "acosh", "atanh"))
cbrt, degrees, radians = map(_analytic, ("cbrt", "degrees", "radians"))


def _exact_power(x: Fraction, y: Fraction) -> Fraction:
    """x^y, x > 0 and not 1, y not 0."""
    power = y
    base = x
    while power.denominator > 1:  # x^(k / 2^j) is rational only if x is a 2^j-th power of a rational number
        roots = [math.isqrt(part) for part in base.as_integer_ratio()]
        if Fraction(roots[0] ** 2, roots[1] ** 2) != base:
            break
        base, power = Fraction(*roots), power * 2
    if power.denominator == 1 and abs(power) <= BEYOND:
        return base ** int(power)
    if power.denominator == 1 and _is_power_of_two(base):
        return _power(BEYOND if (base > 1) == (power > 0) else -BEYOND)
    return _settled(mpmath.power, x, y)


def _power_of(x: Value, y: Value, rules: Options) -> Exact:
    """IEEE 754-2019 9.2.1, pow, line by line."""
    integer = y.is_infinite or y.magnitude.denominator == 1
    odd = not y.is_infinite and integer and y.magnitude % 2 == 1
    negative = x.negative and odd
    if x.is_zero:
        if not y.negative:
            return Value(Kind.FINITE, negative), 0
        return Value(Kind.INFINITE, negative), 0 if y.is_infinite else DIVBYZERO
    if not x.is_infinite and x.magnitude == 1 and y.is_infinite:
        return ONE
    if x.is_infinite or y.is_infinite:
        large = x.is_infinite or x.magnitude > 1
        return Value(Kind.INFINITE if large != y.negative else Kind.FINITE, negative), 0
    if x.negative and not integer:
        return UNDEFINED
    size = Fraction(1) if x.magnitude == 1 else _exact_power(x.magnitude, Fraction(y.real))
    return Value(Kind.FINITE, negative, size), 0


def pow(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a^b (IEEE 754-2019 9.2.1); 1 for b = 0 and for a = 1, beside quiet NaNs too.

    Flags: INVALID for negative finite a and b that is no integer, and signalling NaNs; DIVBYZERO for zero to a negative
    finite power; those of `round_exact`. Errors as `round_exact`.
    """
    rules = _rules(fmt, options)
    x, y = _operand(a, fmt, rules), _operand(b, fmt, rules)
    signals = (x.is_nan and x.signalling) or (y.is_nan and y.signalling)
    unit = not x.is_nan and not x.negative and x.magnitude == 1 and not x.is_infinite
    if (y.is_zero or unit) and not signals:
        code, raised = _round(Value(Kind.FINITE, False, Fraction(1)), fmt, rules)
        return code, raised | _signals((x, y), rules)
    return _arithmetic(_power_of, (a, b), fmt, options)


def _root_of_squares(x: Value, y: Value, rules: Options) -> Exact:
    square = x.magnitude**2 + y.magnitude**2
    numerator, denominator = square.as_integer_ratio()
    scale = 4**ROOT_BITS * denominator  # numerator * scale / denominator^2: the denominator comes out of the root whole
    root = math.isqrt(numerator * scale)
    exact = Fraction(root, 2**ROOT_BITS * denominator)
    return _finite(exact if exact**2 == square else Fraction(2 * root + 1, 2 ** (ROOT_BITS + 1) * denominator))


def hypot(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The square root of a * a + b * b (IEEE 754-2019 9.2.1); infinite beside an infinity, for a quiet NaN too.

    Flags: INVALID for signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    rules = _rules(fmt, options)
    values = _operand(a, fmt, rules), _operand(b, fmt, rules)
    if any(x.is_infinite for x in values) and not any(x.is_nan and x.signalling for x in values):
        code, raised = _round(Value(Kind.INFINITE, False), fmt, rules)
        return code, raised | _signals(values, rules)
    return _arithmetic(_root_of_squares, (a, b), fmt, options)


def _angle(y: Value, x: Value, rules: Options) -> Exact:
    """C23 F.10.1.4, by quadrants."""
    turn = HALF_TURN
    if y.is_zero or (x.is_infinite and not y.is_infinite):
        size = turn if x.negative else Fraction(0)
    elif y.is_infinite:
        size = turn / 2 if not x.is_infinite else turn * 3 / 4 if x.negative else turn / 4
    elif x.is_zero:
        size = turn / 2
    else:
        size = _settled(mpmath.atan2, y.magnitude, Fraction(x.real))
    return Value(Kind.FINITE, y.negative, size), 0


def atan2(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The angle of the point (b, a) (IEEE 754-2019 9.2.1).

    Flags: INVALID for signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_angle, (a, b), fmt, options)


def _natural_sum(a: Any, b: Any) -> Any:
    return a + mpmath.log1p(mpmath.exp(b - a))


def _binary_sum(a: Any, b: Any) -> Any:
    return a + mpmath.log1p(mpmath.power(2, b - a)) / mpmath.log(2)


def _log_of_sum(x: Value, y: Value, compute: Callable[..., Any]) -> Exact:
    high, low = max(x.real, y.real), min(x.real, y.real)
    if math.isinf(high):
        return UP if high > 0 else DOWN
    if math.isinf(low):
        return _finite(Fraction(high))
    if high == low and compute is _binary_sum:
        return _finite(Fraction(high) + 1)
    if high - low > 2 * BEYOND:
        return _finite(Fraction(high) + _power(-BEYOND))
    return _finite(_settled(compute, Fraction(high), Fraction(low)))


def logaddexp(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """log(e^a + e^b) (numpy.logaddexp). Flags and errors as `atan2`."""
    return _arithmetic(lambda x, y, _: _log_of_sum(x, y, _natural_sum), (a, b), fmt, options)


def logaddexp2(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """log2(2^a + 2^b) (numpy.logaddexp2). Flags and errors as `atan2`."""
    return _arithmetic(lambda x, y, _: _log_of_sum(x, y, _binary_sum), (a, b), fmt, options)


def _floor_of_quotient(x: Value, y: Value, rules: Options) -> Exact:
    negative = x.negative != y.negative
    if y.is_zero:
        return _quotient(x, y, rules)
    if x.is_infinite:
        return UNDEFINED
    if y.is_infinite:
        return _finite(-1) if negative and not x.is_zero else (Value(Kind.FINITE, negative), 0)
    whole = math.floor(Fraction(x.real) / Fraction(y.real))
    return (Value(Kind.FINITE, negative), 0) if whole == 0 else _finite(whole)


def floor_divide(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The floor of a / b (numpy.floor_divide), rounded once. A zero has the sign of the quotient.

    Flags: by zero as `div`; INVALID for infinite a by anything else, and for signalling NaNs; those of `round_exact`.
    Errors as `round_exact`.
    """
    return _arithmetic(_floor_of_quotient, (a, b), fmt, options)


def _rest(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite or y.is_zero:
        return UNDEFINED
    return Value(Kind.FINITE, x.negative, x.magnitude if y.is_infinite else x.magnitude % y.magnitude), 0


def fmod(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - n * b with n the quotient cut to an integer (C23 7.12.11.1); the sign is that of a. Flags and errors as `remainder`."""
    return _arithmetic(_rest, (a, b), fmt, options)


def _modulus(x: Value, y: Value, rules: Options) -> Exact:
    if x.is_infinite or y.is_zero:
        return UNDEFINED
    if y.is_infinite:
        if x.is_zero or x.negative == y.negative:
            return x._replace(negative=y.negative), 0
        return y, 0
    rest = Fraction(x.real) % Fraction(y.real)  # Python's own, with the sign of the divisor
    return Value(Kind.FINITE, y.negative, abs(rest)), 0


def modulo(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """a - floor(a / b) * b (numpy.remainder), rounded once; the sign is that of b, of a zero too.

    Flags: INVALID for infinite a, zero b and signalling NaNs; those of `round_exact`. Errors as `round_exact`.
    """
    return _arithmetic(_modulus, (a, b), fmt, options)


# -- integers --------------------------------------------------------------------------------------------------------


def round_to_integral(code: int, fmt: FormatOrName, exact: bool = True, **options: Any) -> Result:
    """The value of `code` rounded to an integer, as a code; a zero keeps the sign (IEEE 754-2019 5.9).

    Flags: INEXACT if the value changed and `exact`; INVALID for signalling NaNs, and for a zero in a format without
    zero; those of `round_exact` in a format too small for the integer. Errors as `round_exact`.
    """
    rules = _rules(fmt, options)
    value = _operand(code, fmt, rules)
    if value.is_nan:
        return _propagate([value], fmt, rules)
    if value.is_infinite:
        return _round(value, fmt, rules)
    integer = Fraction(_nearby_integer(value.magnitude, value.negative, rules))
    result, flags = _round(value._replace(magnitude=integer), fmt, rules)
    changed = exact and integer != value.magnitude and not flags & INVALID
    return result, flags | (INEXACT if changed else 0)


def to_integer(code: int, fmt: FormatOrName, bits: int, signed: bool, exact: bool = True, **options: Any) -> Result:
    """The value of `code` rounded to an integer of `bits` bits (IEEE 754-2019 5.8). Returns (integer, flags).

    Flags: INVALID alone for NaN and for what is out of range after rounding; INEXACT if the value changed and `exact`.
    Out of range the nearest integer of the type is delivered, NaN gives what the policy says; a policy with an "integer
    indefinite" delivers it for both.

    Raises
    ------
    ValueError
        As `decode`; `random_bits` missing.
    """
    rules = Options(**options)
    _check_random_bits(rules)
    value = _operand(code, fmt, rules)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if rules.policy.integer_nan == INTEGER_INDEFINITE:
        beyond_low = beyond_high = of_nan = low if signed else high
    else:
        beyond_low, beyond_high = low, high
        of_nan = 0 if rules.policy.integer_nan == INTEGER_ZERO else high
    if value.is_nan:
        return of_nan, INVALID
    if value.is_infinite:
        return (beyond_low if value.negative else beyond_high), INVALID
    magnitude = _nearby_integer(value.magnitude, value.negative, rules)
    integer = -magnitude if value.negative else magnitude
    if integer < low:
        return beyond_low, INVALID
    if integer > high:
        return beyond_high, INVALID
    return integer, INEXACT if exact and magnitude != value.magnitude else 0


# -- comparisons -----------------------------------------------------------------------------------------------------


def _compare(
    relation: Callable[[Any, Any], bool], signalling: bool, a: int, b: int, fmt: Format, options: dict[str, Any]
) -> tuple[bool, int]:
    rules = Options(**options)
    x, y = _operand(a, fmt, rules), _operand(b, fmt, rules)
    if x.is_nan or y.is_nan:
        return False, INVALID if signalling else _signals((x, y), rules)
    return relation(x.real, y.real), 0


def eq(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a = b (IEEE 754-2019 5.11, compareQuietEqual). Flags: INVALID for signalling NaNs."""
    return _compare(operator.eq, False, a, b, fmt, options)


def lt(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a < b (IEEE 754-2019 5.11, compareQuietLess). Flags: INVALID for signalling NaNs."""
    return _compare(operator.lt, False, a, b, fmt, options)


def le(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a <= b (IEEE 754-2019 5.11, compareQuietLessEqual). Flags: INVALID for signalling NaNs."""
    return _compare(operator.le, False, a, b, fmt, options)


def eq_signalling(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a = b (IEEE 754-2019 5.11, compareSignalingEqual). Flags: INVALID for NaNs."""
    return _compare(operator.eq, True, a, b, fmt, options)


def lt_signalling(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a < b (IEEE 754-2019 5.11, compareSignalingLess). Flags: INVALID for NaNs."""
    return _compare(operator.lt, True, a, b, fmt, options)


def le_signalling(a: int, b: int, fmt: FormatOrName, **options: Any) -> tuple[bool, int]:
    """Whether a <= b (IEEE 754-2019 5.11, compareSignalingLessEqual). Flags: INVALID for NaNs."""
    return _compare(operator.le, True, a, b, fmt, options)


def _extreme(largest: bool, number: bool, a: int, b: int, fmt: Format, options: dict[str, Any]) -> Result:
    rules = Options(**options)
    values = [_operand(a, fmt, rules), _operand(b, fmt, rules)]
    numbers = [x for x in values if not x.is_nan]
    if not numbers or (len(numbers) < 2 and not number):
        return _propagate(values, fmt, rules)
    ordered = sorted(numbers, key=lambda x: (x.real, not x.negative))  # -0 < +0
    chosen = ordered[-1] if largest else ordered[0]
    flags = _signals(values, rules)
    if chosen.is_infinite:
        return _infinity(chosen.negative, fmt, rules), flags
    return _code(chosen.negative, chosen.magnitude, fmt), flags


def minimum(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The smaller operand, -0 < +0; NaN if one is NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(False, False, a, b, fmt, options)


def maximum(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The larger operand, -0 < +0; NaN if one is NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(True, False, a, b, fmt, options)


def minimum_number(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The smaller operand, -0 < +0; the number beside a NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(False, True, a, b, fmt, options)


def maximum_number(a: int, b: int, fmt: FormatOrName, **options: Any) -> Result:
    """The larger operand, -0 < +0; the number beside a NaN (IEEE 754-2019 9.6). Flags: INVALID for signalling NaNs."""
    return _extreme(True, True, a, b, fmt, options)


def classify(code: int, fmt: FormatOrName, **options: Any) -> str:
    """One of the ten classes of IEEE 754-2019 5.7.2, by name. No flags. Under `daz` a subnormal is a zero.

    The names: "signalling_nan", "quiet_nan", and "negative_" or "positive_" before "infinity", "normal", "subnormal",
    "zero".
    """
    value = _operand(code, fmt, Options(**options))
    if value.is_nan:
        return "signalling_nan" if value.signalling else "quiet_nan"
    if value.is_infinite:
        size = "infinity"
    elif value.is_zero:
        size = "zero"
    else:
        size = "normal" if value.magnitude >= _power(_emin(fmt)) else "subnormal"
    return ("negative_" if value.negative else "positive_") + size


# -- names of formats ------------------------------------------------------------------------------------------------


def _by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with names of formats turned into the formats, and anything else refused."""
    parameters = inspect.signature(function).parameters
    places = {i: name for i, name in enumerate(parameters) if name in ("fmt", "src", "dst")}

    @wraps(function)
    def named(*arguments: Any, **options: Any) -> Any:
        given = list(arguments)
        for i, name in places.items():
            if i < len(given):
                given[i] = check_format(given[i], name)
            elif name in options:
                options[name] = check_format(options[name], name)
        return function(*given, **options)

    return named


globals().update({name: _by_name(globals()[name]) for name in __all__ if name not in ("Kind", "Options", "Value")})
