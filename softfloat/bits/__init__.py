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

from softfloat.bits.arithmetic import add, div, fma, mul, remainder, round_to_integral, sqrt, sub
from softfloat.bits.codes import (
    CLASSES,
    abs,
    classify,
    copysign,
    isfinite,
    isinf,
    isnan,
    isnormal,
    issnan,
    issubnormal,
    iszero,
    negative,
    next_down,
    next_up,
    signbit,
)
from softfloat.bits.comparisons import eq, le, lt, maximum, maximum_number, minimum, minimum_number
from softfloat.bits.convolutions import conv1d, conv2d, conv2d_input_gradient, conv2d_weight_gradient
from softfloat.bits.functions import (
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
from softfloat.bits.numbers import convert, decode, encode, random_bits, to_integer
from softfloat.bits.sums import Counts, cumsum, matmul, sum, vecdot

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
