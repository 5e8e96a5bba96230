"""Formats drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from softfloat import Format


@st.composite
def formats(draw: st.DrawFn) -> Format:
    """Any format that can be made: fields drawn, and drawn again where they do not go together."""
    nan = draw(st.sampled_from(["ieee", "ieee", "fn", "fnuz", "none"]))
    signed = nan == "fnuz" or draw(st.sampled_from([True, True, False]))
    zero = signed or draw(st.booleans())
    exponent_bits = draw(st.integers(1, 8))
    fields: dict[str, Any] = {
        "exponent_bits": exponent_bits,
        "mantissa_bits": draw(st.integers(nan == "ieee", 23)),
        "bias": draw(st.integers(-20, 2**exponent_bits + 20)),
        "nan": nan,
        "infinities": nan == "ieee" or draw(st.booleans()),
        "signed": signed,
        "signed_zero": signed and nan != "fnuz",
        "zero": zero,
        "subnormals": zero and draw(st.sampled_from([True, True, False])),
    }
    try:
        return Format("drawn", **fields)
    except ValueError:  # no normal number is left beside the special codes
        return Format(
            "drawn", **fields | {"exponent_bits": 5, "bias": 15, "mantissa_bits": max(fields["mantissa_bits"], 2)}
        )
