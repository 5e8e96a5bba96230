"""How dot products are summed: `Accumulator`, and functions that make the usual ones."""

from softfloat.accumulators.accumulator import PRESETS, Accumulator, Alignment, Preset, Reduction, Stage
from softfloat.accumulators.ipu import amp, from_poplar_options, slic
from softfloat.accumulators.presets import chunked, exact, fma, mul_add, pairwise, vdpbf16ps
from softfloat.accumulators.roster import STANDINGS
from softfloat.accumulators.tensor_cores import TENSOR_CORES, TensorCore, tensor_core
from softfloat.accumulators.units import (
    amd_mfma,
    amx,
    arm_bfdot,
    arm_bfmlal,
    arm_bfmmla,
    arm_fp8dot,
    rvbna,
    vdpphps,
    zvfbfwma,
)

__all__ = [
    "PRESETS",
    "STANDINGS",
    "TENSOR_CORES",
    "Accumulator",
    "Alignment",
    "Preset",
    "Reduction",
    "Stage",
    "TensorCore",
    "amd_mfma",
    "amp",
    "amx",
    "arm_bfdot",
    "arm_bfmlal",
    "arm_bfmmla",
    "arm_fp8dot",
    "chunked",
    "exact",
    "fma",
    "from_poplar_options",
    "mul_add",
    "pairwise",
    "rvbna",
    "slic",
    "tensor_core",
    "vdpbf16ps",
    "vdpphps",
    "zvfbfwma",
]
