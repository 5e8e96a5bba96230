"""Arrays of Zarr keep their format and their environment, in memory and in blocks alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import formats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import ROSTER, Environment, Format
from softfloat.accumulators import fma
from softfloat.interchange.stores import from_zarr, stored_environment, to_zarr
from softfloat.testing import strategies

zarr = pytest.importorskip("zarr", reason="needs the extra 'interchange'")

MINE = Format("mine", exponent_bits=4, mantissa_bits=6, nan="none")


@pytest.mark.parametrize("fmt", [*ROSTER.values(), MINE], ids=str)
def test_every_format(fmt: Format, tmp_path: Path) -> None:
    x = softfloat.from_codes(np.arange(2**fmt.bits - 12, 2**fmt.bits).astype(fmt.dtype).reshape(3, 4), fmt)
    to_zarr(x.T, tmp_path / "x.zarr", chunks=(2, 2))
    found = from_zarr(tmp_path / "x.zarr")
    assert found.format == fmt
    np.testing.assert_array_equal(found.codes, x.codes.T)
    assert found.codes.dtype == fmt.dtype
    assert zarr.open_array(str(tmp_path / "x.zarr"), mode="r").chunks == (2, 2)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    fmt=formats(),
    shape=st.sampled_from([(), (0,), (3,), (2, 0), (2, 3)]),
    env=strategies.environments(),
)
def test_arrays_drawn(
    data: st.DataObject, fmt: Format, shape: tuple[int, ...], env: Environment, tmp_path_factory: Any
) -> None:
    x, path = data.draw(strategies.soft_arrays(fmt, shape)), tmp_path_factory.mktemp("store") / "x.zarr"
    to_zarr(x, path, env)
    found = from_zarr(path)
    assert (found.format, found.shape) == (fmt, shape)
    np.testing.assert_array_equal(found.codes, x.codes)
    assert stored_environment(path) == env


def test_those_of_dask(tmp_path: Path) -> None:
    pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    from softfloat import dask as blocks

    x = softfloat.from_codes(np.arange(12).reshape(3, 4), MINE)
    env = Environment(overflow="saturate")
    to_zarr(x, tmp_path / "x.zarr", env, chunks=2)
    found = blocks.from_zarr(tmp_path / "x.zarr")
    assert found.format == MINE
    np.testing.assert_array_equal(found.compute(scheduler="synchronous").codes, x.codes)
    assert blocks.stored_environment(tmp_path / "x.zarr") == env
    blocks.to_zarr(found, tmp_path / "y.zarr", env, scheduler="synchronous")
    assert from_zarr(tmp_path / "y.zarr").format == MINE
    np.testing.assert_array_equal(from_zarr(tmp_path / "y.zarr").codes, x.codes)


def test_what_is_refused(tmp_path: Path) -> None:
    x = softfloat.ones(3, "float6_e2m3fn")
    with pytest.raises(TypeError, match="x must be SoftArray"):
        to_zarr(x.codes, tmp_path / "x.zarr")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="environment must be Environment or None"):
        to_zarr(x, tmp_path / "x.zarr", "float16")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="accumulator of the environment must be None"):
        to_zarr(x, tmp_path / "x.zarr", Environment(accumulator=fma("float16")))
    for chunks in ((2, 2), "auto", 0):
        with pytest.raises(ValueError, match="chunks must be a"):
            to_zarr(x, tmp_path / "x.zarr", chunks=chunks)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    to_zarr(x, tmp_path / "x.zarr")
    with pytest.raises(FileExistsError, match="path must be of a folder that is not there yet"):
        to_zarr(x, tmp_path / "x.zarr")
    array = zarr.open_array(str(tmp_path / "x.zarr"), mode="r+")
    array[1] = 0x40
    with pytest.raises(ValueError, match="is not what its attributes say: codes holds 0x40"):
        from_zarr(tmp_path / "x.zarr")
    array.attrs["softfloat"] = {"format": "float7"}
    with pytest.raises(ValueError, match=r"x\.zarr: format: unknown format 'float7'"):
        from_zarr(tmp_path / "x.zarr")
    zarr.create_array(str(tmp_path / "y.zarr"), shape=(3,), dtype="u2")
    with pytest.raises(ValueError, match=r"y\.zarr has no attribute 'softfloat'"):
        from_zarr(tmp_path / "y.zarr")
