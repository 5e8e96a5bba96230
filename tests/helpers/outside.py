"""Berkeley SoftFloat and MPFR, in this project's terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import gmpy2
import softfloatpy as sf

from softfloat import reference
from softfloat.formats import Format

X, U, O, Z, I = 1, 2, 4, 8, 16  # noqa: E741 -- the traps' letters for the flags


def to_float(code: int, fmt: Format) -> float:
    value = reference.decode(code, fmt)
    return math.nan if value.is_nan else math.copysign(float(abs(value.real)), -1 if value.negative else 1)


# -- Berkeley SoftFloat ----------------------------------------------------------------------------------------------

SF_MODES = {
    "nearest_even": sf.RoundingMode.NEAR_EVEN,
    "nearest_away": sf.RoundingMode.NEAR_MAX_MAG,
    "toward_zero": sf.RoundingMode.MIN_MAG,
    "toward_positive": sf.RoundingMode.MAX,
    "toward_negative": sf.RoundingMode.MIN,
}
SF_TININESS = {"before": sf.TininessMode.BEFORE_ROUNDING, "after": sf.TininessMode.AFTER_ROUNDING}
SF_TYPES = {"f16": sf.Float16, "f32": sf.Float32, "f64": sf.Float64, "bf16": sf.BFloat16}
SETTINGS = list(itertools.product(SF_MODES, SF_TININESS))


def softfloat(name: str, rounding: str, tininess: str, *args: Any) -> tuple[Any, int]:
    sf.set_rounding_mode(SF_MODES[rounding])
    sf.set_tininess_mode(SF_TININESS[tininess])
    sf.set_exception_flags(sf.ExceptionFlag(0))
    result = getattr(sf, name)(*args)
    return result, int(sf.get_exception_flags())


def pack(code: int, kind: str) -> Any:
    cls = SF_TYPES[kind]
    return cls.from_bytes(code.to_bytes(cls.size() // 8, "big"))


def unpack(value: Any) -> int:
    return int.from_bytes(value.to_bytes(), "big")


# -- MPFR ------------------------------------------------------------------------------------------------------------

MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "toward_positive": gmpy2.RoundUp,
    "toward_negative": gmpy2.RoundDown,
}
MPFR_OPS: dict[str, tuple[int, Callable[..., tuple[int, int]], Callable[..., Any]]] = {
    "add": (2, reference.add, gmpy2.add),
    "sub": (2, reference.sub, gmpy2.sub),
    "mul": (2, reference.mul, gmpy2.mul),
    "div": (2, reference.div, gmpy2.div),
    "remainder": (2, reference.remainder, gmpy2.remainder),
    "sqrt": (1, reference.sqrt, gmpy2.sqrt),
    "fma": (3, reference.fma, gmpy2.fma),
}


def mpfr(fmt: Format, rounding: str, function: Callable[..., Any], row: tuple[int, ...]) -> tuple[float, int]:
    """The value and the flags. MPFR's numbers are 0.1bbb * 2^e; its underflow is raised for exact subnormals too."""
    settings = gmpy2.context(
        precision=fmt.p, emax=fmt.emax + 1, emin=fmt.emin - fmt.p + 2, subnormalize=True, round=MPFR_MODES[rounding]
    )
    numbers = [gmpy2.mpfr(to_float(code, fmt)) for code in row]
    with gmpy2.context(settings) as context:
        context.clear_flags()
        result = function(*numbers)
        flags = X * context.inexact | O * context.overflow | Z * context.divzero | I * context.invalid
        return float(result), flags | U * (context.underflow and context.inexact)
