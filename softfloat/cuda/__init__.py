"""The same arithmetic on an NVIDIA GPU: `softfloat.bits` on arrays that lie there, to the same codes and flags.

Nothing here is called by name: functions of `softfloat.bits` find that an operand has `__cuda_array_interface__` (tensors of
PyTorch, arrays of CuPy and of Numba), and results are arrays of the same library. The extra `cuda` brings numba-cuda, which compiles
the scalar functions of `kernels` for the GPU, as they are.
"""

from softfloat.cuda.compiling import is_available

__all__ = ["is_available"]
