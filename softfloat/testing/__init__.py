"""For people who verify other implementations: vectors in, verdicts out.

`write_vectors` writes operands, results and flags as Berkeley TestFloat does; `check_vectors` reads such a file as
another device filled it in, and says what is wrong and why. `OPERATIONS` lists what can be verified, `resolve` makes a
`Case` of an operation, `draw` draws operands. The command line has the same: `softfloat vectors`, `softfloat check`.

`check_hardware` holds the model against the instructions of this machine (`softfloat hardware`), `identify` finds the
accumulator of an unknown dot-product unit (`softfloat identify`).
"""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "operations": ("OPERATIONS", "Case", "Column", "Number", "Operation", "parse_accumulator", "resolve"),
    "distributions": ("DISTRIBUTIONS", "draw", "draw_operands", "edges"),
    "vectors": ("Chunk", "VectorError", "read_vectors", "write_vectors"),
    "causes": ("Cause", "Finding", "causes_of"),
    "assertions": ("assert_bits_equal", "bits_differ", "ulp_distance"),
    "check": ("Mismatch", "Report", "check_vectors"),
    "hardware": ("check_hardware",),
    "identification": ("Identification", "UnitError", "command_unit", "identify", "presets_for", "unit_of"),
}
"""Module -> what it offers here; imported when first asked for."""

_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
