"""Numbers to codes and back, conversions between formats, conversions to integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from softfloat import engine
from softfloat.bits.arithmetic import Result, run
from softfloat.engine import Call, Options, calls, check_block, check_boolean, check_codes, check_stream
from softfloat.engine.arguments import on_device, refuse_device
from softfloat.environments import Environment, Rounding, as_rounding
from softfloat.formats import ROSTER, Format, check_format, float16, float32
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER64, FLOAT64, Rule
from softfloat.positions import Position, as_position

__all__ = ["convert", "decode", "encode", "random_bits", "to_integer"]


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
    fmt = check_format(fmt, wide=True)
    found = calls.conversion(x, fmt, options)
    if found is not None:
        return found
    if on_device(x):
        from softfloat.cuda import elementwise

        return elementwise.encoded(x, fmt, options)
    array, name, source, more = source_codes(x)
    call = Call(options, fmt, name, engine.CONVERSIONS)
    if more is not None and fmt.wide:
        return call.run("convert_exact", _exact_words(x), ["x", "x", "x"], FLOAT64, fmt)
    work = None if more is None or not call.settings.rounding.draws else engine.drawn_more(more)
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
    fmt = check_format(fmt, wide=True)
    if on_device(codes):
        from softfloat.cuda import elementwise

        return elementwise.decoded(codes, fmt)
    array = check_codes(codes, fmt, "codes")
    return engine.decoded(array.T, fmt).T if engine.by_columns([array]) else engine.decoded(array, fmt)[()]


def convert(codes: Any, src: Format | str, dst: Format | str, **options: Unpack[Options]) -> Result:
    """Codes of one format to codes of another, with a single rounding.

    Returns (codes of `dst`, flags). INEXACT, UNDERFLOW, OVERFLOW; INVALID as for `encode`. Infinities follow
    `infinite_input`. Source: IEEE 754-2019 5.4.2.

    >>> convert(0x7BFF, "float16", "float8_e4m3fn", overflow="saturate")
    (np.uint8(126), np.uint8(5))
    """
    src, dst = check_format(src, "src", wide=True), check_format(dst, "dst", wide=True)
    found = calls.between(codes, src, dst, options)
    if found is not None:
        return found
    call = Call(options, dst, src.name, engine.CONVERSIONS)
    return run(call, "convert", {"codes": codes}, src, dst)


USUAL = {np.dtype(fmt.name): fmt for fmt in (float16, float32)}
"""NumPy's own dtypes that are formats."""
SMALL_INTEGERS = {"int1", "int2", "int4", "uint1", "uint2", "uint4"}  # ml_dtypes' own


def source_codes(x: Any) -> tuple[np.ndarray[Any, Any], str, spec.FormatSpec, np.ndarray[Any, Any] | None]:
    """Numbers as codes, the name and numbers of the format they come in, and what those of more than 53 bits lack; None if nothing."""
    if type(x) is np.ndarray and x.dtype in USUAL:
        usual = USUAL[x.dtype]
        return x.view(usual.dtype), usual.name, usual.spec, None
    engine.refuse_mask(x, "x")
    refuse_device(x, "x")
    if isinstance(getattr(x, "format", None), Format):
        return x.codes, x.format.name, x.format.spec, None
    more = None
    if not hasattr(x, "__array__"):
        x, more = _from_python(x)
    array = np.asarray(x)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == object:
        array, more = _from_python(array)
    kind, name = array.dtype.kind, array.dtype.name
    if kind == "b" or name in SMALL_INTEGERS:
        array = array.astype(np.float64)
    elif kind in "iu":
        array, more = _integers_to_odd(array)
    if array.dtype == np.float64:
        return array.view(np.uint64), "float64", FLOAT64, more
    if name in ROSTER:
        fmt = Format.from_dtype(array.dtype)
        return array.view(fmt.dtype), fmt.name, fmt.spec, None
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
        odd = engine.odd_float(exact)
        return odd, engine.odd_float(exact - Fraction(odd))
    raise TypeError(f"x must be numbers: int, float, Fraction or bool, got {type(x).__name__}")


def _exact_words(x: Any) -> list[np.ndarray[Any, Any]]:
    """Numbers of any size as the three words of the wide loops' `convert_exact`."""
    array = np.asarray(x) if hasattr(x, "__array__") else np.array(x, dtype=object)
    array = np.array(array.tolist(), dtype=object).reshape(array.shape)  # of nothing, lists have fewer axes
    words = [exact_word(value) for value in array.ravel().tolist()]
    columns = zip(*words, strict=True)
    kinds = np.uint64, np.uint64, np.int64
    return [np.array(column, kind).reshape(array.shape) for column, kind in zip(columns, kinds, strict=True)]


Word = tuple[int, int, int]
"""A number of any size: high and low bits, and 4 * exponent + 2 * sign; or a code of float64, 0, 1."""


def exact_word(x: Any) -> Word:
    """A number as `convert_exact` takes it."""
    if isinstance(x, (float, np.floating)):
        return int(np.float64(x).view(np.uint64)), 0, 1
    exact = Fraction(int(x) if isinstance(x, np.generic) else x)
    if not exact:
        return 0, 0, 0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    scale = 126 - exponent
    numerator, denominator = magnitude.numerator << max(scale, 0), magnitude.denominator << max(-scale, 0)
    word, rest = divmod(numerator, denominator)  # of 126 or 127 bits
    word = word << 1 | (rest != 0)
    return word >> 64, word & (1 << 64) - 1, 4 * exponent + 2 * (exact < 0)


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
        the largest. Other NaN policies differ: Arm's make 0 of NaN, NVIDIA's too, but 2^63 (as int64 -2^63) in 64 bits, x86's
        give -2^(n-1) (unsigned: 2^n - 1) for everything invalid.

    Source
    ------
    IEEE 754-2019 5.8, 7.2; the results of invalid conversions are those of SoftFloat's RISC-V, ARM-VFPv2 and 8086-SSE
    specialisations.

    >>> to_integer([0x4100, 0x7E00], "float16", "int8")
    (array([  2, 127], dtype=int8), array([ 1, 16], dtype=uint8))
    """
    fmt = check_format(fmt, wide=True)
    call = Call(options, fmt, uses=engine.uses_of("to_integer"))
    array = check_codes(codes, fmt, "codes")
    try:
        np.iinfo(dtype)
    except (ValueError, TypeError):
        raise TypeError(f"dtype must be a NumPy integer dtype, got {dtype!r}") from None
    wanted = np.dtype(dtype)
    result, raised = engine.outputs(call.out, call.flags, array.shape, wanted, [array])
    settings = call.settings
    check_block("to_integer", call.position, array.shape)
    drawn = settings.rounding.draws
    uniforms, width = np.empty(0, np.float64), 52
    if not drawn:
        engine.refuse_random_bits(settings, call.random_bits)
    else:
        found = engine.draw(settings, call.random_bits, call.stream, array.shape, call.position)
        engine.check_reach(settings, fmt, found.width)
        uniforms, width = _uniforms(found, array.size), found.width
    wide = np.empty(array.size, np.int64)
    flat, size = engine.flattened(array).view(np.uint8), array.itemsize
    raises = engine.flag_bytes(raised)
    rule = Rule(
        rounding=as_rounding(settings.rounding), daz=settings.daz, sr_method=settings.sr_method, random_width=width
    )
    numbers = engine.numbers(fmt.spec, fmt.spec, rule, CARRIER64, wide=True)
    loop = engine.comparisons().by_element(engine.comparisons().integer(drawn), 1)
    limits = engine.integer_limits(wanted, settings, check_boolean("exact", exact))

    def work(start: int, stop: int) -> int:
        codes, span = flat[start * size : stop * size], slice(start, stop)
        parts = codes, codes, codes, wide[span].view(np.uint8), raises[span]
        return engine.spared(loop).run(stop - start, *parts, size, 8, limits, *numbers, uniforms[span])

    seen = engine.share(array.size, work)
    result.flat[...] = (wide.view(np.uint64) if wanted.kind == "u" else wide).astype(wanted)
    return engine.finished(result, raised, seen)


def _uniforms(drawn: engine.Draw, size: int) -> np.ndarray[Any, Any]:
    """Random numbers in [0, 1), one for each element."""
    if drawn.handed.size or not size:
        return drawn.handed.astype(np.float64) / 2.0**drawn.width
    uniforms = np.empty(size, np.float64)
    drawing = engine.loops().drawing()

    def work(start: int, stop: int) -> int:
        drawing(uniforms[start:stop], drawn.key, drawn.stream, drawn.at(start), drawn.width)
        return 0

    drawn.cut(work)(0, size)
    return uniforms


def random_bits(
    shape: int | tuple[int, ...],
    *,
    seed: int,
    stream: int = 0,
    sr_bits: int = 52,
    generator: str = "philox4x32",
    position: Position | int | None = None,
) -> Any:
    """The random bits that stochastic rounding uses at positions 0, 1 ... of a stream: handed in as `random_bits`, they give the same codes.

    Returns an array of uint64 of the given shape, each below 2^sr_bits. With a `position`, those of a block of a whole.

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
    settings = Environment(rounding=Rounding.STOCHASTIC, seed=seed, sr_bits=sr_bits, generator=generator).settings
    where = as_position(position)
    check_block("random_bits", where, shape)
    drawn = engine.draw(settings, None, check_stream(stream), shape, where)
    uniforms = _uniforms(drawn, int(np.prod(shape, dtype=np.int64)))
    return (uniforms * 2.0**sr_bits).astype(np.uint64).reshape(shape)
