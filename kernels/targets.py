"""What loops know of a format and of a rule: flat tuples of numbers, standard library only.

A format is held three times, each time as little as its user needs: `spec.FormatSpec` says which codes mean what, `Source`
is what turns a code into a carrier value, `Target` is what turns a carrier value into a code *under one rounding
rule*. The last two are derived here, in one place; every difference between rounding modes, overflow rules, tininess
and NaN policies is a number in them, so one compiled loop serves all formats and all rules.
"""

from functools import lru_cache
from math import inf, nan
from typing import NamedTuple

from .spec import (
    CARRIER64,
    DIVBYZERO,
    INEXACT,
    INVALID,
    NEVER,
    OVERFLOW,
    UNDERFLOW,
    Carrier,
    FormatSpec,
    InfiniteInput,
    Overflow,
    Rounding,
    Rule,
    Tininess,
    emin,
)  # fmt: skip


def power(exponent: int) -> float:
    """2^exponent; 0 or infinite where float64 has none."""
    return 2.0**exponent if exponent <= CARRIER64.bias else inf


class Source(NamedTuple):
    """code -> carrier value. Integers first, then carrier floats."""

    magnitude_mask: int  # what is above it is the sign
    shift: int  # fraction bits the carrier has more
    rebias: int  # carrier exponent field of exponent 0 in the format
    hidden: int  # below it the exponent field is 0
    sign_shift: int
    infinity: int
    nan_first: int
    lone_nan: int
    quiet: int
    payload: int  # fraction bits a NaN carries along
    one_exponent: int
    tiny: float  # smallest normal value
    flush_below: float  # subnormal operands below it count as zero
    zero: float
    infinite: float
    not_a_number: float


def source(fmt: FormatSpec, carrier: Carrier, daz: bool) -> Source:
    """The numbers that decode `fmt` into `carrier`."""
    tiny = power(1 - fmt.bias) if fmt.zero else 0.0
    return Source(
        magnitude_mask=(1 << (fmt.width - fmt.signed)) - 1,
        shift=carrier.fraction_bits - fmt.mantissa_bits,
        rebias=(carrier.bias - fmt.bias) << carrier.fraction_bits,
        hidden=1 << fmt.mantissa_bits if fmt.zero else 0,
        sign_shift=(64 if carrier is CARRIER64 else 32) - fmt.width if fmt.signed else 0,
        infinity=fmt.infinity,
        nan_first=fmt.nan_first,
        lone_nan=fmt.lone_nan,
        quiet=fmt.quiet,
        payload=(fmt.quiet << 1) - 1 if fmt.quiet else 0,
        one_exponent=1 << carrier.fraction_bits,
        tiny=tiny,
        flush_below=tiny if daz or not fmt.subnormals else 0.0,
        zero=0.0,
        infinite=inf,
        not_a_number=nan,
    )


class Target(NamedTuple):
    """carrier value -> code, under one rule. Integers first, then carrier floats."""

    mantissa_bits: int
    lowest_exponent: int  # carrier exponent field of emin
    lowest_quantum: int  # carrier exponent field of the spacing below 2^emin
    fraction_bits: int
    twice_bias: int
    code_base: int  # subtracted from the assembled code: a format without zero starts at its first power of two
    magic_bits: int
    largest: int  # before `code_base` is subtracted
    sign: int
    zero_sign: int  # the sign bit if the format has a negative zero
    overflow_positive: int
    overflow_negative: int
    overflow_flags: int
    infinity_positive: int
    infinity_negative: int
    infinity_flags: int
    nan: int
    nan_flags: int  # raised by every NaN result: a format without NaN cannot hold it
    any_nan_signals: int
    product_invalid: int
    propagate: int
    addend_first: int
    from_second: int
    number_signalling: int
    second_operand: int
    nan_base: int  # what a propagated payload is put onto
    nan_sign: int  # the sign bit if NaNs have one
    payload: int  # fraction bits that hold a payload; 0 where the format has a single NaN
    quieting: int  # the bit that a propagated NaN gets
    ftz: int
    downward: int
    unsigned: int
    strict: int  # whether negative values are lost in an unsigned format even if they round to zero; this and the next four are for unusual formats
    beneath: int  # what becomes of those that are lost
    beneath_flags: int
    beneath_infinite_flags: int  # negative infinity becomes `infinity_negative`
    coded: int  # whether parity is that of codes; that of n, otherwise
    zeroless: int
    late: int  # whether tininess is found after rounding
    none: int
    unit: int
    inexact: int
    tiny_inexact: int
    overflow_bit: int
    invalid: int
    divbyzero: int
    stochastic: int
    split_mask: int
    split_half: int
    sticky: int  # the last bit of a value that may stand for others
    sticky_mask: int  # that bit and what is below it
    magic: float
    zero: float
    one: float
    infinite: float
    least: float
    most: float
    first_code: float  # code of the smallest normal number
    up_positive_even: float  # rounding goes up in magnitude where the fraction reaches that of its sign and parity
    up_positive_odd: float
    up_negative_even: float
    up_negative_odd: float
    tiny_positive: float  # a magnitude below it is tiny
    tiny_negative: float
    smallest_normal: float
    sliver_scale: float  # stochastic tininess: 1 / spacing just below the smallest normal number, exponent unbounded
    window_low: float  # a step is open where the fraction falls short of the threshold by more than this
    window_high: float  # and by no more than this: bits not drawn yet lower it, sticky bits hide the fraction
    sticky_unit: float  # a value's sticky bit, of its power of two; 0 where it hides nothing
    draw_half: float  # what stochastic thresholds are lower by
    draw_grid: float  # added to a fraction and taken away again, it leaves the random bits' multiples; 0: all
    draw_least: float  # what fractions above 0 are at least
    by_zero: float  # what a quotient by zero is multiplied by: 1, or NaN


def names_of(kind: type, *numbers: type) -> list[str]:
    """The integers, or floats, among the fields of named tuples, as `packed` numbers lie in an array."""
    return [name for known in numbers for name, its_kind in known.__annotations__.items() if its_kind is kind]


def count_fields(numbers: type) -> tuple[int, int]:
    """(integers, floats) among the fields of a named tuple that has its integers first."""
    return len(names_of(int, numbers)), len(names_of(float, numbers))


NEVER_UP = 2.0  # no fraction reaches it


def thresholds(rounding: Rounding, negative: bool, carrier: Carrier) -> tuple[float, float]:
    """(even, odd): the least fraction that rounds an even, an odd significand up in magnitude. Stochastic rounding brings its own."""
    just_above_half = 0.5 + 2.0 ** (-1 - carrier.fraction_bits)  # the next number of the carrier after 1/2
    anything = 2.0 ** (1 - carrier.bias)  # the smallest normal number of the carrier; no fraction but zero is below it
    always = anything, anything
    never = NEVER_UP, NEVER_UP
    table = {
        Rounding.NEAREST_EVEN: (just_above_half, 0.5),
        Rounding.NEAREST_AWAY: (0.5, 0.5),
        Rounding.TOWARD_ZERO: never,
        Rounding.TOWARD_POSITIVE: never if negative else always,
        Rounding.TOWARD_NEGATIVE: always if negative else never,
        Rounding.TO_ODD: (anything, NEVER_UP),
        Rounding.STOCHASTIC: never,
        Rounding.NEAREST_ZERO: (just_above_half, just_above_half),
        Rounding.NEAREST_UP: (just_above_half, just_above_half) if negative else (0.5, 0.5),
        Rounding.UP_OR_DOWN: never,
    }
    return table[rounding]


def by_code(fmt: FormatSpec, rule: Rule) -> bool:
    """Whether parity is that of codes: significands of one bit are all odd (P3109 draft 4.0, CodeIsEven)."""
    return rule.projection == "p3109" and not fmt.mantissa_bits


def tiny_limit(fmt: FormatSpec, rule: Rule, negative: bool, carrier: Carrier) -> float:
    """The least magnitude that is not tiny.

    After rounding, magnitudes in the sliver (2^emin - spacing, 2^emin), whose spacing is that of unbounded exponents,
    escape if they round up to 2^emin. The significand below is odd, the power of two above is even; by codes, it is the
    other way round, as the smallest normal number of one bit has the code 1, or, without zero, 0. Of wide formats the limit may lie
    between numbers of the carrier: `wide` counts in integers.
    """
    smallest_normal = 2.0 ** emin(fmt)
    if rule.tininess is Tininess.BEFORE:
        return smallest_normal
    spacing = 2.0 ** (emin(fmt) - 1 - fmt.mantissa_bits)
    sliver = smallest_normal - spacing
    if rule.rounding.draws:
        return sliver
    even, odd = thresholds(rule.rounding, negative, carrier)
    threshold = even if by_code(fmt, rule) and fmt.zero else odd
    ulp = spacing * 2.0 ** (fmt.mantissa_bits - carrier.fraction_bits)
    if threshold > 1:
        return smallest_normal
    if threshold >= 0.5:
        return sliver + spacing / 2 + (ulp if threshold > 0.5 else 0.0)
    return sliver + ulp  # the first number of the carrier above the sliver's start


@lru_cache(maxsize=1024)
def target(fmt: FormatSpec, rule: Rule, carrier: Carrier) -> Target:
    """The numbers that round a carrier value into `fmt` under `rule`."""
    policy = rule.policy
    sign = 1 << (fmt.width - 1) if fmt.signed else 0
    has_infinity, has_nan = fmt.infinity != NEVER, fmt.nan_first != NEVER or fmt.lone_nan >= 0
    two_nans = fmt.nan_first != NEVER and fmt.signed
    default_nan = fmt.nan | (sign if policy.negative_default and two_nans else 0)
    default_nan |= fmt.quiet - 1 if policy.all_ones and fmt.quiet else 0
    nan_flags = 0 if has_nan else INVALID

    p3109, either = rule.projection == "p3109", rule.rounding is Rounding.UP_OR_DOWN
    method = "" if either else rule.sr_method

    def beyond(negative: bool, kind: Overflow) -> int:
        beneath = negative and not fmt.signed
        if beneath and not (p3109 and kind is Overflow.SATURATE):
            return default_nan
        finite = 0 if beneath else fmt.largest | (sign if negative else 0)
        if kind is Overflow.SATURATE:
            return finite
        if kind is Overflow.NAN:
            return default_nan
        if has_infinity:
            return fmt.infinity | (sign if negative else 0)
        return default_nan if has_nan and not p3109 else finite

    def overflowed(negative: bool) -> int:
        even, _ = thresholds(rule.rounding, negative, carrier)
        inward = even == NEVER_UP and not rule.rounding.draws
        if rule.rounding is Rounding.TO_ODD:
            inward = bool(fmt.largest & 1) and fmt.signed | (not negative) if p3109 else True
        stays_finite = inward and not rule.always_infinite
        return beyond(
            negative, Overflow.SATURATE if rule.overflow is Overflow.INFINITY and stays_finite else rule.overflow
        )

    infinite, infinity_flags = Overflow.INFINITY, 0
    choice = rule.infinite_input
    if choice is InfiniteInput.NAN:
        infinite, infinity_flags = Overflow.NAN, INVALID
    elif rule.conversion or p3109:
        if choice is InfiniteInput.SATURATE or (choice is InfiniteInput.DEFAULT and rule.overflow is Overflow.SATURATE):
            infinite = Overflow.SATURATE
    elif not has_infinity:
        infinite = rule.overflow

    carrier_emin = carrier.bias + emin(fmt)
    positive, negative = (thresholds(rule.rounding, side, carrier) for side in (False, True))
    spacing_exponent = emin(fmt) - 1 - fmt.mantissa_bits
    coming = 2.0**-16 - 2.0**-rule.random_width if rule.random_width > 16 and not rule.handed_bits else 0.0
    shown = rule.value_bits - 2 - fmt.mantissa_bits  # fraction bits before the sticky one, clear of thresholds as short
    hidden = 2.0**-shown / 2 if rule.random_width > shown else 0.0
    beneath, infinite_beneath = overflowed(True), beyond(True, infinite)
    if p3109 and not fmt.signed and infinite is Overflow.INFINITY and rule.overflow is Overflow.SATURATE:
        infinite_beneath = 0  # SatPropagate: an infinity without a code becomes the least number
    return Target(
        mantissa_bits=fmt.mantissa_bits,
        lowest_exponent=carrier_emin,
        lowest_quantum=carrier_emin - fmt.mantissa_bits if fmt.subnormals else carrier_emin,
        fraction_bits=carrier.fraction_bits,
        twice_bias=2 * carrier.bias,
        code_base=0 if fmt.zero else 1 << fmt.mantissa_bits,
        magic_bits=(carrier.bias + carrier.fraction_bits) << carrier.fraction_bits,
        largest=fmt.largest + (0 if fmt.zero else 1 << fmt.mantissa_bits),
        sign=sign,
        zero_sign=sign if fmt.signed_zero else 0,
        overflow_positive=overflowed(False),
        overflow_negative=beneath,
        overflow_flags=OVERFLOW | INEXACT | (INVALID if rule.overflow is Overflow.NAN else 0),
        infinity_positive=beyond(False, infinite),
        infinity_negative=infinite_beneath,
        infinity_flags=infinity_flags,
        nan=default_nan,
        nan_flags=nan_flags,
        any_nan_signals=INVALID if policy.any_nan_signals else 0,
        product_invalid=INVALID if policy.product_invalid else 0,
        propagate=rule.propagate,
        addend_first=int(policy.addend_first),
        from_second=int(policy.from_second),
        number_signalling=int(policy.number_signalling),
        second_operand=int(policy.second_operand),
        nan_base=fmt.infinity if fmt.quiet else fmt.nan,
        nan_sign=sign if two_nans else 0,
        payload=(fmt.quiet << 1) - 1 if fmt.quiet else 0,
        quieting=0 if rule.payloads == "cut" else fmt.quiet,
        ftz=int(rule.ftz),
        downward=int(rule.rounding is Rounding.TOWARD_NEGATIVE),
        unsigned=int(not fmt.signed),
        strict=int(not p3109 or not fmt.zero),
        beneath=beneath,
        beneath_flags=OVERFLOW | INEXACT if p3109 and beneath == 0 else INVALID,
        beneath_infinite_flags=infinity_flags if p3109 and infinite_beneath == 0 else INVALID,
        coded=int(by_code(fmt, rule)),
        zeroless=int(not fmt.zero),
        late=int(rule.tininess is Tininess.AFTER),
        none=0,
        unit=1,
        inexact=INEXACT,
        tiny_inexact=UNDERFLOW | INEXACT,
        overflow_bit=OVERFLOW,
        invalid=INVALID,
        divbyzero=DIVBYZERO,
        stochastic=int(rule.rounding.draws),
        split_mask=-1 << carrier.split_bits,
        split_half=1 << (carrier.split_bits - 1),
        sticky=1 << (53 - rule.value_bits),
        sticky_mask=(2 << (53 - rule.value_bits)) - 1,
        magic=2.0**carrier.fraction_bits,
        zero=0.0,
        one=1.0,
        infinite=inf,
        least=carrier.least,
        most=carrier.most,
        first_code=2.0**fmt.mantissa_bits,
        up_positive_even=positive[0],
        up_positive_odd=positive[1],
        up_negative_even=negative[0],
        up_negative_odd=negative[1],
        tiny_positive=tiny_limit(fmt, rule, False, carrier),
        tiny_negative=tiny_limit(fmt, rule, True, carrier),
        smallest_normal=2.0 ** emin(fmt),
        sliver_scale=power(-spacing_exponent),
        window_low=-hidden,
        window_high=coming + hidden,
        sticky_unit=0.0 if either else 2.0 ** (1 - rule.value_bits),
        draw_half=2.0 ** (-1 - rule.random_width) if method == "half" else 0.0,
        draw_grid=2.0 ** (carrier.fraction_bits - rule.random_width) if method == "nearest" else 0.0,
        draw_least=0.5 if either else 0.0,
        by_zero=nan if p3109 else 1.0,
    )
