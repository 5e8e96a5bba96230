"""Order, masked reductions, spans and windows, which are taken many at once, against one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operands import CUSTOM

import softfloat
from softfloat import ROSTER, Format, SoftArray, bits, engine
from softfloat.arrays import order

HALF = ROSTER["float16"]
SHORT = [fmt for fmt in [*ROSTER.values(), *CUSTOM] if fmt.bits <= 16]


def every(fmt: Format, nans: bool = False) -> np.ndarray:
    codes = np.arange(1 << fmt.bits, dtype=fmt.dtype)
    return codes if nans else codes[~engine.is_nan(codes, fmt)]


def wild(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Halves, one in eight any code at all."""
    random = np.random.default_rng(seed)
    codes = bits.encode(random.normal(0, 2, shape), HALF)[0]
    return np.where(random.random(shape) < 1 / 8, random.integers(0, 1 << 16, shape).astype(np.uint16), codes)


# -- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_keys_are_ordered_as_the_numbers_are(fmt: Format) -> None:
    codes = every(fmt)
    keys = engine.keys(codes, fmt)
    assert keys.dtype.itemsize == fmt.dtype.itemsize
    values = np.asarray(bits.decode(codes, fmt))
    by_value = np.lexsort((~np.signbit(values), values))
    if fmt.subnormals:  # else some codes are the same zero
        np.testing.assert_array_equal(np.argsort(keys), by_value)
    np.testing.assert_array_equal(values[np.argsort(keys)], values[by_value])
    np.testing.assert_array_equal(np.argsort(keys), np.argsort(order.ranks(codes, fmt)))
    np.testing.assert_array_equal(engine.from_keys(engine.keys(every(fmt, True), fmt), fmt), every(fmt, True))


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_order(fmt: Format) -> None:
    """Of every number at once: what is least, in the middle and greatest, by value, and -0 before +0."""
    codes = np.random.default_rng(1).permutation(every(fmt))
    x = softfloat.from_codes(codes, fmt)
    ordered = codes[np.argsort(order.ranks(codes, fmt), kind="stable")]
    np.testing.assert_array_equal(np.sort(x).codes, ordered)
    assert np.max(x).codes == ordered[-1] == np.nanmax(x).codes
    assert np.min(x).codes == ordered[0] == np.nanmin(x).codes
    values = x.values
    assert np.max(x[:7]).values == values[:7].max()
    assert np.min(x[:7]).values == values[:7].min()


@pytest.mark.parametrize("fmt", [fmt for fmt in SHORT if fmt.has_nan], ids=str)
def test_a_nan_among_them(fmt: Format) -> None:
    codes = np.random.default_rng(2).permutation(every(fmt))[:40]
    codes[17] = fmt.nan_code
    x = softfloat.from_codes(codes, fmt)
    assert np.isnan(np.max(x))
    assert np.isnan(np.min(x))
    assert np.nanmax(x) == x.values[np.isfinite(x.values) | np.isinf(x.values)].max()
    assert np.isnan(np.sort(x)[-1])
    found = np.maximum.accumulate(x)
    assert np.isnan(found[17:]).all()
    np.testing.assert_array_equal(found.values[:17], np.maximum.accumulate(x.values[:17]))


def test_zeros_of_both_signs_and_axes() -> None:
    x = softfloat.from_codes([[0x8000, 0x0000, 0xFC00], [0x0000, 0x8000, 0x7C00]], HALF)
    assert np.max(x, axis=0).codes.tolist() == [0x0000, 0x0000, 0x7C00]
    assert np.min(x, axis=0).codes.tolist() == [0x8000, 0x8000, 0xFC00]
    assert np.max(x, axis=1, keepdims=True).codes.tolist() == [[0x0000], [0x7C00]]
    assert np.min(x, initial=-1.0).codes == 0xFC00
    assert np.max(x[:, :2], initial=1.0).codes == 0x3C00
    assert (-x).codes.tolist() == [[0x0000, 0x8000, 0x7C00], [0x8000, 0x0000, 0xFC00]]


# -- masks -------------------------------------------------------------------------------------------------------------

MASKED: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
}
WITHOUT_NANS: dict[str, Callable[..., Any]] = {
    "nansum": np.nansum,
    "nanprod": np.nanprod,
    "nanmean": np.nanmean,
    "nanvar": np.nanvar,
    "nanmedian": np.nanmedian,
    "nanquantile": lambda x, **axis: np.nanquantile(x, [0.25, 0.5], **axis),
}


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero"])
@pytest.mark.parametrize("name", MASKED)
def test_a_mask_leaves_what_each_lane_would_have_alone(name: str, rounding: str) -> None:
    x, function = softfloat.from_codes(wild((9, 5, 12), 3), HALF), MASKED[name]
    mask = np.random.default_rng(4).random(x.shape) < 0.7
    mask[2, 3] = False
    with softfloat.environment(rounding=rounding) as together:
        found = function(x, axis=2, where=mask)
    with softfloat.environment(rounding=rounding) as alone:
        for place in np.ndindex(9, 5):
            assert function(x[place][mask[place]]).codes == found[place].codes, place
    assert together.status == alone.status
    assert function(x, axis=(0, 2), where=mask).codes.tolist() == [
        function(x[:, i][mask[:, i]]).codes for i in range(5)
    ]


@pytest.mark.parametrize("name", WITHOUT_NANS)
def test_numbers_beside_nans(name: str) -> None:
    codes, function = wild((6, 7, 10), 5), WITHOUT_NANS[name]
    codes[np.random.default_rng(6).random(codes.shape) < 0.2] = 0x7E00
    x = softfloat.from_codes(codes, HALF)
    found = function(x, axis=1)
    for i, j in np.ndindex(6, 10):
        alone = function(x[i, :, j])
        np.testing.assert_array_equal(alone.codes, found.codes[..., i, j])


# -- spans -------------------------------------------------------------------------------------------------------------

REDUCING = [np.add, np.multiply, np.subtract, np.divide, np.maximum, np.fmin]


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_positive"])
@pytest.mark.parametrize("ufunc", REDUCING, ids=lambda ufunc: ufunc.__name__)
def test_spans_are_reduced_as_each_would_be_alone(ufunc: np.ufunc, rounding: str) -> None:
    x = softfloat.from_codes(wild((40, 3), 7), HALF)
    indices = [0, 4, 8, 3, 3, 20, 19, 39]
    spans = [x[i : max(j, i + 1)] for i, j in zip(indices, [*indices[1:], 40], strict=True)]
    with softfloat.environment(rounding=rounding) as together:
        found = ufunc.reduceat(x, indices)
    with softfloat.environment(rounding=rounding) as alone:
        for span, row in zip(spans, found, strict=True):
            np.testing.assert_array_equal(ufunc.reduce(span, axis=0).codes, row.codes)
    assert together.status == alone.status
    np.testing.assert_array_equal(ufunc.reduceat(x.T, indices, axis=1).codes, ufunc.reduceat(x, indices).codes.T)


def test_no_spans() -> None:
    assert np.add.reduceat(softfloat.ones(4, HALF), []).shape == (0,)


def test_lanes_draw_numbers_of_their_own() -> None:
    """Stochastically, too, equal lanes are not rounded alike, and a seed gives the same again."""
    x = softfloat.from_codes(np.full((64, 9), 0x3C01, np.uint16), HALF)
    mask = np.ones(x.shape, bool)
    mask[::2, 0] = False

    def drawn() -> tuple[list[int], list[int]]:
        with softfloat.environment(rounding="stochastic", seed=5):
            sums = np.sum(x, axis=1, where=mask).codes.tolist()
            return sums, np.add.reduceat(x.ravel(), range(0, 576, 9)).codes.tolist()

    sums, spans = drawn()
    assert len(set(sums[1::2])) > 1
    assert len(set(spans)) > 1
    assert (sums, spans) == drawn()


# -- windows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (9, 1), (9, 2), (9, 9), (3, 8), (40, 7), (6, 40)])
def test_convolutions_are_dot_products(n: int, k: int, mode: Any) -> None:
    a, v = (softfloat.from_codes(wild((size,), seed), HALF) for seed, size in enumerate((n, k)))
    for function, kernel in ((np.convolve, v), (np.correlate, v[::-1])):
        found = function(a, v, mode)
        every_place = []
        for place in range(n + k - 1):
            places = [(i, place - i) for i in range(n) if 0 <= place - i < k]
            if k > n and function is np.convolve:
                places.reverse()  # over growing indices of the longer one
            left, right = (
                SoftArray(x[np.array(at)]) for x, at in zip((a, kernel), zip(*places, strict=True), strict=True)
            )
            every_place.append(int(np.vecdot(left, right).codes))
        longer, shorter = max(n, k), min(n, k)
        first = {"full": 0, "same": (shorter - 1) // 2, "valid": shorter - 1}[mode]
        if mode == "same" and function is np.correlate and k > n:
            first = shorter - 1 - (shorter - 1) // 2
        count = {"full": n + k - 1, "same": longer, "valid": longer - shorter + 1}[mode]
        assert found.codes.tolist() == every_place[first : first + count], function.__name__


@pytest.mark.parametrize("subscripts", ["ij,ij->i", "ij,ij->j", "ijk,kij->ij", "ij,ij->"])
def test_products_of_lanes_are_dot_products(subscripts: str) -> None:
    shape = (4,) * len(subscripts.partition(",")[0])
    x, y = (softfloat.from_codes(wild(shape, seed), HALF) for seed in (8, 9))
    found = np.einsum(subscripts, x, y)
    wanted = np.einsum(subscripts.replace("->", "z->z"), x, y[..., np.newaxis])  # one more axis: matrices of one column
    np.testing.assert_array_equal(found.codes, wanted.codes[0])


def test_products_in_formats_without_1() -> None:
    """They begin with their first element; of none, there is no number to begin with."""
    fmt = softfloat.Format("f", exponent_bits=2, mantissa_bits=0, bias=0, nan="fn")
    x = softfloat.array([[2.0, 2.0], [4.0, 2.0]], fmt)
    assert np.prod(x[0]).tolist() == 4.0
    assert np.prod(x, axis=0, keepdims=True).codes.tolist() == np.multiply(x[:1], x[1:]).codes.tolist()
    assert np.multiply.reduce(x, axis=1, where=[[True, False]]).tolist() == [2.0, 4.0]
    for call in (
        lambda: np.prod(x[:0], axis=0),
        lambda: np.prod(x, axis=0, where=[[True, False]]),
        lambda: np.cumulative_prod(x, axis=0, include_initial=True),
        lambda: np.nancumprod(x),
    ):
        with pytest.raises(ValueError, match="needs a 1, and f has none"):
            call()


WITHOUT_1 = Format("f", exponent_bits=6, mantissa_bits=7, bias=70, nan="ieee", infinities=True)
WITHOUT_2 = Format("f", exponent_bits=4, mantissa_bits=3, bias=15, nan="none")


@pytest.mark.parametrize(
    "call",
    [
        np.linalg.inv,
        np.linalg.qr,
        np.linalg.cond,
        np.linalg.eigvalsh,
        np.linalg.svdvals,
        lambda x: np.quantile(x, 0.3),
        lambda x: np.percentile(x, 30),
        lambda x: np.gradient(x[0]),
        lambda x: np.trapezoid(x[0]),
        lambda x: np.interp(x[0], np.sort(x[1]), x[0]),
    ],
)
def test_what_needs_a_1_is_refused_by_name(call: Callable[[SoftArray], Any]) -> None:
    """Not computed with what 1 rounds to, nor with an AttributeError."""
    x = softfloat.from_codes([[0x2B40, 0x2A00], [0x2A80, 0x2B80]], WITHOUT_1)
    with pytest.raises(ValueError, match="needs a 1, and f has none; accepted: formats among whose numbers 1 is"):
        call(x)


def test_the_middle_between_two_needs_no_2() -> None:
    x = softfloat.array([1.0, 0.75], WITHOUT_2)
    assert (WITHOUT_2.max, np.median(x).tolist()) == (1.875, 0.875)
    with pytest.raises(ValueError, match="gradient needs a 2, and f has none"):
        np.gradient(x)
