"""Files of safetensors, against the package: what it writes is read, and what is written it reads, type by type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import ROSTER, Format
from softfloat.interchange import packed, stored_environment
from softfloat.interchange.tensor_files import FORMATS, NUMBERS

OLDEST = {
    "F16",
    "BF16",
    "F32",
    "F8_E4M3",
    "F8_E5M2",
    "U8",
    "I8",
    "U16",
    "I16",
    "U32",
    "I32",
    "U64",
    "I64",
    "F64",
    "BOOL",
}
"""Types that every version of the package knows."""

KINDS = {name: kind for kind, name in FORMATS.items()}


def deserialized(data: bytes) -> dict[str, dict[str, Any]] | None:
    """Tensors as the package reads them; None if its version does not know the types."""
    package = pytest.importorskip("safetensors")
    try:
        return dict(package.deserialize(data))
    except package.SafetensorError:
        return None


@pytest.mark.parametrize("fmt", ROSTER.values(), ids=str)
def test_the_package_reads_what_is_written(fmt: Format, tmp_path: Path) -> None:
    x = softfloat.from_codes(np.arange(min(256, 2**fmt.bits), dtype=fmt.dtype).reshape(2, -1), fmt)
    softfloat.save(tmp_path / "x.safetensors", {"x": x, "none": x[:0], "one": x[0, 0], "turned": x.T})
    kind = KINDS.get(fmt.name, f"U{8 * fmt.dtype.itemsize}")
    found = deserialized((tmp_path / "x.safetensors").read_bytes())
    if found is None:
        assert kind not in OLDEST
        pytest.skip(f"this version of safetensors has no {kind}")
    assert found["x"]["dtype"] == kind
    assert found["x"]["shape"] == [*x.shape]
    assert found["none"]["shape"] == [0, x.shape[1]]
    assert bytes(found["x"]["data"]) == (packed(x).tobytes() if kind == "F4" else x.tobytes())
    assert found["one"]["dtype"] == ("U8" if kind == "F4" else kind)
    assert bytes(found["one"]["data"]) == x[0, 0].tobytes()
    assert bytes(found["turned"]["data"]) == (packed(x.T).tobytes() if kind == "F4" else x.T.tobytes())


def test_pytorch_reads_what_is_written(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    arrays: dict[str, Any] = {
        name: softfloat.from_codes(np.arange(256).astype(ROSTER[name].dtype), name)
        for name in ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2")
    }
    softfloat.save(tmp_path / "x.safetensors", arrays)
    for name, tensor in package.load_file(tmp_path / "x.safetensors").items():
        assert tensor.dtype == getattr(torch, name)
        np.testing.assert_array_equal(softfloat.asarray(tensor).codes, arrays[name].codes)


def test_what_pytorch_wrote_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    tensors = {
        name: torch.arange(6.0).reshape(2, 3).to(getattr(torch, name))
        for name in (
            "float16",
            "bfloat16",
            "float32",
            "float8_e4m3fn",
            "float8_e5m2",
            "int32",
            "uint8",
            "float64",
            "bool",
        )
    }
    tensors["empty"] = torch.zeros(0, 4, dtype=torch.bfloat16)
    package.save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "pt"})
    found = softfloat.load(tmp_path / "x.safetensors")
    assert stored_environment(tmp_path / "x.safetensors") is None
    assert found["empty"].shape == (0, 4)
    for name in tensors.keys() - {"empty"}:
        if name in ROSTER:
            assert found[name].format == ROSTER[name]
            np.testing.assert_array_equal(found[name].codes, softfloat.asarray(tensors[name]).codes)
        else:
            assert found[name].dtype == name
            np.testing.assert_array_equal(found[name], tensors[name].numpy())


def test_everything_is_aligned(tmp_path: Path) -> None:
    """In memory that a whole file is mapped into."""
    arrays: dict[str, Any] = {f"{kind}": np.ones(3, kind) for kind in ("u1", "f8", "u2", "c8", "u4")}
    for n in range(8):
        path = tmp_path / "x.safetensors"
        softfloat.save(path, arrays | {"n" * n: softfloat.ones(3, "bfloat16")} if n else arrays)
        whole = path.read_bytes()
        start = 8 + int.from_bytes(whole[:8], "little")
        head = json.loads(whole[8:start])
        for name, x in arrays.items():
            assert (start + head[name]["data_offsets"][0]) % x.itemsize == 0


# -- by the description of the format --------------------------------------------------------------------------------


def written(path: Path, head: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(kind: str, shape: Any, *place: Any) -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": list(place)}


@pytest.mark.parametrize("kind", [*FORMATS, *NUMBERS])
def test_every_type_of_others(kind: str, tmp_path: Path) -> None:
    width = ROSTER[FORMATS[kind]].bits if kind in FORMATS else 8 * np.dtype(NUMBERS[kind]).itemsize
    data = bytes([1, 0] * (width * 4 // 16))
    found = softfloat.load(written(tmp_path / "x.safetensors", {"x": entry(kind, [2, 2], 0, len(data))}, data))["x"]
    assert found.shape == (2, 2)
    if kind in FORMATS:
        assert found.format == ROSTER[FORMATS[kind]]
        assert (packed(found) if kind == "F4" else found).tobytes() == data
    else:
        assert found.dtype == NUMBERS[kind]
        assert found.tobytes() == data


def test_types_that_are_not_known_hinder_nobody_else(tmp_path: Path) -> None:
    head = {"x": entry("F6_E2M3", [4], 0, 3), "y": entry("U8", [1], 3, 4)}
    path = written(tmp_path / "x.safetensors", head, bytes(4))
    with pytest.raises(
        ValueError, match=r"x.safetensors: 'x' is of type 'F6_E2M3'; accepted: F16, .*names= leaves it out"
    ):
        softfloat.load(path)
    assert softfloat.load(path, ["y"])["y"].tolist() == [0]


@pytest.mark.parametrize(
    ("head", "data", "message"),
    [
        (b"[]", b"", "its header is no JSON object"),
        (b"{", b"", "damaged one"),
        (b"{" + b'"a":{' * 100_000, b"", "damaged one"),
        (b'{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}', b"", "twice"),
        ({"x": {"dtype": "U8"}}, b"", "'x' is not described by dtype, shape and data_offsets"),
        ({"x": 3}, b"", "'x' is not described by"),
        ({"__metadata__": 3}, b"", "__metadata__ is 3"),
        ({"x": entry("U8", [2], 0, 1)}, b"1", "'x' is of U8 and shape"),
        ({"x": entry("U8", [1], 0)}, b"1", "'x' is of U8 and shape"),
        ({"x": entry("F4", [3], 0, 2)}, b"11", "'x' is of F4 and shape"),
        ({"x": entry("U8", [-1], 0, 1)}, b"1", "'x' has shape"),
        ({"x": entry("U8", [1.0], 0, 1)}, b"1", "'x' has shape"),
        ({"x": entry("U8", [True], 0, 1)}, b"1", "'x' has shape"),
        ({"x": entry("U8", 1, 0, 1)}, b"1", "'x' has shape"),
        ({"x": entry("U8", [1], 1, 2)}, b"11", "'x' begins at 1, and what is before it ends at 0"),
        ({"x": entry("U8", [2], 0, 2), "y": entry("U8", [2], 1, 3)}, b"111", "'y' begins at 1"),
        ({"x": entry("U8", [1], 0, 1)}, b"11", "its tensors end at"),
        ({"x": entry("U8", [2**40], 0, 2**40)}, b"11", "its tensors end at"),
        ({"__metadata__": {"softfloat": "{"}}, b"", "has damaged metadata"),
        ({"__metadata__": {"softfloat": 3}}, b"", "has damaged metadata"),
        ({"__metadata__": {"softfloat": "[]"}}, b"", "has a header that this version"),
    ],
)  # fmt: skip
def test_files_that_are_refused(head: Any, data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"x.safetensors.*{message}"):
        softfloat.load(written(tmp_path / "x.safetensors", head, data))


@pytest.mark.parametrize("length", [3, 10**6, 2**63])
def test_lengths_that_are_refused(length: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="damaged one"):
        softfloat.load(written(tmp_path / "x.safetensors", {"x": entry("U8", [1], 0, 1)}, b"1", length))
