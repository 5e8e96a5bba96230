"""Operations as functions for the code that a user compiles: which kernel, which numbers, what operands and results are."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine.draws import replica_key
from softfloat.engine.parameters import comparisons, floor_of, rule_for, way_of
from softfloat.environments import Settings
from softfloat.formats import Format
from softfloat.kernels import spec, targets
from softfloat.kernels.spec import CARRIER64, FLOAT64, NAN_POLICIES, FormatSpec, Rule

__all__ = ["Inlined", "drawing_of", "inlined", "integer_limits"]

_kernels = floor_of("inlined")


class Inlined(NamedTuple):
    """What a function is to do.

    Attributes
    ----------
    operation : str
        One of `kernels.loops.OPERATIONS`, "eq", "lt", "le", "minimum" ..., "to_integer", "encode" or "decode".
    operands : int
        How many it takes.
    source, target : Format
    settings : Settings
        Those of the target.
    values, flagged : bool
        Whether operands and results are numbers; whether flags are given.
    exact : bool
        Of `round_to_integral` and `to_integer`.
    signalling : bool
        Of comparisons.
    integer : numpy dtype or None
        Of `to_integer`.
    """

    operation: str
    operands: int
    source: Format
    target: Format
    settings: Settings
    values: bool
    flagged: bool
    exact: bool
    signalling: bool
    integer: Any


def drawing_of(settings: Settings) -> str:
    """Where random bits come from: "" nowhere, "address" of the seed, or "bits" handed in."""
    if not settings.rounding.draws:
        return ""
    return "bits" if settings.seed is None else "address"


@lru_cache(maxsize=256)
def inlined(wanted: Inlined) -> Callable[..., Any]:
    """The function: compiled when it is first called, by compiled code or by Python."""
    kernels = _kernels()
    name, source, target, settings = wanted.operation, wanted.source, wanted.target, wanted.settings
    drawing, width = drawing_of(settings), settings.random_width
    if name in ("eq", "lt", "le", "minimum", "maximum", "minimum_number", "maximum_number", "decode"):
        drawing = ""
    apply = _apply(wanted, width if drawing else 0)
    reading = targets.source(source.spec, CARRIER64, False)
    if name == "encode":
        told = "x of encode must be a number: a float, or an integer of at most 64 bits"
        enter = kernels.taking(True, told, kernels.exact_number)
    elif wanted.values:
        to_code = _rounded("convert_wide", FLOAT64, source, Settings(), True, 0.0, 0)
        accepted = f"accepted: results of these functions, and what bits.decode gives for {source.name}"
        sign = 1 << source.bits - 1 if source.signed else 0
        lowest = 1023 + spec.emin(source.spec) << 52  # of normal numbers, as float64
        layout = source.mantissa_bits, source.spec.bias, source.spec.largest, lowest, sign
        enter = kernels.code_of_value(
            to_code, reading, layout, f"operands of {name} must be numbers of {source.name}; {accepted}"
        )
    else:
        told = f"operands of {name} must be codes of {source.name}, integers from 0 to {2**source.bits - 1}"
        told = told if name == "decode" else f"{told}, or with values=True numbers"
        enter = kernels.integer_below(1 << source.bits, np.int64, told)
    handed = kernels.integer_below(1 << width, np.uint64, f"bits must be an integer from 0 to 2^{width} - 1")
    key = (
        replica_key(settings.seed, 0 if settings.replica_identical else settings.replica) if drawing == "address" else 0
    )
    made = kernels.function(
        apply, wanted.operands, enter, _leave(wanted), wanted.flagged, drawing, handed, (np.uint64(key), width)
    )
    made.__name__ = f"{name}_{target.name}"
    return kernels.callable_from_compiled(made)


def _leave(wanted: Inlined) -> Callable[..., Any]:
    """What becomes of a result."""
    kernels = _kernels()
    if wanted.operation in ("eq", "lt", "le"):
        return kernels.result_of(np.bool_)
    if wanted.integer is not None:
        return kernels.result_of(wanted.integer.type)
    if wanted.values or wanted.operation == "decode":
        return kernels.value_of(targets.source(wanted.target.spec, CARRIER64, False))
    return kernels.result_of(wanted.target.dtype.type)


def _apply(wanted: Inlined, width: int) -> Callable[..., Any]:
    """The operation on codes."""
    kernels = _kernels()
    name, settings, source = wanted.operation, wanted.settings, wanted.source.spec
    if name == "decode":
        return kernels.nothing
    if name == "to_integer":
        rounding = Rule(
            rounding=settings.rounding, daz=settings.daz, sr_method=settings.sr_method, random_width=width or 52
        )
        numbers = targets.source(source, CARRIER64, settings.daz), targets.target(source, rounding, CARRIER64)
        limits = integer_limits(wanted.integer, settings, wanted.exact)
        return kernels.by_element(comparisons().integer(width > 0), limits, *numbers, width)
    rule = rule_for(settings, wanted.target, name in ("convert", "encode"), width or 1, True)  # none: nothing is drawn
    numbers = targets.source(source, CARRIER64, settings.daz), targets.target(wanted.target.spec, rule, CARRIER64)
    if name in ("eq", "lt", "le"):
        signals = wanted.signalling or rule.policy.any_nan_signals
        return kernels.by_element(comparisons().compared(name), signals, *numbers, 0)
    if name.startswith(("minimum", "maximum")):
        chosen = comparisons().extreme(name.startswith("maximum"), name.endswith("number"))
        return kernels.by_element(chosen, False, *numbers, 0)
    if name == "encode":
        return _rounded("encode", FLOAT64, wanted.target, settings, True, 0.0, width)
    extra = float(wanted.exact) if name == "round_to_integral" else 0.0
    return _rounded(name, source, wanted.target, settings, name == "convert", extra, width)


def _rounded(
    operation: str, source: FormatSpec, target: Format, settings: Settings, conversion: bool, extra: float, width: int
) -> Callable[..., Any]:
    rule = rule_for(settings, target, conversion, width or 52, True)
    way = way_of(target.spec, rule)
    numbers = targets.source(source, CARRIER64, settings.daz), targets.target(target.spec, rule, CARRIER64)
    if operation == "encode":
        return _kernels().encoded(way, *numbers, width)
    return _kernels().rounded(operation, way, *numbers, extra, width)


def integer_limits(dtype: Any, settings: Settings, exact: bool) -> tuple[Any, ...]:
    """What `kernels.comparisons.integer` knows of a NumPy integer dtype under a NaN policy."""
    info = np.iinfo(dtype)
    policy = NAN_POLICIES[settings.nan]
    indefinite = int(info.min) or int(info.max)
    choices = {
        spec.INTEGER_MAXIMUM: int(info.max),
        spec.INTEGER_ZERO: 0,
        spec.INTEGER_INDEFINITE: indefinite,
        spec.INTEGER_SHORT_ZERO: 1 << 63 if info.bits == 64 else 0,
    }
    saturates = policy.integer_nan != spec.INTEGER_INDEFINITE
    low_result, high_result = (int(info.min), int(info.max)) if saturates else (indefinite, indefinite)
    results = (x - (1 << 64) if x >> 63 == 1 else x for x in (choices[policy.integer_nan], low_result, high_result))
    return float(info.min), float(int(info.max) + 1), *results, exact
