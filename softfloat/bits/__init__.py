"""Pure functions over integer codes: codes in, result and flags out. They keep nothing from call to call.

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
rounding, overflow, tininess, infinite_input, daz, ftz, converts_subnormals, nan, sr_bits, sr_method, projection, generator, seed
    As in `softfloat.Environment`.
environment : Environment
    All of those at once, and its `position`; nothing else of it is used, and nothing in it changes.
stream : int
    With `seed`, addresses the random numbers of stochastic rounding: element i takes those of position i; in sums of
    products, output and step are the address. Default 0.
position : Position or int
    Where the result lies in the whole of which it is a block: random numbers are then those of the whole, so that cutting an array
    changes no bit. `Position(index, shape)` is the index of the block's first element and the shape of the whole; an
    integer is the number of the first of elements that follow each other in the whole. Sums of parts of k are cut where the
    accumulator cuts: see `segments` and `join_segments`. Default: the result is the whole.
random_bits : array of integers
    The random numbers themselves: 0 to 2^sr_bits - 1, one for each element. `sr_bits` defaults to the width of the
    dtype. A magnitude goes up if floor(f * 2^sr_bits) + random_bits >= 2^sr_bits, f its distance from the candidate below
    in units of the distance between the candidates, of the exact result (`sr_method` cuts f otherwise). Not for sums of products,
    which round many times.

A setting that decides nothing in a call is refused as an option: `overflow` in comparisons, `sr_bits` without stochastic rounding. In
an environment any may stand. `stream`, `position` and, in what may draw, `seed` are addresses, which may stand where nothing
is drawn. In sums, what a stage of the accumulator fixes stays as it is: options rule what is left open.

Errors name the argument and what is accepted: TypeError for things of the wrong kind, ValueError for values out of
range.

>>> import softfloat
>>> from softfloat import bits
>>> code, flags = bits.add(0x3C00, 0x1000, softfloat.float16)  # 1 + 2^-11: a tie
>>> hex(code), softfloat.Flags(flags)
('0x3c00', <Flags.INEXACT: 1>)
"""

from softfloat.bits import (
    arithmetic,
    block_codes,
    codes,
    comparisons,
    convolutions,
    functions,
    numbers,
    processors,
    quantization,
    scalars,
    scaled_sums,
    split_sums,
    sums,
)
from softfloat.bits.arithmetic import *
from softfloat.bits.block_codes import *
from softfloat.bits.codes import *
from softfloat.bits.comparisons import *
from softfloat.bits.convolutions import *
from softfloat.bits.functions import *
from softfloat.bits.numbers import *
from softfloat.bits.processors import *
from softfloat.bits.quantization import *
from softfloat.bits.scalars import *
from softfloat.bits.scaled_sums import *
from softfloat.bits.split_sums import *
from softfloat.bits.sums import *

__all__: list[str] = []
__all__ += arithmetic.__all__
__all__ += block_codes.__all__
__all__ += codes.__all__
__all__ += comparisons.__all__
__all__ += convolutions.__all__
__all__ += functions.__all__
__all__ += numbers.__all__
__all__ += processors.__all__
__all__ += quantization.__all__
__all__ += scalars.__all__
__all__ += scaled_sums.__all__
__all__ += split_sums.__all__
__all__ += sums.__all__
