"""Convolutions and counts of arrays in blocks: codes, flags and counts of the single call, however inputs are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import bits
from softfloat.accumulators import amp, chunked, fma

pytest.importorskip("dask.array", reason="needs the extra 'dask'")

from softfloat import dask as soft

SR: dict[str, Any] = {"rounding": "stochastic", "seed": 3}
SYNC = {"scheduler": "synchronous"}
CHAIN, CHUNKED = fma("float16"), chunked(8, fma("float16"), "float32")
GROUPED = chunked(9 * 16, amp("half"), "float32")
"""Its sums go through a whole window of 16 channels before they take the next."""


def numbers(*shape: int, seed: int = 0) -> softfloat.SoftArray:
    return softfloat.array(np.random.default_rng(seed).normal(size=shape), "float16")


def same_counts(found: bits.Counts, expected: bits.Counts) -> None:
    for name in ("additions", "overflowed", "inexact", "swamped", "smallest", "largest"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def check(inputs: Any, weights: Any, chunks: tuple[Any, Any], how: Any, c: Any = None, **options: Any) -> None:
    x, w = numbers(*inputs), numbers(*weights, seed=1)
    start = None if c is None else c.codes
    whole, flags, counts = bits.conv2d(
        x.codes, w.codes, "float16", how, start, out_format="float16", count=True, flags="any", **SR, **options
    )
    with softfloat.environment(**SR):
        found, counted = soft.conv2d(
            soft.from_array(x, chunks=chunks[0]), soft.from_array(w, chunks=chunks[1]), how, c, count=True, **options
        )
    assert found.shape == whole.shape
    with softfloat.environment() as env:
        np.testing.assert_array_equal(found.compute(**SYNC).codes, whole)
        assert env.status.flags == flags
    same_counts(counted.compute(**SYNC), counts)


BIAS = softfloat.array(np.arange(6.0), "float16")
CASES: dict[str, tuple[Any, ...]] = {
    "strides": (
        (2, 9, 8, 4), (3, 2, 4, 6), ((1, 4, 3, 4), (3, 2, 4, 4)), CHAIN, BIAS,
        {"padding": ((2, 3), (5, 1)), "stride": (2, 3), "dilation": (2, 1)},
    ),
    "groups": (
        (2, 4, 9, 8), (6, 2, 3, 3), ((1, 2, 4, 3), (3, 2, 3, 3)), CHAIN, BIAS, {"groups": 2, "layout": "NCHW", "padding": 1},
    ),
    "within a group": ((1, 5, 4, 6), (2, 2, 3, 8), ((1, 2, 4, 6), (1, 2, 3, 2)), CHAIN, None, {"groups": 2}),
    "segments, kernel of 1": (
        (2, 5, 6, 24), (1, 1, 24, 6), ((1, 3, 3, 8), (1, 1, 24, 4)), CHUNKED, softfloat.array(np.arange(6.0), "float32"), {},
    ),
    "segments of whole windows": (
        (1, 5, 6, 40), (3, 3, 40, 5), ((1, 3, 3, 16), (3, 3, 40, 4)), GROUPED, None, {"padding": 1},
    ),
    "segments, channels first": (
        (2, 20, 3, 4), (6, 20, 1, 1), ((1, 16, 3, 2), (4, 5, 1, 1)), CHUNKED, softfloat.array(np.arange(6.0), "float32"),
        {"layout": "NCHW"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_blocks_give_the_bits_of_the_single_call(name: str) -> None:
    *arguments, options = CASES[name]
    check(*arguments, **options)


@settings(max_examples=7, deadline=None)
@given(st.data())
def test_windows_reach_over_any_cut(data: st.DataObject) -> None:
    def cut(size: int) -> tuple[int, ...]:
        inner = data.draw(st.sets(st.integers(1, max(1, size - 1)), max_size=2))
        return tuple(np.diff([0, *sorted(at for at in inner if at < size), size]).tolist())

    size = [data.draw(st.integers(1, 9)) for _ in range(2)]
    kernel = [data.draw(st.integers(1, 3)) for _ in range(2)]
    padding = tuple((data.draw(st.integers(2, 5)), data.draw(st.integers(0, 4))) for _ in range(2))
    options = {
        "padding": padding,
        "stride": data.draw(st.integers(1, 4)),
        "dilation": data.draw(st.sampled_from([1, 1, 2])),
    }
    if any(n + sum(pair) < (k - 1) * options["dilation"] + 1 for n, pair, k in zip(size, padding, kernel, strict=True)):
        return
    chunks = ((1,), cut(size[0]), cut(size[1]), (3,)), (kernel[0], kernel[1], 3, cut(4))
    check((1, *size, 3), (*kernel, 3, 4), chunks, CHAIN, **options)


@pytest.mark.parametrize(
    ("inputs", "weights", "arguments", "message"),
    [
        (((1, 4, 4, 24), (1, 4, 4, 8)), (3, 3, 24, 2), {"accumulator": CHAIN}, r"accepted: one chunk of all 24.*kernel of 1 by 1"),
        (((1, 4, 4, 24), (1, 4, 4, 8)), (1, 1, 24, 2), {"accumulator": CHAIN}, r"one chunk of all 24.*with segments"),
        (((1, 4, 4, 24), (1, 4, 4, 6)), (1, 1, 24, 2), {"accumulator": CHUNKED}, "chunks that end after 8, 16, 24 channels"),
        (((1, 4, 4, 48), (1, 4, 4, 8)), (3, 3, 48, 2), {"accumulator": GROUPED}, "chunks that end after 16, 32, 48 channels"),
        (((1, 4, 4, 48), (1, 4, 4, 16)), (2, 2, 48, 2), {"accumulator": GROUPED}, "end between channels of a window"),
        (((1, 4, 4, 8), (1, 4, 4, 2)), (1, 1, 4, 2), {"accumulator": CHUNKED, "groups": 2}, "multiples of 4"),
        (((1, 4, 4), (1, 4, 4)), (1, 1, 4, 2), {}, "inputs must have the axes N, H, W, C"),
        (((1, 4, 4, 4), (1, 4, 4, 4)), (1, 1, 4, 2), {"layout": "HWCN"}, "layout must be"),
        (((1, 4, 4, 4), (1, 4, 4, 4)), (1, 1, 4, 2), {"accumulator": CHAIN, "c": numbers(3)}, "c must be a SoftArray of float16 and shape"),
        (((1, 4, 4, 4), (1, 4, 4, 4)), (1, 1, 4, 2), {"accumulator": CHAIN, "count": 1}, "count must be"),
    ],
)  # fmt: skip
def test_refused(inputs: Any, weights: Any, arguments: dict[str, Any], message: str) -> None:
    x = soft.from_array(numbers(*inputs[0]), chunks=inputs[1])
    with pytest.raises((TypeError, ValueError), match=message):
        soft.conv2d(x, numbers(*weights), **arguments)


def test_output_channels_are_cut_between_groups_or_within_one() -> None:
    x, w = soft.from_array(numbers(1, 2, 2, 4)), soft.from_array(numbers(1, 1, 2, 8), chunks=(1, 1, 2, (3, 5)))
    with pytest.raises(ValueError, match=r"groups of 4: accepted: chunks of whole groups"):
        soft.conv2d(x, w, CHAIN, groups=2)


def test_traps_tell_the_output() -> None:
    x, w = numbers(2, 6, 6, 2), numbers(3, 3, 2, 4)
    x.codes[1, 4, 5, 0] = 0x7D00  # a signalling NaN, which one window of this stride sees
    with softfloat.environment(traps="INVALID"):
        lazy = soft.conv2d(
            soft.from_array(x, chunks=(1, 3, 2, 2)), soft.from_array(w, chunks=(3, 3, 2, (2, 2))), CHAIN, stride=3
        )
    with pytest.raises(softfloat.FloatingPointTrap) as caught:
        lazy.compute(**SYNC)
    assert caught.value.index[:3] == (1, 1, 1)
    assert caught.value.index[3] in (0, 2)


SUMS: dict[str, Callable[..., Any]] = {
    "matmul": lambda door, x, y, *more, **options: door.matmul(x, y, *more, **options),
    "vecdot": lambda door, x, y, *more, **options: door.vecdot(x, x, *more, **options),
    "sum": lambda door, x, y, *more, **options: door.sum(x, *more, **options),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("lengths", [(48,), (8, 24, 16)])
def test_counts_add_up(name: str, lengths: tuple[int, ...]) -> None:
    x, y = numbers(5, 48), numbers(48, 7, seed=1)
    axis = (1,) if name == "sum" else ()
    codes, _, counts = SUMS[name](
        bits, x.codes, y.codes, "float16", CHUNKED, *axis, out_format="float32", count=True, **SR
    )
    with softfloat.environment(**SR):
        blocks = soft.from_array(x, chunks=(2, lengths)), soft.from_array(y, chunks=(lengths, 4))
        found, counted = SUMS[name](soft, *blocks, *axis, CHUNKED, "float32", count=True)
    np.testing.assert_array_equal(found.compute(**SYNC).codes, codes)
    same_counts(counted.compute(**SYNC), counts)
    assert int(counted.inexact.sum().compute(**SYNC)) == counts.inexact.sum()
