"""Arrays of codes in Zarr, with the format and the environment in their attributes."""

from __future__ import annotations

from typing import Any

import dask.array as da

from softfloat.dask.blocks import computed
from softfloat.dask.collections import DaskArray
from softfloat.environments import Environment, current_environment
from softfloat.interchange.stores import attributes, stored_environment, stored_format

__all__ = ["from_zarr", "stored_environment", "to_zarr"]


def to_zarr(x: DaskArray, path: Any, environment: Environment | None = None, **options: Any) -> None:
    """Compute an array's codes into a Zarr array at a path, with its format and an environment, by default the one in force.

    `options` are those of `dask.compute`. The attributes come last: a store that was interrupted is refused by `from_zarr`.

    Raises
    ------
    ValueError, TypeError
        For an environment with an accumulator; before anything is written.
    """
    import zarr

    if not isinstance(x, DaskArray):
        raise TypeError(f"x must be a DaskArray, got {type(x).__name__}")
    described = attributes(x.format, environment or current_environment())
    written = da.to_zarr(x.codes, str(path), compute=False)
    computed(written, list(x._flags.values()), **options)
    zarr.open_array(str(path), mode="r+").attrs.update(described)


def from_zarr(path: Any) -> DaskArray:
    """The array that `to_zarr` wrote, in the blocks it lies in."""
    return DaskArray(da.from_zarr(str(path)), stored_format(path))
