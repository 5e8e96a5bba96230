"""Arrays of codes in blocks, on Dask: what one machine's memory does not hold, computed anywhere, to the same bits.

`DaskArray` has SoftArray's operators; every block computes with the settings that were in force when the operation was written,
under the random numbers of its place in the whole. However an array is cut, in whatever order and on however many threads,
processes or machines its blocks are computed, codes and flags are those of a single call. `sweep` runs a function over whole operand spaces.

>>> import softfloat
>>> from softfloat import dask
>>> x = dask.from_array([1.0, 2.0, 3.0, 4.0], "float16", chunks=2)
>>> (x * x + 0.5).compute(scheduler="synchronous")
SoftArray([ 1.5,  4.5,  9.5, 16.5], float16)
"""

_NEEDED = "softfloat.dask needs dask with its arrays, 2025.1 or later; pip install 'numba-softfloat[dask]' brings it"
try:
    import dask as _dask
    import dask.array as _  # noqa: F401 -- which needs NumPy, an extra of dask's
except ImportError as missing:
    raise ImportError(_NEEDED) from missing
if tuple(int(part) for part in _dask.__version__.split(".")[:2]) < (2025, 1):
    raise ImportError(f"{_NEEDED}, got {_dask.__version__}")

from softfloat.dask.collections import DaskArray, Truths, from_array, from_codes  # noqa: E402 -- after the check
from softfloat.dask.convolutions import conv2d  # noqa: E402
from softfloat.dask.counting import Counts  # noqa: E402
from softfloat.dask.following import compute  # noqa: E402
from softfloat.dask.functions import where  # noqa: E402
from softfloat.dask.products import matmul, sum, vecdot  # noqa: E402
from softfloat.dask.schedulers import scheduled  # noqa: E402
from softfloat.dask.storage import from_zarr, stored_environment, to_zarr  # noqa: E402
from softfloat.dask.sweeps import Mismatch, Sweep, sweep, sweep_tasks  # noqa: E402

__all__ = [
    "Counts",
    "DaskArray",
    "Mismatch",
    "Sweep",
    "Truths",
    "compute",
    "conv2d",
    "from_array",
    "from_codes",
    "from_zarr",
    "matmul",
    "scheduled",
    "stored_environment",
    "sum",
    "sweep",
    "sweep_tasks",
    "to_zarr",
    "vecdot",
    "where",
]
