"""Columns of Arrow and pandas keep their format, and refuse to be taken for integers."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from drawn import formats
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import ROSTER, Format, SoftArray, float64
from softfloat.testing import strategies

pa = pytest.importorskip("pyarrow", reason="needs the extra 'interchange'")
from softfloat.interchange import columns  # noqa: E402 -- after the check


def same(found: SoftArray, x: SoftArray) -> None:
    assert found.format == x.format
    assert found.codes.dtype == x.codes.dtype
    np.testing.assert_array_equal(found.codes, x.codes)


def through_parquet(table: Any) -> Any:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(table, file)
    return parquet.read_table(io.BytesIO(file.getvalue()))


def through_ipc(table: Any) -> Any:
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(file.getvalue()).read_all()


MINE = Format("mine", exponent_bits=4, mantissa_bits=6, nan="none")


def some(fmt: Format | str) -> SoftArray:
    fmt = ROSTER.get(str(fmt), fmt)
    assert isinstance(fmt, Format)
    return softfloat.from_codes((np.arange(5, dtype=np.uint64) + np.uint64(2**fmt.bits - 5)).astype(fmt.dtype), fmt)


@pytest.mark.parametrize("fmt", [*ROSTER.values(), Format.p3109("binary6p3ue"), MINE, float64], ids=str)
def test_arrow_both_ways(fmt: Format) -> None:
    x = some(fmt)
    table = pa.table({"x": columns.to_arrow(x), "i": pa.array(range(5))})
    assert table.schema.field("x").type == columns.CodesType(fmt)
    for found in (table, through_ipc(table), through_parquet(table), pickle.loads(pickle.dumps(table))):
        same(columns.from_arrow(found["x"]), x)
        same(columns.from_arrow(found.slice(1, 3)["x"]), x[1:4])
        same(columns.from_arrow(pa.concat_tables([found, found])["x"]), np.concatenate([x, x]))
    same(columns.from_arrow(table["x"].take(pa.array([3, 0]))), x[[3, 0]])


@settings(max_examples=50)
@given(st.data(), formats())
def test_arrays_drawn(data: st.DataObject, fmt: Format) -> None:
    x = data.draw(strategies.soft_arrays(fmt, data.draw(st.sampled_from([(0,), (4,)]))))[
        :: data.draw(st.sampled_from([1, 2, -1]))
    ]
    same(columns.from_arrow(through_ipc(pa.table({"x": columns.to_arrow(x)}))["x"]), x)
    same(columns.from_arrow(columns.to_arrow(x)), x)


def test_memory() -> None:
    x = some("bfloat16")
    column = columns.to_arrow(x)
    found = columns.from_arrow(column)
    assert np.shares_memory(found.codes, x.codes)
    assert not found.codes.flags.writeable
    same(columns.from_arrow(columns.to_arrow(x[::-2])), x[::-2])


def test_types_are_formats() -> None:
    brain, half = columns.CodesType("bf16"), columns.CodesType("float16")
    assert brain != half
    assert brain == columns.CodesType(softfloat.bfloat16)
    assert brain != pa.uint16()
    assert half != columns.CodesType(Format("float16", exponent_bits=6, mantissa_bits=9))  # of one name
    assert len({brain, half, columns.CodesType("bfloat16")}) == 2
    assert (str(brain), repr(brain)) == ("softfloat.codes[bfloat16]", "CodesType('bfloat16')")
    x, y = columns.to_arrow(some("bfloat16")), columns.to_arrow(some("float16"))
    with pytest.raises(pa.ArrowInvalid):
        pa.concat_arrays([x, y])
    with pytest.raises(pa.ArrowInvalid):
        pa.concat_tables([pa.table({"x": x}), pa.table({"x": y})])
    for compute in (lambda: pa.compute.add(x, x), lambda: pa.compute.sum(x), lambda: pa.compute.sort_indices(x)):
        pytest.importorskip("pyarrow.compute")
        with pytest.raises((pa.ArrowNotImplementedError, pa.ArrowTypeError)):
            compute()


def test_what_arrow_cannot_give() -> None:
    x = some("float6_e2m3fn")
    with pytest.raises(ValueError, match=r"x must have one axis, got shape \(1, 5\)"):
        columns.to_arrow(x[None])
    with pytest.raises(TypeError, match="x must be SoftArray"):
        columns.to_arrow(x.codes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="column must be of Arrow with type CodesType, got uint16; accepted otherwise"):
        columns.from_arrow(pa.array([1], pa.uint16()))
    with pytest.raises(TypeError, match="column must be of Arrow with type CodesType, got ndarray"):
        columns.from_arrow(x.codes)
    missing = pa.ExtensionArray.from_storage(columns.CodesType(x.format), pa.array([1, None], pa.uint8()))
    with pytest.raises(ValueError, match="column has 1 missing values, which no format has"):
        columns.from_arrow(missing)
    same(columns.from_arrow(missing.drop_null()), softfloat.from_codes([1], x.format))
    beyond = pa.ExtensionArray.from_storage(columns.CodesType(x.format), pa.array([0x40], pa.uint8()))
    with pytest.raises(ValueError, match="codes holds 0x40, which is no code of float6_e2m3fn"):
        columns.from_arrow(beyond)
    for storage, text in ((pa.uint16(), b'"float6_e2m3fn"'), (pa.uint8(), b'"float7"'), (pa.uint8(), b"{")):
        with pytest.raises(ValueError):  # noqa: PT011 -- JSON's own words, or ours
            columns.CodesType.__arrow_ext_deserialize__(storage, text)


def test_a_process_that_does_not_know_the_type_sees_integers_and_the_format() -> None:
    file = io.BytesIO()
    table = pa.table({"x": columns.to_arrow(some("bfloat16"))})
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    script = f"""
import pyarrow as pa
field = pa.ipc.open_stream({file.getvalue()!r}).read_all().schema.field("x")
print(field.type, field.metadata[b"ARROW:extension:metadata"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "uint16 b'\"bfloat16\"'\n"


# -- pandas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", ["bfloat16", "float8_e4m3fn", "float32", MINE], ids=str)
def test_pandas_both_ways(fmt: Format | str) -> None:
    pandas = pytest.importorskip("pandas", reason="needs the extra 'interchange'")
    x = some(fmt)
    series = columns.to_pandas(x, index=list("abcde"), name="x")
    assert str(series.dtype) == f"softfloat.codes[{x.format}][pyarrow]"
    same(columns.from_pandas(series), x)
    frame = pandas.DataFrame({"x": series, "i": [5, 4, 3, 2, 1]})
    file = io.BytesIO()
    frame.to_parquet(file)
    for found in (frame, pandas.read_parquet(io.BytesIO(file.getvalue())), pickle.loads(pickle.dumps(frame))):
        same(columns.from_pandas(found["x"]), x)
        same(columns.from_pandas(found["x"].array), x)
        same(columns.from_pandas(found["x"].iloc[1:3]), x[1:3])
        same(columns.from_pandas(found[found["i"] > 2]["x"]), x[:3])
        same(columns.from_pandas(found.sort_values("i")["x"]), x[::-1])
        same(columns.from_pandas(pandas.concat([found, found])["x"]), np.concatenate([x, x]))
        same(columns.from_pandas(found.merge(found, on="i")["x_x"]), x)
        same(columns.from_pandas(found.groupby("i").first()["x"]), x[::-1])
    through = pa.Table.from_pandas(frame)
    assert through.schema.field("x").type.format == x.format
    same(columns.from_pandas(through.to_pandas()["x"]), x)


def test_pandas_does_not_compute_with_codes() -> None:
    pytest.importorskip("pandas", reason="needs the extra 'interchange'")
    series = columns.to_pandas(some("bfloat16"))
    for compute in (
        lambda: series + 1, lambda: series * series, lambda: series.sum(), lambda: series.mean(), lambda: series.max(),
        lambda: series.cumsum(), lambda: -series, lambda: abs(series), lambda: series.sort_values(),
    ):  # fmt: skip
        with pytest.raises((TypeError, pa.ArrowNotImplementedError)):
            compute()


def test_what_pandas_cannot_give() -> None:
    pandas = pytest.importorskip("pandas", reason="needs the extra 'interchange'")
    series = columns.to_pandas(some("bfloat16"))
    with pytest.raises(ValueError, match="column has 1 missing values"):
        columns.from_pandas(series.shift())
    with pytest.raises(TypeError, match=r"series must have the dtype .*, got uint16; accepted otherwise"):
        columns.from_pandas(series.astype("uint16"))
    with pytest.raises(TypeError, match=r"series must have the dtype .*, got object"):
        columns.from_pandas(pandas.concat([series, columns.to_pandas(some("float16"))]))
    with pytest.raises(TypeError, match=r"series must have the dtype .*, got list"):
        columns.from_pandas([1])
