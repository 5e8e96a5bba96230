"""Values and formats drawn at random."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from hypothesis import strategies as st
from softfloat.kernels.spec import EXPONENT_RANGE

from softfloat import Format


@cache
def _sampled(values: tuple[Any, ...], types: tuple[type, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def sampled(values: Iterable[Any]) -> st.SearchStrategy[Any]:
    """`st.sampled_from` of values that can be hashed; Hypothesis looks at each set of them once, not for each example."""
    known = tuple(values)
    return _sampled(known, tuple(map(type, known)))


@cache
def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """None, or what a strategy gives."""
    return st.none() | strategy


@st.composite
def formats(draw: st.DrawFn, summed: bool = False) -> Format:
    """Any format that can be made: fields drawn, and drawn again where they do not go together. `summed`: with a zero, as sums need it."""
    nan = draw(sampled(["ieee", "ieee", "fn", "fnuz", "none"]))
    signed = nan == "fnuz" or draw(sampled([True, True, False]))
    zero = signed or summed or draw(st.booleans())
    exponent_bits, fewest = draw(st.integers(1, 8)), int(nan == "ieee")
    mantissa_bits = draw(st.integers(fewest, 4) | st.integers(fewest, 23))
    near, widest = st.integers(-20, 2**exponent_bits + 20), EXPONENT_RANGE
    fields: dict[str, Any] = {
        "exponent_bits": exponent_bits,
        "mantissa_bits": mantissa_bits,
        "bias": draw(near | near | st.integers(2**exponent_bits - widest, widest - mantissa_bits)),
        "nan": nan,
        "infinities": nan == "ieee" or draw(st.booleans()),
        "signed": signed,
        "signed_zero": signed and nan != "fnuz",
        "zero": zero,
        "subnormals": zero and draw(sampled([True, True, False])),
    }
    try:
        return Format("drawn", **fields)
    except ValueError:  # no normal number is left beside the special codes
        return Format(
            "drawn", **fields | {"exponent_bits": 5, "bias": 15, "mantissa_bits": max(fields["mantissa_bits"], 2)}
        )
