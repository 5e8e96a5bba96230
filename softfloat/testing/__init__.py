"""For people who verify other implementations: vectors in, verdicts out.

`write_vectors` writes operands, results and flags as Berkeley TestFloat does; `check_vectors` reads such a file as
another device filled it in, and says what is wrong and why. `OPERATIONS` lists what can be verified, `resolve` makes a
`Case` of an operation, `draw` draws operands. The command line has the same: `softfloat vectors`, `softfloat check`.

`check_hardware` holds the model against the instructions of this machine (`softfloat hardware`), `identify` finds the
accumulator of an unknown dot-product unit (`softfloat identify`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # which names there are, for type checkers
    from softfloat.testing.assertions import assert_bits_equal as assert_bits_equal
    from softfloat.testing.assertions import bits_differ as bits_differ
    from softfloat.testing.assertions import ulp_distance as ulp_distance
    from softfloat.testing.hardware.model import check_hardware as check_hardware
    from softfloat.testing.identification.identify import Identification as Identification
    from softfloat.testing.identification.identify import UnitError as UnitError
    from softfloat.testing.identification.identify import command_unit as command_unit
    from softfloat.testing.identification.identify import identify as identify
    from softfloat.testing.identification.identify import presets_for as presets_for
    from softfloat.testing.identification.identify import unit_of as unit_of
    from softfloat.testing.identification.scales import ScaleFit as ScaleFit
    from softfloat.testing.identification.scales import ScaleIdentification as ScaleIdentification
    from softfloat.testing.identification.scales import identify_scales as identify_scales
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
    from softfloat.testing.vectors.columns import Column as Column
    from softfloat.testing.vectors.columns import Number as Number
    from softfloat.testing.vectors.corners import Rows as Rows
    from softfloat.testing.vectors.coverage import Coverage as Coverage
    from softfloat.testing.vectors.coverage import coverage_of as coverage_of
    from softfloat.testing.vectors.distributions import DISTRIBUTIONS as DISTRIBUTIONS
    from softfloat.testing.vectors.distributions import draw as draw
    from softfloat.testing.vectors.distributions import draw_operands as draw_operands
    from softfloat.testing.vectors.distributions import edges as edges
    from softfloat.testing.vectors.expressions import parse_accumulator as parse_accumulator
    from softfloat.testing.vectors.files import Chunk as Chunk
    from softfloat.testing.vectors.files import VectorError as VectorError
    from softfloat.testing.vectors.files import read_vectors as read_vectors
    from softfloat.testing.vectors.files import write_rows as write_rows
    from softfloat.testing.vectors.files import write_vectors as write_vectors
    from softfloat.testing.vectors.levels import corners_of as corners_of
    from softfloat.testing.vectors.operations import OPERATIONS as OPERATIONS
    from softfloat.testing.vectors.operations import Case as Case
    from softfloat.testing.vectors.operations import Operation as Operation
    from softfloat.testing.vectors.operations import resolve as resolve
    from softfloat.testing.verdicts.cause import Cause as Cause
    from softfloat.testing.verdicts.causes import causes_of as causes_of
    from softfloat.testing.verdicts.check import Mismatch as Mismatch
    from softfloat.testing.verdicts.check import Report as Report
    from softfloat.testing.verdicts.check import check_vectors as check_vectors
    from softfloat.testing.verdicts.diagnosis import Finding as Finding

_EXPORTS = {
    "strategies": (  # all but `edges`, which has a namesake here
        *("TIE_OPERATIONS", "arrays", "codes", "environments", "finite", "formats", "matrices", "near_ties", "normal"),
        *("roundings", "soft_arrays", "subnormal", "values"),
    ),
    "vectors.columns": ("Column", "Number"),
    "vectors.expressions": ("parse_accumulator",),
    "vectors.operations": ("OPERATIONS", "Case", "Operation", "resolve"),
    "vectors.corners": ("Rows",),
    "vectors.coverage": ("Coverage", "coverage_of"),
    "vectors.distributions": ("DISTRIBUTIONS", "draw", "draw_operands", "edges"),
    "vectors.files": ("Chunk", "VectorError", "read_vectors", "write_rows", "write_vectors"),
    "vectors.levels": ("corners_of",),
    "verdicts.cause": ("Cause",),
    "verdicts.causes": ("causes_of",),
    "verdicts.diagnosis": ("Finding",),
    "assertions": ("assert_bits_equal", "bits_differ", "ulp_distance"),
    "verdicts.check": ("Mismatch", "Report", "check_vectors"),
    "hardware.model": ("check_hardware",),
    "identification.scales": ("ScaleFit", "ScaleIdentification", "identify_scales"),
    "identification.identify": ("Identification", "UnitError", "command_unit", "identify", "presets_for", "unit_of"),
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
