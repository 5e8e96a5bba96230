"""Formats: which values exist and how they are coded. The roster is one line per format; everything else is derived.

>>> float16
Format('float16', exponent_bits=5, mantissa_bits=10, bias=15)  # s.eeeee.ffffffffff, max 65504, tiny 6.1e-05, eps 0.00098
>>> Format("e6m9", exponent_bits=6, mantissa_bits=9).max
4290772992.0
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.checks import check_switch, is_integer, nearest
from softfloat.frozen import hash_kept, settle
from softfloat.kernels import spec
from softfloat.kernels.spec import FormatSpec, NanEncoding
from softfloat.markup import general, plain_table, spans, styled, table_html, titled

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = [
    "ROSTER",
    "WIDE_ROSTER",
    "Format",
    "bfloat16",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "tfloat32",
]


# -- codes -----------------------------------------------------------------------------------------------------------


def bit_fields(code: int, fmt: Format) -> list[tuple[str, str]]:
    """Names and binary digits of a code's fields; a format has no field of width 0.

    >>> from softfloat.formats import float16
    >>> bit_fields(0x3C00, float16)
    [('sign', '0'), ('exponent', '01111'), ('fraction', '0000000000')]
    """
    digits, found, at = f"{int(code):0{fmt.bits}b}", [], 0
    for name, width in (("sign", int(fmt.signed)), ("exponent", fmt.exponent_bits), ("fraction", fmt.mantissa_bits)):
        if width:
            found.append((name, digits[at : at + width]))
            at += width
    return found


def code_text(code: int, fmt: Format) -> str:
    """A code as hexadecimal digits, as many as its format's width needs.

    >>> from softfloat.formats import float16
    >>> code_text(1, float16)
    '0x0001'
    """
    return f"0x{int(code):0{-(-fmt.bits // 4)}x}"


def fields_html(code: int, fmt: Format) -> str:
    """The bits of a code as an HTML span."""
    return spans(bit_fields(code, fmt))


def fields_rich(code: int, fmt: Format) -> Text:
    """The bits of a code as rich text."""
    return styled(bit_fields(code, fmt))


# -- formats ---------------------------------------------------------------------------------------------------------


def special_values(fmt: Format) -> str:
    """What a format has besides signed finite numbers and zero, or lacks, in a few words.

    >>> from softfloat.formats import float8_e4m3fnuz, float16
    >>> special_values(float16), special_values(float8_e4m3fnuz)
    ('inf, NaN', 'NaN (0x80), no -0')
    """
    words = ["inf"] if fmt.infinities else []
    if fmt.nan == "ieee":
        words.append("NaN")
    elif fmt.has_nan:
        first = "" if fmt.nan == "fnuz" or not fmt.signed else "±"
        words.append(f"NaN ({first}{code_text(fmt.nan_code & ~(fmt.sign_bit if first else 0), fmt)})")
    words = words or ["no inf, no NaN"]
    if not fmt.signed:
        words.append("unsigned")
    elif not fmt.signed_zero:
        words.append("no -0")
    if not fmt.zero:
        words.append("no zero")
    elif not fmt.subnormals:
        words.append("no subnormals")
    return ", ".join(words)


def format_facts(fmt: Format) -> list[tuple[str, str]]:
    """What a format is, as names and texts; its layout aside."""
    special = [(f"code of {name}", code_text(getattr(fmt, attribute), fmt)) for name, attribute in _special_codes(fmt)]
    return [
        ("bits", f"{fmt.bits}: {int(fmt.signed)} sign, {fmt.exponent_bits} exponent, {fmt.mantissa_bits} fraction"),
        ("precision", f"p = {fmt.p}"),
        ("exponents", f"{fmt.emin} to {fmt.emax}, bias {fmt.bias}"),
        ("max", f"{fmt.max:.9g}"),
        ("smallest normal", f"{fmt.tiny:.6g} = 2^{fmt.emin}"),
        (
            "smallest subnormal",
            f"{fmt.smallest_subnormal:.6g} = 2^{fmt.emin - fmt.mantissa_bits}"
            if fmt.subnormals and fmt.mantissa_bits
            else "none",
        ),
        ("eps", f"{fmt.eps:.6g} = 2^{-fmt.mantissa_bits}"),
        ("special values", special_values(fmt)),
        *special,
        *([("P3109, draft 4.0", f"{fmt.p3109_name}, {fmt.domain}")] if fmt.p3109_name else []),
    ]


def _special_codes(fmt: Format) -> list[tuple[str, str]]:
    found = [("inf", "inf_code")] if fmt.infinities else []
    return found + ([("NaN", "nan_code")] if fmt.has_nan else [])


def _letters(fmt: Format) -> list[tuple[str, str]]:
    return [(name, name[0] * len(digits)) for name, digits in bit_fields(0, fmt)]


def format_html(fmt: Format) -> str:
    """A format as an HTML table: its fields, range, precision and special values."""
    facts = [(escape(name), escape(text)) for name, text in format_facts(fmt)]
    return table_html([("layout", spans(_letters(fmt))), *facts], caption=fmt.name)


def format_rich(fmt: Format) -> RenderableType:
    """The same as `format_html`, for a rich console."""
    from rich.text import Text

    table = plain_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("layout", styled(_letters(fmt)))
    for name, text in format_facts(fmt):
        table.add_row(name, Text(text))
    return titled(fmt.name, table)


MAXIMUM_PRECISION = 53
MAXIMUM_EXPONENT_BITS = 11
LEAST_P3109 = 3  # bits
P3109_NAME = re.compile(r"binary([1-9]\d*)p([1-9]\d*)([su])([ef])")
BEYOND = {
    *(
        "float128",
        "fp128",
        "quad",
        "binary128",
        "float80",
        "longdouble",
    ),
    *("complex64", "complex128"),
}
"""Names of formats with more bits than those here."""
DERIVED: Any = None  # from the other parameters
LEAST_EXPONENT, LARGEST_EXPONENT = -1022, 1023  # of float64's normal numbers


@hash_kept
@dataclass(frozen=True, repr=False)
class Format:
    """A binary floating-point format of at most 53 bits of precision and 11 exponent bits, all of whose numbers float64 has.

    Parameters
    ----------
    name : str
        What the format is called in messages and tables.
    exponent_bits : int
        1 to 11.
    mantissa_bits : int
        Fraction bits, 0 to 52; the precision `p` is one more.
    bias : int, optional
        Exponent bias; default 2^(exponent_bits-1) - 1, and one more for `nan="fnuz"`, as in ml_dtypes.
    infinities : bool, optional
        Whether the format has infinities; default: only with `nan="ieee"`.
    nan : {"ieee", "fn", "fnuz", "none"}
        Which codes are NaN. "ieee": the top exponent field, as IEEE 754 lays it out. "fn": the all-ones magnitude only.
        "fnuz": the code of negative zero only. "none": no code. Without "ieee", an infinity is the top magnitude left.
    subnormals : bool
        Whether exponent field 0 holds subnormals; if not, its codes all read as zero.
    signed_zero : bool, optional
        Whether -0 exists; default True except for "fnuz" and unsigned formats.
    signed : bool
        Whether there is a sign bit.
    zero : bool
        Whether zero exists; if not (float8_e8m0fnu), exponent field 0 is an ordinary binade.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter and the accepted values. Parameters beyond the first three go by name.

    Notes
    -----
    A format of more than 8 exponent bits or 24 bits of precision, or with numbers outside 2^-400 ... 2^400, is `wide`: elementwise
    operations, sums (in order, in pairs, compensated, exact), vectors and SoftArrays serve it; functions (exp ... pow), dot-product units and what
    else does not refuse it by name.

    Numbers below float8_e8m0fnu's second, 2^-126, go to the nearest: from 2^-127 up to 1.5 * 2^-127 to 2^-127. ml_dtypes and PyTorch
    take all but 2^-127 itself to 2^-126 there; everywhere else the three agree.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int = field(default=DERIVED, kw_only=True)
    infinities: bool = field(default=DERIVED, kw_only=True)
    nan: str = field(default="ieee", kw_only=True)
    subnormals: bool = field(default=True, kw_only=True)
    signed_zero: bool = field(default=DERIVED, kw_only=True)
    signed: bool = field(default=True, kw_only=True)
    zero: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be a non-empty string, got {self.name!r}")
        for name in ("exponent_bits", "mantissa_bits", "bias"):
            if isinstance(getattr(self, name), np.integer):
                settle(self, **{name: int(getattr(self, name))})
        _check_integer("exponent_bits", self.exponent_bits, 1, MAXIMUM_EXPONENT_BITS)
        if isinstance(self.mantissa_bits, int) and self.mantissa_bits >= MAXIMUM_PRECISION:
            raise ValueError(
                f"mantissa_bits={self.mantissa_bits} means {self.mantissa_bits + 1} bits of precision; "
                f"accepted: 0 to {MAXIMUM_PRECISION - 1} (at most {MAXIMUM_PRECISION} bits of precision)"
            )
        _check_integer("mantissa_bits", self.mantissa_bits, 0, MAXIMUM_PRECISION - 1)
        if self.nan not in ("ieee", "fn", "fnuz", "none"):
            raise ValueError(f"nan must be 'ieee', 'fn', 'fnuz' or 'none', got {self.nan!r}")
        ieee, fnuz = self.nan == "ieee", self.nan == "fnuz"
        for name in ("signed", "zero", "subnormals"):
            check_switch(name, getattr(self, name))
        _set_default(self, "infinities", ieee)
        _set_default(self, "signed_zero", self.signed and not fnuz)
        _set_default(self, "bias", 2 ** (self.exponent_bits - 1) - (0 if fnuz else 1))
        for name in ("infinities", "signed_zero"):
            check_switch(name, getattr(self, name))
        if ieee and not (self.infinities and self.mantissa_bits):
            raise ValueError(
                "nan='ieee' needs infinities=True and mantissa_bits >= 1; accepted otherwise: nan='fn', 'fnuz' or 'none'"
            )
        if fnuz and (self.signed_zero or not self.signed):
            raise ValueError(
                "nan='fnuz' puts NaN in the place of negative zero: signed must be True and signed_zero False"
            )
        if self.signed_zero and not self.signed:
            raise ValueError("signed_zero must be False in an unsigned format")
        if self.signed and not fnuz and not self.signed_zero:
            raise ValueError(
                "signed_zero=False needs nan='fnuz', which gives the code of -0 a meaning, or signed=False"
            )
        if not self.zero and (self.signed or self.subnormals):
            raise ValueError("zero=False needs signed=False and subnormals=False")
        if isinstance(self.bias, bool) or not isinstance(self.bias, int):
            raise TypeError(f"bias must be an integer, got {self.bias!r}")
        ends = (
            f"biases that keep normal numbers in 2^{LEAST_EXPONENT} ... 2^{LARGEST_EXPONENT + 1}, as float64 has them"
        )
        if abs(self.bias) > 2 * LARGEST_EXPONENT:
            raise ValueError(f"bias={self.bias} is out of range; accepted: {ends}")
        magnitude = self.exponent_bits + self.mantissa_bits
        if not ieee and magnitude > spec.LONGEST:
            raise ValueError(
                f"nan={self.nan!r} leaves no code free in {magnitude} bits of exponent and fraction; accepted: at most {spec.LONGEST}, or nan='ieee'"
            )
        if self.spec.largest < (1 << self.mantissa_bits if self.zero else 0):
            raise ValueError(
                f"exponent_bits={self.exponent_bits} leaves no normal number beside the special codes of nan={self.nan!r}"
            )
        if self.emin < LEAST_EXPONENT or not self._top <= LARGEST_EXPONENT:
            raise ValueError(
                f"bias={self.bias} gives normal numbers from 2^{self.emin} to 2^{self._top + 1}; accepted: {ends}"
            )

    @cached_property
    def spec(self) -> FormatSpec:
        """What compiled code knows of the format."""
        return spec.format_spec(
            exponent_bits=self.exponent_bits,
            mantissa_bits=self.mantissa_bits,
            bias=self.bias,
            infinities=bool(self.infinities),
            nan_encoding=NanEncoding[self.nan.upper()],
            subnormals=self.subnormals,
            signed=self.signed,
            signed_zero=bool(self.signed_zero),
            zero=self.zero,
        )

    # -- layout
    # ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def bits(self) -> int:
        """Width of a code in bits."""
        return self.spec.width

    @cached_property
    def p(self) -> int:
        """Precision: significant bits of a normal number, the hidden one included."""
        return self.mantissa_bits + 1

    @cached_property
    def emin(self) -> int:
        """Exponent of the smallest normal number."""
        return spec.emin(self.spec)

    @property
    def _top(self) -> int:
        """Exponent of the largest finite number, were it normal."""
        return (self.spec.largest >> self.mantissa_bits) - self.bias

    @cached_property
    def emax(self) -> int:
        """Exponent of the largest finite number."""
        return math.frexp(self.max)[1] - 1

    @cached_property
    def wide(self) -> bool:
        """Whether float64 has the format's numbers, but no room for their exact products and errors: more than 8 exponent bits, 24 bits of
        precision, or numbers outside 2^-400 ... 2^400."""
        return spec.is_wide(self.spec)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned integer that holds a code."""
        widths = (8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64)
        return np.dtype(next(kind for width, kind in widths if self.bits <= width))

    # -- codes
    # ----------------------------------------------------------------------------------------------------------------

    @property
    def sign_bit(self) -> int:
        """The sign's bit in a code; 0 if unsigned."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def max_code(self) -> int:
        """Code of the largest finite value."""
        return self.spec.largest

    @property
    def min_code(self) -> int:
        """Code of the least finite value."""
        if self.signed:
            return self.spec.largest | self.sign_bit
        return 0

    @property
    def has_nan(self) -> bool:
        """Whether any code is NaN."""
        return self.nan != "none"

    @property
    def nan_code(self) -> int:
        """Code of the canonical quiet NaN."""
        if not self.has_nan:
            raise AttributeError(f"{self.name} has no NaN")
        return self.spec.nan

    @property
    def inf_code(self) -> int:
        """Code of +infinity."""
        if not self.infinities:
            raise AttributeError(f"{self.name} has no infinity")
        return self.spec.infinity

    @property
    def zero_code(self) -> int:
        """Code of +0."""
        if not self.zero:
            raise AttributeError(f"{self.name} has no zero")
        return 0

    @property
    def one_code(self) -> int:
        """Code of 1."""
        code = self.bias << self.mantissa_bits
        if (
            self.emin > 0 and self.subnormals and self.emin <= self.mantissa_bits
        ):  # 1 is below the smallest normal number
            return 1 << (self.mantissa_bits - self.emin)
        if not self.smallest_normal_code <= code <= self.max_code:
            raise AttributeError(f"{self.name} has no 1")
        return code

    @property
    def smallest_normal_code(self) -> int:
        """Code of the smallest positive normal number."""
        return 1 << self.mantissa_bits if self.zero else 0

    @property
    def smallest_subnormal_code(self) -> int:
        """Code of the smallest positive number."""
        return 1 if self.subnormals and self.mantissa_bits else self.smallest_normal_code

    # -- values, named as in numpy.finfo
    # ----------------------------------------------------------------------------------------

    @cached_property
    def max(self) -> float:
        """Largest finite value."""
        field_, fraction = divmod(self.max_code, 1 << self.mantissa_bits)
        return math.ldexp((1 << self.mantissa_bits) + fraction, field_ - self.bias - self.mantissa_bits)

    @property
    def min(self) -> float:
        """Least finite value."""
        return -self.max if self.signed else 0.0 if self.zero else self.tiny

    @property
    def eps(self) -> float:
        """Difference between 1 and the next larger number, 2^(1-p)."""
        return 2.0**-self.mantissa_bits

    @property
    def epsneg(self) -> float:
        """Difference between 1 and the next smaller number: 2^-p, or as much as `eps` where 1 is the smallest normal number."""
        return 2.0**self.negep

    @property
    def tiny(self) -> float:
        """Smallest positive normal number."""
        return 2.0**self.emin

    smallest_normal = tiny

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive number."""
        return 2.0 ** (self.emin - self.mantissa_bits) if self.subnormals else self.tiny

    @property
    def maxexp(self) -> int:
        """Least power of two that overflows."""
        return self.emax + 1

    @property
    def minexp(self) -> int:
        """Exponent of the smallest normal number."""
        return self.emin

    @property
    def nmant(self) -> int:
        """Fraction bits."""
        return self.mantissa_bits

    @property
    def nexp(self) -> int:
        """Exponent bits."""
        return self.exponent_bits

    iexp = nexp

    @property
    def machep(self) -> int:
        """Exponent of `eps`."""
        return -self.mantissa_bits

    @property
    def negep(self) -> int:
        """Exponent of `epsneg`."""
        return -self.p if self.emin < 0 else self.machep

    @property
    def precision(self) -> int:
        """Decimal digits that survive a round trip through the format: floor(mantissa_bits * log10(2)), as in numpy.finfo.

        That is 0 with fewer than four fraction bits. ml_dtypes.finfo says 1 for its formats of eight bits. `p` is the precision in bits.
        """
        return int(self.mantissa_bits * math.log10(2))

    @property
    def resolution(self) -> float:
        """10^-precision."""
        return 10.0**-self.precision

    def contains(self, other: Format) -> bool:
        """Whether every finite number of the other format is one of this; zeros are one number, whatever their sign.

        >>> bfloat16.contains(float8_e5m2), bfloat16.contains(float16)
        (True, False)
        """
        quantum = other.emin - other.mantissa_bits  # exponent of its last bit, where that is least
        least = quantum if other.subnormals else other.emin
        reaches = self.emin - self.mantissa_bits <= quantum if self.subnormals else self.emin <= least
        signs_and_zero = self.signed >= other.signed and self.zero >= other.zero
        return reaches and signs_and_zero and self.p >= other.p and self.max >= other.max

    # -- P3109
    # ------------------------------------------------------------------------------------------------------------------

    @classmethod
    def p3109(cls, k: int | str, p: int | None = None, *, signed: bool = True, extended: bool = True) -> Format:
        """A format of IEEE P3109, draft 4.0 (interim report of June 2026, section 3): "binary8p3se" and the like.

        One NaN, one zero, subnormals always, infinities if extended; the bias is 2^(k-p-1), in unsigned formats 2^(k-p). NaN has the
        code of -0; unsigned, the last one. Infinities have the last code, or codes, left.

        Parameters
        ----------
        k : int or str
            Bits of a code, at least 3; or the name alone, in any case.
        p : int
            Precision, 1 to k - 1; unsigned, to k.
        signed : bool
            Whether there are negative numbers.
        extended : bool
            Whether there are infinities.

        Raises
        ------
        TypeError, ValueError
            Naming the argument, or why the format cannot be had.

        >>> Format.p3109(4, 2, extended=False).max, Format.p3109("Binary8p3se").inf_code
        (3.0, 127)
        """
        if isinstance(k, str):
            if p is not None:
                raise TypeError(f"p comes with the name {k!r}; accepted: a name alone, or k and p")
            found = P3109_NAME.fullmatch(k.lower())
            if not found:
                raise ValueError(f"k must be a number of bits or a name such as 'binary8p3se', got {k!r}")
            return _p3109(int(found[1]), int(found[2]), found[3] == "s", found[4] == "e")
        for name, value in (("signed", signed), ("extended", extended)):
            check_switch(name, value)
        for name, number in (("k", k), ("p", p)):
            if not is_integer(number):
                raise TypeError(f"{name} must be an integer, got {number!r}")
        return _p3109(int(k), int(p or 0), bool(signed), bool(extended))

    @property
    def domain(self) -> str:
        """P3109's word for whether there are infinities: "extended" or "finite"."""
        return "extended" if self.infinities else "finite"

    @property
    def p3109_name(self) -> str | None:
        """What IEEE P3109, draft 4.0, calls the format; None where it has none of these values and codes.

        >>> Format("mine", exponent_bits=5, mantissa_bits=2, nan="fnuz", infinities=True).p3109_name
        'binary8p3se'
        """
        width = self.bits
        if width < LEAST_P3109 or not (self.zero and self.subnormals) or self.nan == "ieee" or self.wide:
            return None
        likely = _p3109(width, self.p, self.signed, bool(self.infinities))
        return likely.name if likely.spec == self.spec else None

    # -- other names
    # ------------------------------------------------------------------------------------------------------------

    @classmethod
    def from_name(cls, name: str | Format) -> Format:
        """The roster's format of this name, or of one of the ecosystem's other names for it ("half", "fp16", "bf16", "e4m3" ...).

        Dtypes are names, too: NumPy's, ml_dtypes', PyTorch's and JAX's, such as `numpy.float16` or `torch.bfloat16`.
        Of more than 8 bits, "eXmY" is the format of IEEE 754's kind with X exponent and Y fraction bits. Narrower ones
        differ in their special values, so that only those of the roster have names. "binaryKpP", then "s" or "u", then "e" or "f", is
        a format of IEEE P3109, draft 4.0 (`Format.p3109`).

        >>> Format.from_name("e5m7")
        Format('e5m7', exponent_bits=5, mantissa_bits=7, bias=15)  # s.eeeee.fffffff, max 65280, tiny 6.1e-05, eps 0.0078

        Raises
        ------
        ValueError, TypeError
            Naming the accepted names, and the nearest.
        """
        if isinstance(name, Format):
            return name
        if not isinstance(name, str):
            named = _name_of_dtype(name)
            if named is None:
                advice = getattr(name, "in_place_of_a_format", "")
                raise TypeError(
                    f"format must be a softfloat.Format, a name or a dtype, got {type(name).__name__}{advice}"
                )
            name = named
        key = name.lower().replace("-", "_")
        found = ALIASES.get(key)
        if found:
            return NAMED[found]
        if P3109_NAME.fullmatch(key):
            return cls.p3109(key)
        fields = re.fullmatch(r"e([1-9]\d?)m(0|[1-9]\d?)", key)
        if fields and 1 + int(fields[1]) + int(fields[2]) > 8:
            return _interchange(int(fields[1]), int(fields[2]))
        limits = f"at most {MAXIMUM_EXPONENT_BITS} exponent bits and {MAXIMUM_PRECISION} bits of precision"
        advice = f"softfloat.Format({name!r}, exponent_bits=..., mantissa_bits=...) makes any other of {limits}{nearest(key, ALIASES)}"
        if key in BEYOND:
            advice = f"formats have {limits}"
        raise ValueError(
            f"unknown format {name!r}; accepted: {', '.join(NAMED)}, and {', '.join(sorted(set(ALIASES) - set(NAMED)))}, "
            f"eXmY of more than 8 bits, binaryKpP with se, sf, ue or uf (P3109, draft 4.0), and dtypes of these names; {advice}"
        )

    @classmethod
    def from_dtype(cls, dtype: Any) -> Format:
        """The format of a NumPy or ml_dtypes floating-point dtype.

        Raises
        ------
        TypeError
            If the dtype is none of theirs.
        """
        name = np.dtype(dtype).name
        if name not in NAMED:
            raise TypeError(f"dtype {name} is no format of at most 53 bits of precision; accepted: {', '.join(NAMED)}")
        return NAMED[name]

    def to_dtype(self) -> np.dtype[Any]:
        """The NumPy or ml_dtypes dtype that holds this format's values; its bits are the codes.

        Raises
        ------
        TypeError
            If there is none. Codes are held in `dtype`, which always exists.
        """
        if self == NAMED.get(self.name):
            if self.name in ("float16", "float32", "float64"):
                return np.dtype(self.name)
            if self.name != "tfloat32":
                try:
                    import ml_dtypes
                except ImportError as error:
                    raise TypeError(f"the dtype of {self.name} comes from ml_dtypes, which is not installed") from error
                if hasattr(ml_dtypes, self.name):
                    return np.dtype(getattr(ml_dtypes, self.name))
        raise TypeError(f"{self.name} has no NumPy or ml_dtypes dtype; its codes are {self.dtype}")

    # -- text
    # -------------------------------------------------------------------------------------------------------------------

    @property
    def layout(self) -> str:
        """The fields of a code, a letter a bit: s sign, e exponent, f fraction."""
        return ".".join(
            part for part in ("s" * self.signed, "e" * self.exponent_bits, "f" * self.mantissa_bits) if part
        )

    def __repr__(self) -> str:
        fields = [f"exponent_bits={self.exponent_bits}", f"mantissa_bits={self.mantissa_bits}", f"bias={self.bias}"]
        ieee, fnuz = self.nan == "ieee", self.nan == "fnuz"
        defaults = {
            "nan": "ieee",
            "infinities": ieee,
            "subnormals": True,
            "signed": True,
            "signed_zero": self.signed and not fnuz,
            "zero": True,
        }
        fields += [
            f"{name}={getattr(self, name)!r}" for name, default in defaults.items() if getattr(self, name) != default
        ]
        return f"Format({self.name!r}, {', '.join(fields)})  # {self.layout}, max {general(self.max, 6)}, tiny {self.tiny:.2g}, eps {self.eps:.2g}"

    def __str__(self) -> str:
        return self.name

    def _repr_html_(self) -> str:
        return format_html(self)

    def __rich__(self) -> RenderableType:
        return format_rich(self)


@lru_cache(maxsize=1024)
def _p3109(width: int, precision: int, signed: bool, extended: bool) -> Format:
    """The values of a format of P3109, draft 4.0, 3.1 and 3.2."""
    name = f"binary{width}p{precision}{'s' if signed else 'u'}{'e' if extended else 'f'}"
    if width < LEAST_P3109:
        raise ValueError(f"k must be at least {LEAST_P3109}, got {width}")
    most = width - signed
    if not 1 <= precision <= most:
        kind = "a signed" if signed else "an unsigned"
        raise ValueError(f"p must be 1 to {most} in {kind} format of {width} bits, got {precision}")
    exponent_bits = width - precision + (not signed)
    if exponent_bits > MAXIMUM_EXPONENT_BITS or precision > MAXIMUM_PRECISION:
        raise ValueError(
            f"{name} has {exponent_bits} exponent bits and {precision} bits of precision; accepted: at most {MAXIMUM_EXPONENT_BITS} and "
            f"{MAXIMUM_PRECISION}, so that float64 holds every value"
        )
    return Format(
        name,
        exponent_bits=exponent_bits,
        mantissa_bits=precision - 1,
        bias=1 << (width - precision - signed),
        infinities=extended,
        nan="fnuz" if signed else "fn",
        signed=signed,
    )


@lru_cache(maxsize=256)
def _interchange(exponent_bits: int, mantissa_bits: int) -> Format:
    return Format(f"e{exponent_bits}m{mantissa_bits}", exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def _check_integer(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be {low} to {high}, got {value}")


def _set_default(fmt: Format, name: str, value: object) -> None:
    if getattr(fmt, name) is None:
        settle(fmt, **{name: value})


def _name_of_dtype(kind: Any) -> str | None:
    """The name of a float's dtype: NumPy's, ml_dtypes' or JAX's, or PyTorch's, which is not imported for it; None of anything else."""
    if type(kind).__module__ == "torch":
        name = str(kind).partition(".")[2]
    elif isinstance(kind, (type, np.dtype)):
        try:
            name = np.dtype(kind).name
        except TypeError:
            return None
    else:
        return None
    return name if name in NAMED or name in BEYOND else None


def check_format(fmt: Any, argument: str = "fmt", wide: bool = False, what: str = "this") -> Format:
    """A format, or that of a name or dtype; `argument` is named where it is none of these, or wide where `what` serves no wide ones."""
    found = _format_of(fmt, argument)
    if found.wide and not wide:
        refuse_wide(found, argument, what)
    return found


def refuse_wide(fmt: Format, argument: str, what: str = "this") -> None:
    """Refuse a format that is wide, and say what serves it."""
    if fmt.wide:
        raise ValueError(
            f"{argument}: {what} takes formats of at most {spec.NARROW_EXPONENT_BITS} exponent bits and {spec.NARROW_PRECISION} bits of precision, "
            f"with numbers in 2^-{spec.EXPONENT_RANGE} ... 2^{spec.EXPONENT_RANGE}, and {fmt.name} has {fmt.exponent_bits} and {fmt.p}, and numbers "
            f"in 2^{fmt.emin - fmt.mantissa_bits} ... 2^{fmt.maxexp}; accepted: a narrower format (bits.convert and .astype go there); conversions, "
            "comparisons, arithmetic, functions and sums in order serve wide ones"
        )


def _format_of(fmt: Any, argument: str) -> Format:
    fmt = getattr(fmt, "__softfloat_format__", fmt)
    if isinstance(fmt, Format):
        return fmt
    if not isinstance(fmt, str):
        fmt = _name_of_dtype(fmt) or fmt
    if isinstance(fmt, str):
        found = NAMED.get(fmt)
        if found is None:
            try:
                found = Format.from_name(fmt)
            except ValueError as reason:
                raise ValueError(f"{argument}: {reason}") from None
        return found
    advice = getattr(fmt, "in_place_of_a_format", "")
    raise TypeError(f"{argument} must be a softfloat.Format, the name of one, or a dtype, got {fmt!r}{advice}")


ROSTER: dict[str, Format] = {
    fmt.name: fmt
    for fmt in (
        Format("float16", exponent_bits=5, mantissa_bits=10),
        Format("bfloat16", exponent_bits=8, mantissa_bits=7),
        Format("float32", exponent_bits=8, mantissa_bits=23),
        Format("tfloat32", exponent_bits=8, mantissa_bits=10),
        Format("float8_e5m2", exponent_bits=5, mantissa_bits=2),
        Format("float8_e4m3", exponent_bits=4, mantissa_bits=3),
        Format("float8_e4m3fn", exponent_bits=4, mantissa_bits=3, nan="fn"),
        Format("float8_e4m3fnuz", exponent_bits=4, mantissa_bits=3, nan="fnuz"),
        Format("float8_e5m2fnuz", exponent_bits=5, mantissa_bits=2, nan="fnuz"),
        Format("float8_e4m3b11fnuz", exponent_bits=4, mantissa_bits=3, nan="fnuz", bias=11),
        Format("float8_e3m4", exponent_bits=3, mantissa_bits=4),
        Format(
            "float8_e8m0fnu", exponent_bits=8, mantissa_bits=0, nan="fn", signed=False, zero=False, subnormals=False
        ),
        Format("float6_e2m3fn", exponent_bits=2, mantissa_bits=3, nan="none"),
        Format("float6_e3m2fn", exponent_bits=3, mantissa_bits=2, nan="none"),
        Format("float4_e2m1fn", exponent_bits=2, mantissa_bits=1, nan="none"),
    )
}
"""Every named format that is not wide. Names follow ml_dtypes; layouts follow IEEE 754-2019, the OCP OFP8 and MX specifications, and PTX for
tfloat32."""

WIDE_ROSTER: dict[str, Format] = {"float64": Format("float64", exponent_bits=11, mantissa_bits=52)}
"""The named formats that are: IEEE 754-2019's binary64."""

NAMED = ROSTER | WIDE_ROSTER

ALIASES: dict[str, str] = {name: name for name in NAMED} | {
    "double": "float64",
    "fp64": "float64",
    "f64": "float64",
    "binary64": "float64",
    "e11m52": "float64",
    "half": "float16",
    "fp16": "float16",
    "f16": "float16",
    "binary16": "float16",
    "e5m10": "float16",
    "bf16": "bfloat16",
    "brain": "bfloat16",
    "e8m7": "bfloat16",
    "single": "float32",
    "fp32": "float32",
    "f32": "float32",
    "binary32": "float32",
    "float": "float32",
    "e8m23": "float32",
    "tf32": "tfloat32",
    "tensorfloat32": "tfloat32",
    "e8m10": "tfloat32",
    "e5m2": "float8_e5m2",
    "fp8_e5m2": "float8_e5m2",
    "e4m3": "float8_e4m3fn",  # the OCP OFP8 format of that name; ml_dtypes' IEEE-style one is written out
    "e4m3fn": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e4m3fn": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz",
    "f143": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "f152": "float8_e5m2fnuz",
    "e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e3m4": "float8_e3m4",
    "e8m0": "float8_e8m0fnu",
    "e8m0fnu": "float8_e8m0fnu",
    "ue8m0": "float8_e8m0fnu",
    "e2m3": "float6_e2m3fn",
    "e2m3fn": "float6_e2m3fn",
    "fp6_e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e3m2fn": "float6_e3m2fn",
    "fp6_e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn",
    "e2m1fn": "float4_e2m1fn",
    "fp4": "float4_e2m1fn",
    "fp4_e2m1": "float4_e2m1fn",
}

float16 = ROSTER["float16"]
bfloat16 = ROSTER["bfloat16"]
float32 = ROSTER["float32"]
float64 = WIDE_ROSTER["float64"]
tfloat32 = ROSTER["tfloat32"]
float8_e5m2 = ROSTER["float8_e5m2"]
float8_e4m3 = ROSTER["float8_e4m3"]
float8_e4m3fn = ROSTER["float8_e4m3fn"]
float8_e4m3fnuz = ROSTER["float8_e4m3fnuz"]
float8_e5m2fnuz = ROSTER["float8_e5m2fnuz"]
float8_e4m3b11fnuz = ROSTER["float8_e4m3b11fnuz"]
float8_e3m4 = ROSTER["float8_e3m4"]
float8_e8m0fnu = ROSTER["float8_e8m0fnu"]
float6_e2m3fn = ROSTER["float6_e2m3fn"]
float6_e3m2fn = ROSTER["float6_e3m2fn"]
float4_e2m1fn = ROSTER["float4_e2m1fn"]
