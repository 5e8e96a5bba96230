"""How dot products are summed: `Accumulator`, and functions that make the usual ones."""

from softfloat.accumulators.accumulator import PRESETS, Accumulator, Alignment, FixedPoint, Preset, Reduction, Stage
from softfloat.accumulators.assumptions import ascend_cube, gaudi_mme, systolic, tpu_mxu, trainium_pe
from softfloat.accumulators.ipu import amp, from_poplar_options, slic
from softfloat.accumulators.presets import chunked, compensated, exact, fixed_point, fma, mul_add, pairwise, vdpbf16ps
from softfloat.accumulators.roster import STANDINGS
from softfloat.accumulators.splits import SPLITS, Split, split
from softfloat.accumulators.tensor_cores import TENSOR_CORES, TensorCore, tensor_core
from softfloat.accumulators.torch_products import torch_mm
from softfloat.accumulators.units import (
    amd_mfma,
    amx,
    arm_bfdot,
    arm_bfmlal,
    arm_bfmmla,
    arm_fdot,
    arm_fmmla,
    arm_fp8dot,
    rvbna,
    vdpphps,
    zvfbfwma,
)

for _name in sorted(PRESETS, key=lambda name: [*STANDINGS].index(PRESETS[name].standing)):
    PRESETS[_name] = PRESETS.pop(_name)  # wherever they are listed, what was measured comes before what is assumed
del _name

__all__ = [
    "PRESETS",
    "SPLITS",
    "STANDINGS",
    "TENSOR_CORES",
    "Accumulator",
    "Alignment",
    "FixedPoint",
    "Preset",
    "Reduction",
    "Split",
    "Stage",
    "TensorCore",
    "amd_mfma",
    "amp",
    "amx",
    "arm_bfdot",
    "arm_bfmlal",
    "arm_bfmmla",
    "arm_fdot",
    "arm_fmmla",
    "arm_fp8dot",
    "ascend_cube",
    "chunked",
    "compensated",
    "exact",
    "fixed_point",
    "fma",
    "from_poplar_options",
    "gaudi_mme",
    "mul_add",
    "pairwise",
    "rvbna",
    "slic",
    "split",
    "systolic",
    "tensor_core",
    "torch_mm",
    "tpu_mxu",
    "trainium_pe",
    "vdpbf16ps",
    "vdpphps",
    "zvfbfwma",
]
