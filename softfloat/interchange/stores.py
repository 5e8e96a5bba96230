"""Arrays of codes in Zarr, with the format and an environment in their attributes: those of `softfloat.dask`, in memory."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from softfloat.arrays import SoftArray, from_codes
from softfloat.checks import check_count, check_kind, is_integer
from softfloat.descriptions import ATTRIBUTE, described_environment, described_format, environment_from, format_from
from softfloat.environments import Environment
from softfloat.formats import Format

__all__ = ["attributes", "from_zarr", "stored_environment", "stored_format", "to_zarr"]


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as missing:
        raise ImportError("arrays of Zarr need zarr; pip install 'numba-softfloat[interchange]' brings it") from missing
    return zarr


def attributes(fmt: Format, environment: Environment | None) -> dict[str, Any]:
    """What is kept with the codes, as attributes of a Zarr array."""
    described = {} if environment is None else described_environment(environment)
    return {ATTRIBUTE: {"format": described_format(fmt), "environment": described}}


def _attributes_of(path: Any) -> dict[str, Any]:
    """What was kept with the codes; ValueError where nothing was."""
    found: Any = dict(_zarr().open_array(os.fspath(path), mode="r").attrs).get(ATTRIBUTE)
    if not isinstance(found, dict) or "format" not in found:
        raise ValueError(
            f"{path} has no attribute {ATTRIBUTE!r}; accepted: arrays that to_zarr of softfloat.interchange.stores or softfloat.dask "
            "has finished"
        )
    return found


def stored_format(path: Any) -> Format:
    """The format of the codes at a path."""
    return format_from(_attributes_of(path)["format"], f"{path}: format")


def stored_environment(path: Any) -> Environment:
    """The environment that `to_zarr` wrote with an array; the default one if it wrote none."""
    return environment_from(_attributes_of(path).get("environment", {}), f"{path}: environment")


def _lengths(chunks: Any, ndim: int) -> tuple[int, ...]:
    lengths = (chunks,) * ndim if is_integer(chunks) else tuple(chunks) if isinstance(chunks, (tuple, list)) else ()
    if len(lengths) != ndim or (not ndim and chunks != ()):
        raise ValueError(f"chunks must be a length, or {ndim} of them, got {chunks!r}")
    return tuple(check_count("chunks", length) for length in lengths)


def to_zarr(
    x: SoftArray,
    path: str | os.PathLike[str],
    environment: Environment | None = None,
    *,
    chunks: int | tuple[int, ...] | None = None,
) -> None:
    """Write an array's codes into a new Zarr array, with its format.

    The attributes come last: a store that was interrupted is refused by `from_zarr`.

    Parameters
    ----------
    x : SoftArray
    path : str or path-like
        Of a folder that is not there yet.
    environment : Environment, optional
        To be read again by `stored_environment`.
    chunks : int or tuple of int, optional
        Lengths of Zarr's chunks along every axis, or along each; None: as Zarr chooses.

    Raises
    ------
    TypeError, ValueError, FileExistsError
        Before anything is written.
    """
    zarr = _zarr()
    check_kind("x", x, SoftArray)
    check_kind("environment", environment, Environment, optional=True)
    described = attributes(x.format, environment)
    place = os.fspath(path)
    if os.path.exists(place):
        raise FileExistsError(f"path must be of a folder that is not there yet, got {place!r}")
    options = {} if chunks is None else {"chunks": _lengths(chunks, x.ndim)}
    array = zarr.create_array(place, shape=x.shape, dtype=x.codes.dtype, **options)
    array[...] = np.ascontiguousarray(x.codes) if x.ndim else x.codes
    array.attrs.update(described)


def from_zarr(path: str | os.PathLike[str]) -> SoftArray:
    """The array that `to_zarr` wrote, or that of `softfloat.dask`, whole.

    Raises
    ------
    ValueError
        If the array there has no format, or holds what is no code of it.
    """
    fmt = stored_format(path)
    codes = _zarr().open_array(os.fspath(path), mode="r")[...]
    try:
        return from_codes(codes, fmt)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not what its attributes say: {error}") from None
