"""What figures show, as numbers: values in a range, their spacing, the steps of a rounding, errors, shares.

>>> shares = exponent_shares([1e-9, 1e-6, 1.0, 1e6, 0.0], "float16", scale=1.0)
>>> shares.underflow, shares.subnormal, shares.normal, shares.overflow, shares.zeros
(1, 1, 1, 1, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.bits.operations import ELEMENTWISE
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import Format, check_format
from softfloat.markup import grouped
from softfloat.status import Flags

__all__ = [
    "KINDS",
    "Candidates",
    "ExponentShares",
    "FunctionError",
    "Step",
    "candidates",
    "check_factor",
    "check_number",
    "check_range",
    "count_between",
    "exponent_shares",
    "function_errors",
    "significant_bits",
    "sorted_out",
    "spacing_steps",
    "special_counts",
    "steps",
    "values_between",
    "visible_values",
    "window",
]

FARTHEST = 2000  # exponent of what overflows or underflows in every format
MANY = 3000  # values in a row of a number line; more are drawn as what a picture can tell apart
FEW = 96  # values below a staircase; more steps than that cannot be seen


# -- arguments -------------------------------------------------------------------------------------------------------


def check_number(name: str, x: Any) -> float:
    """A number that is neither infinite nor NaN, or an error that names the argument."""
    try:
        number = float(x)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {x!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {x!r}")
    return number


def check_range(low: Any, high: Any, default: tuple[float, float], positive: bool = False) -> tuple[float, float]:
    """The two ends, checked; what is None takes its default."""
    first = default[0] if low is None else check_number("low", low)
    last = default[1] if high is None else check_number("high", high)
    if positive and first <= 0:
        raise ValueError(f"low must be greater than 0 on a logarithmic scale, got {first:g}")
    if not first < last:
        raise ValueError(f"low must be less than high, got low={first:g} and high={last:g}")
    return first, last


# -- numbers in a range ----------------------------------------------------------------------------------------------


def _positive(fmt: Format, low: float, high: float) -> range:
    """Codes of the positive numbers from low, which is positive, to high."""
    if high < fmt.smallest_subnormal or low > fmt.max:
        return range(0)
    first, last = fmt.smallest_subnormal_code, fmt.max_code
    if low > fmt.smallest_subnormal:
        first = int(bits.encode(low, fmt, rounding="toward_positive")[0])
    if high < fmt.max:
        last = int(bits.encode(high, fmt, rounding="toward_negative")[0])
    return range(first, last + 1)


def _pieces(fmt: Format, low: float, high: float) -> tuple[range, range, bool]:
    """Codes of positive numbers, magnitudes of negative ones, and whether zero lies between low and high."""
    least = fmt.smallest_subnormal
    above = _positive(fmt, max(low, least), high) if high > 0 else range(0)
    below = _positive(fmt, max(-high, least), -low) if low < 0 and fmt.signed else range(0)
    return above, below, fmt.zero and low <= 0 <= high


def count_between(fmt: Format | str, low: float, high: float) -> int:
    """How many numbers a format has from low to high, both included; -0 and 0 are one.

    >>> count_between("float8_e4m3fn", -448, 448), count_between("float16", 1, 2)
    (253, 1025)
    """
    above, below, zero = _pieces(check_format(fmt), low, high)
    return len(above) + len(below) + zero


def values_between(fmt: Format | str, low: float, high: float) -> np.ndarray[Any, Any]:
    """All numbers of a format from low to high, both included, in order: float64.

    >>> values_between("float4_e2m1fn", 0, 6).tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """
    fmt = check_format(fmt)
    above, below, zero = _pieces(fmt, low, high)
    negative = -bits.decode(np.array(below, fmt.dtype), fmt)[::-1]
    return np.concatenate([negative, np.zeros(int(zero)), bits.decode(np.array(above, fmt.dtype), fmt)])


def visible_values(fmt: Format, low: float, high: float, scale: str) -> np.ndarray[Any, Any]:
    """Numbers to draw: all of them, or those next to closely spaced places, which look the same."""
    if count_between(fmt, low, high) <= MANY:
        return values_between(fmt, low, high)
    places = (np.geomspace if scale == "log" else np.linspace)(low, high, 2 * MANY)
    if scale == "linear":
        places = np.append(places, 0.0)
    found = np.unique(bits.decode(bits.encode(places, fmt, overflow="saturate")[0], fmt))
    found = found[(found >= low) & (found <= high)]
    return found if scale == "linear" else found[found > 0]


def special_counts(fmt: Format) -> str:
    """How many zeros, infinities and NaN codes a format has, in words."""
    signs = 1 + fmt.signed
    nans = {"ieee": signs * ((1 << fmt.mantissa_bits) - 1), "fn": signs, "fnuz": 1, "none": 0}[fmt.nan]
    words = [f"{'±' if fmt.signed else ''}inf"] if fmt.infinities else []
    if nans:
        words.append(f"{grouped(nans)} NaN code{'s' * (nans != 1)}")
    return ", ".join(words) or "no inf, no NaN"


def spacing_steps(
    fmt: Format | str, low: float | None = None, high: float | None = None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Distances between neighbouring numbers: where each begins, and how large it is from there on.

    Parameters
    ----------
    fmt : Format
    low, high : float, optional
        Positive; default from the smallest positive number to the largest number. Spacing ends at the largest.

    Returns
    -------
    magnitudes, spacings : float64 arrays of the same length
        `spacings[i]` holds from `magnitudes[i]` to `magnitudes[i + 1]`; the last magnitude is the end of the range.
        Empty where the range and the format's have nothing in common.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt = check_format(fmt)
    least = fmt.smallest_subnormal
    low, high = check_range(low, high, (min(least, fmt.max / 2), fmt.max), positive=True)
    low, high = max(low, least), min(high, fmt.max)
    if low > high:
        return np.empty(0), np.empty(0)
    first, last = math.frexp(low)[1] - 1, math.frexp(high)[1] - 1
    powers = [2.0**k for k in range(max(first, fmt.emin) + 1, last + 1)]
    magnitudes = np.array([low, *powers, high])
    exponents = np.maximum(np.frexp(magnitudes)[1] - 1, fmt.emin)
    return magnitudes, np.ldexp(1.0, exponents - fmt.mantissa_bits)


# -- roundings -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Numbers that round to the same value.

    Attributes
    ----------
    first, last : float
        The least and greatest of them.
    value : float
        What they round to; it may be an infinity or NaN.
    """

    first: float
    last: float
    value: float


def _breaks(fmt: Format, low: float, high: float) -> np.ndarray[Any, Any]:
    """Where rounding may jump between low and high: numbers, midpoints, and where overflow begins."""
    exponent = max(math.frexp(max(abs(low), abs(high)))[1] - 1, fmt.emin)
    reach = 2.0 ** (min(exponent, fmt.emax) + 1 - fmt.mantissa_bits)
    beyond = fmt.max + 2.0 ** (fmt.emax - fmt.mantissa_bits)
    ends = np.array([fmt.smallest_subnormal, fmt.max, beyond])
    numbers = np.unique(np.concatenate([-ends, [0.0], ends, values_between(fmt, low - reach, high + reach)]))
    found = np.unique(np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2]))
    return found[(found >= low) & (found <= high)]


def steps(
    fmt: Format | str, low: float, high: float, rounding: Rounding | str = "nearest_even", **options: Any
) -> tuple[Step, ...]:
    """The steps of a rounding mode between low and high, in order, as `bits.encode` makes them.

    Parameters
    ----------
    fmt : Format
    low, high : float
    rounding : Rounding
        Any that draws nothing: others have no steps.
    **options
        Others of `bits.encode`, such as `overflow`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt, mode = check_format(fmt), as_rounding(rounding)
    if mode.draws:
        raise ValueError(f"rounding must be one of the deterministic modes, got {mode.name.lower()!r}")
    low, high = window(fmt, low, high)
    breaks = _breaks(fmt, low, high)
    sides = np.concatenate([[low, high], breaks, np.nextafter(breaks, -np.inf), np.nextafter(breaks, np.inf)])
    places = np.unique(np.clip(sides, low, high))
    values = bits.decode(bits.encode(places, fmt, rounding=mode, **options)[0], fmt)
    with np.errstate(invalid="ignore"):
        same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.concatenate([starts[1:], [len(places)]]) - 1
    return tuple(Step(float(places[i]), float(places[j]), float(values[i])) for i, j in zip(starts, ends, strict=True))


def window(fmt: Format, low: float | None, high: float | None) -> tuple[float, float]:
    """What a staircase shows: given, or a few numbers around zero, around 1 without zero."""
    if fmt.zero:
        code = min(fmt.smallest_subnormal_code + 6, fmt.max_code)
        reach = float(bits.decode(code, fmt))
        default = (-reach if fmt.signed else 0.0), reach
    else:
        middle = fmt.one_code if fmt.bias and 0 < fmt.bias < 1 << fmt.exponent_bits else 0
        codes = max(middle - (2 << fmt.mantissa_bits), 0), min(middle + (3 << fmt.mantissa_bits), fmt.max_code)
        default = float(bits.decode(codes[0], fmt)), float(bits.decode(codes[1], fmt))
    low, high = check_range(low, high, default)
    held = count_between(fmt, low, high)
    if held > FEW:
        raise ValueError(f"low to high must hold at most {FEW} numbers of {fmt}, got {held} from {low:g} to {high:g}")
    return low, high


@dataclass(frozen=True, eq=False)
class Candidates:
    """What a mode that draws makes of equal pieces of a range, each represented by its middle; arrays of one shape.

    Attributes
    ----------
    middle : float64 array
    below, above : float64 arrays
        The finite candidates of each middle; equal if there is one.
    falling, rising : float64 arrays
        How often random numbers chose each: all bytes, or both bits.
    lost : float64 array
        How often the result was an infinity or NaN.
    """

    middle: np.ndarray[Any, Any]
    below: np.ndarray[Any, Any]
    above: np.ndarray[Any, Any]
    falling: np.ndarray[Any, Any]
    rising: np.ndarray[Any, Any]
    lost: np.ndarray[Any, Any]


def candidates(fmt: Format, low: float, high: float, pieces: int, mode: Rounding = Rounding.STOCHASTIC) -> Candidates:
    """A mode that draws between low and high, as `bits.encode` has it."""
    edges = np.linspace(low, high, pieces + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    grid = np.repeat(middle[:, None], 256 if mode is Rounding.STOCHASTIC else 2, axis=1)
    draws = np.broadcast_to(np.arange(grid.shape[1], dtype=np.uint8), grid.shape)
    codes, _ = bits.encode(grid, fmt, rounding=mode, random_bits=draws)
    values = bits.decode(codes, fmt)
    finite = np.isfinite(values)
    below = np.where(finite, values, np.inf).min(axis=1)
    above = np.where(finite, values, -np.inf).max(axis=1)
    rising = (values == above[:, None]).mean(axis=1)
    lost = 1 - finite.mean(axis=1)
    return Candidates(middle, below, above, np.where(below < above, 1 - rising, 0.0), rising, lost)


def significant_bits(x: float) -> int:
    """Significant bits of a float."""
    numerator = abs(x.as_integer_ratio()[0])
    return numerator.bit_length() - ((numerator & -numerator).bit_length() if numerator else 0)


# -- errors of functions ---------------------------------------------------------------------------------------------


NEVER_ONE = {"tanh", "expm1"}
"""Operations whose results come as close to 1 or -1 as one likes."""


def _references() -> dict[str, Callable[[Any], Any]]:
    """Exact functions of mpmath numbers by the names that NumPy and `softfloat.bits` have for them."""
    import mpmath as mp

    def short(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """One that comes close to 1 or -1 and never gets there, however few the digits it is computed with."""

        def value(x: Any) -> Any:
            y = function(x)
            return y if abs(y) != 1 else y * (1 - mp.ldexp(1, 4 - mp.mp.prec))

        return value

    return {
        "exp2": lambda x: mp.power(2, x),
        "exp10": lambda x: mp.power(10, x),
        "log2": lambda x: mp.log(x, 2),
        "log10": lambda x: mp.log(x, 10),
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "reciprocal": lambda x: 1 / x,
        "erf": short(mp.erf),
        "sigmoid": short(lambda x: 1 / (1 + mp.exp(-x))),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "square": lambda x: x * x,
    } | {
        row.name: short(getattr(mp, row.mpmath)) if row.name in NEVER_ONE else getattr(mp, row.mpmath)
        for row in ELEMENTWISE.values()
        if row.mpmath
    }


@dataclass(frozen=True, eq=False)
class FunctionError:
    """A function of one argument beside its exact values.

    Attributes
    ----------
    format, name, rounding : str
        Of arguments and results; the function; how exact values are rounded for comparison.
    x : float64 array of shape (n,)
        Numbers of the format at which the exact value is a finite real number, in order.
    computed, rounded : float64 arrays of shape (n,)
        What the function gave, and the correctly rounded value.
    error : float64 array of shape (n,)
        Computed less exact value, in ulps: the format's spacing at the exact value. NaN where the function gave an
        infinity or NaN, or the exact value is beyond the format's range.
    """

    format: str
    name: str
    rounding: str
    x: np.ndarray[Any, Any]
    computed: np.ndarray[Any, Any]
    rounded: np.ndarray[Any, Any]
    error: np.ndarray[Any, Any]

    @property
    def wrong(self) -> np.ndarray[Any, Any]:
        """Where the function did not give the correctly rounded value: boolean, of shape (n,)."""
        return (self.computed != self.rounded) & ~(np.isnan(self.computed) & np.isnan(self.rounded))


def function_errors(
    function: str | Callable[..., Any],
    fmt: Format | str,
    low: float | None = None,
    high: float | None = None,
    rounding: Rounding | str = "nearest_even",
    reference: str | Callable[[Any], Any] | None = None,
    points: int = 1 << 16,
) -> FunctionError:
    """Compare a function with its exact values, computed by mpmath, at every number of a format in a range.

    Parameters
    ----------
    function : str or callable
        A function of `softfloat.bits` of one operand, such as "sqrt"; or a callable from a float64 array to a float64
        array, both of numbers of the format, such as ``lambda x: np.exp(x.astype(np.float16)).astype(float)``.
    fmt : Format
    low, high : float, optional
        Default: all finite numbers.
    rounding : Rounding
        Any that draws nothing; of the function, if it is one of `softfloat.bits`, and of the exact values.
    reference : str or callable, optional
        A name such as "exp", or a callable from an mpmath number to one. Default: the function's own name.
    points : int
        At most so many numbers, evenly spread by code if the range holds more.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    import mpmath as mp

    fmt, mode = check_format(fmt), as_rounding(rounding)
    if mode.draws:
        raise ValueError(f"rounding must be one of the deterministic modes, got {mode.name.lower()!r}")
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise ValueError(f"points must be a positive integer, got {points!r}")
    name, compute = _function(function, fmt, mode)
    exact = _exact(reference, name)
    low, high = check_range(low, high, (fmt.min, fmt.max))
    x = _spread(fmt, low, high, points)
    if not len(x):
        raise ValueError(f"low to high must hold numbers of {fmt}, got low={low:g} and high={high:g}")
    with np.errstate(all="ignore"):
        computed = np.asarray(compute(x), float)
    if computed.shape != x.shape:
        raise ValueError(f"function must give an array of shape {x.shape}, got one of shape {computed.shape}")
    representable = bits.decode(bits.encode(computed, fmt, overflow="saturate")[0], fmt) == computed
    strange = np.flatnonzero(np.isfinite(computed) & ~representable)
    if len(strange):
        at = strange[0]
        raise ValueError(f"function must give numbers of {fmt}, rounded to it, and gave {computed[at]!r} at {x[at]!r}")
    quantum = fmt.emin - fmt.mantissa_bits
    kept, targets, errors = [], [], []
    with mp.workprec(96 + 2 * (fmt.emax - quantum)):
        for index, (argument, result) in enumerate(zip(x.tolist(), computed.tolist(), strict=True)):
            try:
                y = exact(mp.mpf(argument))
            except (ValueError, ZeroDivisionError, OverflowError):
                continue
            if not isinstance(y, mp.mpf) or not mp.isfinite(y):
                continue
            exponent = int(mp.frexp(y)[1]) - 1 if y else fmt.emin
            kept.append(index)
            targets.append(_fraction(y, exponent))
            if math.isfinite(result) and exponent <= fmt.emax:
                ulp = max(exponent, fmt.emin) - fmt.mantissa_bits
                errors.append(float(mp.ldexp(mp.mpf(result) - y, -ulp)))
            else:
                errors.append(math.nan)
    rounded = bits.decode(bits.encode(targets, fmt, rounding=mode)[0], fmt) if targets else np.empty(0)
    return FunctionError(
        fmt.name, name, mode.name.lower(), x[kept], computed[kept], np.asarray(rounded), np.array(errors, float)
    )


def _fraction(y: Any, exponent: int) -> Fraction:
    """An mpmath number of that exponent; exactly, unless it lies so far beyond every format that any such will do."""
    sign, significand, power, _ = y._mpf_
    if abs(exponent) > FARTHEST:
        return Fraction(-1 if sign else 1) * Fraction(2) ** (FARTHEST if exponent > 0 else -FARTHEST)
    return Fraction(-int(significand) if sign else int(significand)) * Fraction(2) ** power


def _function(function: Any, fmt: Format, mode: Rounding) -> tuple[str, Callable[[Any], Any]]:
    if callable(function):
        return getattr(function, "__name__", "function"), function
    if not isinstance(function, str):
        raise TypeError(f"function must be the name of a function of softfloat.bits or a callable, got {function!r}")
    known = [name for name in _references() if name in bits.__all__]
    if function not in known:
        raise ValueError(f"function must be a callable or one of {', '.join(known)}, got {function!r}")

    def compute(x: Any) -> Any:
        codes, _ = bits.encode(x, fmt)
        return bits.decode(getattr(bits, function)(codes, fmt, rounding=mode)[0], fmt)

    return function, compute


def _exact(reference: Any, name: str) -> Callable[[Any], Any]:
    if callable(reference):
        return reference
    if reference is not None and not isinstance(reference, str):
        raise TypeError(f"reference must be a name or a callable from an mpmath number to one, got {reference!r}")
    known = _references()
    wanted = name.replace("arc", "a") if reference is None else reference  # NumPy's arcsin, arctanh ...
    if wanted not in known:
        raise ValueError(f"reference must be a callable or one of {', '.join(known)}, got {reference!r} for {name!r}")
    return known[wanted]


def _spread(fmt: Format, low: float, high: float, points: int) -> np.ndarray[Any, Any]:
    """Numbers from low to high, at most `points`, evenly spread by code."""
    above, below, zero = _pieces(fmt, low, high)
    total = len(above) + len(below) + zero
    places = np.arange(total) if total <= points else np.linspace(0, total - 1, points).round().astype(np.int64)
    # places count from the most negative number to zero and on to the largest
    negative = places[places < len(below)]
    positive = places[places >= len(below) + zero] - len(below) - zero
    codes = below[-1] - negative if below else negative
    parts = [-bits.decode(codes.astype(fmt.dtype), fmt)]
    parts.append(np.zeros(len(places) - len(negative) - len(positive)))
    parts.append(bits.decode((positive + (above.start if above else 0)).astype(fmt.dtype), fmt))
    return np.concatenate(parts)


# -- exponents -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExponentShares:
    """What becomes of scaled numbers in a format, rounded to nearest even.

    Attributes
    ----------
    format : str
    scale : float
    count : int
        Finite numbers that are not zero; each is in one of the next four.
    underflow, subnormal, normal, overflow : int
        Those that become zero (in a format without zero: its smallest number), a subnormal or a normal number, and
        those that raise OVERFLOW.
    zeros, excluded : int
        Zeros, and what else is not counted: infinities, NaN, and negative numbers in an unsigned format.
    """

    format: str
    scale: float
    count: int
    underflow: int
    subnormal: int
    normal: int
    overflow: int
    zeros: int
    excluded: int

    def share(self, kind: str) -> float:
        """One of the four as a share of `count`; 0 of none."""
        return getattr(self, kind) / self.count if self.count else 0.0


KINDS = ("underflow", "subnormal", "normal", "overflow")


def sorted_out(values: Any, fmt: Format, scale: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int, int]:
    """Scaled magnitudes that count, what becomes of each (a place in KINDS), zeros, and how many else."""
    try:
        x = np.asarray(values, float).ravel()
    except (TypeError, ValueError):
        raise TypeError(f"values must be an array of numbers, got {type(values).__name__}") from None
    zeros = int((x == 0).sum())
    kept = x[np.isfinite(x) & (x != 0) & ((x > 0) | fmt.signed)]
    with np.errstate(over="ignore", under="ignore"):
        scaled = kept * scale
    codes, flags = bits.encode(scaled, fmt)
    tiny = (flags & int(Flags.UNDERFLOW) != 0) if not fmt.zero else np.asarray(bits.iszero(codes, fmt))
    subnormal = np.asarray(bits.issubnormal(codes, fmt))
    over = flags & int(Flags.OVERFLOW) != 0
    kinds = np.select([over | np.isinf(scaled), tiny, subnormal], [3, 0, 1], 2)
    return abs(scaled), kinds, zeros, len(x) - len(kept) - zeros


def exponent_shares(values: Any, fmt: Format | str, scale: float = 1.0) -> ExponentShares:
    """Count what becomes of numbers, times a scale, in a format: zero, subnormal, normal or overflow.

    Parameters
    ----------
    values : array of float
        Of any shape.
    fmt : Format
        They are encoded in it, to nearest even.
    scale : float
        Positive; a power of two multiplies exactly.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt, scale = check_format(fmt), check_factor(scale)
    _, kinds, zeros, excluded = sorted_out(values, fmt, scale)
    underflow, subnormal, normal, overflow = np.bincount(kinds, minlength=len(KINDS)).tolist()
    return ExponentShares(fmt.name, scale, len(kinds), underflow, subnormal, normal, overflow, zeros, excluded)


def check_factor(scale: Any, name: str = "scale") -> float:
    """A positive number, or an error that names the argument."""
    number = check_number(name, scale)
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0, got {scale!r}")
    return number
