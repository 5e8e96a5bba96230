"""Pure functions over integer codes: codes in, result and flags out. They keep nothing from call to call.

Codes are unsigned integers of a format's `dtype` (or anything NumPy turns into integers in range), of any shape;
operands broadcast. Operands are never modified. Results without dimensions come as NumPy scalars. Sums of products
(`vecdot`, `matmul`, `sum`, `conv2d` ...) take a `softfloat.Accumulator`, which says how they are summed. Mathematical
functions (`exp`, `log`, `pow` ...) are correctly rounded, flags included.

Options are keyword-only, have the defaults of `softfloat.Environment`, where settings are described, and are listed below.

A setting that decides nothing in a call is refused as an option: `overflow` in comparisons, `sr_bits` without stochastic rounding. In
an environment any may stand. `stream`, `position` and, in what may draw, `seed` are addresses, which may stand where nothing
is drawn. In sums, what a stage of the accumulator fixes stays as it is: options rule what is left open, and one that every stage
fixes, the rounding into `out_format` included, is refused.

Errors name the argument and what is accepted: TypeError for things of the wrong kind, ValueError for values out of
range.

>>> import softfloat
>>> from softfloat import bits
>>> code, flags = bits.add(0x3C00, 0x1000, softfloat.float16)  # 1 + 2^-11: a tie
>>> hex(code), softfloat.Flags(flags)
('0x3c00', <Flags.INEXACT: 1>)
"""

from softfloat.bits import signatures
from softfloat.bits.arithmetic import *
from softfloat.bits.blocks.codes import *
from softfloat.bits.blocks.quantization import *
from softfloat.bits.blocks.sums import *
from softfloat.bits.codes import *
from softfloat.bits.comparisons import *
from softfloat.bits.functions.named import *
from softfloat.bits.numbers import *
from softfloat.bits.processors import *
from softfloat.bits.scalars import *
from softfloat.bits.sums import convolutions
from softfloat.bits.sums.convolutions import *
from softfloat.bits.sums.products import *
from softfloat.bits.sums.splits import *

__all__ = [name for family in signatures.FAMILIES.values() for name in family]

for _name in __all__:
    if callable(globals()[_name]) and not isinstance(globals()[_name], type):
        signatures.describe(globals()[_name], convolutions.KEYWORDS.get(_name))
__doc__ = f"{__doc__}\n**Options**\n\n{signatures.options_text()}\n"
