"""SoftArrays: made from numbers of all kinds, converted, printed, indexed, handed to others; environments, streams and traps around them."""

from __future__ import annotations

import copy
import io
import itertools
import math
import operator
import pickle
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis.extra.numpy as npst
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_table import OPERANDS, TABLE
from operands import CUSTOM, edges
from operands import operands as drawn

import softfloat
from softfloat import Environment, FloatingPointTrap, SoftArray, bits
from softfloat.arrays import operators
from softfloat.arrays.decimals import shortest
from softfloat.bits.arithmetic import reciprocal

HALF, SINGLE, BRAIN = softfloat.float16, softfloat.float32, softfloat.bfloat16
E4M3, E5M2, E2M1, E8M0 = (softfloat.ROSTER[f"float{name}"] for name in ("8_e4m3fn", "8_e5m2", "4_e2m1fn", "8_e8m0fnu"))
ALL = np.arange(1 << 16, dtype=np.uint16)
DTYPES = {name: getattr(ml_dtypes, name, None) or getattr(np, name, None) for name in softfloat.ROSTER}
NATIVE = [(softfloat.ROSTER[name], np.dtype(kind)) for name, kind in DTYPES.items() if kind is not None]


def same(x: SoftArray, codes: Any) -> None:
    np.testing.assert_array_equal(x.codes, codes)


# -- making arrays ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"],
)
def test_from_numpy_and_back(kind: str) -> None:
    dtype = np.dtype(kind)
    random = np.random.default_rng(0)
    if dtype.kind == "f":
        x = np.r_[
            np.array([0.0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan, 6e-8, 65504]), random.standard_normal(200)
        ].astype(dtype)
    else:
        info = (0, 1) if kind == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        x = np.array([0, 1, *info, *random.integers(max(info[0], -2048), min(info[1], 2048) + 1, 100)], dtype)
    found = softfloat.array(x, HALF)
    same(found, bits.encode(x, HALF)[0])
    wanted = x.astype(np.float64)
    kept = np.abs(wanted) <= 2048 if dtype.kind != "f" else np.isnan(wanted) | (found.values == wanted)
    back = found.astype(dtype)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back[kept], x[kept])
    swapped = x.astype(dtype.newbyteorder())
    same(softfloat.array(swapped, HALF), found.codes)
    same(softfloat.asarray(swapped, HALF), found.codes)
    for scalar in x[:3]:
        same(softfloat.array(scalar, HALF), bits.encode(scalar, HALF)[0])


@pytest.mark.parametrize(("fmt", "dtype"), NATIVE, ids=lambda x: str(x))
def test_native_dtypes_share_memory(fmt: softfloat.Format, dtype: np.dtype[Any]) -> None:
    codes = edges(fmt)
    native = codes.view(dtype)
    shared = softfloat.asarray(native)
    assert shared.format == fmt
    assert np.shares_memory(shared.codes, native)
    same(shared, codes)
    assert not np.shares_memory(softfloat.array(native).codes, native)
    same(softfloat.array(native), codes)
    assert np.shares_memory(shared.view(dtype), native)
    assert shared.view(dtype).dtype == shared.astype(dtype).dtype == np.asarray(shared, dtype).dtype == dtype
    assert np.array_equal(shared.astype(dtype).view(fmt.dtype), codes)
    assert np.shares_memory(np.asarray(shared, dtype), native)
    assert np.shares_memory(shared.astype(dtype, copy=False), native)
    assert not np.shares_memory(np.array(shared, dtype), native)
    np.testing.assert_array_equal(np.asarray(shared, float), bits.decode(codes, fmt))
    other = softfloat.array(native, HALF)
    same(other, codes if fmt == HALF else bits.convert(codes, fmt, HALF)[0])
    np.testing.assert_array_equal(shared.astype(np.float16).view(np.uint16), other.codes)
    back = other.codes if fmt == HALF else bits.convert(other.codes, HALF, fmt)[0]
    same(softfloat.array(other, fmt), back)
    np.testing.assert_array_equal(np.asarray(other, dtype).view(fmt.dtype), back)
    turned = softfloat.asarray(native[::-1])
    assert turned.strides == native[::-1].strides
    same(turned, codes[::-1])


def test_swapped_bytes_keep_payloads() -> None:
    native = np.array([0x7D01, 0x3C00], np.uint16).view(np.float16)
    with softfloat.environment() as env:
        for found in (softfloat.array(native.astype(">f2")), softfloat.asarray(native.astype(">f2"))):
            same(found, [0x7D01, 0x3C00])
        found = softfloat.zeros(2, HALF)
        found[...] = native.astype(">f2")
        same(found, [0x7D01, 0x3C00])
    assert not env.status.flags
    np.testing.assert_array_equal(found.astype(np.dtype(">f4")), native.astype(">f4"))


NUMBERS: dict[str, tuple[Any, Any]] = {
    "int": (3, 3.0),
    "huge": (10**400, math.inf),
    "bool": (True, 1.0),
    "fraction": (Fraction(1, 3), 0.333251953125),
    "list": ([0.1, 2, True, Fraction(1, 3)], [0.0999755859375, 2.0, 1.0, 0.333251953125]),
    "nested": ([[1, 2], (3, 4)], [[1.0, 2.0], [3.0, 4.0]]),
    "nothing": ([], []),
    "SoftArrays": ([softfloat.array(1, HALF), 2.5, np.float64(0.1)], [1.0, 2.5, 0.0999755859375]),
    "rows": ([softfloat.array([1, 2], HALF), [3, 4]], [[1.0, 2.0], [3.0, 4.0]]),
    "another format": ([softfloat.array(300, BRAIN)], [300.0]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_from_python(name: str) -> None:
    given_, wanted = NUMBERS[name]
    assert softfloat.array(given_, HALF).tolist() == wanted
    assert SoftArray(given_, HALF).tolist() == wanted
    assert softfloat.asarray(given_, "half").tolist() == wanted


def test_other_makers() -> None:
    x = softfloat.ones((2, 3), HALF)
    same(x, np.full((2, 3), 0x3C00))
    same(softfloat.zeros(3, "half"), [0, 0, 0])
    same(softfloat.empty(2, E8M0), [0, 0])
    same(softfloat.full(2, 0.1, BRAIN), bits.encode([0.1, 0.1], BRAIN)[0])
    assert softfloat.full(2, x[0, 0]).format == HALF
    assert softfloat.full((2, 2), x[0, :2]).shape == (2, 2)
    for make in (
        softfloat.zeros_like,
        softfloat.ones_like,
        softfloat.empty_like,
        lambda *a: softfloat.full_like(a[0], 7, *a[1:]),
    ):
        assert (make(x).shape, make(x).format) == ((2, 3), HALF)
        assert make(x, BRAIN).format == BRAIN
        assert make(np.zeros(4, np.float32)).format == SINGLE
        assert make([1, 2, 3], E4M3).shape == (3,)
        with pytest.raises(TypeError, match="fmt is needed"):
            make(np.zeros(4))
    same(softfloat.arange(0, 1, 0.1, HALF), bits.encode(np.arange(0, 1, 0.1), HALF)[0])
    same(softfloat.arange(5, HALF), softfloat.arange(0, 5, fmt=HALF).codes)
    same(softfloat.linspace(0, x[0, 0], 5, HALF), bits.encode(np.linspace(0, 1, 5), HALF)[0])
    assert softfloat.linspace(0, 1, HALF).size == 50
    codes = np.array([1, 2], np.uint16)
    assert softfloat.from_codes(codes, HALF).codes is codes
    assert softfloat.from_codes([[0x3C00]], HALF).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: softfloat.array([1.0]), TypeError, "fmt is needed: list has no format of its own"),
        (lambda: softfloat.array(np.zeros(2)), TypeError, "fmt is needed: ndarray has no format"),
        (lambda: softfloat.array("1", HALF), TypeError, "x must be numbers: int, float, Fraction or bool, got str"),
        (lambda: softfloat.array(Decimal(1), HALF), TypeError, "got Decimal"),
        (lambda: softfloat.array(1j, HALF), TypeError, "got complex"),
        (lambda: softfloat.array(1, "float17"), ValueError, "unknown format 'float17'"),
        (lambda: softfloat.array(1, 16), TypeError, "fmt must be"),
        (lambda: softfloat.zeros(2, E8M0), ValueError, "fmt must have a zero, and float8_e8m0fnu has none"),
        (lambda: softfloat.from_codes([1.0], HALF), TypeError, "codes must be codes of float16"),
        (lambda: softfloat.from_codes([16], E2M1), ValueError, "no code of float4_e2m1fn"),
        (lambda: softfloat.arange(3), TypeError, "fmt is needed"),
        (lambda: softfloat.ones(2, HALF).view(BRAIN.dtype.newbyteorder()).view(np.uint8).nope, AttributeError, "nope"),
        (lambda: softfloat.ones(2, HALF).view("float32"), TypeError, "view needs a format of 16 bits, got float32 of 32"),
        (lambda: softfloat.ones(2, HALF).view(np.uint8), TypeError, "view needs a dtype of 2 bytes, got uint8 of 1"),
        (lambda: softfloat.ones(2, HALF).astype("float17"), ValueError, "unknown format 'float17'"),
        (lambda: softfloat.ones(2, HALF).astype(complex), TypeError, "fmt must be a Format, its name, or a NumPy dtype"),
        (lambda: np.asarray(softfloat.ones(2, HALF), float, copy=False), ValueError, "cannot become float64 without a copy"),
        (lambda: softfloat.ones(2, HALF)[softfloat.ones(2, HALF)], IndexError, "SoftArrays are numbers, not indices"),
        (lambda: softfloat.ones(2, HALF).flat[softfloat.ones(1, HALF)], IndexError, "SoftArrays are numbers, not indices"),
        (lambda: float(softfloat.ones(2, HALF)), TypeError, r"float\(\) needs a SoftArray of one element, got shape \(2,\)"),
        (lambda: bool(softfloat.ones(2, HALF)), ValueError, "ambiguous; use any"),
        (lambda: iter(softfloat.array(1, HALF)), TypeError, "iteration over a SoftArray without dimensions"),
        (lambda: len(softfloat.array(1, HALF)), TypeError, "unsized"),
        (lambda: hash(softfloat.array(1, HALF)), TypeError, "unhashable"),
        (lambda: f"{softfloat.ones(2, HALF):.2f}", TypeError, "format specifications are for single elements"),
        (lambda: softfloat.ones(2, HALF) + E8M0.name, TypeError, "unsupported operand"),
        (lambda: softfloat.ones(2, E8M0) * np.array([True]), TypeError, "False has no code in float8_e8m0fnu"),
        (lambda: -softfloat.ones(2, E8M0), TypeError, "negative needs a signed format"),
        (lambda: softfloat.ones(2, HALF) < None, TypeError, "not supported between"),
        (lambda: [1, 2][softfloat.ones((), HALF)], TypeError, "indices"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# -- conversions -----------------------------------------------------------------------------------------------------


def test_every_half_converts_both_ways() -> None:
    """The conversions of a 16-bit storage class: to and from bool, integers, single and double."""
    x = softfloat.from_codes(ALL, HALF)
    native = ALL.view(np.float16)
    number = ~np.isnan(native)
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(x.astype(dtype), native.astype(dtype))
        back = softfloat.array(x.astype(dtype), HALF)
        np.testing.assert_array_equal(back.codes[number], ALL[number])
    np.testing.assert_array_equal(x.astype(bool), native.astype(bool))
    np.testing.assert_array_equal(x.view(np.uint16), ALL)
    np.testing.assert_array_equal(x.view("uint16"), ALL)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        info = np.iinfo(dtype)
        values = native.astype(np.float64)
        fits = np.isfinite(values) & (values > float(info.min) - 1) & (values < float(info.max) + 1)
        with softfloat.environment() as env:
            np.testing.assert_array_equal(x[fits].astype(dtype), native[fits].astype(np.float64).astype(dtype))
        assert "INVALID" not in env.status
        with softfloat.environment() as env:
            found = x[~fits].astype(dtype)
        assert "INVALID" in env.status
        low = native[~fits] < 0
        np.testing.assert_array_equal(found, np.where(low, dtype(info.min), dtype(info.max)))


def test_conversions_follow_the_environment() -> None:
    x = softfloat.array([1e5, 1 + 2**-9], SINGLE)
    assert x.astype(HALF).tolist() == [math.inf, 1.001953125]
    with softfloat.environment(overflow="saturate", rounding="toward_positive") as env:
        assert x.astype("half").tolist() == [65504.0, 1.001953125]
        assert x.astype(np.float16).tolist() == np.asarray(x, np.float16).tolist() == [65504.0, 1.001953125]
        assert x.astype(ml_dtypes.bfloat16).astype(float).tolist() == [100352.0, 1.0078125]
    assert str(env.status.flags) == "INEXACT|OVERFLOW" or "OVERFLOW" in env.status
    assert x.astype(SINGLE) is not x
    assert x.astype(SINGLE, copy=False) is x
    assert x.astype(np.float64).dtype == np.float64
    assert x.astype("float64").format is softfloat.float64
    assert x.astype("int32").tolist() == [100000, 1]
    assert np.asarray(x, complex).tolist() == [1e5 + 0j, 1 + 2**-9 + 0j]
    with (
        softfloat.environment(traps="OVERFLOW"),
        pytest.raises(FloatingPointTrap, match=r"OVERFLOW raised by astype\(0x47c35000\) at index \(0,\)"),
    ):
        x.astype(HALF)


UNASKED: dict[str, Callable[[SoftArray], Any]] = {
    "asarray": np.asarray,
    "array": np.array,
    "elements": lambda x: np.array([x[0], x[1]]),
    "objects": lambda x: np.array([x[0], x[1]], object),
    "ascontiguousarray": np.ascontiguousarray,
    "r_": lambda x: np.r_[x, 1.0],
    "index": lambda x: np.arange(9)[x],
    "sum of elements": lambda x: np.sum([x[0], x[1]]),
    "choice": lambda x: np.random.default_rng(0).choice(x),
}


@pytest.mark.parametrize("name", UNASKED)
def test_no_numpy_array_unasked(name: str) -> None:
    with pytest.raises(
        TypeError, match=r"only where a dtype is asked for; accepted: x\.values \(float64, exact\), numpy"
    ):
        UNASKED[name](softfloat.array([1.0, 2.0], HALF))


def test_numpy_arrays_that_are_asked_for() -> None:
    x = softfloat.array([0.5, 2.0], BRAIN)
    for kind in (float, "float64", np.float64, np.longdouble, np.float32, complex):
        found = np.asarray(x, dtype=kind)
        assert found.dtype == np.dtype(kind)
        assert found.tolist() == np.array([x[0], x[1]], kind).tolist() == [0.5, 2.0]
    assert np.asarray(x, bool).tolist() == [True, True]
    filled = np.zeros(2)
    filled[:] = x
    filled[1] = x[0]
    assert filled.tolist() == [0.5, 0.5]
    for integers in (lambda: np.asarray(x, int), lambda: np.arange(9).take(x), lambda: np.take(np.arange(9), x)):
        with pytest.raises(TypeError, match=r"becomes int64 .* fractions only: x\.astype\('int64'\) truncates"):
            integers()
    codes, flags = bits.encode(softfloat.from_codes([0x7D01, 0x3C01], HALF), E5M2)
    assert (codes.tolist(), flags.tolist()) == ([E5M2.nan_code, 0x3C], [16, 1])


PLOTS: dict[str, Callable[[Any, SoftArray], Any]] = {
    "plot": lambda axes, x: axes.plot(x, x * x),
    "scatter": lambda axes, x: axes.scatter(x, x * x, c=x),
    "hist": lambda axes, x: axes.hist([x, x * x]),
    "fill_between": lambda axes, x: axes.fill_between(x, x * x, 0),
    "errorbar": lambda axes, x: axes.errorbar(x, x * x, yerr=x),
    "hlines": lambda axes, x: axes.hlines(x, 0, 1),
    "imshow": lambda axes, x: axes.imshow(x.reshape(3, 3)),
    "contour": lambda axes, x: axes.contour(x.reshape(3, 3)),
    "limits": lambda axes, x: axes.set_xlim(x[0], x[8]),
    "ticks": lambda axes, x: axes.set_xticks(x),
    "bar": lambda axes, x: axes.bar(x, x * x),
    "bars of widths": lambda axes, x: axes.bar(range(9), x, width=x, bottom=x * x),
    "barh": lambda axes, x: axes.barh(x, x, align="edge"),
    "labels": lambda axes, x: axes.bar_label(axes.bar(range(9), x)),
    "grouped bars": lambda axes, x: getattr(axes, "grouped_bar", axes.hist)([x, x * x]),  # of matplotlib 3.11
    "hist2d": lambda axes, x: axes.hist2d(x, x * x),
    "hist2d of weights": lambda axes, x: axes.hist2d(x, x, bins=3, range=[[0, 1], [0, 1]], weights=x * x),
    "hist of edges": lambda axes, x: axes.hist(x * x, bins=x),
    "hexbin": lambda axes, x: axes.hexbin(x, x * x, gridsize=3),
    "stackplot": lambda axes, x: axes.stackplot(x, x, x * x),
    "stem": lambda axes, x: axes.stem(x, x * x),
    "boxplot": lambda axes, x: axes.boxplot(x),
    "violinplot": lambda axes, x: axes.violinplot(x),
    "pie": lambda axes, x: axes.pie(x),
    "quiver": lambda axes, x: axes.quiver(x, x, x * x, x),
    "pcolormesh": lambda axes, x: axes.pcolormesh(x[:4], x[:4], x.reshape(3, 3)),
    "tricontour": lambda axes, x: axes.tricontour(x, x * x, x),
    "tripcolor": lambda axes, x: axes.tripcolor(x, x * x, x),
}


@pytest.mark.parametrize("name", PLOTS)
def test_matplotlib_draws(name: str) -> None:
    """What is drawn from an array is what is drawn from its values."""
    figure = pytest.importorskip("matplotlib.figure")
    x = softfloat.linspace(0, 1, 9, HALF)
    pictures = []
    for numbers in (x, x.values):
        canvas = figure.Figure(figsize=(2, 2), dpi=50)
        PLOTS[name](canvas.subplots(), numbers)
        file = io.BytesIO()
        canvas.savefig(file, format="rgba")
        pictures.append(file.getvalue())
    assert pictures[0] == pictures[1]


def test_matplotlib_computes_with_values() -> None:
    """Where bars end is not rounded into the array's format, and drawing raises no flags: 16 + 0.8 is no e4m3 number."""
    figure = pytest.importorskip("matplotlib.figure")
    with softfloat.environment(traps="INEXACT") as env:
        x = softfloat.array([16, 18], "float8_e4m3fn")
        bars = figure.Figure().subplots().bar(x, x)
        assert not env.status.flags
    assert [bar.get_width() for bar in bars] == pytest.approx([0.8, 0.8])
    assert [bar.get_x() for bar in bars] == pytest.approx([15.6, 17.6])


def test_views() -> None:
    x = softfloat.array([1.0, 2.0], HALF)
    brain = x.view("bfloat16")
    assert brain.format == BRAIN
    brain[0] = 1
    assert x.codes.tolist() == [0x3F80, 0x4000]
    assert x.view() is not x
    assert np.shares_memory(x.view(), x)
    x.view(np.float16)[1] = 5
    assert float(x[1]) == 5.0


# -- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [HALF, BRAIN, E4M3, E5M2, E2M1, E8M0, *CUSTOM], ids=str)
def test_text_identifies(fmt: softfloat.Format) -> None:
    """Text turns back into the code; it is the number itself where that is short or an integer, else no shorter decimal does."""
    codes = np.arange(1 << min(fmt.bits, 16), dtype=fmt.dtype)
    codes = codes if fmt.bits <= 16 else np.random.default_rng(0).integers(0, 1 << fmt.bits, 3000).astype(fmt.dtype)
    codes = codes[bits.isfinite(codes, fmt) & (bits.isnormal(codes, fmt) | bits.issubnormal(codes, fmt) | (codes == 0))]
    x = softfloat.from_codes(codes, fmt)
    texts = [str(one) for one in x] if fmt.bits <= 8 else x[: 1 << 9]._texts().tolist()
    decimals = shortest(codes, fmt)
    assert texts == [repr(value) for value in decimals.tolist()][: len(texts)]
    same(softfloat.array(decimals, fmt), codes)
    few = slice(None, None, max(1, codes.size // 500))
    for code, value, decimal in zip(codes[few].tolist(), x.values[few].tolist(), decimals[few].tolist(), strict=True):
        digits = Decimal(repr(decimal)).normalize().as_tuple().digits
        whole = Decimal(value).normalize().as_tuple().digits
        if (value == int(value) and abs(value) < 10**8) or len(whole) <= max(3, math.ceil(1 + fmt.p * math.log10(2))):
            assert decimal == value
            continue
        exponent = math.floor(math.log10(abs(value))) if value else 0
        scale = Fraction(10) ** (exponent - len(digits) + 2)
        shorter = [math.floor(Fraction(value) / scale) * scale, math.ceil(Fraction(value) / scale) * scale]
        assert len(digits) == 1 or all(bits.encode(one, fmt)[0] != code for one in shorter), (value, decimal)


def test_halves_print_as_numpy_prints_them_but_for_exact_digits() -> None:
    native = ALL.view(np.float16)
    decimals, theirs = shortest(ALL, HALF), np.array([float(str(value)) for value in native])
    wide = native.astype(float)
    assert np.all((decimals == theirs) | (decimals == wide) | np.isnan(wide))
    with np.errstate(invalid="ignore"):
        fractions = np.isfinite(wide) & (wide != np.trunc(wide))
    assert np.mean((decimals == theirs)[fractions]) > 0.95
    assert theirs[0x7BFF] == 65500
    assert decimals[0x7BFF] == 65504
    assert str(softfloat.from_codes(0x7BFF, HALF)) == "65504.0"


@pytest.mark.parametrize(
    ("numbers", "fmt", "text"),
    [
        ([288.0], E4M3, "[288.]"),
        ([288, 1, 0.1, 448], E4M3, "[288.    1.    0.1 448. ]"),
        ([57344, -1.25, math.inf, math.nan], E5M2, "[57344.      -1.25      inf      nan]"),
        ([7.5, 0.125, 1.0], softfloat.float6_e2m3fn, "[7.5   0.125 1.   ]"),
        ([65504, 0.2], HALF, "[65504.      0.2]"),
        ([65536, 1e30], BRAIN, "[6.5536e+04 1.0000e+30]"),
        ([16777216, 33554432], softfloat.float32, "[16777216. 33554432.]"),
        ([99999992, 2.0**27], softfloat.float32, "[9.99999920e+07 1.34217728e+08]"),
        ([6e-8, 1.0], HALF, "[6.e-08 1.e+00]"),
    ],
)
def test_integers_are_written_out(numbers: list[float], fmt: softfloat.Format, text: str) -> None:
    """288 is a number of e4m3; 300, which would be read as 288, is not."""
    x = softfloat.array(numbers, fmt)
    assert str(x) == text
    same(softfloat.array([float(word) for word in text.strip("[]").split()], fmt), x.codes)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    npst.arrays(np.uint16, npst.array_shapes(max_dims=3, max_side=6, min_side=0)),
    st.sampled_from([HALF, softfloat.float32]),
)
def test_arrays_are_laid_out_as_numpy_lays_out_float64(codes: np.ndarray, fmt: softfloat.Format) -> None:
    x = softfloat.array(codes.view(np.float16)).astype(fmt)
    numbers = shortest(x.codes, fmt)
    texts = np.array2string(numbers), np.array2string(numbers, suppress_small=True)
    assert str(x) in texts or x.ndim == 0
    some = abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    if some.size and (some.min() < 1e-4 or some.max() >= 1e8):
        assert str(x) == texts[0] or x.ndim == 0
    assert np.array2string(x, separator=";", precision=3, suppress_small=False) == np.array2string(
        numbers, separator=";", precision=3, suppress_small=False
    )
    assert np.array_str(x) == str(x)
    assert np.array_repr(x) == repr(x)


def test_texts() -> None:
    x = softfloat.array([[0.2, -0.0], [math.inf, math.nan]], E5M2)
    assert repr(x) == "SoftArray([[ 0.2, -0. ],\n           [ inf,  nan]], float8_e5m2)"
    assert str(x) == "[[ 0.2 -0. ]\n [ inf  nan]]"
    assert repr(x[0, 0]) == "SoftArray(0.2, float8_e5m2)"
    assert f"{x[0, 0]} {x[0, 0]:.4f}" == "0.2 0.1875"
    assert repr(softfloat.zeros(0, HALF)) == "SoftArray([], float16)"
    assert repr(softfloat.zeros((2, 0), HALF)) == "SoftArray(zeros((2, 0)), float16)"
    long = softfloat.full(2000, 0.1, BRAIN)
    assert str(long) == "[0.1 0.1 0.1 ... 0.1 0.1 0.1]"
    assert repr(long).endswith("], bfloat16)")
    wide = softfloat.full(11, 0.1234, HALF)
    assert max(map(len, repr(wide).splitlines())) <= np.get_printoptions()["linewidth"]
    with np.printoptions(threshold=5, edgeitems=1):
        assert str(softfloat.arange(9, E4M3)) == "[0. ... 8.]"


# -- the rest of what arrays do --------------------------------------------------------------------------------------


def test_protocols() -> None:
    x = softfloat.array([[1.0, 2.5], [-0.0, 3.0]], HALF)
    for made in (copy.copy(x), copy.deepcopy(x), x.copy(), pickle.loads(pickle.dumps(x)), x.astype(HALF)):
        assert (made.format, made.shape) == (x.format, x.shape)
        assert not np.shares_memory(made, x)
        same(made, x.codes)
    assert pickle.loads(pickle.dumps(x[:, ::-1].T)).tolist() == x[:, ::-1].T.tolist()
    file = io.BytesIO()
    np.save(file, x.codes)
    file.seek(0)
    same(softfloat.from_codes(np.load(file), HALF), x.codes)
    assert np.shares_memory(np.from_dlpack(x), x.codes)
    np.testing.assert_array_equal(np.from_dlpack(x), x.view(np.float16))
    with pytest.raises(RuntimeError, match="Unsupported dtype"):  # NumPy's word: it has no bfloat16
        np.from_dlpack(x.astype(BRAIN))
    with pytest.raises(BufferError, match=r"DLPack has no tfloat32; accepted: its \.codes, or \.values"):
        np.from_dlpack(x.astype("tfloat32"))
    assert x.__dlpack_device__() == x.codes.__dlpack_device__()
    assert x.tobytes() == x.codes.tobytes()
    assert (x.ndim, x.size, x.itemsize, x.nbytes, x.strides, len(x)) == (2, 4, 2, 8, (4, 2), 2)
    assert x.real is x
    assert x.imag.tolist() == np.imag(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert [row.tolist() for row in x] == x.tolist()
    assert [float(one) for one in x.flat] == [1.0, 2.5, 0.0, 3.0]
    assert len(x.flat) == 4
    assert 2.5 in x
    assert 7 not in x
    assert None not in x
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    assert (x.item(1), x[0, 1].item(), x[0, 1].hex()) == (2.5, 2.5, "0x1.4000000000000p+1")
    one = x[0, 1]
    assert (float(one), int(one), bool(one), round(one), math.floor(one), math.ceil(one), math.trunc(one)) == (
        2.5,
        2,
        True,
        2,
        2,
        3,
        2,
    )
    assert float(round(softfloat.array(0.16, HALF), 1)) == float(softfloat.array(0.2, HALF))
    assert not softfloat.array(-0.0, HALF)
    assert softfloat.array([math.nan], HALF)
    assert x.conj().tolist() == x.conjugate().tolist() == x.tolist()
    assert x.flags.c_contiguous
    assert not x.T.flags.c_contiguous


def test_read_only() -> None:
    native = np.ones(3, np.float16)
    native.flags.writeable = False
    x = softfloat.asarray(native)
    assert (x + x).tolist() == [2.0, 2.0, 2.0]
    writes: list[Callable[[], Any]] = [
        lambda: operator.iadd(x, x),
        lambda: operator.iadd(x, 1),
        lambda: operator.ifloordiv(x, 2),
        lambda: x.__setitem__(0, 1),
        lambda: np.add(x, x, out=x),
        lambda: np.sqrt(x, out=x),
        x.sort,
    ]
    for write in writes:
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert native.tolist() == [1.0, 1.0, 1.0]


def test_elements_are_copies_and_slices_are_views() -> None:
    x = softfloat.array([1.0, 2.0, 3.0], HALF)
    x[0].fill(9)
    x[1:] += 1
    x[...][2] = 7
    assert x.tolist() == [1.0, 3.0, 7.0]
    scalar = softfloat.array(1, HALF)
    same_one = scalar
    scalar += 0.5
    assert same_one is scalar
    assert float(scalar) == 1.5
    with pytest.raises(ValueError, match="broadcast"):
        scalar += x
    with pytest.raises(ValueError, match="broadcast"):
        x += softfloat.ones((2, 3), HALF)


def test_python_numbers_are_weak() -> None:
    x = softfloat.array([1.0, 2.0], E4M3)
    assert (x + 0.3).format == E4M3
    assert (x + 0.3).tolist() == (x + softfloat.array(0.3, E4M3)).tolist()
    assert (0.5 - x).tolist() == [-0.5, -1.5]
    assert (np.float16(1) + softfloat.array([1.0], HALF)).format == HALF
    assert (np.ones(2, np.float16) + softfloat.ones(2, HALF)).tolist() == [2.0, 2.0]
    assert (softfloat.ones(2, BRAIN) * np.full(2, 3, ml_dtypes.bfloat16)).tolist() == [3.0, 3.0]
    assert (x * np.array([True, False])).tolist() == [1.0, 0.0]
    assert (x * [2, 0.5]).tolist() == [2.0, 1.0]
    assert (x + -0.0).tolist() == (x + 0).tolist()
    with softfloat.environment(rounding="toward_positive") as env:
        assert float(softfloat.array(0, HALF) + 0.1) == 0.10003662109375
        assert "INEXACT" in env.status
        assert bool(softfloat.array(0.1, HALF) == 0.1)
    with softfloat.environment(rounding="stochastic", seed=0):
        assert len({float(softfloat.zeros((), HALF) + 0.1) for _ in range(20)}) == 1
        assert len({float(softfloat.array(0.1, HALF)) for _ in range(50)}) == 2
    tenth = softfloat.array([0.1], HALF)
    with softfloat.environment() as env:
        assert (tenth <= 0.1).all()
    assert not env.status.flags
    for zero, wanted in ((0.0, 0x0000), (-0.0, 0x8000), (0, 0x0000), (False, 0x0000)):
        same(np.copysign(softfloat.array([-0.0], HALF), zero), [wanted])
    nan = math.nan
    same(softfloat.ones(1, HALF) * nan, [HALF.nan_code])
    same(softfloat.ones(1, HALF) * -nan, softfloat.ones(1, HALF).codes * 0 + HALF.nan_code)


def test_float64_scalars_are_python_floats() -> None:
    """What `numpy.linspace(...)[i]` gives is rounded as the number that it is; what has a format of its own keeps it."""
    h = np.linspace(0, 1, 11)[1]
    assert type(h) is np.float64
    for fmt, size in itertools.product((HALF, E4M3, SINGLE), (3, 1 << 11)):
        v = softfloat.full(size, 1.75, fmt)
        for mode in ("nearest_even", "toward_positive"):
            pairs: list[Callable[[Any], Any]] = [
                lambda t, v=v: v * t,
                lambda t, v=v: t - v,
                lambda t, v=v: np.maximum(v, t),
                lambda t, v=v: np.where(v < t, v, t),
                lambda t, v=v: operator.iadd(v.copy(), t),
                lambda t, v=v: v[:2] * [t, 2],
                lambda t, v=v: softfloat.full(2, t, v.format),
            ]
            for call in pairs:
                with softfloat.environment(rounding=mode) as env:
                    found = call(h)
                with softfloat.environment(rounding=mode) as other:
                    same(found, call(0.1).codes)
                assert env.status == other.status
        v[0] = h
        same(v[0], bits.encode(0.1, fmt)[0])
    assert (softfloat.ones(2, SINGLE) * np.float32(0.1)).format == SINGLE
    with softfloat.environment(traps="INEXACT"), pytest.raises(FloatingPointTrap, match=r"raised by multiply\(0\.1\)"):
        _ = softfloat.ones(2, HALF) * h


def test_tutorial() -> None:
    """Of a tutorial on training in half precision, with only the constructor changed."""
    x_in_float16 = softfloat.array([0.0004], softfloat.float16)
    x_in_float16 += 0.25
    x_in_float16 -= 0.25
    assert f"0.0004 + 0.25 - 0.25 =  {x_in_float16[0]}" == "0.0004 + 0.25 - 0.25 =  0.0004883"
    lines: dict[Any, list[str]] = {softfloat.array: [], np.array: []}
    big_number = 0.25
    for (array, written), small_number in itertools.product(lines.items(), [0.2, 0.02, 0.002, 0.0002]):
        x_in_float16 = array([small_number], softfloat.float16 if array is softfloat.array else np.float16)
        x_in_float16 += big_number
        x_in_float16 -= big_number
        written.append(
            f"{small_number:.4f} + {big_number} - {big_number} = {x_in_float16[0]:.7f}, "
            f"relative error: {(x_in_float16[0] - small_number) / small_number:+.1%}"
        )
    assert lines[softfloat.array] == lines[np.array]
    assert [line[:33] for line in lines[softfloat.array]] == [
        "0.2000 + 0.25 - 0.25 = 0.1999512,",
        "0.0200 + 0.25 - 0.25 = 0.0200195,",
        "0.0020 + 0.25 - 0.25 = 0.0019531,",
        "0.0002 + 0.25 - 0.25 = 0.0002441,",
    ]
    x_in_float16 = softfloat.array([0.0001], softfloat.float16)
    x_in_float16 += 0.25
    x_in_float16 -= 0.25
    assert str(x_in_float16[0]) == "0.0"
    x_in_float16 = softfloat.array([0.0], softfloat.float16)
    for _ in range(10000):
        x_in_float16 += 0.0001
    assert str(x_in_float16[0]) == "0.25"
    with softfloat.environment(rounding="stochastic", seed=0):
        running_total = softfloat.zeros(20, softfloat.float16)
        small_numbers = softfloat.full(20, 0.0001, softfloat.float16)
        for _ in range(10000):
            running_total = running_total + small_numbers
    assert 0.9 < float(running_total.values.min()) < 1.0 < float(running_total.values.max()) < 1.1


# -- environments ----------------------------------------------------------------------------------------------------

OPERATORS: dict[str, tuple[Callable[..., Any], Any]] = {
    "add": (operator.add, bits.add),
    "sub": (operator.sub, bits.sub),
    "mul": (operator.mul, bits.mul),
    "div": (operator.truediv, bits.div),
}
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.reshape(12, 16).T,
    "strided": lambda x: x[::-3],
    "single": lambda x: x[5:6].reshape(()),
    "nothing": lambda x: x[:0],
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_zero"},
    {"rounding": "to_odd", "nan": "arm"},
    {"rounding": "stochastic", "seed": 3},
    {"rounding": "stochastic", "seed": 3, "sr_bits": 8, "overflow": "saturate"},
    {"rounding": "stochastic", "seed": 3, "generator": "xoroshiro128aox"},
    {"ftz": True, "daz": True, "overflow": "saturate", "nan": "ipu"},
]
FORMATS = [HALF, SINGLE, E4M3, E2M1, E8M0, CUSTOM[3]]


@pytest.mark.parametrize("limit", [operators.SMALL, -1], ids=["straight", "general"])
@pytest.mark.parametrize("setting", range(len(SETTINGS)))
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_operators_are_functions_of_bits(
    fmt: softfloat.Format, setting: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes, flags and the count of streams, with and without the way that small arrays take."""
    monkeypatch.setattr(operators, "SMALL", limit)
    settings_ = SETTINGS[setting]
    a, b = drawn(fmt, 192, 2, seed=1)
    number = 1.7
    constant = (
        Environment(**{**settings_, "rounding": "nearest_even"}) if "seed" in settings_ else Environment(**settings_)
    )
    code, constant_flags = bits.encode(number, fmt, environment=constant, flags="any")
    for (name, (operation, function)), (layout, laid) in itertools.product(OPERATORS.items(), LAYOUTS.items()):
        p, q = laid(a), laid(b)
        forms: dict[str, tuple[Callable[[SoftArray, SoftArray], Any], Any, Any, int]] = {
            "arrays": (operation, p, q, 0),
            "number": (lambda x, y, o=operation: o(x, number), p, code, constant_flags),
            "swapped": (lambda x, y, o=operation: o(number, x), code, p, constant_flags),
            "in place": (lambda x, y, o=operation: getattr(operator, f"i{o.__name__}")(x, y), p, q, 0),
            "in place, number": (lambda x, y, o=operation: getattr(operator, f"i{o.__name__}")(x, number), p, code, constant_flags),
            "with itself": (lambda x, y, o=operation: getattr(operator, f"i{o.__name__}")(x, x), p, p, 0),
            "row": (lambda x, y, o=operation: o(x, y[:1] if y.ndim else y), p, q[:1] if q.ndim else q, 0),
        }  # fmt: skip
        for form, (call, left, right, more) in forms.items():
            with softfloat.environment(Environment(**settings_)) as env:
                env.next_stream()
                x = softfloat.from_codes(laid(a.copy()), fmt)
                found = call(x, softfloat.from_codes(q, fmt))
                count = env.next_stream()
            wanted, flags = function(left, right, fmt, environment=env, stream=1, flags="any")
            assert count == 2, (name, layout, form)
            assert isinstance(found, SoftArray)
            assert found.format == fmt
            assert np.array_equal(found.codes, wanted), (name, layout, form)
            assert int(env.status.flags) == flags | more, (name, layout, form)
            if form.startswith("in place") or form == "with itself":
                assert found is x
            else:
                np.testing.assert_array_equal(x.codes, p)


def test_stochastic_rounding_needs_a_seed() -> None:
    for limit in (1, 3):
        with softfloat.environment(rounding="stochastic"), pytest.raises(ValueError, match="needs a seed"):
            softfloat.ones(limit, HALF) + softfloat.ones(limit, HALF)


def test_settings_of_single_formats() -> None:
    with softfloat.environment(Environment.ipu(esr=True, seed=1)) as env:
        x = softfloat.full(1000, 1.0, HALF) + softfloat.full(1000, 2.0**-12, HALF)
        assert set(x.tolist()) == {1.0, 1.0009765625}
        y = softfloat.full(1000, 1.0, SINGLE) + softfloat.full(1000, 2.0**-25, SINGLE)
        assert set(y.tolist()) == {1.0}
        assert float(softfloat.array(60000, HALF) + softfloat.array(60000, HALF)) == 65504.0
    assert "OVERFLOW" in env.status


TRAPS: dict[str, tuple[Callable[[SoftArray, SoftArray], Any], str, str]] = {
    "operator": (lambda x, y: x / y, "DIVBYZERO", r"DIVBYZERO raised by divide\(0x3c00, 0x0\) at index \(1, 2\)"),
    "ufunc": (lambda x, y: np.divide(x, y), "DIVBYZERO", r"raised by divide\(0x3c00, 0x0\) at index \(1, 2\)"),
    "in place": (lambda x, y: operator.itruediv(x, y), "DIVBYZERO", r"raised by divide\(.*\) at index \(1, 2\)"),
    "log": (lambda x, y: np.log(y), "DIVBYZERO", r"DIVBYZERO raised by log\(0x0\) at index \(1, 2\)"),
    "square": (lambda x, y: np.square(x * 300), "OVERFLOW", r"OVERFLOW raised by square\(0x5cb0, 0x5cb0\) at index \(0, 0\)"),
    "sum": (lambda x, y: np.sum(x * 40000, axis=1), "OVERFLOW", r"OVERFLOW raised by sum\(.*\) at index \(0,\)"),
    "matmul": (lambda x, y: (x * 200) @ (y * 200).T, "OVERFLOW", r"OVERFLOW raised by matmul\(.*\) at index \(0, 0\)"),
    "mean": (lambda x, y: np.mean(x * 40000, axis=0), "OVERFLOW", r"OVERFLOW raised by mean\(.*\) at index \(0,\)"),
    "std": (lambda x, y: np.std(x[:0], axis=1), "INVALID", "never"),
    "prod": (lambda x, y: np.prod(x * 300, axis=1), "OVERFLOW", r"OVERFLOW raised by prod\(.*\) at index \(0,\)"),
    "where": (lambda x, y: np.divide(x, y, where=y < 1), "DIVBYZERO", r"DIVBYZERO raised by divide\(.*\) at index \(1, 2\)"),
    "sum where": (lambda x, y: np.sum(x * 40000, axis=0, where=y > 0), "OVERFLOW", r"OVERFLOW raised by sum\(.*\) at index \(0,\)"),
    "at": (lambda x, y: np.divide.at(x, ([1, 0], [2, 1]), y[[0, 1], [0, 2]]), "DIVBYZERO", r"raised by divide\.at\(0x3c00, 0x0\) at index \(0, 1\)"),
    "number": (lambda x, y: x + 0.1, "INEXACT", r"INEXACT raised by add\(0\.1\) at index \(\)"),
    "signalling": (lambda x, y: softfloat.from_codes([0, 0x7D00], HALF) < 1, "INVALID", r"INVALID raised by less\(0x7d00, 0x3c00\) at index \(1,\)"),
    "assignment": (lambda x, y: x.__setitem__(0, 1e9), "OVERFLOW", r"OVERFLOW raised by setitem\(1000000000\.0\)"),
    "array": (lambda x, y: softfloat.array([1, 1e9], HALF), "OVERFLOW", r"OVERFLOW raised by array\(1000000000\.0\) at index \(1,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    call, trap, message = TRAPS[name]
    x, y = softfloat.ones((2, 3), HALF), softfloat.ones((2, 3), HALF)
    y[1, 2] = 0
    with softfloat.environment(traps=trap) as env:
        if message == "never":
            call(x, y)
            return
        with pytest.raises(FloatingPointTrap, match=message):
            call(x, y)
    assert trap in env.status
    call(x, y)  # without traps: no error, no warning


PLACED: dict[str, Callable[[SoftArray, SoftArray], SoftArray]] = {
    "einsum, transposed": lambda x, y: np.einsum("ij,jk->ki", x, y),
    "einsum, of a stack": lambda x, y: np.einsum("bij,bjk->kbi", np.stack([x, x]), np.stack([y, y])),
    "tensordot": lambda x, y: np.tensordot(x.reshape(2, 2, 4), y, 1),
    "dot": lambda x, y: np.dot(x.reshape(2, 2, 4), y),
    "inner": lambda x, y: np.inner(x.reshape(2, 2, 4), y.T),
    "sum": lambda x, y: np.sum(x, axis=1, keepdims=True),
    "sum of all": lambda x, y: np.sum(x, keepdims=True),
    "sum, where": lambda x, y: np.sum(x, axis=1, keepdims=True, where=x > 0),
    "nansum": lambda x, y: np.nansum(x, axis=0, keepdims=True),
    "mean": lambda x, y: np.mean(x, axis=0, keepdims=True),
    "prod": lambda x, y: np.prod(x, axis=1, keepdims=True),
    "var": lambda x, y: np.var(x, axis=1, keepdims=True),
    "average": lambda x, y: np.average(x, axis=1, weights=x, keepdims=True),
    "median": lambda x, y: np.median(x[:, 2:], axis=1, keepdims=True),
    "norm": lambda x, y: np.linalg.norm(x, axis=1, keepdims=True),
    "cumsum": lambda x, y: np.cumsum(x, axis=0),
    "cumprod": lambda x, y: np.cumprod(x, axis=0),
    "accumulate": lambda x, y: np.subtract.accumulate(-x, axis=1),
    "reduceat": lambda x, y: np.add.reduceat(x, [0, 2], axis=1),
    "reduce": lambda x, y: np.subtract.reduce(-x, axis=1, keepdims=True),
    "vecdot": lambda x, y: np.vecdot(x[[0, 3]], x[[0, 3]], axis=0),
    "kron": np.kron,
    "diff": lambda x, y: np.diff(np.where(x > 4, -x, x) * 1.5, axis=0),
    "convolve": lambda x, y: np.convolve(x.ravel(), y[:, 0]),
    "correlate": lambda x, y: np.correlate(y[:, 0], x.ravel(), "full"),
    "cross": lambda x, y: np.cross(x[:, 1:], x[:, :3] / 2),
    "cross, placed": lambda x, y: np.cross(x[1:], x[[0, 0, 2]] / 2, axisa=0, axisb=0, axisc=1),
}
if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    PLACED["cumulative_sum"] = lambda x, y: np.cumulative_sum(x, axis=1, include_initial=True)
if hasattr(np, "matvec"):  # NumPy 2.2
    PLACED["matvec"] = lambda x, y: np.matvec(x, y[:, 0])
    PLACED["vecmat"] = lambda x, y: np.vecmat(y[:, 2], x[[0, 3, 0, 1]])


@pytest.mark.parametrize("name", PLACED)
def test_a_trap_names_the_place_in_the_result(name: str) -> None:
    """Wherever a function puts axes, the index that a trap names is that of an overflowed element of the result."""
    x, y = softfloat.ones((4, 4), HALF), softfloat.ones((4, 3), HALF)
    x[2], x[3, 3], y[1, 2], y[0, 0] = [8000, 8000, 7000, 60000], 30000, 300, 200
    found = PLACED[name](x, y)
    wrong = ~np.isfinite(found)
    assert wrong.any()
    assert not wrong.all() or found.size == 1
    with softfloat.environment(traps="OVERFLOW"), pytest.raises(FloatingPointTrap) as trapped:
        PLACED[name](x, y)
    index = trapped.value.index
    assert len(index) == found.ndim
    assert wrong[index]


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.nanmin])
def test_a_number_to_begin_with_has_no_place(function: Callable[..., Any]) -> None:
    """0.1 is inexact, and the place of its trap, which it does not have, was looked up: IndexError."""
    x = softfloat.ones((2, 3), HALF)
    with softfloat.environment(traps="INEXACT"), pytest.raises(FloatingPointTrap) as trapped:
        function(x, axis=1, initial=0.1, where=[True, False, True])
    assert trapped.value.index == ()


def test_a_refused_call_takes_no_stream() -> None:
    """What is drawn after a caught error is what would be drawn without it."""

    def drawn(*refused: Callable[[SoftArray], Any]) -> list[int]:
        with softfloat.environment(rounding="stochastic", seed=1) as env:
            x = softfloat.full(50, 1 + 2**-9, HALF)
            for call in refused:
                with pytest.raises((TypeError, ValueError)):
                    call(x)
            x = x * 1.37
            assert env.next_stream() == 1
            with pytest.raises(ValueError, match="broadcast"):
                env.evaluate(bits.add, [1, 2], [1, 2, 3], HALF)
            assert [env.next_stream(), env.next_stream()] == [2, 3]
        return (x * x).codes.tolist()

    shapes: list[Callable[[SoftArray], Any]] = [
        lambda x: x + x[:3],
        lambda x: np.add(x, x, out=softfloat.zeros(3, HALF)),
        lambda x: x @ x[:3],
        lambda x: np.sum(x, axis=3),
        lambda x: np.sqrt(x, out=np.zeros(50)),
        lambda x: softfloat.array([1.0, 1j], HALF),
        lambda x: np.quantile(x, [0.3, 2]),
        lambda x: np.gradient(x.reshape(50, 1)),
        lambda x: np.trapezoid(x, x[:3]),
        lambda x: np.clip(x, 0, x[:3]),
    ]
    assert drawn(*shapes) == drawn() == drawn(*shapes[:2])


def test_formats_whose_normal_numbers_do_not_include_1() -> None:
    """Reciprocals are exact quotients, rounded once; what would be a 1 is refused by name."""
    far = softfloat.Format("e5m3_far", exponent_bits=5, mantissa_bits=3, bias=8)
    below = softfloat.Format("e5m3_one_below", exponent_bits=5, mantissa_bits=3, bias=0)
    beyond = softfloat.Format("e5m3_beyond", exponent_bits=5, mantissa_bits=3, bias=40)
    for fmt, daz in itertools.product((far, below, beyond), (False, True)):
        x = softfloat.from_codes(np.arange(fmt.smallest_normal_code, fmt.max_code, dtype=fmt.dtype), fmt)
        with softfloat.environment(daz=daz):
            found = np.reciprocal(x).codes
        wanted = [
            softfloat.reference.encode(1 / softfloat.reference.decode(int(code), fmt).real, fmt) for code in x.codes
        ]
        assert found.tolist() == [code for code, _ in wanted]
        assert reciprocal(x.codes, fmt, flags="any", daz=daz)[0].tolist() == found.tolist()
    y = softfloat.from_codes(np.array([7, 9], np.uint16), beyond)
    for name, call in (("sign", np.sign), ("ones", np.ones_like), ("heaviside", lambda x: np.heaviside(x, x))):
        with pytest.raises(ValueError, match=f"{name} needs a 1, and e5m3_beyond has none"):
            call(y)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_nothing_is_raised_beside_infinities_and_nans(value: float) -> None:
    """A third of the 1 that stood in their places was inexact: the mean of (NaN, 1, 2) raised INEXACT, of other formats OVERFLOW."""
    beyond = softfloat.Format("e5m3_beyond", exponent_bits=5, mantissa_bits=3, bias=40)
    wide = softfloat.Format("e9m30_beyond", exponent_bits=9, mantissa_bits=30, bias=600)
    least = softfloat.Format(
        "e3m2_beyond", 3, 2, bias=-9, infinities=True, nan="fn", signed=False, subnormals=False, zero=False
    )
    for fmt in (HALF, beyond, wide, least):
        x = softfloat.array([value, fmt.max, fmt.max], fmt)
        calls = [lambda x: np.frexp(x[:1]), lambda x: np.ldexp(x, 0), lambda x: np.spacing(x) if value != value else 0]
        calls += [lambda x: np.mean(x[:1] + x[:1]), lambda x: np.mean(np.tile(x[:1], 3))] * fmt.zero
        for call in calls:
            with softfloat.environment() as env:
                call(x)
            assert not env.status.flags, (fmt, call)


def test_products_where_1_is_subnormal() -> None:
    """They began with it: flushed, it made each product 0. Those of one number are quiet, as all are."""
    fmt = softfloat.Format("e3m3_above", exponent_bits=3, mantissa_bits=3, bias=-1)  # normal from 4; 1 is 0b000010
    x = softfloat.from_codes([0b001001, 0b001000], fmt)
    for setting in ("daz", "ftz"):
        with softfloat.environment(**{setting: True}) as env:
            assert np.prod(x).codes == 0b011001  # 4.5 * 4 = 18
            assert np.prod(x[:1]).codes == np.prod(x[:1], axis=0).codes == 0b001001
            assert np.prod(x[:0]).codes == (0b000010 if setting == "ftz" else 0)  # which `daz` reads as 0
        assert not env.status.flags
    far = softfloat.Format("e5m3_beyond", exponent_bits=5, mantissa_bits=3, bias=40)
    with softfloat.environment() as env:
        assert np.prod(softfloat.from_codes([far.inf_code + 1], far)).codes == far.nan_code
    assert env.status.flags == softfloat.Flags.INVALID


def test_a_trap_leaves_the_operation_complete() -> None:
    x, y = softfloat.ones(3, HALF), softfloat.array([2, 0, 4], HALF)
    with softfloat.environment(traps="DIVBYZERO"):
        with pytest.raises(FloatingPointTrap):
            x /= y
        assert x.tolist() == [0.5, math.inf, 0.25]
        out = softfloat.zeros(3, HALF)
        with pytest.raises(FloatingPointTrap):
            np.reciprocal(y, out=out)
        assert out.tolist() == [0.5, math.inf, 0.25]


BY_DATA = {"compress", "extract", "indexing", "trim_zeros", "union1d", "intersect1d", "setdiff1d", "setxor1d"} | {
    f"unique{what}" for what in ("", "_all", "_counts", "_inverse", "_values")
}
"""Functions whose results are as long as the numbers say."""


@pytest.mark.parametrize("fmt", [SINGLE, E4M3, E2M1, E8M0, CUSTOM[3], CUSTOM[4]], ids=str)
def test_every_function_in_other_formats(fmt: softfloat.Format) -> None:
    """Results keep the format and have NumPy's shapes; what a format has no way to do, it refuses by name."""

    def check(found: Any, model: Any) -> None:
        if isinstance(model, (tuple, list)):
            assert len(found) == len(model)
            for one, other in zip(found, model, strict=True):
                check(one, other)
        elif isinstance(model, SoftArray):
            assert isinstance(found, SoftArray)
            assert found.format == fmt
            assert found.codes.dtype == fmt.dtype
            assert found.ndim == model.ndim
            assert found.shape == model.shape or name in BY_DATA
            assert int(found.codes.max(initial=0)) < 1 << fmt.bits
        else:
            assert type(found) is type(model)

    for name, case in TABLE.items():
        if name == "astype":
            continue
        operands = [x[:500] for x in OPERANDS[case.operands]()[0]]
        halves = [softfloat.array(x) for x in operands]
        others = [x.astype(fmt) for x in halves]
        try:
            found = case.call(*others)
        except (TypeError, ValueError) as error:
            if (fmt.signed and fmt.zero) or not re.search("needs a signed format|zero", str(error)):
                raise
            continue
        check(found, case.call(*halves))


@pytest.mark.parametrize("swapped", [False, True], ids=["x += y", "y is x"])
def test_in_place_additions_draw_again_from_the_operands(swapped: bool) -> None:
    """Of 512 000 roundings some 8 hang on more than 16 random bits: their tiles are added again, and not to what was added already."""
    step = bits.encode(0.001, HALF)[0]
    for seed in range(40):
        wanted = np.zeros(64, np.uint16)
        with softfloat.environment(rounding="stochastic", seed=seed):
            x = softfloat.zeros(64, HALF)
            for stream in range(200):
                other = wanted.copy() if swapped and stream % 20 == 0 else step
                if other is step:
                    x += 0.001
                else:
                    x += x
                wanted, _ = bits.add(wanted, other, HALF, rounding="stochastic", seed=seed, stream=stream)
        assert x.codes.tolist() == wanted.tolist(), f"seed {seed}"


def test_one_step_that_was_added_twice() -> None:
    """The pattern that showed it: stream 95 of seed 1 adds 0.001 (0x1419) to seven sums, which hang on the bits to come."""
    before = np.array([0x348F, 0x3491, 0x3490, 0x348D, 0x348E, 0x3493, 0x348E], np.uint16)
    after = [0x3493, 0x3495, 0x3494, 0x3491, 0x3492, 0x3498, 0x3493]
    with softfloat.environment(rounding="stochastic", seed=1) as env:
        while env.next_stream() < 94:
            pass
        x = softfloat.from_codes(before, HALF)
        x += 0.001
    assert x.codes.tolist() == after


def test_nothing_of_one_thread_shows_in_another() -> None:
    """Threads share prepared loops and constants, and compute what one alone does."""
    failures: list[str] = []

    def work(seed: int) -> None:
        with softfloat.environment(rounding="stochastic", seed=seed):
            x = softfloat.zeros(7, HALF)
            for k in range(200):
                x += 0.001 * (k % 5 + 1)
            found = x.codes.tolist()
        wanted = np.zeros(7, np.uint16)
        for k in range(200):
            step = bits.encode(0.001 * (k % 5 + 1), HALF)[0]
            wanted, _ = bits.add(wanted, step, HALF, rounding="stochastic", seed=seed, stream=k)
        if found != wanted.tolist():
            failures.append(f"seed {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e8m0fnu"]
)
def test_tensors_have_formats(name: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([[1.0, 2.0], [0.5, 4.0]]).to(getattr(torch, name))
    found = softfloat.asarray(tensor.T)
    assert (found.format.name, found.tolist()) == (name, [[1.0, 0.5], [2.0, 4.0]])
    copied = softfloat.array(tensor)
    found[0, 1] = 2
    assert tensor.float().tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert copied.tolist() == [[1.0, 2.0], [0.5, 4.0]]
    assert softfloat.array(tensor, "tfloat32").format.name == "tfloat32"
    with pytest.raises(TypeError, match="fmt is needed: Tensor has no format"):
        softfloat.asarray(tensor.double())


def test_nan_payloads_of_tensors_are_converted() -> None:
    """As those of a SoftArray: not by way of numbers."""
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([0x7D01], dtype=torch.uint16).view(torch.float16)
    assert softfloat.array(tensor).codes.tolist() == [0x7D01]
    with softfloat.environment(nan="arm") as env:
        assert softfloat.array(tensor, "float32").codes.tolist() == [0x7FE02000]
        assert "INVALID" in env.status


def test_arrays_of_others_have_formats() -> None:
    """As JAX has them: with a dtype of NumPy's or ml_dtypes', and a way to hand over their memory."""

    class Array:
        def __init__(self, numbers: np.ndarray) -> None:
            self.numbers, self.dtype = numbers, numbers.dtype

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return self.numbers

        def __dlpack__(self) -> Any:
            raise BufferError

    numbers = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    found = softfloat.asarray(Array(numbers))
    assert (found.format.name, found.tolist()) == ("bfloat16", [1.0, 2.0])
    assert np.shares_memory(found.codes, numbers)
    with pytest.raises(TypeError, match="fmt is needed"):
        softfloat.asarray(Array(np.arange(2)))
