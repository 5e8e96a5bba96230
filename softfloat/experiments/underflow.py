"""Underflow: where numbers become zero on the way from float32 to half precision.

>>> underflow_threshold("float16") == 2.0**-25
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softfloat import bits
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["UnderflowCase", "underflow_cases", "underflow_threshold"]


@dataclass(frozen=True)
class UnderflowCase:
    """A float32 number converted to a narrower format, to nearest even.

    Attributes
    ----------
    description : str
        What the number is.
    source_code : int
        Its float32 code.
    number : float
        Its value.
    format : str
        The target.
    code : int
        The result.
    value : float
        Its value.
    flags : Flags
        All that was raised.
    """

    description: str
    source_code: int
    number: float
    format: str
    code: int
    value: float
    flags: Flags


def underflow_cases(fmt: Format | str = "float16") -> tuple[UnderflowCase, ...]:
    """Numbers around the threshold of half precision, and the usual epsilon of the Adam optimiser."""
    fmt = Format.from_name(fmt)
    tie = int(bits.encode(2.0**-25, "float32")[0])
    rows = {
        "2^-24, the smallest half": int(bits.encode(2.0**-24, "float32")[0]),
        "next float32 above 2^-25": int(bits.next_up(tie, "float32")[0]),
        "3e-8": int(bits.encode(3e-8, "float32")[0]),
        "2^-25, half of it: a tie": tie,
        "1e-8, epsilon of Adam": int(bits.encode(1e-8, "float32")[0]),
    }
    sources = np.array(list(rows.values()), np.uint32)
    codes, flags = bits.convert(sources, "float32", fmt)
    numbers, values = bits.decode(sources, "float32"), bits.decode(codes, fmt)
    return tuple(
        UnderflowCase(name, int(sources[i]), float(numbers[i]), fmt.name, int(codes[i]), float(values[i]), Flags(int(flags[i])))
        for i, name in enumerate(rows)
    )


def underflow_threshold(fmt: Format | str = "float16") -> float:
    """The greatest float32 that becomes zero in the format, rounding to nearest even; found by bisection over float32 codes."""
    fmt = Format.from_name(fmt)
    low, high = 0, int(bits.encode(fmt.tiny, "float32")[0])
    while high - low > 1:
        middle = (low + high) // 2
        code, _ = bits.convert(middle, "float32", fmt)
        if bits.decode(code, fmt) == 0:
            low = middle
        else:
            high = middle
    return float(bits.decode(low, "float32"))
