"""Files of safetensors: tensors by name, of half, bfloat16, fp8 and fp4 as other programs know them, and of any other format.

The package `safetensors` has no NumPy arrays of these types (of those it writes, its NumPy functions read none), and the metadata by
another way than the tensors; the format is a length, JSON and the data.

Source: safetensors, README, "Format": https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
import os
from typing import IO, Any, NamedTuple

import numpy as np

from softfloat.arrays import SoftArray, from_codes
from softfloat.bits.blocks.codes import nibbles, packed_nibbles
from softfloat.descriptions import ATTRIBUTE
from softfloat.formats import ROSTER
from softfloat.interchange.members import Content, Header, described_arrays, part_names, restored, wanted_names

__all__ = ["TENSORS", "read_tensor_file", "read_tensor_file_header", "write_tensor_file"]

FORMATS = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn",
}
"""Types of safetensors that are formats."""

NUMBERS = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
}
"""Types of safetensors that are NumPy's."""

NAMES = {ROSTER[fmt]: name for name, fmt in FORMATS.items()}
OF_NUMPY = {np.dtype(kind): name for name, kind in NUMBERS.items()} | {np.dtype("f2"): "F16", np.dtype("f4"): "F32"}
TENSORS, PACKED, METADATA = ".safetensors", "F4", "__metadata__"
LONGEST_HEADER = 100_000_000  # bytes, as in the package


class Entry(NamedTuple):
    """A tensor in a file: where its bytes begin and end behind the header."""

    type: str
    shape: tuple[int, ...]
    begin: int
    end: int


# -- writing ---------------------------------------------------------------------------------------------------------


def _entry(name: str, x: SoftArray | np.ndarray[Any, Any]) -> tuple[str, np.ndarray[Any, Any]]:
    """The type and the bytes of a member, in C order; codes of formats that safetensors does not know are integers."""
    if isinstance(x, np.ndarray):
        kind = x.dtype.newbyteorder("=")
        if kind not in OF_NUMPY:
            raise TypeError(
                f"arrays has dtype {x.dtype} as {name!r}; safetensors has {', '.join(map(str, OF_NUMPY))}, and formats"
            )
        return OF_NUMPY[kind], x
    kind, codes = NAMES.get(x.format), x.codes
    if kind == PACKED and x.ndim and x.shape[-1] % 2 == 0:
        return kind, packed_nibbles(codes)
    return (OF_NUMPY[codes.dtype] if kind in (None, PACKED) else kind), codes


def write_tensor_file(file: IO[bytes], content: Content) -> None:
    """Members and header into a file that is open for writing, the widest types first, so that all are aligned."""
    if METADATA in content.members:
        raise ValueError(f"arrays has {METADATA!r}, the name of the metadata; accepted: any other name")
    tensors = {name: _entry(name, x) for name, x in content.members.items()}
    order = sorted(tensors, key=lambda name: -tensors[name][1].dtype.itemsize)
    head: dict[str, Any] = {METADATA: {ATTRIBUTE: json.dumps(content.header)}}
    end = 0
    for name in order:
        kind, data = tensors[name]
        begin, end = end, end + data.nbytes
        head[name] = {"dtype": kind, "shape": list(content.members[name].shape), "data_offsets": [begin, end]}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"arrays needs a header of {len(text)} bytes; safetensors takes {LONGEST_HEADER}")
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        data = tensors[name][1]
        file.write(np.ascontiguousarray(data, data.dtype.newbyteorder("<")).data)


# -- reading ---------------------------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in its header")
    return found


def _parsed(name: str, described: Any) -> Entry:
    """An entry of the header, if its shape and its place go together."""
    if not isinstance(described, dict) or set(described) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name!r} is not described by dtype, shape and data_offsets")
    kind, shape, place = described["dtype"], described["shape"], described["data_offsets"]
    for numbers in (shape, place):
        if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
            raise ValueError(f"{name!r} has shape {shape!r} and data_offsets {place!r}")
    known = isinstance(kind, str) and (kind in FORMATS or kind in NUMBERS)
    if len(place) != 2 or (known and (place[1] - place[0]) * 8 != math.prod(shape) * _width(kind)):
        raise ValueError(f"{name!r} is of {kind} and shape {shape!r}, and has data_offsets {place!r}")
    return Entry(kind, tuple(shape), *place)


def _width(kind: str) -> int:
    """Bits of an element."""
    return ROSTER[FORMATS[kind]].bits if kind in FORMATS else 8 * np.dtype(NUMBERS[kind]).itemsize


def _head(file: IO[bytes], size: int) -> tuple[dict[str, Entry], dict[str, Any], int]:
    """(entries, metadata, where the data begin) of an open file of so many bytes."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        raise ValueError(f"its header would have {length} bytes, and the file has {size}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise ValueError("its header is no JSON object")
    found = json.loads(text, object_pairs_hook=_unique)
    metadata = found.pop(METADATA, {})
    if not isinstance(metadata, dict):
        raise ValueError(f"{METADATA} is {metadata!r}")
    entries = {name: _parsed(name, described) for name, described in found.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.begin != end:
            raise ValueError(f"{name!r} begins at {entry.begin}, and what is before it ends at {end}")
        end = entry.end
    if 8 + length + end != size:
        raise ValueError(f"its tensors end at {8 + length + end}, and the file has {size} bytes")
    return entries, metadata, 8 + length


def _opened(path: str) -> tuple[dict[str, Entry], dict[str, Any], int]:
    with open(path, "rb") as file:
        try:
            return _head(file, os.fstat(file.fileno()).st_size)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is no safetensors file, or a damaged one: {error}") from None


def _header(metadata: dict[str, Any], path: str) -> Header | None:
    """What `softfloat.save` wrote; None in files of others."""
    if ATTRIBUTE not in metadata:
        return None
    try:
        found: Header = json.loads(metadata[ATTRIBUTE])
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} has damaged metadata: {error}") from None
    return found


def read_tensor_file_header(path: str) -> Header:
    """The header that `softfloat.save` wrote into a file; one that says nothing, in a file of others."""
    return _header(_opened(path)[1], path) or {}


def _integers(file: IO[bytes], entry: Entry, name: str, start: int, path: str) -> np.ndarray[Any, Any]:
    """A tensor's codes or numbers as they were before they were written."""
    if entry.type not in FORMATS and entry.type not in NUMBERS:
        raise ValueError(
            f"{path}: {name!r} is of type {entry.type!r}; accepted: {', '.join([*FORMATS, *NUMBERS])}; names= leaves it out"
        )
    dtype = ROSTER[FORMATS[entry.type]].dtype if entry.type in FORMATS else np.dtype(NUMBERS[entry.type])
    file.seek(start + entry.begin)
    stored = dtype.newbyteorder("<")
    found = np.fromfile(file, stored, (entry.end - entry.begin) // stored.itemsize).astype(dtype, copy=False)
    if entry.type == PACKED:
        found = nibbles(found)
    return found.reshape(entry.shape)


def read_tensor_file(path: str, names: list[str] | None) -> dict[str, Any]:
    """Arrays by name, all of them unless some are named.

    Where a file has no header of softfloat's, tensors of its types that are formats are SoftArrays, others NumPy arrays.
    """
    entries, metadata, start = _opened(path)
    header = _header(metadata, path)
    described = {} if header is None else described_arrays(header, path)
    found: dict[str, Any] = {}
    with open(path, "rb") as file:
        for name in wanted_names(names, entries, described, path):
            parts = [_integers(file, entries[part], part, start, path) for part in part_names(name, described)]
            kind = entries[name].type
            if name in described:
                found[name] = restored(name, described, parts, path)
            elif header is not None and kind in ("F16", "F32"):
                found[name] = parts[0].view(FORMATS[kind])
            else:
                found[name] = from_codes(parts[0], FORMATS[kind]) if kind in FORMATS else parts[0]
    return found
