"""Floats rounded to the numbers of a format, floats again: `softfloat.round`.

>>> import softfloat
>>> softfloat.round([0.1, 65519.0, 70000.0, 1e-8], "float16")
array([9.99755859e-02, 6.55040000e+04,            inf, 0.00000000e+00])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.checks import check_choice, check_real, check_switch, is_integer, nearest
from softfloat.engine import NumberSet, ready_values, rounded_values
from softfloat.engine.calls import flat
from softfloat.environments import OWN_ROWS, Overflow, Rounding, Settings, current_environment, evaluate_as
from softfloat.formats import ROSTER, Format, check_format, float16
from softfloat.positions import Position, as_position

__all__ = ["as_floats", "number_set", "round"]

CARRIER_P, CARRIER_EMIN, CARRIER_EMAX = 53, -1022, 1023
SINGLE_P, SINGLE_EMIN, SINGLE_EMAX = 24, -126, 127
FLOATS = {np.dtype(np.float64), np.dtype(np.float32)}
EXACT = 1 << 53
"""Integers up to which are float64."""
CALL = ("stream", "position", "random_bits")
OPTIONS = (*(name for name in OWN_ROWS if name not in ("replica", "replica_identical", "converts_subnormals")), *CALL)
PLACED = {"position", "random_bits"}
FLIPS = ("significand", "any")
WHETHER, WHICH = 1 << 63, 3 << 62
"""Streams from which bit flips draw, beside the stream of the call."""


def round(
    x: Any,
    fmt: Any,
    rounding: Rounding | str | None = None,
    *,
    out: Any = None,
    subnormals: bool | None = None,
    range: str = "format",
    saturate: bool | None = None,
    flip: tuple[float, str] | None = None,
    seed: int | None = None,
    **options: Any,
) -> Any:
    """Floats rounded once to numbers of a format.

    They are what `bits.decode` makes of the codes of `bits.encode`, with the same flags, in one pass and for more formats.

    Parameters
    ----------
    x : array_like
        float64 or float32; other floats, integers up to 2^53, lists, Python's numbers and SoftArrays are made float64.
    fmt : Format, str, dtype or tuple of int
        A format or its name; or (p, emax), or (p, emin, emax): precision, 1 to 53, and exponents of the smallest normal and of the largest
        numbers, emin = 1 - emax if it is not named, with IEEE 754's infinities, NaN and signed zeros.
    rounding : Rounding or str, optional
        One of the modes; None: the environment's.
    out : array, optional
        Where the result goes, of its dtype and shape; it may be `x`.
    subnormals : bool, optional
        False: below the smallest normal number there is zero alone, and what lies between is rounded to one of the two. None: the format's.
    range : {"format", "carrier"}
        "carrier": the format's precision with the exponents of the float that holds the numbers, float64 or float32.
    saturate : bool, optional
        True is `overflow="saturate"`, False `overflow="infinity"`; None: the environment's.
    flip : (probability, "significand" or "any"), optional
        Bit errors: with this probability, one bit of a result's code is turned over, each as likely as the others, of the fraction or
        of the whole code. Formats given by exponents have no codes: of these, "significand" turns over bits of finite numbers, and makes
        infinities NaN.
    seed : int, optional
        For modes that draw, and `flip`; with it, random numbers are those of stream 0, if no other is named, so that a call gives the same again.
        None: the environment's seed, and its next stream.
    **options
        Settings of `softfloat.Environment` for this call: overflow, tininess, infinite_input, daz, ftz, nan, sr_bits, sr_method, projection,
        generator; and stream, position, random_bits, as functions of `softfloat.bits` take them.

    Returns
    -------
    array or scalar
        float32 for float32 `x`, if float32 has all the format's numbers; float64 otherwise. Python's numbers give a float.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    FloatingPointTrap
        If the environment traps a flag.

    Notes
    -----
    Flags go to the environment's status: INEXACT, UNDERFLOW, OVERFLOW, INVALID. A number of a format without negative zero is +0; overflow gives
    what the format, `overflow` and the mode say. Rule: IEEE 754-2019 4.3, 7.4, 7.5. With `flip`, element i draws from streams
    2^63 + s whether a bit is turned over, and from 3 * 2^62 + s which one, s the stream of the call.

    >>> round(70000.0, "float16"), round(70000.0, "float16", saturate=True), round(1.3, (3, 4), "toward_positive")
    (inf, 65504.0, 1.5)
    >>> round([1e-40, 3e-39], "bfloat16", subnormals=False).tolist()
    [0.0, 0.0]
    >>> round(np.float32(1e30), "float16", range="carrier")
    np.float32(1.00025555e+30)
    """
    env = current_environment()
    array, scalar = as_floats(x)
    if flip is None and not env.traps and PLACED.isdisjoint(options):
        given = tuple([(name, value, type(value)) for name, value in options.items() if name != "stream"])
        try:
            way = _settled(fmt, rounding, subnormals, range, saturate, seed, env.settings, array.dtype, given)
        except TypeError:  # of no kind that is kept, or refused: then again, saying why
            way = None
        turned = way is not None and not way[2] and not array.flags.c_contiguous  # nothing depends on places
        lines, target = (array.T, getattr(out, "T", out)) if turned else (array, out)
        if way is not None and env.position is None and lines.flags.c_contiguous and _serves(target, lines, way[1]):
            stream = engine.check_stream(options["stream"]) if "stream" in options else None if seed is None else 0
            made = np.empty(lines.shape, way[1]) if out is None else target
            taken = env.streams.take()
            env.status.add(way[0](flat(lines), made.reshape(-1), taken if stream is None else stream))
            if out is not None:
                return out
            if isinstance(x, np.ndarray):
                return made.T if turned else made
            return float(made) if scalar else made[()]
    single = array.dtype == np.float32
    numbers = number_set(fmt, subnormals, range, single)
    settings = _settings(numbers, rounding, saturate, seed, env.settings, single, options)
    call = {name: options[name] for name in CALL if name in options}
    if seed is not None:
        call.setdefault("stream", 0)
    if "position" not in call and env.position is not None:
        call["position"] = env.position
    dtype = np.dtype(np.float32 if single and numbers.fits_single else np.float64)
    if flip is not None:
        flip = _checked_flip(flip, numbers, settings)
    result = evaluate_as("round", env, _operation(numbers, settings, dtype, flip), (array,), {"out": out, **call})
    if out is None:
        return float(result) if scalar else np.asarray(result) if isinstance(x, np.ndarray) else result
    return result


def _serves(out: Any, x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bool:
    """Whether results are new, or go to an array of their own that needs no look."""
    if out is None:
        return True
    plain = type(out) is np.ndarray and out.dtype == dtype and out.shape == x.shape and out.flags.carray
    return plain and not np.may_share_memory(out, x)


@lru_cache(maxsize=512)
def _operation(
    numbers: NumberSet, settings: Settings, dtype: np.dtype[Any], flip: tuple[float, str] | None
) -> Callable[..., tuple[Any, Any]]:
    """What `evaluate_as` calls with an array."""

    def rounded(
        x: Any, *, environment: Any, stream: int = 0, position: Any = None, out: Any = None, **call: Any
    ) -> tuple[Any, Any]:
        stream, position = engine.check_stream(stream), as_position(position)
        call = {"random_bits": None, **call, "stream": stream, "position": position, "dtype": dtype}
        if flip is None:
            return rounded_values(x, numbers, settings, out=out, **call)
        made, raised = rounded_values(x, numbers, settings, out=None, **call)
        flipped = _flipped(np.asarray(made), numbers, settings, flip, stream, position)
        result, _ = engine.outputs(out, "any", flipped.shape, dtype, [])
        result.flat[...] = flipped.reshape(-1)
        return result.finish(), raised

    return rounded


@lru_cache(maxsize=512, typed=True)
def _settled(
    fmt: Any,
    rounding: Any,
    subnormals: Any,
    range: Any,
    saturate: Any,
    seed: Any,
    around: Settings,
    dtype: Any,
    options: tuple[tuple[str, Any, type], ...],
) -> tuple[Any, Any, bool] | None:
    """What rounds numbers of a dtype, the dtype of results, and whether it draws; None where the long way is to be gone."""
    single = dtype == np.float32
    if not single and dtype != np.float64:
        return None
    numbers = number_set(fmt, subnormals, range, single)
    given = {name: value for name, value, _ in options}
    settings = _settings(numbers, rounding, saturate, seed, around, single, given)
    ready = ready_values(numbers, settings, single)
    dtype = np.dtype(np.float32 if single and numbers.fits_single else np.float64)
    return None if ready is None else (ready, dtype, settings.rounding.draws)


def _settings(
    numbers: NumberSet, rounding: Any, saturate: Any, seed: Any, around: Settings, single: bool, options: dict[str, Any]
) -> Settings:
    """The environment's settings, and those of the call."""
    unknown = options.keys() - set(OPTIONS)
    if unknown:
        accepted = "subnormals", "range", "saturate", "flip", *OPTIONS
        raise TypeError(
            f"unknown option {', '.join(map(repr, sorted(unknown)))} of round; accepted: {', '.join(accepted)}"
            f"{nearest(min(unknown), accepted)}"
        )
    given = {name: value for name, value in options.items() if name not in CALL}
    check_switch("saturate", saturate, optional=True)
    if saturate is not None:
        if "overflow" in given:
            raise TypeError("saturate comes with overflow; accepted: one of them")
        given["overflow"] = Overflow.SATURATE if saturate else Overflow.INFINITY
    if rounding is not None:
        given["rounding"] = rounding
    if seed is not None:
        given["seed"] = seed
    checked = {name: OWN_ROWS[name][1](name, value) for name, value in given.items()}
    whole = around.replace(**checked) if checked else around
    settings = whole.between("float32" if single else "float64", numbers.fmt.name if numbers.fmt else "")
    engine.refuse_undrawn(given.keys(), settings.rounding)
    if settings.overflow is Overflow.NAN and not numbers.kind.has_nan:
        engine.rule_for(settings, numbers.kind, True)  # which refuses it
    return settings


def number_set(fmt: Any, subnormals: bool | None = None, range: str = "format", single: bool = False) -> NumberSet:
    """The numbers that a format, or its precision and exponents, have.

    `single`: the carrier is float32.
    """
    check_choice("range", range, ("format", "carrier"))
    check_switch("subnormals", subnormals, optional=True)
    if isinstance(fmt, (tuple, list)) or is_integer(fmt):
        p, emin, emax = _exponents(fmt)
        own, gradual = None, subnormals is not False
    else:
        own = check_format(fmt, wide=True)
        if subnormals is not None and own.subnormals is not subnormals:
            if not own.zero:
                raise ValueError(f"subnormals must be None for {own}, which has no zero, got {subnormals!r}")
            own = replace(own, subnormals=subnormals)
        p, emin, emax, gradual = own.p, own.emin, own.emax, own.subnormals
    if range == "carrier":
        if own is not None and not (own.signed and own.zero):
            raise ValueError(f"range must be 'format' for {own}, which has no negative numbers, got 'carrier'")
        emin, emax = (SINGLE_EMIN, SINGLE_EMAX) if single else (CARRIER_EMIN, CARRIER_EMAX)
        p, own = min(p, SINGLE_P if single else CARRIER_P), None
    if own is not None:
        return NumberSet(p, emin, emax, gradual, own.max, own, own)
    return NumberSet(p, emin, emax, gradual, math.ldexp(2.0**p - 1, emax - p + 1), float16, None)


def _exponents(fmt: Any) -> tuple[int, int, int]:
    """(p, emin, emax)."""
    if is_integer(fmt) or len(fmt) not in (2, 3) or not all(is_integer(x) for x in fmt):
        raise TypeError(f"fmt must be a format, its name, (p, emax) or (p, emin, emax), integers, got {fmt!r}")
    p, emax = int(fmt[0]), int(fmt[-1])
    emin = int(fmt[1]) if len(fmt) == 3 else 1 - emax
    if not 1 <= p <= CARRIER_P:
        raise ValueError(f"fmt: p must be 1 to {CARRIER_P}, the precision of float64, got {p}")
    if not CARRIER_EMIN <= emin <= emax <= CARRIER_EMAX:
        raise ValueError(
            f"fmt: emin and emax must be {CARRIER_EMIN} to {CARRIER_EMAX}, the exponents of float64, and emin no more than emax, "
            f"got {emin} and {emax}"
        )
    return p, emin, emax


def as_floats(x: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """Numbers as float64, or as they are if they are float32; and whether they are one of Python's."""
    if type(x) is np.ndarray and x.dtype in FLOATS:
        return x, False
    if type(x) is float:
        return np.array(x), True
    engine.refuse_mask(x, "x")
    if isinstance(getattr(x, "format", None), Format):
        return np.asarray(x.values, np.float64), False
    array = np.asarray(x)
    kind = array.dtype.kind
    if array.dtype == np.float32 or array.dtype == np.float64:
        return array.astype(array.dtype.newbyteorder("="), copy=False), False
    if kind in "iu" and array.size and array.dtype.itemsize == 8 and max(-int(array.min()), int(array.max())) > EXACT:
        raise ValueError(
            "x holds integers beyond 2^53, which float64 may not have; accepted: bits.encode takes them exactly"
        )
    if kind in "iub" or array.dtype.name in ROSTER:
        return array.astype(np.float64), type(x) in (int, bool)
    raise TypeError(
        f"x must be floats, or integers up to 2^53, got dtype {array.dtype}; bits.encode takes fractions and integers of any size"
    )


# -- bit errors ------------------------------------------------------------------------------------------------------


def _checked_flip(flip: Any, numbers: NumberSet, settings: Settings) -> tuple[float, str]:
    """A probability, and where bits are turned over."""
    if not isinstance(flip, tuple) or len(flip) != 2:
        raise TypeError(f"flip must be (probability, 'significand' or 'any'), got {flip!r}")
    probability, where = check_real("flip[0]", flip[0], 0.0), flip[1]
    if probability > 1:
        raise ValueError(f"flip[0] must be a probability, 0 to 1, got {flip[0]!r}")
    check_choice("flip[1]", where, FLIPS)
    if where == "any" and numbers.fmt is None:
        raise ValueError(
            "flip[1] must be 'significand' where numbers have no codes; accepted: 'any' with a softfloat.Format"
        )
    if where == "significand" and numbers.p == 1:
        raise ValueError(
            "flip[1] must be 'any' in a format of one bit of precision, which has no fraction, got 'significand'"
        )
    if settings.seed is None:
        raise ValueError("flip needs a seed (0 to 2^64 - 1), of the call or of the environment")
    if settings.generator != "philox4x32":
        raise ValueError(f"flip draws by generator='philox4x32', got {settings.generator!r}")
    return probability, where


def _flipped(
    values: np.ndarray[Any, Any],
    numbers: NumberSet,
    settings: Settings,
    flip: tuple[float, str],
    stream: int,
    position: Position | None,
) -> np.ndarray[Any, Any]:
    """Rounded numbers, some with a bit turned over."""
    probability, where = flip
    shape, seed = values.shape, engine.replica_key(settings.seed, 0 if settings.replica_identical else settings.replica)

    def draw(beside: int) -> np.ndarray[Any, Any]:
        return np.asarray(bits.random_bits(shape, seed=seed, stream=(stream ^ beside), position=position))

    hit = draw(WHETHER) < probability * 2.0**52
    width = np.uint64(numbers.fmt.bits if where == "any" and numbers.fmt else numbers.p - 1)
    place = (draw(WHICH)[hit] * width) >> np.uint64(52)  # as likely as each other, up to 2^-46
    found = values.copy()
    found[hit] = _turned_over(values[hit], place, numbers)
    return found


def _turned_over(values: np.ndarray[Any, Any], place: np.ndarray[Any, Any], numbers: NumberSet) -> np.ndarray[Any, Any]:
    """Numbers whose codes differ in one bit from those of `values`."""
    fmt = numbers.fmt
    if fmt is not None:
        codes = np.asarray(bits.encode(values, fmt)[0])
        return np.asarray(bits.decode(codes ^ (np.uint64(1) << place).astype(codes.dtype), fmt))
    finite = np.isfinite(values)
    magnitude = np.where(finite, np.abs(values), 0.0)
    own = np.where(magnitude > 0.0, np.frexp(magnitude)[1] - 1, numbers.emin)
    exponent = np.maximum(own, numbers.emin) - numbers.p + 1
    steps = np.ldexp(np.ldexp(magnitude, -exponent // 2), -exponent - (-exponent // 2)).astype(np.uint64)
    turned = np.ldexp((steps ^ (np.uint64(1) << place)).astype(np.float64), exponent)
    if not numbers.subnormals:
        turned = np.where(turned < math.ldexp(1.0, numbers.emin), 0.0, turned)
    return np.where(finite, np.copysign(turned, values), np.nan)
