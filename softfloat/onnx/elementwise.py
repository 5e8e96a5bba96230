"""Elementwise nodes: steps of `softfloat.bits`, each rounded once, and functions computed in float64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.bits.arithmetic import reciprocal as quotient
from softfloat.formats import Format
from softfloat.onnx.table import operator
from softfloat.onnx.tensors import Array, Codes, array_of, format_of
from softfloat.onnx.unit import Call

__all__ = ["FUNCTIONS"]

Floats = np.ndarray[Any, np.dtype[np.float64]]

# -- one rounding ----------------------------------------------------------------------------------------------------

UNARY = {
    name: getattr(bits, name.lower())
    for name in [
        "Sqrt",
        "Exp",
        "Log",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Tanh",
        "Asinh",
        "Acosh",
        "Atanh",
    ]
}
BINARY = {name: getattr(bits, name.lower()) for name in ["Add", "Sub", "Mul", "Div"]}


@operator("rounded", " ".join(UNARY))
def unary(call: Call) -> tuple[Any, ...]:
    """One function."""
    return (array_of(call.run(UNARY[call.key.operator], call.codes(0), call.format), call.format),)


@operator("rounded", " ".join(BINARY))
def binary(call: Call) -> tuple[Any, ...]:
    """One operation; operands broadcast."""
    a, b = call.codes(0), call.codes(1)
    if call.version < 7 and call.attributes.get("broadcast"):
        call.refuse("broadcast as an attribute is not emulated; convert the model to operator set 7 or later")
    return (array_of(call.run(BINARY[call.key.operator], a, b, call.format), call.format),)


@operator("rounded", "Reciprocal", "1 / x.")
def reciprocal(call: Call) -> tuple[Any, ...]:
    """1 / x."""
    fmt = call.format
    return (array_of(call.run(quotient, call.codes(0), fmt), fmt),)


@operator("rounded", "Pow", "An exponent of another type is rounded into the format first.")
def power(call: Call) -> tuple[Any, ...]:
    """x ^ y, in the type of x."""
    base = call.inputs[0]
    fmt = format_of(base.dtype)
    if fmt is None:
        return call.refuse(f"a base of {base.dtype} beside an exponent in {call.format}; cast the base")
    exponent = call.inputs[1]
    codes = call.codes(1, fmt) if format_of(exponent.dtype) == fmt else call.run(bits.encode, exponent, fmt)
    return (array_of(call.run(bits.pow, call.codes(0, fmt), codes, fmt), fmt),)


@operator("rounded", "Mod", "With fmod `bits.fmod`, else `bits.modulo`.")
def modulo(call: Call) -> tuple[Any, ...]:
    """The remainder, with the sign of the dividend or of the divisor."""
    function = bits.fmod if call.attributes.get("fmod", 0) else bits.modulo
    return (array_of(call.run(function, call.codes(0), call.codes(1), call.format), call.format),)


@operator("rounded", "Sum Mean", "((a + b) + c) + ..., each sum rounded; the mean is divided by their number, rounded.")
def total(call: Call) -> tuple[Any, ...]:
    """Of all inputs, from the first on."""
    fmt = call.format
    result = call.codes(0)
    for place in range(1, len(call.inputs)):
        result = call.run(bits.add, result, call.codes(place), fmt)
    if call.key.operator == "Mean" and len(call.inputs) > 1:
        result = call.run(bits.div, result, call.run(bits.encode, len(call.inputs), fmt), fmt)
    return (array_of(result, fmt),)


@operator("rounded", "PRelu", "slope * x, rounded, below zero; x elsewhere.")
def prelu(call: Call) -> tuple[Any, ...]:
    """x, or slope * x."""
    fmt, x = call.format, call.codes(0)
    scaled = call.run(bits.mul, x, call.codes(1), fmt)
    return (array_of(np.where(call.single(0) < 0, scaled, x), fmt),)


# -- computed in float64 ---------------------------------------------------------------------------------------------

Definition = Callable[[Floats, Mapping[str, Any]], Any]
FUNCTIONS: dict[str, tuple[Definition, str]] = {}
"""Name -> (value in float64 of x and attributes, the formula). At infinities too the formula decides: -inf * 0 is NaN."""

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def function(name: str, formula: str) -> Callable[[Definition], Definition]:
    """Enter a definition into the table."""

    def enter(definition: Definition) -> Definition:
        FUNCTIONS[name] = definition, formula
        operator("function", name, formula)(through_float64)
        return definition

    return enter


@lru_cache(maxsize=64)
def table(name: str, attributes: tuple[tuple[str, Any], ...], fmt: Format) -> Floats:
    """A function's values at every code of a format."""
    every = np.arange(1 << fmt.spec.width, dtype=np.uint32).astype(fmt.dtype)
    values = value(name, np.asarray(bits.decode(every, fmt)), dict(attributes))
    values.flags.writeable = False
    return values


def value(name: str, x: Floats, attributes: Mapping[str, Any]) -> Floats:
    """A function's values."""
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name][0](x, attributes), np.float64)


def through_float64(call: Call) -> tuple[Array, ...]:
    """A function of one operand, looked up where the format has few codes: an element's value depends on no other."""
    fmt, codes, name = call.format, call.codes(0), call.key.operator
    if fmt.spec.width <= 16:
        settings = tuple(sorted((k, v) for k, v in call.attributes.items()))
        values: Codes = table(name, settings, fmt)[codes]
    else:
        values = value(name, np.asarray(bits.decode(codes, fmt)), call.attributes)
    return (call.rounded(values, fmt),)


@function("Sigmoid", "1 / (1 + exp(-x)).")
def _sigmoid(x: Floats, given: Mapping[str, Any]) -> Floats:
    return sigmoid(x)


@function("Erf", "The error function.")
def _error_function(x: Floats, given: Mapping[str, Any]) -> Any:
    return _erf(x)


@function(
    "Gelu", "x * erfc(-x / sqrt(2)) / 2; with approximate='tanh' x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 x^3))."
)
def _gelu(x: Floats, given: Mapping[str, Any]) -> Any:
    if given.get("approximate", b"none") in ("tanh", b"tanh"):
        return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * x * _erfc(-x / math.sqrt(2))


@function("Elu", "x, below zero alpha * (exp(x) - 1).")
def _elu(x: Floats, given: Mapping[str, Any]) -> Any:
    return np.where(x < 0, given["alpha"] * np.expm1(x), x)


@function("Selu", "gamma * x, up to zero gamma * alpha * (exp(x) - 1).")
def _selu(x: Floats, given: Mapping[str, Any]) -> Any:
    return given["gamma"] * np.where(x > 0, x, given["alpha"] * np.expm1(x))


@function("Celu", "x, below zero alpha * (exp(x / alpha) - 1).")
def _celu(x: Floats, given: Mapping[str, Any]) -> Any:
    alpha = given.get("alpha", 1.0)
    return np.where(x < 0, alpha * np.expm1(x / alpha), x)


@function("LeakyRelu", "x, below zero alpha * x.")
def _leaky_relu(x: Floats, given: Mapping[str, Any]) -> Any:
    return np.where(x < 0, given["alpha"] * x, x)


@function("ThresholdedRelu", "x above alpha, else 0.")
def _thresholded_relu(x: Floats, given: Mapping[str, Any]) -> Any:
    return np.where(x > given["alpha"], x, 0.0)


@function("HardSigmoid", "alpha * x + beta, cut to 0 and 1.")
def _hard_sigmoid(x: Floats, given: Mapping[str, Any]) -> Any:
    return np.clip(given["alpha"] * x + given["beta"], 0.0, 1.0)


@function("HardSwish", "x * (x + 3, cut to 0 and 6) / 6.")
def _hard_swish(x: Floats, given: Mapping[str, Any]) -> Any:
    return x * np.clip(x + 3.0, 0.0, 6.0) / 6.0


@function("Mish", "x * tanh(log(1 + exp(x))).")
def _mish(x: Floats, given: Mapping[str, Any]) -> Any:
    return x * np.tanh(np.logaddexp(0.0, x))


@function("Softplus", "log(1 + exp(x)).")
def _softplus(x: Floats, given: Mapping[str, Any]) -> Any:
    return np.logaddexp(0.0, x)


@function("Softsign", "x / (1 + |x|).")
def _softsign(x: Floats, given: Mapping[str, Any]) -> Any:
    return x / (1.0 + np.abs(x))


@function("Swish", "x / (1 + exp(-alpha * x)).")
def _swish(x: Floats, given: Mapping[str, Any]) -> Any:
    return x * sigmoid(given.get("alpha", 1.0) * x)


@function("Shrink", "x + bias below -lambd, x - bias above lambd, else 0.")
def _shrink(x: Floats, given: Mapping[str, Any]) -> Any:
    return np.where(x < -given["lambd"], x + given["bias"], np.where(x > given["lambd"], x - given["bias"], 0.0))


@operator(
    "function",
    "Resize Upsample GridSample LRN LpNormalization LpPool GlobalLpPool",
    "ONNX's own implementation, whose sums in float64 leave no trace of their order.",
    native=True,
)
def native_in_float64(call: Call) -> tuple[Any, ...]:
    """ONNX's own implementation on float64."""
    fmt = call.format
    found = call.native(*[_double(x) for x in call.inputs])
    return tuple(call.rounded(np.asarray(x, np.float64), fmt) for x in found)


def _double(x: Any) -> Any:
    narrow = isinstance(x, np.ndarray) and x.dtype != np.float32 and format_of(x.dtype) is not None
    return x.astype(np.float64) if narrow else x


@operator("function", "Range", "start + i * delta.")
def numbers_in_steps(call: Call) -> tuple[Any, ...]:
    """start, start + delta ... short of a limit."""
    start, limit, delta = (float(np.asarray(x, np.float64).reshape(())) for x in call.inputs)
    if not delta:
        raise ValueError(f"node {call.key.name!r}: delta must not be 0")
    count = max(math.ceil((limit - start) / delta), 0)
    return (call.rounded(start + np.arange(count) * delta, call.format),)
