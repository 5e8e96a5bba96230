"""Arrays in blocks: the bits, flags and traps of the same operations on whole arrays, by every scheduler and in any chunks."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import Position, bits
from softfloat.accumulators import PRESETS, chunked, exact, fma, mul_add
from softfloat.accumulators.accumulator import Reduction, Stage
from softfloat.commands.accumulators import example_of
from softfloat.engine import as_environment

pytest.importorskip("dask", reason="needs the extra 'dask'")
da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")

from softfloat import dask as soft  # noqa: E402 -- after the check

SR: dict[str, Any] = {"rounding": "stochastic", "seed": 77}
HOW = chunked(8, fma("float16"), "float32")
SYNC = {"scheduler": "synchronous"}


def numbers(*shape: int, seed: int = 0) -> softfloat.SoftArray:
    draw = np.random.default_rng(seed)
    return softfloat.array(draw.normal(size=shape), softfloat.float16)


def both(function: Callable[..., Any], *arrays: softfloat.SoftArray, chunks: list[Any], **compute: Any) -> None:
    """A function of whole arrays and of arrays in blocks, under the same environment: codes and flags."""
    with softfloat.environment(accumulator=HOW, **SR) as env:
        whole, flags = function(*arrays), env.status.flags
    with softfloat.environment(accumulator=HOW, **SR):
        lazy = function(*(soft.from_array(x, chunks=c) for x, c in zip(arrays, chunks, strict=True)))
    with softfloat.environment() as env:
        found = lazy.compute(**(compute or SYNC))
        assert env.status.flags == flags
    if isinstance(whole, softfloat.SoftArray):
        assert found.format == whole.format
        found, whole = found.codes, whole.codes
    np.testing.assert_array_equal(found, whole)


CASES: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "several": lambda x, y: (x * y - 0.3) / (abs(y) + 2) + x[::-1].T.T,
    "functions": lambda x, y: np.exp(x) + np.hypot(x, y) % 1.5,
    "left alone": lambda x, y: -np.copysign(x, y),
    "selection": lambda x, y: np.maximum(x, y) ** 2.0,
    "less": lambda x, y: x < y,
    "not equal": lambda x, y: x != y,
    "greater": lambda x, y: x >= 0.5,
    "astype": lambda x, y: (x * y).astype("float8_e4m3fn"),
    "row": lambda x, y: x + y[0],
    "column": lambda x, y: y[:, 1:2] * x,
    "joined": lambda x, y: np.concatenate([x, y * x], 1).reshape(-1) * 1.1,
    "reflected": lambda x, y: 1.7 - x * y,
    "of each element": lambda x, y: np.square(x) + np.reciprocal(y) * 0.3 + np.divmod(x, y)[1],
    "integers": lambda x, y: np.rint(x * 3) + np.floor(y) * np.ceil(x * 1.1) - np.trunc(y * 5) + np.fix(x) / 3,
    "rounded": lambda x, y: np.round(x, 1) + np.around(y * 3, -1),
    "bounds": lambda x, y: np.clip(x, -0.5, y) * 1.1 + np.clip(y, None, 0.3),
    "where": lambda x, y: np.where(x < y, x * y, 0.7) * 1.1,
    "truths": lambda x, y: ((x < y) & ~(y < 0.1)) | (x * 3 > 1) ^ (x == y),
    "logical": lambda x, y: np.logical_and(x * y, np.where(x < 0, 0.0, y)) ^ np.logical_not(x),
    "moved": lambda x, y: np.swapaxes(np.flip(x * y, 1), 0, 1).T + np.roll(np.vstack([x, y])[::2], 2, 0) * 1.3,
    "looked at": lambda x, y: np.isnan(x * 3e4 - y * 4e4) | np.signbit(y),
    "signs of what was computed": lambda x, y: np.copysign(x, y * 3e4),
    "dot": lambda x, y: np.dot(x[0, :6] * 1.1, y[1, :6]) * np.dot(x[:, :6], np.transpose(y[:, :6])),
}


def test_wide_formats_in_blocks() -> None:
    """Operations that draw, functions, conversions both ways and products, of float64; a sum that blocks would cut is refused."""
    draw = np.random.default_rng(3)
    x, y = (softfloat.array(draw.normal(size=shape), softfloat.float64) for shape in ((9, 6), (6, 5)))
    lazy, other = soft.from_array(x, chunks=(4, 6)), soft.from_array(y, chunks=(6, 3))
    with softfloat.environment(**SR):
        whole = np.exp(x * x) + x.astype("float16").astype("float64"), x @ y
    with softfloat.environment(**SR):
        found = np.exp(lazy * lazy) + lazy.astype("float16").astype("float64"), lazy @ other
    for one, wanted in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one.compute(**SYNC).codes, wanted.codes)
    how = chunked(3, fma(softfloat.float64), softfloat.float64)
    with softfloat.environment(accumulator=how), pytest.raises(ValueError, match=r"one chunk along k.*not wide"):
        soft.from_array(x, chunks=(4, 3)) @ soft.from_array(y, chunks=3)


@pytest.mark.parametrize("bias", [0, 40])
def test_reciprocals_where_1_is_no_normal_number(bias: int) -> None:
    """What 1 is rounded to was divided: of bias 40, infinity; of bias 0 and flushed, 0."""
    fmt = softfloat.Format("e5m3", exponent_bits=5, mantissa_bits=3, bias=bias)
    x = softfloat.from_codes(np.arange(1, fmt.max_code, dtype=np.uint16), fmt)
    for options in ({}, {"daz": True, "ftz": True}, SR):
        with softfloat.environment(**options) as env:
            whole, flags = np.reciprocal(x), env.status.flags
        with softfloat.environment(**options):
            lazy = np.reciprocal(soft.from_array(x, chunks=50))
        with softfloat.environment() as env:
            np.testing.assert_array_equal(lazy.compute(**SYNC).codes, whole.codes)
        assert env.status.flags == flags


@pytest.mark.parametrize("name", CASES)
def test_operators_are_those_of_whole_arrays(name: str) -> None:
    x, y = numbers(12, 17), numbers(12, 17, seed=1)
    both(CASES[name], x, y, chunks=[(5, 6), (12, 4)])


@pytest.mark.parametrize(
    "scheduler", ["synchronous", "threads", pytest.param("processes", marks=pytest.mark.exhaustive)]
)
def test_schedulers(scheduler: str) -> None:
    x, y = numbers(9, 40), numbers(9, 40, seed=1)
    both(lambda x, y: (x * y) @ y.T, x, y, chunks=[(3, 16), (9, 16)], scheduler=scheduler)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_chunks_change_no_bit(data: st.DataObject) -> None:
    def cut(size: int, unit: int = 1) -> tuple[int, ...]:
        inner = data.draw(st.lists(st.integers(1, max(1, (size - 1) // unit)), max_size=3, unique=True))
        bounds = [0, *sorted(at * unit for at in inner if at * unit < size), size]
        return tuple(np.diff(bounds).tolist())

    x, y = numbers(7, 43), numbers(43, 11, seed=1)
    chunks = [(cut(7), cut(43, 8)), (cut(43, 8), cut(11))]
    case = data.draw(st.sampled_from(["matmul", "sum", "vecdot", "elementwise"]))
    if case == "matmul":
        both(lambda x, y: x @ y, x, y, chunks=chunks)
    elif case == "sum":
        both(lambda x, y: np.sum(x, axis=1), x, y, chunks=chunks)
    elif case == "vecdot":
        both(lambda x, y: np.vecdot(x, x * x), x, y, chunks=chunks)
    else:
        both(lambda x, y: x[:, :11] * y[:7] + 0.1, x, y, chunks=chunks)


HALVES = (Reduction(Stage("float32"), sections=2, store=Stage("float16")), Reduction(Stage("float32")))


@pytest.mark.parametrize(
    ("how", "lengths"),
    [
        (HOW, (8, 24, 16)),
        (chunked(16, mul_add("bfloat16"), "float16"), (16, 32)),
        (fma("float16").replace(segments=4, reduction=HALVES), (12, 36)),
        (fma("float16"), (48,)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("batch", [False, True])
def test_products_cut_where_the_accumulator_cuts(how: Any, lengths: tuple[int, ...], batch: bool) -> None:
    a, b = numbers(3, 5, 48), numbers(3, 48, 6, seed=1)
    b = b if batch else b[0]
    with softfloat.environment(**SR):
        lazy = soft.matmul(
            soft.from_array(a, chunks=(2, 3, lengths)), soft.from_array(b, chunks=(2, lengths, 4) if batch else (lengths, 4)),
            how, "float32",
        )  # fmt: skip
    whole, flags = bits.matmul(a.codes, b.codes, "float16", how, out_format="float32", flags="any", **SR)
    np.testing.assert_array_equal(lazy.compute(**SYNC).codes, whole)
    assert lazy.flags.compute(**SYNC) == flags


@pytest.mark.parametrize(
    ("how", "lengths", "message"),
    [
        (fma("float16"), (24, 24), r"one chunk along k.*chunked\(24"),
        (HOW, (20, 28), "accepted: chunks of 16 along k"),
        (HOW, (4,) * 12, "accepted: chunks of 8 along k"),
        (fma("float16").replace(segments=4, reduction=HALVES), (20, 28), r"\(12, 12, 12, 12\)"),
    ],
)
def test_chunks_that_would_change_bits_are_refused(how: Any, lengths: tuple[int, ...], message: str) -> None:
    x, y = soft.from_array(numbers(4, 48), chunks=(4, lengths)), soft.from_array(numbers(48, 4), chunks=(lengths, 4))
    for call in (
        lambda: soft.matmul(x, y, how), lambda: soft.sum(x, 1, how), lambda: soft.vecdot(x, x, how),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("name", PRESETS)
def test_every_accumulator_in_chunks(name: str) -> None:
    """In segments of its own, or in chunks of which it is the inside."""
    inner = exact("float16").replace(block=16) if name == "exact" else example_of(name)
    how = inner if inner.reduction else chunked(16, inner, "float32")
    fmt = how.inputs[0] if how.inputs else softfloat.float16
    k, draw = 2 * bits.segments(how, 1024)[0][1] + 16, np.random.default_rng(2)
    a, b = (bits.encode(draw.normal(size=shape), fmt, overflow="saturate")[0] for shape in ((2, k), (k, 3)))
    ends = [stop for _, stop in bits.segments(how, k)]
    lengths = tuple(np.diff([0, ends[0], ends[-1]]).tolist())
    whole, flags = bits.matmul(a, b, fmt, how, out_format="float32", flags="any", **as_environment(SR))
    with softfloat.environment(**SR):
        blocks = soft.from_codes(a, fmt, (1, lengths)), soft.from_codes(b, fmt, (lengths, 2))
        lazy = soft.matmul(*blocks, how, "float32")
    np.testing.assert_array_equal(lazy.compute(**SYNC).codes, whole)
    assert lazy.flags.compute(**SYNC) == flags


def test_numbers_are_rounded_where_they_lie() -> None:
    values = np.random.default_rng(3).normal(size=(20, 30)).astype(np.float32)
    whole, flags = bits.encode(values, "bfloat16", flags="any", **SR)
    for chunks in ((20, 30), (7, 11), (1, 30)):
        with softfloat.environment(**SR):
            lazy = soft.from_array(values, "bfloat16", chunks)
        np.testing.assert_array_equal(lazy.compute(**SYNC).codes, whole)
        assert lazy.flags.compute(**SYNC) == flags


def test_settings_travel_with_the_graph() -> None:
    x = soft.from_codes(np.full(6, 0x7BFF, np.uint16), "float16", 2)
    with softfloat.environment(overflow="saturate"):
        saturated = x + x
    plain = x + x
    assert saturated.compute(scheduler="threads").codes.tolist() == [0x7BFF] * 6
    assert plain.compute(scheduler="threads").codes.tolist() == [0x7C00] * 6


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_traps_tell_the_index_in_the_whole(scheduler: str) -> None:
    codes = np.full((6, 8), 0x3C00, np.uint16)
    codes[4, 5] = 0
    x = soft.from_codes(codes, "float16", (2, 3))
    with softfloat.environment(traps="DIVBYZERO"):
        lazy = 1.0 / x
    with pytest.raises(softfloat.FloatingPointTrap) as caught:
        lazy.compute(scheduler=scheduler)
    assert caught.value.index == (4, 5)
    assert caught.value.operands == (0x3C00, 0)
    codes[4, 5], codes[3, 3] = 0x7D00, 0x3C00
    y = soft.from_codes(codes, "float16", (2, 8))
    with softfloat.environment(traps="INVALID", accumulator=fma("float16")):
        product = y @ y.T
    with pytest.raises(softfloat.FloatingPointTrap) as caught:
        product.compute(scheduler="synchronous")
    assert caught.value.index[0] == 4 or caught.value.index[1] == 4


@pytest.mark.parametrize("where", [0, 9, 20])
def test_flags_of_every_segment_count(where: int) -> None:
    codes = np.full((2, 24), 0x3C00, np.uint16)
    codes[1, where] = 0x7D00  # a signalling NaN
    x = soft.from_codes(codes, "float16", (1, 8))
    assert soft.sum(x, 1, HOW).flags.compute(**SYNC) & softfloat.Flags.INVALID
    assert not soft.sum(x[:1], 1, HOW).flags.compute(**SYNC)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_progress_follows_tasks(scheduler: str) -> None:
    seen: list[tuple[int, int]] = []
    x = soft.from_array(numbers(9, 8), chunks=(3, 8))
    (x * x).compute(progress=lambda *at: seen.append(at), scheduler=scheduler)
    totals = {total for _, total in seen}
    assert len(totals) == 1
    assert [done for done, _ in seen] == list(range(totals.pop() + 1))
    assert len(seen) > 3


def test_a_bar_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, int]] = []

    @contextlib.contextmanager
    def bars(*columns: str) -> Iterator[Any]:
        yield SimpleNamespace(add_task=lambda *_, **__: 0, update=lambda task, **at: seen.append(at))

    monkeypatch.setattr("softfloat.dask.following.bars", bars)
    x = soft.from_array(numbers(4), chunks=2)
    (x + x).compute(progress=True, **SYNC)
    assert not seen
    monkeypatch.setattr("softfloat.dask.following.is_watched", lambda: True)
    (x + x).compute(progress=True, **SYNC)
    assert seen[-1]["completed"] == seen[-1]["total"] > 3


def test_persisted_arrays_keep_their_flags() -> None:
    x = soft.from_codes(np.full(6, 0x7BFF, np.uint16), "float16", 2)
    kept = (x + x).persist(**SYNC)
    with softfloat.environment() as env:
        assert (kept[:3] - kept[3:]).compute(**SYNC).codes.tolist() == [0x7E00] * 3
        assert softfloat.Flags.OVERFLOW in env.status
        assert softfloat.Flags.INVALID in env.status


def refusals() -> dict[str, Callable[[Any], Any]]:
    return {
        "numpy.sort": np.sort,
        "numpy.sign": np.sign,
        "takes a DaskArray as x or y": lambda x: soft.where(x < x, 1.0, 2.0),
        "condition of where must be of bool": lambda x: soft.where(x.codes, x, 2.0),
        "numpy.dot takes DaskArrays of one axis or of two": lambda x: np.dot(x[0], x),
        "progress must be True, False": lambda x: x.compute(progress=3),
        "numpy.mean": np.mean,
        "numpy.gcd": lambda x: np.gcd(x, x),
        "numpy.add.reduce": np.add.reduce,
        "numpy.add with": lambda x: np.add(x, x, out=x),
        "one format": lambda x: x + x.astype("bfloat16"),
        "is no NumPy array": np.asarray,
        "axis must be an integer": lambda x: x.sum(),
        "shapes do not fit": lambda x: x @ x,
        "truth of a DaskArray": bool,
        "truth of an array": lambda x: bool(x < x),
        "codes must be a dask.array": lambda x: soft.DaskArray(x.codes.astype("uint8"), "float16"),
        "unknown length": lambda x: soft.DaskArray(x.codes[x.codes > 3], "float16"),
        "format must be given": lambda x: soft.from_array([1.0]),
        "format must be float16": lambda x: soft.from_array(numbers(2), "bfloat16"),
        "takes DaskArrays, SoftArrays and numbers": lambda x: np.add(x, np.ones((3, 4))),
    }


@pytest.mark.parametrize("message", refusals())
def test_what_is_not_mapped_is_refused_by_name(message: str) -> None:
    x = soft.from_array(numbers(3, 4), chunks=2)
    with pytest.raises((TypeError, ValueError), match=message):
        refusals()[message](x)


def test_environments_that_blocks_cannot_have_are_refused() -> None:
    x = soft.from_array(numbers(3, 4), chunks=2)
    with softfloat.environment(position=Position(3)), pytest.raises(ValueError, match="position of the environment"):
        operator.add(x, x)
    with (
        softfloat.environment(generator="xoroshiro128aox", **SR),
        pytest.raises(ValueError, match="generator must be 'philox4x32'"),
    ):
        operator.add(x, x)


def test_zarr_keeps_format_and_environment(tmp_path: Any) -> None:
    pytest.importorskip("zarr", reason="needs the extra 'dask'")
    whole = numbers(6, 10)
    x = soft.from_array(whole, chunks=(3, 4))
    env = softfloat.Environment(
        overflow="saturate", seed=2**64 - 1, rounding="stochastic", traps="INVALID", sr_bits=9,
        overrides={"float32": softfloat.Environment(daz=True)},
    )  # fmt: skip
    soft.to_zarr(x, tmp_path / "x.zarr", env, **SYNC)
    found = soft.from_zarr(tmp_path / "x.zarr")
    assert found.format == softfloat.float16
    assert found.chunks == x.chunks
    np.testing.assert_array_equal(found.compute(**SYNC).codes, whole.codes)
    assert soft.stored_environment(tmp_path / "x.zarr") == env
    with pytest.raises(ValueError, match="accumulator of the environment"):
        soft.to_zarr(x, tmp_path / "y.zarr", env.replace(accumulator=HOW), **SYNC)
    assert not (tmp_path / "y.zarr").exists()
    da.to_zarr(x.codes, str(tmp_path / "z.zarr"))
    with pytest.raises(ValueError, match="has no attribute 'softfloat'"):
        soft.from_zarr(tmp_path / "z.zarr")
