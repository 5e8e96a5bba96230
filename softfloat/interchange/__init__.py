"""Codes in other people's files, tables and stores, with their formats.

`save` and `load` are for `.npz` and `.safetensors` and need nothing but NumPy. `softfloat.interchange.columns` has columns of Arrow and pandas,
`softfloat.interchange.stores` arrays of Zarr; each needs its package. Arrays in memory need none of this: `softfloat.asarray` takes those of
PyTorch and JAX as they are, and SoftArrays hand themselves over by DLPack.

>>> import tempfile, softfloat
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "weights.safetensors"
>>> save(path, {"w": softfloat.array([0.1, 2.0], "float8_e4m3fn")})
>>> load(path)["w"]
SoftArray([0.1, 2. ], float8_e4m3fn)
"""

import importlib
from typing import TYPE_CHECKING, Any

from softfloat.interchange.files import load, save, stored_environment
from softfloat.interchange.packing import packed, unpacked

if TYPE_CHECKING:
    from softfloat.interchange import columns as columns
    from softfloat.interchange import stores as stores

__all__ = ["load", "packed", "save", "stored_environment", "unpacked"]

_LATE = ("columns", "stores")
"""Modules that are imported when they are first asked for."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{__name__}.{name}")
