"""What a file holds: plain arrays by name, and a header that says which of them are codes of what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from softfloat.arrays import SoftArray, from_codes
from softfloat.bits.blocks.codes import BlockCodes, exact_float
from softfloat.blocks import Fixed
from softfloat.descriptions import (
    block_format_from,
    described_block_format,
    described_environment,
    described_format,
    format_from,
)
from softfloat.environments import Environment
from softfloat.formats import ROSTER

__all__ = ["Content", "Header", "Member", "content_of", "part_names", "restored", "scales_name", "wanted_names"]

Header: TypeAlias = dict[str, Any]
Member: TypeAlias = SoftArray | np.ndarray[Any, Any]
VERSION = 1
PLAIN_KINDS = "biufc"


class Content(NamedTuple):
    """Arrays as they are written, and the header beside them."""

    members: dict[str, Member]
    header: Header


def scales_name(name: str) -> str:
    """The member that holds the scales of blocks of this name."""
    return f"{name}.scales"


def content_of(arrays: Any, environment: Environment | None) -> Content:
    """The members and the header of arrays by name.

    Parameters
    ----------
    arrays : mapping of str to SoftArray, BlockCodes or ndarray
    environment : Environment, optional

    Raises
    ------
    TypeError, ValueError
        Naming the array and what is accepted.
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(f"arrays must map names to arrays, got {type(arrays).__name__}")
    members: dict[str, Member] = {}
    described: Header = {}
    for name, x in arrays.items():
        if not isinstance(name, str) or not name or "\0" in name:
            raise TypeError(f"arrays must have non-empty strings as names, without NUL, got {name!r}")
        if isinstance(x, SoftArray):
            parts: dict[str, Member] = {name: x}
            described[name] = {"format": described_format(x.format)}
        elif isinstance(x, BlockCodes):
            parts, described[name] = _of_blocks(name, x)
        else:
            parts = {name: _plain(name, x)}
        taken = parts.keys() & (members.keys() | arrays.keys() - {name})
        if taken:
            raise ValueError(f"arrays has {sorted(taken)[0]!r}, which is the name of the scales of {name!r}")
        members |= parts
    header: Header = {"version": VERSION, "arrays": described}
    if environment is not None:
        header["environment"] = described_environment(environment)
    return Content(members, header)


def _plain(name: str, x: Any) -> np.ndarray[Any, Any]:
    """An array of NumPy's own numbers."""
    if not isinstance(x, (np.ndarray, np.generic)) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"arrays has {type(x).__name__} as {name!r}; accepted: SoftArray, BlockCodes, NumPy arrays; softfloat.asarray() "
            "makes SoftArrays of other libraries' arrays"
        )
    array = np.asarray(x)
    if array.dtype.kind not in PLAIN_KINDS or array.dtype.name in ROSTER.keys() - {"float16", "float32"}:
        advice = "; softfloat.asarray() makes a SoftArray of it" if array.dtype.name in ROSTER else ""
        raise TypeError(
            f"arrays has dtype {array.dtype} as {name!r}; accepted: NumPy's own numbers, bool included{advice}"
        )
    return array


def _of_blocks(name: str, x: BlockCodes) -> tuple[dict[str, Member], Header]:
    along = [axis for axis, length in enumerate(x.block_shape) if length > 1 and axis != x.axis]
    described = {
        "block_format": described_block_format(x.format),
        "axis": x.axis,
        "block": list(x.block_shape) if along else x.block_shape[x.axis],
        "tensor_scale": None if x.tensor_scale is None else exact_float(x.tensor_scale),
    }
    kind = x.format.element
    element: Member = np.asarray(x.elements) if isinstance(kind, Fixed) else from_codes(x.elements, kind)
    return {name: element, scales_name(name): from_codes(x.scales, x.format.scale)}, described


def described_arrays(header: Header, where: str) -> Header:
    """What a header says of arrays by name; ValueError where it is no header of ours."""
    found = header.get("arrays") if isinstance(header, dict) and header.get("version") == VERSION else None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise ValueError(f"{where} has a header that this version of softfloat cannot read, or a damaged one")
    return found


def part_names(name: str, described: Header) -> tuple[str, ...]:
    """The members that an array is made of."""
    return (name, scales_name(name)) if "block_format" in described.get(name, {}) else (name,)


def wanted_names(names: Any, members: Any, described: Header, where: str) -> list[str]:
    """Names of the arrays to read, all of them if `names` is None."""
    scales = {part for name in described for part in part_names(name, described)[1:]}
    offered = [name for name in members if name not in scales]
    missing = {part for name in described for part in part_names(name, described)} - set(members)
    if missing:
        raise ValueError(f"{where} lacks {sorted(missing)[0]!r}, which its header names: it is damaged")
    if names is None:
        return offered
    unknown = [name for name in names if name not in offered]
    if unknown:
        raise ValueError(f"names has {unknown[0]!r}, and {where} holds {', '.join(map(repr, offered)) or 'nothing'}")
    return list(names)


def restored(name: str, described: Header, parts: list[Any], where: str) -> Any:
    """An array from its members, as integers, and from what the header says of it.

    Raises
    ------
    ValueError
        If they do not go together.
    """
    one = described.get(name)
    if one is None:
        return parts[0]
    place = f"{where}: {name!r}"
    try:
        if set(one) == {"format"}:
            return from_codes(parts[0], format_from(one["format"], place))
        if set(one) == {"block_format", "axis", "block", "tensor_scale"}:
            fmt = block_format_from(one["block_format"], place)
            block = tuple(one["block"]) if isinstance(one["block"], list) else one["block"]
            elements, scales = parts
            return BlockCodes(elements, scales, fmt, axis=one["axis"], block=block, tensor_scale=one["tensor_scale"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place} is not what the header says: {error}") from None
    raise ValueError(f"{place} is described by {', '.join(one)}, which this version of softfloat does not know")
