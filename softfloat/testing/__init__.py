"""For people who verify other implementations: vectors in, verdicts out.

Four products, each with what it offers at its top, and all of it here:

- `vectors`: `write_vectors` writes operands, results and flags as Berkeley TestFloat does. `OPERATIONS` lists what can be verified,
  `resolve` makes a `Case` of an operation, `draw` draws operands (`softfloat vectors`, `softfloat coverage`).
- `verdicts`: `check_vectors` reads such a file as another device filled it in, and says what is wrong and why (`softfloat check`).
- `hardware`: `check_hardware` holds the model against the instructions of this machine (`softfloat hardware`).
- `identification`: `identify` finds the accumulator of an unknown dot-product unit (`softfloat identify`).

Beside them are `assert_bits_equal` and hypothesis strategies.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # which names there are, for type checkers
    from softfloat.testing.assertions import assert_bits_equal as assert_bits_equal
    from softfloat.testing.assertions import bits_differ as bits_differ
    from softfloat.testing.assertions import ulp_distance as ulp_distance
    from softfloat.testing.hardware import *
    from softfloat.testing.identification import *
    from softfloat.testing.strategies import TIE_OPERATIONS as TIE_OPERATIONS
    from softfloat.testing.strategies import arrays as arrays
    from softfloat.testing.strategies import codes as codes
    from softfloat.testing.strategies import environments as environments
    from softfloat.testing.strategies import finite as finite
    from softfloat.testing.strategies import formats as formats
    from softfloat.testing.strategies import matrices as matrices
    from softfloat.testing.strategies import near_ties as near_ties
    from softfloat.testing.strategies import normal as normal
    from softfloat.testing.strategies import roundings as roundings
    from softfloat.testing.strategies import soft_arrays as soft_arrays
    from softfloat.testing.strategies import subnormal as subnormal
    from softfloat.testing.strategies import values as values
    from softfloat.testing.vectors import *
    from softfloat.testing.verdicts import *

_EXPORTS = {
    module: names.split()
    for module, names in {
        "strategies": (
            "TIE_OPERATIONS arrays codes environments finite formats matrices near_ties normal roundings "
            "soft_arrays subnormal values"
        ),  # all but `edges`, which has a namesake here
        "assertions": "assert_bits_equal bits_differ ulp_distance",
        "vectors": (
            "Case Chunk Column Coverage DISTRIBUTIONS Number OPERATIONS Operation Rows VectorError corners_of "
            "coverage_of draw draw_operands edges parse_accumulator read_vectors resolve write_rows "
            "write_vectors"
        ),
        "verdicts": "Cause Finding Mismatch Report causes_of check_vectors",
        "hardware": "check_hardware",
        "identification": (
            "Identification ScaleFit ScaleIdentification UnitError command_unit identify identify_scales "
            "presets_for unit_of"
        ),
    }.items()
}
"""Module -> what it offers here; imported when first asked for."""

_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(name for name, module in _HOME.items() if module != "strategies")  # which needs hypothesis


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
