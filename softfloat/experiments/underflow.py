"""Underflow: where numbers become zero on the way from float32 to half precision.

>>> underflow_threshold("float16") == 2.0**-25
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softfloat import bits
from softfloat.environments import Environment
from softfloat.experiments.choices import check_environment, environment_of, is_drawn
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["UnderflowCase", "underflow_cases", "underflow_threshold"]


@dataclass(frozen=True)
class UnderflowCase:
    """A float32 number converted to a narrower format.

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


def underflow_cases(
    fmt: Format | str = "float16", *, environment: Environment | None = None
) -> tuple[UnderflowCase, ...]:
    """Numbers around the threshold of half precision, and the usual epsilon of the Adam optimiser.

    Parameters
    ----------
    fmt : Format
    environment : Environment, optional
        How they are converted; default to nearest even. Its seed is 0 if it has none. Nothing is summed: there is no accumulator.
    """
    chosen = environment_of(environment, None, 0)
    fmt = Format.from_name(fmt)
    rows = {
        "2^-24, the smallest half": _single(2.0**-24),
        "next float32 above 2^-25": _single(2.0**-25) + 1,
        "3e-8": _single(3e-8),
        "2^-25, half of it: a tie": _single(2.0**-25),
        "1e-8, epsilon of Adam": _single(1e-8),
    }
    sources = np.array(list(rows.values()), np.uint32)
    codes, flags = bits.convert(sources, "float32", fmt, environment=chosen)
    numbers, values = bits.decode(sources, "float32"), bits.decode(codes, fmt)
    return tuple(
        UnderflowCase(
            description=name,
            source_code=int(sources[i]),
            number=float(numbers[i]),
            format=fmt.name,
            code=int(codes[i]),
            value=float(values[i]),
            flags=Flags(int(flags[i])),
        )
        for i, name in enumerate(rows)
    )


def _single(x: float) -> int:
    """The float32 code of a number, from the machine."""
    return int(np.float32(x).view(np.uint32))


def underflow_threshold(fmt: Format | str = "float16", *, environment: Environment | None = None) -> float:
    """The greatest float32 that becomes zero in the format. Found by bisection over float32 codes.

    Parameters
    ----------
    fmt : Format
    environment : Environment, optional
        How they are converted, without random numbers, under which there is no threshold; default to nearest even. Nothing is
        summed: there is no accumulator.
    """
    chosen = check_environment(environment)
    fmt = Format.from_name(fmt)
    if is_drawn(chosen, fmt):
        raise ValueError(
            f"environment must not draw: what is rounded up is left to chance then, got rounding={chosen.rounding!r}"
        )
    low, high = 0, _single(fmt.tiny)
    while high - low > 1:
        middle = (low + high) // 2
        code, _ = bits.convert(middle, "float32", fmt, environment=chosen)
        if bits.decode(code, fmt) == 0:
            low = middle
        else:
            high = middle
    return float(bits.decode(low, "float32"))
