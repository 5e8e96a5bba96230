"""How dot products are summed: `Accumulator`, and functions that make the usual ones."""

from softfloat.accumulators.accumulator import PRESETS, Accumulator, Preset, Reduction, Stage
from softfloat.accumulators.ipu import amp, from_poplar_options, slic
from softfloat.accumulators.presets import chunked, exact, fma, mul_add, pairwise, vdpbf16ps
from softfloat.accumulators.tensor_cores import TENSOR_CORES, TensorCore, tensor_core

__all__ = [
    "PRESETS",
    "TENSOR_CORES",
    "Accumulator",
    "Preset",
    "Reduction",
    "Stage",
    "TensorCore",
    "amp",
    "chunked",
    "exact",
    "fma",
    "from_poplar_options",
    "mul_add",
    "pairwise",
    "slic",
    "tensor_core",
    "vdpbf16ps",
]
