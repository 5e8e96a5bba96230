"""Files of arrays by name: every bit and every format comes back, and what is damaged or foreign is refused."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from drawn import formats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import BLOCK_ROSTER, ROSTER, BlockFormat, Environment, Fixed, Format, SoftArray, bits
from softfloat.accumulators import fma
from softfloat.bits import BlockCodes
from softfloat.interchange import packed, stored_environment, unpacked
from softfloat.interchange.archives import HEADER
from softfloat.testing import strategies

KINDS = [".npz", ".safetensors"]
SHAPES = [(), (0,), (5,), (2, 4), (3, 0, 2), (2, 3, 4)]
OTHERS = [
    Format.p3109("binary6p3se"),
    Format.p3109(8, 3, signed=False, extended=False),
    Format("float16", exponent_bits=5, mantissa_bits=9),  # another format's name
    Format("nibble", exponent_bits=1, mantissa_bits=2, nan="none"),
]


def same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Of the same names, kinds, formats and bits."""
    assert set(found) == set(wanted)
    for name, x in wanted.items():
        y = found[name]
        assert type(y) is type(x)
        if isinstance(x, SoftArray):
            assert (y.format, y.shape, y.codes.dtype) == (x.format, x.shape, x.codes.dtype)
            np.testing.assert_array_equal(y.codes, x.codes)
            assert y.codes.flags.writeable
        elif isinstance(x, BlockCodes):
            assert (y.format, y.axis, y.block_shape) == (x.format, x.axis, x.block_shape)
            np.testing.assert_array_equal(y.elements, x.elements)
            np.testing.assert_array_equal(y.scales, x.scales)
            assert repr(y.tensor_scale) == repr(x.tensor_scale)
        else:
            assert (y.shape, y.dtype.newbyteorder("=")) == (x.shape, x.dtype.newbyteorder("="))
            assert y.tobytes() == x.astype(y.dtype).tobytes()


def all_codes(fmt: Format) -> SoftArray:
    """Every code, NaNs with every payload among them; of a wide format some."""
    codes = np.arange(min(2**fmt.bits, 2**12), dtype=fmt.dtype)
    return softfloat.from_codes(codes if fmt.bits <= 12 else codes << (fmt.bits - 12) | codes, fmt)


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_of_the_roster(kind: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {fmt.name: all_codes(fmt) for fmt in ROSTER.values()}
    arrays |= {f"other {i}": all_codes(fmt) for i, fmt in enumerate(OTHERS)}
    softfloat.save(tmp_path / f"all{kind}", arrays)
    same(softfloat.load(tmp_path / f"all{kind}"), arrays)
    some = ["float8_e4m3", "other 2"]
    same(softfloat.load(str(tmp_path / f"all{kind}"), some), {name: arrays[name] for name in some})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_arrays_drawn(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    """Of any format, shape and layout in memory."""
    arrays: dict[str, Any] = {}
    for name in data.draw(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), max_size=3)
    ):
        fmt = data.draw(st.sampled_from([*ROSTER.values(), *OTHERS]) | formats())
        x = data.draw(strategies.soft_arrays(fmt, data.draw(st.sampled_from(SHAPES))))
        arrays[name] = x if not x.ndim or data.draw(st.booleans()) else x[::-1].T
    path = tmp_path / f"x{kind}"
    env = data.draw(st.none() | strategies.environments())
    softfloat.save(path, arrays, environment=env, compressed=kind == ".npz" and data.draw(st.booleans()))
    same(softfloat.load(path), arrays)
    assert stored_environment(path) == env


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_numpy(kind: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        str(dtype): np.arange(6).reshape(2, 3).astype(dtype)[:, ::2]
        for dtype in ("?", "u1", "<u2", ">u4", "u8", "i1", "i2", ">i4", "i8", "<f2", ">f2", "f4", "f8", "c8")
    }
    arrays |= {"scalar": np.array(7), "nothing": np.zeros((0, 3)), "half": softfloat.ones(3, "float16")}
    softfloat.save(tmp_path / f"x{kind}", arrays)
    same(softfloat.load(tmp_path / f"x{kind}"), arrays)


MINE = BlockFormat(
    "mine", element=Format("e2m0", exponent_bits=2, mantissa_bits=0, nan="none"), scale="bfloat16", block=3
)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks(kind: str, tmp_path: Path) -> None:
    numbers = np.linspace(-3, 5, 6 * 40, dtype=np.float32).reshape(6, 40)
    arrays: dict[str, Any] = {
        f"{fmt} {axis}": bits.quantize(numbers, fmt, axis=axis)[0] for fmt in BLOCK_ROSTER.values() for axis in (0, 1)
    }
    arrays["tiles"] = bits.quantize(numbers, "mxfp4", block=(2, 8))[0]
    arrays["rows"] = bits.quantize(numbers, "nvfp4", block=(2, 1))[0]
    elements = np.arange(7, dtype=np.uint8)
    arrays["mine"] = BlockCodes(elements, [0x3F80, 0x3F81, 1], MINE)
    arrays["ones"] = BlockCodes(elements[None], np.full((1, 7), 0x3F80), MINE, axis=0, block=1)
    fixed = Fixed("int5", bits=5, fraction_bits=1, coding="sign_magnitude")
    arrays["fixed"] = BlockCodes(elements, [1, 2], BlockFormat("f", element=fixed, scale="e8m0", block=4))
    scaled = BlockCodes([1, 2], [0x38], "nvfp4", tensor_scale=float(np.float32(0.1)))
    arrays["least"], arrays["scaled"] = BlockCodes([1], [0x38], "nvfp4", tensor_scale=2.0**-149), scaled
    softfloat.save(tmp_path / f"x{kind}", arrays)
    same(softfloat.load(tmp_path / f"x{kind}"), arrays)
    same(softfloat.load(tmp_path / f"x{kind}", ["scaled"]), {"scaled": scaled})


def test_environments(tmp_path: Path) -> None:
    env = Environment(
        rounding="stochastic", seed=2**64 - 1, traps="INVALID", overrides={"float32": Environment(daz=True)}
    )
    for kind in KINDS:
        softfloat.save(tmp_path / f"x{kind}", {}, environment=env)
        assert stored_environment(tmp_path / f"x{kind}") == env
        assert softfloat.load(tmp_path / f"x{kind}") == {}
        softfloat.save(tmp_path / f"x{kind}", {"x": np.arange(3)})
        assert stored_environment(tmp_path / f"x{kind}") is None


def test_numpy_reads_the_codes(tmp_path: Path) -> None:
    x = softfloat.array([0.1, 2.0], "float8_e4m3")
    softfloat.save(tmp_path / "x.npz", {"x": x})
    with np.load(tmp_path / "x.npz") as archive:
        assert archive["x"].tobytes() == x.tobytes()


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([1], "arrays must map names to arrays, got list"),
        ({"": np.arange(3)}, "arrays must have non-empty strings as names"),
        ({3: np.arange(3)}, "arrays must have non-empty strings as names"),
        ({"x": [1.0]}, "arrays has list as 'x'; accepted: SoftArray"),
        ({"x": np.array([None])}, "arrays has dtype object as 'x'"),
        ({"x": np.ma.array([1.0], mask=[True])}, "arrays has MaskedArray as 'x'"),
        ({"x": np.ones(2, ml_dtypes.bfloat16)}, "arrays has dtype bfloat16 as 'x'; .*softfloat.asarray"),
        ({"x": np.ones(2, ml_dtypes.float8_e5m2)}, "arrays has dtype float8_e5m2 as 'x'; .*softfloat.asarray"),
        ({"a\0b": np.ones(2)}, "arrays must have non-empty strings as names"),
        ({"x": np.ones(2, ml_dtypes.int4)}, "arrays has dtype int4 as 'x'"),
        ({"x": np.array(["a"])}, "arrays has dtype <U1 as 'x'"),
        (
            {"x": BlockCodes([1], [1], "mxfp4"), "x.scales": np.arange(2)},
            "arrays has 'x.scales', which is the name of the scales of 'x'",
        ),
        (
            {"x.scales": np.arange(2), "x": BlockCodes([1], [1], "mxfp4")},
            "arrays has 'x.scales', which is the name of the scales of 'x'",
        ),
        ({HEADER: np.arange(2), "__metadata__": np.arange(2)}, "arrays has '__.*__', the name of the"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_are_refused(kind: str, arrays: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{kind}"
    path.write_bytes(b"before")
    with pytest.raises((TypeError, ValueError), match=message):
        softfloat.save(path, arrays)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"before"


def test_arguments_that_are_refused(tmp_path: Path) -> None:
    x: dict[str, Any] = {"x": softfloat.ones(2, "float16")}
    with pytest.raises(ValueError, match=r"path must end in \.npz or \.safetensors"):
        softfloat.save(tmp_path / "x.npy", x)
    with pytest.raises(ValueError, match=r"path must end in \.npz or \.safetensors"):
        softfloat.load(tmp_path / "x")
    with pytest.raises(TypeError, match="environment must be Environment or None"):
        softfloat.save(tmp_path / "x.npz", x, environment={})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="accumulator of the environment must be None"):
        softfloat.save(tmp_path / "x.npz", x, environment=Environment(accumulator=fma("float16")))
    with pytest.raises(ValueError, match=r"compressed is for \.npz"):
        softfloat.save(tmp_path / "x.safetensors", x, compressed=True)
    assert not list(tmp_path.iterdir())
    for kind in KINDS:
        with pytest.raises(FileNotFoundError):
            softfloat.load(tmp_path / f"x{kind}")
        softfloat.save(tmp_path / f"x{kind}", x)
        with pytest.raises(ValueError, match=f"names has 'y', and .*x{kind} holds 'x'"):
            softfloat.load(tmp_path / f"x{kind}", ["y"])
        for names in ("x", 3, [3]):
            with pytest.raises(TypeError, match="names must be a list of strings"):
                softfloat.load(tmp_path / f"x{kind}", names)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_files_cut_short_or_changed(kind: str, tmp_path: Path) -> None:
    """At any byte: an error that names the file, or the very same arrays where the byte means nothing."""
    path = tmp_path / f"x{kind}"
    arrays: dict[str, Any] = {"x": all_codes(ROSTER["float6_e2m3fn"]), "y": softfloat.ones((2, 2), OTHERS[2])}
    softfloat.save(path, arrays)
    whole = path.read_bytes()
    data = len(whole) - 64 - 8  # safetensors has no check of its data
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=f"x{kind}"):
            softfloat.load(path)
    for at in range(0, len(whole) if kind == ".npz" else data, 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        found = loaded(path)
        if found is not None and kind == ".npz":  # whose data are checked
            same(found, arrays)


def loaded(path: Path) -> dict[str, Any] | None:
    """What a file holds; None where it is refused by its name."""
    try:
        return softfloat.load(path)
    except ValueError as error:
        if path.name not in str(error):
            raise
        return None


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    softfloat.save(tmp_path / "x.npz", {"x": np.arange(2)})
    held = io.BytesIO()
    np.lib.format.write_array(held, np.array([print], object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive:
        archive.writestr("evil.npy", held.getvalue())
    with pytest.raises(ValueError, match=r"x\.npz .* damaged one: .*allow_pickle"):
        softfloat.load(tmp_path / "x.npz")
    same(softfloat.load(tmp_path / "x.npz", ["x"]), {"x": np.arange(2)})


def test_members_that_are_ambiguous(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for name, more in (("x.npy", b""), ("y.npy", b"1")):
        softfloat.save(path, {"x": np.arange(2)})
        held = io.BytesIO()
        np.lib.format.write_array(held, np.arange(3))
        with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
            warnings.simplefilter("ignore")  # of zipfile, for a name that stands there twice
            archive.writestr(name, held.getvalue() + more)
        with pytest.raises(ValueError, match=r"x\.npz .* damaged one: (two members|'y' is longer)"):
            softfloat.load(path)


def rewritten(path: Path, **members: Any) -> None:
    with np.load(path) as archive:
        found = {**archive, **members}
    np.savez(path, **{name: x for name, x in found.items() if x is not None})


def header(**changed: Any) -> np.ndarray[Any, Any]:
    found = {"version": 1, "arrays": {"x": {"format": "float6_e2m3fn"}}} | changed
    return np.frombuffer(json.dumps(found).encode(), np.uint8)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({HEADER: None}, "has no member '__softfloat__'; accepted: files of softfloat.save; numpy.load"),
        ({HEADER: np.arange(3, dtype=np.uint8)}, "is no .npz archive, or a damaged one"),
        ({HEADER: header(version=2)}, "has a header that this version of softfloat cannot read"),
        ({HEADER: header(arrays=[])}, "has a header that this version of softfloat cannot read"),
        ({HEADER: header(arrays={"x": "float16"})}, "has a header that this version of softfloat cannot read"),
        ({HEADER: header(arrays={"z": {"format": "float16"}})}, "lacks 'z', which its header names"),
        ({HEADER: header(arrays={"x": {"format": "float7"}})}, "'x': unknown format 'float7'"),
        ({HEADER: header(arrays={"x": {"colour": "red"}})}, "'x' is described by colour, which"),
        (
            {HEADER: header(arrays={"x": {"block_format": "mxfp4_e2m1", "axis": 0, "block": 0, "tensor_scale": None}}),
             "x.scales": np.zeros(1, np.uint8)},
            "'x' is not what the header says: block must be",
        ),
        ({HEADER: header(arrays={"x": {"block_format": "nvfp4"}})}, "lacks 'x.scales', which its header names"),
        ({"x": np.array([0x40], np.uint8)}, "'x' is not what the header says: codes holds 0x40"),
        ({"x": np.array([0.5])}, "'x' is not what the header says: codes must be"),
    ],
)  # fmt: skip
def test_headers_that_are_refused(members: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    softfloat.save(path, {"x": softfloat.zeros(2, "float6_e2m3fn")})
    rewritten(path, **members)
    with pytest.raises(ValueError, match=f"x.npz.*{message}"):
        softfloat.load(path)


# -- two elements in a byte ------------------------------------------------------------------------------------------


@given(strategies.soft_arrays("float4_e2m1fn", (3, 4)))
def test_packing(x: SoftArray) -> None:
    made = packed(x)
    assert made.shape == (3, 2)
    assert int(made[1, 1]) == int(x.codes[1, 2]) | int(x.codes[1, 3]) << 4
    np.testing.assert_array_equal(unpacked(made).codes, x.codes)
    np.testing.assert_array_equal(made, BlockCodes(x.codes, np.zeros((3, 1), np.uint8), "mxfp4").packed())
    assert unpacked(made, OTHERS[3]).format == OTHERS[3]


def test_packing_that_is_refused() -> None:
    for x, message in (
        (softfloat.zeros(3, "float4_e2m1fn"), "even number of elements"),
        (softfloat.zeros((), "float4_e2m1fn"), "even number of elements"),
        (softfloat.zeros(2, "float6_e2m3fn"), "x must be of a format of 4 bits"),
        (np.zeros(2), "x must be a SoftArray"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            packed(x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="data must be an array of uint8"):
        unpacked(np.arange(3))
    with pytest.raises(ValueError, match="fmt must be of a format of 4 bits"):
        unpacked(np.zeros(3, np.uint8), "float16")
