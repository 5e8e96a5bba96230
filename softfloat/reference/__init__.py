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

from softfloat.reference import arithmetic, blocks, comparisons, conversions, functions, rounding, values
from softfloat.reference.arithmetic import *
from softfloat.reference.blocks import *
from softfloat.reference.comparisons import *
from softfloat.reference.conversions import *
from softfloat.reference.functions import *
from softfloat.reference.rounding import *
from softfloat.reference.values import *

__all__: list[str] = []
__all__ += arithmetic.__all__
__all__ += blocks.__all__
__all__ += comparisons.__all__
__all__ += conversions.__all__
__all__ += functions.__all__
__all__ += rounding.__all__
__all__ += values.__all__

globals().update(
    {
        name: values.by_name(globals()[name])
        for name in __all__
        if name not in ("Kind", "Options", "QuantizedBlock", "Value")
    }
)
