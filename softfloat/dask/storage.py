"""Arrays of codes in Zarr, with the format and the environment in their attributes."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

import dask.array as da

from softfloat.dask.blocks import computed
from softfloat.dask.collections import DaskArray
from softfloat.environments import Environment, current_environment
from softfloat.formats import check_format
from softfloat.status import Flags

__all__ = ["from_zarr", "stored_environment", "to_zarr"]

ATTRIBUTE = "softfloat"
NOT_STORED = {"accumulator", "position", "status", "streams", "settings", "overrides"}


def _described(env: Environment) -> dict[str, Any]:
    """An environment's settings, those that differ from the default ones, as JSON has them."""
    if env.accumulator is not None:
        raise ValueError(
            "accumulator of the environment must be None to be stored; accepted: one without, as environment"
        )
    found: dict[str, Any] = {}
    for one in fields(Environment):
        value = getattr(env, one.name)
        if one.name in NOT_STORED or not one.init or value == getattr(Environment(), one.name):
            continue
        named = isinstance(value, Enum) and not isinstance(value, Flags)
        found[one.name] = value.name.lower() if named else int(value) if isinstance(value, Flags) else value
    if env.overrides:
        found["overrides"] = {name: _described(override) for name, override in env.overrides.items()}
    return found


def _environment(described: dict[str, Any]) -> Environment:
    given = dict(described)
    overrides = {name: _environment(override) for name, override in given.pop("overrides", {}).items()}
    traps = Flags(given.pop("traps", 0))
    return Environment(**given, traps=traps, overrides=overrides)


def to_zarr(x: DaskArray, path: Any, environment: Environment | None = None, **options: Any) -> None:
    """Compute an array's codes into a Zarr array at a path, with its format and an environment, by default the one in force.

    `options` are those of `dask.compute`. The attributes come last: a store that was interrupted is refused by `from_zarr`.

    Raises
    ------
    ValueError, TypeError
        For a format without a name that says what it is, and an environment with an accumulator; before anything is written.
    """
    import zarr

    if not isinstance(x, DaskArray):
        raise TypeError(f"x must be a DaskArray, got {type(x).__name__}")
    try:
        known = check_format(x.format.name) == x.format
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"format must be known by its name to be stored, and {x.format} is not")
    described = {"format": x.format.name, "environment": _described(environment or current_environment())}
    written = da.to_zarr(x.codes, str(path), compute=False)
    computed(written, list(x._flags.values()), **options)
    zarr.open_array(str(path), mode="r+").attrs[ATTRIBUTE] = described


def _attributes(path: Any) -> dict[str, Any]:
    import zarr

    found: Any = dict(zarr.open_array(str(path), mode="r").attrs).get(ATTRIBUTE)
    if not isinstance(found, dict) or "format" not in found:
        raise ValueError(
            f"{path} has no attribute {ATTRIBUTE!r}; accepted: arrays that softfloat.dask.to_zarr has finished"
        )
    return found


def from_zarr(path: Any) -> DaskArray:
    """The array that `to_zarr` wrote, in the blocks it lies in."""
    return DaskArray(da.from_zarr(str(path)), _attributes(path)["format"])


def stored_environment(path: Any) -> Environment:
    """The environment that `to_zarr` wrote with an array."""
    return _environment(_attributes(path)["environment"])
