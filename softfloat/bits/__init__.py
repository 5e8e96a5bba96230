"""Pure functions over integer codes: result and flags out, no state and no context. The verification engineer's door.

Codes are unsigned integers of a format's `dtype` (or anything NumPy turns into integers in range), of any shape;
operands broadcast. Operands are never modified. Results without dimensions come as NumPy scalars. Sums of products
(`vecdot`, `matmul`, `sum`, `conv2d` ...) take a `softfloat.Accumulator`, which says how they are summed. Mathematical
functions (`exp`, `log`, `pow` ...) are correctly rounded, flags included.

Options, all keyword-only, with the defaults of `softfloat.Environment`, where each is described:

out : array, or pair of arrays
    Where to put the result, or the result and its flags.
flags : {"each", "any"}
    "each": the second result is a uint8 array, a byte per element. "any": it is one integer, all flags OR-ed together.
    Bit values: 1 inexact, 2 underflow, 4 overflow, 8 divide-by-zero, 16 invalid (`softfloat.Flags`).
rounding, overflow, tininess, infinite_input, daz, ftz, nan, sr_bits, generator, seed
    As in `softfloat.Environment`.
environment : Environment
    All of those at once; nothing else of it is used, and nothing in it changes.
stream : int
    With `seed`, addresses the random numbers of stochastic rounding: element i takes those of position i; in sums of
    products, output and step are the address. Default 0.
random_bits : array of integers
    The random numbers themselves: 0 to 2^sr_bits - 1, one for each element. `sr_bits` defaults to the width of the
    dtype. A magnitude goes up if floor(f * 2^sr_bits) + random_bits >= 2^sr_bits, f its distance from the candidate below
    in units of the distance between the candidates, of the exact result. Not for sums of products, which round many times.

Errors name the argument and what is accepted: TypeError for things of the wrong kind, ValueError for values out of
range.

>>> import softfloat
>>> from softfloat import bits
>>> code, flags = bits.add(0x3C00, 0x1000, softfloat.float16)  # 1 + 2^-11: a tie
>>> hex(code), softfloat.Flags(flags)
('0x3c00', <Flags.INEXACT: 1>)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias, Unpack

import numpy as np

from softfloat import _engine
from softfloat._call import Call, Options, check_boolean, check_stream
from softfloat._engine import check_codes
from softfloat.conv import conv1d, conv2d, conv2d_input_gradient, conv2d_weight_gradient
from softfloat.environment import Environment, Rounding, as_rounding
from softfloat.formats import ROSTER, Format, check_format
from softfloat.functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cos,
    cosh,
    degrees,
    exp,
    exp2,
    exp10,
    expm1,
    floor_divide,
    fmod,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    modulo,
    pow,
    radians,
    sin,
    sinh,
    tan,
    tanh,
)
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, FLOAT64, NAN_POLICIES, Rule
from softfloat.linalg import Counts, cumsum, matmul, sum, vecdot

__all__ = [
    "CLASSES",
    "Counts",
    "abs",
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
    "conv1d",
    "conv2d",
    "conv2d_input_gradient",
    "conv2d_weight_gradient",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "cumsum",
    "decode",
    "degrees",
    "div",
    "encode",
    "eq",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "floor_divide",
    "fma",
    "fmod",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "isnormal",
    "issnan",
    "issubnormal",
    "iszero",
    "le",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "lt",
    "matmul",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
    "modulo",
    "mul",
    "negative",
    "next_down",
    "next_up",
    "pow",
    "radians",
    "random_bits",
    "remainder",
    "round_to_integral",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "sum",
    "tan",
    "tanh",
    "to_integer",
    "vecdot",
]

_abs = abs
Result: TypeAlias = tuple[Any, Any]


def _arithmetic(
    operation: str, fmt: Format | str, operands: dict[str, Any], options: Options, extra: float = 0.0
) -> Result:
    fmt = check_format(fmt)
    call = Call(options, fmt)
    codes = [check_codes(x, fmt, name) for name, x in operands.items()]
    return call.run(operation, codes, list(operands), fmt.spec, fmt, extra)


# -- numbers in, numbers out -----------------------------------------------------------------------------------------


def encode(x: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """Numbers to codes, with a single rounding.

    Parameters
    ----------
    x : array_like
        float16, float32, float64, ml_dtypes floats, integers of any type, bool, and Python int, float and Fraction,
        alone or nested in lists; SoftArrays; anything else with `__array__`. Python integers and fractions are exact at any size.
        Nothing else: longdouble and complex are refused.
    fmt : Format
        The target.

    Returns
    -------
    codes : array of fmt.dtype
    flags : array of uint8, or int
        INEXACT, UNDERFLOW, OVERFLOW; INVALID for a signalling NaN, for NaN where the format has none, with
        `overflow="nan"`, and for what an unsigned format or one without zero cannot hold.

    Source
    ------
    IEEE 754-2019 5.4.2 (formatOf-convertFormat, convertFromInt); OCP OFP8 1.0 for saturation.

    >>> encode([0.1, 65519.99, 65520], "float16")
    (array([11878, 31743, 31744], dtype=uint16), array([1, 1, 5], dtype=uint8))
    """
    fmt = check_format(fmt)
    call = Call(options, fmt)
    array, source, more = _source_codes(x)
    work = None if more is None or call.settings.rounding is not Rounding.STOCHASTIC else _engine.drawn_more(more)
    return call.run("convert", [array], ["x"], source, fmt, work=work)


def decode(codes: Any, fmt: Format | str) -> Any:
    """The values of codes, exactly.

    Parameters
    ----------
    codes : array_like of int
    fmt : Format

    Returns
    -------
    array of float64
        Of the shape of `codes`; NaN for every NaN code. No flags: nothing is rounded, and signalling NaNs do not
        signal.

    >>> decode(0x7BFF, "float16")
    np.float64(65504.0)
    """
    fmt = check_format(fmt)
    array = check_codes(codes, fmt, "codes")
    values = np.empty(array.size, np.float64)
    numbers = _engine.numbers(fmt.spec, fmt.spec, Rule(), CARRIER64)
    flat = _engine.flattened(array)

    def work(start: int, stop: int) -> int:
        _engine.loops().decoding()(flat[start:stop], values[start:stop], *numbers)
        return 0

    _engine.share(array.size, work)
    return values.reshape(array.shape)[()]


def convert(codes: Any, src: Format | str, dst: Format | str, **options: Unpack[Options]) -> Result:
    """Codes of one format to codes of another, with a single rounding.

    Returns (codes of `dst`, flags). INEXACT, UNDERFLOW, OVERFLOW; INVALID as for `encode`. Infinities follow
    `infinite_input`. Source: IEEE 754-2019 5.4.2.

    >>> convert(0x7BFF, "float16", "float8_e4m3fn", overflow="saturate")
    (np.uint8(126), np.uint8(5))
    """
    src, dst = check_format(src, "src"), check_format(dst, "dst")
    call = Call(options, dst)
    return call.run("convert", [check_codes(codes, src, "codes")], ["codes"], src.spec, dst)


SMALL_INTEGERS = {"int1", "int2", "int4", "uint1", "uint2", "uint4"}  # ml_dtypes' own


def _source_codes(x: Any) -> tuple[np.ndarray[Any, Any], spec.FormatSpec, np.ndarray[Any, Any] | None]:
    """Numbers as codes of the format they come in, and what those of more than 53 bits have beside these; None if nothing."""
    _engine.refuse_mask(x, "x")
    if isinstance(getattr(x, "format", None), Format):
        return x.codes, x.format.spec, None
    more = None
    if not hasattr(x, "__array__"):
        x, more = _from_python(x)
    array = np.asarray(x)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == object:
        array, more = _from_python(array.tolist())
    kind, name = array.dtype.kind, array.dtype.name
    if kind == "b" or name in SMALL_INTEGERS:
        array = array.astype(np.float64)
    elif kind in "iu":
        array, more = _integers_to_odd(array)
    if array.dtype == np.float64:
        return array.view(np.uint64), FLOAT64, more
    if name in ROSTER:
        fmt = Format.from_dtype(array.dtype)
        return array.view(fmt.dtype), fmt.spec, None
    raise TypeError(
        f"x must be numbers of at most 64 bits, got dtype {array.dtype}; accepted: float16, float32, float64, ml_dtypes floats, integers, bool"
    )


def _from_python(x: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """Python numbers as float64, each rounded to odd if it has more than 53 bits, so that a later rounding is the only one; and the rest."""
    array = np.array(x, dtype=object)
    pairs = [_odd_float(value) for value in array.ravel().tolist()] if array.size else []
    values, more = np.array(pairs, np.float64).reshape(-1, 2).T
    return values.reshape(array.shape), more.reshape(array.shape) if more.any() else None


def _odd_float(x: Any) -> tuple[float, float]:
    """(x rounded to odd, what it lacks)."""
    if isinstance(x, (float, np.float64)):
        return float(x), 0.0
    if isinstance(x, np.generic):
        x = x.item() if x.dtype.kind in "iub" or x.dtype.itemsize <= 4 else x
        if isinstance(x, float):
            return x, 0.0
    if isinstance(x, (bool, int, Fraction)):
        exact = Fraction(x)
        odd = _engine.odd_float(exact)
        return odd, _engine.odd_float(exact - Fraction(odd))
    raise TypeError(f"x must be numbers: int, float, Fraction or bool, got {type(x).__name__}")


def _integers_to_odd(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """Integers as float64; those of more than 53 bits rounded to odd, and the rest."""
    if array.dtype.itemsize < 8:
        return array.astype(np.float64), None
    negative = array < 0
    unsigned = array.astype(np.uint64)
    magnitude = np.where(negative, np.uint64(0) - unsigned, unsigned)
    high = (magnitude >> np.uint64(32)).astype(np.float64) * 2.0**32
    low = (magnitude & np.uint64(0xFFFFFFFF)).astype(np.float64)
    values = np.asarray(high + low)
    error = low - (values - high)
    codes = values.view(np.int64)
    odd = np.where((error != 0.0) & (codes & 1 == 0), codes + np.where(error > 0.0, 1, -1), codes).view(np.float64)
    sign = np.where(negative, -1.0, 1.0)
    more = ((values - odd) + error) * sign
    return np.asarray(odd * sign), np.asarray(more) if more.any() else None


# -- arithmetic ------------------------------------------------------------------------------------------------------


def add(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a + b. INEXACT, OVERFLOW; INVALID for infinities of opposite sign and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.

    >>> add([0x3C00, 0x7BFF], 0x7BFF, "float16", flags="any")
    (array([31743, 31744], dtype=uint16), 5)
    """
    return _arithmetic("add", fmt, {"a": a, "b": b}, options)


def sub(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a - b. INEXACT, OVERFLOW; INVALID for infinities of the same sign and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.
    """
    return _arithmetic("sub", fmt, {"a": a, "b": b}, options)


def mul(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a * b. INEXACT, UNDERFLOW, OVERFLOW; INVALID for 0 * inf and signalling NaNs. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape the operands broadcast to.
    """
    return _arithmetic("mul", fmt, {"a": a, "b": b}, options)


def div(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a / b. INEXACT, UNDERFLOW, OVERFLOW; DIVBYZERO for a finite a over 0; INVALID for 0/0, inf/inf, signalling NaNs.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.4.1, 7.3.

    >>> div(0x3C00, 0x8000, "float16")
    (np.uint16(64512), np.uint8(8))
    """
    return _arithmetic("div", fmt, {"a": a, "b": b}, options)


def remainder(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a - n*b, n the integer nearest a/b, ties to even: exact. INVALID for infinite a, zero b, signalling NaNs.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.3.1.
    """
    return _arithmetic("remainder", fmt, {"a": a, "b": b}, options)


def sqrt(a: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The square root. INEXACT; INVALID for negative numbers and signalling NaNs; -0 stays. Source: IEEE 754-2019 5.4.1.

    Codes in, (codes, flags) out, of the shape of `a`.
    """
    return _arithmetic("sqrt", fmt, {"a": a}, options)


def fma(a: Any, b: Any, c: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """a * b + c, rounded once. INEXACT, UNDERFLOW, OVERFLOW; INVALID for 0 * inf (by the NaN policy also if c is NaN), inf - inf.

    Codes in, (codes, flags) out, of the shape the operands broadcast to. Source: IEEE 754-2019 5.4.1, 7.2.

    >>> fma(0x3C01, 0x3C01, 0xBC02, "float16")  # the residual that mul, then add, loses
    (np.uint16(16), np.uint8(0))
    """
    return _arithmetic("fma", fmt, {"a": a, "b": b, "c": c}, options)


def round_to_integral(a: Any, fmt: Format | str, *, exact: bool = True, **options: Unpack[Options]) -> Result:
    """a rounded to an integer in the same format, by `rounding`; the sign stays. INEXACT if that changes it and `exact`; INVALID for sNaN.

    Codes in, (codes, flags) out, of the shape of `a`. Source: IEEE 754-2019 5.3.1 and 5.9 (roundToIntegralExact).
    """
    return _arithmetic("round_to_integral", fmt, {"a": a}, options, extra=float(check_boolean("exact", exact)))


def to_integer(codes: Any, fmt: Format | str, dtype: Any, *, exact: bool = True, **options: Unpack[Options]) -> Result:
    """Integers of a NumPy dtype, rounded by `rounding`.

    Parameters
    ----------
    codes : array_like of int
    fmt : Format
    dtype : NumPy integer dtype
    exact : bool
        Raise INEXACT where the value is no integer.

    Returns
    -------
    integers : array of `dtype`
    flags : array of uint8, or int
        INVALID for NaN and for what does not fit: the result is then the nearest integer the dtype has, and for NaN
        the largest. Other NaN policies differ: "arm" makes 0 of NaN, "x86" gives -2^(n-1) (unsigned: 2^n - 1) for
        everything invalid.

    Source
    ------
    IEEE 754-2019 5.8, 7.2; the results of invalid conversions are those of SoftFloat's RISC-V, ARM-VFPv2 and 8086-SSE
    specialisations.

    >>> to_integer([0x4100, 0x7E00], "float16", "int8")
    (array([  2, 127], dtype=int8), array([ 1, 16], dtype=uint8))
    """
    fmt = check_format(fmt)
    call = Call(options, fmt)
    array = check_codes(codes, fmt, "codes")
    try:
        info = np.iinfo(dtype)
    except (ValueError, TypeError):
        raise TypeError(f"dtype must be a NumPy integer dtype, got {dtype!r}") from None
    wanted = np.dtype(dtype)
    result, raised = _engine.outputs(call.out, call.flags, array.shape, wanted, [array])
    settings = call.settings
    policy = NAN_POLICIES[settings.nan]
    indefinite = int(info.min) or int(info.max)
    nan_result = {spec.INTEGER_MAXIMUM: int(info.max), spec.INTEGER_ZERO: 0, spec.INTEGER_INDEFINITE: indefinite}[
        policy.integer_nan
    ]
    saturates = policy.integer_nan != spec.INTEGER_INDEFINITE
    low_result, high_result = (int(info.min), int(info.max)) if saturates else (indefinite, indefinite)
    drawn = settings.rounding is Rounding.STOCHASTIC
    uniforms = np.empty(0, np.float64)
    if not drawn:
        _engine.refuse_random_bits(settings, call.random_bits)
    else:
        uniforms = _uniforms(_engine.draw(settings, call.random_bits, call.stream, array.shape), array.size)
    wide = np.empty(array.size, np.int64)
    flat = _engine.flattened(array)
    raises = _engine.flag_bytes(raised)
    rule = Rule(rounding=as_rounding(settings.rounding), daz=settings.daz)
    numbers = _engine.numbers(fmt.spec, fmt.spec, rule, CARRIER64)
    loop = _engine.loops().to_integer(drawn, raised is not None)
    limits = (
        float(info.min),
        float(int(info.max) + 1),
        *(_signed64(x) for x in (nan_result, low_result, high_result)),
        check_boolean("exact", exact),
    )

    def work(start: int, stop: int) -> int:
        return loop(flat[start:stop], wide[start:stop], raises[start:stop], uniforms[start:stop], *numbers, *limits)

    seen = _engine.share(array.size, work)
    result.flat[...] = (wide.view(np.uint64) if wanted.kind == "u" else wide).astype(wanted)
    return _engine.finished(result, raised, seen)


def _signed64(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


def _uniforms(drawn: _engine.Draw, size: int) -> np.ndarray[Any, Any]:
    """Random numbers in [0, 1), one for each element."""
    if drawn.handed.size or not size:
        return drawn.handed.astype(np.float64) / 2.0**drawn.width
    uniforms = np.empty(size, np.float64)
    _engine.loops().drawing()(uniforms, drawn.key, drawn.stream, 0, drawn.width)
    return uniforms


def random_bits(
    shape: int | tuple[int, ...], *, seed: int, stream: int = 0, sr_bits: int = 52, generator: str = "philox4x32"
) -> Any:
    """The random bits that stochastic rounding uses at positions 0, 1 ... of a stream: handed in as `random_bits`, they give the same codes.

    Returns an array of uint64 of the given shape, each below 2^sr_bits.

    >>> bits = random_bits(3, seed=1, sr_bits=8)
    >>> a = encode([0.1, 0.2, 0.3], "float16", rounding="stochastic", seed=1, sr_bits=8)
    >>> b = encode([0.1, 0.2, 0.3], "float16", rounding="stochastic", random_bits=bits, sr_bits=8)
    >>> bool((a[0] == b[0]).all())
    True
    """
    try:
        shape = np.empty(shape, np.dtype([])).shape
    except (TypeError, ValueError):
        raise ValueError(f"shape must be a non-negative integer or a tuple of them, got {shape!r}") from None
    if sr_bits is None:
        raise TypeError("sr_bits must be an integer from 1 to 52, got None")
    settings = Environment(rounding=Rounding.STOCHASTIC, seed=seed, sr_bits=sr_bits, generator=generator)
    drawn = _engine.draw(settings, None, check_stream(stream), shape)
    uniforms = _uniforms(drawn, int(np.prod(shape, dtype=np.int64)))
    return (uniforms * 2.0**sr_bits).astype(np.uint64).reshape(shape)


# -- comparisons -----------------------------------------------------------------------------------------------------


def _compare(relation: str, a: Any, b: Any, fmt: Format | str, signalling: bool, options: Options) -> Result:
    fmt = check_format(fmt)
    call = Call(options, fmt)
    call.draws_nothing()
    operands = [check_codes(a, fmt, "a"), check_codes(b, fmt, "b")]
    (x, y), shape = _engine.broadcast(operands, ["a", "b"])
    result, raised = _engine.outputs(call.out, call.flags, shape, np.dtype(bool), operands)
    raises = _engine.flag_bytes(raised)
    numbers = _engine.numbers(fmt.spec, fmt.spec, Rule(daz=call.settings.daz), CARRIER64)
    any_nan = NAN_POLICIES[call.settings.nan].any_nan_signals
    loop = _engine.loops().comparison(relation, check_boolean("signalling", signalling), raised is not None)

    def work(start: int, stop: int) -> int:
        return loop(x[start:stop], y[start:stop], result.flat[start:stop], raises[start:stop], *numbers, any_nan)

    return _engine.finished(result, raised, _engine.share(x.size, work))


def eq(a: Any, b: Any, fmt: Format | str, *, signalling: bool = False, **options: Unpack[Options]) -> Result:
    """a == b, as bool; -0 equals +0, NaN equals nothing. INVALID for signalling NaNs, and for any NaN if `signalling`.

    Source: IEEE 754-2019 5.6.1, 5.11 (compareQuietEqual, compareSignalingEqual).
    """
    return _compare("eq", a, b, fmt, signalling, options)


def lt(a: Any, b: Any, fmt: Format | str, *, signalling: bool = True, **options: Unpack[Options]) -> Result:
    """a < b, as bool; false for NaN. INVALID for any NaN if `signalling` (the default), else for signalling NaNs.

    Source: IEEE 754-2019 5.6.1, 5.11 (compareSignalingLess, compareQuietLess).
    """
    return _compare("lt", a, b, fmt, signalling, options)


def le(a: Any, b: Any, fmt: Format | str, *, signalling: bool = True, **options: Unpack[Options]) -> Result:
    """a <= b, as bool; false for NaN. INVALID for any NaN if `signalling` (the default), else for signalling NaNs.

    Source: IEEE 754-2019 5.6.1, 5.11 (compareSignalingLessEqual, compareQuietLessEqual).
    """
    return _compare("le", a, b, fmt, signalling, options)


def _extremum(largest: bool, number: bool, a: Any, b: Any, fmt: Format | str, options: Options) -> Result:
    fmt = check_format(fmt)
    call = Call(options, fmt)
    call.draws_nothing()
    operands = [check_codes(a, fmt, "a"), check_codes(b, fmt, "b")]
    (x, y), shape = _engine.broadcast(operands, ["a", "b"])
    result, raised = _engine.outputs(call.out, call.flags, shape, fmt.dtype, operands)
    raises = _engine.flag_bytes(raised)
    rule = Rule(nan=call.settings.nan, daz=call.settings.daz)
    numbers = _engine.numbers(fmt.spec, fmt.spec, rule, CARRIER64)
    loop = _engine.loops().extremum(largest, number, raised is not None)

    def work(start: int, stop: int) -> int:
        return loop(x[start:stop], y[start:stop], result.flat[start:stop], raises[start:stop], *numbers)

    return _engine.finished(result, raised, _engine.share(x.size, work))


def minimum(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The lesser operand, -0 below +0; NaN if either is NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6."""
    return _extremum(False, False, a, b, fmt, options)


def maximum(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The greater operand, +0 above -0; NaN if either is NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6."""
    return _extremum(True, False, a, b, fmt, options)


def minimum_number(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The lesser operand, a number before a NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6."""
    return _extremum(False, True, a, b, fmt, options)


def maximum_number(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The greater operand, a number before a NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6."""
    return _extremum(True, True, a, b, fmt, options)


# -- codes as they are: no arithmetic, no flags ----------------------------------------------------------------------


def _split(
    codes: Any, fmt: Format | str, argument: str = "codes"
) -> tuple[Format, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(format, codes, magnitudes)."""
    fmt = check_format(fmt)
    array = check_codes(codes, fmt, argument)
    return fmt, array, _engine.magnitudes(array, fmt)


def isnan(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a NaN, as bool. No flags, here and in the other questions below (IEEE 754-2019 5.7.2)."""
    fmt, array, _ = _split(codes, fmt)
    return _engine.is_nan(array, fmt)


def issnan(codes: Any, fmt: Format | str) -> Any:
    """Whether each code is a signalling NaN. Only formats with IEEE NaNs have them."""
    fmt, array, _ = _split(codes, fmt)
    return _engine.is_signalling(array, fmt)


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
    fmt = check_format(fmt)
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
    return np.where((magnitude == 0) & (not fmt.signed_zero), array, flipped)[()]


def abs(codes: Any, fmt: Format | str) -> Any:
    """Codes with the sign cleared, NaNs included (IEEE 754-2019 5.5.1). The NaN of fnuz formats, which is its sign bit, stays."""
    fmt, array, magnitude = _split(codes, fmt)
    return np.where(isnan(codes, fmt), array, magnitude)[()] if fmt.spec.lone_nan >= 0 else magnitude


def copysign(a: Any, b: Any, fmt: Format | str) -> Any:
    """Codes of `a` with the signs of `b` (IEEE 754-2019 5.5.1). A zero without a negative twin stays; so does the NaN of fnuz formats."""
    fmt, array, magnitude = _split(a, fmt, "a")
    signs = check_codes(b, fmt, "b") & fmt.dtype.type(fmt.sign_bit)
    (array, magnitude, signs) = np.broadcast_arrays(array, magnitude, signs)
    return np.where((magnitude == 0) & (not fmt.signed_zero), array, magnitude | signs)[()]


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
    call = Call(options, fmt)
    call.draws_nothing()
    first = fmt.smallest_subnormal_code
    top = fmt.spec.infinity if fmt.infinities else fmt.max_code
    rank = _engine.order(array, fmt) + step
    last = top - first + 1
    lowest = -last if fmt.signed else 0 if fmt.zero else 1
    rank = np.clip(rank, lowest, last)
    moved = np.where(rank == 0, 0, np.abs(rank) + first - 1)
    below_zero = (rank < 0) | ((rank == 0) & (step > 0) & fmt.signed_zero)  # nextUp of the least negative number is -0
    stepped = (moved | np.where(below_zero, fmt.sign_bit, 0)).astype(fmt.dtype)
    quiet, raised = minimum(array, array, fmt, environment=call.settings, flags="each")
    result, flags = _engine.outputs(call.out, call.flags, array.shape, fmt.dtype, [array])
    result.flat[...] = np.where(isnan(array, fmt), quiet, stepped).reshape(-1)
    if flags is None:
        return result.finish(), int(np.bitwise_or.reduce(raised, axis=None)) if array.size else 0
    flags.flat[...] = np.asarray(raised).reshape(-1)
    return result.finish(), flags.finish()
