"""Block formats: elements that share a scale, and the rules by which scales are found.

A `BlockFormat` is described here beside `softfloat.Format`; `softfloat.bits.quantize` makes codes of one, a
`softfloat.bits.BlockCodes`.

>>> mxfp4_e2m1
BlockFormat('mxfp4_e2m1', element='float4_e2m1fn', scale='float8_e8m0fnu', block=32)  # 4.25 bits an element
"""

from softfloat.blocks import fixed, formats, rules
from softfloat.blocks.fixed import *
from softfloat.blocks.formats import *
from softfloat.blocks.rules import *

__all__: list[str] = []
__all__ += fixed.__all__
__all__ += formats.__all__
__all__ += rules.__all__
