"""Cutting an array changes no bit: blocks that say where they lie give the codes, the flags and the counts of a single call."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import Environment, Position, accumulators, bits, engine, reference
from softfloat.accumulators import Accumulator, chunked, exact, fma, mul_add, pairwise, tensor_core
from softfloat.accumulators.accumulator import Reduction, Stage
from softfloat.engine import as_environment, elementwise
from softfloat.formats import check_format
from softfloat.reference import dots
from softfloat.reference.outputs import philox, random_bits_of

Cut = tuple[slice, ...]
Codes = np.ndarray[Any, Any]
FORMATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "float32")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = softfloat.get_num_threads()
    yield
    softfloat.set_num_threads(before)


def cuts(draw: Callable[..., Any], shape: Sequence[int], fixed: Sequence[int] = ()) -> list[Cut]:
    """All blocks of a grid over an array, in any order; axes in `fixed` stay whole."""
    axes = []
    for axis, size in enumerate(shape):
        inner = [] if axis in fixed or size < 2 else draw(st.lists(st.integers(1, size - 1), max_size=2, unique=True))
        bounds = [0, *sorted(inner), size]
        axes.append([slice(a, b) for a, b in itertools.pairwise(bounds)])
    return draw(st.permutations(list(itertools.product(*axes))))


def position(cut: Cut, shape: Sequence[int]) -> Position:
    return Position(tuple(part.start for part in cut), tuple(shape))


def assert_cut_alike(whole: Any, blocks: Callable[[Cut, Position], Any], order: list[Cut]) -> None:
    """The blocks, in this order, are those of the whole: codes, flags and all that comes with them."""
    codes, flags, *more = whole
    seen = 0
    for cut in order:
        found, raised, *rest = blocks(cut, position(cut, codes.shape))
        np.testing.assert_array_equal(found, codes[cut])
        np.testing.assert_array_equal(raised, flags[cut])
        seen |= int(np.bitwise_or.reduce(raised, axis=None))
        for one, all_of_them in zip(rest, more, strict=True):
            assert one.additions == all_of_them.additions
            for name in ("overflowed", "inexact", "swamped", "smallest", "largest"):
                np.testing.assert_array_equal(getattr(one, name), getattr(all_of_them, name)[cut])
    assert seen == int(np.bitwise_or.reduce(flags, axis=None))


DRAWN: dict[str, Any] = {"rounding": "stochastic", "seed": 0xFEEDFACE12345678, "stream": 1 << 40}

# -- elementwise -----------------------------------------------------------------------------------------------------

Elementwise = Callable[..., Any]
ROADS: dict[str, tuple[int, Elementwise]] = {
    "add": (2, bits.add),
    "mul": (2, bits.mul),
    "fma": (3, bits.fma),
    "sqrt": (1, bits.sqrt),
    "round_to_integral": (1, bits.round_to_integral),
    "modulo": (2, bits.modulo),
    "exp": (1, bits.exp),
    "pow": (2, bits.pow),
    "convert": (1, lambda x, fmt, **o: bits.convert(x, fmt, "float8_e5m2", **o)),
    "encode": (1, lambda x, fmt, **o: bits.encode(bits.decode(x, fmt).astype(np.float32), "bfloat16", **o)),
    "encode_long": (
        1,
        lambda x, fmt, **o: bits.encode((x.astype(np.int64) << 40) + (1 << 55) + x, "float16", **o),
    ),
    "to_integer": (1, lambda x, fmt, **o: bits.to_integer(x, fmt, "int16", **o)),
}


def operands(number: int, shape: Sequence[int], fmt: str, seed: int = 0) -> list[Codes]:
    """Ordinary numbers, and some codes of any kind."""
    draw, format_ = np.random.default_rng(seed), check_format(fmt)
    found = []
    for _ in range(number):
        codes = bits.encode(np.abs(draw.normal(size=shape)) + 0.1, fmt)[0]
        any_codes = draw.integers(0, 1 << format_.bits, shape).astype(format_.dtype)
        found.append(np.where(draw.random(shape) < 0.9, codes, any_codes))
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_elementwise_blocks(data: st.DataObject) -> None:
    road = data.draw(st.sampled_from(sorted(ROADS)), "road")
    fmt = data.draw(st.sampled_from(FORMATS[:3]), "format")
    last = data.draw(st.sampled_from([1, 5, 40, 128, 300]), "last")
    shape = (*data.draw(st.lists(st.integers(1, 4), max_size=2), "shape"), last)
    options: dict[str, Any] = {
        "rounding": "stochastic",
        "seed": data.draw(st.integers(0, 2**64 - 1)),
        "stream": data.draw(st.integers(0, 2**64 - 1)),
        "sr_bits": data.draw(st.sampled_from([None, 1, 15, 16, 17, 40])),
    }
    number, function = ROADS[road]
    given_ = operands(number, shape, fmt)
    order = cuts(data.draw, shape)
    whole = function(*given_, fmt, **options)
    assert_cut_alike(whole, lambda cut, at: function(*(x[cut] for x in given_), fmt, position=at, **options), order)


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "plain"])
@pytest.mark.parametrize("flags", ["each", "any"])
@pytest.mark.parametrize("road", ["add", "mul", "fma", "exp", "encode", "convert", "to_integer"])
def test_long_runs_take_their_loops(road: str, flags: str, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "FAST", fast)
    number, function = ROADS[road]
    shape = (6, 4096)
    options: dict[str, Any] = {"rounding": "stochastic", "seed": 9, "stream": 2}
    given_ = operands(number, shape, "float16")
    codes, each = function(*given_, "float16", **options)
    for threads, start, stop in [(1, 0, 4096), (2, 128, 3000), (3, 1024, 4096), (2, 77, 4095), (1, 2048, 3072)]:
        softfloat.set_num_threads(threads)
        cut = (slice(1, 6), slice(start, stop))
        found, raised = function(
            *(x[cut] for x in given_), "float16", position=position(cut, shape), flags=flags, **options
        )
        np.testing.assert_array_equal(found, codes[cut])
        expected = each[cut] if flags == "each" else np.bitwise_or.reduce(each[cut], axis=None)
        np.testing.assert_array_equal(raised, expected)


@pytest.mark.parametrize("fmt", ["float16", "bfloat16"])
@pytest.mark.parametrize("road", ["add", "mul"])
def test_blocks_of_ordinary_operands_take_their_loops(road: str, fmt: str) -> None:
    function, draw, shape = ROADS[road][1], np.random.default_rng(1), (3, 4096)
    a, b = (bits.encode(draw.uniform(1, 2, shape), fmt)[0] for _ in range(2))
    whole = function(a, b, fmt, **DRAWN)
    for cut in ((slice(1, 3), slice(1024, 4096)), (slice(2, 3), slice(0, 2048))):
        found = function(a[cut], b[cut], fmt, position=position(cut, shape), **DRAWN)
        np.testing.assert_array_equal(found[0], whole[0][cut])
        np.testing.assert_array_equal(found[1], whole[1][cut])


@pytest.mark.parametrize("road", ["mul", "exp", "encode", "pow"])
def test_a_number_is_enough_for_what_follows_in_order(road: str) -> None:
    number, function = ROADS[road]
    size = 9000
    options: dict[str, Any] = {"rounding": "stochastic", "seed": 9}
    given_ = operands(number, (size,), "float16")
    whole = function(*given_, "float16", **options)
    for start in (0, 128 * 20, 5, 8999):
        found = function(*(x[start:] for x in given_), "float16", position=start, **options)
        for one, every in zip(found, whole, strict=True):
            np.testing.assert_array_equal(one, every[start:])


def test_places_that_lie_at_once_on_several_threads() -> None:
    shape = (64, 4096)
    given_ = operands(2, shape, "bfloat16")
    cut = (slice(None), slice(1024, 4096))
    options: dict[str, Any] = {"rounding": "stochastic", "seed": 3}
    whole, flags = bits.mul(*given_, "bfloat16", **options)
    for threads in (1, 2, 3):
        softfloat.set_num_threads(threads)
        for part in (cut, (slice(0, 64), slice(1000, 4090))):
            at = Position((0, part[1].start), shape)
            found, raised = bits.mul(*(x[part] for x in given_), "bfloat16", position=at, **options)
            np.testing.assert_array_equal(found, whole[part])
            np.testing.assert_array_equal(raised, flags[part])


def address(seed: int, stream: int, number: int, width: int) -> int:
    """The random bits of an element, from the documented addresses and the oracle's Philox."""
    word = 1 << 32
    key = (seed % word, seed // word)
    tile, within = divmod(number, 128)
    block, half = 16 * tile + within % 16, within // 16
    words = philox((block % word, block // word, stream % word, stream // word), key)
    high = words[half % 4] >> 16 * (half // 4) & 0xFFFF
    low = philox((number % word, number // word | 1 << 31, stream % word, stream // word), key)
    return (high << 36 | low[0] << 4 | low[1] >> 28) >> (52 - width)


@pytest.mark.parametrize("far", [0, 7, (1 << 32) - 3, (1 << 45) + 11, (1 << 62) - 300])
@pytest.mark.parametrize("width", [7, 52])
def test_far_addresses_are_those_documented(far: int, width: int) -> None:
    seed, stream = 0x123456789ABCDEF1, 0xFEDCBA9876543210
    found = bits.random_bits((3, 50), seed=seed, stream=stream, sr_bits=width, position=far)
    assert found.ravel().tolist() == [address(seed, stream, far + i, width) for i in range(150)]
    x = 0x3C01
    codes, _ = bits.mul(
        np.full(20, x), np.arange(x, x + 20), "float16",
        rounding="stochastic", seed=seed, stream=stream, sr_bits=width, position=far,
    )  # fmt: skip
    for i, code in enumerate(codes.tolist()):
        drawn = address(seed, stream, far + i, width)
        expected = reference.mul(x, x + i, softfloat.float16, rounding="stochastic", sr_bits=width, random_bits=drawn)
        assert code == expected[0]


# -- sums ------------------------------------------------------------------------------------------------------------

SUMS: dict[str, tuple[str, Accumulator]] = {
    "fma": ("float16", fma("float16")),
    "mul_add": ("bfloat16", mul_add("bfloat16")),
    "float32": ("float32", fma("float32")),
    "daz": ("float16", mul_add("float16").replace(running=Stage("float16", daz=True))),
    "exact": ("float16", exact("float16")),
    "pairwise": ("float16", pairwise("float16")),
    "chains": ("float16", fma("float16").replace(chains=3)),
    "chunked": ("float16", chunked(8, fma("float16"), "float32")),
    "amp": ("float16", accumulators.amp("float16")),
    "tensor_core": ("float16", accumulators.tensor_core("A100")),
    "eight bits": ("float8_e4m3fn", chunked(16, fma("float16"), "float16")),
}


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_blocks_of_products(data: st.DataObject) -> None:
    fmt, how = SUMS[data.draw(st.sampled_from(sorted(SUMS)), "accumulator")]
    batch = tuple(data.draw(st.lists(st.integers(1, 4), max_size=2), "batch"))
    rows, columns = (data.draw(st.sampled_from([1, 3, 9, 70])) for _ in range(2))
    k = data.draw(st.integers(1, 20), "k")
    shared = data.draw(st.booleans(), "one b for all")
    threads = data.draw(st.integers(1, 3))
    out = data.draw(st.sampled_from([None, "float8_e5m2"]), "out_format")
    count = data.draw(st.booleans(), "count")
    a, b = operands(1, (*batch, rows, k), fmt)[0], operands(1, (*(() if shared else batch), k, columns), fmt, 1)[0]
    c = operands(1, (*batch, rows, columns), how.partials.name, 2)[0] if data.draw(st.booleans(), "c") else None
    if data.draw(st.booleans(), "only finite"):
        a, b = (np.where(np.isfinite(bits.decode(x, fmt)), x, 0).astype(x.dtype) for x in (a, b))
    shape = (*batch, rows, columns)

    def block(cut: Cut, at: Position | None) -> Any:
        *outer, i, j = cut
        right = b[:, j] if shared else b[(*outer, slice(None), j)]
        return bits.matmul(
            a[(*outer, i)],
            right,
            fmt,
            how,
            None if c is None else c[cut],
            out_format=out,
            count=count,
            position=at,
            **DRAWN,
        )

    whole = block(tuple(slice(None) for _ in shape), None)
    softfloat.set_num_threads(threads)
    assert_cut_alike(whole, lambda cut, at: block(cut, at), cuts(data.draw, shape))


@pytest.mark.parametrize("name", SUMS)
def test_blocks_of_sums_and_dot_products(name: str) -> None:
    fmt, how = SUMS[name]
    shape = (30, 9, 17)
    a, b = operands(2, shape, fmt)
    grid = [
        (slice(0, 30), slice(0, 4)),
        (slice(3, 20), slice(4, 9)),
        (slice(29, 30), slice(8, 9)),
        (slice(5, 9), slice(9)),
    ]
    grid = [tuple(slice(x.start or 0, x.stop) for x in cut) for cut in grid]
    dots, sums = bits.vecdot(a, b, fmt, how, **as_environment(DRAWN)), None
    for cut in grid:
        at = position(cut, shape[:2])
        for found, whole in zip(
            bits.vecdot(a[cut], b[cut], fmt, how, position=at, **as_environment(DRAWN)), dots, strict=True
        ):
            np.testing.assert_array_equal(found, whole[cut])
    if how.inputs:
        return
    sums = bits.sum(a, fmt, how, axis=2, **as_environment(DRAWN))
    for cut in grid:
        at = position(cut, shape[:2])
        for found, whole in zip(
            bits.sum(a[cut], fmt, how, axis=2, position=at, **as_environment(DRAWN)), sums, strict=True
        ):
            np.testing.assert_array_equal(found, whole[cut])
    number = bits.sum(a[4:], fmt, how, axis=2, position=4 * 9, **as_environment(DRAWN))
    np.testing.assert_array_equal(number[0], sums[0][4:])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "how", [fma("float16"), chunked(4, mul_add("float16"), "float32"), pairwise("float16")], ids=repr
)
def test_blocks_of_cumulative_sums(how: Accumulator, axis: int) -> None:
    (x,) = operands(1, (6, 7, 9), "float16")
    whole = bits.cumsum(x, "float16", how, axis=axis, **DRAWN)
    draw = np.random.default_rng(axis)
    for _ in range(5):
        low = [int(draw.integers(0, size)) for size in x.shape]
        cut = tuple(slice(at, int(draw.integers(at + 1, size + 1))) for at, size in zip(low, x.shape, strict=True))
        cut = (*cut[:axis], slice(0, x.shape[axis]), *cut[axis + 1 :])
        found = bits.cumsum(x[cut], "float16", how, axis=axis, position=position(cut, x.shape), **DRAWN)
        np.testing.assert_array_equal(found[0], whole[0][cut])
        np.testing.assert_array_equal(found[1], whole[1][cut])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_blocks_of_convolutions(layout: str, groups: int) -> None:
    images, weights = operands(1, (3, 7, 8, 4), "float16")[0], operands(1, (3, 2, 4 // groups, 8), "float16", 1)[0]
    if groups == 4:
        weights = weights[..., :4]
    gradient = operands(1, (3, 5, 7, weights.shape[3]), "float16", 2)[0]
    if layout == "NCHW":
        images, gradient = (np.moveaxis(x, 3, 1) for x in (images, gradient))
        weights = weights.transpose(3, 2, 0, 1)
    options: dict[str, Any] = {"groups": groups, "layout": layout, **DRAWN}
    how = fma("float16")
    whole = bits.conv2d(images, weights, "float16", how, **options)
    for images_cut in (slice(0, 1), slice(1, 3)):
        cut = (images_cut, *(slice(0, size) for size in whole[0].shape[1:]))
        found = bits.conv2d(
            images[images_cut], weights, "float16", how, position=position(cut, whole[0].shape), **options
        )
        np.testing.assert_array_equal(found[0], whole[0][cut])
        back = bits.conv2d_input_gradient(gradient, weights, images.shape, "float16", how, **options)
        cut = (images_cut, *(slice(0, size) for size in images.shape[1:]))
        part = bits.conv2d_input_gradient(
            gradient[images_cut], weights, images[images_cut].shape, "float16", how, position=position(cut, images.shape),
            **options,
        )  # fmt: skip
        np.testing.assert_array_equal(part[0], back[0][cut])
        np.testing.assert_array_equal(part[1], back[1][cut])
    if groups == 1:  # output channels
        channel, axis = layout.index("C"), (3 if layout == "NHWC" else 0)
        some = [slice(0, size) for size in whole[0].shape]
        some[channel] = slice(3, 7)
        kernels = np.take(weights, range(3, 7), axis)
        found = bits.conv2d(images, kernels, "float16", how, position=position(tuple(some), whole[0].shape), **options)
        np.testing.assert_array_equal(found[0], whole[0][tuple(some)])
        shape = weights.shape
        full = bits.conv2d_weight_gradient(images, gradient, shape, "float16", how, **options)
        some = [slice(0, size) for size in shape]
        some[axis] = slice(3, 7)
        part = bits.conv2d_weight_gradient(
            images, np.take(gradient, range(3, 7), channel), kernels.shape, "float16", how,
            position=position(tuple(some), shape), **options,
        )  # fmt: skip
        np.testing.assert_array_equal(part[0], full[0][tuple(some)])


def test_an_output_far_away_is_the_oracles() -> None:
    fmt = softfloat.float16
    a, b = operands(2, (12,), "float16")
    for index in (0, 5, (1 << 32) - 1):
        for name, how in (("fma", fma(fmt)), ("mul_add", mul_add(fmt))):
            oracle = getattr(dots, name)
            expected = oracle(
                a.tolist(), b.tolist(), (fmt, fmt), fmt, rounding="stochastic", seed=3, stream=8, index=index
            )
            found = bits.vecdot(a, b, fmt, how, rounding="stochastic", seed=3, stream=8, position=index)
            assert (int(found[0]), int(found[1])) == tuple(expected)[:2]


# -- segments --------------------------------------------------------------------------------------------------------


def stages() -> st.SearchStrategy[Stage]:
    switch = st.sampled_from([None, True])
    return st.builds(Stage, st.sampled_from(["float16", "bfloat16", "float32"]), daz=switch, ftz=switch)


def segmented() -> st.SearchStrategy[Accumulator]:
    """Accumulators that cut k."""
    one_by_one = st.sampled_from(
        [fma("float16"), mul_add("float16"), fma("bfloat16"), fma("float32"), fma("float8_e5m2")]
    )
    blocks = st.just(
        fma("float32").replace(block=4, order=(0, 2, 1, 3), store=Stage("float16"), store_every=8, name="blocks")
    )
    many = st.sampled_from(
        [
            pairwise("float16"), pairwise("float32").replace(product=Stage("float16")), pairwise("float16").replace(block=4),
            fma("float16").replace(chains=3), tensor_core("H100").replace(inputs=()),
            exact("float32").replace(block=4, block_sum=Stage("float16")),
        ]
    )  # fmt: skip
    maybe = st.none() | stages()

    def cut(inner: Accumulator) -> st.SearchStrategy[Accumulator]:
        one = st.builds(Reduction, stages(), store=maybe)
        by_length = st.builds(lambda n, r: inner.replace(segment=n, reduction=(r,)), st.integers(1, 9), one)
        by_number = st.builds(lambda n, r: inner.replace(segments=n, reduction=(r,)), st.integers(1, 4), one)
        two = st.builds(
            lambda first, r: inner.replace(segments=5, reduction=(first, r)),
            st.builds(Reduction, stages(), sections=st.just(3), store=maybe), one,
        )  # fmt: skip
        return by_length | by_number | two

    return (one_by_one | blocks | many).flatmap(cut)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_sums_of_segments_join_to_the_whole(data: st.DataObject) -> None:
    how, fmt = data.draw(segmented(), "accumulator"), data.draw(st.sampled_from(["float16", "bfloat16"]), "format")
    k, rows, columns = data.draw(st.integers(5, 14), "k"), 2, 5
    draw = np.random.default_rng(data.draw(st.integers(0, 99), "numbers"))
    scale = 10.0 ** data.draw(st.sampled_from([-4, 0, 3]), "scale")
    a, b = (bits.encode(draw.normal(size=shape) * scale, fmt)[0] for shape in ((rows, k), (k, columns)))
    kind = data.draw(st.sampled_from(["numbers", "zeros", "anything"]), "kind")
    if kind == "zeros":
        a, b = (x & np.uint16(0x8000) | np.where(draw.random(x.shape) < 0.3, x, 0).astype(np.uint16) for x in (a, b))
    if kind == "anything":
        a, b = (draw.integers(0, 1 << 16, x.shape).astype(np.uint16) for x in (a, b))
    c = None
    if data.draw(st.booleans(), "c"):
        top = how.partials.bits - 1
        c = draw.choice([0, 1 << top, int(draw.integers(0, 2 << top))], (rows, columns)).astype(how.partials.dtype)
    chosen: dict[str, Any] = {
        "rounding": data.draw(st.sampled_from(["stochastic", "nearest_even", "toward_negative", "to_odd"])),
        "overflow": data.draw(st.sampled_from(["infinity", "saturate", "nan"])),
        "nan": data.draw(st.sampled_from(["canonical", "x86", "arm", "ipu", "nvidia"])),
        "daz": data.draw(st.booleans()),
        "ftz": data.draw(st.booleans()),
        "tininess": data.draw(st.sampled_from(["before", "after"])),
        "sr_bits": data.draw(st.sampled_from([None, 3, 30])),
        "seed": data.draw(st.integers(0, 2**64 - 1)),
    }
    options: dict[str, Any] = {"environment": Environment(**chosen), "count": True}
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(
            st.integers(0, 5), "whether some are summed by the faster loops, which others hold against the plain one"
        ):
            patch.setattr(elementwise, "FAST", False)
        assert_segments_join(data, a, b, fmt, how, c, options)


def assert_segments_join(
    data: st.DataObject, a: Codes, b: Codes, fmt: str, how: Accumulator, c: Codes | None, options: dict[str, Any]
) -> None:
    """Sums of segments, in any order, of all outputs or of some, are the whole's when they are joined: codes, flags and counts."""
    (rows, k), columns = a.shape, b.shape[1]
    out = data.draw(st.sampled_from([None, "float16", "float8_e4m3fn"]), "out_format")
    whole = bits.matmul(a, b, fmt, how, c, out_format=out, **options)
    order = data.draw(st.permutations(list(enumerate(bits.segments(how, k)))), "order")
    cut = data.draw(st.sampled_from([(slice(0, rows), slice(0, columns)), (slice(1, 2), slice(1, 4))]), "cut")
    place = position(cut, (rows, columns))
    parts: dict[int, Any] = {}
    for number, (start, stop) in order:
        at = Position(place.index, place.shape, segment=number, k=k)
        parts[number] = bits.matmul(a[cut[0], start:stop], b[start:stop, cut[1]], fmt, how, position=at, **options)
    sums = [parts[number][0] for number in range(len(parts))]
    start_of = None if c is None else c[cut]
    joined = bits.join_segments(sums, fmt, how, start_of, k=k, out_format=out, position=place, **options)
    np.testing.assert_array_equal(joined[0], whole[0][cut])
    every = [*parts.values(), joined]
    np.testing.assert_array_equal(np.bitwise_or.reduce([x[1] for x in every]), whole[1][cut])
    assert sum(x[2].additions for x in every) == whole[2].additions
    for name in ("overflowed", "inexact", "swamped"):
        np.testing.assert_array_equal(sum(getattr(x[2], name) for x in every), getattr(whole[2], name)[cut])
    np.testing.assert_array_equal(np.fmin.reduce([x[2].smallest for x in every]), whole[2].smallest[cut])
    np.testing.assert_array_equal(np.fmax.reduce([x[2].largest for x in every]), whole[2].largest[cut])


def test_segments_that_are_summed_in_chains() -> None:
    """Three chains in each of five segments: 1 + 2^-11 + 1 + 1 + 1 is 4 (0x4400) in each. Their sums once were joined as if they were the chains."""
    how = fma("float16").replace(chains=3, segment=5, reduction=(Reduction(Stage("float16")),))
    a, b = np.full((1, 25), 0x3C00, np.uint16), np.full((25, 2), 0x3C00, np.uint16)
    b[1::5] = 0x1000
    whole = bits.matmul(a, b, "float16", how)
    parts = [
        bits.matmul(a[:, i:j], b[i:j], "float16", how, position=Position(segment=n, k=25))
        for n, (i, j) in enumerate(bits.segments(how, 25))
    ]
    assert whole[0].tolist() == [[0x4D00, 0x4D00]]
    assert bits.join_segments([x for x, _ in parts], "float16", how, k=25)[0].tolist() == whole[0].tolist()


@pytest.mark.parametrize("policy", ["canonical", "x86", "arm", "nvidia"])
@pytest.mark.parametrize("daz", [None, True])
@pytest.mark.parametrize("kind", ["fma", "blocks"])
def test_sums_of_segments_join_to_what_is_no_number(kind: str, daz: bool | None, policy: str) -> None:
    """Quiet and signalling NaNs and a negative zero where the sum starts, and infinities in it."""
    how = fma("float16").replace(segment=4, reduction=(Reduction(Stage("float16", daz=daz)),))
    if kind == "blocks":
        how = fma("float32").replace(block=4, segment=4, reduction=(Reduction(Stage("float16", daz=daz)),))
    c = np.array([0x7D01, 0xFD01, 0x7E54, 0xFE54, 0x8000, 0x7C00], np.uint16)
    a, b = np.zeros((6, 8), np.uint16), np.full((6, 8), 0x8000, np.uint16)
    a[5, 6], b[5, 6] = 0xFC00, 0x3C00
    for out in (None, "float8_e4m3fn"):
        whole = bits.vecdot(a, b, "float16", how, c, nan=policy, out_format=out)
        sums, seen = [], np.zeros(6, np.uint8)
        for number, (start, stop) in enumerate(bits.segments(how, 8)):
            at = Position(segment=number, k=8)
            codes, raised = bits.vecdot(a[:, start:stop], b[:, start:stop], "float16", how, nan=policy, position=at)
            sums.append(codes)
            seen |= raised
        joined, raised = bits.join_segments(sums, "float16", how, c, k=8, nan=policy, out_format=out)
        np.testing.assert_array_equal(joined, whole[0])
        np.testing.assert_array_equal(seen | raised, whole[1])


@pytest.mark.parametrize("length", [5, 8, 16, 64])
@pytest.mark.parametrize("name", ["fma", "mul_add"])
def test_segments_on_the_fast_ways(name: str, length: int) -> None:
    """Lines and grids of ordinary numbers, whose random numbers go on from segment to segment."""
    how = chunked(length, getattr(accumulators, name)("float16"), "float32")
    draw, k = np.random.default_rng(length), 200
    a, b = (bits.encode(draw.normal(size=shape), "float16")[0] for shape in ((9, k), (k, 70)))
    whole = bits.matmul(a, b, "float16", how, **DRAWN)
    lone = bits.vecdot(a[3], b[:, 5], "float16", how, **DRAWN)
    sums, dots, flags = [], [], np.zeros((9, 70), np.uint8)
    for number, (start, stop) in enumerate(bits.segments(how, k)):
        at = Position(segment=number, k=k)
        found, raised = bits.matmul(a[:, start:stop], b[start:stop], "float16", how, position=at, **DRAWN)
        sums.append(found)
        flags |= raised
        dots.append(bits.vecdot(a[3, start:stop], b[start:stop, 5], "float16", how, position=at, **DRAWN)[0])
    joined, raised = bits.join_segments(sums, "float16", how, k=k, **DRAWN)
    np.testing.assert_array_equal(joined, whole[0])
    np.testing.assert_array_equal(flags | raised, whole[1])
    assert bits.join_segments(dots, "float16", how, k=k, **DRAWN)[0] == lone[0]


@pytest.mark.parametrize("kernel", [1, 2])
def test_segments_of_convolutions(kernel: int) -> None:
    """Of channels for a kernel of 1 by 1, of groups of channels with their whole windows for others."""
    inner = fma("float16") if kernel == 1 else fma("float16").replace(channel_group=4)
    how = chunked(4 * kernel * kernel, inner, "float32")
    draw = np.random.default_rng(5)
    x, w = (bits.encode(draw.normal(size=size), "float16")[0] for size in ((2, 5, 4, 10), (kernel, kernel, 10, 3)))
    whole, flags = bits.conv2d(x, w, "float16", how, flags="any", **DRAWN)
    k, shape = 12 * kernel * kernel if kernel > 1 else 10, whole.shape
    sums, raised = [], 0
    for number in range(len(bits.segments(how, k))):
        at, channels = Position((0,) * 4, shape, segment=number, k=k), slice(4 * number, 4 * number + 4)
        codes, seen = bits.conv2d(
            x[..., channels], w[:, :, channels], "float16", how, position=at, flags="any", **DRAWN
        )
        sums.append(codes)
        raised |= seen
    joined, seen = bits.join_segments(sums, "float16", how, k=k, flags="any", **DRAWN)
    np.testing.assert_array_equal(joined, whole)
    assert raised | seen == flags


def test_sums_of_numbers_cut_into_segments() -> None:
    """With what additions did."""
    how = chunked(64, fma("float16"), "float32")
    (x,) = operands(1, (500, 6), "float16")
    x = np.where(np.isfinite(bits.decode(x, "float16")), x, 0).astype(np.uint16)
    x[:, 4] = 0
    x[3, 5] = 0x7C00
    counted: dict[str, Any] = {**DRAWN, "count": True}
    whole = bits.sum(x, "float16", how, axis=0, **counted)
    parts = [
        bits.sum(x[start:stop], "float16", how, axis=0, position=Position(segment=number, k=500), **counted)
        for number, (start, stop) in enumerate(bits.segments(how, 500))
    ]
    joined, raised, counts = bits.join_segments([codes for codes, *_ in parts], "float16", how, k=500, **counted)
    np.testing.assert_array_equal(joined, whole[0])
    np.testing.assert_array_equal(raised | np.bitwise_or.reduce([flags for _, flags, _ in parts]), whole[1])
    every = [counts, *(part[2] for part in parts)]
    for name in ("overflowed", "inexact", "swamped"):
        np.testing.assert_array_equal(sum(getattr(x, name) for x in every), getattr(whole[2], name))
    np.testing.assert_array_equal(np.fmin.reduce([x.smallest for x in every]), whole[2].smallest)
    np.testing.assert_array_equal(np.fmax.reduce([x.largest for x in every]), whole[2].largest)


def test_bits_of_a_rounding_are_those_of_the_loops() -> None:
    for site, step, width in ((0, 0, 52), (1, 9, 16), (4, 1 << 20, 5), (9, 7, 40)):
        outputs = np.array([0, 1, 77, (1 << 32) - 1])
        found = engine.draws.rounding_bits(outputs, site, step, 1 << 63 | 5, 1 << 35 | 9, width)
        assert found.tolist() == [random_bits_of(1 << 63 | 5, 1 << 35 | 9, int(x), site, step, width) for x in outputs]


PLAIN = """
import numpy as np
from softfloat import Position, bits
from softfloat.accumulators import chunked, fma
x = np.arange(0x3C00, 0x3C00 + 60, dtype=np.uint16).reshape(6, 10)
draws = {"rounding": "stochastic", "seed": 4}
codes, _ = bits.mul(x[2:, 3:], x[2:, 3:], "float16", position=Position((2, 3), (6, 10)), **draws)
how = chunked(4, fma("float16"), "float32")
sums = [
    bits.matmul(x[:, i:j], x.T[i:j, 1:4], "float16", how, position=Position((0, 1), (6, 6), n, 10), **draws)[0]
    for n, (i, j) in enumerate(bits.segments(how, 10))
]
whole, _ = bits.join_segments(sums, "float16", how, k=10, position=Position((0, 1), (6, 6)), **draws)
print(codes.tolist(), whole.tolist())
"""


def test_plain_python_gives_the_same_bits() -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", PLAIN],
            env={**os.environ, "NUMBA_DISABLE_JIT": switch},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for switch in ("0", "1")
    ]
    assert found[0] == found[1] != ""


def test_numbers_of_more_bits_than_float64_keep_their_place() -> None:
    values = [Fraction(1, 3) + Fraction(i, 1 << 70) for i in range(300)]
    whole = bits.encode(values, "float16", **DRAWN)
    for start in (0, 1, 128, 290):
        found = bits.encode(values[start:], "float16", position=start, **DRAWN)
        np.testing.assert_array_equal(found[0], whole[0][start:])


def test_bits_of_some_elements_are_those_of_their_places() -> None:
    at, settings_ = Position((1, 256), (3, 4096)), softfloat.Environment(rounding="stochastic", seed=3).settings
    drawn = engine.draw(settings_, None, 5, (2, 2048), at)
    assert not drawn.handed.size
    every = bits.random_bits((2, 2048), seed=3, stream=5, position=at).ravel()
    places = np.array([0, 1, 127, 2047, 2048, 4000])
    np.testing.assert_array_equal(engine.bits_at(drawn, places), every[places])
