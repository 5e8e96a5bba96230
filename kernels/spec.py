"""What compiled code knows of a format and of an environment: enumerations and flat tuples, standard library only.

A format is held three times, each time as little as its user needs: `FormatSpec` says which codes mean what, `Source`
is what turns a code into a carrier value, `Target` is what turns a carrier value into a code *under one rounding
rule*. The last two are derived here, in one place; every difference between rounding modes, overflow rules, tininess
and NaN policies is a number in them, so one compiled loop serves all formats and all rules.
"""

from enum import IntEnum
from functools import lru_cache
from math import inf, nan, nextafter
from typing import NamedTuple


class Rounding(IntEnum):
    """Rounding-direction attributes: IEEE 754-2019 4.3 and 9.5, SoftFloat's round to odd, other ties, and roundings that draw.

    NEAREST_EVEN takes a tie to the even significand. With one bit of precision significands are 1, which is odd, and the
    power of two above counts as 2: ties go to the larger number, as IEEE 754 4.3.1 has it. P3109 goes by the parity of codes there
    (`projection="p3109"`).

    NEAREST_ZERO takes a tie toward zero: roundTiesTowardZero of IEEE 754-2019 9.5, the augmented operations. NEAREST_UP takes it toward
    positive: MATLAB's fi ("Nearest"), SystemC's SC_RND (IEEE 1666).

    TO_ODD takes what is not exact to the neighbour with an odd significand; beyond the largest number it gives the largest,
    odd or even, and never infinity (`overflow="nan"` aside). Under `projection="p3109"` it gives infinity where that has the odd code.

    STOCHASTIC goes up in magnitude with the probability floor(f * 2^w) / 2^w: f is the exact distance from the candidate below,
    in units of that between the candidates, and w the number of random bits (`sr_bits`, 1 to 52). This holds in every
    operation, function, conversion and stage of a sum, in all formats. `sr_method` has other ways to cut f to w bits.

    UP_OR_DOWN takes what is not exact up in magnitude or down, by one random bit, whatever f is: mode 6 of chop.
    """

    NEAREST_EVEN = 0
    NEAREST_AWAY = 1
    TOWARD_ZERO = 2
    TOWARD_POSITIVE = 3
    TOWARD_NEGATIVE = 4
    TO_ODD = 5
    STOCHASTIC = 6
    NEAREST_ZERO = 7
    NEAREST_UP = 8
    UP_OR_DOWN = 9

    @property
    def draws(self) -> bool:
        """Whether random numbers decide."""
        return self in DRAWN

    @property
    def nearest(self) -> bool:
        """Whether results are nearest numbers, whichever tie goes where."""
        return self in NEAREST


DRAWN = Rounding.STOCHASTIC, Rounding.UP_OR_DOWN
NEAREST = Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY, Rounding.NEAREST_ZERO, Rounding.NEAREST_UP


class Overflow(IntEnum):
    """What a finite result too large for the format becomes."""

    INFINITY = 0
    SATURATE = 1
    NAN = 2


class Tininess(IntEnum):
    """When a result is tested for being tiny: before rounding, or after rounding as if the exponent range had no lower end."""

    AFTER = 0
    BEFORE = 1


class InfiniteInput(IntEnum):
    """What a conversion makes of an infinite operand; `NAN` also holds for infinite results of arithmetic.

    `DEFAULT` is `SATURATE` under `Overflow.SATURATE` (OCP OFP8 1.0), else `KEEP`.
    """

    DEFAULT = 0
    KEEP = 1
    SATURATE = 2
    NAN = 3


class NanEncoding(IntEnum):
    """Which codes are NaN, by the suffixes of ml_dtypes: an IEEE exponent field, only all ones, only minus zero, or none."""

    IEEE = 0
    FN = 1
    FNUZ = 2
    NONE = 3


PROJECTIONS = ("ieee", "p3109")
"""Whose rules make a code of a rounded value where IEEE 754-2019 and IEEE P3109 (draft 4.0) differ."""

SR_METHODS = ("truncate", "half", "nearest")
"""How the fraction f meets a random number R of w bits: up where floor(f * 2^w) + R, floor(f * 2^w + 1/2) + R, or f * 2^w rounded to
nearest even, + R, is at least 2^w. StochasticA, B and C of P3109, draft 4.0."""

SR_REACH = 40
"""Bits that precision and random bits may have together for all but "truncate": no sticky bit is then in the way, of any value."""

INEXACT, UNDERFLOW, OVERFLOW, DIVBYZERO, INVALID = 1, 2, 4, 8, 16

PROPAGATE_NONE, PROPAGATE_FIRST, PROPAGATE_SIGNALLING_FIRST = 0, 1, 2
INTEGER_MAXIMUM, INTEGER_ZERO, INTEGER_INDEFINITE, INTEGER_SHORT_ZERO = 0, 1, 2, 3  # the last: 0, in 64 bits 2^63


class NanPolicy(NamedTuple):
    """How NaNs travel: one row of `NAN_POLICIES`."""

    name: str
    source: str
    negative_default: bool = False  # sign of a NaN made by an invalid operation
    propagate: int = PROPAGATE_NONE  # which NaN operand's payload survives
    any_nan_signals: bool = False  # a quiet operand raises INVALID too
    product_invalid: bool = True  # inf*0 + quiet NaN is an invalid operation
    addend_first: bool = False  # whose payload an fma looks at first
    from_second: bool = False  # payloads are looked at in the order b, c, a
    integer_nan: int = INTEGER_MAXIMUM  # what NaN converts to; INDEFINITE also replaces saturation
    all_ones: bool = False  # the NaN of an invalid operation has all its fraction bits set
    number_signalling: bool = (
        False  # minNum of IEEE 754-2008: a signalling NaN beats a number; tiny results are flushed
    )
    second_operand: bool = False  # minimum and maximum are the second one if one is a NaN (INVALID) or both are zeros


NAN_POLICIES = {
    row.name: row
    for row in (
        NanPolicy("canonical", "IEEE 754-2019 6.2 permits any NaN; the positive quiet one without payload"),
        NanPolicy("riscv", "RISC-V ISA manual, F extension: canonical NaN; FCVT saturates, NaN as +inf"),
        NanPolicy(
            "x86",
            "Berkeley SoftFloat-3e, 8086-SSE specialisation",
            negative_default=True,
            propagate=PROPAGATE_FIRST,
            integer_nan=INTEGER_INDEFINITE,
        ),
        NanPolicy(
            "x86_fma3",
            "as x86; VFMADD returns the quiet NaN of inf*0 + NaN without a flag",
            negative_default=True,
            propagate=PROPAGATE_FIRST,
            product_invalid=False,
            integer_nan=INTEGER_INDEFINITE,
        ),
        NanPolicy(
            "arm",
            "Arm ARM, FPProcessNaNs, FPProcessNaNs3, FPMulAdd and FPMinNum with FPCR.DN = 0; FCVT saturates, NaN to 0",
            propagate=PROPAGATE_SIGNALLING_FIRST,
            addend_first=True,
            integer_nan=INTEGER_ZERO,
            number_signalling=True,
        ),
        NanPolicy(
            "ipu", "Poplar FloatingPointBehaviour: any operation with a NaN operand raises INV", any_nan_signals=True
        ),
        NanPolicy(
            "nvidia",
            "NVIDIA PTX ISA: NaN results are 0x7FFFFFFF, in half 0x7FFF; cvt to integers, on H100: NaN to 0, in 64 bits to 2^63",
            all_ones=True,
            integer_nan=INTEGER_SHORT_ZERO,
        ),
        NanPolicy(
            "arm_dn",
            "Arm ARM, FPProcessNaN and FPMinNum with FPCR.DN = 1; FCVT as in arm",
            integer_nan=INTEGER_ZERO,
            number_signalling=True,
        ),
        NanPolicy(
            "arm_ah",
            "Arm ARM, FPDefaultNaN, FPProcessNaNs, FPProcessNaNs3, FPMulAdd, FPMin and FPMinNum with FPCR.AH = 1, DN = 0; "
            "FCVT as in arm",
            negative_default=True,
            propagate=PROPAGATE_FIRST,
            product_invalid=False,
            integer_nan=INTEGER_ZERO,
            number_signalling=True,
            second_operand=True,
        ),
        NanPolicy(
            "arm_ah_dn",
            "the same with FPCR.AH = 1, DN = 1",
            negative_default=True,
            product_invalid=False,
            integer_nan=INTEGER_ZERO,
            number_signalling=True,
            second_operand=True,
        ),
    )
}

DOUBLE_POLICIES = {
    "nvidia": NanPolicy(
        "nvidia_double",
        "fma.rn.f64, add.rn.f64 and mul.rn.f64, on H100 and H200: payloads kept, those of inf*0 + NaN too; other operations alike, unmeasured",
        negative_default=True,
        propagate=PROPAGATE_FIRST,
        from_second=True,
        product_invalid=False,
        integer_nan=INTEGER_SHORT_ZERO,
    )
}
"""What results in float64 follow, where that is not the policy of this name. Nobody asks for these by their own names."""
_BY_NAME = NAN_POLICIES | {row.name: row for row in DOUBLE_POLICIES.values()}

PAYLOADS = ("policy", "quieted", "cut")
"""What becomes of a NaN in a conversion: what the policy says; sign and payload kept, quiet; sign and the first fraction bits as they are."""


class NanConversion(NamedTuple):
    """A conversion that does not treat NaNs as its policy says: one row of `NAN_CONVERSIONS`."""

    policy: str
    origin: str  # names of formats
    result: str
    payloads: str  # of `PAYLOADS`
    source: str
    rounding: Rounding | None = None  # the mode in which it holds; None: all


_ROWS = (
    *(
        NanConversion("nvidia", name, "float64", "quieted", f"cvt.f64.{x}, on H100")
        for name, x in (("float16", "f16"), ("bfloat16", "bf16"), ("float32", "f32"))
    ),
    NanConversion(
        "nvidia", "bfloat16", "float32", "cut", "cvt.f32.bf16, all codes on H100: a shift, no NaN is quieted"
    ),
    *(
        NanConversion("nvidia", "float64", name, "quieted", f"cvt.rn.{x}.f64, on H100 and H200")
        for name, x in (("float16", "f16"), ("bfloat16", "bf16"), ("float32", "f32"))
    ),
    NanConversion(
        "nvidia",
        "float32",
        "tfloat32",
        "cut",
        "cvt.rna.tf32.f32, all codes on H100: 13 bits cut off, so that a NaN may become infinity; .rn and .rz as the policy has it",
        Rounding.NEAREST_AWAY,
    ),
)
NAN_CONVERSIONS = {row[:3]: row for row in _ROWS}
"""By policy, and names of both formats."""


def policy_for(name: str, fmt: "FormatSpec") -> NanPolicy:
    """The rules for NaNs among results of a format."""
    return DOUBLE_POLICIES.get(name, NAN_POLICIES[name]) if fmt == FLOAT64 else NAN_POLICIES[name]


def converted_payloads(policy: str, origin: str, result: str, rounding: Rounding) -> str:
    """What becomes of NaNs in a conversion between formats of these names."""
    row = NAN_CONVERSIONS.get((policy, origin, result))
    return PAYLOADS[0] if row is None or row.rounding not in (None, rounding) else row.payloads


class FormatSpec(NamedTuple):
    """Which codes mean what. Magnitudes are codes without their sign bit; a magnitude field that no code has is `NEVER`."""

    width: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool
    signed_zero: bool
    zero: bool
    subnormals: bool
    largest: int  # magnitude of the largest finite value
    infinity: int  # magnitude of infinity
    nan_first: int  # least magnitude that is a NaN
    lone_nan: int  # the one code that is NaN by its sign and nothing else
    nan: int  # the canonical quiet NaN's code
    quiet: int  # the bit that tells quiet from signalling; 0 where all NaNs are quiet


NEVER = 1 << 62
LONGEST = 62  # bits of magnitudes that `NEVER` lies beyond


def format_spec(
    exponent_bits: int,
    mantissa_bits: int,
    bias: int,
    infinities: bool,
    nan_encoding: NanEncoding,
    subnormals: bool,
    signed: bool,
    signed_zero: bool,
    zero: bool,
) -> FormatSpec:
    """Lay out the special codes. From the top magnitude down: NaN where it is a magnitude, then infinity, then the largest finite value."""
    width = signed + exponent_bits + mantissa_bits
    all_ones = (1 << (exponent_bits + mantissa_bits)) - 1
    infinity, nan_first, lone_nan, quiet, nan_code = NEVER, NEVER, -1, 0, 0
    if nan_encoding is NanEncoding.IEEE:
        infinity = all_ones >> mantissa_bits << mantissa_bits
        nan_first = infinity + 1
        quiet = 1 << (mantissa_bits - 1)
        nan_code = infinity | quiet
        largest = infinity - 1
    else:
        largest = all_ones
        if nan_encoding is NanEncoding.FN:
            nan_first = nan_code = largest
            largest -= 1
        elif nan_encoding is NanEncoding.FNUZ:
            lone_nan = nan_code = 1 << (width - 1)
        if infinities:
            infinity = largest
            largest -= 1
    if nan_encoding is NanEncoding.NONE:
        nan_code = largest
    special = largest, infinity, nan_first, lone_nan, nan_code, quiet
    return FormatSpec(width, exponent_bits, mantissa_bits, bias, signed, signed_zero, zero, subnormals, *special)


FLOAT64 = format_spec(11, 52, 1023, True, NanEncoding.IEEE, True, True, True, True)

NARROW_PRECISION, NARROW_EXPONENT_BITS, EXPONENT_RANGE = 24, 8, 400
"""Of formats that a carrier serves, clear of the limits of float64 with products, quotients and their errors."""


def is_wide(fmt: FormatSpec) -> bool:
    """Whether a format has more: float64 has its numbers, and integers their arithmetic (`wide`)."""
    low = (1 if fmt.zero else 0) - fmt.bias - fmt.mantissa_bits
    high = (fmt.largest >> fmt.mantissa_bits) - fmt.bias + 1
    short = fmt.exponent_bits <= NARROW_EXPONENT_BITS and fmt.mantissa_bits < NARROW_PRECISION
    return not short or low < -EXPONENT_RANGE or high > EXPONENT_RANGE


class Carrier(NamedTuple):
    """A binary interchange format that holds every value and every exact-but-for-a-sticky-bit result."""

    fraction_bits: int
    bias: int
    split_bits: int  # low bits cut off so that two halves multiply exactly
    least: float  # stands for every smaller magnitude but 0: no format's value is near it
    most: float  # stands for every larger finite magnitude


CARRIER64 = Carrier(52, 1023, 27, 2.0**-500, 2.0**500)
CARRIER32 = Carrier(23, 127, 12, 2.0**-126, 2.0**128 - 2.0**104)


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


class Rule(NamedTuple):
    """One call's choice among everything IEEE 754 and hardware leave open."""

    rounding: Rounding = Rounding.NEAREST_EVEN
    overflow: Overflow = Overflow.INFINITY
    tininess: Tininess = Tininess.AFTER
    infinite_input: InfiniteInput = InfiniteInput.DEFAULT
    daz: bool = False
    ftz: bool = False
    nan: str = "canonical"
    conversion: bool = False
    always_infinite: bool = False  # overflow is infinite where the rounding mode would stay finite, too
    random_width: int = 52  # random bits per rounding, of the 52 that a carrier's fraction can tell apart
    value_bits: int = 53  # significant bits of the values to be rounded, the last one sticky
    handed_bits: bool = False  # the random bits come from the caller, all of them at once
    projection: str = "ieee"  # one of PROJECTIONS
    sr_method: str = "truncate"  # one of SR_METHODS
    payloads: str = "policy"  # one of PAYLOADS

    @property
    def policy(self) -> NanPolicy:
        """The rules for NaNs."""
        return _BY_NAME[self.nan]

    @property
    def propagate(self) -> int:
        """Which NaN operand's payload survives."""
        return self.policy.propagate if self.payloads == PAYLOADS[0] else PROPAGATE_FIRST

    @property
    def restated(self) -> bool:
        """Whether loops that restate the one rounding know of it."""
        drawn_otherwise = self.sr_method != "truncate" and self.rounding is Rounding.STOCHASTIC
        return self.projection == "ieee" and not drawn_otherwise


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
    other way round, as the smallest normal number of one bit has the code 1, or, without zero, 0. Where the carrier has no number
    that narrow, a limit below 2^emin says no more than that there are some (`wide` counts in integers).
    """
    smallest_normal = 2.0 ** emin(fmt)
    if rule.tininess is Tininess.BEFORE:
        return smallest_normal
    spacing = 2.0 ** (emin(fmt) - 1 - fmt.mantissa_bits)
    sliver = min(smallest_normal - spacing, nextafter(smallest_normal, 0.0))
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


def emin(fmt: FormatSpec) -> int:
    """Exponent of the smallest normal number."""
    return 1 - fmt.bias if fmt.zero else -fmt.bias


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
