"""What codes are, and what changes no value but a sign or a place: no rounding, no flags."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from softfloat import engine
from softfloat.bits.arithmetic import Result
from softfloat.bits.comparisons import quieted
from softfloat.engine import Call, Options, check_codes
from softfloat.formats import Format, check_format

__all__ = [
    "CLASSES",
    "abs",
    "classify",
    "copysign",
    "isfinite",
    "isinf",
    "isnan",
    "isnormal",
    "issnan",
    "issubnormal",
    "iszero",
    "negative",
    "next_down",
    "next_up",
    "signbit",
]


# -- codes as they are: no arithmetic, no flags ----------------------------------------------------------------------


def _split(
    codes: Any, fmt: Format | str, argument: str = "codes"
) -> tuple[Format, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(format, codes, magnitudes)."""
    fmt = check_format(fmt, wide=True)
    array = check_codes(codes, fmt, argument)
    return fmt, array, engine.magnitudes(array, fmt)


def isnan(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a NaN, as bool. No flags, here and in the other questions below (IEEE 754-2019 5.7.2)."""
    fmt, array, _ = _split(codes, fmt)
    return engine.is_nan(array, fmt)


def issnan(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a signalling NaN. Only formats with IEEE NaNs have them."""
    fmt, array, _ = _split(codes, fmt)
    return engine.is_signalling(array, fmt)


def isinf(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is an infinity."""
    fmt, _, magnitude = _split(codes, fmt)
    return magnitude == fmt.spec.infinity if fmt.infinities else np.zeros(magnitude.shape, bool)[()]


def isfinite(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is zero, subnormal or normal."""
    return ~(isnan(codes, fmt) | isinf(codes, fmt))


def iszero(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a zero. Without subnormals, every code with exponent field 0 is."""
    fmt, _, magnitude = _split(codes, fmt)
    if not fmt.zero:
        return np.zeros(magnitude.shape, bool)[()]
    lowest = 1 if fmt.subnormals else fmt.smallest_normal_code
    return (magnitude < lowest) & ~isnan(codes, fmt)


def issubnormal(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a subnormal number."""
    fmt, _, magnitude = _split(codes, fmt)
    return (magnitude < fmt.smallest_normal_code) & (magnitude > 0) & fmt.subnormals


def isnormal(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a normal number."""
    return isfinite(codes, fmt) & ~iszero(codes, fmt) & ~issubnormal(codes, fmt)


def signbit(codes: Any, fmt: Format | str) -> Any:
    """Whether each code has its sign bit set, NaNs included."""
    fmt, array, magnitude = _split(codes, fmt)
    return array != magnitude


CLASSES = (
    "signalingNaN",
    "quietNaN",
    "negativeInfinity",
    "negativeNormal",
    "negativeSubnormal",
    "negativeZero",
    "positiveZero",
    "positiveSubnormal",
    "positiveNormal",
    "positiveInfinity",
)
"""Names of the numbers that `classify` returns, in the order of IEEE 754-2019 5.7.2."""


def classify(codes: Any, fmt: Format | str) -> Any:
    """The class of each code, as an index into `CLASSES` (uint8).

    >>> CLASSES[classify(0x8001, "float16")]
    'negativeSubnormal'
    """
    fmt = check_format(fmt, wide=True)
    negative = signbit(codes, fmt)
    distance = np.select([isinf(codes, fmt), isnormal(codes, fmt), issubnormal(codes, fmt)], [3, 2, 1], 0)
    result = np.where(negative, 5 - distance, 6 + distance)
    return np.where(isnan(codes, fmt), np.where(issnan(codes, fmt), 0, 1), result).astype(np.uint8)[()]


def negative(codes: Any, fmt: Format | str) -> Any:
    """Codes with the sign flipped, NaNs included (IEEE 754-2019 5.5.1 negate). A zero without a negative twin stays; so does the NaN of fnuz formats.

    Raises TypeError for unsigned formats.
    """
    fmt, array, magnitude = _split(codes, fmt)
    if not fmt.signed:
        raise TypeError(f"negative needs a signed format, and {fmt} is unsigned")
    flipped = array ^ fmt.dtype.type(fmt.sign_bit)
    return flipped if fmt.signed_zero else np.where(magnitude == 0, array, flipped)[()]


def abs(codes: Any, fmt: Format | str) -> Any:
    """Codes with the sign cleared, NaNs included (IEEE 754-2019 5.5.1). The NaN of fnuz formats, which is its sign bit, stays."""
    fmt, array, magnitude = _split(codes, fmt)
    return np.where(isnan(codes, fmt), array, magnitude)[()] if fmt.spec.lone_nan >= 0 else magnitude


def copysign(a: Any, b: Any, fmt: Format | str) -> Any:
    """Codes of `a` with the signs of `b` (IEEE 754-2019 5.5.1). A zero without a negative twin stays; so does the NaN of fnuz formats."""
    fmt, array, magnitude = _split(a, fmt, "a")
    signs = check_codes(b, fmt, "b") & fmt.dtype.type(fmt.sign_bit)
    (array, magnitude, signs) = np.broadcast_arrays(array, magnitude, signs)
    found = magnitude | signs
    return found if fmt.signed_zero else np.where(magnitude == 0, array, found)[()]


def next_up(codes: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The least number of the format that compares greater. INVALID for signalling NaNs; nothing lies above the greatest value.

    Codes in, (codes, flags) out. Source: IEEE 754-2019 5.3.1 (nextUp): both zeros go to the smallest positive number,
    NaN stays, quiet.
    """
    return _next(codes, fmt, 1, options)


def next_down(codes: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The greatest number of the format that compares less. As `next_up`, mirrored."""
    return _next(codes, fmt, -1, options)


def _next(codes: Any, fmt: Format | str, step: int, options: Options) -> Result:
    fmt, array, _ = _split(codes, fmt)
    call = Call(options, fmt, uses=engine.uses_of("next_up"))
    call.draws_nothing()
    first = fmt.smallest_subnormal_code
    top = fmt.spec.infinity if fmt.infinities else fmt.max_code
    rank = engine.order(array, fmt) + step
    last = top - first + 1
    lowest = -last if fmt.signed else 0 if fmt.zero else 1
    rank = np.clip(rank, lowest, last)
    moved = np.where(rank == 0, 0, np.abs(rank) + first - 1)
    below_zero = (rank < 0) | ((rank == 0) & (step > 0) & fmt.signed_zero)  # nextUp of the least negative number is -0
    stepped = (moved | np.where(below_zero, fmt.sign_bit, 0)).astype(fmt.dtype)
    quiet, raised = quieted(array, fmt, environment=call.settings, flags="each")
    result, flags = engine.outputs(call.out, call.flags, array.shape, fmt.dtype, [array])
    result.flat[...] = np.where(isnan(array, fmt), quiet, stepped).reshape(-1)
    if flags is None:
        return result.finish(), int(np.bitwise_or.reduce(raised, axis=None)) if array.size else 0
    flags.flat[...] = np.asarray(raised).reshape(-1)
    return result.finish(), flags.finish()
