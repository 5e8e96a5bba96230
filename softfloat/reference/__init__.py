"""The oracle: each operation is its exact value and then one rounding, on Python integers and fractions.

It is slow and obvious. It restates IEEE 754-2019 and the project's own rules in words of its own and shares no
arithmetic with the compiled kernels: what both agree on was reached twice. Operands are codes, one at a time; a result
is `(code, flags)`, both Python integers. Flags add up 1 inexact, 2 underflow, 4 overflow, 8 division by zero, 16
invalid. Every function takes the settings of `Options` as keywords.

>>> from softfloat.formats import float16
>>> add(0x6800, 0x3C00, float16)  # 2048 + 1 is a tie; the even neighbour is 2048
(26624, 1)
>>> add(0x6800, 0x3C00, float16, rounding="toward_positive")
(26625, 1)
>>> [hex(code) for code in div(0x3C00, 0x8000, float16)]  # 1 / -0
['0xfc00', '0x8']
"""

from softfloat.reference.arithmetic import add, div, floor_divide, fma, fmod, modulo, mul, remainder, sqrt, sub
from softfloat.reference.comparisons import (
    classify,
    eq,
    eq_signalling,
    le,
    le_signalling,
    lt,
    lt_signalling,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
)
from softfloat.reference.conversions import convert, encode, round_to_integral, to_integer
from softfloat.reference.functions import (
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
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    pow,
    radians,
    sin,
    sinh,
    tan,
    tanh,
)
from softfloat.reference.rounding import round_exact
from softfloat.reference.values import Kind, Options, Value, by_name, decode

__all__ = [
    "Kind",
    "Options",
    "Value",
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
    "convert",
    "cos",
    "cosh",
    "decode",
    "degrees",
    "div",
    "encode",
    "eq",
    "eq_signalling",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "floor_divide",
    "fma",
    "fmod",
    "hypot",
    "le",
    "le_signalling",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "lt",
    "lt_signalling",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
    "modulo",
    "mul",
    "pow",
    "radians",
    "remainder",
    "round_exact",
    "round_to_integral",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "tan",
    "tanh",
    "to_integer",
]

globals().update({name: by_name(globals()[name]) for name in __all__ if name not in ("Kind", "Options", "Value")})
