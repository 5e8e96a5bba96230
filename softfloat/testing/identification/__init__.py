"""The accumulator of an unknown dot-product unit, the scale rule of an unknown quantizer: `softfloat identify`, `softfloat scales`."""

from softfloat.testing.identification.scales import ScaleFit, ScaleIdentification, identify_scales
from softfloat.testing.identification.units import (
    Identification,
    UnitError,
    command_unit,
    identify,
    presets_for,
    unit_of,
)

__all__ = [
    "Identification",
    "ScaleFit",
    "ScaleIdentification",
    "UnitError",
    "command_unit",
    "identify",
    "identify_scales",
    "presets_for",
    "unit_of",
]
