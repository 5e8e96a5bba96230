"""The oracle's one rounding, on exact fractions, with its flags, NaNs and overflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from softfloat.environments import as_rounding
from softfloat.formats import Format
from softfloat.kernels.spec import (
    DRAWN,
    PROPAGATE_NONE,
    PROPAGATE_SIGNALLING_FIRST,
    InfiniteInput,
    Overflow,
    Rounding,
    Tininess,
)
from softfloat.reference.values import (
    FINITE,
    INEXACT,
    INVALID,
    OVERFLOW,
    UNDERFLOW,
    FormatOrName,
    Kind,
    Options,
    Result,
    Value,
    code_of_units,
    decode,
    emin_of,
    exponent_of,
    in_units,
    layout_of,
    two_to,
)

__all__ = ["round_exact"]


# -- results that are not rounded ------------------------------------------------------------------------------------


def largest_code(negative: bool, fmt: Format) -> int:
    return layout_of(fmt).largest + (fmt.sign_bit if negative else 0)


def default_nan(fmt: Format, rules: Options) -> int:
    """The NaN of an invalid operation; in a format without NaN the largest finite value."""
    nan = layout_of(fmt).nan
    if nan is None:
        return largest_code(False, fmt)
    policy = rules.policy_for(fmt)
    if policy.all_ones and fmt.nan == "ieee":
        return (2**fmt.bits - 1) & ~fmt.sign_bit
    return nan | fmt.sign_bit if policy.negative_default and fmt.nan in ("ieee", "fn") else nan


def invalid_result(fmt: Format, rules: Options) -> Result:
    return default_nan(fmt, rules), INVALID


def infinity_code(negative: bool, fmt: Format, rules: Options) -> int:
    """Infinity; where there is none NaN; where there is neither the largest finite value."""
    infinity = layout_of(fmt).infinity
    if infinity is not None:
        return infinity + (fmt.sign_bit if negative else 0)
    return default_nan(fmt, rules) if fmt.has_nan else largest_code(negative, fmt)


def signalled(values: Sequence[Value], rules: Options) -> int:
    """INVALID if an operand is a signalling NaN (IEEE 754-2019 7.2 a), or a NaN that the policy counts as one."""
    return INVALID if any(x.is_nan and (x.signalling or rules.policy.any_nan_signals) for x in values) else 0


def propagated(values: Sequence[Value], fmt: Format, rules: Options) -> Result:
    """The result of an operation with NaN operands: a quiet NaN (IEEE 754-2019 6.2); which one, the policy says."""
    flags = signalled(values, rules) | (0 if fmt.has_nan else INVALID)
    policy = rules.policy_for(fmt)
    if policy.propagate == PROPAGATE_NONE or not fmt.has_nan:
        return default_nan(fmt, rules), flags
    ordered = [*values[1:], *values[:1]] if policy.from_second else values
    nans = [x for x in ordered if x.is_nan]
    if policy.propagate == PROPAGATE_SIGNALLING_FIRST:
        nans.sort(key=lambda x: not x.signalling)
    nan = layout_of(fmt).nan
    assert nan is not None
    if fmt.nan == "ieee":
        nan += math.floor(nans[0].payload * 2 ** (fmt.mantissa_bits - 1))
    signed = fmt.nan in ("ieee", "fn")
    return (nan | fmt.sign_bit if nans[0].negative and signed else nan), flags


# -- the rounding ----------------------------------------------------------------------------------------------------


def nearby_integer(y: Fraction, negative: bool, rules: Options) -> int:
    """`rounded_quotient` of a fraction."""
    return rounded_quotient(*y.as_integer_ratio(), negative, rules)


def rounded_quotient(numerator: int, denominator: int, negative: bool, rules: Options, shift: int = 0) -> int:
    """A magnitude, at least 0, rounded to an integer: IEEE 754-2019 4.3, round to odd, stochastic rounding.

    Counted in spacings, a number is its significand, with the significand's parity. A one-bit significand is 1 and odd,
    the power of two above it 2 and even: a tie between powers of two goes to the larger, as 4.3.1 demands. Where another
    number says what is even, it is `shift` more.
    """
    i, rest = divmod(numerator, denominator)
    if not rest:
        return i
    odd = (i + shift) % 2 == 1
    match rules.rounding:
        case Rounding.NEAREST_EVEN:
            up = 2 * rest > denominator or (2 * rest == denominator and odd)
        case Rounding.NEAREST_AWAY:
            up = 2 * rest >= denominator
        case Rounding.NEAREST_ZERO:
            up = 2 * rest > denominator
        case Rounding.NEAREST_UP:
            up = 2 * rest > denominator or (2 * rest == denominator and not negative)
        case Rounding.TOWARD_ZERO:
            up = False
        case Rounding.TOWARD_POSITIVE:
            up = not negative
        case Rounding.TOWARD_NEGATIVE:
            up = negative
        case Rounding.TO_ODD:
            up = not odd
        case Rounding.UP_OR_DOWN:
            up = rules.random_bits == 1
        case _:
            assert rules.random_bits is not None
            r = rules.random_width
            up = _kept(rest << r, denominator, rules.sr_method) + rules.random_bits >= 2**r
    return i + 1 if up else i


def _kept(numerator: int, denominator: int, method: str) -> int:
    """How many of its random numbers do not take a fraction up, from 2^sr_bits: StochasticA, B and C of P3109, draft 4.0."""
    if method == "truncate":
        return numerator // denominator
    if method == "half":
        return (2 * numerator + denominator) // (2 * denominator)
    return round(Fraction(numerator, denominator))  # ties to even


@lru_cache(maxsize=1024)
def largest_of(fmt: Format) -> Fraction:
    """The largest number of a format."""
    return decode(layout_of(fmt).largest, fmt).magnitude


def round_once(value: Value, fmt: Format, rules: Options) -> Result:
    """The one rounding. The value is exact: finite, or infinite as the result of arithmetic."""
    if rules.projection == "p3109":
        return projected(value, fmt, rules)
    kind, negative, magnitude, _, _ = value
    if not magnitude and kind is FINITE:
        return (code_of_units(negative, 0, 0, fmt), 0) if fmt.zero else invalid_result(fmt, rules)
    if negative and not fmt.signed:
        return invalid_result(fmt, rules)
    if kind is not FINITE:
        if rules.infinite_input is InfiniteInput.NAN:
            return invalid_result(fmt, rules)
        if fmt.infinities or rules.overflow is Overflow.INFINITY:
            return infinity_code(value.negative, fmt, rules), 0
        return largest_code(value.negative, fmt) if rules.overflow is Overflow.SATURATE else default_nan(fmt, rules), 0

    layout = layout_of(fmt)
    e, emin, m = exponent_of(magnitude), layout.emin, layout.m
    unit = e - m  # exponents of spacings: of a range without bounds, and of the format
    spacing = unit if e >= emin else emin - m if fmt.subnormals else emin
    numerator, denominator = in_units(magnitude, spacing)
    count = rounded_quotient(numerator, denominator, negative, rules)

    if count.bit_length() - 1 + spacing >= layout.emax:
        largest, one = in_units(largest_of(fmt), spacing)
        if count * one > largest:
            return _overflow(negative, fmt, rules)

    tiny = e < emin
    if tiny and rules.tininess is Tininess.AFTER:
        tiny = rounded_quotient(*in_units(magnitude, unit), negative, rules) < 2 ** (emin - unit)
    flags = INEXACT if count * denominator != numerator else 0
    if tiny and flags:
        flags |= UNDERFLOW
    if tiny and rules.ftz:
        count, flags = 0, UNDERFLOW | INEXACT
    if not count and not fmt.zero:
        count, spacing = 1, emin
    return code_of_units(negative, count, spacing, fmt), flags


def _overflow(negative: bool, fmt: Format, rules: Options) -> Result:
    """A rounded result beyond the largest finite value: IEEE 754-2019 7.4, saturation, or NaN."""
    flags = OVERFLOW | INEXACT
    if rules.overflow is Overflow.SATURATE:
        return largest_code(negative, fmt), flags
    if rules.overflow is Overflow.NAN:
        return default_nan(fmt, rules), flags | INVALID
    inward = {
        Rounding.TOWARD_ZERO: True,
        Rounding.TO_ODD: True,
        Rounding.TOWARD_POSITIVE: negative,
        Rounding.TOWARD_NEGATIVE: not negative,
    }
    stays_finite = inward.get(as_rounding(rules.rounding), False)
    return largest_code(negative, fmt) if stays_finite else infinity_code(negative, fmt, rules), flags


# -- P3109 -----------------------------------------------------------------------------------------------------------


def projected(value: Value, fmt: Format, rules: Options) -> Result:
    """Projection of IEEE P3109, draft 4.0 (section 4.7): rounded to the precision, saturated, encoded; our flags beside.

    The saturation modes are `overflow` and `infinite_input`: SatFinite saturates both, SatPropagate the first alone, SatNone
    neither. `overflow="nan"` is none of them: what overflows is NaN, with a flag.
    """
    if value.is_infinite:
        return _projected_infinity(value.negative, fmt, rules)
    if value.is_zero:
        return (code_of_units(value.negative, 0, 0, fmt), 0) if fmt.zero else invalid_result(fmt, rules)
    magnitude, precision, least = value.magnitude, fmt.mantissa_bits + 1, emin_of(fmt)
    flushes = not fmt.subnormals and exponent_of(magnitude) < least
    quantum = least if flushes else max(exponent_of(magnitude), least) - precision + 1
    count = _significand(magnitude, quantum, value.negative, fmt, rules)
    flags = 0 if count * two_to(quantum) == magnitude else INEXACT
    if magnitude < two_to(least):
        unbounded = exponent_of(magnitude) - precision + 1
        rounded = _significand(magnitude, unbounded, value.negative, fmt, rules) * two_to(unbounded)
        tiny = rules.tininess is Tininess.BEFORE or rounded < two_to(least)
        if tiny and rules.ftz:
            count, flags = 0, UNDERFLOW | INEXACT
        elif tiny and flags:
            flags |= UNDERFLOW
    rounded = count * two_to(quantum)
    if value.negative and not fmt.signed and (rounded or not fmt.zero):
        code = _saturated(True, fmt, rules)
        return code, OVERFLOW | INEXACT if code == 0 else INVALID
    if rounded > largest_of(fmt):
        invalid = INVALID if rules.overflow is Overflow.NAN else 0
        return _saturated(value.negative, fmt, rules), OVERFLOW | INEXACT | invalid
    if not count and not fmt.zero:
        return code_of_units(value.negative, 1, least, fmt), flags
    return code_of_units(value.negative, count, quantum, fmt), flags


def _significand(magnitude: Fraction, quantum: int, negative: bool, fmt: Format, rules: Options) -> int:
    """A magnitude as so many quanta. CodeIsEven: of one digit, 2^Q is even where its code Q + bias is."""
    shift = quantum + fmt.bias - 1 if fmt.mantissa_bits == 0 else 0
    return rounded_quotient(*in_units(magnitude, quantum), negative, rules, shift)


def _extreme(negative: bool, fmt: Format) -> int:
    """The code of the least or the greatest finite number."""
    return 0 if negative and not fmt.signed else largest_code(negative, fmt)


def _saturated(negative: bool, fmt: Format, rules: Options) -> int:
    """What lies beyond the finite numbers."""
    if rules.overflow is Overflow.NAN:
        return default_nan(fmt, rules)
    extreme = _extreme(negative, fmt)
    lower, upper = negative, not negative
    match rules.rounding:
        case Rounding.TOWARD_ZERO:
            stays = True
        case Rounding.TOWARD_NEGATIVE:
            stays = upper
        case Rounding.TOWARD_POSITIVE:
            stays = lower
        case Rounding.TO_ODD:
            stays = bool(extreme & 1)
        case _:
            stays = False
    return extreme if stays or rules.overflow is Overflow.SATURATE else _unbounded(negative, fmt, rules)


def _unbounded(negative: bool, fmt: Format, rules: Options) -> int:
    """SatNone: an infinity where there is one; below unsigned formats NaN; else the extreme number."""
    if negative and not fmt.signed:
        return default_nan(fmt, rules)
    infinity = layout_of(fmt).infinity
    if infinity is None:
        return _extreme(negative, fmt)
    return infinity | (fmt.sign_bit if negative else 0)


def _projected_infinity(negative: bool, fmt: Format, rules: Options) -> Result:
    choice = rules.infinite_input
    if choice is InfiniteInput.NAN:
        return invalid_result(fmt, rules)
    if choice is InfiniteInput.SATURATE or (choice is InfiniteInput.DEFAULT and rules.overflow is Overflow.SATURATE):
        return _extreme(negative, fmt), 0
    code = _unbounded(negative, fmt, rules)
    if negative and not fmt.signed:
        # SatPropagate has the least number for an infinity without a code; SatNone has NaN
        return (0, 0) if rules.overflow is Overflow.SATURATE else (code, INVALID)
    return code, 0


def options_of(options: dict[str, Any]) -> Options:
    """The settings of an operation."""
    random_bits = options.get("random_bits")
    if type(random_bits) is int and random_bits > 0:  # each call has its own; all else is settled once
        rules = options_of({**options, "random_bits": 0})
        if random_bits < 2**rules.random_width:
            return rules.drawing(random_bits)
    try:
        return _options_of(tuple([(name, value, type(value)) for name, value in options.items()]))
    except TypeError:  # of no kind that is kept, or refused: then again, saying why
        return Options(**options)


@lru_cache(maxsize=1024)
def _options_of(options: tuple[tuple[str, Any, type], ...]) -> Options:
    """Their types are part of the key: True, 1 and 1.0 are equal."""
    return Options(**{name: value for name, value, _ in options})


BY_DEFAULT = Options()


def rules_for(fmt: Format, options: dict[str, Any]) -> Options:
    """The settings of an operation that rounds to `fmt`."""
    if not options:
        return BY_DEFAULT
    rules = options_of(options)
    check_random_bits(rules)
    if rules.overflow is Overflow.NAN and not fmt.has_nan:
        raise ValueError(f"overflow='nan' needs a NaN, {fmt.name} has none; accepted: 'infinity', 'saturate'")
    return rules


def check_random_bits(rules: Options) -> None:
    if rules.rounding in DRAWN and rules.random_bits is None:
        raise ValueError(
            f"random_bits must be 0 to 2^{rules.random_width} - 1 for rounding={as_rounding(rules.rounding).name.lower()!r}, got None"
        )


def round_exact(value: Value | Fraction | int, fmt: FormatOrName, **options: Any) -> Result:
    """The code of an exact value, rounded once. An infinite value is taken for the result of arithmetic.

    Flags: INEXACT, UNDERFLOW, OVERFLOW; INVALID for an overflow under `overflow="nan"`, for a negative value in an
    unsigned format, for zero in a format without zero, for NaN in a format without NaN. Rule: IEEE 754-2019 4.3, 7.4,
    7.5.

    With y = ``|value|`` / spacing, stochastic rounding goes up in magnitude where floor(frac(y) * 2^sr_bits) + random_bits >=
    2^sr_bits.

    Raises
    ------
    ValueError
        Naming the setting: `overflow="nan"` in a format without NaN, `random_bits` missing.
    """
    rules = rules_for(fmt, options)
    if not isinstance(value, Value):
        value = Value(Kind.FINITE, value < 0, abs(Fraction(value)))
    return propagated([value], fmt, rules) if value.is_nan else round_once(value, fmt, rules)
