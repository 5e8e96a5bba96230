"""Formats, and what IEEE 754 and hardware leave open: enumerations and flat tuples, standard library only."""

from enum import IntEnum
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


def emin(fmt: FormatSpec) -> int:
    """Exponent of the smallest normal number."""
    return 1 - fmt.bias if fmt.zero else -fmt.bias


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
